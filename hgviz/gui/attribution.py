"""Which tokens, heads and layers an answer comes from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QRectF, QSize, QSizeF
from PySide6.QtGui import QPainter, QResizeEvent
from PySide6.QtWidgets import QSizePolicy

from hgviz import settings, tasks
from hgviz.core import Capture, Display, HeadId, Step, progress
from hgviz.figures.spec import Spec
from hgviz.gui import ink, sentences, tables, theme
from hgviz.gui.grid import CaptureWords, Names
from hgviz.gui.headgrid import HeadGrid, Scores, Shade, Shades, draw_signed_bar
from hgviz.gui.jobs import Runner
from hgviz.gui.language import tr
from hgviz.gui.neurons import number
from hgviz.gui.sentences import Citation, explanation
from hgviz.gui.view import CAPTURE, OPEN_CHECKPOINT, Empty, HeadTitle, View
from hgviz.gui.widgets import Button, Picker, Segments, Words, hbox, label, line, tip, vbox
from hgviz.session import Session
from hgviz.tasks.attribution import Attribution, KeyScores, Question

if TYPE_CHECKING:
    from hgviz.models.model import Model

EXPLAIN = "attribute"  # a job
MOST = 8  # answers that are offered


def current_question(session: Session) -> Question | None:
    """The question at hand: the chosen one where it still fits, else about what the model says."""
    capture, chosen = session.capture, session.question
    if capture is None or not capture.complete:
        return None
    is_of_main = capture.query_prompt(session.selection.layer) is capture.main
    position = session.selection.query if is_of_main else None
    found = tasks.default_question(capture.spec.goal, capture.logits, capture.main, position)
    if found is None or chosen is None:
        return found
    found = replace(found, steps=chosen.steps, baseline=chosen.baseline)
    fits = chosen.position == found.position and chosen.number in dict(choices(capture, found))
    return replace(found, number=chosen.number) if fits else found


def choices(
    capture: Capture, question: Question, model: Model | None = None
) -> tuple[tuple[int, str], ...]:
    """The numbers and names of the outputs that can be attributed: the classes; or the actual next
    token and the tokens that the model predicts there."""
    position, logits = question.position, capture.logits
    assert logits is not None
    shares = sentences.shares(logits if position is None else logits[position])
    follows = None
    if position is None:
        names = dict(enumerate(capture.spec.labels))
    else:
        best = np.argsort(-shares, kind="stable")[:MOST].tolist()
        if capture.spec.goal == "next" and position + 1 < len(capture.main):
            follows = int(capture.main.ids[position + 1])
            best = best if follows in best else [follows, *best[:-1]]
        name_of = sentences.namer(capture, model)
        names = {token: sentences.quoted(name_of(token)) for token in best}
    answers = {one: f"{name} {sentences.share(float(shares[one]))}" for one, name in names.items()}
    if follows is not None:
        answers[follows] = tr("{output} (actual)", output=answers[follows])
    return tuple(answers.items())


class AttributionRunner(Runner):
    """Asks the model, and puts what it finds into the session."""

    def start(self) -> None:
        """Attribute the answer that is asked about; a job before it is given up."""
        session, question = self.session, current_question(self.session)
        capture = session.capture
        if capture is None or question is None:
            return
        model, path, activation = session.model, session.checkpoint, session.activation or None

        def attribute() -> tuple[Model, Attribution]:
            """Open the model where it is not, and ask it."""
            asked = model or tasks.load(path, settings.load().device, activation=activation)
            texts = capture.prompt, question, capture.target, capture.off
            return asked, tasks.attribute(asked, *texts, layers=True)

        self.working.start(
            self.lanes.engine, EXPLAIN, tr("Computing attribution"), attribute, self._done,
            on_step=self._part, bound=True,
        )  # fmt: skip

    def stop(self) -> None:
        self.working.stop(EXPLAIN)

    def _part(self, step: Step) -> None:
        if isinstance(step.value, Attribution):
            self.session.put(explained=step.value)

    def _done(self, result: tuple[Model, Attribution]) -> None:
        model, found = result
        same = self.session.spec is not None and self.session.spec.digest == model.spec.digest
        if self.session.model is None and same:
            self.session.put(model=model)
        self.session.put(explained=found)


# --- words ----------------------------------------------------------------------------------------

SUM = (
    "The attributions sum to {total}; the output changes by {change}, from {start} to {end}. "
    "Completeness error {missing} with {steps}."
)
RANKED = "Similarity of two rankings of the keys: 1 identical, −1 reversed, 0 unrelated"
SPEARMAN = Citation("ρ = cov(r, r′) / (σ_r σ_r′)", "Spearman 1904; Jain and Wallace 2019")
CONDUCTS = "The part of the output's change from the baseline that passes through a head"
CONDUCTANCE = Citation("Σ_e ∫₀¹ ∂F / ∂h_e · dh_e", "Dhamdhere et al. 2018")
COMPLETES_ALONE = "As many steps as a completeness error below 0.1 % needs, at most 4,096"
COMPLETES = "The attributions should sum to the change of the output along the path"
COMPLETENESS = Citation("Σ_i IG_i = F(x) − F(x′)", "Sundararajan et al. 2017")
PAIRS = (  # as KeyScores.agreements has them
    "attention and gradient × attention: {value}",
    "attention and integrated gradients: {value}",
    "gradient × attention and integrated gradients: {value}",
)


def complete_words(found: Attribution) -> str:
    """How far the sum is from what it should be, and of how many steps."""
    percent = tr("{number} %", number=f"{100 * found.error:.2g}")
    words = tr(
        SUM, total=sentences.with_sign(found.total), change=sentences.with_sign(found.change),
        start=sentences.weight(found.start, 3), end=sentences.weight(found.value, 3),
        missing=tr("less than 0.001 %") if found.error < 1e-5 else percent,
        steps=sentences.counted(found.steps, "step"),
    )  # fmt: skip
    return f"{words} {tr('More steps reduce it.')}" if found.error >= 1e-3 else words


def agreement_words(scores: KeyScores) -> str:
    """The rank correlations of the three measures."""
    words = "; ".join(
        tr(pair, value=sentences.with_sign(value, 2))
        for pair, value in zip(PAIRS, scores.agreements, strict=True)
        if not math.isnan(value)
    )
    if not words:
        return tr("Too few keys, or all values are equal: there are no ranks to compare.")
    keys = sentences.counted(len(scores.columns), "key")
    all_words = "Spearman rank correlation of magnitudes over {keys}: {agreement}."
    return tr(all_words, agreement=words, keys=keys)


# --- keys -----------------------------------------------------------------------------------------

KEY, VALUE = 132, 56  # px: the column of the key, the figures
MEASURES = (  # of KeyScores.values: what a column is called, what it means, its formula
    ("Attention", "Attention weight from the query to the key, as in the map",
     Citation("a_ij", "Vaswani et al. 2017")),
    ("Gradient × attention", "The weight times the gradient of the output with respect to it",
     Citation("a_ij ∂F / ∂a_ij", "Chefer et al. 2021")),
    ("Integrated gradients", "What the key's tokens add to the output, computed with captum",
     Citation("Σ_e (x_e − x′_e) ∫₀¹ ∂F(x′ + t (x − x′)) / ∂x_e dt", "Sundararajan et al. 2017")),
)  # fmt: skip


def measured_keys(scores: KeyScores) -> dict[str, np.ndarray]:
    """The three measures of the keys by their titles; NaN where the keys are no tokens."""
    nothing = np.full(len(scores.columns), np.nan)
    return {
        tr(title): nothing if values is None else values
        for (title, *_), values in zip(MEASURES, scores.values, strict=True)
    }


def score_columns(scores: KeyScores, names: Names) -> list[tables.Column]:
    """The columns of a list of keys with three bars each; its rows are columns of the map."""
    places = {column: place for place, column in enumerate(scores.columns.tolist())}

    def column_of(title: str, values: np.ndarray, about: str) -> tables.Column:
        most = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
        is_signed = bool((values < 0).any())

        def value(column: int) -> float:
            return float(values[places[column]])

        def paint(painter: QPainter, box: QRectF, column: int, chosen: bool) -> None:
            if math.isnan(amount := value(column)):
                ink.unseen(painter, box.adjusted(0, 4, 0, -4))
            else:
                _paint_bar(painter, box, amount, most, is_signed)

        return tables.Column(
            title, lambda at: number(value(at)), value, tables.REST, about, paint=paint
        )

    columns = [tables.key_column(names, KEY)]
    measured = zip(measured_keys(scores).items(), MEASURES, strict=True)
    for (title, values), (_, about, source) in measured:
        columns.append(column_of(title, values, explanation(tr(about), source)))
    return columns


def _paint_bar(painter: QPainter, area: QRectF, value: float, most: float, signed: bool) -> None:
    """A bar with its number at the right; signed ones to both sides of a middle line."""
    now, part = theme.current(), max(-1.0, min(1.0, value / most))
    track = QRectF(area.left(), area.center().y() - 5, max(0.0, area.width() - VALUE), 10)
    painter.fillRect(track, now.hover)
    if signed:
        draw_signed_bar(painter, track, part)
    else:
        painter.fillRect(QRectF(track.topLeft(), QSizeF(part * track.width(), 10)), now.secondary)
    theme.write(painter, area, number(value), theme.font(0.92), now.text, theme.TO_RIGHT)


ROW_HEIGHT = 22  # px
STEPS = (64, 128, 256, 512, 1024)
BASELINES = (
    ("blank", "blank tokens", "Baseline: a mask, padding or space token at every position"),
    ("mean", "mean embedding", "Baseline: the average of all embeddings at every position"),
    ("zero", "zero embedding", "Baseline: zeros; gradients vary more along the path"),
)
ROWS = (("query", "This query"), ("all", "All queries"))
LOW, NARROW = 360, 560  # px
CONDUCTED = "Conductance of each head"
CONDUCTED_BESIDE = "Conductance of each head; right: integrated gradients of each layer"
NOTHING = Empty("No output to attribute yet", "Run a model on a text first.", CAPTURE)
STATES = Empty(
    "This model outputs hidden states only",
    "Attribution needs logits: open the classifier or language model.", OPEN_CHECKPOINT,
)  # fmt: skip
SIGNAL = Empty(
    "Attribution needs tokens", "This model reads images or sound: see its maps in the other tabs."
)
STOPPED = Empty(
    "This capture has no output", "It was stopped before the model computed one.", CAPTURE[:1]
)
NO_MODEL = Empty(
    "Attribution needs the model", "Open the checkpoint that this capture was made with.",
    OPEN_CHECKPOINT,
)  # fmt: skip
HINT = "Compute attributes this output to tokens and heads."
STALE = "These results are for another output or path; Compute updates them."


@dataclass(frozen=True, slots=True, eq=False)
class AnswerReport:
    """The answers on offer, and the scores of one head where an attribution is computed."""

    capture: Capture
    question: Question
    choices: tuple[tuple[int, str], ...]
    found: Attribution | None = None
    scores: KeyScores | None = None
    names: Names | None = None


def report_of(
    model: Model | None,
    capture: Capture,
    question: Question,
    found: Attribution | None,
    head: HeadId,
    query: int | None,
) -> AnswerReport:
    """The answers on offer, and the scores of the keys of a head; query None: of all queries."""
    progress(0, 1)
    report = AnswerReport(capture, question, choices(capture, question, model), found)
    if found is None or found.slopes is None:
        return report
    level, spans = capture.spec.layers[head.layer].key_level, capture.key_spans(head.layer)
    names = CaptureWords().names(capture, level, spans)
    return replace(report, scores=tasks.key_scores(found, capture, head, query), names=names)


def conductance_shades(found: Attribution) -> Shades:
    """What every head conducts of an answer as colours, and what every layer does as bars."""
    most = max(map(abs, found.heads.values()), default=0.0) or 1.0
    heads = {head: Shade(value, value, value) for head, value in found.heads.items()}
    return Shades(
        tr("Conductance"), tr("of the output"), (-most, most), heads,
        layers=found.layers or {}, digits=2,
    )  # fmt: skip


class AttributionView(View):
    """Asks on request; then every head and query is compared at once."""

    name, title, topic = "attribution", "Attribution", "attribution"
    figureless = "No attribution has been computed yet"
    lane = "map"  # the engine may be busy asking
    needs = ("capture", "selection", "question", "explained", "off")
    watches = ("work",)

    def __init__(self) -> None:
        super().__init__()
        self.report: AnswerReport | None = None
        self.head = HeadTitle()
        self.rows = Segments(ROWS, tr("Queries whose attention is compared"))
        self.rows.chosen.connect(self.refresh)
        self.head.add(self.rows, self.export_button())
        self.answer = Picker(tr("Output"), 12)
        self.answer.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.steps = Picker(tr("Integration steps"), 7)
        steps = [(count, sentences.counted(count, "step")) for count in STEPS]
        self.steps.offer([(0, tr("Auto"), tr(COMPLETES_ALONE)), *steps])
        self.baseline = Picker(tr("Baseline"), 12)
        self.baseline.offer((name, tr(words), tr(why)) for name, words, why in BASELINES)
        for picker in (self.answer, self.steps, self.baseline):
            picker.activated.connect(self._ask_for)
        self.button = Button(tr("Compute"), kind="filled", clicked=self._start_or_stop)
        self.button.setMinimumWidth(self.button.sizeHint().width())
        self._asks = label(tr("Output"), factor=0.92, kind="secondary")
        controls = hbox(
            None, self._asks, (self.answer, 1), self.steps, self.baseline, self.button,
            margins=(16, 4, 16, 8), spacing=8,
        )  # fmt: skip
        self.agreement = label(wrap=True, toolTip=explanation(tr(RANKED), SPEARMAN))
        self.bars = tables.RowTable(
            tr("Every key: attention, gradient times attention, attribution"), about=self._words,
            sorts=False, height=ROW_HEIGHT,
        )  # fmt: skip
        self.bars.picked.connect(self._pick)
        self.heads = Words(factor=0.85, weight=600, kind="secondary")
        self.heads.setContentsMargins(16, 6, 16, 2)
        self.heads.setToolTip(explanation(tr(CONDUCTS), CONDUCTANCE))
        self.grid = HeadGrid(tr(CONDUCTED), walks=True)
        self.grid.picked.connect(self.select_head)
        self._line = line()
        about = explanation(tr(COMPLETES), COMPLETENESS)
        self.complete = label(factor=0.92, kind="secondary", wrap=True, toolTip=about)
        for part in (self.agreement, self.complete):
            part.setContentsMargins(16, 4, 16, 8)
            part.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        vbox(
            self.content, self.head, controls, line(), self.agreement, (self.bars, 3), self._line,
            self.heads, (self.grid, 2), self.complete,
        )  # fmt: skip
        self.start_at(self.bars)

    def request(self, session: Session) -> Callable[[], AnswerReport] | Empty:
        """The answers on offer, and the scores of the selected head for this text."""
        capture, question, chosen = session.capture, current_question(session), session.selection
        if capture is None or not len(capture.main):
            return NOTHING
        if capture.spec.modality != "text":
            return SIGNAL
        if capture.spec.goal == "states":
            return STATES
        if question is None:
            return STOPPED
        if session.model is None and not session.checkpoint:
            return NO_MODEL
        found = session.explained
        found = found if found is not None and found.is_of(capture) else None
        query = None if self.rows.choice == "all" else chosen.query
        return partial(report_of, session.model, capture, question, found, chosen.head_id, query)

    def draw(self, result: AnswerReport) -> None:
        self.report, spec = result, result.capture.spec
        self.head.name_head(spec, self.session.selection.head_id)
        question = result.question
        self.answer.offer(result.choices, question.number)
        if question.position is not None:
            at = result.capture.main.label(question.position)
            self.answer.setToolTip(tip(tr("Prediction of the model after “{token}”", token=at)))
        self.steps.setCurrentIndex(self.steps.findData(question.steps))
        self.baseline.setCurrentIndex(self.baseline.findData(question.baseline))
        if result.scores is None or result.names is None:
            self.bars.show_rows([], [])
        else:
            columns = score_columns(result.scores, result.names)
            self.bars.show_rows(columns, result.scores.columns.tolist())
        if result.found is not None:
            picture = Scores(spec, conductance_shades(result.found))
            self.grid.show_picture(picture)
            self.grid.show_off(result.found.off)
            least = picture.arrange(QSize(self.width(), 0)).height
            self.grid.setMaximumHeight(round(least) + 4)
            self.heads.say(tr(CONDUCTED_BESIDE if result.found.layers else CONDUCTED))
        self.noticed("selection")
        self._fit()
        self._show_state(result)

    def noticed(self, name: str) -> None:
        report = self.report
        if report is None:
            return
        if name == "selection":
            chosen = self.session.selection
            is_there = chosen.key is not None and report.capture is self.session.capture
            self.bars.choose(report.capture.column(chosen.layer, chosen.key) if is_there else None)
            self.grid.mark(chosen.head_id)
        elif name == "work":
            self._show_state(report)

    def figure(self, session: Session) -> Spec | None:
        """The keys of the head as they stand here; without them, what every head conducts."""
        report = self.report
        if report is None or report.found is None or report.capture is not session.capture:
            return None
        chosen = session.selection
        if self.rows.choice == "all":
            chosen = replace(chosen, query=None)
        method = "heads" if report.scores is None else "attention"
        return Spec("attribution", chosen, Display(scale="linear"), methods=(method,))

    def as_table(self) -> tables.Table | None:
        """The numbers of the keys; before they are there, what every head conducts."""
        report = self.report
        if report is None or report.found is None:
            return None
        if report.scores is None or report.names is None:
            heads = sorted(report.found.heads.items())
            rows = [[str(head), tables.in_full(value)] for head, value in heads]
            return [[tr("head"), tr("conductance")], *rows]
        scores = report.scores
        return tables.key_table(report.names, scores.columns.tolist(), measured_keys(scores))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        is_found = self.report is not None and self.report.found is not None
        for part in (self._line, self.heads, self.grid):
            part.setVisible(is_found and self.height() >= LOW)
        self._asks.setVisible(self.width() >= NARROW)

    def _show_state(self, report: AnswerReport) -> None:
        """Show how far the job is; else how well the keys agree, how good what was found is, and
        whether it is what is asked now."""
        work, found, scores = self.session.job(EXPLAIN), report.found, report.scores
        self.button.setText(tr("Stop" if work else "Compute"))
        agreement, complete = tr(HINT), ""
        if found is not None:
            agreement = "" if scores is None else agreement_words(scores)
            stale = tr(STALE) if found.question != report.question else ""
            complete = " ".join(filter(None, (stale, complete_words(found))))
        if work is not None:
            part = sentences.share(round(work.part, 2)) if work.total else ""
            parts = (tr(work.note or work.title), part, sentences.time_left(work.left))
            under_way = " · ".join(filter(None, parts))
            agreement, complete = (under_way, "") if found is None else (agreement, under_way)
        self.agreement.setText(agreement)
        self.complete.setText(complete)

    def _words(self, column: int) -> str:
        assert self.report is not None and self.report.names is not None
        parts = [f"{one.title}: {one.words(column)}" for one in self.bars.columns[1:]]
        return " · ".join([tables.where(self.report.names, column), *parts])

    def _start_or_stop(self) -> None:
        self.asked.emit("stop_attributing" if self.session.job(EXPLAIN) else "attribute")

    def _ask_for(self) -> None:
        if self.report is not None:
            question = replace(
                self.report.question, number=self.answer.currentData(),
                steps=self.steps.currentData(), baseline=self.baseline.currentData(),
            )  # fmt: skip
            self.session.put(question=question)

    def _pick(self, column: int) -> None:
        if self.report is None or self.report.capture is not self.session.capture:
            return  # another is on its way
        token = self.report.capture.column_token(self.session.selection.layer, column)
        if token is not None:
            self.session.select(key=token)
