"""The key-value cache of a running batch: rows are aligned at their last token, shorter ones padded on the left.

B rows, H heads, T columns, D head size.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers.cache_utils import DynamicCache, DynamicLayer

SPARE_COLUMNS = 64
"""Columns allotted ahead of need, so that a decode step writes one column instead of copying the whole cache."""


class RoomyLayer(DynamicLayer):
    """One layer's keys and values, as views of buffers with spare columns on the right."""

    def __init__(self, config: object = None) -> None:
        super().__init__()
        self._buffers: tuple[Tensor, Tensor] | None = None

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Append columns; returns all keys and all values, [B, H, T, D]."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.place(key_states, value_states)
            return self.states
        old = self.states[0].shape[-2]
        new = old + key_states.shape[-2]
        keys, values = self._room_for(new)
        keys[:, :, old:new] = key_states
        values[:, :, old:new] = value_states
        self.keys, self.values = keys[:, :, :new], values[:, :, :new]
        return self.states

    @property
    def states(self) -> tuple[Tensor, Tensor]:
        """All keys and all values, [B, H, T, D] each."""
        assert self.keys is not None, "read before the first update"
        assert self.values is not None
        return self.keys, self.values

    def place(self, keys: Tensor, values: Tensor) -> None:
        """Replace the content, [B, H, T, D] each."""
        self.keys, self.values, self._buffers = keys, values, None

    def _room_for(self, columns: int) -> tuple[Tensor, Tensor]:
        if self._buffers is None or self._buffers[0].shape[-2] < columns:
            self._buffers = _widened(self.states[0], columns), _widened(self.states[1], columns)
        return self._buffers


def new_cache() -> DynamicCache:
    """An empty cache whose layers all keep every column: sliding windows are cut by the mask, not by the cache."""
    cache = DynamicCache()
    cache.layer_class_to_replicate = RoomyLayer
    return cache


def select(cache: DynamicCache, rows: list[int], columns: int) -> None:
    """Keep ``rows``, in that order, and the last ``columns`` columns."""
    index = torch.tensor(rows)
    for layer in _layers(cache):
        keys, values = layer.states
        layer.place(_picked(keys, index, columns), _picked(values, index, columns))


def join(cache: DynamicCache, newcomers: DynamicCache) -> None:
    """Append the rows of ``newcomers`` to ``cache``; the narrower of the two is padded on the left."""
    for layer, new in zip(_layers(cache), _layers(newcomers), strict=True):
        (keys, values), (new_keys, new_values) = layer.states, new.states
        layer.place(_stacked(keys, new_keys), _stacked(values, new_values))


def _layers(cache: DynamicCache) -> list[RoomyLayer]:
    return [layer for layer in cache.layers if isinstance(layer, RoomyLayer)]


def _picked(states: Tensor, index: Tensor, columns: int) -> Tensor:
    return states[:, :, -columns:].index_select(0, index)


def _stacked(a: Tensor, b: Tensor) -> Tensor:
    columns = max(a.shape[-2], b.shape[-2])
    return torch.cat([pad(x, (0, 0, columns - x.shape[-2], 0)) for x in (a, b)])


def _widened(states: Tensor, columns: int) -> Tensor:
    b, h, t, d = states.shape
    buffer = states.new_empty(b, h, columns + SPARE_COLUMNS, d)
    buffer[:, :, :t] = states
    return buffer
