"""The tiny policy's own byte-level BPE tokenizer, with the control tokens and the tool tags of the Qwen3 family."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast
from transformers.utils.chat_template_utils import render_jinja_template

CONTROL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TAG_TOKENS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
"""Single tokens, but ordinary text to a decoder that skips special tokens: tool-call parsers need to see them."""

CONTEXT_TOKENS = 1024
TEMPLATE = Path(__file__).with_name("chat_template.jinja")

# How Qwen2 and later split text before BPE (Qwen/Qwen3-0.6B, tokenizer.json).
_PIECES = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def build_tokenizer(texts: Iterable[str], vocab_size: int) -> PreTrainedTokenizerFast:
    """Learn the merges from ``texts`` and attach the chat template."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence(  # pyright: ignore[reportAttributeAccessIssue]
        [
            pre_tokenizers.Split(Regex(_PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    bpe.decoder = decoders.ByteLevel()  # pyright: ignore[reportAttributeAccessIssue]
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[*CONTROL_TOKENS, *TAG_TOKENS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=_with_plain_tags(bpe),
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        model_max_length=CONTEXT_TOKENS,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = TEMPLATE.read_text()
    return tokenizer


def render(messages: list[dict[str, Any]], tools: list[Any], generate: bool = False) -> str:
    """Write a conversation as the policy reads it; with ``generate``, up to where its next answer begins."""
    texts, _ = render_jinja_template(
        [messages], tools=tools, chat_template=TEMPLATE.read_text(), add_generation_prompt=generate
    )
    return texts[0]


def _with_plain_tags(bpe: Tokenizer) -> Tokenizer:
    document = json.loads(bpe.to_str())
    for token in document["added_tokens"]:
        token["special"] = token["content"] in CONTROL_TOKENS
    return Tokenizer.from_str(json.dumps(document))
