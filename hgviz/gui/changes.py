"""Classes and slices as rows of a table: how each fares whole and with heads off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from PySide6.QtCore import QAbstractTableModel, QObject, Qt

from hgviz.analysis.slices import By, Ends, Part
from hgviz.gui.language import tr
from hgviz.gui.livescore import share_words
from hgviz.gui.prune_parts.explained import told
from hgviz.gui.prune_parts.rows import LEFT, RIGHT, Index
from hgviz.gui.widgets import tip

Measure = Literal["right", "loss"]

BITS = 1 / math.log(2)
CALM = 30  # places from which on an interval may set the scale of all pictures
BY: dict[By, str] = {
    "all": "All",
    "label": "Label",
    "length": "Length",
    "token": "Wanted",
    "context": "Before it",
    "level": "Place in group",
}
COLUMNS = (
    "by", "slice", "seen", "of", "right whole", "low", "high", "right masked", "low", "high",
    "lost", "won", "change", "low", "high", "bits whole", "bits masked", "more bits", "low",
    "high",
)  # fmt: skip
# which number of explained each column is
WORTH = ("", "", "whole", "right", "change", "ends", "ends")
PICTURE = 6  # the column with the interval as a line


class Row(NamedTuple):
    """A slice by one measure: whole, with heads off, and the change with its ends, in per cent and
    points of right answers, or in bits."""

    part: Part
    whole: float
    now: float
    change: Ends

    @property
    def key(self) -> tuple[By, str]:
        """What stays the same while the numbers grow."""
        return self.part.by, self.part.name


def row_of(part: Part, measure: Measure) -> Row:
    """A slice by a measure."""
    if measure == "loss":
        value, low, high = (BITS * one for one in part.more)
        return Row(part, BITS * part.loss[0], BITS * part.loss[1], (value, low, high))
    value, low, high = (100 * one for one in part.change)
    return Row(part, 100 * part.before[0], 100 * part.now[0], (value, low, high))


class PartTable(QAbstractTableModel):
    """All places in the first row, then the slices, as they come or sorted by a column."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.rows: tuple[Row, ...] = ()
        self.measure: Measure = "right"
        self.by, self.falling = 0, True  # column 0: as they come
        self._came: tuple[Row, ...] = ()
        self._titles: tuple[str, ...] = ("",) * (PICTURE + 1)

    def show_parts(self, parts: Sequence[Part], measure: Measure, noun: str, now: str) -> None:
        """Other numbers; noun: what is counted; now: what the masked model is called."""
        self.measure = measure
        what = tr("{noun}s", noun=tr(noun))
        change = tr("Change, points") if measure == "right" else tr("Change, bits")
        self._titles = (
            tr("Part"), f"{what[:1].upper()}{what[1:]}", tr("Whole model"), now, change,
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

    def _in_order(self, came: tuple[Row, ...]) -> tuple[Row, ...]:
        if not self.by:
            return came
        return (*came[:1], *sorted(came[1:], key=self._value, reverse=self.falling))

    def _value(self, row: Row) -> float:
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
            return tip(told(WORTH[section])) if WORTH[section] else None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            middle = Qt.AlignmentFlag.AlignCenter
            return middle if section == PICTURE else RIGHT if section else LEFT
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """A cell."""
        row = self.rows[index.row()]
        if role == Qt.ItemDataRole.UserRole:
            return row
        if role == Qt.ItemDataRole.DisplayRole:
            return cell_words(row, index.column(), self.measure)
        if role == Qt.ItemDataRole.ToolTipRole:
            return tip(said(row, self.measure))
        if role == Qt.ItemDataRole.AccessibleDescriptionRole:
            return said(row, self.measure)
        return None


def cell_words(row: Row, column: int, measure: Measure) -> str:
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
    return tr(verdict(row, measure))


def name_words(part: Part) -> str:
    """What a slice is called; classes have names of their own."""
    return part.name if part.by == "label" else tr(part.name)


def verdict(row: Row, measure: Measure) -> str:
    """worse, better, or may be nothing, for tr."""
    _, low, high = row.change
    if low <= 0 <= high:
        return "may be nothing"
    return "better" if (low > 0) == (measure == "right") else "worse"


def signed(value: float, measure: Measure) -> str:
    """+0.05, −1.20, 0; bits with three places."""
    places = 2 if measure == "right" else 3
    said = f"{value:+.{places}f}"
    return ("0" if float(said) == 0 else said).replace("-", "−")


def said(row: Row, measure: Measure) -> str:
    """A slice in a sentence or two."""
    part = row.part
    name = cell_words(row, 0, measure)
    if not part.n:
        return tr("{name}: nothing of it was seen yet", name=name)
    before, now = (share_words(*one) for one in (part.before, part.now))
    whole, masked = (BITS * one for one in part.loss)
    return "\n".join((
        tr("{name}: {n:,} of {total:,}", name=name, n=part.n, total=part.total),
        tr("right, whole model: {share}", share=before),
        tr("right, heads off: {share}", share=now),
        tr("{lost:,} lost, {won:,} won", lost=part.lost, won=part.won),
        tr("loss: {whole:.3f} → {masked:.3f} bits", whole=whole, masked=masked),
    ))  # fmt: skip


def table(rows: Sequence[Row]) -> list[list[str]]:
    """All there is of every slice, for a spreadsheet: shares of right answers, losses in bits."""
    lines = [[tr(one) for one in COLUMNS]]
    for part in (row.part for row in rows):
        bits = [f"{BITS * one:.6g}" for one in (*part.loss, *part.more)]
        shares = [[f"{end:.6g}" for end in one] for one in (part.before, part.now, part.change)]
        counts = [f"{one}" for one in (part.lost, part.won)]
        words = [tr(BY[part.by]), name_words(part), f"{part.n}", f"{part.total}"]
        lines.append([*words, *shares[0], *shares[1], *counts, *shares[2], *bits])
    return lines
