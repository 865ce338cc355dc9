"""Sessions: saved, opened, recovered; files that are dropped, and recent ones."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace as replace_struct
from PySide6.QtCore import QDateTime, QLocale, QLockFile, Qt, QTimer, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QGridLayout, QMenu, QWidget

from hgviz import settings, tasks
from hgviz.core import HgvizError, progress
from hgviz.errors import require
from hgviz.files import resource
from hgviz.gui import sources
from hgviz.gui.dialogs import TEXT_SUFFIXES, Question
from hgviz.gui.jobs import Jobs, Runner, within
from hgviz.gui.language import tr
from hgviz.gui.sentences import counted, percent
from hgviz.gui.sides import BESIDE
from hgviz.gui.sources import TEXT, name_of, samples
from hgviz.gui.view import LOOKS
from hgviz.gui.widgets import Button, Words, label, make, tip
from hgviz.palettes import PALETTES
from hgviz.session import Session, add_recent
from hgviz.session.document import Document, SideB, is_session, read_document, write_document
from hgviz.study import Mask, Study, Sweep

# --- closing --------------------------------------------------------------------------------------

# jobs that bring nothing that the next start does not bring as well, or leave a file behind
AGAIN = ("open", "measure", BESIDE, "capture", "score-b", "pair")


def losses(session: Session, working: Jobs, comes_back: bool) -> tuple[str, ...]:
    """What would be lost with the window, a sentence each.

    comes_back: whether what is open is opened again at the next start.
    """
    lost = []
    if session.study is not None and session.unsaved:
        lost.append(tr("The importance scores are not saved."))
    for kept in session.measured.values():
        study = kept["study"]
        if kept["unsaved"] or (kept["masks"] and study is None):
            name = study.spec.name if study is not None else kept["name"]
            lost.append(tr("The importance scores of {name} are not saved.", name=name))
    for work in session.work:
        goes = work.is_going and not working.lasts(work.key)
        if goes and (work.key not in AGAIN or work.title == sources.WRITING):
            part = percent(f"{100 * work.done / work.total:.0f}") if work.total else ""
            job = within(work.title) + (f" ({part})" if part else "")
            lost.append(tr("Not finished: {job}.", job=job))
    if session.masks and not comes_back and not (session.study and not session.unsaved):
        lost.append(tr("Not saved: {masks}.", masks=counted(len(session.masks), "mask")))
    return tuple(lost)


# --- dropped files --------------------------------------------------------------------------------

IDS = ".json"

# what a dropped file is for, as a field of a session, by its kind
FIELDS = {
    "session": "session", "sweep": "sweep", "capture": "capture", "checkpoint": "model",
    "study": "study", "texts": "data", "ids": "ids",
}  # fmt: skip


def sorted_out(paths: list[str]) -> dict[str, str]:
    """What some dropped files are for: their paths by a field of a session, in the order of FIELDS.

    A session or a study of many runs is opened alone. Of captures and checkpoints the first is A,
    the second B, and a capture comes before a checkpoint: of it something is seen at once. Of other
    kinds the first counts; data need a model.
    """
    kinds = []
    for number, path in enumerate(paths):
        progress(number, len(paths), f"reading {Path(path).name}")
        kinds.append((path, _kind(path)))
    found: dict[str, str] = {}
    for kind, field in FIELDS.items():
        for path in (path for path, other in kinds if other == kind):
            is_b = field in ("capture", "model") and found.keys() & {"capture", "model"}
            found.setdefault("comparison" if is_b else field, path)
    if (first := next(iter(found), "")) in ("session", "sweep"):
        return {first: found[first]}
    if found.keys() & {"capture", "model"}:
        found.pop("ids", None)
        if "model" not in found:
            found.pop("data", None)
    elif found:
        return {first: found[first]}
    return found


def _kind(path: str) -> str:
    """What a path holds, by content; texts and ids by their ending."""
    if is_session(path):
        return "session"
    if tasks.is_sweep_file(path):
        return "sweep"
    ending = Path(path).suffix.lower()
    try:
        return tasks.kind_of(path)
    except HgvizError:
        if not Path(path).is_file():
            return "nothing"
        return "texts" if ending in TEXT_SUFFIXES else "ids" if ending == IDS else "nothing"


# --- recent files ---------------------------------------------------------------------------------


class Recent:
    """Keeps session.recent, and, through keep, the setting behind it. names: of everything that was
    opened since the start, and of what comes with hgviz, by path."""

    def __init__(self, session: Session, keep: Callable[..., Any]) -> None:
        self.session, self._keep, self.names = session, keep, samples()
        session.put(recent=settings.load().recent)

    def open(self, path: str, name: str = "") -> None:
        """Name a path that was opened, by default as its file, and put it first."""
        self.names[path] = name or name_of(path)
        self.add(path)

    def add(self, path: str) -> None:
        """Put a path that was opened first; what comes with hgviz has a place of its own."""
        if path in samples() or Path(path).is_relative_to(resource("sample")):
            return
        path = os.path.abspath(path) if os.path.lexists(path) else path
        self._put(add_recent(self.session.recent, path))

    def clear(self) -> None:
        """Forget all of them."""
        self._put(())

    def _put(self, recent: tuple[str, ...]) -> None:
        if recent != self.session.recent:
            self.session.put(recent=recent)
            self._keep(recent=recent)


def place_of(path: str) -> str:
    """The folder that a path lies in, as people write it."""
    home, folder = str(Path.home()), str(Path(path).parent)
    inside = folder == home or folder.startswith(home + os.sep)
    return "~" + folder[len(home) :] if inside else folder


LISTED = 5  # files on the empty page
NAME = 240  # px: room for the name of one
ELIDED = Qt.TextElideMode.ElideMiddle


class RecentMenu:
    """Fills a menu with the recent files, above the actions it has."""

    def __init__(self, menu: QMenu, session: Session, chosen: Callable[[str], None]) -> None:
        self._menu, self._session, self._chosen = menu, session, chosen
        self._line = menu.insertSeparator(menu.actions()[0])
        self._files: list[QAction] = []
        self.fill()

    def fill(self) -> None:
        """List what there is now; the first nine have a digit to press."""
        for action in self._files:
            self._menu.removeAction(action)
            action.deleteLater()
        self._files = []
        names = Counter(map(name_of, self._session.recent))
        for number, path in enumerate(self._session.recent, 1):
            name = name_of(path)
            name += f"   {place_of(path)}" if names[name] > 1 else ""
            digit = f"&{number}   " if number < 10 else ""
            words, choose = digit + name.replace("&", "&&"), partial(self._chosen, path)
            action = make(QAction, words, self._menu, toolTip=tip(path), triggered=choose)
            self._menu.insertAction(self._line, action)
            self._files.append(action)
        self._menu.menuAction().setEnabled(bool(self._files))


class RecentList(QWidget):
    """Some recent files, each a link."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._grid = make(QGridLayout, self, horizontalSpacing=8, verticalSpacing=2)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setColumnStretch(1, 1)
        self.hide()

    def show_files(self, recent: tuple[str, ...]) -> None:
        """List them under a title; nothing at all where there are none."""
        while (item := self._grid.takeAt(0)) is not None:
            item.widget().hide()
            item.widget().deleteLater()
        self._grid.addWidget(label(tr("Recent"), weight=600), 0, 0, 1, 2)
        for row, path in enumerate(recent[:LISTED], 1):
            name = name_of(path)
            link = Button(
                name, "open", kind="link", accessibleName=tr("Open {name}", name=name),
                toolTip=tip(path), clicked=partial(self.chosen.emit, path),
            )  # fmt: skip
            link.setText(link.fontMetrics().elidedText(name, ELIDED, NAME))
            self._grid.addWidget(link, row, 0)
            self._grid.addWidget(Words(place_of(path), kind="secondary"), row, 1)
        self.setVisible(bool(recent))


# --- sessions -------------------------------------------------------------------------------------

LAST = "last.hgviz"  # beside the settings: what was open when the window closed
PICTURES = {"capture", "model", "study", "sweep"}  # of which something can be seen
OPEN = "open"  # the key of the job that opens things; the newest wins
NAMES = {
    "model": "Model", "capture": "Capture", "ids": "Token IDs", "study": "Study",
    "unsaved": "Scores", "data": "Data", "comparison": "B", "sweep": "Study of runs",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SessionParts:
    """What the files of a session hold, the session without those that are missing or damaged, and
    what is wrong with these."""

    document: Document
    capture: sources.OpenedFile
    study: Study | None
    sweep: Sweep | None
    errors: tuple[BaseException, ...]


def read_parts(document: Document, required: str = "") -> SessionParts:
    """Read the files of a session. required: the name of the one that has to be readable. Raises
    HgvizError where that is not."""
    progress(0, 1, "finding the files of the session")
    errors: list[BaseException] = []
    if missing := document.missing:
        gone = "; ".join(f"{tr(NAMES[name])}: {path}" for name, path in missing.items())
        what = f"Some files of this session are missing: {gone}"
        errors.append(HgvizError(what, "The rest is opened"))
        document = document.with_paths(dict.fromkeys(missing, ""))
    if required == "model":
        tasks.digest_of(document.model)

    def read(name: str, kind: str) -> sources.OpenedFile:
        """What the file that the session has under a name holds; nothing where it is missing or of
        another kind."""
        nonlocal document
        path = getattr(document, name)
        if not path:
            return sources.OpenedFile("")
        try:
            found = sources.look(path, document.item if name == "capture" else 0)
            what = f"{name_of(path)} is not a {tr(NAMES[kind]).lower()}, as the session expects"
            require(getattr(found, kind) is not None, what, "Open the file on its own")
            return found
        except HgvizError as error:
            if name == required:
                raise
            errors.append(error)
            document = document.with_paths({name: ""})
            return sources.OpenedFile("")

    capture = read("capture", "capture")
    study = read("unsaved", "study").study or read("study", "study").study
    sweep = read("sweep", "sweep").sweep
    return SessionParts(document, capture, study, sweep, tuple(errors))


def save_document(document: Document, file: str) -> str:
    """Write a session file; returns its path. Raises HgvizError where it cannot be written."""
    progress(0, 1, "writing the session")
    try:
        return write_document(document, file)
    except OSError as error:
        what = f"{os.path.basename(file)} could not be written: {error.strerror or str(error)}"
        raise HgvizError(what, "Choose another folder") from None


class Sessions(Runner):
    """Saves and restores what a window has open."""

    file = ""  # the session file at hand

    @property
    def document(self) -> Document:
        """What is open now, and how the window is laid out."""
        return replace_struct(self.session.document, layout=self.commands.laying.layout())

    def save(self, file: str) -> None:
        """Write what is open to a file, which is the one at hand then."""

        def saved(_: str) -> None:
            self.file = file
            self.commands.recent.add(file)
            self.commands.say(tr("Saved {path}", path=file))

        self.working.write(file, partial(save_document, self.document, file), saved)

    def keep_last(self) -> None:
        """Keep what is open for the next start."""
        session = self.session
        with suppress(OSError):
            if session.capture or session.checkpoint or session.study or session.sweep:
                write_document(self.document, last())
            else:
                last().unlink(missing_ok=True)

    def open_last(self, otherwise: Callable[[], None]) -> None:
        """Open what was open when the window closed; where that cannot be read, something else."""

        def show(document: Document) -> None:
            if document.paths.keys() & PICTURES:
                last().replace(_set_aside_path())  # one that ends the program does so once
                self.show(document, str(last()))
            else:
                otherwise()

        lane, work = self.lanes.files, partial(read_document, str(last()))
        self.working.start(
            lane, OPEN, "Opening the last session", work, show, lambda _: otherwise()
        )

    def show(self, document: Document, file: str, then: Callable[[], object] | None = None) -> None:
        """Open what a session file names, as far as it is there. then: called once it is open."""
        ours = Path(file).parent == last().parent  # which nobody saved under a name
        self._read(document, "" if ours else file, then=then)

    def open_together(self, parts: dict[str, str]) -> None:
        """Open files that belong together, by the field that each is for, on the page that shows
        most of them; what is open stays where the first of them cannot be opened."""
        session, model, comparison = self.session, parts.get("model", ""), parts.get("comparison")
        measured = parts.keys() & {"study", "data"}
        document = Document(
            model=model,
            capture=parts.get("capture", ""),
            study=parts.get("study", ""),
            data=parts.get("data", ""),
            comparison=SideB("model", path=comparison) if comparison else None,
            text=sources.text_for(model, session.text) if model else "",
            display=session.display,
            look=session.look,
            mode="compare" if comparison else "prune" if measured else "inspect",
            layout=self.commands.laying.layout(),
        )
        self._read(document, "", required="capture" if document.capture else "model")

    def clear(self) -> None:
        """Close everything: what comes is no part of what was there."""
        commands = self.commands
        if self.session.at_work:
            commands.capturing.stop()
        commands.comparing.forget()
        commands.pruning.forget()
        commands.close_sweep()
        self.session.put(
            capture=None, model=None, spec=None, checkpoint="", activation="", study=None,
            trial=None, masks=(), data="", off=frozenset(), ids="", facts={},
            roles=None, question=None, explained=None, shade="",
        )  # fmt: skip

    def _read(
        self,
        document: Document,
        file: str,
        required: str = "",
        then: Callable[[], object] | None = None,
    ) -> None:
        """Read the files of a session, then show what they hold in place of what is open."""

        def show(parts: SessionParts) -> None:
            self.file = file
            self.clear()
            self.commands.laying.lay_out(document.layout)
            for error in parts.errors:
                self.commands.show_error(error)
            self._restore_picture(parts, then)

        first = document.capture or document.model or document.study or document.sweep
        title = f"Opening {name_of(first or file)}"
        work = partial(read_parts, document, required)
        self.working.start(self.lanes.files, OPEN, title, work, show)

    def _restore_picture(self, parts: SessionParts, then: Callable[[], object] | None) -> None:
        """Show the capture, else run the model on the text again, then restore all that belongs to
        it."""
        session, document = self.session, parts.document
        session.put(mode=document.mode, text=document.text, second=document.second)

        def finish(document: Document = document) -> None:
            self._restore_state(document)
            self._restore_study(document, parts.study)
            self._restore_rest(document, parts.sweep)
            if _set_aside_path().exists():
                _set_aside_path().replace(last())
            if then is not None:
                then()

        def failed(error: BaseException) -> None:
            self.commands.show_error(error)
            finish(replace_struct(document, ids=""))

        if parts.capture.capture is not None:
            self.commands.show_found(parts.capture)
            if document.model:
                session.put(checkpoint=document.model, activation=document.activation)
            if document.text:
                session.put(text=document.text, second=document.second)
        elif document.model:
            session.put(text=document.text or TEXT)
            self.commands.capturing.start_again(
                document.model, finish, failed, ids=document.ids, activation=document.activation,
                off=document.off,
            )  # fmt: skip
            return
        finish()

    def _restore_state(self, document: Document) -> None:
        """Restore which heads are off, the masks, what is chosen and how it is shown."""
        session = self.session
        if session.spec is None:
            return
        heads = frozenset(session.spec.heads)
        # of what nobody saved under a name: what was off when the model was open before
        off = document.off & heads or (frozenset() if self.file else session.off)
        masks = tuple(replace(one, off=one.off & heads) for one in document.masks)
        names = {one.name for one in masks}
        display = document.display
        if display.palette not in PALETTES:
            display = replace(display, palette=session.display.palette)
        look = document.look if document.look in LOOKS else "map"
        masks = (*masks, *(one for one in session.masks if one.name not in names))
        session.put(ids=document.ids, off=off, masks=masks, display=display, look=look)
        if document.selection is not None:
            self.commands.capturing.settle_on(document.selection)

    def _restore_study(self, document: Document, study: Study | None) -> None:
        """Restore the study, unless it is of another model, and the data for trials."""
        session, pruning = self.session, self.commands.pruning
        alone = session.spec is None
        if study is not None and (alone or session.spec.digest == study.spec.digest):
            masks, off = session.masks, session.off
            if document.unsaved:
                study = replace(study, path=document.study)
            pruning.open_study(study, alone=alone)
            if not alone:
                names = {one.name for one in study.masks}
                more = (one for one in masks if one.name not in names)
                session.put(masks=(*study.masks, *more), off=off)
            session.put(unsaved=bool(document.unsaved))
            if document.score:
                pruning.colour(document.score)
        if document.data and session.checkpoint:
            measured = session.study.data_digest if session.study is not None else ""
            pruning.use(document.data, document.examples or measured)

    def _restore_rest(self, document: Document, sweep: Sweep | None) -> None:
        """Restore B, the colours of heads, the study of many runs, and the page."""
        session, commands, other = self.session, self.commands, document.comparison
        of_files = other is not None and other.kind in ("model", "head")
        if other is not None and session.capture is not None and (of_files or session.checkpoint):
            heads = frozenset(session.spec.heads)
            other = replace_struct(other, off=other.off & heads)
            commands.comparing.choose(other, session.selection.beside)
        if document.shade and session.facts:
            session.put(shade=document.shade)
        if sweep is not None:
            commands.show_sweep(sweep, document.sweep)
            keys = {one.cell.key for one in sweep.standings}
            session.put(cell=document.cell if document.cell in keys else "")
        if session.spec is not None or sweep is not None:
            session.put(mode=document.mode)
        if self.file:  # after its parts: it is the newest
            commands.recent.add(self.file)


def last() -> Path:
    """Where what was open last is kept."""
    return settings.settings_path().with_name(LAST)


def _set_aside_path() -> Path:
    """Where the last session lies while it is opened."""
    return last().with_suffix(".opening")


# --- recovery -------------------------------------------------------------------------------------

SOON = 3000  # ms from a change until it is kept
SHARE = 20  # writing takes at most one part in so many of the time
PASSING = ("hover", "work", "recent", "dark")  # changes of nothing that is kept


class Snapshot(NamedTuple):
    """What a window has open, and its study and masks where that study is not saved. Two are equal
    where nothing need be written again."""

    document: Document
    study: Study | None = None
    masks: tuple[Mask, ...] = ()

    def write(self, file: Path, study: Path) -> float:
        """Write it to a file, its study to another, unless it lies there already; gives the seconds
        this took. Errors: HgvizError, OSError."""
        progress(0, 1, "saving the open session")
        begun, document = time.monotonic(), self.document
        if self.study is not None:
            document = replace_struct(document, unsaved=str(study))
            if not study.exists():
                tasks.save(replace(self.study, masks=self.masks), study)
        write_document(document, file)  # it named the study before, if any
        _remove_studies(file, but=study if self.study is not None else None)
        return time.monotonic() - begun


class Recovery(Runner):
    """Keeps what a window has open in a file, and offers what a killed process left there. While
    another window keeps its session there, nothing of this one is kept."""

    def __init__(self, commands: Any) -> None:
        super().__init__(commands)
        self.file = last().with_name("open.hgviz")
        self._lock = QLockFile(str(self.file.with_suffix(".lock")))
        self._lock.setStaleLockTime(0)  # only that of a killed process is stale
        self._left = False  # whether the file was left by a killed process, and is not open here
        self._kept: Snapshot | None = None
        self._study = Path()  # where the study of the newest snapshot goes
        self._told = False  # whether somebody knows that nothing can be kept
        self._timer = make(QTimer, self.window, singleShot=True, interval=SOON, timeout=self.keep)

    def begin(self) -> None:
        """Look for what was left, and keep what is open from now on."""
        self._left = self.file.exists() and self._take_lock()
        self.session.changed.connect(self._heard)

    def close(self, complete: bool) -> None:
        """Keep no more, once the lanes are closed. complete: nothing is lost with the window; else
        its session stays as a killed process leaves it."""
        self._timer.stop()
        with suppress(ValueError):  # it never began
            self.session.changed.disconnect(self._heard)
        if not complete and self._can_keep():
            with suppress(HgvizError, OSError):
                self._next().write(self.file, self._study)
        elif self._lock.isLocked() and not self._left:
            self._clear()
        self._lock.unlock()

    def offer(self, otherwise: Callable[[], object]) -> None:
        """Ask whether to open what was left; otherwise: what is done where there is nothing, or
        nobody wants it."""
        if self._left:
            try:
                found = read_document(self.file)
            except HgvizError as error:
                self._set_aside(error)
            else:
                when = QDateTime.fromSecsSinceEpoch(round(self.file.stat().st_mtime))
                time_ = QLocale().toString(when, QLocale.FormatType.ShortFormat)

                def discard() -> None:
                    self._clear()
                    self._left = False
                    otherwise()

                title, restore = tr("Restore the last session?"), partial(self._open, otherwise)
                said = tr("Unexpected exit. Open at {time}:", time=time_)
                answers: dict[str, Callable[[], object] | None]
                answers = {tr("Discard"): discard, tr("Restore"): restore}
                Question(self.window, title, [said, *contents(found)], answers, otherwise).open()
                return
        otherwise()

    def _open(self, otherwise: Callable[[], object]) -> None:
        def failed(error: BaseException) -> None:
            self.commands.show_error(error)
            otherwise()

        def opened() -> None:
            self._left = False
            self.keep()

        def show(document: Document) -> None:
            self.commands.sessions.show(document, str(self.file), then=opened)

        work, title = partial(read_document, str(self.file)), "Opening the last session"
        self.working.start(self.lanes.files, OPEN, title, work, show, failed)

    def _set_aside(self, error: HgvizError) -> None:
        """A file that cannot be read stays under another name, and is spoken of once."""
        aside = self.file.with_name(f"damaged-{time.strftime('%Y%m%d-%H%M%S')}.hgviz")
        with suppress(OSError):
            self.file.replace(aside)
        self._left = False
        what = "The last session cannot be restored"
        do = f"The damaged file is kept as {aside}"
        self.commands.show_error(HgvizError(what, do, details=error.what))

    def keep(self) -> None:
        """Keep what is open now, where that has changed."""
        if not self._can_keep():
            return
        now = self._next()

        def done(seconds: float = 0.0) -> None:
            self._kept = now
            self._timer.setInterval(max(SOON, round(seconds * 1000 * SHARE)))

        if now == self._kept:
            done()
        elif not (now.document.paths or now.document.text):
            self._clear()
            done()
        else:
            work = partial(now.write, self.file, self._study)
            self.lanes.recovery.submit("keep", "", work, on_done=done, on_error=self._failed)

    def _heard(self, name: str) -> None:
        if name not in PASSING and not self._timer.isActive():
            self._timer.start()

    def _failed(self, error: BaseException) -> None:
        if not self._told:
            self._told = True
            why = error.what if isinstance(error, HgvizError) else str(error)
            self.commands.say(tr("hgviz cannot save a copy of this session: {why}", why=why))

    def _can_keep(self) -> bool:
        """Whether the file is neither another window's nor left by a killed process."""
        if self._left or (not self._lock.isLocked() and self.file.exists()):
            return False
        return self._take_lock()

    def _take_lock(self) -> bool:
        """Take the file for this window; False where another one has it, or it cannot be locked."""
        if not self._lock.isLocked():
            with suppress(OSError):
                self.file.parent.mkdir(parents=True, exist_ok=True)
            return self._lock.tryLock(0)
        return True

    def _clear(self) -> None:
        with suppress(OSError):
            self.file.unlink(missing_ok=True)
        _remove_studies(self.file)

    def _next(self) -> Snapshot:
        """What is open now; a study other than the last one gets a new file."""
        session, document = self.session, self.commands.sessions.document
        if session.study is None or not session.unsaved:
            return Snapshot(document)
        now = Snapshot(document, session.study, session.masks)
        if self._kept is None or now[1:] != self._kept[1:]:
            self._study = self.file.with_name(f"{self.file.stem}-{time.time_ns()}.h5")
        return now


def _remove_studies(file: Path, but: Path | None = None) -> None:
    """Remove the studies beside a session, and what a killed process left of one, except one."""
    for study in file.parent.glob(f"{file.stem}-*.h5*"):
        if study != but:
            with suppress(OSError):
                study.unlink(missing_ok=True)


def contents(document: Document) -> list[tuple[str, str]]:
    """What a session has: a name and words for each."""
    paths = (row for row in document.paths.items() if row[0] != "unsaved")
    rows = [(tr(NAMES[name]), name_of(path)) for name, path in paths]
    if document.text:
        rows.append((tr("Text"), " ".join(document.text.split())))
    if document.off:
        rows.append((tr("Heads off"), f"{len(document.off):,}"))
    if document.masks:
        rows.append((tr("Masks"), ", ".join(one.name for one in document.masks)))
    if document.unsaved:
        rows.append((tr(NAMES["unsaved"]), tr("not saved yet")))
    return rows
