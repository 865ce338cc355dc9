"""The whole of a map in a corner of its picture, with a frame around the part on screen."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QImage, QPainter, QPen

from hgviz.gui import ink, theme
from hgviz.gui.views.viewport import Viewport

MARGIN, DOWN = 13, 46  # px to the right edge of the map, and to its top: below the chip
SMALLEST = 64  # px: a thumbnail smaller than this is drawn larger by whole numbers


def place(rect: QRectF, thumb: QImage) -> QRectF:
    """At the right below the chip, where a causal map has nothing to see; empty without room."""
    times = max(1, SMALLEST // max(1, thumb.width(), thumb.height()))
    width, height = thumb.width() * times, thumb.height() * times
    if width + 2 * MARGIN > rect.width() or height + DOWN + MARGIN > rect.height():
        return QRectF()
    return QRectF(rect.right() - MARGIN - width, rect.top() + DOWN, width, height)


def draw(painter: QPainter, box: QRectF, thumb: QImage, view: Viewport) -> None:
    """The thumbnail, pixel for pixel, and the frame."""
    now = theme.current()
    ink.shadow(painter, box, 2)
    ink.unseen(painter, box, view.ratio)
    painter.drawImage(box, thumb)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(now.edge, 1))
    painter.drawRect(box.adjusted(-0.5, -0.5, 0.5, 0.5))
    down, across = view.down, view.across
    part = QRectF(
        box.x() + across.start / across.length * box.width(),
        box.y() + down.start / down.length * box.height(),
        max(5.0, across.size / across.length * box.width()),
        max(5.0, down.size / down.length * box.height()),
    )
    painter.save()
    painter.setClipRect(box)
    for width, colour in ((3, Qt.GlobalColor.black), (1, Qt.GlobalColor.white)):
        painter.setPen(QPen(colour, width))
        painter.drawRect(part)
    painter.restore()


def view_at(view: Viewport, box: QRectF, spot: QPointF) -> Viewport:
    """The view moved so that a spot of the inset is in its middle."""
    x = (spot.x() - box.x()) / box.width() * view.across.length - view.across.size / 2
    y = (spot.y() - box.y()) / box.height() * view.down.length - view.down.size / 2
    return view.panned(round(view.down.start - y), round(view.across.start - x))
