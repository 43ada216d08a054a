"""Run benchmarks and print their figures as JSON: `python -m bench.run [name ...]`.

Each benchmark is a module with `def run() -> list[dict]`, one object per measurement with at least `name`, `value` and
`unit`. Each runs in its own process, so that a crash costs its own figures only and shows up as an object with `error`.
Results go to bench/results.json too. Exit code 1 when a benchmark failed, 2 for an unknown name.
"""

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

BENCHMARKS: dict[str, str] = {
    "engine": "bench.engine",
    "proxy": "bench.proxy_latency",
    "log": "bench.log_size",
    "prefect": "bench.prefect_overhead",
    "quickstart": "bench.quickstart_stages",
}
"""Name → module."""

TIMEOUT_S = 600.0
"""Longest run of one benchmark."""
RESULTS = Path(__file__).parent / "results.json"
TAIL_LINES = 5
"""Lines of a failed benchmark's output that its error quotes."""


def run_here(module: str, out: Path) -> None:
    """Run one benchmark in this process and write its objects to ``out``."""
    out.write_text(json.dumps(importlib.import_module(module).run()), encoding="utf-8")


def run_apart(name: str, module: str, timeout_s: float) -> list[dict[str, Any]]:
    """Run ``module`` in a process of its own; a failure comes back as one object with ``name`` and ``error``."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "out.json"
        argv = [sys.executable, "-m", "bench.run", "--here", module, str(out)]
        try:
            done = subprocess.run(
                argv,
                cwd=Path(__file__).parent.parent,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=timeout_s,
            )
        except subprocess.TimeoutExpired:
            return [{"name": name, "error": f"still running after {timeout_s:g} s; stopped"}]
        if done.returncode != 0 or not out.is_file():
            tail = " | ".join(done.stdout.strip().splitlines()[-TAIL_LINES:])
            return [{"name": name, "error": f"exit code {done.returncode}: {tail}"}]
        return json.loads(out.read_text(encoding="utf-8"))


def main(argv: Sequence[str]) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.run", description="Run benchmarks and print JSON.")
    parser.add_argument("names", nargs="*", help=f"any of: {', '.join(BENCHMARKS)}; none means all")
    parser.add_argument("--timeout-s", type=float, default=TIMEOUT_S, help="longest run of one benchmark, seconds")
    parser.add_argument(
        "--here", nargs=2, metavar=("MODULE", "FILE"), help="run one module in this process, write to FILE"
    )
    args = parser.parse_args(argv)
    unknown = [name for name in args.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; known: {', '.join(BENCHMARKS)}")
    if args.here is not None:
        run_here(args.here[0], Path(args.here[1]))
        return 0
    results: list[dict[str, Any]] = []
    for name in args.names or BENCHMARKS:
        results += run_apart(name, BENCHMARKS[name], args.timeout_s)
    text = json.dumps(results, indent=2)
    RESULTS.write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(text + "\n")
    return int(any("error" in result for result in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
