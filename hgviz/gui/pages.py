"""The pages of the window: which views stand where, and how they make room for each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QMenu,
    QScrollArea,
    QSplitter,
    QStackedWidget,
    QTabBar,
    QVBoxLayout,
    QWidget,
)

from hgviz.gui import theme
from hgviz.gui.controls import Button, IconButton, Words, label
from hgviz.gui.panels import PANELS, JobsPanel
from hgviz.gui.panels.jobs import CapturingView
from hgviz.gui.views import FollowView, HourglassView, MapView, TextStrip
from hgviz.gui.views.base import View
from hgviz.models.readers import READERS

DOCKS, STRIP, STRIP_LOW, SPINE, TABS = 304, 188, 160, 96, 190  # px
SPARED = 48  # px that a text strip of one row leaves to the map
TABS_BELOW, SPINE_BELOW = 1280, 1024  # px of width
FOLD_BELOW, LOW_BELOW = 960, 720  # px of height: the tabs fold, the text strip shrinks


class InspectPage(QWidget):
    """Hourglass | map | docks over the text strip; below 1280 px the docks are tabs."""

    def __init__(self) -> None:
        super().__init__()
        self.hourglass, self.map, self.strip = HourglassView(), MapView(), TextStrip()
        self.capturing = CapturingView()
        self.panels: tuple[View, ...] = tuple(panel() for panel in PANELS)
        self.jobs = next(one for one in self.panels if isinstance(one, JobsPanel))
        self.column = DockColumn(self.panels, folded=("Display",))
        self.tabs = DockTabs()
        self.maps = QStackedWidget()
        self.maps.addWidget(self.map)
        self.maps.addWidget(self.capturing)
        self.middle = _splitter(Qt.Orientation.Vertical, self.maps, self.tabs)
        self.across = _splitter(Qt.Orientation.Horizontal, self.hourglass, self.middle, self.column)
        self.down = _splitter(Qt.Orientation.Vertical, self.across, self.strip)
        for splitter, stretches in ((self.across, (592, 704, 0)), (self.down, (1, 0))):
            for number, stretch in enumerate(stretches):
                splitter.setStretchFactor(number, stretch)
        self.across.setSizes([592, 704, DOCKS])
        self.column.setFixedWidth(DOCKS)
        self.tabs.hide()
        self.map.setMinimumSize(240, 160)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.down)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # nobody in particular: arrows are letters
        self._tabbed = self._low = False
        self._rows = 3
        self.strip.rows_changed.connect(self._fit_strip)
        self.show_jobs(False)

    @property
    def views(self) -> tuple[View, ...]:
        """Every view and panel of the page; F6 walks them in this order."""
        return (self.hourglass, self.map, *self.panels, self.strip, self.capturing)

    def show_capturing(self, running: bool) -> None:
        """The progress stands where the map will be, until there is something to see there."""
        self.maps.setCurrentWidget(self.capturing if running else self.map)

    def show_jobs(self, running: bool) -> None:
        """The list of jobs is there while there are any."""
        self.jobs_shown = running
        self.column.sections[self.jobs.title].setVisible(running)
        self.tabs.show_tab(self.jobs.title, running)

    def respond(self, width: int, height: int) -> None:
        """Make room: docks below 1280 px become tabs, the hourglass below 1024 px a spine."""
        tabbed, spine, low = width < TABS_BELOW, width < SPINE_BELOW, height < LOW_BELOW
        self.hourglass.spine = spine
        self.hourglass.setMinimumWidth(SPINE if spine else 300)
        self.hourglass.setMaximumWidth(SPINE if spine else 16777215)
        self.strip.spine = self._low = low
        self._fit_strip(self._rows)
        if tabbed != self._tabbed:
            self._tabbed = tabbed
            home = self.tabs if tabbed else self.column
            home.take(self.panels)
            self.show_jobs(self.jobs_shown)
            self.column.setVisible(not tabbed)
            self.tabs.setVisible(tabbed)
        self.tabs.set_low(height < FOLD_BELOW)

    def _fit_strip(self, rows: int) -> None:
        """A text at one resolution needs less."""
        self._rows = rows
        high = STRIP_LOW if self._low else STRIP
        self.strip.setFixedHeight(high - SPARED if rows == 1 else high)


class FollowPage(QWidget):
    """One letter through all levels, over the whole window."""

    def __init__(self) -> None:
        super().__init__()
        self.follow = FollowView()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.follow)
        self.setFocusProxy(self.follow)

    @property
    def views(self) -> tuple[View, ...]:
        """The one view."""
        return (self.follow,)

    def respond(self, width: int, height: int) -> None:
        """The view makes room by itself."""


class EmptyPage(QWidget):
    """Nothing is open: a ghost of the picture, one sentence, one filled button, one other."""

    asked = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "pane")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        words = QVBoxLayout()
        words.setSpacing(8)
        words.addStretch(1)
        words.addWidget(label("Open a model to look inside", factor=1.55, weight=600))
        sentence = label(
            "Drop a checkpoint folder here, or start with the sample: a small Hourglass that "
            "reads text letter by letter.",
            kind="secondary",
        )
        sentence.setWordWrap(True)
        words.addWidget(sentence)
        words.addSpacing(16)
        buttons = QHBoxLayout()
        self._buttons: list[Button] = []
        for action, said, icon, kind in (
            ("open_sample", "Open the sample", "", "filled"),
            ("open_folder", "Open a checkpoint…", "open", ""),
        ):
            button = Button(said, icon, kind=kind)
            button.setMinimumHeight(32)
            button.setProperty("action", action)
            button.clicked.connect(self._clicked)
            buttons.addWidget(button)
            self._buttons.append(button)
        buttons.addStretch(1)
        words.addLayout(buttons)
        words.addSpacing(16)
        words.addWidget(label("Two things to try", weight=600))
        tries = QGridLayout()
        tries.setColumnMinimumWidth(0, 110)
        tries.setColumnStretch(1, 1)
        for row, (mode, does) in enumerate(
            (
                ("Inspect", "what a head looks at, letter by letter or word by word"),
                ("Follow", "what becomes of one letter or word on its way through all layers"),
            )
        ):
            tries.addWidget(label(mode, weight=600), row, 0)
            tries.addWidget(Words(does, kind="secondary"), row, 1)
        words.addLayout(tries)
        words.addSpacing(24)
        words.addWidget(
            Words(
                "Opens: " + ", ".join([*(one.label for one in READERS), "captures"]),
                factor=0.92,
                kind="secondary",
            )
        )
        words.addStretch(1)
        right = QWidget()
        right.setLayout(words)
        right.setMaximumWidth(560)
        row = QHBoxLayout(self)
        row.setContentsMargins(32, 16, 32, 16)
        row.addStretch(1)
        row.addWidget(Ghost())
        row.addSpacing(32)
        row.addWidget(right, 20)
        row.addStretch(1)

    def _clicked(self) -> None:
        self.asked.emit(self.sender().property("action"))


class Ghost(QWidget):
    """An hourglass of blank thumbnails."""

    ROWS = ((0, 2, 27), (1, 1, 19), (2, 2, 14), (1, 1, 19), (0, 2, 27))  # level, layers, side

    def __init__(self) -> None:
        super().__init__()
        self.setFixedSize(236, 336)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the outline, then six blanks in every row."""
        now = theme.current()
        y, left, right, blanks = 6.0, [], [], []
        for _, layers, side in self.ROWS:
            half = (6 * (side + 6) + 8) / 2
            top, y = y, y + layers * (side + 6) + 8
            for edge in (top, y):
                left.append(QPointF(self.width() / 2 - half, edge))
                right.append(QPointF(self.width() / 2 + half, edge))
            for layer in range(layers):
                for head in range(6):
                    x = self.width() / 2 - half + 7 + head * (side + 6)
                    blanks.append(QRectF(x, top + 7 + layer * (side + 6), side, side))
            y += 16
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(now.edge, 1))
            painter.setBrush(now.raised)
            painter.drawPolygon(QPolygonF([*left, *reversed(right)]))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(now.hover)
            for box in blanks:
                painter.drawRoundedRect(box, 3, 3)


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
        while self.bar.count():
            self.bar.removeTab(0)
            scroll = self.stack.widget(0)
            self.stack.removeWidget(scroll)
            scroll.deleteLater()
        for panel in panels:
            scroll = QScrollArea()
            scroll.setWidgetResizable(True)
            scroll.setWidget(panel)
            panel.show()
            self.stack.addWidget(scroll)
            self.bar.addTab(panel.title)

    def show_tab(self, title: str, there: bool) -> None:
        """Show or hide one tab."""
        for index in range(self.bar.count()):
            if self.bar.tabText(index) == title:
                self.bar.setTabVisible(index, there)

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


def _splitter(way: Qt.Orientation, *widgets: QWidget) -> QSplitter:
    out = QSplitter(way)
    out.setHandleWidth(1)
    out.setChildrenCollapsible(False)
    for one in widgets:
        out.addWidget(one)
    return out


__all__ = ["FollowPage", "InspectPage"]
