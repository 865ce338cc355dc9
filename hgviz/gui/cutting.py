"""Saying where segments of unequal length end, in place of the model: what it would do then."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QSpinBox, QWidget

from hgviz.analysis.texts import Ends, ends_of
from hgviz.gui.actions import by_name
from hgviz.gui.controls import Button, label
from hgviz.gui.language import tr
from hgviz.gui.overlay import Overlay
from hgviz.gui.prune.commands import PruneCommands
from hgviz.session import OWN, undoing

if TYPE_CHECKING:
    from hgviz.gui.capturing import Capturing
    from hgviz.gui.window import Window
    from hgviz.session import Session
    from hgviz.session.undoing import Deed

LONGEST = 1000  # tokens of a segment that can be asked for
USUAL = 3  # of them are asked for at first


class CutCommands(PruneCommands):
    """Moves the ends of segments and captures the text again; takes back whatever was done last."""

    window: Window
    session: Session
    capturing: Capturing
    say: Callable[[str], None]

    def cut_here(self) -> None:
        """End a segment after the chosen token, or no longer."""
        if self.session.selection.query is None:
            self.say(tr("Choose where first"))
        else:
            self.cut_at(self.session.selection.query)

    def cut_at(self, token: int) -> None:
        """End a segment after a token, or no longer."""
        session = self.session
        reason = by_name("cut_here").why_off(session)
        if reason or session.capture is None:
            self.say(tr(reason))
            return
        now = session.boundaries if session.cutting else ends_of(session.capture)
        if not isinstance(now, frozenset):  # a way that is on its way
            now = ends_of(session.capture) or frozenset()
        ends = now ^ {token}
        own = None if session.own is None else ends_of(session.own)
        self._cut(OWN if ends == own else ends)

    def cut_words(self) -> None:
        """End segments where words end."""
        self._cut("whitespace")

    def cut_evenly(self) -> None:
        """Ask for a length, and end segments after so many tokens each."""
        assert self.session.capture is not None
        dialog = LengthDialog(self.window, self.session.capture.main.unit)
        dialog.chosen.connect(self.answered("cut_evenly", self.cut_every))
        dialog.open()

    def cut_every(self, tokens: int) -> None:
        """End segments after so many tokens each."""
        self._cut(f"fixed:{tokens}")

    def uncut(self) -> None:
        """End segments where the model says."""
        self._cut(OWN)

    def undo(self) -> None:
        """Take back what was done last: heads, masks or ends of segments."""
        if self.session.history.past:
            self._turn(undoing.undo, self.session.history.past[-1], "Undone: {deed}")

    def redo(self) -> None:
        """What was undone."""
        if self.session.history.future:
            self._turn(undoing.redo, self.session.history.future[0], "Done again: {deed}")

    def _turn(self, way: Callable[[Session], Deed], deed: Deed, said: str) -> None:
        cuts = "boundaries" in deed.names
        if cuts and (reason := by_name("cut_here").why_off(self.session)):
            self.say(tr(reason))
            return
        way(self.session)
        if cuts:
            self.capturing.start(self.session.checkpoint)
        self.say(tr(said, deed=tr(deed.words)))

    def _cut(self, boundaries: Ends | str) -> None:
        if reason := by_name("cut_here").why_off(self.session):
            self.say(tr(reason))
            return
        undoing.do(self.session, "moving the ends of segments", boundaries=boundaries)
        self.capturing.start(self.session.checkpoint)


class LengthDialog(Overlay):
    """Asks how long segments are to be."""

    chosen = Signal(int)
    wide = 420

    def __init__(self, over: QWidget, unit: str) -> None:
        super().__init__(over)
        self.body.addWidget(label(tr("Segments of one length"), factor=1.15, weight=600))
        words = "The first has one {unit}, each after it as many as you say."
        said = label(tr(words, unit=tr(unit)), kind="secondary", factor=0.92)
        said.setWordWrap(True)
        self.body.addWidget(said)
        self.count = QSpinBox()
        self.count.setRange(1, LONGEST)
        self.count.setValue(USUAL)
        self.count.lineEdit().setTextMargins(6, 0, 6, 0)
        name = label(tr("How many {units} each", units=tr(f"{unit}s")))
        name.setBuddy(self.count)
        self.count.setAccessibleName(name.text())
        row = QHBoxLayout()
        row.addWidget(name)
        row.addWidget(self.count, 1)
        self.body.addLayout(row)
        go = Button(tr("Capture"), "capture", kind="filled")
        go.clicked.connect(self._accept)
        self.offer(go)

    def open(self) -> None:
        """Start with the number."""
        super().open()
        self.count.setFocus()
        self.count.selectAll()

    def _accept(self) -> None:
        self.finish()
        self.chosen.emit(self.count.value())


__all__ = ["CutCommands"]
