"""The local back end: the contract suite, and what only processes of this machine can show."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from attempts import LIMITS, attempt, session_body, spec_of
from fake_proxy import FakeProxy
from sandbox_suite import *  # noqa: F403

from contracts.errors import ConfigError, SandboxError
from contracts.rollout import Cause
from sandboxes import processes
from sandboxes.config import LocalSandbox
from sandboxes.local import LocalProcesses
from sandboxes.protocol import SandboxSpec
from sandboxes.register import Register

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 20
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="user numbers are lent only to root")

ORPHAN = """
(setsid bash -c 'echo $$ > {pid_file}; exec sleep 1000' &) &
while [ ! -s {pid_file} ]; do sleep 0.01; done
echo started
"""
"""An agent that leaves a process in a session of its own, whose parent has ended."""

OWNER = """
import asyncio, sys
from pathlib import Path
from sandboxes.config import LocalSandbox
from sandboxes.local import LocalProcesses
from sandboxes.protocol import SandboxSpec

async def main():
    sandbox = LocalProcesses(LocalSandbox.model_validate_json(sys.argv[1]))
    handle = await sandbox.start(SandboxSpec.model_validate_json(sys.argv[2]))
    print(handle.sandbox_id, flush=True)
    print((await sandbox.wait(handle)).model_dump_json(), flush=True)
    if sys.argv[3] == "stop":
        await sandbox.stop(handle)

asyncio.run(main())
"""
"""A flow process with one sandbox."""


def start_owner(config: LocalSandbox, spec: SandboxSpec, end: str = "leave") -> subprocess.Popen[str]:
    """Run OWNER in a process of its own and wait until its sandbox is started."""
    full_spec = json.dumps({**spec.model_dump(mode="json"), "runner_secret": spec.runner_secret})
    argv = [sys.executable, "-c", OWNER, config.model_dump_json(), full_spec, end]
    owner = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert owner.stdout is not None
    assert owner.stdout.readline().strip(), "the owner did not start its sandbox"
    return owner


async def written_pid(path: Path) -> processes.ProcessId:
    """The process whose pid an agent writes to ``path``."""
    async with asyncio.timeout(WAIT_S):
        while not path.exists() or not path.read_text().strip():
            await asyncio.sleep(0.02)
    found = processes.identify(int(path.read_text()))
    assert found is not None
    return found


async def is_gone(process: processes.ProcessId) -> bool:
    """Whether the process ends within the time of a test."""
    async with asyncio.timeout(WAIT_S):
        while processes.is_alive(process):
            await asyncio.sleep(0.02)
    return True


async def test_nothing_is_left_on_disk_after_a_stop(sandbox: LocalProcesses, proxy: FakeProxy, config: LocalSandbox):
    await attempt(sandbox, proxy, session_body(agent="mkdir -p d/e; touch d/e/f; chmod 000 d/e d"))
    assert config.state_dir is not None
    assert [p.name for p in config.state_dir.rglob("*")] == ["register"]


async def test_the_runner_secret_is_in_no_command_line_no_environment_and_no_file(
    sandbox: LocalProcesses, proxy: FakeProxy, config: LocalSandbox
):
    session = proxy.add(session_body(agent="sleep 1000"))
    handle = await sandbox.start(spec_of(session, proxy))
    assert await asyncio.to_thread(session.work_given.wait, WAIT_S)
    assert config.state_dir is not None
    [entry] = Register(config.state_dir).entries("run")
    assert entry.runner is not None
    proc = Path("/proc", str(entry.runner.pid))
    seen = [(proc / "cmdline").read_bytes(), (proc / "environ").read_bytes() if os.geteuid() == 0 else b""]
    seen += [p.read_bytes() for p in config.state_dir.rglob("*") if p.is_file()]
    assert len(seen) >= 3
    assert not any(session.runner_secret.encode() in text for text in seen)
    await sandbox.stop(handle)


async def test_a_killed_runner_is_a_sandbox_failure_and_its_agents_die_with_the_stop(
    sandbox: LocalProcesses, proxy: FakeProxy, config: LocalSandbox, open_dir: Path
):
    pid_file = open_dir / "pid"
    session = proxy.add(session_body(agent=ORPHAN.format(pid_file=pid_file) + "sleep 1000"))
    handle = await sandbox.start(spec_of(session, proxy))
    orphan = await written_pid(pid_file)
    assert config.state_dir is not None
    [entry] = Register(config.state_dir).entries("run")
    assert entry.runner is not None
    assert processes.send(entry.runner, signal.SIGKILL)
    ended = await sandbox.wait(handle)
    assert (ended.exit_code, ended.cause, ended.detail) == (-9, Cause.SANDBOX, "the runner was killed by signal 9")
    await sandbox.stop(handle)
    assert not processes.is_alive(orphan)


async def test_a_runner_past_its_deadline_is_ended(config: LocalSandbox, proxy: FakeProxy):
    sandbox = LocalProcesses(config.model_copy(update={"grace_s": 0.2}))
    proxy.down = True
    session = proxy.add(session_body(limits=LIMITS.model_copy(update={"wall_clock_s": 0.1, "verifier_s": 0.1})))
    handle = await sandbox.start(spec_of(session, proxy))
    ended = await sandbox.wait(handle)
    assert ended.cause is Cause.SANDBOX
    assert ended.detail == "the runner was still there after 0.4 s"
    await sandbox.stop(handle)


async def test_when_the_owner_is_killed_the_agent_dies_and_a_sweep_removes_the_rest(
    sandbox: LocalProcesses, proxy: FakeProxy, config: LocalSandbox, open_dir: Path
):
    pid_file = open_dir / "pid"
    session = proxy.add(session_body(agent=ORPHAN.format(pid_file=pid_file) + "sleep 1000"))
    with start_owner(config, spec_of(session, proxy)) as owner:
        orphan = await written_pid(pid_file)
        assert await sandbox.sweep(None) == []
        owner.kill()
    assert await is_gone(orphan)
    assert len(await sandbox.sweep(None)) == 1
    assert await sandbox.sweep(None) == []
    assert config.state_dir is not None
    assert [p.name for p in config.state_dir.rglob("*")] == ["register"]


async def test_a_sweep_kills_what_a_dead_owner_and_a_dead_runner_left(
    sandbox: LocalProcesses, proxy: FakeProxy, config: LocalSandbox, open_dir: Path
):
    pid_file = open_dir / "pid"
    session = proxy.add(session_body(agent=ORPHAN.format(pid_file=pid_file) + "sleep 1000"))
    with start_owner(config, spec_of(session, proxy)) as owner:
        orphan = await written_pid(pid_file)
        assert config.state_dir is not None
        [entry] = Register(config.state_dir).entries("run")
        assert entry.runner is not None
        owner.send_signal(signal.SIGSTOP)
        assert processes.send(entry.runner, signal.SIGKILL)
        owner.kill()
    assert processes.is_alive(orphan)
    assert await sandbox.sweep(None) == [entry.sandbox_id]
    assert not processes.is_alive(orphan)


async def test_another_process_can_sweep_a_run_whose_owner_lives_and_the_owner_copes(
    sandbox: LocalProcesses, proxy: FakeProxy, config: LocalSandbox, open_dir: Path
):
    pid_file = open_dir / "pid"
    session = proxy.add(session_body(agent=ORPHAN.format(pid_file=pid_file) + "sleep 1000"))
    with start_owner(config, spec_of(session, proxy), end="stop") as owner:
        orphan = await written_pid(pid_file)
        assert len(await sandbox.sweep("run")) == 1
        assert not processes.is_alive(orphan)
        output, _ = owner.communicate(timeout=WAIT_S)
    assert owner.returncode == 0
    assert json.loads(output)["exit_code"] == 76


async def test_a_rollout_of_a_dead_owner_can_be_started_again_at_once(
    sandbox: LocalProcesses, proxy: FakeProxy, config: LocalSandbox
):
    session = proxy.add(session_body(agent="sleep 1000"))
    with start_owner(config, spec_of(session, proxy)) as owner:
        owner.kill()
    done = await attempt(sandbox, proxy, session_body())
    assert done.result.reward == 1.0


async def test_a_start_waits_for_a_free_place_and_says_so_when_none_comes(config: LocalSandbox, proxy: FakeProxy):
    sandbox = LocalProcesses(config.model_copy(update={"max_parallel": 1, "start_timeout_s": 0.2}))
    session = proxy.add(session_body(agent="sleep 1000"))
    handle = await sandbox.start(spec_of(session, proxy))
    with pytest.raises(SandboxError, match="max_parallel = 1"):
        await sandbox.start(spec_of(proxy.add(session_body(rollout_id="r2")), proxy))
    await sandbox.stop(handle)
    assert (await attempt(sandbox, proxy, session_body(rollout_id="r2"))).result.reward == 1.0


@needs_root
async def test_each_rollout_has_a_user_of_its_own(sandbox: LocalProcesses, proxy: FakeProxy, config: LocalSandbox):
    bodies = [session_body(agent="id -u; id -g; id -G", rollout_id=f"r{i}") for i in range(3)]
    done = await asyncio.gather(*(attempt(sandbox, proxy, body) for body in bodies))
    numbers = [d.agent_log.split() for d in done]
    assert all(len(set(ids)) == 1 for ids in numbers)
    uids = {int(ids[0]) for ids in numbers}
    assert len(uids) == 3
    assert all(config.first_uid <= uid < config.first_uid + config.uids for uid in uids)


@needs_root
async def test_when_all_user_numbers_are_lent_a_start_says_so(config: LocalSandbox, proxy: FakeProxy, tmp_path: Path):
    sandbox = LocalProcesses(
        config.model_copy(update={"uids": 1, "uid_locks_dir": tmp_path / "locks", "first_uid": 54990})
    )
    handle = await sandbox.start(spec_of(proxy.add(session_body(agent="sleep 1000")), proxy))
    with pytest.raises(SandboxError, match="all 1 user numbers from 54990 on are in use"):
        await sandbox.start(spec_of(proxy.add(session_body(rollout_id="r2")), proxy))
    await sandbox.stop(handle)


@needs_root
async def test_what_an_agent_leaves_in_tmp_is_removed(sandbox: LocalProcesses, proxy: FakeProxy):
    done = await attempt(sandbox, proxy, session_body(agent="mktemp -d -p /tmp litter-XXXXXX"))
    left = Path(done.agent_log.strip())
    assert left.name.startswith("litter-")
    assert not left.exists()


@needs_root
async def test_a_state_directory_that_agents_cannot_enter_is_a_config_error(proxy: FakeProxy, tmp_path: Path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    sandbox = LocalProcesses(LocalSandbox(state_dir=closed / "s"))
    with pytest.raises(ConfigError, match=f"other users cannot enter '{closed}'"):
        await sandbox.start(spec_of(proxy.add(session_body()), proxy))


async def test_agent_user_same_runs_the_agent_as_the_owner(config: LocalSandbox, proxy: FakeProxy):
    sandbox = LocalProcesses(config.model_copy(update={"agent_user": "same"}))
    done = await attempt(sandbox, proxy, session_body(agent="id -u"))
    assert done.agent_log == f"{os.geteuid()}\n"


async def test_with_the_same_user_a_sweep_still_finds_an_orphan_of_a_killed_runner(
    config: LocalSandbox, proxy: FakeProxy, open_dir: Path
):
    same = config.model_copy(update={"agent_user": "same"})
    sandbox = LocalProcesses(same)
    pid_file = open_dir / "pid"
    session = proxy.add(session_body(agent=ORPHAN.format(pid_file=pid_file) + "sleep 1000"))
    handle = await sandbox.start(spec_of(session, proxy))
    orphan = await written_pid(pid_file)
    assert same.state_dir is not None
    [entry] = Register(same.state_dir).entries("run")
    assert entry.runner is not None
    assert entry.uid is None
    assert processes.send(entry.runner, signal.SIGKILL)
    assert await sandbox.sweep("run") == [handle.sandbox_id]
    assert not processes.is_alive(orphan)
