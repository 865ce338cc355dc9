"""The live score: one large number, its interval, and the chart of how both grew."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QWidget

from hgviz import language
from hgviz.analysis.importance import MaskTrial, removal_costs, savings
from hgviz.core import HeadCost, HeadSet, MetricEstimate, ModelSpec
from hgviz.examples import EACH, SEED
from hgviz.gui import charts as plots
from hgviz.gui.actions import BY_NAME
from hgviz.gui.charts import Axis, Band, Chart, ChartView, Intervals, Line, Note, Plot, Points
from hgviz.gui.headgrid import place_noun
from hgviz.gui.language import tr
from hgviz.gui.sentences import counted, number_words, score_words, term_explained, unit_words
from hgviz.gui.trials import DATA_ACTIONS, possible, study_lacks
from hgviz.gui.view import Empty
from hgviz.gui.widgets import Button, Progress, Words, hbox, label, tip, vbox

if TYPE_CHECKING:
    from hgviz.session import Session

HEADLINES = {
    "classes": "Accuracy", "next": "Loss per {noun}", "masked": "Hidden {noun} right",
    "tags": "Classes of {noun}s right", "ends": "Ends of answers right",
    "states": "Nearest to its own state",
}  # fmt: skip
DATA_OF = {  # what a model is evaluated on, by what it reads
    "text": "A classifier needs texts with labels, a language model any text.",
    "image": "It needs a table of image files with their labels: image,label.",
    "audio": "It needs a table of sound files with their labels: audio,label.",
}
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
    topic = "prune-score"

    stopped = Signal()
    resumed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.change = Button(tr("Choose data…"))
        self.change.clicked.connect(partial(self.asked.emit, "choose_data"))
        self.remove = Button(tr("Prune and save model…"))
        self.remove.clicked.connect(partial(self.asked.emit, "remove_heads"))
        self.head.add(self.change, self.remove)
        self.value = label("–", factor=3.5, weight=600)
        self.unit = label(factor=1.55, kind="secondary")
        self.interval = label("", factor=1.08, weight=600)
        self.early = label(tr("95 % interval"), factor=0.92, kind="secondary")
        self.early.setToolTip(tip(term_explained("early")))
        self.lines: dict[str, Words] = {}
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(3)
        for row, (name, number) in enumerate(LINES.items()):
            title = label(tr(name), factor=0.92, kind="secondary")
            title.setToolTip(tip(term_explained(number)))
            grid.addWidget(title, row, 0)
            self.lines[name] = Words(factor=0.92, weight=500)
            grid.addWidget(self.lines[name], row, 1)
        grid.setColumnStretch(1, 1)
        self.progress = Progress()
        self.stop = Button(tr("Stop"), "stop")
        self.stop.setFixedWidth(92)
        self.stop.clicked.connect(self._stop)
        self.status = Words(factor=0.92, kind="secondary")
        self.sample = [Words(factor=0.92, kind="secondary") for _ in range(3)]
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

    def request(self, session: Session) -> Callable[[], MaskTrial | None] | Empty:
        """The trial so far; nothing without data."""
        spec, trial = session.spec, session.trial
        if session.data:
            return lambda: trial
        if spec is not None and not spec.answers:
            helps = ("open", "Open another…"), ("open_sample", "Open sample model")
            return Empty("This model cannot be scored here", "It reads two texts.", helps)
        lack = study_lacks(session)
        if lack is None and session.model is None and not session.checkpoint:
            alone = "A capture alone cannot say what the model would answer."
            helps = (("open", "Open a checkpoint…"),)
            lack = Empty("Open the checkpoint to switch heads off", alone, helps)
        text = DATA_OF[spec.modality if spec is not None else "text"]
        title = "Choose data to evaluate the model on"
        return lack or Empty(title, text, possible(session, *DATA_ACTIONS))

    def draw(self, result: MaskTrial | None) -> None:
        session = self.session
        reason = BY_NAME["remove_heads"].why_off(session)
        self.remove.setEnabled(not reason)
        self.remove.setToolTip(tr(reason or WITHOUT))
        asked = result.examples.asked if result else session.spec.goal if session.spec else "next"
        noun = place_noun(asked, session.spec)
        metric = tr(HEADLINES[asked], noun=tr(noun.rpartition(" ")[2]))
        words = "{metric} with {heads} off" if session.off else "{metric}, full model"
        heads = counted(len(session.off), "head")
        self.head.title.setText(tr(words, metric=metric, heads=heads))
        self.head.note.say(session.data.replace("\\", "/").rpartition("/")[2])
        self.head.note.setToolTip(session.data)
        self.chart.show_chart(chart_of(result, tr("{noun}s evaluated", noun=tr(noun))))
        for line, said in zip(self.sample, sample_words(result), strict=True):
            line.say(said)
        if result is None or not result.seen:
            self._show_nothing(tr("Reading the data") if result is None else tr("Asking the model"))
            return
        score, every = result.headline[-1], result.slices[0]
        is_loss = score.metric == "loss"
        self.value.setText(number_words(score.metric, score.value))
        self.value.setEnabled(result.done)  # paler while it may still change
        if self.unit.text() != unit_words(score.metric):
            self.unit.setText(unit_words(score.metric))
            words = tip(term_explained("loss_per_token" if is_loss else "right"))
            for part in (self.value, self.unit, self.interval):
                part.setToolTip(words)
        low, high = (number_words(score.metric, end) for end in (score.low, score.high))
        has_interval = math.isfinite(score.high)
        self.interval.setText(tr("{low} to {high}", low=low, high=high) if has_interval else "–")
        self.perplexity.setText(perplexity_words(score) if is_loss else "")
        self.perplexity.setVisible(is_loss)
        whole = (every.loss[0] if is_loss else every.before)[0]
        full = f"{number_words(score.metric, whole)} {self.unit.text()}"
        difference, changed = tr("0: no head is off"), tr("none")
        if result.off:
            difference = difference_words(score.metric, *result.change)
            p = language.p_value(every.p)
            p = p if p.startswith("<") else f"= {p}"
            changed = tr("{lost:,} newly wrong, {won:,} newly right; p {p}",
                         lost=every.lost, won=every.won, p=p)  # fmt: skip
        for line, words in zip(self.lines.values(), (
            full if result.done else tr("{score} on the same ones", score=full),
            difference, changed, saved_words(session.spec, result.off, result.head_costs),
        ), strict=True):  # fmt: skip
            line.say(words)
        self.progress.show_part(result.seen / max(1, result.total), result.done)
        words = tr("{seen:,} of {total:,} {noun}s",
                   seen=result.seen, total=result.total, noun=tr(noun))  # fmt: skip
        self.stop.setVisible(not result.done)
        self.stop.setText(tr("Resume") if result.stopped else tr("Stop"))
        self.stop.wear("capture" if result.stopped else "stop")
        if not result.done:
            early = tr("looking early is not corrected for")
            words = f"{words} · {tr('stopped') if result.stopped else early}"
        self.status.say(words)
        self.setAccessibleDescription(f"{self.head.title.text()}: {score_words(score)}")

    def _show_nothing(self, status: str) -> None:
        """Show that no example was evaluated yet."""
        self.value.setText("–")
        self.value.setEnabled(False)
        self.interval.setText("")
        for line in self.lines.values():
            line.say("")
        self.status.say(status)
        self.progress.show_part(0.0)
        self.stop.setVisible(False)

    def as_table(self) -> list[list[str]] | None:
        """The score as it grew, in shares, then what the page says of the places seen last."""
        trial = self.session.trial
        if trial is None or not trial.scores:
            return None
        every = trial.slices[0]
        score = "loss, nats" if trial.losses else "share right"
        rows = [[tr(title) for title in ("seen", score, "low", "high")]]
        for one in trial.headline:
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
        trial = self.session.trial
        (self.resumed if trial is not None and trial.stopped else self.stopped).emit()


def chart_of(trial: MaskTrial | None, title: str) -> Chart:
    """The score and its interval as they grew, and the full model; title: what is counted."""
    if trial is None or not trial.scores:
        return Chart()
    points, every = trial.headline, trial.slices[0]
    is_loss = bool(trial.losses)
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
        words, seen = score_words(points[at]), points[at].seen
        return tr("{score} after {seen:,} of {total:,}", score=words, seen=seen, total=total)

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


def difference_words(metric: str, *ends: float) -> str:
    """+0.05 points, −0.10 to +0.21; +0.012 nats, −0.003 to +0.027."""
    write, unit = language.percentage_points, tr("points")
    if metric == "loss":
        write, unit = partial(language.decimals, places=4, signed=True), tr("nats")
    value, low, high = map(write, ends)
    return tr("{value} {unit}, {low} to {high}", value=value, unit=unit, low=low, high=high)


def perplexity_words(loss: MetricEstimate) -> str:
    """perplexity 30.3 (29.4 to 31.3)."""
    value, low, high = (
        f"{math.exp(min(nats, 700)):.4g}" for nats in (loss.value, loss.low, loss.high)
    )
    if not math.isfinite(loss.high):  # of one window
        return tr("perplexity {value}", value=value)
    return tr("perplexity {value} ({low} to {high})", value=value, low=low, high=high)


def sample_words(trial: MaskTrial | None) -> tuple[str, str, str]:
    """4,000 of 67,349 texts, | drawn with seed 0 | a note; nothing where all are looked at."""
    if trial is None or not trial.examples.among:
        return "", "", "" if trial is None else trial.examples.note
    examples = trial.examples
    words = "{n:,} of {among:,} windows,"
    if examples.asked in EACH:
        words = "{n:,} of {among:,} texts,"
    said = tr(words, n=len(examples), among=examples.among)
    return said, tr("drawn with seed {seed}", seed=SEED), examples.note


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
