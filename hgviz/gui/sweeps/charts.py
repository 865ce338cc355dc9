"""What a study found so far, drawn from the same content as its figures: what models reach, and
what is left as heads go, over seeds."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout

from hgviz.core import Step, Task
from hgviz.figures.spec import Spec
from hgviz.gui.controls import IconButton, PaneHead
from hgviz.gui.language import tr
from hgviz.gui.sweeps.about import called
from hgviz.gui.sweeps.drawing import PlotsChart, SeedsChart
from hgviz.gui.sweeps.spots import Chart
from hgviz.gui.views.base import View

if TYPE_CHECKING:
    from hgviz.session import Session
    from hgviz.sweep import Sweep

REST = 10  # what takes long to read is read again after so many times of rest


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What is drawn of the cells that are done; when it is worth looking again, on the clock."""

    path: str
    done: tuple[str, ...]
    content: Any
    again: float


class FoundView(View):
    """One chart of what is done so far; it changes as more is."""

    figureless = "Nothing of it is done yet"
    lane = "facts"  # many cells take a while to read together
    needs = ("sweep", "dark")
    kind = ""
    work = ""  # of the cells it is of
    without = ("", "")  # what is said where the study does not ask for it
    coming = ("", "")  # and where none is done yet
    means = ""  # what is drawn, with its formula and source

    pointed = Signal(str)  # a line about the point under the pointer or the keys

    def __init__(self, chart: Chart) -> None:
        super().__init__()
        self.head = PaneHead(tr(self.title))
        self.export = IconButton("export", tr("Export figure… (Ctrl+E)"))
        self.export.clicked.connect(self._export)
        self.head.add(self.export)
        self.head.title.setToolTip(tr(self.means))
        self.chart = chart
        chart.pointed.connect(self.pointed)
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(self.chart, 1)
        self._found: Found | None = None
        self.start_at(self.chart)

    def request(self, session: Session) -> Task[Found] | None:
        """What the done cells give; the same as before where no more are done."""
        sweep = session.sweep
        some = () if sweep is None else sweep.of(self.work)
        done = tuple(one.cell.key for one in some if one.state == "done")
        if sweep is None or not done:
            self.empty = self.coming if some else self.without
            self.empty_actions = (
                (("run_sweep", "Run…"),) if some else (("open_sweep_file", "Open a study file…"),)
            )  # fmt: skip
            return None
        return _drawn(self.kind, sweep, done, self._found)

    def draw(self, result: Found) -> None:
        """Show it."""
        self._found = result
        content = result.content
        total = len(self.session.sweep.of(self.work)) if self.session and self.session.sweep else 0
        so_far = tr("{n:,} of {all:,} cells so far", n=len(result.done), all=total)
        ribbon = getattr(content, "ribbon", "").rstrip(".")
        notes = [*content.notes, ribbon]
        words = [*([so_far] if len(result.done) < total else []), *map(tr, filter(None, notes))]
        self.head.note.say("   ·   ".join(words))
        self.chart.show_content(content)

    def figure(self, session: Session) -> Spec | None:
        """The same on paper."""
        some = () if session.sweep is None else session.sweep.of(self.work)
        return Spec(self.kind) if any(one.state == "done" for one in some) else None

    def as_text(self) -> str:
        """The numbers, tab-separated."""
        if self._found is None:
            return ""
        return "\n".join("\t".join(map(str, row)) for row in self._found.content.rows())

    def as_table(self) -> list[list[str]] | None:
        """The numbers that are drawn: a row for each seed and mean, or each point of a line."""
        if self._found is None:
            return None
        names, *rows = self._found.content.rows()
        return [[tr(str(one)) for one in names], *([_plain(one) for one in row] for row in rows)]

    def _export(self) -> None:
        self.asked.emit("export")


class ReachedView(FoundView):
    """What every model and activation reaches: a point for each seed, the mean, its interval."""

    title = "What each reaches"
    topic = "study-reached"
    icon = "compare"
    kind, work = "seeds", "score"
    means = (
        "A small mark is a seed, the large one the mean m of n seeds, the bar its interval of "
        "95 %: m ± t s / √n, Student's t with n − 1 degrees of freedom (Student 1908; "
        "docs/statistics.md)."
    )
    without = ("This study does not score its models", 'It does so with "score" among its asks.')
    coming = ("No model is scored yet", "A point for each seed will stand here, with their means.")

    def __init__(self) -> None:
        super().__init__(SeedsChart(tr(self.title)))


class BudgetsView(FoundView):
    """What is left as heads go, by method: means over seeds with their intervals."""

    title = "As heads go"
    topic = "study-budgets"
    icon = "prune"
    kind, work = "budgets", "curve"
    means = (
        "What is left with a share of heads off: the mean over seeds of what was measured there, "
        "shaded with Student's interval of 95 %, m ± t s / √n (docs/statistics.md). Random orders: "
        "the mean of those of a model and seed."
    )
    without = ("This study draws no curves", 'It does so with "curve" among its asks, and methods.')
    coming = ("No curve is done yet", "A line for each method will stand here, over seeds.")

    def __init__(self) -> None:
        super().__init__(PlotsChart(tr(self.title)))


def _drawn(kind: str, sweep: Sweep, done: tuple[str, ...], before: Found | None) -> Task[Found]:
    yield Step(0, 1, "reading what is done")
    begun = time.monotonic()
    if before is not None and before.path == sweep.path:
        early = begun < before.again and not sweep.complete
        if before.done == done or early:
            return before
    from hgviz.tasks.plotting import sweep_chart

    content = sweep_chart(kind, sweep)
    now = time.monotonic()
    return Found(sweep.path, done, content, now + REST * (now - begun))


def _plain(value: Any) -> str:
    """A value as Python writes it; nothing where there is none."""
    if isinstance(value, str):
        return called(value)
    return "" if value != value else repr(round(float(value), 10))


__all__ = ["BudgetsView", "ReachedView"]
