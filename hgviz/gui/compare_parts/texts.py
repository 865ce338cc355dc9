"""What the selected letter looks at in A and in B, over the text, and both in a sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from hgviz.analysis.alignment import Alignment
from hgviz.analysis.meeting import Meeting
from hgviz.analysis.pairing import counterpart
from hgviz.core import Capture, Display, HeadId, Selection, Step, Task
from hgviz.gui.compare_parts import rowpair, saying, tables
from hgviz.gui.compare_parts.rowpair import Half, Names, RowPair
from hgviz.gui.compare_parts.rows import Row, TextRows
from hgviz.gui.compare_parts.told import GUIDE, Told, sides_of
from hgviz.gui.heads_parts.metrics import explanation
from hgviz.gui.language import tr
from hgviz.gui.textrows import LEFT, RIGHT
from hgviz.gui.view import View
from hgviz.gui.views.words import counted
from hgviz.gui.widgets import PaneHead, label, tip

if TYPE_CHECKING:
    from hgviz.session import Session

NOTE = "what the selected {unit} looks at"
APART = "nothing is in both"
NO_LAYER = "This layer is not captured yet."
BITS = "Bits per byte: what the model needs on average to tell the next byte; less is better"
ASKING = "Click a {unit} to see what it looks at on both sides."


@dataclass(frozen=True, slots=True)
class Read:
    """What a request brings: the rows, None where A has none; how the texts differ. unit: what a
    query is called. alone: B has no such head, and the rows are those of A alone."""

    a: Capture
    b: Capture
    pair: RowPair | None
    told: Told
    display: Display
    unit: str
    of_text: str = ""
    differs: str = ""
    alone: bool = False


class Reader:
    """Opens rows of two captures, in any thread; what they share is found once."""

    def __init__(self) -> None:
        self._alignment: Alignment | None = None
        self._meeting: Meeting | None = None
        self._names: tuple[Names, Names] | None = None  # of the meeting
        self._said: tuple[str, str] = ("", "")
        self._of: tuple[object, ...] = ()

    def read(
        self, a: Capture, b: Capture, chosen: Selection, told: Told, display: Display
    ) -> Task[Read]:
        """The row of the chosen query on both sides."""
        yield Step(0, 2, "Reading the text’s weights")
        known = self._alignment
        if known is None or known.a is not a or known.b is not b:
            self._alignment = known = Alignment(a, b)
            self._meeting, self._of = None, ()
        of = (told, a.logits is None, b.logits is None)
        if self._of != of:
            self._said = saying.of_text(a, b, told), differing(known)
            self._of = of
        there = chosen.layer < len(a.spec.layers)
        asking = a.query_prompt(chosen.layer) if there else a.main
        blank = Read(a, b, None, told, display, asking.unit, *self._said)
        other = counterpart(a, b, chosen.head_id, chosen.beside)
        mine = a.maps[chosen.layer] if chosen.layer < len(a.maps) else None
        if mine is None or chosen.head not in mine.heads:
            return blank
        yield Step(1, 2, "Reading the text’s weights")
        if other is None:
            alone = Meeting.of(Alignment(a, a), chosen.head_id, chosen.head_id)
            pair = replace(rowpair.read(alone, chosen.query, chosen.key), b=None)
            return replace(blank, pair=pair, alone=True)
        meeting = self._met(known, chosen.head_id, other)
        pair = rowpair.read(meeting, chosen.query, chosen.key, self._names)
        return replace(blank, pair=pair, differs=differing(known, meeting))

    def _met(self, known: Alignment, head: HeadId, other: HeadId) -> Meeting:
        found = self._meeting
        if found is None or (found.a, found.head, found.other) != (known.a, head, other):
            self._meeting = found = Meeting.of(known, head, other)
            self._names = rowpair.named(found)
            for one in self._names:  # found here, not while it is painted
                one.prepare()
        return found


class TextsView(View):
    """Rows of text for A, B and A − B, and in words what they show.

    A click chooses the query, Alt+click the key; where the keys are of another text than the
    queries, the key.
    """

    title: ClassVar[str] = "The text on both sides"
    figureless = "The maps above it are drawn"
    icon: ClassVar[str] = "text"
    needs: ClassVar[tuple[str, ...]] = (
        "capture", "beside", "other", "selection", "hover", "display",
    )  # fmt: skip
    empty = ("The text on both sides", "It appears as soon as there is something to compare with.")
    empty_actions = (("compare_with", "Compare with…"),)
    topic: ClassVar[str] = "compare-texts"

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._reader = Reader()
        self._pair: RowPair | None = None
        self.head = PaneHead(tr("Text"))
        self.head.setFixedHeight(34)
        self.rows = TextRows()
        self.rows.pointed.connect(self._point)
        self.rows.queried.connect(self._query)
        self.rows.keyed.connect(self._key)
        self.words = label(factor=0.92, kind="secondary")
        self.words.setWordWrap(True)
        self.words.setAlignment(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft)
        named = label(tr("In words"), factor=0.92, weight=600)
        named.setFixedWidth(LEFT - 16)
        named.setAlignment(Qt.AlignmentFlag.AlignVCenter)
        self.foot = QWidget()
        self.foot.setFixedHeight(40)
        foot = QHBoxLayout(self.foot)
        foot.setContentsMargins(16, 0, RIGHT, 6)
        foot.setSpacing(0)
        foot.addWidget(named)
        foot.addWidget(self.words, 1)
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(self.rows, 1)
        column.addWidget(self.foot)
        self.start_at(self.rows)

    # --- View -------------------------------------------------------------------------------------

    def request(self, session: Session) -> Task[Read] | None:
        """Read the row of the chosen query in both."""
        a, b = session.capture, session.beside
        if a is None or b is None or not len(a.main) or not a.spec.layers:
            return None
        chosen = session.selection
        looked = session.looked_at
        chosen = replace(chosen, query=looked.query, key=looked.key)
        return self._reader.read(a, b, chosen, sides_of(session), session.display)

    def draw(self, result: Read) -> None:
        """Show both rows, and their difference."""
        assert self.session is not None
        told, pair = result.told, result.pair
        unit = tr(result.unit)
        note = tr(NOTE, unit=unit)
        said = (note, result.of_text, result.differs)
        self.head.note.say("      ".join(filter(None, said)))
        self.head.setToolTip(tip(_explained(result)))
        self._pair = pair
        if pair is None:
            self.rows.clear()
            self.words.setText(tr(NO_LAYER))
            return
        limits = result.display.limits
        limit = max(map(abs, limits)) if limits is not None else pair.reach or 1.0
        follow = self.session.hover is None
        rows = rows_of(pair, told, result.alone)
        self.rows.show_rows(pair, rows, result.display, limit, follow)
        words = saying.sentence(pair, told, result.alone)
        self.words.setText(words or tr(ASKING, unit=unit))
        self.words.setToolTip(words)
        self.rows.setAccessibleDescription(" ".join((words, saying.status(pair, told))).strip())

    def as_table(self) -> list[list[str]] | None:
        """Both rows and their difference, key by key."""
        pair = self._pair
        return tables.of_row(pair) if pair is not None and pair.row is not None else None

    def as_text(self) -> str:
        """The row in a sentence."""
        return self.words.text()

    # --- inside -----------------------------------------------------------------------------------

    def _token(self, cell: int) -> int | None:
        return self._pair.meeting.columns.token(cell) if self._pair is not None else None

    def _point(self, cell: int | None) -> None:
        if self.session is None:
            return
        chosen = self.session.selection
        token = None if cell is None else self._token(cell)
        here = token is not None and chosen.query is not None
        self.session.put(hover=replace(chosen, key=token) if here else None)

    def _query(self, cell: int) -> None:
        token = self._token(cell)
        if self.session is None or self.session.capture is None or token is None:
            return
        chosen, capture = self.session.selection, self.session.capture
        if capture.query_prompt(chosen.layer) is not capture.key_prompt(chosen.layer):
            self._key(cell)
        else:
            self.session.put(hover=None, selection=replace(chosen, query=token))

    def _key(self, cell: int) -> None:
        token = self._token(cell)
        if self.session is not None and token is not None:
            self.session.put(selection=replace(self.session.selection, key=token))


def rows_of(pair: RowPair, told: Told, alone: bool = False) -> tuple[Row, Row, Row]:
    """The rows of A, of B and of A − B; alone: B has no such head."""
    edge, signed = pair.meeting.columns, pair.signed
    names = [one if one not in ("A", "B") else "" for one in (told.a, told.b)]
    one, other = (
        _row(f"{letter} {name}".rstrip(), half, pair, side, signed)
        for side, (letter, name, half) in enumerate(zip("AB", names, (pair.a, pair.b), strict=True))
    )
    third = Row("A − B", pair.names[0], edge.both, signed=True)
    if alone:
        lacks = replace(other, told=tr("there is no such head"))
        return one, lacks, replace(third, told=tr("nothing to subtract"))
    if not edge.both.any():
        return one, other, replace(third, told=tr(APART))
    if pair.row is not None and pair.difference is None:
        return one, other, replace(third, told=tr("only one side has this row"))
    return one, other, replace(third, weights=pair.difference, seen=pair.both)


def _row(name: str, half: Half | None, pair: RowPair, side: int, signed: bool) -> Row:
    edge, names = pair.meeting.columns, pair.names[side]
    there = (edge.a, edge.b)[side].there
    if half is None:
        return Row(name, names, there, signed=signed)
    return Row(name, names, there, half.weights, half.seen, signed)


def differing(alignment: Alignment, meeting: Meeting | None = None) -> str:
    """How much of the text both have, "" where both have the same tokens. meeting: of the levels
    at hand, where there may be less of it than among the tokens."""
    if alignment.same_tokens:
        return ""
    a, b = alignment.a.main, alignment.b.main
    pieces = meeting.columns.both.sum() if meeting is not None else alignment.tokens().count
    shared = int(pieces)
    sizes = [counted(len(one), one.unit) for one in (a, b)]
    if not shared:
        return tr("A has {a}, B {b}, and none in common", a=sizes[0], b=sizes[1])
    if (len(a), a.unit) == (len(b), b.unit) == (shared, a.unit):
        return ""  # cut by other tokenizers, into the same pieces
    if shared == 1:
        said = "1 piece is in both, of {a} in A and {b} in B; hatched: only in the other"
        return tr(said, a=sizes[0], b=sizes[1])
    said = "{n:,} pieces are in both, of {a} in A and {b} in B; hatched: only in the other"
    return tr(said, n=shared, a=sizes[0], b=sizes[1])


def _explained(result: Read) -> str:
    """What bits per byte are, where they are told."""
    writes = any(one.spec.goal == "next" for one in (result.a, result.b))
    if not writes or not result.of_text:
        return ""
    return explanation(tr(BITS), "−Σ_t log₂ P(x_t | x_<t) / bytes", GUIDE)
