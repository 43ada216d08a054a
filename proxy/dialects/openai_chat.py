"""OpenAI Chat Completions: bodies in, bodies and stream events out. Pure: no I/O and no clock.

Source: OpenAI API reference, Chat Completions (create, streaming).
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from contracts.call import Sampling
from proxy.dialects.ask import Answered, Ask, BadRequest

NAME = "openai_chat"
ROUTE = "/v1/chat/completions"
KNOWN_ROLES = ("system", "developer", "user", "assistant", "tool")
KEEP_ALIVE = b": keep-alive\n\n"
"""A comment: Chat Completions clients skip it."""
DONE = b"data: [DONE]\n\n"


def read(body: Any) -> Ask:
    """Read a request body; unknown fields are left alone.

    Raises:
        BadRequest: the body is not a Chat Completions request; says which field.
    """
    if not isinstance(body, Mapping):
        raise BadRequest("the body must be a JSON object", "invalid_body")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("messages must be a list of at least one message", "invalid_messages")
    if body.get("n") not in (None, 1):
        raise BadRequest(f"n = {body['n']!r}: only 1 answer per call is recorded; send n = 1", "unsupported_n")
    return Ask(
        model=str(body.get("model", "")),
        messages=tuple(_message(i, m) for i, m in enumerate(messages)),
        tools=_tools(body.get("tools")),
        sampling=_sampling(body),
        stream=bool(body.get("stream", False)),
        include_usage=bool((body.get("stream_options") or {}).get("include_usage", False)),
    )


def answer(answered: Answered) -> dict[str, Any]:
    """The whole answer of a call that did not ask for a stream."""
    choice = {
        "index": 0,
        "message": answered.message,
        "finish_reason": answered.finish.value,
        "logprobs": None,
    }
    return {**_head(answered, "chat.completion"), "choices": [choice], "usage": _usage(answered)}


def opening(answered_id: str, model: str, created: int) -> bytes:
    """The first event of a stream; leaves before the engine has said anything."""
    head = {"id": answered_id, "object": "chat.completion.chunk", "created": created, "model": model}
    return _event({**head, "choices": [_delta({"role": "assistant", "content": ""}, None)]})


def events(answered: Answered, include_usage: bool) -> Iterator[bytes]:
    """The events after ``opening``; the last one is the terminal event."""
    head = _head(answered, "chat.completion.chunk")
    message = answered.message
    if message.get("reasoning_content"):
        yield _event({**head, "choices": [_delta({"reasoning_content": message["reasoning_content"]}, None)]})
    if message.get("content"):
        yield _event({**head, "choices": [_delta({"content": message["content"]}, None)]})
    for index, call in enumerate(message.get("tool_calls") or []):
        yield _event({**head, "choices": [_delta({"tool_calls": [{"index": index, **call}]}, None)]})
    yield _event({**head, "choices": [_delta({}, answered.finish.value)]})
    if include_usage:
        yield _event({**head, "choices": [], "usage": _usage(answered)})
    yield DONE


def error(message: str, code: str, status: int) -> dict[str, Any]:
    """The dialect's error body."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def error_event(message: str, code: str, status: int) -> bytes:
    """An error on a stream that has begun."""
    return _event(error(message, code, status))


def _message(index: int, message: Any) -> dict[str, Any]:
    if not isinstance(message, Mapping) or message.get("role") not in KNOWN_ROLES:
        role = message.get("role") if isinstance(message, Mapping) else message
        raise BadRequest(
            f"messages[{index}].role = {role!r}: must be one of {', '.join(KNOWN_ROLES)}", "invalid_messages"
        )
    if message["role"] == "developer":
        return {**message, "role": "system"}
    return dict(message)


def _tools(tools: Any) -> tuple[dict[str, Any], ...] | None:
    if tools is None:
        return None
    if not isinstance(tools, list) or not all(isinstance(t, Mapping) for t in tools):
        raise BadRequest("tools must be a list of objects", "invalid_tools")
    return tuple(dict(t) for t in tools) or None


def _sampling(body: Mapping[str, Any]) -> Sampling:
    try:
        return Sampling(
            temperature=body.get("temperature"),
            top_p=body.get("top_p"),
            top_k=body.get("top_k"),
            max_tokens=body.get("max_completion_tokens", body.get("max_tokens")),
            seed=body.get("seed"),
        )
    except ValueError as e:
        raise BadRequest(f"a sampling field does not fit: {e}", "invalid_sampling") from e


def _head(answered: Answered, kind: str) -> dict[str, Any]:
    return {"id": answered.call_id, "object": kind, "created": answered.created, "model": answered.model}


def _usage(answered: Answered) -> dict[str, int]:
    prompt, completion = answered.usage.get("prompt_tokens", 0), answered.usage.get("completion_tokens", 0)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _delta(delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}


def _event(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
