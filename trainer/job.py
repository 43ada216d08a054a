"""One training process under a guard: started, watched and ended from asyncio."""

import asyncio
import json
import os
import sys
import tempfile
import uuid
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path

from contracts.errors import TrainerError
from trainer.guard import GuardOrder, sweep
from trainer.processes import start_time

GRACE_S = 3.0
"""Seconds that a training job gets to end by itself; nothing is lost when it does not, checkpoints and call log are
whole at any time."""
_PACKAGE_ROOT = Path(__file__).resolve().parent.parent


class Job:
    """A running training process."""

    def __init__(self, guard: asyncio.subprocess.Process, name: str, log: Path) -> None:
        self._guard = guard
        self._name = name
        self.log = log
        """Its output."""

    def poll(self) -> int | None:
        """Exit code; None while it runs."""
        return self._guard.returncode

    async def wait(self, timeout_s: float | None = None) -> None:
        """Wait for a successful end.

        Raises:
            TrainerError: it failed, or it runs longer than ``timeout_s``; with the last lines of its log.
        """
        try:
            code = await asyncio.wait_for(self._guard.wait(), timeout_s)
        except TimeoutError as e:
            raise TrainerError(f"{self._name} runs longer than {timeout_s:g} s. {self._last_lines()}") from e
        if code != 0:
            raise self.failure(code)

    def failure(self, code: int) -> TrainerError:
        """The error for an exit code, with the last lines of the log."""
        return TrainerError(f"{self._name} ended with exit code {code}. {self._last_lines()}")

    async def stop(self) -> None:
        """End it and everything it started."""
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        await self._guard.wait()

    def _last_lines(self, n: int = 15) -> str:
        try:
            with self.log.open(encoding="utf-8", errors="replace") as f:
                lines = "".join(deque(f, n))
        except OSError as e:
            return f"Its log {self.log} cannot be read: {e}."
        return f"Last lines of {self.log}:\n{lines}"


async def claim(run_dir: Path) -> None:
    """Remove what a dead owner's training job left in a run directory; call it before anything there is changed.

    Raises:
        TrainerError: another living process trains there.
    """
    owner = await asyncio.to_thread(sweep, _note(run_dir))
    if owner is not None:
        raise TrainerError(
            f"run {str(run_dir)!r} is being trained by process {owner}; "
            "wait for it, stop it, or choose another run directory."
        )


@asynccontextmanager
async def training_job(
    name: str, argv: Sequence[str], *, run_dir: Path, log: Path, environment: Mapping[str, str]
) -> AsyncIterator[Job]:
    """Run ``python -m`` something as a training job; leaving the block ends it and all it started.

    ``{scratch}`` in an argument or a value of the environment becomes a private directory with a short path (Ray's
    sockets need one). Call ``claim`` first.
    """
    scratch = tempfile.mkdtemp(prefix="ofrl-")
    env = {**os.environ, **environment, "PYTHONPATH": _python_path()}
    order = GuardOrder(
        argv=[sys.executable, "-m", *(a.replace("{scratch}", scratch) for a in argv)],
        mark=f"{run_dir.name}-{uuid.uuid4().hex[:12]}",
        log=str(log),
        note=str(_note(run_dir)),
        scratch=scratch,
        owner_pid=os.getpid(),
        owner_started=start_time(os.getpid()) or "",
        grace_s=GRACE_S,
    )
    with log.open("ab") as output:
        guard = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "trainer.guard", json.dumps(asdict(order)),
            stdin=asyncio.subprocess.PIPE, stdout=output, stderr=output, start_new_session=True,
            env={k: v.replace("{scratch}", scratch) for k, v in env.items()},
        )  # fmt: skip
    job = Job(guard, name, log)
    try:
        yield job
    finally:
        await asyncio.shield(job.stop())


def _note(run_dir: Path) -> Path:
    return run_dir / "trainer.pid"


def _python_path() -> str:
    """Where the job and Ray's workers find this package, installed or not."""
    return os.pathsep.join([str(_PACKAGE_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
