"""Settings of supervised fine-tuning and of reinforcement learning."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from contracts.config import Config
from contracts.rollout import Limits
from proxy.config import RendererConfig


class CpuHardware(Config):
    """This machine's processor: small models, no accelerator."""

    kind: Literal["cpu"] = "cpu"
    threads: int = Field(default=1, ge=1)
    """Threads of torch in each process; 1 is fastest for models of a few million parameters."""
    micro_batch_tokens: int = Field(default=16384, ge=16)
    """Tokens in one forward and backward pass; raised to the context when that is longer."""
    object_store_mib: int = Field(default=200, ge=80)
    """Ray's shared memory."""


class GpuHardware(Config):
    """NVIDIA GPUs: vLLM samples, FSDP2 trains, both on the same devices in turn. Needs ``openforge-rl[gpu]``."""

    kind: Literal["gpu"] = "gpu"
    nodes: int = Field(default=1, ge=1)
    """Machines of the Ray cluster."""
    gpus_per_node: int = Field(default=8, ge=1)
    tensor_parallel: int = Field(default=1, ge=1)
    """GPUs that share one vLLM replica."""
    gpu_memory_fraction: float = Field(default=0.6, gt=0, lt=1)
    """Part of each GPU that vLLM may take while it samples."""
    offload: bool = True
    """Keep parameters and optimizer state in host memory while vLLM samples."""
    micro_batch_tokens: int = Field(default=16384, ge=16)
    """Tokens per GPU in one forward and backward pass; raised to the context when that is longer."""


HardwareConfig = Annotated[CpuHardware | GpuHardware, Field(discriminator="kind")]


class SftConfig(Config):
    """One supervised fine-tuning run."""

    model: Path
    """Checkpoint directory to start from, with tokenizer."""
    epochs: int = Field(default=3, ge=1)
    """Passes over the training rows."""
    batch_rows: int = Field(default=16, ge=1)
    """Rows per optimizer step."""
    learning_rate: float = Field(default=1e-3, gt=0)
    """Peak learning rate of AdamW."""
    warmup_steps: int = Field(default=0, ge=0)
    """Optimizer steps until the peak learning rate."""
    schedule: Literal["constant", "cosine"] = "constant"
    """Learning rate after the warm-up."""
    heldout_fraction: float = Field(default=0.05, ge=0, lt=1)
    """Part of the rows kept for the held-out loss; 0: none. At least one row when above 0."""
    max_tokens: int = Field(default=1024, ge=16)
    """Longest row; a longer one is an error, never cut."""
    save_every: int = Field(default=0, ge=0)
    """Optimizer steps between checkpoints; 0: only the last step."""
    keep_checkpoints: int = Field(default=2, ge=1)
    """Newest checkpoints that stay on disk."""
    seed: int = Field(default=0, ge=0)
    """Order of rows and choice of the held-out ones."""
    timeout_s: float = Field(default=3600.0, gt=0)
    """Longest run of the training process, seconds."""
    hardware: HardwareConfig = CpuHardware()
    """Where it trains."""


class RlConfig(Config):
    """One reinforcement-learning run: GRPO with rollouts through the real harness."""

    model: Path
    """Checkpoint directory to start from, with tokenizer."""
    tasks: Path
    """Directory of task directories; each is a prompt."""
    harness: str = "react"
    """Folder name under harness_images/."""
    steps: int = Field(default=20, ge=1)
    """Training steps; one optimizer pass over one batch of rollouts each."""
    prompts_per_step: int = Field(default=8, ge=1)
    """Tasks in one step."""
    group_size: int = Field(default=8, ge=2)
    """Rollouts of each task that are compared with each other."""
    learning_rate: float = Field(default=1e-3, gt=0)
    """Peak learning rate of AdamW."""
    warmup_steps: int = Field(default=0, ge=0)
    """Steps until the peak learning rate."""
    clip_ratio: float = Field(default=0.2, gt=0, lt=1)
    """PPO clip range."""
    mini_batches: int = Field(default=1, ge=1)
    """Optimizer steps per training step; 1 is exactly on policy."""
    temperature: float = Field(default=1.0, gt=0)
    """Sampling temperature of the policy, pinned whatever the harness asks."""
    context_tokens: int = Field(default=1024, ge=16)
    """Longest prompt plus answer that the engine takes, tokens."""
    renderer: RendererConfig = RendererConfig()
    """How messages become the policy's tokens."""
    limits: Limits = Field(default_factory=Limits)
    """What one rollout may use."""
    max_parallel: int = Field(default=8, ge=1)
    """Rollouts that run at the same time."""
    truncated: Literal["discard", "grade"] = "discard"
    """Rollouts that hit a limit: leave the group, or count with the verifier's reward."""
    refill: int = Field(default=0, ge=0)
    """Extra rollouts per task and step that may replace failed ones; 0: the group just shrinks."""
    step_timeout_s: float = Field(default=3600.0, gt=0)
    """Longest wait for the rollouts of one step; those without a result by then count as failed."""
    start_timeout_s: float = Field(default=600.0, gt=0)
    """Longest wait for the training process to serve its first model call."""
    save_every: int = Field(default=5, ge=1)
    """Steps between checkpoints; the last step is always saved."""
    keep_checkpoints: int = Field(default=2, ge=1)
    """Newest checkpoints that stay on disk."""
    seed: int = Field(default=0, ge=0)
    """Order of tasks and sampling."""
    hardware: HardwareConfig = CpuHardware()
    """Where it trains and samples."""

    @model_validator(mode="after")
    def _fits(self) -> "RlConfig":
        asked = self.limits.context_tokens
        if asked is not None and asked > self.context_tokens:
            raise ValueError(f"limits.context_tokens = {asked} is more than context_tokens = {self.context_tokens}")
        if self.limits.answer_tokens >= self.context_tokens:
            raise ValueError(
                f"limits.answer_tokens = {self.limits.answer_tokens} leaves no prompt in "
                f"context_tokens = {self.context_tokens}"
            )
        return self
