"""The table of rollout.outcome, rule by rule."""

from typing import Any

import pytest

from contracts.harness import HarnessSpec
from contracts.rollout import Cause, Evidence, Outcome, Tail
from contracts.wire import RunnerResult, SessionState
from rollout.outcome import Truncated, Verdict, classify
from sandboxes.protocol import SandboxExit

HARNESS = HarnessSpec(name="h", description="d", argv=("h",), truncated_exit_codes=(3, 4))
COMPLETED, TRUNCATED, FAILED = Outcome.COMPLETED, Outcome.TRUNCATED, Outcome.FAILED


def judged(
    *,
    exit_code: int | None = 0,
    result: dict[str, Any] | None = None,
    no_result: bool = False,
    runner: dict[str, Any] | None = None,
    truncated: Truncated = "discard",
    **session: Any,
) -> Verdict:
    """The verdict on a good attempt with some facts changed: two calls, turn limit 2, reward 1."""
    facts = {"evidence": Evidence(agent_exit_code=exit_code), "agent_started": True, "reward": 1.0, **(result or {})}
    state = {
        "session_id": "s",
        "sealed": True,
        "calls": 2,
        "sampled_tokens": 9,
        "context_overflow": False,
        "turns_exceeded": False,
        "upstream_error": None,
        "last_heartbeat_at": None,
        "result": None if no_result else RunnerResult.model_validate(facts),
        **session,
    }
    ended = SandboxExit.model_validate({"exit_code": 0, "log": Tail(text=""), **(runner or {})})
    return classify(SessionState.model_validate(state), ended, HARNESS, 2, truncated)


@pytest.mark.parametrize(
    ("facts", "outcome", "cause", "reward"),
    [
        ({}, COMPLETED, None, 1.0),
        ({"result": {"reward": 0.0}}, COMPLETED, None, 0.0),
        ({"exit_code": 1}, COMPLETED, None, 1.0),
        ({"exit_code": -11}, COMPLETED, None, 1.0),
        ({"exit_code": None, "result": {"memory_exceeded": True, "reward": 0.0}}, COMPLETED, None, 0.0),
        ({"calls": 0}, COMPLETED, None, 1.0),
        ({"calls": 0, "result": {"reward": 0.0}}, COMPLETED, None, 0.0),
        ({"calls": 0, "exit_code": 1}, FAILED, Cause.HARNESS, None),
        ({"calls": 0, "exit_code": None, "result": {"timed_out": True}}, FAILED, Cause.HARNESS, None),
        ({"calls": 0, "result": {"agent_started": False, "reward": None}}, FAILED, Cause.HARNESS, None),
        ({"result": {"reward": None, "reward_error": "text"}}, FAILED, Cause.TASK, None),
        ({"result": {"reward": None, "error": "no user"}}, FAILED, Cause.SANDBOX, None),
        ({"upstream_error": "engine", "exit_code": 5, "calls": 0}, FAILED, Cause.UPSTREAM, None),
        ({"upstream_error": "engine", "exit_code": 5}, FAILED, Cause.UPSTREAM, None),
        ({"upstream_error": "engine", "exit_code": None, "result": {"timed_out": True}}, FAILED, Cause.UPSTREAM, None),
        ({"upstream_error": "engine", "exit_code": 0}, COMPLETED, None, 1.0),
        ({"exit_code": None, "result": {"timed_out": True}}, TRUNCATED, Cause.WALL_CLOCK, None),
        ({"exit_code": 3}, TRUNCATED, Cause.TURNS, None),
        ({"exit_code": 5, "turns_exceeded": True}, TRUNCATED, Cause.TURNS, None),
        ({"exit_code": 0, "turns_exceeded": True}, TRUNCATED, Cause.TURNS, None),
        ({"exit_code": 5, "turns_exceeded": True, "upstream_error": "engine"}, TRUNCATED, Cause.TURNS, None),
        (
            {"exit_code": 5, "turns_exceeded": True, "upstream_error": "engine", "calls": 1},
            FAILED,
            Cause.UPSTREAM,
            None,
        ),
        ({"exit_code": 5, "turns_exceeded": True, "calls": 1}, TRUNCATED, Cause.TURNS, None),
        ({"exit_code": 5, "proxy_error": "disk full"}, FAILED, Cause.OURS, None),
        ({"exit_code": 0, "proxy_error": "disk full"}, COMPLETED, None, 1.0),
        ({"exit_code": 4, "context_overflow": True}, TRUNCATED, Cause.CONTEXT_LENGTH, None),
        ({"exit_code": 1, "context_overflow": True, "calls": 0}, TRUNCATED, Cause.CONTEXT_LENGTH, None),
        ({"exit_code": 0, "context_overflow": True}, COMPLETED, None, 1.0),
        ({"no_result": True, "runner": {"exit_code": -9, "cause": "sandbox"}}, FAILED, Cause.SANDBOX, None),
        ({"no_result": True, "runner": {"exit_code": 1}}, FAILED, Cause.SANDBOX, None),
        ({"no_result": True, "runner": {"exit_code": 75}}, FAILED, Cause.OURS, None),
        ({"no_result": True, "runner": {"exit_code": 76}}, FAILED, Cause.OURS, None),
        ({"no_result": True, "runner": {"exit_code": 0}}, FAILED, Cause.OURS, None),
        ({"runner": {"exit_code": -9, "cause": "sandbox"}}, COMPLETED, None, 1.0),
    ],
)
def test_the_facts_decide(facts: dict[str, Any], outcome: Outcome, cause: Cause | None, reward: float | None):
    verdict = judged(**facts)
    assert (verdict.outcome, verdict.cause, verdict.reward) == (outcome, cause, reward)
    assert (verdict.cause is None) == (verdict.outcome is COMPLETED)


@pytest.mark.parametrize(
    ("facts", "outcome", "cause", "reward"),
    [
        ({"exit_code": 3, "result": {"reward": 0.5}}, TRUNCATED, Cause.TURNS, 0.5),
        ({"exit_code": None, "result": {"timed_out": True, "reward": 0.0}}, TRUNCATED, Cause.WALL_CLOCK, 0.0),
        ({"exit_code": 3, "result": {"reward": None, "reward_error": "NaN"}}, FAILED, Cause.TASK, None),
        ({"upstream_error": "engine", "exit_code": 5, "result": {"reward": 0.0}}, FAILED, Cause.UPSTREAM, None),
        ({"no_result": True}, FAILED, Cause.OURS, None),
    ],
)
def test_grading_truncated_attempts_gives_them_the_verifiers_reward_and_nothing_else_changes(
    facts: dict[str, Any], outcome: Outcome, cause: Cause | None, reward: float | None
):
    verdict = judged(truncated="grade", **facts)
    assert (verdict.outcome, verdict.cause, verdict.reward) == (outcome, cause, reward)


def test_a_failure_carries_no_sub_rewards_and_a_graded_attempt_keeps_them():
    assert judged(result={"sub_rewards": {"speed": 2.0}}).sub_rewards == {"speed": 2.0}
    assert judged(exit_code=3, result={"sub_rewards": {"speed": 2.0}}).sub_rewards == {}


def test_the_detail_names_what_decided():
    assert judged(result={"reward": None, "reward_error": "reward.txt is empty"}).detail == "reward.txt is empty"
    assert judged(calls=0, exit_code=127).detail == "no model call; exit code 127"
    lost = judged(no_result=True, runner={"exit_code": 1, "log": Tail(text="Traceback\nKeyError: 'x'\n")})
    assert lost.detail == "the runner left without a result, exit code 1: KeyError: 'x'"
