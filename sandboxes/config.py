"""Settings of the sandbox back ends."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from contracts.config import Config


class LocalSandbox(Config):
    """Rollouts as processes of this machine. Started as root, each runs as an unprivileged user of its own."""

    kind: Literal["local"] = "local"
    state_dir: Path | None = None
    """Where sandboxes and their register lie; None: ``/tmp/openforge-<uid>``. As root: one that all users can enter."""
    agent_user: Literal["auto", "same"] = "auto"
    """``auto``: as root an unprivileged user per rollout, else the same user; ``same``: always the same user."""
    first_uid: int = Field(default=55000, ge=1000)
    """First of the user numbers lent to rollouts; they need no entry in /etc/passwd."""
    uids: int = Field(default=1024, ge=1)
    """How many numbers there are from ``first_uid`` on: the most rollouts at a time of all flows of this machine."""
    uid_locks_dir: Path = Path("/run/openforge-uids")
    """Where lent numbers are locked; the same for all flows of this machine."""
    max_parallel: int = Field(default=64, ge=1)
    """Most sandboxes that exist at a time; further starts wait."""
    start_timeout_s: float = Field(default=600.0, gt=0)
    """Longest wait of a start for a free place, seconds."""
    grace_s: float = Field(default=180.0, gt=0)
    """Time for the runner beyond the agent's and the verifier's limits, proxy restarts included, seconds."""
    stop_timeout_s: float = Field(default=5.0, gt=0)
    """Longest wait for a runner that was told to leave before it is killed, seconds."""


SandboxConfig = LocalSandbox
"""One of the back ends' settings, told apart by ``kind``."""
