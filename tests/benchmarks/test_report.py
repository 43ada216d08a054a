import re
import xml.etree.ElementTree as ET
from datetime import UTC, datetime

import pytest

from benchmarks.report import ReportData, render, write_report
from benchmarks.run_files import RlStep, SftLoss, StageYield
from benchmarks.samples import Sample
from benchmarks.score import score
from contracts.rollout import Cause, Evidence, Outcome

FAMILIES = ("write_file", "rename_file", "sort_lines", "count_lines")
MADE_AT = datetime(2024, 1, 1, 12, 30, tzinfo=UTC)


def policy_score(make_result, policy, share):
    """64 tasks of four families, 4 attempts each; about ``share`` of 16 attempts are solved."""
    results = [
        make_result(f"{FAMILIES[t % 4]}-{t // 4:04}", float((5 * t + 3 * i) % 16 < share), policy, wall_s=1.5)
        for t in range(64)
        for i in range(4)
    ]
    lost = Evidence(detail="the runner sent no heartbeat for 30 s")
    results[0] = make_result(results[0].task, None, policy, outcome=Outcome.FAILED, cause=Cause.SANDBOX, evidence=lost)
    results[1] = make_result(results[1].task, None, policy, outcome=Outcome.TRUNCATED, cause=Cause.TURNS)
    return score(policy, results, {r.task: r.task.split("-")[0] for r in results})


def sample(policy, task, reward, command):
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "bash", "arguments": f'{{"command": "{command}"}}'},
    }
    messages = (
        {"role": "system", "content": "You are an agent with a shell."},
        {"role": "user", "content": "Write the word <b>tovu</b> to the file rami.txt"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "[exit code 0]"},
        {"role": "assistant", "content": "Done. \ud800"},
    )
    return Sample(
        policy=policy,
        task=task,
        family="write_file",
        outcome=Outcome.COMPLETED,
        cause=None,
        reward=reward,
        messages=messages,
    )


def rl_step(i, **changes):
    seconds = {
        "rollouts": 5.5 + i % 4,
        "log_prob": 0.6,
        "update": 1.1,
        "weight_sync": 0.2,
        "checkpoint": None,
        "total": None,
    }
    values = {
        "step": i,
        "rollouts": 64,
        "failed": {"sandbox": 1} if i == 4 else {},
        "rows_per_rollout": 1.0,
        "mean_reward": 0.42 + 0.5 * (1 - 0.9**i),
        "violations": {},
        "max_logprob_diff": 2e-6 + 1e-6 * (i % 3),
        "seconds": seconds,
    }
    return RlStep.model_validate(values | changes)


def stage_yield(stage, dropped):
    families = [
        {"family": f, "entered": 40, "passed": 40 - d, "dropped": {"near_duplicate": d} if d else {}}
        for f, d in zip(FAMILIES, dropped, strict=True)
    ]
    lost = sum(dropped)
    totals = {"entered": 160, "passed": 160 - lost, "dropped": {"near_duplicate": lost} if lost else {}}
    return StageYield.model_validate({"stage": stage, "families": families} | totals)


@pytest.fixture
def data(make_result):
    shown = enumerate(("base", "sft", "sft", "rl", "rl"))
    return ReportData(
        title="Quickstart: base, SFT and RL on held-out tasks",
        made_at=MADE_AT,
        seed=0,
        levels=tuple(policy_score(make_result, name, share) for name, share in (("base", 1), ("sft", 7), ("rl", 15))),
        rl_steps=tuple(rl_step(i) for i in range(1, 31)),
        sft_losses=tuple(
            SftLoss(step=i, train=3 * 0.93**i + 0.2, validation=3 * 0.93**i + 0.3 if i % 20 == 0 else None)
            for i in range(1, 61)
        ),
        yields=(
            stage_yield("generate", (0, 0, 0, 0)),
            stage_yield("filter", (1, 0, 2, 0)),
            stage_yield("test-0", (0, 0, 0, 0)),
        ),
        peak_gib=3.4567,
        seconds={"datagen": 41.0, "sft": 66.5, "rl-train": 401.0, "benchmark": 95.0},
        versions={"openforge-rl": "0.1.0", "verl": "0.9.1", "torch": "2.13.0", "prefect": "3.9.1"},
        samples=tuple(sample(p, f"write_file-{i:04}", float(i % 2), "echo tovu > rami.txt") for i, p in shown),
    )


def test_the_page_is_one_file_that_fetches_nothing(data, tmp_path):
    path = tmp_path / "new" / "report.html"
    write_report(data, path)
    page = path.read_text(encoding="utf-8")
    assert "<script" not in page
    assert not re.search(r'(?:src|href)="(?!#)', page)
    assert not re.search(r"@import|url\((?!#)", page)
    assert len(page) < 1_000_000


def test_the_page_shows_rates_verdicts_causes_and_figures(data):
    page = render(data)
    rl = data.levels[2].rate
    assert f"<b>{100 * rl.success:.1f}\N{NO-BREAK SPACE}%</b>" in page
    assert "After RL against After SFT: +" in page
    assert "the 95 % intervals do not overlap" in page
    assert "the runner sent no heartbeat for 30 s" in page
    assert "3.46 GiB" in page
    assert "604 s" in page  # 41 + 66.5 + 401 + 95 = 603.5
    assert "1920 rollouts in 30 steps; failed and left out: sandbox 1." in page  # 30 x 64
    assert "near duplicate 3" in page  # filter: 1 + 2
    assert all(f"<td>I{i}</td>" in page for i in range(1, 7))


def test_what_a_model_wrote_is_shown_and_never_run(data, tmp_path):
    write_report(data, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;tovu&lt;/b&gt;" in page
    assert "<b>tovu" not in page
    assert "Done. \\ud800" in page


def test_every_plot_is_well_formed_labelled_and_has_ids_of_its_own(data):
    plots = re.findall(r"<svg.*?</svg>", render(data), flags=re.DOTALL)
    assert len(plots) == 6
    ids = [[e.get("id") for e in ET.fromstring(plot).iter() if e.get("id")] for plot in plots]
    assert all('role="img" aria-label="' in plot[:200] for plot in plots)
    flat = [name for plot in ids for name in plot]
    assert len(flat) == len(set(flat))


def test_the_same_data_give_the_same_bytes(data):
    assert render(data) == render(data)


def test_a_benchmark_alone_has_a_page_without_the_other_headings(data, make_result):
    alone = ReportData(title="Nightly", made_at=MADE_AT, seed=1, levels=data.levels[:1])
    page = render(alone)
    assert "Held-out success" in page
    for heading in (
        "Reinforcement learning",
        "Supervised",
        "Invariants",
        "Task generation",
        "Versions",
        "Sample rollouts",
    ):
        assert f"<h2>{heading}" not in page


def test_violations_stand_out(data):
    page = render(data.model_copy(update={"rl_steps": (rl_step(1, violations={"I3": 12}),)}))
    assert '<td class="n bad">12</td>' in page


def test_steps_without_a_usable_rollout_leave_gaps_and_no_error(data):
    empty = rl_step(2, mean_reward=None, rows_per_rollout=None, max_logprob_diff=None)
    assert "Engine against trainer" not in render(data.model_copy(update={"rl_steps": (empty,)}))
    assert "Engine against trainer" in render(data.model_copy(update={"rl_steps": (rl_step(1), empty)}))


def test_a_policy_without_a_graded_rollout_shows_a_dash(make_result):
    failed = [make_result(reward=None, outcome=Outcome.FAILED, cause=Cause.UPSTREAM)]
    page = render(ReportData(title="t", made_at=MADE_AT, seed=0, levels=(score("base", failed, {}),)))
    assert "<b>\N{EN DASH}</b>" in page
    assert "upstream" in page
