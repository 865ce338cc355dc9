"""The live score: one large number, its interval, and the chart of how both grew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from hgviz import language
from hgviz.analysis.importance import MaskTrial, removal_costs, savings
from hgviz.core import HeadCost, HeadSet, ModelSpec
from hgviz.examples import EACH, SEED
from hgviz.gui import charts as plots
from hgviz.gui.actions import by_name
from hgviz.gui.charts import (
    Axis,
    Band,
    Chart,
    ChartView,
    ChartWidget,
    Intervals,
    Line,
    Note,
    Plot,
    Points,
)
from hgviz.gui.headgrid import place_noun
from hgviz.gui.language import tr
from hgviz.gui.sentences import term_explained
from hgviz.gui.trials import wanting
from hgviz.gui.widgets import Button, PaneHead, Progress, Words, hbox, label, tip, vbox

if TYPE_CHECKING:
    from hgviz.session import Session

RIGHT = {
    "classes": "Accuracy", "next": "Next {noun} right", "masked": "Hidden {noun} right",
    "tags": "Classes of {noun}s right", "ends": "Ends of answers right",
    "states": "Nearest to its own state",
}  # fmt: skip
COLUMNS = ("seen", "share right", "low", "high")
WITHOUT = "Write the model without the heads that are off"
LINES = {
    "Full model": "whole", "Difference": "difference", "Changed": "changed", "Removed": "saved",
}  # fmt: skip


class LiveView(ChartView):
    """What the model scores with heads off, from the first texts on."""

    title = "Score"
    figureless = "Export the pruning curve instead"
    needs = ("trial", "data", "off", "spec", "dark", "model", "checkpoint", "study")
    lane = "here"
    empty = (
        "Choose data to evaluate the model on",
        "A classifier needs texts with labels, a language model any text.",
    )
    empty_actions: tuple[tuple[str, str], ...] = (
        ("bundled_data", "Use bundled reviews"),
        ("choose_data", "Choose data…"),
    )

    topic = "prune-score"

    stopped = Signal()
    resumed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.head = PaneHead(tr("Accuracy"))
        self.change = Button(tr("Choose data…"))
        self.change.clicked.connect(self._change)
        self.remove = Button(tr("Prune and save model…"))
        self.remove.clicked.connect(self._remove)
        self.head.add(self.change, self.remove)
        self.value = label("–", factor=3.5, weight=600)
        self.percent = label("%", factor=1.55, kind="secondary")
        self.interval = label("", factor=1.08, weight=600)
        self.early = label(tr("95 % interval"), factor=0.92, kind="secondary")
        self.early.setToolTip(tip(term_explained("early")))
        for one in (self.value, self.percent, self.interval):
            one.setToolTip(tip(term_explained("right")))
        self.names: dict[str, QLabel] = {}
        self.lines: dict[str, Words] = {}
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(3)
        for row, (name, number) in enumerate(LINES.items()):
            self.names[name] = label(tr(name), factor=0.92, kind="secondary")
            self.names[name].setToolTip(tip(term_explained(number)))
            grid.addWidget(self.names[name], row, 0)
            self.lines[name] = Words(factor=0.92, weight=500)
            grid.addWidget(self.lines[name], row, 1)
        grid.setColumnStretch(1, 1)
        self.progress = Progress()
        self.stop = Button(tr("Stop"), "stop")
        self.stop.setFixedWidth(92)
        self.stop.clicked.connect(self._stop)
        self.status = Words(factor=0.92, kind="secondary")
        self.sample = [Words(factor=0.92, kind="secondary") for _ in range(3)]
        self.chart = ChartWidget(tr("How the score grew"))
        low = Qt.AlignmentFlag.AlignBaseline
        big = hbox(None, (self.value, 0, low), (self.percent, 0, low), spacing=8)
        big.addSpacing(8)
        big.addLayout(vbox(None, 1, *self.sample, 1), 1)
        near = hbox(None, self.interval, self.early, 1, spacing=8)
        bar = hbox(None, (self.progress, 1), self.stop, spacing=8)
        self.side = QWidget()
        column = vbox(self.side, big, near, grid, bar, self.status, 1, spacing=4)
        column.insertSpacing(2, 4)
        row = hbox(None, self.side, (self.chart, 1), margins=(16, 0, 16, 8), spacing=16)
        vbox(self.content, self.head, (row, 1))

    def request(self, session: Session) -> Callable[[], MaskTrial | None] | None:
        """The trial so far; nothing without data."""
        spec = session.spec
        if not session.data:
            if spec is not None and not spec.answers:
                self.empty = ("This model cannot be scored here", "It reads two texts.")
                self.empty_actions = (
                    ("open", "Open another…"),
                    ("open_sample", "Open sample model"),
                )
            elif (said := wanting(session)) is not None:
                self.empty, self.empty_actions = said
            elif session.model is None and not session.checkpoint:
                alone = "A capture alone cannot say what the model would answer."
                self.empty = ("Open the checkpoint to switch heads off", alone)
                self.empty_actions = (("open", "Open a checkpoint…"),)
            else:
                kind = type(self)
                self.empty, self.empty_actions = kind.empty, kind.empty_actions
            return None
        trial = session.trial
        return lambda: trial

    def draw(self, result: MaskTrial | None) -> None:
        """Put the numbers in."""
        session = self.session
        assert session is not None
        reason = by_name("remove_heads").why_off(session)
        self.remove.setEnabled(not reason)
        self.remove.setToolTip(tr(reason or WITHOUT))
        asked = result.examples.asked if result else session.spec.goal if session.spec else "next"
        noun = place_noun(asked, session.spec)
        metric = tr(RIGHT[asked], noun=tr(noun.rpartition(" ")[2]))
        self.head.title.setText(title_words(metric, len(session.off)))
        self.head.note.say(session.data.replace("\\", "/").rpartition("/")[2])
        self.head.note.setToolTip(session.data)
        self.chart.show_chart(chart_of(result, tr("{noun}s evaluated", noun=tr(noun))))
        note = result.examples.note if result is not None else ""
        for line, said in zip(self.sample, (*sample_words(result), note), strict=True):
            line.say(said)
        if result is None or not result.seen:
            self.value.setText("–")
            self.interval.setText("")
            for one in self.lines.values():
                one.say("")
            self.status.say(tr("Reading the data") if result is None else tr("Asking the model"))
            self.progress.show_part(0.0)
            self.stop.setVisible(False)
            return
        score, every = result.scores[-1], result.slices[0]
        self.value.setText(f"{100 * score.value:.1f}")
        ends = {"low": 100 * score.low, "high": 100 * score.high}
        self.interval.setText(tr("{low:.1f} to {high:.1f} %", **ends))
        share = 100 * every.before[0]
        self.lines["Full model"].say(
            tr("{share:.1f} %", share=share)
            if result.done
            else tr("{share:.1f} % on the same ones", share=share)
        )
        if result.off:
            self.lines["Difference"].say(difference(*every.change))
            self.lines["Changed"].say(tr(
                "{lost:,} newly wrong, {won:,} newly right; p {p}",
                lost=every.lost, won=every.won, p=p_words(every.p),
            ))  # fmt: skip
        else:
            self.lines["Difference"].say(tr("0: no head is off"))
            self.lines["Changed"].say(tr("none"))
        self.lines["Removed"].say(saved_words(session.spec, result.off, result.head_costs))
        self.progress.show_part(result.seen / max(1, result.total), result.done)
        seen = {"seen": result.seen, "total": result.total, "noun": tr(noun)}
        words = [tr("{seen:,} of {total:,} {noun}s", **seen)]
        self.stop.setVisible(not result.done)
        self.stop.setText(tr("Resume") if result.stopped else tr("Stop"))
        self.stop.wear("capture" if result.stopped else "stop")
        if not result.done:
            early = tr("looking early is not corrected for")
            words.append(tr("stopped") if result.stopped else early)
        self.status.say(" · ".join(words))
        said = share_words(score.value, score.low, score.high)
        self.setAccessibleDescription(f"{self.head.title.text()}: {said}")

    def as_table(self) -> list[list[str]] | None:
        """The score as it grew, in shares, then what the page says of the places seen last."""
        trial = self.session.trial if self.session is not None else None
        if trial is None or not trial.scores:
            return None
        rows = [[tr(one) for one in COLUMNS]]
        for one in trial.scores:
            rows.append([f"{one.seen}", *(repr(float(n)) for n in (one.value, one.low, one.high))])
        every = trial.slices[0]
        for name, numbers in (
            ("full model", every.before), ("difference", every.change),
            ("newly wrong", (every.lost,)), ("newly right", (every.won,)),
            ("McNemar p", (every.p,)),
        ):  # fmt: skip
            cells = [repr(one) for one in numbers]
            rows.append([tr(name), *cells, *[""] * (3 - len(cells))])
        return rows

    def resizeEvent(self, event: object) -> None:
        """The numbers keep their width, the chart takes the rest."""
        super().resizeEvent(event)  # type: ignore[arg-type]
        narrow = self.width() < 640
        self.side.setFixedWidth(max(230, self.width() * 9 // 20) if narrow else 356)

    def _change(self) -> None:
        self.asked.emit("choose_data")

    def _remove(self) -> None:
        self.asked.emit("remove_heads")

    def _stop(self) -> None:
        trial = self.session.trial if self.session else None
        (self.resumed if trial is not None and trial.stopped else self.stopped).emit()


def chart_of(trial: MaskTrial | None, title: str) -> Chart:
    """The score and its interval as they grew, and the full model; title: what is counted."""
    if trial is None or not trial.scores:
        return Chart()
    points, whole = trial.scores, trial.slices[0].before[0]
    # the limits hold still once a quarter was seen, as the interval only narrows then
    calm = [one for one in points if one.seen * 8 >= points[-1].seen] or points
    low = min(whole, *(one.low for one in calm), 1.0)
    high = max(whole, *(one.high for one in calm), 0.0)
    room = max(0.01, (high - low) * 0.12)
    up = Axis(low - room, high + room, words=plots.percent)
    total, last = max(1, trial.total), points[-1]
    across = Axis(-0.012 * total, 1.012 * total, title, plots.count)
    seen, values = [one.seen for one in points], [one.value for one in points]

    def point_words(at: int) -> str:
        one = points[at]
        share = share_words(one.value, one.low, one.high)
        return tr("{share} after {seen:,} of {total:,}", share=share, seen=one.seen, total=total)

    parts = (
        Band(seen, [one.low for one in points], [one.high for one in points]),
        Line([across.low, across.high], [whole, whole], "text", 1.0, "dash"),
        Line(seen, values),
        Points(seen, values, size=0.0, words=point_words),
        Intervals([last.seen], [last.low], [last.high]),
        Points([last.seen], [last.value], size=7.0),
        Note(tr("full model"), across.low, whole, anchor=(0, int(2 * whole < up.low + up.high))),
    )  # fmt: skip
    return Chart((Plot(across, up, parts),), point_words(len(points) - 1), of=trial.off, by_x=True)


def difference(value: float, low: float, high: float) -> str:
    """+0.05 points, −0.10 to +0.21."""
    ends = {"low": language.percentage_points(low), "high": language.percentage_points(high)}
    return tr("{value} points, {low} to {high}", value=language.percentage_points(value), **ends)


def share_words(value: float, low: float, high: float) -> str:
    """57.8 % (57.1 to 58.5)."""
    ends = {"low": 100 * low, "high": 100 * high}
    return tr("{value:.1f} % ({low:.1f} to {high:.1f})", value=100 * value, **ends)


def title_words(metric: str, off: int) -> str:
    """Accuracy with 2 heads off."""
    if not off:
        return tr("{metric}, full model", metric=metric)
    if off == 1:
        return tr("{metric} with 1 head off", metric=metric)
    return tr("{metric} with {n:,} heads off", metric=metric, n=off)


def p_words(p: float) -> str:
    """= 0.54, < 0.001."""
    return f"= {p:.2f}" if p >= 0.1 else f"= {p:.3f}" if p >= 0.001 else "< 0.001"


def sample_words(trial: MaskTrial | None) -> tuple[str, str]:
    """4,000 of 67,349 texts, | drawn with seed 0; nothing where all are looked at."""
    if trial is None or not trial.examples.among:
        return "", ""
    examples = trial.examples
    many = {"n": len(examples), "among": examples.among}
    said = (
        tr("{n:,} of {among:,} texts,", **many)
        if examples.asked in EACH
        else tr("{n:,} of {among:,} windows,", **many)
    )
    return said, tr("drawn with seed {seed}", seed=SEED)


def saved_words(spec: ModelSpec | None, off: HeadSet, weights: Sequence[HeadCost] | None) -> str:
    """295 k parameters (4.7 %) that are removed with the heads."""
    if spec is None or not off or weights is None:
        return tr("nothing") if weights is not None or not off else "–"
    parameters, _ = removal_costs(spec, weights, np.ones(1))
    count = float(savings(parameters, spec, sorted(off))[-1])
    size = f"{count / 1e6:.1f} M" if count >= 1e6 else f"{count / 1e3:.0f} k"
    if not spec.parameters:
        return tr("{size} parameters", size=size)
    return tr("{size} parameters ({share:.1f} %)", size=size, share=100 * count / spec.parameters)
