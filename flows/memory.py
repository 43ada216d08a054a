"""How much memory a process and everything below it really use: the sum of proportional set sizes (PSS), shared pages once."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

from flows.lifeline import descendants

_KIB_PER_GIB = 1024 * 1024


class Peak:
    """The largest sample so far, and which programs it consisted of."""

    def __init__(self) -> None:
        self.gib = 0.0
        """GiB of the whole tree; 0.0 until the first sample, and where /proc has no smaps_rollup."""
        self.by_program: dict[str, float] = {}
        """Program → GiB at the peak, largest first."""

    def see(self, sample_kib: dict[str, int]) -> None:
        """Keep ``sample_kib`` (program → KiB) when it is the largest."""
        gib = sum(sample_kib.values()) / _KIB_PER_GIB
        if gib > self.gib:
            self.gib = gib
            largest = sorted(sample_kib.items(), key=lambda item: -item[1])
            self.by_program = {name: kib / _KIB_PER_GIB for name, kib in largest}


def tree_kib(root: int, proc: Path = Path("/proc")) -> dict[str, int]:
    """Program name → PSS in KiB of all its processes in the tree below and including ``root``."""
    total: dict[str, int] = {}
    for pid in [root, *descendants(root)]:
        try:
            name = (proc / str(pid) / "comm").read_text().strip()
            rollup = (proc / str(pid) / "smaps_rollup").read_text()
        except OSError:
            continue  # ended meanwhile, or not ours to read
        total[name] = total.get(name, 0) + _pss_kib(rollup)
    return total


def _pss_kib(rollup: str) -> int:
    for line in rollup.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


@contextlib.asynccontextmanager
async def watched(every_s: float = 3.0) -> AsyncIterator[Peak]:
    """Sample this process's tree in the background; the peak is complete when the block ends."""
    peak = Peak()
    sampler = asyncio.create_task(_sample(peak, every_s))
    try:
        yield peak
    finally:
        sampler.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sampler


async def _sample(peak: Peak, every_s: float) -> None:
    while True:
        peak.see(await asyncio.to_thread(tree_kib, os.getpid()))
        await asyncio.sleep(every_s)
