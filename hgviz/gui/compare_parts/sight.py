"""Which cells of a shared grid exist: in the map of one side, and in the difference of both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.meeting import Edge
from hgviz.core import Integers
from hgviz.gui.tiles import Sight, seen
from hgviz.maps import Axis, Rule

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Placed:
    """The cells that a map has, where it is laid on other cells than its own."""

    rule: Rule
    rows: Axis
    columns: Axis

    @property
    def causal(self) -> bool:
        """Whether a query looks at nothing that comes after it."""
        return self.rule.causal

    def seen(self, rows: Integers, columns: Integers) -> Bools:
        """bool (rows, columns): whether any cell exists in ranges (n, 2) of rows and columns."""
        down, across = self.rows.reach(rows), self.columns.reach(columns)
        some = (down[:, 1] > down[:, 0])[:, None] & (across[:, 1] > across[:, 0])
        return seen(self.rule, down, across) & some


@dataclass(frozen=True, eq=False)
class Either:
    """The cells of a difference: those that stand for something in A and in B, and that one sees.

    Where only one of the two can look there, the other weighs 0.
    """

    a: Rule | Sight
    b: Rule | Sight
    rows: Edge
    columns: Edge

    @property
    def causal(self) -> bool:
        """Whether no query looks at what comes after it, in A or in B."""
        return self.a.causal and self.b.causal

    def seen(self, rows: Integers, columns: Integers) -> Bools:
        """bool (rows, columns): whether any cell exists in ranges (n, 2) of rows and columns."""
        there = [
            sums[np.minimum(ends[:, 1], len(sums) - 1)]
            > sums[np.minimum(ends[:, 0], len(sums) - 1)]
            for sums, ends in zip(self._sums, (rows, columns), strict=True)
        ]
        found: Bools = seen(self.a, rows, columns) | seen(self.b, rows, columns)
        return found & there[0][:, None] & there[1]

    @cached_property
    def _sums(self) -> tuple[Integers, Integers]:
        """How many rows, and columns, up to each stand for something in both."""
        down, across = (
            np.concatenate([[0], np.cumsum(edge.both)]) for edge in (self.rows, self.columns)
        )
        return down, across


def alike(a: Rule, b: Rule) -> bool:
    """Whether two rules let the same cells exist."""
    plain = [
        (one.causal, one.windowed, one.stride_q, one.stride_k, one.band, one.chunk, one.nearest)
        for one in (a, b)
    ]
    keeps = [None if one.keep is None or one.keep.all() else one.keep for one in (a, b)]
    if plain[0] != plain[1]:
        return False
    first, second = keeps
    if first is None or second is None:
        return first is second
    return bool(np.array_equal(first, second))
