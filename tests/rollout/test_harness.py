from pathlib import Path

import pytest

from contracts.errors import ConfigError
from rollout.harness import default_images, known_harnesses, read_harness


def write_harness(images: Path, name: str, text: str) -> None:
    (images / name).mkdir(parents=True)
    (images / name / "harness.toml").write_text(text)


def test_every_shipped_harness_reads_back_with_its_folders_name():
    names = known_harnesses(default_images())
    assert {"nop", "react"} <= set(names)
    assert [read_harness(default_images(), name).name for name in names] == names


def test_an_unknown_harness_names_the_known_ones(tmp_path: Path):
    write_harness(tmp_path, "one", "")
    write_harness(tmp_path, "two", "")
    with pytest.raises(ConfigError, match="harness 'three' does not exist: .* Known: one, two."):
        read_harness(tmp_path, "three")


@pytest.mark.parametrize("name", ["../one", "", ".", "one/../one"])
def test_a_name_cannot_leave_the_folder(tmp_path: Path, name: str):
    write_harness(tmp_path / "images", "one", "")
    with pytest.raises(ConfigError, match="does not exist"):
        read_harness(tmp_path / "images", name)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("name = x", r"broken TOML: .*\(at line 1"),
        ('name = "one"\ndescription = "d"\nargv = []', "argv = "),
        ('name = "one"\ndescription = "d"\nargv = ["x"]\ndialect = "smoke_signals"', "dialect = 'smoke_signals'"),
        ('name = "other"\ndescription = "d"\nargv = ["x"]', "name = 'other', but the folder is 'one'"),
        ('name = "one"\ndescription = "d"\nargv = ["x"]\npayload = ["x.py"]', "payload names 'x.py', which is no file"),
    ],
)
def test_a_wrong_harness_toml_is_one_line_that_names_file_and_value(tmp_path: Path, text: str, why: str):
    write_harness(tmp_path, "one", text)
    with pytest.raises(ConfigError, match=why) as caught:
        read_harness(tmp_path, "one")
    assert str(tmp_path / "one" / "harness.toml") in str(caught.value)
    assert "\n" not in str(caught.value)
