"""What the agent may do and how it is ended: user, resource limits, and killing everything that descends from it.

The runner is the subreaper of its descendants: an agent process that double-forks or starts its own session still
becomes the runner's child, so "no child is left to wait for" is the kernel's own word that every process of the agent
is dead.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import time

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38  # linux/prctl.h
KILL_S = 10.0
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
PYTHONS = ("/usr/local/bin/python3", "/usr/bin/python3")

_libc = ctypes.CDLL(None, use_errno=True)


class Survivor(Exception):
    """A process of the agent outlived SIGKILL; nothing may be graded beside it."""


class Account:
    """The user that the agent runs as; ``uid`` None: the runner's own."""

    def __init__(self, uid: int | None) -> None:
        self.uid = uid

    def popen_args(self) -> dict:
        """Arguments that make subprocess.Popen change to this user, with no other group."""
        return {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}


class Rlimits:
    """Resource limits of one process tree; None leaves one as it is."""

    def __init__(self, memory_bytes: int | None, file_bytes: int | None, processes: int | None) -> None:
        self.pairs = [
            (which, value)
            for which, value in (
                (resource.RLIMIT_AS, memory_bytes),
                (resource.RLIMIT_FSIZE, file_bytes),
                (resource.RLIMIT_NPROC, processes),
                (resource.RLIMIT_CORE, 0),
            )
            if value is not None
        ]

    def apply(self) -> None:
        """Set them on this process, forbid set-user-id programs, die with the runner; called between fork and exec."""
        for which, value in self.pairs:
            _, hard = resource.getrlimit(which)
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(which, (value, value))
        _prctl(PR_SET_NO_NEW_PRIVS, 1)
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def harden() -> None:
    """Keep the agent's user out of the runner's memory and environment, and adopt every orphan below us."""
    _prctl(PR_SET_DUMPABLE, 0)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def uid_named(user: str) -> int | None:
    """The user's number; None when there is no such user."""
    import pwd

    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return None


def python_for(account: Account, own: str, library: str) -> str | None:
    """A Python that ``account`` may execute: the runner's own when its files are open to everybody, else the system's.

    Args:
        own: the runner's interpreter. library: a file of its standard library.
    """
    if account.uid is None:
        return own
    real = os.path.realpath(own)
    if _open_to_all(real) and _open_to_all(os.path.realpath(library)):
        return real
    return next((path for path in PYTHONS if os.path.exists(path) and _open_to_all(os.path.realpath(path))), None)


def kill_all(account: Account) -> None:
    """Kill every process of the agent and wait until none is left.

    Raises:
        Survivor: one is still there after KILL_S.
    """
    end = time.monotonic() + KILL_S
    if account.uid is not None:
        _kill_user(account.uid)
    while not _reap():
        for pid in descendants():
            _kill(pid)
        if account.uid is not None:
            _kill_user(account.uid)
        if time.monotonic() > end:
            raise Survivor(f"processes {descendants()} are alive {KILL_S:.0f} s after SIGKILL")
        time.sleep(0.002)


def descendants() -> list[int]:
    """Process ids below the runner, zombies included."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            stat = _read(f"/proc/{name}/stat")
            fields = stat[stat.rfind(b")") + 2 :].split(None, 2)
            if len(fields) > 1:
                parents.setdefault(int(fields[1]), []).append(int(name))
    found: list[int] = []
    queue = [os.getpid()]
    while queue:
        children = parents.get(queue.pop(), [])
        found += children
        queue += children
    return found


def usage() -> tuple[int, int]:
    """How many processes there are below the runner, and their resident bytes together."""
    pids = descendants()
    pages = 0
    for pid in pids:
        fields = _read(f"/proc/{pid}/statm").split()
        pages += int(fields[1]) if len(fields) > 1 else 0
    return len(pids), pages * PAGE_BYTES


def _reap() -> bool:
    """Collect dead children; True when there is none left, dead or alive."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


def _kill_user(uid: int) -> None:
    """SIGKILL everything of this user at once: a child takes on the user and signals all that it may."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            os.kill(-1, signal.SIGKILL)
        except OSError:
            pass  # nobody to kill
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # gone, or another user's, whom _kill_user reaches
        os.kill(pid, signal.SIGKILL)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as f:
            return f.read(4096)
    except OSError:
        return b""  # the process ended


def _open_to_all(path: str) -> bool:
    """Whether every user may read ``path`` and enter the folders above it."""
    try:
        above = os.path.dirname(path)
        while above != os.path.dirname(above):
            if not os.stat(above).st_mode & 0o001:
                return False
            above = os.path.dirname(above)
        return bool(os.stat(path).st_mode & 0o004)
    except OSError:
        return False


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value}) failed")
