"""Stage 5: mend what can be mended by rule, and let it try its gates again; the rest is dropped with its reason.

Repairs are made on a copy, so a killed round starts over from the same originals.
"""

import shutil
from pathlib import Path

from datagen.build import build
from datagen.config import DatagenConfig
from datagen.filter import inspect, without_twins
from datagen.fixes import mend
from datagen.records import StageReport, Verdict
from datagen.store import Store
from datagen.test import current_round
from datagen.yields import tally

HOPELESS = frozenset({"duplicate", "near_duplicate", "noop_rewarded", "no_solution", "environment"})
"""Reasons that no rule can mend."""


def run(config: DatagenConfig) -> StageReport:
    """Repair the tasks that failed; ``passed`` in the report counts those that go back to the test stage.

    Raises:
        ConfigError: the tests of the current round are not concluded.
    """
    store = Store(config.out)
    tested = current_round(store)
    stage = f"repair-{tested + 1}"
    if done := store.report(stage):
        return done
    failed = [v for v in store.verdicts(f"test-{tested}") if not v.ok]
    if tested == 0:
        failed = [v for name in ("filter", "build") for v in store.verdicts(name) if not v.ok] + failed
    room = config.out / "repaired" / str(tested + 1)
    shutil.rmtree(room, ignore_errors=True)
    if tested < config.max_repairs:
        mended = [_repaired(config, room, v) for v in failed]
        failed = without_twins(config, mended, _passed(store, tested))
    return store.finish(tally(stage, failed), failed)


def _passed(store: Store, tested: int) -> list[Verdict]:
    return [v for number in range(tested + 1) for v in store.verdicts(f"test-{number}") if v.ok]


def _repaired(config: DatagenConfig, room: Path, failed: Verdict) -> Verdict:
    """The verdict after the fixes, the lints and the build; unchanged when nothing could be fixed."""
    source = config.out / failed.path
    if failed.reason in HOPELESS or str(failed.reason).startswith("untested") or not source.is_dir():
        return failed
    target = room / failed.name
    shutil.copytree(source, target, symlinks=True)
    fixes = mend(target) if (target / "tests").is_dir() else ()
    if not fixes:
        shutil.rmtree(target)
        return failed
    mended = failed.model_copy(
        update={
            "path": target.relative_to(config.out).as_posix(),
            "ok": True,
            "reason": None,
            "detail": None,
            "content_hash": None,
            "environment_hash": None,
            "fixes": (*failed.fixes, *fixes),
            "rewards": {},
        }
    )
    inspected = inspect(config.out, mended)
    return build(config, inspected) if inspected.ok else inspected
