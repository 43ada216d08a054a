"""Success rates and their uncertainty. Pure functions over counts; n attempts of one task, c of them solved.

Sources: interval of a proportion, Wilson 1927 (doi:10.1080/01621459.1927.10502953); pass@k, Chen et al. 2021
(arXiv:2107.03374); pass^k, tau-bench (arXiv:2406.12045); percentile bootstrap, Efron 1979 (doi:10.1214/aos/1176344552).
"""

import random
from collections.abc import Sequence
from math import comb, sqrt
from statistics import NormalDist, fmean

from contracts.config import Record

CONFIDENCE = 0.95
RESAMPLES = 2000


class Estimate(Record):
    """A mean and its interval."""

    value: float
    low: float | None
    """None together with ``high``: a single value has no spread."""
    high: float | None
    n: int
    """Values averaged."""


def wilson(successes: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The interval of a success rate, sound for small n and for rates of 0 and 1.

    Returns:
        (low, high), both in [0, 1].
    Raises:
        ValueError: no attempt, or more successes than attempts.
    """
    _check(n, successes)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    p = successes / n
    centre = p + z * z / (2 * n)
    half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = 0.0 if successes == 0 else (centre - half) / scale
    high = 1.0 if successes == n else (centre + half) / scale
    return low, high


def pass_at_k(n: int, c: int, k: int) -> float:
    """Probability that at least one of k attempts drawn from the n solves the task: 1 - C(n-c, k) / C(n, k).

    Raises:
        ValueError: k is not in 1..n, or c is not in 0..n.
    """
    _check(n, c, k)
    return 1.0 - comb(n - c, k) / comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """pass^k, unbiased: probability that all of k attempts drawn from the n solve the task: C(c, k) / C(n, k).

    Raises:
        ValueError: k is not in 1..n, or c is not in 0..n.
    """
    _check(n, c, k)
    return comb(c, k) / comb(n, k)


def pass_hat_k_plain(n: int, c: int, k: int) -> float:
    """pass^k, plain: the observed rate to the power k, (c / n) ** k.

    Biased upwards for small n; some boards print this one.

    Raises:
        ValueError: k is below 1, or c is not in 0..n.
    """
    _check(n, c)
    if k < 1:
        raise ValueError(f"k = {k}: must be at least 1")
    return (c / n) ** k


def mean_over_tasks(values: Sequence[float], seed: int, confidence: float = CONFIDENCE) -> Estimate:
    """The mean of one value per task with a percentile bootstrap over tasks.

    Tasks are drawn anew, so attempts of one task may depend on each other. Equal values give an interval of width 0.

    Raises:
        ValueError: no value.
    """
    if not values:
        raise ValueError("no task has a value to average")
    mean, n = fmean(values), len(values)
    if n == 1:
        return Estimate(value=mean, low=None, high=None, n=1)
    rng = random.Random(seed)
    means = sorted(sum(rng.choices(values, k=n)) / n for _ in range(RESAMPLES))
    tail = (1 - confidence) / 2
    return Estimate(value=mean, low=quantile(means, tail), high=quantile(means, 1 - tail), n=n)


def quantile(ordered: Sequence[float], q: float) -> float:
    """The q-quantile of ascending values, linear between neighbours (type 7 of Hyndman and Fan 1996)."""
    at = q * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


def _check(n: int, c: int, k: int | None = None) -> None:
    if n < 1:
        raise ValueError(f"n = {n}: a rate needs at least one attempt")
    if not 0 <= c <= n:
        raise ValueError(f"{c} solved of {n} attempts: must be between 0 and {n}")
    if k is not None and not 1 <= k <= n:
        raise ValueError(f"k = {k}: must be between 1 and the {n} attempts of the task")
