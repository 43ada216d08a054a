"""Make the tiny policy's base checkpoint from a seed number: ``python -m trainer.tiny.pretrain --seed 0 --out DIR``.

Runs offline on one CPU thread. The shared prefix of the sessions is run once per step, not once per row.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated

import torch
import torch.nn.functional as F
import typer
from transformers import DynamicCache, PreTrainedTokenizerFast, Qwen3ForCausalLM

from trainer.tiny.architecture import VOCAB_SIZE, build_model
from trainer.tiny.batches import ARGUMENT_WEIGHT, Batch, argument_ids, copy_batch, session_batch, shared_prefix
from trainer.tiny.corpus import Template, draw_session, draw_templates, tokenizer_texts
from trainer.tiny.tokenizer import build_tokenizer

STEPS = 1800
SESSION_ROWS = 32
COPY_ROWS = 16
ANSWERED_EVERY = 4
"""Steps from one whose sessions go on to the last answer to the next such step; the others end with the tool call."""
TOKENIZER_SESSIONS = 400
WARMUP_STEPS = 50
MATRIX_LR = 0.02
"""Muon, for the weight matrices."""
VECTOR_LR = 1e-2
"""AdamW, for the embeddings and the norms."""


def main(
    out: Annotated[Path, typer.Option(help="Directory for the checkpoint.")],
    seed: Annotated[int, typer.Option(help="Decides the tokenizer, the weights and the text.")] = 0,
    steps: Annotated[int, typer.Option(help="Optimizer steps.", min=1)] = STEPS,
) -> None:
    """Pretrain the tiny policy and write its checkpoint."""
    torch.set_num_threads(1)
    templates = draw_templates(Random(seed))
    tokenizer = build_tokenizer(tokenizer_texts(Random(seed), templates, TOKENIZER_SESSIONS), VOCAB_SIZE)
    model = build_model(tokenizer, seed)
    typer.echo(f"{sum(p.numel() for p in model.parameters()):,} parameters, {len(tokenizer)} tokens, {steps} steps")
    started_s = time.process_time()
    for step, p in enumerate(train(model, tokenizer, templates, seed, steps), start=1):
        if step % 100 == 0 or step == steps:
            typer.echo(
                f"step {step}/{steps}  loss {p.session_loss:.3f}  copy loss {p.copy_loss:.3f}  "
                f"arguments {p.argument_accuracy:.2f}  cpu {time.process_time() - started_s:.0f} s"
            )
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    typer.echo(f"wrote {out}")


@dataclass(frozen=True)
class Progress:
    """How one optimizer step went."""

    session_loss: float
    copy_loss: float
    argument_accuracy: float
    """Share of the arguments' tokens in the commands that the model gets right, given the tokens
    before."""


def train(
    model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, templates: Sequence[Template], seed: int, steps: int
) -> Iterator[Progress]:
    """Run ``steps`` optimizer steps on freshly drawn text, yielding how each step went."""
    rng = Random(seed + 1)
    generator = torch.Generator().manual_seed(seed)
    prefix = shared_prefix()
    prefix_ids = torch.tensor([tokenizer.encode(prefix, add_special_tokens=False)])
    copied_ids = argument_ids(tokenizer, rng)
    optimizers = _optimizers(model)
    for step in range(steps):
        _set_rate(optimizers, min(1.0, (step + 1) / WARMUP_STEPS) * max(0.05, 1 - step / steps))
        sessions = [draw_session(rng, templates) for _ in range(SESSION_ROWS)]
        batch = session_batch(tokenizer, prefix, sessions, answered=step % ANSWERED_EVERY == 0)
        logits = _session_logits(model, prefix_ids, batch)
        repeats = copy_batch(generator, copied_ids, COPY_ROWS)
        session_loss, copy_loss = _loss(logits, batch), _loss(_copy_logits(model, repeats), repeats)
        (session_loss + copy_loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        yield Progress(session_loss.item(), copy_loss.item(), _argument_accuracy(logits, batch))


def _session_logits(model: Qwen3ForCausalLM, prefix_ids: torch.Tensor, batch: Batch) -> torch.Tensor:
    cache = DynamicCache(config=model.config)
    model.model(input_ids=prefix_ids, past_key_values=cache, use_cache=True)
    cache.batch_repeat_interleave(len(batch.ids_BL))
    hidden = model.model(input_ids=batch.ids_BL, past_key_values=cache, use_cache=True).last_hidden_state
    return model.lm_head(hidden[:, :-1][batch.weights_BL[:, 1:] > 0])


def _copy_logits(model: Qwen3ForCausalLM, batch: Batch) -> torch.Tensor:
    hidden = model.model(input_ids=batch.ids_BL, use_cache=False).last_hidden_state
    return model.lm_head(hidden[:, :-1][batch.weights_BL[:, 1:] > 0])


def _loss(logits: torch.Tensor, batch: Batch) -> torch.Tensor:
    weights = batch.weights_BL[:, 1:]
    said = weights > 0
    losses = F.cross_entropy(logits, batch.ids_BL[:, 1:][said], reduction="none")
    return (losses * weights[said]).sum() / weights.sum()


def _argument_accuracy(logits: torch.Tensor, batch: Batch) -> float:
    weights = batch.weights_BL[:, 1:]
    said = weights > 0
    hits = logits.argmax(-1) == batch.ids_BL[:, 1:][said]
    return hits[weights[said] == ARGUMENT_WEIGHT].float().mean().item()


def _optimizers(model: Qwen3ForCausalLM) -> list[torch.optim.Optimizer]:
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    chosen = {id(p) for p in matrices}
    vectors = [p for p in model.parameters() if id(p) not in chosen]
    return [
        torch.optim.Muon(matrices, lr=MATRIX_LR, weight_decay=0.01, momentum=0.95, adjust_lr_fn="original"),
        torch.optim.AdamW(vectors, lr=VECTOR_LR, betas=(0.9, 0.95), weight_decay=0.01),
    ]


def _set_rate(optimizers: list[torch.optim.Optimizer], factor: float) -> None:
    for optimizer, rate in zip(optimizers, (MATRIX_LR, VECTOR_LR), strict=True):
        for group in optimizer.param_groups:
            group["lr"] = rate * factor


if __name__ == "__main__":
    typer.run(main)
