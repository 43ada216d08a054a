"""The guard: whatever happens to whoever started a training job, nothing of the job stays."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from contracts.errors import TrainerError
from trainer.guard import GuardOrder, sweep
from trainer.job import claim, training_job
from trainer.processes import start_time

ROOT = Path(__file__).resolve().parents[2]
# A job like Ray: a daemon that leaves its parent, its session and its environment, then the job waits.
ESCAPING = """
import os, subprocess, sys, pathlib
daemon = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env={}, start_new_session=True)
pathlib.Path(sys.argv[1]).write_text(f"{os.getpid()} {daemon.pid}")
sys.stdin = None
import time
time.sleep(float(sys.argv[2]))
sys.exit(7)
"""


def _order(tmp_path: Path, seconds: float, owner: int) -> GuardOrder:
    (tmp_path / "scratch").mkdir()
    return GuardOrder(
        argv=[sys.executable, "-c", ESCAPING, str(tmp_path / "pids"), str(seconds)],
        mark=f"test-{tmp_path.name}",
        log=str(tmp_path / "log"),
        note=str(tmp_path / "trainer.pid"),
        scratch=str(tmp_path / "scratch"),
        owner_pid=owner,
        owner_started=start_time(owner) or "gone",
        grace_s=1.0,
    )


async def _guard(order: GuardOrder) -> asyncio.subprocess.Process:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "trainer.guard", json.dumps(asdict(order)), stdin=subprocess.PIPE, env=env
    )


async def _pids(tmp_path: Path) -> list[int]:
    async with asyncio.timeout(20):
        while not (tmp_path / "pids").exists() or not (tmp_path / "pids").read_text():
            await asyncio.sleep(0.02)
    return [int(p) for p in (tmp_path / "pids").read_text().split()]


def _gone(pids: list[int]) -> bool:
    return all(start_time(p) is None for p in pids)


async def test_a_job_that_ends_takes_its_daemons_along(tmp_path):
    guard = await _guard(_order(tmp_path, 0.0, os.getpid()))
    assert await asyncio.wait_for(guard.wait(), 20) == 7
    assert _gone(await _pids(tmp_path))
    assert not (tmp_path / "scratch").exists()
    assert not (tmp_path / "trainer.pid").exists()


async def test_a_closed_lifeline_ends_everything(tmp_path):
    guard = await _guard(_order(tmp_path, 600.0, os.getpid()))
    pids = await _pids(tmp_path)
    assert guard.stdin is not None
    guard.stdin.close()
    assert await asyncio.wait_for(guard.wait(), 20) == 128 + signal.SIGTERM
    assert _gone(pids)


async def test_a_run_of_a_living_owner_is_left_alone(tmp_path):
    guard = await _guard(_order(tmp_path, 600.0, os.getpid()))
    pids = await _pids(tmp_path)
    assert await asyncio.to_thread(sweep, tmp_path / "trainer.pid") == os.getpid()
    assert not _gone(pids[:1])
    with pytest.raises(TrainerError, match=f"is being trained by process {os.getpid()}"):
        await claim(tmp_path)
    guard.terminate()
    await asyncio.wait_for(guard.wait(), 20)
    assert _gone(pids)


async def test_what_a_killed_guard_left_is_swept(tmp_path):
    guard = await _guard(_order(tmp_path, 600.0, os.getpid()))
    job, daemon = await _pids(tmp_path)
    guard.kill()
    await guard.wait()
    assert not _gone([job])
    assert await asyncio.to_thread(sweep, tmp_path / "trainer.pid", 1.0) is None
    assert _gone([job])
    assert not (tmp_path / "trainer.pid").exists()
    if start_time(daemon) is not None:  # without guard, mark or session nothing leads to it any more
        os.kill(daemon, signal.SIGKILL)


async def test_a_failing_job_is_reported_with_its_last_words(tmp_path, monkeypatch):
    (tmp_path / "words.py").write_text("print('the reason'); raise SystemExit(3)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    async with training_job("the job", ["words"], run_dir=tmp_path, log=tmp_path / "log", environment={}) as job:
        with pytest.raises(TrainerError, match=r"the job ended with exit code 3\. (.|\n)*the reason"):
            await job.wait(20)
