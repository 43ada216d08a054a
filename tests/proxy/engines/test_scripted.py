import json
from typing import Any

import pytest

from contracts.call import FinishReason, Sampling
from contracts.errors import EngineError
from proxy.config import ScriptedEngine
from proxy.engines.scripted import ScriptedMessageEngine

USER = {"role": "user", "content": "Put bana into a.txt"}
SCRIPT = ("echo bana > a.txt", "cat 'ä.txt'")


def tool(name: str, argument: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


async def test_a_script_is_played_command_by_command_and_ends_with_the_farewell():
    engine, messages, said = ScriptedMessageEngine(ScriptedEngine()), [USER], []
    for _ in range(3):
        reply = await engine.reply(SCRIPT, messages, [tool("bash", "command")], Sampling())
        said.append((reply.finish, reply.message))
        messages = [*messages, reply.message, {"role": "tool", "tool_call_id": "x", "content": "[exit code 0]"}]
    assert [finish for finish, _ in said] == [FinishReason.TOOL_CALLS, FinishReason.TOOL_CALLS, FinishReason.STOP]
    functions = [message["tool_calls"][0]["function"] for _, message in said[:2]]
    assert functions == [
        {"name": "bash", "arguments": '{"command": "echo bana > a.txt"}'},
        {"name": "bash", "arguments": '{"command": "cat \'ä.txt\'"}'},
    ]
    assert said[2][1] == {"role": "assistant", "content": "Done."}


async def test_a_repeated_call_gets_the_same_answer():
    engine = ScriptedMessageEngine(ScriptedEngine())
    answers = [await engine.reply(SCRIPT, [USER], [tool("bash", "command")], Sampling()) for _ in range(2)]
    assert answers[0] == answers[1]


async def test_the_tool_and_its_argument_are_the_configured_ones():
    engine = ScriptedMessageEngine(ScriptedEngine(tool="shell", argument="cmd"))
    reply = await engine.reply(SCRIPT, [USER], [tool("bash", "command"), tool("shell", "cmd")], Sampling())
    function = reply.message["tool_calls"][0]["function"]
    assert function["name"] == "shell"
    assert json.loads(function["arguments"]) == {"cmd": "echo bana > a.txt"}


async def test_an_empty_script_only_says_farewell_and_needs_no_tool():
    reply = await ScriptedMessageEngine(ScriptedEngine(farewell="Bye.")).reply((), [USER], None, Sampling())
    assert reply.message == {"role": "assistant", "content": "Bye."}


@pytest.mark.parametrize(
    ("script", "tools", "says"),
    [
        (None, [tool("bash", "command")], "no script"),
        (SCRIPT, None, "offered: none"),
        (SCRIPT, [tool("python", "code"), tool("edit", "path")], "offered: edit, python"),
        (SCRIPT, [tool("bash", "cmd")], "no argument 'command'; it has: cmd"),
    ],
)
async def test_what_cannot_be_played_is_an_engine_error_that_names_it(script: Any, tools: Any, says: str):
    with pytest.raises(EngineError, match=says):
        await ScriptedMessageEngine(ScriptedEngine()).reply(script, [USER], tools, Sampling())
