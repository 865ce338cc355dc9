"""What is drawn on maps and grids: axes, hatching, chips, cross hairs, row sums, insets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFontMetricsF,
    QImage,
    QPainter,
    QPainterPath,
    QPen,
    QPixmap,
    QPolygonF,
)
from PySide6.QtWidgets import QLabel, QWidget

from hgviz import language, palettes
from hgviz.core import Display, Floats
from hgviz.gui import sentences, theme
from hgviz.gui import tiles as mosaic
from hgviz.gui.grid import Box, MapAxis, Marks, Names, Places, Viewport, seen
from hgviz.gui.tiles import Source, Tiles
from hgviz.maps import thumb_zoom

# --- picture --------------------------------------------------------------------------------------

AT_ONCE = 2**17  # pixels painted at a time, which stay in the processor's cache

Pixels = NDArray[np.uint32]  # (height, width): alpha, red, green, blue; 0 is transparent


@dataclass(frozen=True, slots=True, eq=False)
class ColourScale:
    """How weights become colours. signed: coloured about zero; limits: what its ends stand for."""

    signed: bool
    limits: tuple[float, float]
    display: Display

    def colours(self, dark: bool) -> Pixels:
        """(256,): the colours in use as pixels, lowest first."""
        return _inks(palettes.matching_palette(self.display.palette, self.signed), dark)

    def coordinates(self, values: Any) -> Floats:
        """Where weights lie among the colours, 0 to 1."""
        return palettes.palette_coordinates(values, self.limits, self.display.scale, self.signed)

    def painted(self, values: Floats, dark: bool) -> Pixels:
        """The pixels of weights that are all there."""
        places = self.coordinates(values)
        places *= 255
        places += 0.5
        return np.take(self.colours(dark), places.astype(np.uint8))

    def rgb(self, values: Floats, dark: bool) -> NDArray[np.uint8]:
        """uint8 (..., 3): the red, green and blue of weights that are all there."""
        return channels(self.painted(values, dark))[..., :3]


@dataclass(frozen=True, slots=True, eq=False)
class MapScene(ColourScale):
    """Everything that is drawn of one head.

    off: the head is switched off. mass (rows, 2): the sum of the negative and of the positive
    weights of every row, None for none or until they are known. titles: what its columns and its
    rows are.
    """

    source: Source
    rows: Names
    columns: Names | Places
    off: bool = False
    mass: Floats | None = None
    titles: tuple[str, str] = ("Key", "Query")


class MapPicture:
    """A map on screen as pixels that are kept: only what is new of it is put together."""

    def __init__(self) -> None:
        self.view: Viewport | None = None
        self.pixels: Pixels = np.zeros((0, 0), np.uint32)
        self._spare = self.pixels
        self._look: tuple[object, ...] = ()

    def show(self, scene: MapScene, tiles: Tiles, view: Viewport, dark: bool) -> None:
        """Show a part of a scene: where only the part is another, what comes in is painted."""
        look = scene.source, scene.limits, scene.display, scene.signed, dark
        boxes = self._moved(view) if look == self._look else None
        if self.pixels.shape != view.size:
            self.pixels, self._spare = (np.empty(view.size, np.uint32) for _ in range(2))
        if boxes is None:
            boxes = [(0, view.size[0], 0, view.size[1])]
        self.view, self._look = view, look
        for box in boxes:
            self.renew(scene, tiles, box, dark)

    def renew(self, scene: MapScene, tiles: Tiles, box: Box, dark: bool) -> None:
        """Paint a box of it again: other tiles have come."""
        top, bottom, left, right = box
        band = max(1, AT_ONCE // (right - left))
        for first in range(top, bottom, band):
            last = min(first + band, bottom)
            part = self.view.part((first, last, left, right))
            self.pixels[first:last, left:right] = _painted(scene, tiles, part, dark)

    def _moved(self, view: Viewport) -> list[Box] | None:
        """Move what stays on screen; the boxes that come in. None where nothing stays."""
        old, (height, width) = self.view, view.size
        if old is None or old.size != view.size:
            return None
        down, across = (
            new.start - before.start
            for new, before in ((view.down, old.down), (view.across, old.across))
        )
        if view != old.panned(-down, -across) or abs(down) >= height or abs(across) >= width:
            return None
        if down or across:
            rows, columns = _overlap(down, height), _overlap(across, width)
            self._spare[rows[0], columns[0]] = self.pixels[rows[1], columns[1]]
            self.pixels, self._spare = self._spare, self.pixels
        top, bottom = max(-down, 0), height - max(down, 0)
        left, right = max(-across, 0), width - max(across, 0)
        strips = (
            (0, top, 0, width), (bottom, height, 0, width),
            (top, bottom, 0, left), (top, bottom, right, width),
        )  # fmt: skip
        return [box for box in strips if box[0] < box[1] and box[2] < box[3]]


def thumbnail(scene: MapScene, dark: bool) -> Pixels:
    step = 1 << thumb_zoom(*scene.source.shape)
    down, across = (np.arange(0, size, step) for size in scene.source.shape)
    rows, columns = (np.stack([first, first + step], axis=1) for first in (down, across))
    out = scene.painted(scene.source.thumb, dark)
    np.copyto(out, 0, where=~seen(scene.source.rule, rows, columns))
    return out


def image(array: Pixels | NDArray[np.uint8]) -> QImage:
    """The same as a picture of Qt, which must not outlive the array; or uint8 (height, width, 3) of
    red, green and blue, or (height, width, 4) in Qt's own order."""
    forms, (height, width) = QImage.Format, array.shape[:2]
    form = forms.Format_RGB888 if array.shape[2:] == (3,) else forms.Format_ARGB32_Premultiplied
    return QImage(array.data, width, height, array.nbytes // max(1, height), form)


def channels(array: Pixels) -> NDArray[np.uint8]:
    """uint8 (..., 4): red, green, blue and alpha of pixels."""
    return np.stack([array >> shift & 255 for shift in (16, 8, 0, 24)], axis=-1).astype(np.uint8)


def _painted(scene: MapScene, tiles: Tiles, view: Viewport, dark: bool) -> Pixels:
    values = mosaic.compose(tiles, scene.source, view)
    hidden, empty = mosaic.unseen(scene.source, view), np.isnan(values)
    if empty.any():
        hidden |= empty
        values = np.where(empty, np.float32(0), values)
    out = scene.painted(values, dark)
    np.copyto(out, 0, where=hidden)
    return mosaic.spread(out, view)


@lru_cache(maxsize=16)
def _inks(name: str, dark: bool) -> Pixels:
    """The colours of a palette as pixels."""
    red, green, blue = palettes.colours(name, dark).astype(np.uint32).T
    return 255 << 24 | red << 16 | green << 8 | blue


def _overlap(moved: int, size: int) -> tuple[slice, slice]:
    """Where what stays comes to lie, and where it lay, when so many pixels go out in front."""
    return slice(max(-moved, 0), size - max(moved, 0)), slice(max(moved, 0), size + min(moved, 0))


# --- ink ------------------------------------------------------------------------------------------

faint = theme.faint
HATCH = 8  # logical px between two lines of hatching
TICK = 4
APART = 6  # px between two values beneath a bar
AXIS = 0.85
BAR = 13  # width of a colour bar


def axes(
    painter: QPainter,
    rect: QRectF,
    room: tuple[int, int],
    down: Marks,
    across: Marks,
    titles: tuple[str, str] | None,
) -> None:
    """Words and ticks left of a map and above it; room: the width and height there is for them.

    titles: what its columns and its rows are; None: another map beside it says so.
    """
    now = theme.current()
    wide, high = room
    line = QFontMetricsF(theme.font(AXIS)).height()
    painter.setFont(theme.font(AXIS, 600))
    painter.setPen(now.secondary)
    for name, up in ((f"{titles[0]} →", 25), (f"{titles[1]} ↓", 9)) if titles else ():
        painter.drawText(QPointF(rect.left() - wide + 16, rect.top() - up), name)
    for tick in down.ticks:
        painter.fillRect(QRectF(rect.left() - 5, rect.top() + tick, TICK, 1), now.edge)
    for tick in across.ticks:
        painter.fillRect(QRectF(rect.left() + tick, rect.top() - 5, 1, TICK), now.edge)
    styles = {
        True: (theme.font(AXIS, 700), now.mark_text),
        False: (theme.font(AXIS, 400), now.secondary),
    }
    for label in down.labels:
        box = QRectF(rect.left() - wide + 6, rect.top() + label.middle - line / 2, wide - 16, line)
        theme.write(painter, box, label.text, *styles[label.chosen], theme.TO_RIGHT)
    for label in across.labels:
        painter.save()
        painter.translate(rect.left() + label.middle, rect.top() - 8)
        box, side = QRectF(-20, -line, 40, line), theme.CENTRE  # a letter alone stays upright
        if len(label.text) != 1:
            painter.rotate(-90)
            box, side = QRectF(0, -line / 2, high - 12, line), theme.TO_LEFT
        theme.write(painter, box, label.text, *styles[label.chosen], side)
        painter.restore()


def hatching(painter: QPainter, colour: QColor) -> QBrush:
    """Thin diagonal lines, as sharp as the screen that is painted on."""
    return _hatching(colour.rgba(), painter.device().devicePixelRatioF())


@lru_cache(maxsize=16)
def _hatching(rgba: int, ratio: float) -> QBrush:
    size = round(HATCH * ratio)
    tile = QPixmap(16 * size, 16 * size)  # many at once: filling with a small tile is slow
    tile.fill(Qt.GlobalColor.transparent)
    painter = theme.smooth_painter(tile)
    painter.setPen(QPen(QColor.fromRgba(rgba), ratio))
    long = 16 * size
    for shift in range(-long, long + 1, size):
        painter.drawLine(QPointF(shift - 1, long + 1), QPointF(shift + long + 1, -1))
    painter.end()
    tile.setDevicePixelRatio(ratio)
    return QBrush(tile)


def hatched(
    painter: QPainter, rect: QRectF, ground: QColor, lines: QColor, origin: QPointF | None = None
) -> None:
    """A ground with hatching on it, which begins at the corner of the rectangle or at origin."""
    painter.fillRect(rect, ground)
    painter.setBrushOrigin(rect.topLeft() if origin is None else origin)
    painter.fillRect(rect, hatching(painter, lines))
    painter.setBrushOrigin(QPointF(0, 0))


def unseen(painter: QPainter, rect: QRectF) -> None:
    """The ground of a map: what is masked stays visible as grey with thin hatching."""
    now = theme.current()
    hatched(painter, rect, now.unseen, faint(now.unseen_hatch, 0.55))


def switched_off(painter: QPainter, rect: QRectF) -> None:
    """Over the map of a head that is switched off."""
    now = theme.current()
    hatched(painter, rect, faint(now.pane, 0.72), faint(now.secondary, 0.6))
    framed(painter, rect.adjusted(2, 2, -2, -2), now.text, 3)


def framed(painter: QPainter, rect: QRectF, colour: QColor, width: float = 1) -> None:
    """A line around a rectangle, outside of it."""
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(colour, width))
    painter.drawRect(rect.adjusted(-0.5, -0.5, 0.5, 0.5))


def chip(painter: QPainter, right_top: QPointF, text: str, room: float) -> None:
    """A few words on a map, in a chip whose right top corner is given, where there is room."""
    now = theme.current()
    font = theme.font(0.92, 500)
    width = QFontMetricsF(font).horizontalAdvance(text) + 18
    if width > room:
        return
    rect = QRectF(right_top.x() - width, right_top.y(), width, 21)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    theme.draw_box(painter, rect.adjusted(0.5, 0.5, -0.5, -0.5), 10, now.pane, now.edge)
    theme.write(painter, rect, text, font, now.secondary, theme.CENTRE)
    painter.restore()


def colour_bar(painter: QPainter, rect: QRectF, scale: ColourScale, title: str = "") -> None:
    """The colours of weights from the lowest limit up, and the weights they stand for.

    A flat bar runs to the right, with the weights below it that have room beside those at its
    ends.
    """
    now = theme.current()
    flat = rect.width() > rect.height()
    inks = scale.colours(now.dark)
    ramp = np.ascontiguousarray(inks[None] if flat else inks[::-1, None])
    painter.drawImage(rect, image(ramp))
    framed(painter, rect, now.edge)
    painter.setFont(theme.font(AXIS))
    metrics = QFontMetricsF(theme.font(AXIS))
    line = metrics.height()
    room = metrics.horizontalAdvance("+0.0001") + 6 if flat else 1.2 * line
    gap = max(0.08, room / max(1.0, rect.width() if flat else rect.height()))
    values = palettes.ticks(scale.limits, scale.display.scale, scale.signed, gap)
    places = scale.coordinates(np.array(values)).tolist()
    painter.setPen(now.secondary)
    written: list[tuple[float, float]] = []  # from, to
    for number in dict.fromkeys((0, len(values) - 1, *range(len(values)))):  # the ends first
        text = language.short_number(values[number], scale.signed)
        if not flat:
            y = rect.bottom() - places[number] * rect.height()
            painter.fillRect(QRectF(rect.right() + 1, round(y - 0.5), TICK, 1), now.secondary)
            top = min(max(y - line / 2, rect.top() - 2), rect.bottom() - line + 2)
            box = QRectF(rect.right() + TICK + 3, top, 60, line)
            painter.drawText(box, theme.TO_LEFT, text)
            continue
        x, wide = rect.left() + places[number] * rect.width(), metrics.horizontalAdvance(text)
        left = min(max(x - wide / 2, rect.left()), max(rect.left(), rect.right() - wide))
        if all(left > end + APART or left + wide < start - APART for start, end in written):
            painter.fillRect(QRectF(round(x - 0.5), rect.bottom() + 1, 1, TICK), now.secondary)
            painter.drawText(QPointF(left, rect.bottom() + TICK + metrics.ascent() + 2), text)
            written.append((left, left + wide))
    if title:
        painter.setFont(theme.font(AXIS, 600))
        painter.drawText(QPointF(rect.left() - 3, rect.top() - 10), title)


def sides() -> tuple[QColor, QColor]:
    """The colours of what is taken away and of what is added."""
    table = palettes.colours(palettes.matching_palette("", True), theme.current().dark)
    negative, positive = (QColor(*table[at].tolist()) for at in (38, 217))
    return negative, positive


def ring(painter: QPainter, box: QRectF) -> None:
    """Around the key: white within black, as on the map."""
    for reach, colour in ((0.5, Qt.GlobalColor.black), (-0.5, Qt.GlobalColor.white)):
        painter.setPen(QPen(colour, 1))
        painter.drawRoundedRect(box.adjusted(-reach, -reach, reach, reach), 2, 2)


def focus_ring(painter: QPainter, box: QRectF) -> None:
    """Inside the edge of a picture that has the keyboard."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    theme.draw_box(painter, box.adjusted(1, 1, -1, -1), 6, edge=theme.current().press, width=1.5)


def squeezed(painter: QPainter, box: QRectF, text: str, wide: float) -> None:
    """A glyph wider than its cells, made narrower."""
    painter.save()
    painter.translate(box.center())
    painter.scale(box.width() / wide, box.width() / wide if wide > 2 * box.width() else 1.0)
    painter.drawText(QRectF(-wide, -box.height(), 2 * wide, 2 * box.height()), theme.CENTRE, text)
    painter.restore()


def bypass(painter: QPainter, box: QRectF, words: str = "") -> None:
    """A path past what lies between: along the right of a box, from its top to an arrow at its
    bottom; words: what stands along it."""
    left, top, right, bottom = box.left(), box.top(), box.right(), box.bottom()
    colour, bend = theme.current().secondary, min(8.0, box.height() / 2)
    path = QPainterPath(QPointF(left, top))
    path.lineTo(right - bend, top)
    path.quadTo(right, top, right, top + bend)
    path.lineTo(right, bottom - bend)
    path.quadTo(right, bottom, right - bend, bottom)
    path.lineTo(left + 8, bottom)
    painter.strokePath(path, QPen(colour, 1.25))
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    _triangle(painter, QPointF(left + 2, bottom), (7, -4), (7, 4))
    painter.save()
    painter.translate(right + 13, (top + bottom) / 2)
    painter.rotate(-90)
    room = box.height() - 16
    along = QRectF(-room / 2, -8, room, 16)
    theme.write(painter, along, words, theme.font(AXIS), colour, theme.CENTRE)
    painter.restore()


# --- crosshair ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cross:
    """The row and column looked at. ends: the columns that the row sees, half-open."""

    row: int | None = None
    column: int | None = None
    ends: tuple[int, int] | None = None


def draw_cross(
    painter: QPainter, cross: Cross, view: Viewport, corner: QPoint, *, signed: bool, causal: bool
) -> None:
    """Lines along the row as far as it sees, along the column from there on, a ring at the cell.

    corner: the map's, in device pixels.
    """
    line = max(1, round(view.ratio))
    height, width = view.size
    painter.save()
    painter.scale(1 / view.ratio, 1 / view.ratio)
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
    painter.drawPolygon(QPolygonF([tip, *(tip + QPointF(*corner) for corner in back)]))


def _box(rows: tuple[int, int], columns: tuple[int, int]) -> QRect:
    return QRect(columns[0], rows[0], columns[1] - columns[0], rows[1] - rows[0])


def _pair(painter: QPainter, band: QRect, across: bool, signed: bool, line: int) -> None:
    """Two lines just outside a row (across) or column; on signed maps black and white."""
    black, white = QColor(Qt.GlobalColor.black), QColor(Qt.GlobalColor.white)
    for far, colour in ((2, black), (1, white)) if signed else ((1, theme.current().mark),):
        start, size = (band.y(), band.height()) if across else (band.x(), band.width())
        for at in (start - far * line, start + size + (far - 1) * line):
            if across:
                painter.fillRect(band.x(), at, band.width(), line, colour)
            else:
                painter.fillRect(at, band.y(), line, band.height(), colour)


def _ring(painter: QPainter, cell: QRect, line: int) -> None:
    """White within black around a cell, never smaller than can be seen."""
    grow = max(0, 4 * line - min(cell.width(), cell.height())) / 2
    inner = QRectF(cell).adjusted(-grow, -grow, grow, grow)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for reach, width, colour in ((3.5, 1, Qt.GlobalColor.black), (2, 2, Qt.GlobalColor.white)):
        by = reach * line
        box = inner.adjusted(-by, -by, by, by)
        theme.draw_box(painter, box, by, edge=QColor(colour), width=width * line)


# --- gutter ---------------------------------------------------------------------------------------

WIDE = 30  # logical px


def draw_row_sums(
    painter: QPainter, rect: QRectF, axis: MapAxis, mass: Floats, most: float, title: str
) -> None:
    """What the rows of a map add up to: negative left of the middle line, positive right of it.

    mass (rows, 2): as MapScene has it. Where rows are finer than pixels the mean of those that
    share one is drawn. most: what fills a half, 0 for the largest sum; title: what stands between
    the two signs.
    """
    (first, last), ratio = axis.shown, painter.device().devicePixelRatioF()
    step = max(1, round(1 / axis.scale))
    starts = np.arange(first, last, step)
    sums = np.add.reduceat(mass[first:last], starts - first, axis=0)
    means = np.asarray(sums / np.diff(np.append(starts, last))[:, None], np.float32)
    tops, bottoms = (
        np.floor(rows * axis.scale + 1e-9) - axis.start for rows in (starts, starts + step)
    )
    bottoms = np.maximum(bottoms, tops + 1)
    now = theme.current()
    middle, half = rect.center().x(), rect.width() / 2 - 1
    most = max(most or np.abs(mass).max(), np.abs(means).max(initial=0.0)) or 1.0
    lengths = half * ratio * np.abs(means) / most  # device px
    down = np.arange(round(rect.height() * ratio)) + 0.5
    row = np.clip(np.searchsorted(tops, down, side="right") - 1, 0, None)
    out = np.arange(round(rect.width() * ratio)) + 0.5 - (middle - rect.left()) * ratio
    is_row = ((down >= tops[row]) & (down < bottoms[row]))[:, None]
    reach = np.where(is_row, lengths[row], 0)
    negative, positive = (np.uint32(colour.rgba()) for colour in sides())
    pixels = np.where(-out < reach[:, :1], negative, np.uint32(0)) * (out < 0)
    pixels += np.where(out < reach[:, 1:], positive, np.uint32(0)) * (out > 0)
    bars = image(pixels)  # as many strokes as rows would take longer than all else in a pan
    bars.setDevicePixelRatio(ratio)
    painter.drawImage(rect.topLeft(), bars)
    painter.fillRect(QRectF(round(middle), rect.top(), 1, rect.height()), now.edge)
    painter.setFont(theme.font(AXIS, 600))
    painter.setPen(now.secondary)
    box = QRectF(rect.left(), rect.top() - 24, rect.width(), 20)
    if title:
        wide = painter.fontMetrics().horizontalAdvance(title) + 24
        box = QRectF(middle - wide / 2, box.top(), wide, box.height())
        painter.drawText(box, theme.CENTRE, title)
    for sign, side in (("−", Qt.AlignmentFlag.AlignLeft), ("+", Qt.AlignmentFlag.AlignRight)):
        painter.drawText(box, side | Qt.AlignmentFlag.AlignVCenter, sign)


def sum_words(negative: float, positive: float, digits: int = 2) -> str:
    """+0.43: +0.71 −0.28; the whole alone where all have one sign."""
    whole, plus, minus = (
        sentences.with_sign(total, digits) for total in (negative + positive, positive, negative)
    )
    return f"{whole}: {plus} {minus}" if negative and positive else whole


# --- inset ----------------------------------------------------------------------------------------

MARGIN, DOWN = 13, 46  # px to the right edge of the map, and to its top: below the chip
SMALLEST = 64  # px: a thumbnail smaller than this is drawn larger by whole numbers
LEAST_SIDE = 24  # px of the short side of one that is far from square


def draw_inset(painter: QPainter, rect: QRectF, thumb: Pixels, view: Viewport) -> None:
    """The thumbnail of a map on it, with a frame around what is in view: at the right below the
    chip, where a causal map has nothing to see. Nothing without room."""
    times = max(1, SMALLEST // max(1, *thumb.shape))
    height, width = (max(LEAST_SIDE, size * times) for size in thumb.shape)
    if width + 2 * MARGIN > rect.width() or height + DOWN + MARGIN > rect.height():
        return
    box = QRectF(rect.right() - MARGIN - width, rect.top() + DOWN, width, height)
    unseen(painter, box)
    painter.drawImage(box, image(thumb))
    framed(painter, box, theme.current().edge)
    down, across = view.axes
    part = QRectF(
        box.x() + across.start / across.length * box.width(),
        box.y() + down.start / down.length * box.height(),
        max(5.0, across.size / across.length * box.width()),
        max(5.0, down.size / down.length * box.height()),
    )
    painter.save()
    painter.setClipRect(box)
    for width, colour in ((3, Qt.GlobalColor.black), (1, Qt.GlobalColor.white)):
        painter.setPen(QPen(colour, width))
        painter.drawRect(part)
    painter.restore()


# --- cellcard -------------------------------------------------------------------------------------

CARD_DISTANCE = 22  # px between a cell and what is said about it
FINE = 4  # px: a map of smaller cells is hidden by what is said of one, where it is small, too


class CellCard(QLabel):
    """A rounded card; the pointer goes through it. least: px of its width."""

    def __init__(self, parent: QWidget, least: int = 200) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setProperty("kind", "card")
        self.setMinimumWidth(least)
        self.hide()

    def say(self, text: str) -> None:
        """Say HTML with everything from a text escaped; nothing for ""."""
        self.setFont(theme.font())
        self.setText(text)

    def stand(self, cell: QRectF, shown: QRectF, below: QPoint | None = None) -> None:
        """Stand on what is shown of the map, off the row of a cell, and off its column where there
        is room; else below the map. On a small map of small cells it would hide too much.
        """
        size, room = self.sizeHint().expandedTo(self.minimumSize()), self.parentWidget().rect()
        large = shown.width() > 1.1 * size.width() and shown.height() > 1.5 * size.height()
        right, left = cell.right() + CARD_DISTANCE, cell.left() - CARD_DISTANCE - size.width()
        places = [
            QRect(QPoint(int(x), round(y)), size)
            for x in (right, left, shown.right() - size.width(), shown.left())
            for y in (cell.top() - CARD_DISTANCE - size.height(), cell.bottom() + CARD_DISTANCE)
        ]  # first above at the right, where a causal map is empty
        on_map = [box for box in places if shown.contains(QRectF(box))]
        if not (large or cell.width() >= FINE):
            on_map = []
        under = () if below is None else (QRect(below, size),)
        free = [*on_map, *(box for box in under if room.contains(box))]
        if free:
            self.setGeometry(free[0])
        self.setVisible(bool(free))
