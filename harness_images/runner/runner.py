"""The runner: the one process that lives in a sandbox as long as its rollout.

It pulls the work from the proxy, runs the harness as an unprivileged user under limits, kills every process of that
user, only then fetches the verifier, grades, and posts what it saw. It decides nothing: outcome and cause are the
orchestrator's.

    python -I -S runner.py        standard library only, Python 3.9 or newer

Bootstrap: the first line on stdin, JSON with proxy_url, runner_secret, directory, sandbox_id, agent_uid, verifier_uid
(a uid that is null: the runner's own user); what follows on stdin is the lifeline, whose end means that the owner is
dead. In a container instead the environment variables OPENFORGE_PROXY_URL and OPENFORGE_RUNNER_SECRET, removed at once,
and no lifeline.

Exit codes: 0 result posted, 70 the runner itself failed, 75 the proxy did not answer, 76 told to leave.
"""

from __future__ import annotations

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # isolated mode leaves the script's own folder out

import attempt
import confine
import life
import wire

DONE, FAILED, UNREACHABLE, TOLD_TO_LEAVE = 0, 70, 75, 76
CONTAINER_DIRECTORY = "/openforge"
AGENT_USER = "agent"
BOOTSTRAP_BYTES = 65536


def main() -> int:
    """Run one rollout; returns the exit code."""
    os.umask(0o022)  # modes of what is laid out, and the agent's start value, whatever the owner's is
    boot, lifeline_fd = _bootstrap()
    confine.harden()
    waits = life.Lifeline(lifeline_fd)
    proxy = wire.Proxy(boot["proxy_url"], boot["runner_secret"], waits)
    account = confine.Account(boot["agent_uid"])
    code = FAILED
    try:
        work = proxy.call("GET", "/runner/work")
        places = attempt.Places(boot["directory"], boot["sandbox_id"], boot["proxy_url"])
        users = attempt.Users(account, confine.Account(boot["verifier_uid"]))
        proxy.post_result(attempt.run(work, places, users, proxy, waits))
        code = DONE
    except life.Leave as e:
        _say(f"leaving: {e}")
        code = TOLD_TO_LEAVE
    except wire.Unreachable as e:
        _say(f"the proxy does not answer: {e}")
        code = UNREACHABLE
    except wire.Refused as e:
        _say(f"the proxy refuses: {e}")
        code = TOLD_TO_LEAVE
    finally:
        if code != DONE:  # a posted result means that nothing is alive any more
            confine.kill_all(account)
    return code


def _bootstrap() -> tuple[dict, int | None]:
    """Read address and secret from the environment (containers) or from the first line of stdin (local)."""
    secret = os.environ.pop("OPENFORGE_RUNNER_SECRET", None)
    url = os.environ.pop("OPENFORGE_PROXY_URL", None)
    if secret and url:
        return {
            "proxy_url": url,
            "runner_secret": secret,
            "directory": os.environ.pop("OPENFORGE_DIRECTORY", CONTAINER_DIRECTORY),
            "sandbox_id": None,
            "agent_uid": confine.uid_named(AGENT_USER) if os.geteuid() == 0 else None,
            "verifier_uid": None,
        }, None
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)  # one at a time: what follows the line belongs to the lifeline
        if not byte or len(line) > BOOTSTRAP_BYTES:
            _say("no bootstrap line on stdin and no OPENFORGE_RUNNER_SECRET in the environment")
            sys.exit(TOLD_TO_LEAVE)
        line += byte
    return json.loads(line), 0


def _say(text: str) -> None:
    sys.stderr.write(f"runner: {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
