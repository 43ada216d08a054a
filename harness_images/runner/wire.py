"""Calls to the proxy's runner API over a plain socket: `http.client` alone would double the runner's start-up time.

HTTP/1.0, one connection per call, so an answer is everything up to the end of the connection.
"""

from __future__ import annotations

import json
import socket
import time

from life import Lifeline

CONNECT_S = 5.0
ANSWER_S = 60.0
GIVE_UP_S = 120.0
"""How long an unreachable proxy is tried again: long enough for a restart."""
LONGEST_PAUSE_S = 2.0


class Unreachable(Exception):
    """Nobody answered, or only with 5xx, for GIVE_UP_S."""


class Refused(Exception):
    """The proxy answered and said no."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"status {status}: {text[:300]}")
        self.status = status


class Proxy:
    """The runner's side of one session."""

    def __init__(self, url: str, secret: str, waits: Lifeline | None) -> None:
        scheme, _, rest = url.partition("://")
        netloc, _, path = rest.partition("/")
        host, colon, port = netloc.rpartition(":")
        self._tls = scheme == "https"
        self._host, self._port = (host.strip("[]"), int(port)) if colon else (netloc, 443 if self._tls else 80)
        self._netloc, self._prefix = netloc, ("/" + path.rstrip("/")) if path else ""
        self._secret = secret
        self._waits = waits
        self._again = False

    def beside(self) -> Proxy:
        """The same session for another thread: does not watch the lifeline."""
        twin = Proxy.__new__(Proxy)
        twin.__dict__.update(self.__dict__, _waits=None)
        return twin

    def call(self, method: str, path: str, body: object = None, give_up_s: float = GIVE_UP_S) -> dict:
        """Make one call, trying again while the proxy is unreachable.

        Raises:
            Unreachable: it stayed so. Refused: the answer is 4xx. Leave: the owner is gone.
        """
        end = time.monotonic() + give_up_s
        pause = 0.1
        self._again = False
        while True:
            try:
                status, answer = self._exchange(method, path, body)
                if status < 400:
                    return json.loads(answer)
                if status < 500:
                    raise Refused(status, answer.decode(errors="replace"))
                problem = f"status {status}"
            except (OSError, ValueError) as e:
                problem = str(e)
            if time.monotonic() + pause > end:
                raise Unreachable(f"{method} {path}: {problem}")
            self._again = True
            if self._waits is None:
                time.sleep(pause)
            else:
                self._waits.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)

    def post_result(self, result: dict) -> None:
        """Post the result; a refusal as a second one is fine when an earlier try may have arrived."""
        try:
            self.call("POST", "/runner/result", result)
        except Refused as e:
            if e.status != 409 or not self._again:
                raise

    def _exchange(self, method: str, path: str, body: object) -> tuple[int, bytes]:
        payload = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {self._prefix}{path} HTTP/1.0\r\nHost: {self._netloc}\r\n"
            f"Authorization: Bearer {self._secret}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(payload)}\r\nConnection: close\r\n\r\n"
        )
        with self._connect() as s:
            s.sendall(head.encode() + payload)
            return _answer(self._read_all(s))

    def _connect(self) -> socket.socket:
        s = socket.create_connection((self._host, self._port), timeout=CONNECT_S)
        s.settimeout(ANSWER_S)
        if not self._tls:
            return s
        import ssl  # 15 ms that only an https address pays

        return ssl.create_default_context().wrap_socket(s, server_hostname=self._host)

    def _read_all(self, s: socket.socket) -> bytes:
        end = time.monotonic() + ANSWER_S
        chunks = []
        while True:
            if self._waits is not None and not self._tls:
                while not self._waits.wait([s.fileno()], end - time.monotonic()):
                    if time.monotonic() > end:
                        raise TimeoutError(f"no answer within {ANSWER_S:.0f} s")
            chunk = s.recv(262144)
            if not chunk:
                return b"".join(chunks)
            chunks.append(chunk)


def _answer(raw: bytes) -> tuple[int, bytes]:
    head, blank, body = raw.partition(b"\r\n\r\n")
    words = head.split(b"\r\n", 1)[0].split(b" ")
    if not blank or len(words) < 2:
        raise ValueError("the connection closed before the answer was complete")
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        name = name.strip().lower()
        if name == b"content-length" and len(body) < int(value):
            raise ValueError("the connection closed before the answer was complete")
        if name == b"transfer-encoding" and b"chunked" in value.lower():
            body = _dechunk(body)
    return int(words[1]), body


def _dechunk(body: bytes) -> bytes:
    """Some servers chunk even their answers to HTTP/1.0."""
    parts = []
    while True:
        size, _, body = body.partition(b"\r\n")
        n = int(size.split(b";")[0], 16)
        if n == 0:
            return b"".join(parts)
        parts.append(body[:n])
        body = body[n + 2 :]
