"""Recorded teacher sessions → supervised rows, through the student's renderer. L tokens of a row.

The teacher's calls may be text only: what is rendered is the conversation as the harness held it, and trained is what the assistant
said in it.
"""

from collections.abc import Sequence
from typing import Any, cast

from renderers import Message, Renderer, ToolSpec, build_training_sample

from contracts.call import Call, Purpose
from contracts.row import SftRow
from proxy.canonical import text_of


def sft_rows(session_id: str, calls: Sequence[Call], renderer: Renderer, max_tokens: int) -> tuple[SftRow, ...]:
    """One row per main conversation of a session; the longest chain of each root, as the later calls hold the earlier ones.

    Args:
        calls: the session's calls in order.
        renderer: the student's.
        max_tokens: rows that are longer are left out, since half a demonstration teaches to stop early.
    """
    by_id = {c.call_id: c for c in calls}
    parents = {c.parent_call_id for c in calls}
    rows = []
    for leaf in calls:
        if leaf.purpose != Purpose.MAIN or leaf.call_id in parents:
            continue
        chain = [leaf]
        while chain[0].parent_call_id is not None:
            chain.insert(0, by_id[chain[0].parent_call_id])
        messages = [m for call in chain for m in (*call.messages, call.answer)]
        sample = build_training_sample(
            renderer,
            [_message(m) for m in messages],
            tools=cast("list[ToolSpec] | None", list(chain[0].tools) if chain[0].tools else None),
            role_to_mask=lambda m: m["role"] == "assistant",
            ensure_final_stop=True,
        )
        if len(sample.token_ids) <= max_tokens:
            mask = tuple(int(x) for x in sample.loss_mask)
            rows.append(SftRow(session_id=session_id, input_ids_L=tuple(sample.token_ids), loss_mask_L=mask))
    return tuple(rows)


def _message(message: dict[str, Any]) -> Message:
    return cast(Message, message | {"content": text_of(message.get("content"))})
