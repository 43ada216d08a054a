"""The routes of orchestrator and runner; bodies are in contracts/wire.py."""

import json
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from contracts.config import parse
from contracts.errors import ConfigError, LogUnavailable
from contracts.rollout import RolloutResult
from contracts.wire import (
    Heartbeat,
    HeartbeatAnswer,
    LeaseAsk,
    LeaseRenew,
    OpenSession,
    RowsAnswer,
    RunnerResult,
    SessionOpened,
    Verifier,
    Work,
)
from proxy.calling import Caller
from proxy.ids import matches, session_named_in
from proxy.metrics import Metrics
from proxy.model_api import bearer
from proxy.queue import RolloutQueue
from proxy.sessions import Session, Sessions, utc_now

M = TypeVar("M", bound=BaseModel)
Handler = Callable[[Request], Awaitable[Response]]


def admin_routes(
    sessions: Sessions,
    caller: Caller,
    queue: RolloutQueue,
    admin_secret: str,
    rows: Callable[[str], Awaitable[RowsAnswer]],
) -> dict[tuple[str, str], Handler]:
    """(method, path) → handler for whoever holds the admin secret."""

    async def open_session(request: Request) -> Response:
        body = await _read(request, OpenSession)
        caller.check(body.request.policy)
        session = await sessions.open(body)
        return _json(
            SessionOpened(session_id=session.session_id, runner_secret=sessions.secret(session.session_id, "runner"))
        )

    async def state(request: Request) -> Response:
        return _json((await _session(request)).state())

    async def seal(request: Request) -> Response:
        session = await _session(request)
        await sessions.seal(session)
        return _json(session.state())

    async def session_rows(request: Request) -> Response:
        return _json(await rows((await _session(request)).session_id))

    async def lease(request: Request) -> Response:
        return _json(await queue.lease(await _read(request, LeaseAsk)))

    async def renew(request: Request) -> Response:
        queue.renew(await _read(request, LeaseRenew))
        return JSONResponse({})

    async def finish(request: Request) -> Response:
        return JSONResponse({"accepted": queue.finish(await _read(request, RolloutResult))})

    async def _session(request: Request) -> Session:
        session = await sessions.get(request.path_params["session_id"])
        if session is None:
            raise ConfigError(f"session {request.path_params['session_id']!r} is unknown to this proxy.")
        return session

    def guarded(handler: Handler) -> Handler:
        async def check(request: Request) -> Response:
            if not matches(bearer(request), admin_secret):
                return _refused("the admin secret is missing or wrong", 401)
            return await _answering(handler, request)

        return check

    routes: dict[tuple[str, str], Handler] = {
        ("POST", "/api/sessions"): open_session,
        ("GET", "/api/sessions/{session_id}"): state,
        ("POST", "/api/sessions/{session_id}/seal"): seal,
        ("GET", "/api/sessions/{session_id}/rows"): session_rows,
        ("POST", "/api/queue/lease"): lease,
        ("POST", "/api/queue/renew"): renew,
        ("POST", "/api/queue/finish"): finish,
    }
    return {key: guarded(handler) for key, handler in routes.items()}


def runner_routes(sessions: Sessions, metrics: Metrics) -> dict[tuple[str, str], Handler]:
    """(method, path) → handler for the in-container runner; the secret says which session."""

    async def work(_: Request, session: Session) -> Response:
        opened = session.opened
        return _json(
            Work(
                session_id=session.session_id,
                harness=opened.harness,
                instruction=opened.instruction,
                workspace_tar=opened.workspace_tar,
                harness_tar=opened.harness_tar,
                base_url_path=f"/s/{session.session_id}",
                model=opened.request.policy,
                model_secret=sessions.secret(session.session_id, "model"),
                limits=opened.request.limits,
            )
        )

    async def heartbeat(request: Request, session: Session) -> Response:
        await _read(request, Heartbeat)
        session.last_heartbeat_at = utc_now()
        return _json(HeartbeatAnswer(stop=session.sealed and not session.agent_dead))

    async def agent_dead(_: Request, session: Session) -> Response:
        if session.sealed and not session.agent_dead:
            return _refused("the session was sealed by its owner", 409)
        session.agent_dead = True
        await sessions.seal(session)
        return _json(Verifier(tests_tar=session.opened.tests_tar))

    async def result(request: Request, session: Session) -> Response:
        body = await _read(request, RunnerResult)
        if session.result is not None:
            return _refused("this session has its result already", 409)
        await sessions.seal(session, body)
        metrics.rollouts.labels(str(body.reward is not None).lower()).inc()
        return JSONResponse({})

    def guarded(handler: Callable[[Request, Session], Awaitable[Response]]) -> Handler:
        async def check(request: Request) -> Response:
            session_id = session_named_in(bearer(request))
            session = await sessions.get(session_id) if session_id else None
            if session is None or not matches(bearer(request), sessions.secret(session.session_id, "runner")):
                return _refused("unknown session or wrong runner secret for it", 401)

            async def run(inner: Request) -> Response:
                return await handler(inner, session)

            return await _answering(run, request)

        return check

    return {
        ("GET", "/runner/work"): guarded(work),
        ("POST", "/runner/heartbeat"): guarded(heartbeat),
        ("POST", "/runner/agent-dead"): guarded(agent_dead),
        ("POST", "/runner/result"): guarded(result),
    }


async def _read(request: Request, model: type[M]) -> M:
    where = f"body of {request.url.path}"
    try:
        body = json.loads(await request.body() or b"{}")
    except (json.JSONDecodeError, UnicodeDecodeError) as e:
        raise ConfigError(f"{where} is not JSON: {e}.") from e
    return parse(model, body, where)


async def _answering(handler: Handler, request: Request) -> Response:
    try:
        return await handler(request)
    except ConfigError as e:
        return _refused(str(e), 422)
    except LogUnavailable as e:
        return _refused(str(e), 507)


def _json(body: BaseModel) -> Response:
    return Response(body.model_dump_json(), media_type="application/json")


def _refused(message: str, status: int) -> JSONResponse:
    return JSONResponse({"error": message}, status_code=status)
