"""Where segments of unequal length end: marks over the text, and what belongs to no segment."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen, QPolygonF

from hgviz.core import Capture, Integers
from hgviz.gui import ink, theme
from hgviz.gui.language import tr

LANE = 12  # px above the text, for the marks
HALF, HIGH = 4.0, 6.0  # px: of a mark
NONE_YET = "in no segment yet"


def segment_ends(capture: Capture) -> Integers | None:
    """The tokens that close a segment, in order; None where no level has segments of unequal
    length."""
    uneven = next((one.index for one in capture.spec.levels if one.stride is None), None)
    if uneven is None:
        return None
    ends = capture.spans[uneven][:, 1]
    return ends[ends > 0] - 1


class Place(NamedTuple):
    """Where marks are drawn. x: the right edge of a token; lane and row: top and height of the
    marks and of the text; foot: where their lines end; shown: the tokens on screen."""

    x: Callable[[int], float]
    lane: tuple[float, float]
    row: tuple[float, float]
    foot: float
    shown: tuple[int, int]


def draw(painter: QPainter, ends: Integers, where: Place) -> None:
    """A line and a mark at the end of every segment on screen."""
    now, (first, last) = theme.current(), where.shown
    top, bottom = where.row[0] - 1, where.lane[0] + where.lane[1] - 1
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for token in ends[(ends >= first - 1) & (ends < last)].tolist():
        x = where.x(token) - 0.5
        for pen in (QPen(now.pane, 4), QPen(now.text, 2)):
            pen.setCapStyle(Qt.PenCapStyle.FlatCap)
            painter.setPen(pen)
            painter.drawLine(QPointF(x, top), QPointF(x, where.foot))
        painter.setPen(QPen(now.text, 1.2))
        painter.setBrush(now.text)
        corners = (x - HALF, bottom - HIGH), (x + HALF, bottom - HIGH), (x, bottom)
        painter.drawPolygon(QPolygonF([QPointF(*one) for one in corners]))
    painter.restore()


def nobody(painter: QPainter, box: QRectF, ratio: float) -> None:
    """What comes after the last segment: hatched, and said where there is room."""
    now = theme.current()
    ink.unseen(painter, box, ratio)
    font = theme.font(0.85)
    painter.setFont(font)
    said = tr(NONE_YET)
    if painter.fontMetrics().horizontalAdvance(said) + 8 <= box.width():
        painter.setPen(now.secondary)
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, said)


__all__ = ["LANE", "Place", "draw", "nobody", "segment_ends"]
