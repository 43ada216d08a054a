"""Tiny random models of three architectures, and a real HTTP server that plays an upstream."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, Qwen3Config, Qwen3ForCausalLM

SHAPE: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 32768,
    "initializer_range": 0.3,  # far from uniform, so that a wrong mask or position shows
    "bos_token_id": None,
    "eos_token_id": None,
}


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Name → checkpoint directory: tied Qwen3, untied Llama, Mistral with a window of 8 tokens."""
    torch.manual_seed(0)
    models = {
        "qwen3": Qwen3ForCausalLM(Qwen3Config(**SHAPE, tie_word_embeddings=True)),
        "llama": LlamaForCausalLM(LlamaConfig(**SHAPE, tie_word_embeddings=False)),
        "mistral": MistralForCausalLM(MistralConfig(**SHAPE, sliding_window=8)),
    }
    root = tmp_path_factory.mktemp("checkpoints")
    for name, model in models.items():
        model.save_pretrained(root / name)
    return {name: root / name for name in models}


class Upstream:
    """What the server answers next, and what it was sent."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, bytes, dict[str, str]]] = []
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.base_url = ""

    async def complete(self, request: Request) -> Response:
        """Play the next answer; the last one repeats."""
        self.bodies.append(await request.json())
        self.keys.append(request.headers["authorization"])
        status, content, headers = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return Response(content, status, headers, "application/json")


@asynccontextmanager
async def serve_upstream() -> AsyncIterator[Upstream]:
    upstream = Upstream()
    app = Starlette(routes=[Route("/v1/chat/completions", upstream.complete, methods=["POST"])])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        upstream.base_url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield upstream
        finally:
            server.should_exit = True
            await asyncio.wait_for(serving, 10)


@pytest.fixture
def upstream_server() -> Callable[[], AbstractAsyncContextManager[Upstream]]:
    return serve_upstream
