"""One attempt at one task: what is asked for and what came out.

`RolloutRequest` is made by the trainer's agent loop (RL) or by a flow (data generation, distillation, evaluation) and consumed by
rollout. `RolloutResult` is made by rollout and consumed by whoever asked.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from pydantic import AwareDatetime, Field

from contracts.config import Config, Record


class Limits(Config):
    """What one rollout may use."""

    wall_clock_s: float = Field(default=60.0, gt=0)
    """Longest run of the agent, seconds; the task's own limit applies when it is shorter."""
    verifier_s: float = Field(default=30.0, gt=0)
    """Longest run of the verifier, seconds; the task's own limit applies when it is shorter."""
    memory_mib: int = Field(default=512, ge=16)
    """Address space of each agent process and resident memory of all of them together, MiB."""
    processes: int = Field(default=64, ge=4)
    """Processes and threads of the agent at any one time."""
    output_kib: int = Field(default=1024, ge=1)
    """Kept tail of the agent's and the verifier's output, and largest file the agent may write, KiB times 64."""
    turns: int = Field(default=8, ge=1)
    """Model calls that the harness may make before the rollout counts as truncated."""
    context_tokens: int | None = Field(default=None, ge=16)
    """Longest prompt plus answer; None: what the policy's engine allows."""
    answer_tokens: int = Field(default=256, ge=1)
    """Longest single answer of the policy, tokens."""


class Outcome(StrEnum):
    """How a rollout ended."""

    COMPLETED = "completed"
    """Graded: the reward is the verifier's."""
    TRUNCATED = "truncated"
    """Ran into wall clock, context or turn limit."""
    FAILED = "failed"
    """Never graded, for a reason that is not the policy's; carries no reward."""


class Cause(StrEnum):
    """Whose doing a truncation or failure is."""

    WALL_CLOCK = "wall_clock"
    CONTEXT_LENGTH = "context_length"
    TURNS = "turns"
    HARNESS = "harness"
    """The agent program could not be started or crashed before its first model call."""
    TASK = "task"
    """The verifier is missing, crashed, ran too long, or wrote no number between 0 and 1."""
    SANDBOX = "sandbox"
    """The sandbox could not start, died or ran out of memory outside the agent."""
    UPSTREAM = "upstream"
    """The engine behind the proxy failed."""
    JUDGE = "judge"
    """A model that grades failed."""
    OURS = "ours"
    """The proxy, the log or the orchestrator failed, or its owner died."""


RETRYABLE = frozenset({Cause.SANDBOX, Cause.UPSTREAM, Cause.OURS})
"""Causes for which the same request may be tried again, a bounded number of times."""


class RolloutRequest(Record):
    """One attempt that somebody wants.

    Example: ``RolloutRequest(rollout_id="rl-s3-p2-g5", run_id="rl-1a2b", task=Path(".../write_file-0003"), harness="react",
    policy="policy", group_id="rl-s3-p2")``
    """

    rollout_id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]*$", max_length=200)
    """Unique within a run; names the sandbox."""
    run_id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]*$")
    """Owner of everything that is started for it."""
    task: Path
    """Task directory."""
    harness: str
    """Folder name under harness_images/."""
    policy: str
    """Name of an engine of the proxy, e.g. ``policy``, ``oracle``, ``base``."""
    group_id: str
    """Rollouts of one group are compared with each other (GRPO) or averaged (pass@k)."""
    attempt: int = Field(default=1, ge=1)
    """1 for the first try; raised when an infrastructure failure is retried."""
    limits: Limits = Field(default_factory=Limits)
    step: int | None = None
    """Training step that wants it; None outside RL."""


class Tail(Record):
    """The kept end of an output stream."""

    text: str
    dropped_bytes: int = Field(default=0, ge=0)
    """Bytes before ``text`` that were not kept."""


class Evidence(Record):
    """What the sandbox saw; the basis of outcome and cause, and what a person reads first."""

    agent_exit_code: int | None = None
    """None: never started, or killed by us."""
    agent_log: Tail | None = None
    verifier_exit_code: int | None = None
    verifier_log: Tail | None = None
    detail: str | None = None
    """One sentence naming the value that decided the cause."""


class RolloutResult(Record):
    """What came out of one attempt."""

    rollout_id: str
    group_id: str
    session_id: str | None
    """The proxy's session; None when none could be opened."""
    task: str
    """Task name."""
    harness: str
    policy: str
    attempt: int
    outcome: Outcome
    cause: Cause | None = None
    """None exactly when the outcome is ``completed``."""
    reward: float | None = Field(default=None, ge=0.0, le=1.0)
    """The verifier's number; set exactly when graded (``completed``, or ``truncated`` when grading of truncated rollouts is on)."""
    sub_rewards: dict[str, float] = Field(default_factory=dict)
    """Further finite numbers of a Harbor reward.json."""
    calls: int = 0
    """Model calls recorded."""
    sampled_tokens: int = 0
    started_at: AwareDatetime
    wall_s: float
    evidence: Evidence = Field(default_factory=Evidence)


def lost(request: RolloutRequest, detail: str, *, ended_at: datetime, wall_s: float = 0.0) -> RolloutResult:
    """The result of an attempt that never delivered one: failed, ours, without a reward."""
    return RolloutResult(
        rollout_id=request.rollout_id,
        group_id=request.group_id,
        session_id=None,
        task=request.task.name,
        harness=request.harness,
        policy=request.policy,
        attempt=request.attempt,
        outcome=Outcome.FAILED,
        cause=Cause.OURS,
        started_at=ended_at - timedelta(seconds=wall_s),
        wall_s=wall_s,
        evidence=Evidence(detail=detail),
    )
