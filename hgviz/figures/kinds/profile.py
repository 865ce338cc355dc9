"""A profile: metrics of heads over the layers, every head a mark, the layer's mean a line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from math import ceil

import numpy as np

from hgviz.figures.content.charts import Many
from hgviz.figures.content.profiles import Measured, Profile, Side
from hgviz.figures.paper import axes as around
from hgviz.figures.paper import style
from hgviz.figures.paper.axes import Axes, Look, look
from hgviz.figures.paper.frame import footnotes, heading
from hgviz.figures.paper.labels import elide, visible
from hgviz.figures.paper.page import Page
from hgviz.figures.spec import Spec
from hgviz.palettes import LIGHT_PAGE

NARROWEST, EACH_LAYER = 96.0, 3.0  # of a pair of axes, and of a layer in it
TALL, LOWEST, HIGHEST = 0.6, 52.0, 96.0  # of a pair of axes, in widths and points
BETWEEN, ABOVE, BELOW, FOOT = 12.0, 12.0, 9.0, 12.0  # FOOT: the numbers of the layers
EACH_X, EACH_Y = 3.0, 10.4  # between the numbers of layers; of a number at the side
MARK, SMALLEST, MEAN = 3.0, 1.6, 1.2
FAINT = 0.55  # of the heads' marks
SPREAD, CLOSE = 0.66, 7.0  # of a layer's room that the captures share, and points for each
SHAPE, SHRINK = 13.0, 0.78  # height of the shape of the model, and of a coarser level in it
NAME = 6.0  # size of the names in it
SWATCH = 20.0


@dataclass(frozen=True, slots=True)
class Series:
    """What one line is of: layers of one kind of one side, which stands among count of them."""

    side: int
    kind: str
    how: Look
    count: int

    def beside(self, axes: Axes) -> float:
        """How many layers beside the middle of a layer it stands."""
        step = axes.width / (axes.x1 - axes.x0)
        return (self.side - (self.count - 1) / 2) * min(SPREAD / self.count, CLOSE / step)


def compose(page: Page, spec: Spec, chart: Profile) -> None:
    """Place the metrics on the page, the shape of the model above each column of them."""
    top = heading(page, chart.title if spec.title is None else spec.title,
                  chart.more if spec.title is None else "")  # fmt: skip
    series = list(_series(chart))
    deepest = max(len(side.layers) for side in chart.sides)
    need = max(NARROWEST, EACH_LAYER * deepest + 24)
    columns = max(1, min(len(chart.metrics), int((page.width + BETWEEN) // (need + BETWEEN))))
    columns = ceil(len(chart.metrics) / ceil(len(chart.metrics) / columns))
    room = (page.width - BETWEEN * (columns - 1)) / columns
    height = min(HIGHEST, max(LOWEST, TALL * room - 14))
    shapes, bottom = _shapes(chart), top
    for start in range(0, len(chart.metrics), columns):
        row = chart.metrics[start : start + columns]
        y = bottom + (0 if start == 0 else BELOW)
        shaped = len(shapes) * (SHAPE + 1) + 2 if shapes and start == 0 else 0.0
        for number, metric in enumerate(row):
            left, above = number * (room + BETWEEN), y + ABOVE + shaped
            title = elide(visible(metric.label, space=" "), room, style.TEXT, bold=True)
            page.text(left, y + style.TEXT, title, size=style.TEXT, bold=True)
            inner = left + _numbers(chart.metrics[number::columns], height) + around.GAP
            ends = (-0.5, deepest - 0.5, *ends_of(metric))
            wide = left + room - inner
            last = style.extent(str(deepest - 1), style.SMALL) / 2  # it may reach beyond its layer
            axes = Axes(inner, above, wide - max(1.0, last - wide / deepest / 2), height, *ends)
            for at, side in enumerate(shapes if shaped else ()):
                middle = y + ABOVE + (at + 0.5) * (SHAPE + 1)
                _shape(page, side, axes, middle, f"{side.name[:1]} " if len(shapes) > 1 else "")
            if len(shapes) == 1:
                _grounds(page, shapes[0], axes)
            lowest = start + number + columns >= len(chart.metrics)
            _panel(page, chart, metric, series, axes, lowest)
            bottom = axes.bottom
    _key(page, chart, series, bottom + FOOT + 19)


def _series(chart: Profile) -> Iterator[Series]:
    """Self-attention and cross-attention of each side, where there are such."""
    kinds = [list(dict.fromkeys(one.kind for one in side.layers)) for side in chart.sides]
    count, number = len(chart.sides), 0
    for side, named in enumerate(kinds):
        for kind in named:
            yield Series(side, kind, look(number), count)
            number += 1


# --- the shape of the model -----------------------------------------------------------------------


def _shapes(chart: Profile) -> list[Side]:
    """The sides whose shape is drawn: those that have one, one of those that are alike."""
    shaped = [one for one in chart.sides if len({place.level for place in one.layers}) > 1]
    alike = len({one.shape for one in chart.sides}) == 1
    return shaped[:1] if alike else shaped


def _shape(page: Page, side: Side, axes: Axes, y: float, said: str) -> None:
    """The model lying on its side, y its middle: as high as its levels are fine."""
    step = axes.width / (axes.x1 - axes.x0)
    tints = LIGHT_PAGE.silhouette
    for level, run in groupby(side.layers, lambda one: one.level):
        places, upper = list(run), []
        for place in places:
            left = axes.left + (place.index - 0.5 - axes.x0) * step
            slopes = place.role in ("down", "up")
            for x, rank in ((left, place.key_rank if slopes else place.rank),
                            (left + step, place.rank)):  # fmt: skip
                upper.append((x, SHAPE / 2 * SHRINK**rank))
        fill = tints[min(places[0].rank, len(tints) - 1)]
        corners = [(x, y - high) for x, high in upper] + [(x, y + high) for x, high in upper[::-1]]
        page.polygon(corners, fill)
        start, wide = upper[0][0], step * len(places)
        if style.extent(said + level, NAME) + 2 <= wide:
            page.text(start + wide / 2, y, said + level, size=NAME, across="center", middle=True)


def _grounds(page: Page, side: Side, axes: Axes) -> None:
    """The levels behind the marks: none behind the finest, a tint behind each coarser one."""
    step = axes.width / (axes.x1 - axes.x0)
    for rank, run in groupby(side.layers, lambda one: max(one.rank, one.key_rank)):
        places = list(run)
        if rank:
            x = axes.left + (places[0].index - 0.5 - axes.x0) * step
            fill = LIGHT_PAGE.silhouette[min(rank, 2) - 1]
            page.box(x, axes.top, step * len(places), axes.height, fill=fill)


# --- one metric -----------------------------------------------------------------------------------


def _panel(
    page: Page,
    chart: Profile,
    metric: Measured,
    series: list[Series],
    axes: Axes,
    lowest: bool,
) -> None:
    """What stands in a pair of axes, and at their sides."""
    xs = _layers(round(axes.x1 + 0.5), axes.width, lowest)
    ys = around.numbered(axes.y0, axes.y1, axes.height, EACH_Y)
    around.frame(page, axes, xs, ys, numbered=True)
    if axes.y0 < 0 < axes.y1:
        page.stroke(axes.at(np.array([axes.x0, axes.x1]), np.zeros(2)), LIGHT_PAGE.secondary, 0.6)
    for one in series:
        _heads(page, chart.sides[one.side], metric.values[one.side], one, axes)
    for one in series:
        _means(page, chart.sides[one.side], metric.values[one.side], one, axes)
    if lowest:
        page.text(axes.left + axes.width / 2, axes.bottom + FOOT + 7, "Layer", size=style.SMALL,
                  across="center", colour=LIGHT_PAGE.secondary)  # fmt: skip


def _numbers(metrics: tuple[Measured, ...], height: float) -> float:
    """The room of the numbers beside some axes."""
    said = [words for one in metrics for _, words in around.numbered(*ends_of(one), height, EACH_Y)]
    return max((style.extent(one, style.SMALL) for one in said), default=0.0)


def _layers(count: int, width: float, said: bool) -> list[tuple[float, str]]:
    """Ticks at layers, every so many as there is room for."""
    need = style.extent(str(count - 1), style.SMALL) + EACH_X
    fitting = next(s for p in range(9) for s in (10**p, 2 * 10**p, 5 * 10**p)
                   if s * width / count >= need or s >= count)  # fmt: skip
    return [(float(at), str(at) if said else "") for at in range(0, count, fitting)]


def ends_of(metric: Measured) -> tuple[float, float]:
    """From 0, or from below it, with a little air."""
    known = np.concatenate([one[np.isfinite(one)] for one in metric.values])
    low, high = min(float(known.min(initial=0)), 0.0), max(float(known.max(initial=0)), 0.0)
    air = 0.06 * (high - low) or 1.0
    return (low - air if low < 0 else 0.0), high + air


def _heads(page: Page, side: Side, values: Many, one: Series, axes: Axes) -> None:
    """A mark for each head, hollow where it is off."""
    step = axes.width / (axes.x1 - axes.x0)
    size = min(MARK, max(SMALLEST, 0.42 * step / one.count**0.5))
    at = np.array([head.layer for head in side.heads], float) + one.beside(axes)
    kinds = {place.index: place.kind for place in side.layers}
    mine = np.array([kinds[head.layer] == one.kind for head in side.heads], bool)
    mine &= np.isfinite(values)
    for off in (False, True):
        some = mine & (side.off == off)
        places = axes.at(at[some], values[some])
        page.marks(places, one.how.marker, one.how.colour, size, hollow=off,
                   alpha=1.0 if off else FAINT)  # fmt: skip


def _means(page: Page, side: Side, values: Many, one: Series, axes: Axes) -> None:
    """A line through the means of neighbours of one text; a short one for a layer alone."""
    layers = [place for place in side.layers if place.kind == one.kind]
    means = [(place, side.mean(values, place.index)) for place in layers]
    for key, run in groupby(means, lambda each: (bool(np.isfinite(each[1])), each[0].sequence)):
        points = list(run)
        if not key[0]:
            continue
        x = np.array([place.index for place, _ in points], float) + one.beside(axes)
        y = np.array([mean for _, mean in points])
        if len(points) == 1:
            x, y = x[0] + np.array([-0.3, 0.3]), np.repeat(y, 2)
        page.stroke(axes.at(x, y), one.how.colour, MEAN, one.how.dash)


# --- what is what ---------------------------------------------------------------------------------


def _key(page: Page, chart: Profile, series: list[Series], base: float) -> None:
    """What every mark and line is."""
    at = 0.0
    several = len({one.kind for one in series}) > 1
    for one in series if len(series) > 1 else []:
        name = chart.sides[one.side].name if len(chart.sides) > 1 else ""
        kind = f"{one.kind}-attention" if several else ""
        label = visible(", ".join(filter(None, (name, kind))), space=" ")
        label = elide(label, page.width - SWATCH - 2, style.SMALL)
        need = SWATCH + style.extent(label, style.SMALL)
        if at and at + need > page.width - 2:
            at, base = 0.0, base + 10
        middle = base - 2.4
        page.stroke([(at, middle), (at + SWATCH - 4, middle)], one.how.colour, MEAN, one.how.dash)
        page.marks([(at + SWATCH / 2 - 2, middle)], one.how.marker, one.how.colour, MARK)
        page.text(at + SWATCH, base, label, size=style.SMALL)
        at += need + 12
    start = base if len(series) > 1 else base - 10
    page.close(footnotes(page, chart.notes, 0.0, start) + 4)
