"""How fast the local engine samples and how exact its logprobs are, on a random model of the tiny policy's shape."""

import asyncio
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from contracts.call import Sampling
from proxy.engine import Generation
from proxy.engines.local import BatchedModel

SHAPE: dict[str, Any] = {
    "vocab_size": 768,
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": True,
    "initializer_range": 0.1,
}
"""0.5 million parameters."""
PROMPT_TOKENS = 110
"""About a first turn of the ReAct harness."""
ANSWER_TOKENS = 64
BATCHES = (1, 8, 32)
REPEATS = 3
"""The best of these counts: other work on the machine only ever slows a run down."""


def run() -> list[dict[str, Any]]:
    """Tokens per second at each batch size, prefill included, and the largest logprob error seen on the way."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    reference = Qwen3ForCausalLM(Qwen3Config(**SHAPE)).eval()
    with tempfile.TemporaryDirectory() as scratch:
        reference.save_pretrained(scratch)
        model = BatchedModel(Path(scratch), max_batch=max(BATCHES), context_tokens=1024, threads=1, seed=0)
        model.start()
        try:
            return asyncio.run(_measure(model, reference))
        finally:
            model.close()


async def _measure(model: BatchedModel, reference: Any) -> list[dict[str, Any]]:
    chance = random.Random(0)
    sizes = [PROMPT_TOKENS + i % 9 for i in range(max(BATCHES))]
    prompts = [[chance.randrange(SHAPE["vocab_size"]) for _ in range(size)] for size in sizes]
    await _burst(model, prompts[:1])
    results: list[dict[str, Any]] = []
    worst = 0.0
    for batch in BATCHES:
        wall_s, cpu_s, answers = min([await _burst(model, prompts[:batch]) for _ in range(REPEATS)], key=lambda r: r[0])
        tokens = sum(len(answer.output_ids_C) for answer in answers)
        worst = max(worst, *(_error(reference, p, a) for p, a in zip(prompts, answers, strict=False)))
        results.append(
            {
                "name": f"engine.local.batch_{batch}",
                "value": round(tokens / wall_s),
                "unit": "sampled tokens/s",
                "per_cpu_second": round(tokens / cpu_s),
                "prompt_tokens": PROMPT_TOKENS,
                "answer_tokens": ANSWER_TOKENS,
                "threads": 1,
            }
        )
    return [*results, {"name": "engine.local.logprob_error", "value": worst, "unit": "max absolute nats vs one by one"}]


async def _burst(model: BatchedModel, prompts: Sequence[Sequence[int]]) -> tuple[float, float, list[Generation]]:
    sampling = Sampling(max_tokens=ANSWER_TOKENS)
    wall, cpu = time.perf_counter(), time.process_time()
    answers = await asyncio.gather(*(model.generate(prompt, sampling, []) for prompt in prompts))
    return time.perf_counter() - wall, time.process_time() - cpu, answers


@torch.inference_mode()
def _error(reference: Any, prompt: Sequence[int], answer: Generation) -> float:
    output = torch.tensor(answer.output_ids_C)
    logits_LV = reference(torch.tensor([[*prompt, *answer.output_ids_C]])).logits[0]
    exact_C = logits_LV[len(prompt) - 1 : -1].log_softmax(-1).gather(1, output[:, None])[:, 0]
    return float((exact_C - torch.tensor(answer.logprobs_C)).abs().max())
