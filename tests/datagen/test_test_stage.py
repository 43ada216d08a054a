"""The test stage, with results fed in by hand."""

from collections import Counter
from collections.abc import Callable

import pytest

from contracts.errors import ConfigError
from contracts.rollout import Cause, Limits, RolloutRequest, RolloutResult
from datagen import pipeline, test
from datagen.config import DatagenConfig
from datagen.store import Store

Answered = Callable[..., RolloutResult]
Ideal = Callable[[RolloutRequest], RolloutResult]


def test_every_task_is_asked_for_three_idle_runs_and_three_solutions(config: DatagenConfig) -> None:
    pipeline.prepare(config)
    requests = test.pending_requests(config, "gen-1")
    assert Counter((r.harness, r.policy) for r in requests) == {("nop", "oracle"): 18, ("react", "oracle"): 18}
    assert len({r.rollout_id for r in requests}) == 36
    assert all(r.task.is_absolute() and r.run_id == "gen-1" and r.attempt == 1 for r in requests)


def test_only_what_is_not_recorded_is_asked_for_again(config: DatagenConfig, ideal: Ideal) -> None:
    pipeline.prepare(config)
    first = test.pending_requests(config, "gen-1")
    for request in first[:30]:
        test.record(config, ideal(request))
    test.record(config, ideal(first[0]))
    with (config.out / "gates.jsonl").open("ab") as f:
        f.write(b'{"rollout_id": "torn')
    assert [r.rollout_id for r in test.pending_requests(config, "gen-2")] == [r.rollout_id for r in first[30:]]
    with pytest.raises(ConfigError, match=r"test-0 of .* has 6 of 36 runs pending"):
        test.conclude(config)
    for request in first[30:]:
        test.record(config, ideal(request))
    report = test.conclude(config)
    assert (report.stage, report.entered, report.passed) == ("test-0", 6, 6)
    assert test.pending_requests(config, "gen-3") == []


def test_a_failing_infrastructure_is_no_verdict_but_is_tried_a_bounded_number_of_times(
    config: DatagenConfig, answered: Answered, ideal: Ideal
) -> None:
    pipeline.prepare(config)
    unlucky, doomed = "write_file-train-0000", "write_file-train-0001"
    tried: list[RolloutRequest] = []
    while requests := test.pending_requests(config, "run"):
        for request in requests:
            tried.append(request)
            lost = request.task.name == doomed or (request.task.name == unlucky and request.attempt < 3)
            test.record(config, answered(request, cause=Cause.SANDBOX) if lost else ideal(request))
    report = test.conclude(config)
    assert Counter(r.task.name for r in tried)[doomed] == 6 * 3
    assert len({r.rollout_id for r in tried}) == len(tried)
    assert report.passed == 5
    assert report.dropped == {"untested: sandbox": 1}


def test_rewards_are_kept_with_the_verdict(config: DatagenConfig, answered: Answered) -> None:
    pipeline.prepare(config)
    for request in test.pending_requests(config, "run"):
        flaky = request.task.name == "sort_lines-eval-0000" and request.rollout_id.endswith("-r2-t1")
        test.record(config, answered(request, reward=float(request.harness != "nop") if not flaky else 0.5))
    test.conclude(config)
    verdicts = {v.name: v for v in Store(config.out).verdicts("test-0")}
    assert verdicts["sort_lines-train-0000"].rewards == {"noop": (0.0, 0.0, 0.0), "oracle": (1.0, 1.0, 1.0)}
    assert verdicts["sort_lines-eval-0000"].rewards == {"noop": (0.0, 0.0, 0.5), "oracle": (1.0, 1.0, 0.5)}
    assert verdicts["sort_lines-eval-0000"].reason == "noop_flaky"


def test_a_long_solution_raises_the_turn_limit(config: DatagenConfig) -> None:
    short = config.model_copy(update={"limits": Limits(turns=2), "families": ("move_files",)})
    pipeline.prepare(short)
    # two commands, the closing answer, one to spare
    assert {r.limits.turns for r in test.pending_requests(short, "run")} == {4}
