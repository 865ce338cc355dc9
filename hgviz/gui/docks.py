"""Where the panels stand: below each other at the right, or as tabs where there is less room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import (
    QApplication,
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
from hgviz.gui.language import tr
from hgviz.gui.view import View
from hgviz.gui.widgets import IconButton, label

TABS = 190  # px


class DockColumn(QScrollArea):
    """The docks one below the other, each under a head that can be dragged."""

    arranged = Signal()  # somebody moved one

    def __init__(self, panels: Sequence[View]) -> None:
        super().__init__()
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # it shows whatever in it has the keyboard
        inside = QWidget()
        inside.setProperty("kind", "pane")
        inside.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._column = QVBoxLayout(inside)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self.sections = {panel.title: Section(panel) for panel in panels}
        self.usual = tuple(self.sections)  # the order nobody changed
        for section in self.sections.values():
            self._column.addWidget(section)
            section.moved.connect(self._move)
            section.head.dragged.connect(self._dragged)
            section.head.dropped.connect(self._dropped)
        self._column.addStretch(1)
        self._mark = QFrame(inside)  # where a dock that is dragged will stand
        self._mark.setProperty("kind", "drop")
        self._mark.hide()
        self.setWidget(inside)

    @property
    def order(self) -> tuple[str, ...]:
        """The titles of all docks from top to bottom, whether they are there or not."""
        at = {title: self._column.indexOf(one) for title, one in self.sections.items()}
        return tuple(sorted(at, key=lambda title: at[title]))

    def arrange(self, order: Iterable[str]) -> None:
        """Put the docks in this order, and those that it does not name where they usually stand."""
        named = [title for title in dict.fromkeys(order) if title in self.sections]
        for at, title in enumerate(self.usual):
            if title not in named:
                named.insert(min(at, len(named)), title)
        for at, title in enumerate(named):
            self._column.insertWidget(at, self.sections[title])

    def _move(self, title: str, by: int) -> None:
        """A dock before the one above that is there, or after the one below."""
        order = [*self.order]
        there = [one for one in order if self.sections[one].isVisibleTo(self.widget())]
        at = there.index(title) + by
        if 0 <= at < len(there):
            self._put(title, there[at], after=by > 0)

    def _put(self, title: str, beside: str, after: bool) -> None:
        order = [one for one in self.order if one != title]
        order.insert(order.index(beside) + after, title)
        self.arrange(order)
        self.arranged.emit()

    def _place(self, y: int) -> tuple[str, bool]:
        """The dock that a height on the screen is at, and whether below its middle."""
        at = self.widget().mapFromGlobal(QPoint(0, y)).y()
        there = [one for one in self.order if self.sections[one].isVisibleTo(self.widget())]
        for title in there:
            box = self.sections[title].geometry()
            if at < box.center().y():
                return title, False
        return there[-1], True

    def _dragged(self, title: str, y: int) -> None:
        beside, after = self._place(y)
        box = self.sections[beside].geometry()
        top = box.bottom() - 1 if after else max(0, box.top() - 1)
        self._mark.setGeometry(0, top, box.width(), 3)
        self._mark.raise_()
        self._mark.show()
        self.ensureVisible(0, self.widget().mapFromGlobal(QPoint(0, y)).y(), 0, 24)

    def _dropped(self, title: str, y: int) -> None:
        self._mark.hide()
        beside, after = self._place(y)
        if beside != title:
            self._put(title, beside, after)

    def take(self, panels: Sequence[View]) -> None:
        """Take the panels back from the tabs."""
        for panel in panels:
            self.sections[panel.title].take(panel)


class Section(QWidget):
    """A dock: its 32 px head and its panel. moved: its title, -1 up or 1 down."""

    moved = Signal(str, int)

    def __init__(self, panel: View) -> None:
        super().__init__()
        self.head = SectionHead(panel.title)
        self.head.menu_wanted.connect(self._menu)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._column.addWidget(self.head)
        self.take(panel)

    def take(self, panel: View) -> None:
        """Hold the panel again."""
        self.panel = panel
        self._column.addWidget(panel)
        panel.show()

    def menu(self) -> QMenu:
        """What can be done with it."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(tr("What am I looking at?"), self._explain)
        menu.addAction(tr("Copy as picture"), self.panel.copy)
        menu.addSeparator()
        menu.addAction(tr("Move up"), self._up)
        menu.addAction(tr("Move down"), self._down)
        return menu

    def _menu(self, at: QPoint) -> None:
        self.menu().popup(at)

    def _explain(self) -> None:
        self.panel.asked.emit("explain")

    def _up(self) -> None:
        self.moved.emit(self.panel.title, -1)

    def _down(self) -> None:
        self.moved.emit(self.panel.title, 1)


class SectionHead(QFrame):
    """The head of a dock. dragged and dropped: the title, and how far down on the screen."""

    menu_wanted = Signal(QPoint)
    dragged = Signal(str, int)
    dropped = Signal(str, int)

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title, self._from, self._drags = title, QPoint(), False
        self.setProperty("kind", "raised")
        self.setFixedHeight(32)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 0, 10, 0)
        row.addWidget(label(tr(title), weight=600))
        row.addStretch(1)
        more = IconButton("more", tr("More for {pane}", pane=tr(title)))
        more.setFixedSize(24, 24)
        more.clicked.connect(self._more)
        row.addWidget(more)

    def _more(self) -> None:
        self.menu_wanted.emit(self.mapToGlobal(QPoint(self.width() - 150, self.height())))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Here a drag may begin."""
        self._from, self._drags = event.position().toPoint(), False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Say where the dock is dragged, once it is more than an unsteady click."""
        gone = event.position().toPoint() - self._from
        far = gone.manhattanLength() >= QApplication.startDragDistance()
        self._drags = self._drags or (far and bool(event.buttons() & Qt.MouseButton.LeftButton))
        if self._drags:
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
            self.dragged.emit(self._title, event.globalPosition().toPoint().y())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """End a drag."""
        if self._drags and event.button() == Qt.MouseButton.LeftButton:
            self._drags = False
            self.unsetCursor()
            self.dropped.emit(self._title, event.globalPosition().toPoint().y())


class DockTabs(QWidget):
    """The docks as tabs under the map; in a low window only the bar, until a tab is pressed."""

    def __init__(self) -> None:
        super().__init__()
        self.bar = QTabBar()
        self.bar.setDrawBase(False)
        self.bar.setExpanding(False)
        self.bar.setFixedHeight(32)
        self.bar.setUsesScrollButtons(True)
        self.bar.setAccessibleName(tr("Docks"))
        self.bar.setFont(theme.font(0.92, 500))
        self.stack = QStackedWidget()
        self._titles: list[str] = []  # of the tabs, in the words of the code
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
            self._titles.append(panel.title)
            self.bar.addTab(tr(panel.title))

    def release(self) -> None:
        """Let go of the panels: an area that only lost its widget would go on resizing it."""
        self._titles.clear()
        while self.bar.count():
            self.bar.removeTab(0)
            scroll = self.stack.widget(0)
            assert isinstance(scroll, QScrollArea)
            scroll.takeWidget()
            self.stack.removeWidget(scroll)
            scroll.deleteLater()

    def show_tab(self, title: str, there: bool) -> None:
        """Show or hide one tab."""
        if title in self._titles:
            self.bar.setTabVisible(self._titles.index(title), there)

    def choose(self, title: str) -> None:
        """Show the panel of a tab, in a low window too."""
        if title in self._titles:
            self.bar.setCurrentIndex(self._titles.index(title))
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
