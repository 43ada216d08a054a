"""Cancelled and killed flow runs, with a real worker: their rollouts end, nothing is left, the state tells the truth."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from uuid import uuid4

import pytest
import tomli_w
from processes import commands_with, flow_processes, until
from waiting import final

from flows.prefect_api import PrefectApi
from flows.up_note import Note

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
SLEEPER = """
name = "sleeper"
description = "Sleeps for ten minutes."
argv = ["{{python}}", "-c", "import time; time.sleep(600)", "{token}"]
"""
NOP = Path(__file__).resolve().parents[2] / "harness_images" / "nop"


async def test_a_cancelled_run_ends_its_rollouts_and_reads_cancelled(installation: Note, tmp_path: Path):
    token, images = sleepers(tmp_path)
    async with PrefectApi(installation.api_url) as api:
        run_id = await api.trigger("datagen", {"config": parameters(tmp_path, images)})
        await until(lambda: len(commands_with(token)) >= 2)

        await api.cancel(run_id)

        state = await final(api, run_id)
    await until(lambda: not commands_with(token) and not commands_with(str(tmp_path)))
    assert state.kind == "CANCELLED"


async def test_a_killed_run_leaves_no_process_and_reads_crashed(installation: Note, tmp_path: Path):
    token, images = sleepers(tmp_path)
    async with PrefectApi(installation.api_url) as api:
        run_id = await api.trigger("datagen", {"config": parameters(tmp_path, images)})
        await until(lambda: len(commands_with(token)) >= 2)

        for pid in flow_processes(run_id):
            os.kill(pid, signal.SIGKILL)

        state = await final(api, run_id)
    await until(lambda: not commands_with(token) and not commands_with(str(tmp_path)))
    assert state.kind == "CRASHED"


def sleepers(tmp_path: Path) -> tuple[str, Path]:
    """A harness folder with an agent that sleeps, its processes known by a token."""
    token, images = f"sleeper-{uuid4().hex}", tmp_path / "images"
    (images / "sleeper").mkdir(parents=True)
    (images / "sleeper" / "harness.toml").write_text(SLEEPER.format(token=token))
    (images / "nop").symlink_to(NOP)
    return token, images


def parameters(tmp_path: Path, images: Path) -> dict:
    return {
        "max_parallel": 4,
        "datagen": {
            "out": str(tmp_path / "tasks"),
            "families": ["write_file"],
            "train_per_family": 2,
            "eval_per_family": 0,
            "repeats": 2,
            "harness": "sleeper",
            "limits": {"wall_clock_s": 500.0},
        },
        "machine": {"images": str(images)},
    }


async def test_a_run_of_the_command_line_hears_a_cancel_from_the_ui(installation: Note, checkout: Path, tmp_path: Path):
    token, images = sleepers(tmp_path)
    (tmp_path / "config.toml").write_text(tomli_w.dumps(parameters(tmp_path, images)))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "flows.cli", "datagen", str(tmp_path / "config.toml"), "--root", str(checkout),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, cwd=checkout,
        env=os.environ | {"PYTHONPATH": str(checkout), "PREFECT_API_URL": installation.api_url},
    )  # fmt: skip
    async with PrefectApi(installation.api_url) as api:
        await until(lambda: len(commands_with(token)) >= 2)
        (run_id,) = await api.running()

        await api.cancel(run_id)

        output, _ = await asyncio.wait_for(process.communicate(), 120)
        assert (await api.state(run_id)).kind == "CANCELLED"
    assert process.returncode == 1
    assert output.decode().rstrip().endswith("openforge: the run was cancelled")
    assert commands_with(token) == []
