"""Our configs composed against veRL's own schema, for both kinds of hardware."""

import json
from pathlib import Path

import pytest

from contracts.errors import ConfigError
from contracts.rollout import Limits
from trainer.config import CpuHardware, GpuHardware, RlConfig, SftConfig
from trainer.verl_settings import environment, rl_settings, sft_settings

RUN = Path("/runs/rl-1")


def _rl(model: Path, hardware) -> RlConfig:
    return RlConfig(
        model=model,
        tasks=Path("/tasks"),
        steps=7,
        prompts_per_step=16,
        group_size=8,
        learning_rate=2e-6,
        context_tokens=4096,
        limits=Limits(answer_tokens=512),
        hardware=hardware,
    )


def test_settings_are_plain_json():
    settings = rl_settings(_rl(Path("/m"), CpuHardware()), RUN, "rl-1")
    assert json.loads(json.dumps(settings)) == settings


def test_micro_batches_hold_at_least_one_row():
    settings = rl_settings(_rl(Path("/m"), CpuHardware(micro_batch_tokens=1024)), RUN, "rl-1")
    assert settings["actor_rollout_ref.actor.ppo_max_token_len_per_gpu"] == 4096


def test_no_process_looks_for_a_network_or_a_home():
    env = environment(CpuHardware(threads=2), Path("/runs/m.jsonl"))
    assert env["HF_HUB_OFFLINE"] == env["TRANSFORMERS_OFFLINE"] == "1"
    assert env["RAY_USAGE_STATS_ENABLED"] == "0"
    assert env["OMP_NUM_THREADS"] == "2"
    assert len(env["RAY_AUTH_TOKEN"]) == 64


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("hardware", [CpuHardware(), GpuHardware(nodes=2, gpus_per_node=4, tensor_parallel=2)])
def test_verl_accepts_the_rl_config(tiny_policy, hardware):
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import omega_conf_to_dataclass, validate_config

    from trainer.verl_compose import compose_verl

    settings = rl_settings(_rl(tiny_policy, hardware), RUN, "rl-1")
    settings.pop(
        "actor_rollout_ref.model.external_lib", None
    )  # registers itself in veRL, which is for the training process only
    config = compose_verl("ppo_trainer", settings)
    assert not need_critic(config)
    assert not need_reference_policy(config)
    validate_config(config, use_reference_policy=False, use_critic=False)
    rollout = omega_conf_to_dataclass(config.actor_rollout_ref.rollout)
    actor = omega_conf_to_dataclass(config.actor_rollout_ref.actor)
    assert (rollout.n, rollout.temperature, rollout.max_model_len) == (8, 1.0, 4096)
    assert (actor.strategy, actor.loss_agg_mode, actor.optim.lr) == ("fsdp2", "seq-mean-token-mean", 2e-6)
    assert rollout.name == {"cpu": "openforge_cpu", "gpu": "vllm"}[hardware.kind]
    assert config.trainer.device == {"cpu": "cpu", "gpu": "cuda"}[hardware.kind]
    assert config.openforge.run_id == "rl-1"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("hardware", [CpuHardware(), GpuHardware()])
def test_verl_accepts_the_sft_config(tiny_policy, hardware):
    from verl.utils.config import omega_conf_to_dataclass

    from trainer.verl_compose import compose_verl

    config = SftConfig(model=tiny_policy, learning_rate=3e-4, warmup_steps=4, schedule="cosine", hardware=hardware)
    composed = compose_verl("sft_trainer_engine", sft_settings(config, RUN, train_rows=100, heldout=True))
    optimizer = omega_conf_to_dataclass(composed.optim)
    assert (optimizer.lr, optimizer.lr_warmup_steps, optimizer.lr_scheduler_type) == (3e-4, 4, "cosine")
    assert omega_conf_to_dataclass(composed.engine).strategy == "fsdp2"
    assert composed.data.val_files == "/runs/rl-1/heldout.parquet"


@pytest.mark.slow
def test_a_misspelt_key_is_refused():
    from trainer.verl_compose import compose_verl

    with pytest.raises(ConfigError, match=r"has no key 'trainer\.total_steps'"):
        compose_verl("ppo_trainer", {"trainer.total_steps": 3})
