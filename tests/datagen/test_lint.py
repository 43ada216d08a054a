"""Each lint against a sound task with one planted defect."""

from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.task import TaskSpec, read_task
from datagen.families import FAMILIES
from datagen.generate import write_instance
from datagen.lint import LINTS, first_fault
from datagen.records import Candidate

Plant = Callable[[Path], object]


def made(path: Path, family: str = "sort_lines") -> TaskSpec:
    """A sound task."""
    write_instance(path, Candidate(name="t", family=family, split="train", index=0), 0, "debian:12.11-slim")
    return read_task(path)


def add(name: str, text: str) -> Plant:
    """Appends text to a file of the task."""

    def plant(task: Path) -> None:
        path = task / name
        path.write_text((path.read_text() if path.exists() else "") + text)

    return plant


def change(name: str, old: str, new: str) -> Plant:
    """Replaces text in a file of the task."""

    def plant(task: Path) -> None:
        text = (task / name).read_bytes().decode()
        assert old in text
        (task / name).write_bytes(text.replace(old, new).encode())

    return plant


DEFECTS: list[tuple[str, Plant, str]] = [
    ("schema", change("task.toml", 'split = "train"', 'split = "test"'), "'test'"),
    ("script_format", change("tests/test.sh", "\n", "\r\n"), "tests/test.sh has CRLF"),
    ("script_format", change("solution/solve.sh", "#!/bin/bash\n", ""), "solution/solve.sh has no shebang"),
    ("script_format", add("tests/test.sh", "true"), "no newline"),
    ("script_format", lambda t: (t / "tests/test.sh").chmod(0o644), "not executable"),
    ("no_solution", lambda t: (t / "solution/solve.sh").unlink(), "does not exist"),
    ("no_solution", lambda t: (t / "solution/solve.sh").write_text("#!/bin/bash\nset -e\n# later\n"), "no command"),
    ("no_solution", add("solution/solve.sh", "echo 'open\n"), "ends within the command"),
    ("absolute_path", add("instruction.md", "The file is /workspace/a.txt\n"), "'/workspace/a.txt'"),
    ("absolute_path", add("solution/solve.sh", "cp x /tmp/y\n"), "'/tmp/y'"),
    ("absolute_path", add("solution/solve.sh", "cd /app\n"), "'/app'"),
    ("unpinned_dependency", change("environment/Dockerfile", ":12.11-slim", ""), "'debian'"),
    ("unpinned_dependency", change("environment/Dockerfile", "12.11-slim", "latest"), "'debian:latest'"),
    ("unpinned_dependency", add("environment/Dockerfile", "RUN apt-get update && apt-get install -y jq\n"), "'jq'"),
    ("unpinned_dependency", add("environment/Dockerfile", "RUN pip install numpy==2.1 \\\n  pandas\n"), "'pandas'"),
    ("tests_in_image", add("environment/Dockerfile", "COPY tests/ /tests/\n"), "COPY tests/"),
    (
        "tests_in_image",
        lambda t: (t / "environment/files/n.sh").write_bytes((t / "solution/solve.sh").read_bytes()),
        "environment/files/n.sh is a copy of solution/solve.sh",
    ),
    ("verifier_downloads", add("tests/test.sh", "curl -s http://example.org\n"), "'curl'"),
    ("verifier_downloads", add("tests/more.py", "import os; os.system('pip install x==1')\n"), "pip install"),
    ("no_reward_path", change("tests/test.sh", "reward.txt", "result.txt"), "never writes"),
    ("no_reward_path", change("tests/test.sh", "reward=0\n", "cmp a b || exit 1\n"), "cmp a b || exit 1"),
]


@pytest.mark.parametrize(("lint", "plant", "value"), DEFECTS, ids=[f"{d[0]}-{i}" for i, d in enumerate(DEFECTS)])
def test_a_planted_defect_is_named_with_its_value(lint: str, plant: Plant, value: str, tmp_path: Path) -> None:
    task = made(tmp_path / "t")
    plant(task.path)
    fault = first_fault(read_task(task.path))
    assert fault is not None
    assert fault[0] == lint
    assert value in fault[1]


def test_every_lint_has_a_planted_defect() -> None:
    assert {defect[0] for defect in DEFECTS} == set(LINTS)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_fresh_instance_has_no_fault(family: str, tmp_path: Path) -> None:
    assert first_fault(made(tmp_path / "t", family)) is None


@pytest.mark.parametrize(
    "line",
    ["sed -i 's/home/data/g' f", "awk '/tmp/' f > g 2> /dev/null", "ls a/bin", "RATE=3/run", "grep '^/usr' f > x/y"],
)
def test_slashes_that_are_no_absolute_paths_pass(line: str, tmp_path: Path) -> None:
    task = made(tmp_path / "t")
    add("solution/solve.sh", line + "\n")(task.path)
    assert first_fault(task) is None


@pytest.mark.parametrize(
    "line",
    [
        "RUN apt-get update && apt-get install -y --no-install-recommends jq=1.6-2.1",
        "RUN pip install --no-cache-dir numpy==2.1.0 -r requirements.txt",
        "FROM python:3.12-slim AS tools\nFROM tools",
        "FROM debian@sha256:" + "0" * 64,
    ],
)
def test_pinned_dependencies_pass(line: str, tmp_path: Path) -> None:
    task = made(tmp_path / "t")
    add("environment/Dockerfile", line + "\n")(task.path)
    assert first_fault(task) is None
