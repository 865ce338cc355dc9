"""The values of the Compare page as tables: a row of names, then one row each."""

from __future__ import annotations

from math import isfinite

import numpy as np

from hgviz.analysis.numbers import NUMBERS
from hgviz.core import Floats
from hgviz.gui import sentences
from hgviz.gui.compare_parts.numberpair import Side
from hgviz.gui.compare_parts.rowpair import Bools, RowPair
from hgviz.gui.grid import Names
from hgviz.gui.language import tr
from hgviz.gui.opened import Compared
from hgviz.gui.tiles import Tiles
from hgviz.gui.views import mosaic
from hgviz.gui.views.tablerow import Table, span
from hgviz.gui.views.viewport import Viewport

THREE = ["A", "B", "A − B"]


def of_maps(compared: Compared, tiles: Tiles, view: Viewport) -> Table:
    """What A, B and A − B weigh at every cell on screen that one of them sees; from afar, where a
    pixel stands for many, the largest of these, and their range. Empty: not there, or still read.
    """
    values, unseen = [], []
    for source in compared.shown:
        found = mosaic.compose(tiles, source, view)
        known = mosaic.quality(tiles, source, view) != "coarse"
        values.append(found if known else np.full_like(found, np.nan))
        unseen.append(mosaic.unseen(source, view))
    rows, columns = compared.names[0]
    down, across = mosaic.ranges(view.down), mosaic.ranges(view.across)
    queries = [[span(int(one[0]), int(one[1]) - 1), _text(rows, one)] for one in down]
    keys = [[span(int(one[0]), int(one[1]) - 1), _text(columns, one)] for one in across]
    table = [[tr("Query"), tr("Query text"), tr("Key"), tr("Key text"), *THREE]]
    lacking = [""] * (len(THREE) - len(values))
    for row, column in np.argwhere(~np.logical_and.reduce(unseen)).tolist():
        cells = [
            "" if hidden[row, column] or np.isnan(found[row, column]) else str(found[row, column])
            for found, hidden in zip(values, unseen, strict=True)
        ]
        table.append([*queries[row], *keys[column], *cells, *lacking])
    return table


def of_row(pair: RowPair) -> Table:
    """A row of A, of B and of A − B, key by key; empty where a side has nothing or may not look."""
    header = [tr("Key"), tr("Key text in A"), tr("Key text in B"), *THREE]
    a, b = pair.names
    sides = [
        _cells(one.weights, one.seen) if one is not None else [""] * len(a.spans)
        for one in (pair.a, pair.b)
    ]
    less = pair.difference
    both = _cells(less, pair.both) if less is not None else [""] * len(a.spans)
    return [
        header,
        *(
            [str(cell), a.text(cell), b.text(cell), sides[0][cell], sides[1][cell], both[cell]]
            for cell in range(len(a.spans))
        ),
    ]


def of_numbers(a: Side, b: Side) -> Table:
    """Every number of both heads, its place among those of all heads, and on how many rows it was
    measured."""
    table = [
        [tr("Number"), tr("Side"), tr("Head"), tr("Value"), tr("Place"), tr("Heads"), tr("Rows"),
         tr("Of rows")],
    ]  # fmt: skip
    for name, number in NUMBERS.items():
        for letter, side in (("A", a), ("B", b)):
            mine = side.known.get(side.head) if side.head is not None else None
            if side.head is None or mine is None:
                continue
            value, values = side.value(name), side.values(name)
            place = str(1 + sum(one > value for one in values)) if isfinite(value) else ""
            table.append(
                [tr(number.label), letter, str(side.head), str(value) if isfinite(value) else "",
                 place, str(len(values)), str(mine.rows), str(mine.of)]
            )  # fmt: skip
    return table


def _cells(weights: Floats, seen: Bools) -> list[str]:
    return [str(one) if here else "" for one, here in zip(weights, seen, strict=True)]


def _text(names: Names, ends: np.ndarray) -> str:
    """What stands for some cells along an edge of A."""
    first, last = int(ends[0]), int(ends[1]) - 1
    start, stop = int(names.spans[first, 0]), int(names.spans[last, 1])
    return sentences.glyph(names.prompt, start, stop) if 0 <= start < stop else ""
