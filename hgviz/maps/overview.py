"""Maps made smaller: cells pooled by largest value or mean, the levels and summaries that captures
keep."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Floats, Reduce

Take = Callable[[tuple[int, ...], Any], NDArray[Any]]  # gives memory of a shape and a dtype


def pool(values: NDArray[Any], zoom: int, reduce: Reduce = "max", signed: bool = False) -> Floats:
    """The map in cells of 2^zoom x 2^zoom, those at the far edges cut off by the matrix.

    values (rows, columns) -> float32 (ceil(rows / 2^zoom), ceil(columns / 2^zoom)). max: the
    largest value, for signed maps the value of largest magnitude (of two equal ones the positive);
    mean: over the cells inside the matrix.
    """
    zoom = min(zoom, max(values.shape).bit_length())
    if reduce == "mean":
        sums = fold_sum(values, zoom)
        return (sums / counts(values.shape, zoom)).astype(np.float32)
    folded = fold_magnitude(values, zoom) if signed else fold_max(values, zoom)
    return folded.astype(np.float32, copy=False)


def counts(shape: tuple[int, ...], zoom: int) -> NDArray[np.float64]:
    """How many matrix cells lie in each pooled cell, (ceil(rows / 2^zoom), ...)."""
    rows, columns = (
        np.minimum(size - np.arange(0, size, 1 << zoom), 1 << zoom).astype(np.float64)
        for size in shape
    )
    return rows[:, None] * columns


def fold_max(values: NDArray[Any], zoom: int, take: Take = np.empty) -> NDArray[Any]:
    """The largest value of every cell, in the dtype of the values. take: allocates arrays, of which
    two are used at a time.
    """
    return _fold(values, zoom, np.maximum, -np.inf, take)


def fold_magnitude(values: NDArray[Any], zoom: int) -> NDArray[Any]:
    """The value of largest magnitude of every cell; of two equal ones the positive."""
    return larger(*fold_ends(values, zoom)) if zoom else values


def fold_ends(values: NDArray[Any], zoom: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """(highest, lowest) of every cell, 0 where all values lie on the other side."""
    # zeros outside the matrix never win: a cell holds at least one value of the matrix
    return _fold(values, zoom, np.maximum, 0.0), _fold(values, zoom, np.minimum, 0.0)


def larger(highest: NDArray[Any], lowest: NDArray[Any]) -> NDArray[Any]:
    """Of two values the one of larger magnitude, of equal ones the first."""
    return np.where(highest >= -lowest, highest, lowest)


def fold_sum(values: NDArray[Any], zoom: int) -> NDArray[np.float64]:
    """The sum of every cell, in float64, where the order of summation does not show."""
    return _fold(values.astype(np.float64, copy=False), zoom, np.add, 0.0)


def _fold(
    values: NDArray[Any], zoom: int, join: np.ufunc, outside: float, take: Take = np.empty
) -> NDArray[Any]:
    step = 1 << zoom
    values = _pad(values, step, outside)

    def join_pair(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
        found: NDArray[Any] = join(one, other, out=take(one.shape, one.dtype))
        return found

    # rows first: these are contiguous
    if zoom < 2 or join is np.add:
        for _ in range(zoom):
            values = join_pair(values[0::2], values[1::2])
    else:  # in any order, so in one pass
        height, width = len(values) // step, values.shape[1]
        folded = take((height, width), values.dtype)
        values = join.reduce(values.reshape(height, step, width), axis=1, out=folded)
    for _ in range(zoom):
        values = join_pair(values[:, 0::2], values[:, 1::2])
    return values


def _pad(values: NDArray[Any], step: int, outside: float) -> NDArray[Any]:
    """With sides that are multiples of a step."""
    if values.shape[0] % step or values.shape[1] % step:
        over = [(0, -size % step) for size in values.shape]
        return np.pad(values, over, constant_values=outside)
    return values


# --- kept levels ----------------------------------------------------------------------------------

UNSIGNED_ERROR, SIGNED_ERROR = 0.028, 0.056  # relative, of weights not below the floor
UNSIGNED_CODES, SIGNED_CODES = 255, 127  # of each sign; code 0 is the weight 0
_NEGATIVE = 128
_PART = 128, 256  # cells looked at in one go, which a cache holds
_SMALL = 4096  # cells a side up to which a map is computed as fast as it is looked at

Codes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Range:
    """The smallest and the largest magnitude that the codes of a head span, both 0 for none."""

    floor: float
    maximum: float
    signed: bool = False

    @classmethod
    def of(cls, values: NDArray[Any], signed: bool) -> Range:
        """The range of values whose codes keep the promised error; smaller magnitudes are cut."""
        smallest, maximum = _ends(np.abs(values) if signed else values)
        if not 0 < maximum < math.inf:
            return cls(0.0, 0.0, signed)
        error, codes = _precision(signed)
        # a little less than what just fits, so that rounding to float32 stays inside
        widest = math.exp(2 * math.log1p(0.999 * error) * (codes - 1))
        floor = max(smallest, maximum / widest, float(np.finfo(np.float32).tiny))
        return cls(float(np.float32(min(floor, maximum))), float(np.float32(maximum)), signed)

    @property
    def is_valid(self) -> bool:
        """Whether 0 < floor <= maximum, or both are 0."""
        return (self.floor == self.maximum == 0) or 0 < self.floor <= self.maximum < math.inf


def _precision(signed: bool) -> tuple[float, int]:
    return (SIGNED_ERROR, SIGNED_CODES) if signed else (UNSIGNED_ERROR, UNSIGNED_CODES)


def _ends(sizes: NDArray[Any]) -> tuple[float, float]:
    """The smallest of some magnitudes that is not 0, and the largest: NaN if one is no number."""
    bits = np.dtype(f"u{sizes.itemsize}")
    one, smallest, largest = bits.type(1), np.iinfo(bits).max, 0.0
    for part in parts(sizes.shape):
        some = np.ascontiguousarray(sizes[part])
        largest = float(np.maximum(largest, some.max(initial=0.0)))
        # bits of magnitudes have their order; less one, those of 0 come last
        smallest = min(smallest, int((some.view(bits) - one).min(initial=smallest)))
    if largest == 0:
        return 0.0, 0.0
    return float(bits.type(smallest + 1).view(sizes.dtype)), largest


def parts(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Slices of a matrix that fit a processor's cache; one slice for other arrays."""
    if len(shape) != 2:
        yield (slice(None),)
        return
    for top in range(0, shape[0], _PART[0]):
        for left in range(0, shape[1], _PART[1]):
            yield slice(top, top + _PART[0]), slice(left, left + _PART[1])


def encode(values: NDArray[Any], within: Range) -> Codes:
    """uint8 of weights: the nearest code on a logarithmic scale; what is far below its floor, and
    what is no number, becomes 0. Signed: 1 to 127 for positive weights, 129 to 255 for negative.
    """
    codes = np.zeros(values.shape, np.uint8)
    if within.maximum:
        for part in parts(values.shape):
            if values[part].any():
                codes[part] = _encode_part(values[part].astype(np.float32, copy=False), within)
    return codes


def _encode_part(values: Floats, within: Range) -> Codes:
    """Codes of a few cells."""
    _, last = _precision(within.signed)
    sizes = np.abs(values) if within.signed else values
    span = math.log(within.maximum / within.floor)
    scale = (last - 1) / span if span else 0.0
    # what is no number becomes the floor, and is not seen
    place = np.log(np.fmax(sizes, np.float32(within.floor)))
    place *= np.float32(scale)
    place += np.float32(1.5 - scale * math.log(within.floor))  # cut, it is the nearest
    codes = np.minimum(place, last + 0.5, out=place).astype(np.uint8)
    if within.signed:
        codes += np.uint8(_NEGATIVE) * (values < 0)
    codes *= sizes >= within.floor / 2
    return codes


def decode(codes: Codes, within: Range) -> Floats:
    """The weights (float32) that codes stand for."""
    found: Floats = np.take(_table(within), codes, mode="clip")  # twice as fast as an index
    return found


@lru_cache(maxsize=256)
def _table(within: Range) -> Floats:
    """The weight of each of the 256 codes."""
    table = np.zeros(256, np.float32)
    if within.maximum == 0:
        return table
    _, last = _precision(within.signed)
    steps = np.linspace(math.log(within.floor), math.log(within.maximum), last)
    table[1 : last + 1] = np.exp(steps)
    if within.signed:
        table[_NEGATIVE + 1 :] = -table[1:_NEGATIVE]
    return table


# --- levels ---------------------------------------------------------------------------------------


def lowest_zoom(queries: int, keys: int) -> int | None:
    """The finest zoom that is stored of a map; None for a small one. 3 at 8k, 4 at 32k, 5 at 131k
    positions.
    """
    size = max(queries, keys)
    if size <= _SMALL:
        return None
    return min(8, 3 + max(0, -(-((size - 1).bit_length() - 13) // 2)))


def zooms(queries: int, keys: int, highest: int) -> dict[Reduce, range]:
    """The zooms that are stored of each reduction, up to the highest; means begin one coarser."""
    lowest = lowest_zoom(queries, keys)
    if lowest is None:
        return {"max": range(0), "mean": range(0)}
    return {"max": range(lowest, highest + 1), "mean": range(lowest + 1, highest + 1)}


@dataclass(frozen=True, slots=True)
class Pyramid:
    """The stored levels of one head: codes by reduction and zoom, read when they are sliced.

    shape (queries, keys) is that of the map. A cell of zoom z is 2^z x 2^z positions.
    """

    shape: tuple[int, int]
    levels: Mapping[Reduce, Mapping[int, Any]]
    ranges: Mapping[Reduce, Range]

    def read(
        self, rows: tuple[int, int], columns: tuple[int, int], zoom: int, reduce: Reduce
    ) -> Floats | None:
        """Cells [rows) x [columns) of a zoom, counted in its own cells; None for one too fine."""
        levels = self.levels.get(reduce, {})
        kept = [one for one in levels if one <= zoom]
        if not kept:
            return None
        level, within = max(kept), self.ranges[reduce]
        high, wide = (-(-size >> level) for size in self.shape)
        further = zoom - level
        top, bottom = (min(end << further, high) for end in rows)
        left, right = (min(end << further, wide) for end in columns)
        values = decode(levels[level][top:bottom, left:right], within)
        if not further or not values.size:
            return values
        if reduce == "max":
            return fold_magnitude(values, further) if within.signed else fold_max(values, further)
        # cells at the far edges stand for fewer positions
        size = tuple(
            min(end << level, whole) - (start << level)
            for start, end, whole in ((top, bottom, self.shape[0]), (left, right, self.shape[1]))
        )
        sums = fold_sum(values * counts(size, level), further)
        return (sums / counts(size, zoom)).astype(np.float32)


# --- summaries ------------------------------------------------------------------------------------

THUMB = 128


@dataclass(frozen=True, slots=True)
class Histogram:
    """The number of cells with each of the 256 codes of a range."""

    counts: NDArray[np.uint32]
    within: Range

    @classmethod
    def of(cls, codes: Codes, within: Range) -> Histogram:
        """The histogram of the codes of cells."""
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
    """A small picture and row numbers of one head.

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


def entropy_of(total: NDArray[np.float64], weighted: NDArray[np.float64]) -> Floats:
    """(queries,) Entropies in nats of p = w / S: log S - sum(w log w) / S."""
    some = total > 0
    sums = np.where(some, total, 1.0)
    return np.maximum(np.where(some, np.log(sums) - weighted / sums, 0.0), 0.0).astype(np.float32)
