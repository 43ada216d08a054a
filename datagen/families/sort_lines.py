"""Sort the lines of one file into another."""

from datagen.checks import same, same_text
from datagen.draw import Draw
from datagen.instance import Instance, bystander, text_of, worded

WORDINGS = (
    "Sort the lines of {f} into {g}",
    "Write the sorted lines of {f} to {g}",
    "Order the lines of {f} and save them in {g}",
)


class SortLines:
    """Lower-case words, one of them twice; the original stays as it was."""

    name = "sort_lines"

    def make(self, draw: Draw) -> Instance:
        """An instance whose lines are out of order at the start."""
        args = {"f": draw.file(), "g": draw.file()}
        words = draw.words(draw.between(4, 7))
        lines = draw.shuffled([*words, words[0]])
        if lines == sorted(lines):
            lines.reverse()
        start = text_of(lines).encode()
        other, kept = bystander(draw)
        return Instance(
            instruction=worded(draw, WORDINGS, args),
            args=args,
            files={args["f"]: start, other: kept},
            checks=(same_text(args["g"], text_of(sorted(lines))), same(args["f"], start), same(other, kept)),
            commands=("sort {f} > {g}".format(**args),),
        )
