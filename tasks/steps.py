"""A training step's record as people read it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainer.records import INVARIANTS, StepRecord


def in_words(record: Path) -> str:
    """The step in one line: reward, rollouts, and the promises of the token record with their figures."""
    if not record.is_file():
        return f"no step record at {record}"
    r = StepRecord.model_validate_json(record.read_bytes())
    promises = " ".join(f"{name}={r.violations[name]}" for name in INVARIANTS)
    return (
        f"step {r.step}: reward {_figure(r.mean_reward)}, {r.completed} of {r.rollouts} rollouts graded, "
        f"{_figure(r.rows_per_rollout)} rows per rollout, largest logprob difference {_figure(r.max_logprob_diff, '.1e')}, "
        f"violations {promises}"
    )


def reward_rows(records: Sequence[StepRecord]) -> list[dict[str, Any]]:
    """One flat row per step for a table."""
    return [
        {
            "step": r.step,
            "reward": r.mean_reward,
            "graded": r.completed,
            "truncated": r.truncated,
            "failed": sum(r.failed.values()),
            "rows per rollout": r.rows_per_rollout,
            "max logprob diff": r.max_logprob_diff,
            "violations": sum(r.violations.values()),
            "seconds": r.seconds.total,
        }
        for r in records
    ]


def _figure(value: float | None, spec: str = ".2f") -> str:
    return "none" if value is None else format(value, spec)
