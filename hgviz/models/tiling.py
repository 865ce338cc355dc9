"""Tiles of maps by torch, on the device of a model, where that is not the CPU.

They are what hgviz.maps reads but for the rounding of float32, and made of the same operands. A
product has one shape here too, so that a cell has the same bits in every read on a device.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hgviz.activations import ACTIVATIONS
from hgviz.core import Floats, Interval, Map
from hgviz.maps.lazy import LazyMap
from hgviz.maps.tiles import TILE, Cache, widened
from hgviz.models import surveying
from hgviz.models.devices import out_of_memory
from hgviz.models.surveying import blocks, in_full
from hgviz.models.weighing import visible

SIDE = 4  # tiles of a block, down and across: one batch of products
SPAN = SIDE * TILE
SPAN_ZOOM = 10  # at this zoom a block is one cell
ROOM = 256 << 20  # bytes of operands and of blocks kept on the device

Reader = Callable[[Map, int, Interval, Interval, int], Floats | None]


@cache
def reader(device: str) -> Reader | None:
    """What reads maps on a device: the largest weights of cells, as Map.read (maps, head, rows,
    columns, zoom); None for the CPU, where maps read themselves.

    The reader gives None for maps that only numpy reads: small ones, of relative positions, of the
    largest scores alone, with rows that are filled, or not made of q and k; and where memory lacks.
    """
    return None if device == "cpu" else _Reader(device).read


@dataclass(frozen=True, slots=True)
class _Rows:
    """The queries of a block, (SIDE, TILE, ...) each; see hgviz.maps.lazy.Queries."""

    content: Tensor
    factor: Tensor | None
    shift: tuple[Tensor, ...]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        parts = (self.content, self.factor, *self.shift)
        return sum(one.nbytes for one in parts if one is not None)


class _Reader:
    """Reads on a device, where it keeps the blocks that were read last and what they are made of.

    A block is several of the parts that a window asks for, one after another.
    """

    def __init__(self, device: str) -> None:
        self._device, self._kept = device, Cache(ROOM)
        self._turn = Lock()  # a device works on one block at a time, and the next may be of it
        self._known: set[int] = set()  # the numbers of the operands in there

    def read(
        self, maps: Map, head: int, rows: Interval, columns: Interval, zoom: int
    ) -> Floats | None:
        """See `reader`."""
        if not isinstance(maps, LazyMap) or not self._can(maps, place := maps.place(head)):
            return None
        if maps.operands.number not in self._known:
            self._known.add(maps.operands.number)
            weakref.finalize(maps.operands, self._forget, maps.operands.number).atexit = False
        try:
            with self._turn, in_full, torch.inference_mode():
                return self._read(maps, place, rows, columns, zoom)
        except RuntimeError as error:
            if out_of_memory(error):
                self._kept = Cache(ROOM)
                return None
            raise

    def _forget(self, number: int) -> None:
        self._known.discard(number)
        self._kept.forget(number)

    def _can(self, maps: LazyMap, place: int) -> bool:
        factors = maps.factors
        large = maps.shape[1] * maps.shape[2] >= surveying.LEAST
        known = self._device != "mps" or factors.dtype != "float64"
        rule = factors.rule
        plain = rule.relative is None and rule.softcap is None and not maps.fills
        plain = plain and rule.band is None and rule.chunk is None
        plain = plain and ACTIVATIONS[rule.activations[place]].logs is None
        return large and known and plain and maps.weighs_all(place)

    def _read(
        self, maps: LazyMap, place: int, rows: Interval, columns: Interval, zoom: int
    ) -> Floats:
        _, queries, keys = maps.shape
        zoom = min(zoom, max(queries, keys).bit_length())  # from there on all is one cell
        inner = min(zoom, SPAN_ZOOM)
        step = SPAN >> inner
        (top, bottom), (left, right) = (
            (first >> inner, -(-last >> inner))
            for first, last in (widened(rows, queries, zoom), widened(columns, keys, zoom))
        )
        cells = np.zeros((bottom - top, right - left), np.float32)
        for i in range(top // step, -(-bottom // step)):
            some = _blocks_in(maps, i)
            first, last = max(left // step, some.start), min(-(-right // step), some.stop)
            for j in range(first, last):
                down, across = i * step - top, j * step - left
                target = cells[max(down, 0) : down + step, max(across, 0) : across + step]
                block = self._cells(maps, place, i, j, inner)
                part = block[max(-down, 0) :, max(-across, 0) :]
                part = part[: target.shape[0], : target.shape[1]]
                np.add(part.cpu().numpy(), 0, out=target, casting="same_kind")  # no -0
        return maps.fold(cells, zoom - inner)

    def _cells(self, maps: LazyMap, place: int, i: int, j: int, zoom: int) -> Tensor:
        """Block (i, j) in cells of 2^zoom, what lies outside of the matrix included."""
        key = (maps.operands.number, "cells", place, i, j, zoom)
        return self._kept.get(key, lambda: self._made(maps, place, i, j, zoom))

    def _made(self, maps: LazyMap, place: int, i: int, j: int, zoom: int) -> Tensor:
        act, rows = ACTIVATIONS[maps.factors.rule.activations[place]], self._rows(maps, place, i)
        scores = rows.content[:, None] @ self._keys(maps, place, j)  # (i, j, TILE, TILE)
        if rows.factor is not None:
            scores *= rows.factor[:, None]
        for one in rows.shift:
            scores += one[:, None]
        scores = scores.transpose(1, 2).reshape(SPAN, SPAN)
        scores.masked_fill_(
            self._hidden(maps, place, i, j), -torch.inf if act.statistic == "lse" else 0.0
        )
        weights = act.apply(scores, None, torch)
        if not zoom:
            return weights
        cells = blocks(weights, zoom)
        highest = cells.amax((1, 3))
        if not act.signed:
            return highest
        lowest = cells.amin((1, 3))
        return torch.where(highest >= -lowest, highest, lowest)

    def _hidden(self, maps: LazyMap, place: int, i: int, j: int) -> Tensor:
        """bool (SPAN, SPAN): the cells that do not exist."""
        _, queries, keys = maps.shape
        rule = maps.factors.rule.of(place)

        def kept() -> Tensor:
            real = np.zeros(-(-keys // SPAN) * SPAN, bool)
            real[:keys] = True if rule.keep is None else rule.keep
            return torch.tensor(real, device=self._device)[None]

        down, across = (
            torch.arange(at * SPAN, (at + 1) * SPAN, device=self._device) for at in (i, j)
        )
        keep = self._kept.get((maps.operands.number, "keep"), kept)
        seen = visible(rule, down, across, keep)[0, 0] & (down < queries)[:, None]
        return ~seen

    def _rows(self, maps: LazyMap, place: int, i: int) -> _Rows:
        def made() -> _Rows:
            some = [maps.operands.queries(place, at, rows) for at, rows in _tiles(i, maps.shape[1])]
            most = max(len(one.shift) for one in some)
            shift = [
                self._put([one.shift[n] if n < len(one.shift) else None for one in some])
                for n in range(most)
            ]
            content = self._put([one.content for one in some])
            assert content is not None
            factor = self._put([one.factor for one in some], outside=1.0)
            return _Rows(content, factor, tuple(one for one in shift if one is not None))

        return self._kept.get((maps.operands.number, "q", place, i), made)

    def _keys(self, maps: LazyMap, place: int, j: int) -> Tensor:
        """(SIDE, d_head, TILE)"""

        def made() -> Tensor:
            some = [maps.operands.keys(place, at, one).T for at, one in _tiles(j, maps.shape[2])]
            found = self._put(some)
            assert found is not None
            return found.transpose(1, 2).contiguous()

        return self._kept.get((maps.operands.number, "k", place, j), made)

    def _put(self, parts: Sequence[NDArray[Any] | None], outside: float = 0.0) -> Tensor | None:
        """(SIDE, TILE, n): what tiles have, (rows, n) each; None where none has any."""
        first = next((one for one in parts if one is not None), None)
        if first is None:
            return None
        found = np.full((SIDE, TILE, first.shape[1]), outside, first.dtype)
        for at, one in enumerate(parts):
            if one is not None:
                found[at, : len(one)] = one
        return torch.tensor(found, device=self._device)


def _tiles(block: int, size: int) -> list[tuple[int, range]]:
    """The tiles of a block that lie in a matrix of so many rows or columns, and their ranges."""
    numbers = range(block * SIDE, min((block + 1) * SIDE, -(-size // TILE)))
    return [(one, range(one * TILE, min((one + 1) * TILE, size))) for one in numbers]


def _blocks_in(maps: LazyMap, i: int) -> range:
    """The blocks of block row i that can have weights."""
    some = [maps.tiles_in(at) for at, _ in _tiles(i, maps.shape[1])]
    return range(some[0].start // SIDE, -(-some[-1].stop // SIDE))
