"""What stands behind the proxy: two seams, one for engines that take tokens and one for those that take messages.

C completion tokens, P prompt tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from typing_extensions import TypeIs

from contracts.call import FinishReason, Sampling, VersionRun
from proxy.config import RendererConfig


@dataclass(frozen=True)
class Generation:
    """What a token engine sampled."""

    output_ids_C: tuple[int, ...]
    """Stop token included when there was one."""
    logprobs_C: tuple[float, ...] | None
    """Log-probability of each id under the sampling that was used."""
    finish: Literal["stop", "length"]
    versions: tuple[VersionRun, ...]
    """Token counts add up to C."""


class TokenEngine(Protocol):
    """Token ids in, token ids and logprobs out. One instance serves many calls at a time."""

    context_tokens: int
    """Longest prompt plus answer."""
    renderer: RendererConfig
    tokenizer_path: str
    """Directory to load the tokenizer from."""
    sampling: Sampling
    """The pinned sampling; ``max_tokens`` is per call."""

    async def generate(
        self, session_id: str, prompt_ids_P: Sequence[int], sampling: Sampling, stop_ids: Sequence[int]
    ) -> Generation:
        """Sample one answer; ``sampling.max_tokens`` is set.

        Cancelling the awaiting task aborts the request in the engine.
        Raises:
            EngineError: the engine failed; nothing was sampled that anybody may use.
        """
        ...

    async def aclose(self) -> None:
        """Free the model; running requests fail with EngineError."""
        ...


@dataclass(frozen=True)
class Reply:
    """What a message engine said."""

    message: dict[str, Any]
    """Assistant message, Chat Completions shape; its tool call ids are replaced by minted ones."""
    finish: FinishReason
    usage: dict[str, int]
    """``prompt_tokens`` and ``completion_tokens`` as the upstream counts them; empty when it does not."""


class MessageEngine(Protocol):
    """Messages in, message out."""

    sampling: Sampling | None
    """The pinned sampling; None passes the harness's own on."""

    async def reply(
        self,
        script: Sequence[str] | None,
        messages: Sequence[dict[str, Any]],
        tools: Sequence[dict[str, Any]] | None,
        sampling: Sampling,
    ) -> Reply:
        """Answer one call; ``script`` is the session's reference solution, if any.

        Raises:
            EngineError: the upstream failed or refused.
        """
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...


Engine = TokenEngine | MessageEngine


def takes_tokens(engine: Engine) -> TypeIs[TokenEngine]:
    """Which of the two seams an engine stands behind."""
    return hasattr(engine, "generate")
