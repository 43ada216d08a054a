"""Trying an attempt again when it failed for a reason that is nobody's in the sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from contracts.rollout import RETRYABLE, RolloutRequest, RolloutResult
from rollout.outcome import Truncated
from rollout.run import run_rollout
from sandboxes.protocol import Sandbox

if TYPE_CHECKING:
    from proxy.client import ProxyClient


async def run_with_retries(
    request: RolloutRequest,
    *,
    proxy: ProxyClient,
    sandbox: Sandbox,
    images: Path,
    truncated: Truncated = "discard",
    max_attempts: int = 2,
) -> RolloutResult:
    """Run until the outcome is not a retryable failure, at most ``max_attempts`` times; returns the last result."""
    while True:
        result = await run_rollout(request, proxy=proxy, sandbox=sandbox, images=images, truncated=truncated)
        if result.cause not in RETRYABLE or request.attempt >= max_attempts:
            return result
        request = request.model_copy(update={"attempt": request.attempt + 1})
