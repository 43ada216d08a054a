"""The proxy over real HTTP: what a harness gets, what is recorded, who may do what."""

import asyncio
import json
from pathlib import Path

import httpx
import pytest
from proxy_stand import CHECKPOINT, TOOLS, calls_bash, open_body, says, until

from contracts.call import FinishReason, ParentRule
from contracts.errors import ConfigError, EngineError, ProxyUnreachable
from contracts.rollout import Evidence
from contracts.wire import RunnerResult
from proxy.client import ProxyClient
from proxy.config import ProxyConfig, RendererConfig
from proxy.log import CallLog
from proxy.rendering import load_renderer
from proxy.server import ProxyServer

USER = {"role": "user", "content": "list the files"}


def tool_result(answer: dict) -> dict:
    return {"role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": "[exit code 0]"}


async def test_two_turns_become_one_row_with_the_engines_own_tokens(stand) -> None:
    async with stand(calls_bash("ls"), says("Done.")) as s:
        session_id, harness = await s.session()
        first = (await harness.chat([USER])).json()["choices"][0]
        assert first["finish_reason"] == "tool_calls"
        assert json.loads(first["message"]["tool_calls"][0]["function"]["arguments"]) == {"command": "ls"}
        second = await harness.chat([USER, first["message"], tool_result(first["message"])])
        assert second.json()["choices"][0]["message"]["content"] == "Done."
        answer = await s.client.rows(session_id)
        (row,) = answer.rows
        sampled = [i for i, m in zip(row.response_ids_R, row.mask_R, strict=True) if m]
        assert tuple(sampled) == (*calls_bash("ls"), *says("Done."))
        assert s.engine.prompts[1] == (*row.prompt_ids_P, *row.response_ids_R[: -len(says("Done."))])
        assert answer.report.violations == {}
        assert [v.version for v in row.versions] == [3, 3]


async def test_the_spliced_prompt_is_what_the_template_renders_for_the_same_conversation(stand) -> None:
    async with stand(calls_bash("ls"), says("Done.")) as s:
        _, harness = await s.session()
        message = (await harness.chat([USER])).json()["choices"][0]["message"]
        history = [USER, message, tool_result(message)]
        await harness.chat(history)
        renderer = load_renderer(str(CHECKPOINT), RendererConfig())
        plain = [{**m, "content": m["content"] or ""} for m in history]
        assert list(s.engine.prompts[1]) == renderer.render_ids(plain, tools=TOOLS, add_generation_prompt=True)


async def test_a_streamed_call_says_the_same_and_ends_after_the_commit(stand) -> None:
    async with stand(calls_bash("ls")) as s:
        session_id, harness = await s.session()
        raw = await harness.chat([USER], stream=True, stream_options={"include_usage": True}, model="m[1m]")
        data = [line[6:] for line in raw.text.splitlines() if line.startswith("data: ")]
        assert data[-1] == "[DONE]"
        chunks = [json.loads(d) for d in data[:-1]]
        assert {c["model"] for c in chunks} == {"m[1m]"}
        calls = [c for chunk in chunks for d in chunk["choices"] for c in d["delta"].get("tool_calls", [])]
        assert [c["function"]["name"] for c in calls] == ["bash"]
        assert [d["finish_reason"] for chunk in chunks for d in chunk["choices"]][-1] == "tool_calls"
        assert chunks[-1]["usage"]["completion_tokens"] == len(calls_bash("ls"))
        (call,) = s.server.log.calls(session_id)
        assert call.call_id == chunks[0]["id"]


async def test_a_slow_answer_is_preceded_by_keep_alives_and_the_first_byte_leaves_at_once(stand) -> None:
    hold = asyncio.Event()
    async with stand(says("ok"), hold=hold) as s:
        _, harness = await s.session()
        headers = {"authorization": f"Bearer {harness.key}"}
        body = {"messages": [USER], "stream": True}
        async with s.http.stream("POST", f"{harness.base}/v1/chat/completions", json=body, headers=headers) as answer:
            lines = answer.aiter_lines()
            assert json.loads((await anext(lines))[6:])["choices"][0]["delta"]["role"] == "assistant"
            kept = 0
            while kept < 2:
                kept += (await anext(lines)) == ": keep-alive"
            hold.set()
            rest = [line async for line in lines]
        assert rest[-2:] == ["data: [DONE]", ""] or "data: [DONE]" in rest


async def test_a_client_that_leaves_aborts_the_engine_and_records_nothing(stand) -> None:
    hold = asyncio.Event()
    async with stand(says("ok"), says("again"), hold=hold) as s:
        session_id, harness = await s.session()
        for stream in (False, True):
            with pytest.raises(TimeoutError):  # the client's whole request, since keep-alives hold off its read timeout
                await asyncio.wait_for(harness.chat([USER], stream=stream), 0.3)
        await until(lambda: s.engine.aborted == 2, "two aborted requests")
        assert s.server.log.calls(session_id) == ()


async def test_sampling_is_pinned_and_the_harnesss_wish_recorded(stand) -> None:
    async with stand(says("ok")) as s:
        session_id, harness = await s.session(answer_tokens=40)
        await harness.chat([USER], temperature=0.0, top_p=0.1, max_tokens=1000)
        assert (s.engine.asked[0].temperature, s.engine.asked[0].top_p, s.engine.asked[0].max_tokens) == (1.0, 1.0, 40)
        (call,) = s.server.log.calls(session_id)
        assert (call.requested.temperature, call.requested.top_p, call.effective.temperature) == (0.0, 0.1, 1.0)


async def test_the_first_answer_of_a_call_with_a_retry_header_is_repeated_but_without_it_sampled_anew(stand) -> None:
    async with stand(says("one"), says("two")) as s:
        session_id, harness = await s.session()
        first = (await harness.chat([USER])).json()
        again = (await harness.chat([USER], headers={"x-stainless-retry-count": "1"})).json()
        assert again["id"] == first["id"]
        fresh = (await harness.chat([USER])).json()
        assert fresh["choices"][0]["message"]["content"] == "two"
        assert len(s.server.log.calls(session_id)) == 2


async def test_a_prompt_that_does_not_fit_is_the_dialects_own_error_and_flagged(stand) -> None:
    async with stand(says("ok")) as s:
        session_id, harness = await s.session(context_tokens=16)
        answer = await harness.chat([USER])
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "context_length_exceeded")
        assert (await s.client.session(session_id)).context_overflow


async def test_calls_over_the_turn_limit_are_refused_and_flagged(stand) -> None:
    async with stand(says("a"), says("b")) as s:
        session_id, harness = await s.session(turns=1)
        assert (await harness.chat([USER])).status_code == 200
        answer = await harness.chat([USER])
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "turn_limit_exceeded")
        state = await s.client.session(session_id)
        assert (state.turns_exceeded, state.calls) == (True, 1)


async def test_an_engine_failure_is_a_502_and_noted_as_upstream(stand) -> None:
    async with stand(EngineError("the card is gone")) as s:
        session_id, harness = await s.session()
        answer = await harness.chat([USER])
        assert (answer.status_code, answer.json()["error"]["message"]) == (502, "the card is gone")
        assert (await s.client.session(session_id)).upstream_error == "the card is gone"


async def test_an_engine_failure_does_not_use_up_the_harnesss_turns(stand) -> None:
    async with stand(EngineError("busy"), says("ok")) as s:
        _, harness = await s.session(turns=1)
        assert [(await harness.chat([USER])).status_code for _ in range(3)] == [502, 200, 400]


async def test_a_malformed_tool_call_reaches_the_harness_as_the_policy_wrote_it(stand) -> None:
    wrong = says('<tool_call>\n{"name": "bash", "arguments": {"command": </tool_call>')
    async with stand(wrong) as s:
        session_id, harness = await s.session()
        choice = (await harness.chat([USER])).json()["choices"][0]
        assert "tool_calls" not in choice["message"]
        assert '{"name": "bash", "arguments": {"command":' in choice["message"]["content"]
        assert choice["finish_reason"] == "stop"
        assert (await s.client.rows(session_id)).report.trained_tokens == len(wrong)


async def test_an_edited_history_is_rendered_anew_and_becomes_a_second_row(stand) -> None:
    async with stand(calls_bash("ls"), says("Done.")) as s:
        session_id, harness = await s.session()
        message = (await harness.chat([USER])).json()["choices"][0]["message"]
        edited = json.loads(json.dumps(message))
        edited["tool_calls"][0]["function"]["arguments"] = '{"command": "rm"}'
        await harness.chat([USER, edited, tool_result(message)])
        answer = await s.client.rows(session_id)
        assert [r.turns for r in answer.rows] == [1, 1]
        assert s.server.log.calls(session_id)[1].parent_rule == ParentRule.EDITED
        assert answer.report.violations == {}


async def test_history_render_makes_each_call_its_own_row_and_counts_the_echo(stand) -> None:
    async with stand(calls_bash("ls"), says("Done.")) as s:
        opened = await s.client.open_session(open_body(history="render"))
        work = await s.http.get("/runner/work", headers={"authorization": f"Bearer {opened.runner_secret}"})
        key, url = work.json()["model_secret"], f"{s.server.url}/s/{opened.session_id}/v1/chat/completions"
        headers = {"authorization": f"Bearer {key}"}
        first = await s.http.post(url, json={"messages": [USER], "tools": TOOLS}, headers=headers)
        message = first.json()["choices"][0]["message"]
        history = {"messages": [USER, message, tool_result(message)], "tools": TOOLS}
        await s.http.post(url, json=history, headers=headers)
        answer = await s.client.rows(opened.session_id)
        assert [r.turns for r in answer.rows] == [1, 1]
        assert answer.report.violations == {}


async def test_neither_secret_opens_what_belongs_to_the_other_or_to_another_session(stand) -> None:
    async with stand(says("a"), says("b")) as s:
        opened = await s.client.open_session(open_body())
        other_id, other = await s.session()
        runner = {"authorization": f"Bearer {opened.runner_secret}"}
        model = (await s.http.get("/runner/work", headers=runner)).json()["model_secret"]
        chat = {"messages": [USER]}
        assert (
            await s.http.post(f"/s/{opened.session_id}/v1/chat/completions", json=chat, headers=runner)
        ).status_code == 401
        wrong = {"authorization": f"Bearer {model}"}
        assert (await s.http.post(f"/s/{other_id}/v1/chat/completions", json=chat, headers=wrong)).status_code == 401
        for path in ("/runner/result", "/runner/agent-dead", "/runner/heartbeat"):
            assert (await s.http.post(path, json={}, headers=wrong)).status_code == 401
        assert (await s.http.post("/api/sessions", json={}, headers=runner)).status_code == 401
        assert (await s.http.get(f"/api/sessions/{other_id}")).status_code == 401
        assert (await other.chat([USER])).status_code == 200


async def test_the_verifier_is_handed_out_only_after_the_model_secret_is_dead(stand) -> None:
    async with stand(says("a"), says("b")) as s:
        opened = await s.client.open_session(open_body())
        runner = {"authorization": f"Bearer {opened.runner_secret}"}
        work = (await s.http.get("/runner/work", headers=runner)).json()
        assert "tests_tar" not in work
        verifier = await s.http.post("/runner/agent-dead", json={}, headers=runner)
        assert verifier.json()["tests_tar"] == "dGVzdHM="
        model = {"authorization": f"Bearer {work['model_secret']}"}
        late = await s.http.post(
            work["base_url_path"] + "/v1/chat/completions", json={"messages": [USER]}, headers=model
        )
        assert (late.status_code, late.json()["error"]["code"]) == (409, "session_sealed")
        assert s.server.log.calls(opened.session_id) == ()


async def test_a_result_is_taken_once(stand) -> None:
    async with stand() as s:
        opened = await s.client.open_session(open_body())
        runner = {"authorization": f"Bearer {opened.runner_secret}"}
        body = RunnerResult(evidence=Evidence(), agent_started=True, reward=0.0).model_dump_json()
        assert (await s.http.post("/runner/result", content=body, headers=runner)).status_code == 200
        forged = body.replace("0.0", "1.0")
        assert (await s.http.post("/runner/result", content=forged, headers=runner)).status_code == 409
        assert (await s.client.session(opened.session_id)).result.reward == 0.0


async def test_a_sealed_session_stops_its_runner_and_its_running_call(stand) -> None:
    hold = asyncio.Event()
    async with stand(says("a"), hold=hold) as s:
        session_id, harness = await s.session()
        call = asyncio.create_task(harness.chat([USER]))
        await until(lambda: len(s.engine.prompts) == 1, "the call")
        assert (await s.client.seal(session_id)).sealed
        assert (await call).status_code == 409
        assert s.engine.aborted == 1


async def test_a_restarted_proxy_continues_its_open_sessions(stand, tmp_path: Path) -> None:
    log = tmp_path / "calls.sqlite"
    async with stand(calls_bash("ls"), log=log) as s:
        session_id, harness = await s.session()
        message = (await harness.chat([USER])).json()["choices"][0]["message"]
    async with stand(says("Done."), log=log) as s:
        url = f"{s.server.url}/s/{session_id}/v1/chat/completions"
        body = {"messages": [USER, message, tool_result(message)], "tools": TOOLS}
        again = await s.http.post(url, json=body, headers={"authorization": f"Bearer {harness.key}"})
        assert again.status_code == 200
        answer = await s.client.rows(session_id)
        assert [r.turns for r in answer.rows] == [2]
        assert answer.report.violations == {}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "not JSON"),
        (b"[]", "must be a JSON object"),
        (b'{"messages": []}', "at least one message"),
        (b'{"messages": [{"role": "robot"}]}', "messages[0].role = 'robot'"),
        (b'{"messages": [{"role": "user", "content": "x"}], "n": 2}', "n = 2"),
        (b'{"messages": [{"role": "user", "content": "x"}], "tools": 1}', "tools must be a list"),
        (b'{"messages": [{"role": "user", "content": "x"}], "temperature": "hot"}', "sampling field"),
    ],
)
async def test_a_bad_body_is_a_400_that_names_the_field(stand, body: bytes, words: str) -> None:
    async with stand() as s:
        _, harness = await s.session()
        headers = {"authorization": f"Bearer {harness.key}"}
        answer = await s.http.post(f"{harness.base}/v1/chat/completions", content=body, headers=headers)
        assert answer.status_code == 400
        assert words in answer.json()["error"]["message"]


async def test_a_body_over_the_limit_is_refused(stand, tmp_path: Path) -> None:
    config = ProxyConfig(log=tmp_path / "l.sqlite", engines={}, max_body_mib=1)
    async with ProxyServer(config, {}) as server, httpx.AsyncClient(base_url=server.url) as http:
        assert (await http.post("/api/sessions", content=b"x" * (2**20 + 1))).status_code == 413


async def test_an_unknown_policy_is_the_callers_mistake(stand) -> None:
    async with stand() as s:
        with pytest.raises(ConfigError, match="policy 'nobody' has no engine in this proxy. Known: policy"):
            await s.client.open_session(open_body(policy="nobody"))


async def test_a_port_in_use_and_a_dead_proxy_are_one_line_errors(stand, tmp_path: Path) -> None:
    async with stand() as s:
        port = int(s.server.url.rsplit(":", 1)[1])
        server = ProxyServer(ProxyConfig(log=tmp_path / "x.sqlite", engines={}, port=port), {})
        with pytest.raises(
            ConfigError, match=f"127.0.0.1:{port} cannot be bound: Address already in use; use port = 0"
        ):
            await server.start()
        await server.aclose()
        dead = s.server.url
    async with ProxyClient(dead, "x") as client:
        with pytest.raises(ProxyUnreachable, match=f"no answer from the proxy at {dead}"):
            await client.health()


async def test_metrics_and_models_answer(stand) -> None:
    async with stand(says("a")) as s:
        _, harness = await s.session()
        await harness.chat([USER])
        page = (await s.http.get("/metrics")).text
        assert 'openforge_calls_total{dialect="openai_chat",end="answered",policy="policy"} 1.0' in page
        assert "openforge_sessions_open 1.0" in page
        models = await s.http.get(f"{harness.base}/v1/models", headers={"authorization": f"Bearer {harness.key}"})
        assert [m["id"] for m in models.json()["data"]] == ["policy"]


async def test_a_length_cut_answer_is_recorded_as_such_and_its_continuation_is_spliced(stand) -> None:
    cut = says("I was go")[:-1]
    async with stand(cut, says("Done.")) as s:
        session_id, harness = await s.session()
        message = (await harness.chat([USER])).json()["choices"][0]["message"]
        await harness.chat([USER, message, {"role": "user", "content": "go on"}])
        calls = s.server.log.calls(session_id)
        assert calls[0].finish_reason in (FinishReason.LENGTH, FinishReason.STOP)
        answer = await s.client.rows(session_id)
        (row,) = answer.rows
        assert row.response_ids_R[: len(cut)] == cut
        assert row.mask_R[len(cut)] == 0  # the turn end that nobody sampled
        assert answer.report.violations == {}


async def test_the_log_alone_rebuilds_the_same_rows(stand, tmp_path: Path) -> None:
    from proxy.merge import merge

    async with stand(calls_bash("ls"), says("Done."), log=tmp_path / "l.sqlite") as s:
        session_id, harness = await s.session()
        message = (await harness.chat([USER])).json()["choices"][0]["message"]
        await harness.chat([USER, message, tool_result(message)])
        rows = (await s.client.rows(session_id)).rows
    with CallLog(tmp_path / "l.sqlite", read_only=True) as log:
        assert merge(session_id, log.calls(session_id))[0] == rows
