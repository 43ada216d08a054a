"""`openforge quickstart`: the whole loop on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from flows.commands.options import Port, Root, checkout

Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of tasks, training and sampling.")]
Fresh = Annotated[
    bool, typer.Option("--fresh/--resume", help="Remove the results of an earlier quickstart of that seed first.")
]


def quickstart(root: Root = Path("."), port: Port = None, seed: Seed = 0, fresh: Fresh = True) -> None:
    """Make tasks, distil, train by RL and benchmark a tiny policy through the Prefect deployments; prints the table."""
    from flows.quickstart import run

    raise typer.Exit(run(checkout(root), port, seed, fresh))
