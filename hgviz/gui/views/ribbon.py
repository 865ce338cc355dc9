"""All of a long text in one thin line, and in it the part on screen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QImage, QPainter, QPen

from hgviz import palettes
from hgviz.core import Display
from hgviz.gui import theme
from hgviz.gui.views.cells import Line, Ruler


def draw(
    painter: QPainter,
    rect: QRectF,
    ruler: Ruler,
    line: Line,
    display: Display,
    queries: tuple[int, int] | None,
) -> None:
    """The weights of a row, the largest where several share a pixel; the query in orange."""
    now = theme.current()
    painter.fillRect(rect, now.unseen)
    if line.weights is not None and not line.off and rect.width() >= 1:
        array = pixels(line, display, int(rect.width()), now.dark)
        image = QImage(array.data, len(array), 1, 4 * len(array), QImage.Format.Format_RGBA8888)
        painter.drawImage(rect, image)
    if queries is not None:
        part = float(ruler.edges[queries[1]] / ruler.edges[-1])
        left = rect.left() + part * rect.width()
        painter.fillRect(QRectF(left - 1, rect.top(), 3, rect.height()), now.mark)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(now.text, 1.5))
    left = rect.left() + ruler.offset / ruler.length * rect.width()
    wide = max(6.0, ruler.room / ruler.length * rect.width())
    painter.drawRoundedRect(QRectF(left, rect.top() - 1, wide, rect.height() + 2), 2, 2)


def pixels(line: Line, display: Display, count: int, dark: bool) -> NDArray[np.uint8]:
    """uint8 (count, 4): red, green, blue, and 0 where nothing is seen."""
    assert line.weights is not None
    bounds = np.arange(count) * len(line.weights) // count
    starts, which = np.unique(bounds, return_inverse=True)
    values = np.maximum.reduceat(line.weights, starts)
    if line.signed:
        low = np.minimum.reduceat(line.weights, starts)
        values = np.where(values >= -low, values, low)
    table = palettes.colours(palettes.suited(display.palette, line.signed), dark)
    placed = palettes.place(values, line.limits, display.scale, line.signed)
    out = np.full((len(starts), 4), 255, np.uint8)
    out[:, :3] = palettes.paint(placed, table)
    if line.seen is not None:
        out[~np.maximum.reduceat(line.seen, starts)] = 0
    return np.ascontiguousarray(out[which])
