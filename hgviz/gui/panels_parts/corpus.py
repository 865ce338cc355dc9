"""The texts of a corpus as a list that can be searched, and how one row of it is drawn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRect,
    QSize,
    Qt,
)
from PySide6.QtGui import QFontMetrics, QPainter, QPen
from PySide6.QtGui import Qt as TextQt
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from hgviz.core import Item
from hgviz.gui import sentences, theme
from hgviz.gui.language import tr
from hgviz.gui.views import words

ROW, HIGH_ROW = 30, 46  # px: of one line, and of two where a list is narrow
NARROW = 420  # px
LABEL = 76  # px that a label has at most
SHOWN, BEFORE = 160, 14  # characters of a text that are drawn, and in front of what was found
TOLD = 600  # characters of a text in its tooltip
LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
LABELLED = re.compile(r'label:(?:"([^"]*)"?|(\S*))', re.IGNORECASE)

Index = QModelIndex | QPersistentModelIndex


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
class Row:
    """What a row shows: which text of all, what was found in it (start, end), if it is open."""

    item: Item
    place: int
    text: str
    found: tuple[int, int]
    open: bool


class Texts(QAbstractListModel):
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
        return words.counted(item.tokens, self.unit) + label

    def _tip(self, at: int, item: Item) -> str:
        text = item.text if len(item.text) <= TOLD else item.text[: TOLD - 1] + "…"
        place = tr("Text {number:,} of {total:,}", number=at + 1, total=len(self.items))
        said = f"{place}, {self._told(item)} (--item {item.number})\n\n{text}"
        return TextQt.convertFromPlainText(said, Qt.WhiteSpaceMode.WhiteSpaceNormal)  # it wraps

    def _row(self, at: int, item: Item) -> Row:
        """The text from its beginning, or from a little before what was found."""
        text, sought = " ".join(item.text.split()), self._search.words
        place = self._folded[at][0].find(sought)
        end = place + len(sought)
        start = max(0, place - BEFORE) if end > 2 * BEFORE else 0
        cut = "…" if start else ""
        found = (place - start + len(cut), end - start + len(cut))
        shown = cut + _line(text[start : start + SHOWN])
        return Row(item, at + 1, shown, found, item.number == self.open)


class RowPainter(QStyledItemDelegate):
    """Number, text with what was found in bold, label, tokens: in one line, or two if narrow."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """All rows are equally high."""
        return QSize(100, row_height(option.widget.width() if option.widget else NARROW))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw one row."""
        row, model = index.data(Qt.ItemDataRole.UserRole), index.model()
        assert isinstance(row, Row) and isinstance(model, Texts)
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
        painter.drawText(QRect(line.left(), line.top(), wide, high), RIGHT, f"{row.place:,}")
        painter.setFont(theme.font(0.92))
        painter.setPen(now.text if row.open else now.secondary)
        start = line.left() + wide + 10
        if two:
            told = words.counted(row.item.tokens, model.unit)
            painter.drawText(QRect(start, under.top(), under.right() - start, high), LEFT, told)
        else:
            painter.drawText(line, RIGHT, f"{row.item.tokens:,}")
        end = under.right() - (0 if two else tokens_width(model) + 10)
        if row.item.label:
            left = self._label(painter, under, end, row)
            end = end if two else left - 8
        self._text(painter, QRect(start, line.top(), 0, high), line.right() if two else end, row)
        painter.restore()

    def _label(self, painter: QPainter, box: QRect, right: int, row: Row) -> int:
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

    def _text(self, painter: QPainter, box: QRect, end: int, row: Row) -> None:
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
            painter.drawText(QRect(x, box.top(), end - x, box.height()), LEFT, said)
            x += metrics.horizontalAdvance(text)


def row_height(width: int) -> int:
    """Px of a row in a list so wide."""
    return HIGH_ROW if width < NARROW else ROW


def tokens_width(model: Texts) -> int:
    """Px that the longest count of tokens takes, or their name above them."""
    most = max((one.tokens for one in model.items), default=0)
    return QFontMetrics(theme.font(0.92)).horizontalAdvance(f"{most:,}") + 1


def _line(text: str) -> str:
    """A text on one line, with nothing in it that could move what stands beside it."""
    return sentences.shown(text[: 2 * SHOWN], SHOWN).replace(sentences.SPACE, " ")
