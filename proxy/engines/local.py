"""The local engine: a Hugging Face causal language model on this machine's CPU, with continuous batching.

One thread owns the model. Callers hand it rows and weights through a queue and wait on futures; between two decode
steps it takes what has arrived, prefills newcomers together and lets them join. P prompt, C completion tokens.
"""

import asyncio
import itertools
import queue
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from contracts.call import Sampling
from contracts.errors import ContextOverflow, EngineError
from proxy.config import LocalEngine
from proxy.engine import Generation
from proxy.engines.batch import Row, RunningBatch, prefill_groups
from proxy.engines.draw import Knobs
from proxy.engines.weights import check_weights, copy_weights, load_model

CLOSE_TIMEOUT_S = 30.0
"""Longest wait for the step in progress when the model is closed."""


@dataclass(frozen=True)
class _Swap:
    """New weights on their way to the thread."""

    state: Mapping[str, Tensor]
    version: int
    done: "Future[None]"


@dataclass(frozen=True)
class _Close:
    """The last thing the thread reads."""


class BatchedModel:
    """A causal language model that decodes many requests together; safe to await from any event loop.

    What a request samples depends on its seed, its prompt and the weights, not on its neighbours in the batch, except
    where rounding (about 1e-6) moves a draw across the border between two tokens.
    """

    def __init__(self, path: Path, *, max_batch: int, context_tokens: int, threads: int, seed: int) -> None:
        self._path = path
        self._max_batch = max_batch
        self._context_tokens = context_tokens
        self._threads = threads
        self._seed = seed
        self._unseeded = itertools.count()
        self._version = 0
        self._inbox: queue.SimpleQueue[Row | _Swap | _Close] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._model: Any = None
        self._vocabulary = 0

    @property
    def version(self) -> int:
        """Policy version of the weights in use; 0 until weights are loaded."""
        return self._version

    def start(self) -> None:
        """Load the checkpoint and start the thread.

        Raises:
            ConfigError: the checkpoint cannot be served; says why.
        """
        self._model = load_model(self._path, self._context_tokens)
        self._vocabulary = int(self._model.get_input_embeddings().weight.shape[0])
        self._thread = threading.Thread(target=self._serve, name=f"local-engine {self._path.name}", daemon=True)
        self._thread.start()

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling, stop_ids: Sequence[int]) -> Generation:
        """Sample one answer.

        Ends with a stop token, which is part of the output, or with "length" after ``sampling.max_tokens`` or when the
        context is full. Unset ``temperature`` and ``top_p`` mean 1, unset ``top_k`` all tokens. Logprobs are those of
        the distribution that was sampled, see :func:`proxy.engines.draw.draw`. Chance comes from ``sampling.seed``, or
        without one from the engine's seed and the number of unseeded requests before this one.
        Cancelling the awaiting task takes the request out of the batch.

        Raises:
            ContextOverflow: the prompt leaves no room for an answer.
            EngineError: the engine is closed or failed, or an id is outside the vocabulary.
        """
        self._check_running()
        row = self._row(prompt_ids, sampling, stop_ids)
        self._put(row)
        return await asyncio.wrap_future(row.answer)

    async def load_weights(self, state: Mapping[str, Tensor], version: int) -> None:
        """Swap the weights after the decode step in progress; requests in flight go on under ``version``.

        Their cache is computed anew from their tokens so far, so later logprobs are exactly the new policy's.
        Args:
            state: a full state_dict; a tied ``lm_head.weight`` may lack. Not to be changed until this returns.
        Raises:
            EngineError: the weights do not fit; the old ones stay in use.
        """
        self._check_running()
        check_weights(self._model, state)
        swap = _Swap(state, version, Future())
        self._put(swap)
        await asyncio.wrap_future(swap.done)

    def close(self) -> None:
        """Stop the thread and free the model; requests in flight fail with EngineError. Idempotent."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._inbox.put(_Close())
        if self._thread is not None:
            self._thread.join(CLOSE_TIMEOUT_S)
        self._model = None

    def _row(self, prompt_ids: Sequence[int], sampling: Sampling, stop_ids: Sequence[int]) -> Row:
        prompt_ids_P = tuple(prompt_ids)
        room = self._context_tokens - len(prompt_ids_P)
        if room < 1:
            raise ContextOverflow(
                f"prompt of {len(prompt_ids_P)} tokens leaves no room for an answer in a context of "
                f"{self._context_tokens}; shorten the conversation or raise context_tokens."
            )
        if not prompt_ids_P or min(prompt_ids_P) < 0 or max(prompt_ids_P) >= self._vocabulary:
            raise EngineError(
                f"prompt of {len(prompt_ids_P)} tokens is empty or has ids outside 0..{self._vocabulary - 1}; "
                f"does the tokenizer belong to model {str(self._path)!r}?"
            )
        chance = random.Random(f"{self._seed}/{next(self._unseeded)}" if sampling.seed is None else sampling.seed)
        return Row(
            prompt_ids_P=prompt_ids_P,
            knobs=Knobs(
                temperature=1.0 if sampling.temperature is None else sampling.temperature,
                top_p=1.0 if sampling.top_p is None else sampling.top_p,
                top_k=-1 if sampling.top_k is None else sampling.top_k,
            ),
            stop_ids=frozenset(stop_ids),
            max_tokens=room if sampling.max_tokens is None else max(1, min(room, sampling.max_tokens)),
            random=chance,
            answer=Future(),
        )

    def _put(self, item: "Row | _Swap") -> None:
        with self._lock:
            self._check_running()
            self._inbox.put(item)

    def _check_running(self) -> None:
        if self._closed or self._thread is None:
            raise EngineError(f"the local engine of model {str(self._path)!r} is not running.")

    def _serve(self) -> None:
        """The thread: one round of commands, one prefill, one decode step, again."""
        torch.set_num_threads(self._threads)
        batch, waiting = RunningBatch(self._model, self._vocabulary), list[Row]()
        with torch.inference_mode():
            while True:
                for item in self._arrived(block=not (batch.rows or waiting)):
                    if isinstance(item, Row):
                        waiting.append(item)
                    elif isinstance(item, _Swap):
                        waiting = [*self._swap(item, batch), *waiting]
                    else:
                        _fail([*batch.clear(), *waiting], "the local engine was closed", None)
                        return
                waiting = self._admit(batch, [row for row in waiting if not row.answer.cancelled()])
                self._work(partial(_step, batch), batch.clear)

    def _arrived(self, block: bool) -> "list[Row | _Swap | _Close]":
        items = [self._inbox.get()] if block else []
        while not self._inbox.empty():
            items.append(self._inbox.get())
        return items

    def _swap(self, swap: _Swap, batch: RunningBatch) -> list[Row]:
        rows = batch.clear()
        for row in rows:
            row.close_run(self._version)
        try:
            copy_weights(self._model, swap.state)
        except RuntimeError as e:
            what = f"weights of version {swap.version} were copied in part ({e}); load a full set again"
            swap.done.set_exception(EngineError(what))
            _fail(rows, what, e)
            return []
        self._version = swap.version
        with suppress(InvalidStateError):  # cancelled meanwhile
            swap.done.set_result(None)
        return rows

    def _admit(self, batch: RunningBatch, waiting: list[Row]) -> list[Row]:
        """Let as many join as there is room for; returns the rest."""
        room = self._max_batch - len(batch.rows)
        for group in prefill_groups(waiting[:room]):
            self._work(partial(batch.admit, group), lambda group=group: group)
        return waiting[room:]

    def _work(self, work: Callable[[], list[Row]], at_stake: Callable[[], list[Row]]) -> None:
        """Do one piece of model work and answer the rows it finished; when it fails, the rows at stake do."""
        try:
            finished = work()
        except Exception as e:  # noqa: BLE001 - the thread's boundary: what torch raises is the waiters', the thread lives
            _fail(at_stake(), f"the local engine failed: {type(e).__name__}: {e}", e)
            return
        for row in finished:
            row.close_run(self._version)
            with suppress(InvalidStateError):  # cancelled meanwhile
                row.answer.set_result(row.generation())


def _step(batch: RunningBatch) -> list[Row]:
    batch.drop([row for row in batch.rows if row.answer.cancelled()])
    return batch.step() if batch.rows else []


def _fail(rows: list[Row], what: str, cause: Exception | None) -> None:
    for row in rows:
        error = EngineError(what)
        error.__cause__ = cause
        with suppress(InvalidStateError):  # cancelled meanwhile
            row.answer.set_exception(error)


class LocalTokenEngine:
    """The token engine over a :class:`BatchedModel`."""

    def __init__(self, config: LocalEngine) -> None:
        """Load the model and start its thread; raises ConfigError when it cannot be served."""
        self.context_tokens = config.context_tokens
        self.renderer = config.renderer
        self.tokenizer_path = str(config.model)
        pinned = config.sampling
        self.sampling = Sampling(temperature=pinned.temperature, top_p=pinned.top_p, top_k=pinned.top_k)
        self.model = BatchedModel(
            config.model,
            max_batch=config.max_batch,
            context_tokens=config.context_tokens,
            threads=config.threads,
            seed=config.seed,
        )
        self.model.start()

    async def generate(
        self, session_id: str, prompt_ids_P: Sequence[int], sampling: Sampling, stop_ids: Sequence[int]
    ) -> Generation:
        """Sample one answer; see :meth:`BatchedModel.generate`."""
        return await self.model.generate(prompt_ids_P, sampling, stop_ids)

    async def aclose(self) -> None:
        """Stop the thread and free the model."""
        await asyncio.to_thread(self.model.close)
