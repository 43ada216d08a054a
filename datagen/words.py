"""The made-up words that stand in task arguments, and which split each belongs to.

A word's split follows from the word alone, so train and eval tasks share none, whatever the seed.
"""

import hashlib
import random
from typing import Literal

Split = Literal["train", "eval"]

SPLITS: tuple[Split, ...] = ("train", "eval")
CONSONANTS = "bcdfghjklmnprstvwz"
VOWELS = "aeiou"
EXTENSIONS = ("txt", "md", "log", "csv", "cfg", "dat")


def split_of(word: str) -> Split:
    """The split that may use ``word``: a quarter of all words is held out for eval."""
    return "eval" if hashlib.sha256(word.encode()).digest()[0] % 4 == 0 else "train"


def random_word(rng: random.Random, split: Split) -> str:
    """A word of two or three syllables, each a consonant and a vowel, that belongs to ``split``."""
    while True:
        word = "".join(rng.choice(CONSONANTS) + rng.choice(VOWELS) for _ in range(rng.randint(2, 3)))
        if split_of(word) == split:
            return word
