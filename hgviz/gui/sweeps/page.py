"""The page of a study of many runs: how it stands, its cells, what they reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from hgviz.gui.controls import Segments, line, splitter
from hgviz.gui.language import tr
from hgviz.gui.sweeps.charts import BudgetsView, ReachedView
from hgviz.gui.sweeps.grid import GridView
from hgviz.gui.sweeps.panels import CellView, FailuresView
from hgviz.gui.sweeps.summary import SummaryView
from hgviz.gui.views.base import View

if TYPE_CHECKING:
    from hgviz.gui.commands import Commands

SIDE, CHART = 340, 270  # px: how wide what stands beside is, how high charts are at least
LEAST, LOW = 150, 480  # px of height: of cells and of charts; where they give way to each other
WIDE = 1180  # px: narrower, what stands beside the cells takes turns with the charts
TURNS = (
    ("cell", "This cell", ""), ("failures", "Failures", ""), ("reached", "What each reaches", ""),
    ("budgets", "As heads go", ""),
)  # fmt: skip


class SweepPage(QWidget):
    """How it stands over cells over charts; the chosen cell and the failures beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.summary, self.grid = SummaryView(), GridView()
        self.cell, self.failures = CellView(), FailuresView()
        self.reached, self.budgets = ReachedView(), BudgetsView()
        self.which = Segments([(name, tr(words), icon) for name, words, icon in TURNS])
        self.which.setAccessibleName(tr("Below the cells"))
        self.which.chosen.connect(self.show_turn)
        for name, view in (("reached", self.reached), ("budgets", self.budgets)):
            self.which.allow(name, True, tr(view.means))  # its tab is its title
        self.turns = QStackedWidget()
        self._turns: dict[str, CellView | FailuresView | ReachedView | BudgetsView] = {
            "cell": self.cell, "failures": self.failures, "reached": self.reached,
            "budgets": self.budgets,
        }  # fmt: skip
        bar = QWidget()
        bar.setProperty("kind", "pane")
        bar.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        inside = QHBoxLayout(bar)
        inside.setContentsMargins(16, 6, 16, 0)
        inside.addWidget(self.which)
        inside.addStretch(1)
        self.below = QWidget()
        under = QVBoxLayout(self.below)
        under.setContentsMargins(0, 0, 0, 0)
        under.setSpacing(0)
        under.addWidget(bar)
        under.addWidget(self.turns, 1)
        self.down = splitter(Qt.Orientation.Vertical, self.grid, self.below)
        self.side = splitter(Qt.Orientation.Vertical)
        self.side.setFixedWidth(SIDE)
        self.across = splitter(Qt.Orientation.Horizontal, self.down, self.side)
        self.across.setStretchFactor(0, 1)
        self.grid.setMinimumHeight(LEAST)
        self.below.setMinimumHeight(LEAST)
        for number in (0, 1):
            self.down.setStretchFactor(number, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.summary)
        column.addWidget(line())
        column.addWidget(self.across, 1)
        self.grid.canvas.card.setParent(self)  # few cells are lower than what is said of one
        self._wide: bool | None = None
        self._wanted = 0  # px of height that all cells would like
        self.respond(WIDE, 1000)

    @property
    def views(self) -> tuple[View, ...]:
        """Every view of the page; F6 walks them in this order."""
        return (self.summary, self.grid, *self._turns.values())

    def join(self, commands: Commands) -> None:
        """Have what people do here done."""
        self.grid.picked.connect(commands.choose_cell)
        for one in (self.grid, self.reached, self.budgets):
            one.pointed.connect(commands.say)
        self.grid.sized.connect(self._share)
        self.failures.picked.connect(commands.choose_cell)

    def take_focus(self) -> bool:
        """The keyboard goes to what the page is about."""
        return self.grid.take_focus()

    def respond(self, width: int, height: int) -> None:
        """In a narrow window the chosen cell and the failures take turns with the charts."""
        wide = width >= WIDE
        if wide == self._wide:
            return
        self._wide = wide
        beside = (self.cell, self.failures)
        for one in self._turns.values():
            alone = wide and one in beside
            if alone:
                self.side.addWidget(one)
                one.show()
            else:
                self.turns.addWidget(one)
            one.head.title.setVisible(alone)  # else its tab says it
        self.cell.head.setVisible(wide)
        for name in ("cell", "failures"):
            self.which.offer(name, not wide)
        self.side.setVisible(wide)
        self.show_turn("reached" if wide else "cell")

    def _share(self, wanted: int) -> None:
        """Cells have the height they need, as far as charts keep theirs."""
        self._wanted = wanted
        high = self.down.height()
        least = LEAST if self.which.choice in ("reached", "budgets") else round(high * 0.58)
        cells = min(wanted, max(least, high - CHART))
        self.down.setSizes([cells, high - cells])
        self.side.setSizes([round(high * 0.6), round(high * 0.4)])

    def show_turn(self, name: str) -> None:
        """Show one of what takes turns."""
        self.which.choose(name)
        self.turns.setCurrentWidget(self._turns[name])
        if self._wanted and self.down.height() < LOW:  # where both have no room, one has it
            self._share(self._wanted)
