"""What the trainer writes about each step. Made by trainer/ppo, read by the flow, the report and the tests."""

from pathlib import Path

from pydantic import Field

from contracts.config import Record

INVARIANTS = ("I1", "I2", "I3", "I4", "I5", "I6")
"""The promises of the token record; every step record names all of them."""


class StepSeconds(Record):
    """Where the time of a step went, seconds."""

    rollouts: float
    """From handing out the prompts to the last result."""
    log_prob: float
    update: float
    weight_sync: float | None = None
    """None until the step's weights have reached the engine."""
    checkpoint: float | None = None
    """None when the step saved none."""
    total: float | None = None


class StepRecord(Record):
    """One training step; ``steps/step-000001.json`` of the run directory."""

    step: int = Field(ge=1)
    policy_version: int = Field(ge=0)
    """Newest weights that sampled its rollouts; ``step - 1`` on policy."""
    rollouts: int
    """Attempts that were asked for, refills included."""
    completed: int
    truncated: int
    failed: dict[str, int]
    """Cause → failed rollouts; empty when none failed."""
    groups: int
    """Tasks of the step."""
    compared_groups: int
    """Groups with at least two usable rollouts; only those can teach."""
    flat_groups: int
    """Compared groups whose rewards are all equal; they teach nothing."""
    rows: int
    rows_per_rollout: float | None
    """None when no rollout was usable."""
    mean_reward: float | None
    """Over the usable rollouts; None when there was none."""
    sampled_tokens: int
    trained_tokens: int
    violations: dict[str, int]
    """``I1`` … ``I6`` → violations found in this step; all six keys, normally all 0."""
    max_logprob_diff: float | None
    """Largest difference of a trained token's logprob between engine and trainer; None when no row was trained."""
    learning_rate: float | None = None
    seconds: StepSeconds


def step_path(run_dir: Path, step: int) -> Path:
    """Where the record of a step lies."""
    return run_dir / "steps" / f"step-{step:06d}.json"


def write_step(run_dir: Path, record: StepRecord) -> Path:
    """Write a step's record; a reader sees the old one or the new one, never half of it."""
    path = step_path(run_dir, record.step)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".tmp")
    fresh.write_text(record.model_dump_json(indent=2), encoding="utf-8")
    fresh.replace(path)
    return path


def read_steps(run_dir: Path) -> list[StepRecord]:
    """All step records of a run in order."""
    return [StepRecord.model_validate_json(p.read_bytes()) for p in sorted((run_dir / "steps").glob("step-*.json"))]
