"""Controls side by side, in as many lines as they take."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QMargins, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

GAP = 6  # px between two of them


class Flow(QWidget):
    """Left to right, a new line where one is full; what is hidden takes no room.

    No QLayout: those written in Python keep items that Qt deletes with the window, and whose
    addresses the next widgets may get.
    """

    def __init__(self, edges: QMargins) -> None:
        super().__init__()
        self._edges = edges
        self._shown: list[QWidget] = []
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def add(self, widget: QWidget) -> None:
        """One more at the end."""
        hidden = widget.testAttribute(Qt.WidgetAttribute.WA_WState_ExplicitShowHide)
        widget.setParent(self)
        widget.setVisible(not hidden)
        self._shown.append(widget)

    def hasHeightForWidth(self) -> bool:
        """A narrow one has more lines."""
        return True

    def heightForWidth(self, width: int) -> int:
        """The height of so many lines."""
        return self._placed(width, move=False)

    def sizeHint(self) -> QSize:
        """All in the lines that the width it has takes."""
        return QSize(self.minimumSizeHint().width(), self.heightForWidth(max(1, self.width())))

    def minimumSizeHint(self) -> QSize:
        """The widest of them."""
        wide = max((one.sizeHint().width() for one in self._shown if not one.isHidden()), default=0)
        return QSize(wide, 0).grownBy(self._edges)

    def event(self, event: QEvent) -> bool:
        """One of them came, went or has another size."""
        if event.type() == QEvent.Type.LayoutRequest:
            self._placed(self.width(), move=True)
            self.updateGeometry()
        return super().event(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Other widths have other lines."""
        super().resizeEvent(event)
        self._placed(self.width(), move=True)

    def _placed(self, width: int, move: bool) -> int:
        inside = QRect(0, 0, width, 0).marginsRemoved(self._edges)
        x, y, high = inside.x(), inside.y(), 0
        for one in self._shown:
            if one.isHidden():
                continue
            size = one.sizeHint().expandedTo(one.minimumSize()).boundedTo(one.maximumSize())
            if x > inside.x() and x + size.width() > inside.right() + 1:
                x, y, high = inside.x(), y + high + GAP, 0
            if move:
                size.setWidth(min(size.width(), max(1, inside.width())))
                one.setGeometry(QRect(QPoint(x, y), size))
            x, high = x + size.width() + GAP, max(high, size.height())
        return y + high + self._edges.bottom()
