"""Scores of relative positions, computed for the band of distances that one tile needs."""

from __future__ import annotations

from functools import lru_cache
from math import gcd
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from hgviz.maps.rule import Relative, Rule


class Distances:
    """The distances between rows and columns of one layer, as multiples of a common step.

    Row i and column j are (j a - i b) steps apart, of alpha_c rad at frequency c.
    """

    def __init__(self, rule: Rule, relative: Relative) -> None:
        step = gcd(rule.stride_q, rule.stride_k)
        self.a, self.b = rule.stride_k // step, rule.stride_q // step
        self.width = int(relative.weight.shape[-1])
        self.size = step / relative.unit  # what one step adds to delta

    def band(self, rows: range, columns: range) -> tuple[int, int]:
        """(lowest, count): the distances that occur in a block of rows and columns."""
        lowest = columns.start * self.a - (rows.stop - 1) * self.b
        return lowest, (len(columns) - 1) * self.a + (len(rows) - 1) * self.b + 1

    def keys(
        self, weight: NDArray[Any], bias: NDArray[Any], lowest: int, count: int
    ) -> NDArray[Any]:
        """W phi(delta) + b of a band, (count, d_head), in the dtype of bias.

        phi(lowest + r) is phi(r) turned by the angle of lowest, and turning W (d_head, width)
        instead lets all bands share one table of phi(r).
        """
        half = self.width // 2
        sin, cos = _turn(lowest * self.size * _frequencies(self.width))
        sines, cosines = weight[:, :half], weight[:, half:]
        turned = np.concatenate([sines * cos - cosines * sin, sines * sin + cosines * cos], axis=1)
        band: NDArray[Any] = _table(count, self.size, self.width) @ turned.T + bias
        return band.astype(bias.dtype)

    def skewed(self, scores: NDArray[Any], rows: int, columns: int) -> NDArray[Any]:
        """Scores by distance (rows, count) read along the slants: a view (rows, columns)."""
        down, across = scores.strides
        start = scores[:, (rows - 1) * self.b :]
        shape, strides = (rows, columns), (down - self.b * across, self.a * across)
        return as_strided(start, shape, strides, writeable=False)


def _frequencies(width: int) -> NDArray[np.float64]:
    return 10000.0 ** (-2.0 * np.arange(width // 2) / width)


def _turn(angles: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.sin(angles), np.cos(angles)


@lru_cache(maxsize=32)
def _table(count: int, size: float, width: int) -> NDArray[np.float64]:
    """phi(0), phi(1 step), .. (count, width); for 256 rows less than a megabyte."""
    sin, cos = _turn(np.arange(count)[:, None] * size * _frequencies(width))
    return np.concatenate([sin, cos], axis=1)
