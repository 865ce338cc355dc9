"""What every head is worth, the most needed first, each with its interval."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hgviz.figures.content.charts import Scores
from hgviz.figures.paper import axes as around
from hgviz.figures.paper import style
from hgviz.figures.paper.axes import Axes, look
from hgviz.figures.paper.frame import footnotes, heading
from hgviz.figures.paper.key import Key
from hgviz.figures.paper.page import Page
from hgviz.figures.spec import Spec
from hgviz.language import counted
from hgviz.palettes import LIGHT_PAGE

HEIGHT, LARGEST = 0.5, 200.0  # of the axes, in widths of the page and in points
EACH_Y = 16.0
MARK, WHISKER = 3.6, 0.8
ABOVE = 3.0  # half of a number at the top of the axis


def compose(page: Page, spec: Spec, chart: Scores) -> None:
    """Place the heads of a chart on the page, a marker and an interval each."""
    title = chart.title if spec.title is None else spec.title
    top = heading(page, title, chart.more if spec.title is None else "") + ABOVE
    ends = spec.display.limits or ends_of(chart)
    height = max(min(HEIGHT * page.width, LARGEST), style.extent(chart.up, style.SMALL) + 4)
    ys = around.numbered(*ends, height, EACH_Y)
    left = max(style.extent(words, style.SMALL) for _, words in ys) + style.SMALL * 1.6 + 6
    count = len(chart.names)
    axes = Axes(left, top, page.width - left - 4, height, -0.8, count - 0.2, *ends)
    around.frame(page, axes, [], ys, numbered=True)
    if ends[0] <= 0 <= ends[1]:
        page.stroke(axes.at(np.array([-0.8, count - 0.2]), np.zeros(2)), LIGHT_PAGE.secondary, 0.6)
    _heads(page, chart, axes)
    bottom = axes.bottom + around.names(page, axes, chart.names)
    page.text(style.SMALL, axes.top + height / 2, chart.up, size=style.SMALL, across="center",
              turned=True)  # fmt: skip
    beyond = int(((chart.value < ends[0]) | (chart.value > ends[1])).sum())
    notes = (f"{counted(beyond, 'head')} beyond the axis",) * (beyond > 0)
    _key(page, replace(chart, notes=(*chart.notes, *notes)), left, bottom + 11)


def ends_of(chart: Scores) -> tuple[float, float]:
    """From where to where values and intervals go, 0 among them, with a little air."""
    finite = np.concatenate([[0.0], *(v[np.isfinite(v)] for v in (chart.low, chart.high))])
    finite = np.concatenate([finite, chart.value])
    air = 0.05 * (finite.max() - finite.min()) or 1.0
    return float(finite.min() - air), float(finite.max() + air)


def _heads(page: Page, chart: Scores, axes: Axes) -> None:
    """Markers, hollow where the interval includes 0, and intervals as far as the axes go."""
    at = np.arange(len(chart.names), dtype=float)
    low, high = (np.clip(end, axes.y0, axes.y1) for end in (chart.low, chart.high))
    size = min(MARK, max(1.8, 0.8 * axes.width / len(at)))
    for group in range(len(chart.group_names)):
        mine = np.flatnonzero(np.array(chart.groups) == group)
        how = look(group)
        page.lines(
            [axes.at(at[[i, i]], np.array([low[i], high[i]])) for i in mine], how.colour, WHISKER
        )
        mine = mine[(chart.value[mine] >= axes.y0) & (chart.value[mine] <= axes.y1)]
        zero = (chart.low[mine] <= 0) & (chart.high[mine] >= 0)
        for some, hollow in ((mine[~zero], False), (mine[zero], True)):
            places = axes.at(at[some], chart.value[some])
            page.marks(places, how.marker, how.colour, size, hollow)


def _key(page: Page, chart: Scores, left: float, y: float) -> None:
    """Which marker is which group, and what is hollow."""
    key = Key(page, left, y)
    for number, name in enumerate(chart.group_names):
        key.mark(name, look(number), MARK)
    if ((chart.low <= 0) & (chart.high >= 0)).any():
        key.entry("hollow: the interval includes 0", 0.0, LIGHT_PAGE.secondary)
    page.close(footnotes(page, chart.notes, left, key.base) + 5)
