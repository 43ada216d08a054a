"""Copy the lines of one level out of a log."""

from datagen.checks import same, same_text
from datagen.draw import Draw
from datagen.instance import Instance, text_of, worded

WORDINGS = (
    "Write the lines of {f} whose level is {v} to {g}",
    "Copy only the {v} lines of the log {f} into {g}; the level is the third column",
    "Filter {f} by the level {v} and save the lines in {g}",
)
LEVELS = ("DEBUG", "INFO", "WARN", "ERROR")


class FilterLog:
    """Columns: date, time, level, component, message. Another level's message names the wanted level, too."""

    name = "filter_log"

    def make(self, draw: Draw) -> Instance:
        """An instance of 10 to 16 lines with at least two of the wanted level."""
        args = {"f": draw.file("log"), "g": draw.file(), "v": draw.choice(LEVELS)}
        others = [level for level in LEVELS if level != args["v"]]
        levels = [args["v"]] * 2 + [draw.choice(LEVELS) for _ in range(draw.between(7, 13))]
        entries = [(level, " ".join(draw.words(2))) for level in levels]
        entries.append((draw.choice(others), f"last {args['v']} cleared"))
        parts = draw.words(3)
        lines: list[str] = []
        second = draw.between(0, 60_000)
        for level, message in draw.shuffled(entries):
            second += draw.between(1, 900)
            clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
            lines.append(f"2025-03-14 {clock} {level} {draw.choice(parts)}: {message}")
        start = text_of(lines).encode()
        wanted = text_of([line for line in lines if line.split()[2] == args["v"]])
        return Instance(
            instruction=worded(draw, WORDINGS, args),
            args=args,
            files={args["f"]: start},
            checks=(same_text(args["g"], wanted), same(args["f"], start)),
            commands=("awk '$3 == \"{v}\"' {f} > {g}".format(**args),),
        )
