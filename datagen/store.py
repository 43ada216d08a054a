"""The artefacts of a task set on disk, written so that a killed run can continue.

<out>/config.json               the settings that made it
<out>/candidates.jsonl          generate: one line per task, after its directory is complete
<out>/candidates/<name>/        the generated task directories; only the build adds a missing Dockerfile
<out>/stages/<stage>.jsonl      verdicts of a stage, one per task
<out>/stages/<stage>.json       its report; present exactly when the stage is finished
<out>/gates.jsonl               every recorded test rollout
<out>/repaired/<round>/<name>/  repaired copies
<out>/yields.{jsonl,md}, manifest.jsonl, tasks/<name>/     published
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from contracts.errors import ConfigError
from datagen.records import StageReport, Verdict

R = TypeVar("R", bound=BaseModel)


@dataclass(frozen=True)
class Store:
    """Paths and files of one task set."""

    out: Path

    @property
    def candidates_file(self) -> Path:
        return self.out / "candidates.jsonl"

    @property
    def gates_file(self) -> Path:
        return self.out / "gates.jsonl"

    @property
    def manifest_file(self) -> Path:
        return self.out / "manifest.jsonl"

    @property
    def tasks_dir(self) -> Path:
        return self.out / "tasks"

    def report(self, stage: str) -> StageReport | None:
        """The report of a finished stage; None when it is not finished."""
        path = self.out / "stages" / f"{stage}.json"
        return StageReport.model_validate_json(path.read_bytes()) if path.is_file() else None

    def verdicts(self, stage: str) -> list[Verdict]:
        """The verdicts of a finished stage.

        Raises:
            ConfigError: the stage is not finished.
        """
        if self.report(stage) is None:
            raise ConfigError(f"stage {stage!r} of the task set {str(self.out)!r} is not finished; run it first.")
        return read_lines(self.out / "stages" / f"{stage}.jsonl", Verdict)

    def finish(self, report: StageReport, verdicts: Iterable[Verdict]) -> StageReport:
        """Write a stage's verdicts, then its report."""
        folder = self.out / "stages"
        write_whole(folder / f"{report.stage}.jsonl", _jsonl(verdicts))
        write_whole(folder / f"{report.stage}.json", report.model_dump_json(indent=2) + "\n")
        return report


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it is there completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", encoding="utf-8", newline="\n") as f:
        f.write(text)
        f.flush()
        os.fsync(f.fileno())
    partial.replace(path)


def write_lines(path: Path, records: Iterable[BaseModel]) -> None:
    """Write a JSON-lines file as a whole."""
    write_whole(path, _jsonl(records))


def append_line(path: Path, record: BaseModel) -> None:
    """Add one line to a JSON-lines file; a line that a crash left torn is cut off first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as f:
        _cut_torn_line(f.fileno())
        f.write(record.model_dump_json().encode() + b"\n")
        f.flush()
        os.fsync(f.fileno())


def read_lines(path: Path, model: type[R]) -> list[R]:
    """The complete lines of a JSON-lines file; none when it does not exist.

    Raises:
        ConfigError: a complete line is no ``model``.
    """
    if not path.is_file():
        return []
    whole = path.read_bytes().split(b"\n")[:-1]  # what follows the last newline is a torn line
    records: list[R] = []
    for number, line in enumerate(whole, start=1):
        try:
            records.append(model.model_validate_json(line))
        except ValidationError as e:
            raise ConfigError(
                f"{path}:{number} is no {model.__name__}: {e.errors()[0]['msg']}. Delete that line to redo its task."
            ) from e
    return records


def _jsonl(records: Iterable[BaseModel]) -> str:
    return "".join(record.model_dump_json() + "\n" for record in records)


def _cut_torn_line(fd: int) -> None:
    size = os.fstat(fd).st_size
    if size == 0 or os.pread(fd, 1, size - 1) == b"\n":
        return
    os.ftruncate(fd, os.pread(fd, size, 0).rfind(b"\n") + 1)
