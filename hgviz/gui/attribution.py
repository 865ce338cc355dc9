"""Which tokens, heads and layers an answer comes from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from PySide6.QtCore import QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import QPainter, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from hgviz import settings, tasks
from hgviz.core import Capture, Display, HeadId, Step, progress
from hgviz.figures.spec import Spec
from hgviz.gui import heatmap, ink, sentences, theme
from hgviz.gui.grid import CaptureWords, Names
from hgviz.gui.headgrid import HeadGrid, Scores, Shade, Shades, draw_signed_bar
from hgviz.gui.jobs import GOING, Jobs, Lanes
from hgviz.gui.language import tr
from hgviz.gui.neurons import number
from hgviz.gui.sentences import Citation, explanation
from hgviz.gui.tables import REST, Column, RowTable, key_column, paint_text, where
from hgviz.gui.view import CAPTURE, OPEN_CHECKPOINT, View, time_left
from hgviz.gui.widgets import (
    Button,
    PaneHead,
    Picker,
    Segments,
    Words,
    hbox,
    label,
    line,
    tip,
    vbox,
)
from hgviz.tasks.attribution import Attribution, KeyScores, Question

if TYPE_CHECKING:
    from hgviz.models.model import Model
    from hgviz.session import Session, Work

# --- runner ---------------------------------------------------------------------------------------


EXPLAIN = "attribute"
MOST = 8  # answers that are offered
SUM = (
    "The attributions sum to {total}; the answer changes by {change}, from {start} to {end}. "
    "Completeness error {missing} with {steps}."
)
MORE_STEPS = "More steps reduce it."


class AnswerChoice(NamedTuple):
    """An answer that can be asked about, and what it is called."""

    number: int
    words: str


def asked(session: Session) -> Question | None:
    """What is asked now: what was chosen, where it still fits, else what the model says."""
    capture, chosen = session.capture, session.question
    if capture is None or not capture.complete:
        return None
    mine = capture.query_prompt(session.selection.layer) is capture.main
    position = session.selection.query if mine else None
    if position is not None and position >= len(capture.main):
        position = None
    found = tasks.default_question(capture.spec.goal, capture.logits, capture.main, position)
    if found is None or chosen is None:
        return found
    found = replace(found, steps=chosen.steps, baseline=chosen.baseline)
    known = {one.number for one in choices(capture, found)}
    fits = chosen.position == found.position and chosen.number in known
    return replace(found, number=chosen.number) if fits else found


def choices(
    capture: Capture, question: Question, model: Model | None = None
) -> tuple[AnswerChoice, ...]:
    """The classes; or the token that follows and those that the model finds likeliest there."""
    position, logits = question.position, capture.logits
    assert logits is not None
    row = np.asarray(logits if position is None else logits[position], np.float64)
    shares = np.exp(row - row.max())
    shares /= shares.sum()
    follows = None
    if position is None:
        names = dict(enumerate(capture.spec.labels))
    else:
        best = np.argsort(-row, kind="stable")[:MOST].tolist()
        if capture.spec.goal == "next" and position + 1 < len(capture.main):
            follows = int(capture.main.ids[position + 1])
            best = best if follows in best else [follows, *best[:-1]]
        names = {token: said(capture, token, model) for token in best}
    found = []
    for at, name in names.items():
        answer = f"{name} {heatmap.share(float(shares[at]))}"
        answer = tr("{answer}, which follows", answer=answer) if at == follows else answer
        found.append(AnswerChoice(at, answer))
    return tuple(found)


def said(capture: Capture, number: int, model: Model | None = None) -> str:
    """A token by its id, as far as the text, its bytes or the tokenizer of its model tell."""
    there = np.flatnonzero(capture.main.ids == number)
    if len(there):
        return sentences.quoted(sentences.name(capture.main, int(there[0])))
    if capture.spec.vocabulary == 256:
        if number < 128:
            return sentences.quoted(sentences.shown(chr(number)))
        return tr("byte {n}", n=number)
    if text := sentences.spoken(capture, model, number):
        return sentences.quoted(sentences.shown(text))
    return tr("token {n:,}", n=number)


class AttributionRunner:
    """Asks the model, and puts what it finds into the session."""

    def __init__(self, session: Session, lanes: Lanes, working: Jobs) -> None:
        self.session, self.lanes, self.working = session, lanes, working

    def start(self) -> None:
        """Attribute the answer that is asked about; a job before it is given up."""
        session, question = self.session, asked(self.session)
        capture = session.capture
        if capture is None or question is None:
            return
        work = partial(
            attributed, session.model, session.checkpoint, session.activation, capture, question
        )
        self.working.start(
            self.lanes.engine, EXPLAIN, tr("Attributing the answer"), work, self._done,
            on_step=self._part, bound=True,
        )  # fmt: skip

    def stop(self) -> None:
        """What is found so far stays."""
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


def attributed(
    model: Model | None, path: str, activation: str, capture: Capture, question: Question
) -> tuple[Model, Attribution]:
    """Open the model where it is not, and ask it."""
    if model is None:
        device = settings.load().device
        model = tasks.load(path, device, activation=activation or None)
    found = tasks.attribute(
        model, capture.prompt, question, capture.target, capture.off, layers=True
    )
    return model, found


def complete_words(found: Attribution) -> str:
    """How far the sum is from what it should be, and of how many steps."""
    percent = tr("{number} %", number=f"{100 * found.error:.2g}")
    if found.error < 1e-5:
        percent = tr("less than 0.001 %")
    total, change = (sentences.with_sign(one) for one in (found.total, found.change))
    start, end = (sentences.weight(one, 3) for one in (found.start, found.value))
    words = tr(
        SUM, total=total, change=change, start=start, end=end, missing=percent,
        steps=sentences.counted(found.question.steps, "step"),
    )  # fmt: skip
    return f"{words} {tr(MORE_STEPS)}" if found.error >= 1e-3 else words


# --- rows -----------------------------------------------------------------------------------------


KEY, VALUE = 132, 56  # px: the column of the key, the figures
TITLES = (  # what a column is called, what it means, its formula
    ("Attention", "How much the query looks at the key: the weight in the map",
     Citation("a_ij", "Vaswani et al. 2017")),
    ("Gradient × attention", "The weight times the slope of the answer with it",
     Citation("a_ij ∂F / ∂a_ij", "Chefer et al. 2021")),
    ("Integrated gradients", "What the tokens behind the key add to the answer, by captum",
     Citation("Σ_e (x_e − x′_e) ∫₀¹ ∂F(x′ + t (x − x′)) / ∂x_e dt", "Sundararajan et al. 2017")),
)  # fmt: skip


def score_columns(scores: KeyScores, names: Names) -> list[Column]:
    """The columns of a list of keys with three bars each; its rows are columns of the map."""
    places = {column: place for place, column in enumerate(scores.columns.tolist())}

    def column_of(title: str, about: str, source: Citation, values: np.ndarray | None) -> Column:
        def value(column: int) -> float:
            return float("nan") if values is None else float(values[places[column]])

        most = 1.0 if values is None else float(np.abs(values).max(initial=0.0)) or 1.0
        is_signed = values is not None and bool((values < 0).any())

        def paint(painter: QPainter, box: QRectF, column: int, chosen: bool) -> None:
            if values is None:
                ink.unseen(painter, box.adjusted(0, 4, 0, -4), painter.device().devicePixelRatioF())
            else:
                _bar(painter, box, value(column), most, is_signed)

        words, why = (lambda column: number(value(column))), explanation(tr(about), source)
        return Column(tr(title), words, value, REST, why, paint=paint)

    measures = (scores.attention, scores.slope, scores.tokens)
    bars = [column_of(*row, values) for row, values in zip(TITLES, measures, strict=True)]
    return [key_column(names, KEY), *bars]


def _bar(painter: QPainter, area: QRectF, value: float, most: float, signed: bool) -> None:
    """A bar with its number at the right; signed ones to both sides of a middle line."""
    now, part = theme.current(), max(-1.0, min(1.0, value / most))
    track = QRectF(area.left(), area.center().y() - 5, max(0.0, area.width() - VALUE), 10)
    painter.fillRect(track, now.hover)
    if signed:
        draw_signed_bar(painter, track, part)
    else:
        painter.fillRect(QRectF(track.topLeft(), QSizeF(part * track.width(), 10)), now.secondary)
    painter.setFont(theme.font(0.92))
    paint_text(painter, area, number(value), now.text, theme.TO_RIGHT)


# --- words ----------------------------------------------------------------------------------------


RANKED = "How alike two orders of the keys are: 1 the same, −1 reversed, 0 unrelated"
SPEARMAN = Citation("ρ = cov(r, r′) / (σ_r σ_r′)", "Spearman 1904; Jain and Wallace 2019")
CONDUCTS = "The part of the answer that passes through a head on the way from the baseline"
CONDUCTANCE = Citation("Σ_e ∫₀¹ ∂F / ∂h_e · dh_e", "Dhamdhere et al. 2018")
COMPLETES = "The attributions should sum to the change of the answer along the path"
COMPLETENESS = Citation("Σ_i IG_i = F(x) − F(x′)", "Sundararajan et al. 2017")
FIRST = "Attention and gradient × attention: {slope}"
SECOND = "attention and integrated gradients: {tokens}"
THIRD = "gradient × attention and integrated gradients: {both}"


def table_of(scores: KeyScores, names: Names) -> list[list[str]]:
    """A row for every key, every number in full."""
    rows = [[tr("column"), tr("key"), tr("where"), tr("attention"), tr("gradient × attention"),
             tr("integrated gradients")]]  # fmt: skip
    parts = (scores.attention, scores.slope, scores.tokens)
    for at, column in enumerate(scores.columns.tolist()):
        numbers = ("" if part is None else repr(float(part[at])) for part in parts)
        rows.append([str(column), names.glyph(column), names.place(column), *numbers])
    return rows


def heads_of(found: Attribution) -> list[list[str]]:
    """A row for every head: what it conducts of the answer."""
    rows = [[tr("head"), tr("conductance")]]
    rows += [[str(head), repr(float(value))] for head, value in sorted(found.heads.items())]
    return rows


def agreement_words(scores: KeyScores) -> str:
    """The rank correlations of the three measures."""
    named = zip(("slope", "tokens", "both"), (FIRST, SECOND, THIRD), scores.agreements, strict=True)
    parts = [
        tr(words, **{name: sentences.with_sign(value, 2)})
        for name, words, value in named
        if not math.isnan(value)
    ]
    if not parts:
        return tr("There are too few keys here, or all are alike: they have no ranks to compare.")
    keys, words = sentences.counted(len(scores.columns), "key"), "; ".join(parts)
    said = "Rank correlation of magnitudes over {keys}. {agreement} (Spearman)."
    return tr(said, agreement=words[:1].upper() + words[1:], keys=keys)


# --- attribution ----------------------------------------------------------------------------------


ROW_HEIGHT = 22  # px
STEPS = (32, 64, 128, 256, 512)
BASELINES = (
    ("blank", "blank tokens", "Baseline: a mask, padding or space token at every position"),
    ("mean", "mean embedding", "Baseline: the average of all embeddings at every position"),
    ("zero", "zero embedding", "Baseline: zeros, from where paths are rough"),
)
ROWS = (("query", "This query", ""), ("all", "All queries", ""))
LOW, NARROW = 360, 560  # px
CONDUCTED = "Conductance of every head"
CONDUCTED_BESIDE = "Conductance of every head; at the right integrated gradients of each layer"
NOTHING = ("No answer to attribute yet", "Capture a text with a model first.")
STATES = (
    "This model gives hidden states, no answer",
    "Open it with its classifier or its language model.",
)
STOPPED = ("This capture has no answer", "It was stopped before the model gave one.")
NO_MODEL = ("Attribution needs the model", "Open the checkpoint that this capture was made with.")
HINT = "Compute shows which tokens and heads this answer comes from."


@dataclass(frozen=True, slots=True, eq=False)
class AnswerReport:
    """The answers on offer, and the scores of one head where an attribution is computed."""

    capture: Capture
    question: Question
    choices: tuple[AnswerChoice, ...]
    found: Attribution | None = None
    scores: KeyScores | None = None
    names: Names | None = None


def conductance_shades(found: Attribution) -> Shades:
    """What every head conducts of an answer as colours, and what every layer does as bars."""
    most = max(map(abs, found.heads.values()), default=0.0) or 1.0
    heads = {head: Shade(value, value, value) for head, value in found.heads.items()}
    return Shades(
        tr("Conductance"), tr("of the answer"), (-most, most), heads,
        layers=found.layers or {}, digits=2,
    )  # fmt: skip


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


class AttributionView(View):
    """Asks on request; then every head and query is compared at once."""

    name, title = "attribution", "Attribution"
    topic = "attribution"
    figureless = "No attribution is computed yet"
    lane = "map"  # the engine may be busy asking
    needs = ("capture", "selection", "question", "explained", "off")
    watches = ("work",)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.report: AnswerReport | None = None
        self.head = PaneHead(tr("Head"))
        self.level = label(factor=0.92, weight=500, kind="chip")
        self.rows = Segments([(name, tr(words), icon) for name, words, icon in ROWS])
        self.rows.setToolTip(tr("Whose attention is compared"))
        self.rows.setAccessibleName(tr("Whose attention is compared"))
        self.rows.chosen.connect(self.refresh)
        self.head.add_beside_title(self.level)
        self.export = self.export_button()
        self.head.add(self.rows, self.export)
        self.answer, self.steps, self.baseline = Picker(), Picker(), Picker()
        for picker, words, characters in (
            (self.answer, "Answer", 12), (self.steps, "Integration steps", 7),
            (self.baseline, "Baseline", 12),
        ):  # fmt: skip
            picker.setAccessibleName(tr(words))
            picker.setToolTip(tr(words))
            picker.setSizeAdjustPolicy(
                picker.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
            )
            picker.setMinimumContentsLength(characters)
            picker.activated.connect(self._ask_for)
        self.answer.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        for count in STEPS:
            self.steps.addItem(sentences.counted(count, "step"), count)
        for at, (name, words, why) in enumerate(BASELINES):
            self.baseline.addItem(tr(words), name)
            self.baseline.setItemData(at, tr(why), Qt.ItemDataRole.ToolTipRole)
        self.button = Button(tr("Compute"), kind="filled")
        self.button.clicked.connect(
            lambda: self.asked.emit("stop_attributing" if self._work else "attribute")
        )
        self.button.setMinimumWidth(self.button.sizeHint().width())
        self._asks = label(tr("Answer"), factor=0.92, kind="secondary")
        controls = hbox(
            None, self._asks, (self.answer, 1), self.steps, self.baseline, self.button,
            margins=(16, 4, 16, 8), spacing=8,
        )  # fmt: skip
        self.agreement = label(wrap=True)
        self.agreement.setToolTip(explanation(tr(RANKED), SPEARMAN))
        self.bars = RowTable(
            tr("Every key: attention, gradient times attention, attribution"), about=self._words,
            sorts=False, height=ROW_HEIGHT,
        )  # fmt: skip
        self.bars.picked.connect(self._pick)
        self.heads = Words("", factor=0.85, weight=600, kind="secondary")
        self.heads.setContentsMargins(16, 6, 16, 2)
        self.heads.setToolTip(explanation(tr(CONDUCTS), CONDUCTANCE))
        self.grid = HeadGrid(tr("Conductance of every head"), walks=True)
        self.grid.picked.connect(self._open)
        self._line = line()
        self.complete = label(factor=0.92, kind="secondary", wrap=True)
        self.complete.setToolTip(explanation(tr(COMPLETES), COMPLETENESS))
        for part in (self.agreement, self.complete):
            part.setContentsMargins(16, 4, 16, 8)
            part.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        vbox(
            self.content, self.head, controls, line(), self.agreement, (self.bars, 3), self._line,
            self.heads, (self.grid, 2), self.complete,
        )  # fmt: skip
        self.start_at(self.bars)

    # --- View -------------------------------------------------------------------------------------

    def request(self, session: Session) -> Callable[[], AnswerReport] | None:
        """The answers on offer, and the scores of the selected head for this text."""
        capture, question, chosen = session.capture, asked(session), session.selection
        goal = capture.spec.goal if capture is not None else ""
        is_openable = session.model is not None or session.checkpoint
        for is_missing, words, actions in (
            (capture is None or not len(capture.main), NOTHING, CAPTURE),
            (goal == "states", STATES, OPEN_CHECKPOINT),
            (question is None, STOPPED, CAPTURE[:1]),
            (not is_openable, NO_MODEL, OPEN_CHECKPOINT),
        ):
            if is_missing:
                self.empty, self.empty_actions = words, actions
                return None
        assert capture is not None and question is not None
        found = session.explained
        found = found if found is not None and found.is_of(capture) else None
        query = None if self.rows.choice == "all" else chosen.query
        return partial(report_of, session.model, capture, question, found, chosen.head_id, query)

    def draw(self, result: AnswerReport) -> None:
        if self.session is None:
            return
        self.report, head = result, self.session.selection.head_id
        self.head.title.setText(tr("Head {head}", head=head))
        self.level.setText(sentences.ends(result.capture.spec, head.layer))
        self.level.setVisible(bool(self.level.text()))
        self._offer(result)
        if result.scores is None or result.names is None:
            self.bars.show_rows([], [])
        else:
            columns = score_columns(result.scores, result.names)
            self.bars.show_rows(columns, result.scores.columns.tolist())
        if result.found is not None:
            picture = Scores(result.capture.spec, conductance_shades(result.found))
            self.grid.show_picture(picture)
            self.grid.show_off(result.found.off)
            least = picture.arrange(QSize(self.width(), 0)).height
            self.grid.setMaximumHeight(round(least) + 4)
            self.heads.say(tr(CONDUCTED_BESIDE if result.found.layers else CONDUCTED))
        self.noticed("selection")
        self._fit()
        self._show_state()

    def noticed(self, name: str) -> None:
        """Another key, and whether the model is asked now."""
        if self.session is None or self.report is None:
            return
        if name == "selection":
            chosen, capture = self.session.selection, self.report.capture
            is_there = chosen.key is not None and capture is self.session.capture
            self.bars.choose(capture.column(chosen.layer, chosen.key) if is_there else None)
            self.grid.mark(chosen.head_id)
        elif name == "work":
            self._show_state()

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

    def as_text(self) -> str:
        """The numbers of the keys, in full, tab-separated."""
        return "".join("\t".join(row) + "\n" for row in self.as_table() or ())

    def as_table(self) -> list[list[str]] | None:
        """The numbers of the keys; before they are there, what every head conducts."""
        report = self.report
        if report is None or report.found is None:
            return None
        if report.scores is None or report.names is None:
            return heads_of(report.found)
        return table_of(report.scores, report.names)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    # --- inside -----------------------------------------------------------------------------------

    def _fit(self) -> None:
        is_found = self.report is not None and self.report.found is not None
        for part in (self._line, self.heads, self.grid):
            part.setVisible(is_found and self.height() >= LOW)
        self._asks.setVisible(self.width() >= NARROW)

    @property
    def _work(self) -> Work | None:
        """The job that asks the model now."""
        work = self.session.work if self.session is not None else ()
        return next((one for one in work if one.key == EXPLAIN and one.state in GOING), None)

    def _offer(self, report: AnswerReport) -> None:
        question = report.question
        self.answer.clear()
        for choice in report.choices:
            self.answer.addItem(choice.words, choice.number)
        self.answer.setCurrentIndex(self.answer.findData(question.number))
        if question.position is not None:
            at = report.capture.main.label(question.position)
            self.answer.setToolTip(tip(tr("What the model says after “{token}”", token=at)))
        self.steps.setCurrentIndex(self.steps.findData(question.steps))
        self.baseline.setCurrentIndex(self.baseline.findData(question.baseline))

    def _show_state(self) -> None:
        """Show how far the job is; else how well the keys agree, how good what was found is, and
        whether it is what is asked now."""
        report, work = self.report, self._work
        self.button.setText(tr("Stop" if work else "Compute"))
        found = report.found if report is not None else None
        if work is not None:
            part = heatmap.share(round(work.done / work.total, 2)) if work.total else ""
            note = tr(work.note or work.title)
            words = " · ".join(filter(None, (note, part, time_left(work.left))))
            (self.agreement if found is None else self.complete).setText(words)
        elif report is None or found is None:
            self.agreement.setText(tr(HINT))
            self.complete.setText("")
        else:
            is_other = found.question != report.question
            stale = "These results are of another answer or path; Compute renews them."
            words = (tr(stale) if is_other else "", complete_words(found))
            self.complete.setText(" ".join(filter(None, words)))
        if report is not None and found is not None:
            scores = report.scores
            self.agreement.setText("" if scores is None else agreement_words(scores))

    def _words(self, column: int) -> str:
        """A key and its three numbers."""
        if self.report is None or self.report.names is None:
            return ""
        parts = [f"{one.title}: {one.words(column)}" for one in self.bars.columns[1:]]
        return " · ".join([where(self.report.names, column), *parts])

    def _ask_for(self) -> None:
        if self.session is None or self.report is None:
            return
        self.session.put(
            question=replace(
                self.report.question,
                number=self.answer.currentData(),
                steps=self.steps.currentData(),
                baseline=self.baseline.currentData(),
            )
        )

    def _pick(self, column: int) -> None:
        if self.session is None or self.report is None:
            return
        if self.report.capture is not self.session.capture:
            return  # another is on its way
        token = self.report.capture.column_token(self.session.selection.layer, column)
        if token is not None:
            self.session.select(key=token)

    def _open(self, head: HeadId) -> None:
        if self.session is not None:
            self.session.put(selection=self.session.at(head))
