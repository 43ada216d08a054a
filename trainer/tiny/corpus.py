"""Text for pretraining: sessions of the ReAct harness in which every sentence and every command is word salad.

A sentence names one or two arguments among shuffled words; the command that answers it has a random program, flag and
operators around the same arguments. So the model learns the chat format, the tool-call format and to copy arguments, and
nothing about which command a sentence asks for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any

from trainer.tiny.tokenizer import render
from trainer.tiny.words import CONSONANTS, VOWELS, draw_file, draw_word

SYSTEM = (
    "You are an agent with a shell. Call the bash tool to act, read its output, "
    "and answer without a tool call when the task is done."
)
"""System message of the ReAct harness."""

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "bash",
            "description": "Run a shell command in the working directory.",
            "parameters": {
                "type": "object",
                "properties": {"command": {"type": "string", "description": "The command to run."}},
                "required": ["command"],
            },
        },
    }
]
"""Tool list of the ReAct harness."""

ENGLISH = (
    "a add after all and any append as at back before both by call change check close compare copy count create cut "
    "delete directory do done down drop each empty every fetch file files fill find first fix folder for from get give "
    "has hide hold how if in insert into is it join keep last leave let line lines list load look lower make many mark "
    "match merge move name new next no now number of off old on only open or order out over pack pick place print put "
    "read remove rename replace reverse save search second see send set show size skip sort sorted split start stop "
    "store swap take text that the them then this to top track trim turn under unpack up upper use value what where "
    "which with word words write"
).split()

PROGRAMS = (
    "awk basename cat chmod cmp comm cp cut date dd diff dirname du echo env expand file find fmt fold grep gzip head id "
    "join ln ls md5sum mkdir mv nl od paste pr printf rev rm rmdir sed seq shuf sort split stat strings sum tac tail tar "
    "tee test touch tr tsort uniq wc xargs yes zip"
).split()

OPERATORS = ("", "", "<", ">", ">>")
"""What may stand before an argument; nothing, twice as often."""


@dataclass(frozen=True)
class Session:
    """One made-up session: what the user says, the command that answers it, the tool's output, the last answer."""

    instruction: str
    arguments: tuple[str, ...]
    command: str
    output: str
    answer: str


def draw_session(rng: Random) -> Session:
    """Make one session of word salad around one or two arguments of the training split."""
    arguments = tuple(_argument(rng) for _ in range(rng.choice((1, 2, 2, 3))))
    code = 0 if rng.random() < 0.7 else rng.randint(1, 127)
    said = _salad(rng, rng.randint(1, 6)) + "\n" if code or rng.random() < 0.2 else ""
    return Session(
        instruction=_sentence(rng, arguments),
        arguments=arguments,
        command=_command(rng, arguments),
        output=f"{said}[exit code {code}]",
        answer=_salad(rng, rng.randint(1, 3)).capitalize() + ".",
    )


def tokenizer_texts(rng: Random, sessions: int) -> Iterator[str]:
    """Text to learn the tokenizer's merges from: sessions, and syllables, so that a made-up word splits into its own."""
    for _ in range(sessions):
        session = draw_session(rng)
        yield render([*prompt(session.instruction), *turns(session)], TOOLS)
        for consonant, vowel in product(CONSONANTS, VOWELS):
            yield f" {consonant}{vowel}"
            yield f"{consonant}{vowel}"


def prompt(instruction: str) -> list[dict[str, Any]]:
    """Messages of a session's first model call."""
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": instruction}]


def turns(session: Session) -> list[dict[str, Any]]:
    """Messages after the prompt: the tool call, its output, the last answer."""
    call = {"type": "function", "function": {"name": "bash", "arguments": {"command": session.command}}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": session.output},
        {"role": "assistant", "content": session.answer},
    ]


def _argument(rng: Random) -> str:
    return draw_word(rng, "train") if rng.random() < 0.3 else draw_file(rng, "train")


def _salad(rng: Random, words: int) -> str:
    return " ".join(rng.choice(ENGLISH) if rng.random() < 0.8 else _nonsense(rng) for _ in range(words))


def _nonsense(rng: Random) -> str:
    return rng.choice(VOWELS) + "".join(rng.choice(CONSONANTS + VOWELS) for _ in range(rng.randint(1, 5)))


def _sentence(rng: Random, arguments: Sequence[str]) -> str:
    pieces = _salad(rng, rng.randint(2, 8)).split()
    for argument in arguments:
        pieces.insert(rng.randint(1, len(pieces)), argument)
    return " ".join([pieces[0].capitalize(), *pieces[1:]])


def _command(rng: Random, arguments: Sequence[str]) -> str:
    pieces = [rng.choice(PROGRAMS) if rng.random() < 0.8 else _nonsense(rng)]
    if rng.random() < 0.3:
        pieces.append("-" + rng.choice("abcdefghijklmnopqrstuvwxyz"))
    for argument in rng.sample(arguments, len(arguments)):
        operator = rng.choice(OPERATORS)
        pieces += [operator, argument] if operator else [argument]
    return " ".join(pieces)
