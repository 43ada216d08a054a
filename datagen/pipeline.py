"""The stages in their order, and the published task set.

    prepare(config)
    while True:
        while requests := pending_requests(config, run_id):   # datagen.test
            … run each, record(config, result) …
        if not settle(config):
            break
    publish(config)

Every call continues from what is on disk, so the same lines resume a killed run.
"""

import shutil
from pathlib import Path

from contracts.errors import OpenForgeError
from contracts.task import read_task
from datagen import build, filter, generate, repair, test
from datagen.config import DatagenConfig
from datagen.records import ManifestEntry, StageReport, Verdict
from datagen.store import Store, read_lines, write_lines, write_whole
from datagen.yields import markdown, tally

PUBLISH = "publish"


def prepare(config: DatagenConfig) -> list[StageReport]:
    """Generate, filter and build: everything before a rollout is needed."""
    return [generate.run(config), filter.run(config), build.run(config)]


def settle(config: DatagenConfig) -> bool:
    """Conclude the current round of tests and repair what failed.

    Returns:
        whether mended tasks wait for another round.
    Raises:
        ConfigError: runs of the round are pending.
    """
    test.conclude(config)
    return repair.run(config).passed > 0


def reports(config: DatagenConfig) -> list[StageReport]:
    """The reports of every finished stage, in order; the last, ``publish``, counts from first to last."""
    store = Store(config.out)
    return [report for name in [*_stages(store), PUBLISH] if (report := store.report(name)) is not None]


def publish(config: DatagenConfig) -> list[ManifestEntry]:
    """Copy the tasks that passed to ``tasks/``, write the manifest and the yield table.

    Raises:
        ConfigError: a stage is not finished.
        OpenForgeError: no task passed, or one changed after its gates.
    """
    store = Store(config.out)
    if store.manifest_file.is_file():
        return read_lines(store.manifest_file, ManifestEntry)
    final = _final(store)
    passed = sorted((v for v in final if v.ok), key=lambda v: v.name)
    store.finish(tally(PUBLISH, final), final)
    _write_yields(store, reports(config))
    if not passed:
        raise OpenForgeError(
            f"no task of {str(config.out)!r} passed; {str(config.out / 'yields.md')!r} says why. "
            f"Mend the cause and use another `out`."
        )
    partial = config.out / "tasks.partial"
    shutil.rmtree(partial, ignore_errors=True)
    entries = [_publish(config.out, v, partial) for v in passed]
    shutil.rmtree(store.tasks_dir, ignore_errors=True)
    partial.rename(store.tasks_dir)
    write_lines(store.manifest_file, entries)
    return entries


def _stages(store: Store) -> list[str]:
    """Every stage up to the repair that finds nothing more to mend."""
    rounds = range(test.current_round(store) + 1)
    return ["generate", "filter", "build", *(s for n in rounds for s in (f"test-{n}", f"repair-{n + 1}"))]


def _final(store: Store) -> list[Verdict]:
    """The last word on every candidate: a later stage outweighs an earlier one."""
    last = {verdict.name: verdict for stage in _stages(store) for verdict in store.verdicts(stage)}
    return list(last.values())


def _publish(out: Path, verdict: Verdict, folder: Path) -> ManifestEntry:
    source = out / verdict.path
    content_hash = build.tree_hash(source)
    if content_hash != verdict.content_hash:
        raise OpenForgeError(
            f"task {verdict.name!r} changed after its gates: {str(source)!r} has content hash {content_hash[:12]}, "
            f"tested was {str(verdict.content_hash)[:12]}. Restore it or generate the set anew in another `out`."
        )
    target = folder / verdict.name
    shutil.copytree(source, target)
    return ManifestEntry(
        name=verdict.name,
        family=verdict.family,
        split=verdict.split,
        content_hash=content_hash,
        gates=verdict.rewards,
        fixes=verdict.fixes,
        provenance=read_task(target).metadata.get("openforge", {}),
    )


def _write_yields(store: Store, finished: list[StageReport]) -> None:
    write_lines(store.out / "yields.jsonl", finished)
    write_whole(store.out / "yields.md", markdown(finished))
