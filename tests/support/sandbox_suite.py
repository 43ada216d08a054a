"""What every sandbox back end must do. A test module of one back end imports the tests and gives two fixtures: `sandbox`, and `proxy`
(a fake proxy that the sandbox can reach)."""

import asyncio

import pytest
from attempts import LIMITS, attempt, session_body, spec_of
from fake_proxy import FakeProxy

from contracts.errors import SandboxError
from sandboxes.protocol import Sandbox

WAIT_S = 20


async def test_a_finished_attempt_leaves_exit_code_0_and_its_result_at_the_proxy(sandbox: Sandbox, proxy: FakeProxy):
    body = session_body(agent="cat greeting.txt > out.txt", files={"greeting.txt": "hello"}, test_sh="""
        if [ "$(cat out.txt)" = hello ]; then echo 0.75; else echo 0; fi > "$OPENFORGE_REWARD_DIR/reward.txt"
    """)  # fmt: skip
    done = await attempt(sandbox, proxy, body)
    assert (done.exit.exit_code, done.exit.cause) == (0, None)
    assert (done.result.agent_started, done.result.evidence.agent_exit_code) == (True, 0)
    assert (done.result.reward, done.result.reward_error, done.result.error) == (0.75, None, None)


async def test_attempts_run_side_by_side_and_do_not_see_each_other(sandbox: Sandbox, proxy: FakeProxy):
    bodies = [session_body(agent=f"echo {i} > mine; ls", rollout_id=f"r{i}") for i in range(4)]
    done = await asyncio.gather(*(attempt(sandbox, proxy, body) for body in bodies))
    assert [d.agent_log for d in done] == ["mine\n"] * 4
    assert [(d.result.reward, d.result.reward_error, d.result.error) for d in done] == [(1.0, None, None)] * 4


async def test_stop_ends_a_running_agent_and_is_harmless_a_second_time(sandbox: Sandbox, proxy: FakeProxy):
    session = proxy.add(session_body(agent="sleep 1000"))
    handle = await sandbox.start(spec_of(session, proxy))
    assert await asyncio.to_thread(session.work_given.wait, WAIT_S)
    await sandbox.stop(handle)
    await sandbox.stop(handle)
    assert session.result is None
    assert await sandbox.sweep(session.body.request.run_id) == []


async def test_waiting_ends_when_the_sandbox_is_stopped(sandbox: Sandbox, proxy: FakeProxy):
    session = proxy.add(session_body(agent="sleep 1000"))
    handle = await sandbox.start(spec_of(session, proxy))
    waiting = asyncio.create_task(sandbox.wait(handle))
    assert await asyncio.to_thread(session.work_given.wait, WAIT_S)
    await sandbox.stop(handle)
    assert (await asyncio.wait_for(waiting, WAIT_S)).exit_code != 0


async def test_sweep_of_a_run_removes_that_run_only(sandbox: Sandbox, proxy: FakeProxy):
    sessions = [proxy.add(session_body(agent="sleep 1000", run_id=run_id)) for run_id in ("one", "two")]
    first, second = [await sandbox.start(spec_of(session, proxy)) for session in sessions]
    assert await sandbox.sweep("one") == [first.sandbox_id]
    assert await sandbox.sweep("one") == []
    assert await sandbox.sweep("two") == [second.sandbox_id]


async def test_sweep_of_dead_owners_leaves_a_living_owners_sandbox_alone(sandbox: Sandbox, proxy: FakeProxy):
    session = proxy.add(session_body(agent="sleep 1000"))
    handle = await sandbox.start(spec_of(session, proxy))
    assert await sandbox.sweep(None) == []
    await sandbox.stop(handle)


async def test_the_same_rollout_can_be_started_again_after_it_ended(sandbox: Sandbox, proxy: FakeProxy):
    for _ in range(2):
        done = await attempt(sandbox, proxy, session_body())
        assert done.result.reward == 1.0


async def test_the_same_rollout_is_not_started_twice_at_a_time(sandbox: Sandbox, proxy: FakeProxy):
    session = proxy.add(session_body(agent="sleep 1000"))
    handle = await sandbox.start(spec_of(session, proxy))
    with pytest.raises(SandboxError, match="already runs"):
        await sandbox.start(spec_of(session, proxy))
    await sandbox.stop(handle)


async def test_a_wrong_secret_gives_no_result_and_the_log_says_why(sandbox: Sandbox, proxy: FakeProxy):
    session = proxy.add(session_body())
    handle = await sandbox.start(spec_of(session, proxy).model_copy(update={"runner_secret": "wrong"}))
    ended = await sandbox.wait(handle)
    assert ended.exit_code == 76
    assert "status 401" in (await sandbox.logs(handle)).text
    assert "status 401" in ended.log.text
    await sandbox.stop(handle)


async def test_the_wall_clock_ends_the_agent_and_the_attempt_is_still_graded(sandbox: Sandbox, proxy: FakeProxy):
    limits = LIMITS.model_copy(update={"wall_clock_s": 0.3})
    done = await attempt(sandbox, proxy, session_body(agent="sleep 1000", limits=limits))
    assert (done.result.timed_out, done.result.evidence.agent_exit_code) == (True, None)
    assert done.result.evidence.detail == "killed after 0.3 s of wall clock"
    assert done.result.reward == 1.0
