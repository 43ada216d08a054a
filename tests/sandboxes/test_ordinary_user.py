"""The same tests again as an ordinary user, when this run is root's: agents then have the user of their runner."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROBE = (
    "import subprocess, sys, pydantic, pytest, pytest_asyncio; subprocess.run([sys.executable, '-c', ''], check=True)"
)
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
PACKAGES = os.pathsep.join(p for p in sys.path if p.endswith("site-packages"))
ENV = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/tmp",
    "PYTHONPATH": PACKAGES,
    "PYTHONDONTWRITEBYTECODE": "1",
}


def python_of_nobody() -> str | None:
    """A Python like this one that nobody may run and that finds the packages of this one."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/local/bin/{name}", f"/usr/bin/{name}"):
        probe = [*NOBODY, python, "-c", PROBE]
        try:
            if subprocess.run(probe, env=ENV, cwd="/", capture_output=True, timeout=60).returncode == 0:
                return python
        except OSError:
            continue
    return None


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="this run is an ordinary user's already")
def test_sandboxes_keep_their_promises_for_an_ordinary_user():
    python = python_of_nobody()
    if python is None:
        pytest.skip("no Python with pydantic and pytest that the user nobody may run")
    argv = [
        *NOBODY,
        python,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/sandboxes",
        "tests/runner/test_attacks.py",
    ]
    done = subprocess.run(argv, env=ENV, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
