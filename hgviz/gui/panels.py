"""The panels beside a map: this head, its top keys, notable heads, display, texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from textwrap import wrap

import numpy as np
from PySide6.QtCore import (
    QEvent,
    QLocale,
    QObject,
    QPointF,
    QRectF,
    QSignalBlocker,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QDoubleValidator,
    QFocusEvent,
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
from PySide6.QtWidgets import QFormLayout, QGridLayout, QLabel, QLineEdit, QWidget

from hgviz import palettes
from hgviz.analysis.roles import HeadRole, heads_of_kind, notable_heads, rank, top_keys
from hgviz.core import Capture, Display, HeadId, Integers, Item, Map, Prompt, Selection, progress
from hgviz.gui import atlas, grid, ink, sentences, theme
from hgviz.gui.ink import faint, focus_ring
from hgviz.gui.language import tr
from hgviz.gui.sentences import Citation, counted, explanation, measured
from hgviz.gui.tables import REST, ROW, Column, RowList, paint_runs
from hgviz.gui.view import CAPTURE, NOTHING, Empty, View, scale_choice
from hgviz.gui.widgets import RETURN_KEYS, Button, Check, Picker, Words, hbox, label, make, vbox
from hgviz.maps import LazyMap
from hgviz.session import Session
from hgviz.tasks.heads import role_evidence, role_sentence

# --- rows of lists --------------------------------------------------------------------------------

PAD = 16
INSET = PAD - 8  # px from the cell of a table, which leaves 8 itself
VALUE = 44  # px: a number at the right


def paint_chip(
    painter: QPainter, box: QRectF, text: str, chosen: bool, at_right: bool = False
) -> None:
    """Draw a few words in a chip at the left or right of a box."""
    now, font = theme.current(), theme.font(0.85)
    wide = QFontMetricsF(font).horizontalAdvance(text) + 14
    left = box.right() - wide if at_right else box.left()
    chip = QRectF(left, box.center().y() - 9, wide, 18)
    theme.draw_box(painter, chip, 9, now.pane if chosen else now.hover)
    colour = now.text if chosen else now.secondary
    theme.write(painter, chip, text, font, colour, theme.CENTRE)


# --- this head ------------------------------------------------------------------------------------

METRICS_SHOWN = 5  # what fits above the other docks; the table has all
NAMED = 138  # px: the names of the metrics
TICKS_HEIGHT = 18  # px: a line of ticks
MEASURING = (("jobs", "Jobs…"),)  # heads are measured by themselves


class HeadPanel(View):
    """The chosen head's role in words with its evidence, and each metric among all heads."""

    title = "Head details"
    topic = "head"
    figureless = "Export the figure of All heads instead"
    needs = ("selection", "facts", "capture")
    lane = "here"
    empty = Empty(
        "Not measured yet", "The role of the head appears here once all heads are measured.",
        MEASURING,
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.sentence = label(factor=1.08, weight=600, wrap=True)
        self.evidence = label(factor=0.92, kind="secondary", wrap=True)
        self.role: HeadRole | None = None
        self.lines: list[tuple[Words, Ticks, QLabel]] = []
        metrics = make(QGridLayout, horizontalSpacing=8, verticalSpacing=2)
        metrics.setColumnStretch(1, 1)
        metrics.setColumnMinimumWidth(0, NAMED)
        for row in range(METRICS_SHOWN):
            line = Words(), Ticks(), label(weight=600)
            line[1].described.connect(self._say_count)
            line[2].setFixedWidth(VALUE)
            line[2].setAlignment(theme.TO_RIGHT)
            self.lines.append(line)
            for column, part in enumerate(line):
                metrics.addWidget(part, row, column)
        self.count = label(factor=0.85, kind="secondary", wrap=True)
        self._counted = ""
        vbox(
            self.content, self.sentence, self.evidence, metrics, self.count, 1,
            margins=(PAD, 10, PAD, 8), spacing=4,
        ).insertSpacing(2, 2)  # fmt: skip

    def request(self, session: Session) -> Callable[[], HeadRole] | Empty | None:
        role = session.facts.get(session.selection.head_id)
        if session.capture is None:
            return type(self).empty._replace(actions=CAPTURE)
        return (lambda: role) if role is not None else None

    def draw(self, result: HeadRole) -> None:
        self.role = role = result
        capture, (layer, head) = self.session.capture, role.head
        self.sentence.setText(tr(role_sentence(role)))
        evidence = tr(role_evidence(role)).replace(" -", " −")
        limits = limit_words(capture.maps[layer], head)
        self.evidence.setText("\n".join(filter(None, (evidence, *limits))))
        kind, unit = heads_of_kind(role.head, self.session.facts), capture.key_prompt(layer).unit
        # some heads have fewer numbers
        for metric, line in zip_longest([*role.metrics][:METRICS_SHOWN], self.lines):
            for part in line:
                part.setVisible(metric is not None)
            if metric is None:
                continue
            name, ticks, value = line
            others = [one.metrics[metric] for one in kind if metric in one.metrics]
            name.say(sentences.metric_name(metric, unit))
            words = f"{sentences.explained(metric, unit)}\n{self._rank(metric)}"
            ticks.show_values(others, role.metrics[metric], words)
            value.setText(measured(metric, role.metrics[metric]))
            value.setToolTip(words)
            value.setAccessibleName(f"{name.full}: {value.text()}, {self._rank(metric)}")
        noun = "cross-attention head" if role.kind == "cross" else "self-attention head"
        self._counted = tr("Ticks: all {many}", many=counted(len(kind), noun)) if kind else ""
        self._say_count("")

    def _rank(self, metric: str) -> str:
        own, total = rank(metric, self.role.head, self.session.facts)
        return tr("rank {rank:,} of {total:,}, largest first", rank=own, total=total)

    def _say_count(self, words: str) -> None:
        """Say beneath the numbers what one of them means, or what all of them are."""
        self.count.setText(words or self._counted)
        self._fit()

    def as_text(self) -> str:
        return f"{self.sentence.text()}\n{self.evidence.text()}" if self.role else ""

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        # a scroll area asks nobody how high they are when so wide: wrapped words squeeze the rest
        if self.role is not None:
            self.setMinimumHeight(self.content.layout().totalHeightForWidth(self.width()))


class Ticks(QWidget):
    """Where one value stands among many: a line of ticks with an orange dot."""

    described = Signal(str)  # what it says while it has the keyboard, "" when that goes

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
        real = [value for value in (*values, mine) if math.isfinite(value)] or [0.0]
        self._values, self._mine = values, mine
        self._ends = ends or (min(real), max(real))
        self.setToolTip(said)
        self.setAccessibleName(said)
        self.update()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.described.emit(self.toolTip())

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.described.emit("")

    def place(self, value: float) -> float:
        """The x of a value; the smallest stands at the left end, the largest at the right."""
        low, high = self._ends
        part = (value - low) / (high - low) if high > low else 0.5
        return 6 + part * (self.width() - 12)

    def paintEvent(self, event: QPaintEvent) -> None:
        now = theme.current()
        with theme.smooth_painter(self) as painter:
            middle = self.height() / 2
            painter.setPen(QPen(now.edge, 1))
            painter.drawLine(QPointF(6, middle), QPointF(self.width() - 6, middle))
            painter.setPen(QPen(faint(now.secondary, 0.35), 1.2))
            for value in self._values:
                x = self.place(value)
                painter.drawLine(QPointF(x, middle - 4), QPointF(x, middle + 4))
            if math.isfinite(self._mine):
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(now.mark)
                painter.drawEllipse(QPointF(self.place(self._mine), middle), 4.5, 4.5)
            if self.hasFocus():
                focus_ring(painter, QRectF(self.rect()))


def limit_words(one: Map | None, head: int) -> tuple[str, ...]:
    """What narrows a head besides which keys come later: its window, its chunk, a cap on its
    scores, and what a sink logit takes of its rows."""
    if not isinstance(one, LazyMap) or head not in one.heads:
        return ()
    rule, number = one.factors.rule, one.heads.index(head)
    behind, ahead = rule.band or (0, 0)
    is_both = ahead and not rule.causal
    share = one.factors.sink_share(number)
    limits = (
        ("Window: {:,} back, {:,} ahead" if is_both else "Window: {:,} back", rule.band),
        ("Streaming: first {:,} and latest {:,} keys", rule.of(number).streaming_window),
        ("Within chunks of {:,}", (rule.chunk,) if rule.chunk else None),
        ("Scores capped at ±{:g}", (rule.softcap,) if rule.softcap else None),
        ("Sink logit: {:.1f} % of a row, its keys {:.1f} %",
         None if share is None else (100 * share, 100 * (1 - share))),
    )  # fmt: skip
    return tuple(tr(words).format(*numbers) for words, numbers in limits if numbers)


# --- top keys -------------------------------------------------------------------------------------

TOP, TOP_HEIGHT = 5, 20  # keys that are listed, px of one
NONE_CHOSEN = Empty(
    "No query chosen", "Choose a query in the map or in the text.",
    (("next_query", "Choose a query"),),
)  # fmt: skip
GLYPH, WORD = 28, 108  # px: the columns left of the bar


@dataclass(frozen=True, slots=True)
class TopKey:
    """A key with a large weight: its glyph, and the word that it is in as before, inside, after."""

    token: int | None
    glyph: str
    weight: float
    value: str  # the weight in words
    before: str = ""
    inside: str = ""
    after: str = ""
    shows_glyph: bool = True  # whether it stands alone, beside the word it is in


@dataclass(frozen=True, slots=True)
class TopKeys:
    """The chosen query, where it stands and its strongest keys."""

    glyph: str
    where: str
    keys: tuple[TopKey, ...]
    is_signed: bool


class TopKeysPanel(View):
    """The five keys with the largest weights for the chosen query in the chosen head."""

    title = "Top keys"
    topic = "looks"
    figureless = "Export the figure of Links instead"
    needs = ("selection", "capture", "dark")

    def __init__(self) -> None:
        super().__init__()
        self.result: TopKeys | None = None
        self.query = label(weight=600, kind="mark")
        self.query.setFont(theme.mono(1.0, 600))
        self.where = Words(factor=0.92, kind="secondary")
        column = Column("", lambda key: f"{key.glyph} {key.value}", width=REST, paint=self._paint)
        self.list = RowList(tr("Top keys"), TOP_HEIGHT, TOP, column)
        self.list.taken.connect(self._pick)
        top = hbox(None, self.query, (self.where, 1), margins=(PAD, 0, PAD, 0), spacing=8)
        vbox(self.content, top, (self.list, 1), margins=(0, 8, 0, 8), spacing=2)

    def request(self, session: Session) -> Callable[[], TopKeys] | Empty | None:
        capture, chosen = session.capture, session.selection
        if capture is None:
            return NOTHING
        count = len(capture.query_prompt(chosen.layer))
        if chosen.query is None or chosen.query >= count or capture.maps[chosen.layer] is None:
            return NONE_CHOSEN
        return partial(find_top_keys, capture, chosen)

    def draw(self, result: TopKeys) -> None:
        self.result = result
        self.query.setText(result.glyph)
        self.where.say(result.where)
        self.list.list_rows(result.keys)

    def as_table(self) -> list[list[str]] | None:
        if self.result is None:
            return None
        rows = (["" if key.token is None else str(key.token), key.glyph, repr(key.weight)]
                for key in self.result.keys)  # fmt: skip
        return [[tr("Key"), tr("Key token"), tr("Weight")], *rows]

    def _pick(self, key: TopKey) -> None:
        if key.token is not None:
            self.session.select(key=key.token)

    def _paint(self, painter: QPainter, box: QRectF, key: TopKey, chosen: bool) -> None:
        now, box = theme.current(), box.adjusted(INSET, 0, -INSET, 0)
        left = box.left()
        if key.shows_glyph:
            room = GLYPH + (12 if key.inside or key.before else WORD - 8)
            glyph = box.adjusted(0, 0, room - box.width(), 0)
            end = paint_runs(painter, glyph, (key.glyph, theme.mono(0.92, 500), now.text))
            left = max(left + GLYPH, end + 10)
        quiet, bar = theme.font(0.92), box.left() + GLYPH + WORD
        paint_runs(
            painter, QRectF(left, box.top(), bar - 4 - left, box.height()),
            (key.before, quiet, now.secondary), (key.inside, theme.font(0.92, 700), now.text),
            (key.after, quiet, now.secondary),
        )  # fmt: skip
        theme.write(painter, box, key.value, theme.font(weight=600), now.text, theme.TO_RIGHT)
        most = max(1.0, *(abs(one.weight) for one in self.result.keys))
        track = QRectF(bar, box.center().y() - 5, max(20.0, box.right() - VALUE - 4 - bar), 10)
        theme.draw_box(painter, track, 2, now.hover)
        colour = now.mark if key is self.result.keys[0] else now.secondary
        if self.result.is_signed:
            colour = ink.sides()[int(key.weight > 0)]
        track.setWidth(max(2.0, track.width() * abs(key.weight) / most))
        theme.draw_box(painter, track, 2, colour)


def find_top_keys(capture: Capture, chosen: Selection) -> TopKeys:
    """The strongest keys of the chosen query, and what both are called."""
    progress(0, 1, "reading one row")
    asking, prompt = capture.query_prompt(chosen.layer), capture.key_prompt(chosen.layer)
    spans, behind = sentences.word_spans(prompt), capture.key_spans(chosen.layer)
    query, layer = chosen.query or 0, capture.spec.layers[chosen.layer]
    start, end = map(int, capture.query_spans(chosen.layer)[capture.row(chosen.layer, query)])
    is_null = capture.null(layer.level) and start < 0
    is_signed = grid.signed(capture, chosen.head_id)
    if start < 0:
        start, end = query, query + 1
    null = sentences.NULL if capture.spec.levels[layer.level].stride is None else "before the text"
    keys = []
    for token, column, weight in top_keys(capture, chosen, TOP):
        value = sentences.with_sign(weight, 2) if is_signed else sentences.weight(weight)
        first, last = map(int, behind[column])
        if token is None or first < 0:
            keys.append(TopKey(None, "∅", weight, value, tr(null)))
        else:
            words = _word_around(prompt, spans, first, last)
            glyph, alone = sentences.glyph(prompt, first, last), prompt.has_characters
            keys.append(TopKey(token, glyph, weight, value, *words, alone or not words[1]))
    own = spans if asking is prompt else sentences.word_spans(asking)
    where = [tr(sentences.NULL) if is_null else sentences.place(asking, own, start, end)]
    if asking is not prompt:
        where.append(tr("keys in the {text}:", text=sentences.level(capture.spec, layer.key_level)))
    glyph = "∅" if is_null else sentences.glyph(asking, start, end)
    return TopKeys(glyph, ", ".join(where), tuple(keys), is_signed)


def _word_around(prompt: Prompt, spans: Integers, start: int, end: int) -> tuple[str, str, str]:
    """The word that tokens are in, as before, inside and after them, or the one they follow."""
    around = sentences.word_at(spans, end - 1) or sentences.word_at(spans, start)
    if around is None:
        way, word = sentences.word_relation(prompt, spans, end - 1)
        return (tr("after {word}", word=word) if way == "after" else ""), "", ""
    if prompt.spans[start, 0] < 0:  # a special token is its own word
        return "", "", ""
    first, last = min(around[0], start), max(around[1], end)
    parts = (first, start), (start, end), (end, last)
    before, inside, after = (sentences.shown(prompt.words(*ends)) for ends in parts)
    return before, inside, after


# --- notable heads --------------------------------------------------------------------------------

MOST = 8  # heads that are listed
NOTABLE_HEIGHT, THUMB = 44, 36  # px
SCORE = "Share of a row's weight that the role explains, averaged over rows"
SHARE = Citation("mean_i Σ_{j ∈ role} |a_ij| / Σ_j |a_ij|", "Voita et al. 2019; sixteen-heads.md")


@dataclass(frozen=True, slots=True, eq=False)
class NotableHead:
    """A head with a clear role, and its small picture (height, width, 4)."""

    role: HeadRole
    level: str
    small: atlas.Pixels | None

    def words(self) -> str:
        name = tr("Head {head}", head=self.role.head)
        return f"{name}, {tr(self.role.role)}, {sentences.weight(self.role.score)}"

    def about(self) -> str:
        """The evidence of the role, and what the score is."""
        return f"{tr(role_evidence(self.role))}\n{explanation(tr(SCORE), SHARE)}"


NO_ROLE = Empty(
    "No notable heads",
    "No head has a clear role on this text.",
    (("table", "All heads in a table"),),
)


class NotablePanel(View):
    """The clearest heads of different roles; a click opens one, a table holds them all."""

    title = "Notable heads"
    topic = "worth"
    figureless = "Export the figure of Hourglass instead"
    needs = ("facts", "capture", "display", "dark", "selection")
    empty = Empty(
        "No notable heads yet", "The clearest heads are listed once they are measured.", MEASURING
    )

    def __init__(self) -> None:
        super().__init__()
        column = Column("", NotableHead.words, width=REST, paint=_paint_notable)
        self.list = RowList(
            tr("Notable heads"), NOTABLE_HEIGHT, 2, column, lambda row: row.role.head,
            NotableHead.about,
        )  # fmt: skip
        self.list.taken.connect(lambda row: self.select_head(row.role.head))
        words, ask = tr("All heads in a table"), partial(self.asked.emit, "table")
        table = Button(words, "table", kind="link", weight=400, clicked=ask)
        below = hbox(None, table, 1, margins=(8, 0, 8, 0))
        vbox(self.content, (self.list, 1), below, margins=(0, 6, 0, 6), spacing=1)

    def request(self, session: Session) -> Callable[[], tuple[NotableHead, ...]] | Empty | None:
        if session.capture is None:
            return type(self).empty._replace(actions=CAPTURE)
        if not session.facts:
            return None
        if not notable_heads(session.facts):
            return NO_ROLE
        size = round(THUMB * self.devicePixelRatioF())
        return partial(find_notable, session.capture, session.facts, session.display.palette, size)

    def noticed(self, name: str) -> None:
        if name == "selection":
            self.list.choose(self.session.selection.head_id)

    def draw(self, result: tuple[NotableHead, ...]) -> None:
        self.list.list_rows(result)
        self.noticed("selection")


def _paint_notable(painter: QPainter, box: QRectF, row: NotableHead, chosen: bool) -> None:
    now, role, box = theme.current(), row.role, box.adjusted(INSET, 0, -INSET, 0)
    picture = QRectF(box.left() + 0.5, box.top() + 4.5, THUMB - 1, THUMB - 1)
    painter.fillRect(picture, now.pane)
    if row.small is not None:
        painter.drawImage(picture, ink.image(row.small))
    theme.draw_box(painter, picture, 3, edge=now.edge)
    left = picture.right() + 12
    name = QRectF(left, box.top() + 2, 90, 20)
    colour = now.mark_text if chosen else now.text
    end = paint_runs(painter, name, (str(role.head), theme.font(weight=600), colour))
    if row.level:
        paint_chip(painter, name.adjusted(end + 10 - left, 0, 0, 0), row.level, chosen)
    below = box.adjusted(left - box.left(), 22, 0, -4)
    words, colour = below.adjusted(0, 0, -VALUE, 0), now.text if chosen else now.secondary
    paint_runs(painter, words, (tr(role.role), theme.font(0.92), colour))
    score = sentences.weight(role.score)
    theme.write(painter, below, score, theme.font(weight=600), now.text, theme.TO_RIGHT)


def find_notable(
    capture: Capture, roles: Mapping[HeadId, HeadRole], palette: str, size: int
) -> tuple[NotableHead, ...]:
    """The clearest heads, with thumbnails of so many pixels."""
    out = []
    for number, one in enumerate(notable_heads(roles, MOST)):
        progress(number, MOST, "drawing heads")
        layer, known = capture.spec.layers[one.head.layer], capture.maps[one.head.layer]
        small = None
        if known is not None:
            thumb = atlas.thumb(capture, known, layer, one.head.head)
            small = atlas.painted(thumb, size, size, palette, theme.current().dark)
        out.append(NotableHead(one, sentences.ends(capture.spec, one.head.layer), small))
    return tuple(out)


# --- display --------------------------------------------------------------------------------------

SWATCH = QSize(48, 12)


class DisplayPanel(View):
    """Writes session.display. Signed weights always have their own palette, about zero."""

    title = "Display"
    topic = "display"
    figureless = "It sets the colours of the other panes"
    needs = ("display", "dark")
    lane = "here"

    def __init__(self) -> None:
        super().__init__()
        self.palettes = Picker(tr("Palette"))
        self.palettes.setIconSize(SWATCH)
        known = (one for one in palettes.PALETTES.values() if not one.signed)
        self.palettes.offer((one.name, tr(one.label)) for one in known)
        self.palettes.activated.connect(lambda at: self._put(palette=self.palettes.itemData(at)))
        self.scale = scale_choice()
        self.scale.chosen.connect(lambda name: self._put(scale=name))
        self.shared = Check(tr("One scale for all heads"))
        self.shared.toggled.connect(lambda on: self._put(shared=on))
        self.top = make(
            QLineEdit, placeholderText=tr("from the data"), editingFinished=self._choose_top,
            accessibleName=tr("Maximum of the scale"),
        )  # fmt: skip
        self.top.setValidator(QDoubleValidator(0.0, 1e9, 6, self.top))
        self.top.validator().setLocale(QLocale.c())
        form = QFormLayout(
            self.content, horizontalSpacing=12, verticalSpacing=8, labelAlignment=theme.TO_LEFT,
            fieldGrowthPolicy=QFormLayout.FieldGrowthPolicy.ExpandingFieldsGrow,
        )  # fmt: skip
        form.setContentsMargins(PAD, 10, PAD, 12)
        rows = {"Palette": self.palettes, "Scale": self.scale, "Maximum": self.top}
        for words, widget in rows.items():
            form.addRow(label(tr(words), kind="secondary"), widget)
        form.addRow(self.shared)

    def request(self, session: Session) -> Callable[[], Display] | None:
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
        top, is_number = QLocale.c().toDouble(self.top.text())
        self._put(limits=(0.0, top) if is_number and 0 < top < math.inf else None)

    def _put(self, **changes: object) -> None:
        self.session.put(display=replace(self.session.display, **changes))  # type: ignore[arg-type]


# --- texts ----------------------------------------------------------------------------------------

TEXT_HEIGHT = 46  # px
LABEL = 76  # px that a label has at most
SHOWN, BEFORE = 160, 14  # characters of a text that are drawn, and in front of what was found
IN_TIP, IN_LINE = 600, 80  # characters of a text in its tooltip, and of a line there
TextList = tuple[tuple[Item, ...], int, str]


class TextsPanel(View):
    """Lists the texts of the corpus; Enter or a click opens one. Absent for a text alone.

    Rows are places among the items, so that a hundred thousand cost nothing.
    """

    title = "Texts"
    topic = "texts"
    figureless = "It is a list of texts"
    needs = ("capture",)
    empty = Empty(
        "A single text", "Run the model on a text file to search and step through its texts.",
        (("corpus", "Run model on a text file…"),),
    )  # fmt: skip
    lane = "here"

    picked = Signal(int)  # the number of an item
    wanted = Signal()  # the panel is to be seen

    def __init__(self) -> None:
        super().__init__()
        self.items: tuple[Item, ...] = ()
        self._unit, self._open = "token", -1
        self._folded: list[str] = []
        self.field = make(
            QLineEdit, placeholderText=tr("Find a text"), accessibleName=tr("Find a text"),
            toolTip=tr("Words of a text (Ctrl+F). Enter opens the first match"),
            clearButtonEnabled=True, textChanged=self._search,
        )  # fmt: skip
        self.count = Words(factor=0.92, kind="secondary")
        column = Column("", self.words, width=REST, paint=self._paint)
        self.list = RowList("", TEXT_HEIGHT, 2, column, about=self.about)
        self.list.setToolTip(
            tr("Enter or a click opens a text; Ctrl+PgUp and Ctrl+PgDown step through all")
        )
        self.list.taken.connect(lambda at: self.picked.emit(self.items[at].number))
        self.field.installEventFilter(self)
        self.list.installEventFilter(self)
        self.none = Words(kind="secondary")
        above = vbox(None, self.field, self.count, self.none, margins=(PAD, 0, PAD, 0), spacing=4)
        vbox(self.content, above, (self.list, 1), margins=(0, 10, 0, 8), spacing=4)
        self.start_at(self.field)

    def request(self, session: Session) -> Callable[[], TextList] | None:
        capture = session.capture
        if capture is None or not capture.items:
            return None
        return lambda: (capture.items, capture.item, capture.main.unit)

    def draw(self, result: TextList) -> None:
        items, number, self._unit = result
        if (items, number) != (self.items, self._open):
            if items != self.items:
                self._folded = [" ".join(one.text.lower().split()) for one in items]
            self.items, self._open = items, number
            self._search()

    def as_table(self) -> list[list[str]] | None:
        table = [[tr(one) for one in ("Text number", "Text", "Label", "Tokens")]]
        for at in self.list.rows:
            item = self.items[at]
            table.append([str(at + 1), " ".join(item.text.split()), item.label, str(item.tokens)])
        return table if self.list.rows else None

    @property
    def _sought(self) -> str:
        return " ".join(self.field.text().lower().split())

    def search(self) -> None:
        self.wanted.emit()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()

    def _search(self) -> None:
        """List the texts with the words in the field, in any case; show the open one."""
        sought, words = self._sought, self.field.text().strip()
        found = [at for at, text in enumerate(self._folded) if sought in text]
        self.list.list_rows(found)
        said = "{found:,} of {every:,} texts" if words else "{every:,} texts"
        self.count.say(tr(said, found=len(found), every=len(self.items)))
        self.none.say(tr("No text contains “{words}”", words=words))
        self.none.setVisible(not found)
        self.list.setAccessibleName(tr("Texts: {count}", count=self.count.full))
        places = (at for at in found if self.items[at].number == self._open)
        self.list.choose(next(places, None))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Down leads from the field into the list, Enter opens its first text, Escape clears."""
        if not isinstance(event, QKeyEvent) or event.type() != QEvent.Type.KeyPress:
            return super().eventFilter(watched, event)
        first, in_field = self.list.order.index(0, 0), watched is self.field
        if event.key() == Qt.Key.Key_Escape and self.field.text():
            self.field.clear()
            self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        elif in_field and event.key() in RETURN_KEYS:
            self.list.setCurrentIndex(first)
            if first.isValid():
                self.list.taken.emit(first.data(ROW))
        elif in_field and event.key() == Qt.Key.Key_Down:
            self.list.setFocus(Qt.FocusReason.ShortcutFocusReason)
            if not self.list.currentIndex().isValid():
                self.list.setCurrentIndex(first)
        else:
            return super().eventFilter(watched, event)
        return True

    def found(self, at: int) -> tuple[str, int, int]:
        """A text from its beginning, or from a little before what was found, as (text, start, end
        of what was found)."""
        text, sought = " ".join(self.items[at].text.split()), self._sought
        place = max(0, text.lower().find(sought))
        end = place + len(sought)
        start = max(0, place - BEFORE) if end > 2 * BEFORE else 0
        cut = "…" if start else ""
        by = len(cut) - start
        return cut + _line(text[start : start + SHOWN]), place + by, end + by

    def words(self, at: int) -> str:
        """The number of a text, its words, its size and its label."""
        return f"{at + 1}: {_line(self.items[at].text)}, {self._size(at)}"

    def about(self, at: int) -> str:
        """All of a text, with its number and size."""
        item = self.items[at]
        text = sentences.elided(item.text, IN_TIP)
        place = tr("Text {number:,} of {total:,}", number=at + 1, total=len(self.items))
        lines = [f"{place}, {self._size(at)} (--item {item.number})", ""]
        return "\n".join(lines + wrap(text, IN_LINE))

    def _size(self, at: int) -> str:
        item = self.items[at]
        label = f", {sentences.shown(item.label)}" if item.label else ""
        return counted(item.tokens, self._unit) + label

    def _paint(self, painter: QPainter, box: QRectF, at: int, chosen: bool) -> None:
        """Number and text with what was found in bold; below them the tokens and the label."""
        now, item, box = theme.current(), self.items[at], box.adjusted(INSET, 0, -INSET, 0)
        is_open = item.number == self._open
        font = theme.font(0.85, 600 if is_open else 400)
        wide = QFontMetricsF(font).horizontalAdvance(f"{len(self.items):,}")
        above, below = box.adjusted(0, 3, 0, -22), box.adjusted(wide + 10, 22, 0, -3)
        number = QRectF(above.left(), above.top(), wide + 1, above.height())
        colour = now.mark_text if is_open else now.secondary
        theme.write(painter, number, f"{at + 1:,}", font, colour, theme.TO_RIGHT)
        text, start, end = self.found(at)
        plain, bold = theme.font(), theme.font(weight=700)
        runs = ((text[:start], plain), (text[start:end], bold), (text[end:], plain))
        line = above.adjusted(wide + 10, 0, 0, 0)
        paint_runs(painter, line, *((part, font, now.text) for part, font in runs if part))
        colour = now.text if chosen else now.secondary
        paint_runs(painter, below, (counted(item.tokens, self._unit), theme.font(0.92), colour))
        if item.label:
            metrics = QFontMetricsF(theme.font(0.85))
            name = metrics.elidedText(_line(item.label), Qt.TextElideMode.ElideRight, LABEL - 14)
            paint_chip(painter, below, name, chosen, at_right=True)


def _line(text: str) -> str:
    """A text on one line, with nothing in it that could move what stands beside it."""
    return sentences.shown(text[: 2 * SHOWN], SHOWN).replace(sentences.SPACE, " ")


PANELS = (HeadPanel, TopKeysPanel, NotablePanel, DisplayPanel, TextsPanel)
