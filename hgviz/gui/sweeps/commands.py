"""What the actions on studies of many runs do: one method for each row of ACTIONS that has one."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog

from hgviz.core import Step, Task
from hgviz.gui.asking import ask_for
from hgviz.gui.language import tr
from hgviz.gui.samples import name_of
from hgviz.session.other import Other

if TYPE_CHECKING:
    from hgviz.gui.bridge import Lanes
    from hgviz.gui.jobs import Working
    from hgviz.gui.sessions import Sessions
    from hgviz.gui.sources import Capturing
    from hgviz.gui.sweeps.results import Model
    from hgviz.gui.trials import Pruning
    from hgviz.gui.window import Window
    from hgviz.session import Session
    from hgviz.study import Study
    from hgviz.sweep import Standing, Sweep

STUDY_FILES = "Study files (*.toml);;All files (*)"


class SweepCommands:
    """Opens studies of many runs, and what their cells left, for a window."""

    window: Window
    session: Session
    lanes: Lanes
    working: Working
    capturing: Capturing
    pruning: Pruning
    sessions: Sessions
    opened_before: dict[str, str]
    say: Callable[[str], None]
    open_path: Callable[[str], None]
    show_error: Callable[[BaseException], None]
    _remember: Callable[[str], None]
    _keep: Callable[..., None]

    def sweep(self) -> None:
        """Show the page of the study."""
        self.session.put(mode="sweep")

    def open_sweep_file(self) -> None:
        """Ask for a study file."""
        file = QFileDialog.FileMode.ExistingFile
        ask_for(
            self.window, tr("Open a study file"), file, self._sweep_chosen, tr(STUDY_FILES)
        )  # fmt: skip

    def _sweep_chosen(self, path: str) -> None:
        self._remember(path)
        self.open_path(path)

    def show_sweep(self, found: Sweep, path: str) -> None:
        """Show a study that was opened, by its file or its folder."""
        self.opened_before[path] = found.title or name_of(path)
        at = Path(path).resolve()
        file = str(at if at.is_file() else at / "study.toml")
        found = replace(found, path=str(Path(found.path).resolve()))
        same = self.session.sweep is not None and self.session.sweep.path == found.path
        self.session.put(
            sweep=found, sweep_file=file, sweep_trouble="", mode="sweep",
            cell=self.session.cell if same else "",
        )  # fmt: skip

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
        command = shlex.join(words)
        QGuiApplication.clipboard().setText(command)
        self.say(tr("Copied: {command}", command=command))

    # --- cells ------------------------------------------------------------------------------------

    def choose_cell(self, key: str) -> None:
        """Look at one cell, "" for none."""
        self.session.put(cell=key)

    def open_cell(self) -> None:
        """Open what the chosen cell left, on the page that shows it."""
        from hgviz.gui.sweeps.results import models_of, not_there

        one = chosen(self.session)
        if one is None or self.session.sweep is None or one.state != "done":
            return
        sides = models_of(self.session.sweep, one.cell)
        gone = [side for side in sides if not Path(side.path).exists()]
        if gone and one.cell.work not in (
            "measure",
            "curve",
        ):  # these say themselves what they lack
            self.show_error(not_there(gone[0].name, gone[0].path))
            return
        ways = {
            "train": self._open_trained, "score": self._open_scored,
            "measure": self._open_measured, "curve": self._open_measured,
            "compare": self._open_compared,
        }  # fmt: skip
        ways[one.cell.work](one, sides)

    def _open_trained(self, one: Standing, sides: list[Model]) -> None:
        self._open_model(one, sides[0], mode="inspect")

    def _open_scored(self, one: Standing, sides: list[Model]) -> None:
        from hgviz.gui.sweeps.results import data_of

        model, data = sides[0], data_of(one.cell)
        if model.activation or not Path(data).exists():
            self._open_model(one, model, mode="prune")
        else:
            self._name(model)
            self.sessions.open_together({"model": model.path, "data": data}, "prune")

    def _open_measured(self, one: Standing, sides: list[Model]) -> None:
        from hgviz.gui import runs

        if Path(sides[0].path).exists():  # else its study is looked at alone
            self._name(sides[0])
        task = _told(self.session.sweep, one)
        title = tr("Opening {name}", name=runs.where(one.cell))
        self.working.start(self.lanes.files, "open", title, task, self._united)

    def _united(self, study: Study) -> None:
        spec = self.session.spec
        alone = spec is None or spec.digest != study.spec.digest
        self.pruning.open_study(study, alone=alone)
        self.session.put(unsaved=True)
        name = study.spec.name or tr("this model")
        self.say(tr("What was measured in the study: {name}", name=name))

    def _open_compared(self, one: Standing, sides: list[Model]) -> None:
        a, b = sides
        self._name(b)
        other = Other("model", path=b.path, activation=b.activation)
        self._open_model(one, a, mode="compare", other=other)

    def _open_model(self, one: Standing, model: Model, **shown: Any) -> None:
        """Open a model on a text of what it was measured on, which it can read."""
        self._name(model)
        title, done = tr("Opening {name}", name=model.name), partial(self._text_found, model, shown)
        self.working.start(self.lanes.files, "open", title, _text(one), done)

    def _text_found(self, model: Model, shown: dict[str, Any], text: str) -> None:
        self.session.put(text=text or self.session.text, second="", **shown)
        self.capturing.start_fresh(model.path, self.show_error, model.activation)

    def _name(self, model: Model) -> None:
        """Have it called by its place, where its folder is named by a key."""
        self.opened_before[model.path] = model.name


def chosen(session: Session) -> Standing | None:
    """The chosen cell as it stands."""
    if session.sweep is None or not session.cell:
        return None
    return next((one for one in session.sweep.standings if one.cell.key == session.cell), None)


def _text(one: Standing) -> Task[str]:
    from hgviz.gui.sweeps.results import text_of

    yield Step(0, 1, "reading a text")
    return text_of(one.cell)


def _told(sweep: Any, one: Standing) -> Task[Study]:
    from hgviz.gui.sweeps.results import united_study

    yield Step(0, 1, "reading what was measured")
    return united_study(sweep, one.cell)


__all__ = ["SweepCommands", "chosen"]
