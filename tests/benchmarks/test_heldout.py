from collections import Counter

import pytest

from benchmarks.config import BenchmarkConfig
from benchmarks.heldout import held_out, pending, record, recorded, requests, results, results_path
from contracts.config import parse
from contracts.errors import ConfigError
from contracts.rollout import Cause, Outcome


def finished(make_result, request, **changes):
    names = {"rollout_id": request.rollout_id, "group_id": request.group_id, "attempt": request.attempt}
    return make_result(task=request.task.name, policy=request.policy, **(names | changes))


def test_each_held_out_task_is_asked_for_k_times_per_policy(config):
    asked = requests(config, "bench-1")
    assert Counter(r.policy for r in asked) == {"base": 8, "sft": 8}
    assert {r.task.name for r in asked} == {"write_file-0000", "write_file-0001", "sort_lines-0000", "sort_lines-0001"}
    assert len({r.rollout_id for r in asked}) == 16
    assert set(Counter(r.group_id for r in asked).values()) == {2}
    assert {r.run_id for r in asked} == {"bench-1"}


def test_ids_do_not_depend_on_the_run(config):
    assert [r.rollout_id for r in requests(config, "bench-1")] == [r.rollout_id for r in requests(config, "bench-2")]


def test_a_changed_task_gets_new_ids(config):
    before = {r.rollout_id for r in requests(config, "b")}
    (config.tasks / "write_file-0000" / "instruction.md").write_text("Do something else\n")
    after = {r.rollout_id for r in requests(config, "b")}
    assert len(after - before) == 4  # 2 policies x 2 attempts of the one task


def test_a_limit_on_tasks_is_spread_over_families(config):
    limited = config.model_copy(update={"max_tasks": 2})
    assert {t.family for t in held_out(limited)} == {"write_file", "sort_lines"}


def test_a_family_filter_keeps_only_that_family(config):
    assert {t.family for t in held_out(config.model_copy(update={"families": ("sort_lines",)}))} == {"sort_lines"}


def test_a_split_that_nothing_has_is_refused_with_the_known_ones(config):
    with pytest.raises(ConfigError, match=r"split = 'test'.*Splits there: eval, train"):
        held_out(config.model_copy(update={"split": "test"}))


def test_a_continued_run_asks_only_for_what_is_not_recorded(config, make_result):
    first, *rest = pending(config, "b")
    record(config, finished(make_result, first))
    assert pending(config, "b") == rest
    assert [r.rollout_id for r in results(config, "base")] == [first.rollout_id]


def test_an_infrastructure_failure_is_asked_for_again_as_the_next_attempt(config, make_result):
    first = pending(config, "b")[0]
    record(config, finished(make_result, first, outcome=Outcome.FAILED, cause=Cause.SANDBOX, reward=None))
    again = pending(config, "b")[0]
    assert (again.rollout_id, again.attempt) == (first.rollout_id, 2)
    record(config, finished(make_result, again))
    assert first.rollout_id not in {r.rollout_id for r in pending(config, "b")}
    assert recorded(config, "base")[first.rollout_id].outcome is Outcome.COMPLETED


def test_a_failure_that_stays_is_not_asked_for_again(config, make_result):
    first = pending(config, "b")[0]
    record(config, finished(make_result, first, outcome=Outcome.FAILED, cause=Cause.TASK, reward=None))
    assert first.rollout_id not in {r.rollout_id for r in pending(config, "b")}


def test_a_line_cut_by_a_kill_is_ignored_and_then_replaced(config, make_result):
    first, second, *_ = pending(config, "b")
    record(config, finished(make_result, first))
    path = results_path(config, "base")
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:40])
    assert set(recorded(config, "base")) == {first.rollout_id}
    record(config, finished(make_result, second))
    assert set(recorded(config, "base")) == {first.rollout_id, second.rollout_id}
    assert path.read_bytes().startswith(whole)
    assert path.read_bytes().count(b"\n") == 2


def test_a_broken_line_in_the_middle_is_refused_with_its_number(config, make_result):
    record(config, finished(make_result, pending(config, "b")[0]))
    path = results_path(config, "base")
    path.write_bytes(path.read_bytes() + b"{}\n")
    with pytest.raises(ConfigError, match="line 2 is no rollout result"):
        recorded(config, "base")


def test_results_of_another_model_are_not_continued(config):
    pending(config, "b")
    other = config.policies[0].model_copy(update={"model": config.policies[1].model})
    with pytest.raises(ConfigError, match=r"'base' in .* were measured with another model"):
        pending(config.model_copy(update={"policies": (other,)}), "b")


def test_more_rollouts_per_task_extend_what_is_there(config, make_result):
    for request in pending(config, "b"):
        record(config, finished(make_result, request))
    more = pending(config.model_copy(update={"rollouts_per_task": 3}), "b")
    assert len(more) == 8  # 4 tasks x 2 policies x 1 further attempt


def test_a_result_of_a_policy_that_is_not_measured_is_refused(config, make_result):
    with pytest.raises(ConfigError, match=r"policy 'oracle', which is not measured. Known: base, sft"):
        record(config, make_result(policy="oracle"))


def test_two_policies_of_one_name_are_refused():
    policy = {"name": "base", "model": "m"}
    with pytest.raises(ConfigError, match="named more than once: base"):
        parse(BenchmarkConfig, {"tasks": "t", "out": "o", "policies": [policy, policy]}, "benchmark.toml")


def test_every_field_of_the_form_is_described():
    schema = BenchmarkConfig.model_json_schema()
    models = [schema, schema["$defs"]["MeasuredPolicy"], schema["$defs"]["Limits"]]
    assert [name for model in models for name, field in model["properties"].items() if "description" not in field] == []
