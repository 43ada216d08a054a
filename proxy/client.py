"""The orchestrator's side of the proxy's HTTP API."""

from typing import Self, TypeVar

import httpx
from pydantic import BaseModel

from contracts.errors import ConfigError, LogUnavailable, ProxyError, ProxyUnreachable
from contracts.rollout import RolloutResult
from contracts.wire import (
    LeaseAsk,
    LeaseRenew,
    Leases,
    OpenSession,
    RowsAnswer,
    SessionOpened,
    SessionState,
)

A = TypeVar("A", bound=BaseModel)
TIMEOUT_S = 60.0
"""Longest wait for an answer, on top of what a call itself waits for."""
CONNECT_TRIES = 3


class ProxyClient:
    """Talks to one proxy. Use as ``async with ProxyClient(url, admin_secret) as proxy``."""

    def __init__(self, url: str, admin_secret: str) -> None:
        self.url = url.rstrip("/")
        # trust_env off: a proxy on loopback must not be sought through a corporate HTTP proxy.
        self._http = httpx.AsyncClient(
            base_url=self.url,
            headers={"authorization": f"Bearer {admin_secret}"},
            timeout=TIMEOUT_S,
            limits=httpx.Limits(max_connections=256, max_keepalive_connections=64),
            transport=httpx.AsyncHTTPTransport(retries=CONNECT_TRIES, limits=httpx.Limits(max_connections=256)),
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def health(self) -> None:
        """Raises ProxyUnreachable when nobody answers."""
        await self._request("GET", "/health", None)

    async def open_session(self, body: OpenSession) -> SessionOpened:
        """Raises ConfigError for a policy without an engine, LogUnavailable, ProxyUnreachable."""
        return await self._ask("POST", "/api/sessions", body, SessionOpened)

    async def session(self, session_id: str) -> SessionState:
        """What the proxy saw of a session so far."""
        return await self._ask("GET", f"/api/sessions/{session_id}", None, SessionState)

    async def seal(self, session_id: str) -> SessionState:
        """Refuse further calls of a session; idempotent."""
        return await self._ask("POST", f"/api/sessions/{session_id}/seal", None, SessionState)

    async def rows(self, session_id: str) -> RowsAnswer:
        """Merge a session into training rows."""
        return await self._ask("GET", f"/api/sessions/{session_id}/rows", None, RowsAnswer)

    async def lease(self, ask: LeaseAsk) -> Leases:
        """Take rollouts from the queue; waits up to ``ask.wait_s``."""
        return await self._ask("POST", "/api/queue/lease", ask, Leases, TIMEOUT_S + ask.wait_s)

    async def renew(self, body: LeaseRenew) -> None:
        """Keep leases."""
        await self._request("POST", "/api/queue/renew", body)

    async def finish(self, result: RolloutResult) -> None:
        """Hand in the result of a leased rollout; stale ones are ignored by the proxy."""
        await self._request("POST", "/api/queue/finish", result)

    async def _ask(
        self, method: str, path: str, body: BaseModel | None, answer: type[A], timeout_s: float = TIMEOUT_S
    ) -> A:
        return answer.model_validate_json((await self._request(method, path, body, timeout_s)).content)

    async def _request(
        self, method: str, path: str, body: BaseModel | None, timeout_s: float = TIMEOUT_S
    ) -> httpx.Response:
        content = None if body is None else body.model_dump_json()
        headers = {} if body is None else {"content-type": "application/json"}
        try:
            answer = await self._http.request(method, path, content=content, headers=headers, timeout=timeout_s)
        except httpx.TransportError as e:
            raise ProxyUnreachable(
                f"no answer from the proxy at {self.url} ({type(e).__name__}: {e}); is it running? See its log."
            ) from e
        if answer.status_code == 200:
            return answer
        raise _error(answer, f"{method} {self.url}{path}")


def _error(answer: httpx.Response, what: str) -> Exception:
    try:
        message = str(answer.json()["error"])
    except (ValueError, KeyError, TypeError):
        message = answer.text[:300]
    if answer.status_code == 422:
        return ConfigError(message)
    if answer.status_code == 507:
        return LogUnavailable(message)
    return ProxyError(f"{what} answered {answer.status_code}: {message}")
