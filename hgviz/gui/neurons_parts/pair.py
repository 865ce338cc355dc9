"""One query and one key, element by element: what each has there, and what they make of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF
from PySide6.QtGui import QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QToolTip, QWidget

from hgviz.gui import ink, theme
from hgviz.gui.language import tr
from hgviz.gui.neurons_parts.dissected import Dissected, number
from hgviz.gui.neurons_parts.paint import cells

PAD, LEFT, RIGHT = 16, 64, 72  # px: around, the names at the left, the sums at the right
CELL, BARS, GAP = 14, 44, 4  # px: the height of a row of cells, of the bars, between them
LOW = 24  # px: the bars where there are two groups, or little room


@dataclass(frozen=True, slots=True)
class Lane:
    """One row of the picture: numbers (d,) and how they are shown."""

    name: str
    values: NDArray[np.float64]
    limit: float
    bars: bool = False


class Pair(QWidget):
    """Rows of cells for query and key, bars for their products, the sum at the right."""

    def __init__(self) -> None:
        super().__init__()
        self.lanes: tuple[Lane, ...] = ()
        self._low = False
        self.setMouseTracking(True)
        self.setFixedHeight(self._high())

    def show_pair(self, found: Dissected | None, column: int | None) -> None:
        """Show a key of a row; None clears."""
        self.lanes = () if found is None or column is None else tuple(_lanes(found, column))
        self.setFixedHeight(self._high())
        named = ", ".join(f"{one.name} {number(float(one.values.sum()))}" for one in self._summed)
        self.setAccessibleName(tr("Element by element: {sums}", sums=named))
        self.update()

    def set_low(self, low: bool) -> None:
        """Make do with less height."""
        self._low = low
        self.setFixedHeight(self._high())

    @property
    def _summed(self) -> list[Lane]:
        return [one for one in self.lanes if one.bars]

    def _tall(self, lane: Lane) -> int:
        return CELL if not lane.bars else LOW if self._low or len(self._summed) > 1 else BARS

    def _high(self) -> int:
        lanes = sum(self._tall(one) + GAP for one in self.lanes) if self.lanes else 0
        return lanes + 12 if lanes else 2 * (CELL + GAP) + (LOW if self._low else BARS) + GAP + 12

    def _boxes(self) -> list[tuple[Lane, QRectF]]:
        y, found = 6.0, []
        wide = max(0, self.width() - 2 * PAD - LEFT - RIGHT)
        for lane in self.lanes:
            found.append((lane, QRectF(PAD + LEFT, y, wide, self._tall(lane))))
            y += self._tall(lane) + GAP
        return found

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw every lane with its name, and its sum where it is one of products."""
        now = theme.current()
        with QPainter(self) as painter:
            for lane, box in self._boxes():
                painter.setFont(theme.font(0.92))
                painter.setPen(now.secondary)
                name = QRectF(PAD, box.top(), LEFT - 8, box.height())
                painter.drawText(name, ink.TO_LEFT, lane.name)
                if not lane.bars:
                    cells(painter, box, lane.values, lane.limit)
                    continue
                _bars(painter, box, lane)
                painter.setFont(theme.font(weight=600))
                painter.setPen(now.text)
                sum_ = QRectF(box.right() + 8, box.top(), RIGHT - 8, box.height())
                painter.drawText(sum_, ink.TO_LEFT, f"Σ {number(float(lane.values.sum()))}")

    def event(self, event: QEvent) -> bool:
        """What an element is, under the pointer."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            QToolTip.showText(event.globalPos(), self.told_at(QPointF(event.pos())), self)
            return True
        return super().event(event)

    def told_at(self, place: QPointF) -> str:
        """The number of an element and what it is in every lane; "" beside them."""
        boxes = self._boxes()
        if not boxes or not boxes[0][1].width():
            return ""
        first = boxes[0][1]
        count = len(boxes[0][0].values)
        at = int((place.x() - first.left()) / first.width() * count)
        if not (0 <= at < count and place.x() >= first.left()):
            return ""
        rows = (f"{lane.name}: {number(float(lane.values[at]))}" for lane, _ in boxes)
        return "\n".join([tr("Element {n} of {total}", n=at, total=count), *rows])


def _lanes(found: Dissected, column: int) -> list[Lane]:
    """Query, key and products; those of the distance after them."""
    one, query = found.anatomy, found.anatomy.query
    near = one.elements(range(column, column + 1))
    far = query.with_distances(range(column, column + 1))
    groups = [(*query.names, near, found.products)]
    if far is not None and len(far.left) > 1:
        groups.append((*query.far_names, far, found.positions))
    lanes = []
    for first, second, part, limit in groups:
        for name, values in ((first, part.left), (second, part.right[0])):
            lanes.append(Lane(name, values, float(np.abs(values).max(initial=0.0)) or 1.0))
        lanes.append(Lane(f"{first} · {second}", part.products[0], limit or 1.0, bars=True))
    return lanes


def _bars(painter: QPainter, box: QRectF, lane: Lane) -> None:
    now = theme.current()
    negative, positive = ink.sides()
    count = len(lane.values)
    step, middle = box.width() / max(1, count), box.center().y()
    most = max(lane.limit, float(np.abs(lane.values).max(initial=0.0))) or 1.0
    gap = 1.0 if step >= 4 else 0.0
    for at, value in enumerate(lane.values.tolist()):
        tall = abs(value) / most * box.height() / 2
        top = middle - tall if value > 0 else middle
        colour = positive if value > 0 else negative
        painter.fillRect(QRectF(box.left() + at * step, top, max(0.5, step - gap), tall), colour)
    painter.fillRect(QRectF(box.left(), round(middle), box.width(), 1), now.edge)
