"""Give a file a new name."""

from datagen.checks import gone, same
from datagen.draw import Draw
from datagen.instance import Instance, bystander, text_of, worded

WORDINGS = (
    "Rename the file {f} to {g}",
    "Move {f} to {g}",
    "Give {f} the new name {g}",
)


class RenameFile:
    """The old name is gone, the new one holds the same bytes."""

    name = "rename_file"

    def make(self, draw: Draw) -> Instance:
        """An instance with the file and an unrelated one."""
        args = {"f": draw.file(), "g": draw.file()}
        content = text_of(draw.words(3)).encode()
        other, kept = bystander(draw)
        return Instance(
            instruction=worded(draw, WORDINGS, args),
            args=args,
            files={args["f"]: content, other: kept},
            checks=(gone(args["f"]), same(args["g"], content), same(other, kept)),
            commands=("mv {f} {g}".format(**args),),
        )
