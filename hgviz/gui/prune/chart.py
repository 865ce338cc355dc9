"""The frame of a chart: axes from data to pixels, round ticks, quiet lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen, QPolygonF

from hgviz.gui import theme
from hgviz.gui.language import tr
from hgviz.gui.theme import faint
from hgviz.palettes import even_ticks

MIDDLE = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter

Points = Sequence[tuple[float, float]]
ticks = even_ticks  # the screen and paper say the same numbers


@dataclass(frozen=True, slots=True)
class Axes:
    """Data from (x0, y0) to (x1, y1) in a box of pixels."""

    box: QRectF
    x0: float
    x1: float
    y0: float
    y1: float

    def x(self, value: float) -> float:
        """Where a value of x stands."""
        return self.box.left() + (value - self.x0) / ((self.x1 - self.x0) or 1) * self.box.width()

    def y(self, value: float) -> float:
        """Where a value of y stands; what lies outside goes to the edge."""
        part = (value - self.y0) / ((self.y1 - self.y0) or 1)
        return self.box.bottom() - max(0.0, min(1.0, part)) * self.box.height()

    def value(self, x: float) -> float:
        """What x a pixel stands for."""
        return self.x0 + (x - self.box.left()) / (self.box.width() or 1) * (self.x1 - self.x0)

    def line(self, points: Points) -> QPolygonF:
        """Points as a line."""
        return QPolygonF([QPointF(self.x(x), self.y(y)) for x, y in points])

    def band(self, low: Points, high: Points) -> QPolygonF:
        """What lies between two lines."""
        return self.line([*low, *reversed(high)])


def frame(
    painter: QPainter,
    axes: Axes,
    xs: Sequence[float],
    ys: Sequence[float],
    said_x: Callable[[float], str],
    said_y: Callable[[float], str],
    title: str,
) -> None:
    """Horizontal lines with their numbers at the left, the x axis with its numbers and title."""
    now, box = theme.current(), axes.box
    font = theme.font(0.85)
    metrics = QFontMetricsF(font)
    painter.setFont(font)
    for value in ys:
        y = round(axes.y(value)) + 0.5
        painter.setPen(QPen(now.line, 1))
        painter.drawLine(QPointF(box.left(), y), QPointF(box.right(), y))
        painter.setPen(now.secondary)
        painter.drawText(QRectF(box.left() - 64, y - 9, 56, 18), RIGHT, said_y(value))
    painter.setPen(QPen(now.edge, 1))
    painter.drawLine(box.bottomLeft(), box.bottomRight())
    last = -math.inf
    for value in xs:
        said, x = said_x(value), axes.x(value)
        wide = metrics.horizontalAdvance(said)
        if x - wide / 2 < last + 8:
            continue
        last = x + wide / 2
        painter.setPen(QPen(now.edge, 1))
        painter.drawLine(QPointF(x, box.bottom()), QPointF(x, box.bottom() + 4))
        painter.setPen(now.secondary)
        painter.drawText(QRectF(x - 40, box.bottom() + 5, 80, 16), MIDDLE, said)
    painter.drawText(QRectF(box.left(), box.bottom() + 21, box.width(), 16), MIDDLE, title)


def area(painter: QPainter, shape: QPolygonF, colour: QColor, alpha: float) -> None:
    """A shape in a part of a colour."""
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(faint(colour, alpha))
    painter.drawPolygon(shape)


def stroke(
    painter: QPainter,
    line: QPolygonF,
    colour: QColor,
    width: float = 2.0,
    style: Qt.PenStyle = Qt.PenStyle.SolidLine,
) -> None:
    """A line."""
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(colour, width, style, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin))
    painter.drawPolyline(line)


def note(
    painter: QPainter, words: str, colour: QColor, at: QPointF, within: QRectF, weight: int = 600
) -> None:
    """Words beside a line, moved into the box, on the ground of the pane."""
    font = theme.font(0.85, weight)
    wide = QFontMetricsF(font).horizontalAdvance(words) + 6
    box = QRectF(at.x(), at.y() - 8, wide, 16)
    box.moveLeft(max(within.left(), min(box.left(), within.right() - wide)))
    painter.setFont(font)
    painter.fillRect(box, faint(theme.current().pane, 0.8))
    painter.setPen(colour)
    painter.drawText(box, Qt.AlignmentFlag.AlignCenter, words)


def count(value: float) -> str:
    """0, 500, 6k, 1.5M: a number on an axis."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def percent(value: float) -> str:
    """58 %, 57.5 %: a share on an axis."""
    return tr("{part} %", part=f"{100 * value:.4g}")
