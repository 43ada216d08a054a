"""Runs one child process to its end under a clock and a memory watch, keeping the end of its output."""

from __future__ import annotations

import os
import subprocess
import time
from collections import deque

from confine import Account, Rlimits, kill_all, usage
from life import Lifeline

WATCH_EVERY_S = 1.0
PIPE_BYTES = 65536


class Tail:
    """The last ``limit`` bytes of a stream."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._chunks: deque[bytes] = deque()
        self._kept = 0
        self._dropped = 0

    def add(self, chunk: bytes) -> None:
        """Append; forgets whole chunks from the front that are not needed any more."""
        self._chunks.append(chunk)
        self._kept += len(chunk)
        while self._chunks and self._kept - len(self._chunks[0]) >= self._limit:
            gone = len(self._chunks.popleft())
            self._kept -= gone
            self._dropped += gone

    def record(self, limit: int | None = None) -> dict:
        """The tail in the shape of contracts.rollout.Tail, at most ``limit`` bytes of it."""
        kept = b"".join(self._chunks)
        text = kept[-min(limit or self._limit, self._limit) :]
        return {"text": text.decode("utf-8", "replace"), "dropped_bytes": self._dropped + len(kept) - len(text)}


class Watch:
    """What ends a child before it ends by itself."""

    def __init__(self, timeout_s: float, memory_bytes: int | None, processes: int | None) -> None:
        self.timeout_s = timeout_s
        self.memory_bytes = memory_bytes
        self.processes = processes


class Ended:
    """How a child ended; ``exit_code`` None: killed by the runner, or never started (then ``not_started`` says why)."""

    exit_code: int | None = None
    timed_out = False
    memory_exceeded = False
    detail: str | None = None
    not_started: str | None = None


def run_child(
    argv: list[str],
    env: dict[str, str],
    directory: str,
    account: Account,
    rlimits: Rlimits,
    watch: Watch,
    tail: Tail,
    waits: Lifeline,
) -> Ended:
    """Run ``argv`` in its own session and wait for it; when this returns, nothing that it started is alive.

    Raises:
        Leave: the owner is gone (the caller kills what runs). Survivor: something outlived SIGKILL.
    """
    ended = Ended()
    out_r, out_w = os.pipe()
    os.set_blocking(out_r, False)
    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out_w,
            stderr=out_w,
            cwd=directory,
            env=env,
            start_new_session=True,
            preexec_fn=rlimits.apply,
            **account.popen_args(),
        )
    except (OSError, ValueError, subprocess.SubprocessError) as e:
        os.close(out_r)
        ended.not_started = f"{argv[0]!r} could not be started: {e}"
        return ended
    finally:
        os.close(out_w)
    _wait(child, watch, out_r, tail, waits, ended)
    killed = child.returncode is None
    if killed:
        child.kill()
        child.wait()
    kill_all(account)
    _drain(out_r, tail)
    os.close(out_r)
    ended.exit_code = None if killed else child.returncode
    return ended


def _wait(child: subprocess.Popen, watch: Watch, out_r: int, tail: Tail, waits: Lifeline, ended: Ended) -> None:
    """Follow the child until it ends or a limit is reached, which it writes into ``ended``."""
    start = time.monotonic()
    look_at = start + WATCH_EVERY_S
    open_fds = [out_r]
    while child.poll() is None:
        now = time.monotonic()
        if now - start >= watch.timeout_s:
            ended.timed_out = True
            ended.detail = f"killed after {watch.timeout_s:g} s of wall clock"
            return
        if now >= look_at:
            look_at = now + WATCH_EVERY_S
            if _over(watch, ended):
                return
        if out_r in waits.wait(open_fds, min(look_at, start + watch.timeout_s) - now) and not _drain(out_r, tail):
            open_fds = []  # the child closed its output; it still runs


def _over(watch: Watch, ended: Ended) -> bool:
    if watch.memory_bytes is None and watch.processes is None:
        return False
    processes, resident = usage()
    if watch.memory_bytes is not None and resident > watch.memory_bytes:
        ended.memory_exceeded = True
        ended.detail = f"killed at {resident >> 20} MiB of resident memory, limit {watch.memory_bytes >> 20} MiB"
    elif watch.processes is not None and processes > watch.processes:
        ended.detail = f"killed at {processes} processes, limit {watch.processes}"
    return ended.detail is not None


def _drain(out_r: int, tail: Tail) -> bool:
    """Move what is in the pipe to the tail; False at the end of the stream."""
    try:
        for _ in range(64):  # bounded: a child that writes for ever must not keep the runner from its clock
            chunk = os.read(out_r, PIPE_BYTES)
            if not chunk:
                return False
            tail.add(chunk)
    except BlockingIOError:
        pass
    return True
