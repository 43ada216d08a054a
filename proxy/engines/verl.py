"""The policy that veRL trains, behind veRL's own inference client; runs inside the training job.

P prompt tokens.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from contracts.call import Sampling, VersionRun
from contracts.errors import EngineError
from proxy.config import PinnedSampling, RendererConfig
from proxy.engine import Generation


class GenerateClient(Protocol):
    """The part of veRL's LLMServerClient that is used here."""

    async def generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any]) -> Any: ...


class VerlEngine:
    """Token engine whose answers carry the training step of the weights that sampled them.

    veRL's client cannot abort one request: the tokens of a cancelled call are sampled to their end and thrown away.
    """

    def __init__(
        self,
        client: GenerateClient,
        *,
        tokenizer_path: str,
        renderer: RendererConfig,
        sampling: PinnedSampling,
        context_tokens: int,
    ) -> None:
        self._client = client
        self.tokenizer_path = tokenizer_path
        self.renderer = renderer
        self.sampling = Sampling(temperature=sampling.temperature, top_p=sampling.top_p, top_k=sampling.top_k)
        self.context_tokens = context_tokens

    async def generate(
        self, session_id: str, prompt_ids_P: Sequence[int], sampling: Sampling, stop_ids: Sequence[int]
    ) -> Generation:
        """Sample one answer.

        Raises:
            EngineError: the training job's inference server failed.
        """
        params = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            "max_tokens": sampling.max_tokens,
            "stop_token_ids": list(stop_ids),
            "logprobs": True,
        }
        try:
            output = await self._client.generate(
                session_id, prompt_ids=[int(t) for t in prompt_ids_P], sampling_params=params
            )
        except Exception as e:
            # The boundary to veRL: its inference back ends raise their own types through Ray.
            raise EngineError(f"veRL's inference server failed: {type(e).__name__}: {str(e).splitlines()[-1]}") from e
        if output.stop_reason not in ("completed", "length", "stop"):
            raise EngineError(f"veRL's inference server ended the answer with {output.stop_reason!r}")
        ids = tuple(int(t) for t in output.token_ids)
        return Generation(
            output_ids_C=ids,
            logprobs_C=tuple(float(x) for x in output.log_probs) if output.log_probs is not None else None,
            finish="length" if output.stop_reason == "length" else "stop",
            versions=_versions(output.extra_fields, len(ids)),
        )

    async def aclose(self) -> None:
        """The training job owns the model."""


def _versions(extra: dict[str, Any], tokens: int) -> tuple[VersionRun, ...]:
    """Our CPU server tells each stretch; others tell the newest version, the only one while weights change between
    answers."""
    if "version_runs" in extra:
        return tuple(VersionRun(version=v, tokens=n) for v, n in extra["version_runs"])
    low, high = extra.get("min_global_steps"), extra.get("max_global_steps")
    if low != high:
        raise EngineError(
            f"an answer was sampled across policy versions {low} to {high} and veRL does not say which tokens by which"
        )
    return (VersionRun(version=int(extra.get("global_steps") or 0), tokens=tokens),)
