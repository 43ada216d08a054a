"""Which checkpoint counts."""

import json
import struct

import pytest

from contracts.errors import ConfigError, TrainerError
from trainer.checkpoints import (
    checkpoint_dir,
    complete_steps,
    latest_hf,
    mark_complete,
    mark_saved,
    point_to_latest,
    prune,
)


def _checkpoint(root, step: int, *, complete: bool = True):
    path = root / "checkpoints" / f"global_step_{step}"
    hf = path / "actor" / "huggingface"
    hf.mkdir(parents=True)
    (hf / "config.json").write_text('{"dtype": "bfloat16"}')
    header = json.dumps({"w": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}).encode()
    (hf / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    if complete:
        mark_complete(path)
    return path


def test_a_torn_checkpoint_is_dropped_and_the_one_before_resumed(tmp_path):
    _checkpoint(tmp_path, 5)
    torn = _checkpoint(tmp_path, 10, complete=False)
    tracker = tmp_path / "checkpoints" / "latest_checkpointed_iteration.txt"
    tracker.write_text("")  # a writer that was killed between opening and writing
    assert point_to_latest(tmp_path / "checkpoints") == 5
    assert tracker.read_text() == "5"
    assert not torn.exists()


def test_nothing_whole_means_a_fresh_start(tmp_path):
    _checkpoint(tmp_path, 5, complete=False)
    (tmp_path / "checkpoints" / "latest_checkpointed_iteration.txt").write_text("5")
    assert point_to_latest(tmp_path / "checkpoints") == 0
    assert list((tmp_path / "checkpoints").iterdir()) == []
    with pytest.raises(TrainerError, match="has no whole checkpoint"):
        latest_hf(tmp_path)


def test_only_the_newest_stay(tmp_path):
    for step in (9, 10, 11):
        _checkpoint(tmp_path, step)
    prune(tmp_path / "checkpoints", keep=2)
    assert complete_steps(tmp_path / "checkpoints") == [10, 11]
    assert latest_hf(tmp_path) == tmp_path / "checkpoints" / "global_step_11" / "actor" / "huggingface"


def test_the_config_names_the_type_of_the_stored_weights(tmp_path):
    path = _checkpoint(tmp_path, 1)
    assert json.loads((path / "actor" / "huggingface" / "config.json").read_text()) == {"dtype": "float32"}


def test_what_the_sft_trainer_named_in_its_tracker_is_whole(tmp_path):
    for step in (5, 10, 15):
        _checkpoint(tmp_path, step, complete=False)
    (tmp_path / "checkpoints" / "latest_checkpointed_iteration.txt").write_text("10")
    mark_saved(tmp_path / "checkpoints")
    assert complete_steps(tmp_path / "checkpoints") == [5, 10]


def test_a_directory_without_weights_is_no_start(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "tokenizer_config.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"it holds no \*\.safetensors"):
        checkpoint_dir(tmp_path)
