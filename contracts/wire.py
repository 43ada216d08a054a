"""Bodies of the proxy's own HTTP API (the model API speaks the harnesses' dialects instead).

    who            route                              body → answer
    orchestrator   POST /api/sessions                 OpenSession → SessionOpened        bearer: admin secret
    orchestrator   GET  /api/sessions/{id}            → SessionState
    orchestrator   POST /api/sessions/{id}/seal       → SessionState
    orchestrator   GET  /api/sessions/{id}/rows       → RowsAnswer
    orchestrator   POST /api/queue/lease              LeaseAsk → Leases                  waits up to wait_s
    orchestrator   POST /api/queue/renew              LeaseRenew → {}
    orchestrator   POST /api/queue/finish             RolloutResult → {}
    runner         GET  /runner/work                  → Work                             bearer: runner secret
    runner         POST /runner/heartbeat             Heartbeat → HeartbeatAnswer
    runner         POST /runner/agent-dead            {} → Verifier                      seals the model secret first
    runner         POST /runner/result                RunnerResult → {}                  once; a second one gets 409
    harness        POST /s/{session_id}/v1/chat/completions, GET /s/{session_id}/v1/models   bearer: model secret
    anyone         GET  /health, GET /metrics

Bundles are uncompressed tar files in base64: small, deterministic, readable with the standard library.
"""

from pydantic import AwareDatetime, Field

from contracts.config import Record
from contracts.harness import HarnessSpec
from contracts.rollout import Evidence, Limits, RolloutRequest, RolloutResult
from contracts.row import MergeReport, TrainingRow


class OpenSession(Record):
    """What the orchestrator hands over for one attempt: everything the sandbox will pull."""

    request: RolloutRequest
    harness: HarnessSpec
    instruction: str
    workspace_tar: str
    """Start content of the working directory."""
    harness_tar: str
    """The harness's payload files."""
    tests_tar: str
    """The verifier; handed out only after the agent is dead."""
    script: tuple[str, ...] | None = None
    """Shell commands of the reference solution, for a ``scripted`` policy."""


class SessionOpened(Record):
    session_id: str
    runner_secret: str
    """Goes to the sandbox; the model secret is only inside Work."""


class Work(Record):
    """What the runner does."""

    session_id: str
    harness: HarnessSpec
    instruction: str
    workspace_tar: str
    harness_tar: str
    base_url_path: str
    """Path to append to the proxy's URL for ``{base_url}``, e.g. ``/s/abc``."""
    model: str
    """Model name the harness should send."""
    model_secret: str
    limits: Limits


class Heartbeat(Record):
    phase: str
    """``agent`` or ``verifier``."""
    log_tail: str = ""


class HeartbeatAnswer(Record):
    stop: bool
    """True: the session is sealed; kill everything and leave."""


class Verifier(Record):
    tests_tar: str


class RunnerResult(Record):
    """What the runner saw. Facts only: outcome and cause are decided by rollout/outcome."""

    evidence: Evidence
    agent_started: bool
    timed_out: bool = False
    """The agent ran into its wall clock."""
    memory_exceeded: bool = False
    """The agent was killed for memory."""
    reward: float | None = None
    """The verifier's number; None with ``reward_error`` set, or when nothing was graded."""
    sub_rewards: dict[str, float] = Field(default_factory=dict)
    reward_error: str | None = None
    """Why there is no reward although the verifier ran: one sentence."""
    error: str | None = None
    """The runner's own failure: one sentence."""


class SessionState(Record):
    """The proxy's view of one session."""

    session_id: str
    sealed: bool
    calls: int
    sampled_tokens: int
    context_overflow: bool
    """A call did not fit the context."""
    turns_exceeded: bool
    """A call came after the turn limit."""
    upstream_error: str | None
    """The engine's last failure that reached the harness."""
    proxy_error: str | None = None
    """The proxy's own last failure that reached the harness, e.g. a call log that cannot be written."""
    last_heartbeat_at: AwareDatetime | None
    result: RunnerResult | None


class RowsAnswer(Record):
    rows: tuple[TrainingRow, ...]
    report: MergeReport


class LeaseAsk(Record):
    holder: str
    """Who will run them; a new holder does not inherit another's leases."""
    n: int = Field(ge=1)
    lease_s: float = Field(gt=0)
    wait_s: float = Field(ge=0, le=60)


class Leases(Record):
    requests: tuple[RolloutRequest, ...]
    closed: bool
    """True: nothing will be enqueued any more."""


class LeaseRenew(Record):
    holder: str
    rollout_ids: tuple[str, ...]
    lease_s: float = Field(gt=0)


class FinishedRollout(Record):
    """What the queue keeps of a rollout that ended, for whoever enqueued it."""

    request: RolloutRequest
    result: RolloutResult
