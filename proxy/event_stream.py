"""One streamed answer over ASGI: first event at once, keep-alives while the engine works, the rest after the commit.

Own code instead of Starlette's StreamingResponse, because who leaves must be noticed at once and recorded exactly.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


class EventStream(Response):
    """Streams ``opening``, then keep-alives until ``task`` is done, then what ``closing`` makes of it.

    Args:
        closing: the finished task → its events; called only when the client is still there.
        ended: told once whether the client was there for the last event.
    """

    def __init__(
        self,
        opening: bytes,
        keep_alive: bytes,
        keepalive_s: float,
        task: asyncio.Task[Any],
        closing: Callable[[asyncio.Task[Any]], Iterable[bytes]],
        ended: Callable[[bool], None],
    ) -> None:
        super().__init__()
        self._opening = opening
        self._keep_alive = keep_alive
        self._keepalive_s = keepalive_s
        self._task = task
        self._closing = closing
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.create_task(disconnected(receive))
        delivered = False
        try:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await self._send(send, self._opening)
            while not self._task.done() and not gone.done():
                await asyncio.wait({self._task, gone}, timeout=self._keepalive_s, return_when=asyncio.FIRST_COMPLETED)
                if not self._task.done() and not gone.done():
                    await self._send(send, self._keep_alive)
            if not gone.done():
                for event in self._closing(self._task):
                    await self._send(send, event)
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                delivered = not gone.done()
        finally:
            gone.cancel()
            self._task.cancel()
            self._ended(delivered)

    @staticmethod
    async def _send(send: Send, event: bytes) -> None:
        await send({"type": "http.response.body", "body": event, "more_body": True})


async def disconnected(receive: Receive) -> None:
    """Until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        continue
