import shutil
from pathlib import Path

import pytest

from contracts.errors import ConfigError
from contracts.task import read_task
from datagen import generate
from datagen.build import tree_hash
from datagen.config import DatagenConfig


def hashes(out: Path) -> dict[str, str]:
    """Content hash of every candidate directory."""
    return {path.name: tree_hash(path) for path in sorted((out / "candidates").iterdir())}


def test_every_candidate_is_a_task_with_its_provenance(config: DatagenConfig) -> None:
    report = generate.run(config)
    assert (report.entered, report.passed, report.dropped) == (6, 6, {})
    assert [(f.family, f.passed) for f in report.families] == [("write_file", 3), ("sort_lines", 3)]
    task = read_task(config.out / "candidates" / "sort_lines-eval-0000")
    assert (task.family, task.split) == ("sort_lines", "eval")
    ours = task.metadata["openforge"]
    assert (ours["seed"], ours["index"]) == (0, 0)
    assert ours["args"]["f"].split(".")[0] in ours["words"]
    assert ours["args"]["g"] in task.instruction


def test_the_same_seed_makes_the_same_bytes_and_another_seed_others(config: DatagenConfig, tmp_path: Path) -> None:
    sets = [config, config.model_copy(update={"out": tmp_path / "b"})]
    sets.append(config.model_copy(update={"out": tmp_path / "c", "seed": 1}))
    first, second, third = [(generate.run(c), hashes(c.out))[1] for c in sets]
    assert first == second
    assert not set(first.values()) & set(third.values())


def test_a_killed_run_continues_and_ends_with_the_same_set(config: DatagenConfig, tmp_path: Path) -> None:
    generate.run(config)
    whole = hashes(config.out)
    lines = (config.out / "candidates.jsonl").read_bytes().splitlines(keepends=True)
    (config.out / "candidates.jsonl").write_bytes(b"".join(lines[:3]) + lines[3][:20])
    shutil.rmtree(config.out / "stages")
    shutil.rmtree(config.out / "candidates" / "sort_lines-train-0001")
    (config.out / "candidates" / "sort_lines-train-0000" / "instruction.md").write_text("half writ")
    (config.out / "candidates" / ".partial-sort_lines-train-0001" / "tests").mkdir(parents=True)
    kept = (config.out / "candidates" / "write_file-train-0000" / "task.toml").stat().st_mtime_ns
    assert generate.run(config).passed == 6
    assert hashes(config.out) == whole
    assert (config.out / "candidates" / "write_file-train-0000" / "task.toml").stat().st_mtime_ns == kept


def test_a_finished_stage_is_not_done_again(config: DatagenConfig) -> None:
    first = generate.run(config)
    shutil.rmtree(config.out / "candidates")
    assert generate.run(config) == first
    assert not (config.out / "candidates").exists()


def test_a_folder_of_other_settings_is_refused(config: DatagenConfig) -> None:
    generate.run(config)
    with pytest.raises(ConfigError, match=r"was made with seed = 0, not 5; give another folder"):
        generate.run(config.model_copy(update={"seed": 5}))
