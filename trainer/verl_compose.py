"""Settings → veRL's own composed config, checked against its schema. Imports hydra and omegaconf."""

import json
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_module
from omegaconf import DictConfig, OmegaConf, open_dict

from contracts.errors import ConfigError


def compose_verl(name: str, settings: dict[str, Any]) -> DictConfig:
    """veRL's config ``name`` (``ppo_trainer``, ``sft_trainer_engine``) with our settings.

    Raises:
        ConfigError: a key that veRL does not know and that has no ``+``.
    """
    with initialize_config_module("verl.trainer.config", version_base=None):
        config = compose(config_name=name)
    OmegaConf.set_struct(config, True)
    for key, value in settings.items():
        dotted = key.removeprefix("+")
        if key != dotted:
            with open_dict(config):
                OmegaConf.update(config, dotted, value, force_add=True)
            continue
        parent, _, leaf = dotted.rpartition(".")
        node = OmegaConf.select(config, parent) if parent else config
        # A list of the keys: `in` of the node itself denies a mandatory value that is not set yet.
        if node is None or leaf not in list(node.keys()):
            raise ConfigError(f"veRL's config {name!r} has no key {dotted!r}; it has {sorted(node or {})}.")
        OmegaConf.update(config, dotted, value)
    OmegaConf.set_struct(config, False)
    return config


def read_settings(path: Path, scratch: str) -> dict[str, Any]:
    """Settings as their writer left them, with ``{scratch}`` filled in."""
    settings = json.loads(path.read_text(encoding="utf-8"))
    return {k: v.replace("{scratch}", scratch) if isinstance(v, str) else v for k, v in settings.items()}
