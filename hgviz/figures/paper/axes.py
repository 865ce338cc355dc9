"""A pair of axes on a page: quiet lines, round numbers, and what is drawn between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, isfinite, log10

import numpy as np

from hgviz.figures.content.charts import Band, Many
from hgviz.figures.paper import style
from hgviz.figures.paper.labels import elide
from hgviz.figures.paper.page import Page, Points
from hgviz.palettes import CATEGORICAL, LIGHT_PAGE, even_ticks

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h")
DASHES: tuple[tuple[float, ...], ...] = (
    (), (4, 1.6), (1.2, 1.4), (5, 1.4, 1.2, 1.4), (5, 1.3, 1.2, 1.3, 1.2, 1.3),
)  # fmt: skip
TICK, GAP = 2.5, 3.0
APART = 34.0  # points between two markers of a line, at least
PITCH = 1.12  # of names beside each other, in sizes
SMALLEST = 5.0  # of a name
LONGEST = 120.0  # points that a name takes


@dataclass(frozen=True, slots=True)
class Look:
    """How a line is told from others: colour, marker and dashes, never by colour alone."""

    colour: str
    marker: str
    dash: tuple[float, ...]


def look(number: int) -> Look:
    """The look of line number 0, 1, 2 ...; no two of the first 77 are alike."""
    return Look(
        CATEGORICAL[number % len(CATEGORICAL)],
        MARKERS[number % len(MARKERS)],
        DASHES[number % len(DASHES)],
    )


@dataclass(frozen=True, slots=True)
class Axes:
    """Data from (x0, y0) to (x1, y1) in a box of points from the corner (left, top)."""

    left: float
    top: float
    width: float
    height: float
    x0: float
    x1: float
    y0: float
    y1: float

    @property
    def bottom(self) -> float:
        """Where the x axis lies."""
        return self.top + self.height

    def at(self, x: Many, y: Many) -> Points:
        """Where data lie on the page."""
        across = self.left + (np.asarray(x) - self.x0) / ((self.x1 - self.x0) or 1) * self.width
        up = self.bottom - (np.asarray(y) - self.y0) / ((self.y1 - self.y0) or 1) * self.height
        return list(zip(across.tolist(), up.tolist(), strict=True))

    def inside(self, x: Many, y: Many) -> list[tuple[Many, Many]]:
        """The parts of a line that lie between y0 and y1, cut where it leaves."""
        if not ((y < self.y0) | (y > self.y1)).any():
            return [(x, y)]
        parts: list[list[tuple[float, float]]] = [[]]
        for (x0, y0), (x1, y1) in pairwise(zip(x.tolist(), y.tolist(), strict=True)):
            rise = y1 - y0
            if not isfinite(rise) or (not rise and not self.y0 <= y0 <= self.y1):
                continue
            ends = sorted((edge - y0) / rise for edge in (self.y0, self.y1)) if rise else [0.0, 1.0]
            first, last = max(ends[0], 0.0), min(ends[1], 1.0)
            if first >= last:
                continue
            if first > 0 or not parts[-1]:
                parts.append([(x0 + first * (x1 - x0), y0 + first * rise)])
            parts[-1].append((x0 + last * (x1 - x0), y0 + last * rise))
            if last < 1:
                parts.append([])
        return [(np.array(one)[:, 0], np.array(one)[:, 1]) for one in parts if one]


def asked(
    ends: tuple[float, float, float, float], limits: tuple[float, float] | None
) -> tuple[float, float, float, float]:
    """The ends of axes, those of y as they are asked for."""
    return ends if limits is None else (*ends[:2], *limits)


def frame(
    page: Page,
    axes: Axes,
    xs: Sequence[tuple[float, str]],
    ys: Sequence[tuple[float, str]],
    numbered: bool,
) -> None:
    """Level lines at ys and ticks at xs, with what stands beside them; ys only if numbered."""
    for value, words in ys:
        _, y = axes.at(np.array([axes.x0]), np.array([value]))[0]
        page.lines([[(axes.left, y), (axes.left + axes.width, y)]], LIGHT_PAGE.line, 0.4)
        if numbered:
            page.text(axes.left - GAP, y, words, size=style.SMALL, across="right", middle=True,
                      colour=LIGHT_PAGE.secondary)  # fmt: skip
    right = axes.left + axes.width
    page.lines([[(axes.left, axes.bottom), (right, axes.bottom)]], LIGHT_PAGE.secondary, 0.6)
    for value, words in xs:
        x, _ = axes.at(np.array([value]), np.array([axes.y0]))[0]
        page.lines([[(x, axes.bottom), (x, axes.bottom + TICK)]], LIGHT_PAGE.secondary)
        if words:
            page.text(x, axes.bottom + TICK + 7, words, size=style.SMALL, across="center",
                      colour=LIGHT_PAGE.secondary)  # fmt: skip


def band(page: Page, axes: Axes, one: Band) -> None:
    """Where most of many lines lie, and their middle."""
    ribbon(page, axes, one.x, one.low, one.high, LIGHT_PAGE.band, 1.0)
    for part in axes.inside(one.x, one.middle):
        page.stroke(axes.at(*part), LIGHT_PAGE.band_line, 0.8)


def ribbon(
    page: Page, axes: Axes, x: Many, low: Many, high: Many, colour: str, alpha: float
) -> None:
    """The room between two lines, as far as the axes go."""
    if min(low.min(), high.min()) < axes.y0 or max(low.max(), high.max()) > axes.y1:
        ends = [one for end in (low, high) for one, _ in axes.inside(x, end)]
        all_ = np.unique(np.concatenate([x, *ends]))  # where an end leaves the axes too
        low, high = (np.clip(np.interp(all_, x, end), axes.y0, axes.y1) for end in (low, high))
        x = all_
    page.polygon([*axes.at(x, low), *reversed(axes.at(x, high))], colour, alpha)


def line(page: Page, axes: Axes, x: Many, y: Many, how: Look, first: float = 0.5) -> None:
    """A line as far as the axes go, with markers at some of its points; first: where between two
    of them it begins.
    """
    for part in axes.inside(x, y):
        page.stroke(axes.at(*part), how.colour, 1.1, how.dash)
    every = max(1, round(len(x) * APART / max(axes.width, 1)))
    marked = np.arange(len(x))[int(every * first) :: every]
    marked = marked[(y[marked] >= axes.y0) & (y[marked] <= axes.y1)]
    page.marks(axes.at(x[marked], y[marked]), how.marker, how.colour, 3.0)


def names(page: Page, axes: Axes, words: Sequence[str]) -> float:
    """Names below 0, 1, 2 ... of the axis, turned where they are too close; gives how deep they
    reach."""
    pitch = axes.width / (axes.x1 - axes.x0)
    flat = max(style.extent(name, style.SMALL) for name in words) + 3 <= pitch
    size = style.SMALL if flat else min(style.SMALL, max(SMALLEST, pitch / PITCH))
    every = 1 if flat else max(1, ceil(PITCH * size / pitch - 0.01))
    shown = [elide(name, LONGEST, size) for name in words]
    for number in range(0, len(words), every):
        x, _ = axes.at(np.array([float(number)]), np.array([axes.y0]))[0]
        page.lines([[(x, axes.bottom), (x, axes.bottom + TICK)]], LIGHT_PAGE.secondary)
        page.text(
            x, axes.bottom + TICK + (7 if flat else 2), shown[number], size=size,
            across="center" if flat else "right", turned=not flat, middle=not flat,
        )  # fmt: skip
    return TICK + (8 if flat else max(style.extent(name, size) for name in shown) + 3)


def numbered(
    low: float, high: float, room: float, each: float, whole: bool = False
) -> list[tuple[float, str]]:
    """Round numbers from low to high, so many as have `each` points of room, with all the digits
    they have; whole: only numbers that something can be counted by.
    """
    found = even_ticks(low, high, max(2, int(room // each)))
    if whole:
        found = [value for value in found if abs(value - round(value)) < 1e-9]
    span = max(high - low, 1e-300)
    digits = next(
        (
            count
            for count in range(12)
            if all(abs(round(value, count) - value) < 1e-6 * span for value in found)
        ),
        12,
    )
    return [(value, f"{value + 0.0:.{digits}f}".replace("-", "−")) for value in found]


def powers(low: float, high: float) -> list[tuple[float, str]]:
    """Ticks of a logarithmic axis from 10^low to 10^high, at their powers: 1, 10, 100 ..., of an
    axis of few also 2, 5, 20 ..."""
    steps = (1, 2, 5) if high - low <= 2 else (1,)
    found = []
    for power in range(floor(low), ceil(high) + 1):
        for step in steps:
            at = power + log10(step)
            if low <= at <= high:
                words = f"{step * 10.0**power:g}" if power >= -3 else f"{step}e−{-power}"
                found.append((at, words))
    return found
