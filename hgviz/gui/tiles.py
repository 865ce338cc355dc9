"""The pieces of maps that were read, which of them a view lacks, and reading them."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Floats, Map
from hgviz.gui.views import signs
from hgviz.gui.views.sight import Sight, below, seen
from hgviz.gui.views.viewport import Box, Viewport
from hgviz.maps import Rule, thumb_zoom
from hgviz.maps.pyramid import lowest_zoom
from hgviz.maps.tiles import Tiled

SIDE = 256  # cells of a tile, the grid that maps compute on
MOST_READ = 4 * SIDE  # positions on a side of what is read at once: work can stop after it
FINE = 2  # zooms up to which of a tile no more products are read than are on screen
BYTES = 256 * 2**20
COARSER = 9  # levels to look back for something to show meanwhile

Range = tuple[int, int]


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

    def read(self, rows: Range, columns: Range, zoom: int) -> Floats:
        """The largest weights of cells of 2^zoom."""
        return self.map.read(self.head, rows, columns, zoom)

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

    A part is `side` cells square; exact (parts down, across). near: what is not exact comes from
    the levels kept in the capture, not from coarser cells.
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
    """Something to read: of a tile so many parts down and across from (i, j) on, or with i None
    what is stored of it.
    """

    key: Key
    i: int | None = None
    j: int = 0
    down: int = 1
    across: int = 1

    @property
    def ranges(self) -> tuple[Range, Range]:
        """The rows and columns of the map it covers."""
        if self.i is None:
            return self.key.ranges
        reach = side(self.key.zoom) << self.key.zoom
        spans = (self.i, self.down), (self.j, self.across)
        (top, bottom), (left, right) = (
            (first + number * reach, min(first + (number + count) * reach, last))
            for (number, count), (first, last) in zip(spans, self.key.ranges, strict=True)
        )
        return (top, bottom), (left, right)

    @property
    def place(self) -> tuple[slice, slice]:
        """Where it lies among the parts of its tile."""
        first = self.i or 0
        return slice(first, first + self.down), slice(self.j, self.j + self.across)


def side(zoom: int) -> int:
    """Cells of a part of a tile: what one product gives while it gives many, then what is read at
    once, which are the fewer the longer each takes to compute.
    """
    return max(1, (SIDE if zoom <= FINE else min(SIDE << zoom, MOST_READ)) >> zoom)


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
        if tile is not None and tile.exact[part.place].all():
            return  # another thread was faster
        values = source.read(*part.ranges, key.zoom)
        if tile is None and values.shape == key.cells:
            tile = self._put(key, Tile(key, values))
        elif tile is None:
            tile = self._begun(key)
        if tile.values is not values:
            top, left = part.i * tile.side, part.j * tile.side
            tile.values[top : top + values.shape[0], left : left + values.shape[1]] = values
        tile.exact[part.place] = True

    def _begun(self, key: Key) -> Tile:
        """The tile, filled with what is stored of it or, for want of that, with coarser cells."""
        lowest = key.source.lowest
        kept = lowest is not None and key.zoom >= lowest
        found = key.source.stored(*key.ranges, key.zoom) if kept else None
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

    def parts(self, keys: Iterable[Key], view: Viewport | None = None) -> Iterator[Part]:
        """What is not exact of some tiles, one after the other; only what is on screen of a view
        if one is given.
        """
        for key in keys:
            tile = self.get(key)
            left = _parts_seen(key) if tile is None else ~tile.exact
            i, j = (slice(0, None), slice(0, None)) if view is None else on_screen(key, view)
            yield from _pieces(key, left[i, j], i.start, j.start)

    def sketches(self, keys: Iterable[Key]) -> Iterator[Part]:
        """What is stored of some tiles and not here, of the coarser ones where they are finer."""
        for key in dict.fromkeys(filter(None, map(_kept, keys))):
            if self.get(key) is None:
                yield Part(key)

    def lacking(self, source: Source, view: Viewport) -> list[Key]:
        """The tiles not exact where a view shows them, the middle of the screen first."""
        keys = [key for key in wanted(source, view) if not self._has(key, view)]
        if not keys:
            return []
        i = sum(key.i for key in keys) / len(keys)
        j = sum(key.j for key in keys) / len(keys)
        return sorted(keys, key=lambda key: (key.i - i) ** 2 + (key.j - j) ** 2)

    def _has(self, key: Key, view: Viewport) -> bool:
        tile = self.get(key)
        return tile is not None and bool(tile.exact[on_screen(key, view)].all())

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
    """Equal for two views that need the same parts of tiles."""
    shown = (along.shown() for along in (view.down, view.across))
    reach = side(view.zoom) << view.zoom
    return source, view.zoom, *((first // reach, -(-last // reach)) for first, last in shown)


def on_screen(key: Key, view: Viewport) -> tuple[slice, slice]:
    """The parts of a tile that a view shows anything of."""
    reach, found = side(key.zoom) << key.zoom, []
    for (top, _), along in zip(key.ranges, (view.down, view.across), strict=True):
        first, last = along.shown()
        found.append(slice(max(0, (first - top) // reach), max(0, -((top - last) // reach))))
    return found[0], found[1]


def wanted(source: Source, view: Viewport) -> list[Key]:
    """The tiles a view needs, but those in which nothing is seen; none where it is of another map,
    which was shown meanwhile.
    """
    if not _of(source, view):
        return []
    rows, columns, there = grid(source, view)
    return [Key(source, view.zoom, rows[i], columns[j]) for i, j in np.argwhere(there)]


def grid(source: Source, view: Viewport) -> tuple[range, range, NDArray[np.bool_]]:
    """The tiles on screen, down and across, and in which of them anything is seen there."""
    reach, part = SIDE << view.zoom, side(view.zoom) << view.zoom
    numbers, ranges = [], []
    for along in (view.down, view.across):
        first, last = along.shown()
        numbers.append(range(first // reach, -(-last // reach)))
        starts = np.array(numbers[-1]) * reach
        end = min(-(-last // part) * part, along.cells)
        shown = np.maximum(starts, first // part * part), np.minimum(starts + reach, end)
        ranges.append(np.stack(shown, axis=1))
    return numbers[0], numbers[1], seen(source.rule, ranges[0], ranges[1])


def around(source: Source, view: Viewport) -> list[Key]:
    """The tiles next to those of a view."""
    if not _of(source, view):
        return []
    rows, columns, _ = grid(source, view)
    tall, wide = (-(-size // (SIDE << view.zoom)) for size in source.shape)
    ring = itertools.product(
        range(max(0, rows.start - 1), min(tall, rows.stop + 1)),
        range(max(0, columns.start - 1), min(wide, columns.stop + 1)),
    )
    keys = (Key(source, view.zoom, i, j) for i, j in ring if i not in rows or j not in columns)
    return [key for key in keys if _seen(key)]


def _of(source: Source, view: Viewport) -> bool:
    return source.shape == (view.down.cells, view.across.cells)


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


def _pieces(key: Key, left: NDArray[np.bool_], i: int, j: int) -> Iterator[Part]:
    """What to read for some parts of a tile (parts down, across), which begin at (i, j): all at
    once where it is little, else one after the other.
    """
    if key.zoom > FINE:
        yield from (Part(key, i + int(row), j + int(column)) for row, column in np.argwhere(left))
    elif left.all():
        yield Part(key, i, j, *left.shape)
    elif left.any():
        rows, columns = (np.flatnonzero(left.any(axis)) for axis in (1, 0))
        (top, bottom), (first, last) = ((int(one[0]), int(one[-1]) + 1) for one in (rows, columns))
        yield Part(key, i + top, j + first, bottom - top, last - first)


def _parts_seen(key: Key) -> NDArray[np.bool_]:
    """bool (parts down, across): in which parts of a tile anything is seen."""
    reach, (down, across) = side(key.zoom) << key.zoom, key.ranges
    if reach >= SIDE << key.zoom or below(key.source.rule, down[0], across[1] - 1):
        # nobody asks for a tile of which nothing is
        return np.ones([-(-(last - first) // reach) for first, last in (down, across)], bool)
    starts = [np.arange(first, last, reach) for first, last in (down, across)]
    rows, columns = (
        np.stack([one, np.minimum(one + reach, last)], axis=1)
        for one, (_, last) in zip(starts, (down, across), strict=True)
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
