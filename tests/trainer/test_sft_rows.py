"""Rows for fine-tuning: what is refused, what is kept aside."""

from pathlib import Path

import pytest

from contracts.errors import ConfigError
from contracts.row import SftRow
from trainer.config import SftConfig
from trainer.sft import read_metrics, write_metrics
from trainer.sft_rows import split_rows


def _config(**changes) -> SftConfig:
    return SftConfig(model=Path("/m"), **{"batch_rows": 4, "heldout_fraction": 0.1, "max_tokens": 16, **changes})


def _rows(n: int) -> list[SftRow]:
    return [SftRow(session_id=f"s{i:03d}", input_ids_L=(1, 2, 3), loss_mask_L=(0, 1, 1)) for i in range(n)]


def test_whole_batches_are_held_out():
    split = split_rows(_rows(40), _config())
    assert (len(split.heldout), len(split.train)) == (4, 36)  # 10 % of 40 rows is one batch of four
    assert len(split_rows(_rows(100), _config()).heldout) == 8  # 2.5 batches, rounded to even
    assert {r.session_id for r in split.heldout}.isdisjoint(r.session_id for r in split.train)


def test_the_split_depends_on_the_seed_and_not_on_the_order_of_rows():
    rows = _rows(40)
    assert split_rows(rows, _config()) == split_rows(rows[::-1], _config())
    assert split_rows(rows, _config()) != split_rows(rows, _config(seed=1))


def test_too_few_rows_are_refused_with_a_cure():
    with pytest.raises(ConfigError, match=r"7 SFT rows are too few.*lower batch_rows, or set heldout_fraction = 0"):
        split_rows(_rows(7), _config())
    assert len(split_rows(_rows(7), _config(heldout_fraction=0.0)).train) == 7


@pytest.mark.parametrize(
    ("ids", "mask", "said"),
    [
        ((1, 2), (0, 1, 1), "has 2 tokens and 3 mask values"),
        ((1, 2), (1, 1), "must begin with a prompt token"),
        ((1, 2), (0, 0), "at least one trained token"),
        (tuple(range(17)), (0, *[1] * 16), "has 17 tokens, more than max_tokens = 16"),
    ],
)
def test_a_row_that_cannot_be_trained_is_refused(ids, mask, said):
    with pytest.raises(ConfigError, match=said):
        split_rows([*_rows(20), SftRow(session_id="bad", input_ids_L=ids, loss_mask_L=mask)], _config())


def test_a_second_start_replaces_the_steps_it_repeats(tmp_path):
    def line(step: int, name: str, value: float) -> str:
        return f'{{"step":{step},"data":{{"{name}":{value}}}}}\n'

    first = (
        line(1, "train/loss", 3.0) + line(2, "train/loss", 2.0) + line(2, "val/loss", 2.5) + line(3, "train/loss", 9.0)
    )
    (tmp_path / "verl_metrics-000000.jsonl").write_text(first)
    (tmp_path / "verl_metrics-000002.jsonl").write_text(line(3, "train/loss", 1.0))
    write_metrics(tmp_path)
    assert [(m.step, m.loss, m.heldout_loss) for m in read_metrics(tmp_path)] == [
        (1, 3.0, None),
        (2, 2.0, 2.5),
        (3, 1.0, None),
    ]
