"""`openforge datagen | sft | rl-train | benchmark CONFIG.toml`: one flow run in this process."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from flows.commands.options import ConfigFile, DryRun, Overrides, Root, checkout

if TYPE_CHECKING:
    from contracts.config import Config


def datagen(config: ConfigFile, overrides: Overrides = None, dry_run: DryRun = False, root: Root = Path(".")) -> None:
    """Generate, filter, build, test, repair and publish a task set."""
    from flows.config import DatagenRun

    _run("flows.generate.datagen", DatagenRun, config, overrides, dry_run, root)


def sft(config: ConfigFile, overrides: Overrides = None, dry_run: DryRun = False, root: Root = Path(".")) -> None:
    """Record a teacher through the harness and train a policy on what it said."""
    from flows.config import SftRun

    _run("flows.distill.sft", SftRun, config, overrides, dry_run, root)


def rl_train(config: ConfigFile, overrides: Overrides = None, dry_run: DryRun = False, root: Root = Path(".")) -> None:
    """Train a policy by reinforcement learning on its own rollouts; continues from the last checkpoint."""
    from flows.config import RlRun

    _run("flows.train.rl_train", RlRun, config, overrides, dry_run, root)


def benchmark(config: ConfigFile, overrides: Overrides = None, dry_run: DryRun = False, root: Root = Path(".")) -> None:
    """Measure policies on held-out tasks and write an HTML report."""
    from flows.config import BenchmarkRun

    _run("flows.evaluate.benchmark", BenchmarkRun, config, overrides, dry_run, root)


def _run(
    entrypoint: str, model: "type[Config]", path: Path, overrides: list[str] | None, dry_run: bool, root: Path
) -> None:
    from contracts.config import resolved
    from flows.config_file import read_config

    config = read_config(model, path, overrides or [])
    if dry_run:
        typer.echo(resolved(config))
        return
    from flows.in_process import run_here

    raise typer.Exit(run_here(entrypoint, config, checkout(root)))
