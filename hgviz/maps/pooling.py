"""Making a map smaller: the largest value of a cell, or its mean."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Floats, Reduce


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


def fold_max(values: NDArray[Any], zoom: int) -> NDArray[Any]:
    """The largest value of every cell; the dtype stays."""
    return _fold(values, zoom, np.maximum, -np.inf)


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


def fold_sum_roughly(values: NDArray[Any], zoom: int) -> NDArray[Any]:
    """The sum of every cell in the dtype of the values, three times as fast."""
    return _fold(values, zoom, np.add, 0.0, exact=False)


def _fold(
    values: NDArray[Any], zoom: int, join: np.ufunc, outside: float, exact: bool = True
) -> NDArray[Any]:
    step = 1 << zoom
    if any(size % step for size in values.shape):
        over = [(0, -size % step) for size in values.shape]
        values = np.pad(values, over, constant_values=outside)
    # rows first: these are contiguous
    if zoom < 2 or (exact and join is np.add):
        for _ in range(zoom):
            values = join(values[0::2], values[1::2])
        for _ in range(zoom):
            values = join(values[:, 0::2], values[:, 1::2])
        return values
    # in any order, each in one pass; columns by turning what is left, since a step is but a few
    values = join.reduce(values.reshape(-1, step, values.shape[1]), axis=1)
    turned = np.ascontiguousarray(values.reshape(-1, step).T)
    folded: NDArray[Any] = join.reduce(turned, axis=0).reshape(len(values), -1)
    return folded
