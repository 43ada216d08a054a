"""Entry of the reinforcement-learning process: stock ``verl.trainer.main_ppo.run_ppo`` with our trainer class.

    python -m trainer.main RUN_DIR SCRATCH_DIR

Started by trainer/rl under a guard; imports veRL and Ray.
"""

import logging
import os
import sys
from pathlib import Path
from typing import Any

import ray
from verl.trainer import main_ppo
from verl.trainer.ppo.utils import need_critic, need_reference_policy
from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY
from verl.utils.config import validate_config

from trainer.agent_loop import launch_proxy_actor
from trainer.ppo import RolloutTrainer
from trainer.rl_layout import settings_file
from trainer.verl_compose import compose_verl, read_settings

# The plain class behind @ray.remote.
_StockRunner: Any = main_ppo.TaskRunnerV1.__ray_metadata__.modified_class  # type: ignore[attr-defined]


class TaskRunner(_StockRunner):
    """The stock task runner with the trainer that weighs rows by rollout."""

    def run(self, config: Any) -> None:
        """Train until the last step."""
        logging.getLogger("trainer").setLevel(logging.INFO)
        # Started first: its imports take as long as those of veRL's workers and can run beside them. Ray ends an actor
        # without a handle.
        self._proxy = launch_proxy_actor(config)
        # The mode must stay "sync", veRL keys the replay buffer's behaviour on that name, and its register function
        # refuses to replace.
        TRAINER_REGISTRY["sync"] = RolloutTrainer
        try:
            super().run(config)
        finally:
            if self.agent_loop_manager is not None:
                self.agent_loop_manager.close()


class _Run:
    @staticmethod
    def remote(config: Any) -> Any:
        return ray.put(TaskRunner().run(config))


class InThisProcess:
    """Stands where ``run_ppo`` takes a Ray actor class, and runs here: an actor would import veRL once more, 15 s
    and 0.5 GiB."""

    run = _Run

    @classmethod
    def remote(cls) -> "InThisProcess":
        """The runner."""
        return cls()


def main(run_dir: str, scratch: str) -> None:
    """Compose veRL's config from the run's settings and train."""
    config = compose_verl("ppo_trainer", read_settings(settings_file(Path(run_dir)), scratch))
    validate_config(config, use_reference_policy=need_reference_policy(config), use_critic=need_critic(config))
    main_ppo.run_ppo(config, task_runner_class=InThisProcess)


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # All is on disk and the guard ends Ray's processes; the interpreter would wait some 10 s for threads of Ray and
    # TransferQueue.
    os._exit(0)
