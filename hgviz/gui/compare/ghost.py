"""What the Compare page looks like, faintly, while there is nothing to compare with."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from hgviz.gui import theme

SIDE, APART = 120, 44  # px of a map, and between two
CELLS = 8


class Ghost(QWidget):
    """Two blank maps and their difference."""

    def __init__(self) -> None:
        super().__init__()
        self.setFixedSize(3 * SIDE + 2 * APART + 2, SIDE + 2)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Three frames with the cells that a causal map has; a minus and an equals sign."""
        now, cell = theme.current(), SIDE / CELLS
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            for number in range(3):
                left = 1 + number * (SIDE + APART)
                painter.setPen(QPen(now.edge, 1))
                painter.setBrush(now.raised)
                painter.drawRoundedRect(QRectF(left, 1, SIDE, SIDE), 3, 3)
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(now.line)
                for row in range(CELLS):
                    for column in range(row + 1):
                        box = QRectF(left + column * cell, 1 + row * cell, cell, cell)
                        painter.drawRect(box.adjusted(1.5, 1.5, -1.5, -1.5))
            painter.setFont(theme.font(1.3))
            painter.setPen(now.secondary)
            for number, sign in enumerate("−="):
                left = 1 + SIDE + number * (SIDE + APART)
                box = QRectF(left, 0, APART, SIDE)
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, sign)


__all__ = ["Ghost"]
