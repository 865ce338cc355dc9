"""Elements as colours: blue for what takes away, red for what adds, the pane's own colour for 0."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from hgviz import palettes
from hgviz.gui import theme


def image_of(values: NDArray[np.float64], limit: float) -> QImage:
    """One pixel for every number of (rows, d)."""
    table = palettes.colours(palettes.suited("", True), theme.current().dark)
    placed = palettes.place(values, (-limit, limit), "sqrt", signed=True)
    pixels = np.ascontiguousarray(palettes.paint(placed, table))
    rows, wide = values.shape
    return QImage(pixels.data, wide, rows, 3 * wide, QImage.Format.Format_RGB888).copy()


def cells(painter: QPainter, box: QRectF, values: NDArray[np.float64], limit: float) -> None:
    """One row of numbers (d,) as cells side by side, sharp."""
    if len(values) and box.width() > 0:
        painter.drawImage(box, image_of(values[None], limit))
