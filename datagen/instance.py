"""What a family makes: one task instance as a value, before it becomes a directory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from datagen.checks import Check
from datagen.draw import Draw


@dataclass(frozen=True)
class Instance:
    """One problem with its answer."""

    instruction: str
    args: Mapping[str, str]
    """What the wording was filled with."""
    files: Mapping[str, bytes]
    """Start content of the working directory."""
    checks: tuple[Check, ...]
    """The end state that earns reward 1."""
    commands: tuple[str, ...]
    """The reference solution; each runs in a shell of its own, in the working directory."""


class Family(Protocol):
    """One kind of task. Pure: an instance follows from the draw alone."""

    name: str

    def make(self, draw: Draw) -> Instance:
        """The instance of this draw."""
        ...


def worded(draw: Draw, wordings: Sequence[str], args: Mapping[str, str]) -> str:
    """One of the wordings, filled in."""
    return draw.choice(wordings).format(**args)


def text_of(lines: Sequence[str]) -> str:
    """The lines as the content of a text file."""
    return "".join(f"{line}\n" for line in lines)


def bystander(draw: Draw) -> tuple[str, bytes]:
    """A file that the task has nothing to do with and that must survive."""
    return draw.file(), text_of([" ".join(draw.words(2)) for _ in range(2)]).encode()
