"""The rollout queue, with a clock that the test moves."""

from pathlib import Path

import pytest

from contracts.errors import ConfigError
from contracts.rollout import Cause, Outcome, RolloutRequest, RolloutResult
from contracts.wire import LeaseAsk, LeaseRenew
from proxy.queue import MAX_ATTEMPTS, RolloutQueue


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def request(rollout_id: str, attempt: int = 1) -> RolloutRequest:
    return RolloutRequest(
        rollout_id=rollout_id,
        run_id="run",
        task=Path("/t"),
        harness="react",
        policy="policy",
        group_id="g",
        attempt=attempt,
    )


def result(rollout_id: str, attempt: int = 1) -> RolloutResult:
    return RolloutResult(
        rollout_id=rollout_id, group_id="g", session_id="s", task="t", harness="react", policy="policy", attempt=attempt,
        outcome=Outcome.COMPLETED, reward=1.0, started_at="2026-01-01T00:00:00Z", wall_s=1.0,  # pyright: ignore
    )  # fmt: skip


def ask(holder: str = "h", n: int = 8) -> LeaseAsk:
    return LeaseAsk(holder=holder, n=n, lease_s=10, wait_s=0)


async def test_requests_are_leased_once_in_order_and_the_result_reaches_who_enqueued_them() -> None:
    queue = RolloutQueue(Clock())
    queue.enqueue([request("a"), request("b"), request("c")])
    assert [r.rollout_id for r in (await queue.lease(ask(n=2))).requests] == ["a", "b"]
    assert [r.rollout_id for r in (await queue.lease(ask())).requests] == ["c"]
    assert (await queue.lease(ask())).requests == ()
    assert queue.finish(result("b"))
    assert (await queue.result("b")).result.reward == 1.0


async def test_an_expired_lease_is_handed_out_again_as_a_further_attempt() -> None:
    clock = Clock()
    queue = RolloutQueue(clock)
    queue.enqueue([request("a")])
    await queue.lease(ask("dead"))
    clock.now_s = 9.9
    assert (await queue.lease(ask("b"))).requests == ()
    clock.now_s = 10.0
    assert [(r.rollout_id, r.attempt) for r in (await queue.lease(ask("b"))).requests] == [("a", 2)]


async def test_a_late_result_of_an_earlier_attempt_is_ignored() -> None:
    clock = Clock()
    queue = RolloutQueue(clock)
    queue.enqueue([request("a")])
    await queue.lease(ask("slow"))
    clock.now_s = 11
    await queue.lease(ask("b"))
    assert not queue.finish(result("a", attempt=1))
    assert queue.finish(result("a", attempt=2))
    assert not queue.finish(result("a", attempt=2))
    assert (await queue.result("a")).result.attempt == 2


async def test_a_renewed_lease_does_not_expire_and_only_its_holder_can_renew_it() -> None:
    clock = Clock()
    queue = RolloutQueue(clock)
    queue.enqueue([request("a")])
    await queue.lease(ask("h"))
    clock.now_s = 8
    queue.renew(LeaseRenew(holder="thief", rollout_ids=("a",), lease_s=100))
    queue.renew(LeaseRenew(holder="h", rollout_ids=("a", "unknown"), lease_s=10))
    clock.now_s = 17.9
    assert (await queue.lease(ask("b"))).requests == ()
    clock.now_s = 18.1
    assert len((await queue.lease(ask("b"))).requests) == 1


async def test_a_rollout_whose_holders_keep_dying_fails_as_ours_and_not_with_reward_zero() -> None:
    clock = Clock()
    queue = RolloutQueue(clock)
    queue.enqueue([request("a")])
    for attempt in range(1, MAX_ATTEMPTS + 1):
        assert [r.attempt for r in (await queue.lease(ask())).requests] == [attempt]
        clock.now_s += 11
    assert (await queue.lease(ask())).requests == ()
    lost = (await queue.result("a")).result
    assert (lost.outcome, lost.cause, lost.reward) == (Outcome.FAILED, Cause.OURS, None)


async def test_a_closed_queue_says_so_only_when_nothing_is_left_to_do() -> None:
    queue = RolloutQueue(Clock())
    queue.enqueue([request("a")])
    queue.close()
    first = await queue.lease(ask())
    assert (len(first.requests), first.closed) == (1, False)
    queue.finish(result("a"))
    assert (await queue.lease(ask())).closed


async def test_an_id_that_is_in_the_queue_and_a_closed_queue_are_refused() -> None:
    queue = RolloutQueue(Clock())
    queue.enqueue([request("a")])
    with pytest.raises(ConfigError, match="'a' is in the queue already"):
        queue.enqueue([request("a")])
    queue.close()
    with pytest.raises(ConfigError, match="closed"):
        queue.enqueue([request("b")])
