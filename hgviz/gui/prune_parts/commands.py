"""What the actions of the Prune page do: one method for each row of ACTIONS, by the same name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QFileDialog

from hgviz import tasks
from hgviz.errors import LabelError
from hgviz.gui import opening
from hgviz.gui.asking import TEXTS, ask_for, ask_where
from hgviz.gui.dialogs import ErrorDialog
from hgviz.gui.language import tr
from hgviz.gui.samples import name_of
from hgviz.resources import resource
from hgviz.session import undoing

if TYPE_CHECKING:
    from hgviz.gui.bridge import Lanes
    from hgviz.gui.jobs import Working
    from hgviz.gui.prune_parts.removing import Removing
    from hgviz.gui.sources import Capturing
    from hgviz.gui.trials import Pruning
    from hgviz.gui.window import Window
    from hgviz.session import Session
    from hgviz.study import Study

REVIEWS = "sample/reviews.tsv"
FIND = "find-model"  # a job


class PruneCommands:
    """Switches heads off and measures them, for a window."""

    window: Window
    session: Session
    pruning: Pruning
    removing: Removing
    capturing: Capturing
    working: Working
    lanes: Lanes
    opened_before: dict[str, str]
    run: Callable[[str], None]
    answered: Callable[..., Callable[..., None]]
    open_path: Callable[[str], None]
    _remember: Callable[[str], None]
    say: Callable[[str], None]

    def undo(self) -> None:
        """Take back what was done last to heads or masks."""
        if self.session.history.past:
            self.say(tr("Undone: {deed}", deed=tr(undoing.undo(self.session).words)))

    def redo(self) -> None:
        """Do again what was taken back."""
        if self.session.history.future:
            self.say(tr("Done again: {deed}", deed=tr(undoing.redo(self.session).words)))

    def prune(self) -> None:
        """Show the Prune page."""
        self.session.put(mode="prune")

    def all_on(self) -> None:
        """Switch every head on again."""
        self.pruning.switch(frozenset())

    def switch_head(self) -> None:
        """The head at hand off, or on."""
        self.pruning.switch(self.session.off ^ {self.session.selection.head_id})

    def choose_data(self) -> None:
        """Ask for a file to score the model on."""
        file = QFileDialog.FileMode.ExistingFile
        title = tr("Choose texts with labels") if self._classifies else tr("Choose a text")
        chosen = self.answered("choose_data", self.use_data)
        ask_for(self.window, title, file, chosen, tr(TEXTS))

    def use_data(self, path: str) -> None:
        """Score the model on a file."""
        self._remember(path)
        self.pruning.use(path)
        self.session.put(mode="prune")

    def assign_labels(self, data: str, error: LabelError) -> None:
        """Ask which class each label of a file is, and score the model on it."""
        from hgviz.gui.prune_parts.assigning import LabelsDialog

        def use(labels: dict[str, str]) -> None:
            self.pruning.labels[self.session.checkpoint, data] = labels
            self.use_data(data)

        dialog = LabelsDialog(self.window, name_of(data), error)
        dialog.chosen.connect(self.answered("choose_data", use))
        dialog.open()

    def bundled_data(self) -> None:
        """Score the model on the reviews that come with the program."""
        self.pruning.use(str(resource(REVIEWS)))
        self.session.put(mode="prune")

    def resume_score(self) -> None:
        """Go on with the score that was stopped."""
        self.pruning.resume()

    def measure_heads(self) -> None:
        """Ask by which scores, and measure them."""
        from hgviz.gui.prune_parts.measuring import CHOICES, MeasureDialog

        study = self.pruning.known
        there = frozenset(
            name for names, *_ in CHOICES for name in names
            if study is not None and getattr(study, name) is not None
        )  # fmt: skip
        trial = self.session.trial
        states = trial is not None and trial.examples.asked == "states"
        dialog = MeasureDialog(self.window, there, states)
        dialog.chosen.connect(self.answered("measure_heads", self.pruning.measure))
        dialog.open()

    def trace_curve(self) -> None:
        """Draw how many heads can go by the chosen score."""
        self.pruning.trace()

    def save_study(self) -> None:
        """Ask where, and write what was measured."""
        name = f"{self.session.study.spec.name or 'model'}-heads.h5"
        title, kinds = tr("Save what was measured"), tr("Studies (*.h5)")
        chosen = self.answered("save_study", self._save_study, self._studied)
        ask_where(self.window, title, kinds, name, chosen)

    def _studied(self) -> object:
        """Which model was measured on which data."""
        study = self.session.study
        return study and (study.spec.digest, study.data_digest)

    def _save_study(self, path: str) -> None:
        self._remember(path)
        self.pruning.save(path, lambda written: self.say(tr("Saved {path}", path=written)))

    # --- studies that are opened ------------------------------------------------------------------

    def show_study(self, study: Study) -> None:
        """Show a study that was opened; where another model is open, ask first."""
        from hgviz.gui.prune_parts import studied

        session = self.session
        self.opened_before[study.path] = name_of(study.path)
        nothing = session.model is None and session.capture is None and not session.checkpoint
        if nothing:
            self._show_alone(study)
        elif session.spec is None or session.spec.digest == study.spec.digest:
            self.pruning.open_study(study)
            self.say(studied.about(study))
        else:
            error = studied.another_model(study, session.spec)
            dialog = ErrorDialog(self.window, error, ("alone", tr("Show the study")))
            dialog.asked.connect(partial(self._show_alone, study))
            dialog.open()

    def _show_alone(self, study: Study, _: str = "") -> None:
        from hgviz.gui.prune_parts import studied

        self.pruning.open_study(study, alone=True)
        self.say(studied.about(study))

    def open_studied(self) -> None:
        """Open the model that a study is of: one opened before, or one that is asked for."""
        task = tasks.model_of(self.session.study, [*self.opened_before])
        self.working.start(
            self.lanes.engine, FIND, "Looking for its model", task, self._model_found, bound=True
        )

    def _model_found(self, path: str) -> None:
        if path:
            self.open_path(path)
            return
        if self.session.study is None:  # something else was opened meanwhile
            return
        name = self.session.study.spec.name
        title = (
            tr("Choose the checkpoint of {name}", name=name)
            if name
            else tr("Choose the checkpoint of the model of this study")
        )
        ask_for(self.window, title, QFileDialog.FileMode.Directory, self._studied_chosen)

    def _studied_chosen(self, path: str) -> None:
        self._remember(path)
        if self.session.study is None:  # as above
            return
        task = tasks.require_model_of(self.session.study, path)
        self.working.start(
            self.lanes.engine, FIND, f"Looking at {name_of(path)}", task,
            self.open_path, self._not_its_model, bound=True,
        )  # fmt: skip

    def _not_its_model(self, error: BaseException) -> None:
        again = ("open_studied", tr("Choose another…"))
        dialog = ErrorDialog(self.window, opening.shown_error(error), again)
        dialog.asked.connect(self.run)
        dialog.open()

    # --- heads that go for good -------------------------------------------------------------------

    def remove_heads(self) -> None:
        """Ask in which form, and write the model without the heads that are off."""
        self.removing.ask()

    def keep_mask(self) -> None:
        """Keep the heads that are off under a name."""
        self.pruning.keep()

    def open_changed(self, text: str) -> None:
        """Capture a text with and without the heads that are off, and look at it."""
        self.session.put(mode="inspect")
        self.pruning.open_text(text, self.capturing.measure)

    def before_after(self) -> None:
        """The other capture of the text that was opened: all heads on, or some off."""
        said = self.pruning.turn()
        if said:
            self.capturing.measure()
        self.say(said or tr("Open a prediction that changed on the Prune page first"))

    @property
    def _classifies(self) -> bool:
        spec = self.session.spec
        return spec is not None and spec.goal == "classes"
