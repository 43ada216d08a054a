"""A real proxy on a loopback port, over an engine whose answers a test decides, plus helpers to speak to it as a harness does."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from contracts.call import Sampling, VersionRun
from contracts.harness import HarnessSpec
from contracts.rollout import Limits, RolloutRequest
from contracts.wire import OpenSession
from proxy.client import ProxyClient
from proxy.config import ProxyConfig, RendererConfig
from proxy.engine import Generation
from proxy.rendering import load_renderer
from proxy.server import ProxyServer

CHECKPOINT = Path(__file__).parents[2] / "trainer" / "tiny" / "base"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "bash",
            "description": "Run a shell command in the working directory.",
            "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
        },
    }
]


def says(text: str) -> tuple[int, ...]:
    """Token ids of an answer, stop token included."""
    renderer = load_renderer(str(CHECKPOINT), RendererConfig())
    return (*renderer._tokenizer.encode(text, add_special_tokens=False), renderer.get_stop_token_ids()[0])  # pyright: ignore


def calls_bash(command: str) -> tuple[int, ...]:
    """Token ids of a tool call."""
    return says(f'<tool_call>\n{{"name": "bash", "arguments": {{"command": "{command}"}}}}\n</tool_call>')


@dataclass
class PlannedEngine:
    """A token engine that answers what the test put into ``answers``; the i-th token has logprob -(i + 1) / 100."""

    answers: list[tuple[int, ...] | Exception]
    context_tokens: int = 2048
    renderer: RendererConfig = field(default_factory=RendererConfig)
    tokenizer_path: str = str(CHECKPOINT)
    sampling: Sampling = field(default_factory=lambda: Sampling(temperature=1.0, top_p=1.0, top_k=-1))
    prompts: list[tuple[int, ...]] = field(default_factory=list)
    asked: list[Sampling] = field(default_factory=list)
    hold: asyncio.Event | None = None
    aborted: int = 0

    async def generate(
        self, session_id: str, prompt_ids_P: Sequence[int], sampling: Sampling, stop_ids: Sequence[int]
    ) -> Generation:
        self.prompts.append(tuple(prompt_ids_P))
        self.asked.append(sampling)
        if self.hold is not None:
            try:
                await self.hold.wait()
            except asyncio.CancelledError:
                self.aborted += 1
                raise
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        logprobs = tuple(-(i + 1) / 100 for i in range(len(answer)))
        return Generation(answer, logprobs, "stop", (VersionRun(version=3, tokens=len(answer)),))

    async def aclose(self) -> None:
        return


@dataclass
class Harness:
    """The harness side of one session."""

    base: str
    key: str
    http: httpx.AsyncClient

    async def chat(self, messages: list[dict[str, Any]], **body: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {self.key}", **body.pop("headers", {})}
        full = {"model": "whatever", "messages": messages, "tools": TOOLS, **body}
        return await self.http.post(f"{self.base}/v1/chat/completions", json=full, headers=headers)


@dataclass
class Stand:
    """A running proxy with its engine, an orchestrator's client and a way to open sessions."""

    server: ProxyServer
    engine: PlannedEngine
    client: ProxyClient
    http: httpx.AsyncClient

    async def session(self, **limits: Any) -> tuple[str, Harness]:
        opened = await self.client.open_session(open_body(**limits))
        work = (await self.http.get("/runner/work", headers={"authorization": f"Bearer {opened.runner_secret}"})).json()
        return opened.session_id, Harness(self.server.url + work["base_url_path"], work["model_secret"], self.http)


def open_body(policy: str = "policy", history: str = "exact", **limits: Any) -> OpenSession:
    request = RolloutRequest(
        rollout_id="run-s1-p0-g0", run_id="run", task=Path("/tasks/t1"), harness="react", policy=policy, group_id="g",
        limits=Limits(**limits), step=1,
    )  # fmt: skip
    harness = HarnessSpec(name="react", description="d", argv=("true",), history=history)  # pyright: ignore
    return OpenSession(
        request=request, harness=harness, instruction="do it", workspace_tar="d29yaw==", harness_tar="aA==", tests_tar="dGVzdHM="
    )  # fmt: skip


@asynccontextmanager
async def standing(log: Path, *answers: tuple[int, ...] | Exception, **engine: Any) -> AsyncIterator[Stand]:
    """A running proxy with its call log at ``log``."""
    planned = PlannedEngine(list(answers), **engine)
    config = ProxyConfig(log=log, engines={}, keepalive_s=0.05)
    async with (
        ProxyServer(config, {"policy": planned}) as server,
        ProxyClient(server.url, server.admin_secret) as client,
        httpx.AsyncClient(base_url=server.url, timeout=30) as http,
    ):
        yield Stand(server, planned, client, http)


async def until(condition: Callable[[], bool], what: str, wait_s: float = 10.0) -> None:
    """Wait for something another task does; fails with ``what`` when it does not come."""

    async def poll() -> None:
        while not condition():
            await asyncio.sleep(0.01)

    try:
        await asyncio.wait_for(poll(), wait_s)
    except TimeoutError:
        pytest.fail(f"waited {wait_s} s for {what}")
