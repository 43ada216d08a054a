"""Calls as a log would hold them, made by hand."""

from datetime import UTC, datetime

from contracts.call import Call, FinishReason, ParentRule, Purpose, Sampling, VersionRun


def call(
    call_id: str,
    parent: str | None,
    suffix: tuple[int, ...],
    output: tuple[int, ...],
    *,
    logprobs: tuple[float, ...] | None = None,
    rule: ParentRule | None = None,
    purpose: Purpose = Purpose.MAIN,
    delivered: bool | None = True,
    messages: tuple[dict, ...] = (),
    said: str = "",
    retry_of: str | None = None,
) -> Call:
    return Call(
        call_id=call_id, session_id="s", seq=0, dialect="openai_chat", parent_call_id=parent,
        parent_rule=rule or (ParentRule.ROOT if parent is None else ParentRule.MINTED_ID), purpose=purpose,
        messages=messages, tools=None, answer={"role": "assistant", "content": said or call_id},
        suffix_ids_P=suffix, prompt_tokens=None, output_ids_C=output,
        logprobs_C=tuple(-0.5 for _ in output) if logprobs is None else logprobs,
        versions=(VersionRun(version=1, tokens=len(output)),), requested=Sampling(), effective=Sampling(),
        finish_reason=FinishReason.STOP, tools_hash="t", system_hash="y", delivered=delivered, retry_of=retry_of,
        usage={}, started_at=datetime(2026, 1, 1, tzinfo=UTC), engine_s=0.0,
    )  # fmt: skip
