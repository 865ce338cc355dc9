"""What is open, kept while the window works, so that a process that is killed takes nothing along.

Beside the settings lie open.lock, locked as long as the process lives that keeps its session,
open.hgviz, the session as it was some seconds ago, and open-7.h5, the study in it where nobody
saved that. A session that no process has locked was left by one that was killed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QDateTime, QLocale, QTimer
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QWidget

from hgviz.core import HgvizError, Step, Task, finish
from hgviz.gui.keeping.gathering import NAMES, checking, gather, placed
from hgviz.gui.language import tr
from hgviz.gui.overlay import Overlay
from hgviz.gui.samples import name_of
from hgviz.gui.sessions import OPEN, last
from hgviz.gui.widgets import Button, Words, label
from hgviz.session import saved
from hgviz.session.saved import Saved
from hgviz.study import Mask, Study

if TYPE_CHECKING:
    from filelock import FileLock

    from hgviz.gui.keeping.gathering import Checked
    from hgviz.gui.sessions import Sessions

SOON = 3000  # ms from a change until it is kept
SHARE = 20  # writing takes at most one part in so many of the time
PASSING = ("hover", "work", "recent", "gone", "dark")  # changes of nothing that is kept


class Snapshot(NamedTuple):
    """What a window has open: the session, the paths of what it names, and its study and masks
    where that study is not saved. Two are equal where nothing need be written again."""

    session: Saved
    paths: dict[str, str]
    study: Study | None = None
    masks: tuple[Mask, ...] = ()

    def write(self, file: Path, study: Path) -> Task[float]:
        """Write it to a file, its study to another, unless it lies there already; gives the seconds
        this took. Errors: HgvizError, OSError."""
        from hgviz.store import write_study

        yield Step(0, 1, "keeping what is open")
        begun, paths = time.monotonic(), self.paths
        if self.study is not None:
            paths = {**paths, "unsaved": str(study)}
            if not study.exists():
                write_study(study, replace(self.study, masks=self.masks))
        saved.write(
            placed(self.session, paths, str(file)), file
        )  # it named the study before, if any
        _remove_studies(file, but=study if self.study is not None else None)
        return time.monotonic() - begun


class Recovery:
    """Keeps what a window has open in a file, and offers what a killed process left there. While
    another window keeps its session there, nothing of this one is kept."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions, self.commands = sessions, sessions.commands
        self.file = last().with_name("open.hgviz")
        self._lock: FileLock | None = None
        self._left = False  # whether the file was left by a killed process, and is not open here
        self._kept: Snapshot | None = None
        self._study = Path()  # where the study of the newest snapshot goes
        self._told = False  # whether somebody knows that nothing can be kept
        self._timer = QTimer(self.commands.window, singleShot=True, interval=SOON)
        self._timer.timeout.connect(self.keep)

    def begin(self) -> None:
        """Look for what was left, and keep what is open from now on."""
        self._left = self.file.exists() and self._take_lock()
        self.sessions.session.changed.connect(self._heard)

    def close(self, complete: bool) -> None:
        """Keep no more, once the lanes are closed. complete: nothing is lost with the window; else
        its session stays as a killed process leaves it."""
        self._timer.stop()
        with suppress(ValueError):  # it never began
            self.sessions.session.changed.disconnect(self._heard)
        if not complete and self._can_keep():
            with suppress(HgvizError, OSError):
                finish(self._next().write(self.file, self._study))
        elif self._lock is not None and not self._left:
            self._clear()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    # --- what was left ----------------------------------------------------------------------------

    def offer(self, otherwise: Callable[[], object]) -> None:
        """Ask whether to open what was left; otherwise: what is done where there is nothing, or
        nobody wants it."""
        if self._left:
            try:
                found = saved.read(self.file)
            except HgvizError as error:
                self._set_aside(error)
            else:
                dialog = RecoveryDialog(self.commands.window, found, self.file)
                dialog.closed.connect(partial(self._answered, dialog, otherwise))
                dialog.open()
                return
        otherwise()

    def _answered(self, dialog: RecoveryDialog, otherwise: Callable[[], object]) -> None:
        if dialog.answer == "open":
            self._open(otherwise)
            return
        if dialog.answer == "discard":
            self._clear()
            self._left = False
        otherwise()

    def _open(self, otherwise: Callable[[], object]) -> None:
        def failed(error: BaseException) -> None:
            self.commands.show_error(error)
            otherwise()

        def opened() -> None:
            self._left = False
            self.keep()

        def show(checked: Checked) -> None:
            self.sessions.show(checked, then=opened)

        task, lane = checking(str(self.file)), self.commands.lanes.files
        self.commands.working.start(lane, OPEN, "Opening the last session", task, show, failed)

    def _set_aside(self, error: HgvizError) -> None:
        """A file that cannot be read stays under another name, and is spoken of once."""
        aside = self.file.with_name(f"damaged-{time.strftime('%Y%m%d-%H%M%S')}.hgviz")
        with suppress(OSError):
            self.file.replace(aside)
        self._left = False
        what = "The session that was open last cannot be recovered"
        do = f"The damaged file is kept as {aside}"
        self.commands.show_error(HgvizError(what, error.why, do))

    # --- what is open -----------------------------------------------------------------------------

    def keep(self) -> None:
        """Keep what is open now, where that has changed."""
        if not self._can_keep():
            return
        now = self._next()

        def done(seconds: float) -> None:
            self._kept = now
            self._timer.setInterval(max(SOON, round(seconds * 1000 * SHARE)))

        if now == self._kept:
            done(0.0)
        elif not (now.paths or now.session.text):
            self._clear()
            done(0.0)
        else:
            task, post = now.write(self.file, self._study), self.commands.lanes.bridge.post
            lane = self.commands.lanes.recovery
            lane.submit("keep", "", task, on_done=done, on_error=self._failed, post=post)

    def _heard(self, name: str) -> None:
        if name not in PASSING and not self._timer.isActive():
            self._timer.start()

    def _failed(self, error: BaseException) -> None:
        if not self._told:
            self._told = True
            why = error.why if isinstance(error, HgvizError) else str(error)
            self.commands.say(tr("hgviz cannot keep a copy of this session: {why}", why=why))

    def _can_keep(self) -> bool:
        """Whether the file is neither another window's nor left by a killed process."""
        if self._left or (self._lock is None and self.file.exists()):
            return False
        return self._take_lock()

    def _take_lock(self) -> bool:
        """Whether the file is this window's; False where another window has it, or nobody can."""
        if self._lock is None:
            from filelock import (
                FileLock,
                Timeout,
            )  # 30 ms, which the first picture need not wait for

            lock = FileLock(self.file.with_suffix(".lock"), timeout=0)
            try:
                self.file.parent.mkdir(parents=True, exist_ok=True)
                lock.acquire()
            except (Timeout, OSError, NotImplementedError):  # the last: a file system without locks
                return False
            self._lock = lock
        return True

    def _clear(self) -> None:
        """Remove the session and its study."""
        with suppress(OSError):
            self.file.unlink(missing_ok=True)
        _remove_studies(self.file)

    def _next(self) -> Snapshot:
        """What is open now; a study other than the last one gets a new file."""
        session = self.sessions.session
        found, paths = gather(session, self.sessions.layout())
        if session.study is None or not session.unsaved:
            return Snapshot(found, paths)
        now = Snapshot(found, paths, session.study, session.masks)
        if self._kept is None or now[2:] != self._kept[2:]:
            self._study = self.file.with_name(f"{self.file.stem}-{time.time_ns()}.h5")
        return now


def _remove_studies(file: Path, but: Path | None = None) -> None:
    """Remove the studies beside a session, and what a killed process left of one, except one."""
    for study in file.parent.glob(f"{file.stem}-*.h5*"):
        if study != but:
            with suppress(OSError):
                study.unlink(missing_ok=True)


class RecoveryDialog(Overlay):
    """Says what was open when a process was killed. answer: "open" or "discard"; "" asks again at
    the next start, and keeps nothing else until then."""

    wide = 520

    def __init__(self, over: QWidget, found: Saved, file: Path) -> None:
        super().__init__(over)
        self.answer = ""
        self.body.addWidget(label(tr("hgviz did not close properly"), factor=1.15, weight=600))
        when = QDateTime.fromSecsSinceEpoch(round(file.stat().st_mtime))
        time_ = QLocale().toString(when, QLocale.FormatType.ShortFormat)
        self.body.addWidget(label(tr("This was open at {time}:", time=time_), kind="secondary"))
        grid = QGridLayout()
        grid.setContentsMargins(0, 8, 0, 0)
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(8)
        grid.setColumnMinimumWidth(0, 96)
        grid.setColumnStretch(1, 1)
        for row, (name, words) in enumerate(contents(found)):
            grid.addWidget(label(name, weight=600), row, 0)
            grid.addWidget(Words(words, kind="secondary"), row, 1)
        self.body.addLayout(grid)
        self.body.addSpacing(12)
        row_ = QHBoxLayout()
        discard = Button(tr("Discard"))
        discard.clicked.connect(partial(self._answer, "discard"))
        row_.addWidget(discard)
        row_.insertStretch(1, 1)
        self.default = Button(tr("Open"), kind="filled")
        self.default.clicked.connect(partial(self._answer, "open"))
        row_.addWidget(self.default)
        self.body.addLayout(row_)

    def _answer(self, answer: str) -> None:
        self.answer = answer
        self.finish()


def contents(found: Saved) -> list[tuple[str, str]]:
    """What a session has: a name and words for each."""
    rows = [
        (tr(NAMES[name]), name_of(place.path))
        for name, place in found.places.items()
        if name != "unsaved"
    ]
    if found.text:
        rows.append((tr("Text"), " ".join(found.text.split())))
    if found.off:
        rows.append((tr("Heads off"), f"{len(found.off):,}"))
    if found.masks:
        rows.append((tr("Masks"), ", ".join(one.name for one in found.masks)))
    if found.unsaved is not None:
        rows.append((tr(NAMES["unsaved"]), tr("measured but not saved yet")))
    return rows


__all__ = ["Recovery", "RecoveryDialog"]
