"""Part of a task set: some splits, some families, at most so many."""

import shutil
from pathlib import Path

from contracts.errors import ConfigError
from contracts.task import TaskSpec, read_tasks


def chosen(root: Path, split: str | None, families: tuple[str, ...], most: int | None) -> list[TaskSpec]:
    """The tasks under ``root`` that are asked for, by name.

    Raises:
        TaskError: the task set cannot be read. ConfigError: nothing in it is asked for.
    """
    every = read_tasks(root)
    found = [t for t in every if (split is None or t.split == split) and (not families or t.family in families)]
    if not found:
        splits = ", ".join(sorted({str(t.split) for t in every}))
        known = ", ".join(sorted({str(t.family) for t in every}))
        raise ConfigError(
            f"no task of {str(root)!r} has split = {split!r} and families = {list(families)!r}. "
            f"Splits there: {splits}; families there: {known}. Choose among these."
        )
    return found[:most]


def linked(tasks: list[TaskSpec], into: Path) -> Path:
    """A task set of exactly these tasks: a directory of links to theirs; made anew."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    for task in tasks:
        (into / task.name).symlink_to(task.path, target_is_directory=True)
    return into
