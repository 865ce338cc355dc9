"""The panels beside a map: this head, its top keys, notable heads, display, texts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import Any, ClassVar, Literal

import numpy as np
from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QLocale,
    QModelIndex,
    QObject,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QDoubleValidator,
    QFocusEvent,
    QFontMetrics,
    QFontMetricsF,
    QIcon,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtGui import Qt as TextQt
from PySide6.QtWidgets import (
    QAbstractButton,
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

# --- corpus ---------------------------------------------------------------------------------------


ROW, HIGH_ROW = 30, 46  # px: of one line, and of two where a list is narrow
NARROW = 420  # px
LABEL = 76  # px that a label has at most
SHOWN, BEFORE = 160, 14  # characters of a text that are drawn, and in front of what was found
TOLD = 600  # characters of a text in its tooltip
LABELLED = re.compile(r'label:(?:"([^"]*)"?|(\S*))', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for: words as they are typed, in any case, and label:positive."""

    words: str = ""
    label: str | None = None

    @classmethod
    def of(cls, query: str) -> Search:
        """What a query means."""
        found = LABELLED.search(query)
        rest = " ".join(LABELLED.sub(" ", query).split()).lower()
        if found is None:
            return cls(rest)
        return cls(rest, (found[1] or found[2] or "").lower() or None)

    def among(self, folded: Sequence[tuple[str, str]]) -> list[int]:
        """Which of some (text, label) in small letters match; a label may be begun only."""
        whole = any(label == self.label for _, label in folded)
        return [
            number
            for number, (text, label) in enumerate(folded)
            if self.words in text
            and (
                self.label is None
                or (label == self.label if whole else label.startswith(self.label))
            )
        ]


@dataclass(frozen=True, slots=True)
class TextMatch:
    """What a row shows: which text of all, what was found in it (start, end), if it is open."""

    item: Item
    place: int
    text: str
    found: tuple[int, int]
    open: bool


class TextModel(QAbstractListModel):
    """The texts that match a search, in the order of the file."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.items: tuple[Item, ...] = ()
        self.shown: list[int] = []
        self.open = -1
        self.unit = "token"
        self._folded: list[tuple[str, str]] = []
        self._search = Search()

    def show_items(self, items: tuple[Item, ...], open_: int, unit: str) -> None:
        """Another corpus, or another text of the same."""
        self.open, self.unit = open_, unit
        if items != self.items:
            self.items = items
            self._folded = [
                (" ".join(one.text.lower().split()), one.label.lower()) for one in items
            ]
            self.narrow(self._search)
        elif self.shown:
            self.dataChanged.emit(self.index(0), self.index(len(self.shown) - 1))

    def narrow(self, search: Search) -> None:
        """Keep what matches."""
        self._search = search
        self.beginResetModel()
        self.shown = search.among(self._folded)
        self.endResetModel()

    def row_of(self, number: int) -> int:
        """The row of an item's number, -1 where it is not shown."""
        rows = (row for row, at in enumerate(self.shown) if self.items[at].number == number)
        return next(rows, -1)

    def item(self, index: Index) -> Item:
        """The text of a row."""
        return self.items[self.shown[index.row()]]

    def rowCount(self, parent: Index | None = None) -> int:
        """How many match."""
        return 0 if parent is not None and parent.isValid() else len(self.shown)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """A sentence for screen readers; all of it as a tooltip; a Row for the painter."""
        at = self.shown[index.row()]
        item = self.items[at]
        if role == Qt.ItemDataRole.DisplayRole:
            return f"{at + 1}: {_line(item.text)}, {self._told(item)}"
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._tip(at, item)
        if role == Qt.ItemDataRole.UserRole:
            return self._row(at, item)
        return None

    def _told(self, item: Item) -> str:
        label = f", {sentences.shown(item.label)}" if item.label else ""
        return sentences.counted(item.tokens, self.unit) + label

    def _tip(self, at: int, item: Item) -> str:
        text = item.text if len(item.text) <= TOLD else item.text[: TOLD - 1] + "…"
        place = tr("Text {number:,} of {total:,}", number=at + 1, total=len(self.items))
        said = f"{place}, {self._told(item)} (--item {item.number})\n\n{text}"
        return TextQt.convertFromPlainText(said, Qt.WhiteSpaceMode.WhiteSpaceNormal)  # it wraps

    def _row(self, at: int, item: Item) -> TextMatch:
        """The text from its beginning, or from a little before what was found."""
        text, sought = " ".join(item.text.split()), self._search.words
        place = self._folded[at][0].find(sought)
        end = place + len(sought)
        start = max(0, place - BEFORE) if end > 2 * BEFORE else 0
        cut = "…" if start else ""
        found = (place - start + len(cut), end - start + len(cut))
        shown = cut + _line(text[start : start + SHOWN])
        return TextMatch(item, at + 1, shown, found, item.number == self.open)


class TextPainter(QStyledItemDelegate):
    """Number, text with what was found in bold, label, tokens: in one line, or two if narrow."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """All rows are equally high."""
        return QSize(100, row_height(option.widget.width() if option.widget else NARROW))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw one row."""
        row, model = index.data(Qt.ItemDataRole.UserRole), index.model()
        assert isinstance(row, TextMatch) and isinstance(model, TextModel)
        now, box = theme.current(), option.rect.adjusted(8, 1, -8, -1)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if row.open or option.state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(now.mark_tint if row.open else now.hover)
            painter.drawRoundedRect(box, 6, 6)
        if option.state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(now.press, 1.5))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), 6, 6)
        two = option.rect.height() > ROW
        high = 21 if two else box.height()
        line = QRect(box.left() + 8, box.top() + (2 if two else 0), box.width() - 16, high)
        under = line.translated(0, high - 2) if two else line
        wide = QFontMetrics(theme.font(0.85)).horizontalAdvance(f"{len(model.items):,}")
        painter.setFont(theme.font(0.85, 600 if row.open else 400))
        painter.setPen(now.mark_text if row.open else now.secondary)
        painter.drawText(
            QRect(line.left(), line.top(), wide, high), theme.TO_RIGHT, f"{row.place:,}"
        )
        painter.setFont(theme.font(0.92))
        painter.setPen(now.text if row.open else now.secondary)
        start = line.left() + wide + 10
        if two:
            told = sentences.counted(row.item.tokens, model.unit)
            painter.drawText(
                QRect(start, under.top(), under.right() - start, high), theme.TO_LEFT, told
            )
        else:
            painter.drawText(line, theme.TO_RIGHT, f"{row.item.tokens:,}")
        end = under.right() - (0 if two else tokens_width(model) + 10)
        if row.item.label:
            left = self._label(painter, under, end, row)
            end = end if two else left - 8
        self._text(painter, QRect(start, line.top(), 0, high), line.right() if two else end, row)
        painter.restore()

    def _label(self, painter: QPainter, box: QRect, right: int, row: TextMatch) -> int:
        """Draw the label as a chip that ends at the right; give where it begins."""
        now, font = theme.current(), theme.font(0.85)
        metrics = QFontMetrics(font)
        said = metrics.elidedText(_line(row.item.label), Qt.TextElideMode.ElideRight, LABEL - 14)
        chip = QRect(0, box.center().y() - 8, metrics.horizontalAdvance(said) + 14, 18)
        chip.moveRight(right)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(now.pane if row.open else now.hover)
        painter.drawRoundedRect(chip, 9, 9)
        painter.setFont(font)
        painter.setPen(now.text if row.open else now.secondary)
        painter.drawText(chip, Qt.AlignmentFlag.AlignCenter, said)
        return chip.left()

    def _text(self, painter: QPainter, box: QRect, end: int, row: TextMatch) -> None:
        """Draw the text as far as there is room, what was found in bold."""
        first, last = row.found
        painter.setPen(theme.current().text)
        x = box.left()
        for text, weight in (
            (row.text[:first], 400), (row.text[first:last], 700), (row.text[last:], 400)
        ):  # fmt: skip
            font = theme.font(weight=weight)
            metrics = QFontMetrics(font)
            if not text or end - x <= metrics.averageCharWidth():
                continue
            said = metrics.elidedText(text, Qt.TextElideMode.ElideRight, end - x)
            painter.setFont(font)
            painter.drawText(QRect(x, box.top(), end - x, box.height()), theme.TO_LEFT, said)
            x += metrics.horizontalAdvance(text)


def row_height(width: int) -> int:
    """Px of a row in a list so wide."""
    return HIGH_ROW if width < NARROW else ROW


def tokens_width(model: TextModel) -> int:
    """Px that the longest count of tokens takes, or their name above them."""
    most = max((one.tokens for one in model.items), default=0)
    return QFontMetrics(theme.font(0.92)).horizontalAdvance(f"{most:,}") + 1


def _line(text: str) -> str:
    """A text on one line, with nothing in it that could move what stands beside it."""
    return sentences.shown(text[: 2 * SHOWN], SHOWN).replace(sentences.SPACE, " ")


# --- display --------------------------------------------------------------------------------------


SWATCH = QSize(48, 12)


class DisplayPanel(View):
    """Writes session.display. Signed weights always have their own palette, about zero."""

    title: ClassVar[str] = "Display"
    topic: ClassVar[str] = "display"
    icon: ClassVar[str] = "palette"
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
        self.palettes.activated.connect(self._choose_palette)
        self.scale = scale_choice()
        self.scale.chosen.connect(self._choose_scale)
        self.shared = Check(tr("One scale for all heads"))
        self.shared.toggled.connect(self._choose_shared)
        self.top = QLineEdit()
        self.top.setPlaceholderText(tr("from the data"))
        self.top.setAccessibleName(tr("Top of the scale"))
        numbers = QDoubleValidator(0.0, 1e9, 6, self.top)
        numbers.setLocale(QLocale.c())
        self.top.setValidator(numbers)
        self.top.editingFinished.connect(self._choose_top)
        grid = QGridLayout(self.content)
        grid.setContentsMargins(16, 10, 16, 12)
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(8)
        for row, (words, widget) in enumerate(
            (("Palette", self.palettes), ("Scale", self.scale), ("Top", self.top))
        ):
            grid.addWidget(label(tr(words), kind="secondary"), row, 0)
            grid.addWidget(widget, row, 1)
        grid.addWidget(self.shared, 3, 0, 1, 2)
        grid.setColumnStretch(1, 1)
        grid.setRowStretch(4, 1)

    def request(self, session: Session) -> Callable[[], Display] | None:
        """The display as it is."""
        return partial(_now, session.display)

    def draw(self, result: Display) -> None:
        """Show it without saying that anything changed."""
        self._swatches()
        name = palettes.matching_palette(result.palette, False)
        self.palettes.setCurrentIndex(self.palettes.findData(name))
        self.scale.choose(result.scale)
        self.shared.blockSignals(True)
        self.shared.setChecked(result.shared)
        self.shared.blockSignals(False)
        self.shared.setEnabled(result.limits is None)
        self.top.setText("" if result.limits is None else f"{result.limits[1]:g}")

    def as_table(self) -> list[list[str]] | None:
        """Every setting with its value."""
        names = [tr(one) for one in ("Palette", "Scale", "Top", "One scale for all heads")]
        scale = tr(palettes.SCALES[self.scale.choice])
        top = self.top.text() or tr("from the data")
        shared = tr("on") if self.shared.isChecked() else tr("off")
        values = [self.palettes.currentText(), scale, top, shared]
        return [[tr("Setting"), tr("Value")], *map(list, zip(names, values, strict=True))]

    def _swatches(self) -> None:
        dark = theme.current().dark
        for at in range(self.palettes.count()):
            table = palettes.colours(self.palettes.itemData(at), dark)
            row = np.ascontiguousarray(table[np.linspace(0, 255, SWATCH.width()).astype(int)])
            strip = QImage(row.data, len(row), 1, 3 * len(row), QImage.Format.Format_RGB888)
            self.palettes.setItemIcon(at, QIcon(QPixmap.fromImage(strip.scaled(SWATCH))))

    def _choose_palette(self, at: int) -> None:
        self._put(palette=self.palettes.itemData(at))

    def _choose_scale(self, name: str) -> None:
        self._put(scale=name)

    def _choose_shared(self, on: bool) -> None:
        self._put(shared=on)

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


def _now(display: Display) -> Display:
    return display


# --- heads ----------------------------------------------------------------------------------------


METRICS_SHOWN = tuple(METRICS)[:5]  # what fits above the other docks; the table has all
PAD = 16
NAMED = 104  # px: the names of the metrics
VALUE = 44  # px: a number at the right
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
    icon = "eye"
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
        self._mine = 0.0

    def show_values(self, values: Sequence[float], mine: float, said: str) -> None:
        """All values, and which is meant."""
        self._values, self._mine = values, mine
        self.setToolTip(said)
        self.setAccessibleName(said)
        self.update()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """What pointing at it says is said to the keyboard, too."""
        super().focusInEvent(event)
        self.told.emit(self.toolTip())

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """No longer."""
        super().focusOutEvent(event)
        self.told.emit("")

    def place(self, value: float) -> float:
        """The x of a value; the smallest stands at the left end, the largest at the right."""
        low, high = min((*self._values, self._mine)), max((*self._values, self._mine))
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
HIGH = 20  # px: a row
STEPS = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
TAKE = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)
GLYPH, WORD = 28, 108  # px: the columns left of the bar


@dataclass(frozen=True, slots=True)
class TopKey:
    """One key that is looked at: its glyph, the word it is in, which part of it, its weight.

    letter: whether it is a letter, which is shown both alone and in its word.
    """

    token: int | None
    glyph: str
    before: str
    inside: str
    after: str
    weight: float
    letter: bool = True


@dataclass(frozen=True, slots=True)
class TopKeys:
    """The chosen letter, where it stands, and its strongest keys."""

    glyph: str
    where: str
    keys: tuple[TopKey, ...]
    signed: bool = False
    side: str = ""


class LooksPanel(View):
    """The five keys that the chosen query looks at most in the chosen head."""

    title = "Top keys"
    topic = "looks"
    icon = "eye"
    figureless = "It is a list of keys: Links draws them"
    needs = ("selection", "capture", "dark")

    def __init__(self) -> None:
        super().__init__()
        self.letter = label(weight=600, kind="mark")
        self.letter.setFont(theme.mono(1.0, 600))
        self.where = Words(factor=0.92, kind="secondary")
        self.keys = TopKeyList()
        self.keys.picked.connect(self._pick)
        top = hbox(None, self.letter, (self.where, 1), spacing=8)
        vbox(self.content, top, self.keys, 1, margins=(PAD, 8, PAD, 8), spacing=2)

    def request(self, session: Session) -> Callable[[], TopKeys] | None:
        """The strongest keys, read from one row."""
        capture, chosen = session.capture, session.selection
        self.empty, self.empty_actions = NOTHING, CAPTURE
        if capture is None:
            return None
        self.empty, self.empty_actions = NONE_CHOSEN, CHOOSE
        if chosen.query is None:
            return None
        if chosen.query >= len(capture.query_prompt(chosen.layer)):
            return None
        if capture.maps[chosen.layer] is None:
            return None
        return partial(_looked, capture, chosen)

    def draw(self, result: TopKeys) -> None:
        """List them."""
        self.letter.setText(result.glyph)
        side = tr("in the {text}:", text=result.side) if result.side else ""
        self.where.say(", ".join(filter(None, (result.where, side))))
        self.keys.show_keys(result.keys, result.signed)

    def as_table(self) -> list[list[str]] | None:
        """The keys that are listed, with their weights."""
        heads = [tr("Key"), tr("Key token"), tr("Weight")]
        return [heads] + [
            ["" if one.token is None else str(one.token), one.glyph, repr(one.weight)]
            for one in self.keys.keys
        ] if self.keys.keys else None  # fmt: skip

    def _pick(self, token: int) -> None:
        if self.session is not None:
            self.session.select(key=token)


class TopKeyList(QWidget):
    """Five rows, painted: glyph, word with the letter bold, bar, weight. A click chooses a key."""

    own_keys = (*STEPS, *TAKE)
    picked = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.keys: tuple[TopKey, ...] = ()
        self.signed = False
        self.setFixedHeight(TOP * HIGH)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._under = -1

    def show_keys(self, keys: tuple[TopKey, ...], signed: bool = False) -> None:
        """Show other keys; the height stays."""
        self.keys, self.signed = keys, signed
        said = (f"{one.glyph} {sentences.weight(one.weight)}" for one in keys)
        self.setAccessibleName(tr("Looks at {keys}", keys=", ".join(said)))
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Up and Down go through the rows, Enter or Space chooses the key of one."""
        key = Qt.Key(event.key())
        if key in STEPS and self.keys:
            self._hover(max(0, min(self._under + STEPS[key], len(self.keys) - 1)))
        elif key in TAKE and 0 <= self._under < len(self.keys):
            self._take(self._under)
        else:
            super().keyPressEvent(event)

    def _take(self, row: int) -> None:
        if 0 <= row < len(self.keys) and (token := self.keys[row].token) is not None:
            self.picked.emit(token)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose the key under the pointer."""
        self._take(int(event.position().y()) // HIGH)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Show which row a click would choose."""
        self._hover(int(event.position().y()) // HIGH)

    def leaveEvent(self, event: QEvent) -> None:
        """Nothing is pointed at."""
        self._hover(-1)

    def _hover(self, row: int) -> None:
        if row != self._under:
            self._under = row
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw every row."""
        with theme.smooth_painter(self) as painter:
            most = max((abs(one.weight) for one in self.keys), default=1.0)
            whole = 1.0 if most <= 1.0 else most
            for row, key in enumerate(self.keys):
                area = QRectF(0, row * HIGH, self.width(), HIGH)
                if row == self._under:
                    painter.fillRect(area.adjusted(-4, 0, 4, 0), theme.current().hover)
                self._row(painter, area, key, abs(key.weight) / whole, first=row == 0)
            if self.hasFocus():
                ink.focus_ring(painter, QRectF(self.rect()).adjusted(-2, 0, 2, 0))

    def _row(
        self, painter: QPainter, area: QRectF, key: TopKey, share: float, *, first: bool
    ) -> None:
        now = theme.current()
        mono, x = theme.mono(0.92, 500), 2.0
        if key.letter or not key.inside:
            room = GLYPH + (12 if key.inside or key.before else WORD - 8)
            glyph = QFontMetricsF(mono).elidedText(key.glyph, Qt.TextElideMode.ElideRight, room)
            painter.setFont(mono)
            painter.setPen(now.text)
            painter.drawText(area.adjusted(2, 0, 0, 0), theme.TO_LEFT, glyph)
            x = max(GLYPH, QFontMetricsF(mono).horizontalAdvance(glyph) + 10)
        self._word(painter, area.adjusted(x, 0, 0, 0), key, GLYPH + WORD - x - 4)
        value = QRectF(area.right() - VALUE, area.top(), VALUE, area.height())
        painter.setFont(theme.font(weight=600))
        painter.setPen(now.text)
        said = sentences.with_sign(key.weight, 2) if self.signed else sentences.weight(key.weight)
        painter.drawText(value, theme.TO_RIGHT, said)
        left = GLYPH + WORD
        bar = QRectF(left, area.center().y() - 5, max(20.0, value.left() - left - 4), 10)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(now.hover)
        painter.drawRoundedRect(bar, 2, 2)
        painter.setBrush(now.mark if first else now.secondary)
        if self.signed:
            painter.setBrush(ink.sides()[int(key.weight > 0)])
        bar.setWidth(max(2.0, bar.width() * share))
        painter.drawRoundedRect(bar, 2, 2)

    def _word(self, painter: QPainter, area: QRectF, key: TopKey, room: float) -> None:
        now = theme.current()
        x = area.x()
        end = x + room
        for text, font, colour in (
            (key.before, theme.font(0.92), now.secondary),
            (key.inside, theme.font(0.92, 700), now.text),
            (key.after, theme.font(0.92), now.secondary),
        ):
            metrics = QFontMetricsF(font)
            said = metrics.elidedText(text, Qt.TextElideMode.ElideRight, max(0.0, end - x))
            painter.setFont(font)
            painter.setPen(colour)
            painter.drawText(QRectF(x, area.y(), room, area.height()), theme.TO_LEFT, said)
            x += metrics.horizontalAdvance(said)


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
    return TopKeys(glyph, where, keys, grid.signed(capture, chosen.head_id), side)


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


# --- texts ----------------------------------------------------------------------------------------


LIST_HEIGHT, LOW_LIST_HEIGHT = 207, 2 * ROW  # px: of the list, and where there is little room

TextList = tuple[tuple[Item, ...], int, str]


class TextsPanel(View):
    """Lists the texts of the corpus; Enter or a click opens one. Absent for a text alone."""

    title = "Texts"
    topic = "texts"
    icon = "text"
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
        self.field.setToolTip(
            tr("Words of a text, or label:positive (Ctrl+F). Enter opens the first")
        )
        self.field.setClearButtonEnabled(False)
        self.field.textChanged.connect(self._narrow)
        self.count = Words(factor=0.92, kind="secondary")
        self.unit = label(factor=0.92, kind="secondary")
        self.model = TextModel(self)
        self.list = TextsTextList()
        self.list.setModel(self.model)
        self.list.setItemDelegate(TextPainter(self.list))
        self.list.clicked.connect(self._take)
        for one in (self.field, self.list):
            one.installEventFilter(self)
        self.none = Words(kind="secondary")
        self.clear = Button(tr("Clear the search"), kind="link")
        self.clear.clicked.connect(self._clear)
        nothing = QWidget()
        vbox(
            nothing, self.none, (self.clear, 0, Qt.AlignmentFlag.AlignLeft), 1,
            margins=(16, 8, 16, 8), spacing=-1,
        )  # fmt: skip
        self.stack = QStackedWidget()
        self.stack.addWidget(self.list)
        self.stack.addWidget(nothing)
        self.stack.setMinimumHeight(LOW_LIST_HEIGHT)
        self.stack.setMaximumHeight(LIST_HEIGHT)
        above = hbox(None, self.field, margins=(16, 0, 16, 0), spacing=-1)
        heads = hbox(None, (self.count, 1), self.unit, margins=(16, 0, 24, 0), spacing=-1)
        vbox(self.content, above, heads, (self.stack, 1), margins=(0, 10, 0, 8), spacing=4)
        self.start_at(self.field)

    def request(self, session: Session) -> Callable[[], TextList] | None:
        """The texts, and which of them is open."""
        capture = session.capture
        if capture is None or not capture.items:
            return None
        return partial(_list_texts, capture.items, capture.item, capture.main.unit)

    def draw(self, result: TextList) -> None:
        """List them; the open one is in sight."""
        items, now, unit = result
        moved = now != self.model.open or items != self.model.items
        self.model.show_items(items, now, unit)
        self.unit.setText(tr(f"{unit}s"))
        self._say()
        row = self.model.row_of(now)
        if moved and row >= 0:
            self.list.setCurrentIndex(self.model.index(row))

    def as_table(self) -> list[list[str]] | None:
        """The texts that are listed, whole, with their labels and sizes."""
        if not self.model.shown:
            return None
        heads = [tr(one) for one in ("Text number", "Text", "Label", "Tokens")]
        found = ((at, self.model.items[at]) for at in self.model.shown)
        return [heads] + [
            [str(at + 1), " ".join(one.text.split()), one.label, str(one.tokens)]
            for at, one in found
        ]

    def search(self) -> None:
        """Take the keyboard for a new search."""
        self.wanted.emit()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """In a narrow list each row names its own unit."""
        super().resizeEvent(event)
        self.unit.setVisible(self.width() >= NARROW)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The field's arrows lead into the list, Enter opens, Escape clears."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() in RETURN_KEYS:
                first = self.model.index(0) if watched is self.field else self.list.currentIndex()
                self._take(first)
                return True
            if event.key() == Qt.Key.Key_Escape and self.field.text():
                self._clear()
                return True
            if watched is self.field and event.key() == Qt.Key.Key_Down:
                self.list.setFocus(Qt.FocusReason.ShortcutFocusReason)
                if not self.list.currentIndex().isValid():
                    self.list.setCurrentIndex(self.model.index(0))
                return True
        return super().eventFilter(watched, event)

    def _narrow(self, query: str) -> None:
        self.model.narrow(Search.of(query))
        self._say()
        row = self.model.row_of(self.model.open)
        if row >= 0:
            self.list.setCurrentIndex(self.model.index(row))
        else:
            self.list.scrollToTop()

    def _say(self) -> None:
        found, every = self.model.rowCount(), len(self.model.items)
        narrowed = bool(self.field.text().strip())
        self.count.say(
            tr("{found:,} of {every:,} texts", found=found, every=every)
            if narrowed
            else tr("{n:,} texts", n=every)
        )
        self.none.say(tr("No text has “{words}”", words=self.field.text().strip()))
        self.stack.setCurrentIndex(0 if found else 1)
        self.list.setAccessibleName(tr("Texts: {count}", count=self.count.full))

    def _clear(self) -> None:
        self.field.clear()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _take(self, index: QModelIndex) -> None:
        if index.isValid():
            self.list.setCurrentIndex(index)
            self.picked.emit(self.model.item(index).number)


class TextsTextList(QListView):
    """The rows: of one height, so that thousands cost nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.setUniformItemSizes(True)
        self.setResizeMode(QListView.ResizeMode.Adjust)  # narrow rows are higher
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFont(theme.font())
        self.setAccessibleName(tr("Texts"))
        self.setToolTip(
            tr("Enter or a click opens a text; Ctrl+PgUp and Ctrl+PgDown step through all")
        )

    def sizeHint(self) -> QSize:
        """A few rows."""
        return QSize(240, LIST_HEIGHT)


def _list_texts(items: tuple[Item, ...], now: int, unit: str) -> TextList:
    return items, now, unit


# --- notable heads --------------------------------------------------------------------------------


WORTH = 4
THUMB = 36  # px
SCORE = "The number is the share of a row's weight where the role says, averaged over rows"
SHARE = Citation("mean_i Σ_{j ∈ role} |a_ij| / Σ_j |a_ij|", "Voita et al. 2019; heads.md")


@dataclass(frozen=True, slots=True)
class NotableHead:
    """A head worth a look, with its small picture (height, width, 4)."""

    facts: HeadRole
    level: str
    small: atlas.Pixels | None


class NotablePanel(View):
    """The clearest heads of different roles; a click opens one, a table holds them all."""

    title = "Notable heads"
    topic = "worth"
    icon = "table"
    figureless = "It is a list of heads: Hourglass draws all of them"
    needs = ("facts", "capture", "display", "dark", "selection")
    empty = ("No head stands out yet", "The clearest heads are listed once they are measured.")

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[NotableRow] = []
        self._column = vbox(self.content, margins=(8, 6, 8, 6), spacing=1)
        self._all = Button(tr("All heads in a table"), "table", kind="link", weight=400)
        self._all.clicked.connect(self._ask_for_table)
        for _ in range(WORTH):
            row = NotableRow()
            row.clicked.connect(self._clicked)
            row.hide()
            self.rows.append(row)
            self._column.addWidget(row)
        self._column.addWidget(self._all, 0, Qt.AlignmentFlag.AlignLeft)
        self._column.addStretch(1)

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
            for row in self.rows:
                row.mark(self.session.selection.head_id)

    def draw(self, result: tuple[NotableHead, ...]) -> None:
        """List them."""
        for row, one in zip(self.rows, (*result, *[None] * WORTH), strict=False):
            row.setVisible(one is not None)
            if one is not None:
                row.show_head(one)
        self.noticed("selection")

    def as_table(self) -> list[list[str]] | None:
        """The heads that are listed: level, role, and the share of weight that goes there."""
        known = [one.worth for one in self.rows if one.worth is not None and not one.isHidden()]
        heads = [tr(one) for one in ("Head", "Level", "Role", "Share")]
        return [heads] + [
            [str(one.facts.head), one.level, tr(one.facts.role), repr(float(one.facts.score))]
            for one in known
        ] if known else None  # fmt: skip

    def _ask_for_table(self) -> None:
        self.asked.emit("table")

    def _clicked(self) -> None:
        row = self.sender()
        if isinstance(row, NotableRow) and row.head is not None:
            self.select_head(row.head)


class NotableRow(QAbstractButton):
    """Thumbnail, name, level, role and score, 44 px high; marked when it is the chosen head."""

    def __init__(self) -> None:
        super().__init__()
        self.setFixedHeight(44)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.head: HeadId | None = None
        self.worth: NotableHead | None = None
        self._role = ""
        self._chosen = False
        self._image = QImage()

    def show_head(self, worth: NotableHead) -> None:
        """Show another head."""
        self.worth, self.head = worth, worth.facts.head
        self._image = QImage()  # the one of before borrowed memory that is gone
        if worth.small is not None:
            high, wide = worth.small.shape[:2]
            form = QImage.Format.Format_ARGB32_Premultiplied
            self._image = QImage(worth.small.data, wide, high, 4 * wide, form)
        self._role = tr(worth.facts.role)
        name = tr("Head {head}", head=self.head)
        self.setAccessibleName(f"{name}, {self._role}, {sentences.weight(worth.facts.score)}")
        self.setToolTip(tip(f"{tr(role_evidence(worth.facts))}\n{explanation(tr(SCORE), SHARE)}"))
        self.update()

    def mark(self, chosen: HeadId) -> None:
        """Whether it is the chosen head."""
        self._chosen = chosen == self.head
        self.setAccessibleDescription(tr("chosen") if self._chosen else "")
        self.update()

    def sizeHint(self) -> QSize:
        """As wide as the dock."""
        return QSize(240, 44)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the row."""
        if self.worth is None:
            return
        now, facts = theme.current(), self.worth.facts
        with theme.smooth_painter(self) as painter:
            painter.setPen(Qt.PenStyle.NoPen)
            if self._chosen or self.underMouse():
                painter.setBrush(now.mark_tint if self._chosen else now.hover)
                painter.drawRoundedRect(QRectF(self.rect()), 6, 6)
            box = QRectF(8.5, 4.5, THUMB - 1, THUMB - 1)
            painter.setBrush(now.pane)
            painter.drawRect(box)
            if not self._image.isNull():
                painter.drawImage(box, self._image)
            painter.setPen(QPen(now.edge, 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box, 3, 3)
            x = box.right() + 12
            bold = theme.font(weight=600)
            name = str(facts.head)
            side = theme.TO_LEFT
            painter.setFont(bold)
            painter.setPen(now.mark_text if self._chosen else now.text)
            painter.drawText(QRectF(x, 2, 90, 20), side, name)
            self._chip(painter, x + QFontMetricsF(bold).horizontalAdvance(name) + 10)
            room = self.width() - x - VALUE - 12
            small = theme.font(0.92)
            role = QFontMetricsF(small).elidedText(self._role, Qt.TextElideMode.ElideRight, room)
            painter.setFont(small)
            painter.setPen(now.text if self._chosen else now.secondary)
            painter.drawText(QRectF(x, 22, room, 18), side, role)
            painter.setFont(bold)
            painter.setPen(now.text)
            right = theme.TO_RIGHT
            painter.drawText(
                QRectF(self.width() - VALUE - 8, 22, VALUE, 18),
                right,
                sentences.weight(facts.score),
            )
            if self.hasFocus():
                painter.setPen(QPen(now.press, 1.5))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 6, 6)

    def _chip(self, painter: QPainter, x: float) -> None:
        assert self.worth is not None
        if not self.worth.level:
            return
        now, font = theme.current(), theme.font(0.85)
        wide = QFontMetricsF(font).horizontalAdvance(self.worth.level) + 14
        box = QRectF(x, 4, wide, 17)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(now.pane if self._chosen else now.hover)
        painter.drawRoundedRect(box, 8.5, 8.5)
        painter.setFont(font)
        painter.setPen(now.secondary)
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, self.worth.level)


def _worth(
    capture: Capture, facts: Mapping[HeadId, HeadRole], palette: str, size: int
) -> tuple[NotableHead, ...]:
    out = []
    for number, one in enumerate(notable_heads(facts, WORTH)):
        progress(number, WORTH, "drawing heads")
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


# --- all panels -----------------------------------------------------------------------------------


PANELS = (HeadPanel, LooksPanel, NotablePanel, DisplayPanel, TextsPanel)
