"""The head in numbers: each one among those of all heads, A above B."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from hgviz.analysis.numbers import NUMBERS, HeadNumbers, numbers, peers
from hgviz.core import Capture, HeadId, Step, Task
from hgviz.gui.compare_parts import tables
from hgviz.gui.compare_parts.numberpair import PAD, ROW, TITLE, NumberPair, Side
from hgviz.gui.compare_parts.told import head_of_b
from hgviz.gui.language import tr
from hgviz.gui.view import View
from hgviz.gui.widgets import PaneHead, line

if TYPE_CHECKING:
    from hgviz.session import Session

FOOT = 10  # px below
GAP = 12  # px between a number and the line beside it
OFTEN = 6  # heads between two pictures while they are measured
KEPT = 4  # captures whose heads stay known
KINDS = {"self": "self-attention heads", "cross": "cross-attention heads"}

Known = dict[HeadId, HeadNumbers]


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
    empty_actions = (("compare_with", "Compare with…"),)
    topic: ClassVar[str] = "compare-numbers"

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._memory = Memory()
        self._shown: Shown | None = None
        self._note = ""  # what the head says while no number has the keyboard
        self.head = PaneHead(tr("This head in numbers"))
        self.head.setFixedHeight(30)
        self.pairs = {name: NumberPair(name) for name in NUMBERS}
        row = QHBoxLayout()
        row.setContentsMargins(16 - PAD, 0, 16 - PAD, FOOT)
        row.setSpacing(GAP - PAD)
        for number, one in enumerate(self.pairs.values()):
            if number:
                row.addWidget(line(vertical=True))
            row.addWidget(one, 1)
            one.told.connect(self._tell)
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
        self._shown, a, b = result, result.a, result.b
        count, other = len(a.peers), len(b.peers)
        alone = b.head is None
        many = f"{count:,}" if count == other or alone else tr("{a:,} and {b:,}", a=count, b=other)
        dots = tr("head {head}", head=a.head)
        if not alone and a.head != b.head:
            dots = tr("{a} and {b}", a=a.head, b=b.head)
        said = "grey: all {many} {kind}; the dot: {dots}; A above, B below"
        self._note = tr(said, many=many, kind=tr(result.kind), dots=dots)
        self.head.note.say(self._note)
        for one in self.pairs.values():
            one.show_sides(a, b)  # the one with the keyboard says itself again

    def as_table(self) -> list[list[str]] | None:
        """Every number of both heads, and its place among those of all."""
        return tables.of_numbers(self._shown.a, self._shown.b) if self._shown is not None else None

    def as_text(self) -> str:
        """The same in words."""
        return "\n".join(filter(None, (one.words for one in self.pairs.values())))

    def noticed(self, name: str) -> None:
        """Another head whose numbers are known has them at once, whatever is still measured."""
        session = self.session
        if session is None or session.capture is None or session.beside is None:
            return
        if name == "selection" and session.capture.spec.heads:
            known = [self._memory.of(one) for one in (session.capture, session.beside)]
            self.draw(_shown(session.capture, session.beside, *self._heads(session), *known))

    def _tell(self, said: str) -> None:
        """What the tooltip of a number says, for those who walk there by keyboard."""
        self.head.note.say(said or self._note)

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
