"""Settings of the recording proxy and of the engines behind it."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from contracts.config import Config


class PinnedSampling(Config):
    """What the engine uses whatever the harness asks for; the harness's wish is recorded and ignored."""

    temperature: float = Field(default=1.0, ge=0.0)
    """0 means greedy."""
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    """Anything but 1 makes logprobs differ from the trainer's; leave it at 1 for RL."""
    top_k: int = Field(default=-1)
    """-1 means all tokens; leave it at -1 for RL."""


class RendererConfig(Config):
    """How messages become tokens and back; see the `renderers` package."""

    name: str = "qwen3"
    """Renderer of the model family, e.g. ``qwen3``, ``glm-4.5``."""
    enable_thinking: bool = False
    """Whether the policy thinks before it answers."""


class LocalEngine(Config):
    """A Hugging Face causal language model on this machine's CPU."""

    kind: Literal["local"] = "local"
    model: Path
    """Checkpoint directory with config, weights and tokenizer."""
    renderer: RendererConfig = RendererConfig()
    sampling: PinnedSampling = PinnedSampling()
    context_tokens: int = Field(default=1024, ge=16)
    """Longest prompt plus answer, tokens."""
    max_batch: int = Field(default=64, ge=1)
    """Sequences decoded together."""
    threads: int = Field(default=1, ge=1)
    """CPU threads of torch; 1 is fastest for models of a few million parameters."""
    seed: int = 0


class ScriptedEngine(Config):
    """Plays a session's reference solution as tool calls: the oracle of the gates and the embedded teacher."""

    kind: Literal["scripted"] = "scripted"
    tool: str = "bash"
    """Tool that runs a shell command."""
    argument: str = "command"
    """Its argument."""
    farewell: str = "Done."
    """The answer after the last command."""


class OpenAIEngine(Config):
    """Any OpenAI-compatible Chat Completions server: teacher or judge. Text only: SFT rows, no RL rows."""

    kind: Literal["openai"] = "openai"
    base_url: str
    """For example ``https://api.openai.com/v1``."""
    model: str
    api_key_env: str = "OPENAI_API_KEY"
    """Name of the environment variable that holds the key; the key itself is never written anywhere."""
    timeout_s: float = Field(default=120.0, gt=0)
    sampling: PinnedSampling | None = None
    """None: the harness's own wishes are passed on."""


EngineConfig = Annotated[LocalEngine | ScriptedEngine | OpenAIEngine, Field(discriminator="kind")]


class ProxyConfig(Config):
    """One proxy process."""

    log: Path
    """SQLite file of the call log; made when absent."""
    engines: dict[str, EngineConfig]
    """Policy name → engine. Requests name one of them."""
    host: str = "127.0.0.1"
    """Address to bind; loopback unless told."""
    port: int = Field(default=0, ge=0, le=65535)
    """0: a free one."""
    max_body_mib: int = Field(default=64, ge=1)
    """Largest request body."""
    keepalive_s: float = Field(default=5.0, gt=0)
    """Silence on a stream after which a keep-alive is sent."""
