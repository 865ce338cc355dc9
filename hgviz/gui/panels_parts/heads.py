"""The dock about the chosen head: its role in words, and its numbers among all heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFocusEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QVBoxLayout, QWidget

from hgviz.analysis.heads import METRICS, HeadFacts, peers, place
from hgviz.core import Capture, HeadId, Map, Step, Task
from hgviz.gui import theme
from hgviz.gui.heads_parts import metrics
from hgviz.gui.ink import faint, focus_ring
from hgviz.gui.language import tr
from hgviz.gui.view import View
from hgviz.gui.views import words
from hgviz.gui.views.choosing import CAPTURE
from hgviz.gui.views.words import measured
from hgviz.gui.widgets import Words, label
from hgviz.maps import LazyMap

if TYPE_CHECKING:
    from hgviz.session import Session

SHOWN = tuple(METRICS)[:5]  # what fits above the other docks; the table has all
PAD = 16
NAMED = 104  # px: the names of the metrics
VALUE = 44  # px: a number at the right
ROW = 18  # px: a line of ticks
MEASURING = (("jobs", "All jobs…"),)  # heads are measured by themselves


@dataclass(frozen=True, slots=True)
class Told:
    """A head's facts, and by metric the values of all self-attention heads."""

    facts: HeadFacts
    others: dict[str, list[float]]
    ranks: dict[str, str]
    unit: str
    limits: tuple[str, ...] = ()


class HeadPanel(View):
    """The chosen head's role in words with its evidence, and each metric among all heads."""

    title = "This head"
    topic = "head"
    icon = "eye"
    figureless = "It is a list of numbers: All heads draws them for every head"
    needs = ("selection", "facts", "capture")
    lane = "here"
    empty = ("Not measured yet", "What the head does appears here once all heads are measured.")

    def __init__(self) -> None:
        super().__init__()
        self.sentence = label(factor=1.08, weight=600)
        self.evidence = label(factor=0.92, kind="secondary")
        for one in (self.sentence, self.evidence):
            one.setWordWrap(True)
        self._told: Told | None = None
        self.lines: dict[str, tuple[Words, Ticks, QLabel]] = {}
        grid = QGridLayout()
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(2)
        grid.setColumnStretch(1, 1)
        grid.setColumnMinimumWidth(0, NAMED)
        for row, name in enumerate(SHOWN):
            named, ticks, value = Words(), Ticks(), label(weight=600)
            value.setFixedWidth(VALUE)
            value.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            ticks.told.connect(self._explain_number)
            self.lines[name] = (named, ticks, value)
            for column, one in enumerate((named, ticks, value)):
                grid.addWidget(one, row, column)
        self.count = label(factor=0.85, kind="secondary")
        self.count.setWordWrap(True)
        self._counted = ""
        column = QVBoxLayout(self.content)
        column.setContentsMargins(PAD, 10, PAD, 8)
        column.setSpacing(4)
        column.addWidget(self.sentence)
        column.addWidget(self.evidence)
        column.addSpacing(2)
        column.addLayout(grid)
        column.addWidget(self.count)
        column.addStretch(1)

    def request(self, session: Session) -> Task[Told] | None:
        """What is known of the chosen head."""
        facts = session.facts.get(session.selection.head_id)
        self.empty_actions = CAPTURE if session.capture is None else MEASURING
        if facts is None or session.capture is None:
            return None
        return _told(session.capture, facts, session.facts)

    def draw(self, result: Told) -> None:
        """Say it."""
        self._told, facts = result, result.facts
        self.sentence.setText(tr(facts.sentence))
        evidence = tr(facts.evidence).replace(" -", " −")
        self.evidence.setText("\n".join(filter(None, (evidence, *result.limits))))
        for name, line in zip_longest([*facts.metrics][: len(self.lines)], self.lines.values()):
            named, ticks, value = line
            for one in line:
                one.setVisible(name is not None)
            if name is None:  # such a head has fewer numbers
                continue
            named.say(metrics.named(name, result.unit))
            tip = f"{metrics.explained(name, result.unit)}\n{result.ranks[name]}"
            ticks.show_values(result.others[name], facts.metrics[name], tip)
            value.setText(measured(name, facts.metrics[name]))
            value.setToolTip(tip)
            value.setAccessibleName(f"{named.full}: {value.text()}, {result.ranks[name]}")
        kind = "cross-attention head" if facts.kind == "cross" else "self-attention head"
        many = words.counted(len(result.others["focus"]), kind)
        self._counted = tr("Each line: all {many}", many=many) if result.others["focus"] else ""
        self.count.setText(self._counted)
        self._fit()

    def _explain_number(self, said: str) -> None:
        """Say beneath the numbers what one of them means, or what all of them are."""
        self.count.setText(said or self._counted)
        self._fit()

    def as_text(self) -> str:
        """The role and its evidence."""
        return f"{self.sentence.text()}\n{self.evidence.text()}" if self._told is not None else ""

    def as_table(self) -> list[list[str]] | None:
        """Every number of the head, and its place among all heads."""
        if self._told is None:
            return None
        told, unit = self._told, self._told.unit
        return [
            [tr("Metric"), tr("Value"), tr("Place")],
            *(
                [metrics.named(name, unit), repr(float(value)), told.ranks[name]]
                for name, value in told.facts.metrics.items()
            ),
        ]

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Other widths wrap the words otherwise."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        # a scroll area asks nobody how high they are when so wide: wrapped words squeeze the rest
        if self.evidence.text():
            self.setMinimumHeight(self.content.layout().totalHeightForWidth(self.width()))


class Ticks(QWidget):
    """Where one value stands among many: a line of ticks with an orange dot."""

    told = Signal(str)  # what is said of it while it has the keyboard, "" when that goes

    def __init__(self) -> None:
        super().__init__()
        self.setFixedHeight(ROW)
        self.setMinimumWidth(40)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._values: Sequence[float] = ()
        self._mine = 0.0

    def show_values(self, values: Sequence[float], mine: float, said: str) -> None:
        """All values, and which is meant."""
        self._values, self._mine = values, mine
        self.setToolTip(said)
        self.setAccessibleName(said)
        self.update()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """What pointing at it says is said to the keyboard, too."""
        super().focusInEvent(event)
        self.told.emit(self.toolTip())

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """No longer."""
        super().focusOutEvent(event)
        self.told.emit("")

    def place(self, value: float) -> float:
        """The x of a value; the smallest stands at the left end, the largest at the right."""
        low, high = min((*self._values, self._mine)), max((*self._values, self._mine))
        part = (value - low) / (high - low) if high > low else 0.5
        return 6 + part * (self.width() - 12)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the ticks, darker where there are many."""
        now = theme.current()
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            middle = self.height() / 2
            painter.setPen(QPen(now.edge, 1))
            painter.drawLine(QPointF(6, middle), QPointF(self.width() - 6, middle))
            painter.setPen(QPen(faint(now.secondary, 0.35), 1.2))
            for value in self._values:
                x = self.place(value)
                painter.drawLine(QPointF(x, middle - 4), QPointF(x, middle + 4))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(now.mark)
            painter.drawEllipse(QPointF(self.place(self._mine), middle), 4.5, 4.5)
            if self.hasFocus():
                focus_ring(painter, QRectF(self.rect()))


def _told(capture: Capture, facts: HeadFacts, known: Mapping[HeadId, HeadFacts]) -> Task[Told]:
    yield Step(1, 1)
    every = peers(facts.head, known)
    others = {name: [one.metrics[name] for one in every if name in one.metrics] for name in METRICS}
    ranks = {}
    for name in facts.metrics:
        rank, total = place(name, facts.head, known)
        ranks[name] = tr("place {rank:,} of {total:,}, from the largest", rank=rank, total=total)
    unit = capture.key_prompt(facts.head.layer).unit
    return Told(
        facts, others, ranks, unit, _limits(capture.maps[facts.head.layer], facts.head.head)
    )


def _limits(one: Map | None, head: int) -> tuple[str, ...]:
    """What narrows a head besides which keys come later: its window, its chunk, a cap on its
    scores, and what a sink logit takes of its rows."""
    if not isinstance(one, LazyMap) or head not in one.heads:
        return ()
    rule, found = one.factors.rule, []
    if rule.band is not None:
        behind, ahead = rule.band
        if rule.causal or not ahead:
            found.append(tr("Window: {n:,} back", n=behind))
        else:
            found.append(tr("Window: {n:,} back, {m:,} ahead", n=behind, m=ahead))
    if (near := rule.of(one.heads.index(head)).nearest) is not None:
        found.append(tr("Streams: first {sink:,}, latest {recent:,}", sink=near[0], recent=near[1]))
    if rule.chunk is not None:
        found.append(tr("Within chunks of {n:,}", n=rule.chunk))
    if rule.softcap is not None:
        found.append(tr("Scores capped at ±{n:g}", n=rule.softcap))
    share = one.factors.sink_share(one.heads.index(head))
    if share is not None:
        found.append(tr("Sink logit: {n:.1f} % of a row, so its keys have {m:.1f} %",
                        n=100 * share, m=100 * (1 - share)))  # fmt: skip
    return tuple(found)
