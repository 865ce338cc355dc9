"""The Prune page: the wall of heads at the left; score, curve and two tables beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QApplication,
    QSplitter,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

from hgviz.gui.language import tr
from hgviz.gui.livescore import LiveView
from hgviz.gui.prune import HeadsView
from hgviz.gui.prune_parts.changed import ChangedView
from hgviz.gui.prune_parts.curve import CurveView
from hgviz.gui.prune_parts.sliced import SlicesView
from hgviz.gui.view import View
from hgviz.gui.widgets import Segments

if TYPE_CHECKING:
    from hgviz.gui.prune_parts.commands import PruneCommands

LEFT, NARROW = 600, 480  # px of the wall, and in windows narrower than WIDE
WIDE = 1500
LIVE = 272  # px of height of the score, at least
HEIGHTS = (272, 304, 320)  # of score, curve and table at 1000 px
TABLES = (("changed", "What changed", ""), ("slices", "Classes and slices", ""))


class PrunePage(QWidget):
    """Heads | score over curve over changed predictions, or classes and slices."""

    def __init__(self) -> None:
        super().__init__()
        self.heads, self.live, self.curve = HeadsView(), LiveView(), CurveView()
        self.changed, self.slices = ChangedView(), SlicesView()
        self.tables: dict[str, ChangedView | SlicesView] = {
            "changed": self.changed,
            "slices": self.slices,
        }
        tabs = tuple((name, tr(words), icon) for name, words, icon in TABLES)
        self.tabs = tuple(Segments(tabs) for _ in self.tables)  # the same on both
        for table, row in zip(self.tables.values(), self.tabs, strict=True):
            table.head.add_beside_title(row)
            table.head.title.hide()  # the tabs say it
            row.chosen.connect(self.show_table)
        self.across = QSplitter(Qt.Orientation.Horizontal)
        self.down = QSplitter(Qt.Orientation.Vertical)
        self.below = QWidget()
        self.turns = QStackedLayout(self.below)
        for table in self.tables.values():
            self.turns.addWidget(table)
        for one, least in ((self.live, LIVE), (self.curve, 150), (self.below, 120)):
            one.setMinimumHeight(least)
        for one in (self.live, self.curve, self.below):
            self.down.addWidget(one)
        for splitter in (self.across, self.down):
            splitter.setHandleWidth(1)
            splitter.setChildrenCollapsible(False)
        self.across.addWidget(self.heads)
        self.across.addWidget(self.down)
        self.across.setStretchFactor(0, 0)
        self.across.setStretchFactor(1, 1)
        self.heads.setMinimumWidth(320)
        for one, high in zip((self.live, self.curve, self.below), HEIGHTS, strict=True):
            self.down.setStretchFactor(self.down.indexOf(one), high)
        self.down.setSizes([*HEIGHTS])
        self._wide = 0
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.across)

    @property
    def views(self) -> tuple[View, ...]:
        """Every view of the page; F6 walks them in this order."""
        return (self.heads, self.live, self.curve, *self.tables.values())

    def join(self, commands: PruneCommands) -> None:
        """Have what people do here done."""
        pruning = commands.pruning
        for view in (self.heads, self.curve):
            view.switched.connect(pruning.switch)
        self.heads.coloured.connect(pruning.colour)
        self.heads.picked.connect(pruning.switch)
        self.heads.dropped.connect(pruning.drop)
        say = commands.window.chosen_words.say
        self.heads.told.connect(say)
        for one in (self.curve, self.changed.table, self.slices.table):
            one.told.connect(say)
        self.heads.halted.connect(pruning.stop_measuring)
        self.live.stopped.connect(pruning.stop_trial)
        self.live.resumed.connect(pruning.resume)
        self.changed.opened.connect(commands.open_changed)

    def take_focus(self) -> bool:
        """The keyboard goes to what the page is about."""
        return self.heads.take_focus()

    def respond(self, width: int, height: int) -> None:
        """Narrow the wall in narrow windows."""
        left = LEFT if width >= WIDE else NARROW
        if left != self._wide:
            self._wide = left
            self.across.setSizes([left, max(1, width - left)])

    def show_table(self, name: str) -> None:
        """Changed predictions, or classes and slices."""
        typed = self.below.isAncestorOf(QApplication.focusWidget() or self)
        self.turns.setCurrentWidget(self.tables[name])
        for tabs in self.tabs:
            tabs.choose(name)
        if typed:  # the keyboard stays on the tab that was pressed
            self.tabs[list(self.tables).index(name)].setFocus()
