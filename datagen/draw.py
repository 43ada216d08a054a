"""Where a family's random choices come from: one seeded source per task instance."""

import random
from collections.abc import Sequence
from typing import TypeVar

from datagen.words import EXTENSIONS, Split, random_word

T = TypeVar("T")


class Draw:
    """The choices of one instance; equal (family, split, seed, index) draw equal values.

    No word drawn contains another one of the same instance, so that searching for one never finds a part of another.
    """

    def __init__(self, family: str, split: Split, seed: int, index: int) -> None:
        self._rng = random.Random(f"{family}/{split}/{seed}/{index}")
        self._split: Split = split
        self._words: list[str] = []

    @property
    def used(self) -> tuple[str, ...]:
        """Every word drawn so far, in order."""
        return tuple(self._words)

    def word(self) -> str:
        """A fresh word of the split."""
        while True:
            word = random_word(self._rng, self._split)
            if not any(word in other or other in word for other in self._words):
                self._words.append(word)
                return word

    def words(self, n: int) -> list[str]:
        """``n`` fresh words."""
        return [self.word() for _ in range(n)]

    def file(self, extension: str | None = None) -> str:
        """A fresh file name; any of the usual extensions when none is asked for."""
        return f"{self.word()}.{extension or self.choice(EXTENSIONS)}"

    def choice(self, items: Sequence[T]) -> T:
        """One of ``items``."""
        return self._rng.choice(items)

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """``items`` in random order."""
        return self._rng.sample(items, len(items))

    def between(self, low: int, high: int) -> int:
        """An integer from ``low`` to ``high``, both included."""
        return self._rng.randint(low, high)
