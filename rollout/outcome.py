"""What one attempt amounts to, from what the proxy and the sandbox saw. Pure.

The first rule that fits decides:

    no result of the runner                                  failed      the back end's cause, else by exit code
    the runner failed in its own work                        failed      sandbox
    the harness could not be started                         failed      harness
    all turns answered, and another call came                truncated   turns
    a call did not fit the context, and the harness gave up  truncated   context_length
    the proxy failed, and the harness gave up                failed      ours
    the engine failed, and the harness gave up               failed      upstream
    no model call, and the harness did not end well          failed      harness
    the wall clock ran out                                   truncated   wall_clock
    a call was refused for the turn limit                    truncated   turns
    the harness says that it ran out of turns                truncated   turns
    the verifier wrote no reward                             failed      task
    anything else, a crash of the agent included             completed   graded
"""

from typing import Literal

from pydantic import Field

from contracts.config import Record
from contracts.harness import HarnessSpec
from contracts.rollout import Cause, Outcome
from contracts.wire import RunnerResult, SessionState
from sandboxes.protocol import SandboxExit

Truncated = Literal["discard", "grade"]
"""What becomes of truncated rollouts: no reward, or the verifier's."""
RUNNER_EXITS = {
    0: (Cause.OURS, "the runner posted a result that the proxy does not have"),
    75: (Cause.OURS, "the runner could not reach the proxy"),
    76: (Cause.OURS, "the runner was told to leave"),
}
"""Exit codes of harness_images/runner/runner.py; any other one is the sandbox's."""


class Verdict(Record):
    """Outcome, cause and reward of one attempt."""

    outcome: Outcome
    cause: Cause | None = None
    reward: float | None = None
    sub_rewards: dict[str, float] = Field(default_factory=dict)
    detail: str | None = None
    """One sentence naming the value that decided."""


def classify(
    session: SessionState, ended: SandboxExit, harness: HarnessSpec, turns: int, truncated: Truncated
) -> Verdict:
    """Decide outcome, cause and reward; see the module's table.

    Args:
        turns: the request's turn limit.
    """
    result = session.result
    if result is None:
        return _without_result(ended)
    verdict = (
        _not_run(result)
        or _cut_short(session, result, harness, turns)
        or Verdict(outcome=Outcome.COMPLETED, detail=result.evidence.detail)
    )
    graded = verdict.outcome is Outcome.COMPLETED or (verdict.outcome is Outcome.TRUNCATED and truncated == "grade")
    if not graded:
        return verdict
    if result.reward is None:
        return _failed(Cause.TASK, result.reward_error or "the verifier did not run")
    return verdict.model_copy(update={"reward": result.reward, "sub_rewards": result.sub_rewards})


def _without_result(ended: SandboxExit) -> Verdict:
    if ended.cause is not None:
        return _failed(ended.cause, ended.detail)
    last_words = ended.log.text.strip().rpartition("\n")[2][-300:]
    unknown = (Cause.SANDBOX, f"the runner left without a result, exit code {ended.exit_code}")
    cause, what = unknown if ended.exit_code is None else RUNNER_EXITS.get(ended.exit_code, unknown)
    return _failed(cause, f"{what}: {last_words}" if last_words else what)


def _not_run(result: RunnerResult) -> Verdict | None:
    if result.error is not None:
        return _failed(Cause.SANDBOX, result.error)
    if not result.agent_started:
        return _failed(Cause.HARNESS, result.evidence.detail or "the harness could not be started")
    return None


def _cut_short(session: SessionState, result: RunnerResult, harness: HarnessSpec, turns: int) -> Verdict | None:
    code = result.evidence.agent_exit_code
    gave_up = code != 0
    said_truncated = code in harness.truncated_exit_codes
    out_of_turns = _truncated(Cause.TURNS, f"a call came after {session.calls} answered ones, turn limit {turns}")
    if session.turns_exceeded and session.calls >= turns:
        return out_of_turns
    if session.context_overflow and gave_up:
        return _truncated(Cause.CONTEXT_LENGTH, f"call {session.calls + 1} did not fit the context")
    if session.proxy_error is not None and gave_up and not said_truncated:
        return _failed(Cause.OURS, session.proxy_error)
    if session.upstream_error is not None and gave_up and not said_truncated:
        return _failed(Cause.UPSTREAM, session.upstream_error)
    if session.calls == 0 and gave_up:
        return _failed(Cause.HARNESS, f"no model call; {result.evidence.detail or f'exit code {code}'}")
    if result.timed_out:
        return _truncated(Cause.WALL_CLOCK, result.evidence.detail)
    if session.turns_exceeded:
        return out_of_turns
    if said_truncated:
        return _truncated(Cause.TURNS, f"the harness stopped with exit code {code}")
    return None


def _failed(cause: Cause, detail: str | None) -> Verdict:
    return Verdict(outcome=Outcome.FAILED, cause=cause, detail=detail)


def _truncated(cause: Cause, detail: str | None) -> Verdict:
    return Verdict(outcome=Outcome.TRUNCATED, cause=cause, detail=detail)
