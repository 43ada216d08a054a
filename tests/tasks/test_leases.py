"""The trainer's queue cut into steps, against a real proxy with a real queue; the training process is a small fake."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from made_results import result_of

from contracts.errors import TrainerError
from contracts.rollout import RolloutRequest
from contracts.wire import LeaseAsk
from proxy.client import ProxyClient
from proxy.config import ProxyConfig
from proxy.server import ProxyServer
from tasks.leases import StepFeed, step_feed
from tasks.train import Training


class Process:
    """Ends when told, well or badly."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.error: TrainerError | None = None

    async def wait(self, timeout_s: float | None = None) -> None:
        await asyncio.wait_for(self.ended.wait(), timeout_s)
        if self.error is not None:
            raise self.error


@asynccontextmanager
async def feeding(tmp_path: Path) -> AsyncIterator[tuple[ProxyServer, Process, StepFeed]]:
    async with (
        ProxyServer(ProxyConfig(log=tmp_path / "calls.sqlite", engines={}), {}) as server,
        ProxyClient(server.url, server.admin_secret) as client,
    ):
        process = Process()
        async with step_feed(Training(cast(Any, process), client), "flow", 8) as feed:
            yield server, process, feed


def wanted(step: int, number: int) -> RolloutRequest:
    return RolloutRequest(
        rollout_id=f"s{step}-{number}",
        run_id="run",
        task=Path("/task"),
        harness="react",
        policy="policy",
        group_id="g",
        step=step,
    )


async def test_requests_are_cut_at_step_boundaries_and_late_ones_join_their_step(tmp_path: Path):
    async with feeding(tmp_path) as (server, process, feed):
        server.queue.enqueue([wanted(1, 0), wanted(1, 1)])
        assert await feed.next_step() == 1
        first = feed.of_step(1)
        assert (await anext(first)).rollout_id == "s1-0"
        assert (await anext(first)).rollout_id == "s1-1"

        server.queue.enqueue([wanted(1, 2)])
        assert (await anext(first)).rollout_id == "s1-2"
        server.queue.enqueue([wanted(2, 0)])
        assert [r async for r in first] == []

        assert await feed.next_step() == 2
        assert (await anext(feed.of_step(2))).rollout_id == "s2-0"
        process.ended.set()


async def test_a_finished_rollout_reaches_who_asked_for_it(tmp_path: Path):
    async with feeding(tmp_path) as (server, process, feed):
        server.queue.enqueue([wanted(1, 0)])
        request = await anext(feed.of_step(1))

        await feed.finish(result_of(request, reward=1.0))

        assert (await server.queue.result("s1-0")).result.reward == 1.0
        process.ended.set()


async def test_a_closed_queue_and_a_trainer_that_ended_well_end_the_feed(tmp_path: Path):
    async with feeding(tmp_path) as (server, process, feed):
        server.queue.close()
        process.ended.set()
        assert await feed.next_step() is None


async def test_a_trainer_that_failed_ends_the_feed_with_its_error(tmp_path: Path):
    async with feeding(tmp_path) as (server, process, feed):
        process.error = TrainerError("the training process ended with exit code 1.")
        server.queue.enqueue([wanted(1, 0)])
        step = feed.of_step(1)
        await anext(step)
        server.queue.close()
        await feed.finish(result_of(wanted(1, 0), reward=0.0))
        process.ended.set()

        with pytest.raises(TrainerError, match="exit code 1"):
            await anext(step)


async def test_what_we_hold_is_not_handed_to_anybody_else(tmp_path: Path):
    async with feeding(tmp_path) as (server, process, feed):
        server.queue.enqueue([wanted(1, 0)])
        await anext(feed.of_step(1))
        async with ProxyClient(server.url, server.admin_secret) as other:
            leases = await other.lease(LeaseAsk(holder="other", n=8, lease_s=60, wait_s=0))
        assert leases.requests == ()
        process.ended.set()
