"""Where the panels stand: below each other at the right, or as tabs where there is less room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QMenu,
    QScrollArea,
    QStackedWidget,
    QTabBar,
    QVBoxLayout,
    QWidget,
)

from hgviz.gui import theme
from hgviz.gui.controls import IconButton, label
from hgviz.gui.views.base import View

TABS = 190  # px


class DockColumn(QScrollArea):
    """The docks one below the other, each under a head that folds it away."""

    def __init__(self, panels: Sequence[View], folded: Iterable[str] = ()) -> None:
        super().__init__()
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        inside = QWidget()
        inside.setProperty("kind", "pane")
        inside.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._column = QVBoxLayout(inside)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self.sections = {panel.title: Section(panel) for panel in panels}
        for title, section in self.sections.items():
            self._column.addWidget(section)
            section.fold(title in folded)
        self._column.addStretch(1)
        self.setWidget(inside)

    def take(self, panels: Sequence[View]) -> None:
        """Take the panels back from the tabs."""
        for panel in panels:
            self.sections[panel.title].take(panel)


class Section(QWidget):
    """A dock: its 32 px head and its panel."""

    def __init__(self, panel: View) -> None:
        super().__init__()
        self.head = SectionHead(panel.title)
        self.head.pressed.connect(self._toggle)
        self.head.menu_wanted.connect(self._menu)
        self._folded = False
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._column.addWidget(self.head)
        self.take(panel)

    def take(self, panel: View) -> None:
        """Hold the panel again."""
        self.panel = panel
        self._column.addWidget(panel)
        panel.setVisible(not self._folded)

    def fold(self, folded: bool) -> None:
        """Show the head only, or all of it."""
        self._folded = folded
        self.panel.setVisible(not folded)

    def _toggle(self) -> None:
        self.fold(not self._folded)

    def _menu(self, at: QPoint) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction("Copy as picture", self.panel.copy)
        menu.addAction("Unfold" if self._folded else "Fold away", self._toggle)
        menu.popup(at)


class SectionHead(QFrame):
    """The head of a dock."""

    pressed = Signal()
    menu_wanted = Signal(QPoint)

    def __init__(self, title: str) -> None:
        super().__init__()
        self.setProperty("kind", "raised")
        self.setFixedHeight(32)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 0, 10, 0)
        row.addWidget(label(title, weight=600))
        row.addStretch(1)
        more = IconButton("more", f"More for {title}")
        more.setFixedSize(24, 24)
        more.clicked.connect(self._more)
        row.addWidget(more)

    def _more(self) -> None:
        self.menu_wanted.emit(self.mapToGlobal(QPoint(self.width() - 150, self.height())))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click folds the dock."""
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(event.pos()):
            self.pressed.emit()


class DockTabs(QWidget):
    """The docks as tabs under the map; in a low window only the bar, until a tab is pressed."""

    def __init__(self) -> None:
        super().__init__()
        self.bar = QTabBar()
        self.bar.setDrawBase(False)
        self.bar.setExpanding(False)
        self.bar.setFixedHeight(32)
        self.bar.setUsesScrollButtons(True)
        self.bar.setFont(theme.font(0.92, 500))
        self.stack = QStackedWidget()
        self._low = self._open = False
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.bar)
        column.addWidget(self.stack)
        self.bar.currentChanged.connect(self.stack.setCurrentIndex)
        self.bar.tabBarClicked.connect(self._clicked)
        self._room()

    def take(self, panels: Sequence[View]) -> None:
        """Take the panels from the column, as far as they have something to say."""
        for panel in panels:
            scroll = QScrollArea()
            scroll.setWidgetResizable(True)
            scroll.setWidget(panel)
            panel.show()
            self.stack.addWidget(scroll)
            self.bar.addTab(panel.title)

    def release(self) -> None:
        """Let go of the panels: an area that only lost its widget would go on resizing it."""
        while self.bar.count():
            self.bar.removeTab(0)
            scroll = self.stack.widget(0)
            assert isinstance(scroll, QScrollArea)
            scroll.takeWidget()
            self.stack.removeWidget(scroll)
            scroll.deleteLater()

    def show_tab(self, title: str, there: bool) -> None:
        """Show or hide one tab."""
        for index in range(self.bar.count()):
            if self.bar.tabText(index) == title:
                self.bar.setTabVisible(index, there)

    def choose(self, title: str) -> None:
        """Show the panel of a tab, in a low window too."""
        for index in range(self.bar.count()):
            if self.bar.tabText(index) == title:
                self.bar.setCurrentIndex(index)
                self._open = True
                self._room()

    def set_low(self, low: bool) -> None:
        """A low window has no room for an open tab beside the map."""
        if low != self._low:
            self._low, self._open = low, False
            self._room()

    def _clicked(self, index: int) -> None:
        if self._low:
            self._open = not (self._open and index == self.bar.currentIndex())
            self._room()

    def _room(self) -> None:
        shown = self._open or not self._low
        self.stack.setVisible(shown)
        self.setFixedHeight(TABS if shown else 32)

    def sizeHint(self) -> QSize:
        """As high as it is."""
        return QSize(300, self.height())


__all__ = ["DockColumn", "DockTabs"]
