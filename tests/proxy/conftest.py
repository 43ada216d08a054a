"""A real proxy per test."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from proxy_stand import Stand, standing


@pytest.fixture
def stand(tmp_path: Path) -> Callable[..., AbstractAsyncContextManager[Stand]]:
    """Start a proxy over an engine that gives the planned answers."""

    def start(*answers: Any, log: Path | None = None, **engine: Any) -> AbstractAsyncContextManager[Stand]:
        return standing(log or tmp_path / "calls.sqlite", *answers, **engine)

    return start
