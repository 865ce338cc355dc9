"""Which tokens, heads and layers an answer comes from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from hgviz import settings, tasks
from hgviz.core import Capture, Display, HeadId, Prompt, Step, progress
from hgviz.figures.spec import Spec
from hgviz.gui import heatmap, ink, sentences, theme
from hgviz.gui.grid import CaptureWords, Names
from hgviz.gui.headgrid import HeadGrid, Scores, Shade, Shades
from hgviz.gui.jobs import GOING, Jobs, Lanes
from hgviz.gui.language import tr
from hgviz.gui.neurons import number
from hgviz.gui.sentences import Citation, explanation
from hgviz.gui.tables import REST, Column, RowTable, key_column, where
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


@dataclass(frozen=True, slots=True)
class AnswerChoice:
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
    spec, logits = capture.spec, capture.logits
    assert logits is not None
    row = np.asarray(logits if question.position is None else logits[question.position], np.float64)
    shares = np.exp(row - row.max())
    shares /= shares.sum()
    if question.position is None:
        return tuple(
            AnswerChoice(number, f"{spec.labels[number]} {heatmap.share(float(shares[number]))}")
            for number in range(len(row))
        )
    best = np.argsort(-row, kind="stable")[:MOST].tolist()
    after = question.position + 1
    follows = int(capture.main.ids[after]) if after < len(capture.main) else None
    if spec.goal == "next" and follows is not None and follows not in best:
        best = [follows, *best[:-1]]
    found = []
    for token in best:
        answer = f"{said(capture, token, model)} {heatmap.share(float(shares[token]))}"
        if spec.goal == "next" and token == follows:
            answer = tr("{answer}, which follows", answer=answer)
        found.append(AnswerChoice(token, answer))
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
    now = theme.current()
    negative, positive = ink.sides()
    track = QRectF(area.left(), area.center().y() - 5, max(0.0, area.width() - VALUE), 10)
    painter.fillRect(track, now.hover)
    part = min(1.0, abs(value) / most)
    if signed:
        middle, half = track.center().x(), track.width() / 2
        left = middle if value > 0 else middle - part * half
        painter.fillRect(
            QRectF(left, track.top(), part * half, 10), positive if value > 0 else negative
        )
        painter.fillRect(QRectF(round(middle), track.top(), 1, 10), now.edge)
    else:
        painter.fillRect(QRectF(track.left(), track.top(), part * track.width(), 10), now.secondary)
    painter.setFont(theme.font(0.92))
    painter.setPen(now.text)
    painter.drawText(area, theme.TO_RIGHT, number(value))


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


class AttributionView(View):
    """Asks on request; then every head and query is compared at once."""

    name, title = "attribution", "Attribution"
    topic = "attribution"
    figureless = "No attribution is computed yet"
    lane = "map"  # the engine may be busy asking
    needs: ClassVar[tuple[str, ...]] = ("capture", "selection", "question", "explained", "off")
    watches: ClassVar[tuple[str, ...]] = ("work",)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.report: AnswerReport | None = None
        self._texts = CaptureWords()
        self._of: tuple[Prompt | None, Prompt | None] = (None, None)
        self.head = PaneHead(tr("Head"))
        self.level = label(factor=0.92, weight=500, kind="chip")
        self.rows = Segments([(name, tr(said), icon) for name, said, icon in ROWS])
        self.rows.setToolTip(tr("Whose attention is compared"))
        self.rows.setAccessibleName(tr("Whose attention is compared"))
        self.rows.chosen.connect(self._again)
        self.head.add_beside_title(self.level)
        self.export = self.export_button()
        self.head.add(self.rows, self.export)
        self.answer, self.steps, self.baseline = Picker(), Picker(), Picker()
        for one, said, long in (
            (self.answer, "Answer", 12), (self.steps, "Integration steps", 7),
            (self.baseline, "Baseline", 12),
        ):  # fmt: skip
            one.setAccessibleName(tr(said))
            one.setToolTip(tr(said))
            one.setSizeAdjustPolicy(Picker.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            one.setMinimumContentsLength(long)
            one.activated.connect(self._ask_for)
        self.answer.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        for count in STEPS:
            self.steps.addItem(sentences.counted(count, "step"), count)
        for name, said, why in BASELINES:
            self.baseline.addItem(tr(said), name)
            self.baseline.setItemData(
                self.baseline.count() - 1, tr(why), Qt.ItemDataRole.ToolTipRole
            )
        self.button = Button(tr("Compute"), kind="filled")
        self.button.clicked.connect(self._press)
        self.button.setMinimumWidth(self.button.sizeHint().width())
        self._asks = label(tr("Answer"), factor=0.92, kind="secondary")
        controls = hbox(
            None, self._asks, (self.answer, 1), self.steps, self.baseline, self.button,
            margins=(16, 4, 16, 8), spacing=8,
        )  # fmt: skip
        self.agreement = label(wrap=True)
        self.agreement.setTextFormat(Qt.TextFormat.PlainText)
        self.agreement.setContentsMargins(16, 4, 16, 8)
        self.agreement.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.agreement.setToolTip(explanation(tr(RANKED), SPEARMAN))
        self.bars = RowTable(
            tr("Every key: attention, gradient times attention, attribution"), about=self._words,
            sorts=False, height=ROW_HEIGHT,
        )  # fmt: skip
        self.grid = HeadGrid(tr("Conductance of every head"), walks=True)
        self.bars.picked.connect(self._pick)
        self.grid.picked.connect(self._open)
        self.heads = Words("", factor=0.85, weight=600, kind="secondary")
        self.heads.setContentsMargins(16, 6, 16, 2)
        self.heads.setToolTip(explanation(tr(CONDUCTS), CONDUCTANCE))
        self._line = line()
        self.complete = label(factor=0.92, kind="secondary", wrap=True)
        self.complete.setContentsMargins(16, 4, 16, 8)
        self.complete.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.complete.setToolTip(explanation(tr(COMPLETES), COMPLETENESS))
        vbox(
            self.content, self.head, controls, line(), self.agreement, (self.bars, 3), self._line,
            self.heads, (self.grid, 2), self.complete,
        )  # fmt: skip
        self.start_at(self.bars)

    # --- View -------------------------------------------------------------------------------------

    def request(self, session: Session) -> Callable[[], AnswerReport] | None:
        """The answers on offer, and the scores of the selected head for this text."""
        capture = session.capture
        self.empty, self.empty_actions = NOTHING, CAPTURE
        if capture is None or not len(capture.main):
            return None
        self.empty_actions = ()
        if capture.spec.goal == "states":
            self.empty = (
                "This model gives hidden states, no answer",
                "Open it with its classifier or its language model.",
            )
            self.empty_actions = OPEN_CHECKPOINT
            return None
        question = asked(session)
        if question is None:
            self.empty = ("This capture has no answer", "It was stopped before the model gave one.")
            self.empty_actions = CAPTURE[:1]
            return None
        if session.model is None and not session.checkpoint:
            self.empty = (
                "Attribution needs the model",
                "Open the checkpoint that this capture was made with.",
            )
            self.empty_actions = OPEN_CHECKPOINT
            return None
        found = session.explained
        there = found is not None and found.is_of(capture)
        return partial(self._report, session.model, capture, question, found if there else None,
            session.selection.head_id,
            None if self.rows.choice == "all" else session.selection.query,
        )  # fmt: skip

    def _report(
        self,
        model: Model | None,
        capture: Capture,
        question: Question,
        found: Attribution | None,
        head: HeadId,
        query: int | None,
    ) -> AnswerReport:
        progress(0, 1)
        report = AnswerReport(capture, question, choices(capture, question, model), found)
        if found is None or found.slopes is None:
            return report
        layer = capture.spec.layers[head.layer]
        names = self._named(capture).names(capture, layer.key_level, capture.key_spans(head.layer))
        scores = tasks.key_scores(found, capture, head, query)
        return replace(report, scores=scores, names=names)

    def draw(self, result: AnswerReport) -> None:
        """Show all of it."""
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
        self.bars.choose(self._column())
        if result.found is not None:
            picture = Scores(result.capture.spec, conductance_shades(result.found))
            self.grid.show_picture(picture)
            self.grid.show_off(result.found.off)
            least = picture.arrange(QSize(self.width(), 0)).height
            self.grid.setMaximumHeight(round(least) + 4)
        self.grid.mark(head)
        for one in (self._line, self.heads, self.grid):
            one.setVisible(result.found is not None and self.height() >= LOW)
        self.heads.say(self._heading(result))
        if self._work is None:
            self._say(result)
        if self._work is None or result.found is not None:
            self._agree(result)

    def noticed(self, name: str) -> None:
        """Another key, and whether the model is asked now."""
        if self.session is None:
            return
        if name == "selection" and self.report is not None:
            self.bars.choose(self._column())
            self.grid.mark(self.session.selection.head_id)
        if name == "work":
            now = self._work
            self.button.setText(tr("Stop" if now else "Compute"))
            if now is not None:
                part = heatmap.share(round(now.done / now.total, 2)) if now.total else ""
                note = tr(now.note or now.title)
                said = " · ".join(filter(None, (note, part, time_left(now.left))))
                fresh = self.report is None or self.report.found is None
                (self.agreement if fresh else self.complete).setText(said)
            elif self.report is not None:
                self._say(self.report)
                self._agree(self.report)

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
        there = self.report is not None and self.report.found is not None
        for one in (self._line, self.heads, self.grid):
            one.setVisible(there and self.height() >= LOW)
        self._asks.setVisible(self.width() >= NARROW)

    # --- inside -----------------------------------------------------------------------------------

    @property
    def _work(self) -> Work | None:
        """The job that asks the model now."""
        work = self.session.work if self.session is not None else ()
        return next((one for one in work if one.key == EXPLAIN and one.state in GOING), None)

    def _offer(self, report: AnswerReport) -> None:
        question = report.question
        self.answer.clear()
        for one in report.choices:
            self.answer.addItem(one.words, one.number)
        self.answer.setCurrentIndex(self.answer.findData(question.number))
        if question.position is not None:
            at = report.capture.main.label(question.position)
            self.answer.setToolTip(tip(tr("What the model says after “{token}”", token=at)))
        self.steps.setCurrentIndex(self.steps.findData(question.steps))
        self.baseline.setCurrentIndex(self.baseline.findData(question.baseline))

    def _heading(self, report: AnswerReport) -> str:
        layers = report.found.layers if report.found is not None else None
        return tr(CONDUCTED_BESIDE if layers else CONDUCTED)

    def _say(self, report: AnswerReport) -> None:
        """How good what was found is, and whether it is what is asked now."""
        if report.found is None:
            self.complete.setText("")
            return
        said = [complete_words(report.found)]
        if report.found.question != report.question:
            said.insert(0, tr("These results are of another answer or path; Compute renews them."))
        self.complete.setText(" ".join(said))

    def _agree(self, report: AnswerReport) -> None:
        if report.found is None:
            self.agreement.setText(tr(HINT))
        else:
            self.agreement.setText("" if report.scores is None else agreement_words(report.scores))

    def _words(self, column: int) -> str:
        """A key and its three numbers."""
        if self.report is None or self.report.names is None:
            return ""
        parts = [f"{one.title}: {one.words(column)}" for one in self.bars.columns[1:]]
        return " · ".join([where(self.report.names, column), *parts])

    def _named(self, capture: Capture) -> CaptureWords:
        of = (capture.prompt, capture.target)
        if any(a is not b for a, b in zip(of, self._of, strict=True)):
            self._texts, self._of = CaptureWords(), of
        return self._texts

    def _column(self) -> int | None:
        assert self.session is not None
        chosen, capture = self.session.selection, self.session.capture
        if chosen.key is None or capture is None:
            return None
        return capture.column(chosen.layer, chosen.key)

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

    def _press(self) -> None:
        self.asked.emit("stop_attributing" if self._work else "attribute")

    def _again(self, name: str) -> None:
        self.refresh()

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
