"""Fine-tuning by the real veRL trainer on a tiny model."""

import json
import random

import pytest

from contracts.row import SftRow
from trainer.config import SftConfig
from trainer.rl_layout import checkpoints_dir
from trainer.sft import read_metrics, train_sft

PROMPT = 10
ANSWER = (65, 66, 67, 68, 258)


def _rows(n: int) -> list[SftRow]:
    """Random prompts, always the same answer; the tokens after it are noise that is not trained."""
    rng = random.Random(0)
    rows = []
    for i in range(n):
        noise = tuple(rng.randrange(32, 126) for _ in range(PROMPT + 3))
        ids = (*noise[:PROMPT], *ANSWER, *noise[PROMPT:])
        mask = (*[0] * PROMPT, *[1] * len(ANSWER), *[0] * 3)
        rows.append(SftRow(session_id=f"s{i:02d}", input_ids_L=ids, loss_mask_L=mask))
    return rows


@pytest.fixture(scope="module")
def rows() -> list[SftRow]:
    return _rows(48)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_the_answer_is_learnt_and_nothing_else(tiny_policy, tmp_path, rows):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    config = SftConfig(
        model=tiny_policy, epochs=4, batch_rows=8, learning_rate=1e-2, heldout_fraction=0.1, save_every=10
    )
    path = await train_sft(config, rows, tmp_path)
    metrics = read_metrics(tmp_path)
    losses = [m.loss for m in metrics if m.loss is not None]
    assert len(losses) == 20  # 40 training rows in batches of 8, four passes
    assert losses[-1] < 0.5 * losses[0]
    assert [m.step for m in metrics if m.heldout_loss is not None] == [5, 10, 15, 20]
    assert json.loads((path / "config.json").read_text())["dtype"] == "float32"
    before = AutoModelForCausalLM.from_pretrained(tiny_policy)
    after = AutoModelForCausalLM.from_pretrained(path)
    assert (
        AutoTokenizer.from_pretrained(path).encode("AB") == [65, 66] or len(AutoTokenizer.from_pretrained(path)) > 256
    )

    def losses_of(model) -> tuple[float, float]:
        ids = torch.tensor([r.input_ids_L for r in rows])
        with torch.no_grad():
            logprobs = torch.log_softmax(model(ids).logits[:, :-1], -1).gather(2, ids[:, 1:, None])[..., 0]
        answer = slice(PROMPT - 1, PROMPT - 1 + len(ANSWER))
        return -float(logprobs[:, answer].mean()), -float(logprobs[:, answer.stop :].mean())

    answer_before, noise_before = losses_of(before)
    answer_after, noise_after = losses_of(after)
    assert answer_after < 0.5 * answer_before
    # Trained tokens only: had the noise been trained, its loss would have fallen from log 320 = 5.8 towards log 94 = 4.5.
    assert noise_after > noise_before - 0.1
    assert answer_before == pytest.approx(losses[0], abs=0.2)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_an_interrupted_run_goes_on_from_its_checkpoint(tiny_policy, tmp_path, rows):
    config = SftConfig(model=tiny_policy, epochs=1, batch_rows=8, learning_rate=1e-2, heldout_fraction=0)
    await train_sft(config, rows, tmp_path)
    first = read_metrics(tmp_path)
    path = await train_sft(config.model_copy(update={"epochs": 2}), rows, tmp_path)
    both = read_metrics(tmp_path)
    assert [m.step for m in both] == list(range(1, 13))
    assert both[:6] == first
    assert (both[6].loss or 9.9) < (first[0].loss or 0.0)
    assert path == checkpoints_dir(tmp_path) / "global_step_12" / "huggingface"
