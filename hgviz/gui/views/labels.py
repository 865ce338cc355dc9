"""What stands before the text in each row of the strip: its level, its head, and the null group."""

from __future__ import annotations

import math

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter

from hgviz import palettes
from hgviz.core import Floats
from hgviz.gui import theme
from hgviz.gui.language import tr
from hgviz.gui.views.cells import Line

LEFT = 122  # px: the text begins there
HEAD, NUMBER = 52, 87  # where "head" and its number begin
GAP = 4  # px between the level and what is said of its head
NULL = 13  # px: the room of the cell that stands for no token


def draw(
    painter: QPainter, line: Line, row: tuple[int, int], chosen: bool, null: Floats | None
) -> None:
    """The label of a row at (top, height). chosen: of the selected head; null (1, 3): the colour of
    its null group, None where it has none."""
    now = theme.current()
    top, height = row
    bold = QFontMetricsF(theme.font(0.92, 600))
    level, at, end = line.level, NUMBER, LEFT - 4
    number = "" if line.head is None else str(line.head)
    if line.null:
        end -= NULL + 1
        at = min(NUMBER - 4, end - math.ceil(bold.horizontalAdvance(number)))
        level = bold.elidedText(level, Qt.TextElideMode.ElideRight, at - 16 - 2)
        _null(painter, null_box(top, height), null)
    off = tr("off")
    if line.off:  # what is said of a head goes before the whole name of its level
        room = at - 16 - 2 - GAP - QFontMetricsF(theme.font(0.92)).horizontalAdvance(off)
        level = bold.elidedText(level, Qt.TextElideMode.ElideRight, math.floor(room))
    after = 16 + bold.horizontalAdvance(level) + GAP
    said = off if line.off else tr("head") if after < HEAD and line.head is not None else ""
    for x, text, weight, colour in (
        (16, level, 600, now.text),
        (max(HEAD, after) if level else 16, said, 400, now.secondary),
        (at, number, 600 if chosen else 400, now.mark_text if chosen else now.secondary),
    ):
        painter.setFont(theme.font(0.92, weight))
        painter.setPen(colour)
        box = QRectF(x, top, end - x, height)
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)


def null_box(top: int, height: int) -> QRectF:
    """The cell of the null group of a row, right before the text."""
    return QRectF(LEFT - NULL - 3, top, NULL - 1, height)


def _null(painter: QPainter, box: QRectF, rgb: Floats | None) -> None:
    now = theme.current()
    painter.fillRect(box, now.hover if rgb is None else QColor(*rgb[0].tolist()))
    painter.setPen(now.text if rgb is None else QColor(*palettes.readable(rgb)[0].tolist()))
    painter.setFont(theme.font(0.85))
    painter.drawText(box, Qt.AlignmentFlag.AlignCenter, "∅")


__all__ = ["LEFT", "draw", "null_box"]
