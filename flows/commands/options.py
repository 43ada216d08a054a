"""Arguments that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from contracts.errors import ConfigError

ConfigFile = Annotated[Path, typer.Argument(metavar="CONFIG.toml", help="Settings; see configs/ for examples.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Set one key on top of the file, e.g. limits.turns=4. May be repeated."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the resolved settings as JSON and stop.")]
Root = Annotated[
    Path, typer.Option("--root", envvar="OPENFORGE_ROOT", help="The checkout: the directory with prefect.yaml.")
]
Port = Annotated[
    int | None, typer.Option("--port", min=1, max=65535, help="Port of the Prefect server; default: a free one.")
]
LogFile = Annotated[Path, typer.Argument(metavar="LOG", help="SQLite call log of a run.")]


def checkout(root: Path) -> Path:
    """``root`` as an absolute path.

    Raises:
        ConfigError: there is no prefect.yaml.
    """
    absolute = root.resolve()
    if not (absolute / "prefect.yaml").is_file():
        raise ConfigError(f"{str(absolute)!r} has no prefect.yaml; run this in the checkout or name it with --root.")
    return absolute
