"""The few calls of Prefect's HTTP API that the command line makes: what a person does in the UI, without loading Prefect."""

import asyncio
from dataclasses import dataclass
from typing import Any, Self
from uuid import uuid4

import httpx

from flows.server import PrefectDown

FINAL = frozenset({"COMPLETED", "FAILED", "CRASHED", "CANCELLED"})
_BUSY = 503
"""What the server answers when its database is locked; the same request may succeed."""
_RETRY_AFTER_S = (0.5, 1.0, 2.0, 4.0)
_POLL_S = 0.5
_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class RunState:
    """Where a flow run stands."""

    kind: str
    """State type, e.g. ``RUNNING``."""
    name: str
    message: str

    @property
    def final(self) -> bool:
        """Whether nothing more happens to it."""
        return self.kind in FINAL


class PrefectApi:
    """One server. Use as ``async with PrefectApi(api_url) as api``; every method raises PrefectDown when it does not answer."""

    def __init__(self, api_url: str) -> None:
        self._http = httpx.AsyncClient(base_url=api_url, timeout=_TIMEOUT_S)
        self._url = api_url

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def trigger(self, name: str, parameters: dict[str, Any]) -> str:
        """Create a run of the deployment ``name`` (flow and deployment have the same name); returns the run's id."""
        deployment = await self._ask("GET", f"/deployments/name/{name}/{name}", None)
        # The key keeps a repeated request from making a second run.
        body = {"parameters": parameters, "state": {"type": "SCHEDULED"}, "idempotency_key": uuid4().hex}
        return (await self._ask("POST", f"/deployments/{deployment['id']}/create_flow_run", body))["id"]

    async def restart_schedules(self, *, running: bool) -> None:
        """Forget scheduled runs, those missed while no server ran too, and schedule from now on, or with ``running`` off not at all."""
        for deployment in await self._ask("POST", "/deployments/filter", {}):
            await self._ask("POST", f"/deployments/{deployment['id']}/pause_deployment", None)
            if running:
                await self._ask("POST", f"/deployments/{deployment['id']}/resume_deployment", None)

    async def state(self, run_id: str) -> RunState:
        """Where a run stands."""
        state = (await self._ask("GET", f"/flow_runs/{run_id}", None)).get("state") or {}
        return RunState(state.get("type", "PENDING"), state.get("name", "Pending"), state.get("message") or "")

    async def rollouts_done(self) -> int:
        """Rollout task runs of all flow runs that have ended, as far as the server has heard."""
        filters = {"tags": {"all_": ["rollout"]}, "state": {"type": {"any_": sorted(FINAL)}}}
        return int(await self._ask("POST", "/task_runs/count", {"task_runs": filters}))

    async def cancel(self, run_id: str) -> None:
        """Ask for the end of a run, as the UI's Cancel does."""
        await self._ask(
            "POST", f"/flow_runs/{run_id}/set_state", {"state": {"type": "CANCELLING", "name": "Cancelling"}}
        )

    async def set_cancelled(self, run_id: str) -> None:
        """Say that a run has been cancelled, whatever its state is."""
        state = {"type": "CANCELLED", "name": "Cancelled"}
        await self._ask("POST", f"/flow_runs/{run_id}/set_state", {"state": state, "force": True})

    async def end_all_runs(self, longest_s: float) -> list[str]:
        """Cancel every run that is under way and wait until none is; returns the names of those that were left after ``longest_s``."""
        loop = asyncio.get_running_loop()
        end = loop.time() + longest_s
        left = await self._unfinished(("RUNNING", "PENDING"))
        for run in left:
            await self.cancel(run["id"])
        while left and loop.time() < end:
            await asyncio.sleep(_POLL_S)
            left = await self._unfinished(("RUNNING", "PENDING", "CANCELLING"))
        return [run["name"] for run in left]

    async def running(self) -> list[str]:
        """Ids of the runs that are under way, subflows not counted."""
        return [run["id"] for run in await self._unfinished(("RUNNING",))]

    async def _unfinished(self, kinds: tuple[str, ...]) -> list[dict[str, Any]]:
        # Subflows end with their parents.
        filters = {"state": {"type": {"any_": list(kinds)}}, "parent_task_run_id": {"is_null_": True}}
        return await self._ask("POST", "/flow_runs/filter", {"flow_runs": filters})

    async def _ask(self, method: str, path: str, body: Any) -> Any:
        for wait_s in (*_RETRY_AFTER_S, None):
            try:
                answer = await self._http.request(method, path, json=body)
            except httpx.HTTPError as e:
                raise PrefectDown(
                    f"no answer from the Prefect server at {self._url} ({type(e).__name__}); is it running?"
                ) from e
            if answer.status_code != _BUSY or wait_s is None:
                break
            await asyncio.sleep(wait_s)
        if answer.is_error:
            raise PrefectDown(f"{method} {self._url}{path} answered {answer.status_code}: {answer.text[:300]}")
        return answer.json() if answer.content else None
