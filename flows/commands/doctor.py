"""`openforge doctor`: what is installed and reachable, each with its cure."""

from pathlib import Path

import typer

from flows.commands.options import Root


def doctor(root: Root = Path(".")) -> None:
    """Check this machine; exit code 1 when something that the quickstart needs is missing."""
    from flows.diagnosis import checks

    bad = False
    for check in checks(root.resolve()):
        mark = "ok  " if check.ok else ("MISS" if check.needed else "-   ")
        typer.echo(f"{mark} {check.what}: {check.found}" + ("" if check.ok else f"  →  {check.cure}"))
        bad = bad or (check.needed and not check.ok)
    raise typer.Exit(1 if bad else 0)
