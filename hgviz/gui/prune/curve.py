"""How many heads can go: the curve of the chosen score beside random orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout

from hgviz.analysis.importance import METHODS
from hgviz.core import Step, Task
from hgviz.gui.actions import by_name
from hgviz.gui.controls import PaneHead, Segments
from hgviz.gui.prune.line import Line, line_of
from hgviz.gui.prune.slider import CurveChart
from hgviz.gui.views.base import View

if TYPE_CHECKING:
    from hgviz.session import Session

AXES = (("heads", "Heads", ""), ("parameters", "Parameters", ""), ("flops", "FLOPs", ""))


class CurveView(View):
    """The curve, its random band, k* in words; dragging the mark switches heads off."""

    title = "How many heads can go"
    icon = "prune"
    needs = ("study", "score", "per", "dark", "data", "trial")
    watches = ("off",)
    lane = "here"
    empty = ("Measure the heads to see how many can go", "The curve stands beside random orders.")

    switched = Signal(object, bool)

    def __init__(self) -> None:
        super().__init__()
        self.head = PaneHead(self.title, "cheapest first; drag the mark to try more or fewer")
        self.axis = Segments(AXES, wide=72)
        self.axis.chosen.connect(self._again)
        self.head.add(self.axis)
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

    def noticed(self, name: str) -> None:
        """The mark follows the mask."""
        if name == "off" and self.session is not None:
            self.chart.show_off(self.session.off)

    def _again(self, name: str) -> None:
        self.refresh()


def _given(line: Line) -> Task[Line]:
    yield Step(0, 1)
    return line
