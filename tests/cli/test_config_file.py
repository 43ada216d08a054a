from pathlib import Path

import pytest

from contracts.errors import ConfigError
from flows.config import BenchmarkRun, DatagenRun, RlRun, SftRun
from flows.config_file import read_config
from proxy.config import ProxyConfig
from tasks.config import Teacher

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
MODELS = {"datagen": DatagenRun, "sft": SftRun, "rl-train": RlRun, "benchmark": BenchmarkRun, "proxy": ProxyConfig}


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda p: p.name)
def test_every_shipped_config_loads(path: Path):
    read_config(MODELS[path.stem.split(".")[-1]], path, [])


def test_an_override_is_toml_and_reaches_into_tables(tmp_path: Path):
    (tmp_path / "c.toml").write_text('tasks = "set"\n[limits]\nturns = 3\n')

    teacher = read_config(Teacher, tmp_path / "c.toml", ["limits.turns=5", 'families=["a", "b"]', "split=eval"])

    assert teacher.limits.turns == 5
    assert teacher.families == ("a", "b")
    assert teacher.split == "eval"


def test_an_override_below_a_value_that_is_no_table_is_refused(tmp_path: Path):
    (tmp_path / "c.toml").write_text('tasks = "set"\n')

    with pytest.raises(ConfigError, match="'tasks' is 'set', not a table"):
        read_config(Teacher, tmp_path / "c.toml", ["tasks.x=1"])
