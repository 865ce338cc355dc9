"""One row of A and the same of B on the cells that both share, and what is written in them."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.meeting import Edge, Meeting
from hgviz.core import Capture, Floats, HeadId, Prompt
from hgviz.gui import sentences
from hgviz.gui.views import signs
from hgviz.gui.views.cells import SPECIAL, Glyph
from hgviz.gui.views.sight import rule_of, seen
from hgviz.maps import Axis

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Half:
    """The row of one side: weights (cells,), 0 where the head is off, and which cells it could look
    at; seen is False where the side has nothing, which there (cells,) tells apart from what it may
    not see."""

    weights: Floats
    seen: Bools
    there: Bools
    signed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class RowPair:
    """A row of the grid of two heads. row, query, key: cells, None where there are none; a, b:
    None where no query is chosen, or where that side has no such row."""

    meeting: Meeting
    names: tuple[Names, Names]
    row: int | None = None
    query: int | None = None
    key: int | None = None
    a: Half | None = None
    b: Half | None = None

    @property
    def difference(self) -> Floats | None:
        """A − B where both have a row, in float32 as the map of it has."""
        if self.a is None or self.b is None:
            return None
        found: Floats = self.a.weights - self.b.weights
        return found

    @property
    def signed(self) -> bool:
        """Whether any side may weigh below 0."""
        return any(one is not None and one.signed for one in (self.a, self.b))

    @property
    def both(self) -> Bools:
        """(cells,): what both sides have and could look at."""
        found: Bools = self.meeting.columns.both
        for one in (self.a, self.b):
            if one is not None:
                found = found & one.seen
        return found

    @property
    def reach(self) -> float:
        """The largest size of a weight, on either side."""
        found = [np.abs(one.weights).max(initial=0) for one in (self.a, self.b) if one is not None]
        return float(max(found, default=0.0))


def named(meeting: Meeting) -> tuple[Names, Names]:
    """What is written in the cells along the columns, for A and for B."""
    prompts = (
        meeting.a.key_prompt(meeting.head.layer),
        meeting.b.key_prompt(meeting.other.layer),
    )
    first, second = (Names.of(meeting.columns, side, one) for side, one in enumerate(prompts))
    return first, second


def read(
    meeting: Meeting, query: int | None, key: int | None, names: tuple[Names, Names] | None = None
) -> RowPair:
    """The row of a token of A in both maps; reads the rows that stand in it. names: those of the
    meeting, where they are known."""
    names = names or named(meeting)
    row, column = meeting.cell(query, key)
    one = meeting.a.spec.layers[meeting.head.layer]
    levels = meeting.a.spec.levels
    alike = levels[one.level].sequence == levels[one.key_level].sequence
    mine = meeting.cell(None, query)[1] if alike else None
    blank = RowPair(meeting, names, row, mine, column)
    if row is None:
        return blank
    sides = (
        (meeting.a, meeting.head, meeting.rows.a, meeting.columns.a),
        (meeting.b, meeting.other, meeting.rows.b, meeting.columns.b),
    )
    halves = [_half(capture, head, rows, columns, row) for capture, head, rows, columns in sides]
    return RowPair(meeting, names, row, mine, column, *halves)


def _half(capture: Capture, head: HeadId, rows: Axis, columns: Axis, row: int) -> Half | None:
    if not rows.there[row]:
        return None
    whole = capture.maps[head.layer]
    assert whole is not None  # Meeting takes no other
    positions = rows.positions[rows.offsets[row] : rows.offsets[row + 1]]
    ends = np.array([[int(positions[0]), int(positions[-1]) + 1]])
    block = whole.read(head.head, (int(ends[0, 0]), int(ends[0, 1])))[positions - positions[0]]
    weights = laid(0 * block if head in capture.off else block, columns)
    every = np.arange(whole.shape[2])
    inside = seen(rule_of(capture, head), ends, np.stack([every, every + 1], 1))[0]
    there, some = columns.there, np.zeros(len(columns), bool)
    if there.any():
        some[there] = np.logical_or.reduceat(inside[columns.positions], columns.offsets[:-1][there])
    return Half(weights, some & there, there, signs.signed(capture, head))


def laid(block: Floats, columns: Axis) -> Floats:
    """float32 (cells,): some rows (rows, keys) of a map laid on the cells of a grid, columns added
    or shared out, rows averaged, exactly as hgviz.maps.Projected does for a whole map."""
    found = np.zeros((len(block), len(columns)), np.float32)
    some = columns.there
    if some.any():
        shared = block[:, columns.positions] * columns.shares
        found[:, some] = np.add.reduceat(shared, columns.offsets[:-1][some], axis=1)
    total = np.add.reduceat(found, [0], axis=0)[0] if len(found) > 1 else found[0]
    weights: Floats = total / np.float32(len(found))
    return weights


@dataclass(frozen=True, eq=False)
class Names:
    """What is written in the cells along a grid for one side: spans (cells, 2) of its tokens."""

    prompt: Prompt
    spans: NDArray[np.int64]
    there: Bools

    @classmethod
    def of(cls, edge: Edge, side: int, prompt: Prompt) -> Names:
        """Of A (0) or of B (1)."""
        spans = edge.spans[side]
        there = (edge.a, edge.b)[side].there & (spans[:, 1] > np.maximum(spans[:, 0], 0))
        return cls(prompt, spans, there)

    @cached_property
    def widths(self) -> Floats:
        """(cells,): letters of room for each, as in hgviz.gui.views.cells; 0 for none."""
        found = np.zeros(len(self.spans), np.float32)
        some = np.flatnonzero(self.there)
        first, last = self.spans[some, 0], self.spans[some, 1] - 1
        starts, ends = self.prompt.spans[first, 0], self.prompt.spans[last, 1]
        plain = (starts >= 0) & (ends >= 0)
        sizes = np.where(plain, np.maximum(ends - starts, 1), 1).astype(np.float32)
        if self.prompt.unit != "letter":
            sizes += 1
        for at in np.flatnonzero(~plain):
            sizes[at] = min(SPECIAL, len(self._special(int(first[at]), int(last[at]) + 1))) + 1
        found[some] = sizes
        return found

    @cached_property
    def words(self) -> NDArray[np.int64]:
        """The tokens of every word, as hgviz.gui.sentences has them."""
        return sentences.word_spans(self.prompt)

    def prepare(self) -> None:
        """Find now what takes its time with long texts."""
        _ = self.widths, self.words

    def glyphs(self, first: int, last: int) -> list[Glyph]:
        """What is written over cells first..last-1, what is no character of the text as special."""
        out, at = [], first
        while at > 0 and self._joined(at - 1):
            at -= 1
        while at < last:
            end = at + 1
            while end < len(self.spans) and self._joined(end - 1):
                end += 1
            if self.there[at]:
                out.append(self._glyph(at, end))
            at = end
        return out

    def text(self, cell: int) -> str:
        """What stands for a cell."""
        start, stop = (int(one) for one in self.spans[cell])
        return sentences.glyph(self.prompt, start, stop) if self.there[cell] else "∅"

    def _glyph(self, at: int, end: int) -> Glyph:
        start, stop = int(self.spans[at, 0]), int(self.spans[end - 1, 1])
        if self.prompt.spans[start, 0] < 0:
            return Glyph(self._special(start, stop), at, end, special=True)
        label = self.prompt.label(start) if stop - start == 1 else self.prompt.words(start, stop)
        turned = any(unicodedata.bidirectional(one) in ("R", "AL") for one in label)
        return Glyph(sentences.shown(label), at, end, space=label == " ", leftwards=turned)

    def _special(self, start: int, stop: int) -> str:
        name = self.prompt.pieces[start] if stop - start == 1 else sentences.glyph(
            self.prompt, start, stop
        )  # fmt: skip
        name = name.removeprefix("slot ").removeprefix("state ")
        return sentences.shown(name, SPECIAL)

    def _joined(self, at: int) -> bool:
        """Whether a cell and the next are parts of one character, as the bytes of an emoji."""
        if not (0 <= at < len(self.spans) - 1 and self.there[at] and self.there[at + 1]):
            return False
        (a, b), (c, d) = self.spans[at].tolist(), self.spans[at + 1].tolist()
        one, other = self.prompt.spans[a], self.prompt.spans[c]
        return bool(b - a == d - c == 1 and one[0] >= 0 and (one == other).all())
