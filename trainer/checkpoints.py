"""The checkpoints of a run on disk: which one is whole, which to resume from, which to delete.

checkpoints/global_step_N/actor/huggingface   RL: weights and tokenizer in Hugging Face's format
checkpoints/global_step_N/huggingface         SFT: the same
checkpoints/global_step_N/complete            written last
checkpoints/latest_checkpointed_iteration.txt read by veRL's resume
"""

import json
import re
import shutil
from pathlib import Path

from contracts.errors import ConfigError, TrainerError

_TRACKER = "latest_checkpointed_iteration.txt"
_DTYPES = {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}
_STEP = re.compile(r"global_step_(\d+)")


def checkpoint_dir(path: Path) -> Path:
    """The path itself, when it is a checkpoint that training can start from.

    Raises:
        ConfigError: config, weights or tokenizer are missing.
    """
    for wanted in ("config.json", "tokenizer_config.json", "*.safetensors"):
        if not any(path.glob(wanted)):
            raise ConfigError(
                f"model {str(path)!r} is no checkpoint with tokenizer: it holds no {wanted}. "
                "Give the directory that a training run or `save_pretrained` wrote."
            )
    return path


def mark_complete(checkpoint: Path) -> None:
    """Say that everything of a checkpoint is on disk."""
    path = hf_dir(checkpoint)
    if path is not None:
        _tell_true_dtype(path)
    (checkpoint / "complete").touch()


def _tell_true_dtype(path: Path) -> None:
    """Make config.json name the type of the stored weights.

    veRL 0.9.1 writes ``bfloat16`` there whatever it stores, and transformers would round float32 weights to it when it
    loads them.
    """
    weights = min(path.glob("*.safetensors"), default=None)
    if weights is None:
        return
    with weights.open("rb") as f:  # safetensors: eight bytes of length, then a JSON header
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
    stored = {tensor["dtype"] for name, tensor in header.items() if name != "__metadata__"}
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    if len(stored) == 1 and (dtype := _DTYPES.get(stored.pop())) is not None:
        config.pop("torch_dtype", None)
        config["dtype"] = dtype
        (path / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def mark_saved(checkpoints: Path) -> None:
    """Mark what veRL's SFT trainer has saved: it writes its tracker last and in one move, so that one and older ones
    are whole."""
    tracker = checkpoints / _TRACKER
    if not tracker.is_file():
        return
    newest = int(tracker.read_text(encoding="ascii"))
    for path in checkpoints.glob("global_step_*"):
        match = _STEP.fullmatch(path.name)
        if match and int(match.group(1)) <= newest:
            mark_complete(path)


def complete_steps(checkpoints: Path) -> list[int]:
    """Steps whose checkpoint is whole, oldest first."""
    found = (_STEP.fullmatch(p.parent.name) for p in checkpoints.glob("global_step_*/complete"))
    return sorted(int(m.group(1)) for m in found if m)


def point_to_latest(checkpoints: Path) -> int:
    """Make veRL resume from the newest whole checkpoint and drop torn ones; returns its step, 0 when there is none.

    A killed process may leave a half-written checkpoint, or a tracker that names one.
    """
    whole = complete_steps(checkpoints)
    for path in checkpoints.glob("global_step_*"):
        match = _STEP.fullmatch(path.name)
        if match and int(match.group(1)) not in whole:
            shutil.rmtree(path)
    tracker = checkpoints / _TRACKER
    if not whole:
        tracker.unlink(missing_ok=True)
        return 0
    fresh = tracker.with_suffix(".tmp")
    fresh.write_text(str(whole[-1]), encoding="ascii")
    fresh.replace(tracker)
    return whole[-1]


def prune(checkpoints: Path, keep: int) -> None:
    """Delete all but the newest ``keep`` whole checkpoints."""
    for step in complete_steps(checkpoints)[:-keep]:
        path = checkpoints / f"global_step_{step}"
        (path / "complete").unlink()
        shutil.rmtree(path)


def hf_dir(checkpoint: Path) -> Path | None:
    """The Hugging Face directory of one checkpoint; None when it has none."""
    for path in (checkpoint / "actor" / "huggingface", checkpoint / "huggingface"):
        if (path / "config.json").is_file():
            return path
    return None


def latest_hf(run_dir: Path) -> Path:
    """Weights and tokenizer of a run's newest whole checkpoint.

    Raises:
        TrainerError: the run has none yet.
    """
    checkpoints = run_dir / "checkpoints"
    for step in reversed(complete_steps(checkpoints)):
        path = hf_dir(checkpoints / f"global_step_{step}")
        if path is not None:
            return path
    raise TrainerError(
        f"run {str(run_dir)!r} has no whole checkpoint; start it again to continue, or choose another run."
    )
