"""The routes that harnesses call: one answered, recorded call per request, streamed or not."""

import asyncio
import json
import time
from collections.abc import Iterable
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from contracts.call import Call
from contracts.errors import ContextOverflow, EngineError, LogUnavailable, SessionClosed
from proxy.calling import Caller, TurnLimit, new_call_id
from proxy.canonical import value_hash
from proxy.dialects.ask import Answered, Ask, BadRequest, Dialect
from proxy.event_stream import EventStream, disconnected
from proxy.ids import matches
from proxy.log import CallLog
from proxy.metrics import Metrics
from proxy.sessions import Session, Sessions

RETRY_HEADERS = ("x-stainless-retry-count",)
"""Headers by which client libraries say that a request repeats an earlier one."""


class ModelApi:
    """Answers the harness side of one proxy."""

    def __init__(self, sessions: Sessions, caller: Caller, log: CallLog, metrics: Metrics, keepalive_s: float) -> None:
        self._sessions = sessions
        self._caller = caller
        self._log = log
        self._metrics = metrics
        self._keepalive_s = keepalive_s
        self._marks: set[asyncio.Task[None]] = set()

    async def call(self, request: Request, dialect: Dialect) -> Response:
        """One model call."""
        session = await self._sessions.get(request.path_params["session_id"])
        secret = self._sessions.secret(request.path_params["session_id"], "model")
        if session is None or not matches(bearer(request), secret):
            return _error(dialect, "unknown session or wrong key for it", "invalid_api_key", 401)
        try:
            body = json.loads(await request.body())
            ask = dialect.read(body)
        except (json.JSONDecodeError, UnicodeDecodeError) as e:
            return _error(dialect, f"the body is not JSON: {e}", "invalid_json", 400)
        except BadRequest as e:
            return _error(dialect, str(e), e.code, 400)
        except ClientDisconnect:
            return Response(status_code=499)
        digest = value_hash(body)
        if any(request.headers.get(h, "0") not in ("", "0") for h in RETRY_HEADERS):
            earlier = next((c for c in session.calls if c.call_id == session.answered_bodies.get(digest)), None)
            if earlier is not None:
                self._metrics.calls.labels(dialect.NAME, session.opened.request.policy, "replayed").inc()
                return await self._answer(request, dialect, session, ask, _ready(earlier), earlier.call_id)
        call_id = new_call_id()
        task = asyncio.create_task(self._run(session, ask, dialect, call_id, digest))
        session.running.add(task)
        task.add_done_callback(session.running.discard)
        return await self._answer(request, dialect, session, ask, task, call_id)

    async def aclose(self) -> None:
        """Wait until every delivery mark is written."""
        await asyncio.gather(*self._marks, return_exceptions=True)

    async def _run(self, session: Session, ask: Ask, dialect: Dialect, call_id: str, digest: str) -> Call:
        policy = session.opened.request.policy
        end = "answered"
        started = time.monotonic()
        try:
            call = await self._caller.call(session, ask, dialect.NAME, call_id)
        except ContextOverflow:
            session.context_overflow, end = True, "context_length"
            raise
        except TurnLimit:
            session.turns_exceeded, end = True, "turn_limit"
            raise
        except EngineError as e:
            session.upstream_error, end = str(e), "engine_error"
            raise
        except LogUnavailable as e:
            session.proxy_error, end = str(e), "log_unavailable"
            raise
        except SessionClosed:
            end = "sealed"
            raise
        except asyncio.CancelledError:
            end = "aborted"
            raise
        finally:
            self._metrics.calls.labels(dialect.NAME, policy, end).inc()
        session.answered_bodies[digest] = call.call_id
        self._metrics.engine_s.labels(policy).observe(call.engine_s)
        self._metrics.commit_s.observe(max(0.0, time.monotonic() - started - call.engine_s))
        self._metrics.tokens.labels(policy, "prompt").inc(call.usage.get("prompt_tokens", 0))
        self._metrics.tokens.labels(policy, "completion").inc(call.usage.get("completion_tokens", 0))
        return call

    async def _answer(
        self, request: Request, dialect: Dialect, session: Session, ask: Ask, task: "asyncio.Task[Call]", call_id: str
    ) -> Response:
        if ask.stream:
            return EventStream(
                dialect.opening(call_id, ask.model, int(time.time())), dialect.KEEP_ALIVE, self._keepalive_s, task,
                lambda done: _closing(dialect, ask, done), lambda delivered: self._mark_if_answered(task, delivered),
            )  # fmt: skip
        gone = asyncio.create_task(disconnected(request.receive))
        try:
            await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
            if task.cancelled():
                code, status = ("session_sealed", 409) if session.sealed else ("client_gone", 499)
                return _error(dialect, "the call was aborted", code, status)
            if (problem := task.exception()) is not None:
                return _error(dialect, *_fault(problem))
            call = task.result()
            body = json.dumps(dialect.answer(_answered(call, ask)), ensure_ascii=False).encode()
            return _Marked(body, lambda: self._mark(call.call_id, not gone.done()))
        finally:
            gone.cancel()

    def _mark_if_answered(self, task: "asyncio.Task[Call]", delivered: bool) -> None:
        if task.done() and not task.cancelled() and task.exception() is None:
            self._mark(task.result().call_id, delivered)

    def _mark(self, call_id: str, delivered: bool) -> None:
        """Record the delivery without making anybody wait for it."""
        mark = asyncio.get_running_loop().create_task(self._write_mark(call_id, delivered))
        self._marks.add(mark)
        mark.add_done_callback(self._marks.discard)

    async def _write_mark(self, call_id: str, delivered: bool) -> None:
        try:
            await self._log.mark_delivered(call_id, delivered)
        except LogUnavailable:
            # The call itself is on disk; without the mark it counts as "not known", which no merge rule acts upon.
            return


class _Marked(Response):
    """A JSON answer that says when it was sent."""

    def __init__(self, body: bytes, sent: Any) -> None:
        super().__init__(body, media_type="application/json")
        self._sent = sent

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await super().__call__(scope, receive, send)
        self._sent()


def bearer(request: Request) -> str | None:
    """The secret in ``Authorization: Bearer …``; None without one."""
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" and value.strip() else None


def _ready(call: Call) -> "asyncio.Task[Call]":
    async def at_once() -> Call:
        return call

    return asyncio.ensure_future(at_once())  # pyright: ignore[reportReturnType]


def _closing(dialect: Dialect, ask: Ask, task: "asyncio.Task[Call]") -> Iterable[bytes]:
    """The last events of a stream."""
    if task.cancelled():
        return [dialect.error_event("the session is sealed", "session_sealed", 409)]
    if (problem := task.exception()) is not None:
        return [dialect.error_event(*_fault(problem))]
    return dialect.events(_answered(task.result(), ask), ask.include_usage)


def _answered(call: Call, ask: Ask) -> Answered:
    created = int(call.started_at.timestamp())
    return Answered(call.call_id, ask.model, created, call.answer, call.finish_reason, call.usage)


def _fault(problem: BaseException) -> tuple[str, str, int]:
    """(message, code, status) of an error; what is not foreseen is raised again and becomes a 500."""
    match problem:
        case ContextOverflow():
            return str(problem), "context_length_exceeded", 400
        case TurnLimit():
            return str(problem), "turn_limit_exceeded", 400
        case SessionClosed():
            return str(problem), "session_sealed", 409
        case LogUnavailable():
            return str(problem), "log_unavailable", 507
        case EngineError():
            return str(problem), "upstream_error", 502
        case _:
            raise problem


def _error(dialect: Dialect, message: str, code: str, status: int) -> JSONResponse:
    return JSONResponse(dialect.error(message, code, status), status_code=status)
