"""The keys of a head, a row each, with bars side by side: looked at, sloped, attributed."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent

from hgviz.analysis.attribution import Beside
from hgviz.gui import ink, theme
from hgviz.gui.grid import Names
from hgviz.gui.heads_parts.metrics import Cited, explanation
from hgviz.gui.language import tr
from hgviz.gui.neurons_parts.dissected import number
from hgviz.gui.tables import HEAD, HIGH, KEY, KEY_LEAST, PAD, KeyList, where

VALUE, BAR_LEAST = 56, 40  # px: the figures; the least bar
TITLES = (  # what a column is called, what it means, its formula
    ("Attention", "How much the query looks at the key: the weight in the map",
     Cited("a_ij", "Vaswani et al. 2017")),
    ("Gradient × attention", "The weight times the slope of the answer with it",
     Cited("a_ij ∂F / ∂a_ij", "Chefer et al. 2021")),
    ("Integrated gradients", "What the tokens behind the key add to the answer, by captum",
     Cited("Σ_e (x_e − x′_e) ∫₀¹ ∂F(x′ + t (x − x′)) / ∂x_e dt", "Sundararajan et al. 2017")),
)  # fmt: skip


class BarRows(KeyList):
    """Every key with its three bars."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Beside | None = None
        self.names: Names | None = None
        self._most = [1.0, 1.0, 1.0]
        self.setAccessibleName(tr("Every key: attention, gradient times attention, attribution"))

    @property
    def _values(self) -> list[np.ndarray | None]:
        assert self.found is not None
        return [self.found.attention, self.found.slope, self.found.tokens]

    def show_rows(self, found: Beside | None, names: Names | None, chosen: int | None) -> None:
        """Show the keys of a head; None clears."""
        self.found, self.names = found, names
        walked = Qt.FocusPolicy.NoFocus if found is None else Qt.FocusPolicy.StrongFocus
        self.setFocusPolicy(walked)  # Tab passes by where there is nothing to walk
        if found is not None:
            self._most = [
                1.0 if one is None else float(np.abs(one).max(initial=0.0)) or 1.0
                for one in self._values
            ]
        self.put_in_order(np.zeros(0, np.int64) if found is None else found.columns)
        self.choose(chosen)

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
            last = min(len(self.found.columns), first + self.page // HIGH + 2)
            for place in range(first, last):
                box = QRectF(0, HEAD + place * HIGH - offset, wide, HIGH)
                self._row(painter, places, place, box)
            painter.setClipping(False)
            painter.setFont(theme.font(0.85, 600))
            painter.setPen(now.secondary)
            painter.drawText(QRectF(PAD, 0, places[0][0] - PAD, HEAD), ink.TO_LEFT, tr("Key"))
            for (x, across), (title, *_) in zip(places, TITLES, strict=True):
                said = painter.fontMetrics().elidedText(
                    tr(title), Qt.TextElideMode.ElideRight, int(across) - 12
                )
                painter.drawText(QRectF(x + 4, 0, across - 8, HEAD), ink.TO_LEFT, said)
            painter.fillRect(QRectF(0, HEAD - 1, wide, 1), now.line)
            if self.hasFocus():
                ink.focus_ring(painter, QRectF(self.viewport().rect()))

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
            place_said = painter.fontMetrics().elidedText(
                where(self.names, column), Qt.TextElideMode.ElideRight, int(room - x)
            )
            painter.drawText(QRectF(PAD + x, box.top(), room - x, HIGH), ink.TO_LEFT, place_said)
        for (left, wide), values, most in zip(places, self._values, self._most, strict=True):
            area = QRectF(left + 4, box.top(), wide - 8, HIGH)
            if values is None:
                ink.unseen(painter, area.adjusted(0, 4, 0, -4), self.devicePixelRatioF())
            else:
                _bar(painter, area, float(values[place]), most, bool((values < 0).any()))

    def told_at(self, place: QPointF) -> str:
        """What a column is, its formula, and where that comes from; of a row its numbers."""
        for (x, across), (_, says, cited) in zip(self.columns(), TITLES, strict=True):
            if place.y() < HEAD and x <= place.x() < x + across:
                return explanation(tr(says), cited)
        column = self.column_at(place.y())
        return "" if column is None else self.said_of(column)

    def said_of(self, column: int) -> str:
        """A key and its three numbers in words; "" for one that is not there."""
        place = self._place(column)
        if self.found is None or self.names is None or place is None:
            return ""
        said = [
            tr("{title}: {amount}", title=tr(title), amount=number(float(values[place])))
            for (title, *_), values in zip(TITLES, self._values, strict=True)
            if values is not None
        ]
        return " · ".join([where(self.names, column), *said])


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
