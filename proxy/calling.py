"""One model call from ask to recorded answer: lineage, prompt, engine, parse, commit.

P prompt tokens, C completion tokens.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contracts.call import Call, FinishReason, ParentRule, Sampling, VersionRun
from contracts.errors import ConfigError, ContextOverflow, EngineError, LogUnavailable, SessionClosed
from proxy.canonical import value_hash
from proxy.dialects.ask import Ask
from proxy.engine import Engine, MessageEngine, TokenEngine, takes_tokens
from proxy.ids import mint_call, mint_tool_call
from proxy.lineage import Parentage, find_parent, turn_of
from proxy.log import CallLog
from proxy.rendering import Rendering, load_renderer
from proxy.sessions import Session, utc_now

MIN_ANSWER_TOKENS = 1
DEFAULT_ANSWER_TOKENS = 4096


class TurnLimit(Exception):
    """The session's turn limit is used up."""


@dataclass(frozen=True)
class _Sampled:
    """What an engine made of a call, whatever its kind."""

    message: dict[str, Any]
    finish: FinishReason
    usage: dict[str, int]
    effective: Sampling
    suffix_ids_P: tuple[int, ...] | None = None
    prompt_tokens: int | None = None
    output_ids_C: tuple[int, ...] | None = None
    logprobs_C: tuple[float, ...] | None = None
    versions: tuple[VersionRun, ...] = ()


class Caller:
    """Answers calls with the engines of one proxy and records them."""

    def __init__(self, engines: Mapping[str, Engine], log: CallLog) -> None:
        self._engines = engines
        self._log = log

    def check(self, policy: str) -> None:
        """Raises ConfigError for a policy that no engine serves."""
        if policy not in self._engines:
            known = ", ".join(sorted(self._engines)) or "none"
            raise ConfigError(f"policy {policy!r} has no engine in this proxy. Known: {known}. Add it under [engines].")

    async def call(self, session: Session, ask: Ask, dialect: str, call_id: str) -> Call:
        """Answer and record one call; when this returns, the call is on disk.

        Raises:
            SessionClosed: the session is sealed.
            TurnLimit, ContextOverflow: a limit of the rollout.
            EngineError: the engine failed.
            LogUnavailable: the call could not be recorded and so must not be served.
        """
        if session.sealed:
            raise SessionClosed(f"session {session.session_id} is sealed; its rollout is over.")
        if session.begun >= session.limits.turns:
            raise TurnLimit(f"turn limit of {session.limits.turns} model calls is used up")
        session.begun += 1
        started, clock = utc_now(), time.monotonic()
        parentage = find_parent(session.turns, ask.messages)
        parent = next((c for c in session.calls if c.call_id == parentage.parent_call_id), None)
        engine = self._engines[session.opened.request.policy]
        try:
            if takes_tokens(engine):
                rule, sampled = await self._from_tokens(engine, session, ask, parentage, parent)
            else:
                rule, sampled = parentage.rule, await self._from_messages(engine, session, ask)
        except EngineError:
            session.begun -= 1  # the harness tries again; our fault must not use up its turns
            raise
        if session.sealed:
            raise SessionClosed(f"session {session.session_id} was sealed during the call; it is not recorded.")
        return await self._record(
            session, ask, dialect, call_id, parentage, rule, sampled, started, time.monotonic() - clock
        )

    async def _from_tokens(
        self, engine: TokenEngine, session: Session, ask: Ask, parentage: Parentage, parent: Call | None
    ) -> tuple[ParentRule, _Sampled]:
        rendering = Rendering(load_renderer(engine.tokenizer_path, engine.renderer))
        rule, before, suffix = self._prompt(rendering, session, ask, parentage, parent)
        prompt = (*before, *suffix)
        effective = engine.sampling.model_copy(
            update={"max_tokens": _answer_room(engine, session, ask, len(prompt)), "seed": None}
        )
        made = await engine.generate(session.session_id, prompt, effective, rendering.stop_ids)
        message = rendering.parsed(prompt, made.output_ids_C, ask.tools)
        usage = {"prompt_tokens": len(prompt), "completion_tokens": len(made.output_ids_C)}
        return rule, _Sampled(
            message, _finish(made.finish, message), usage, effective, suffix, len(prompt), made.output_ids_C,
            made.logprobs_C, made.versions,
        )  # fmt: skip

    def _prompt(
        self, rendering: Rendering, session: Session, ask: Ask, parentage: Parentage, parent: Call | None
    ) -> tuple[ParentRule, tuple[int, ...], tuple[int, ...]]:
        """(rule, tokens recorded before, tokens added): spliced where that is exact, else rendered from scratch."""
        if parent is not None and parent.output_ids_C is not None and session.opened.harness.history == "exact":
            same_tools = (ask.tools or None) == session.tools.get(parent.call_id)
            before = _prompt_ids(session, parent)
            suffix = rendering.continued(before, parent.output_ids_C, parentage.new_messages, ask.tools)
            if same_tools and suffix is not None:
                return parentage.rule, (*before, *parent.output_ids_C), suffix
        rule = ParentRule.UNSPLICEABLE if parent is not None else parentage.rule
        return rule, (), rendering.root(ask.messages, ask.tools)

    async def _from_messages(self, engine: MessageEngine, session: Session, ask: Ask) -> _Sampled:
        effective = engine.sampling or ask.sampling
        effective = effective.model_copy(update={"max_tokens": ask.sampling.max_tokens or session.limits.answer_tokens})
        reply = await engine.reply(session.opened.script, ask.messages, ask.tools, effective)
        message = dict(reply.message)
        if message.get("tool_calls"):
            message["tool_calls"] = [{**c, "id": mint_tool_call()} for c in message["tool_calls"]]
        return _Sampled(message, reply.finish, dict(reply.usage), effective)

    async def _record(
        self, session: Session, ask: Ask, dialect: str, call_id: str, parentage: Parentage, rule: ParentRule,
        sampled: _Sampled, started: Any, engine_s: float,
    ) -> Call:  # fmt: skip
        system_hash = value_hash([m for m in ask.messages if m.get("role") == "system"])
        tools_hash = value_hash(ask.tools)
        parent_id = parentage.parent_call_id
        rerendered = rule == ParentRule.UNSPLICEABLE
        call = Call(
            call_id=call_id,
            session_id=session.session_id,
            seq=len(session.calls),
            dialect=dialect,
            parent_call_id=parent_id,
            parent_rule=rule,
            purpose=session.purpose_of(system_hash, tools_hash),
            messages=parentage.new_messages,
            tools=None if parent_id and session.tools.get(parent_id) == ask.tools and not rerendered else ask.tools,
            answer=sampled.message,
            suffix_ids_P=sampled.suffix_ids_P,
            prompt_tokens=sampled.prompt_tokens,
            output_ids_C=sampled.output_ids_C,
            logprobs_C=sampled.logprobs_C,
            versions=sampled.versions,
            requested=ask.sampling,
            effective=sampled.effective,
            finish_reason=sampled.finish,
            tools_hash=tools_hash,
            system_hash=system_hash,
            usage=sampled.usage,
            started_at=started,
            engine_s=engine_s,
        )
        # Remembered before the commit is awaited: a concurrent call of the same session must get the next number.
        session.add(call, turn_of(call_id, parentage, sampled.message), ask.tools)
        try:
            await self._log.put_call(call)
        except LogUnavailable:
            session.forget(call_id)
            raise
        return call


def new_call_id() -> str:
    """Id of a call that is about to be made; the stream's first event carries it."""
    return mint_call()


def _prompt_ids(session: Session, call: Call) -> tuple[int, ...]:
    """[P] the whole prompt of a recorded call, from the chain of what each call added."""
    by_id = {c.call_id: c for c in session.calls}
    parts: list[Sequence[int]] = [call.suffix_ids_P or ()]
    while call.parent_call_id is not None and call.parent_rule != ParentRule.UNSPLICEABLE:
        call = by_id[call.parent_call_id]
        parts[:0] = [call.suffix_ids_P or (), call.output_ids_C or ()]
    return tuple(i for part in parts for i in part)


def _answer_room(engine: TokenEngine, session: Session, ask: Ask, prompt_tokens: int) -> int:
    limits = session.limits
    context = min(engine.context_tokens, limits.context_tokens or engine.context_tokens)
    room = context - prompt_tokens
    if room < MIN_ANSWER_TOKENS:
        raise ContextOverflow(
            f"the prompt has {prompt_tokens} tokens, the context {context}: nothing is left for the answer"
        )
    return min(room, limits.answer_tokens, ask.sampling.max_tokens or DEFAULT_ANSWER_TOKENS)


def _finish(finish: str, message: Mapping[str, Any]) -> FinishReason:
    if finish == "length":
        return FinishReason.LENGTH
    return FinishReason.TOOL_CALLS if message.get("tool_calls") else FinishReason.STOP
