"""`sft`: record a teacher through the harness, keep what succeeded, train on what it said."""

from pathlib import Path

from prefect import flow, get_run_logger

from contracts.rollout import RolloutResult
from flows.config import SftRun
from flows.hooks import SWEEPS
from proxy.config import RendererConfig
from tasks import teacher
from tasks.artifacts import Progress, show_table
from tasks.checkpoints import checkpoint_of
from tasks.config import Teacher
from tasks.fanout import roll_out
from tasks.proxy import proxy_for
from tasks.report import sft_losses
from tasks.run_id import current_run_id
from tasks.site import Site
from tasks.train import fine_tune, rows_of


@flow(name="sft", flow_run_name="{config.run_dir.name}-from-{config.teacher.engine.kind}", **SWEEPS)
async def sft(config: SftRun) -> Path:
    """Supervised fine-tuning on the successful sessions of a teacher.

    Returns:
        the newest checkpoint, in Hugging Face's format.
    """
    run_dir, settings = config.run_dir, config.sft.model_copy(update={"model": checkpoint_of(config.sft.model)})
    log = teacher.call_log(run_dir)
    async with proxy_for({teacher.POLICY: config.teacher.engine}, log, run_dir) as proxy:
        site = Site(
            current_run_id(),
            proxy,
            config.machine,
            max_parallel=config.teacher.max_parallel,
            max_attempts=config.teacher.max_attempts,
        )
        await record_teacher(config.teacher, run_dir, site)
    sessions = teacher.teaching_sessions(config.teacher, run_dir, site.run_id)
    wanted = len(teacher.requests(config.teacher, site.run_id))
    get_run_logger().info("%d of %d teacher sessions succeeded", len(sessions), wanted)
    rows = await rows_of(log, sessions, settings, RendererConfig())
    checkpoint = await fine_tune(settings, rows, run_dir)
    await show_table(
        "sft-sessions", [{"wanted": wanted, "succeeded": len(sessions), "rows": len(rows)}], "Teacher sessions"
    )
    await show_table("sft-loss", [loss.model_dump() for loss in sft_losses(run_dir)], "Loss per optimizer step")
    return checkpoint


@flow(name="teach", flow_run_name="teacher-{config.engine.kind}", validate_parameters=False)
async def record_teacher(config: Teacher, run_dir: Path, site: Site) -> None:
    """Run every session that has no lasting result yet."""
    requests = teacher.pending(config, run_dir, site.run_id)
    progress = await Progress.started("sft-teacher", "teacher sessions", len(requests))

    async def keep(result: RolloutResult) -> None:
        teacher.record(run_dir, result)
        await progress.advance()

    await roll_out(requests, site, keep)
