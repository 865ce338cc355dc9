"""What the actions do: one method of Commands for each row of ACTIONS, by the same name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QFileDialog

from hgviz import settings, tasks
from hgviz.core import HeadId, HgvizError, replace
from hgviz.gui import dialogs, opening
from hgviz.gui.actions import ACTIONS
from hgviz.gui.asking import READABLE, ask_for
from hgviz.gui.attribution_parts.asking import Explaining
from hgviz.gui.attribution_parts.commands import AttributionCommands
from hgviz.gui.compare_parts.commands import CompareCommands
from hgviz.gui.compare_parts.comparing import BESIDE, Comparing
from hgviz.gui.exporting.commands import ExportCommands
from hgviz.gui.helping.commands import HelpCommands
from hgviz.gui.jobs import GOING, Working
from hgviz.gui.keeping.commands import KeepingCommands
from hgviz.gui.keeping.recent import Opened, Recent
from hgviz.gui.language import tr
from hgviz.gui.panels_parts.texts import TextsPanel
from hgviz.gui.prompting import Prompting
from hgviz.gui.prune_parts.commands import PruneCommands
from hgviz.gui.prune_parts.removing import REMOVE, Removing
from hgviz.gui.samples import FIRST, SAMPLE, name_of
from hgviz.gui.sessions import Sessions
from hgviz.gui.sources import Capturing
from hgviz.gui.stepping import Stepping
from hgviz.gui.sweeps.commands import SweepCommands
from hgviz.gui.sweeps.watching import Watching
from hgviz.gui.trials import CURVE, MEASURE, Pruning
from hgviz.gui.view import View
from hgviz.resources import resource
from hgviz.session import Session, step_item

if TYPE_CHECKING:
    from hgviz.analysis.gathered import Example
    from hgviz.analysis.habits import Habits
    from hgviz.gui.bridge import Lanes
    from hgviz.gui.window import Window

LOOKING = ("inspect", "follow", "compare")  # pages that show a capture


class Commands(
    Stepping,
    ExportCommands,
    PruneCommands,
    CompareCommands,
    AttributionCommands,
    KeepingCommands,
    SweepCommands,
    HelpCommands,
):
    """Acts on the session for a window: opens, captures, saves, exports, steps."""

    def __init__(self, window: Window, session: Session, lanes: Lanes) -> None:
        self.window, self.session, self.lanes = window, session, lanes
        self.views: tuple[View, ...] = ()
        self.at_hand: View | None = None
        self.sample = str(resource(SAMPLE))
        self.recent = Recent(session, lanes, self._keep)
        self.opened_before = Opened(self.recent.add)
        self.working = Working(session, lanes, self.show_error)
        self.capturing = Capturing(
            session, lanes, self.working, self.opened_before, self.open_path, self._ask_for_time,
            self.say,
        )  # fmt: skip
        self.explaining = Explaining(session, lanes, self.working)
        self.pruning = Pruning(session, lanes, self.working, self.show_error, self.assign_labels)
        self.comparing = Comparing(session, lanes, self.working, self.show_error)
        self.removing = Removing(
            window, session, lanes, self.working, self.open_path, self.pruning.labels
        )
        self.sessions = Sessions(self)
        self.watching = Watching(session, lanes, self.sees_sweep)
        self.prompting = Prompting(
            window, session, self.capturing, self.run, self.answered, self._remember
        )
        self._recaptured: tuple[object, object] = (None, None)
        session.changed.connect(self._heard)

    def run(self, name: str) -> None:
        """Do an action by its name; where it cannot be done, say why."""
        self.answer(name, getattr(self, name))

    def answer(self, name: str, act: Callable[..., object], *answers: Any) -> None:
        """Do what an action asked for answers to, unless it cannot be done any more; say why."""
        action = next(one for one in ACTIONS if one.name == name)
        reason = action.why_off(self.session)
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
                self.say(tr("Something else is open by now: nothing was done"))

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
        if name not in ("mode", "off", "work") or not session.outdated:
            return
        a, before, off = session.capture, self._recaptured, session.off
        busy = any(one.state in GOING for one in session.work)
        b_is_off = session.other is not None and session.other.kind == "off"
        in_file = a.path and a.path != str(resource(FIRST))
        chosen = in_file or b_is_off or any(a is one for one in self.pruning.pair or ())
        again = before[0] is a.maps and before[1] == off
        if session.mode in LOOKING and not (busy or chosen or again) and opening.is_quick(a):
            self._recaptured = a.maps, off
            self.capturing.start(session.checkpoint)

    def say(self, words: str) -> None:
        """Say something in the status bar."""
        self.window.chosen_words.tell(words)

    # --- File -------------------------------------------------------------------------------------

    def open(self) -> None:
        """Ask for a file and open it."""
        title = tr("Open a checkpoint, capture, study or session")
        self._ask(title, QFileDialog.FileMode.ExistingFile)

    def open_folder(self) -> None:
        """Ask for a folder and open it."""
        self._ask(tr("Open a checkpoint folder"), QFileDialog.FileMode.Directory)

    def open_sample(self) -> None:
        """Open the checkpoint that comes with the program."""
        self.open_path(self.sample)

    def exchange(self) -> None:
        """Open the checkpoint at hand with another activation in its attention."""
        from hgviz.gui.composing import ExchangeDialog

        name = name_of(self.session.checkpoint)
        layers = self.session.spec.layers if self.session.spec else ()
        heads = max((1 + max(one.heads) for one in layers if one.heads), default=0)
        dialog = ExchangeDialog(self.window, name, self.session.activation, heads)
        dialog.chosen.connect(self.answered("exchange", self._exchange_for))
        dialog.open()

    def _exchange_for(self, activation: str) -> None:
        self.capturing.start_fresh(self.session.checkpoint, self.show_error, activation)

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
        task = opening.look(path)
        self.working.start(self.lanes.files, "open", title, task, self._looked, self._not_opened)

    def _looked(self, found: opening.Found) -> None:
        if found.checked is not None:
            self.sessions.show(found.checked)
        elif found.sweep is not None:
            self.show_sweep(found.sweep, found.path)
        elif found.study is not None:
            self.show_study(found.study)
        elif found.capture is None:
            text = opening.text_for(found.path, self.session.text)
            if text != self.session.text:
                self.session.put(text=text, second="")
            self.capturing.start_fresh(found.path, self._not_opened)
        else:
            self.show_found(found)

    def show_found(self, found: opening.Found) -> None:
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

    def show_example(self, head: HeadId, example: Example) -> None:
        """Open the text of an example, with its query and key chosen in a head."""
        capture = self.session.capture
        if capture is None:
            return  # it went while the example was still on screen
        if example.text == capture.item:
            self._show_example(head, example)
        else:
            task = opening.look(capture.path, example.text)
            done = partial(self._show_example_in, head, example)
            self.working.start(self.lanes.files, "open", "Opening a text", task, done, bound=True)

    def _show_example_in(self, head: HeadId, example: Example, found: opening.Found) -> None:
        self._show_item(found)
        self._show_example(head, example)

    def _show_example(self, head: HeadId, example: Example) -> None:
        chosen = {"layer": head.layer, "head": head.head}
        self.session.select(**chosen, query=example.query, key=example.key)

    def take_habits(self, habits: Habits) -> None:
        """Keep what was found of all heads: other panes show it, too."""
        self.session.put(habits=habits)

    def shade(self, metric: str) -> None:
        """Colour heads by a metric in place of their maps, "" for the maps."""
        self.session.put(shade=metric)

    def open_item(self, number: int) -> None:
        """Open another text of the corpus on screen; the newest asked for wins."""
        if self.session.capture is None:
            return
        task = opening.look(self.session.capture.path, number)
        self.working.start(
            self.lanes.files, "open", "Opening a text", task, self._show_item, bound=True
        )

    def _show_item(self, found: opening.Found) -> None:
        """The head at hand stays; so does everything that the text does not change."""
        self.session.put(capture=found.capture, facts=found.facts)
        if not found.facts and found.capture.complete:
            self.capturing.measure()

    def close_window(self) -> None:
        """Close the window, which is the only one."""
        self.window.close()

    def quit(self) -> None:
        """Close the window, and with it the program."""
        self.window.close()

    # --- Edit, View -------------------------------------------------------------------------------

    def edit_text(self) -> None:
        """Edit the text, and capture it."""
        self.prompting.edit()

    def ids(self) -> None:
        """Ask for a file of ids, and capture what they stand for."""
        self.prompting.ids()

    def find_text(self) -> None:
        """Search the texts of the corpus."""
        self.session.put(mode="inspect")
        self.show_docks()
        next(one for one in self.views if isinstance(one, TextsPanel)).search()

    def inspect(self) -> None:
        """Show the Inspect page."""
        self.session.put(mode="inspect")

    def follow(self) -> None:
        """Show the Follow page."""
        self.session.put(mode="follow")

    def compare(self) -> None:
        """Show the Compare page."""
        self.session.put(mode="compare")

    def fit(self) -> None:
        """Show everything in every pane again."""
        for view in filter(View.isVisible, self.views):
            view.fit()

    def next_pane(self) -> None:
        """Give the keyboard to the next pane."""
        self._walk(1)

    def last_pane(self) -> None:
        """Give the keyboard to the pane before."""
        self._walk(-1)

    def _walk(self, by: int) -> None:
        panes = [one for one in self.views if one.isVisible()]
        here = QApplication.focusWidget()
        at = next(
            (n for n, one in enumerate(panes) if here and (one is here or one.isAncestorOf(here))),
            -1 if by > 0 else 0,
        )
        order = [panes[(at + by * step) % len(panes)] for step in range(1, len(panes) + 1)]
        next((one for one in order if one.take_focus()), None)

    def next_text(self) -> None:
        """The text of the corpus after this one."""
        self._step_text(1)

    def last_text(self) -> None:
        """The text of the corpus before this one."""
        self._step_text(-1)

    def _step_text(self, by: int) -> None:
        number = step_item(self.session, by)
        if number is not None:
            self.open_item(number)

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

    def theme(self) -> None:
        """Light to dark or back, kept for the next start."""
        self.session.put(dark=not self.session.dark)
        self._keep(theme="dark" if self.session.dark else "light")

    def full_screen(self) -> None:
        """The whole screen, or back."""
        window = self.window
        window.setWindowState(window.windowState() ^ Qt.WindowState.WindowFullScreen)

    # --- Analyse ----------------------------------------------------------------------------------

    def capture(self) -> None:
        """Capture the text at hand with the checkpoint at hand."""
        self.capturing.start(self.session.checkpoint)

    def corpus(self) -> None:
        """Ask for a file of texts and where to keep it, and capture all of them."""
        self.prompting.corpus()

    def write(self) -> None:
        """Ask how much, and let the model go on with the text."""
        self.prompting.write()

    def stop(self) -> None:
        """Stop the capture; what is done stays."""
        self.capturing.stop()

    def drop(self, key: str) -> None:
        """Stop a job by its key."""
        stops = dict.fromkeys((MEASURE, CURVE), self.pruning.stop_measuring) | {
            "capture": self.capturing.stop, BESIDE: self.comparing.stop,
            REMOVE: self.removing.stop,
        }  # fmt: skip
        stops.get(key, partial(self.working.stop, key))()

    # --- errors and files -------------------------------------------------------------------------

    def _ask_for_time(
        self, estimate: tasks.Estimate, go_on: Callable[[], None], refused: Callable[[], None]
    ) -> None:
        """Ask whether a capture that takes long is to begin."""
        from hgviz.gui.composing import LongDialog

        dialog = LongDialog(self.window, estimate)
        dialog.agreed.connect(go_on)
        dialog.refused.connect(refused)
        dialog.open()

    def show_error(self, error: BaseException) -> None:
        """The dialog with three lines."""
        from hgviz.gui.composing import Reads

        act = None if isinstance(error, HgvizError) else ("log", tr("Show the log folder"))
        if isinstance(error, opening.UnreadError):
            text = Reads.of(error.model).text
            act = ("edit_text", tr("Edit text…")) if text else ("ids", tr("Choose a file…"))
        self._show(dialogs.ErrorDialog(self.window, opening.shown_error(error), act))

    def _not_opened(self, error: BaseException) -> None:
        if isinstance(error, opening.UnreadError):
            self.show_error(error)
            return
        choose = ("open", tr("Choose another file…"))
        self._show(dialogs.ErrorDialog(self.window, opening.shown_error(error), choose))

    def _show(self, dialog: dialogs.ErrorDialog) -> None:
        dialog.asked.connect(self.run)
        dialog.open()

    def _ask(self, title: str, mode: QFileDialog.FileMode) -> None:
        ask_for(self.window, title, mode, self._path_chosen)

    def _path_chosen(self, path: str) -> None:
        self._remember(path)
        self.open_path(path)

    def _remember(self, path: str) -> None:
        self._keep(folder=str(Path(path).parent))

    def _keep(self, **fields: Any) -> None:
        """Keep settings; a disk that refuses them is no reason to stop anybody."""
        try:
            settings.save(structs.replace(settings.load(), **fields))
        except OSError as error:
            self.say(tr("The settings could not be kept: {why}", why=error.strerror))
