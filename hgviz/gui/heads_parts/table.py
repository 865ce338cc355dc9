"""All heads in a table: every number of every head, sortable; choosing a row opens the head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractTableModel, Qt, Signal

from hgviz.analysis.heads import METRICS, HeadFacts, applying
from hgviz.core import HeadId, ModelSpec
from hgviz.gui import theme
from hgviz.gui.heads_parts.metrics import Cited, explained, explanation, named
from hgviz.gui.language import tr
from hgviz.gui.rows import SORT, SortedTable
from hgviz.gui.views import words
from hgviz.gui.views.words import measured

if TYPE_CHECKING:
    from PySide6.QtCore import QObject

KINDS = {"self": "self", "down": "pools", "up": "spreads", "cross": "cross"}
FIXED = ("Head", "Level", "Kind", "Role", "Score", "Shows also", "Nearest")
MEANT = {  # of FIXED: what it means, its formula
    "Role": (
        "What the head does: the keys whose share of its weight stands out most against chance",
        Cited("mean_i Σ_j∈R p_ij : mean_i |R_i| / |V_i|", "Voita et al. 2019; what-heads-do.md"),
    ),
    "Score": (
        "The share of its weight on the keys of its role, averaged over rows",
        Cited(
            "mean_i Σ_j∈R p_ij, p_ij = |a_ij| / Σ_k |a_ik|", "Voita et al. 2019; what-heads-do.md"
        ),
    ),
    "Shows also": (
        "Up to three more roles that stand out against chance, and what goes by position alone",
        Cited("mean_i Σ_j∈R p_ij : mean_i |R_i| / |V_i|", "what-heads-do.md"),
    ),
    "Nearest": (
        "The head of the same kind whose rows are most like this one's",
        Cited(METRICS["nearest"].formula, METRICS["nearest"].source),
    ),
}  # fmt: skip
WIDEST = 200  # px
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class HeadsTable(SortedTable):
    """One row per head; a click on a title sorts, a row chooses its head."""

    picked = Signal(object)  # HeadId

    def __init__(self) -> None:
        self.rows = Heads()
        super().__init__(self.rows, tr("All heads"), by=0)
        self._fitted: tuple[str, ...] = ()
        self.walked.connect(self._walked)

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
        return None if self.number is None else self.rows.heads[self.number]

    def mark(self, head: HeadId) -> None:
        """Show a head as chosen without saying so; one that is not there changes nothing."""
        if head in self.rows.heads:
            self.go_to(self.rows.heads.index(head))

    def cells(self) -> list[list[str]]:
        """The titles, then every number in full, in the order that is shown."""
        columns = range(self.rows.columnCount())
        rows = ([self.rows.full(at, one) for one in columns] for at in self.order)
        return [list(self.rows.titles), *rows]

    def _walked(self, number: int) -> None:
        self.picked.emit(self.rows.heads[number])


class Heads(QAbstractTableModel):
    """One row per head: name, level, kind, role, score, then every metric of any of them."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.heads: list[HeadId] = []
        self.titles: tuple[str, ...] = tuple(map(tr, FIXED))
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
        self.titles = (*map(tr, FIXED), *(named(name, unit) for name in self._shown))
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
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._meant(section)
        if role == Qt.ItemDataRole.TextAlignmentRole and self._is_number(section):
            return RIGHT
        return None

    def _meant(self, section: int) -> str | None:
        if section >= len(FIXED):
            return explained(self._shown[section - len(FIXED)], self._unit)
        if FIXED[section] not in MEANT:
            return None
        meaning, cited = MEANT[FIXED[section]]
        return explanation(tr(meaning), cited)

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
            return tr(facts.evidence)
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
        others = [tr(one.words) for one in facts.named if one.words != facts.role]
        level = facts.level
        return (
            facts.head,
            self._levels[level] if level < len(self._levels) else str(level),
            tr(KINDS.get(facts.kind, facts.kind)),
            tr(facts.role) or "—",
            float(facts.score) if facts.role else float("nan"),
            ", ".join(others) or "—",
            facts.nearest or HeadId(-1, 0),
        )[column]
