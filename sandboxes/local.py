"""Rollouts as processes of this machine: a runner each with its own directory, session, user and limits."""

import asyncio
import contextlib
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from contracts.errors import SandboxError
from contracts.rollout import Cause, Tail
from sandboxes import processes, uids
from sandboxes.config import LocalSandbox
from sandboxes.protocol import SandboxExit, SandboxHandle, SandboxSpec
from sandboxes.register import Entry, Register, name_of

RUNNER = Path(__file__).resolve().parent.parent / "harness_images" / "runner" / "runner.py"
LOG_BYTES = 65536
ORDERLY_EXITS = frozenset({0, 75, 76})
"""Exit codes after which the runner has killed everything itself; see harness_images/runner/runner.py."""
MARK = "OPENFORGE_SANDBOX"
"""Environment variable by which the runner marks every process of an agent with its sandbox id."""


@dataclass
class _Running:
    """What the owner holds of one sandbox."""

    entry: Entry
    process: Process
    lease: uids.Lease | None
    deadline_s: float
    stopping: asyncio.Lock


class LocalProcesses:
    """The local back end; see `sandboxes.protocol.Sandbox`."""

    def __init__(self, config: LocalSandbox) -> None:
        self._config = config
        self._register = Register(config.state_dir or Path(f"/tmp/openforge-{os.geteuid()}"))
        self._own_users = config.agent_user == "auto" and os.geteuid() == 0
        self._running: dict[str, _Running] = {}
        self._places = asyncio.Semaphore(config.max_parallel)
        self._offsets = count(os.getpid())

    async def start(self, spec: SandboxSpec) -> SandboxHandle:
        """Start the runner in a directory of its own; waits while ``max_parallel`` sandboxes exist."""
        sandbox_id = name_of(spec.run_id, spec.rollout_id)
        try:
            await asyncio.wait_for(self._places.acquire(), self._config.start_timeout_s)
        except TimeoutError as e:
            raise SandboxError(
                f"no free place for {spec.rollout_id!r} within start_timeout_s = {self._config.start_timeout_s:g}: "
                f"max_parallel = {self._config.max_parallel} sandboxes exist; stop some or raise it."
            ) from e
        try:
            self._register.prepare(self._own_users)
            if self._register.read(sandbox_id) is not None:
                await self._replace_dead(sandbox_id)
            self._running[sandbox_id] = await self._launch(sandbox_id, spec)
        except BaseException:
            self._places.release()
            raise
        return SandboxHandle(sandbox_id=sandbox_id, run_id=spec.run_id, rollout_id=spec.rollout_id)

    async def wait(self, handle: SandboxHandle) -> SandboxExit:
        """Wait for the runner; past its deadline it is ended and the cause is ``sandbox``."""
        running = self._running.get(handle.sandbox_id)
        if running is None:
            return SandboxExit(exit_code=None, cause=Cause.SANDBOX, detail="the sandbox was removed", log=Tail(text=""))
        cause = detail = None
        try:
            code = await asyncio.wait_for(running.process.wait(), running.deadline_s)
        except TimeoutError:
            cause, detail = Cause.SANDBOX, f"the runner was still there after {running.deadline_s:g} s"
            code = await self._end(running)
        if cause is None and code < 0:
            cause, detail = Cause.SANDBOX, f"the runner was killed by signal {-code}"
        return SandboxExit(exit_code=code, cause=cause, detail=detail, log=await self.logs(handle))

    async def logs(self, handle: SandboxHandle) -> Tail:
        """The end of the runner's own output."""
        return _tail(self._register.directory(handle.sandbox_id) / "runner.log")

    async def stop(self, handle: SandboxHandle) -> None:
        """End the runner and everything of the agent, remove the directory, give the user number back."""
        running = self._running.get(handle.sandbox_id)
        if running is None:
            return
        async with running.stopping:
            if self._running.get(handle.sandbox_id) is running:
                await self._finish(running)

    async def sweep(self, run_id: str | None) -> list[str]:
        """End and remove the sandboxes of a run, or of dead owners; ours among them go through `stop`."""
        entries = await asyncio.to_thread(self._register.entries, run_id)
        await asyncio.gather(*(self._sweep_one(entry) for entry in entries))
        return [entry.sandbox_id for entry in entries]

    async def _launch(self, sandbox_id: str, spec: SandboxSpec) -> _Running:
        lease = uids.lend(self._config, next(self._offsets)) if self._own_users else None
        uid = lease.uid if lease else None
        entry = Entry(
            sandbox_id=sandbox_id,
            run_id=spec.run_id,
            rollout_id=spec.rollout_id,
            owner=processes.this_process(),
            uid=uid,
        )
        process = None
        try:
            self._register.write(entry)
            directory = self._register.directory(sandbox_id)
            directory.mkdir()
            directory.chmod(0o711)
            process = await _spawn(directory / "runner.log", (lease.fd,) if lease else ())
            entry = entry.model_copy(update={"runner": processes.identify(process.pid)})
            self._register.write(entry)
            await _hand_over(process, directory, entry, spec)
        except BaseException as e:
            if process is not None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
            self._put_away(sandbox_id, lease)
            if isinstance(e, OSError):
                raise SandboxError(f"the runner of {spec.rollout_id!r} could not be started: {e}") from e
            raise
        deadline_s = spec.limits.wall_clock_s + spec.limits.verifier_s + self._config.grace_s
        return _Running(entry, process, lease, deadline_s, asyncio.Lock())

    async def _end(self, running: _Running) -> int:
        """Make the runner leave by closing its lifeline, by force when it does not; returns its exit code."""
        process = running.process
        if process.stdin is not None:
            process.stdin.close()
        try:
            return await asyncio.wait_for(process.wait(), self._config.stop_timeout_s)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            return await asyncio.wait_for(process.wait(), self._config.stop_timeout_s)

    async def _finish(self, running: _Running) -> None:
        sandbox_id = running.entry.sandbox_id
        code = running.process.returncode
        if code is None:
            code = await self._end(running)
        elif running.process.stdin is not None:
            running.process.stdin.close()
        if code not in ORDERLY_EXITS:
            await asyncio.to_thread(self._kill_leftovers, running.entry)
        await asyncio.to_thread(self._put_away, sandbox_id, running.lease)
        del self._running[sandbox_id]
        self._places.release()

    def _put_away(self, sandbox_id: str, lease: uids.Lease | None) -> None:
        """Remove the entry, then give the user number back: whoever sees the entry may rely on it; blocking."""
        self._register.remove(sandbox_id)
        if lease:
            lease.give_back()

    async def _replace_dead(self, sandbox_id: str) -> None:
        """Make room for a rollout that is started again, e.g. after its flow was killed."""
        entry = self._register.read(sandbox_id)
        if entry is None:
            return
        if processes.is_alive(entry.owner):
            raise SandboxError(
                f"rollout {entry.rollout_id!r} of run {entry.run_id!r} already runs, "
                f"started by process {entry.owner.pid}; wait for it or stop it."
            )
        await self._sweep_one(entry)

    async def _sweep_one(self, entry: Entry) -> None:
        if entry.owner.pid == os.getpid() and entry.sandbox_id in self._running:
            handle = SandboxHandle(sandbox_id=entry.sandbox_id, run_id=entry.run_id, rollout_id=entry.rollout_id)
            await self.stop(handle)
        else:
            await asyncio.to_thread(self._clear, entry)

    def _clear(self, entry: Entry) -> None:
        """End and remove a sandbox that another process started; blocking."""
        if entry.runner is not None:
            processes.end(entry.runner, self._config.stop_timeout_s)
        self._kill_leftovers(entry)
        self._register.remove(entry.sandbox_id)

    def _kill_leftovers(self, entry: Entry) -> None:
        """Kill what the runner, itself dead, can no longer kill; blocking."""
        timeout_s = self._config.stop_timeout_s
        if entry.uid is None:
            processes.kill_until_none(lambda: processes.of_variable(MARK, entry.sandbox_id), timeout_s)
        elif not uids.kill_user(self._config, entry.uid, timeout_s) and self._register.read(entry.sandbox_id) == entry:
            # The number is still lent, and to this sandbox: its owner gives it back only after removing the entry.
            uid = entry.uid
            processes.kill_until_none(lambda: processes.of_uid(uid), timeout_s)


async def _spawn(log: Path, keep_fds: tuple[int, ...]) -> Process:
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", str(RUNNER),
            stdin=PIPE, stdout=DEVNULL, stderr=fd, start_new_session=True, pass_fds=keep_fds, cwd="/",
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"},
        )  # fmt: skip
    finally:
        os.close(fd)


async def _hand_over(process: Process, directory: Path, entry: Entry, spec: SandboxSpec) -> None:
    """Send the bootstrap line; what stays open of stdin is the lifeline."""
    line = {
        "proxy_url": spec.proxy_url,
        "runner_secret": spec.runner_secret,
        "directory": str(directory),
        "sandbox_id": entry.sandbox_id,
        "agent_uid": entry.uid,
        "verifier_uid": entry.uid,  # links and programs that the agent left get no more rights than it had
    }
    assert process.stdin is not None
    with contextlib.suppress(ConnectionError):  # it died already, which `wait` reports with its log
        process.stdin.write(json.dumps(line).encode() + b"\n")
        await process.stdin.drain()


def _tail(path: Path) -> Tail:
    try:
        with path.open("rb") as f:
            size = f.seek(0, os.SEEK_END)
            f.seek(max(0, size - LOG_BYTES))
            return Tail(text=f.read().decode("utf-8", "replace"), dropped_bytes=max(0, size - LOG_BYTES))
    except OSError:
        return Tail(text="")
