"""Which part of a map is on screen: whole device pixels, squares, a fixed grid under everything."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

MOST = 96  # logical px: two tokens do not fill the pane
STEP = 1.25  # the least a turn of the wheel changes the scale by

Box = tuple[int, int, int, int]  # top, bottom, left, right in pixels, half-open


@dataclass(frozen=True, slots=True)
class Along:
    """One axis of a map on screen, in device pixels.

    cells: how many there are. room: pixels there are for them. scale: pixels per cell, a whole
    number from 1 up. start: the first pixel shown, counted from the first cell, so that the
    pixels lie on the same grid wherever the window is.
    """

    cells: int
    room: int
    scale: float
    start: int = 0

    @property
    def length(self) -> int:
        """Pixels of the whole axis."""
        return max(1, math.ceil(self.cells * self.scale - 1e-6))

    @property
    def size(self) -> int:
        """Pixels shown."""
        return min(self.room, self.length)

    @property
    def whole(self) -> bool:
        """Whether every cell is on screen."""
        return self.length <= self.room

    @property
    def zoom(self) -> int:
        """The level to read: its cells are one to two per pixel where pixels are too few."""
        return max(0, math.floor(math.log2(1 / self.scale) + 1e-9)) if self.scale < 1 else 0

    def bounds(self) -> NDArray[np.int64]:
        """(size + 1,): pixel p shows the cells from bounds[p] up to bounds[p + 1].

        Where a cell has several pixels these are the same for neighbours, so a pixel shows
        bounds[p] alone. Multiples of 2^zoom, but for the end.
        """
        pixels = np.arange(self.start, self.start + self.size + 1)
        if self.scale >= 1:
            return pixels // int(self.scale)
        step = 1 << self.zoom
        bounds = np.ceil(pixels / (self.scale * step) - 1e-9).astype(np.int64) * step
        return np.minimum(bounds, self.cells)

    def shown(self) -> tuple[int, int]:
        """The cells on screen, half-open."""
        first, last = self.start, self.start + self.size
        if self.scale >= 1:
            return first // int(self.scale), min(self.cells, -(-last // int(self.scale)))
        step = 1 << self.zoom
        first, last = (math.ceil(one / (self.scale * step) - 1e-9) * step for one in (first, last))
        first = min(first, (self.cells - 1) // step * step)  # a last pixel may have none of its own
        return first, max(first + 1, min(self.cells, last))

    def cell(self, pixel: float) -> int | None:
        """The cell under a pixel of the window; None outside the map."""
        if not 0 <= pixel < self.size:
            return None
        return min(self.cells - 1, math.floor((self.start + pixel) / self.scale + 1e-9))

    def edges(self, cell: float, count: float = 1) -> tuple[int, int]:
        """The pixels of some cells in the window, half-open, at least one; may lie outside it."""
        first = math.floor(cell * self.scale + 1e-9) - self.start
        return first, max(first + 1, math.floor((cell + count) * self.scale + 1e-9) - self.start)

    def at(self, scale: float, pixel: float) -> Along:
        """Another scale; the place under a pixel stays where it is."""
        place = (self.start + pixel) / self.scale
        return replace(self, scale=scale).moved_to(round(place * scale - pixel))

    def moved_to(self, start: int) -> Along:
        """Another first pixel, as far as there is something to show."""
        return replace(self, start=max(0, min(start, self.length - self.room)))

    def part(self, first: int, last: int) -> Along:
        """Pixels first..last-1 of the window alone."""
        return replace(self, start=self.start + first, room=last - first)

    def around(self, cell: int, margin: int = 2) -> Along:
        """Moved just as far as it takes to have a cell on screen."""
        first, last = self.edges(cell)
        reach = min(margin * (last - first), max(0, (self.size - (last - first)) // 2))
        if first - reach < 0:
            return self.moved_to(self.start + first - reach)
        if last + reach > self.size:
            return self.moved_to(self.start + last + reach - self.size)
        return self


@dataclass(frozen=True, slots=True)
class Viewport:
    """The part of a map on screen: rows down, columns across. ratio: device px per logical px."""

    down: Along
    across: Along
    ratio: float = 1.0

    @classmethod
    def fitted(
        cls, shape: tuple[int, int], room: tuple[int, int], ratio: float = 1.0, wide: int = 1
    ) -> Viewport:
        """The whole map (rows, columns) in a room (height, width) of device pixels.

        wide: how many times wider than high a cell may be, for maps of few columns.
        """
        rows, columns = max(1, shape[0]), max(1, shape[1])
        height, width = max(1, room[0]), max(1, room[1])
        scale = min(_whole(min(height / rows, width / columns)), float(round(MOST * ratio)))
        broad = scale
        if wide > 1 and scale >= 1:
            most = min(wide * scale, width // columns, round(MOST * ratio))
            broad = float(max(scale, math.floor(most)))
        return cls(Along(rows, height, scale), Along(columns, width, broad), ratio)

    @property
    def zoom(self) -> int:
        """The level to read."""
        return self.down.zoom

    @property
    def whole(self) -> bool:
        """Whether the whole map is on screen."""
        return self.down.whole and self.across.whole

    @property
    def size(self) -> tuple[int, int]:
        """(height, width) of the picture in device pixels."""
        return self.down.size, self.across.size

    def zoomed(self, turns: float, y: float, x: float) -> Viewport:
        """Some turns of the wheel in (> 0) or out, about a pixel."""
        least = Viewport.fitted((self.down.cells, self.across.cells), self._room, self.ratio)
        wide = max(1, round(self.across.scale / self.down.scale))
        scale = self.down.scale
        for _ in range(max(1, round(abs(turns)))):
            scale = _larger(scale) if turns > 0 else _smaller(scale)
        scale = max(least.down.scale, min(scale, float(round(MOST * self.ratio))))
        return replace(self, down=self.down.at(scale, y), across=self.across.at(scale * wide, x))

    def panned(self, dy: int, dx: int) -> Viewport:
        """The picture moved along by so many pixels."""
        return replace(
            self,
            down=self.down.moved_to(self.down.start - dy),
            across=self.across.moved_to(self.across.start - dx),
        )

    def resized(self, room: tuple[int, int], ratio: float, wide: int = 1) -> Viewport:
        """The same part in another room; a whole map is fitted again."""
        if self.whole or ratio != self.ratio:
            return Viewport.fitted((self.down.cells, self.across.cells), room, ratio, wide)
        down = replace(self.down, room=max(1, room[0]))
        across = replace(self.across, room=max(1, room[1]))
        least = Viewport.fitted((self.down.cells, self.across.cells), room, ratio, wide)
        if least.down.scale >= down.scale:
            return least
        return replace(self, down=down.moved_to(down.start), across=across.moved_to(across.start))

    def of(self, shape: tuple[int, int], wide: int = 1, grown: bool = False) -> Viewport:
        """This view of a map of the same shape; the whole of another, or the same part of it.

        grown: the map goes on where this one ended, or is the same head's in another text.
        """
        if shape == (self.down.cells, self.across.cells):
            return self
        if grown and not self.whole:
            down, across = replace(self.down, cells=shape[0]), replace(self.across, cells=shape[1])
            down, across = down.moved_to(down.start), across.moved_to(across.start)
            if not (down.whole and across.whole):
                return replace(self, down=down, across=across)
        return Viewport.fitted(shape, self._room, self.ratio, wide)

    def part(self, box: Box) -> Viewport:
        """The pixels (top, bottom, left, right) of the picture alone, half-open."""
        top, bottom, left, right = box
        return replace(self, down=self.down.part(top, bottom), across=self.across.part(left, right))

    def box(self, rows: tuple[int, int], columns: tuple[int, int]) -> Box:
        """The pixels that show anything of ranges of cells, (top, bottom, left, right)."""
        ends = []
        for along, (first, last) in ((self.down, rows), (self.across, columns)):
            start, end = along.edges(first, last - first)
            # cells share their outermost pixels with those beside them
            ends += [max(0, min(start - 1, along.size)), max(0, min(end + 1, along.size))]
        return ends[0], ends[1], ends[2], ends[3]

    @property
    def _room(self) -> tuple[int, int]:
        return self.down.room, self.across.room


def _whole(scale: float) -> float:
    return float(math.floor(scale)) if scale >= 1 else scale


def _larger(scale: float) -> float:
    if scale >= 1:
        return float(max(int(scale) + 1, math.ceil(scale * STEP)))
    return min(1.0, scale * math.sqrt(2))


def _smaller(scale: float) -> float:
    if scale > 1:
        return float(max(1, min(int(scale) - 1, math.floor(scale / STEP))))
    return scale / math.sqrt(2)
