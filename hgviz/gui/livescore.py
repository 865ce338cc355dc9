"""The live score: one large number, its interval, and the chart of how both grew."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from hgviz import language
from hgviz.analysis.importance import MaskTrial, removal_costs, savings
from hgviz.core import HeadCost, HeadSet, MetricEstimate, ModelSpec
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
from hgviz.gui.trials import study_lacks
from hgviz.gui.view import Empty
from hgviz.gui.widgets import Button, PaneHead, Progress, Words, hbox, label, tip, vbox

if TYPE_CHECKING:
    from hgviz.session import Session

HEADLINES = {
    "classes": "Accuracy", "next": "Loss per {noun}", "masked": "Hidden {noun} right",
    "tags": "Classes of {noun}s right", "ends": "Ends of answers right",
    "states": "Nearest to its own state",
}  # fmt: skip
COLUMNS = {"loss": ("seen", "loss, nats", "low", "high")}
SHARE_COLUMNS = ("seen", "share right", "low", "high")
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
    empty = Empty(
        "Choose data to evaluate the model on",
        "A classifier needs texts with labels, a language model any text.",
        (("bundled_data", "Use bundled reviews"), ("choose_data", "Choose data…")),
    )

    topic = "prune-score"

    stopped = Signal()
    resumed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.head = PaneHead(tr("Accuracy"))
        self.change = Button(tr("Choose data…"))
        self.change.clicked.connect(lambda: self.asked.emit("choose_data"))
        self.remove = Button(tr("Prune and save model…"))
        self.remove.clicked.connect(lambda: self.asked.emit("remove_heads"))
        self.head.add(self.change, self.remove)
        self.value = label("–", factor=3.5, weight=600)
        self.unit = label("%", factor=1.55, kind="secondary")
        self.interval = label("", factor=1.08, weight=600)
        self.early = label(tr("95 % interval"), factor=0.92, kind="secondary")
        self.early.setToolTip(tip(term_explained("early")))
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
        big = hbox(None, (self.value, 0, low), (self.unit, 0, low), spacing=8)
        big.addSpacing(8)
        big.addLayout(vbox(None, 1, *self.sample, 1), 1)
        near = hbox(None, self.interval, self.early, 1, spacing=8)
        self.perplexity = label("", factor=0.92, kind="secondary")
        self.perplexity.setToolTip(tip(term_explained("perplexity")))
        self.perplexity.hide()
        bar = hbox(None, (self.progress, 1), self.stop, spacing=8)
        self.side = QWidget()
        column = vbox(self.side, big, near, self.perplexity, grid, bar, self.status, 1, spacing=4)
        column.insertSpacing(2, 4)
        row = hbox(None, self.side, (self.chart, 1), margins=(16, 0, 16, 8), spacing=16)
        vbox(self.content, self.head, (row, 1))

    def request(self, session: Session) -> Callable[[], MaskTrial | None] | Empty | None:
        """The trial so far; nothing without data."""
        spec = session.spec
        if not session.data:
            if spec is not None and not spec.answers:
                helps = ("open", "Open another…"), ("open_sample", "Open sample model")
                return Empty("This model cannot be scored here", "It reads two texts.", helps)
            if (lack := study_lacks(session)) is not None:
                return lack
            if session.model is None and not session.checkpoint:
                alone = "A capture alone cannot say what the model would answer."
                helps = (("open", "Open a checkpoint…"),)
                return Empty("Open the checkpoint to switch heads off", alone, helps)
            return None
        trial = session.trial
        return lambda: trial

    def draw(self, result: MaskTrial | None) -> None:
        session = self.session
        assert session is not None
        reason = by_name("remove_heads").why_off(session)
        self.remove.setEnabled(not reason)
        self.remove.setToolTip(tr(reason or WITHOUT))
        asked = result.examples.asked if result else session.spec.goal if session.spec else "next"
        noun = place_noun(asked, session.spec)
        metric = tr(HEADLINES[asked], noun=tr(noun.rpartition(" ")[2]))
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
            self.value.setEnabled(False)
            for one in self.lines.values():
                one.say("")
            self.status.say(tr("Reading the data") if result is None else tr("Asking the model"))
            self.progress.show_part(0.0)
            self.stop.setVisible(False)
            return
        score, every = result.headline[-1], result.slices[0]
        is_loss = score.metric == "loss"
        self.value.setText(number_words(score.metric, score.value))
        self.value.setEnabled(result.done)  # paler while it may still change
        self.unit.setText(tr("nats") if is_loss else "%")
        ends = [number_words(score.metric, end) for end in (score.low, score.high)]
        has_interval = math.isfinite(score.high)
        self.interval.setText(
            tr("{low} to {high}", low=ends[0], high=ends[1]) if has_interval else "–"
        )
        for one in (self.value, self.unit, self.interval):
            one.setToolTip(tip(term_explained("loss_per_token" if is_loss else "right")))
        if is_loss:
            self.perplexity.setText(perplexity_words(score))
        self.perplexity.setVisible(is_loss)
        whole = (every.loss[0] if is_loss else every.before)[0]
        whole_words = f"{number_words(score.metric, whole)} {self.unit.text()}"
        self.lines["Full model"].say(
            whole_words if result.done else tr("{score} on the same ones", score=whole_words)
        )
        if result.off:
            self.lines["Difference"].say(difference_words(score.metric, *result.change))
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
        said = score_words(score.metric, score.value, score.low, score.high)
        self.setAccessibleDescription(f"{self.head.title.text()}: {said}")

    def as_table(self) -> list[list[str]] | None:
        """The score as it grew, in shares, then what the page says of the places seen last."""
        trial = self.session.trial if self.session is not None else None
        if trial is None or not trial.scores:
            return None
        points, every = trial.headline, trial.slices[0]
        titles = COLUMNS.get(points[0].metric, SHARE_COLUMNS)
        rows = [[tr(one) for one in titles]]
        for one in points:
            rows.append([f"{one.seen}", *(repr(float(n)) for n in (one.value, one.low, one.high))])
        for name, numbers in (
            ("full model", every.loss[0] if trial.losses else every.before),
            ("difference", trial.change),
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

    def _stop(self) -> None:
        trial = self.session.trial if self.session else None
        (self.resumed if trial is not None and trial.stopped else self.stopped).emit()


def chart_of(trial: MaskTrial | None, title: str) -> Chart:
    """The score and its interval as they grew, and the full model; title: what is counted."""
    if trial is None or not trial.scores:
        return Chart()
    points, every = trial.headline, trial.slices[0]
    metric, is_loss = points[0].metric, bool(trial.losses)
    whole = (every.loss[0] if is_loss else every.before)[0]
    # the limits hold still once a quarter was seen, as the interval only narrows then
    calm = [one for one in points if one.seen * 8 >= points[-1].seen] or points
    ends = [end for one in calm for end in (one.low, one.high) if math.isfinite(end)]
    low, high = min(whole, *ends, points[-1].value), max(whole, *ends, points[-1].value)
    room = max(0.01, (high - low) * 0.12)
    up = Axis(low - room, high + room, words="{:g}".format if is_loss else plots.percent)
    total, last = max(1, trial.total), points[-1]
    across = Axis(-0.012 * total, 1.012 * total, title, plots.count)
    seen, values = [one.seen for one in points], [one.value for one in points]

    def point_words(at: int) -> str:
        one = points[at]
        score = score_words(metric, one.value, one.low, one.high)
        return tr("{score} after {seen:,} of {total:,}", score=score, seen=one.seen, total=total)

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


def number_words(metric: str, value: float) -> str:
    """A loss in nats as 3.412, a share in per cent as 57.8."""
    return f"{value:.3f}" if metric == "loss" else f"{100 * value:.1f}"


def score_words(metric: str, value: float, low: float, high: float) -> str:
    """57.8 % (57.1 to 58.5); 3.412 nats (3.380 to 3.444)."""
    unit = tr("nats") if metric == "loss" else "%"
    if not math.isfinite(high):  # of one window
        return f"{number_words(metric, value)} {unit}"
    value, low, high = (number_words(metric, one) for one in (value, low, high))
    return tr("{value} {unit} ({low} to {high})", value=value, unit=unit, low=low, high=high)


def difference_words(metric: str, value: float, low: float, high: float) -> str:
    """+0.05 points, −0.10 to +0.21; +0.012 nats, −0.003 to +0.027."""
    is_loss = metric == "loss"
    write = (
        partial(language.decimals, places=4, signed=True)
        if is_loss
        else (language.percentage_points)
    )
    value, low, high = map(write, (value, low, high))
    unit = tr("nats") if is_loss else tr("points")
    return tr("{value} {unit}, {low} to {high}", value=value, unit=unit, low=low, high=high)


def perplexity_words(loss: MetricEstimate) -> str:
    """perplexity 30.3 (29.4 to 31.3)."""
    value, low, high = (
        f"{math.exp(min(nats, 700)):.4g}" for nats in (loss.value, loss.low, loss.high)
    )
    if not math.isfinite(loss.high):  # of one window
        return tr("perplexity {value}", value=value)
    return tr("perplexity {value} ({low} to {high})", value=value, low=low, high=high)


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
