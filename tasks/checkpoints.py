"""Where a policy's weights are: a checkpoint directory, or a run's directory that stands for its newest checkpoint."""

from pathlib import Path

from benchmarks.config import BenchmarkConfig
from trainer.checkpoints import checkpoint_dir, latest_hf


def checkpoint_of(model: Path) -> Path:
    """The checkpoint that ``model`` names, absolute.

    Raises:
        ConfigError: there is neither a checkpoint nor a run.
        TrainerError: the run has no whole checkpoint yet.
    """
    if (model / "checkpoints").is_dir():
        return latest_hf(model).resolve()
    return checkpoint_dir(model).resolve()


def with_checkpoints(config: BenchmarkConfig) -> BenchmarkConfig:
    """``config`` with every policy's model resolved to a checkpoint; raises as `checkpoint_of` does."""
    found = tuple(p.model_copy(update={"model": checkpoint_of(p.model)}) for p in config.policies)
    return config.model_copy(update={"policies": found})
