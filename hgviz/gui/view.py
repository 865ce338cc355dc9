"""What every view and panel is: it listens, asks off the GUI thread, and draws the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QStackedLayout, QVBoxLayout, QWidget

from hgviz.core import HgvizError, Step, Task, finish
from hgviz.gui import log
from hgviz.gui.jobs import GOING
from hgviz.gui.language import tr
from hgviz.gui.reasons import reads_text
from hgviz.gui.views.busy import Busy
from hgviz.gui.views.still import left_alone, put_on_clipboard
from hgviz.gui.widgets import Button, PaneHead, label

if TYPE_CHECKING:
    from hgviz.figures import Spec
    from hgviz.gui.bridge import Lanes
    from hgviz.session import Session

WAIT = 30  # ms: changes that come together are answered once
PATIENCE = 1000  # ms: what comes within them is not said to be missing
OPENED = ("capture", "beside", "spec", "study")  # what all that is chosen is a part of
OF_MODEL = {*OPENED, "facts", "trial"}  # a view that needs one of them is of the model at hand
OPENING = ("open", "capture")  # the jobs that bring another
UNREAD = {  # by what a model reads that cannot read the text at hand
    "text": (
        "This model reads no text",
        "It has no tokenizer: choose a file of token ids, and their maps are shown here.",
    ),
    "image": ("This model reads images", "Choose one, and its maps are shown here."),
    "audio": ("This model reads sound", "Choose a file, and its maps are shown here."),
}
IDS = (("ids", "Choose a file…"), ("open_sample", "Open the sample"))


class View(QWidget):
    """A picture of the session.

    A subclass names what it `needs`, builds its widgets inside `self.content`, answers `request`
    with a task (None: the empty state) and draws what the task returns. It writes nothing but
    session.selection (and session.hover). `asked` carries the name of an action of ACTIONS, for
    buttons inside a view; `title` and `icon` name it in docks, tabs and menus.
    """

    name: ClassVar[str] = ""  # of a look, in session.look
    title: ClassVar[str] = ""
    icon: ClassVar[str] = ""
    needs: ClassVar[tuple[str, ...]] = ()
    watches: ClassVar[tuple[str, ...]] = ()  # names of which only `noticed` is told
    lane: ClassVar[Literal["files", "engine", "map", "facts", "here"]] = "files"  # here: no I/O
    wait: ClassVar[int] = WAIT
    empty: tuple[str, str] = ("Nothing to show yet", "Capture a text to look inside.")
    empty_actions: tuple[tuple[str, str], ...] = ()  # (action, words), the first filled
    figureless: str = "Nothing is captured yet"  # why there is no figure of it, or not yet
    topic: ClassVar[str] = ""  # its page in resources/help

    asked = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.session: Session | None = None
        self.content = QWidget()
        self._lanes: Lanes | None = None
        self._due = False
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self.content)
        self._blank = QWidget()
        self._stack.addWidget(self._blank)
        self._patience = QTimer(self, singleShot=True, interval=PATIENCE)
        self._patience.timeout.connect(self._show_empty)
        self._notice: Notice | None = None
        self._start: QWidget | None = None
        self._busy = Busy(self)
        self._busy.stopped.connect(self._stopped)
        self._busy.resumed.connect(self.refresh)
        self._partly = False  # whether what is drawn is of work under way
        self._awaiting = False  # whether what is missing is being opened
        self._wait = QTimer(self, singleShot=True, interval=self.wait)
        self._wait.timeout.connect(self._ask)
        self.setProperty("kind", "pane")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)

    # --- for a subclass to fill in ----------------------------------------------------------------

    def request(self, session: Session) -> Task[Any] | None:
        """The work that gets what `draw` needs; None when something is missing."""
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
        """What the pane says, for those who paste words; "" for a picture alone."""
        return ""

    def as_table(self) -> list[list[str]] | None:
        """The values on screen for those who compute with them or cannot see them: a row of names,
        then one row each; numbers as Python writes them. None where there are none."""
        return None

    @property
    def drawn(self) -> bool:
        """Whether its picture is on screen, and no notice in its place."""
        return self._stack.currentWidget() is self.content

    def copy(self) -> None:
        """Put the picture as it stands on the clipboard, and what it says: of what is chosen, not
        of what the pointer is over."""
        pointed = self.session is not None and self.session.hover is not None
        with left_alone(self):
            if pointed and "hover" in self.needs:
                self.settle()
            put_on_clipboard(self.grab(), self.as_text())

    def start_at(self, widget: QWidget) -> None:
        """Name what gets the keyboard first. No focus proxy: what stands before it, such as the
        controls of the head, could not be reached with Tab any more."""
        self._start = widget

    def take_focus(self) -> bool:
        """Take the keyboard, or give it to the first thing inside that wants it; False: none."""
        inside = [one for one in self.findChildren(QWidget) if one.isVisible()]
        first = (self._start,) if self._start in inside else ()
        for one in (*first, self, *inside):
            if one.focusPolicy() & Qt.FocusPolicy.TabFocus and one.isEnabled():
                one.setFocus(Qt.FocusReason.TabFocusReason)
                return True
        return False

    # --- what the frame calls ---------------------------------------------------------------------

    def bind(self, session: Session, lanes: Lanes) -> None:
        """Listen to a session; ask in these lanes."""
        self.session, self._lanes = session, lanes
        head = self.findChild(PaneHead)
        if self.topic and head is not None:
            head.explain_by(self._explain)
        session.changed.connect(self._heard)
        self.refresh()

    def unbind(self) -> None:
        """Stop listening; what is under way stays silent."""
        if self.session is not None:
            self.session.changed.disconnect(self._heard)
        self._wait.stop()
        self._patience.stop()
        self._busy.stop()
        self.session = None

    def refresh(self) -> None:
        """Ask again, soon; at once where there is nothing to wait for."""
        self._due = True
        if self.wait:
            self._wait.start()
        else:  # a timer would come after what others now paint
            self._ask()

    def settle(self) -> None:
        """Ask and draw now, in this thread: for pictures and tests."""
        self._settle()

    def _settle(self, patient: bool = False) -> None:
        self._wait.stop()
        self._drop()  # an earlier answer would come after this one
        self._due = False
        if self.session is None:
            return
        if not patient:
            self._patience.stop()
        try:
            task = self.request(self.session)
            if task is not None:
                self._drawn(finish(task))
            elif patient:
                self._be_patient()
            else:
                self._show_empty()
        except HgvizError as error:
            self.show_error(error)

    def show_error(self, error: BaseException) -> None:
        """Say inside the pane what went wrong: what, why, what to do."""
        self._busy.stop()
        if isinstance(error, HgvizError):
            lines = [tr(one) for one in error.lines]
        else:
            log.record(error)
            lines = [tr("This picture could not be drawn"), f"{type(error).__name__}: {error}"]
        self._show(Notice.of_error(*lines))

    # --- inside -----------------------------------------------------------------------------------

    def _explain(self) -> None:
        self.asked.emit("explain")

    def _heard(self, name: str) -> None:
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

    def _ask(self) -> None:
        if self.session is None or self._lanes is None:
            return
        self._awaiting = False
        if not self.isVisible():
            self._drop()  # what is under way is of what was; it is asked again when shown
            return
        self._due = False
        if self.lane == "here":
            self._settle(patient=self._on_its_way)
            return
        lane = getattr(self._lanes, self.lane)
        key = f"view {id(self)}"
        try:
            task = self.request(self.session)
        except HgvizError as error:
            self.show_error(error)
            return
        if task is None:
            lane.cancel(key)
            self._busy.stop()
            # What is being opened will be here in a moment: no "nothing to show" flashes before.
            if self._on_its_way:
                self._be_patient()
            elif self.session.capture is None and self._opens:
                self._awaiting = True
                self._stack.setCurrentWidget(self._blank)
            else:
                self._show_empty()
            return
        self._patience.stop()
        self._busy.begin()
        self._partly = False
        lane.submit(
            key,
            self.title or type(self).__name__,
            task,
            on_step=self._stepped,
            on_done=self._drawn,
            on_error=self.show_error,
            post=self._lanes.bridge.post,
        )

    @property
    def _opens(self) -> bool:
        """Whether a file is being opened, or a text captured."""
        work = self.session.work if self.session is not None else ()
        return any(one.key in OPENING and one.state in GOING for one in work)

    @property
    def _on_its_way(self) -> bool:
        """Whether what is missing is on its way."""
        jobs = self.session.work if self.session is not None and "facts" in self.needs else ()
        return any(one.key == "measure" and one.state in GOING for one in jobs)

    def _be_patient(self) -> None:
        """Show nothing yet, unless it is said already that nothing is there."""
        if self._stack.currentWidget() is not self._notice and not self._patience.isActive():
            self._stack.setCurrentWidget(self._blank)
            self._patience.start()

    def _drop(self) -> None:
        if self._lanes is not None and self.lane != "here":
            getattr(self._lanes, self.lane).cancel(f"view {id(self)}")
            self._busy.stop()

    def _stopped(self) -> None:
        """Somebody has seen enough: what is drawn stays, and says that it is a part."""
        if self._lanes is not None:
            getattr(self._lanes, self.lane).cancel(f"view {id(self)}")
            self._busy.hold(self._partly)

    def _stepped(self, step: Step) -> None:
        """A step that carries a value carries a picture as far as it is done."""
        self._busy.step(step)
        if step.value is not None and self.session is not None:
            self._stack.setCurrentWidget(self.content)
            self._partly = True
            self.draw(step.value)

    def _drawn(self, result: Any) -> None:
        self._busy.stop()
        self._patience.stop()
        if self.session is None:
            return
        self._stack.setCurrentWidget(self.content)
        self.draw(result)

    def _show_empty(self) -> None:
        empty, offered = self.empty, self.empty_actions
        session = self.session
        model = session.model if session is not None and session.capture is None else None
        if model is not None and "capture" in self.needs and not reads_text(model):
            empty, offered = UNREAD[model.spec.modality], IDS
        title, text = map(tr, empty)
        actions = tuple((name, tr(words)) for name, words in offered)
        said = ((title, text), actions)
        if self._notice is not None and self._notice.said == said:
            self._stack.setCurrentWidget(self._notice)  # it is there already
            return
        notice = Notice(title, text, actions=actions)
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
        if self._due:
            self._wait.start()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the busy bar along the top."""
        super().resizeEvent(event)
        self._busy.place()

    def changeEvent(self, event: QEvent) -> None:
        """Draw again in another theme."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self.session is not None:
            self.refresh()


class Notice(QWidget):
    """One sentence where the picture would be, and the button that helps."""

    asked = Signal(str)

    def __init__(
        self,
        title: str,
        text: str = "",
        *,
        actions: tuple[tuple[str, str], ...] = (),
        bad: bool = False,
    ) -> None:
        super().__init__()
        self.said = None if bad else ((title, text), actions)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(8)
        column.addStretch(1)
        for words, factor, weight, kind in (
            (title, 1.15, 600, "bad" if bad else ""),
            (text, 1.0, 400, "secondary"),
        ):
            for one in filter(None, words.split("\n")):
                said: QLabel = label(one, factor=factor, weight=weight, kind=kind)
                said.setWordWrap(True)
                said.setAlignment(Qt.AlignmentFlag.AlignHCenter)
                column.addWidget(said)
        if actions:
            row = QHBoxLayout()
            row.addStretch(1)
            for number, (action, words) in enumerate(actions):
                button = Button(words, kind="" if number else "filled")
                button.setProperty("action", action)
                button.clicked.connect(self._clicked)
                row.addWidget(button)
            row.addStretch(1)
            column.addSpacing(8)
            column.addLayout(row)
        column.addStretch(1)

    @classmethod
    def of_error(cls, what: str, *more: str) -> Notice:
        """The lines of an error: what, why, what to do."""
        return cls(what, "\n".join(more), bad=True)

    def _clicked(self) -> None:
        self.asked.emit(self.sender().property("action"))
