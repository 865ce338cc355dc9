"""Tiles of a map: which a picture needs, reading them, putting them together."""

from __future__ import annotations

import itertools
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from threading import Condition, Lock, Thread
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Floats, Map
from hgviz.gui.grid import Bools, Box, Cells, MapAxis, Viewport, below, is_signed, seen
from hgviz.jobs import Post
from hgviz.maps import thumb_zoom
from hgviz.maps.overview import larger, lowest_zoom
from hgviz.maps.tiles import Tiled

# --- tiles ----------------------------------------------------------------------------------------

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
    rule: Cells
    thumb: Floats | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(queries, keys)"""
        return self.map.shape[1], self.map.shape[2]

    @cached_property
    def signed(self) -> bool:
        """Whether weights of this head can be negative."""
        return is_signed(self.map, self.head)

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
        rows, columns = (-(-(last - first) >> self.zoom) for first, last in self.ranges)
        return rows, columns


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

    def drop(self, sources: Sequence[Source]) -> None:
        """Forget the tiles of some sources."""
        with self._lock:
            for key in [key for key in self._tiles if key.source in sources]:
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
        values = source.map.read(source.head, *part.ranges, key.zoom)
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
        stored = key.source.stored(*key.ranges, key.zoom) if kept else None
        tile = Tile(key, self.coarser(key) if stored is None else stored, stored is not None)
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
            tile = self.get(Key(key.source, zoom, top // reach, left // reach))
            if tile is not None:
                return _blown_up(tile.values, (top % reach, left % reach), box, key.zoom, zoom)
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
            i = j = slice(0, None)
            if view is not None:
                i = _shown_parts(key.i, key.zoom, view.down)
                j = _shown_parts(key.j, key.zoom, view.across)
            yield from _pieces(key, left[i, j], i.start, j.start)

    def sketches(self, keys: Iterable[Key]) -> Iterator[Part]:
        """What is stored of some tiles and not here, of the coarser ones where they are finer."""
        for key in dict.fromkeys(filter(None, map(_kept, keys))):
            if self.get(key) is None:
                yield Part(key)

    def lacking(self, source: Source, view: Viewport) -> list[Key]:
        """The tiles not exact where a view shows them, the middle of the screen first."""
        keys = [
            key for key, parts in wanted(source, view).items()
            if (tile := self.get(key)) is None or not tile.exact[parts].all()
        ]  # fmt: skip
        if not keys:
            return []
        i = sum(key.i for key in keys) / len(keys)
        j = sum(key.j for key in keys) / len(keys)
        return sorted(keys, key=lambda key: (key.i - i) ** 2 + (key.j - j) ** 2)

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
    shown = (along.shown for along in (view.down, view.across))
    reach = side(view.zoom) << view.zoom
    return source, view.zoom, *((first // reach, -(-last // reach)) for first, last in shown)


def _shown_parts(number: int, zoom: int, axis: MapAxis) -> slice:
    """The parts of the tiles of one row, or column, that an axis shows anything of."""
    top, reach, (first, last) = number * SIDE << zoom, side(zoom) << zoom, axis.shown
    return slice(max(0, (first - top) // reach), max(0, -((top - last) // reach)))


def wanted(source: Source, view: Viewport) -> dict[Key, tuple[slice, slice]]:
    """The tiles a view needs, but those in which nothing is seen, and the parts of each that it
    shows; none where it is of another map, which was shown meanwhile.
    """
    if source.shape != view.shape:
        return {}
    rows, columns, there = grid(source, view)
    down, across = (
        [_shown_parts(number, view.zoom, axis) for number in numbers]
        for numbers, axis in zip((rows, columns), view.axes, strict=True)
    )
    return {
        Key(source, view.zoom, rows[i], columns[j]): (down[i], across[j])
        for i, j in np.argwhere(there).tolist()
    }


def grid(source: Source, view: Viewport) -> tuple[range, range, Bools]:
    """The tiles on screen, down and across, and in which of them anything is seen there."""
    reach, part = SIDE << view.zoom, side(view.zoom) << view.zoom
    numbers, ranges = [], []
    for along in (view.down, view.across):
        first, last = along.shown
        numbers.append(range(first // reach, -(-last // reach)))
        starts = np.array(numbers[-1]) * reach
        end = min(-(-last // part) * part, along.cells)
        shown = np.maximum(starts, first // part * part), np.minimum(starts + reach, end)
        ranges.append(np.stack(shown, axis=1))
    return numbers[0], numbers[1], seen(source.rule, ranges[0], ranges[1])


def around(source: Source, view: Viewport) -> list[Key]:
    """The tiles next to those of a view."""
    if source.shape != view.shape:
        return []
    rows, columns, _ = grid(source, view)
    tall, wide = (-(-size // (SIDE << view.zoom)) for size in source.shape)
    ring = itertools.product(
        range(max(0, rows.start - 1), min(tall, rows.stop + 1)),
        range(max(0, columns.start - 1), min(wide, columns.stop + 1)),
    )
    keys = (Key(source, view.zoom, i, j) for i, j in ring if i not in rows or j not in columns)
    return [
        key for key in keys
        if seen(source.rule, *(np.array([ends]) for ends in key.ranges)).any()
    ]  # fmt: skip


def _kept(key: Key) -> Key | None:
    """The tile itself, or the coarser one in the finest level that a capture keeps of its map."""
    lowest = key.source.lowest
    if lowest is None:
        return None
    further = max(0, lowest - key.zoom)
    return Key(key.source, key.zoom + further, key.i >> further, key.j >> further)


def _pieces(key: Key, left: Bools, i: int, j: int) -> Iterator[Part]:
    """What to read for some parts of a tile (parts down, across), which begin at (i, j): all at
    once where it is little, else one after the other.
    """
    if key.zoom > FINE:
        yield from (Part(key, i + int(row), j + int(column)) for row, column in np.argwhere(left))
    elif left.all():
        yield Part(key, i, j, *left.shape)
    elif left.any():
        rows, columns = (np.flatnonzero(left.any(axis)) for axis in (1, 0))
        (top, bottom), (first, last) = ((int(at[0]), int(at[-1]) + 1) for at in (rows, columns))
        yield Part(key, i + top, j + first, bottom - top, last - first)


def _parts_seen(key: Key) -> Bools:
    """bool (parts down, across): in which parts of a tile anything is seen."""
    reach, (down, across) = side(key.zoom) << key.zoom, key.ranges
    if reach >= SIDE << key.zoom or below(key.source.rule, down[0], across[1] - 1):
        # nobody asks for a tile of which nothing is
        return np.ones([-(-(last - first) // reach) for first, last in (down, across)], bool)
    starts = [np.arange(first, last, reach) for first, last in (down, across)]
    rows, columns = (
        np.stack([first, np.minimum(first + reach, last)], axis=1)
        for first, (_, last) in zip(starts, (down, across), strict=True)
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


# --- readers --------------------------------------------------------------------------------------

PAUSE = 0.012  # s between two times that parts are said, while there are more to come


class Readers:
    """Reads tiles into a cache and says which parts came, or what went wrong.

    Both are said through `post`, several parts at once when they come faster than they are heard.
    Every product is on one thread (hgviz.maps.tiles). The last thread leaves its core to the
    window: it reads what is stored, which so never waits for a product, and computes only in a
    hurry.
    """

    def __init__(
        self,
        tiles: Tiles,
        post: Post,
        on_parts: Callable[[list[Part]], None],
        on_error: Callable[[BaseException], None],
        count: int = 0,
    ) -> None:
        self.tiles, self._post = tiles, post
        self._on_parts, self._on_error = on_parts, on_error
        self._count = count or max(2, os.cpu_count() or 2)
        self._threads: list[Thread] = []
        self._turn = Condition()
        self._stored: Iterator[Part] = iter(())
        self._work: Iterator[Part] = iter(())
        self._hurry = False
        self._busy: set[Part | None] = set()
        self._unheard: list[Part] = []
        self._posted = False
        self._said = 0.0
        self._closed = False

    def want(
        self, work: Iterator[Part], stored: Iterator[Part] | None = None, hurry: bool = False
    ) -> None:
        """Read these parts, in this order, each taken from the iterator when its time has come;
        those that are stored before all others. hurry: the window has nothing else to do.

        Takes the place of whatever was wanted before; what is being read is still finished.
        """
        with self._turn:
            self._work, self._stored, self._hurry = work, stored or iter(()), hurry
            if not self._threads and not self._closed:
                self._threads = [
                    Thread(target=self._run, args=(number,), name=f"tiles {number}", daemon=True)
                    for number in range(self._count)
                ]
                for thread in self._threads:
                    thread.start()
            self._turn.notify_all()

    def close(self) -> None:
        """Wait for what is being read; nothing is said from now on."""
        with self._turn:
            self._closed, self._work, self._stored = True, iter(()), iter(())
            self._turn.notify_all()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        while not self._closed:
            part = None
            try:
                part = self._next(number)
                if part is not None:
                    self.tiles.read(part)
                    with self._turn:
                        self._unheard.append(part)
                        if time.monotonic() - self._said >= PAUSE:
                            self._say()
            except BaseException as error:  # a panic in a Rust library is no Exception
                with self._turn:
                    self._work = self._stored = iter(())  # the rest would fail alike
                self._post(partial(self._fail, error))
            finally:
                with self._turn:
                    self._busy.discard(part)

    def _next(self, number: int) -> Part | None:
        """The next part for a thread, once there is one; None when it is time to go."""
        leaves = 0 < number == self._count - 1
        with self._turn:
            while not self._closed:
                work = chain(self._stored, () if leaves and not self._hurry else self._work)
                part = next((part for part in work if part not in self._busy), None)
                if part is not None:
                    self._busy.add(part)
                    return part
                self._say()
                self._turn.wait()
        return None

    def _say(self) -> None:
        if self._unheard and not self._posted:
            self._posted, self._said = True, time.monotonic()
            self._post(self._hear)

    def _hear(self) -> None:
        with self._turn:
            parts, self._unheard = self._unheard, []
            self._posted = False
        if not self._closed:
            self._on_parts(parts)

    def _fail(self, error: BaseException) -> None:
        if not self._closed:
            self._on_error(error)


# --- mosaic ---------------------------------------------------------------------------------------

Quality = Literal["exact", "near", "coarse"]


def compose(tiles: Tiles, source: Source, view: Viewport) -> Floats:
    """float32 (height, width) for pixels, or for cells where these have several pixels each.

    A pixel is the largest (signed: largest in magnitude) of the cells it stands for; NaN where
    nothing was read yet, not even coarsely.
    """
    block, *corner = _block(tiles, source, view)
    for number, (axis, first) in enumerate(zip(view.axes, corner, strict=True)):
        if axis.scale * (1 << view.zoom) < 1 - 1e-15:  # a pixel shows more than a part of a cell
            block = _pooled(block, number, axis, first, view.zoom, source.signed)
    return block


def _pooled(
    block: Floats, number: int, axis: MapAxis, first: int, zoom: int, signed: bool
) -> Floats:
    """Cells of 2^zoom joined to pixels along one axis of a block that begins at a cell."""

    def join(first: Floats, second: Floats) -> Floats:
        high = np.maximum(first, second)
        return larger(high, np.minimum(first, second)) if signed else high

    size = block.shape[number]
    bounds = (axis.bounds() - first + (1 << zoom) - 1) >> zoom
    starts = np.clip(bounds[:-1], 0, size - 1)
    if axis.zoom == zoom:  # one or two cells to a pixel, which is much faster than to reduce
        ends = np.clip(bounds[1:] - 1, 0, size - 1)
        return join(block.take(starts, axis=number), block.take(ends, axis=number))
    high = np.maximum.reduceat(block, starts, axis=number)
    return larger(high, np.minimum.reduceat(block, starts, axis=number)) if signed else high


def spread(values: NDArray[Any], view: Viewport) -> NDArray[Any]:
    """Cells repeated to pixels where a cell has several; the first two axes of values."""
    for number, axis in enumerate(view.axes):
        if axis.scale > 1:
            counts = np.bincount(axis.bounds()[:-1] - axis.shown[0])
            values = np.repeat(values, counts, axis=number)
    return values


def unseen(source: Source, view: Viewport) -> Bools:
    """The shape of compose: where no cell is one that the query could look at."""
    rows, columns = (axis.ranges() for axis in view.axes)
    if below(source.rule, int(rows[0, 0]), int(columns[-1, 1]) - 1):
        return np.zeros((len(rows), len(columns)), bool)
    return ~seen(source.rule, rows, columns)


def quality(tiles: Tiles, source: Source, view: Viewport) -> Quality:
    """How true the picture is: near is within the error of the levels kept in the capture."""
    level: Quality = "exact"
    for key, parts in wanted(source, view).items():
        tile = tiles.get(key)
        exact = tile is not None and tile.exact[parts].all()
        if tile is None or not (tile.near or exact):
            return "coarse"
        if not exact:
            level = "near"
    return level


def _block(tiles: Tiles, source: Source, view: Viewport) -> tuple[Floats, int, int]:
    """The view's cells at its zoom, and the positions of the first."""
    zoom = view.zoom
    (top, bottom), (left, right) = (
        (first >> zoom, -(-last >> zoom)) for first, last in (axis.shown for axis in view.axes)
    )
    rows, columns, there = grid(source, view)
    block = np.empty((bottom - top, right - left), np.float32)
    for (i, j), is_seen in np.ndenumerate(there):
        key = Key(source, zoom, rows[i], columns[j])
        above, before = key.i * SIDE - top, key.j * SIDE - left
        place = block[max(above, 0) : above + SIDE, max(before, 0) : before + SIDE]
        if not is_seen:
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
