"""A chart whose points tell what they are: to the pointer, to the arrow keys and to readers."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from hgviz.gui import theme
from hgviz.gui.rows import walks
from hgviz.gui.views.cellcard import CellCard
from hgviz.gui.views.ink import focus_ring

NEAR = 18  # px from a point at which the pointer is at it
STEPS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Up: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_Down: 1}


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a chart that says something, the first line first of all."""

    at: QPointF
    lines: tuple[str, ...]


class Chart(QWidget):
    """Draws what it is given, and tells of one point: that under the pointer, or that which arrows
    came to. pointed: the same in a line, "" for none."""

    pointed = Signal(str)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(name)
        self.card = CellCard(self)
        self.spots: list[Spot] = []
        self.content: Any = None
        self._here: int | None = None  # which of spots

    def show_content(self, content: Any) -> None:
        """Draw this from now on."""
        self.content = content
        self._go(None)

    def paint_chart(self, painter: QPainter) -> None:
        """What a subclass draws; it leaves spots."""
        raise NotImplementedError

    def paintEvent(self, event: QPaintEvent) -> None:
        """The chart, and a ring around the point that is told of."""
        if self.content is None:
            return
        self.spots = []
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self.paint_chart(painter)
            if self._here is not None and self._here < len(self.spots):
                painter.setPen(QPen(theme.current().mark, 2))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawEllipse(self.spots[self._here].at, 8, 8)
            if self.hasFocus():
                focus_ring(painter, QRectF(self.rect()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Tell of the nearest place."""
        at = event.position()
        far = [abs(one.at.x() - at.x()) + abs(one.at.y() - at.y()) for one in self.spots]
        near = min(range(len(far)), key=far.__getitem__, default=None)
        self._go(near if near is not None and far[near] <= NEAR else None)

    def leaveEvent(self, event: QEvent) -> None:
        """Nothing is pointed at."""
        self._go(None)

    def event(self, event: QEvent) -> bool:
        """Arrows walk its points while it has the keyboard, and Esc lets go of one."""
        escaped = (
            isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride
            and event.key() == Qt.Key.Key_Escape and self._here is not None
        )  # fmt: skip
        if escaped or walks(event):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """The next point or the one before, in the order of what is drawn; the first, the last."""
        key, last = event.key(), len(self.spots) - 1
        if last < 0:
            super().keyPressEvent(event)
        elif key in STEPS:
            step = STEPS[Qt.Key(key)]
            here = self._here if self._here is not None else -1 if step > 0 else last + 1
            self._go(max(0, min(last, here + step)))
        elif key in (Qt.Key.Key_Home, Qt.Key.Key_End):
            self._go(0 if key == Qt.Key.Key_Home else last)
        elif key == Qt.Key.Key_Escape and self._here is not None:
            self._go(None)
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """The ring around the chart."""
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """No ring, and nothing is told of."""
        super().focusOutEvent(event)
        self._go(None)
        self.update()

    def _go(self, here: int | None) -> None:
        """Tell of another point, None for none."""
        if here == self._here:
            self.update()
            return
        self._here = here
        if here is None:
            self.card.hide()
            self.pointed.emit("")
        else:
            spot = self.spots[here]
            first, *rest = map(escape, spot.lines)
            self.card.say("<br>".join((f"<b>{first}</b>", *rest)))
            box = QRectF(spot.at.x() - 4, spot.at.y() - 4, 8, 8)
            self.card.stand(box, QRect(), QRectF(self.rect()))
            words = "   ·   ".join(spot.lines)
            self.setAccessibleDescription(words)
            self.pointed.emit(words)
        self.update()

    def changeEvent(self, event: QEvent) -> None:
        """Another theme."""
        if event.type() == QEvent.Type.PaletteChange:
            self.update()
        super().changeEvent(event)


__all__ = ["Chart", "Spot"]
