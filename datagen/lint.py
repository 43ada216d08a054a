"""Static faults of a task directory: each lint reads one task and names the value that it objects to, or None."""

import re
from collections.abc import Callable
from pathlib import Path

from contracts.errors import TaskError
from contracts.task import TaskSpec
from datagen.reward_paths import fault as reward_fault
from rollout.script import script_of

ROOTS = (
    "app|bin|boot|data|etc|home|lib|logs|media|mnt|opt|proc|root|run|sbin|solution|srv|sys|tests|tmp|usr|var|workspace"
)
ABSOLUTE = re.compile(rf"(?:^|(?<=[\s\"'=<>(:`]))/(?:{ROOTS})(?![\w-])(?!/['\"])[\w./-]*", re.MULTILINE)
FROM = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*(\S+)", re.MULTILINE | re.IGNORECASE)
ARG = re.compile(r"^\s*ARG\s+(\w+)=(\S+)", re.MULTILINE | re.IGNORECASE)
STAGE_NAME = re.compile(r"^\s*FROM\s+\S+\s+AS\s+(\S+)", re.MULTILINE | re.IGNORECASE)
INSTALL = re.compile(r"\b(pip3?|uv pip|apt-get|apt|apk|npm|gem|cargo) (?:[\w-]+ )*?(install|add)\b([^\n;&|]*)")
REQUIREMENTS = re.compile(r"\s(-r|--requirement)[ =]\S+")
PIN = re.compile(r"==|=|@|~=")
DOWNLOAD = re.compile(
    r"\b(curl|wget|git\s+clone|pip3?\s+install|uvx?|apt(-get)?\s+install|apk\s+add|npm\s+(i|install|ci)|npx|gem\s+install)\b"
    r"|/dev/(tcp|udp)/"
)
COPIED_SECRET = re.compile(
    r"^\s*(?:COPY|ADD)\b[^\n]*\b(?:tests|solution|solve\.sh|test\.sh)\b", re.MULTILINE | re.IGNORECASE
)


def schema(task: TaskSpec) -> str | None:
    """Provenance that the stages need."""
    if task.family is None:
        return "task.toml names no [metadata.openforge] family"
    if task.split not in ("train", "eval"):
        return f"[metadata.openforge] split is {task.split!r}, not 'train' or 'eval'"
    return None


def script_format(task: TaskSpec) -> str | None:
    """Scripts that Linux refuses or misreads."""
    for path in scripts(task.path):
        content, name = path.read_bytes(), path.relative_to(task.path)
        if b"\r\n" in content:
            return f"{name} has CRLF line endings"
        if not content.startswith(b"#!"):
            return f"{name} has no shebang"
        if not content.endswith(b"\n"):
            return f"{name} has no newline at its end"
        if not path.stat().st_mode & 0o100:
            return f"{name} is not executable"
    return None


def no_solution(task: TaskSpec) -> str | None:
    """A task that nobody has shown to be solvable."""
    if not task.solve_path.is_file():
        return "solution/solve.sh does not exist"
    try:
        return None if script_of(task) else "solution/solve.sh holds no command"
    except TaskError as e:
        return str(e)


def absolute_path(task: TaskSpec) -> str | None:
    """Paths that exist in one sandbox layout only."""
    for name in ("instruction.md", "solution/solve.sh"):
        path = task.path / name
        if path.is_file() and (found := ABSOLUTE.search(_without_shebang(path))):
            return f"{name} names {found.group(0)!r}"
    return None


def unpinned_dependency(task: TaskSpec) -> str | None:
    """Images and packages whose content changes over time."""
    path = task.path / "environment" / "Dockerfile"
    texts = {f"tests/{p.name}": _text(p) for p in task.tests_dir.glob("*.sh")}
    if task.solve_path.is_file():
        texts["solution/solve.sh"] = _text(task.solve_path)
    if path.is_file():
        text = texts["environment/Dockerfile"] = _text(path)
        for image in _images(text):
            if "@sha256:" not in image and image.rsplit("/", 1)[-1].partition(":")[2] in ("", "latest"):
                return f"environment/Dockerfile starts from {image!r} without a tag"
    for name, text in texts.items():
        for install in INSTALL.finditer(text.replace("\\\n", " ")):
            packages = [word for word in REQUIREMENTS.sub("", install.group(3)).split() if not word.startswith("-")]
            if loose := next((word for word in packages if not PIN.search(word)), None):
                return f"{name} installs {loose!r} without a version"
    return None


def tests_in_image(task: TaskSpec) -> str | None:
    """A verifier or solution that the agent could read."""
    environment = task.path / "environment"
    dockerfile = environment / "Dockerfile"
    if dockerfile.is_file() and (found := COPIED_SECRET.search(_text(dockerfile))):
        return f"environment/Dockerfile says {found.group(0).strip()!r}"
    secrets = {p.read_bytes(): p.relative_to(task.path) for p in scripts(task.path)}
    for path in sorted(p for p in environment.rglob("*") if p.is_file()):
        if (secret := secrets.get(path.read_bytes())) is not None:
            return f"{path.relative_to(task.path)} is a copy of {secret}"
    return None


def verifier_downloads(task: TaskSpec) -> str | None:
    """A verdict that depends on the network."""
    for path in sorted(p for p in task.tests_dir.rglob("*") if p.suffix in (".sh", ".py")):
        for line in _text(path).splitlines():
            if not line.lstrip().startswith("#") and (found := DOWNLOAD.search(line)):
                return f"{path.relative_to(task.path)} runs {found.group(0)!r}"
    return None


def no_reward_path(task: TaskSpec) -> str | None:
    """A verifier that can end without a reward."""
    return reward_fault(_text(task.tests_dir / "test.sh"))


LINTS: dict[str, Callable[[TaskSpec], str | None]] = {
    lint.__name__: lint
    for lint in (
        schema,
        script_format,
        no_solution,
        absolute_path,
        unpinned_dependency,
        tests_in_image,
        verifier_downloads,
        no_reward_path,
    )
}


def first_fault(task: TaskSpec) -> tuple[str, str] | None:
    """Name and detail of the first lint that objects."""
    return next(((name, detail) for name, lint in LINTS.items() if (detail := lint(task)) is not None), None)


def scripts(path: Path) -> list[Path]:
    """The entry scripts of a task directory that exist."""
    return [p for p in (path / "tests" / "test.sh", path / "solution" / "solve.sh") if p.is_file()]


def _images(dockerfile: str) -> list[str]:
    """Base images with build arguments filled in by their defaults; earlier build stages left out."""
    args = dict(ARG.findall(dockerfile))
    images = [re.sub(r"\$\{?(\w+)\}?", lambda m: args.get(m.group(1), ""), i) for i in FROM.findall(dockerfile)]
    return [i for i in images if i not in STAGE_NAME.findall(dockerfile) and i != "scratch"]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _without_shebang(path: Path) -> str:
    text = _text(path)
    return text.partition("\n")[2] if text.startswith("#!") else text
