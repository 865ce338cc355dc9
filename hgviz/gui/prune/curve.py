"""How many heads can go: the curve of the chosen score beside random orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout

from hgviz.analysis.importance import METHODS
from hgviz.core import Step, Task
from hgviz.figures.spec import Spec
from hgviz.gui.actions import by_name
from hgviz.gui.controls import IconButton, PaneHead, Segments
from hgviz.gui.prune.line import Line, curve_of, line_of
from hgviz.gui.prune.pruning import TIMES
from hgviz.gui.prune.slider import CurveChart
from hgviz.gui.views.base import View
from hgviz.gui.working import GOING

if TYPE_CHECKING:
    from hgviz.session import Session

AXES = (
    ("heads", "Heads", ""), ("parameters", "Parameters", ""), ("flops", "FLOPs", ""),
    ("time", "Time", ""),
)  # fmt: skip
NOTE = "cheapest first; drag the mark to try more or fewer"
MEASURED = "Medians of models that really lack the heads, as they were measured"
UNTIMED = "Not timed yet: the clock measures milliseconds along this curve"
CLOCK = "Time models that really lack the heads, at each point of this curve"


class CurveView(View):
    """The curve, its random band, k* in words; dragging the mark switches heads off."""

    title = "How many heads can go"
    figureless = "No curve is drawn yet"
    icon = "prune"
    needs = ("study", "score", "per", "dark", "data", "trial")
    watches = ("off", "work")
    lane = "here"
    empty = ("Measure the heads to see how many can go", "The curve stands beside random orders.")

    switched = Signal(object, bool)
    halted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.head = PaneHead(self.title, NOTE)
        self.axis = Segments(AXES, wide=64)
        self.axis.chosen.connect(self._again)
        self.clock = IconButton("clock", CLOCK)
        self.clock.clicked.connect(self._time)
        self.export = IconButton("export", "Export figure… (Ctrl+E)")
        self.export.clicked.connect(lambda: self.asked.emit("export"))
        self.head.add(self.axis, self.clock, self.export)
        self.chart = CurveChart()
        self.chart.switched.connect(self.switched)
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(self.chart, 1)
        self.setFocusProxy(self.chart)

    def request(self, session: Session) -> Task[Line] | None:
        """The curve of the chosen score, None where it is not traced."""
        self._offer_times(session)
        found = line_of(session, self.axis.choice)
        if found is None:
            study = session.study
            if study is not None and session.score:
                label = METHODS[session.score].label.lower()
                self.empty = ("How many heads can go",
                              f"Switch heads off one after the other by {label}, and in 20 random "
                              "orders to compare with.")  # fmt: skip
                can = not by_name("trace_curve").why_off(session)
                self.empty_actions = (("trace_curve", "Draw the curve"),) if can else ()
            else:
                self.empty = type(self).empty
                ready = session.trial is not None
                self.empty_actions = (("measure_heads", "Measure…"),) if ready else ()
            return None
        return _given(found)

    def draw(self, result: Line) -> None:
        """Show it."""
        assert self.session is not None
        self.chart.show_line(result, self.axis.choice)
        self.chart.show_off(self.session.off)

    def figure(self, session: Session) -> Spec | None:
        """The same curve on paper, over the same axis."""
        if line_of(session, self.axis.choice) is None:
            return None
        return Spec("curve", methods=(session.score,), axis=self.axis.choice)

    def noticed(self, name: str) -> None:
        """The mark follows the mask, the clock what is timed."""
        if self.session is None:
            return
        if name == "off":
            self.chart.show_off(self.session.off)
        if name == "work":
            self._show_work(self.session)

    # --- times ------------------------------------------------------------------------------------

    def _offer_times(self, session: Session) -> None:
        """Time is an axis of curves that have times; one that just got them is shown over it."""
        one = curve_of(session)
        has = one is not None and one.times is not None
        before = self.chart.line.curve if self.chart.line is not None else None
        if has and before is not None and before.times is None and before.order == one.order:
            self.axis.choose("time")
        if not has and self.axis.choice == "time":
            self.axis.choose("heads")
        self.axis.allow("time", has, MEASURED if has else UNTIMED)
        self._show_work(session)

    def _show_work(self, session: Session) -> None:
        """A clock to measure with, or what is timed and how far, and how to stop it."""
        job = next((one for one in session.work if one.key == TIMES and one.state in GOING), None)
        reason = by_name("time_curve").why_off(session)
        self.clock.wear(*("stop", "Stop timing") if job else ("clock", reason or CLOCK))
        self.clock.setEnabled(job is not None or not reason)
        part = f", {job.done / job.total:.0%}".replace("%", " %") if job and job.total else ""
        self.head.note.say(f"timing{part}{job.note and ' · '}{job.note}" if job else NOTE)

    def _time(self) -> None:
        if self.clock.accessibleName() == "Stop timing":
            self.halted.emit()
        else:
            self.asked.emit("time_curve")

    def _again(self, name: str) -> None:
        self.refresh()


def _given(line: Line) -> Task[Line]:
    yield Step(0, 1)
    return line
