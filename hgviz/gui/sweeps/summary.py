"""The head of the page of a study: its question, how much is done, the command that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout

from hgviz.core import Step, Task
from hgviz.gui.language import tr
from hgviz.gui.runs import COUNTS, MEANS, STATES
from hgviz.gui.view import View
from hgviz.gui.widgets import Button, PaneHead, Progress, Words

if TYPE_CHECKING:
    from hgviz.session import Session
    from hgviz.sweep import Sweep


class SummaryView(View):
    """A line of words and a bar; why the folder cannot be read, if it cannot."""

    title = "Study"
    topic = "study"
    icon = "table"
    figureless = "It says how a study stands"
    needs = ("sweep", "sweep_trouble", "dark")
    lane = "here"
    empty = ("No study is open", "Open a study file (.toml), or the folder that one was run into.")
    empty_actions = (("open_sweep_file", "Open a study file…"),)

    def __init__(self) -> None:
        super().__init__()
        self.head = PaneHead(tr("Study"))
        self.run = Button(tr("Copy the command"), "copy")
        self.run.setToolTip(tr("Copy the command that computes what is missing"))
        self.run.clicked.connect(self._copy)
        self.head.add(self.run)
        self.head.setFixedHeight(44)
        self.bar = Progress(8)
        self.bar.setAccessibleName(tr("How far the study is"))
        self.counts = Words(factor=0.92, weight=500)
        self.counts.setToolTip(tr(MEANS["State"]))
        self.left = Words(factor=0.92, kind="secondary")
        self.left.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.trouble = Words(kind="bad")
        self.trouble.hide()
        row = QHBoxLayout()
        row.setSpacing(16)
        row.addWidget(self.counts, 1)
        row.addWidget(self.left, 1)
        inside = QVBoxLayout()
        inside.setContentsMargins(16, 0, 16, 0)
        inside.setSpacing(6)
        inside.addWidget(self.bar)
        inside.addLayout(row)
        inside.addWidget(self.trouble)
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 10)
        column.setSpacing(6)
        column.addWidget(self.head)
        column.addLayout(inside)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def request(self, session: Session) -> Task[Sweep] | None:
        """The study as it was seen last."""
        return None if session.sweep is None else _given(session.sweep)

    def draw(self, result: Sweep) -> None:
        """Show how many cells are in each state."""
        asked = result.asked.question or result.path
        self.head.title.setText(result.title)
        self.head.note.say(asked)
        self.head.note.setAccessibleName(asked)
        cells = max(1, len(result.standings))
        self.bar.show_part(result.counts["done"] / cells, result.complete)
        self.counts.say(counts_in_words(result))
        self.bar.setAccessibleDescription(self.counts.full)
        self.left.say(progress_in_words(result))
        trouble = self.session.sweep_trouble if self.session is not None else ""
        self.trouble.say(trouble)
        self.trouble.setVisible(bool(trouble))
        self.run.setEnabled(not result.complete)

    def as_text(self) -> str:
        """The same in words."""
        sweep = self.session.sweep if self.session is not None else None
        if sweep is None:
            return ""
        return f"{sweep.title}: {counts_in_words(sweep)}. {progress_in_words(sweep)}"

    def as_table(self) -> list[list[str]] | None:
        """How many cells are in each state."""
        sweep = self.session.sweep if self.session is not None else None
        if sweep is None:
            return None
        rows = [[tr(state), str(sweep.counts[state])] for state in STATES]
        return [[tr("State"), tr("Cells")], *rows]

    def _copy(self) -> None:
        self.asked.emit("run_sweep")


def counts_in_words(sweep: Sweep) -> str:
    """How many cells are in each state: "12 done, 2 waiting"."""
    counts = sweep.counts
    return ", ".join(tr(COUNTS[state], n=counts[state]) for state in STATES if counts[state])


def progress_in_words(sweep: Sweep) -> str:
    """Whether everything is done, and how many cells are of other settings."""
    over = tr("everything is done") if sweep.complete and sweep.standings else ""
    other = tr("{n:,} of other settings kept", n=sweep.changed) if sweep.changed else ""
    return "   ·   ".join(filter(None, (over, other)))


def _given(sweep: Sweep) -> Task[Sweep]:
    yield Step(0, 1)
    return sweep


__all__ = ["SummaryView"]
