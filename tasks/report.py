"""The scores of a benchmark run as files and rows: scores.json, report.html."""

import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks import heldout
from benchmarks.config import BenchmarkConfig
from benchmarks.report import ReportData, write_report
from benchmarks.run_files import SftLoss, read_rl_steps, read_yields
from benchmarks.samples import Sample, choose, sample
from benchmarks.score import PolicyScore, Rate, score
from proxy.log import CallLog
from trainer.sft import read_metrics

PACKAGES = ("openforge-rl", "verl", "torch", "transformers", "ray", "prefect", "renderers")


def call_log(config: BenchmarkConfig) -> Path:
    """Where the measured sessions are recorded."""
    return config.out / "calls.sqlite"


def report_path(config: BenchmarkConfig) -> Path:
    """Where the HTML report lies."""
    return config.out / "report.html"


def scores(config: BenchmarkConfig) -> list[PolicyScore]:
    """The score of every policy from its recorded results."""
    families = {task.name: task.family for task in heldout.held_out(config)}
    return [
        score(p.name, heldout.results(config, p.name), families, success_reward=config.success_reward, seed=config.seed)
        for p in config.policies
    ]


def score_rows(found: list[PolicyScore]) -> list[dict[str, Any]]:
    """One flat row per policy for a table."""
    return [{"policy": s.policy, **_rate_cells(s.rate)} for s in found]


def family_rows(found: list[PolicyScore]) -> list[dict[str, Any]]:
    """One flat row per policy and family for a table."""
    return [{"policy": s.policy, "family": f.family, **_rate_cells(f.rate)} for s in found for f in s.families]


def build_report(
    config: BenchmarkConfig,
    *,
    title: str,
    datagen_dir: Path | None,
    sft_run_dir: Path | None,
    rl_run_dir: Path | None,
    seconds: Mapping[str, float] | None = None,
    peak_gib: float | None = None,
) -> Path:
    """Write the HTML report with what the named runs left; returns its path."""
    steps = [] if rl_run_dir is None else read_rl_steps(rl_run_dir)
    data = ReportData(
        title=title,
        made_at=datetime.now(UTC),
        seed=config.seed,
        levels=tuple(scores(config)),
        rl_steps=tuple(steps),
        sft_losses=tuple([] if sft_run_dir is None else sft_losses(sft_run_dir)),
        yields=tuple([] if datagen_dir is None else read_yields(datagen_dir / "yields.jsonl")),
        peak_gib=peak_gib,
        seconds=dict(seconds or {}),
        versions=_versions(),
        samples=tuple(_samples(config)),
    )
    write_report(data, report_path(config))
    return report_path(config)


def sft_losses(run_dir: Path) -> list[SftLoss]:
    """The loss curve of an SFT run."""
    return [SftLoss(step=m.step, train=m.loss, validation=m.heldout_loss) for m in read_metrics(run_dir)]


def messages_of(log: CallLog, session_id: str) -> list[dict[str, Any]]:
    """A session's messages in order, each answer after what it answers."""
    return [m for call in log.calls(session_id) for m in (*call.messages, call.answer)]


def _samples(config: BenchmarkConfig) -> list[Sample]:
    if not call_log(config).is_file():
        return []
    families = {task.name: task.family for task in heldout.held_out(config)}
    chosen = choose(
        {p.name: heldout.results(config, p.name) for p in config.policies}, success_reward=config.success_reward
    )
    with CallLog(call_log(config), read_only=True) as log:
        return [
            sample(r, families.get(r.task), messages_of(log, r.session_id)) for r in chosen if r.session_id is not None
        ]


def _rate_cells(rate: Rate) -> dict[str, Any]:
    if rate.success is None or rate.low is None or rate.high is None:
        return {"success": "no graded rollout", "95 % interval": "", "rollouts": 0, "not graded": rate.failed}
    return {
        "success": f"{100 * rate.success:.1f} %",
        "95 % interval": f"{100 * rate.low:.1f} - {100 * rate.high:.1f} %",
        "rollouts": rate.n,
        "not graded": rate.failed,
    }


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
