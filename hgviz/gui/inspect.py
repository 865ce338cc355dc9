"""The Inspect page, its docks and its layout."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QByteArray, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QMenu,
    QScrollArea,
    QStackedWidget,
    QTabBar,
    QVBoxLayout,
    QWidget,
)

from hgviz import tasks
from hgviz.gui import theme
from hgviz.gui.hourglass import HourglassView
from hgviz.gui.jobchip import CapturingView
from hgviz.gui.language import tr
from hgviz.gui.map import MapView
from hgviz.gui.panels import PANELS, HeadPanel, TextsPanel
from hgviz.gui.sessions import RecentList
from hgviz.gui.text import TextStrip
from hgviz.gui.view import LOOKS, Looks, View, view
from hgviz.gui.widgets import Button, IconButton, Words, hbox, label, splitter, vbox
from hgviz.gui.window import SMALLEST, Window
from hgviz.session.saved import Layout
from hgviz.settings import Settings

if TYPE_CHECKING:
    from hgviz.gui.commands import Commands
    from hgviz.gui.heads import HeadsView

# --- docks ----------------------------------------------------------------------------------------


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
        self._column = vbox(inside)
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
        self._column = vbox(self, self.head)
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
        row = hbox(self, label(tr(title), weight=600), 1, margins=(16, 0, 10, 0), spacing=-1)
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
        vbox(self, self.bar, self.stack)
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


# --- inspect --------------------------------------------------------------------------------------


DOCKS, STRIP, STRIP_LOW = 304, 188, 160  # px
SPARED = 48  # px that a text strip of one row leaves to the map
# name, page, what it shows, and the button that opens it
EXAMPLES = (
    ("inspect", "Inspect", "What a head looks at, letter by letter", "Look at the sample"),
    ("prune", "Prune", "Which heads a classifier needs", "Score a classifier"),
    ("compare", "Compare", "What softmax and ymish make of a text", "Compare two models"),
)
TABS_BELOW = 1280  # px of width
FOLD_BELOW, LOW_BELOW = 960, 720  # px of height: the tabs fold, the text strip shrinks


class InspectPage(QWidget):
    """Hourglass | map | docks over the text strip; below 1280 px the docks are tabs.

    It begins with the map; `complete` brings the other looks.
    """

    heads: HeadsView

    def __init__(self) -> None:
        super().__init__()
        self.hourglass, self.strip = HourglassView(), TextStrip()
        self.map = MapView()
        self.looks: tuple[View, ...] = (self.map,)
        self.capturing = CapturingView()
        self.panels: tuple[View, ...] = tuple(panel() for panel in PANELS)
        self.texts = next(one for one in self.panels if isinstance(one, TextsPanel))
        self._many = False  # whether the capture has many texts, which are listed then
        self.column = DockColumn(self.panels)
        self.tabs = DockTabs()
        self.tabbed = Looks(self.map, self.capturing)
        self.middle = splitter(Qt.Orientation.Vertical, self.tabbed, self.tabs)
        self.across = splitter(Qt.Orientation.Horizontal, self.hourglass, self.middle, self.column)
        self.down = splitter(Qt.Orientation.Vertical, self.across, self.strip)
        for panes, stretches in ((self.across, (592, 704, 0)), (self.down, (1, 0))):
            for number, stretch in enumerate(stretches):
                panes.setStretchFactor(number, stretch)
        self.hourglass.setMinimumWidth(300)
        self.column.setFixedWidth(DOCKS)
        self._side = self.shown_at = "right"  # and where docks that are hidden come back to
        self.tabs.hide()
        self.tabbed.setMinimumSize(240, 160)
        vbox(self, self.down, spacing=-1)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)  # nobody in particular: arrows are letters
        self._tabbed = self._low = False
        self._rows = 3
        self.strip.rows_changed.connect(self._fit_strip)
        self.texts.wanted.connect(self._reveal_texts)
        self._show_there()
        self.arrange(())

    def complete(self) -> None:
        """Have the views of all looks."""
        more = {name: view(name)() for name in LOOKS if name != self.map.name}
        self.looks = (self.map, *more.values())
        self.heads = cast("HeadsView", more["heads"])
        self.tabbed.take(*more.values())

    def join(self, commands: Commands) -> None:
        """Have done what people do in looks that come later."""
        self.heads.example.connect(commands.show_example)
        self.heads.found.connect(commands.take_roles)

    @property
    def views(self) -> tuple[View, ...]:
        """Every view and panel of the page; F6 walks them in this order."""
        return (self.hourglass, *self.looks, *self.panels, self.strip, self.capturing)

    @property
    def side(self) -> str:
        """Where the docks stand: right, left or hidden."""
        return self._side

    def arrange(self, order: Iterable[str]) -> None:
        """Put the docks in this order, and make the panes as wide as they are at first."""
        self.column.arrange(order)
        widths = {self.hourglass: 592, self.middle: 704, self.column: DOCKS}
        self.across.setSizes([widths[self.across.widget(at)] for at in range(3)])  # type: ignore[index]
        if self._tabbed:
            self._fill_tabs()

    def put_docks(self, side: str) -> None:
        """Have the docks at the right or the left of the pictures, or hidden."""
        self._side = side
        if side != "hidden":
            self.shown_at = side
            self.across.insertWidget(0 if side == "left" else 2, self.column)
        self._show_docks()

    def show_texts(self, many: bool) -> None:
        """The list of texts is there for a capture of many."""
        if many != self._many:
            self._many = many
            self._show_there()
            shown = self.texts.title if many else HeadPanel.title
            self.tabs.bar.setCurrentIndex(self.column.order.index(shown))

    def respond(self, width: int, height: int) -> None:
        """Turn the docks into tabs below 1280 px, and lower the text below 720 px."""
        tabbed, self._low = width < TABS_BELOW, height < LOW_BELOW
        self.strip.show_legend(not self._low)
        self._fit_strip(self._rows)
        if tabbed != self._tabbed:
            self._tabbed = tabbed
            if tabbed:
                self._fill_tabs()
            else:
                self.tabs.release()
                self.column.take(self.panels)
                self._show_there()
            self._show_docks()
        self.tabs.set_low(height < FOLD_BELOW)

    def _fill_tabs(self) -> None:
        """The tabs stand in the order of the docks."""
        self.tabs.release()
        self.tabs.take([self.column.sections[title].panel for title in self.column.order])
        self._show_there()

    def _show_there(self) -> None:
        self.column.sections[self.texts.title].setVisible(self._many)
        self.tabs.show_tab(self.texts.title, self._many)

    def _show_docks(self) -> None:
        shown = self._side != "hidden"
        self.column.setVisible(shown and not self._tabbed)
        self.tabs.setVisible(shown and self._tabbed)

    def _reveal_texts(self) -> None:
        self.column.ensureWidgetVisible(self.column.sections[self.texts.title])
        if self._tabbed:
            self.tabs.choose(self.texts.title)

    def _fit_strip(self, rows: int) -> None:
        """A text at one resolution needs less."""
        self._rows = rows
        high = STRIP_LOW if self._low else STRIP
        self.strip.setFixedHeight(high - SPARED if rows == 1 else high)


class FollowPage(QWidget):
    """One letter through all levels, over the whole window."""

    def __init__(self) -> None:
        super().__init__()
        self.follow = view("follow")()
        vbox(self, self.follow, spacing=-1)

    def take_focus(self) -> bool:
        """The letters get the keyboard."""
        return self.follow.take_focus()

    @property
    def views(self) -> tuple[View, ...]:
        """The one view."""
        return (self.follow,)

    def respond(self, width: int, height: int) -> None:
        """The view makes room by itself."""


class EmptyPage(QWidget):
    """Nothing is open: a ghost of the picture, one sentence, one filled button, one other; what to
    try, and files to go on with."""

    asked = Signal(str)
    example_wanted = Signal(str)  # the name of one of EXAMPLES

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "pane")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        words = QVBoxLayout()
        words.setSpacing(8)
        words.addStretch(1)
        words.addWidget(label(tr("Open a model to look inside"), factor=1.55, weight=600))
        sentence = label(
            tr(
                "Drop a checkpoint folder here, or start with the sample: a small Hourglass that "
                "reads text letter by letter."
            ),
            kind="secondary",
        )
        sentence.setWordWrap(True)
        words.addWidget(sentence)
        words.addSpacing(16)
        buttons = QHBoxLayout()
        self._buttons: list[Button] = []
        for action, said, icon, kind in (
            ("open_sample", "Open sample model", "", "filled"),
            ("open_folder", "Open a checkpoint…", "open", ""),
        ):
            button = Button(tr(said), icon, kind=kind)
            button.setMinimumHeight(32)
            button.setProperty("action", action)
            button.clicked.connect(self._clicked)
            buttons.addWidget(button)
            self._buttons.append(button)
        buttons.addStretch(1)
        words.addLayout(buttons)
        words.addSpacing(16)
        words.addWidget(label(tr("Three things to try"), weight=600))
        tries = QGridLayout()
        tries.setHorizontalSpacing(12)
        tries.setColumnStretch(1, 1)
        for row, (name, page, purpose, title) in enumerate(EXAMPLES):
            tries.addWidget(label(tr(page), weight=600), row, 0)
            tries.addWidget(Words(tr(purpose), kind="secondary"), row, 1)
            button = Button(tr(title))
            button.setAccessibleDescription(tr(purpose))
            button.clicked.connect(partial(self.example_wanted.emit, name))
            tries.addWidget(button, row, 2)
        words.addLayout(tries)
        words.addSpacing(16)
        self.recent = RecentList()
        words.addWidget(self.recent)
        words.addSpacing(8)
        opens = [*tasks.checkpoint_formats(), "captures", "studies", "sessions"]
        formats = label(
            tr("Opens: {formats}", formats=", ".join(map(tr, opens))), factor=0.92, kind="secondary"
        )
        formats.setWordWrap(True)
        words.addWidget(formats)
        words.addStretch(1)
        right = QWidget()
        right.setLayout(words)
        right.setMaximumWidth(560)
        row = hbox(self, 1, BlankHourglass(), margins=(32, 16, 32, 16), spacing=-1)
        row.addSpacing(32)
        row.addWidget(right, 20)
        row.addStretch(1)

    def _clicked(self) -> None:
        self.asked.emit(self.sender().property("action"))


class BlankHourglass(QWidget):
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
        with theme.smooth_painter(self) as painter:
            painter.setPen(QPen(now.edge, 1))
            painter.setBrush(now.raised)
            painter.drawPolygon(QPolygonF([*left, *reversed(right)]))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(now.hover)
            for box in blanks:
                painter.drawRoundedRect(box, 3, 3)


# --- window layout --------------------------------------------------------------------------------


class WindowLayout:
    """Reads and changes the layout of a window and of its Inspect page."""

    def __init__(self, frame: Window, page: InspectPage) -> None:
        self.frame, self.page = frame, page

    def restore(self, kept: Settings) -> None:
        """As it was when the window closed."""
        self.page.shown_at = kept.shown_at
        self.page.put_docks(kept.side)
        self.page.arrange(kept.panels)
        if kept.docks:
            self.page.across.restoreState(QByteArray.fromBase64(kept.docks.encode()))

    def kept(self) -> dict[str, object]:
        """What the settings keep of it."""
        return {
            "geometry": _text(self.frame.saveGeometry()),
            "docks": _text(self.page.across.saveState()),
            "panels": self.page.column.order,
            "side": self.page.side,
            "shown_at": self.page.shown_at,
        }

    def layout(self) -> Layout:
        """What a session keeps of it."""
        size, column = self.frame.normalGeometry().size(), self.page.column
        whole = self.frame.isMaximized() or self.frame.isFullScreen()
        widths = tuple(self.page.across.sizes()) if column.isVisible() else ()
        return Layout((size.width(), size.height()), whole, widths, column.order)

    def lay_out(self, wanted: Layout) -> None:
        """As a session has it, no larger than the screen."""
        frame, page = self.frame, self.page
        if wanted.size is not None and not (frame.isMaximized() or frame.isFullScreen()):
            if wanted.whole:
                frame.showMaximized()
            else:
                room = frame.screen().availableGeometry().size()
                frame.resize(QSize(*wanted.size).boundedTo(room).expandedTo(SMALLEST))
        if wanted.panels:
            page.arrange(wanted.panels)
        if len(wanted.across) == page.across.count() and page.column.isVisible():
            page.across.setSizes([*wanted.across])

    def reset(self) -> None:
        """As it is at first."""
        first = Settings()
        self.page.put_docks(first.side)
        self.page.arrange(first.panels)

    def turn(self) -> str:
        """Hide the docks, or show them where they were; gives the side they are at now."""
        if self.page.side == "hidden":
            self.page.put_docks(self.page.shown_at)
        else:
            self.page.put_docks("hidden")
        return self.page.side


def _text(state: QByteArray) -> str:
    return bytes(state.toBase64().data()).decode()
