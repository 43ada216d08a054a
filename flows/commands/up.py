"""`openforge up` and `openforge down`: a Prefect server with our deployments and a worker."""

from pathlib import Path
from typing import Annotated

import typer

from flows.commands.options import Port, Root, checkout

Detach = Annotated[bool, typer.Option("--detach", help="Return once it runs; `openforge down` ends it.")]


def up(root: Root = Path("."), port: Port = None, detach: Detach = False) -> None:
    """Start a Prefect server, deploy prefect.yaml, start a worker; runs until Ctrl-C."""
    from flows import installation

    where = checkout(root)
    if detach:
        note = installation.start_detached(where, port)
        typer.echo(f"UI: {note.ui_url}   (process {note.pid}; end it with `openforge down`)")
        return
    installation.run_until_interrupted(where, port, typer.echo)


def down(root: Root = Path(".")) -> None:
    """End what `openforge up` started for this checkout, flow runs included."""
    from flows import installation

    pid = installation.stop(checkout(root))
    typer.echo("nothing was running" if pid is None else f"ended process {pid} and everything below it")
