"""The pages of the window: which views stand where, and how they make room for each other."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QVBoxLayout,
    QWidget,
)

from hgviz.gui import theme
from hgviz.gui.docks import DockColumn, DockTabs
from hgviz.gui.hourglass import HourglassView
from hgviz.gui.keeping.offering import RecentList
from hgviz.gui.language import tr
from hgviz.gui.looks import LOOKS, Looks, view
from hgviz.gui.map import MapView
from hgviz.gui.panels_parts.heads import HeadPanel
from hgviz.gui.panels_parts.jobs import CapturingView
from hgviz.gui.panels_parts.known import PANELS
from hgviz.gui.panels_parts.texts import TextsPanel
from hgviz.gui.text import TextStrip
from hgviz.gui.view import View
from hgviz.gui.widgets import Button, Words, label, splitter
from hgviz.models.formats.readers import READERS

if TYPE_CHECKING:
    from hgviz.gui.commands import Commands
    from hgviz.gui.heads import HeadsView

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
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.down)
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
        self.heads.found.connect(commands.take_habits)

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
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.follow)

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
            ("open_sample", "Open the sample", "", "filled"),
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
        opens = [*(one.label for one in READERS), "captures", "studies", "sessions"]
        formats = label(
            tr("Opens: {formats}", formats=", ".join(map(tr, opens))), factor=0.92, kind="secondary"
        )
        formats.setWordWrap(True)
        words.addWidget(formats)
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
