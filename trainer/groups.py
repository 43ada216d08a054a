"""Runs the groups of a training step: asks the queue for rollouts, reads their rows, hands the usable ones to the
trainer.

A failed rollout leaves its group. Every group ends, whatever happens: the trainer waits for each one.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from contracts.rollout import Cause, Outcome, RolloutRequest, RolloutResult
from contracts.wire import FinishedRollout, RowsAnswer
from trainer.config import RlConfig
from trainer.invariants import RolloutFact, broken_promises
from trainer.rows import QueuedRow, queued_rows, untrainable

log = logging.getLogger(__name__)

POLICY = "policy"
"""The proxy's name of the model that is trained."""


@dataclass(frozen=True)
class Prompt:
    """One task of a step."""

    uid: str
    """veRL's name of the group."""
    task: Path
    index: int
    """0, 1, … within the step."""


class Queue(Protocol):
    """The part of the proxy's rollout queue that hands out work."""

    def enqueue(self, requests: Iterable[RolloutRequest]) -> None: ...
    async def result(self, rollout_id: str) -> FinishedRollout: ...
    def close(self) -> None: ...


class RowSink(Protocol):
    """Where usable rows go."""

    async def put(self, rows: Sequence[QueuedRow]) -> None:
        """Hand over the rows of one group."""
        ...

    async def finish(self, uid: str, usable: bool) -> None:
        """Say that nothing more comes for a group."""
        ...


@dataclass(frozen=True)
class StepFacts:
    """All rollouts of a step."""

    facts: tuple[RolloutFact, ...]
    faults: tuple[str, ...]
    """Our own failures; the trainer stops on any."""


class GroupDriver:
    """The rollouts of all steps; lives in the proxy's process."""

    def __init__(
        self,
        config: RlConfig,
        run_id: str,
        queue: Queue,
        fetch_rows: Callable[[str], Awaitable[RowsAnswer]],
        sink: RowSink,
    ) -> None:
        self._config = config
        self._run_id = run_id
        self._queue = queue
        self._fetch_rows = fetch_rows
        self._sink = sink
        self._groups: dict[int, list[asyncio.Task[list[RolloutFact]]]] = {}
        self._faults: dict[int, list[str]] = defaultdict(list)
        self._late: set[asyncio.Task[FinishedRollout]] = set()

    def start(self, step: int, prompts: Sequence[Prompt]) -> None:
        """Begin the groups of a step; returns at once."""
        self._groups.setdefault(step, []).extend(asyncio.create_task(self._group(step, p)) for p in prompts)

    async def facts(self, step: int) -> StepFacts:
        """Every rollout of a step, once all its groups have ended; each step is told once."""
        groups = await asyncio.gather(*self._groups.pop(step, []))
        return StepFacts(tuple(f for group in groups for f in group), tuple(self._faults.pop(step, [])))

    async def aclose(self) -> None:
        """Stop waiting for rollouts and tell the holders of leases that no more come."""
        running = [*(t for step in self._groups.values() for t in step), *self._late]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._queue.close()

    async def _group(self, step: int, prompt: Prompt) -> list[RolloutFact]:
        facts: list[RolloutFact] = []
        rows: list[QueuedRow] = []
        try:
            async for fact, more in self._members(step, prompt):
                facts.append(fact)
                rows += more
            if rows:
                await self._sink.put(rows)
        except Exception as e:
            # The boundary of this layer: veRL waits for the group's end with no timeout, so any fault must become an
            # end and a reason.
            log.exception("step %d, task %s: the group failed", step, prompt.task.name)
            self._faults[step].append(f"task {prompt.task.name!r}: {type(e).__name__}: {e}")
        finally:
            await self._sink.finish(prompt.uid, usable=bool(rows))
        self._say_shrunk(step, prompt, facts)
        return facts

    async def _members(self, step: int, prompt: Prompt) -> AsyncIterator[tuple[RolloutFact, list[QueuedRow]]]:
        """Yield each rollout's fact and rows as it ends, refilling failed ones while the config allows."""
        deadline = asyncio.get_running_loop().time() + self._config.step_timeout_s
        pending = {self._ask(step, prompt, g): g for g in range(self._config.group_size)}
        spare = list(range(self._config.group_size, self._config.group_size + self._config.refill))
        while pending:
            left = max(0.0, deadline - asyncio.get_running_loop().time())
            done, _ = await asyncio.wait(pending, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                self._late.update(pending)  # their holders may still hand them in; nobody reads that
                for member in pending.values():
                    yield self._missing(step, prompt, member), []
                return
            for task in done:
                member = pending.pop(task)
                fact, rows = await self._read(step, prompt, member, task.result().result)
                yield fact, rows
                if fact.outcome == Outcome.FAILED and spare:
                    extra = spare.pop(0)
                    pending[self._ask(step, prompt, extra)] = extra

    def _rollout_id(self, step: int, prompt: Prompt, member: int) -> str:
        return f"{self._run_id}-s{step}-p{prompt.index}-g{member}"

    def _ask(self, step: int, prompt: Prompt, member: int) -> asyncio.Task[FinishedRollout]:
        request = RolloutRequest(
            rollout_id=self._rollout_id(step, prompt, member),
            run_id=self._run_id,
            task=prompt.task,
            harness=self._config.harness,
            policy=POLICY,
            group_id=f"{self._run_id}-s{step}-p{prompt.index}",
            limits=self._config.limits,
            step=step,
        )
        self._queue.enqueue([request])
        return asyncio.create_task(self._queue.result(request.rollout_id))

    def _missing(self, step: int, prompt: Prompt, member: int) -> RolloutFact:
        return RolloutFact(
            rollout_id=self._rollout_id(step, prompt, member),
            group=prompt.index,
            outcome=Outcome.FAILED,
            cause=Cause.OURS,
            reward=None,
            detail=f"no result within step_timeout_s = {self._config.step_timeout_s:g} s",
        )

    async def _read(
        self, step: int, prompt: Prompt, member: int, result: RolloutResult
    ) -> tuple[RolloutFact, list[QueuedRow]]:
        fact = RolloutFact(result.rollout_id, prompt.index, result.outcome, result.cause, None)
        graded = result.outcome == Outcome.COMPLETED or (
            result.outcome == Outcome.TRUNCATED and self._config.truncated == "grade"
        )
        if not graded or result.reward is None or result.session_id is None:
            cause = result.cause.value if result.cause else "no reward"
            return replace(fact, detail=f"{result.outcome.value}: {cause}"), []
        answer = await self._fetch_rows(result.session_id)
        reason = untrainable(answer.rows)
        if reason is not None:
            missing_logprob = ("I2",) if any(sum(row.mask_R) for row in answer.rows) else ()
            return replace(fact, report=answer.report, violations=missing_logprob, detail=reason), []
        rows = queued_rows(answer.rows, uid=prompt.uid, member=member, step=step, reward=result.reward)
        used = replace(
            fact,
            reward=result.reward,
            rows=len(rows),
            version=max(row.tag.max_global_steps for row in rows),
            report=answer.report,
            violations=broken_promises(answer.rows),
        )
        return used, rows

    def _say_shrunk(self, step: int, prompt: Prompt, facts: Sequence[RolloutFact]) -> None:
        left_out = [f for f in facts if not f.rows]
        if left_out:
            reasons = sorted({f.detail or "unknown" for f in left_out})
            log.info(
                "step %d, task %s: %d of %d rollouts left the group (%s)",
                step, prompt.task.name, len(left_out), len(facts), "; ".join(reasons),
            )  # fmt: skip
