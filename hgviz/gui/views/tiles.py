"""The pieces of maps that were read, which of them a view lacks, and reading them."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Capture, Floats, Map
from hgviz.gui.views import signs
from hgviz.gui.views.viewport import Box, Viewport
from hgviz.maps import LazyMap, Rule, thumb_zoom
from hgviz.maps.pyramid import lowest_zoom
from hgviz.maps.tiles import Tiled

SIDE = 256  # cells of a tile, the grid that maps compute on
MOST_READ = 4 * SIDE  # positions on a side of what is read at once: work can stop after it
BYTES = 256 * 2**20
COARSER = 9  # levels to look back for something to show meanwhile

Range = tuple[int, int]


class Sight(Protocol):
    """Which cells of a map exist, where no Rule can say it."""

    @property
    def causal(self) -> bool:
        """Whether a query looks at nothing that comes after it."""

    def seen(self, rows: NDArray[Any], columns: NDArray[Any]) -> NDArray[np.bool_]:
        """As the function of that name."""


@dataclass(frozen=True, eq=False)
class Source:
    """One head of one capture; compared by identity, so that old tiles never come back."""

    map: Map
    head: int
    rule: Rule | Sight
    thumb: Floats | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(queries, keys)"""
        return self.map.shape[1], self.map.shape[2]

    @property
    def signed(self) -> bool:
        """Whether weights of this head can be negative."""
        return signs.of(self.map, self.head)

    @cached_property
    def lowest(self) -> int | None:
        """The zoom of the finest level that the capture keeps of the map; None without any."""
        zoom = lowest_zoom(*self.shape)
        return None if zoom is None or self.stored((0, 0), (0, 0), zoom) is None else zoom

    def stored(self, rows: Range, columns: Range, zoom: int) -> Floats | None:
        """Cells of the levels kept in the capture; None where none is as fine."""
        if not isinstance(self.map, Tiled):
            return None
        return self.map.overview(self.head, rows, columns, zoom)


@dataclass(frozen=True, slots=True)
class Key:
    """Tile (i, j) of a source at a zoom: SIDE x SIDE cells, fewer at the far edges."""

    source: Source
    zoom: int
    i: int
    j: int

    @property
    def ranges(self) -> tuple[Range, Range]:
        """The rows and columns of the map it covers."""
        reach = SIDE << self.zoom
        (top, bottom), (left, right) = (
            (number * reach, min((number + 1) * reach, most))
            for number, most in zip((self.i, self.j), self.source.shape, strict=True)
        )
        return (top, bottom), (left, right)

    @property
    def cells(self) -> tuple[int, int]:
        """(rows, columns) of its values."""
        (top, bottom), (left, right) = self.ranges
        return -(-(bottom - top) >> self.zoom), -(-(right - left) >> self.zoom)


class Tile:
    """Cells of a map: values float32 (rows, columns), and which parts of them were read.

    A part is `side` cells square, what is read at once; exact (parts down, across). near: what is
    not exact comes from the levels kept in the capture, not from coarser cells.
    """

    __slots__ = ("exact", "near", "side", "values")

    def __init__(self, key: Key, values: Floats, near: bool = False) -> None:
        self.values, self.near, self.side = values, near, side(key.zoom)
        self.exact = ~_parts_seen(key)

    @property
    def whole(self) -> bool:
        """Whether all of it is exact."""
        return bool(self.exact.all())


@dataclass(frozen=True, slots=True)
class Part:
    """Something to read: part (i, j) of a tile, or with i None what is stored of it."""

    key: Key
    i: int | None = None
    j: int = 0

    @property
    def ranges(self) -> tuple[Range, Range]:
        """The rows and columns of the map it covers."""
        if self.i is None:
            return self.key.ranges
        reach = side(self.key.zoom) << self.key.zoom
        (top, bottom), (left, right) = (
            (first + number * reach, min(first + (number + 1) * reach, last))
            for number, (first, last) in zip((self.i, self.j), self.key.ranges, strict=True)
        )
        return (top, bottom), (left, right)


def side(zoom: int) -> int:
    """Cells of a part of a tile: fewer where each one takes long to compute."""
    return max(1, min(SIDE, MOST_READ >> zoom))


class Tiles:
    """Tiles by key, bounded in bytes; the one not used for longest goes first. Any thread."""

    def __init__(self, limit: int = BYTES) -> None:
        self.limit = limit
        self.size = 0
        self._lock = Lock()
        self._tiles: OrderedDict[Key, Tile] = OrderedDict()

    def __len__(self) -> int:
        return len(self._tiles)

    def get(self, key: Key) -> Tile | None:
        """The tile, now the one used last."""
        with self._lock:
            tile = self._tiles.get(key)
            if tile is not None:
                self._tiles.move_to_end(key)
            return tile

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._tiles.clear()
            self.size = 0

    def drop(self, source: Source) -> None:
        """Forget the tiles of a source."""
        with self._lock:
            for key in [key for key in self._tiles if key.source is source]:
                self.size -= self._tiles.pop(key).values.nbytes

    def read(self, part: Part) -> None:
        """Read a part into its tile."""
        key, source = part.key, part.key.source
        if part.i is None:
            self._begun(key)
            return
        tile = self.get(key)
        if tile is not None and tile.exact[part.i, part.j]:
            return  # another thread was faster
        values = source.map.read(source.head, *part.ranges, zoom=key.zoom)
        if tile is None and values.shape == key.cells:
            tile = self._put(key, Tile(key, values))
        elif tile is None:
            tile = self._begun(key)
        if tile.values is not values:
            top, left = part.i * tile.side, part.j * tile.side
            tile.values[top : top + values.shape[0], left : left + values.shape[1]] = values
        tile.exact[part.i, part.j] = True

    def _begun(self, key: Key) -> Tile:
        """The tile, filled with what is stored of it or, for want of that, with coarser cells."""
        found = key.source.stored(*key.ranges, key.zoom)
        tile = Tile(key, self.coarser(key) if found is None else found, found is not None)
        if tile.exact.any():  # nothing is seen there
            rows, columns = key.cells
            hidden = tile.exact.repeat(tile.side, 0).repeat(tile.side, 1)[:rows, :columns]
            np.copyto(tile.values, 0, where=hidden)
        return self._put(key, tile)

    def coarser(self, key: Key, box: Box | None = None) -> Floats:
        """What coarser tiles or the thumbnail show of the cells of a tile, or of a box of them
        (top, bottom, left, right); NaN where there is nothing.
        """
        (top, _), (left, _) = key.ranges
        box = box or (0, key.cells[0], 0, key.cells[1])
        for zoom in range(key.zoom + 1, key.zoom + COARSER):
            reach = SIDE << zoom
            found = self.get(Key(key.source, zoom, top // reach, left // reach))
            if found is not None:
                return _blown_up(found.values, (top % reach, left % reach), box, key.zoom, zoom)
        thumb = key.source.thumb
        if thumb is None or not thumb.size:
            return np.full((box[1] - box[0], box[3] - box[2]), np.nan, np.float32)
        return _blown_up(thumb, (top, left), box, key.zoom, thumb_zoom(*key.source.shape))

    def parts(self, keys: Iterable[Key]) -> Iterator[Part]:
        """What is not exact of some tiles, one after the other."""
        for key in keys:
            tile = self.get(key)
            left = _parts_seen(key) if tile is None else ~tile.exact
            yield from (Part(key, int(i), int(j)) for i, j in np.argwhere(left))

    def sketches(self, keys: Iterable[Key]) -> Iterator[Part]:
        """What is stored of some tiles and not here, of the coarser ones where they are finer."""
        for key in dict.fromkeys(filter(None, map(_kept, keys))):
            if self.get(key) is None:
                yield Part(key)

    def lacking(self, source: Source, view: Viewport) -> list[Key]:
        """The tiles not exact of a view, the middle of the screen first."""
        keys = [key for key in wanted(source, view) if not self._has(key)]
        if not keys:
            return []
        i = sum(key.i for key in keys) / len(keys)
        j = sum(key.j for key in keys) / len(keys)
        return sorted(keys, key=lambda key: (key.i - i) ** 2 + (key.j - j) ** 2)

    def _has(self, key: Key) -> bool:
        tile = self.get(key)
        return tile is not None and tile.whole

    def _put(self, key: Key, tile: Tile) -> Tile:
        """Keep a tile unless there is one, and return what is there; the oldest make room."""
        with self._lock:
            kept = self._tiles.setdefault(key, tile)
            if kept is tile:
                self.size += tile.values.nbytes
            while self.size > self.limit and len(self._tiles) > 1:
                self.size -= self._tiles.popitem(last=False)[1].values.nbytes
        return kept


def screen(source: Source, view: Viewport) -> tuple[object, ...]:
    """Equal for two views that need the same tiles."""
    shown = (along.shown() for along in (view.down, view.across))
    reach = SIDE << view.zoom
    return source, view.zoom, *((first // reach, -(-last // reach)) for first, last in shown)


def wanted(source: Source, view: Viewport) -> list[Key]:
    """The tiles a view needs, but those in which nothing is seen."""
    rows, columns, there = grid(source, view)
    return [Key(source, view.zoom, rows[i], columns[j]) for i, j in np.argwhere(there)]


def grid(source: Source, view: Viewport) -> tuple[range, range, NDArray[np.bool_]]:
    """The tiles on screen, down and across, and in which of them anything is seen."""
    reach = SIDE << view.zoom
    numbers, ranges = [], []
    for along in (view.down, view.across):
        first, last = along.shown()
        numbers.append(range(first // reach, -(-last // reach)))
        starts = np.array(numbers[-1]) * reach
        ranges.append(np.stack([starts, np.minimum(starts + reach, along.cells)], axis=1))
    return numbers[0], numbers[1], seen(source.rule, ranges[0], ranges[1])


def seen(rule: Rule | Sight, rows: NDArray[Any], columns: NDArray[Any]) -> NDArray[np.bool_]:
    """bool (rows, columns): whether any cell exists in ranges (n, 2) of rows and of columns."""
    if not isinstance(rule, Rule):
        return rule.seen(rows, columns)
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


def around(source: Source, view: Viewport) -> list[Key]:
    """The tiles next to those of a view."""
    rows, columns, _ = grid(source, view)
    tall, wide = (-(-size // (SIDE << view.zoom)) for size in source.shape)
    ring = itertools.product(
        range(max(0, rows.start - 1), min(tall, rows.stop + 1)),
        range(max(0, columns.start - 1), min(wide, columns.stop + 1)),
    )
    keys = (Key(source, view.zoom, i, j) for i, j in ring if i not in rows or j not in columns)
    return [key for key in keys if _seen(key)]


def _seen(key: Key) -> bool:
    rows, columns = (np.array([one]) for one in key.ranges)
    return bool(seen(key.source.rule, rows, columns).any())


def _kept(key: Key) -> Key | None:
    """The tile itself, or the coarser one in the finest level that a capture keeps of its map."""
    lowest = key.source.lowest
    if lowest is None:
        return None
    further = max(0, lowest - key.zoom)
    return Key(key.source, key.zoom + further, key.i >> further, key.j >> further)


def _parts_seen(key: Key) -> NDArray[np.bool_]:
    """bool (parts down, across): in which parts of a tile anything is seen."""
    if side(key.zoom) == SIDE:
        return np.ones((1, 1), bool)  # nobody asks for a tile of which nothing is
    reach = side(key.zoom) << key.zoom
    starts = [np.arange(first, last, reach) for first, last in key.ranges]
    rows, columns = (
        np.stack([one, np.minimum(one + reach, last)], axis=1)
        for one, (_, last) in zip(starts, key.ranges, strict=True)
    )
    return seen(key.source.rule, rows, columns)


def _blown_up(values: Floats, corner: Range, box: Box, zoom: int, coarse: int) -> Floats:
    """A box of cells out of coarser ones; both zooms, and where the box counts from."""
    down, across = (
        np.minimum((first + (np.arange(start, end) << zoom)) >> coarse, most - 1)
        for first, start, end, most in zip(corner, box[::2], box[1::2], values.shape, strict=True)
    )
    wide = np.take(values[down[0] : down[-1] + 1], across, axis=1)  # few rows, then whole ones
    return wide[down - down[0]]
