"""veRL dataset of tasks: one line of ``prompts.jsonl`` is one prompt. Imports torch.

veRL builds it from ``data.custom_cls``. The instruction is here for veRL's sake only: the harness gets it from the task
directory.
"""

import json
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset


class PromptDataset(Dataset):
    """Tasks in the order of training."""

    def __init__(
        self, data_files: Any, tokenizer: Any, config: Any, processor: Any = None, max_samples: int = -1
    ) -> None:
        path = Path(data_files if isinstance(data_files, str) else data_files[0])
        self._tasks = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def __len__(self) -> int:
        return len(self._tasks)

    def __getitem__(self, index: int) -> dict[str, Any]:
        task = self._tasks[index]
        return {
            "raw_prompt": [{"role": "user", "content": task["instruction"]}],
            "extra_info": {"index": index, "task": task["task"]},
            "data_source": "openforge",
            # veRL's collate function wants at least one tensor.
            "dummy_tensor": torch.tensor([0], dtype=torch.uint8),
        }
