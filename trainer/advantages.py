"""GRPO statistics per rollout, and the weight of each row in the loss.

Lists: G rollouts of one task, B rows of a training batch.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

EPSILON = 1e-6
"""Added to the standard deviation. Source: veRL 0.9.1, ``compute_grpo_outcome_advantage``."""


@dataclass(frozen=True)
class RowKey:
    """Whose row it is. veRL's spelling is ``{uid}_{session}_{index}``."""

    group: str
    rollout: str
    """Unique within the batch."""
    padding: bool = False
    """veRL adds empty rows to make a batch divisible."""


def parse_key(key: str, padding: bool) -> RowKey:
    """Read veRL's row key."""
    group, session, _ = key.rsplit("_", 2)
    return RowKey(group, f"{group}_{session}", padding)


def group_advantages(rewards_G: Sequence[float]) -> list[float]:
    """Score each rollout of one task against its siblings.

    Args:
        rewards_G: [G] one reward per rollout of the same task, in [0, 1].
    Returns:
        [G] zero-mean advantages in units of the sample standard deviation; all 0.0 when the rewards are equal or there
        is one only.
    Source: GRPO outcome supervision, DeepSeekMath (arXiv:2402.03300), with n - 1 in the deviation as in veRL 0.9.1.
    """
    n = len(rewards_G)
    if n < 2:
        return [0.0] * n
    mean = sum(rewards_G) / n
    deviation = math.sqrt(sum((r - mean) ** 2 for r in rewards_G) / (n - 1))
    return [(r - mean) / (deviation + EPSILON) for r in rewards_G]


def row_weights(keys_B: Sequence[RowKey]) -> list[float]:
    """Factor for each row's advantages so that the batch loss is the mean over rollouts.

    veRL divides the sum of row losses by the number of rows B, padding included. PPO's clipped loss is homogeneous in
    the advantage, so a factor on the advantages is a factor on the row's loss: with B / (k R) for a row of a rollout
    that has k rows, among R rollouts that have a sibling to be compared with, each such rollout weighs 1/R whatever k
    is. A rollout alone in its group weighs 0: veRL would take its bare reward as its advantage.
    """
    rows = Counter(k.rollout for k in keys_B if not k.padding)
    members: dict[str, set[str]] = defaultdict(set)
    for k in keys_B:
        if not k.padding:
            members[k.group].add(k.rollout)
    compared = {rollout for group in members.values() if len(group) > 1 for rollout in group}
    return [
        len(keys_B) / (rows[k.rollout] * len(compared)) if k.rollout in compared and not k.padding else 0.0
        for k in keys_B
    ]
