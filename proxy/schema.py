"""Tables of the call log. Token columns are packed arrays; a prompt is stored as what it adds to its parent, so that a session's
size is linear in its turns.
"""

from sqlalchemy import JSON, Boolean, Column, Float, Index, Integer, LargeBinary, MetaData, String, Table, Text

SCHEMA_VERSION = 1

metadata = MetaData()

meta = Table("meta", metadata, Column("key", String, primary_key=True), Column("value", Text, nullable=False))
"""``schema_version`` and ``secret_key`` (from which session secrets are derived)."""

bundles = Table("bundles", metadata, Column("hash", String, primary_key=True), Column("data", Text, nullable=False))
"""Tar files by content, so that the rollouts of a group share them."""

sessions = Table(
    "sessions",
    metadata,
    Column("session_id", String, primary_key=True),
    Column("rollout_id", String, nullable=False),
    Column("run_id", String, nullable=False),
    Column("step", Integer),
    Column("opened_at", Float, nullable=False),
    Column("opened", JSON, nullable=False),
    Column("sealed_at", Float),
    Column("flags", JSON),
    Column("result", JSON),
    Index("sessions_by_run", "run_id", "rollout_id"),
)
"""``opened``: OpenSession with bundle hashes in place of the tars; ``result``: RunnerResult."""

calls = Table(
    "calls",
    metadata,
    Column("call_id", String, primary_key=True),
    Column("session_id", String, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("record", JSON, nullable=False),
    Column("suffix_ids", LargeBinary),
    Column("output_ids", LargeBinary),
    Column("logprobs", LargeBinary),
    Column("delivered", Boolean),
    Index("calls_by_session", "session_id", "seq"),
)
"""``record``: the Call without its token columns and without ``delivered``."""
