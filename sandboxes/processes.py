"""Which process is which: a pid alone is reused, a pid with its start time is not. Linux, through /proc."""

import os
import select
import signal
import time
from collections.abc import Callable, Iterator

from contracts.config import Record
from contracts.errors import SandboxError

LOOK_EVERY_S = 0.01


class ProcessId(Record):
    """One process of this boot."""

    pid: int
    started_ticks: int
    """Clock ticks from boot to its start, field 22 of /proc/<pid>/stat."""


def identify(pid: int) -> ProcessId | None:
    """The process that has this pid now; None when there is none, or only a zombie."""
    stat = _read(f"/proc/{pid}/stat")
    fields = stat[stat.rfind(b")") + 2 :].split()
    if len(fields) < 20 or fields[0] in (b"Z", b"X"):
        return None
    return ProcessId(pid=pid, started_ticks=int(fields[19]))


def this_process() -> ProcessId:
    """The calling process."""
    found = identify(os.getpid())
    assert found is not None, "a running process is in /proc"
    return found


def is_alive(process: ProcessId) -> bool:
    """Whether exactly this process still runs."""
    return identify(process.pid) == process


def send(process: ProcessId, number: signal.Signals) -> bool:
    """Signal exactly this process, never another one with its pid; False when it is gone or not ours to signal."""
    try:
        fd = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        if not is_alive(process):
            return False
        signal.pidfd_send_signal(fd, number)
        return True
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(fd)


def end(process: ProcessId, grace_s: float) -> None:
    """SIGTERM, then SIGKILL when it is still there after ``grace_s``; returns when it is dead.

    Raises:
        SandboxError: it outlived SIGKILL.
    """
    if send(process, signal.SIGTERM) and not _gone_within(process, grace_s):
        send(process, signal.SIGKILL)
        if not _gone_within(process, grace_s):
            raise SandboxError(
                f"process {process.pid} is alive {grace_s:g} s after SIGKILL; see `ps -o stat {process.pid}`."
            )


def kill_until_none(find: Callable[[], list[ProcessId]], timeout_s: float) -> None:
    """SIGKILL what ``find`` returns until it returns nothing.

    Raises:
        SandboxError: something outlived ``timeout_s``.
    """
    deadline = time.monotonic() + timeout_s
    while found := find():
        for process in found:
            send(process, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise SandboxError(f"processes {[p.pid for p in found]} are alive {timeout_s:g} s after SIGKILL.")
        time.sleep(LOOK_EVERY_S)


def of_uid(uid: int) -> list[ProcessId]:
    """Running processes whose real user is ``uid``."""
    wanted = str(uid).encode()
    found = []
    for pid in _pids():
        for line in _read(f"/proc/{pid}/status").split(b"\n"):
            if line.startswith(b"Uid:"):
                if line.split()[1] == wanted:
                    found.append(identify(pid))
                break
    return [p for p in found if p is not None]


def of_variable(name: str, value: str) -> list[ProcessId]:
    """Running processes of ours that were started with ``name=value`` in their environment."""
    wanted = f"{name}={value}".encode()
    found = [identify(pid) for pid in _pids() if wanted in _read(f"/proc/{pid}/environ").split(b"\0")]
    return [p for p in found if p is not None and p.pid != os.getpid()]


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _gone_within(process: ProcessId, seconds: float) -> bool:
    try:
        fd = os.pidfd_open(process.pid)
    except OSError:
        return not is_alive(process)
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        return not is_alive(process) or bool(poll.poll(seconds * 1000))
    finally:
        os.close(fd)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""  # ended meanwhile, or another user's
