"""Model calls in Chat Completions over a plain socket: importing http.client would cost more than the whole agent."""

from __future__ import annotations

import json
import socket
import time

import shell

ANSWER_S = 600.0
PAUSES_S = (0.2, 0.4, 0.8, 1.6, 3.2)
"""Waits before the further tries of a call that met 429, 5xx or no connection."""


class NoAnswer(Exception):
    """The server refused the call, or could not be reached."""


class ContextFull(NoAnswer):
    """The prompt no longer fits the model's context."""


class Server:
    """Where the model is and how to ask it."""

    def __init__(self, base_url: str, model: str, api_key: str, stream: bool) -> None:
        self.base_url = base_url
        self.model = model
        self.api_key = api_key
        self.stream = stream


def ask(server: Server, messages: list[dict]) -> dict:
    """One model call; returns the assistant message as the server sent it.

    Raises:
        ContextFull: the server says so. NoAnswer: it refused, or no answer came after the last try.
    """
    body = {"model": server.model, "messages": messages, "tools": shell.TOOLS}
    if server.stream:
        body["stream"] = True
    payload = json.dumps(body).encode()
    for tries, pause in enumerate((*PAUSES_S, None)):
        try:
            status, answer = post(server, payload, tries)
            if status == 200:
                return joined(answer) if server.stream else json.loads(answer)["choices"][0]["message"]
            problem = f"status {status}: {answer[:300].decode('utf-8', 'replace')}"
            if status == 400 and b"context_length_exceeded" in answer:
                raise ContextFull(problem)
            if status != 429 and status < 500:
                raise NoAnswer(problem)
        except (OSError, ValueError, KeyError, IndexError) as e:
            problem = f"{type(e).__name__}: {e}"
        if pause is not None:
            time.sleep(pause)
    raise NoAnswer(f"no answer after {len(PAUSES_S) + 1} tries; the last: {problem}")


def post(server: Server, payload: bytes, tries: int) -> tuple[int, bytes]:
    """POST to the chat completions route; returns status and body. ``tries``: earlier ones of the same call."""
    scheme, _, rest = server.base_url.partition("://")
    netloc, _, prefix = rest.partition("/")
    host, colon, port = netloc.rpartition(":")
    address = (host.strip("[]"), int(port)) if colon else (netloc, 443 if scheme == "https" else 80)
    head = (
        f"POST /{prefix}/chat/completions HTTP/1.1\r\nHost: {netloc}\r\nAuthorization: Bearer {server.api_key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(payload)}\r\nConnection: close\r\n"
        f"X-Stainless-Retry-Count: {tries}\r\n\r\n"  # as the OpenAI clients do: tells a repeated call from a new one
    )
    with socket.create_connection(address, timeout=ANSWER_S) as s:
        if scheme == "https":
            import ssl  # 15 ms that only an https address pays

            s = ssl.create_default_context().wrap_socket(s, server_hostname=address[0])
        s.sendall(head.encode() + payload)
        with s.makefile("rb") as f:
            status = int(f.readline().split(b" ")[1])
            headers = {}
            while line := f.readline().strip():
                name, _, value = line.partition(b":")
                headers[name.strip().lower()] = value.strip().lower()
            return status, read_body(f, headers)


def read_body(f, headers: dict[bytes, bytes]) -> bytes:
    """The whole body, whichever way its end is marked.

    Raises:
        ValueError: the connection closed before it.
    """
    if headers.get(b"transfer-encoding") == b"chunked":
        parts = []
        while (size := int(f.readline().split(b";")[0], 16)) > 0:
            parts.append(f.read(size))
            f.readline()
        return b"".join(parts)
    body = f.read()
    if len(body) < int(headers.get(b"content-length", 0)):
        raise ValueError("the connection closed in the middle of the answer")
    return body


def joined(events: bytes) -> dict:
    """The assistant message of a streamed answer.

    Raises:
        ValueError: the stream ended without its terminal event, or carries an error.
    """
    message: dict = {"role": "assistant", "content": None}
    calls: dict[int, dict] = {}
    done = False
    for line in events.split(b"\n"):
        data = line[5:].strip() if line.startswith(b"data:") else b""
        if data == b"[DONE]":
            done = True
        elif data:
            event = json.loads(data)
            if "error" in event:
                raise ValueError(f"error in the stream: {json.dumps(event['error'])[:300]}")
            for choice in event.get("choices", []):
                add_delta(message, calls, choice.get("delta", {}))
    if not done:
        raise ValueError("the stream ended before [DONE]")
    if calls:
        message["tool_calls"] = [calls[i] for i in sorted(calls)]
    return message


def add_delta(message: dict, calls: dict[int, dict], delta: dict) -> None:
    """Append one streamed piece; text fields (content, reasoning_content, …) grow, tool calls grow by index."""
    for key, value in delta.items():
        if key == "tool_calls":
            for piece in value or []:
                call = calls.setdefault(
                    piece["index"], {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
                )
                call["id"] += piece.get("id") or ""
                for part in ("name", "arguments"):
                    call["function"][part] += piece.get("function", {}).get(part) or ""
        elif key != "role" and isinstance(value, str):
            message[key] = (message.get(key) or "") + value
