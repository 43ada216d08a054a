"""`datagen`: generate → filter → build → test → repair → publish."""

from pathlib import Path

from prefect import flow, get_run_logger

from contracts.rollout import RolloutResult
from datagen import pipeline, test
from datagen.config import DatagenConfig
from flows.config import DatagenRun
from flows.hooks import SWEEPS
from proxy.config import ScriptedEngine
from tasks.artifacts import Progress, show_table
from tasks.fanout import roll_out
from tasks.proxy import proxy_for
from tasks.run_id import current_run_id
from tasks.site import Site
from tasks.stages import build_tasks, filter_tasks, generate_tasks, publish_tasks, settle_round, yield_rows


@flow(name="datagen", flow_run_name="{config.datagen.out.name}-seed{config.datagen.seed}", **SWEEPS)
async def datagen(config: DatagenRun = DatagenRun()) -> Path:  # noqa: B008 - frozen; Prefect fills the form with it
    """Make a task set whose tasks are proven: doing nothing earns 0, the reference solution earns 1, every time.

    Returns:
        the published task set.
    """
    settings = config.datagen
    await generate_tasks(settings)
    await filter_tasks(settings)
    await build_tasks(settings)
    engines = {test.ORACLE_POLICY: ScriptedEngine()}
    async with proxy_for(engines, settings.out / "calls.sqlite", settings.out) as proxy:
        site = Site(current_run_id(), proxy, config.machine, max_parallel=config.max_parallel)
        number = 0
        await test_round(number, settings, site)
        while await settle_round(settings):
            number += 1
            await test_round(number, settings, site)
    entries = await publish_tasks(settings)
    await show_table(
        "datagen-yield", yield_rows(pipeline.reports(settings)), "Tasks that entered, passed and left each stage"
    )
    get_run_logger().info("published %d tasks in %s", len(entries), settings.out / "tasks")
    return settings.out / "tasks"


@flow(name="datagen-test", flow_run_name="test-{number}", validate_parameters=False)
async def test_round(number: int, config: DatagenConfig, site: Site) -> None:
    """Run every test rollout that is still wanted, and again those that the infrastructure failed."""

    async def keep(result: RolloutResult) -> None:
        test.record(config, result)
        await progress.advance()

    while requests := test.pending_requests(config, site.run_id):
        progress = await Progress.started(f"datagen-test-{number}", "test rollouts", len(requests))
        await roll_out(requests, site, keep)
