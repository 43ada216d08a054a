"""Runs a command that must not outlive whoever started it: `python lifeline.py COMMAND …` with a pipe as standard input.

End of file on that pipe (the parent died, however it died) or a SIGTERM ends the command and everything it started: SIGTERM to
the command, after a grace period SIGTERM to all its descendants, then SIGKILL. On Linux descendants that detached themselves
are caught too, because they are re-parented to this process. Standard library only; starts in some 20 ms.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

GRACE_S = 15.0
"""How long the command has after its SIGTERM, seconds."""
LAST_GRACE_S = 5.0
"""How long its descendants have after theirs, seconds."""
_POLL_S = 0.1
_PR_SET_CHILD_SUBREAPER = 36


def descendants(root: int) -> list[int]:
    """Process ids below ``root``, parents first; zombies are left out. Empty where there is no /proc."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found: list[int] = []
    todo = [root]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def run(argv: list[str]) -> int:
    """Run ``argv`` until it ends or the lifeline is cut; returns its exit code, 143 when it was ended."""
    _adopt_orphans()
    cut = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: cut.set())
    threading.Thread(target=_wait_for_eof, args=(cut,), daemon=True).start()
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True)
    while child.poll() is None and not cut.is_set():
        cut.wait(_POLL_S)
        _reap_adopted(child.pid)
    code = child.poll()
    if code is None:
        child.terminate()
        _until(lambda: child.poll() is not None, GRACE_S)
    _end_all(child)
    return 143 if code is None else code


def _adopt_orphans() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _reap_adopted(child_pid: int) -> None:
    """Collect detached descendants that ended, so that they do not pile up as zombies; the command itself is left to Popen."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid == child_pid:
            return
        os.waitpid(ended.si_pid, os.WNOHANG)


def _wait_for_eof(cut: threading.Event) -> None:
    while os.read(0, 4096):
        pass
    cut.set()


def _end_all(child: "subprocess.Popen[bytes]") -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        _signal_all(child, number)
        if _until(lambda: _reaped(child), LAST_GRACE_S):
            return


def _signal_all(child: "subprocess.Popen[bytes]", number: int) -> None:
    for pid in descendants(os.getpid()):
        try:
            os.kill(pid, number)
        except OSError:
            continue
    if child.poll() is None:
        child.send_signal(number)


def _reaped(child: "subprocess.Popen[bytes]") -> bool:
    child.poll()
    left = descendants(os.getpid())
    return not left and child.poll() is not None


def _until(done, longest_s: float) -> bool:
    end = time.monotonic() + longest_s
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_S)
    return True


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
