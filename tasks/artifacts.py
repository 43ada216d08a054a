"""What a person sees on a flow run's page while it runs: progress, tables, text."""

import time
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from prefect.artifacts import (
    acreate_link_artifact,
    acreate_markdown_artifact,
    acreate_progress_artifact,
    acreate_table_artifact,
    aupdate_progress_artifact,
)

MOST_ROWS = 300
"""Rows of a table artifact: it is JSON in Prefect's database."""
UPDATE_EVERY_S = 2.0
"""Shortest time between two updates of a progress bar, seconds."""


class Progress:
    """A progress bar of a known length; make it with `started`."""

    def __init__(self, artifact_id: UUID, total: int) -> None:
        self._id = artifact_id
        self._total = max(total, 1)
        self._done = 0
        self._shown_at = 0.0

    @classmethod
    async def started(cls, key: str, description: str, total: int) -> "Progress":
        """Show an empty bar for ``total`` things."""
        done = 100.0 if total == 0 else 0.0
        artifact_id = await acreate_progress_artifact(done, key=key, description=f"{total} {description}")
        assert isinstance(artifact_id, UUID)
        return cls(artifact_id, total)

    async def advance(self, by: int = 1) -> None:
        """Some more are done."""
        await self.reach(self._done + by)

    async def reach(self, done: int) -> None:
        """``done`` of them are done; shown at once only when the last update is some time ago, or nothing is left."""
        self._done = done
        now = time.monotonic()
        if done < self._total and now - self._shown_at < UPDATE_EVERY_S:
            return
        self._shown_at = now
        await aupdate_progress_artifact(self._id, min(100.0, 100.0 * done / self._total))


async def show_table(key: str, rows: Sequence[Mapping[str, Any]], description: str) -> None:
    """Show a table; of a long one the last rows."""
    shown = [dict(row) for row in rows[-MOST_ROWS:]]
    note = "" if len(shown) == len(rows) else f" (the last {len(shown)} of {len(rows)} rows)"
    await acreate_table_artifact(shown, key=key, description=description + note)


async def show_text(key: str, markdown: str) -> None:
    """Show a text."""
    await acreate_markdown_artifact(markdown, key=key)


async def show_link(key: str, link: str, text: str) -> None:
    """Show a link."""
    await acreate_link_artifact(link, link_text=text, key=key)
