"""Unpacks the bundles that the proxy hands out: directories, regular files and links that stay inside, nothing else."""

from __future__ import annotations

import binascii
import io
import os
import posixpath
import tarfile


class BadBundle(Exception):
    """The bundle holds something that may not be unpacked."""


def unpack(bundle: str, root: str, owner_uid: int | None) -> None:
    """Unpack a base64 tar into ``root``, which exists and is empty.

    Args:
        owner_uid: who owns what is made; None: the runner's own user.
    Raises:
        BadBundle: a name that leaves ``root``, a device, or no tar file at all.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(binascii.a2b_base64(bundle)), mode="r:") as tar:
            links: set[str] = set()
            for member in tar:
                name = _inside(member.name, links)
                if name:
                    _write(tar, member, root, name, links, owner_uid)
    except (tarfile.TarError, binascii.Error, EOFError) as e:
        raise BadBundle(f"not a tar file in base64: {e}") from e


def make_dirs(root: str, name: str, owner_uid: int | None) -> str:
    """Make ``root/name`` and what is missing above it; returns the path."""
    path = root
    for part in name.split("/"):
        if not part:
            continue
        path = os.path.join(path, part)
        if not os.path.isdir(path):
            os.mkdir(path, 0o755)
            give(path, owner_uid)
    return path


def give(path: str, owner_uid: int | None) -> None:
    """Hand ``path`` to the agent's user."""
    if owner_uid is not None:
        os.chown(path, owner_uid, owner_uid, follow_symlinks=False)


def _inside(name: str, links: set[str]) -> str:
    clean = posixpath.normpath(name)
    parts = clean.split("/")
    if clean.startswith("/") or ".." in parts or "\0" in clean:
        raise BadBundle(f"{name!r} leaves the directory")
    if any("/".join(parts[:i]) in links for i in range(1, len(parts))):
        raise BadBundle(f"{name!r} goes through a link")
    return "" if clean == "." else clean


def _write(
    tar: tarfile.TarFile, member: tarfile.TarInfo, root: str, name: str, links: set[str], owner_uid: int | None
) -> None:
    if member.isdir():
        make_dirs(root, name, owner_uid)
        return
    parent, _, leaf = name.rpartition("/")
    path = os.path.join(make_dirs(root, parent, owner_uid), leaf)
    if member.issym():
        target = posixpath.normpath(posixpath.join(parent, member.linkname))
        if member.linkname.startswith("/") or target.split("/")[0] == "..":
            raise BadBundle(f"link {name!r} leads outside, to {member.linkname!r}")
        os.symlink(member.linkname, path)
        links.add(name)
    elif member.isreg():
        content = tar.extractfile(member)
        assert content is not None  # only None for what is not a regular file
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(fd, "wb") as f:
            f.write(content.read())
            os.fchmod(fd, 0o755 if member.mode & 0o100 else 0o644)
    else:
        raise BadBundle(f"{name!r} is neither a file, a directory nor a link")
    give(path, owner_uid)
