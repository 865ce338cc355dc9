"""Lanes in which functions run off the thread of the window, and the list of what runs."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QDialog, QGridLayout, QWidget

from hgviz.core import Step
from hgviz.gui.language import tr
from hgviz.gui.sentences import percent, time_left
from hgviz.gui.widgets import IconButton, Progress, Words, hbox, label, make, vbox
from hgviz.jobs import Job, Lane
from hgviz.session import Session, Work


class Bridge(QObject):
    """One long-lived object of the GUI thread: a call posted from any thread runs there."""

    _crossing = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._closed = False
        self._crossing.connect(self._arrive, Qt.ConnectionType.QueuedConnection)

    def post(self, call: Callable[[], object]) -> None:
        """Run a call in the GUI thread, soon."""
        if not self._closed:
            self._crossing.emit(call)

    def close(self) -> None:
        """Drop whatever is still on its way: the window it was meant for is going."""
        self._closed = True

    @Slot(object)
    def _arrive(self, call: Callable[[], object]) -> None:
        if not self._closed:
            call()


class GarbageCollector(QObject):
    """Collects Python's garbage in the window's thread alone, while any of these is open.

    Else whichever thread makes objects collects it. There it would delete widgets, and crash while
    the window's thread is closing a dialog: PySide lets other threads run in the middle of that.
    """

    INTERVAL = 500  # ms
    _open = 0  # of all windows

    def __init__(self) -> None:
        super().__init__()
        GarbageCollector._open += 1
        gc.disable()
        self._timer = QTimer(self, interval=self.INTERVAL)
        self._timer.timeout.connect(self._collect)
        self._timer.start()

    @Slot()
    def _collect(self) -> None:
        """Collect each generation that Python would."""
        counts = zip(gc.get_count(), gc.get_threshold(), strict=True)
        due = [generation for generation, (count, limit) in enumerate(counts) if count > limit > 0]
        if due:
            gc.collect(due[-1])

    def close(self) -> None:
        """Leave it to Python again, when the last is closed."""
        self._timer.stop()
        GarbageCollector._open -= 1
        if not GarbageCollector._open:
            gc.enable()
        self.deleteLater()


class Lanes:
    """The lanes and the way back: engine runs what uses the model, files HDF5 and figures, map
    what the map on screen waits for, facts what measures all heads, for minutes where texts are
    long, while nobody waits. watch looks at folders of studies, which may be of another machine and
    slow to answer; recovery writes down what is open.
    """

    def __init__(self) -> None:
        self.bridge, self.garbage = Bridge(), GarbageCollector()
        names = ("engine", "files", "map", "facts", "watch", "recovery")
        self._all = tuple(Lane(name, self.bridge.post) for name in names)
        self.engine, self.files, self.map, self.facts, self.watch, self.recovery = self._all

    def close(self) -> None:
        """Cancel everything but files that somebody asked for, and wait for the threads to end."""
        self.bridge.close()
        for lane in self._all:
            lane.shutdown()
        self.garbage.close()
        # else Python would delete it, in whatever thread it happens to look for garbage
        self.bridge.deleteLater()


OFTEN = 0.1  # s: numbers that run change at most so often
KEPT = 4  # finished jobs that stay in the list while others run

OnError = Callable[[BaseException], None]


def within(title: str) -> str:
    """A job's title within a sentence: "measuring heads"."""
    words = tr(title)
    return title[:1].lower() + title[1:] if words == title else words


class Jobs:
    """Hands calls to the lanes and keeps session.work true."""

    def __init__(self, session: Session, lanes: Lanes, on_error: OnError) -> None:
        self.session, self.lanes, self.on_error = session, lanes, on_error
        self._jobs: dict[str, Job] = {}
        self._started: dict[str, float] = {}
        self._told = 0.0
        self._bound: set[str] = set()  # jobs whose result is of the model at hand
        self._heeded = ""  # the job whose listener is at it
        session.changed.connect(self._heard)

    def start(
        self,
        lane: Lane,
        key: str,
        title: str,
        work: Callable[[], Any],
        on_done: Callable[[Any], None],
        on_error: OnError | None = None,
        on_step: Callable[[Step], None] | None = None,
        keeps: str = "",
        lasting: bool = False,
        bound: bool = False,
    ) -> None:
        """Call a function in a lane; a job of the same key is given up for it.

        lasting: it writes what somebody asked for, and does so though the window closes meanwhile.
        bound: it is given up once another model is open than the one it was asked of, unless it
        opened that itself.
        """
        (self._bound.add if bound else self._bound.discard)(key)
        self._started[key] = time.monotonic()
        others = tuple(one for one in self.session.work if one.key != key)
        shown = others[-KEPT:] if any(one.is_going for one in others) else ()
        self.session.put(work=(*shown, Work(key, title, keeps=keeps)))
        self._jobs[key] = lane.submit(
            key,
            title,
            work,
            on_step=partial(self._stepped, key, on_step),
            on_done=partial(self._end, key, "done", on_done),
            on_error=partial(self._end, key, "failed", on_error or self.on_error),
            lasting=lasting,
            on_end=partial(self._let_go, key),
        )

    def write(self, path: str, work: Callable[[], Any], on_done: Callable[[Any], None]) -> None:
        """Write a file that somebody asked for, in its lane."""
        title = f"Saving {Path(path).name}"
        self.start(self.lanes.files, f"save {path}", title, work, on_done, lasting=True)

    def stop(self, key: str) -> None:
        """Stop a job; until its lane has let go of it, it is said to be stopping."""
        job = self._jobs.pop(key, None)
        if job is not None:
            job.cancel()
            under_way = job.begun and not job.ended
            self.tell(key, state="stopping" if under_way else "stopped", left=None)

    def _let_go(self, key: str) -> None:
        if any(one.key == key and one.state == "stopping" for one in self.session.work):
            from hgviz.maps.tiles import release_memory

            release_memory()  # see app.keep_memory
            self.tell(key, state="stopped")

    def lasts(self, key: str) -> bool:
        """Whether a job is done to its end though the window closes."""
        job = self._jobs.get(key)
        return job is not None and job.lasting

    def age(self, key: str) -> float:
        """Seconds since a job was asked for."""
        return time.monotonic() - self._started[key]

    def tell(self, key: str, **fields: Any) -> None:
        """Change what is said about a job."""
        self.session.put(
            work=tuple(
                replace(one, **fields) if one.key == key else one for one in self.session.work
            )
        )

    def _stepped(self, key: str, listener: Callable[[Step], None] | None, step: Step) -> None:
        now = time.monotonic()
        if now - self._told >= OFTEN:
            self._told = now
            part = step.done / step.total if step.total else 0.0
            left = self.age(key) * (1 - part) / part if part else None
            self.tell(
                key, done=step.done, total=step.total, left=left, note=step.note, state="running"
            )
        if listener is not None:
            self._heed(key, listener, step)

    def _end(self, key: str, state: str, listener: Callable[[Any], None], result: Any) -> None:
        self._jobs.pop(key, None)
        self.tell(key, state=state, left=None)
        self._heed(key, listener, result)

    def _heed(self, key: str, listener: Callable[[Any], None], said: Any) -> None:
        before, self._heeded = self._heeded, key
        try:
            listener(said)
        finally:
            self._heeded = before

    def _heard(self, name: str) -> None:
        if name == "models":
            for key in self._bound - {self._heeded}:
                self.stop(key)


class Runner:
    """Does a part of what the commands of a window do: with its session, lanes and jobs."""

    def __init__(self, commands: Any) -> None:
        self.commands, self.window = commands, commands.window
        self.session: Session = commands.session
        self.lanes: Lanes = commands.lanes
        self.working: Jobs = commands.working


# --- the list of jobs, and the chip of the status bar ---------------------------------------------

STATE = 56  # px: room for the words of a job's state


class JobList(QWidget):
    """A row for each job: what, a bar, the time left, Stop, and below it how far it is in words."""

    dropped = Signal(str)  # the key of a job to stop

    def __init__(self) -> None:
        super().__init__()
        self._grid = make(QGridLayout, self, horizontalSpacing=8, verticalSpacing=4)
        self._grid.setContentsMargins(0, 0, 0, 0)
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
            job = tr(work.title)
            title.say(job)
            cross.setAccessibleName(tr("Stop: {job}", job=job))
            cross.setVisible(work.is_going)
            part = 1.0 if work.state == "done" else work.part
            bar.show_part(part, work.state == "done")
            bar.setAccessibleName(f"{job}: {percent(f'{100 * part:.0f}')}")
            runs = work.state == "running"
            state.say(time_left(work.left, short=True) if runs else tr(work.state))
            words = tr(work.note)
            note.say(words[:1].upper() + words[1:])
            note.setVisible(bool(work.keeps and work.note) and work.is_going)

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
            drop = partial(self.dropped.emit, key)
            cross = IconButton("close", tr("Stop this job"), clicked=drop)
            cross.setFixedSize(22, 22)
            policy = cross.sizePolicy()
            policy.setRetainSizeWhenHidden(True)
            cross.setSizePolicy(policy)
            note = Words(factor=0.92, kind="secondary")
            row = (Words(), bar, state, cross, note)
            for column, widget in enumerate(row[:-1]):
                self._grid.addWidget(widget, 2 * at, column, Qt.AlignmentFlag.AlignVCenter)
            self._grid.addWidget(note, 2 * at + 1, 0, 1, 4)
            self._rows[key] = row


WIDE, POPUP = 320, 480  # px


class JobChip(QWidget):
    """The newest job that runs; a click shows all."""

    dropped = Signal(str)  # the key of a job to stop
    pressed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setToolTip(tr("All jobs"))
        self.setAccessibleName(tr("All jobs"))
        self._key = ""
        self._title = Words(factor=0.92)
        self._bar = Progress()
        self._bar.setFixedWidth(64)
        self._left = label("", factor=0.92, kind="secondary")
        self._stop = IconButton("stop", tr("Stop"))
        self._stop.setFixedSize(22, 22)
        self._stop.clicked.connect(lambda: self.dropped.emit(self._key))
        hbox(
            self, (self._title, 1), self._bar, self._left, self._stop, margins=(8, 0, 8, 0),
            spacing=8,
        )  # fmt: skip
        self.setFixedWidth(WIDE)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.hide()

    def show_work(self, works: tuple[Work, ...]) -> None:
        """Show the newest job that runs, and how many more there are."""
        going = [one for one in works if one.is_going or one.state == "stopping"]
        runs = [one for one in going if one.state == "running"] or going
        one = runs[-1]
        self._key = one.key
        title, more = tr(one.title), len(going) - 1
        self._title.say(tr("{job} and {count} more", job=title, count=more) if more else title)
        self._bar.show_part(one.part)
        running = one.state == "running"
        self._left.setText(time_left(one.left, short=True) if running else tr(one.state))
        self._stop.setEnabled(one.is_going)
        words = tr("Stop {job}", job=within(one.title))
        self._stop.setToolTip(f"{words}: {tr(one.keeps)}" if one.keeps else words)
        self._stop.setAccessibleName(words)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self.rect().contains(event.position().toPoint()):
            self.pressed.emit()


class JobsPopup(QDialog):
    """All jobs in a list over the status bar, each with its Stop."""

    dropped = Signal(str)  # the key of a job to stop

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
