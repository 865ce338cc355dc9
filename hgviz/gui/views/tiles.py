"""The pieces of maps that were read, and putting them together at the size of the screen."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Capture, Floats, Map, readonly
from hgviz.gui.views.viewport import Along, Viewport
from hgviz.maps import LazyMap, Rule, thumb_zoom

SIDE = 256  # cells of a tile, the grid that maps compute on
MOST_READ = 8 * SIDE  # positions on a side of one tile, so that work can stop between two
BYTES = 256 * 2**20
COARSER = 8  # levels to look back for something to show meanwhile


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One head of one capture; compared by identity, so that old tiles never come back."""

    map: Map
    head: int
    rule: Rule
    thumb: Floats | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(queries, keys)"""
        return self.map.shape[1], self.map.shape[2]


@dataclass(frozen=True, slots=True)
class Key:
    """Tile (i, j) of a source at a zoom."""

    source: Source
    zoom: int
    i: int
    j: int


def side(zoom: int) -> int:
    """Cells of a tile at a zoom: fewer where each one takes long to compute."""
    return max(1, min(SIDE, MOST_READ >> zoom))


class Tiles:
    """Tiles by key, bounded in bytes; the one not used for longest goes first. Any thread."""

    def __init__(self, limit: int = BYTES) -> None:
        self.limit = limit
        self.size = 0
        self._lock = Lock()
        self._tiles: OrderedDict[Key, Floats] = OrderedDict()

    def __len__(self) -> int:
        return len(self._tiles)

    def get(self, key: Key) -> Floats | None:
        """The tile, now the one used last."""
        with self._lock:
            tile = self._tiles.get(key)
            if tile is not None:
                self._tiles.move_to_end(key)
            return tile

    def put(self, key: Key, tile: Floats) -> None:
        """Keep a tile; the oldest make room."""
        with self._lock:
            old = self._tiles.pop(key, None)
            self.size += tile.nbytes - (old.nbytes if old is not None else 0)
            self._tiles[key] = tile
            while self.size > self.limit and len(self._tiles) > 1:
                self.size -= self._tiles.popitem(last=False)[1].nbytes

    def fetch(self, key: Key) -> Floats:
        """The tile, read if it is not here."""
        tile = self.get(key)
        if tile is None:
            tile = read(key)
            self.put(key, tile)
        return tile

    def drop(self, source: Source) -> None:
        """Forget the tiles of a source."""
        with self._lock:
            for key in [key for key in self._tiles if key.source is source]:
                self.size -= self._tiles.pop(key).nbytes

    def missing(self, source: Source, view: Viewport) -> list[Key]:
        """What is not here of the view, the middle of the screen first."""
        keys = [key for key in wanted(source, view) if key not in self._tiles]
        if not keys:
            return []
        i = sum(key.i for key in keys) / len(keys)
        j = sum(key.j for key in keys) / len(keys)
        return sorted(keys, key=lambda key: (key.i - i) ** 2 + (key.j - j) ** 2)


def wanted(source: Source, view: Viewport) -> Iterator[Key]:
    """The tiles a view needs, but those in which nothing is seen."""
    cells = side(view.zoom) << view.zoom
    rows, columns = source.shape
    (top, bottom), (left, right) = view.down.shown(), view.across.shown()
    for i in range(top // cells, -(-bottom // cells)):
        for j in range(left // cells, -(-right // cells)):
            corner = np.array([[i * cells, min((i + 1) * cells, rows)]])
            across = np.array([[j * cells, min((j + 1) * cells, columns)]])
            if seen(source.rule, corner, across)[0, 0]:
                yield Key(source, view.zoom, i, j)


def read(key: Key) -> Floats:
    """One tile from its map."""
    cells = side(key.zoom) << key.zoom
    tile = key.source.map.read(
        key.source.head,
        rows=(key.i * cells, min((key.i + 1) * cells, key.source.shape[0])),
        columns=(key.j * cells, min((key.j + 1) * cells, key.source.shape[1])),
        zoom=key.zoom,
    )
    return readonly(tile)


# --- putting together -----------------------------------------------------------------------------


def compose(tiles: Tiles, source: Source, view: Viewport) -> Floats:
    """float32 (height, width) for pixels, or for cells where these have several pixels each.

    A pixel is the largest (signed: largest in magnitude) of the cells it stands for; NaN where
    nothing was read yet, not even coarsely.
    """
    block, top, left = _block(tiles, source, view)
    if view.down.scale >= 1:
        (first, last), (start, end) = view.down.shown(), view.across.shown()
        return block[first - top : last - top, start - left : end - left]
    zoom = view.zoom
    down = (view.down.bounds() - top) >> zoom
    across = (view.across.bounds() - left) >> zoom
    block = block[: _ceil(view.down.bounds()[-1] - top, zoom)]
    block = block[:, : _ceil(view.across.bounds()[-1] - left, zoom)]
    join = _largest if source.map.signed else np.maximum.reduceat
    return join(join(block, down[:-1], axis=0), across[:-1], axis=1)


def spread(values: NDArray[Any], view: Viewport) -> NDArray[Any]:
    """Cells repeated to pixels where a cell has several; the first two axes of values."""
    if view.down.scale < 1:
        return values
    down, across = view.down.bounds()[:-1], view.across.bounds()[:-1]
    return values[(down - view.down.shown()[0])[:, None], across - view.across.shown()[0]]


def unseen(source: Source, view: Viewport) -> NDArray[np.bool_]:
    """bool, the shape of compose: where no cell is one that the query could look at."""
    return ~seen(source.rule, _ranges(view.down), _ranges(view.across))


def seen(rule: Rule, rows: NDArray[Any], columns: NDArray[Any]) -> NDArray[np.bool_]:
    """bool (rows, columns): whether any cell exists in ranges (n, 2) of rows and of columns."""
    top, bottom = (rows[:, end, None] * rule.stride_q for end in (0, 1))
    left, right = (columns[None, :, end] * rule.stride_k for end in (0, 1))
    found = np.ones((len(rows), len(columns)), bool)
    if rule.causal:
        found &= left < bottom
    if rule.windowed:
        group = max(rule.stride_q, rule.stride_k)
        found &= top // group <= (right - 1) // group
        found &= left // group <= (bottom - 1) // group
    if rule.keep is not None:
        real = np.concatenate([[0], np.cumsum(rule.keep)])
        ends = np.minimum(columns, len(rule.keep))
        found &= real[ends[:, 1]] > real[ends[:, 0]]
    return found


def rule_of(capture: Capture, layer: int) -> Rule:
    """Which cells exist in the maps of a layer."""
    one = capture.spec.layers[layer]
    own = capture.maps[layer]
    if isinstance(own, LazyMap):
        return own.factors.rule
    levels = capture.spec.levels
    return Rule(
        scale=1.0,
        activations=one.activations,
        norms=(),
        stride_q=levels[one.level].stride or 1,
        stride_k=levels[one.key_level].stride or 1,
        causal=one.causal,
        windowed=one.window is not None,
    )


def _block(tiles: Tiles, source: Source, view: Viewport) -> tuple[Floats, int, int]:
    """The view's cells at its zoom in whole tiles, and the positions of its first cell."""
    zoom, cells = view.zoom, side(view.zoom)
    reach = cells << zoom
    (top, bottom), (left, right) = view.down.shown(), view.across.shown()
    first, last = top // reach, _up(bottom, reach)
    start, end = left // reach, _up(right, reach)
    block = np.full(((last - first) * cells, (end - start) * cells), np.nan, np.float32)
    if source.thumb is not None and source.thumb.size:
        _underlay(block, source, zoom, first * reach, start * reach)
    for i in range(first, last):
        for j in range(start, end):
            place = block[(i - first) * cells :, (j - start) * cells :][:cells, :cells]
            tile = tiles.get(Key(source, zoom, i, j))
            if tile is None:
                _from_coarser(place, tiles, Key(source, zoom, i, j))
            else:
                place[: tile.shape[0], : tile.shape[1]] = tile
    return block, first * reach, start * reach


def _underlay(block: Floats, source: Source, zoom: int, top: int, left: int) -> None:
    """The thumbnail, blown up: better than nothing."""
    assert source.thumb is not None
    coarse = thumb_zoom(*source.shape)
    down, across = (
        np.minimum((first + (np.arange(count) << zoom)) >> coarse, most - 1)
        for first, count, most in zip((top, left), block.shape, source.thumb.shape, strict=True)
    )
    block[:] = source.thumb[down[:, None], across]


def _from_coarser(place: Floats, tiles: Tiles, key: Key) -> None:
    """What a coarser tile shows of a missing one."""
    top, left = (key.i * side(key.zoom)) << key.zoom, (key.j * side(key.zoom)) << key.zoom
    for zoom in range(key.zoom + 1, key.zoom + COARSER):
        reach = side(zoom) << zoom
        found = tiles.get(Key(key.source, zoom, top // reach, left // reach))
        if found is None:
            continue
        down = (top % reach + (np.arange(place.shape[0]) << key.zoom)) >> zoom
        across = (left % reach + (np.arange(place.shape[1]) << key.zoom)) >> zoom
        down, across = down[down < found.shape[0]], across[across < found.shape[1]]
        place[: len(down), : len(across)] = found[down[:, None], across]
        return


def _ranges(along: Along) -> NDArray[np.int64]:
    """(n, 2): the cells of every pixel, or of every cell on screen where these are larger."""
    if along.scale >= 1:
        first, last = along.shown()
        cells = np.arange(first, last)
        return np.stack([cells, cells + 1], axis=1)
    bounds = along.bounds()
    return np.stack([bounds[:-1], bounds[1:]], axis=1)


def _largest(values: Floats, starts: NDArray[np.int64], axis: int) -> Floats:
    high = np.maximum.reduceat(values, starts, axis=axis)
    low = np.minimum.reduceat(values, starts, axis=axis)
    return np.where(high >= -low, high, low)


def _ceil(cells: int, zoom: int) -> int:
    return int(-(-cells // (1 << zoom)))


def _up(cells: int, reach: int) -> int:
    return -(-cells // reach)
