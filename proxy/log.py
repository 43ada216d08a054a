"""The durable call log: SQLite behind one writer thread that commits what waits in one transaction.

A write returns when it is on disk; several sessions share one commit. Reads use their own connections.
"""

import asyncio
import queue
import sqlite3
import threading
import time
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection, Engine, Executable, create_engine, event, insert, select, update
from sqlalchemy.dialects.sqlite import insert as insert_or_ignore
from sqlalchemy.exc import SQLAlchemyError

from contracts.call import Call
from contracts.errors import ConfigError, LogUnavailable
from contracts.wire import OpenSession, RunnerResult
from proxy import schema
from proxy.canonical import value_hash
from proxy.ids import mint_session

TAR_FIELDS = ("workspace_tar", "harness_tar", "tests_tar")
MAX_COMMIT = 256
"""Most statements in one transaction."""


class _Write:
    """One waiting transaction part."""

    def __init__(self, statements: Sequence[tuple[Executable, Any]], done: asyncio.Future[None]) -> None:
        self.statements = statements
        self.done = done
        self.loop = done.get_loop()

    def finish(self, error: BaseException | None) -> None:
        def tell() -> None:
            if not self.done.done():
                if error is None:
                    self.done.set_result(None)
                else:
                    self.done.set_exception(error)

        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(tell)


class CallLog:
    """An open call log. Use as ``with CallLog(path) as log``."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """Open, or make, the log at ``path``.

        Raises:
            ConfigError: ``path`` is not a call log, or of another schema version, or absent and ``read_only``.
            LogUnavailable: the file cannot be written.
        """
        if read_only and not path.is_file():
            raise ConfigError(f"call log {str(path)!r} does not exist; give the path of a calls.sqlite of a run.")
        self.path = path
        self._engine = _open(path)
        self._prepare(read_only)
        self._writes: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write_loop, name="call-log", daemon=True)
        self._writer.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write what waits, then close."""
        self._writes.put(None)
        self._writer.join(timeout=30)
        self._engine.dispose()

    @property
    def secret_key(self) -> str:
        """Key from which the sessions' secrets are derived; lives as long as the log."""
        with self._engine.connect() as c:
            return str(c.execute(select(schema.meta.c.value).where(schema.meta.c.key == "secret_key")).scalar_one())

    # -- writes -------------------------------------------------------------------------------------------------

    async def open_session(self, session_id: str, opened: OpenSession) -> None:
        """Record a new session.

        Raises:
            LogUnavailable: it could not be committed.
        """
        body = opened.model_dump(mode="json")
        statements: list[tuple[Executable, Any]] = []
        for field in TAR_FIELDS:
            digest = value_hash(body[field])
            statements.append(
                (insert_or_ignore(schema.bundles).on_conflict_do_nothing(), {"hash": digest, "data": body[field]})
            )
            body[field] = digest
        request = opened.request
        row = {
            "session_id": session_id,
            "rollout_id": request.rollout_id,
            "run_id": request.run_id,
            "step": request.step,
            "opened_at": time.time(),
            "opened": body,
        }
        await self._commit([*statements, (insert(schema.sessions), row)])

    async def put_call(self, call: Call) -> None:
        """Commit one call; raises LogUnavailable."""
        record = call.model_dump(mode="json", exclude={"suffix_ids_P", "output_ids_C", "logprobs_C", "delivered"})
        row = {
            "call_id": call.call_id,
            "session_id": call.session_id,
            "seq": call.seq,
            "record": record,
            "suffix_ids": _pack("I", call.suffix_ids_P),
            "output_ids": _pack("I", call.output_ids_C),
            "logprobs": _pack("d", call.logprobs_C),
            "delivered": call.delivered,
        }
        await self._commit([(insert(schema.calls), row)])

    async def mark_delivered(self, call_id: str, delivered: bool) -> None:
        """Record whether the client was there for the end of the answer; raises LogUnavailable."""
        calls = schema.calls
        await self._commit([(update(calls).where(calls.c.call_id == call_id).values(delivered=delivered), None)])

    async def seal(self, session_id: str, flags: dict[str, Any], result: RunnerResult | None) -> None:
        """Record that a session takes no more calls, what was noticed, and the runner's result if there is one."""
        values: dict[str, Any] = {"sealed_at": time.time(), "flags": flags}
        if result is not None:
            values["result"] = result.model_dump(mode="json")
        sessions = schema.sessions
        await self._commit([(update(sessions).where(sessions.c.session_id == session_id).values(**values), None)])

    # -- reads --------------------------------------------------------------------------------------------------

    def calls(self, session_id: str) -> tuple[Call, ...]:
        """All calls of a session in the order of arrival; empty for an unknown session."""
        t = schema.calls
        with self._engine.connect() as c:
            found = c.execute(select(t).where(t.c.session_id == session_id).order_by(t.c.seq)).mappings().all()
        return tuple(
            Call.model_validate(
                {
                    **r["record"],
                    "suffix_ids_P": _unpack("I", r["suffix_ids"]),
                    "output_ids_C": _unpack("I", r["output_ids"]),
                    "logprobs_C": _unpack("d", r["logprobs"]),
                    "delivered": r["delivered"],
                }
            )
            for r in found
        )

    def session(self, session_id: str) -> dict[str, Any] | None:
        """One session's row with ``opened`` as OpenSession (bundles filled in) and ``result`` as RunnerResult; None: unknown."""
        t, b = schema.sessions, schema.bundles
        with self._engine.connect() as c:
            row = c.execute(select(t).where(t.c.session_id == session_id)).mappings().first()
            if row is None:
                return None
            opened = dict(row["opened"])
            for field in TAR_FIELDS:
                opened[field] = c.execute(select(b.c.data).where(b.c.hash == opened[field])).scalar_one()
        result = None if row["result"] is None else RunnerResult.model_validate(row["result"])
        return {**row, "opened": OpenSession.model_validate(opened), "result": result}

    def sessions(self, run_id: str | None = None) -> list[dict[str, Any]]:
        """Rows of the sessions table, oldest first, without bundles; of one run when ``run_id`` is given."""
        t = schema.sessions
        query = select(t).order_by(t.c.opened_at, t.c.session_id)
        if run_id is not None:
            query = query.where(t.c.run_id == run_id)
        with self._engine.connect() as c:
            return [dict(r) for r in c.execute(query).mappings()]

    # -- inside -------------------------------------------------------------------------------------------------

    def _prepare(self, read_only: bool) -> None:
        try:
            if not read_only:
                schema.metadata.create_all(self._engine)
            with self._engine.begin() as c:
                self._check_version(c, read_only)
        except SQLAlchemyError as e:
            if "not a database" in str(e) or "no such table" in str(e):
                raise ConfigError(
                    f"{str(self.path)!r} is not a call log; give the path of a calls.sqlite or a new file."
                ) from e
            raise LogUnavailable(
                f"call log {str(self.path)!r} cannot be opened: {_reason(e)}; free the disk or give another path."
            ) from e

    def _check_version(self, c: Connection, read_only: bool) -> None:
        t = schema.meta
        if not read_only:
            for key, value in (("schema_version", str(schema.SCHEMA_VERSION)), ("secret_key", mint_session() * 3)):
                c.execute(insert_or_ignore(t).on_conflict_do_nothing(), {"key": key, "value": value})
        found = c.execute(select(t.c.value).where(t.c.key == "schema_version")).scalar_one_or_none()
        if found != str(schema.SCHEMA_VERSION):
            raise ConfigError(
                f"call log {str(self.path)!r} has schema version {found}, this program writes {schema.SCHEMA_VERSION}; "
                "use the program that wrote it, or a new file."
            )

    async def _commit(self, statements: Sequence[tuple[Executable, Any]]) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._writes.put(_Write(statements, done))
        await done

    def _write_loop(self) -> None:
        while (first := self._writes.get()) is not None:
            batch: list[_Write] = [first]
            last = False
            while len(batch) < MAX_COMMIT and not self._writes.empty():
                more = self._writes.get()
                if more is None:
                    last = True
                    break
                batch.append(more)
            self._write(batch)
            if last:
                return

    def _write(self, batch: list[_Write]) -> None:
        """One transaction for all; when that fails, one each, so that a bad write does not fail its neighbours."""
        try:
            self._transact([s for w in batch for s in w.statements])
        except SQLAlchemyError as e:
            if len(batch) > 1:
                for write in batch:
                    self._write([write])
                return
            error = LogUnavailable(f"call log {str(self.path)!r} cannot be written: {_reason(e)}; free the disk.")
            batch[0].finish(error)
            return
        for write in batch:
            write.finish(None)

    def _transact(self, statements: Sequence[tuple[Executable, Any]]) -> None:
        with self._engine.begin() as c:
            for statement, values in statements:
                if values is None:
                    c.execute(statement)
                else:
                    c.execute(statement, values)


def _reason(error: SQLAlchemyError) -> str:
    return str(getattr(error, "orig", None) or error).splitlines()[0]


def _open(path: Path) -> Engine:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise LogUnavailable(
            f"call log {str(path)!r} cannot be made: {e}; give a directory that can be written."
        ) from e
    engine = create_engine(f"sqlite:///{path}")

    @event.listens_for(engine, "connect")
    def _tune(connection: sqlite3.Connection, _: object) -> None:  # pyright: ignore[reportUnusedFunction]
        # WAL lets readers in while the writer commits; FULL makes a commit survive power loss.
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=10000"):
            connection.execute(f"PRAGMA {pragma}")

    return engine


def _pack(code: str, values: Sequence[float] | None) -> bytes | None:
    return None if values is None else array(code, values).tobytes()


def _unpack(code: str, data: bytes | None) -> tuple[Any, ...] | None:
    return None if data is None else tuple(array(code, data))
