"""Surveys of whole maps on the device of a model, where that is not the CPU.

They find what numpy's find, but for the rounding of float32. Where that could show in a weight,
numpy's own tiles are asked, since it is these that are looked at later.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from typing import Any, TypeGuard

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from hgviz.activations import ACTIVATIONS
from hgviz.core import Floats
from hgviz.maps.lazy import HARMLESS, ROUNDED, LazyMap, Totals
from hgviz.maps.rule import Diagonals, plain
from hgviz.maps.survey import (
    Survey,
    Surveyor,
    Wanted,
    entropy_of,
    in_threads,
    survey,
    totals,
)
from hgviz.maps.tiles import TILE, TILE_ZOOM, Tiled
from hgviz.models.attention import visible
from hgviz.models.devices import out_of_memory
from hgviz.models.mechanisms import DistanceScores

LEAST = 1 << 20  # cells of a map that is worth starting kernels for; benchmarks/device.py tells
CELLS = 1 << 24  # weighed at a time, but for at least a tile's rows: 64 MB, a few times over


def surveyor(device: str) -> Surveyor:
    """The survey for the maps of a model on a device; for the CPU that is numpy's.

    On another, torch looks at softmaxes of q and k, causal, windowed, padded, or with relative
    positions; numpy at all other maps, at small ones, and at a head for which the device has too
    little memory.
    """
    if device == "cpu":
        return survey

    def look(maps: Tiled, place: int, wanted: Wanted) -> Survey:
        found = surveyed(maps, place, wanted, device) if _for_device(maps, place, device) else None
        return survey(maps, place, wanted) if found is None else found

    return look


def adder(device: str) -> Totals:
    """What adds up the rows of such maps, for hgviz.maps.settled; by torch as surveyor."""
    if device == "cpu":
        return totals

    def add(maps: Tiled, place: int, rows: NDArray[np.bool_] | None) -> NDArray[np.float64]:
        found = None
        if (rows is None or rows.any()) and _for_device(maps, place, device):
            found = surveyed(maps, place, Wanted(TILE_ZOOM), device)
        return totals(maps, place, rows) if found is None else found.total

    return add


def _for_device(maps: Tiled, place: int, device: str) -> TypeGuard[LazyMap]:
    """Whether a head is large, its weights exp(score - statistic), in numbers that a device has."""
    if not isinstance(maps, LazyMap) or maps.shape[1] * maps.shape[2] < LEAST:
        return False
    rule = maps.factors.rule
    norm, known = rule.norms[place], device != "mps" or maps.factors.dtype != "float64"
    known = known and rule.softcap is None and not isinstance(rule.relative, Diagonals)
    return known and norm is None and maps.by_softmax(place) and maps.weighs_all(place)


def surveyed(maps: LazyMap, place: int, wanted: Wanted, device: str) -> Survey | None:
    """The survey of such a head by torch; None where the device has not the memory for it."""
    found = _Found(maps, wanted)
    try:
        with in_full, torch.inference_mode():
            head = _Head(maps, place, device)
            for rows, columns in head.parts():
                found.add(head, rows, columns)
    except RuntimeError as error:
        if out_of_memory(error):
            return None
        raise
    found.add_heavy(maps, place)
    return found.survey


class _InFull:
    """Products of float32 in float32, not in TF32, in any thread while at least one is in here;
    afterwards whatever was chosen before. The choice is the whole process's.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._before = Lock(), 0, ""

    def __enter__(self) -> None:
        matmul = torch.backends.cuda.matmul
        with self._lock:
            if not self._inside:
                self._before, matmul.fp32_precision = matmul.fp32_precision, "ieee"
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                torch.backends.cuda.matmul.fp32_precision = self._before


in_full = _InFull()


class _Head:
    """One head on a device, padded to whole tiles with rows and keys that do not exist."""

    def __init__(self, maps: LazyMap, place: int, device: str) -> None:
        factors, rule = maps.factors, maps.factors.rule
        self.rule, self.keys, self.scale = rule.of(place), maps.shape[2], rule.scale_of(place)
        dtype = np.float64 if factors.dtype == "float64" else np.float32

        def put(values: NDArray[Any], outside: float = 0) -> Tensor:
            over = [(0, -len(values) % TILE), *[(0, 0)] * (values.ndim - 1)]
            return torch.tensor(np.pad(values, over, constant_values=outside), device=device)

        def term(values: NDArray[Any]) -> Tensor:
            return torch.tensor(plain(values[place], dtype), device=device)[None]

        self.q, self.k = (put(plain(one[place], dtype)) for one in (factors.q, factors.k))
        self.content, self.distances = self.q, None
        if (one := rule.relative) is not None:
            terms = one.map(term)
            content, position = terms.query_terms(self.q[None, None])
            self.content, self.position = content[0, 0], position
            sizes = len(self.q), len(self.k)
            self.distances = DistanceScores(terms, rule, *sizes, self.q.device)
        of_keys = ACTIVATIONS[rule.activations[place]].of_keys
        if of_keys is not None:  # what keys add to any product, as one more column
            self.content = F.pad(self.content, (0, 1), value=1.0)
            self.k = torch.cat([self.k, of_keys(self.k, torch)[:, None]], 1)
        # a weight near 1 feels the rounding of a large statistic: the rest follows
        stat = np.asarray(factors.stat[place], np.float64)
        high = stat.astype(dtype)
        low = np.subtract(stat, high, where=np.isfinite(stat), out=np.zeros_like(stat))
        self.stat = [put(high, np.inf)[:, None]]
        if low.any():
            self.stat.append(put(low.astype(dtype))[:, None])
        # how far the score of a weight may be off, see maps.settled
        size = np.abs(stat, where=np.isfinite(stat), out=np.zeros_like(stat))
        self.rounded = put((ROUNDED * np.maximum(size, 1)).astype(dtype))[:, None]
        self.keep = put(np.ones(self.keys, bool) if rule.keep is None else rule.keep)[None]

    def parts(self) -> Iterator[tuple[slice, slice]]:
        """Some rows, and the columns in which they can have weights, in whole tiles."""
        step = max(1, CELLS // len(self.k) // TILE) * TILE
        for top in range(0, len(self.q), step):
            bottom = min(top + step, len(self.q))
            first = self.rule.reach(top, self.keys)[0] // TILE * TILE
            stop = -(-self.rule.reach(bottom - 1, self.keys)[1] // TILE) * TILE
            first = first if self.distances is None else 0  # these go from the first key on
            if first < stop:
                yield slice(top, bottom), slice(first, stop)

    def weights(self, rows: slice, columns: slice) -> Tensor:
        """The weights of a part (rows, columns)."""
        i, j = (torch.arange(one.start, one.stop, device=self.q.device) for one in (rows, columns))
        logs = self.content[rows] @ self.k[columns].T
        if self.distances is not None:
            logs += self.distances.scores(self.position[:, :, rows], i, len(j))[0, 0]
        logs *= self.scale
        for part in self.stat:
            logs -= part[rows]
        hidden = ~visible(self.rule, i, j, self.keep)[0, 0]
        return logs.masked_fill_(hidden, -torch.inf).exp_()


class _Found:
    """What is found of a head, part by part; see Survey."""

    def __init__(self, maps: LazyMap, wanted: Wanted) -> None:
        _, queries, keys = maps.shape

        def cells(zoom: int | None) -> Floats:
            shape = (0, 0) if zoom is None else (-(-queries >> zoom), -(-keys >> zoom))
            return np.zeros(shape, np.float32)

        self.wanted = wanted
        self.total, self.weighted, self.top = np.zeros((3, queries))
        self.cells, self.sums = cells(wanted.largest), cells(wanted.sums)
        self.rows = np.zeros((len(wanted.rows), keys))
        self.heavy = np.zeros((-(-queries // TILE), -(-keys // TILE)), bool)

    def add(self, head: _Head, rows: slice, columns: slice) -> None:
        """A part of the map, but for the totals of heavy tiles: of those with a weight that the
        rounding of its score shows in.
        """
        weights, largest, sums = head.weights(rows, columns), self.wanted.largest, self.wanted.sums
        wide = torch.float32 if weights.device.type == "mps" else torch.float64  # MPS has no other
        tiles = blocks(weights, TILE_ZOOM)  # (i, TILE, j, TILE)
        tops, felt = tiles.amax(3), head.rounded[rows].view(-1, TILE, 1)
        heavy = (tops * felt).amax(1) > HARMLESS  # (i, j)
        light = tiles.sum(3).masked_fill(heavy[:, None], 0)
        weighted = torch.xlogy(weights, weights)  # 0 where a weight is 0
        self.total[rows] += self._rows(light.sum(2, dtype=wide).flatten(), rows)
        self.weighted[rows] += self._rows(weighted.sum(1, dtype=wide), rows)
        top = self._rows(tops.amax(2).flatten(), rows)
        self.top[rows] = np.maximum(self.top[rows], top)
        for at, row in enumerate(self.wanted.rows):
            if rows.start <= row < rows.stop:
                target = self.rows[at, columns]
                target[:] = weights[row - rows.start, : len(target)].cpu().numpy()
        _fill(self.heavy, heavy, rows, columns, TILE_ZOOM)
        _fill(self.cells, blocks(weights, largest).amax((1, 3)), rows, columns, largest)
        if sums is not None:
            _fill(self.sums, blocks(weights, sums).sum((1, 3)), rows, columns, sums)

    def _rows(self, values: Tensor, rows: slice) -> NDArray[Any]:
        return values[: len(self.total[rows])].cpu().numpy()

    def add_heavy(self, maps: LazyMap, place: int) -> None:
        """Totals and rows of heavy tiles, as numpy has them.

        Statistics are settled by totals: what is off between a tile and the total of its row is
        off in what the tile shows.
        """

        def block(i: int) -> None:
            total = self.total[i * TILE : (i + 1) * TILE]
            for j in np.flatnonzero(self.heavy[i]):
                with np.errstate(invalid="ignore", over="ignore"):
                    tile = maps.weights(place, i, int(j))
                assert tile is not None
                total += tile @ np.ones(tile.shape[1], tile.dtype)
                for at, row in enumerate(self.wanted.rows):
                    if row // TILE == i:
                        self.rows[at, j * TILE : (j + 1) * TILE] = tile[row % TILE]

        in_threads(block, len(self.heavy))

    @property
    def survey(self) -> Survey:
        """All of it."""
        top = np.fmax(self.top, 0)  # for numpy, too, NaN is no weight
        entropy = entropy_of(self.total, self.weighted)
        return Survey(self.total, top, entropy, self.cells, self.sums, self.rows)


def blocks(values: Tensor, zoom: int) -> Tensor:
    """(rows, columns) as (i, 2^zoom, j, 2^zoom)."""
    return values.unflatten(1, (-1, 1 << zoom)).unflatten(0, (-1, 1 << zoom))


def _fill(into: NDArray[Any], cells: Tensor, rows: slice, columns: slice, zoom: int) -> None:
    """Put the cells of 2^zoom of a part in their place, but for those that were padded."""
    target = into[rows.start >> zoom : rows.stop >> zoom, columns.start >> zoom :]
    target = target[:, : cells.shape[1]]
    target[:] = cells[: target.shape[0], : target.shape[1]].cpu().numpy()
