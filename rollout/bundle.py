"""Files on their way into a sandbox: uncompressed tar in base64, the same bytes for the same content."""

import base64
import io
import os
import tarfile
from collections.abc import Iterable
from pathlib import Path

from contracts.errors import TaskError

LARGEST_MIB = 32
"""Largest bundle; three of them must fit a request to the proxy."""


def bundle_dir(root: Path) -> str:
    """Everything under ``root``; an empty bundle when it does not exist.

    Raises:
        TaskError: it holds a device or socket, a link that leads outside, a file that cannot be read, or too much.
    """
    return bundle_files(root, (path.relative_to(root).as_posix() for path in root.rglob("*")))


def bundle_files(root: Path, names: Iterable[str]) -> str:
    """The files ``names`` under ``root``; raises TaskError as `bundle_dir` does."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(names):
            try:
                _add(tar, root, name)
            except OSError as e:
                raise TaskError(f"{root / name}: cannot be read ({e.strerror}); repair or remove it.") from e
            if buffer.tell() > LARGEST_MIB << 20:
                raise TaskError(
                    f"{root}: more than {LARGEST_MIB} MiB of files; bake large files into the task's image instead."
                )
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def _add(tar: tarfile.TarFile, root: Path, name: str) -> None:
    """Add one path without anything that differs between two machines: owner, times, umask."""
    path = root / name
    entry = tarfile.TarInfo(name)
    if path.is_symlink():
        entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(path)
        inside = os.path.normpath(os.path.join(os.path.dirname(name), entry.linkname))
        if entry.linkname.startswith("/") or inside.split("/")[0] == "..":
            raise TaskError(f"{path}: a link to {entry.linkname!r}, outside {root}; replace it by the file itself.")
        tar.addfile(entry)
    elif path.is_dir():
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(entry)
    elif path.is_file():
        content = path.read_bytes()
        entry.size, entry.mode = len(content), 0o755 if path.stat().st_mode & 0o100 else 0o644
        tar.addfile(entry, io.BytesIO(content))
    else:
        raise TaskError(f"{path}: neither a file, a directory nor a link; remove it.")
