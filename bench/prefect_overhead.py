"""Rollouts per minute through Prefect task runs against the same rollouts without Prefect, turn about in one run.

The rollouts are real: local sandbox, ReAct harness, the scripted engine, a verifier.
"""

import asyncio
import os
import tempfile
import time
from pathlib import Path
from typing import Any

ROLLOUTS = 48
PARALLEL = 4
ROUNDS = 2


def run() -> list[dict[str, Any]]:
    """Rollouts per minute with and without Prefect and their ratio."""
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("PREFECT_LOGGING_TO_API_ENABLED", "false")
    os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "180")
    with tempfile.TemporaryDirectory(dir="/tmp") as scratch:
        os.environ.setdefault("PREFECT_HOME", scratch)
        os.chmod(scratch, 0o711)
        return asyncio.run(_measure(Path(scratch)))


async def _measure(scratch: Path) -> list[dict[str, Any]]:
    from prefect import flow

    from contracts.rollout import RolloutRequest
    from datagen.config import DatagenConfig
    from datagen.pipeline import prepare
    from proxy.config import ProxyConfig, ScriptedEngine
    from proxy.process import proxy_process
    from rollout.run import run_rollout
    from sandboxes.config import LocalSandbox
    from tasks.config import Machine
    from tasks.fanout import roll_out
    from tasks.site import Site

    datagen = DatagenConfig(out=scratch / "tasks", families=("write_file",), train_per_family=1, eval_per_family=0)
    await asyncio.to_thread(prepare, datagen)
    task = next((scratch / "tasks" / "candidates").glob("*/task.toml")).parent
    machine = Machine(sandbox=LocalSandbox(state_dir=scratch / "sandboxes"))
    proxy_config = ProxyConfig(log=scratch / "calls.sqlite", engines={"oracle": ScriptedEngine()})

    def requests(label: str) -> list[RolloutRequest]:
        return [
            RolloutRequest(
                rollout_id=f"{label}-{i}", run_id="bench", task=task, harness="react", policy="oracle", group_id="g"
            )
            for i in range(ROLLOUTS)
        ]

    async with proxy_process(proxy_config, scratch / "proxy") as proxy:
        site = Site("bench", proxy, machine, max_parallel=PARALLEL)
        done: list[float | None] = []

        async def keep(result: Any) -> None:
            done.append(result.reward)

        async def bare(label: str) -> float:
            gate = asyncio.Semaphore(PARALLEL)

            async def one(request: RolloutRequest) -> None:
                async with gate:
                    await keep(await run_rollout(request, proxy=proxy, sandbox=site.sandbox, images=site.images))

            start = time.perf_counter()
            await asyncio.gather(*(one(r) for r in requests(label)))
            return time.perf_counter() - start

        async def mapped(label: str) -> float:
            took = 0.0

            @flow(name="bench")
            async def fan_out() -> None:
                nonlocal took
                start = time.perf_counter()
                await roll_out(requests(label), site, keep)
                took = time.perf_counter() - start

            await fan_out()
            return took

        await mapped("warm")
        bare_s, mapped_s = [], []
        for i in range(ROUNDS):
            bare_s.append(await bare(f"bare{i}"))
            mapped_s.append(await mapped(f"mapped{i}"))
    assert done == [1.0] * (ROLLOUTS * (2 * ROUNDS + 1)), "a rollout of the benchmark was not solved"
    per_minute = {name: ROLLOUTS * ROUNDS / sum(s) * 60 for name, s in (("bare", bare_s), ("prefect", mapped_s))}
    common = {"rollouts": ROLLOUTS * ROUNDS, "parallel": PARALLEL}
    return [
        {"name": "rollouts_per_minute_bare", "value": round(per_minute["bare"], 1), "unit": "1/min", **common},
        {"name": "rollouts_per_minute_prefect", "value": round(per_minute["prefect"], 1), "unit": "1/min", **common},
        {
            "name": "prefect_ratio",
            "value": round(per_minute["prefect"] / per_minute["bare"], 3),
            "unit": "ratio",
            **common,
        },
    ]
