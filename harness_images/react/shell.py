"""The bash tool: its declaration, and one command at a time with a time limit."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "bash",
            "description": "Run a shell command in the working directory.",
            "parameters": {
                "type": "object",
                "properties": {"command": {"type": "string", "description": "The command to run."}},
                "required": ["command"],
            },
        },
    }
]
COMMAND_S = 60.0
LOOK_EVERY_S = 0.05
LONGEST_OUTPUT = 10_000
"""Characters of a tool result; the middle of a longer one is left out."""
KEPT_BYTES = 1 << 20


def act(function: dict) -> str:
    """Carry out one tool call; every mistake of the model becomes a text that it reads."""
    if function["name"] != "bash":
        return f"[unknown tool {function['name']}; known: bash]"
    try:
        command = json.loads(function["arguments"])["command"]
        if not isinstance(command, str):
            raise TypeError(f"command is {json.dumps(command)}, not a string")
    except KeyError as e:
        return f"[bad arguments: missing {e}]"
    except (ValueError, TypeError, RecursionError) as e:
        return f"[bad arguments: {e}]"
    return run_bash(command)


def run_bash(command: str) -> str:
    """Run one command; ends with its whole process group, so nothing runs on into the next one."""
    try:
        child = subprocess.Popen(
            ["/bin/bash", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as e:
        return f"[could not start: {e}]"
    output, timed_out = collect(child)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    code = child.wait()
    text = shorten(output.decode("utf-8", "replace"))
    exit_code = code if code >= 0 else 128 - code
    last = f"[timed out after {COMMAND_S:g} s]" if timed_out else f"[exit code {exit_code}]"
    if text and not text.endswith("\n"):
        text += "\n"
    return text + last


def collect(child: subprocess.Popen) -> tuple[bytes, bool]:
    """Read the output until the command ends; returns it and whether the time ran out."""
    assert child.stdout is not None
    fd = child.stdout.fileno()
    head, tail = b"", b""
    end = time.monotonic() + COMMAND_S
    while (left := end - time.monotonic()) > 0:
        ready = select.select([fd], [], [], min(left, LOOK_EVERY_S))[0]
        if ready:
            chunk = os.read(fd, 65536)
            if not chunk:  # the output is closed, most often because the command ended
                return head + tail, not ends(child, end)
            if len(head) < KEPT_BYTES:
                head += chunk
            else:
                tail = (tail + chunk)[-KEPT_BYTES:]
        elif child.poll() is not None:
            break  # something in the background still holds the output
    return head + tail, child.poll() is None


def ends(child: subprocess.Popen, end: float) -> bool:
    """Wait for the command until ``end``; whether it ended."""
    try:
        child.wait(max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True


def shorten(text: str) -> str:
    """Leave out the middle of a long text."""
    if len(text) <= LONGEST_OUTPUT:
        return text
    half = LONGEST_OUTPUT // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
