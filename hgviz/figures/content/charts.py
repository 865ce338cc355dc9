"""What charts of numbers show, as tasks make it of studies: curves beside bands, and scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Many = NDArray[np.float64]
Row = tuple[Any, ...]  # of a table, what a CSV holds


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One line of a chart: x, y (points,), and low, high (points,) where it has an interval.

    mark: the point that counts, and what is written of it.
    """

    label: str
    x: Many
    y: Many
    low: Many | None = None
    high: Many | None = None
    mark: int | None = None
    marked: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """Where most of many lines lie: x, low, middle, high (points,)."""

    x: Many
    low: Many
    middle: Many
    high: Many


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """One pair of axes: lines over a band, under a title."""

    lines: tuple[Line, ...]
    band: Band | None = None
    title: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """Panels that share their axes, which across and up name.

    title and more: bold and plain, above. banded: what the band is; mark, marked: what a mark is,
    in a word and in words; notes: below. percent: whether x is shares. timed: x is times, which
    are not in order and far from 0, so that lines have no ribbons. about: what identifies the data,
    for the file.
    """

    panels: tuple[Panel, ...]
    across: str
    up: str
    title: str = ""
    more: str = ""
    banded: str = ""
    mark: str = ""
    marked: str = ""
    notes: tuple[str, ...] = ()
    percent: bool = False
    timed: bool = False
    about: Mapping[str, str] = field(default_factory=dict)

    def rows(self) -> list[Row]:
        """The numbers, a line for each point, the names of columns first."""
        found: list[Row] = [("panel", "line", self.across, self.up, "low", "high", "marked")]
        for panel in self.panels:
            if (band := panel.band) is not None:
                columns = (band.x, band.middle, band.low, band.high)
                found += [
                    (panel.title, self.banded, *values, "") for values in zip(*columns, strict=True)
                ]
            for line in panel.lines:
                nothing = np.full(len(line.x), np.nan)
                low, high = (nothing if end is None else end for end in (line.low, line.high))
                found += [
                    (panel.title, line.label, *values, line.marked if at == line.mark else "")
                    for at, values in enumerate(zip(line.x, line.y, low, high, strict=True))
                ]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Heads from left to right with what each is worth: value, low, high (heads,).

    names: of the heads; groups: the number of the group of each, group_names what these are. up
    names the axis; title, more, notes, about as in Curves.
    """

    names: tuple[str, ...]
    value: Many
    low: Many
    high: Many
    groups: tuple[int, ...]
    group_names: tuple[str, ...]
    up: str
    title: str = ""
    more: str = ""
    notes: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)

    def rows(self) -> list[Row]:
        """The numbers, a line for each head, the names of columns first."""
        groups = (self.group_names[one] for one in self.groups)
        columns = (self.names, groups, self.value, self.low, self.high)
        return [("head", "group", self.up, "low", "high"), *zip(*columns, strict=True)]


Chart = Curves | Scores
