"""Settings of one benchmark run: which policies are measured on which held-out tasks, and how often."""

from collections import Counter
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from contracts.config import Config
from contracts.rollout import Limits


class MeasuredPolicy(Config):
    """One policy to measure."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=60, title="Name")
    """Name of its engine in the proxy and of its results file, e.g. ``base``, ``sft``, ``rl``."""
    model: Path = Field(title="Checkpoint")
    """Checkpoint directory with config, weights and tokenizer."""


class BenchmarkConfig(Config):
    """What one benchmark run measures."""

    tasks: Path = Field(title="Task set")
    """Directory of the task set: one Harbor task directory per task."""
    out: Path = Field(title="Results directory")
    """Directory for results and report; a run that finds results there continues them."""
    policies: tuple[MeasuredPolicy, ...] = Field(min_length=1, title="Policies")
    """Policies to compare, in the order of the report."""
    harness: str = Field(default="react", title="Harness")
    """Folder name under harness_images/."""
    split: str | None = Field(default="eval", title="Split")
    """Only tasks of this split; None: every task of the set."""
    families: tuple[str, ...] = Field(default=(), title="Families")
    """Only tasks of these families; empty: all families."""
    max_tasks: int | None = Field(default=None, ge=1, title="Most tasks")
    """Largest number of tasks, spread evenly over the families; None: all."""
    rollouts_per_task: int = Field(default=4, ge=1, title="Attempts per task")
    """Attempts per task and policy; the largest k of pass@k and pass^k."""
    temperature: float = Field(default=1.0, ge=0.0, title="Temperature")
    """Sampling temperature of every policy; 0 means greedy."""
    limits: Limits = Field(default_factory=Limits, title="Limits")
    """What one attempt may use."""
    truncated: Literal["discard", "grade"] = Field(default="discard", title="Truncated attempts")
    """An attempt that hits a limit: ``discard`` counts it as not solved, ``grade`` lets the verifier decide."""
    success_reward: float = Field(default=1.0, gt=0.0, le=1.0, title="Least reward that solves")
    """Smallest reward that counts as solved."""
    max_parallel: int = Field(default=8, ge=1, title="Parallel attempts")
    """Attempts that run at the same time."""
    max_attempts: int = Field(default=2, ge=1, title="Tries per attempt")
    """Tries of one attempt when the infrastructure fails; the policy's own failures are never tried again."""
    seed: int = Field(default=0, title="Seed")
    """Seed of the engines' sampling and of the bootstrap intervals."""

    @field_validator("policies")
    @classmethod
    def _names_differ(cls, policies: tuple[MeasuredPolicy, ...]) -> tuple[MeasuredPolicy, ...]:
        counts = Counter(p.name for p in policies)
        doubled = sorted(name for name, count in counts.items() if count > 1)
        if doubled:
            raise ValueError(f"policy names must differ; named more than once: {', '.join(doubled)}")
        return policies

    def policy(self, name: str) -> MeasuredPolicy | None:
        """The measured policy of that name; None when there is none."""
        return next((p for p in self.policies if p.name == name), None)
