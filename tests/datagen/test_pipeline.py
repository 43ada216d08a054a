"""From candidates to published tasks, with repairs in between."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.errors import OpenForgeError
from contracts.rollout import RolloutRequest, RolloutResult
from contracts.task import read_task, read_tasks
from datagen import generate, pipeline, repair, test
from datagen.build import tree_hash
from datagen.config import DatagenConfig
from datagen.records import ManifestEntry
from datagen.store import Store, read_lines

Answer = Callable[[RolloutRequest], RolloutResult]
Drive = Callable[[DatagenConfig, Answer], None]
Answered = Callable[..., RolloutResult]


def test_a_sound_set_is_published_with_manifest_and_yields(config: DatagenConfig, drive: Drive, ideal: Answer) -> None:
    drive(config, ideal)
    entries = pipeline.publish(config)
    tasks = read_tasks(config.out / "tasks")
    assert [t.name for t in tasks] == [e.name for e in entries]
    assert len(entries) == 6
    entry = entries[0]
    assert (entry.name, entry.family, entry.split) == ("sort_lines-eval-0000", "sort_lines", "eval")
    assert entry.content_hash == tree_hash(config.out / "tasks" / entry.name)
    assert entry.gates == {"noop": (0.0, 0.0, 0.0), "oracle": (1.0, 1.0, 1.0)}
    assert entry.provenance["seed"] == 0
    assert read_lines(config.out / "manifest.jsonl", ManifestEntry) == entries
    table = (config.out / "yields.md").read_text().splitlines()
    assert "| generate | write_file | 3 | 3 | – |" in table
    assert "| test-0 | **all** | 6 | 6 | – |" in table


def test_a_mendable_task_is_mended_tested_again_and_published(
    config: DatagenConfig, drive: Drive, answered: Answered, ideal: Answer
) -> None:
    generate.run(config)
    broken = config.out / "candidates" / "write_file-train-0000"
    script = broken / "tests" / "test.sh"
    script.write_bytes(script.read_bytes().replace(b"\n", b"\r\n"))
    original = tree_hash(broken)
    drive(config, ideal)
    entries = {e.name: e for e in pipeline.publish(config)}
    assert len(entries) == 6
    assert entries["write_file-train-0000"].fixes == ("line_endings",)
    assert b"\r" not in (config.out / "tasks" / "write_file-train-0000" / "tests" / "test.sh").read_bytes()
    assert tree_hash(broken) == original
    assert [(r.stage, r.entered, r.passed) for r in pipeline.reports(config)] == [
        ("generate", 6, 6),
        ("filter", 6, 5),
        ("build", 5, 5),
        ("test-0", 5, 5),
        ("repair-1", 1, 1),
        ("test-1", 1, 1),
        ("repair-2", 0, 0),
        ("publish", 6, 6),
    ]


def test_a_task_that_fails_its_gates_is_mended_where_a_rule_applies(
    config: DatagenConfig, drive: Drive, answered: Answered, ideal: Answer
) -> None:
    """A verifier that writes to Harbor's folder only: no reward in another sandbox until it is mended."""
    generate.run(config)
    script = config.out / "candidates" / "sort_lines-train-0000" / "tests" / "test.sh"
    script.write_text(script.read_text().replace("${OPENFORGE_REWARD_DIR:-/logs/verifier}", "/logs/verifier"))

    def answer(request: RolloutRequest) -> RolloutResult:
        ours = "OPENFORGE_REWARD_DIR" in (request.task / "tests" / "test.sh").read_text()
        return ideal(request) if ours else answered(request, reward=0.0)

    drive(config, answer)
    entries = {e.name: e for e in pipeline.publish(config)}
    assert entries["sort_lines-train-0000"].fixes == ("reward_dir",)
    assert pipeline.reports(config)[3].dropped == {"oracle_failed": 1}


def test_what_no_rule_mends_is_dropped_with_its_reason(config: DatagenConfig, drive: Drive, answered: Answered) -> None:
    def answer(request: RolloutRequest) -> RolloutResult:
        generous = request.task.name == "write_file-eval-0000"
        return answered(request, reward=1.0 if generous or request.harness != "nop" else 0.0)

    drive(config, answer)
    assert len(pipeline.publish(config)) == 5
    repaired, published = pipeline.reports(config)[-2:]
    assert (repaired.stage, repaired.entered, repaired.passed) == ("repair-1", 1, 0)
    assert (published.stage, published.entered, published.passed) == ("publish", 6, 5)
    assert repaired.dropped == published.dropped == {"noop_rewarded": 1}


def test_without_repair_rounds_a_mendable_task_is_dropped(config: DatagenConfig, drive: Drive, ideal: Answer) -> None:
    strict = config.model_copy(update={"max_repairs": 0})
    generate.run(strict)
    (strict.out / "candidates" / "write_file-train-0000" / "tests" / "test.sh").chmod(0o644)
    drive(strict, ideal)
    assert len(pipeline.publish(strict)) == 5
    assert pipeline.reports(strict)[-1].dropped == {"script_format": 1}


def test_a_mended_task_that_repeats_a_sound_one_is_dropped(config: DatagenConfig, drive: Drive, ideal: Answer) -> None:
    generate.run(config)
    tasks = config.out / "candidates"
    shutil.rmtree(tasks / "write_file-train-0001")
    shutil.copytree(tasks / "write_file-train-0000", tasks / "write_file-train-0001")
    (tasks / "write_file-train-0001" / "solution" / "solve.sh").chmod(0o644)
    drive(config, ideal)
    assert len(pipeline.publish(config)) == 5
    assert pipeline.reports(config)[-1].dropped == {"duplicate": 1}


def test_a_repair_killed_half_way_ends_the_same(config: DatagenConfig, drive: Drive, ideal: Answer) -> None:
    generate.run(config)
    (config.out / "candidates" / "write_file-train-0000" / "tests" / "test.sh").chmod(0o644)
    pipeline.prepare(config)
    for request in test.pending_requests(config, "run"):
        test.record(config, ideal(request))
    test.conclude(config)
    first = repair.run(config)
    hashes = [v.content_hash for v in Store(config.out).verdicts("repair-1")]
    (config.out / "stages" / "repair-1.json").unlink()
    (config.out / "repaired" / "1" / "write_file-train-0000" / "task.toml").unlink()
    assert repair.run(config) == first
    assert [v.content_hash for v in Store(config.out).verdicts("repair-1")] == hashes


def test_a_finished_pipeline_asks_for_nothing_when_run_again(
    config: DatagenConfig, drive: Drive, ideal: Answer
) -> None:
    drive(config, ideal)
    entries = pipeline.publish(config)

    def refuse(request: RolloutRequest) -> RolloutResult:
        raise AssertionError(f"{request.rollout_id} was asked for again")

    drive(config, refuse)
    assert pipeline.publish(config) == entries


def test_a_publication_killed_half_way_is_completed(config: DatagenConfig, drive: Drive, ideal: Answer) -> None:
    drive(config, ideal)
    entries = pipeline.publish(config)
    (config.out / "manifest.jsonl").unlink()
    shutil.rmtree(config.out / "tasks" / entries[0].name)
    (config.out / "tasks.partial" / "junk").mkdir(parents=True)
    assert pipeline.publish(config) == entries
    assert len(read_tasks(config.out / "tasks")) == 6


def test_a_task_that_changed_after_its_gates_is_not_published(
    config: DatagenConfig, drive: Drive, ideal: Answer
) -> None:
    drive(config, ideal)
    path = config.out / "candidates" / "sort_lines-eval-0000" / "instruction.md"
    path.write_text("Do something else\n")
    with pytest.raises(OpenForgeError, match="'sort_lines-eval-0000' changed after its gates"):
        pipeline.publish(config)
    assert not (config.out / "manifest.jsonl").exists()


def test_an_empty_yield_is_an_error_that_says_where_the_reasons_are(
    config: DatagenConfig, drive: Drive, answered: Answered
) -> None:
    drive(config, lambda request: answered(request, reward=0.0))
    with pytest.raises(OpenForgeError, match=r"no task of .* passed; .*yields.md"):
        pipeline.publish(config)
    assert "oracle_failed 6" in (config.out / "yields.md").read_text()


def test_published_splits_share_no_word(config: DatagenConfig, drive: Drive, ideal: Answer) -> None:
    drive(config, ideal)
    words: dict[str, set[str]] = {"train": set(), "eval": set()}
    for entry in pipeline.publish(config):
        words[entry.split] |= set(entry.provenance["words"])
        read: Path = config.out / "tasks" / entry.name
        assert read_task(read).split == entry.split
    assert words["train"]
    assert words["eval"]
    assert not words["train"] & words["eval"]
