"""What the stages write down. Made and consumed within datagen; flows read the reports and the manifest, too."""

from typing import Any

from pydantic import Field

from contracts.config import Record
from datagen.words import Split


class Candidate(Record):
    """A task directory that was generated; one line of candidates.jsonl."""

    name: str
    family: str
    split: Split
    index: int
    """Position within its family and split."""


class Verdict(Record):
    """What one stage decided about one task."""

    name: str
    family: str
    split: Split
    path: str
    """The task directory that was judged, relative to the task set's folder."""
    ok: bool
    reason: str | None = None
    """Why not: a short code, counted in the yield table. None exactly when ``ok``."""
    detail: str | None = None
    """One sentence with the value that decided."""
    content_hash: str | None = None
    """SHA-256 over the task directory; set from the build on."""
    environment_hash: str | None = None
    """SHA-256 over environment/ alone; set from the build on. Tasks with equal ones can share an image."""
    fixes: tuple[str, ...] = ()
    """Names of the repairs that were made, oldest first."""
    rewards: dict[str, tuple[float | None, ...]] = Field(default_factory=dict)
    """Gate → the reward of each repetition; set by the test stage."""


class FamilyYield(Record):
    """One row of the yield table."""

    family: str
    entered: int
    passed: int
    dropped: dict[str, int] = Field(default_factory=dict)
    """Reason → tasks."""


class StageReport(Record):
    """What a stage did; its presence on disk says that the stage is finished."""

    stage: str
    """E.g. ``filter``, ``test-0`` (tests before any repair), ``repair-1``."""
    entered: int
    passed: int
    dropped: dict[str, int] = Field(default_factory=dict)
    """Reason → tasks."""
    families: tuple[FamilyYield, ...] = ()


class ManifestEntry(Record):
    """One published task; one line of manifest.jsonl."""

    name: str
    family: str
    split: Split
    content_hash: str
    gates: dict[str, tuple[float | None, ...]]
    """Gate → rewards."""
    fixes: tuple[str, ...]
    provenance: dict[str, Any]
    """``[metadata.openforge]`` of the task: seed, index, words, arguments."""
