"""Made-up words and file names, split so that training and evaluation share none."""

import hashlib
from random import Random
from typing import Literal

CONSONANTS = "bcdfghjklmnprstvwz"
VOWELS = "aeiou"
EXTENSIONS = ("txt", "md", "log", "csv", "cfg", "dat")

Split = Literal["train", "eval"]


def split_of(word: str) -> Split:
    """Tell which split owns a word, by a hash of its letters: the same on every machine and for every seed."""
    return "eval" if hashlib.sha256(word.encode()).digest()[0] % 4 == 0 else "train"


def make_word(rng: Random) -> str:
    """Make a word of two or three syllables, each a consonant and a vowel."""
    return "".join(rng.choice(CONSONANTS) + rng.choice(VOWELS) for _ in range(rng.randint(2, 3)))


def draw_word(rng: Random, split: Split) -> str:
    """Make a word that ``split`` owns."""
    while split_of(word := make_word(rng)) != split:
        pass
    return word


def draw_file(rng: Random, split: Split) -> str:
    """Make a file name whose stem ``split`` owns, such as ``bakotu.csv``."""
    return f"{draw_word(rng, split)}.{rng.choice(EXTENSIONS)}"
