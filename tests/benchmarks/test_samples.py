from benchmarks.samples import LONGEST_TEXT, choose, turns
from contracts.rollout import Cause, Outcome


def test_samples_come_from_every_policy_and_show_failure_and_success(make_result):
    results = {
        policy: [make_result(task, reward, policy) for task, reward in (("a", 1.0), ("b", 1.0), ("c", 0.0))]
        for policy in ("base", "sft", "rl")
    }
    chosen = choose(results, count=5)
    assert [r.policy for r in chosen] == ["base", "base", "sft", "sft", "rl"]
    assert {r.task for r in chosen} == {"a", "b", "c"}
    assert {r.reward for r in chosen} == {0.0, 1.0}


def test_rollouts_without_a_session_or_that_failed_are_not_shown(make_result):
    unseen = make_result(session_id=None)
    failed = make_result(reward=None, outcome=Outcome.FAILED, cause=Cause.OURS)
    assert choose({"base": [unseen, failed]}) == []


def test_a_conversation_becomes_readable_turns():
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    found = turns(
        [
            {"role": "user", "content": [{"type": "text", "text": "List."}, {"type": "image_url", "image_url": {}}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "[exit code 0]"},
        ]
    )
    assert [(t.role, t.text, t.calls) for t in found] == [
        ("user", 'List.\n{"type": "image_url", "image_url": {}}', ()),
        ("assistant", "", ('bash {"command": "ls"}',)),
        ("tool", "[exit code 0]", ()),
    ]


def test_long_texts_lose_their_middle_and_say_how_much():
    text = turns([{"role": "tool", "content": "a" * LONGEST_TEXT + "b" * 10}])[0].text
    assert "[… 10 characters not shown …]" in text
    assert text.endswith("b" * 10)
