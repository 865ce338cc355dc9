"""What the actions of the Compare page do: one method for each row of ACTIONS, by the same name."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog

from hgviz.core import HeadId
from hgviz.gui.asking import ask_for
from hgviz.gui.language import tr
from hgviz.gui.samples import name_of
from hgviz.session.other import Other

if TYPE_CHECKING:
    from hgviz.gui.compare_parts.comparing import Comparing
    from hgviz.gui.sources import Capturing
    from hgviz.gui.window import Window
    from hgviz.session import Session


class CompareCommands:
    """Chooses the sides of a comparison, for a window."""

    window: Window
    session: Session
    capturing: Capturing
    comparing: Comparing
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
        """Copy the command that writes a report on A and B."""
        command = report_command(self.session)
        QGuiApplication.clipboard().setText(command)
        self.say(tr("Copied: {command}", command=command))

    def _ask_side(self, kind: str) -> None:
        from hgviz.gui.compare_parts.choosing import CompareDialog

        dialog = CompareDialog(self.window, self.session, self.opened_before, kind)
        dialog.chosen.connect(self.answered("compare_with", self.choose_side))
        dialog.file_wanted.connect(self.ask_model)
        dialog.open()

    def _beside_chosen(self, path: str) -> None:
        self._remember(path)
        place = Path(path)
        if place.name == "config.json":
            path = str(place.parent)
        self.opened_before[path] = name_of(path)
        self.comparing.choose(Other("model", path=path))


def report_command(session: Session) -> str:
    """Return the `hgviz compare` command that writes a report on A and B of the session."""
    a, b, other = session.capture, session.beside, session.other
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
