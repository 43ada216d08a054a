"""Rules for the whole suite."""

import os
from collections.abc import Generator
from typing import Any

import pytest

MISSING = "install it with"
"""A test whose component is missing skips with a reason that says: "… is missing: install it with `…`"."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """In CI a test that skips because a component is missing has failed: CI installs all of them."""
    report = yield
    if os.environ.get("CI") and report.skipped and MISSING in str(report.longrepr):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped in CI: {report.longrepr}"
    return report
