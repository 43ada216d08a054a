"""A command behind a lifeline ends with whoever holds the pipe, and so does everything that it started."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flows.lifeline import descendants
from flows.memory import Peak, tree_kib
from flows.server import LIFELINE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="re-parenting and /proc are Linux")
# Starts a process in a session of its own that outlives it, names it, and waits.
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
open(sys.argv[1], "w").write(str(child.pid))
open(sys.argv[1] + ".ready", "w").close()
time.sleep(float(sys.argv[2]))
sys.exit(7)
"""


def behind_lifeline(tmp_path: Path, seconds: float) -> tuple["subprocess.Popen[bytes]", int]:
    note = tmp_path / "pid"
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(LIFELINE), sys.executable, "-c", PARENT, str(note), str(seconds)],
        stdin=subprocess.PIPE,
    )
    until(lambda: Path(f"{note}.ready").exists())
    return process, int(note.read_text())


def until(true) -> None:
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_closing_the_pipe_ends_the_command_and_a_detached_grandchild(tmp_path: Path):
    process, grandchild = behind_lifeline(tmp_path, 600)
    assert process.stdin is not None

    process.stdin.close()

    assert process.wait(30) == 143
    assert not alive(grandchild)


def test_a_command_that_ends_gives_its_exit_code_and_leaves_no_grandchild(tmp_path: Path):
    process, grandchild = behind_lifeline(tmp_path, 0)
    assert process.wait(30) == 7
    assert not alive(grandchild)
    assert process.stdin is not None
    process.stdin.close()


def test_sigterm_ends_all(tmp_path: Path):
    process, grandchild = behind_lifeline(tmp_path, 600)
    process.terminate()
    assert process.wait(30) == 143
    assert not alive(grandchild)
    assert process.stdin is not None
    process.stdin.close()


def test_the_memory_of_a_tree_counts_a_child(tmp_path: Path):
    grown = "data = bytearray(64 << 20); open(__import__('sys').argv[1], 'w').close(); input()"
    ready = tmp_path / "ready"
    with subprocess.Popen([sys.executable, "-c", grown, str(ready)], stdin=subprocess.PIPE) as child:
        until(ready.exists)
        assert child.pid in descendants(os.getpid())
        assert sum(tree_kib(child.pid).values()) >= 64 * 1024
        assert child.stdin is not None
        child.stdin.write(b"\n")


def test_the_peak_keeps_the_largest_sample_by_program():
    peak = Peak()
    peak.see({"a": 1024 * 1024, "b": 2 * 1024 * 1024})
    peak.see({"a": 1024 * 1024})
    assert peak.gib == 3.0
    assert list(peak.by_program.items()) == [("b", 2.0), ("a", 1.0)]
