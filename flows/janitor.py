"""`janitor`: removes what runs left behind whose owner is dead. Runs on a schedule, and whenever a run crashed or was cancelled."""

from pathlib import Path

from prefect import flow, get_run_logger

from flows.config import JanitorRun
from flows.hooks import TRAINER_NOTE
from sandboxes.table import make_sandbox
from trainer.guard import sweep as sweep_trainer


@flow(name="janitor", flow_run_name="sweep-{config.runs.name}", retries=2, retry_delay_seconds=5)
async def janitor(config: JanitorRun = JanitorRun()) -> list[str]:  # noqa: B008 - frozen; Prefect fills the form with it
    """Sweep sandboxes and training processes of dead owners; returns the ids of the removed sandboxes."""
    removed = await make_sandbox(config.machine.sandbox).sweep(None)
    for note in notes(config.runs):
        sweep_trainer(note)
    get_run_logger().info("removed %d sandboxes: %s", len(removed), ", ".join(removed) or "none")
    return removed


def notes(runs: Path) -> list[Path]:
    """Notes of training processes below ``runs``."""
    return sorted(runs.glob(f"**/{TRAINER_NOTE}"))
