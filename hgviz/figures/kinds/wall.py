"""The wall: every head of every layer, in order of computation, in the shape of the model."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from math import ceil, inf

import numpy as np

from hgviz.core import Capture, Floats, HeadId, HgvizError, Map
from hgviz.figures.content import Looked
from hgviz.figures.content.unseen import reason, seen_cells
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
from hgviz.palettes import LIGHT_PAGE

SHRINK = 0.7  # of a map's side from one level to the next coarser
GAP, GROUP_GAP, MARGIN = 3.0, 8.0, 4.0
APART = 16.0  # between an encoder and a decoder
THINNEST = 3.0  # of a map whose two texts differ greatly in length
LARGEST, TALLEST = 66.0, 640.0
QUANTILE = 0.995


@dataclass(frozen=True, slots=True)
class Row:
    """A layer's place: rank of its finer level, top, size of its maps, zooms they are read at."""

    layer: int
    rank: int
    y: float
    width: float
    height: float
    zooms: Zooms


def compose(page: Page, spec: Spec, looked: Looked) -> None:
    """Place all maps of a capture on the page."""
    capture = looked.capture
    layers = [layer for layer in capture.spec.layers if layer.heads]
    if not layers:
        raise HgvizError("this capture has no heads: every one was removed from the model")
    maps = {layer.index: map_of(capture, layer.index, layer.heads[0]) for layer in layers}
    count = 1 + max(head for one in maps.values() for head in one.heads)
    titles = max(style.extent(f"layer {one}", style.SMALL) for one in maps) + 5
    names = {one: level_name(capture, one) for one in maps}
    if max(style.extent(name, style.SMALL) for name in names.values()) > page.width / 3:
        names = {one: level_name(capture, one, with_own=False) for one in maps}
    # there is a shape behind the maps
    shaped = len({(layer.level, layer.key_level) for layer in layers}) > 1
    left = titles + (max(style.extent(name, style.SMALL) for name in names.values()) or -5)
    left += 6 + MARGIN * shaped
    right = style.extent(str(count - 1), style.SMALL) / 2 - (page.width - left) / count / 2
    right = MARGIN if shaped else max(0.0, right)
    pitch = (page.width - left - right) / count
    top = _title(page, spec, maps) + style.SMALL + 8
    side = min(pitch - min(GAP, 0.1 * pitch), LARGEST)
    rows = _rows(capture, maps, side, top, page.width)
    if (tall := rows[-1].y + rows[-1].height - top) > TALLEST:
        side *= TALLEST / tall
        rows = _rows(capture, maps, side, top, page.width)
    pitch = min(pitch, 1.3 * side)
    start = (page.width - left - right - pitch * count) / 2
    middle = start + left + pitch * count / 2

    for stack in _stacks(capture, rows) if shaped else []:
        _silhouette(page, stack, middle, pitch * count)
    _columns(page, count, middle, pitch, top - MARGIN - 3)
    _titles(page, rows, names, start, titles)
    shared = _paint(page, spec, capture, maps, rows, (middle, pitch, count))
    bottom = rows[-1].y + rows[-1].height + 2 * MARGIN
    notes = [reason(capture, _heads(maps))]
    if shared:
        edge = middle - (pitch * (count - 1) + side) / 2  # of the maps
        bottom = level_bar(page, shared, edge, bottom, page.width - edge) + 2
    else:
        notes.append(f"each map is coloured up to its own {100 * QUANTILE:.3g} % quantile")
        if any(has_negative_weights(capture, *head) for head in _heads(maps)):
            notes.append("blue and red: weights below and above 0")
    if capture.off:
        notes.append("hatched and framed: switched off")
    if any(zooms := max((row.zooms for row in rows), key=sum)):
        page.notes.append(f"{reduced(zooms)}, or of fewer")
    page.close(legend(page, notes, 0, bottom, page.width, hatched=False) + 2)


def _heads(maps: dict[int, Map]) -> list[HeadId]:
    return [HeadId(layer, head) for layer, one in maps.items() for head in one.heads]


def _title(page: Page, spec: Spec, maps: dict[int, Map]) -> float:
    """How much is shown, or the title given; gives where the line ends."""
    if spec.title is not None:
        return heading(page, spec.title, "")
    heads = sum(len(one.heads) for one in maps.values())
    return heading(page, "All heads", f"{len(maps):,} layers, {heads:,} heads")


def _rows(
    capture: Capture, maps: dict[int, Map], side: float, top: float, page: float
) -> list[Row]:
    """Where each layer lies when a square map at full resolution is side points wide."""
    ranks = _ranks(capture)
    rows: list[Row] = []
    y, before, apart = top, None, min(APART, 0.3 * side)
    for layer in (one for one in capture.spec.layers if one.index in maps):
        _, queries, keys = maps[layer.index].shape
        rank = min(ranks[layer.level], ranks[layer.key_level])
        longest = side * SHRINK**rank
        width, height = longest * min(1.0, keys / queries), longest * min(1.0, queries / keys)
        group = (layer.level, layer.key_level)
        if rows:
            near = group == before or layer.role == "cross"
            y += min(GAP, 0.1 * side) if near else min(GROUP_GAP, 0.3 * side)
            y += 0 if _stack(capture, rows[-1].layer) == _stack(capture, layer.index) else apart
        every = zoom_for(max(queries, keys), longest, page)
        width, height = max(width, THINNEST), max(height, THINNEST)
        sides = (queries, height), (keys, width)
        down, across = (min(every, zoom_for(*one, page)) for one in sides)
        rows.append(Row(layer.index, rank, y, width, height, (down, across)))
        y, before = y + rows[-1].height, group
    return rows


def _ranks(capture: Capture) -> dict[int, int]:
    """How coarse each level is among those of its own sequence, 0 for the finest."""
    ranks: dict[int, int] = {}
    for level in capture.spec.levels:
        same = [one for one in capture.spec.levels if one.sequence == level.sequence]
        ranks[level.index] = same.index(level)
    return ranks


def _stack(capture: Capture, layer: int) -> str:
    """Whose rows a layer has: the encoder's, the decoder's."""
    return capture.spec.levels[capture.spec.layers[layer].level].sequence


def _stacks(capture: Capture, rows: list[Row]) -> list[list[Row]]:
    """The rows of each stack."""
    return [list(own) for _, own in groupby(rows, key=lambda row: _stack(capture, row.layer))]


def _silhouette(page: Page, rows: list[Row], middle: float, width: float) -> None:
    """The shape of the model behind its maps; resampling rows join two levels."""
    half = [width / 2 * SHRINK**row.rank + MARGIN for row in rows]
    tints = LIGHT_PAGE.silhouette
    for at, row in enumerate(rows):
        upper = row.y - (MARGIN if at == 0 else (row.y - rows[at - 1].y - rows[at - 1].height) / 2)
        end = row.y + row.height
        lower = end + (MARGIN if at == len(rows) - 1 else (rows[at + 1].y - end) / 2)
        above = min(half[at], half[max(at - 1, 0)])
        below = min(half[at], half[min(at + 1, len(rows) - 1)])
        right = [(above, upper), (half[at], row.y), (half[at], end), (below, lower)]
        corners = [*right, *((-x, y) for x, y in reversed(right))]
        fill = tints[min(row.rank, len(tints) - 1)]
        page.polygon([(middle + x, y) for x, y in corners], fill)


def _columns(page: Page, count: int, middle: float, pitch: float, y: float) -> None:
    """The numbers of the heads over the columns."""
    full = style.extent(f"head {count - 1}", style.SMALL) + 4 <= pitch
    every = ceil((style.extent(str(count - 1), style.SMALL) + 3) / pitch)
    left = middle - pitch * count / 2
    if not full:
        page.text(
            left - 4, y, "head", size=style.SMALL, colour=LIGHT_PAGE.secondary, across="right"
        )
    for head in range(0, count, 1 if full else every):
        page.text(
            left + (head + 0.5) * pitch, y, f"head {head}" if full else str(head),
            size=style.SMALL, colour=LIGHT_PAGE.secondary, across="center",
        )  # fmt: skip


def _titles(
    page: Page, rows: list[Row], names: dict[int, str], start: float, second: float
) -> None:
    """Number and level of every layer that has the room for a line."""
    end = -inf
    for row in rows:
        middle = row.y + row.height / 2
        if middle < end + style.SMALL * 1.15:
            continue
        page.text(start, middle, f"layer {row.layer}", size=style.SMALL, middle=True)
        page.text(
            start + second, middle, names[row.layer], size=style.SMALL, middle=True,
            colour=LIGHT_PAGE.secondary,
        )  # fmt: skip
        end = middle


def _paint(
    page: Page,
    spec: Spec,
    capture: Capture,
    maps: dict[int, Map],
    rows: list[Row],
    columns: tuple[float, float, int],
) -> Shades | None:
    """Paint every map; gives the colours that all of them share, if they do."""
    off = capture.off
    tiles: dict[HeadId, Floats] = {
        HeadId(row.layer, head): read_cells(maps[row.layer], head, row.zooms)
        for row in rows
        for head in maps[row.layer].heads
        if HeadId(row.layer, head) not in off
    }
    kinds = {head: has_negative_weights(capture, *head) for head in tiles}
    signed = any(kinds.values())
    together = spec.display.shared or spec.display.limits is not None
    shared = shades_of(spec.display, signed, tiles.values()) if together else None
    middle, pitch, count = columns
    for row in rows:
        one = maps[row.layer]
        for head in one.heads:
            column = (head + 0.5 - count / 2) * pitch * SHRINK**row.rank
            x, box = middle + column - row.width / 2, (row.width, row.height)
            here = HeadId(row.layer, head)
            tile = tiles.get(here)
            if tile is None:
                off_card(page, x, row.y, *box)
                continue
            seen = seen_cells(capture, row.layer, row.zooms, head=head)
            shades = shared or _own(spec, kinds[here], tile)
            page.image(shades.paint(tile, seen), x, row.y, *_whole(one, tile, row), cut=box)
            page.box(x, row.y, *box, edge=LIGHT_PAGE.line, line=0.3)
    return shared


def _whole(one: Map, tile: Floats, row: Row) -> tuple[float, float]:
    """The size of a raster whose last cells may reach beyond the matrix."""
    return (
        row.width * (tile.shape[1] << row.zooms[1]) / one.shape[2],
        row.height * (tile.shape[0] << row.zooms[0]) / one.shape[1],
    )


def _own(spec: Spec, signed: bool, weights: Floats) -> Shades:
    """The colours of one head up to its own quantile, the first rows left out: they see little."""
    later = weights[len(weights) // 8 :]
    found = np.abs(later[later != 0])
    high = float(np.quantile(found, QUANTILE)) if found.size else 0.0
    return shades_of(spec.display, signed, [np.array([high], np.float32)])
