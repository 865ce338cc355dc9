"""The pieces of maps that were read, and putting them together at the size of the screen."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Capture, Floats, Map, readonly
from hgviz.gui.views import signs
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

    @property
    def signed(self) -> bool:
        """Whether weights of this head can be negative."""
        return signs.of(self.map, self.head)


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
        with self._lock:
            keys = [key for key in wanted(source, view) if key not in self._tiles]
        if not keys:
            return []
        i = sum(key.i for key in keys) / len(keys)
        j = sum(key.j for key in keys) / len(keys)
        return sorted(keys, key=lambda key: (key.i - i) ** 2 + (key.j - j) ** 2)


def wanted(source: Source, view: Viewport) -> list[Key]:
    """The tiles a view needs, but those in which nothing is seen."""
    rows, columns, there = _grid(source, view)
    return [Key(source, view.zoom, rows[i], columns[j]) for i, j in np.argwhere(there)]


def read(key: Key) -> Floats:
    """One tile from its map."""
    source, reach = key.source, side(key.zoom) << key.zoom
    rows, columns = (
        (number * reach, min((number + 1) * reach, most))
        for number, most in zip((key.i, key.j), source.shape, strict=True)
    )
    return readonly(source.map.read(source.head, rows, columns, zoom=key.zoom))


def _grid(source: Source, view: Viewport) -> tuple[range, range, NDArray[np.bool_]]:
    """The tiles on screen, down and across, and in which of them anything is seen."""
    reach = side(view.zoom) << view.zoom
    numbers, ranges = [], []
    for along in (view.down, view.across):
        first, last = along.shown()
        numbers.append(range(first // reach, -(-last // reach)))
        starts = np.array(numbers[-1]) * reach
        ranges.append(np.stack([starts, np.minimum(starts + reach, along.cells)], axis=1))
    return numbers[0], numbers[1], seen(source.rule, ranges[0], ranges[1])


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
    (first, last), (start, end) = (
        _ends(along, view.zoom, edge) for along, edge in ((view.down, top), (view.across, left))
    )
    join = _larger if source.signed else np.maximum
    block = join(block[first], block[last])
    return join(block[:, start], block[:, end])


def spread(values: NDArray[Any], view: Viewport) -> NDArray[Any]:
    """Cells repeated to pixels where a cell has several; the first two axes of values."""
    if view.down.scale < 1:
        return values
    for axis, along in enumerate((view.down, view.across)):
        cells = along.bounds()[:-1] - along.shown()[0]
        values = np.repeat(values, np.bincount(cells, minlength=values.shape[axis]), axis=axis)
    return values


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
    rows, columns, there = _grid(source, view)
    top, left = rows.start * cells << zoom, columns.start * cells << zoom
    block = np.full((len(rows) * cells, len(columns) * cells), np.nan, np.float32)
    if source.thumb is not None and source.thumb.size:
        _underlay(block, source, zoom, top, left)
    for (i, j), some in np.ndenumerate(there):
        place = block[i * cells : (i + 1) * cells, j * cells : (j + 1) * cells]
        if not some:
            place[:] = 0
            continue
        key = Key(source, zoom, rows[i], columns[j])
        tile = tiles.get(key)
        if tile is None:
            _from_coarser(place, tiles, key)
        else:
            place[: tile.shape[0], : tile.shape[1]] = tile
    return block, top, left


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


def _ends(along: Along, zoom: int, edge: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and last cell of every pixel, from an edge on: at this zoom it has one or two."""
    cells = (along.bounds() - edge + (1 << zoom) - 1) >> zoom
    return cells[:-1], cells[1:] - 1


def _larger(one: Floats, other: Floats) -> Floats:
    """By magnitude; of two equal ones the positive."""
    high, low = np.maximum(one, other), np.minimum(one, other)
    return np.where(high >= -low, high, low)
