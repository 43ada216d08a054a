"""Whole attempts: task directory in, result out, through the runner, a harness and a real proxy in this process."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from attempts import LIMITS

from contracts.call import Sampling
from contracts.errors import ConfigError, EngineError, TaskError
from contracts.rollout import Cause, Limits, Outcome, RolloutRequest, RolloutResult
from contracts.task import TaskSpec, write_task
from proxy.client import ProxyClient
from proxy.config import ProxyConfig, ScriptedEngine
from proxy.engine import Reply
from proxy.engines.scripted import ScriptedMessageEngine
from proxy.server import ProxyServer
from rollout.harness import default_images
from rollout.requests import open_session_body
from rollout.retry import run_with_retries
from rollout.run import run_rollout
from sandboxes.local import LocalProcesses

TEST_SH = """#!/bin/bash
if [ "$(cat ralo.txt)" = bibu ]; then echo 1; else echo 0; fi > "$OPENFORGE_REWARD_DIR/reward.txt"
"""


class Oracle(ScriptedMessageEngine):
    """The scripted engine, which fails the first ``failures`` times and says when it was first asked."""

    def __init__(self) -> None:
        super().__init__(ScriptedEngine())
        self.failures = 0
        self.asked = asyncio.Event()

    async def reply(
        self, script: Sequence[str] | None, messages: Sequence[dict[str, Any]],
        tools: Sequence[dict[str, Any]] | None, sampling: Sampling,
    ) -> Reply:  # fmt: skip
        self.asked.set()
        if self.failures:
            self.failures -= 1
            raise EngineError("the engine is away")
        return await super().reply(script, messages, tools, sampling)


@dataclass
class World:
    """A proxy, its engine, a sandbox, and where tasks and harnesses lie."""

    proxy: ProxyClient
    server: ProxyServer
    oracle: Oracle
    sandbox: LocalProcesses
    tmp_path: Path
    images: Path

    def task(
        self, test_sh: str = TEST_SH, solve_sh: str = "echo bibu > ralo.txt\ncat ralo.txt\n", **more: Any
    ) -> TaskSpec:
        times = {"agent_timeout_s": 20, "verifier_timeout_s": 20, **more}
        return write_task(
            self.tmp_path / "write-1", instruction="Write the word bibu to the file ralo.txt", files={},
            dockerfile="FROM debian:12-slim\n", test_sh=test_sh, solve_sh=f"#!/bin/bash\nset -e\n{solve_sh}", metadata={}, **times,
        )  # fmt: skip

    def request(self, task: TaskSpec, harness: str = "react", policy: str = "oracle", **limits: Any) -> RolloutRequest:
        return RolloutRequest(
            rollout_id="r1", run_id="run", task=task.path, harness=harness, policy=policy, group_id="g",
            limits=Limits(**{**LIMITS.model_dump(), **limits}),
        )  # fmt: skip

    def harness(self, name: str, script: str) -> None:
        """Add a harness that is a shell script; $1 is the model's base URL, $2 its key."""
        (self.images / name).mkdir(parents=True)
        (self.images / name / "harness.toml").write_text(
            f'name = "{name}"\ndescription = "d"\nargv = ["/bin/bash", "{{harness_dir}}/run.sh", "{{base_url}}", "{{api_key}}"]\n'
            'payload = ["run.sh"]\n'
        )
        (self.images / name / "run.sh").write_text(script)

    async def run(self, request: RolloutRequest, **more: Any) -> RolloutResult:
        images = self.images if (self.images / request.harness).is_dir() else default_images()
        return await run_rollout(request, proxy=self.proxy, sandbox=self.sandbox, images=images, **more)


@pytest.fixture
async def world(sandbox: LocalProcesses, tmp_path: Path) -> AsyncIterator[World]:
    oracle = Oracle()
    async with (
        ProxyServer(ProxyConfig(log=tmp_path / "calls.sqlite", engines={}), {"oracle": oracle}) as server,
        ProxyClient(server.url, server.admin_secret) as proxy,
    ):
        yield World(proxy, server, oracle, sandbox, tmp_path, tmp_path / "images")


async def test_the_reference_solution_through_the_react_harness_scores_1(world: World):
    result = await world.run(world.request(world.task()))
    assert (result.outcome, result.cause, result.reward) == (Outcome.COMPLETED, None, 1.0), result
    assert (result.calls, result.task, result.evidence.agent_exit_code) == (3, "write-1", 0)
    assert result.session_id is not None
    assert (await world.proxy.session(result.session_id)).sealed
    calls = world.server.log.calls(result.session_id)
    assert [m["content"] for call in calls for m in call.messages if m["role"] == "tool"] == [
        "[exit code 0]",
        "bibu\n[exit code 0]",
    ]
    assert [call.parent_rule for call in calls] == ["root", "minted_id", "minted_id"]


async def test_doing_nothing_scores_0_and_is_graded(world: World):
    result = await world.run(world.request(world.task(), "nop"))
    assert (result.outcome, result.reward, result.calls) == (Outcome.COMPLETED, 0.0, 0)


@pytest.mark.parametrize("word", ["", "nan", "ok", "2"])
async def test_a_verifier_without_a_number_is_a_task_failure_not_reward_0(world: World, word: str):
    result = await world.run(world.request(world.task(test_sh=f'echo {word} > "$OPENFORGE_REWARD_DIR/reward.txt"')))
    assert (result.outcome, result.cause, result.reward) == (Outcome.FAILED, Cause.TASK, None)
    assert result.evidence.detail is not None
    assert result.evidence.detail.startswith("reward.txt ")


async def test_more_calls_than_turns_is_truncated_and_graded_only_on_demand(world: World):
    request = world.request(world.task(), turns=1)
    result = await world.run(request)
    assert (result.outcome, result.cause, result.reward, result.calls) == (Outcome.TRUNCATED, Cause.TURNS, None, 1)
    result = await world.run(request, truncated="grade")
    assert (result.outcome, result.cause, result.reward) == (Outcome.TRUNCATED, Cause.TURNS, 1.0)


async def test_running_out_of_time_is_truncated(world: World):
    task = world.task(solve_sh="sleep 1000\n", agent_timeout_s=1.5)
    result = await world.run(world.request(task))
    assert (result.outcome, result.cause, result.reward) == (Outcome.TRUNCATED, Cause.WALL_CLOCK, None)
    assert result.evidence.detail == "killed after 1.5 s of wall clock"


async def test_a_harness_that_crashes_before_its_first_call_is_the_harnesss_failure(world: World):
    world.harness("crashing", "echo no such option >&2; exit 2")
    result = await world.run(world.request(world.task(), "crashing"))
    assert (result.outcome, result.cause, result.reward) == (Outcome.FAILED, Cause.HARNESS, None)
    assert result.evidence.detail == "no model call; exit code 2"
    assert result.evidence.agent_log is not None
    assert result.evidence.agent_log.text == "no such option\n"


async def test_the_model_secret_posts_no_result_and_fetches_no_verifier(world: World):
    world.harness(
        "forging",
        """exec 2>&1; host=${1#http://}; host=${host%%/*}
        for route in result agent-dead heartbeat work; do
            exec 3<> "/dev/tcp/${host%:*}/${host#*:}"
            body='{"evidence": {}, "agent_started": true, "reward": 1.0}'
            printf 'POST /runner/%s HTTP/1.0\\r\\nAuthorization: Bearer %s\\r\\nContent-Length: %d\\r\\n\\r\\n%s' "$route" "$2" "${#body}" "$body" >&3
            head -1 <&3
        done""",
    )
    result = await world.run(world.request(world.task(), "forging"))
    assert result.evidence.agent_log is not None
    assert [line.split()[1] for line in result.evidence.agent_log.text.splitlines()] == ["401", "401", "401", "405"]
    assert (result.outcome, result.reward) == (Outcome.COMPLETED, 0.0)


async def test_the_shorter_of_two_time_limits_applies(world: World):
    task = world.task(agent_timeout_s=0.5)
    _, body = open_session_body(world.request(task), default_images())
    assert (body.request.limits.wall_clock_s, body.request.limits.verifier_s) == (0.5, 20.0)
    assert body.script == ("echo bibu > ralo.txt", "cat ralo.txt")


async def test_a_bad_request_is_an_error_before_anything_is_started(world: World):
    task = world.task()
    with pytest.raises(ConfigError, match="harness 'zork' does not exist"):
        await world.run(world.request(task, "zork"))
    with pytest.raises(ConfigError, match="policy 'zork' has no engine"):
        await world.run(world.request(task, policy="zork"))
    (task.tests_dir / "test.sh").unlink()
    with pytest.raises(TaskError, match="has no verifier"):
        await world.run(world.request(task))


async def test_a_proxy_that_is_not_there_is_our_failure(world: World):
    async with ProxyClient("http://127.0.0.1:9", "secret") as gone:
        request = world.request(world.task())
        result = await run_rollout(request, proxy=gone, sandbox=world.sandbox, images=default_images())
    assert (result.outcome, result.cause, result.session_id, result.reward) == (Outcome.FAILED, Cause.OURS, None, None)
    assert (result.evidence.detail or "").startswith("ProxyUnreachable: no answer from the proxy at http://127.0.0.1:9")


async def test_a_sandbox_that_is_swept_meanwhile_is_our_failure(world: World):
    running = asyncio.create_task(world.run(world.request(world.task(solve_sh="sleep 1000\n"))))
    await asyncio.wait_for(world.oracle.asked.wait(), 20)
    assert len(await world.sandbox.sweep("run")) == 1
    result = await running
    assert (result.outcome, result.cause, result.reward) == (Outcome.FAILED, Cause.OURS, None)
    assert result.session_id is not None
    assert (await world.proxy.session(result.session_id)).sealed


async def test_cancelling_an_attempt_leaves_no_sandbox_and_seals_the_session(world: World):
    running = asyncio.create_task(world.run(world.request(world.task(solve_sh="sleep 1000\n"))))
    await asyncio.wait_for(world.oracle.asked.wait(), 20)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert world.server.sessions.open_count == 0
    assert await world.sandbox.sweep("run") == []


async def test_a_task_failure_is_not_tried_again(world: World):
    request = world.request(world.task(test_sh="true"))
    result = await run_with_retries(request, proxy=world.proxy, sandbox=world.sandbox, images=default_images())
    assert (result.cause, result.attempt) == (Cause.TASK, 1)


@pytest.mark.slow
async def test_a_failing_engine_is_an_upstream_failure_and_is_tried_again(world: World):
    world.oracle.failures = 6  # as many as the agent's tries of one call
    request = world.request(world.task())
    result = await world.run(request)
    assert (result.outcome, result.cause, result.reward) == (Outcome.FAILED, Cause.UPSTREAM, None)
    world.oracle.failures = 6
    result = await run_with_retries(request, proxy=world.proxy, sandbox=world.sandbox, images=default_images())
    assert (result.outcome, result.attempt, result.reward) == (Outcome.COMPLETED, 2, 1.0)
