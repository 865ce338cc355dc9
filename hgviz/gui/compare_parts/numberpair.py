"""One number of a head of A and of one of B, each among those of all heads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from hgviz.analysis.numbers import NUMBERS, HeadNumbers
from hgviz.core import HeadId
from hgviz.gui import theme
from hgviz.gui.heads_parts.metrics import explanation
from hgviz.gui.ink import faint, focus_ring
from hgviz.gui.language import tr
from hgviz.gui.views import words
from hgviz.gui.widgets import tip

TITLE, ROW = 20, 18  # px: of a number's name, of A and of B
LETTER, VALUE = 16, 54  # px: the name of a side, its number
PAD = 5  # px at either side, for the ring of what has the keyboard
ALIKE = 0.005  # numbers that are no further apart read the same


@dataclass(frozen=True, slots=True)
class Side:
    """A head of one capture and the heads it is told beside; None: there is no such head."""

    head: HeadId | None
    peers: tuple[HeadId, ...]
    known: Mapping[HeadId, HeadNumbers]

    def value(self, name: str) -> float:
        """A number of the head, NaN where it has none, or is not measured yet."""
        mine = self.known.get(self.head) if self.head is not None else None
        return mine.values[name] if mine is not None else float("nan")

    def values(self, name: str) -> list[float]:
        """The same number of all heads of its kind that are measured."""
        found = (self.known[one].values[name] for one in self.peers if one in self.known)
        return [one for one in found if isfinite(one)]

    def place(self, name: str) -> str:
        """place 3 of 54, from the largest."""
        value, values = self.value(name), self.values(name)
        if not isfinite(value) or not values:
            return ""
        rank = 1 + sum(one > value for one in values)
        return tr("place {rank:,} of {count:,}, from the largest", rank=rank, count=len(values))


class NumberPair(QWidget):
    """One number of A and of B, each as a dot on a line with ticks for all other heads."""

    told = Signal(str)  # its words while it has the keyboard, "" when that goes

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self._sides: tuple[tuple[str, Side], ...] = ()
        self.setFixedHeight(TITLE + 2 * ROW)
        self.setMinimumWidth(LETTER + VALUE + 30 + 2 * PAD)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr(NUMBERS[name].label))

    def sizeHint(self) -> QSize:
        """What it likes."""
        return QSize(200, TITLE + 2 * ROW)

    def show_sides(self, a: Side, b: Side) -> None:
        """Another head, or the same with more others."""
        self._sides = (("A", a), ("B", b))
        number, said = NUMBERS[self.name], list(self._said())
        means = explanation(tr(number.means), number.formula, number.source)
        self.setToolTip(tip("\n".join((*said, means))))
        if self.hasFocus():
            self.told.emit(self.words)
        self.update()

    @property
    def words(self) -> str:
        """Its name and what both sides have of it, in one line."""
        return " ".join((tr(NUMBERS[self.name].label) + ":", *self._said()))

    def _said(self) -> Iterator[str]:
        """A sentence for each side."""
        for letter, one in self._sides:
            mine = one.known.get(one.head) if one.head is not None else None
            if one.head is None:
                yield tr("{side} has no such head.", side=letter)
            elif mine is not None:
                parts = {"side": letter, "head": one.head, "value": self.spoken(one)}
                if place := one.place(self.name):
                    yield tr("{side}, head {head}: {value}, {place}.", place=place, **parts)
                else:
                    yield tr("{side}, head {head}: {value}.", **parts)
                if mine.rows < mine.of:
                    yield tr("Measured on {rows:,} of {of:,} rows.", rows=mine.rows, of=mine.of)

    def spoken(self, side: Side) -> str:
        """The number of a side as people read it."""
        value = side.value(self.name)
        if not isfinite(value):
            return "–"
        if NUMBERS[self.name].percent:
            return words.share(value)
        return words.weight(value)

    def range(self) -> tuple[float, float]:
        """The smallest and the largest of all heads of both sides."""
        found = [
            v for _, one in self._sides for v in (*one.values(self.name), one.value(self.name))
        ]
        real = [one for one in found if isfinite(one)]
        return (min(real), max(real)) if real else (0.0, 0.0)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Say what it is."""
        super().focusInEvent(event)
        self.told.emit(self.words)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Say no more."""
        super().focusOutEvent(event)
        self.told.emit("")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Its name, and a line for either side."""
        now = theme.current()
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            if self.hasFocus():
                focus_ring(painter, QRectF(self.rect()))
            font = theme.font(0.92, 500)
            painter.setFont(font)
            painter.setPen(now.text)
            painter.translate(PAD, 0)
            room = max(0, self.width() - 2 * PAD)
            said = QFontMetricsF(font).elidedText(
                tr(NUMBERS[self.name].label), Qt.TextElideMode.ElideRight, room
            )
            painter.drawText(QRectF(0, 0, room, TITLE - 2), LEFT, said)
            for number, (letter, one) in enumerate(self._sides):
                self._line(painter, letter, one, TITLE + number * ROW)

    def _line(self, painter: QPainter, letter: str, side: Side, top: float) -> None:
        now, low, high = theme.current(), *self.range()
        middle, width = top + ROW / 2, self.width() - 2 * PAD
        left, right = LETTER + 5.0, width - VALUE - 5.0
        painter.setFont(theme.font(0.85))
        painter.setPen(now.secondary)
        painter.drawText(QRectF(0, top, LETTER, ROW), LEFT, letter)
        if side.head is None:
            said = tr("no such head")
            painter.drawText(QRectF(LETTER, top, width - LETTER, ROW), LEFT, said)
            return
        painter.setFont(theme.font(0.92, 600))
        painter.setPen(now.text)
        painter.drawText(QRectF(width - VALUE, top, VALUE, ROW), RIGHT, self.spoken(side))

        def x(value: float) -> float:
            if high - low < ALIKE:
                return left if value < ALIKE else right
            return left + (value - low) / (high - low) * (right - left)

        painter.setPen(QPen(now.line, 1))
        painter.drawLine(QPointF(left, middle), QPointF(right, middle))
        painter.setPen(QPen(faint(now.secondary, 0.35), 1.2))
        for value in side.values(self.name):
            painter.drawLine(QPointF(x(value), middle - 4), QPointF(x(value), middle + 4))
        mine = side.value(self.name)
        if isfinite(mine):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(now.mark)
            painter.drawEllipse(QPointF(x(mine), middle), 4.5, 4.5)


LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
