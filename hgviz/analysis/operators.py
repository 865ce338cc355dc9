"""Pooling, spreading and shifting between the positions of two levels, and their transposes.

P pools, S shifts and U upsamples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Integers

Array = NDArray[Any]


def pool(values: Array, factor: int, shift: int = 0) -> Array:
    """P S: shift right by zeros, then the mean of each group, along the first axis.

    values (N, ...) with N a multiple of factor -> (N / factor, ...).
    """
    moved = np.zeros(values.shape, np.result_type(values, np.float32))
    moved[shift:] = values[: len(values) - shift]
    groups = moved.reshape(-1, factor, *values.shape[1:])
    return groups.mean(axis=1)  # type: ignore[no-any-return]


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
    wide = np.repeat(rows, factor, axis=1)
    return unshifted(wide / factor, shift)


def unspread(rows: Array, factor: int) -> Array:
    """X U for rows X (r, N) -> (r, m)."""
    return rows.reshape(len(rows), -1, factor).sum(axis=2)  # type: ignore[no-any-return]


# --- between two levels ---------------------------------------------------------------------------


class Between(Protocol):
    """How the n positions of a level become the m of the one below it, and again n. padded: N
    positions, those included that fill the last group up; shift: of the
    keys of the layer that attends from one to the other."""

    @property
    def padded(self) -> int: ...

    @property
    def count(self) -> int: ...

    @property
    def shift(self) -> int: ...

    def pool(self, values: Array) -> Array:
        """(N, ...) -> (m, ...)"""
        ...

    def unpooled(self, rows: Array) -> Array:
        """X D of rows X, (r, m) -> (r, N)"""
        ...

    def spread(self, values: Array) -> Array:
        """(m, ...) -> (N, ...)"""
        ...

    def unspread(self, rows: Array) -> Array:
        """X U of rows X, (r, N) -> (r, m)"""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Groups of equal size."""

    length: int
    factor: int
    shift: int

    @property
    def padded(self) -> int:
        """N"""
        return self.count * self.factor

    @property
    def count(self) -> int:
        """m"""
        return -(-self.length // self.factor)

    def pool(self, values: Array) -> Array:
        """P S v"""
        return pool(values, self.factor, self.shift)

    def unpooled(self, rows: Array) -> Array:
        """X P S"""
        return unpooled(rows, self.factor, self.shift)

    def spread(self, values: Array) -> Array:
        """U v"""
        return spread(values, self.factor)

    def unspread(self, rows: Array) -> Array:
        """X U"""
        return unspread(rows, self.factor)


class Segments:
    """Segments of unequal length behind a null group: the mean of a segment is read from its last
    token on (Nawrot et al. 2023). Nothing is padded.

    spans (m, 2) of tokens, the null group's (-1, -1); keep (n,): the tokens that are in a mean.
    """

    shift = 0

    def __init__(self, length: int, spans: Integers, keep: NDArray[np.bool_] | None = None) -> None:
        own = spans[1:][spans[1:, 1] <= length]
        self.padded, self.count = length, len(own) + 1
        self._starts, self._sizes = own[:, 0], own[:, 1] - own[:, 0]
        self._inside = int(own[-1, 1]) if len(own) else 0
        kept = np.ones(self._inside) if keep is None else keep[: self._inside].astype(np.float64)
        sums = np.add.reduceat(kept, self._starts) if len(own) else kept
        self._share = kept / np.repeat(sums, self._sizes)  # of a token in its segment
        # the position below that is read by each token: of the last segment that is closed by then
        self._read = np.searchsorted(own[:, 1], np.arange(length) + 1, side="right")

    def pool(self, values: Array) -> Array:
        """The mean of each segment; the null group has none, so that its row is zero."""
        out = np.zeros((self.count, *values.shape[1:]))
        if self._inside:
            share = self._share.reshape(-1, *[1] * (values.ndim - 1))
            out[1:] = np.add.reduceat(values[: self._inside] * share, self._starts, axis=0)
        return out

    def unpooled(self, rows: Array) -> Array:
        """The transpose of pool, of rows (r, m)."""
        out = np.zeros((len(rows), self.padded))
        out[:, : self._inside] = np.repeat(rows[:, 1:], self._sizes, axis=1) * self._share
        return out

    def spread(self, values: Array) -> Array:
        """Row c_t of values (m, ...) for every token t."""
        return values[self._read]

    def unspread(self, rows: Array) -> Array:
        """The transpose of spread, of rows (r, n)."""
        out = np.zeros((len(rows), self.count))
        there, first = np.unique(self._read, return_index=True)
        if len(there):
            out[:, there] = np.add.reduceat(rows, first, axis=1)
        return out


class Halves:
    """A level that is pooled by two, and spread over the tokens from the last (Dai et al. 2020).

    above, below (n, 2), (m, 2): the tokens behind the positions of both; stride, apart: of the
    level below. What a maximum took of either is not known: both count as much, as in the mean.
    """

    def __init__(self, above: Integers, below: Integers, stride: int, apart: int) -> None:
        self.length, self.count = len(above), len(below)
        self._first = np.searchsorted(above[:, 0], below[:, 0])
        self._last = np.searchsorted(above[:, 1], below[:, 1])
        self.stride, self.apart = stride, apart

    def pool(self, values: Array) -> Array:
        """(n, ...) -> (m, ...)"""
        found: Array = (values[self._first] + values[self._last]) / 2
        return found

    def unpooled(self, rows: Array) -> Array:
        """The transpose of pool, of rows (r, m)."""
        out = np.zeros((len(rows), self.length))
        out[:, self._first] += rows / 2
        out[:, self._last] += rows / 2
        return out

    def spread(self, values: Array, tokens: int) -> Array:
        """(m, ...) -> (tokens, ...): zero at those that no position is spread to."""
        found: Array = np.concatenate([values, np.zeros((1, *values.shape[1:]))])[
            self._read(tokens)
        ]
        return found

    def unspread(self, rows: Array) -> Array:
        """The transpose of spread, of rows (r, tokens)."""
        out = np.zeros((len(rows), self.count + 1))
        there, first = np.unique(self._read(rows.shape[1]), return_index=True)
        out[:, there] = np.add.reduceat(rows, first, axis=1)
        return out[:, :-1]

    def _read(self, tokens: int) -> Integers:
        at = (np.arange(tokens, dtype=np.int64) - self.apart) // self.stride + self.apart
        return np.minimum(at, self.count)
