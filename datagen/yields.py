"""The yield table: how many tasks entered, passed and left each stage, per family and reason."""

from collections import Counter
from collections.abc import Iterable, Sequence

from datagen.records import FamilyYield, StageReport, Verdict


def tally(stage: str, verdicts: Iterable[Verdict]) -> StageReport:
    """Count the verdicts of one stage; families in the order of their first task."""
    verdicts = list(verdicts)
    families = dict.fromkeys(v.family for v in verdicts)
    return StageReport(
        stage=stage,
        entered=len(verdicts),
        passed=sum(v.ok for v in verdicts),
        dropped=_reasons(verdicts),
        families=tuple(_family(name, [v for v in verdicts if v.family == name]) for name in families),
    )


def markdown(reports: Sequence[StageReport]) -> str:
    """The table as Markdown: one row per stage and family, a total per stage."""
    lines = ["| stage | family | in | out | dropped |", "|---|---|---:|---:|---|"]
    for report in reports:
        for row in report.families:
            lines.append(_line(report.stage, row.family, row.entered, row.passed, row.dropped))
        lines.append(_line(report.stage, "**all**", report.entered, report.passed, report.dropped))
    return "\n".join(lines) + "\n"


def _family(name: str, verdicts: Sequence[Verdict]) -> FamilyYield:
    return FamilyYield(
        family=name, entered=len(verdicts), passed=sum(v.ok for v in verdicts), dropped=_reasons(verdicts)
    )


def _reasons(verdicts: Iterable[Verdict]) -> dict[str, int]:
    return dict(sorted(Counter(v.reason for v in verdicts if v.reason is not None).items()))


def _line(stage: str, family: str, entered: int, passed: int, dropped: dict[str, int]) -> str:
    reasons = ", ".join(f"{reason} {n}" for reason, n in dropped.items()) or "–"
    return f"| {stage} | {family} | {entered} | {passed} | {reasons} |"
