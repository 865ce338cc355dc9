"""The head in numbers: each one among those of all heads, A above B."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from hgviz.analysis.numbers import NUMBERS, HeadNumbers, numbers, peers
from hgviz.core import Capture, HeadId, Step, Task
from hgviz.gui import theme
from hgviz.gui.compare.told import head_of_b
from hgviz.gui.controls import PaneHead, line, tip
from hgviz.gui.views import words
from hgviz.gui.views.base import View
from hgviz.gui.views.ink import faint

if TYPE_CHECKING:
    from hgviz.session import Session

TITLE, ROW, FOOT = 20, 18, 10  # px: of a number's name, of A and of B, below
LETTER, VALUE = 16, 54  # px: the name of a side, its number
GAP = 12  # px between a number and the line beside it
OFTEN = 6  # heads between two pictures while they are measured
ALIKE = 0.005  # numbers that are no further apart read the same
KEPT = 4  # captures whose heads stay known
KINDS = {"self": "self-attention heads", "cross": "cross-attention heads"}

Known = dict[HeadId, HeadNumbers]


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
        return f"place {rank:,} of {len(values):,}, from the largest"


@dataclass(frozen=True, slots=True)
class Shown:
    """Both sides as far as they are measured."""

    a: Side
    b: Side
    kind: str


@dataclass(slots=True)
class Memory:
    """What was measured of the captures that were compared last."""

    captures: list[tuple[Capture, Known]] = field(default_factory=list)

    def of(self, capture: Capture) -> Known:
        """What is known of a capture; it becomes the newest."""
        found = next((known for one, known in self.captures if one.maps is capture.maps), {})
        others = [(one, known) for one, known in self.captures if one.maps is not capture.maps]
        self.captures = [(capture, found), *others][:KEPT]
        return found


class NumbersView(View):
    """NUMBERS of the selected head and of the one beside it, each among all heads of its model."""

    title: ClassVar[str] = "Numbers"
    figureless = "Metrics of heads, layer by layer, are drawn of both sides"
    icon: ClassVar[str] = "table"
    needs: ClassVar[tuple[str, ...]] = ("capture", "beside", "selection")
    lane = "facts"
    empty = ("Numbers of both sides", "They appear as soon as there is something to compare with.")

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._memory = Memory()
        self.head = PaneHead("This head in numbers")
        self.head.setFixedHeight(30)
        self.pairs = {name: NumberPair(name) for name in NUMBERS}
        row = QHBoxLayout()
        row.setContentsMargins(16, 0, 16, FOOT)
        row.setSpacing(GAP)
        for number, one in enumerate(self.pairs.values()):
            if number:
                row.addWidget(line(vertical=True))
            row.addWidget(one, 1)
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addLayout(row)
        self.setFixedHeight(30 + TITLE + 2 * ROW + FOOT)

    def request(self, session: Session) -> Task[Shown] | None:
        """Measure what is not known: the two heads first, then all others of their kind."""
        a, b = session.capture, session.beside
        if a is None or b is None or not a.spec.heads:
            return None
        known = [self._memory.of(one) for one in (a, b)]
        return _measured(a, b, *self._heads(session), *known)

    def draw(self, result: Shown) -> None:
        """Show both."""
        a, b = result.a, result.b
        count, other = len(a.peers), len(b.peers)
        many = f"{count:,}" if count == other or b.head is None else f"{count:,} and {other:,}"
        dots = f"head {a.head}" if a.head == b.head or b.head is None else f"{a.head} and {b.head}"
        self.head.note.say(f"grey: all {many} {result.kind}; the dot: {dots}; A above, B below")
        for one in self.pairs.values():
            one.show_sides(a, b)

    def noticed(self, name: str) -> None:
        """Another head whose numbers are known has them at once, whatever is still measured."""
        session = self.session
        if session is None or session.capture is None or session.beside is None:
            return
        if name == "selection" and session.capture.spec.heads:
            known = [self._memory.of(one) for one in (session.capture, session.beside)]
            self.draw(_shown(session.capture, session.beside, *self._heads(session), *known))

    def _heads(self, session: Session) -> tuple[HeadId, HeadId | None]:
        return session.selection.head_id, head_of_b(session)


def _measured(
    a: Capture, b: Capture, head: HeadId, other: HeadId | None, known: Known, theirs: Known
) -> Task[Shown]:
    def shown() -> Shown:
        return _shown(a, b, head, other, known, theirs)

    sides = [(a, peers(a, head), known), (b, peers(b, other) if other else [], theirs)]
    first = [(a, [head], known), (b, [other] if other else [], theirs)]
    total = sum(len(some) for _, some, _ in sides)
    for number, (capture, heads, found) in enumerate((*first, *_turns(sides))):
        for step in numbers(capture, heads, found):
            yield Step(min(number, total), total, step.note)
        if number == 1 or number % OFTEN == 0:
            yield Step(min(number, total), total, "Measuring heads", shown())
    return shown()


def _turns(
    sides: list[tuple[Capture, list[HeadId], Known]],
) -> Iterator[tuple[Capture, list[HeadId], Known]]:
    """A head of A, one of B, the next of A ..."""
    for at in range(max((len(heads) for _, heads, _ in sides), default=0)):
        for capture, heads, known in sides:
            yield capture, heads[at : at + 1], known


def _shown(
    a: Capture, b: Capture, head: HeadId, other: HeadId | None, known: Known, theirs: Known
) -> Shown:
    role = a.spec.layers[head.layer].role
    return Shown(
        Side(head, tuple(peers(a, head)), dict(known)),
        Side(other, tuple(peers(b, other)) if other is not None else (), dict(theirs)),
        KINDS.get(role, "heads between levels"),
    )


class NumberPair(QWidget):
    """One number of A and of B, each as a dot on a line with ticks for all other heads."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self._sides: tuple[tuple[str, Side], ...] = ()
        self.setFixedHeight(TITLE + 2 * ROW)
        self.setMinimumWidth(LETTER + VALUE + 40)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(NUMBERS[name].label)

    def sizeHint(self) -> QSize:
        """What it likes."""
        return QSize(200, TITLE + 2 * ROW)

    def show_sides(self, a: Side, b: Side) -> None:
        """Another head, or the same with more others."""
        self._sides = (("A", a), ("B", b))
        said = [NUMBERS[self.name].means + "."]
        for letter, one in self._sides:
            mine = one.known.get(one.head) if one.head is not None else None
            if one.head is None:
                said.append(f"{letter} has no such head.")
            elif mine is not None:
                place = f", {one.place(self.name)}" if one.place(self.name) else ""
                said.append(f"{letter}, head {one.head}: {self.spoken(one)}{place}.")
                if mine.rows < mine.of:
                    said.append(f"Measured on {mine.rows:,} of {mine.of:,} rows.")
        self.setToolTip(tip("\n".join(said)))
        self.setAccessibleDescription(" ".join(said))
        self.update()

    def spoken(self, side: Side) -> str:
        """The number of a side as people read it."""
        value = side.value(self.name)
        if not isfinite(value):
            return "–"
        if NUMBERS[self.name].percent:
            return percent(value)
        return words.weight(value)

    def range(self) -> tuple[float, float]:
        """The smallest and the largest of all heads of both sides."""
        found = [
            v for _, one in self._sides for v in (*one.values(self.name), one.value(self.name))
        ]
        real = [one for one in found if isfinite(one)]
        return (min(real), max(real)) if real else (0.0, 0.0)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Its name, and a line for either side."""
        now = theme.current()
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            font = theme.font(0.92, 500)
            painter.setFont(font)
            painter.setPen(now.text)
            room = max(0, self.width())
            said = QFontMetricsF(font).elidedText(
                NUMBERS[self.name].label, Qt.TextElideMode.ElideRight, room
            )
            painter.drawText(QRectF(0, 0, room, TITLE - 2), LEFT, said)
            for number, (letter, one) in enumerate(self._sides):
                self._line(painter, letter, one, TITLE + number * ROW)

    def _line(self, painter: QPainter, letter: str, side: Side, top: float) -> None:
        now, low, high = theme.current(), *self.range()
        middle, width = top + ROW / 2, self.width()
        left, right = LETTER + 5.0, width - VALUE - 5.0
        painter.setFont(theme.font(0.85))
        painter.setPen(now.secondary)
        painter.drawText(QRectF(0, top, LETTER, ROW), LEFT, letter)
        if side.head is None:
            painter.drawText(QRectF(LETTER, top, width - LETTER, ROW), LEFT, "no such head")
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


def percent(share: float) -> str:
    """52 %, 0 % only if it is exactly that, 100 % as well."""
    if 0 < share < 0.005:
        return "<1 %"
    return ">99 %" if 0.995 <= share < 1 else f"{100 * share:.0f} %"


__all__ = ["NumberPair", "NumbersView", "percent"]
