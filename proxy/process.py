"""A proxy in a child process that cannot outlive its parent: its stdin is the lifeline."""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from contracts.config import resolved
from contracts.errors import ConfigError, ProxyError
from proxy.client import ProxyClient
from proxy.config import ProxyConfig

READY_FILE = "proxy.json"
STOP_S = 15.0
"""Longest wait for a proxy to end by itself, seconds."""
LOG_LINES = 3
"""Lines of the proxy's log that go into an error message."""


@asynccontextmanager
async def proxy_process(
    config: ProxyConfig, run_dir: Path, start_timeout_s: float = 120.0
) -> AsyncIterator[ProxyClient]:
    """Start a proxy, wait until it answers, stop it on leaving.

    Writes ``proxy-config.json``, ``proxy.json`` (url, admin secret, pid; readable by the owner only) and ``proxy.log`` in ``run_dir``.
    Raises:
        ConfigError: a bad setting, e.g. a port in use or a missing checkpoint; the proxy's own words.
        ProxyError: it ended or did not answer in time.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    ready = run_dir / READY_FILE
    ready.unlink(missing_ok=True)
    config_path = run_dir / "proxy-config.json"
    config_path.write_text(resolved(config))
    env = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
    with (run_dir / "proxy.log").open("ab") as log:
        log_start = log.tell()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "proxy", str(config_path), str(run_dir),
            stdin=asyncio.subprocess.PIPE, stdout=log, stderr=log, env=env, start_new_session=True,
        )  # fmt: skip
    try:
        await _wait_ready(process, ready, run_dir / "proxy.log", log_start, start_timeout_s)
        told = json.loads(ready.read_text())
        async with ProxyClient(told["url"], told["admin_secret"]) as client:
            await client.health()
            yield client
    finally:
        await _stop(process)
        ready.unlink(missing_ok=True)


async def _wait_ready(
    process: asyncio.subprocess.Process, ready: Path, log: Path, log_start: int, timeout_s: float
) -> None:
    until = time.monotonic() + timeout_s
    while not ready.exists():
        if process.returncode is not None:
            words = log.read_bytes()[log_start:].decode(errors="replace").strip().splitlines()[-LOG_LINES:]
            if process.returncode == ConfigError.exit_code:
                raise ConfigError(
                    words[-1].removeprefix("error: ") if words else f"the proxy refused its config; see {log}"
                )
            raise ProxyError(
                f"the proxy ended with code {process.returncode} while it started: {' | '.join(words)}; see {log}"
            )
        if time.monotonic() > until:
            raise ProxyError(f"the proxy did not answer within {timeout_s} s; see {log}, or raise the start timeout.")
        await asyncio.sleep(0.05)


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        await asyncio.wait_for(asyncio.shield(process.wait()), STOP_S)
    except (TimeoutError, asyncio.CancelledError):
        process.kill()
        await process.wait()
        raise
