"""What floats beside a cell: its weight, from where, to where."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from hgviz.gui import theme

RADIUS = 8
APART = 22  # px between a cell and what is said about it
FINE = 4  # px: a map of smaller cells is hidden by what is said of one, where it is small, too


class Sentence(QLabel):
    """HTML beneath a map, in as many lines as it needs."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setWordWrap(True)
        self.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.setProperty("kind", "secondary")


class CellCard(QWidget):
    """A rounded card with a shadow; the pointer goes through it."""

    least = 200  # px of width

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._label = QLabel()
        self._label.setTextFormat(Qt.TextFormat.RichText)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 8, 14, 10)
        column.addWidget(self._label)
        self.hide()

    @property
    def empty(self) -> bool:
        """Whether it has nothing to say."""
        return not self._label.text()

    @property
    def text(self) -> str:
        """What it says, as HTML."""
        return self._label.text()

    def say(self, text: str) -> None:
        """HTML with everything from a text escaped."""
        self._label.setFont(theme.font())
        self._label.setText(text)

    def stand(self, cell: QRectF, taken: QRect, shown: QRectF) -> None:
        """Beside a cell, off its row and column, in the parent and off what is taken there, on what
        is shown of the map sooner than on what stands around it; hidden where there is no such
        place, and where it would hide most of a small map.
        """
        size, room = self.sizeHint(), self.parentWidget().rect()
        large = shown.width() > 1.1 * size.width() and shown.height() > 1.5 * size.height()
        places = [
            QRect(QPoint(round(x), round(y)), size)
            for x in (cell.right() + APART, cell.left() - APART - size.width())
            for y in (cell.bottom() + APART, cell.top() - APART - size.height())
        ]
        free = [one for one in places if room.contains(one) and not one.intersects(taken)]
        if free and (large or cell.width() >= FINE):
            free.sort(key=lambda one: not shown.contains(QRectF(one)))
            self.setGeometry(free[0])
        self.setVisible(bool(free) and (large or cell.width() >= FINE))

    def sizeHint(self) -> QSize:
        """As large as its words."""
        hint = self._label.sizeHint()
        return QSize(max(self.least, hint.width() + 28), hint.height() + 18)

    def paintEvent(self, event: QPaintEvent) -> None:
        """The card; its shadow lies within its own edge."""
        now = theme.current()
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(now.edge, 1))
            painter.setBrush(now.raised if now.dark else now.pane)
            painter.drawRoundedRect(
                QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), RADIUS, RADIUS
            )

    def changeEvent(self, event: QEvent) -> None:
        """Another theme."""
        if event.type() == QEvent.Type.PaletteChange:
            self.update()
        super().changeEvent(event)
