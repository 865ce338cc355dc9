"""All cells of a study as one picture: a look for each state, many small cells as shares.

Each state is known by its form as well as its colour: done is filled and says its value or has a
tick, running fills from below, waiting is an empty frame, failed has a cross, blocked is hatched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPen

from hgviz.gui import theme
from hgviz.gui.sweeps.about import STATES, short
from hgviz.gui.sweeps.layout import NONE, Layout
from hgviz.gui.theme import faint
from hgviz.sweep import Standing

WIDEST, HIGHEST = 52, 30  # px of a cell
LEAST = 5  # px: smaller cells are drawn together
GAP, APART, BAND = 1, 14, 8  # px between cells, kinds, models
TICK, WORDS = 12, 34  # px from which a cell has a tick, and its value
EMPTY = 8  # px from which an empty one is a frame

CODE = {state: number for number, state in enumerate(STATES)}


@dataclass(frozen=True, slots=True)
class Geometry:
    """Where columns and rows are drawn. lefts, tops: px of each drawn one, relative to the cells;
    wide, high: px of one; of: its first column or row, and one after the last."""

    lefts: tuple[int, ...]
    tops: tuple[int, ...]
    wide: int
    high: int
    columns: tuple[tuple[int, int], ...]
    rows: tuple[tuple[int, int], ...]

    @property
    def together(self) -> bool:
        """Whether several cells are drawn as one."""
        return any(b - a > 1 for a, b in (*self.columns, *self.rows))

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of all."""
        return self.lefts[-1] + self.wide, self.tops[-1] + self.high

    def box(self, row: int, column: int) -> QRectF:
        """Where a cell is, or what it is drawn in."""
        at = [_holding(self.columns, column), _holding(self.rows, row)]
        return QRectF(self.lefts[at[0]], self.tops[at[1]], self.wide - GAP, self.high - GAP)

    def under(self, x: float, y: float) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """The rows and columns at a point."""
        across, down = _at(self.lefts, self.wide, x), _at(self.tops, self.high, y)
        return None if across is None or down is None else (self.rows[down], self.columns[across])


def geometry(layout: Layout, wide: float, high: float) -> Geometry:
    """The largest cells for which all have room."""
    blocks = [(first, end) for _, first, end in layout.blocks]
    bands = [(first, end) for _, first, end in layout.bands]
    across = _along(blocks, wide, APART, WIDEST)
    down = _along(bands, high, BAND, HIGHEST)
    return Geometry(across[0], down[0], across[1], down[1], across[2], down[2])


def _along(
    runs: Sequence[tuple[int, int]], room: float, apart: int, most: int
) -> tuple[tuple[int, ...], int, tuple[tuple[int, int], ...]]:
    """Places, size and cells of what is drawn along one side."""
    count = runs[-1][1]
    gap = min(apart, max(2, int(room / 4 / len(runs))))
    free = max(LEAST, room - gap * (len(runs) - 1))
    size, each = int(free / count), 1
    while size < LEAST and each < count:  # as many together as make one that can be seen
        each += 1
        size = int(free / sum(-(-(end - first) // each) for first, end in runs))
    size = max(2, min(most, size))
    places, cells, at = [], [], 0
    for first, end in runs:
        for start in range(first, end, each):
            places.append(at)
            cells.append((start, min(start + each, end)))
            at += size
        at += gap
    return tuple(places), size, tuple(cells)


def _holding(cells: Sequence[tuple[int, int]], one: int) -> int:
    return next(number for number, (first, end) in enumerate(cells) if first <= one < end)


def _at(places: Sequence[int], size: int, where: float) -> int | None:
    number = int(np.searchsorted(np.asarray(places), where, side="right")) - 1
    return number if number >= 0 and where < places[number] + size else None


# --- painting -------------------------------------------------------------------------------------


def draw(
    painter: QPainter, layout: Layout, standings: Sequence[Standing], geo: Geometry, ratio: float
) -> None:
    """All cells, from (0, 0) on. ratio: device pixels per pixel."""
    codes = np.array([CODE[one.state] for one in standings], np.int8)
    picture = _shares(layout, codes, geo) if geo.together else _tiles(layout, codes, geo, ratio)
    painter.drawImage(QPointF(0, 0), picture)
    if not geo.together:
        _write(painter, layout, standings, geo)


def _tiles(layout: Layout, codes: NDArray[np.int8], geo: Geometry, ratio: float) -> QImage:
    """One drawing of each state, put where cells are in it."""
    w, h = round(geo.wide * ratio), round(geo.high * ratio)
    looks = np.stack([_look(state, geo.wide, geo.high, ratio) for state in STATES])
    wide, high = (round(one * ratio) + 1 for one in geo.size)
    pixels = np.zeros((high, wide, 4), np.uint8)
    ys = np.round(np.asarray(geo.tops) * ratio).astype(int)
    xs = np.round(np.asarray(geo.lefts) * ratio).astype(int)
    inside_y = ys[:, None] + np.arange(h)
    for column, left in enumerate(xs):
        there = np.flatnonzero(layout.at[:, column] != NONE)
        if len(there):
            tiles = looks[codes[layout.at[there, column]]][:, :h, :w]
            pixels[inside_y[there], left : left + w] = tiles[:, :, : wide - left]
    return _image(pixels, ratio)


def _shares(layout: Layout, codes: NDArray[np.int8], geo: Geometry) -> QImage:
    """Cells drawn together: what is done from below, then what runs; what failed from above."""
    now = theme.current()
    counts = np.zeros((len(geo.rows), len(geo.columns), len(STATES)), int)
    all_codes = np.where(layout.at == NONE, NONE, codes[layout.at])
    row_of = np.repeat(np.arange(len(geo.rows)), [b - a for a, b in geo.rows])
    column_of = np.repeat(np.arange(len(geo.columns)), [b - a for a, b in geo.columns])
    down, across = np.nonzero(all_codes != NONE)
    np.add.at(counts, (row_of[down], column_of[across], all_codes[down, across]), 1)
    total = counts.sum(-1)
    inside = geo.high - GAP
    part = counts / np.maximum(total, 1)[..., None]
    bad = np.ceil((part[..., 3] + part[..., 4]) * inside - 1e-9)
    done = np.floor(part[..., 0] * inside + 1e-9)
    done = np.minimum(done, inside - bad)
    run = np.minimum(np.ceil(part[..., 1] * inside - 1e-9), inside - bad - done)
    above = np.arange(inside)[None, None, :]  # px from the top
    below = inside - 1 - above
    colours = np.array(
        [_rgba(one) for one in (now.hover, _mixed(now.good, now.pane, 0.55), now.press, now.bad)],
        np.uint8,
    )
    look = np.zeros((*total.shape, inside), int)
    look[below < (done + run)[..., None]] = 2
    look[below < done[..., None]] = 1
    look[above < bad[..., None]] = 3
    wide, high = geo.size
    pixels = np.zeros((high, wide, 4), np.uint8)
    for row, top in enumerate(geo.tops):
        for column, left in enumerate(geo.lefts):
            if total[row, column]:
                strip = colours[look[row, column]]
                pixels[top : top + inside, left : left + geo.wide - GAP] = strip[:, None]
    return _image(pixels, 1.0)


def _look(state: str, wide: int, high: int, ratio: float) -> NDArray[np.uint8]:
    """How a state looks at a size: (height, width, 4) uint8."""
    image = QImage(round(wide * ratio), round(high * ratio), QImage.Format.Format_ARGB32)
    image.setDevicePixelRatio(ratio)
    image.fill(0)
    painter = QPainter(image)
    paint(painter, QRectF(0, 0, wide - GAP, high - GAP), state, tick=wide < WORDS)
    painter.end()
    return np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), -1, 4).copy()


def paint(
    painter: QPainter, box: QRectF, state: str, share: float = 0.0, tick: bool = True
) -> None:
    """One cell in a state; legends and cards draw the same."""
    now = theme.current()
    small = min(box.width(), box.height())
    round_ = 0.0 if small < 8 else 3.0
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, small >= 8)
    painter.setPen(Qt.PenStyle.NoPen)
    inner = box.adjusted(0.5, 0.5, -0.5, -0.5)
    if state == "done":
        painter.setBrush(faint(now.good, 0.55 if small < TICK else 0.3 if now.dark else 0.2))
        painter.drawRoundedRect(box, round_, round_)
        if tick and small >= TICK:
            _mark(painter, box, now.good, ((-4, 0), (-1, 3), (4, -3)))
    elif state == "running":
        painter.setBrush(now.tint)
        painter.drawRoundedRect(box, round_, round_)
        full = QRectF(box)
        full.setTop(box.bottom() - box.height() * max(0.08, min(1.0, share)))
        painter.fillRect(full.adjusted(1, 0, -1, -1), now.press)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(now.press, 1.5 if small >= TICK else 1))
        painter.drawRoundedRect(inner, round_, round_)
    elif state == "waiting":
        if small < EMPTY:  # as many frames as this would be a net
            painter.setBrush(now.hover)
            painter.drawRect(box)
        else:
            painter.setPen(QPen(now.edge, 1))
            painter.drawRoundedRect(inner, round_, round_)
    elif state == "failed":
        painter.setBrush(faint(now.bad, 0.16 if small >= TICK else 1.0))
        painter.setPen(QPen(now.bad, 1.5 if small >= TICK else 1))
        painter.drawRoundedRect(inner, round_, round_)
        if small >= TICK:
            _mark(painter, box, now.bad, ((-3, -3), (3, 3)), ((3, -3), (-3, 3)))
    elif small < EMPTY:
        painter.setBrush(now.edge)
        painter.drawPolygon([box.bottomLeft(), box.bottomRight(), box.topRight()])
    else:
        painter.setBrush(now.unseen)
        painter.drawRoundedRect(box, round_, round_)
        painter.setPen(QPen(now.unseen_hatch, 1))
        painter.setClipRect(box)
        for x in range(-int(box.height()), int(box.width()), 4):
            at = box.left() + x
            painter.drawLine(QPointF(at, box.bottom()), QPointF(at + box.height(), box.top()))
    painter.restore()


def _mark(
    painter: QPainter, box: QRectF, colour: QColor, *lines: Sequence[tuple[int, int]]
) -> None:
    pen = QPen(colour, 1.8, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for points in lines:
        painter.drawPolyline([box.center() + QPointF(x, y) for x, y in points])


def _write(painter: QPainter, layout: Layout, standings: Sequence[Standing], geo: Geometry) -> None:
    """What runs at its share, and the values of what is done."""
    now = theme.current()
    says = geo.wide >= WORDS and geo.high >= 15
    painter.setFont(theme.font(0.85, 500))
    for one, (row, column) in zip(standings, layout.places, strict=True):
        if one.state == "running":
            box = QRectF(geo.lefts[column], geo.tops[row], geo.wide - GAP, geo.high - GAP)
            paint(painter, box, "running", one.share)
        elif one.state == "done" and geo.wide >= WORDS:
            box = QRectF(geo.lefts[column], geo.tops[row], geo.wide - GAP, geo.high - GAP)
            words = short(one) if says else ""
            if words:
                painter.setPen(now.text)
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, words)
            elif geo.high >= TICK:
                painter.setRenderHint(QPainter.RenderHint.Antialiasing)
                _mark(painter, box, now.good, ((-4, 0), (-1, 3), (4, -3)))


def _mixed(colour: QColor, ground: QColor, part: float) -> QColor:
    """A colour over a ground, as faint as part."""
    pairs = (
        (colour.redF(), ground.redF()), (colour.greenF(), ground.greenF()),
        (colour.blueF(), ground.blueF()),
    )  # fmt: skip
    rgb = [part * a + (1 - part) * b for a, b in pairs]
    return QColor.fromRgbF(*rgb)


def _rgba(colour: QColor) -> tuple[int, int, int, int]:
    return colour.blue(), colour.green(), colour.red(), 255


def _image(pixels: NDArray[np.uint8], ratio: float) -> QImage:
    pixels = np.ascontiguousarray(pixels)
    high, wide = pixels.shape[:2]
    form = QImage.Format.Format_ARGB32
    image = QImage(pixels.data, wide, high, 4 * wide, form).copy()  # type: ignore[call-overload]
    image.setDevicePixelRatio(ratio)
    return image
