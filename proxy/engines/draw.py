"""Draw the next token of every row at once. Pure: logits, settings and random numbers in, ids and logprobs out.

B rows of the batch, V vocabulary; a suffix 1 is an axis of length one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Knobs:
    """Sampling settings of one row, all of them known."""

    temperature: float
    """0 means greedy; the rest is then ignored."""
    top_p: float
    """1 means all tokens."""
    top_k: int
    """-1 means all tokens."""


@dataclass(frozen=True)
class KnobTensors:
    """The rows' settings as tensors; a setting that no row uses is None, so that it costs nothing."""

    temperature_B1: Tensor | None
    top_p_B1: Tensor | None
    top_k_B1: Tensor | None
    greedy_B: Tensor | None


def knob_tensors(knobs_B: Sequence[Knobs], vocabulary: int) -> KnobTensors:
    """Stack the settings of ``knobs_B``; a greedy row keeps the untempered, unfiltered distribution."""
    greedy = [k.temperature == 0 for k in knobs_B]
    temperature = [1.0 if g else k.temperature for g, k in zip(greedy, knobs_B, strict=True)]
    top_p = [1.0 if g else k.top_p for g, k in zip(greedy, knobs_B, strict=True)]
    top_k = [vocabulary if g or k.top_k < 1 else min(k.top_k, vocabulary) for g, k in zip(greedy, knobs_B, strict=True)]
    return KnobTensors(
        temperature_B1=torch.tensor(temperature)[:, None] if any(t != 1 for t in temperature) else None,
        top_p_B1=torch.tensor(top_p)[:, None] if any(p < 1 for p in top_p) else None,
        top_k_B1=torch.tensor(top_k)[:, None] if any(k < vocabulary for k in top_k) else None,
        greedy_B=torch.tensor(greedy) if any(greedy) else None,
    )


def draw(logits_BV: Tensor, knobs: KnobTensors, uniforms_B: Tensor) -> tuple[Tensor, Tensor]:
    """Draw one token per row by inverting the cumulative distribution.

    Args:
        logits_BV: [B, V] float32.
        knobs: the rows' settings.
        uniforms_B: [B] float64 in [0, 1); the only source of chance.
    Returns:
        [B] ids and [B] their logprobs under the distribution that was drawn from: log-softmax of logits / temperature
        over the full vocabulary; with top_p or top_k below "all", renormalised over what they leave. A greedy row gets
        the likeliest token and its logprob under the untempered distribution.
    """
    if knobs.temperature_B1 is not None:
        logits_BV = logits_BV / knobs.temperature_B1
    if knobs.top_k_B1 is not None or knobs.top_p_B1 is not None:
        logits_BV = _filtered(logits_BV, knobs.top_k_B1, knobs.top_p_B1)
    logprobs_BV = logits_BV.log_softmax(-1)
    cumulative_BV = logprobs_BV.double().exp_().cumsum(-1)
    total_B1 = cumulative_BV[:, -1:]
    # Strictly below the total, so that the search ends on a token that has mass.
    target_B1 = torch.minimum(uniforms_B[:, None] * total_B1, torch.nextafter(total_B1, torch.zeros_like(total_B1)))
    ids_B1 = torch.searchsorted(cumulative_BV, target_B1, right=True).clamp_(max=logprobs_BV.shape[1] - 1)
    if knobs.greedy_B is not None:
        ids_B1 = torch.where(knobs.greedy_B[:, None], logprobs_BV.argmax(-1, keepdim=True), ids_B1)
    return ids_B1[:, 0], logprobs_BV.gather(1, ids_B1)[:, 0]


def _filtered(logits_BV: Tensor, top_k_B1: Tensor | None, top_p_B1: Tensor | None) -> Tensor:
    """Put -inf where top_k (first) and top_p (on what that leaves) forbid; the likeliest token always stays.

    Among equal logits the one with the smaller id counts as the likelier.
    """
    sorted_BV, order_BV = logits_BV.sort(dim=-1, descending=True, stable=True)
    if top_k_B1 is not None:
        rank_V = torch.arange(logits_BV.shape[1])
        sorted_BV = sorted_BV.masked_fill(rank_V >= top_k_B1, -torch.inf)
    if top_p_B1 is not None:
        probs_BV = sorted_BV.double().softmax(-1)
        before_BV = probs_BV.cumsum(-1) - probs_BV
        drop_BV = (before_BV >= top_p_B1).index_fill_(1, torch.tensor([0]), False)
        sorted_BV = sorted_BV.masked_fill(drop_BV, -torch.inf)
    return torch.empty_like(logits_BV).scatter_(1, order_BV, sorted_BV)
