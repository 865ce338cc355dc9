"""The cells of a study: a grid to look at, or a table to sort, read aloud and copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout

from hgviz.core import Step, Task
from hgviz.gui.controls import PaneHead, Segments
from hgviz.gui.language import tr
from hgviz.gui.sweeps import about
from hgviz.gui.sweeps.canvas import Canvas
from hgviz.gui.sweeps.layout import NONE, Layout, lay_out
from hgviz.gui.sweeps.table import CellTable
from hgviz.gui.views.base import View
from hgviz.sweep import Sweep

if TYPE_CHECKING:
    from hgviz.session import Session

FORMS = (("grid", "Grid", ""), ("table", "Table", ""))
NOTE = "click one to see it; Enter opens what it left"


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """All cells as they stand, and where each is."""

    sweep: Sweep
    layout: Layout
    keys: tuple[str, ...]


class GridView(View):
    """All cells; the chosen one is framed. picked: the key of a cell; pointed: a line about one."""

    title = "Cells"
    topic = "study-cells"
    icon = "table"
    figureless = "Its cells have no figure; what they reach has one"
    needs = ("sweep", "dark")
    watches = ("cell",)
    empty = ("No study is open", "Open a study file (.toml), or the folder that one was run into.")
    empty_actions = (("open_sweep_file", "Open a study file…"),)

    picked = Signal(str)
    pointed = Signal(str)
    sized = Signal(int)  # px of height that all of it would like

    def __init__(self) -> None:
        super().__init__()
        self.head = PaneHead(tr(self.title), tr(NOTE))
        self.form = Segments([(name, tr(words), icon) for name, words, icon in FORMS], wide=72)
        self.form.setAccessibleName(tr("Cells as"))
        self.form.chosen.connect(self._turn)
        self.head.add(self.form)
        self.canvas, self.table = Canvas(), CellTable()
        self.turns = QStackedWidget()
        for one in (self.canvas, self.table):
            self.turns.addWidget(one)
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(self.turns, 1)
        self.canvas.picked.connect(self._picked)
        self.table.picked.connect(self.picked)
        for one in (self.canvas, self.table):
            one.entered.connect(self._entered)
        self.canvas.pointed.connect(self._point)
        self.cells: Cells | None = None
        self.start_at(self.canvas)

    def request(self, session: Session) -> Task[Cells] | None:
        """Where cells are: found again where there are others."""
        return None if session.sweep is None else _placed(session.sweep, self.cells)

    def draw(self, result: Cells) -> None:
        """Show how they stand."""
        fresh = self.cells is None or self.cells.layout is not result.layout
        self.cells = result
        self.canvas.show_cells(result.layout, result.sweep.standings, self._chosen)
        self.table.show_cells(result.sweep.standings, self._key)
        if fresh:
            self.sized.emit(self.head.height() + self.canvas.wanted)

    def noticed(self, name: str) -> None:
        """The frame is there at once."""
        if name == "cell" and self.cells is not None:
            self.canvas.choose(self._chosen)
            self.table.mark(self._key)

    def as_text(self) -> str:
        """The table, tab-separated."""
        return "\n".join(self.table.lines())

    def as_table(self) -> list[list[str]] | None:
        """Every cell with what it found, in the order of the table."""
        return None if self.cells is None else self.table.table()

    @property
    def _key(self) -> str:
        return self.session.cell if self.session is not None else ""

    @property
    def _chosen(self) -> int:
        if self.cells is None or not self._key or self._key not in self.cells.keys:
            return NONE
        return self.cells.keys.index(self._key)

    def _picked(self, number: int) -> None:
        if self.cells is not None:
            self.picked.emit("" if number == NONE else self.cells.keys[number])
            self._point("")

    def _point(self, words: str) -> None:
        """What is pointed at, else the chosen cell."""
        chosen = self._chosen
        if not words and chosen != NONE and self.cells is not None:
            words = about.line_of(self.cells.sweep.standings[chosen])
        self.pointed.emit(words)

    def _entered(self) -> None:
        self.asked.emit("open_cell")

    def _turn(self, name: str) -> None:
        here: Canvas | CellTable = self.canvas if name == "grid" else self.table
        self.turns.setCurrentWidget(here)
        self.start_at(here)


def _placed(sweep: Sweep, before: Cells | None) -> Task[Cells]:
    yield Step(0, 1, "placing the cells")
    keys = tuple(one.cell.key for one in sweep.standings)
    if before is not None and before.keys == keys:
        return Cells(sweep, before.layout, before.keys)
    return Cells(sweep, lay_out([one.cell for one in sweep.standings]), keys)
