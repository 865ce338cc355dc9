"""The chart of how many heads can go; the mark at its top is a slider along the order."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFontMetricsF,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from hgviz.analysis import curves
from hgviz.core import Off
from hgviz.gui import theme
from hgviz.gui.language import tr
from hgviz.gui.prune import chart
from hgviz.gui.prune.line import Line, allowed_words, point_words, said

TITLES = {
    "heads": "heads switched off",
    "parameters": "parameters of heads, saved",
    "flops": "FLOPs of heads, saved",
    "time": "milliseconds of one pass, as measured: one core, 16 texts at once",
}
SAID = {
    "heads": chart.count,
    "parameters": chart.percent,
    "flops": chart.percent,
    "time": "{:g}".format,
}
ELSEWHERE = "The mask is not on this curve; click or press Right to come back to it"
TOP, BOTTOM, LEFT, RIGHT = 34, 42, 56, 20  # px around the chart
STEPS = {
    Qt.Key.Key_Left: -1,
    Qt.Key.Key_Down: -1,
    Qt.Key.Key_Right: 1,
    Qt.Key.Key_Up: 1,
    Qt.Key.Key_PageUp: 5,
    Qt.Key.Key_PageDown: -5,
}
KEYS = (*STEPS, Qt.Key.Key_Home, Qt.Key.Key_End)


class CurveChart(QWidget):
    """The picture; the mark at its top is a slider."""

    switched = Signal(object, bool)
    told = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.line: Line | None = None
        self.axis = "heads"
        self.at: int | None = None  # heads off along the order; None: the mask is another one
        self._drag = False
        self._begun = False
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(tr("How many heads can go"))
        self.setMouseTracking(True)

    def sizeHint(self) -> QSize:
        """What it likes."""
        return QSize(400, 200)

    def show_line(self, line: Line, axis: str) -> None:
        """Another curve, or the same further on."""
        self.line, self.axis = line, axis
        self._describe()
        self.update()

    def show_off(self, off: Off) -> None:
        """Where the mask lies on the order."""
        self.at = None
        if self.line is not None and self.line.curve.off(len(off)) == off:
            self.at = len(off)
        self._describe()
        self.update()

    @property
    def words(self) -> str:
        """Where the mark is, and what was measured nearest to it."""
        if self.line is None:
            return ""
        if self.at is None:
            return tr(ELSEWHERE)
        nearest = int(np.abs(self.line.curve.removed - self.at).argmin())
        mark = tr("The mark: {n} of {total} off", n=self.at, total=len(self.line.curve.order))
        return f"{mark} · {_one_line(point_words(self.line, nearest))}"

    def _describe(self) -> None:
        if self.line is not None:
            self.setAccessibleDescription(f"{said(self.line)} · {self.words}")

    # --- the slider -------------------------------------------------------------------------------

    def _axes(self) -> chart.Axes:
        line = self.line
        assert line is not None
        one, band = line.curve, line.band
        lowest = np.concatenate([one.values, one.low, band.low, band.high])
        low = float(lowest.min())
        high = float(np.concatenate([one.values, band.high]).max())
        low = min(low, float(one.values[0]) - curves.POINT)
        room = max(0.005, (high - low) * 0.06)
        box = QRectF(LEFT, TOP, self.width() - LEFT - RIGHT, self.height() - TOP - BOTTOM)
        return chart.Axes(box, *line.ends, max(0.0, low - room), min(1.0, high + room))

    def _switch(self, count: int) -> None:
        line = self.line
        assert line is not None
        count = max(0, min(count, len(line.curve.order)))
        if count != self.at:
            begun, self._begun = self._begun, True
            self.switched.emit(line.curve.off(count), begun)

    def _count(self, x: float) -> int:
        assert self.line is not None
        return int(np.abs(self.line.each - self._axes().value(x)).argmin())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Take the mark, or call it here."""
        if self.line is not None and event.button() == Qt.MouseButton.LeftButton:
            self._drag, self._begun = True, False
            self._switch(self._count(event.position().x()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Drag it."""
        if self.line is None:
            return
        if self._drag:
            self._switch(self._count(event.position().x()))
        self.told.emit(_one_line(self._tip(round(event.position().x()))))

    def leaveEvent(self, event: QEvent) -> None:
        """Tell of the mark again."""
        self.told.emit(self.words)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Let it go."""
        self._drag = False

    def event(self, event: QEvent) -> bool:
        """Keep the arrows from the window's shortcuts; tell of the point under the pointer."""
        overrides = event.type() == QEvent.Type.ShortcutOverride
        if overrides and isinstance(event, QKeyEvent) and event.key() in KEYS:
            event.accept()
            return True
        if isinstance(event, QHelpEvent) and self.line is not None:
            QToolTip.showText(event.globalPos(), self._tip(event.pos().x()), self)
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows move the mark one head, Page keys five, Home to none, End to k*."""
        if self.line is None:
            return
        self._begun = False
        here = self.at if self.at is not None else 0
        if event.key() in STEPS:
            self._switch(here + STEPS[Qt.Key(event.key())])
        elif event.key() == Qt.Key.Key_Home:
            self._switch(0)
        elif event.key() == Qt.Key.Key_End:
            self._switch(self.line.allowed)
        else:
            super().keyPressEvent(event)

    def _tip(self, x: float) -> str:
        assert self.line is not None
        at = int(np.abs(self.line.x - self._axes().value(x)).argmin())
        return point_words(self.line, at)

    def focusInEvent(self, event: QEvent) -> None:
        """Show the ring, and tell of the mark."""
        self.told.emit(self.words)
        self.update()

    def focusOutEvent(self, event: QEvent) -> None:
        """Hide the ring."""
        self.update()

    # --- the picture ------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """Band, curve, lines of one point and of k*, mark."""
        if self.line is None or self.height() < TOP + BOTTOM + 20:
            return
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            axes = self._axes()
            self._frame(painter, axes)
            self._lines(painter, axes)
            self._mark(painter, axes)

    def _frame(self, painter: QPainter, axes: chart.Axes) -> None:
        line, box = self.line, axes.box
        assert line is not None
        heads = len(line.curve.order)
        if self.axis == "heads":
            most = 8 if box.width() > 480 else 5
            xs = [
                one for one in chart.ticks(0, heads, most) if one <= heads * 0.94 and one % 1 == 0
            ]
            xs.append(heads)
        else:
            xs = chart.ticks(axes.x0, axes.x1, 6)
        chart.frame(
            painter, axes, xs,
            chart.ticks(axes.y0, axes.y1, max(2, round(box.height() / 30))),
            SAID[self.axis],
            chart.percent, tr(TITLES[self.axis]),
        )  # fmt: skip

    def _lines(self, painter: QPainter, axes: chart.Axes) -> None:
        line, now, box = self.line, theme.current(), axes.box
        assert line is not None
        one, band = line.curve, line.band
        if band.orders:
            low, middle, high = (
                list(zip(line.band_x, part, strict=True))
                for part in (band.low, band.middle, band.high)
            )
            chart.area(painter, axes.band(low, high), now.secondary, 0.22)
            chart.stroke(painter, axes.line(middle), now.secondary, 1.2)
        whole = float(one.values[0])
        floor = whole - curves.POINT
        chart.stroke(painter, axes.line([(axes.x0, floor), (axes.x1, floor)]), now.bad, 1.2,
                     Qt.PenStyle.DotLine)  # fmt: skip
        points = list(zip(line.x, one.values, strict=True))
        chart.stroke(painter, axes.line(points), now.press)
        painter.setPen(QPen(now.pane, 1))
        painter.setBrush(now.press)
        for x, y in points:
            painter.drawEllipse(QPointF(axes.x(x), axes.y(y)), 3, 3)
        if line.allowed:
            x = axes.x(float(line.each[line.allowed]))
            painter.setPen(QPen(now.good, 1.5, Qt.PenStyle.DotLine))
            painter.drawLine(QPointF(x, axes.y(whole)), QPointF(x, box.bottom()))
        chart.note(
            painter,
            allowed_words(line),
            now.good,
            QPointF(axes.x(float(line.each[line.allowed])) + 6, box.bottom() - 11),
            box,
        )
        side = box.left() if line.timed else box.right()  # the whole model is at the other
        chart.note(painter, tr("1 point below the whole model"), now.bad,
                   QPointF(side, axes.y(floor) - 9), box)  # fmt: skip
        if band.orders and len(line.band_x) > 2:
            words = tr("random orders: {n} (10 to 90 %)", n=band.orders)
            chart.note(painter, words, now.secondary, self._beside(axes, words), box, 500)
        if line.timed:
            chart.note(painter, tr("random orders are not timed"), now.secondary,
                       QPointF(box.left(), axes.y(floor) + 11), box, 500)  # fmt: skip
        if len(points) > 2:
            x, y = points[len(points) * 3 // 4]
            # where the line does not go on to the right, nor the words about the floor stand
            below = line.timed or abs(axes.y(y) - axes.y(floor)) < 16
            beside = 14 if below else -10
            chart.note(
                painter, line.label, now.press, QPointF(axes.x(x) + 6, axes.y(y) + beside), box
            )

    def _beside(self, axes: chart.Axes, words: str) -> QPointF:
        """Where the words about the band stand: under all lines, or where there is most room."""
        line, box = self.line, axes.box
        assert line is not None
        wide = QFontMetricsF(theme.font(0.85, 500)).horizontalAdvance(words) + 6
        best, most = QPointF(box.center()), -1.0
        for left in np.linspace(box.left() + 40, max(box.left() + 40, box.right() - wide - 90), 12):
            at = np.linspace(axes.value(left), axes.value(left + wide), 9)
            lowest = np.minimum(
                np.interp(at, line.x, line.curve.values), np.interp(at, line.band_x, line.band.low)
            )
            top = max(axes.y(float(one)) for one in lowest)
            room = box.bottom() - 26 - top
            if room > most:
                best, most = QPointF(left, min(top + 16, box.bottom() - 28)), room
            if room > 20:
                break
        return best

    def _mark(self, painter: QPainter, axes: chart.Axes) -> None:
        line, now, box = self.line, theme.current(), axes.box
        assert line is not None
        if self.at is None:
            painter.setFont(theme.font(0.85))
            words = painter.fontMetrics().elidedText(
                tr(ELSEWHERE), Qt.TextElideMode.ElideRight, round(box.width())
            )
            where = QRectF(box.left(), 4, painter.fontMetrics().horizontalAdvance(words) + 2, 20)
            painter.setPen(now.secondary)
            painter.drawText(where, Qt.AlignmentFlag.AlignVCenter, words)
            self._focus(painter, where.adjusted(-6, 0, 6, 0))
            return
        x = axes.x(float(line.each[min(self.at, len(line.each) - 1)]))
        words = tr("‹  {n} off  ›", n=self.at)
        font = theme.font(0.92, 600)
        wide = QFontMetricsF(font).horizontalAdvance(words) + 20
        chip = QRectF(x - wide / 2, 5, wide, 22)
        chip.moveLeft(max(4.0, min(chip.left(), self.width() - wide - 4)))
        painter.setPen(QPen(now.mark, 1.5))
        painter.drawLine(QPointF(x, chip.bottom()), QPointF(x, box.bottom()))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(now.mark_text)
        painter.drawRoundedRect(chip, 11, 11)
        painter.setPen(now.pane)
        painter.setFont(font)
        painter.drawText(chip, Qt.AlignmentFlag.AlignCenter, words)
        self._focus(painter, chip.adjusted(-2, -2, 2, 2))

    def _focus(self, painter: QPainter, box: QRectF) -> None:
        """A ring around the words of the mark while the keyboard is here."""
        if self.hasFocus():
            painter.setPen(QPen(theme.current().press, 1.5))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box, 13, 13)


def _one_line(words: str) -> str:
    return words.replace("\n", " · ")
