"""The Inspect page with its docks, the Follow page, and the page where nothing is open."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QByteArray, QEvent, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QPaintEvent, QPen, QPolygonF, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QDockWidget,
    QGridLayout,
    QMainWindow,
    QScrollArea,
    QTabBar,
    QTabWidget,
    QWidget,
)

from hgviz import tasks
from hgviz.gui import sentences, theme
from hgviz.gui.hourglass import NOTHING, HourglassView
from hgviz.gui.language import tr
from hgviz.gui.map import MapView
from hgviz.gui.panels import PANELS, TextsPanel
from hgviz.gui.sessions import RecentList
from hgviz.gui.text import TextStrip
from hgviz.gui.view import LOOKS, Looks, View, view
from hgviz.gui.widgets import Button, PaneHead, Progress, Words, hbox, label, line, make, vbox
from hgviz.gui.window import SMALLEST, Window
from hgviz.session import Session, Work
from hgviz.session.document import Layout

if TYPE_CHECKING:
    from hgviz.gui.commands import Commands
    from hgviz.gui.heads import HeadsView

# px of window from which on more than one dock stands above the tabs, and px of these docks
HIGH, HIGHEST = 940, 1300
HEIGHTS = {1: (236,), 2: (268, 182), 3: (268, 182, 420)}
TABS, LEAST = 36, 280  # px: the tabs, and the width of a dock
TITLE_BUTTONS = {  # by the names that Qt gives them: icon and words
    "qt_dockwidget_floatbutton": ("copy", "Float {dock}, or dock it"),
    "qt_dockwidget_closebutton": ("close", "Hide {dock}"),
}
STRIP, STRIP_LOW = 188, 132  # px of the text
ROW_SPARED = 48  # px that a text of one row leaves to the map
Area = Qt.DockWidgetArea


class InspectPage(QMainWindow):
    """Hourglass | map | docks, over the text; Qt moves, floats, tabs and hides the docks.

    It begins with the map; `complete` brings the other looks.
    """

    heads: HeadsView

    def __init__(self) -> None:
        super().__init__()
        # when Qt has moved a dock
        self._titles = make(QTimer, self, singleShot=True, timeout=self._show_titles)
        self.setWindowFlags(Qt.WindowType.Widget)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)  # nobody in particular: arrows are tokens
        self.hourglass, self.strip, self.map = HourglassView(), TextStrip(), MapView()
        self.looks: tuple[View, ...] = (self.map,)
        self.capturing = CapturingView()
        self.panels: tuple[View, ...] = tuple(panel() for panel in PANELS)
        self.texts = next(one for one in self.panels if isinstance(one, TextsPanel))
        self.tabbed = Looks(self.map, self.capturing)
        self.tabbed.setMinimumSize(320, 320)
        self.hourglass.setMinimumWidth(300)
        self.setCentralWidget(self.tabbed)
        options = self.DockOption
        self.setDockOptions(
            options.AllowNestedDocks | options.AllowTabbedDocks | options.GroupedDragging
        )
        self.setTabPosition(Area.AllDockWidgetAreas, QTabWidget.TabPosition.North)
        self.docks = {panel.title: self._dock(panel) for panel in self.panels}
        self._hourglass = self._fix(self.hourglass, Area.LeftDockWidgetArea)
        self._fix(self.strip, Area.BottomDockWidgetArea)
        for corner in (Qt.Corner.BottomLeftCorner, Qt.Corner.BottomRightCorner):
            self.setCorner(corner, Area.BottomDockWidgetArea)
        self._above, self._restored = 2, False  # how many docks stand above the tabs at first
        self._states: dict[int, QByteArray] = {}  # of the docks, by that number
        self._front: list[QDockWidget] = []  # docks that were not behind a tab when all were hidden
        self._many = False  # whether the capture has many texts, which are listed then
        self._rows = 3
        self.strip.rows_changed.connect(self._fit_strip)
        texts = self.docks[self.texts.title]
        self.texts.wanted.connect(texts.show)
        self.texts.wanted.connect(texts.raise_)
        self.arrange()

    def complete(self) -> None:
        """Have the views of all looks."""
        more = {name: view(name)() for name in LOOKS if name != self.map.name}
        self.looks = (self.map, *more.values())
        self.heads = cast("HeadsView", more["heads"])
        self.tabbed.take(*more.values())

    def join(self, commands: Commands) -> None:
        """Have done what people do in looks that come later."""
        self.heads.example.connect(commands.show_example)
        self.heads.completed.connect(lambda roles: commands.session.put(roles=roles))

    @property
    def views(self) -> tuple[View, ...]:
        return (self.hourglass, *self.looks, *self.panels, self.strip, self.capturing)

    def arrange(self) -> None:
        """Put all docks where they are at first: some above, the others as tabs below."""
        docks = [*self.docks.values()]
        above = docks[: self._above]
        for dock in docks:
            self.removeDockWidget(dock)
        for dock in (*above, docks[len(above)]):
            self.addDockWidget(Area.RightDockWidgetArea, dock)
        for dock in docks[len(above) + 1 :]:
            self.tabifyDockWidget(docks[len(above)], dock)
        for dock in docks:
            dock.setFloating(False)
            dock.show()
        docks[len(above)].raise_()
        self._show_many()
        self._size_docks()
        self._restored = False

    def _size_docks(self) -> None:
        docks = [*self.docks.values()]
        columns = [self._hourglass, docks[0]]
        self.resizeDocks(columns, _columns(self.width()), Qt.Orientation.Horizontal)
        heights = [*HEIGHTS[self._above]]
        heights.append(max(1, self.tabbed.height() - sum(heights) - TABS))
        self.resizeDocks(docks[: len(heights)], heights, Qt.Orientation.Vertical)

    def turn_docks(self) -> None:
        """Hide all docks, or show all again, with the same tabs in front."""
        shown = all(dock.isHidden() for dock in self.docks.values())
        if not shown:
            panels = zip(self.docks.values(), self.panels, strict=True)
            self._front = [dock for dock, panel in panels if panel.isVisible()]
        for dock in self.docks.values():
            dock.setVisible(shown)
        self._show_many()
        for dock in self._front if shown else ():
            dock.raise_()

    def state(self) -> QByteArray:
        return self.saveState(self._above)

    def restore(self, state: QByteArray) -> None:
        """Put the docks where they were, unless they would not fit."""
        self._restored = self.restoreState(state, self._above)
        self._show_many()

    def show_texts(self, many: bool) -> None:
        if many != self._many:
            self._many = many
            self._show_many()
            if many:
                self.docks[self.texts.title].raise_()

    def respond(self, width: int, height: int) -> None:
        """Have fewer docks above the tabs in a low window, and a lower text."""
        above = 1 if height < HIGH else 2 if height < HIGHEST else 3
        if above != self._above:
            self._states[self._above], self._above = self.state(), above
            if above in self._states:
                self.restore(self._states[above])
                self._size_docks()  # they were as large as they could be in the other window
            else:
                self.arrange()
            self.strip.show_legend(above > 1)
            self._fit_strip(self._rows)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Have the hourglass and the docks as large a part of the width as before."""
        super().resizeEvent(event)
        before, now = event.oldSize().width(), self.width()
        if before <= 0 and not self._restored:
            self.arrange()
        elif before > 0 and before != now:
            docks = [self._hourglass, next(iter(self.docks.values()))]
            widths = zip(docks, _columns(before), _columns(now), strict=True)
            sizes = [round(dock.width() * new / old) for dock, old, new in widths]
            self.resizeDocks(docks, sizes, Qt.Orientation.Horizontal)

    def _dock(self, panel: View) -> QDockWidget:
        """The dock of a panel, which is hidden while another tab is in front of it."""
        title, font = tr(panel.title), theme.font(weight=600)
        dock = make(QDockWidget, title, objectName=panel.topic, font=font)
        scroll = DockBody()
        scroll.setFont(theme.font())
        scroll.setWidget(panel)
        dock.setWidget(scroll)
        dock.visibilityChanged.connect(panel.setVisible)
        for change in (dock.dockLocationChanged, dock.topLevelChanged, dock.visibilityChanged):
            change.connect(self._titles.start)
        return dock

    def _fix(self, pane: View, area: Qt.DockWidgetArea) -> QDockWidget:
        still = QDockWidget.DockWidgetFeature.NoDockWidgetFeatures
        dock = make(QDockWidget, objectName=pane.topic, features=still)
        dock.setTitleBarWidget(QWidget())
        dock.setWidget(pane)
        self.addDockWidget(area, dock)
        return dock

    def changeEvent(self, event: QEvent) -> None:
        """Draw the buttons of the docks in the colours of another theme."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.StyleChange:
            self._titles.start()

    def _show_titles(self) -> None:
        """Name a dock among tabs by its tab alone; Qt makes tabs and buttons anew when it moves."""
        for dock in self.docks.values():
            tabbed = bool(self.tabifiedDockWidgets(dock)) and not dock.isFloating()
            bar = dock.titleBarWidget()
            if tabbed != (bar is not None):
                dock.setTitleBarWidget(QWidget() if tabbed else None)
                if bar is not None:
                    bar.deleteLater()
            for name, (icon, words) in TITLE_BUTTONS.items():
                button = dock.findChild(QAbstractButton, name)
                button.setIcon(theme.icon(icon))
                button.setToolTip(tr(words, dock=dock.windowTitle()))
                button.setAccessibleName(button.toolTip())
                button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        for bar in self.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly):
            # Qt keeps those that it may use again, and leaves one unplaced when a state is restored
            bar.setVisible(bar.count() > 0 and bar.testAttribute(Qt.WidgetAttribute.WA_Moved))
            bar.setDrawBase(False)
            bar.setExpanding(False)
            bar.setAccessibleName(tr("Side panels"))
            bar.setFont(theme.font(0.92, 500))

    def _show_many(self) -> None:
        *others, dock = self.docks.values()
        dock.toggleViewAction().setVisible(self._many)
        dock.setVisible(self._many and not all(one.isHidden() for one in others))

    def _fit_strip(self, rows: int) -> None:
        """A text at one resolution needs less."""
        self._rows = rows
        high = STRIP if self._above > 1 else STRIP_LOW
        self.strip.setFixedHeight(high - ROW_SPARED if rows == 1 else high)


def _columns(width: int) -> list[int]:
    """The widths of the hourglass and of the docks at first; the map has the rest."""
    docks = min(max(LEAST, width * 19 // 100), 420)
    return [max(300, min(width * 37 // 100, width - docks - 500)), docks]


class FollowPage(QWidget):
    """One token through all levels, over the whole window."""

    def __init__(self) -> None:
        super().__init__()
        self.follow = view("follow")()
        self.views: tuple[View, ...] = (self.follow,)
        self.take_focus = self.follow.take_focus
        vbox(self, self.follow, spacing=-1)

    def respond(self, width: int, height: int) -> None:
        """The view makes room by itself."""


# name, page, what it shows, and the button that opens it
EXAMPLES = (
    ("inspect", "Inspect", "Attention maps of every head", "Inspect the sample"),
    ("prune", "Prune", "Which heads a classifier needs", "Prune a classifier"),
    ("compare", "Compare", "Softmax and ymish on the same text", "Compare two models"),
)


class DockBody(QScrollArea):
    """The body of a dock: as wide as the dock, however wide its panel would be in a large font."""

    def __init__(self) -> None:
        super().__init__(widgetResizable=True)
        self.setMinimumSize(LEAST, 96)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.widget().setMaximumWidth(self.viewport().width())
        super().resizeEvent(event)


class EmptyPage(QWidget):
    """Nothing is open: a ghost of the picture, one sentence, one filled button, one other; what to
    try, and files to go on with."""

    asked = Signal(str)
    example_wanted = Signal(str)  # the name of one of EXAMPLES

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "pane")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        title, text, actions = NOTHING
        buttons = hbox(None, spacing=8)
        for (action, said), icon, kind in zip(actions, ("", "open"), ("filled", ""), strict=True):
            ask = partial(self.asked.emit, action)
            buttons.addWidget(Button(tr(said), icon, kind=kind, minimumHeight=32, clicked=ask))
        buttons.addStretch(1)
        tries = make(QGridLayout, horizontalSpacing=12)
        tries.setColumnStretch(1, 1)
        for row, (name, page, purpose, words) in enumerate(EXAMPLES):
            tries.addWidget(label(tr(page), weight=600), row, 0)
            tries.addWidget(Words(tr(purpose), kind="secondary"), row, 1)
            want = partial(self.example_wanted.emit, name)
            button = Button(tr(words), accessibleDescription=tr(purpose), clicked=want)
            tries.addWidget(button, row, 2)
        self.recent = RecentList()
        opens = [*tasks.checkpoint_formats(), "captures", "studies", "sessions"]
        formats = tr("Opens: {formats}", formats=", ".join(map(tr, opens)))
        start = vbox(
            None, label(tr(title), factor=1.55, weight=600),
            label(tr(text), kind="secondary", wrap=True), spacing=8,
        )  # fmt: skip
        examples = vbox(None, label(tr("Getting started"), weight=600), tries, spacing=8)
        self._words, self._ghost = QWidget(), BlankHourglass()
        vbox(
            self._words, 1, start, buttons, examples, self.recent,
            label(formats, factor=0.92, kind="secondary", wrap=True), 1, spacing=24,
        )  # fmt: skip
        row = hbox(self, 1, self._ghost, (self._words, 20), 1, margins=(32, 16, 32, 16), spacing=-1)
        row.insertSpacing(2, 32)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fill a large window, too."""
        super().resizeEvent(event)
        more = max(0.0, min((self.width() - 1600) / 480, (self.height() - 900) / 320))
        self._ghost.setFixedSize(round(236 * (1 + more)), round(336 * (1 + more)))
        self._words.setMaximumWidth(round(560 + 200 * more))


class BlankHourglass(QWidget):
    """An hourglass of blank thumbnails."""

    ROWS = ((2, 27), (1, 19), (2, 14), (1, 19), (2, 27))  # layers, side

    def paintEvent(self, event: QPaintEvent) -> None:
        now = theme.current()
        y, left, right, blanks = 6.0, [], [], []  # x from the middle
        for layers, side in self.ROWS:
            pitch = side + 6
            half = 3 * pitch + 4
            for edge in (y, y + layers * pitch + 8):
                left.append(QPointF(-half, edge))
                right.append(QPointF(half, edge))
            blanks += [
                QRectF(7 - half + head * pitch, y + 7 + layer * pitch, side, side)
                for layer in range(layers)
                for head in range(6)
            ]
            y += layers * pitch + 24
        with theme.smooth_painter(self) as painter:
            painter.translate(self.width() / 2, 0)
            painter.scale(self.width() / 236, self.height() / 336)
            painter.setPen(QPen(now.edge, 1))
            painter.setBrush(now.raised)
            painter.drawPolygon(QPolygonF([*left, *reversed(right)]))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(now.hover)
            for box in blanks:
                painter.drawRoundedRect(box, 3, 3)


class WindowLayout:
    """Reads and changes the layout of a window and of its Inspect page."""

    def __init__(self, frame: Window, page: InspectPage, docks: str) -> None:
        self.frame, self.page = frame, page
        page.respond(frame.width(), frame.height())
        page.restore(QByteArray.fromBase64(docks.encode()))

    def kept(self) -> dict[str, object]:
        """What the settings keep of it."""
        return {"geometry": _text(self.frame.saveGeometry()), "docks": _text(self.page.state())}

    def layout(self) -> Layout:
        """What a session keeps of it."""
        size = self.frame.normalGeometry().size()
        whole = self.frame.isMaximized() or self.frame.isFullScreen()
        return Layout((size.width(), size.height()), whole, _text(self.page.state()))

    def lay_out(self, wanted: Layout) -> None:
        """As a session has it, no larger than the screen."""
        frame = self.frame
        if wanted.size is not None and not (frame.isMaximized() or frame.isFullScreen()):
            if wanted.whole:
                frame.showMaximized()
            else:
                room = frame.screen().availableGeometry().size()
                frame.resize(QSize(*wanted.size).boundedTo(room).expandedTo(SMALLEST))
        self.page.restore(QByteArray.fromBase64(wanted.docks.encode()))


def _text(state: QByteArray) -> str:
    return bytes(state.toBase64().data()).decode()


class CapturingView(View):
    """The capture under way, in place of its map: layer, per cent, time left, Stop."""

    title = "Running model"
    topic = "jobs"
    figureless = "Maps appear once their layers are captured"
    needs = ("work",)
    lane = "here"

    def __init__(self) -> None:
        super().__init__()
        self._title = label(tr("Running model"), factor=1.55, weight=600)
        self._layer = Words(kind="secondary")
        self._bar = Progress(8)
        self._part = label(sentences.percent("0"), weight=600)
        self._left = label("", kind="secondary")
        self._stop = Button(tr("Stop"), "stop", clicked=lambda: self.asked.emit("stop"))
        self._keeps = Words(factor=0.92, kind="secondary")
        inside = QWidget()
        inside.setMaximumWidth(420)
        below = hbox(None, self._part, 1, self._left, spacing=-1)
        stop = hbox(None, self._stop, (self._keeps, 1), spacing=16)
        vbox(
            inside, self._title, self._layer, self._bar, below, stop, 1, margins=(0, 32, 0, 16),
            spacing=10,
        )  # fmt: skip
        middle = hbox(None, 1, (inside, 6), 1, margins=(24, 0, 24, 0), spacing=-1)
        self._head = PaneHead(tr("Head"))
        foot = label(
            tr("Finished layers can be opened now; the rest appear as they are done."),
            factor=0.92, kind="secondary", wrap=True,
        )  # fmt: skip
        foot.setContentsMargins(16, 8, 16, 8)
        vbox(self.content, self._head, (middle, 1), line(), foot)

    def request(self, session: Session) -> Callable[[], tuple[Work, ...]] | None:
        works = session.work
        return (lambda: works) if works else None

    def draw(self, result: tuple[Work, ...]) -> None:
        work = next((one for one in reversed(result) if one.keeps), None)
        if work is None:
            return
        part, title = work.part, tr(work.title)
        self._head.note.say(title[:1].lower() + title[1:])
        self._layer.say(tr(work.note))
        self._bar.show_part(part, work.state == "done")
        self._part.setText(sentences.percent(f"{100 * part:.0f}"))
        self._bar.setAccessibleName(f"{title}: {self._part.text()}")
        self._left.setText(sentences.time_left(work.left))
        self._keeps.say(tr(work.keeps))
        self._stop.setEnabled(work.is_going)
