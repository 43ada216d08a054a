"""What a verifier demands of the end state, and the `tests/` folder made from it.

A check names one path of the working directory; what it compares with lies under `tests/expected/`. The shell side is
`checks.sh`, copied beside every `test.sh`. Files that no check names may appear freely; symbolic links never count.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources

HEADER = """\
#!/bin/bash
# Grades the end state of the working directory (the current one); a reward is written on every path.
set -u -o pipefail
export LC_ALL=C
tests=$(cd "$(dirname "$0")" && pwd)
reward_dir=${OPENFORGE_REWARD_DIR:-/logs/verifier}
reward=0
trap 'mkdir -p "$reward_dir" && printf "%s\\n" "$reward" > "$reward_dir/reward.txt"' EXIT
. "$tests/checks.sh" || exit
"""


@dataclass(frozen=True)
class Check:
    """One demand: a function of checks.sh, the path it looks at, and its files under tests/expected/."""

    verb: str
    path: str
    expected: Mapping[str, bytes] = field(default_factory=dict)


def same(path: str, content: bytes) -> Check:
    """``path`` holds exactly these bytes: for files that are moved, kept or must not be harmed."""
    return Check("same", path, {path: content})


def same_text(path: str, content: str) -> Check:
    """``path`` holds these lines; a missing newline at the very end is forgiven."""
    return Check("same_text", path, {path: content.encode()})


def same_number(path: str, number: int) -> Check:
    """``path`` holds this number and nothing else but white space."""
    return Check("same_number", path, {path: f"{number}\n".encode()})


def same_json(path: str, value: object) -> Check:
    """``path`` holds this JSON value, in any layout and key order."""
    return Check("same_json", path, {path: (json.dumps(value, indent=2) + "\n").encode()})


def same_ini(path: str, content: str) -> Check:
    """``path`` holds these sections and keys; comments, blank lines, order and spaces around ``=`` are free."""
    return Check("same_ini", path, {path: content.encode()})


def same_archive(path: str, members: Mapping[str, bytes]) -> Check:
    """``path`` is a gzipped tar file with exactly these files in it."""
    return Check("same_archive", path, {f"{path}.members/{k}": v for k, v in members.items()})


def gone(path: str) -> Check:
    """Nothing is left at ``path``."""
    return Check("gone", path)


def verifier_script(checks: Sequence[Check]) -> str:
    """The text of test.sh."""
    lines = [f"{c.verb} {shlex.quote(c.path)} || exit" for c in checks]
    return HEADER + "\n" + "\n".join(lines) + "\n\nreward=1\n"


def verifier_files(checks: Sequence[Check]) -> dict[str, bytes]:
    """What lies beside test.sh: path relative to tests/ → content."""
    files = {"checks.sh": resources.files("datagen").joinpath("checks.sh").read_bytes()}
    for check in checks:
        files.update({f"expected/{k}": v for k, v in check.expected.items()})
    return files
