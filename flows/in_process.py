"""Runs one flow in this process against a Prefect server: the one named by PREFECT_API_URL, else the one that `openforge up`
started for this checkout, else one of its own that ends with the run.
"""

import asyncio
import contextlib
import importlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from contracts.config import Config
from contracts.errors import OpenForgeError
from flows.cancellable import run_cancellable
from flows.server import PrefectDown, healthy, prefect_server
from flows.settings import prefect_environment
from flows.up_note import read_note

OK, FAILED = 0, 1
DELIVER_TIMEOUT_S = 10.0


def run_here(entrypoint: str, config: Config, root: Path) -> int:
    """Run the flow at ``entrypoint`` (``module.function``) with its one parameter; returns the exit code.

    Raises:
        PrefectDown: PREFECT_API_URL is set and nobody answers there.
        OpenForgeError: what the flow itself ended with.
    """
    return asyncio.run(_run(entrypoint, config, root))


async def _run(entrypoint: str, config: Config, root: Path) -> int:
    async with _api(root) as api_url:
        # Prefect reads its settings from the environment when it is imported, and the flow module imports Prefect.
        os.environ.update(prefect_environment(root, api_url))
        os.chdir(root)
        module, _, name = entrypoint.rpartition(".")
        flow = getattr(importlib.import_module(module), name)
        state = await run_cancellable(flow, config, api_url)
        await _deliver()
        if state is None:
            sys.stderr.write("openforge: the run was cancelled\n")
            return FAILED
        if state.is_completed():
            return OK
        outcome = await _outcome(state)
        if isinstance(outcome, OpenForgeError):
            raise outcome
        sys.stderr.write(f"openforge: {state.name}: {state.message}\n")
        return FAILED


@contextlib.asynccontextmanager
async def _api(root: Path) -> AsyncIterator[str]:
    given = os.environ.get("PREFECT_API_URL")
    if given is not None:
        if not await healthy(given):
            raise PrefectDown(
                f"no Prefect server answers at PREFECT_API_URL = {given!r}; start it, or unset the variable."
            )
        yield given
        return
    note = read_note(root)
    if note is not None and await healthy(note.api_url):
        yield note.api_url
        return
    async with prefect_server(root) as server:
        yield server.api_url


async def _deliver() -> None:
    """Send what Prefect still holds (log lines, task run events) while the server answers."""
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogHandler

    await APILogHandler.aflush()  # pyright: ignore[reportGeneralTypeIssues]
    await EventsWorker.drain_all(timeout=DELIVER_TIMEOUT_S)  # pyright: ignore[reportGeneralTypeIssues]


async def _outcome(state: Any) -> Any:
    """The exception that a flow run ended with, as a value."""
    return await state.aresult(raise_on_failure=False)
