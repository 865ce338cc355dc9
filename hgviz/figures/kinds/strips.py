"""Metrics of all heads, one strip each: every head a dot, A above B, their means with intervals."""

from __future__ import annotations

import numpy as np

from hgviz.figures.content.charts import Many
from hgviz.figures.content.laboratory import Strip, Strips, Triple
from hgviz.figures.paper import axes as around
from hgviz.figures.paper import style
from hgviz.figures.paper.axes import look
from hgviz.figures.paper.frame import footnotes, heading
from hgviz.figures.paper.labels import elide
from hgviz.figures.paper.page import Page
from hgviz.figures.spec import Spec
from hgviz.language import number
from hgviz.palettes import LIGHT_PAGE

LANE, BETWEEN = 11.0, 26.0
NAME, VALUE = 0.27, 62.0  # of the page's width, and points
DOT, MEAN = 3.6, 7.0
EACH_X = 34.0


def compose(page: Page, spec: Spec, chart: Strips) -> None:
    """Place the strips below each other."""
    top = heading(page, chart.title if spec.title is None else spec.title,
                  chart.more if spec.title is None else "")  # fmt: skip
    left = min(NAME * page.width, 120.0)
    right = page.width - VALUE
    page.text(right + 8, top + 4, "mean", size=style.SMALL, colour=LIGHT_PAGE.secondary)
    y = top + 10
    for strip in chart.strips:
        _strip(page, strip, left, right, y)
        y += 2 * LANE + BETWEEN
    _key(page, chart, y + 2)


def _strip(page: Page, strip: Strip, left: float, right: float, y: float) -> None:
    """One metric: its name, an axis of its own, two lanes of dots."""
    known = np.concatenate([*strip.heads, *np.array(strip.means)])
    known = known[np.isfinite(known)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    low, high = min(low, 0.0), max(high, 1e-12)
    air = 0.03 * (high - low)
    low, high = (low - air if low < 0 else low), high + air
    width, bottom = right - left, y + 2 * LANE

    def place(value: float) -> float:
        return left + (value - low) / (high - low) * width

    page.text(0, y + LANE - 1, elide(strip.label, left - 6, style.TEXT), size=style.TEXT)
    if strip.unit:
        page.text(0, y + LANE + 8, strip.unit, size=style.SMALL, colour=LIGHT_PAGE.secondary)
    for value, words in around.numbered(low, high, width, EACH_X):
        x = place(value)
        page.lines([[(x, y), (x, bottom)]], LIGHT_PAGE.line, 0.4)
        page.text(x, bottom + 8, words, size=style.SMALL, across="center",
                  colour=LIGHT_PAGE.secondary)  # fmt: skip
    page.lines([[(left, bottom), (right, bottom)]], LIGHT_PAGE.secondary, 0.6)
    for model, (heads, mean) in enumerate(zip(strip.heads, strip.means, strict=True)):
        middle = y + (model + 0.5) * LANE
        _lane(page, model, heads, mean, place, middle)
        page.marks([(right + 11, middle)], look(model).marker, look(model).colour, DOT)
        page.text(right + 17, middle, number(mean[0]), size=style.SMALL, middle=True)


def _lane(page: Page, model: int, heads: Many, mean: Triple, place: object, middle: float) -> None:
    """The heads of one model as hollow marks, their mean as a filled bar with its interval."""
    assert callable(place)
    how = look(model)
    points = [(place(float(one)), middle) for one in heads if np.isfinite(one)]
    page.marks(points, how.marker, how.colour, DOT, hollow=True)
    value, low, high = mean
    if np.isfinite(value):
        x = place(value)
        page.lines([[(x, middle - MEAN / 1.4), (x, middle + MEAN / 1.4)]], how.colour, 1.8)
    if np.isfinite(low) and np.isfinite(high):
        page.lines([[(place(low), middle), (place(high), middle)]], how.colour, 1.8)


def _key(page: Page, chart: Strips, base: float) -> None:
    at = 0.0
    for model, name in enumerate(chart.names):
        how = look(model)
        words = elide(name, page.width / 2 - 20, style.SMALL)
        page.marks([(at + 4, base - 2.4)], how.marker, how.colour, DOT, hollow=True)
        page.text(at + 12, base, words, size=style.SMALL)
        at += 12 + style.extent(words, style.SMALL) + 14
    page.close(footnotes(page, chart.notes, 0.0, base) + 5)
