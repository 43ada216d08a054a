"""One recording proxy: its log, sessions, queue and HTTP server, started and stopped together."""

import asyncio
import secrets
import socket
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Self

import uvicorn

from contracts.errors import ConfigError, ProxyError
from contracts.wire import RowsAnswer
from proxy.app import make_app
from proxy.calling import Caller
from proxy.config import ProxyConfig
from proxy.control_api import admin_routes, runner_routes
from proxy.engine import Engine
from proxy.log import CallLog
from proxy.merge import merge
from proxy.metrics import Metrics
from proxy.model_api import ModelApi
from proxy.queue import RolloutQueue
from proxy.sessions import Sessions

REAP_S = 1.0
"""Seconds between two looks at expired leases when nobody asks."""
STOP_S = 5
"""Longest wait for open connections when the server stops, seconds."""


class ProxyServer:
    """A proxy in this process. Use as ``async with ProxyServer(config, engines) as server``.

    Args:
        engines: policy name → engine; closed with the server.
    """

    def __init__(self, config: ProxyConfig, engines: Mapping[str, Engine]) -> None:
        self.admin_secret = "admin-" + secrets.token_hex(24)
        self._config = config
        self._engines = dict(engines)
        self.queue = RolloutQueue(time.monotonic)
        self.log = CallLog(config.log)
        self.sessions = Sessions(self.log)
        metrics = Metrics(lambda: self.sessions.open_count, lambda: self.queue.pending, lambda: self.queue.leased)
        caller = Caller(self._engines, self.log)
        self._model_api = ModelApi(self.sessions, caller, self.log, metrics, config.keepalive_s)
        control = {
            **admin_routes(self.sessions, caller, self.queue, self.admin_secret, self.rows),
            **runner_routes(self.sessions, metrics),
        }
        self._app = make_app(self._model_api, control, self.sessions, metrics, config.max_body_mib)
        self._socket: socket.socket | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._uvicorn: uvicorn.Server | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    def url(self) -> str:
        """Where the server listens; known after ``start``."""
        assert self._socket is not None, "the server is not started"
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def start(self) -> None:
        """Bind and serve.

        Raises:
            ConfigError: the address cannot be bound, e.g. the port is in use.
        """
        self._socket = _listen(self._config.host, self._config.port)
        config = uvicorn.Config(
            self._app,
            log_level="warning",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=STOP_S,
            ws="none",
        )
        self._uvicorn = _Server(config)
        self._tasks = [
            asyncio.create_task(self._uvicorn.serve(sockets=[self._socket])),
            asyncio.create_task(self._reap()),
        ]
        while not self._uvicorn.started:
            if self._tasks[0].done():
                raise ProxyError(f"the proxy's HTTP server ended while it started: {self._tasks[0].exception()}")
            await asyncio.sleep(0.01)

    async def wait(self) -> None:
        """Until the server ends."""
        await self._tasks[0]

    async def rows(self, session_id: str) -> RowsAnswer:
        """Merge a session from the log; compares with the merge of what is in memory (I6)."""
        calls = await asyncio.to_thread(self.log.calls, session_id)
        rows, report = merge(session_id, calls)
        live = await self.sessions.get(session_id)
        if live is not None and len(live.calls) == len(calls):
            delivered = {c.call_id: c.delivered for c in calls}
            again = [c.model_copy(update={"delivered": delivered[c.call_id]}) for c in live.calls]
            if merge(session_id, again)[0] != rows:
                report = report.model_copy(update={"violations": {**report.violations, "I6": 1}})
        elif live is not None:
            report = report.model_copy(update={"violations": {**report.violations, "I4": 1}})
        return RowsAnswer(rows=rows, report=report)

    async def aclose(self) -> None:
        """Abort what runs, stop serving, close engines and log. Open sessions stay open in the log."""
        await self.sessions.close()
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True
            await asyncio.wait(self._tasks[:1], timeout=STOP_S + 5)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._model_api.aclose()
        for engine in self._engines.values():
            await engine.aclose()
        self.log.close()
        if self._socket is not None:
            self._socket.close()

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(REAP_S)
            self.queue.expire()


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: who starts a proxy decides what signals do."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # IPPROTO_TCP said out loud: asyncio turns Nagle off only on such sockets, and Nagle costs 40 ms an answer.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as e:
        sock.close()
        raise ConfigError(
            f"proxy address {host}:{port} cannot be bound: {e.strerror}; use port = 0 for a free one, or stop what holds it."
        ) from e
    sock.listen(1024)
    sock.setblocking(False)
    return sock
