"""Where an answer comes from: tokens with signed bars and colours, heads as a wall, layers and
keys as bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hgviz.figures.content.answers import Answer, Beside, Share
from hgviz.figures.levels import unit_spans
from hgviz.figures.paper import labels, style
from hgviz.figures.paper.axes import GAP as AXIS_GAP
from hgviz.figures.paper.axes import Axes, Many, round_ticks
from hgviz.figures.paper.frame import footnotes, heading, off_card
from hgviz.figures.paper.page import Page
from hgviz.figures.paper.shades import Shades, level_bar
from hgviz.figures.spec import Spec
from hgviz.language import decimals, short_number
from hgviz.palettes import LIGHT_PAGE, colours, contrasting_colour, matching_palette

CELL, LANE, BETWEEN = 9.5, 17.0, 4.0  # of a line of text: its tokens, the bars above, to the next
PAD, NARROW = 1.5, 3.2  # beside a token's characters; of a token, at least
TALLEST = 1.5  # of the page's width: what a text may take
NAMED = 10.0  # for the name of a text
STRETCH, BAND = 2.4, 64.0  # of bars where a text is too long for its words: across, height
ROW, HIGH, WIDE = 10.0, 12.0, 40.0  # of a layer or key; of a head's cell, and across at most
WRITTEN = 5.6  # size of the number of a head
LEGIBLE = 90.0  # of a bar of colours with its numbers, at least
VALUE = 30.0  # for the number beside a bar


@dataclass(frozen=True, slots=True)
class Cell:
    """Some tokens that are drawn as one: their characters, how wide these are, and the sum of what
    the tokens add."""

    words: str
    wide: float
    value: float


def compose(page: Page, spec: Spec, chart: Answer) -> None:
    """Place what an answer comes from on the page."""
    top = heading(page, chart.title if spec.title is None else spec.title,
                  chart.more if spec.title is None else "")  # fmt: skip
    if chart.keys is not None:
        bottom = _keys(page, chart.keys, top)
        notes: Sequence[str] = chart.notes
    elif chart.heads:
        bottom, notes = _heads(page, spec, chart, top), chart.notes
    elif chart.layers:
        bottom, notes = _layers(page, chart, top), chart.notes
    else:
        bottom, notes = _texts(page, spec, chart, top)
    page.close(footnotes(page, notes, 0.0, bottom) + 4)


def _sides() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The inks of what takes away and of what adds."""
    table = colours(matching_palette("", True))
    low, high = (tuple(float(one) / 255 for one in table[at]) for at in (40, 215))
    return low, high


def _ink(value: float) -> tuple[float, ...]:
    return _sides()[int(value > 0)]


def _shades(spec: Spec, values: Many) -> Shades:
    """Colours symmetric about 0."""
    limit = float(np.abs(values).max(initial=0.0)) or 1.0
    return Shades(
        matching_palette(spec.display.palette, True), (-limit, limit), spec.display.scale, True
    )


def _colours(page: Page, shades: Shades, x: float, y: float) -> float:
    """The bar of colours from x on, no number of it left of x; gives the last baseline."""
    first = style.extent(short_number(-shades.limits[1], True), style.SMALL) / 2
    return level_bar(page, shades, x + first, y, page.width - x - first) - 1


# --- tokens ---------------------------------------------------------------------------------------


def _texts(page: Page, spec: Spec, chart: Answer, top: float) -> tuple[float, list[str]]:
    """Every text in lines, what its tokens add above them; gives the last baseline, and notes."""
    notes = [f"After the first {len(one.values):,} {one.prompt.unit}s the answer is given: it does "
             "not hear of the rest." for one in chart.texts
             if len(one.values) < len(one.prompt)]  # fmt: skip
    room = TALLEST * page.width / max(1, len(chart.texts))
    ways = (_by_token, _by_word)
    for way in ways:
        cells = [way(one) for one in chart.texts]
        lines = [_lines(some, page.width) for some in cells]
        if all(len(some) * (CELL + LANE + BETWEEN) <= room for some in lines):
            break
    else:
        return _stretches(page, chart, top), [*notes, *chart.notes]
    if way is _by_word:
        notes.append("What the tokens of a word add is added up.")
        page.notes.append("tokens are added up to words")
    every = np.array([cell.value for some in cells for cell in some])
    shades = _shades(spec, every)
    y = top
    for share, some in zip(chart.texts, lines, strict=True):
        if share.name:
            _titled(page, share, y)
            y += NAMED
        for line in some:
            _line(page, shades, line, y)
            y += LANE + CELL + BETWEEN
    bottom = _colours(page, shades, 0.0, y + 3)
    said = (
        f"Bars reach to ±{short_number(shades.limits[1])}: up adds to the answer, down takes away."
    )
    return bottom, [said, *notes, *chart.notes]


def _titled(page: Page, share: Share, y: float) -> None:
    """Which text or answer follows."""
    name = labels.visible(share.name[:1].upper() + share.name[1:], space=" ")
    words = labels.elide(name, page.width, style.SMALL, bold=True)
    page.text(0, y + style.SMALL, words, size=style.SMALL, bold=True)


def _by_token(share: Share) -> list[Cell]:
    """A cell for each token; those that share a character share one."""
    marks = labels.singles(share.prompt, unit_spans(len(share.values)))
    return [_cell(one.words, share.values[one.start : one.end]) for one in marks]


def _by_word(share: Share) -> list[Cell]:
    """A cell for each word, with the space after it."""
    marks = labels.words_of(share.prompt, unit_spans(len(share.values)))
    ends = [*(one.start for one in marks[1:]), len(share.values)]
    starts = [0, *(one.start for one in marks[1:])]
    return [
        _cell(one.words, share.values[start:end])
        for one, start, end in zip(marks, starts, ends, strict=True)
    ]


def _cell(words: str, values: Many) -> Cell:
    wide = max(style.extent(words, style.TEXT), NARROW) + 2 * PAD
    return Cell(words, wide, float(values.sum()))


def _lines(cells: Sequence[Cell], width: float) -> list[list[Cell]]:
    """The cells as they fill lines; one that is longer than a line is cut to it."""
    lines: list[list[Cell]] = [[]]
    at = 0.0
    for cell in cells:
        if cell.wide > width:
            words = labels.elide(cell.words, width - 2 * PAD, style.TEXT)
            cell = Cell(words, width, cell.value)
        if at + cell.wide > width + 1e-6:
            lines.append([])
            at = 0.0
        lines[-1].append(cell)
        at += cell.wide
    return [one for one in lines if one]


def _line(page: Page, shades: Shades, line: list[Cell], y: float) -> None:
    """A line of text: coloured tokens, and above each its bar, to either side of 0."""
    zero, x, limit = y + LANE / 2, 0.0, shades.limits[1]
    values = np.array([cell.value for cell in line], np.float32)
    ground = shades.paint(values)
    inks = contrasting_colour(ground) / 255
    for cell, fill, ink in zip(line, ground, inks, strict=True):
        long = (LANE / 2 - 1) * abs(cell.value) / limit
        page.box(x, y + LANE, cell.wide + 0.2, CELL, fill=tuple(fill / 255))
        if long > 0.05:
            top = zero - long if cell.value > 0 else zero
            page.box(x + 0.6, top, cell.wide - 1.2, long, fill=_ink(cell.value))
        page.text(x + cell.wide / 2, y + LANE + CELL / 2, cell.words, size=style.TEXT,
                  across="center", middle=True, colour=tuple(ink))  # fmt: skip
        x += cell.wide
    page.lines([[(0, zero), (x, zero)]], LIGHT_PAGE.secondary, 0.4)


def _stretches(page: Page, chart: Answer, top: float) -> float:
    """Texts too long for their words: the sums of stretches of them."""
    y = top
    for share in chart.texts:
        if share.name:
            _titled(page, share, y)
            y += NAMED
        count = len(share.values)
        each = -(-count // max(1, int((page.width - 40) / STRETCH)))
        sums = np.add.reduceat(share.values, np.arange(0, count, each))
        note = f"each bar is the sum of {each:,} tokens"
        page.notes += [note] if note not in page.notes else []
        limit = float(np.abs(sums).max(initial=0.0)) or 1.0
        ys = round_ticks(-limit, limit, BAND, 12.0)
        left = max(style.extent(words, style.SMALL) for _, words in ys) + AXIS_GAP + 1
        axes = Axes(
            page, left, y + 4, page.width - left - 14, BAND, 0, len(sums) * each, -limit, limit
        )
        xs = [(value, f"{value:,.0f}") for value, _ in round_ticks(0, count, axes.width, 34.0)]
        axes.draw_frame(xs, ys)
        zero = axes.top + BAND / 2
        step = axes.width / len(sums)
        for at, value in enumerate(sums.tolist()):
            long = BAND / 2 * abs(value) / limit
            page.box(left + at * step, zero - long if value > 0 else zero, max(0.5, step * 0.85),
                     long, fill=_ink(value))  # fmt: skip
        page.lines([[(left, zero), (left + axes.width, zero)]], LIGHT_PAGE.secondary, 0.5)
        said = f"{share.prompt.unit.capitalize()}; a bar adds up {each:,}"
        page.text(left + axes.width / 2, axes.bottom + 18, said, size=style.SMALL, across="center",
                  colour=LIGHT_PAGE.secondary)  # fmt: skip
        y = axes.bottom + 26
    return y - 6


# --- heads and layers -----------------------------------------------------------------------------


def _names(page: Page, chart: Answer, layers: Sequence[int], top: float, high: float) -> float:
    """The layers at the left, with their levels; gives where these end."""
    places = {one.index: one for one in chart.places}
    several = len({one.level for one in chart.places}) > 1
    first = max(style.extent(f"layer {one}", style.SMALL) for one in layers) + 5
    left = first
    for row, layer in enumerate(layers):
        place, y = places[layer], top + (row + 0.5) * high
        page.text(0, y, f"layer {layer}", size=style.SMALL, middle=True)
        role = place.role if place.role != "self" else ""
        said = " ".join(filter(None, (place.level if several else "", role)))
        page.text(first, y, said, size=style.SMALL, middle=True, colour=LIGHT_PAGE.secondary)
        left = max(left, first + style.extent(said, style.SMALL) + (5 if said else 0))
    return left


def _heads(page: Page, spec: Spec, chart: Answer, top: float) -> float:
    """A wall: a cell for each head, red where it adds to the answer and blue where it takes away,
    its number in it where there is room; gives the last baseline."""
    layers = list(dict.fromkeys(head.layer for head in chart.heads))
    most = 1 + max(head.head for head in chart.heads)
    top += 10
    left = _names(page, chart, layers, top, HIGH)
    last = style.extent(str(most - 1), style.SMALL)
    room = page.width - left - 0.4  # half of an edge
    wide = min(WIDE, room / most)
    wide = min(wide, (room - max(0.0, last - wide) / 2) / most)
    values = np.array([value for head, value in chart.heads.items() if head not in chart.off])
    shades = _shades(spec, values)
    said = {head: decimals(value, signed=True) for head, value in chart.heads.items()}
    fits = max(style.extent(one, WRITTEN) for one in said.values()) + 2 <= wide
    for head, value in chart.heads.items():
        x, y = left + head.head * wide, top + layers.index(head.layer) * HIGH
        if head in chart.off:
            off_card(page, x + 0.6, y + 0.6, wide - 1.2, HIGH - 1.2)
            continue
        rgb = shades.paint(np.array([value], np.float32))
        page.box(x, y, wide, HIGH, fill=tuple(rgb[0] / 255), edge=LIGHT_PAGE.paper, line=0.8)
        if fits:
            ink = tuple(contrasting_colour(rgb)[0] / 255)
            page.text(x + wide / 2, y + HIGH / 2, said[head], size=WRITTEN, across="center",
                      middle=True, colour=ink)  # fmt: skip
    every = max(1, int(np.ceil((last + 3) / wide)))
    full = style.extent(f"head {most - 1}", style.SMALL) + 3 <= wide
    for number in range(0, most, every):
        words = f"head {number}" if full else str(number)
        page.text(left + (number + 0.5) * wide, top - 4, words, size=style.SMALL, across="center",
                  colour=LIGHT_PAGE.secondary)  # fmt: skip
    if not full:
        page.text(left - 6, top - 4, "head", size=style.SMALL, across="right",
                  colour=LIGHT_PAGE.secondary)  # fmt: skip
    below = top + len(layers) * HIGH + 6
    return _colours(page, shades, left if page.width - left > LEGIBLE else 0.0, below)


def _layers(page: Page, chart: Answer, top: float) -> float:
    """A bar for each layer, to either side of 0; gives the last baseline."""
    layers, values = list(chart.layers), np.array(list(chart.layers.values()))
    left = _names(page, chart, layers, top, ROW)
    _bars(page, values, (left + 3, top, page.width - left - 3), False)
    return top + len(layers) * ROW + 1


def _bars(page: Page, values: Many, place: tuple[float, float, float], bare: bool) -> None:
    """Bars below each other from 0, to either side where some are below it; bare: without their
    numbers."""
    x, top, wide = place
    limit = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    signed = bool((values < 0).any())
    room = wide if bare else wide - VALUE
    zero, reach = (x + room / 2, room / 2) if signed else (x, room)
    for row, value in enumerate(values.tolist()):
        y = top + row * ROW
        if not np.isfinite(value):
            page.hatch(x, y + 2, room, ROW - 4, None)
            continue
        long = reach * abs(value) / limit
        fill = _ink(value) if signed else LIGHT_PAGE.secondary
        if long > 0.05:
            page.box(zero if value > 0 else zero - long, y + 1.8, long, ROW - 3.6, fill=fill)
        if not bare:
            page.text(x + wide, y + ROW / 2, short_number(value, signed), size=style.SMALL,
                      across="right", middle=True)  # fmt: skip
    page.lines([[(zero, top), (zero, top + ROW * len(values))]], LIGHT_PAGE.secondary, 0.5)
    if bare:
        words = f"±{short_number(limit)}" if signed else short_number(limit)
        page.text(x + wide, top + ROW * len(values) + 8, words, size=style.SMALL, across="right",
                  colour=LIGHT_PAGE.secondary)  # fmt: skip


# --- one head -------------------------------------------------------------------------------------


def _keys(page: Page, keys: Beside, top: float) -> float:
    """The keys below each other, in columns how they are looked at and what comes of it; gives
    the last baseline."""
    names = [
        labels.token_words(keys.prompt, int(start), int(end)) if end > 0 else labels.NOTHING
        for start, end in keys.spans
    ]
    widest = max((style.extent(one, style.SMALL) for one in names), default=10.0)
    left = min(max(widest, 12.0), 0.25 * page.width) + 5
    wide = (page.width - left) / len(keys.columns)
    bare = wide < 72
    titles = [labels.wrapped(name, wide - 6, style.SMALL) for name, _ in keys.columns]
    deep = max(len(one) for one in titles)
    begin = top + deep * 8.5 + 2
    for at, (lines, (_, values)) in enumerate(zip(titles, keys.columns, strict=True)):
        x = left + at * wide
        for number, line in enumerate(lines):
            base = top + style.SMALL + (number + deep - len(lines)) * 8.5
            page.text(x, base, line, size=style.SMALL, colour=LIGHT_PAGE.secondary)
        _bars(page, values, (x, begin, wide - 6 if at + 1 < len(keys.columns) else wide), bare)
    for row, name in enumerate(names):
        page.text(left - 5, begin + (row + 0.5) * ROW, labels.elide(name, left - 5, style.SMALL),
                  size=style.SMALL, across="right", middle=True)  # fmt: skip
    return begin + ROW * len(names) + (10 if bare else 1)
