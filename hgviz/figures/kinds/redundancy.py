"""How much heads repeat each other: a square for each layer, and lines over layers."""

from __future__ import annotations

from hgviz.figures.content.repeats import Repeats
from hgviz.figures.kinds import grids, plots
from hgviz.figures.paper.frame import footnotes, heading
from hgviz.figures.paper.page import Page
from hgviz.figures.spec import Spec

NARROWEST, CELL = 84.0, 13.0  # of a square; of its cells at most
APART = 14.0


def compose(page: Page, spec: Spec, chart: Repeats) -> None:
    """Place the squares, one bar for all, and the lines."""
    top = heading(page, chart.title if spec.title is None else spec.title,
                  chart.more if spec.title is None else "")  # fmt: skip
    y = grids.placed(page, chart.grids, top, NARROWEST, CELL)
    y = footnotes(page, chart.notes, 0.0, y)
    plots.placed(page, chart.lines, y + APART)
