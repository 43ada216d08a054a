"""The note that `openforge up` leaves while it runs: where its server answers and which process to end."""

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from flows.settings import state_dir


@dataclass(frozen=True)
class Note:
    """Who serves this checkout."""

    pid: int
    """The `openforge up` process."""
    api_url: str

    @property
    def ui_url(self) -> str:
        """Where a person looks."""
        return self.api_url.removesuffix("/api")


def note_path(root: Path) -> Path:
    """Where the note of the checkout at ``root`` lies."""
    return state_dir(root) / "up.json"


def write_note(root: Path, note: Note) -> None:
    """Leave the note, whole or not at all."""
    path = note_path(root)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".tmp")
    fresh.write_text(json.dumps(asdict(note)), encoding="utf-8")
    fresh.replace(path)


def read_note(root: Path) -> Note | None:
    """The note of a process that lives; None: nobody serves this checkout."""
    try:
        note = Note(**json.loads(note_path(root).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return note if _lives(note.pid) else None


def remove_note(root: Path) -> None:
    """Take the note away."""
    note_path(root).unlink(missing_ok=True)


def _lives(pid: int) -> bool:
    """Whether ``pid`` is one of our processes; a number that was given to another program does not count."""
    try:
        if sys.platform == "linux":
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            return b"openforge" in command or b"flows.cli" in command
        os.kill(pid, 0)
    except OSError:
        return False
    return True
