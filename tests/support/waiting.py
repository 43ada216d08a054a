"""Flow runs of a real server, awaited."""

import asyncio
import time

from flows.prefect_api import PrefectApi, RunState


async def triggered(api: PrefectApi, name: str, config: dict, longest_s: float = 600.0) -> RunState:
    """Run a deployment to its end."""
    return await final(api, await api.trigger(name, {"config": config}), longest_s)


async def final(api: PrefectApi, run_id: str, longest_s: float = 180.0) -> RunState:
    """The state in which a run ended."""
    end = time.monotonic() + longest_s
    while not (state := await api.state(run_id)).final:
        assert time.monotonic() < end, f"still {state.name}"
        await asyncio.sleep(0.5)
    return state
