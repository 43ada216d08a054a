"""veRL replay buffer that looks every fraction of a second and notices a dead proxy.

veRL builds it from ``trainer.v1.sampler.custom_sampler``. The stock one looks every 2 s, which is most of a small step,
and waits for ever when the process that should end the groups is gone.
"""

import time
from typing import Any

import ray
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer

from trainer.proxy_actor import ACTOR_NAME

ALIVE_EVERY_S = 10.0
ALIVE_TIMEOUT_S = 120.0


class WatchfulReplayBuffer(ReplayBuffer):
    """``sampler_kwargs.poll_s`` is the time between two looks, seconds."""

    def __init__(self, *, sampler_kwargs: Any, **kwargs: Any) -> None:
        super().__init__(sampler_kwargs=sampler_kwargs, poll_interval=float(sampler_kwargs["poll_s"]), **kwargs)
        self._asked_at = time.monotonic()

    def _wait_for_next_poll(self, partition_id: str, last_debug_time: float) -> float:
        now = time.monotonic()
        if now - self._asked_at > ALIVE_EVERY_S:
            # Raises when the actor died; that ends the run instead of a wait without end.
            ray.get(ray.get_actor(ACTOR_NAME).alive.remote(), timeout=ALIVE_TIMEOUT_S)
            self._asked_at = now
        return super()._wait_for_next_poll(partition_id, last_debug_time)
