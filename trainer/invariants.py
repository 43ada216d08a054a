"""The facts of a step's rollouts → its record: counts, and the violations of the token record's promises. Pure."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from contracts.rollout import Cause, Outcome
from contracts.row import MergeReport, TrainingRow
from trainer.records import INVARIANTS, StepRecord, StepSeconds


@dataclass(frozen=True)
class RolloutFact:
    """How one rollout of a step ended and what it gave to training."""

    rollout_id: str
    group: int
    """Index of its task within the step."""
    outcome: Outcome
    cause: Cause | None
    reward: float | None
    """Set exactly when the rollout is used."""
    rows: int = 0
    """Rows handed to the trainer; 0: the rollout left its group."""
    version: int = 0
    """Newest weights that sampled it."""
    report: MergeReport | None = None
    violations: tuple[str, ...] = ()
    """Promises found broken while the rows were read."""
    detail: str | None = None
    """Why the rollout is not used: one sentence."""


@dataclass(frozen=True)
class TrainedBatch:
    """What the trainer itself saw of the step's rows."""

    trained_tokens: int
    max_logprob_diff: float | None
    learning_rate: float | None
    seconds: StepSeconds


def broken_promises(rows: Sequence[TrainingRow]) -> tuple[str, ...]:
    """Promises that the rows of one session break; the merge itself reports the others."""
    return () if math.isclose(sum(row.weight for row in rows), 1.0, abs_tol=1e-9) else ("I5",)


def step_record(step: int, facts: Sequence[RolloutFact], batch: TrainedBatch) -> StepRecord:
    """Sum up one step."""
    used = [f for f in facts if f.rows]
    rewards: dict[int, list[float]] = defaultdict(list)
    for f in used:
        rewards[f.group].append(f.reward or 0.0)
    compared = [r for r in rewards.values() if len(r) > 1]
    failed = Counter(f.cause.value for f in facts if f.outcome == Outcome.FAILED and f.cause is not None)
    return StepRecord(
        step=step,
        policy_version=max((f.version for f in used), default=step - 1),
        rollouts=len(facts),
        completed=sum(f.outcome == Outcome.COMPLETED for f in facts),
        truncated=sum(f.outcome == Outcome.TRUNCATED for f in facts),
        failed=dict(sorted(failed.items())),
        groups=len({f.group for f in facts}),
        compared_groups=len(compared),
        flat_groups=sum(len(set(r)) == 1 for r in compared),
        rows=sum(f.rows for f in used),
        rows_per_rollout=sum(f.rows for f in used) / len(used) if used else None,
        mean_reward=sum(f.reward or 0.0 for f in used) / len(used) if used else None,
        sampled_tokens=sum(f.report.sampled_tokens for f in used if f.report),
        trained_tokens=batch.trained_tokens,
        violations=_violations(facts, used, batch),
        max_logprob_diff=batch.max_logprob_diff,
        learning_rate=batch.learning_rate,
        seconds=batch.seconds,
    )


def _violations(facts: Iterable[RolloutFact], used: Iterable[RolloutFact], batch: TrainedBatch) -> dict[str, int]:
    found: Counter[str] = Counter()
    for fact in facts:
        found.update(fact.violations)
        if fact.report is not None:
            found.update(fact.report.violations)
    # The merge counted what it handed out; the trainer counted what it put into the loss.
    if batch.trained_tokens != sum(f.report.trained_tokens for f in used if f.report):
        found["I1"] += 1
    return {name: found[name] for name in INVARIANTS}


def step_line(record: StepRecord) -> str:
    """One line for the log."""
    broken = {k: n for k, n in record.violations.items() if n} or "none"
    failed = "".join(f", {n} failed ({cause})" for cause, n in record.failed.items())
    diff = "-" if record.max_logprob_diff is None else f"{record.max_logprob_diff:.1e}"
    reward = "-" if record.mean_reward is None else f"{record.mean_reward:.3f}"
    per_rollout = "-" if record.rows_per_rollout is None else f"{record.rows_per_rollout:.2f}"
    return (
        f"step {record.step}: reward {reward}, {record.completed} completed, {record.truncated} truncated{failed}; "
        f"{per_rollout} rows/rollout, {record.trained_tokens} of {record.sampled_tokens} sampled tokens trained, "
        f"logprob diff {diff}, violations {broken}, {record.seconds.total or 0.0:.1f} s"
    )
