"""The proxy's engine over veRL's inference client."""

from types import SimpleNamespace

import pytest

from contracts.call import Sampling, VersionRun
from contracts.errors import EngineError
from proxy.config import PinnedSampling, RendererConfig
from proxy.engines.verl import VerlEngine


class Client:
    """Answers as veRL's LLMServerClient does."""

    def __init__(self, stop_reason: str = "completed", **extra) -> None:
        self.asked: dict = {}
        self._answer = SimpleNamespace(
            token_ids=[5, 6], log_probs=[-0.5, -0.25], stop_reason=stop_reason, extra_fields=extra
        )

    async def generate(self, request_id, *, prompt_ids, sampling_params):
        self.asked = {"request_id": request_id, "prompt_ids": prompt_ids, **sampling_params}
        return self._answer


def _engine(client) -> VerlEngine:
    return VerlEngine(
        client, tokenizer_path="/m", renderer=RendererConfig(), sampling=PinnedSampling(), context_tokens=64
    )


async def _generate(client):
    sampling = Sampling(temperature=1.0, top_p=1.0, top_k=-1, max_tokens=8)
    return await _engine(client).generate("session", (1, 2), sampling, (6,))


async def test_tokens_logprobs_and_version_come_back_as_sampled():
    client = Client(global_steps=3, min_global_steps=3, max_global_steps=3)
    made = await _generate(client)
    assert (made.output_ids_C, made.logprobs_C, made.finish) == ((5, 6), (-0.5, -0.25), "stop")
    assert made.versions == (VersionRun(version=3, tokens=2),)
    assert client.asked == {
        "request_id": "session", "prompt_ids": [1, 2], "temperature": 1.0, "top_p": 1.0, "top_k": -1,
        "max_tokens": 8, "stop_token_ids": [6], "logprobs": True,
    }  # fmt: skip


async def test_each_stretch_of_tokens_keeps_its_version():
    made = await _generate(Client("length", version_runs=[(3, 1), (4, 1)]))
    assert made.versions == (VersionRun(version=3, tokens=1), VersionRun(version=4, tokens=1))
    assert made.finish == "length"


async def test_a_mixture_of_versions_without_boundaries_is_refused():
    with pytest.raises(EngineError, match="policy versions 3 to 4"):
        await _generate(Client(global_steps=4, min_global_steps=3, max_global_steps=4))


async def test_an_aborted_answer_is_an_error():
    with pytest.raises(EngineError, match="'aborted'"):
        await _generate(Client("aborted", global_steps=1))
