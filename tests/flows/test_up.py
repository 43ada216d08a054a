"""`openforge up`: what it started ends with it, however it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import environments_with, until

from flows.server import healthy
from flows.up_note import read_note

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def openforge(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "flows.cli", *arguments, "--root", str(root)],
        cwd=root, capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(root)},
    )  # fmt: skip


async def test_down_ends_what_a_detached_up_started(other_checkout: Path):
    started = openforge(other_checkout, "up", "--detach")
    assert started.returncode == 0, started.stderr
    note = read_note(other_checkout)
    assert note is not None
    assert started.stdout.startswith(f"UI: {note.ui_url} ")
    assert await healthy(note.api_url)
    second = openforge(other_checkout, "up")
    assert second.returncode == 2
    assert f"process {note.pid} serves" in second.stderr

    ended = openforge(other_checkout, "down")

    assert ended.stdout.strip() == f"ended process {note.pid} and everything below it"
    await until(lambda: not environments_with(f"{other_checkout}/runs/prefect"))
    assert openforge(other_checkout, "down").stdout.strip() == "nothing was running"


async def test_kill_9_of_up_leaves_neither_server_nor_worker(other_checkout: Path):
    assert openforge(other_checkout, "up", "--detach").returncode == 0
    note = read_note(other_checkout)
    assert note is not None
    assert len(environments_with(f"{other_checkout}/runs/prefect")) >= 4

    os.kill(note.pid, signal.SIGKILL)

    await until(lambda: not environments_with(f"{other_checkout}/runs/prefect"))
    assert read_note(other_checkout) is None
