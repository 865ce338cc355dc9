"""All heads in a table: every number of every head, sortable; choosing a row opens the head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QEvent,
    QModelIndex,
    QSortFilterProxyModel,
    Qt,
    Signal,
)
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QFrame, QHeaderView, QTableView

from hgviz.analysis.heads import METRICS, HeadFacts, applying
from hgviz.core import HeadId, ModelSpec
from hgviz.gui import theme
from hgviz.gui.panels.heads import measured
from hgviz.gui.views import words

if TYPE_CHECKING:
    from PySide6.QtCore import QObject, QPersistentModelIndex

    Index = QModelIndex | QPersistentModelIndex

KINDS = {"self": "self", "down": "pools", "up": "spreads", "cross": "cross"}
FIXED = ("Head", "Level", "Kind", "Role", "Score", "Shows also", "Nearest")
SORT = Qt.ItemDataRole.UserRole
ROW, WIDEST = 28, 200  # px
ARROWS = (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down)
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


def walks(event: QEvent) -> bool:
    """Whether a list keeps an arrow for its rows, which the window would take for the text."""
    if not isinstance(event, QKeyEvent) or event.type() != QEvent.Type.ShortcutOverride:
        return False
    return event.key() in ARROWS and not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier


class HeadsTable(QTableView):
    """One row per head; a click on a title sorts, a row chooses its head."""

    picked = Signal(object)  # HeadId
    entered = Signal()  # the chosen head is wanted on its own

    def __init__(self) -> None:
        super().__init__()
        self.rows = Heads(self)
        self._sorted = QSortFilterProxyModel(self)
        self._sorted.setSourceModel(self.rows)
        self._sorted.setSortRole(SORT)
        self._quiet = False
        self._fitted: tuple[str, ...] = ()
        self.setProperty("kind", "table")
        self.setModel(self._sorted)
        self.setSortingEnabled(True)
        self.sortByColumn(0, Qt.SortOrder.AscendingOrder)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAccessibleName("All heads")
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(ROW)
        self.verticalHeader().setMinimumSectionSize(ROW)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        self.selectionModel().currentRowChanged.connect(self._moved)
        self.activated.connect(self._entered)

    def show_heads(self, facts: Mapping[HeadId, HeadFacts], spec: ModelSpec, unit: str) -> None:
        """Show what is known of all heads; order and choice stay."""
        chosen = self.chosen
        self._quiet = True
        self.rows.take(facts, spec, unit)
        if self._fitted != self.rows.titles:
            self._fitted = self.rows.titles
            self.resizeColumnsToContents()
            for column in range(self.rows.columnCount()):
                self.setColumnWidth(column, min(WIDEST, self.columnWidth(column) + 8))
        self._quiet = False
        if chosen is not None:
            self.mark(chosen)

    @property
    def chosen(self) -> HeadId | None:
        """The head of the current row."""
        index = self.currentIndex()
        return self.head(index) if index.isValid() else None

    def head(self, index: Index) -> HeadId:
        """The head of a row as it is sorted now."""
        return self.rows.heads[self._sorted.mapToSource(index).row()]

    def mark(self, head: HeadId) -> None:
        """Show a head as chosen without saying so."""
        if head == self.chosen or head not in self.rows.heads:
            return
        self._quiet = True
        at = self.rows.index(self.rows.heads.index(head), 0)
        self.setCurrentIndex(self._sorted.mapFromSource(at))
        self._quiet = False

    def lines(self) -> list[str]:
        """The titles, then every number in full, tab-separated, in the order that is shown."""
        columns = range(self.rows.columnCount())
        out = ["\t".join(self.rows.titles)]
        for row in range(self._sorted.rowCount()):
            at = self._sorted.mapToSource(self._sorted.index(row, 0)).row()
            out.append("\t".join(self.rows.full(at, column) for column in columns))
        return out

    def event(self, event: QEvent) -> bool:
        """Arrows walk its rows while it has the keyboard, and letters stay those of the window."""
        if walks(event):
            event.accept()
            return True
        return super().event(event)

    def _moved(self, now: Index, before: Index) -> None:
        if now.isValid() and not self._quiet:
            self.picked.emit(self.head(now))

    def _entered(self, index: Index) -> None:
        self.entered.emit()


class Heads(QAbstractTableModel):
    """One row per head: name, level, kind, role, score, then every metric of any of them."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.heads: list[HeadId] = []
        self.titles: tuple[str, ...] = FIXED
        self._facts: Mapping[HeadId, HeadFacts] = {}
        self._levels: list[str] = []
        self._unit = "letter"
        self._shown: tuple[str, ...] = ()

    def take(self, facts: Mapping[HeadId, HeadFacts], spec: ModelSpec, unit: str) -> None:
        """Hold other facts."""
        self.beginResetModel()
        self._facts, self.heads, self._unit = facts, sorted(facts), unit
        self._levels = [words.level(spec, number) for number in range(len(spec.levels))]
        self._shown = applying(one.metrics for one in facts.values())
        self.titles = (*FIXED, *(METRICS[name].named(unit) for name in self._shown))
        self.endResetModel()

    def rowCount(self, parent: Any = None) -> int:
        """Every head."""
        return 0 if parent is not None and parent.isValid() else len(self.heads)

    def columnCount(self, parent: Any = None) -> int:
        """Every fact."""
        return 0 if parent is not None and parent.isValid() else len(self.titles)

    def headerData(self, section: int, orientation: Any, role: int = 0) -> Any:
        """The names of the columns, with what they mean as a tooltip."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self.titles[section]
        if role == Qt.ItemDataRole.ToolTipRole and section >= len(FIXED):
            described = METRICS[self._shown[section - len(FIXED)]].description
            return described.format(unit=self._unit)
        if role == Qt.ItemDataRole.TextAlignmentRole and self._is_number(section):
            return RIGHT
        return None

    def data(self, index: Any, role: int = 0) -> Any:
        """A fact as text, as a value to sort by, with its evidence as a tooltip."""
        facts = self._facts[self.heads[index.row()]]
        column = index.column()
        if role == SORT:
            value = self._value(facts, column)
            if isinstance(value, HeadId):
                return value[0] * 4096 + value[1]
            return float("-inf") if value != value else value  # NaN is in no order
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(self._value(facts, column), column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return facts.evidence
        if role == Qt.ItemDataRole.TextAlignmentRole and self._is_number(column):
            return RIGHT
        if role == Qt.ItemDataRole.FontRole and column == 0:
            return theme.font(weight=600)
        return None

    def full(self, row: int, column: int) -> str:
        """A fact as it is written elsewhere: numbers in full, nothing where there is none."""
        value = self._value(self._facts[self.heads[row]], column)
        if isinstance(value, float):
            return repr(value) if value == value else ""
        return self._text(value, column).replace("—", "")

    def _is_number(self, column: int) -> bool:
        return column >= len(FIXED) or FIXED[column] == "Score"

    def _text(self, value: Any, column: int) -> str:
        if column >= len(FIXED):
            return measured(self._shown[column - len(FIXED)], value)
        if isinstance(value, HeadId):
            return str(value) if value.layer >= 0 else "—"
        if isinstance(value, float):
            return words.weight(value) if value == value else "—"
        return str(value)

    def _value(self, facts: HeadFacts, column: int) -> Any:
        if column >= len(FIXED):
            return float(facts.metrics[self._shown[column - len(FIXED)]])
        named = [one.words for one in facts.named if one.words != facts.role]
        level = facts.level
        return (
            facts.head,
            self._levels[level] if level < len(self._levels) else str(level),
            KINDS.get(facts.kind, facts.kind),
            facts.role or "—",
            float(facts.score) if facts.role else float("nan"),
            ", ".join(named) or "—",
            facts.nearest or HeadId(-1, 0),
        )[column]
