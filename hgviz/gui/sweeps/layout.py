"""Where the cells of a study stand: models and activations down, kinds, methods and seeds across.

Pure: no Qt. Places depend on the cells alone, so they are found once and serve every look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.gui.sweeps.about import KINDS, sub
from hgviz.sweep import Cell

NONE = -1  # no cell stands there


@dataclass(frozen=True, slots=True)
class Column:
    """One column: a kind of work, which of several of it, a seed."""

    work: str
    sub: str
    seed: str


@dataclass(frozen=True, slots=True)
class Layout:
    """rows: data, model, activation; at: (rows, columns) int32, the number of a cell or NONE."""

    rows: tuple[tuple[str, str, str], ...]
    columns: tuple[Column, ...]
    at: NDArray[np.int32]
    places: NDArray[np.int32]  # (cells, 2): row and column of each

    @property
    def blocks(self) -> list[tuple[str, int, int]]:
        """The kinds in order: name, first column, one after the last."""
        return _runs([one.work for one in self.columns])

    @property
    def groups(self) -> list[tuple[str, int, int]]:
        """The methods in each kind, as blocks are."""
        found = _runs([(one.work, one.sub) for one in self.columns])
        return [(name[1], first, end) for name, first, end in found]

    @property
    def bands(self) -> list[tuple[tuple[str, str], int, int]]:
        """Rows of one data and model: both, first row, one after the last."""
        return _runs([row[:2] for row in self.rows])

    def step(self, cell: int, right: int, down: int) -> int:
        """The next cell in a direction; the same one where there is none."""
        row, column = (int(one) for one in self.places[cell])
        while True:
            row, column = row + down, column + right
            if not (0 <= row < len(self.rows) and 0 <= column < len(self.columns)):
                return cell
            if self.at[row, column] != NONE:
                return int(self.at[row, column])

    def ends(self, cell: int, last: bool) -> int:
        """The first or the last cell of its row."""
        there = self.at[int(self.places[cell, 0])]
        there = there[there != NONE]
        return int(there[-1 if last else 0])


def lay_out(cells: Sequence[Cell]) -> Layout:
    """The layout of cells; what stands together in the study file stands together here."""
    rows: dict[tuple[str, str, str], int] = {}
    columns: dict[Column, int] = {}
    taken: set[tuple[int, Column]] = set()
    found: list[tuple[int, Column]] = []
    for cell in cells:
        place = cell.place
        name = (place.get("data", ""), place.get("model", ""), place.get("activation", ""))
        row = rows.setdefault(name, len(rows))
        column = Column(cell.work, sub(cell), place.get("seed", ""))
        while (row, column) in taken:  # two that differ in what has no place
            column = Column(column.work, f"{column.sub}’", column.seed)
        taken.add((row, column))
        columns.setdefault(column, len(columns))
        found.append((row, column))
    order = {work: number for number, work in enumerate(KINDS)}
    seen: dict[tuple[str, str], int] = {}
    for column, number in columns.items():
        seen.setdefault((column.work, column.sub), number)
    across = sorted(
        columns,
        key=lambda one: (
            order.get(one.work, len(order)), one.work, seen[one.work, one.sub], columns[one]
        ),
    )  # fmt: skip
    begun: dict[tuple[str, str], int] = {}
    for name, number in rows.items():
        begun.setdefault(name[:2], number)
    down = sorted(rows, key=lambda name: (begun[name[:2]], rows[name]))
    row_at = {rows[name]: number for number, name in enumerate(down)}
    column_at = {one: number for number, one in enumerate(across)}
    at = np.full((len(down), len(across)), NONE, np.int32)
    places = np.zeros((len(found), 2), np.int32)
    for number, (row, column) in enumerate(found):
        places[number] = row_at[row], column_at[column]
        at[tuple(places[number])] = number
    return Layout(tuple(down), tuple(across), at, places)


def _runs(names: Sequence[Any]) -> list[tuple[Any, int, int]]:
    found, at = [], 0
    for name, same in groupby(names):
        count = len(list(same))
        found.append((name, at, at + count))
        at += count
    return found
