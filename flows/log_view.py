"""What a call log holds, as lines for a terminal."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from contracts.call import Call
from contracts.errors import ConfigError
from contracts.row import MergeReport, TrainingRow
from proxy.log import CallLog
from proxy.merge import merge


def session_lines(path: Path, run_id: str | None, most: int) -> Iterator[str]:
    """One line per session, newest last.

    Raises:
        ConfigError: ``path`` is no call log.
    """
    with CallLog(path, read_only=True) as log:
        yield f"{'session':<24} {'opened (UTC)':<19} {'step':>4} {'calls':>5} {'reward':>6}  rollout"
        for row in log.sessions(run_id)[-most:]:
            opened = datetime.fromtimestamp(row["opened_at"], UTC).strftime("%Y-%m-%d %H:%M:%S")
            reward = (row["result"] or {}).get("reward")
            step = "" if row["step"] is None else row["step"]
            calls = len(log.calls(row["session_id"]))
            shown = "-" if reward is None else f"{reward:g}"
            yield f"{row['session_id']:<24} {opened:<19} {step:>4} {calls:>5} {shown:>6}  {row['rollout_id']}"


def conversation(path: Path, session_id: str) -> Iterator[str]:
    """A session's calls as a person reads them; raises ConfigError for an unknown session."""
    with CallLog(path, read_only=True) as log:
        row = _session(log, path, session_id)
        request = row["opened"].request
        yield f"session {session_id}: rollout {request.rollout_id}, task {request.task.name}, policy {request.policy}"
        for call in log.calls(session_id):
            yield from _call_lines(call)
        if row["result"] is not None:
            yield f"result: {row['result'].model_dump_json(exclude_defaults=True)}"


def merged(path: Path, session_id: str, limit_tokens: int | None) -> tuple[tuple[TrainingRow, ...], MergeReport]:
    """A session's training rows, rebuilt; raises ConfigError for an unknown session."""
    with CallLog(path, read_only=True) as log:
        _session(log, path, session_id)
        return merge(session_id, log.calls(session_id), limit_tokens)


def _session(log: CallLog, path: Path, session_id: str) -> dict[str, Any]:
    row = log.session(session_id)
    if row is None:
        raise ConfigError(f"{str(path)!r} has no session {session_id!r}; `openforge sessions list {path}` names them.")
    return row


def _call_lines(call: Call) -> Iterator[str]:
    output = "text only" if call.output_ids_C is None else f"{len(call.output_ids_C)} sampled"
    prompt = "" if call.prompt_tokens is None else f"{call.prompt_tokens} prompt tokens, "
    versions = ", ".join(f"v{run.version}" for run in call.versions)
    yield f"── call {call.seq} ({call.parent_rule}, {prompt}{output}{', ' + versions if versions else ''}, {call.engine_s:.2f} s)"
    for message in (*call.messages, call.answer):
        text = message.get("content") or ""
        yield f"{message.get('role', '?')}: {text}"
        for tool_call in message.get("tool_calls") or ():
            function = tool_call.get("function", {})
            yield f"  → {function.get('name')}({function.get('arguments')})"
