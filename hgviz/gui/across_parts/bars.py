"""One answer as bars over the text: its rollout, or its signed product."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QHelpEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from hgviz.core import Floats
from hgviz.gui import ink, sentences, theme
from hgviz.gui.across_parts import saying
from hgviz.gui.across_parts.composed import Across
from hgviz.gui.grid import Names
from hgviz.gui.heads_parts.metrics import Cited, explanation
from hgviz.gui.language import tr
from hgviz.gui.views.viewport import Along

LEFT, RIGHT = 88, 16  # px beside the bars: as the map has it
LANE, TALLEST, WORDS = 44, 104, 60  # px of height: bars at least and at most, words under them
NAMES = {"rollout": "Rollout", "product": "Product"}
MEANT = {  # what a lane is, its formula
    "rollout": (
        "How much of the answer comes from each token, all layers taken together",
        Cited("R = Â_L … Â_1, Â = α I + (1 − α) A", "Abnar and Zuidema 2020"),
    ),
    "product": (
        "How much each token adds or takes away, all layers multiplied",
        Cited("Π_l (A_l + I)", "across.md"),
    ),
}  # fmt: skip


def tints(count: int) -> list[QColor]:
    """Colours of so many levels, from full resolution in: the further in, the more orange."""
    now = theme.current()
    return [mixed(now.press, now.mark, number / max(1, count - 1)) for number in range(count)]


def mixed(one: QColor, other: QColor, part: float) -> QColor:
    """A colour between two."""
    both = zip(one.getRgb()[:3], other.getRgb()[:3], strict=True)  # type: ignore[index]
    return QColor(*(round(a + (b - a) * part) for a, b in both))


class Bars(QWidget):
    """Draws what is known; the token under the pointer is told, a click says it."""

    picked = Signal(int)  # a column

    def __init__(self) -> None:
        super().__init__()
        self.across: Across | None = None
        self.columns: Names | None = None
        self.rows: Names | None = None
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("The answer looked at, token by token"))
        self.chosen: int | None = None

    def sizeHint(self) -> QSize:
        """A lane for each kind of number, and the words."""
        return QSize(320, WORDS + LANE * max(1, len(self.lanes)))

    def minimumSizeHint(self) -> QSize:
        """As high as it needs to be."""
        return QSize(160, self.sizeHint().height())

    @property
    def lanes(self) -> tuple[tuple[str, Floats], ...]:
        """What is shown, from top to bottom."""
        if self.across is None or self.across.row is None:
            return ()
        name = "product" if self.across.recipe.signed else "rollout"
        return ((name, self.across.row.weights[0]),)

    def show_row(self, across: Across, rows: Names, columns: Names) -> None:
        """Show an answer."""
        self.across, self.rows, self.columns = across, rows, columns
        alone = across.opened is None and bool(across.why)  # there is no map above
        lanes = max(1, len(self.lanes))
        self.setMaximumHeight(WORDS + TALLEST * lanes * (3 if alone else 1))
        self.updateGeometry()
        self.update()

    # --- where things are -------------------------------------------------------------------------

    @property
    def along(self) -> Along | None:
        """The columns over the width, in logical px."""
        if self.columns is None or not len(self.columns):
            return None
        room = max(8, self.width() - LEFT - RIGHT)
        scale = room / len(self.columns)
        return Along(len(self.columns), room, float(int(scale)) if scale >= 1 else scale)

    def column_at(self, place: QPointF) -> int | None:
        """The column under a place."""
        along = self.along
        return None if along is None else along.cell(place.x() - LEFT)

    # --- painting ---------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """Lanes of bars, the words of the text under them."""
        along, lanes = self.along, self.lanes
        if along is None or not lanes or self.columns is None or self.across is None:
            return
        now = theme.current()
        with QPainter(self) as painter:
            y, lane = 2.0, (self.height() - WORDS) / len(lanes)
            for name, values in lanes:
                self._lane(painter, along, name, values, QRectF(LEFT, y, along.size, lane - 8))
                y += lane
            if self.chosen is not None:  # the key, as the cross hair of the map above has it
                left, right = along.edges(self.chosen)
                box = QRectF(LEFT + left, 2, max(2.0, right - left), self.height() - WORDS)
                painter.setPen(QPen(now.mark, 1))
                painter.drawRect(box)
            if self.hasFocus():
                painter.save()
                ink.focus_ring(painter, QRectF(self.rect()))
                painter.restore()
            base = QRectF(LEFT, y - 4, along.size, 1)
            painter.setFont(theme.font(ink.AXIS))
            chosen = self._own()
            marks = self.columns.marks(along, 1.0, chosen)
            metrics = QFontMetricsF(theme.font(ink.AXIS))
            for label in marks.labels:
                painter.setPen(now.mark_text if label.chosen else now.secondary)
                painter.save()
                painter.translate(base.left() + label.middle, base.top() + 2)
                if len(label.text) == 1:
                    box = QRectF(-20, 0, 40, metrics.height())
                    painter.drawText(box, Qt.AlignmentFlag.AlignCenter, label.text)
                else:
                    painter.rotate(90)
                    text = metrics.elidedText(label.text, Qt.TextElideMode.ElideRight, WORDS - 8)
                    box = QRectF(0, -metrics.height() / 2, WORDS, metrics.height())
                    painter.drawText(box, ink.TO_LEFT, text)
                painter.restore()

    def _own(self) -> int | None:
        assert self.across is not None and self.columns is not None
        if self.across.query is None or self.rows is None:
            return None
        return len(self.columns) - len(self.rows) + self.across.query

    def _lane(
        self, painter: QPainter, along: Along, name: str, values: Floats, box: QRectF
    ) -> None:
        now = theme.current()
        values = np.nan_to_num(values, nan=0.0)
        most = float(np.abs(values).max(initial=0.0)) or 1.0
        painter.setFont(theme.font(ink.AXIS, 600))
        painter.setPen(now.secondary)
        beside = QRectF(16, box.top(), LEFT - 24, 16)
        painter.drawText(beside, ink.TO_RIGHT, tr(NAMES[name]))
        painter.setFont(theme.font(ink.AXIS))
        under = QRectF(16, box.top() + 16, LEFT - 24, 16)
        top = saying.amount(most, self.across) if self.across else ""
        painter.drawText(under, ink.TO_RIGHT, tr("to {amount}", amount=top))
        signed = bool((values < 0).any())
        zero = box.center().y() if signed else box.bottom()
        high = box.height() / (2 if signed else 1)
        negative, positive = ink.sides()
        plain = now.press
        bounds = along.bounds()
        layers = self._layers(name, values, plain, negative, positive)
        gap = along.scale > 4
        for pixel, (first, after) in enumerate(zip(bounds[:-1], bounds[1:], strict=True)):
            if gap and (pixel + 1) % int(along.scale) == 0:
                continue
            cells = slice(int(first), max(int(first) + 1, int(after)))
            if not len(values[cells]):
                continue
            at = int(first) + int(np.abs(values[cells]).argmax())
            base = zero
            for part, colour in layers:
                tall = high * min(1.0, abs(float(part[at])) / most)
                if tall:
                    y = base - tall if part[at] > 0 else base
                    painter.fillRect(QRectF(box.left() + pixel, y, 1, tall), colour)
                    base -= tall
        painter.setPen(QPen(now.edge, 1))
        painter.drawLine(QPointF(box.left(), zero + 0.5), QPointF(box.right(), zero + 0.5))

    def _layers(
        self, name: str, values: Floats, plain: QColor, negative: QColor, positive: QColor
    ) -> list[tuple[Floats, QColor]]:
        """What is stacked in a lane: of a rollout, what comes from each level of the model."""
        if (values < 0).any():
            return [(np.minimum(values, 0), negative), (np.maximum(values, 0), positive)]
        levels = self.levels if name == "rollout" else ()
        return [*zip(levels, tints(len(levels)), strict=True)] if levels else [(values, plain)]

    @property
    def levels(self) -> tuple[Floats, ...]:
        """The answer in parts, by the level that each went no further in than."""
        return () if self.across is None or self.across.row is None else self.across.row.levels

    # --- events -----------------------------------------------------------------------------------

    def said_at(self, place: QPointF) -> str:
        """The token under a place and its numbers."""
        if place.x() < LEFT and self.lanes:
            lane = int((place.y() - 2) // max(1.0, (self.height() - WORDS) / len(self.lanes)))
            meaning, cited = MEANT[self.lanes[min(max(lane, 0), len(self.lanes) - 1)][0]]
            return explanation(tr(meaning), cited)
        return self.said_of(self.column_at(place))

    def said_of(self, column: int | None) -> str:
        """A token and its numbers; "" for none."""
        if column is None or self.columns is None or self.across is None:
            return ""
        parts = [f"{sentences.shown(self.columns.glyph(column))}, {self.columns.place(column)}"]
        for name, values in self.lanes:
            parts.append(self._said(name, float(values[column]), column))
        return "; ".join(parts)

    def _said(self, name: str, value: float, column: int) -> str:
        """The number of a lane at a column, with its name."""
        assert self.across is not None
        amount = saying.amount(value, self.across)
        if name == "product":
            return tr("product {amount}", amount=amount)
        if not self.levels or not value:
            return tr("rollout {amount}", amount=amount)
        by = ", ".join(
            tr("{amount} by {level}", level=level.label,
               amount=saying.amount(float(part[column]), self.across))
            for part, level in zip(self.levels, self.across.of.spec.levels, strict=True)
        )  # fmt: skip
        return tr("rollout {amount} ({parts})", amount=amount, parts=by)

    def choose(self, column: int | None) -> None:
        """Mark a token, and say its numbers to those who cannot see them."""
        if column is not None and (self.columns is None or column >= len(self.columns)):
            column = None
        self.chosen = column
        self.setAccessibleDescription(self.said_of(column))
        self.update()

    def table(self) -> list[list[str]]:
        """A row for each token, every number in full; nothing where one is not known."""
        assert self.columns is not None and self.across is not None
        levels = zip(self.across.of.spec.levels, self.levels, strict=False)
        parts = [(tr("{name} by {level}", name=tr("Rollout"), level=level.label), values)
                 for level, values in levels]  # fmt: skip
        lanes = [(tr(NAMES[name]), values) for name, values in self.lanes] + parts
        rows = [[tr("column"), tr("token"), tr("where"), *(name for name, _ in lanes)]]
        for column in range(len(self.columns)):
            numbers = (float(values[column]) for _, values in lanes)
            told = ("" if one != one else repr(one) for one in numbers)
            names = self.columns.glyph(column), self.columns.place(column)
            rows.append([str(column), *names, *told])
        return rows

    def event(self, event: QEvent) -> bool:
        """The numbers of the token under the pointer."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            QToolTip.showText(event.globalPos(), self.said_at(QPointF(event.pos())), self)
            return True
        return super().event(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose a token."""
        column = self.column_at(event.position())
        if column is not None and event.button() == Qt.MouseButton.LeftButton:
            self.picked.emit(column)
