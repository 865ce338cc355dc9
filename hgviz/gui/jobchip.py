"""The job at work, in the status bar of every page: what, how far, how long, and Stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from hgviz.gui.controls import Button, IconButton, Progress, Words, label
from hgviz.gui.language import tr
from hgviz.gui.overlay import Overlay
from hgviz.gui.panels.jobs import JobList
from hgviz.gui.views.busy import time_left
from hgviz.gui.working import GOING, within

if TYPE_CHECKING:
    from hgviz.session import Work

WIDE = 320  # px, at most


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
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 0, 8, 0)
        row.setSpacing(8)
        row.addWidget(self._title, 1)
        row.addWidget(self._bar)
        row.addWidget(self._left)
        row.addWidget(self._stop)
        self.setFixedWidth(WIDE)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setToolTip(tr("All jobs"))
        self.setAccessibleName(tr("All jobs"))
        self.hide()

    def show_work(self, works: tuple[Work, ...]) -> None:
        """Show what runs; the others are counted."""
        going = [one for one in works if one.state in (*GOING, "stopping")]
        runs = [one for one in going if one.state == "running"] or going
        if not runs:
            self.hide()
            return
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


class JobsDialog(Overlay):
    """All jobs, those of other pages too, each with its Stop."""

    dropped = Signal(str)
    wide = 480

    def __init__(self, over: QWidget) -> None:
        super().__init__(over)
        self.body.addWidget(label(tr("Jobs"), factor=1.15, weight=600))
        self._none = label(tr("Nothing is running."), kind="secondary")
        self.list = JobList(notes=True)
        self.list.dropped.connect(self.dropped)
        self.body.addWidget(self._none)
        self.body.addWidget(self.list)
        self.default = Button(tr("Close"))
        self.default.clicked.connect(self.finish)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(self.default)
        self.body.addSpacing(8)
        self.body.addLayout(row)

    def show_work(self, works: tuple[Work, ...]) -> None:
        """Show these."""
        self._none.setVisible(not works)
        self.list.show_work(works)
        self.place()


__all__ = ["JobChip", "JobsDialog"]
