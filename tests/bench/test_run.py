import importlib.util

import pytest

from bench.run import BENCHMARKS, main, run_apart


def test_every_benchmark_module_exists():
    assert [m for m in BENCHMARKS.values() if importlib.util.find_spec(m) is None] == []


def test_an_unknown_name_is_a_bad_request(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stopped:
        main(["nope"])
    assert stopped.value.code == 2
    assert "no benchmark nope; known: engine" in capsys.readouterr().err


def test_a_benchmark_that_fails_is_reported_with_its_last_words():
    (result,) = run_apart("broken", "json", timeout_s=60)  # a module without `run`
    assert result["name"] == "broken"
    assert "exit code 1: " in result["error"]
    assert "AttributeError" in result["error"]


def test_a_benchmark_that_takes_too_long_is_stopped_and_reported():
    assert run_apart("slow", "bench.engine", timeout_s=0.01) == [
        {"name": "slow", "error": "still running after 0.01 s; stopped"}
    ]
