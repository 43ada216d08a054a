"""The ReAct agent against a loopback model."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from attempts import session_body
from fake_proxy import FakeProxy, FakeSession

from sandboxes import processes

AGENT = Path(__file__).resolve().parents[2] / "harness_images" / "react" / "agent.py"
SYSTEM = "You are an agent with a shell. Call the bash tool to act, read its output, and answer without a tool call when the task is done."
TOOLS = (
    '[{"type": "function", "function": {"name": "bash", "description": "Run a shell command in the working directory.", '
    '"parameters": {"type": "object", "properties": {"command": {"type": "string", "description": "The command to run."}}, '
    '"required": ["command"]}}}]'
)


def run_agent(proxy: FakeProxy, session: FakeSession, tmp_path: Path, *more: str, text: str = " Do it. \n"):
    argv = [
        sys.executable,
        "-I",
        "-S",
        str(AGENT),
        "--base-url",
        f"{proxy.url}/s/{session.session_id}/v1",
        "--model",
        "policy",
    ]
    env = {"PATH": os.environ["PATH"], "OPENAI_API_KEY": session.model_secret}
    return subprocess.run([*argv, *more, "--", text], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)


def scripted(proxy: FakeProxy, *commands: str) -> FakeSession:
    return proxy.add(session_body().model_copy(update={"script": commands}))


def answer_with(proxy: FakeProxy, message: dict) -> None:
    proxy.failures.append((200, {"choices": [{"index": 0, "message": message}]}))


def tool_results(session: FakeSession) -> list[str]:
    return [m["content"] for m in session.requests[-1]["messages"] if m["role"] == "tool"]


@pytest.mark.parametrize("flags", [(), ("--stream",)])
def test_it_acts_reads_and_stops_at_an_answer_without_a_tool_call(
    proxy: FakeProxy, tmp_path: Path, flags: tuple[str, ...]
):
    session = scripted(proxy, "echo bibu > ralo.txt", "cat ralo.txt; exit 3")
    done = run_agent(proxy, session, tmp_path, *flags)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "ralo.txt").read_text() == "bibu\n"
    first, second, third = session.requests
    assert first["messages"] == [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Do it."}]
    assert json.dumps(first["tools"]) == TOOLS
    call = {
        "id": "call_0",
        "type": "function",
        "function": {"name": "bash", "arguments": '{"command": "echo bibu > ralo.txt"}'},
    }
    assert second["messages"][2:] == [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_0", "content": "[exit code 0]"},
    ]
    assert third["messages"][: len(second["messages"])] == second["messages"]
    assert third["messages"][-1]["content"] == "bibu\n[exit code 3]"
    assert done.stdout.endswith("\nDone.\n")


def test_an_answer_goes_back_exactly_as_it_came(proxy: FakeProxy, tmp_path: Path):
    call = {"id": "x", "type": "function", "function": {"name": "bash", "arguments": ' {"command" :"true"} '}, "odd": 1}
    message = {
        "role": "assistant",
        "content": " t\n",
        "reasoning_content": "why",
        "tool_calls": [call],
        "refusal": None,
    }
    session = scripted(proxy)
    answer_with(proxy, message)
    assert run_agent(proxy, session, tmp_path).returncode == 0
    assert json.dumps(session.requests[0]["messages"][2]) == json.dumps(message)


def test_several_calls_of_one_answer_run_in_order_and_mistakes_become_results(proxy: FakeProxy, tmp_path: Path):
    def call(i: int, name: str, arguments: str) -> dict:
        return {"id": f"c{i}", "type": "function", "function": {"name": name, "arguments": arguments}}

    calls = [
        call(0, "bash", '{"command": "echo a >> f"}'),
        call(1, "python", "{}"),
        call(2, "bash", '{"command": "echo b'),
        call(3, "bash", '{"cmd": "ls"}'),
        call(4, "bash", '{"command": 5}'),
        call(5, "bash", '{"command": "cat f; echo \\ud800"}'),
        call(6, "bash", '{"command": "cat f >&2; kill -9 $$"}'),
    ]
    session = scripted(proxy)
    answer_with(proxy, {"role": "assistant", "content": None, "tool_calls": calls})
    assert run_agent(proxy, session, tmp_path).returncode == 0
    results = tool_results(session)
    assert results[0] == "[exit code 0]"
    assert results[1] == "[unknown tool python; known: bash]"
    assert results[2].startswith("[bad arguments: Unterminated string")
    assert results[3] == "[bad arguments: missing 'command']"
    assert results[4] == "[bad arguments: command is 5, not a string]"
    assert results[5].startswith("[could not start: ")
    assert results[6] == "a\n[exit code 137]"


def test_the_middle_of_a_long_output_is_left_out(proxy: FakeProxy, tmp_path: Path):
    session = scripted(proxy, "printf a; head -c 12000 /dev/zero | tr '\\0' b; printf c")
    run_agent(proxy, session, tmp_path)
    middle = "\n[… 2002 characters left out …]\n"
    assert tool_results(session) == ["a" + "b" * 4999 + middle + "b" * 4999 + "c\n[exit code 0]"]


def test_a_process_left_in_the_background_does_not_hold_up_the_answer(proxy: FakeProxy, tmp_path: Path):
    session = scripted(proxy, "sleep 1000 & echo $!")
    start = time.monotonic()
    run_agent(proxy, session, tmp_path)
    assert time.monotonic() - start < 30
    pid = tool_results(session)[0].split()[0]
    deadline = time.monotonic() + 10
    while processes.identify(int(pid)) is not None:  # it was sent SIGKILL; the kernel takes a moment
        assert time.monotonic() < deadline


def test_the_key_is_not_in_the_environment_of_commands(proxy: FakeProxy, tmp_path: Path):
    session = scripted(proxy, "env | grep -c model-; true")
    run_agent(proxy, session, tmp_path)
    assert tool_results(session) == ["0\n[exit code 0]"]


def test_the_turn_limit_is_exit_code_3(proxy: FakeProxy, tmp_path: Path):
    session = scripted(proxy, *["true"] * 5)
    assert run_agent(proxy, session, tmp_path, "--turns", "2").returncode == 3
    assert len(session.requests) == 2


def test_a_full_context_is_exit_code_4(proxy: FakeProxy, tmp_path: Path):
    proxy.failures = [(400, {"error": {"code": "context_length_exceeded", "message": "too long"}})]
    assert run_agent(proxy, scripted(proxy), tmp_path).returncode == 4


def test_a_refused_call_is_exit_code_5_at_once(proxy: FakeProxy, tmp_path: Path):
    session = scripted(proxy)
    session.sealed = True
    done = run_agent(proxy, session, tmp_path)
    assert (done.returncode, session.requests) == (5, [])
    assert "status 409" in done.stdout


def test_a_server_that_is_busy_for_a_moment_is_asked_again(proxy: FakeProxy, tmp_path: Path):
    proxy.failures = [(429, {}), (503, {})]
    session = scripted(proxy, "true")
    assert run_agent(proxy, session, tmp_path).returncode == 0
    assert len(session.requests) == 2


@pytest.mark.slow
def test_a_server_that_keeps_failing_is_exit_code_5(proxy: FakeProxy, tmp_path: Path):
    proxy.failures = [(500, {})] * 6
    done = run_agent(proxy, scripted(proxy), tmp_path)
    assert (done.returncode, proxy.failures) == (5, [])
    assert "no answer after 6 tries" in done.stdout


def test_a_missing_argument_is_said_in_one_line(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(AGENT), "--model", "m"], capture_output=True, text=True, timeout=30
    )
    assert (done.returncode, done.stderr) == (1, "agent.py: --base-url, --model and -- INSTRUCTION are needed\n")
