"""The recording proxy in the foreground, for `openforge proxy`."""

import asyncio
import signal

from proxy.__main__ import READY_FILE
from proxy.__main__ import serve as serve_until
from proxy.config import ProxyConfig


def serve(config: ProxyConfig) -> None:
    """Serve until Ctrl-C or SIGTERM; address and admin secret are in ``proxy.json`` next to the log.

    Raises:
        ConfigError: a bad setting, e.g. a port in use or a missing checkpoint.
    """
    run_dir = config.log.resolve().parent
    run_dir.mkdir(parents=True, exist_ok=True)
    try:
        asyncio.run(_serve(config))
    finally:
        (run_dir / READY_FILE).unlink(missing_ok=True)


async def _serve(config: ProxyConfig) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await serve_until(config, config.log.resolve().parent, ended)
