"""Curves of what is lost as heads go, each over the band of random orders."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, dist

import numpy as np

from hgviz.figures.content.charts import Curves, Line, Many, Panel
from hgviz.figures.paper import axes as around
from hgviz.figures.paper import style
from hgviz.figures.paper.axes import Axes, Look, look
from hgviz.figures.paper.frame import footnotes, heading
from hgviz.figures.paper.key import SWATCH, Key
from hgviz.figures.paper.labels import elide
from hgviz.figures.paper.page import Page
from hgviz.figures.spec import Spec
from hgviz.palettes import LIGHT_PAGE

NARROWEST = 92.0  # of a panel, where there are many
ALONE, TOGETHER, HIGHEST = 0.62, 0.68, 180.0  # heights of panels, in widths and points
BETWEEN, ABOVE = 9.0, 11.0  # panels: across, and down for a title
FOOT, KEY = 24.0, 11.0  # numbers and name of the x axis; from there to the key
EACH_X, EACH_Y = 22.0, 16.0  # points of room that a number on an axis takes
NUMBER = 3.0  # half of the one at the top of the y axis
RING, SMALLER = 5.0, 2.1  # and each within another
SHADE = 0.13


def compose(page: Page, spec: Spec, chart: Curves) -> None:
    """Place the panels of a chart on the page, and below them what its lines are."""
    title = chart.title if spec.title is None else spec.title
    top = heading(page, title, chart.more if spec.title is None else "")
    top += 0.0 if any(panel.title for panel in chart.panels) else NUMBER
    labels = list(dict.fromkeys(line.label for panel in chart.panels for line in panel.lines))
    looks = {label: look(number) for number, label in enumerate(labels)}
    ends = around.asked(ends_of(chart), spec.display.limits)
    ys = around.numbered(*ends[2:], _height(page, chart), EACH_Y)
    left = max(style.extent(words, style.SMALL) for _, words in ys) + style.SMALL * 1.6 + 6
    boxes = _boxes(page, chart, left, top)
    for number, (panel, (x, y, width, height)) in enumerate(zip(chart.panels, boxes, strict=True)):
        axes = Axes(x, y, width, height, *ends)
        lowest = number + _columns(page, chart) >= len(chart.panels)
        _panel(page, chart, panel, axes, ys, looks, first=x == boxes[0][0], lowest=lowest)
    bottom = max(y + height for _, y, _, height in boxes)
    middle = (boxes[0][1] + bottom) / 2
    page.text(style.SMALL, middle, chart.up, size=style.SMALL, across="center", turned=True)
    page.text((left + page.width) / 2, bottom + FOOT - 4, chart.across, size=style.SMALL,
              across="center")  # fmt: skip
    _key(page, chart, looks, left, bottom + FOOT + KEY)


# --- where all lies -------------------------------------------------------------------------------


def _columns(page: Page, chart: Curves) -> int:
    """Panels beside each other, no row much shorter than the others."""
    most = max(1, int((page.width - 30) // NARROWEST))
    return ceil(len(chart.panels) / ceil(len(chart.panels) / most))


def _width(page: Page, chart: Curves, left: float) -> float:
    columns = _columns(page, chart)
    right = style.extent("100 %", style.SMALL) / 2 if chart.percent else 4.0
    return (page.width - left - right - BETWEEN * (columns - 1)) / columns


def _height(page: Page, chart: Curves) -> float:
    part = ALONE if _columns(page, chart) == 1 else TOGETHER
    high = min(part * _width(page, chart, 30), HIGHEST)
    alone = _columns(page, chart) >= len(chart.panels)  # in its row the axis has its name beside it
    return max(high, style.extent(chart.up, style.SMALL) + 4) if alone else high


def _boxes(
    page: Page, chart: Curves, left: float, top: float
) -> list[tuple[float, float, float, float]]:
    """Left, top, width and height of every panel."""
    columns, width = _columns(page, chart), _width(page, chart, left)
    height = _height(page, chart)
    titled = ABOVE if any(panel.title for panel in chart.panels) else 0.0
    return [
        (
            left + at % columns * (width + BETWEEN),
            top + titled + at // columns * (height + titled + BETWEEN),
            width,
            height,
        )
        for at in range(len(chart.panels))
    ]


def ends_of(chart: Curves) -> tuple[float, float, float, float]:
    """x and y, from where to where, with a little air above and below."""
    xs, ys = [np.zeros(1)], []
    for panel in chart.panels:
        if panel.band is not None:
            xs.append(panel.band.x)
            ys += [panel.band.low, panel.band.high]
        for line in panel.lines:
            xs.append(line.x)
            ys += [line.y, *(_interval(chart, panel, line) or ())]
    every = np.concatenate(ys)
    low, high = float(every.min()), float(every.max())
    air = 0.04 * (high - low) or 1.0
    across = np.concatenate(xs)
    if chart.timed:
        around = 0.04 * float(np.ptp(across[1:])) or 0.5
        return float(across[1:].min()) - around, float(across.max()) + around, low - air, high + air
    return 0.0, float(across.max()) or 1.0, low - air, high + air


def _interval(chart: Curves, panel: Panel, line: Line) -> tuple[Many, Many] | None:
    """The interval of a line that has its panel to itself; of several, none could be read."""
    if line.low is None or line.high is None or len(panel.lines) > 1 or chart.timed:
        return None
    return line.low, line.high


# --- what is drawn --------------------------------------------------------------------------------


def _panel(
    page: Page,
    chart: Curves,
    panel: Panel,
    axes: Axes,
    ys: list[tuple[float, str]],
    looks: dict[str, Look],
    first: bool,
    lowest: bool,
) -> None:
    if panel.band is not None:
        around.band(page, axes, panel.band)
    xs = [(value, words if lowest else "") for value, words in _across(chart, axes)]
    around.frame(page, axes, xs, ys, first)
    for line in panel.lines:
        if interval := _interval(chart, panel, line):
            around.ribbon(page, axes, line.x, *interval, looks[line.label].colour, SHADE)
    for line in panel.lines:
        around.line(page, axes, line.x, line.y, looks[line.label])
    _rings(page, axes, panel.lines, looks)
    if panel.title:
        _titled(page, chart, panel, axes)


def _across(chart: Curves, axes: Axes) -> list[tuple[float, str]]:
    """The numbers of the x axis: shares in per cent, heads that can be counted, or times."""
    if chart.percent:
        found = around.numbered(100 * axes.x0, 100 * axes.x1, axes.width, EACH_X)
        return [(value / 100, f"{words} %") for value, words in found]
    return around.numbered(axes.x0, axes.x1, axes.width, EACH_X, whole=not chart.timed)


def _titled(page: Page, chart: Curves, panel: Panel, axes: Axes) -> None:
    """The title of a panel, and at right what is marked in it, as much as there is room for."""
    words = elide(panel.title, axes.width, style.TEXT, bold=True)
    page.text(axes.left, axes.top - 3, words, bold=True)
    room = axes.width - style.extent(words, style.TEXT, bold=True) - 5
    marked = [line.marked for line in panel.lines if line.marked]
    for told in (", ".join(marked), marked[0].split(",")[0] if len(marked) == 1 else ""):
        said = f"{chart.mark} {told}"
        if told and style.extent(said, style.SMALL) <= room:
            page.text(axes.left + axes.width, axes.top - 3, said, size=style.SMALL, across="right",
                      colour=LIGHT_PAGE.secondary)  # fmt: skip
            break


def _rings(page: Page, axes: Axes, lines: Sequence[Line], looks: dict[str, Look]) -> None:
    """A ring around the point of each line that counts, within that of another that lies there."""
    rings = []
    for line in lines:
        if line.mark is not None and axes.y0 <= line.y[line.mark] <= axes.y1:
            at = slice(line.mark, line.mark + 1)
            rings.append((axes.at(line.x[at], line.y[at])[0], looks[line.label]))
    for number, (place, how) in enumerate(rings):
        around_ = sum(dist(place, other) < RING / 2 for other, _ in rings[:number])
        page.marks([place], "o", how.colour, max(1.0, RING - SMALLER * around_), hollow=True)


def _key(page: Page, chart: Curves, looks: dict[str, Look], left: float, y: float) -> None:
    """What every line, the band and the ring are."""
    key = Key(page, left, y)
    named = {} if len(looks) == len(chart.panels) > 1 else looks  # titles say it
    marks = {line.label: line.marked for panel in chart.panels for line in panel.lines}
    for label, how in named.items():
        alone = len(chart.panels) == 1 and marks[label]
        key.line(f"{label}: {chart.mark} {marks[label]}" if alone else label, how)
    if chart.banded:
        x, middle = key.entry(chart.banded)
        page.box(x, middle - 3.6, SWATCH - 4, 7, fill=LIGHT_PAGE.band)
        page.stroke([(x, middle), (x + SWATCH - 4, middle)], LIGHT_PAGE.band_line, 0.8)
    if chart.marked:
        x, middle = key.entry(f"{chart.mark}: {chart.marked}")
        page.marks([(x + SWATCH / 2 - 2, middle)], "o", LIGHT_PAGE.text, RING, hollow=True)
    page.close(footnotes(page, chart.notes, left, key.base) + 5)
