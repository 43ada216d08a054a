"""What `harness_images/<name>/harness.toml` says: how a harness is started and how its calls are read.

Written by whoever adds a harness; read by rollout, sent to the in-container runner.

Placeholders, filled by the runner in ``argv``, ``env`` and ``files``: ``{instruction}``, ``{base_url}`` (the proxy's URL for this
session, without ``/v1``), ``{api_key}`` (the model secret), ``{model}``, ``{workspace}``, ``{home}``, ``{harness_dir}``, ``{python}``.
"""

from typing import Literal

from pydantic import Field

from contracts.config import Config

Dialect = Literal["openai_chat"]
"""Wire formats that the proxy speaks; each further one is one module under proxy/dialects."""


class HarnessSpec(Config):
    """One agent program."""

    name: str = Field(pattern=r"^[a-z0-9_]+$")
    """Folder name under harness_images/."""
    description: str
    """One line for lists and forms."""
    dialect: Dialect = "openai_chat"
    """Wire format of its model calls."""
    history: Literal["exact", "render"] = "exact"
    """``exact``: its replayed history is spliced onto the recorded tokens; ``render``: each call is rendered anew."""
    argv: tuple[str, ...] = Field(min_length=1)
    """Command line, with placeholders; run in the workspace as the agent user."""
    env: dict[str, str] = Field(default_factory=dict)
    """Extra environment variables, with placeholders."""
    files: dict[str, str] = Field(default_factory=dict)
    """Config files written before the start: path relative to the agent's home → content, with placeholders."""
    payload: tuple[str, ...] = ()
    """Files of the harness folder that travel into the sandbox, relative names; they lie in ``{harness_dir}``."""
    truncated_exit_codes: tuple[int, ...] = ()
    """Exit codes by which the harness says that it ran out of turns or context."""
