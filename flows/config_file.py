"""From a TOML file and `--set key=value` to a validated config."""

import tomllib
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from contracts.config import parse, read_toml
from contracts.errors import ConfigError

C = TypeVar("C", bound=BaseModel)


def read_config(model: type[C], path: Path, overrides: list[str]) -> C:
    """Read ``path`` as ``model`` with ``overrides`` applied on top.

    Args:
        overrides: ``key=value`` each; dots reach into tables, values are TOML, anything that is no TOML is text.
    Raises:
        ConfigError: one line naming the file or the override, the value and what is allowed.
    """
    values = read_toml(path)
    for override in overrides:
        _apply(values, override)
    return parse(model, values, str(path))


def _apply(values: dict[str, Any], override: str) -> None:
    key, found, text = override.partition("=")
    if not found or not key.strip():
        raise ConfigError(f"--set {override!r} is not key=value; for example --set limits.wall_clock_s=30.")
    *tables, last = key.strip().split(".")
    table = values
    for name in tables:
        below = table.setdefault(name, {})
        if not isinstance(below, dict):
            raise ConfigError(f"--set {override!r}: {name!r} is {below!r}, not a table; set the whole key instead.")
        table = below
    table[last] = _value(text.strip())


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
