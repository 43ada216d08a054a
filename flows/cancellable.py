"""A flow run in this process that hears a cancel from the UI, which Prefect itself only does for runs of a worker."""

import asyncio
from typing import Any

from contracts.config import Config
from flows.prefect_api import PrefectApi

LOOK_EVERY_S = 2.0


async def run_cancellable(flow: Any, config: Config, api_url: str) -> Any:
    """Run ``flow`` with its one parameter.

    Returns:
        its final state; None when somebody cancelled it and it has ended.
    """
    run_id: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def started(_flow: Any, flow_run: Any, _state: Any) -> None:
        if not run_id.done():
            run_id.set_result(str(flow_run.id))

    running = asyncio.create_task(flow.with_options(on_running=[started])(config, return_state=True))
    async with PrefectApi(api_url) as api:
        watching = asyncio.create_task(_until_cancelled(api, run_id))
        try:
            await asyncio.wait([running, watching], return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                running.cancel()
                await asyncio.wait([running])
                await api.set_cancelled(run_id.result())
                return None
            return running.result()
        finally:
            watching.cancel()
            running.cancel()
            await asyncio.wait([running, watching])


async def _until_cancelled(api: PrefectApi, run_id: "asyncio.Future[str]") -> None:
    known = await run_id
    while (await api.state(known)).kind not in ("CANCELLING", "CANCELLED"):
        await asyncio.sleep(LOOK_EVERY_S)
