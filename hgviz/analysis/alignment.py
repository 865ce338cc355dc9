"""Which rows and columns of two captures stand for the same part of the text.

Positions meet in the finest pieces that both sides cut the text into: where one has "unhappy" and
the other "un" and "happy", the three make one piece. Tokens are placed by their characters; where
the texts differ, by the characters of the words that both have in the same order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from hgviz.core import Capture, Integers, Layer, Prompt

_WORDS = re.compile(r"\s?\w+|\W")  # with the space before, as most tokens have it
_WIDEST = 64  # positions that may make one piece
_MOST = 20_000  # words between the ends that two texts share: more take minutes to compare


@dataclass(frozen=True, slots=True)
class Shared:
    """The pieces that two sides share: for each position of a side its piece, -1 for none.

    Pieces are numbered in the order of the text, so neither side falls. same: each position of
    one side is a piece of its own, and so it is on the other.
    """

    a: Integers
    b: Integers

    @property
    def count(self) -> int:
        """How many pieces there are."""
        return int(self.a.max(initial=-1)) + 1

    @property
    def same(self) -> bool:
        """Whether positions are pieces, all of them on both sides."""
        return len(self.a) == len(self.b) == self.count


@dataclass(frozen=True, slots=True)
class _Placed:
    """Where the tokens of a text lie: spans (tokens, 2) in the units of the other side too, and
    own (tokens, 2) in its own, (-1, -1) for tokens that are not in both; marks (tokens,) says
    which special token of the other side is the same, -1 for none.
    """

    spans: Integers
    own: Integers
    marks: Integers


class Alignment:
    """Two captures side by side, layer by layer."""

    def __init__(self, a: Capture, b: Capture) -> None:
        self.a, self.b = a, b
        self._texts: dict[tuple[str, str], tuple[_Placed, _Placed]] = {}

    @property
    def same_tokens(self) -> bool:
        """Whether the text that both models speak about has the same tokens."""
        return same_prompt(self.a.main, self.b.main)

    def tokens(self) -> Shared:
        """The tokens of the text that both models speak about."""
        one, other = self.a.main, self.b.main
        spans = (np.stack([np.arange(len(x)), np.arange(len(x)) + 1], 1) for x in (one, other))
        return _shared(self._placed("main", "main", one, other), *spans)

    def rows(self, a: Layer, b: Layer) -> Shared:
        """The rows of a layer's maps in A and of one in B."""
        one, other = self.a.query_spans(a.index), self.b.query_spans(b.index)
        return _shared(self._side(a.level, b.level), one, other)

    def columns(self, a: Layer, b: Layer) -> Shared:
        """The columns of a layer's maps in A and of one in B."""
        one, other = self.a.key_spans(a.index), self.b.key_spans(b.index)
        return _shared(self._side(a.key_level, b.key_level), one, other)

    def _side(self, a: int, b: int) -> tuple[_Placed, _Placed]:
        names = self.a.spec.levels[a].sequence, self.b.spec.levels[b].sequence
        return self._placed(*names, self.a.prompt_of(a), self.b.prompt_of(b))

    def _placed(self, a: str, b: str, one: Prompt, other: Prompt) -> tuple[_Placed, _Placed]:
        if (a, b) not in self._texts:
            self._texts[a, b] = _place(one, other)
        return self._texts[a, b]


# --- tokens ---------------------------------------------------------------------------------------


def same_prompt(a: Prompt, b: Prompt) -> bool:
    """Whether two texts have the same tokens."""
    return (
        np.array_equal(a.ids, b.ids) and np.array_equal(a.spans, b.spans) and a.pieces == b.pieces
    )


def _place(a: Prompt, b: Prompt) -> tuple[_Placed, _Placed]:
    if same_prompt(a, b):
        numbers = np.arange(len(a), dtype=np.int64)
        spans = np.stack([numbers, numbers + 1], 1)
        alike = _Placed(spans, spans, np.full(len(a), -1, np.int64))
        return alike, alike
    if a.signal is not None or b.signal is not None:
        return _seen(a, b)
    texts = bool(a.text) and bool(b.text)
    sides = [_own(one, texts) for one in (a, b)]
    words = [_WORDS.findall(one.text) if texts else [*one.pieces] for one in (a, b)]
    at = _characters(words[0], words[1], texts)
    one, other = (side.copy() for side in sides)
    # a token is in both where all its characters are, with none of the other text among them
    both = np.zeros(int(one.max(initial=0)), bool)
    both[at[(at >= 0) & (at < len(both))]] = True
    lacking = np.concatenate([[0], np.cumsum(~both)])
    one[lacking[one[:, 1]] != lacking[one[:, 0]]] = -1
    real = other[:, 0] >= 0
    first, last = at[other[real, 0]], at[other[real, 1] - 1]
    there = (first >= 0) & (last >= 0) & (last - first == np.diff(other[real])[:, 0] - 1)
    other[real] = np.where(there[:, None], np.stack([first, last + 1], 1), -1)
    marks = _marks(a, b) if texts else tuple(np.full(len(side), -1, np.int64) for side in (a, b))
    return _Placed(one, sides[0], marks[0]), _Placed(other, sides[1], marks[1])


def cut_alike(a: Prompt, b: Prompt) -> bool:
    """Whether positions of one name stand for the same part: patches of one grid, frames of one
    length, of pictures without patches and texts beside them none."""
    if a.signal is None or b.signal is None:
        return False
    if a.signal.grid or b.signal.grid:
        return a.signal.grid == b.signal.grid
    shorter = min(len(a), len(b))
    sounds = a.signal.seconds > 0 and b.signal.seconds > 0
    return a.pieces[:shorter] == b.pieces[:shorter] and (sounds or len(a) == len(b))


def _seen(a: Prompt, b: Prompt) -> tuple[_Placed, _Placed]:
    """Of pictures and sounds, positions of one name meet."""
    marks = _marks(a, b) if cut_alike(a, b) else [np.full(len(one), -1, np.int64) for one in (a, b)]
    nowhere = [np.full((len(one), 2), -1, np.int64) for one in (a, b)]
    one, other = (_Placed(x, x, mark) for x, mark in zip(nowhere, marks, strict=True))
    return one, other


def _own(prompt: Prompt, texts: bool) -> Integers:
    """Where tokens lie in their own text, or in their row where there is no text."""
    if not texts:
        numbers = np.arange(len(prompt), dtype=np.int64)
        return np.stack([numbers, numbers + 1], 1)
    spans = np.array(prompt.spans, np.int64).reshape(-1, 2)
    spans[spans[:, 0] >= spans[:, 1]] = -1  # special, or a token of no characters
    return spans


def _characters(a: list[str], b: list[str], texts: bool) -> Integers:
    """For each character of B (or piece, where there is no text) that of A, -1 for none."""
    if a == b:
        return np.arange(sum(map(len, b)) if texts else len(b), dtype=np.int64)
    sizes = [np.array([len(one) if texts else 1 for one in side], np.int64) for side in (a, b)]
    starts = [np.concatenate([[0], np.cumsum(one)]) for one in sizes]
    found = np.full(starts[1][-1], -1, np.int64)
    for first, second, count in _blocks(a, b):
        begin, end = starts[1][second], starts[1][second + count]
        found[begin:end] = starts[0][first] + np.arange(end - begin)
    return found


def _blocks(a: list[str], b: list[str]) -> list[tuple[int, int, int]]:
    """Runs of equal words (first in A, first in B, how many), in the order of both."""
    least, head = min(len(a), len(b)), 0
    while head < least and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < least - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    found = [(0, 0, head), (len(a) - tail, len(b) - tail, tail)]
    inner = a[head : len(a) - tail], b[head : len(b) - tail]
    if max(map(len, inner)) <= _MOST:
        matcher = SequenceMatcher(None, *inner, autojunk=False)
        found += [(head + i, head + j, count) for i, j, count in matcher.get_matching_blocks()]
    return found


def _marks(a: Prompt, b: Prompt) -> tuple[Integers, Integers]:
    """Special tokens of one name meet in turn: the first [SEP] and the first, the second ..."""
    names = [_special(one) for one in (a, b)]
    common = {name: number for number, name in enumerate(sorted({*names[0]} & {*names[1]}))}
    found = [np.full(len(one), -1, np.int64) for one in (a, b)]
    for side, marks in zip(names, found, strict=True):
        for name, token in side.items():
            marks[token] = common.get(name, -1)
    return found[0], found[1]


def _special(prompt: Prompt) -> dict[tuple[str, int], int]:
    """The special tokens by name and how many of that name stand before."""
    seen: dict[str, int] = {}
    found = {}
    for token in np.flatnonzero(prompt.spans[:, 0] < 0):
        piece = prompt.pieces[token]
        found[piece, seen.setdefault(piece, 0)] = int(token)
        seen[piece] += 1
    return found


# --- positions ------------------------------------------------------------------------------------


def _shared(placed: tuple[_Placed, _Placed], a: Integers, b: Integers) -> Shared:
    """The pieces of positions that stand for tokens a (positions, 2) and b."""
    if placed[0] is placed[1] and np.array_equal(a, b):
        numbers = np.arange(len(a), dtype=np.int64)  # those of the shift and of padding as well
        return Shared(numbers, numbers)
    sides = [_positions(one, spans) for one, spans in zip(placed, (a, b), strict=True)]
    cuts = _cuts([spans for spans, _ in sides])
    pieces = [
        np.where(marks >= 0, len(cuts) + marks, np.where(spans[:, 0] >= 0, cuts[spans[:, 0]], -1))
        for spans, marks in sides
    ]
    return in_order(*(_narrow(one) for one in pieces))


def _narrow(pieces: Integers) -> Integers:
    """Without pieces of so many positions that they are no piece of the text any more, as where
    one side shortens by pairs and the other by pairs that begin a token later."""
    names, which, count = np.unique(pieces, return_inverse=True, return_counts=True)
    return np.where(count[which] > _WIDEST, -1, names[which])


def _positions(placed: _Placed, tokens: Integers) -> tuple[Integers, Integers]:
    """What positions cover of the common text (positions, 2), and their special token or -1."""
    count = len(placed.marks)
    numbers, there = np.arange(count), placed.spans[:, 0] >= 0
    # the first token there at or after each, and the last at or before
    after = np.minimum.accumulate(np.where(there, numbers, count)[::-1])[::-1]
    before = np.maximum.accumulate(np.where(there, numbers, -1))
    found = np.full((len(tokens), 2), -1, np.int64)
    marks = np.full(len(tokens), -1, np.int64)
    real = (tokens[:, 0] >= 0) & (tokens[:, 1] > tokens[:, 0])
    first, last = after[tokens[real, 0]], before[tokens[real, 1] - 1]
    some = first <= last
    first, last = np.where(some, first, 0), np.where(some, last, 0)
    spans = np.stack([placed.spans[first, 0], placed.spans[last, 1]], 1)
    own = np.stack([placed.own[first, 0], placed.own[last, 1]], 1)
    # tokens in between that the other text has not
    lost = np.concatenate([[0], np.cumsum((placed.own[:, 0] >= 0) & ~there)])
    whole = lost[tokens[real, 1]] == lost[tokens[real, 0]]
    whole &= some & (np.diff(spans) == np.diff(own))[:, 0]
    found[real] = np.where(whole[:, None], spans, -1)
    single = real & (tokens[:, 1] - tokens[:, 0] == 1)
    marks[single] = placed.marks[tokens[single, 0]]
    return found, marks


def _cuts(sides: list[Integers]) -> Integers:
    """For each place of the text the number of its piece: a piece ends where none runs across."""
    end = max(int(one.max(initial=-1)) for one in sides) + 2
    across = np.zeros(end + 1, np.int64)
    for spans in sides:
        start, stop = spans[spans[:, 0] >= 0].T
        np.add.at(across, start + 1, 1)
        np.add.at(across, stop, -1)
    return np.cumsum(np.cumsum(across) == 0)


def in_order(a: Integers, b: Integers) -> Shared:
    """The numbers that both have, counted from 0 as they stand in A; none may fall in either."""
    while True:
        both = np.intersect1d(a[a >= 0], b[b >= 0])
        kept = np.isin(a, both)
        names, first = np.unique(a[kept], return_index=True)
        rank = np.argsort(np.argsort(first))
        found = []
        for side in (a, b):
            numbers, inside = np.full(len(side), -1, np.int64), np.isin(side, both)
            numbers[inside] = rank[np.searchsorted(names, side[inside])]
            found.append(numbers)
        falls = [
            side[(side >= 0) & (side < np.maximum.accumulate(side))] for side in found if len(side)
        ]
        wrong = np.unique(np.concatenate(falls)) if falls else both[:0]
        if not len(wrong):
            return Shared(found[0], found[1])
        a, b = (np.where(np.isin(side, wrong), -1, side) for side in found)
