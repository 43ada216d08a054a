import shutil

import pytest

from contracts.errors import ConfigError
from datagen import filter, generate
from datagen.config import DatagenConfig
from datagen.store import Store


def test_a_sound_set_passes_whole(config: DatagenConfig) -> None:
    generate.run(config)
    report = filter.run(config)
    assert (report.entered, report.passed, report.dropped) == (6, 6, {})


def test_each_planted_fault_is_dropped_with_its_reason(config: DatagenConfig) -> None:
    generate.run(config)
    tasks = config.out / "candidates"
    (tasks / "write_file-train-0000" / "tests" / "test.sh").unlink()
    (tasks / "write_file-train-0001" / "task.toml").write_text("broken = [")
    (tasks / "sort_lines-train-0000" / "solution" / "solve.sh").unlink()
    shutil.rmtree(tasks / "sort_lines-train-0001")
    report = filter.run(config)
    assert report.passed == 2
    assert report.dropped == {"no_solution": 1, "schema": 3}
    details = {v.name: v.detail for v in Store(config.out).verdicts("filter") if not v.ok}
    assert "has no verifier" in str(details["write_file-train-0000"])
    assert "broken TOML" in str(details["write_file-train-0001"])
    assert "is not a directory" in str(details["sort_lines-train-0001"])


def test_a_training_task_that_repeats_an_eval_task_goes(config: DatagenConfig) -> None:
    generate.run(config)
    tasks = config.out / "candidates"
    for part in ("instruction.md", "environment"):
        source, target = tasks / "sort_lines-eval-0000" / part, tasks / "sort_lines-train-0001" / part
        shutil.rmtree(target) if target.is_dir() else target.unlink()
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    filter.run(config)
    dropped = [v for v in Store(config.out).verdicts("filter") if not v.ok]
    assert [(v.name, v.reason, v.detail) for v in dropped] == [
        ("sort_lines-train-0001", "duplicate", "says the same as sort_lines-eval-0000")
    ]


def test_equal_instructions_over_other_files_are_no_duplicates(config: DatagenConfig) -> None:
    generate.run(config)
    tasks = config.out / "candidates"
    shutil.copy(tasks / "sort_lines-train-0000" / "instruction.md", tasks / "sort_lines-train-0001" / "instruction.md")
    assert filter.run(config).dropped == {}


def test_good_siblings_survive_the_near_duplicate_threshold(config: DatagenConfig) -> None:
    many = config.model_copy(update={"families": ("write_file", "edit_json", "archive"), "train_per_family": 60})
    generate.run(many)
    assert filter.run(many).dropped == {}


def test_the_stage_before_must_be_finished(config: DatagenConfig) -> None:
    with pytest.raises(ConfigError, match="stage 'generate' .* is not finished"):
        filter.run(config)


def test_an_interrupted_filter_starts_again_to_the_same_end(config: DatagenConfig) -> None:
    generate.run(config)
    first = filter.run(config)
    (config.out / "stages" / "filter.json").unlink()
    (config.out / "stages" / "filter.jsonl").write_text('{"name"')
    assert filter.run(config) == first
    assert len(Store(config.out).verdicts("filter")) == 6
