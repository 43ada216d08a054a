from datetime import UTC, datetime

import pytest

from contracts.rollout import Cause, Outcome, RolloutResult
from datagen.gates import Gate, judge

GRADED = Outcome.COMPLETED


def run(outcome: Outcome, reward: float | None = None, cause: Cause | None = None) -> RolloutResult:
    """One recorded gate run."""
    return RolloutResult(
        rollout_id="x",
        group_id="g",
        session_id=None,
        task="t",
        harness="react",
        policy="oracle",
        attempt=1,
        outcome=outcome,
        cause=cause,
        reward=reward,
        started_at=datetime(2025, 1, 1, tzinfo=UTC),
        wall_s=1.0,
    )


def graded(*rewards: float) -> list[RolloutResult]:
    """Graded runs."""
    return [run(GRADED, reward) for reward in rewards]


FAILED_BY = {cause: [run(Outcome.FAILED, cause=cause)] for cause in Cause}


@pytest.mark.parametrize(
    ("noop", "oracle", "reason"),
    [
        (graded(0, 0, 0), graded(1, 1, 1), None),
        (graded(0.2, 0.2), graded(1, 1), "noop_rewarded"),
        (graded(0, 1), graded(1, 1), "noop_flaky"),
        (graded(0, 0), graded(0, 0), "oracle_failed"),
        (graded(0, 0), graded(0.99, 0.99), "oracle_failed"),
        (graded(0, 0), graded(1, 0), "oracle_flaky"),
        (graded(0), FAILED_BY[Cause.TASK], "verifier_broken"),
        (graded(0), [run(Outcome.TRUNCATED, cause=Cause.TURNS)], "oracle_truncated"),
        (graded(0), FAILED_BY[Cause.SANDBOX], "untested: sandbox"),
        (graded(0), FAILED_BY[Cause.HARNESS], "untested: harness"),
        (graded(0), [*graded(1), *FAILED_BY[Cause.OURS]], "untested: ours"),
        (FAILED_BY[Cause.UPSTREAM], graded(0), "oracle_failed"),
    ],
)
def test_the_runs_decide_the_reason(noop: list[RolloutResult], oracle: list[RolloutResult], reason: str | None) -> None:
    finding = judge({Gate.NOOP: noop, Gate.ORACLE: oracle})
    assert (finding and finding.reason) == reason


def test_the_detail_names_the_rewards() -> None:
    finding = judge({Gate.NOOP: graded(0, 0.5), Gate.ORACLE: graded(1, 1)})
    assert finding is not None
    assert finding.detail == "rewards of the noop runs: 0.0, 0.5, wanted 0.0"
