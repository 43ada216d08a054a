"""Which harnesses there are, and reading one's `harness.toml`."""

from pathlib import Path

from contracts.config import load
from contracts.errors import ConfigError
from contracts.harness import HarnessSpec


def default_images() -> Path:
    """The `harness_images/` folder that ships next to this package."""
    return Path(__file__).resolve().parent.parent / "harness_images"


def known_harnesses(images: Path) -> list[str]:
    """Names that `read_harness` accepts."""
    return sorted(path.parent.name for path in images.glob("*/harness.toml"))


def read_harness(images: Path, name: str) -> HarnessSpec:
    """Read ``images/<name>/harness.toml``.

    Raises:
        ConfigError: no such harness (says which there are), or its file is broken or names missing files.
    """
    path = images / name / "harness.toml"
    if name not in known_harnesses(images):
        known = ", ".join(known_harnesses(images)) or "none"
        raise ConfigError(
            f"harness {name!r} does not exist: looked for {path}. Known: {known}. Choose one or add that file."
        )
    spec = load(HarnessSpec, path)
    if spec.name != name:
        raise ConfigError(f"{path}: name = {spec.name!r}, but the folder is {name!r}; make them equal.")
    missing = [file for file in spec.payload if not (images / name / file).is_file()]
    if missing:
        raise ConfigError(
            f"{path}: payload names {missing[0]!r}, which is no file in {images / name}; add it or remove the name."
        )
    return spec
