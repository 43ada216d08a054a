import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from contracts.errors import ConfigError
from proxy.config import EngineConfig, LocalEngine, OpenAIEngine, ScriptedEngine
from proxy.engines.scripted import ScriptedMessageEngine
from proxy.engines.table import ENGINES, make_engine


def test_every_engine_config_has_an_engine():
    union, *_ = get_args(EngineConfig)
    assert set(get_args(union)) == set(ENGINES)


def test_a_scripted_config_makes_a_scripted_engine():
    assert isinstance(make_engine("oracle", ScriptedEngine()), ScriptedMessageEngine)


def test_an_engine_that_cannot_serve_is_named(tmp_path: Path):
    with pytest.raises(ConfigError, match="engine 'base': model .* config.json is missing"):
        make_engine("base", LocalEngine(model=tmp_path))
    with pytest.raises(ConfigError, match="engine 'judge': api_key_env = 'NOBODY_SETS_THIS_KEY'"):
        make_engine("judge", OpenAIEngine(base_url="http://x/v1", model="m", api_key_env="NOBODY_SETS_THIS_KEY"))


def test_the_table_loads_without_torch():
    code = "import sys, proxy.engines.table; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
