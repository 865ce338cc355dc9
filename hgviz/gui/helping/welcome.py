"""Three things to try: what hgviz is for, each with a button that does it on what comes with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from hgviz.gui import opening, theme
from hgviz.gui.controls import Button, IconButton, label
from hgviz.gui.language import tr
from hgviz.gui.overlay import Overlay
from hgviz.resources import resource
from hgviz.session.other import Other

if TYPE_CHECKING:
    from hgviz.gui.capturing import Capturing
    from hgviz.gui.compare.comparing import Comparing
    from hgviz.session import Session

A, B = "sample/softmax", "sample/ymish"
LOW = 1280  # px of width: below it, sentences go


class Thing(NamedTuple):
    """One thing to try: what it is called and its picture, what it shows, in a sentence and in a
    few words, and what the button says."""

    name: str
    words: str
    icon: str
    shows: str
    short: str
    button: str


THINGS = (
    Thing(
        "inspect",
        "Inspect",
        "eye",
        "What a head looks at: the sample reads text letter by letter, at three resolutions.",
        "What a head looks at, letter by letter",
        "Look at the sample",
    ),
    Thing(
        "prune",
        "Prune",
        "prune",
        "Which heads a model needs: a small classifier is scored on 2,000 reviews; switch heads "
        "off and watch.",
        "Which heads a classifier needs",
        "Score a classifier",
    ),
    Thing(
        "compare",
        "Compare",
        "compare",
        "What an activation changes: the same classifier, trained with softmax and with ymish.",
        "What softmax and ymish make of a text",
        "Compare two models",
    ),
)


class Trying:
    """Does the three things, for a window."""

    def __init__(
        self,
        session: Session,
        capturing: Capturing,
        comparing: Comparing,
        run: Callable[[str], None],
        open_path: Callable[[str], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self.session, self.capturing, self.comparing = session, capturing, comparing
        self._run, self._open_path, self._failed = run, open_path, failed

    def start(self, name: str) -> None:
        """Do the thing of that name."""
        {"inspect": self._inspect, "prune": self._prune, "compare": self._compare}[name]()

    def _inspect(self) -> None:
        first = resource(opening.FIRST)
        self.session.put(mode="inspect")
        self._open_path(str(first if first.exists() else resource(opening.SAMPLE)))

    def _prune(self) -> None:
        self._open(self._score)

    def _score(self) -> None:
        self._run("bundled_data")

    def _compare(self) -> None:
        self._open(self._put_beside)

    def _put_beside(self) -> None:
        self.comparing.choose(Other("model", path=str(resource(B))))
        self.session.put(mode="compare")

    def _open(self, then: Callable[[], None]) -> None:
        """Open the classifier with the text that comes with it."""
        path = str(resource(A))
        self.session.put(text=opening.text_for(path, self.session.text), second="")
        self.capturing.start_again(path, then, self._failed)


class Cards(QWidget):
    """The three side by side, as large as there is room. chosen: the name of one."""

    chosen = Signal(str)

    def __init__(self, large: bool = False) -> None:
        super().__init__()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(16)
        self.cards = [Card(one, large) for one in THINGS]
        for one in self.cards:
            one.chosen.connect(self.chosen)
            row.addWidget(one, 1)


class Card(QFrame):
    """Picture, name, a sentence, and the button; below each other where it is large."""

    chosen = Signal(str)

    def __init__(self, thing: Thing, large: bool) -> None:
        super().__init__()
        self.thing, self._large = thing, large
        self.setProperty("kind", "card")
        self.sign = QLabel()
        self.sign.setFixedSize(QSize(28, 28))
        self.name = label(tr(thing.words), weight=600, factor=1.08 if large else 1.0)
        self.shows = label(tr(thing.shows), factor=1.0 if large else 0.92, kind="secondary")
        self.shows.setWordWrap(True)
        self.button = Button(tr(thing.button))
        self.button.setAccessibleDescription(tr(thing.shows))
        self.button.setToolTip(tr(thing.shows))
        self.button.clicked.connect(self._clicked)
        words = QVBoxLayout()
        words.setSpacing(2)
        if large:
            column = QVBoxLayout(self)
            column.setContentsMargins(16, 16, 16, 16)
            column.setSpacing(8)
            column.addWidget(self.sign)
            column.addWidget(self.name)
            column.addWidget(self.shows, 1, Qt.AlignmentFlag.AlignTop)
            column.addWidget(self.button)
        else:
            row = QHBoxLayout(self)
            row.setContentsMargins(12, 8, 8, 8)
            row.setSpacing(10)
            words.addStretch(1)
            words.addWidget(self.name)
            words.addWidget(self.shows)
            words.addStretch(1)
            row.addWidget(self.sign)
            row.addLayout(words, 1)
            row.addWidget(self.button)
        self._draw()

    def fit(self, width: int) -> None:
        """Say as much as there is room for in a row that wide."""
        self.shows.setVisible(width >= LOW)
        room = 8 if width >= LOW else 2
        self.layout().setContentsMargins(12, room, 8, room)

    def changeEvent(self, event) -> None:  # type: ignore[no-untyped-def]
        """Draw the picture again in the new theme's colour."""
        if event.type() == event.Type.PaletteChange:
            self._draw()
        super().changeEvent(event)

    def _draw(self) -> None:
        self.sign.setPixmap(theme.pixmap(self.thing.icon, 28, theme.current().press))

    def _clicked(self) -> None:
        self.chosen.emit(self.thing.name)


class Welcome(Overlay):
    """The three cards over the window, by the Help menu. chosen: the name of one."""

    chosen = Signal(str)
    wide = 860

    def __init__(self, over: QWidget) -> None:
        super().__init__(over)
        self.body.addWidget(label(tr("Three things to try"), factor=1.15, weight=600))
        said = label(tr("Each works on what comes with hgviz, offline."), kind="secondary")
        said.setWordWrap(True)
        self.body.addWidget(said)
        self.body.addSpacing(8)
        self.cards = Cards(large=True)
        self.cards.chosen.connect(self._chosen)
        self.body.addWidget(self.cards)
        close = Button(tr("Close"))
        close.clicked.connect(self.finish)
        self.default = self.cards.cards[0].button
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(close)
        self.body.addSpacing(8)
        self.body.addLayout(row)

    def _chosen(self, name: str) -> None:
        self.finish()
        self.chosen.emit(name)


class Band(QFrame):
    """The three in a band under the toolbar, at the very first start, until it is put away."""

    chosen = Signal(str)
    dropped = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "toolbar")
        self.title = label(tr("Three things to try"), weight=600)
        self.cards = Cards()
        self.cards.chosen.connect(self.chosen)
        self.cross = IconButton("close", tr("Put away; Help has them"))
        self.cross.clicked.connect(self.dropped)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 8, 12, 8)
        row.setSpacing(16)
        row.addWidget(self.title)
        row.addWidget(self.cards, 1)
        row.addWidget(self.cross, 0, Qt.AlignmentFlag.AlignTop)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Say less in a narrow window."""
        super().resizeEvent(event)
        narrow = self.width() < LOW
        self.title.setHidden(narrow)
        self.layout().setContentsMargins(16, 4 if narrow else 8, 12, 4 if narrow else 8)
        for one in self.cards.cards:
            one.fit(self.width())


__all__ = ["THINGS", "Band", "Cards", "Trying", "Welcome"]
