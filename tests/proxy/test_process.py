"""The proxy as a child process: ready, refused, and gone with its parent."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pytest
from proxy_stand import open_body, until

from contracts.errors import ConfigError
from proxy.config import LocalEngine, ProxyConfig, ScriptedEngine
from proxy.log import CallLog
from proxy.process import proxy_process

ROOT = Path(__file__).parents[2]


def config(tmp_path: Path, **changes) -> ProxyConfig:
    return ProxyConfig(log=tmp_path / "calls.sqlite", engines={"oracle": ScriptedEngine()}, **changes)


async def test_a_child_proxy_serves_and_ends_with_its_context(tmp_path: Path) -> None:
    async with proxy_process(config(tmp_path), tmp_path / "run") as client:
        opened = await client.open_session(open_body(policy="oracle"))
        assert (await client.session(opened.session_id)).calls == 0
        told = tmp_path / "run" / "proxy.json"
        assert told.stat().st_mode & 0o077 == 0
        pid = json.loads(told.read_text())["pid"]
    assert not psutil.pid_exists(pid)
    assert not told.exists()


async def test_a_port_in_use_and_a_missing_checkpoint_are_the_proxys_own_one_line_words(tmp_path: Path) -> None:
    async with proxy_process(config(tmp_path), tmp_path / "run") as client:
        port = int(client.url.rsplit(":", 1)[1])
        with pytest.raises(
            ConfigError, match=f"127.0.0.1:{port} cannot be bound: Address already in use; use port = 0"
        ):
            async with proxy_process(config(tmp_path, port=port), tmp_path / "second"):
                pass
    wrong = ProxyConfig(log=tmp_path / "l.sqlite", engines={"policy": LocalEngine(model=tmp_path / "nothing")})
    with pytest.raises(ConfigError, match="engine 'policy': .*nothing"):
        async with proxy_process(wrong, tmp_path / "third"):
            pass


async def test_a_proxy_dies_with_a_parent_that_is_killed_and_its_log_stays_whole(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from proxy.config import ProxyConfig\n"
        "from proxy.process import proxy_process\n"
        "async def main():\n"
        "    config = ProxyConfig.model_validate_json(sys.argv[1])\n"
        "    async with proxy_process(config, Path(sys.argv[2])):\n"
        "        await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    argv = [sys.executable, "-c", script, config(tmp_path).model_dump_json(), str(tmp_path / "run")]
    parent = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        ready = tmp_path / "run" / "proxy.json"
        await until(ready.exists, "the proxy", 60)
        told = json.loads(ready.read_text())
        async with httpx.AsyncClient(
            base_url=told["url"], headers={"authorization": f"Bearer {told['admin_secret']}"}
        ) as http:
            answer = await http.post("/api/sessions", content=open_body(policy="oracle").model_dump_json())
            session_id = answer.raise_for_status().json()["session_id"]
        os.kill(parent.pid, signal.SIGKILL)
        await until(lambda: not psutil.pid_exists(told["pid"]), "the end of the proxy", 30)
    finally:
        parent.kill()
        await asyncio.to_thread(parent.wait)
    with CallLog(tmp_path / "calls.sqlite", read_only=True) as log:
        assert [s["session_id"] for s in log.sessions()] == [session_id]


async def test_a_killed_proxy_loses_no_committed_call_and_doubles_none(tmp_path: Path) -> None:
    answered: list[str] = []
    user = {"role": "user", "content": "x"}
    tools = [{"type": "function", "function": {"name": "bash", "parameters": {"properties": {"command": {}}}}}]
    body = open_body(policy="oracle", turns=10_000).model_copy(update={"script": ("true",) * 10_000})
    async with (
        proxy_process(config(tmp_path), tmp_path / "run") as client,
        httpx.AsyncClient(base_url=client.url) as http,
    ):
        told = json.loads((tmp_path / "run" / "proxy.json").read_text())

        async def talk() -> None:
            opened = await client.open_session(body)
            work = (await http.get("/runner/work", headers={"authorization": f"Bearer {opened.runner_secret}"})).json()
            headers = {"authorization": f"Bearer {work['model_secret']}"}
            ask = {"messages": [user], "tools": tools, "stream": True}
            while True:
                answer = await http.post(work["base_url_path"] + "/v1/chat/completions", json=ask, headers=headers)
                if "[DONE]" in answer.text:
                    answered.append(json.loads(answer.text.split("\n")[0][6:])["id"])

        talks = [asyncio.create_task(talk()) for _ in range(16)]
        await until(lambda: len(answered) > 50, "fifty answered calls", 60)
        os.kill(told["pid"], signal.SIGKILL)
        ended = await asyncio.gather(*talks, return_exceptions=True)
        assert all(isinstance(e, Exception) for e in ended)
    with CallLog(tmp_path / "calls.sqlite", read_only=True) as log:
        kept = [c.call_id for s in log.sessions() for c in log.calls(s["session_id"])]
    assert len(kept) == len(set(kept))
    assert set(answered) <= set(kept)
