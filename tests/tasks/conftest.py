"""A throw-away Prefect server, and task directories that a scripted policy can solve."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prefect.testing.utilities import prefect_test_harness

from contracts.task import TaskSpec, write_task

MakeTask = Callable[..., TaskSpec]


@pytest.fixture(scope="session")
def prefect_server() -> Iterator[None]:
    with prefect_test_harness(server_startup_timeout=180):
        yield


@pytest.fixture
def make_task(tmp_path: Path) -> MakeTask:
    """Make a task whose verifier looks for ``ok.txt`` and whose reference solution writes it."""

    def make(name: str, family: str = "write_file", split: str = "train") -> TaskSpec:
        return write_task(
            tmp_path / "set" / name,
            instruction="Write the word ok to the file ok.txt",
            files={},
            dockerfile="FROM debian:12.11-slim\n",
            test_sh='if [ "$(cat ok.txt)" = ok ]; then r=1; else r=0; fi\necho $r > "$OPENFORGE_REWARD_DIR/reward.txt"\n',
            solve_sh="#!/bin/bash\necho ok > ok.txt\n",
            metadata={"openforge": {"family": family, "split": split}},
            agent_timeout_s=60.0,
            verifier_timeout_s=30.0,
        )

    return make
