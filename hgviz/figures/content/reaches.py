"""What a figure of reaches shows, as tasks make it: how outputs of models depend on tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hgviz.figures.content.charts import Many, Row
from hgviz.figures.content.laboratory import Plots


@dataclass(frozen=True, slots=True, eq=False)
class Square:
    """A reach matrix: values (outputs, inputs) over the largest of them, 0.0 where nothing goes.

    name: of its model; across: what inputs are, such as tokens.
    """

    name: str
    values: Many
    across: str = "Input token"


@dataclass(frozen=True, slots=True, eq=False)
class Reaches:
    """Squares side by side on one scale, and below them lines over distance, and over length where
    times were measured.

    asked: what follows the models in the command `hgviz reach` that measures it. title, more,
    notes, about as in Curves; the notes say of each model how far it reaches.
    """

    squares: tuple[Square, ...]
    lines: Plots
    asked: tuple[str, ...] = ()
    title: str = ""
    more: str = ""
    notes: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)

    def rows(self) -> list[Row]:
        """The numbers, a line for each cell and each point, the names of columns first."""
        found: list[Row] = [("model", "shown", "x", "y", "value")]
        for square in self.squares:
            found += [
                (square.name, f"output by {square.across.lower()}", at, column, float(value))
                for at, row in enumerate(square.values)
                for column, value in enumerate(row)
            ]
        for plot, line, x, y, *_ in self.lines.rows()[1:]:
            found.append((line, plot, float(x), "", float(y)))
        return found


__all__ = ["Reaches", "Square"]
