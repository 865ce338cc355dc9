"""What is written along the axes of a map: tokens, words, lines or numbers, as room allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hgviz.core import Integers, Prompt
from hgviz.gui import sentences
from hgviz.gui.language import tr
from hgviz.gui.views.viewport import Along

TOKEN, WORD = 12, 11  # logical px: a cell that can hold a token, a word that can be written
APART, NUMBERS = 13, 44  # logical px between the middles of two labels, of two numbers
ENOUGH = 0.15  # the part of all words that must have room


@dataclass(frozen=True, slots=True)
class Label:
    """Something written at a place along an axis, in logical px; chosen: it is selected."""

    text: str
    middle: float
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class Marks:
    """What an axis shows: labels in their order, and ticks where something begins."""

    labels: tuple[Label, ...] = ()
    ticks: tuple[float, ...] = ()


class Names:
    """How the cells along one side of a map are called.

    spans (cells, 2): the tokens of every cell, (-1, -1) for padding; word_spans (words, 2): the
    tokens of every word of the text. null: the first cell is a null group.
    """

    def __init__(
        self, prompt: Prompt, word_spans: Integers, spans: Integers, null: bool = False
    ) -> None:
        self.prompt, self.spans, self.word_spans, self.null = prompt, spans, word_spans, null
        real = np.flatnonzero(spans[:, 1] > 0)
        self._first, self._last = (int(real[0]), int(real[-1]) + 1) if len(real) else (0, 0)
        self.words = self._cells(word_spans)
        self.lines = self._cells(_lines(prompt))

    def __len__(self) -> int:
        return len(self.spans)

    def glyph(self, cell: int) -> str:
        """What a cell stands for, as one sees it."""
        if self.null and cell == 0:
            return "∅"
        start, end = (int(one) for one in self.spans[cell])
        return "" if end <= max(start, 0) else sentences.glyph(self.prompt, start, end)

    def place(self, cell: int) -> str:
        """Where a cell is in the text, in words."""
        if self.null and cell == 0:
            return tr("{name}: no part of the text", name=tr(sentences.NULL))
        start, end = (int(one) for one in self.spans[cell])
        if end <= max(start, 0):
            return tr("place {number:,}: no part of the text", number=cell)
        return sentences.place(self.prompt, self.word_spans, start, end)

    def word(self, cell: int) -> tuple[str, tuple[int, int]]:
        """The word a cell is in, and its cells; between words the cell alone."""
        token = int(self.spans[cell, 1]) - 1
        found = sentences.word_at(self.word_spans, token) if token >= 0 else None
        if found is None:
            return self.glyph(cell), (cell, cell + 1)
        (first, last) = (int(one) for one in self._cells(np.array([found]))[0])
        return sentences.glyph(self.prompt, *found), (first, max(last, first + 1))

    def marks(self, along: Along, ratio: float, chosen: int | None = None) -> Marks:
        """The labels of the part on screen."""
        pixel = along.scale / ratio
        if pixel >= TOKEN:
            return self._tokens(along, ratio, chosen)
        for runs, numbered in ((self.words, False), (self.lines, True)):
            room = (runs[:, 1] - runs[:, 0]) * pixel >= WORD
            if len(runs) and room.mean() >= ENOUGH and (not numbered or len(runs) > 1):
                return self._runs(along, ratio, chosen, runs, room, numbered)
        return self._numbers(along, ratio, chosen)

    def _tokens(self, along: Along, ratio: float, chosen: int | None) -> Marks:
        first, last = along.shown()
        return Marks(
            tuple(
                Label(self.glyph(cell), _middle(along, ratio, cell, cell + 1), cell == chosen)
                for cell in range(first, last)
            )
        )

    def _runs(
        self,
        along: Along,
        ratio: float,
        chosen: int | None,
        runs: Integers,
        room: np.ndarray,
        numbered: bool,
    ) -> Marks:
        first, last = along.shown()
        on = np.flatnonzero((runs[:, 1] > first) & (runs[:, 0] < last))
        labels = []
        for at in on[room[on]]:
            start, end = (int(one) for one in runs[at])
            text = tr("line {number:,}", number=at + 1) if numbered else self._written(int(at))
            labels.append(Label(text, _middle(along, ratio, start, end)))
        ticks = tuple(along.edges(int(start))[0] / ratio for start in runs[on, 0] if start >= first)
        return Marks(self._with_chosen(labels, along, ratio, chosen), ticks)

    def _numbers(self, along: Along, ratio: float, chosen: int | None) -> Marks:
        first, last = along.shown()
        step = _round_up(NUMBERS * ratio / along.scale)
        cells = range(-(-first // step) * step, last, step)
        labels = [
            Label(
                f"{max(0, int(self.spans[cell, 1]) - 1):,}", _middle(along, ratio, cell, cell + 1)
            )
            for cell in cells
            if cell == 0 or self.spans[cell, 1] > max(self.spans[cell, 0], 0)
        ]
        ticks = tuple(label.middle for label in labels)
        return Marks(self._with_chosen(labels, along, ratio, chosen), ticks)

    def _with_chosen(
        self, labels: list[Label], along: Along, ratio: float, chosen: int | None
    ) -> tuple[Label, ...]:
        """The labels that leave room for the chosen word, and that word among them."""
        kept: list[Label] = []
        if chosen is not None and 0 <= chosen < len(self):
            text, (start, end) = self.word(chosen)
            first, last = along.shown()
            if first <= chosen < last:
                kept.append(Label(text, _middle(along, ratio, start, end), True))
        for one in labels:
            if all(abs(one.middle - other.middle) >= APART for other in kept[:1] + kept[-1:]):
                kept.append(one)
        return tuple(sorted(kept, key=lambda label: label.middle))

    def _written(self, at: int) -> str:
        return sentences.glyph(self.prompt, *(int(one) for one in self.word_spans[at]))

    def _cells(self, tokens: Integers) -> Integers:
        """(n, 2): the cells that ranges of tokens lie in."""
        spans = self.spans[self._first : self._last]
        if not len(spans) or not len(tokens):
            return np.zeros((0, 2), np.int64)
        start = np.searchsorted(spans[:, 1], tokens[:, 0], side="right")
        end = np.searchsorted(spans[:, 0], tokens[:, 1], side="left")
        return np.stack([start, np.maximum(end, start)], axis=1) + self._first


class Written:
    """What axes show, kept: maps side by side show the same."""

    def __init__(self) -> None:
        self._marks: dict[tuple[object, ...], Marks] = {}

    def marks(self, names: Names | Places, along: Along, ratio: float, chosen: int | None) -> Marks:
        """The labels of the part on screen."""
        key = names, along, ratio, chosen
        if len(self._marks) > 64:
            self._marks.clear()
        if key not in self._marks:
            self._marks[key] = names.marks(along, ratio, chosen)
        return self._marks[key]


class Places:
    """The columns of a band: the places within a window."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def glyph(self, cell: int) -> str:
        """Its number, from 1."""
        return f"{cell + 1}"

    def marks(self, along: Along, ratio: float, chosen: int | None = None) -> Marks:
        """One number each."""
        return Marks(
            tuple(
                Label(self.glyph(cell), _middle(along, ratio, cell, cell + 1), cell == chosen)
                for cell in range(*along.shown())
            )
        )


def _middle(along: Along, ratio: float, start: int, end: int) -> float:
    """Of a run of cells, kept on screen while any of it is."""
    first, last = along.edges(start, end - start)
    return (max(first, 0) + min(last, along.size)) / 2 / ratio


def _lines(prompt: Prompt) -> Integers:
    """(lines, 2): the tokens of every line of the text."""
    spans, text = prompt.spans, prompt.text
    starts = [0, *(at + 1 for at, char in enumerate(text) if char == "\n")]
    if len(starts) < 2 or not len(spans):
        return np.zeros((0, 2), np.int64)
    begins = np.searchsorted(np.maximum.accumulate(spans[:, 0]), starts)
    ends = np.append(begins[1:], len(spans))
    return np.stack([begins, ends], axis=1)


def _round_up(least: float) -> int:
    """The next of 1, 2, 5, 10, 20, 50, ..."""
    power = 1
    while True:
        for digit in (1, 2, 5):
            if digit * power >= least:
                return digit * power
        power *= 10
