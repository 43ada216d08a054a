"""The stages of data generation as Prefect tasks."""

import asyncio

from prefect import task
from prefect.cache_policies import NO_CACHE

from datagen import build, filter, generate, pipeline
from datagen.config import DatagenConfig
from datagen.records import ManifestEntry, StageReport


@task(name="generate", task_run_name="generate", cache_policy=NO_CACHE, tags=["stage"])
async def generate_tasks(config: DatagenConfig) -> StageReport:
    """Write the candidates' task directories."""
    return await asyncio.to_thread(generate.run, config)


@task(name="filter", task_run_name="filter", cache_policy=NO_CACHE, tags=["stage"])
async def filter_tasks(config: DatagenConfig) -> StageReport:
    """Drop what breaks the schema, fails a lint, or repeats another candidate."""
    return await asyncio.to_thread(filter.run, config)


@task(name="build", task_run_name="build", cache_policy=NO_CACHE, tags=["stage"])
async def build_tasks(config: DatagenConfig) -> StageReport:
    """Make the environment directories ready and hash them."""
    return await asyncio.to_thread(build.run, config)


@task(name="repair", task_run_name="repair", cache_policy=NO_CACHE, tags=["stage"])
async def settle_round(config: DatagenConfig) -> bool:
    """Conclude a round of tests and repair what failed; whether mended tasks wait for new tests."""
    return await asyncio.to_thread(pipeline.settle, config)


@task(name="publish", task_run_name="publish", cache_policy=NO_CACHE, tags=["stage"])
async def publish_tasks(config: DatagenConfig) -> list[ManifestEntry]:
    """Copy what passed to the task set and write its manifest."""
    return await asyncio.to_thread(pipeline.publish, config)


def yield_rows(reports: list[StageReport]) -> list[dict[str, str | int]]:
    """The yield table as flat rows: one per stage and family."""
    return [
        {
            "stage": report.stage,
            "family": family.family,
            "entered": family.entered,
            "passed": family.passed,
            "dropped": ", ".join(f"{reason} {n}" for reason, n in family.dropped.items()),
        }
        for report in reports
        for family in report.families
    ]
