"""Finding processes by what they carry, and waiting for things to become true. Linux only."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path


def commands_with(text: str) -> list[int]:
    """Ids of the processes whose command line contains ``text``."""
    return [pid for pid, command in _files("cmdline") if text.encode() in command]


def environments_with(text: str) -> list[int]:
    """Ids of the processes whose environment contains ``text``, this one excepted."""
    return [pid for pid, environment in _files("environ") if text.encode() in environment and pid != os.getpid()]


def flow_processes(run_id: str) -> list[int]:
    """The process that runs a flow run of a worker."""
    mark = f"PREFECT__FLOW_RUN_ID={run_id}".encode()
    marked = {pid for pid, environment in _files("environ") if mark in environment.split(b"\0")}
    found = [pid for pid, command in _files("cmdline") if pid in marked and b"prefect" in command]
    assert found, f"no process runs {run_id}"
    return found


async def until(true: Callable[[], bool], longest_s: float = 120.0) -> None:
    """Wait until ``true()``; fails after ``longest_s``."""
    end = time.monotonic() + longest_s
    while not true():
        assert time.monotonic() < end, "waited in vain"
        await asyncio.sleep(0.2)


def _files(name: str) -> list[tuple[int, bytes]]:
    found = []
    for path in Path("/proc").glob(f"[0-9]*/{name}"):
        try:
            found.append((int(path.parent.name), path.read_bytes()))
        except OSError:
            continue
    return found
