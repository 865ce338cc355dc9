"""The tables of the Prune page: whole rows are chosen, no grid, the first column takes the rest."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QStyle, QTableView

from hgviz.gui import theme

ROW = 30  # px
LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
KEYS = (
    Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Home,
    Qt.Key.Key_End, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown, Qt.Key.Key_Space, *ENTER,
)  # fmt: skip

Index = QModelIndex | QPersistentModelIndex


class RowTable(QTableView):
    """A table of rows; a subclass says in `fit` how wide its columns are. told: all that is to be
    said of the row that the keyboard comes to."""

    told = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setShowGrid(False)
        self.setFrameShape(QTableView.Shape.NoFrame)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(ROW)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTabKeyNavigation(False)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setStyleSheet(
            "QHeaderView { background: transparent; border: 0; }"
            "QHeaderView::section { background: transparent; border: 0; padding: 0 8px; }"
            "QHeaderView::section:first { padding-left: 16px; }"
        )
        header.setFont(theme.font(0.92, 500))
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setMinimumSectionSize(0)

    def fit(self) -> None:
        """Columns for the width there is."""
        raise NotImplementedError

    def currentChanged(self, current: Index, previous: Index) -> None:
        """Tell of the row, too."""
        super().currentChanged(current, previous)
        if self.hasFocus():
            self._tell(current)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Tell of the row that is chosen."""
        super().focusInEvent(event)
        self._tell(self.currentIndex())

    def _tell(self, index: Index) -> None:
        said = index.sibling(index.row(), 0).data(Qt.ItemDataRole.AccessibleDescriptionRole)
        if said:
            self.told.emit(said.replace("\n", " · "))

    def share(self, wide: tuple[int, ...], hidden: frozenset[int], scale: float = 1.0) -> None:
        """So many px for each column that is not hidden; the first takes what they leave."""
        room = self.viewport().width()
        for column, one in enumerate(wide):
            self.setColumnHidden(column, column in hidden)
            if column and column not in hidden:
                self.setColumnWidth(column, round(one * scale))
                room -= round(one * scale)
        self.setColumnWidth(0, max(60, room))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the columns."""
        super().resizeEvent(event)
        if self.model() is not None and self.model().columnCount():
            self.fit()

    def event(self, event: QEvent) -> bool:
        """Keep the keys that walk and act here from the window's shortcuts."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride:
            plain = not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
            if plain and event.key() in KEYS:
                event.accept()
                return True
        return super().event(event)


def ground(painter: QPainter, box: object, state: QStyle.StateFlag) -> None:
    """The tint of the chosen row, and the ring where the keyboard is."""
    now = theme.current()
    if state & QStyle.StateFlag.State_Selected:
        painter.fillRect(box, now.mark_tint)  # type: ignore[call-overload]
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(now.press, 1.5))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(box.adjusted(1, 1, -2, -2))  # type: ignore[attr-defined]
