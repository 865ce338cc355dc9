"""The panels beside a map: this head, its top keys, notable heads, display, texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from math import isfinite
from typing import Any, ClassVar, Literal

import numpy as np
from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QLocale,
    QModelIndex,
    QObject,
    QPointF,
    QRectF,
    QSignalBlocker,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QColor,
    QDoubleValidator,
    QFocusEvent,
    QFont,
    QFontMetricsF,
    QIcon,
    QImage,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtGui import Qt as TextQt
from PySide6.QtWidgets import (
    QFormLayout,
    QGridLayout,
    QLabel,
    QLineEdit,
    QListView,
    QStackedWidget,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from hgviz import palettes
from hgviz.analysis.metrics import METRICS
from hgviz.analysis.roles import HeadRole, heads_of_kind, notable_heads, rank, top_keys
from hgviz.core import Capture, Display, HeadId, Integers, Item, Map, Prompt, Selection, progress
from hgviz.gui import atlas, grid, ink, sentences, theme
from hgviz.gui.ink import faint, focus_ring
from hgviz.gui.language import tr
from hgviz.gui.sentences import Citation, explanation, measured
from hgviz.gui.tables import Index
from hgviz.gui.view import CAPTURE, NOTHING, View, scale_choice
from hgviz.gui.widgets import (
    RETURN_KEYS,
    Button,
    Check,
    Picker,
    Words,
    hbox,
    label,
    tip,
    vbox,
)
from hgviz.maps import LazyMap
from hgviz.session import Session
from hgviz.tasks.heads import role_evidence, role_sentence

# --- lists of painted rows ------------------------------------------------------------------------


PAD = 16
VALUE = 44  # px: a number at the right
Run = tuple[str, QFont, QColor]


class ListRows(QAbstractListModel):
    """ListRows of one kind, each with its `words` for a screen reader and its `tip`."""

    rows: Sequence[Any] = ()

    def show_rows(self, rows: Sequence[Any]) -> None:
        """Have other rows."""
        self.beginResetModel()
        self.rows = rows
        self.endResetModel()

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """The words, the tooltip, or the row itself for its painter."""
        row = self.row(index.row())
        if role == Qt.ItemDataRole.UserRole:
            return row
        names = {Qt.ItemDataRole.DisplayRole: "words", Qt.ItemDataRole.ToolTipRole: "tip"}
        return getattr(row, names.get(Qt.ItemDataRole(role), ""), None)

    def row(self, number: int) -> Any:
        """One of the rows."""
        return self.rows[number]


class RowPainter(QStyledItemDelegate):
    """Paints a row over the tint of what is chosen or pointed at."""

    high = 20  # px of a row

    def is_chosen(self, row: Any) -> bool:
        """Whether a row is the one that is open."""
        return False

    def draw(self, painter: QPainter, box: QRectF, row: Any, chosen: bool) -> None:
        """Draw the words and pictures of a row."""
        raise NotImplementedError

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(100, self.high)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row, now = index.data(Qt.ItemDataRole.UserRole), theme.current()
        chosen, box = self.is_chosen(row), QRectF(option.rect)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        if chosen or option.state & QStyle.StateFlag.State_MouseOver:
            painter.setBrush(now.mark_tint if chosen else now.hover)
            painter.drawRoundedRect(box.adjusted(8, 0, -8, 0), 6, 6)
        if option.state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(now.press, 1.5))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(9, 1, -9, -1), 6, 6)
        self.draw(painter, box.adjusted(PAD, 0, -PAD, 0), row, chosen)
        painter.restore()


class RowList(QListView):
    """Painted rows, of which a click or Enter picks one; thousands cost nothing."""

    picked = Signal(object)  # a row

    def __init__(self, model: ListRows, painter: RowPainter, least: int, name: str = "") -> None:
        super().__init__()
        model.setParent(self)
        painter.setParent(self)
        self.setModel(model)
        self.setItemDelegate(painter)
        self.setUniformItemSizes(True)
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setMinimumHeight(least * painter.high)
        self.setAccessibleName(name)
        self.clicked.connect(self.pick)
        self.activated.connect(self.pick)

    def pick(self, index: QModelIndex) -> None:
        """Pick a row."""
        if index.isValid():
            self.picked.emit(index.data(Qt.ItemDataRole.UserRole))

    def sizeHint(self) -> QSize:
        return QSize(240, self.minimumHeight())


def draw_runs(painter: QPainter, box: QRectF, *runs: Run) -> float:
    """Draw texts one after the other from the left of a box, elided at its right; the x after."""
    x = box.left()
    for text, font, colour in runs:
        metrics = QFontMetricsF(font)
        room = max(0.0, box.right() - x)
        said = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)
        painter.setFont(font)
        painter.setPen(colour)
        painter.drawText(QRectF(x, box.top(), room, box.height()), theme.TO_LEFT, said)
        x += metrics.horizontalAdvance(said)
    return x


def draw_value(painter: QPainter, box: QRectF, text: str) -> None:
    """Draw a number at the right of a box."""
    painter.setFont(theme.font(weight=600))
    painter.setPen(theme.current().text)
    painter.drawText(box, theme.TO_RIGHT, text)


def draw_chip(painter: QPainter, left: float, middle: float, text: str, chosen: bool) -> None:
    """Draw a few words in a chip."""
    now, font = theme.current(), theme.font(0.85)
    box = QRectF(left, middle - 9, chip_width(text), 18)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(now.pane if chosen else now.hover)
    painter.drawRoundedRect(box, 9, 9)
    painter.setFont(font)
    painter.setPen(now.text if chosen else now.secondary)
    painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)


def chip_width(text: str) -> float:
    """Px of a chip around a text."""
    return QFontMetricsF(theme.font(0.85)).horizontalAdvance(text) + 14


# --- heads ----------------------------------------------------------------------------------------


METRICS_SHOWN = tuple(METRICS)[:5]  # what fits above the other docks; the table has all
NAMED = 104  # px: the names of the metrics
TICKS_HEIGHT = 18  # px: a line of ticks
MEASURING = (("jobs", "Jobs…"),)  # heads are measured by themselves


@dataclass(frozen=True, slots=True)
class HeadReport:
    """A head's facts, and by metric the values of all self-attention heads."""

    facts: HeadRole
    others: dict[str, list[float]]
    ranks: dict[str, str]
    unit: str
    limits: tuple[str, ...] = ()


class HeadPanel(View):
    """The chosen head's role in words with its evidence, and each metric among all heads."""

    title = "This head"
    topic = "head"
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
        self._told: HeadReport | None = None
        self.lines: dict[str, tuple[Words, Ticks, QLabel]] = {}
        grid = QGridLayout()
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(2)
        grid.setColumnStretch(1, 1)
        grid.setColumnMinimumWidth(0, NAMED)
        for row, name in enumerate(METRICS_SHOWN):
            named, ticks, value = Words(), Ticks(), label(weight=600)
            value.setFixedWidth(VALUE)
            value.setAlignment(theme.TO_RIGHT)
            ticks.told.connect(self._explain_number)
            self.lines[name] = (named, ticks, value)
            for column, one in enumerate((named, ticks, value)):
                grid.addWidget(one, row, column)
        self.count = label(factor=0.85, kind="secondary", wrap=True)
        self._counted = ""
        column = vbox(
            self.content, self.sentence, self.evidence, margins=(PAD, 10, PAD, 8), spacing=4
        )
        column.addSpacing(2)
        column.addLayout(grid)
        column.addWidget(self.count)
        column.addStretch(1)

    def request(self, session: Session) -> Callable[[], HeadReport] | None:
        """What is known of the chosen head."""
        facts = session.facts.get(session.selection.head_id)
        self.empty_actions = CAPTURE if session.capture is None else MEASURING
        if facts is None or session.capture is None:
            return None
        return partial(_told, session.capture, facts, session.facts)

    def draw(self, result: HeadReport) -> None:
        """Say it."""
        self._told, facts = result, result.facts
        self.sentence.setText(tr(role_sentence(facts)))
        evidence = tr(role_evidence(facts)).replace(" -", " −")
        self.evidence.setText("\n".join(filter(None, (evidence, *result.limits))))
        for name, line in zip_longest([*facts.metrics][: len(self.lines)], self.lines.values()):
            named, ticks, value = line
            for one in line:
                one.setVisible(name is not None)
            if name is None:  # such a head has fewer numbers
                continue
            named.say(sentences.metric_name(name, result.unit))
            tip = f"{sentences.explained(name, result.unit)}\n{result.ranks[name]}"
            ticks.show_values(result.others[name], facts.metrics[name], tip)
            value.setText(measured(name, facts.metrics[name]))
            value.setToolTip(tip)
            value.setAccessibleName(f"{named.full}: {value.text()}, {result.ranks[name]}")
        kind = "cross-attention head" if facts.kind == "cross" else "self-attention head"
        many = sentences.counted(len(result.others["focus"]), kind)
        self._counted = tr("Ticks: all {many}", many=many) if result.others["focus"] else ""
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
                [sentences.metric_name(name, unit), repr(float(value)), told.ranks[name]]
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
        self.setFixedHeight(TICKS_HEIGHT)
        self.setMinimumWidth(40)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._values: Sequence[float] = ()
        self._mine, self._ends = 0.0, (0.0, 0.0)

    def show_values(
        self,
        values: Sequence[float],
        mine: float,
        said: str,
        ends: tuple[float, float] | None = None,
    ) -> None:
        """Show all values and the one that is meant, NaN for none; ends: of the line, by default
        the smallest and the largest value."""
        real = [value for value in (*values, mine) if isfinite(value)] or [0.0]
        self._values, self._mine = values, mine
        self._ends = ends or (min(real), max(real))
        self.setToolTip(said)
        self.setAccessibleName(said)
        self.update()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """What pointing at it says is said to the keyboard, too."""
        super().focusInEvent(event)
        self.told.emit(self.toolTip())

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.told.emit("")

    def place(self, value: float) -> float:
        """The x of a value; the smallest stands at the left end, the largest at the right."""
        low, high = self._ends
        part = (value - low) / (high - low) if high > low else 0.5
        return 6 + part * (self.width() - 12)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the ticks, darker where there are many."""
        now = theme.current()
        with theme.smooth_painter(self) as painter:
            middle = self.height() / 2
            painter.setPen(QPen(now.edge, 1))
            painter.drawLine(QPointF(6, middle), QPointF(self.width() - 6, middle))
            painter.setPen(QPen(faint(now.secondary, 0.35), 1.2))
            for value in self._values:
                x = self.place(value)
                painter.drawLine(QPointF(x, middle - 4), QPointF(x, middle + 4))
            if isfinite(self._mine):
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(now.mark)
                painter.drawEllipse(QPointF(self.place(self._mine), middle), 4.5, 4.5)
            if self.hasFocus():
                focus_ring(painter, QRectF(self.rect()))


def _told(capture: Capture, facts: HeadRole, known: Mapping[HeadId, HeadRole]) -> HeadReport:
    progress(1, 1)
    every = heads_of_kind(facts.head, known)
    others = {name: [one.metrics[name] for one in every if name in one.metrics] for name in METRICS}
    ranks = {}
    for name in facts.metrics:
        own, total = rank(name, facts.head, known)
        ranks[name] = tr("place {rank:,} of {total:,}, from the largest", rank=own, total=total)
    unit = capture.key_prompt(facts.head.layer).unit
    return HeadReport(
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
    if (near := rule.of(one.heads.index(head)).streaming_window) is not None:
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


# --- top keys -------------------------------------------------------------------------------------


TOP = 5  # keys that are listed
NONE_CHOSEN = ("Nothing chosen", "Choose a query in the map or in the text.")
CHOOSE = (("next_query", "Choose a query"),)
GLYPH, WORD = 28, 108  # px: the columns left of the bar


@dataclass(frozen=True, slots=True)
class TopKey:
    """A key with a large weight: its glyph, and the word that it is in as before, inside, after.

    letter: whether it is a letter, which is shown both alone and in its word. share: of the longest
    bar. first: whether it is the strongest.
    """

    token: int | None
    glyph: str
    before: str
    inside: str
    after: str
    weight: float
    letter: bool = True
    signed: bool = False
    share: float = 1.0
    first: bool = False
    tip: ClassVar[str] = ""

    @property
    def words(self) -> str:
        """The key and its weight."""
        return f"{self.glyph} {self.value}"

    @property
    def value(self) -> str:
        """The weight in words."""
        signed = self.signed
        return sentences.with_sign(self.weight, 2) if signed else sentences.weight(self.weight)


@dataclass(frozen=True, slots=True)
class TopKeys:
    """The chosen letter, where it stands, and its strongest keys."""

    glyph: str
    where: str
    keys: tuple[TopKey, ...]
    side: str = ""


class TopKeysPanel(View):
    """The five keys with the largest weights for the chosen query in the chosen head."""

    title = "Top keys"
    topic = "looks"
    figureless = "It is a list of keys: Links draws them"
    needs = ("selection", "capture", "dark")

    def __init__(self) -> None:
        super().__init__()
        self.letter = label(weight=600, kind="mark")
        self.letter.setFont(theme.mono(1.0, 600))
        self.where = Words(factor=0.92, kind="secondary")
        self.rows = ListRows()
        self.list = RowList(self.rows, TopKeyPainter(), TOP, tr("Top keys"))
        self.list.picked.connect(self._pick)
        top = hbox(None, self.letter, (self.where, 1), margins=(PAD, 0, PAD, 0), spacing=8)
        vbox(self.content, top, (self.list, 1), margins=(0, 8, 0, 8), spacing=2)

    def request(self, session: Session) -> Callable[[], TopKeys] | None:
        """The strongest keys, read from one row."""
        capture, chosen = session.capture, session.selection
        self.empty, self.empty_actions = NOTHING, CAPTURE
        if capture is None:
            return None
        self.empty, self.empty_actions = NONE_CHOSEN, CHOOSE
        if chosen.query is None or chosen.query >= len(capture.query_prompt(chosen.layer)):
            return None
        return partial(_looked, capture, chosen) if capture.maps[chosen.layer] is not None else None

    def draw(self, result: TopKeys) -> None:
        """List them."""
        self.letter.setText(result.glyph)
        side = tr("in the {text}:", text=result.side) if result.side else ""
        self.where.say(", ".join(filter(None, (result.where, side))))
        self.rows.show_rows(result.keys)

    def as_table(self) -> list[list[str]] | None:
        """The keys that are listed, with their weights."""
        heads = [tr("Key"), tr("Key token"), tr("Weight")]
        return [heads] + [
            ["" if one.token is None else str(one.token), one.glyph, repr(one.weight)]
            for one in self.rows.rows
        ] if self.rows.rows else None  # fmt: skip

    def _pick(self, key: TopKey) -> None:
        if self.session is not None and key.token is not None:
            self.session.select(key=key.token)


class TopKeyPainter(RowPainter):
    """Glyph, word with the letter bold, bar, weight."""

    def draw(self, painter: QPainter, box: QRectF, row: TopKey, chosen: bool) -> None:
        now, left = theme.current(), box.left()
        if row.letter or not row.inside:
            room = GLYPH + (12 if row.inside or row.before else WORD - 8)
            glyph = box.adjusted(0, 0, room - box.width(), 0)
            end = draw_runs(painter, glyph, (row.glyph, theme.mono(0.92, 500), now.text))
            left = max(left + GLYPH, end + 10)
        word = QRectF(left, box.top(), box.left() + GLYPH + WORD - 4 - left, box.height())
        draw_runs(
            painter,
            word,
            (row.before, theme.font(0.92), now.secondary),
            (row.inside, theme.font(0.92, 700), now.text),
            (row.after, theme.font(0.92), now.secondary),
        )
        draw_value(painter, box, row.value)
        left = box.left() + GLYPH + WORD
        bar = QRectF(left, box.center().y() - 5, max(20.0, box.right() - VALUE - 4 - left), 10)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(now.hover)
        painter.drawRoundedRect(bar, 2, 2)
        painter.setBrush(now.mark if row.first else now.secondary)
        if row.signed:
            painter.setBrush(ink.sides()[int(row.weight > 0)])
        bar.setWidth(max(2.0, bar.width() * row.share))
        painter.drawRoundedRect(bar, 2, 2)


def _looked(capture: Capture, chosen: Selection) -> TopKeys:
    progress(0, 1, "reading one row")
    asking, prompt = capture.query_prompt(chosen.layer), capture.key_prompt(chosen.layer)
    same = asking is prompt
    spans = sentences.word_spans(prompt)
    query = chosen.query or 0
    start, end = capture.query_spans(chosen.layer)[capture.row(chosen.layer, query)]
    one = capture.spec.layers[chosen.layer]
    segments = capture.spec.levels[one.level].stride is None
    null = capture.null(one.level) and start < 0
    if start < 0:
        start, end = query, query + 1
    found = top_keys(capture, chosen, TOP)
    behind = capture.key_spans(chosen.layer)
    keys = tuple(
        _key(prompt, spans, token, tuple(map(int, behind[column])), weight, segments)
        for token, column, weight in found
    )
    own = spans if same else sentences.word_spans(asking)
    where = tr(sentences.NULL) if null else sentences.place(asking, own, int(start), int(end))
    glyph = "∅" if null else sentences.glyph(asking, int(start), int(end))
    side = "" if same else sentences.level(capture.spec, one.key_level)
    signed = grid.signed(capture, chosen.head_id)
    most = max(1.0, *(abs(key.weight) for key in keys))
    keys = tuple(
        replace(key, signed=signed, share=abs(key.weight) / most, first=key is keys[0])
        for key in keys
    )
    return TopKeys(glyph, where, keys, side)


def _key(
    prompt: Prompt,
    spans: Integers,
    token: int | None,
    behind: tuple[int, ...],
    weight: float,
    segments: bool = False,
) -> TopKey:
    start, end = behind
    if token is None or start < 0:
        place = tr(sentences.NULL) if segments else tr("before the text")
        return TopKey(None, "∅", place, "", "", weight)
    around = sentences.word_at(spans, end - 1) or sentences.word_at(spans, start)
    if around is None:
        way, _ = sentences.beside(prompt, spans, end - 1)
        after = sentences.near(prompt, spans, end - 1) if way == "after" else ""
        return TopKey(token, sentences.glyph(prompt, start, end), after, "", "", weight)
    if prompt.spans[start, 0] < 0:  # a special token is its own word
        return TopKey(token, sentences.glyph(prompt, start, end), "", "", "", weight)
    letter = prompt.unit == "letter"
    first, last = min(around[0], start), max(around[1], end)
    before, inside, after = (
        sentences.shown(prompt.words(a, b)) for a, b in ((first, start), (start, end), (end, last))
    )
    glyph = sentences.glyph(prompt, start, end)
    return TopKey(token, glyph, before, inside, after, weight, letter)


# --- notable heads --------------------------------------------------------------------------------


MOST = 8  # heads that are listed
THUMB = 36  # px
SCORE = "Share of a row's weight that the role explains, averaged over rows"
SHARE = Citation("mean_i Σ_{j ∈ role} |a_ij| / Σ_j |a_ij|", "Voita et al. 2019; heads.md")


@dataclass(frozen=True, slots=True)
class NotableHead:
    """A head with a clear role, and its small picture (height, width, 4)."""

    facts: HeadRole
    level: str
    small: atlas.Pixels | None

    @property
    def words(self) -> str:
        """The head, its role and its score."""
        name = tr("Head {head}", head=self.facts.head)
        return f"{name}, {tr(self.facts.role)}, {sentences.weight(self.facts.score)}"

    @property
    def tip(self) -> str:
        """The evidence of the role, and what the score is."""
        return tip(f"{tr(role_evidence(self.facts))}\n{explanation(tr(SCORE), SHARE)}")


class NotablePanel(View):
    """The clearest heads of different roles; a click opens one, a table holds them all."""

    title = "Notable heads"
    topic = "worth"
    figureless = "It is a list of heads: Hourglass draws all of them"
    needs = ("facts", "capture", "display", "dark", "selection")
    empty = ("No notable heads yet", "The clearest heads are listed once they are measured.")

    def __init__(self) -> None:
        super().__init__()
        self.rows = ListRows()
        self._painter = NotablePainter()
        self.list = RowList(self.rows, self._painter, 2, tr("Notable heads"))
        self.list.picked.connect(lambda row: self.select_head(row.facts.head))
        every = Button(tr("All heads in a table"), "table", kind="link", weight=400)
        every.clicked.connect(lambda: self.asked.emit("table"))
        below = hbox(None, every, 1, margins=(8, 0, 8, 0))
        vbox(self.content, (self.list, 1), below, margins=(0, 6, 0, 6), spacing=1)

    def request(self, session: Session) -> Callable[[], tuple[NotableHead, ...]] | None:
        """The heads and their small maps."""
        self.empty_actions = CAPTURE if session.capture is None else MEASURING
        if session.capture is None or not session.facts:
            return None
        size = round(THUMB * self.devicePixelRatioF())
        return partial(_worth, session.capture, session.facts, session.display.palette, size)

    def noticed(self, name: str) -> None:
        """Mark the chosen one at once."""
        if name == "selection" and self.session is not None:
            self._painter.chosen = self.session.selection.head_id
            self.list.viewport().update()

    def draw(self, result: tuple[NotableHead, ...]) -> None:
        """List them."""
        self.rows.show_rows(result)
        self.noticed("selection")

    def as_table(self) -> list[list[str]] | None:
        """The heads that are listed: level, role, and the share of weight that goes there."""
        heads = [tr(one) for one in ("Head", "Level", "Role", "Share")]
        return [heads] + [
            [str(one.facts.head), one.level, tr(one.facts.role), repr(float(one.facts.score))]
            for one in self.rows.rows
        ] if self.rows.rows else None  # fmt: skip


class NotablePainter(RowPainter):
    """Thumbnail, name, level, role and score."""

    high = 44
    chosen: HeadId | None = None

    def is_chosen(self, row: NotableHead) -> bool:
        return row.facts.head == self.chosen

    def draw(self, painter: QPainter, box: QRectF, row: NotableHead, chosen: bool) -> None:
        now, facts = theme.current(), row.facts
        picture = QRectF(box.left() + 0.5, box.top() + 4.5, THUMB - 1, THUMB - 1)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(now.pane)
        painter.drawRect(picture)
        if row.small is not None:
            high, wide = row.small.shape[:2]
            form = QImage.Format.Format_ARGB32_Premultiplied
            painter.drawImage(picture, QImage(row.small.data, wide, high, 4 * wide, form))
        painter.setPen(QPen(now.edge, 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(picture, 3, 3)
        left = picture.right() + 12
        name = QRectF(left, box.top() + 2, 90, 20)
        colour = now.mark_text if chosen else now.text
        end = draw_runs(painter, name, (str(facts.head), theme.font(weight=600), colour))
        if row.level:
            draw_chip(painter, end + 10, name.center().y(), row.level, chosen)
        role = QRectF(left, box.top() + 22, box.right() - VALUE - left, 18)
        colour = now.text if chosen else now.secondary
        draw_runs(painter, role, (tr(facts.role), theme.font(0.92), colour))
        draw_value(painter, box.adjusted(0, 22, 0, -4), sentences.weight(facts.score))


def _worth(
    capture: Capture, facts: Mapping[HeadId, HeadRole], palette: str, size: int
) -> tuple[NotableHead, ...]:
    out = []
    for number, one in enumerate(notable_heads(facts, MOST)):
        progress(number, MOST, "drawing heads")
        layer, known = capture.spec.layers[one.head.layer], capture.maps[one.head.layer]
        small = None
        if known is not None:
            thumb = atlas.thumb(capture, known, layer, one.head.head)
            table = palettes.colours(
                palettes.matching_palette(palette, thumb.signed), theme.current().dark
            )
            small = atlas.painted(thumb, size, size, atlas.largest(thumb), table)
        out.append(NotableHead(one, sentences.ends(capture.spec, one.head.layer), small))
    return tuple(out)


# --- display --------------------------------------------------------------------------------------


SWATCH = QSize(48, 12)


class DisplayPanel(View):
    """Writes session.display. Signed weights always have their own palette, about zero."""

    title: ClassVar[str] = "Display"
    topic: ClassVar[str] = "display"
    figureless = "It sets the colours of the others"
    needs: ClassVar[tuple[str, ...]] = ("display", "dark")
    lane: ClassVar[Literal["files", "engine", "here"]] = "here"

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.palettes = Picker()
        self.palettes.setIconSize(SWATCH)
        self.palettes.setAccessibleName(tr("Palette"))
        for row in palettes.PALETTES.values():
            if not row.signed:
                self.palettes.addItem(tr(row.label), row.name)
        self.palettes.activated.connect(lambda at: self._put(palette=self.palettes.itemData(at)))
        self.scale = scale_choice()
        self.scale.chosen.connect(lambda name: self._put(scale=name))
        self.shared = Check(tr("One scale for all heads"))
        self.shared.toggled.connect(lambda on: self._put(shared=on))
        self.top = QLineEdit()
        self.top.setPlaceholderText(tr("from the data"))
        self.top.setAccessibleName(tr("Top of the scale"))
        self.top.setValidator(QDoubleValidator(0.0, 1e9, 6, self.top))
        self.top.validator().setLocale(QLocale.c())
        self.top.editingFinished.connect(self._choose_top)
        form = QFormLayout(self.content)
        form.setContentsMargins(PAD, 10, PAD, 12)
        form.setHorizontalSpacing(12)
        form.setVerticalSpacing(8)
        form.setFieldGrowthPolicy(form.FieldGrowthPolicy.ExpandingFieldsGrow)
        form.setLabelAlignment(theme.TO_LEFT)
        for words, widget in (
            ("Palette", self.palettes), ("Scale", self.scale), ("Top", self.top)
        ):  # fmt: skip
            form.addRow(label(tr(words), kind="secondary"), widget)
        form.addRow(self.shared)

    def request(self, session: Session) -> Callable[[], Display] | None:
        """The display as it is."""
        return lambda: session.display

    def draw(self, result: Display) -> None:
        """Show it without saying that anything changed."""
        self._swatches()
        name = palettes.matching_palette(result.palette, False)
        self.palettes.setCurrentIndex(self.palettes.findData(name))
        self.scale.choose(result.scale)
        with QSignalBlocker(self.shared):
            self.shared.setChecked(result.shared)
        self.shared.setEnabled(result.limits is None)
        self.top.setText("" if result.limits is None else f"{result.limits[1]:g}")

    def _swatches(self) -> None:
        dark = theme.current().dark
        for at in range(self.palettes.count()):
            table = palettes.colours(self.palettes.itemData(at), dark)
            row = np.ascontiguousarray(table[np.linspace(0, 255, SWATCH.width()).astype(int)])
            strip = QImage(row.data, len(row), 1, 3 * len(row), QImage.Format.Format_RGB888)
            self.palettes.setItemIcon(at, QIcon(QPixmap.fromImage(strip.scaled(SWATCH))))

    def _choose_top(self) -> None:
        try:
            top = float(self.top.text())
        except ValueError:
            top = 0.0
        good = math.isfinite(top) and top > 0
        self._put(limits=(0.0, top) if good else None)

    def _put(self, **changes: object) -> None:
        if self.session is not None:
            self.session.put(display=replace(self.session.display, **changes))  # type: ignore[arg-type]


# --- texts ----------------------------------------------------------------------------------------


LABEL = 76  # px that a label has at most
SHOWN, BEFORE = 160, 14  # characters of a text that are drawn, and in front of what was found
IN_TIP = 600  # characters of a text in its tooltip


@dataclass(frozen=True, slots=True)
class CorpusRow:
    """A text of a corpus: its number from 1, and the words that were searched for."""

    item: Item
    number: int
    total: int
    unit: str
    sought: str

    @property
    def shown(self) -> tuple[str, int, int]:
        """The text from its beginning, or from a little before what was found: (text, start, end
        of what was found)."""
        text = " ".join(self.item.text.split())
        place = max(0, text.lower().find(self.sought))
        end = place + len(self.sought)
        start = max(0, place - BEFORE) if end > 2 * BEFORE else 0
        cut = "…" if start else ""
        by = len(cut) - start
        return cut + _line(text[start : start + SHOWN]), place + by, end + by

    @property
    def size(self) -> str:
        """How long the text is, and its label."""
        label = f", {sentences.shown(self.item.label)}" if self.item.label else ""
        return sentences.counted(self.item.tokens, self.unit) + label

    @property
    def words(self) -> str:
        """A sentence for screen readers."""
        return f"{self.number}: {_line(self.item.text)}, {self.size}"

    @property
    def tip(self) -> str:
        """All of the text, with its number and size."""
        text = self.item.text
        text = text if len(text) <= IN_TIP else text[: IN_TIP - 1] + "…"
        place = tr("Text {number:,} of {total:,}", number=self.number, total=self.total)
        said = f"{place}, {self.size} (--item {self.item.number})\n\n{text}"
        return TextQt.convertFromPlainText(said, Qt.WhiteSpaceMode.WhiteSpaceNormal)  # it wraps


class CorpusRows(ListRows):
    """The texts of a corpus that have some words in them, made as they are drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.items: tuple[Item, ...] = ()
        self.unit, self.sought = "token", ""
        self._folded: list[str] = []

    def show_items(self, items: tuple[Item, ...], unit: str) -> None:
        """Another corpus."""
        self.items, self.unit = items, unit
        self._folded = [" ".join(one.text.lower().split()) for one in items]
        self.search(self.sought)

    def search(self, words: str) -> None:
        """List the texts with these words, in any case; rows are places among the items."""
        self.sought = " ".join(words.lower().split())
        self.show_rows([at for at, text in enumerate(self._folded) if self.sought in text])

    def row(self, number: int) -> CorpusRow:
        """One of the texts that are listed."""
        at = self.rows[number]
        return CorpusRow(self.items[at], at + 1, len(self.items), self.unit, self.sought)

    def row_of(self, number: int) -> int:
        """The row of an item's number, -1 where it is not listed."""
        rows = (row for row, at in enumerate(self.rows) if self.items[at].number == number)
        return next(rows, -1)


class CorpusPainter(RowPainter):
    """Number and text with what was found in bold; below them the tokens and the label."""

    high = 46
    chosen = -1

    def is_chosen(self, row: CorpusRow) -> bool:
        return row.item.number == self.chosen

    def draw(self, painter: QPainter, box: QRectF, row: CorpusRow, chosen: bool) -> None:
        now = theme.current()
        font = theme.font(0.85, 600 if chosen else 400)
        above, below = box.adjusted(0, 3, 0, -22), box.adjusted(0, 22, 0, -3)
        wide = QFontMetricsF(font).horizontalAdvance(f"{row.total:,}")
        painter.setFont(font)
        painter.setPen(now.mark_text if chosen else now.secondary)
        painter.drawText(
            QRectF(above.left(), above.top(), wide, above.height()),
            theme.TO_RIGHT,
            f"{row.number:,}",
        )
        text, start, end = row.shown
        plain, bold = theme.font(), theme.font(weight=700)
        runs = ((text[:start], plain), (text[start:end], bold), (text[end:], plain))
        line = above.adjusted(wide + 10, 0, 0, 0)
        draw_runs(painter, line, *((part, one, now.text) for part, one in runs if part))
        size = sentences.counted(row.item.tokens, row.unit)
        colour = now.text if chosen else now.secondary
        draw_runs(painter, below.adjusted(wide + 10, 0, 0, 0), (size, theme.font(0.92), colour))
        if row.item.label:
            metrics = QFontMetricsF(theme.font(0.85))
            name = metrics.elidedText(
                _line(row.item.label), Qt.TextElideMode.ElideRight, LABEL - 14
            )
            left = box.right() - chip_width(name)
            draw_chip(painter, left, below.center().y(), name, chosen)


def _line(text: str) -> str:
    """A text on one line, with nothing in it that could move what stands beside it."""
    return sentences.shown(text[: 2 * SHOWN], SHOWN).replace(sentences.SPACE, " ")


TextList = tuple[tuple[Item, ...], int, str]


class TextsPanel(View):
    """Lists the texts of the corpus; Enter or a click opens one. Absent for a text alone."""

    title = "Texts"
    topic = "texts"
    figureless = "It is a list of texts"
    needs = ("capture",)
    empty = ("One text alone", "Capture a file of texts to search them and step through them.")
    empty_actions = (("corpus", "Run model on a text file…"),)
    lane = "here"

    picked = Signal(int)  # the number of an item
    wanted = Signal()  # the panel is to be seen

    def __init__(self) -> None:
        super().__init__()
        self.field = QLineEdit()
        self.field.setPlaceholderText(tr("Find a text"))
        self.field.setAccessibleName(tr("Find a text"))
        self.field.setToolTip(tr("Words of a text (Ctrl+F). Enter opens the first"))
        self.field.textChanged.connect(self._search)
        self.count = Words(factor=0.92, kind="secondary")
        self.rows, self._painter = CorpusRows(), CorpusPainter()
        self.list = RowList(self.rows, self._painter, 2)
        self.list.setToolTip(
            tr("Enter or a click opens a text; Ctrl+PgUp and Ctrl+PgDown step through all")
        )
        self.list.picked.connect(lambda row: self.picked.emit(row.item.number))
        self.field.installEventFilter(self)
        self.list.installEventFilter(self)
        self.none = Words(kind="secondary")
        self.clear = Button(tr("Clear the search"), kind="link")
        self.clear.clicked.connect(self._clear)
        nothing = QWidget()
        vbox(
            nothing, self.none, (self.clear, 0, Qt.AlignmentFlag.AlignLeft), 1,
            margins=(PAD, 8, PAD, 8), spacing=-1,
        )  # fmt: skip
        self.stack = QStackedWidget()
        self.stack.addWidget(self.list)
        self.stack.addWidget(nothing)
        above = vbox(None, self.field, self.count, margins=(PAD, 0, PAD, 0), spacing=4)
        vbox(self.content, above, (self.stack, 1), margins=(0, 10, 0, 8), spacing=4)
        self.start_at(self.field)

    def request(self, session: Session) -> Callable[[], TextList] | None:
        """The texts, and which of them is open."""
        capture = session.capture
        if capture is None or not capture.items:
            return None
        return lambda: (capture.items, capture.item, capture.main.unit)

    def draw(self, result: TextList) -> None:
        """List them; the open one is in sight."""
        items, number, unit = result
        moved = number != self._painter.chosen or items != self.rows.items
        self._painter.chosen = number
        if items != self.rows.items:
            self.rows.show_items(items, unit)
        self._say()
        if moved:
            self._reveal()

    def as_table(self) -> list[list[str]] | None:
        """The texts that are listed, whole, with their labels and sizes."""
        if not self.rows.rows:
            return None
        heads = [tr(one) for one in ("Text number", "Text", "Label", "Tokens")]
        found = ((at, self.rows.items[at]) for at in self.rows.rows)
        return [heads] + [
            [str(at + 1), " ".join(one.text.split()), one.label, str(one.tokens)]
            for at, one in found
        ]

    def search(self) -> None:
        """Take the keyboard for a new search."""
        self.wanted.emit()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Down leads from the field into the list, Enter opens its first text, Escape clears."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() == Qt.Key.Key_Escape and self.field.text():
                self._clear()
                return True
            if watched is self.field and event.key() in (*RETURN_KEYS, Qt.Key.Key_Down):
                first = self.rows.index(0)
                if event.key() in RETURN_KEYS:
                    self.list.setCurrentIndex(first)
                    self.list.pick(first)
                    return True
                self.list.setFocus(Qt.FocusReason.ShortcutFocusReason)
                if not self.list.currentIndex().isValid():
                    self.list.setCurrentIndex(first)
                return True
        return super().eventFilter(watched, event)

    def _search(self, words: str) -> None:
        self.rows.search(words)
        self._say()
        self._reveal()

    def _reveal(self) -> None:
        row = self.rows.row_of(self._painter.chosen)
        if row >= 0:
            self.list.setCurrentIndex(self.rows.index(row))
        else:
            self.list.scrollToTop()

    def _say(self) -> None:
        found, every = self.rows.rowCount(), len(self.rows.items)
        words = self.field.text().strip()
        said = "{found:,} of {every:,} texts" if words else "{every:,} texts"
        self.count.say(tr(said, found=found, every=every))
        self.none.say(tr("No text has “{words}”", words=words))
        self.stack.setCurrentIndex(0 if found else 1)
        self.list.setAccessibleName(tr("Texts: {count}", count=self.count.full))

    def _clear(self) -> None:
        self.field.clear()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)


PANELS = (HeadPanel, TopKeysPanel, NotablePanel, DisplayPanel, TextsPanel)
