"""Values worked out by hand from the formulas in the sources that benchmarks/metrics.py names."""

import pytest

from benchmarks.metrics import mean_over_tasks, pass_at_k, pass_hat_k, pass_hat_k_plain, quantile, wilson


def test_wilson_of_eight_in_ten():
    # z = 1.959964, z² = 3.841459:
    # centre (0.8 + 0.1920730) / 1.3841459, half 1.959964 * sqrt(0.016 + 0.0096036) / 1.3841459
    low, high = wilson(8, 10)
    assert low == pytest.approx(0.490162, abs=1e-5)
    assert high == pytest.approx(0.943318, abs=1e-5)


def test_wilson_of_nothing_solved_starts_at_zero_and_still_has_width():
    # p = 0: high = z² / (n + z²) = 3.841459 / 13.841459
    low, high = wilson(0, 10)
    assert low == 0.0
    assert high == pytest.approx(0.277533, abs=1e-5)


def test_wilson_of_everything_solved_mirrors_nothing_solved():
    low, high = wilson(10, 10)
    assert high == 1.0
    assert low == pytest.approx(1 - 0.277533, abs=1e-5)


def test_wilson_of_256_rollouts_is_about_six_points_to_each_side_at_one_half():
    # half = 1.959964 * sqrt(0.25 / 256 + 3.841459 / 262144) / (1 + 3.841459 / 256) = 0.0607949
    low, high = wilson(128, 256)
    assert low == pytest.approx(0.439205, abs=1e-5)
    assert high == pytest.approx(0.560795, abs=1e-5)


@pytest.mark.parametrize(
    ("n", "c", "k", "at", "hat", "plain"),
    [
        (4, 1, 1, 1 / 4, 1 / 4, 1 / 4),
        (4, 2, 2, 5 / 6, 1 / 6, 1 / 4),  # 1 - C(2,2)/C(4,2); C(2,2)/C(4,2); (2/4)²
        (4, 1, 2, 1 / 2, 0.0, 1 / 16),  # 1 - C(3,2)/C(4,2) = 1 - 3/6
        (5, 3, 2, 9 / 10, 3 / 10, 9 / 25),  # 1 - C(2,2)/C(5,2); C(3,2)/C(5,2); (3/5)²
        (5, 3, 3, 1.0, 1 / 10, 27 / 125),  # C(2,3) = 0; C(3,3)/C(5,3)
        (4, 4, 4, 1.0, 1.0, 1.0),
        (4, 0, 4, 0.0, 0.0, 0.0),
    ],
)
def test_k_measures_by_hand(n, c, k, at, hat, plain):
    assert pass_at_k(n, c, k) == pytest.approx(at)
    assert pass_hat_k(n, c, k) == pytest.approx(hat)
    assert pass_hat_k_plain(n, c, k) == pytest.approx(plain)


@pytest.mark.parametrize(("n", "c", "k"), [(4, 1, 5), (4, 1, 0), (4, 5, 1), (4, -1, 1), (0, 0, 1)])
def test_counts_that_cannot_be_are_refused(n, c, k):
    for measure in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match=r"must be between|at least one attempt"):
            measure(n, c, k)


def test_wilson_refuses_more_successes_than_attempts():
    with pytest.raises(ValueError, match="3 solved of 2 attempts"):
        wilson(3, 2)


def test_quantile_interpolates_between_neighbours():
    assert quantile([0.0, 1.0, 2.0, 3.0], 0.5) == 1.5
    assert quantile([0.0, 10.0], 0.25) == 2.5
    assert quantile([7.0], 0.975) == 7.0


def test_bootstrap_of_half_zeros_and_half_ones_is_near_the_normal_interval():
    # standard error of the mean of 100 such values: sqrt(0.25 / 100) = 0.05, so about 0.5 ± 0.098
    estimate = mean_over_tasks([0.0, 1.0] * 50, seed=1)
    assert estimate.value == 0.5
    assert estimate.n == 100
    assert estimate.low == pytest.approx(0.402, abs=0.015)
    assert estimate.high == pytest.approx(0.598, abs=0.015)


def test_bootstrap_repeats_with_its_seed_and_moves_with_another():
    values = [0.0, 0.25, 0.5, 1.0, 1.0, 0.75, 0.1]
    assert mean_over_tasks(values, seed=3) == mean_over_tasks(values, seed=3)
    assert mean_over_tasks(values, seed=3) != mean_over_tasks(values, seed=4)


def test_bootstrap_of_equal_values_has_no_width_and_of_one_value_no_interval():
    same = mean_over_tasks([0.5, 0.5, 0.5], seed=0)
    assert (same.low, same.value, same.high) == (0.5, 0.5, 0.5)
    single = mean_over_tasks([0.5], seed=0)
    assert (single.low, single.value, single.high) == (None, 0.5, None)
    with pytest.raises(ValueError, match="no task"):
        mean_over_tasks([], seed=0)
