"""Tables whose rows are sorted by a click and walked by arrows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QAbstractTableModel, QEvent, QSortFilterProxyModel, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QFrame, QHeaderView, QTableView

if TYPE_CHECKING:
    from PySide6.QtCore import QModelIndex, QPersistentModelIndex

    Index = QModelIndex | QPersistentModelIndex

SORT = Qt.ItemDataRole.UserRole  # what a model gives to be sorted by
ROW = 28  # px
ARROWS = (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down)


def walks(event: QEvent) -> bool:
    """Whether a list keeps an arrow for its rows, which the window would take for the text."""
    if not isinstance(event, QKeyEvent) or event.type() != QEvent.Type.ShortcutOverride:
        return False
    return event.key() in ARROWS and not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier


class SortedTable(QTableView):
    """Rows of a model, which numbers them; by: the column they are sorted by first, -1 for none."""

    walked = Signal(int)  # a person came to this row of the model
    entered = Signal()  # the row at hand is wanted

    def __init__(self, rows: QAbstractTableModel, name: str, by: int) -> None:
        super().__init__()
        rows.setParent(self)
        self._rows = rows
        self._sorted = QSortFilterProxyModel(self)
        self._sorted.setSourceModel(rows)
        self._sorted.setSortRole(SORT)
        self._quiet = False
        self.setProperty("kind", "table")
        self.setModel(self._sorted)
        self.setSortingEnabled(True)
        self.sortByColumn(by, Qt.SortOrder.AscendingOrder)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAccessibleName(name)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(ROW)
        self.verticalHeader().setMinimumSectionSize(ROW)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        self.selectionModel().currentRowChanged.connect(self._moved)
        self.activated.connect(self._entered)

    @property
    def number(self) -> int | None:
        """The row at hand, as the model numbers it."""
        index = self.currentIndex()
        return self._sorted.mapToSource(index).row() if index.isValid() else None

    @property
    def order(self) -> list[int]:
        """The rows as the model numbers them, in the order that is shown."""
        shown = (self._sorted.index(row, 0) for row in range(self._sorted.rowCount()))
        return [self._sorted.mapToSource(one).row() for one in shown]

    def go_to(self, number: int | None) -> None:
        """Show a row as chosen without saying so; None: none is."""
        self._quiet = True
        if number is None:
            self.clearSelection()
        elif self.number != number:
            self.setCurrentIndex(self._sorted.mapFromSource(self._rows.index(number, 0)))
        self._quiet = False

    def event(self, event: QEvent) -> bool:
        """Arrows walk its rows while it has the keyboard, and letters stay those of the window."""
        if walks(event):
            event.accept()
            return True
        return super().event(event)

    def _moved(self, now: Index, before: Index) -> None:
        if now.isValid() and not self._quiet:
            self.walked.emit(self._sorted.mapToSource(now).row())

    def _entered(self, index: Index) -> None:
        self.entered.emit()


__all__ = ["ROW", "SORT", "SortedTable", "walks"]
