"""Stage 2: drop what can be seen to be unfit without running it."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from contracts.errors import TaskError
from contracts.task import TaskSpec, read_task
from datagen.config import DatagenConfig
from datagen.duplicates import Twin, twins
from datagen.lint import first_fault
from datagen.records import StageReport, Verdict
from datagen.store import Store
from datagen.yields import tally

STAGE = "filter"


def run(config: DatagenConfig) -> StageReport:
    """Judge every candidate; the verdicts depend on the whole set, so an interrupted run starts this stage again."""
    store = Store(config.out)
    if done := store.report(STAGE):
        return done
    candidates = store.verdicts("generate")
    verdicts = without_twins(config, [inspect(config.out, c) for c in candidates])
    return store.finish(tally(STAGE, verdicts), verdicts)


def inspect(out: Path, candidate: Verdict) -> Verdict:
    """Schema and static lint of one task directory."""
    try:
        task = read_task(out / candidate.path)
    except TaskError as e:
        return _dropped(candidate, "schema", str(e))
    fault = first_fault(task)
    return candidate if fault is None else _dropped(candidate, *fault)


def text_of(task: TaskSpec) -> str:
    """Instruction and start files as one text; a file that is no text counts by its hash."""
    parts = [task.instruction]
    for path in sorted(p for p in task.files_dir.rglob("*") if p.is_file()):
        content = path.read_bytes()
        try:
            body = content.decode("utf-8")
        except UnicodeDecodeError:
            body = hashlib.sha256(content).hexdigest()
        parts += [path.relative_to(task.files_dir).as_posix(), body]
    return "\n".join(parts)


def without_twins(config: DatagenConfig, verdicts: Sequence[Verdict], kept: Sequence[Verdict] = ()) -> list[Verdict]:
    """Drop the tasks that repeat one of ``kept`` or one another.

    Eval tasks come first: a training task that repeats one of them goes, not the other way round.
    """
    ordered = [*kept, *sorted((v for v in verdicts if v.ok), key=lambda v: v.split != "eval")]
    texts = [(v.name, text_of(read_task(config.out / v.path))) for v in ordered]
    found = twins(texts, config.near_duplicate)
    return [_with_twin(v, found.get(v.name)) for v in verdicts]


def _with_twin(verdict: Verdict, twin: Twin | None) -> Verdict:
    if twin is None:
        return verdict
    if twin.exact:
        return _dropped(verdict, "duplicate", f"says the same as {twin.original}")
    return _dropped(verdict, "near_duplicate", f"shares {twin.similarity:.0%} of its text with {twin.original}")


def _dropped(verdict: Verdict, reason: str, detail: str) -> Verdict:
    return verdict.model_copy(update={"ok": False, "reason": reason, "detail": detail})
