"""The head of the page of a study: its question, how much is done, the command that runs it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout

from hgviz.core import Step, Task
from hgviz.gui.controls import Button, PaneHead, Progress, Words
from hgviz.gui.language import tr
from hgviz.gui.sweeps.about import COUNTS, MEANS, STATES
from hgviz.gui.views.base import View, time_left

if TYPE_CHECKING:
    from hgviz.session import Session
    from hgviz.sweep import Sweep

PROGRESS = (
    "Cells that are done, and what is done of those that run. The time left is the mean time of "
    "finished cells of each kind times how many are left, over how many run."
)


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
        self.bar.setToolTip(tr(PROGRESS))
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
        """Show how many cells are in each state, and how long the rest takes."""
        asked = result.asked.question or result.path
        self.head.title.setText(result.title)
        self.head.note.say(asked)
        self.head.note.setAccessibleName(asked)
        done = sum(1.0 if one.state == "done" else one.share for one in result.standings)
        self.bar.show_part(done / max(1, len(result.standings)), result.complete)
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
    """How many cells are in each state: "12 done, 2 running"."""
    counts = sweep.counts
    return ", ".join(tr(COUNTS[state], n=counts[state]) for state in STATES if counts[state])


def progress_in_words(sweep: Sweep) -> str:
    """The time left, the machines that run cells, and how many cells are of other settings."""
    hosts = Counter(one.host for one in sweep.standings if one.state == "running" and one.host)
    parts = [tr("{n:,} on {host}", n=n, host=host) for host, n in hosts.most_common(3)]
    one, many = "{n:,} more machine", "{n:,} more machines"
    parts += [tr(many if len(hosts) > 4 else one, n=len(hosts) - 3)] if len(hosts) > 3 else []
    running = tr("running: {where}", where=", ".join(parts)) if parts else ""
    over = tr("everything is done") if sweep.complete and sweep.standings else ""
    left = tr(time_left(sweep.left)) if not sweep.complete and hosts else ""
    other = tr("{n:,} of other settings kept", n=sweep.changed) if sweep.changed else ""
    return "   ·   ".join(filter(None, (left, running, over, other)))


def _given(sweep: Sweep) -> Task[Sweep]:
    yield Step(0, 1)
    return sweep


__all__ = ["SummaryView"]
