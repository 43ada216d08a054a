"""The scripted engine: plays a session's reference solution as tool calls through the real harness.

It keeps no state: which command comes next is read off the conversation, so a repeated call gets the same answer.
"""

import json
from collections.abc import Sequence
from typing import Any

from contracts.call import FinishReason, Sampling
from contracts.errors import EngineError
from proxy.config import ScriptedEngine
from proxy.engine import Reply


class ScriptedMessageEngine:
    """One tool call per command of the script, then the farewell."""

    sampling: Sampling | None = None

    def __init__(self, config: ScriptedEngine) -> None:
        self._config = config

    async def reply(
        self,
        script: Sequence[str] | None,
        messages: Sequence[dict[str, Any]],
        tools: Sequence[dict[str, Any]] | None,
        sampling: Sampling,
    ) -> Reply:
        """The n-th answer for a conversation with n assistant turns before it.

        Raises:
            EngineError: the session has no script, or a command is due and the harness offers no such tool.
        """
        if script is None:
            raise EngineError(
                "the scripted engine has no script: the session was opened without a reference solution; "
                "give the task a solution/solve.sh or use another policy."
            )
        turn = sum(message.get("role") == "assistant" for message in messages)
        if turn >= len(script):
            return Reply({"role": "assistant", "content": self._config.farewell}, FinishReason.STOP, {})
        self._check_offered(tools)
        return Reply(self._call(turn, script[turn]), FinishReason.TOOL_CALLS, {})

    async def aclose(self) -> None:
        """Nothing to close."""

    def _call(self, turn: int, command: str) -> dict[str, Any]:
        arguments = json.dumps({self._config.argument: command}, ensure_ascii=False)
        function = {"name": self._config.tool, "arguments": arguments}
        call = {"id": f"call_{turn}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    def _check_offered(self, tools: Sequence[dict[str, Any]] | None) -> None:
        functions = {f.get("name"): f for f in (tool.get("function") or {} for tool in tools or ())}
        function = functions.get(self._config.tool)
        if function is None:
            offered = ", ".join(sorted(str(name) for name in functions)) or "none"
            raise EngineError(
                f"the harness offers no tool {self._config.tool!r}; offered: {offered}. "
                f"Set `tool` of the scripted engine to one that runs a shell command."
            )
        arguments = (function.get("parameters") or {}).get("properties") or {}
        if self._config.argument not in arguments:
            raise EngineError(
                f"tool {self._config.tool!r} has no argument {self._config.argument!r}; it has: "
                f"{', '.join(sorted(arguments)) or 'none'}. Set `argument` of the scripted engine to one of them."
            )
