"""Load a checkpoint for CPU decoding and replace its weights in place."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM
from transformers.utils import logging as transformers_logging

from contracts.errors import ConfigError, EngineError

PLAIN_ATTENTION = frozenset({"full_attention", "sliding_attention"})
"""Layer types whose state is keys and values alone, and which the mask can cut."""


def load_model(path: Path, context_tokens: int) -> Any:
    """Load the causal language model at ``path`` in float32 with sdpa attention, ready for inference.

    Raises:
        ConfigError: no usable checkpoint there, an architecture that does not keep plain keys and values, or a context
            longer than the model's.
    """
    if not (path / "config.json").is_file():
        raise ConfigError(
            f"model {str(path)!r} is no checkpoint: config.json is missing; give a Hugging Face model directory."
        )
    bar = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        model = AutoModelForCausalLM.from_pretrained(
            path, dtype=torch.float32, attn_implementation="sdpa", local_files_only=True
        )
    except (OSError, ValueError) as e:
        raise ConfigError(f"model {str(path)!r} cannot be loaded: {e}") from e
    finally:
        if bar:
            transformers_logging.enable_progress_bar()
    _check_architecture(path, model.config.get_text_config(decoder=True), context_tokens)
    return model.eval().requires_grad_(False)


def _check_architecture(path: Path, config: Any, context_tokens: int) -> None:
    other = set(getattr(config, "layer_types", None) or ()) - PLAIN_ATTENTION
    if other:
        raise ConfigError(
            f"model {str(path)!r} has layers of type {', '.join(sorted(other))}; the local engine serves "
            f"{' and '.join(sorted(PLAIN_ATTENTION))} only. Serve it with vLLM."
        )
    longest = getattr(config, "max_position_embeddings", None)
    if longest is not None and context_tokens > longest:
        raise ConfigError(
            f"context_tokens = {context_tokens} is longer than the {longest} positions of model {str(path)!r}; "
            f"set it to {longest} or less."
        )


def check_weights(model: Any, state: Mapping[str, Tensor]) -> None:
    """Whether ``state`` is a full set of weights for ``model``; a name tied to one that is there may lack.

    Raises:
        EngineError: a name is missing or unknown, a shape differs, or tied names carry different values.
    """
    own: dict[str, Tensor] = model.state_dict()
    unknown = sorted(state.keys() - own.keys())
    given = {own[name].data_ptr(): name for name in state if name in own}
    missing = sorted(name for name, tensor in own.items() if name not in state and tensor.data_ptr() not in given)
    if unknown or missing:
        raise EngineError(
            f"weights do not fit the model: unknown {unknown[:3]} ({len(unknown)}), missing {missing[:3]} "
            f"({len(missing)}); send the full state_dict of the same architecture."
        )
    for name, tensor in state.items():
        if tensor.shape != own[name].shape:
            raise EngineError(
                f"weight {name} has shape {tuple(tensor.shape)}, the model's has {tuple(own[name].shape)}; "
                f"send the state_dict of the same architecture."
            )
        twin = given[own[name].data_ptr()]
        if twin != name and not torch.equal(tensor, state[twin]):
            raise EngineError(
                f"weights {name} and {twin} are one tensor in the model but differ in the update; send one."
            )


def copy_weights(model: Any, state: Mapping[str, Tensor]) -> None:
    """Copy ``state``, checked by :func:`check_weights`, into ``model``."""
    own: dict[str, Tensor] = model.state_dict()
    with torch.no_grad():
        for name, tensor in state.items():
            own[name].copy_(tensor)
