"""Disk that one long session takes, and whether it grows with its turns and not with their square; and merging it to rows."""

import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.stand import TOOLS, USER, FixedEngine, open_session, serving
from proxy.log import CallLog
from proxy.merge import merge

TURNS = (50, 100)
RESULT_TEXT = "total 48\n" + "-rw-r--r-- 1 agent agent 1234 meti.txt\n" * 10 + "[exit code 0]"
"""A tool result of some 400 characters."""
MERGES = 200


def run() -> list[dict[str, Any]]:
    """Bytes of the log for sessions of 50 and 100 turns, their ratio (2 is linear), and rows merged per second from the log."""
    sizes = {turns: asyncio.run(_session(turns))[0] for turns in TURNS}
    _, merged = asyncio.run(_session(TURNS[-1]))
    return [
        {
            "name": "log_bytes_100_turn_session",
            "value": sizes[100],
            "unit": "bytes",
            "tool_result_chars": len(RESULT_TEXT),
        },
        {"name": "log_growth_50_to_100_turns", "value": round(sizes[100] / sizes[50], 3), "unit": "ratio"},
        *merged,
    ]


async def _session(turns: int) -> tuple[int, list[dict[str, Any]]]:
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "calls.sqlite"
        async with serving(log, FixedEngine()) as (server, client, http):
            base, key = await open_session(server, client, http)
            messages: list[dict[str, Any]] = [USER]
            for _ in range(turns):
                body = json.dumps({"model": "policy", "messages": messages, "tools": TOOLS})
                answer = await http.post(
                    f"{base}/v1/chat/completions", content=body, headers={"authorization": f"Bearer {key}"}
                )
                message = answer.raise_for_status().json()["choices"][0]["message"]
                call_id = message["tool_calls"][0]["id"]
                messages += [message, {"role": "tool", "tool_call_id": call_id, "content": RESULT_TEXT}]
        with CallLog(log, read_only=True) as written:
            return log.stat().st_size, _merging(written)


def _merging(log: CallLog) -> list[dict[str, Any]]:
    (session,) = log.sessions()
    start = time.perf_counter()
    calls = log.calls(session["session_id"])
    read_s = time.perf_counter() - start
    start = time.perf_counter()
    for _ in range(MERGES):
        rows, _ = merge(session["session_id"], calls)
    merge_s = (time.perf_counter() - start) / MERGES
    tokens = len(rows[0].response_ids_R)
    common = {"turns": len(calls), "row_tokens": tokens}
    return [
        {"name": "rows_merged_per_s", "value": round(1 / merge_s, 1), "unit": "rows/s", **common},
        {"name": "rows_read_and_merged_per_s", "value": round(1 / (read_s + merge_s), 1), "unit": "rows/s", **common},
    ]
