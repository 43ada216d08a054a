"""veRL agent-loop manager: a step's prompts become rollouts through the recording proxy.

veRL builds it from ``actor_rollout_ref.rollout.agent.agent_loop_manager_class`` and asks for two things only:
``create`` and a ``generate_sequences`` that does not wait. Source of the interface: veRL 0.9.1,
``TaskRunnerV1.init_agent_loop_manager``.
"""

from pathlib import Path
from typing import Any

import ray

from trainer.groups import Prompt, StepFacts
from trainer.proxy_actor import ACTOR_NAME, ProxyActor

START_TIMEOUT_S = 120.0
"""Longest wait for the proxy actor: it imports torch and loads a tokenizer."""
ANSWER_TIMEOUT_S = 60.0
"""Longest wait for an answer of the actor that needs no rollout."""


def launch_proxy_actor(config: Any) -> Any:
    """The job's proxy actor; begins to start when there is none yet, and does not wait for it."""
    return (
        ray.remote(ProxyActor)
        .options(name=ACTOR_NAME, get_if_exists=True, num_cpus=0, max_concurrency=64)
        .remote(config.openforge.run_dir, config.openforge.run_id)
    )


class ProxyAgentLoop:
    """The trainer's handle on the proxy actor."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    @classmethod
    def create(cls, *, config: Any, llm_client: Any, **_: Any) -> "ProxyAgentLoop":
        """Start the proxy actor; reward and teacher workers are not used."""
        actor = launch_proxy_actor(config)
        ray.get(actor.start.remote(llm_client), timeout=START_TIMEOUT_S)
        return cls(actor)

    def generate_sequences(self, prompts: Any) -> None:
        """Begin the rollouts of a batch of prompts (a TensorDict)."""
        step = int(prompts["global_steps"])
        tasks = [str(extra["task"]) for extra in _values(prompts, "extra_info")]
        batch = [
            Prompt(str(uid), Path(task), i)
            for i, (uid, task) in enumerate(zip(_values(prompts, "uid"), tasks, strict=True))
        ]
        ray.get(self._actor.submit.remote(step, batch), timeout=ANSWER_TIMEOUT_S)

    def facts(self, step: int) -> StepFacts:
        """What became of a step's rollouts; its groups have all ended when veRL has sampled them."""
        return ray.get(self._actor.facts.remote(step), timeout=ANSWER_TIMEOUT_S)

    def close(self) -> None:
        """End the queue, so that holders of leases leave."""
        ray.get(self._actor.aclose.remote(), timeout=ANSWER_TIMEOUT_S)


def _values(prompts: Any, name: str) -> list[Any]:
    """A non-tensor column of a TensorDict as a list."""
    return list(prompts.get(name).tolist())
