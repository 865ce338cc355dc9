"""The rows and columns of a layer's maps, and what they stand for in the text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hgviz.analysis.reading import Bools, Reading
from hgviz.core import Capture, Floats, Integers


class Layout:
    """The rows and columns of a layer's maps and the tokens behind them.

    query (rows, 2) and key (columns, 2) are half-open spans of tokens, (-1, -1) for padding; now
    is the newest token of each row, own the newest column of the row's own tokens; step columns
    make up one row of a layer that shortens, one everywhere else. reader and reading are the texts
    of the rows and of the columns; between: they are not the same. stride: tokens per row, None
    where segments differ in length; segments: the role of a layer between these and tokens, or "",
    parts: columns for each of them. readings holds those that were
    made before, by the sequence they are of.
    """

    def __init__(self, capture: Capture, layer: int, readings: dict[str, Reading]) -> None:
        one = capture.spec.layers[layer]
        self.layer = layer
        self.reader = _reading(capture, one.level, readings)
        self.reading = _reading(capture, one.key_level, readings)
        self.between = self.reader is not self.reading
        self.role, self.causal, self.window = one.role, one.causal, one.window
        self.query, self.key = capture.query_spans(layer), capture.key_spans(layer)
        self.now = np.maximum(self.query[:, 1] - 1, 0)
        wide, fine = (capture.spec.levels[i].stride or 1 for i in (one.level, one.key_level))
        self.step = wide // fine if one.role == "down" else 1
        self.stride = capture.spec.levels[one.level].stride
        uneven = None in (self.stride, capture.spec.levels[one.key_level].stride)
        self.segments = one.role if uneven and one.role in ("down", "up") else ""
        self.parts = capture.spec.levels[one.key_level].parts
        if one.role == "self":
            self.own = np.arange(len(self.query))
        else:
            self.own = np.array([capture.column(layer, int(token)) for token in self.now], np.int64)

    def block(self, rows: slice, columns: slice) -> Block:
        """A part of the map."""
        return Block(self, rows, columns)

    @property
    def real(self) -> Bools:
        """(rows,) True for the rows that stand for a token that is no padding."""
        real: Bools = self.query[:, 0] >= 0
        return real if self.reader.real is None else real & self.reader.real[self.now]


def _reading(capture: Capture, level: int, readings: dict[str, Reading]) -> Reading:
    sequence = capture.spec.levels[level].sequence
    if sequence not in readings:
        readings[sequence] = Reading(capture.prompt_of(level))
    return readings[sequence]


class Block:
    """A rectangle of a layer's maps, asked for the keys that a role means: bool (rows, columns)."""

    def __init__(self, layout: Layout, rows: slice, columns: slice) -> None:
        self.reader, self.reading = layout.reader, layout.reading
        self.sizes = len(layout.query), len(layout.key)
        self.rows = np.arange(rows.start, rows.stop)
        self.query, self.key = layout.query[rows], layout.key[columns]
        self.now, self.own, self.step = layout.now[rows], layout.own[rows], layout.step
        self.causal, self.segments = layout.causal, layout.segments
        self.columns = np.arange(columns.start, columns.stop)
        self.seen = self._seen(layout, self.rows)

    def _seen(self, layout: Layout, rows: Integers) -> Bools:
        """The cells that exist and stand for tokens."""
        real = self.key[:, 0] >= 0
        if self.reading.real is not None:
            real &= self._holds(self.reading.real)
        seen = np.broadcast_to(real, (len(rows), len(real)))
        if layout.causal:
            seen = seen & (self.key[:, 1] <= self.query[:, 1:])
        if layout.window and layout.role == "down":
            seen = seen & (self.columns // layout.window == rows[:, None])
        if layout.window and layout.role == "up":
            seen = seen & (self.columns == rows[:, None] // layout.window)
        if layout.segments == "down":  # each sees its own tokens
            seen = seen & (self.key[:, 0] >= self.query[:, :1])
        if layout.segments == "up":  # and each token the last that is closed
            own = layout.own[rows][:, None] // layout.parts
            seen = seen & (self.columns // layout.parts == own)
        return seen

    @property
    def marked(self) -> Bools:
        """(columns,): keys that stand for a special token."""
        return self._holds(self.reading.marker)

    @property
    def distance(self) -> Floats:
        """float32 (rows, columns): tokens between the newest of the query and of the key."""
        return np.abs(np.subtract(self.query[:, 1:], self.key[:, 1], dtype=np.float32))

    @property
    def earlier(self) -> Bools:
        """Keys that end before the query begins."""
        return self.key[:, 1] <= self.query[:, :1]

    def back(self, first: int, last: int | None = None) -> Bools:
        """The positions `first` to `last` rows before the query's own."""
        far = self.own[:, None] - self.columns
        last = first if last is None else last
        return (far >= first * self.step) & (far < (last + 1) * self.step)

    def alongside(self) -> Bools:
        """Keys as far through their text as the query is through its own."""
        rows, columns = self.sizes
        first, last = self.rows * columns // rows, -(-(self.rows + 1) * columns // rows)
        return (self.columns >= first[:, None]) & (self.columns < last[:, None])

    def across(self) -> Bools:
        """Keys of the other text of a pair."""
        segment = self.reading.segment
        if segment.min(initial=0) == segment.max(initial=0):
            return np.zeros(self.seen.shape, bool)
        return np.not_equal(segment[np.maximum(self.key[:, 1] - 1, 0)], segment[self.now][:, None])

    def newest(self) -> Bools:
        """The newest column of the query's own tokens."""
        return np.equal(self.columns, self.own[:, None])

    def oldest(self) -> Bools:
        """The oldest column of the query's own tokens."""
        if self.segments:
            return np.equal(self.key[:, 0], self.query[:, :1])
        return np.equal(self.columns, self.own[:, None] - (self.step - 1))

    def at(self, tokens: Integers) -> Bools:
        """Keys that hold the token tokens[t], t the query's newest; -1 is held by none."""
        target = tokens[self.now][:, None]
        return (self.key[:, 0] <= target) & (target < self.key[:, 1])

    def within(self, first: Integers, end: Integers) -> Bools:
        """Keys that hold one of the tokens first[t] .. end[t] - 1."""
        a, b = first[self.now][:, None], end[self.now][:, None]
        return (self.key[:, 0] < b) & (self.key[:, 1] > a) & (a >= 0)

    def holding(self, members: Bools) -> Bools:
        """Keys that hold a token of a kind, whatever the query."""
        return np.broadcast_to(self._holds(members), self.seen.shape)

    def _holds(self, members: Bools) -> Bools:
        sums = np.concatenate([[0], np.cumsum(members)])
        return sums[np.maximum(self.key[:, 1], 0)] > sums[np.maximum(self.key[:, 0], 0)]

    def every_second(self, members: Callable[[Reading], Bools]) -> Bools:
        """Keys that hold the first, third, fifth ... of the members in the text."""
        tokens = members(self.reading)
        return self.holding(tokens & (np.cumsum(tokens) % 2 == 1))

    def like(self, kinds: Integers, wanted: Integers) -> Bools:
        """Keys that hold a token whose kind is wanted[t]; kind -1 is like nothing."""
        target = wanted[self.now][:, None]
        found = np.zeros(self.seen.shape, bool)
        width = int((self.key[:, 1] - self.key[:, 0]).max(initial=0))
        for offset in range(width):
            token = self.key[:, 0] + offset
            there = (self.key[:, 0] >= 0) & (token < self.key[:, 1])
            found |= np.where(there, kinds[np.where(there, token, 0)], -1) == target
        return found & (target >= 0)

    def after_same(self, size: int) -> Bools:
        """Earlier keys that follow an earlier occurrence of the last `size` tokens."""
        grams = self.reading.grams[size]
        followed = np.concatenate([[-1], grams[:-1]])
        return self.like(followed, grams) & self.earlier

    def same_word(self) -> Bools:
        """The same word wherever it stood before."""
        spelling = self.reading.spelling
        before = self.key[:, 1] <= self.reading.word_first[self.now][:, None]
        return self.like(spelling, spelling) & before

    def rare_word(self) -> Bools:
        """The rarest word of the query's sentence; in causal maps of what it sees of it."""
        return self.within(*self.reading.rarest(self.causal))

    def previous_word(self) -> Bools:
        """The word before the one that the query stands in."""
        words, edges = self.reading.word, self.reading.starts_word
        firsts = np.append(np.flatnonzero(edges), -1)
        ends = np.append(self.reading.word_end[edges], -1)
        before = np.where(words > 0, words - 1, -1)
        return self.within(firsts[before], ends[before])
