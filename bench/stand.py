"""A proxy over an engine that answers at once, and sessions in it: what several benchmarks stand on."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from contracts.call import Sampling, VersionRun
from contracts.harness import HarnessSpec
from contracts.rollout import Limits, RolloutRequest
from contracts.wire import OpenSession
from proxy.client import ProxyClient
from proxy.config import ProxyConfig, RendererConfig
from proxy.engine import Generation
from proxy.rendering import load_renderer
from proxy.server import ProxyServer

CHECKPOINT = Path(__file__).parent.parent / "trainer" / "tiny" / "base"
USER = {"role": "user", "content": "Write the word lobo to the file meti.txt"}
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
CALL_TEXT = '<tool_call>\n{"name": "bash", "arguments": {"command": "echo lobo > meti.txt"}}\n</tool_call>'


class FixedEngine:
    """Gives the same tool call at once; its tokens are the tiny policy's."""

    context_tokens = 1_000_000
    renderer = RendererConfig()
    tokenizer_path = str(CHECKPOINT)
    sampling = Sampling(temperature=1.0, top_p=1.0, top_k=-1)

    def __init__(self) -> None:
        renderer: Any = load_renderer(self.tokenizer_path, self.renderer)
        ids = renderer._tokenizer.encode(CALL_TEXT, add_special_tokens=False)
        self._ids = (*ids, renderer.get_stop_token_ids()[0])

    async def generate(
        self, session_id: str, prompt_ids_P: Sequence[int], sampling: Sampling, stop_ids: Sequence[int]
    ) -> Generation:
        """See proxy.engine.TokenEngine."""
        versions = (VersionRun(version=0, tokens=len(self._ids)),)
        return Generation(self._ids, tuple(-0.1 for _ in self._ids), "stop", versions)

    async def aclose(self) -> None:
        """Nothing to free."""


@asynccontextmanager
async def serving(log: Path, engine: FixedEngine) -> AsyncIterator[tuple[ProxyServer, ProxyClient, httpx.AsyncClient]]:
    """A running proxy, its orchestrator's client and a harness's HTTP client."""
    async with (
        ProxyServer(ProxyConfig(log=log, engines={}), {"policy": engine}) as server,
        ProxyClient(server.url, server.admin_secret) as client,
        httpx.AsyncClient(base_url=server.url, timeout=60) as http,
    ):
        yield server, client, http


async def open_session(server: ProxyServer, client: ProxyClient, http: httpx.AsyncClient) -> tuple[str, str]:
    """A new session without a turn limit to speak of; (base URL, model secret) for a harness."""
    request = RolloutRequest(
        rollout_id="bench", run_id="bench", task=Path("/tasks/bench"), harness="react", policy="policy", group_id="g",
        limits=Limits(turns=100_000),
    )  # fmt: skip
    opened = await client.open_session(
        OpenSession(
            request=request,
            harness=HarnessSpec(name="react", description="bench", argv=("true",)),
            instruction="x",
            workspace_tar="",
            harness_tar="",
            tests_tar="",
        )
    )
    work = (await http.get("/runner/work", headers={"authorization": f"Bearer {opened.runner_secret}"})).json()
    return server.url + work["base_url_path"], work["model_secret"]
