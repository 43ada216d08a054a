"""The base of every config model, and reading one from a TOML file."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from contracts.errors import ConfigError


class Config(BaseModel):
    """Frozen settings with no unknown keys; every field of a subclass has a docstring below it."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Record(BaseModel):
    """A frozen value that crosses a package boundary or a socket."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


C = TypeVar("C", bound=BaseModel)


def parse(model: type[C], values: Mapping[str, Any], where: str) -> C:
    """Validate ``values`` as ``model``.

    Raises:
        ConfigError: one line naming the key, the value and what is allowed.
    """
    try:
        return model.model_validate(values)
    except ValidationError as e:
        first = e.errors()[0]
        key = ".".join(str(p) for p in first["loc"]) or "(top level)"
        known = ", ".join(sorted(model.model_fields))
        raise ConfigError(f"{where}: {key} = {first.get('input')!r}: {first['msg']}. Known keys: {known}.") from e


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        ConfigError: the file is missing, unreadable or broken TOML (with its line).
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as e:
        raise ConfigError(f"config file {str(path)!r} does not exist; give the path of a TOML file.") from e
    except (OSError, UnicodeDecodeError) as e:
        raise ConfigError(f"config file {str(path)!r} cannot be read: {e}.") from e
    except tomllib.TOMLDecodeError as e:
        raise ConfigError(f"{path}: broken TOML: {e}; fix that line.") from e


def load(model: type[C], path: Path) -> C:
    """Read ``path`` as TOML and validate it as ``model``; raises ConfigError."""
    return parse(model, read_toml(path), str(path))


def resolved(config: BaseModel) -> str:
    """The whole config, defaults included, as indented JSON: what --dry-run prints and each run folder keeps."""
    return json.dumps(config.model_dump(mode="json"), indent=2, sort_keys=True)
