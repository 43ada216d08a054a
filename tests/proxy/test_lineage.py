"""Finding the call that a request continues."""

from contracts.call import ParentRule
from proxy.lineage import Turn, find_parent, turn_of

SYSTEM = {"role": "system", "content": "s"}
USER = {"role": "user", "content": "u"}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "ok"}


def answer(arguments: str = '{"command": "ls"}', call_id: str = "call_1", content: str | None = None) -> dict:
    call = {"id": call_id, "type": "function", "function": {"name": "bash", "arguments": arguments}}
    return {"role": "assistant", "content": content, "tool_calls": [call]}


def recorded(call_id: str, messages: list[dict], said: dict, before: tuple[Turn, ...] = ()) -> Turn:
    return turn_of(call_id, find_parent(before, messages), said)


def test_a_first_request_is_a_root_with_all_its_messages_new() -> None:
    found = find_parent((), [SYSTEM, USER])
    assert (found.parent_call_id, found.rule, found.new_messages) == (None, ParentRule.ROOT, (SYSTEM, USER))


def test_an_echoed_tool_call_is_found_by_its_minted_id() -> None:
    turn = recorded("c1", [SYSTEM, USER], answer())
    found = find_parent([turn], [SYSTEM, USER, answer(), RESULT])
    assert (found.parent_call_id, found.rule, found.new_messages) == ("c1", ParentRule.MINTED_ID, (RESULT,))


def test_reserialised_arguments_and_a_number_spelled_otherwise_are_the_same_turn() -> None:
    turn = recorded("c1", [USER], answer('{"b": 5000.0, "a": "x"}'))
    found = find_parent([turn], [USER, answer('{"a":"x","b":5000}'), RESULT])
    assert found.rule == ParentRule.MINTED_ID


def test_content_as_text_parts_and_dropped_reasoning_are_the_same_turn() -> None:
    said = {"role": "assistant", "content": "hello there", "reasoning_content": "hm"}
    turn = recorded("c1", [USER], said)
    echoed = {"role": "assistant", "content": [{"type": "text", "text": "hello there"}]}
    found = find_parent([turn], [{"role": "user", "content": [{"type": "text", "text": "u"}]}, echoed, USER])
    assert (found.parent_call_id, found.rule) == ("c1", ParentRule.HASH)


def test_trimmed_text_is_found_by_the_loose_hash() -> None:
    turn = recorded("c1", [USER], {"role": "assistant", "content": "  hello\n there \n"})
    found = find_parent([turn], [USER, {"role": "assistant", "content": "hello there"}, USER])
    assert (found.parent_call_id, found.rule) == ("c1", ParentRule.LOOSE)


def test_an_edited_echo_starts_a_new_root_and_is_never_spliced() -> None:
    turn = recorded("c1", [USER], answer())
    found = find_parent([turn], [USER, answer('{"command": "rm"}'), RESULT])
    assert (found.parent_call_id, found.rule) == (None, ParentRule.EDITED)
    assert len(found.new_messages) == 3


def test_an_edited_earlier_message_starts_a_new_root() -> None:
    turn = recorded("c1", [SYSTEM, USER], answer())
    found = find_parent([turn], [SYSTEM, {"role": "user", "content": "else"}, answer(), RESULT])
    assert (found.parent_call_id, found.rule) == (None, ParentRule.EDITED)


def test_two_samples_of_the_same_prompt_are_told_apart_by_their_ids() -> None:
    first = recorded("c1", [USER], answer(call_id="call_1"))
    second = recorded("c2", [USER], answer(call_id="call_2"))
    found = find_parent([first, second], [USER, answer(call_id="call_1"), RESULT])
    assert found.parent_call_id == "c1"


def test_an_assistant_turn_that_nobody_here_said_is_a_root() -> None:
    turn = recorded("c1", [USER], answer())
    found = find_parent([turn], [USER, {"role": "assistant", "content": "few-shot example"}, USER])
    assert (found.parent_call_id, found.rule) == (None, ParentRule.ROOT)
