"""Limits on the agent, and what the result says about them."""

import asyncio
import os

import pytest
from attempts import LIMITS, SCRIPT_HARNESS, attempt, session_body, spec_of
from fake_proxy import FakeProxy

from contracts.rollout import Limits
from sandboxes.config import LocalSandbox
from sandboxes.local import LocalProcesses

HOLD_60_MIB = "(head -c 62914560 /dev/zero | tail -c 62914560 | sleep 1000) &"
"""`tail` keeps what it cannot write: sixty MiB, for as long as the sleep."""


def limits(**changed: float) -> Limits:
    return LIMITS.model_copy(update=changed)


async def test_one_process_cannot_get_more_address_space_than_the_limit(sandbox: LocalProcesses, proxy: FakeProxy):
    agent = "head -c 200000000 /dev/zero | tail -c 200000000 | wc -c"
    done = await attempt(sandbox, proxy, session_body(agent=agent, limits=limits(memory_mib=100)))
    assert "memory exhausted" in done.agent_log
    assert (done.result.memory_exceeded, done.result.reward) == (False, 1.0)


async def test_processes_that_together_hold_more_memory_than_the_limit_are_killed(
    sandbox: LocalProcesses, proxy: FakeProxy
):
    agent = HOLD_60_MIB * 3 + "sleep 1000"
    done = await attempt(sandbox, proxy, session_body(agent=agent, limits=limits(memory_mib=100)))
    assert (done.result.memory_exceeded, done.result.timed_out) == (True, False)
    assert done.result.evidence.agent_exit_code is None
    assert "limit 100 MiB" in (done.result.evidence.detail or "")
    assert done.result.reward == 1.0


async def test_more_processes_than_the_limit_are_killed_where_the_user_is_shared(
    config: LocalSandbox, proxy: FakeProxy
):
    same = LocalProcesses(config.model_copy(update={"agent_user": "same"}))
    agent = "for i in 1 2 3 4 5 6 7 8 9; do sleep 1000 & done; wait"
    done = await attempt(same, proxy, session_body(agent=agent, limits=limits(processes=8)))
    assert done.result.evidence.detail == "killed at 10 processes, limit 8"
    assert done.result.evidence.agent_exit_code is None


async def test_only_the_end_of_a_long_output_is_kept_and_the_rest_is_counted(sandbox: LocalProcesses, proxy: FakeProxy):
    agent = "head -c 3000000 /dev/zero | tr '\\0' a; echo end"
    done = await attempt(sandbox, proxy, session_body(agent=agent, limits=limits(output_kib=64)))
    log = done.result.evidence.agent_log
    assert log is not None
    assert log.text == "a" * (65536 - 4) + "end\n"
    assert log.dropped_bytes == 3_000_004 - 65536


async def test_a_file_cannot_grow_beyond_64_times_the_kept_output(sandbox: LocalProcesses, proxy: FakeProxy):
    agent = "head -c 100000 /dev/zero > big; stat -c %s big"
    done = await attempt(sandbox, proxy, session_body(agent=agent, limits=limits(output_kib=1)))
    assert done.agent_log.endswith("65536\n")


async def test_the_agents_environment_is_clean_and_its_input_empty(sandbox: LocalProcesses, proxy: FakeProxy):
    done = await attempt(sandbox, proxy, session_body(agent="cat; env | cut -d= -f1 | sort | tr '\\n' ' '; umask"))
    assert done.agent_log == "HOME LANG OPENFORGE_SANDBOX PATH PWD SHLVL TERM TMPDIR _ 0022\n"


async def test_placeholders_are_filled_once(sandbox: LocalProcesses, proxy: FakeProxy):
    harness = SCRIPT_HARNESS.model_copy(
        update={
            "argv": ("/bin/bash", "-c", 'echo "$1|$2|$3|$KEY"; cat ~/.config/x/y; stat -c %a ~/.config/x/y', "-",
                     "{instruction}", "{base_url}", "{model}"),
            "env": {"KEY": "{api_key}"},
            "files": {".config/x/y": "in {workspace}\n"},
        }
    )  # fmt: skip
    done = await attempt(sandbox, proxy, session_body(agent="say {api_key} and {nonsense}", harness=harness))
    first, second, third = done.agent_log.splitlines()
    assert first == f"say {{api_key}} and {{nonsense}}|{proxy.url}/s/s0|policy|model-s0"
    assert second.startswith("in /")
    assert second.endswith("/workspace")
    assert third == "600"


async def test_a_harness_that_cannot_be_started_is_said_to_be_so(sandbox: LocalProcesses, proxy: FakeProxy):
    harness = SCRIPT_HARNESS.model_copy(update={"argv": ("/nowhere/agent",)})
    done = await attempt(sandbox, proxy, session_body(harness=harness))
    assert (done.result.agent_started, done.result.reward, done.result.error) == (False, None, None)
    assert "'/nowhere/agent' could not be started" in (done.result.evidence.detail or "")


async def test_the_agents_exit_code_is_reported_and_the_attempt_graded(sandbox: LocalProcesses, proxy: FakeProxy):
    done = await attempt(sandbox, proxy, session_body(agent="exit 7"))
    assert (done.result.evidence.agent_exit_code, done.result.reward) == (7, 1.0)


async def test_a_bundle_that_is_no_tar_is_the_runners_error(sandbox: LocalProcesses, proxy: FakeProxy):
    body = session_body().model_copy(update={"workspace_tar": "bm8gdGFy"})
    done = await attempt(sandbox, proxy, body)
    assert done.result.error is not None
    assert "not a tar file" in done.result.error
    assert done.result.reward is None


async def test_a_proxy_that_is_away_for_a_while_is_waited_for(sandbox: LocalProcesses, proxy: FakeProxy):
    session = proxy.add(session_body())
    proxy.down = True
    handle = await sandbox.start(spec_of(session, proxy))
    assert await asyncio.to_thread(proxy.turned_away.wait, 20)
    proxy.down = False
    assert (await sandbox.wait(handle)).exit_code == 0
    assert session.result is not None
    assert session.result.reward == 1.0
    await sandbox.stop(handle)


@pytest.mark.slow
async def test_a_heartbeat_answered_with_stop_ends_the_attempt(sandbox: LocalProcesses, proxy: FakeProxy):
    session = proxy.add(session_body(agent="echo alive; sleep 1000"))
    session.stop = True
    handle = await sandbox.start(spec_of(session, proxy))
    ended = await sandbox.wait(handle)
    assert (ended.exit_code, session.result) == (76, None)
    assert session.heartbeats == [{"phase": "agent", "log_tail": "alive\n"}]
    assert "the proxy says stop" in ended.log.text
    await sandbox.stop(handle)


@pytest.mark.skipif(os.geteuid() != 0, reason="as an ordinary user the runner's own Python serves the agent too")
async def test_the_agents_python_is_one_that_its_user_may_run(sandbox: LocalProcesses, proxy: FakeProxy):
    harness = SCRIPT_HARNESS.model_copy(
        update={"argv": ("{python}", "-I", "-S", "-c", "import os; print(os.getuid())")}
    )
    done = await attempt(sandbox, proxy, session_body(harness=harness))
    assert done.result.evidence.agent_exit_code == 0
    assert int(done.agent_log) >= 55000
