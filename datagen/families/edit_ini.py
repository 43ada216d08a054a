"""Change one setting of an INI file."""

from datagen.checks import same, same_ini
from datagen.draw import Draw
from datagen.instance import Instance, bystander, text_of, worded

WORDINGS = (
    "In {f}, set {k} in the section [{s}] to {v} and leave every other setting as it is",
    "Change {k} to {v} in the [{s}] section of the config file {f}",
    "Edit {f}: the option {k} of section {s} must be {v}; keep the rest",
)


class EditIni:
    """Every section holds the same key; only one of them may change."""

    name = "edit_ini"

    def make(self, draw: Draw) -> Instance:
        """An instance with three sections."""
        args = {"f": draw.file("cfg"), "k": draw.word(), "s": draw.word(), "v": draw.word()}
        sections = draw.shuffled([args["s"], *draw.words(2)])
        others = {section: f"{draw.word()} = {draw.between(1, 99)}" for section in sections}
        olds = {section: draw.word() for section in sections}
        news = {**olds, args["s"]: args["v"]}
        other, kept = bystander(draw)
        return Instance(
            instruction=worded(draw, WORDINGS, args),
            args=args,
            files={args["f"]: _ini(args["k"], olds, others).encode(), other: kept},
            checks=(same_ini(args["f"], _ini(args["k"], news, others)), same(other, kept)),
            commands=("sed -i '/^\\[{s}\\]/,/^$/ s/^{k} = .*/{k} = {v}/' {f}".format(**args),),
        )


def _ini(key: str, values: dict[str, str], others: dict[str, str]) -> str:
    return text_of([f"[{section}]\n{others[section]}\n{key} = {value}\n" for section, value in values.items()])
