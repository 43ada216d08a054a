"""The rollout queue: what the trainer wants done, leased to whoever runs rollouts.

A lease expires when its holder stops renewing it; the rollout is then handed out again as a further attempt, a bounded number of
times. Lives in the event loop of the proxy.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from contracts.errors import ConfigError
from contracts.rollout import RolloutRequest, RolloutResult, lost
from contracts.wire import FinishedRollout, LeaseAsk, LeaseRenew, Leases

MAX_ATTEMPTS = 3
"""Times a rollout is handed out before it is given up as lost."""
POLL_S = 0.25
"""Longest time between two looks at expired leases while somebody waits."""


@dataclass
class _Lease:
    request: RolloutRequest
    holder: str
    expires_at: float


class RolloutQueue:
    """Pending, leased and finished rollouts.

    Args:
        now: a monotonic clock, seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._pending: deque[RolloutRequest] = deque()
        self._leased: dict[str, _Lease] = {}
        self._results: dict[str, asyncio.Future[FinishedRollout]] = {}
        self._changed = asyncio.Event()
        self._closed = False
        self.expired_total = 0

    @property
    def pending(self) -> int:
        """Rollouts that nobody runs yet."""
        return len(self._pending)

    @property
    def leased(self) -> int:
        """Rollouts that somebody runs."""
        return len(self._leased)

    def enqueue(self, requests: Iterable[RolloutRequest]) -> None:
        """Ask for rollouts.

        Raises:
            ConfigError: a rollout id that is in the queue already, or the queue is closed.
        """
        if self._closed:
            raise ConfigError("the rollout queue is closed; nothing can be enqueued.")
        for request in requests:
            if request.rollout_id in self._results:
                raise ConfigError(f"rollout {request.rollout_id!r} is in the queue already; use an id of its own.")
            self._results[request.rollout_id] = asyncio.get_running_loop().create_future()
            self._pending.append(request)
        self._wake()

    async def lease(self, ask: LeaseAsk) -> Leases:
        """Up to ``ask.n`` requests, oldest first; waits up to ``ask.wait_s`` for the first one."""
        until = self._now() + ask.wait_s
        while True:
            self.expire()
            if self._pending or self._closed or self._now() >= until:
                taken = [self._pending.popleft() for _ in range(min(ask.n, len(self._pending)))]
                for request in taken:
                    self._leased[request.rollout_id] = _Lease(request, ask.holder, self._now() + ask.lease_s)
                return Leases(requests=tuple(taken), closed=self._closed and not self._leased and not self._pending)
            await self._wait(min(POLL_S, max(0.0, until - self._now())))

    def renew(self, body: LeaseRenew) -> None:
        """Keep leases; ids that this holder does not have are ignored (they expired and went to somebody else)."""
        for rollout_id in body.rollout_ids:
            lease = self._leased.get(rollout_id)
            if lease is not None and lease.holder == body.holder:
                lease.expires_at = self._now() + body.lease_s

    def finish(self, result: RolloutResult) -> bool:
        """Hand in a result; False when it is stale (another attempt was handed out) or a repetition, and ignored."""
        lease = self._leased.get(result.rollout_id)
        if lease is None or result.attempt < lease.request.attempt:
            return False
        del self._leased[result.rollout_id]
        self._results[result.rollout_id].set_result(FinishedRollout(request=lease.request, result=result))
        self._wake()
        return True

    async def result(self, rollout_id: str) -> FinishedRollout:
        """Wait for a rollout that was enqueued; each result is handed out once."""
        done = await asyncio.shield(self._results[rollout_id])  # who stops waiting must not take the result along
        del self._results[rollout_id]
        return done

    def expire(self) -> None:
        """Hand expired leases out again, or give them up after the last attempt."""
        late = [lease for lease in self._leased.values() if lease.expires_at <= self._now()]
        for lease in late:
            self.expired_total += 1
            request = lease.request
            if request.attempt >= MAX_ATTEMPTS:
                why = f"its lease expired {request.attempt} times: whoever ran it died or hung"
                self.finish(lost(request, why, ended_at=datetime.now(UTC)))
                continue
            del self._leased[request.rollout_id]
            self._pending.append(request.model_copy(update={"attempt": request.attempt + 1}))
        if late:
            self._wake()

    def close(self) -> None:
        """Nothing will be enqueued any more; waiting lease calls return."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()

    async def _wait(self, timeout_s: float) -> None:
        self._changed.clear()
        try:
            await asyncio.wait_for(self._changed.wait(), timeout_s)
        except TimeoutError:
            return
