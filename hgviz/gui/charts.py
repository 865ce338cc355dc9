"""Charts of the window, drawn by pyqtgraph, which this module alone imports.

What a chart shows is a value of `hgviz.gui.plots`. `ChartWidget` draws it, zooms and pans it, tells
its points to the pointer, to the keys and to screen readers, and moves its slider. pyqtgraph is
imported at the first draw: it takes a third of a second, which the first map need not wait for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cache
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
    QPixmap,
    QResizeEvent,
    QShowEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QApplication,
    QHBoxLayout,
    QLabel,
    QRubberBand,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from hgviz.gui import theme
from hgviz.gui.plots import (
    Band,
    Bars,
    Chart,
    Colour,
    Entry,
    Line,
    Mark,
    Note,
    Plot,
    Points,
    Spots,
    Values,
)
from hgviz.gui.theme import faint
from hgviz.gui.views.cellcard import CellCard
from hgviz.gui.views.ink import focus_ring
from hgviz.palettes import CATEGORICAL, CATEGORICAL_DARK


def ink(colour: Colour) -> QColor:
    """A colour of the theme, or that of a series; those differ for people who are colour-blind."""
    if isinstance(colour, str):
        return QColor(getattr(theme.current(), colour))
    table = CATEGORICAL_DARK if theme.current().dark else CATEGORICAL
    return QColor(table[colour % len(table)])


# --- one plot, drawn by pyqtgraph -----------------------------------------------------------------

PAD = 6  # px between the numbers of an axis and the plot
TITLED = 18  # px of a title of an axis
SHAPES = (("o", 1.0), ("s", 0.9), ("t1", 1.15), ("d", 1.4), ("t", 1.15), ("p", 1.1))
STYLES = {
    "solid": Qt.PenStyle.SolidLine, "dash": Qt.PenStyle.DashLine, "dot": Qt.PenStyle.DotLine,
}  # fmt: skip
NAMED = 16  # points that are named by themselves, where there is room
CROWD = 1000  # points of which none is
FINEST = 1e-4  # of an axis: no more can be zoomed into


@cache
def graphics() -> Any:
    """pyqtgraph, imported when something is first drawn."""
    import pyqtgraph

    # exitCleanup would walk all plots once more while the program ends, after Qt took them down
    pyqtgraph.setConfigOptions(antialias=True, exitCleanup=False)
    return pyqtgraph


def pen(colour: QColor, width: float, style: str = "solid") -> Any:
    """A pen of so many px at any zoom."""
    return graphics().mkPen(colour, width=width, style=STYLES[style])


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
            axis.setZValue(-1000)  # its grid lies under everything
            axis.enableAutoSIPrefix(False)
            axis.setStyle(tickAlpha=255, autoExpandTextSpace=False, hideOverlappingLabels=40)
        self.left.setGrid(255)
        self.left.setStyle(tickTextOffset=PAD)
        self.bottom.setStyle(tickLength=4)
        view.scene().addItem(self.frame)
        self.plot: Plot | None = None
        self._items: dict[type, list[Any]] = {}
        self.rings = [self._made(Points) for _ in range(3)]
        for number_, one in enumerate(self.rings):
            one.setZValue(50 + number_)
        self.cursor = self._made(Mark)
        self.cursor.setZValue(40)
        self.notes: dict[str, QRectF] = {}  # where words stand, in px of the widget

    # --- what it shows ----------------------------------------------------------------------------

    def show(self, plot: Plot, keep: bool) -> None:
        """Draw another plot; keep: the part that is zoomed into stays on screen."""
        zoom = self.range if keep and self.zoomed else None
        self.plot = plot
        used: dict[type, int] = {}
        for depth, part in enumerate(plot.parts):
            if isinstance(part, Note):
                continue
            at = used[type(part)] = used.get(type(part), -1) + 1
            items = self._items.setdefault(type(part), [])
            if at == len(items):
                items.append(self._made(type(part)))
            items[at].setZValue(depth)
            items[at].setVisible(True)
            UPDATES[type(part)](items[at], part)
        for kind, items in self._items.items():
            for item in items[used.get(kind, -1) + 1 :]:
                item.setVisible(False)
        x0, x1, y0, y1 = self.whole
        self.box.setLimits(
            xMin=x0, xMax=x1, yMin=y0, yMax=y1,
            minXRange=FINEST * (x1 - x0), minYRange=FINEST * (y1 - y0),
        )  # fmt: skip
        self.look(*(zoom or self.whole))

    def dress(self) -> None:
        """Wear the theme in use."""
        now = theme.current()
        self.left.setPen(None)
        self.bottom.setPen(now.edge)
        for axis in (self.left, self.bottom):
            axis.setTickPen(now.line if axis is self.left else now.edge)
            axis.setTextPen(now.secondary)
            axis.setTickFont(theme.font(0.85))

    def _made(self, kind: type) -> Any:
        pg = graphics()
        if kind is Points:
            item = pg.ScatterPlotItem(pxMode=True)
        elif kind is Mark:
            item = pg.InfiniteLine(movable=False)
        elif kind is Band:
            item = pg.PlotCurveItem(fillLevel="enclosed")
        else:
            item = pg.PlotDataItem()
        self.box.addItem(item, ignoreBounds=True)
        return item

    # --- where it is ------------------------------------------------------------------------------

    @property
    def whole(self) -> tuple[float, float, float, float]:
        """All of it: x from and to, y from and to."""
        assert self.plot is not None
        x, y = self.plot.x, self.plot.y
        return float(x.low), float(x.high), float(y.low), float(y.high)

    @property
    def range(self) -> tuple[float, float, float, float]:
        """What is on screen of it."""
        (x0, x1), (y0, y1) = self.box.viewRange()
        return x0, x1, y0, y1

    @property
    def zoomed(self) -> bool:
        """Whether only a part is on screen."""
        if self.plot is None:
            return False
        x0, x1, y0, y1 = self.whole
        slack = 1e-6 * (x1 - x0), 1e-6 * (y1 - y0)
        far = [abs(a - b) for a, b in zip(self.range, self.whole, strict=True)]
        return any(one > slack[at // 2] for at, one in enumerate(far))

    @property
    def inner(self) -> QRectF:
        """The place between its axes, in px of the view."""
        return self.box.mapRectToScene(self.box.rect())

    def look(self, x0: float, x1: float, y0: float, y1: float) -> None:
        """Show a part, within its ends."""
        self.box.setRange(xRange=(x0, x1), yRange=(y0, y1), padding=0)
        self.tick()

    def zoom(self, factor: float, at: QPointF | None, sides: str = "xy") -> None:
        """Show `factor` times as much along these sides, around a place in px; None: the middle."""
        x, y = self.value(self.inner.center() if at is None else at)
        x0, x1, y0, y1 = self.range
        if "x" in sides:
            x0, x1 = x + (x0 - x) * factor, x + (x1 - x) * factor
        if "y" in sides:
            y0, y1 = y + (y0 - y) * factor, y + (y1 - y) * factor
        self.look(x0, x1, y0, y1)

    def pan(self, dx: float, dy: float) -> None:
        """Move what is on screen by so many px."""
        x0, x1, y0, y1 = self.range
        x = -dx * (x1 - x0) / max(1.0, self.inner.width())
        y = dy * (y1 - y0) / max(1.0, self.inner.height())
        self.look(x0 + x, x1 + x, y0 + y, y1 + y)

    def pixels(self, x: Values, y: Values) -> tuple[np.ndarray, np.ndarray]:
        """Where values are, in px of the view."""
        box, (x0, x1, y0, y1) = self.inner, self.range
        across = box.left() + (np.asarray(x, float) - x0) / ((x1 - x0) or 1) * box.width()
        down = box.bottom() - (np.asarray(y, float) - y0) / ((y1 - y0) or 1) * box.height()
        return across, down

    def value(self, at: QPointF) -> tuple[float, float]:
        """The x and y of a place in px of the view."""
        box, (x0, x1, y0, y1) = self.inner, self.range
        x = x0 + (at.x() - box.left()) / (box.width() or 1) * (x1 - x0)
        return x, y1 - (at.y() - box.top()) / (box.height() or 1) * (y1 - y0)

    # --- axes and words ---------------------------------------------------------------------------

    def place(self, room: QRectF) -> None:
        """Stand in a part of the view."""
        self.frame.setGeometry(room)
        self.tick()

    def tick(self) -> None:
        """Number the axes anew, as there is room."""
        plot, metrics = self.plot, QFontMetricsF(theme.font(0.85))
        if plot is None:
            return
        x0, x1, y0, y1 = self.range
        room = self.frame.geometry()
        title = metrics.elidedText(plot.title, Qt.TextElideMode.ElideRight, room.width() - 60)
        style = {"color": theme.current().secondary.name(), "font-size": f"{_pixels()}px"}
        self.title.setVisible(bool(title))
        self.title.setMaximumHeight(20 if title else 0)
        self.title.setText(escape(title), color=theme.current().text, bold=True,
                           size=f"{_pixels(0.92)}px")  # fmt: skip
        under = 22 + (TITLED if plot.x.title else 0)
        self.bottom.setLabel(escape(plot.x.title) or None, **style)
        self.bottom.showLabel(bool(plot.x.title))
        self.bottom.setHeight(under)
        high = room.height() - under - (20 if title else 0)
        ups = plot.y.marks(y0, y1, max(3, min(8, int(high / 32))))
        wide = max((metrics.horizontalAdvance(words) for _, words in ups), default=0.0)
        beside = wide + 2 * PAD + (TITLED if plot.y.title else 0)
        self.left.setLabel(escape(plot.y.title) or None, **style)
        self.left.showLabel(bool(plot.y.title))
        self.left.setWidth(round(beside))
        self.left.setTicks([ups])
        self.frame.layout.activate()
        self.bottom.setTicks([self._unders(metrics, room.width() - beside)])

    def _unders(self, metrics: QFontMetricsF, wide: float) -> list[tuple[float, str]]:
        """As many numbers below as stand apart from each other."""
        assert self.plot is not None
        axis, (x0, x1, *_) = self.plot.x, self.range
        found: list[tuple[float, str]] = []
        if axis.ticks is not None and len(axis.ticks):
            shown = axis.marks(x0, x1, 0)
            each = wide * (axis.ticks[-1][0] - axis.ticks[0][0]) / ((x1 - x0) or 1)
            each = each / max(1, len(axis.ticks) - 1) - 6 if len(axis.ticks) > 1 else wide
            if any(metrics.horizontalAdvance(words) > each for _, words in shown) and each > 40:
                elide = Qt.TextElideMode.ElideRight
                return [(at, metrics.elidedText(words, elide, each)) for at, words in shown]
            found = shown
        for most in (10, 8, 6, 5, 4, 3, 2):
            if axis.ticks is None:
                found = axis.marks(x0, x1, most)
            if _apart(found, metrics, wide / ((x1 - x0) or 1)):
                return found
        return [one for at, one in enumerate(found) if at in (0, len(found) - 1)]

    def annotate(self, extra: Sequence[Note]) -> None:
        """Write the notes, and extra ones before them, each where it covers least."""
        plot = self.plot
        assert plot is not None
        pg, metrics = graphics(), QFontMetricsF(theme.font(0.85, 600))
        shown = [*extra, *plot.of(Note)]
        items = self._items.setdefault(Note, [])
        self.notes = {}
        ground = self._covered() if shown else np.zeros((0, 2))
        taken: list[QRectF] = []
        for note in shown:
            box = _free_place(self._corners(note, metrics), taken, ground, self.inner)
            if box is None:
                continue
            if len(items) == len(taken):
                items.append(pg.TextItem())
                self.box.addItem(items[-1], ignoreBounds=True)
            item = items[len(taken)]
            taken.append(box)
            self.notes[note.words] = box
            item.setZValue(100)
            item.setText(note.words, ink(note.colour))
            item.fill = pg.mkBrush(faint(theme.current().pane, 0.8))
            item.setFont(theme.font(0.85, note.weight))
            item.textItem.document().setDocumentMargin(1)
            item.setAnchor((0, 0))
            item.setPos(*self.value(box.topLeft()))
            item.setVisible(True)
        for item in items[len(taken) :]:
            item.setVisible(False)

    def _corners(self, note: Note, metrics: QFontMetricsF) -> Iterator[QRectF]:
        """Every box in which a note might stand, the nearest to its places first."""
        inner, wide = self.inner, metrics.horizontalAdvance(note.words) + 4
        high = metrics.height() + 2
        for out in (6.0, 14.0, 26.0, 42.0):
            for x, y in note.places:
                (at,), (down,) = self.pixels([x], [y])
                if not inner.adjusted(-1, -1, 1, 1).contains(QPointF(at, down)):
                    continue
                for left in (at + out, at - wide / 2, at - out - wide):
                    for top in (
                        down - out - high / 2 - 6,
                        down - high / 2,
                        down + out + 6 - high / 2,
                    ):
                        if left == at - wide / 2 and top == down - high / 2:
                            continue
                        box = QRectF(left, top, wide, high)
                        box.moveLeft(min(max(box.left(), inner.left()), inner.right() - wide))
                        if inner.contains(box):
                            yield box

    def _covered(self) -> np.ndarray:
        """(n, 2): places in px that notes had better not cover: along lines, and points."""
        assert self.plot is not None
        found = []
        for part in self.plot.parts:
            if isinstance(part, Line):
                x, y = self.pixels(part.x, part.y)
                if 1 < len(x) <= 4 * CROWD:
                    steps = np.arange(0, len(x) - 1, 1 / max(2, min(40, 1600 // len(x))))
                    at = np.arange(len(x))
                    x, y = np.interp(steps, at, x), np.interp(steps, at, y)
                found.append(np.stack([x, y], 1)[:: max(1, len(x) // 4000)])
            elif isinstance(part, Points):
                found.append(np.stack(self.pixels(part.x, part.y), 1)[: 4 * CROWD])
            elif isinstance(part, Mark) and part.direction == "y":
                x = np.arange(self.inner.left(), self.inner.right(), 6.0)
                found.append(
                    np.stack([x, np.full(len(x), self.pixels([0], [part.value])[1][0])], 1)
                )
        return np.concatenate(found) if found else np.zeros((0, 2))


def _update_line(item: Any, part: Line) -> None:
    x, y = np.asarray(part.x, float), np.asarray(part.y, float)
    ordered = bool(len(x)) and bool(np.all(np.diff(x) >= 0))  # else parts of it cannot be found
    item.setClipToView(ordered)
    item.setDownsampling(auto=ordered, method="peak")
    item.setData(x, y, pen=pen(ink(part.colour), part.width, part.style))


def _update_band(item: Any, part: Band) -> None:
    x = np.concatenate([part.x, np.asarray(part.x, float)[::-1]])
    y = np.concatenate([part.low, np.asarray(part.high, float)[::-1]])
    item.setData(x, y, pen=None, brush=faint(ink(part.colour), part.alpha))


def _update_points(item: Any, part: Points) -> None:
    shape, factor = SHAPES[part.shape % len(SHAPES)]
    colour, pane = ink(part.colour), theme.current().pane
    item.setData(
        x=np.asarray(part.x, float), y=np.asarray(part.y, float), symbol=shape,
        size=part.size * factor,
        pen=pen(colour, 1.4) if part.hollow else pen(pane, 1.0),
        brush=faint(pane, 0.7) if part.hollow else colour,
    )  # fmt: skip


def _update_bars(item: Any, part: Bars) -> None:
    colour = pen(ink(part.colour), 2)
    item.setData(
        np.repeat(np.asarray(part.x, float), 2),
        np.stack([part.low, part.high], 1).reshape(-1).astype(float),
        connect="pairs", pen=colour, symbol="_", symbolSize=9, symbolPen=colour,
    )  # fmt: skip


def _update_mark(item: Any, part: Mark) -> None:
    item.setAngle(90 if part.direction == "x" else 0)
    item.setValue(part.value)
    item.setPen(pen(ink(part.colour), part.width, part.style))


UPDATES: dict[type, Callable[[Any, Any], None]] = {
    Line: _update_line, Band: _update_band, Points: _update_points, Bars: _update_bars,
    Mark: _update_mark,
}  # fmt: skip


def _pixels(factor: float = 0.85) -> int:
    return theme.font(factor).pixelSize()


def _apart(ticks: Sequence[tuple[float, str]], metrics: QFontMetricsF, scale: float) -> bool:
    """Whether words below an axis stand apart; scale: px of one of its units."""
    ends = [
        (at * scale - metrics.horizontalAdvance(words) / 2,
         at * scale + metrics.horizontalAdvance(words) / 2)
        for at, words in ticks
    ]  # fmt: skip
    return all(a[1] + 8 <= b[0] for a, b in zip(ends, ends[1:], strict=False))


def _free_place(
    boxes: Iterator[QRectF], taken: Sequence[QRectF], ground: np.ndarray, within: QRectF
) -> QRectF | None:
    """Of boxes that meet none that is taken, the first that covers least of the ground."""
    best, least = None, math.inf
    for at, box in enumerate(boxes):
        if any(box.intersects(one) for one in taken):
            continue
        inside = (
            (ground[:, 0] > box.left() - 2) & (ground[:, 0] < box.right() + 2)
            & (ground[:, 1] > box.top()) & (ground[:, 1] < box.bottom())
        )  # fmt: skip
        cost = float(np.count_nonzero(inside)) + 0.02 * at
        if cost < least:
            best, least = box, cost
        if not inside.any() and at >= 8:  # near enough, and nothing is covered
            break
    return best


# --- the widget -----------------------------------------------------------------------------------

NEAR = 16  # px from a point at which the pointer is at it
GRAB = 7  # px from the slider at which a press takes it
STEP = 1.25  # of the wheel and of the zoom keys
MARGIN = 3  # px: the ring of the keyboard lies in it
LEGEND, HANDLE = 24, 30  # px above the plots
LEAST, LOW = 250, 150  # px of width and of height that one of several plots wants
ASIDE = 2.0  # how much dearer a step across is than one along the key that was pressed
ARROWS = {
    Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1),
}  # fmt: skip
PAGES = {Qt.Key.Key_PageUp: 5, Qt.Key.Key_PageDown: -5}
ENDS = (Qt.Key.Key_Home, Qt.Key.Key_End)
ZOOMS = {Qt.Key.Key_Plus: 1 / STEP, Qt.Key.Key_Equal: 1 / STEP, Qt.Key.Key_Minus: STEP}


class Legend(QWidget):
    """What colours and shapes stand for, in a line; what does not fit is left out."""

    def __init__(self) -> None:
        super().__init__()
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(8, 2, 8, 0)
        self._row.setSpacing(6)
        self._row.addStretch(1)
        self._pairs: list[tuple[QLabel, QLabel]] = []
        self.entries: tuple[Entry, ...] = ()
        self.setFixedHeight(LEGEND)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def show_entries(self, entries: tuple[Entry, ...]) -> None:
        """Say what these are."""
        self.entries = entries
        pg = graphics()
        while len(self._pairs) < len(entries):
            pair = QLabel(), QLabel()
            for one in pair:
                self._row.insertWidget(self._row.count() - 1, one)
            self._pairs.append(pair)
        ratio, now = self.devicePixelRatioF(), theme.current()
        for entry, (picture, words) in zip(entries, self._pairs, strict=False):
            shape, factor = SHAPES[entry.shape % len(SHAPES)]
            colour = ink(entry.colour)
            ground = pg.mkBrush(now.pane if entry.hollow else colour)
            drawn = pg.graphicsItems.ScatterPlotItem.renderSymbol(
                shape, 9 * factor, pen(colour, 1.4), ground, dpr=ratio
            )
            drawn.setDevicePixelRatio(ratio)
            picture.setPixmap(QPixmap.fromImage(drawn))
            words.setText(entry.words)
            words.setContentsMargins(0, 0, 10, 0)
            words.setFont(theme.font(0.85, 500))
        self.setVisible(bool(entries))
        self.fit()

    def fit(self) -> None:
        """Leave out what does not fit."""
        room = self.width() - 16
        for at, (picture, words) in enumerate(self._pairs):
            room -= 24 + 12 + words.sizeHint().width() if at < len(self.entries) else 0
            shown = at < len(self.entries) and (room > 0 or at == 0)
            picture.setVisible(shown)
            words.setVisible(shown)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """More or fewer fit."""
        super().resizeEvent(event)
        self.fit()


class ChartWidget(QWidget):
    """Draws a chart. The wheel and a drag zoom it, Shift or the middle button with a drag moves it,
    a double click or 0 shows all of it again.

    pointed: the point under the pointer, or that arrows came to, in a line, "" for none; hovered
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
        self._spots = Spots(())
        self._press: QPointF | None = None
        self._drag: Literal["", "zoom", "pan", "slide"] = ""
        self._begun = False  # whether the slider has moved since it was taken
        self._before: int | None = None  # where the slider was before a click
        self.legend, self.card = Legend(), CellCard(self)
        self._handle = QLabel(self)
        self._handle.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._handle.hide()
        self._band = QRubberBand(QRubberBand.Shape.Rectangle, self)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(MARGIN, MARGIN, MARGIN, MARGIN)
        self._column.setSpacing(0)
        self._column.addWidget(self.legend)
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
        keep = chart.of == self.chart.of
        if not keep:
            self._go(None)
        self.chart = chart
        self._spots = Spots(chart.plots)
        if self._here is not None and self._here >= len(self._spots):
            self._go(None)
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
    def zoomed(self) -> bool:
        """Whether only a part is on screen."""
        return any(one.zoomed for one in self.panels)

    def reset(self) -> None:
        """Show all of it."""
        for one in self.panels:
            if one.plot is not None:
                one.look(*one.whole)
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
        if self._view is None:
            if not self.chart.plots:
                return
            self._view = graphics().GraphicsView(self)
            for one in (self._view, self._view.viewport()):
                one.setFocusPolicy(Qt.FocusPolicy.NoFocus)
            self._view.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            self._column.addWidget(self._view, 1)
            self._view.show()
            self._handle.raise_()
            self.card.raise_()
        self._view.setBackground(theme.current().pane)
        self.legend.show_entries(self.chart.legend)
        while len(self.panels) < len(self.chart.plots):
            self.panels.append(PlotItems(self._view))
        for at, one in enumerate(self.panels):
            one.frame.setVisible(at < len(self.chart.plots))
            if at < len(self.chart.plots):
                one.dress()
                one.show(self.chart.plots[at], keep)
            else:
                one.plot = None
        self._arrange()

    def _arrange(self) -> None:
        """Plots beside and below each other, as there is room."""
        plots = self.chart.plots
        if self._view is None or not plots:
            return
        self._column.activate()
        top = HANDLE if self.chart.slider is not None else 8
        wide, high = float(self._view.width()), self._view.height() - top - 2.0
        rows = max(1, int(high / LOW))  # of plots that can be read
        most = max(1, min(len(plots), int(wide / LEAST)), -(-len(plots) // rows))
        across = self.chart.across or most
        down = -(-len(plots) // across)
        for at, panel in enumerate(self.panels[: len(plots)]):
            room = QRectF(
                at % across * wide / across + 6, top + at // across * high / down,
                wide / across - 18, high / down,
            )  # fmt: skip
            panel.place(room)
        self._annotate()

    def _annotate(self) -> None:
        """Rings, the slider, and words, where what is on screen has room for them."""
        if self._view is None:
            return
        now = theme.current()
        find = self._spots.find
        rings = (
            (find(self.ringed), now.text, 1.5),
            (find(self.chosen), now.mark, 2.5),
            (self._here, now.mark, 2.0),
        )
        for number_, panel in enumerate(self.panels[: len(self.chart.plots)]):
            named: list[Note] = []
            for item, (at, colour, width) in zip(panel.rings, rings, strict=True):
                there = at is not None and bool(self._spots.panel[at] == number_)
                item.setVisible(there)
                if there:
                    place = [self._spots.x[at]], [self._spots.y[at]]
                    item.setData(x=place[0], y=place[1], symbol="o", size=18,
                                 pen=pen(colour, width), brush=None)  # fmt: skip
            panel.annotate([*named, *self._names(number_, panel)])
            slider = self.chart.slider
            panel.cursor.setVisible(slider is not None and slider.at is not None)
            if slider is not None and slider.at is not None:
                panel.cursor.setAngle(90)
                panel.cursor.setPen(pen(now.mark, 1.5))
                panel.cursor.setValue(float(slider.stops[min(slider.at, len(slider.stops) - 1)]))
        self._place_handle()
        self._place_card()
        self.update()

    def _names(self, number_: int, panel: PlotItems) -> list[Note]:
        """The names of the chosen point, of the one pointed at, and of some that stand apart."""
        spots = self._spots
        mine = np.flatnonzero(spots.panel == number_)
        if not len(mine) or not any(part.names for part in spots.parts):
            return []
        asked = [one for one in (spots.find(self.chosen), spots.find(self.ringed), self._here)
                 if one is not None and spots.panel[one] == number_]  # fmt: skip
        lone: list[int] = []
        if 2 < len(mine) <= CROWD:
            x, y = panel.pixels(spots.x[mine], spots.y[mine])
            far = np.hypot(x[:, None] - x, y[:, None] - y)
            order = np.argsort(-np.sort(far, axis=1)[:, 2], kind="stable")
            lone = [int(mine[one]) for one in order[:NAMED]]
        return [
            Note(
                spots.name(one), ((float(spots.x[one]), float(spots.y[one])),),
                "mark_text" if one == spots.find(self.chosen) else "text" if one in asked
                else "secondary",
            )
            for one in dict.fromkeys([*asked, *lone])
            if spots.name(one)
        ]  # fmt: skip

    def _place_handle(self) -> None:
        slider = self.chart.slider
        self._handle.setVisible(slider is not None)
        if slider is None or not self.panels:
            return
        now, font = theme.current(), theme.font(0.92 if slider.at is not None else 0.85, 600)
        room = self.width() - 24
        words = QFontMetricsF(font).elidedText(slider.words, Qt.TextElideMode.ElideRight, room)
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
        left = self.panels[0].inner.left() if x is None else x - self._handle.width() / 2
        left = max(4.0, min(left, self.width() - self._handle.width() - 4.0))
        self._handle.move(round(left), self._view.y() + 3)

    def _slider_x(self) -> float | None:
        """Where the slider is, in px of this widget."""
        slider = self.chart.slider
        if slider is None or slider.at is None or not self.panels:
            return None
        at = float(slider.stops[min(slider.at, len(slider.stops) - 1)])
        return float(self.panels[0].pixels([at], [0])[0][0]) + self._view.x()

    # --- points -----------------------------------------------------------------------------------

    def where(self, at: int) -> QPointF:
        """The place of a point by its number, in px of this widget."""
        panel = self.panels[int(self._spots.panel[at])]
        x, y = panel.pixels([self._spots.x[at]], [self._spots.y[at]])
        return QPointF(float(x[0]) + self._view.x(), float(y[0]) + self._view.y())

    def number_of(self, key: Hashable) -> int | None:
        """The number of the point that stands for something; None for none."""
        return self._spots.find(key)

    def point_at(self, place: QPointF) -> int | None:
        """The number of the point that a place in px is at; None for none."""
        panel = self.panel_at(place)
        if panel is None or not len(self._spots):
            return None
        mine = np.flatnonzero(self._spots.panel == self.panels.index(panel))
        if not len(mine):
            return None
        x, y = panel.pixels(self._spots.x[mine], self._spots.y[mine])
        at = place - QPointF(self._view.pos())
        across, down = np.abs(x - at.x()), np.abs(y - at.y())
        if self.chart.reads == "x":
            return int(mine[np.lexsort((down, across))[0]])
        nearest = int(np.argmin(np.hypot(across, down)))
        return int(mine[nearest]) if np.hypot(across, down)[nearest] <= NEAR else None

    def panel_at(self, place: QPointF) -> PlotItems | None:
        """The plot, with its axes, at a place in px."""
        if self._view is None:
            return None
        at = place - QPointF(self._view.pos())
        shown = self.panels[: len(self.chart.plots)]
        return next((one for one in shown if one.frame.geometry().contains(at)), None)

    def _go(self, here: int | None) -> None:
        """Tell of another point, None for none."""
        if here == self._here:
            return
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
        said = " · ".join(filter(None, (self.chart.words, self.words)))
        self.setAccessibleDescription(said)

    def _walk(self, dx: int, dy: int) -> None:
        """Tell of the next point, and choose what it stands for."""
        spots = self._spots
        here = self._here if self._here is not None else spots.find(self.chosen)
        if here is None:
            forth = self.chart.walk == "space" or dx + dy > 0
            found: int | None = 0 if forth else len(spots) - 1
        elif self.chart.walk == "order":
            found = max(0, min(len(spots) - 1, here + dx + dy))
        else:
            found = self._beside(here, dx, dy)
        if found is None:
            return
        self._take(found)

    def _beside(self, here: int, dx: int, dy: int) -> int | None:
        """The point that is next on screen in a direction."""
        panel = self.panels[int(self._spots.panel[here])]
        x, y = panel.pixels(self._spots.x, self._spots.y)
        x, y = x - x[here], y - y[here]
        along, across = x * dx + y * dy, np.abs(x * dy) + np.abs(y * dx)
        far = np.where(along > 0.5, along + ASIDE * across, math.inf)
        best = int(np.argmin(far))
        return best if math.isfinite(far[best]) else None

    def _take(self, at: int) -> None:
        key = self._spots.key(at)
        if key is not None:
            self.picked.emit(key)
        self._go(at)

    # --- the pointer ------------------------------------------------------------------------------

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom around the pointer; over the numbers of an axis, along it alone."""
        panel, turned = self.panel_at(event.position()), event.angleDelta().y()
        if panel is None or not turned or (turned < 0 and not panel.zoomed):
            event.ignore()
            return
        at = event.position() - QPointF(self._view.pos())
        sides = (
            "y" if at.x() < panel.inner.left() else "x" if at.y() > panel.inner.bottom() else "xy"
        )
        panel.zoom(STEP ** (-turned / 120), at, sides)
        self._annotate()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Take the slider, or begin a zoom or a move."""
        if self.panel_at(event.position()) is None and not self._on_slider(event.position()):
            return
        self._press, self._drag, self._begun = event.position(), "", False
        held = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        if event.button() == Qt.MouseButton.MiddleButton or held:
            self._drag = "pan"
        elif event.button() != Qt.MouseButton.LeftButton:
            self._press = None
        elif self._on_slider(event.position()):
            self._drag = "slide"

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Go on with what began; else tell of the point the pointer is at."""
        at = event.position()
        if self._press is None:
            self._hover(at)
            return
        if not self._drag:
            far = (at - self._press).manhattanLength()
            if far < QApplication.startDragDistance():
                return
            self._drag = "zoom"
            self._go(None)
        if self._drag == "slide":
            self._slide_to(at.x())
        elif self._drag == "pan":
            panel = self.panel_at(self._press) or self.panels[0]
            moved, self._press = at - self._press, at
            panel.pan(moved.x(), moved.y())
            self._annotate()
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
        if drag == "zoom":
            self._zoom_into(pressed, event.position())
        elif not drag:
            at = self.point_at(event.position())
            if self.chart.slider is not None:
                self._before = self.chart.slider.at
                self._slide_to(event.position().x())
            elif at is not None and self._spots.key(at) is not None:
                self.picked.emit(self._spots.key(at))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Open the point on its own; elsewhere show all of the chart again."""
        at = self.point_at(event.position()) if self.chart.slider is None else None
        if at is not None and self._spots.key(at) is not None:
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
        inner = panel is not None and panel.inner.contains(at - QPointF(self._view.pos()))
        here = self.point_at(at) if inner else None
        key = None if here is None else self._spots.key(here)
        shape = Qt.CursorShape.ArrowCursor
        if self._on_slider(at):
            shape = Qt.CursorShape.SplitHCursor
        elif key is not None:
            shape = Qt.CursorShape.PointingHandCursor
        elif inner:
            shape = Qt.CursorShape.CrossCursor
        self.setCursor(shape)
        if key is not None or self.ringed is not None:
            self.hovered.emit(key)
        self._go(here)

    def _zoom_into(self, one: QPointF, other: QPointF) -> None:
        """Show what lies between two places; along one side alone where the other is thin."""
        panel = self.panel_at(one)
        if panel is None:
            return
        off = QPointF(self._view.pos())
        (xa, ya), (xb, yb) = panel.value(one - off), panel.value(other - off)
        x0, x1, y0, y1 = panel.range
        if abs(one.x() - other.x()) > 2 * GRAB:
            x0, x1 = sorted((max(x0, min(xa, x1)), max(x0, min(xb, x1))))
        if abs(one.y() - other.y()) > 2 * GRAB:
            y0, y1 = sorted((max(y0, min(ya, y1)), max(y0, min(yb, y1))))
        panel.look(x0, x1, y0, y1)
        self._annotate()

    # --- the slider -------------------------------------------------------------------------------

    def _on_slider(self, at: QPointF) -> bool:
        x = self._slider_x()
        held = self.chart.slider is not None and self._handle.geometry().contains(at.toPoint())
        return held or (x is not None and abs(at.x() - x) <= GRAB)

    def _slide_to(self, x: float) -> None:
        slider = self.chart.slider
        assert slider is not None
        value = self.panels[0].value(QPointF(x - self._view.x(), 0))[0]
        self._slide(int(np.abs(np.asarray(slider.stops, float) - value).argmin()))

    def _slide(self, stop: int) -> None:
        slider = self.chart.slider
        assert slider is not None
        stop = max(0, min(stop, len(slider.stops) - 1))
        if stop != slider.at:
            begun, self._begun = self._begun, True
            self.slid.emit(stop, begun)

    # --- keys -------------------------------------------------------------------------------------

    def event(self, event: QEvent) -> bool:
        """Its keys are its own while it has the keyboard, not those of the window."""
        if (
            isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.ShortcutOverride
            and self._wants(event)
        ):
            event.accept()
            return True
        return super().event(event)

    def _wants(self, event: QKeyEvent) -> bool:
        held = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        key = event.key()
        if held == Qt.KeyboardModifier.ShiftModifier:
            return key in ARROWS or key in ZOOMS
        if held != Qt.KeyboardModifier.NoModifier:
            return False
        if key == Qt.Key.Key_Escape:
            return self._here is not None
        slid = self.chart.slider is not None and key in PAGES
        return key in ARROWS or key in ENDS or key in ZOOMS or key == Qt.Key.Key_0 or slid

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows walk the points or move the slider; + and − zoom, Shift and arrows move, 0 shows
        all; Return opens the chosen point, Esc lets go."""
        key, slider = Qt.Key(event.key()), self.chart.slider
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        panel = self._panel_of_keys()
        if panel is None or not (
            self._wants(event) or key in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        ):
            super().keyPressEvent(event)
        elif key in ZOOMS:
            panel.zoom(ZOOMS[key], None)
            self._annotate()
        elif key == Qt.Key.Key_0:
            self.reset()
        elif shift and key in ARROWS:
            dx, dy = ARROWS[key]
            panel.pan(-dx * panel.inner.width() / 8, -dy * panel.inner.height() / 8)
            self._annotate()
        elif key == Qt.Key.Key_Escape:
            self._go(None)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.entered.emit()
        elif slider is not None:
            self._begun = False
            here = slider.at if slider.at is not None else 0
            if key in ENDS:
                self._slide(0 if key == Qt.Key.Key_Home else slider.home)
            else:
                dx, dy = ARROWS.get(key, (0, 0))
                self._slide(here + dx - dy + PAGES.get(key, 0))
        elif len(self._spots) and key in ENDS:
            self._take(0 if key == Qt.Key.Key_Home else len(self._spots) - 1)
        elif len(self._spots):
            self._walk(*ARROWS[key])

    def _panel_of_keys(self) -> PlotItems | None:
        """The plot of the point that is told of, else the first."""
        if not self.chart.plots or not self.panels:
            return None
        here = self._here if self._here is not None else self._spots.find(self.chosen)
        return self.panels[0 if here is None else int(self._spots.panel[here])]

    def focusInEvent(self, event: QFocusEvent) -> None:
        """The ring around it, and the point it tells of."""
        super().focusInEvent(event)
        self._place_handle()
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """No ring, and nothing is told of."""
        super().focusOutEvent(event)
        self._go(None)
        self._place_handle()
        self.update()


__all__ = ["ChartWidget", "graphics", "ink"]
