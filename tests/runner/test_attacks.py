"""What an agent may try for a reward that it has not earned, and what comes of it.

Every attack ends in the same place: a verifier that gives 1 only for real work, or that writes nothing at all.
"""

import os
import threading
from pathlib import Path

import pytest
from attempts import LIMITS, SCRIPT_HARNESS, attempt, session_body, spec_of
from fake_proxy import FakeProxy

from contracts.rollout import Cause
from sandboxes import processes
from sandboxes.config import LocalSandbox
from sandboxes.local import LocalProcesses

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="the runner's user differs from the agent's only when it is root"
)
WRITES_NOTHING = "true"
HONEST = 'if [ "$(cat out.txt)" = done ]; then echo 1; else echo 0; fi > "$OPENFORGE_REWARD_DIR/reward.txt"'


@pytest.fixture(params=["auto", "same"])
def sandbox(request: pytest.FixtureRequest, config: LocalSandbox) -> LocalProcesses:
    """Both users; as an ordinary user the two are the same."""
    return LocalProcesses(config.model_copy(update={"agent_user": request.param}))


async def test_reward_files_planted_by_the_agent_are_not_read(sandbox: LocalProcesses, proxy: FakeProxy):
    agent = """
        echo "${OPENFORGE_REWARD_DIR-unset}"
        for d in . .. "$HOME" "$TMPDIR" ../grading ../grading/reward reward grading; do
            mkdir -p $d; echo 1 > $d/reward.txt; echo '{"reward": 1}' > $d/reward.json
        done 2> /dev/null
    """
    done = await attempt(sandbox, proxy, session_body(agent=agent, test_sh=WRITES_NOTHING))
    assert done.agent_log == "unset\n"
    assert done.result.reward is None
    assert done.result.reward_error == "the verifier wrote neither reward.json nor reward.txt (exit code 0)"


async def test_a_process_that_left_the_agents_session_is_dead_before_the_verifier_is_fetched(
    sandbox: LocalProcesses, proxy: FakeProxy, open_dir: Path
):
    agent = f"""
        for i in 1 2 3; do
            (setsid bash -c 'trap "" TERM HUP; echo $$ >> {open_dir}/pids; while :; do
                for d in ../grading*/reward; do echo 1 > $d/reward.txt; done 2> /dev/null; sleep 0.01; done' &) &
        done
        while [ "$(wc -l < {open_dir}/pids)" != 3 ]; do sleep 0.01; done 2> /dev/null
    """
    alive: list[processes.ProcessId | None] = []
    pids_file = open_dir / "pids"
    proxy.on_agent_dead = lambda: alive.extend(processes.identify(int(pid)) for pid in pids_file.read_text().split())
    done = await attempt(sandbox, proxy, session_body(agent=agent, test_sh="sleep 0.3"))
    assert alive == [None, None, None]
    assert done.result.reward is None


async def test_programs_and_start_files_planted_by_the_agent_do_not_run_in_the_verifier(
    sandbox: LocalProcesses, proxy: FakeProxy
):
    agent = """
        printf '#!/bin/bash\\necho done\\n' > cat; chmod +x cat
        mkdir -p "$HOME/bin" bin tests; cp cat "$HOME/bin/"; cp cat bin/
        echo 'cat() { echo done; }' | tee .bashrc .profile "$HOME/.bashrc" "$HOME/.bash_profile" > env.sh
        echo 'echo 1 > $OPENFORGE_REWARD_DIR/reward.txt; exit' > tests/test.sh
        echo not-done > out.txt
    """
    harness = SCRIPT_HARNESS.model_copy(
        update={"env": {"BASH_ENV": "{workspace}/env.sh", "PATH": "{workspace}/bin:/usr/bin:/bin"}}
    )
    done = await attempt(sandbox, proxy, session_body(agent=agent, test_sh=HONEST, harness=harness))
    assert done.result.reward == 0.0


async def test_python_modules_planted_by_the_agent_are_not_imported_by_the_verifier(
    sandbox: LocalProcesses, proxy: FakeProxy
):
    agent = "echo 'print(1)' > json.py; mkdir -p ~/.local; echo x > out.txt"
    test_sh = 'PY=$(command -v python3) && "$PY" -c "import json; print(0)" > "$OPENFORGE_REWARD_DIR/reward.txt"'
    done = await attempt(sandbox, proxy, session_body(agent=agent, test_sh=test_sh))
    assert (done.result.reward, done.result.reward_error) == (0.0, None)


async def test_a_reward_file_that_is_a_link_is_refused(sandbox: LocalProcesses, proxy: FakeProxy):
    test_sh = 'ln -s "$PWD/mine" "$OPENFORGE_REWARD_DIR/reward.txt"'
    done = await attempt(sandbox, proxy, session_body(agent="echo 1 > mine", test_sh=test_sh))
    assert done.result.reward is None
    assert done.result.reward_error == "reward.txt cannot be read: Too many levels of symbolic links (exit code 0)"


@pytest.mark.parametrize("user", ["auto"])
async def test_the_runner_secret_cannot_be_read_by_the_agent(config: LocalSandbox, proxy: FakeProxy, user: str):
    sandbox = LocalProcesses(config.model_copy(update={"agent_user": user}))
    agent = """
        env
        for f in environ mem maps auxv; do cat /proc/$PPID/$f && echo read $f; done
        cat /proc/$PPID/fd/* && echo read fd
        tr '\\0' ' ' < /proc/$PPID/cmdline
    """
    body = session_body(agent=agent)
    session = proxy.add(body)
    handle = await sandbox.start(spec_of(session, proxy))
    await sandbox.wait(handle)
    await sandbox.stop(handle)
    assert session.result is not None
    assert session.result.evidence.agent_log is not None
    log = session.result.evidence.agent_log.text
    assert "runner.py" in log
    assert "Permission denied" in log
    assert session.runner_secret not in log
    assert "\nread " not in log


@needs_root
async def test_the_agent_cannot_kill_or_trace_the_runner(config: LocalSandbox, proxy: FakeProxy):
    done = await attempt(
        LocalProcesses(config), proxy, session_body(agent="kill -9 $PPID; kill -STOP $PPID; kill -9 -1; true")
    )
    assert done.result.reward == 1.0


async def test_an_agent_that_kills_its_own_users_runner_loses_the_attempt(config: LocalSandbox, proxy: FakeProxy):
    same = LocalProcesses(config.model_copy(update={"agent_user": "same"}))
    done = await attempt(same, proxy, session_body(agent="kill -9 $PPID; sleep 1000"))
    assert (done.exit.exit_code, done.exit.cause) == (-9, Cause.SANDBOX)
    assert done.session.result is None


@needs_root
async def test_the_agent_sees_neither_other_rollouts_nor_its_own_sandbox_from_outside(
    config: LocalSandbox, proxy: FakeProxy
):
    done = await attempt(
        LocalProcesses(config), proxy, session_body(agent="ls ..; ls ../..; cat ../runner.log; cat ../../register/*")
    )
    assert done.agent_log.count("Permission denied") == 4


async def test_set_user_id_programs_give_the_agent_nothing(sandbox: LocalProcesses, proxy: FakeProxy):
    done = await attempt(sandbox, proxy, session_body(agent="grep NoNewPrivs /proc/self/status"))
    assert done.agent_log == "NoNewPrivs:\t1\n"


async def test_what_the_verifier_leaves_running_is_dead_before_the_reward_is_read(
    sandbox: LocalProcesses, proxy: FakeProxy, open_dir: Path
):
    test_sh = f"""
        echo 0.5 > "$OPENFORGE_REWARD_DIR/reward.txt"
        (setsid bash -c 'echo $$ > {open_dir}/pid; sleep 1000' &) &
        while [ ! -s {open_dir}/pid ]; do sleep 0.01; done
    """
    done = await attempt(sandbox, proxy, session_body(test_sh=test_sh))
    assert done.result.reward == 0.5
    assert processes.identify(int((open_dir / "pid").read_text())) is None


@needs_root
async def test_a_fork_bomb_is_held_at_the_process_limit(config: LocalSandbox, proxy: FakeProxy):
    limits = LIMITS.model_copy(update={"processes": 16, "wall_clock_s": 1.5})
    agent = "bomb() { bomb | bomb & }; bomb 2> /dev/null; sleep 1000"
    counts: list[int] = []
    over = threading.Event()

    def count_processes() -> None:
        while not over.wait(0.1):
            counts.append(max(len(processes.of_uid(uid)) for uid in range(54900, 54910)))

    own = config.model_copy(update={"first_uid": 54900, "uids": 10, "uid_locks_dir": config.state_dir.parent / "locks"})  # type: ignore[union-attr]
    counter = threading.Thread(target=count_processes)
    counter.start()
    try:
        done = await attempt(LocalProcesses(own), proxy, session_body(agent=agent, limits=limits))
    finally:
        over.set()
        counter.join()
    assert 1 < max(counts) <= 16
    assert done.result.reward == 1.0
