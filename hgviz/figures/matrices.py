"""Matrices of numbers side by side on one scale: distances of heads, and how far outputs reach.

Widths and heights are in points.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Display
from hgviz.figures.cells import LONGEST, Shades, shades_of
from hgviz.figures.charts import Chart, Limits, Plots
from hgviz.figures.labels import SMALL, text_width
from hgviz.figures.page import GREY, Many, Page, Tick, boxes_of, round_ticks
from hgviz.figures.spec import Row, Spec
from hgviz.palettes import LIGHT_PAGE

TITLE_ROOM = 13.0
NAME = 5.5  # the size of the names of heads
APART = 14.0  # between grids, and before the lines below


def _draw_matrix(
    page: Page, values: Many, known: NDArray[np.bool_], shades: Shades,
    box: tuple[float, float, float, float],
) -> None:  # fmt: skip
    """Draw values (rows, columns) over a box (left, top, width, height), hatched if not known."""
    left, top, width, height = box
    rows, columns = values.shape
    page.image(shades.paint(values.astype(np.float32), known), *box)
    if not known.all():
        cell = width / max(columns, 1), height / max(rows, 1)
        page.hatch(*box, boxes_of(~known, left, top, cell))
    page.box(*box, edge=LIGHT_PAGE.line)


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """A matrix: values (rows, columns), NaN where there is none; down and across name its sides."""

    title: str
    values: Many
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    down: str
    across: str

    def draw(
        self, page: Page, shades: Shades, left: float, top: float, width: float, largest: float
    ) -> float:
        """Draw it with cells of at most `largest`; returns where it ends below."""
        rows, columns = self.values.shape
        inner = left + max(text_width(name, NAME) for name in self.rows) + 14
        cell = min((left + width - inner) / max(columns, 1), largest)
        page.bold(left, top + TITLE_ROOM - 5, self.title, width)
        y = top + TITLE_ROOM + 2
        right, bottom = inner + cell * columns, y + cell * rows
        known = np.isfinite(self.values)
        box = inner, y, right - inner, bottom - y
        _draw_matrix(page, np.where(known, self.values, 0.0), known, shades, box)
        step = max(1, ceil(1.15 * NAME / cell))
        for row in range(0, rows, step):
            page.text(inner - 3, y + (row + 0.5) * cell, self.rows[row], size=NAME,
                      across="right", middle=True, colour=GREY)  # fmt: skip
        shown = range(0, columns, step)
        for column in shown:
            page.text(inner + (column + 0.5) * cell, bottom + 3, self.columns[column], size=NAME,
                      across="right", turned=True, middle=True, colour=GREY)  # fmt: skip
        depth = max((text_width(self.columns[column], NAME) for column in shown), default=0.0)
        page.small(left + SMALL, (y + bottom) / 2, self.down, across="center", turned=True)
        page.small((inner + right) / 2, bottom + depth + 13, self.across, across="center")
        return float(bottom + depth + 18)


@dataclass(frozen=True, slots=True, eq=False)
class Grids(Chart):
    """Grids side by side on one scale from limits[0] to limits[1]; unit: what its numbers are."""

    grids: tuple[Grid, ...]
    unit: str
    limits: Limits = (0.0, 1.0)

    def rows(self) -> list[Row]:
        """A row for each cell."""
        return [
            ("grid", "row", "column", self.unit),
            *(
                (grid.title, name, column, value)
                for grid in self.grids
                for name, values in zip(grid.rows, grid.values, strict=True)
                for column, value in zip(grid.columns, values, strict=True)
            ),
        ]

    def draw(self, page: Page, spec: Spec) -> None:
        """Place the grids, and one colour bar for all."""
        end = self.draw_below(page, self.draw_heading(page, spec))
        page.close(page.footnotes(self.notes, 0.0, end) + 5)

    def draw_below(
        self, page: Page, top: float, narrowest: float = 120.0, largest: float = 22.0
    ) -> float:
        """Place the grids from top down, each at least so wide, their cells at most so; returns
        where the colour bar ends."""
        shades = shades_of(Display(limits=self.limits, scale="linear"), self.limits[0] < 0, [])
        columns = max(1, min(len(self.grids), int(page.width // narrowest)))
        width = (page.width - APART * (columns - 1)) / columns
        bottom = top
        for start in range(0, len(self.grids), columns):
            top = bottom
            for column, grid in enumerate(self.grids[start : start + columns]):
                end = grid.draw(page, shades, column * (width + APART), top, width, largest)
                bottom = max(bottom, end)
        return shades.draw_half(page, page.footnotes([self.unit], 0.0, bottom - 2) + 4)


@dataclass(frozen=True, slots=True, eq=False)
class Repeats(Chart):
    """How much the heads of a model repeat each other: a grid of every two heads for each layer,
    and lines over layers."""

    grids: Grids
    lines: Plots

    def rows(self) -> list[Row]:
        """A row for each two heads and each point."""
        return [
            ("shown", "of", "x", "y", "value"),
            *(("heads", *row) for row in self.grids.rows()[1:]),
            *(
                (plot, line, float(x), "", float(y))
                for plot, line, x, y, *_ in self.lines.rows()[1:]
            ),
        ]

    def draw(self, page: Page, spec: Spec) -> None:
        """Place the grids and the lines."""
        y = self.grids.draw_below(page, self.draw_heading(page, spec), 84.0, 13.0)
        self.lines.draw_below(page, page.footnotes(self.notes, 0.0, y) + APART)


@dataclass(frozen=True, slots=True, eq=False)
class Square:
    """A reach matrix: values (outputs, inputs) over the largest of them, 0.0 where nothing goes;
    name: of its model; across: what its inputs are."""

    name: str
    values: Many
    across: str = "Input token"

    def draw(
        self, page: Page, shades: Shades, left: float, top: float, side: float, is_first: bool
    ) -> None:
        """Draw it with outputs down; only the first of a row has their numbers."""
        y, (rows, columns) = top + TITLE_ROOM, self.values.shape
        page.bold(left, y - 5, self.name, side)
        _draw_matrix(page, self.values, self.values > 0, shades, (left, y, side, side))
        for token, words in _token_ticks(columns, side):
            x = left + (token + 0.5) * side / max(columns, 1)
            page.lines([[(x, y + side), (x, y + side + 2)]], GREY)
            page.caption(x, y + side + 9, words, across="center")
        page.small(left + side / 2, y + side + 18, self.across, across="center")
        if is_first:
            for token, words in _token_ticks(rows, side):
                middle = y + (token + 0.5) * side / max(rows, 1)
                page.caption(left - 3, middle, words, across="right", middle=True)
            page.small(SMALL, y + side / 2, "Output at token", across="center", turned=True)


def _token_ticks(count: int, room: float) -> list[Tick]:
    return round_ticks(0, max(count - 1, 1), room, 26.0, whole=True)


@dataclass(frozen=True, slots=True, eq=False)
class Reaches(Chart):
    """How outputs of models depend on tokens: squares on one scale, and below them lines over
    distance, and over length where times were measured.

    asked: what follows the models in the command `hgviz reach` that measures it; notes say of each
    model how far it reaches.
    """

    squares: tuple[Square, ...]
    lines: Plots
    asked: tuple[str, ...] = ()

    def rows(self) -> list[Row]:
        """A row for each cell and each point."""
        return [
            ("model", "shown", "x", "y", "value"),
            *(
                (square.name, f"output by {square.across.lower()}", output, token, float(value))
                for square in self.squares
                for (output, token), value in np.ndenumerate(square.values)
            ),
            *(
                (line, plot, float(x), "", float(y))
                for plot, line, x, y, *_ in self.lines.rows()[1:]
            ),
        ]

    def draw(self, page: Page, spec: Spec) -> None:
        """Place the squares, one colour bar for all, and the lines."""
        top = self.draw_heading(page, spec)
        display = Display(spec.display.palette, spec.display.limits or (0.0, 1.0), "log")
        shades = shades_of(display, False, [])
        start, gap = 24.0, 9.0  # start: the numbers and the name of the outputs
        room = page.width - start
        columns = max(1, min(len(self.squares), int(room // 84)))
        side = min((room - gap * (columns - 1)) / columns, 170.0)
        pitch = TITLE_ROOM + side + 22
        for number, square in enumerate(self.squares):
            row, column = divmod(number, columns)
            x, y = start + column * (side + gap), top + row * pitch
            square.draw(page, shades, x, y, side, column == 0)
        scale = ["Gradient, over the largest of its matrix (logarithm)"]
        bottom = top + ceil(len(self.squares) / columns) * pitch - 2
        y = page.footnotes(scale, 0.0, bottom)
        bar = page.width - 62
        end = shades.draw_level(page, 3.0, y + 4, bar)
        if any((square.values == 0).any() for square in self.squares):
            left = min(LONGEST, bar) + APART
            page.legend(["exactly 0"], left, y + 3, page.width - left)
        self.lines.draw_below(page, page.footnotes(self.notes, 0.0, end) + APART)
