"""One pass over all tiles of a head, for everything that is to be known of the whole map: its
summary, and what is stored of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Cancelled, Floats, Reduce, cancel_condition
from hgviz.maps.pyramid import (
    Codes,
    Pyramid,
    Range,
    counts,
    decode,
    encode,
    fold_sum,
    fold_sum_roughly,
    larger,
    lowest_zoom,
    parts,
    zooms,
)
from hgviz.maps.tiles import TILE, TILE_ZOOM, Tiled, exponential, one_thread

_TINY = np.finfo(np.float32).tiny


@dataclass(frozen=True, slots=True)
class Survey:
    """What one pass found of a head.

    total (queries,): the sum of each row. top (queries,): its largest weight, by magnitude when
    signed. entropy (queries,) in nats. cells: the map pooled by largest weights, and sums: by sums,
    both float32 in cells of the sizes asked for. rows (rows, keys): those asked for.
    """

    total: NDArray[np.float64]
    top: NDArray[Any]
    entropy: Floats
    cells: Floats
    sums: Floats
    rows: NDArray[Any]

    def settled(
        self, wanted: Wanted, before: NDArray[np.float64], stat: NDArray[np.float64]
    ) -> Survey:
        """What is found of the weights of a softmax whose statistic (queries,) was another before;
        cells are not that exact."""
        known = np.isfinite(before) & np.isfinite(stat)
        factor = np.exp(np.subtract(before, stat, out=np.zeros(len(stat)), where=known))
        rows = self.rows * factor[list(wanted.rows), None]
        return replace(self, top=self.top * factor, rows=rows)


@dataclass(slots=True)
class _Rows:
    """The findings that a block of rows writes to, its part of those of a head."""

    total: NDArray[np.float64]
    weighted: NDArray[np.float64]
    top: NDArray[Any]
    lowest: NDArray[Any]
    cells: Floats
    sums: Floats
    rows: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a survey keeps: the map in cells of 2^largest by largest weight, of 2^sums by sum, None
    for none, and some of its rows.
    """

    largest: int
    sums: int | None = None
    rows: tuple[int, ...] = ()


Surveyor = Callable[[Tiled, int, Wanted], Survey]


def survey(maps: Tiled, place: int, wanted: Wanted) -> Survey:
    """Look at every tile of the head stored at a place, by as many threads as there are cores.

    Memory grows with rows and with the cells asked for, not with the map. The same bits whatever
    the number of threads: each writes rows of its own.
    """
    _, queries, keys = maps.shape

    def cells(zoom: int | None) -> Floats:
        if zoom is None:
            return np.zeros((0, 0), np.float32)
        return np.zeros((-(-queries >> zoom), -(-keys >> zoom)), np.float32)

    total, weighted, top, lowest = (np.zeros(queries) for _ in range(4))
    whole = _Rows(
        total, weighted, top, lowest, cells(wanted.largest), cells(wanted.sums),
        np.zeros((len(wanted.rows), keys)),
    )  # fmt: skip
    look = _look_at_logs if maps.by_softmax(place) else _look_at_weights

    def block(i: int) -> None:
        with np.errstate(invalid="ignore", over="ignore"):
            look(maps, place, i, whole, wanted)

    in_threads(block, -(-queries // TILE))
    entropy = entropy_of(whole.total, whole.weighted)
    largest = larger(whole.top, whole.lowest)
    return Survey(whole.total, largest, entropy, whole.cells, whole.sums, whole.rows)


def totals(maps: Tiled, place: int, rows: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """The sum of each row of a head (queries,); NaN for blocks without any of the rows asked for,
    None for all.
    """
    found = np.full(maps.shape[1], np.nan)

    def block(i: int) -> None:
        part = slice(i * TILE, (i + 1) * TILE)
        if rows is not None and not rows[part].any():
            return
        found[part] = 0.0
        with np.errstate(invalid="ignore", over="ignore"):
            for j in maps.tiles_in(i):
                tile = maps.weights(place, i, j)
                if tile is not None:
                    found[part] += tile @ np.ones(tile.shape[1], tile.dtype)

    in_threads(block, -(-maps.shape[1] // TILE))
    return found


def log_sums(maps: Tiled, place: int) -> NDArray[np.float64]:
    """The log-sum-exp of each row of what a head's `terms` are (queries,); +inf for none."""
    found = np.full(maps.shape[1], np.inf)

    def block(i: int) -> None:
        rows = found[i * TILE : (i + 1) * TILE]
        top, total = np.full(len(rows), -np.inf), np.zeros(len(rows))
        for j in maps.tiles_in(i):
            logs = maps.terms(place, i, j)
            if logs is None:
                continue
            before, top = top, np.maximum(top, logs.max(1))
            base = np.where(np.isfinite(top), top, 0.0)
            logs -= base.astype(logs.dtype)[:, None]
            raised = np.exp(logs, out=logs)
            total = total * np.exp(before - base) + raised @ np.ones(logs.shape[1], logs.dtype)
        some = total > 0
        rows[some] = top[some] + np.log(total[some])

    in_threads(block, -(-maps.shape[1] // TILE))
    return found


def lengths(maps: Tiled, place: int) -> NDArray[np.float64]:
    """The Euclidean length of each row of what a head's `logs` are (queries,), -inf as 0."""
    found = np.zeros(maps.shape[1])

    def block(i: int) -> None:
        part = slice(i * TILE, (i + 1) * TILE)
        for j in maps.tiles_in(i):
            logs = maps.logs(place, i, j)
            if logs is not None:
                np.copyto(logs, 0.0, where=np.isneginf(logs))
                found[part] += np.vecdot(logs, logs, dtype=np.float64)

    in_threads(block, -(-maps.shape[1] // TILE))
    return np.sqrt(found)


def in_threads(work: Callable[[int], None], count: int) -> None:
    """Calls with 0 .. count - 1, in threads where there are cores for them."""
    affinity = getattr(os, "sched_getaffinity", None)  # macOS and Windows have none
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    is_cancelled = cancel_condition()

    def one(i: int) -> None:
        if is_cancelled():
            raise Cancelled
        work(i)

    with one_thread():
        if min(cores, count) < 2:
            for i in range(count):
                one(i)
            return
        with ThreadPoolExecutor(min(cores, count)) as pool:
            for _ in pool.map(one, range(count)):
                pass


def _look_at_logs(maps: Tiled, place: int, i: int, found: _Rows, wanted: Wanted) -> None:
    """A block of rows of a softmax, whose logarithms are at hand before its weights."""
    rows = slice(i * TILE, (i + 1) * TILE)
    height, some = len(found.total[rows]), maps.tiles_in(i)
    top: NDArray[Any] | None = None  # of all tiles, cell by cell, since that is fast
    for at, j in enumerate(some):
        logs = maps.logs(place, i, j)
        if logs is None:
            continue
        width = logs.shape[1]
        if top is None:
            # no weight is negative: their bits as integers have the same order, and are faster
            bits = np.dtype(f"u{logs.itemsize}")
            top, ones = np.zeros((height, TILE), bits), np.ones(TILE, logs.dtype)
            room = np.empty((height, TILE), logs.dtype)
            total, weighted = np.zeros((2, len(some), height), logs.dtype)
        # into the same memory each time: fresh pages cost a tenth of all
        weights = exponential(logs, out=room if width == TILE else None)
        np.maximum(top[:, :width], weights.view(bits), out=top[:, :width])
        np.matmul(weights, ones[:width], out=total[at])
        part = np.vecdot(weights, logs, out=weighted[at])
        if isnan(part @ ones[:height]):  # 0 times -inf
            np.vecdot(weights, np.maximum(logs, np.finfo(logs.dtype).min, out=logs), out=part)
        _keep(weights, i, j, found, wanted)
        _pool(maps, weights, i, j, found, wanted)
    if top is not None:
        found.top[rows] = top.view(ones.dtype).max(1)
        found.total[rows] = total.sum(0, np.float64)
        found.weighted[rows] = weighted.sum(0, np.float64)


def _look_at_weights(maps: Tiled, place: int, i: int, found: _Rows, wanted: Wanted) -> None:
    """A block of rows of any other map."""
    rows = slice(i * TILE, (i + 1) * TILE)
    top, lowest = found.top[rows], found.lowest[rows]
    for j in maps.tiles_in(i):
        tile = maps.weights(place, i, j)
        if tile is None:
            continue
        np.maximum(top, tile.max(1), out=top)
        np.minimum(lowest, tile.min(1), out=lowest)
        size = np.abs(tile) if maps.signed else tile
        found.total[rows] += size.sum(1)
        found.weighted[rows] += np.vecdot(size, np.log(np.maximum(size, _TINY)))
        _keep(tile, i, j, found, wanted)
        _pool(maps, tile, i, j, found, wanted)


def _keep(tile: NDArray[Any], i: int, j: int, found: _Rows, wanted: Wanted) -> None:
    for at, row in enumerate(wanted.rows):
        if row // TILE == i:
            found.rows[at, j * TILE : (j + 1) * TILE] = tile[row - i * TILE]


def _pool(maps: Tiled, tile: NDArray[Any], i: int, j: int, found: _Rows, wanted: Wanted) -> None:
    step = TILE >> wanted.largest
    target = found.cells[i * step : (i + 1) * step, j * step : (j + 1) * step]
    target[:] = maps.fold(tile, wanted.largest)
    if wanted.sums is not None:
        step = TILE >> wanted.sums
        target = found.sums[i * step : (i + 1) * step, j * step : (j + 1) * step]
        target[:] = fold_sum_roughly(tile, wanted.sums)


def entropy_of(total: NDArray[np.float64], weighted: NDArray[np.float64]) -> Floats:
    """(queries,) Entropies in nats of p = w / S: log S - sum(w log w) / S."""
    some = total > 0
    sums = np.where(some, total, 1.0)
    return np.maximum(np.where(some, np.log(sums) - weighted / sums, 0.0), 0.0).astype(np.float32)


# --- summaries ------------------------------------------------------------------------------------

THUMB = 128


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many cells have each of the 256 codes that magnitudes have within a range."""

    counts: NDArray[np.uint32]
    within: Range

    @classmethod
    def of(cls, codes: Codes, within: Range) -> Histogram:
        """The histogram of cells that are codes already."""
        found, seen = np.zeros(256, np.uint32), 0
        for part in parts(codes.shape):
            if codes[part].any():
                found += np.bincount(codes[part].ravel(), minlength=256).astype(np.uint32)
                seen += codes[part].size
        found[0] += codes.size - seen
        return cls(found, within)

    def quantile(self, share: float) -> float:
        """The magnitude that this share of the cells does not exceed, as exact as a code is."""
        sizes = np.abs(decode(np.arange(256, dtype=np.uint8), self.within))
        order = np.argsort(sizes, kind="stable")
        reached = np.cumsum(self.counts[order], dtype=np.float64)
        if not reached[-1]:
            return 0.0
        at = np.searchsorted(reached, min(max(share, 0.0), 1.0) * reached[-1])
        return float(sizes[order[at]])


@dataclass(frozen=True, slots=True)
class Summary:
    """One head at a glance.

    thumb (<= 128, <= 128) float32: the map pooled by its largest weights, both sides by the same
    power of two. rowmax (queries,): the largest weight of each row, by magnitude when signed.
    entropy (queries,): of |row| / sum |row|, in nats; 0 for a row without weights. hist: of the
    finest cells that were pooled by largest weights; None where these are those of thumb.
    """

    thumb: Floats
    rowmax: Floats
    entropy: Floats
    hist: Histogram | None = None

    @property
    def peak(self) -> float:
        """The largest magnitude of the whole map."""
        return float(np.abs(self.rowmax).max(initial=0.0))

    def quantile(self, share: float) -> float:
        """The magnitude that this share of the map's cells does not exceed, at a glance: cells of
        the finest level there is, each as large as its largest weight, within 2.8 % (signed 5.6).
        """
        if self.hist is not None:
            return self.hist.quantile(share)
        sizes = np.abs(self.thumb)
        within = Range.of(sizes, signed=False)
        return Histogram.of(encode(sizes, within), within).quantile(share)


def thumb_zoom(queries: int, keys: int) -> int:
    """The zoom of a thumbnail: the smallest at which both sides have at most THUMB cells."""
    return max(0, (max(queries, keys, 1) - 1).bit_length() - (THUMB.bit_length() - 1))


def summarise(maps: Tiled, head: int) -> Summary:
    """The summary of a head, tile by tile: memory does not grow with the map."""
    place, (_, queries, keys) = maps.place(head), maps.shape
    zoom = min(thumb_zoom(queries, keys), TILE_ZOOM)
    return summary_of(maps, survey(maps, place, Wanted(largest=zoom)), zoom)


class Summarised(Tiled):
    """Maps that are looked at whole; `_stored` gives the summary of the head at a place where these
    are kept."""

    _stored: Callable[[int], Summary] | None = None

    def summary(self, head: int) -> Summary:
        """Thumbnail, largest weights and entropies of a head; computed unless stored."""
        return self._stored(self.place(head)) if self._stored else summarise(self, head)


def summary_of(maps: Tiled, found: Survey, zoom: int) -> Summary:
    """The summary of a head that was surveyed in cells of 2^zoom."""
    _, queries, keys = maps.shape
    thumb: Floats = maps.fold(found.cells, thumb_zoom(queries, keys) - zoom) + np.float32(0)
    return Summary(thumb, found.top.astype(np.float32) + np.float32(0), found.entropy)


def to_store(maps: Tiled, rows: tuple[int, ...] = ()) -> Wanted:
    """What is surveyed of a map that is to be stored: its finest kept levels, and some rows."""
    _, queries, keys = maps.shape
    lowest = lowest_zoom(queries, keys)
    if lowest is None:
        return Wanted(min(thumb_zoom(queries, keys), TILE_ZOOM), None, rows)
    return Wanted(lowest, lowest + 1, rows)


def pyramid_of(maps: Tiled, found: Survey) -> Pyramid | None:
    """The kept levels of a head that was surveyed by to_store; None for a small map."""
    _, queries, keys = maps.shape
    wanted = zooms(queries, keys, thumb_zoom(queries, keys))
    if not wanted["max"]:
        return None
    levels: dict[Reduce, Mapping[int, Codes]] = {}
    ranges: dict[Reduce, Range] = {}
    values: dict[int, Floats] = {}
    for zoom in wanted["max"]:
        values[zoom] = maps.fold(values[zoom - 1], 1) if zoom - 1 in values else found.cells
    # a coarser level has no number that the finest has not
    ranges["max"] = Range.of(found.cells, maps.signed)
    levels["max"] = {zoom: encode(one, ranges["max"]) for zoom, one in values.items()}
    values, sums = {}, found.sums
    for zoom in wanted["mean"]:
        sums = fold_sum(sums, 1).astype(np.float32) if zoom - 1 in values else sums
        values[zoom] = (sums / counts((queries, keys), zoom)).astype(np.float32)
    # means can be smaller where signs cancel or zeros join
    ends = [Range.of(one, maps.signed) for one in values.values()]
    edges = [edge for one in ends for edge in (one.floor, one.maximum) if edge > 0]
    ranges["mean"] = Range.of(np.array([min(edges), max(edges)] if edges else []), maps.signed)
    levels["mean"] = {zoom: encode(one, ranges["mean"]) for zoom, one in values.items()}
    return Pyramid((queries, keys), levels, ranges)
