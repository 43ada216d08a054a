"""The running batch: rows join after a prefill, all of them decode one token at a time, finished ones leave at once.

Single-threaded and without a clock: the thread that owns it is in local.py. B rows, L tokens of a row, P prompt tokens,
C completion tokens, V vocabulary.
"""

import math
import random
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from contracts.call import VersionRun
from proxy.engine import Generation
from proxy.engines import kv
from proxy.engines.draw import Knobs, KnobTensors, draw, knob_tensors

PREFILL_TOKENS = 4096
"""Most tokens of one prefill, padding included; bounds its memory and how long running rows wait for it."""


@dataclass(eq=False)
class Row:
    """One request on its way through the batch."""

    prompt_ids_P: tuple[int, ...]
    knobs: Knobs
    stop_ids: frozenset[int]
    max_tokens: int
    """Most tokens to sample; at least 1, and within the context."""
    random: random.Random
    """The row's own source of chance, one number per token: what it samples does not depend on its neighbours."""
    answer: "Future[Generation]"
    output_ids_C: list[int] = field(default_factory=list)
    logprobs_C: list[float] = field(default_factory=list)
    versions: list[VersionRun] = field(default_factory=list)
    finish: Literal["stop", "length"] | None = None

    @property
    def length(self) -> int:
        """Tokens so far, prompt included."""
        return len(self.prompt_ids_P) + len(self.output_ids_C)

    def close_run(self, version: int) -> None:
        """Ascribe the tokens sampled since the last call to ``version``."""
        tokens = len(self.output_ids_C) - sum(run.tokens for run in self.versions)
        if tokens:
            self.versions.append(VersionRun(version=version, tokens=tokens))

    def generation(self) -> Generation:
        """The finished answer."""
        assert self.finish is not None
        return Generation(tuple(self.output_ids_C), tuple(self.logprobs_C), self.finish, tuple(self.versions))

    def take(self, token_id: int, logprob: float) -> None:
        """Append one sampled token and note whether it was the last."""
        if not math.isfinite(logprob):
            raise ArithmeticError(f"the model's logits are not finite after {self.length} tokens (logprob {logprob})")
        self.output_ids_C.append(token_id)
        self.logprobs_C.append(logprob)
        if token_id in self.stop_ids:
            self.finish = "stop"
        elif len(self.output_ids_C) >= self.max_tokens:
            self.finish = "length"


class RunningBatch:
    """The rows that are being decoded and their cache."""

    def __init__(self, model: Any, vocabulary: int) -> None:
        self._model = model
        self._vocabulary = vocabulary
        self.rows: list[Row] = []
        self._cache = kv.new_cache()
        self._knobs: KnobTensors = knob_tensors([], vocabulary)

    def clear(self) -> list[Row]:
        """Take every row out and forget the cache; a row that comes back is prefilled again, with its answer so far."""
        rows, self.rows, self._cache = self.rows, [], kv.new_cache()
        return rows

    def admit(self, rows: Sequence[Row]) -> list[Row]:
        """Prefill ``rows`` (at most one group of :func:`prefill_groups`), sample a token for each and let them join.

        Returns:
            Rows that are finished already.
        """
        width = max(row.length for row in rows)
        lengths_B1 = torch.tensor([[row.length] for row in rows])
        ids_BL = torch.tensor([[0] * (width - r.length) + [*r.prompt_ids_P, *r.output_ids_C] for r in rows])
        mask_BL = _right_aligned(lengths_B1, width)
        positions_BL = (mask_BL.cumsum(-1) - 1).clamp_(min=0)
        cache = kv.new_cache()
        logits_BV = self._forward(ids_BL, mask_BL, positions_BL, cache)
        self._sample(rows, logits_BV, knob_tensors([row.knobs for row in rows], self._vocabulary))
        stay = [i for i, row in enumerate(rows) if row.finish is None]
        if stay:
            self._join([rows[i] for i in stay], cache, stay)
        return [row for row in rows if row.finish is not None]

    def step(self) -> list[Row]:
        """Decode one token of every row; returns the rows that are finished, which have left."""
        cached_B1 = torch.tensor([[row.length - 1] for row in self.rows])
        last_B1 = torch.tensor([[row.output_ids_C[-1]] for row in self.rows])
        mask_BL = _right_aligned(cached_B1 + 1, self._cache.get_seq_length() + 1)
        logits_BV = self._forward(last_B1, mask_BL, cached_B1, self._cache)
        self._sample(self.rows, logits_BV, self._knobs)
        finished = [row for row in self.rows if row.finish is not None]
        self.drop(finished)
        return finished

    def drop(self, rows: Iterable[Row]) -> None:
        """Take ``rows`` out and compact the cache."""
        gone = set(rows)
        if not gone:
            return
        keep = [i for i, row in enumerate(self.rows) if row not in gone]
        if not keep:
            self.clear()
            return
        self._keep(keep)

    def _keep(self, keep: list[int]) -> None:
        self.rows = [self.rows[i] for i in keep]
        kv.select(self._cache, keep, max(row.length for row in self.rows) - 1)
        self._knobs = knob_tensors([row.knobs for row in self.rows], self._vocabulary)

    def _join(self, rows: list[Row], cache: Any, picked: list[int]) -> None:
        kv.select(cache, picked, max(row.length for row in rows) - 1)
        if self.rows:
            kv.join(self._cache, cache)
        else:
            self._cache = cache
        self.rows = [*self.rows, *rows]
        self._knobs = knob_tensors([row.knobs for row in self.rows], self._vocabulary)

    def _forward(self, ids_BL: Tensor, mask_BL: Tensor, positions_BL: Tensor, cache: Any) -> Tensor:
        out = self._model(
            input_ids=ids_BL,
            attention_mask=mask_BL,
            position_ids=positions_BL,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return out.logits[:, -1].float()

    def _sample(self, rows: Sequence[Row], logits_BV: Tensor, knobs: KnobTensors) -> None:
        uniforms_B = torch.tensor([row.random.random() for row in rows], dtype=torch.float64)
        ids_B, logprobs_B = draw(logits_BV, knobs, uniforms_B)
        for row, token_id, logprob in zip(rows, ids_B.tolist(), logprobs_B.tolist(), strict=True):
            row.take(token_id, logprob)


def prefill_groups(rows: Iterable[Row]) -> list[list[Row]]:
    """Split ``rows`` into prefills of like length, each at most ``PREFILL_TOKENS`` with padding (or a single row)."""
    groups: list[list[Row]] = []
    for row in sorted(rows, key=lambda r: r.length):
        if groups and (len(groups[-1]) + 1) * row.length <= PREFILL_TOKENS:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def _right_aligned(lengths_B1: Tensor, width: int) -> Tensor:
    """[B, width] bool, true on the last ``lengths`` columns of each row."""
    return torch.arange(width) >= width - lengths_B1
