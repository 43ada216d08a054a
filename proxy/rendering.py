"""Messages to tokens and back, through the `renderers` package; continuation by splicing onto recorded tokens.

P prompt tokens, C completion tokens.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

from renderers import Message, ParsedToolCall, Renderer, ToolCallParseStatus, ToolSpec, create_renderer
from renderers.configs import RendererConfig as RenderersConfig
from renderers.configs import config_from_name

from contracts.errors import ConfigError
from proxy.canonical import text_of
from proxy.config import RendererConfig
from proxy.ids import mint_tool_call


def load_renderer(tokenizer_path: str, config: RendererConfig) -> Renderer:
    """The renderer of a model family over the tokenizer at ``tokenizer_path``.

    Raises:
        ConfigError: no such renderer, or no tokenizer there.
    """
    return _load(tokenizer_path, config.name, config.enable_thinking)


@lru_cache(maxsize=8)
def _load(tokenizer_path: str, name: str, enable_thinking: bool) -> Renderer:
    from renderers.base import load_tokenizer

    try:
        family = config_from_name(name)
    except (KeyError, ValueError) as e:
        raise ConfigError(f"renderer {name!r} is unknown; use a name of the `renderers` package, e.g. qwen3.") from e
    try:
        tokenizer = load_tokenizer(tokenizer_path)
    except (OSError, ValueError) as e:
        raise ConfigError(
            f"no tokenizer at {tokenizer_path!r}: {e}; give a checkpoint directory that holds one."
        ) from e
    knobs = {"enable_thinking": enable_thinking}
    return create_renderer(tokenizer, cast("RenderersConfig", family), chat_template_kwargs=knobs)


class Rendering:
    """One policy's renderer with the operations that the call path needs."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self.stop_ids: tuple[int, ...] = tuple(renderer.get_stop_token_ids())

    def root(self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]] | None) -> tuple[int, ...]:
        """[P] the prompt of a conversation rendered from scratch."""
        rendered = self._renderer.render(_messages(messages), tools=_tools(tools), add_generation_prompt=True)
        return tuple(rendered.token_ids)

    def continued(
        self,
        parent_prompt_ids_P: Sequence[int],
        parent_output_ids_C: Sequence[int],
        new_messages: Sequence[dict[str, Any]],
        tools: Sequence[dict[str, Any]] | None,
    ) -> tuple[int, ...] | None:
        """The prompt tokens after the parent's prompt and output; None when this family cannot continue that turn."""
        if not new_messages:
            return None
        before = [*parent_prompt_ids_P, *parent_output_ids_C]
        bridged = self._renderer.bridge_to_next_turn(
            list(parent_prompt_ids_P), list(parent_output_ids_C), _messages(new_messages), tools=_tools(tools)
        )
        if bridged is None or bridged.token_ids[: len(before)] != before:
            return None
        return tuple(bridged.token_ids[len(before) :])

    def parsed(
        self, prompt_ids_P: Sequence[int], output_ids_C: Sequence[int], tools: Sequence[dict[str, Any]] | None
    ) -> dict[str, Any]:
        """The assistant message that the sampled ids stand for; a malformed tool call stays text, as the policy wrote it."""
        parsed = self._renderer.parse_response(list(output_ids_C), tools=_tools(tools), prompt_ids=list(prompt_ids_P))
        good = [c for c in parsed.tool_calls if c.status == ToolCallParseStatus.OK]
        bad = [c for c in parsed.tool_calls if c.status != ToolCallParseStatus.OK]
        content = parsed.content + "".join(f"\n<tool_call>\n{c.raw}\n</tool_call>" for c in bad)
        message: dict[str, Any] = {"role": "assistant", "content": content or None}
        if parsed.reasoning_content:
            message["reasoning_content"] = parsed.reasoning_content
        if good:
            message["tool_calls"] = [_served_call(c) for c in good]
        return message


def _served_call(call: ParsedToolCall) -> dict[str, Any]:
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
    return {"id": mint_tool_call(), "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _messages(messages: Sequence[dict[str, Any]]) -> list[Message]:
    return [cast(Message, m | {"content": text_of(m.get("content"))}) for m in messages]


def _tools(tools: Sequence[dict[str, Any]] | None) -> list[ToolSpec] | None:
    return cast(list[ToolSpec], list(tools)) if tools else None
