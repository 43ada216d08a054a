"""The one parameter of each flow: the domain's own settings, where the run keeps its files, and where rollouts run."""

from pathlib import Path

from pydantic import Field

from benchmarks.config import BenchmarkConfig
from contracts.config import Config
from datagen.config import DatagenConfig
from tasks.config import Machine, Teacher
from trainer.config import RlConfig, SftConfig


class DatagenRun(Config):
    """Everything of one `datagen` run."""

    datagen: DatagenConfig = Field(default=DatagenConfig(), title="Task set")
    """What is generated and how strictly it is tested."""
    max_parallel: int = Field(default=8, ge=1, title="Parallel test runs")
    """Test rollouts that run at the same time."""
    machine: Machine = Field(default=Machine(), title="Machine")
    """Where rollouts run."""


class SftRun(Config):
    """Everything of one `sft` run."""

    run_dir: Path = Field(title="Run directory")
    """Where the run keeps its sessions, rows, log and checkpoints; a second run of it continues."""
    teacher: Teacher = Field(title="Teacher")
    """Who is recorded, on which tasks."""
    sft: SftConfig = Field(title="Training")
    """What is trained, and how."""
    machine: Machine = Field(default=Machine(), title="Machine")
    """Where rollouts run."""


class RlRun(Config):
    """Everything of one `rl-train` run."""

    run_dir: Path = Field(title="Run directory")
    """Where the run keeps its log, step records and checkpoints; a second run of it continues from the last checkpoint."""
    rl: RlConfig = Field(title="Training")
    """What is trained, on which tasks, and how; ``model`` may be another run's directory: its newest checkpoint is taken."""
    split: str | None = Field(default="train", title="Split")
    """Only tasks of this split; None: every task of the set."""
    families: tuple[str, ...] = Field(default=(), title="Families")
    """Only tasks of these families; empty: all families."""
    machine: Machine = Field(default=Machine(), title="Machine")
    """Where rollouts run."""


class BenchmarkRun(Config):
    """Everything of one `benchmark` run."""

    benchmark: BenchmarkConfig = Field(title="Benchmark")
    """What is measured; each policy's ``model`` may be a run's directory: its newest checkpoint is taken."""
    dated: bool = Field(default=False, title="Dated")
    """Keep the results in a sub-directory of ``out`` named by the day: a nightly run measures anew each time."""
    datagen_dir: Path | None = Field(default=None, title="Task set's directory")
    """Adds its yield table to the report."""
    sft_run_dir: Path | None = Field(default=None, title="SFT run directory")
    """Adds its loss curve to the report."""
    rl_run_dir: Path | None = Field(default=None, title="RL run directory")
    """Adds its reward curve and invariants to the report."""
    machine: Machine = Field(default=Machine(), title="Machine")
    """Where rollouts run."""


class JanitorRun(Config):
    """Everything of one `janitor` run."""

    runs: Path = Field(default=Path("runs"), title="Runs")
    """Directory below which training runs are looked for."""
    machine: Machine = Field(default=Machine(), title="Machine")
    """Whose sandboxes are swept."""
