"""Each repair on a directory that needs it, and on one that does not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from datagen.fixes import FIXES, mend
from datagen.generate import write_instance
from datagen.records import Candidate

DOCKERFILE = "FROM debian:12.11-slim\nWORKDIR /srv/job\n"


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A sound task."""
    candidate = Candidate(name="t", family="write_file", split="train", index=0)
    write_instance(tmp_path / "t", candidate, 0, "debian:12.11-slim")
    return tmp_path / "t"


CASES: list[tuple[str, str, bytes, bytes]] = [
    ("line_endings", "tests/test.sh", b"\xef\xbb\xbf#!/bin/bash\r\ntrue\r\n", b"#!/bin/bash\ntrue\n"),
    ("line_endings", "instruction.md", b"Do it\r\n", b"Do it\n"),
    ("shebang", "solution/solve.sh", b"echo a > b\n", b"#!/bin/bash\necho a > b\n"),
    ("final_newline", "tests/test.sh", b"#!/bin/bash\ntrue", b"#!/bin/bash\ntrue\n"),
    ("relative_paths", "instruction.md", b"Put a into /workspace/b.txt\n", b"Put a into b.txt\n"),
    (
        "relative_paths",
        "solution/solve.sh",
        b"#!/bin/bash\ncd /srv/job\ncd /srv/job && ls /srv/job > /srv/job/x\n",
        b"#!/bin/bash\nls . > x\n",
    ),
    (
        "reward_dir",
        "tests/test.sh",
        b'#!/bin/bash\necho 0 > "/logs/verifier/reward.txt"\n',
        b'#!/bin/bash\necho 0 > "${OPENFORGE_REWARD_DIR:-/logs/verifier}/reward.txt"\n',
    ),
    (
        "reward_line",
        "tests/test.sh",
        b"#!/bin/bash\necho -n 0 > $d/reward.txt\nprintf '1' > $d/reward.txt\n",
        b"#!/bin/bash\necho 0 > $d/reward.txt\necho 1 > $d/reward.txt\n",
    ),
]


@pytest.mark.parametrize(("fix", "name", "before", "after"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)])
def test_a_fix_mends_its_fault_and_only_once(task: Path, fix: str, name: str, before: bytes, after: bytes) -> None:
    (task / "environment" / "Dockerfile").write_text(DOCKERFILE)
    (task / name).write_bytes(before)
    assert FIXES[fix](task) is True
    assert (task / name).read_bytes() == after
    assert FIXES[fix](task) is False


def test_scripts_become_executable(task: Path) -> None:
    (task / "solution" / "solve.sh").chmod(0o644)
    assert mend(task) == ("executable",)
    assert (task / "solution" / "solve.sh").stat().st_mode & 0o111 == 0o111


def test_a_sound_task_is_left_alone(task: Path) -> None:
    assert mend(task) == ()


@pytest.mark.parametrize("text", [b"ls /workspaces/a\n", b"ls a/workspace/b\n", b"ls /srv/job-2/a\n", b"cat x.txt\n"])
def test_other_paths_stay(task: Path, text: bytes) -> None:
    (task / "environment" / "Dockerfile").write_text(DOCKERFILE)
    (task / "instruction.md").write_bytes(text)
    assert FIXES["relative_paths"](task) is False


def test_every_fix_has_a_case() -> None:
    assert {case[0] for case in CASES} | {"executable"} == set(FIXES)


def test_bytes_that_are_no_text_are_left_alone(task: Path) -> None:
    keep: Callable[[], bytes] = (task / "instruction.md").read_bytes
    (task / "instruction.md").write_bytes(b"\xff/workspace/a\n")
    assert FIXES["relative_paths"](task) is False
    assert keep() == b"\xff/workspace/a\n"
