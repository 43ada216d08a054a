"""The HTML report of a run: one file that needs nothing else, readable on a phone."""

import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from pydantic import AwareDatetime, Field

from benchmarks import curves
from benchmarks.run_files import INVARIANTS, RlStep, SftLoss, StageYield, rl_totals
from benchmarks.samples import Sample, turns
from benchmarks.score import PolicyScore, Rate, separated
from contracts.config import Record

TEMPLATE = "report.html.j2"
SHOWN_NAMES = {"base": "Base", "sft": "After SFT", "rl": "After RL"}
"""Policy name → heading; other policies keep their names."""
ABSENT = "\N{EN DASH}"
INVARIANT_TEXTS = {
    "I1": "Every sampled token is trained at most once, in exactly the context it was sampled in.",
    "I2": "Every log-probability was returned by the engine for that token in that context.",
    "I3": "No sampled token enters a row as environment text without being counted.",
    "I4": "Rollouts with a missing, unrecorded or undelivered call are flagged, not trained.",
    "I5": "Advantages are per rollout, and every rollout weighs 1 whatever its number of rows.",
    "I6": "Merging the log again gives the same rows byte for byte.",
}


class ReportData(Record):
    """Everything a report shows. Parts that a run did not have are None or empty and leave no heading."""

    title: str
    made_at: AwareDatetime
    seed: int
    levels: tuple[PolicyScore, ...]
    """Scores in the order of training."""
    rl_steps: tuple[RlStep, ...] = ()
    sft_losses: tuple[SftLoss, ...] = ()
    yields: tuple[StageYield, ...] = ()
    """Stages of data generation in order."""
    peak_gib: float | None = None
    """Peak memory of the process tree."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """Stage → seconds."""
    versions: dict[str, str] = Field(default_factory=dict)
    """Package → version."""
    samples: tuple[Sample, ...] = ()


def write_report(data: ReportData, path: Path) -> None:
    """Write the page whole or not at all. What a model wrote and UTF-8 cannot hold is shown as an escape."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")
    new.write_text(render(data), encoding="utf-8", errors="backslashreplace")
    os.replace(new, path)


def render(data: ReportData) -> str:
    """The page as text; the same data give the same bytes."""
    totals = rl_totals(data.rl_steps) if data.rl_steps else None
    environment = Environment(
        loader=PackageLoader("benchmarks", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = _percent
    environment.filters["points"] = _points
    environment.filters["reasons"] = _reasons
    environment.filters["figure"] = _figure
    environment.filters["shown_name"] = _shown_name
    return environment.get_template(TEMPLATE).render(
        data=data,
        levels=data.levels,
        verdicts=_verdicts(data.levels),
        family_rows=_family_rows(data.levels),
        endings=[(s.policy, e) for s in data.levels for e in s.endings],
        plots=_plots(data),
        totals=totals,
        invariants=_invariant_rows(totals.violations) if totals is not None else [],
        samples=[(s, turns(s.messages)) for s in data.samples],
        total_s=sum(data.seconds.values()),
    )


def _plots(data: ReportData) -> dict[str, Markup]:
    """Plot name → trusted SVG; only the plots whose data are there."""
    plots: dict[str, Markup] = {}
    if any(s.rate.success is not None for s in data.levels):
        plots["levels"] = Markup(curves.levels_svg([(_shown_name(s.policy), s) for s in data.levels]))
    if data.sft_losses:
        plots["sft"] = Markup(curves.sft_loss_svg(data.sft_losses))
    if data.rl_steps:
        plots["reward"] = Markup(curves.reward_svg(data.rl_steps))
        plots["rows"] = Markup(curves.rows_svg(data.rl_steps))
        plots["seconds"] = Markup(curves.seconds_svg(data.rl_steps))
        if any(s.max_logprob_diff is not None for s in data.rl_steps):
            plots["logprob"] = Markup(curves.logprob_svg(data.rl_steps))
    return plots


def _verdicts(levels: tuple[PolicyScore, ...]) -> list[str]:
    """One sentence per neighbouring pair: the difference in points, and whether the intervals overlap."""
    found = []
    for lower, upper in pairwise(levels):
        if lower.rate.success is None or upper.rate.success is None:
            continue
        points = 100 * (upper.rate.success - lower.rate.success)
        overlap = (
            "do not overlap" if separated(lower.rate, upper.rate) or separated(upper.rate, lower.rate) else "overlap"
        )
        found.append(
            f"{_shown_name(upper.policy)} against {_shown_name(lower.policy)}: {points:+.1f} points; "
            f"the 95 % intervals {overlap}."
        )
    return found


def _family_rows(levels: tuple[PolicyScore, ...]) -> list[tuple[str, list[Rate | None]]]:
    """Family → its rate per policy, None where the policy has no such family."""
    names = sorted({f.family for s in levels for f in s.families})
    return [(name, [next((f.rate for f in s.families if f.family == name), None) for s in levels]) for name in names]


def _invariant_rows(violations: dict[str, int]) -> list[tuple[str, str, int]]:
    return [
        (name, INVARIANT_TEXTS.get(name, ""), violations.get(name, 0)) for name in sorted({*INVARIANTS, *violations})
    ]


def _shown_name(policy: str) -> str:
    return SHOWN_NAMES.get(policy, policy)


def _percent(value: float | None) -> str:
    return ABSENT if value is None else f"{100 * value:.1f}\N{NO-BREAK SPACE}%"


def _points(value: float | None) -> str:
    return ABSENT if value is None else f"{100 * value:.1f}"


def _figure(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.4g}"


def _reasons(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{reason.replace('_', ' ')} {count}" for reason, count in sorted(counts.items())) or ABSENT
