"""The row and column that are looked at, drawn over a map in device pixels."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from hgviz.gui import theme
from hgviz.gui.views.viewport import Viewport


@dataclass(frozen=True, slots=True)
class Cross:
    """The row and column looked at. ends: the columns that the row sees, half-open."""

    row: int | None = None
    column: int | None = None
    ends: tuple[int, int] | None = None


def draw(
    painter: QPainter,
    cross: Cross,
    view: Viewport,
    corner: QPoint,
    *,
    signed: bool,
    causal: bool,
) -> None:
    """Lines along the row as far as it sees, along the column from there on, a ring at the cell.

    The painter works in device pixels; corner is the map's.
    """
    line = max(1, round(view.ratio))
    height, width = view.size
    painter.save()
    painter.translate(corner)
    painter.setClipRect(QRect(-4 * line, -4 * line, width + 8 * line, height + 8 * line))
    rows = None if cross.row is None else view.down.edges(cross.row)
    columns = None if cross.column is None else view.across.edges(cross.column)
    if rows is not None:
        first, last = cross.ends or (0, view.across.cells)
        left, right = view.across.edges(first)[0], view.across.edges(last)[0]
        _pair(painter, _box(rows, (max(left, 0), min(right, width))), True, signed, line)
    if columns is not None:
        top = max(0, rows[1]) if rows is not None and causal else 0  # later rows see this key
        _pair(painter, _box((top, height), columns), False, signed, line)
    if rows is not None and columns is not None:
        _ring(painter, _box(rows, columns), line)
    painter.restore()


def markers(painter: QPainter, cross: Cross, view: Viewport, rect: QRectF) -> None:
    """Orange triangles at the axes, in logical px; rect is the map's."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.current().mark)
    if cross.row is not None:
        middle = sum(view.down.edges(cross.row)) / 2 / view.ratio
        if 0 <= middle <= rect.height():
            _triangle(painter, QPointF(rect.left() - 2, rect.top() + middle), (-6, -4.5), (-6, 4.5))
    if cross.column is not None:
        middle = sum(view.across.edges(cross.column)) / 2 / view.ratio
        if 0 <= middle <= rect.width():
            _triangle(painter, QPointF(rect.left() + middle, rect.top() - 1), (-4.5, -6), (4.5, -6))
    painter.restore()


def _triangle(painter: QPainter, tip: QPointF, *back: tuple[float, float]) -> None:
    painter.drawPolygon(QPolygonF([tip, *(tip + QPointF(*one) for one in back)]))


def _box(rows: tuple[int, int], columns: tuple[int, int]) -> QRect:
    return QRect(columns[0], rows[0], columns[1] - columns[0], rows[1] - rows[0])


def _pair(painter: QPainter, band: QRect, across: bool, signed: bool, line: int) -> None:
    """Two lines just outside a row (across) or column; on signed maps black and white."""
    mark = theme.current().mark
    black, white = QColor(Qt.GlobalColor.black), QColor(Qt.GlobalColor.white)
    for far, colour in ((2, black), (1, white)) if signed else ((1, mark),):
        out = far * line
        if across:
            for y in (band.y() - out, band.y() + band.height() + out - line):
                painter.fillRect(band.x(), y, band.width(), line, colour)
        else:
            for x in (band.x() - out, band.x() + band.width() + out - line):
                painter.fillRect(x, band.y(), line, band.height(), colour)


def _ring(painter: QPainter, cell: QRect, line: int) -> None:
    """White within black around a cell, never smaller than can be seen."""
    grow = max(0, 4 * line - min(cell.width(), cell.height())) / 2
    inner = QRectF(cell).adjusted(-grow, -grow, grow, grow)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for reach, width, colour in ((3.5, 1, Qt.GlobalColor.black), (2, 2, Qt.GlobalColor.white)):
        painter.setPen(QPen(QColor(colour), width * line))
        by = reach * line
        painter.drawRoundedRect(inner.adjusted(-by, -by, by, by), by, by)
