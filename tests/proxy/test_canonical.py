"""Which spellings of a message are the same message."""

import pytest

from proxy.canonical import loose_hash, strict_hash, text_of


def test_wire_spelling_does_not_matter() -> None:
    a = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a":1,"b":2}'}}],
    }
    b = {
        "content": "",
        "tool_calls": [{"function": {"arguments": '{"b": 2, "a": 1}', "name": "f"}, "id": "1"}],
        "role": "assistant",
        "refusal": None,
    }
    assert strict_hash(a) == strict_hash(b)


@pytest.mark.parametrize(
    ("a", "b"),
    [("x", "y"), ("a b", "a  b")],
)
def test_strict_tells_texts_apart(a: str, b: str) -> None:
    assert strict_hash({"role": "user", "content": a}) != strict_hash({"role": "user", "content": b})


def test_loose_forgives_white_space_but_not_words() -> None:
    assert loose_hash({"role": "user", "content": " a \n b"}) == loose_hash({"role": "user", "content": "a b"})
    assert loose_hash({"role": "user", "content": "ab"}) != loose_hash({"role": "user", "content": "a b"})


def test_images_are_part_of_the_message() -> None:
    text = {"role": "user", "content": [{"type": "text", "text": "a"}]}
    image = {
        "role": "user",
        "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "x"}}],
    }
    assert strict_hash(text) == strict_hash({"role": "user", "content": "a"})
    assert strict_hash(text) != strict_hash(image)


def test_unparsable_arguments_are_compared_as_text() -> None:
    def said(arguments: str) -> dict:
        return {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": arguments}}]}

    assert strict_hash(said('{"a": ')) == strict_hash(said('{"a": '))
    assert strict_hash(said('{"a": ')) != strict_hash(said('{"b": '))


def test_text_of_every_content_shape() -> None:
    assert [text_of(None), text_of("a"), text_of([{"type": "text", "text": "a"}, "b"])] == ["", "a", "ab"]
