"""Pooling, spreading and shifting between the positions of two levels, and their transposes.

P, S and U are the matrices of models.md A.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def pool(values: Array, factor: int, shift: int = 0, parts: Array | None = None) -> Array:
    """P S: shift right by zeros, then the mean of each group, along the first axis.

    values (N, ...) with N a multiple of factor -> (N / factor, ...). parts (factor,): of each
    place in the sum of a group, None for the mean. models.md A.3.
    """
    moved = np.zeros(values.shape, np.result_type(values, np.float32))
    moved[shift:] = values[: len(values) - shift]
    groups = moved.reshape(-1, factor, *values.shape[1:])
    if parts is None:
        return groups.mean(axis=1)  # type: ignore[no-any-return]
    return np.einsum("gk...,k->g...", groups, parts)  # type: ignore[no-any-return]


def spread(values: Array, factor: int) -> Array:
    """U: each position repeated factor times along the first axis, (m, ...) -> (m factor, ...)."""
    return np.repeat(values, factor, axis=0)


def shifted(values: Array, shift: int) -> Array:
    """S v of a vector (N,)."""
    return np.concatenate([np.zeros(shift), values[: len(values) - shift]])


def unshifted(rows: Array, shift: int) -> Array:
    """X S for rows X (r, N): column j of the result is column j + shift."""
    return np.pad(rows[:, shift:], ((0, 0), (0, shift)))


def unpooled(rows: Array, factor: int, shift: int, parts: Array | None = None) -> Array:
    """X P S for rows X (r, m) -> (r, N); parts as in pool."""
    wide = np.repeat(rows, factor, axis=1)
    return unshifted(
        wide / factor if parts is None else wide * np.tile(parts, rows.shape[1]), shift
    )


def unspread(rows: Array, factor: int) -> Array:
    """X U for rows X (r, N) -> (r, m)."""
    return rows.reshape(len(rows), -1, factor).sum(axis=2)  # type: ignore[no-any-return]
