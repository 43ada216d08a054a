"""Plots as SVG text that can stand inside an HTML page: no scripts, nothing from elsewhere.

The only module with matplotlib.
Colours: Okabe and Ito 2008, told apart with any colour vision; each plot
also says its values in words through its label.
"""

import html
import io
import re
from collections.abc import Sequence
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from benchmarks.run_files import RlStep, SftLoss
from benchmarks.score import PolicyScore

BLUE, ORANGE, GREEN, PURPLE, GREY, INK = "#0072B2", "#D55E00", "#009E73", "#AA4499", "#6B7280", "#1F2937"
BAR_COLOURS = (GREY, BLUE, ORANGE, GREEN, PURPLE)
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "openforge",
    "font.family": "sans-serif",
    "font.size": 11,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#9CA3AF",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E5E7EB",
    "xtick.color": INK,
    "ytick.color": INK,
}
SIZE_IN = (5.4, 3.2)


def levels_svg(levels: Sequence[tuple[str, PolicyScore]]) -> str:
    """Success rate of each policy with its 95 % interval: bars in the given order. ``levels``: (shown name, score)."""
    shown = [
        (name, s.rate.success, s.rate.low, s.rate.high)
        for name, s in levels
        if s.rate.success is not None and s.rate.low is not None and s.rate.high is not None
    ]
    with rc_context(STYLE):
        figure, axes = _axes(None, "success rate")
        for x, (_name, rate, low, high) in enumerate(shown):
            axes.bar(x, rate, width=0.55, color=BAR_COLOURS[x % len(BAR_COLOURS)])
            axes.errorbar(x, rate, yerr=[[rate - low], [high - rate]], color=INK, capsize=6, linewidth=1.6)
            axes.text(x, high + 0.02, f"{100 * rate:.1f} %", ha="center", va="bottom", fontweight="bold")
        axes.set_xticks(range(len(shown)), [name for name, *_ in shown])
        axes.set_xlim(-0.6, max(len(shown), 1) - 0.4)
        axes.grid(axis="x", visible=False)
        _percent(axes, top=1.12)
        said = (f"{name} {100 * r:.1f} percent, interval {100 * a:.1f} to {100 * b:.1f}" for name, r, a, b in shown)
        return _svg(figure, "levels", f"Success rate per policy: {'; '.join(said)}.")


def reward_svg(steps: Sequence[RlStep]) -> str:
    """Mean reward of the graded rollouts of each training step."""
    points = [(s.step, s.mean_reward) for s in steps if s.mean_reward is not None]
    with rc_context(STYLE):
        figure, axes = _axes("training step", "mean reward")
        axes.plot([x for x, _ in points], [y for _, y in points], color=ORANGE, marker="o", markersize=4, linewidth=2)
        axes.set_ylim(-0.03, 1.03)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        said = f"from {points[0][1]:.3f} to {points[-1][1]:.3f} in {len(points)} steps" if points else "no graded step"
        return _svg(figure, "reward", f"Mean training reward: {said}.")


def sft_loss_svg(losses: Sequence[SftLoss]) -> str:
    """Training loss, and validation loss where it was measured."""
    train = [(p.step, p.train) for p in losses if p.train is not None]
    validation = [(p.step, p.validation) for p in losses if p.validation is not None]
    with rc_context(STYLE):
        figure, axes = _axes("optimiser step", "loss per trained token, nats")
        axes.plot([x for x, _ in train], [y for _, y in train], color=BLUE, linewidth=2, label="training")
        if validation:
            axes.plot(
                [x for x, _ in validation],
                [y for _, y in validation],
                "o--",
                color=PURPLE,
                linewidth=1.5,
                markersize=5,
                label="validation",
            )
            axes.legend(frameon=False)
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        said = f"from {train[0][1]:.3f} to {train[-1][1]:.3f} in {len(train)} steps" if train else "no training loss"
        return _svg(figure, "sft", f"Supervised loss: {said}.")


def rows_svg(steps: Sequence[RlStep]) -> str:
    """Training rows per rollout of each step; 1 means that nothing was split."""
    points = [(s.step, s.rows_per_rollout) for s in steps if s.rows_per_rollout is not None]
    with rc_context(STYLE):
        figure, axes = _axes("training step", "rows per rollout")
        axes.plot([x for x, _ in points], [y for _, y in points], color=BLUE, marker="o", markersize=4)
        axes.set_ylim(0, 1.25 * max((y for _, y in points), default=1.0))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        return _svg(figure, "rows", f"Rows per rollout: {_span([y for _, y in points])}.")


def logprob_svg(steps: Sequence[RlStep], limit: float = 1e-4) -> str:
    """Largest engine-to-trainer log-probability difference of each step, and the limit it must stay under."""
    values = [(s.step, s.max_logprob_diff) for s in steps if s.max_logprob_diff is not None]
    with rc_context(STYLE):
        figure, axes = _axes("training step", "max |Δ logprob|")
        axes.plot([x for x, _ in values], [y for _, y in values], color=PURPLE, marker="o", markersize=4)
        axes.axhline(limit, color=ORANGE, linestyle="--", linewidth=1.5)
        axes.text(
            0.99,
            limit * 1.15,
            f"limit {limit:g}",
            ha="right",
            va="bottom",
            color="#A34700",
            transform=axes.get_yaxis_transform(),
        )
        if any(y > 0 for _, y in values):
            axes.set_yscale("log")
        axes.set_ylim(top=limit * 5 if all(y < limit for _, y in values) else None)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        return _svg(
            figure, "logprob", f"Largest log-probability difference: {_span([v for _, v in values])}, limit {limit:g}."
        )


def seconds_svg(steps: Sequence[RlStep]) -> str:
    """Where the time of each training step went: stacked bars."""
    x = [s.step for s in steps]
    parts = {
        "rollouts": (BLUE, [s.seconds.rollouts for s in steps]),
        "log-probs": (PURPLE, [s.seconds.log_prob for s in steps]),
        "update": (ORANGE, [s.seconds.update for s in steps]),
        "weights to engine": (GREEN, [s.seconds.weight_sync or 0.0 for s in steps]),
        "checkpoint": (GREY, [s.seconds.checkpoint or 0.0 for s in steps]),
    }
    with rc_context(STYLE):
        figure, axes = _axes("training step", "seconds")
        floor = [0.0] * len(steps)
        for name, (colour, seconds) in parts.items():
            axes.bar(x, seconds, bottom=floor, width=0.8, color=colour, label=name)
            floor = [below + s for below, s in zip(floor, seconds, strict=True)]
        axes.set_ylim(0, 1.45 * max(floor, default=1.0) or 1.0)
        axes.legend(frameon=False, ncols=3, loc="upper center", fontsize=9)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        return _svg(figure, "seconds", f"Seconds per step: {_span(floor)}.")


def _axes(xlabel: str | None, ylabel: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=SIZE_IN, layout="constrained")
    axes = figure.add_subplot()
    axes.set_ylabel(ylabel)
    if xlabel is not None:
        axes.set_xlabel(xlabel)
    return figure, axes


def _percent(axes: Axes, top: float) -> None:
    axes.set_ylim(0, top)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1.0])
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def _span(values: Sequence[float]) -> str:
    return f"{min(values):.3g} to {max(values):.3g}" if values else "not measured"


def _svg(figure: Figure, name: str, label: str) -> str:
    """The figure as an ``<svg>`` element that scales with its box; ids carry ``name`` so that several fit one page."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = text.replace("url(#", f"url(#{name}-").replace('href="#', f'href="#{name}-')
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    return text.replace("<svg", f'<svg role="img" aria-label="{html.escape(label)}"', 1)
