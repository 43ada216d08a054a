"""One attempt at one task, from request to result. A failed attempt is a result like any other, not an exception."""

from __future__ import annotations

import asyncio
import contextlib
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from contracts.errors import ProxyError, SandboxError
from contracts.rollout import Cause, Evidence, Outcome, RolloutRequest, RolloutResult
from contracts.task import TaskSpec
from contracts.wire import OpenSession, SessionOpened, SessionState
from rollout.outcome import Truncated, Verdict, classify
from rollout.requests import open_session_body
from sandboxes.protocol import Sandbox, SandboxExit, SandboxSpec

if TYPE_CHECKING:  # its HTTP library costs start-up time that only callers with a proxy pay
    from proxy.client import ProxyClient


async def run_rollout(
    request: RolloutRequest,
    *,
    proxy: ProxyClient,
    sandbox: Sandbox,
    images: Path,
    truncated: Truncated = "discard",
) -> RolloutResult:
    """Make one attempt.

    Args:
        images: the `harness_images/` folder; see `rollout.harness.default_images`.
        truncated: whether an attempt that ran out of time, turns or context gets the verifier's reward or none.
    Raises:
        ConfigError, TaskError: the request names something that cannot be used; nothing was started.
    """
    started_at, start = datetime.now(UTC), time.monotonic()
    task, body = await asyncio.to_thread(open_session_body, request, images)
    session_id: str | None = None
    state: SessionState | None = None
    try:
        opened = await proxy.open_session(body)
        session_id = opened.session_id
        ended = await _in_sandbox(opened, body, proxy, sandbox)
        state = await proxy.session(session_id)
        if not state.sealed:  # the runner left before it could say that the agent is dead
            state = await proxy.seal(session_id)
        verdict = classify(state, ended, body.harness, request.limits.turns, truncated)
    except ProxyError as e:
        verdict = Verdict(outcome=Outcome.FAILED, cause=Cause.OURS, detail=f"{type(e).__name__}: {e}")
    except SandboxError as e:
        verdict = Verdict(outcome=Outcome.FAILED, cause=Cause.SANDBOX, detail=str(e))
    return _result(request, task, session_id, state, verdict, started_at, time.monotonic() - start)


async def _in_sandbox(opened: SessionOpened, body: OpenSession, proxy: ProxyClient, sandbox: Sandbox) -> SandboxExit:
    """Run the sandbox to its end; it is always removed, and the session is sealed when this fails or is cancelled."""
    request = body.request
    spec = SandboxSpec(
        run_id=request.run_id,
        rollout_id=request.rollout_id,
        proxy_url=proxy.url,
        runner_secret=opened.runner_secret,
        limits=request.limits,
    )
    try:
        handle = await sandbox.start(spec)
        try:
            return await sandbox.wait(handle)
        finally:
            await _to_the_end(sandbox.stop(handle))
    except BaseException:
        with contextlib.suppress(ProxyError):  # a proxy that is gone lets nobody call either
            await _to_the_end(proxy.seal(opened.session_id))
        raise


async def _to_the_end(work) -> None:
    """Await ``work`` even when this task is cancelled meanwhile; the cancellation goes on afterwards."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def _result(
    request: RolloutRequest,
    task: TaskSpec,
    session_id: str | None,
    state: SessionState | None,
    verdict: Verdict,
    started_at: datetime,
    wall_s: float,
) -> RolloutResult:
    seen = state.result.evidence if state and state.result else Evidence()
    return RolloutResult(
        rollout_id=request.rollout_id,
        group_id=request.group_id,
        session_id=session_id,
        task=task.name,
        harness=request.harness,
        policy=request.policy,
        attempt=request.attempt,
        outcome=verdict.outcome,
        cause=verdict.cause,
        reward=verdict.reward,
        sub_rewards=verdict.sub_rewards,
        calls=state.calls if state else 0,
        sampled_tokens=state.sampled_tokens if state else 0,
        started_at=started_at,
        wall_s=wall_s,
        evidence=seen.model_copy(update={"detail": verdict.detail}),
    )
