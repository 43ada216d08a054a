import json

import pytest

from benchmarks.run_files import RlStep, read_rl_steps, read_sft_losses, read_yields, rl_totals
from contracts.errors import ConfigError

STEP = {
    "rollouts": 8,
    "failed": {},
    "rows_per_rollout": 1.0,
    "mean_reward": 0.5,
    "violations": {},
    "max_logprob_diff": 1e-6,
    "seconds": {"rollouts": 2.0, "log_prob": 0.5, "update": 0.5},
    "a_key_of_another_version": 1,
}


def step_file(run, step, **changes):
    (run / "steps").mkdir(parents=True, exist_ok=True)
    (run / "steps" / f"step-{step:06}.json").write_text(json.dumps({"step": step} | STEP | changes))


def test_steps_are_read_in_the_order_of_their_numbers(tmp_path):
    for step in (10, 2, 1):
        step_file(tmp_path, step)
    assert [s.step for s in read_rl_steps(tmp_path)] == [1, 2, 10]


def test_a_run_without_steps_has_none(tmp_path):
    assert read_rl_steps(tmp_path) == []


def test_a_step_without_a_figure_is_refused_with_its_name(tmp_path):
    step_file(tmp_path, 1, rows_per_rollout="one")
    with pytest.raises(ConfigError, match=r"step-000001\.json: rows_per_rollout"):
        read_rl_steps(tmp_path)


def test_a_half_written_step_is_refused_with_its_name(tmp_path):
    step_file(tmp_path, 1)
    (tmp_path / "steps" / "step-000001.json").write_text('{"step": 1')
    with pytest.raises(ConfigError, match=r"step-000001\.json is no JSON"):
        read_rl_steps(tmp_path)


def test_totals_sum_violations_and_keep_the_largest_difference(tmp_path):
    step_file(tmp_path, 1, violations={"I3": 2}, failed={"task": 1}, rows_per_rollout=1.0, max_logprob_diff=2e-6)
    step_file(
        tmp_path, 2, violations={"I3": 1, "I5": 4}, failed={"task": 2}, rows_per_rollout=1.5, max_logprob_diff=None
    )
    totals = rl_totals(read_rl_steps(tmp_path))
    assert totals.violations == {"I1": 0, "I2": 0, "I3": 3, "I4": 0, "I5": 4, "I6": 0}
    assert totals.rows_per_rollout == 1.25
    assert totals.max_logprob_diff == 2e-6
    assert (totals.steps, totals.rollouts, totals.failed) == (2, 16, {"task": 3})


def test_what_no_step_measured_stays_none():
    step = RlStep.model_validate({"step": 1} | STEP | {"max_logprob_diff": None, "rows_per_rollout": None})
    totals = rl_totals([step])
    assert (totals.max_logprob_diff, totals.rows_per_rollout) == (None, None)
    with pytest.raises(ValueError, match="no training step"):
        rl_totals([])


def test_losses_of_one_step_are_joined_and_a_torn_last_line_is_ignored(tmp_path):
    path = tmp_path / "sft_metrics.jsonl"
    lines = [
        {"step": 1, "data": {"train/loss": 2.5, "train/lr": 0.1}},
        {"step": 2, "data": {"train/loss": 1.5}},
        {"step": 2, "data": {"val/loss": 1.75}},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"step": 3, "da')
    assert [(p.step, p.train, p.validation) for p in read_sft_losses(path)] == [(1, 2.5, None), (2, 1.5, 1.75)]


def test_a_broken_metrics_line_is_refused_with_its_number(tmp_path):
    path = tmp_path / "sft_metrics.jsonl"
    path.write_text('{"step": 1, "data": {}}\n[]\n')
    with pytest.raises(ConfigError, match="line 2: the whole: Input should be"):
        read_sft_losses(path)


def test_yields_are_read_stage_by_stage_with_their_families(tmp_path):
    path = tmp_path / "yields.jsonl"
    family = {"family": "write_file", "entered": 3, "passed": 2, "dropped": {"duplicate": 1}}
    stages = [
        {"stage": "generate", "entered": 3, "passed": 3, "dropped": {}, "families": []},
        {"stage": "filter", "entered": 3, "passed": 2, "dropped": {"duplicate": 1}, "families": [family]},
    ]
    path.write_text("".join(json.dumps(stage) + "\n" for stage in stages))
    generate, filtered = read_yields(path)
    assert (generate.stage, generate.families) == ("generate", ())
    assert (filtered.families[0].passed, filtered.families[0].dropped) == (2, {"duplicate": 1})
    assert read_yields(tmp_path / "absent.jsonl") == []


def test_a_stage_without_counts_is_refused_with_its_line(tmp_path):
    path = tmp_path / "yields.jsonl"
    path.write_text('{"stage": "generate"}\n')
    with pytest.raises(ConfigError, match=r"yields\.jsonl: line 1: entered"):
        read_yields(path)
