"""The page of a study of many runs: how it stands, its cells, what they reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from hgviz.gui.language import tr
from hgviz.gui.studies import BudgetsView, ReachedView
from hgviz.gui.sweeps.cell import CellView
from hgviz.gui.sweeps.summary import SummaryView
from hgviz.gui.sweeps.table import CellsView
from hgviz.gui.view import View
from hgviz.gui.widgets import Segments, line, splitter

if TYPE_CHECKING:
    from hgviz.gui.commands import Commands

SIDE, LEAST = 340, 150  # px: width of the chosen cell, least height of the table and of a chart
CHARTS = (("reached", "What each reaches", ""), ("budgets", "As heads go", ""))


class SweepPage(QWidget):
    """A line on the study over the table of its cells over a chart; the chosen cell beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.summary, self.cells, self.cell = SummaryView(), CellsView(), CellView()
        self.reached, self.budgets = ReachedView(), BudgetsView()
        self.which = Segments([(name, tr(words), icon) for name, words, icon in CHARTS])
        self.which.setAccessibleName(tr("Charts"))
        self.which.chosen.connect(self.show_chart)
        self.charts = QStackedWidget()
        for name, view in self._charts.items():
            self.which.allow(name, True, tr(view.means))
            view.head.title.hide()  # the segment says it
            self.charts.addWidget(view)
        bar = QWidget()
        bar.setProperty("kind", "pane")
        bar.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        inside = QHBoxLayout(bar)
        inside.setContentsMargins(16, 6, 16, 0)
        inside.addWidget(self.which)
        inside.addStretch(1)
        below = QWidget()
        under = QVBoxLayout(below)
        under.setContentsMargins(0, 0, 0, 0)
        under.setSpacing(0)
        under.addWidget(bar)
        under.addWidget(self.charts, 1)
        down = splitter(Qt.Orientation.Vertical, self.cells, below)
        for number, pane in enumerate((self.cells, below)):
            pane.setMinimumHeight(LEAST)
            down.setStretchFactor(number, 1)
        self.cell.setFixedWidth(SIDE)
        across = splitter(Qt.Orientation.Horizontal, down, self.cell)
        across.setStretchFactor(0, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.summary)
        column.addWidget(line())
        column.addWidget(across, 1)

    @property
    def views(self) -> tuple[View, ...]:
        """Every view of the page; F6 walks them in this order."""
        return (self.summary, self.cells, self.cell, self.reached, self.budgets)

    def join(self, commands: Commands) -> None:
        """Connect the views to the commands of a window."""
        self.cells.picked.connect(commands.choose_cell)
        for view in self._charts.values():
            view.pointed.connect(commands.say)

    def take_focus(self) -> bool:
        """Give the keyboard to the table."""
        return self.cells.take_focus()

    def respond(self, width: int, height: int) -> None:
        """Do nothing: the page has one layout."""

    def show_chart(self, name: str) -> None:
        """Show one of the two charts: reached or budgets."""
        self.which.choose(name)
        self.charts.setCurrentWidget(self._charts[name])

    @property
    def _charts(self) -> dict[str, ReachedView | BudgetsView]:
        return {"reached": self.reached, "budgets": self.budgets}


__all__ = ["SweepPage"]
