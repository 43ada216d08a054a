"""Task sets made for tests."""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contracts.rollout import Cause, Outcome, RolloutRequest, RolloutResult
from contracts.task import TaskSpec
from datagen import pipeline, test
from datagen.config import DatagenConfig


@pytest.fixture
def config(tmp_path: Path) -> DatagenConfig:
    """Two families, three tasks each."""
    return DatagenConfig(
        out=tmp_path / "set", families=("write_file", "sort_lines"), train_per_family=2, eval_per_family=1, repeats=3
    )


@pytest.fixture
def grade(tmp_path: Path) -> Callable[[TaskSpec, Sequence[str]], float]:
    """Plays commands in a fresh working directory of a task, then its verifier; gives the reward it wrote."""

    def play(task: TaskSpec, commands: Sequence[str]) -> float:
        workspace, rewards = tmp_path / "workspace", tmp_path / "rewards"
        for folder in (workspace, rewards):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(task.files_dir, workspace)
        for command in commands:
            subprocess.run(["bash", "-c", command], cwd=workspace, check=True, timeout=20, capture_output=True)
        env = {**os.environ, "OPENFORGE_REWARD_DIR": str(rewards)}
        script = ["bash", str(task.tests_dir / "test.sh")]
        ran = subprocess.run(script, cwd=workspace, env=env, timeout=20, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        assert not [fault for fault in ("syntax", "not found") if fault in ran.stderr], ran.stderr
        text = (rewards / "reward.txt").read_text()
        assert text in ("0\n", "1\n")
        return float(text)

    return play


def result_of(request: RolloutRequest, reward: float | None = None, cause: Cause | None = None) -> RolloutResult:
    """A result as rollout reports it: graded with a reward, or failed with a cause."""
    return RolloutResult(
        rollout_id=request.rollout_id,
        group_id=request.group_id,
        session_id="s",
        task=request.task.name,
        harness=request.harness,
        policy=request.policy,
        attempt=request.attempt,
        outcome=Outcome.COMPLETED if cause is None else Outcome.FAILED,
        cause=cause,
        reward=reward,
        started_at=datetime(2025, 3, 14, tzinfo=UTC),
        wall_s=0.1,
    )


@pytest.fixture
def answered() -> Callable[..., RolloutResult]:
    """`result_of`, for tests."""
    return result_of


@pytest.fixture
def drive() -> Callable[[DatagenConfig, Callable[[RolloutRequest], RolloutResult]], None]:
    """Runs the whole pipeline with a function in place of the rollouts."""

    def run(config: DatagenConfig, answer: Callable[[RolloutRequest], RolloutResult]) -> None:
        pipeline.prepare(config)
        while True:
            while requests := test.pending_requests(config, "run"):
                for request in requests:
                    test.record(config, answer(request))
            if not pipeline.settle(config):
                return

    return run


@pytest.fixture
def ideal() -> Callable[[RolloutRequest], RolloutResult]:
    """The result of a sound task: 0 for the agent that does nothing, 1 for the solution."""
    return lambda request: result_of(request, reward=0.0 if request.harness == "nop" else 1.0)
