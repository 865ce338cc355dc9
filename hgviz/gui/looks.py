"""The pictures of the window, and the ways to look at what is selected: tabs over the middle of
the Inspect page. A new picture is one more name in VIEWS, in LOOKS a tab of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget, QTabBar, QVBoxLayout, QWidget

from hgviz.gui import theme
from hgviz.gui.across.view import AcrossView
from hgviz.gui.attribution.view import AttributionView
from hgviz.gui.heads.view import HeadsView
from hgviz.gui.links.view import LinksView
from hgviz.gui.neurons.view import NeuronView
from hgviz.gui.views.base import View
from hgviz.gui.views.follow import FollowView
from hgviz.gui.views.hourglass import HourglassView
from hgviz.gui.views.map import MapView
from hgviz.gui.views.text import TextStrip

LOOKS = (MapView, LinksView, NeuronView, AttributionView, AcrossView, HeadsView)

VIEWS = (HourglassView, *LOOKS, TextStrip, FollowView)


class Looks(QWidget):
    """Views of one selection, of which one is shown; the bar is there where there are several."""

    chosen = Signal(str)  # the name of a look

    def __init__(self, looks: Sequence[View], capturing: QWidget) -> None:
        super().__init__()
        self._looks = {one.name: one for one in looks}
        self._capturing = capturing
        self._busy, self._name = False, looks[0].name
        self.bar = QTabBar()
        self.bar.setDrawBase(False)
        self.bar.setExpanding(False)
        self.bar.setFixedHeight(32)
        self.bar.setUsesScrollButtons(True)
        self.bar.setFont(theme.font(0.92, 500))
        self.bar.setAccessibleName("Ways to look at this head")
        self.bar.setVisible(len(looks) > 1)
        self.stack = QStackedWidget()
        for one in looks:
            self.bar.addTab(one.title)
            self.stack.addWidget(one)
        self.stack.addWidget(capturing)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.bar)
        column.addWidget(self.stack, 1)
        self.bar.currentChanged.connect(self._chosen)

    def show_look(self, name: str) -> None:
        """Show one of the views."""
        self._name = name
        self.bar.setCurrentIndex([*self._looks].index(name))
        self._show()

    def show_capturing(self, running: bool) -> None:
        """Progress stands where the picture will be, until there is something to see there."""
        self._busy = running
        self._show()

    def _show(self) -> None:
        self.stack.setCurrentWidget(self._capturing if self._busy else self._looks[self._name])

    def _chosen(self, index: int) -> None:
        name = [*self._looks][index]
        if name != self._name:
            self.chosen.emit(name)
