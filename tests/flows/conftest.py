"""A real Prefect server with our deployments and a process worker, once for all tests that need it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.up_note import Note, read_note

REPO = Path(__file__).resolve().parents[2]
PACKAGES = (
    "benchmarks",
    "contracts",
    "datagen",
    "flows",
    "harness_images",
    "proxy",
    "rollout",
    "sandboxes",
    "tasks",
    "trainer",
)
START_TIMEOUT_S = 240
STOP_TIMEOUT_S = 120


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with our code and no runs."""
    return make_checkout(tmp_path_factory.mktemp("checkout"))


@pytest.fixture
def other_checkout(tmp_path: Path) -> Path:
    """One more, for a test that ends what serves it."""
    return make_checkout(tmp_path)


def make_checkout(root: Path) -> Path:
    """Fill ``root`` with links to our code."""
    for name in (*PACKAGES, "configs", "prefect.yaml"):
        (root / name).symlink_to(REPO / name)
    return root


@pytest.fixture(scope="session")
def installation(checkout: Path) -> Iterator[Note]:
    """What `openforge up` serves for that checkout."""
    with (checkout / "up.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "flows.cli", "up", "--root", str(checkout)],
            cwd=checkout, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            env=os.environ | {"PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
    try:
        yield _served(checkout, process)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_TIMEOUT_S)


def _served(checkout: Path, process: "subprocess.Popen[bytes]") -> Note:
    for _ in range(START_TIMEOUT_S * 4):
        note = read_note(checkout)
        if note is not None:
            return note
        try:
            process.wait(0.25)
        except subprocess.TimeoutExpired:
            continue
        break
    raise AssertionError((checkout / "up.log").read_text())
