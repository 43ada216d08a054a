import asyncio
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from contracts.call import Sampling, VersionRun
from contracts.errors import ConfigError, ContextOverflow, EngineError
from proxy.config import LocalEngine, PinnedSampling
from proxy.engine import Generation
from proxy.engines.local import BatchedModel, LocalTokenEngine

VOCABULARY = 64
MUCH = 30_000


@contextmanager
def running(path: Path, *, max_batch: int = 8, context_tokens: int = 512, seed: int = 0) -> Iterator[BatchedModel]:
    model = BatchedModel(path, max_batch=max_batch, context_tokens=context_tokens, threads=1, seed=seed)
    model.start()
    try:
        yield model
    finally:
        model.close()


def reference(path: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager").eval()


def teacher_forced(model: Any, prompt: Sequence[int], output: Sequence[int], temperature: float = 1.0) -> list[float]:
    with torch.no_grad():
        logits_LV = model(torch.tensor([[*prompt, *output]]), use_cache=False).logits[0]
    logprobs_CV = (logits_LV[len(prompt) - 1 : -1] / temperature).log_softmax(-1)
    return logprobs_CV.gather(1, torch.tensor(output)[:, None])[:, 0].tolist()


def prompts(n: int, longest: int = 40) -> list[list[int]]:
    draw = random.Random(1)
    return [[draw.randrange(VOCABULARY) for _ in range(draw.randint(1, longest))] for _ in range(n)]


def largest_difference(a: Sequence[float], b: Sequence[float]) -> float:
    return max(abs(x - y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("name", ["qwen3", "llama", "mistral"])
async def test_logprobs_equal_teacher_forcing_one_by_one_while_rows_join_and_leave(
    name: str, checkpoints: dict[str, Path]
):
    asked = prompts(14)
    with running(checkpoints[name], max_batch=5) as model:
        answers = await asyncio.gather(
            *(model.generate(p, Sampling(max_tokens=3 + 5 * (i % 4)), [7]) for i, p in enumerate(asked))
        )
    other = reference(checkpoints[name])
    for prompt, answer in zip(asked, answers, strict=True):
        assert answer.logprobs_C is not None
        assert largest_difference(answer.logprobs_C, teacher_forced(other, prompt, answer.output_ids_C)) < 1e-5


async def test_greedy_decoding_in_a_mixed_batch_equals_a_plain_loop(checkpoints: dict[str, Path]):
    asked = prompts(6)
    greedy = Sampling(temperature=0.0, max_tokens=12)
    with running(checkpoints["llama"]) as model:
        mixed = [model.generate(p, greedy if i % 2 else Sampling(max_tokens=9), []) for i, p in enumerate(asked)]
        answers = await asyncio.gather(*mixed)
    other = reference(checkpoints["llama"])
    for prompt, answer in list(zip(asked, answers, strict=True))[1::2]:
        ids = list(prompt)
        for _ in range(12):
            with torch.no_grad():
                ids.append(int(other(torch.tensor([ids])).logits[0, -1].argmax()))
        assert list(answer.output_ids_C) == ids[len(prompt) :]
        assert largest_difference(answer.logprobs_C or (), teacher_forced(other, prompt, answer.output_ids_C)) < 1e-5


async def test_with_a_temperature_the_logprob_is_that_of_the_tempered_distribution(checkpoints: dict[str, Path]):
    prompt = prompts(1)[0]
    with running(checkpoints["qwen3"]) as model:
        answer = await model.generate(prompt, Sampling(temperature=0.7, max_tokens=20), [])
    expected = teacher_forced(reference(checkpoints["qwen3"]), prompt, answer.output_ids_C, 0.7)
    assert largest_difference(answer.logprobs_C or (), expected) < 1e-5


async def test_tokens_come_up_as_often_as_the_model_says(checkpoints: dict[str, Path]):
    with running(checkpoints["qwen3"], max_batch=64) as model:
        answers = await asyncio.gather(*(model.generate([3, 1], Sampling(max_tokens=1), []) for _ in range(2000)))
    with torch.no_grad():
        probs_V = reference(checkpoints["qwen3"])(torch.tensor([[3, 1]])).logits[0, -1].softmax(-1)
    counts_V = torch.bincount(torch.tensor([a.output_ids_C[0] for a in answers]), minlength=VOCABULARY)
    # Five standard deviations of a binomial count, fixed seed.
    allowed_V = 5 * (2000 * probs_V * (1 - probs_V)).sqrt() + 1
    assert ((counts_V - 2000 * probs_V).abs() < allowed_V).all()


async def test_the_stop_token_is_part_of_the_output_and_ends_it(checkpoints: dict[str, Path]):
    prompt, greedy = [5, 9, 2], Sampling(temperature=0.0, max_tokens=10)
    with running(checkpoints["qwen3"]) as model:
        free = await model.generate(prompt, greedy, [])
        stop = free.output_ids_C[4]
        stopped = await model.generate(prompt, greedy, [stop])
    assert free.finish == "length"
    assert stopped.finish == "stop"
    assert stopped.output_ids_C == free.output_ids_C[: free.output_ids_C.index(stop) + 1]
    assert stopped.versions == (VersionRun(version=0, tokens=len(stopped.output_ids_C)),)


async def test_an_answer_ends_where_the_context_ends_and_a_full_prompt_overflows(checkpoints: dict[str, Path]):
    with running(checkpoints["qwen3"], context_tokens=16) as model:
        last = await model.generate([1] * 15, Sampling(max_tokens=50), [])
        assert (len(last.output_ids_C), last.finish) == (1, "length")
        with pytest.raises(ContextOverflow, match="16 tokens leaves no room"):
            await model.generate([1] * 16, Sampling(max_tokens=50), [])


@pytest.mark.parametrize("prompt", [[], [VOCABULARY], [-1]])
async def test_a_prompt_that_the_model_cannot_embed_fails_alone(prompt: list[int], checkpoints: dict[str, Path]):
    with running(checkpoints["qwen3"]) as model, pytest.raises(EngineError, match="outside 0..63"):
        await model.generate(prompt, Sampling(max_tokens=2), [])


async def test_a_seeded_request_samples_the_same_whatever_its_neighbours(checkpoints: dict[str, Path]):
    seeded = Sampling(max_tokens=20, seed=11)
    with running(checkpoints["qwen3"]) as model:
        alone = await model.generate([4, 5], seeded, [])
        crowd = await asyncio.gather(
            *(model.generate(p, Sampling(max_tokens=15), []) for p in prompts(5)), model.generate([4, 5], seeded, [])
        )
    assert crowd[-1].output_ids_C == alone.output_ids_C


async def test_unseeded_requests_repeat_with_the_engine_seed_and_their_order(checkpoints: dict[str, Path]):
    async def outputs(seed: int) -> list[tuple[int, ...]]:
        with running(checkpoints["qwen3"], seed=seed) as model:
            answers = await asyncio.gather(*(model.generate([4, 5], Sampling(max_tokens=10), []) for _ in range(4)))
        return [a.output_ids_C for a in answers]

    first = await outputs(3)
    assert await outputs(3) == first
    assert await outputs(4) != first
    assert len(set(first)) == 4


async def test_weights_swap_under_a_running_request_which_goes_on_exactly_with_the_new_ones(
    checkpoints: dict[str, Path],
):
    old = reference(checkpoints["qwen3"])
    new = reference(checkpoints["qwen3"])
    with torch.no_grad():
        for parameter in new.parameters():
            parameter.mul_(1.1)
    state = {k: v for k, v in new.state_dict().items() if k != "lm_head.weight"}
    prompt = [8, 3, 60]
    with running(checkpoints["qwen3"], context_tokens=2048) as model:
        long = asyncio.create_task(model.generate(prompt, Sampling(max_tokens=600), []))
        await asyncio.sleep(0)  # lets it reach the queue first
        await model.generate([1], Sampling(max_tokens=5), [])
        await model.load_weights(state, version=7)
        assert model.version == 7
        answer = await long
        after = await model.generate(prompt, Sampling(max_tokens=8), [])
    assert [run.version for run in answer.versions] == [0, 7]
    before, rest = (run.tokens for run in answer.versions)
    assert (before >= 5, before + rest) == (True, 600)
    assert answer.logprobs_C is not None
    assert after.logprobs_C is not None
    under_old = teacher_forced(old, prompt, answer.output_ids_C)
    under_new = teacher_forced(new, prompt, answer.output_ids_C)
    assert largest_difference(answer.logprobs_C[:before], under_old[:before]) < 1e-5
    assert largest_difference(answer.logprobs_C[before:], under_new[before:]) < 5e-5  # 600 tokens deep
    assert after.versions == (VersionRun(version=7, tokens=8),)
    assert largest_difference(after.logprobs_C, teacher_forced(new, prompt, after.output_ids_C)) < 1e-5


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda s: s.pop("model.norm.weight"), "missing .'model.norm.weight'"),
        (lambda s: s.update({"model.extra": torch.zeros(1)}), "unknown .'model.extra'"),
        (
            lambda s: s.update({"model.norm.weight": torch.zeros(3)}),
            r"model.norm.weight has shape .3,., the model's .* .32,.",
        ),
        (lambda s: s.update({"lm_head.weight": torch.zeros(64, 32)}), "differ in the update"),
    ],
)
async def test_weights_that_do_not_fit_are_refused_whole(change: Any, says: str, checkpoints: dict[str, Path]):
    state = reference(checkpoints["qwen3"]).state_dict()
    change(state)
    greedy = Sampling(temperature=0.0, max_tokens=6)
    with running(checkpoints["qwen3"]) as model:
        before = await model.generate([2], greedy, [])
        with pytest.raises(EngineError, match=says):
            await model.load_weights(state, version=1)
        assert await model.generate([2], greedy, []) == before
        assert model.version == 0


async def test_a_failure_in_the_thread_reaches_every_waiter_and_the_next_request_works(checkpoints: dict[str, Path]):
    good = reference(checkpoints["llama"]).state_dict()
    broken = {name: torch.full_like(tensor, torch.nan) for name, tensor in good.items()}
    with running(checkpoints["llama"]) as model:
        await model.load_weights(broken, version=1)
        failed = await asyncio.gather(
            *(model.generate(p, Sampling(max_tokens=4), []) for p in prompts(3)), return_exceptions=True
        )
        await model.load_weights(good, version=2)
        answer = await model.generate([1], Sampling(max_tokens=4), [])
    assert [type(f) for f in failed] == [EngineError] * 3
    assert "logits are not finite" in str(failed[0])
    assert answer.versions == (VersionRun(version=2, tokens=4),)


async def test_a_cancelled_request_leaves_its_place_to_the_next(checkpoints: dict[str, Path]):
    # The endless ones would decode for minutes; the last one has room only when one of them leaves.
    endless, short = Sampling(max_tokens=MUCH), Sampling(max_tokens=3)
    with running(checkpoints["qwen3"], max_batch=2, context_tokens=MUCH + 1) as model:
        first = asyncio.create_task(model.generate([1], endless, []))
        await asyncio.sleep(0)  # lets it reach the queue first
        await model.generate([2], short, [])
        second = asyncio.create_task(model.generate([1], endless, []))
        last = asyncio.create_task(model.generate([2], short, []))
        await asyncio.sleep(0)
        first.cancel()
        answer = await asyncio.wait_for(last, 20)
        assert not second.done()
        second.cancel()
        await asyncio.wait([first, second], timeout=20)
    assert len(answer.output_ids_C) == 3
    assert first.cancelled()


async def test_closing_fails_what_is_in_flight_and_what_comes_later(checkpoints: dict[str, Path]):
    with running(checkpoints["qwen3"], max_batch=1, context_tokens=MUCH) as model:
        tasks = [asyncio.create_task(model.generate([1], Sampling(max_tokens=MUCH), [])) for _ in range(2)]
        await asyncio.sleep(0)
        model.close()
        for task in tasks:
            with pytest.raises(EngineError, match="closed"):
                await asyncio.wait_for(task, 20)
        with pytest.raises(EngineError, match="not running"):
            await model.generate([1], Sampling(max_tokens=1), [])
        with pytest.raises(EngineError, match="not running"):
            await model.load_weights({}, version=1)


def test_a_directory_without_a_checkpoint_is_a_config_error(tmp_path: Path):
    with pytest.raises(ConfigError, match="config.json is missing"):
        LocalTokenEngine(LocalEngine(model=tmp_path))


def test_a_context_longer_than_the_model_is_a_config_error(checkpoints: dict[str, Path]):
    with pytest.raises(ConfigError, match="context_tokens = 40000 is longer than the 32768 positions"):
        LocalTokenEngine(LocalEngine(model=checkpoints["llama"], context_tokens=40000))


@pytest.fixture
async def token_engine(checkpoints: dict[str, Path]) -> AsyncIterator[LocalTokenEngine]:
    config = LocalEngine(model=checkpoints["llama"], sampling=PinnedSampling(temperature=0.0), context_tokens=64)
    engine = LocalTokenEngine(config)
    yield engine
    await engine.aclose()


async def test_the_token_engine_shows_its_config_and_generates(
    token_engine: LocalTokenEngine, checkpoints: dict[str, Path]
):
    assert token_engine.context_tokens == 64
    assert token_engine.tokenizer_path == str(checkpoints["llama"])
    assert token_engine.sampling == Sampling(temperature=0.0, top_p=1.0, top_k=-1)
    pinned = token_engine.sampling.model_copy(update={"max_tokens": 5})
    one = await token_engine.generate("s1", [3, 4], pinned, [])
    assert isinstance(one, Generation)
    assert await token_engine.generate("s2", [3, 4], pinned, []) == one
