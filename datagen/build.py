"""Stage 3: make sure that the environment can be built anywhere, and fix each task's identity by content hashes."""

import hashlib
from pathlib import Path

from contracts.task import read_task
from datagen.config import DatagenConfig
from datagen.dockerfile import dockerfile
from datagen.records import StageReport, Verdict
from datagen.store import Store, write_whole
from datagen.yields import tally

STAGE = "build"
MAX_ENVIRONMENT_BYTES = 16 * 1024 * 1024
"""Largest start content of a working directory: it travels through the proxy with every rollout."""


def run(config: DatagenConfig) -> StageReport:
    """Build every task that the filter let through."""
    store = Store(config.out)
    if done := store.report(STAGE):
        return done
    verdicts = [build(config, v) for v in store.verdicts("filter") if v.ok]
    return store.finish(tally(STAGE, verdicts), verdicts)


def build(config: DatagenConfig, task: Verdict) -> Verdict:
    """Complete one task's environment directory and hash it; a Dockerfile that is there is kept."""
    spec = read_task(config.out / task.path)
    environment = spec.path / "environment"
    if fault := _fault(environment):
        return task.model_copy(update={"ok": False, "reason": "environment", "detail": fault})
    if not (environment / "Dockerfile").is_file():
        write_whole(environment / "Dockerfile", dockerfile(config.base_image, has_files=spec.files_dir.is_dir()))
    hashes = {"content_hash": tree_hash(spec.path), "environment_hash": tree_hash(environment)}
    return task.model_copy(update=hashes)


def tree_hash(root: Path) -> str:
    """SHA-256 over the relative path, the executable bit and the bytes of every file below ``root``."""
    digest = hashlib.sha256()
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        content = path.read_bytes()
        executable = bool(path.stat().st_mode & 0o100)
        digest.update(f"{path.relative_to(root).as_posix()}\0{executable:d}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _fault(environment: Path) -> str | None:
    total = 0
    for path in sorted(environment.rglob("*")):
        name = path.relative_to(environment)
        if path.is_symlink():
            return f"environment/{name} is a symbolic link; put the file itself there"
        if not path.is_dir() and not path.is_file():
            return f"environment/{name} is neither a file nor a directory"
        total += path.stat().st_size if path.is_file() else 0
    if total > MAX_ENVIRONMENT_BYTES:
        return f"environment/ holds {total} bytes; at most {MAX_ENVIRONMENT_BYTES} are allowed"
    return None
