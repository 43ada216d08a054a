"""ReAct baseline: a model, one bash tool, and a loop.

    python -I -S agent.py --base-url URL/v1 --model NAME [--turns N] [--stream] -- INSTRUCTION

The key is in OPENAI_API_KEY. Standard library only, Python 3.9 or newer. The history is append-only: every assistant
message goes back exactly as it came.

Exit codes: 0 answered without a tool call, 3 turn limit, 4 the prompt no longer fits the context, 5 no usable answer
from the model.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # isolated mode leaves the script's own folder out

import model
import shell

SYSTEM = (
    "You are an agent with a shell. Call the bash tool to act, read its output, and answer without a tool call "
    "when the task is done."
)
DONE, TURN_LIMIT, CONTEXT_FULL, NO_MODEL = 0, 3, 4, 5


class Settings:
    """The command line."""

    def __init__(self, argv: list[str]) -> None:
        options = {"--base-url": "", "--model": "", "--turns": "50"}
        self.stream = False
        rest = iter(argv)
        for arg in rest:
            if arg == "--":
                break
            if arg == "--stream":
                self.stream = True
            elif arg in options:
                options[arg] = next(rest, "")
            else:
                sys.exit(f"agent.py: unknown argument {arg!r}; known: {', '.join(options)}, --stream, -- INSTRUCTION")
        self.base_url, self.model, self.turns = options["--base-url"], options["--model"], int(options["--turns"])
        self.instruction = " ".join(rest).strip()
        if not (self.base_url and self.model and self.instruction):
            sys.exit("agent.py: --base-url, --model and -- INSTRUCTION are needed")


def main() -> int:
    """Ask, act, append, until the model answers without a tool call."""
    settings = Settings(sys.argv[1:])
    server = model.Server(settings.base_url, settings.model, os.environ.pop("OPENAI_API_KEY", ""), settings.stream)
    messages: list[dict] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": settings.instruction}]
    try:
        for _ in range(settings.turns):
            answer = model.ask(server, messages)
            messages.append(answer)
            log(answer.get("content") or "")
            calls = answer.get("tool_calls") or []
            if not calls:
                return DONE
            messages += [
                {"role": "tool", "tool_call_id": call["id"], "content": act(call["function"])} for call in calls
            ]
    except model.ContextFull as e:
        log(f"agent.py: {e}")
        return CONTEXT_FULL
    except model.NoAnswer as e:
        log(f"agent.py: {e}")
        return NO_MODEL
    log(f"agent.py: turn limit of {settings.turns}")
    return TURN_LIMIT


def act(function: dict) -> str:
    """Carry out one tool call and show it."""
    log(f"> {function['name']} {function['arguments']}")
    result = shell.act(function)
    log(result)
    return result


def log(text: str) -> None:
    """What a person reads afterwards; no text of a model may crash it."""
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
