"""The methods behind the actions."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import structs
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QFileDialog

from hgviz import settings, tasks
from hgviz.analysis.roles import HeadExample
from hgviz.core import Capture, HeadId, HgvizError
from hgviz.errors import LabelError
from hgviz.files import resource
from hgviz.gui import dialogs, sentences, sources, studyruns, trials
from hgviz.gui import help as help_pages
from hgviz.gui import log as logged
from hgviz.gui.across import ReachRunner
from hgviz.gui.actions import BY_NAME
from hgviz.gui.attribution import AttributionRunner
from hgviz.gui.dialogs import TEXTS as TEXT_FILES
from hgviz.gui.export import Exporter
from hgviz.gui.help import GUIDE, Explanation
from hgviz.gui.jobs import Jobs, JobsPopup, Lanes
from hgviz.gui.language import tr
from hgviz.gui.palette import CommandPalette, Entry
from hgviz.gui.panels import TextsPanel
from hgviz.gui.removal import REMOVE, RemovalRunner
from hgviz.gui.sessions import IDS, Recent, Sessions, losses, sorted_out
from hgviz.gui.sides import CompareDialog, Sides
from hgviz.gui.sources import FIRST, SAMPLE, CaptureRunner, PromptChooser, UnreadError, name_of
from hgviz.gui.studyruns import FolderWatcher
from hgviz.gui.theme import wants_dark
from hgviz.gui.view import LOOKS, View
from hgviz.gui.widgets import has_focus
from hgviz.gui.window import Window
from hgviz.maskfile import write_mask
from hgviz.session import Session, add_recent
from hgviz.session.document import SUFFIX, SideB
from hgviz.session.navigation import step_head, step_layer, step_level, step_token, strongest_key
from hgviz.study import Study, Sweep

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
    "next_head": partial(step_head, by=1), "last_head": partial(step_head, by=-1),
    "next_layer": partial(step_layer, by=1), "last_layer": partial(step_layer, by=-1),
    "level_in": partial(step_level, by=1), "level_out": partial(step_level, by=-1),
    "next_query": partial(step_token, by=1, field="query"),
    "last_query": partial(step_token, by=-1, field="query"),
    "next_key": partial(step_token, by=1, field="key"),
    "last_key": partial(step_token, by=-1, field="key"),
}  # fmt: skip


class Commands:
    """Acts on the session for a window: opens, captures, saves, exports, steps."""

    def __init__(self, window: Window, session: Session, lanes: Lanes) -> None:
        self.window, self.session, self.lanes = window, session, lanes
        self.views: tuple[View, ...] = ()
        self.at_hand: View | None = None
        self.laying: Any = None  # the WindowLayout, once there is one
        self.sample = str(resource(SAMPLE))
        self.recent = Recent(session, self.keep)
        self.working = Jobs(session, lanes, self.show_error)
        self.capturing = CaptureRunner(self)
        self.explaining = AttributionRunner(self)
        self.pruning = trials.TrialRunner(self)
        self.removing, self.sessions = RemovalRunner(self), Sessions(self)
        self.exporting, self.reaching = Exporter(self), ReachRunner(self)
        self.watching, self.prompting = FolderWatcher(self), PromptChooser(self)
        self._parts: dict[str, Callable[[], object]] = {  # by action
            "open": partial(self._ask, "Open a checkpoint, capture, study or session"),
            "open_folder": partial(self._ask, "Open a checkpoint folder", sources.FOLDER),
            "open_sweep_file": partial(self._ask, "Open a study file", kinds=STUDY_FILES),
            "open_sample": partial(self.open_path, self.sample),
            "export": self.exporting.export,
            "copy": self.exporting.copy,
            "copy_table": self.exporting.copy_table,
            "copy_command": self.exporting.copy_command,
            "save": lambda: self._ask_where_to_save("Save capture", session.capture),
            "save_beside": lambda: self._ask_where_to_save(
                "Save comparison capture", session.capture_b, "-B"
            ),
            "clear_recent": self.recent.clear,
            "close_window": window.close,
            "quit": window.close,
            "edit_text": self.prompting.edit,
            "ids": self.prompting.ids,
            "corpus": self.prompting.corpus,
            "write": self.prompting.write,
            "stop": self.capturing.stop,
            "stop_attributing": self.explaining.stop,
            "undo": partial(self._step_back, "undo", "Undone: {step}"),
            "redo": partial(self._step_back, "redo", "Redone: {step}"),
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
            "docks": lambda: self.laying.page.turn_docks(),
            "reset_layout": lambda: self.laying.page.arrange(),
        }
        self._recaptured: tuple[object, object] = (None, None)
        self._scored: tuple[object, ...] = ()  # what B is evaluated for
        session.changed.connect(self._heard)

    @cached_property
    def comparing(self) -> Sides:
        """What brings B; made when somebody first compares."""
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
        busy = session.job() is not None
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
        visible = self.visible_panes()
        return next(filter(has_focus, visible), visible[0] if visible else None)

    # --- files ------------------------------------------------------------------------------------

    def _ask(self, title: str, mode: QFileDialog.FileMode = sources.FILE, kinds: str = "") -> None:
        dialogs.ask_for(self.window, tr(title), mode, self._path_chosen, tr(kinds))

    def _path_chosen(self, path: str) -> None:
        self.remember(path)
        self.open_path(path)

    def open_path(self, path: str) -> None:
        """Open a checkpoint, a capture, a study or a session, whichever it is; or have the model at
        hand read an image or a sound, where it reads these."""
        spec = self.session.model_spec
        model, ending = self.session.model, Path(path).suffix.lower()
        tower = model is not None and model.is_tower and ending in chain(*dialogs.READABLE.values())
        if tower or (spec is not None and ending in dialogs.READABLE.get(spec.modality, ())):
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
        self.show_error(error, ("open", tr("Choose another file…")))

    def show_found(self, found: sources.OpenedFile) -> None:
        """Show a capture that was opened; the model that is open stays if it made it."""
        capture = found.capture
        fields: dict[str, Any] = {"capture": capture, "facts": found.facts}
        if self.session.model is None:
            fields |= {"checkpoint": "", "activation": ""}
        if found.selection is not None:
            fields |= {"selection": found.selection, "opened": found.opened}
        if found.path != str(resource(FIRST)):
            self.recent.open(found.path)
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
            self.open_item(example.text, show)

    def open_item(
        self, number: int, show: Callable[[sources.OpenedFile], None] | None = None
    ) -> None:
        """Open another text of the corpus on screen; the newest asked for wins. show: what is done
        with it in place of showing it."""
        if self.session.capture is not None:
            work, lane = partial(sources.look, self.session.capture.path, number), self.lanes.files
            show = show or self._show_item
            self.working.start(lane, "open", "Opening a text", work, show, bound=True)

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
        self.capturing.start_fresh(self.session.checkpoint, self.show_error, activation)

    # --- files that were opened last, or are dropped ----------------------------------------------

    def find(self) -> None:
        palette = CommandPalette(self.window, self.session, settings.load().used)
        palette.chosen.connect(self._take_entry)
        palette.open()

    def _take_entry(self, entry: Entry) -> None:
        put, at = partial(self.session.put, mode="inspect"), self.session.at
        leads: dict[str, Callable[[Any], object]] = {
            "action": self._run_found,
            "file": self.open_path,
            "head": lambda head: put(selection=at(head)),
            "metric": lambda metric: put(shade=metric),
            "setting": self.preferences,
        }
        leads[entry.kind](entry.value)

    def _run_found(self, name: str) -> None:
        self.keep(used=add_recent(settings.load().used, name))
        self.run(name)

    def take(self, paths: list[str]) -> None:
        """Open what was dropped: one file, or several that belong together."""
        if len(paths) == 1 and not paths[0].lower().endswith((*dialogs.TEXT_SUFFIXES, IDS)):
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

    def _ask_where_to_save(self, title: str, capture: Capture, side: str = "") -> None:
        """Ask where, and write a capture, which may be replaced by another meanwhile."""
        name = f"{capture.spec.name or 'capture'}{side}.h5"
        save = partial(self._save, capture)
        dialogs.ask_where(self.window, tr(title), tr(dialogs.CAPTURES), name, save)

    def _save(self, capture: Capture, path: str) -> None:
        self.remember(path)
        work = partial(tasks.save, capture, path, force=True)
        self.working.write(path, work, partial(self._saved, capture))

    def _saved(self, capture: Capture, path: str) -> None:
        if not capture.items:  # of many texts one was written: the others stay where they are
            self.session.lies_at(capture, path)
        self.recent.open(path)
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
        dialogs.ask_where(self.window, tr("Save session"), kinds, name, self._save_session)

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
            self._offer_restart(name, value)
        elif name in ("palette", "scale"):
            self.session.put(display=replace(self.session.display, **{name: value}))

    def _scale(self, by: int) -> None:
        """Choose the next larger interface scale, or the next smaller one."""
        scales = settings.INTERFACE_SCALES
        at = scales.index(settings.load().interface_scale) + by
        if 0 <= at < len(scales):
            self._prefer("interface_scale", scales[at])
        else:
            self.say(tr("The interface scale is already {scale}", scale=scales[at - by]))

    def _offer_restart(self, setting: str, value: str) -> None:
        """Offer to start again, which is when these settings are read."""
        title = tr("Interface scale {scale}", scale=value)
        if setting == "language":
            title = tr("Language: {language}", language=tr(dialogs.WORDS[value]))
        words = tr("hgviz restarts to apply it and reopens what is open.")
        answers = {tr("Later"): None, tr("Restart now"): self._restart}
        dialogs.Question(self.window, title, [words], answers).open()

    def _restart(self) -> None:
        self.window.restarts = True
        self.window.restarts = self.window.close()

    def jobs(self) -> None:
        """List all jobs over the status bar."""
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

    def find_text(self) -> None:
        self.session.put(mode="inspect")
        next(one for one in self.views if isinstance(one, TextsPanel)).search()

    def fit(self) -> None:
        for view in filter(View.isVisible, self.views):
            view.fit()

    def _walk(self, by: int) -> None:
        panes = [one for one in self.views if one.isVisible()]
        at = next((n for n, one in enumerate(panes) if has_focus(one)), -1 if by > 0 else 0)
        order = [panes[(at + by * step) % len(panes)] for step in range(1, len(panes) + 1)]
        next((one for one in order if one.take_focus()), None)

    def theme(self) -> None:
        self._prefer("theme", "light" if self.session.dark else "dark")

    def full_screen(self) -> None:
        window = self.window
        window.setWindowState(window.windowState() ^ Qt.WindowState.WindowFullScreen)

    # --- the capture ------------------------------------------------------------------------------

    def drop(self, key: str) -> None:
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
        number = self.session.item(by)
        if number is not None:
            self.open_item(number)

    def strongest(self) -> None:
        """The key this query looks at most."""
        work = partial(strongest_key, self.session.capture, self.session.selection)
        self.lanes.files.submit(
            "strongest", "Finding the strongest key", work, on_error=self.show_error,
            on_done=lambda key: self.session.select(key=key),
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

    def _step_back(self, way: str, words: str) -> None:
        """Undo what was done last to heads or masks, or redo it."""
        step = getattr(self.session, way)
        getattr(self.pruning.undo, way)()
        self.say(tr(words, step=step))

    def choose_data(self) -> None:
        """Ask for a file to score the model on."""
        spec = self.session.spec
        reads = {"image": "images", "audio": "sounds"}.get(spec.modality if spec else "", "texts")
        is_labelled = reads != "texts" or (spec is not None and spec.goal == "classes")
        title = tr(f"Choose a labelled table of {reads}" if is_labelled else "Choose a text file")
        chosen = self.answered("choose_data", self.use_data)
        dialogs.ask_for(self.window, title, sources.FILE, chosen, tr(TEXT_FILES))

    def use_data(self, path: str) -> None:
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
        name = f"{self.session.study.spec.name or 'model'}-heads.h5"
        title, kinds = tr("Save importance scores"), tr("Studies (*.h5)")
        chosen = self.answered("save_study", self._save_study, self._studied)
        dialogs.ask_where(self.window, title, kinds, name, chosen)

    def _studied(self) -> object:
        """Which model was measured on which data."""
        study = self.session.study
        return study and (study.spec.digest, study.data_digest)

    def _save_study(self, path: str) -> None:
        self.remember(path)
        self.pruning.save(path, lambda written: self.say(tr("Saved {path}", path=written)))

    def save_mask(self) -> None:
        spec, off = self.session.spec, self.session.off

        def save(path: str) -> None:
            try:
                self.say(tr("Saved {path}", path=write_mask(path, spec, off)))
            except HgvizError as error:
                self.show_error(error)

        name = f"{spec.name or 'model'}-mask.json"
        dialogs.ask_where(self.window, tr("Save mask file"), tr("Mask files (*.json)"), name, save)

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
        self.recent.open(study.path)

        def show(alone: bool) -> None:
            self.pruning.open_study(study, alone)
            self.say(trials.about(study))

        if session.model is None and session.capture is None and not session.checkpoint:
            show(alone=True)
        elif session.spec is None or session.spec.digest == study.spec.digest:
            show(alone=False)
        else:
            error = trials.another_model(study, session.spec)
            button = tr("Show study"), partial(show, alone=True)
            dialogs.ErrorDialog(self.window, error, button).open()

    # --- a study of many runs ---------------------------------------------------------------------

    def show_sweep(self, found: Sweep, path: str) -> None:
        """Show a study that was opened, by its file or its folder."""
        self.recent.open(path, found.title)
        at = Path(path).resolve()
        file = str(at if at.is_file() else at / "study.toml")
        found = replace(found, path=str(Path(found.path).resolve()))
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

    def run_sweep(self) -> None:
        """Copy the command that computes what is missing of the study."""
        session = self.session
        assert session.sweep is not None
        words = ["hgviz", "study", "run", session.sweep_file, "-o", session.sweep.path]
        words += ["--again"] if session.sweep.counts["failed"] else []
        self.copy_words(shlex.join(words))

    def open_cell(self) -> None:
        """Open what the chosen run left: its model, both of a comparison, or what it measured."""
        sweep, run = self.session.sweep, self.session.run
        if sweep is None or run is None:
            return
        if run.cell.work in ("measure", "curve"):
            self.open_path(studyruns.scores_at(sweep, run.cell))
            return
        a, *others = studyruns.models_of(sweep, run.cell)
        for model in (a, *others):
            self.recent.open(model.path, model.name)  # its folder is named by a key
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
        words = (
            "Compare with a checkpoint folder" if folder else "Compare with a checkpoint or capture"
        )
        chosen = self.answered("compare_with", self._beside_chosen)
        dialogs.ask_for(self.window, tr(words), sources.FOLDER if folder else sources.FILE, chosen)

    def ask_side(self, kind: str) -> None:
        """Ask what B shall be, of one kind first."""
        then = self.answered("compare_with", self.choose_side)
        names = self.recent.names
        CompareDialog(self.window, self.session, names, kind, self.ask_model).ask(then)

    def _beside_chosen(self, path: str) -> None:
        self.remember(path)
        place = Path(path)
        if place.name == "config.json":
            path = str(place.parent)
        self.recent.open(path)
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
        text = sources.text_for(path, self.session.text)
        self.session.put(text=text, second="", ids="")
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
        folder = logged.file().parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            shown = QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))
        except OSError:
            shown = False
        words = "The log is in {folder}" if shown else "The log folder is {folder}"
        self.say(tr(words, folder=folder))

    def show_error(self, error: BaseException, act: tuple[str, str] | None = None) -> None:
        """Show an error in a dialog. act: the action that helps, and the words of its button."""
        if isinstance(error, UnreadError):
            text = dialogs.ModelInputs.of(error.model).text
            act = ("edit_text", tr("Edit text…")) if text else ("ids", tr("Choose a file…"))
        elif act is None and not isinstance(error, HgvizError):
            act = "log", tr("Show log folder")
        button = (act[1], partial(self.run, act[0])) if act else None
        dialogs.ErrorDialog(self.window, sources.shown_error(error), button).open()


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


def _most_alike(a: Capture, b: Capture, head: HeadId) -> tuple[HeadId, float] | None:
    from hgviz.analysis.comparison import most_alike  # imports scipy

    return most_alike(a, b, head)
