import base64
import importlib.util
import io
import tarfile
from pathlib import Path

import pytest

from rollout.bundle import bundle_dir

SOURCE = Path(__file__).resolve().parents[2] / "harness_images" / "runner" / "unpack.py"
_spec = importlib.util.spec_from_file_location("runner_unpack", SOURCE)
assert _spec is not None
assert _spec.loader is not None
unpacking = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(unpacking)


def bundle(*entries: tuple[str, bytes, str]) -> str:
    """A tar of (name, type, content or link target)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, kind, text in entries:
            entry = tarfile.TarInfo(name)
            entry.type = kind
            if kind == tarfile.REGTYPE:
                entry.size = len(text)
                tar.addfile(entry, io.BytesIO(text.encode()))
            else:
                entry.linkname = text
                tar.addfile(entry)
    return base64.b64encode(buffer.getvalue()).decode()


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ([("../out", tarfile.REGTYPE, "x")], "'../out' leaves the directory"),
        ([("a/../../out", tarfile.REGTYPE, "x")], "'a/../../out' leaves the directory"),
        ([("/etc/out", tarfile.REGTYPE, "x")], "'/etc/out' leaves the directory"),
        ([("link", tarfile.SYMTYPE, "/etc")], "link 'link' leads outside, to '/etc'"),
        ([("d/link", tarfile.SYMTYPE, "../../x")], "link 'd/link' leads outside, to '../../x'"),
        (
            [("d", tarfile.DIRTYPE, ""), ("l", tarfile.SYMTYPE, "d"), ("l/f", tarfile.REGTYPE, "x")],
            "'l/f' goes through a link",
        ),
        ([("null", tarfile.CHRTYPE, "")], "'null' is neither a file, a directory nor a link"),
        ([("pipe", tarfile.FIFOTYPE, "")], "'pipe' is neither a file, a directory nor a link"),
        ([("hard", tarfile.LNKTYPE, "/etc/passwd")], "'hard' is neither a file, a directory nor a link"),
    ],
)
def test_what_leaves_the_directory_or_is_no_plain_file_is_refused(
    tmp_path: Path, entries: list[tuple[str, bytes, str]], why: str
):
    root = tmp_path / "root"
    root.mkdir()
    with pytest.raises(unpacking.BadBundle, match=f"^{why}$"):
        unpacking.unpack(bundle(*entries), str(root), None)
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == []


def test_a_bundle_is_unpacked_as_it_was_packed(tmp_path: Path):
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "d" / "empty").mkdir(parents=True)
    (source / "d" / "run.sh").write_text("echo hi\n")
    (source / "d" / "run.sh").chmod(0o744)
    (source / ("long-" * 40)).write_bytes(bytes(range(256)))
    (source / "ü").symlink_to("d/run.sh")
    target.mkdir()
    unpacking.unpack(bundle_dir(source), str(target), None)
    assert sorted(p.relative_to(target).as_posix() for p in target.rglob("*")) == sorted(
        ["d", "d/empty", "d/run.sh", "long-" * 40, "ü"]
    )
    assert (target / "d" / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (target / ("long-" * 40)).read_bytes() == bytes(range(256))
    assert (target / "ü").readlink() == Path("d/run.sh")
