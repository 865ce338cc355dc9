"""Charts by pyqtgraph: lines, bands, points, intervals."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from html import escape
from typing import Any, Literal

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QShowEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QLabel, QRubberBand, QSizePolicy, QWidget

from hgviz.gui import theme
from hgviz.gui.ink import CellCard, focus_ring
from hgviz.gui.language import tr
from hgviz.gui.theme import faint
from hgviz.gui.view import View
from hgviz.gui.widgets import RETURN_KEYS
from hgviz.palettes import CATEGORICAL, CATEGORICAL_DARK, even_ticks

# --- plots ----------------------------------------------------------------------------------------


Values = Sequence[float] | np.ndarray
Colour = str | int  # a colour of the theme by name, or the number of a series
Direction = Literal["x", "y"]


def number(value: float) -> str:
    """87.5, −1.25, 12,000: a number on an axis."""
    return f"{value:,.4g}".replace("-", "−") if value else "0"


def count(value: float) -> str:
    """0, 500, 6k, 1.5M: a count on an axis."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def percent(value: float) -> str:
    """58 %, 57.5 %: a share on an axis."""
    return tr("{part} %", part=f"{100 * value:.4g}")


@dataclass(frozen=True, slots=True)
class Axis:
    """What lies along one side of a plot.

    low, high: its ends, all that can be seen of it; words: a number on it as text; ticks: where
    numbers stand and what they say, None for round numbers; whole: only whole numbers have ticks;
    end: a number that has one besides, such as that of all heads.
    """

    low: float
    high: float
    title: str = ""
    words: Callable[[float], str] = number
    ticks: tuple[tuple[float, str], ...] | None = None
    whole: bool = False
    end: float | None = None

    @classmethod
    def around(cls, values: Values, room: float = 0.05, title: str = "", **more: Any) -> Axis:
        """An axis on which all finite values lie, a share of room beyond the outermost."""
        finite = np.asarray(values, float)
        finite = finite[np.isfinite(finite)]
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
        air = room * (high - low) or max(abs(high), 1.0) * 0.05
        return cls(low - air, high + air, title, **more)

    def marks(self, low: float, high: float, most: int) -> list[tuple[float, str]]:
        """Where numbers stand between two ends, at most so many, and what they say."""
        if self.ticks is not None:
            return [one for one in self.ticks if low <= one[0] <= high]
        even = even_ticks(low, high, most)
        while len(even) < 2 and most < 9:  # one number gives no scale
            most += 1
            even = even_ticks(low, high, most)
        found = [min(max(v, low), high) for v in even]
        if self.whole:
            found = [v for v in found if v == round(v)]
        if self.end is not None and low <= self.end <= high:
            near = 0.06 * (high - low)
            found = [*(v for v in found if abs(v - self.end) > near), self.end]
        return [(v, self.words(v)) for v in found]

    def marks_apart(
        self,
        low: float,
        high: float,
        room: float,
        measure: Callable[[str], float],
        cut: Callable[[str, float], str],
    ) -> list[tuple[float, str]]:
        """As many numbers between two ends as stand beside each other on so many px.

        measure: px of words; cut: words made as short as so many px.
        """
        px = room / ((high - low) or 1.0)  # of one unit
        found = self.marks(low, high, 10)
        if self.ticks is not None and len(found) > 1:
            each = px * (found[1][0] - found[0][0]) - 6
            if each > 40:
                return [(at, cut(words, each)) for at, words in found]
        for most in (10, 8, 6, 5, 4, 3, 2):
            found = self.marks(low, high, most)
            at = px * np.array([at for at, _ in found])
            half = np.array([measure(words) / 2 for _, words in found])
            if (at[:-1] + half[:-1] + 8 <= at[1:] - half[1:]).all():
                return found
        return [one for at, one in enumerate(found) if at in (0, len(found) - 1)]


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A line through (x, y)."""

    x: Values
    y: Values
    colour: Colour = "press"
    width: float = 2.0
    style: Literal["solid", "dash", "dot"] = "solid"


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """All between low and high, along x."""

    x: Values
    low: Values
    high: Values
    colour: Colour = "press"
    alpha: float = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Marks at (x, y).

    shape: a number, of which six differ; told: what the point of a number says, its lines apart by
    line breaks: only such points are pointed at and walked; keys: what each stands for, such as a
    head; names: what is written beside those that are chosen, or stand apart, where there is room.
    """

    x: Values
    y: Values
    colour: Colour = "press"
    shape: int = 0
    size: float = 6.0  # px across
    hollow: bool = False
    told: Callable[[int], str] | None = None
    keys: tuple[Hashable, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Intervals: at each x a bar from low to high, with caps."""

    x: Values
    low: Values
    high: Values
    colour: Colour = "press"


@dataclass(frozen=True, slots=True)
class Mark:
    """A straight line across the plot where x, or y, has a value."""

    direction: Direction
    value: float
    colour: Colour = "text"
    width: float = 1.0
    style: Literal["solid", "dash", "dot"] = "dash"


@dataclass(frozen=True, slots=True)
class Note:
    """Words beside one of some places (x, y): where least is covered. The first notes of a plot
    have the first choice; a later one that finds no free place is left out."""

    words: str
    places: tuple[tuple[float, float], ...]
    colour: Colour = "text"
    weight: int = 600


Part = Line | Band | Points | Intervals | Mark | Note


@dataclass(frozen=True, slots=True)
class Plot:
    """Two axes and what is drawn over them, the first undermost."""

    x: Axis
    y: Axis
    parts: tuple[Part, ...]
    title: str = ""

    @property
    def ends(self) -> tuple[float, float, float, float]:
        """All that can be seen: x from and to, y from and to."""
        return float(self.x.low), float(self.x.high), float(self.y.low), float(self.y.high)

    def of(self, kind: type) -> list[Any]:
        """Its parts of a kind, in order."""
        return [one for one in self.parts if isinstance(one, kind)]


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """A line of the legend: what a colour and a shape stand for."""

    words: str
    colour: Colour
    shape: int = 0
    hollow: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Slider:
    """A mark along x that is moved from stop to stop.

    stops: the x of each; at: the stop it is at, None where it is nowhere; words: on its handle;
    home: the stop that the End key goes to.
    """

    stops: Values
    at: int | None
    words: str
    home: int = 0

    @property
    def value(self) -> float | None:
        """The x it is at; None for nowhere."""
        return None if self.at is None else float(self.stops[min(self.at, len(self.stops) - 1)])


@dataclass(frozen=True, slots=True)
class Chart:
    """Plots in rows, with a legend above them.

    words: all of it in a sentence, for those who do not see it; of: what it is of, for as long as
    this stays the same a zoom does; across: how many plots stand in a row, 0 for as many as there
    is room for; reads: whether the pointer is at the point nearest to it, or at the one above or
    below it.
    """

    plots: tuple[Plot, ...] = ()
    words: str = ""
    legend: tuple[LegendEntry, ...] = ()
    slider: Slider | None = None
    of: Hashable = None
    across: int = 0
    reads: Literal["point", "x"] = "point"


# --- from values to pixels ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scale:
    """The part of a plot that is on screen, x0 to x1 and y0 to y1, and its place there in px."""

    x0: float
    x1: float
    y0: float
    y1: float
    left: float
    top: float
    width: float
    height: float

    @property
    def ends(self) -> tuple[float, float, float, float]:
        """x from and to, y from and to."""
        return self.x0, self.x1, self.y0, self.y1

    def shows(self, x0: float, x1: float, y0: float, y1: float) -> bool:
        """Whether all between these ends is on screen."""
        far = np.subtract(self.ends, (x0, x1, y0, y1))
        return bool((np.abs(far) <= 1e-6 * np.repeat([x1 - x0, y1 - y0], 2)).all())

    def holds(self, across: float, down: float) -> bool:
        """Whether a place in px is between the axes."""
        return 0 <= across - self.left <= self.width and 0 <= down - self.top <= self.height

    def pixels(self, x: Values | float, y: Values | float) -> tuple[np.ndarray, np.ndarray]:
        """Where values are, across and down in px."""
        across = (np.asarray(x, float) - self.x0) / ((self.x1 - self.x0) or 1.0)
        up = (np.asarray(y, float) - self.y0) / ((self.y1 - self.y0) or 1.0)
        return self.left + across * self.width, self.top + (1 - up) * self.height

    def value(self, across: float, down: float) -> tuple[float, float]:
        """The x and y of a place in px."""
        x = self.x0 + (across - self.left) / (self.width or 1.0) * (self.x1 - self.x0)
        return x, self.y1 - (down - self.top) / (self.height or 1.0) * (self.y1 - self.y0)

    def zoomed(
        self, factor: float, at: tuple[float, float] | None = None, sides: str = "xy"
    ) -> Scale:
        """`factor` times as much along these sides, around a place in px; None: the middle."""
        x, y = self.value(*(at or (self.left + self.width / 2, self.top + self.height / 2)))
        across, up = (factor if side in sides else 1.0 for side in "xy")
        return replace(
            self, x0=x + (self.x0 - x) * across, x1=x + (self.x1 - x) * across,
            y0=y + (self.y0 - y) * up, y1=y + (self.y1 - y) * up,
        )  # fmt: skip

    def between(self, one: tuple[float, float], other: tuple[float, float], least: float) -> Scale:
        """What lies between two places in px; all of a side where they are nearer than `least`."""
        (xa, ya), (xb, yb) = self.value(*one), self.value(*other)
        x0, x1, y0, y1 = self.ends
        if abs(one[0] - other[0]) > least:
            x0, x1 = np.clip(sorted((xa, xb)), x0, x1).tolist()
        if abs(one[1] - other[1]) > least:
            y0, y1 = np.clip(sorted((ya, yb)), y0, y1).tolist()
        return replace(self, x0=x0, x1=x1, y0=y0, y1=y1)

    def panned(self, across: float, down: float) -> Scale:
        """What is on screen moved by so many px."""
        x = -across * (self.x1 - self.x0) / (self.width or 1.0)
        y = down * (self.y1 - self.y0) / (self.height or 1.0)
        return replace(self, x0=self.x0 + x, x1=self.x1 + x, y0=self.y0 + y, y1=self.y1 + y)


def thinned(part: Line | Band, scale: Scale) -> Line | Band:
    """What a line or band looks like at a scale: what is beyond its ends, and all but the lowest
    and highest of each px, left out. One whose x goes back and forth is as it was."""
    x = np.asarray(part.x, float)
    columns = max(1, int(scale.width))
    if len(x) <= 4 * columns or (np.diff(x) < 0).any():
        return part
    first = max(0, int(np.searchsorted(x, scale.x0)) - 1)
    last = min(len(x), int(np.searchsorted(x, scale.x1, side="right")) + 1)
    each = -(-(last - first) // columns)
    starts = np.arange(first, last, each)
    if each <= 2:
        chosen = slice(first, last)
    elif isinstance(part, Line):
        y = np.asarray(part.y, float)[first:last]
        rows = np.full(len(starts) * each, y[-1])  # the last px is filled up
        rows[: len(y)] = y
        rows = rows.reshape(-1, each)
        ends = starts[:, None] + np.sort([rows.argmin(axis=1), rows.argmax(axis=1)], axis=0).T
        chosen = np.unique([first, *ends.ravel().clip(max=last - 1), last - 1])
    if isinstance(part, Line):
        return replace(part, x=x[chosen], y=np.asarray(part.y)[chosen])
    low, high = np.asarray(part.low, float)[:last], np.asarray(part.high, float)[:last]
    return replace(
        part, x=np.append(x[starts], x[last - 1]),
        low=np.append(np.minimum.reduceat(low, starts), low[-1]),
        high=np.append(np.maximum.reduceat(high, starts), high[-1]),
    )  # fmt: skip


# --- points that say something --------------------------------------------------------------------

NEAR = 16  # px from a point at which a place is at it
NAMED = 16  # points that are named by themselves, where there is room
CROWD = 1000  # points of which none is


class ChartPoints:
    """All points of some plots that say something, by number: panel, x and y (n,)."""

    def __init__(self, plots: Sequence[Plot]) -> None:
        mine = [(at, part) for at, plot in enumerate(plots) for part in plot.of(Points)
                if part.told is not None]  # fmt: skip
        self.parts: list[Points] = [part for _, part in mine]
        sizes = [len(part.x) for part in self.parts]
        self._starts = np.cumsum([0, *sizes])
        self.panel = np.repeat(np.array([at for at, _ in mine], int), sizes)
        self.x = np.concatenate([np.zeros(0), *(np.asarray(p.x, float) for p in self.parts)])
        self.y = np.concatenate([np.zeros(0), *(np.asarray(p.y, float) for p in self.parts)])
        self._numbers = {
            key: int(start) + at
            for start, part in zip(self._starts, self.parts, strict=False)
            for at, key in enumerate(part.keys)
        }

    def __len__(self) -> int:
        return len(self.x)

    def _part(self, at: int) -> tuple[Points, int]:
        which = int(np.searchsorted(self._starts, at, side="right")) - 1
        return self.parts[which], at - int(self._starts[which])

    def find(self, key: Hashable) -> int | None:
        """The number of the point that stands for something."""
        return None if key is None else self._numbers.get(key)

    def told(self, at: int) -> str:
        """What a point says, in lines."""
        part, number_ = self._part(at)
        assert part.told is not None
        return part.told(number_)

    def key(self, at: int | None) -> Hashable:
        """What a point stands for; None for nothing."""
        if at is None:
            return None
        part, number_ = self._part(at)
        return part.keys[number_] if part.keys else None

    def name(self, at: int) -> str:
        """What is written beside a point; "" for nothing."""
        part, number_ = self._part(at)
        return part.names[number_] if part.names else ""

    def nearest(
        self, panel: int, scale: Scale, place: tuple[float, float], reads: str
    ) -> int | None:
        """The point of a plot that a place in px is at, as a chart reads; None for none."""
        mine = np.flatnonzero(self.panel == panel)
        if not len(mine):
            return None
        x, y = scale.pixels(self.x[mine], self.y[mine])
        aside, off = np.abs(x - place[0]), np.abs(y - place[1])
        if reads == "x":
            return int(mine[np.lexsort((off, aside))[0]])
        far = np.hypot(aside, off)
        return int(mine[np.argmin(far)]) if far.min() <= NEAR else None

    def names(
        self, panel: int, scale: Scale, chosen: int | None, asked: set[int | None]
    ) -> list[Note]:
        """The names of the chosen point, of those asked for, and of some that stand apart."""
        mine = np.flatnonzero(self.panel == panel)
        if not len(mine) or not any(part.names for part in self.parts):
            return []
        first = [one for one in mine.tolist() if one == chosen or one in asked]
        lone: list[int] = []
        if len(mine) <= CROWD:
            x, y = scale.pixels(self.x[mine], self.y[mine])
            far = np.sort(np.hypot(x[:, None] - x, y[:, None] - y), axis=1)
            second = far[:, min(2, len(mine) - 1)]  # to its second neighbour
            lone = mine[np.argsort(-second, kind="stable")[:NAMED]].tolist()
        return [
            Note(
                self.name(one), ((float(self.x[one]), float(self.y[one])),),
                "mark_text" if one == chosen else "text" if one in asked else "secondary",
            )
            for one in dict.fromkeys([*first, *lone])
            if self.name(one)
        ]  # fmt: skip


# --- where words stand ----------------------------------------------------------------------------

Box = tuple[float, float, float, float]  # left, top, right, bottom in px


def place_notes(
    notes: Sequence[Note], scale: Scale, measure: Callable[[str], tuple[float, float]]
) -> list[tuple[Note, Box]]:
    """Each note in the box nearest to its places that meets no note before it; no note without one.

    measure: the width and height of words in px.
    """
    found: list[tuple[Note, Box]] = []
    for note in notes:
        for box in _boxes(note, scale, *measure(note.words)):
            left, top, right, bottom = box
            if not any(
                left < b[2] and b[0] < right and top < b[3] and b[1] < bottom for _, b in found
            ):
                found.append((note, box))
                break
    return found


def _boxes(note: Note, scale: Scale, wide: float, high: float) -> Iterator[Box]:
    """Every box in which a note might stand, the nearest to its places first."""
    right, bottom = scale.left + scale.width, scale.top + scale.height
    places = [tuple(map(float, scale.pixels(*place))) for place in note.places]
    for out in (6.0, 14.0, 26.0, 42.0):
        for x, y in places:
            if not (scale.left - 1 <= x <= right + 1 and scale.top - 1 <= y <= bottom + 1):
                continue
            for left in (x + out, x - wide / 2, x - out - wide):
                for middle in (y - out - 6, y, y + out + 6):
                    if (left, middle) == (x - wide / 2, y):  # on the place itself
                        continue
                    in_plot = min(max(left, scale.left), right - wide)
                    top = middle - high / 2
                    if scale.left <= in_plot and scale.top <= top and top + high <= bottom:
                        yield in_plot, top, in_plot + wide, top + high


# --- charts ---------------------------------------------------------------------------------------


LONG = 2000  # points of a series of which only what is seen is drawn
SMALL = 0.85  # of the size of the window's letters: numbers, titles and notes
PAD = 6  # px between the numbers of an axis and the plot
TITLED = 18  # px of the title of an axis
SHAPES = (("o", 1.0), ("s", 0.9), ("t1", 1.15), ("d", 1.4), ("t", 1.15), ("p", 1.1))
FINEST = 1e-4  # of an axis: no more can be zoomed into


def ink(colour: Colour) -> QColor:
    """A colour of the theme, or that of a series; those differ for people who are colour-blind."""
    if isinstance(colour, str):
        return QColor(getattr(theme.current(), colour))
    table = CATEGORICAL_DARK if theme.current().dark else CATEGORICAL
    return QColor(table[colour % len(table)])


@cache
def graphics() -> Any:
    """pyqtgraph, imported when something is first drawn."""
    import pyqtgraph

    # exitCleanup would walk all plots once more while the program ends, after Qt took them down
    pyqtgraph.setConfigOptions(antialias=True, exitCleanup=False)
    return pyqtgraph


def pen(colour: QColor, width: float, style: str = "solid") -> Any:
    """A pen of so many px at any zoom."""
    return graphics().mkPen(colour, width=width, style=Qt.PenStyle[f"{style.title()}Line"])


# --- parts of a plot and their items --------------------------------------------------------------


def _draw_line(item: Any, part: Line) -> None:
    x, y = np.asarray(part.x, float), np.asarray(part.y, float)
    y0, y1 = item.getViewBox().viewRange()[1]
    # Qt takes long for smooth edges of a line that goes up and down a lot, where nobody sees them
    smooth = not np.abs(np.diff(y)).sum() > 20 * (y1 - y0)
    item.setData(x, y, antialias=smooth, pen=pen(ink(part.colour), part.width, part.style))


def _draw_band(item: Any, part: Band) -> None:
    x = np.concatenate([part.x, np.asarray(part.x, float)[::-1]])
    y = np.concatenate([part.low, np.asarray(part.high, float)[::-1]])
    brush = faint(ink(part.colour), part.alpha)
    item.setData(x, y, antialias=len(x) < LONG // 2, pen=None, brush=brush)


def _draw_points(item: Any, part: Points) -> None:
    shape, factor = SHAPES[part.shape % len(SHAPES)]
    colour, pane = ink(part.colour), theme.current().pane
    item.setData(
        x=np.asarray(part.x, float), y=np.asarray(part.y, float), symbol=shape,
        size=part.size * factor,
        pen=pen(colour, 1.4) if part.hollow else pen(pane, 1.0),
        brush=faint(pane, 0.7) if part.hollow else colour,
    )  # fmt: skip


def _draw_bars(item: Any, part: Intervals) -> None:
    colour = pen(ink(part.colour), 2)
    item.setData(
        np.repeat(np.asarray(part.x, float), 2),
        np.stack([part.low, part.high], 1).reshape(-1).astype(float),
        connect="pairs", pen=colour, symbol="_", symbolSize=9, symbolPen=colour,
    )  # fmt: skip


def _draw_mark(item: Any, part: Mark) -> None:
    item.setAngle(90 if part.direction == "x" else 0)
    item.setValue(part.value)
    item.setPen(pen(ink(part.colour), part.width, part.style))


KINDS: dict[type, tuple[Callable[[Any], Any], Callable[[Any, Any], None]]] = {
    Line: (lambda pg: pg.PlotDataItem(), _draw_line),
    Band: (lambda pg: pg.PlotCurveItem(fillLevel="enclosed"), _draw_band),
    Points: (lambda pg: pg.ScatterPlotItem(pxMode=True), _draw_points),
    Intervals: (lambda pg: pg.PlotDataItem(), _draw_bars),
    Mark: (lambda pg: pg.InfiniteLine(movable=False), _draw_mark),
    Note: (lambda pg: pg.TextItem(), lambda item, part: None),
}  # of a part: its item, made and brought up to date


class PlotItems:
    """The items of one plot. They are made once and reused for whatever it shows next: none is
    taken from the scene before it goes, so that Qt deletes them, in its own thread."""

    def __init__(self, view: Any) -> None:
        pg = graphics()
        self.frame = pg.GraphicsLayout()
        self.frame.layout.setSpacing(0)
        self.frame.layout.setContentsMargins(0, 0, 0, 0)
        self.box = pg.ViewBox(enableMenu=False, enableMouse=False, defaultPadding=0)
        self.left = pg.AxisItem("left", linkView=self.box)
        self.bottom = pg.AxisItem("bottom", linkView=self.box)
        self.title = pg.LabelItem()
        for item, row, column in (
            (self.title, 0, 1), (self.left, 1, 0), (self.box, 1, 1), (self.bottom, 2, 1),
        ):  # fmt: skip
            self.frame.addItem(item, row, column)
        for axis in (self.left, self.bottom):
            axis.enableAutoSIPrefix(False)
            axis.setStyle(tickAlpha=255, autoExpandTextSpace=False, hideOverlappingLabels=40)
        self.left.setStyle(tickTextOffset=PAD, tickLength=0)
        self.bottom.setStyle(tickLength=4)
        view.scene().addItem(self.frame)
        self.plot: Plot | None = None
        self._items: dict[type, list[Any]] = {}
        self._long: list[tuple[Any, Any]] = []  # drawn anew as the plot is zoomed
        self.rings = [self._made(Points, 50 + at) for at in range(3)]
        self.cursor, self.grid = self._made(Mark, 40), self._made(Line, -1)
        self.notes: dict[str, QRectF] = {}  # where words stand, in px of the view

    def _made(self, kind: type, depth: float) -> Any:
        item = KINDS[kind][0](graphics())
        item.setZValue(depth)
        self.box.addItem(item, ignoreBounds=True)
        return item

    def show(self, plot: Plot, keep: bool) -> None:
        """Draw another plot; keep: the part that is zoomed into stays on screen."""
        zoom = self.scale if keep and self.zoomed else None
        self.plot, now = plot, theme.current()
        self.left.setPen(None)
        self.bottom.setPen(now.edge)
        for axis in (self.left, self.bottom):
            axis.setTickPen(now.edge)
            axis.setTextPen(now.secondary)
            axis.setTickFont(theme.font(SMALL))
        self._long = []
        for kind, (_, draw) in KINDS.items():
            parts, items = plot.of(kind), self._items.setdefault(kind, [])
            while kind is not Note and len(items) < len(parts):
                items.append(self._made(kind, 0))
            for at, item in enumerate(items):
                item.setVisible(at < len(parts))
            for item, part in zip(items, parts, strict=False):
                item.setZValue(plot.parts.index(part))
                if kind in (Line, Band) and len(part.x) > LONG:
                    self._long.append((item, part))
                else:
                    draw(item, part)
        x0, x1, y0, y1 = plot.ends
        finest = {"minXRange": FINEST * (x1 - x0), "minYRange": FINEST * (y1 - y0)}
        self.box.setLimits(xMin=x0, xMax=x1, yMin=y0, yMax=y1, **finest)
        self.look(*(plot if zoom is None else zoom).ends)

    # --- what part of it is on screen -------------------------------------------------------------

    @property
    def scale(self) -> Scale:
        """What is on screen of it, and where in the view."""
        inner = self.box.mapRectToScene(self.box.rect())
        (x0, x1), (y0, y1) = self.box.viewRange()
        return Scale(x0, x1, y0, y1, inner.left(), inner.top(), inner.width(), inner.height())

    @property
    def zoomed(self) -> bool:
        """Whether only a part is on screen."""
        return self.plot is not None and not self.scale.shows(*self.plot.ends)

    def look(self, x0: float, x1: float, y0: float, y1: float) -> None:
        """Show a part, within its ends."""
        self.box.setRange(xRange=(x0, x1), yRange=(y0, y1), padding=0)
        self.number()
        for item, part in self._long:
            KINDS[type(part)][1](item, thinned(part, self.scale))

    # --- axes and words ---------------------------------------------------------------------------

    def number(self) -> None:
        """Number the axes, as there is room."""
        plot, metrics = self.plot, QFontMetricsF(theme.font(SMALL))
        if plot is None:
            return
        x0, x1, y0, y1 = self.scale.ends
        room = self.frame.geometry()
        title = metrics.elidedText(plot.title, Qt.TextElideMode.ElideRight, room.width() - 60)
        self.title.setVisible(bool(title))
        self.title.setMaximumHeight(20 if title else 0)
        self.title.setText(escape(title), color=theme.current().text, bold=True,
                           size=f"{theme.font(0.92).pixelSize()}px")  # fmt: skip
        size, colour = f"{theme.font(SMALL).pixelSize()}px", theme.current().secondary.name()
        for axis, of in ((self.bottom, plot.x), (self.left, plot.y)):
            axis.setLabel(escape(of.title) or None, **{"color": colour, "font-size": size})
            axis.showLabel(bool(of.title))
        under = 22 + (TITLED if plot.x.title else 0)
        most = int((room.height() - under - (20 if title else 0)) / 32)
        numbers = plot.y.marks(y0, y1, max(3, min(8, most)))
        wide = max((metrics.horizontalAdvance(words) for _, words in numbers), default=0.0)
        beside_it = wide + 2 * PAD + (TITLED if plot.y.title else 0)
        self.bottom.setHeight(under)
        self.left.setWidth(round(beside_it))
        self.left.setTicks([numbers])
        self.grid.setData(
            np.tile([x0, x1], len(numbers)), np.repeat([at for at, _ in numbers], 2),
            connect="pairs", antialias=False, pen=pen(theme.current().line, 1),
        )  # fmt: skip
        self.frame.layout.activate()
        self.bottom.setTicks([plot.x.marks_apart(
            x0, x1, room.width() - beside_it, metrics.horizontalAdvance,
            lambda words, px: metrics.elidedText(words, Qt.TextElideMode.ElideRight, px),
        )])  # fmt: skip

    def annotate(self, names: Sequence[Note], slider: float | None) -> None:
        """Draw the slider at an x; write names of points and notes beside their places."""
        assert self.plot is not None
        self.cursor.setVisible(slider is not None)
        if slider is not None:
            _draw_mark(self.cursor, Mark("x", slider, "mark", 1.5, "solid"))
        scale, metrics = self.scale, QFontMetricsF(theme.font(SMALL, 600))
        placed = place_notes(
            [*names, *self.plot.of(Note)], scale,
            lambda words: (metrics.horizontalAdvance(words) + 4, metrics.height() + 2),
        )  # fmt: skip
        items = self._items.setdefault(Note, [])
        items += [self._made(Note, 100) for _ in placed[len(items) :]]
        for at, item in enumerate(items):
            item.setVisible(at < len(placed))
        self.notes = {}
        for item, (note, (left, top, right, bottom)) in zip(items, placed, strict=False):
            self.notes[note.words] = QRectF(QPointF(left, top), QPointF(right, bottom))
            item.setText(note.words, ink(note.colour))
            item.fill = graphics().mkBrush(faint(theme.current().pane, 0.8))
            item.setFont(theme.font(SMALL, note.weight))
            item.textItem.document().setDocumentMargin(1)
            item.setAnchor((0, 0))
            item.setPos(*scale.value(left, top))


# --- the widget -----------------------------------------------------------------------------------

GRAB = 7  # px from the slider at which a press takes it
STEP = 1.25  # of the wheel and of the zoom keys
MARGIN = 3  # px: the ring of the keyboard lies in it
LEGEND, HANDLE = 22, 36  # px above the plots: of a row of the legend, and for the slider
LEAST, LOW = 250, 150  # px of width and of height that one of several plots wants
ARROWS = {
    Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1),
}  # fmt: skip
PAGES = {Qt.Key.Key_PageUp: 5, Qt.Key.Key_PageDown: -5}
ENDS = (Qt.Key.Key_Home, Qt.Key.Key_End)
ZOOMS = {Qt.Key.Key_Plus: 1 / STEP, Qt.Key.Key_Equal: 1 / STEP, Qt.Key.Key_Minus: STEP}


class Legend(QWidget):
    """What colours and shapes stand for, in as many rows as they need."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.entries: tuple[LegendEntry, ...] = ()
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def show_entries(self, entries: tuple[LegendEntry, ...]) -> None:
        """Say what these are."""
        self.entries = entries
        self.setAccessibleName(", ".join(one.words for one in entries))
        self.setVisible(bool(entries))
        self.update()

    def places(self, width: float) -> list[QRectF]:
        """Where each entry stands in so many px."""
        metrics = QFontMetricsF(theme.font(SMALL, 500))
        x, y = 8.0, 3.0
        found: list[QRectF] = []
        for one in self.entries:
            wide = 20 + metrics.horizontalAdvance(one.words)
            if found and x + wide > width:
                x, y = 8.0, y + LEGEND
            found.append(QRectF(x, y, wide, LEGEND))
            x += wide + 14
        return found

    def paintEvent(self, event: QPaintEvent) -> None:
        """A mark and its words, one after the other."""
        scatter, now = graphics().graphicsItems.ScatterPlotItem, theme.current()
        with theme.smooth_painter(self) as painter:
            painter.setFont(theme.font(SMALL, 500))
            for entry, place in zip(self.entries, self.places(self.width()), strict=True):
                shape, factor = SHAPES[entry.shape % len(SHAPES)]
                colour = ink(entry.colour)
                ground = graphics().mkBrush(now.pane if entry.hollow else colour)
                painter.save()
                painter.translate(place.left() + 6, place.center().y())
                scatter.drawSymbol(painter, shape, 9 * factor, pen(colour, 1.4), ground)
                painter.restore()
                painter.setPen(now.text)
                words = place.adjusted(18, 0, 4, 0)
                painter.drawText(words, Qt.AlignmentFlag.AlignVCenter, entry.words)


class ChartWidget(QWidget):
    """Draws a chart. The wheel and a drag zoom it, Shift or the middle button with a drag moves it,
    a double click or 0 shows all of it again.

    pointed: the point under the pointer, in a line, "" for none; hovered
    and picked: what that point stands for, and what was chosen; entered: the chosen one is wanted
    on its own; slid: the slider's new stop, and whether it goes on with a move that had begun.
    """

    pointed = Signal(str)
    hovered = Signal(object)
    picked = Signal(object)
    entered = Signal()
    slid = Signal(int, bool)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.chart = Chart()
        self.chosen: Hashable = None  # keys of points that have a ring
        self.ringed: Hashable = None
        self.panels: list[PlotItems] = []
        self._view: Any = None
        self._due = False
        self._here: int | None = None  # the point that is told of
        self._spots = ChartPoints(())
        self._press: QPointF | None = None
        self._drag: Literal["", "zoom", "pan", "slide"] = ""
        self._begun = False  # whether the slider has moved since it was taken
        self._before: int | None = None  # where the slider was before a click
        self.legend, self.card = Legend(self), CellCard(self)
        self._handle = QLabel(self)
        self._handle.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._handle.hide()
        self._band = QRubberBand(QRubberBand.Shape.Rectangle, self)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(160, 90)
        self.setAccessibleName(name)

    def sizeHint(self) -> QSize:
        """About as large as it reads well."""
        return QSize(480, 240)

    def show_chart(self, chart: Chart) -> None:
        """Draw this from now on."""
        keep, spots = chart.of == self.chart.of, ChartPoints(chart.plots)
        if not keep or (self._here or 0) >= len(spots):
            self._go(None)
        self.chart, self._spots = chart, spots
        self._describe()
        self._due = True
        if self.isVisible():
            self._draw(keep)

    def mark(self, chosen: Hashable, ringed: Hashable = None) -> None:
        """Put rings around the points that stand for these."""
        if (chosen, ringed) != (self.chosen, self.ringed):
            self.chosen, self.ringed = chosen, ringed
            self._describe()
            self._annotate()

    @property
    def words(self) -> str:
        """The point that is told of, in a line; "" for none."""
        at = self._spots.find(self.chosen) if self._here is None else self._here
        return "" if at is None else self._spots.told(at).replace("\n", " · ")

    @property
    def shown(self) -> list[PlotItems]:
        """The plots that are on screen."""
        return self.panels[: len(self.chart.plots)]

    @property
    def zoomed(self) -> bool:
        """Whether only a part is on screen."""
        return any(one.zoomed for one in self.shown)

    def reset(self) -> None:
        """Show all of it."""
        for one in self.shown:
            one.look(*one.plot.ends)
        self._annotate()

    # --- drawing ----------------------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:
        """Draw what was given while it was hidden."""
        super().showEvent(event)
        if self._due:
            self._draw(keep=True)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Other sizes have room for other numbers and words."""
        super().resizeEvent(event)
        self._arrange()

    def changeEvent(self, event: QEvent) -> None:
        """Wear another theme."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self._view is not None:
            self._draw(keep=True)

    def paintEvent(self, event: QPaintEvent) -> None:
        """The ring of the keyboard."""
        if self.hasFocus():
            with QPainter(self) as painter:
                focus_ring(painter, QRectF(self.rect()))

    def _draw(self, keep: bool) -> None:
        self._due = False
        plots = self.chart.plots
        if self._view is None:
            if not plots:
                return
            self._view = graphics().GraphicsView(self)
            for one in (self._view, self._view.viewport()):
                one.setFocusPolicy(Qt.FocusPolicy.NoFocus)
            self._view.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            self._view.show()
            self._handle.raise_()
            self.card.raise_()
        self._view.setBackground(theme.current().pane)
        self.legend.show_entries(self.chart.legend)
        self.panels += [PlotItems(self._view) for _ in plots[len(self.panels) :]]
        for at, one in enumerate(self.panels):
            one.frame.setVisible(at < len(plots))
        for one, plot in zip(self.panels, plots, strict=False):
            one.show(plot, keep)
        self._arrange()

    def _arrange(self) -> None:
        """The legend, and below it plots beside and under each other, as there is room."""
        plots = self.chart.plots
        if self._view is None or not plots:
            return
        room = self.rect().adjusted(MARGIN, MARGIN, -MARGIN, -MARGIN)
        entries = self.legend.places(room.width() - 8)
        legend = round(entries[-1].bottom()) if entries else 0
        self.legend.setGeometry(room.left(), room.top(), room.width(), legend)
        self._view.setGeometry(room.adjusted(0, legend, 0, 0))
        top = HANDLE if self.chart.slider is not None else 8
        wide, high = float(self._view.width()), self._view.height() - top - 2.0
        rows = max(1, int(high / LOW))  # of plots that can be read
        most = max(1, min(len(plots), int(wide / LEAST)), -(-len(plots) // rows))
        across = self.chart.across or most
        down = -(-len(plots) // across)
        for at, panel in enumerate(self.shown):
            panel.frame.setGeometry(
                at % across * wide / across + 6, top + at // across * high / down,
                wide / across - 18, high / down,
            )  # fmt: skip
            panel.number()
        self._annotate()

    def _look(self, panel: PlotItems, scale: Scale) -> None:
        """Show this part of a plot."""
        panel.look(*scale.ends)
        self._annotate()

    def _annotate(self) -> None:
        """Rings, the slider, and words, where what is on screen has room for them."""
        self.update()
        if self._view is None:
            return
        now, spots, slider = theme.current(), self._spots, self.chart.slider
        rings = (
            (spots.find(self.ringed), now.text, 1.5), (spots.find(self.chosen), now.mark, 2.5),
            (self._here, now.mark, 2.0),
        )  # fmt: skip
        for number, panel in enumerate(self.shown):
            for item, (at, colour, width) in zip(panel.rings, rings, strict=True):
                there = at is not None and bool(spots.panel[at] == number)
                item.setVisible(there)
                if there:
                    item.setData(x=[spots.x[at]], y=[spots.y[at]], symbol="o", size=18,
                                 pen=pen(colour, width), brush=None)  # fmt: skip
            names = spots.names(number, panel.scale, rings[1][0], {rings[0][0], self._here})
            panel.annotate(names, slider.value if slider is not None else None)
        self._place_handle()
        self._place_card()

    # --- points -----------------------------------------------------------------------------------

    def where(self, at: int) -> QPointF:
        """The place of a point by its number, in px of this widget."""
        scale = self.panels[int(self._spots.panel[at])].scale
        x, y = scale.pixels(self._spots.x[at], self._spots.y[at])
        return QPointF(float(x), float(y)) + self._off

    def point_at(self, place: QPointF) -> int | None:
        """The number of the point that a place in px is at; None for none."""
        panel, at, reads = self.panel_at(place), place - self._off, self.chart.reads
        if panel is None:
            return None
        return self._spots.nearest(self.panels.index(panel), panel.scale, at.toTuple(), reads)

    def panel_at(self, place: QPointF) -> PlotItems | None:
        """The plot, with its axes, at a place in px."""
        at = place - self._off
        return next((one for one in self.shown if one.frame.geometry().contains(at)), None)

    @property
    def _off(self) -> QPointF:
        """The place of the view in this widget."""
        return QPointF() if self._view is None else QPointF(self._view.pos())

    def _go(self, here: int | None) -> None:
        """Tell of another point, None for none."""
        if here != self._here:
            self._here = here
            self.pointed.emit("" if here is None else self.words)
            self._describe()
            self._annotate()

    def _place_card(self) -> None:
        """What the point that is told of says, beside it."""
        if self._here is None or not self.isVisible() or not self.panels:
            self.card.hide()
            return
        first, *rest = map(escape, self._spots.told(self._here).split("\n"))
        self.card.say("<br>".join((f"<b>{first}</b>", *rest)))
        at = self.where(self._here)
        self.card.stand(QRectF(at.x() - 4, at.y() - 4, 8, 8), QRect(), QRectF(self.rect()))

    def _describe(self) -> None:
        self.setAccessibleDescription(" · ".join(filter(None, (self.chart.words, self.words))))

    # --- the slider -------------------------------------------------------------------------------

    def _place_handle(self) -> None:
        slider = self.chart.slider
        self._handle.setVisible(slider is not None)
        if slider is None or not self.panels:
            return
        now, font = theme.current(), theme.font(0.92 if slider.at is not None else SMALL, 600)
        words = QFontMetricsF(font).elidedText(
            slider.words, Qt.TextElideMode.ElideRight, self.width() - 24
        )
        ground, text = (
            (now.mark_text, now.pane) if slider.at is not None else (now.pane, now.secondary)
        )
        ring = now.press if self.hasFocus() else ground
        self._handle.setStyleSheet(
            f"background: {ground.name()}; color: {text.name()}; border: 2px solid {ring.name()};"
            " border-radius: 11px; padding: 0px 10px;"
        )
        self._handle.setFont(font)
        self._handle.setText(words)
        self._handle.resize(self._handle.sizeHint().width(), 24)
        x = self._slider_x()
        left = self.panels[0].scale.left if x is None else x - self._handle.width() / 2
        left = max(4.0, min(left, self.width() - self._handle.width() - 4.0))
        self._handle.move(round(left), self._view.y() + 3)

    def _slider_x(self) -> float | None:
        """Where the slider is, in px of this widget."""
        slider = self.chart.slider
        if slider is None or slider.value is None or not self.panels:
            return None
        return float(self.panels[0].scale.pixels(slider.value, 0)[0]) + self._off.x()

    def _on_slider(self, at: QPointF) -> bool:
        x = self._slider_x()
        held = self.chart.slider is not None and self._handle.geometry().contains(at.toPoint())
        return held or (x is not None and abs(at.x() - x) <= GRAB)

    def _slide_to(self, x: float) -> None:
        """Move the slider to the stop nearest to a place in px."""
        value = self.panels[0].scale.value(x - self._off.x(), 0)[0]
        self._slide(int(np.abs(np.asarray(self.chart.slider.stops, float) - value).argmin()))

    def _slide(self, stop: int) -> None:
        slider = self.chart.slider
        stop = max(0, min(stop, len(slider.stops) - 1))
        if stop != slider.at:
            begun, self._begun = self._begun, True
            self.slid.emit(stop, begun)

    # --- the pointer ------------------------------------------------------------------------------

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom around the pointer; over the numbers of an axis, along it alone."""
        panel, turned = self.panel_at(event.position()), event.angleDelta().y()
        if panel is None or not turned or (turned < 0 and not panel.zoomed):
            event.ignore()
            return
        at, scale = event.position() - self._off, panel.scale
        sides = "y" if at.x() < scale.left else "x" if at.y() > scale.top + scale.height else "xy"
        self._look(panel, scale.zoomed(STEP ** (-turned / 120), (at.x(), at.y()), sides))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Take the slider, or begin a zoom or a move."""
        slides = self._on_slider(event.position())
        if self.panel_at(event.position()) is None and not slides:
            return
        self._press, self._drag, self._begun = event.position(), "", False
        held = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        if event.button() == Qt.MouseButton.MiddleButton or held:
            self._drag = "pan"
        elif event.button() != Qt.MouseButton.LeftButton:
            self._press = None
        elif slides:
            self._drag = "slide"

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Go on with what began; else tell of the point the pointer is at."""
        at = event.position()
        if self._press is None:
            self._hover(at)
            return
        if not self._drag:
            if (at - self._press).manhattanLength() < QApplication.startDragDistance():
                return
            self._drag = "zoom"
            self._go(None)
        if self._drag == "slide":
            self._slide_to(at.x())
        elif self._drag == "pan":
            panel = self.panel_at(self._press) or self.panels[0]
            moved, self._press = at - self._press, at
            self._look(panel, panel.scale.panned(moved.x(), moved.y()))
        else:
            self._band.setGeometry(QRect(self._press.toPoint(), at.toPoint()).normalized())
            self._band.show()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Zoom into what was dragged over; a click chooses the point, or calls the slider."""
        pressed, drag = self._press, self._drag
        self._press, self._drag = None, ""
        self._band.hide()
        if pressed is None:
            return
        at, panel = event.position(), self.panel_at(pressed)
        if drag == "zoom" and panel is not None:
            one, other = ((place - self._off).toTuple() for place in (pressed, at))
            self._look(panel, panel.scale.between(one, other, 2 * GRAB))
        elif not drag and self.chart.slider is not None:
            self._before = self.chart.slider.at
            self._slide_to(at.x())
        elif not drag and (key := self._spots.key(self.point_at(at))) is not None:
            self.picked.emit(key)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Open the point on its own; elsewhere show all of the chart again."""
        at = self.point_at(event.position()) if self.chart.slider is None else None
        if self._spots.key(at) is not None:
            self.entered.emit()
            return
        if self.chart.slider is not None and self._before is not None:
            self._begun = True
            self._slide(self._before)  # the first of the two clicks called it
        self.reset()

    def leaveEvent(self, event: QEvent) -> None:
        """Nothing is pointed at any more."""
        self.hovered.emit(None)
        self._go(None)

    def _hover(self, at: QPointF) -> None:
        panel = self.panel_at(at)
        inner = panel is not None and panel.scale.holds(*(at - self._off).toTuple())
        here = self.point_at(at) if inner else None
        key = self._spots.key(here)
        shapes = Qt.CursorShape
        shape = shapes.CrossCursor if inner else shapes.ArrowCursor
        shape = shape if key is None else shapes.PointingHandCursor
        self.setCursor(shapes.SplitHCursor if self._on_slider(at) else shape)
        if key is not None or self.ringed is not None:
            self.hovered.emit(key)
        self._go(here)

    # --- keys -------------------------------------------------------------------------------------

    @property
    def own_keys(self) -> Sequence[Qt.Key]:
        """The keys that move its slider."""
        return () if self.chart.slider is None else (*ARROWS, *PAGES, *ENDS)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move the slider by arrows; + and − zoom, Shift and arrows move, 0 shows all; Return opens
        the chosen point."""
        action = self._action(event)
        if action is None:
            super().keyPressEvent(event)
        else:
            self._begun = False
            action()

    def _action(self, event: QKeyEvent) -> Callable[[], object] | None:
        """What a key does; None for nothing."""
        key, slider = Qt.Key(event.key()), self.chart.slider
        held = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if not self.shown or held & ~Qt.KeyboardModifier.ShiftModifier:
            return None
        here = self._spots.find(self.chosen)
        panel = self.panels[0 if here is None else int(self._spots.panel[here])]
        scale = panel.scale
        if key in ZOOMS:
            return partial(self._look, panel, scale.zoomed(ZOOMS[key]))
        if key in ARROWS and held:
            dx, dy = ARROWS[key]
            moved = scale.panned(-dx * scale.width / 8, -dy * scale.height / 8)
            return partial(self._look, panel, moved)
        if held:
            return None
        if key == Qt.Key.Key_0:
            return self.reset
        if key in RETURN_KEYS:
            return self.entered.emit
        if slider is not None and key in ENDS:
            return partial(self._slide, 0 if key == Qt.Key.Key_Home else slider.home)
        if slider is not None and (key in ARROWS or key in PAGES):
            dx, dy = ARROWS.get(key, (0, 0))
            return partial(self._slide, (slider.at or 0) + dx - dy + PAGES.get(key, 0))
        return None

    def focusInEvent(self, event: QFocusEvent) -> None:
        """The ring around it, and the point it tells of."""
        super().focusInEvent(event)
        self._annotate()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """No ring, and nothing is told of."""
        super().focusOutEvent(event)
        self._go(None)
        self._annotate()


class ChartView(View):
    """A view of one chart."""

    chart: ChartWidget

    @property
    def zoomed(self) -> bool:
        """Whether only a part of a plot is on screen."""
        return self.chart.zoomed

    def fit(self) -> None:
        """Show all of every plot."""
        self.chart.reset()
