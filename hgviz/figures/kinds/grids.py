"""Squares of numbers, side by side on one scale."""

from __future__ import annotations

from math import ceil

import numpy as np

from hgviz.core import Display
from hgviz.figures.content.laboratory import Grid, Grids
from hgviz.figures.paper import style
from hgviz.figures.paper.frame import footnotes, heading
from hgviz.figures.paper.labels import elide
from hgviz.figures.paper.page import Page, boxes_of
from hgviz.figures.paper.shades import Shades, level_bar, shades_of
from hgviz.figures.spec import Spec
from hgviz.palettes import LIGHT_PAGE

BETWEEN, ABOVE = 14.0, 13.0
SIZE = 5.5  # of the names of heads
PITCH = 1.15
NARROWEST, CELL = 120.0, 22.0


def compose(page: Page, spec: Spec, chart: Grids) -> None:
    """Place the grids, and one bar for all."""
    top = heading(page, chart.title if spec.title is None else spec.title,
                  chart.more if spec.title is None else "")  # fmt: skip
    page.close(footnotes(page, chart.notes, 0.0, placed(page, chart, top)) + 5)


def placed(
    page: Page, chart: Grids, top: float, narrowest: float = NARROWEST, largest: float = CELL
) -> float:
    """The grids from top down, at least so wide and their cells at most so, and one bar for all;
    gives where it ends."""
    signed = chart.limits[0] < 0
    shades = shades_of(Display(limits=chart.limits, scale="linear"), signed, [])
    columns = max(1, min(len(chart.grids), int(page.width // narrowest)))
    room = (page.width - BETWEEN * (columns - 1)) / columns
    bottom = top
    for start in range(0, len(chart.grids), columns):
        top = bottom
        for number, grid in enumerate(chart.grids[start : start + columns]):
            left = number * (room + BETWEEN)
            bottom = max(bottom, _grid(page, grid, shades, left, top, room, largest))
    y = footnotes(page, [chart.unit], 0.0, bottom - 2)
    first = style.extent(shades.ticks(page.width / 2)[0][1], style.SMALL)
    return level_bar(page, shades, max(3.0, first / 2 + 1), y + 4, page.width / 2)


def _grid(
    page: Page, grid: Grid, shades: Shades, left: float, top: float, room: float, largest: float
) -> float:
    """One grid; gives where it ends."""
    rows, columns = grid.values.shape
    name = max(style.extent(one, SIZE) for one in grid.rows) + 5
    inner = left + name + 9
    cell = (left + room - inner) / max(columns, 1)
    cell = min(cell, largest)
    page.text(left, top + ABOVE - 5, elide(grid.title, room, style.TEXT, bold=True),
              size=style.TEXT, bold=True)  # fmt: skip
    y = top + ABOVE + 2
    width, height = cell * columns, cell * rows
    known = np.isfinite(grid.values)
    values = np.where(known, grid.values, 0.0).astype(np.float32)
    page.image(shades.paint(values, known), inner, y, width, height)
    if not known.all():
        page.hatch(inner, y, width, height, boxes_of(~known, inner, y, (cell, cell)))
    page.box(inner, y, width, height, edge=LIGHT_PAGE.line)
    every = max(1, ceil(SIZE * PITCH / cell))
    for number in range(0, rows, every):
        page.text(inner - 3, y + (number + 0.5) * cell, grid.rows[number], size=SIZE,
                  across="right", middle=True, colour=LIGHT_PAGE.secondary)  # fmt: skip
    deep = 0.0
    for number in range(0, columns, every):
        x = inner + (number + 0.5) * cell
        page.text(x, y + height + 3, grid.columns[number], size=SIZE, across="right",
                  turned=True, middle=True, colour=LIGHT_PAGE.secondary)  # fmt: skip
        deep = max(deep, style.extent(grid.columns[number], SIZE))
    page.text(left + style.SMALL, y + height / 2, grid.down, size=style.SMALL, across="center",
              turned=True)  # fmt: skip
    page.text(inner + width / 2, y + height + deep + 13, grid.across, size=style.SMALL,
              across="center")  # fmt: skip
    return float(y + height + deep + 18)
