"""A pair of axes on a page, what is drawn between them, and the key below a chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, isfinite, log10

import numpy as np
from numpy.typing import NDArray

from hgviz.figures.paper import style
from hgviz.figures.paper.labels import elide, wrapped
from hgviz.figures.paper.page import Page, Points
from hgviz.palettes import CATEGORICAL, LIGHT_PAGE, even_ticks

Many = NDArray[np.float64]
Tick = tuple[float, str]

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h")
DASHES: tuple[tuple[float, ...], ...] = (
    (), (4, 1.6), (1.2, 1.4), (5, 1.4, 1.2, 1.4), (5, 1.3, 1.2, 1.3, 1.2, 1.3),
)  # fmt: skip
TICK, GAP = 2.5, 3.0
MARKER_DISTANCE = 34.0  # points between two markers of a line, at least
NAME_PITCH, SMALLEST_NAME, LONGEST_NAME = 1.12, 5.0, 120.0  # in sizes; in points
LINE_SAMPLE, MARK_SAMPLE = 20.0, 12.0  # the room of a sample in a key
LEADING = 10.0


@dataclass(frozen=True, slots=True)
class LineStyle:
    """How a line is told from others: colour, marker and dashes, never by colour alone."""

    colour: str
    marker: str
    dash: tuple[float, ...]


def line_style(number: int) -> LineStyle:
    """The style of line 0, 1, 2 ...; no two of the first 77 are alike."""
    return LineStyle(
        CATEGORICAL[number % len(CATEGORICAL)],
        MARKERS[number % len(MARKERS)],
        DASHES[number % len(DASHES)],
    )


@dataclass(frozen=True, slots=True, eq=False)
class Axes:
    """Data from (x0, y0) to (x1, y1) in a box on a page, in points from its corner (left, top)."""

    page: Page
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
        """Where the x axis lies, in points."""
        return self.top + self.height

    @property
    def unit(self) -> float:
        """Points of one along x."""
        return self.width / ((self.x1 - self.x0) or 1)

    def points(self, x: Many, y: Many) -> Points:
        """Data as points of the page."""
        across = self.left + (np.asarray(x) - self.x0) / ((self.x1 - self.x0) or 1) * self.width
        up = self.bottom - (np.asarray(y) - self.y0) / ((self.y1 - self.y0) or 1) * self.height
        return list(zip(across.tolist(), up.tolist(), strict=True))

    def point(self, x: float, y: float) -> tuple[float, float]:
        """One of them."""
        return self.points(np.array([x]), np.array([y]))[0]

    def contains(self, y: Many) -> NDArray[np.bool_]:
        """Whether values lie between y0 and y1."""
        inside: NDArray[np.bool_] = (y >= self.y0) & (y <= self.y1)
        return inside

    def draw_frame(self, xs: Sequence[Tick], ys: Sequence[Tick], numbered: bool = True) -> None:
        """Draw the x axis with its ticks, level lines at ys, and the words of all of them; those
        of ys only if numbered."""
        right, grey = self.left + self.width, LIGHT_PAGE.secondary
        for value, words in ys:
            y = self.point(self.x0, value)[1]
            self.page.lines([[(self.left, y), (right, y)]], LIGHT_PAGE.line, 0.4)
            if numbered:
                self.page.text(
                    self.left - GAP, y, words, size=style.SMALL, across="right", middle=True,
                    colour=grey,
                )  # fmt: skip
        self.page.lines([[(self.left, self.bottom), (right, self.bottom)]], grey, 0.6)
        for value, words in xs:
            x = self.point(value, self.y0)[0]
            self.page.lines([[(x, self.bottom), (x, self.bottom + TICK)]], grey)
            if words:
                self.page.text(
                    x, self.bottom + TICK + 7, words, size=style.SMALL, across="center",
                    colour=grey,
                )  # fmt: skip

    def draw_names(self, names: Sequence[str]) -> float:
        """Draw names below 0, 1, 2 ..., turned where they are too close; returns their depth."""
        is_level = max(style.extent(name, style.SMALL) for name in names) + 3 <= self.unit
        size = style.SMALL
        if not is_level:
            size = min(size, max(SMALLEST_NAME, self.unit / NAME_PITCH))
        step = 1 if is_level else max(1, ceil(NAME_PITCH * size / self.unit - 0.01))
        names = [elide(name, LONGEST_NAME, size) for name in names]
        for number in range(0, len(names), step):
            x = self.point(number, self.y0)[0]
            self.page.lines([[(x, self.bottom), (x, self.bottom + TICK)]], LIGHT_PAGE.secondary)
            self.page.text(
                x, self.bottom + TICK + (7 if is_level else 2), names[number], size=size,
                across="center" if is_level else "right", turned=not is_level,
                middle=not is_level,
            )  # fmt: skip
        return TICK + (8 if is_level else max(style.extent(name, size) for name in names) + 3)

    def draw_y_label(self, words: str, x: float = 0.0) -> None:
        """Draw the name of the y axis along it; x: the left end of its room."""
        middle = self.top + self.height / 2
        self.page.text(
            x + style.SMALL, middle, words, size=style.SMALL, across="center", turned=True
        )

    def draw_zero(self) -> None:
        """Draw a line at y = 0, if it is seen."""
        if self.y0 < 0 < self.y1:
            ends = self.points(np.array([self.x0, self.x1]), np.zeros(2))
            self.page.stroke(ends, LIGHT_PAGE.secondary, 0.6)

    def draw_line(self, x: Many, y: Many, how: LineStyle, offset: float = 0.5) -> None:
        """Draw a line as far as the axes go, with markers at some of its points; offset: where
        between two of these the first is."""
        self.draw_stroke(x, y, how.colour, 1.1, how.dash)
        step = max(1, round(len(x) * MARKER_DISTANCE / max(self.width, 1)))
        marked = np.arange(len(x))[int(step * offset) :: step]
        marked = marked[self.contains(y[marked])]
        self.page.marks(self.points(x[marked], y[marked]), how.marker, how.colour, 3.0)

    def draw_stroke(
        self, x: Many, y: Many, colour: str, width: float, dash: tuple[float, ...] = ()
    ) -> None:
        """Draw a line without markers as far as the axes go."""
        for part in self._inside(x, y):
            self.page.stroke(self.points(*part), colour, width, dash)

    def draw_ribbon(self, x: Many, low: Many, high: Many, colour: str, alpha: float) -> None:
        """Fill between two lines as far as the axes go."""
        if min(low.min(), high.min()) < self.y0 or max(low.max(), high.max()) > self.y1:
            ends = [xs for end in (low, high) for xs, _ in self._inside(x, end)]
            cut = np.unique(np.concatenate([x, *ends]))  # also where an end leaves the axes
            low, high = (np.clip(np.interp(cut, x, end), self.y0, self.y1) for end in (low, high))
            x = cut
        self.page.polygon([*self.points(x, low), *reversed(self.points(x, high))], colour, alpha)

    def _inside(self, x: Many, y: Many) -> list[tuple[Many, Many]]:
        """The parts of a line between y0 and y1, cut where it leaves."""
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
        return [(np.array(part)[:, 0], np.array(part)[:, 1]) for part in parts if part]


# --- ticks ----------------------------------------------------------------------------------------


def round_ticks(
    low: float, high: float, room: float, spacing: float, whole: bool = False
) -> list[Tick]:
    """Round numbers from low to high, as many as have `spacing` points of room, with all their
    digits; whole: only whole numbers."""
    values = even_ticks(low, high, max(2, int(room // spacing)))
    if whole:
        values = [value for value in values if abs(value - round(value)) < 1e-9]
    span = max(high - low, 1e-300)

    def are_whole(digits: int) -> bool:
        return all(abs(round(value, digits) - value) < 1e-6 * span for value in values)

    digits = next((digits for digits in range(12) if are_whole(digits)), 12)
    return [(value, f"{value + 0.0:.{digits}f}".replace("-", "−")) for value in values]


def power_ticks(low: float, high: float) -> list[Tick]:
    """Ticks of a logarithmic axis from 10^low to 10^high at 1, 10, 100 ..., of a short axis also
    at 2, 5, 20 ..."""
    steps = (1, 2, 5) if high - low <= 2 else (1,)
    ticks = []
    for power in range(floor(low), ceil(high) + 1):
        for step in steps:
            place = power + log10(step)
            if low <= place <= high:
                words = f"{step * 10.0**power:g}" if power >= -3 else f"{step}e−{-power}"
                ticks.append((place, words))
    return ticks


def label_room(ticks: Sequence[Tick]) -> float:
    """Points left of a y axis that its numbers and its name take."""
    widest = max((style.extent(words, style.SMALL) for _, words in ticks), default=0.0)
    return widest + 1.6 * style.SMALL + 6


# --- the key --------------------------------------------------------------------------------------


class Key:
    """What the lines, marks and bands of a chart are: entries side by side from left on, on as
    many lines as they take; base is the baseline of the last one."""

    def __init__(self, page: Page, left: float, base: float) -> None:
        self.base = base
        self._page, self._left, self._x = page, left, left

    def add(
        self, words: str, sample: float = LINE_SAMPLE, colour: str = LIGHT_PAGE.text
    ) -> tuple[float, float]:
        """Write an entry; returns where its sample begins, and the middle of its line."""
        room = self._page.width - 2 - self._left - sample
        lines = wrapped(words, room, style.SMALL)
        need = sample + max(style.extent(line, style.SMALL) for line in lines)
        if self._x > self._left and self._x + need > self._page.width - 2:
            self._x, self.base = self._left, self.base + LEADING
        start, middle = self._x, self.base - 2.4
        for number, line in enumerate(lines):
            self.base += LEADING if number else 0.0
            self._page.text(start + sample, self.base, line, size=style.SMALL, colour=colour)
        self._x += need + 12 if len(lines) == 1 else self._page.width
        return start, middle

    def add_line(self, words: str, how: LineStyle, width: float = 1.1) -> None:
        """Say what a line with markers is."""
        x, y = self.add(words)
        self._page.stroke([(x, y), (x + LINE_SAMPLE - 4, y)], how.colour, width, how.dash)
        self._page.marks([(x + LINE_SAMPLE / 2 - 2, y)], how.marker, how.colour, 3.0)

    def add_mark(self, words: str, how: LineStyle, size: float, hollow: bool = False) -> None:
        """Say what a marker is."""
        x, y = self.add(words, MARK_SAMPLE)
        self._page.marks([(x + 4, y)], how.marker, how.colour, size, hollow)
