"""What stands over the maps of A and B: which side it is, what it is, and what else it could be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QAction, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QSizePolicy, QWidget

from hgviz.core import Capture, HeadId, Step, Task
from hgviz.gui import sentences, theme
from hgviz.gui.compare_parts import offers
from hgviz.gui.compare_parts.comparing import BESIDE
from hgviz.gui.compare_parts.told import Told, activation_of, model_of, sides_of
from hgviz.gui.jobs import GOING
from hgviz.gui.language import tr
from hgviz.gui.view import View
from hgviz.gui.views.words import percent
from hgviz.gui.widgets import Button, IconButton, Words, label, tip
from hgviz.session.other import Other

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hgviz.session import Session, Work

MOST = 240  # px of a button at most
CHEVRON = 14  # px


class Choice(Button):
    """A field that says what is chosen and drops a menu of what else could be."""

    def __init__(self, name: str, fill: Callable[[QMenu], None]) -> None:
        super().__init__("", weight=400)
        self._name, self._fill, self.full = name, fill, ""
        self.setAccessibleName(name)
        self.setStyleSheet("text-align: left;")
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._menu = QMenu(self)
        self._menu.setToolTipsVisible(True)
        self.clicked.connect(self.drop)

    def say(self, words: str) -> None:
        """What is chosen."""
        self.full = words
        self.setToolTip(tip(f"{self._name}: {words}"))
        room = MOST - 2 * 12 - CHEVRON - 8
        self.setText(self.fontMetrics().elidedText(words, Qt.TextElideMode.ElideRight, room))
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        """Room for the words and the chevron."""
        wide = self.fontMetrics().horizontalAdvance(self.text()) + 2 * 12 + CHEVRON + 8
        return QSize(min(MOST, max(96, wide)), 28)

    def minimumSizeHint(self) -> QSize:
        """The same: what stands beside it gives way first."""
        return self.sizeHint()

    def drop(self) -> None:
        """Show what else could be chosen."""
        self._menu.clear()
        self._fill(self._menu)
        self._menu.setMinimumWidth(self.width())
        self._menu.popup(self.mapToGlobal(self.rect().bottomLeft()))

    def paintEvent(self, event: QPaintEvent) -> None:
        """The field, and a chevron at its right."""
        super().paintEvent(event)
        mark = theme.icon("chevron", theme.current().secondary)
        with QPainter(self) as painter:
            top = (self.height() - CHEVRON) // 2
            mark.paint(painter, self.width() - CHEVRON - 9, top, CHEVRON, CHEVRON)


class Seat(QWidget):
    """[A] [what it is ⌄] where it comes from."""

    def __init__(self, letter: str, fill: Callable[[QMenu], None]) -> None:
        super().__init__()
        self.setFixedHeight(28)
        self.letter = label(letter, factor=0.92, weight=600, kind="side")
        self.choice = Choice(tr("What {side} is", side=letter), fill)
        self.words = Words(factor=0.92, kind="secondary")
        self.stop = IconButton("stop", tr("Stop capturing {side}", side=letter))
        self.stop.hide()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self.letter)
        row.addWidget(self.choice)
        row.addWidget(self.words, 1)
        row.addWidget(self.stop)


class Sides(View):
    """A and B: two seats over their maps. It is no picture itself, and takes no room.

    side: an Other, and the head of B that stands beside A's, None for the same one.
    """

    title: ClassVar[str] = "Sides"
    figureless = "It says what the maps below are of: those are drawn"
    needs: ClassVar[tuple[str, ...]] = (
        "capture", "beside", "other", "selection", "checkpoint", "activation", "work",
    )  # fmt: skip
    lane = "here"
    topic: ClassVar[str] = "compare-sides"

    side = Signal(object, object)
    activation = Signal(str)  # what A is opened with
    wanted = Signal(str)  # the kind of B that is asked for
    folder = Signal(bool)  # whether a folder is asked for as B
    stopped = Signal()
    explained = Signal(str)  # how B comes to be from A
    paired = Signal(bool)  # whether there are two sides

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.a, self.b = Seat("A", self._offer_a), Seat("B", self._offer_b)
        self.b.stop.clicked.connect(self.stopped)
        self.more: Mapping[str, str] = {}  # what was opened before, path and name
        self.setFixedHeight(0)

    def request(self, session: Session) -> Task[Session] | None:
        """Nothing but the session itself."""
        return _given(session)

    def draw(self, session: Session) -> None:
        """Say what both sides are."""
        told = sides_of(session)
        self.explained.emit(told.note)
        self.paired.emit(session.capture is not None and session.beside is not None)
        a, b = session.capture, session.beside
        self.a.setEnabled(a is not None)
        self.a.choice.say(told.a if b is not None else activation_of(a) if a else "A")
        self.a.words.say(_about(session, a, told.a) if a is not None else "")
        work = next((one for one in session.work if one.key == BESIDE), None)
        busy = work is not None and work.state in GOING
        self.b.choice.say(told.b if b is not None else tr("Compare with…"))
        self.b.words.say(said_of(work) if busy and work else self._about_b(session, told))
        self.b.words.setAccessibleName(tr("Where B comes from"))
        self.b.stop.setVisible(busy)

    def as_table(self) -> list[list[str]] | None:
        """What A and B are, and where they come from."""
        if self.session is None or self.session.beside is None:
            return None
        rows = [[one.letter.text(), one.choice.full, one.words.full] for one in (self.a, self.b)]
        return [[tr("Side"), tr("What it is"), tr("Where it comes from")], *rows]

    def _about_b(self, session: Session, told: Told) -> str:
        a, b, other = session.capture, session.beside, session.other
        if a is None or b is None:
            return ""
        kind = other.kind if other is not None else "model"
        name = model_of(session, b)
        if kind == "activation":
            name = model_of(session, a)
            same = activation_of(a) == activation_of(b)
            return name if same else tr("{name}, exchanged", name=name)
        if kind == "text":
            text = b.main.text
            said = sentences.quoted(sentences.shown(text, 60))
            return tr("{name} on {text}", name=name, text=said) if text else name
        if kind == "head":
            return name
        return _about(session, b, told.b)

    # --- menus ------------------------------------------------------------------------------------

    def _offer_a(self, menu: QMenu) -> None:
        session = self.session
        if session is None or session.capture is None:
            return
        menu.setAccessibleName(tr("What {side} is", side="A"))
        if session.checkpoint:
            own = not session.activation
            self._entry(menu, tr("Its own activation"), partial(self.activation.emit, ""), own)
            for name, words in offers.activations(session.capture.spec, session.activation):
                if name:
                    self._entry(menu, words, partial(self.activation.emit, name))
            menu.addSeparator()
        said = tr("Open another checkpoint or capture…")
        self._entry(menu, said, partial(self.asked.emit, "open"))

    def _offer_b(self, menu: QMenu) -> None:
        session = self.session
        if session is None or session.capture is None:
            return
        now = session.other
        for words, fill, needs in (
            ("Another activation", self._activations, True),
            ("Another model", self._models, False),
            ("Heads switched off", self._switched, True),
            ("Another head or level", self._heads, False),
        ):
            part = menu.addMenu(tr(words))
            part.setToolTipsVisible(True)
            fill(part, session, now)
            part.menuAction().setEnabled(bool(session.checkpoint) or not needs)
            if needs and not session.checkpoint:
                part.menuAction().setToolTip(tr("Needs a checkpoint: open one first"))
        text = self._entry(menu, tr("Another text…"), partial(self.wanted.emit, "text"),
                           now is not None and now.kind == "text")  # fmt: skip
        text.setEnabled(bool(session.checkpoint))
        menu.addSeparator()
        if session.beside is not None and (now is None or now.kind != "head"):
            part = menu.addMenu(tr("Beside head {head}", head=session.selection.head_id))
            self._beside(part, session, session.beside)
        self._entry(menu, tr("Compare with…"), partial(self.asked.emit, "compare_with"))
        said = tr("Compare with nothing")
        nothing = self._entry(menu, said, partial(self.asked.emit, "compare_nothing"))
        nothing.setEnabled(session.beside is not None)

    def _activations(self, menu: QMenu, session: Session, now: Other | None) -> None:
        assert session.capture is not None
        for name, words in offers.activations(session.capture.spec, session.activation):
            other = Other("activation", name)
            self._entry(menu, words, partial(self.side.emit, other, None), now == other)

    def _models(self, menu: QMenu, session: Session, now: Other | None) -> None:
        assert session.capture is not None
        here = session.checkpoint or session.capture.path
        for path, words in self.more.items():
            if path != here:
                other = Other("model", path=path)
                entry = self._entry(menu, words, partial(self.side.emit, other, None), now == other)
                entry.setToolTip(tip(path))
        if self.more:
            menu.addSeparator()
        self._entry(menu, tr("A file…"), partial(self.folder.emit, False))
        self._entry(menu, tr("A folder…"), partial(self.folder.emit, True))

    def _switched(self, menu: QMenu, session: Session, now: Other | None) -> None:
        for off, words in offers.switched(session):
            other = Other("off", off=off)
            self._entry(menu, words, partial(self.side.emit, other, None), now == other)
        menu.addSeparator()
        self._entry(menu, tr("Choose heads…"), partial(self.wanted.emit, "off"))

    def _heads(self, menu: QMenu, session: Session, now: Other | None) -> None:
        for head, words in offers.levels(session):
            on = now == Other("head") and session.selection.beside == head
            self._entry(menu, words, partial(self.side.emit, Other("head"), head), on)
        if not menu.isEmpty():
            menu.addSeparator()
        self._entry(menu, tr("Choose a head…"), partial(self.wanted.emit, "head"))

    def _beside(self, menu: QMenu, session: Session, b: Capture) -> None:
        """Which head of B stands beside A's."""
        chosen = session.selection.beside
        meets = tr("The head that meets it")
        self._entry(menu, meets, partial(self._put, None), chosen is None)
        menu.addSeparator()
        for layer in b.spec.layers:
            known = b.maps[layer.index]
            if known is None or not known.heads:
                continue
            part = menu.addMenu(tr("Layer {layer}", layer=layer.index))
            for number in known.heads:
                head = HeadId(layer.index, number)
                said = tr("Head {head}", head=head)
                self._entry(part, said, partial(self._put, head), chosen == head)

    def _put(self, head: HeadId | None) -> None:
        if self.session is not None:
            self.session.put(selection=replace(self.session.selection, beside=head))

    def _entry(
        self, menu: QMenu, words: str, does: Callable[[], object], on: bool = False
    ) -> QAction:
        entry = menu.addAction(words.replace("&", "&&"))
        if on:
            entry.setCheckable(True)
            entry.setChecked(True)
        entry.triggered.connect(lambda: does())
        return entry


def _about(session: Session, capture: Capture, said: str) -> str:
    """What is not said of a side yet: its model, its activation, or what it was opened from."""
    if said != model_of(session, capture, short=True):
        return model_of(session, capture)
    other = tr("capture") if capture.path else tr("checkpoint")
    return activation_of(capture) or other


def said_of(work: Work) -> str:
    """What is being done for B: Capturing B: layer 3, 23 %."""
    title = tr(work.title)
    if not work.note:
        return f"{title}…"
    share = percent(f"{100 * work.done / work.total:.0f}") if work.total else ""
    return f"{title}: " + ", ".join(filter(None, (tr(work.note), share)))


def _given(session: Session) -> Task[Session]:
    yield Step(1, 1)
    return session
