"""Blocks of queries and keys, ready for the product that makes a tile."""

from __future__ import annotations

import itertools
import weakref
from dataclasses import dataclass
from math import frexp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.activations import ACTIVATIONS, NORM_EPSILON
from hgviz.maps.cache import Cache
from hgviz.maps.relative import distances_of
from hgviz.maps.rule import Factors, Grouped, plain

_READY = Cache(64 << 20)  # of all maps together
_RIDING = 2  # the columns of the product that add a row's shift, one for each of its parts
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Queries:
    """A block of rows, ready: what meets the keys (rows, d_head), what meets the distances, and
    (rows, 1) each: the factor of a row's scores (None if they have it), the least that weighs, and
    what is added then.
    """

    content: NDArray[Any]
    position: NDArray[Any] | None = None
    factor: NDArray[Any] | None = None
    least: NDArray[Any] | None = None
    shift: tuple[NDArray[Any], ...] = ()

    @property
    def plain(self) -> bool:
        """Whether a product with the keys is all there is to its scores."""
        more = self.position, self.factor, self.least
        return not self.shift and all(one is None for one in more)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        parts = (self.content, self.position, self.factor, self.least, *self.shift)
        return sum(part.nbytes for part in parts if part is not None)


class Operands:
    """What the tiles of one layer are products of, made from its factors when asked for; number is
    that of no other.

    float32 throughout, also of two-byte factors: their products are exact in it, and a float32
    product is the fastest that numpy has on a CPU (float16 has no BLAS, bfloat16 no dtype).
    """

    def __init__(self, factors: Factors) -> None:
        rule = factors.rule
        self._factors, self._rule = factors, rule
        self._acts = tuple(ACTIVATIONS[name] for name in rule.activations)
        self.dtype = np.float64 if factors.dtype == "float64" else np.float32
        self.number = next(_numbers)
        weakref.finalize(self, _READY.forget, self.number).atexit = False
        self._riding = tuple(map(self._rides, range(len(rule.activations))))
        self._distances = distances_of(rule, self.dtype)

    def queries(self, place: int, i: int, rows: range) -> Queries:
        """The block of rows i of the head stored at a place."""
        key = (self.number, place, "q", i)
        make = self._ridden if self._riding[place] else self._made
        return _READY.get(key, lambda: make(place, slice(rows.start, rows.stop)))

    def keys(self, place: int, j: int, columns: range) -> NDArray[Any]:
        """(d_head, keys), with a one for each column of the queries that adds to the scores."""

        def made() -> NDArray[Any]:
            k = self._with_more(place, self._factors.k[place, columns.start : columns.stop]).T
            if not self._riding[place]:
                return np.ascontiguousarray(k)  # lying so, a product takes a tenth less
            ready = np.ones((len(k) + _RIDING, k.shape[1]), self.dtype)
            ready[:-_RIDING] = k
            return ready

        k = self._factors.k
        shared = k.group(place) if isinstance(k, Grouped) else place
        return _READY.get((self.number, shared, "k", j), made)

    def by_distance(
        self, place: int, position: NDArray[Any], rows: range, columns: range
    ) -> NDArray[Any]:
        """(rows, columns) The scores of relative positions."""
        distances = self._distances
        assert distances is not None
        lowest, count = distances.band(rows, columns)
        key = (self.number, place, "r", lowest, count)
        band = _READY.get(key, lambda: distances.keys(place, lowest, count))
        return distances.scores(position, band, len(rows), len(columns))

    def _rides(self, place: int) -> bool:
        """Whether the shift of a head comes out of the product, as columns that meet ones.

        A product adds its columns one after another: the last ones round as additions to the
        whole tile would, for a tenth of the time. Not where something is done to scores between.
        """
        rule, scale = self._rule, self._rule.scale_of(place)
        between = (rule.norms[place], rule.relative, rule.softcap, self._factors.threshold)
        powers = self._acts[place].softmax and abs(frexp(scale)[0]) == 0.5
        return powers and all(one is None for one in between)

    def _ridden(self, place: int, rows: slice) -> Queries:
        q = self._with_one(place, plain(self._factors.q[place, rows], self.dtype))
        ready = np.zeros((len(q), q.shape[1] + _RIDING), self.dtype)
        np.multiply(q, self.dtype(self._rule.scale_of(place)), out=ready[:, :-_RIDING])
        stat = np.asarray(self._factors.stat[place, rows], np.float64)
        for at, part in enumerate(_parts(-stat, self.dtype), q.shape[1]):
            ready[:, at] = part
        return Queries(ready)

    def _made(self, place: int, rows: slice) -> Queries:
        q = plain(self._factors.q[place, rows], self.dtype)
        factor, least, shift = self._row_terms(place, rows)
        content, position = q, None
        if self._distances is not None and self._acts[place].features is None:
            content = self._distances.to_keys(place, q)
            position = self._distances.to_distances(place, q)
        content = self._with_one(place, content)
        # in the model's own order: scaling q first, or a statistic rounded to float32 as one more
        # column of the product, was up to 8 times less exact
        if not (np.abs(np.frexp(factor)[0]) == 0.5).all():
            return Queries(content, position, factor, least, shift)
        # powers of two, as of heads 64 wide, round nothing: the same bits, and a step less a tile
        position = None if position is None else position * factor
        return Queries(content * factor, position, None, least, shift)

    def _with_more(self, place: int, k: NDArray[Any]) -> NDArray[Any]:
        """Keys (keys, d_head), with what they add to any product as one more column."""
        k, of_keys = plain(k, self.dtype), self._acts[place].of_keys
        return k if of_keys is None else np.column_stack([k, of_keys(k, np)])

    def _with_one(self, place: int, q: NDArray[Any]) -> NDArray[Any]:
        """Queries (rows, d_head), with the one that meets that column."""
        if self._acts[place].of_keys is None:
            return q
        return np.column_stack([q, np.ones(len(q), self.dtype)])

    def _row_terms(
        self, place: int, rows: slice
    ) -> tuple[NDArray[Any], NDArray[Any] | None, tuple[NDArray[Any], ...]]:
        """(rows, 1) each: what multiplies the scores of a row, the least that weighs, and what is
        added to them.
        """
        factors, norm = self._factors, self._rule.norms[place]
        statistic = self._acts[place].statistic

        def of(values: NDArray[Any]) -> NDArray[np.float64]:
            return np.asarray(values[place, rows], np.float64)[:, None]

        stat = of(factors.stat)
        divisor, constant = np.ones_like(stat), 0.0
        if norm is not None:
            length = stat if factors.norm is None or statistic == "none" else of(factors.norm)
            literal = norm == "l2-literal"
            divisor = np.where(length > 0, length, 1.0) if literal else length + NORM_EPSILON
            constant = NORM_EPSILON if literal else 0.0
        least = None if factors.threshold is None else of(factors.threshold) / divisor
        shift = np.full_like(stat, constant)
        if statistic == "lse":
            shift -= stat
        elif statistic == "sum":
            over = self._acts[place].divisor(stat)
            divisor, shift = divisor * over, shift / over
            least = None if least is None else least / over
        if least is not None:
            least = None if np.isneginf(least).all() else least.astype(self.dtype)
        factor = (self._rule.scale_of(place) / divisor).astype(self.dtype)
        return factor, least, _parts(shift, self.dtype)


def _parts(shift: NDArray[np.float64], dtype: type[Any]) -> tuple[NDArray[Any], ...]:
    """What is added to scores, as none, one or two numbers of a dtype that make it up."""
    if not shift.any():
        return ()
    # a weight near 1 feels the rounding of a large statistic: the rest follows
    high = shift.astype(dtype)
    rest = np.subtract(shift, high, where=np.isfinite(shift), out=np.zeros_like(shift))
    return (high, rest.astype(dtype)) if rest.any() else (high,)
