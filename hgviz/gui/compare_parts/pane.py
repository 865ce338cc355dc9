"""One of the maps that are compared: no words around it but its own, its colour bar beneath."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QImage, QPainter, QPixmap, QResizeEvent

from hgviz.gui import ink, theme
from hgviz.gui.grid import Marks, Written
from hgviz.gui.heatmap import Canvas
from hgviz.gui.language import tr
from hgviz.gui.tiles import Tiles
from hgviz.gui.views import gutter
from hgviz.gui.views.picture import Scene
from hgviz.gui.views.viewport import Along, Viewport

TOP, LOW_TOP = 71, 42  # logical px for the words above a map, in high windows and in low ones
BOTTOM = 52  # the bar, its values, a note
LEFT, BARE = 88, 8  # left of a map with words for its rows, and without
RIGHT, GAP = 46, 3  # its gutter, and what is free beside that
CLOSE = 7  # px from a map to its gutter, whose title is wider
BAR = 9  # high, and as far from the map
BELOW = 35  # px from the map to what is noted beneath the bar

Bools = NDArray[np.bool_]


class Pane(Canvas):
    """A map of three that look at the same part: where it looks is for `turned` to say.

    there: which rows and which columns it has anything in, None for all. worded: whether it names
    its rows; the others stand beside it.
    """

    def __init__(self, cache: Tiles, name: str, written: Written) -> None:
        super().__init__(cache)
        self.written = written
        self.there: tuple[Bools, Bools] | None = None
        self.space = 8, 8
        self._summed: tuple[object, QPixmap] | None = None  # the gutter as it was drawn last
        self.most = 0.0  # the largest sum of a row in all three
        self.small_map = False  # whether the whole is shown in a corner
        self.turned: Callable[[Viewport], None] = self.turn
        self.top, self.below = TOP, BELOW
        self.worded = True
        self.card.least = 0
        self.sentence.hide()
        self.setAccessibleName(tr("Map of {side}", side=name))

    @property
    def worded(self) -> bool:
        """Whether it has words for its rows."""
        return self.left == LEFT

    @worded.setter
    def worded(self, worded: bool) -> None:
        self.left = LEFT if worded else BARE

    def take(self, scene: Scene, view: Viewport) -> None:
        """Show a scene from there."""
        self.scene, self._thumb = scene, None
        self.turn(view)

    def turn(self, view: Viewport) -> None:
        """Look there, alone."""
        self.view = view
        self.compose()

    @property
    def room(self) -> tuple[int, int]:
        """(height, width) for a map in device pixels: the same in all three."""
        return self.space

    @property
    def map_rect(self) -> QRectF:
        """The map, in logical px, at the left of its room."""
        height, width = (0, 0) if self.view is None else self.view.size
        return QRectF(self.left, self.top, width / self._ratio, height / self._ratio)

    def stretch(self, start: QPointF, end: QPointF) -> None:
        """No blocks: there are three numbers for each cell already."""

    def minimumSizeHint(self) -> QSize:
        """Whoever arranges the three gives it its room."""
        return QSize(0, 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Whoever arranges the three turns them, when all have their room."""

    def _resize(self) -> None:
        """The same."""

    def _look(self, view: Viewport) -> None:
        self.turned(view)

    def ringed(self) -> QRect:
        """The map alone: three of them stand side by side."""
        return self.map_rect.toAlignedRect().adjusted(-5, -5, 5, 5)

    # --- painting ---------------------------------------------------------------------------------

    def _axes(self, painter: QPainter, rect: QRectF) -> None:
        if self.worded:
            super()._axes(painter, rect)
            return
        assert self.scene is not None and self.view is not None
        columns, ratio = self.scene.columns, self._ratio
        across = self.written.marks(columns, self.view.across, ratio, self.cross.column)
        ink.axes(painter, rect, (LEFT, self.top), Marks(), across, None)
        self._sums(painter)

    def _gutter(self) -> QRectF:
        """Closer to the map than where a map stands alone: the next one follows."""
        rect = self.map_rect
        return QRectF(rect.right() + CLOSE, rect.top(), gutter.WIDE, rect.height())

    def _sums(self, painter: QPainter) -> None:
        """What the rows add up to, on the scale of all three."""
        assert self.scene is not None and self.view is not None
        along, mass = self.view.down, self.scene.mass
        if mass is None:
            return
        box = self._gutter().adjusted(-20, -26, 20, 2)
        key = along, id(mass), self.most, box.getRect(), self._ratio, theme.current().dark
        if self._summed is None or self._summed[0] != key:
            drawn = QPixmap((box.size() * self._ratio).toSize())
            drawn.setDevicePixelRatio(self._ratio)
            drawn.fill(Qt.GlobalColor.transparent)
            with QPainter(drawn) as inside:
                inside.translate(-box.topLeft())
                gutter.draw(inside, self._gutter(), along, self._ratio, mass, self.most, tr("row"))
            self._summed = key, drawn
        painter.drawPixmap(box.topLeft(), self._summed[1])

    def _veil(self, painter: QPainter, rect: QRectF) -> None:
        """What this side has not lies under a hatching of its own."""
        super()._veil(painter, rect)
        if self.there is None or self.view is None:
            return
        now, ratio = theme.current(), self._ratio
        brush = ink.hatching(ink.faint(now.secondary, 0.55), ratio)
        painter.save()
        painter.setBrushOrigin(rect.topLeft())
        for first, last in _gone(self.view.down, self.there[0]):
            box = QRectF(0, first / ratio, rect.width(), (last - first) / ratio)
            painter.fillRect(box.translated(rect.topLeft()), now.hover)
            painter.fillRect(box.translated(rect.topLeft()), brush)
        for first, last in _gone(self.view.across, self.there[1]):
            box = QRectF(first / ratio, 0, (last - first) / ratio, rect.height())
            painter.fillRect(box.translated(rect.topLeft()), now.hover)
            painter.fillRect(box.translated(rect.topLeft()), brush)
        painter.restore()

    def _sides(self, painter: QPainter, rect: QRectF) -> None:
        """The colour bar beneath."""
        assert self.scene is not None
        bar = QRectF(rect.left(), rect.bottom() + BAR, rect.width(), BAR)
        ink.flat_bar(painter, bar, self.scene)

    def sums_at(self, place: QPointF) -> str:
        """What is said of the row beside a place of the gutter; "" elsewhere."""
        scene, view = self.scene, self.view
        if scene is None or view is None or scene.mass is None:
            return ""
        return gutter.said(self._gutter(), view.down, self._ratio, scene.mass, place)

    def _overview(self) -> QImage | None:
        return super()._overview() if self.small_map else None

    def _place_sentence(self) -> None:
        """There is none: what a row does is said below all three."""
        self.sentence.setGeometry(QRect())


def _gone(along: Along, there: Bools) -> list[tuple[int, int]]:
    """The runs of pixels in which there is nothing, half-open."""
    bounds = along.bounds()
    ends = np.maximum(bounds[1:], bounds[:-1] + 1)
    known = np.concatenate([[0], np.cumsum(there)])
    gone = known[np.minimum(ends, len(there))] == known[np.minimum(bounds[:-1], len(there))]
    edges = np.flatnonzero(np.diff(np.concatenate([[False], gone, [False]])))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
