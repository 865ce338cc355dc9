"""Charts: what one shows is a value, which pyqtgraph draws."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Any, Literal

import numpy as np
from PySide6 import QtGui
from PySide6.QtCore import QEvent, QRectF, Qt, Signal
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from hgviz.gui import theme
from hgviz.gui.ink import CellCard, focus_ring
from hgviz.gui.language import tr
from hgviz.gui.theme import faint
from hgviz.gui.view import View
from hgviz.gui.widgets import PaneHead, label, vbox
from hgviz.palettes import CATEGORICAL, CATEGORICAL_DARK


def number(value: float) -> str:
    """A number on an axis, such as 87.5, −1.25 or 12,000."""
    return f"{value:,.4g}".replace("-", "−") if value else "0"


def count(value: float) -> str:
    """A count on an axis, such as 500, 6k or 1.5M; nothing between whole numbers."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}" if abs(value - round(value)) < 1e-9 else ""


def percent(value: float) -> str:
    """A share on an axis, such as 58 %."""
    return tr("{part} %", part=f"{100 * value:.4g}")


# --- what a chart shows ---------------------------------------------------------------------------

Values = Sequence[float] | np.ndarray
Colour = str | int  # the name of a colour of the theme, or the number of a series


@dataclass(frozen=True, slots=True)
class Axis:
    """One side of a plot, and all that can be shown of it."""

    low: float
    high: float
    title: str = ""
    words: Callable[[float], str] = number
    names: tuple[tuple[float, str], ...] = ()  # places that take the place of numbers

    @classmethod
    def around(cls, values: Values, room: float = 0.05, title: str = "", **more: Any) -> Axis:
        """An axis with all finite values and a share of room beyond the outermost."""
        finite = np.asarray(values, float)
        finite = finite[np.isfinite(finite)]
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
        air = room * (high - low) or max(abs(high), 1.0) * 0.05
        return cls(low - air, high + air, title, **more)


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A line through (x, y); name: its entry in the legend, "" for none."""

    x: Values
    y: Values
    colour: Colour = "press"
    width: float = 2.0
    style: Literal["solid", "dash", "dot"] = "solid"
    name: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """The area between low and high along x; name: its entry in the legend."""

    x: Values
    low: Values
    high: Values
    colour: Colour = "press"
    alpha: float = 0.2
    name: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Marks at (x, y)."""

    x: Values
    y: Values
    colour: Colour = "press"
    shape: int = 0  # of SHAPES
    size: float = 6.0  # px across, 0 for points that are read but not drawn
    hollow: bool = False
    words: Callable[[int], str] | None = None  # of the point at an index, under the pointer
    keys: tuple[Hashable, ...] = ()  # what the points stand for, such as heads
    name: str = ""  # their entry in the legend

    def index(self, key: Hashable) -> int | None:
        return self.keys.index(key) if key is not None and key in self.keys else None


class Intervals(Band):
    """A bar from low to high, with caps, at each x."""


@dataclass(frozen=True, slots=True)
class Note:
    """Text at (x, y); anchor: the point of the text that is there, (0, 0) its top left."""

    words: str
    x: float
    y: float
    colour: Colour = "text"
    anchor: tuple[float, float] = (0.5, 1.0)


Part = Line | Band | Points | Intervals | Note


@dataclass(frozen=True, slots=True)
class Plot:
    """Two axes and the parts drawn over them, the first undermost."""

    x: Axis
    y: Axis
    parts: tuple[Part, ...]
    title: str = ""

    def of(self, kind: type) -> list[Any]:
        return [part for part in self.parts if type(part) is kind]


@dataclass(frozen=True, slots=True, eq=False)
class Slider:
    """A line along x that moves from stop to stop."""

    stops: Values  # the x of each
    at: int | None  # its stop, None for none
    words: str  # on its handle
    home: int = 0  # the stop of the End key

    def nearest_stop(self, x: float) -> int:
        return int(np.abs(np.asarray(self.stops, float) - x).argmin())


@dataclass(frozen=True, slots=True)
class Chart:
    """Plots in rows, with a legend where two of their parts have names."""

    plots: tuple[Plot, ...] = ()
    words: str = ""  # the chart in a sentence
    slider: Slider | None = None
    of: Hashable = None  # a zoom stays for as long as this is the same
    by_x: bool = False  # whether the pointer reads the point nearest in x, however far above

    def legend(self) -> str:
        """The names of parts with their colours and shapes, as HTML; "" for fewer than two."""
        kinds = Points, Line, Band
        parts = [part for plot in self.plots for kind in kinds for part in plot.of(kind)]
        named = {part.name: part for part in parts if part.name}
        entries = []
        for name, part in named.items():
            shape = "━" if isinstance(part, Line) else "■"
            if isinstance(part, Points):
                shape = SHAPES[part.shape % len(SHAPES)][2][part.hollow]
            colour, words = ink(part.colour).name(), escape(name).replace(" ", "&nbsp;")
            entries.append(f'<span style="color:{colour}">{shape}</span>&nbsp;{words}')
        return "&nbsp;&nbsp; ".join(entries) if len(entries) > 1 else ""


# --- drawing with pyqtgraph -----------------------------------------------------------------------

SMALL = 0.85  # of the size of the window's letters: numbers, titles and notes
# a symbol of pyqtgraph, its size, and the letters that show it in a legend, filled and hollow
SHAPES = (
    ("o", 1.0, "●○"), ("s", 0.9, "■□"), ("t1", 1.15, "▲△"), ("d", 1.4, "◆◇"), ("t", 1.15, "▼▽"),
    ("star", 1.3, "★☆"),
)  # fmt: skip
MANY = 2000  # points of a line that are too many for smooth edges, and of a band to be drawn each
FINEST = 1e-4  # of an axis: no more can be zoomed into
NEAR = 16  # px from a point at which the pointer reads it


def ink(colour: Colour) -> QtGui.QColor:
    """A colour of the theme, or that of a series; colour-blind people can tell those apart."""
    if isinstance(colour, str):
        return QtGui.QColor(getattr(theme.current(), colour))
    table = CATEGORICAL_DARK if theme.current().dark else CATEGORICAL
    return QtGui.QColor(table[colour % len(table)])


@cache
def graphics() -> Any:
    """pyqtgraph, imported when something is first drawn."""
    import pyqtgraph

    # exitCleanup would walk all plots once more while the program ends, after Qt took them down;
    # a mouseRateLimit drops moves of the pointer, the last one too
    pyqtgraph.setConfigOptions(antialias=True, exitCleanup=False, mouseRateLimit=0)
    return pyqtgraph


def make_item(kind: type) -> Any:
    """The item of pyqtgraph that draws parts of a kind."""
    pg = graphics()
    if kind is Band:
        return pg.PlotCurveItem(fillLevel="enclosed", pen=None)
    return {Points: pg.ScatterPlotItem, Note: pg.TextItem}.get(kind, pg.PlotDataItem)()


def draw_part(item: Any, part: Part) -> None:
    """Bring the item of a part up to date."""
    pen, colour, pane = graphics().mkPen, ink(part.colour), theme.current().pane
    if isinstance(part, Line):
        x = np.asarray(part.x, float)
        ordered = bool((np.diff(x) >= 0).all())  # then only what is on screen is drawn of it
        item.setClipToView(ordered)
        item.setDownsampling(auto=ordered, method="peak")
        item.setData(x, np.asarray(part.y, float), antialias=len(x) < MANY)
        item.setPen(pen(colour, width=part.width, style=Qt.PenStyle[f"{part.style.title()}Line"]))
    elif isinstance(part, Intervals):
        line = pen(colour, width=2)
        item.setData(
            np.repeat(np.asarray(part.x, float), 2),
            np.stack([part.low, part.high], 1).reshape(-1).astype(float),
            connect="pairs", pen=line, symbol="_", symbolSize=9, symbolPen=line,
        )  # fmt: skip
    elif isinstance(part, Band):
        each = np.arange(0, len(part.x), len(part.x) // MANY + 1)  # of very many the widest
        x = np.asarray(part.x, float)[each]
        low, high = np.minimum.reduceat(part.low, each), np.maximum.reduceat(part.high, each)
        outline = np.concatenate([x, x[::-1]]), np.concatenate([low, high[::-1]])
        item.setData(*outline, antialias=len(x) < MANY // 2, brush=faint(colour, part.alpha))
    elif isinstance(part, Points):
        symbol, factor, _ = SHAPES[part.shape % len(SHAPES)]
        shown = slice(None if part.size else 0)
        item.setData(
            x=np.asarray(part.x, float)[shown], y=np.asarray(part.y, float)[shown], symbol=symbol,
            size=part.size * factor, pen=pen(colour, width=1.4) if part.hollow else pen(pane),
            brush=faint(pane, 0.7) if part.hollow else colour,
        )  # fmt: skip
    else:
        item.setText(part.words, colour)
        item.setFont(theme.font(SMALL, 600))
        item.fill = graphics().mkBrush(faint(pane, 0.8))
        item.textItem.document().setDocumentMargin(1)
        item.setAnchor(part.anchor)
        item.setPos(part.x, part.y)


@cache
def axis_class() -> Any:
    """pyqtgraph's axis, with the words of an Axis and room for those at its ends."""

    class WordAxis(graphics().AxisItem):  # type: ignore[misc]
        axis = Axis(0, 1)

        def boundingRect(self) -> QRectF:
            return super().boundingRect().adjusted(0, -9, 0, 9)

        def tickValues(self, low: float, high: float, size: float) -> Any:
            if self.axis.names:
                return [(1.0, [at for at, _ in self.axis.names if low <= at <= high])]
            return super().tickValues(low, high, size)

        def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
            names, room = dict(self.axis.names), self.width() / max(1, len(values)) - 8
            if not names:
                return [self.axis.words(at if abs(at) > 1e-6 * spacing else 0.0) for at in values]
            metrics, cut = QtGui.QFontMetricsF(theme.font(SMALL)), Qt.TextElideMode.ElideRight
            return [metrics.elidedText(names[at], cut, room) for at in values]

    return WordAxis


class PlotItems:
    """The items of one plot. They are made once and reused for whatever it shows next: none leaves
    the scene before Qt deletes it, so Python never deletes one in another thread."""

    def __init__(self, view: Any) -> None:
        pg = graphics()
        self.frame = pg.GraphicsLayout()
        self.frame.layout.setSpacing(0)
        self.frame.layout.setContentsMargins(0, 0, 0, 0)
        self.box = pg.ViewBox(enableMenu=False, defaultPadding=0)
        self.left = axis_class()("left", linkView=self.box)
        self.bottom = axis_class()("bottom", linkView=self.box)
        self.title = pg.LabelItem()
        for item, row, column in (
            (self.title, 0, 1), (self.left, 1, 0), (self.box, 1, 1), (self.bottom, 2, 1),
        ):  # fmt: skip
            self.frame.addItem(item, row, column)
        self.left.setGrid(255)
        self.left.setZValue(-200)  # its grid is behind what is drawn
        self.left.setStyle(tickTextOffset=6, tickLength=0)
        self.bottom.setStyle(tickLength=4)
        view.scene().addItem(self.frame)
        self.plot = Plot(Axis(0, 1), Axis(0, 1), ())
        self._items: dict[type, list[Any]] = {
            kind: [] for kind in (Line, Band, Points, Intervals, Note)
        }
        self.rings, self.name = self._add(make_item(Points), 50), self._add(make_item(Note), 45)
        self.slider = self._add(pg.InfiniteLine(movable=True), 40)

    def _add(self, item: Any, depth: float = 0) -> Any:
        item.setZValue(depth)
        self.box.addItem(item, ignoreBounds=True)
        return item

    def show(self, plot: Plot, keep: bool, below: str) -> None:
        """Draw another plot; keep: whether a zoom stays; below: HTML after the title of x."""
        zoom = self.box.viewRange() if keep and self.zoomed else None
        self.plot, now = plot, theme.current()
        self._show_axis(self.left, plot.y, None, now.line, escape(plot.y.title))
        self._show_axis(self.bottom, plot.x, now.edge, now.edge, escape(plot.x.title) + below)
        size = f"{theme.font(0.92).pixelSize()}px"
        self.title.setText(escape(plot.title), color=now.text, bold=True, size=size)
        self.title.setMaximumHeight(20 if plot.title else 0)
        for kind, items in self._items.items():
            parts = plot.of(kind)
            items += [self._add(make_item(kind)) for _ in parts[len(items) :]]
            for at, item in enumerate(items):
                item.setVisible(at < len(parts))
                if at < len(parts):
                    item.setZValue(plot.parts.index(parts[at]))
                    draw_part(item, parts[at])
        (x0, x1), (y0, y1) = self.ends
        finest = {"minXRange": FINEST * (x1 - x0), "minYRange": FINEST * (y1 - y0)}
        self.box.setLimits(xMin=x0, xMax=x1, yMin=y0, yMax=y1, **finest)
        self.look(*(zoom or self.ends))

    def _show_axis(self, item: Any, axis: Axis, line: Any, ticks: Any, title: str) -> None:
        """Give an axis its title and colours, and its numbers or named places as texts."""
        now, font = theme.current(), theme.font(SMALL)
        item.setPen(line)
        item.setTickPen(ticks)
        item.setTextPen(now.secondary)
        item.setTickFont(font)
        item.setStyle(tickAlpha=255, maxTickLevel=0, hideOverlappingLabels=40)
        item.setTickDensity(1.6)
        item.enableAutoSIPrefix(False)
        style = {"color": now.secondary.name(), "font-size": f"{font.pixelSize()}px"}
        item.setLabel(title or None, **style)
        item.showLabel(bool(title))
        item.axis, item.picture = axis, None
        item.update()

    @property
    def ends(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """All that can be shown along x and y."""
        x, y = self.plot.x, self.plot.y
        return (float(x.low), float(x.high)), (float(y.low), float(y.high))

    @property
    def zoomed(self) -> bool:
        near = 1e-6 * np.abs(np.diff(self.ends))
        return bool((np.abs(np.subtract(self.box.viewRange(), self.ends)) > near).any())

    def look(self, x: Sequence[float], y: Sequence[float]) -> None:
        self.box.setRange(xRange=x, yRange=y, padding=0)

    def nearest(self, place: Any, by_x: bool) -> tuple[Points, int] | None:
        """The point with words nearest to a place of the scene; None for none near it."""
        (x0, x1), (y0, y1) = self.box.viewRange()
        at, room = self.box.mapSceneToView(place), self.box.rect()
        found, least = None, np.inf if by_x else NEAR
        for points in self.plot.of(Points):
            if points.words is None or not len(points.x):
                continue
            aside = np.abs(np.asarray(points.x, float) - at.x()) * room.width() / (x1 - x0)
            above = np.abs(np.asarray(points.y, float) - at.y()) * room.height() / (y1 - y0)
            far = aside + 1e-3 * above if by_x else np.hypot(aside, above)
            if far.min() < least:
                found, least = (points, int(far.argmin())), far.min()
        return found

    def place(self, x: float, y: float) -> Any:
        return self.box.mapViewToScene(graphics().Point(x, y))


# --- the widget -----------------------------------------------------------------------------------

PointHere = tuple[PlotItems, Points, int]
HANDLE = 30  # px above the plots for the handle of the slider
LEAST, LOW = 250, 150  # px of width and of height that one of several plots wants
MOVES = {
    Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_Down: -1, Qt.Key.Key_Up: 1,
    Qt.Key.Key_PageDown: -5, Qt.Key.Key_PageUp: 5,
}  # fmt: skip


class ChartWidget(QWidget):
    """Draws a chart. The wheel zooms it, a drag moves it, a double click shows all of it again."""

    pointed = Signal(str)  # what the point under the pointer says, in a line, "" for none
    hovered = Signal(object)  # the key of the point under the pointer
    picked = Signal(object)  # the key of one that was clicked
    entered = Signal()  # it was clicked twice
    slid = Signal(int, bool)  # the slider's new stop, and whether a move that had begun goes on

    def __init__(self, name: str) -> None:
        super().__init__()
        self.chart = Chart()
        self.chosen: Hashable = None  # keys of points that have a ring
        self.ringed: Hashable = None
        self.plots: list[PlotItems] = []
        self.view: Any = None
        self._due = False
        self._here: PointHere | None = None  # the point under the pointer
        self._moving = False  # whether the slider has moved since it was taken
        self.legend = label(wrap=True, factor=SMALL, weight=500, margins=(8, 2, 8, 2))
        self.legend.setTextFormat(Qt.TextFormat.RichText)
        self.legend.hide()
        self.card, self.handle = CellCard(self), QLabel(self)
        self.handle.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.handle.hide()
        self.column = vbox(self, self.legend, margins=(3, 3, 3, 3), spacing=-1)  # 3: the focus ring
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(160, 90)
        self.setAccessibleName(name)

    def show_chart(self, chart: Chart) -> None:
        """Draw this chart from now on; while hidden, when it is next shown."""
        keep, self.chart = chart.of == self.chart.of, chart
        self._point_at(None)
        self._describe()
        self._due = True
        if self.isVisible():
            self._draw(keep)

    def mark(self, chosen: Hashable, ringed: Hashable = None) -> None:
        """Put rings around the points with these keys."""
        if (chosen, ringed) != (self.chosen, self.ringed):
            self.chosen, self.ringed = chosen, ringed
            self._describe()
            self._annotate()

    @property
    def words(self) -> str:
        """What the point under the pointer, or else the chosen one, says in a line."""
        every = [points for plot in self.chart.plots for points in plot.of(Points)]
        chosen = [(points, points.index(self.chosen)) for points in every]
        for points, at in [self._here[1:]] if self._here is not None else chosen:
            if at is not None and points.words is not None:
                return str(points.words(at)).replace("\n", " · ")
        return ""

    @property
    def shown(self) -> list[PlotItems]:
        return self.plots[: len(self.chart.plots)]

    @property
    def zoomed(self) -> bool:
        return any(items.zoomed for items in self.shown)

    def reset(self) -> None:
        for items in self.shown:
            items.look(*items.ends)

    def showEvent(self, event: QtGui.QShowEvent) -> None:
        super().showEvent(event)
        if self._due:
            self._draw(keep=True)

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self.view is not None:
            self._draw(keep=True)

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        if self.hasFocus():
            with QtGui.QPainter(self) as painter:
                focus_ring(painter, QRectF(self.rect()))

    def _draw(self, keep: bool) -> None:
        self._due = False
        plots, legend = self.chart.plots, self.chart.legend()
        if self.view is None:
            if not plots:
                return
            self.view = graphics().GraphicsView(self)
            for widget in (self.view, self.view.viewport()):  # a click gives the chart the keyboard
                widget.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
                widget.setFocusProxy(self)
            self.column.addWidget(self.view, 1)
            self.view.scene().sigMouseMoved.connect(self._move)
            self.view.scene().sigMouseClicked.connect(self._click)
            self.view.show()
            self.handle.raise_()
            self.card.raise_()
        self.view.setBackground(theme.current().pane)
        slides = self.chart.slider is not None  # its handle has the place of the legend
        self.legend.setText(legend)
        self.legend.setVisible(bool(legend) and not slides)
        while len(self.plots) < len(plots):
            items = PlotItems(self.view)
            items.slider.sigDragged.connect(self._drag)
            items.slider.sigPositionChangeFinished.connect(lambda: setattr(self, "_moving", False))
            items.box.sigRangeChanged.connect(self._annotate)
            items.box.sigResized.connect(self._annotate)
            self.plots.append(items)
        for items in self.plots:
            items.frame.setVisible(items in self.shown)
        for items, plot in zip(self.plots, plots, strict=False):
            items.show(plot, keep, f"&nbsp;&nbsp;&nbsp; {legend}" if slides else "")
        self._arrange()

    def _arrange(self) -> None:
        """Put the plots into as many rows as there is room for."""
        if self.view is None or not self.shown:
            return
        self.column.activate()
        top = HANDLE if self.chart.slider is not None else 8
        wide, high, plots = self.view.width(), self.view.height() - top - 2, len(self.shown)
        across = max(1, min(plots, wide // LEAST), -(-plots // max(1, high // LOW)))
        down = -(-plots // across)
        for at, items in enumerate(self.shown):
            items.frame.setGeometry(
                at % across * wide / across + 6, top + at // across * high / down,
                wide / across - 18, high / down,
            )  # fmt: skip
            items.frame.layout.activate()
        self._annotate()

    def _annotate(self) -> None:
        """Draw the rings, the name of the chosen point, the slider, and the card of a point."""
        now, slider = theme.current(), self.chart.slider
        for items in self.shown:
            rings, pen = list[dict[str, Any]](), graphics().mkPen
            items.name.hide()
            for points in items.plot.of(Points):
                here = self._here[2] if self._here and self._here[1] is points else None
                chosen, ringed = points.index(self.chosen), points.index(self.ringed)
                widths = (ringed, now.text, 1.5), (chosen, now.mark, 2.5), (here, now.mark, 2.0)
                for at, colour, width in widths:
                    if at is not None:
                        place = float(points.x[at]), float(points.y[at])
                        rings.append({"pos": place, "pen": pen(colour, width=width)})
                if chosen is not None:
                    place = float(points.x[chosen]), float(points.y[chosen])
                    draw_part(items.name, Note(f"   {self.chosen}", *place, "mark_text", (0, 0.5)))
                    items.name.show()
            items.rings.setData(rings, size=18, brush=None)
            items.slider.setVisible(slider is not None and slider.at is not None)
            if slider is not None and slider.at is not None:
                items.slider.setValue(float(slider.stops[slider.at]))
                items.slider.setPen(pen(now.mark, width=1.5))
                items.slider.setHoverPen(pen(now.mark, width=3))
        self._place_handle()
        self.card.hide()
        if self._here is not None:
            items, points, at = self._here
            first, *rest = map(escape, points.words(at).split("\n"))
            self.card.say("<br>".join((f"<b>{first}</b>", *rest)))
            place = items.place(points.x[at], points.y[at]) + self.view.pos()
            cell = QRectF(place.x() - 4, place.y() - 4, 8, 8)
            self.card.stand(cell, QRectF(self.rect()))

    def _place_handle(self) -> None:
        slider = self.chart.slider
        self.handle.setVisible(slider is not None and bool(self.shown))
        if slider is None or not self.shown:
            return
        now, (items, *_) = theme.current(), self.shown
        ground, text = (now.pane, now.secondary) if slider.at is None else (now.mark_text, now.pane)
        self.handle.setStyleSheet(
            f"background: {ground.name()}; color: {text.name()}; border-radius: 11px;"
            f" border: 1px solid {text.name()}; padding: 0px 11px;"
        )
        self.handle.setFont(theme.font(SMALL if slider.at is None else 0.92, 600))
        self.handle.setText(slider.words)
        self.handle.resize(self.handle.sizeHint().width(), 24)
        x = items.plot.x.low if slider.at is None else float(slider.stops[slider.at])
        left = self.view.x() + items.place(x, 0).x() - self.handle.width() / 2
        left = max(4.0, min(left, self.width() - self.handle.width() - 4.0))
        self.handle.move(round(left), self.view.y() + 1)

    def _describe(self) -> None:
        self.setAccessibleDescription(" · ".join(filter(None, (self.chart.words, self.words))))

    def _point(self, place: Any) -> PointHere | None:
        """The point that the pointer reads at a place of the scene."""
        for items in self.shown:
            near = items.nearest(place, self.chart.by_x)
            if near is not None and items.box.sceneBoundingRect().contains(place):
                return items, *near
        return None

    def _move(self, place: Any) -> None:
        here = self._point(place)
        key = _key(here)
        if key is not None or self.ringed is not None:
            self.hovered.emit(key)
        shape = Qt.CursorShape.ArrowCursor if key is None else Qt.CursorShape.PointingHandCursor
        self.view.viewport().setCursor(shape)
        self._point_at(here)

    def _point_at(self, here: PointHere | None) -> None:
        if here != self._here:
            self._here = here
            self.pointed.emit("" if here is None else self.words)
            self._describe()
            self._annotate()

    def _click(self, event: Any) -> None:
        """Choose the point, or move the slider; a double click opens the point or shows all."""
        place = event.scenePos()
        items = next((one for one in self.shown if one.frame.geometry().contains(place)), None)
        if items is None or event.button() != Qt.MouseButton.LeftButton:
            return
        key = _key(self._point(place))
        if event.double() and key is None:
            self.reset()
        elif event.double():
            self.entered.emit()
        elif self.chart.slider is not None:
            x = items.box.mapSceneToView(place).x()
            self._slide(self.chart.slider.nearest_stop(x))
        elif key is not None:
            self.picked.emit(key)

    def leaveEvent(self, event: QEvent) -> None:
        self.hovered.emit(None)
        self._point_at(None)

    def _drag(self, line: Any) -> None:
        before = self.chart.slider
        self._slide(before.nearest_stop(line.value()), self._moving)
        self._moving |= self.chart.slider is not before
        self._annotate()

    def _slide(self, stop: int, begun: bool = False) -> None:
        slider = self.chart.slider
        stop = max(0, min(stop, len(slider.stops) - 1))
        if stop != slider.at:
            self.slid.emit(stop, begun)

    @property
    def own_keys(self) -> Sequence[Qt.Key]:
        return () if self.chart.slider is None else (*MOVES, Qt.Key.Key_Home, Qt.Key.Key_End)

    def keyPressEvent(self, event: QtGui.QKeyEvent) -> None:
        slider, key = self.chart.slider, Qt.Key(event.key())
        is_plain = not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if slider is None or not is_plain or key not in self.own_keys:
            super().keyPressEvent(event)
            return
        ends = {Qt.Key.Key_Home: 0, Qt.Key.Key_End: slider.home}
        self._slide(ends[key] if key in ends else (slider.at or 0) + MOVES[key])


def _key(here: PointHere | None) -> Hashable:
    return here[1].keys[here[2]] if here is not None and here[1].keys else None


class ChartView(View):
    """A view of one chart: its head and the chart, which a subclass lays out."""

    def __init__(self, note: str = "") -> None:
        super().__init__()
        self.head, self.chart = PaneHead(tr(self.title), note), ChartWidget(tr(self.title))
        self.start_at(self.chart)

    @property
    def zoomed(self) -> bool:
        return self.chart.zoomed

    def fit(self) -> None:
        self.chart.reset()
