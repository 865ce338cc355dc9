"""The card in the place of a map that is not there: hatched, and it says why."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QLabel, QSizePolicy, QVBoxLayout, QWidget

from hgviz.gui import ink, theme
from hgviz.gui.widgets import label

INSET = 16  # px of hatching around what is said, at least


class LackCard(QWidget):
    """What one side has and the other has not, in words over a hatching."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.what = label(weight=600)
        self.why = label(factor=0.92, kind="secondary")
        column = QVBoxLayout(self)
        column.setContentsMargins(2 * INSET, INSET, 2 * INSET, INSET)
        column.setSpacing(4)
        column.addStretch(1)
        for one in (self.what, self.why):
            one.setWordWrap(True)
            one.setAlignment(Qt.AlignmentFlag.AlignCenter)
            one.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
            column.addWidget(one)
        column.addStretch(1)
        self.hide()

    def say(self, what: str, why: str = "") -> None:
        """What is not there, and why."""
        self.what.setText(what)
        self.why.setText(why)
        self.why.setVisible(bool(why))
        self.setAccessibleName(" ".join(filter(None, (what, why))))

    def paintEvent(self, event: QPaintEvent) -> None:
        """The hatching, its frame, and plain ground under the words."""
        now, ratio = theme.current(), self.devicePixelRatioF()
        words = _written(self.what)
        if not self.why.isHidden():
            words = words.united(_written(self.why))
        with QPainter(self) as painter:
            rect = QRectF(self.rect())
            ink.unseen(painter, rect, ratio)
            painter.setPen(QPen(now.edge, 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(rect.adjusted(0.5, 0.5, -0.5, -0.5))
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(now.line, 1))
            painter.setBrush(now.pane)
            painter.drawRoundedRect(words.adjusted(-12, -8, 12, 8), 8, 8)


def _written(words: QLabel) -> QRectF:
    """Where the words of a label stand in it."""
    box = words.geometry()
    how = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
    return QRectF(words.fontMetrics().boundingRect(box, how, words.text()))
