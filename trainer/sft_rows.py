"""Rows for supervised fine-tuning: checked, shuffled, split and written as parquet. Imports pyarrow."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from contracts.errors import ConfigError
from contracts.row import SftRow
from trainer.config import SftConfig


@dataclass(frozen=True)
class SftSplit:
    train: tuple[SftRow, ...]
    heldout: tuple[SftRow, ...]


def split_rows(rows: Sequence[SftRow], config: SftConfig) -> SftSplit:
    """Shuffle by seed and keep whole batches aside for the held-out loss (veRL drops part batches).

    Raises:
        ConfigError: a row cannot be trained, or there are too few.
    """
    for row in rows:
        _check(row, config.max_tokens)
    order = sorted(rows, key=lambda r: r.session_id)
    random.Random(config.seed).shuffle(order)
    batches = max(1, round(len(order) * config.heldout_fraction / config.batch_rows)) if config.heldout_fraction else 0
    n = batches * config.batch_rows
    if len(order) - n < config.batch_rows:
        raise ConfigError(
            f"{len(order)} SFT rows are too few: one training batch of batch_rows = {config.batch_rows} and {n} "
            "held-out rows are needed. Record more sessions, lower batch_rows, or set heldout_fraction = 0."
        )
    return SftSplit(train=tuple(order[n:]), heldout=tuple(order[:n]))


def write_rows(path: Path, rows: Sequence[SftRow]) -> None:
    """One parquet row per SFT row: ``session_id``, ``input_ids``, ``loss_mask``."""
    table = pa.table(
        {
            "session_id": [r.session_id for r in rows],
            "input_ids": pa.array([r.input_ids_L for r in rows], pa.list_(pa.int64())),
            "loss_mask": pa.array([r.loss_mask_L for r in rows], pa.list_(pa.int8())),
        }
    )
    pq.write_table(table, path)


def _check(row: SftRow, max_tokens: int) -> None:
    where = f"SFT row of session {row.session_id!r}"
    if len(row.loss_mask_L) != len(row.input_ids_L):
        raise ConfigError(f"{where} has {len(row.input_ids_L)} tokens and {len(row.loss_mask_L)} mask values.")
    if row.loss_mask_L[0] != 0 or not any(row.loss_mask_L):
        raise ConfigError(f"{where} must begin with a prompt token (mask 0) and hold at least one trained token.")
    if len(row.input_ids_L) > max_tokens:
        raise ConfigError(
            f"{where} has {len(row.input_ids_L)} tokens, more than max_tokens = {max_tokens}; "
            "raise it or leave the row out."
        )
