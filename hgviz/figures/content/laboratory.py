"""What a figure of two heads beside each other shows, as tasks make it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Floats, Integers, Prompt
from hgviz.figures.charts import Row


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """The labels of one side of a map: spans (cells, 2) of the tokens of a text, (-1, -1) for
    cells that the text has nothing in."""

    prompt: Prompt
    spans: Integers


@dataclass(frozen=True, slots=True, eq=False)
class Three:
    """A head of A, one of B and what A weighs more, on one grid, each cell of 2^zoom x 2^zoom.

    maps: A, B and A - B; seen: where each has anything; shape: of the grid in whole cells; signed:
    whether A or B has weights below 0; names: of A and B.
    """

    maps: tuple[Floats, Floats, Floats]
    seen: tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]
    shape: tuple[int, int]
    zoom: int
    signed: bool
    rows_: Edge
    columns: Edge
    names: tuple[str, str]
    title: str = ""
    more: str = ""
    notes: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)

    def rows(self) -> list[Row]:
        """The numbers, a line for each cell, the names of columns first."""
        found: list[Row] = [("row", "column", "A", "B", "A - B")]
        for i, j in np.argwhere(self.seen[2]):
            found.append((float(i), float(j), *(float(one[i, j]) for one in self.maps)))
        return found
