"""Count the lines of one file into another."""

from datagen.checks import same, same_number
from datagen.draw import Draw
from datagen.instance import Instance, bystander, text_of, worded

WORDINGS = (
    "Count the lines of {f} into {g}",
    "Write the number of lines of {f} to {g}",
    "Store how many lines {f} has in {g}",
)


class CountLines:
    """Some lines hold two words, so that counting words gives another number."""

    name = "count_lines"

    def make(self, draw: Draw) -> Instance:
        """An instance with 3 to 12 lines."""
        args = {"f": draw.file(), "g": draw.file()}
        lines = [" ".join(draw.words(1 + i % 2)) for i in range(draw.between(3, 12))]
        start = text_of(lines).encode()
        other, kept = bystander(draw)
        return Instance(
            instruction=worded(draw, WORDINGS, args),
            args=args,
            files={args["f"]: start, other: kept},
            checks=(same_number(args["g"], len(lines)), same(args["f"], start), same(other, kept)),
            commands=("wc -l < {f} > {g}".format(**args),),
        )
