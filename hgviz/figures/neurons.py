"""One query and its keys, element by element: products, their sums, and the weights they become.

As in BertViz's neuron view (Vig 2019). Widths and heights are in points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hgviz.core import Integers, Prompt
from hgviz.figures.charts import Chart, Row
from hgviz.figures.paper import labels, style
from hgviz.figures.paper.axes import Many
from hgviz.figures.paper.frame import footnotes
from hgviz.figures.paper.page import Page
from hgviz.figures.paper.shades import BAR, Shades
from hgviz.figures.spec import POINTS, Spec
from hgviz.language import short_number
from hgviz.palettes import LIGHT_PAGE, colours, matching_palette

ROW, GAP, BETWEEN = 8.4, 3.0, 7.0  # of a key; below the query; from part to part
LEAST_RASTER = 30.0  # where there is less room, the keys themselves are left out
NUMBERS, BARE = 46.0, 28.5  # of a column of numbers: written out, and as bars alone
COLOUR_BAR = 60.0


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """left (d,) times right (keys, d), element by element = values (keys, d), and the names of all
    three."""

    names: tuple[str, str, str]
    left: Many
    right: Many
    values: Many


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """A number of every key on the way to its weight (keys,); NaN for none."""

    kind: str
    title: str
    values: Many


@dataclass(frozen=True, slots=True)
class _Raster:
    """Elements to draw: a name, the query (its name and (d,)) or None, and the keys (keys, d)."""

    name: str
    query: tuple[str, Many] | None
    keys: Many


@dataclass(frozen=True, slots=True, eq=False)
class Neurons(Chart):
    """One row of a head, taken apart for the keys that are drawn.

    query: its text and the token it is of; keys: the text of the keys, spans (keys, 2) the tokens
    of each, columns (keys,) their numbers in the map. marked: the key that is looked at, a place
    among these. products: as they are added up, stages: what comes of it, the weight last.
    """

    query: tuple[Prompt, Integers]
    keys: Prompt
    spans: Integers
    columns: Integers
    products: tuple[Products, ...]
    stages: tuple[Stage, ...]
    marked: int | None = None
    title: str = ""
    more: str = ""
    notes: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)

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
            row: list[object] = [str(column), words]
            row += [stage.values[place] for stage in self.stages]
            for products in self.products:
                row += [*products.left, *products.right[place], *products.values[place]]
            table.append(tuple(row))
        return table

    def draw(self, page: Page, spec: Spec) -> None:
        """Place the query, its keys, their products and what comes of them."""
        top = self.draw_heading(page, spec)
        names = [_key_name(self.keys, span) for span in self.spans]
        query = _key_name(*self.query)
        widest = max(
            style.extent(name, style.SMALL, bold=True) for name in (*names, f"{query} asks")
        )
        left = min(max(widest, 22.0), 0.24 * page.width) + 5
        stages = self._stages(page.width)
        has_room = len(stages) * NUMBERS + 2 * LEAST_RASTER * len(self.products) + left < page.width
        column = NUMBERS if has_room and page.width > 260 else BARE
        room = page.width - left - len(stages) * (column + BETWEEN) - 1
        rasters = self._rasters(room)
        width = (room - BETWEEN * (len(rasters) - 1)) / len(rasters)
        base = top + style.SMALL
        begin = base + 3 + ROW + GAP
        bottom = begin + ROW * len(names)
        bold = labels.bold_in(query, left - 5, style.SMALL)
        page.text(
            left - 5, base + 3 + ROW / 2, labels.elide(query, left - 5, style.SMALL, bold),
            size=style.SMALL, bold=bold, across="right", middle=True,
            colour=LIGHT_PAGE.mark_text,
        )  # fmt: skip
        for number, raster in enumerate(rasters):
            _draw_query(page, raster, left + number * (width + BETWEEN), base, width)
        for number, raster in enumerate(rasters):
            _draw_keys(page, spec, raster, left + number * (width + BETWEEN), begin, width)
        end = left + room + BETWEEN
        for number, stage in enumerate(stages):
            _draw_stage(page, stage, end + number * (column + BETWEEN), base, begin, column)
        for place, name in enumerate(names):
            is_marked = place == self.marked
            bold = is_marked and labels.bold_in(name, left - 5, style.SMALL)
            page.text(
                left - 5, begin + (place + 0.5) * ROW,
                labels.elide(name, left - 5, style.SMALL, bold), size=style.SMALL,
                across="right", middle=True, bold=bold,
                colour=LIGHT_PAGE.mark_text if is_marked else LIGHT_PAGE.text,
            )  # fmt: skip
        if self.marked is not None:
            y = begin + self.marked * ROW
            page.box(left, y, end - BETWEEN - left, ROW, edge=LIGHT_PAGE.mark, line=0.8)
        for number, raster in enumerate(rasters):
            count = raster.keys.shape[1]
            _draw_element_numbers(page, count, left + number * (width + BETWEEN), bottom, width)
        foot = _draw_colours(page, spec, rasters, bottom + 20)
        page.close(footnotes(page, [*self.notes, *page.notes], 0.0, foot + 1) + 4)

    def _stages(self, width: float) -> tuple[Stage, ...]:
        """All stages where there is room, else the score and the weight."""
        most = max(1, int((0.55 * width) // (BARE + BETWEEN)))
        if len(self.stages) <= most:
            return self.stages
        return tuple(one for one in self.stages if one.kind in ("score", "weight"))[-most:]

    def _rasters(self, room: float) -> list[_Raster]:
        """Keys and products of every sum; where these are too narrow, the products alone."""
        rasters: list[_Raster] = []
        for products in self.products:
            left, right, both = products.names
            rasters.append(_Raster(right, (left, products.left), products.right))
            rasters.append(_Raster(both, None, products.values))
        if (room - BETWEEN * (len(rasters) - 1)) / len(rasters) >= LEAST_RASTER:
            return rasters
        return [_Raster(one.names[2], (one.names[0], one.left), one.values)
                for one in self.products]  # fmt: skip


def _key_name(prompt: Prompt, span: Integers) -> str:
    """The characters of a key as they can be drawn."""
    start, end = (int(one) for one in span)
    return labels.token_words(prompt, start, end) if end > 0 else labels.NOTHING


# --- elements -------------------------------------------------------------------------------------


def _draw_query(page: Page, raster: _Raster, x: float, base: float, width: float) -> None:
    """Draw the name of a part, and the query above the keys that it meets."""
    name = raster.name
    if raster.query and style.extent(f"{raster.query[0]}, then {name}", style.SMALL) <= width:
        name = f"{raster.query[0]}, then {name}"
    name = labels.elide(name, width, style.SMALL)
    page.text(x, base, name, size=style.SMALL, colour=LIGHT_PAGE.secondary)
    if raster.query:
        _draw_elements(page, Spec(), raster.query[1][None], x, base + 3, width)
        page.box(x, base + 3, width, ROW, edge=LIGHT_PAGE.mark, line=0.6)


def _draw_keys(page: Page, spec: Spec, raster: _Raster, x: float, y: float, width: float) -> None:
    """Draw the elements of all keys, a line of paper between two of them."""
    count = len(raster.keys)
    _draw_elements(page, spec, raster.keys, x, y, width)
    if count == 1:
        page.box(x, y, width, ROW, edge=LIGHT_PAGE.mark, line=0.6)
    elif count > 1:
        lines = [[(x, y + ROW * key), (x + width, y + ROW * key)] for key in range(1, count)]
        page.lines(lines, LIGHT_PAGE.paper, 0.8)
    page.box(x, y, width, ROW * count, edge=LIGHT_PAGE.line, line=0.3)


def _draw_elements(page: Page, spec: Spec, values: Many, x: float, y: float, width: float) -> None:
    """Draw values (rows, d), of those that share a dot the largest by magnitude."""
    shades = _shades(spec, values)
    dots = max(1, int(width / POINTS * style.dots(page.width)))
    count = values.shape[1]
    if count > dots:
        size = -(-count // dots)
        note = f"each cell is the largest of {size:,} elements"
        page.notes += [note] if note not in page.notes else []
        padded = np.pad(values, ((0, 0), (0, -count % size))).reshape(len(values), -1, size)
        largest = np.abs(padded).argmax(2)[..., None]
        values = np.take_along_axis(padded, largest, 2)[..., 0]
    page.image(shades.paint(values.astype(np.float32)), x, y, width, ROW * len(values))


def _shades(spec: Spec, values: Many) -> Shades:
    """Colours symmetric about 0, up to the largest of these elements."""
    limit = float(np.abs(values).max(initial=0.0)) or 1.0
    palette = matching_palette(spec.display.palette, True)
    return Shades(palette, (-limit, limit), spec.display.scale, True)


def _draw_element_numbers(page: Page, count: int, x: float, bottom: float, width: float) -> None:
    """Draw the numbers of the first and the last element below a raster, if there is room."""
    last, y, grey = f"{count - 1:,}", bottom + 8, LIGHT_PAGE.secondary
    ends = style.extent("0", style.SMALL) + style.extent(last, style.SMALL)
    if ends + 3 > width:
        return
    page.text(x, y, "0", size=style.SMALL, colour=grey)
    page.text(x + width, y, last, size=style.SMALL, across="right", colour=grey)
    if style.extent("Element", style.SMALL) + 8 <= width - ends:
        page.text(x + width / 2, y, "Element", size=style.SMALL, across="center", colour=grey)


# --- what comes of them ---------------------------------------------------------------------------


def _draw_stage(page: Page, stage: Stage, x: float, base: float, top: float, width: float) -> None:
    """Draw a number of every key as a bar, from 0 to either side; written out if there is room."""
    finite = stage.values[np.isfinite(stage.values)]
    limit = float(np.abs(finite).max(initial=0.0)) or 1.0
    is_signed = bool((finite < 0).any())
    bars, numbers = width, []
    if width >= NUMBERS:
        numbers = [short_number(float(value)) for value in stage.values]
        longest = max((style.extent(words, style.SMALL) for words in numbers), default=0.0)
        bars = min(max(12.0, width - longest - 4), 21.0)
    reach = bars / 2 if is_signed else bars
    zero = x + bars - reach
    blue, red = (tuple(map(float, colour)) for colour in
                 colours(matching_palette("", True))[[40, 215]] / 255)  # fmt: skip
    title = labels.elide(stage.title, width, style.SMALL)
    page.text(x, base, title, size=style.SMALL, colour=LIGHT_PAGE.secondary)
    for key, value in enumerate(stage.values.tolist()):
        y = top + key * ROW
        if not np.isfinite(value):
            page.hatch(x, y + 1.5, bars, ROW - 3, None)
            continue
        length = reach * min(1.0, abs(value) / limit)
        fill = (red if value > 0 else blue) if is_signed else LIGHT_PAGE.secondary
        if length > 0.05:
            start = zero if value > 0 else zero - length
            page.box(start, y + 1.8, length, ROW - 3.6, fill=fill)
        if numbers:
            page.text(x + width, y + ROW / 2, numbers[key], size=style.SMALL, across="right",
                      middle=True)  # fmt: skip
    bottom = top + ROW * len(stage.values)
    page.lines([[(zero, top), (zero, bottom)]], LIGHT_PAGE.secondary, 0.5)
    if not numbers:
        words = f"±{short_number(limit)}" if is_signed else short_number(limit)
        words = labels.elide(words, width + 4, style.SMALL)
        page.text(x + width, bottom + 8, words, size=style.SMALL, across="right",
                  colour=LIGHT_PAGE.secondary)  # fmt: skip


def _draw_colours(page: Page, spec: Spec, rasters: list[_Raster], y: float) -> float:
    """Draw the colour bar, and say where the colours of each part end; returns where it ends."""
    shades = _shades(spec, np.ones((1, 1)))
    page.image(colours(shades.palette)[None], 0, y, COLOUR_BAR, BAR)
    page.box(0, y, COLOUR_BAR, BAR, edge=LIGHT_PAGE.line)
    for share, words, across in ((0.0, "−", "left"), (0.5, "0", "center"), (1.0, "+", "right")):
        page.text(share * COLOUR_BAR, y + BAR + 7, words, size=style.SMALL, across=across,
                  colour=LIGHT_PAGE.secondary)  # fmt: skip
    parts: list[tuple[str, Many]] = []
    for raster in rasters:
        parts += [raster.query] if raster.query else []
        parts.append((raster.name, raster.keys))
    ends = [f"{name} ±{short_number(float(np.abs(values).max(initial=0.0)))}"
            for name, values in parts]  # fmt: skip
    scale = {"sqrt": "by the square root", "log": "by the logarithm"}.get(shades.scale, "")
    sentence = ", ".join(filter(None, ("Colours end at " + ", ".join(ends), scale))) + "."
    base = y + 6
    for line in labels.wrapped(sentence, page.width - COLOUR_BAR - 10, style.SMALL):
        page.text(COLOUR_BAR + 8, base, line, size=style.SMALL, colour=LIGHT_PAGE.secondary)
        base += 9
    return max(base - 9, y + BAR + 7)
