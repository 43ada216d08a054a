"""User numbers lent to rollouts, one each, so that everything of an agent can be killed by its user.

A number is lent while the lock on its file is held. The lock belongs to the open file, which the runner inherits: it is
free again only when neither the owner nor the runner lives. A file that is not empty was not given back in order:
something may still run.
"""

import fcntl
import os
import pwd
import shutil
from pathlib import Path

from contracts.errors import SandboxError
from sandboxes.config import LocalSandbox
from sandboxes.processes import kill_until_none, of_uid

LITTER_DIRS = ("/tmp", "/var/tmp", "/dev/shm")


class Lease:
    """One lent user number."""

    def __init__(self, uid: int, fd: int) -> None:
        self.uid = uid
        self.fd = fd
        """Open lock file; to be inherited by the runner."""

    def give_back(self) -> None:
        """Return the number, whose processes are dead; also removes what its user left in shared directories."""
        remove_litter(self.uid)
        os.ftruncate(self.fd, 0)
        os.close(self.fd)


def lend(config: LocalSandbox, offset: int) -> Lease:
    """Borrow a free number, the first one at or after ``offset`` (modulo how many there are).

    Raises:
        SandboxError: all are lent, or the lock directory cannot be used.
    """
    try:
        for i in range(config.uids):
            uid = config.first_uid + (offset + i) % config.uids
            lease = None if _is_somebody(uid) else _try(config, uid)
            if lease is not None:
                return lease
    except OSError as e:
        raise SandboxError(
            f"uid_locks_dir = {str(config.uid_locks_dir)!r} cannot be used: {e}; set it to a directory of root."
        ) from e
    raise SandboxError(
        f"all {config.uids} user numbers from {config.first_uid} on are in use; raise `uids` or run fewer rollouts."
    )


def kill_user(config: LocalSandbox, uid: int, timeout_s: float) -> bool:
    """Kill everything of a number whose borrower is dead; False when somebody holds it, so that nothing was killed."""
    lease = _try(config, uid)
    if lease is None:
        return False
    kill_until_none(lambda: of_uid(uid), timeout_s)
    lease.give_back()
    return True


def remove_litter(uid: int) -> None:
    """Remove what the user left in the directories that everybody may write to."""
    for directory in LITTER_DIRS:
        try:
            with os.scandir(directory) as entries:
                theirs = [e for e in entries if e.stat(follow_symlinks=False).st_uid == uid]
        except OSError:
            continue  # absent, or an entry vanished; the next borrower's end looks again
        for entry in theirs:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                Path(entry.path).unlink(missing_ok=True)


def _try(config: LocalSandbox, uid: int) -> Lease | None:
    config.uid_locks_dir.mkdir(mode=0o700, exist_ok=True)
    fd = os.open(config.uid_locks_dir / str(uid), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(fd).st_size:
            kill_until_none(lambda: of_uid(uid), config.stop_timeout_s)
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"lent\n", 0)
    except BlockingIOError:
        os.close(fd)
        return None
    except BaseException:
        os.close(fd)
        raise
    return Lease(uid, fd)


def _is_somebody(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True
