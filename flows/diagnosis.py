"""Checks of this machine, each with what was found and what to do about it. Imports nothing heavy: versions come from metadata."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import httpx

from flows.up_note import read_note
from rollout.harness import default_images, known_harnesses

LEAST_DISK_GIB = 5
LEAST_MEMORY_GIB = 8
_KIB_PER_GIB = 1024 * 1024
_NEEDED = ("prefect", "pydantic", "renderers", "sqlalchemy", "typer")
_TRAINING = ("torch", "verl", "ray", "transformers")
_COMMANDS = {
    "bash": "verifiers are bash scripts; install bash",
    "docker": "only for Docker sandboxes; install Docker",
    "kubectl": "only to look at rollouts on Kubernetes; install kubectl",
    "nvidia-smi": "only for training on GPUs; install the NVIDIA driver",
}


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    what: str
    ok: bool
    found: str
    cure: str
    needed: bool = True
    """Whether the quickstart cannot run without it."""


def checks(root: Path) -> Iterator[Check]:
    """All checks of the checkout at ``root``, in the order of a reader's interest."""
    wanted = (3, 11)
    found = ".".join(map(str, sys.version_info[:3]))
    yield Check("python", sys.version_info[:2] >= wanted, found, "make the environment with Python 3.11 or newer")
    for package in _NEEDED:
        yield _package(package, "pip install openforge-rl")
    for package in _TRAINING:
        yield _package(package, "pip install 'openforge-rl[train]'")
    for command, cure in _COMMANDS.items():
        path = shutil.which(command)
        yield Check(command, path is not None, path or "not found", cure, needed=command == "bash")
    yield _checkout(root)
    yield _writable(root / "runs")
    yield _disk(root)
    yield _memory()
    yield _harnesses()
    yield _user()
    yield _server("Prefect server", lambda: _api_url(root))


def _package(name: str, cure: str) -> Check:
    try:
        return Check(name, True, version(name), cure)
    except PackageNotFoundError:
        return Check(name, False, "not installed", cure)


def _checkout(root: Path) -> Check:
    ok = (root / "prefect.yaml").is_file()
    return Check("prefect.yaml", ok, str(root) if ok else f"none in {root}", "run in the checkout or give --root")


def _writable(runs: Path) -> Check:
    place = next(p for p in (runs, *runs.parents) if p.exists())
    ok = os.access(place, os.W_OK)
    return Check(
        "runs/", ok, f"{place} {'can' if ok else 'cannot'} be written", "give this user the right to write there"
    )


def _disk(root: Path) -> Check:
    free_gib = shutil.disk_usage(root if root.exists() else Path.cwd()).free / 2**30
    return Check(
        "free disk",
        free_gib >= LEAST_DISK_GIB,
        f"{free_gib:.0f} GiB",
        f"free {LEAST_DISK_GIB} GiB for logs and checkpoints",
    )


def _memory() -> Check:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return Check("memory", True, "unknown on this system", "")
    total_gib = next(int(line.split()[1]) for line in lines if line.startswith("MemTotal:")) / _KIB_PER_GIB
    return Check(
        "memory", total_gib >= LEAST_MEMORY_GIB, f"{total_gib:.1f} GiB", f"use a machine with {LEAST_MEMORY_GIB} GiB"
    )


def _harnesses() -> Check:
    known = known_harnesses(default_images())
    return Check(
        "harnesses", "react" in known, ", ".join(known) or "none", "reinstall: harness_images/ is part of this program"
    )


def _user() -> Check:
    root = os.geteuid() == 0
    found = "root: each rollout gets a user of its own" if root else "not root: rollouts run as you"
    return Check(
        "isolation of local rollouts",
        root,
        found,
        "run as root, or in a container, for tasks you do not trust",
        needed=False,
    )


def _api_url(root: Path) -> str | None:
    note = read_note(root)
    return os.environ.get("PREFECT_API_URL") or (None if note is None else note.api_url)


def _server(what: str, where: Callable[[], str | None]) -> Check:
    url = where()
    if url is None:
        return Check(what, False, "none runs for this checkout", "openforge up", needed=False)
    try:
        ok = httpx.get(f"{url}/health", timeout=5.0).status_code == 200
    except httpx.HTTPError:
        ok = False
    return Check(
        what, ok, f"{url} {'answers' if ok else 'does not answer'}", "start it, or unset PREFECT_API_URL", needed=False
    )
