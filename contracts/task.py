"""The task spec: one problem on disk, in Harbor's directory format (schema 1.4, legacy `version = "1.0"` read too).

    <task>/task.toml  instruction.md  environment/  tests/test.sh  solution/solve.sh

`environment/` holds the Dockerfile and, under `environment/files/`, what the working directory contains at the start.
Our provenance (family, split, seed, difficulty) sits in `[metadata.openforge]`, which Harbor leaves alone.
Written by datagen, read by rollout and benchmarks. Source: Harbor 0.25.0.
"""

import tomllib
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import Field

from contracts.config import Record
from contracts.errors import TaskError

SCHEMA_VERSION = "1.4"
MIN_TIMEOUT_S = 0.1


class TaskSpec(Record):
    """One problem: what is asked, where its files lie, how long agent and verifier may take."""

    name: str
    """Unique within a task set, e.g. ``write_file-0003``; also the directory's name."""
    path: Path
    """The task directory, absolute."""
    instruction: str
    """What the agent is asked, stripped of outer whitespace."""
    family: str | None = None
    """Procedural family that made it; None for a task from elsewhere."""
    split: str | None = None
    """``train`` or ``eval``; None when the set has no splits."""
    agent_timeout_s: float = Field(default=900.0, ge=MIN_TIMEOUT_S)
    """Wall clock for the agent, seconds."""
    verifier_timeout_s: float = Field(default=600.0, ge=MIN_TIMEOUT_S)
    """Wall clock for the verifier, seconds."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """The whole ``[metadata]`` table."""

    @property
    def files_dir(self) -> Path:
        """Start content of the working directory; may be absent (an empty directory)."""
        return self.path / "environment" / "files"

    @property
    def tests_dir(self) -> Path:
        """The verifier; reaches the sandbox only after every process of the agent is dead."""
        return self.path / "tests"

    @property
    def solve_path(self) -> Path:
        """The reference solution; absent for tasks that ship none."""
        return self.path / "solution" / "solve.sh"


def read_task(path: Path) -> TaskSpec:
    """Read one task directory.

    Raises:
        TaskError: something required is missing or broken; says which file and what to do.
    """
    if not path.is_dir():
        raise TaskError(f"task {str(path)!r} is not a directory; give the path of a Harbor task directory.")
    table = _table(path / "task.toml")
    instruction = _text(path / "instruction.md", "write the instruction there").strip()
    if not instruction:
        raise TaskError(f"task {path.name!r}: instruction.md is empty; write what the agent is asked.")
    if not (path / "tests" / "test.sh").is_file():
        raise TaskError(
            f"task {path.name!r} has no verifier: {path / 'tests' / 'test.sh'} does not exist; add one that writes reward.txt."
        )
    metadata = table.get("metadata", {})
    ours = metadata.get("openforge", {}) if isinstance(metadata, dict) else {}
    try:
        return TaskSpec(
            name=path.name,
            path=path.resolve(),
            instruction=instruction,
            family=ours.get("family"),
            split=ours.get("split"),
            agent_timeout_s=table.get("agent", {}).get("timeout_sec", 900.0),
            verifier_timeout_s=table.get("verifier", {}).get("timeout_sec", 600.0),
            metadata=metadata,
        )
    except (ValueError, AttributeError) as e:
        raise TaskError(f"task {path.name!r}: task.toml has a value that does not fit: {e}") from e


def read_tasks(root: Path) -> list[TaskSpec]:
    """Read every task directory directly under ``root``, by name.

    Raises:
        TaskError: no task there, or one of them is broken.
    """
    if not root.is_dir():
        raise TaskError(f"task set {str(root)!r} is not a directory; run `openforge datagen` or give another path.")
    found = sorted(p.parent for p in root.glob("*/task.toml"))
    if not found:
        raise TaskError(
            f"task set {str(root)!r} holds no task (no */task.toml); run `openforge datagen` or give another path."
        )
    return [read_task(p) for p in found]


def write_task(
    path: Path,
    *,
    instruction: str,
    files: dict[str, bytes],
    dockerfile: str,
    test_sh: str,
    solve_sh: str | None,
    metadata: dict[str, Any],
    agent_timeout_s: float,
    verifier_timeout_s: float,
) -> TaskSpec:
    """Write a task directory and read it back. ``files``: relative path → content of the working directory at the start."""
    texts = {
        "instruction.md": instruction.strip() + "\n",
        "environment/Dockerfile": dockerfile,
        "tests/test.sh": test_sh,
    }
    if solve_sh is not None:
        texts["solution/solve.sh"] = solve_sh
    table = {
        "schema_version": SCHEMA_VERSION,
        "metadata": metadata,
        "agent": {"timeout_sec": agent_timeout_s},
        "verifier": {"timeout_sec": verifier_timeout_s},
        "environment": {"build_timeout_sec": 600.0},
    }
    texts["task.toml"] = tomli_w.dumps(table)
    for name, content in {f"environment/files/{k}": v for k, v in files.items()}.items():
        _inside(path, name).parent.mkdir(parents=True, exist_ok=True)
        _inside(path, name).write_bytes(content)
    for name, text in texts.items():
        target = _inside(path, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        if name.endswith(".sh"):
            target.chmod(0o755)
    return read_task(path)


def _inside(root: Path, name: str) -> Path:
    target = (root / name).resolve()
    if not target.is_relative_to(root.resolve()):
        raise TaskError(
            f"task {root.name!r}: file name {name!r} leaves the task directory; use a relative path without '..'."
        )
    return target


def _text(path: Path, cure: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise TaskError(f"task {path.parent.name!r}: {path.name} cannot be read ({e}); {cure}.") from e


def _table(path: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(_text(path, "every task needs one"))
    except tomllib.TOMLDecodeError as e:
        raise TaskError(f"task {path.parent.name!r}: broken TOML in task.toml: {e}; fix that line.") from e
    version = table.get("schema_version", table.get("version"))
    if version is None:
        raise TaskError(
            f'task {path.parent.name!r}: task.toml names no schema_version; write schema_version = "{SCHEMA_VERSION}".'
        )
    return table
