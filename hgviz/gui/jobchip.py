"""The job at work, in the status bar of every page: what, how far, how long, and Stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QDialog, QHBoxLayout, QVBoxLayout, QWidget

from hgviz.gui.jobs import GOING, within
from hgviz.gui.language import tr
from hgviz.gui.panels_parts.jobs import JobList
from hgviz.gui.views.busy import time_left
from hgviz.gui.widgets import IconButton, Progress, Words, label

if TYPE_CHECKING:
    from hgviz.session import Work

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
        self.list = JobList(notes=True)
        self.list.dropped.connect(self.dropped)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 12)
        column.addWidget(self._none)
        column.addWidget(self.list)

    def show_work(self, works: tuple[Work, ...]) -> None:
        """List these jobs, above the chip."""
        self._none.setVisible(not works)
        self.list.show_work(works)
        self.adjustSize()
        chip = self.parentWidget().findChild(JobChip)
        corner = chip.mapToGlobal(chip.rect().topLeft())
        self.move(corner.x(), corner.y() - self.height())


__all__ = ["JobChip", "JobsPopup"]
