"""A reinforcement-learning run as a child process: prepared, started under a guard, watched, ended.

The training process serves the policy through its own recording proxy; whoever holds this handle leases rollouts there.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from contracts.config import resolved
from contracts.errors import TrainerError
from contracts.task import read_tasks
from trainer.checkpoints import checkpoint_dir, point_to_latest
from trainer.config import RlConfig
from trainer.job import Job, claim, training_job
from trainer.prompts import training_order, write_prompts
from trainer.records import StepRecord, read_steps
from trainer.rl_layout import checkpoints_dir, config_file, log_file, prompts_file, proxy_file, settings_file
from trainer.verl_settings import environment, rl_settings

_LOOK_EVERY_S = 0.2


@dataclass(frozen=True)
class ProxyAddress:
    """Where the training process serves."""

    url: str
    admin_secret: str


class RlProcess:
    """A running training process."""

    def __init__(self, job: Job, config: RlConfig, run_dir: Path, resumed_from: int) -> None:
        self._job = job
        self._config = config
        self.run_dir = run_dir
        self.resumed_from = resumed_from
        """Step of the checkpoint it started from; 0 for a fresh run."""

    async def wait_ready(self) -> ProxyAddress:
        """Wait until the proxy serves.

        Raises:
            TrainerError: the process ended, or took longer than ``start_timeout_s``; with the last lines of its log.
        """
        try:
            async with asyncio.timeout(self._config.start_timeout_s):
                while not proxy_file(self.run_dir).exists():
                    code = self._job.poll()
                    if code is not None:
                        raise self._job.failure(code)
                    await asyncio.sleep(_LOOK_EVERY_S)
        except TimeoutError as e:
            raise TrainerError(
                f"the training process served nothing within start_timeout_s = {self._config.start_timeout_s:g} s; "
                f"see {log_file(self.run_dir)}, or raise it."
            ) from e
        where = json.loads(proxy_file(self.run_dir).read_text(encoding="utf-8"))
        return ProxyAddress(where["url"], where["admin_secret"])

    def poll(self) -> int | None:
        """Exit code of the training process; None while it runs."""
        return self._job.poll()

    async def wait(self, timeout_s: float | None = None) -> None:
        """Wait for the end of training; raises TrainerError when it failed or takes longer."""
        await self._job.wait(timeout_s)

    def steps(self) -> list[StepRecord]:
        """Records of the steps so far, those of earlier starts included."""
        return read_steps(self.run_dir)


@asynccontextmanager
async def rl_process(config: RlConfig, run_dir: Path, run_id: str | None = None) -> AsyncIterator[RlProcess]:
    """Start training in ``run_dir``, or go on from its newest whole checkpoint; leaving the block ends the process.

    Args:
        run_id: owner's name in the ids of rollouts; the directory's name when None.
    Raises:
        ConfigError: a path or the task set cannot be used.
        TrainerError: another living process trains in ``run_dir``.
    """
    run_dir = run_dir.resolve()
    config = config.model_copy(update={"model": checkpoint_dir(config.model).resolve()})
    tasks = read_tasks(config.tasks)
    checkpoints_dir(run_dir).mkdir(parents=True, exist_ok=True)
    await claim(run_dir)
    resumed_from = point_to_latest(checkpoints_dir(run_dir))
    proxy_file(run_dir).unlink(missing_ok=True)
    config_file(run_dir).write_text(resolved(config), encoding="utf-8")
    write_prompts(prompts_file(run_dir), training_order(tasks, config.steps * config.prompts_per_step, config.seed))
    settings = rl_settings(config, run_dir, run_id or run_dir.name)
    settings_file(run_dir).write_text(json.dumps(settings, indent=2), encoding="utf-8")
    async with training_job(
        "the training process",
        ["trainer.main", str(run_dir), "{scratch}"],
        run_dir=run_dir,
        log=log_file(run_dir),
        environment=environment(config.hardware, run_dir / "verl_metrics.jsonl"),
    ) as job:
        yield RlProcess(job, config, run_dir, resumed_from)
