"""Reads what the other stages leave in their run folders: training steps, losses, yields. Further keys are ignored.

<rl run>/steps/step-*.json     one object per training step
<sft run>/sft_metrics.jsonl    {"step": 1, "data": {"train/loss": …, "val/loss": …}} per line: veRL's file logger
<task set>/yields.jsonl        one object per stage of data generation, with one entry per family
"""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from contracts.config import Record
from contracts.errors import ConfigError

INVARIANTS = ("I1", "I2", "I3", "I4", "I5", "I6")


class Reading(BaseModel):
    """A frozen view of a file that another package writes: keys that are not needed here are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)


class StepSeconds(Reading):
    """Where the time of a training step went; None: that part has not happened."""

    rollouts: float
    log_prob: float
    update: float
    weight_sync: float | None = None
    checkpoint: float | None = None
    total: float | None = None


class RlStep(Reading):
    """One training step as the report shows it."""

    step: int
    rollouts: int
    """Attempts that were asked for, refills included."""
    failed: dict[str, int]
    """Cause → rollouts that left their group without a reward."""
    rows_per_rollout: float | None
    """None when no rollout was usable."""
    mean_reward: float | None
    """Over the usable rollouts; None when there was none."""
    violations: dict[str, int]
    """``I1`` … ``I6`` → count; an absent key means none was found."""
    max_logprob_diff: float | None
    """Largest |engine - trainer| log-probability of a trained token; None when no row was trained."""
    seconds: StepSeconds


class RlTotals(Record):
    """A whole RL run in a few figures."""

    steps: int
    rollouts: int
    failed: dict[str, int]
    """Cause → failed rollouts of all steps."""
    violations: dict[str, int]
    """All of ``I1`` … ``I6``, summed over the steps."""
    rows_per_rollout: float | None
    """Mean over the steps that have one; None when no rollout was usable."""
    max_logprob_diff: float | None
    """Largest of all steps; None when no row was trained."""


class SftLoss(Record):
    """Loss after one supervised step."""

    step: int
    train: float | None
    validation: float | None


class FamilyYield(Reading):
    """How many tasks of one family entered and passed a stage."""

    family: str
    entered: int
    passed: int
    dropped: dict[str, int] = Field(default_factory=dict)
    """Reason → tasks."""


class StageYield(Reading):
    """What one stage of data generation did."""

    stage: str
    entered: int
    passed: int
    dropped: dict[str, int] = Field(default_factory=dict)
    """Reason → tasks."""
    families: tuple[FamilyYield, ...] = ()


class _Metrics(Reading):
    """The losses in a line of veRL's file logger."""

    train: float | None = Field(default=None, validation_alias="train/loss")
    validation: float | None = Field(default=None, validation_alias="val/loss")


class _MetricsLine(Reading):
    step: int
    data: _Metrics


R = TypeVar("R", bound=BaseModel)


def read_rl_steps(run: Path) -> list[RlStep]:
    """The training steps of an RL run in order; empty when it wrote none.

    Raises:
        ConfigError: a step file is broken or lacks a figure; says which.
    """
    found = [_parsed(RlStep, _text(path), str(path)) for path in (run / "steps").glob("step-*.json")]
    return sorted(found, key=lambda step: step.step)


def rl_totals(steps: Sequence[RlStep]) -> RlTotals:
    """Sum up the steps of a run.

    Raises:
        ValueError: no step.
    """
    if not steps:
        raise ValueError("no training step to sum up")
    rows = [s.rows_per_rollout for s in steps if s.rows_per_rollout is not None]
    names = {*INVARIANTS, *(name for s in steps for name in s.violations)}
    return RlTotals(
        steps=len(steps),
        rollouts=sum(s.rollouts for s in steps),
        failed=dict(sum((Counter(s.failed) for s in steps), Counter())),
        violations={name: sum(s.violations.get(name, 0) for s in steps) for name in sorted(names)},
        rows_per_rollout=sum(rows) / len(rows) if rows else None,
        max_logprob_diff=max((s.max_logprob_diff for s in steps if s.max_logprob_diff is not None), default=None),
    )


def read_sft_losses(path: Path) -> list[SftLoss]:
    """The loss curve of an SFT run in order; empty when the file does not exist. A half-written last line is ignored.

    Raises:
        ConfigError: another line is broken; says which.
    """
    losses: dict[int, SftLoss] = {}
    for line in _lines(_MetricsLine, path):
        loss = SftLoss(step=line.step, train=line.data.train, validation=line.data.validation)
        losses[loss.step] = _joined(losses.get(loss.step), loss)
    measured = (loss for loss in losses.values() if loss.train is not None or loss.validation is not None)
    return sorted(measured, key=lambda loss: loss.step)


def read_yields(path: Path) -> list[StageYield]:
    """The yield table of data generation, stages in order; empty when the file does not exist.

    Raises:
        ConfigError: a line is broken; says which.
    """
    return _lines(StageYield, path)


def _joined(before: SftLoss | None, new: SftLoss) -> SftLoss:
    """Training and validation loss of one step stand on lines of their own."""
    if before is None:
        return new
    return SftLoss(
        step=new.step,
        train=before.train if new.train is None else new.train,
        validation=before.validation if new.validation is None else new.validation,
    )


def _lines(model: type[R], path: Path) -> list[R]:
    if not path.exists():
        return []
    *lines, _torn = _text(path).split("\n")
    return [_parsed(model, line, f"{path}: line {number}") for number, line in enumerate(lines, start=1)]


def _parsed(model: type[R], text: str, where: str) -> R:
    try:
        return model.model_validate(json.loads(text))
    except ValidationError as e:
        first = e.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise ConfigError(f"{where}: {key}: {first['msg']}; run that stage again, or leave its directory out.") from e
    except ValueError as e:
        raise ConfigError(f"{where} is no JSON: {e}; run that stage again, or leave its directory out.") from e


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise ConfigError(f"{path} cannot be read: {e}.") from e
