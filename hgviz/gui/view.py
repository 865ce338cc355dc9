"""What every pane is: it asks for something and draws the answer."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from PySide6.QtCore import QEvent, QMimeData, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QGuiApplication,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QShowEvent,
    QStandardItemModel,
    QTextDocumentFragment,
)
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QLabel,
    QSizePolicy,
    QStackedLayout,
    QStackedWidget,
    QTabBar,
    QWidget,
)

from hgviz import palettes
from hgviz.core import HeadId, HgvizError, ModelSpec, Step
from hgviz.gui import log, sentences, theme
from hgviz.gui.actions import reads_text
from hgviz.gui.jobs import Lanes
from hgviz.gui.language import tr
from hgviz.gui.sentences import percent, time_left, title_and_reason
from hgviz.gui.widgets import Button, IconButton, PaneHead, Segments, Words, chip, hbox, label, vbox
from hgviz.session import FIELDS, Session

if TYPE_CHECKING:
    from hgviz.figures import Spec

# --- busy -----------------------------------------------------------------------------------------

BAR_AFTER, WORDS_AFTER = 200, 1000  # ms: shorter work shows nothing at all
BAR, HIGH, EDGE = 2, 30, 6  # px


class Busy(QWidget):
    """Nothing under 200 ms, then a 2 px bar along the top, after 1 s words with per cent, and Stop.

    What is stopped says how far it came until it goes on.
    """

    stopped = Signal()
    resumed = Signal()

    def __init__(self, over: QWidget) -> None:
        super().__init__(over)
        self._part = 0.0
        self._began = 0.0
        self._is_stopped = False
        self.card = QFrame(over)  # no child of the bar: what lies under that is pointed at
        self.card.setProperty("kind", "card")
        self._words = Words(factor=0.92, kind="secondary")
        self._words.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        self.button = Button(tr("Stop"), "stop", kind="link")
        self.button.clicked.connect(self._press_button)
        hbox(self.card, (self._words, 1), self.button, margins=(12, 1, 4, 1), spacing=-1)
        self.card.hide()
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._appear)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def begin(self) -> None:
        """Start the timer of a new job."""
        self._began, self._part, self._is_stopped = time.monotonic(), 0.0, False
        self.card.hide()
        if not self.isVisible():
            self._timer.start(BAR_AFTER)

    def step(self, step: Step) -> None:
        """Show the progress of a step."""
        self._part = step.done / step.total if step.total else 0.0
        spent = time.monotonic() - self._began
        if self.isVisible() and spent * 1000 > WORDS_AFTER:
            left = spent * (1 - self._part) / self._part if self._part else None
            words = (tr(step.note), self._per_cent, time_left(left))
            self._say(" · ".join(filter(None, words)))
        self.update()

    def hold(self, is_partial: bool) -> None:
        """The work was stopped by hand; is_partial: whether a part of the picture is there."""
        self._timer.stop()
        self._is_stopped = True
        words = "Stopped at {percent}: nothing is drawn yet"
        if is_partial:
            words = "Stopped at {percent}: partial result"
        self._say(tr(words, percent=self._per_cent))

    def stop(self) -> None:
        """The work is over."""
        self._timer.stop()
        self.hide()
        self.card.hide()

    def place(self) -> None:
        """The bar along the top of the pane, the words at its right, under its head."""
        over = self.parentWidget()
        self.setGeometry(QRect(0, 0, over.width(), BAR))
        heads = (head for head in over.findChildren(PaneHead) if head.isVisible())
        top = max((head.mapTo(over, head.rect().bottomLeft()).y() for head in heads), default=0)
        size = self.card.layout().sizeHint() + QSize(2 * EDGE, 0)  # what frames take
        size = size.boundedTo(over.size() - QSize(2 * EDGE, 0))
        top = top if top < over.height() // 3 else 0  # the head of a pane, not one further down
        self.card.setGeometry(over.width() - size.width() - EDGE, top + EDGE, size.width(), HIGH)

    @property
    def _per_cent(self) -> str:
        return percent(f"{100 * self._part:.0f}")

    def _say(self, words: str) -> None:
        self._words.say(words)
        self._words.setVisible(bool(words))
        button = tr("Resume") if self._is_stopped else tr("Stop")
        if self.button.text() != button:
            self.button.setText(button)
            self.button.wear("arrow-right" if self._is_stopped else "stop")
        self.place()
        for part in (self, self.card):
            part.show()
            part.raise_()

    def _press_button(self) -> None:
        (self.resumed if self._is_stopped else self.stopped).emit()

    def _appear(self) -> None:
        """The bar; later Stop, though nobody knows how far it is."""
        if self.isVisible():
            if self.card.isHidden():
                self._say("")
            return
        self.place()
        self.show()
        self.raise_()
        self._timer.start(WORDS_AFTER - BAR_AFTER)

    def paintEvent(self, event: QPaintEvent) -> None:
        now = theme.current()
        with QPainter(self) as painter:
            painter.fillRect(0, 0, self.width(), 2, now.hover)
            painter.fillRect(0, 0, max(24, round(self.width() * self._part)), 2, now.press)


# --- still ----------------------------------------------------------------------------------------


def empty_mime_data() -> QMimeData:
    """Data for the clipboard that Qt made itself: what Python makes is still there when a program
    ends, and takes it down when Qt lets go of it after Python has."""
    model = QStandardItemModel(1, 1)
    out = model.mimeData([model.index(0, 0)])
    for name in out.formats():
        out.removeFormat(name)
    return out


def plain(html: str) -> str:
    """What markup says, without the marks that keep scripts apart on screen."""
    words = QTextDocumentFragment.fromHtml(html).toPlainText()
    return words.replace("\u2068", "").replace("\u2069", "")


@contextmanager
def without_focus(pane: QWidget) -> Iterator[None]:
    """A pane without the ring of the keyboard, and without what the pointer does to it."""
    here = QApplication.focusWidget()
    typed = here if here is not None and (here is pane or pane.isAncestorOf(here)) else None
    under = [widget for widget in (pane, *pane.findChildren(QWidget)) if widget.underMouse()]
    for widget in reversed(under):
        QApplication.sendEvent(widget, QEvent(QEvent.Type.Leave))
        widget.setAttribute(Qt.WidgetAttribute.WA_UnderMouse, False)
    if typed is not None:
        typed.clearFocus()
    try:
        yield
    finally:
        if typed is not None:
            typed.setFocus(Qt.FocusReason.OtherFocusReason)
        for widget in under:
            widget.setAttribute(Qt.WidgetAttribute.WA_UnderMouse, True)


# --- view -----------------------------------------------------------------------------------------

WAIT = 30  # ms: changes that come together are answered once
PATIENCE = 1000  # ms: what comes within them is not said to be missing
OPENED = ("capture", "capture_b", "spec", "study")  # what all that is chosen is a part of
OF_MODEL = {*OPENED, "facts", "trial"}  # a view that needs one of them is of the model at hand
OPENING = ("open", "capture")  # the jobs that bring another
UNREAD = {  # by what a model reads that cannot read the text at hand
    "text": (
        "This model does not read text",
        "It has no tokenizer: choose a file of token IDs to see their maps.",
    ),
    "image": ("This model reads images", "Choose an image to see its maps."),
    "audio": ("This model reads sound", "Choose a sound file to see its maps."),
}
IDS = (("ids", "Choose a file…"), ("open_sample", "Open sample model"))


Actions = tuple[tuple[str, str], ...]  # name and words


class Empty(NamedTuple):
    """Why there is no picture, and what helps: (action, words), the first filled."""

    title: str
    text: str
    actions: Actions = ()


class View(QWidget):
    """A picture of the session.

    A subclass names what it `needs`, builds its widgets inside `self.content`, answers `request`
    with a function (None: the empty state) and draws what that returns. It writes nothing but
    session.selection (and session.hover). `asked` carries the name of an action of ACTIONS, for
    buttons inside a view; `title` names it in docks, tabs and menus.
    """

    name: ClassVar[str] = ""  # of a look, in session.look
    title: ClassVar[str] = ""
    needs: ClassVar[tuple[str, ...]] = ()
    watches: ClassVar[tuple[str, ...]] = ()  # names of which only `noticed` is told
    lane: ClassVar[Literal["files", "engine", "map", "facts", "here"]] = "files"  # here: no I/O
    wait: ClassVar[int] = WAIT
    empty: Empty = Empty("Nothing to show yet", "Run the model on a text first.")
    figureless: str = "Nothing is captured yet"  # why there is no figure of it, or not yet
    topic: ClassVar[str] = ""  # its page in resources/help

    asked = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.session = Session()  # an empty one while it is not bound
        self.content = QWidget()
        self._lanes: Lanes | None = None
        self._due = False
        self._missed: Counter[str] = Counter()  # changes while it was hidden, by name
        self.grew = self.stepped = False  # as of the session, since the view heard of it last
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self.content)
        self._blank = QWidget()
        self._stack.addWidget(self._blank)
        self._patience = QTimer(self, singleShot=True, interval=PATIENCE)
        self._patience.timeout.connect(self._show_empty)
        self._notice: Notice | None = None
        self._start: QWidget | None = None
        self._busy = Busy(self)
        self._busy.stopped.connect(self._stop_work)
        self._busy.resumed.connect(self.refresh)
        self._partly = False  # whether what is drawn is of work under way
        self._awaiting = False  # whether what is missing is being opened
        self._wait = QTimer(self, singleShot=True, interval=self.wait)
        self._wait.timeout.connect(self._ask)
        self.setProperty("kind", "pane")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)

    # --- for a subclass to fill in ----------------------------------------------------------------

    def request(self, session: Session) -> Callable[[], Any] | Empty | None:
        """The work that gets what `draw` needs; what is missing, None for what `empty` says."""
        raise NotImplementedError

    def draw(self, result: Any) -> None:
        """Show what the request returned."""
        raise NotImplementedError

    def noticed(self, name: str) -> None:
        """A needed field changed: what can be shown at once, such as a moved frame."""

    def figure(self, session: Session) -> Spec | None:
        """The picture as a figure; None where there is none, for which `figureless` says why."""
        return None

    @property
    def zoomed(self) -> bool:
        """Whether only a part of the picture is on screen; a figure shows all of it."""
        return False

    def fit(self) -> None:
        """Show everything again."""

    def as_text(self) -> str:
        """What the pane says, for those who paste words: its values, cells apart by tabs."""
        return "\n".join(map("\t".join, self.as_table() or () if self.drawn else ()))

    def as_table(self) -> list[list[str]] | None:
        """The values on screen for those who compute with them or cannot see them: a row of names,
        then one row each; numbers as Python writes them. None where there are none."""
        return None

    @property
    def drawn(self) -> bool:
        """Whether its picture is on screen, and no notice in its place."""
        return self._stack.currentWidget() is self.content

    def copy(self) -> None:
        """Put the picture as it stands on the clipboard, and what it says for programs that take
        words: of what is chosen, not of what the pointer is over."""
        pointed = self.session.hover is not None  # nothing is while it is left alone
        with without_focus(self):
            if pointed and "hover" in self.needs:
                self.settle()
            data = empty_mime_data()
            if words := self.as_text():
                data.setText(words)
            data.setImageData(self.grab().toImage())
            QGuiApplication.clipboard().setMimeData(data)

    def export_button(self) -> IconButton:
        """Return a button that asks for the figure of this pane as a file."""
        button = IconButton("export", tr("Export figure… (Ctrl+E)"))
        button.clicked.connect(lambda: self.asked.emit("export"))
        return button

    def select_head(self, head: HeadId) -> None:
        """Select a head."""
        self.session.select(layer=head.layer, head=head.head)

    def hover_head(self, head: HeadId | None) -> None:
        """Ring the head under the pointer in all panes; None: the pointer is over none."""
        self.session.put(hover=None if head is None else self.session.at(head))

    def start_at(self, widget: QWidget) -> None:
        """Name what gets the keyboard first. No focus proxy: what stands before it, such as the
        controls of the head, could not be reached with Tab any more."""
        self._start = widget

    def take_focus(self) -> bool:
        """Take the keyboard, or give it to the first thing inside that wants it; False: none."""
        inside = [widget for widget in self.findChildren(QWidget) if widget.isVisible()]
        first = (self._start,) if self._start in inside else ()
        for widget in (*first, self, *inside):
            if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.isEnabled():
                widget.setFocus(Qt.FocusReason.TabFocusReason)
                return True
        return False

    # --- what the frame calls ---------------------------------------------------------------------

    def bind(self, session: Session, lanes: Lanes) -> None:
        """Listen to a session; ask in these lanes."""
        self.session, self._lanes = session, lanes
        head = self.findChild(PaneHead)
        if self.topic and head is not None:
            head.explain_by(lambda: self.asked.emit("explain"))
        session.changed.connect(self._follow_session)
        self.refresh()

    def unbind(self) -> None:
        """Stop listening, and drop what is under way."""
        self.session.changed.disconnect(self._follow_session)
        self._wait.stop()
        self._patience.stop()
        self._drop()
        self.session, self._lanes = Session(), None

    def refresh(self) -> None:
        """Ask again, soon; at once where there is nothing to wait for."""
        self._due = True
        if self.wait:
            self._wait.start()
        else:  # a timer would come after what others now paint
            self._ask()

    def settle(self) -> None:
        """Ask and draw now, in this thread: for pictures and tests."""
        self._catch_up()
        self._patience.stop()
        self._drop()  # an earlier answer would come after this one
        self._ask(now=True)

    def show_error(self, error: BaseException) -> None:
        """Say inside the pane what is wrong and what to do."""
        self._busy.stop()
        if isinstance(error, HgvizError):
            what, *more = (tr(line) for line in error.lines)
        else:
            log.record(error)
            what, *more = tr("This picture could not be drawn"), f"{type(error).__name__}: {error}"
        title, reason = title_and_reason(what)
        self._show(Notice(title, "\n".join(filter(None, (reason, *more))), bad=True))

    # --- inside -----------------------------------------------------------------------------------

    def _follow_session(self, name: str) -> None:
        """Follow a change of the session; a hidden view follows when it is shown."""
        if self.isVisible():
            self._follow_change(name)
        elif name in self.needs or name in self.watches or name == "models":
            self._missed[name] += 1
            self._drop()

    def _catch_up(self) -> None:
        """Follow what changed while the view was hidden."""
        missed, self._missed = self._missed, Counter()
        for name in sorted(missed, key=FIELDS.index):
            self._follow_change(name, missed[name])

    def _follow_change(self, name: str, times: int = 1) -> None:
        session = self.session
        self.grew = times == 1 and session.grew
        self.stepped = times == 1 and session.stepped
        if name == "models" and OF_MODEL.intersection(self.needs):
            self._drop()
            self._stack.setCurrentWidget(self._blank)  # what it shows is of another model
            self.refresh()
        if name == "work" and self._awaiting and not self._opens:
            self.refresh()  # it did not come
        if name in self.needs or name in self.watches:
            self.noticed(name)
        if name in self.needs:
            if name in OPENED:
                self._drop()  # it would be drawn beside a selection that is not its own
            self.refresh()

    def _ask(self, now: bool = False) -> None:
        """Ask in a lane; in this thread where it has to be now, or takes no I/O."""
        self._wait.stop()
        if self._lanes is None:
            return
        self._awaiting, is_here = False, now or self.lane == "here"
        if not (now or self.isVisible()):
            self._drop()  # what is under way is of what was; it is asked again when shown
            return
        self._due = False
        try:
            work = self.request(self.session)
            if work is None or isinstance(work, Empty):
                self._drop()
                self.empty = work or type(self).empty
                self._show_missing(waits=not now, is_here=is_here)
            elif is_here:
                self._show_result(work())
            else:
                self._patience.stop()
                self._busy.begin()
                self._partly = False
                getattr(self._lanes, self.lane).submit(
                    f"view {id(self)}", self.title or type(self).__name__, work,
                    on_step=self._show_step, on_done=self._show_result, on_error=self.show_error,
                )  # fmt: skip
        except HgvizError as error:
            self.show_error(error)

    def _show_missing(self, waits: bool, is_here: bool) -> None:
        """Show why there is no picture; nothing while what is missing may be here in a moment."""
        if waits and "facts" in self.needs and self.session.job("measure") is not None:
            if self._stack.currentWidget() is not self._notice and not self._patience.isActive():
                self._stack.setCurrentWidget(self._blank)
                self._patience.start()
        elif self.session.capture is None and self._opens and not is_here:
            self._awaiting = True
            self._stack.setCurrentWidget(self._blank)
        else:
            self._show_empty()

    @property
    def _opens(self) -> bool:
        """Whether a file is being opened, or a text captured."""
        return self.session.job(*OPENING) is not None

    def _drop(self) -> None:
        if self._lanes is not None and self.lane != "here":
            getattr(self._lanes, self.lane).cancel(f"view {id(self)}")
            self._busy.stop()

    def _stop_work(self) -> None:
        """Somebody has seen enough: what is drawn stays, and says that it is a part."""
        if self._lanes is not None:
            self._drop()
            self._busy.hold(self._partly)

    def _show_step(self, step: Step) -> None:
        """A step that carries a value carries a picture as far as it is done."""
        self._busy.step(step)
        if step.value is not None and self._lanes is not None:
            self._stack.setCurrentWidget(self.content)
            self._partly = True
            self.draw(step.value)

    def _show_result(self, result: Any) -> None:
        self._busy.stop()
        self._patience.stop()
        if self._lanes is not None:
            self._stack.setCurrentWidget(self.content)
            self.draw(result)

    def _show_empty(self) -> None:
        empty, session = self.empty, self.session
        model = session.model if session.capture is None else None
        if model is not None and "capture" in self.needs and not reads_text(model):
            empty = Empty(*UNREAD[model.spec.modality], IDS)
        title, text = map(tr, empty[:2])
        actions = tuple((name, tr(words)) for name, words in empty.actions)
        content = ((title, text), actions)
        if self._notice is not None and self._notice.content == content:
            self._stack.setCurrentWidget(self._notice)  # it is there already
            return
        notice = Notice(title, text, actions)
        notice.asked.connect(self.asked)
        self._show(notice)

    def _show(self, notice: Notice) -> None:
        self._patience.stop()
        if self._notice is not None:
            self._stack.removeWidget(self._notice)
            self._notice.deleteLater()
        self._notice = notice
        self._stack.addWidget(notice)
        self._stack.setCurrentWidget(notice)

    def showEvent(self, event: QShowEvent) -> None:
        """Ask for what was held back while hidden."""
        super().showEvent(event)
        self._catch_up()
        if self._due:
            self._wait.start()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._busy.place()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self.refresh()


class HeadTitle(PaneHead):
    """The head of a pane of the selected head: its number, and the levels of its layer.

    chips: what stands between these two. before: that the text was edited since.
    """

    def __init__(self, *chips: QWidget) -> None:
        super().__init__(tr("Head"))
        self.level = chip()
        edited = tr("The text was edited since this was captured")
        self.before = chip(tr("previous text"), edited)
        self.add_beside_title(*chips, self.level, self.before)

    def name_head(self, spec: ModelSpec, head: HeadId, title: str = "") -> None:
        """Name a head, or what the title says of several."""
        self.title.setText(title or tr("Head {head}", head=head))
        self.show_level(sentences.ends(spec, head.layer))

    def show_level(self, level: str) -> None:
        """Show the levels of a layer; none for ""."""
        self.level.setText(level)
        self.level.setVisible(bool(level))


class Notice(QWidget):
    """One sentence where the picture would be, and the button that helps."""

    asked = Signal(str)

    def __init__(self, title: str, text: str, actions: Actions = (), bad: bool = False) -> None:
        super().__init__()
        self.content = None if bad else ((title, text), actions)
        column = vbox(self, 1, margins=(16, 16, 16, 16), spacing=8)
        for words, factor, weight, kind in (
            (title, 1.15, 600, "bad" if bad else ""),
            (text, 1.0, 400, "secondary"),
        ):
            for line in filter(None, words.split("\n")):
                part: QLabel = label(line, factor=factor, weight=weight, kind=kind)
                part.setWordWrap(True)
                part.setAlignment(Qt.AlignmentFlag.AlignHCenter)
                column.addWidget(part)
        if actions:
            row = hbox(None, 1, spacing=-1)
            for number, (action, words) in enumerate(actions):
                button = Button(words, kind="" if number else "filled")
                button.setProperty("action", action)
                button.clicked.connect(self._ask_action)
                row.addWidget(button)
            row.addStretch(1)
            column.addSpacing(8)
            column.addLayout(row)
        column.addStretch(1)

    def _ask_action(self) -> None:
        self.asked.emit(self.sender().property("action"))


# --- looks ----------------------------------------------------------------------------------------

# every picture of the window; each is imported when it is built, most after the first one is seen
VIEWS = {
    "hourglass": "hgviz.gui.hourglass:HourglassView",
    "map": "hgviz.gui.map:MapView",
    "image": "hgviz.gui.map:ImageView",
    "links": "hgviz.gui.links:LinksView",
    "neurons": "hgviz.gui.neurons:NeuronView",
    "attribution": "hgviz.gui.attribution:AttributionView",
    "across": "hgviz.gui.across:AcrossView",
    "heads": "hgviz.gui.heads:HeadsView",
    "text": "hgviz.gui.text:TextStrip",
    "follow": "hgviz.gui.follow:FollowView",
}
# those that have a tab over the middle, and what it says
LOOKS = {
    "map": "Map", "image": "Image", "links": "Links", "neurons": "Neurons",
    "attribution": "Attribution", "across": "Attention rollout", "heads": "All heads",
}  # fmt: skip


def view(name: str) -> type[View]:
    """The class of one of VIEWS, imported now."""
    kind: type[View] = resolve_name(VIEWS[name])
    return kind


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
        self.bar.setAccessibleName(tr("Views of this head"))
        self.stack = QStackedWidget()
        for title in LOOKS.values():
            self.bar.addTab(tr(title))
        self.take(first)
        self.offer("image", there=False)
        self.stack.addWidget(capturing)
        vbox(self, self.bar, (self.stack, 1))
        self.bar.currentChanged.connect(self._choose_tab)

    def take(self, *looks: View) -> None:
        """Have the views of more looks."""
        for look in looks:
            self._looks[look.name] = look
            self.stack.addWidget(look)

    def offer(self, name: str, there: bool) -> bool:
        """Have a tab for a look, or none where it has nothing to show; whether that is new."""
        index = [*LOOKS].index(name)
        changes = self.bar.isTabVisible(index) != there
        self.bar.setTabVisible(index, there)
        return changes

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

    def _choose_tab(self, index: int) -> None:
        name = [*LOOKS][index]
        if name != self._name:
            self.chosen.emit(name)


# --- maps -----------------------------------------------------------------------------------------

CAPTURE = (("capture", "Run model on this text"), ("open_sample", "Open sample model"))
OPEN_CHECKPOINT = (("open_folder", "Open a checkpoint…"),)
SCALES = (("linear", "Linear"), ("sqrt", "√"), ("log", "Log"))


def scale_choice() -> Segments:
    """How weights become colours, to choose from; pointed at, each says its whole name."""
    out = Segments(SCALES, tr("Colour scale"), wide=42)
    for name, words in palettes.SCALES.items():
        out.allow(name, True, tr(words))
    return out


NOTHING = Empty(
    "No attention to show yet", "Run the model on a text to see the map of each head.", CAPTURE
)


def uncaptured(session: Session, layer: int) -> Empty:
    """That a layer is not captured yet, and what helps."""
    title = tr("Layer {layer} is not captured yet", layer=layer)
    helps = (("jobs", "Jobs…"),) if session.at_work else CAPTURE[:1]
    return Empty(title, "It is shown as soon as it is captured.", helps)
