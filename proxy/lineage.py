"""Which recorded call does a new request continue? Pure.

The proxy minted the tool-call ids that a harness must echo, so an echoed turn is recognised, not guessed; then the whole replayed
history is verified against what was recorded. A changed history never continues a call: it starts a new root.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contracts.call import ParentRule
from proxy.canonical import loose_hash, strict_hash


@dataclass(frozen=True)
class Turn:
    """What lineage must know of a recorded call."""

    call_id: str
    strict: tuple[str, ...]
    """Hash of every message of the request and, last, of the answer."""
    loose: tuple[str, ...]
    minted_ids: tuple[str, ...]
    """Tool-call ids in the answer."""


@dataclass(frozen=True)
class Parentage:
    """The call that a request continues, by which evidence, and what is new in the request."""

    parent_call_id: str | None
    rule: ParentRule
    new_messages: tuple[dict[str, Any], ...]
    strict: tuple[str, ...]
    """Hashes of all the request's messages, to build the Turn of the new call."""
    loose: tuple[str, ...]


def turn_of(call_id: str, parentage: Parentage, answer: Mapping[str, Any]) -> Turn:
    """The Turn of a call that was just answered."""
    return Turn(
        call_id=call_id,
        strict=(*parentage.strict, strict_hash(answer)),
        loose=(*parentage.loose, loose_hash(answer)),
        minted_ids=tuple(c["id"] for c in answer.get("tool_calls") or []),
    )


def find_parent(turns: Sequence[Turn], messages: Sequence[dict[str, Any]]) -> Parentage:
    """Find the recorded call whose answer is the last assistant turn of ``messages``.

    Args:
        turns: the session's answered calls, oldest first.
        messages: the request's messages, Chat Completions shape.
    """
    strict = tuple(strict_hash(m) for m in messages)
    loose = tuple(loose_hash(m) for m in messages)
    last = max((i for i, m in enumerate(messages) if m.get("role") == "assistant"), default=-1)
    if last < 0:
        return Parentage(None, ParentRule.ROOT, tuple(messages), strict, loose)
    end = last + 1

    def found(turn: Turn, rule: ParentRule) -> Parentage:
        return Parentage(turn.call_id, rule, tuple(messages[end:]), strict, loose)

    echoed = {c.get("id") for c in messages[last].get("tool_calls") or []} - {None}
    minted = [t for t in reversed(turns) if echoed and echoed <= set(t.minted_ids)]
    for turn in minted:
        if _same(turn, strict[:end], loose[:end], len(messages[:end])):
            return found(turn, ParentRule.MINTED_ID)
    for turn in reversed(turns):
        if turn.strict == strict[:end]:
            return found(turn, ParentRule.HASH)
    for turn in reversed(turns):
        if turn.loose == loose[:end]:
            return found(turn, ParentRule.LOOSE)
    edited = bool(minted) or any(t.strict[-1] == strict[last] for t in turns)
    rule = ParentRule.EDITED if edited else ParentRule.ROOT
    return Parentage(None, rule, tuple(messages), strict, loose)


def _same(turn: Turn, strict: tuple[str, ...], loose: tuple[str, ...], length: int) -> bool:
    if len(turn.strict) != length:
        return False
    return all(a == b or c == d for a, b, c, d in zip(turn.strict, strict, turn.loose, loose, strict=True))
