"""The shell side of the checks, each run by bash on a real directory."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from datagen.checks import (
    Check,
    gone,
    same,
    same_archive,
    same_ini,
    same_json,
    same_number,
    same_text,
    verifier_files,
    verifier_script,
)

Verify = Callable[..., tuple[float, str]]


@pytest.fixture
def verify(tmp_path: Path) -> Verify:
    """Puts a file into a working directory, runs one check, gives reward and message."""

    def run(check: Check, content: bytes | None, before: str = "true") -> tuple[float, str]:
        workspace, tests = tmp_path / "workspace", tmp_path / "tests"
        for name, data in {"test.sh": verifier_script([check]).encode(), **verifier_files([check])}.items():
            (tests / name).parent.mkdir(parents=True, exist_ok=True)
            (tests / name).write_bytes(data)
        workspace.mkdir(exist_ok=True)
        if content is not None:
            (workspace / check.path).write_bytes(content)
        subprocess.run(["bash", "-c", before], cwd=workspace, check=True, timeout=10)
        env = {**os.environ, "OPENFORGE_REWARD_DIR": str(tmp_path / "rewards" / "deep")}
        ran = subprocess.run(
            ["bash", "../tests/test.sh"], cwd=workspace, env=env, capture_output=True, text=True, timeout=20
        )
        return float((tmp_path / "rewards" / "deep" / "reward.txt").read_text()), ran.stderr

    return run


@pytest.mark.parametrize(
    ("content", "reward"),
    [(b"a\nb\n", 1), (b"a\nb", 1), (b"a\nb\n\n", 0), (b"a\r\nb\r\n", 0), (b"a\n", 0), (b"", 0), (None, 0)],
)
def test_text_forgives_a_missing_last_newline_only(verify: Verify, content: bytes | None, reward: float) -> None:
    assert verify(same_text("f.txt", "a\nb\n"), content)[0] == reward


@pytest.mark.parametrize(
    ("content", "reward"),
    [
        (b"12\n", 1),
        (b"   12", 1),
        (b"12 f.txt\n", 0),
        (b"1 2\n", 0),
        (b"12\n7\n", 0),
        (b"012\n", 0),
        (b"*", 0),
        (b"", 0),
    ],
)
def test_a_number_stands_alone(verify: Verify, content: bytes, reward: float) -> None:
    assert verify(same_number("n.txt", 12), content)[0] == reward


@pytest.mark.parametrize(
    ("content", "reward"),
    [
        (b'{"a": {"b": 1, "c": "x\\"y"}, "d": [true, null, {}]}', 1),
        (b'{\n "d":[ true,null , {} ] ,"a":{"c":"x\\"y","b":1}}\n', 1),
        (b'{"a": {"b": "1", "c": "x\\"y"}, "d": [true, null, {}]}', 0),
        (b'{"a": {"b": 1, "c": "x\\"y"}, "d": [null, true, {}]}', 0),
        (b'{"a": {"b": 1, "c": "x\\"y"}, "d": [true, null, {}], "e": 0}', 0),
        (b'{"a": {"b": 1, "c": "x\\"y"}, "d": [true, null, []]}', 0),
        (b'{"a": {"b": 1, "c": "x\\"y"}, "d": [true, null, {}]} 1', 0),
        (b'{"a": {"b": 1, "c": "x\\"y"}, "d": [true, null, {}]', 0),
        (b'{"a": {"b": 1, "c": "x\\"y",}, "d": [true, null, {}]}', 0),
        (b"[" * 60_000, 0),
    ],
)
def test_json_is_compared_by_value(verify: Verify, content: bytes, reward: float) -> None:
    goal = {"a": {"b": 1, "c": 'x"y'}, "d": [True, None, {}]}
    assert verify(same_json("f.json", goal), content)[0] == reward


@pytest.mark.parametrize(
    ("content", "reward"),
    [
        (b"[s]\nk = v\n[t]\nk = w\n", 1),
        (b"# note\n[t]\nk=w\n\n[ s ]\n", 0),
        (b"; note\n[t]\r\nk=w\r\n[s]\n k  =  v \n", 1),
        (b"[s]\nk = v\n[t]\nk = v\n", 0),
        (b"[s]\nk = v\nk = v\n[t]\nk = w\n", 0),
        (b"k = v\n[s]\n[t]\nk = w\n", 0),
    ],
)
def test_ini_is_compared_by_section_and_key(verify: Verify, content: bytes, reward: float) -> None:
    assert verify(same_ini("f.cfg", "[s]\nk = v\n\n[t]\nk = w\n"), content)[0] == reward


@pytest.mark.parametrize(
    ("before", "reward"),
    [
        ("mkdir -p d/e; echo 1 > d/a; echo 2 > d/e/b; tar -czf x.tar.gz d", 1),
        ("mkdir -p d/e; echo 1 > d/a; echo 2 > d/e/b; tar -czf x.tar.gz ./d/e/b ./d/a", 1),
        ("mkdir -p d/e; echo 1 > d/a; echo 3 > d/e/b; tar -czf x.tar.gz d", 0),
        ("mkdir -p d/e; echo 1 > d/a; tar -czf x.tar.gz d", 0),
        ("mkdir -p d/e; echo 1 > d/a; echo 2 > d/e/b; echo 3 > d/c; tar -czf x.tar.gz d", 0),
        ("mkdir -p d/e; echo 1 > d/a; echo 2 > d/e/b; tar -cf x.tar.gz d", 0),
        ("mkdir -p d/e; echo 1 > d/a; ln -s ../a d/e/b; tar -czf x.tar.gz d", 0),
        ("head -c 30000000 /dev/zero | gzip > x.tar.gz", 0),
    ],
)
def test_an_archive_holds_exactly_the_wanted_files(verify: Verify, before: str, reward: float) -> None:
    check = same_archive("x.tar.gz", {"d/a": b"1\n", "d/e/b": b"2\n"})
    assert verify(check, None, before)[0] == reward


def test_a_link_to_the_expected_data_does_not_count(verify: Verify) -> None:
    reward, message = verify(same("g.txt", b"secret\n"), None, "ln -s ../tests/expected/g.txt g.txt")
    assert (reward, message) == (0.0, "reward 0: g.txt: ./g.txt is a symbolic link\n")


def test_a_linked_directory_does_not_count(verify: Verify) -> None:
    assert verify(same("d/g.txt", b"secret\n"), None, "ln -s ../tests/expected/d d")[0] == 0.0


def test_a_pipe_in_place_of_a_file_does_not_stall_the_verifier(verify: Verify) -> None:
    assert verify(same_text("f.txt", "a\n"), None, "mkfifo f.txt")[0] == 0.0


def test_a_huge_file_is_refused_unread(verify: Verify) -> None:
    reward, message = verify(same_text("f.txt", "a\n"), None, "truncate -s 1G f.txt")
    assert (reward, message) == (0.0, "reward 0: f.txt is larger than 65536 bytes\n")


def test_gone_means_that_not_even_a_dead_link_is_left(verify: Verify) -> None:
    assert verify(gone("f.txt"), None)[0] == 1.0
    assert verify(gone("f.txt"), None, "ln -s nowhere f.txt")[0] == 0.0


def test_a_verifier_without_its_checks_still_writes_a_reward(tmp_path: Path) -> None:
    (tmp_path / "test.sh").write_text(verifier_script([gone("x")]))
    env = {**os.environ, "OPENFORGE_REWARD_DIR": str(tmp_path / "rewards")}
    subprocess.run(["bash", "test.sh"], cwd=tmp_path, env=env, capture_output=True, timeout=10)
    assert (tmp_path / "rewards" / "reward.txt").read_text() == "0\n"


def test_a_verifier_without_its_expected_data_accepts_nothing(verify: Verify, tmp_path: Path) -> None:
    reward, message = verify(same_text("f.txt", ""), b"", "rm -r ../tests/expected")
    assert reward == 0.0
    assert "the verifier lacks" in message
