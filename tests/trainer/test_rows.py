"""Recorded rows → the fields and tags of veRL."""

from contracts.call import Purpose, VersionRun
from contracts.row import TrainingRow
from trainer.rows import RowTag, queued_rows, untrainable


def _row(index: int = 0, mask=(1, 1, 0, 1), logprobs=(-0.1, -0.2, None, -0.3), weight: float = 1.0) -> TrainingRow:
    return TrainingRow(
        session_id="s",
        index=index,
        prompt_ids_P=(1, 2),
        response_ids_R=(7, 8, 3, 9),
        mask_R=mask,
        logprobs_R=logprobs,
        call_ids=("c0", "c1"),
        purpose=Purpose.MAIN,
        turns=2,
        versions=(VersionRun(version=4, tokens=2), VersionRun(version=5, tokens=1)),
        weight=weight,
    )


def test_a_row_keeps_every_token_and_logprob():
    (queued,) = queued_rows([_row()], uid="8f-ab", member=3, step=6, reward=0.5)
    assert queued.key == "8f-ab_3_0"
    assert queued.fields.prompts_P == (1, 2)
    assert queued.fields.responses_R == (7, 8, 3, 9)
    assert queued.fields.mask_R == (1, 1, 0, 1)
    assert queued.fields.logprobs_R == (-0.1, -0.2, 0.0, -0.3)
    assert queued.fields.reward == 0.5
    assert queued.fields.turns == 2
    assert queued.tag == RowTag(2, 4, 6, global_steps=6, min_global_steps=4, max_global_steps=5)


def test_only_the_last_trained_row_carries_the_reward():
    rows = [_row(0, weight=0.5), _row(1, weight=0.5), _row(2, mask=(0, 0, 0, 0))]
    queued = queued_rows(rows, uid="u", member=0, step=1, reward=1.0)
    assert [(q.key, q.fields.reward) for q in queued] == [("u_0_0", 0.0), ("u_0_1", 1.0)]


def test_logprobs_of_untrained_tokens_are_not_passed_on():
    (queued,) = queued_rows([_row(mask=(0, 0, 0, 1))], uid="u", member=0, step=1, reward=1.0)
    assert queued.fields.logprobs_R == (0.0, 0.0, 0.0, -0.3)


def test_a_trained_token_without_logprob_makes_a_rollout_untrainable():
    assert untrainable([_row()]) is None
    assert (
        untrainable([_row(), _row(1, logprobs=(-0.1, None, None, -0.3))])
        == "row 1 has trained tokens without a logprob"
    )
    assert untrainable([_row(logprobs=None)]) == "row 0 has trained tokens without a logprob"
    assert untrainable([]) == "no sampled token was recorded"
    assert untrainable([_row(mask=(0, 0, 0, 0))]) == "no sampled token was recorded"
