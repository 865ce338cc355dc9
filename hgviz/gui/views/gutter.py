"""What the rows of a signed map add up to, drawn beside it and said when pointed at."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter

from hgviz.core import Floats
from hgviz.gui import ink
from hgviz.gui.language import tr
from hgviz.gui.views import words
from hgviz.gui.views.viewport import Along

WIDE = 30  # logical px


def draw(
    painter: QPainter,
    box: QRectF,
    along: Along,
    ratio: float,
    mass: Floats,
    most: float = 0.0,
    title: str = "",
) -> None:
    """Negative left and positive right of the middle; mass (rows, 2) as Scene has it.

    Where rows are finer than pixels the mean of those that share one is drawn. most: what fills a
    half, 0 for the largest of them; title: what stands over it, between the signs.
    """
    first, last = along.shown()
    step = max(1, round(1 / along.scale))
    starts = np.arange(first, last, step)
    sums = np.add.reduceat(mass[first:last], starts - first, axis=0)
    tops, bottoms = (np.floor(rows * along.scale + 1e-9) - along.start
                     for rows in (starts, starts + step))  # fmt: skip
    rows = np.stack([tops, np.maximum(bottoms, tops + 1)], axis=1)
    counts = np.diff(np.append(starts, last))
    means = np.asarray(sums / counts[:, None], np.float32)
    ink.mass_gutter(painter, box, rows, ratio, means, most or float(np.abs(mass).max()), title)


def said(box: QRectF, along: Along, ratio: float, mass: Floats, place: QPointF) -> str:
    """What the row beside a place adds up to: "row 3: sum +0.43: +0.71 −0.28"; "" elsewhere."""
    if not box.contains(place):
        return ""
    row = along.cell((place.y() - box.top()) * ratio)
    if row is None or row >= len(mass):
        return ""
    total = sums(float(mass[row, 0]), float(mass[row, 1]))
    return tr("row {row:,}: sum {sum}", row=row, sum=total)


def sums(negative: float, positive: float, digits: int = 2) -> str:
    """+0.43: +0.71 −0.28; the whole alone where all have one sign."""
    whole, plus, minus = (
        words.with_sign(one, digits) for one in (negative + positive, positive, negative)
    )
    return f"{whole}: {plus} {minus}" if negative and positive else whole
