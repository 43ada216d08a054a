"""The HTTP application: routes of harnesses, orchestrator and runners put together."""

from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from proxy.control_api import Handler
from proxy.dialects.ask import Dialect
from proxy.dialects.table import DIALECTS
from proxy.ids import matches
from proxy.metrics import Metrics
from proxy.model_api import ModelApi, bearer
from proxy.sessions import Sessions


class BodyLimit:
    """Refuses bodies over a size before they are read."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            length = next((v for k, v in scope["headers"] if k == b"content-length"), b"0")
            if int(length) > self._max_bytes:
                message = f"the body has {int(length)} bytes, at most {self._max_bytes} are read"
                await JSONResponse({"error": {"message": message, "code": "body_too_large"}}, 413)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def make_app(
    model_api: ModelApi,
    control: dict[tuple[str, str], Handler],
    sessions: Sessions,
    metrics: Metrics,
    max_body_mib: int,
) -> ASGIApp:
    """The application over its parts."""

    async def health(_: Request) -> Response:
        return JSONResponse({"ok": True})

    async def metrics_page(_: Request) -> Response:
        return Response(metrics.page(), media_type="text/plain; version=0.0.4")

    async def models(request: Request) -> Response:
        session_id = request.path_params["session_id"]
        session = await sessions.get(session_id)
        if session is None or not matches(bearer(request), sessions.secret(session_id, "model")):
            return JSONResponse({"error": {"message": "unknown session or wrong key", "code": "invalid_api_key"}}, 401)
        model = {"id": session.opened.request.policy, "object": "model", "created": 0, "owned_by": "openforge"}
        return JSONResponse({"object": "list", "data": [model]})

    routes = [
        Route("/health", health, methods=["GET"]),
        Route("/metrics", metrics_page, methods=["GET"]),
        Route("/s/{session_id}/v1/models", models, methods=["GET"]),
    ]
    routes += [Route(path, handler, methods=[method]) for (method, path), handler in control.items()]
    routes += [
        Route(f"/s/{{session_id}}{r}", _model_route(model_api, d), methods=["POST"]) for r, d in DIALECTS.items()
    ]
    return BodyLimit(Starlette(routes=routes), max_body_mib * 2**20)


def _model_route(model_api: ModelApi, dialect: Dialect) -> Callable[[Request], Awaitable[Response]]:
    async def route(request: Request) -> Response:
        return await model_api.call(request, dialect)

    return route
