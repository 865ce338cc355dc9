"""What a chart of repeated measurements shows, as tasks make it: each seed, and their means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hgviz.figures.content.charts import Many, Row


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """What was measured of one thing: values (seeds,), seeds their names, and the mean with its
    interval, NaN of one seed."""

    values: Many
    seeds: tuple[str, ...]
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Facet:
    """One pair of axes: marks (series, groups), groups from left to right, None for nothing."""

    title: str
    marks: tuple[tuple[Mark | None, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Seeds:
    """Facets that share their axes: groups stand along x, the marks of one series look alike.

    up names the axis; title, more, notes, about as in Curves.
    """

    facets: tuple[Facet, ...]
    groups: tuple[str, ...]
    series: tuple[str, ...]
    up: str
    title: str = ""
    more: str = ""
    notes: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)

    def marks(self) -> list[Mark]:
        """All there are."""
        rows = (row for facet in self.facets for row in facet.marks)
        return [one for row in rows for one in row if one is not None]

    def rows(self) -> list[Row]:
        """The numbers, a line for each seed and each mean, the names of columns first."""
        found: list[Row] = [("panel", "group", "series", "seed", self.up, "low", "high")]
        for facet in self.facets:
            for name, row in zip(self.series, facet.marks, strict=True):
                for group, mark in zip(self.groups, row, strict=True):
                    if mark is None:
                        continue
                    head = (facet.title, group, name)
                    found += [
                        (*head, seed, value, np.nan, np.nan)
                        for seed, value in zip(mark.seeds, mark.values, strict=True)
                    ]
                    found.append((*head, "mean", mark.mean, mark.low, mark.high))
        return found


__all__ = ["Facet", "Mark", "Seeds"]
