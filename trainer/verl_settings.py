"""Our config → veRL settings, dotted key → value. The only place that knows veRL's keys; pure.

A key with ``+`` in front is one that veRL's own schema leaves open; any other unknown key is an error when the settings
are composed.
Source: veRL 0.9.1, ``trainer/config``.
"""

import secrets
from pathlib import Path
from typing import Any

from trainer.config import CpuHardware, GpuHardware, RlConfig, SftConfig
from trainer.rl_layout import checkpoints_dir, prompts_file

Settings = dict[str, Any]

_FP32 = {"param_dtype": "fp32", "reduce_dtype": "fp32", "buffer_dtype": "fp32"}
_SAVED = ["model", "optimizer", "extra", "hf_model"]
"""``hf_model``: each checkpoint can be served and trained further without veRL."""


def rl_settings(config: RlConfig, run_dir: Path, run_id: str) -> Settings:
    """Settings of ``verl.trainer.main_ppo``; ``{scratch}`` is filled in by the training process."""
    hardware = config.hardware
    tokens = max(config.context_tokens, hardware.micro_batch_tokens)
    return {
        "+openforge.run_dir": str(run_dir),
        "+openforge.run_id": run_id,
        "+openforge.mini_batches": config.mini_batches,
        "+openforge.keep_checkpoints": config.keep_checkpoints,
        "algorithm.adv_estimator": "grpo",
        "data.train_files": str(prompts_file(run_dir)),
        "data.val_files": str(prompts_file(run_dir)),
        "data.custom_cls.path": "pkg://trainer.prompt_dataset",
        "data.custom_cls.name": "PromptDataset",
        "data.train_batch_size": config.prompts_per_step,
        "data.max_prompt_length": config.context_tokens - config.limits.answer_tokens,
        "data.max_response_length": config.limits.answer_tokens,
        "data.dataloader_num_workers": 0,
        "data.shuffle": False,
        "data.seed": config.seed,
        "trainer.project_name": "openforge",
        "trainer.experiment_name": run_id,
        "trainer.logger": ["console", "file"],
        "trainer.total_training_steps": config.steps,
        "trainer.total_epochs": 1,
        "trainer.val_before_train": False,
        "trainer.test_freq": -1,
        "trainer.save_freq": config.save_every,
        "trainer.resume_mode": "auto",
        "trainer.default_local_dir": str(checkpoints_dir(run_dir)),
        "trainer.v1.sampler.custom_sampler.path": "pkg://trainer.sampler",
        "trainer.v1.sampler.custom_sampler.name": "WatchfulReplayBuffer",
        "+trainer.v1.sampler.sampler_kwargs.poll_s": 0.2,
        "actor_rollout_ref.model.path": str(config.model),
        # The row weights of trainer/advantages assume this way of averaging.
        "actor_rollout_ref.actor.loss_agg_mode": "seq-mean-token-mean",
        "actor_rollout_ref.actor.ppo_mini_batch_size": config.prompts_per_step,
        "actor_rollout_ref.actor.clip_ratio": config.clip_ratio,
        "actor_rollout_ref.actor.clip_ratio_low": config.clip_ratio,
        "actor_rollout_ref.actor.clip_ratio_high": config.clip_ratio,
        "actor_rollout_ref.actor.use_dynamic_bsz": True,
        "actor_rollout_ref.actor.ppo_max_token_len_per_gpu": tokens,
        "actor_rollout_ref.actor.data_loader_seed": config.seed,
        "actor_rollout_ref.actor.strategy": "fsdp2",
        "actor_rollout_ref.actor.fsdp_config.strategy": "fsdp2",
        "actor_rollout_ref.ref.strategy": "fsdp2",
        "actor_rollout_ref.ref.fsdp_config.strategy": "fsdp2",
        "actor_rollout_ref.actor.optim.lr": config.learning_rate,
        "actor_rollout_ref.actor.optim.lr_warmup_steps": config.warmup_steps,
        "actor_rollout_ref.actor.checkpoint.save_contents": _SAVED,
        "actor_rollout_ref.rollout.n": config.group_size,
        "actor_rollout_ref.rollout.temperature": config.temperature,
        "actor_rollout_ref.rollout.seed": config.seed,
        "actor_rollout_ref.rollout.max_model_len": config.context_tokens,
        "actor_rollout_ref.rollout.max_num_seqs": max(config.max_parallel, 1),
        "actor_rollout_ref.rollout.calculate_log_probs": True,
        "+actor_rollout_ref.rollout.agent.agent_loop_manager_class": "trainer.agent_loop.ProxyAgentLoop",
        # Neither reward workers nor veRL's own agent-loop workers are used: the verifier has graded each rollout.
        "reward.num_workers": 0,
        "actor_rollout_ref.rollout.agent.num_workers": 1,
        **_RL_HARDWARE[hardware.kind](hardware),
    }


def _rl_cpu(hardware: CpuHardware) -> Settings:
    return {
        "trainer.device": "cpu",
        "trainer.n_gpus_per_node": 1,
        "trainer.nnodes": 1,
        # Logical resources: veRL gives each rank one "GPU" and three CPUs, the rest are helpers that mostly wait.
        "ray_kwargs.ray_init.num_cpus": 8,
        "+ray_kwargs.ray_init.num_gpus": 1,
        "+ray_kwargs.ray_init.include_dashboard": False,
        "+ray_kwargs.ray_init.object_store_memory": hardware.object_store_mib << 20,
        "+ray_kwargs.ray_init._temp_dir": "{scratch}",
        "transfer_queue.backend.SimpleStorage.num_data_storage_units": 1,
        "actor_rollout_ref.model.external_lib": "trainer.verl_cpu.rollout",
        # Packed sequences need flash-attention to be fast; padded ones do not.
        "actor_rollout_ref.model.use_remove_padding": False,
        "actor_rollout_ref.model.enable_gradient_checkpointing": False,
        "+actor_rollout_ref.model.override_config.attn_implementation": "sdpa",
        "+actor_rollout_ref.actor.fsdp_config.mixed_precision": _FP32,
        "actor_rollout_ref.actor.fsdp_config.use_torch_compile": False,
        "actor_rollout_ref.actor.use_torch_compile": False,
        "actor_rollout_ref.ref.fsdp_config.use_torch_compile": False,
        "actor_rollout_ref.rollout.name": "openforge_cpu",
        "actor_rollout_ref.rollout.tensor_model_parallel_size": 1,
        "actor_rollout_ref.rollout.load_format": "auto",
        "actor_rollout_ref.rollout.free_cache_engine": False,
        "reward.reward_model.rollout.name": "openforge_cpu",
    }


def _rl_gpu(hardware: GpuHardware) -> Settings:
    return {
        "trainer.device": "cuda",
        "trainer.n_gpus_per_node": hardware.gpus_per_node,
        "trainer.nnodes": hardware.nodes,
        "actor_rollout_ref.model.use_remove_padding": True,
        "actor_rollout_ref.model.enable_gradient_checkpointing": True,
        "actor_rollout_ref.actor.fsdp_config.param_offload": hardware.offload,
        "actor_rollout_ref.actor.fsdp_config.optimizer_offload": hardware.offload,
        "actor_rollout_ref.rollout.name": "vllm",
        "actor_rollout_ref.rollout.tensor_model_parallel_size": hardware.tensor_parallel,
        "actor_rollout_ref.rollout.gpu_memory_utilization": hardware.gpu_memory_fraction,
        "reward.reward_model.rollout.name": "vllm",
    }


_RL_HARDWARE = {"cpu": _rl_cpu, "gpu": _rl_gpu}


def sft_settings(config: SftConfig, run_dir: Path, *, train_rows: int, heldout: bool) -> Settings:
    """Settings of ``verl.trainer.sft_trainer``."""
    hardware = config.hardware
    return {
        "model.path": str(config.model),
        "data.train_files": str(run_dir / "train.parquet"),
        "data.val_files": str(run_dir / "heldout.parquet") if heldout else None,
        "data.custom_cls.path": "pkg://trainer.sft_dataset",
        "data.custom_cls.name": "TokenRowDataset",
        "+data.passes": config.epochs,
        "data.train_batch_size": config.batch_rows,
        "data.max_length": config.max_tokens,
        "data.max_token_len_per_gpu": max(config.max_tokens, hardware.micro_batch_tokens),
        "data.use_dynamic_bsz": True,
        "data.num_workers": 0,
        "engine.strategy": "fsdp2",
        "optim.lr": config.learning_rate,
        "optim.lr_warmup_steps": config.warmup_steps,
        "optim.lr_scheduler_type": config.schedule,
        "checkpoint.save_contents": _SAVED,
        "trainer.project_name": "openforge",
        "trainer.experiment_name": "sft",
        "trainer.logger": ["console", "file"],
        "trainer.total_epochs": 1,
        "trainer.test_freq": max(1, train_rows // config.batch_rows) if heldout else -1,
        "trainer.save_freq": config.save_every or -1,
        "trainer.max_ckpt_to_keep": config.keep_checkpoints,
        "trainer.resume_mode": "auto",
        "trainer.default_local_dir": str(checkpoints_dir(run_dir)),
        **_SFT_HARDWARE[hardware.kind](hardware),
    }


def _sft_cpu(hardware: CpuHardware) -> Settings:
    return {
        "trainer.device": "cpu",
        "model.use_remove_padding": False,
        "model.enable_gradient_checkpointing": False,
        "+model.override_config.attn_implementation": "sdpa",
        "+engine.mixed_precision": _FP32,
        "engine.use_torch_compile": False,
    }


def _sft_gpu(hardware: GpuHardware) -> Settings:
    return {
        "trainer.device": "cuda",
        "trainer.n_gpus_per_node": hardware.gpus_per_node,
        "trainer.nnodes": hardware.nodes,
        "model.use_remove_padding": True,
        "model.enable_gradient_checkpointing": True,
    }


_SFT_HARDWARE = {"cpu": _sft_cpu, "gpu": _sft_gpu}


def environment(hardware: CpuHardware | GpuHardware, metrics: Path) -> dict[str, str]:
    """Environment of a training process; ``metrics``: where veRL's file logger writes."""
    return {
        "VERL_FILE_LOGGER_PATH": str(metrics),
        "VERL_USE_EXTERNAL_PLUGINS": "none",
        "HYDRA_FULL_ERROR": "1",
        "PYTHONUNBUFFERED": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",  # Ray's default of 15 starves the engine beside the sandboxes
        "RAY_DEDUP_LOGS": "0",
        # A token of this start only, instead of one that Ray would write into the home directory.
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        **_ENVIRONMENT[hardware.kind](hardware),
    }


def _cpu_environment(hardware: CpuHardware) -> dict[str, str]:
    return {
        "VERL_PLATFORM": "cpu",
        "VERL_USE_EXTERNAL_MODULES": "trainer.verl_cpu.platform",
        # veRL registers its FSDP engine for cuda and npu only, and lets this name choose one.
        "VERL_ENGINE_DEVICE": "cuda",
        "OMP_NUM_THREADS": str(hardware.threads),
        "MKL_NUM_THREADS": str(hardware.threads),
        "TQ_NUM_THREADS": "2",
        "TQ_CLIENT_ZMQ_IO_THREADS": "2",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        # Eight idle Python workers at start cost more CPU time than the few that are used.
        "RAY_prestart_worker_first_driver": "0",
    }


def _gpu_environment(hardware: GpuHardware) -> dict[str, str]:
    return {}


_ENVIRONMENT = {"cpu": _cpu_environment, "gpu": _gpu_environment}
