"""One training sequence, merged from a session's calls. Made by proxy/merge, consumed by the trainer (RL and SFT).

P prompt tokens, R response tokens. A response holds sampled tokens (mask 1) and everything between them (mask 0).
"""

from pydantic import Field, model_validator

from contracts.call import Purpose, VersionRun
from contracts.config import Record


class TrainingRow(Record):
    """One root-to-leaf chain of calls as one sequence.

    Example: prompt_ids_P=(1, 2), response_ids_R=(7, 8, 3, 9), mask_R=(1, 1, 0, 1), logprobs_R=(-0.1, -0.2, None, -0.3).
    """

    session_id: str
    index: int = Field(ge=0)
    """0, 1, … within the session; the last row carries the rollout's reward."""
    prompt_ids_P: tuple[int, ...] = Field(min_length=1)
    """Tokens before the first sampled one."""
    response_ids_R: tuple[int, ...] = Field(min_length=1)
    mask_R: tuple[int, ...]
    """1 exactly on tokens that are trained in this row."""
    logprobs_R: tuple[float | None, ...] | None
    """Sampling log-probabilities; None where nothing was sampled; the whole column None when an engine gave none."""
    call_ids: tuple[str, ...]
    """The chain, root first."""
    purpose: Purpose
    turns: int
    """Calls in the chain."""
    versions: tuple[VersionRun, ...]
    """Policy versions of the sampled tokens in order; their token counts add up to the sampled tokens of the chain."""
    weight: float = Field(gt=0, le=1)
    """1/k for a session with k rows, so that each rollout weighs 1."""

    @model_validator(mode="after")
    def _aligned(self) -> "TrainingRow":
        r = len(self.response_ids_R)
        if len(self.mask_R) != r or (self.logprobs_R is not None and len(self.logprobs_R) != r):
            raise ValueError(f"row columns differ in length: {r} ids, {len(self.mask_R)} mask")
        return self


class MergeReport(Record):
    """What the merge of one session kept, dropped and found wrong; the raw material of the printed invariants."""

    session_id: str
    calls: int
    rows: int
    sampled_tokens: int
    trained_tokens: int
    dropped: dict[str, int] = Field(default_factory=dict)
    """Reason → sampled tokens not trained for it."""
    violations: dict[str, int] = Field(default_factory=dict)
    """``I1`` … ``I6`` → count; a key is absent when nothing was found."""


class SftRow(Record):
    """One supervised sequence, L tokens: a recorded teacher session through the student's renderer."""

    session_id: str
    input_ids_L: tuple[int, ...] = Field(min_length=1)
    loss_mask_L: tuple[int, ...]
    """1 exactly on what the assistant said, its stop token included."""
