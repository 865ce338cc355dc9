"""All heads by what they conduct of the answer, a row for each layer with what it attends."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QToolTip, QWidget

from hgviz import palettes
from hgviz.analysis.attribution import Attribution
from hgviz.core import HeadId, ModelSpec
from hgviz.gui import ink, theme
from hgviz.gui.language import tr
from hgviz.gui.rows import walks
from hgviz.gui.views import words

PAD, NAME, BAR, CELL, GAP = 16, 28, 150, 18, 2  # px
WIDEST = 64
ARROWS = {
    Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1),
}  # fmt: skip


class ConductanceWall(QWidget):
    """A cell for each head, red where it adds to the answer, blue where it takes away; a click
    opens it. Beside each row: the integrated gradients of what the layer attends."""

    picked = Signal(object)  # HeadId

    def __init__(self) -> None:
        super().__init__()
        self.found: Attribution | None = None
        self.spec: ModelSpec | None = None
        self.chosen: HeadId | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("What every head conducts of the answer"))

    def show_heads(self, found: Attribution | None, spec: ModelSpec | None) -> None:
        """Show an answer's heads; None clears."""
        self.found, self.spec = found, spec
        count = 0 if spec is None else sum(bool(one.heads) for one in spec.layers)
        self.setFixedHeight(count * (CELL + GAP) + 8)
        self.update()

    def choose(self, head: HeadId) -> None:
        """Frame the chosen head."""
        self.chosen = head
        self.setAccessibleDescription("" if self.found is None else self._said(head, self.found))
        self.update()

    def cells(self) -> list[tuple[HeadId, QRectF]]:
        """Where every head is."""
        if self.spec is None:
            return []
        layers = [one for one in self.spec.layers if one.heads]
        most = max(len(one.heads) for one in layers) if layers else 1
        bar = BAR if self.width() > 360 else 0
        room = self.width() - 2 * PAD - NAME - bar - (12 if bar else 0)
        wide = min(float(WIDEST), max(2.0, room / most))
        return [
            (HeadId(layer.index, head),
             QRectF(PAD + NAME + at * wide, 4 + row * (CELL + GAP), wide - GAP, CELL))
            for row, layer in enumerate(layers)
            for at, head in enumerate(layer.heads)
        ]  # fmt: skip

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw cells, names and bars."""
        found, now = self.found, theme.current()
        if found is None or self.spec is None:
            return
        table = palettes.colours(palettes.suited("", True), now.dark)
        most = max((abs(one) for one in found.heads.values()), default=0.0) or 1.0
        cells = self.cells()
        right = max((box.right() for _, box in cells), default=0.0)
        with QPainter(self) as painter:
            painter.setFont(theme.font(0.85))
            seen: set[int] = set()
            for head, box in cells:
                value = found.heads.get(head, 0.0)
                placed = palettes.place(np.array([value]), (-most, most), "sqrt", signed=True)
                painter.fillRect(box, QColor(*palettes.paint(placed, table)[0].tolist()))
                if head.layer not in seen:
                    seen.add(head.layer)
                    self._layer(painter, head.layer, box, right)
                if head in found.off:
                    ink.switched_off(painter, box, self.devicePixelRatioF())
                if head == self.chosen:
                    painter.setPen(QPen(now.mark, 2))
                    painter.drawRect(box)
            if self.hasFocus():
                ink.focus_ring(painter, QRectF(self.rect()))

    def _layer(self, painter: QPainter, layer: int, box: QRectF, right: float) -> None:
        """The number of a layer at the left, its bar at the right."""
        assert self.found is not None
        now = theme.current()
        painter.setPen(now.secondary)
        name = QRectF(PAD, box.top(), NAME - 6, box.height())
        painter.drawText(name, ink.TO_RIGHT, str(layer))
        layers, area = self.found.layers, QRectF(right + 12, box.top(), 0, box.height())
        area.setRight(min(self.width() - PAD, area.left() + BAR))
        if layers is None or layer not in layers or area.width() < 60:
            return
        most = max(abs(one) for one in layers.values()) or 1.0
        negative, positive = ink.sides()
        value, half = layers[layer], (area.width() - 50) / 2
        middle, long = area.left() + half, half * abs(value) / most
        left = middle if value > 0 else middle - long
        colour = positive if value > 0 else negative
        painter.fillRect(QRectF(left, area.top() + 4, long, area.height() - 8), colour)
        painter.fillRect(QRectF(round(middle), area.top(), 1, area.height()), now.edge)
        painter.setPen(now.text)
        painter.drawText(area, ink.TO_RIGHT, words.with_sign(value, 2))

    def head_at(self, place: QPointF) -> HeadId | None:
        """The head under a point."""
        return next((head for head, box in self.cells() if box.contains(place)), None)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Open the head under the pointer."""
        head = self.head_at(event.position())
        if head is not None:
            self.picked.emit(head)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows go to the head beside, above or below."""
        head = self.beside(*ARROWS.get(Qt.Key(event.key()), (0, 0)))
        if head is None:
            super().keyPressEvent(event)
        else:
            self.picked.emit(head)

    def beside(self, right: int, down: int) -> HeadId | None:
        """The head next to the chosen one, the last of a row that is shorter; None for none."""
        if self.spec is None or self.chosen is None or not (right or down):
            return None
        rows = [one for one in self.spec.layers if one.heads]
        at = next((n for n, one in enumerate(rows) if one.index == self.chosen.layer), None)
        if at is None or self.chosen.head not in rows[at].heads:
            return None
        place = rows[at].heads.index(self.chosen.head) + right
        row = rows[min(max(at + down, 0), len(rows) - 1)]
        return HeadId(row.index, row.heads[min(max(place, 0), len(row.heads) - 1)])

    def event(self, event: QEvent) -> bool:
        """What a head conducts, under the pointer; arrows are its own while it has the keyboard."""
        if walks(event):
            event.accept()
            return True
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            QToolTip.showText(event.globalPos(), self.told_at(QPointF(event.pos())), self)
            return True
        return super().event(event)

    def told_at(self, place: QPointF) -> str:
        """Such as: Head 3.5 conducts +0.712 of the answer."""
        head, found = self.head_at(place), self.found
        return "" if head is None or found is None else self._said(head, found)

    def _said(self, head: HeadId, found: Attribution) -> str:
        if head in found.off:
            return tr("Head {head} is switched off", head=head)
        amount = words.with_sign(found.heads.get(head, 0.0))
        return tr("Head {head} conducts {amount} of the answer", head=head, amount=amount)
