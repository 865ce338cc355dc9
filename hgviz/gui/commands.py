"""The methods behind the actions."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from dataclasses import replace as replace_dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QApplication, QFileDialog

from hgviz import settings, tasks
from hgviz.core import Capture, HeadId, HeadSet, HgvizError, ModelSpec
from hgviz.errors import LabelError
from hgviz.files import resource
from hgviz.gui import dialogs, sentences, sources, studyruns, trials
from hgviz.gui import help as help_pages
from hgviz.gui import log as logged
from hgviz.gui.across import ReachRunner
from hgviz.gui.actions import BY_NAME
from hgviz.gui.attribution import AttributionRunner
from hgviz.gui.dialogs import (
    CAPTURES,
    READABLE,
    TEXT_SUFFIXES,
    ErrorDialog,
    ModelInputs,
    ask_for,
    ask_where,
)
from hgviz.gui.dialogs import TEXTS as TEXT_FILES
from hgviz.gui.export import Exporter
from hgviz.gui.help import GUIDE, Explanation
from hgviz.gui.jobs import GOING, Jobs, Lanes
from hgviz.gui.language import tr
from hgviz.gui.panels import TextsPanel
from hgviz.gui.removal import REMOVE, RemovalRunner
from hgviz.gui.sessions import (
    IDS,
    Recent,
    RecentNames,
    Sessions,
    losses,
    sorted_out,
)
from hgviz.gui.sources import FIRST, SAMPLE, CaptureRunner, PromptChooser, UnreadError, name_of
from hgviz.gui.studyruns import FolderWatcher
from hgviz.gui.theme import wants_dark
from hgviz.gui.view import LOOKS, View
from hgviz.maskfile import write_mask
from hgviz.session import Session, SideB, add_recent
from hgviz.session.document import SUFFIX
from hgviz.session.navigation import step_head, step_item, step_layer, step_level, step_token

if TYPE_CHECKING:
    from hgviz.analysis.roles import HeadExample
    from hgviz.gui.palette import Entry
    from hgviz.gui.sides import Sides
    from hgviz.gui.window import Window
    from hgviz.study import Standing, Study, Sweep

SOFTMAX, YMISH, REVIEWS = "sample/softmax", "sample/ymish", "sample/reviews.tsv"
EXCERPT = 200  # characters of a text that is about to be run
STUDY_FILES = "Study files (*.toml);;All files (*)"
SHOW_A_CAPTURE = ("inspect", "follow", "compare")  # pages

PAGES = ("inspect", "follow", "prune", "compare", "sweep")
# by action: the fields of the session that say what is on screen, and the selection to move to
SHOWN: dict[str, dict[str, Any]] = {
    **{page: {"mode": page} for page in PAGES},
    **{f"look_{look}": {"mode": "inspect", "look": look} for look in LOOKS},
    "table": {"mode": "inspect", "look": "heads"},
}
STEPS = {
    "next_head": partial(step_head, by=1),
    "last_head": partial(step_head, by=-1),
    "next_layer": partial(step_layer, by=1),
    "last_layer": partial(step_layer, by=-1),
    "level_in": partial(step_level, by=1),
    "level_out": partial(step_level, by=-1),
    "next_query": partial(step_token, by=1, field="query"),
    "last_query": partial(step_token, by=-1, field="query"),
    "next_key": partial(step_token, by=1, field="key"),
    "last_key": partial(step_token, by=-1, field="key"),
}


class Commands:
    """Acts on the session for a window: opens, captures, saves, exports, steps."""

    def __init__(self, window: Window, session: Session, lanes: Lanes) -> None:
        self.window, self.session, self.lanes = window, session, lanes
        self.views: tuple[View, ...] = ()
        self.at_hand: View | None = None
        self.sample = str(resource(SAMPLE))
        self.recent = Recent(session, self.keep)
        self.opened_before = RecentNames(self.recent.add)
        self.working = Jobs(session, lanes, self.show_error)
        self.capturing = CaptureRunner(self)
        self.explaining = AttributionRunner(session, lanes, self.working)
        self.pruning = trials.TrialRunner(self)
        self.removing, self.sessions = RemovalRunner(self), Sessions(self)
        self.exporting, self.reaching = Exporter(self), ReachRunner(self)
        self.watching = FolderWatcher(session, lanes, self.sees_sweep)
        self.prompting = PromptChooser(self)
        file, folder = QFileDialog.FileMode.ExistingFile, QFileDialog.FileMode.Directory
        self._parts: dict[str, Callable[[], object]] = {  # by action
            "open": partial(self._ask, "Open a checkpoint, capture, study or session", file),
            "open_folder": partial(self._ask, "Open a checkpoint folder", folder),
            "open_sweep_file": partial(self._ask, "Open a study file", file, STUDY_FILES),
            "open_sample": partial(self.open_path, self.sample),
            "export": self.exporting.export,
            "copy": self.exporting.copy,
            "copy_table": self.exporting.copy_table,
            "copy_command": self.exporting.copy_command,
            "clear_recent": self.recent.clear,
            "close_window": window.close,
            "quit": window.close,
            "edit_text": self.prompting.edit,
            "ids": self.prompting.ids,
            "corpus": self.prompting.corpus,
            "write": self.prompting.write,
            "stop": self.capturing.stop,
            "stop_attributing": self.explaining.stop,
            "all_on": partial(self.pruning.switch, frozenset()),
            "keep_mask": self.pruning.keep,
            "resume_score": self.pruning.resume,
            "trace_curve": self.pruning.trace,
            "remove_heads": self.removing.ask,
            "measure_reach": self.reaching.ask,
            "compare_nothing": lambda: self.comparing.forget(),
            "about": lambda: dialogs.About(window).open(),
            "bundled_pair": partial(self.open_example, "compare"),
            "bundled_data": partial(self._evaluate, str(resource(REVIEWS))),
            "capture": lambda: self.capturing.start(session.checkpoint),
            "compare_with": partial(self.ask_side, ""),
            "guide": partial(self._show_help, GUIDE),
            "pages": partial(self._show_help, ""),
            "report_sides": lambda: self.copy_words(report_command(session)),
            "switch_head": lambda: self.pruning.switch(session.off ^ {session.selection.head_id}),
            "larger": partial(self._scale, 1),
            "smaller": partial(self._scale, -1),
            "next_pane": partial(self._walk, 1),
            "last_pane": partial(self._walk, -1),
            "next_text": partial(self._step_text, 1),
            "last_text": partial(self._step_text, -1),
        }
        self._recaptured: tuple[object, object] = (None, None)
        self._scored: tuple[object, ...] = ()  # what B is evaluated for
        session.changed.connect(self._heard)

    @cached_property
    def comparing(self) -> Sides:
        """What brings B; made when somebody first compares."""
        from hgviz.gui.sides import Sides

        return Sides(self.session, self.lanes, self.working, self.show_error)

    def method(self, name: str) -> Callable[[], object]:
        """Return what does an action: a row of a table, or the method of its name."""
        if name in SHOWN:
            return partial(self.session.put, **SHOWN[name])
        if name in STEPS:
            return lambda: self.session.put(selection=STEPS[name](self.session))
        return self._parts.get(name) or getattr(self, name)

    def run(self, name: str) -> None:
        """Do an action by its name; where it cannot be done, say why."""
        self.answer(name, self.method(name))

    def answer(self, name: str, act: Callable[..., object], *answers: Any) -> None:
        """Do what an action asked for answers to, unless it cannot be done any more; say why."""
        reason = BY_NAME[name].why_off(self.session)
        if reason:
            self.say(tr(reason))
        else:
            act(*answers)

    def answered(
        self, name: str, act: Callable[..., object], about: Callable[[], object] | None = None
    ) -> Callable[..., None]:
        """What takes the answers to what an action asked for: it does it, unless it cannot be done
        any more, or about, the checkpoint at hand where none is given, is no longer what it was
        when it was asked; then it says so.
        """
        about = about or (lambda: self.session.checkpoint)
        before = about()

        def take(*answers: Any) -> None:
            if about() == before:
                self.answer(name, act, *answers)
            else:
                self.say(tr("Cancelled: another model was opened in the meantime"))

        return take

    def run_for(self, view: View, name: str) -> None:
        """Do what a pane asks for: the pane is at hand meanwhile."""
        self.at_hand = view
        self.run(name)
        self.at_hand = None

    def _heard(self, name: str) -> None:
        """Heads that were switched off are off in what is looked at next: a text that is captured
        in a moment is captured again, once."""
        session = self.session
        if name == "comparison":
            _ = self.comparing  # it follows A from now on
        if name in ("capture_b", "mode", "trial") and session.capture_b is not None:
            self._score_b()
        if name not in ("mode", "off", "work") or not session.outdated:
            return
        a, before, off = session.capture, self._recaptured, session.off
        busy = any(one.state in GOING for one in session.work)
        b_is_off = session.comparison is not None and session.comparison.kind == "off"
        in_file = a.path and a.path != str(resource(FIRST))
        chosen = in_file or b_is_off or any(a is one for one in self.pruning.pair or ())
        again = before[0] is a.maps and before[1] == off
        if session.mode in SHOW_A_CAPTURE and not (busy or chosen or again) and sources.is_quick(a):
            self._recaptured = a.maps, off
            self.capturing.start(session.checkpoint)

    def _score_b(self) -> None:
        """While A and B are compared, evaluate B on the data that A was evaluated on."""
        session, trial, model = self.session, self.session.trial, self.comparing.model
        off, data = session.capture_b.off, session.data
        asked = (model, off, data, trial.examples.digest) if model and trial is not None else ()
        if asked == self._scored:
            return
        self.working.stop("score-b")
        session.put(trial_b=None)
        is_due = session.mode == "compare" and trial is not None and trial.done
        self._scored = asked if is_due else ()
        if self._scored:
            labels = self.pruning.labels.get((session.comparison.path or session.checkpoint, data))
            work = partial(trials.evaluate_model, model, data, labels, off)
            self.working.start(
                self.lanes.engine, "score-b", "Evaluating B", work,
                lambda found: session.put(trial_b=found), self._not_scored, bound=True,
            )  # fmt: skip

    def _not_scored(self, error: BaseException) -> None:
        why = sources.shown_error(error).what
        self.say(tr("B was not evaluated: {why}", why=why))

    def say(self, words: str) -> None:
        """Say something in the status bar."""
        self.window.chosen_words.tell(words)

    def copy_words(self, words: str, said: str = "") -> None:
        """Copy a command to the clipboard and say so."""
        QGuiApplication.clipboard().setText(words)
        self.say(said or tr("Copied: {command}", command=words))

    def visible_panes(self) -> list[View]:
        """The panes on screen; the picture in the middle of a page comes first."""
        return sorted(filter(View.isVisible, self.views), key=lambda view: not view.name)

    def pane(self) -> View | None:
        """The current pane: the one that asks, or has the keyboard, or stands in the middle."""
        if self.at_hand is not None:
            return self.at_hand
        visible, here = self.visible_panes(), QApplication.focusWidget()
        inside = (view for view in visible if here and (view is here or view.isAncestorOf(here)))
        return next(inside, visible[0] if visible else None)

    # --- files ------------------------------------------------------------------------------------

    def _ask(self, title: str, mode: QFileDialog.FileMode, kinds: str = "") -> None:
        ask_for(self.window, tr(title), mode, self._path_chosen, tr(kinds))

    def _path_chosen(self, path: str) -> None:
        self.remember(path)
        self.open_path(path)

    def open_path(self, path: str) -> None:
        """Open a checkpoint, a capture, a study or a session, whichever it is; or have the model at
        hand read an image or a sound, where it reads these."""
        spec = self.session.model.spec if self.session.model else self.session.spec
        model, ending = self.session.model, Path(path).suffix.lower()
        tower = model is not None and model.is_tower and ending in chain(*READABLE.values())
        if tower or (spec is not None and ending in READABLE.get(spec.modality, ())):
            self.prompting.capture_ids(path)
            return
        title = f"Opening {name_of(path)}"
        work = partial(sources.look, path)
        self.working.start(self.lanes.files, "open", title, work, self._looked, self._not_opened)

    def _looked(self, found: sources.OpenedFile) -> None:
        if found.document is not None:
            self.sessions.show(found.document, found.path)
        elif found.sweep is not None:
            self.show_sweep(found.sweep, found.path)
        elif found.study is not None:
            self.show_study(found.study)
        elif found.text is not None:
            self._show_text(found.path, found.text)
        elif found.capture is None:
            text = sources.text_for(found.path, self.session.text)
            if text != self.session.text:
                self.session.put(text=text, second="")
            self.capturing.start_fresh(found.path, self._not_opened)
        else:
            self.show_found(found)

    def _show_text(self, path: str, text: str) -> None:
        """Use a table of labelled texts ("") as data; offer to run the model on any other text."""
        session, file = self.session, name_of(path)
        if not session.checkpoint:
            words = tr("Open the model for {file} first, then open {file} again.", file=file)
            answers: dict[str, Callable[[], object] | None] = {
                tr("Cancel"): None,
                tr("Open a checkpoint folder…"): partial(self.run, "open_folder"),
            }  # fmt: skip
            dialogs.Question(self.window, tr("No model is open"), [words], answers).open()
        elif not text:
            self.answer("choose_data", self.use_data, path)
        else:
            run = self.answered("capture", partial(self.prompting.capture_text, text))
            model = name_of(session.checkpoint)
            answers = {
                tr("Run on each line as a text…"): partial(self.prompting.keep_corpus, path),
                tr("Cancel"): None, tr("Run {model} on this text", model=model): run,
            }  # fmt: skip
            lines = [sentences.shown(text, EXCERPT)]
            dialogs.Question(self.window, file, lines, answers).open()

    def _not_opened(self, error: BaseException) -> None:
        if isinstance(error, UnreadError):
            self.show_error(error)
        else:
            self._show_error(error, ("open", tr("Choose another file…")))

    def show_found(self, found: sources.OpenedFile) -> None:
        """Show a capture that was opened; the model that is open stays if it made it."""
        capture = found.capture
        fields: dict[str, Any] = {"capture": capture, "facts": found.facts}
        if self.session.model is None:
            fields |= {"checkpoint": "", "activation": ""}
        if found.selection is not None:
            fields |= {"selection": found.selection, "opened": found.opened}
        if found.path != str(resource(FIRST)):
            self.opened_before[found.path] = name_of(found.path)
        else:
            fields["checkpoint"] = self.sample
        self.session.put(chosen=False, **fields)
        if not found.facts and capture.complete:
            self.capturing.measure()

    def show_example(self, head: HeadId, example: HeadExample) -> None:
        """Open the text of an example, with its query and key chosen in a head."""
        capture = self.session.capture
        if capture is None:
            return  # it went while the example was still on screen

        def show(found: sources.OpenedFile | None = None) -> None:
            if found is not None:
                self._show_item(found)
            self.session.select(
                layer=head.layer, head=head.head, query=example.query, key=example.key
            )

        if example.text == capture.item:
            show()
        else:
            work = partial(sources.look, capture.path, example.text)
            self.working.start(self.lanes.files, "open", "Opening a text", work, show, bound=True)

    def open_item(self, number: int) -> None:
        """Open another text of the corpus on screen; the newest asked for wins."""
        if self.session.capture is None:
            return
        work = partial(sources.look, self.session.capture.path, number)
        self.working.start(
            self.lanes.files, "open", "Opening a text", work, self._show_item, bound=True
        )

    def _show_item(self, found: sources.OpenedFile) -> None:
        """The head at hand stays; so does everything that the text does not change."""
        self.session.put(capture=found.capture, facts=found.facts)
        if not found.facts and found.capture.complete:
            self.capturing.measure()

    def exchange(self) -> None:
        """Open the checkpoint at hand with another activation in its attention."""
        name = name_of(self.session.checkpoint)
        chosen, session = self.answered("exchange", self.choose_a), self.session
        dialogs.ExchangeDialog(self.window, name, session.activation, session.spec).ask(chosen)

    def choose_a(self, activation: str) -> None:
        """Open the checkpoint of A with another activation."""
        self.capturing.start_fresh(self.session.checkpoint, self.show_error, activation)

    # --- files that were opened last, or are dropped ----------------------------------------------

    def find(self) -> None:
        """The command palette."""
        from hgviz.gui.palette import CommandPalette

        palette = CommandPalette(self.window, self.session, settings.load().used)
        palette.chosen.connect(self._take_entry)
        palette.open()

    def _take_entry(self, entry: Entry) -> None:
        """Do what an entry of the palette leads to."""
        leads: dict[str, Callable[[Any], object]] = {
            "action": self._run_found, "file": self.open_path, "head": self._go_to,
            "metric": self._colour_heads, "setting": self.preferences,
        }  # fmt: skip
        leads[entry.kind](entry.value)

    def _run_found(self, name: str) -> None:
        self.keep(used=add_recent(settings.load().used, name))
        self.run(name)

    def _go_to(self, head: HeadId) -> None:
        self.session.put(mode="inspect")
        self.session.select(layer=head.layer, head=head.head)

    def _colour_heads(self, metric: str) -> None:
        self.session.put(mode="inspect", shade=metric)

    def take(self, paths: list[str]) -> None:
        """Open what was dropped: one file, or several that belong together."""
        if len(paths) == 1 and not paths[0].lower().endswith((*TEXT_SUFFIXES, IDS)):
            self.open_path(paths[0])
            return
        work, done = partial(sorted_out, paths), partial(self._take_sorted, paths)
        title = f"Opening {name_of(paths[0])}"
        self.working.start(self.lanes.files, "open", title, work, done)

    def _take_sorted(self, paths: list[str], parts: dict[str, str]) -> None:
        """parts: those of the paths that are opened, by the field of a session they are for."""
        files = ", ".join(name_of(one) for one in paths if one not in parts.values())
        said = tr("Not opened: {files}", files=files) if files else ""
        if parts.keys() & {"model", "capture"} and len(parts) > 1:
            self.sessions.open_together(parts)
        elif "ids" in parts and not self.session.checkpoint:
            words = "{file} contains token IDs: open their model first"
            said = tr(words, file=name_of(parts["ids"]))
        elif "ids" in parts:
            self.prompting.capture_ids(parts["ids"])
        elif "data" in parts and self.session.mode == "prune" and self.session.checkpoint:
            self.use_data(parts["data"])
        elif parts:
            self.open_path(next(iter(parts.values())))
        else:
            words = "{files}: unsupported file type (supported: {kinds})"
            kinds = tr("models, captures, studies, sessions, texts")
            said = tr(words, files=files, kinds=kinds)
        if said:
            self.say(said)

    # --- saving -----------------------------------------------------------------------------------

    def save(self) -> None:
        """Ask where, and write the capture."""
        name = f"{self.session.capture.spec.name or 'capture'}.h5"
        ask_where(self.window, tr("Save capture"), tr(CAPTURES), name,
                  partial(self._save, self.session.capture))  # fmt: skip

    def save_beside(self) -> None:
        """Ask where, and write B."""
        name = f"{self.session.capture_b.spec.name or 'capture'}-B.h5"
        where = partial(self._save, self.session.capture_b)  # it may go meanwhile
        ask_where(self.window, tr("Save comparison capture"), tr(CAPTURES), name, where)

    def _save(self, capture: Capture, path: str) -> None:
        self.remember(path)
        work = partial(tasks.save, capture, path, force=True)
        title = f"Saving {Path(path).name}"
        self.working.start(
            self.lanes.files, f"save {path}", title, work, partial(self._saved, capture),
            lasting=True,
        )  # fmt: skip

    def _saved(self, capture: Capture, path: str) -> None:
        if not capture.items:  # of many texts one was written: the others stay where they are
            self.session.lies_at(capture, path)
        self.opened_before[path] = name_of(path)
        self.say(tr("Saved {path}", path=path))

    def save_session(self) -> None:
        """Write what is open to the file of the session at hand; ask where there is none."""
        if self.sessions.file:
            self.sessions.save(self.sessions.file)
        else:
            self.save_session_as()

    def save_session_as(self) -> None:
        """Ask where, and write what is open as a session."""
        name = Path(self.sessions.file).name
        spec = self.session.spec
        name = name or f"{(spec.name if spec else '') or 'session'}{SUFFIX}"
        kinds = tr("Sessions (*{ending})", ending=SUFFIX)
        ask_where(self.window, tr("Save session"), kinds, name, self._save_session)

    def _save_session(self, path: str) -> None:
        self.remember(path)
        self.sessions.save(path)

    def remember(self, path: str) -> None:
        self.keep(folder=str(Path(path).parent))

    def keep(self, **fields: Any) -> None:
        """Keep settings; a disk that refuses them is no reason to stop anybody."""
        try:
            settings.save(structs.replace(settings.load(), **fields))
        except OSError as error:
            self.say(tr("Settings could not be saved: {why}", why=error.strerror))

    # --- the window -------------------------------------------------------------------------------

    def preferences(self, setting: str = "") -> None:
        """Show the settings, one of them with the keyboard; a change acts at once."""
        dialog = dialogs.Preferences(self.window, self._prefer)
        dialog.first = dialog.controls.get(setting, dialog.first)
        dialog.open()

    def _prefer(self, name: str, value: Any) -> None:
        self.keep(**{name: value})
        if name == "theme":
            self.session.put(dark=wants_dark(value))
        elif name in ("interface_scale", "language"):
            self._offer_restart(name)
        elif name in ("palette", "scale"):
            self.session.put(display=replace(self.session.display, **{name: value}))

    def _scale(self, by: int) -> None:
        """Choose the next larger interface scale, or the next smaller one."""
        scales = settings.INTERFACE_SCALES
        at = scales.index(settings.load().interface_scale) + by
        if 0 <= at < len(scales):
            self.keep(interface_scale=scales[at])
            self._offer_restart("interface_scale")
        else:
            self.say(tr("The interface scale is already {scale}", scale=scales[at - by]))

    def _offer_restart(self, setting: str) -> None:
        """Offer to start again, which is when these settings are read."""
        value = getattr(settings.load(), setting)
        if setting == "language":
            title = tr("Language: {language}", language=tr(dialogs.WORDS[value]))
        else:
            title = tr("Interface scale {scale}", scale=value)
        words = tr("hgviz restarts to apply it and reopens what is open.")
        answers = {tr("Later"): None, tr("Restart now"): self._restart}
        dialogs.Question(self.window, title, [words], answers).open()

    def _restart(self) -> None:
        self.window.restarts = True
        self.window.restarts = self.window.close()

    def jobs(self) -> None:
        """List all jobs over the status bar."""
        from hgviz.gui.jobs import JobsPopup

        popup = JobsPopup(self.window)
        popup.dropped.connect(self.drop)

        def show(name: str) -> None:
            if name == "work":
                popup.show_work(self.session.work)

        self.session.changed.connect(show)
        popup.finished.connect(lambda: self.session.changed.disconnect(show))
        show("work")
        popup.show()

    def may_close(self, closing: Callable[[], None]) -> bool:
        """Whether the window may close at once; else somebody is asked, and closing does it."""
        session = self.session
        lost = losses(session, self.working, settings.load().restore)
        if lost:
            answers: dict[str, Callable[[], object] | None] = {tr("Quit without saving"): closing}
            if session.study is not None and session.unsaved and session.score:
                answers[tr("Save scores…")] = partial(self.run, "save_study")
            answers[tr("Cancel")] = None
            dialogs.Question(self.window, tr("Unsaved work"), lost, answers).open()
        return not lost

    def lay(self, laying: Any) -> None:
        """From now on, lay out through this."""
        self.laying = laying
        self.sessions.layout, self.sessions.lay_out = laying.layout, laying.lay_out

    def docks(self) -> None:
        """Hide the docks, or show them again."""
        self.laying.page.turn_docks()

    def reset_layout(self) -> None:
        """All panes and docks where they were at first."""
        self.laying.page.arrange()

    def find_text(self) -> None:
        """Search the texts of the corpus."""
        self.session.put(mode="inspect")
        next(one for one in self.views if isinstance(one, TextsPanel)).search()

    def fit(self) -> None:
        """Show everything in every pane again."""
        for view in filter(View.isVisible, self.views):
            view.fit()

    def _walk(self, by: int) -> None:
        panes = [one for one in self.views if one.isVisible()]
        here = QApplication.focusWidget()
        at = next(
            (n for n, one in enumerate(panes) if here and (one is here or one.isAncestorOf(here))),
            -1 if by > 0 else 0,
        )
        order = [panes[(at + by * step) % len(panes)] for step in range(1, len(panes) + 1)]
        next((one for one in order if one.take_focus()), None)

    def theme(self) -> None:
        """Light to dark or back, kept for the next start."""
        self.session.put(dark=not self.session.dark)
        self.keep(theme="dark" if self.session.dark else "light")

    def full_screen(self) -> None:
        """The whole screen, or back."""
        window = self.window
        window.setWindowState(window.windowState() ^ Qt.WindowState.WindowFullScreen)

    # --- the capture ------------------------------------------------------------------------------

    def drop(self, key: str) -> None:
        """Stop a job by its key."""
        stops = dict.fromkeys((trials.MEASURE, trials.CURVE), self.pruning.stop_measuring) | {
            "capture": self.capturing.stop, "beside": lambda: self.comparing.stop(),
            REMOVE: self.removing.stop,
        }  # fmt: skip
        stops.get(key, partial(self.working.stop, key))()

    def attribute(self) -> None:
        """Ask where the answer comes from, and show it."""
        self.session.put(mode="inspect", look="attribution")
        self.explaining.start()

    def tokens(self) -> None:
        """The tokens that slots are mixed of in place of these, or the slots again."""
        session, chosen = self.session, replace(self.session.selection, key=None)
        try:
            capture = tasks.tokens_or_slots(session.capture)
        except HgvizError as error:
            return self.show_error(error)
        session.put(chosen=False, capture=capture, selection=chosen)
        if capture.complete:
            self.capturing.measure()

    def _step_text(self, by: int) -> None:
        number = step_item(self.session, by)
        if number is not None:
            self.open_item(number)

    def strongest(self) -> None:
        """The key this query looks at most."""
        work = partial(sources.strongest, self.session.capture, self.session.selection)
        self.lanes.files.submit(
            "strongest", "Finding the strongest key", work, on_error=self.show_error,
            on_done=lambda key: self.session.select(key=key), post=self.lanes.bridge.post,
        )  # fmt: skip

    def ask_for_time(
        self, estimate: tasks.Estimate, go_on: Callable[[], None], refused: Callable[[], None]
    ) -> None:
        """Ask whether a capture that takes long is to begin."""
        words = tr(
            "Running the model on {tokens:,} tokens takes about {time} and {size} of memory. "
            "Finished layers are kept if you stop.",
            tokens=estimate.tokens, time=estimate.time, size=estimate.size,
        )  # fmt: skip
        answers = {tr("Run anyway"): go_on, tr("Cancel"): None}
        dialogs.Question(self.window, tr("Long text"), [words], answers, refused).open()

    # --- heads that are off -----------------------------------------------------------------------

    def undo(self) -> None:
        """Take back what was done last to heads or masks."""
        if words := self.session.undo:
            self.pruning.undo.undo()
            self.say(tr("Undone: {step}", step=words))

    def redo(self) -> None:
        """Do again what was taken back."""
        if words := self.session.redo:
            self.pruning.undo.redo()
            self.say(tr("Redone: {step}", step=words))

    def choose_data(self) -> None:
        """Ask for a file to score the model on."""
        file = QFileDialog.FileMode.ExistingFile
        spec = self.session.spec
        reads = {"image": "images", "audio": "sounds"}.get(spec.modality if spec else "", "texts")
        is_labelled = reads != "texts" or (spec is not None and spec.goal == "classes")
        title = tr(f"Choose a labelled table of {reads}" if is_labelled else "Choose a text file")
        chosen = self.answered("choose_data", self.use_data)
        ask_for(self.window, title, file, chosen, tr(TEXT_FILES))

    def use_data(self, path: str) -> None:
        """Score the model on a file."""
        self.remember(path)
        self._evaluate(path)

    def _evaluate(self, path: str) -> None:
        self.pruning.use(path)
        self.session.put(mode="prune")

    def assign_labels(self, data: str, error: LabelError) -> None:
        """Ask which class each label of a file is, and score the model on it."""

        def use(labels: dict[str, str]) -> None:
            self.pruning.labels[self.session.checkpoint, data] = labels
            self.use_data(data)

        chosen = self.answered("choose_data", use)
        dialogs.LabelsDialog(self.window, name_of(data), error).ask(chosen)

    def measure_heads(self) -> None:
        """Ask by which scores, and measure them."""
        study = self.pruning.known
        there = frozenset(study.arrays) if study is not None else frozenset()
        session, chosen = self.session, self.answered("measure_heads", self.pruning.measure)
        heads = len(session.spec.heads)
        dialogs.MeasureDialog(self.window, there, heads, session.trial).ask(chosen)

    def patch_heads(self) -> None:
        """Ask for two texts and two answers, and patch every head between them."""
        before = self.pruning.patched_texts
        before = before if before.clean else replace(before, clean=self.session.text)
        chosen = self.answered("patch_heads", self.pruning.patch)
        dialogs.PatchDialog(self.window, before).ask(chosen)

    def save_study(self) -> None:
        """Ask where, and write what was measured."""
        name = f"{self.session.study.spec.name or 'model'}-heads.h5"
        title, kinds = tr("Save importance scores"), tr("Studies (*.h5)")
        chosen = self.answered("save_study", self._save_study, self._studied)
        ask_where(self.window, title, kinds, name, chosen)

    def _studied(self) -> object:
        """Which model was measured on which data."""
        study = self.session.study
        return study and (study.spec.digest, study.data_digest)

    def _save_study(self, path: str) -> None:
        self.remember(path)
        self.pruning.save(path, lambda written: self.say(tr("Saved {path}", path=written)))

    def save_mask(self) -> None:
        """Ask where, and write which heads are off as a mask file."""
        spec, off = self.session.spec, self.session.off
        chosen = partial(self._save_mask, spec, off)
        ask_where(self.window, tr("Save mask file"), tr("Mask files (*.json)"),
                  f"{spec.name or 'model'}-mask.json", chosen)  # fmt: skip

    def _save_mask(self, spec: ModelSpec, off: HeadSet, path: str) -> None:
        try:
            written = write_mask(path, spec, off)
        except HgvizError as error:
            self.show_error(error)
        else:
            self.say(tr("Saved {path}", path=written))

    def open_changed(self, text: str) -> None:
        """Capture a text with and without the heads that are off, and look at it."""
        self.session.put(mode="inspect")
        self.pruning.open_text(text, self.capturing.measure)

    def before_after(self) -> None:
        """The other capture of the text that was opened: all heads on, or some off."""
        said = self.pruning.turn()
        if said:
            self.capturing.measure()
        self.say(said or tr("Open a changed prediction on the Prune page first"))

    # --- a study of one model ---------------------------------------------------------------------

    def show_study(self, study: Study) -> None:
        """Show a study that was opened; where another model is open, ask first."""
        session = self.session
        self.opened_before[study.path] = name_of(study.path)
        nothing = session.model is None and session.capture is None and not session.checkpoint
        if nothing:
            self._show_alone(study)
        elif session.spec is None or session.spec.digest == study.spec.digest:
            self.pruning.open_study(study)
            self.say(trials.about(study))
        else:
            error = trials.another_model(study, session.spec)
            show = partial(self._show_alone, study)
            ErrorDialog(self.window, error, (tr("Show study"), show)).open()

    def _show_alone(self, study: Study) -> None:
        self.pruning.open_study(study, alone=True)
        self.say(trials.about(study))

    # --- a study of many runs ---------------------------------------------------------------------

    def show_sweep(self, found: Sweep, path: str) -> None:
        """Show a study that was opened, by its file or its folder."""
        self.opened_before[path] = found.title or name_of(path)
        at = Path(path).resolve()
        file = str(at if at.is_file() else at / "study.toml")
        found = replace_dataclass(found, path=str(Path(found.path).resolve()))
        same = self.session.sweep is not None and self.session.sweep.path == found.path
        self.session.put(
            sweep=found, sweep_file=file, sweep_trouble="", mode="sweep",
            cell=self.session.cell if same else "",
        )  # fmt: skip
        self.watching.begin()

    def close_sweep(self) -> None:
        """Let go of the study; what runs of it goes on."""
        mode = "inspect" if self.session.mode == "sweep" else self.session.mode
        self.session.put(sweep=None, sweep_file="", sweep_trouble="", cell="", mode=mode)

    def sees_sweep(self) -> bool:
        """Whether the page of the study is on screen."""
        return self.session.mode == "sweep" and self.window.isVisible()

    def run_sweep(self) -> None:
        """Copy the command that computes what is missing of the study."""
        session = self.session
        assert session.sweep is not None
        words = ["hgviz", "study", "run", session.sweep_file, "-o", session.sweep.path]
        words += ["--again"] if session.sweep.counts["failed"] else []
        self.copy_words(shlex.join(words))

    def choose_cell(self, key: str) -> None:
        """Look at one cell, "" for none."""
        self.session.put(cell=key)

    def open_cell(self) -> None:
        """Open what the chosen run left: its model, both of a comparison, or what it measured."""
        sweep, run = self.session.sweep, chosen(self.session)
        if sweep is None or run is None:
            return
        if run.cell.work in ("measure", "curve"):
            self.open_path(studyruns.scores_at(sweep, run.cell))
            return
        a, *others = studyruns.models_of(sweep, run.cell)
        for model in (a, *others):
            self.opened_before[model.path] = model.name  # its folder is named by a key
        if others:
            b = SideB("model", path=others[0].path, activation=others[0].activation)
            self.session.put(mode="compare", comparison=b)
        else:
            self.session.put(mode="inspect")
        self.capturing.start_fresh(a.path, self.show_error, a.activation)

    # --- A and B ----------------------------------------------------------------------------------

    def choose_side(self, other: SideB, head: HeadId | None = None) -> None:
        """Have another B; what is asked for first, where the wish lacks it."""
        if other.kind == "model" and not other.path:
            self.ask_model(False)
        elif other.kind == "text" and not other.text:
            self.ask_side("text")
        else:
            self.comparing.choose(other, head)

    def pair_alike(self) -> None:
        """Put the head of B beside that of A whose map is most like it."""
        session = self.session
        a, b, head = session.capture, session.capture_b, session.selection.head_id

        def pair(found: tuple[HeadId, float] | None) -> None:
            if session.capture_b is not b or session.selection.head_id != head:
                return  # somebody went on
            if found is None:
                self.say(tr("No head of B can be compared with head {head}", head=head))
                return
            session.put(selection=replace(session.selection, beside=found[0]))
            words = "Head {other} of B is most similar to head {head} of A: distance {distance}"
            distance = sentences.weight(found[1])
            self.say(tr(words, other=found[0], head=head, distance=distance))

        work, title = partial(_most_alike, a, b, head), "Finding the most similar head"
        self.working.start(self.lanes.facts, "pair", title, work, pair, bound=True)

    def compare_pruned(self, path: str) -> None:
        """Compare the open model, all heads on, with what was pruned of it as B."""
        self.pruning.switch(frozenset())
        compare = partial(self.choose_side, SideB("model", path=path))
        if self.session.capture is None:
            self.capturing.start_again(self.session.checkpoint, compare, self.show_error)
        else:
            compare()

    def ask_model(self, folder: bool) -> None:
        """Ask for the checkpoint or the capture that B shall be."""
        mode = QFileDialog.FileMode.Directory if folder else QFileDialog.FileMode.ExistingFile
        one, other = "Compare with a checkpoint folder", "Compare with a checkpoint or capture"
        chosen = self.answered("compare_with", self._beside_chosen)
        ask_for(self.window, tr(one if folder else other), mode, chosen)

    def ask_side(self, kind: str) -> None:
        """Ask what B shall be, of one kind first."""
        from hgviz.gui.sides import CompareDialog

        then = self.answered("compare_with", self.choose_side)
        CompareDialog(self.window, self.session, self.opened_before, kind, self.ask_model).ask(then)

    def _beside_chosen(self, path: str) -> None:
        self.remember(path)
        place = Path(path)
        if place.name == "config.json":
            path = str(place.parent)
        self.opened_before[path] = name_of(path)
        self.comparing.choose(SideB("model", path=path))

    # --- help -------------------------------------------------------------------------------------

    def open_example(self, name: str) -> None:
        """Open one of the examples that come with hgviz: inspect, prune or compare."""
        if name == "inspect":
            first = resource(FIRST)
            self.session.put(mode="inspect")
            self.open_path(str(first if first.exists() else resource(SAMPLE)))
            return
        then = partial(self.run, "bundled_data") if name == "prune" else self._compare_classifiers
        path = str(resource(SOFTMAX))
        self.session.put(text=sources.text_for(path, self.session.text), second="")
        self.capturing.start_again(path, then, self.show_error)

    def _compare_classifiers(self) -> None:
        self.comparing.choose(SideB("model", path=str(resource(YMISH))))
        self.session.put(mode="compare")
        self.pruning.use(str(resource(REVIEWS)))

    def explain(self) -> None:
        """Explain what the current pane shows and how to read it."""
        view = self.pane()
        topic = view.topic if view is not None else "welcome"
        if help_pages.find(topic) is None:
            self._show_help("")
        else:
            Explanation(self.window, topic).open()

    def _show_help(self, topic: str) -> None:
        """Show a topic beside the list of all; the first where there is none of that name."""
        known = topic and help_pages.find(topic) is not None
        Explanation(self.window, topic if known else help_pages.topics()[0], listed=True).open()

    def log(self) -> None:
        """Show the folder of the log, or say where it is."""
        folder = logged.file().parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            shown = QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))
        except OSError:
            shown = False
        words = "The log is in {folder}" if shown else "The log folder is {folder}"
        self.say(tr(words, folder=folder))

    def show_error(self, error: BaseException) -> None:
        """Show an error in a dialog."""
        act = None if isinstance(error, HgvizError) else ("log", tr("Show log folder"))
        if isinstance(error, UnreadError):
            text = ModelInputs.of(error.model).text
            act = ("edit_text", tr("Edit text…")) if text else ("ids", tr("Choose a file…"))
        self._show_error(error, act)

    def _show_error(self, error: BaseException, act: tuple[str, str] | None) -> None:
        """act: the action that helps, and the words of its button."""
        button = (act[1], partial(self.run, act[0])) if act else None
        ErrorDialog(self.window, sources.shown_error(error), button).open()


def report_command(session: Session) -> str:
    """Return the `hgviz compare` command that writes a report on A and B of the session."""
    a, b, other = session.capture, session.capture_b, session.comparison
    path = other.path if other.kind == "model" else session.checkpoint
    words = ["hgviz", "compare", session.checkpoint, path, "--data", session.data]
    if other.activation:
        words += ["--activation", other.activation]
    if other.off:
        words += ["--off", ",".join(map(str, sorted(other.off)))]
    if a.main.signal is None and a.spec.goal != "ends":
        words += ["--text", a.main.text]
    names = (one.spec.name or "model" for one in (a, b))
    return shlex.join([*words, "-o", f"{'-'.join(names)}.html"])


def chosen(session: Session) -> Standing | None:
    """The chosen cell as it stands."""
    if session.sweep is None or not session.cell:
        return None
    return next((one for one in session.sweep.standings if one.cell.key == session.cell), None)


def _most_alike(a: Capture, b: Capture, head: HeadId) -> tuple[HeadId, float] | None:
    from hgviz.analysis.comparison import most_alike  # imports scipy

    return most_alike(a, b, head)
