"""Requests to and answers from a Chat Completions server. Pure: values in, values out; errors carry no body text."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from contracts.call import FinishReason, Sampling
from contracts.errors import EngineError
from proxy.engine import Reply

FINISH = {"stop": FinishReason.STOP, "tool_calls": FinishReason.TOOL_CALLS, "length": FinishReason.LENGTH}
"""Finish reasons that end in an answer; ``content_filter`` is a refusal."""
CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
"""What an error code looks like; anything else from upstream stays out of our messages."""


class _Function(BaseModel):
    name: str = Field(min_length=1)
    arguments: str


class _ToolCall(BaseModel):
    id: str | None = None
    function: _Function


class _Message(BaseModel):
    content: str | None = None
    reasoning_content: str | None = None
    refusal: str | None = None
    tool_calls: tuple[_ToolCall, ...] | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str


class _Usage(BaseModel):
    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)


class _Completion(BaseModel):
    choices: tuple[_Choice, ...] = Field(min_length=1)
    usage: _Usage | None = None


def request_body(
    model: str, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None, sampling: Sampling
) -> dict[str, Any]:
    """The request, without unset sampling, an empty tool list or a top_k of "all", which not every server knows."""
    body: dict[str, Any] = {"model": model, "messages": list(messages)}
    if tools:
        body["tools"] = list(tools)
    body |= sampling.model_dump(exclude_none=True)
    if (sampling.top_k or 0) < 1:
        body.pop("top_k", None)
    return body


def read_reply(content: bytes, upstream: str) -> Reply:
    """Read the body of a 200 answer.

    Raises:
        EngineError: it is no completion, has no choice, is empty, or is a refusal; names ``upstream``, quotes nothing.
    """
    where = f"upstream {upstream} answered 200"
    if code := error_code(content):
        raise EngineError(f"{where} with an error{code}.")
    try:
        completion = _Completion.model_validate_json(content)
    except ValidationError as e:
        first = e.errors(include_input=False, include_url=False, include_context=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "body"
        # `from None`: the original error quotes the answer.
        raise EngineError(f"{where} but not with a chat completion: {field} is wrong ({first['type']}).") from None
    choice = completion.choices[0]
    message = choice.message
    if message.refusal or choice.finish_reason == "content_filter":
        raise EngineError(f"{where} but refused (finish_reason {choice.finish_reason!r}).")
    if choice.finish_reason not in FINISH:
        raise EngineError(f"{where} with finish_reason {choice.finish_reason!r}; known: {', '.join(sorted(FINISH))}.")
    if not message.content and not message.tool_calls:
        raise EngineError(f"{where} with neither text nor tool calls (finish_reason {choice.finish_reason!r}).")
    finish = FINISH[choice.finish_reason]
    if message.tool_calls and finish is FinishReason.STOP:
        finish = FinishReason.TOOL_CALLS  # some servers say "stop" for both
    return Reply(_assistant(message), finish, completion.usage.model_dump() if completion.usage else {})


def error_code(content: bytes) -> str:
    """ " (code)" of an OpenAI-style error body; empty for anything else."""
    try:
        body = json.loads(content)
    except ValueError:
        return ""
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return " (unnamed)" if error else ""
    named = (str(error.get(key)) for key in ("code", "type") if error.get(key))
    return next((f" ({code})" for code in named if CODE.fullmatch(code)), " (unnamed)")


def retry_after_s(header: str | None, now: datetime) -> float | None:
    """Seconds that a Retry-After header (a number or an HTTP date) asks for; None when absent or unreadable."""
    if header is None:
        return None
    if re.fullmatch(r"\d+(\.\d+)?", header.strip()):
        return float(header)
    try:
        return max(0.0, (parsedate_to_datetime(header) - now).total_seconds())
    except (ValueError, TypeError):
        return None


def _assistant(message: _Message) -> dict[str, Any]:
    answer: dict[str, Any] = {"role": "assistant", "content": message.content}
    if message.reasoning_content:
        answer["reasoning_content"] = message.reasoning_content
    if message.tool_calls:
        answer["tool_calls"] = [
            {"id": call.id or f"call_{i}", "type": "function", "function": call.function.model_dump()}
            for i, call in enumerate(message.tool_calls)
        ]
    return answer
