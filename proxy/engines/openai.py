"""The upstream engine: any OpenAI-compatible Chat Completions server, spoken to without streaming.

Retries what may pass (429, 5xx, a broken connection) a bounded number of times, waiting as long as the server asks.
Bodies and keys are never logged and never part of an error.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx

from contracts.call import Sampling
from contracts.errors import ConfigError, EngineError
from proxy.config import OpenAIEngine
from proxy.engine import Reply
from proxy.engines.completion import error_code, read_reply, request_body, retry_after_s

RETRY_STATUS = frozenset({408, 409, 429, 500, 502, 503, 504})
"""Statuses that may pass. Source: the openai package, 1.x, `_should_retry`, without its catch-all for other 5xx."""
RETRY_FAULTS = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)
"""Faults of the connection; not a read timeout, since the answer may be under way and be paid for."""
MAX_WAIT_S = 60.0
"""Longest wait before one retry; a server that asks for more is given up on."""
CONNECT_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class _Passing:
    """A failure that may pass."""

    what: str
    wait_s: float | None
    """What the server asked for; None when it did not."""
    fault: Exception | None


class OpenAIMessageEngine:
    """A chat model behind HTTP."""

    def __init__(
        self, config: OpenAIEngine, environ: Mapping[str, str], *, max_attempts: int = 4, backoff_s: float = 0.5
    ) -> None:
        """Take the key from ``environ``; the n-th retry waits ``backoff_s`` times 2 to the n-1, or as Retry-After says.

        Raises:
            ConfigError: the variable that should hold the key is unset or empty, or the address is none.
        """
        key = environ.get(config.api_key_env, "").strip()
        if not key:
            raise ConfigError(
                f"api_key_env = {config.api_key_env!r}: that environment variable is not set; export the key of "
                f"{config.base_url} in it (any text for a server that needs none)."
            )
        if not config.base_url.startswith(("http://", "https://")):
            raise ConfigError(
                f"base_url = {config.base_url!r} is no HTTP address; give one like https://api.openai.com/v1."
            )
        pinned = config.sampling
        self.sampling = (
            None if pinned is None else Sampling(temperature=pinned.temperature, top_p=pinned.top_p, top_k=pinned.top_k)
        )
        self._config = config
        self._max_attempts = max_attempts
        self._backoff_s = backoff_s
        self._client = httpx.AsyncClient(
            base_url=config.base_url,
            headers={"Authorization": f"Bearer {key}"},
            timeout=httpx.Timeout(config.timeout_s, connect=min(CONNECT_TIMEOUT_S, config.timeout_s)),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
        )

    async def reply(
        self,
        script: Sequence[str] | None,
        messages: Sequence[dict[str, Any]],
        tools: Sequence[dict[str, Any]] | None,
        sampling: Sampling,
    ) -> Reply:
        """Ask upstream.

        Raises:
            EngineError: upstream refused, answered nonsense, or failed after the last retry; says the status.
        """
        body = request_body(self._config.model, messages, tools, sampling)
        for attempt in range(1, self._max_attempts + 1):
            answer = await self._post(body, attempt)
            if isinstance(answer, Reply):
                return answer
            wait_s = self._backoff_s * 2 ** (attempt - 1) if answer.wait_s is None else answer.wait_s
            if wait_s > MAX_WAIT_S:
                raise self._error(f"{answer.what} and asks to wait {wait_s:g} s (longest {MAX_WAIT_S:g})", attempt)
            if attempt == self._max_attempts:
                raise self._error(answer.what, attempt) from answer.fault
            await asyncio.sleep(wait_s)
        raise AssertionError("max_attempts is at least 1")

    async def _post(self, body: Mapping[str, Any], attempt: int) -> "Reply | _Passing":
        """One attempt; raises EngineError for what no retry mends."""
        try:
            response = await self._client.post("chat/completions", json=body)
        except RETRY_FAULTS as e:
            return _Passing(f"cannot be reached ({type(e).__name__})", None, e)
        except httpx.TimeoutException as e:
            raise self._error(f"did not answer within {self._config.timeout_s:g} s", attempt) from e
        except httpx.HTTPError as e:
            raise self._error(f"answered with broken HTTP ({type(e).__name__})", attempt) from e
        if response.status_code == 200:
            return read_reply(response.content, self._config.base_url)
        code = error_code(response.content)
        if response.status_code in RETRY_STATUS:
            asked_s = retry_after_s(response.headers.get("Retry-After"), datetime.now(UTC))
            return _Passing(f"answered {response.status_code}{code}", asked_s, None)
        cure = f"; check the key in {self._config.api_key_env}" if response.status_code in (401, 403) else ""
        raise self._error(f"refused the request with {response.status_code}{code}{cure}", attempt)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def _error(self, text: str, attempt: int) -> EngineError:
        return EngineError(
            f"upstream {self._config.base_url} (model {self._config.model!r}) {text}; attempts: {attempt}."
        )
