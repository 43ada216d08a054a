"""Stage 4: the gates, run as rollouts by whoever drives the stage.

    while requests := pending_requests(config, run_id):
        for request in requests:
            record(config, <the result of running it>)
    conclude(config)

Rounds: ``test-0`` tests what was built; ``test-1`` what the first repair mended, and so on.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from contracts.errors import ConfigError
from contracts.rollout import RolloutRequest, RolloutResult
from contracts.task import read_task
from datagen.config import DatagenConfig
from datagen.gates import Gate, is_infrastructure, judge
from datagen.records import StageReport, Verdict
from datagen.store import Store, append_line, read_lines
from datagen.yields import tally
from rollout.script import script_of

NOOP_HARNESS = "nop"
ORACLE_POLICY = "oracle"
"""Name of the proxy's scripted engine; the nop harness makes no call to it."""
SPARE_TURNS = 2
"""Model calls allowed beyond the solution's commands: the closing answer and one to spare."""


@dataclass(frozen=True)
class Slot:
    """One run that a task must show: a gate and a repetition of it."""

    task: Verdict
    gate: Gate
    repeat: int

    @property
    def key(self) -> str:
        """Names the run whatever its try; changes with the task's content."""
        slug = re.sub(r"[^A-Za-z0-9.-]", "-", self.task.name)
        assert self.task.content_hash is not None, "only built tasks are tested"
        return f"{self.gate}-{slug}-{self.task.content_hash[:8]}-r{self.repeat}"


def pending_requests(config: DatagenConfig, run_id: str) -> list[RolloutRequest]:
    """The runs of the current round that no recorded result settles; empty when it can be concluded.

    A run whose infrastructure failed comes again, under a new rollout id, up to ``max_tries`` times.
    """
    store = Store(config.out)
    if store.report(_stage(store)) is not None:
        return []
    recorded = _recorded(store)
    open_slots = [s for s in _slots(config, store) if not _over(config, recorded.get(s.key, []))]
    return [_request(config, run_id, slot, len(recorded.get(slot.key, [])) + 1) for slot in open_slots]


def record(config: DatagenConfig, result: RolloutResult) -> None:
    """Keep the result of one requested run; a rollout id recorded twice counts once."""
    append_line(Store(config.out).gates_file, result)


def conclude(config: DatagenConfig) -> StageReport:
    """Decide about every task of the current round.

    Raises:
        ConfigError: runs are still pending.
    """
    store = Store(config.out)
    stage = _stage(store)
    if done := store.report(stage):
        return done
    recorded = _recorded(store)
    runs: dict[str, dict[Gate, list[RolloutResult]]] = defaultdict(lambda: {gate: [] for gate in Gate})
    slots = _slots(config, store)
    pending = [slot for slot in slots if not _over(config, recorded.get(slot.key, []))]
    if pending:
        raise ConfigError(
            f"{stage} of {str(config.out)!r} has {len(pending)} of {len(slots)} runs pending, "
            f"first {pending[0].key!r}; run them first."
        )
    for slot in slots:
        runs[slot.task.name][slot.gate].append(recorded[slot.key][-1])
    verdicts = [_verdict(task, runs[task.name]) for task in _entrants(store)]
    return store.finish(tally(stage, verdicts), verdicts)


def current_round(store: Store) -> int:
    """0 before any repair; raised by each repair that mended something."""
    number = 0
    while (report := store.report(f"repair-{number + 1}")) and report.passed:
        number += 1
    return number


def _stage(store: Store) -> str:
    return f"test-{current_round(store)}"


def _entrants(store: Store) -> list[Verdict]:
    number = current_round(store)
    return [v for v in store.verdicts(f"repair-{number}" if number else "build") if v.ok]


def _slots(config: DatagenConfig, store: Store) -> list[Slot]:
    return [Slot(task, gate, repeat) for task in _entrants(store) for gate in Gate for repeat in range(config.repeats)]


def _recorded(store: Store) -> dict[str, list[RolloutResult]]:
    """Slot key → results in the order of their tries."""
    first = {}
    for result in read_lines(store.gates_file, RolloutResult):
        first.setdefault(result.rollout_id, result)
    by_key: dict[str, list[RolloutResult]] = defaultdict(list)
    for rollout_id, result in first.items():
        by_key[rollout_id.rpartition("-t")[0]].append(result)
    return by_key


def _over(config: DatagenConfig, tries: Sequence[RolloutResult]) -> bool:
    return len(tries) >= config.max_tries or (bool(tries) and not is_infrastructure(tries[-1]))


def _request(config: DatagenConfig, run_id: str, slot: Slot, attempt: int) -> RolloutRequest:
    path = (config.out / slot.task.path).resolve()
    turns = max(config.limits.turns, len(script_of(read_task(path))) + SPARE_TURNS)
    return RolloutRequest(
        rollout_id=f"{slot.key}-t{attempt}",
        run_id=run_id,
        task=path,
        harness=NOOP_HARNESS if slot.gate is Gate.NOOP else config.harness,
        policy=ORACLE_POLICY,
        group_id=f"{slot.gate}-{slot.task.name}",
        attempt=attempt,
        limits=config.limits.model_copy(update={"turns": turns}),
    )


def _verdict(task: Verdict, runs: dict[Gate, list[RolloutResult]]) -> Verdict:
    rewards = {str(gate): tuple(r.reward for r in results) for gate, results in runs.items()}
    finding = judge(runs)
    if finding is None:
        return task.model_copy(update={"rewards": rewards})
    update = {"ok": False, "reason": finding.reason, "detail": finding.detail, "rewards": rewards}
    return task.model_copy(update=update)
