"""The quickstart in one small object: `report.json` and the table that ends the run."""

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from benchmarks.run_files import RlTotals
from benchmarks.score import PolicyScore
from contracts.config import Record


class Level(Record):
    """One policy's held-out success rate with its Wilson 95 % interval."""

    success: float | None = Field(ge=0, le=1)
    """None together with ``low`` and ``high``: no rollout was graded."""
    low: float | None
    high: float | None
    n: int = Field(ge=0)
    """Graded rollouts."""


class QuickstartReport(Record):
    """What `runs/quickstart/report.json` holds; its keys are an API."""

    seed: int
    base: Level
    sft: Level
    rl: Level
    seconds: dict[str, float]
    """Stage → seconds."""
    peak_gib: float
    """Peak memory of the process tree."""
    invariants: dict[str, int]
    """``I1`` … ``I6`` → violations over the whole RL run."""
    rows_per_rollout: float | None
    """None when no rollout was usable."""
    max_logprob_diff: float | None
    """Largest |engine - trainer| log-probability; None when it was not measured."""


def quickstart_report(
    *,
    seed: int,
    base: PolicyScore,
    sft: PolicyScore,
    rl: PolicyScore,
    seconds: Mapping[str, float],
    peak_gib: float,
    totals: RlTotals,
) -> QuickstartReport:
    """Put the object together from the three scores and the RL run's totals."""
    return QuickstartReport(
        seed=seed,
        base=level(base),
        sft=level(sft),
        rl=level(rl),
        seconds=dict(seconds),
        peak_gib=peak_gib,
        invariants=totals.violations,
        rows_per_rollout=totals.rows_per_rollout,
        max_logprob_diff=totals.max_logprob_diff,
    )


def level(score: PolicyScore) -> Level:
    """The four figures of a policy."""
    return Level(success=score.rate.success, low=score.rate.low, high=score.rate.high, n=score.rate.n)


def write_report_json(report: QuickstartReport, path: Path) -> None:
    """Write the object whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")
    new.write_text(report.model_dump_json(indent=2) + "\n", encoding="utf-8")
    os.replace(new, path)


def levels_table(report: QuickstartReport) -> str:
    """The three levels as aligned text lines for a terminal."""
    lines = [f"{'policy':<10} {'success':>8}   {'95 % interval':<15} {'rollouts':>8}"]
    for name, found in (("base", report.base), ("after SFT", report.sft), ("after RL", report.rl)):
        if found.success is None or found.low is None or found.high is None:
            lines.append(f"{name:<10} {'no graded rollout':>8}")
            continue
        interval = f"{100 * found.low:.1f} - {100 * found.high:.1f} %"
        lines.append(f"{name:<10} {100 * found.success:>6.1f} %   {interval:<15} {found.n:>8}")
    return "\n".join(lines)
