"""Maps that are not computed from queries and keys: stored weights, differences of two maps, maps
projected on another grid, and maps over slots projected on tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Floats, Integers, Map
from hgviz.maps.overview import Pyramid, Summary
from hgviz.maps.rule import plain
from hgviz.maps.tiles import TILE, Cache, Tiled

# --- weights as they are --------------------------------------------------------------------------


class DenseMap(Tiled):
    """Weights (heads, queries, keys) that cannot be computed from queries and keys.

    array may be anything that is sliced like an array, bfloat16 as its bits in uint16; causal:
    row i has no weights right of column i, and what is stored there is not read. value_norms and
    mixture as in Factors.
    """

    def __init__(
        self,
        array: NDArray[Any],
        heads: tuple[int, ...],
        signed: bool = False,
        causal: bool = False,
        stored: Callable[[int], Summary] | None = None,
        pyramids: Callable[[int], Pyramid] | None = None,
        value_norms: NDArray[Any] | None = None,
        mixture: NDArray[Any] | None = None,
    ) -> None:
        heads_, queries, keys = array.shape
        super().__init__((heads_, queries, keys), heads, signed, pyramids)
        self.array, self.causal, self._stored = array, causal, stored
        self.value_norms, self.mixture = value_norms, mixture

    def weights(self, place: int, i: int, j: int) -> NDArray[Any] | None:
        """Tile (i, j) of the head stored at a place; None above the diagonal of a causal map."""
        if self.causal and j > i:
            return None
        rows, columns = (slice(at * TILE, (at + 1) * TILE) for at in (i, j))
        tile = plain(self.array[place, rows, columns], np.float32)
        return np.tril(tile) if self.causal and i == j else tile


# --- one map less another -------------------------------------------------------------------------

Bools = NDArray[np.bool_]


class Difference(Tiled):
    """A − B, signed, of two layers whose maps have the same shape.

    heads: for each head of A the one of B that is taken from it; A's numbers name the differences.
    A cell is the difference of the two float32 weights that A and B give for it. A cell of 2^zoom x
    2^zoom is the largest of these by magnitude, of two equal ones the positive: every weight is
    read for it, since the largest of A and of B may lie in different places. both: which rows and
    which columns stand for something in A and in B, None for all; elsewhere there is no difference.
    off: whether the heads are switched off in A and in B, where they weigh nothing then.
    """

    def __init__(
        self,
        a: Map,
        b: Map,
        heads: Mapping[int, int],
        both: tuple[Bools, Bools] | None = None,
        off: tuple[bool, bool] = (False, False),
    ) -> None:
        if a.shape[1:] != b.shape[1:]:
            raise ValueError(f"maps of {a.shape[1:]} and {b.shape[1:]} cannot be subtracted")
        super().__init__((len(heads), *a.shape[1:]), tuple(heads), signed=True)
        self.a, self.b, self._pairs, self._both = a, b, tuple(heads.items()), both
        self.off = off

    def weights(self, place: int, i: int, j: int) -> NDArray[Any] | None:
        """Tile (i, j) of A less that of B."""
        rows, columns = ((at * TILE, (at + 1) * TILE) for at in (i, j))
        head, other = self._pairs[place]
        a, b = self.a.read(head, rows, columns), self.b.read(other, rows, columns)
        return self.between(a, b, rows, columns)

    def between(
        self, a: Floats, b: Floats, rows: tuple[int, int], columns: tuple[int, int]
    ) -> Floats:
        """The difference of two blocks of weights; 0 where only one side has positions."""
        found = self.subtract(a, b)
        if self._both is not None:
            down, across = (
                one[slice(*ends)] for one, ends in zip(self._both, (rows, columns), strict=True)
            )
            found[~down] = 0
            found[:, ~across] = 0
        return found

    def subtract(self, a: Floats, b: Floats) -> Floats:
        """A − B of two blocks of weights, where those of heads that are off are 0."""
        a, b = (0 * one if off else one for one, off in zip((a, b), self.off, strict=True))
        return a - b


# --- a map on other cells -------------------------------------------------------------------------

MOST_READ = 1 << 22  # weights of the map that are held at a time


@dataclass(frozen=True)
class Axis:
    """Which positions of a map lie in each cell of another grid, along one side.

    Those of cell c are positions[offsets[c]:offsets[c + 1]]; none where the map has nothing there.
    A position may stand in several cells: a row then is repeated, a column shared out evenly.
    """

    positions: Integers
    offsets: Integers

    @classmethod
    def of(cls, cells: Integers, positions: Integers, count: int) -> Axis:
        """An axis from pairs of a cell (ascending) and a position; count: the number of cells."""
        counts = np.bincount(cells, minlength=count)
        return cls(np.asarray(positions, np.int64), np.concatenate([[0], np.cumsum(counts)]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def there(self) -> NDArray[np.bool_]:
        """bool (cells,): whether a cell has positions."""
        return np.diff(self.offsets) > 0

    @cached_property
    def shares(self) -> Floats:
        """float32 like positions: the share of its weight that a column gives to the cell."""
        cells = np.bincount(self.positions, minlength=1)
        return (1 / cells[self.positions]).astype(np.float32)

    @cached_property
    def cells(self) -> Integers:
        """(positions of the map,) The first cell of each position, -1 for none."""
        found = np.full(int(self.positions.max(initial=-1)) + 1, -1, np.int64)
        numbers = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        found[self.positions[::-1]] = numbers[::-1]
        return found

    def reach(self, cells: Integers) -> Integers:
        """The positions (n, 2) of ranges (n, 2) of cells, half-open; 0, 0 for none."""
        first, stop = (self.offsets[np.clip(end, 0, len(self))] for end in cells.T)
        ends = np.zeros((len(cells), 2), np.int64)
        some = stop > first
        ends[some, 0] = self.positions[first[some]]
        ends[some, 1] = self.positions[stop[some] - 1] + 1
        return ends


class Projected(Tiled):
    """The maps of a layer projected on the cells of a grid that it shares with another layer.

    A cell is the mean over its rows of the sum over its columns, in float32: rows that added up to
    1 still do, where every column stands in some cell. signed: whether weights can be negative.
    """

    def __init__(self, whole: Map, rows: Axis, columns: Axis, signed: bool | None = None) -> None:
        signed = whole.signed if signed is None else signed
        super().__init__((whole.shape[0], len(rows), len(columns)), whole.heads, signed)
        self.whole, self.rows, self.columns = whole, rows, columns

    def weights(self, place: int, i: int, j: int) -> NDArray[Any] | None:
        """Tile (i, j); None where the map has nothing."""
        _, height, width = self.shape
        rows = range(i * TILE, min((i + 1) * TILE, height))
        columns = range(j * TILE, min((j + 1) * TILE, width))
        if not (self.rows.there[rows.start : rows.stop].any()
                and self.columns.there[columns.start : columns.stop].any()):  # fmt: skip
            return None
        across, offsets = _entries(self.columns, columns)
        first, stop = int(across.min()), int(across.max()) + 1
        shares = self.columns.shares[slice(*self.columns.offsets[[columns.start, columns.stop]])]
        found = np.zeros((len(rows), len(columns)), np.float32)
        for some in self._runs(rows, stop - first):
            down, starts = _entries(self.rows, some)
            if not len(down):
                continue
            top, bottom = int(down.min()), int(down.max()) + 1
            block = self.whole.read(self.heads[place], (top, bottom), (first, stop))
            block = _add_up(block[down - top][:, across - first] * shares, offsets, axis=1)
            sizes = np.maximum(np.diff(starts), 1).astype(np.float32)
            part = slice(some.start - rows.start, some.stop - rows.start)
            found[part] = _add_up(block, starts, axis=0) / sizes[:, None]
        return found

    def _runs(self, rows: range, columns: int) -> Iterator[range]:
        """The rows in runs for which not too much is read at a time."""
        ends = self.rows.reach(np.array([[rows.start, rows.stop]]))[0]
        runs = max(1, -(-int(ends[1] - ends[0]) * columns // MOST_READ))
        step = max(1, len(rows) // runs)
        return (rows[at : at + step] for at in range(0, len(rows), step))


def _entries(axis: Axis, cells: range) -> tuple[Integers, Integers]:
    """The positions of some cells, and where those of each begin."""
    offsets = axis.offsets[cells.start : cells.stop + 1]
    return axis.positions[offsets[0] : offsets[-1]], offsets - offsets[0]


def _add_up(values: Floats, offsets: Integers, axis: int) -> Floats:
    """Values of one cell added up along an axis; 0 in cells without any."""
    counts = np.diff(offsets)
    if (counts == 1).all():
        return values
    shape = list(values.shape)
    shape[axis] = len(counts)
    found = np.zeros(shape, np.float32)
    some = counts > 0
    where = (slice(None), some) if axis else some
    found[where] = np.add.reduceat(values, offsets[:-1][some], axis=axis)
    return found


# --- slots on tokens ------------------------------------------------------------------------------

KEPT = 1 << 24  # bytes of rows of the map over slots


class SlotMap(Tiled):
    """P F of the maps P (heads, queries, slots) of a layer (Linformer, Wang et al. 2020): how
    much of the value of each token comes to each query. Signed, and rows need not add up to 1.

    mixture (heads or 1, slots, tokens): F, as in Factors. Cells are summed in float64 from the
    float32 weights of P.
    """

    def __init__(self, whole: Map, mixture: NDArray[Any]) -> None:
        heads, queries, slots = whole.shape
        if mixture.shape[0] not in (1, heads) or mixture.shape[1] != slots:
            raise ValueError(f"a mixture {mixture.shape} does not fit maps {whole.shape}")
        super().__init__((heads, queries, mixture.shape[2]), whole.heads, signed=True)
        self.whole, self.mixture = whole, mixture
        self._rows = Cache(KEPT)

    value_norms = None  # as of maps that are computed from factors

    def weights(self, place: int, i: int, j: int) -> NDArray[Any]:
        """Tile (i, j) of the head stored at a place."""
        rows, columns = (slice(at * TILE, (at + 1) * TILE) for at in (i, j))

        def read() -> NDArray[Any]:
            return self.whole.read(self.heads[place], rows).astype(np.float64)

        part = self.mixture[place % self.mixture.shape[0], :, columns]
        return self._rows.get((place, i), read) @ np.asarray(part, np.float64)
