"""The whole loop, small, through the deployments of a real server and worker; and a training run that is killed and started again."""

import os
import signal
import sqlite3
from pathlib import Path

import pytest
from processes import commands_with, flow_processes, until
from waiting import final, triggered

from flows.prefect_api import PrefectApi
from flows.server import PrefectDown
from flows.up_note import Note
from trainer.records import INVARIANTS, read_steps

REPO = Path(__file__).resolve().parents[2]
BASE = REPO / "trainer" / "tiny" / "base"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
LIMITS = {"wall_clock_s": 60.0, "turns": 4, "answer_tokens": 48}


def datagen(root: Path) -> dict:
    settings = {
        "out": str(root / "tasks"), "families": ["write_file"], "train_per_family": 8, "eval_per_family": 2, "repeats": 1,
    }  # fmt: skip
    return {"datagen": settings}


def sft(root: Path) -> dict:
    training = {"model": str(BASE), "epochs": 1, "batch_rows": 4, "heldout_fraction": 0.0, "max_tokens": 512}
    return {"run_dir": str(root / "sft"), "teacher": {"tasks": str(root / "tasks" / "tasks")}, "sft": training}


def rl_train(root: Path, steps: int) -> dict:
    training = {
        "model": str(root / "sft"), "tasks": str(root / "tasks" / "tasks"), "steps": steps, "prompts_per_step": 2,
        "group_size": 2, "context_tokens": 512, "save_every": 1, "limits": LIMITS,
    }  # fmt: skip
    return {"run_dir": str(root / "rl"), "rl": training}


def benchmark(root: Path) -> dict:
    policies = [{"name": name, "model": str(model)} for name, model in [("base", BASE), ("rl", root / "rl")]]
    settings = {
        "tasks": str(root / "tasks" / "tasks"), "out": str(root / "bench"), "rollouts_per_task": 2,
        "policies": policies, "limits": LIMITS,
    }  # fmt: skip
    return {"benchmark": settings, "rl_run_dir": str(root / "rl"), "sft_run_dir": str(root / "sft")}


async def test_the_loop_completes_and_a_killed_training_goes_on(installation: Note, tmp_path: Path):
    async with PrefectApi(installation.api_url) as api:
        assert (await triggered(api, "datagen", datagen(tmp_path))).kind == "COMPLETED"
        assert len(list((tmp_path / "tasks" / "tasks").iterdir())) == 10
        assert (await triggered(api, "sft", sft(tmp_path))).kind == "COMPLETED"
        assert (tmp_path / "sft" / "sft_metrics.jsonl").read_text().count("\n") == 2

        await kill_in_step_two(api, tmp_path)
        assert (await triggered(api, "rl-train", rl_train(tmp_path, 4))).kind == "COMPLETED"
        assert (await triggered(api, "benchmark", benchmark(tmp_path))).kind == "COMPLETED"

    steps = read_steps(tmp_path / "rl")
    assert [s.step for s in steps] == [1, 2, 3, 4]
    assert [s.violations for s in steps] == [dict.fromkeys(INVARIANTS, 0)] * 4
    assert [s.rows_per_rollout for s in steps] == [1.0] * 4
    assert sessions_per_rollout(tmp_path / "rl" / "calls.sqlite") == {1}
    assert (tmp_path / "bench" / "report.html").stat().st_size > 10_000
    assert (tmp_path / "bench" / "results" / "rl.jsonl").read_text().count("\n") == 4


async def kill_in_step_two(api: PrefectApi, root: Path) -> None:
    """Start training, kill -9 the flow's process once a step is done, and see that nothing is left of it."""
    run_id = await api.trigger("rl-train", {"config": rl_train(root, 4)})
    await until(lambda: bool(read_steps(root / "rl")), 400)
    for pid in flow_processes(run_id):
        os.kill(pid, signal.SIGKILL)
    assert (await final(api, run_id)).kind == "CRASHED"
    await until(lambda: not commands_with(str(root)) and not (root / "rl" / "trainer.pid").exists())


def sessions_per_rollout(log: Path) -> set[int]:
    """How many sessions each attempt has that was asked for; one, when nothing is lost or doubled."""
    with sqlite3.connect(log) as connection:
        query = "SELECT count(*) FROM sessions GROUP BY run_id, rollout_id"
        return {count for (count,) in connection.execute(query)}


async def test_a_training_run_without_its_model_fails_with_one_sentence(installation: Note, tmp_path: Path):
    async with PrefectApi(installation.api_url) as api:
        assert (await triggered(api, "datagen", datagen(tmp_path))).kind == "COMPLETED"
        state = await triggered(api, "rl-train", rl_train(tmp_path, 4))
    assert state.kind == "FAILED"
    assert f"model '{tmp_path}/sft' is no checkpoint" in state.message


async def test_a_request_that_does_not_fit_the_form_is_refused_at_once(installation: Note, tmp_path: Path):
    async with PrefectApi(installation.api_url) as api:
        with pytest.raises(PrefectDown, match="repeats"):
            await api.trigger("datagen", {"config": {"datagen": {"repeats": 0}}})
