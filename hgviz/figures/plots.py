"""The map of one head: query down, key across, the text on both sides."""

from __future__ import annotations

from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Capture, HgvizError, Map
from hgviz.figures import Facts, style
from hgviz.figures.labels import Mark, axis_marks, elide, visible
from hgviz.figures.page import Page, outline
from hgviz.figures.shades import Shades, bar_width, shades_of, upright_bar
from hgviz.figures.spec import POINTS, Spec
from hgviz.figures.unseen import reason, seen_cells
from hgviz.palettes import PAPER

LARGEST_CELL = 40.0
TALLEST = 1.35  # of the page's width
BAR_GAP = 8.0
TICK = 2.5
POINTER = 3.5
OFF = "off: this head is switched off"
CORNER = ("Key →", "Query ↓")


def compose(page: Page, spec: Spec, capture: Capture, facts: Facts) -> None:
    """Place the map of the selected head on the page."""
    chosen = spec.selection
    one = map_of(capture, chosen.layer, chosen.head)
    _, rows, columns = one.shape
    row = column = None
    if chosen.query is not None:
        row = capture.row(chosen.layer, token_in(capture, chosen.query))
    if chosen.key is not None:
        column = capture.column(chosen.layer, token_in(capture, chosen.key))
    room = min(0.2 * page.width, 64.0)
    zoom = zoom_for(max(rows, columns), page.width)
    weights = one.read(chosen.head, zoom=zoom)
    shades = shades_of(spec.display, one.signed, [weights])
    spans = capture.query_spans(chosen.layer), capture.key_spans(chosen.layer)

    # the labels depend on the size of a cell, and the cell on the room they leave: twice is enough
    left, right = room, BAR_GAP + bar_width(shades)
    for _ in range(2):
        cell = min((page.width - left - right) / columns, LARGEST_CELL, TALLEST * page.width / rows)
        down = axis_marks(capture.prompt, spans[0], cell, style.SMALL, room - POINTER - 4, row)
        across = axis_marks(capture.prompt, spans[1], cell, style.SMALL, room, column)
        left = max(_widest(down), style.extent(CORNER[1], style.SMALL)) + POINTER + 4
    width, height = cell * columns, cell * rows
    flat = _widest(across) <= cell - 2 and cell >= 12
    labels = style.SMALL if flat else _widest(across)
    top = title(page, spec, capture, facts) + POINTER + 4 + max(labels, 17.0)
    x = (page.width - left - width - right) / 2 + left

    draw_map(page, shades, weights, capture, spec, (x, top, width, height), zoom)
    _rows(page, down, x, top, cell)
    _columns(page, across, x, top, cell, flat)
    _corner(page, x - left + 1, top)
    _selected(page, (x, top, width, height), cell, row, column)
    off = chosen.head_id in capture.off
    notes = [OFF if off else reason(capture, [chosen.layer])]
    if not off:
        upright_bar(page, shades, x + width + BAR_GAP, top, height)
    if zoom and not off:
        notes.append(reduced(zoom))
        page.notes.append(reduced(zoom))
    bottom = legend(page, notes, x - left, top + height + 6, page.width - x + left)
    page.close(bottom + 2)


def map_of(capture: Capture, layer: int, head: int) -> Map:
    """The maps of a layer that has this head. Errors: HgvizError when it is not there."""
    layers = capture.spec.layers
    if not 0 <= layer < len(layers):
        raise HgvizError(
            f"this capture has no layer {layer}",
            f"its layers are 0 to {len(layers) - 1}",
            "Choose one of these",
        )
    found = capture.maps[layer]
    if found is None:
        raise HgvizError(
            f"layer {layer} is not in this capture",
            "the capture was interrupted before it got there",
            "Capture again: it goes on where it stopped",
        )
    if head not in found.heads:
        raise HgvizError(
            f"layer {layer} has no head {head}",
            f"its heads are {', '.join(map(str, found.heads)) or 'none'}",
            "Choose one of these",
        )
    return found


def token_in(capture: Capture, token: int) -> int:
    """The token itself. Errors: HgvizError for one beyond the text."""
    if not 0 <= token < len(capture.prompt):
        raise HgvizError(
            f"this capture has no token {token}",
            f"its text has {len(capture.prompt):,} tokens, numbered from 0",
            "Choose one of these",
        )
    return token


def zoom_for(positions: int, room: float) -> int:
    """The zoom at which so many positions are at most one dot each over room in points."""
    dots = max(room / POINTS * style.DOTS, 1)
    return max(0, ceil(log2(max(positions, 1) / dots)))


def reduced(zoom: int) -> str:
    """What a reduced map must say."""
    return f"each cell is the largest of {1 << zoom:,} × {1 << zoom:,} weights"


def title(page: Page, spec: Spec, capture: Capture, facts: Facts) -> float:
    """Write the title of a head's figure; gives where it ends."""
    if spec.title is not None:
        return heading(page, spec.title, "")
    head = spec.selection.head_id
    role = facts[head].role if head in facts else ""
    parts = [level_name(capture, head.layer), role]
    return heading(page, f"Head {head}", "  ·  ".join(filter(None, parts)))


def heading(page: Page, bold: str, plain: str) -> float:
    """A line in bold and in grey over the page, if any; gives where it ends."""
    if not bold:
        return 2.0
    bold = elide(visible(bold, space=" "), page.width, style.TITLE, bold=True)
    page.text(0, style.TITLE, bold, size=style.TITLE, bold=True)
    start = style.extent(bold, style.TITLE, bold=True) + 8
    words = elide(plain, page.width - start, style.TEXT) if plain else ""
    if words and words != "…":
        page.text(start, style.TITLE, words, colour=PAPER.secondary)
    return style.TITLE * 1.4 + 4


def level_name(capture: Capture, layer: int) -> str:
    """1:2, or 1:1 → 1:2 where keys and queries lie on different levels; "" if there is but one."""
    one = capture.spec.layers[layer]
    levels = capture.spec.levels
    if len(levels) == 1:
        return ""
    if one.level == one.key_level:
        return levels[one.level].label
    return f"{levels[one.key_level].label} → {levels[one.level].label}"


def draw_map(
    page: Page,
    shades: Shades,
    weights: NDArray[np.float32],
    capture: Capture,
    spec: Spec,
    box: tuple[float, float, float, float],
    zoom: int,
) -> None:
    """The raster of a map over box (x, y, width, height), hatched where nothing is seen."""
    x, y, width, height = box
    chosen = spec.selection
    if chosen.head_id in capture.off:
        off_card(page, *box)
        return
    seen = seen_cells(capture, chosen.layer, zoom)
    one = map_of(capture, chosen.layer, chosen.head)
    # the last cell may reach beyond the matrix: draw it whole, show the part inside
    cell = width / one.shape[2] * (1 << zoom), height / one.shape[1] * (1 << zoom)
    whole = weights.shape[1] * cell[0], weights.shape[0] * cell[1]
    page.image(shades.paint(weights, seen), x, y, *whole, cut=(width, height))
    if not seen.all():
        page.hatch(x, y, width, height, outline(~seen, x, y, cell))
    page.box(x, y, width, height, edge=PAPER.line)


def off_card(page: Page, x: float, y: float, width: float, height: float) -> None:
    """What stands for a head that is switched off."""
    page.box(x, y, width, height, fill=PAPER.unseen)
    page.hatch(x, y, width, height, None)
    page.box(x, y, width, height, edge=PAPER.secondary, line=0.8)
    size = min(style.TEXT, width / 2.2, height)
    if size >= 4:
        half = style.extent("off", size) / 2 + 1.5
        page.box(x + width / 2 - half, y + height / 2 - size * 0.6, 2 * half, size * 1.2,
                 fill=PAPER.unseen)  # fmt: skip
        page.text(x + width / 2, y + height / 2, "off", size=size, across="center", middle=True,
                  colour=PAPER.secondary)  # fmt: skip


def legend(
    page: Page, notes: list[str], x: float, y: float, width: float, hatched: bool = True
) -> float:
    """Notes below a figure, the first with a swatch of what is not seen; gives where they end."""
    at, line = x, y + 7
    for number, words in enumerate(notes):
        if not words:
            continue
        swatch = 12.0 if number == 0 else 0.0
        need = swatch + style.extent(words, style.SMALL)
        if at > x and at + need > x + width:
            at, line = x, line + 9
        if swatch:
            page.box(at, line - 6, 9, 6.5, fill=PAPER.unseen)
            if hatched:
                page.hatch(at, line - 6, 9, 6.5, None)
            page.box(at, line - 6, 9, 6.5, edge=PAPER.line)
        words = elide(words, width - swatch, style.SMALL)
        page.text(at + swatch, line, words, size=style.SMALL, colour=PAPER.secondary)
        at += need + 12
    return line + 2 if any(notes) else y


def _widest(marks: list[Mark]) -> float:
    return max((style.extent(m.words, style.SMALL, m.chosen) for m in marks), default=0.0)


def _ink(mark: Mark) -> str:
    return PAPER.mark_text if mark.chosen else PAPER.text


def _rows(page: Page, marks: list[Mark], x: float, y: float, cell: float) -> None:
    for mark in marks:
        at = y + mark.middle * cell
        page.lines([[(x - TICK, at), (x, at)]], PAPER.line)
        page.text(
            x - POINTER - 3, at, mark.words, size=style.SMALL, across="right", middle=True,
            bold=mark.chosen, colour=_ink(mark),
        )  # fmt: skip


def _columns(page: Page, marks: list[Mark], x: float, y: float, cell: float, flat: bool) -> None:
    for mark in marks:
        at = x + mark.middle * cell
        page.lines([[(at, y - TICK), (at, y)]], PAPER.line)
        page.text(
            at, y - POINTER - 3, mark.words, size=style.SMALL, bold=mark.chosen,
            across="center" if flat else "left", turned=not flat, middle=not flat,
            colour=_ink(mark),
        )  # fmt: skip


def _corner(page: Page, x: float, y: float) -> None:
    """Which axis is which, where neither has a label."""
    for line, words in enumerate(CORNER):
        page.text(x, y - 15 + 8.5 * line, words, size=style.SMALL, colour=PAPER.secondary)


def _selected(
    page: Page,
    box: tuple[float, float, float, float],
    cell: float,
    row: int | None,
    column: int | None,
) -> None:
    """Point at the selected row and column, ring the cell where they meet."""
    x, y, width, height = box
    half = max(cell, 2.0) / 2
    across = x + width if column is None else x + (column + 0.5) * cell - half
    down = y + height if row is None else y + (row + 0.5) * cell - half
    if row is not None:
        at = y + (row + 0.5) * cell
        page.polygon([(x, at), (x - POINTER, at - 2), (x - POINTER, at + 2)], PAPER.mark)
        pair = [[(x, at + side), (across, at + side)] for side in (-half, half)]
        page.lines(pair, PAPER.mark)
    if column is not None:
        at = x + (column + 0.5) * cell
        page.polygon([(at, y), (at - 2, y - POINTER), (at + 2, y - POINTER)], PAPER.mark)
        page.lines([[(at + side, y), (at + side, down)] for side in (-half, half)], PAPER.mark)
    if row is not None and column is not None:
        page.box(across, down, 2 * half, 2 * half, edge=PAPER.paper, line=1.6)
        page.box(across, down, 2 * half, 2 * half, edge=PAPER.text, line=0.7)
