"""Rows from calls, with values worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_calls import call

from contracts.call import Call, ParentRule, Purpose
from proxy.merge import merge


def test_an_append_only_chain_is_one_row_with_mask_one_exactly_on_what_was_sampled() -> None:
    rows, report = merge(
        "s", [call("a", None, (1, 2), (7, 8), logprobs=(-0.1, -0.2)), call("b", "a", (3,), (9,), logprobs=(-0.3,))]
    )
    (row,) = rows
    assert row.prompt_ids_P == (1, 2)
    assert row.response_ids_R == (7, 8, 3, 9)
    assert row.mask_R == (1, 1, 0, 1)
    assert row.logprobs_R == (-0.1, -0.2, None, -0.3)
    assert (row.turns, row.weight, row.call_ids) == (2, 1.0, ("a", "b"))
    assert (report.sampled_tokens, report.trained_tokens, report.dropped, report.violations) == (3, 3, {}, {})


def test_a_branch_carries_the_shared_start_untrained_and_both_rows_weigh_half() -> None:
    rows, report = merge("s", [call("a", None, (1,), (7,)), call("b", "a", (2,), (8,)), call("c", "a", (3,), (9,))])
    assert [r.response_ids_R for r in rows] == [(7, 2, 8), (7, 3, 9)]
    assert [r.mask_R for r in rows] == [(1, 0, 1), (0, 0, 1)]
    assert [r.weight for r in rows] == [0.5, 0.5]
    assert report.trained_tokens == report.sampled_tokens == 3


def test_a_call_that_could_not_be_spliced_is_a_row_of_its_own_and_its_echo_is_counted() -> None:
    first = call("a", None, (1,), (7, 7), said="hello")
    echo = ({"role": "user", "content": "u"}, {"role": "assistant", "content": "hello"})
    again = call("b", "a", (1, 5, 6), (8,), rule=ParentRule.UNSPLICEABLE, messages=echo)
    rows, report = merge("s", [first, again])
    assert [r.response_ids_R for r in rows] == [(7, 7), (8,)]
    assert report.dropped == {"echoed_as_context": 2}
    assert report.violations == {}


def test_auxiliary_calls_and_proven_retries_are_not_trained_but_counted() -> None:
    calls = [
        call("a", None, (1,), (7,)),
        call("t", None, (9,), (5, 5), purpose=Purpose.AUXILIARY),
        call("r", None, (1,), (6,), retry_of="a"),
    ]
    rows, report = merge("s", calls)
    assert len(rows) == 1
    assert report.dropped == {"purpose_auxiliary": 2, "retry": 1}
    assert report.violations == {}


def test_an_undelivered_last_call_is_dropped_and_its_parent_stays() -> None:
    rows, report = merge("s", [call("a", None, (1,), (7,)), call("b", "a", (2,), (8, 8), delivered=False)])
    assert rows[0].response_ids_R == (7,)
    assert report.dropped == {"undelivered": 2}
    assert report.violations == {}


def test_a_call_that_was_not_delivered_and_yet_continued_is_flagged() -> None:
    _, report = merge("s", [call("a", None, (1,), (7,), delivered=False), call("b", "a", (2,), (8,))])
    assert report.violations == {"I4": 1}


def test_missing_logprobs_leave_the_column_out_and_never_become_zero() -> None:
    bare = call("b", "a", (2,), (8,)).model_copy(update={"logprobs_C": None})
    rows, _ = merge("s", [call("a", None, (1,), (7,)), bare])
    assert rows[0].logprobs_R is None


@pytest.mark.parametrize("bad", [(float("nan"),), (0.5,), (-0.1, -0.2)])
def test_a_logprob_that_no_engine_can_have_returned_is_flagged_and_not_used(bad: tuple[float, ...]) -> None:
    rows, report = merge("s", [call("a", None, (1,), (7,)).model_copy(update={"logprobs_C": bad})])
    assert report.violations == {"I2": 1}
    assert rows[0].logprobs_R is None


def test_a_row_over_the_limit_loses_whole_turns_from_its_tail() -> None:
    calls = [call("a", None, (1, 1), (7, 7)), call("b", "a", (2,), (8, 8, 8)), call("c", "b", (3,), (9,))]
    rows, report = merge("s", calls, limit_tokens=8)
    assert rows[0].response_ids_R == (7, 7, 2, 8, 8, 8)
    assert report.dropped == {"over_row_limit": 1}
    assert report.violations == {}


def test_a_session_without_token_calls_has_no_rows() -> None:
    text_only = call("a", None, (1,), (7,)).model_copy(update={"suffix_ids_P": None, "output_ids_C": None})
    assert merge("s", [text_only])[0] == ()


@st.composite
def forests(draw: st.DrawFn) -> list[Call]:
    calls: list[Call] = []
    for i in range(draw(st.integers(1, 12))):
        parent = draw(st.sampled_from([None, *[c.call_id for c in calls]]))
        rule = (
            draw(st.sampled_from([ParentRule.MINTED_ID, ParentRule.HASH, ParentRule.UNSPLICEABLE])) if parent else None
        )
        calls.append(
            call(
                f"c{i}",
                parent,
                (100 + i, 200 + i),
                tuple(range(1000 + 10 * i, 1000 + 10 * i + draw(st.integers(1, 4)))),
                rule=rule,
                purpose=draw(st.sampled_from([Purpose.MAIN, Purpose.MAIN, Purpose.AUXILIARY])),
                delivered=draw(st.sampled_from([True, True, None, False])),
            )  # fmt: skip
        )
    return calls


@given(forests(), st.one_of(st.none(), st.integers(3, 40)))
def test_every_sampled_token_is_trained_at_most_once_and_the_rest_is_counted(
    calls: list[Call], limit: int | None
) -> None:
    rows, report = merge("s", calls, limit)
    trained = [i for r in rows for i, m in zip(r.response_ids_R, r.mask_R, strict=True) if m]
    assert len(trained) == len(set(trained)) == report.trained_tokens  # ids are unique per call in these forests
    assert set(trained) <= {i for c in calls for i in c.output_ids_C or ()}
    dropped = sum(n for reason, n in report.dropped.items() if reason != "echoed_as_context")
    assert report.trained_tokens + dropped == report.sampled_tokens
    assert {k for k in report.violations if k != "I4"} == set()
    assert not rows or abs(sum(r.weight for r in rows) - 1) < 1e-9
    assert all(any(r.mask_R) for r in rows)
    assert merge("s", calls, limit) == (rows, report)
