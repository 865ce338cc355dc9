"""What the mouse does on a map: point, click, drag it along, zoom; and keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QPointF, Qt
from PySide6.QtGui import QHelpEvent, QKeyEvent, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QToolTip

from hgviz.gui.widgets import NOTCH

if TYPE_CHECKING:
    from hgviz.gui.heatmap import Canvas
STILL = 4  # px: a press that moves less is a click
TURNS = {Qt.Key.Key_Plus: 1, Qt.Key.Key_Equal: 1, Qt.Key.Key_Minus: -1}


class Pointer(QObject):
    """Filters the events of one canvas."""

    def __init__(self, canvas: Canvas) -> None:
        super().__init__(canvas)
        self._canvas = canvas
        self._grip: QPointF | None = None  # where the button went down, or the last drag was
        self._doing = ""  # "": pressed at most; pan, inset
        self._turned = 0
        canvas.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take mouse and wheel, and the keys that zoom; leave the rest."""
        kind = event.type()
        if kind == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            return self._type(event)
        if kind == QEvent.Type.Leave:
            self._turned = 0
            self._canvas.pointed.emit(None)
        elif isinstance(event, QWheelEvent):
            self._zoom(event)
            return True
        elif isinstance(event, QHelpEvent) and kind == QEvent.Type.ToolTip:
            said = self._canvas.sums_at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), said, self._canvas)  # "" hides it
            return True
        elif isinstance(event, QMouseEvent):
            if kind == QEvent.Type.MouseMove:
                self._move(event.position())
            elif event.button() == Qt.MouseButton.LeftButton:
                if kind == QEvent.Type.MouseButtonPress:
                    self._press(event)
                elif kind == QEvent.Type.MouseButtonRelease:
                    self._release(event.position())
                elif kind == QEvent.Type.MouseButtonDblClick:
                    self._canvas.fit()
        return False

    def _press(self, event: QMouseEvent) -> None:
        place = event.position()
        self._grip, self._doing = place, ""
        if self._canvas.inset.contains(place):
            self._doing = "inset"
            self._canvas.centre(place)

    def _move(self, place: QPointF) -> None:
        canvas = self._canvas
        if self._grip is None:
            row, column = canvas.cell_at(place)
            over = row is None or column is None or canvas.inset.contains(place)
            canvas.pointed.emit(None if over else (row, column))
        elif self._doing == "inset":
            canvas.centre(place)
        else:
            step = place - self._grip
            if self._doing == "pan" or step.manhattanLength() >= STILL:
                self._doing = "pan"
                canvas.setCursor(Qt.CursorShape.ClosedHandCursor)
                canvas.pan(step)
                self._grip = place

    def _release(self, place: QPointF) -> None:
        canvas, did = self._canvas, self._doing
        clicked = self._grip is not None and not did
        self._grip, self._doing = None, ""
        canvas.unsetCursor()
        if clicked:
            row, column = canvas.cell_at(place)
            if row is not None and column is not None:
                canvas.clicked.emit(row, column)

    def _type(self, event: QKeyEvent) -> bool:
        """+ and − zoom at what is looked at."""
        canvas, key = self._canvas, Qt.Key(event.key())
        row, column = canvas.cross.row, canvas.cross.column
        if key not in TURNS or canvas.view is None:
            return False
        there = row is not None and column is not None
        cell = canvas.cell_rect(row, column) if there else canvas.map_rect
        canvas.zoom(TURNS[key], cell.center())
        return True

    def _zoom(self, event: QWheelEvent) -> None:
        """Whole turns only; fine wheels add up."""
        self._turned += event.angleDelta().y()
        turns = int(self._turned / NOTCH)
        self._turned -= turns * NOTCH
        if turns:
            self._canvas.zoom(turns, event.position())
