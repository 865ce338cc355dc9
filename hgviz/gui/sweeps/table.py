"""The cells of a study in a table, a row each, with the state as an icon and a word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractTableModel, Qt, Signal
from PySide6.QtWidgets import QVBoxLayout

from hgviz.core import Step, Task
from hgviz.gui import runs, theme
from hgviz.gui.language import tr
from hgviz.gui.rows import SORT, SortedTable
from hgviz.gui.view import View
from hgviz.gui.widgets import PaneHead
from hgviz.sweep import Standing, State

if TYPE_CHECKING:
    from PySide6.QtCore import QObject

    from hgviz.session import Session
    from hgviz.sweep import Sweep

COLUMNS = (
    "Kind", "Data", "Model", "Activation", "Seed", "Method", "State", "Found", "Took", "On", "Why",
)  # fmt: skip
WIDTHS = (110, 90, 90, 110, 56, 110, 90, 260, 70, 110, 400)
NOTE = "click a heading to sort; Enter opens what a cell left"
ICONS: dict[State, str] = {
    "done": "check", "waiting": "clock", "failed": "close", "blocked": "warning",
}  # fmt: skip


class CellsView(View):
    """Every cell of a study. picked: the key of the one that is chosen."""

    title = "Cells"
    topic = "study-cells"
    icon = "table"
    figureless = "Its cells have no figure; what they reach has one"
    needs = ("sweep", "dark")
    watches = ("cell",)
    lane = "here"
    empty = ("No study is open", "Open a study file (.toml), or the folder that one was run into.")
    empty_actions = (("open_sweep_file", "Open a study file…"),)

    picked = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.table = CellTable()
        self.table.picked.connect(self.picked)
        self.table.entered.connect(self._enter)
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(PaneHead(tr(self.title), tr(NOTE)))
        column.addWidget(self.table, 1)
        self.start_at(self.table)

    def request(self, session: Session) -> Task[Sweep] | None:
        """The study as it was seen last."""
        return None if session.sweep is None else _given(session.sweep)

    def draw(self, result: Sweep) -> None:
        """List its cells."""
        self.table.show_cells(result.standings, self.session.cell if self.session else "")

    def noticed(self, name: str) -> None:
        """Select the row of the chosen cell."""
        if name == "cell" and self.session is not None:
            self.table.mark(self.session.cell)

    def as_text(self) -> str:
        """The table, tab-separated."""
        return "\n".join("\t".join(row) for row in self.as_table() or [])

    def as_table(self) -> list[list[str]] | None:
        """Every cell with what it found, in the order of the table."""
        shown = self.session is not None and self.session.sweep is not None
        return self.table.table() if shown else None

    def _enter(self) -> None:
        self.asked.emit("open_cell")


class CellTable(SortedTable):
    """One row per cell. picked: its key; entered: it is wanted."""

    picked = Signal(str)

    def __init__(self) -> None:
        self.rows = Rows()
        super().__init__(self.rows, tr("All cells"), by=-1)  # as they are computed
        self.horizontalHeader().setStretchLastSection(True)
        for column, wide in enumerate(WIDTHS):
            self.setColumnWidth(column, wide)
        self.walked.connect(self._walked)

    def show_cells(self, standings: Sequence[Standing], key: str) -> None:
        """Show how cells stand; order and choice stay."""
        self._quiet = True
        self.rows.take(standings)
        self._quiet = False
        self.mark(key)

    def mark(self, key: str) -> None:
        """Show a cell as chosen without saying so."""
        self.go_to(self.rows.number(key))

    def table(self) -> list[list[str]]:
        """The values of all cells in the order that is shown, the names of columns first."""
        rows = (runs.values(self.rows.standings[at]) for at in self.order)
        return [[*map(tr, runs.VALUES)], *rows]

    def _walked(self, number: int) -> None:
        self.picked.emit(self.rows.standings[number].cell.key)


class Rows(QAbstractTableModel):
    """One row per cell, in the order they are computed."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.standings: Sequence[Standing] = ()
        self._numbers: dict[str, int] = {}

    def take(self, standings: Sequence[Standing]) -> None:
        """Hold others, or the same as they stand now: rows stay where only their words change."""
        keys = {one.cell.key: number for number, one in enumerate(standings)}
        if keys == self._numbers:
            self.standings = standings
            last = self.index(max(0, len(standings) - 1), len(COLUMNS) - 1)
            self.dataChanged.emit(self.index(0, 0), last)
            return
        self.beginResetModel()
        self.standings, self._numbers = standings, keys
        self.endResetModel()

    def number(self, key: str) -> int | None:
        """The row of a cell."""
        return self._numbers.get(key)

    def rowCount(self, parent: Any = None) -> int:
        """Every cell."""
        return 0 if parent is not None and parent.isValid() else len(self.standings)

    def columnCount(self, parent: Any = None) -> int:
        """Every fact."""
        return 0 if parent is not None and parent.isValid() else len(COLUMNS)

    def headerData(self, section: int, orientation: Any, role: int = 0) -> Any:
        """The names of the columns, and what each holds."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.ToolTipRole:
            return runs.explained(COLUMNS[section])
        return tr(COLUMNS[section]) if role == Qt.ItemDataRole.DisplayRole else None

    def data(self, index: Any, role: int = 0) -> Any:
        """A fact as text, and as a value to sort by."""
        one, column = self.standings[index.row()], index.column()
        if role == SORT:
            return self._sortable(one, column)
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return _word(one, column)
        if role == Qt.ItemDataRole.DecorationRole and COLUMNS[column] == "State":
            now = theme.current()
            colours = {"done": now.good, "failed": now.bad}
            return theme.icon(ICONS[one.state], colours.get(one.state, now.secondary))
        if role == Qt.ItemDataRole.FontRole and column == 0:
            return theme.font(weight=600)
        if role == Qt.ItemDataRole.ForegroundRole and column == 6 and one.state == "failed":
            return theme.current().bad
        return None

    def _sortable(self, one: Standing, column: int) -> Any:
        name, words = COLUMNS[column], _word(one, column)
        if name == "Seed" and words.isdecimal():
            return f"{int(words):020}"
        if name == "Took":
            return one.seconds
        return words


def _word(one: Standing, column: int) -> str:
    place, name = one.cell.place, COLUMNS[column]
    if name in ("Data", "Model", "Activation", "Seed"):
        return runs.called(place.get(name.lower(), ""))
    if name == "Kind":
        return runs.kind(one.cell.work)
    if name == "Method":
        return runs.sub(one.cell)
    if name == "State":
        return runs.stands(one)
    if name == "Found":
        return runs.value(one)
    if name == "Took":
        return runs.seconds(one.seconds)
    return one.host if name == "On" else runs.why(one)


def _given(sweep: Sweep) -> Task[Sweep]:
    yield Step(0, 1)
    return sweep


__all__ = ["COLUMNS", "CellsView"]
