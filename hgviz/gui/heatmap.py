"""The map itself: one picture at the size of the screen, axes, colour bar, cross hair, pointer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QImage, QPainter, QPaintEvent, QPen, QPixmap, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from hgviz.gui import ink, theme, tiles
from hgviz.gui.grid import Written
from hgviz.gui.language import tr
from hgviz.gui.views import crosshair, gutter, inset, mosaic, picture
from hgviz.gui.views.cellcard import CellCard, Sentence
from hgviz.gui.views.crosshair import Cross
from hgviz.gui.views.footnote import HIGH, Footnote
from hgviz.gui.views.mosaic import Quality
from hgviz.gui.views.picture import Picture, Pixels, Scene
from hgviz.gui.views.pointer import Pointer
from hgviz.gui.views.viewport import Viewport

LEFT, TOP, RIGHT, BOTTOM = 88, 71, 68, 60  # logical px around a map: words, numbers, sentence
PAD, GAP, GUTTER, UNDER = 13, 13, 48, HIGH
ROOMY = 420  # px that a sentence is at ease in

Cell = tuple[int | None, int | None]


class Canvas(QWidget):
    """Shows a Scene; says what the pointer does. It reads nothing: tiles come into its cache."""

    pointed = Signal(object)  # (row, column) under the pointer, None when it leaves
    clicked = Signal(int, int)  # row, column
    moved = Signal()  # another part is on screen: its tiles are wanted
    ringed = QWidget.rect  # what the mark of the keyboard goes around
    left, top, below = LEFT, TOP, 0  # below: px from the map to what is noted beneath it

    def __init__(self, cache: tiles.Tiles) -> None:
        super().__init__()
        self.cache = cache
        self.scene: Scene | None = None
        self.view: Viewport | None = None
        self.cross = Cross()
        self.hidden_words = ""
        self._picture = Picture()
        self._ground: tuple[object, QPixmap] | None = None
        self._thumb: Pixels | None = None
        self.quality: Quality = "exact"
        self._screen: tuple[object, ...] = ()  # the tiles it was judged by
        self._footnote = Footnote(self, self.update)
        self.written = Written()
        self.card = CellCard(self)
        self.sentence = Sentence(self)
        self._pointer = Pointer(self)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Map of attention weights"))

    def minimumSizeHint(self) -> QSize:
        """Room for a small map."""
        return QSize(LEFT + RIGHT + 48, TOP + BOTTOM + 48)

    # --- what is shown ----------------------------------------------------------------------------

    def show_scene(self, scene: Scene) -> None:
        """Show a head; the part on screen stays where the shape does."""
        old, self.scene = self.scene, scene
        if old is None or self.view is None or self.view.of(scene.source.shape) is not self.view:
            self.fit()
        elif old.signed != scene.signed:  # the gutter takes or leaves room
            self._resize()
        self._thumb = None
        self.compose()

    def grow(self, shape: tuple[int, int], wide: int) -> None:
        """The map is so large now: the part on screen stays, a whole map is fitted again."""
        if self.view is not None:
            self.view = self.view.of(shape, wide, grown=True)

    def fit(self) -> None:
        """The whole map."""
        if self.scene is not None:
            shape = self.scene.source.shape
            self._look(Viewport.fitted(shape, self.room, self._ratio, self.scene.wide))

    def compose(self, afresh: bool = False) -> None:
        """Bring the picture up to date: other colours, another head or part, or all of it."""
        if self.scene is None or self.view is None:
            return
        if afresh:
            self._picture = Picture()
        self._picture.show(self.scene, self.cache, self.view, theme.current().dark)
        self._judge()
        self._place_card()
        self.update()

    def renew(self, parts: Iterable[tiles.Part]) -> None:
        """Paint what has just been read."""
        scene, view, ratio = self.scene, self._picture.view, self._ratio
        if scene is None or view is None:
            return
        on_screen = (view.box(*one.ranges) for one in parts if one.key.source is scene.source)
        boxes = [one for one in on_screen if one[0] < one[1] and one[2] < one[3]]
        if len(boxes) > 3:  # one large box is sooner painted than many small ones
            low, high = np.min(boxes, axis=0), np.max(boxes, axis=0)
            boxes = [(int(low[0]), int(high[1]), int(low[2]), int(high[3]))]
        for box in boxes:
            top, bottom, left, right = box
            self._picture.renew(scene, self.cache, box, theme.current().dark)
            spot = QRectF(left, top, right - left, bottom - top)
            corner = self.map_rect.topLeft() + spot.topLeft() / ratio
            self.update(QRectF(corner, spot.size() / ratio).toAlignedRect())
        if boxes:
            self._judge()

    def _judge(self) -> None:
        assert self.scene is not None and self.view is not None
        source, screen = self.scene.source, tiles.screen(self.scene.source, self.view)
        if screen != self._screen or self.quality != "exact":
            self._screen, self.quality = screen, mosaic.quality(self.cache, source, self.view)
            self._footnote.judge(self.quality, self.scene.signed)

    def point(self, cross: Cross) -> None:
        """Draw the cross hair at a cell; None takes it away."""
        if cross != self.cross:
            self.cross = cross
            self._place_card()
            self.update()

    def say(self, sentence: str, card: str = "") -> None:
        """HTML: the sentence beneath the map, and what the card beside the cell says."""
        self.sentence.setFont(theme.font())
        self.sentence.setText(sentence)
        self.card.say(card)
        self._place_sentence()
        self._place_card()

    def reveal(self, row: int | None, column: int | None) -> None:
        """Move just as far as it takes to have a cell on screen."""
        if self.view is None:
            return
        down = self.view.down if row is None else self.view.down.around(row)
        across = self.view.across if column is None else self.view.across.around(column)
        self._look(replace(self.view, down=down, across=across))

    def zoom(self, turns: int, place: QPointF) -> None:
        """Some steps closer (> 0) or further away; what is at a place stays there."""
        if self.view is not None:
            before = self.map_rect.left()
            spot = (place - self.map_rect.topLeft()) * self._ratio
            self.view = self.view.zoomed(turns, spot.y(), spot.x())
            self.pan(QPointF(before - self.map_rect.left(), 0))  # it may begin further left now

    def pan(self, step: QPointF) -> None:
        """Move the map along."""
        if self.view is not None:
            step = step * self._ratio
            self._look(self.view.panned(round(step.y()), round(step.x())))

    def centre(self, place: QPointF) -> None:
        """Go where a place of the small map points to."""
        if self.view is not None and not self.inset.isEmpty():
            self._look(inset.view_at(self.view, self.inset, place))

    # --- where things are -------------------------------------------------------------------------

    @property
    def pixels(self) -> NDArray[np.uint8]:
        """uint8 (height, width, 4): red, green, blue of what is shown, alpha 0 where unseen."""
        return picture.channels(self._picture.pixels)

    @property
    def planned(self) -> Viewport:
        """What is on screen, or will be."""
        return self.view or Viewport.fitted((1, 1), self.room, self._ratio)

    @property
    def room(self) -> tuple[int, int]:
        """(height, width) for a map, in device pixels."""
        right = RIGHT + (GUTTER if self.scene is not None and self.scene.signed else 0)
        height, width = self.height() - TOP - BOTTOM, self.width() - LEFT - right
        return max(8, int(height * self._ratio)), max(8, int(width * self._ratio))

    @property
    def map_rect(self) -> QRectF:
        """The map, in logical px; in the middle of the room where it is narrower."""
        if self.view is None:
            return QRectF(self.left, self.top, 0, 0)
        height, width = (size / self._ratio for size in self.view.size)
        left = (self.room[1] - self.view.size[1]) // 2
        return QRectF(self.left + left / self._ratio, self.top, width, height)

    def cell_at(self, place: QPointF) -> Cell:
        """The row and column under a place; None, None outside the map."""
        if self.view is None:
            return None, None
        spot = (place - self.map_rect.topLeft()) * self._ratio
        row, column = self.view.down.cell(spot.y()), self.view.across.cell(spot.x())
        return (None, None) if row is None or column is None else (row, column)

    def cell_rect(self, row: int, column: int) -> QRectF:
        """A cell, in logical px."""
        assert self.view is not None
        (top, bottom), (left, right) = self.view.down.edges(row), self.view.across.edges(column)
        box = QRectF(left, top, right - left, bottom - top)
        corner, ratio = self.map_rect.topLeft(), self._ratio
        return QRectF(corner + box.topLeft() / ratio, box.size() / ratio)

    @property
    def _ratio(self) -> float:
        return self.devicePixelRatioF()

    # --- painting ---------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """From the ground up: hatching and colour bar, picture, axes, cross hair, chips."""
        if self.scene is None or self.view is None or self._picture.view != self.view:
            return
        with QPainter(self) as painter:
            rect, scene, view = self.map_rect, self.scene, self.view
            corner, signed = (rect.topLeft() * self._ratio).toPoint(), scene.signed
            painter.drawPixmap(0, 0, self._drawn_ground())
            painter.save()
            painter.scale(1 / self._ratio, 1 / self._ratio)
            painter.drawImage(corner, self._picture.image())
            painter.restore()
            self._veil(painter, rect)
            if not rect.contains(QRectF(event.rect())):
                self._axes(painter, rect)
            painter.save()
            painter.scale(1 / self._ratio, 1 / self._ratio)
            causal = scene.source.rule.causal
            crosshair.draw(painter, self.cross, view, corner, signed=signed, causal=causal)
            painter.restore()
            crosshair.markers(painter, self.cross, view, rect)
            self._notes(painter, rect)
            if self.card.isVisible():
                ink.shadow(painter, QRectF(self.card.geometry()), 8)
            if self.hasFocus():
                ink.focus_ring(painter, QRectF(self.ringed()))

    def _veil(self, painter: QPainter, rect: QRectF) -> None:
        """What lies over the picture."""
        if self.scene is not None and self.scene.off:
            ink.switched_off(painter, rect, self._ratio)

    def _axes(self, painter: QPainter, rect: QRectF) -> None:
        """Words at the left and above."""
        assert self.scene is not None and self.view is not None
        scene, view, ratio = self.scene, self.view, self._ratio
        down = self.written.marks(scene.rows, view.down, ratio, self.cross.row)
        across = self.written.marks(scene.columns, view.across, ratio, self.cross.column)
        ink.axes(painter, rect, (self.left, self.top), down, across, scene.sides)
        self._sums(painter)

    def _sums(self, painter: QPainter) -> None:
        """What the rows of a signed map add up to."""
        scene, view = self.scene, self.view
        if scene is not None and view is not None and scene.signed and scene.mass is not None:
            gutter.draw(painter, self._gutter(), view.down, self._ratio, scene.mass)

    def _drawn_ground(self) -> QPixmap:
        """What stays while the map moves: its frame, what is masked, the colour bar."""
        scene, rect, ratio = self.scene, self.map_rect, self._ratio
        assert scene is not None and self.view is not None
        colours = scene.limits, scene.display, scene.signed, theme.current().dark
        key = self.size().toTuple(), rect.getRect(), ratio, colours
        if self._ground is None or self._ground[0] != key:
            out = QPixmap(self.size() * ratio)
            out.setDevicePixelRatio(ratio)
            out.fill(Qt.GlobalColor.transparent)
            with QPainter(out) as painter:
                ink.unseen(painter, rect, ratio)
                painter.setPen(QPen(theme.current().edge, 1))
                painter.drawRect(rect.adjusted(-0.5, -0.5, 0.5, 0.5))
                self._sides(painter, rect)
            self._ground = key, out
        return self._ground[1]

    def _sides(self, painter: QPainter, rect: QRectF) -> None:
        """The colour bar, as high as the map."""
        assert self.scene is not None
        left = rect.right() + GAP + (gutter.WIDE + 10 if self.scene.signed else 0)
        bar = QRectF(left, rect.top(), ink.BAR, rect.height())
        ink.colour_bar(painter, bar, self.scene, tr("Weight"))

    def _gutter(self) -> QRectF:
        """Where the sums of the rows stand."""
        rect = self.map_rect
        return QRectF(rect.right() + GAP, rect.top(), gutter.WIDE, rect.height())

    def sums_at(self, place: QPointF) -> str:
        """What is said of the row beside a place of the gutter; "" elsewhere."""
        scene, view = self.scene, self.view
        if scene is None or view is None or scene.mass is None or not scene.signed:
            return ""
        return gutter.said(self._gutter(), view.down, self._ratio, scene.mass, place)

    def _notes(self, painter: QPainter, rect: QRectF) -> None:
        """Chips on the map, how much a pixel stands for, the whole in a corner."""
        assert self.scene is not None and self.view is not None
        hidden = not self._picture.pixels[::8, ::-8].all()  # looked at here and there
        said = tr("off: this head adds nothing") if self.scene.off else self.hidden_words * hidden
        if said:
            ink.chip(painter, rect.topRight() + QPointF(-PAD, PAD), said, rect.width() - 2 * PAD)
        self._footnote.draw(painter, rect.adjusted(0, 0, 0, self.below), self.view)
        box, thumb = self.inset, self._overview()
        if thumb is not None and not box.isEmpty():
            inset.draw(painter, box, thumb, self.view)

    def _overview(self) -> QImage | None:
        """The thumbnail of the whole head, where there is one; it shares the canvas's memory."""
        if self.scene is None or self.scene.source.thumb is None:
            return None
        if self._thumb is None:
            self._thumb = picture.thumbnail(self.scene, theme.current().dark)
        return picture.image(self._thumb)

    @property
    def inset(self) -> QRectF:
        """Where the whole is shown small; empty while all of it is on screen."""
        thumb = None if self.view is None or self.view.whole else self._overview()
        return QRectF() if thumb is None else inset.place(self.map_rect, thumb)

    # --- the words --------------------------------------------------------------------------------

    def _place_sentence(self) -> None:
        """Beneath the map, from its left edge where there is room."""
        rect = self.map_rect
        left = round(rect.left()) if self.width() - rect.left() >= ROOMY else LEFT
        width = self.width() - left - PAD
        height = self.sentence.heightForWidth(width)
        self.sentence.setGeometry(left, round(rect.bottom()) + UNDER, width, height)

    def _place_card(self) -> None:
        """22 px off the cell, never over its row or column; hidden where there is no such place."""
        row, column = self.cross.row, self.cross.column
        if self.view is None or row is None or column is None or self.card.empty:
            self.card.hide()
            return
        cell = self.cell_rect(row, column)
        if self.map_rect.intersects(cell):
            self.card.stand(cell, self.sentence.geometry(), self.map_rect)
        else:
            self.card.hide()

    # --- size and theme ---------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the part on screen, or all of it."""
        self._resize()

    def changeEvent(self, event: QEvent) -> None:
        """Other colours, another screen."""
        if event.type() == QEvent.Type.PaletteChange:
            self._thumb = None
            self.compose()
        elif event.type() == QEvent.Type.DevicePixelRatioChange:
            self._resize()
        super().changeEvent(event)

    def _resize(self) -> None:
        if self.view is not None and self.scene is not None:
            self._look(self.view.resized(self.room, self._ratio, self.scene.wide))

    def _look(self, view: Viewport) -> None:
        self.view = view
        self._place_sentence()
        self.compose()
        self.moved.emit()
