"""Change one value of a JSON file."""

import json

from datagen.checks import same, same_json
from datagen.draw import Draw
from datagen.instance import Instance, bystander, worded

WORDINGS = (
    "In {f}, set {k} under {s} to the number {n} and leave everything else as it is",
    "Change the value of {s}.{k} in the JSON file {f} to {n}",
    "Edit {f} so that the key {k} of the object {s} is {n}; keep all other values",
)


class EditJson:
    """Two sections hold the same key; only one of them may change."""

    name = "edit_json"

    def make(self, draw: Draw) -> Instance:
        """An instance whose new number differs from both old ones."""
        args = {"f": draw.file("json"), "k": draw.word(), "s": draw.word()}
        olds = draw.between(10, 49), draw.between(10, 49)
        new = draw.between(50, 99)
        args["n"] = str(new)
        sections = draw.shuffled([args["s"], draw.word()])
        start = {
            section: {draw.word(): draw.word(), args["k"]: old, draw.word(): draw.choice((True, False))}
            for section, old in zip(sections, olds, strict=True)
        }
        goal = {section: dict(values) for section, values in start.items()}
        goal[args["s"]][args["k"]] = new
        other, kept = bystander(draw)
        return Instance(
            instruction=worded(draw, WORDINGS, args),
            args=args,
            files={args["f"]: (json.dumps(start, indent=2) + "\n").encode(), other: kept},
            checks=(same_json(args["f"], goal), same(other, kept)),
            commands=('sed -i \'/"{s}": {{/,/}}/ s/"{k}": [0-9]*/"{k}": {n}/\' {f}'.format(**args),),
        )
