"""The pictures of the window, and the ways to look at what is selected: tabs over the middle of
the Inspect page. A new picture is one more row of VIEWS, in LOOKS a tab of its own.
"""

from __future__ import annotations

from pkgutil import resolve_name

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget, QTabBar, QVBoxLayout, QWidget

from hgviz.gui import theme
from hgviz.gui.language import tr
from hgviz.gui.view import View

# every picture of the window; each is imported when it is built, most after the first one is seen
VIEWS = {
    "hourglass": "hgviz.gui.hourglass:HourglassView",
    "map": "hgviz.gui.map:MapView",
    "image": "hgviz.gui.views.image:ImageView",
    "links": "hgviz.gui.links:LinksView",
    "neurons": "hgviz.gui.neurons_parts.view:NeuronView",
    "attribution": "hgviz.gui.attribution:AttributionView",
    "across": "hgviz.gui.across:AcrossView",
    "heads": "hgviz.gui.heads:HeadsView",
    "text": "hgviz.gui.text:TextStrip",
    "follow": "hgviz.gui.views.follow:FollowView",
}
# those that have a tab over the middle, and what it says
LOOKS = {
    "map": "Map", "image": "Image", "links": "Links", "neurons": "Neurons",
    "attribution": "Attribution", "across": "Across levels", "heads": "All heads",
}  # fmt: skip


def view(name: str) -> type[View]:
    """The class of one of VIEWS, imported now."""
    found: type[View] = resolve_name(VIEWS[name])
    return found


class Looks(QWidget):
    """Views of one selection, of which one is shown, under a tab for each of LOOKS."""

    chosen = Signal(str)  # the name of a look

    def __init__(self, first: View, capturing: QWidget) -> None:
        super().__init__()
        self._looks: dict[str, View] = {}
        self._capturing = capturing
        self._busy, self._name = False, first.name
        self.bar = QTabBar()
        self.bar.setDrawBase(False)
        self.bar.setExpanding(False)
        self.bar.setFixedHeight(32)
        self.bar.setUsesScrollButtons(True)
        self.bar.setFont(theme.font(0.92, 500))
        self.bar.setAccessibleName(tr("Ways to look at this head"))
        self.stack = QStackedWidget()
        for title in LOOKS.values():
            self.bar.addTab(tr(title))
        self.take(first)
        self.offer("image", there=False)
        self.stack.addWidget(capturing)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.bar)
        column.addWidget(self.stack, 1)
        self.bar.currentChanged.connect(self._chosen)

    def take(self, *looks: View) -> None:
        """Have the views of more looks."""
        for one in looks:
            self._looks[one.name] = one
            self.stack.addWidget(one)

    def offer(self, name: str, there: bool) -> None:
        """Have a tab for a look, or none where it has nothing to show."""
        self.bar.setTabVisible([*LOOKS].index(name), there)

    def show_look(self, name: str) -> None:
        """Show one of the views."""
        self._name = name
        self.bar.setCurrentIndex([*LOOKS].index(name))
        self._show()

    def show_capturing(self, running: bool) -> None:
        """Progress stands where the picture will be, until there is something to see there."""
        self._busy = running
        self._show()

    def _show(self) -> None:
        self.stack.setCurrentWidget(self._capturing if self._busy else self._looks[self._name])

    def _chosen(self, index: int) -> None:
        name = [*LOOKS][index]
        if name != self._name:
            self.chosen.emit(name)
