import os
import shutil
from pathlib import Path

import pytest

from contracts.errors import TaskError
from rollout.bundle import bundle_dir, bundle_files


def test_the_same_content_gives_the_same_bundle_whatever_times_and_modes(tmp_path: Path):
    one, two = tmp_path / "one", tmp_path / "two"
    (one / "d").mkdir(parents=True)
    (one / "d" / "b").write_text("b")
    (one / "a").write_text("a")
    shutil.copytree(one, two)
    os.utime(two / "a", (1, 1))
    (two / "a").chmod(0o600)
    (two / "d").chmod(0o700)
    assert bundle_dir(one) == bundle_dir(two)
    (two / "a").write_text("A")
    assert bundle_dir(one) != bundle_dir(two)


def test_a_directory_that_does_not_exist_is_an_empty_bundle(tmp_path: Path):
    assert bundle_dir(tmp_path / "none") == bundle_files(tmp_path, [])


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "d/../../outside"])
def test_a_link_that_leads_outside_is_refused(tmp_path: Path, target: str):
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(TaskError, match="a link to "):
        bundle_dir(tmp_path)


def test_a_pipe_is_refused(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TaskError, match="neither a file, a directory nor a link"):
        bundle_dir(tmp_path)


def test_too_many_bytes_are_refused(tmp_path: Path):
    with (tmp_path / "big").open("wb") as f:
        f.truncate(33 << 20)
    with pytest.raises(TaskError, match="more than 32 MiB"):
        bundle_dir(tmp_path)
