"""Sessions: saved, opened, recovered; files that are dropped, and recent ones."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from dataclasses import replace as replace_study
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace as replace_struct
from PySide6.QtCore import QDateTime, QLocale, QLockFile, Qt, QTimer, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QGridLayout, QMenu, QWidget

from hgviz import settings, tasks
from hgviz.core import Display, HeadId, HeadSet, HgvizError, MetricEstimate, Selection, progress
from hgviz.files import resource
from hgviz.gui import sources
from hgviz.gui.dialogs import TEXT_SUFFIXES, Question
from hgviz.gui.jobs import GOING, Jobs, within
from hgviz.gui.language import tr
from hgviz.gui.samples import TEXT, name_of, samples
from hgviz.gui.sentences import counted, percent
from hgviz.gui.sides import BESIDE
from hgviz.gui.sources import NAMES, SessionCheck, checking, gather, placed, saving
from hgviz.gui.view import LOOKS
from hgviz.gui.widgets import Button, Words, label, tip
from hgviz.gui.window import MODES
from hgviz.palettes import PALETTES
from hgviz.session import Mode, Other, Session, add_recent, saved
from hgviz.session.history import History
from hgviz.session.saved import Beside, Layout, Place, Saved, SavedMask, is_session
from hgviz.study import Mask, Study

# --- closing --------------------------------------------------------------------------------------


# jobs that bring nothing that the next start does not bring as well, or leave a file behind
AGAIN = ("open", "find-model", "measure", BESIDE, "capture")


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
        goes = work.state in GOING and not working.lasts(work.key)
        if goes and (work.key not in AGAIN or work.title == "Writing"):
            part = percent(f"{100 * work.done / work.total:.0f}") if work.total else ""
            job = within(work.title) + (f" ({part})" if part else "")
            lost.append(tr("Not finished: {job}.", job=job))
    if session.masks and not comes_back and not (session.study and not session.unsaved):
        lost.append(tr("Not saved: {masks}.", masks=counted(len(session.masks), "mask")))
    return tuple(lost)


# --- dropped files --------------------------------------------------------------------------------


IDS = ".json"

Kind = Literal["checkpoint", "capture", "study", "session", "sweep", "texts", "ids", "nothing"]
Deed = Literal["open", "data", "ids", "together", "nothing"]


@dataclass(frozen=True, slots=True)
class DropPlan:
    """What is done with files. paths: by what each is for, as in a session where several are opened
    together, else the one path under "file". page: which is shown. said: in a line, what was left
    aside, or why there is nothing to do."""

    deed: Deed
    paths: dict[str, str]
    page: str = ""
    said: str = ""


def sorted_out(paths: list[str]) -> list[tuple[str, Kind]]:
    """What each of some paths holds, by content; texts and ids by their ending."""
    found: list[tuple[str, Kind]] = []
    for number, path in enumerate(paths):
        progress(number, len(paths), f"looking at {Path(path).name}")
        found.append((path, _kind(path)))
    return found


def _kind(path: str) -> Kind:
    if is_session(path):
        return "session"
    if tasks.is_sweep_file(path):
        return "sweep"
    try:
        return tasks.kind_of(path)
    except HgvizError:
        ending = Path(path).suffix.lower()
        if not Path(path).is_file():
            return "nothing"
        return "texts" if ending in TEXT_SUFFIXES else "ids" if ending == IDS else "nothing"


def planned(found: list[tuple[str, Kind]], has_model: bool, page: str) -> DropPlan:
    """What to do with what was dropped. has_model: whether a checkpoint is open; page: which."""
    by: dict[str, list[str]] = {}
    for path, kind in found:
        by.setdefault(kind, []).append(path)
    if whole := by.get("session", []) + by.get("sweep", []):
        return DropPlan("open", {"file": whole[0]}, said=_aside(found, {whole[0]}))
    pictures = [path for path, kind in found if kind in ("checkpoint", "capture")]
    texts, studies = by.get("texts", []), by.get("study", [])
    if pictures:
        return _together(found, pictures, texts, studies)
    if studies:
        return DropPlan("open", {"file": studies[0]}, said=_aside(found, {studies[0]}))
    if texts:
        deed: Deed = "data" if has_model and page == "prune" else "open"
        return DropPlan(deed, {"file": texts[0]}, said=_aside(found, {texts[0]}))
    if ids := by.get("ids", []):
        if has_model:
            return DropPlan("ids", {"file": ids[0]}, said=_aside(found, {ids[0]}))
        words = "{file} has token IDs: open the model that they are for first"
        return DropPlan("nothing", {}, said=tr(words, file=name_of(ids[0])))
    return DropPlan("nothing", {}, said=_nothing(found))


def _together(
    found: list[tuple[str, Kind]], pictures: list[str], texts: list[str], studies: list[str]
) -> DropPlan:
    """A model or a capture, B beside it, a study and data that belong to it."""
    kinds = dict(found)
    if len(pictures) == 2 and {kinds[one] for one in pictures} == {"checkpoint", "capture"}:
        pictures.sort(key=lambda one: kinds[one] == "checkpoint")  # of a capture something is seen
    a, *others = pictures
    paths = {"model" if kinds[a] == "checkpoint" else "capture": a}
    page = ""
    if others:
        paths["beside"], page = others[0], "compare"
    if studies:
        paths["study"], page = studies[0], page or "prune"
    if texts and kinds[a] == "checkpoint":
        paths["data"], page = texts[0], page or "prune"
    said = _aside(found, set(paths.values()))
    if len(paths) == 1:
        return DropPlan("open", {"file": a}, said=said)
    return DropPlan("together", paths, page, said)


def _aside(found: list[tuple[str, Kind]], used: set[str]) -> str:
    files = ", ".join(name_of(path) for path, _ in found if path not in used)
    return tr("Not opened: {files}", files=files) if files else ""


def _nothing(found: list[tuple[str, Kind]]) -> str:
    """Why none of some files is opened."""
    files = ", ".join(name_of(path) for path, _ in found)
    words = "{files}: not something that hgviz opens (models, captures, studies, sessions, texts)"
    return tr(words, files=files)


# --- recent files ---------------------------------------------------------------------------------


class RecentNames(dict[str, str]):
    """The name of everything that was opened since the start, and of what comes with hgviz, by
    path. opened: called with every path that is opened, also again."""

    def __init__(self, opened: Callable[[str], None]) -> None:
        super().__init__(samples())
        self._opened = opened

    def __setitem__(self, path: str, name: str) -> None:
        super().__setitem__(path, name)
        self._opened(path)


class Recent:
    """Keeps session.recent, and, through keep, the setting behind it."""

    def __init__(self, session: Session, keep: Callable[..., Any]) -> None:
        self.session, self._keep = session, keep
        session.put(recent=settings.load().recent)

    def add(self, path: str) -> None:
        """Put a path that was opened first; what comes with hgviz has a place of its own."""
        if path in samples() or Path(path).is_relative_to(resource("sample")):
            return
        path = os.path.abspath(path) if os.path.lexists(path) else path
        self._put(add_recent(self.session.recent, path))

    def remove(self, path: str) -> None:
        """Forget one of them."""
        self._put(tuple(one for one in self.session.recent if one != path))

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
            action = QAction(digit + name.replace("&", "&&"), self._menu)
            action.setToolTip(tip(path))
            action.triggered.connect(partial(self._chosen, path))
            self._menu.insertAction(self._line, action)
            self._files.append(action)
        self._menu.menuAction().setEnabled(bool(self._files))


class RecentList(QWidget):
    """Some recent files, each a link."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(2)
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
            link = Button(name, "open", kind="link")
            link.setText(link.fontMetrics().elidedText(name, ELIDED, NAME))
            link.setAccessibleName(tr("Open {name}", name=name))
            link.setToolTip(tip(path))
            link.clicked.connect(partial(self.chosen.emit, path))
            self._grid.addWidget(link, row, 0)
            self._grid.addWidget(Words(place_of(path), kind="secondary"), row, 1)
        self.setVisible(bool(recent))


# --- sessions -------------------------------------------------------------------------------------


LAST = "last.hgviz"  # beside the settings: what was open when the window closed
PICTURES = {"capture", "model", "study", "sweep"}  # of which something can be seen
OPEN = "open"  # the key of the job that opens things; the newest wins


class Sessions:
    """Sessions of a window. file: the one at hand, "" for none; layout and lay_out: what tells and
    changes how the window is laid out."""

    def __init__(self, commands: Any) -> None:
        self.commands, self.file = commands, ""
        self.session, self.working = commands.session, commands.working
        self.layout: Callable[[], Layout] = Layout
        self.lay_out: Callable[[Layout], None] = _nowhere

    # --- saving -----------------------------------------------------------------------------------

    def save(self, file: str) -> None:
        """Write what is open to a file, which is the one at hand then."""
        work = partial(saving, *gather(self.session, self.layout()), file)
        title = f"Saving {Path(file).name}"
        lane = self.commands.lanes.files
        self.working.start(lane, f"save {file}", title, work, self._saved, lasting=True)

    def _saved(self, file: str) -> None:
        self.file = file
        self.commands.recent.add(file)
        self.commands.say(tr("Saved {path}", path=file))

    def keep_last(self) -> None:
        """Keep what is open for the next start."""
        session, file = self.session, last()
        with suppress(OSError):
            if not (session.capture or session.checkpoint or session.study or session.sweep):
                file.unlink(missing_ok=True)
            else:
                found, paths = gather(session, self.layout())
                saved.write(placed(found, paths, str(file)), file)

    # --- opening ----------------------------------------------------------------------------------

    def open_last(self, otherwise: Callable[[], None]) -> None:
        """What was open when the window closed; where that cannot be read, something else."""

        def failed(_: BaseException) -> None:
            otherwise()

        def show(checked: SessionCheck) -> None:
            if checked.paths.keys() & PICTURES or checked.missing:
                last().replace(_set_aside_path())  # one that ends the program does so once
                self.show(checked)
            else:
                otherwise()

        work = partial(checking, str(last()))
        lane = self.commands.lanes.files
        self.working.start(lane, OPEN, "Opening the last session", work, show, failed)

    def show(self, checked: SessionCheck, then: Callable[[], object] | None = None) -> None:
        """Open a session, as far as what it names is there; then: what is done once it is open."""
        if checked.missing:
            gone = (f"{tr(NAMES[name])}: {path}" for name, path in checked.missing.items())
            what = "Some of this session is not where it was"
            self.commands.show_error(HgvizError(f"{what}: {'; '.join(gone)}", "The rest is opened"))
        ours = Path(checked.file).parent == last().parent  # which nobody saved under a name
        self.file = "" if ours else checked.file
        self.clear()
        self.commands.close_sweep()
        self.lay_out(checked.saved.layout)
        SessionRestorer(self, checked.saved, checked.paths, then).start()

    def open_together(self, paths: dict[str, str], page: str) -> None:
        """Open things that belong together, by what each is for, on a page; the window stays, and
        everything in it where the first of them cannot be opened.
        """
        first = paths.get("capture") or paths["model"]
        commands, title = self.commands, f"Opening {name_of(first)}"
        done = partial(self._open_together, paths, page)
        commands.working.start(commands.lanes.files, OPEN, title, partial(_readable, first), done)

    def _open_together(self, paths: dict[str, str], page: str, _: None) -> None:
        now, _ = gather(self.session, Layout())
        text = sources.text_for(paths.get("model", ""), self.session.text)
        blank = Saved(saved.FORMAT, saved.VERSION)
        wanted = replace_struct(
            blank,
            text=text if "model" in paths else "",
            shown=replace_struct(now.shown, mode=page, shade=""),
            beside=Beside("model", place=Place("")) if "beside" in paths else None,
        )
        self.file = ""
        self.clear()
        SessionRestorer(self, wanted, paths).start()

    def clear(self) -> None:
        """Nothing is open any more: what comes is no part of what was there."""
        commands = self.commands
        if self.session.at_work:
            commands.capturing.stop()
        commands.comparing.forget()
        commands.pruning.forget()
        self.session.put(
            capture=None, model=None, spec=None, checkpoint="", activation="", study=None,
            trial=None, masks=(), data="", off=frozenset(), history=History(), ids="", facts={},
            roles=None, question=None, explained=None, shade="",
        )  # fmt: skip


class SessionRestorer:
    """One session on its way back: first the picture, then what belongs to it."""

    def __init__(
        self,
        sessions: Sessions,
        wanted: Saved,
        paths: dict[str, str],
        then: Callable[[], object] | None = None,
    ) -> None:
        self.commands, self.session = sessions.commands, sessions.session
        self.file = sessions.file
        self.wanted, self.paths, self.then = wanted, paths, then

    def start(self) -> None:
        """Open the capture, else capture the text again, else go on with the study alone."""
        wanted, paths = self.wanted, self.paths
        mode = wanted.shown.mode
        known = mode if any(mode == name for name, *_ in MODES) else "inspect"
        self.session.put(mode=known, text=wanted.text, second=wanted.second)
        if "capture" in paths:
            work = partial(sources.look, paths["capture"], wanted.item)
            self._look(paths["capture"], work, self._capture_there, self._without_capture)
        elif "model" in paths:
            self._capture_again()
        else:
            self._study()

    def _look(self, path: str, work: Callable[[], Any], done: Any, failed: Any) -> None:
        lane, title = self.commands.lanes.files, f"Opening {name_of(path)}"
        self.commands.working.start(lane, OPEN, title, work, done, failed)

    def _without_capture(self, error: BaseException) -> None:
        """Say what is wrong with the capture, and open the rest."""
        self.commands.show_error(error)
        if "model" in self.paths and self.wanted.text:
            self._capture_again()
        else:
            self._study()

    def _capture_there(self, found: sources.OpenedFile) -> None:
        wanted = self.wanted
        if found.capture is None:
            self._without_capture(_no_capture(self.paths["capture"]))
            return
        self.commands.show_found(found)
        if "model" in self.paths:
            self.session.put(checkpoint=self.paths["model"], activation=wanted.activation)
        if wanted.text:
            self.session.put(text=wanted.text, second=wanted.second)
        self._picture_there()

    def _capture_again(self) -> None:
        wanted = self.wanted
        self.session.put(text=wanted.text or TEXT, second=wanted.second)
        self.commands.capturing.start_again(
            self.paths["model"],
            then=self._picture_there,
            on_error=self._without_picture,
            ids=self.paths.get("ids", ""),
            activation=wanted.activation,
            off=frozenset(_heads(wanted.off)),
        )

    def _without_picture(self, error: BaseException) -> None:
        """Say why there is none; a model that is open has its heads off all the same."""
        self.commands.show_error(error)
        self.paths.pop("ids", "")
        (self._study if self.session.model is None else self._picture_there)()

    def _picture_there(self) -> None:
        """What is chosen in it and how it is shown; then the study and the data."""
        session, chosen, shown = self.session, self.wanted.chosen, self.wanted.shown
        off = self._off(self.wanted.off)
        if not (self.file or off):  # what was off when it was open before
            off = session.off
        masks = tuple(map(self._mask, self.wanted.masks))
        names = {one.name for one in masks}
        session.put(
            ids=self.paths.get("ids", ""),
            off=off,
            masks=(*masks, *(one for one in session.masks if one.name not in names)),
            display=Display(
                shown.palette if shown.palette in PALETTES else session.display.palette,
                shown.limits, shown.scale, shown.shared,
            ),
            look=shown.look if shown.look in LOOKS else "map",
        )  # fmt: skip
        if chosen is not None:
            beside = next(iter(_heads((chosen.beside,))), None) if chosen.beside else None
            picked = Selection(chosen.layer, chosen.head, chosen.query, chosen.key, beside)
            self.commands.capturing.settle_on(picked)
        self._study()

    def _study(self) -> None:
        path = self.paths.get("unsaved") or self.paths.get("study")
        if path:
            self._look(path, partial(sources.look, path), self._study_there, self._without_study)
        else:
            self._rest()

    def _without_study(self, error: BaseException) -> None:
        """Say what is wrong with it; without what was not saved there is what was."""
        self.commands.show_error(error)
        if self.paths.pop("unsaved", ""):
            self._study()
        else:
            self._rest()

    def _study_there(self, found: sources.OpenedFile) -> None:
        spec, study, mode = self.session.spec, found.study, self.session.mode
        if study is not None and (spec is None or spec.digest == study.spec.digest):
            masks, off = self.session.masks, self.session.off
            unsaved = "unsaved" in self.paths
            if unsaved:
                study = replace_study(study, path=self.paths.get("study", ""))
            self.commands.pruning.open_study(study, alone=spec is None)
            if spec is not None:
                names = {one.name for one in study.masks}
                more = tuple(one for one in masks if one.name not in names)
                self.session.put(mode=mode, masks=(*study.masks, *more), off=off)
            self.session.put(unsaved=unsaved)
        self._rest()

    def _rest(self) -> None:
        """The data that heads are tried on, what colours them, and B."""
        session, wanted, paths = self.session, self.wanted, self.paths
        mode = session.mode
        if wanted.score and session.study is not None:
            self.commands.pruning.colour(wanted.score)
        if "data" in paths and session.checkpoint:
            study = session.study
            scored = wanted.scored or (study.data_digest if study is not None else "")
            self.commands.pruning.use(paths["data"], scored)
        other = wanted.beside
        if other is not None and session.capture is not None:
            kind_there = other.place is None or "beside" in paths
            if kind_there and (other.kind == "model" or session.checkpoint or other.kind == "head"):
                self.commands.comparing.choose(
                    Other(
                        other.kind, other.activation, paths.get("beside", ""), other.text,
                        other.second, self._off(other.off),
                    ),
                    session.selection.beside,
                )  # fmt: skip
        if session.mode != mode:
            session.put(mode=mode)
        if wanted.shown.shade and session.facts:
            session.put(shade=wanted.shown.shade)
        if "sweep" in paths:
            path = paths["sweep"]
            show = partial(self._runs_there, mode)
            self._look(path, partial(sources.look, path), show, self.commands.show_error)
        if self.file:  # after its parts: it is the newest
            self.commands.recent.add(self.file)
        if _set_aside_path().exists():
            _set_aside_path().replace(last())
        if self.then is not None:
            self.then()

    def _runs_there(self, mode: Mode, found: sources.OpenedFile) -> None:
        """A study of many runs lies beside all else; the page is the one that was shown."""
        if found.sweep is not None:
            self.commands.show_sweep(found.sweep, found.path)
            keys = {one.cell.key for one in found.sweep.standings}
            self.session.put(
                mode="sweep" if self.wanted.shown.mode == "sweep" else mode,
                cell=self.wanted.cell if self.wanted.cell in keys else "",
            )

    def _mask(self, one: SavedMask) -> Mask:
        off, score = self._off(one.off), one.score
        if score is None:
            return Mask(one.name, off)
        numbers = score.value, score.low, score.high, score.seen, score.total
        return Mask(one.name, off, MetricEstimate(score.metric, *numbers, off), score.change)

    def _off(self, names: tuple[str, ...]) -> HeadSet:
        """These heads, as far as the model has them."""
        there = set(self.session.spec.heads) if self.session.spec is not None else set()
        return frozenset(one for one in _heads(names) if one in there)


def last() -> Path:
    """Where what was open last is kept."""
    return settings.settings_path().with_name(LAST)


def _set_aside_path() -> Path:
    """Where the last session lies while it is opened."""
    return last().with_suffix(".opening")


def _heads(names: tuple[str, ...]) -> list[HeadId]:
    """Heads by name, those that are none left out."""
    found = []
    for name in names:
        layer, _, head = name.partition(".")
        if layer.isdecimal() and head.isdecimal() and len(name) < 20:
            found.append(HeadId(int(layer), int(head)))
    return found


def _readable(path: str) -> None:
    """Read a capture or what a checkpoint says of itself. Errors: HgvizError where that fails."""
    progress(0, 1, "looking at the file")
    if tasks.kind_of(path) == "capture":
        tasks.capture_at(path)
    else:
        tasks.digest_of(path)


def _no_capture(path: str) -> HgvizError:
    return HgvizError(
        f"{name_of(path)} is no capture any more: the session was saved with one there",
        "Open it by itself",
    )


def _nowhere(layout: Layout) -> None:
    """Nobody lays anything out."""


# --- recovery -------------------------------------------------------------------------------------


SOON = 3000  # ms from a change until it is kept
SHARE = 20  # writing takes at most one part in so many of the time
PASSING = ("hover", "work", "recent", "dark")  # changes of nothing that is kept


class Snapshot(NamedTuple):
    """What a window has open: the session, the paths of what it names, and its study and masks
    where that study is not saved. Two are equal where nothing need be written again."""

    session: Saved
    paths: dict[str, str]
    study: Study | None = None
    masks: tuple[Mask, ...] = ()

    def write(self, file: Path, study: Path) -> float:
        """Write it to a file, its study to another, unless it lies there already; gives the seconds
        this took. Errors: HgvizError, OSError."""
        progress(0, 1, "keeping what is open")
        begun, paths = time.monotonic(), self.paths
        if self.study is not None:
            paths = {**paths, "unsaved": str(study)}
            if not study.exists():
                tasks.save(replace(self.study, masks=self.masks), study)
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
        self._lock = QLockFile(str(self.file.with_suffix(".lock")))
        self._lock.setStaleLockTime(0)  # only that of a killed process is stale
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
                self._next().write(self.file, self._study)
        elif self._lock.isLocked() and not self._left:
            self._clear()
        self._lock.unlock()

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
                when = QDateTime.fromSecsSinceEpoch(round(self.file.stat().st_mtime))
                time_ = QLocale().toString(when, QLocale.FormatType.ShortFormat)

                def discard() -> None:
                    self._clear()
                    self._left = False
                    otherwise()

                Question(
                    self.commands.window,
                    tr("hgviz did not close properly"),
                    [tr("Open at {time}:", time=time_), *contents(found)],
                    {tr("Discard"): discard, tr("Restore"): partial(self._open, otherwise)},
                    otherwise,
                ).open()
                return
        otherwise()

    def _open(self, otherwise: Callable[[], object]) -> None:
        def failed(error: BaseException) -> None:
            self.commands.show_error(error)
            otherwise()

        def opened() -> None:
            self._left = False
            self.keep()

        def show(checked: SessionCheck) -> None:
            self.sessions.show(checked, then=opened)

        work, lane = partial(checking, str(self.file)), self.commands.lanes.files
        self.commands.working.start(lane, OPEN, "Opening the last session", work, show, failed)

    def _set_aside(self, error: HgvizError) -> None:
        """A file that cannot be read stays under another name, and is spoken of once."""
        aside = self.file.with_name(f"damaged-{time.strftime('%Y%m%d-%H%M%S')}.hgviz")
        with suppress(OSError):
            self.file.replace(aside)
        self._left = False
        what = "The session that was open last cannot be recovered"
        do = f"The damaged file is kept as {aside}"
        self.commands.show_error(HgvizError(what, do, details=error.what))

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
            work, post = partial(now.write, self.file, self._study), self.commands.lanes.bridge.post
            lane = self.commands.lanes.recovery
            lane.submit("keep", "", work, on_done=done, on_error=self._failed, post=post)

    def _heard(self, name: str) -> None:
        if name not in PASSING and not self._timer.isActive():
            self._timer.start()

    def _failed(self, error: BaseException) -> None:
        if not self._told:
            self._told = True
            why = error.what if isinstance(error, HgvizError) else str(error)
            self.commands.say(tr("hgviz cannot keep a copy of this session: {why}", why=why))

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
