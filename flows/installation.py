"""Server, deployments and worker of one checkout: in the foreground, in the background, and their end."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from contracts.errors import ConfigError
from flows.prefect_api import PrefectApi
from flows.server import PrefectDown, Server, deploy, prefect_server, prefect_worker, python_path
from flows.settings import prefect_environment, state_dir
from flows.up_note import Note, read_note, remove_note, write_note

DETACH_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 90.0
END_RUNS_TIMEOUT_S = 25.0
"""Longest wait for cancelled flow runs, seconds; what is left then is killed with the worker."""
_POLL_S = 0.2


@contextlib.asynccontextmanager
async def installed(
    root: Path, port: int | None, tell: Callable[[str], None], *, schedules: bool = True
) -> AsyncIterator[Server]:
    """A server with our deployments and a worker, all of which end with the block or with this process.

    Args:
        schedules: off: deployments run when they are triggered only.
    Raises:
        ConfigError: another one runs for this checkout, or the port is taken.
        PrefectDown: Prefect did not start.
    """
    other = read_note(root)
    if other is not None:
        raise ConfigError(
            f"process {other.pid} serves {str(root)!r} already, UI: {other.ui_url}; end it with `openforge down`."
        )
    tell("starting the Prefect server …")
    async with prefect_server(root, port) as server:
        tell(f"UI: {server.ui_url}")
        await deploy(root, server)
        async with PrefectApi(server.api_url) as api:
            await api.restart_schedules(running=schedules)
        await _watch_for_zombies(root, server)
        async with prefect_worker(root, server):
            write_note(root, Note(pid=os.getpid(), api_url=server.api_url))
            try:
                yield server
            finally:
                remove_note(root)
                await asyncio.shield(_end_runs(server))


def run_until_interrupted(root: Path, port: int | None, tell: Callable[[str], None]) -> None:
    """`installed` until Ctrl-C or SIGTERM; raises what it raises."""
    asyncio.run(_run(root, port, tell))


def start_detached(root: Path, port: int | None) -> Note:
    """Start ``openforge up`` as a process of its own and wait until it serves.

    Raises:
        ConfigError, PrefectDown: it ended instead; its last line.
    """
    log = state_dir(root) / "up.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-m", "flows.cli", "up", "--root", str(root)] + (
        [] if port is None else ["--port", str(port)]
    )
    with log.open("wb") as out:
        process = subprocess.Popen(
            argv, cwd=root, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            env=os.environ | {"PYTHONPATH": python_path(root)},
        )  # fmt: skip
    end = time.monotonic() + DETACH_TIMEOUT_S
    while time.monotonic() < end:
        note = read_note(root)
        if note is not None and note.pid == process.pid:
            return note
        if process.poll() is not None:
            words = (log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["(no output)"])[-1]
            kind = ConfigError if process.returncode == ConfigError.exit_code else PrefectDown
            raise kind(words.removeprefix("openforge: "))
        time.sleep(_POLL_S)
    process.terminate()
    raise PrefectDown(f"`openforge up` was not ready within {DETACH_TIMEOUT_S:.0f} s; see {log}.")


def stop(root: Path) -> int | None:
    """End the process that serves this checkout; returns its id, None when there was none.

    Raises:
        PrefectDown: it did not end in time.
    """
    note = read_note(root)
    if note is None:
        remove_note(root)
        return None
    os.kill(note.pid, signal.SIGTERM)
    end = time.monotonic() + STOP_TIMEOUT_S
    while read_note(root) is not None:
        if time.monotonic() > end:
            raise PrefectDown(
                f"process {note.pid} did not end within {STOP_TIMEOUT_S:.0f} s; end it with `kill -9 {note.pid}`."
            )
        time.sleep(_POLL_S)
    return note.pid


async def _run(root: Path, port: int | None, tell: Callable[[str], None]) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    starting = asyncio.create_task(_serve(root, port, tell, ended))
    stopping = asyncio.create_task(ended.wait())
    await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if ended.is_set():
        tell("ending …")
        starting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await starting


async def _serve(root: Path, port: int | None, tell: Callable[[str], None], ended: asyncio.Event) -> None:
    async with installed(root, port, tell) as server:
        tell(
            f"ready: trigger datagen, sft, rl-train or benchmark at {server.ui_url}/deployments (Ctrl-C ends everything)"
        )
        await ended.wait()


async def _end_runs(server: Server) -> None:
    """Cancel what still runs, so that its states tell the truth when the server starts again."""
    with contextlib.suppress(PrefectDown):
        async with PrefectApi(server.api_url) as api:
            await api.end_all_runs(END_RUNS_TIMEOUT_S)


async def _watch_for_zombies(root: Path, server: Server) -> None:
    """Register the automation in a process of its own: this one must not load Prefect before it knows the server."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "flows.zombies",
        cwd=root,
        env=_environment(root, server),
        stdin=asyncio.subprocess.DEVNULL,
    )
    if await asyncio.wait_for(process.wait(), DETACH_TIMEOUT_S) != 0:
        raise PrefectDown("the automation that finds dead flow runs could not be registered; see the lines above.")


def _environment(root: Path, server: Server) -> dict[str, str]:
    return os.environ | prefect_environment(root, server.api_url) | {"PYTHONPATH": python_path(root)}
