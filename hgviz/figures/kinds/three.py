"""A, B and A - B of one head, on one grid and one scale."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hgviz.core import Display
from hgviz.figures.content.laboratory import Three
from hgviz.figures.paper import style
from hgviz.figures.paper.frame import footnotes, heading, reduced, zoom_for
from hgviz.figures.paper.labels import Mark, axis_marks, elide, level, size_for
from hgviz.figures.paper.page import Page, boxes_of
from hgviz.figures.paper.shades import LONGEST, Shades, level_bar, shades_of
from hgviz.figures.spec import Spec
from hgviz.maps.overview import pool
from hgviz.palettes import LIGHT_PAGE

BETWEEN, ABOVE, TICK, GAP = 12.0, 12.0, 2.5, 3.0
RIGHT = 4.0  # half of a label of the last column
NARROWEST = 330.0  # of a page with all three beside each other
LARGEST_CELL, TALLEST = 22.0, 1.5  # points; of a map's width
LEFT, DEEPEST = 0.16, 44.0  # of the page, and points: labels of rows and columns, at most
CORNER = ("Key →", "Query ↓")
APART = 24.0  # between two bars


@dataclass(frozen=True, slots=True)
class Grid:
    """How each of the three lies: its cells, the size of its labels, those down and across, where
    the latter lie that are written level, and the room at left of the first and above each.
    """

    cell: float
    text: float
    down: list[Mark]
    across: list[Mark]
    level: list[float] | None
    left: float
    deep: float


def compose(page: Page, spec: Spec, chart: Three) -> None:
    """Place the three maps, and the bars of their colours."""
    top = heading(page, chart.title if spec.title is None else spec.title,
                  chart.more if spec.title is None else "")  # fmt: skip
    columns = 3 if page.width >= NARROWEST else 2
    shades = _shades(spec.display, chart)
    grid = _grid(page, chart, columns)
    most = max(chart.shape)
    chart = _reduced(chart, zoom_for(most, grid.cell * most, page.width))
    width, height = grid.cell * chart.shape[1], grid.cell * chart.shape[0]
    names = (f"A  {chart.names[0]}", f"B  {chart.names[1]}", "A − B")
    x, y, bottom = grid.left, top, top
    for number, name in enumerate(names):
        if number == columns:
            x, y = grid.left, bottom + 8
        words = elide(name, width, style.TEXT, bold=True)
        page.text(x, y + ABOVE - 4, words, size=style.TEXT, bold=True)
        below = y + ABOVE + grid.deep
        _map(page, chart, shades[number], number, x, below, grid.cell)
        _labels(page, grid, x, below)
        x, bottom = x + width + BETWEEN, max(bottom, below + height)
    bars = _bars(chart, shades)
    if columns == 2 and page.width - x >= _least(bars):  # beside the last of the maps
        end = bottom - height
        for name, one in bars:
            end = _bar(page, name, one, x, end + 6, page.width - x) + 6
        end = max(end, bottom)
    elif len(bars) == 1:  # of all three, in their middle
        (name, one), all_ = bars[0], 3 * width + 2 * BETWEEN
        room = min(max(all_, _least(bars)), LONGEST)
        at = grid.left + max(0.0, (all_ - room) / 2)
        end = _bar(page, name, one, at, bottom + 12, page.width - at)
    else:
        room = (page.width - grid.left - APART) / 2
        third = grid.left + max(2 * (width + BETWEEN), min(room, LONGEST) + APART)
        third = third if page.width - third >= _least(bars) else grid.left + room + APART
        places = [(grid.left, third - grid.left - APART), (third, page.width - third)]
        end = max(
            _bar(page, name, one, at, bottom + 12, room)
            for (name, one), (at, room) in zip(bars, places, strict=False)
        )
    notes = list(chart.notes)
    if chart.zoom:
        notes.append(reduced((chart.zoom, chart.zoom)))
        page.notes.append(notes[-1])
    page.close(footnotes(page, notes, 0.0 if columns == 2 else grid.left, end) + 5)


def _reduced(chart: Three, zoom: int) -> Three:
    """The maps with no more cells than dots, the largest of those that share one."""
    more = zoom - chart.zoom
    if more <= 0:
        return chart
    a, b = (pool(one, more, signed=chart.signed) for one in chart.maps[:2])
    apart = pool(chart.maps[2], more, signed=True)
    one, two, both = (pool(seen.astype(np.float32), more) > 0 for seen in chart.seen)
    return replace(chart, maps=(a, b, apart), seen=(one, two, both), zoom=zoom)


def _shades(display: Display, chart: Three) -> tuple[Shades, Shades, Shades]:
    """One range for A and B; where weights go below 0, the same for the difference."""
    if chart.signed:
        one = shades_of(display, True, chart.maps)
        return one, one, one
    whole = shades_of(display, False, chart.maps[:2])
    apart = shades_of(replace(display, limits=None), True, chart.maps[2:])
    return whole, whole, apart


def _cell(page: Page, chart: Three, columns: int, left: float) -> float:
    rows, across = chart.shape
    room = (page.width - left - BETWEEN * (columns - 1) - RIGHT) / columns
    return min(room / max(across, 1), LARGEST_CELL, TALLEST * room / max(rows, 1))


def _grid(page: Page, chart: Three, columns: int) -> Grid:
    """Labels depend on the size of a cell, and that on the room they leave."""
    room = left = max(34.0, LEFT * page.width)
    corner = max(style.extent(words, style.SMALL) for words in CORNER)
    for again in range(4):
        cell = _cell(page, chart, columns, left)
        text = size_for(cell)
        down = axis_marks(chart.rows_.prompt, chart.rows_.spans, cell, text, room)
        need = max(_widest(down, text), corner) + GAP + TICK + 2
        if again and need <= left:
            break
        left = max(left, need) if again else need
    across = axis_marks(chart.columns.prompt, chart.columns.spans, cell, text, DEEPEST)
    places = level(across, cell, cell * chart.shape[1], text)
    high = max(_widest(across, text) if places is None else text, 15.0)
    return Grid(cell, text, down, across, places, left, high + GAP + TICK)


def _widest(marks: list[Mark], size: float) -> float:
    return max((style.extent(one.words, size) for one in marks), default=0.0)


def _map(
    page: Page, chart: Three, shades: Shades, number: int, x: float, y: float, cell: float
) -> None:
    """One of the three; what one side has not is hatched."""
    rows, columns = chart.shape
    side, seen = cell * (1 << chart.zoom), chart.seen[number]
    rgb = shades.paint(chart.maps[number], seen)
    size = cell * columns, cell * rows
    page.image(rgb, x, y, rgb.shape[1] * side, rgb.shape[0] * side, cut=size)
    if not seen.all():
        page.hatch(x, y, *size, boxes_of(~seen, x, y, (side, side)))
    page.box(x, y, *size, edge=LIGHT_PAGE.line)


def _labels(page: Page, grid: Grid, x: float, y: float) -> None:
    """The text along both axes, and what these are; down only beside the first of a row."""
    for mark in grid.down if x == grid.left else ():
        at = y + mark.middle * grid.cell
        page.lines([[(x - TICK, at), (x, at)]], LIGHT_PAGE.line)
        page.text(x - TICK - GAP, at, mark.words, size=grid.text, across="right", middle=True)
    turned = grid.level is None
    places = grid.level or [mark.middle * grid.cell for mark in grid.across]
    for mark, place in zip(grid.across, places, strict=True):
        at = x + mark.middle * grid.cell
        page.lines([[(at, y - TICK), (at, y)]], LIGHT_PAGE.line)
        page.text(x + place, y - TICK - GAP, mark.words, size=grid.text, turned=turned,
                  middle=turned, across="left" if turned else "center")  # fmt: skip
    for line, words in enumerate(CORNER if x == grid.left else ()):
        page.text(0, y - 13.5 + 8.5 * line, words, size=style.SMALL, colour=LIGHT_PAGE.secondary)


def _bars(chart: Three, shades: tuple[Shades, Shades, Shades]) -> list[tuple[str, Shades]]:
    """The bar of all three, or one of weights and one of differences."""
    if chart.signed:
        return [("Weight, and difference", shades[0])]
    return [("Weight", shades[0]), ("Difference, A − B", shades[2])]


def _least(bars: list[tuple[str, Shades]]) -> float:
    """The room that each bar needs."""
    return max(72.0, *(style.extent(name, style.SMALL) for name, _ in bars))


def _bar(page: Page, name: str, shades: Shades, x: float, y: float, room: float) -> float:
    page.text(x, y, elide(name, room, style.SMALL), size=style.SMALL, colour=LIGHT_PAGE.secondary)
    return level_bar(page, shades, x, y + 4, room)
