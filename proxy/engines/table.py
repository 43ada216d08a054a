"""Which engine serves which config."""

import os
from collections.abc import Callable
from typing import Any

from contracts.errors import ConfigError
from proxy.config import LocalEngine, OpenAIEngine, ScriptedEngine
from proxy.engine import Engine
from proxy.engines.openai import OpenAIMessageEngine
from proxy.engines.scripted import ScriptedMessageEngine


def _local(config: LocalEngine) -> Engine:
    from proxy.engines.local import LocalTokenEngine  # torch: only where a local model is wanted

    return LocalTokenEngine(config)


def _openai(config: OpenAIEngine) -> Engine:
    return OpenAIMessageEngine(config, os.environ)


ENGINES: dict[type, Callable[[Any], Engine]] = {
    LocalEngine: _local,
    ScriptedEngine: ScriptedMessageEngine,
    OpenAIEngine: _openai,
}


def make_engine(name: str, config: LocalEngine | ScriptedEngine | OpenAIEngine) -> Engine:
    """Start the engine of ``config``; a local one loads its model here, which takes seconds.

    Raises:
        ConfigError: it cannot serve; names the engine, the value and the cure.
    """
    try:
        return ENGINES[type(config)](config)
    except ConfigError as e:
        raise ConfigError(f"engine {name!r}: {e}") from e
