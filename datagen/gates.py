"""From the test rollouts of one task to a verdict. Pure.

A gate run is *settled* when its rollout says something about the task, *infrastructure* when it does not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from contracts.rollout import RETRYABLE, Cause, Outcome, RolloutResult


class Gate(StrEnum):
    """What a task must show before it is published."""

    NOOP = "noop"
    """An agent that does nothing earns exactly 0."""
    ORACLE = "oracle"
    """The reference solution, played through the harness, earns 1."""


WANTED = {Gate.NOOP: 0.0, Gate.ORACLE: 1.0}


@dataclass(frozen=True)
class Finding:
    """Why a task failed its gates."""

    reason: str
    detail: str


def is_infrastructure(result: RolloutResult) -> bool:
    """Whether this rollout failed for a reason that a new try may not meet again."""
    return result.outcome is Outcome.FAILED and result.cause in RETRYABLE


def judge(results: Mapping[Gate, Sequence[RolloutResult]]) -> Finding | None:
    """The verdict over all repetitions, each represented by its last try; None: every gate passed.

    What a rollout says about the task outweighs the repetitions that could not be tried.
    """
    findings = [f for gate, repeats in results.items() if (f := _of_gate(gate, repeats)) is not None]
    return min(findings, key=lambda f: f.reason.startswith("untested"), default=None)


def _of_gate(gate: Gate, repeats: Sequence[RolloutResult]) -> Finding | None:
    broken = next((r for r in repeats if r.cause is Cause.TASK), None)
    if broken is not None:
        return Finding("verifier_broken", f"{gate} run {broken.rollout_id}: {_why(broken)}")
    cut = next((r for r in repeats if r.outcome is Outcome.TRUNCATED), None)
    if cut is not None:
        return Finding(f"{gate}_truncated", f"run {cut.rollout_id} ran into {cut.cause}: {_why(cut)}")
    rewards = [r.reward for r in repeats if r.outcome is Outcome.COMPLETED]
    if any(reward != WANTED[gate] for reward in rewards):
        seen = f"rewards of the {gate} runs: {', '.join(map(str, rewards))}, wanted {WANTED[gate]}"
        if len(set(rewards)) > 1:
            return Finding(f"{gate}_flaky", seen)
        return Finding("noop_rewarded" if gate is Gate.NOOP else "oracle_failed", seen)
    untried = next((r for r in repeats if r.outcome is Outcome.FAILED), None)
    if untried is not None:
        return Finding(f"untested: {untried.cause}", f"{gate} run {untried.rollout_id}: {_why(untried)}")
    return None


def _why(result: RolloutResult) -> str:
    return result.evidence.detail or "no detail recorded"
