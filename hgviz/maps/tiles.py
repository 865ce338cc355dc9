"""Maps as tiles of a fixed grid, so that a cell has the same bits in every read.

Windows at any zoom, surveys of whole maps, and what both need: threads of BLAS, a cache,
exponentials.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Cancelled, Floats, HgvizError, Interval, Reduce, cancel_condition
from hgviz.maps.overview import (
    Codes,
    Pyramid,
    Range,
    Summary,
    counts,
    encode,
    entropy_of,
    fold_magnitude,
    fold_max,
    fold_sum,
    larger,
    lowest_zoom,
    thumb_zoom,
    zooms,
)

# --- threads of BLAS ------------------------------------------------------------------------------

# numpy's wheels rename OpenBLAS's functions; distributions and conda keep the plain names
_NAMES = (
    ("scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_"),
    ("scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"),
    ("openblas_get_num_threads64_", "openblas_set_num_threads64_"),
    ("openblas_get_num_threads", "openblas_set_num_threads"),
    ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
)
_lock = threading.Lock()
_inside = 0
_before = 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Let numpy's BLAS use one thread inside, and as many as before afterwards.

    The number belongs to the process, so the first one in sets it and the last one out restores
    it. Tiles get their parallelism from tile workers, whose products must not start threads.
    """
    global _inside, _before
    get, put = _threads()
    with _lock:
        _inside += 1
        if _inside == 1:
            _before = get()
            put(1)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                put(_before)


@cache
def _threads() -> tuple[Callable[[], int], Callable[[int], object]]:
    """The two functions of numpy's own BLAS; for one without them, two that do nothing."""
    for path in _libraries():
        with suppress(OSError):
            library = ctypes.CDLL(str(path))
            for get, put in _NAMES:
                if hasattr(library, get) and hasattr(library, put):
                    return getattr(library, get), getattr(library, put)
    return lambda: 1, lambda _: None


def _libraries() -> Iterator[Path]:
    # a symbol is looked up in what the extension was linked with, too, except on Windows
    yield Path(np._core._multiarray_umath.__file__)  # type: ignore[attr-defined]
    yield from Path(np.__file__).parent.parent.glob("numpy.libs/*openblas*")


# --- memory that is kept --------------------------------------------------------------------------


class Sized(Protocol):
    """An object that knows its size in bytes."""

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        ...


Kept = TypeVar("Kept", bound=Sized)


class Cache:
    """A cache of the most recently used values, shared by threads; limit: its size in bytes.

    Keys are tuples, of which the first part says whose a value is.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._held = limit, 0
        self._values: OrderedDict[tuple[Hashable, ...], Any] = OrderedDict()
        self._gone: deque[Hashable] = deque()
        self._lock = threading.Lock()

    def get(self, key: tuple[Hashable, ...], make: Callable[[], Kept]) -> Kept:
        """The value of a key; make() if it is missing."""
        with self._lock:
            self._let_go()
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]  # type: ignore[no-any-return]
        value = make()
        with self._lock:
            if key not in self._values:
                self._values[key] = value
                self._held += value.nbytes
            while self._held > self._limit:
                self._held -= self._values.popitem(last=False)[1].nbytes
        return value

    def forget(self, owner: Hashable) -> None:
        """Drop all values of an owner: now, or at the next use if the cache is in use.

        It waits for nothing, since it may be called while this very thread is at work here: when
        an owner is collected as garbage.
        """
        self._gone.append(owner)
        if self._lock.acquire(blocking=False):
            try:
                self._let_go()
            finally:
                self._lock.release()

    def _let_go(self) -> None:
        while self._gone:
            owner = self._gone.popleft()
            for key in [one for one in self._values if one[0] == owner]:
                self._held -= self._values.pop(key).nbytes

    @property
    def held(self) -> int:
        """The size of all values in bytes."""
        return self._held


def release_memory() -> None:
    """Return freed memory to the system: glibc keeps it, 500 MB after a text of 900,000 letters.

    It takes some 20 ms.
    """
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)


# --- exponentials ---------------------------------------------------------------------------------

_BITS = np.float32(1 / np.log(2))


def exponential(logs: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
    """e^x of logs, by way of powers of 2 where these are faster.

    The product with 1 / log 2 is rounded, by which a weight e^-x is off by x e^-x 2^-24 at most:
    all in all half of what numpy's own exp is off.
    """
    found: NDArray[Any]
    if logs.dtype == np.float32 and _has_fast_powers_of_2():
        found = np.multiply(logs, _BITS, out=out)
        np.exp2(found, out=found)
    else:
        found = np.exp(logs, out=out)
    return found


@cache
def _has_fast_powers_of_2() -> bool:
    """Whether numpy takes float32 exp2 from Intel's vector library, as its builds for Linux do with
    AVX-512: with the product, two thirds of the time of exp. Elsewhere exp2 goes one by one.
    """
    if sys.platform != "linux":
        return False
    try:
        from numpy.lib.introspect import opt_func_info
    except ImportError:  # before numpy 2.2
        return False
    kinds = opt_func_info(func_name="^exp2$", signature="float32").get("exp2", {})
    return any(one["current"] in ("AVX512_SKX", "X86_V4") for one in kinds.values())


# --- tiles ----------------------------------------------------------------------------------------

TILE = 256
TILE_ZOOM = 8  # at this zoom a tile is one cell

Pieces = Callable[[int, int, range, int], Iterator[tuple[int, NDArray[Any] | None]]]
Window = tuple[int, int, int, int]  # top, bottom, left, right, half-open


class Tiled(ABC):
    """The maps of one layer, put together from tiles of TILE x TILE cells on a grid from (0, 0).

    Subclasses give tiles of weights; head numbers are turned into places (0, 1, ..) here.
    """

    # the summary of the head at a place, where summaries are stored
    _stored: Callable[[int], Summary] | None = None

    def __init__(
        self,
        shape: tuple[int, int, int],
        heads: tuple[int, ...],
        signed: bool,
        pyramids: Callable[[int], Pyramid] | None = None,
    ) -> None:
        if len(heads) != shape[0]:
            raise ValueError(f"{len(heads)} head numbers for {shape[0]} maps")
        self._shape, self._heads, self._signed = shape, tuple(heads), signed
        self._pyramids = pyramids

    @property
    def shape(self) -> tuple[int, int, int]:
        """(heads, queries, keys)"""
        return self._shape

    @property
    def heads(self) -> tuple[int, ...]:
        """The head numbers, in stored order."""
        return self._heads

    @property
    def signed(self) -> bool:
        """Whether weights can be negative."""
        return self._signed

    def read(
        self,
        head: int,
        rows: Interval = None,
        columns: Interval = None,
        zoom: int = 0,
        reduce: Reduce = "max",
    ) -> Floats:
        """Weights of a head in cells of 2^zoom x 2^zoom positions, float32 (rows, columns).

        head is the head's number. rows and columns are half-open from 0 (a slice, a range, a pair,
        None for all), widened to multiples of 2^zoom and cut by the matrix. max: the largest value
        of a cell, for signed maps that of largest magnitude; mean: over the cell's part inside the
        matrix, what is masked counting as 0. Raises HgvizError for a head this layer has not.
        """
        place = self.place(head)
        if zoom < 0 or reduce not in ("max", "mean"):
            raise ValueError(f"zoom must be 0 or more, reduce max or mean: got {zoom}, {reduce!r}")
        zoom = min(zoom, max(self.shape[1:]).bit_length())  # from there on all is one cell
        top, bottom = round_outwards(rows, self.shape[1], zoom)
        left, right = round_outwards(columns, self.shape[2], zoom)
        inner = min(zoom, TILE_ZOOM)
        window = (top >> inner, -(-bottom >> inner), left >> inner, -(-right >> inner))
        with one_thread(), np.errstate(invalid="ignore", over="ignore"):
            if reduce == "max":
                cells = self._assemble(self.pooled, place, window, inner, np.float32)
                found = self.fold(cells, zoom - inner)
            else:
                sums = self._assemble(self._sum_tiles, place, window, inner, np.float64)
                found = fold_sum(sums, zoom - inner) / counts((bottom - top, right - left), zoom)
                found = found.astype(np.float32) + np.float32(0)
        return found

    def overview(
        self,
        head: int,
        rows: Interval = None,
        columns: Interval = None,
        zoom: int = 0,
        reduce: Reduce = "max",
    ) -> Floats | None:
        """As `read`, from levels that are stored in the capture, without computing a tile.

        Weights differ by at most 2.8 % (5.6 % where they are signed), those more than 10^5.9 times
        smaller than the largest read as 0 or as that. None where no level is as fine as the zoom.
        """
        place = self.place(head)
        if self._pyramids is None or zoom < 0:
            return None
        zoom = min(zoom, max(self.shape[1:]).bit_length())
        (top, bottom), (left, right) = (
            round_outwards(one, size, zoom)
            for one, size in ((rows, self.shape[1]), (columns, self.shape[2]))
        )
        down, across = (top >> zoom, -(-bottom >> zoom)), (left >> zoom, -(-right >> zoom))
        return self._pyramids(place).read(down, across, zoom, reduce)

    def summary(self, head: int) -> Summary:
        """Thumbnail, largest weights and entropies of a head; computed unless stored."""
        place, (_, queries, keys) = self.place(head), self.shape
        if self._stored is not None:
            return self._stored(place)
        zoom = min(thumb_zoom(queries, keys), TILE_ZOOM)
        return summarize(self, survey(self, place, SurveyRequest(largest=zoom)))

    def place(self, head: int) -> int:
        """Where a head number is stored. Raises HgvizError when it is not."""
        if head in self._heads:
            return self._heads.index(head)
        listed = ", ".join(map(str, self._heads)) or "none"
        raise HgvizError(
            f"this layer has no head {head}: its heads are {listed}", "Choose one of these"
        )

    @abstractmethod
    def weights(self, place: int, i: int, j: int) -> NDArray[Any] | None:
        """Tile (i, j) of the head stored at a place; None where all its cells are zero."""

    def pooled(
        self, place: int, i: int, tiles: range, zoom: int
    ) -> Iterator[tuple[int, NDArray[Any] | None]]:
        """Tiles (i, j) in cells of 2^zoom, zoom <= TILE_ZOOM, each its largest weight: the first j
        of one or more that lie side by side, and their cells, None where one is all zeros. These
        are good until the next ones.
        """
        for j in tiles:
            tile = self.weights(place, i, j)
            yield j, None if tile is None else self.fold(tile, zoom)

    def tiles_in(self, i: int) -> range:
        """The tiles j of block row i outside which there are only zeros."""
        return range(-(-self.shape[2] // TILE))

    def is_softmax(self, place: int) -> bool:
        """Whether the weights of a head are exp of `logs`."""
        return False

    def logs(self, place: int, i: int, j: int) -> NDArray[Any] | None:
        """The logarithms of a tile of weights of a softmax, -inf where a key is masked; None where
        all are.
        """
        raise NotImplementedError

    def terms(self, place: int, i: int, j: int) -> NDArray[Any] | None:
        """The terms of the log-sum-exp of rows in a tile; None where all are masked."""
        raise NotImplementedError

    def fold(self, values: NDArray[Any], zoom: int) -> NDArray[Any]:
        """Largest values, or those of largest magnitude where weights are signed."""
        return fold_magnitude(values, zoom) if self._signed else fold_max(values, zoom)

    def _sum_tiles(
        self, place: int, i: int, tiles: range, zoom: int
    ) -> Iterator[tuple[int, NDArray[Any] | None]]:
        for j in tiles:
            tile = self.weights(place, i, j)
            yield j, None if tile is None else fold_sum(tile, zoom)

    def _assemble(
        self, pieces: Pieces, place: int, window: Window, zoom: int, dtype: type[Any]
    ) -> NDArray[Any]:
        """The pieces of all tiles that meet a window, both in cells of 2^zoom."""
        top, bottom, left, right = window
        cells = np.empty((bottom - top, right - left), dtype)
        step = TILE >> zoom
        for i in range(top // step, -(-bottom // step)):
            above, some = i * step - top, self.tiles_in(i)
            band = cells[max(above, 0) : above + step]
            band[:, : max(some.start * step - left, 0)] = 0
            band[:, max(some.stop * step - left, 0) :] = 0
            met = range(max(left // step, some.start), min(-(-right // step), some.stop))
            for j, part in pieces(place, i, met, zoom):
                before = j * step - left
                width = step if part is None else part.shape[1]
                target = band[:, max(before, 0) : before + width]
                if part is None:
                    target[:] = 0
                else:
                    cut = part[max(-above, 0) :, max(-before, 0) :]
                    cut = cut[: target.shape[0], : target.shape[1]]
                    # adding 0 turns -0 into 0; while copying, since a pass of its own is dear
                    np.add(cut, 0, out=target, dtype=dtype, casting="same_kind")
        return cells


def round_outwards(interval: Interval, size: int, zoom: int) -> tuple[int, int]:
    """(start, stop) of an interval, rounded outwards to multiples of 2^zoom and cut at size."""
    if isinstance(interval, tuple):
        interval = slice(*(max(0, end) for end in interval))
    elif isinstance(interval, range):
        interval = slice(interval.start, interval.stop, interval.step)
    start, stop, step = (interval or slice(None)).indices(size)
    if step != 1:
        raise ValueError(f"rows and columns cannot have a step: got {step}")
    if stop <= start:
        return 0, 0
    return start >> zoom << zoom, min(-(-stop >> zoom) << zoom, size)


# --- surveys of whole maps ------------------------------------------------------------------------

_TINY, _LEAST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).min)


class Visit(Protocol):
    """A function that receives a map block by block of rows."""

    def __call__(self, xp: Any, top: int, parts: Iterable[tuple[int, Any, Any]]) -> None:
        """Receive the rows from top on, in parts: the first column, weights (rows, columns) in
        whole tiles, zeros outside the map, and their logarithms if these are at hand. Arrays are of
        the module xp, numpy or torch, and good until the next.
        """


class Blocks(Protocol):
    """A function that computes all weights of a map: by its tiles, or on a device."""

    def __call__(
        self, maps: Tiled, place: int, visit: Visit, rows: NDArray[np.bool_] | None = None
    ) -> None:
        """Visit the map of the head stored at a place in blocks; rows (queries,): those that
        matter, None for all. Raises MemoryError where a device has too little of it.
        """


def tile_blocks(
    maps: Tiled, place: int, visit: Visit, rows: NDArray[np.bool_] | None = None
) -> None:
    """Visit a map tile by tile, in as many threads as there are cores.

    Each thread has rows of its own, so that results have the same bits with any number of threads.
    """
    is_softmax = maps.is_softmax(place)

    def tiles(i: int) -> Iterator[tuple[int, Any, Any]]:
        memory = None  # used again, since fresh memory would take a tenth of all time
        for j in maps.tiles_in(i):
            tile = maps.logs(place, i, j) if is_softmax else maps.weights(place, i, j)
            if tile is None:
                continue
            if is_softmax:
                logs = _pad(tile, -np.inf)
                memory = exponential(logs, out=memory)
                yield j * TILE, memory, logs
            else:
                yield j * TILE, _pad(tile, 0.0), None

    def visit_rows(i: int) -> None:
        if rows is None or rows[i * TILE : (i + 1) * TILE].any():
            with np.errstate(invalid="ignore", over="ignore"):
                visit(np, i * TILE, tiles(i))

    in_threads(visit_rows, -(-maps.shape[1] // TILE))


def _pad(tile: NDArray[Any], outside: float) -> NDArray[Any]:
    """A tile with TILE rows and columns, also at the far edges of a map."""
    if tile.shape == (TILE, TILE):
        return tile
    return np.pad(tile, [(0, TILE - size) for size in tile.shape], constant_values=outside)


@dataclass(frozen=True, slots=True)
class SurveyRequest:
    """What a survey returns besides row numbers.

    The map in cells of 2^largest by largest weight, in cells of 2^sums by sum (None for none), and
    some rows.
    """

    largest: int
    sums: int | None = None
    rows: tuple[int, ...] = ()


class Survey:
    """The results of one pass over the map of a head; memory does not grow with the map.

    total (queries,): the sum of each row by magnitude. cells: the map pooled by largest weight, and
    sums: by sum, both float32 in cells of the sizes asked for. rows (rows, keys): those asked for.
    """

    def __init__(self, maps: Tiled, wanted: SurveyRequest) -> None:
        _, queries, keys = maps.shape

        def cells(zoom: int | None) -> Floats:
            shape = (0, 0) if zoom is None else (-(-queries >> zoom), -(-keys >> zoom))
            return np.zeros(shape, np.float32)

        self.wanted, self._signed = wanted, maps.signed
        self.total, self._weighted, self._highest, self._lowest = np.zeros((4, queries))
        self.cells, self.sums = cells(wanted.largest), cells(wanted.sums)
        self.rows = np.zeros((len(wanted.rows), keys))

    @property
    def top(self) -> NDArray[Any]:
        """(queries,) The largest weight of each row, by magnitude when signed."""
        return larger(self._highest, self._lowest)

    @property
    def entropy(self) -> Floats:
        """(queries,) float32, in nats."""
        return entropy_of(self.total, self._weighted)

    def add(self, xp: Any, top: int, parts: Iterable[tuple[int, Any, Any]]) -> None:
        """Add a block of rows; see Visit. The same code for numpy and for torch."""
        total: Any = 0.0
        weighted: Any = 0.0
        highest = lowest = None
        for left, weights, logs in parts:
            tiles = weights.reshape(len(weights), -1, TILE)
            sizes = xp.abs(tiles) if self._signed else tiles
            total = total + sum_rows(xp, sizes)
            weighted = weighted + _sum_weighted_logs(xp, sizes, logs)
            # cell by cell, since that is faster than row by row
            highest = _merge_ends(highest, tiles, xp.amax, xp.maximum)
            if self._signed:
                lowest = _merge_ends(lowest, tiles, xp.amin, xp.minimum)
            self._add_cells(xp, weights, top, left)
        if highest is not None:
            rows = slice(top, top + len(highest))
            height = len(self.total[rows])
            self.total[rows], self._weighted[rows] = total[:height], weighted[:height]
            self._highest[rows] = np.maximum(as_numpy(xp.amax(highest, 1))[:height], 0)
            if lowest is not None:
                self._lowest[rows] = np.minimum(as_numpy(xp.amin(lowest, 1))[:height], 0)

    def _add_cells(self, xp: Any, weights: Any, top: int, left: int) -> None:
        """Add the rows and cells asked for of a block of weights."""
        for at, row in enumerate(self.wanted.rows):
            if top <= row < top + len(weights):
                target = self.rows[at, left : left + weights.shape[1]]
                target[:] = as_numpy(weights[row - top])[: len(target)]
        zoom, sums = self.wanted.largest, self.wanted.sums
        cells = _fold_block(weights, zoom, xp.amax, xp.maximum)
        if self._signed:
            lowest = _fold_block(weights, zoom, xp.amin, xp.minimum)
            cells = xp.where(cells >= -lowest, cells, lowest)
        self._fill(self.cells, cells, top, left, zoom)
        if sums is not None:
            self._fill(self.sums, _sum_block(xp, weights, sums), top, left, sums)

    def _fill(self, into: Floats, cells: Any, top: int, left: int, zoom: int) -> None:
        target = into[top >> zoom :, left >> zoom :][: cells.shape[0], : cells.shape[1]]
        target[:] = as_numpy(cells)[: target.shape[0], : target.shape[1]]

    def settle(self, before: NDArray[np.float64], stat: NDArray[np.float64]) -> None:
        """Correct top and rows of a softmax whose statistic (queries,) changed after the pass.

        Cells are not that exact.
        """
        known = np.isfinite(before) & np.isfinite(stat)
        factor = np.exp(np.subtract(before, stat, out=np.zeros(len(stat)), where=known))
        self._highest *= factor
        self.rows *= factor[list(self.wanted.rows), None]


def as_numpy(values: Any) -> Any:
    """A numpy array, or a tensor of any device as one."""
    return values if isinstance(values, np.ndarray) else values.cpu().numpy()


def sum_rows(xp: Any, tiles: Any) -> NDArray[np.float64]:
    """(rows,) The sums of tiles (rows, n, TILE): of each tile in its dtype, of all in float64."""
    sums: NDArray[np.float64] = as_numpy(tiles @ xp.ones_like(tiles[0, 0])).sum(1, np.float64)
    return sums


# these steps are the fastest that numpy has, and good ones on a device


def _sum_weighted_logs(xp: Any, sizes: Any, logs: Any) -> NDArray[np.float64]:
    """(rows,) The sums of w log w of tiles of weights w (rows, n, TILE), logs None if unknown."""
    if logs is None:
        logs = xp.log(xp.clip(sizes, _TINY, None))
    logs = logs.reshape(sizes.shape)
    sums = as_numpy(xp.linalg.vecdot(sizes, logs))
    if np.isnan(sums).any():  # 0 times -inf
        sums = as_numpy(xp.linalg.vecdot(sizes, xp.clip(logs, _LEAST, None)))
    added: NDArray[np.float64] = sums.sum(1, np.float64)
    return added


def _merge_ends(values: Any, tiles: Any, reduce: Callable[[Any, int], Any], join: Any) -> Any:
    """(rows, TILE) The largest or smallest of some values and of tiles (rows, n, TILE)."""
    if values is None:
        return reduce(tiles, 1)
    return join(values, reduce(tiles, 1) if tiles.shape[1] > 1 else tiles[:, 0], out=values)


def _fold_block(
    values: Any, zoom: int, reduce: Callable[[Any, int], Any], join: Callable[[Any, Any], Any]
) -> Any:
    """The largest or smallest of cells of 2^zoom in a block of whole tiles."""
    height, width = values.shape
    values = reduce(values.reshape(height >> zoom, 1 << zoom, width), 1)
    for _ in range(zoom):
        values = join(values[:, 0::2], values[:, 1::2])
    return values


def _sum_block(xp: Any, values: Any, zoom: int) -> Any:
    """The sums of cells of 2^zoom in a block of whole tiles."""
    height, width = values.shape
    ones = xp.ones_like(values[0, : 1 << zoom])
    rows = ones @ values.reshape(height >> zoom, 1 << zoom, width)
    return (rows.reshape(-1, 1 << zoom) @ ones).reshape(height >> zoom, width >> zoom)


def survey(maps: Tiled, place: int, wanted: SurveyRequest, blocks: Blocks = tile_blocks) -> Survey:
    """Survey the map of the head at a place; by tiles where a device is too small."""
    try:
        found = Survey(maps, wanted)
        blocks(maps, place, found.add)
    except MemoryError:
        found = Survey(maps, wanted)
        tile_blocks(maps, place, found.add)
    return found


def row_totals(
    maps: Tiled,
    place: int,
    rows: NDArray[np.bool_] | None = None,
    blocks: Blocks = tile_blocks,
) -> NDArray[np.float64]:
    """(queries,) The sums of the rows of a head. rows (queries,): those that matter, None for all;
    NaN in tiles without any.
    """
    queries = maps.shape[1]
    starts = np.arange(0, queries, TILE)
    matter = np.ones(len(starts), bool) if rows is None else np.logical_or.reduceat(rows, starts)
    if not matter.any():
        return np.full(queries, np.nan)
    found = np.zeros(queries)

    def add(xp: Any, top: int, parts: Iterable[tuple[int, Any, Any]]) -> None:
        for _, weights, _ in parts:
            rows = found[top : top + len(weights)]
            rows += sum_rows(xp, weights.reshape(len(weights), -1, TILE))[: len(rows)]

    try:
        blocks(maps, place, add, rows)
    except MemoryError:
        found[:] = 0
        tile_blocks(maps, place, add, rows)
    found[~np.repeat(matter, TILE)[:queries]] = np.nan
    return found


def row_log_sums(maps: Tiled, place: int) -> NDArray[np.float64]:
    """The log-sum-exp (queries,) of the `terms` of each row; +inf where all are masked."""
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
    """The Euclidean norm (queries,) of the `logs` of each row of a head, with -inf as 0."""
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
    """Call work with 0 .. count - 1, in as many threads as there are cores."""
    affinity = getattr(os, "sched_getaffinity", None)  # macOS and Windows have none
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    is_cancelled = cancel_condition()

    def call(i: int) -> None:
        if is_cancelled():
            raise Cancelled
        work(i)

    with one_thread():
        if min(cores, count) < 2:
            for i in range(count):
                call(i)
            return
        with ThreadPoolExecutor(min(cores, count)) as pool:
            for _ in pool.map(call, range(count)):
                pass


def summarize(maps: Tiled, found: Survey) -> Summary:
    """The summary of a head from its survey."""
    zoom = thumb_zoom(*maps.shape[1:]) - found.wanted.largest
    thumb: Floats = maps.fold(found.cells, zoom) + np.float32(0)
    return Summary(thumb, found.top.astype(np.float32) + np.float32(0), found.entropy)


def storage_request(maps: Tiled, rows: tuple[int, ...] = ()) -> SurveyRequest:
    """The survey of a map that is stored: its finest levels, and some rows."""
    _, queries, keys = maps.shape
    lowest = lowest_zoom(queries, keys)
    if lowest is None:
        return SurveyRequest(min(thumb_zoom(queries, keys), TILE_ZOOM), None, rows)
    return SurveyRequest(lowest, lowest + 1, rows)


def build_pyramid(maps: Tiled, found: Survey) -> Pyramid | None:
    """The levels of a head from a survey by storage_request; None for a small map."""
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
