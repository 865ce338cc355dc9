"""The chip of the status bar that lists what runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QDialog, QGridLayout, QWidget

from hgviz.gui import sentences
from hgviz.gui.jobs import GOING, within
from hgviz.gui.language import tr
from hgviz.gui.view import View, time_left
from hgviz.gui.widgets import Button, IconButton, PaneHead, Progress, Words, hbox, label, line, vbox
from hgviz.session import Session, Work

# --- jobs -----------------------------------------------------------------------------------------


STATE = 56  # px: room for the words of a job's state


class CapturingView(View):
    """The capture under way, in place of its map: layer, per cent, time left, Stop."""

    title = "Capturing"
    topic = "jobs"
    figureless = "A map is drawn once its layer is captured"
    needs = ("work",)
    lane = "here"

    def __init__(self) -> None:
        super().__init__()
        self._title = label(tr("Capturing"), factor=1.55, weight=600)
        self._layer = Words(kind="secondary")
        self._bar = Progress(8)
        self._part = label(sentences.percent("0"), weight=600)
        self._left = label("", kind="secondary")
        self._stop = Button(tr("Stop"), "stop")
        self._stop.clicked.connect(lambda: self.asked.emit("stop"))
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
        part = work.done / work.total if work.total else 0.0
        title = tr(work.title)
        self._head.note.say(title[:1].lower() + title[1:])
        self._layer.say(tr(work.note))
        self._bar.show_part(part, work.state == "done")
        self._part.setText(sentences.percent(f"{100 * part:.0f}"))
        self._bar.setAccessibleName(f"{title}: {self._part.text()}")
        self._left.setText(time_left(work.left))
        self._keeps.say(tr(work.keeps))
        self._stop.setEnabled(work.state in GOING)


class JobList(QWidget):
    """A row for each job: what, a bar, the time left, Stop, and below it how far it is in words.

    dropped: the key of a job to stop.
    """

    dropped = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnStretch(0, 1)
        self._grid.setColumnMinimumWidth(2, STATE)
        self._rows: dict[str, tuple[Words, Progress, Words, IconButton, Words]] = {}

    def show_work(self, works: tuple[Work, ...]) -> None:
        """Show these jobs; rows are kept, so that nothing flickers while numbers change."""
        keys = [work.key for work in works]
        if keys != list(self._rows):
            self._lay(keys)
        for work in works:
            title, bar, state, cross, note = self._rows[work.key]
            job, is_going = tr(work.title), work.state in GOING
            title.say(job)
            cross.setAccessibleName(tr("Stop: {job}", job=job))
            cross.setVisible(is_going)
            part = 1.0 if work.state == "done" else work.done / work.total if work.total else 0.0
            bar.show_part(part, work.state == "done")
            bar.setAccessibleName(f"{job}: {sentences.percent(f'{100 * part:.0f}')}")
            runs = work.state == "running"
            state.say(time_left(work.left, short=True) if runs else tr(work.state))
            words = tr(work.note)
            note.say(words[:1].upper() + words[1:])
            note.setVisible(bool(work.keeps and work.note) and is_going)

    def _lay(self, keys: list[str]) -> None:
        for row in self._rows.values():
            for widget in row:
                self._grid.removeWidget(widget)
                widget.deleteLater()
        self._rows = {}
        for at, key in enumerate(keys):
            bar, state = Progress(), Words(factor=0.92, kind="secondary")
            bar.setFixedWidth(72)
            state.setFixedWidth(STATE)
            cross = IconButton("close", tr("Stop this job"))
            cross.setFixedSize(22, 22)
            policy = cross.sizePolicy()
            policy.setRetainSizeWhenHidden(True)
            cross.setSizePolicy(policy)
            cross.clicked.connect(partial(self.dropped.emit, key))
            note = Words(factor=0.92, kind="secondary")
            row = (Words(), bar, state, cross, note)
            for column, widget in enumerate(row[:-1]):
                self._grid.addWidget(widget, 2 * at, column, Qt.AlignmentFlag.AlignVCenter)
            self._grid.addWidget(note, 2 * at + 1, 0, 1, 4)
            self._rows[key] = row


KEEPS_TEXTS = "keeps the texts already captured"


def keeps_words(layers: int) -> str:
    """What Stop keeps."""
    if not layers:
        return tr("keeps nothing yet")
    return tr("keeps {layers}", layers=sentences.counted(layers, "finished layer"))


# --- jobchip --------------------------------------------------------------------------------------


WIDE, POPUP = 320, 480  # px


class JobChip(QWidget):
    """The newest job that runs; a click shows all. dropped: the key of one to stop."""

    dropped = Signal(str)
    pressed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._key = ""
        self._title = Words(factor=0.92)
        self._bar = Progress()
        self._bar.setFixedWidth(64)
        self._left = label("", factor=0.92, kind="secondary")
        self._stop = IconButton("stop", tr("Stop"))
        self._stop.setFixedSize(22, 22)
        self._stop.clicked.connect(self._drop)
        hbox(
            self, (self._title, 1), self._bar, self._left, self._stop, margins=(8, 0, 8, 0),
            spacing=8,
        )  # fmt: skip
        self.setFixedWidth(WIDE)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setToolTip(tr("All jobs"))
        self.setAccessibleName(tr("All jobs"))
        self.hide()

    def show_work(self, works: tuple[Work, ...]) -> None:
        """Show the newest job that runs, and how many more there are."""
        going = [one for one in works if one.state in (*GOING, "stopping")]
        runs = [one for one in going if one.state == "running"] or going
        one = runs[-1]
        self._key = one.key
        title, more = tr(one.title), len(going) - 1
        self._title.say(tr("{job} and {count} more", job=title, count=more) if more else title)
        self._bar.show_part(one.done / one.total if one.total else 0.0)
        running = one.state == "running"
        self._left.setText(time_left(one.left, short=True) if running else tr(one.state))
        self._stop.setEnabled(one.state in GOING)
        words = tr("Stop {job}", job=within(one.title))
        self._stop.setToolTip(f"{words}: {tr(one.keeps)}" if one.keeps else words)
        self._stop.setAccessibleName(words)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Show all jobs."""
        if self.rect().contains(event.position().toPoint()):
            self.pressed.emit()

    def _drop(self) -> None:
        self.dropped.emit(self._key)


class JobsPopup(QDialog):
    """All jobs in a list over the status bar, each with its Stop.

    dropped: the key of a job to stop.
    """

    dropped = Signal(str)

    def __init__(self, window: QWidget) -> None:
        super().__init__(window, Qt.WindowType.Popup)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAccessibleName(tr("Jobs"))
        self.setFixedWidth(POPUP)
        self._none = label(tr("Nothing is running."), kind="secondary")
        self.list = JobList()
        self.list.dropped.connect(self.dropped)
        vbox(self, self._none, self.list, margins=(16, 12, 16, 12), spacing=-1)

    def show_work(self, works: tuple[Work, ...]) -> None:
        """List these jobs, above the chip."""
        self._none.setVisible(not works)
        self.list.show_work(works)
        self.adjustSize()
        chip = self.parentWidget().findChild(JobChip)
        corner = chip.mapToGlobal(chip.rect().topLeft())
        self.move(corner.x(), corner.y() - self.height())
