"""What was measured once for each seed: a dot for each, and beside them their mean and interval."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hgviz.figures.content.seeds import Facet, Mark, Seeds
from hgviz.figures.paper import axes as around
from hgviz.figures.paper import style
from hgviz.figures.paper.axes import Axes, Look, look
from hgviz.figures.paper.frame import footnotes, heading
from hgviz.figures.paper.key import Key
from hgviz.figures.paper.labels import elide
from hgviz.figures.paper.page import Page
from hgviz.figures.spec import Spec
from hgviz.language import counted

EACH, NARROWEST = 13.0, 150.0  # points of room that a mark takes, and a pair of axes at least
TALL, LOWEST, HIGHEST = 0.5, 84.0, 150.0  # heights of axes, in widths and points
BETWEEN, ABOVE, BELOW = 10.0, 12.0, 12.0  # axes: across, for a title, and down
EACH_Y = 16.0
DOT, MEAN, WHISKER, FAINT = 2.8, 4.2, 1.0, 0.55
ASIDE = 2.6  # points from the middle of a mark to its seeds, and to its mean
BEYOND = 1.5  # how far an interval widens the axes, in spans of what was measured
NUMBER = 3.0  # half of the one at the top of the axis


def compose(page: Page, spec: Spec, chart: Seeds) -> None:
    """Place the facets of a chart, and below them what their marks are."""
    title = chart.title if spec.title is None else spec.title
    top = heading(page, title, chart.more if spec.title is None else "") + NUMBER
    ends = spec.display.limits or ends_of(chart)
    titled = ABOVE if any(one.title for one in chart.facets) else 0.0
    need = max(NARROWEST, EACH * len(chart.groups) * len(chart.series))
    columns = max(1, min(len(chart.facets), int(page.width // need)))
    height = min(max(TALL * page.width / columns, LOWEST), HIGHEST)
    height = max(height, style.extent(chart.up, style.SMALL) + 4)
    ys = around.numbered(*ends, height, EACH_Y)
    left = max(style.extent(words, style.SMALL) for _, words in ys) + style.SMALL * 1.6 + 6
    width = (page.width - left - 2 - BETWEEN * (columns - 1)) / columns
    y = top
    for start in range(0, len(chart.facets), columns):
        depth = 0.0
        for number, facet in enumerate(chart.facets[start : start + columns]):
            box = (left + number * (width + BETWEEN), y + titled, width, height)
            axes = Axes(*box, -0.5, len(chart.groups) - 0.5, *ends)
            around.frame(page, axes, [], ys, numbered=number == 0)
            if facet.title:
                words = elide(facet.title, width, style.TEXT, bold=True)
                page.text(axes.left, axes.top - 4, words, bold=True)
            depth = max(depth, around.names(page, axes, chart.groups))
            _facet(page, chart, facet, axes)
        page.text(style.SMALL, y + titled + height / 2, chart.up, size=style.SMALL, across="center",
                  turned=True)  # fmt: skip
        y += titled + height + depth + BELOW
    _key(page, chart, ends, left, y - BELOW + 11)


def ends_of(chart: Seeds) -> tuple[float, float]:
    """From where to where marks go, with a little air: all that was measured, and intervals as long
    as they leave that to be seen."""
    marks = chart.marks()
    values = np.concatenate([np.zeros(0), *(np.append(one.values, one.mean) for one in marks)])
    values = values[np.isfinite(values)]
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    span = high - low or 1.0
    ends = np.array([x for one in marks for x in (one.low, one.high) if np.isfinite(x)] or [low])
    down = max(min(low, float(ends.min())), low - BEYOND * span)
    up = min(max(high, float(ends.max())), high + BEYOND * span)
    air = 0.06 * (up - down) or 1.0
    return down - air, up + air


def _facet(page: Page, chart: Seeds, facet: Facet, axes: Axes) -> None:
    """All marks of a pair of axes, those of one group beside each other."""
    pitch = axes.width / len(chart.groups)
    step = min(0.86 * pitch / len(chart.series), 2.4 * EACH)
    for number, row in enumerate(facet.marks):
        aside = (number - (len(facet.marks) - 1) / 2) * step
        for at, mark in enumerate(row):
            if mark is not None:
                x, _ = axes.at(np.array([float(at)]), np.zeros(1))[0]
                _mark(page, axes, mark, x + aside, min(ASIDE, step / 5), look(number))


def _mark(page: Page, axes: Axes, mark: Mark, x: float, aside: float, how: Look) -> None:
    """Seeds at the left, their mean with its interval at the right; of one seed, that seed."""

    def place(value: float) -> float:
        return axes.at(np.zeros(1), np.array([value]))[0][1]

    def seen(value: float) -> bool:
        return axes.y0 <= value <= axes.y1

    several = len(mark.values) > 1
    shown = [value for value in mark.values if seen(value)]
    size = min(DOT, 2 * aside)
    if several:
        page.marks([(x - aside, place(one)) for one in shown], how.marker, how.colour, size,
                   alpha=FAINT)  # fmt: skip
    x += aside * several
    if np.isfinite([mark.low, mark.high]).all():
        low, high = (float(np.clip(end, axes.y0, axes.y1)) for end in (mark.low, mark.high))
        if low < high:
            page.lines([[(x, place(low)), (x, place(high))]], how.colour, WHISKER)
    if seen(mark.mean):
        page.marks([(x, place(mark.mean))], how.marker, how.colour, min(MEAN, 3 * aside + 1),
                   hollow=not several)  # fmt: skip


def _key(page: Page, chart: Seeds, ends: tuple[float, float], left: float, y: float) -> None:
    """Which mark is of what, and what is not seen."""
    key = Key(page, left, y)
    for number, name in enumerate(chart.series):
        if name:
            key.mark(name, look(number), MEAN)
    marks = chart.marks()
    alone = sum(len(one.values) == 1 for one in marks)
    beyond = sum(one.low < ends[0] or one.high > ends[1] for one in marks)
    notes = (
        *((f"{counted(beyond, 'interval')} beyond the axis",) * (beyond > 0)),
        *(("hollow: one seed, which has no interval",) * (alone > 0)),
    )
    base = key.base if any(chart.series) else y - 10
    chart = replace(chart, notes=(*chart.notes, *notes))
    page.close(footnotes(page, chart.notes, left, base) + 5)
