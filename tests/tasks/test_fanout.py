"""Rollouts fanned out as Prefect task runs, with a real proxy, real sandboxes and the real ReAct harness."""

import itertools
import time
from pathlib import Path

import pytest
from prefect import flow
from prefect.client.orchestration import get_client

from contracts.errors import ConfigError
from contracts.rollout import Limits, Outcome, RolloutRequest, RolloutResult
from proxy.client import ProxyClient
from proxy.config import ScriptedEngine
from tasks.config import Machine
from tasks.fanout import roll_out
from tasks.proxy import proxy_for
from tasks.site import Site

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("prefect_server"),
    # Prefect leaves connections of its own to the garbage collector when an event loop ends.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]
LIMITS = Limits(wall_clock_s=60, verifier_s=30)
SLEEPER = 'name = "sleeper"\ndescription = "Sleeps."\nargv = ["/bin/sleep", "600"]\n'


def request(task: Path, number: int, harness: str = "react") -> RolloutRequest:
    return RolloutRequest(
        rollout_id=f"r{number}", run_id="run", task=task, harness=harness, policy="oracle", group_id="g", limits=LIMITS
    )


@flow(validate_parameters=False)
async def fan(requests: list[RolloutRequest], site: Site, seen: list[RolloutResult]) -> None:
    async def keep(result: RolloutResult) -> None:
        seen.append(result)

    await roll_out(requests, site, keep)


async def test_each_rollout_is_a_task_run_and_each_result_is_handed_over(make_task, tmp_path: Path):
    task = make_task("a").path
    seen: list[RolloutResult] = []
    async with proxy_for({"oracle": ScriptedEngine()}, tmp_path / "calls.sqlite", tmp_path) as proxy:
        site = Site("run", proxy, Machine(), max_parallel=2)
        state = await fan([request(task, n) for n in range(3)], site, seen, return_state=True)

    assert state.is_completed()
    assert {(r.rollout_id, r.outcome, r.reward, r.calls) for r in seen} == {
        (f"r{n}", Outcome.COMPLETED, 1.0, 2) for n in range(3)
    }


async def test_what_cannot_be_run_fails_the_flow_and_ends_the_other_rollouts(make_task, tmp_path: Path):
    task = make_task("a").path
    images = tmp_path / "images"
    (images / "sleeper").mkdir(parents=True)
    (images / "sleeper" / "harness.toml").write_text(SLEEPER)
    start = time.monotonic()
    async with proxy_for({"oracle": ScriptedEngine()}, tmp_path / "calls.sqlite", tmp_path) as proxy:
        site = Site("run", proxy, Machine(images=images), max_parallel=2)
        state = await fan([request(task, 1, "sleeper"), request(task, 2, "juggler")], site, [], return_state=True)
        error = await state.aresult(raise_on_failure=False)

        assert isinstance(error, ConfigError)
        assert "harness 'juggler' does not exist" in str(error)
        assert await site.sandbox.sweep("run") == []
    assert time.monotonic() - start < LIMITS.wall_clock_s


async def test_a_proxy_that_is_gone_is_a_failed_rollout_and_not_reward_0(make_task, tmp_path: Path):
    seen: list[RolloutResult] = []
    async with proxy_for({"oracle": ScriptedEngine()}, tmp_path / "calls.sqlite", tmp_path) as proxy:
        address = proxy.url
    async with ProxyClient(address, "secret") as nobody:
        site = Site("run", nobody, Machine(), max_parallel=2)
        state = await fan([request(make_task("a").path, 1)], site, seen, return_state=True)

    assert state.is_completed()
    assert [(r.outcome, r.cause, r.reward) for r in seen] == [(Outcome.FAILED, "ours", None)]


async def test_prefect_stores_no_secret_of_the_proxy(make_task, tmp_path: Path):
    async with proxy_for({"oracle": ScriptedEngine()}, tmp_path / "calls.sqlite", tmp_path) as proxy:
        site = Site("run", proxy, Machine(), max_parallel=2)
        state = await fan([], site, [], return_state=True)
    async with get_client() as client:
        run = await client.read_flow_run(state.state_details.flow_run_id)
    assert run.parameters["site"] == "<Site>"


async def test_at_most_max_parallel_run_at_a_time(make_task, tmp_path: Path):
    task, seen = make_task("a").path, []
    async with proxy_for({"oracle": ScriptedEngine()}, tmp_path / "calls.sqlite", tmp_path) as proxy:
        await fan([request(task, n) for n in range(6)], Site("run", proxy, Machine(), max_parallel=2), seen)
    begins = [(r.started_at.timestamp(), 1) for r in seen]
    ends = [(r.started_at.timestamp() + r.wall_s, -1) for r in seen]
    running = list(itertools.accumulate(change for _, change in sorted(begins + ends)))
    assert max(running) == 2
