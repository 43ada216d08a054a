"""Move all files of one kind into a new directory."""

from datagen.checks import gone, same
from datagen.draw import Draw
from datagen.instance import Instance, text_of, worded
from datagen.words import EXTENSIONS

WORDINGS = (
    "Move every .{e} file of the current directory into the new directory {d}",
    "Create the directory {d} and move all files whose names end in .{e} into it",
    "Put all .{e} files into a new folder named {d}; leave the other files where they are",
)


class MoveFiles:
    """Files with the extension move, the others stay."""

    name = "move_files"

    def make(self, draw: Draw) -> Instance:
        """An instance with two to four files to move and two to leave alone."""
        extension, *others = draw.shuffled(EXTENSIONS)
        args = {"e": extension, "d": draw.word()}
        moved = {draw.file(extension): text_of(draw.words(2)).encode() for _ in range(draw.between(2, 4))}
        left = {draw.file(other): text_of(draw.words(2)).encode() for other in others[:2]}
        return Instance(
            instruction=worded(draw, WORDINGS, args),
            args=args,
            files={**moved, **left},
            checks=(
                *(gone(path) for path in moved),
                *(same(f"{args['d']}/{path}", content) for path, content in moved.items()),
                *(same(path, content) for path, content in left.items()),
            ),
            commands=("mkdir {d}".format(**args), "mv *.{e} {d}".format(**args)),
        )
