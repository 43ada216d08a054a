"""Write a given word to a new file."""

from datagen.checks import same, same_text
from datagen.draw import Draw
from datagen.instance import Instance, bystander, text_of, worded

WORDINGS = (
    "Write the word {a} to the file {f}",
    "Put {a} into {f}",
    "Create the file {f} with the word {a} in it",
)


class WriteFile:
    """One word, one new file."""

    name = "write_file"

    def make(self, draw: Draw) -> Instance:
        """An instance whose working directory holds one unrelated file."""
        args = {"a": draw.word(), "f": draw.file()}
        other, content = bystander(draw)
        return Instance(
            instruction=worded(draw, WORDINGS, args),
            args=args,
            files={other: content},
            checks=(same_text(args["f"], text_of([args["a"]])), same(other, content)),
            commands=("echo {a} > {f}".format(**args),),
        )
