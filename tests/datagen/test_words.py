import random
import re

from datagen.draw import Draw
from datagen.words import random_word, split_of


def test_the_first_byte_of_the_hash_decides_the_split() -> None:
    # first bytes from `printf WORD | sha256sum`: bada 5b, kelo b0, mirtu 54, kuba 89; 0xb0 and 0x54 are multiples of 4
    assert [split_of(word) for word in ("bada", "kelo", "mirtu", "kuba")] == ["train", "eval", "eval", "train"]


def test_words_have_two_or_three_syllables() -> None:
    rng = random.Random(1)
    shape = re.compile(r"([bcdfghjklmnprstvwz][aeiou]){2,3}")
    words = [random_word(rng, "train") for _ in range(300)]
    assert all(shape.fullmatch(word) for word in words)
    assert len(set(words)) > 280


def test_no_word_of_a_draw_is_part_of_another() -> None:
    words = Draw("sort_lines", "eval", 5, 0).words(60)
    assert not [(a, b) for a in words for b in words if a != b and a in b]
