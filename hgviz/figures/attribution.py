"""What a weight or an answer is made of: elements of a query and its keys, or tokens, heads, layers
and keys of an answer.

Widths and heights are in points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hgviz.core import Display, HeadId, Integers, Prompt
from hgviz.figures.cells import BAR, Shades, draw_bars, sign_colour, symmetric_shades
from hgviz.figures.charts import Place
from hgviz.figures.labels import (
    NOTHING,
    SMALL,
    TEXT,
    elide,
    may_be_bold,
    text_width,
    token_marks,
    token_words,
    unit_spans,
    visible,
    word_marks,
    wrap,
)
from hgviz.figures.page import (
    GAP,
    GREY,
    Axes,
    Many,
    Page,
    dots_per_inch,
    draw_head_numbers,
    round_ticks,
)
from hgviz.figures.spec import POINTS, Chart, Row, Spec
from hgviz.language import decimals, short_number
from hgviz.palettes import LIGHT_PAGE, colours, contrasting_colour

BETWEEN = 7.0  # from part to part


def _key_name(prompt: Prompt, span: Integers) -> str:
    """The characters of a key as they can be drawn."""
    start, end = (int(token) for token in span)
    return token_words(prompt, start, end) if end > 0 else NOTHING


# --- a query and its keys, element by element -----------------------------------------------------

KEY_ROW, QUERY_GAP = 8.4, 3.0  # heights of a key, and of the gap below the query
LEAST_RASTER = 30.0  # where there is less room, the keys themselves are left out
NUMBERS, BARE = 46.0, 28.5  # of a column of numbers: written out, and as bars alone
COLOUR_BAR = 60.0
_Raster = tuple[str, tuple[str, Many] | None, Many]  # name, query (name, (d,)), keys (keys, d)


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """left (d,) times right (keys, d), element by element = values (keys, d), and the names of all
    three."""

    names: tuple[str, str, str]
    left: Many
    right: Many
    values: Many


@dataclass(frozen=True, slots=True, eq=False)
class ScoreStep:
    """A number of every key on the way to its weight (keys,); NaN for none."""

    kind: str
    title: str
    values: Many


@dataclass(frozen=True, slots=True, eq=False)
class Neurons(Chart):
    """One row of a head, taken apart for the keys that are drawn, as BertViz's neuron view (Vig
    2019).

    query: its text and the token it is of; keys: the text of the keys, spans (keys, 2) the tokens
    of each, columns (keys,) their numbers in the map. marked: the selected key, a place among
    these. products: as they are added up, stages: what comes of it, the weight last.
    """

    query: tuple[Prompt, Integers]
    keys: Prompt
    spans: Integers
    columns: Integers
    products: tuple[Products, ...]
    stages: tuple[ScoreStep, ...]
    marked: int | None = None

    def rows(self) -> list[Row]:
        """A row for each key: its stages, then every element of query, key and products."""
        names = ["column", "key", *(stage.title for stage in self.stages)]
        for products in self.products:
            count = range(len(products.left))
            names += [f"{name} {element}" for name in products.names for element in count]
        table: list[Row] = [tuple(names)]
        for place, (column, (start, end)) in enumerate(zip(self.columns, self.spans, strict=True)):
            words = ""
            if end > 0:
                words = self.keys.words(int(start), int(end)) or self.keys.label(int(start))
            row = [str(column), words, *(stage.values[place] for stage in self.stages)]
            for products in self.products:
                row += [*products.left, *products.right[place], *products.values[place]]
            table.append(tuple(row))
        return table

    def draw(self, page: Page, spec: Spec) -> None:
        top = page.heading(self.title, self.more)
        names = [_key_name(self.keys, span) for span in self.spans]
        query = _key_name(*self.query)
        widest = max(text_width(name, SMALL, bold=True) for name in (*names, f"{query} asks"))
        left = min(max(widest, 22.0), 0.24 * page.width) + 5
        # all stages where there is room, else the score and the weight
        stages, most = self.stages, max(1, int((0.55 * page.width) // (BARE + BETWEEN)))
        if len(stages) > most:
            stages = tuple(step for step in stages if step.kind in ("score", "weight"))[-most:]
        has_room = len(stages) * NUMBERS + 2 * LEAST_RASTER * len(self.products) + left < page.width
        column = NUMBERS if has_room and page.width > 260 else BARE
        room = page.width - left - len(stages) * (column + BETWEEN) - 1
        rasters, width = self._rasters(room)
        xs = [left + number * (width + BETWEEN) for number in range(len(rasters))]
        base, count = top + SMALL, len(names)
        y, begin = base + 3, base + 3 + KEY_ROW + QUERY_GAP
        bottom = begin + KEY_ROW * count

        def draw_name(name: str, y: float, is_marked: bool) -> None:
            bold = is_marked and may_be_bold(name, left - 5, SMALL)
            colour = LIGHT_PAGE.mark_text if is_marked else LIGHT_PAGE.text
            words = elide(name, left - 5, SMALL, bold)
            page.small(left - 5, y, words, across="right", middle=True, bold=bold, colour=colour)

        draw_name(query, y + KEY_ROW / 2, is_marked=True)
        for (name, asking, _), x in zip(rasters, xs, strict=True):
            if asking and text_width(f"{asking[0]}, then {name}", SMALL) <= width:
                name = f"{asking[0]}, then {name}"
            page.caption(x, base, elide(name, width, SMALL))
            if asking:
                _draw_elements(page, Display(), asking[1][None], x, y, width)
                page.box(x, y, width, KEY_ROW, edge=LIGHT_PAGE.mark, line=0.6)
        for (_, _, keys), x in zip(rasters, xs, strict=True):
            _draw_elements(page, spec.display, keys, x, begin, width)
            if count == 1:
                page.box(x, begin, width, KEY_ROW, edge=LIGHT_PAGE.mark, line=0.6)
            elif count > 1:
                levels = (begin + KEY_ROW * key for key in range(1, count))
                lines = [[(x, level), (x + width, level)] for level in levels]
                page.lines(lines, LIGHT_PAGE.paper, 0.8)
            page.box(x, begin, width, KEY_ROW * count, edge=LIGHT_PAGE.line, line=0.3)
        end = left + room + BETWEEN
        for number, stage in enumerate(stages):
            x, bars, numbers = end + number * (column + BETWEEN), column, None
            if column >= NUMBERS:
                numbers = [short_number(float(value)) for value in stage.values]
                longest = max((text_width(words, SMALL) for words in numbers), default=0.0)
                bars = min(max(12.0, column - longest - 4), 21.0)
            page.caption(x, base, elide(stage.title, column, SMALL))
            draw_bars(page, stage.values, x, begin, KEY_ROW, column, bars, numbers, 1.5)
        for place, name in enumerate(names):
            draw_name(name, begin + (place + 0.5) * KEY_ROW, place == self.marked)
        if self.marked is not None:
            y = begin + self.marked * KEY_ROW
            page.box(left, y, end - BETWEEN - left, KEY_ROW, edge=LIGHT_PAGE.mark, line=0.8)
        for (_, _, keys), x in zip(rasters, xs, strict=True):  # the first and the last element
            last = f"{keys.shape[1] - 1:,}"
            ends = text_width("0", SMALL) + text_width(last, SMALL)
            if ends + 3 <= width:
                page.caption(x, bottom + 8, "0")
                page.caption(x + width, bottom + 8, last, across="right")
                if text_width("Element", SMALL) + 8 <= width - ends:
                    page.caption(x + width / 2, bottom + 8, "Element", across="center")
        foot = _draw_element_colours(page, spec, rasters, bottom + 20)
        page.close(page.footnotes([*self.notes, *page.notes], 0.0, foot + 1) + 4)

    def _rasters(self, room: float) -> tuple[list[_Raster], float]:
        """Keys and products of every sum, and the width of each; where that is too narrow, the
        products alone."""
        for has_keys in (True, False):
            rasters: list[_Raster] = []
            for products in self.products:
                left, right, both = products.names
                query = left, products.left
                if has_keys:
                    rasters.append((right, query, products.right))
                rasters.append((both, None if has_keys else query, products.values))
            width = (room - BETWEEN * (len(rasters) - 1)) / len(rasters)
            if width >= LEAST_RASTER:
                break
        return rasters, width


def _draw_elements(
    page: Page, display: Display, values: Many, x: float, y: float, width: float
) -> None:
    """Draw values (rows, d), of those that share a dot the largest by magnitude."""
    shades = symmetric_shades(display, values)
    dots = max(1, int(width / POINTS * dots_per_inch(page.width)))
    count = values.shape[1]
    if count > dots:
        size = -(-count // dots)
        page.note(f"each cell is the largest of {size:,} elements")
        padded = np.pad(values, ((0, 0), (0, -count % size))).reshape(len(values), -1, size)
        largest = np.abs(padded).argmax(2)[..., None]
        values = np.take_along_axis(padded, largest, 2)[..., 0]
    page.image(shades.paint(values.astype(np.float32)), x, y, width, KEY_ROW * len(values))


def _draw_element_colours(page: Page, spec: Spec, rasters: list[_Raster], y: float) -> float:
    """Draw the colour bar, and say where the colours of each part end; returns where it ends."""
    shades = symmetric_shades(spec.display, np.ones(1))
    page.image(colours(shades.palette)[None], 0, y, COLOUR_BAR, BAR)
    page.box(0, y, COLOUR_BAR, BAR, edge=LIGHT_PAGE.line)
    for share, words, across in ((0.0, "−", "left"), (0.5, "0", "center"), (1.0, "+", "right")):
        page.caption(share * COLOUR_BAR, y + BAR + 7, words, across=across)
    parts: list[tuple[str, Many]] = []
    for name, query, keys in rasters:
        parts += [query, (name, keys)] if query else [(name, keys)]
    limits = ((name, float(np.abs(values).max(initial=0.0))) for name, values in parts)
    ends = [f"{name} ±{short_number(limit)}" for name, limit in limits]
    scale = {"sqrt": "square-root scale", "log": "logarithmic scale"}.get(shades.scale, "")
    sentence = ", ".join(filter(None, ("Colour ranges: " + ", ".join(ends), scale))) + "."
    base = y - 3
    for line in wrap(sentence, page.width - COLOUR_BAR - 10, SMALL):
        base += 9
        page.caption(COLOUR_BAR + 8, base, line)
    return max(base, y + BAR + 7)


# --- where an answer comes from -------------------------------------------------------------------

TOKENS, LANE, LINE_GAP = 9.5, 17.0, 4.0  # of a line of text: its tokens, the bars above; the gap
PAD = 1.5  # beside the characters of a token
NAME_ROOM = 10.0  # for the name of a text
ROW, HEAD_HEIGHT = 10.0, 12.0  # of a layer or key; of a head
NUMBER = 30.0  # beside a bar
HEAD_NUMBER = 5.6  # the size of a number in the cell of a head


class TokenCell(NamedTuple):
    """Tokens that are drawn as one: their characters, their width, and the sum of what they add."""

    words: str
    width: float
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """What every token of a text adds to the answer (tokens,); name: which text, "" where there is
    one. More tokens of the text than values: the answer does not hear of the rest."""

    name: str
    prompt: Prompt
    values: Many

    def cells(self, by_word: bool) -> list[TokenCell]:
        """A cell for each token, or for each word with the space after it; tokens that share a
        character share one, and none is too narrow to be seen."""
        marks_of = word_marks if by_word else token_marks
        marks = marks_of(self.prompt, unit_spans(len(self.values)))
        edges = [0, *(mark.start for mark in marks[1:]), len(self.values)]
        return [
            TokenCell(mark.words, max(text_width(mark.words, TEXT), 3.2) + 2 * PAD,
                      float(self.values[start:end].sum()))
            for mark, (start, end) in zip(marks, pairwise(edges), strict=False)
        ]  # fmt: skip

    def draw_name(self, page: Page, y: float) -> float:
        """Draw the name, if there is one; returns where it ends."""
        if not self.name:
            return y
        name = visible(self.name[:1].upper() + self.name[1:], space=" ")
        page.small(0, y + SMALL, elide(name, page.width, SMALL, bold=True), bold=True)
        return y + NAME_ROOM

    def draw_sums(self, page: Page, top: float) -> float:
        """Draw the sums of runs of tokens as bars, of a text too long for its words; returns where
        they end."""
        count = len(self.values)
        size = -(-count // max(1, int((page.width - 40) / 2.4)))
        sums = np.add.reduceat(self.values, np.arange(0, count, size))
        page.note(f"each bar is the sum of {size:,} tokens")
        limit, height = float(np.abs(sums).max(initial=0.0)) or 1.0, 64.0
        ys = round_ticks(-limit, limit, height, 12.0)
        left = max(text_width(words, SMALL) for _, words in ys) + GAP + 1
        width = page.width - left - 14
        axes = Axes(page, left, top + 4, width, height, 0, len(sums) * size, -limit, limit)
        xs = [(value, f"{value:,.0f}") for value, _ in round_ticks(0, count, axes.width, 34.0)]
        axes.draw_frame(xs, ys)
        zero, step = axes.top + height / 2, axes.width / len(sums)
        for number, value in enumerate(sums.tolist()):
            length, fill = height / 2 * abs(value) / limit, sign_colour(value)
            y = zero - length if value > 0 else zero
            page.box(left + number * step, y, max(0.5, step * 0.85), length, fill=fill)
        page.lines([[(left, zero), (left + axes.width, zero)]], GREY, 0.5)
        words = f"{self.prompt.unit.capitalize()} (each bar is the sum of {size:,})"
        page.caption(left + axes.width / 2, axes.bottom + 18, words, across="center")
        return axes.bottom + 26


@dataclass(frozen=True, slots=True, eq=False)
class KeyBars:
    """The keys of a head, spans (keys, 2) of the tokens of each, and columns of numbers (keys,)."""

    prompt: Prompt
    spans: Integers
    columns: tuple[tuple[str, Many], ...]

    def draw(self, page: Page, top: float) -> float:
        """Draw the keys below each other, and a column of bars for each number; returns the last
        baseline."""
        names = [_key_name(self.prompt, span) for span in self.spans]
        widest = max((text_width(name, SMALL) for name in names), default=10.0)
        left = min(max(widest, 12.0), 0.25 * page.width) + 5
        width = (page.width - left) / len(self.columns)
        is_bare = width < 72
        titles = [wrap(name, width - 6, SMALL) for name, _ in self.columns]
        lines = max(map(len, titles))
        begin = top + lines * 8.5 + 2
        last = len(self.columns) - 1
        for number, (title, (_, values)) in enumerate(zip(titles, self.columns, strict=True)):
            x = left + number * width
            for line, words in enumerate(title):
                page.caption(x, top + SMALL + (line + lines - len(title)) * 8.5, words)
            _draw_row_bars(page, values, x, begin, width - (6 if number < last else 0), is_bare)
        for row, name in enumerate(names):
            words = elide(name, left - 5, SMALL)
            page.small(left - 5, begin + (row + 0.5) * ROW, words, across="right", middle=True)
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
    keys: KeyBars | None = None
    places: tuple[Place, ...] = ()
    off: frozenset[HeadId] = frozenset()
    asked: tuple[str, ...] = ()
    table: tuple[Row, ...] = ()

    def rows(self) -> list[Row]:
        return list(self.table)

    def draw(self, page: Page, spec: Spec) -> None:
        top, notes = page.heading(self.title, self.more), list[str]()
        if self.keys is not None:
            bottom = self.keys.draw(page, top)
        elif self.heads:
            bottom = self._draw_heads(page, spec, top)
        elif self.layers:
            values = np.array(list(self.layers.values()))
            left = self._draw_layer_names(page, list(self.layers), top, ROW) + 3
            _draw_row_bars(page, values, left, top, page.width - left, is_bare=False)
            bottom = top + len(values) * ROW + 1
        else:
            bottom, notes = self._draw_texts(page, spec, top)
        page.close(page.footnotes([*notes, *self.notes], 0.0, bottom) + 4)

    def _draw_texts(self, page: Page, spec: Spec, top: float) -> tuple[float, list[str]]:
        """Draw every text in lines, what its tokens add above them; returns the last baseline, and
        notes."""
        notes = [
            f"The output depends only on the first {len(share.values):,} {share.prompt.unit}s."
            for share in self.texts
            if len(share.values) < len(share.prompt)
        ]
        room, y = 1.5 * page.width / max(1, len(self.texts)), top
        for by_word in (False, True):
            texts = [_lines(share.cells(by_word), page.width) for share in self.texts]
            if all(len(lines) * (TOKENS + LANE + LINE_GAP) <= room for lines in texts):
                break
        else:
            for share in self.texts:
                y = share.draw_sums(page, share.draw_name(page, y))
            return y - 6, notes
        if by_word:
            notes.append("Tokens of a word are summed.")
            page.note("tokens of a word are summed")
        values = [cell.value for lines in texts for line in lines for cell in line]
        shades = symmetric_shades(spec.display, np.array(values))
        for share, lines in zip(self.texts, texts, strict=True):
            y = share.draw_name(page, y)
            for line in lines:
                _draw_line(page, shades, line, y)
                y += LANE + TOKENS + LINE_GAP
        reach = short_number(shades.limits[1])
        notes.insert(0, f"Bars end at ±{reach}: up increases the output, down decreases it.")
        return _draw_colours(page, shades, 0.0, y + 3), notes

    def _draw_layer_names(
        self, page: Page, layers: Sequence[int], top: float, height: float
    ) -> float:
        """Draw the layers at the left, with their levels; returns where these end."""
        places = {place.index: place for place in self.places}
        has_levels = len({place.level for place in self.places}) > 1
        left = first = max(text_width(f"layer {layer}", SMALL) for layer in layers) + 5
        for row, layer in enumerate(layers):
            place, y = places[layer], top + (row + 0.5) * height
            page.small(0, y, f"layer {layer}", middle=True)
            role = place.role if place.role != "self" else ""
            words = " ".join(filter(None, (place.level if has_levels else "", role)))
            page.caption(first, y, words, middle=True)
            left = max(left, first + text_width(words, SMALL) + (5 if words else 0))
        return left

    def _draw_heads(self, page: Page, spec: Spec, top: float) -> float:
        """Draw a cell for each head, red where it adds to the answer and blue where it takes away,
        with its number where there is room; returns the last baseline."""
        layers = list(dict.fromkeys(head.layer for head in self.heads))
        count, top = 1 + max(head.head for head in self.heads), top + 10
        left = self._draw_layer_names(page, layers, top, HEAD_HEIGHT)
        last = text_width(str(count - 1), SMALL)
        room = page.width - left - 0.4  # half of an edge
        width = min(40.0, room / count)
        width = min(width, (room - max(0.0, last - width) / 2) / count)
        on = [value for head, value in self.heads.items() if head not in self.off]
        shades = symmetric_shades(spec.display, np.array(on))
        numbers = {head: decimals(value, signed=True) for head, value in self.heads.items()}
        has_numbers = max(text_width(words, HEAD_NUMBER) for words in numbers.values()) + 2 <= width
        for head, value in self.heads.items():
            x, y = left + head.head * width, top + layers.index(head.layer) * HEAD_HEIGHT
            if head in self.off:
                page.off_card(x + 0.6, y + 0.6, width - 1.2, HEAD_HEIGHT - 1.2)
                continue
            rgb = shades.paint(np.array([value], np.float32))
            page.box(x, y, width, HEAD_HEIGHT, fill=tuple(rgb[0] / 255), edge=LIGHT_PAGE.paper,
                     line=0.8)  # fmt: skip
            if has_numbers:
                ink = tuple(contrasting_colour(rgb)[0] / 255)
                page.text(x + width / 2, y + HEAD_HEIGHT / 2, numbers[head], size=HEAD_NUMBER,
                          across="center", middle=True, colour=ink)  # fmt: skip
        draw_head_numbers(page, left, width, count, top - 4, 6)
        start = left if page.width - left > 90 else 0.0
        return _draw_colours(page, shades, start, top + len(layers) * HEAD_HEIGHT + 6)


def _draw_colours(page: Page, shades: Shades, x: float, y: float) -> float:
    """Draw the colour bar from x on, no number of it left of x; returns the last baseline."""
    first = text_width(short_number(-shades.limits[1], True), SMALL) / 2
    return shades.draw_level(page, x + first, y, page.width - x - first) - 1


def _lines(cells: Sequence[TokenCell], width: float) -> list[list[TokenCell]]:
    """The cells as they fill lines; one that is longer than a line is cut to it."""
    lines: list[list[TokenCell]] = [[]]
    end = 0.0
    for cell in cells:
        if cell.width > width:
            cell = TokenCell(elide(cell.words, width - 2 * PAD, TEXT), width, cell.value)
        if end + cell.width > width + 1e-6:
            lines.append([])
            end = 0.0
        lines[-1].append(cell)
        end += cell.width
    return [line for line in lines if line]


def _draw_line(page: Page, shades: Shades, line: list[TokenCell], y: float) -> None:
    """Draw a line of text: coloured tokens, and above each its bar, to either side of 0."""
    zero, x, limit = y + LANE / 2, 0.0, shades.limits[1]
    fills = shades.paint(np.array([cell.value for cell in line], np.float32))
    for cell, fill, ink in zip(line, fills, contrasting_colour(fills) / 255, strict=True):
        page.box(x, y + LANE, cell.width + 0.2, TOKENS, fill=tuple(fill / 255))
        length = (LANE / 2 - 1) * abs(cell.value) / limit
        if length > 0.05:
            top = zero - length if cell.value > 0 else zero
            page.box(x + 0.6, top, cell.width - 1.2, length, fill=sign_colour(cell.value))
        page.text(x + cell.width / 2, y + LANE + TOKENS / 2, cell.words, size=TEXT,
                  across="center", middle=True, colour=tuple(ink))  # fmt: skip
        x += cell.width
    page.lines([[(0, zero), (x, zero)]], GREY, 0.4)


def _draw_row_bars(
    page: Page, values: Many, x: float, top: float, width: float, is_bare: bool
) -> None:
    """Draw a bar for each layer or key, with its number unless bare."""
    has_signs = bool((values < 0).any())
    numbers = [short_number(value, has_signs) for value in values.tolist()]
    bars = width if is_bare else width - NUMBER
    draw_bars(page, values, x, top, ROW, width, bars, None if is_bare else numbers, 2.0)
