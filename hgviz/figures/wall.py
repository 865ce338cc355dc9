"""The wall: the maps of all heads of all layers, in the shape of the model.

As BertViz's model view (Vig 2019). Widths and heights are in points.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from math import ceil, inf

import numpy as np

from hgviz.core import Capture, Floats, HeadId, HgvizError, Map
from hgviz.figures.content import Looked
from hgviz.figures.paper import style
from hgviz.figures.paper.frame import (
    Zooms,
    has_negative_weights,
    heading,
    legend,
    level_name,
    map_of,
    off_card,
    read_cells,
    reduced,
    zoom_for,
)
from hgviz.figures.paper.page import Page
from hgviz.figures.paper.shades import Shades, level_bar, shades_of
from hgviz.figures.spec import Spec
from hgviz.figures.unseen import reason, seen_cells
from hgviz.palettes import LIGHT_PAGE

SHRINK = 0.7  # of a map's side from one level to the next coarser
GAP, MARGIN = 3.0, 4.0  # between maps; of the shape around them
LARGEST, TALLEST = 66.0, 640.0  # a map, and all of them
QUANTILE = 0.995  # of the weights of a head, up to which its colours reach


@dataclass(frozen=True, slots=True)
class _Row:
    """A layer: rank of its finer level, top, size of its maps, zooms they are read at."""

    layer: int
    rank: int
    y: float
    width: float
    height: float
    zooms: Zooms

    @property
    def bottom(self) -> float:
        return self.y + self.height


@dataclass(frozen=True, slots=True)
class _Columns:
    """The heads of the widest level: their number, the middle of all, and the pitch of two."""

    count: int
    middle: float
    pitch: float

    def x(self, head: float, rank: int = 0) -> float:
        """The middle of a head's map in a row of this rank."""
        return self.middle + (head + 0.5 - self.count / 2) * self.pitch * SHRINK**rank


def compose(page: Page, spec: Spec, looked: Looked) -> None:
    """Place all maps of a capture on the page."""
    capture = looked.capture
    layers = [layer for layer in capture.spec.layers if layer.heads]
    if not layers:
        raise HgvizError("this capture has no heads: every one was removed from the model")
    maps = {layer.index: map_of(capture, layer.index, layer.heads[0]) for layer in layers}
    heads = [HeadId(layer, head) for layer, one in maps.items() for head in one.heads]
    count = 1 + max(head.head for head in heads)
    titles = max(style.extent(f"layer {layer}", style.SMALL) for layer in maps) + 5
    names = {layer: level_name(capture, layer) for layer in maps}
    if max(style.extent(name, style.SMALL) for name in names.values()) > page.width / 3:
        names = {layer: level_name(capture, layer, with_own=False) for layer in maps}
    has_shape = len({(layer.level, layer.key_level) for layer in layers}) > 1
    left = titles + (max(style.extent(name, style.SMALL) for name in names.values()) or -5)
    left += 6 + MARGIN * has_shape
    right = style.extent(str(count - 1), style.SMALL) / 2 - (page.width - left) / count / 2
    right = MARGIN if has_shape else max(0.0, right)
    pitch = (page.width - left - right) / count
    if spec.title is None:
        top = heading(page, "All heads", f"{len(maps):,} layers, {len(heads):,} heads")
    else:
        top = heading(page, spec.title, "")
    top += style.SMALL + 8
    side = min(pitch - min(GAP, 0.1 * pitch), LARGEST)
    rows = _rows(capture, maps, side, top, page.width)
    if (height := rows[-1].bottom - top) > TALLEST:
        side *= TALLEST / height
        rows = _rows(capture, maps, side, top, page.width)
    pitch = min(pitch, 1.3 * side)
    start = (page.width - left - right - pitch * count) / 2
    columns = _Columns(count, start + left + pitch * count / 2, pitch)

    if has_shape:
        for _, stack in groupby(rows, key=lambda row: _sequence(capture, row.layer)):
            _draw_shape(page, list(stack), columns)
    _draw_head_numbers(page, columns, top - MARGIN - 3)
    _draw_layer_names(page, rows, names, start, titles)
    shades = _draw_maps(page, spec, capture, maps, rows, columns)
    bottom = rows[-1].bottom + 2 * MARGIN
    notes = [reason(capture, heads)]
    if shades:
        edge = columns.x(0) - side / 2
        bottom = level_bar(page, shades, edge, bottom, page.width - edge) + 2
    else:
        notes.append(f"each map is coloured up to its own {100 * QUANTILE:.3g} % quantile")
        if any(has_negative_weights(capture, *head) for head in heads):
            notes.append("blue and red: weights below and above 0")
    if capture.off:
        notes.append("hatched and framed: switched off")
    if any(zooms := max((row.zooms for row in rows), key=sum)):
        page.notes.append(f"{reduced(zooms)}, or of fewer")
    page.close(legend(page, notes, 0, bottom, page.width, hatched=False) + 2)


def _rows(
    capture: Capture, maps: dict[int, Map], side: float, top: float, page: float
) -> list[_Row]:
    """Where each layer lies when a square map at full resolution is side points wide."""
    ranks: dict[int, int] = {}  # how coarse a level is among those of its sequence
    for level in capture.spec.levels:
        same = [one for one in capture.spec.levels if one.sequence == level.sequence]
        ranks[level.index] = same.index(level)
    rows: list[_Row] = []
    before: object = None
    for layer in (layer for layer in capture.spec.layers if layer.index in maps):
        _, queries, keys = maps[layer.index].shape
        rank = min(ranks[layer.level], ranks[layer.key_level])
        longest = side * SHRINK**rank
        levels, y = (layer.level, layer.key_level), top
        if rows:
            is_near = levels == before or layer.role == "cross"
            y = rows[-1].bottom
            y += min(GAP, 0.1 * side) if is_near else min(8.0, 0.3 * side)
            if _sequence(capture, rows[-1].layer) != _sequence(capture, layer.index):
                y += min(16.0, 0.3 * side)  # between an encoder and a decoder
        zoom = zoom_for(max(queries, keys), longest, page)
        # a map whose two texts differ greatly in length stays visible
        width = max(longest * min(1.0, keys / queries), 3.0)
        height = max(longest * min(1.0, queries / keys), 3.0)
        down, across = (
            min(zoom, zoom_for(*one, page)) for one in ((queries, height), (keys, width))
        )
        rows.append(_Row(layer.index, rank, y, width, height, (down, across)))
        before = levels
    return rows


def _sequence(capture: Capture, layer: int) -> str:
    """Whose rows a layer has: the encoder's, the decoder's."""
    return capture.spec.levels[capture.spec.layers[layer].level].sequence


def _draw_shape(page: Page, rows: list[_Row], columns: _Columns) -> None:
    """Draw the shape of the model behind its maps; resampling rows join two levels."""
    halves = [columns.pitch * columns.count / 2 * SHRINK**row.rank + MARGIN for row in rows]
    tints, last = LIGHT_PAGE.silhouette, len(rows) - 1
    for number, row in enumerate(rows):
        upper = MARGIN if number == 0 else (row.y - rows[number - 1].bottom) / 2
        lower = MARGIN if number == last else (rows[number + 1].y - row.bottom) / 2
        above = min(halves[number], halves[max(number - 1, 0)])
        below = min(halves[number], halves[min(number + 1, last)])
        right = [(above, row.y - upper), (halves[number], row.y), (halves[number], row.bottom),
                 (below, row.bottom + lower)]  # fmt: skip
        corners = [*right, *((-x, y) for x, y in reversed(right))]
        fill = tints[min(row.rank, len(tints) - 1)]
        page.polygon([(columns.middle + x, y) for x, y in corners], fill)


def _draw_head_numbers(page: Page, columns: _Columns, y: float) -> None:
    """Draw the numbers of the heads over the columns."""
    last, grey = columns.count - 1, LIGHT_PAGE.secondary
    is_full = style.extent(f"head {last}", style.SMALL) + 4 <= columns.pitch
    step = 1 if is_full else ceil((style.extent(str(last), style.SMALL) + 3) / columns.pitch)
    if not is_full:
        x = columns.x(-0.5) - 4
        page.text(x, y, "head", size=style.SMALL, colour=grey, across="right")
    for head in range(0, columns.count, step):
        words = f"head {head}" if is_full else str(head)
        page.text(columns.x(head), y, words, size=style.SMALL, colour=grey, across="center")


def _draw_layer_names(
    page: Page, rows: list[_Row], names: dict[int, str], x: float, indent: float
) -> None:
    """Draw number and level of every layer that has the room for a line."""
    before = -inf
    for row in rows:
        y = row.y + row.height / 2
        if y < before + style.SMALL * 1.15:
            continue
        page.text(x, y, f"layer {row.layer}", size=style.SMALL, middle=True)
        page.text(x + indent, y, names[row.layer], size=style.SMALL, middle=True,
                  colour=LIGHT_PAGE.secondary)  # fmt: skip
        before = y


def _draw_maps(
    page: Page, spec: Spec, capture: Capture, maps: dict[int, Map], rows: list[_Row],
    columns: _Columns,
) -> Shades | None:  # fmt: skip
    """Draw every map; returns the colours that all of them share, if they do."""
    weights: dict[HeadId, Floats] = {
        HeadId(row.layer, head): read_cells(maps[row.layer], head, row.zooms)
        for row in rows
        for head in maps[row.layer].heads
        if HeadId(row.layer, head) not in capture.off
    }
    is_signed = {head: has_negative_weights(capture, *head) for head in weights}
    shared = None
    if spec.display.shared or spec.display.limits is not None:
        shared = shades_of(spec.display, any(is_signed.values()), weights.values())
    for row in rows:
        shape = maps[row.layer].shape[1:]
        size = row.width, row.height
        for number in maps[row.layer].heads:
            x, head = columns.x(number, row.rank) - row.width / 2, HeadId(row.layer, number)
            if head not in weights:
                off_card(page, x, row.y, *size)
                continue
            cells = weights[head]
            shades = shared
            if shades is None:  # the first rows see few keys, so that their weights are large
                later = cells[len(cells) // 8 :]
                sizes = np.abs(later[later != 0])
                high = float(np.quantile(sizes, QUANTILE)) if sizes.size else 0.0
                limits = [np.array([high], np.float32)]
                shades = shades_of(spec.display, is_signed[head], limits)
            # the last cells of a raster may reach beyond the matrix
            height = row.height * (cells.shape[0] << row.zooms[0]) / shape[0]
            width = row.width * (cells.shape[1] << row.zooms[1]) / shape[1]
            seen = seen_cells(capture, row.layer, row.zooms, head=number)
            page.image(shades.paint(cells, seen), x, row.y, width, height, cut=size)
            page.box(x, row.y, *size, edge=LIGHT_PAGE.line, line=0.3)
    return shared
