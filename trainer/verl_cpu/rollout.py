"""veRL rollout plug-in ``rollout.name=openforge_cpu``: the policy's sampling server on a CPU.

    CpuServer    Ray actor with the weights that sample; answers veRL's LLMServerClient
    CpuReplica   starts it when veRL asks for its inference replicas
    CpuAdapter   in the training worker: hands the trained tensors to the server after each step

veRL imports this module through ``actor_rollout_ref.model.external_lib``; registering at import (the end of this file)
is what veRL asks of a rollout plug-in. Source of the interface: veRL 0.9.1, ``workers/rollout/{replica,base}.py`` and
the vLLM server.
"""

import os
from pathlib import Path
from typing import Any

import ray
import torch
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.rollout import base as rollout_base
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.replica import RolloutReplica, RolloutReplicaRegistry, TokenOutput
from verl.workers.rollout.utils import ensure_async_iterator

from contracts.call import Sampling
from proxy.engines.local import BatchedModel

ROLLOUT_NAME = "openforge_cpu"
"""Value of ``rollout.name``."""
_STOP_REASON = {"stop": "completed", "length": "length"}


def _actor_name(replica_rank: int) -> str:
    return f"openforge_cpu_server_{replica_rank}"


class CpuServer:
    """Token ids in, token ids and logprobs out; one decoding loop for all requests."""

    def __init__(self, model: str, max_batch: int, context_tokens: int, threads: int, seed: int) -> None:
        self._model = BatchedModel(
            Path(model), max_batch=max_batch, context_tokens=context_tokens, threads=threads, seed=seed
        )
        self._model.start()

    async def ready(self) -> None:
        """Answers once the weights are loaded."""

    async def generate(
        self, prompt_ids: list[int], sampling_params: dict[str, Any], request_id: str, **_: Any
    ) -> TokenOutput:
        """Sample one answer; ``max_tokens`` must be among the parameters."""
        sampling = Sampling(
            temperature=sampling_params["temperature"],
            top_p=sampling_params["top_p"],
            top_k=sampling_params["top_k"],
            max_tokens=sampling_params["max_tokens"],
        )
        made = await self._model.generate(tuple(prompt_ids), sampling, tuple(sampling_params["stop_token_ids"]))
        return TokenOutput(
            token_ids=list(made.output_ids_C),
            log_probs=list(made.logprobs_C) if made.logprobs_C is not None else None,
            stop_reason=_STOP_REASON[made.finish],
            num_preempted=0,
            extra_fields={
                "global_steps": made.versions[-1].version,
                "version_runs": [(run.version, run.tokens) for run in made.versions],
            },
        )

    async def update_weights(self, state: dict[str, torch.Tensor], version: int) -> None:
        """Replace all weights; calls that run keep the version they started with or carry a second one."""
        await self._model.load_weights(state, version)

    async def _nothing(self, *_: Any, **__: Any) -> None:
        """Controls of device memory, caches and profiles that a CPU server has no use for."""

    wake_up = sleep = clear_kv_cache = release_kv_cache = resume_kv_cache = _nothing
    abort_all_requests = resume_generation = start_profile = stop_profile = _nothing


class CpuReplica(RolloutReplica):
    """One server next to the training worker."""

    async def launch_servers(self) -> None:
        model = omega_conf_to_dataclass(self.model_config)
        name = _actor_name(self.replica_rank)
        server: Any = (
            ray.remote(CpuServer)
            .options(name=name, num_cpus=1, max_concurrency=self.max_concurrency)
            .remote(
                model=model.local_path,
                max_batch=self.config.max_num_seqs,
                context_tokens=self.config.max_model_len,
                threads=int(os.environ["OMP_NUM_THREADS"]),
                seed=self.config.seed + self.replica_rank,
            )
        )
        await server.ready.remote()
        self.servers = [server]
        self._server_handle = server
        self._server_address = name  # veRL's load balancer uses it as a key only

    def rollout_worker_use_gpu(self) -> bool:
        return False


class CpuAdapter(BaseRollout):
    """The training worker's end of the weight transfer."""

    def __init__(self, config: Any, model_config: Any, device_mesh: Any, replica_rank: int = -1) -> None:
        super().__init__(config, model_config, device_mesh)
        rank = int(os.environ["RANK"])
        size = self.config.tensor_model_parallel_size * self.config.data_parallel_size
        self._replica_rank = rank // size if replica_rank == -1 else replica_rank
        self._leads = rank % size == 0

    async def resume(self, tags: list[str]) -> None:
        return None

    async def release(self) -> None:
        return None

    async def update_weights(
        self, weights: Any, global_steps: int | None = None, wire_format: str = "named_tensors", **_: Any
    ) -> None:
        if wire_format != "named_tensors":
            raise NotImplementedError(f"rollout {ROLLOUT_NAME!r} takes whole tensors, not {wire_format!r}")
        # Every rank reads the whole generator: DTensor.full_tensor() inside it is a collective.
        state = {}
        async for name, tensor in ensure_async_iterator(weights):
            if self._leads:
                state[name] = tensor.detach().to("cpu", torch.float32).clone()
        if self._leads:
            server: Any = ray.get_actor(_actor_name(self._replica_rank))
            await server.update_weights.remote(state, global_steps or 0)


RolloutReplicaRegistry.register(ROLLOUT_NAME, lambda: CpuReplica)
# The adapters' registry has no function to register with; its keys are (name, mode).
rollout_base._ROLLOUT_REGISTRY[(ROLLOUT_NAME, "async")] = f"{__name__}.CpuAdapter"
