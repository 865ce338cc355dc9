"""Lines in several pairs of axes, each with a scale of its own."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from hgviz.figures.content.charts import Line, Many
from hgviz.figures.content.laboratory import Plot, Plots
from hgviz.figures.paper import axes as around
from hgviz.figures.paper import style
from hgviz.figures.paper.axes import Axes, Look, look
from hgviz.figures.paper.frame import footnotes, heading
from hgviz.figures.paper.key import Key
from hgviz.figures.paper.labels import elide
from hgviz.figures.paper.page import Page
from hgviz.figures.spec import Spec
from hgviz.palettes import LIGHT_PAGE

NARROWEST = 190.0  # of a pair of axes
TALL, TALLEST = 0.62, 160.0  # of axes: height over width, and at most
BETWEEN, ABOVE, FOOT, KEY = 14.0, 13.0, 24.0, 11.0
EACH_X, EACH_Y = 26.0, 16.0
SHADE = 0.14


def compose(page: Page, spec: Spec, chart: Plots) -> None:
    """Place the axes on the page, and below them what their lines are."""
    top = heading(page, chart.title if spec.title is None else spec.title,
                  chart.more if spec.title is None else "")  # fmt: skip
    if spec.display.limits is not None:  # of what stands first
        first = replace(chart.plots[0], limits=spec.display.limits)
        chart = replace(chart, plots=(first, *chart.plots[1:]))
    placed(page, chart, top)


def placed(page: Page, chart: Plots, top: float) -> None:
    """The axes from top down, and below them what their lines are; closes the page."""
    chart = replace(chart, plots=tuple(map(_scaled, chart.plots)))
    labels = list(dict.fromkeys(line.label for plot in chart.plots for line in plot.lines))
    looks = {label: look(number) for number, label in enumerate(labels)}
    columns = max(1, min(len(chart.plots), int(page.width // NARROWEST)))
    room = (page.width - BETWEEN * (columns - 1)) / columns
    bottom, height = top, min(TALL * room - 20, TALLEST)
    for start in range(0, len(chart.plots), columns):
        top = bottom
        for number, plot in enumerate(chart.plots[start : start + columns]):
            left = number * (room + BETWEEN)
            side = max(_side(one, height) for one in chart.plots[number::columns])
            bottom = max(bottom, _plot(page, plot, looks, (left, left + side), top, room, height))
    _key(page, chart, looks, bottom + KEY)


def _side(plot: Plot, height: float) -> float:
    """What the numbers and the name of the y axis take."""
    ys = _ticks(plot, height)
    return (
        max((style.extent(one, style.SMALL) for _, one in ys), default=0.0) + 1.6 * style.SMALL + 6
    )


def _scaled(plot: Plot) -> Plot:
    """A plot whose logarithmic axes hold powers of ten; what is 0 has no place there."""
    across, up = plot.log

    def powers(values: Many, wanted: bool) -> Many:
        with np.errstate(divide="ignore"):
            return np.where(values > 0, np.log10(values), np.nan) if wanted else values

    lines = tuple(replace(one, x=powers(one.x, across), y=powers(one.y, up)) for one in plot.lines)
    xs = plot.xs
    if across:
        xs = tuple((math.log10(at), words) for at, words in plot.xs)
    least, most, limits = plot.least, plot.most, plot.limits
    if up:
        values = np.concatenate([one.y for one in lines])
        least = most = float(np.nanmax(values))  # as far as the lines go, and no further
        if limits is not None:
            limits = math.log10(limits[0]), math.log10(limits[1])
    return replace(plot, lines=lines, xs=xs, least=least, most=most, limits=limits)


def _ticks(plot: Plot, height: float) -> list[tuple[float, str]]:
    """What stands beside the y axis."""
    low, high = ends_of(plot)[2:]
    if plot.log[1]:
        return around.powers(low, high)
    return around.numbered(low, high, height, EACH_Y)


def _plot(
    page: Page,
    plot: Plot,
    looks: dict[str, Look],
    lefts: tuple[float, float],
    top: float,
    room: float,
    height: float,
) -> float:
    """One pair of axes, its name and its own left end; gives where it ends."""
    ends, (left, inner) = ends_of(plot), lefts
    ys = _ticks(plot, height)
    axes = Axes(inner, top + ABOVE, left + room - inner - 8, height, *ends)
    xs = plot.xs or tuple(around.numbered(axes.x0, axes.x1, axes.width, EACH_X))
    title = elide(plot.title, left + room - inner, style.TEXT, bold=True)
    page.text(inner, top + ABOVE - 5, title, size=style.TEXT, bold=True)
    around.frame(page, axes, xs, ys, numbered=True)
    if not plot.log[1] and ends[2] < 0 < ends[3]:
        page.stroke(axes.at(np.array(ends[:2]), np.zeros(2)), LIGHT_PAGE.secondary, 0.6)
    for line in plot.lines:
        if line.low is not None and line.high is not None:
            colour = looks[line.label].colour
            around.ribbon(page, axes, line.x, line.low, line.high, colour, SHADE)
    for number, line in enumerate(plot.lines):
        first = (number + 0.5) / len(plot.lines)  # markers of lines that meet stay apart
        for part in _unbroken(line):
            around.line(page, axes, *part, looks[line.label], first)
    middle = axes.top + height / 2
    page.text(left + style.SMALL, middle, plot.up, size=style.SMALL, across="center", turned=True)
    page.text(axes.left + axes.width / 2, axes.bottom + FOOT - 4, plot.across, size=style.SMALL,
              across="center")  # fmt: skip
    return axes.bottom + FOOT


def _unbroken(line: Line) -> list[tuple[np.ndarray, np.ndarray]]:
    """The parts of a line that are numbers."""
    known = np.flatnonzero(np.isfinite(line.y))
    parts = np.split(known, np.flatnonzero(np.diff(known) > 1) + 1)
    return [(line.x[part], line.y[part]) for part in parts if len(part)]


def ends_of(plot: Plot) -> tuple[float, float, float, float]:
    """x and y, from where to where, with a little air above."""
    xs = np.concatenate([line.x for line in plot.lines])
    every = [end for line in plot.lines for end in (line.y, line.low, line.high) if end is not None]
    ys = np.concatenate([*every, [plot.least, plot.most]])
    ys = ys[np.isfinite(ys)]
    low, high = float(ys.min()), float(ys.max())
    air = 0.05 * (high - low) or 1.0
    wide = 0.03 * float(np.ptp(xs)) if plot.xs else 0.0
    down = air if low < plot.least else 0.0
    ends = float(xs.min()) - wide, float(xs.max()) + wide, low - down, high + air
    return around.asked(ends, plot.limits)


def _key(page: Page, chart: Plots, looks: dict[str, Look], base: float) -> None:
    """What every line is."""
    key = Key(page, 0.0, base)
    for label, how in looks.items():
        key.line(label, how)
    notes = [*([chart.ribbon] if chart.ribbon else []), *chart.notes]
    page.close(footnotes(page, notes, 0.0, key.base) + 5)
