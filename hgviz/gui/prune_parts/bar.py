"""The colour bar below the wall: from harmful to needed, and what a cell that is off looks like."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QLinearGradient, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QWidget

from hgviz.gui import theme
from hgviz.gui.ink import faint, hatching
from hgviz.gui.language import tr
from hgviz.gui.prune_parts.shades import Shades, colour, written
from hgviz.gui.widgets import tip

STOPS = 41
HIGH, NARROW = 44, 520  # px
LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class ShadeBar(QWidget):
    """harmful [colours] needed, numbers and the unit beneath."""

    def __init__(self) -> None:
        super().__init__()
        self.shades = Shades()
        self.setFixedHeight(HIGH)

    def sizeHint(self) -> QSize:
        """As wide as there is room."""
        return QSize(300, HIGH)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """A narrow bar has its unit beneath."""
        self._fit()

    def _fit(self) -> None:
        lines = (self.width() <= NARROW) + bool(self.shades.part)
        self.setFixedHeight(HIGH + 16 * lines)

    def show_shades(self, shades: Shades) -> None:
        """Another scale."""
        self.shades = shades
        self._fit()
        self.setToolTip(tip(shades.told))
        self.setAccessibleName(
            tr(
                "Colours: {low} is harmful, {high} needed; {unit}",
                low=written(-shades.limit), high=written(shades.limit),
                unit=", ".join(filter(None, (shades.unit, shades.part))),
            )
            if shades.label else tr("Colours: nothing is measured yet")
        )  # fmt: skip
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw it."""
        now = theme.current()
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setFont(theme.font(0.92))
            measure = painter.fontMetrics().horizontalAdvance
            ends = tr("harmful"), tr("needed"), tr("switched off")
            before, after, off = map(measure, ends)
            legend = self.width() > before + after + off + 240
            right = self.width() - 16 - (off + 52 if legend else 0)
            bar = QRectF(16 + before + 10, 3, 0, 14)
            bar.setRight(max(bar.left() + 60, min(bar.left() + 300, right - after - 10)))
            painter.setPen(now.secondary)
            painter.drawText(QRectF(16, 0, before + 4, 20), LEFT, ends[0])
            painter.drawText(QRectF(bar.right() + 10, 0, after + 4, 20), LEFT, ends[1])
            self._bar(painter, bar)
            if legend:
                box = QRectF(bar.right() + after + 34, 2, 20, 16)
                painter.setPen(QPen(now.text, 1.2))
                painter.setBrush(now.pane)
                painter.drawRoundedRect(box, 4, 4)
                painter.setBrush(hatching(faint(now.secondary, 0.6), self.devicePixelRatioF()))
                painter.drawRoundedRect(box, 4, 4)
                painter.setPen(now.secondary)
                painter.setFont(theme.font(0.92))
                painter.drawText(QRectF(box.right() + 8, 0, off + 4, 20), LEFT, ends[2])
            self._numbers(painter, bar)

    def _bar(self, painter: QPainter, bar: QRectF) -> None:
        now = theme.current()
        if self.shades.label:
            colours = QLinearGradient(bar.topLeft(), bar.topRight())
            for at in range(STOPS):
                part = at / (STOPS - 1)
                colours.setColorAt(part, colour(2 * part - 1, now.dark))
            painter.setBrush(colours)
        else:
            painter.setBrush(now.raised)
        painter.setPen(QPen(now.edge, 1))
        painter.drawRect(bar)

    def _numbers(self, painter: QPainter, bar: QRectF) -> None:
        now, one = theme.current(), self.shades
        painter.setFont(theme.font(0.85))
        painter.setPen(now.secondary)
        if not one.label:
            painter.drawText(QRectF(bar.left(), 22, bar.width(), 18), LEFT, tr("not measured yet"))
            return
        end = 0.0
        for part in (-1.0, 0.0, 1.0):
            x = bar.left() + (part + 1) / 2 * bar.width()
            painter.drawLine(QPointF(x, bar.bottom()), QPointF(x, bar.bottom() + 4))
            said = written(part * one.limit)
            wide = painter.fontMetrics().horizontalAdvance(said)
            painter.drawText(QRectF(x - wide / 2 - 2, 22, wide + 4, 18), LEFT, said)
            end = x + wide / 2
        if self.width() <= NARROW:
            end, top = 4.0, 39
        else:
            top = 22
        room = self.width() - 12 - end - 12
        painter.drawText(QRectF(16, top + 17, self.width() - 28, 18), LEFT, one.part)
        said = painter.fontMetrics().elidedText(one.unit, Qt.TextElideMode.ElideRight, round(room))
        painter.drawText(QRectF(end + 12, top, room, 18), LEFT, said)
