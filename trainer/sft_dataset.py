"""veRL SFT dataset of recorded token rows: nothing is tokenised again. Imports torch and pyarrow.

veRL builds it from ``data.custom_cls``. The training rows come ``data.passes`` times in one veRL epoch: resumed from a
checkpoint at the end of an epoch, veRL 0.9.1 skips the whole next one. L tokens of one row.
"""

from typing import Any

import pyarrow.parquet as pq
import torch
from torch.utils.data import Dataset


class TokenRowDataset(Dataset):
    """Columns ``input_ids`` and ``loss_mask`` of one parquet file."""

    def __init__(
        self, parquet_files: str, tokenizer: Any, config: Any, processor: Any = None, max_samples: int = -1
    ) -> None:
        self._table = pq.read_table(parquet_files, columns=["input_ids", "loss_mask"])
        self._passes = int(config.passes) if parquet_files == config.train_files else 1

    def __len__(self) -> int:
        return self._table.num_rows * self._passes

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        row = index % self._table.num_rows
        ids_L = torch.tensor(self._table["input_ids"][row].as_py(), dtype=torch.int64)
        mask_L = torch.tensor(self._table["loss_mask"][row].as_py(), dtype=torch.int64)
        return {"input_ids": ids_L, "loss_mask": mask_L, "position_ids": torch.arange(len(ids_L))}
