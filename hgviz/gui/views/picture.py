"""A map as pixels: coloured where there are weights, transparent where the query could not look."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QImage

from hgviz import palettes
from hgviz.core import Display, Floats
from hgviz.gui.grid import Names, Places
from hgviz.gui.tiles import Source, Tiles
from hgviz.gui.views import mosaic
from hgviz.gui.views.sight import seen
from hgviz.gui.views.viewport import Box, Viewport
from hgviz.maps import thumb_zoom

AT_ONCE = 2**17  # pixels painted at a time, which stay in the processor's cache

Pixels = NDArray[np.uint32]  # (height, width): alpha, red, green, blue; 0 is transparent


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """Everything the canvas shows of one head.

    wide: how many times wider than high a cell may be. mass (rows, 2): the sum of the negative
    and of the positive weights of every row of a signed map, None until known. sides: what its
    columns and its rows are. about_zero: coloured like signed weights, whatever it has.
    """

    source: Source
    rows: Names
    columns: Names | Places
    limits: tuple[float, float]
    display: Display = Display()
    off: bool = False
    wide: int = 1
    mass: Floats | None = None
    sides: tuple[str, str] = ("Key", "Query")
    about_zero: bool = False

    @property
    def signed(self) -> bool:
        """Whether weights can be negative, or are shown as if they could."""
        return self.source.signed or self.about_zero

    def table(self, dark: bool) -> palettes.Colours:
        """(256, 3): the colours in use."""
        name = palettes.suited(self.display.palette, self.signed)
        return palettes.colours(name, dark)

    def painted(self, values: Floats, dark: bool) -> Pixels:
        """The pixels of weights that are all there."""
        placed = palettes.place(values, self.limits, self.display.scale, self.signed)
        placed *= 255
        placed += 0.5
        name = palettes.suited(self.display.palette, self.signed)
        return np.take(_inks(name, dark), placed.astype(np.uint8))


class Picture:
    """A map on screen as pixels that are kept: only what is new of it is put together."""

    def __init__(self) -> None:
        self.view: Viewport | None = None
        self.pixels: Pixels = np.zeros((0, 0), np.uint32)
        self._spare = self.pixels
        self._look: tuple[object, ...] = ()

    def show(self, scene: Scene, tiles: Tiles, view: Viewport, dark: bool) -> list[Box]:
        """Show a part of a scene; the boxes that had to be painted for it, all or what came in."""
        look = scene.source, scene.limits, scene.display, scene.signed, dark
        boxes = self._kept(view) if look == self._look else None
        if self.pixels.shape != view.size:
            self.pixels, self._spare = (np.empty(view.size, np.uint32) for _ in range(2))
        if boxes is None:
            boxes = [(0, view.size[0], 0, view.size[1])]
        self.view, self._look = view, look
        for box in boxes:
            self.renew(scene, tiles, box, dark)
        return boxes

    def renew(self, scene: Scene, tiles: Tiles, box: Box, dark: bool) -> None:
        """Paint a box of it again: other tiles have come."""
        assert self.view is not None
        top, bottom, left, right = box
        band = max(1, AT_ONCE // (right - left))
        for first in range(top, bottom, band):
            last = min(first + band, bottom)
            part = self.view.part((first, last, left, right))
            self.pixels[first:last, left:right] = _painted(scene, tiles, part, dark)

    def image(self) -> QImage:
        """The same for Qt, sharing memory: it is good until the next change."""
        return image(self.pixels)

    def _kept(self, view: Viewport) -> list[Box] | None:
        """Move what stays on screen; the boxes that come in. None where nothing stays."""
        old, (height, width) = self.view, view.size
        if old is None or old.size != view.size:
            return None
        down, across = (
            new.start - before.start
            for new, before in ((view.down, old.down), (view.across, old.across))
        )
        if view != old.panned(-down, -across) or abs(down) >= height or abs(across) >= width:
            return None
        if down or across:
            rows, columns = _overlap(down, height), _overlap(across, width)
            self._spare[rows[0], columns[0]] = self.pixels[rows[1], columns[1]]
            self.pixels, self._spare = self._spare, self.pixels
        top, bottom = max(-down, 0), height - max(down, 0)
        left, right = max(-across, 0), width - max(across, 0)
        strips = (
            (0, top, 0, width), (bottom, height, 0, width),
            (top, bottom, 0, left), (top, bottom, right, width),
        )  # fmt: skip
        return [box for box in strips if box[0] < box[1] and box[2] < box[3]]


def thumbnail(scene: Scene, dark: bool) -> Pixels:
    """The pixels of the thumbnail of the whole head."""
    assert scene.source.thumb is not None
    step = 1 << thumb_zoom(*scene.source.shape)
    down, across = (np.arange(0, size, step) for size in scene.source.shape)
    rows, columns = (np.stack([first, first + step], axis=1) for first in (down, across))
    out = scene.painted(scene.source.thumb, dark)
    np.copyto(out, 0, where=~seen(scene.source.rule, rows, columns))
    return out


def image(array: Pixels) -> QImage:
    """The same as a picture of Qt, which must not outlive the array."""
    height, width = array.shape
    return QImage(array.data, width, height, 4 * width, QImage.Format.Format_ARGB32_Premultiplied)


def channels(array: Pixels) -> NDArray[np.uint8]:
    """uint8 (height, width, 4): red, green, blue and alpha of pixels."""
    return np.stack([array >> shift & 255 for shift in (16, 8, 0, 24)], axis=-1).astype(np.uint8)


def _painted(scene: Scene, tiles: Tiles, view: Viewport, dark: bool) -> Pixels:
    values = mosaic.compose(tiles, scene.source, view)
    hidden, empty = mosaic.unseen(scene.source, view), np.isnan(values)
    if empty.any():
        hidden |= empty
        values = np.where(empty, np.float32(0), values)
    out = scene.painted(values, dark)
    np.copyto(out, 0, where=hidden)
    return mosaic.spread(out, view)


@lru_cache(maxsize=16)
def _inks(name: str, dark: bool) -> Pixels:
    """The colours of a palette as pixels."""
    red, green, blue = palettes.colours(name, dark).astype(np.uint32).T
    return 255 << 24 | red << 16 | green << 8 | blue


def _overlap(moved: int, size: int) -> tuple[slice, slice]:
    """Where what stays comes to lie, and where it lay, when so many pixels go out in front."""
    return slice(max(-moved, 0), size - max(moved, 0)), slice(max(moved, 0), size + min(moved, 0))
