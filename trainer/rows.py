"""A recorded training row as the fields and the tag that veRL's trainer reads from TransferQueue. Pure: lists in, lists
out.

P prompt tokens, R response tokens. Source: veRL 0.9.1, ``trainer/ppo/v1`` (which fields are read, of which type).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from contracts.row import TrainingRow


@dataclass(frozen=True)
class RowFields:
    """One row before it becomes tensors."""

    uid: str
    """The group; must hold no underscore, veRL splits keys there."""
    prompts_P: tuple[int, ...]
    responses_R: tuple[int, ...]
    mask_R: tuple[int, ...]
    logprobs_R: tuple[float, ...]
    """0.0 where the mask is 0: veRL never reads those."""
    reward: float
    """Goes to the last token of the rollout's last row; 0.0 on the others."""
    turns: int


@dataclass(frozen=True)
class RowTag:
    """What veRL knows of a row without fetching it."""

    prompt_len: int
    response_len: int
    seq_len: int
    global_steps: int
    min_global_steps: int
    max_global_steps: int
    status: str = "success"


@dataclass(frozen=True)
class QueuedRow:
    key: str
    fields: RowFields
    tag: RowTag


def untrainable(rows: Sequence[TrainingRow]) -> str | None:
    """Why a rollout's rows cannot be trained with RL; None when they can.

    A trained token without its logprob is never given one.
    """
    if not any(sum(row.mask_R) for row in rows):
        return "no sampled token was recorded"
    for row in rows:
        logprobs = row.logprobs_R
        if logprobs is None or any(m and lp is None for m, lp in zip(row.mask_R, logprobs, strict=True)):
            return f"row {row.index} has trained tokens without a logprob"
    return None


def queued_rows(rows: Sequence[TrainingRow], *, uid: str, member: int, step: int, reward: float) -> list[QueuedRow]:
    """The rows of one rollout in veRL's shape; rows that train nothing are left out.

    Args:
        rows: what the merge made, in order; ``untrainable`` must have said None.
        uid: veRL's name of the group.
        member: 0, 1, … within the group.
        step: training step that asked for the rollout.
        reward: the rollout's, in [0, 1].
    """
    kept = [row for row in rows if sum(row.mask_R)]
    last = len(kept) - 1
    return [_queued(row, i, uid, member, step, reward if i == last else 0.0) for i, row in enumerate(kept)]


def _queued(row: TrainingRow, index: int, uid: str, member: int, step: int, reward: float) -> QueuedRow:
    assert "_" not in uid
    assert row.logprobs_R is not None
    fields = RowFields(
        uid=uid,
        prompts_P=row.prompt_ids_P,
        responses_R=row.response_ids_R,
        mask_R=row.mask_R,
        logprobs_R=tuple(
            float(lp) if m and lp is not None else 0.0 for m, lp in zip(row.mask_R, row.logprobs_R, strict=True)
        ),
        reward=reward,
        turns=row.turns,
    )
    versions = [run.version for run in row.versions]
    prompt, response = len(row.prompt_ids_P), len(row.response_ids_R)
    tag = RowTag(prompt, response, prompt + response, step, min(versions), max(versions))
    return QueuedRow(f"{uid}_{member}_{index}", fields, tag)
