"""What a figure of redundancy shows, as tasks make it: how much the heads of a model repeat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from hgviz.figures.content.charts import Row
from hgviz.figures.content.laboratory import Grids, Plots


@dataclass(frozen=True, slots=True, eq=False)
class Repeats:
    """A square of every two heads for each layer, and below them lines over layers.

    asked: nothing follows the model or the captures in the command `hgviz redundancy`. title, more,
    notes, about as in Curves.
    """

    asked: ClassVar[tuple[str, ...]] = ()

    grids: Grids
    lines: Plots
    title: str = ""
    more: str = ""
    notes: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)

    def rows(self) -> list[Row]:
        """The numbers, a line for each two heads and each point, the names of columns first."""
        found: list[Row] = [("shown", "of", "x", "y", "value")]
        for grid, row, column, value in self.grids.rows()[1:]:
            found.append(("heads", grid, row, column, value))
        for plot, line, x, y, *_ in self.lines.rows()[1:]:
            found.append((plot, line, float(x), "", float(y)))
        return found


__all__ = ["Repeats"]
