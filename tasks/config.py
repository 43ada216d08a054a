"""Where rollouts run, and who teaches: settings that no single domain package owns."""

from pathlib import Path

from pydantic import Field

from contracts.config import Config
from contracts.rollout import Limits
from proxy.config import EngineConfig, ScriptedEngine
from sandboxes.config import LocalSandbox, SandboxConfig


class Machine(Config):
    """Where rollouts run."""

    sandbox: SandboxConfig = Field(default=LocalSandbox(), title="Sandbox")
    """Back end that runs each rollout in its own sandbox."""
    images: Path | None = Field(default=None, title="Harness images")
    """Directory with one folder per harness; None: the ones that ship with this program."""


class Teacher(Config):
    """Who shows the policy how it is done, on which tasks, and how often."""

    tasks: Path = Field(title="Task set")
    """Directory of task directories; only successful sessions become training rows."""
    split: str | None = Field(default="train", title="Split")
    """Only tasks of this split; None: every task of the set."""
    families: tuple[str, ...] = Field(default=(), title="Families")
    """Only tasks of these families; empty: all families."""
    max_tasks: int | None = Field(default=None, ge=1, title="Most tasks")
    """Largest number of tasks, by name; None: all."""
    rollouts_per_task: int = Field(default=1, ge=1, title="Sessions per task")
    """Recorded sessions of each task."""
    harness: str = Field(default="react", title="Harness")
    """Folder name under harness_images/."""
    engine: EngineConfig = Field(default=ScriptedEngine(), title="Teacher")
    """``scripted`` plays each task's reference solution; ``openai`` is any OpenAI-compatible server."""
    limits: Limits = Field(default=Limits(), title="Limits")
    """What one session may use."""
    max_parallel: int = Field(default=8, ge=1, title="Parallel sessions")
    """Sessions that run at the same time."""
    max_attempts: int = Field(default=2, ge=1, title="Attempts")
    """Tries of one session when the infrastructure fails."""
    min_reward: float = Field(default=1.0, gt=0.0, le=1.0, title="Least reward")
    """Smallest reward at which a session teaches."""
