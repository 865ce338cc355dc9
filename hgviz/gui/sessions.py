"""Saving what is open as a session, and bringing one back, part after part."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace as replace_study
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from hgviz import settings, tasks
from hgviz.analysis.trial import History
from hgviz.core import Display, HeadId, HgvizError, Off, Score, Selection, Step, Task
from hgviz.gui import opening
from hgviz.gui.keeping.gathering import NAMES, Checked, checking, gather, placed, saving
from hgviz.gui.language import tr
from hgviz.gui.looks import LOOKS
from hgviz.gui.samples import TEXT, name_of
from hgviz.gui.window import MODES
from hgviz.palettes import PALETTES
from hgviz.session import saved
from hgviz.session.other import Other
from hgviz.session.saved import Beside, Layout, Place, Saved, SavedMask
from hgviz.study import Mask

if TYPE_CHECKING:
    from collections.abc import Callable

    from hgviz.session import Mode

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
        task = saving(*gather(self.session, self.layout()), file)
        title = f"Saving {Path(file).name}"
        lane = self.commands.lanes.files
        self.working.start(lane, f"save {file}", title, task, self._saved, lasting=True)

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

        def show(checked: Checked) -> None:
            if checked.paths.keys() & PICTURES or checked.missing:
                last().replace(_aside())  # one that ends the program does so once
                self.show(checked)
            else:
                otherwise()

        task = checking(str(last()))
        lane = self.commands.lanes.files
        self.working.start(lane, OPEN, "Opening the last session", task, show, failed)

    def show(self, checked: Checked, then: Callable[[], object] | None = None) -> None:
        """Open a session, as far as what it names is there; then: what is done once it is open."""
        if checked.missing:
            gone = (f"{tr(NAMES[name])}: {path}" for name, path in checked.missing.items())
            what = "Some of this session is not where it was"
            self.commands.show_error(HgvizError(what, "; ".join(gone), "The rest is opened"))
        ours = Path(checked.file).parent == last().parent  # which nobody saved under a name
        self.file = "" if ours else checked.file
        self.clear()
        self.commands.close_sweep()
        self.lay_out(checked.saved.layout)
        Restoring(self, checked.saved, checked.paths, then).start()

    def open_together(self, paths: dict[str, str], page: str) -> None:
        """Open things that belong together, by what each is for, on a page; the window stays, and
        everything in it where the first of them cannot be opened.
        """
        first = paths.get("capture") or paths["model"]
        commands, title = self.commands, f"Opening {name_of(first)}"
        done = partial(self._open_together, paths, page)
        commands.working.start(commands.lanes.files, OPEN, title, _readable(first), done)

    def _open_together(self, paths: dict[str, str], page: str, _: None) -> None:
        now, _ = gather(self.session, Layout())
        text = opening.text_for(paths.get("model", ""), self.session.text)
        blank = Saved(saved.FORMAT, saved.VERSION)
        wanted = replace(
            blank,
            text=text if "model" in paths else "",
            shown=replace(now.shown, mode=page, shade=""),
            beside=Beside("model", place=Place("")) if "beside" in paths else None,
        )
        self.file = ""
        self.clear()
        Restoring(self, wanted, paths).start()

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
            habits=None, question=None, explained=None, shade="",
        )  # fmt: skip


class Restoring:
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
            task = opening.look(paths["capture"], wanted.item)
            self._look(paths["capture"], task, self._capture_there, self._without_capture)
        elif "model" in paths:
            self._capture_again()
        else:
            self._study()

    def _look(self, path: str, task: Any, done: Any, failed: Any) -> None:
        lane, title = self.commands.lanes.files, f"Opening {name_of(path)}"
        self.commands.working.start(lane, OPEN, title, task, done, failed)

    def _without_capture(self, error: BaseException) -> None:
        """Say what is wrong with the capture, and open the rest."""
        self.commands.show_error(error)
        if "model" in self.paths and self.wanted.text:
            self._capture_again()
        else:
            self._study()

    def _capture_there(self, found: opening.Found) -> None:
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
            self._look(path, opening.look(path), self._study_there, self._without_study)
        else:
            self._rest()

    def _without_study(self, error: BaseException) -> None:
        """Say what is wrong with it; without what was not saved there is what was."""
        self.commands.show_error(error)
        if self.paths.pop("unsaved", ""):
            self._study()
        else:
            self._rest()

    def _study_there(self, found: opening.Found) -> None:
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
            self._look(path, opening.look(path), show, self.commands.show_error)
        if self.file:  # after its parts: it is the newest
            self.commands.recent.add(self.file)
        if _aside().exists():
            _aside().replace(last())
        if self.then is not None:
            self.then()

    def _runs_there(self, mode: Mode, found: opening.Found) -> None:
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
        return Mask(one.name, off, Score(score.metric, *numbers, off), score.change)

    def _off(self, names: tuple[str, ...]) -> Off:
        """These heads, as far as the model has them."""
        there = set(self.session.spec.heads) if self.session.spec is not None else set()
        return frozenset(one for one in _heads(names) if one in there)


def last() -> Path:
    """Where what was open last is kept."""
    return settings.location().with_name(LAST)


def _aside() -> Path:
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


def _readable(path: str) -> Task[None]:
    """Read a capture or what a checkpoint says of itself. Errors: HgvizError where that fails."""
    yield Step(0, 1, "looking at the file")
    if tasks.kind_of(path) == "capture":
        from hgviz.store import open_capture

        open_capture(path)
    else:
        from hgviz.models.formats.readers import read

        read(path)


def _no_capture(path: str) -> HgvizError:
    return HgvizError(
        f"{name_of(path)} is no capture any more",
        "the session was saved with one there",
        "Open it by itself",
    )


def _nowhere(layout: Layout) -> None:
    """Nobody lays anything out."""
