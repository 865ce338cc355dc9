"""The geometry of a map: axes, names along them, what is in view, which cells are visible."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Capture, Floats, HeadId, Integers, Interval, Layer, Map, Prompt, Reduce
from hgviz.gui import sentences
from hgviz.gui.language import tr
from hgviz.maps import LazyMap, Rule, has_negative_weights, pool

# --- viewport -------------------------------------------------------------------------------------


Bools = NDArray[np.bool_]

MOST = 96  # logical px: two tokens do not fill the pane
STEP = 1.25  # the least a turn of the wheel changes the scale by

Box = tuple[int, int, int, int]  # top, bottom, left, right in pixels, half-open


@dataclass(frozen=True, slots=True)
class MapAxis:
    """One axis of a map on screen, in device pixels.

    cells: how many there are. room: pixels there are for them. scale: pixels per cell, a whole
    number from 1 up. start: the first pixel shown, counted from the first cell, so that the
    pixels lie on the same grid wherever the window is.
    """

    cells: int
    room: int
    scale: float
    start: int = 0

    @property
    def length(self) -> int:
        """Pixels of the whole axis."""
        return max(1, math.ceil(self.cells * self.scale - 1e-6))

    @property
    def size(self) -> int:
        """Pixels shown."""
        return min(self.room, self.length)

    @property
    def whole(self) -> bool:
        """Whether every cell is on screen."""
        return self.length <= self.room

    @property
    def zoom(self) -> int:
        """The level to read: its cells are one to two per pixel where pixels are too few."""
        return max(0, math.floor(math.log2(1 / self.scale) + 1e-9)) if self.scale < 1 else 0

    def bounds(self) -> NDArray[np.int64]:
        """(size + 1,): pixel p shows the cells from bounds[p] up to bounds[p + 1].

        Where a cell has several pixels these are the same for neighbours, so a pixel shows
        bounds[p] alone. Multiples of 2^zoom, but for the end.
        """
        pixels = np.arange(self.start, self.start + self.size + 1)
        if self.scale >= 1:
            return pixels // int(self.scale)
        step = 1 << self.zoom
        bounds = np.ceil(pixels / (self.scale * step) - 1e-9).astype(np.int64) * step
        return np.minimum(bounds, self.cells)

    def shown(self) -> tuple[int, int]:
        """The cells on screen, half-open."""
        first, last = self.start, self.start + self.size
        if self.scale >= 1:
            return first // int(self.scale), min(self.cells, -(-last // int(self.scale)))
        step = 1 << self.zoom
        first, last = (math.ceil(one / (self.scale * step) - 1e-9) * step for one in (first, last))
        first = min(first, (self.cells - 1) // step * step)  # a last pixel may have none of its own
        return first, max(first + 1, min(self.cells, last))

    def cell(self, pixel: float) -> int | None:
        """The cell under a pixel of the window; None outside the map."""
        if not 0 <= pixel < self.size:
            return None
        return min(self.cells - 1, math.floor((self.start + pixel) / self.scale + 1e-9))

    def edges(self, cell: float, count: float = 1) -> tuple[int, int]:
        """The pixels of some cells in the window, half-open, at least one; may lie outside it."""
        first = math.floor(cell * self.scale + 1e-9) - self.start
        return first, max(first + 1, math.floor((cell + count) * self.scale + 1e-9) - self.start)

    def at(self, scale: float, pixel: float) -> MapAxis:
        """Another scale; the place under a pixel stays where it is."""
        place = (self.start + pixel) / self.scale
        return replace(self, scale=scale).moved_to(round(place * scale - pixel))

    def moved_to(self, start: int) -> MapAxis:
        """Another first pixel, as far as there is something to show."""
        return replace(self, start=max(0, min(start, self.length - self.room)))

    def part(self, first: int, last: int) -> MapAxis:
        """Pixels first..last-1 of the window alone."""
        return replace(self, start=self.start + first, room=last - first)

    def around(self, cell: int, margin: int = 2) -> MapAxis:
        """Moved just as far as it takes to have a cell on screen."""
        first, last = self.edges(cell)
        reach = min(margin * (last - first), max(0, (self.size - (last - first)) // 2))
        if first - reach < 0:
            return self.moved_to(self.start + first - reach)
        if last + reach > self.size:
            return self.moved_to(self.start + last + reach - self.size)
        return self


@dataclass(frozen=True, slots=True)
class Viewport:
    """The part of a map on screen: rows down, columns across. ratio: device px per logical px."""

    down: MapAxis
    across: MapAxis
    ratio: float = 1.0

    @classmethod
    def fitted(
        cls, shape: tuple[int, int], room: tuple[int, int], ratio: float = 1.0, wide: int = 1
    ) -> Viewport:
        """The whole map (rows, columns) in a room (height, width) of device pixels.

        wide: how many times wider than high a cell may be, for maps of few columns.
        """
        rows, columns = max(1, shape[0]), max(1, shape[1])
        height, width = max(1, room[0]), max(1, room[1])
        scale = min(_whole(min(height / rows, width / columns)), float(round(MOST * ratio)))
        broad = scale
        if wide > 1 and scale >= 1:
            most = min(wide * scale, width // columns, round(MOST * ratio))
            broad = float(max(scale, math.floor(most)))
        return cls(MapAxis(rows, height, scale), MapAxis(columns, width, broad), ratio)

    @property
    def zoom(self) -> int:
        """The level to read."""
        return self.down.zoom

    @property
    def whole(self) -> bool:
        """Whether the whole map is on screen."""
        return self.down.whole and self.across.whole

    @property
    def size(self) -> tuple[int, int]:
        """(height, width) of the picture in device pixels."""
        return self.down.size, self.across.size

    def zoomed(self, turns: float, y: float, x: float) -> Viewport:
        """Some turns of the wheel in (> 0) or out, about a pixel."""
        least = Viewport.fitted((self.down.cells, self.across.cells), self._room, self.ratio)
        wide = max(1, round(self.across.scale / self.down.scale))
        scale = self.down.scale
        for _ in range(max(1, round(abs(turns)))):
            scale = _larger(scale) if turns > 0 else _smaller(scale)
        scale = max(least.down.scale, min(scale, float(round(MOST * self.ratio))))
        return replace(self, down=self.down.at(scale, y), across=self.across.at(scale * wide, x))

    def panned(self, dy: int, dx: int) -> Viewport:
        """The picture moved along by so many pixels."""
        return replace(
            self,
            down=self.down.moved_to(self.down.start - dy),
            across=self.across.moved_to(self.across.start - dx),
        )

    def resized(self, room: tuple[int, int], ratio: float, wide: int = 1) -> Viewport:
        """The same part in another room; a whole map is fitted again."""
        if self.whole or ratio != self.ratio:
            return Viewport.fitted((self.down.cells, self.across.cells), room, ratio, wide)
        down = replace(self.down, room=max(1, room[0]))
        across = replace(self.across, room=max(1, room[1]))
        least = Viewport.fitted((self.down.cells, self.across.cells), room, ratio, wide)
        if least.down.scale >= down.scale:
            return least
        return replace(self, down=down.moved_to(down.start), across=across.moved_to(across.start))

    def of(self, shape: tuple[int, int], wide: int = 1, grown: bool = False) -> Viewport:
        """This view of a map of the same shape; the whole of another, or the same part of it.

        grown: the map goes on where this one ended, or is the same head's in another text.
        """
        if shape == (self.down.cells, self.across.cells):
            return self
        if grown and not self.whole:
            down, across = replace(self.down, cells=shape[0]), replace(self.across, cells=shape[1])
            down, across = down.moved_to(down.start), across.moved_to(across.start)
            if not (down.whole and across.whole):
                return replace(self, down=down, across=across)
        return Viewport.fitted(shape, self._room, self.ratio, wide)

    def part(self, box: Box) -> Viewport:
        """The pixels (top, bottom, left, right) of the picture alone, half-open."""
        top, bottom, left, right = box
        return replace(self, down=self.down.part(top, bottom), across=self.across.part(left, right))

    def box(self, rows: tuple[int, int], columns: tuple[int, int]) -> Box:
        """The pixels that show anything of ranges of cells, (top, bottom, left, right)."""
        ends = []
        for along, (first, last) in ((self.down, rows), (self.across, columns)):
            start, end = along.edges(first, last - first)
            # cells share their outermost pixels with those beside them
            ends += [max(0, min(start - 1, along.size)), max(0, min(end + 1, along.size))]
        return ends[0], ends[1], ends[2], ends[3]

    @property
    def _room(self) -> tuple[int, int]:
        return self.down.room, self.across.room


def _whole(scale: float) -> float:
    return float(math.floor(scale)) if scale >= 1 else scale


def _larger(scale: float) -> float:
    if scale >= 1:
        return float(max(int(scale) + 1, math.ceil(scale * STEP)))
    return min(1.0, scale * math.sqrt(2))


def _smaller(scale: float) -> float:
    if scale > 1:
        return float(max(1, min(int(scale) - 1, math.floor(scale / STEP))))
    return scale / math.sqrt(2)


# --- grid -----------------------------------------------------------------------------------------


TOKEN, WORD = 12, 11  # logical px: a cell that can hold a token, a word that can be written
APART, NUMBERS = 13, 44  # logical px between the middles of two labels, of two numbers
ENOUGH = 0.15  # the part of all words that must have room


@dataclass(frozen=True, slots=True)
class AxisLabel:
    """Something written at a place along an axis, in logical px; chosen: it is selected."""

    text: str
    middle: float
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class Marks:
    """What an axis shows: labels in their order, and ticks where something begins."""

    labels: tuple[AxisLabel, ...] = ()
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

    def marks(self, along: MapAxis, ratio: float, chosen: int | None = None) -> Marks:
        """The labels of the part on screen."""
        pixel = along.scale / ratio
        if pixel >= TOKEN:
            return self._tokens(along, ratio, chosen)
        for runs, numbered in ((self.words, False), (self.lines, True)):
            room = (runs[:, 1] - runs[:, 0]) * pixel >= WORD
            if len(runs) and room.mean() >= ENOUGH and (not numbered or len(runs) > 1):
                return self._runs(along, ratio, chosen, runs, room, numbered)
        return self._numbers(along, ratio, chosen)

    def _tokens(self, along: MapAxis, ratio: float, chosen: int | None) -> Marks:
        first, last = along.shown()
        return Marks(
            tuple(
                AxisLabel(self.glyph(cell), _middle(along, ratio, cell, cell + 1), cell == chosen)
                for cell in range(first, last)
            )
        )

    def _runs(
        self,
        along: MapAxis,
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
            labels.append(AxisLabel(text, _middle(along, ratio, start, end)))
        ticks = tuple(along.edges(int(start))[0] / ratio for start in runs[on, 0] if start >= first)
        return Marks(self._with_chosen(labels, along, ratio, chosen), ticks)

    def _numbers(self, along: MapAxis, ratio: float, chosen: int | None) -> Marks:
        first, last = along.shown()
        step = _round_up(NUMBERS * ratio / along.scale)
        cells = range(-(-first // step) * step, last, step)
        labels = [
            AxisLabel(
                f"{max(0, int(self.spans[cell, 1]) - 1):,}", _middle(along, ratio, cell, cell + 1)
            )
            for cell in cells
            if cell == 0 or self.spans[cell, 1] > max(self.spans[cell, 0], 0)
        ]
        ticks = tuple(label.middle for label in labels)
        return Marks(self._with_chosen(labels, along, ratio, chosen), ticks)

    def _with_chosen(
        self, labels: list[AxisLabel], along: MapAxis, ratio: float, chosen: int | None
    ) -> tuple[AxisLabel, ...]:
        """The labels that leave room for the chosen word, and that word among them."""
        kept: list[AxisLabel] = []
        if chosen is not None and 0 <= chosen < len(self):
            text, (start, end) = self.word(chosen)
            first, last = along.shown()
            if first <= chosen < last:
                kept.append(AxisLabel(text, _middle(along, ratio, start, end), True))
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


class AxisTextCache:
    """What axes show, kept: maps side by side show the same."""

    def __init__(self) -> None:
        self._marks: dict[tuple[object, ...], Marks] = {}

    def marks(
        self, names: Names | Places, along: MapAxis, ratio: float, chosen: int | None
    ) -> Marks:
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

    def marks(self, along: MapAxis, ratio: float, chosen: int | None = None) -> Marks:
        """One number each."""
        return Marks(
            tuple(
                AxisLabel(self.glyph(cell), _middle(along, ratio, cell, cell + 1), cell == chosen)
                for cell in range(*along.shown())
            )
        )


def _middle(along: MapAxis, ratio: float, start: int, end: int) -> float:
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


# --- band -----------------------------------------------------------------------------------------


ROWS = 64  # windows read at once: what lies off the diagonal is read for nothing


class Band:
    """The weights (windows, places) of a map whose other weights are all zero.

    down: row g of the map has its weights in columns g*window up to (g + 1)*window. Else (going
    up) rows g*window up to (g + 1)*window have theirs in column g.
    """

    def __init__(self, whole: Map, window: int, down: bool) -> None:
        self.whole, self.window, self.down = whole, window, down

    @property
    def shape(self) -> tuple[int, int, int]:
        """(heads, windows, places)"""
        heads, queries, keys = self.whole.shape
        return heads, queries if self.down else keys, self.window

    @property
    def heads(self) -> tuple[int, ...]:
        """The head numbers, in stored order."""
        return self.whole.heads

    @property
    def signed(self) -> bool:
        """Whether weights can be negative."""
        return self.whole.signed

    def cell(self, row: int, column: int) -> tuple[int, int]:
        """The cell of the whole map that a cell of the band shows."""
        place = row * self.window + column
        return (row, place) if self.down else (place, row)

    def read(
        self,
        head: int,
        rows: Interval = None,
        columns: Interval = None,
        zoom: int = 0,
        reduce: Reduce = "max",
    ) -> Floats:
        """float32 (rows, columns) in cells of 2^zoom; rows and columns are pairs from 0."""
        first, last = _pair(rows, self.shape[1])
        start, end = _pair(columns, self.window)
        out = np.zeros((last - first, self.window), np.float32)
        for at in range(first, last, ROWS):
            stop = min(at + ROWS, last)
            out[at - first : stop - first] = self._read(head, at, stop)
        return pool(out[:, start:end], zoom, reduce, self.signed)

    def _read(self, head: int, first: int, last: int) -> Floats:
        wide = (first * self.window, last * self.window)
        narrow = (first, last)
        rows, columns = (narrow, wide) if self.down else (wide, narrow)
        block = self.whole.read(head, rows=rows, columns=columns)
        if not self.down:
            block = block.T
        out = np.zeros((last - first, self.window), np.float32)
        for at, row in enumerate(block):
            part = row[at * self.window : (at + 1) * self.window]
            out[at, : len(part)] = part
        return out


def _pair(interval: Interval, size: int) -> tuple[int, int]:
    if interval is None:
        return 0, size
    if isinstance(interval, tuple):
        return interval
    first, last, _ = slice(interval.start, interval.stop).indices(size)
    return first, last


# --- sight ----------------------------------------------------------------------------------------


class Sight(Protocol):
    """Which cells of a map exist, where no Rule can say it."""

    @property
    def causal(self) -> bool:
        """Whether a query looks at nothing that comes after it."""

    def seen(self, rows: NDArray[Any], columns: NDArray[Any]) -> Bools:
        """As the function of that name."""


def seen(rule: Rule | Sight, rows: NDArray[Any], columns: NDArray[Any]) -> Bools:
    """bool (rows, columns): whether any cell exists in ranges (n, 2) of rows and of columns."""
    if not isinstance(rule, Rule):
        return rule.seen(rows, columns)
    top, bottom = (rows[:, end, None] * rule.stride_q for end in (0, 1))
    left, right = (columns[None, :, end] * rule.stride_k for end in (0, 1))
    found = np.ones((len(rows), len(columns)), bool)
    if rule.causal:
        found &= left < bottom
    if rule.windowed:
        group = max(rule.stride_q, rule.stride_k)
        found &= top // group <= (right - 1) // group
        found &= left // group <= (bottom - 1) // group
    if rule.band is not None:
        found &= (right - 1 >= top - rule.band[0]) & (left <= bottom - 1 + rule.band[1])
    if rule.chunk is not None:
        found &= top // rule.chunk <= (right - 1) // rule.chunk
        found &= left // rule.chunk <= (bottom - 1) // rule.chunk
    real = None if rule.keep is None else np.concatenate([[0], np.cumsum(rule.keep)])
    ends = columns if real is None else np.minimum(columns, len(real) - 1)
    if (
        rule.streaming_window is not None
    ):  # the first column may be of the first keys, the last of the latest
        first, last = (
            rule.in_streaming_window(rows[:, 0], ends[:, side] - side, real) for side in (0, 1)
        )
        found &= first | last
    if real is not None:
        found &= real[ends[:, 1]] > real[ends[:, 0]]
    return found


def below(rule: Rule | Sight, row: int, column: int) -> bool:
    """Whether a cell, and all that lie further down or left, are below a causal map's diagonal."""
    if not (isinstance(rule, Rule) and rule.causal and rule.sees_all) or rule.keep is not None:
        return False
    return column * rule.stride_k < (row + 1) * rule.stride_q


def rule_of(capture: Capture, head: HeadId) -> Rule:
    """Which cells exist in the map of a head."""
    one = capture.spec.layers[head.layer]
    own = capture.maps[head.layer]
    if isinstance(own, LazyMap):
        return own.factors.rule.of(own.place(head.head))
    levels = capture.spec.levels
    strides = levels[one.level].stride, levels[one.key_level].stride
    return Rule(
        scale=1.0,
        activations=one.activations,
        norms=(),
        stride_q=levels[one.level].stride or 1,
        stride_k=levels[one.key_level].stride or 1,
        causal=one.causal and (one.level == one.key_level or all(strides)),
        windowed=one.window is not None,
    )


# --- grid -----------------------------------------------------------------------------------------


WIDE = 6  # how many times wider than high the cells of a band may be


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """One layer of a capture as rows and columns of cells, and what these stand for.

    queries and keys name the rows and columns of the whole map, rows and columns those on screen.
    """

    capture: Capture
    layer: int
    map: Map
    queries: Names
    keys: Names
    rows: Names
    columns: Names | Places

    @classmethod
    def of(cls, capture: Capture, layer: int, whole: bool, texts: CaptureWords) -> Grid:
        """The picture of a layer; windowed resampling is a band unless the whole is asked for."""
        found = capture.maps[layer]
        assert found is not None
        facts = capture.spec.layers[layer]
        queries, keys = (
            texts.names(capture, level, spans)
            for level, spans in (
                (facts.level, capture.query_spans(layer)),
                (facts.key_level, capture.key_spans(layer)),
            )
        )
        if whole or not banded(facts):
            return cls(capture, layer, found, queries, keys, queries, keys)
        assert facts.window is not None
        band = Band(found, facts.window, facts.role == "down")
        rows = queries if band.down else keys
        return cls(capture, layer, band, queries, keys, rows, Places(facts.window))

    def rule_of(self, head: int) -> Rule:
        """Which cells of the picture of a head exist: all of a band, which holds nothing but
        windows."""
        rule = rule_of(self.capture, HeadId(self.layer, head))
        return rule if self.band is None else Rule(rule.scale, rule.activations, rule.norms)

    @property
    def band(self) -> Band | None:
        """The band, where it is one."""
        return self.map if isinstance(self.map, Band) else None

    @property
    def wide(self) -> int:
        """How many times wider than high a cell may be."""
        return WIDE if self.band else 1

    @property
    def sides(self) -> tuple[str, str]:
        """What the columns and the rows are: of two texts, which."""
        spec = self.capture.spec
        one = spec.layers[self.layer]
        if spec.levels[one.level].sequence == spec.levels[one.key_level].sequence:
            return tr("Key"), tr("Query")
        across, down = (sentences.level(spec, number) for number in (one.key_level, one.level))
        return across.capitalize(), down.capitalize()

    def cell(self, query: int | None, key: int | None) -> tuple[int | None, int | None]:
        """The row and column of tokens; None where there is none."""
        row = None if query is None else self.capture.row(self.layer, query)
        column = None if key is None else self.capture.column(self.layer, key)
        if self.band is not None:
            row, column = self._in_band(self.band, row, column)
        rows, columns = self.map.shape[1:]
        return (
            row if row is not None and row < rows else None,
            column if column is not None and column < columns else None,
        )

    def whole(self, row: int, column: int) -> tuple[int, int] | None:
        """The cell of the whole map that one on screen shows; None past the end of a band."""
        if self.band is not None:
            row, column = self.band.cell(row, column)
        inside = row < len(self.queries) and column < len(self.keys)
        return (row, column) if inside else None

    def tokens(self, row: int, column: int) -> tuple[int | None, int | None]:
        """The query and the key of a cell on screen, None for padding."""
        whole = self.whole(row, column)
        if whole is None:
            return None, None
        return (
            self.capture.row_token(self.layer, whole[0]),
            self.capture.column_token(self.layer, whole[1]),
        )

    def _in_band(
        self, band: Band, row: int | None, column: int | None
    ) -> tuple[int | None, int | None]:
        """Going down a query is a row; going up it is a place, and its row follows from it."""
        if row is None:
            return None, None
        if not band.down:
            return row // band.window, row % band.window
        inside = column is not None and column // band.window == row
        return row, column % band.window if inside and column is not None else None


def banded(layer: Layer) -> bool:
    """Whether a layer is drawn as a band."""
    return layer.window is not None and layer.role in ("down", "up")


class CaptureWords:
    """The texts of a capture, their words and the names of their tokens, each found once."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Prompt, Integers]] = {}
        self._names: dict[str, list[Names]] = {}

    def of(self, capture: Capture, level: int) -> tuple[Prompt, Integers]:
        """The text whose tokens a level counts, and its words in tokens."""
        side = capture.spec.levels[level].sequence
        if side not in self._known:
            prompt = capture.prompt_of(level)
            self._known[side] = prompt, sentences.word_spans(prompt)
        return self._known[side]

    def names(self, capture: Capture, level: int, spans: Integers) -> Names:
        """What cells of such spans are called in the text of a level."""
        known = self._names.setdefault(capture.spec.levels[level].sequence, [])
        for one in known:  # most layers have the same
            if np.array_equal(one.spans, spans):
                return one
        known.append(Names(*self.of(capture, level), spans, capture.null(level)))
        return known[-1]


# --- signs ----------------------------------------------------------------------------------------


def signed(capture: Capture, head: HeadId) -> bool:
    """Whether weights of a captured head can be negative."""
    found = capture.maps[head.layer]
    return found is not None and of(found, head.head)


def of(found: Map, head: int) -> bool:
    """The same for a head of a map, by its own activation where the map knows it."""
    return has_negative_weights(found.whole if isinstance(found, Band) else found, head)
