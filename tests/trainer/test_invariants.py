"""What a step's record counts."""

from contracts.rollout import Cause, Outcome
from contracts.row import MergeReport
from trainer.invariants import RolloutFact, TrainedBatch, step_line, step_record
from trainer.records import StepSeconds, read_steps, write_step

SECONDS = StepSeconds(rollouts=2.0, log_prob=0.5, update=0.25, weight_sync=0.1, total=3.0)


def _used(group: int, reward: float, rows: int = 1, tokens: int = 10, **broken: int) -> RolloutFact:
    report = MergeReport(
        session_id="s", calls=2, rows=rows, sampled_tokens=tokens + 1, trained_tokens=tokens, violations=broken
    )
    return RolloutFact(f"r-{group}-{reward}", group, Outcome.COMPLETED, None, reward, rows, version=4, report=report)


def _batch(tokens: int) -> TrainedBatch:
    return TrainedBatch(tokens, max_logprob_diff=2e-6, learning_rate=1e-3, seconds=SECONDS)


def test_failed_rollouts_are_counted_by_cause_and_not_averaged():
    facts = [
        _used(0, 1.0, rows=2),
        _used(0, 0.0),
        _used(1, 0.5),
        RolloutFact("r3", 1, Outcome.FAILED, Cause.SANDBOX, None),
        RolloutFact("r4", 1, Outcome.TRUNCATED, Cause.TURNS, None),
    ]
    record = step_record(5, facts, _batch(30))
    assert (record.rollouts, record.completed, record.truncated, record.failed) == (5, 3, 1, {"sandbox": 1})
    assert (record.groups, record.compared_groups, record.flat_groups) == (2, 1, 0)
    assert record.mean_reward == 0.5
    assert (record.rows, record.rows_per_rollout) == (4, 4 / 3)
    assert (record.sampled_tokens, record.trained_tokens) == (33, 30)
    assert record.policy_version == 4
    assert record.violations == {"I1": 0, "I2": 0, "I3": 0, "I4": 0, "I5": 0, "I6": 0}


def test_a_token_that_the_trainer_did_not_see_breaks_i1():
    assert step_record(1, [_used(0, 1.0), _used(0, 0.0)], _batch(19)).violations["I1"] == 1


def test_violations_of_the_merge_are_summed():
    facts = [_used(0, 1.0, I4=2), _used(0, 1.0, I4=1, I6=1)]
    record = step_record(1, facts, _batch(20))
    assert (record.violations["I4"], record.violations["I6"], record.flat_groups) == (3, 1, 1)


def test_the_line_names_what_matters():
    line = step_line(step_record(5, [_used(0, 1.0), _used(0, 0.0)], _batch(20)))
    assert line == (
        "step 5: reward 0.500, 2 completed, 0 truncated; 1.00 rows/rollout, 20 of 22 sampled tokens trained, "
        "logprob diff 2.0e-06, violations none, 3.0 s"
    )


def test_records_are_read_back_in_order(tmp_path):
    for step in (2, 1):
        write_step(tmp_path, step_record(step, [_used(0, 1.0), _used(0, 0.0)], _batch(20)))
    assert [r.step for r in read_steps(tmp_path)] == [1, 2]
    assert (tmp_path / "steps" / "step-000001.json").is_file()
