"""Many rollouts at once: one Prefect task run each, under one semaphore of this process."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime

from contracts.rollout import RolloutRequest, RolloutResult, lost
from tasks.rollout import longest_s, run_rollout
from tasks.site import Site

TIMED_OUT = "TimedOut"
"""Prefect's name for the state of a task run that took too long."""
OnResult = Callable[[RolloutResult], Awaitable[None]]


async def roll_out(requests: Sequence[RolloutRequest], site: Site, on_result: OnResult) -> None:
    """Run all requests, ``site.max_parallel`` at a time, and hand over each result as soon as it is there.

    Raises:
        ConfigError: a request names something that cannot be used; the other rollouts are ended first.
    """
    await roll_out_stream(_as_they_are(requests), site, on_result)


async def roll_out_stream(requests: AsyncIterator[RolloutRequest], site: Site, on_result: OnResult) -> None:
    """The same for requests that come one by one; ends when the last result has been handed over. Raises as `roll_out` does."""
    gate = asyncio.Semaphore(site.max_parallel)
    try:
        # The group ends all rollouts, sandboxes included, when one of them or the stream itself raises.
        async with asyncio.TaskGroup() as group:
            async for request in requests:
                group.create_task(_one(request, site, gate, on_result))
    except BaseExceptionGroup as e:
        raise e.exceptions[0] from e


async def _as_they_are(requests: Sequence[RolloutRequest]) -> AsyncIterator[RolloutRequest]:
    for request in requests:
        yield request


async def _one(request: RolloutRequest, site: Site, gate: asyncio.Semaphore, on_result: OnResult) -> None:
    async with gate:
        result = await _run(request, site)
    await on_result(result)


async def _run(request: RolloutRequest, site: Site) -> RolloutResult:
    start = time.monotonic()
    timed = run_rollout.with_options(timeout_seconds=longest_s(request, site))
    state = await timed(request, site, return_state=True)  # pyright: ignore[reportGeneralTypeIssues]
    if state.name == TIMED_OUT:
        why = f"its task run ended {state.name}: {state.message}"
        return lost(request, why, ended_at=datetime.now(UTC), wall_s=time.monotonic() - start)
    return await state.aresult()
