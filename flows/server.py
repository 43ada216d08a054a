"""A Prefect server and a process worker of this checkout as child processes that end when we do."""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import httpx

from contracts.errors import ConfigError, OpenForgeError
from flows.settings import WORK_POOL, prefect_environment, state_dir

LIFELINE = Path(__file__).with_name("lifeline.py")
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 40.0
_POLL_S = 0.25


class PrefectDown(OpenForgeError):
    """The Prefect server or its worker did not start, or ended while it was needed."""


@dataclass(frozen=True)
class Server:
    """A Prefect server that answers."""

    api_url: str
    log: Path | None
    """Its output; None for a server that somebody else runs."""

    @property
    def ui_url(self) -> str:
        """Where a person looks."""
        return self.api_url.removesuffix("/api")


@contextlib.asynccontextmanager
async def prefect_server(root: Path, port: int | None = None, host: str = "127.0.0.1") -> AsyncIterator[Server]:
    """Start a server for the checkout at ``root`` and stop it at the end.

    Args:
        port: None for a free one.
    Raises:
        ConfigError: the port is taken.
        PrefectDown: the server did not answer in time; names its log.
    """
    chosen = _bindable(host, port)
    log = state_dir(root) / "server.log"
    argv = [sys.executable, "-m", "prefect", "server", "start", "--host", host, "--port", str(chosen)]
    server = Server(api_url=f"http://{host}:{chosen}/api", log=log)
    # Without its own address in the environment the server's UI would call the default port.
    environment = prefect_environment(root, server.api_url) | {"PREFECT_UI_API_URL": server.api_url}
    async with child(argv, environment, log, root) as process, httpx.AsyncClient(timeout=5.0) as http:
        await _until_ready(process, "the Prefect server", log, lambda: _healthy(http, server.api_url))
        yield server


@contextlib.asynccontextmanager
async def prefect_worker(root: Path, server: Server) -> AsyncIterator[None]:
    """Start a process worker of the pool ``local`` and stop it, and the flow runs it has, at the end.

    Raises:
        PrefectDown: the worker did not report in time; names its log.
    """
    log = state_dir(root) / "worker.log"
    argv = [sys.executable, "-m", "prefect", "worker", "start", "--pool", WORK_POOL, "--type", "process"]
    async with child(argv, prefect_environment(root, server.api_url), log, root) as process:
        async with httpx.AsyncClient(timeout=5.0) as http:
            await _until_ready(process, "the Prefect worker", log, lambda: _worker_online(http, server.api_url))
        yield


async def deploy(root: Path, server: Server, timeout_s: float = 120.0) -> None:
    """Create the work pool and register every deployment of prefect.yaml.

    Raises:
        PrefectDown: Prefect refused; with the last line that it printed.
    """
    environment = os.environ | prefect_environment(root, server.api_url) | {"PYTHONPATH": python_path(root)}
    for argv in (
        ["work-pool", "create", WORK_POOL, "--type", "process", "--overwrite"],
        ["--no-prompt", "deploy", "--all"],
    ):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "prefect", *argv, cwd=root, env=environment,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        try:
            output, _ = await asyncio.wait_for(process.communicate(), timeout_s)
        except TimeoutError as e:
            process.kill()
            raise PrefectDown(
                f"`prefect {' '.join(argv)}` took longer than {timeout_s} s; is the machine overloaded?"
            ) from e
        if process.returncode != 0:
            raise PrefectDown(
                f"`prefect {' '.join(argv)}` failed with exit code {process.returncode}: {_last_line(output)}"
            )


@contextlib.asynccontextmanager
async def child(
    argv: list[str], env: dict[str, str], log: Path, root: Path
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run ``argv`` behind a lifeline, its output in ``log``; it and all it started end with the block or with this process."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", str(LIFELINE), *argv, cwd=root,
            env=os.environ | env | {"PYTHONPATH": python_path(root)},
            stdin=asyncio.subprocess.PIPE, stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        await _stop(process)


def python_path(root: Path) -> str:
    """PYTHONPATH with ``root`` first, so that flows import from the checkout."""
    rest = os.environ.get("PYTHONPATH")
    return str(root) if not rest else f"{root}{os.pathsep}{rest}"


async def _stop(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), STOP_TIMEOUT_S)
    except TimeoutError:
        process.kill()
        await process.wait()


def _bindable(host: str, port: int | None) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port or 0))
        except OSError as e:
            raise ConfigError(
                f"port {port} on {host} cannot be used: {e.strerror}; give another one with --port."
            ) from e
        return probe.getsockname()[1]


async def _until_ready(
    process: asyncio.subprocess.Process, what: str, log: Path, ready: Callable[[], Awaitable[bool]]
) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + START_TIMEOUT_S
    while not await ready():
        if process.returncode is not None:
            raise PrefectDown(f"{what} ended with exit code {process.returncode} before it was ready; see {log}.")
        if loop.time() > end:
            raise PrefectDown(f"{what} was not ready within {START_TIMEOUT_S:.0f} s; see {log}.")
        await asyncio.sleep(_POLL_S)


async def healthy(api_url: str) -> bool:
    """Whether a Prefect server answers at ``api_url``."""
    async with httpx.AsyncClient(timeout=5.0) as http:
        return await _healthy(http, api_url)


async def _healthy(http: httpx.AsyncClient, api_url: str) -> bool:
    try:
        return (await http.get(f"{api_url}/health")).status_code == 200
    except httpx.HTTPError:
        return False


async def _worker_online(http: httpx.AsyncClient, api_url: str) -> bool:
    try:
        answer = await http.post(f"{api_url}/work_pools/{WORK_POOL}/workers/filter", json={})
    except httpx.HTTPError:
        return False
    return answer.status_code == 200 and any(worker.get("status") == "ONLINE" for worker in answer.json())


def _last_line(output: bytes) -> str:
    lines = [line for line in output.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else "(no output)"
