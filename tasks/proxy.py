"""The recording proxy of a flow run that brings its own engines."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.config import BenchmarkConfig
from proxy.client import ProxyClient
from proxy.config import EngineConfig, LocalEngine, PinnedSampling, ProxyConfig
from proxy.process import proxy_process


@asynccontextmanager
async def proxy_for(engines: Mapping[str, EngineConfig], log: Path, run_dir: Path) -> AsyncIterator[ProxyClient]:
    """A proxy process with these engines that ends with the block.

    Args:
        log: SQLite call log; continued when it exists.
    """
    async with proxy_process(ProxyConfig(log=log.resolve(), engines=dict(engines)), run_dir.resolve()) as client:
        yield client


def engines_of(config: BenchmarkConfig) -> dict[str, EngineConfig]:
    """One local engine per measured policy."""
    sampling = PinnedSampling(temperature=config.temperature)
    return {p.name: LocalEngine(model=p.model, sampling=sampling, seed=config.seed) for p in config.policies}
