"""Rollout results made by hand."""

from datetime import UTC, datetime

from contracts.rollout import Cause, Outcome, RolloutRequest, RolloutResult


def result_of(request: RolloutRequest, reward: float | None) -> RolloutResult:
    """A graded result, or with None one that failed for a reason of ours; its session is named after the rollout."""
    return RolloutResult(
        rollout_id=request.rollout_id,
        group_id=request.group_id,
        session_id=f"s-{request.rollout_id}",
        task=request.task.name,
        harness=request.harness,
        policy=request.policy,
        attempt=request.attempt,
        outcome=Outcome.FAILED if reward is None else Outcome.COMPLETED,
        cause=Cause.OURS if reward is None else None,
        reward=reward,
        started_at=datetime(2025, 1, 1, tzinfo=UTC),
        wall_s=1.0,
    )
