"""Which recorded attempts a report shows, and their messages as readable turns. Pure."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.score import solved
from contracts.config import Record
from contracts.rollout import Cause, Outcome, RolloutResult

LONGEST_TEXT = 4000
"""Characters of one message that are shown."""


class Sample(Record):
    """One attempt with its conversation."""

    policy: str
    task: str
    family: str | None
    outcome: Outcome
    cause: Cause | None
    reward: float | None
    messages: tuple[dict[str, Any], ...]
    """The session's messages in Chat Completions shape, the last answer included."""


class Turn(Record):
    """One message as a person reads it."""

    role: str
    text: str
    calls: tuple[str, ...] = ()
    """Tool calls, one line each: the tool and its arguments as the model wrote them."""


def choose(
    results: Mapping[str, Sequence[RolloutResult]], count: int = 5, success_reward: float = 1.0
) -> list[RolloutResult]:
    """Attempts worth reading: in turn from each policy, unsolved and solved by turns, of different tasks if there are.

    Args:
        results: policy → its attempts; only those with a recorded session are chosen.
    """
    queues = {policy: _alternating(found, success_reward) for policy, found in results.items()}
    chosen: list[RolloutResult] = []
    seen: set[str] = set()
    while len(chosen) < count and any(queues.values()):
        for queue in queues.values():
            if queue and len(chosen) < count:
                fresh = next((r for r in queue if r.task not in seen), queue[0])
                queue.remove(fresh)
                seen.add(fresh.task)
                chosen.append(fresh)
    order = list(results)
    return sorted(chosen, key=lambda r: order.index(r.policy))


def sample(result: RolloutResult, family: str | None, messages: Sequence[dict[str, Any]]) -> Sample:
    """Put a result and its session's messages together."""
    return Sample(
        policy=result.policy,
        task=result.task,
        family=family,
        outcome=result.outcome,
        cause=result.cause,
        reward=result.reward,
        messages=tuple(messages),
    )


def turns(messages: Sequence[Mapping[str, Any]]) -> list[Turn]:
    """Messages in Chat Completions shape → what a page shows; unknown content is shown as JSON."""
    return [
        Turn(
            role=str(message.get("role", "unknown")),
            text=_shortened(_text(message.get("content"))),
            calls=tuple(_shortened(_call(call)) for call in message.get("tool_calls") or ()),
        )
        for message in messages
    ]


def _alternating(results: Sequence[RolloutResult], success_reward: float) -> list[RolloutResult]:
    recorded = [r for r in results if r.session_id is not None and r.outcome is not Outcome.FAILED]
    won = [r for r in recorded if solved(r, success_reward)]
    lost = [r for r in recorded if not solved(r, success_reward)]
    majority, minority = (won, lost) if len(won) >= len(lost) else (lost, won)
    mixed = [r for pair in zip(majority, minority, strict=False) for r in pair]
    return mixed + majority[len(minority) :]


def _text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(
            part["text"] if isinstance(part, dict) and isinstance(part.get("text"), str) else json.dumps(part)
            for part in content
        )
    return json.dumps(content)


def _call(call: Any) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return json.dumps(call)
    arguments = function.get("arguments")
    return f"{function.get('name')} {arguments if isinstance(arguments, str) else json.dumps(arguments)}"


def _shortened(text: str) -> str:
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters not shown …]\n{text[-half:]}"
