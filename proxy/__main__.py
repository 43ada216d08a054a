"""`python -m proxy CONFIG.json RUN_DIR`: serve until the lifeline on stdin ends; started by proxy/process.py."""

import asyncio
import json
import logging
import os
import signal
import sys
from pathlib import Path

from contracts.errors import OpenForgeError
from proxy.config import ProxyConfig
from proxy.engines.table import make_engine
from proxy.server import ProxyServer

READY_FILE = "proxy.json"


async def serve(config: ProxyConfig, run_dir: Path, ended: asyncio.Event) -> None:
    """Serve until ``ended``; writes ``proxy.json`` when the first request can be answered."""
    engines = {name: make_engine(name, c) for name, c in config.engines.items()}
    async with ProxyServer(config, engines) as server:
        ready = {"url": server.url, "admin_secret": server.admin_secret, "pid": os.getpid()}
        write_private(run_dir / READY_FILE, json.dumps(ready))
        await ended.wait()


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, at once or not at all."""
    part = path.with_suffix(".part")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
        f.write(text)
    part.replace(path)


async def _main(config: ProxyConfig, run_dir: Path) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    lifeline = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lifeline), sys.stdin)
    watch = asyncio.create_task(lifeline.read())
    watch.add_done_callback(lambda _: ended.set())
    await serve(config, run_dir, ended)
    watch.cancel()


def main() -> int:
    """Entry point; a foreseen error is one line on stderr."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    try:
        config = ProxyConfig.model_validate_json(Path(sys.argv[1]).read_text())
        asyncio.run(_main(config, Path(sys.argv[2])))
    except OpenForgeError as e:
        sys.stderr.write(f"error: {e}\n")
        return e.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
