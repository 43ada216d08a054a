"""What happens when a flow run is cancelled, crashes or fails: whatever it started is removed, by its label.

Prefect calls these in the flow's process, or in a process of its own when that one is gone. They may run twice.
"""

from pathlib import Path
from typing import Any

from prefect.client.schemas.objects import FlowRun, State
from prefect.flows import Flow

from sandboxes.table import make_sandbox
from tasks.config import Machine
from trainer.guard import sweep as sweep_trainer

TRAINER_NOTE = "trainer.pid"
"""File in a run directory that names the training process; written by its guard."""


async def sweep_run(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Kill and remove every sandbox of the flow run, and its training process when its owner is dead."""
    config = flow_run.parameters.get("config") or {}
    machine = Machine.model_validate(config.get("machine") or {})
    await make_sandbox(machine.sandbox).sweep(str(flow_run.id))
    if "run_dir" in config:
        sweep_trainer(Path(config["run_dir"]) / TRAINER_NOTE)


SWEEPS: dict[str, Any] = {"on_cancellation": [sweep_run], "on_crashed": [sweep_run], "on_failure": [sweep_run]}
"""Keyword arguments for `flow`."""
