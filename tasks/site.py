"""Where the rollouts of one flow run take place: its proxy, its sandboxes, and how often an attempt is tried."""

from typing import TYPE_CHECKING

from rollout.harness import default_images
from rollout.outcome import Truncated
from sandboxes.table import make_sandbox
from tasks.config import Machine

if TYPE_CHECKING:
    from proxy.client import ProxyClient


class Site:
    """One per flow run.

    A plain class with slots on purpose: Prefect stores the parameters of subflows as JSON wherever it can, and this one holds the
    proxy's admin secret. Of an object that it cannot encode it stores the class name.
    """

    __slots__ = ("images", "max_attempts", "max_parallel", "overhead_s", "proxy", "run_id", "sandbox", "truncated")

    def __init__(
        self,
        run_id: str,
        proxy: "ProxyClient",
        machine: Machine,
        *,
        max_parallel: int,
        truncated: Truncated = "discard",
        max_attempts: int = 1,
    ) -> None:
        self.run_id = run_id
        """Owner of every sandbox: the flow run's id."""
        self.proxy = proxy
        self.sandbox = make_sandbox(machine.sandbox)
        self.images = (machine.images or default_images()).resolve()
        self.truncated: Truncated = truncated
        self.max_attempts = max_attempts
        """Tries of one request when the infrastructure fails."""
        self.max_parallel = max_parallel
        """Rollouts at a time."""
        self.overhead_s = machine.sandbox.start_timeout_s + machine.sandbox.grace_s + 60.0
        """Longest time that an attempt may take beyond the agent's and the verifier's limits, seconds."""
