"""Making a map smaller: the largest value of a cell, or its mean."""

from __future__ import annotations

from collections.abc import Callable
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
    """The largest value of every cell; the dtype stays. Of what is taken two are used at a time."""
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


def fold_sum_roughly(values: NDArray[Any], zoom: int) -> NDArray[Any]:
    """The sum of every cell in the dtype of the values: products with ones, six times as fast."""
    step = 1 << zoom
    values = _filled(values, step, 0.0)
    ones = np.ones(step, values.dtype)
    rows = ones @ values.reshape(-1, step, values.shape[1])
    found: NDArray[Any] = (rows.reshape(-1, step) @ ones).reshape(len(rows), -1)
    return found


def _fold(
    values: NDArray[Any], zoom: int, join: np.ufunc, outside: float, take: Take = np.empty
) -> NDArray[Any]:
    step = 1 << zoom
    values = _filled(values, step, outside)

    def joined(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
        found: NDArray[Any] = join(one, other, out=take(one.shape, one.dtype))
        return found

    # rows first: these are contiguous
    if zoom < 2 or join is np.add:
        for _ in range(zoom):
            values = joined(values[0::2], values[1::2])
    else:  # in any order, so in one pass
        height, width = len(values) // step, values.shape[1]
        folded = take((height, width), values.dtype)
        values = join.reduce(values.reshape(height, step, width), axis=1, out=folded)
    for _ in range(zoom):
        values = joined(values[:, 0::2], values[:, 1::2])
    return values


def _filled(values: NDArray[Any], step: int, outside: float) -> NDArray[Any]:
    """With sides that are multiples of a step."""
    if values.shape[0] % step or values.shape[1] % step:
        over = [(0, -size % step) for size in values.shape]
        return np.pad(values, over, constant_values=outside)
    return values
