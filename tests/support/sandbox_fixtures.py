"""Fixtures of the tests that run attempts in local sandboxes."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from fake_proxy import FakeProxy, fake_proxy

from sandboxes.config import LocalSandbox
from sandboxes.local import LocalProcesses


@pytest.fixture
def proxy() -> Iterator[FakeProxy]:
    with fake_proxy() as served:
        yield served


@pytest.fixture
def open_dir() -> Iterator[Path]:
    """A directory that every user may write to; pytest's own ones are closed to other users, which as root the agents are."""
    with tempfile.TemporaryDirectory(prefix="openforge-test-", dir="/tmp") as name:
        Path(name).chmod(0o777)
        yield Path(name)


@pytest.fixture
def config(open_dir: Path) -> LocalSandbox:
    """State of this test alone."""
    return LocalSandbox(state_dir=open_dir / "state", grace_s=20)


@pytest.fixture
async def sandbox(config: LocalSandbox) -> AsyncIterator[LocalProcesses]:
    made = LocalProcesses(config)
    yield made
    assert await made.sweep(None) == []
