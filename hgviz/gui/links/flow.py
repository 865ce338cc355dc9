"""A layout of controls side by side, in as many lines as they take."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget


class Flow(QLayout):
    """Left to right, a new line where one is full."""

    def __init__(self, parent: QWidget | None = None, gap: int = 8) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self.setSpacing(gap)

    def addItem(self, item: QLayoutItem) -> None:
        """One more at the end."""
        self._items.append(item)

    def count(self) -> int:
        """How many there are."""
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        """One of them, None beyond the last."""
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        """Take one away."""
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        """None: what is there takes the room it needs."""
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        """A narrow one has more lines."""
        return True

    def heightForWidth(self, width: int) -> int:
        """The height of so many lines."""
        return self._placed(QRect(0, 0, width, 0), move=False)

    def setGeometry(self, rect: QRect) -> None:
        """Place everything."""
        super().setGeometry(rect)
        self._placed(rect, move=True)

    def sizeHint(self) -> QSize:
        """At least the widest of them."""
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        """The widest of them."""
        size = QSize()
        for item in self._items:
            size = size.expandedTo(item.minimumSize())
        edges = self.contentsMargins()
        return size + QSize(edges.left() + edges.right(), edges.top() + edges.bottom())

    def _placed(self, rect: QRect, move: bool) -> int:
        edges = self.contentsMargins()
        inside = rect.marginsRemoved(edges)
        x, y, high = inside.x(), inside.y(), 0
        for item in self._items:
            if item.isEmpty():
                continue
            size = item.sizeHint()
            if x > inside.x() and x + size.width() > inside.right() + 1:
                x, y, high = inside.x(), y + high + self.spacing(), 0
            if move:
                size.setWidth(min(size.width(), inside.width()))
                item.setGeometry(QRect(QPoint(x, y), size))
            x, high = x + size.width() + self.spacing(), max(high, size.height())
        return y + high - rect.y() + edges.bottom()
