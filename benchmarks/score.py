"""Results of a policy → its score: success rate, pass@k, pass^k, each family, and how attempts ended. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.metrics import Estimate, mean_over_tasks, pass_at_k, pass_hat_k, pass_hat_k_plain, wilson
from contracts.config import Record
from contracts.rollout import Cause, Outcome, RolloutResult

UNKNOWN_FAMILY = "(no family)"


class Rate(Record):
    """Solved attempts among the graded ones, with a Wilson 95 % interval."""

    n: int
    """Attempts that count: completed and truncated ones."""
    solved: int
    success: float | None
    """None together with ``low`` and ``high``: no attempt counts."""
    low: float | None
    high: float | None
    failed: int
    """Attempts that failed for a reason that is not the policy's; they are in no rate."""


class FamilyScore(Record):
    """One family's part of a policy's score."""

    family: str
    rate: Rate


class KScore(Record):
    """Means over the tasks that have at least k counted attempts."""

    k: int
    pass_at: Estimate
    """pass@k: some attempt of k solves the task."""
    pass_hat: Estimate
    """pass^k, unbiased: all k attempts solve it."""
    pass_hat_plain: Estimate
    """pass^k, plain: the task's rate to the power k."""


class Ending(Record):
    """How many attempts ended in one way."""

    outcome: Outcome
    cause: Cause | None
    count: int
    example: str | None
    """The detail of the first of them that has one."""


class PolicyScore(Record):
    """One policy on the held-out tasks."""

    policy: str
    rate: Rate
    over_tasks: Estimate | None
    """The mean of the tasks' own rates with a bootstrap over tasks; None when no attempt counts."""
    per_k: tuple[KScore, ...]
    """For k = 1, 2, 4, … and the largest number of counted attempts of a task."""
    families: tuple[FamilyScore, ...]
    endings: tuple[Ending, ...]
    """Most frequent first."""
    mean_wall_s: float | None
    """Mean duration of a counted attempt, seconds."""
    mean_calls: float | None
    """Mean model calls of a counted attempt."""


def score(
    policy: str,
    results: Sequence[RolloutResult],
    families: Mapping[str, str | None],
    *,
    success_reward: float = 1.0,
    seed: int = 0,
) -> PolicyScore:
    """Score one policy.

    Args:
        results: its attempts; a truncated one without a reward counts as not solved, a failed one does not count.
        families: task name → family.
        success_reward: smallest reward that counts as solved.
    Raises:
        ValueError: a result is of another policy.
    """
    strangers = sorted({r.policy for r in results} - {policy})
    if strangers:
        raise ValueError(f"results of {', '.join(strangers)} among those of {policy!r}")
    counted = [r for r in results if r.outcome is not Outcome.FAILED]
    by_task = _tally(counted, success_reward)
    rates = [solved / n for n, solved in by_task.values()]
    return PolicyScore(
        policy=policy,
        rate=_rate(results, success_reward),
        over_tasks=mean_over_tasks(rates, seed) if rates else None,
        per_k=tuple(_k_score(by_task, k, seed) for k in _ks(by_task)),
        families=_family_scores(results, families, success_reward),
        endings=_endings(results),
        mean_wall_s=_mean(r.wall_s for r in counted),
        mean_calls=_mean(r.calls for r in counted),
    )


def solved(result: RolloutResult, success_reward: float = 1.0) -> bool:
    """Whether the attempt counts as solved."""
    return result.reward is not None and result.reward >= success_reward


def separated(lower: Rate, upper: Rate) -> bool:
    """Whether the whole interval of ``upper`` lies above the one of ``lower``."""
    return lower.high is not None and upper.low is not None and upper.low > lower.high


def _tally(counted: Iterable[RolloutResult], success_reward: float) -> dict[str, tuple[int, int]]:
    """Task name → (attempts, solved)."""
    tally: dict[str, tuple[int, int]] = {}
    for result in counted:
        n, won = tally.get(result.task, (0, 0))
        tally[result.task] = (n + 1, won + solved(result, success_reward))
    return tally


def _rate(results: Iterable[RolloutResult], success_reward: float) -> Rate:
    results = list(results)
    counted = [r for r in results if r.outcome is not Outcome.FAILED]
    n, failed = len(counted), len(results) - len(counted)
    won = sum(solved(r, success_reward) for r in counted)
    if n == 0:
        return Rate(n=0, solved=0, success=None, low=None, high=None, failed=failed)
    low, high = wilson(won, n)
    return Rate(n=n, solved=won, success=won / n, low=low, high=high, failed=failed)


def _ks(by_task: Mapping[str, tuple[int, int]]) -> list[int]:
    most = max((n for n, _ in by_task.values()), default=0)
    powers = [2**i for i in range(most.bit_length()) if 2**i <= most]
    return sorted({*powers, most} - {0})


def _k_score(by_task: Mapping[str, tuple[int, int]], k: int, seed: int) -> KScore:
    enough = [(n, c) for n, c in by_task.values() if n >= k]
    return KScore(
        k=k,
        pass_at=mean_over_tasks([pass_at_k(n, c, k) for n, c in enough], seed),
        pass_hat=mean_over_tasks([pass_hat_k(n, c, k) for n, c in enough], seed),
        pass_hat_plain=mean_over_tasks([pass_hat_k_plain(n, c, k) for n, c in enough], seed),
    )


def _family_scores(
    results: Iterable[RolloutResult], families: Mapping[str, str | None], success_reward: float
) -> tuple[FamilyScore, ...]:
    by_family: dict[str, list[RolloutResult]] = defaultdict(list)
    for result in results:
        by_family[families.get(result.task) or UNKNOWN_FAMILY].append(result)
    return tuple(
        FamilyScore(family=name, rate=_rate(found, success_reward)) for name, found in sorted(by_family.items())
    )


def _endings(results: Sequence[RolloutResult]) -> tuple[Ending, ...]:
    counts = Counter((r.outcome, r.cause) for r in results)
    examples: dict[tuple[Outcome, Cause | None], str] = {}
    for r in results:
        if r.evidence.detail is not None:
            examples.setdefault((r.outcome, r.cause), r.evidence.detail)
    return tuple(
        Ending(outcome=outcome, cause=cause, count=count, example=examples.get((outcome, cause)))
        for (outcome, cause), count in counts.most_common()
    )


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return sum(found) / len(found) if found else None
