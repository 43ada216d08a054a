"""Add up one column of a CSV file over the rows of one group."""

from datagen.checks import same, same_number
from datagen.draw import Draw
from datagen.instance import Instance, text_of, worded

WORDINGS = (
    "Add up the column {c} of {f} over the rows whose {k} is {v} and write only the total to {g}",
    "In {f}, sum {c} for {k} = {v}; save just the number in {g}",
    "Compute the total {c} of all rows of {f} where {k} equals {v}, and store that number in {g}",
)


class AggregateCsv:
    """Columns: an id, the group and two numbers; only one group and one number count."""

    name = "aggregate_csv"

    def make(self, draw: Draw) -> Instance:
        """An instance of 8 to 14 rows with three groups, each at least twice."""
        args = {"f": draw.file("csv"), "g": draw.file(), "c": draw.word(), "k": draw.word()}
        groups = draw.words(3)
        args["v"] = groups[0]
        header = ["id", args["k"], draw.word(), args["c"]]
        members = draw.shuffled([*groups * 2, *(draw.choice(groups) for _ in range(draw.between(2, 8)))])
        rows = [(i, group, draw.between(1, 99), draw.between(1, 99)) for i, group in enumerate(members, start=1)]
        start = text_of([",".join(header), *(",".join(str(v) for v in row) for row in rows)]).encode()
        total = sum(row[3] for row in rows if row[1] == args["v"])
        return Instance(
            instruction=worded(draw, WORDINGS, args),
            args=args,
            files={args["f"]: start},
            checks=(same_number(args["g"], total), same(args["f"], start)),
            commands=("awk -F, '$2 == \"{v}\" {{ total += $4 }} END {{ print total }}' {f} > {g}".format(**args),),
        )
