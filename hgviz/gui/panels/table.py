"""All heads in a table: every number of every head, sortable; choosing a row opens the head."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QSortFilterProxyModel, Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QHeaderView,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from hgviz.analysis.heads import METRICS, HeadFacts, applying
from hgviz.core import HeadId
from hgviz.gui import theme
from hgviz.gui.controls import label
from hgviz.gui.panels.heads import measured
from hgviz.gui.views import words

if TYPE_CHECKING:
    from hgviz.session import Session

KINDS = {"self": "self", "down": "pools", "up": "spreads", "cross": "cross"}
FACTS = 5  # columns before the metrics
SORT = Qt.ItemDataRole.UserRole


class HeadTable(QDialog):
    """A window with the table; it stays open beside the main one."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("All heads")
        self.resize(1040, 560)
        unit = session.capture.main.unit if session.capture is not None else "letter"
        spec = session.spec
        levels = [words.level(spec, n) for n in range(len(spec.levels))] if spec else []
        self.model = Heads(list(session.facts.values()), levels, unit)
        self._sorted = QSortFilterProxyModel(self)
        self._sorted.setSourceModel(self.model)
        self._sorted.setSortRole(SORT)
        self.table = QTableView()
        self.table.setModel(self._sorted)
        self.table.setSortingEnabled(True)
        self.table.sortByColumn(0, Qt.SortOrder.AscendingOrder)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setShowGrid(False)
        self.table.setAlternatingRowColors(True)
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setDefaultSectionSize(30)
        header = self.table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setStretchLastSection(True)
        header.setHighlightSections(False)
        self._show(session.selection.head_id)
        self.table.clicked.connect(self.choose)
        self.table.activated.connect(self.choose)
        self.table.selectionModel().currentRowChanged.connect(self._moved)
        said = f"{words.counted(self.model.rowCount(), 'head')}; a row opens the head"
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 16)
        column.addWidget(label(said, factor=0.92, kind="secondary"))
        column.addWidget(self.table, 1)

    def _show(self, head: HeadId) -> None:
        for row in range(self._sorted.rowCount()):
            index = self._sorted.index(row, 0)
            if self.model.head(self._sorted.mapToSource(index).row()) == head:
                self.table.setCurrentIndex(index)

    def _moved(self, now: QModelIndex, before: QModelIndex) -> None:
        if before.isValid():
            self.choose(now)

    def choose(self, index: QModelIndex) -> None:
        """Open the head of a row."""
        head = self.model.head(self._sorted.mapToSource(index).row())
        self._session.select(layer=head.layer, head=head.head)


class Heads(QAbstractTableModel):
    """One row per head: name, level, kind, role, score, then every metric of any of them."""

    def __init__(self, facts: list[HeadFacts], levels: list[str], unit: str) -> None:
        super().__init__()
        self._facts, self._levels = sorted(facts, key=lambda one: one.head), levels
        self._shown = applying(one.metrics for one in facts)
        named = [METRICS[name].named(unit) for name in self._shown]
        self._titles = ["Head", "Level", "Kind", "Role", "Score", *named]

    def head(self, row: int) -> HeadId:
        """The head of a row."""
        return self._facts[row].head

    def rowCount(self, parent: Any = None) -> int:
        """Every head."""
        return 0 if parent is not None and parent.isValid() else len(self._facts)

    def columnCount(self, parent: Any = None) -> int:
        """Every fact."""
        return 0 if parent is not None and parent.isValid() else len(self._titles)

    def headerData(self, section: int, orientation: Any, role: int = 0) -> Any:
        """The names of the columns."""
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return self._titles[section]
        return None

    def data(self, index: Any, role: int = 0) -> Any:
        """A fact as text, as a value to sort by, with its evidence as a tooltip."""
        facts = self._facts[index.row()]
        value = self._value(facts, index.column())
        if role == SORT:
            if isinstance(value, HeadId):
                return value[0] * 4096 + value[1]
            return float("-inf") if value != value else value  # NaN is in no order
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(value, index.column())
        if role == Qt.ItemDataRole.ToolTipRole:
            return facts.evidence
        if role == Qt.ItemDataRole.TextAlignmentRole and isinstance(value, float):
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        if role == Qt.ItemDataRole.FontRole and index.column() == 0:
            return theme.font(weight=600)
        return None

    def _text(self, value: Any, column: int) -> str:
        if column >= FACTS:
            return measured(self._shown[column - FACTS], value)
        return words.weight(value) if isinstance(value, float) else str(value)

    def _value(self, facts: HeadFacts, column: int) -> Any:
        fixed = (
            facts.head,
            self._levels[facts.level] if facts.level < len(self._levels) else str(facts.level),
            KINDS.get(facts.kind, facts.kind),
            facts.role or "—",
            float(facts.score),
        )
        if column < FACTS:
            return fixed[column]
        return float(facts.metrics[self._shown[column - FACTS]])
