"""What every dialect turns a request into, and what it makes an answer from. One shape inside: Chat Completions messages."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from contracts.call import FinishReason, Sampling


class BadRequest(Exception):
    """The harness sent something that the dialect does not allow; goes back as the dialect's own 400."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Ask:
    """One model call, dialect-free."""

    model: str
    """Echoed verbatim."""
    messages: tuple[dict[str, Any], ...]
    tools: tuple[dict[str, Any], ...] | None
    sampling: Sampling
    """The harness's wishes: recorded, and ignored where the policy's sampling is pinned."""
    stream: bool
    include_usage: bool


@dataclass(frozen=True)
class Answered:
    """One answered call."""

    call_id: str
    model: str
    created: int
    """Seconds since the epoch."""
    message: dict[str, Any]
    finish: FinishReason
    usage: dict[str, int]


class Dialect(Protocol):
    """One wire format a harness speaks; a module is enough. Pure."""

    @property
    def NAME(self) -> str: ...

    @property
    def ROUTE(self) -> str:
        """Path below ``/s/{session_id}``."""
        ...

    @property
    def KEEP_ALIVE(self) -> bytes: ...

    def read(self, body: Any) -> Ask: ...

    def answer(self, answered: Answered) -> dict[str, Any]: ...

    def opening(self, answered_id: str, model: str, created: int) -> bytes: ...

    def events(self, answered: Answered, include_usage: bool) -> Iterator[bytes]: ...

    def error(self, message: str, code: str, status: int) -> dict[str, Any]: ...

    def error_event(self, message: str, code: str, status: int) -> bytes: ...
