import pytest

from benchmarks.metrics import wilson
from benchmarks.score import score, separated
from contracts.rollout import Cause, Evidence, Outcome

FAMILIES = {"a": "write_file", "b": "write_file", "c": "sort_lines"}


@pytest.fixture
def mixed(make_result):
    """Task a solved 2 of 2, b 1 of 2, c 0 of 2 (one truncated), and one sandbox failure of c."""
    lost = Evidence(detail="the sandbox vanished")
    return [
        make_result("a", 1.0),
        make_result("a", 1.0),
        make_result("b", 1.0),
        make_result("b", 0.5),
        make_result("c", 0.0, wall_s=7.0),
        make_result("c", None, outcome=Outcome.TRUNCATED, cause=Cause.TURNS, calls=8),
        make_result("c", None, outcome=Outcome.FAILED, cause=Cause.SANDBOX, evidence=lost, wall_s=500.0),
    ]


def test_a_failed_rollout_is_in_no_rate_but_counted(mixed):
    rate = score("base", mixed, FAMILIES).rate
    assert (rate.n, rate.solved, rate.failed) == (6, 3, 1)
    assert rate.success == 0.5
    assert (rate.low, rate.high) == wilson(3, 6)


def test_families_have_their_own_rates(mixed):
    families = {f.family: f.rate for f in score("base", mixed, FAMILIES).families}
    assert (families["write_file"].solved, families["write_file"].n, families["write_file"].failed) == (3, 4, 0)
    assert (families["sort_lines"].solved, families["sort_lines"].n, families["sort_lines"].failed) == (0, 2, 1)


def test_k_measures_are_means_over_tasks(mixed):
    one, two = score("base", mixed, FAMILIES).per_k
    assert (one.k, one.pass_at.value, one.pass_hat.value) == (1, 0.5, 0.5)
    # k = 2 of 2 attempts: pass@2 = 1, 1, 0; pass^2 = 1, 0, 0; plain = 1, 1/4, 0
    assert (two.k, two.pass_at.value) == (2, pytest.approx(2 / 3))
    assert two.pass_hat.value == pytest.approx(1 / 3)
    assert two.pass_hat_plain.value == pytest.approx(5 / 12)


def test_k_leaves_out_tasks_with_fewer_counted_attempts(make_result):
    found = score("base", [make_result("a"), make_result("a", 0.0), make_result("b")], FAMILIES)
    assert [(k.k, k.pass_at.n) for k in found.per_k] == [(1, 2), (2, 1)]


def test_endings_say_how_often_why_and_one_example(mixed):
    endings = score("base", mixed, FAMILIES).endings
    assert [(e.outcome, e.cause, e.count) for e in endings] == [
        (Outcome.COMPLETED, None, 5),
        (Outcome.TRUNCATED, Cause.TURNS, 1),
        (Outcome.FAILED, Cause.SANDBOX, 1),
    ]
    assert endings[2].example == "the sandbox vanished"


def test_means_leave_out_failed_rollouts(mixed):
    found = score("base", mixed, FAMILIES)
    assert found.mean_wall_s == pytest.approx(12 / 6)
    assert found.mean_calls == pytest.approx(18 / 6)


def test_nothing_but_failures_has_no_rate_rather_than_zero(make_result):
    found = score("base", [make_result(reward=None, outcome=Outcome.FAILED, cause=Cause.OURS)], {})
    assert (found.rate.success, found.rate.low, found.rate.high, found.rate.failed) == (None, None, None, 1)
    assert (found.over_tasks, found.per_k, found.mean_wall_s) == (None, (), None)


def test_a_lower_success_reward_counts_partial_rewards(mixed):
    assert score("base", mixed, FAMILIES, success_reward=0.5).rate.solved == 4


def test_a_truncated_rollout_that_was_graded_counts_by_its_reward(make_result):
    graded = make_result(reward=1.0, outcome=Outcome.TRUNCATED, cause=Cause.WALL_CLOCK)
    assert score("base", [graded], {}).rate.solved == 1


def test_results_of_another_policy_are_refused(make_result):
    with pytest.raises(ValueError, match="results of sft among those of 'base'"):
        score("base", [make_result(policy="sft")], {})


def test_intervals_are_separated_only_without_overlap(make_result):
    def rate(solved, n):
        return score("base", [make_result(reward=float(i < solved)) for i in range(n)], {}).rate

    # Wilson: 10/100 ends at 0.174, 30/100 starts at 0.219; 20/100 spans 0.133 to 0.289
    assert separated(rate(10, 100), rate(30, 100))
    assert not separated(rate(10, 100), rate(20, 100))
    assert not separated(rate(30, 100), rate(10, 100))
