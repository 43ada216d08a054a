"""Cancelled and killed flow runs, with a real worker: their rollouts end, nothing is left, the state tells the truth."""

import asyncio
import os
import signal
import time
from pathlib import Path
from uuid import uuid4

import pytest

from flows.prefect_api import PrefectApi, RunState
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
        await until(lambda: len(processes_with(token)) >= 2)

        await api.cancel(run_id)

        state = await final(api, run_id)
    await until(lambda: not processes_with(token) and not processes_with(str(tmp_path)))
    assert state.kind == "CANCELLED"


async def test_a_killed_run_leaves_no_process_and_reads_crashed(installation: Note, tmp_path: Path):
    token, images = sleepers(tmp_path)
    async with PrefectApi(installation.api_url) as api:
        run_id = await api.trigger("datagen", {"config": parameters(tmp_path, images)})
        await until(lambda: len(processes_with(token)) >= 2)

        for pid in engines_of(run_id):
            os.kill(pid, signal.SIGKILL)

        state = await final(api, run_id)
    await until(lambda: not processes_with(token) and not processes_with(str(tmp_path)))
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


def processes_with(text: str) -> list[int]:
    """Ids of the processes whose command line contains ``text``."""
    return [pid for pid, command in commands() if text.encode() in command]


def engines_of(run_id: str) -> list[int]:
    """The flow run's own process."""
    mark = f"PREFECT__FLOW_RUN_ID={run_id}".encode()
    found = [pid for pid, command in commands() if b"prefect" in command and mark in environment(pid).split(b"\0")]
    assert found
    return found


def commands() -> list[tuple[int, bytes]]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append((int(path.parent.name), path.read_bytes()))
        except OSError:
            continue
    return found


def environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


async def until(true, longest_s: float = 120.0) -> None:
    end = time.monotonic() + longest_s
    while not true():
        assert time.monotonic() < end, "waited in vain"
        await asyncio.sleep(0.2)


async def final(api: PrefectApi, run_id: str, longest_s: float = 180.0) -> RunState:
    end = time.monotonic() + longest_s
    while not (state := await api.state(run_id)).final:
        assert time.monotonic() < end, f"still {state.name}"
        await asyncio.sleep(0.5)
    return state
