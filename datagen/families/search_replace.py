"""Replace a word in all files of one kind, subdirectory included."""

from datagen.checks import same, same_text
from datagen.draw import Draw
from datagen.instance import Instance, text_of, worded
from datagen.words import EXTENSIONS

WORDINGS = (
    "Replace {a} with {b} in every .{e} file here and in the directory {d}; do not change other files",
    "In all .{e} files, those in {d} included, change each {a} to {b}",
    "Substitute {b} for {a} everywhere in the .{e} files of this directory and of {d}, and only there",
)


class SearchReplace:
    """The word stands twice on one line, and also in a file of another kind."""

    name = "search_replace"

    def make(self, draw: Draw) -> Instance:
        """An instance with three files to change and one to leave alone."""
        extension, left = draw.shuffled(EXTENSIONS)[:2]
        args = {"a": draw.word(), "b": draw.word(), "e": extension, "d": draw.word()}
        paths = [draw.file(extension), draw.file(extension), f"{args['d']}/{draw.file(extension)}"]
        texts = {path: _text(draw, args["a"]) for path in paths}
        untouched = f"{args['d']}/{draw.file(left)}", _text(draw, args["a"]).encode()
        return Instance(
            instruction=worded(draw, WORDINGS, args),
            args=args,
            files={**{path: text.encode() for path, text in texts.items()}, untouched[0]: untouched[1]},
            checks=(
                *(same_text(path, text.replace(args["a"], args["b"])) for path, text in texts.items()),
                same(*untouched),
            ),
            commands=("find . -name '*.{e}' -exec sed -i 's/{a}/{b}/g' {{}} +".format(**args),),
        )


def _text(draw: Draw, word: str) -> str:
    """Three lines; the word stands once on one of them and twice on another."""
    return text_of(draw.shuffled([draw.word(), f"{word} {draw.word()}", f"{draw.word()} {word} {word}"]))
