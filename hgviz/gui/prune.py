"""The Prune page: scores of all heads, the live score, masks, the pruning curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QIcon, QKeySequence
from PySide6.QtWidgets import QGridLayout, QStackedLayout, QWidget

from hgviz import language
from hgviz.analysis import importance
from hgviz.core import HeadCost, HeadId, HeadSet, MetricEstimate, ModelSpec
from hgviz.examples import EACH, SEED
from hgviz.figures.spec import Spec
from hgviz.gui import charts, headgrid, sentences, theme, widgets
from hgviz.gui.actions import BY_NAME
from hgviz.gui.changes import ChangedView, SlicesView
from hgviz.gui.charts import ChartView
from hgviz.gui.commands import Commands
from hgviz.gui.language import tr
from hgviz.gui.tables import REST, ROW, Column, RowTable
from hgviz.gui.trials import DATA_ACTIONS, LONG, possible, study_lacks
from hgviz.gui.view import Empty, View
from hgviz.gui.widgets import (
    Button,
    IconButton,
    PaneHead,
    Picker,
    Words,
    hbox,
    label,
    line,
    tip,
    vbox,
)
from hgviz.session import Session
from hgviz.study import Mask, PruningCurve
from hgviz.tasks.measurements import Patching

# --- live score -----------------------------------------------------------------------------------

HEADLINES = {
    "classes": "Accuracy", "next": "Loss per {noun}", "masked": "Masked {noun} accuracy",
    "tags": "Accuracy of {noun} labels", "ends": "Start and end accuracy",
    "states": "Self-retrieval accuracy",
}  # fmt: skip
DATA_OF = {  # what a model is evaluated on, by what it reads
    "text": "Classifiers need labelled texts, language models any text.",
    "image": "It needs a table of image files and labels (columns image,label).",
    "audio": "It needs a table of sound files and labels (columns audio,label).",
}
WITHOUT = "Save a model without the heads that are off"
LINES = {
    "Full model": "whole", "Difference": "difference", "Changed": "changed", "Removed": "saved",
}  # fmt: skip


class LiveView(ChartView):
    """The score of the model with heads off, updated while it is evaluated."""

    title = "Score"
    figureless = "Export the pruning curve instead"
    needs = ("trial", "data", "off", "spec", "dark", "model", "checkpoint", "study")
    lane = "here"
    topic = "prune-score"

    stopped = Signal()
    resumed = Signal()

    def __init__(self) -> None:
        super().__init__()
        ask = self.asked.emit
        self.change = Button(tr("Choose data…"), clicked=partial(ask, "choose_data"))
        self.remove = Button(tr("Prune and save model…"), clicked=partial(ask, "remove_heads"))
        self.head.add(self.change, self.remove)
        self.value = label("–", factor=3.5, weight=600)
        self.unit = label(factor=1.55, kind="secondary")
        self.interval = label("", factor=1.08, weight=600)
        about = tip(sentences.term_explained("early"))
        self.early = label(tr("95 % interval"), factor=0.92, kind="secondary", toolTip=about)
        self.lines: dict[str, Words] = {}
        grid = widgets.make(QGridLayout, horizontalSpacing=12, verticalSpacing=3)
        for row, (name, number) in enumerate(LINES.items()):
            about = tip(sentences.term_explained(number))
            title = label(tr(name), factor=0.92, kind="secondary", toolTip=about)
            grid.addWidget(title, row, 0)
            self.lines[name] = Words(factor=0.92, weight=500)
            grid.addWidget(self.lines[name], row, 1)
        grid.setColumnStretch(1, 1)
        self.progress = widgets.Progress()
        self.stop = Button(tr("Stop"), "stop", clicked=self._stop)
        self.stop.setFixedWidth(92)
        self.status = Words(factor=0.92, kind="secondary")
        self.sample = [Words(factor=0.92, kind="secondary") for _ in range(3)]
        low = Qt.AlignmentFlag.AlignBaseline
        big = hbox(None, (self.value, 0, low), (self.unit, 0, low), spacing=8)
        big.addSpacing(8)
        big.addLayout(vbox(None, 1, *self.sample, 1), 1)
        near = hbox(None, self.interval, self.early, 1, spacing=8)
        about = tip(sentences.term_explained("perplexity"))
        self.perplexity = label("", factor=0.92, kind="secondary", toolTip=about)
        self.perplexity.hide()
        bar = hbox(None, (self.progress, 1), self.stop, spacing=8)
        self.side = QWidget()
        column = vbox(self.side, big, near, self.perplexity, grid, bar, self.status, 1, spacing=4)
        column.insertSpacing(2, 4)
        row = hbox(None, self.side, (self.chart, 1), margins=(16, 0, 16, 8), spacing=16)
        vbox(self.content, self.head, (row, 1))

    def request(self, session: Session) -> Callable[[], importance.MaskTrial | None] | Empty:
        spec, trial = session.spec, session.trial
        if session.data:
            return lambda: trial
        if spec is not None and not spec.answers:
            helps = ("open", "Open another…"), ("open_sample", "Open sample model")
            return Empty("This model cannot be evaluated here", "It reads two texts.", helps)
        if (lack := study_lacks(session)) is not None:
            return lack
        if session.model is None and not session.checkpoint:
            alone = "A capture has no weights, so it cannot be evaluated."
            helps = (("open", "Open a checkpoint…"),)
            return Empty("Open the checkpoint to switch heads off", alone, helps)
        text = DATA_OF[spec.modality if spec is not None else "text"]
        helps = possible(session, *DATA_ACTIONS)
        return Empty("Choose data to evaluate the model on", text, helps)

    def draw(self, result: importance.MaskTrial | None) -> None:
        session = self.session
        reason = BY_NAME["remove_heads"].why_off(session)
        self.remove.setEnabled(not reason)
        self.remove.setToolTip(tr(reason or WITHOUT))
        asked = result.examples.asked if result else session.spec.goal if session.spec else "next"
        noun = headgrid.place_noun(asked, session.spec)
        metric = tr(HEADLINES[asked], noun=tr(noun.rpartition(" ")[2]))
        words = "{metric} with {heads} off" if session.off else "{metric}, full model"
        heads = sentences.counted(len(session.off), "head")
        self.head.title.setText(tr(words, metric=metric, heads=heads))
        self.head.note.say(session.data.replace("\\", "/").rpartition("/")[2])
        self.head.note.setToolTip(session.data)
        self.chart.show_chart(score_chart(result, tr("{noun}s evaluated", noun=tr(noun))))
        for note, said in zip(self.sample, sample_words(result), strict=True):
            note.say(said)
        if result is None or not result.seen:
            self._show_nothing(tr("Reading the data") if result is None else tr("Running model"))
            return
        score, every = result.headline[-1], result.slices[0]
        is_loss = score.metric == "loss"
        self.value.setText(sentences.number_words(score.metric, score.value))
        self.value.setEnabled(result.done)  # paler while it may still change
        if self.unit.text() != sentences.unit_words(score.metric):
            self.unit.setText(sentences.unit_words(score.metric))
            words = tip(sentences.term_explained("loss_per_token" if is_loss else "right"))
            for part in (self.value, self.unit, self.interval):
                part.setToolTip(words)
        low, high = (sentences.number_words(score.metric, end) for end in (score.low, score.high))
        has_interval = math.isfinite(score.high)
        self.interval.setText(tr("{low} to {high}", low=low, high=high) if has_interval else "–")
        self.perplexity.setText(perplexity_words(score) if is_loss else "")
        self.perplexity.setVisible(is_loss)
        whole = (every.loss[0] if is_loss else every.before)[0]
        full = f"{sentences.number_words(score.metric, whole)} {self.unit.text()}"
        difference, changed = tr("0 (no heads off)"), tr("none")
        if result.off:
            difference = difference_words(score.metric, *result.change)
            p = language.p_value(every.p)
            p = p if p.startswith("<") else f"= {p}"
            changed = tr("{lost:,} newly wrong, {won:,} newly right; p {p}",
                         lost=every.lost, won=every.won, p=p)  # fmt: skip
        for told, words in zip(self.lines.values(), (
            full if result.done else tr("{score} on the same {noun}s", score=full, noun=tr(noun)),
            difference, changed, saved_words(session.spec, result.off, result.head_costs),
        ), strict=True):  # fmt: skip
            told.say(words)
        self.progress.show_part(result.seen / max(1, result.total), result.done)
        words = tr("{seen:,} of {total:,} {noun}s",
                   seen=result.seen, total=result.total, noun=tr(noun))  # fmt: skip
        self.stop.setVisible(not result.done)
        self.stop.setText(tr("Resume") if result.stopped else tr("Stop"))
        self.stop.wear("capture" if result.stopped else "stop")
        if not result.done:
            early = tr("interim, not corrected for early stopping")
            words = f"{words} · {tr('stopped') if result.stopped else early}"
        self.status.say(words)
        self.setAccessibleDescription(f"{self.head.title.text()}: {sentences.score_words(score)}")

    def _show_nothing(self, status: str) -> None:
        self.value.setText("–")
        self.value.setEnabled(False)
        self.interval.setText("")
        for words in self.lines.values():
            words.say("")
        self.status.say(status)
        self.progress.show_part(0.0)
        self.stop.setVisible(False)

    def as_table(self) -> list[list[str]] | None:
        """The score as it grew, in shares, then what the page says of the places seen last."""
        trial = self.session.trial
        if trial is None or not trial.scores:
            return None
        every = trial.slices[0]
        score = "loss, nats" if trial.losses else "accuracy"
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


def score_chart(trial: importance.MaskTrial | None, title: str) -> charts.Chart:
    """The score and its interval as they grew, and the full model; title: what is counted."""
    if trial is None or not trial.scores:
        return charts.Chart()
    points, every = trial.headline, trial.slices[0]
    is_loss = bool(trial.losses)
    whole = (every.loss[0] if is_loss else every.before)[0]
    # the limits hold still once a quarter was seen, as the interval only narrows then
    calm = [one for one in points if one.seen * 8 >= points[-1].seen] or points
    ends = [end for one in calm for end in (one.low, one.high) if math.isfinite(end)]
    low, high = min(whole, *ends, points[-1].value), max(whole, *ends, points[-1].value)
    room = max(0.01, (high - low) * 0.12)
    up = charts.Axis(low - room, high + room, words="{:g}".format if is_loss else charts.percent)
    total, last = max(1, trial.total), points[-1]
    across = charts.Axis(-0.012 * total, 1.012 * total, title, charts.count)
    seen, values = [one.seen for one in points], [one.value for one in points]

    side = int(2 * whole < up.low + up.high)

    def point_words(at: int) -> str:
        words, seen = sentences.score_words(points[at]), points[at].seen
        return tr("{score} after {seen:,} of {total:,}", score=words, seen=seen, total=total)

    parts = (
        charts.Band(seen, [one.low for one in points], [one.high for one in points]),
        charts.Line([across.low, across.high], [whole, whole], "text", 1.0, "dash"),
        charts.Line(seen, values),
        charts.Points(seen, values, size=0.0, words=point_words),
        charts.Intervals([last.seen], [last.low], [last.high]),
        charts.Points([last.seen], [last.value], size=7.0),
        charts.Note(tr("full model"), across.low, whole, anchor=(0, side)),
    )  # fmt: skip
    return charts.Chart(
        (charts.Plot(across, up, parts),), point_words(len(points) - 1), of=trial.off, by_x=True
    )


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


def sample_words(trial: importance.MaskTrial | None) -> tuple[str, str, str]:
    """4,000 of 67,349 texts, | random seed 0 | a note; nothing where all are evaluated."""
    if trial is None or not trial.examples.among:
        return "", "", "" if trial is None else trial.examples.note
    examples = trial.examples
    words = "{n:,} of {among:,} windows,"
    if examples.asked in EACH:
        words = "{n:,} of {among:,} texts,"
    said = tr(words, n=len(examples), among=examples.among)
    return said, tr("random seed {seed}", seed=SEED), examples.note


def saved_words(spec: ModelSpec | None, off: HeadSet, weights: Sequence[HeadCost] | None) -> str:
    """295 k parameters (4.7 %) that are removed with the heads."""
    if spec is None or not off or weights is None:
        return tr("nothing") if weights is not None or not off else "–"
    parameters, _ = importance.removal_costs(spec, weights, np.ones(1))
    count = float(importance.savings(parameters, spec, sorted(off))[-1])
    size = f"{count / 1e6:.1f} M" if count >= 1e6 else f"{count / 1e3:.0f} k"
    if not spec.parameters:
        return tr("{size} parameters", size=size)
    return tr("{size} parameters ({share:.1f} %)", size=size, share=100 * count / spec.parameters)


# --- masks ----------------------------------------------------------------------------------------

MASK_HEIGHT, LEAST_MASKS, MOST_MASKS = 26, 3, 6  # px; rows in sight, as the window has room


class MaskList(QWidget):
    """Saved masks: a click or Return applies one, Delete deletes it."""

    picked = Signal(object)
    dropped = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._session: Session | None = None
        self.keep = Button(tr("Save mask"), kind="link")
        hint = tr("Save masks to compare their scores.")
        self.none = Words(hint, factor=0.92, kind="secondary")
        self.list = RowTable(
            tr("Masks"), lambda mask: mask.name, self._about, sorts=False, height=MASK_HEIGHT
        )
        self.list.horizontalHeader().hide()
        self.list.clicked.connect(lambda index: self.picked.emit(index.data(ROW).off))
        self.list.opened.connect(lambda mask: self.picked.emit(mask.off))
        self.list.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self.list.addAction(widgets.make(
            QAction, tr("Delete mask"), self.list, shortcut=QKeySequence(Qt.Key.Key_Delete),
            shortcutContext=Qt.ShortcutContext.WidgetShortcut, triggered=self._drop,
        ))  # fmt: skip
        title = label(tr("Masks"), weight=600)
        above = hbox(None, (title, 1), self.keep, margins=(16, 0, 12, 0), spacing=-1)
        below = hbox(None, self.none, margins=(16, 0, 16, 8), spacing=-1)
        vbox(self, above, below, self.list, margins=(0, 6, 0, 4), spacing=2)

    def show_masks(self, session: Session) -> None:
        """List the masks of a session, with the current one selected."""
        self._session, masks = session, session.masks

        def cell(column: int, mask: Mask) -> str:
            return mask_cells(mask, session.trial)[column]

        widths = (96, 200, REST)
        columns = [Column("", partial(cell, at), width=wide) for at, wide in enumerate(widths)]
        self.list.show_rows(columns, masks)
        self.list.choose(next((mask.name for mask in masks if mask.off == session.off), None))
        self.none.setVisible(not masks)
        self.list.setVisible(bool(masks))
        self.list.setMinimumHeight(MASK_HEIGHT * min(LEAST_MASKS, len(masks)) + 2)
        self.list.setMaximumHeight(MASK_HEIGHT * min(MOST_MASKS, len(masks)) + 2)
        self.keep.setEnabled(all(mask.off != session.off for mask in masks))

    def _about(self, mask: Mask) -> str:
        """Heads 0.0 and 2.1, and how many parameters go with them."""
        assert self._session is not None
        heads = ", ".join(map(str, sorted(mask.off))) or tr("no heads off")
        trial = self._session.trial
        saved = saved_words(self._session.spec, mask.off, trial.head_costs if trial else None)
        return tr("{name}: {heads}\nremoves {saved}", name=tr(mask.name), heads=heads, saved=saved)

    def _drop(self) -> None:
        if self.list.chosen is not None:
            self.dropped.emit(self.list.chosen.name)


def mask_cells(mask: Mask, trial: importance.MaskTrial | None) -> tuple[str, str, str]:
    """Its name, its score and the difference to the full model: "3 off", "57.8 % (57.1 to 58.5)",
    "−0.05 points, −0.10 to +0.21"; trial: the newest, which may be of this mask."""
    name, score = tr(mask.name), mask.score  # the name may be from here: Whole model, 3 off
    if score is None:
        runs = trial is not None and not (trial.done or trial.stopped) and trial.off == mask.off
        return name, tr("evaluating") if runs else tr("not evaluated"), ""
    parts = []
    if score.seen < score.total:
        parts.append(tr("{percent:.0f} % evaluated", percent=100 * score.seen / score.total))
    if mask.change is not None and mask.off:
        parts.append(difference_words(score.metric, *mask.change))
    return name, sentences.score_words(score), " · ".join(parts)


# --- scores ---------------------------------------------------------------------------------------

HINT = "Click or Space: switch a head off. Drag: several heads. Shift: a whole layer."


class ScoresView(View):
    """All heads as cells; the masks below."""

    title = "Heads"
    figureless = "No head is measured yet"
    needs = ("spec", "study", "score", "patching", "dark")
    watches = "off", "selection", "undo", "redo", "masks", "trial", "work"
    empty = Empty(
        "Open a model to switch its heads off", "Each cell is a head.",
        (("open_sample", "Open sample model"),),
    )  # fmt: skip

    topic = "prune-heads"

    switched = Signal(object, bool)
    coloured = Signal(str)  # by which score
    halted = Signal()
    described = Signal(str)  # about the head under the pointer

    def __init__(self) -> None:
        super().__init__()
        self.head = PaneHead(tr(self.title))
        self.undo = IconButton("undo", tr("Undo (Ctrl+Z)"))
        self.redo = IconButton("redo", tr("Redo (Ctrl+Shift+Z)"))
        self.clear = IconButton("eye", tr("Switch all heads on (Ctrl+Shift+A)"))
        self.head.add(self.undo, self.redo, self.clear, self.export_button())
        self.colour = Picker(tr("Colour"), 10)
        self.colour.activated.connect(self._colour)
        self._way = ""  # of patching, which colours the heads in place of a score
        self._patching: Patching | None = None
        self.measure = Button(tr("Measure…"), clicked=self._measure)
        word = label(tr("Colour"), factor=0.92, kind="secondary")
        self.grid = headgrid.HeadGrid(tr("Heads"), walks=True, switches=True)
        self._left = frozenset[HeadId](), ""  # off in a new model, and what to say of it
        self.grid.switched.connect(self.switched)
        self.grid.picked.connect(self.select_head)
        self.grid.hovered.connect(self._point)
        self.bar = headgrid.ShadeBar()
        self.hint = Words(tr(HINT), factor=0.92, kind="secondary")
        self.masks = MaskList()
        for button, action in (
            (self.undo, "undo"), (self.redo, "redo"), (self.clear, "all_on"),
            (self.masks.keep, "keep_mask"),
        ):  # fmt: skip
            button.clicked.connect(partial(self.asked.emit, action))
        vbox(
            self.content, self.head,
            hbox(None, word, (self.colour, 1), self.measure, margins=(16, 4, 16, 4), spacing=8),
            (self.grid, 1), self.bar, hbox(None, self.hint, margins=(16, 4, 16, 8)), line(),
            self.masks,
        )  # fmt: skip
        self.start_at(self.grid)

    def request(self, session: Session) -> Callable[[], headgrid.Shades] | None:
        if session.spec is None:
            return None
        if session.patching is not self._patching:
            self._patching = session.patching
            self._way = "denoised" if session.patching is not None else ""
        if session.patching is not None and self._way:
            return partial(headgrid.patch_shades, session.patching, self._way)
        if session.study is None or not session.score:
            return headgrid.Shades
        return partial(headgrid.shades, session.study, session.score)

    def draw(self, result: headgrid.Shades) -> None:
        session = self.session
        assert session.spec is not None
        self.grid.show_picture(headgrid.Scores(session.spec, result))
        self.bar.show_shades(result)
        methods = headgrid.offered(session.study)
        explained = sentences.method_explained
        choices = [(one.name, tr(one.label), explained(one.name)) for one in methods]
        if session.patching is not None:
            ways = headgrid.DIRECTIONS.items()
            choices += [(name, tr(title), tr(about)) for name, (title, about) in ways]
        self.colour.offer(choices or [("", tr("Not measured yet"))], self._way or session.score)
        self.colour.setEnabled(bool(choices))
        self.colour.setToolTip(tip(result.about) if result.about else "")
        for name in self.watches:
            self.noticed(name)

    def as_table(self) -> list[list[str]] | None:
        """A row for every head: whether it is off, its score and its interval."""
        session = self.session
        if session.spec is None:
            return None
        score = self.bar.shades.label or tr("score")
        rows = [[tr("head"), tr("switched off"), score, tr("low"), tr("high")]]
        for head in session.spec.heads:
            one = self.bar.shades.heads.get(head)
            values = () if one is None else (one.value, one.low, one.high)
            numbers = [f"{value:.6g}" for value in values] or [""] * 3
            rows.append([f"{head}", f"{int(head in session.off)}", *numbers])
        return rows

    def figure(self, session: Session) -> Spec | None:
        if session.study is None or not session.score or self._way:
            return None
        return Spec("scores", session.selection, methods=(session.score,))

    def noticed(self, name: str) -> None:
        """Update what needs no computation."""
        session = self.session
        if session.spec is None:
            return
        shown = self.grid.picture.spec if self.grid.picture is not None else None
        if name == "spec" and shown != session.spec:
            self._left = session.off, left_words(self.grid.off, session)
            self.grid.show_picture(headgrid.Scores(session.spec, headgrid.Shades()))
        if name in ("off", "spec"):
            self.grid.show_off(session.off)
            total, n = len(session.spec.heads), len(session.off)
            self.head.note.say(tr("{n:,} of {total:,} switched off", n=n, total=total))
            self.clear.setEnabled(bool(session.off))
        if name == "selection":
            self.grid.mark(session.selection.head_id)
        if name in ("undo", "redo", "spec"):
            self.undo.setEnabled(bool(session.undo))
            self.redo.setEnabled(bool(session.redo))
        if name in ("off", "selection") and session.mode == "prune":
            self._point(None)
        if name in ("off", "masks") or (name == "trial" and session.masks):
            self.masks.show_masks(session)
        if name in ("trial", "work", "off"):
            self._offer_measuring(session)

    def _offer_measuring(self, session: Session) -> None:
        job = session.job(*LONG)
        ready = session.trial is not None
        self.measure.setText(tr("Stop") if job else tr("Measure…"))
        self.measure.setIcon(theme.icon("stop", gap=widgets.ICON_GAP) if job else QIcon())
        self.measure.setEnabled(ready or job is not None)
        self.measure.setToolTip(tr(
            "Stop and keep what was measured" if job else "Compute the importance of every head"
            if ready else "Choose data first"
        ))  # fmt: skip
        if job is None:
            off, left = self._left
            self.hint.say(left if left and off == session.off else tr(HINT))
        else:
            part = sentences.percent(f"{100 * job.done / job.total:.0f}") if job.total else ""
            self.hint.say(" · ".join(filter(None, (tr(job.title), tr(job.note), part))))

    def _point(self, head: HeadId | None) -> None:
        """Describe the head under the pointer, else what is off and the chosen head: 12 heads off
        of 78 · Head 9.5 · on · Loss change: +0.4 thousandths of a bit per token."""
        session = self.session
        if session.spec is None:
            return
        words = self.grid.words(head or session.selection.head_id).replace("\n", " · ")
        if head is None:
            total, n = len(session.spec.heads), len(session.off)
            words = f"{tr('{n:,} of {total:,} heads off', n=n, total=total)}   ·   {words}"
        self.described.emit(words)

    def _colour(self) -> None:
        chosen = self.colour.currentData()
        self._way = chosen if chosen in headgrid.DIRECTIONS else ""
        if not self._way and chosen:
            self.coloured.emit(chosen)
        self.refresh()

    def _measure(self) -> None:
        if self.session.job(*LONG):
            self.halted.emit()
        else:
            self.asked.emit("measure_heads")


def left_words(before: HeadSet, session: Session) -> str:
    """Another model: all heads are on · Ctrl+Z restores the previous mask (6 off)."""
    if not before or before == session.off:
        return ""
    words = "Another model: all heads are on"
    if session.off:
        words = "Another model: {n:,} of its heads are off"
    now = tr(words, n=len(session.off))
    again = tr("Ctrl+Z restores the previous mask ({n:,} off)", n=len(before))
    return f"{now} · {again}" if session.undo else now


# --- line -----------------------------------------------------------------------------------------

AXES = {  # what is saved: on the button, under the axis
    "heads": ("Heads", "heads off"),
    "parameters": ("Parameters", "share of head parameters removed"),
    "flops": ("FLOPs", "share of head FLOPs removed"),
    "time": ("Time", "ms per batch of 16 texts, one core"),
}
ORDER = "least important first"
ELSEWHERE = "The current mask is not on this curve; click or press Right to return"


@dataclass(frozen=True, slots=True, eq=False)
class CurveLine:
    """A curve with its band. x (points,), its own and the band's: what is saved at each point, or
    milliseconds there, which random orders lack."""

    curve: PruningCurve
    band: importance.RandomBand
    x: np.ndarray
    band_x: np.ndarray
    each: np.ndarray  # (H + 1,): x of every number of heads off, in the curve's order
    allowed: int
    proven: int


def curve_of(session: Session) -> PruningCurve | None:
    """The newest curve of the chosen score, of those along which most heads go."""
    curves = reversed(session.study.curves if session.study is not None else ())
    mine = (one for one in curves if one.method == session.score)
    return max(mine, key=lambda one: len(one.order), default=None)


def line_of(session: Session, axis: str) -> CurveLine | None:
    """The curve of the chosen score with its random band, as far as it is drawn."""
    study, one = session.study, curve_of(session)
    if study is None or one is None:
        return None
    # one that is still being drawn is no order yet; none has times
    beside = importance.random_curves_beside(study, one)
    drawn = [other for other in beside if other.removed[-1] == len(other.order)]
    band = importance.random_band([] if axis == "time" else drawn)
    band_x, each = band.removed.astype(float), np.arange(len(one.order) + 1)
    x = one.removed
    if axis == "time" and one.times is not None:
        x = one.times[:, 1]
        each = np.interp(each, one.removed, x)
    elif axis in ("parameters", "flops"):
        each = importance.saved_share(study, one, axis)
        x = each[one.removed]
        if drawn:
            shares = [importance.saved_share(study, other, axis) for other in drawn]
            band_x = np.mean(shares, axis=0)[band.removed]
    return CurveLine(one, band, x, band_x, each, *importance.removable_heads(one))


def chart_of(line: CurveLine, axis: str, off: HeadSet) -> charts.Chart:
    """The curve over what is saved, its band and floor; the slider is at the mask."""
    one, band = line.curve, line.band
    whole = float(one.values[0])
    floor = whole - importance.ALLOWED_LOSS
    values = [*one.values, *one.low, *band.low, *band.high, floor]
    low, high = min(values), max(*one.values, *band.high, whole)
    room = max(0.005, (high - low) * 0.06)
    words = {"heads": charts.count, "time": "{:g}".format}.get(axis, charts.percent)
    first, last, share = 0.0, line.each[-1], 0.012
    if axis == "time":  # as measured: not in order
        first, last, share = float(line.x.min()), float(line.x.max()), 0.04
    beyond = share * (last - first) or 0.5
    across = charts.Axis(first - beyond, last + beyond, tr(AXES[axis][1]), words)
    up = charts.Axis(low - room, high + room, words=charts.percent)
    parts: list[charts.Part] = []
    if band.orders:
        parts += [
            charts.Band(line.band_x, band.low, band.high, "secondary", 0.22),
            charts.Line(line.band_x, band.middle, "secondary", 1.2, name=band_words(band)),
        ]
    allowed = float(line.each[line.allowed])
    if line.allowed:
        parts.append(charts.Line([allowed, allowed], [whole, up.low], "good", 1.5, "dot"))
    ends, side = [across.low, across.high], int(2 * allowed > across.low + across.high)
    parts += [
        charts.Line(ends, [floor, floor], "bad", 1.2, "dot", name=tr("full model − 1 point")),
        charts.Line(line.x, one.values),
        charts.Points(line.x, one.values, words=partial(point_words, line), name=tr(ORDER)),
        charts.Note(allowed_words(line), allowed, up.low, "good", (side, 1)),
    ]
    at = len(off) if one.off(len(off)) == off else None
    said = tr(ELSEWHERE) if at is None else tr("‹  {n} off  ›", n=at)
    return charts.Chart(
        (charts.Plot(across, up, tuple(parts)),),
        f"{picture_words(line)} · {mark_words(line, off)}",
        slider=charts.Slider(line.each, at, said, line.allowed), of=(axis, one.order), by_x=True,
    )  # fmt: skip


def band_words(band: importance.RandomBand) -> str:
    """20 random orders (10–90 %)."""
    return tr("{n} random orders (10–90 %)", n=band.orders)


def mark_words(line: CurveLine, off: HeadSet) -> str:
    """Where the slider is for a mask, and what was measured nearest to it."""
    if line.curve.off(len(off)) != off:
        return tr(ELSEWHERE)
    nearest = int(np.abs(line.curve.removed - len(off)).argmin())
    mark = tr("{n} of {total} heads off", n=len(off), total=len(line.curve.order))
    return f"{mark} · {point_words(line, nearest)}".replace("\n", " · ")


def allowed_words(line: CurveLine) -> str:
    """42 heads within 1 point of the full model (36 with 95 % confidence)."""
    if not line.allowed:
        return tr("no head within 1 point of the full model")
    if line.proven == line.allowed:
        return tr("{n} heads within 1 point (95 % confidence)", n=line.allowed)
    if not line.proven:
        return tr("{n} heads within 1 point (none with 95 % confidence)", n=line.allowed)
    said = "{n} heads within 1 point ({sure} with 95 % confidence)"
    return tr(said, n=line.allowed, sure=line.proven)


def picture_words(line: CurveLine) -> str:
    """The picture in words; a curve that is being drawn, or was stopped, as far as it is."""
    one = line.curve
    whole, last = (100 * float(one.values[at]) for at in (0, -1))
    said = "accuracy: full model {whole:.1f} %, all heads off {last:.1f} %"
    if one.removed[-1] < len(one.order):
        said = "accuracy so far: full model {whole:.1f} %, {n:,} heads off {last:.1f} %"
    said = tr(said, whole=whole, last=last, n=int(one.removed[-1]))
    return f"{said} · {allowed_words(line)}"


def point_words(line: CurveLine, at: int) -> str:
    """What was measured at a point: 12 heads off: 57.8 % (57.1 to 58.5), and its times."""
    one = line.curve
    count = int(one.removed[at])
    value, low, high = (100 * float(ends[at]) for ends in (one.values, one.low, one.high))
    words = "{heads} off: {value:.1f} % ({low:.1f} to {high:.1f})"
    said = tr(words, heads=sentences.counted(count, "head"), value=value, low=low, high=high)
    if one.times is None:
        return said
    whole, smaller = one.times[at]
    words = "pruned {smaller:.3g} ms, full model {whole:.3g} ms, measured alternately"
    return f"{said}\n{tr(words, smaller=smaller, whole=whole)}"


def point_rows(line: CurveLine) -> list[list[str]]:
    """A row for every point of the curve, then for the middle of random orders and its band."""
    one, band = line.curve, line.band
    times = () if one.times is None else one.times.T
    changes = one.change, one.change_low, one.change_high
    of_curve = line.x, one.values, one.low, one.high, *changes, *times
    of_band = line.band_x, band.middle, band.low, band.high
    rows = []
    for name, counts, numbers in (
        (tr(ORDER), one.removed, of_curve), (band_words(band), band.removed, of_band),
    ):  # fmt: skip
        for count, *values in zip(counts, *numbers, strict=True):
            rows.append([name, f"{count}", *(f"{value:.6g}" for value in values)])
    return [[*row, *[""] * (len(COLUMNS) - len(row))] for row in rows]


# --- curve ----------------------------------------------------------------------------------------

COLUMNS = (
    "order", "heads off", "x", "accuracy", "low", "high", "change", "low", "high", "ms full model",
    "ms pruned",
)  # fmt: skip
ONE_BY_ONE = (
    "Switch heads off one by one, least important first ({score}), and in 20 random "
    "orders for comparison."
)
STEPS = (("trace_curve", "Compute pruning curve"), ("measure_heads", "Measure…"))  # to a curve
NOTE = "least important first; drag the line to change how many heads are off"
MEASURED = "Median measured time of models without these heads"
UNCOUNTED = "The parameters per head of this model are unknown"
UNTIMED = "Not timed; measure the time with hgviz curve --time"


class CurveView(ChartView):
    """The pruning curve with random orders and k*; dragging the mark switches heads off."""

    title = "Pruning curve"
    figureless = "There is no curve yet"
    needs = ("study", "score", "dark", "data")
    watches = ("off", "trial")
    lane = "here"
    empty = Empty(
        "No pruning curve yet", "Measure the heads first, then compare with random pruning orders."
    )

    topic = "prune-curve"

    switched = Signal(object, bool)
    described = Signal(str)  # what was measured at the mark, or under the pointer

    def __init__(self) -> None:
        super().__init__(tr(NOTE))
        self._has_trial = False
        choices = [(name, words) for name, (words, _) in AXES.items()]
        self.axis = widgets.Segments(choices, tr("X axis"), wide=64)
        self.axis.chosen.connect(self.refresh)
        self.head.add(self.axis, self.export_button())
        self.line: CurveLine | None = None
        self.chart.slid.connect(self._slide)
        self.chart.pointed.connect(self._describe)
        self.axis.allow("heads", True, tip(sentences.term_explained("heads")))
        self.head.title.setToolTip(tip(sentences.term_explained("allowed")))
        vbox(self.content, self.head, (self.chart, 1))

    def request(self, session: Session) -> Callable[[], CurveLine] | Empty:
        self._offer_axes(session)
        found = line_of(session, self.axis.choice)
        if found is None:
            empty = type(self).empty
            if session.study is not None and session.score:
                words = tr(ONE_BY_ONE, score=tr(importance.METHODS[session.score].label))
                empty = Empty("Pruning curve", words)
            return empty._replace(actions=possible(session, *STEPS)[:1])
        return lambda: found

    def draw(self, result: CurveLine) -> None:
        self.line = result
        self.chart.show_chart(chart_of(result, self.axis.choice, self.session.off))

    def as_table(self) -> list[list[str]] | None:
        """Every point of the curve: what is off, saved and right there; then random orders."""
        if self.line is None or not self.drawn:
            return None
        return [[tr(one) for one in COLUMNS], *point_rows(self.line)]

    def figure(self, session: Session) -> Spec | None:
        if line_of(session, self.axis.choice) is None:
            return None
        return Spec("curve", methods=(session.score,), axis=self.axis.choice)

    def noticed(self, name: str) -> None:
        """Move the mark to the heads that are off now; offer the next step to a curve."""
        has_trial = self.session.trial is not None
        if name == "trial" and has_trial != self._has_trial:
            self._has_trial = has_trial
            self.refresh()
        if name == "off" and self.line is not None:
            self.draw(self.line)
            if self.chart.hasFocus():
                self._describe("")

    def _slide(self, stop: int, begun: bool) -> None:
        assert self.line is not None
        self.switched.emit(self.line.curve.off(stop), begun)

    def _describe(self, point: str) -> None:
        """The point under the pointer, else where the mark is and what was measured there."""
        if self.line is not None:
            self.described.emit(point or mark_words(self.line, self.session.off))

    def _offer_axes(self, session: Session) -> None:
        curve, study = curve_of(session), session.study
        is_timed = curve is not None and curve.times is not None
        is_counted = study is not None and study.saved_parameters is not None
        there = {"heads": True, "time": is_timed, "parameters": is_counted, "flops": is_counted}
        if not there[self.axis.choice]:
            self.axis.choose("heads")
        for name in ("parameters", "flops"):
            words = tip(sentences.term_explained(name)) if is_counted else tr(UNCOUNTED)
            self.axis.allow(name, is_counted, words)
        self.axis.allow("time", is_timed, tr(MEASURED if is_timed else UNTIMED))


LEFT, NARROW = 600, 480  # px of the wall, and in windows narrower than WIDE
WIDE = 1500
# px of height of score, curve and table: at least, and in a window of 1000 px
HEIGHTS = ((296, 296), (150, 296), (120, 304))
TABLES = (("changed", "Changes"), ("slices", "Classes and slices"))


class PrunePage(QWidget):
    """Heads | score over curve over changed predictions, or classes and slices."""

    def __init__(self) -> None:
        super().__init__()
        self.heads, self.live, self.curve = ScoresView(), LiveView(), CurveView()
        self.changed, self.slices = ChangedView(), SlicesView()
        self.tables: dict[str, ChangedView | SlicesView]
        self.tables = {"changed": self.changed, "slices": self.slices}
        self.below = QWidget()
        self.turns = QStackedLayout(self.below)
        self.tabs = tuple(widgets.Segments(TABLES) for _ in self.tables)  # the same on both
        for table, row in zip(self.tables.values(), self.tabs, strict=True):
            table.head.add_beside_title(row)
            table.head.title.hide()  # the tabs say it
            row.chosen.connect(self.show_table)
            self.turns.addWidget(table)
        panes = self.live, self.curve, self.below
        self.down = widgets.splitter(Qt.Orientation.Vertical, *panes)
        self.across = widgets.splitter(Qt.Orientation.Horizontal, self.heads, self.down)
        for at, (pane, (least, high)) in enumerate(zip(panes, HEIGHTS, strict=True)):
            pane.setMinimumHeight(least)
            self.down.setStretchFactor(at, high)
        self.down.setSizes([high for _, high in HEIGHTS])
        self.across.setStretchFactor(1, 1)
        self.heads.setMinimumWidth(320)
        self._left = 0
        vbox(self, self.across, spacing=-1)

    @property
    def views(self) -> tuple[View, ...]:
        return (self.heads, self.live, self.curve, *self.tables.values())

    def join(self, commands: Commands) -> None:
        pruning, masks = commands.pruning, self.heads.masks
        for view in (self.heads, self.curve):
            view.switched.connect(pruning.switch)
        self.heads.coloured.connect(pruning.colour)
        masks.picked.connect(pruning.switch)
        masks.dropped.connect(pruning.drop)
        say = commands.window.chosen_words.say
        for one in (self.heads, masks.list, self.curve, self.changed.table, self.slices.table):
            one.described.connect(say)
        self.heads.halted.connect(pruning.stop_measuring)
        self.live.stopped.connect(pruning.stop_trial)
        self.live.resumed.connect(pruning.resume)
        self.changed.opened.connect(commands.open_changed)

    def take_focus(self) -> bool:
        return self.heads.take_focus()

    def respond(self, width: int, height: int) -> None:
        """Narrow the wall in narrow windows."""
        left = LEFT if width >= WIDE else NARROW
        if left != self._left:
            self._left = left
            self.across.setSizes([left, max(1, width - left)])

    def show_table(self, name: str) -> None:
        typed = widgets.has_focus(self.below)
        self.turns.setCurrentWidget(self.tables[name])
        for tabs in self.tabs:
            tabs.choose(name)
        if typed:  # the keyboard stays on the tab that was pressed
            self.tabs[list(self.tables).index(name)].setFocus()
