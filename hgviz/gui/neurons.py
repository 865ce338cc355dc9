"""All keys of one query, a row each: its elements as colours, then every number on the way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QMouseEvent, QPainter, QPaintEvent

from hgviz.core import Integers
from hgviz.gui import ink, theme
from hgviz.gui.heads_parts.metrics import Cited, explanation
from hgviz.gui.language import tr
from hgviz.gui.neurons_parts.dissected import Dissected, number
from hgviz.gui.neurons_parts.paint import image_of
from hgviz.gui.tables import HEAD, HIGH, KEY, KEY_LEAST, PAD, KeyList, where
from hgviz.maps.anatomy import Stage

NUMBER, WEIGHT = 62, 96  # px: a column of numbers, the one with a bar; at least
STRIP_LEAST = 56  # px: fewer show nothing

# the formula of a column by its kind, and where it comes from
FORMULAS = {
    "product": Cited("q_i · k_j = Σ_e q_ie k_je", "Vaswani et al. 2017"),
    "position": Cited("r_ij", "mechanisms.md"),
    "score": Cited("s_ij = c (q_i · k_j + r_ij), c = 1 / √d", "Vaswani et al. 2017"),
    "seen": Cited("s_ij, j ∈ V_i", "Vaswani et al. 2017"),
    "kept": Cited("s_ij, s_ij ≥ t_i", "activations.md"),
    "normed": Cited("s_ij / √(Σ_k s_ik²)", "activations.md"),
    "rectified": Cited("ln(exp s_ij − 1)", "activations.md"),
    "exponent": Cited("s_ij − ln Σ_k exp s_ik", "activations.md"),
    "biased": Cited("s_ij − ln n", "activations.md"),
    "weight": Cited("a_ij = f(s_ij)", "activations.md"),
}


@dataclass(frozen=True, slots=True)
class Room:
    """Where the parts of a row stand, in px from its left; strip 0 wide where there is no room."""

    key: float
    strip: tuple[float, float]
    columns: tuple[tuple[float, float], ...]


class KeyTable(KeyList):
    """Every key with its products, and every number on the way to its weight."""

    pointed = Signal(object)  # the column under the pointer, None for none

    def __init__(self) -> None:
        super().__init__()
        self.found: Dissected | None = None
        self._under: int | None = None
        self.viewport().setMouseTracking(True)
        self.setAccessibleName(tr("Every key of this query"))

    # --- what it shows ----------------------------------------------------------------------------

    def show_keys(self, found: Dissected, order: Integers, chosen: int | None) -> None:
        """Show the keys of another row, or in another order; the place in the list stays."""
        self.found = found
        self.put_in_order(order)
        self.choose(chosen)

    def room(self) -> Room:
        """How the width is shared: numbers first, the strip has what is left."""
        assert self.found is not None
        bold = QFontMetricsF(theme.font(0.85, 600))
        each = [
            max(
                WEIGHT if one.kind == "weight" else NUMBER,
                bold.horizontalAdvance(tr(one.title)) + 12,
            )
            for one in self.found.anatomy.stages
        ]
        numbers = sum(each)
        whole = self.viewport().width() - 2 * PAD
        key = KEY if whole - numbers >= KEY + STRIP_LEAST else KEY_LEAST
        left = whole - numbers - key
        strip = float(left - 12) if left - 12 >= STRIP_LEAST else 0.0
        x, columns = PAD + key + (strip + 12 if strip else max(0, left)), []
        shrink = min(1.0, max(0.0, (whole - key) / numbers))
        for wide in each:
            columns.append((x, wide * shrink))
            x += wide * shrink
        return Room(key, (PAD + key, strip), tuple(columns))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the titles and the rows on screen."""
        if self.found is None:
            return
        room, offset = self.room(), self.verticalScrollBar().value()
        first = offset // HIGH
        shown = self.order[first : first + self.page // HIGH + 2]
        with QPainter(self.viewport()) as painter:
            painter.setClipRect(0, HEAD, self.viewport().width(), self.viewport().height() - HEAD)
            self._strips(painter, room, shown, HEAD + first * HIGH - offset)
            for at, column in enumerate(shown.tolist()):
                top = HEAD + (first + at) * HIGH - offset
                self._row(painter, room, column, QRectF(0, top, self.viewport().width(), HIGH))
            painter.setClipping(False)
            self._titles(painter, room)
            if self.hasFocus():
                ink.focus_ring(painter, QRectF(self.viewport().rect()))

    def _titles(self, painter: QPainter, room: Room) -> None:
        assert self.found is not None
        now = theme.current()
        painter.setFont(theme.font(0.85, 600))
        painter.setPen(now.secondary)
        painter.drawText(QRectF(PAD, 0, room.key - 8, HEAD), ink.TO_LEFT, tr("Key"))
        left, wide = room.strip
        if wide:
            said = painter.fontMetrics().elidedText(
                tr("Element by element"), Qt.TextElideMode.ElideRight, int(wide)
            )
            painter.drawText(QRectF(left, 0, wide, HEAD), ink.TO_LEFT, said)
        for stage, (x, across) in zip(self.found.anatomy.stages, room.columns, strict=True):
            said = painter.fontMetrics().elidedText(
                tr(stage.title), Qt.TextElideMode.ElideRight, int(across) - 2
            )
            painter.drawText(QRectF(x, 0, across - 4, HEAD), ink.TO_RIGHT, said)
        painter.fillRect(QRectF(0, HEAD - 1, self.viewport().width(), 1), now.line)

    def _strips(self, painter: QPainter, room: Room, shown: Integers, top: int) -> None:
        """The products of all rows on screen as one picture, a line apart."""
        left, wide = room.strip
        if not wide or not len(shown):
            return
        assert self.found is not None
        one = self.found.anatomy
        keys = np.asarray(one.keys)[shown]
        picture = image_of(one.query.with_keys(keys).products, self.found.products or 1.0)
        for at in range(len(shown)):
            box = QRectF(left, top + at * HIGH + 4, wide, HIGH - 8)
            painter.drawImage(box, picture, QRectF(0, at, picture.width(), 1))

    def _row(self, painter: QPainter, room: Room, column: int, box: QRectF) -> None:
        assert self.found is not None
        now, one = theme.current(), self.found.anatomy
        left, wide = room.strip
        if column in (self.chosen, self._under):
            colour = now.mark_tint if column == self.chosen else now.hover
            start, end = (left - 4, left + wide + 4) if wide else (left, left)  # beside the strip
            for a, b in ((8.0, start), (end, box.width() - 8)):
                painter.fillRect(QRectF(a, box.top() + 1, b - a, HIGH - 2), colour)
        self._key(painter, room, column, box)
        painter.setFont(theme.font(0.92, 600 if column == self.chosen else 400))
        for stage, (x, across) in zip(one.stages, room.columns, strict=True):
            value, area = float(stage.values[column]), QRectF(x, box.top(), across - 4, HIGH)
            if stage.kind == "weight":
                self._weight(painter, area, value, column)
            elif value != value:
                self._missing(painter, area)
            else:
                painter.setPen(now.text if one.seen[column] else now.secondary)
                painter.drawText(area, ink.TO_RIGHT, number(value))

    def _key(self, painter: QPainter, room: Room, column: int, box: QRectF) -> None:
        assert self.found is not None
        now, names = theme.current(), self.found.columns
        glyph, font = names.glyph(column) or "∅", theme.mono(0.92, 600)
        painter.setFont(font)
        painter.setPen(now.mark_text if column == self.chosen else now.text)
        most = room.key - 12
        said = QFontMetricsF(font).elidedText(glyph, Qt.TextElideMode.ElideRight, most)
        painter.drawText(QRectF(PAD, box.top(), most, HIGH), ink.TO_LEFT, said)
        x = PAD + max(22.0, QFontMetricsF(font).horizontalAdvance(said) + 8)
        font = theme.font(0.85)
        rest = PAD + room.key - 8 - x
        painter.setFont(font)
        painter.setPen(now.secondary)
        place = QFontMetricsF(font).elidedText(
            where(names, column), Qt.TextElideMode.ElideRight, rest
        )
        if rest > 20:
            painter.drawText(QRectF(x, box.top(), rest, HIGH), ink.TO_LEFT, place)

    def _missing(self, painter: QPainter, area: QRectF) -> None:
        """A number that there is none of: masked, or not among the largest."""
        ratio = self.devicePixelRatioF()
        ink.unseen(painter, area.adjusted(8, 3, 0, -3), ratio)

    def _weight(self, painter: QPainter, area: QRectF, value: float, column: int) -> None:
        assert self.found is not None
        now, weights = theme.current(), self.found.anatomy.weights
        most = float(np.abs(weights).max(initial=0.0)) or 1.0
        bar = QRectF(area.left() + 6, area.bottom() - 3, area.width() - 6, 2)
        painter.fillRect(bar, now.hover)
        negative, positive = ink.sides()
        signed = bool((weights < 0).any())
        colour = (positive if value > 0 else negative) if signed else now.secondary
        colour = now.mark if column == self.chosen and not signed else colour
        long = bar.width() * abs(value) / most
        painter.fillRect(QRectF(bar.right() - long, bar.top(), long, bar.height()), colour)
        painter.setPen(now.text if value else now.secondary)
        painter.drawText(area, ink.TO_RIGHT, number(value))

    # --- what people do ---------------------------------------------------------------------------

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Say which key the pointer is over."""
        self._point(self.column_at(event.position().y()))

    def viewportEvent(self, event: QEvent) -> bool:
        """The pointer may leave."""
        if event.type() == QEvent.Type.Leave:
            self._point(None)
        return super().viewportEvent(event)

    def told_at(self, place: QPointF) -> str:
        """What a title means, or where a key stands."""
        if self.found is None:
            return ""
        if place.y() >= HEAD:
            column = self.column_at(place.y())
            return "" if column is None else self.found.sentence(column)
        left, wide = self.room().strip
        if wide and left <= place.x() < left + wide:
            return tr("Query times key in every element: blue takes away, red adds")
        for stage, (x, across) in zip(
            self.found.anatomy.stages, self.room().columns, strict=True
        ):  # fmt: skip
            if x <= place.x() < x + across:
                return explained(stage)
        return ""

    def _point(self, column: int | None) -> None:
        if column != self._under:
            self._under = column
            self.pointed.emit(column)
            self.viewport().update()


def explained(stage: Stage) -> str:
    """What a column is, its formula, and where that comes from."""
    return explanation(tr(stage.says), FORMULAS[stage.kind])
