"""Seconds of each stage of the last quickstart on this machine, from its own report."""

import json
from pathlib import Path
from typing import Any

REPORT = Path(__file__).parent.parent / "runs" / "quickstart" / "report.json"


def run() -> list[dict[str, Any]]:
    """One object per stage and one for the peak memory; says how to make the figures when there was no quickstart."""
    if not REPORT.is_file():
        raise SystemExit(f"{REPORT} does not exist: run `make quickstart` first, its report holds the stage times")
    report = json.loads(REPORT.read_text())
    stages = [
        {"name": f"quickstart_{stage}", "value": seconds, "unit": "s"} for stage, seconds in report["seconds"].items()
    ]
    return [*stages, {"name": "quickstart_peak", "value": report["peak_gib"], "unit": "GiB"}]
