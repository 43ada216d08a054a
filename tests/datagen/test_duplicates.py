from datagen.duplicates import jaccard, stretches, twins

LONG = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"


def test_the_later_of_two_equal_texts_is_an_exact_duplicate() -> None:
    found = twins([("a", "Sort  the\nlines"), ("b", "sort the lines"), ("c", "sort the line")], 0.8)
    assert list(found) == ["b"]
    assert (found["b"].original, found["b"].similarity, found["b"].exact) == ("a", 1.0, True)


def test_sixteen_words_have_four_stretches_of_thirteen() -> None:
    assert len(stretches(LONG)) == 4
    assert len(stretches("too short")) == 1


def test_a_changed_last_word_leaves_three_of_five_stretches_in_common() -> None:
    # 4 stretches each, 3 shared, 5 in all: 3/5
    changed = LONG.replace("sixteen", "other")
    assert jaccard(stretches(LONG), stretches(changed)) == 0.6
    assert twins([("a", LONG), ("b", changed)], 0.61) == {}
    near = twins([("a", LONG), ("b", changed)], 0.6)
    assert (near["b"].original, near["b"].similarity, near["b"].exact) == ("a", 0.6, False)


def test_texts_that_differ_in_punctuation_only_are_near_duplicates() -> None:
    found = twins([("a", "put it into x.txt"), ("b", "put it, into: x txt!")], 0.8)
    assert found["b"].similarity == 1.0
    assert not found["b"].exact


def test_short_siblings_with_other_words_are_kept() -> None:
    assert (
        twins(
            [("a", "Write the word bada to the file kuba.txt"), ("b", "Write the word fira to the file kuba.txt")], 0.1
        )
        == {}
    )
