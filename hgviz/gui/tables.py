"""Tables: columns that say how to write, sort and paint a row, and the view that shows them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QEvent,
    QModelIndex,
    QPersistentModelIndex,
    QRectF,
    QSize,
    QSortFilterProxyModel,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QFocusEvent, QFont, QIcon, QKeyEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
)

from hgviz.gui import sentences, theme
from hgviz.gui.grid import Names
from hgviz.gui.language import tr
from hgviz.gui.widgets import tip

Index = QModelIndex | QPersistentModelIndex
Table = list[list[str]]  # titles, then rows
Painting = Callable[[QPainter, QRectF, Any, bool], None]  # in a box, of a row, whether it is chosen

SORT, ROW = Qt.ItemDataRole.UserRole, Qt.ItemDataRole.UserRole + 1  # a value to sort by, a row
ROW_HEIGHT = 28  # px
WIDEST = 208  # px of a column that is as wide as its words
FIT, REST = -1, 0  # widths: that of the words, and what the other columns leave


@dataclass(frozen=True, slots=True)
class Column:
    """A column: how the cell of a row is written, sorted and painted."""

    title: str
    words: Callable[[Any], str]
    value: Callable[[Any], Any] | None = None  # sorted by, copied where no text; None: its words
    width: int = FIT  # px, FIT or REST
    about: str = ""  # what it means, under its title
    right: bool = False
    weight: int = 400
    mono: bool = False
    least: int = 0  # px of the table below which it is left out
    colour: Callable[[Any], QColor | None] | None = None
    icon: Callable[[Any], QIcon] | None = None
    paint: Painting | None = None  # draws the cell in place of its words

    def full(self, row: Any) -> str:
        """The cell as it is copied: numbers in full, nothing where there is none."""
        value = self.words(row) if self.value is None else self.value(row)
        return in_full(value) if isinstance(value, float) else self.words(row).removeprefix("—")


class Rows(QAbstractTableModel):
    """Rows under columns; about: all that a row says, as its tooltip."""

    def __init__(self, about: Callable[[Any], str] | None, parent: QTableView) -> None:
        super().__init__(parent)
        self.about = about
        self.columns: Sequence[Column] = ()
        self.rows: Sequence[Any] = ()

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.columns)

    def headerData(self, section: int, way: Qt.Orientation, role: int = 0) -> Any:
        if way != Qt.Orientation.Horizontal or section >= len(self.columns):
            return None
        column = self.columns[section]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return theme.TO_RIGHT if column.right else theme.TO_LEFT
        texts = {Qt.ItemDataRole.DisplayRole: column.title,
                 Qt.ItemDataRole.ToolTipRole: tip(column.about)}  # fmt: skip
        return texts.get(Qt.ItemDataRole(role))

    def data(self, index: Index, role: int = 0) -> Any:
        row, column = self.rows[index.row()], self.columns[index.column()]
        if role == ROW:
            return row
        if role == SORT:
            value = column.words(row) if column.value is None else column.value(row)
            return float("-inf") if value != value else value  # NaN is in no order
        if role == Qt.ItemDataRole.DisplayRole:
            return column.words(row)
        if role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleDescriptionRole):
            words = column.words(row) if self.about is None else self.about(row)
            return tip(words) if role == Qt.ItemDataRole.ToolTipRole else words
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return theme.TO_RIGHT if column.right else theme.TO_LEFT
        if role == Qt.ItemDataRole.FontRole:
            return theme.mono(0.92, column.weight) if column.mono else theme.font(1, column.weight)
        if role == Qt.ItemDataRole.ForegroundRole and column.colour is not None:
            return column.colour(row)
        if role == Qt.ItemDataRole.DecorationRole and column.icon is not None:
            return column.icon(row)
        return None


class SortedRows(QSortFilterProxyModel):
    """Rows in the order of a column; a row that is first stays first."""

    def __init__(self, is_first: Callable[[Any], bool] | None, parent: QTableView) -> None:
        super().__init__(parent, sortRole=SORT)
        self.is_first = is_first

    def lessThan(self, left: Index, right: Index) -> bool:
        if self.is_first is not None:
            one, other = (self.is_first(index.data(ROW)) for index in (left, right))
            if one != other:
                return one == (self.sortOrder() == Qt.SortOrder.AscendingOrder)
        return bool(left.data(SORT) < right.data(SORT))


class RowTable(QTableView):
    """A table of rows. A click on a title sorts, and so do Left, Right and Space.

    name: what screen readers say; height: px of a row; key: what a row is recognised by when
    others are shown; about: all that a row says; sorts: whether readers may sort it.
    """

    own_keys = (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down,
                Qt.Key.Key_Home, Qt.Key.Key_End, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown,
                Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter)  # fmt: skip
    picked = Signal(object)  # the row that a person came to
    opened = Signal(object)  # the row, by Return or a double click
    pointed = Signal(object)  # the row under the pointer, None for none
    described = Signal(str)  # what the row that the keyboard is on says

    def __init__(
        self,
        name: str,
        key: Callable[[Any], Hashable] = lambda row: row,
        about: Callable[[Any], str] | None = None,
        is_first: Callable[[Any], bool] | None = None,
        sorts: bool = True,
        height: int = ROW_HEIGHT,
    ) -> None:
        super().__init__(showGrid=False, wordWrap=False)
        self.key, self.sorts = key, sorts
        self.model_of_rows = Rows(about, self)
        self.order = SortedRows(is_first, self)
        self.order.setSourceModel(self.model_of_rows)
        self._quiet = False
        self.setProperty("kind", "table")
        self.setModel(self.order)
        self.setItemDelegate(CellPainter(self))
        self.sortByColumn(-1, Qt.SortOrder.AscendingOrder)
        self.setSortingEnabled(sorts)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTabKeyNavigation(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setMouseTracking(True)
        self.setAccessibleName(name)
        self.verticalHeader().hide()
        self.verticalHeader().setMinimumSectionSize(height)  # or it keeps a larger default
        self.verticalHeader().setDefaultSectionSize(height)
        header = self.horizontalHeader()
        header.setFont(theme.font(0.92))
        header.setHighlightSections(False)
        header.setDefaultAlignment(theme.TO_LEFT)
        self.selectionModel().currentRowChanged.connect(self._moved)
        self.activated.connect(lambda index: self.opened.emit(index.data(ROW)))
        self.entered.connect(lambda index: self.pointed.emit(index.data(ROW)))

    @property
    def columns(self) -> Sequence[Column]:
        return self.model_of_rows.columns

    @property
    def rows(self) -> list[Any]:
        """Its rows, in the order on screen."""
        return [self.order.index(at, 0).data(ROW) for at in range(self.order.rowCount())]

    @property
    def chosen(self) -> Any:
        index = self.currentIndex()
        return index.data(ROW) if index.isValid() else None

    def show_rows(self, columns: Sequence[Column], rows: Sequence[Any]) -> None:
        """Show these rows; where they are those before, with other numbers, the place stays."""
        model, key, chosen = self.model_of_rows, self.key, self.chosen
        titles = [column.title for column in model.columns]
        was_empty = not len(model.rows)
        is_same = titles == [column.title for column in columns]
        self._quiet = True
        if is_same and [*map(key, model.rows)] == [*map(key, rows)]:
            model.columns, model.rows = columns, rows
            if len(rows):
                last = model.index(len(rows) - 1, len(columns) - 1)
                model.dataChanged.emit(model.index(0, 0), last)
        else:
            model.beginResetModel()
            model.columns, model.rows = columns, rows
            model.endResetModel()
            if was_empty or not is_same:
                self._set_widths()
            if chosen is not None:
                self.choose(key(chosen))
        self._quiet = False

    def choose(self, key: Hashable) -> None:
        """Show the row with a key as the chosen one, without a signal; None: none is."""
        keys = [*map(self.key, self.model_of_rows.rows)] if key is not None else []
        quiet, self._quiet = self._quiet, True
        if key not in keys:
            self.clearSelection()
            self.setCurrentIndex(QModelIndex())
        elif self.chosen is None or self.key(self.chosen) != key:
            index = self.order.mapFromSource(self.model_of_rows.index(keys.index(key), 0))
            self.setCurrentIndex(index)
            if not self.viewport().rect().contains(self.visualRect(index)):
                self.scrollTo(index, QAbstractItemView.ScrollHint.PositionAtCenter)
        self._quiet = quiet

    def cells(self) -> Table:
        """The titles, then every row in full, in the order on screen."""
        rows = [[column.full(row) for column in self.columns] for row in self.rows]
        return [[column.title for column in self.columns], *rows]

    def _set_widths(self) -> None:
        if any(column.width == FIT for column in self.columns):
            self.resizeColumnsToContents()
        modes = QHeaderView.ResizeMode
        for at, column in enumerate(self.columns):
            is_rest = column.width == REST
            mode = modes.Stretch if is_rest else modes.Interactive
            self.horizontalHeader().setSectionResizeMode(at, mode)
            if not is_rest:
                fit = min(WIDEST, self.columnWidth(at) + 8)
                self.setColumnWidth(at, fit if column.width == FIT else column.width)
        self._leave_out()

    def _leave_out(self) -> None:
        for at, column in enumerate(self.columns):
            self.setColumnHidden(at, self.width() < column.least)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._leave_out()

    def _moved(self, now: Index, before: Index) -> None:
        if now.isValid() and not self._quiet:
            self.picked.emit(now.data(ROW))
            if self.hasFocus():
                self._describe()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.pointed.emit(None)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._describe()

    def _describe(self) -> None:
        about = self.model_of_rows.about
        if about is not None and self.chosen is not None:
            self.described.emit(about(self.chosen).replace("\n", " · "))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and Right sort by another column, Space reverses the order."""
        header, ways = self.horizontalHeader(), Qt.SortOrder
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_Space: 0}
        if event.key() not in step or not self.sorts:
            super().keyPressEvent(event)
            return
        shown = [at for at in range(len(self.columns)) if not self.isColumnHidden(at)]
        now = header.sortIndicatorSection()
        place = shown.index(now) + step[Qt.Key(event.key())] if now in shown else 0
        falls = header.sortIndicatorOrder() == ways.DescendingOrder
        if event.key() == Qt.Key.Key_Space:
            falls = not falls
        column = shown[max(0, min(place, len(shown) - 1))]
        self.sortByColumn(column, ways.DescendingOrder if falls else ways.AscendingOrder)


class RowList(RowTable):
    """Rows of one column without a title, least of them in sight; a click or Return takes one."""

    taken = Signal(object)  # a row

    def __init__(
        self,
        name: str,
        height: int,
        least: int,
        column: Column,
        key: Callable[[Any], Hashable] = lambda row: row,
        about: Callable[[Any], str] | None = None,
    ) -> None:
        super().__init__(name, key, about, sorts=False, height=height)
        self._column = column
        self.setProperty("kind", "rows")
        self.horizontalHeader().hide()
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setMinimumHeight(least * height + 2)
        self.clicked.connect(lambda index: self.taken.emit(index.data(ROW)))
        self.opened.connect(self.taken)

    def sizeHint(self) -> QSize:
        return QSize(240, self.minimumHeight())

    def list_rows(self, rows: Sequence[Any]) -> None:
        self.show_rows([self._column], rows)


class CellPainter(QStyledItemDelegate):
    """Draws a cell: its words, or what its column paints in their place."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:
        super().initStyleOption(option, index)
        option.state &= ~QStyle.StateFlag.State_HasFocus  # the table has the ring
        if self._column(index).paint is not None:
            option.text = ""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        super().paint(painter, option, index)
        paint = self._column(index).paint
        if paint is not None:
            chosen = bool(option.state & QStyle.StateFlag.State_Selected)
            painter.save()
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            paint(painter, QRectF(option.rect).adjusted(8, 0, -8, 0), index.data(ROW), chosen)
            painter.restore()

    def _column(self, index: Index) -> Column:
        table = self.parent()
        assert isinstance(table, RowTable)
        return table.columns[index.column()]


# --- tables of keys -------------------------------------------------------------------------------


def in_full(value: float) -> str:
    """A number as Python writes it, "" for none."""
    return repr(float(value)) if value == value else ""


def key_table(
    names: Names, columns: Sequence[int], numbers: Mapping[str, Iterable[float]]
) -> Table:
    """A row for each of these columns of a map: its key, and its numbers by their titles."""
    rows = [
        [str(column), names.glyph(column), names.place(column), *map(in_full, values)]
        for column, *values in zip(columns, *numbers.values(), strict=True)
    ]
    return [[tr("column"), tr("key"), tr("where"), *numbers], *rows]


def paint_runs(painter: QPainter, box: QRectF, *runs: tuple[str, QFont, QColor]) -> float:
    """Draw texts one after the other from the left of a box, elided at its right; the x after."""
    for text, font, colour in runs:
        box = box.adjusted(theme.write(painter, box, text, font, colour), 0, 0, 0)
    return box.left()


def where(names: Names, column: int) -> str:
    """The position of a key, and the word it is part of."""
    start, end = (int(side) for side in names.spans[column])
    if end <= 0 and names.null:
        return tr(sentences.NULL)
    if end <= 0:
        return tr("position {number:,}", number=column)
    numbered = f"{start:,}" if end - start <= 1 else f"{start:,}–{end - 1:,}"
    around = sentences.word_at(names.word_spans, end - 1)
    if around is None or around[1] - around[0] <= end - start:
        return numbered
    return f"{numbered} {sentences.glyph(names.prompt, *around)}"


def key_column(names: Names, width: int) -> Column:
    """The column of a list of keys that names them; its rows are columns of the map."""

    def paint(painter: QPainter, box: QRectF, column: int, chosen: bool) -> None:
        now, glyph = theme.current(), names.glyph(column) or "∅"
        colour = now.mark_text if chosen else now.text
        used = theme.write(painter, box, glyph, theme.mono(0.92, 600), colour)
        rest = box.adjusted(max(22.0, used + 8), 0, 0, 0)
        if rest.width() > 20:
            theme.write(painter, rest, where(names, column), theme.font(0.85), now.secondary)

    return Column(tr("Key"), lambda column: names.glyph(column), width=width, paint=paint)


def span(first: int, last: int) -> str:
    """The number of a cell, or several as Python writes a range."""
    return str(first) if last <= first else f"{first}:{last + 1}"
