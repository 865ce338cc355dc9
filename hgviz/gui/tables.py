"""A list of keys under a row of titles: it scrolls, is walked by keyboard, marks the chosen one."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QEvent, QPointF, Qt, Signal
from PySide6.QtGui import QFocusEvent, QHelpEvent, QKeyEvent, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QToolTip

from hgviz.core import Integers
from hgviz.gui import sentences
from hgviz.gui.grid import Names
from hgviz.gui.language import tr

HIGH, HEAD = 22, 28  # px: a row, the titles
PAD, KEY, KEY_LEAST = 16, 132, 84  # px: at both ends, the key and its place
ARROWS = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
PAGES = {Qt.Key.Key_PageUp: -1, Qt.Key.Key_PageDown: 1}


class KeyList(QAbstractScrollArea):
    """A subclass paints the rows on screen: a text of any length scrolls alike."""

    picked = Signal(int)  # a column of the map

    def __init__(self) -> None:
        super().__init__()
        self.order: Integers = np.zeros(0, np.int64)  # columns of the map, from the top
        self.chosen: int | None = None
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setAutoFillBackground(False)

    def told_at(self, place: QPointF) -> str:
        """What is said of a place the pointer rests on."""
        raise NotImplementedError

    def put_in_order(self, order: Integers) -> None:
        """List these columns; the place in the list stays."""
        self.order = order
        self._fit()

    def choose(self, column: int | None) -> None:
        """Mark a key and bring it into sight."""
        moved, self.chosen = column != self.chosen, column
        if moved:
            self._reveal()
        self.viewport().update()

    @property
    def page(self) -> int:
        """Px of rows on screen."""
        return max(HIGH, self.viewport().height() - HEAD)

    def column_at(self, y: float) -> int | None:
        """The column of the map in the row at a height, None beside the rows."""
        place = int((y - HEAD + self.verticalScrollBar().value()) // HIGH)
        inside = y >= HEAD and 0 <= place < len(self.order)
        return int(self.order[place]) if inside else None

    def _place(self, column: int | None) -> int | None:
        """Where in the list a column stands."""
        there = np.flatnonzero(self.order == column)
        return int(there[0]) if column is not None and len(there) else None

    def _reveal(self) -> None:
        place = self._place(self.chosen)
        bar, top = self.verticalScrollBar(), (place or 0) * HIGH
        if place is not None and not bar.value() <= top <= bar.value() + self.page - HIGH:
            bar.setValue(top - self.page // 2)

    def _fit(self) -> None:
        bar = self.verticalScrollBar()
        bar.setRange(0, max(0, len(self.order) * HIGH - self.page))
        bar.setPageStep(self.page)
        bar.setSingleStep(HIGH)

    # --- what people do ---------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another number of rows fits."""
        super().resizeEvent(event)
        self._fit()
        self._reveal()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose the key under the pointer."""
        column = self.column_at(event.position().y())
        if column is not None:
            self.picked.emit(column)

    def viewportEvent(self, event: QEvent) -> bool:
        """The pointer rests, and a title or a row is told."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            QToolTip.showText(event.globalPos(), self.told_at(QPointF(event.pos())), self)
            return True
        return super().viewportEvent(event)

    def event(self, event: QEvent) -> bool:
        """With the keyboard here, the arrows walk this list, not the menu's keys."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            walks = event.key() in ARROWS | PAGES and not event.modifiers()
            event.setAccepted(walks)
            return walks or super().event(event)
        return super().event(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show that keys act here."""
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Keys act elsewhere."""
        super().focusOutEvent(event)
        self.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """One key up or down, or a page."""
        key = Qt.Key(event.key())
        step = ARROWS.get(key) or PAGES.get(key, 0) * (self.page // HIGH)
        if not step or not len(self.order):
            super().keyPressEvent(event)
            return
        place = self._place(self.chosen)
        place = 0 if place is None else min(max(place + step, 0), len(self.order) - 1)
        self.picked.emit(int(self.order[place]))


def where(names: Names, column: int) -> str:
    """The number of a key and the word it is in; the number alone where it is the word."""
    start, end = (int(one) for one in names.spans[column])
    if end <= 0 and names.null:
        return tr(sentences.NULL)
    if end <= 0:
        return tr("place {number:,}", number=column)
    numbered = f"{start:,}" if end - start <= 1 else f"{start:,}–{end - 1:,}"
    around = sentences.word_at(names.word_spans, end - 1)
    if around is None or around[1] - around[0] <= end - start:
        return numbered
    return f"{numbered} {sentences.glyph(names.prompt, *around)}"
