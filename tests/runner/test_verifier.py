"""How the verifier's word becomes a reward: every number that is none is an error, never 0."""

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import pytest
from attempts import LIMITS, attempt, session_body, tar_of
from fake_proxy import FakeProxy

from sandboxes.local import LocalProcesses

RUNNER = Path(__file__).resolve().parents[2] / "harness_images" / "runner"


def runner_module(name: str) -> ModuleType:
    """A module of the runner that imports no sibling."""
    spec = importlib.util.spec_from_file_location(f"runner_{name}", RUNNER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


read_reward = runner_module("reward").read_reward


@pytest.mark.parametrize(
    ("text", "reward"), [("1\n", 1.0), ("0", 0.0), (" 0.25 \n", 0.25), ("1e-3", 0.001), ("+.5", 0.5), ("1.", 1.0)]
)
def test_a_number_between_0_and_1_is_the_reward(tmp_path: Path, text: str, reward: float):
    (tmp_path / "reward.txt").write_text(text)
    assert read_reward(str(tmp_path)) == (reward, {}, None)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "reward.txt is empty"),
        (" \n", "reward.txt is empty"),
        ("nan", "reward.txt holds 'nan', no number between 0 and 1"),
        ("inf", "reward.txt holds 'inf', no number between 0 and 1"),
        ("passed", "reward.txt holds 'passed', no number between 0 and 1"),
        ("1 2", "reward.txt holds '1 2', no number between 0 and 1"),
        ("1_0", "reward.txt holds '1_0', no number between 0 and 1"),
        ("١", "reward.txt holds '١', no number between 0 and 1"),
        ("1.5", "reward.txt holds 1.5, outside 0 to 1"),
        ("-0.1", "reward.txt holds -0.1, outside 0 to 1"),
        ("1e999", "reward.txt holds inf, outside 0 to 1"),
        ("0" * 70000, "reward.txt is larger than 65536 bytes"),
    ],
)
def test_anything_else_is_no_reward(tmp_path: Path, text: str, why: str):
    (tmp_path / "reward.txt").write_text(text)
    assert read_reward(str(tmp_path)) == (None, {}, why)


@pytest.mark.parametrize(
    ("text", "reward", "others"),
    [
        ('{"reward": 1}', 1.0, {}),
        ('{"reward": 0.5, "speed": 12.5, "errors": -3}', 0.5, {"speed": 12.5, "errors": -3.0}),
        ('{"accuracy": 0.75}', 0.75, {}),
    ],
)
def test_reward_json_gives_the_reward_and_further_numbers(
    tmp_path: Path, text: str, reward: float, others: dict[str, float]
):
    (tmp_path / "reward.json").write_text(text)
    (tmp_path / "reward.txt").write_text("0.1")
    assert read_reward(str(tmp_path)) == (reward, others, None)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"reward": true}', "reward.json: 'reward' is 'true', no finite number"),
        ('{"reward": "1"}', "reward.json: 'reward' is '\"1\"', no finite number"),
        ('{"reward": NaN}', "reward.json: 'reward' is 'NaN', no finite number"),
        ('{"reward": null}', "reward.json: 'reward' is 'null', no finite number"),
        ('{"reward": 2}', "reward.json holds 2.0, outside 0 to 1"),
        ('{"reward": 1, "x": Infinity}', "reward.json: 'x' is 'Infinity', no finite number"),
        ('{"a": 1, "b": 0}', "reward.json has several keys (a, b) and none is 'reward'"),
        ("{}", "reward.json holds '{}', no object with numbers"),
        ("1", "reward.json holds '1', no object with numbers"),
        ("1" + "0" * 400, "reward.json holds '1" + "0" * 59 + "…', no object with numbers"),
        ('{"reward": 1' + "0" * 400 + "}", "reward.json holds a number or a nesting too large to read"),
        ("[" * 60000, "reward.json holds a number or a nesting too large to read"),
    ],
)
def test_a_reward_json_that_is_wrong_is_no_reward_even_with_a_good_reward_txt(tmp_path: Path, text: str, why: str):
    (tmp_path / "reward.json").write_text(text)
    (tmp_path / "reward.txt").write_text("1")
    assert read_reward(str(tmp_path)) == (None, {}, why)


def test_broken_json_names_what_was_written(tmp_path: Path):
    (tmp_path / "reward.json").write_text("reward: 1")
    reward, _, why = read_reward(str(tmp_path))
    assert reward is None
    assert why.startswith("reward.json holds 'reward: 1', not JSON: ")


def test_a_directory_in_the_place_of_the_reward_is_no_reward(tmp_path: Path):
    (tmp_path / "reward.txt").mkdir()
    assert read_reward(str(tmp_path)) == (None, {}, "reward.txt is not a regular file")


def test_a_pipe_in_the_place_of_the_reward_is_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "reward.txt")
    assert read_reward(str(tmp_path)) == (None, {}, "reward.txt is not a regular file")


async def test_a_verifier_that_fails_after_writing_a_reward_is_graded(sandbox: LocalProcesses, proxy: FakeProxy):
    done = await attempt(sandbox, proxy, session_body(test_sh='echo 0.5 > "$OPENFORGE_REWARD_DIR/reward.txt"; exit 3'))
    assert (done.result.reward, done.result.evidence.verifier_exit_code) == (0.5, 3)


async def test_a_verifier_that_crashes_gives_no_reward_and_its_output_is_kept(
    sandbox: LocalProcesses, proxy: FakeProxy
):
    done = await attempt(sandbox, proxy, session_body(test_sh="echo what; nonsense-command; exit 2"))
    assert done.result.reward is None
    assert done.result.reward_error == "the verifier wrote neither reward.json nor reward.txt (exit code 2)"
    log = done.result.evidence.verifier_log
    assert log is not None
    assert log.text.startswith("what\n")
    assert "nonsense-command: command not found" in log.text


async def test_a_verifier_that_runs_too_long_gives_no_reward_even_if_it_wrote_one(
    sandbox: LocalProcesses, proxy: FakeProxy
):
    limits = LIMITS.model_copy(update={"verifier_s": 0.4})
    test_sh = 'echo 1 > "$OPENFORGE_REWARD_DIR/reward.txt"; sleep 1000'
    done = await attempt(sandbox, proxy, session_body(test_sh=test_sh, limits=limits))
    assert (done.result.reward, done.result.reward_error) == (None, "the verifier ran longer than 0.4 s")


async def test_the_verifier_stands_in_the_workspace_and_finds_its_files_beside_itself(
    sandbox: LocalProcesses, proxy: FakeProxy
):
    body = session_body(agent="echo work > made")
    test_sh = 'cat made && . "$(dirname "$0")/inner/give.sh"'
    tests_tar = tar_of({"test.sh": test_sh, "inner/give.sh": 'echo 0.5 > "$OPENFORGE_REWARD_DIR/reward.txt"'})
    done = await attempt(sandbox, proxy, body.model_copy(update={"tests_tar": tests_tar}))
    assert done.result.reward == 0.5
