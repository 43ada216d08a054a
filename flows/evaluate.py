"""`benchmark`: policies on held-out tasks → scores with intervals and an HTML report."""

from pathlib import Path

from prefect import flow, get_run_logger

from benchmarks import heldout
from benchmarks.config import BenchmarkConfig
from contracts.rollout import RolloutResult
from flows.config import BenchmarkRun
from flows.hooks import SWEEPS
from tasks.artifacts import Progress, show_link, show_table
from tasks.checkpoints import with_checkpoints
from tasks.fanout import roll_out
from tasks.proxy import engines_of, proxy_for
from tasks.report import build_report, call_log, family_rows, score_rows, scores
from tasks.run_id import current_run_id, on_its_day
from tasks.site import Site


@flow(name="benchmark", flow_run_name="{config.benchmark.out.name}-x{config.benchmark.rollouts_per_task}", **SWEEPS)
async def benchmark(config: BenchmarkRun) -> Path:
    """Measure every policy on the held-out tasks; a second run of an output directory continues it.

    Returns:
        the HTML report.
    """
    settings = with_checkpoints(on_its_day(config.benchmark) if config.dated else config.benchmark)
    async with proxy_for(engines_of(settings), call_log(settings), settings.out) as proxy:
        site = Site(
            current_run_id(),
            proxy,
            config.machine,
            max_parallel=settings.max_parallel,
            truncated=settings.truncated,
            max_attempts=settings.max_attempts,
        )
        for policy in settings.policies:
            await measure(policy.name, settings, site)
    found = scores(settings)
    report = build_report(
        settings,
        title=f"OpenForgeRL: {settings.out.name}",
        datagen_dir=config.datagen_dir,
        sft_run_dir=config.sft_run_dir,
        rl_run_dir=config.rl_run_dir,
    )
    await show_table("benchmark-scores", score_rows(found), "Success with 95 % Wilson intervals")
    await show_table("benchmark-families", family_rows(found), "The same per family")
    await show_link("benchmark-report", report.resolve().as_uri(), "HTML report")
    get_run_logger().info("report: %s", report)
    return report


@flow(name="measure", flow_run_name="policy-{policy}", validate_parameters=False)
async def measure(policy: str, config: BenchmarkConfig, site: Site) -> None:
    """Run every attempt of one policy that has no lasting result yet."""
    requests = [r for r in heldout.pending(config, site.run_id) if r.policy == policy]
    progress = await Progress.started(
        f"benchmark-{policy.lower().replace('.', '-').replace('_', '-')}", f"rollouts of {policy}", len(requests)
    )

    async def keep(result: RolloutResult) -> None:
        heldout.record(config, result)
        await progress.advance()

    await roll_out(requests, site, keep)
