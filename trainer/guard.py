"""Small process between a flow and its training job: nothing of the job outlives whoever started it.

    python -m trainer.guard '<JSON of GuardOrder>'

It starts the job in its own session and waits for one of three: the job ends, its own stdin closes (the starter died),
or a SIGTERM comes. Then it ends every process of the job, removes the scratch directory and leaves with the job's exit
code. Standard library only, so that it starts at once and cannot fail with the job.
"""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from trainer.processes import MARK, adopt_orphans, end_all, is_running, job_processes, start_time


@dataclass(frozen=True)
class GuardOrder:
    """What to run and what to clean up."""

    argv: list[str]
    mark: str
    """Value of the environment mark, unique to this start."""
    log: str
    """File that gets the job's output."""
    note: str
    """File that names guard and owner while the job runs; ``sweep`` reads it."""
    scratch: str
    """Directory to delete at the end."""
    owner_pid: int
    owner_started: str
    grace_s: float
    """Seconds between SIGTERM and SIGKILL."""


def main(argument: str) -> int:
    """Run one job; returns its exit code, 128 + signal when a signal ended it."""
    order = GuardOrder(**json.loads(argument))
    wake_r, wake_w = os.pipe()
    os.set_blocking(wake_w, False)
    signal.set_wakeup_fd(wake_w)
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    signal.signal(signal.SIGINT, lambda number, _: stopped.append(number))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    adopt_orphans()
    _write_note(order, None)
    with open(order.log, "ab") as log:
        job = subprocess.Popen(
            order.argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, MARK: order.mark},
            start_new_session=True,
        )
    _write_note(order, job.pid)
    while job.poll() is None and not stopped:
        ready, _, _ = select.select([0, wake_r], [], [])
        if wake_r in ready:
            os.read(wake_r, 4096)
        if 0 in ready and not os.read(0, 4096):
            break
    code = job.poll()
    end_all(lambda: job_processes(order.mark, job.pid, os.getpid()), order.grace_s)
    code = job.wait() if code is None else code
    _reap()
    shutil.rmtree(order.scratch, ignore_errors=True)
    Path(order.note).unlink(missing_ok=True)
    return code if code >= 0 else 128 - code


def _reap() -> None:
    """Read the exit codes of adopted orphans; in a container nobody else may do so."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def sweep(note: Path, grace_s: float = 5.0) -> int | None:
    """Remove what a job of a dead owner left behind.

    Returns:
        None when there was nothing or it has been removed; the owner's process id when that owner still runs.
    """
    try:
        left = json.loads(note.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    guard = left["guard_pid"] if is_running(left["guard_pid"], left["guard_started"]) else None
    if guard is not None and is_running(left["owner_pid"], left["owner_started"]):
        return left["owner_pid"]
    deadline = time.monotonic() + left["grace_s"] + grace_s
    while is_running(left["guard_pid"], left["guard_started"]):  # it has seen its owner die and is cleaning up
        if time.monotonic() > deadline:
            os.kill(left["guard_pid"], signal.SIGKILL)
        time.sleep(0.05)
    # A number that now names another process is no longer the job's session.
    taken = start_time(left["session"] or 0) not in (None, left["job_started"])
    session = None if taken else left["session"]
    end_all(lambda: job_processes(left["mark"], session, None), grace_s)
    shutil.rmtree(left["scratch"], ignore_errors=True)
    note.unlink(missing_ok=True)
    return None


def _write_note(order: GuardOrder, session: int | None) -> None:
    guard = {"guard_pid": os.getpid(), "guard_started": start_time(os.getpid())}
    job = {"session": session, "job_started": start_time(session) if session else None}
    note = Path(order.note)
    fresh = note.with_suffix(".tmp")
    fresh.write_text(json.dumps({**asdict(order), **guard, **job}), encoding="utf-8")
    fresh.replace(note)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
