"""Ids and secrets that the proxy mints: alphanumeric after the prefix, since some harnesses drop other characters."""

import hashlib
import hmac
import secrets


def mint_session() -> str:
    """Session id; part of the URL that a harness gets."""
    return "s" + secrets.token_hex(10)


def mint_call() -> str:
    """Call id; the harness sees it as the completion's id."""
    return "c" + secrets.token_hex(12)


def mint_tool_call() -> str:
    """Tool-call id that a harness must echo with the tool's result."""
    return "call_" + secrets.token_hex(12)


def secret_for(key: str, session_id: str, role: str) -> str:
    """The secret of one role (``model`` or ``runner``) in one session; the same after a restart with the same key.

    It names its session, so that a runner need not be told which one it serves.
    """
    return f"sk-{session_id}-" + hmac.new(key.encode(), f"{role}:{session_id}".encode(), hashlib.sha256).hexdigest()


def session_named_in(secret: str | None) -> str | None:
    """The session that a secret claims to be of; says nothing about whether it is genuine."""
    parts = (secret or "").split("-")
    return parts[1] if len(parts) == 3 and parts[0] == "sk" else None


def matches(given: str | None, expected: str) -> bool:
    """Compare secrets in constant time."""
    return given is not None and hmac.compare_digest(given.encode(), expected.encode())
