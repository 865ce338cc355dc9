"""Predictions that change with heads off, by example, class and slice."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QObject,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QFontMetrics, QKeyEvent, QPainter, QPen
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from hgviz.analysis.importance import By, Ends, MaskTrial, SliceScore, Which
from hgviz.core import progress
from hgviz.gui import sentences, theme
from hgviz.gui.actions import reads_text
from hgviz.gui.headgrid import place_noun
from hgviz.gui.language import tr
from hgviz.gui.livescore import share_words
from hgviz.gui.sentences import told
from hgviz.gui.tables import ROW_HEIGHT, Index, RowTable, ground
from hgviz.gui.trials import DATA_ACTIONS, possible
from hgviz.gui.view import View
from hgviz.gui.widgets import RETURN_KEYS, PaneHead, Segments, tip, vbox
from hgviz.language import decimals

if TYPE_CHECKING:
    from hgviz.models.model import Model
    from hgviz.session import Session

# --- changes --------------------------------------------------------------------------------------


MOST = 2000  # rows: those whose loss rose most
SHOWN = 200  # characters of a text that are drawn
BITS_PER_NAT = 1 / math.log(2)

HEADS = {
    "classes": "Label", "next": "Next {unit}", "masked": "Hidden {unit}", "tags": "Class",
    "ends": "Position", "states": "Nearest text",
}  # fmt: skip
WHOLE = ("classes", "states", "ends")  # asked of a whole text
UNITS = {"byte": "letter"}
CHANGE_TERMS = ("", "", "", "", "more", "loss")  # which number of explained each column is


@dataclass(frozen=True, slots=True)
class Change:
    """A place: the text before it, what was wanted, what both gave, bits of loss before and now."""

    example: int
    before: str
    wanted: str
    whole: str
    now: str
    was_right: bool
    is_right: bool
    loss: tuple[float, float]

    @property
    def more(self) -> float:
        """Bits of loss more."""
        return self.loss[1] - self.loss[0]


@dataclass(frozen=True, slots=True)
class Changes:
    """Rows of one kind, how many of each there are, and what the columns are called; ends: whether
    a text ends where the answer is."""

    rows: tuple[Change, ...]
    counts: dict[Which, int]
    columns: tuple[str, ...]
    most: float = 1.0
    ends: bool = False


def changes(trial: MaskTrial, which: Which, model: Model | None) -> Changes:
    """The predictions that changed, those whose loss rose most first."""
    progress(0, 1)
    kinds: tuple[Which, ...] = ("lost", "won", "all")
    counts: dict[Which, int] = {kind: len(trial.changed(kind)) for kind in kinds}
    examples = trial.examples
    unit = _unit(model)
    ends = examples.asked not in WHOLE
    heads = (tr("Context") if ends else tr("Text"),
             tr(HEADS[examples.asked], unit=tr(unit)), tr("Full model"),
             off_words(len(trial.off)), tr("More loss"), tr("Loss, bits"))  # fmt: skip
    found = trial.changed(which)
    if trial.before is None or trial.now is None or not len(found):
        return Changes((), counts, heads, ends=ends)
    more = trial.now.loss[found] - trial.before.loss[found]
    found = found[np.argsort(-more if which != "won" else more, kind="stable")][:MOST]
    say = _sayer(trial, model)
    rows = tuple(_row(trial, int(place), say) for place in found)
    most = max((abs(one.more) for one in rows), default=1.0) or 1.0
    return Changes(rows, counts, heads, most, ends)


def off_words(count: int) -> str:
    """12 heads off."""
    return tr("1 head off") if count == 1 else tr("{n:,} heads off", n=count)


def verdict(right: bool) -> str:
    """right, or wrong."""
    return tr("right") if right else tr("wrong")


def _unit(model: Model | None) -> str:
    if model is None or not reads_text(model):
        return "token"
    unit = model.tokenizer.encode("a").unit
    return UNITS.get(unit, unit)


def _sayer(trial: MaskTrial, model: Model | None) -> Callable[[int], str]:
    """What an answer is called: a class, or a token."""
    labels = trial.examples.labels
    if trial.examples.asked in ("classes", "tags"):
        return lambda number: labels[number] if 0 <= number < len(labels) else str(number)

    if trial.examples.asked in WHOLE:
        return str

    @lru_cache(maxsize=4096)
    def token(number: int) -> str:
        if model is None:
            return str(number)
        prompt = model.tokenizer.decode(np.array([number], np.int64))
        said = sentences.name(prompt, 0)
        return tr("space") if said in (sentences.SPACE, " ") else said

    return token


def _row(trial: MaskTrial, place: int, say: Callable[[int], str]) -> Change:
    assert trial.before is not None and trial.now is not None
    examples = trial.examples
    number = int(np.searchsorted(examples.places, place, side="right")) - 1
    one = examples.rows[number]
    if examples.asked in WHOLE:
        text = one.text
    else:
        at = np.flatnonzero(one.wanted >= 0)[place - int(examples.places[number])]
        start, end = (int(side) for side in one.spans[at])
        end = end if examples.asked == "next" else start
        text = one.text[max(0, end - SHOWN) : max(0, end)]
    wanted = int(examples.wanted[place])
    was, now = int(trial.before.predictions[place]), int(trial.now.predictions[place])
    whole, masked = float(trial.before.loss[place]), float(trial.now.loss[place])
    return Change(
        number, text, say(wanted), say(was), say(now), was == wanted, now == wanted,
        (whole * BITS_PER_NAT, masked * BITS_PER_NAT),
    )  # fmt: skip


class ChangeTable(QAbstractTableModel):
    """The rows for Qt: words for screen readers, a Change for the painter."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.found = Changes((), {}, ("",) * len(CHANGE_TERMS))

    def show_changes(self, found: Changes) -> None:
        """Other rows."""
        self.beginResetModel()
        self.found = found
        self.endResetModel()

    def rowCount(self, parent: Index | None = None) -> int:
        """How many rows."""
        return 0 if parent is not None and parent.isValid() else len(self.found.rows)

    def columnCount(self, parent: Index | None = None) -> int:
        """How many columns."""
        return 0 if parent is not None and parent.isValid() else len(self.found.columns)

    def headerData(
        self, section: int, way: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """The names of the columns."""
        if way == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return self.found.columns[section]
        if way == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.ToolTipRole:
            return tip(told(CHANGE_TERMS[section])) if CHANGE_TERMS[section] else None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            right = section == 5 or (section == 0 and self.found.ends)
            side = Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
            return side | Qt.AlignmentFlag.AlignVCenter
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """A cell."""
        row = self.found.rows[index.row()]
        if role == Qt.ItemDataRole.UserRole:
            return row
        if role == Qt.ItemDataRole.DisplayRole:
            return cell_words(row, index.column())
        if index.column() == 0 and role in (
            Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleDescriptionRole
        ):  # fmt: skip
            said = sentences.shown(row.before, 600).replace(sentences.SPACE, " ")
            return tip(said) if role == Qt.ItemDataRole.ToolTipRole else said
        return None


def row_cells(row: Change) -> list[str]:
    """A row for a spreadsheet: answers, whether they are right, bits of loss before and now."""
    return [
        cell_words(row, 0), row.wanted, row.whole, f"{int(row.was_right)}", row.now,
        f"{int(row.is_right)}", f"{row.loss[0]:.6g}", f"{row.loss[1]:.6g}",
    ]  # fmt: skip


def cell_words(row: Change, column: int) -> str:
    """What a cell says."""
    return (
        sentences.shown(row.before, SHOWN).replace(sentences.SPACE, " "),
        row.wanted,
        f"{row.whole} {verdict(row.was_right)}",
        f"{row.now} {verdict(row.is_right)}",
        f"{row.more:+.2f}".replace("-", "−"),
        f"{row.loss[0]:.2f} → {row.loss[1]:.2f}",
    )[column]


# --- changes in a view ----------------------------------------------------------------------------


CHANGE_WIDTHS = (0, 100, 130, 130, 104, 110)  # px of each column; the text takes the rest
CHANGE_HINT = "Enter opens one in Inspect; B shows it before and after"
KEEP = (("keep_mask", "Save mask"), ("remove_heads", "Prune and save model…"))
KINDS: tuple[tuple[Which, str], ...] = (("lost", "Lost"), ("won", "Won"), ("all", "All"))
NARROW, NARROWEST = 620, 440  # px: below, the loss is left out


class ChangedView(View):
    """Lost, won, or all of them; Enter or a double click opens the text."""

    title = "Predictions that changed"
    figureless = "It is a list of texts"
    icon = "table"
    needs = ("trial", "dark")
    empty = ("No prediction changed yet", "Switch heads off: what they change is listed here.")

    empty_actions: tuple[tuple[str, str], ...] = (("switch_head", "Switch this head off"),)
    topic = "prune-changed"

    opened = Signal(str)  # a text

    def __init__(self) -> None:
        super().__init__()
        self.head = PaneHead(tr(self.title), tr(CHANGE_HINT))
        self.which = Segments(
            tuple((name, f"{tr(words)} 8,888", "") for name, words in KINDS), wide=72
        )
        self.which.chosen.connect(self._again)
        self.head.add(self.which)
        self.model = ChangeTable(self)
        self.table = ChangedTable()
        self.table.setModel(self.model)
        self.table.setItemDelegate(ChangePainter(self.table))
        self.table.activated.connect(self._open)
        vbox(self.content, self.head, (self.table, 1))
        self.start_at(self.table)

    def request(self, session: Session) -> Callable[[], Changes] | None:
        """The rows, once every place was seen."""
        trial = session.trial
        self.empty_actions = ()
        if trial is None:
            self.empty = ("No prediction changed yet", "Choose data for the model to answer.")
            self.empty_actions = possible(session, *DATA_ACTIONS)[:1]
            return None
        if not trial.off:
            self.empty, self.empty_actions = type(self).empty, type(self).empty_actions
            return None
        if not trial.done:
            if trial.stopped:
                self.empty = ("The score was stopped", "Go on to see which predictions changed.")
                self.empty_actions = (("resume_score", "Go on"),)
                return None
            self.empty = ("On its way", "The list comes when every text was seen.")
            return None
        if not len(trial.changed("all")):
            self.empty = ("No prediction changed", "The model gives the same answers everywhere.")
            self.empty_actions = possible(session, *KEEP)
            return None
        kind: Which = self.which.choice  # type: ignore[assignment]
        return partial(changes, trial, kind, session.model)

    def draw(self, result: Changes) -> None:
        """List them."""
        for number, (name, words) in enumerate(KINDS):
            button = self.which._group.button(number)
            button.setText(f"{tr(words)} {result.counts[name]:,}")
        self.model.show_changes(result)
        self.table.fit()
        shown = len(result.rows)
        more = result.counts.get(self.which.choice, shown) - shown  # type: ignore[call-overload]
        self.head.note.say(tr("the {n:,} with most loss", n=shown) if more > 0 else tr(CHANGE_HINT))
        self.table.setAccessibleName(tr("Predictions that changed: {n:,}", n=shown))
        if shown and not self.table.currentIndex().isValid():
            self.table.setCurrentIndex(self.model.index(0, 0))

    def as_table(self) -> list[list[str]] | None:
        """The rows that are listed, texts as long as they are shown."""
        found = self.model.found
        if not found.rows or self._stack.currentWidget() is not self.content:
            return None
        was, now = found.columns[2:4]
        names = (*found.columns[:2], was, tr("right"), now, tr("right"), tr("bits whole"),
                 tr("bits masked"))  # fmt: skip
        return [list(names), *map(row_cells, found.rows)]

    def _again(self, name: str) -> None:
        self.refresh()

    def _open(self, index: QModelIndex) -> None:
        trial = self.session.trial if self.session else None
        if index.isValid() and trial is not None:
            row: Change = index.data(Qt.ItemDataRole.UserRole)
            text = trial.examples.rows[row.example].text
            self.opened.emit(row.before if trial.examples.asked != "classes" else text)


class ChangedTable(RowTable):
    """Space and Enter open the row."""

    def fit(self) -> None:
        """Columns for the width there is."""
        room = self.viewport().width()
        hidden = {4} if room < NARROW else set()
        if room < NARROWEST:
            hidden.add(5)
        self.share(CHANGE_WIDTHS, frozenset(hidden), 0.8 if room < NARROW else 1.0)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Space and Enter open the row."""
        if event.key() in (Qt.Key.Key_Space, *RETURN_KEYS) and self.currentIndex().isValid():
            self.activated.emit(self.currentIndex())
        else:
            super().keyPressEvent(event)


class ChangePainter(QStyledItemDelegate):
    """Text that ends where the answer is, right and wrong in word and colour, a bar of loss."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """All rows are equally high."""
        return QSize(60, ROW_HEIGHT)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw a cell."""
        row, model = index.data(Qt.ItemDataRole.UserRole), index.model()
        assert isinstance(row, Change) and isinstance(model, ChangeTable)
        now, box = theme.current(), option.rect
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        ground(painter, box, option.state)
        inner = box.adjusted(16 if index.column() == 0 else 8, 0, -8, 0)
        if index.column() == 0:
            self._text(painter, inner, row, model.found.ends, chosen)
        elif index.column() in (2, 3):
            right = row.was_right if index.column() == 2 else row.is_right
            self._answer(painter, inner, row.whole if index.column() == 2 else row.now, right)
        elif index.column() == 4:
            self._bar(painter, inner, row, model.found.most)
        else:
            painter.setPen(now.text)
            painter.setFont(theme.mono(0.92) if index.column() == 1 else theme.font(0.92))
            said = cell_words(row, index.column())
            said = painter.fontMetrics().elidedText(
                said, Qt.TextElideMode.ElideRight, inner.width()
            )
            painter.drawText(inner, theme.TO_RIGHT if index.column() == 5 else theme.TO_LEFT, said)
        painter.restore()

    def _text(self, painter: QPainter, box: QRect, row: Change, ends: bool, chosen: bool) -> None:
        now = theme.current()
        painter.setFont(theme.mono(0.92) if ends else theme.font(0.92))
        painter.setPen(now.text)
        said = cell_words(row, 0)
        way = Qt.TextElideMode.ElideLeft if ends else Qt.TextElideMode.ElideMiddle
        if not ends:
            painter.drawText(
                box, theme.TO_LEFT, painter.fontMetrics().elidedText(said, way, box.width())
            )
            return
        room = box.adjusted(0, 0, -12, 0)
        painter.drawText(
            room, theme.TO_RIGHT, painter.fontMetrics().elidedText(said, way, room.width())
        )
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(now.mark if chosen else now.edge)
        painter.drawRoundedRect(QRectF(box.right() - 8, box.center().y() - 7, 8, 15), 2, 2)

    def _answer(self, painter: QPainter, box: QRect, said: str, right: bool) -> None:
        now = theme.current()
        word = verdict(right)
        small = theme.font(0.92)
        room = box.width() - QFontMetrics(small).horizontalAdvance(word) - 8
        painter.setFont(theme.mono(0.92, 600))
        painter.setPen(now.good if right else now.bad)
        metrics = painter.fontMetrics()
        said = metrics.elidedText(said, Qt.TextElideMode.ElideRight, max(0, room))
        painter.drawText(box, theme.TO_LEFT, said)
        painter.setFont(small)
        painter.setPen(now.secondary)
        painter.drawText(
            box.adjusted(metrics.horizontalAdvance(said) + 8, 0, 0, 0), theme.TO_LEFT, word
        )

    def _bar(self, painter: QPainter, box: QRect, row: Change, most: float) -> None:
        """The number with its sign, and as a bar before it."""
        now = theme.current()
        said = cell_words(row, 4)
        painter.setFont(theme.font(0.85))
        painter.setPen(now.text)
        painter.drawText(box, theme.TO_RIGHT, said)
        room = box.width() - painter.fontMetrics().horizontalAdvance("+00.00") - 6
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(now.bad if row.more > 0 else now.good)
        wide = max(2.0, min(1.0, abs(row.more) / most) * room)
        painter.drawRoundedRect(QRectF(box.left(), box.center().y() - 3, wide, 7), 2, 2)


# --- changes --------------------------------------------------------------------------------------


Measure = Literal["right", "loss"]

CALM = 30  # places from which on an interval may set the scale of all pictures
BY: dict[By, str] = {
    "all": "All",
    "label": "Label",
    "length": "Length",
}
COLUMNS = (
    "by", "slice", "seen", "of", "right whole", "low", "high", "right masked", "low", "high",
    "lost", "won", "change", "low", "high", "bits whole", "bits masked", "more bits", "low",
    "high",
)  # fmt: skip
# which number of explained each column is
SLICE_TERMS = ("", "", "whole", "right", "change", "ends", "ends")
PICTURE = 6  # the column with the interval as a line


class SliceRow(NamedTuple):
    """A slice by one measure: whole, with heads off, and the change with its ends, in per cent and
    points of right answers, or in bits."""

    part: SliceScore
    whole: float
    now: float
    change: Ends

    @property
    def key(self) -> tuple[By, str]:
        """What stays the same while the numbers grow."""
        return self.part.by, self.part.name


def row_of(part: SliceScore, measure: Measure) -> SliceRow:
    """A slice by a measure."""
    if measure == "loss":
        value, low, high = (BITS_PER_NAT * one for one in part.loss_change)
        return SliceRow(
            part, BITS_PER_NAT * part.loss[0], BITS_PER_NAT * part.loss[1], (value, low, high)
        )
    value, low, high = (100 * one for one in part.change)
    return SliceRow(part, 100 * part.before[0], 100 * part.now[0], (value, low, high))


class PartTable(QAbstractTableModel):
    """All places in the first row, then the slices, as they come or sorted by a column."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.rows: tuple[SliceRow, ...] = ()
        self.measure: Measure = "right"
        self.by, self.falling = 0, True  # column 0: as they come
        self._came: tuple[SliceRow, ...] = ()
        self._titles: tuple[str, ...] = ("",) * (PICTURE + 1)

    def show_parts(
        self, parts: Sequence[SliceScore], measure: Measure, noun: str, now: str
    ) -> None:
        """Other numbers; noun: what is counted; now: what the masked model is called."""
        self.measure = measure
        what = tr("{noun}s", noun=tr(noun))
        change = tr("Change, points") if measure == "right" else tr("Change, bits")
        self._titles = (
            tr("Part"), f"{what[:1].upper()}{what[1:]}", tr("Full model"), now, change,
            tr("95 % interval"), tr("worse  ·  better"),
        )  # fmt: skip
        came = tuple(row_of(one, measure) for one in parts)
        if len(came) != len(self._came):
            self.beginResetModel()
            self._came, self.rows = came, self._in_order(came)
            self.endResetModel()
        else:
            self._came = came
            self._show()

    def sort_by(self, column: int) -> None:
        """By a column, the largest first, or the other way round where it was sorted so already."""
        self.falling = not self.falling if column == self.by else True
        self.by = column
        self._show()

    @property
    def most(self) -> float:
        """What the pictures of change reach to, at both sides."""
        calm = [row for row in self.rows if row.part.n >= CALM] or self.rows
        ends = [abs(end) for row in calm for end in row.change if math.isfinite(end)]
        return max(ends, default=1.0) or 1.0

    def _in_order(self, came: tuple[SliceRow, ...]) -> tuple[SliceRow, ...]:
        if not self.by:
            return came
        return (*came[:1], *sorted(came[1:], key=self._value, reverse=self.falling))

    def _value(self, row: SliceRow) -> float:
        worth = -row.change[0] if self.measure == "loss" else row.change[0]
        return (0.0, row.part.n, row.whole, row.now, row.change[0], row.change[1], worth)[self.by]

    def _show(self) -> None:
        """The same rows with other numbers or in another order; the chosen one stays chosen."""
        old = [row.key for row in self.rows]
        self.layoutAboutToBeChanged.emit()
        self.rows = self._in_order(self._came)
        places = {row.key: at for at, row in enumerate(self.rows)}
        for index in self.persistentIndexList():
            to = self.index(places.get(old[index.row()], index.row()), index.column())
            self.changePersistentIndex(index, to)
        self.layoutChanged.emit()
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, PICTURE)

    def rowCount(self, parent: Index | None = None) -> int:
        """How many rows."""
        return 0 if parent is not None and parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index | None = None) -> int:
        """How many columns."""
        return 0 if parent is not None and parent.isValid() else PICTURE + 1

    def headerData(
        self, section: int, way: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """The names of the columns; an arrow at the one they are sorted by."""
        if way != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            arrow = "  ↓" if self.falling else "  ↑"
            return self._titles[section] + (arrow if section == self.by and section else "")
        if role == Qt.ItemDataRole.ToolTipRole:
            return tip(told(SLICE_TERMS[section])) if SLICE_TERMS[section] else None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            middle = Qt.AlignmentFlag.AlignCenter
            return middle if section == PICTURE else theme.TO_RIGHT if section else theme.TO_LEFT
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """A cell."""
        row = self.rows[index.row()]
        if role == Qt.ItemDataRole.UserRole:
            return row
        if role == Qt.ItemDataRole.DisplayRole:
            return part_words(row, index.column(), self.measure)
        if role == Qt.ItemDataRole.ToolTipRole:
            return tip(said(row, self.measure))
        if role == Qt.ItemDataRole.AccessibleDescriptionRole:
            return said(row, self.measure)
        return None


def part_words(row: SliceRow, column: int, measure: Measure) -> str:
    """What a cell says."""
    part = row.part
    if column == 0:
        return f"{tr(BY[part.by])}  {name_words(part)}".strip()
    if column == 1:
        return f"{part.n:,}"
    if not part.n:
        return "–"
    if column in (2, 3):
        value = row.whole if column == 2 else row.now
        return tr("{share:.1f} %", share=value) if measure == "right" else f"{value:.3f}"
    if column == 4:
        return signed(row.change[0], measure)
    low, high = row.change[1:]
    if column == 5:
        if not math.isfinite(low):
            return tr("one text says nothing")
        return tr("{least} to {most}", least=signed(low, measure), most=signed(high, measure))
    return tr(part_verdict(row, measure))


def name_words(part: SliceScore) -> str:
    """What a slice is called; classes have names of their own."""
    return part.name if part.by == "label" else tr(part.name)


def part_verdict(row: SliceRow, measure: Measure) -> str:
    """worse, better, or may be nothing, for tr."""
    _, low, high = row.change
    if low <= 0 <= high:
        return "may be nothing"
    return "better" if (low > 0) == (measure == "right") else "worse"


def signed(value: float, measure: Measure) -> str:
    """+0.05, −1.20, 0; bits with three places."""
    places = 2 if measure == "right" else 3
    return decimals(value, places, signed=True)


def said(row: SliceRow, measure: Measure) -> str:
    """A slice in a sentence or two."""
    part = row.part
    name = part_words(row, 0, measure)
    if not part.n:
        return tr("{name}: nothing of it was seen yet", name=name)
    before, now = (share_words(*one) for one in (part.before, part.now))
    whole, masked = (BITS_PER_NAT * one for one in part.loss)
    return "\n".join((
        tr("{name}: {n:,} of {total:,}", name=name, n=part.n, total=part.total),
        tr("right, whole model: {share}", share=before),
        tr("right, heads off: {share}", share=now),
        tr("{lost:,} lost, {won:,} won", lost=part.lost, won=part.won),
        tr("loss: {whole:.3f} → {masked:.3f} bits", whole=whole, masked=masked),
    ))  # fmt: skip


def table(rows: Sequence[SliceRow]) -> list[list[str]]:
    """All there is of every slice, for a spreadsheet: shares of right answers, losses in bits."""
    lines = [[tr(one) for one in COLUMNS]]
    for part in (row.part for row in rows):
        bits = [f"{BITS_PER_NAT * one:.6g}" for one in (*part.loss, *part.loss_change)]
        shares = [[f"{end:.6g}" for end in one] for one in (part.before, part.now, part.change)]
        counts = [f"{one}" for one in (part.lost, part.won)]
        words = [tr(BY[part.by]), name_words(part), f"{part.n}", f"{part.total}"]
        lines.append([*words, *shares[0], *shares[1], *counts, *shares[2], *bits])
    return lines


# --- slices in a view -----------------------------------------------------------------------------


SLICE_WIDTHS = (0, 84, 100, 108, 116, 146, 160)  # px of each column; the name takes the rest
NARROW_SLICE_WIDTHS = (0, 80, 104, 0, 116, 0, 124)
SLICES_NARROW, SLICES_NARROWER, SLICES_NARROWEST = 900, 750, 470  # px: below, columns are left out
SLICE_HINT = "intervals of one slice each; Left, Right and Space sort, Ctrl+C copies"


class SlicesView(View):
    """One row for every class or slice; sorted by any column."""

    title = "Classes and slices"
    figureless = "It is a table, which Ctrl+C copies"
    icon = "table"
    needs = ("trial", "dark", "data")
    lane = "here"
    topic = "prune-slices"
    empty = ("Choose data to see classes and slices", "Every one is a row here, with its interval.")

    def __init__(self) -> None:
        super().__init__()
        self.head = PaneHead(tr(self.title), tr(SLICE_HINT))
        self.which = Segments((("right", tr("Right"), ""), ("loss", tr("Loss"), "")), wide=72)
        self.which.chosen.connect(self._again)
        self.head.add(self.which)
        self.model = PartTable(self)
        self.table = SliceTable(self.model)
        vbox(self.content, self.head, (self.table, 1))
        self.start_at(self.table)

    def request(self, session: Session) -> Callable[[], MaskTrial] | None:
        """The trial so far; nothing without data."""
        trial = session.trial
        if trial is None or not trial.slices:
            there = bool(session.data)
            self.empty = (
                ("On its way", "The first numbers come in a moment.")
                if there
                else (type(self).empty)
            )
            self.empty_actions = () if there else possible(session, *DATA_ACTIONS)[:1]
            return None
        return lambda: trial

    def draw(self, result: MaskTrial) -> None:
        """Show the numbers there are."""
        assert self.session is not None
        measure: Measure = self.which.choice  # type: ignore[assignment]
        noun = place_noun(result.examples.asked, self.session.spec)
        now = off_words(len(result.off)) if result.off else tr("No head off")
        self.model.show_parts(result.slices, measure, noun, now)
        self.table.fit()
        self.table.setAccessibleName(tr("Classes and slices: {n}", n=len(self.model.rows)))
        if self.model.rows and not self.table.currentIndex().isValid():
            self.table.setCurrentIndex(self.model.index(0, 0))

    def as_text(self) -> str:
        """All numbers as a table."""
        return "".join("\t".join(row) + "\n" for row in self.as_table() or ())

    def as_table(self) -> list[list[str]] | None:
        """Everything that is known of every slice, as the rows stand."""
        return table(self.model.rows) if self.model.rows else None

    def _again(self, name: str) -> None:
        self.refresh()


class SliceTable(RowTable):
    """Clicks on the head of a column, or Left, Right and Space, sort."""

    def __init__(self, model: PartTable) -> None:
        super().__init__()
        self.parts = model
        self.setModel(model)
        self.setItemDelegate(SlicePainter(self))
        header = self.horizontalHeader()
        header.setSectionsClickable(True)
        header.sectionClicked.connect(model.sort_by)

    def fit(self) -> None:
        """Columns for the width there is."""
        room = self.viewport().width()
        tight = room < SLICES_NARROWER
        hidden = {5} if room < SLICES_NARROW else set()
        if tight:
            hidden.add(3)  # whole and change say as much
        if room < SLICES_NARROWEST:
            hidden.add(PICTURE)
        self.share(NARROW_SLICE_WIDTHS if tight else SLICE_WIDTHS, frozenset(hidden))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and Right choose the column to sort by, Space turns the order."""
        shown = [n for n in range(len(SLICE_WIDTHS)) if not self.isColumnHidden(n)]
        at = shown.index(self.parts.by) if self.parts.by in shown else 0
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        if event.key() in steps:
            column = shown[max(0, min(at + steps[Qt.Key(event.key())], len(shown) - 1))]
            if column != self.parts.by:
                self.parts.sort_by(column)
        elif event.key() == Qt.Key.Key_Space:
            self.parts.sort_by(self.parts.by)
        else:
            super().keyPressEvent(event)


class SlicePainter(QStyledItemDelegate):
    """What a slice is in grey before its name; the change as a dot on its interval."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """All rows are equally high."""
        return QSize(60, ROW_HEIGHT)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw a cell."""
        row, model, column = index.data(Qt.ItemDataRole.UserRole), index.model(), index.column()
        assert isinstance(row, SliceRow) and isinstance(model, PartTable)
        now, box, every = theme.current(), option.rect, row.part.by == "all"
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ground(painter, box, option.state)
        inner = box.adjusted(16 if column == 0 else 8, 0, -8, 0)
        if column == PICTURE:
            self._interval(painter, inner, row, model)
        else:
            painter.setPen(now.text)
            painter.setFont(theme.font(0.92, 600 if every or column == 4 else 400))
            if column == 0 and not every:
                painter.setPen(now.secondary)
                kind = tr(BY[row.part.by])
                painter.drawText(inner, theme.TO_LEFT, kind)
                inner.setLeft(inner.left() + painter.fontMetrics().horizontalAdvance(kind) + 8)
                painter.setPen(now.text)
            if column == 5:
                painter.setPen(now.secondary)
            said = name_words(row.part) if column == 0 and not every else index.data()
            said = painter.fontMetrics().elidedText(
                said, Qt.TextElideMode.ElideRight, inner.width()
            )
            painter.drawText(inner, theme.TO_RIGHT if column else theme.TO_LEFT, said)
        if every:
            painter.setPen(QPen(now.line, 1))
            painter.drawLine(box.bottomLeft(), box.bottomRight())
        painter.restore()

    def _interval(self, painter: QPainter, box: QRect, row: SliceRow, model: PartTable) -> None:
        """0 in the middle, worse at its left; hollow where the interval has 0 in it."""
        now, middle, y = theme.current(), box.center().x() + 0.5, box.center().y() + 0.5
        painter.setPen(QPen(now.edge, 1))
        painter.drawLine(QPointF(middle, box.top()), QPointF(middle, box.bottom() + 1))
        if not row.part.n:
            return
        way = (1 if model.measure == "right" else -1) * (box.width() / 2 - 6) / model.most

        def x(value: float) -> float:
            reach = box.width() / 2
            return (
                middle + max(-reach, min(reach, value * way))
                if math.isfinite(value)
                else (middle + math.copysign(reach, value * way))
            )

        said = part_verdict(row, model.measure)
        ink = {"worse": now.bad, "better": now.good}.get(said, now.secondary)
        value, low, high = row.change
        painter.setPen(QPen(ink, 2, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
        painter.drawLine(QPointF(x(low), y), QPointF(x(high), y))
        painter.setPen(QPen(ink, 1.5))
        painter.setBrush(now.pane if said == "may be nothing" else ink)
        painter.drawEllipse(QRectF(x(value) - 3.5, y - 3.5, 7, 7))
