"""A map laid on other cells than its own: rows averaged or repeated, columns added or spread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Floats, Integers, Map
from hgviz.maps.tiles import TILE, Tiled

MOST_READ = 1 << 22  # weights of the map that are held at a time


@dataclass(frozen=True)
class Axis:
    """Which positions of a map stand in each cell along one side.

    Those of cell c are positions[offsets[c]:offsets[c + 1]]; none where the map has nothing there.
    A position may stand in several cells: a row then is repeated, a column shared out evenly.
    """

    positions: Integers
    offsets: Integers

    @classmethod
    def of(cls, cells: Integers, positions: Integers, count: int) -> Axis:
        """From pairs of a cell, never falling, and a position; count: how many cells there are."""
        counts = np.bincount(cells, minlength=count)
        return cls(np.asarray(positions, np.int64), np.concatenate([[0], np.cumsum(counts)]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def there(self) -> NDArray[np.bool_]:
        """(cells,): whether the map has anything there."""
        return np.diff(self.offsets) > 0

    @cached_property
    def shares(self) -> Floats:
        """float32, like positions: the part of its weight that a column has in each cell."""
        cells = np.bincount(self.positions, minlength=1)
        return (1 / cells[self.positions]).astype(np.float32)

    @cached_property
    def cells(self) -> Integers:
        """(positions of the map,): the first cell that each stands in, -1 for none."""
        found = np.full(int(self.positions.max(initial=-1)) + 1, -1, np.int64)
        numbers = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        found[self.positions[::-1]] = numbers[::-1]
        return found

    def reach(self, cells: Integers) -> Integers:
        """(n, 2): the positions from first to last of ranges (n, 2) of cells; 0, 0 for none."""
        first, stop = (self.offsets[np.clip(end, 0, len(self))] for end in cells.T)
        ends = np.zeros((len(cells), 2), np.int64)
        some = stop > first
        ends[some, 0] = self.positions[first[some]]
        ends[some, 1] = self.positions[stop[some] - 1] + 1
        return ends


class Projected(Tiled):
    """The maps of a layer on cells of a grid that another layer's maps can be laid on, too.

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
            block = _added(block[down - top][:, across - first] * shares, offsets, axis=1)
            sizes = np.maximum(np.diff(starts), 1).astype(np.float32)
            part = slice(some.start - rows.start, some.stop - rows.start)
            found[part] = _added(block, starts, axis=0) / sizes[:, None]
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


def _added(values: Floats, offsets: Integers, axis: int) -> Floats:
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
