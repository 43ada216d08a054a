import os
import signal
import subprocess

from sandboxes import processes
from sandboxes.processes import ProcessId


def test_a_pid_with_another_start_time_is_another_process():
    me = processes.this_process()
    assert me.pid == os.getpid()
    assert processes.is_alive(me)
    reused = ProcessId(pid=me.pid, started_ticks=me.started_ticks - 1)
    assert not processes.is_alive(reused)
    assert not processes.send(reused, signal.SIGKILL)


def test_a_zombie_counts_as_dead():
    child = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE)
    found = processes.identify(child.pid)
    assert found is not None
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended and nobody has collected it
    assert processes.identify(child.pid) is None
    assert not processes.is_alive(found)
    child.communicate()


def test_ending_a_process_that_ignores_sigterm_takes_sigkill():
    child = subprocess.Popen(
        ["/bin/bash", "-c", "trap '' TERM; echo ready; while :; do read -t 1000; done"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        found = processes.identify(child.pid)
        assert found is not None
        processes.end(found, grace_s=0.2)
    assert child.returncode == -signal.SIGKILL


def test_a_process_is_found_by_a_variable_of_its_environment():
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, env={"MARK": "x1"}) as child:
        assert [p.pid for p in processes.of_variable("MARK", "x1")] == [child.pid]
        assert processes.of_variable("MARK", "x") == []
        processes.kill_until_none(lambda: processes.of_variable("MARK", "x1"), 5)
    assert child.returncode == -signal.SIGKILL
