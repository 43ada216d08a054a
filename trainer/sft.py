"""Supervised fine-tuning on recorded rows, by veRL's own trainer in a child process."""

import json
from collections.abc import Sequence
from pathlib import Path

from contracts.config import Record, resolved
from contracts.row import SftRow
from trainer.checkpoints import checkpoint_dir, latest_hf, mark_saved, point_to_latest
from trainer.config import CpuHardware, GpuHardware, SftConfig
from trainer.job import claim, training_job
from trainer.rl_layout import checkpoints_dir, config_file, log_file, settings_file
from trainer.sft_rows import split_rows, write_rows
from trainer.verl_settings import environment, sft_settings


class SftMetrics(Record):
    """One line of ``sft_metrics.jsonl``."""

    step: int
    """Optimizer step, from 1."""
    loss: float | None = None
    """Mean over the trained tokens of the batch; None on a line that only has the held-out loss."""
    heldout_loss: float | None = None
    """Mean over the held-out batches; None when not measured at this step."""
    learning_rate: float | None = None
    grad_norm: float | None = None


async def train_sft(config: SftConfig, rows: Sequence[SftRow], run_dir: Path) -> Path:
    """Fine-tune on rows; a run that was interrupted goes on from its newest checkpoint.

    Returns:
        The trained checkpoint in Hugging Face's format, with tokenizer.
    Raises:
        ConfigError: the model or the rows cannot be used.
        TrainerError: training failed, with the last lines of its log.
    """
    run_dir = run_dir.resolve()
    config = config.model_copy(update={"model": checkpoint_dir(config.model).resolve()})
    split = split_rows(rows, config)
    checkpoints_dir(run_dir).mkdir(parents=True, exist_ok=True)
    await claim(run_dir)
    mark_saved(checkpoints_dir(run_dir))
    resumed_from = point_to_latest(checkpoints_dir(run_dir))
    config_file(run_dir).write_text(resolved(config), encoding="utf-8")
    write_rows(run_dir / "train.parquet", split.train)
    write_rows(run_dir / "heldout.parquet", split.heldout)
    settings = sft_settings(config, run_dir, train_rows=len(split.train), heldout=bool(split.heldout))
    settings_file(run_dir).write_text(json.dumps(settings, indent=2), encoding="utf-8")
    metrics = run_dir / f"verl_metrics-{resumed_from:06d}.jsonl"
    launcher, ranks = _LAUNCH[config.hardware.kind](config.hardware)
    async with training_job(
        "fine-tuning",
        [*launcher, "trainer.sft_main", str(run_dir), "{scratch}"],
        run_dir=run_dir,
        log=log_file(run_dir),
        environment={**environment(config.hardware, metrics), **ranks},
    ) as job:
        await job.wait(config.timeout_s)
    mark_saved(checkpoints_dir(run_dir))
    write_metrics(run_dir)
    return latest_hf(run_dir)


def _launch_cpu(hardware: CpuHardware) -> tuple[list[str], dict[str, str]]:
    # A group of one rank: port 0 lets the store that it meets at take any free one.
    group = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    return [], group


def _launch_gpu(hardware: GpuHardware) -> tuple[list[str], dict[str, str]]:
    return ["torch.distributed.run", "--standalone", f"--nproc_per_node={hardware.gpus_per_node}", "-m"], {}


_LAUNCH = {"cpu": _launch_cpu, "gpu": _launch_gpu}


def read_metrics(run_dir: Path) -> list[SftMetrics]:
    """The loss curve of a run, by step."""
    lines = (run_dir / "sft_metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [SftMetrics.model_validate_json(line) for line in lines]


def write_metrics(run_dir: Path) -> None:
    """Collect ``sft_metrics.jsonl`` from veRL's log of each start; a later start replaces the steps that it
    repeated."""
    steps: dict[int, dict[str, float]] = {}
    for path in sorted(run_dir.glob("verl_metrics-*.jsonl")):
        first = int(path.stem.rpartition("-")[2]) + 1
        steps = {step: values for step, values in steps.items() if step < first}
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            steps.setdefault(entry["step"], {}).update(entry["data"])
    lines = [_metrics(step, values).model_dump_json() for step, values in sorted(steps.items())]
    (run_dir / "sft_metrics.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _metrics(step: int, values: dict[str, float]) -> SftMetrics:
    return SftMetrics(
        step=step,
        loss=values.get("train/loss"),
        heldout_loss=values.get("val/loss"),
        learning_rate=values.get("train/lr"),
        grad_norm=values.get("train/grad_norm"),
    )
