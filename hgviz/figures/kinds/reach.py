"""Reach matrices side by side, and how they fade over distance."""

from __future__ import annotations

import numpy as np

from hgviz.core import Display
from hgviz.figures.content.reaches import Reaches, Square
from hgviz.figures.kinds import plots
from hgviz.figures.paper import axes as around
from hgviz.figures.paper import style
from hgviz.figures.paper.frame import footnotes, heading, legend
from hgviz.figures.paper.labels import elide
from hgviz.figures.paper.page import Page, boxes_of
from hgviz.figures.paper.shades import LONGEST, Shades, level_bar, shades_of
from hgviz.figures.spec import Spec
from hgviz.palettes import LIGHT_PAGE

BETWEEN, ABOVE, BELOW = 9.0, 13.0, 22.0
NARROWEST, WIDEST = 84.0, 170.0
SIDE = 24.0  # left of a row of squares: the name of the axis and its numbers
EACH = 26.0  # points for each number of a token
APART, NONE = 14.0, 62.0  # before what follows; of the words for exactly 0, and before them
SCALE = "Gradient, over the largest of its matrix (logarithm)"


def compose(page: Page, spec: Spec, chart: Reaches) -> None:
    """Place the squares, one bar for all, and the lines."""
    top = heading(page, chart.title if spec.title is None else spec.title,
                  chart.more if spec.title is None else "")  # fmt: skip
    display = Display(spec.display.palette, spec.display.limits or (0.0, 1.0), "log")
    shades = shades_of(display, False, [])
    room = page.width - SIDE
    columns = max(1, min(len(chart.squares), int(room // NARROWEST)))
    side = min((room - BETWEEN * (columns - 1)) / columns, WIDEST)
    for start in range(0, len(chart.squares), columns):
        for number, square in enumerate(chart.squares[start : start + columns]):
            _square(page, square, shades, (SIDE + number * (side + BETWEEN), top), side, number)
        top += ABOVE + side + BELOW
    y = footnotes(page, [SCALE], 0.0, top - 2)
    end = level_bar(page, shades, 3.0, y + 4, page.width - NONE)
    if any((one.values == 0).any() for one in chart.squares):
        left = min(LONGEST, page.width - NONE) + APART
        legend(page, ["exactly 0"], left, y + 3, page.width - left)
    y = end
    y = footnotes(page, chart.notes, 0.0, y)
    plots.placed(page, chart.lines, y + APART)


def _square(
    page: Page,
    square: Square,
    shades: Shades,
    corner: tuple[float, float],
    side: float,
    number: int,
) -> None:
    """One matrix, outputs down; what stands left of it, for the first of a row."""
    left, top = corner
    values, y = square.values, top + ABOVE
    page.text(left, y - 5, elide(square.name, side, style.TEXT, bold=True), size=style.TEXT,
              bold=True)  # fmt: skip
    known = values > 0
    page.image(shades.paint(values.astype(np.float32), known), left, y, side, side)
    rows, columns = values.shape
    cell = side / max(columns, 1), side / max(rows, 1)
    if not known.all():
        page.hatch(left, y, side, side, boxes_of(~known, left, y, cell))
    page.box(left, y, side, side, edge=LIGHT_PAGE.line)
    for at, words in around.numbered(0, max(columns - 1, 1), side, EACH, whole=True):
        x = left + (at + 0.5) * cell[0]
        page.lines([[(x, y + side), (x, y + side + 2)]], LIGHT_PAGE.secondary)
        page.text(x, y + side + 9, words, size=style.SMALL, across="center",
                  colour=LIGHT_PAGE.secondary)  # fmt: skip
    page.text(left + side / 2, y + side + 18, square.across, size=style.SMALL, across="center")
    if number:
        return
    for at, words in around.numbered(0, max(rows - 1, 1), side, EACH, whole=True):
        page.text(left - 3, y + (at + 0.5) * cell[1], words, size=style.SMALL, across="right",
                  middle=True, colour=LIGHT_PAGE.secondary)  # fmt: skip
    page.text(style.SMALL, y + side / 2, "Output at token", size=style.SMALL, across="center",
              turned=True)  # fmt: skip
