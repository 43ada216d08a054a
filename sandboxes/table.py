"""The back ends by the type of their settings."""

from collections.abc import Callable

from sandboxes.config import LocalSandbox, SandboxConfig
from sandboxes.local import LocalProcesses
from sandboxes.protocol import Sandbox

BACK_ENDS: dict[type, Callable[..., Sandbox]] = {LocalSandbox: LocalProcesses}


def make_sandbox(config: SandboxConfig) -> Sandbox:
    """The back end for ``config``; starts nothing."""
    return BACK_ENDS[type(config)](config)
