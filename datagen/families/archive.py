"""Pack a directory into a gzipped tar file."""

from datagen.checks import same, same_archive
from datagen.draw import Draw
from datagen.instance import Instance, bystander, text_of, worded

WORDINGS = (
    "Pack the directory {d} into the gzipped tar archive {f} and keep the directory",
    "Create {f} with the folder {d} and everything in it; do not delete {d}",
    "Make a compressed backup of {d} named {f}, with paths that start with {d}",
)


class Archive:
    """Members keep the directory's name as their prefix."""

    name = "archive"

    def make(self, draw: Draw) -> Instance:
        """An instance with two to four files, one of them in a subdirectory."""
        args = {"d": draw.word(), "f": draw.file("tar.gz")}
        names = [draw.file() for _ in range(draw.between(1, 3))] + [f"{draw.word()}/{draw.file()}"]
        packed = {f"{args['d']}/{name}": text_of(draw.words(2)).encode() for name in names}
        other, kept = bystander(draw)
        return Instance(
            instruction=worded(draw, WORDINGS, args),
            args=args,
            files={**packed, other: kept},
            checks=(
                same_archive(args["f"], packed),
                *(same(path, content) for path, content in packed.items()),
                same(other, kept),
            ),
            commands=("tar -czf {f} {d}".format(**args),),
        )
