"""A, B and A - B of one head, on one grid and one scale."""

from __future__ import annotations

from dataclasses import replace

from hgviz.core import Display
from hgviz.figures import style
from hgviz.figures.frame import footnotes, heading, reduced
from hgviz.figures.labels import Mark, axis_marks, elide
from hgviz.figures.laboratory import Three
from hgviz.figures.page import Page, outline
from hgviz.figures.shades import Shades, level_bar, shades_of
from hgviz.figures.spec import Spec
from hgviz.palettes import PAPER

BETWEEN, ABOVE, TICK, GAP = 12.0, 12.0, 2.5, 3.0
NARROWEST = 330.0  # of a page with all three beside each other
LARGEST_CELL, TALLEST = 22.0, 1.5  # points; of a map's width
LEFT = 0.16  # of the page, at most, for labels of rows


def compose(page: Page, spec: Spec, chart: Three) -> None:
    """Place the three maps, and the bars of their colours."""
    top = heading(page, chart.title if spec.title is None else spec.title,
                  chart.more if spec.title is None else "")  # fmt: skip
    columns = 3 if page.width >= NARROWEST else 2
    shades = _shades(spec.display, chart)
    rows, across = chart.shape
    most = max(34.0, LEFT * page.width)
    cell = _cell(page, chart, columns, most)
    down = _marks(chart, 0, cell, most)
    left = _widest(down) + GAP + TICK + 2
    cell = _cell(page, chart, columns, left)
    above = _marks(chart, 1, cell, 44.0)
    width, height, deep = cell * across, cell * rows, _widest(above) + GAP + TICK
    names = (f"A  {chart.names[0]}", f"B  {chart.names[1]}", "A − B")
    y, bottom = top, top
    for number, name in enumerate(names):
        if number == columns:
            y = bottom + 8
        x = left + number % columns * (width + BETWEEN)
        words = elide(name, width, style.TEXT, bold=True)
        page.text(x, y + ABOVE - 4, words, size=style.TEXT, bold=True)
        _map(page, chart, shades[number], number, x, y + ABOVE + deep, cell)
        _labels(page, above, down if x == left else [], x, y + ABOVE + deep, cell)
        bottom = max(bottom, y + ABOVE + deep + height)
    end = _bars(page, chart, shades, left, bottom + 12)
    notes = list(chart.notes)
    if chart.zoom:
        notes.append(reduced(chart.zoom))
        page.notes.append(reduced(chart.zoom))
    page.close(footnotes(page, notes, left, end) + 5)


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
    room = (page.width - left - BETWEEN * (columns - 1) - 2) / columns
    return min(room / max(across, 1), LARGEST_CELL, TALLEST * room / max(rows, 1))


def _marks(chart: Three, side: int, cell: float, room: float) -> list[Mark]:
    edge = chart.columns if side else chart.rows_
    return axis_marks(edge.prompt, edge.spans, cell, style.SMALL, room)


def _widest(marks: list[Mark]) -> float:
    return max((style.extent(one.words, style.SMALL) for one in marks), default=0.0)


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
        page.hatch(x, y, *size, outline(~seen, x, y, (side, side)))
    page.box(x, y, *size, edge=PAPER.line)


def _labels(
    page: Page, above: list[Mark], down: list[Mark], x: float, y: float, cell: float
) -> None:
    for mark in down:
        level = y + mark.middle * cell
        page.lines([[(x - TICK, level), (x, level)]], PAPER.line)
        page.text(x - TICK - GAP, level, mark.words, size=style.SMALL, across="right", middle=True)
    for mark in above:
        at = x + mark.middle * cell
        page.lines([[(at, y - TICK), (at, y)]], PAPER.line)
        page.text(at, y - TICK - GAP, mark.words, size=style.SMALL, turned=True, middle=True)


def _bars(
    page: Page, chart: Three, shades: tuple[Shades, Shades, Shades], x: float, y: float
) -> float:
    """The bar of all three, or one of weights and one of differences; gives where they end."""
    room = (page.width - x - 30) / 2
    both = [("Weight", shades[0])]
    both = [("Weight, and difference", shades[0])] if chart.signed else both
    if not chart.signed:
        both.append(("Difference, A − B", shades[2]))
    end = y
    for number, (name, one) in enumerate(both):
        at = x + number * (room + 30)
        page.text(at, y, name, size=style.SMALL, colour=PAPER.secondary)
        end = max(end, level_bar(page, one, at, y + 4, min(room, 150.0)))
    return end
