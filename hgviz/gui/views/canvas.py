"""The map itself: one picture at the size of the screen, axes, colour bar, cross hair, pointer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QEnterEvent,
    QImage,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from hgviz.gui import theme
from hgviz.gui.views import ink, picture
from hgviz.gui.views.axes import Marks
from hgviz.gui.views.cellcard import CellCard
from hgviz.gui.views.picture import Pixels, Scene
from hgviz.gui.views.tiles import Key, Tiles
from hgviz.gui.views.viewport import Viewport

LEFT, TOP, RIGHT, BOTTOM = 88, 71, 72, 18  # logical px around a map: words, numbers, colour bar
PAD, GAP, GUTTER = 16, 14, 40
CARD = 22  # px between a cell and what is said about it
NOTCH = 120  # units of the wheel for one turn

Cell = tuple[int | None, int | None]
Block = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Cross:
    """The row and column that are looked at; lines run only where there is something to see."""

    row: int | None = None
    column: int | None = None
    ends: tuple[int, int] | None = None  # the columns that the row sees, half-open


class Canvas(QWidget):
    """Shows a Scene; says what the pointer does. It reads nothing: tiles come into its cache.

    pixels is what was last handed to the picture: uint8 (height, width, 4), alpha 0 unseen.
    """

    pointed = Signal(object)  # (row, column) under the pointer, None when it leaves
    clicked = Signal(int, int)  # row, column
    blocked = Signal(object)  # (top, bottom, left, right) of a block, None when it is let go
    moved = Signal()  # another part is on screen: its tiles are wanted

    def __init__(self, cache: Tiles) -> None:
        super().__init__()
        self.cache = cache
        self.scene: Scene | None = None
        self.view: Viewport | None = None
        self.cross = Cross()
        self.block: Block | None = None
        self.pixels: Pixels | None = None
        self.hidden_words = ""
        self._image: QImage | None = None
        self._thumb: QImage | None = None
        self._marks: dict[tuple[object, ...], Marks] = {}
        self._grip: QPoint | None = None
        self._dragged = False
        self._turned = 0
        self.card = CellCard(self)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Map of attention weights")

    def minimumSizeHint(self) -> QSize:
        """Room for a small map."""
        return QSize(LEFT + RIGHT + 48, TOP + BOTTOM + 48)

    # --- what is shown ----------------------------------------------------------------------------

    def show_scene(self, scene: Scene) -> None:
        """Show a head; the part on screen stays where the shape does."""
        old, self.scene = self.scene, scene
        if old is None or old.source.shape != scene.source.shape or self.view is None:
            self.fit()
        self._marks.clear()
        self._thumb = None
        self.compose()

    def clear(self) -> None:
        """Nothing to show."""
        self.scene = self.view = self.pixels = self._image = None
        self.card.hide()

    def fit(self) -> None:
        """The whole map."""
        if self.scene is not None:
            wide = self.scene.wide
            self._look(Viewport.fitted(self.scene.source.shape, self.room, self._ratio, wide))

    def compose(self) -> None:
        """Put the picture together again: new tiles, colours or another part."""
        if self.scene is None or self.view is None:
            return
        self.pixels = picture.pixels(self.scene, self.cache, self.view, theme.current().dark)
        self._image = picture.image(self.pixels)
        self._place_card()
        self.update()

    def point(self, cross: Cross) -> None:
        """Draw the cross hair at a cell; None takes it away."""
        if cross != self.cross:
            self.cross = cross
            self._place_card()
            self.update()

    def say(self, text: str) -> None:
        """What the card beside the cell says; nothing hides it."""
        self.card.say(text)
        self._place_card()

    def missing(self) -> list[Key]:
        """The tiles that the part on screen still lacks."""
        if self.scene is None or self.view is None:
            return []
        return self.cache.missing(self.scene.source, self.view)

    def reveal(self, row: int | None, column: int | None) -> None:
        """Move just as far as it takes to have a cell on screen."""
        if self.view is None:
            return
        down = self.view.down if row is None else self.view.down.around(row)
        across = self.view.across if column is None else self.view.across.around(column)
        self._look(replace(self.view, down=down, across=across))

    # --- where things are -------------------------------------------------------------------------

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
            return QRectF(LEFT, TOP, 0, 0)
        height, width = self.view.size
        left = int((self.room[1] - width) / 2) if self.view.whole else 0
        return QRectF(LEFT + left / self._ratio, TOP, width / self._ratio, height / self._ratio)

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
        top, bottom = self.view.down.edges(row)
        left, right = self.view.across.edges(column)
        corner = self.map_rect.topLeft()
        size = QPointF(right - left, bottom - top) / self._ratio
        return QRectF(corner + QPointF(left, top) / self._ratio, corner + QPointF(
            left, top) / self._ratio + size)  # fmt: skip

    @property
    def _ratio(self) -> float:
        return self.devicePixelRatioF()

    # --- painting ---------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """From the ground up: picture, axes, colour bar, cross hair, chips."""
        if self.scene is None or self.view is None or self._image is None:
            return
        painter = QPainter(self)
        rect = self.map_rect
        ink.unseen(painter, rect, self._ratio)
        self._device(painter)
        painter.drawImage(self._corner(), self._image)
        painter.restore()
        if self.scene.off:
            ink.switched_off(painter, rect, self._ratio)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(theme.current().edge, 1))
        painter.drawRect(rect.adjusted(-0.5, -0.5, 0.5, 0.5))
        down = self._marked("down", self.cross.row)
        ink.axes(painter, rect, (LEFT, TOP), down, self._marked("across", self.cross.column))
        self._sides(painter, rect)
        painter.save()
        painter.setClipRect(rect.adjusted(-4, -4, 4, 4))
        self._cross(painter, rect)
        painter.restore()
        self._notes(painter, rect)
        if self.card.isVisible():
            ink.shadow(painter, QRectF(self.card.geometry()), 8)

    def _device(self, painter: QPainter) -> None:
        painter.save()
        painter.scale(1 / self._ratio, 1 / self._ratio)

    def _corner(self) -> QPoint:
        return (self.map_rect.topLeft() * self._ratio).toPoint()

    def _marked(self, side: str, chosen: int | None) -> Marks:
        assert self.scene is not None and self.view is not None
        along = self.view.down if side == "down" else self.view.across
        names = self.scene.rows if side == "down" else self.scene.columns
        key = (side, along, chosen, self._ratio)
        if key not in self._marks:
            if len(self._marks) > 64:
                self._marks.clear()
            self._marks[key] = names.marks(along, self._ratio, chosen)
        return self._marks[key]

    def _sides(self, painter: QPainter, rect: QRectF) -> None:
        assert self.scene is not None and self.view is not None
        left = rect.right() + GAP
        if self.scene.signed:
            if self.scene.mass is not None:
                self._mass(painter, QRectF(left, rect.top(), GUTTER - 10, rect.height()))
            left += GUTTER
        bar = QRectF(left, rect.top(), ink.BAR, rect.height())
        ink.colour_bar(painter, bar, self.scene, "Weight")

    def _mass(self, painter: QPainter, rect: QRectF) -> None:
        assert self.scene is not None and self.scene.mass is not None and self.view is not None
        first, last = self.view.down.shown()
        step = max(1, round(self._ratio / self.view.down.scale))
        firsts = list(range(first, last, step))
        mass = np.add.reduceat(self.scene.mass[first:last], np.array(firsts) - first, axis=0)
        counts = np.diff([*firsts, last])[:, None]
        rows = [
            tuple(rect.top() + edge / self._ratio for edge in self.view.down.edges(row, step))
            for row in firsts
        ]
        ink.mass_gutter(painter, rect, rows, mass / counts)
        painter.setFont(theme.font(ink.AXIS, 600))
        painter.setPen(theme.current().secondary)
        box = QRectF(rect.left(), rect.top() - 24, rect.width(), 20)
        painter.drawText(box, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, "−")
        painter.drawText(box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, "+")

    def _cross(self, painter: QPainter, rect: QRectF) -> None:
        assert self.scene is not None and self.view is not None
        cross, view = self.cross, self.view
        corner, line = self._corner(), max(1, round(self._ratio))
        (height, width), signed = view.size, self.scene.signed
        self._device(painter)
        if cross.row is not None:
            top, bottom = view.down.edges(cross.row)
            first, last = cross.ends or (0, view.across.cells)
            left, _ = view.across.edges(first)
            right, _ = view.across.edges(last)
            band = QRect(QPoint(max(left, 0), top), QPoint(min(right, width) - 1, bottom - 1))
            ink.pair(painter, band.translated(corner), True, signed, line)
        if cross.column is not None:
            left, right = view.across.edges(cross.column)
            top = 0
            if cross.row is not None and self.scene.source.rule.causal:
                top = max(0, view.down.edges(cross.row)[1])  # from here on the key is in sight
            band = QRect(QPoint(left, top), QPoint(right - 1, height - 1))
            ink.pair(painter, band.translated(corner), False, signed, line)
        if cross.row is not None and cross.column is not None:
            cell = QRect(
                QPoint(view.across.edges(cross.column)[0], view.down.edges(cross.row)[0]),
                QPoint(view.across.edges(cross.column)[1] - 1, view.down.edges(cross.row)[1] - 1),
            ).translated(corner)
            ink.ring(painter, cell, line)
        if self.block is not None:
            top, bottom, left, right = self.block
            (y0, y1), (x0, x1) = view.down.edges(top, bottom - top), view.across.edges(
                left, right - left)  # fmt: skip
            painter.setPen(QPen(theme.current().mark, 2 * line))
            painter.drawRect(QRect(QPoint(x0, y0), QPoint(x1, y1)).translated(corner))
        painter.restore()
        painter.setClipping(False)
        if cross.row is not None and rect.height():
            middle = sum(view.down.edges(cross.row)) / 2 / self._ratio
            if 0 <= middle <= rect.height():
                ink.triangle(painter, QPointF(rect.left() - 2, rect.top() + middle), False)
        if cross.column is not None:
            middle = sum(view.across.edges(cross.column)) / 2 / self._ratio
            if 0 <= middle <= rect.width():
                ink.triangle(painter, QPointF(rect.left() + middle, rect.top() - 1), True)

    def _notes(self, painter: QPainter, rect: QRectF) -> None:
        assert self.scene is not None and self.view is not None
        place = rect.topRight() + QPointF(-PAD + 3, 13)
        if self.scene.off:
            ink.chip(painter, place, "off: this head adds nothing", rect.width() - 2 * PAD)
        elif self.hidden_words:
            ink.chip(painter, place, self.hidden_words, rect.width() * 0.7)
        scale = self.view.down.scale
        if scale < 1:
            painter.setFont(theme.font(ink.AXIS))
            painter.setPen(theme.current().secondary)
            each = f"{1 / scale:.3g}"
            painter.drawText(
                QRectF(rect.left(), rect.bottom() + 2, rect.width(), BOTTOM),
                Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop,
                f"1 px = {each} × {each}, max",
            )
        if not self.view.whole and self._overview() is not None:
            ink.overview(painter, self._overview_rect(rect), self._overview(), self._frame())

    # --- the overview -----------------------------------------------------------------------------

    def _overview(self) -> QImage | None:
        """The whole head, small: its thumbnail, pixel for pixel."""
        assert self.scene is not None
        thumb = self.scene.source.thumb
        if thumb is None or not thumb.size:
            return None
        if self._thumb is None:
            self._thumb = picture.image(picture.thumbnail(self.scene, theme.current().dark))
        return self._thumb

    def _overview_rect(self, rect: QRectF) -> QRectF:
        """At the right under the chip, where a causal map has nothing to see."""
        assert self._thumb is not None
        size = self._thumb.size() * max(1, 96 // max(1, self._thumb.width(), self._thumb.height()))
        return QRectF(
            rect.right() - 13 - size.width(), rect.top() + 46, size.width(), size.height()
        )

    def _frame(self) -> QRectF:
        """The part on screen, as parts of the whole."""
        assert self.view is not None
        down, across = self.view.down, self.view.across
        return QRectF(
            across.start / across.length,
            down.start / down.length,
            across.size / across.length,
            down.size / down.length,
        )

    # --- the card ---------------------------------------------------------------------------------

    def _place_card(self) -> None:
        """22 px off the cell, never over its row or column; hidden where there is no such place."""
        row, column = self.cross.row, self.cross.column
        if self.view is None or row is None or column is None or self.card.empty:
            self.card.hide()
            return
        cell = self.cell_rect(row, column)
        if not self.map_rect.intersects(cell):
            self.card.hide()
            return
        size = self.card.sizeHint()
        for x, dx in ((cell.right() + CARD, 0), (cell.left() - CARD - size.width(), 0)):
            for y in (cell.bottom() + CARD, cell.top() - CARD - size.height()):
                place = QRect(round(x + dx), round(y), size.width(), size.height())
                if self.rect().contains(place):
                    self.card.setGeometry(place)
                    self.card.show()
                    return
        self.card.hide()

    # --- pointer ----------------------------------------------------------------------------------

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Point, drag the map along, or stretch a block."""
        if self._grip is None:
            cell = self.cell_at(event.position())
            self.pointed.emit(None if cell[0] is None else cell)
            return
        place = event.position().toPoint()
        step = place - self._grip
        if not self._dragged and step.manhattanLength() < 4:
            return
        self._dragged = True
        if self.block is not None:
            self._stretch(event.position())
        elif self.view is not None:
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
            self._look(
                self.view.panned(round(step.y() * self._ratio), round(step.x() * self._ratio))
            )
            self._grip = place

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Take hold; with Shift begin a block."""
        if event.button() != Qt.MouseButton.LeftButton:
            return
        row, column = self.cell_at(event.position())
        self._grip, self._dragged = event.position().toPoint(), False
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier and row is not None:
            assert column is not None
            self.block = (row, row + 1, column, column + 1)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A press that did not move is a click; a block is said."""
        if event.button() != Qt.MouseButton.LeftButton:
            return
        row, column = self.cell_at(event.position())
        dragged, self._grip, self._dragged = self._dragged, None, False
        self.unsetCursor()
        if self.block is not None and dragged:
            self.blocked.emit(self.block)
        elif not dragged:
            self.drop_block()
            if row is not None and column is not None:
                self.clicked.emit(row, column)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """The whole map again."""
        self.fit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom at the pointer."""
        if self.view is None:
            return
        self._turned += event.angleDelta().y()
        turns = int(self._turned / NOTCH)
        event.accept()
        if not turns:
            return
        self._turned -= turns * NOTCH
        spot = (event.position() - self.map_rect.topLeft()) * self._ratio
        if self.view.zoomed(turns, spot.y(), spot.x()) != self.view:
            self._look(self.view.zoomed(turns, spot.y(), spot.x()))

    def leaveEvent(self, event: QEvent) -> None:
        """The pointer is over nothing."""
        self.pointed.emit(None)

    def enterEvent(self, event: QEnterEvent) -> None:
        """A fresh start for the wheel."""
        self._turned = 0

    def drop_block(self) -> None:
        """Let go of the block."""
        if self.block is not None:
            self.block = None
            self.blocked.emit(None)
            self.update()

    def _stretch(self, place: QPointF) -> None:
        assert self.block is not None and self._grip is not None
        rect = self.map_rect.adjusted(0, 0, -0.01, -0.01)
        cells = [
            self.cell_at(
                QPointF(
                    min(max(one.x(), rect.left()), rect.right()),
                    min(max(one.y(), rect.top()), rect.bottom()),
                )
            )
            for one in (QPointF(self._grip), place)
        ]
        (top, left), (bottom, right) = cells
        if None not in (top, left, bottom, right):
            self.block = (
                min(top, bottom), max(top, bottom) + 1, min(left, right), max(left, right) + 1,
            )  # fmt: skip
            self.update()

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
        self.compose()
        self.moved.emit()
