"""Ray actor that hosts the recording proxy next to veRL's inference client, and drives the groups of each step."""

import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proxy.config import PinnedSampling, ProxyConfig
from proxy.engines.verl import VerlEngine
from proxy.server import ProxyServer
from trainer.config import RlConfig
from trainer.groups import POLICY, GroupDriver, Prompt, StepFacts
from trainer.rl_layout import call_log, config_file, proxy_file
from trainer.transfer import TransferQueueSink

ACTOR_NAME = "openforge_proxy"
"""Name of the one proxy actor of a training job."""


class ProxyActor:
    """Started by the agent loop; async methods run in one event loop."""

    def __init__(self, run_dir: str, run_id: str) -> None:
        logging.basicConfig(level=logging.INFO, format="%(message)s")
        logging.getLogger("httpx").setLevel(logging.WARNING)
        self._run_dir = Path(run_dir)
        # The run's config as its starter wrote it.
        self._config = RlConfig.model_validate_json(config_file(self._run_dir).read_bytes())
        self._run_id = run_id
        self._server: ProxyServer | None = None
        self._driver: GroupDriver | None = None

    async def start(self, client: Any) -> str:
        """Serve the policy behind veRL's client, and say where in ``proxy.json``; returns the URL."""
        engine = VerlEngine(
            client,
            tokenizer_path=str(self._config.model),
            renderer=self._config.renderer,
            sampling=PinnedSampling(temperature=self._config.temperature),
            context_tokens=self._config.context_tokens,
        )
        self._server = ProxyServer(ProxyConfig(log=call_log(self._run_dir), engines={}), {POLICY: engine})
        await self._server.start()
        self._driver = GroupDriver(
            self._config, self._run_id, self._server.queue, self._server.rows, TransferQueueSink()
        )
        where = {"url": self._server.url, "admin_secret": self._server.admin_secret, "pid": os.getpid()}
        path = proxy_file(self._run_dir)
        fresh = path.with_suffix(".tmp")
        fresh.touch(mode=0o600)
        fresh.write_text(json.dumps(where), encoding="utf-8")
        fresh.replace(path)
        return self._server.url

    async def submit(self, step: int, prompts: Sequence[Prompt]) -> None:
        """Begin the groups of a step; returns at once."""
        assert self._driver is not None
        self._driver.start(step, prompts)

    async def facts(self, step: int) -> StepFacts:
        """What became of a step's rollouts."""
        assert self._driver is not None
        assert self._server is not None
        facts = await self._driver.facts(step)
        if step >= self._config.steps:
            self._server.queue.close()
        return facts

    async def alive(self) -> bool:
        """Answers while the actor works."""
        return True

    async def aclose(self) -> None:
        """End the queue and the server."""
        if self._driver is not None:
            await self._driver.aclose()
        if self._server is not None:
            await self._server.aclose()
