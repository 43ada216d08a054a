"""Calls of a session → training rows. Pure: the same log gives the same rows, byte for byte.

The calls form a forest (a parent is followed only where its tokens were spliced). Each leaf is one row; a sampled span is trained in
the earliest row that holds it and is mask 0 in the others. Everything that is not trained is counted with its reason.

P prompt tokens, R response tokens, C completion tokens.
"""

import math
from collections import Counter
from collections.abc import Sequence

from contracts.call import Call, ParentRule, Purpose, VersionRun
from contracts.row import MergeReport, TrainingRow
from proxy.canonical import strict_hash

TRAINED_PURPOSES = frozenset({Purpose.MAIN, Purpose.SUBAGENT, Purpose.COMPACTION})


def merge(
    session_id: str, calls: Sequence[Call], limit_tokens: int | None = None
) -> tuple[tuple[TrainingRow, ...], MergeReport]:
    """Merge one session's calls.

    Args:
        calls: in the order of arrival.
        limit_tokens: longest row; longer ones lose whole turns from the tail. None: no limit.
    """
    dropped: Counter[str] = Counter()
    violations: Counter[str] = Counter(I4=_continued_undelivered(calls))
    kept = _kept(calls, dropped)
    by_id = {c.call_id: c for c in kept}
    parents = {c.parent_call_id for c in kept if _spliced(c)}
    chains = _disjoint([_within(_chain(leaf, by_id), limit_tokens) for leaf in kept if leaf.call_id not in parents])
    owned: set[str] = set()
    rows = []
    for index, chain in enumerate(chains):
        rows.append(_row(session_id, index, chain, owned, 1.0 / len(chains), violations))
        owned.update(c.call_id for c in chain)
    dropped["over_row_limit"] += sum(len(c.output_ids_C or ()) for c in kept if c.call_id not in owned)
    _count_echoes(calls, dropped)
    sampled = sum(len(c.output_ids_C or ()) for c in calls)
    trained = sum(sum(r.mask_R) for r in rows)
    if trained != sampled - sum(n for reason, n in dropped.items() if reason != "echoed_as_context"):
        violations["I1"] += 1
    if rows and not math.isclose(sum(r.weight for r in rows), 1.0, abs_tol=1e-9):
        violations["I5"] += 1
    report = MergeReport(
        session_id=session_id,
        calls=len(calls),
        rows=len(rows),
        sampled_tokens=sampled,
        trained_tokens=trained,
        dropped={k: n for k, n in sorted(dropped.items()) if n},
        violations={k: n for k, n in sorted(violations.items()) if n},
    )
    return tuple(rows), report


def _spliced(call: Call) -> bool:
    return call.parent_call_id is not None and call.parent_rule != ParentRule.UNSPLICEABLE


def _kept(calls: Sequence[Call], dropped: Counter[str]) -> list[Call]:
    """Calls that may be trained: with tokens, for a trained purpose, and not an undelivered end of a chain."""
    kept = []
    for call in calls:
        if not call.output_ids_C or call.suffix_ids_P is None:
            continue
        if call.purpose not in TRAINED_PURPOSES:
            dropped[f"purpose_{call.purpose.value}"] += len(call.output_ids_C)
        elif call.retry_of is not None:
            dropped["retry"] += len(call.output_ids_C)
        else:
            kept.append(call)
    while True:
        parents = {c.parent_call_id for c in kept}
        gone = {c.call_id for c in kept if c.delivered is False and c.call_id not in parents}
        if not gone:
            return kept
        dropped["undelivered"] += sum(len(c.output_ids_C or ()) for c in kept if c.call_id in gone)
        kept = [c for c in kept if c.call_id not in gone]


def _continued_undelivered(calls: Sequence[Call]) -> int:
    parents = {c.parent_call_id for c in calls}
    return sum(1 for c in calls if c.delivered is False and c.call_id in parents)


def _chain(leaf: Call, by_id: dict[str, Call]) -> list[Call]:
    chain = [leaf]
    while _spliced(chain[0]) and chain[0].parent_call_id in by_id:
        chain.insert(0, by_id[chain[0].parent_call_id])
    return chain


def _within(chain: list[Call], limit_tokens: int | None) -> list[Call]:
    """The longest start of a chain, in whole turns, that fits a row."""
    length = 0
    for i, call in enumerate(chain):
        length += len(call.suffix_ids_P or ()) + len(call.output_ids_C or ())
        if limit_tokens is not None and length > limit_tokens:
            return chain[:i]
    return chain


def _disjoint(chains: list[list[Call]]) -> list[list[Call]]:
    """Chains that each hold a call of their own: a chain that was cut back into another one says nothing new."""
    seen: set[str] = set()
    new = []
    for chain in chains:
        if any(c.call_id not in seen for c in chain):
            new.append(chain)
            seen.update(c.call_id for c in chain)
    return new


def _row(
    session_id: str, index: int, chain: list[Call], owned: set[str], weight: float, violations: Counter[str]
) -> TrainingRow:
    root = chain[0]
    ids: list[int] = []
    mask: list[int] = []
    logprobs: list[float | None] = []
    versions: list[VersionRun] = []
    complete = True
    for call in chain:
        glue = () if call is root else call.suffix_ids_P or ()
        output = call.output_ids_C or ()
        ids += [*glue, *output]
        mask += [0] * len(glue) + [0 if call.call_id in owned else 1] * len(output)
        given = call.logprobs_C
        if given is not None and not _honest(given, len(output)):
            violations["I2"] += 1
            given = None
        complete = complete and given is not None
        logprobs += [None] * len(glue) + list(given or [None] * len(output))
        versions += call.versions
    return TrainingRow(
        session_id=session_id,
        index=index,
        prompt_ids_P=root.suffix_ids_P or (),
        response_ids_R=tuple(ids),
        mask_R=tuple(mask),
        logprobs_R=tuple(logprobs) if complete else None,
        call_ids=tuple(c.call_id for c in chain),
        purpose=root.purpose,
        turns=len(chain),
        versions=tuple(versions),
        weight=weight,
    )


def _honest(logprobs_C: Sequence[float], length: int) -> bool:
    return len(logprobs_C) == length and all(math.isfinite(x) and x <= 1e-6 for x in logprobs_C)


def _count_echoes(calls: Sequence[Call], dropped: Counter[str]) -> None:
    """Sampled text that came back as plain context of a call that could not be spliced (I3: counted, never silent)."""
    answers: dict[str, int] = {}
    for call in calls:
        if not _spliced(call):
            for message in call.messages:
                if message.get("role") == "assistant":
                    dropped["echoed_as_context"] += answers.get(strict_hash(message), 0)
        answers[strict_hash(call.answer)] = len(call.output_ids_C or ())
