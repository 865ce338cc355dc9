"""Scores of relative positions, computed for the band of distances that one tile needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from math import gcd
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from hgviz.maps.rule import Diagonals, Relative, Rule, plain

Array = NDArray[Any]


class Distances(ABC):
    """The distances between rows and columns of one layer, as multiples of a common step.

    Row i and column j are (j a - i b) steps apart. dtype: of all that is given.
    """

    names: tuple[str, str, str, str]  # queries and keys, and what meets as them for distances

    def __init__(self, rule: Rule, dtype: type[Any]) -> None:
        self.step = gcd(rule.stride_q, rule.stride_k)
        self.a, self.b = rule.stride_k // self.step, rule.stride_q // self.step
        self.dtype = dtype

    def band(self, rows: range, columns: range) -> tuple[int, int]:
        """(lowest, count): the distances that occur in a block of rows and columns."""
        lowest = columns.start * self.a - (rows.stop - 1) * self.b
        return lowest, (len(columns) - 1) * self.a + (len(rows) - 1) * self.b + 1

    def scores(self, position: Array, band: Array, rows: int, columns: int) -> Array:
        """Scores (rows, columns) of what meets distances (rows, width), for those of a band."""
        return self.skewed(position @ band.T, rows, columns)

    def skewed(self, scores: Array, rows: int, columns: int) -> Array:
        """Scores by distance (rows, count) read along the slants: a view (rows, columns)."""
        down, across = scores.strides
        start = scores[:, (rows - 1) * self.b :]
        shape, strides = (rows, columns), (down - self.b * across, self.a * across)
        return as_strided(start, shape, strides, writeable=False)

    @abstractmethod
    def to_keys(self, place: int, q: Array) -> Array:
        """What queries (rows, d_head) of a head meet keys with, (rows, d_head)."""

    @abstractmethod
    def to_distances(self, place: int, q: Array) -> Array:
        """What they meet distances with, (rows, width)."""

    @abstractmethod
    def keys(self, place: int, lowest: int, count: int) -> Array:
        """What they meet there for each distance of a band, (count, width)."""


class Sinusoids(Distances):
    """Those of Transformer-XL (Dai et al. 2019, 3.3)."""

    names = "q+u", "k", "q+v", "r"

    def __init__(self, rule: Rule, relative: Relative, dtype: type[Any]) -> None:
        super().__init__(rule, dtype)
        self.relative, self.width = relative, int(relative.weight.shape[-1])
        self.size = self.step / relative.unit  # what one step adds to delta

    def _term(self, values: Array, place: int) -> Array:
        return plain(values[place], self.dtype)

    def to_keys(self, place: int, q: Array) -> Array:
        """q + u"""
        return q + self._term(self.relative.content, place)

    def to_distances(self, place: int, q: Array) -> Array:
        """q + v"""
        return q + self._term(self.relative.position, place)

    def keys(self, place: int, lowest: int, count: int) -> Array:
        """W phi(delta) + b of a band, (count, d_head).

        phi(lowest + r) is phi(r) turned by the angle of lowest, and turning W (d_head, width)
        instead lets all bands share one table of phi(r).
        """
        weight, bias = (
            self._term(self.relative.weight, place),
            self._term(self.relative.bias, place),
        )
        half = self.width // 2
        sin, cos = _turn(lowest * self.size * _frequencies(self.width))
        sines, cosines = weight[:, :half], weight[:, half:]
        turned = np.concatenate([sines * cos - cosines * sin, sines * sin + cosines * cos], axis=1)
        band: Array = _table(count, self.size, self.width) @ turned.T + bias
        return band.astype(self.dtype)


class ByDistance(Distances):
    """Every query meets the same number, which depends on the distance alone."""

    def to_keys(self, place: int, q: Array) -> Array:
        """q"""
        return q

    def to_distances(self, place: int, q: Array) -> Array:
        """1"""
        return np.ones((len(q), 1), self.dtype)

    def scores(self, position: Array, band: Array, rows: int, columns: int) -> Array:
        """The same number at a distance in every row, times what that row has for it."""
        each = np.broadcast_to(band[:, 0], (rows, len(band)))
        found: Array = self.skewed(each, rows, columns) * position
        return found


class Parabolas(ByDistance):
    """Quadratic ones."""

    names = "q", "k", "1", "−a(δ−c)²"

    def __init__(self, rule: Rule, curve: Array, dtype: type[Any]) -> None:
        super().__init__(rule, dtype)
        self.curve = curve

    def keys(self, place: int, lowest: int, count: int) -> Array:
        """-a (delta - c)^2 of a band, (count, 1)."""
        a, c = plain(self.curve[place], np.float64)
        delta = np.arange(lowest, lowest + count)[:, None] * float(self.step)
        found: Array = -a * (delta - c) ** 2
        return found.astype(self.dtype)


class Biases(ByDistance):
    """Those that are given one by one; beyond the last they are 0, where no cell is."""

    names = "q", "k", "1", "b(δ)"

    def __init__(self, rule: Rule, given: Diagonals, dtype: type[Any]) -> None:
        super().__init__(rule, dtype)
        self.given = given

    def keys(self, place: int, lowest: int, count: int) -> Array:
        """b(delta) of a band, (count, 1)."""
        first, size = lowest - self.given.lowest, self.given.values.shape[1]
        start, stop = max(0, first), max(0, min(first + count, size))
        found = np.zeros((count, 1), self.dtype)
        if stop > start:
            known = plain(self.given.values[place, start:stop], self.dtype)
            found[start - first : stop - first, 0] = known
        return found


def distances_of(rule: Rule, dtype: type[Any]) -> Distances | None:
    """The relative positions of a layer, None where it has none."""
    one = rule.relative
    if one is None:
        return None
    if isinstance(one, Relative):
        return Sinusoids(rule, one, dtype)
    if isinstance(one, Diagonals):
        return Biases(rule, one, dtype)
    return Parabolas(rule, one.curve, dtype)


def _frequencies(width: int) -> NDArray[np.float64]:
    return 10000.0 ** (-2.0 * np.arange(width // 2) / width)


def _turn(angles: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.sin(angles), np.cos(angles)


@lru_cache(maxsize=32)
def _table(count: int, size: float, width: int) -> NDArray[np.float64]:
    """phi(0), phi(1 step), .. (count, width); for 256 rows less than a megabyte."""
    sin, cos = _turn(np.arange(count)[:, None] * size * _frequencies(width))
    return np.concatenate([sin, cos], axis=1)
