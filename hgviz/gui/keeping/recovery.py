"""What is open, kept while the window works, so that a process that is killed takes nothing along.

Every window at work has a slot beside the settings: open-1.lock, locked as long as its process
lives, open-1.hgviz, the session as it was some seconds ago, and open-1-7.h5, the study in it where
nobody saved that. A slot with a session that no process has locked was left by one that was killed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QDateTime, QLocale, QTimer
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QWidget

from hgviz.core import HgvizError, Step, Task, finish
from hgviz.gui.controls import Button, Words, label
from hgviz.gui.keeping.gathering import NAMES, checking, gather, placed
from hgviz.gui.keeping.sessions import OPEN, last
from hgviz.gui.language import tr
from hgviz.gui.opening import name_of
from hgviz.gui.overlay import Overlay
from hgviz.session import saved
from hgviz.session.saved import Saved
from hgviz.study import Mask, Study

if TYPE_CHECKING:
    from filelock import FileLock

    from hgviz.gui.keeping.gathering import Checked
    from hgviz.gui.keeping.sessions import Sessions

SLOTS = 64  # windows at the same time that are kept
SOON = 3000  # ms from a change until it is kept
SHARE = 20  # writing takes at most one part in so many of the time
PASSING = ("hover", "work", "recent", "gone", "dark")  # changes of nothing that is kept


@dataclass(frozen=True, slots=True)
class Slot:
    """The files of one window, and the lock on them."""

    session: Path
    lock: FileLock

    @classmethod
    def take(cls, session: Path) -> Slot | None:
        """The slot of a session, locked; None where a living process has it, or nobody can."""
        from filelock import FileLock, Timeout  # 30 ms, which the first picture need not wait for

        try:
            session.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(session.with_suffix(".lock"), timeout=0)
            lock.acquire()
        except (Timeout, OSError, NotImplementedError):  # the last: a file system without locks
            return None
        return cls(session, lock)

    @property
    def studies(self) -> list[Path]:
        """The studies beside the session, and what a killed process left of one."""
        return list(self.session.parent.glob(f"{self.session.stem}-*.h5*"))

    def clear(self, but: Path | None = None) -> None:
        """Remove the session and its study; but: only studies other than this one."""
        with suppress(OSError):
            if but is None:
                self.session.unlink(missing_ok=True)
            for one in self.studies:
                if one != but:
                    one.unlink(missing_ok=True)


class Snapshot(NamedTuple):
    """What a window has open: the session, the paths of what it names, and its study and masks
    where that study is not saved. Two are equal where nothing need be written again."""

    session: Saved
    paths: dict[str, str]
    study: Study | None = None
    masks: tuple[Mask, ...] = ()

    def write(self, slot: Slot, study: Path) -> Task[float]:
        """Write it to a slot, the study to a file of its own there, unless it lies there already;
        gives the seconds this took. Errors: HgvizError, OSError."""
        from hgviz.store import write_study

        yield Step(0, 1, "keeping what is open")
        begun, paths = time.monotonic(), self.paths
        if self.study is not None:
            paths = {**paths, "unsaved": str(study)}
            if not study.exists():
                write_study(study, replace(self.study, masks=self.masks))
        written = placed(self.session, paths, str(slot.session), digests=False)
        saved.write(written, slot.session)  # until now the file named the study before, if any
        slot.clear(but=study if self.study is not None else slot.session)
        return time.monotonic() - begun


class Recovery:
    """Keeps what a window has open in its slot, and offers what killed processes left in theirs."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions, self.commands = sessions, sessions.commands
        self._slot: Slot | None = None
        self._left: list[Slot] = []  # the newest last
        self._opened: Slot | None = None  # the one that is open here, until it is kept
        self._kept: Snapshot | None = None
        self._study = Path()  # where the study of the newest snapshot goes
        self._written = 0  # how many were
        self._sought = False  # whether there is such a place was found out
        self._told = False  # whether somebody knows that nothing can be kept
        self._timer = QTimer(self.commands.window, singleShot=True, interval=SOON)
        self._timer.timeout.connect(self.keep)

    def begin(self) -> None:
        """Look for what was left, and keep what is open from now on."""
        there = sorted(last().parent.glob("open-*.hgviz"), key=lambda one: one.stat().st_mtime)
        self._left = [slot for slot in map(Slot.take, there) if slot is not None]
        self.sessions.session.changed.connect(self._heard)

    def close(self, complete: bool) -> None:
        """Keep no more, once the lanes are closed. complete: nothing is lost with the window; else
        its slot stays as a killed process leaves it."""
        self._timer.stop()
        with suppress(ValueError):  # it never began
            self.sessions.session.changed.disconnect(self._heard)
        slot = self._slot if complete else self._own()
        if slot is not None:
            if complete:
                slot.clear()
            else:
                with suppress(HgvizError, OSError):
                    finish(self._next().write(slot, self._study))
            self._left.append(slot)
        for one in self._left:
            one.lock.release()
        self._slot, self._left = None, []

    # --- what was left ----------------------------------------------------------------------------

    def offer(self, otherwise: Callable[[], object]) -> None:
        """Ask whether to open what was left, the newest first; otherwise: what is done where there
        is nothing, or nobody wants it."""
        while self._left:
            slot = self._left[-1]
            try:
                found = saved.read(slot.session)
            except HgvizError as error:
                self._set_aside(error)
                continue
            dialog = RecoveryDialog(self.commands.window, found, slot.session)
            dialog.closed.connect(partial(self._answered, dialog, otherwise))
            dialog.open()
            return
        otherwise()

    def _answered(self, dialog: RecoveryDialog, otherwise: Callable[[], object]) -> None:
        slot = self._left[-1]
        if dialog.answer == "open":
            self._open(slot, otherwise)
            return
        if dialog.answer == "discard":
            slot.clear()
        self._left.pop().lock.release()
        self.offer(otherwise)

    def _open(self, slot: Slot, otherwise: Callable[[], object]) -> None:
        def failed(error: BaseException) -> None:
            self.commands.show_error(error)
            otherwise()

        def opened() -> None:
            self._opened = slot
            self.keep()

        def show(checked: Checked) -> None:
            self.sessions.show(checked, then=opened)

        task, lane = checking(str(slot.session)), self.commands.lanes.files
        self.commands.working.start(lane, OPEN, "Opening the last session", task, show, failed)

    def _set_aside(self, error: HgvizError) -> None:
        """A file that cannot be read stays under another name, and is spoken of once."""
        slot = self._left.pop()
        aside = slot.session.with_name(f"damaged-{time.strftime('%Y%m%d-%H%M%S')}.hgviz")
        with suppress(OSError):
            slot.session.replace(aside)
        slot.lock.release()
        what = "The session that was open last cannot be recovered"
        do = f"The damaged file is kept as {aside}"
        self.commands.show_error(HgvizError(what, error.why, do))

    # --- what is open -----------------------------------------------------------------------------

    def keep(self) -> None:
        """Keep what is open now, where that has changed."""
        slot, now = self._own(), self._next()

        def done(seconds: float) -> None:
            self._kept = now
            self._timer.setInterval(max(SOON, round(seconds * 1000 * SHARE)))
            if self._opened is not None:
                self._opened.clear()
                self._opened = None

        if slot is None:
            return
        if now == self._kept:
            done(0.0)
        elif not (now.paths or now.session.text):
            slot.clear()
            done(0.0)
        else:
            task, post = now.write(slot, self._study), self.commands.lanes.bridge.post
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

    def _own(self) -> Slot | None:
        """The slot of this window, taken when first needed; None where nothing can be kept."""
        if self._slot is None and not self._sought:
            self._sought = True
            for number in range(1, SLOTS + 1):
                session = last().with_name(f"open-{number}.hgviz")
                if not session.exists() and (slot := Slot.take(session)) is not None:
                    slot.clear()
                    self._slot = slot
                    break
        return self._slot

    def _next(self) -> Snapshot:
        """What is open now; a study other than the last one gets a new file."""
        session = self.sessions.session
        found, paths = gather(session, self.sessions.layout())
        if session.study is None or not session.unsaved:
            return Snapshot(found, paths)
        now = Snapshot(found, paths, session.study, session.masks)
        if self._slot is not None and (self._kept is None or now[2:] != self._kept[2:]):
            self._written += 1
            name = f"{self._slot.session.stem}-{self._written}.h5"
            self._study = self._slot.session.with_name(name)
        return now


class RecoveryDialog(Overlay):
    """Says what was open when a process was killed. answer: "open", "discard", or "later": it is
    asked again at the next start."""

    wide = 520

    def __init__(self, over: QWidget, found: Saved, file: Path) -> None:
        super().__init__(over)
        self.answer = "later"
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
        for words, answer in ((tr("Discard"), "discard"), (tr("Not now"), "later")):
            button = Button(words)
            button.clicked.connect(partial(self._answer, answer))
            row_.addWidget(button)
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
