"""The durable call log."""

import os
import subprocess
from pathlib import Path

import pytest
from proxy_stand import open_body
from recorded_calls import call
from sqlalchemy import create_engine, text

from contracts.errors import ConfigError, LogUnavailable
from proxy.log import CallLog


async def test_what_was_written_is_read_back_equal(tmp_path: Path) -> None:
    one = call("a", None, (1, 2, 70000), (7, 8), logprobs=(-0.1234567890123, -1e-9), delivered=None)
    with CallLog(tmp_path / "l.sqlite") as log:
        await log.open_session("s", open_body())
        await log.put_call(one)
        assert log.calls("s") == (one,)
        await log.mark_delivered("a", True)
        assert log.calls("s")[0].delivered is True
        assert log.session("s")["opened"] == open_body()  # pyright: ignore
        assert [r["rollout_id"] for r in log.sessions("run")] == ["run-s1-p0-g0"]
        assert log.session("nobody") is None


async def test_a_log_survives_the_death_of_its_writer(tmp_path: Path) -> None:
    script = (
        "import asyncio, os, sys; from pathlib import Path; from proxy.log import CallLog\n"
        "sys.path.insert(0, sys.argv[2])\n"
        "from recorded_calls import call\n"
        "log = CallLog(Path(sys.argv[1]))\n"
        "async def main():\n"
        "    await log.put_call(call('a', None, (1,), (7,)))\n"
        "    os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    import sys

    path = tmp_path / "l.sqlite"
    root = str(Path(__file__).parents[2])
    paths = os.pathsep.join([str(Path(__file__).parents[1] / "support"), root])
    done = subprocess.run(
        [sys.executable, "-c", script, str(path), paths], cwd=root, env={**os.environ, "PYTHONPATH": paths}, timeout=60
    )
    assert done.returncode == -9
    with CallLog(path, read_only=True) as log:
        assert [c.call_id for c in log.calls("s")] == ["a"]


def test_a_file_that_is_no_log_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").write_text("hello, I am a text file, and a long one at that" * 10)
    with pytest.raises(ConfigError, match="is not a call log"):
        CallLog(tmp_path / "x.sqlite")
    with pytest.raises(ConfigError, match="does not exist"):
        CallLog(tmp_path / "none.sqlite", read_only=True)


def test_a_log_of_another_schema_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    CallLog(path).close()
    with create_engine(f"sqlite:///{path}").begin() as c:
        c.execute(text("update meta set value = '99' where key = 'schema_version'"))
    with pytest.raises(ConfigError, match="schema version 99, this program writes 1"):
        CallLog(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system needs root: run as root")
async def test_a_full_disk_is_an_error_that_says_so_and_the_log_stays_readable(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk)], check=False).returncode != 0:
        pytest.skip("this machine lets nobody mount: run on one that does")
    try:
        with CallLog(disk / "l.sqlite") as log:
            with pytest.raises(LogUnavailable, match=r"cannot be written: .*full; free the disk"):
                for i in range(200):
                    await log.put_call(call(f"c{i}", None, tuple(range(1000)), (7,)))
            assert len(log.calls("s")) > 0
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
