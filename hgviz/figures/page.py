"""The page of a figure: everything is placed in points, so a width asked for is that of the file.

x runs right and y runs down from the top left corner. On a page lie headings and notes, pairs of
axes for charts, and the key of their lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, log10
from typing import Any

import matplotlib.axes
import numpy as np
from matplotlib.artist import Artist
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch, Polygon, Rectangle
from matplotlib.path import Path as Outline
from numpy.typing import NDArray

from hgviz.figures.labels import (
    DOTS,
    LEAST,
    SMALL,
    TEXT,
    TITLE,
    Mark,
    elide,
    font,
    level_places,
    text_width,
    wrap,
)
from hgviz.figures.spec import POINTS
from hgviz.palettes import CATEGORICAL, LIGHT_PAGE, even_ticks

Many = NDArray[np.float64]
Points = Sequence[tuple[float, float]]
Boxes = NDArray[np.float64]  # (boxes, 4): left, top, right, bottom
Tick = tuple[float, str]

MIDDLE = 0.36  # of the size of a text: from its baseline up to the middle of its capitals
HATCH_GAP, HATCH_LINE = 3.2, 0.35
MOST_ACROSS = 3600  # dots of a PNG: 12 in; four times as many take 11 GB to draw
TITLE_LINES, LEADING = 3, 10.0
SWATCH = 12.0
ABOVE = 1000  # texts lie above all that is not text
GREY = LIGHT_PAGE.secondary


def dots_per_inch(width: float) -> float:
    """Dots per inch of a page so many points wide."""
    return min(float(DOTS), MOST_ACROSS * POINTS / width)


class Page:
    """A sheet to draw on.

    title: what stands in place of a figure's own title, "" for none, None for its own. notes: what
    its file must say about how it was drawn; smallest: the size of its smallest text, None before
    there is one.
    """

    def __init__(self, width: float, title: str | None = None) -> None:
        self.width, self.height = width, 0.0
        self._title = title
        self.notes: list[str] = []
        self.smallest: float | None = None
        self.figure = Figure(figsize=(width / POINTS, 1), dpi=POINTS)
        self.axes: matplotlib.axes.Axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set_axis_off()
        self.axes.set_autoscale_on(False)
        self._layer = 1.0

    def close(self, height: float) -> None:
        """Cut the sheet below the last thing drawn."""
        self.height = height
        self.figure.set_size_inches(self.width / POINTS, height / POINTS)
        self.axes.set(xlim=(0, self.width), ylim=(height, 0))

    def note(self, words: str) -> None:
        """Have the file say once how something was drawn."""
        if words not in self.notes:
            self.notes.append(words)

    # --- marks on the sheet -----------------------------------------------------------------------

    def text(
        self, x: float, y: float, words: str, *, size: float = TEXT, colour: Any = LIGHT_PAGE.text,
        across: str = "left", middle: bool = False, turned: bool = False, bold: bool = False,
        fixed: bool = False,
    ) -> None:  # fmt: skip
        """Draw a line of text on its baseline, or about the middle of its capitals.

        turned: read from below, x being its baseline or middle; across is then along y.
        """
        self.smallest = min(size, self.smallest or size)
        if middle and turned:
            x += MIDDLE * size
        elif middle:
            y += MIDDLE * size
        self.axes.text(
            x, y, words, color=colour, ha=across, va="baseline", rotation=90 if turned else 0,
            rotation_mode="anchor", parse_math=False, zorder=self._next() + ABOVE,
            fontproperties=font(size, bold, fixed),
        )  # fmt: skip

    def small(self, x: float, y: float, words: str, **more: Any) -> None:
        """Draw small text; more: as in text."""
        self.text(x, y, words, size=SMALL, **more)

    def caption(self, x: float, y: float, words: str, **more: Any) -> None:
        """Draw small grey text; more: as in text."""
        self.small(x, y, words, colour=GREY, **more)

    def bold(self, x: float, y: float, words: str, room: float) -> None:
        """Draw a bold line of text that takes no more room, such as the title of axes."""
        self.text(x, y, elide(words, room, TEXT, bold=True), bold=True)

    def box(
        self, x: float, y: float, width: float, height: float, *, fill: Any = None,
        edge: Any = None, line: float = 0.5,
    ) -> None:  # fmt: skip
        """Draw a rectangle, filled or framed."""
        look: Any = {"fc": fill or "none", "ec": edge or "none", "lw": line if edge else 0}
        self._add(Rectangle((x, y), width, height, joinstyle="miter", **look))

    def polygon(self, corners: Points, fill: Any, alpha: float = 1.0) -> None:
        """Fill an outline, without an edge."""
        self._add(Polygon(corners, facecolor=fill, edgecolor="none", linewidth=0, alpha=alpha))

    def lines(self, lines: Any, colour: Any, width: float = 0.5, alpha: float = 1.0) -> None:
        """Draw straight lines, each a sequence of points."""
        look = {"colors": colour, "linewidths": width, "alpha": alpha, "capstyle": "butt"}
        self._add(LineCollection(lines, **look))

    def curve(
        self, points: Points, colour: Any, width: float, alpha: float = 1.0,
        dash: tuple[float, ...] = (),
    ) -> None:  # fmt: skip
        """Draw a cubic curve: start, two control points, end; dash: dashes and gaps."""
        codes = [Outline.MOVETO, Outline.CURVE4, Outline.CURVE4, Outline.CURVE4]
        look = {"ls": (0, dash), "capstyle": "butt"} if dash else {"ls": "-", "capstyle": "round"}
        outline = Outline(np.array(points), codes)
        self._add(PathPatch(outline, fc="none", ec=colour, lw=width, alpha=alpha, **look))

    def stroke(
        self, points: Points, colour: Any, width: float, dash: tuple[float, ...] = ()
    ) -> None:
        """Draw a line through points; dash: dashes and gaps."""
        look: Any = {"color": colour, "lw": width, "ls": (0, dash) if dash else "-"}
        look |= {"solid_capstyle": "butt", "dash_capstyle": "butt", "solid_joinstyle": "round"}
        x, y = zip(*points, strict=True)
        self._add(Line2D(x, y, **look))

    def marks(
        self, points: Points, marker: str, colour: Any, size: float, hollow: bool = False,
        alpha: float = 1.0,
    ) -> None:  # fmt: skip
        """Draw a marker at each point; hollow: filled with the colour of paper."""
        if points:
            fill, edge = (LIGHT_PAGE.paper, 0.8) if hollow else (colour, 0.0)
            look: Any = {"mfc": fill, "mec": colour, "mew": edge, "alpha": alpha}
            x, y = zip(*points, strict=True)
            self._add(Line2D(x, y, linestyle="none", marker=marker, markersize=size, **look))

    def image(
        self, rgb: NDArray[np.uint8], x: float, y: float, width: float, height: float,
        cut: tuple[float, float] | None = None,
    ) -> None:  # fmt: skip
        """Draw a raster over a rectangle; cut: the width and height of it that are shown."""
        extent = x, x + width, y + height, y
        raster = AxesImage(self.axes, extent=extent, interpolation="none", origin="upper")
        raster.set_data(rgb)
        self._add(raster)
        if cut:
            raster.set_clip_path(Rectangle((x, y), *cut, transform=self.axes.transData))

    def hatch(
        self, x: float, y: float, width: float, height: float, boxes: Boxes | None = None
    ) -> None:
        """Draw thin diagonal lines over a rectangle; boxes: only inside these parts of it.

        Lines are cut here: a clip of a large map's outline takes some programs a minute.
        """
        edges = np.array([[x, y, x + width, y + height]])
        if boxes is not None:
            edges = np.clip(boxes, edges[0, [0, 1] * 2], edges[0, [2, 3] * 2])
        starts = np.arange(-height, width, HATCH_GAP)
        left, top, right, bottom = edges.T
        low = np.maximum(left - x - starts[:, None], y + height - bottom)
        high = np.minimum(right - x - starts[:, None], y + height - top)
        line, box = np.nonzero(high > low)
        if not len(line):
            return
        low, high = low[line, box], high[line, box]
        order = np.lexsort((low, line))
        line, low, high = line[order], low[order], high[order]
        apart = (np.diff(line) > 0) | (low[1:] > high[:-1] + 1e-6)  # boxes that touch share a line
        first = np.flatnonzero(np.r_[True, apart])
        start, low, high = x + starts[line[first]], low[first], np.maximum.reduceat(high, first)
        ends = [np.stack([start + at, y + height - at], -1) for at in (low, high)]
        self.lines(np.stack(ends, 1), LIGHT_PAGE.hatch, HATCH_LINE)

    def _add(self, artist: Artist) -> None:
        """Put an artist above all that was drawn before."""
        artist.set_zorder(self._next())
        self.axes.add_artist(artist)

    def _next(self) -> float:
        """What is drawn later lies above."""
        self._layer += 1e-3
        return self._layer

    # --- headings and notes -----------------------------------------------------------------------

    def heading(self, bold: str, plain: str = "") -> float:
        """Write the title of the page, if it has one, else these words in bold and in grey, in as
        many lines as it takes; returns where it ends."""
        if self._title is not None:
            bold, plain = self._title, ""
        if not bold:
            return 2.0
        y = TITLE
        lines = wrap(bold, self.width, TITLE, bold=True, most=TITLE_LINES)
        for number, line in enumerate(lines):
            y += LEADING if number else 0.0
            self.text(0, y, line, size=TITLE, bold=True)
        start = text_width(lines[-1], TITLE, bold=True) + 8
        rest = wrap(plain, self.width, TEXT, most=TITLE_LINES) if plain else []
        if len(rest) == 1 and start + text_width(rest[0], TEXT) <= self.width:
            self.text(start, y, rest[0], colour=GREY)
            rest = []
        for line in rest:
            y += LEADING
            self.text(0, y, line, colour=GREY)
        return y + 0.4 * TITLE + 4

    def legend(
        self, notes: Sequence[str], x: float, y: float, width: float, is_hatched: bool = True
    ) -> float:
        """Write notes below a figure, the first with a swatch of what is not seen; returns where
        they end."""
        start, base = x, y + 7
        if notes and notes[0]:
            self.box(x, base - 6, 9, 6.5, fill=LIGHT_PAGE.unseen)
            if is_hatched:
                self.hatch(x, base - 6, 9, 6.5)
            self.box(x, base - 6, 9, 6.5, edge=LIGHT_PAGE.line)
            start += SWATCH
        at = start
        for words in filter(None, notes):
            for number, part in enumerate(wrap(words, x + width - start, SMALL)):
                need = text_width(part, SMALL)
                if at > start and (number or at + need > x + width):
                    at, base = start, base + 9
                self.caption(at, base, part)
                at += need + 12
        return base + 2 if any(notes) else y

    def footnotes(self, notes: Sequence[str], x: float, y: float) -> float:
        """Write notes below a chart, each on as many lines as it takes; y and what is returned are
        baselines."""
        for note in notes:
            for line in wrap(note, self.width - x - 2, SMALL):
                y += LEADING
                self.caption(x, y, line)
        return y

    def off_card(self, x: float, y: float, width: float, height: float) -> None:
        """Draw what stands for a head that is switched off."""
        self.box(x, y, width, height, fill=LIGHT_PAGE.unseen)
        self.hatch(x, y, width, height)
        self.box(x, y, width, height, edge=GREY, line=0.8)
        size = min(TEXT, width / 2.2, height)
        if size >= LEAST:
            half, middle = text_width("off", size) / 2 + 1.5, (x + width / 2, y + height / 2)
            self.box(middle[0] - half, middle[1] - size * 0.6, 2 * half, size * 1.2,
                     fill=LIGHT_PAGE.unseen)  # fmt: skip
            self.text(*middle, "off", size=size, across="center", middle=True, colour=GREY)


def boxes_of(cells: NDArray[np.bool_], x: float, y: float, cell: tuple[float, float]) -> Boxes:
    """The boxes of the True cells of a grid of cells (width, height) from (x, y); none overlap."""
    boxes: list[NDArray[np.float64]] = []
    first = 0
    for row in range(1, len(cells) + 1):
        if row < len(cells) and np.array_equal(cells[row], cells[first]):
            continue  # equal rows share their boxes
        edges = np.flatnonzero(np.diff(cells[first].astype(np.int8), prepend=0, append=0))
        left, right = (x + edges.reshape(-1, 2) * cell[0]).T
        top, bottom = np.full(len(left), y + first * cell[1]), np.full(len(left), y + row * cell[1])
        boxes.append(np.stack([left, top, right, bottom], 1))
        first = row
    return np.concatenate([np.zeros((0, 4)), *boxes])


def draw_head_numbers(
    page: Page, left: float, pitch: float, count: int, y: float, gap: float
) -> None:
    """Draw the numbers of heads over columns from left on, as many as fit; gap: after "head"."""
    last = str(count - 1)
    is_full = text_width(f"head {last}", SMALL) + 4 <= pitch
    step = 1 if is_full else ceil((text_width(last, SMALL) + 3) / pitch)
    if not is_full:
        page.caption(left - gap, y, "head", across="right")
    for head in range(0, count, step):
        words = f"head {head}" if is_full else str(head)
        page.caption(left + (head + 0.5) * pitch, y, words, across="center")


LABEL_TICK, LABEL_GAP = 2.5, 6.5  # between a map and its labels


@dataclass(frozen=True, slots=True)
class AxisLabels:
    """The text of one axis: marks, the size of their words, and for words that are written level
    over an axis where their middles lie."""

    marks: list[Mark]
    size: float
    places: list[float] | None = None

    @property
    def depth(self) -> float:
        """What the words take across their axis."""
        if self.places is not None:
            return self.size
        widths = (text_width(mark.words, self.size, mark.bold) for mark in self.marks)
        return max(widths, default=0)

    def levelled(self, cell: float, length: float) -> AxisLabels:
        """The same, level where they fit over an axis of such cells."""
        return replace(self, places=level_places(self.marks, cell, length, self.size))

    def draw_down(self, page: Page, x: float, y: float, cell: float) -> None:
        """Draw them left of an axis that runs down from (x, y)."""
        for mark in self.marks:
            middle = y + mark.middle * cell
            page.lines([[(x - LABEL_TICK, middle), (x, middle)]], LIGHT_PAGE.line)
            self._draw(page, mark, x - LABEL_GAP, middle, across="right", middle=True)

    def draw_across(
        self, page: Page, x: float, y: float, cell: float, is_below: bool = False
    ) -> None:
        """Draw them over, or below, an axis that runs from (x, y), turned unless they are level."""
        turned = self.places is None
        places = self.places or [mark.middle * cell for mark in self.marks]
        tick, base, side = (y - LABEL_TICK, y), y - LABEL_GAP, "left"
        if is_below:
            tick, base, side = (y, y + 2), y + 3 + (0 if turned else self.size), "right"
        look = {"across": side if turned else "center", "turned": turned, "middle": turned}
        for mark, place in zip(self.marks, places, strict=True):
            middle = x + mark.middle * cell
            page.lines([[(middle, end) for end in tick]], LIGHT_PAGE.line)
            self._draw(page, mark, x + place, base, **look)

    def _draw(self, page: Page, mark: Mark, x: float, y: float, **more: Any) -> None:
        ink = LIGHT_PAGE.mark_text if mark.chosen else LIGHT_PAGE.text
        page.text(x, y, mark.words, size=self.size, bold=mark.bold, colour=ink, **more)


MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h")
DASHES: tuple[tuple[float, ...], ...] = (
    (), (4, 1.6), (1.2, 1.4), (5, 1.4, 1.2, 1.4), (5, 1.3, 1.2, 1.3, 1.2, 1.3),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LineStyle:
    """What sets a line apart from others: colour, marker and dashes, never colour alone."""

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


TICK, GAP = 2.5, 3.0
MARKER_DISTANCE = 34.0  # points between two markers of a line, at least
NAME_PITCH, SMALLEST_NAME, LONGEST_NAME = 1.12, 5.0, 120.0  # in sizes; in points


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
        """One datum as a point of the page."""
        return self.points(np.array([x]), np.array([y]))[0]

    def contains(self, y: Many) -> NDArray[np.bool_]:
        """Whether values lie between y0 and y1."""
        return np.asarray((y >= self.y0) & (y <= self.y1), bool)

    def draw_frame(self, xs: Sequence[Tick], ys: Sequence[Tick], numbered: bool = True) -> None:
        """Draw the x axis with its ticks, level lines at ys, and the words of all of them; those
        of ys only if numbered."""
        right = self.left + self.width
        for value, words in ys:
            y = self.point(self.x0, value)[1]
            self.page.lines([[(self.left, y), (right, y)]], LIGHT_PAGE.line, 0.4)
            if numbered:
                self.page.caption(self.left - GAP, y, words, across="right", middle=True)
        self.page.lines([[(self.left, self.bottom), (right, self.bottom)]], GREY, 0.6)
        for value, words in xs:
            x = self.point(value, self.y0)[0]
            self.page.lines([[(x, self.bottom), (x, self.bottom + TICK)]], GREY)
            if words:
                self.page.caption(x, self.bottom + TICK + 7, words, across="center")

    def draw_names(self, names: Sequence[str]) -> float:
        """Draw names below 0, 1, 2 ..., turned where they are too close; returns their depth."""
        size, step, base = SMALL, 1, self.bottom + TICK
        look: Any = {"across": "center"}
        is_level = max(text_width(name, SMALL) for name in names) + 3 <= self.unit
        if not is_level:
            size = min(size, max(SMALLEST_NAME, self.unit / NAME_PITCH))
            step = max(1, ceil(NAME_PITCH * size / self.unit - 0.01))
            look = {"across": "right", "turned": True, "middle": True}
        names = [elide(name, LONGEST_NAME, size) for name in names]
        for number in range(0, len(names), step):
            x = self.point(number, self.y0)[0]
            self.page.lines([[(x, self.bottom), (x, base)]], GREY)
            self.page.text(x, base + (7 if is_level else 2), names[number], size=size, **look)
        return TICK + (8 if is_level else max(text_width(name, size) for name in names) + 3)

    def draw_y_label(self, words: str, x: float = 0.0) -> None:
        """Draw the name of the y axis along it; x: the left end of its room."""
        middle = self.top + self.height / 2
        self.page.text(x + SMALL, middle, words, size=SMALL, across="center", turned=True)

    def draw_zero(self) -> None:
        """Draw a line at y = 0, if it is seen."""
        if self.y0 < 0 < self.y1:
            self.page.stroke(self.points(np.array([self.x0, self.x1]), np.zeros(2)), GREY, 0.6)

    def draw_line(self, x: Many, y: Many, look: LineStyle, offset: float = 0.5) -> None:
        """Draw a line as far as the axes go, with markers at some of its points; offset: where
        between two of these the first is."""
        self.draw_stroke(x, y, look.colour, 1.1, look.dash)
        step = max(1, round(len(x) * MARKER_DISTANCE / max(self.width, 1)))
        marked = np.arange(len(x))[int(step * offset) :: step]
        marked = marked[self.contains(y[marked])]
        self.page.marks(self.points(x[marked], y[marked]), look.marker, look.colour, 3.0)

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
        at = np.arange(len(y))
        with np.errstate(all="ignore"):
            cuts = [(edge - y[:-1]) / np.diff(y) for edge in (self.y0, self.y1)]
        cuts = [(at[:-1] + cut)[(cut > 0) & (cut < 1)] for cut in cuts]
        places = np.unique(np.concatenate([at, *cuts]))
        x, y = np.interp(places, at, x), np.interp(places, at, y)
        is_inside = self.contains((y[1:] + y[:-1]) / 2)
        ends = np.flatnonzero(np.diff(is_inside.astype(int), prepend=0, append=0)).reshape(-1, 2)
        return [(x[first : last + 1], y[first : last + 1]) for first, last in ends.tolist()]


def round_ticks(
    low: float, high: float, room: float, spacing: float, whole: bool = False
) -> list[Tick]:
    """Round numbers from low to high, as many as have `spacing` points of room, with all their
    digits; whole: only whole numbers."""
    values = even_ticks(low, high, max(2, int(room // spacing)))
    if whole:
        values = [value for value in values if abs(value - round(value)) < 1e-9]
    hair, digits = 1e-6 * max(high - low, 1e-300), 0
    while digits < 12 and any(abs(round(value, digits) - value) >= hair for value in values):
        digits += 1
    return [(value, f"{value + 0.0:.{digits}f}".replace("-", "−")) for value in values]


def power_ticks(low: float, high: float) -> list[Tick]:
    """Ticks of a logarithmic axis from 10^low to 10^high at 1, 10, 100 ..., of a short axis also
    at 2, 5, 20 ..."""
    ticks = []
    for power in range(floor(low), ceil(high) + 1):
        for step in (1, 2, 5) if high - low <= 2 else (1,):
            place = power + log10(step)
            if low <= place <= high:
                words = f"{step * 10.0**power:g}" if power >= -3 else f"{step}e−{-power}"
                ticks.append((place, words))
    return ticks


def label_room(ticks: Sequence[Tick]) -> float:
    """Points left of a y axis that its numbers and its name take."""
    return max((text_width(words, SMALL) for _, words in ticks), default=0.0) + 1.6 * SMALL + 6


LINE_SAMPLE, MARK_SAMPLE = 20.0, 12.0  # the room of a sample in a key


class Key:
    """What the lines, marks and bands of a chart are: entries side by side from left on, on as
    many lines as they take; base is the baseline of the last line."""

    def __init__(self, page: Page, left: float, base: float) -> None:
        self.base = base
        self._page, self._left, self._x = page, left, left

    def add(
        self, words: str, sample: float = LINE_SAMPLE, colour: str = LIGHT_PAGE.text
    ) -> tuple[float, float]:
        """Write an entry; returns where its sample begins, and the middle of its line."""
        lines = wrap(words, self._page.width - 2 - self._left - sample, SMALL)
        need = sample + max(text_width(line, SMALL) for line in lines)
        if self._x > self._left and self._x + need > self._page.width - 2:
            self._x, self.base = self._left, self.base + LEADING
        start, middle = self._x, self.base - 2.4
        for number, line in enumerate(lines):
            self.base += LEADING if number else 0.0
            self._page.text(start + sample, self.base, line, size=SMALL, colour=colour)
        self._x += need + 12 if len(lines) == 1 else self._page.width
        return start, middle

    def add_line(self, words: str, look: LineStyle, width: float = 1.1) -> None:
        """Say what a line with markers is."""
        x, y = self.add(words)
        self._page.stroke([(x, y), (x + LINE_SAMPLE - 4, y)], look.colour, width, look.dash)
        self._page.marks([(x + LINE_SAMPLE / 2 - 2, y)], look.marker, look.colour, 3.0)

    def add_mark(self, words: str, look: LineStyle, size: float, hollow: bool = False) -> None:
        """Say what a marker is."""
        x, y = self.add(words, MARK_SAMPLE)
        self._page.marks([(x + 4, y)], look.marker, look.colour, size, hollow)
