"""Row weights and GRPO statistics, against values worked out by hand and against a loss summed without weights."""

import math

import pytest

from trainer.advantages import EPSILON, RowKey, group_advantages, parse_key, row_weights


def test_advantages_are_distances_from_the_mean_in_sample_deviations():
    # mean 0.5, deviation sqrt((0.25 + 0.25) / 1) = sqrt(0.5)
    expected = 0.5 / (math.sqrt(0.5) + EPSILON)
    assert group_advantages([1.0, 0.0]) == pytest.approx([expected, -expected])


def test_equal_rewards_and_lone_rollouts_teach_nothing():
    assert group_advantages([0.3, 0.3, 0.3]) == [0.0, 0.0, 0.0]
    assert group_advantages([1.0]) == [0.0]
    assert group_advantages([]) == []


def test_a_key_names_group_and_rollout():
    assert parse_key("8f-ab_3_1", padding=False) == RowKey("8f-ab", "8f-ab_3")


def test_rows_of_a_split_rollout_share_its_weight():
    keys = [RowKey("a", "a_0"), RowKey("a", "a_1"), RowKey("a", "a_1")]
    # B = 3 rows, R = 2 rollouts: 3/2 for the whole one, 3/4 for each half.
    assert row_weights(keys) == [1.5, 0.75, 0.75]


def test_padding_and_lone_rollouts_weigh_nothing():
    keys = [RowKey("a", "a_0"), RowKey("a", "a_1"), RowKey("b", "b_0"), RowKey("pad", "pad_0", padding=True)]
    assert row_weights(keys) == [2.0, 2.0, 0.0, 0.0]


def test_the_batch_loss_is_the_mean_over_rollouts_whatever_the_split():
    losses = {"a_0": [2.0], "a_1": [1.0, 5.0, 3.0], "b_0": [4.0, 6.0], "b_1": [8.0]}
    keys, row_losses = [], []
    for rollout, rows in losses.items():
        for loss in rows:
            keys.append(RowKey(rollout[0], rollout))
            row_losses.append(loss)
    weighted = [w * loss for w, loss in zip(row_weights(keys), row_losses, strict=True)]
    # By hand: rollout means 2, 3, 5, 8, whose mean is 4.5.
    assert sum(weighted) / len(keys) == pytest.approx(4.5)


@pytest.mark.slow
def test_verl_computes_the_same_advantages():
    import numpy as np
    import torch
    from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage

    rewards = [1.0, 0.0, 0.25, 0.5, 0.5]
    scores = torch.zeros(5, 3)
    scores[:, -1] = torch.tensor(rewards)
    index = np.array(["a", "a", "a", "b", "b"], dtype=object)
    advantages, _ = compute_grpo_outcome_advantage(scores, torch.ones(5, 3), index)
    ours = [*group_advantages(rewards[:3]), *group_advantages(rewards[3:])]
    assert advantages[:, 0].tolist() == pytest.approx(ours, abs=1e-5)


@pytest.mark.slow
def test_verl_weighs_rows_as_assumed():
    import torch
    from verl.trainer.ppo.core_algos import agg_loss

    # Three rows of different length, the last all padding; veRL divides by the number of rows, padding included.
    losses = torch.tensor([[1.0, 3.0], [5.0, 0.0], [9.0, 9.0]])
    mask = torch.tensor([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    loss = agg_loss(losses, mask, "seq-mean-token-mean", dp_size=1, global_batch_size=3)
    assert float(loss) == pytest.approx((2.0 + 5.0) / 3)
