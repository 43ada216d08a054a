"""Every wait of the runner goes through one place, so that a dead owner is noticed in the middle of anything."""

from __future__ import annotations

import os
import select
import signal
import time


class Leave(Exception):
    """Kill everything and go: the owner is dead, or somebody said stop."""


class Lifeline:
    """Waits for descriptors, for the end of a child process and for the order to leave, whichever comes first."""

    def __init__(self, lifeline_fd: int | None) -> None:
        self._lifeline_fd = lifeline_fd
        self._wake_r, self._wake_w = os.pipe()
        os.set_blocking(self._wake_r, False)
        os.set_blocking(self._wake_w, False)
        self._reason: str | None = None
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _note)
        signal.set_wakeup_fd(self._wake_w, warn_on_full_buffer=False)

    def stop(self, reason: str) -> None:
        """Make the current or next wait raise Leave; callable from another thread."""
        self._reason = reason
        os.write(self._wake_w, b"\0")

    def wait(self, fds: list[int], timeout_s: float) -> list[int]:
        """Wait until one of ``fds`` is readable, a child ends or the time is over; returns the readable ones.

        Raises:
            Leave: the owner is gone or somebody said stop.
        """
        if self._reason:
            raise Leave(self._reason)
        poll = select.poll()
        for fd in (*fds, self._wake_r):
            poll.register(fd, select.POLLIN)
        if self._lifeline_fd is not None:
            poll.register(self._lifeline_fd, select.POLLIN)
        ready = [fd for fd, _ in poll.poll(max(0.0, timeout_s) * 1000)]
        if self._lifeline_fd in ready and not os.read(self._lifeline_fd, 4096):
            self._reason = "the owner's end of stdin is closed"
        if self._wake_r in ready:
            woken_by = os.read(self._wake_r, 4096)
            if signal.SIGTERM in woken_by or signal.SIGINT in woken_by:
                self._reason = "terminated by a signal"
        if self._reason:
            raise Leave(self._reason)
        return [fd for fd in fds if fd in ready]

    def sleep(self, seconds: float) -> None:
        """Wait that long; raises Leave."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.wait([], left)


def _note(_number: int, _frame: object) -> None:
    """The wake-up pipe carries the signal; the handler only has to exist."""
