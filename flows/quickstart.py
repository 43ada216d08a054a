"""The whole loop as a person would do it in the UI: four deployments, one after the other, then the table."""

import asyncio
import contextlib
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from benchmarks.run_files import read_rl_steps, rl_totals
from benchmarks.summary import QuickstartReport, levels_table, quickstart_report, write_report_json
from contracts.config import Config
from contracts.errors import OpenForgeError
from flows.config import BenchmarkRun, DatagenRun, RlRun, SftRun
from flows.config_file import read_config
from flows.installation import installed
from flows.memory import Peak, watched
from flows.prefect_api import PrefectApi
from flows.server import Server
from tasks.report import build_report, scores
from tasks.steps import in_words
from trainer.records import read_steps, step_path

POLICIES = ("base", "sft", "rl")
_POLL_S = 2.0


class StageFailed(OpenForgeError):
    """A stage of the quickstart did not complete."""


@dataclass(frozen=True)
class Stages:
    """The parameters of the four deployments."""

    datagen: DatagenRun
    sft: SftRun
    rl: RlRun
    benchmark: BenchmarkRun

    def in_order(self) -> list[tuple[str, Config]]:
        """Deployment → its parameter."""
        return [("datagen", self.datagen), ("sft", self.sft), ("rl-train", self.rl), ("benchmark", self.benchmark)]


@dataclass
class Clock:
    """Seconds per stage."""

    seconds: dict[str, float] = field(default_factory=dict)
    _since: float = field(default_factory=time.monotonic)

    def lap(self, stage: str) -> float:
        """The stage that ends now; returns its seconds."""
        now = time.monotonic()
        self.seconds[stage] = round(now - self._since, 1)
        self._since = now
        return self.seconds[stage]


def run(root: Path, port: int | None, seed: int, fresh: bool) -> int:
    """Run the quickstart of the checkout at ``root``; returns the exit code.

    Raises:
        StageFailed: a stage did not complete.
        ConfigError, PrefectDown: it could not be started.
    """
    return asyncio.run(_run(root, port, seed, fresh))


def out_dir(root: Path, seed: int) -> Path:
    """Where everything of one quickstart lies."""
    return root / "runs" / ("quickstart" if seed == 0 else f"quickstart-seed{seed}")


def read_stages(root: Path, seed: int) -> Stages:
    """The parameters from configs/quickstart.*.toml with seed and directories filled in.

    Raises:
        ConfigError: a file is broken.
    """
    configs, out = root / "configs", out_dir(root, seed).relative_to(root)
    tasks = f"{out}/tasks/tasks"
    sft = read_config(
        SftRun, configs / "quickstart.sft.toml", [f"run_dir={out}/sft", f"teacher.tasks={tasks}", f"sft.seed={seed}"]
    )
    models = dict(zip(POLICIES, (sft.sft.model, out / "sft", out / "rl"), strict=True))
    policies = ", ".join(f'{{name = "{name}", model = "{model}"}}' for name, model in models.items())
    return Stages(
        datagen=read_config(
            DatagenRun, configs / "quickstart.datagen.toml", [f"datagen.out={out}/tasks", f"datagen.seed={seed}"]
        ),
        sft=sft,
        rl=read_config(
            RlRun,
            configs / "quickstart.rl-train.toml",
            [f"run_dir={out}/rl", f"rl.model={out}/sft", f"rl.tasks={tasks}", f"rl.seed={seed}"],
        ),
        benchmark=read_config(
            BenchmarkRun,
            configs / "quickstart.benchmark.toml",
            [
                f"benchmark.tasks={tasks}", f"benchmark.out={out}/benchmark", f"benchmark.seed={seed}",
                f"benchmark.policies=[{policies}]", f"datagen_dir={out}/tasks", f"sft_run_dir={out}/sft", f"rl_run_dir={out}/rl",
            ],
        ),
    )  # fmt: skip


async def _run(root: Path, port: int | None, seed: int, fresh: bool) -> int:
    os.chdir(root)
    console = Console()
    stages, out = read_stages(root, seed), out_dir(root, seed)
    if fresh:
        shutil.rmtree(out, ignore_errors=True)
    clock = Clock()

    def tell(line: str) -> None:
        console.print(line, highlight=False)

    # A nightly benchmark in between would take time and memory from what is measured here.
    async with watched() as peak, installed(root, port, tell, schedules=False) as server:
        clock.lap("server")
        new_lines = _new_steps(root / stages.rl.run_dir)
        async with PrefectApi(server.api_url) as api:
            for name, config in stages.in_order():
                await _stage(api, name, config, console, new_lines)
                console.print(f"{name}: done in {clock.lap(name):.0f} s", highlight=False)
        report = _finish(root, stages, seed, clock.seconds, peak)
        _print_end(console, server, root, stages, report, peak)
        if sys.stdout.isatty():
            console.print("The UI is served until Ctrl-C; `openforge up` serves it again.")
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
    return 0


async def _stage(
    api: PrefectApi, name: str, config: Config, console: Console, new_lines: Callable[[], list[str]]
) -> None:
    before = await api.rollouts_done()
    run_id = await api.trigger(name, {"config": config.model_dump(mode="json")})
    start = time.monotonic()
    with console.status(f"{name}: waiting for the worker") as status:
        while not (state := await api.state(run_id)).final:
            done = await api.rollouts_done() - before
            status.update(f"{name}: {state.name}, {time.monotonic() - start:.0f} s, {done} rollouts")
            _print_all(console, new_lines())
            await asyncio.sleep(_POLL_S)
    _print_all(console, new_lines())
    if state.kind != "COMPLETED":
        raise StageFailed(
            f"{name} ended {state.name}: {state.message} (flow run {run_id}; its log: `openforge up`, then the UI)"
        )


def _print_all(console: Console, lines: list[str]) -> None:
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


def _new_steps(run_dir: Path) -> Callable[[], list[str]]:
    """A function that returns a line for each training step that has ended since its last call."""
    seen: set[int] = set()

    def new_lines() -> list[str]:
        fresh = [r.step for r in read_steps(run_dir) if r.step not in seen]
        seen.update(fresh)
        return [in_words(step_path(run_dir, step)) for step in fresh]

    return new_lines


def _finish(root: Path, stages: Stages, seed: int, seconds: dict[str, float], peak: Peak) -> QuickstartReport:
    settings = stages.benchmark.benchmark
    by_name = {found.policy: found for found in scores(settings)}
    report = quickstart_report(
        seed=seed,
        base=by_name["base"],
        sft=by_name["sft"],
        rl=by_name["rl"],
        seconds=seconds,
        peak_gib=round(peak.gib, 2),
        totals=rl_totals(read_rl_steps(stages.rl.run_dir)),
    )
    write_report_json(report, out_dir(root, seed) / "report.json")
    build_report(
        settings,
        title="OpenForgeRL quickstart",
        datagen_dir=stages.benchmark.datagen_dir,
        sft_run_dir=stages.benchmark.sft_run_dir,
        rl_run_dir=stages.benchmark.rl_run_dir,
        seconds=seconds,
        peak_gib=peak.gib,
    )
    return report


def _print_end(
    console: Console, server: Server, root: Path, stages: Stages, report: QuickstartReport, peak: Peak
) -> None:
    seconds = ", ".join(f"{name} {s:.0f} s" for name, s in report.seconds.items())
    largest = ", ".join(f"{name} {gib:.2f}" for name, gib in list(peak.by_program.items())[:5])
    violations = " ".join(f"{name}={n}" for name, n in report.invariants.items())
    for line in (
        "",
        f"UI      {server.ui_url}",
        f"report  {root / stages.benchmark.benchmark.out / 'report.html'}",
        f"figures {out_dir(root, report.seed) / 'report.json'}",
        f"time    {sum(report.seconds.values()):.0f} s: {seconds}",
        f"memory  {report.peak_gib:.2f} GiB at the peak ({largest})",
        f"tokens  {report.rows_per_rollout:.2f} rows per rollout, largest logprob difference {report.max_logprob_diff}",
        f"checks  violations {violations}",
        f"seed    {report.seed}",
        "",
        levels_table(report),
    ):
        console.print(line, highlight=False, soft_wrap=True)
