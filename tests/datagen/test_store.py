from pathlib import Path

import pytest

from contracts.errors import ConfigError
from datagen.records import Candidate
from datagen.store import Store, append_line, read_lines, write_whole


def candidate(index: int) -> Candidate:
    """A line to write."""
    return Candidate(name=f"t{index}", family="write_file", split="train", index=index)


def test_a_torn_last_line_is_not_read_and_is_cut_off_by_the_next_append(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    append_line(path, candidate(0))
    with path.open("ab") as f:
        f.write(b'{"name":"t1","fam')
    assert read_lines(path, Candidate) == [candidate(0)]
    append_line(path, candidate(2))
    assert read_lines(path, Candidate) == [candidate(0), candidate(2)]
    assert path.read_bytes().count(b"\n") == 2


def test_a_file_that_is_one_torn_line_becomes_empty(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b'{"na')
    append_line(tmp_path / "x", candidate(1))
    assert read_lines(tmp_path / "x", Candidate) == [candidate(1)]


def test_a_broken_complete_line_is_an_error_with_its_number(tmp_path: Path) -> None:
    append_line(tmp_path / "x", candidate(0))
    with (tmp_path / "x").open("ab") as f:
        f.write(b'{"name":1}\n')
    with pytest.raises(ConfigError, match=r"x:2 is no Candidate"):
        read_lines(tmp_path / "x", Candidate)


def test_a_whole_file_replaces_the_old_one_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    write_whole(tmp_path / "a" / "f.json", "1\n")
    write_whole(tmp_path / "a" / "f.json", "2\n")
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["f.json"]
    assert (tmp_path / "a" / "f.json").read_text() == "2\n"


def test_verdicts_of_an_unfinished_stage_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="stage 'filter' .* is not finished"):
        Store(tmp_path).verdicts("filter")
