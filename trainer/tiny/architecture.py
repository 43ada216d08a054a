"""The shape of the tiny policy."""

import torch
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from trainer.tiny.tokenizer import CONTEXT_TOKENS

VOCAB_SIZE = 1024
HIDDEN_SIZE = 128
LAYERS = 3
HEADS = 2
HEAD_DIM = 64
MLP_SIZE = 384


def build_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> Qwen3ForCausalLM:
    """Make an untrained fp32 model with tied embeddings; ``seed`` decides its weights."""
    config = Qwen3Config(
        vocab_size=VOCAB_SIZE,
        hidden_size=HIDDEN_SIZE,
        intermediate_size=MLP_SIZE,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        head_dim=HEAD_DIM,
        max_position_embeddings=CONTEXT_TOKENS,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,  # pyright: ignore[reportArgumentType]
        pad_token_id=tokenizer.pad_token_id,  # pyright: ignore[reportArgumentType]
        dtype=torch.float32,
    )
    torch.manual_seed(seed)
    model = Qwen3ForCausalLM(config)
    assert model.generation_config is not None
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model
