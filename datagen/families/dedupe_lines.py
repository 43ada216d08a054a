"""Drop repeated lines and keep the order."""

from datagen.checks import same, same_text
from datagen.draw import Draw
from datagen.instance import Instance, text_of, worded

WORDINGS = (
    "Copy {f} to {g} without the repeated lines; keep the first of each and their order",
    "Remove duplicate lines from {f}, in the original order, and save the result in {g}",
    "Write each distinct line of {f} once to {g}, in the order of first appearance",
)


class DedupeLines:
    """Repeats are not adjacent and the lines are not sorted."""

    name = "dedupe_lines"

    def make(self, draw: Draw) -> Instance:
        """An instance of four to seven distinct lines, two or three of them repeated."""
        args = {"f": draw.file(), "g": draw.file()}
        distinct = sorted(draw.words(draw.between(4, 7)), reverse=True)
        lines = [*distinct, *draw.shuffled(distinct)[: draw.between(2, 3)]]
        start = text_of(lines).encode()
        return Instance(
            instruction=worded(draw, WORDINGS, args),
            args=args,
            files={args["f"]: start},
            checks=(same_text(args["g"], text_of(distinct)), same(args["f"], start)),
            commands=("awk '!seen[$0]++' {f} > {g}".format(**args),),
        )
