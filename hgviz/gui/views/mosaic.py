"""Putting tiles together at the size of the screen."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Floats
from hgviz.gui.tiles import SIDE, Key, Source, Tiles, grid, on_screen, wanted
from hgviz.gui.views.sight import seen
from hgviz.gui.views.viewport import Along, Viewport
from hgviz.maps import Rule

Quality = Literal["exact", "near", "coarse"]


def compose(tiles: Tiles, source: Source, view: Viewport) -> Floats:
    """float32 (height, width) for pixels, or for cells where these have several pixels each.

    A pixel is the largest (signed: largest in magnitude) of the cells it stands for; NaN where
    nothing was read yet, not even coarsely.
    """
    block, top, left = _block(tiles, source, view)
    if view.down.scale * (1 << view.zoom) >= 1 - 1e-15:  # a pixel shows one cell, or a part of it
        return block
    (first, last), (start, end) = (
        _ends(along, view.zoom, edge) for along, edge in ((view.down, top), (view.across, left))
    )
    join = _larger if source.signed else np.maximum
    block = join(block[first], block[last])
    return join(np.take(block, start, axis=1), np.take(block, end, axis=1))


def spread(values: NDArray[Any], view: Viewport) -> NDArray[Any]:
    """Cells repeated to pixels where a cell has several; the first two axes of values."""
    if view.down.scale <= 1:
        return values
    for axis, along in enumerate((view.down, view.across)):
        cells = along.bounds()[:-1] - along.shown()[0]
        values = np.repeat(values, np.bincount(cells, minlength=values.shape[axis]), axis=axis)
    return values


def unseen(source: Source, view: Viewport) -> NDArray[np.bool_]:
    """bool, the shape of compose: where no cell is one that the query could look at."""
    rule, rows, columns = source.rule, ranges(view.down), ranges(view.across)
    if isinstance(rule, Rule) and _below(rule, rows, columns):
        return np.zeros((len(rows), len(columns)), bool)
    return ~seen(rule, rows, columns)


def quality(tiles: Tiles, source: Source, view: Viewport) -> Quality:
    """How true the picture is: near is within the error of the levels kept in the capture."""
    found: Quality = "exact"
    for key in wanted(source, view):
        tile = tiles.get(key)
        exact = tile is not None and tile.exact[on_screen(key, view)].all()
        if tile is None or not (tile.near or exact):
            return "coarse"
        if not exact:
            found = "near"
    return found


def _block(tiles: Tiles, source: Source, view: Viewport) -> tuple[Floats, int, int]:
    """The view's cells at its zoom, and the positions of the first."""
    zoom = view.zoom
    (top, bottom), (left, right) = (
        (first >> zoom, -(-last >> zoom))
        for first, last in (view.down.shown(), view.across.shown())
    )
    rows, columns, there = grid(source, view)
    block = np.empty((bottom - top, right - left), np.float32)
    for (i, j), some in np.ndenumerate(there):
        key = Key(source, zoom, rows[i], columns[j])
        above, before = key.i * SIDE - top, key.j * SIDE - left
        place = block[max(above, 0) : above + SIDE, max(before, 0) : before + SIDE]
        if not some:
            place[:] = 0
            continue
        first, start = max(-above, 0), max(-before, 0)
        end, stop = first + place.shape[0], start + place.shape[1]
        tile = tiles.get(key)
        if tile is None:
            place[:] = tiles.coarser(key, (first, end, start, stop))
        else:
            place[:] = tile.values[first:end, start:stop]
    return block, top << zoom, left << zoom


def _below(rule: Rule, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> bool:
    """Whether all of it is below the diagonal of a causal map."""
    plain = rule.causal and rule.whole and rule.keep is None
    return plain and bool(columns[-1, 0] * rule.stride_k < rows[0, 1] * rule.stride_q)


def ranges(along: Along) -> NDArray[np.int64]:
    """(n, 2): the cells of every pixel, or of every cell on screen where these are larger."""
    if along.scale >= 1:
        first, last = along.shown()
        cells = np.arange(first, last)
        return np.stack([cells, cells + 1], axis=1)
    bounds = along.bounds()
    return np.stack([bounds[:-1], bounds[1:]], axis=1)


def _ends(along: Along, zoom: int, edge: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and last cell of every pixel, from an edge on: at this zoom it has one or two."""
    cells = (along.bounds() - edge + (1 << zoom) - 1) >> zoom
    last = cells[1:] - 1
    return np.clip(cells[:-1], 0, last[-1]), np.clip(last, 0, last[-1])


def _larger(one: Floats, other: Floats) -> Floats:
    """By magnitude; of two equal ones the positive."""
    high, low = np.maximum(one, other), np.minimum(one, other)
    return np.where(high >= -low, high, low)
