"""Charts of means over seeds on screen, with the numbers of what the pointer is at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen, QPolygonF

from hgviz.gui import theme
from hgviz.gui.language import tr
from hgviz.gui.prune.chart import LEFT, MIDDLE, Axes, area, frame, stroke, ticks
from hgviz.gui.sweeps.about import called, share
from hgviz.gui.sweeps.spots import Chart, Spot
from hgviz.palettes import CATEGORICAL, CATEGORICAL_DARK
from hgviz.tasks.plotting import ORDERS

if TYPE_CHECKING:
    from hgviz.figures.content.charts import Line
    from hgviz.figures.content.laboratory import Plot, Plots
    from hgviz.figures.content.seeds import Mark, Seeds

OVER, UNDER, BESIDE, END = 30, 46, 60, 18  # px around a pair of axes
KEY = 22  # px of the key above
LEAST, LOW = 250, 150  # px of width and of height of one of several plots
SHAPES = 4


class SeedsChart(Chart):
    """What was reached: a small mark for each seed, a large one for their mean, its interval."""

    content: Seeds | None

    def paint_chart(self, painter: QPainter) -> None:
        """Facets side by side on one scale."""
        content = self.content
        assert content is not None
        top = OVER + (KEY if len(content.series) > 1 else 0)
        marks = content.marks()
        values = np.concatenate([
            [one.mean, *one.values, *(end for end in (one.low, one.high) if np.isfinite(end))]
            for one in marks
        ])  # fmt: skip
        low, high = _limits(values, marks)
        wide = (self.width() - BESIDE) / len(content.facets)
        if len(content.series) > 1:
            _key(painter, QRectF(BESIDE, 6, self.width() - BESIDE - END, KEY), content.series)
        for number, facet in enumerate(content.facets):
            box = QRectF(BESIDE + number * wide, top, wide - END, self.height() - top - UNDER)
            axes = Axes(box, 0.0, float(len(content.groups)), low, high)
            ys = ticks(low, high, max(3, min(7, int(box.height() / 32))))
            frame(painter, axes, (), ys, str, _number if not number else _nothing, "")
            _title(painter, box, facet.title)
            if not number:
                _up(painter, box, tr(content.up))
            self._groups(painter, axes, content)
            for series, row in enumerate(facet.marks):
                for group, mark in enumerate(row):
                    if mark is not None:
                        self._mark(painter, axes, content, series, group, mark)

    def _groups(self, painter: QPainter, axes: Axes, content: Seeds) -> None:
        now, font = theme.current(), theme.font(0.92, 500)
        metrics = QFontMetricsF(font)
        painter.setFont(font)
        painter.setPen(now.text)
        room = axes.box.width() / len(content.groups)
        for number, name in enumerate(content.groups):
            x = axes.x(number + 0.5)
            shown = metrics.elidedText(called(name), Qt.TextElideMode.ElideRight, room - 6)
            place = QRectF(x - room / 2, axes.box.bottom() + 6, room, 18)
            painter.drawText(place, MIDDLE, shown)

    def _mark(
        self, painter: QPainter, axes: Axes, content: Seeds, series: int, group: int, mark: Mark
    ) -> None:
        now, count = theme.current(), len(content.series)
        apart = min(0.8 / count, 46 / (axes.box.width() / max(1, len(content.groups))))
        x = axes.x(group + 0.5 + (series - (count - 1) / 2) * apart)
        colour = _colour(series)
        step = min(5.0, 14.0 / max(1, len(mark.values)))
        for number, value in enumerate(mark.values):
            at = QPointF(x + 9 + number * step, axes.y(float(value)))
            painter.setPen(QPen(colour, 1.2))
            painter.setBrush(now.pane)
            painter.drawEllipse(at, 2.6, 2.6)
        if np.isfinite(mark.low):
            painter.setPen(QPen(colour, 2))
            ends = [QPointF(x, axes.y(one)) for one in (mark.low, mark.high)]
            painter.drawLine(*ends)
            for end in ends:
                painter.drawLine(end + QPointF(-4, 0), end + QPointF(4, 0))
        middle = QPointF(x, axes.y(mark.mean))
        painter.setPen(QPen(now.pane, 1))
        painter.setBrush(colour)
        _shape(painter, middle, series)
        names = (called(content.groups[group]), called(content.series[series]))
        self.spots.append(Spot(middle, _reached(", ".join(filter(None, names)), mark)))


class PlotsChart(Chart):
    """What is left as heads go: a line for each method with its interval, a plot for each model."""

    content: Plots | None

    def paint_chart(self, painter: QPainter) -> None:
        """Plots beside and below each other."""
        content = self.content
        assert content is not None
        names = list(dict.fromkeys(one.label for plot in content.plots for one in plot.lines))
        count = len(content.plots)
        rows = max(1, int((self.height() - KEY) / LOW))  # of plots that can be read
        across = max(1, min(count, int(self.width() / LEAST)), -(-count // rows))
        down = -(-count // across)
        _key(painter, QRectF(BESIDE, 6, self.width() - BESIDE - END, KEY), names)
        top = 6.0 + KEY
        wide, high = self.width() / across, (self.height() - top) / down
        for number, plot in enumerate(content.plots):
            x, y = number % across * wide, top + number // across * high
            box = QRectF(x + BESIDE, y + OVER - 4, wide - BESIDE - END, high - OVER - UNDER + 4)
            if box.height() > 24:
                self._plot(painter, box, plot, names)
                if not number % across:
                    _up(painter, box, tr(plot.up))

    def _plot(self, painter: QPainter, box: QRectF, plot: Plot, names: list[str]) -> None:
        xs = np.concatenate([one.x for one in plot.lines])
        ys = np.concatenate([one.y for one in plot.lines])
        low, high = plot.limits or (float(ys.min()), float(ys.max()))
        axes = Axes(box, float(xs.min()), float(xs.max()), low, high)
        said = {one: share(100 * one, 0) for one, _ in plot.xs}
        marks = ticks(low, high, max(3, min(7, int(box.height() / 32))))
        frame(painter, axes, [*said] or ticks(axes.x0, axes.x1, 5), marks,
              lambda one: said.get(one, f"{one:g}"), _number, tr(plot.across).lower())  # fmt: skip
        _title(painter, box, plot.title)
        painter.save()
        painter.setClipRect(box.adjusted(-4, -4, 4, 4))
        for one in plot.lines:
            colour = _colour(names.index(one.label), one.label)
            if one.low is not None and one.high is not None:
                edges = [list(zip(one.x, end, strict=True)) for end in (one.low, one.high)]
                area(painter, axes.band(*edges), colour, 0.16)
        for one in plot.lines:
            number = names.index(one.label)
            colour = _colour(number, one.label)
            style = Qt.PenStyle.DashLine if one.label == ORDERS else Qt.PenStyle.SolidLine
            points = list(zip(one.x, one.y, strict=True))
            stroke(painter, axes.line(points), colour, 2, style)
            painter.setPen(QPen(theme.current().pane, 1))
            painter.setBrush(colour)
            for at, (x, y) in enumerate(points):
                place = QPointF(axes.x(float(x)), axes.y(float(y)))
                _shape(painter, place, number, 3.4)
                self.spots.append(Spot(place, _left(one, at, plot)))
        painter.restore()


def _reached(name: str, mark: Mark) -> tuple[str, ...]:
    """What a mean over seeds is, how sure, and of which values."""
    seeds = tr("{n} seed" if len(mark.values) == 1 else "{n} seeds", n=len(mark.values))
    sure = tr("{seeds}: no interval", seeds=seeds)
    if np.isfinite(mark.low):
        ends = {"low": _number(mark.low), "high": _number(mark.high)}
        sure = tr("{low} to {high}, 95 % over {seeds}", **ends, seeds=seeds)
    values = ", ".join(_number(float(one)) for one in mark.values[:8])
    return f"{name}: {_number(mark.mean)}", sure, values


def _left(line: Line, at: int, plot: Plot) -> tuple[str, ...]:
    """What a method leaves at a share of heads, and how sure."""
    name = ", ".join(filter(None, (plot.title, called(line.label))))
    words = [f"{name}: {_number(line.y[at])}"]
    if line.low is not None and line.high is not None and np.isfinite(line.low[at]):
        ends = {"low": _number(line.low[at]), "high": _number(line.high[at])}
        words.append(tr("{low} to {high}, 95 % over seeds", **ends))
    return (*words, tr("{share} of heads off", share=share(100 * line.x[at], 0)))


def _limits(values: Any, marks: list[Mark]) -> tuple[float, float]:
    """From where to where the axis goes. Intervals of few seeds are wide: they may take as much
    room as the numbers they are of."""
    known = np.concatenate([one.values for one in marks])
    low, high = float(known.min()), float(known.max())
    span = max(high - low, abs(high) * 0.02, 1e-6)
    low, high = max(float(values.min()), low - span), min(float(values.max()), high + span)
    air = 0.08 * (high - low) or span
    return low - air, high + air


def _colour(number: int, name: str = "") -> QColor:
    if name == ORDERS:  # what the others are beside: quiet, as everywhere
        return theme.current().secondary
    some = CATEGORICAL_DARK if theme.current().dark else CATEGORICAL
    return QColor(some[number % len(some)])


def _shape(painter: QPainter, at: QPointF, number: int, size: float = 5.0) -> None:
    """A circle, a square, a triangle or a diamond: series differ by form as well."""
    kind = number % SHAPES
    if kind == 0:
        painter.drawEllipse(at, size, size)
        return
    s = size
    corners = {
        1: ((-s, -s), (s, -s), (s, s), (-s, s)),
        2: ((0, -1.2 * s), (1.15 * s, s), (-1.15 * s, s)),
        3: ((0, -1.3 * s), (1.3 * s, 0), (0, 1.3 * s), (-1.3 * s, 0)),
    }[kind]
    painter.drawPolygon(QPolygonF([at + QPointF(x, y) for x, y in corners]))


def _key(painter: QPainter, room: QRectF, names: Any) -> None:
    """What each form and colour stands for."""
    now, font = theme.current(), theme.font(0.92, 500)
    metrics = QFontMetricsF(font)
    x = room.left()
    for number, name in enumerate(names):
        said = called(name)
        wide = metrics.horizontalAdvance(said)
        if x + 18 + wide > room.right():
            break
        painter.setPen(QPen(now.pane, 1))
        painter.setBrush(_colour(number, name))
        _shape(painter, QPointF(x + 6, room.center().y()), number, 4.5)
        painter.setFont(font)
        painter.setPen(now.text)
        painter.drawText(QRectF(x + 16, room.top(), wide + 4, room.height()), LEFT, said)
        x += 16 + wide + 20


def _title(painter: QPainter, box: QRectF, words: str) -> None:
    font = theme.font(0.92, 600)
    painter.setFont(font)
    painter.setPen(theme.current().text)
    shown = QFontMetricsF(font).elidedText(words, Qt.TextElideMode.ElideRight, box.width())
    painter.drawText(QRectF(box.left(), box.top() - 20, box.width(), 16), MIDDLE, shown)


def _up(painter: QPainter, box: QRectF, words: str) -> None:
    """What y is, along it."""
    painter.save()
    painter.setFont(theme.font(0.85))
    painter.setPen(theme.current().secondary)
    painter.translate(box.left() - 46, box.center().y())
    painter.rotate(-90)
    painter.drawText(QRectF(-box.height() / 2, -9, box.height(), 18), MIDDLE, words)
    painter.restore()


def _number(value: float) -> str:
    """As the axis says it: 87.5, −1.25."""
    return f"{value:.4g}".replace("-", "−")


def _nothing(value: float) -> str:
    return ""


__all__ = ["PlotsChart", "SeedsChart"]
