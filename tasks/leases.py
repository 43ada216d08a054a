"""What the trainer wants rolled out, one training step after the other: leased from its queue, kept alive, handed back when done."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator

from contracts.errors import ProxyUnreachable, TrainerError
from contracts.rollout import RolloutRequest, RolloutResult
from contracts.wire import LeaseAsk, LeaseRenew
from tasks.train import Training

LEASE_S = 60.0
"""How long a lease lasts unless it is renewed, seconds: that long after our death the rollout is anybody's again."""
RENEW_EVERY_S = 15.0
WAIT_S = 20.0
"""Longest wait of one request for leases, seconds."""
END_TIMEOUT_S = 900.0
"""Longest time from the last lease to the end of the training process (last update, last checkpoint), seconds."""


class StepFeed:
    """The requests of the trainer's queue in order, cut at step boundaries. Make it with `step_feed`.

    Slots, because Prefect stores whatever parameter of a subflow it can encode.
    """

    __slots__ = ("_changed", "_error", "_held", "_holder", "_line", "_most", "_over", "_training")

    def __init__(self, training: Training, holder: str, most: int) -> None:
        self._training = training
        self._holder = holder
        self._most = most
        self._line: deque[RolloutRequest] = deque()
        self._held: set[str] = set()
        self._over = False
        self._error: TrainerError | None = None
        self._changed = asyncio.Event()

    async def next_step(self) -> int | None:
        """The step of the next request, once there is one; None when the trainer wants nothing more and has ended well.

        Raises:
            TrainerError: the training process failed.
        """
        head = await self._head()
        return None if head is None else head.step

    async def of_step(self, step: int | None) -> AsyncIterator[RolloutRequest]:
        """The requests of one step as they come; ends when another step is next or training has ended. Raises TrainerError."""
        while (head := await self._head()) is not None and head.step == step:
            yield self._line.popleft()

    async def finish(self, result: RolloutResult) -> None:
        """Hand a result back to the trainer.

        Raises:
            TrainerError: the training process failed.
        """
        try:
            await self._training.proxy.finish(result)
        except ProxyUnreachable:
            await self._training.process.wait(END_TIMEOUT_S)
            raise
        self._held.discard(result.rollout_id)

    async def run(self) -> None:
        """Lease until the queue is closed, then wait for the end of training."""
        try:
            await self._lease_all()
            await self._training.process.wait(END_TIMEOUT_S)
        except TrainerError as e:
            self._error = e
        self._over = True
        self._changed.set()

    async def renew(self) -> None:
        """Keep what is held, for ever."""
        while True:
            await asyncio.sleep(RENEW_EVERY_S)
            body = LeaseRenew(holder=self._holder, rollout_ids=tuple(self._held), lease_s=LEASE_S)
            # A proxy that is gone for good shows in `run`, which watches the process.
            with contextlib.suppress(ProxyUnreachable):
                await self._training.proxy.renew(body)

    async def _lease_all(self) -> None:
        ask = LeaseAsk(holder=self._holder, n=self._most, lease_s=LEASE_S, wait_s=WAIT_S)
        while True:
            try:
                leases = await self._training.proxy.lease(ask)
            except ProxyUnreachable:
                return  # the proxy lives in the training process, which has ended or is about to
            fresh = [r for r in leases.requests if r.rollout_id not in self._held]
            self._held.update(r.rollout_id for r in fresh)
            self._line.extend(fresh)
            self._changed.set()
            if leases.closed:
                return

    async def _head(self) -> RolloutRequest | None:
        while not self._line and not self._over:
            self._changed.clear()
            await self._changed.wait()
        if self._error is not None:
            raise self._error
        return self._line[0] if self._line else None


@contextlib.asynccontextmanager
async def step_feed(training: Training, holder: str, most: int) -> AsyncIterator[StepFeed]:
    """Lease up to ``most`` rollouts at a time in the background and renew them until the block ends."""
    feed = StepFeed(training, holder, most)
    background = [asyncio.create_task(feed.run()), asyncio.create_task(feed.renew())]
    try:
        yield feed
    finally:
        for task in background:
            task.cancel()
        await asyncio.wait(background)
