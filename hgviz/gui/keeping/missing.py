"""The dialog that asks for what a session names and is not there, and says what has changed."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFileDialog, QGridLayout, QWidget

from hgviz.gui.asking import ask_for
from hgviz.gui.controls import Button, Words, label, tip
from hgviz.gui.keeping.gathering import NAMES, Checked
from hgviz.gui.language import tr
from hgviz.gui.opening import name_of
from hgviz.gui.overlay import Overlay


class MissingDialog(Overlay):
    """A row for each: locate what has gone, or leave it out. answered: the paths there are now."""

    answered = Signal(dict)
    wide = 620

    def __init__(self, over: QWidget, checked: Checked) -> None:
        super().__init__(over)
        self._found: dict[str, str] = {}
        self._states: dict[str, Words] = {}
        gone = bool(checked.missing)
        title = tr("Some of this session is not where it was") if gone else tr(
            "Some of this session has changed since it was saved"
        )  # fmt: skip
        self.body.addWidget(label(title, factor=1.15, weight=600))
        said = tr("What you leave out is not opened; the rest is.") if gone else tr(
            "It opens all the same; what is shown may differ from what you saw."
        )  # fmt: skip
        words = label(said, kind="secondary")
        words.setWordWrap(True)
        self.body.addWidget(words)
        grid = QGridLayout()
        grid.setContentsMargins(0, 8, 0, 0)
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(8)
        grid.setColumnMinimumWidth(0, 96)
        grid.setColumnStretch(1, 1)
        for row, (name, path) in enumerate(checked.missing.items()):
            grid.addWidget(label(tr(NAMES[name]), weight=600), row, 0)
            words_ = tr("{name}: left out, it is not there", name=name_of(path))
            state = Words(words_, kind="secondary")
            state.setToolTip(tip(path))
            grid.addWidget(state, row, 1)
            self._states[name] = state
            button = Button(tr("Locate…"), "search")
            button.setAccessibleName(tr("Locate {thing}", thing=tr(NAMES[name])))
            button.clicked.connect(partial(self._locate, name))
            grid.addWidget(button, row, 2)
        for row, name in enumerate(checked.changed, len(checked.missing)):
            grid.addWidget(label(tr(NAMES[name]), weight=600), row, 0)
            words_ = tr("{name}: has changed since", name=name_of(checked.paths[name]))
            grid.addWidget(Words(words_, kind="secondary"), row, 1)
        self.body.addLayout(grid)
        go = Button(tr("Open the rest") if gone else tr("Open"), kind="filled")
        go.clicked.connect(partial(self._accept, checked.paths))
        self._go = go
        self.offer(go)

    def found(self, name: str, path: str) -> None:
        """A thing is there now."""
        self._found[name] = path
        self._states[name].say(tr("{name}: found", name=name_of(path)))
        if len(self._found) == len(self._states):
            self._go.setText(tr("Open"))

    def _locate(self, name: str) -> None:
        folder = name in ("model", "sweep")
        mode = QFileDialog.FileMode.Directory if folder else QFileDialog.FileMode.ExistingFile
        title = tr("Locate {thing}", thing=tr(NAMES[name]))
        ask_for(self.window(), title, mode, partial(self.found, name))

    def _accept(self, paths: dict[str, str]) -> None:
        self.finish()
        self.answered.emit(paths | self._found)


__all__ = ["MissingDialog"]
