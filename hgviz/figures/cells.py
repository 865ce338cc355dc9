"""The maps of a capture as cells on paper: at which zoom, which are seen, and in which colours.

A cell stands for 2^a rows and 2^b columns of weights and shows the largest of them. Widths and
heights are in points.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil, log2
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hgviz.activations import ACTIVATIONS
from hgviz.core import Capture, Display, Floats, HeadId, HgvizError, Integers, Map, Prompt
from hgviz.figures.labels import DOTS, SMALL, text_width
from hgviz.figures.page import GREY, Many, Page, dots_per_inch
from hgviz.figures.spec import POINTS, CaptureFacts, Row, Spec
from hgviz.language import short_number
from hgviz.maps import LazyMap, Rule, SlotMap, pool
from hgviz.palettes import (
    LIGHT_PAGE,
    colours,
    limits_of,
    matching_palette,
    paint,
    palette_coordinates,
    ticks,
)

Bools = NDArray[np.bool_]
Zooms = tuple[int, int]  # a cell of a map is 2^a rows and 2^b columns of weights


@dataclass(frozen=True, slots=True, eq=False)
class CaptureFigure(CaptureFacts):
    """Base of what draws a capture itself."""

    def draw(self, page: Page, spec: Spec) -> None:
        """Place the figure on a page and cut the page below it. Raises HgvizError."""
        raise NotImplementedError

    def rows(self, spec: Spec) -> Iterator[Row]:
        """The table of the numbers, the names of its columns first. Raises HgvizError."""
        raise NotImplementedError

    def role(self, head: HeadId) -> str:
        """What a head does, "" where that is not known."""
        return self.facts[head].role if head in self.facts else ""


# --- heads and tokens that are there --------------------------------------------------------------


def map_of(capture: Capture, head: HeadId) -> Map:
    """The maps of a head's layer. Raises HgvizError where the head or its layer is missing."""
    layers = capture.spec.layers
    if not 0 <= head.layer < len(layers):
        raise HgvizError(
            f"this capture has no layer {head.layer}: its layers are 0 to {len(layers) - 1}",
            "Choose one of these",
        )
    maps = capture.maps[head.layer]
    if maps is None:
        raise HgvizError(
            f"layer {head.layer} is not in this capture: the capture was interrupted before it",
            "Run the capture again to resume",
        )
    if head.head not in maps.heads:
        heads = f"its heads are {', '.join(map(str, maps.heads))}" if maps.heads else "it has none"
        raise HgvizError(
            f"layer {head.layer} has no head {head.head}: {heads}",
            "Choose one of these" if maps.heads else "Choose another layer",
        )
    return maps


def token_in(prompt: Prompt, token: int | None) -> int:
    """The token itself, the last one for None. Raises HgvizError for one beyond the text."""
    token = prompt.last if token is None else token
    if not 0 <= token < len(prompt):
        unit = prompt.unit if prompt.unit in ("slot", "state") else "token"
        raise HgvizError(
            f"this capture has no {unit} {token}: it has {unit}s 0 to {len(prompt) - 1:,}",
            "Choose one of these",
        )
    return token


def is_signed(capture: Capture, head: HeadId) -> bool:
    """Whether weights of a head can be negative; heads of one layer may differ in that."""
    maps = map_of(capture, head)
    names = dict(zip(maps.heads, capture.spec.layers[head.layer].activations, strict=False))
    is_mixed = len({ACTIVATIONS[name].signed for name in names.values()}) == 2
    if is_mixed and not isinstance(maps, SlotMap):
        return ACTIVATIONS[names[head.head]].signed
    return maps.signed


# --- names of heads and layers --------------------------------------------------------------------


def level_name(capture: Capture, layer: int, with_own: bool = True) -> str:
    """1:2, or 1:1 → 1:2 where keys and queries lie on different levels; else its own_name.

    source, target, or source → target where there are two texts, with own_name; how many slots
    where there are, or lie between. with_own: False leaves own_name out where there is no room.
    """
    row, levels, maps = capture.spec.layers[layer], capture.spec.levels, capture.maps[layer]
    own = row.own_name if with_own else ""
    if isinstance(maps, SlotMap):
        return f"through {maps.whole.shape[2]:,} slots"
    if len(levels) == 1:
        return own
    key, query = levels[row.key_level], levels[row.level]
    sides = [key.sequence, query.sequence]
    if "slots" in sides:
        return f"{len(capture.spans[row.key_level]):,} slots"
    if capture.spec.two_texts:
        return ", ".join(filter(None, (" → ".join(dict.fromkeys(sides)), own)))
    return query.label if row.level == row.key_level else f"{key.label} → {query.label}"


def head_details(capture: Capture, head: HeadId, last: str = "") -> str:
    """Level and activation of a head (softmax is not named) and what else there is to say, with a
    dot between them."""
    layer = capture.spec.layers[head.layer]
    name = dict(zip(layer.heads, layer.activations, strict=False)).get(head.head, "softmax")
    activation = "" if name == "softmax" else ACTIVATIONS[name].label
    return "  ·  ".join(filter(None, (level_name(capture, head.layer), activation, last)))


# --- zooms ----------------------------------------------------------------------------------------


def zoom_for(positions: int, room: float, page: float = 0.0) -> int:
    """The zoom at which so many positions are at most one dot each over room in points, on a page
    so wide; 0: one of any usual width."""
    dots = max(room / POINTS * (dots_per_inch(page) if page else DOTS), 1)
    return max(0, ceil(log2(max(positions, 1) / dots)))


def read_cells(maps: Map, head: int, zooms: Zooms) -> Floats:
    """Weights of a head (rows / 2^a, columns / 2^b), of each cell the largest; zooms: a and b."""
    rows, columns = zooms
    weights = maps.read(head, zoom=min(zooms))
    if rows == columns:
        return weights
    lines = weights if rows < columns else weights.T
    zoom = abs(rows - columns)
    pooled = np.concatenate([pool(line[None], zoom, signed=maps.signed) for line in lines])
    return pooled if rows < columns else pooled.T


def reduction_note(zooms: Zooms) -> str:
    """What a reduced map must say."""
    rows, columns = (1 << zoom for zoom in zooms)
    return f"each cell is the largest of {rows:,} × {columns:,} weights"


# --- cells that no query sees ---------------------------------------------------------------------

NEVER = np.iinfo(np.int64).max


def seen_cells(
    capture: Capture,
    layer: int,
    zoom: int | Zooms = 0,
    rows: tuple[int, int] | None = None,
    head: int | None = None,
) -> Bools:
    """bool (rows, columns) in cells of 2^zoom, or of 2^a rows and 2^b columns: where any weight of
    a cell can be other than 0, of a head, or of any of the layer.

    Judged by the tokens that positions stand for, so that unequal segments are ordinary.
    """
    zooms = (zoom, zoom) if isinstance(zoom, int) else zoom
    row = capture.spec.layers[layer]
    queries, keys = capture.query_spans(layer), capture.key_spans(layer)
    start, end = rows or (0, len(queries))
    is_real = ~_padding(capture.query_prompt(layer), queries)
    is_padding = _padding(capture.key_prompt(layer), keys)
    last = np.maximum(queries[:, 1] - 1, -1)  # a null group looks at itself
    tall, wide = (1 << zoom for zoom in zooms)
    row_starts, column_starts = np.arange(start, end, tall), np.arange(0, len(keys), wide)
    newest = np.where(is_real, last if row.causal else NEVER - 1, -2)
    newest = np.maximum.reduceat(newest[start:end], row_starts - start)
    oldest = np.where(is_padding, NEVER, np.maximum(keys[:, 1], 0) - 1 if row.causal else -1)
    oldest = np.minimum.reduceat(oldest, column_starts)
    seen: Bools = oldest[None, :] <= newest[:, None]
    if (window := row.window) is not None:  # row g meets columns g w .. g w + w - 1, or turned
        if row.role == "down":
            first, final = row_starts * window, (row_starts + tall) * window - 1
        else:
            first, final = row_starts // window, (row_starts + tall - 1) // window
        seen &= (column_starts <= final[:, None]) & (column_starts + wide > first[:, None])
    rule = None if head is None else _streaming_rule(capture.maps[layer], head)
    if rule is not None:  # the first keys by a cell's first column, the latest by its last
        before = None if rule.keep is None else np.append(0, np.cumsum(rule.keep))
        ends = column_starts, np.minimum(column_starts + wide, len(keys)) - 1
        windows = (rule.in_streaming_window(row_starts, columns, before) for columns in ends)
        seen &= np.logical_or(*windows)
    return seen


def unseen_reason(capture: Capture, heads: Iterable[HeadId]) -> str:
    """Why cells of these heads' maps are not seen, "" where all are."""
    heads = list(heads)
    rows = [capture.spec.layers[layer] for layer in dict.fromkeys(head.layer for head in heads)]
    queries = [(capture.query_prompt(row.index), capture.query_spans(row.index)) for row in rows]
    keys = [(capture.key_prompt(row.index), capture.key_spans(row.index)) for row in rows]
    rules = (_streaming_rule(capture.maps[head.layer], head.head) for head in heads)
    reasons = {
        "causal": any(
            row.window is None and row.causal and len(prompt) > 1
            for row, (prompt, _) in zip(rows, keys, strict=True)
        ),
        "outside the window": any(row.window is not None for row in rows),
        "outside sinks and window": any(rule is not None for rule in rules),
        "padding": any(_padding(prompt, spans).any() for prompt, spans in (*queries, *keys)),
    }
    words = " or ".join(reason for reason, holds in reasons.items() if holds)
    return f"masked ({words})" if words else ""


def _padding(prompt: Prompt, spans: Integers) -> Bools:
    """True for positions that stand for no token, after the first that does, or masked ones only.

    The zeros of the causal shift come before it and are looked at like any key.
    """
    has_token = spans[:, 1] > 0
    is_real = has_token
    if (mask := prompt.attention_mask) is not None:
        before = np.append(0, np.cumsum(mask))
        first, last = np.clip(spans.T, 0, len(mask))
        is_real = has_token & (before[last] > before[first])
    return np.logical_or.accumulate(has_token) & ~is_real


def _streaming_rule(maps: Map | None, head: int) -> Rule | None:
    """The rule of a head that streams, None for others."""
    if not isinstance(maps, LazyMap):
        return None
    rule = maps.factors.rule.of(maps.place(head))
    return None if rule.streaming_window is None else rule


# --- colours --------------------------------------------------------------------------------------

BAR, TICK, TICK_GAP = 7.0, 2.0, 2.5
LONGEST = 130.0  # of a bar below a figure
UNSEEN_RGB = tuple(bytes.fromhex(LIGHT_PAGE.unseen[1:]))


@dataclass(frozen=True, slots=True)
class Shades:
    """How weights are coloured: one palette over one range. beyond: whether there are weights below
    it, and above it, which have the colours of its ends."""

    palette: str
    limits: tuple[float, float]
    scale: str
    signed: bool
    beyond: tuple[bool, bool] = (False, False)

    def paint(self, weights: Floats, seen: Bools | None = None) -> NDArray[np.uint8]:
        """uint8 (..., 3); what is not seen takes its own grey."""
        places = palette_coordinates(weights, self.limits, self.scale, self.signed)
        rgb = paint(places, colours(self.palette))
        if seen is not None:
            rgb[~seen] = UNSEEN_RGB
        return rgb

    def ticks(self, length: float, each: float = 9.0) -> list[tuple[float, str]]:
        """(place, words) along a bar of so many points, each of which takes so many."""
        gap = min(max(each / max(length, 1), 0.055), 0.5)
        values = ticks(self.limits, self.scale, self.signed, gap)
        places = palette_coordinates(values, self.limits, self.scale, self.signed)
        words = [short_number(value, self.signed) for value in values]
        if self.beyond[0]:
            words[0] = f"≤ {words[0]}"
        if self.beyond[1]:
            words[-1] = f"≥ {words[-1]}"
        return list(zip(map(float, places), words, strict=True))

    def bar_width(self) -> float:
        """The room that an upright bar with its numbers takes, however high it is."""
        words = {words for height in range(20, 640, 20) for _, words in self.ticks(height)}
        widest = max(text_width(number, SMALL) for number in words)
        return max(BAR + TICK + TICK_GAP + widest, text_width("Weight", SMALL)) + 1

    def draw_upright(self, page: Page, x: float, y: float, height: float) -> None:
        """Draw a colour bar from y down, exactly so high; lowest value below."""
        page.image(colours(self.palette)[::-1, None], x, y, BAR, height)
        page.box(x, y, BAR, height, edge=LIGHT_PAGE.line)
        marks = self.ticks(height)
        # a bar too short for two lines: its ends are written as close to it as they can be read
        spread = max(height, SMALL * 1.3)
        page.caption(x, y - 6 - (spread - height) / 2, "Weight")
        for at, words in marks:
            level = y + height / 2 + (0.5 - at) * (height if len(marks) > 2 else spread)
            tip = y + (1 - at) * height
            page.lines([[(x + BAR, tip), (x + BAR + TICK, tip)]], GREY)
            page.small(x + BAR + TICK + TICK_GAP, level, words, middle=True)

    def draw_level(self, page: Page, x: float, y: float, room: float) -> float:
        """Draw a colour bar from x on, its numbers below, lowest value left; returns where it
        ends."""
        widths = [text_width(words, SMALL) for _, words in self.ticks(room)]
        outer, inner = max(widths[0], widths[-1]), max(widths[1:-1], default=0.0)
        width = min(LONGEST, room - widths[-1] / 2)
        page.image(colours(self.palette)[None], x, y, width, BAR)
        page.box(x, y, width, BAR, edge=LIGHT_PAGE.line)
        marks = self.ticks(width, max((outer + inner) / 2, inner) + 4)
        if outer + inner + 8 > width:
            marks = [mark for mark in marks if mark[0] in (0.0, 1.0)]
        if (widths[0] + widths[-1]) / 2 + 1 > width:
            marks = marks[-1:]
        for at, words in marks:
            here = x + at * width
            page.lines([[(here, y + BAR), (here, y + BAR + TICK)]], GREY)
            page.small(here, y + BAR + TICK + 7, words, across="center")
        return y + BAR + TICK + 9

    def draw_half(self, page: Page, y: float) -> float:
        """Draw a level bar over the left half of a page; returns where it ends."""
        first = text_width(self.ticks(page.width / 2)[0][1], SMALL)
        return self.draw_level(page, max(3.0, first / 2 + 1), y, page.width / 2)


def shades_of(display: Display, signed: bool, weights: Iterable[Floats]) -> Shades:
    """The colours that suit some weights; limits that display does not give come from them."""
    finite = [values[np.isfinite(values)] for values in weights]
    low = min((float(values.min(initial=0)) for values in finite), default=0.0)
    high = max((float(values.max(initial=0)) for values in finite), default=0.0)
    limits = display.limits or limits_of(low, high, signed)
    if signed:
        limits = limits_of(*limits, signed)
    hair = 1e-4 * (limits[1] - limits[0])
    beyond = low < limits[0] - hair, high > limits[1] + hair
    return Shades(matching_palette(display.palette, signed), limits, display.scale, signed, beyond)


def symmetric_shades(display: Display, values: Many) -> Shades:
    """Colours symmetric about 0, up to the largest of these values."""
    limit = float(np.abs(values).max(initial=0.0)) or 1.0
    return Shades(matching_palette(display.palette, True), (-limit, limit), display.scale, True)


def sign_colour(value: float) -> tuple[float, ...]:
    """Red for what is above 0, blue for what is below."""
    colour = colours(matching_palette("", True))[215 if value > 0 else 40]
    return tuple(float(part) / 255 for part in colour)


# --- tables ---------------------------------------------------------------------------------------

MOST_CELLS = 1 << 20  # of a table of one map; what has more is reduced
LONGEST_TEXT = 80  # characters of the text of one cell
SEEN, UNSEEN, OFF = "seen", "not seen", "off"
QUERY = "row_first", "row_last", "query_first", "query_last", "query_text"
KEY = "column_first", "column_last", "key_first", "key_last", "key_text"
MAP_COLUMNS = "head", *QUERY, *KEY, "weight", "state", "reduction"


class TableUnit(NamedTuple):
    """A run of positions along one side of a map: first and last position, first and last token,
    both counted from 0 and included, "" where no token is behind it; and their text, that of
    tokens without characters being their names."""

    first: int
    last: int
    token: int | str
    last_token: int | str
    text: str


def table_side(prompt: Prompt, spans: Integers, zoom: int = 0) -> list[TableUnit]:
    """The cells of 2^zoom positions along one side of a map; spans (positions, 2) are tokens."""
    sides = []
    for first in range(0, len(spans), 1 << zoom):
        positions = spans[first : first + (1 << zoom)]
        tokens = positions[positions[:, 1] > 0]
        last = first + len(positions) - 1
        if not len(tokens):
            sides.append(TableUnit(first, last, "", "", ""))
            continue
        start, end = int(max(tokens[:, 0].min(), 0)), int(tokens[:, 1].max())
        text = prompt.words(start, end) or " ".join(prompt.pieces[start:end])
        text = text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"
        sides.append(TableUnit(first, last, start, end - 1, text))
    return sides


def table_zooms(shape: tuple[int, ...], zooms: Zooms) -> Zooms:
    """The zooms, or the least above them, at which a map has at most MOST_CELLS cells."""
    rows, columns = (-(-size >> zoom) for size, zoom in zip(shape, zooms, strict=True))
    if rows * columns <= MOST_CELLS:
        return zooms
    return table_zooms(shape, (zooms[0] + (rows >= columns), zooms[1] + (columns >= rows)))


def table_reduction(zooms: Zooms) -> str:
    """What a cell is of the weights it stands for, "" where that is one."""
    rows, columns = (1 << zoom for zoom in zooms)
    return f"largest of {rows} x {columns}" if any(zooms) else ""


def map_rows(capture: Capture, head: HeadId, name: str, zooms: Zooms) -> Iterator[Row]:
    """A row of MAP_COLUMNS for each cell of a head's map; one alone where the head is off."""
    maps, layer = map_of(capture, head), head.layer
    if head in capture.off:
        yield (name, *[""] * 11, OFF, "")
        return
    sides = table_side(capture.query_prompt(layer), capture.query_spans(layer), zooms[0])
    columns = table_side(capture.key_prompt(layer), capture.key_spans(layer), zooms[1])
    weights = read_cells(maps, head.head, zooms).tolist()
    seen = seen_cells(capture, layer, zooms, head=head.head).tolist()
    reduction = table_reduction(zooms)
    for side, row_weights, row_seen in zip(sides, weights, seen, strict=True):
        for column, weight, is_seen in zip(columns, row_weights, row_seen, strict=True):
            yield (name, *side, *column, weight, SEEN if is_seen else UNSEEN, reduction)


# --- bars of numbers ------------------------------------------------------------------------------


def draw_bars(
    page: Page, values: Many, x: float, top: float, row: float, width: float, bars: float,
    numbers: list[str] | None, inset: float,
) -> None:  # fmt: skip
    """Draw bars below each other from 0, to either side where some are below it, over `bars` of
    the width; numbers: what is written beside each, None for the limit below all; inset: of the
    hatch that stands for no number."""
    finite = values[np.isfinite(values)]
    limit = float(np.abs(finite).max(initial=0.0)) or 1.0
    has_signs = bool((finite < 0).any())
    zero, reach = (x + bars / 2, bars / 2) if has_signs else (x, bars)
    for at, value in enumerate(values.tolist()):
        y = top + at * row
        if not np.isfinite(value):
            page.hatch(x, y + inset, bars, row - 2 * inset)
            continue
        length = reach * min(1.0, abs(value) / limit)
        if length > 0.05:
            start = zero if value > 0 else zero - length
            fill = sign_colour(value) if has_signs else GREY
            page.box(start, y + 1.8, length, row - 3.6, fill=fill)
        if numbers is not None:
            page.small(x + width, y + row / 2, numbers[at], across="right", middle=True)
    bottom = top + row * len(values)
    page.lines([[(zero, top), (zero, bottom)]], GREY)
    if numbers is None:
        words = f"±{short_number(limit)}" if has_signs else short_number(limit)
        page.caption(x + width, bottom + 8, words, across="right")
