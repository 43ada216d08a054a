"""The shipped checkpoint and its tokenizer."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from renderers import Qwen3Renderer, Qwen3RendererConfig
from transformers import AutoModelForCausalLM, AutoTokenizer

import trainer.tiny.tokenizer
from trainer.tiny.batches import encode_session, shared_prefix
from trainer.tiny.corpus import TOOLS, Session, prompt, turns

BASE = Path(trainer.tiny.tokenizer.__file__).with_name("base")
SESSION = Session(
    instruction="Write the word bakotu to the file lima.csv",
    arguments=("bakotu", "lima.csv"),
    command="echo bakotu > lima.csv",
    output="[exit code 0]",
    answer="Done.",
)
FIRST_CALL = prompt(SESSION.instruction)
WHOLE = [*FIRST_CALL, *turns(SESSION)]
CALL = WHOLE[2]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(BASE, local_files_only=True)


@pytest.fixture(scope="module")
def renderer(tokenizer: Any) -> Qwen3Renderer:
    return Qwen3Renderer(tokenizer, Qwen3RendererConfig(enable_thinking=False))


@pytest.mark.parametrize(
    "text",
    [
        "Give bakotu.csv the new name lima.dat",
        '\n{"name": "bash", "arguments": {"command": "wc -l < a.md > b.cfg"}}\n',
        "naïve 7 × 日本\t\r\n\n  end ",
    ],
)
def test_any_text_survives_encoding_and_decoding(tokenizer: Any, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text


def test_every_control_token_and_tag_is_one_token(tokenizer: Any) -> None:
    marks = "<|endoftext|><|im_start|><|im_end|><tool_call></tool_call><tool_response></tool_response><think></think>"
    assert tokenizer.encode(marks, add_special_tokens=False) == list(range(9))
    assert (tokenizer.eos_token_id, tokenizer.pad_token_id, tokenizer.unk_token_id) == (2, 0, None)


def test_tags_stay_visible_when_special_tokens_are_skipped(tokenizer: Any) -> None:
    ids = tokenizer.encode("<tool_call>\nx\n</tool_call><|im_end|>", add_special_tokens=False)
    assert tokenizer.decode(ids, skip_special_tokens=True) == "<tool_call>\nx\n</tool_call>"


def test_made_up_words_split_into_their_syllables(tokenizer: Any) -> None:
    assert tokenizer.tokenize(" bakotu kuba.csv") == ["Ġba", "ko", "tu", "Ġku", "ba", ".csv"]


@pytest.mark.parametrize(
    ("messages", "tools", "generate"),
    [
        (FIRST_CALL, TOOLS, True),
        ([*FIRST_CALL, *turns(SESSION)[:2]], TOOLS, True),
        (WHOLE, TOOLS, False),
        ([*FIRST_CALL, CALL, {"role": "tool", "content": "a\n[exit code 1]"}, CALL, turns(SESSION)[1]], TOOLS, True),
        ([*FIRST_CALL, CALL | {"content": "I try."}, {"role": "tool", "content": ""}], TOOLS, True),
        (
            [*FIRST_CALL, CALL | {"tool_calls": CALL["tool_calls"] * 2}, *[{"role": "tool", "content": "x"}] * 2],
            TOOLS,
            True,
        ),
        (FIRST_CALL, None, True),
        (FIRST_CALL[1:], None, True),
        (FIRST_CALL[1:], TOOLS, True),
    ],
    ids=["first", "second", "whole", "two-turns", "text-and-call", "two-calls", "no-tools", "user-only", "no-system"],
)
def test_the_chat_template_writes_the_ids_of_the_renderer(
    tokenizer: Any, renderer: Qwen3Renderer, messages: list, tools: list | None, generate: bool
) -> None:
    rendered = renderer.render_ids(messages, tools=tools, add_generation_prompt=generate)
    templated = tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=generate, return_dict=False)
    assert templated == rendered


def test_pretraining_reads_the_ids_that_the_proxy_will_render(tokenizer: Any, renderer: Qwen3Renderer) -> None:
    prefix = shared_prefix()
    ids, weights = encode_session(tokenizer, prefix, SESSION, answered=True)
    whole = tokenizer.encode(prefix, add_special_tokens=False) + ids
    newline = tokenizer.encode("\n", add_special_tokens=False)
    assert whole + newline == renderer.render_ids(WHOLE, tools=TOOLS)
    said = tokenizer.decode([i for i, weight in zip(ids, weights, strict=True) if weight])
    arguments = json.dumps({"command": SESSION.command})
    assert said == (f'<tool_call>\n{{"name": "bash", "arguments": {arguments}}}\n</tool_call><|im_end|>Done.<|im_end|>')


def test_the_renderer_parses_what_the_policy_is_taught_to_write(tokenizer: Any, renderer: Qwen3Renderer) -> None:
    first = renderer.render_ids(FIRST_CALL, tools=TOOLS, add_generation_prompt=True)
    called = tokenizer.encode(
        '<tool_call>\n{"name": "bash", "arguments": {"command": "mv a.md b.md"}}\n</tool_call><|im_end|>',
        add_special_tokens=False,
    )
    parsed = renderer.parse_response(called, prompt_ids=first)
    assert [(call.name, call.arguments) for call in parsed.tool_calls] == [("bash", {"command": "mv a.md b.md"})]
    assert not parsed.content


def test_the_shipped_tokenizer_has_the_template_beside_the_code(tokenizer: Any) -> None:
    assert tokenizer.chat_template == trainer.tiny.tokenizer.TEMPLATE.read_text()


def test_the_checkpoint_is_under_a_million_parameters_and_five_megabytes() -> None:
    model = AutoModelForCausalLM.from_pretrained(BASE, local_files_only=True, dtype="auto")
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    # embeddings 1024 x 128, shared with the head; 3 layers of 4 x 128 x 128 attention, 3 x 128 x 384 MLP, 2 x 64 + 2 x 128
    # norms; the last norm 128
    assert sum(p.numel() for p in model.parameters()) == 131_072 + 3 * (65_536 + 147_456 + 384) + 128 == 771_328
    assert sum(file.stat().st_size for file in BASE.iterdir()) <= 5_000_000
    assert model.generation_config.eos_token_id == 2


def test_a_task_it_was_never_trained_for_is_rarely_solved_by_the_base_model(tokenizer: Any) -> None:
    model = AutoModelForCausalLM.from_pretrained(BASE, local_files_only=True)
    prefix = shared_prefix()
    ids, weights = encode_session(tokenizer, prefix, SESSION, answered=False)
    prefix_ids = tokenizer.encode(prefix, add_special_tokens=False)
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([prefix_ids + ids])).logits[0, len(prefix_ids) - 1 : -1]
    taken = logits.log_softmax(-1).gather(1, torch.tensor(ids)[:, None])[:, 0]
    assert taken[torch.tensor(weights) > 0].sum().exp() < 0.03
