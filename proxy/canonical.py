"""When are two chat messages the same turn? Pure.

Harnesses change texts on the way: they trim, re-serialise arguments, reorder keys, drop empty fields. Two hashes answer at two
levels: ``strict`` forgives only the wire (absent against null, text parts against a string, key order), ``loose`` also white space
and the spelling of JSON numbers. Messages are Chat Completions shape.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

WIRE_ONLY_FIELDS = frozenset({"cache_control", "refusal", "annotations", "audio", "function_call", "name"})
"""Fields that carry nothing of the turn."""
REASONING_FIELDS = frozenset({"reasoning", "reasoning_content", "thinking"})
"""An echoed turn may lose these."""


def text_of(content: Any) -> str:
    """The text of a ``content`` field: a string, a list of parts, or null."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "".join(p.get("text", "") if isinstance(p, Mapping) else str(p) for p in content)
    return json.dumps(content, sort_keys=True)


def has_only_text(content: Any) -> bool:
    """Whether ``text_of`` loses nothing of a ``content`` field."""
    if content is None or isinstance(content, str):
        return True
    return isinstance(content, Sequence) and all(
        isinstance(p, str) or (isinstance(p, Mapping) and p.get("type") == "text") for p in content
    )


def strict_hash(message: Mapping[str, Any]) -> str:
    """Hash of what a message says, whatever its wire spelling."""
    return _digest(_canonical(message, loose=False))


def loose_hash(message: Mapping[str, Any]) -> str:
    """Hash that also ignores white space and the spelling of JSON numbers (``5000.0`` and ``5000``)."""
    return _digest(_canonical(message, loose=True))


def value_hash(value: Any) -> str:
    """Hash of any JSON value, key order ignored."""
    return _digest(value)


def _canonical(message: Mapping[str, Any], loose: bool) -> dict[str, Any]:
    content = message.get("content")
    said: Any = text_of(content) if has_only_text(content) else content
    if loose and isinstance(said, str):
        said = " ".join(said.split())
    turn: dict[str, Any] = {"role": message.get("role"), "content": said}
    calls = message.get("tool_calls") or []
    if calls:
        turn["tool_calls"] = [_canonical_call(c, loose) for c in calls]
    if message.get("tool_call_id") is not None:
        turn["tool_call_id"] = message["tool_call_id"]
    return turn


def _canonical_call(call: Mapping[str, Any], loose: bool) -> dict[str, Any]:
    function = call.get("function") or {}
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except json.JSONDecodeError:
            arguments = {"unparsed": " ".join(arguments.split()) if loose else arguments}
    return {
        "id": call.get("id"),
        "name": function.get("name"),
        "arguments": _loose_value(arguments) if loose else arguments,
    }


def _loose_value(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, Mapping):
        return {k: _loose_value(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_loose_value(v) for v in value]
    return value


def _digest(value: Any) -> str:
    packed = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.blake2b(packed.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
