"""A small loopback stand-in for the proxy: the runner API, and a model that plays the session's script as tool calls."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from contracts.wire import OpenSession, RunnerResult, SessionOpened, SessionState, Verifier, Work


@dataclass
class FakeSession:
    """One session and everything that was said in it."""

    session_id: str
    body: OpenSession
    sealed: bool = False
    stop: bool = False
    """What heartbeats are answered."""
    upstream_error: str | None = None
    requests: list[dict[str, Any]] = field(default_factory=list)
    """Bodies of the model calls that were answered."""
    heartbeats: list[dict[str, Any]] = field(default_factory=list)
    result: RunnerResult | None = None
    work_given: threading.Event = field(default_factory=threading.Event)
    called: threading.Event = field(default_factory=threading.Event)
    """Set by the first model call."""

    @property
    def runner_secret(self) -> str:
        return f"runner-{self.session_id}"

    @property
    def model_secret(self) -> str:
        return f"model-{self.session_id}"


class FakeProxy:
    """Has the orchestrator's calls of `proxy.client.ProxyClient` as methods, and serves the runner and the harness over HTTP."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.sessions: dict[str, FakeSession] = {}
        self.failures: list[tuple[int, dict[str, Any]]] = []
        """Answers of the next model calls, instead of the script's."""
        self.down = False
        """Answer everything with 503."""
        self.turned_away = threading.Event()
        """Set by the first such answer."""
        self.on_agent_dead: Callable[[], None] = lambda: None
        """Called before the verifier is handed out."""

    def add(self, body: OpenSession) -> FakeSession:
        session = FakeSession(f"s{len(self.sessions)}", body)
        self.sessions[session.session_id] = session
        return session

    async def open_session(self, body: OpenSession) -> SessionOpened:
        session = self.add(body)
        return SessionOpened(session_id=session.session_id, runner_secret=session.runner_secret)

    async def session(self, session_id: str) -> SessionState:
        return self.state(self.sessions[session_id])

    async def seal(self, session_id: str) -> SessionState:
        self.sessions[session_id].sealed = True
        return self.state(self.sessions[session_id])

    def state(self, session: FakeSession) -> SessionState:
        return SessionState(
            session_id=session.session_id,
            sealed=session.sealed,
            calls=len(session.requests),
            sampled_tokens=0,
            context_overflow=False,
            turns_exceeded=False,
            upstream_error=session.upstream_error,
            last_heartbeat_at=None,
            result=session.result,
        )

    def answer(self, method: str, path: str, secret: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self.down:
            self.turned_away.set()
            return 503, {"error": {"message": "restarting"}}
        for session in self.sessions.values():
            if path.startswith("/runner/") and secret == session.runner_secret:
                return self._runner(session, path, body)
            if path == f"/s/{session.session_id}/v1/chat/completions" and secret == session.model_secret:
                return self._model(session, body)
        return 401, {"error": {"message": "unknown secret"}}

    def _runner(self, session: FakeSession, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path == "/runner/work":
            session.work_given.set()
            return 200, _work(session).model_dump(mode="json")
        if path == "/runner/heartbeat":
            session.heartbeats.append(body)
            return 200, {"stop": session.stop}
        if path == "/runner/agent-dead":
            session.sealed = True
            self.on_agent_dead()
            return 200, Verifier(tests_tar=session.body.tests_tar).model_dump(mode="json")
        if session.result is not None:
            return 409, {"error": {"message": "there is a result already"}}
        session.result = RunnerResult.model_validate(body)
        return 200, {}

    def _model(self, session: FakeSession, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if session.sealed:
            return 409, {"error": {"message": "sealed"}}
        if self.failures:
            status, answer = self.failures.pop(0)
            if status >= 500:
                session.upstream_error = "the engine failed"
            return status, answer
        turn = len(session.requests)
        session.requests.append(body)
        session.called.set()
        script = session.body.script or ()
        message: dict[str, Any] = {"role": "assistant", "content": "Done."}
        if turn < len(script):
            arguments = json.dumps({"command": script[turn]})
            call = {"id": f"call_{turn}", "type": "function", "function": {"name": "bash", "arguments": arguments}}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return 200, {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


@contextmanager
def fake_proxy() -> Iterator[FakeProxy]:
    """Serve one on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._handle({})

        def do_POST(self) -> None:
            self._handle(json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}"))

        def _handle(self, body: dict[str, Any]) -> None:
            secret = self.headers.get("Authorization", "").removeprefix("Bearer ")
            status, answer = proxy.answer(self.command, self.path, secret, body)
            streamed = status == 200 and body.get("stream")
            raw = _events(answer) if streamed else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/event-stream" if streamed else "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        proxy = FakeProxy(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()


def _work(session: FakeSession) -> Work:
    body = session.body
    return Work(
        session_id=session.session_id,
        harness=body.harness,
        instruction=body.instruction,
        workspace_tar=body.workspace_tar,
        harness_tar=body.harness_tar,
        base_url_path=f"/s/{session.session_id}",
        model="policy",
        model_secret=session.model_secret,
        limits=body.request.limits,
    )


def _events(answer: dict[str, Any]) -> bytes:
    """The answer as a stream that cuts every text in two."""
    message = answer["choices"][0]["message"]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": message["content"] and message["content"][:2]}]
    if message["content"]:
        deltas.append({"content": message["content"][2:]})
    for i, call in enumerate(message.get("tool_calls", [])):
        arguments = call["function"]["arguments"]
        deltas.append(
            {"tool_calls": [{**call, "index": i, "function": {**call["function"], "arguments": arguments[:5]}}]}
        )
        deltas.append({"tool_calls": [{"index": i, "function": {"arguments": arguments[5:]}}]})
    lines = [json.dumps({"choices": [{"index": 0, "delta": delta}]}) for delta in deltas]
    return "".join(f"data: {line}\n\n" for line in (*lines, "[DONE]")).encode()
