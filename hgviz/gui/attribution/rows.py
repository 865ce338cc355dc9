"""The keys of a head, a row each, with bars side by side: looked at, sloped, attributed."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QFontMetricsF,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QToolTip

from hgviz.analysis.attribution import Beside
from hgviz.gui import theme
from hgviz.gui.neurons.dissected import number
from hgviz.gui.neurons.keys import ARROWS, HEAD, HIGH, PAD
from hgviz.gui.views import ink, naming
from hgviz.gui.views.axes import Names

KEY, KEY_LEAST, VALUE, BAR_LEAST = 132, 84, 56, 40  # px: the key; the figures; the least bar
TITLES = (
    ("Attention", "How much the query looks at the key: the weight in the map"),
    ("Gradient × attention", "The weight times the slope of the answer with it"),
    ("Integrated gradients", "What the tokens behind the key add to the answer, by captum"),
)


class BarRows(QAbstractScrollArea):
    """Draws only the rows on screen."""

    picked = Signal(int)  # a column of the map

    def __init__(self) -> None:
        super().__init__()
        self.found: Beside | None = None
        self.names: Names | None = None
        self.chosen: int | None = None
        self._most = [1.0, 1.0, 1.0]
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setAutoFillBackground(False)
        self.setAccessibleName("Every key: attention, gradient times attention, attribution")

    @property
    def _values(self) -> list[np.ndarray | None]:
        assert self.found is not None
        return [self.found.attention, self.found.slope, self.found.tokens]

    def show_rows(self, found: Beside | None, names: Names | None, chosen: int | None) -> None:
        """Show the keys of a head; None clears."""
        self.found, self.names = found, names
        if found is not None:
            self._most = [
                1.0 if one is None else float(np.abs(one).max(initial=0.0)) or 1.0
                for one in self._values
            ]
        self._fit()
        self.choose(chosen)

    def choose(self, column: int | None) -> None:
        """Mark a key and bring it into sight."""
        moved, self.chosen = column != self.chosen, column
        if moved:
            self._reveal()
        self.viewport().update()

    def _place(self, column: int | None) -> int | None:
        if self.found is None or column is None:
            return None
        there = np.flatnonzero(self.found.columns == column)
        return int(there[0]) if len(there) else None

    def _reveal(self) -> None:
        place = self._place(self.chosen)
        bar, top = self.verticalScrollBar(), (place or 0) * HIGH
        if place is not None and not bar.value() <= top <= bar.value() + self._page() - HIGH:
            bar.setValue(top - self._page() // 2)

    def _page(self) -> int:
        return max(HIGH, self.viewport().height() - HEAD)

    def _fit(self) -> None:
        bar = self.verticalScrollBar()
        count = 0 if self.found is None else len(self.found.columns)
        bar.setRange(0, max(0, count * HIGH - self._page()))
        bar.setPageStep(self._page())
        bar.setSingleStep(HIGH)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another number of rows fits."""
        super().resizeEvent(event)
        self._fit()
        self._reveal()

    def columns(self) -> list[tuple[float, float]]:
        """The left and the width of the three columns."""
        whole = self.viewport().width() - 2 * PAD
        key = KEY if whole - KEY >= 3 * (VALUE + BAR_LEAST) else KEY_LEAST
        wide = max(0.0, (whole - key) / 3)
        return [(PAD + key + at * wide, wide) for at in range(3)]

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the titles and the rows on screen."""
        if self.found is None or self.names is None:
            return
        now, places = theme.current(), self.columns()
        offset = self.verticalScrollBar().value()
        first = offset // HIGH
        with QPainter(self.viewport()) as painter:
            wide = self.viewport().width()
            painter.setClipRect(0, HEAD, wide, self.viewport().height() - HEAD)
            last = min(len(self.found.columns), first + self._page() // HIGH + 2)
            for place in range(first, last):
                box = QRectF(0, HEAD + place * HIGH - offset, wide, HIGH)
                self._row(painter, places, place, box)
            painter.setClipping(False)
            painter.setFont(theme.font(0.85, 600))
            painter.setPen(now.secondary)
            painter.drawText(QRectF(PAD, 0, places[0][0] - PAD, HEAD), ink.TO_LEFT, "Key")
            for (x, across), (title, _) in zip(places, TITLES, strict=True):
                said = painter.fontMetrics().elidedText(
                    title, Qt.TextElideMode.ElideRight, int(across) - 12
                )
                painter.drawText(QRectF(x + 4, 0, across - 8, HEAD), ink.TO_LEFT, said)
            painter.fillRect(QRectF(0, HEAD - 1, wide, 1), now.line)

    def _row(
        self, painter: QPainter, places: list[tuple[float, float]], place: int, box: QRectF
    ) -> None:
        assert self.found is not None and self.names is not None
        now, column = theme.current(), int(self.found.columns[place])
        chosen = column == self.chosen
        if chosen:
            painter.fillRect(box.adjusted(8, 1, -8, -1), now.mark_tint)
        glyph, font = self.names.glyph(column) or "∅", theme.mono(0.92, 600)
        room = places[0][0] - PAD - 8
        said = QFontMetricsF(font).elidedText(glyph, Qt.TextElideMode.ElideRight, room)
        painter.setFont(font)
        painter.setPen(now.mark_text if chosen else now.text)
        painter.drawText(QRectF(PAD, box.top(), room, HIGH), ink.TO_LEFT, said)
        x = max(22.0, QFontMetricsF(font).horizontalAdvance(said) + 8)
        if room - x > 24:
            painter.setFont(theme.font(0.85))
            painter.setPen(now.secondary)
            where = painter.fontMetrics().elidedText(
                self._where(column), Qt.TextElideMode.ElideRight, int(room - x)
            )
            painter.drawText(QRectF(PAD + x, box.top(), room - x, HIGH), ink.TO_LEFT, where)
        for (left, wide), values, most in zip(places, self._values, self._most, strict=True):
            area = QRectF(left + 4, box.top(), wide - 8, HIGH)
            if values is None:
                ink.unseen(painter, area.adjusted(0, 4, 0, -4), self.devicePixelRatioF())
            else:
                _bar(painter, area, float(values[place]), most, bool((values < 0).any()))

    def _where(self, column: int) -> str:
        assert self.names is not None
        start, end = (int(one) for one in self.names.spans[column])
        numbered = f"{start:,}" if end - start <= 1 else f"{start:,}–{end - 1:,}"
        around = naming.word_at(self.names.word_spans, end - 1)
        if around is None or around[1] - around[0] <= end - start:
            return numbered
        return f"{numbered} {naming.glyph(self.names.prompt, *around)}"

    # --- what people do ---------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose the key under the pointer."""
        place = int((event.position().y() - HEAD + self.verticalScrollBar().value()) // HIGH)
        inside = event.position().y() >= HEAD and self.found is not None
        if inside and 0 <= place < len(self.found.columns):
            self.picked.emit(int(self.found.columns[place]))

    def viewportEvent(self, event: QEvent) -> bool:
        """What a title means."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            QToolTip.showText(event.globalPos(), self.told_at(QPointF(event.pos())), self)
            return True
        return super().viewportEvent(event)

    def told_at(self, place: QPointF) -> str:
        """What a column is."""
        for (x, across), (_, says) in zip(self.columns(), TITLES, strict=True):
            if x <= place.x() < x + across:
                return says
        return ""

    def event(self, event: QEvent) -> bool:
        """With the keyboard here, the arrows walk this list."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            walks = event.key() in ARROWS and not event.modifiers()
            event.setAccepted(walks)
            return walks or super().event(event)
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """One key up or down."""
        step = ARROWS.get(Qt.Key(event.key()))
        if step is None or self.found is None or not len(self.found.columns):
            super().keyPressEvent(event)
            return
        place = self._place(self.chosen)
        last = len(self.found.columns) - 1
        place = 0 if place is None else min(max(place + step, 0), last)
        self.picked.emit(int(self.found.columns[place]))


def _bar(painter: QPainter, area: QRectF, value: float, most: float, signed: bool) -> None:
    """A bar with its number at the right; signed ones to both sides of a middle line."""
    now = theme.current()
    negative, positive = ink.sides()
    track = QRectF(area.left(), area.center().y() - 5, max(0.0, area.width() - VALUE), 10)
    painter.fillRect(track, now.hover)
    part = min(1.0, abs(value) / most)
    if signed:
        middle, half = track.center().x(), track.width() / 2
        left = middle if value > 0 else middle - part * half
        painter.fillRect(
            QRectF(left, track.top(), part * half, 10), positive if value > 0 else negative
        )
        painter.fillRect(QRectF(round(middle), track.top(), 1, 10), now.edge)
    else:
        painter.fillRect(QRectF(track.left(), track.top(), part * track.width(), 10), now.secondary)
    painter.setFont(theme.font(0.92))
    painter.setPen(now.text)
    painter.drawText(area, ink.TO_RIGHT, number(value))
