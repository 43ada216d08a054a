"""The training processes of a flow run: supervised fine-tuning as one task, reinforcement learning as a process to lease from."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from contracts.row import SftRow
from proxy.client import ProxyClient
from proxy.config import RendererConfig
from proxy.log import CallLog
from proxy.rendering import load_renderer
from proxy.sft_rows import sft_rows
from trainer.config import RlConfig, SftConfig
from trainer.rl import RlProcess, rl_process
from trainer.sft import train_sft


@task(name="rows", task_run_name="rows", cache_policy=NO_CACHE, tags=["train"])
async def rows_of(log: Path, session_ids: Sequence[str], config: SftConfig, renderer: RendererConfig) -> list[SftRow]:
    """Recorded sessions through the student's renderer: one sequence each, the mask on what the assistant said."""
    student = load_renderer(str(config.model), renderer)
    with CallLog(log, read_only=True) as calls:
        return [row for s in session_ids for row in sft_rows(s, calls.calls(s), student, config.max_tokens)]


@task(name="train", task_run_name="train-{run_dir.name}", cache_policy=NO_CACHE, tags=["train"])
async def fine_tune(config: SftConfig, rows: Sequence[SftRow], run_dir: Path) -> Path:
    """Train on the rows; returns the newest checkpoint."""
    return await train_sft(config, rows, run_dir)


@dataclass(frozen=True)
class Training:
    """A reinforcement-learning process that serves its policy."""

    process: RlProcess
    proxy: ProxyClient


@asynccontextmanager
async def rl_training(config: RlConfig, run_dir: Path, run_id: str) -> AsyncIterator[Training]:
    """Start or continue training and wait until its proxy serves; leaving the block ends it."""
    async with rl_process(config, run_dir, run_id) as process:
        where = await process.wait_ready()
        async with ProxyClient(where.url, where.admin_secret) as client:
            yield Training(process, client)
