"""One attempt: lay out the files, run the harness, kill it, fetch the verifier, grade."""

from __future__ import annotations

import os
import re
import stat
import sys
import threading

from child import Ended, Tail, Watch, run_child
from confine import Account, Rlimits, Survivor, python_for
from life import Leave, Lifeline
from reward import read_reward
from unpack import BadBundle, give, make_dirs, unpack
from wire import Proxy, Refused, Unreachable

PATH = "/usr/local/bin:/usr/bin:/bin"
BASH = "/bin/bash"
HEARTBEAT_S = 5.0
HEARTBEAT_TAIL_BYTES = 2048
FILE_LIMIT_TIMES = 64
"""Largest file an agent may write, in units of the kept output (contracts.rollout.Limits.output_kib)."""
PLACEHOLDER = re.compile(r"\{(instruction|base_url|api_key|model|workspace|home|harness_dir|python)\}")


class Places:
    """Where things lie in the sandbox."""

    def __init__(self, directory: str, sandbox_id: str | None, proxy_url: str) -> None:
        self.workspace = os.path.join(directory, "workspace")
        self.home = os.path.join(directory, "home")
        self.tmp = os.path.join(directory, "tmp")
        self.harness_dir = os.path.join(directory, "harness")
        self.directory = directory
        self.sandbox_id = sandbox_id
        self.proxy_url = proxy_url.rstrip("/")


class Users:
    """Who the agent runs as, and who the verifier runs as."""

    def __init__(self, agent: Account, verifier: Account) -> None:
        self.agent = agent
        self.verifier = verifier


def run(work: dict, places: Places, users: Users, proxy: Proxy, waits: Lifeline) -> dict:
    """Run one attempt; returns the body of POST /runner/result (contracts.wire.RunnerResult).

    Raises:
        Leave, Unreachable, Refused: there is nobody to post a result to.
    """
    result: dict = {"evidence": {}, "agent_started": False}
    phase = "agent"
    tail = Tail(work["limits"]["output_kib"] * 1024)
    beat = _Heartbeat(proxy, waits, lambda: phase, tail)
    try:
        _lay_out(work, places, users.agent)
        _agent(work, places, users.agent, waits, tail, result)
        bundle = proxy.call("POST", "/runner/agent-dead", {})["tests_tar"]
        if result["agent_started"]:
            phase = "verifier"
            _verifier(work, places, users, waits, bundle, result)
    except (OSError, BadBundle, Survivor) as e:
        result["error"] = f"the runner failed in the {phase} phase: {type(e).__name__}: {e}"
    finally:
        beat.end()
    return result


def _lay_out(work: dict, places: Places, account: Account) -> None:
    """Make the directories: workspace, home and tmp are the agent's; the harness is readable, not writable."""
    os.makedirs(places.harness_dir, mode=0o755)
    for path in (places.workspace, places.home, places.tmp):
        os.makedirs(path, mode=0o700)
        give(path, account.uid)
    unpack(work["workspace_tar"], places.workspace, account.uid)
    unpack(work["harness_tar"], places.harness_dir, None)


def _agent(work: dict, places: Places, account: Account, waits: Lifeline, tail: Tail, result: dict) -> None:
    harness, limits = work["harness"], work["limits"]
    values = _placeholders(work, places, account)
    for name, content in harness.get("files", {}).items():
        _home_file(places.home, name, _fill(content, values), account)
    env = _environment(places)
    env.update({name: _fill(value, values) for name, value in harness.get("env", {}).items()})
    memory_bytes = limits["memory_mib"] << 20
    rlimits = Rlimits(memory_bytes, _file_bytes(limits), _process_limit(limits, account))
    watch = Watch(limits["wall_clock_s"], memory_bytes, limits["processes"])
    argv = [_fill(arg, values) for arg in harness["argv"]]
    ended = run_child(argv, env, places.workspace, account, rlimits, watch, tail, waits)
    result["agent_started"] = ended.not_started is None
    result["timed_out"], result["memory_exceeded"] = ended.timed_out, ended.memory_exceeded
    result["evidence"].update(
        agent_exit_code=ended.exit_code, agent_log=tail.record(), detail=ended.not_started or ended.detail
    )


def _verifier(work: dict, places: Places, users: Users, waits: Lifeline, bundle: str, result: dict) -> None:
    """Grade in directories that did not exist while the agent lived, and end whatever the verifier leaves running."""
    grading = os.path.join(places.directory, f"grading-{os.urandom(8).hex()}")  # a name that no agent can have taken
    tests, rewards, home = (os.path.join(grading, name) for name in ("tests", "reward", "home"))
    for path in (grading, tests, rewards, home):
        os.mkdir(path, 0o700)
        give(path, users.verifier.uid)
    unpack(bundle, tests, users.verifier.uid)
    env = _environment(places)
    env.update(HOME=home, OPENFORGE_REWARD_DIR=rewards, PYTHONSAFEPATH="1", PYTHONDONTWRITEBYTECODE="1")
    limits = work["limits"]
    tail = Tail(limits["output_kib"] * 1024)
    rlimits = Rlimits(None, _file_bytes(limits), _process_limit(limits, users.verifier))
    watch = Watch(limits["verifier_s"], None, None)
    ended = run_child(
        [BASH, os.path.join(tests, "test.sh")], env, places.workspace, users.verifier, rlimits, watch, tail, waits
    )
    result["evidence"].update(verifier_exit_code=ended.exit_code, verifier_log=tail.record())
    _grade(ended, rewards, limits["verifier_s"], result)


def _grade(ended: Ended, rewards: str, verifier_s: float, result: dict) -> None:
    if ended.not_started:
        result["reward_error"] = f"the verifier did not start: {ended.not_started}"
    elif ended.timed_out:
        result["reward_error"] = f"the verifier ran longer than {verifier_s:g} s"
    else:
        reward, others, error = read_reward(rewards)
        result["reward"], result["sub_rewards"] = reward, others
        result["reward_error"] = f"{error} (exit code {ended.exit_code})" if error else None


def _placeholders(work: dict, places: Places, account: Account) -> dict[str, str]:
    python = ""
    harness = work["harness"]
    if any("{python}" in text for text in (*harness["argv"], *harness.get("env", {}).values())):
        python = python_for(account, sys.executable, os.__file__) or ""
        if not python:
            raise FileNotFoundError(
                f"no Python that user {account.uid} may run: {sys.executable} is closed to other users and there is no "
                'python3 in /usr/local/bin or /usr/bin; install one or set agent_user = "same"'
            )
    return {
        "instruction": work["instruction"],
        "base_url": places.proxy_url + work["base_url_path"],
        "api_key": work["model_secret"],
        "model": work["model"],
        "workspace": places.workspace,
        "home": places.home,
        "harness_dir": places.harness_dir,
        "python": python,
    }


def _fill(text: str, values: dict[str, str]) -> str:
    """Replace placeholders once: an instruction that contains ``{api_key}`` keeps it as text."""
    return PLACEHOLDER.sub(lambda m: values[m.group(1)], text)


def _environment(places: Places) -> dict[str, str]:
    env = {"PATH": PATH, "LANG": "C.UTF-8", "TERM": "dumb", "HOME": places.home, "TMPDIR": places.tmp}
    if places.sandbox_id:
        env["OPENFORGE_SANDBOX"] = places.sandbox_id  # by which a sweep finds processes whose runner was killed
    return env


def _process_limit(limits: dict, account: Account) -> int | None:
    """RLIMIT_NPROC counts all processes of a user, so it needs a user that is only ours."""
    return None if account.uid is None else limits["processes"]


def _file_bytes(limits: dict) -> int:
    return limits["output_kib"] * 1024 * FILE_LIMIT_TIMES


def _home_file(home: str, name: str, content: str, account: Account) -> None:
    parts = name.split("/")
    if name.startswith("/") or ".." in parts:
        raise BadBundle(f"harness file {name!r} leaves the home directory")
    path = os.path.join(make_dirs(home, "/".join(parts[:-1]), account.uid), parts[-1])
    with open(path, "w", encoding="utf-8") as f:
        f.write(content)
    os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)
    give(path, account.uid)


class _Heartbeat:
    """Says every few seconds that the runner lives; first after one interval, so a short rollout says nothing."""

    def __init__(self, proxy: Proxy, waits: Lifeline, phase, tail: Tail) -> None:
        self._proxy, self._waits, self._phase, self._tail = proxy.beside(), waits, phase, tail
        self._over = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def end(self) -> None:
        self._over.set()

    def _run(self) -> None:
        while not self._over.wait(HEARTBEAT_S):
            body = {"phase": self._phase(), "log_tail": self._tail.record(HEARTBEAT_TAIL_BYTES)["text"]}
            try:
                if self._proxy.call("POST", "/runner/heartbeat", body, give_up_s=0.0)["stop"]:
                    self._waits.stop("the proxy says stop")
                    return
            except Refused as e:
                if e.status in (401, 404, 409):
                    self._waits.stop(f"the proxy knows this session no more: {e}")
                    return
            except (Unreachable, Leave):
                pass  # a proxy that restarts; the next call of the main thread decides
