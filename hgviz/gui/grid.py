"""The geometry of a map: axes, names along them, what is in view, which cells exist."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.alignment import unit_spans
from hgviz.core import (
    Capture,
    Floats,
    HeadId,
    Integers,
    Interval,
    Layer,
    Map,
    ModelSpec,
    Prompt,
    Reduce,
)
from hgviz.gui import sentences
from hgviz.gui.language import tr
from hgviz.maps import LazyMap, Rule, has_negative_weights, pool
from hgviz.maps.tiles import round_outwards

Bools = NDArray[np.bool_]

# --- viewport -------------------------------------------------------------------------------------

LARGEST_CELL = 96  # logical px: two tokens do not fill the pane
ZOOM_STEP = 1.25  # the least that a turn of the wheel changes the scale by
OBLONG = 4  # cells of maps that are longer than this times their width need not be square
OBLONG_CELLS = 2**24  # nor read at different resolutions along both axes above this size

Box = tuple[int, int, int, int]  # top, bottom, left, right in pixels, half-open


@dataclass(frozen=True)  # without slots, so that what is asked for often is kept
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

    @cached_property
    def length(self) -> int:
        """Pixels of the whole axis."""
        return max(1, math.ceil(self.cells * self.scale - 1e-6))

    @cached_property
    def size(self) -> int:
        """Pixels shown."""
        return min(self.room, self.length)

    @cached_property
    def whole(self) -> bool:
        """Whether every cell is on screen."""
        return self.length <= self.room

    @cached_property
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

    def ranges(self) -> NDArray[np.int64]:
        """(n, 2): the cells of every pixel, or every cell on screen where these are larger."""
        if self.scale >= 1:
            first, last = self.shown
            return unit_spans(last - first) + first
        bounds, step = self.bounds(), 1 << self.zoom
        first = np.minimum(bounds[:-1], (self.cells - 1) // step * step)  # as in shown
        return np.stack([first, np.maximum(bounds[1:], first + 1)], axis=1)

    @cached_property
    def shown(self) -> tuple[int, int]:
        """The cells on screen, half-open."""
        first, last = self.start, self.start + self.size
        if self.scale >= 1:
            return first // int(self.scale), min(self.cells, -(-last // int(self.scale)))
        step = 1 << self.zoom
        first, last = (math.ceil(end / (self.scale * step) - 1e-9) * step for end in (first, last))
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

    def middle(self, start: int, end: int) -> float:
        """The middle of a run of cells, kept on screen while any of it is."""
        first, last = self.edges(start, end - start)
        return (max(first, 0) + min(last, self.size)) / 2

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
        """Moved just as far as it takes to have a cell and its neighbours on screen."""
        first, last = self.edges(cell)
        reach = min(margin * (last - first), max(0, (self.size - (last - first)) // 2))
        if first - reach < 0:
            return self.moved_to(self.start + first - reach)
        if last + reach > self.size:
            return self.moved_to(self.start + last + reach - self.size)
        return self


@dataclass(frozen=True)
class Viewport:
    """The part of a map on screen: rows down, columns across. ratio: device px per logical px."""

    down: MapAxis
    across: MapAxis
    ratio: float = 1.0

    @classmethod
    def fitted(cls, shape: tuple[int, int], room: tuple[int, int], ratio: float = 1.0) -> Viewport:
        """The whole map (rows, columns) in a room (height, width) of device pixels.

        Cells are squares of whole pixels. Those of a map far from square are rectangles, so that
        a few rows of a thousand columns fill the room.
        """
        cells, rooms = [max(1, size) for size in shape], [max(1, size) for size in room]
        scales = [size / count for size, count in zip(rooms, cells, strict=True)]
        if max(cells) <= OBLONG * min(cells) or cells[0] * cells[1] > OBLONG_CELLS:
            scales = [min(scales)] * 2
        most = round(LARGEST_CELL * ratio)
        scales = [min(scale, most) for scale in scales]
        down, across = (
            MapAxis(count, size, float(math.floor(scale)) if scale >= 1 else scale)
            for count, size, scale in zip(cells, rooms, scales, strict=True)
        )
        return cls(down, across, ratio)

    @cached_property
    def axes(self) -> tuple[MapAxis, MapAxis]:
        """Down and across."""
        return self.down, self.across

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns) of the whole map."""
        return self.down.cells, self.across.cells

    @cached_property
    def zoom(self) -> int:
        """The level to read."""
        return min(self.down.zoom, self.across.zoom)

    @cached_property
    def whole(self) -> bool:
        """Whether the whole map is on screen."""
        return self.down.whole and self.across.whole

    @cached_property
    def size(self) -> tuple[int, int]:
        """(height, width) of the picture in device pixels."""
        return self.down.size, self.across.size

    def zoomed(self, turns: float, y: float, x: float) -> Viewport:
        """Some turns of the wheel in (> 0) or out, about a pixel.

        Where cells are not square the narrower side of them grows first and shrinks last.
        """
        most = float(round(LARGEST_CELL * self.ratio))
        least = self._fitted(self.shape)
        scales = [axis.scale for axis in self.axes]
        for _ in range(max(1, round(abs(turns)))):
            larger = _larger(min(scales))
            scales = [max(scale, larger) if turns > 0 else _smaller(scale) for scale in scales]
            scales = [
                max(axis.scale, min(scale, most))
                for axis, scale in zip(least.axes, scales, strict=True)
            ]
        return replace(self, down=self.down.at(scales[0], y), across=self.across.at(scales[1], x))

    def panned(self, dy: int, dx: int) -> Viewport:
        """The picture moved along by so many pixels."""
        down, across = self.down, self.across
        return replace(
            self, down=down.moved_to(down.start - dy), across=across.moved_to(across.start - dx)
        )

    def resized(self, room: tuple[int, int], ratio: float) -> Viewport:
        """The same part in another room; a whole map is fitted again."""
        fitted = Viewport.fitted(self.shape, room, ratio)
        if self.whole or ratio != self.ratio:
            return fitted
        down, across = (
            replace(axis, room=least.room).at(max(axis.scale, least.scale), 0)
            for axis, least in zip(self.axes, fitted.axes, strict=True)
        )
        return Viewport(down, across, ratio)

    def of(self, shape: tuple[int, int], same_text: bool = False) -> Viewport:
        """This view of a map of the same shape; the whole of another, or the same part of it.

        same_text: the map goes on where this one ended, or is the same head's in another text.
        """
        if shape == self.shape:
            return self
        if same_text and not self.whole:
            down, across = (
                (grown := replace(axis, cells=cells)).moved_to(grown.start)
                for axis, cells in zip(self.axes, shape, strict=True)
            )
            if not (down.whole and across.whole):
                return replace(self, down=down, across=across)
        return self._fitted(shape)

    def part(self, box: Box) -> Viewport:
        """The pixels (top, bottom, left, right) of the picture alone, half-open."""
        top, bottom, left, right = box
        return replace(self, down=self.down.part(top, bottom), across=self.across.part(left, right))

    def box(self, rows: tuple[int, int], columns: tuple[int, int]) -> Box:
        """The pixels that show anything of ranges of cells, (top, bottom, left, right)."""
        ends = []
        for axis, (first, last) in zip(self.axes, (rows, columns), strict=True):
            start, end = axis.edges(first, last - first)
            # cells share their outermost pixels with those beside them
            ends += [max(0, min(start - 1, axis.size)), max(0, min(end + 1, axis.size))]
        return ends[0], ends[1], ends[2], ends[3]

    def _fitted(self, shape: tuple[int, int]) -> Viewport:
        return Viewport.fitted(shape, (self.down.room, self.across.room), self.ratio)


def _larger(scale: float) -> float:
    if scale >= 1:
        return float(max(int(scale) + 1, math.ceil(scale * ZOOM_STEP)))
    return min(1.0, scale * math.sqrt(2))


def _smaller(scale: float) -> float:
    if scale > 1:
        return float(max(1, min(int(scale) - 1, math.floor(scale / ZOOM_STEP))))
    return scale / math.sqrt(2)


# --- names along an axis --------------------------------------------------------------------------

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


Labels = tuple[list[AxisLabel], tuple[float, ...]]  # and ticks


class Names:
    """What the cells along one side of a map are called.

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
        start, end = (int(token) for token in self.spans[cell])
        return "" if end <= max(start, 0) else sentences.glyph(self.prompt, start, end)

    def place(self, cell: int) -> str:
        """Where a cell is in the text, in words."""
        if self.null and cell == 0:
            return tr("{name}: not part of the text", name=tr(sentences.NULL))
        start, end = (int(token) for token in self.spans[cell])
        if end <= max(start, 0):
            return tr("position {number:,}: not part of the text", number=cell)
        return sentences.place(self.prompt, self.word_spans, start, end)

    def word_tokens(self, cell: int) -> tuple[int, int] | None:
        """The tokens of the word a cell is in; None between words, and for padding."""
        token = int(self.spans[cell, 1]) - 1
        return sentences.word_at(self.word_spans, token) if token >= 0 else None

    def word(self, cell: int) -> tuple[str, tuple[int, int]]:
        """The word a cell is in, and its cells; between words the cell alone."""
        word = self.word_tokens(cell)
        if word is None:
            return self.glyph(cell), (cell, cell + 1)
        first, last = (int(end) for end in self._cells(np.array([word]))[0])
        return sentences.glyph(self.prompt, *word), (first, max(last, first + 1))

    def marks(self, axis: MapAxis, ratio: float, chosen: int | None = None) -> Marks:
        """The labels of the part on screen: of every cell, of words, of lines or rows of patches,
        or round numbers; along a sound the seconds."""
        pixel = axis.scale / ratio
        if pixel >= TOKEN:
            return cell_marks(self, axis, ratio, chosen)
        labels, ticks = self._labels(axis, ratio)
        return Marks(self._with_chosen(labels, axis, ratio, chosen), ticks)

    def _labels(self, axis: MapAxis, ratio: float) -> Labels:
        """Labels of words, lines, rows of patches, round numbers or seconds, and their ticks."""
        signal, pixel = self.prompt.signal, axis.scale / ratio
        if signal is not None and signal.seconds > 0:
            labels = self._seconds(axis, ratio, signal.seconds / len(self.prompt))
            return labels, tuple(label.middle for label in labels)
        for runs, is_line in ((self.words, False), (self.lines, True)):
            has_room = (runs[:, 1] - runs[:, 0]) * pixel >= WORD
            if len(runs) and has_room.mean() >= ENOUGH and (not is_line or len(runs) > 1):
                return self._runs(axis, ratio, runs, has_room, is_line)
        labels = self._numbers(axis, ratio)
        return labels, tuple(label.middle for label in labels)

    def _runs(
        self, axis: MapAxis, ratio: float, runs: Integers, has_room: Bools, is_line: bool
    ) -> Labels:
        """Words or lines, with a tick where each begins."""
        first, last = axis.shown
        on = np.flatnonzero((runs[:, 1] > first) & (runs[:, 0] < last))
        labels = []
        for number in on[has_room[on]].tolist():
            start, end = runs[number].tolist()
            if not is_line:
                text = sentences.glyph(self.prompt, *self.word_spans[number].tolist())
            elif self.prompt.signal is not None:
                text = tr("row {number:,}", number=number)
            else:
                text = tr("line {number:,}", number=number + 1)
            labels.append(AxisLabel(text, axis.middle(start, end) / ratio))
        ticks = tuple(axis.edges(start)[0] / ratio for start in runs[on, 0] if start >= first)
        return labels, ticks

    def _numbers(self, axis: MapAxis, ratio: float) -> list[AxisLabel]:
        first, last = axis.shown
        step = int(_round_up(max(1, NUMBERS * ratio / axis.scale)))
        return [
            AxisLabel(
                f"{max(0, int(self.spans[cell, 1]) - 1):,}", axis.middle(cell, cell + 1) / ratio
            )
            for cell in range(-(-first // step) * step, last, step)
            if cell == 0 or self.spans[cell, 1] > max(self.spans[cell, 0], 0)
        ]

    def _seconds(self, axis: MapAxis, ratio: float, frame: float) -> list[AxisLabel]:
        """Round times; frame: the seconds of one token."""
        first, last = axis.shown
        tokens_of_cell = max(1.0, self.spans[-1, 1] / len(self))
        second = axis.scale / ratio / tokens_of_cell / frame  # px
        step = _round_up(NUMBERS / second)
        digits = max(0, -math.floor(math.log10(step)))
        start, stop = (end * tokens_of_cell * frame for end in (first, last))
        times = step * np.arange(math.ceil(start / step - 1e-9), math.ceil(stop / step))
        offset = axis.start / ratio
        return [
            AxisLabel(tr("{number} s", number=f"{time:.{digits}f}"), time * second - offset)
            for time in times
        ]

    def _with_chosen(
        self, labels: list[AxisLabel], axis: MapAxis, ratio: float, chosen: int | None
    ) -> tuple[AxisLabel, ...]:
        """The labels that leave room for the chosen word, and that word among them."""
        kept: list[AxisLabel] = []
        if chosen is not None and 0 <= chosen < len(self):
            text, cells = self.word(chosen)
            first, last = axis.shown
            if first <= chosen < last:
                kept.append(AxisLabel(text, axis.middle(*cells) / ratio, True))
        for label in labels:
            if all(abs(label.middle - other.middle) >= APART for other in kept[:1] + kept[-1:]):
                kept.append(label)
        return tuple(sorted(kept, key=lambda label: label.middle))

    def _cells(self, tokens: Integers) -> Integers:
        """(n, 2): the cells that ranges of tokens lie in."""
        spans = self.spans[self._first : self._last]
        if not len(spans) or not len(tokens):
            return np.zeros((0, 2), np.int64)
        start = np.searchsorted(spans[:, 1], tokens[:, 0], side="right")
        end = np.searchsorted(spans[:, 0], tokens[:, 1], side="left")
        return np.stack([start, np.maximum(end, start)], axis=1) + self._first


class Places:
    """The columns of a band: the places within a window, numbered from 1."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def glyph(self, cell: int) -> str:
        """Its number."""
        return f"{cell + 1}"

    def marks(self, axis: MapAxis, ratio: float, chosen: int | None = None) -> Marks:
        """Every number."""
        return cell_marks(self, axis, ratio, chosen)


def cell_marks(names: Names | Places, axis: MapAxis, ratio: float, chosen: int | None) -> Marks:
    """A label for every cell on screen."""
    labels = (
        AxisLabel(names.glyph(cell), axis.middle(cell, cell + 1) / ratio, cell == chosen)
        for cell in range(*axis.shown)
    )
    return Marks(tuple(labels))


def _lines(prompt: Prompt) -> Integers:
    """(lines, 2): the tokens of every line of the text, or of every row of patches of an image."""
    spans, text = prompt.spans, prompt.text
    if prompt.signal is not None and prompt.signal.grid is not None:
        rows, columns = prompt.signal.grid
        starts = len(prompt) - columns * np.arange(rows, 0, -1)
        return np.stack([starts, starts + columns], axis=1)
    starts = [0, *(at + 1 for at, char in enumerate(text) if char == "\n")]
    if len(starts) < 2 or not len(spans):
        return np.zeros((0, 2), np.int64)
    begins = np.searchsorted(np.maximum.accumulate(spans[:, 0]), starts)
    ends = np.append(begins[1:], len(spans))
    return np.stack([begins, ends], axis=1)


def _round_up(least: float) -> float:
    """The next of ... 0.5, 1, 2, 5, 10, 20, 50, ..."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= least * (1 - 1e-9))


# --- band -----------------------------------------------------------------------------------------

ROWS = 64  # windows read at once: what lies off the diagonal is read for nothing


class Band:
    """The weights (windows, places) of a map whose other weights are all zero.

    down: row g of the map has its weights in columns g*window up to (g + 1)*window. Else (going
    up) rows g*window up to (g + 1)*window have theirs in column g.
    """

    def __init__(self, whole: Map, window: int, down: bool) -> None:
        self.whole, self.window, self.down = whole, window, down
        self.heads, self.signed = whole.heads, whole.signed

    @property
    def shape(self) -> tuple[int, int, int]:
        """(heads, windows, places)"""
        heads, queries, keys = self.whole.shape
        return heads, queries if self.down else keys, self.window

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
        """float32 (rows, columns) in cells of 2^zoom."""
        first, last = round_outwards(rows, self.shape[1], 0)
        start, end = round_outwards(columns, self.window, 0)
        out = np.zeros((last - first, self.window), np.float32)
        for top in range(first, last, ROWS):
            bottom = min(top + ROWS, last)
            narrow, wide = (top, bottom), (top * self.window, bottom * self.window)
            rows, columns = (narrow, wide) if self.down else (wide, narrow)
            block = self.whole.read(head, rows, columns)
            for number, row in enumerate(block if self.down else block.T):
                part = row[number * self.window : (number + 1) * self.window]
                out[top - first + number, : len(part)] = part
        return pool(out[:, start:end], zoom, reduce, self.signed)


# --- which cells exist ----------------------------------------------------------------------------

Cells = Any  # a Rule, or what has its `causal` and says as `seen` which cells exist


def seen(rule: Cells, rows: NDArray[Any], columns: NDArray[Any]) -> Bools:
    """bool (rows, columns): whether any cell exists in ranges (n, 2) of rows and of columns."""
    if not isinstance(rule, Rule):
        return rule.seen(rows, columns)
    top, bottom = (rows[:, end, None] * rule.stride_q for end in (0, 1))
    left, right = (columns[None, :, end] * rule.stride_k for end in (0, 1))
    cells = np.ones((len(rows), len(columns)), bool)
    if rule.causal:
        cells &= left < bottom
    if rule.windowed:
        group = max(rule.stride_q, rule.stride_k)
        cells &= top // group <= (right - 1) // group
        cells &= left // group <= (bottom - 1) // group
    if rule.band is not None:
        cells &= (right - 1 >= top - rule.band[0]) & (left <= bottom - 1 + rule.band[1])
    if rule.chunk is not None:
        cells &= top // rule.chunk <= (right - 1) // rule.chunk
        cells &= left // rule.chunk <= (bottom - 1) // rule.chunk
    real = None if rule.keep is None else np.concatenate([[0], np.cumsum(rule.keep)])
    ends = columns if real is None else np.minimum(columns, len(real) - 1)
    if rule.streaming_window is not None:
        # the first column may be of the first keys, the last of the latest
        first, last = (
            rule.in_streaming_window(rows[:, 0], ends[:, side] - side, real) for side in (0, 1)
        )
        cells &= first | last
    if real is not None:
        cells &= real[ends[:, 1]] > real[ends[:, 0]]
    return cells


def exists(rule: Cells, row: int, column: int) -> bool:
    """Whether one cell exists."""
    return bool(seen(rule, unit_spans(1) + row, unit_spans(1) + column))


def seen_columns(rule: Cells, row: int, columns: int) -> Integers:
    """The columns, of so many, in which a row has cells."""
    return np.flatnonzero(seen(rule, unit_spans(1) + row, unit_spans(columns)))


def below(rule: Cells, row: int, column: int) -> bool:
    """Whether a cell, and all that lie further down or left, are below a causal map's diagonal."""
    if not (isinstance(rule, Rule) and rule.causal and rule.sees_all) or rule.keep is not None:
        return False
    return column * rule.stride_k < (row + 1) * rule.stride_q


def rule_of(capture: Capture, head: HeadId) -> Rule:
    """Which cells exist in the map of a head."""
    layer, levels = capture.spec.layers[head.layer], capture.spec.levels
    attention = capture.maps[head.layer]
    if isinstance(attention, LazyMap):
        return attention.factors.rule.of(attention.place(head.head))
    strides = levels[layer.level].stride, levels[layer.key_level].stride
    return Rule(
        1.0, layer.activations, (), stride_q=strides[0] or 1, stride_k=strides[1] or 1,
        causal=layer.causal and (layer.level == layer.key_level or all(strides)),
        windowed=layer.window is not None,
    )  # fmt: skip


def signed(capture: Capture, head: HeadId) -> bool:
    """Whether weights of a captured head can be negative."""
    attention = capture.maps[head.layer]
    return attention is not None and is_signed(attention, head.head)


def is_signed(attention: Map, head: int) -> bool:
    """The same for a head of a map, by its own activation where the map knows it."""
    return has_negative_weights(attention.whole if isinstance(attention, Band) else attention, head)


# --- grid -----------------------------------------------------------------------------------------


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
        attention, spec = capture.maps[layer], capture.spec.layers[layer]
        queries, keys = texts.of_layer(capture, layer)
        if whole or not banded(spec):
            return cls(capture, layer, attention, queries, keys, queries, keys)
        band = Band(attention, spec.window, spec.role == "down")
        rows = queries if band.down else keys
        return cls(capture, layer, band, queries, keys, rows, Places(spec.window))

    def rule_of(self, head: int) -> Rule:
        """Which cells of the picture of a head exist: all of a band, which holds nothing but
        windows."""
        rule = rule_of(self.capture, HeadId(self.layer, head))
        return rule if self.band is None else Rule(rule.scale, rule.activations, rule.norms)

    @property
    def band(self) -> Band | None:
        """The band, where it is one."""
        return self.map if isinstance(self.map, Band) else None

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
        if (cell := self.whole(row, column)) is None:
            return None, None
        query = self.capture.row_token(self.layer, cell[0])
        return query, self.capture.column_token(self.layer, cell[1])

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


def axis_titles(spec: ModelSpec, layer: int) -> tuple[str, str]:
    """What the columns and the rows of a layer are: of two texts, which."""
    spec_layer, levels = spec.layers[layer], spec.levels
    if levels[spec_layer.level].sequence == levels[spec_layer.key_level].sequence:
        return tr("Key"), tr("Query")
    ends = spec_layer.key_level, spec_layer.level
    across, down = (sentences.level(spec, level) for level in ends)
    return across.capitalize(), down.capitalize()


NAMES_KEPT = 16


class CaptureWords:
    """The names of cells, those made last kept, as most layers have the same."""

    def __init__(self) -> None:
        self._known: list[Names] = []

    def of_layer(self, capture: Capture, layer: int) -> tuple[Names, Names]:
        """What the rows and the columns of the maps of a layer are called."""
        spec = capture.spec.layers[layer]
        rows = self.names(capture, spec.level, capture.query_spans(layer))
        return rows, self.names(capture, spec.key_level, capture.key_spans(layer))

    def names(self, capture: Capture, level: int, spans: Integers, null: bool = True) -> Names:
        """What cells of such spans are called in the text of a level. null: whether the first is
        the null group where the level has one."""
        prompt, null = capture.prompt_of(level), null and capture.null(level)
        of_prompt = [names for names in self._known if names.prompt is prompt]
        for names in of_prompt:
            if names.null == null and np.array_equal(names.spans, spans):
                return names
        words = of_prompt[0].word_spans if of_prompt else sentences.word_spans(prompt)
        self._known = [*self._known[-NAMES_KEPT:], Names(prompt, words, spans, null)]
        return self._known[-1]
