"""Batches for pretraining, as tensors.

B rows, L tokens of a row, the prefix that every session shares left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import torch
from transformers import PreTrainedTokenizerFast

from trainer.tiny.corpus import TOOLS, Session, prompt, turns
from trainer.tiny.tokenizer import render
from trainer.tiny.words import draw_file

ARGUMENT_WEIGHT = 5.0
"""Loss weight of an argument's token in a command, against 1 for any other token that the assistant says."""

COPY_TOKENS = 48
"""Length of a row that repeats itself."""

_ANSWER_BEGINS = "<think>\n\n</think>\n\n"
_ANSWER_ENDS = "<|im_end|>"


@dataclass(frozen=True)
class Batch:
    """Token ids, and the loss weight of each one as a target; padding has weight 0."""

    ids_BL: torch.Tensor
    weights_BL: torch.Tensor


def shared_prefix() -> str:
    """Text that every session of the ReAct harness begins with."""
    mark = "\x00"
    return render(prompt(mark), TOOLS).partition(mark)[0].removesuffix("user\n").removesuffix("<|im_start|>")


def session_batch(
    tokenizer: PreTrainedTokenizerFast, prefix: str, sessions: Sequence[Session], answered: bool
) -> Batch:
    """Encode what follows ``prefix`` in each session: up to the tool call or, ``answered``, to the end."""
    encoded = [encode_session(tokenizer, prefix, session, answered) for session in sessions]
    length = max(len(ids) for ids, _ in encoded)
    pad = int(tokenizer.pad_token_id)  # pyright: ignore[reportArgumentType]
    return Batch(
        torch.tensor([ids + [pad] * (length - len(ids)) for ids, _ in encoded]),
        torch.tensor([weights + [0.0] * (length - len(weights)) for _, weights in encoded]),
    )


def encode_session(
    tokenizer: PreTrainedTokenizerFast, prefix: str, session: Session, answered: bool
) -> tuple[list[int], list[float]]:
    """Return the token ids after ``prefix`` and the loss weight of each: 0 for what the assistant does not say."""
    text = render([*prompt(session.instruction), *turns(session)], TOOLS).removeprefix(prefix)
    heard, call, answer = text.split(_ANSWER_BEGINS)
    said, _, output = call.partition(_ANSWER_ENDS)
    argument_ids = {i for argument in session.arguments for i in _encode(tokenizer, " " + argument)}
    pieces = [(heard + _ANSWER_BEGINS, False), (said + _ANSWER_ENDS, True)]
    if answered:
        pieces += [(output + _ANSWER_BEGINS, False), (answer.removesuffix("\n"), True)]
    ids, weights = list[int](), list[float]()
    for piece, is_said in pieces:
        piece_ids = _encode(tokenizer, piece)
        ids += piece_ids
        weights += [(ARGUMENT_WEIGHT if i in argument_ids else 1.0) if is_said else 0.0 for i in piece_ids]
    return ids, weights


def copy_batch(generator: torch.Generator, ids_V: torch.Tensor, rows: int) -> Batch:
    """Draw rows of tokens from ``ids_V`` that repeat with a period of the row's own; only the repeats have weight."""
    drawn_BL = ids_V[torch.randint(len(ids_V), (rows, COPY_TOKENS), generator=generator)]
    periods_B1 = torch.randint(3, COPY_TOKENS // 2, (rows, 1), generator=generator)
    positions_L = torch.arange(COPY_TOKENS)
    return Batch(drawn_BL.gather(1, positions_L % periods_B1), (positions_L > periods_B1).float())


def argument_ids(tokenizer: PreTrainedTokenizerFast, rng: Random) -> torch.Tensor:
    """Ids of the tokens that words and file names are made of."""
    files = (draw_file(rng, "train") for _ in range(5000))
    return torch.tensor(sorted({i for file in files for i in _encode(tokenizer, " " + file)}))


def _encode(tokenizer: PreTrainedTokenizerFast, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False)
