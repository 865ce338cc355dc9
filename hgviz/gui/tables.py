"""Tables of rows that sort, and lists of keys."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import (
    QAbstractTableModel,
    QEvent,
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
    QSortFilterProxyModel,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QAbstractScrollArea,
    QFrame,
    QHeaderView,
    QStyle,
    QTableView,
)

from hgviz.core import Integers
from hgviz.gui import sentences, theme
from hgviz.gui.grid import Names
from hgviz.gui.language import tr
from hgviz.gui.widgets import shows_tip

# --- rows -----------------------------------------------------------------------------------------


SORT = Qt.ItemDataRole.UserRole  # what a model gives to be sorted by
ROW = 28  # px


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
        header.setDefaultAlignment(theme.TO_LEFT)
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

    def _moved(self, now: Index, before: Index) -> None:
        if now.isValid() and not self._quiet:
            self.walked.emit(self._sorted.mapToSource(now).row())

    def _entered(self, index: Index) -> None:
        self.entered.emit()


# --- rows -----------------------------------------------------------------------------------------


ROW_HEIGHT = 30  # px
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
        self.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
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


def ground(painter: QPainter, box: object, state: QStyle.StateFlag) -> None:
    """The tint of the chosen row, and the ring where the keyboard is."""
    now = theme.current()
    if state & QStyle.StateFlag.State_Selected:
        painter.fillRect(box, now.mark_tint)  # type: ignore[call-overload]
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(now.press, 1.5))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(box.adjusted(1, 1, -2, -2))  # type: ignore[attr-defined]


# --- lists of keys --------------------------------------------------------------------------------


HIGH, HEAD = 22, 28  # px: a row, the titles
PAD, KEY, KEY_LEAST = 16, 132, 84  # px: at both ends, the key and its place
ARROW_STEPS = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
PAGES = {Qt.Key.Key_PageUp: -1, Qt.Key.Key_PageDown: 1}


class KeyList(QAbstractScrollArea):
    """A subclass paints the rows on screen: a text of any length scrolls alike."""

    own_keys = (*ARROW_STEPS, *PAGES)
    picked = Signal(int)  # a column of the map

    def __init__(self) -> None:
        super().__init__()
        self.order: Integers = np.zeros(0, np.int64)  # columns of the map, from the top
        self.chosen: int | None = None
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setAutoFillBackground(False)

    def told_at(self, place: QPointF) -> str:
        """What is said of a place the pointer rests on."""
        raise NotImplementedError

    def put_in_order(self, order: Integers) -> None:
        """List these columns; the place in the list stays."""
        self.order = order
        self._fit()

    def choose(self, column: int | None) -> None:
        """Mark a key and bring it into sight."""
        moved, self.chosen = column != self.chosen, column
        if moved:
            self._reveal()
        self.viewport().update()

    @property
    def page(self) -> int:
        """Px of rows on screen."""
        return max(HIGH, self.viewport().height() - HEAD)

    def column_at(self, y: float) -> int | None:
        """The column of the map in the row at a height, None beside the rows."""
        place = int((y - HEAD + self.verticalScrollBar().value()) // HIGH)
        inside = y >= HEAD and 0 <= place < len(self.order)
        return int(self.order[place]) if inside else None

    def _place(self, column: int | None) -> int | None:
        """Where in the list a column stands."""
        there = np.flatnonzero(self.order == column)
        return int(there[0]) if column is not None and len(there) else None

    def _reveal(self) -> None:
        place = self._place(self.chosen)
        bar, top = self.verticalScrollBar(), (place or 0) * HIGH
        if place is not None and not bar.value() <= top <= bar.value() + self.page - HIGH:
            bar.setValue(top - self.page // 2)

    def _fit(self) -> None:
        bar = self.verticalScrollBar()
        bar.setRange(0, max(0, len(self.order) * HIGH - self.page))
        bar.setPageStep(self.page)
        bar.setSingleStep(HIGH)

    # --- what people do ---------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another number of rows fits."""
        super().resizeEvent(event)
        self._fit()
        self._reveal()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose the key under the pointer."""
        column = self.column_at(event.position().y())
        if column is not None:
            self.picked.emit(column)

    def viewportEvent(self, event: QEvent) -> bool:
        """The pointer rests, and a title or a row is told."""
        return shows_tip(event, self, self.told_at) or super().viewportEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show that keys act here."""
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Keys act elsewhere."""
        super().focusOutEvent(event)
        self.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """One key up or down, or a page."""
        key = Qt.Key(event.key())
        step = ARROW_STEPS.get(key) or PAGES.get(key, 0) * (self.page // HIGH)
        if not step or not len(self.order):
            super().keyPressEvent(event)
            return
        place = self._place(self.chosen)
        place = 0 if place is None else min(max(place + step, 0), len(self.order) - 1)
        self.picked.emit(int(self.order[place]))


def where(names: Names, column: int) -> str:
    """The number of a key and the word it is in; the number alone where it is the word."""
    start, end = (int(one) for one in names.spans[column])
    if end <= 0 and names.null:
        return tr(sentences.NULL)
    if end <= 0:
        return tr("place {number:,}", number=column)
    numbered = f"{start:,}" if end - start <= 1 else f"{start:,}–{end - 1:,}"
    around = sentences.word_at(names.word_spans, end - 1)
    if around is None or around[1] - around[0] <= end - start:
        return numbered
    return f"{numbered} {sentences.glyph(names.prompt, *around)}"


# --- values ---------------------------------------------------------------------------------------


Table = list[list[str]]


def span(first: int, last: int) -> str:
    """One cell by its number, several as Python writes a range."""
    return str(first) if last <= first else f"{first}:{last + 1}"
