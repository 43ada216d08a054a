"""A small random policy of the real architecture, a task set, and a stand-in for the orchestrator with its sandboxes."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from contracts.harness import HarnessSpec
from contracts.rollout import Cause, Evidence, Outcome, RolloutRequest, RolloutResult
from contracts.task import write_task
from contracts.wire import LeaseAsk, OpenSession
from proxy.client import ProxyClient

_CHAT = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def _write_tokenizer(path: Path):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={s: i for i, s in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>"],
    )
    fast.add_tokens(["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"])
    fast.chat_template = _CHAT
    fast.save_pretrained(path)
    return fast


@pytest.fixture(scope="session")
def tiny_policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoint directory of a two-layer Qwen3 over bytes, random weights of seed 0."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    path = tmp_path_factory.mktemp("policy")
    tokenizer = _write_tokenizer(path)
    config = Qwen3Config(
        vocab_size=320,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        Qwen3ForCausalLM(config).to(torch.float32).save_pretrained(path)
    return path


@pytest.fixture
def three_tasks(tmp_path: Path) -> Path:
    """A task set of three tasks."""
    for name in ("alpha", "beta", "gamma"):
        write_task(
            tmp_path / "tasks" / name,
            instruction=f"Say {name}.",
            files={},
            dockerfile="FROM scratch\n",
            test_sh="echo 1\n",
            solve_sh=None,
            metadata={},
            agent_timeout_s=60.0,
            verifier_timeout_s=30.0,
        )
    return tmp_path / "tasks"


class StandInOrchestrator:
    """Leases rollouts and plays harness, runner and verifier over HTTP: two model calls, reward by the first answer's characters."""

    def __init__(self, proxy: ProxyClient) -> None:
        self.proxy = proxy
        self.seen: list[str] = []
        """Rollout ids and their tasks, in the order of leasing."""
        self.fail: Callable[[RolloutRequest], Cause | None] = lambda request: None
        """Which rollouts the sandbox loses."""

    async def run(self) -> None:
        """Until the queue is closed."""
        running: set[asyncio.Task[None]] = set()
        async with httpx.AsyncClient(base_url=self.proxy.url, timeout=120.0, trust_env=False) as http:
            while True:
                leases = await self.proxy.lease(LeaseAsk(holder="stand-in", n=8, lease_s=600.0, wait_s=5.0))
                running |= {asyncio.create_task(self._one(http, r)) for r in leases.requests}
                done = {task for task in running if task.done()}
                running -= done
                await asyncio.gather(*done)
                if leases.closed:
                    break
        await asyncio.gather(*running)

    async def _one(self, http: httpx.AsyncClient, request: RolloutRequest) -> None:
        self.seen.append(f"{request.rollout_id}:{request.task.name}")
        cause = self.fail(request)
        started = datetime.now(UTC)
        session_id, reward, calls = None, None, 0
        if cause is None:
            session_id, reward = await self._attempt(http, request)
            calls = 2
        await self.proxy.finish(
            RolloutResult(
                rollout_id=request.rollout_id,
                group_id=request.group_id,
                session_id=session_id,
                task=request.task.name,
                harness=request.harness,
                policy=request.policy,
                attempt=request.attempt,
                outcome=Outcome.COMPLETED if cause is None else Outcome.FAILED,
                cause=cause,
                reward=reward,
                calls=calls,
                started_at=started,
                wall_s=0.0,
                evidence=Evidence(),
            )
        )

    async def _attempt(self, http: httpx.AsyncClient, request: RolloutRequest) -> tuple[str, float]:
        opened = await self.proxy.open_session(
            OpenSession(
                request=request,
                harness=HarnessSpec(name="standin", description="test", argv=("true",)),
                instruction=request.task.name,
                workspace_tar="",
                harness_tar="",
                tests_tar="",
            )
        )
        runner = {"authorization": f"Bearer {opened.runner_secret}"}
        work = (await http.get("/runner/work", headers=runner)).raise_for_status().json()
        model = {"authorization": f"Bearer {work['model_secret']}"}
        url = f"{work['base_url_path']}/v1/chat/completions"
        messages: list[dict[str, Any]] = [{"role": "user", "content": request.task.name}]
        first = await self._call(http, url, model, messages)
        messages += [first, {"role": "user", "content": "again"}]
        await self._call(http, url, model, messages)
        (await http.post("/runner/agent-dead", headers=runner, json={})).raise_for_status()
        text = first.get("content") or ""
        reward = sum(c in "0123456789abcdefghijklm" for c in text) / max(1, len(text))
        body = {"evidence": {}, "agent_started": True, "reward": reward}
        (await http.post("/runner/result", headers=runner, json=body)).raise_for_status()
        return opened.session_id, reward

    async def _call(
        self, http: httpx.AsyncClient, url: str, headers: dict[str, str], messages: list[dict[str, Any]]
    ) -> dict[str, Any]:
        answer = await http.post(url, headers=headers, json={"model": "policy", "messages": messages})
        return answer.raise_for_status().json()["choices"][0]["message"]


@pytest.fixture
def orchestrator() -> type[StandInOrchestrator]:
    """The stand-in's class."""
    return StandInOrchestrator
