"""What every sandbox back end does: start one rollout's runner, watch it, end it, and clean up after dead owners.

There is no exec and no file copy: the runner pulls its work from the proxy and posts its result there.
"""

from typing import Protocol

from pydantic import Field

from contracts.config import Record
from contracts.rollout import Cause, Limits, Tail


class SandboxSpec(Record):
    """One sandbox to start."""

    run_id: str
    """Owner of everything that is started for it; what `sweep` goes by."""
    rollout_id: str
    """Unique within the run."""
    proxy_url: str
    """Address of the proxy as seen from inside the sandbox."""
    runner_secret: str = Field(repr=False)
    image: str | None = None
    """Container image; None for back ends that run none."""
    limits: Limits


class SandboxHandle(Record):
    """A started sandbox."""

    sandbox_id: str
    run_id: str
    rollout_id: str


class SandboxExit(Record):
    """How the runner ended; its result, if any, is at the proxy."""

    exit_code: int | None
    """The runner's exit code, negative for a signal; None when there is none to be had."""
    cause: Cause | None = None
    """Set when the back end knows better than the runner: out of memory, node lost, deadline."""
    detail: str | None = None
    """One sentence naming the value behind ``cause``."""
    log: Tail


class Sandbox(Protocol):
    """A back end. One instance serves many rollouts at a time, all in one event loop."""

    async def start(self, spec: SandboxSpec) -> SandboxHandle:
        """Start the runner.

        Raises:
            SandboxError: it could not be started; nothing is left of it.
        """
        ...

    async def wait(self, handle: SandboxHandle) -> SandboxExit:
        """Wait until the runner ended or its deadline passed; the sandbox stays until `stop`."""
        ...

    async def logs(self, handle: SandboxHandle) -> Tail:
        """What the runner itself wrote so far; the agent's output is in the rollout's evidence."""
        ...

    async def stop(self, handle: SandboxHandle) -> None:
        """Kill everything of this sandbox and remove it; does nothing when that has happened already."""
        ...

    async def sweep(self, run_id: str | None) -> list[str]:
        """Kill and remove all sandboxes of one run, or with None all whose owner process is dead.

        Callable from any process, again and again, also while another one does the same.
        Returns:
            Ids of the sandboxes that it removed.
        """
        ...
