"""What the charts of two models beside each other show, as tasks make it of what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Floats, Integers, Prompt
from hgviz.figures.content.charts import Line, Many, Row

Triple = tuple[float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Plot:
    """One pair of axes of its own. xs: where ticks are and what they say, () for round numbers;
    least: y goes at least down to it, most: and up to it; limits: from where to where y goes, None
    for all there is. log: whether x and y stand on logarithmic scales."""

    title: str
    across: str
    up: str
    lines: tuple[Line, ...]
    xs: tuple[tuple[float, str], ...] = ()
    least: float = 0.0
    most: float = 0.0
    limits: tuple[float, float] | None = None
    log: tuple[bool, bool] = (False, False)


@dataclass(frozen=True, slots=True, eq=False)
class Plots:
    """Axes beside each other whose lines of one label look alike; notes below."""

    plots: tuple[Plot, ...]
    title: str = ""
    more: str = ""
    ribbon: str = ""
    notes: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)

    def rows(self) -> list[Row]:
        """The numbers, a line for each point, the names of columns first."""
        found: list[Row] = [("plot", "line", "x", "y", "low", "high")]
        for plot in self.plots:
            for line in plot.lines:
                nothing = np.full(len(line.x), np.nan)
                low, high = (nothing if end is None else end for end in (line.low, line.high))
                points = zip(line.x, line.y, low, high, strict=True)
                found += [(plot.title, line.label, *point) for point in points]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Strip:
    """One metric: a dot for every head of A and of B, and the means with their intervals."""

    label: str
    unit: str
    heads: tuple[Many, Many]
    means: tuple[Triple, Triple]


@dataclass(frozen=True, slots=True, eq=False)
class Strips:
    """Metrics below each other, A above B in each; names: what A and B are called."""

    strips: tuple[Strip, ...]
    names: tuple[str, str]
    title: str = ""
    more: str = ""
    notes: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)

    def rows(self) -> list[Row]:
        """The numbers, a line for each head, the names of columns first."""
        found: list[Row] = [("metric", "model", "head", "value")]
        for strip in self.strips:
            for name, values in zip(self.names, strip.heads, strict=True):
                found += [(strip.label, name, float(at), one) for at, one in enumerate(values)]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """A square or oblong of numbers: values (rows, columns), NaN where there is none. groups: after
    which rows, and columns, a line goes."""

    title: str
    values: Many
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    down: str
    across: str


@dataclass(frozen=True, slots=True, eq=False)
class Grids:
    """Grids beside each other on one scale, from limits[0] to limits[1]."""

    grids: tuple[Grid, ...]
    unit: str
    title: str = ""
    more: str = ""
    notes: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)
    limits: tuple[float, float] = (0.0, 1.0)

    def rows(self) -> list[Row]:
        """The numbers, a line for each cell, the names of columns first."""
        found: list[Row] = [("grid", "row", "column", self.unit)]
        for grid in self.grids:
            for name, values in zip(grid.rows, grid.values, strict=True):
                found += [
                    (grid.title, name, *one) for one in zip(grid.columns, values, strict=True)
                ]
        return found


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
