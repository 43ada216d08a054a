"""Finding and ending the processes of a training job. Standard library only; Linux (/proc).

Ray's processes leave their parents, and overwrite their environment in memory with their title, so no single trace
finds them all: a process belongs to a job when it descends from the guard, is in the job's session, or still shows the
job's mark in its environment.
"""

import ctypes
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MARK = "OPENFORGE_RUN_ID"
"""Environment variable that every process of one start of a training job inherits."""
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class _Process:
    pid: int
    parent: int
    session: int
    started: str
    """Clock ticks since boot; tells a process from a later one with its id."""


def adopt_orphans() -> None:
    """Make descendants whose parent ends children of this process instead of init's."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def start_time(pid: int) -> str | None:
    """When a process started; None when it is gone."""
    process = _read(pid)
    return process.started if process else None


def is_running(pid: int, started: str | None) -> bool:
    """Whether the very process that started then still runs."""
    return started is not None and start_time(pid) == started


def job_processes(mark: str, session: int | None, guard: int | None) -> list[int]:
    """Ids of the running processes of a job; never this process or the guard."""
    running = {p.pid: p for p in map(_read, _pids()) if p is not None}
    children: dict[int, list[int]] = {}
    for p in running.values():
        children.setdefault(p.parent, []).append(p.pid)
    found = {p.pid for p in running.values() if (session and p.session == session) or _shows(p.pid, mark)}
    frontier = [*found, *([guard] if guard else [])]
    while frontier:
        below = children.get(frontier.pop(), [])
        frontier += [pid for pid in below if pid not in found]
        found.update(below)
    return sorted(found - {os.getpid(), guard})


def end_all(find: Callable[[], list[int]], grace_s: float) -> None:
    """End what ``find`` finds: SIGTERM, and after ``grace_s`` seconds SIGKILL until it finds nothing."""
    left = find()
    _signal(left, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        left = find()
    for _ in range(100):  # a dying daemon may have started another process
        if not left:
            return
        _signal(left, signal.SIGKILL)
        time.sleep(0.05)
        left = find()


def _pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def _read(pid: int) -> _Process | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # ended meanwhile
        return None
    fields = stat.rpartition(")")[2].split()  # the name before it may hold spaces and brackets
    if fields[0] in "ZX":
        return None
    return _Process(pid, int(fields[1]), int(fields[3]), fields[19])


def _shows(pid: int, mark: str) -> bool:
    try:
        return f"{MARK}={mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # ended meanwhile, or another user's
        return False


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
