"""What would be lost if the window closed now, and the dialog that asks about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from hgviz.gui.compare_parts.comparing import BESIDE
from hgviz.gui.jobs import GOING, within
from hgviz.gui.language import tr
from hgviz.gui.overlay import Overlay
from hgviz.gui.views.words import counted, percent
from hgviz.gui.widgets import Button, label

if TYPE_CHECKING:
    from hgviz.gui.jobs import Working
    from hgviz.session import Session

# jobs that bring nothing that the next start does not bring as well, or leave a file behind
AGAIN = ("open", "find-model", "measure", BESIDE, "capture")


def losses(session: Session, working: Working, comes_back: bool) -> tuple[str, ...]:
    """What would be lost, a sentence each. comes_back: whether what is open is there again at the
    next start."""
    found = []
    if session.study is not None and session.unsaved:
        found.append(tr("What was measured of the heads is not saved."))
    for kept in session.measured.values():
        study = kept["study"]
        if kept["unsaved"] or (kept["masks"] and study is None):
            name = study.spec.name if study is not None else kept["name"]
            found.append(tr("What was measured of the heads of {name} is not saved.", name=name))
    for one in session.work:
        goes = one.state in GOING and not working.lasts(one.key)
        if goes and (one.key not in AGAIN or one.title == "Writing"):
            job = within(one.title)
            if one.total:
                part = percent(f"{100 * one.done / one.total:.0f}")
                found.append(tr("Not done yet: {job} ({percent}).", job=job, percent=part))
            else:
                found.append(tr("Not done yet: {job}.", job=job))
    if session.masks and not comes_back and not (session.study and not session.unsaved):
        masks = counted(len(session.masks), "mask")
        found.append(tr("{masks} with a name.", masks=masks))
    return tuple(found)


class ClosingDialog(Overlay):
    """Says what would be lost. confirmed: close all the same; save_wanted: save the study first."""

    confirmed = Signal()
    save_wanted = Signal()
    wide = 480

    def __init__(self, over: QWidget, lost: tuple[str, ...], unsaved: bool) -> None:
        super().__init__(over)
        self.body.addWidget(label(tr("Something would be lost"), factor=1.15, weight=600))
        for words in lost:
            said = label(words)
            said.setWordWrap(True)
            self.body.addWidget(said)
        self.body.addSpacing(12)
        row = QHBoxLayout()
        close = Button(tr("Close all the same"))
        close.clicked.connect(self._confirm)
        row.addWidget(close)
        row.addStretch(1)
        if unsaved:
            save = Button(tr("Save what was measured…"))
            save.clicked.connect(self._save)
            row.addWidget(save)
        self.default = Button(tr("Stay"), kind="filled")
        self.default.clicked.connect(self.finish)
        row.addWidget(self.default)
        self.body.addLayout(row)

    def _confirm(self) -> None:
        self.finish()
        self.confirmed.emit()

    def _save(self) -> None:
        self.finish()
        self.save_wanted.emit()


__all__ = ["ClosingDialog", "losses"]
