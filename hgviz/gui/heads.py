"""All heads in a chart and a table, with examples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QPainter, QResizeEvent
from PySide6.QtWidgets import QStackedWidget, QWidget

from hgviz import tasks
from hgviz.analysis.metrics import METRICS, applicable
from hgviz.analysis.roles import CorpusRoles, HeadExample, HeadRole, Passage
from hgviz.core import Capture, HeadId, ModelSpec, Step, progress, progress_as
from hgviz.figures.spec import Spec
from hgviz.gui import charts as plots
from hgviz.gui import sentences, theme
from hgviz.gui.charts import Axis, Chart, ChartView, Note, Plot, Points
from hgviz.gui.language import tr
from hgviz.gui.sentences import Citation, explained, explanation, measured, metric_name
from hgviz.gui.tables import FIT, REST, ROW, Column, RowTable, Table
from hgviz.gui.view import CAPTURE, Empty
from hgviz.gui.widgets import Button, Picker, Segments, Words, hbox, label, splitter, vbox
from hgviz.session import Session
from hgviz.tasks.heads import corpus_notes, role_evidence, role_sentence, role_words

# --- examples -------------------------------------------------------------------------------------

PAD = 16  # px
CONTEXT = 24  # characters on either side


class HeadExamples(QWidget):
    """The chosen head: its role with the evidence, the head most like it, and its top examples."""

    opened = Signal(object)  # HeadExample
    picked = Signal(object)  # HeadId

    def __init__(self) -> None:
        super().__init__()
        self.sentence = Words(factor=1.08, weight=600)
        self.like = Button("", kind="link", weight=400)
        self.like.setToolTip(tr("Go to the head with the most similar rows"))
        self.like.clicked.connect(lambda: self.picked.emit(self.nearest))
        self.nearest: HeadId | None = None
        top = hbox(None, (self.sentence, 1), self.like, margins=(PAD, 6, PAD - 4, 0), spacing=-1)
        self.evidence = label(factor=0.92, kind="secondary", wrap=True, margins=(PAD, 0, PAD, 2))
        self.evidence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.title = Words(factor=0.92, weight=600)
        self.title.setContentsMargins(PAD, 2, PAD, 0)
        self.examples = RowTable(tr("Top examples of this head"), about=example_words, sorts=False)
        self.examples.horizontalHeader().hide()
        self.examples.clicked.connect(lambda index: self.opened.emit(index.data(ROW)))
        self.examples.opened.connect(self.opened)
        parts = (top, self.evidence, self.title, (self.examples, 1))
        vbox(self, *parts, margins=(0, 0, 0, 6), spacing=2)
        self.setMinimumHeight(96)

    def sizeHint(self) -> QSize:
        return QSize(400, 190)

    def show_head(self, facts: HeadRole | None, many: bool) -> None:
        """Show what is known of a head; many: whether examples come from several texts."""
        for part in (self.evidence, self.title, self.examples, self.like):
            part.setVisible(facts is not None)
        if facts is None:
            self.sentence.say(tr("Not measured: this head's layer is not captured"))
            return
        self.sentence.say(f"{facts.head}: {tr(role_sentence(facts))}")
        evidence = [f"{tr(role.words)}: {tr(role.evidence)}" for role in role_words(facts)]
        self.evidence.setText("\n".join(evidence or [tr(role_evidence(facts))]))
        self.nearest = facts.nearest
        self.like.setVisible(facts.nearest is not None)
        if facts.nearest is not None:
            distance = sentences.weight(facts.metrics["nearest"])
            self.like.setText(
                tr("Nearest: {head}, distance {distance}", head=facts.nearest, distance=distance)
            )
        self.title.setVisible(bool(facts.examples))
        self.title.say(tr("Top examples" if facts.has_role else "Most focused queries"))
        columns = [
            Column("", example_words, width=REST, paint=_paint_query),
            Column("", example_words, width=REST, paint=_paint_key),
            Column("", lambda row: sentences.weight(row.share), right=True, weight=600, width=56),
        ]
        if many:
            columns.insert(0, Column("", lambda row: tr("text {n:,}", n=row.text + 1), width=72))
        self.examples.show_rows(columns, facts.examples)


def example_words(example: HeadExample) -> str:
    """An example as a sentence."""
    key = sentences.shown(example.to[1]) if example.key is not None else tr("no token")
    words = "{query} puts {share} of its weight on {key}"
    return tr(
        f"Text {{n:,}}: {words}" if example.text else words, n=example.text + 1,
        query=sentences.shown(example.at[1]), key=key, share=sentences.weight(example.share),
    )  # fmt: skip


def _paint_query(painter: QPainter, box: QRectF, example: HeadExample, chosen: bool) -> None:
    _quote(painter, box.adjusted(8, 0, 0, 0), example.at)


def _paint_key(painter: QPainter, box: QRectF, example: HeadExample, chosen: bool) -> None:
    theme.write(painter, box, "→", theme.font(), theme.current().secondary)
    to = example.to if example.key is not None else ("", tr("no token"), "")
    _quote(painter, box.adjusted(22, 0, 0, 0), to)


def _quote(painter: QPainter, box: QRectF, passage: Passage) -> None:
    """A passage whose middle stands in the middle of a box, cut at both ends."""
    now, (before, _, after) = theme.current(), (
        sentences.shown(part, 2 * CONTEXT).replace("·", " ") for part in passage
    )  # fmt: skip
    token = sentences.shown(passage[1], CONTEXT)
    font, bold = theme.mono(0.92), theme.mono(0.92, 700)
    wide = min(QFontMetrics(bold).horizontalAdvance(token) + 6.0, box.width())
    side = (box.width() - wide) / 2
    chip = box.adjusted(side, 4, -side, -4)
    theme.draw_box(painter, chip, 3, now.hover)
    theme.write(painter, chip, token, bold, now.text, theme.CENTRE)
    left, cut = box.adjusted(0, 0, -side - wide - 3, 0), Qt.TextElideMode.ElideLeft
    theme.write(painter, left, before, font, now.secondary, theme.TO_RIGHT, cut)
    theme.write(painter, box.adjusted(side + wide + 3, 0, 0, 0), after, font, now.secondary)


# --- columns --------------------------------------------------------------------------------------

KINDS = {"self": "self", "down": "pooling", "up": "upsampling", "cross": "cross"}
ABOUT = {  # what a column means, its formula
    "Role": (
        "The keys whose share of the weight is highest compared with chance",
        Citation("mean_i Σ_j∈R p_ij : mean_i |R_i| / |V_i|", "Voita et al. 2019; how-to/heads.md"),
    ),
    "Score": (
        "Share of the head's weight on the keys of its role, averaged over queries",
        Citation(
            "mean_i Σ_j∈R p_ij, p_ij = |a_ij| / Σ_k |a_ik|", "Voita et al. 2019; how-to/heads.md"
        ),
    ),
    "Other roles": (
        "Up to three more roles above chance, and roles by position alone",
        Citation("mean_i Σ_j∈R p_ij : mean_i |R_i| / |V_i|", "how-to/heads.md"),
    ),
    "Nearest": (
        "The head of the same kind with the most similar rows",
        Citation(METRICS["nearest"].formula, METRICS["nearest"].source),
    ),
}  # fmt: skip


def columns_of(roles: CorpusRoles, unit: str, plotted: Sequence[str]) -> list[Column]:
    """The columns of the table of heads, the plotted metrics first; its rows are HeadRoles."""

    def about(title: str) -> str:
        return explanation(tr(ABOUT[title][0]), ABOUT[title][1])

    def others(head: HeadRole) -> str:
        return ", ".join(tr(row.words) for row in role_words(head) if row.words != head.role) or "—"

    def metric(name: str) -> Column:
        return Column(
            metric_name(name, unit), lambda head: measured(name, head.metrics[name]),
            lambda head: float(head.metrics[name]), FIT, explained(name, unit), right=True,
        )  # fmt: skip

    names = applicable(head.metrics for head in roles.heads.values())
    first = [name for name in plotted if name in names]
    return [
        Column(tr("Head"), lambda head: str(head.head), lambda head: tuple(head.head), weight=600),
        *map(metric, first),
        Column(tr("Level"), lambda head: sentences.level(roles.spec, head.level)),
        Column(tr("Kind"), lambda head: tr(KINDS.get(head.kind, head.kind))),
        Column(tr("Role"), lambda head: tr(head.role) or "—", about=about("Role")),
        Column(
            tr("Score"), lambda head: sentences.weight(head.score) if head.role else "—",
            lambda head: float(head.score) if head.role else math.nan,
            about=about("Score"), right=True,
        ),
        Column(tr("Other roles"), others, about=about("Other roles")),
        Column(
            tr("Nearest"), lambda head: str(head.nearest or "—"),
            lambda head: tuple(head.nearest or (-1, 0)), about=about("Nearest"),
        ),
        *(metric(name) for name in names if name not in first),
    ]  # fmt: skip


# --- heads ----------------------------------------------------------------------------------------

AT_ONCE = 2048  # tokens: longer texts are measured in depth when that is asked for
WIDE = 940  # px: from which on the table stands beside the chart
ROW_HEIGHT, TABLE, CHART = 23, 410, 200  # px of a row, of a table of fifteen, the least of a chart
PARTS = (("chart", "Chart"), ("examples", "Examples"))
AXES = ("distance", "focus")  # what is across and up at first
ONE, ALL = "text", "corpus"
SCOPES = ((ONE, "This text"), (ALL, "All texts"))
NOTHING = Empty("No heads measured yet", "Run the model on a text to measure its heads.", CAPTURE)
ORANGE = 1  # of the colours of series
NAMED = 16  # heads whose numbers are written at their points


@dataclass(frozen=True, slots=True)
class HeadMeasures:
    """What a request found: roles, of one text or of all, and whether they are whole."""

    roles: CorpusRoles
    scope: str
    capture: Capture
    whole: bool = True

    def serves(self, scope: str, capture: Capture) -> bool:
        """Whether this is what is wanted: of the same text, or of the same corpus."""
        if scope == ALL == self.scope:
            mine, other = self.capture, capture
            same = mine.path == other.path and mine.spec.digest == other.spec.digest
            return self.whole and same and len(mine.items) == len(other.items)
        return self.whole and scope == self.scope and self.capture.maps is capture.maps


class HeadsView(ChartView):
    """All heads as points and as rows; what the chosen one is for, and where it shows that."""

    name, title, topic = "heads", "All heads", "heads"
    figureless = "Figures show one text: choose This text first"
    needs = ("capture", "facts")
    watches = ("selection", "hover")
    lane = "facts"
    completed = Signal(object)  # CorpusRoles that are whole
    example = Signal(object, object)  # HeadId, HeadExample

    def __init__(self) -> None:
        super().__init__()
        self.measures: HeadMeasures | None = None
        self._deep: Capture | None = None  # a long text that is to be measured in depth
        self.scope = Segments(SCOPES, tr("Texts to measure heads on"))
        self.scope.chosen.connect(self.refresh)
        self.more = Button(tr("Measure in depth"), "table")
        self.more.setToolTip(tr("Also measure distance kernels and the nearest head of each"))
        self.more.clicked.connect(self._deepen)
        self.part = Segments(PARTS, tr("Shown next to the table"))
        self.head.add(self.more, self.scope, self.part, self.export_button())
        self.across, self.up = Picker(tr("X axis")), Picker(tr("Y axis"))
        bar = hbox(None, margins=(16, 0, 16, 0), spacing=8)
        for picker in (self.across, self.up):
            picker.setMinimumWidth(90)
            picker.currentIndexChanged.connect(partial(self._choose_axis, picker))
            bar.addWidget(label(picker.accessibleName(), factor=0.92, kind="secondary"))
            bar.addWidget(picker, 1)
        self.table = RowTable(
            tr("All heads"), lambda head: head.head, lambda head: tr(role_evidence(head)),
            height=ROW_HEIGHT,
        )  # fmt: skip
        self.examples = HeadExamples()
        self.missing = label(factor=0.85, kind="secondary", margins=(16, 0, 16, 2))
        self.plot = QWidget()
        self.plot.setMinimumHeight(CHART)
        vbox(self.plot, bar, (self.chart, 1), self.missing, spacing=2)
        self.parts = QStackedWidget()
        self.parts.addWidget(self.plot)
        self.parts.addWidget(self.examples)
        self.part.chosen.connect(lambda name: self.parts.setCurrentIndex(name == "examples"))
        self.whole = splitter(Qt.Orientation.Vertical, self.parts, self.table)
        self.whole.setStretchFactor(0, 1)
        self.whole.setSizes([TABLE // 2, TABLE])
        self.note = label(factor=0.85, kind="secondary", wrap=True, margins=(16, 2, 16, 4))
        vbox(self.content, self.head, (self.whole, 1), self.note)
        for part in (self.chart, self.examples):
            part.picked.connect(self.select_head)
        self.table.picked.connect(lambda head: self.select_head(head.head))
        for opened in (self.chart.entered, self.table.opened):
            opened.connect(lambda *_: self.asked.emit("look_map"))
        self.chart.hovered.connect(self.hover_head)
        self.examples.opened.connect(
            lambda example: self.example.emit(self.session.selection.head_id, example)
        )
        self._arrange()

    def request(self, session: Session) -> Callable[[], HeadMeasures] | Empty:
        """What every head does on this text, or over all of them; at once what is known already."""
        capture = session.capture
        if capture is None or not (session.facts or capture.complete):
            return NOTHING
        many = len(capture.items) > 1
        self.scope.setVisible(many)
        scope = self.scope.choice if many else ONE
        ready = self.measures
        if ready is not None and ready.serves(scope, capture):
            return lambda: ready
        at_hand = CorpusRoles(capture.spec, session.facts, 1, len(capture.main))
        is_deep = self._deep is not None and self._deep.maps is capture.maps
        if scope == ONE and len(capture.main) > AT_ONCE and not is_deep:
            measures = HeadMeasures(at_hand, ONE, capture, whole=False)
            return (lambda: measures) if session.facts else NOTHING
        return partial(measure, capture, scope, at_hand)

    def draw(self, result: HeadMeasures) -> None:
        new = self.measures is None or self.measures.roles is not result.roles
        self.measures = result
        roles, unit = result.roles, self._unit
        names = applicable(head.metrics for head in roles.heads.values())
        offered = [(name, metric_name(name, unit), explained(name, unit)) for name in names]
        for picker, first in zip((self.across, self.up), AXES, strict=True):
            picker.offer(offered, picker.currentData() or first)
        self._redraw()
        self.head.note.say(scope_words(result))
        notes = "; ".join(map(tr, corpus_notes(roles)))
        self.note.setText(f"{notes[:1].upper()}{notes[1:]}")
        self.note.setVisible(bool(notes))
        capture = self.session.capture
        long = capture is not None and len(capture.main) > AT_ONCE and result.scope == ONE
        self.more.setVisible(long and not result.whole)
        self.noticed("selection")
        if new and result.whole:
            self.completed.emit(roles)

    def noticed(self, name: str) -> None:
        """Mark the chosen head and the one pointed at, at once."""
        if self.measures is None:
            return
        if name in ("selection", "hover"):
            chosen, hover = self.session.selection.head_id, self.session.hover
            self.chart.mark(chosen, hover.head_id if hover is not None else None)
        if name == "selection":
            facts = self.measures.roles.heads.get(chosen)
            if facts is not None:
                self.table.choose(chosen)
            self.examples.show_head(facts, self.measures.roles.texts > 1)

    def figure(self, session: Session) -> Spec | None:
        """The two numbers that are drawn, layer by layer."""
        if session.capture is None or self.measures is None or self.measures.scope == ALL:
            return None
        return Spec("profile", session.selection, metrics=tuple(self._plotted))

    def as_table(self) -> Table | None:
        """Every number of every head in full, in the order of the table."""
        return self.table.cells() if self.measures is not None else None

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    @property
    def _plotted(self) -> list[str]:
        """The metrics that are across and up."""
        return [*dict.fromkeys((self.across.currentData(), self.up.currentData()))]

    @property
    def _unit(self) -> str:
        return self.session.capture.main.unit if self.session.capture is not None else "token"

    def _redraw(self) -> None:
        if self.measures is None:
            return
        across, up = self.across.currentData(), self.up.currentData()
        if across is None or up is None:
            self.chart.show_chart(Chart())
            return
        roles, spec = self.measures.roles, self.measures.roles.spec
        every = [head for _, head in sorted(roles.heads.items())]
        self.table.show_rows(columns_of(roles, self._unit, self._plotted), every)
        facts = [head for head in every if across in head.metrics and up in head.metrics]
        for picker, metric in ((self.across, across), (self.up, up)):
            picker.setToolTip("\n".join([picker.accessibleName(), explained(metric, self._unit)]))
        titles = self.across.currentText(), self.up.currentText()
        self.chart.show_chart(chart_of(facts, (across, up), titles, spec))
        missing = len(every) - len(facts)
        self.missing.setText(tr("{n:,} heads without these metrics", n=missing))
        self.missing.setVisible(bool(missing))

    def _arrange(self) -> None:
        """The table below the chart, or beside it where there is room."""
        is_wide = self.width() >= WIDE
        self.whole.setOrientation(Qt.Orientation.Horizontal if is_wide else Qt.Orientation.Vertical)

    def _choose_axis(self, picker: Picker, _: int) -> None:
        """Plot another metric, and sort by it."""
        self._redraw()
        at = 1 + self._plotted.index(picker.currentData())
        self.table.sortByColumn(at, Qt.SortOrder.DescendingOrder)

    def _deepen(self) -> None:
        self._deep = self.session.capture
        self.refresh()


def chart_of(
    facts: Sequence[HeadRole], metrics: tuple[str, str], titles: tuple[str, str], spec: ModelSpec
) -> Chart:
    """Heads as points over two metrics: a colour and a shape for each level, hollow where the layer
    goes from one level to another."""

    def describe(head: HeadRole) -> str:
        names = tr("Head {head}", head=head.head), sentences.ends(spec, head.head.layer)
        title, role = ", ".join(filter(None, names)), tr(head.role or "no single role")
        numbers = dict(zip(metrics, titles, strict=True)).items()
        values = [f"{name}: {measured(metric, head.metrics[metric])}" for metric, name in numbers]
        return "\n".join([title, role, *values])

    if not facts:
        return Chart(words=tr("No head has both metrics"))
    xs, ys = ([head.metrics[metric] for head in facts] for metric in metrics)
    parts: list[Points | Note] = [
        Note(f"   {facts[at].head}", xs[at], ys[at], "secondary", (0, 0.5)) for at in apart(xs, ys)
    ]
    for resamples, level in sorted({(head.kind != "self", head.level) for head in facts}):
        mine = [head for head in facts if (head.kind != "self", head.level) == (resamples, level)]
        name = sentences.level(spec, level)
        name = tr("to {level}", level=name) if resamples else name
        colour = level + (level >= ORANGE)  # orange means chosen
        x, y = ([head.metrics[metric] for head in mine] for metric in metrics)
        words = [*map(describe, mine)].__getitem__
        heads = tuple(head.head for head in mine)
        parts.append(Points(x, y, colour, level, 9.0, resamples, words, heads, name))
    plot = Plot(Axis.around(xs, 0.08, titles[0]), Axis.around(ys, title=titles[1]), tuple(parts))
    across, up = (
        tr("{low} to {high}", low=plots.number(min(ends)), high=plots.number(max(ends)))
        for ends in (xs, ys)
    )
    words = tr(
        "{heads}; x: {across}, {xs}; y: {up}, {ys}", heads=sentences.counted(len(facts), "head"),
        across=titles[0], up=titles[1], xs=across, ys=up,
    )  # fmt: skip
    return Chart((plot,), words, of=metrics)


def apart(xs: Sequence[float], ys: Sequence[float]) -> list[int]:
    """The points whose numbers have room at their right, those farthest from others first."""
    places = np.stack([xs, ys], axis=1).astype(float)
    places /= np.ptp(places, axis=0) + 1e-12
    dx, dy = (places[None] - places[:, None]).transpose(2, 0, 1)
    in_the_way = (dx > -0.01) & (dx < 0.09) & (np.abs(dy) < 0.1)
    far = np.hypot(dx, dy) + np.diag(np.full(len(xs), np.inf))
    alone = np.flatnonzero(in_the_way.sum(axis=1) == 1)  # itself
    return sorted(alone.tolist(), key=lambda at: -far[at].min())[:NAMED]


def scope_words(measures: HeadMeasures) -> str:
    """How many heads are shown, measured on what."""
    heads, texts = sentences.counted(len(measures.roles.heads), "head"), measures.roles.texts
    if texts == 1 and (measures.whole or measures.scope == ONE):
        return tr("{heads} on this text", heads=heads)
    so_far = not measures.whole and measures.scope == ALL
    words = "{heads} on {texts}, so far" if so_far else "{heads} on {texts}"
    return tr(words, heads=heads, texts=sentences.counted(texts, "text"))


def measure(capture: Capture, scope: str, at_hand: CorpusRoles) -> HeadMeasures:
    """What every head does, in full; on the way what is known at hand and so far."""

    def part(step: Step) -> Step:
        if not isinstance(step.value, CorpusRoles):
            return step
        return replace(step, value=HeadMeasures(step.value, scope, capture, whole=False))

    with progress_as(part):
        if scope == ONE and at_hand.heads:
            progress(0, 1, "Measuring heads", at_hand)
        roles = tasks.roles_of_capture(capture, alone=scope == ONE)
        return HeadMeasures(roles, scope, capture)
