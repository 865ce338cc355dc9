"""What the actions of the Compare page do: one method for each row of ACTIONS, by the same name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QFileDialog

from hgviz import settings
from hgviz.core import HeadId
from hgviz.gui import opening
from hgviz.gui.asking import TEXTS, ask_for, ask_where
from hgviz.gui.language import tr
from hgviz.session.other import Other

if TYPE_CHECKING:
    from hgviz.gui.bridge import Lanes
    from hgviz.gui.capturing import Capturing
    from hgviz.gui.compare.comparing import Comparing
    from hgviz.gui.window import Window
    from hgviz.gui.working import Working
    from hgviz.session import Session

REPORT = "report"  # the key of its job


class CompareCommands:
    """Chooses the sides of a comparison, for a window."""

    window: Window
    session: Session
    capturing: Capturing
    comparing: Comparing
    working: Working
    lanes: Lanes
    say: Callable[[str], None]
    opened_before: dict[str, str]
    run: Callable[[str], None]
    answered: Callable[..., Callable[..., None]]
    open: Callable[[], None]
    open_path: Callable[[str], None]
    _remember: Callable[[str], None]
    show_error: Callable[[BaseException], None]

    def compare_with(self) -> None:
        """Ask what to put beside the capture at hand."""
        self._ask_side("")

    def compare_nothing(self) -> None:
        """Take B away."""
        self.comparing.forget()

    def choose_side(self, other: Other, head: HeadId | None = None) -> None:
        """Have another B; what is asked for first, where the wish lacks it."""
        if other.kind == "model" and not other.path:
            self.ask_model(False)
        elif other.kind == "text" and not other.text:
            self._ask_side("text")
        else:
            self.comparing.choose(other, head)

    def ask_side(self, kind: str) -> None:
        """Ask what B shall be, of one kind first."""
        self._ask_side(kind)

    def ask_model(self, folder: bool) -> None:
        """Ask for the checkpoint or the capture that B shall be."""
        mode = QFileDialog.FileMode.Directory if folder else QFileDialog.FileMode.ExistingFile
        one, other = "Compare with a checkpoint folder", "Compare with a checkpoint or capture"
        chosen = self.answered("compare_with", self._beside_chosen)
        ask_for(self.window, tr(one if folder else other), mode, chosen)

    def choose_a(self, activation: str) -> None:
        """Open the checkpoint of A with another activation."""
        self.capturing.start_fresh(self.session.checkpoint, self.show_error, activation)

    def report_sides(self) -> None:
        """Ask for data, where none was chosen on the Prune page, and where to write the report."""
        if self.session.data:
            self._ask_report(self.session.data)
            return
        file = QFileDialog.FileMode.ExistingFile
        classes = self.session.spec.goal == "classes"
        title = "Report: choose texts with labels" if classes else "Report: choose a text"
        chosen = self.answered("report_sides", self._ask_report, self._sides)
        ask_for(self.window, tr(title), file, chosen, tr(TEXTS))

    def _ask_report(self, data: str) -> None:
        from hgviz.gui.compare import reporting

        names = [one.spec.name or "model" for one in (self.session.capture, self.session.beside)]
        name = f"{names[0]}-{names[1]}.html"
        chosen = self.answered("report_sides", partial(self._report, data), self._sides)
        ask_where(self.window, tr("Report on A and B"), tr(reporting.KINDS), name, chosen)

    def _sides(self) -> object:
        """What A and B are."""
        return self.session.checkpoint, self.session.activation, self.session.other

    def _report(self, data: str, out: str) -> None:
        from hgviz.gui.compare import reporting

        self._remember(out)
        asked = reporting.Asked.of(self.session, data, settings.load().device, out)
        title = f"Report on A and B, {Path(out).name}"
        self.working.start(
            self.lanes.engine, REPORT, title, asked.task(),
            lambda path: self.say(tr("The report is written: {path}", path=path)),
            on_step=lambda step: self.say(reporting.told(step)),
        )  # fmt: skip

    def stop_report(self) -> None:
        """Leave the report on A and B."""
        self.working.stop(REPORT)
        self.say(tr("Stopped: no report is written"))

    def _ask_side(self, kind: str) -> None:
        from hgviz.gui.compare.choosing import CompareDialog

        dialog = CompareDialog(self.window, self.session, self.opened_before, kind)
        dialog.chosen.connect(self.answered("compare_with", self.choose_side))
        dialog.file_wanted.connect(self.ask_model)
        dialog.open()

    def _beside_chosen(self, path: str) -> None:
        self._remember(path)
        place = Path(path)
        if place.name == "config.json":
            path = str(place.parent)
        self.opened_before[path] = opening.name_of(path)
        self.comparing.choose(Other("model", path=path))


__all__ = ["CompareCommands"]
