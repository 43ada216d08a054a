"""Live sessions: who may speak in them, what was noticed, and the way back from the log after a restart."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from contracts.call import Call, Purpose
from contracts.errors import ConfigError
from contracts.rollout import Limits
from contracts.wire import OpenSession, RunnerResult, SessionState
from proxy.ids import mint_session, secret_for
from proxy.lineage import Turn, find_parent, turn_of
from proxy.log import CallLog

KEPT_SEALED = 512
"""Sealed sessions kept in memory; older ones are read back from the log when asked for."""


@dataclass
class Session:
    """The proxy's side of one rollout."""

    session_id: str
    opened: OpenSession
    calls: list[Call] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    tools: dict[str, tuple[dict[str, Any], ...] | None] = field(default_factory=dict)
    """Call id → the tools of its request."""
    answered_bodies: dict[str, str] = field(default_factory=dict)
    """Hash of a request body → call id, to recognise a retry."""
    running: set[asyncio.Task[Any]] = field(default_factory=set)
    begun: int = 0
    """Calls that were let in, answered or not."""
    sealed: bool = False
    agent_dead: bool = False
    context_overflow: bool = False
    turns_exceeded: bool = False
    upstream_error: str | None = None
    proxy_error: str | None = None
    last_heartbeat_at: datetime | None = None
    result: RunnerResult | None = None

    @property
    def limits(self) -> Limits:
        """The rollout's limits."""
        return self.opened.request.limits

    def add(self, call: Call, turn: Turn, tools: tuple[dict[str, Any], ...] | None) -> None:
        """Remember an answered call."""
        self.calls.append(call)
        self.turns.append(turn)
        self.tools[call.call_id] = tools

    def forget(self, call_id: str) -> None:
        """Undo ``add`` for a call that could not be recorded."""
        self.calls = [c for c in self.calls if c.call_id != call_id]
        self.turns = [t for t in self.turns if t.call_id != call_id]
        self.tools.pop(call_id, None)

    def state(self) -> SessionState:
        """What the orchestrator sees."""
        return SessionState(
            session_id=self.session_id,
            sealed=self.sealed,
            calls=len(self.calls),
            sampled_tokens=sum(len(c.output_ids_C or ()) for c in self.calls),
            context_overflow=self.context_overflow,
            turns_exceeded=self.turns_exceeded,
            upstream_error=self.upstream_error,
            proxy_error=self.proxy_error,
            last_heartbeat_at=self.last_heartbeat_at,
            result=self.result,
        )

    def purpose_of(self, system_hash: str, tools_hash: str) -> Purpose:
        """Main when system prompt and tools are those of the first call; anything else is a side call."""
        if not self.calls:
            return Purpose.MAIN
        first = self.calls[0]
        same = first.system_hash == system_hash and first.tools_hash == tools_hash
        return Purpose.MAIN if same else Purpose.AUXILIARY


class Sessions:
    """All sessions of one proxy."""

    def __init__(self, log: CallLog) -> None:
        self._log = log
        self._key = log.secret_key
        self._known: OrderedDict[str, Session] = OrderedDict()

    def secret(self, session_id: str, role: str) -> str:
        """The secret of ``model`` or ``runner`` in a session."""
        return secret_for(self._key, session_id, role)

    @property
    def open_count(self) -> int:
        """Sessions that still take calls."""
        return sum(1 for s in self._known.values() if not s.sealed)

    async def open(self, opened: OpenSession) -> Session:
        """Record and remember a new session; raises LogUnavailable."""
        session = Session(mint_session(), opened)
        await self._log.open_session(session.session_id, opened)
        self._known[session.session_id] = session
        return session

    async def get(self, session_id: str) -> Session | None:
        """A session from memory or, after a restart, from the log; None: never opened."""
        if session_id in self._known:
            return self._known[session_id]
        session = await asyncio.to_thread(self._read_back, session_id)
        if session is not None:
            self._known.setdefault(session_id, session)
        return self._known.get(session_id)

    async def seal(self, session: Session, result: RunnerResult | None = None) -> None:
        """Take no more calls; running ones are cancelled. Raises LogUnavailable; raises ConfigError on a second result."""
        if result is not None:
            if session.result is not None:
                raise ConfigError(f"session {session.session_id} has its result already; a rollout is graded once.")
            session.result = result
        elif session.sealed:
            return
        session.sealed = True
        for task in tuple(session.running):
            task.cancel()
        flags = session.state().model_dump(
            mode="json", include={"context_overflow", "turns_exceeded", "upstream_error"}
        )
        await self._log.seal(session.session_id, flags, session.result)
        self._forget_old()

    async def close(self) -> None:
        """Cancel what runs; open sessions stay open in the log and continue after a restart."""
        running = [t for s in self._known.values() for t in s.running]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _forget_old(self) -> None:
        sealed = [k for k, s in self._known.items() if s.sealed and not s.running]
        for key in sealed[: max(0, len(sealed) - KEPT_SEALED)]:
            del self._known[key]

    def _read_back(self, session_id: str) -> Session | None:
        row = self._log.session(session_id)
        if row is None:
            return None
        session = Session(session_id, row["opened"])
        session.sealed = row["sealed_at"] is not None
        session.agent_dead = session.sealed
        session.result = row["result"]
        flags = row["flags"] or {}
        session.context_overflow = bool(flags.get("context_overflow"))
        session.turns_exceeded = bool(flags.get("turns_exceeded"))
        session.upstream_error = flags.get("upstream_error")
        for call in self._log.calls(session_id):
            messages = [*_history(session, call.parent_call_id), *call.messages]
            tools = call.tools if call.tools is not None else session.tools.get(call.parent_call_id or "")
            turn = turn_of(call.call_id, find_parent((), messages), call.answer)
            session.add(call, turn, tools)
        session.begun = len(session.calls)
        return session


def _history(session: Session, call_id: str | None) -> list[dict[str, Any]]:
    """Messages of a recorded call's request and its answer."""
    if call_id is None:
        return []
    call = next(c for c in session.calls if c.call_id == call_id)
    return [*_history(session, call.parent_call_id), *call.messages, call.answer]


def utc_now() -> datetime:
    """The wall clock, aware."""
    return datetime.now(UTC)
