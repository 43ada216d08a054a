"""The groups of a step against the proxy's real queue: who is used, who leaves, and that every group ends."""

import asyncio
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contracts.call import Purpose, VersionRun
from contracts.rollout import Cause, Evidence, Outcome, RolloutRequest, RolloutResult
from contracts.row import MergeReport, TrainingRow
from contracts.wire import LeaseAsk, RowsAnswer
from proxy.queue import RolloutQueue
from trainer.config import RlConfig
from trainer.groups import GroupDriver, Prompt


class Sink:
    """Keeps what a trainer would get."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.ended: dict[str, bool] = {}

    async def put(self, rows) -> None:
        assert not self.ended, "rows must come before the group's end"
        self.keys += [row.key for row in rows]

    async def finish(self, uid: str, usable: bool) -> None:
        self.ended[uid] = usable


def _config(**changes) -> RlConfig:
    return RlConfig(model=Path("/m"), tasks=Path("/t"), **{"group_size": 3, "prompts_per_step": 1, **changes})


def _result(
    request: RolloutRequest, outcome=Outcome.COMPLETED, cause=None, reward: float | None = 1.0
) -> RolloutResult:
    return RolloutResult(
        rollout_id=request.rollout_id,
        group_id=request.group_id,
        session_id=f"session-{request.rollout_id}",
        task=request.task.name,
        harness=request.harness,
        policy=request.policy,
        attempt=request.attempt,
        outcome=outcome,
        cause=cause,
        reward=reward if outcome != Outcome.FAILED else None,
        started_at=datetime.now(UTC),
        wall_s=1.0,
        evidence=Evidence(),
    )


async def _rows(session_id: str, logprob: float | None = -0.5) -> RowsAnswer:
    row = TrainingRow(
        session_id=session_id,
        index=0,
        prompt_ids_P=(1,),
        response_ids_R=(2,),
        mask_R=(1,),
        logprobs_R=(logprob,),
        call_ids=("c",),
        purpose=Purpose.MAIN,
        turns=1,
        versions=(VersionRun(version=0, tokens=1),),
        weight=1.0,
    )
    return RowsAnswer(
        rows=(row,), report=MergeReport(session_id=session_id, calls=1, rows=1, sampled_tokens=1, trained_tokens=1)
    )


async def _play(config: RlConfig, outcomes: dict[str, tuple], fetch=_rows):
    """Run one step; ``outcomes``: last part of the rollout id → outcome, cause, reward (completed with 1.0 when absent)."""
    queue, sink = RolloutQueue(time.monotonic), Sink()
    driver = GroupDriver(config, "rl", queue, fetch, sink)
    driver.start(1, [Prompt("u", Path("/t/write"), 0)])
    facts = asyncio.create_task(driver.facts(1))
    asked = []
    while not facts.done():
        leases = await queue.lease(LeaseAsk(holder="h", n=8, lease_s=60.0, wait_s=0.05))
        for request in leases.requests:
            asked.append(request.rollout_id)
            outcome = outcomes.get(request.rollout_id.rpartition("-")[2], (Outcome.COMPLETED, None, 1.0))
            if outcome[0] is not None:
                queue.finish(_result(request, *outcome))
    await driver.aclose()
    return await facts, sink, asked


async def test_a_failed_rollout_leaves_its_group():
    told, sink, asked = await _play(_config(), {"g1": (Outcome.FAILED, Cause.SANDBOX, None)})
    assert asked == ["rl-s1-p0-g0", "rl-s1-p0-g1", "rl-s1-p0-g2"]
    assert sorted(sink.keys) == ["u_0_0", "u_2_0"]
    assert sink.ended == {"u": True}
    assert [f.detail for f in told.facts if not f.rows] == ["failed: sandbox"]
    assert told.faults == ()


async def test_a_failed_rollout_is_replaced_when_refills_are_allowed():
    failed = (Outcome.FAILED, Cause.SANDBOX, None)
    told, sink, asked = await _play(_config(refill=1), {"g1": failed, "g0": failed})
    assert asked[3:] == ["rl-s1-p0-g3"]
    assert sorted(sink.keys) == ["u_2_0", "u_3_0"]
    assert len(told.facts) == 4


@pytest.mark.parametrize(("policy", "keys"), [("discard", ["u_0_0", "u_2_0"]), ("grade", ["u_0_0", "u_1_0", "u_2_0"])])
async def test_truncated_rollouts_count_only_when_graded(policy, keys):
    _, sink, _ = await _play(_config(truncated=policy), {"g1": (Outcome.TRUNCATED, Cause.TURNS, 0.0)})
    assert sorted(sink.keys) == keys


async def test_a_group_without_a_usable_rollout_still_ends():
    failed = (Outcome.FAILED, Cause.UPSTREAM, None)
    told, sink, _ = await _play(_config(), {"g0": failed, "g1": failed, "g2": failed})
    assert (sink.keys, sink.ended) == ([], {"u": False})
    assert {f.cause for f in told.facts} == {Cause.UPSTREAM}


async def test_rollouts_without_a_result_in_time_count_as_failed():
    told, sink, _ = await _play(_config(step_timeout_s=0.3), {"g2": (None,)})
    assert sorted(sink.keys) == ["u_0_0", "u_1_0"]
    assert [f.detail for f in told.facts if not f.rows] == ["no result within step_timeout_s = 0.3 s"]


async def test_a_trained_token_without_logprob_is_a_violation_and_not_trained():
    told, sink, _ = await _play(_config(), {}, fetch=lambda s: _rows(s, None if s.endswith("g1") else -0.5))
    assert sorted(sink.keys) == ["u_0_0", "u_2_0"]
    assert [f.violations for f in told.facts if not f.rows] == [("I2",)]


async def test_our_own_failure_ends_the_group_and_is_told():
    async def broken(_: str) -> RowsAnswer:
        raise OSError("disk full")

    told, sink, _ = await _play(_config(), {}, fetch=broken)
    assert sink.ended == {"u": False}
    assert told.faults == ("task 'write': OSError: disk full",)
