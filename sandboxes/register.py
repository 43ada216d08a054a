"""The register of running sandboxes on disk: what any process needs to end one whose owner is dead.

<state_dir>/register/<sandbox id>.json     written before anything is started, removed last
<state_dir>/<sandbox id>/                  the sandbox's own directory
"""

import hashlib
import os
import re
import shutil
import stat
from pathlib import Path

from pydantic import ValidationError

from contracts.config import Record
from contracts.errors import ConfigError, SandboxError
from sandboxes.processes import ProcessId, is_alive

LONGEST_NAME = 40
"""Characters of the rollout id in a directory name: sockets in the workspace have paths of at most 107 bytes."""


class Entry(Record):
    """One registered sandbox."""

    sandbox_id: str
    run_id: str
    rollout_id: str
    owner: ProcessId
    """The process that started it and watches it."""
    runner: ProcessId | None = None
    """None until it is started."""
    uid: int | None = None
    """The agent's lent user number; None when it runs as the owner's user."""


def name_of(run_id: str, rollout_id: str) -> str:
    """The sandbox id of one rollout: the same each time, different for two rollouts."""
    digest = hashlib.sha256(f"{run_id}/{rollout_id}".encode()).hexdigest()[:10]
    return f"{re.sub(r'[^A-Za-z0-9.-]', '-', rollout_id)[:LONGEST_NAME]}-{digest}"


class Register:
    """The entries under one state directory."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._entries_dir = state_dir / "register"

    def prepare(self, for_other_users: bool) -> None:
        """Make the directories.

        Raises:
            ConfigError: the place cannot be used as asked; says why.
        """
        try:
            if not self._state_dir.exists():
                self._state_dir.mkdir(parents=True, exist_ok=True)
                self._state_dir.chmod(0o711)  # whatever the umask
            self._entries_dir.mkdir(mode=0o700, exist_ok=True)
            info = self._state_dir.lstat()
        except OSError as e:
            raise ConfigError(
                f"state_dir = {str(self._state_dir)!r} cannot be made: {e}; give another directory."
            ) from e
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
            raise ConfigError(
                f"state_dir = {str(self._state_dir)!r} belongs to user {info.st_uid}; give a directory of your own."
            )
        if for_other_users:
            _demand_entry(self._state_dir)

    def directory(self, sandbox_id: str) -> Path:
        """The sandbox's own directory."""
        return self._state_dir / sandbox_id

    def write(self, entry: Entry) -> None:
        """Add or replace an entry, atomically."""
        target = self._entries_dir / f"{entry.sandbox_id}.json"
        draft = target.with_suffix(f".{os.getpid()}.tmp")
        draft.write_text(entry.model_dump_json(), encoding="utf-8")
        draft.replace(target)

    def read(self, sandbox_id: str) -> Entry | None:
        """One entry; None when it is gone or unreadable."""
        try:
            return Entry.model_validate_json((self._entries_dir / f"{sandbox_id}.json").read_bytes())
        except (OSError, ValidationError):
            return None

    def entries(self, run_id: str | None) -> list[Entry]:
        """All of one run, or with None all whose owner is dead."""
        found = [self.read(path.stem) for path in sorted(self._entries_dir.glob("*.json"))]
        return [e for e in found if e is not None and (not is_alive(e.owner) if run_id is None else e.run_id == run_id)]

    def remove(self, sandbox_id: str) -> None:
        """Remove the sandbox's directory, then its entry; fine when another process does the same.

        Raises:
            SandboxError: something in it cannot be removed; the entry stays for the next sweep.
        """
        directory = self.directory(sandbox_id)
        shutil.rmtree(directory, ignore_errors=True)
        if directory.exists():
            _open_up(directory)
            shutil.rmtree(directory, ignore_errors=True)
        if directory.exists():
            raise SandboxError(f"sandbox directory {str(directory)!r} cannot be removed; remove it by hand.")
        (self._entries_dir / f"{sandbox_id}.json").unlink(missing_ok=True)


def _open_up(directory: Path) -> None:
    """Undo an agent's `chmod 000` on directories of our own user."""
    for path, names, _ in os.walk(directory):
        for name in [".", *names]:
            inner = os.path.join(path, name)
            if not os.path.islink(inner):
                try:
                    os.chmod(inner, 0o700)
                except OSError:
                    continue  # another user's or gone; the removal says so if it matters


def _demand_entry(directory: Path) -> None:
    for folder in (directory, *directory.resolve().parents):
        if not folder.stat().st_mode & 0o001:
            raise ConfigError(
                f"state_dir = {str(directory)!r}: other users cannot enter {str(folder)!r}, "
                "and as root each rollout has a user of its own. "
                'Leave state_dir out (then it lies under /tmp), or set agent_user = "same".'
            )
