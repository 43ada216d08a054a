"""The order of tasks of a run: shuffled pass after pass, the same for the same seed, so that a resumed run goes on
where it was."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

from contracts.task import TaskSpec


def training_order(tasks: Sequence[TaskSpec], n: int, seed: int) -> list[TaskSpec]:
    """The first ``n`` tasks of an endless sequence of shuffled passes over all tasks.

    A longer run of the same seed begins with the same tasks. Every task comes once before any comes again.
    """
    order: list[TaskSpec] = []
    for epoch in range(-(-n // len(tasks))):
        one_pass = sorted(tasks, key=lambda t: t.name)
        random.Random(f"{seed}-{epoch}").shuffle(one_pass)
        order += one_pass
    return order[:n]


def write_prompts(path: Path, tasks: Sequence[TaskSpec]) -> None:
    """One JSON line per task: its directory and its instruction."""
    lines = [json.dumps({"task": str(t.path), "instruction": t.instruction}) for t in tasks]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
