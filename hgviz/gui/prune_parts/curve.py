"""How many heads can go: the curve of the chosen score beside random orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout

from hgviz.analysis.importance import METHODS
from hgviz.core import Step, Task
from hgviz.figures.spec import Spec
from hgviz.gui.charts import ChartWidget
from hgviz.gui.language import tr
from hgviz.gui.prune_parts.explained import told
from hgviz.gui.prune_parts.line import (
    Line,
    chart_of,
    curve_of,
    line_of,
    mark_words,
    point_rows,
    stop_of,
)
from hgviz.gui.prune_parts.studied import possible
from hgviz.gui.view import View
from hgviz.gui.widgets import IconButton, PaneHead, Segments, tip

if TYPE_CHECKING:
    from hgviz.session import Session

COLUMNS = (
    "order", "heads off", "x", "share right", "low", "high", "change", "low", "high", "ms whole",
    "ms without them",
)  # fmt: skip
AXES = (
    ("heads", "Heads", ""), ("parameters", "Parameters", ""), ("flops", "FLOPs", ""),
    ("time", "Time", ""),
)  # fmt: skip
ONE_BY_ONE = (
    "Switch heads off one after the other, the cheapest first ({score}), and in 20 random orders "
    "to compare with."
)
STEPS = (  # what leads to a curve; the last of them that was done shows the next
    ("trace_curve", "Draw the curve"), ("measure_heads", "Measure…"),
    ("bundled_data", "Use the bundled reviews"), ("choose_data", "Choose data…"),
    ("open_studied", "Open the model…"), ("open", "Open a checkpoint…"),
)  # fmt: skip
NOTE = "cheapest first; drag the mark to try more or fewer"
MEASURED = "Medians of models that really lack the heads, as they were measured"
UNCOUNTED = "The weights of this model do not go by heads"
UNTIMED = "Not timed: hgviz curve --time measures milliseconds along a curve"


class CurveView(View):
    """The curve, its random band, k* in words; dragging the mark switches heads off."""

    title = "How many heads can go"
    figureless = "No curve is drawn yet"
    icon = "prune"
    needs = ("study", "score", "dark", "data", "trial")
    watches = ("off",)
    lane = "here"
    empty = ("Measure the heads to see how many can go", "The curve stands beside random orders.")

    topic = "prune-curve"

    switched = Signal(object, bool)
    told = Signal(str)  # what was measured at the mark, or under the pointer

    def __init__(self) -> None:
        super().__init__()
        self.head = PaneHead(tr(self.title), tr(NOTE))
        self.axis = Segments([(name, tr(words), icon) for name, words, icon in AXES], wide=64)
        self.axis.chosen.connect(self._again)
        self.export = IconButton("export", tr("Export figure… (Ctrl+E)"))
        self.export.clicked.connect(lambda: self.asked.emit("export"))
        self.head.add(self.axis, self.export)
        self.line: Line | None = None
        self.chart = ChartWidget(tr(self.title))
        self.chart.slid.connect(self._slide)
        self.chart.pointed.connect(self._tell)
        self.axis.allow("heads", True, tip(told("heads")))
        self.axis.setAccessibleName(tr("What is saved"))
        self.head.title.setToolTip(tip(told("allowed")))
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(self.chart, 1)
        self.start_at(self.chart)

    def request(self, session: Session) -> Task[Line] | None:
        """The curve of the chosen score, None where it is not traced."""
        self._offer_axes(session)
        found = line_of(session, self.axis.choice)
        if found is None:
            study = session.study
            if study is not None and session.score:
                self.empty = ("How many heads can go",
                              tr(ONE_BY_ONE, score=tr(METHODS[session.score].label)))  # fmt: skip
            else:
                self.empty = type(self).empty
            self.empty_actions = possible(session, *STEPS)[:1]
            return None
        return _given(found)

    def draw(self, result: Line) -> None:
        """Show it."""
        self.line = result
        self._redraw()

    def as_table(self) -> list[list[str]] | None:
        """Every point of the curve: what is off, saved and right there; then random orders."""
        line = self.line
        if line is None or self._stack.currentWidget() is not self.content:
            return None
        return [[tr(one) for one in COLUMNS], *point_rows(line)]

    def figure(self, session: Session) -> Spec | None:
        """The same curve on paper, over the same axis."""
        if line_of(session, self.axis.choice) is None:
            return None
        return Spec("curve", methods=(session.score,), axis=self.axis.choice)

    def noticed(self, name: str) -> None:
        """Move the mark to the heads that are off now."""
        if name == "off" and self.session is not None:
            self._redraw()
            if self.chart.hasFocus():
                self._tell("")

    @property
    def zoomed(self) -> bool:
        """Whether only a part of the curve is on screen."""
        return self.chart.zoomed

    def fit(self) -> None:
        """Show all of the curve."""
        self.chart.reset()

    @property
    def words(self) -> str:
        """Where the mark is, and what was measured there."""
        if self.line is None or self.session is None:
            return ""
        return mark_words(self.line, stop_of(self.line, self.session.off))

    def _redraw(self) -> None:
        if self.line is not None and self.session is not None:
            self.chart.show_chart(chart_of(self.line, self.axis.choice, self.session.off))

    def _slide(self, stop: int, begun: bool) -> None:
        assert self.line is not None
        self.switched.emit(self.line.curve.off(stop), begun)

    def _tell(self, point: str) -> None:
        """The point under the pointer, else the mark."""
        self.told.emit(point or self.words)

    def _offer_axes(self, session: Session) -> None:
        """Offer the axes that the curve of a session has values for."""
        curve, study = curve_of(session), session.study
        there = {
            "heads": True, "time": curve is not None and curve.times is not None,
            "parameters": study is not None and study.saved_parameters is not None,
        }  # fmt: skip
        there["flops"] = there["parameters"]
        if not there[self.axis.choice]:
            self.axis.choose("heads")
        for name in ("parameters", "flops"):
            self.axis.allow(name, there[name], tip(told(name)) if there[name] else tr(UNCOUNTED))
        self.axis.allow("time", there["time"], tr(MEASURED if there["time"] else UNTIMED))

    def _again(self, name: str) -> None:
        self.refresh()


def _given(line: Line) -> Task[Line]:
    yield Step(0, 1)
    return line
