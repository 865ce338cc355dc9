"""One grid of cells for a head of A and one of B, whatever their tokens, lengths and levels.

Where both stand for the same positions these are the cells. Where a side has other positions of
the same text, such as another level of an Hourglass, the cells are its tokens: rows are repeated
for the tokens they speak for, columns shared out among those they hold. Where texts or tokens
differ the cells are the pieces that both have in common (see alignment), and between them the
positions that only one has.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.alignment import Alignment, Shared, same_prompt
from hgviz.core import Capture, HeadId, Integers, Prompt
from hgviz.maps import Axis


@dataclass(frozen=True)
class Edge:
    """One side of the grid: its rows or its columns.

    a, b: what of the two maps stands in each cell. spans: for A and for B the tokens behind each
    cell (cells, 2); of cells it has nothing in, from and to the token it would come before.
    by_token: cells are tokens. same: they are the positions of both maps.
    """

    a: Axis
    b: Axis
    spans: tuple[Integers, Integers]
    by_token: bool = False
    same: bool = False

    def __len__(self) -> int:
        return len(self.a)

    @cached_property
    def both(self) -> NDArray[np.bool_]:
        """(cells,): which cells stand for something in both."""
        found: NDArray[np.bool_] = self.a.there & self.b.there
        return found

    def cell(self, token: int, position: int) -> int | None:
        """The cell of a token of A, which stands in a position of its map."""
        if self.by_token:
            return token if token < len(self) else None
        cells = self.a.cells
        found = int(cells[position]) if position < len(cells) else -1
        return found if found >= 0 else None

    def token(self, cell: int) -> int | None:
        """The newest token of A behind a cell; None where it has none."""
        start, stop = (int(one) for one in self.spans[0][cell])
        return stop - 1 if stop > max(start, 0) and self.a.there[cell] else None


@dataclass(frozen=True)
class Meeting:
    """Where the maps of a head of A and of one of B meet, cell by cell."""

    a: Capture
    b: Capture
    head: HeadId
    other: HeadId
    rows: Edge
    columns: Edge

    @classmethod
    def of(cls, alignment: Alignment, head: HeadId, other: HeadId) -> Meeting:
        """Of two heads that are captured; the grid has no cell where the two share nothing."""
        a, b = alignment.a, alignment.b
        one, two = a.spec.layers[head.layer], b.spec.layers[other.layer]
        rows = _edge(
            alignment.rows(one, two),
            (a.query_spans(one.index), b.query_spans(two.index)),
            (a.query_prompt(one.index), b.query_prompt(two.index)),
            (_speakers(a, one.index), _speakers(b, two.index)),
        )
        columns = _edge(
            alignment.columns(one, two),
            (a.key_spans(one.index), b.key_spans(two.index)),
            (a.key_prompt(one.index), b.key_prompt(two.index)),
            (_holders(a.key_spans(one.index)), _holders(b.key_spans(two.index))),
        )
        return cls(a, b, head, other, rows, columns)

    @property
    def same(self) -> bool:
        """Whether both maps have these very cells."""
        return self.rows.same and self.columns.same

    @property
    def off(self) -> tuple[bool, bool]:
        """Whether the head is switched off in A and in B."""
        return self.head in self.a.off, self.other in self.b.off

    @property
    def sides(self) -> tuple[tuple[Capture, HeadId], tuple[Capture, HeadId]]:
        """A and its head, B and its own."""
        return (self.a, self.head), (self.b, self.other)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)"""
        return len(self.rows), len(self.columns)

    def cell(self, query: int | None, key: int | None) -> tuple[int | None, int | None]:
        """The row and the column of tokens of A; None where there is none."""
        layer = self.head.layer
        row = None if query is None else self.rows.cell(query, self.a.row(layer, query))
        column = None if key is None else self.columns.cell(key, self.a.column(layer, key))
        return row, column

    def tokens(self, row: int, column: int) -> tuple[int | None, int | None]:
        """The query and the key of a cell, in tokens of A; None where it has none."""
        return self.rows.token(row), self.columns.token(column)


Pairs = tuple[Integers, Integers]  # cells or tokens, and the positions that stand in them


def _edge(
    shared: Shared,
    spans: tuple[Integers, Integers],
    prompts: tuple[Prompt, Prompt],
    tokens: tuple[Pairs, Pairs],
) -> Edge:
    """tokens: which position of each side stands for a token, where cells are to be tokens."""
    if shared.same:
        axis = _whole(shared.count)
        return Edge(axis, axis, spans, same=True)
    if same_prompt(*prompts):
        count = len(prompts[0])
        numbers = np.arange(count)
        alone = np.stack([numbers, numbers + 1], 1)
        a, b = (Axis.of(*pairs, count) for pairs in tokens)
        return Edge(a, b, (alone, alone), by_token=True)
    return _pieces(shared, spans)


def _whole(count: int) -> Axis:
    """Every position in a cell of its own."""
    return Axis(np.arange(count), np.arange(count + 1))


def _speakers(capture: Capture, layer: int) -> Pairs:
    """For every token the row that speaks for it."""
    known = capture.maps[layer]
    assert known is not None
    tokens = np.arange(len(capture.query_prompt(layer)))
    level = capture.spec.levels[capture.spec.layers[layer].level]
    if level.stride is not None:
        rows = (tokens - level.apart) // level.stride + level.apart
    else:
        rows = np.array([capture.row(layer, int(one)) for one in tokens], np.int64)
    inside = rows < known.shape[1]
    return tokens[inside], rows[inside]


def _holders(spans: Integers) -> Pairs:
    """For every token the columns that hold it."""
    sizes = np.where(spans[:, 0] >= 0, spans[:, 1] - spans[:, 0], 0)
    positions = np.repeat(np.arange(len(spans)), sizes)
    first = np.cumsum(sizes) - sizes
    tokens = np.arange(sizes.sum()) - np.repeat(first - spans[:, 0], sizes)
    order = np.argsort(tokens, kind="stable")
    return tokens[order], positions[order]


def _pieces(shared: Shared, spans: tuple[Integers, Integers]) -> Edge:
    """The pieces of both, and after each the positions that only A has, then those only B has."""
    keys = []
    for side, (pieces, of) in enumerate(zip((shared.a, shared.b), spans, strict=True)):
        alone = pieces < 0
        after = np.maximum.accumulate(np.append(-1, pieces))[1:]
        numbers = np.where(alone, np.arange(len(pieces)), 0)
        kinds = np.where(alone, 1 + side, 0)
        keys.append((np.stack([after, kinds, numbers], 1), ~alone | (of[:, 0] >= 0)))
    every = np.concatenate([key[kept] for key, kept in keys])
    names, cells = np.unique(every, axis=0, return_inverse=True)
    axes, ends, start = [], [], 0
    for (_, kept), of in zip(keys, spans, strict=True):
        positions = np.flatnonzero(kept)
        mine = cells.reshape(-1)[start : start + len(positions)]
        start += len(positions)
        order = np.argsort(mine, kind="stable")
        axis = Axis.of(mine[order], positions[order], len(names))
        axes.append(axis)
        ends.append(_covered(axis, of))
    return Edge(axes[0], axes[1], (ends[0], ends[1]))


def _covered(axis: Axis, spans: Integers) -> Integers:
    """(cells, 2): the tokens of all positions of a cell; none where there are no positions."""
    found = np.zeros((len(axis), 2), np.int64)
    some = axis.there
    found[some, 0] = spans[axis.positions[axis.offsets[:-1][some]], 0]
    found[some, 1] = spans[axis.positions[axis.offsets[1:][some] - 1], 1]
    found = np.maximum(found, 0)
    upto = np.maximum.accumulate(found[:, 1])
    return np.where(some[:, None], found, upto[:, None])
