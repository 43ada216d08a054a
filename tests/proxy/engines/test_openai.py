import json
import logging
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import Any

import pytest

from contracts.call import FinishReason, Sampling
from contracts.errors import ConfigError, EngineError
from proxy.config import OpenAIEngine, PinnedSampling
from proxy.engine import Reply
from proxy.engines.completion import request_body, retry_after_s
from proxy.engines.openai import OpenAIMessageEngine

USER = {"role": "user", "content": "a private question"}
TOOL = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}
ENVIRON = {"TEACHER_KEY": "sk-very-secret"}

Server = Callable[[], AbstractAsyncContextManager[Any]]


def completion(message: dict[str, Any], finish: str | None = "stop", **more: Any) -> tuple[int, bytes, dict[str, str]]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return 200, json.dumps({"id": "x", "object": "chat.completion", "choices": [choice], **more}).encode(), {}


def failure(status: int, code: str | None = None, **headers: str) -> tuple[int, bytes, dict[str, str]]:
    named = {"Retry_After": "Retry-After"}
    body = {"error": {"message": "a private question was refused", "code": code}}
    return status, json.dumps(body).encode(), {named[k]: v for k, v in headers.items()}


GOOD = completion({"content": "Paris"}, usage={"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6})


async def ask(server: Server, answers: list[tuple[int, bytes, dict[str, str]]], **settings: Any) -> tuple[Reply, Any]:
    async with server() as upstream:
        upstream.answers = answers
        config = OpenAIEngine(base_url=upstream.base_url, model="teacher", api_key_env="TEACHER_KEY", **settings)
        engine = OpenAIMessageEngine(config, ENVIRON, max_attempts=3, backoff_s=0.0)
        try:
            return await engine.reply(None, [USER], [TOOL], Sampling(temperature=0.5, max_tokens=9)), upstream
        except EngineError as e:
            e.add_note(f"requests: {len(upstream.bodies)}")
            raise
        finally:
            await engine.aclose()


async def test_a_text_answer_comes_back_with_its_usage(upstream_server: Server):
    reply, upstream = await ask(upstream_server, [GOOD])
    assert reply.message == {"role": "assistant", "content": "Paris"}
    assert reply.finish is FinishReason.STOP
    assert reply.usage == {"prompt_tokens": 5, "completion_tokens": 1}
    assert upstream.keys == ["Bearer sk-very-secret"]
    assert upstream.bodies == [
        {"model": "teacher", "messages": [USER], "tools": [TOOL], "temperature": 0.5, "max_tokens": 9}
    ]


async def test_tool_calls_come_back_as_tool_calls_even_when_the_server_says_stop(upstream_server: Server):
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{not json"}}
    reply, _ = await ask(upstream_server, [completion({"content": None, "tool_calls": [call]})])
    assert reply.finish is FinishReason.TOOL_CALLS
    assert reply.message == {"role": "assistant", "content": None, "tool_calls": [call]}
    assert reply.usage == {}


async def test_an_answer_cut_at_max_tokens_is_length_and_keeps_its_reasoning(upstream_server: Server):
    reply, _ = await ask(upstream_server, [completion({"content": "Par", "reasoning_content": "France"}, "length")])
    assert reply.finish is FinishReason.LENGTH
    assert reply.message == {"role": "assistant", "content": "Par", "reasoning_content": "France"}


async def test_a_busy_server_is_asked_again_after_the_time_it_names(upstream_server: Server):
    reply, upstream = await ask(upstream_server, [failure(429, Retry_After="0"), failure(503), GOOD])
    assert reply.message["content"] == "Paris"
    assert len(upstream.bodies) == 3


@pytest.mark.parametrize(
    ("answer", "says", "requests"),
    [
        (failure(500), "answered 500.*attempts: 3", 3),
        (failure(429, "rate_limit_exceeded", Retry_After="3600"), "429 .rate_limit_exceeded.*asks to wait 3600 s", 1),
        (failure(401, "invalid_api_key"), "refused.*401 .invalid_api_key.; check the key in TEACHER_KEY", 1),
        (failure(404), "refused the request with 404", 1),
        ((200, b"<html>a private question</html>", {}), "answered 200 but not with a chat completion", 1),
        ((200, b'{"object": "chat.completion"}', {}), "choices is wrong .missing", 1),
        ((200, b'{"choices": []}', {}), "choices is wrong .too_short", 1),
        ((200, b'{"error": {"code": "overloaded"}}', {}), "answered 200 with an error .overloaded", 1),
        (completion({"content": ""}), "neither text nor tool calls", 1),
        (completion({"content": None, "refusal": "a private question? no"}), "refused", 1),
        (completion({"content": "a private"}, "content_filter"), "refused", 1),
        (
            completion({"content": "x"}, "function_call"),
            "finish_reason 'function_call'; known: length, stop, tool_calls",
            1,
        ),
        (completion({"content": "x"}, None), "finish_reason is wrong", 1),
        (completion({"tool_calls": [{"function": {"name": "bash"}}]}), "arguments is wrong .missing", 1),
    ],
)
async def test_what_is_no_usable_answer_is_an_engine_error_without_body_or_key(
    answer: Any, says: str, requests: int, upstream_server: Server, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    with pytest.raises(EngineError, match=says) as caught:
        await ask(upstream_server, [answer])
    assert caught.value.__notes__ == [f"requests: {requests}"]
    written = f"{caught.value!r} {caught.value.__cause__!r} {caplog.text}"
    assert "private" not in written
    assert "sk-very-secret" not in written


async def test_nobody_listening_is_an_engine_error_after_bounded_tries():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    config = OpenAIEngine(base_url=f"http://127.0.0.1:{port}/v1", model="teacher", api_key_env="TEACHER_KEY")
    engine = OpenAIMessageEngine(config, ENVIRON, max_attempts=2, backoff_s=0.0)
    with pytest.raises(EngineError, match=r"cannot be reached .ConnectError.; attempts: 2"):
        await engine.reply(None, [USER], None, Sampling())
    await engine.aclose()


async def test_a_silent_server_is_an_engine_error_that_names_the_timeout():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        config = OpenAIEngine(base_url=url, model="teacher", api_key_env="TEACHER_KEY", timeout_s=0.05)
        engine = OpenAIMessageEngine(config, ENVIRON)
        with pytest.raises(EngineError, match=r"did not answer within 0.05 s; attempts: 1"):
            await engine.reply(None, [USER], None, Sampling())
        await engine.aclose()


@pytest.mark.parametrize("environ", [{}, {"TEACHER_KEY": " "}])
def test_a_missing_key_is_a_config_error_that_names_the_variable(environ: dict[str, str]):
    config = OpenAIEngine(base_url="https://api.example.com/v1", model="m", api_key_env="TEACHER_KEY")
    with pytest.raises(ConfigError, match="TEACHER_KEY"):
        OpenAIMessageEngine(config, environ)


def test_an_address_without_scheme_is_a_config_error():
    config = OpenAIEngine(base_url="api.example.com/v1", model="m", api_key_env="TEACHER_KEY")
    with pytest.raises(ConfigError, match="base_url = 'api.example.com/v1'"):
        OpenAIMessageEngine(config, ENVIRON)


async def test_pinned_sampling_is_shown_to_the_proxy():
    config = OpenAIEngine(
        base_url="http://127.0.0.1:1/v1", model="m", api_key_env="TEACHER_KEY", sampling=PinnedSampling(temperature=0.2)
    )
    engine = OpenAIMessageEngine(config, ENVIRON)
    assert engine.sampling == Sampling(temperature=0.2, top_p=1.0, top_k=-1)
    await engine.aclose()


def test_top_k_is_sent_only_when_it_limits():
    assert request_body("m", [USER], None, Sampling(top_k=-1)) == {"model": "m", "messages": [USER]}
    assert request_body("m", [USER], [], Sampling(top_k=5))["top_k"] == 5


def test_retry_after_is_seconds_or_a_date_or_nothing():
    now = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)
    assert retry_after_s("7", now) == 7.0
    assert retry_after_s("Tue, 01 Jan 2030 12:01:30 GMT", now) == 90.0
    assert retry_after_s("Tue, 01 Jan 2030 11:00:00 GMT", now) == 0.0
    assert retry_after_s("soon", now) is None
    assert retry_after_s(None, now) is None
