"""Reinforcement learning by the real veRL trainer on a tiny model, with a stand-in for harness and sandbox."""

import asyncio
import json
import os
import signal
import sqlite3
import sys
from pathlib import Path

import pytest

from contracts.config import resolved
from contracts.errors import TrainerError
from contracts.rollout import Cause, Limits
from contracts.task import read_tasks
from proxy.client import ProxyClient
from trainer.checkpoints import latest_hf
from trainer.config import RlConfig
from trainer.processes import job_processes
from trainer.prompts import training_order
from trainer.rl import rl_process
from trainer.rl_layout import call_log

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def _config(model: Path, tasks: Path, **changes) -> RlConfig:
    return RlConfig(
        model=model,
        tasks=tasks,
        **{
            "steps": 2,
            "prompts_per_step": 2,
            "group_size": 4,
            "learning_rate": 1e-3,
            "context_tokens": 512,
            "limits": Limits(answer_tokens=24),
            "save_every": 2,
            **changes,
        },
    )


async def _train(config: RlConfig, run_dir: Path, stand_in, fail=None):
    async with rl_process(config, run_dir, "rl") as process:
        where = await process.wait_ready()
        async with ProxyClient(where.url, where.admin_secret) as proxy:
            orchestrator = stand_in(proxy)
            if fail is not None:
                orchestrator.fail = fail
            await asyncio.wait_for(orchestrator.run(), 300)
        await process.wait(300)
        return process.resumed_from, process.steps(), sorted(orchestrator.seen)


async def test_two_steps_then_a_resumed_third_and_fourth(tiny_policy, three_tasks, tmp_path, orchestrator):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    run_dir = tmp_path / "run"
    resumed, steps, seen = await _train(_config(tiny_policy, three_tasks), run_dir, orchestrator)
    assert resumed == 0
    assert [s.step for s in steps] == [1, 2]
    assert len(seen) == 16
    for step in steps:
        assert (step.rollouts, step.completed, step.rows, step.rows_per_rollout) == (8, 8, 8, 1.0)
        assert step.sampled_tokens == step.trained_tokens > 0
        assert set(step.violations.values()) == {0}
        assert step.max_logprob_diff is not None
        assert step.max_logprob_diff < 1e-4
        assert step.policy_version == step.step - 1
    with sqlite3.connect(call_log(run_dir)) as log:
        assert log.execute("select count(*) from calls").fetchone() == (32,)  # 16 rollouts of two calls
    path = latest_hf(run_dir)
    trained, base = AutoModelForCausalLM.from_pretrained(path), AutoModelForCausalLM.from_pretrained(tiny_policy)
    moved = max(
        float((a - b).detach().abs().max()) for a, b in zip(trained.parameters(), base.parameters(), strict=True)
    )
    # Two AdamW steps move no weight by much more than twice the learning rate.
    assert 5e-4 < moved < 4e-3
    assert AutoTokenizer.from_pretrained(path).eos_token == "<|im_end|>"

    # The same command with more steps goes on; a rollout that the sandbox loses leaves its group.
    lost = {"rl-s3-p0-g1", "rl-s3-p0-g2", "rl-s4-p1-g3"}
    longer = _config(tiny_policy, three_tasks, steps=4)
    resumed, steps, again = await _train(
        longer, run_dir, orchestrator, lambda r: Cause.SANDBOX if r.rollout_id in lost else None
    )
    assert resumed == 2
    assert [s.step for s in steps] == [1, 2, 3, 4]
    assert [s.failed for s in steps] == [{}, {}, {"sandbox": 2}, {"sandbox": 1}]
    assert [s.rows for s in steps] == [8, 8, 6, 7]
    assert [s.policy_version for s in steps] == [0, 1, 2, 3]
    assert all(set(s.violations.values()) == {0} for s in steps)
    assert all(s.max_logprob_diff is not None and s.max_logprob_diff < 1e-4 for s in steps)
    # Steps 1 and 2 took four tasks of the order, the resumed steps take the next ones.
    order = [t.name for t in training_order(read_tasks(three_tasks), 8, seed=0)]
    tasks = {i.rpartition("-")[0]: i.rpartition(":")[2] for i in [*seen, *again]}
    assert [tasks[f"rl-s{s}-p{p}"] for s in (1, 2, 3, 4) for p in (0, 1)] == order


async def test_a_step_without_a_usable_rollout_is_an_error_with_its_reasons(
    tiny_policy, three_tasks, tmp_path, orchestrator
):
    with pytest.raises(TrainerError, match=r"step 1: none of 8 rollouts can be trained \(failed: upstream\)"):
        await _train(_config(tiny_policy, three_tasks), tmp_path / "run", orchestrator, lambda r: Cause.UPSTREAM)


OWNER = """
import asyncio, sys
from pathlib import Path
from trainer.config import RlConfig
from trainer.prompts import training_order
from trainer.rl import rl_process

async def main():
    config = RlConfig.model_validate_json(Path(sys.argv[1]).read_text())
    async with rl_process(config, Path(sys.argv[2]), "rl") as process:
        await process.wait_ready()
        print("ready", flush=True)
        await process.wait()

asyncio.run(main())
"""


async def test_nothing_outlives_a_killed_owner(tiny_policy, three_tasks, tmp_path):
    settings = tmp_path / "config.json"
    settings.write_text(resolved(_config(tiny_policy, three_tasks)))
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OWNER, str(settings), str(tmp_path / "run"),
        stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert owner.stdout is not None
    assert await asyncio.wait_for(owner.stdout.readline(), 600) == b"ready\n"
    note = json.loads((tmp_path / "run" / "trainer.pid").read_text())
    assert len(job_processes(note["mark"], note["session"], note["guard_pid"])) > 8  # Ray's daemons and workers
    owner.send_signal(signal.SIGKILL)
    await owner.wait()
    async with asyncio.timeout(60):
        while (tmp_path / "run" / "trainer.pid").exists():
            await asyncio.sleep(0.1)
    assert job_processes(note["mark"], note["session"], note["guard_pid"]) == []
    assert not Path(note["scratch"]).exists()
