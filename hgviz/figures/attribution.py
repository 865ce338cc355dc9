"""Where an answer comes from: tokens with signed bars, heads as a wall, layers and keys as bars.

Widths and heights are in points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

import numpy as np

from hgviz.core import HeadId, Integers, Prompt
from hgviz.figures.charts import Chart, Place, Row
from hgviz.figures.levels import unit_spans
from hgviz.figures.paper import labels, style
from hgviz.figures.paper.axes import GAP, Axes, Many, round_ticks
from hgviz.figures.paper.frame import footnotes, off_card
from hgviz.figures.paper.page import Page
from hgviz.figures.paper.shades import Shades, level_bar
from hgviz.figures.spec import Spec
from hgviz.language import decimals, short_number
from hgviz.palettes import LIGHT_PAGE, colours, contrasting_colour, matching_palette

TOKENS, LANE, BETWEEN = 9.5, 17.0, 4.0  # of a line of text: its tokens, the bars above; the gap
PAD = 1.5  # beside the characters of a token
NAME_ROOM = 10.0  # for the name of a text
ROW, HEAD_HEIGHT = 10.0, 12.0  # of a layer or key; of a head
NUMBER = 30.0  # beside a bar


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """What every token of a text adds to the answer (tokens,); name: which text, "" where there is
    one. More tokens of the text than values: the answer does not hear of the rest."""

    name: str
    prompt: Prompt
    values: Many

    def cells_by_token(self) -> list[Cell]:
        """A cell for each token; tokens that share a character share one."""
        marks = labels.singles(self.prompt, unit_spans(len(self.values)))
        return [Cell.of(mark.words, self.values[mark.start : mark.end]) for mark in marks]

    def cells_by_word(self) -> list[Cell]:
        """A cell for each word, with the space after it."""
        marks = labels.words_of(self.prompt, unit_spans(len(self.values)))
        starts = [0, *(mark.start for mark in marks[1:])]
        ends = [*starts[1:], len(self.values)]
        return [
            Cell.of(mark.words, self.values[start:end])
            for mark, start, end in zip(marks, starts, ends, strict=True)
        ]

    def draw_name(self, page: Page, y: float) -> float:
        """Draw the name, if there is one; returns where it ends."""
        if not self.name:
            return y
        name = labels.visible(self.name[:1].upper() + self.name[1:], space=" ")
        words = labels.elide(name, page.width, style.SMALL, bold=True)
        page.text(0, y + style.SMALL, words, size=style.SMALL, bold=True)
        return y + NAME_ROOM

    def draw_sums(self, page: Page, top: float) -> float:
        """Draw the sums of runs of tokens as bars, of a text too long for its words; returns where
        they end."""
        count = len(self.values)
        size = -(-count // max(1, int((page.width - 40) / 2.4)))
        sums = np.add.reduceat(self.values, np.arange(0, count, size))
        note = f"each bar is the sum of {size:,} tokens"
        page.notes += [note] if note not in page.notes else []
        limit, height = float(np.abs(sums).max(initial=0.0)) or 1.0, 64.0
        ys = round_ticks(-limit, limit, height, 12.0)
        left = max(style.extent(words, style.SMALL) for _, words in ys) + GAP + 1
        width = page.width - left - 14
        axes = Axes(page, left, top + 4, width, height, 0, len(sums) * size, -limit, limit)
        xs = [(value, f"{value:,.0f}") for value, _ in round_ticks(0, count, axes.width, 34.0)]
        axes.draw_frame(xs, ys)
        zero, step = axes.top + height / 2, axes.width / len(sums)
        for number, value in enumerate(sums.tolist()):
            length = height / 2 * abs(value) / limit
            y = zero - length if value > 0 else zero
            page.box(left + number * step, y, max(0.5, step * 0.85), length, fill=_ink(value))
        page.lines([[(left, zero), (left + axes.width, zero)]], LIGHT_PAGE.secondary, 0.5)
        words = f"{self.prompt.unit.capitalize()}; a bar adds up {size:,}"
        page.text(left + axes.width / 2, axes.bottom + 18, words, size=style.SMALL,
                  across="center", colour=LIGHT_PAGE.secondary)  # fmt: skip
        return axes.bottom + 26


@dataclass(frozen=True, slots=True)
class Cell:
    """Tokens that are drawn as one: their characters, their width, and the sum of what they add."""

    words: str
    width: float
    value: float

    @classmethod
    def of(cls, words: str, values: Many) -> Cell:
        """The cell of some characters, never too narrow to be seen."""
        return cls(words, max(style.extent(words, style.TEXT), 3.2) + 2 * PAD, float(values.sum()))


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """The keys of a head, spans (keys, 2) of the tokens of each, and columns of numbers (keys,)."""

    prompt: Prompt
    spans: Integers
    columns: tuple[tuple[str, Many], ...]

    def draw(self, page: Page, top: float) -> float:
        """Draw the keys below each other, and a column of bars for each number; returns the last
        baseline."""
        names = [
            labels.token_words(self.prompt, int(start), int(end)) if end > 0 else labels.NOTHING
            for start, end in self.spans
        ]
        widest = max((style.extent(name, style.SMALL) for name in names), default=10.0)
        left = min(max(widest, 12.0), 0.25 * page.width) + 5
        width = (page.width - left) / len(self.columns)
        is_bare = width < 72
        titles = [labels.wrapped(name, width - 6, style.SMALL) for name, _ in self.columns]
        lines = max(map(len, titles))
        begin = top + lines * 8.5 + 2
        last = len(self.columns) - 1
        for number, (title, (_, values)) in enumerate(zip(titles, self.columns, strict=True)):
            x = left + number * width
            for line, words in enumerate(title):
                base = top + style.SMALL + (line + lines - len(title)) * 8.5
                page.text(x, base, words, size=style.SMALL, colour=LIGHT_PAGE.secondary)
            _draw_bars(page, values, x, begin, width - (6 if number < last else 0), is_bare)
        for row, name in enumerate(names):
            words = labels.elide(name, left - 5, style.SMALL)
            page.text(left - 5, begin + (row + 0.5) * ROW, words, size=style.SMALL,
                      across="right", middle=True)  # fmt: skip
        return begin + ROW * len(names) + (10 if is_bare else 1)


@dataclass(frozen=True, slots=True, eq=False)
class Answer(Chart):
    """Where an answer comes from: its tokens, its heads, its layers, or the keys of a head; one of
    the four. places: the layers of the model, of heads and layers; off: the heads that are off.

    asked: what follows the model in the command `hgviz attribute` that finds it. table: the
    numbers, names of columns first.
    """

    texts: tuple[Share, ...] = ()
    heads: Mapping[HeadId, float] = field(default_factory=dict)
    layers: Mapping[int, float] = field(default_factory=dict)
    keys: Beside | None = None
    places: tuple[Place, ...] = ()
    off: frozenset[HeadId] = frozenset()
    asked: tuple[str, ...] = ()
    table: tuple[Row, ...] = ()
    title: str = ""
    more: str = ""
    notes: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)

    def rows(self) -> list[Row]:
        """The numbers, the names of columns first."""
        return list(self.table)

    def draw(self, page: Page, spec: Spec) -> None:
        """Place whichever of the four there is."""
        top = self.draw_heading(page, spec)
        notes: list[str] = []
        if self.keys is not None:
            bottom = self.keys.draw(page, top)
        elif self.heads:
            bottom = self._draw_heads(page, spec, top)
        elif self.layers:
            values = np.array(list(self.layers.values()))
            left = self._draw_layer_names(page, list(self.layers), top, ROW) + 3
            _draw_bars(page, values, left, top, page.width - left, is_bare=False)
            bottom = top + len(values) * ROW + 1
        else:
            bottom, notes = self._draw_texts(page, spec, top)
        page.close(footnotes(page, [*notes, *self.notes], 0.0, bottom) + 4)

    def _draw_texts(self, page: Page, spec: Spec, top: float) -> tuple[float, list[str]]:
        """Draw every text in lines, what its tokens add above them; returns the last baseline, and
        notes."""
        notes = [
            f"After the first {len(share.values):,} {share.prompt.unit}s the answer is given: it "
            "does not hear of the rest."
            for share in self.texts if len(share.values) < len(share.prompt)
        ]  # fmt: skip
        room = 1.5 * page.width / max(1, len(self.texts))

        def lines_of(cells: Callable[[Share], list[Cell]]) -> list[list[list[Cell]]] | None:
            """The lines of each text, None where they take too much room."""
            texts = [_lines(cells(share), page.width) for share in self.texts]
            fits = all(len(lines) * (TOKENS + LANE + BETWEEN) <= room for lines in texts)
            return texts if fits else None

        texts = lines_of(Share.cells_by_token)
        if texts is None:
            texts = lines_of(Share.cells_by_word)
            if texts is None:
                y = top
                for share in self.texts:
                    y = share.draw_sums(page, share.draw_name(page, y))
                return y - 6, notes
            notes.append("What the tokens of a word add is added up.")
            page.notes.append("tokens are added up to words")
        values = [cell.value for lines in texts for line in lines for cell in line]
        shades = _shades(spec, np.array(values))
        y = top
        for share, lines in zip(self.texts, texts, strict=True):
            y = share.draw_name(page, y)
            for line in lines:
                _draw_line(page, shades, line, y)
                y += LANE + TOKENS + BETWEEN
        reach = short_number(shades.limits[1])
        notes.insert(0, f"Bars reach to ±{reach}: up adds to the answer, down takes away.")
        return _draw_colours(page, shades, 0.0, y + 3), notes

    def _draw_layer_names(
        self, page: Page, layers: Sequence[int], top: float, height: float
    ) -> float:
        """Draw the layers at the left, with their levels; returns where these end."""
        places = {place.index: place for place in self.places}
        has_levels = len({place.level for place in self.places}) > 1
        left = first = max(style.extent(f"layer {one}", style.SMALL) for one in layers) + 5
        for row, layer in enumerate(layers):
            place, y = places[layer], top + (row + 0.5) * height
            page.text(0, y, f"layer {layer}", size=style.SMALL, middle=True)
            role = place.role if place.role != "self" else ""
            words = " ".join(filter(None, (place.level if has_levels else "", role)))
            page.text(first, y, words, size=style.SMALL, middle=True, colour=LIGHT_PAGE.secondary)
            left = max(left, first + style.extent(words, style.SMALL) + (5 if words else 0))
        return left

    def _draw_heads(self, page: Page, spec: Spec, top: float) -> float:
        """Draw a cell for each head, red where it adds to the answer and blue where it takes away,
        with its number where there is room; returns the last baseline."""
        layers = list(dict.fromkeys(head.layer for head in self.heads))
        count, top = 1 + max(head.head for head in self.heads), top + 10
        left = self._draw_layer_names(page, layers, top, HEAD_HEIGHT)
        last = style.extent(str(count - 1), style.SMALL)
        room = page.width - left - 0.4  # half of an edge
        width = min(40.0, room / count)
        width = min(width, (room - max(0.0, last - width) / 2) / count)
        on = [value for head, value in self.heads.items() if head not in self.off]
        shades, size = _shades(spec, np.array(on)), 5.6
        numbers = {head: decimals(value, signed=True) for head, value in self.heads.items()}
        has_numbers = max(style.extent(one, size) for one in numbers.values()) + 2 <= width
        for head, value in self.heads.items():
            x, y = left + head.head * width, top + layers.index(head.layer) * HEAD_HEIGHT
            if head in self.off:
                off_card(page, x + 0.6, y + 0.6, width - 1.2, HEAD_HEIGHT - 1.2)
                continue
            rgb = shades.paint(np.array([value], np.float32))
            fill = tuple(rgb[0] / 255)
            page.box(x, y, width, HEAD_HEIGHT, fill=fill, edge=LIGHT_PAGE.paper, line=0.8)
            if has_numbers:
                ink = tuple(contrasting_colour(rgb)[0] / 255)
                page.text(x + width / 2, y + HEAD_HEIGHT / 2, numbers[head], size=size,
                          across="center", middle=True, colour=ink)  # fmt: skip
        is_full = style.extent(f"head {count - 1}", style.SMALL) + 3 <= width
        for number in range(0, count, max(1, ceil((last + 3) / width))):
            words = f"head {number}" if is_full else str(number)
            page.text(left + (number + 0.5) * width, top - 4, words, size=style.SMALL,
                      across="center", colour=LIGHT_PAGE.secondary)  # fmt: skip
        if not is_full:
            page.text(left - 6, top - 4, "head", size=style.SMALL, across="right",
                      colour=LIGHT_PAGE.secondary)  # fmt: skip
        bottom = top + len(layers) * HEAD_HEIGHT + 6
        start = left if page.width - left > 90 else 0.0
        return _draw_colours(page, shades, start, bottom)


def _ink(value: float) -> tuple[float, ...]:
    """Red for what adds to the answer, blue for what takes away."""
    colour = colours(matching_palette("", True))[215 if value > 0 else 40]
    return tuple(float(part) / 255 for part in colour)


def _shades(spec: Spec, values: Many) -> Shades:
    """Colours symmetric about 0."""
    limit = float(np.abs(values).max(initial=0.0)) or 1.0
    palette = matching_palette(spec.display.palette, True)
    return Shades(palette, (-limit, limit), spec.display.scale, True)


def _draw_colours(page: Page, shades: Shades, x: float, y: float) -> float:
    """Draw the colour bar from x on, no number of it left of x; returns the last baseline."""
    first = style.extent(short_number(-shades.limits[1], True), style.SMALL) / 2
    return level_bar(page, shades, x + first, y, page.width - x - first) - 1


def _lines(cells: Sequence[Cell], width: float) -> list[list[Cell]]:
    """The cells as they fill lines; one that is longer than a line is cut to it."""
    lines: list[list[Cell]] = [[]]
    end = 0.0
    for cell in cells:
        if cell.width > width:
            words = labels.elide(cell.words, width - 2 * PAD, style.TEXT)
            cell = Cell(words, width, cell.value)
        if end + cell.width > width + 1e-6:
            lines.append([])
            end = 0.0
        lines[-1].append(cell)
        end += cell.width
    return [line for line in lines if line]


def _draw_line(page: Page, shades: Shades, line: list[Cell], y: float) -> None:
    """Draw a line of text: coloured tokens, and above each its bar, to either side of 0."""
    zero, x, limit = y + LANE / 2, 0.0, shades.limits[1]
    fills = shades.paint(np.array([cell.value for cell in line], np.float32))
    for cell, fill, ink in zip(line, fills, contrasting_colour(fills) / 255, strict=True):
        page.box(x, y + LANE, cell.width + 0.2, TOKENS, fill=tuple(fill / 255))
        length = (LANE / 2 - 1) * abs(cell.value) / limit
        if length > 0.05:
            top = zero - length if cell.value > 0 else zero
            page.box(x + 0.6, top, cell.width - 1.2, length, fill=_ink(cell.value))
        page.text(x + cell.width / 2, y + LANE + TOKENS / 2, cell.words, size=style.TEXT,
                  across="center", middle=True, colour=tuple(ink))  # fmt: skip
        x += cell.width
    page.lines([[(0, zero), (x, zero)]], LIGHT_PAGE.secondary, 0.4)


def _draw_bars(page: Page, values: Many, x: float, top: float, width: float, is_bare: bool) -> None:
    """Draw bars below each other from 0, to either side where some are below it, with their
    numbers unless bare."""
    limit = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    is_signed = bool((values < 0).any())
    room = width if is_bare else width - NUMBER
    zero, reach = (x + room / 2, room / 2) if is_signed else (x, room)
    for row, value in enumerate(values.tolist()):
        y = top + row * ROW
        if not np.isfinite(value):
            page.hatch(x, y + 2, room, ROW - 4, None)
            continue
        length = reach * abs(value) / limit
        fill = _ink(value) if is_signed else LIGHT_PAGE.secondary
        if length > 0.05:
            start = zero if value > 0 else zero - length
            page.box(start, y + 1.8, length, ROW - 3.6, fill=fill)
        if not is_bare:
            page.text(x + width, y + ROW / 2, short_number(value, is_signed), size=style.SMALL,
                      across="right", middle=True)  # fmt: skip
    bottom = top + ROW * len(values)
    page.lines([[(zero, top), (zero, bottom)]], LIGHT_PAGE.secondary, 0.5)
    if is_bare:
        words = f"±{short_number(limit)}" if is_signed else short_number(limit)
        page.text(x + width, bottom + 8, words, size=style.SMALL, across="right",
                  colour=LIGHT_PAGE.secondary)  # fmt: skip
