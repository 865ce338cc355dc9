"""Heads as points over any two metrics: levels by shape and colour, a click opens a head."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
)
from PySide6.QtWidgets import QWidget

from hgviz.core import HeadId
from hgviz.gui import theme
from hgviz.gui.language import tr
from hgviz.gui.prune.chart import LEFT, RIGHT, Axes, frame, ticks
from hgviz.gui.rows import walks
from hgviz.gui.views import words
from hgviz.gui.views.ink import faint, focus_ring
from hgviz.palettes import CATEGORICAL, CATEGORICAL_DARK

LEFT_OF, RIGHT_OF, ABOVE, UNDER = 60, 20, 30, 42  # px around the picture
SIZE = 4.6  # px from the middle of a mark to its edge
NEAR = 14.0  # px within which a point is meant
NAMED = 16  # points that are named where there is room
CROWD = 1000  # points of which none is named by itself
ROOM = 0.05  # of the axis, beyond the outermost points
SKIPPED = 1  # of the colours: orange means selected
ASIDE = 2.0  # how much dearer a step across is than one along the key that was pressed


@dataclass(frozen=True, slots=True)
class Point:
    """A head: its numbers across and up, its level, whether its layer stays there, what is said."""

    head: HeadId
    x: float
    y: float
    level: int
    stays: bool = True
    said: str = ""


@dataclass(frozen=True, slots=True)
class Cloud:
    """All points, what the axes are called, what the levels are, and how many heads have no point
    as they lack one of the numbers."""

    points: tuple[Point, ...] = ()
    across: str = ""
    up: str = ""
    levels: tuple[str, ...] = ()
    missing: int = 0


class Scatter(QWidget):
    """Paints a cloud; arrows walk from point to point."""

    picked = Signal(object)  # HeadId
    hovered = Signal(object)  # HeadId | None
    entered = Signal()  # the chosen head is wanted on its own

    def __init__(self) -> None:
        super().__init__()
        self.cloud = Cloud()
        self.chosen: HeadId | None = None
        self.ringed: HeadId | None = None
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumSize(200, 150)
        self.setAccessibleName(tr("Heads over two metrics"))

    def sizeHint(self) -> QSize:
        """About as large as it reads well."""
        return QSize(560, 300)

    def show_cloud(self, cloud: Cloud) -> None:
        """Show other points."""
        self.cloud = cloud
        self.setAccessibleDescription(self.said())
        self.update()

    def mark(self, chosen: HeadId | None, ringed: HeadId | None) -> None:
        """Which head is chosen, and which is pointed at in any pane."""
        if (chosen, ringed) != (self.chosen, self.ringed):
            self.chosen, self.ringed = chosen, ringed
            self.setAccessibleDescription(self.said())
            self.update()

    def sentence(self) -> str:
        """The picture in words."""
        if not self.cloud.points:
            return tr("No head has both numbers")
        return tr(
            "{heads}; across: {across}, {xs}; up: {up}, {ys}",
            heads=words.counted(len(self.cloud.points), "head"), across=self.cloud.across,
            up=self.cloud.up, xs=_range(self._xs), ys=_range(self._ys),
        )  # fmt: skip

    def said(self) -> str:
        """The picture in words, and the head that is chosen in it."""
        mine = next((one for one in self.cloud.points if one.head == self.chosen), None)
        own = "" if mine is None else mine.said.replace("\n", ", ")
        return ". ".join(filter(None, (self.sentence(), own)))

    # --- where things are -------------------------------------------------------------------------

    @property
    def _xs(self) -> list[float]:
        return [one.x for one in self.cloud.points]

    @property
    def _ys(self) -> list[float]:
        return [one.y for one in self.cloud.points]

    @property
    def axes(self) -> Axes:
        """From numbers to pixels."""
        box = QRectF(LEFT_OF, ABOVE, self.width() - LEFT_OF - RIGHT_OF, self.height() - ABOVE)
        box.setHeight(max(20.0, box.height() - UNDER))
        return Axes(box, *_ends(self._xs), *_ends(self._ys))

    def where(self, head: HeadId) -> QPointF | None:
        """The place of a head."""
        axes = self.axes
        found = (QPointF(axes.x(p.x), axes.y(p.y)) for p in self.cloud.points if p.head == head)
        return next(found, None)

    def at(self, place: QPointF) -> Point | None:
        """The nearest head, if it is meant."""
        axes = self.axes
        far = [(math.hypot(axes.x(p.x) - place.x(), axes.y(p.y) - place.y()), p)
               for p in self.cloud.points]  # fmt: skip
        best = min(far, key=lambda one: one[0], default=None)
        return best[1] if best is not None and best[0] <= NEAR else None

    def beside(self, dx: int, dy: int) -> HeadId | None:
        """The next head in a direction from the chosen one."""
        here = self.where(self.chosen) if self.chosen is not None else None
        if here is None:
            return self.cloud.points[0].head if self.cloud.points else None
        best, told = None, math.inf
        axes = self.axes
        for one in self.cloud.points:
            x, y = axes.x(one.x) - here.x(), axes.y(one.y) - here.y()
            along, across = x * dx + y * dy, abs(x * dy) + abs(y * dx)
            if one.head != self.chosen and along > 0.5 and along + ASIDE * across < told:
                best, told = one.head, along + ASIDE * across
        return best

    # --- what happens -----------------------------------------------------------------------------

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Name what is under the pointer."""
        one = self.at(event.position())
        self.setCursor(Qt.CursorShape.PointingHandCursor if one else Qt.CursorShape.ArrowCursor)
        self.hovered.emit(one.head if one else None)
        self.setToolTip(one.said if one else "")

    def leaveEvent(self, event: QEvent) -> None:
        """Nothing is pointed at any more."""
        self.hovered.emit(None)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose a head."""
        one = self.at(event.position())
        if one is not None and event.button() == Qt.MouseButton.LeftButton:
            self.picked.emit(one.head)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Open it on its own."""
        if self.at(event.position()) is not None:
            self.entered.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows walk, Return opens."""
        ways = {
            Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0),
            Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1),
        }  # fmt: skip
        key = Qt.Key(event.key())
        if key in ways:
            head = self.beside(*ways[key])
            if head is not None:
                self.picked.emit(head)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.entered.emit()
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        """Arrows are its own while it has the keyboard, not the text's."""
        if walks(event):
            event.accept()
            return True
        return super().event(event)

    # --- how it looks -----------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw axes, points, names."""
        now, axes = theme.current(), self.axes
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            if not self.cloud.points:
                painter.setFont(theme.font(0.92))
                painter.setPen(now.secondary)
                middle = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
                painter.drawText(QRectF(self.rect()), middle, self.sentence())
                return
            xs = ticks(axes.x0, axes.x1, max(2, min(10, int(axes.box.width() // 56))))
            ys = ticks(axes.y0, axes.y1, max(2, min(8, int(axes.box.height() // 34))))
            xs = [one for one in xs if axes.x0 <= one <= axes.x1]
            ys = [one for one in ys if axes.y0 <= one <= axes.y1]
            frame(painter, axes, xs, ys, _number, _number, self.cloud.across)
            painter.setFont(theme.font(0.85, 600))
            painter.setPen(now.text)
            painter.drawText(QRectF(14, 6, axes.box.width() / 2, 18), LEFT, self.cloud.up)
            self._legend(painter)
            if self.cloud.missing:
                painter.setFont(theme.font(0.85))
                painter.setPen(now.secondary)
                under = QRectF(0, axes.box.bottom() + 21, axes.box.right(), 16)
                painter.drawText(under, RIGHT, tr("{n:,} without", n=self.cloud.missing))
            places = {p.head: QPointF(axes.x(p.x), axes.y(p.y)) for p in self.cloud.points}
            for one in self.cloud.points:
                self._mark(painter, places[one.head], one.level, one.stays)
            self._rings(painter, places)
            self._names(painter, places)
            if self.hasFocus():
                focus_ring(painter, QRectF(self.rect()))

    def _mark(self, painter: QPainter, at: QPointF, level: int, stays: bool) -> None:
        ink = colour(level)
        shape = outline(level, at)
        painter.setPen(QPen(theme.current().pane, 1.0) if stays else QPen(ink, 1.6))
        painter.setBrush(faint(ink, 0.85) if stays else faint(theme.current().pane, 0.6))
        painter.drawPolygon(shape)

    def _rings(self, painter: QPainter, places: dict[HeadId, QPointF]) -> None:
        now = theme.current()
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for head, ink, wide in ((self.ringed, now.text, 1.5), (self.chosen, now.mark, 2.5)):
            if head is not None and head in places:
                painter.setPen(QPen(ink, wide))
                painter.drawEllipse(places[head], SIZE + 4.5, SIZE + 4.5)

    def _names(self, painter: QPainter, places: dict[HeadId, QPointF]) -> None:
        """The chosen head, the one pointed at, and those that stand apart, where there is room."""
        now, font = theme.current(), theme.font(0.85, 600)
        metrics = QFontMetricsF(font)
        painter.setFont(font)
        taken = [QRectF(p.x() - SIZE, p.y() - SIZE, 2 * SIZE, 2 * SIZE) for p in places.values()]
        within = QRectF(0, ABOVE - 10, self.width(), self.axes.box.height() + 10)
        first = [one for one in (self.chosen, self.ringed) if one in places]
        for number, head in enumerate(dict.fromkeys([*first, *_apart(places)])):
            asked, at = number < len(set(first)), places[head]
            wide = metrics.horizontalAdvance(str(head)) + 4
            spots = [
                QRectF(at.x() + SIZE + 4, at.y() - 8, wide, 16),
                QRectF(at.x() - SIZE - 4 - wide, at.y() - 8, wide, 16),
                QRectF(at.x() - wide / 2, at.y() - SIZE - 20, wide, 16),
            ]
            free = [
                spot
                for spot in spots
                if within.contains(spot) and not any(spot.intersects(one) for one in taken)
            ]
            if not free and not asked:
                continue
            box = (
                free[0] if free else next((one for one in spots if within.contains(one)), spots[0])
            )
            taken.append(box)
            if asked:
                painter.fillRect(box, faint(now.pane, 0.85))
            painter.setPen(
                now.mark_text if head == self.chosen else now.text if asked else now.secondary
            )
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, str(head))

    def _legend(self, painter: QPainter) -> None:
        """Which mark is which level, from the right end of the line above the picture."""
        shown = sorted({(one.level, one.stays) for one in self.cloud.points}, key=_order)
        if len(shown) < 2:
            return
        font = theme.font(0.85)
        metrics = QFontMetricsF(font)
        painter.setFont(font)
        named = [(level, stays, self._level(level, stays)) for level, stays in shown]
        wide = [metrics.horizontalAdvance(said) + 28 for _, _, said in named]
        room = self.width() - 40 - metrics.horizontalAdvance(self.cloud.up) * 1.15
        while named and sum(wide) > room:  # what does not fit is in the tooltips
            named.pop()
            wide.pop()
        x = self.width() - 8 - sum(wide)
        for (level, stays, said), step in zip(named, wide, strict=True):
            self._mark(painter, QPointF(x + 8, 15), level, stays)
            painter.setPen(theme.current().secondary)
            painter.drawText(QRectF(x + 17, 6, step, 18), LEFT, said)
            x += step

    def _level(self, level: int, stays: bool) -> str:
        name = self.cloud.levels[level] if level < len(self.cloud.levels) else str(level)
        return name if stays else tr("to {level}", level=name)


def _apart(places: dict[HeadId, QPointF]) -> list[HeadId]:
    """The heads whose nearest neighbours are furthest; none of very many."""
    if not 2 < len(places) <= CROWD:
        return []
    at = np.array([(one.x(), one.y()) for one in places.values()])
    far = np.hypot(*(at[:, None] - at).transpose(2, 0, 1))
    second = np.sort(far, axis=1)[:, 2]
    heads = list(places)
    return [heads[one] for one in np.argsort(-second, kind="stable")[:NAMED]]


def outline(level: int, at: QPointF, size: float = SIZE) -> QPolygonF:
    """The mark of a level: circle, square, triangle, diamond, triangle down, pentagon."""
    kinds = ((24, 0.0, 1.0), (4, 45.0, 1.2), (3, -90.0, 1.35), (4, 0.0, 1.25), (3, 90.0, 1.35),
             (5, -90.0, 1.15))  # fmt: skip
    corners, turn, more = kinds[level % len(kinds)]
    angles = (math.radians(turn + 360 * one / corners) for one in range(corners))
    reach = size * more
    return QPolygonF(
        [QPointF(at.x() + reach * math.cos(a), at.y() + reach * math.sin(a)) for a in angles]
    )


def colour(level: int) -> QColor:
    """The colour of a level, none of which means selected."""
    table = list(CATEGORICAL_DARK if theme.current().dark else CATEGORICAL)
    del table[SKIPPED]
    return QColor(table[level % len(table)])


def _order(one: tuple[int, bool]) -> tuple[bool, int]:
    return not one[1], one[0]


def _ends(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = ROOM * (high - low) or max(abs(high), 1.0) * ROOM
    return low - room, high + room


def _range(values: Sequence[float]) -> str:
    return tr("{low} to {high}", low=_number(min(values)), high=_number(max(values)))


def _number(value: float) -> str:
    return f"{value:,.3g}".replace("-", "−") if value else "0"
