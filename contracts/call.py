"""One model call as the proxy records it. Written by the proxy before the answer's last event leaves; read by the merge,
the viewer and the exports.

Token and logprob lists: C completion tokens, P prompt tokens.
"""

from enum import StrEnum
from typing import Any

from pydantic import AwareDatetime, Field

from contracts.config import Record


class Sampling(Record):
    """Sampling parameters. For a request: what the harness asked (None: said nothing). Effective: what the engine used."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    seed: int | None = None


class FinishReason(StrEnum):
    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"


class ParentRule(StrEnum):
    """The evidence by which a call's parent was found."""

    MINTED_ID = "minted_id"
    HASH = "hash"
    LOOSE = "loose"
    ROOT = "root"
    """No parent: a first call, a sub-agent, a compaction, an auxiliary call."""
    EDITED = "edited"
    """An echoed turn was found but its history was changed: a new root, never spliced."""
    UNSPLICEABLE = "unspliceable"
    """The parent is right but the renderer cannot continue it (or the harness declares ``history = "render"``)."""


class Purpose(StrEnum):
    MAIN = "main"
    SUBAGENT = "subagent"
    COMPACTION = "compaction"
    AUXILIARY = "auxiliary"


class VersionRun(Record):
    """A stretch of completion tokens sampled under one policy version."""

    version: int
    """Training step whose weights sampled them; 0 for weights that were never trained here."""
    tokens: int = Field(ge=0)


class Call(Record):
    """One answered model call."""

    call_id: str
    session_id: str
    seq: int
    """0, 1, 2, … in the order of arrival within the session."""
    dialect: str
    parent_call_id: str | None
    parent_rule: ParentRule
    purpose: Purpose
    messages: tuple[dict[str, Any], ...]
    """The request's new messages: all of them for a root, else those after the parent's answer. Chat Completions shape."""
    tools: tuple[dict[str, Any], ...] | None
    """The request's tools; None on a call whose parent has the same ones."""
    answer: dict[str, Any]
    """The assistant message that was served."""
    suffix_ids_P: tuple[int, ...] | None
    """Prompt tokens after (parent's prompt + parent's output); the whole prompt for a root; None for a text-only engine."""
    prompt_tokens: int | None
    """Length of the whole prompt; None for a text-only engine."""
    output_ids_C: tuple[int, ...] | None
    """Sampled ids, stop token included; None for a text-only engine."""
    logprobs_C: tuple[float, ...] | None
    """The engine's log-probability of each sampled id under the effective sampling; None when the engine gave none."""
    versions: tuple[VersionRun, ...] = ()
    requested: Sampling
    effective: Sampling
    finish_reason: FinishReason
    tools_hash: str
    system_hash: str
    delivered: bool | None = None
    """Whether the client was still there for the last event; None until that is known."""
    retry_of: str | None = None
    """Call that this one repeats, on positive evidence only."""
    usage: dict[str, int]
    """``prompt_tokens``, ``completion_tokens``."""
    started_at: AwareDatetime
    engine_s: float
    """Seconds in the engine."""
