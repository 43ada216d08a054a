from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks.config import BenchmarkConfig, MeasuredPolicy
from contracts.rollout import Outcome, RolloutResult
from contracts.task import write_task

STARTED = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.fixture
def make_result() -> Callable[..., RolloutResult]:
    def make(task: str = "a", reward: float | None = 1.0, policy: str = "base", **changes: Any) -> RolloutResult:
        values: dict[str, Any] = {
            "rollout_id": f"{policy}-{task}-r1",
            "group_id": f"{policy}-{task}",
            "session_id": "s1",
            "task": task,
            "harness": "react",
            "policy": policy,
            "attempt": 1,
            "outcome": Outcome.COMPLETED,
            "reward": reward,
            "calls": 2,
            "started_at": STARTED,
            "wall_s": 1.0,
        }
        return RolloutResult(**(values | changes))

    return make


@pytest.fixture
def task_set(tmp_path: Path) -> Path:
    """Two held-out tasks of each of two families and one training task."""
    root = tmp_path / "tasks"
    for family, number, split in [
        ("write_file", 0, "eval"),
        ("write_file", 1, "eval"),
        ("sort_lines", 0, "eval"),
        ("sort_lines", 1, "eval"),
        ("write_file", 2, "train"),
    ]:
        write_task(
            root / f"{family}-{number:04}",
            instruction=f"Do {family} {number}",
            files={},
            dockerfile="FROM scratch\n",
            test_sh="echo 1 > reward.txt\n",
            solve_sh=None,
            metadata={"openforge": {"family": family, "split": split}},
            agent_timeout_s=10.0,
            verifier_timeout_s=10.0,
        )
    return root


@pytest.fixture
def config(task_set: Path, tmp_path: Path) -> BenchmarkConfig:
    policies = (
        MeasuredPolicy(name="base", model=tmp_path / "base"),
        MeasuredPolicy(name="sft", model=tmp_path / "sft"),
    )
    return BenchmarkConfig(tasks=task_set, out=tmp_path / "bench", policies=policies, rollouts_per_task=2)
