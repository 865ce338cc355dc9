"""Pooling, spreading and shifting between the positions of two levels, and their transposes.

P, S and U are the matrices of models.md A.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def pool(values: Array, factor: int, shift: int = 0) -> Array:
    """P S: shift right by zeros, then the mean of each group, along the first axis.

    values (N, ...) with N a multiple of factor -> (N / factor, ...). models.md A.3.
    """
    moved = np.zeros(values.shape, np.result_type(values, np.float32))
    moved[shift:] = values[: len(values) - shift]
    return moved.reshape(-1, factor, *values.shape[1:]).mean(axis=1)  # type: ignore[no-any-return]


def spread(values: Array, factor: int) -> Array:
    """U: each position repeated factor times along the first axis, (m, ...) -> (m factor, ...)."""
    return np.repeat(values, factor, axis=0)


def shifted(values: Array, shift: int) -> Array:
    """S v of a vector (N,)."""
    return np.concatenate([np.zeros(shift), values[: len(values) - shift]])


def unshifted(rows: Array, shift: int) -> Array:
    """X S for rows X (r, N): column j of the result is column j + shift."""
    return np.pad(rows[:, shift:], ((0, 0), (0, shift)))


def unpooled(rows: Array, factor: int, shift: int) -> Array:
    """X P S for rows X (r, m) -> (r, N)."""
    return unshifted(np.repeat(rows, factor, axis=1) / factor, shift)


def unspread(rows: Array, factor: int) -> Array:
    """X U for rows X (r, N) -> (r, m)."""
    return rows.reshape(len(rows), -1, factor).sum(axis=2)  # type: ignore[no-any-return]
