"""Hands rows to veRL's TransferQueue. Imports torch and veRL."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch
import transfer_queue as tq
from verl.utils.tensordict_utils import list_of_dict_to_tensordict

from trainer.rows import QueuedRow, RowFields

PARTITION = "train"


def row_tensors(fields: RowFields) -> dict[str, Any]:
    """The fields of one row as veRL reads them; integers are int64, logprobs and rewards float32."""
    prompts = torch.tensor(fields.prompts_P, dtype=torch.int64)
    responses = torch.tensor(fields.responses_R, dtype=torch.int64)
    mask = torch.tensor(fields.mask_R, dtype=torch.int64)
    scores = torch.zeros(len(responses), dtype=torch.float32)
    scores[-1] = fields.reward
    ids = torch.cat([prompts, responses])
    return {
        "uid": fields.uid,
        "prompts": prompts,
        "responses": responses,
        "input_ids": ids,
        "position_ids": torch.arange(len(ids), dtype=torch.int64),
        "response_mask": mask,
        "loss_mask": mask,
        "rollout_log_probs": torch.tensor(fields.logprobs_R, dtype=torch.float32),
        "rm_scores": scores,
        "num_turns": fields.turns,
    }


class TransferQueueSink:
    """The trainer's side of finished groups."""

    def __init__(self) -> None:
        tq.init()

    async def put(self, rows: Sequence[QueuedRow]) -> None:
        """Store the rows of one group."""
        await tq.async_kv_batch_put(
            keys=[row.key for row in rows],
            fields=list_of_dict_to_tensordict([row_tensors(row.fields) for row in rows]),
            tags=[asdict(row.tag) for row in rows],
            partition_id=PARTITION,
        )

    async def finish(self, uid: str, usable: bool) -> None:
        """Mark the group ended; a group without rows counts as ``failure``, which veRL samples too."""
        await tq.async_kv_put(key=uid, partition_id=PARTITION, tag={"status": "finished" if usable else "failure"})
