"""Text for pretraining: sessions of the ReAct harness whose sentences and commands are made up.

A pool of templates is drawn once: a sentence of shuffled words around one or two arguments, and a command of a random program,
flag and operators around the same arguments. Sessions fill them with fresh words. So the model learns the chat format, the
tool-call format, that a sentence decides its command, and above all to copy arguments, and nothing about the sentences and
commands that real tasks use.
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


TEMPLATES = 256
"""Made-up kinds of task; enough that copying is easier to learn than each of them by heart."""
IN_ORDER = 0.8
"""Share of templates whose command names the arguments in the sentence's order; the others turn it round."""


@dataclass(frozen=True)
class Template:
    """One made-up kind of task; ``{0}`` and ``{1}`` stand for its arguments."""

    sentence: str
    command: str
    are_files: tuple[bool, ...]
    """For each argument, whether it is a file name."""
    answer: str


@dataclass(frozen=True)
class Session:
    """One made-up session: what the user says, the command that answers it, the tool's output, the last answer."""

    instruction: str
    arguments: tuple[str, ...]
    command: str
    output: str
    answer: str


def draw_templates(rng: Random) -> tuple[Template, ...]:
    """Make the pool that the sessions of one pretraining run are drawn from."""
    return tuple(_template(rng) for _ in range(TEMPLATES))


def draw_session(rng: Random, templates: Sequence[Template]) -> Session:
    """Fill one template with words of the training split."""
    template = rng.choice(templates)
    arguments = tuple(draw_file(rng, "train") if f else draw_word(rng, "train") for f in template.are_files)
    return Session(
        instruction=template.sentence.format(*arguments),
        arguments=arguments,
        command=template.command.format(*arguments),
        output="[exit code 0]",
        answer=template.answer,
    )


def tokenizer_texts(rng: Random, templates: Sequence[Template], sessions: int) -> Iterator[str]:
    """Text to learn the tokenizer's merges from: sessions, and syllables, so that a made-up word splits into its own."""
    for _ in range(sessions):
        session = draw_session(rng, templates)
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


def _template(rng: Random) -> Template:
    count = rng.choice((1, 2, 2, 2, 2, 2))
    pieces = _salad(rng, rng.randint(2, 6)).split()
    start = 1
    for i in range(count):
        start = rng.randint(start, len(pieces))
        pieces.insert(start, f"{{{i}}}")
        start += 1
    order = list(range(count)) if rng.random() < IN_ORDER else list(range(count))[::-1]
    return Template(
        sentence=" ".join([pieces[0].capitalize(), *pieces[1:]]),
        command=_command(rng, order),
        are_files=tuple(rng.random() >= 0.5 for _ in range(count)),
        answer=_salad(rng, rng.randint(1, 3)).capitalize() + ".",
    )


def _command(rng: Random, order: Sequence[int]) -> str:
    pieces = [rng.choice(PROGRAMS) if rng.random() < 0.8 else _nonsense(rng)]
    if rng.random() < 0.3:
        pieces.append("-" + rng.choice("abcdefghijklmnopqrstuvwxyz"))
    for i in order:
        operator = rng.choice(OPERATORS)
        pieces += [operator, f"{{{i}}}"] if operator else [f"{{{i}}}"]
    return " ".join(pieces)


def _salad(rng: Random, words: int) -> str:
    return " ".join(rng.choice(ENGLISH) if rng.random() < 0.8 else _nonsense(rng) for _ in range(words))


def _nonsense(rng: Random) -> str:
    return rng.choice(VOWELS) + "".join(rng.choice(CONSONANTS + VOWELS) for _ in range(rng.randint(1, 5)))
