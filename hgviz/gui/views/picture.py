"""A map as pixels: values, colours, and transparent where the query could not look."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QImage

from hgviz import palettes
from hgviz.core import Display, Floats
from hgviz.gui.views import tiles
from hgviz.gui.views.axes import Names, Places
from hgviz.gui.views.tiles import Source, Tiles
from hgviz.gui.views.viewport import Viewport
from hgviz.maps import thumb_zoom

Pixels = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """Everything the canvas shows of one head.

    wide: how many times wider than high a cell may be. mass (rows, 2): the sum of the negative
    and of the positive weights of every row of a signed map, None until known. sides: what its
    columns and its rows are.
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

    @property
    def signed(self) -> bool:
        """Whether weights can be negative."""
        return self.source.signed

    def table(self, dark: bool) -> palettes.Colours:
        """(256, 3): the colours in use."""
        name = palettes.suited(self.display.palette, self.signed)
        return palettes.colours(name, dark)

    def colours(self, values: Floats, dark: bool) -> palettes.Colours:
        """uint8 (..., 3): the colours of weights."""
        placed = palettes.place(values, self.limits, self.display.scale, self.signed)
        return palettes.paint(placed, self.table(dark))


def pixels(scene: Scene, cache: Tiles, view: Viewport, dark: bool) -> Pixels:
    """uint8 (height, width, 4): red, green, blue, and 0 for what is not seen or not there yet."""
    values = tiles.compose(cache, scene.source, view)
    hidden = tiles.unseen(scene.source, view) | np.isnan(values)
    coloured = _coloured(scene, values, hidden, dark).view(np.uint32)[..., 0]
    spread = np.ascontiguousarray(tiles.spread(coloured, view))
    return spread.view(np.uint8).reshape(*spread.shape, 4)


def thumbnail(scene: Scene, dark: bool) -> Pixels:
    """The same for the thumbnail of the whole head."""
    assert scene.source.thumb is not None
    step = 1 << thumb_zoom(*scene.source.shape)
    down, across = (np.arange(0, size, step) for size in scene.source.shape)
    rows, columns = (np.stack([first, first + step], axis=1) for first in (down, across))
    hidden = ~tiles.seen(scene.source.rule, rows, columns)
    return _coloured(scene, scene.source.thumb, hidden, dark)


def _coloured(scene: Scene, values: Floats, hidden: NDArray[np.bool_], dark: bool) -> Pixels:
    out = np.empty((*values.shape, 4), np.uint8)
    out[..., :3] = scene.colours(values, dark)
    out[..., 3] = 255
    out[hidden] = 0
    return out


def image(array: Pixels) -> QImage:
    """The same as a picture of Qt; it keeps the array alive and shows it 1:1."""
    height, width = array.shape[:2]
    out = QImage(array.data, width, height, 4 * width, QImage.Format.Format_RGBA8888_Premultiplied)
    return out.convertToFormat(QImage.Format.Format_ARGB32_Premultiplied)
