"""Settings of task generation."""

from pathlib import Path

from pydantic import Field, field_validator

from contracts.config import Config
from contracts.rollout import Limits
from datagen.families import FAMILIES


class DatagenConfig(Config):
    """One task set: what is generated and how strictly it is tested."""

    out: Path = Path("runs/tasks")
    """Folder of the task set: every stage keeps its artefacts there and a second run continues from them."""
    seed: int = 0
    """The same seed makes the same tasks, byte for byte."""
    families: tuple[str, ...] = Field(default=tuple(FAMILIES), min_length=1)
    """Families of shell work to generate from; all of them when left alone."""
    train_per_family: int = Field(default=32, ge=0)
    """Tasks generated for training, per family."""
    eval_per_family: int = Field(default=16, ge=0)
    """Tasks generated for evaluation, per family; their words never occur in training tasks."""
    base_image: str = "debian:12.11-slim"
    """Container image that the tasks' Dockerfiles start from; must carry a tag or a digest."""
    near_duplicate: float = Field(default=0.8, gt=0, le=1)
    """Share of common 13-word stretches (Jaccard index) from which the later one of two tasks is dropped."""
    repeats: int = Field(default=3, ge=1)
    """How often a task must score 0 with an agent that does nothing, and 1 with its reference solution."""
    max_tries: int = Field(default=3, ge=1)
    """Tries of one such run while the infrastructure fails; after them the task is dropped as untested."""
    max_repairs: int = Field(default=1, ge=0)
    """Rounds of repair and new tests for tasks that failed."""
    harness: str = "react"
    """Harness through which the reference solutions are played."""
    limits: Limits = Limits()
    """What each test run may use; the turn limit is raised where a solution is longer."""

    @field_validator("families")
    @classmethod
    def _known(cls, families: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [name for name in families if name not in FAMILIES]
        if unknown:
            raise ValueError(f"no family named {', '.join(map(repr, unknown))}; known: {', '.join(FAMILIES)}")
        if len(set(families)) < len(families):
            raise ValueError("a family is named twice; name each one once")
        return families

    @field_validator("base_image")
    @classmethod
    def _pinned(cls, image: str) -> str:
        tag = image.rsplit("/", 1)[-1].partition(":")[2]
        if "@sha256:" not in image and tag in ("", "latest"):
            raise ValueError("the image is not pinned; add a tag such as ':12.11-slim' or a digest")
        return image

    @field_validator("harness")
    @classmethod
    def _acts(cls, harness: str) -> str:
        if harness == "nop":
            raise ValueError("'nop' does nothing and cannot play a solution; name a harness that acts, e.g. 'react'")
        return harness
