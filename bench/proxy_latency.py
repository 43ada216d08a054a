"""What the proxy adds to a call: the same engine asked directly and through the proxy over HTTP, turn about in one run."""

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from bench.stand import TOOLS, USER, FixedEngine, open_session, serving
from contracts.call import Sampling

CALLS = 200
WARM_UP = 10
CONCURRENT = (1, 16)


def run() -> list[dict[str, Any]]:
    """Added latency p50 and p99 in milliseconds, alone and with 16 sessions at a time; every call is committed to disk."""
    return asyncio.run(_measure())


async def _measure() -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        async with serving(Path(scratch) / "calls.sqlite", FixedEngine()) as (server, client, http):
            for sessions in CONCURRENT:
                doors = [await open_session(server, client, http) for _ in range(sessions)]
                bare, through = await _turn_about(server.url, http, doors)
                results += _figures(sessions, bare, through)
    return results


async def _turn_about(
    url: str, http: httpx.AsyncClient, doors: Sequence[tuple[str, str]]
) -> tuple[list[float], list[float]]:
    engine, sampling = FixedEngine(), Sampling(temperature=1.0, max_tokens=64)
    bare: list[float] = []
    through: list[float] = []
    for _ in range(WARM_UP + CALLS // len(doors)):
        start = time.perf_counter()
        await asyncio.gather(*(engine.generate("s", (1,) * 120, sampling, ()) for _ in doors))
        bare.append(time.perf_counter() - start)
        through += await asyncio.gather(*(_one_call(http, *door) for door in doors))
    return bare[WARM_UP:], through[WARM_UP * len(doors) :]


async def _one_call(http: httpx.AsyncClient, base: str, key: str) -> float:
    body = json.dumps({"model": "policy", "messages": [USER], "tools": TOOLS})
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    start = time.perf_counter()
    answer = await http.post(f"{base}/v1/chat/completions", content=body, headers=headers)
    answer.raise_for_status()
    return time.perf_counter() - start


def _figures(sessions: int, bare: Sequence[float], through: Sequence[float]) -> list[dict[str, Any]]:
    base = statistics.median(bare)
    cuts = statistics.quantiles(through, n=100)
    common = {"unit": "ms", "sessions": sessions, "calls": len(through), "bare_engine_p50_ms": round(base * 1000, 3)}
    return [
        {"name": f"proxy_added_latency_{label}", "value": round((cuts[at] - base) * 1000, 3), **common}
        for label, at in (("p50", 49), ("p99", 98))
    ]
