"""Deterministic repairs of a task directory. Each looks at the whole directory and says whether it changed anything."""

import re
from collections.abc import Callable
from pathlib import Path

from datagen.lint import scripts

WORKDIR = re.compile(r"^\s*WORKDIR\s+(\S+)", re.MULTILINE | re.IGNORECASE)
BARE_REWARD_DIR = re.compile(r"(?<!:-)/logs/verifier\b")
NO_NEWLINE = re.compile(r"""(echo\s+-n\s+|printf\s+)(['"]?)([01](?:\.\d+)?)\2(?=\s*>\s*\S*reward\.txt)""")
BOM = b"\xef\xbb\xbf"


def line_endings(task: Path) -> bool:
    """CRLF to LF, and no byte order mark, in everything that is read as text."""
    texts = [*scripts(task), task / "instruction.md", task / "task.toml", task / "environment" / "Dockerfile"]
    return any([_rewrite(p, lambda b: b.removeprefix(BOM).replace(b"\r\n", b"\n")) for p in texts if p.is_file()])


def shebang(task: Path) -> bool:
    """A first line that names the shell."""
    return any([_rewrite(p, lambda b: b if b.startswith(b"#!") else b"#!/bin/bash\n" + b) for p in scripts(task)])


def final_newline(task: Path) -> bool:
    """A newline at the end of each script."""
    return any([_rewrite(p, lambda b: b if b.endswith(b"\n") else b + b"\n") for p in scripts(task)])


def executable(task: Path) -> bool:
    """The executable bit on each script."""
    closed = [p for p in scripts(task) if not p.stat().st_mode & 0o100]
    for path in closed:
        path.chmod(0o755)
    return bool(closed)


def relative_paths(task: Path) -> bool:
    """The working directory's own absolute path, in instruction and solution, made relative."""
    dockerfile = task / "environment" / "Dockerfile"
    found = WORKDIR.findall(dockerfile.read_text(encoding="utf-8")) if dockerfile.is_file() else []
    roots = {root.rstrip("/") for root in [*found, "/workspace"]} - {""}
    prefix = "|".join(re.escape(root) for root in sorted(roots))
    texts = [p for p in (task / "instruction.md", task / "solution" / "solve.sh") if p.is_file()]

    def relative(content: bytes) -> bytes:
        text = re.sub(rf"(?m)^\s*cd\s+(?:{prefix})/?\s*(?:&&\s*|;\s*|$\n?)", "", content.decode())
        text = re.sub(rf"(?<![\w./])(?:{prefix})/(?=[\w.])", "", text)
        return re.sub(rf"(?<![\w./])(?:{prefix})/?(?![\w/-])", ".", text).encode()

    return any([_rewrite(p, relative) for p in texts])


def reward_dir(task: Path) -> bool:
    """Harbor's fixed reward folder made the default of ours."""
    return _rewrite(
        task / "tests" / "test.sh",
        lambda b: BARE_REWARD_DIR.sub("${OPENFORGE_REWARD_DIR:-/logs/verifier}", b.decode()).encode(),
    )


def reward_line(task: Path) -> bool:
    """A reward that ends in a newline."""
    return _rewrite(
        task / "tests" / "test.sh", lambda b: NO_NEWLINE.sub(lambda m: f"echo {m.group(3)}", b.decode()).encode()
    )


FIXES: dict[str, Callable[[Path], bool]] = {
    fix.__name__: fix
    for fix in (line_endings, shebang, final_newline, executable, relative_paths, reward_dir, reward_line)
}


def mend(task: Path) -> tuple[str, ...]:
    """Apply every fix to a task directory, in place.

    Returns:
        names of the fixes that changed something.
    """
    return tuple(name for name, fix in FIXES.items() if fix(task))


def _rewrite(path: Path, change: Callable[[bytes], bytes]) -> bool:
    """Apply ``change``; a file that is missing or no UTF-8 stays as it is."""
    if not path.is_file():
        return False
    before = path.read_bytes()
    try:
        after = change(before)
    except UnicodeDecodeError:
        return False
    if after != before:
        path.write_bytes(after)
    return after != before
