"""Neurons: how one query meets its keys, element by element, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hgviz.core import Prompt
from hgviz.figures.content.elements import Neurons, Stage
from hgviz.figures.paper import labels, style
from hgviz.figures.paper.axes import Many
from hgviz.figures.paper.frame import footnotes, heading
from hgviz.figures.paper.page import Page
from hgviz.figures.paper.shades import BAR, Shades
from hgviz.figures.spec import POINTS, Spec
from hgviz.language import short_number
from hgviz.palettes import LIGHT_PAGE, colours, matching_palette

ROW, GAP, BETWEEN = 8.4, 3.0, 7.0  # of a key; below the query; from part to part
LEAST = 30.0  # of a raster; where there is less room, the keys themselves are left out
NUMBER, BARE = 46.0, 28.5  # of a column of numbers, with them written out and as bars alone
BARS, APART = (12.0, 21.0), 4.0  # of bars beside numbers, the least and the most; to the longest
LABEL = 0.24  # of the page's width, for the names of the keys
LEGEND = 60.0  # of the bar of colours


@dataclass(frozen=True, slots=True)
class Raster:
    """Some elements: what they are called, of the query (d,) or None, of the keys (keys, d)."""

    name: str
    query: tuple[str, Many] | None
    keys: Many


def compose(page: Page, spec: Spec, chart: Neurons) -> None:
    """Place the query, its keys, their products and what comes of them on the page."""
    top = heading(page, chart.title if spec.title is None else spec.title,
                  chart.more if spec.title is None else "")  # fmt: skip
    names = [_name(chart.keys, span) for span in chart.spans]
    asks = _name(*chart.query)
    most = LABEL * page.width
    left = max(style.extent(one, style.SMALL, bold=True) for one in (*names, f"{asks} asks"))
    left = min(max(left, 22.0), most) + 5
    stages = _stages(chart, page.width)
    numbered = len(stages) * NUMBER + 2 * LEAST * len(chart.products) + left < page.width
    wide = NUMBER if numbered and page.width > 260 else BARE
    room = page.width - left - len(stages) * (wide + BETWEEN) - 1
    rasters = _rasters(chart, room)
    each = (room - BETWEEN * (len(rasters) - 1)) / len(rasters)
    base = top + style.SMALL
    begin = base + 3 + ROW + GAP
    _queries(page, chart, rasters, (left, base, each), asks)
    for number, one in enumerate(rasters):
        x = left + number * (each + BETWEEN)
        _cells(page, spec, one.keys, x, begin, each)
    x = left + room + BETWEEN
    for at, stage in enumerate(stages):
        _column(page, chart, stage, (x + at * (wide + BETWEEN), base, begin, wide))
    _labels(page, chart, names, left - 5, begin)
    bottom = begin + ROW * len(names)
    _mark(page, chart, begin, (left, x - BETWEEN))
    _elements(page, chart, rasters, (left, bottom, each))
    _key(page, spec, chart, rasters, bottom + 20)


def _name(prompt: Prompt, span: np.ndarray) -> str:
    """The characters of a key as they can be drawn."""
    start, end = (int(one) for one in span)
    return labels.token_words(prompt, start, end) if end > 0 else labels.NOTHING


def _stages(chart: Neurons, width: float) -> tuple[Stage, ...]:
    """All of them where there is room, else the score and the weight."""
    room = max(1, int((0.55 * width) // (BARE + BETWEEN)))
    few = [one for one in chart.stages if one.kind in ("score", "weight")]
    return chart.stages if len(chart.stages) <= room else tuple(few[-room:])


def _rasters(chart: Neurons, room: float) -> list[Raster]:
    """Keys and products of every sum; where these are too narrow, the products alone."""
    found: list[Raster] = []
    for one in chart.products:
        left, right, both = one.names
        found.append(Raster(right, (left, one.left), one.right))
        found.append(Raster(both, None, one.values))
    if (room - BETWEEN * (len(found) - 1)) / len(found) >= LEAST:
        return found
    return [Raster(one.names[2], (one.names[0], one.left), one.values) for one in chart.products]


# --- elements -------------------------------------------------------------------------------------


def _queries(
    page: Page, chart: Neurons, rasters: list[Raster], at: tuple[float, float, float], asks: str
) -> None:
    """The names of all parts, and the query above the keys that it meets."""
    left, base, each = at
    bold = labels.bold_in(asks, left - 5, style.SMALL)
    page.text(
        left - 5, base + 3 + ROW / 2, labels.elide(asks, left - 5, style.SMALL, bold),
        size=style.SMALL, bold=bold, across="right", middle=True, colour=LIGHT_PAGE.mark_text,
    )  # fmt: skip
    for number, one in enumerate(rasters):
        x = left + number * (each + BETWEEN)
        both = f"{one.query[0]}, then {one.name}" if one.query else one.name
        name = both if style.extent(both, style.SMALL) <= each else one.name
        page.text(x, base, labels.elide(name, each, style.SMALL), size=style.SMALL,
                  colour=LIGHT_PAGE.secondary)  # fmt: skip
        if one.query:
            _strip(page, one.query[1][None], x, base + 3, each)


def _cells(page: Page, spec: Spec, values: Many, x: float, y: float, width: float) -> None:
    """ElementProducts of all keys, a line of paper between two of them."""
    _strip(page, values, x, y, width, spec)
    high = ROW * len(values)
    inner = [[(x, y + ROW * at), (x + width, y + ROW * at)] for at in range(1, len(values))]
    if inner:
        page.lines(inner, LIGHT_PAGE.paper, 0.8)
    page.box(x, y, width, high, edge=LIGHT_PAGE.line, line=0.3)


def _strip(
    page: Page, values: Many, x: float, y: float, width: float, spec: Spec | None = None
) -> None:
    shown = _folded(page, values, width)
    page.image(_shades(spec or Spec(), values).paint(shown.astype(np.float32)), x, y, width,
               ROW * len(values))  # fmt: skip
    if len(values) == 1:
        page.box(x, y, width, ROW, edge=LIGHT_PAGE.mark, line=0.6)


def _shades(spec: Spec, values: Many) -> Shades:
    """Colours symmetric about 0, up to the largest of these elements."""
    limit = float(np.abs(values).max(initial=0.0)) or 1.0
    return Shades(
        matching_palette(spec.display.palette, True), (-limit, limit), spec.display.scale, True
    )


def _folded(page: Page, values: Many, width: float) -> Many:
    """The largest by magnitude of the elements that share a dot."""
    dots = max(1, int(width / POINTS * style.dots(page.width)))
    count = values.shape[1]
    if count <= dots:
        return values
    size = -(-count // dots)
    note = f"each cell is the largest of {size:,} elements"
    page.notes += [note] if note not in page.notes else []
    padded = np.pad(values, ((0, 0), (0, -count % size))).reshape(len(values), -1, size)
    best = np.abs(padded).argmax(2)
    found: Many = np.take_along_axis(padded, best[..., None], 2)[..., 0]
    return found


def _elements(
    page: Page, chart: Neurons, rasters: list[Raster], at: tuple[float, float, float]
) -> None:
    """The numbers of the first and the last element below the rasters."""
    left, bottom, each = at
    for number, one in enumerate(rasters):
        x, last = left + number * (each + BETWEEN), f"{one.keys.shape[1] - 1:,}"
        ends = style.extent("0", style.SMALL) + style.extent(last, style.SMALL)
        if ends + 3 > each:
            continue
        page.text(x, bottom + 8, "0", size=style.SMALL, colour=LIGHT_PAGE.secondary)
        page.text(x + each, bottom + 8, last, size=style.SMALL, across="right",
                  colour=LIGHT_PAGE.secondary)  # fmt: skip
        if style.extent("Element", style.SMALL) + 8 <= each - ends:
            page.text(x + each / 2, bottom + 8, "Element", size=style.SMALL, across="center",
                      colour=LIGHT_PAGE.secondary)  # fmt: skip


# --- what comes of it -----------------------------------------------------------------------------


def _column(
    page: Page, chart: Neurons, stage: Stage, at: tuple[float, float, float, float]
) -> None:
    """A number of every key as a bar, from 0 to either side; written out where there is room."""
    x, base, top, wide = at
    known = stage.values[np.isfinite(stage.values)]
    limit = float(np.abs(known).max(initial=0.0)) or 1.0
    signed = bool((known < 0).any())
    numbers = [short_number(float(value)) for value in stage.values] if wide >= NUMBER else []
    longest = max((style.extent(one, style.SMALL) for one in numbers), default=0.0)
    bars = min(max(BARS[0], wide - longest - APART), BARS[1]) if numbers else wide
    table = colours(matching_palette("", True))
    both = [tuple(float(one) / 255 for one in table[at]) for at in (40, 215)]
    zero = x + (bars / 2 if signed else 0.0)
    reach = bars / 2 if signed else bars
    title = labels.elide(stage.title, wide, style.SMALL)
    page.text(x, base, title, size=style.SMALL, colour=LIGHT_PAGE.secondary)
    for row, value in enumerate(stage.values):
        y = top + row * ROW
        if not np.isfinite(value):
            page.hatch(x, y + 1.5, bars, ROW - 3, None)
            continue
        long = reach * min(1.0, abs(float(value)) / limit)
        fill = both[int(value > 0)] if signed else LIGHT_PAGE.secondary
        if long > 0.05:
            page.box(zero if value > 0 else zero - long, y + 1.8, long, ROW - 3.6, fill=fill)
        if numbers:
            page.text(x + wide, y + ROW / 2, numbers[row], size=style.SMALL, across="right",
                      middle=True)  # fmt: skip
    bottom = top + ROW * len(stage.values)
    page.lines([[(zero, top), (zero, bottom)]], LIGHT_PAGE.secondary, 0.5)
    if not numbers:
        words = f"±{short_number(limit)}" if signed else short_number(limit)
        words = labels.elide(words, wide + 4, style.SMALL)
        page.text(x + wide, bottom + 8, words, size=style.SMALL, across="right",
                  colour=LIGHT_PAGE.secondary)  # fmt: skip


def _labels(page: Page, chart: Neurons, names: list[str], right: float, top: float) -> None:
    for at, name in enumerate(names):
        chosen = at == chart.marked
        bold = chosen and labels.bold_in(name, right, style.SMALL)
        page.text(
            right, top + (at + 0.5) * ROW, labels.elide(name, right, style.SMALL, bold),
            size=style.SMALL, across="right", middle=True, bold=bold,
            colour=LIGHT_PAGE.mark_text if chosen else LIGHT_PAGE.text,
        )  # fmt: skip


def _mark(page: Page, chart: Neurons, top: float, ends: tuple[float, float]) -> None:
    """Frame the key that is looked at."""
    if chart.marked is not None:
        page.box(ends[0], top + chart.marked * ROW, ends[1] - ends[0], ROW, edge=LIGHT_PAGE.mark,
                 line=0.8)  # fmt: skip


def _key(page: Page, spec: Spec, chart: Neurons, rasters: list[Raster], y: float) -> None:
    """The colours, which end at what, and what is not drawn."""
    shades = _shades(spec, np.ones((1, 1)))
    page.image(colours(shades.palette)[None], 0, y, LEGEND, BAR)
    page.box(0, y, LEGEND, BAR, edge=LIGHT_PAGE.line)
    for at, words, across in ((0.0, "−", "left"), (0.5, "0", "center"), (1.0, "+", "right")):
        page.text(at * LEGEND, y + BAR + 7, words, size=style.SMALL, across=across,
                  colour=LIGHT_PAGE.secondary)  # fmt: skip
    ends = []
    for one in rasters:
        parts = [one.query, (one.name, one.keys)] if one.query else [(one.name, one.keys)]
        for part in parts:
            if part is not None:
                limit = float(np.abs(part[1]).max(initial=0.0))
                ends.append(f"{part[0]} ±{short_number(limit)}")
    base = y + 6
    bent = {"sqrt": "by the square root", "log": "by the logarithm"}.get(shades.scale, "")
    said = ", ".join(filter(None, ("Colours end at " + ", ".join(ends), bent))) + "."
    lines = labels.wrapped(said, page.width - LEGEND - 10, style.SMALL)
    for line in lines:
        page.text(LEGEND + 8, base, line, size=style.SMALL, colour=LIGHT_PAGE.secondary)
        base += 9
    end = max(base - 9, y + BAR + 7)
    page.close(footnotes(page, [*chart.notes, *page.notes], 0.0, end + 1) + 4)
