import re
from random import Random

import datagen.words
from trainer.tiny.words import CONSONANTS, EXTENSIONS, VOWELS, draw_file, draw_word, split_of


def test_the_first_byte_of_the_hash_decides_the_split() -> None:
    # first bytes from `printf WORD | sha256sum`: bada 5b, kelo b0, mirtu 54, kuba 89; 0xb0 and 0x54 are multiples of 4
    assert [split_of(word) for word in ("bada", "kelo", "mirtu", "kuba")] == ["train", "eval", "eval", "train"]


def test_the_splits_share_no_word() -> None:
    rng = Random(3)
    train = {draw_word(rng, "train") for _ in range(3000)}
    held_out = {draw_word(rng, "eval") for _ in range(3000)}
    assert not train & held_out


def test_words_and_files_have_the_shape_of_the_task_generators() -> None:
    rng = Random(4)
    assert all(re.fullmatch(r"([bcdfghjklmnprstvwz][aeiou]){2,3}", draw_word(rng, "train")) for _ in range(200))
    assert all(
        re.fullmatch(r"([bcdfghjklmnprstvwz][aeiou]){2,3}\.(txt|md|log|csv|cfg|dat)", draw_file(rng, "eval"))
        for _ in range(200)
    )


def test_the_policy_and_the_task_generators_agree_on_alphabet_and_split() -> None:
    ours = (CONSONANTS, VOWELS, EXTENSIONS)
    assert ours == (datagen.words.CONSONANTS, datagen.words.VOWELS, datagen.words.EXTENSIONS)
    rng = Random(5)
    words = [draw_word(rng, split) for split in ("train", "eval") for _ in range(200)]
    assert [split_of(word) for word in words] == [datagen.words.split_of(word) for word in words]
