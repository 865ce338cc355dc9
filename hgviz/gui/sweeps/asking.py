"""The dialog that asks how and where a study is run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QLineEdit, QSpinBox, QStackedWidget, QWidget

from hgviz.cluster import FORMS, require_scheduler
from hgviz.core import HgvizError
from hgviz.gui import theme
from hgviz.gui.asking import ask_for
from hgviz.gui.controls import Button, Check, Segments, Words, label
from hgviz.gui.language import tr
from hgviz.gui.overlay import Overlay
from hgviz.gui.sweeps.about import cells
from hgviz.gui.sweeps.running import command

if TYPE_CHECKING:
    from hgviz.sweep import Sweep

STUDY_FILES = "Study files (*.toml);;All files (*)"
HOW = (
    ("here", "One at a time", ""),
    ("local", "Several at a time", ""),
    ("other", "A cluster", ""),
)
SAID = {
    "here": "One cell after the other, in a process of its own.",
    "local": "So many workers on this machine; each takes one cell at a time.",
    "other": "A dask scheduler: {forms}.",
}


class RunDialog(Overlay):
    """How many at a time, and into which folder. chosen: the folder, the scheduler, and whether
    cells that were given up are tried again."""

    chosen = Signal(str, str, bool)
    wide = 640

    def __init__(self, over: QWidget, sweep: Sweep, file: str, again: bool = False) -> None:
        super().__init__(over)
        self._sweep, self._file = sweep, file
        self.body.addWidget(label(tr("Run this study"), factor=1.15, weight=600))
        counts, total = sweep.counts, len(sweep.standings)
        some = "{cells}; {done:,} are done and are not computed again."
        words = (
            tr(some, cells=cells(total), done=counts["done"]) if counts["done"] else cells(total)
        )
        said = label(words, kind="secondary")
        said.setWordWrap(True)
        self.body.addWidget(said)
        if counts["running"]:
            hosts = ", ".join(sorted({one.host for one in sweep.standings
                                      if one.state == "running" and one.host}))  # fmt: skip
            hosts = hosts or tr("another machine")
            self._note(tr("Cells run on {hosts} now. These are left to it.", hosts=hosts))
        self.how = Segments([(name, tr(words), icon) for name, words, icon in HOW], wide=150)
        self.how.setAccessibleName(tr("How"))
        self.how.chosen.connect(self._fit)
        self.body.addSpacing(8)
        self.body.addWidget(self.how)
        self.told = label(kind="secondary", factor=0.92)
        self.told.setWordWrap(True)
        self.body.addWidget(self.told)
        self.workers = QSpinBox()
        self.workers.setRange(2, 1024)
        self.workers.setValue(max(2, min(8, os.cpu_count() or 2)))
        self.workers.setAccessibleName(tr("Workers"))
        self.workers.setSuffix(tr(" workers"))
        self.workers.setFixedWidth(150)
        self.address = QLineEdit()
        self.address.setPlaceholderText("tcp://host:8786")
        self.address.setAccessibleName(tr("Scheduler"))
        self.workers.valueChanged.connect(self._fit)
        self.address.textChanged.connect(self._fit)
        self.pages = QStackedWidget()
        for one in (QWidget(), self.workers, self.address):
            self.pages.addWidget(one)
        self.pages.setFixedHeight(34)
        self.body.addWidget(self.pages)
        self.again = Check(tr("Try {cells} again that failed", cells=cells(counts["failed"])))
        self.again.setChecked(again)
        self.again.setVisible(bool(counts["failed"]))
        self.again.toggled.connect(self._fit)
        self.body.addWidget(self.again)
        row = QHBoxLayout()
        row.addWidget(label(tr("Into"), kind="secondary"))
        self.out = Words(sweep.path)
        row.addWidget(self.out, 1)
        self.change = Button(tr("Change…"))
        self.change.clicked.connect(self._ask)
        self.change.setVisible(total == counts["waiting"])
        row.addWidget(self.change)
        self.body.addLayout(row)
        self._note(tr("Closing the window stops it; what is done is kept. Without the window:"))
        row = QHBoxLayout()
        self.command = Words(kind="secondary")
        self.command.setFont(theme.mono(0.92))
        row.addWidget(self.command, 1)
        copy = Button(tr("Copy"), "copy")
        copy.clicked.connect(self._copy)
        row.addWidget(copy)
        self.body.addLayout(row)
        self.wrong = label(kind="bad")
        self.wrong.setWordWrap(True)
        self.wrong.hide()
        self.body.addWidget(self.wrong)
        self.go = Button(tr("Run"), kind="filled")
        self.go.clicked.connect(self._accept)
        self.offer(self.go)
        self._fit()

    @property
    def scheduler(self) -> str:
        """What is chosen, as --scheduler takes it; "" for none."""
        how = self.how.choice
        if how == "local":
            return f"local:{self.workers.value()}"
        return self.address.text().strip() if how == "other" else ""

    def _note(self, words: str) -> None:
        said = label(words, factor=0.92, kind="secondary")
        said.setWordWrap(True)
        self.body.addWidget(said)

    def _fit(self, *_: object) -> None:
        self.pages.setCurrentIndex([name for name, *_ in HOW].index(self.how.choice))
        self.pages.setVisible(self.how.choice != "here")
        self.told.setText(tr(SAID[self.how.choice], forms=FORMS.partition(", ")[2]))
        self.wrong.hide()
        self.go.setEnabled(self.how.choice != "other" or bool(self.scheduler))
        self.command.say(" ".join(["hgviz", *map(_quoted, self._words)]))
        if self.isVisible():
            self.place()

    @property
    def _words(self) -> list[str]:
        again = self.again.isChecked() and not self.again.isHidden()
        return command(self._file, self.out.full, self.scheduler, again)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.command.full)

    def _ask(self) -> None:
        folder = QFileDialog.FileMode.Directory
        ask_for(self.window(), tr("Run into the folder"), folder, self._chose)

    def _chose(self, path: str) -> None:
        taken = any(Path(path).iterdir())  # a study has a folder of its own
        self.out.say(str(Path(path) / Path(self._file).stem) if taken else path)
        self._fit()

    def _accept(self) -> None:
        try:
            require_scheduler(self.scheduler)
        except HgvizError as error:
            self.wrong.setText(" ".join(map(tr, error.lines)))
            self.wrong.show()
            self.place()
            return
        out, again = self.out.full, "--again" in self._words
        self.finish()
        self.chosen.emit(out, self.scheduler, again)


def _quoted(word: str) -> str:
    return f'"{word}"' if " " in word else word


__all__ = ["STUDY_FILES", "RunDialog"]
