"""How things are drawn on and around maps: axes, hatching, chips, colour bars, gutters."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QFontMetricsF, QImage, QPainter, QPen, QPixmap

from hgviz import palettes
from hgviz.core import Floats
from hgviz.gui import theme
from hgviz.gui.grid import Label, Marks
from hgviz.gui.views.picture import Scene

faint = theme.faint
HATCH = 8  # logical px between two lines of hatching
TICK = 4
APART = 6  # px between two values beneath a bar
AXIS = 0.85
BAR = 13  # width of a colour bar
SHADOW = 8  # px that a shadow reaches
TO_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
TO_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


def axes(
    painter: QPainter,
    rect: QRectF,
    room: tuple[int, int],
    down: Marks,
    across: Marks,
    sides: tuple[str, str] | None,
) -> None:
    """Words and ticks left of a map and above it; room: the width and height there is for them.

    sides: what its columns and its rows are; None: another map beside it says so.
    """
    now = theme.current()
    wide, high = room
    line = QFontMetricsF(theme.font(AXIS)).height()
    painter.setFont(theme.font(AXIS, 600))
    painter.setPen(now.secondary)
    for name, up in ((f"{sides[0]} →", 25), (f"{sides[1]} ↓", 9)) if sides else ():
        painter.drawText(QPointF(rect.left() - wide + 16, rect.top() - up), name)
    for tick in down.ticks:
        painter.fillRect(QRectF(rect.left() - 5, rect.top() + tick, TICK, 1), now.edge)
    for tick in across.ticks:
        painter.fillRect(QRectF(rect.left() + tick, rect.top() - 5, 1, TICK), now.edge)
    fonts = {chosen: theme.font(AXIS, 700 if chosen else 400) for chosen in (False, True)}
    inks = {False: now.secondary, True: now.mark_text}

    def lettered(label: Label, room: int) -> str:
        """Get ready to write a label; what of it there is room for."""
        painter.setFont(fonts[label.chosen])
        painter.setPen(inks[label.chosen])
        return painter.fontMetrics().elidedText(label.text, Qt.TextElideMode.ElideRight, room)

    for label in down.labels:
        text = lettered(label, wide - 16)
        box = QRectF(rect.left() - wide + 6, rect.top() + label.middle - line / 2, wide - 16, line)
        painter.drawText(box, TO_RIGHT, text)
    for label in across.labels:
        text = lettered(label, high - 12)
        painter.save()
        painter.translate(rect.left() + label.middle, rect.top() - 8)
        if len(text) == 1:  # a letter alone stays upright
            painter.drawText(QRectF(-20, -line, 40, line), Qt.AlignmentFlag.AlignCenter, text)
        else:
            painter.rotate(-90)
            box = QRectF(0, -line / 2, high - 6, line)
            painter.drawText(box, TO_LEFT, text)
        painter.restore()


def hatching(colour: QColor, ratio: float) -> QBrush:
    """Thin diagonal lines, as sharp as the screen."""
    return _hatching(colour.rgba(), ratio)


@lru_cache(maxsize=16)
def _hatching(rgba: int, ratio: float) -> QBrush:
    size = round(HATCH * ratio)
    tile = QPixmap(16 * size, 16 * size)  # many at once: filling with a small tile is slow
    tile.fill(Qt.GlobalColor.transparent)
    painter = QPainter(tile)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(QColor.fromRgba(rgba), ratio))
    long = 16 * size
    for shift in range(-long, long + 1, size):
        painter.drawLine(QPointF(shift - 1, long + 1), QPointF(shift + long + 1, -1))
    painter.end()
    tile.setDevicePixelRatio(ratio)
    return QBrush(tile)


def unseen(painter: QPainter, rect: QRectF, ratio: float) -> None:
    """The ground of a map: what is masked stays visible as grey with thin hatching."""
    now = theme.current()
    painter.fillRect(rect, now.unseen)
    painter.setBrushOrigin(rect.topLeft())
    painter.fillRect(rect, hatching(faint(now.unseen_hatch, 0.55), ratio))
    painter.setBrushOrigin(QPointF(0, 0))


def switched_off(painter: QPainter, rect: QRectF, ratio: float) -> None:
    """Over the map of a head that is switched off."""
    now = theme.current()
    painter.fillRect(rect, faint(now.pane, 0.72))
    painter.setBrushOrigin(rect.topLeft())
    painter.fillRect(rect, hatching(faint(now.secondary, 0.6), ratio))
    painter.setBrushOrigin(QPointF(0, 0))
    painter.setPen(QPen(now.text, 3))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRect(rect.adjusted(1.5, 1.5, -1.5, -1.5))


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
    painter.setPen(QPen(now.edge, 1))
    painter.setBrush(now.pane)
    painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), 10, 10)
    painter.setFont(font)
    painter.setPen(now.secondary)
    painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, text)
    painter.restore()


def colour_bar(painter: QPainter, rect: QRectF, scene: Scene, title: str) -> None:
    """The colours from the top limit down, the true values beside them, and what they are."""
    now = theme.current()
    table = scene.table(now.dark)
    ramp = np.ascontiguousarray(np.concatenate([table[::-1], np.full((256, 1), 255)], 1), np.uint8)
    strip = QImage(ramp.data, 1, 256, 4, QImage.Format.Format_RGBA8888)
    painter.drawImage(rect, strip)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(now.edge, 1))
    painter.drawRect(rect.adjusted(-0.5, -0.5, 0.5, 0.5))
    font = theme.font(AXIS)
    metrics = QFontMetricsF(font)
    gap = max(0.08, 1.2 * metrics.height() / max(1.0, rect.height()))
    values = palettes.ticks(scene.limits, scene.display.scale, scene.signed, gap)
    placed = palettes.place(np.array(values), scene.limits, scene.display.scale, scene.signed)
    painter.setFont(font)
    for value, part in zip(values, placed, strict=True):
        y = rect.bottom() - float(part) * rect.height()
        painter.setPen(now.secondary)
        painter.fillRect(QRectF(rect.right() + 1, round(y - 0.5), TICK, 1), now.secondary)
        top = min(
            max(y - metrics.height() / 2, rect.top() - 2), rect.bottom() - metrics.height() + 2
        )
        painter.drawText(
            QRectF(rect.right() + TICK + 3, top, 60, metrics.height()),
            Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter,
            palettes.written(value, scene.signed),
        )
    painter.setFont(theme.font(AXIS, 600))
    painter.setPen(now.secondary)
    painter.drawText(QPointF(rect.left() - 3, rect.top() - 10), title)


def flat_bar(painter: QPainter, rect: QRectF, scene: Scene) -> None:
    """The colours from the lowest limit at the left to the highest, the true values beneath."""
    now = theme.current()
    ramp = np.concatenate([scene.table(now.dark), np.full((256, 1), 255)], 1).astype(np.uint8)
    strip = QImage(ramp.data, 256, 1, 4 * 256, QImage.Format.Format_RGBA8888)
    painter.drawImage(rect, strip)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(now.edge, 1))
    painter.drawRect(rect.adjusted(-0.5, -0.5, 0.5, 0.5))
    painter.setFont(theme.font(AXIS))
    painter.setPen(now.secondary)
    metrics = QFontMetricsF(theme.font(AXIS))
    wide = metrics.horizontalAdvance("+0.0001") + 6
    values = palettes.ticks(
        scene.limits, scene.display.scale, scene.signed, max(0.08, wide / max(1.0, rect.width()))
    )
    placed = palettes.place(np.array(values), scene.limits, scene.display.scale, scene.signed)
    written: list[tuple[float, float, str]] = []  # from, to, what is written there
    for at in _ends_first(len(values)):
        x = rect.left() + float(placed[at]) * rect.width()
        text = palettes.written(values[at], scene.signed)
        room = metrics.horizontalAdvance(text)
        left = min(max(x - room / 2, rect.left()), max(rect.left(), rect.right() - room))
        if all(left > end + APART or left + room < start - APART for start, end, _ in written):
            painter.fillRect(QRectF(round(x - 0.5), rect.bottom() + 1, 1, TICK), now.secondary)
            written.append((left, left + room, text))
    for left, _, text in written:
        painter.drawText(QPointF(left, rect.bottom() + TICK + metrics.ascent() + 2), text)


def _ends_first(count: int) -> list[int]:
    """The limits stand inside the bar, so that they need more room than their place has."""
    return [*dict.fromkeys((0, count - 1, *range(count)))]


def mass_gutter(
    painter: QPainter,
    rect: QRectF,
    rows: NDArray[np.float64],
    ratio: float,
    mass: Floats,
    most: float,
    title: str = "",
) -> None:
    """What the rows add up to: negative to the left of the middle line, positive to the right.

    rows (rows, 2): the top and bottom of each row of mass (rows, 2), in device px from the top of
    rect; most: a full half; title: what stands between the two signs.
    """
    now = theme.current()
    negative, positive = sides()
    middle, half = rect.center().x(), rect.width() / 2 - 1
    most = max(most, float(np.abs(mass).max(initial=0.0))) or 1.0
    lengths = half * ratio * np.abs(mass) / most  # device px
    tops, bottoms = rows.T
    down = np.arange(round(rect.height() * ratio)) + 0.5
    row = np.clip(np.searchsorted(tops, down, side="right") - 1, 0, None)
    out = np.arange(round(rect.width() * ratio)) + 0.5 - (middle - rect.left()) * ratio
    there = ((down >= tops[row]) & (down < bottoms[row]))[:, None]
    reach = np.where(there, lengths[row], 0)
    pixels = np.where(-out < reach[:, :1], np.uint32(negative.rgba()), np.uint32(0)) * (out < 0)
    pixels += np.where(out < reach[:, 1:], np.uint32(positive.rgba()), np.uint32(0)) * (out > 0)
    size = pixels.shape[1], pixels.shape[0], 4 * pixels.shape[1]
    # one picture: as many strokes as rows would take longer than all else while a map moves
    bars = QImage(pixels.data, *size, QImage.Format.Format_ARGB32_Premultiplied)
    bars.setDevicePixelRatio(ratio)
    painter.drawImage(rect.topLeft(), bars)
    painter.fillRect(QRectF(round(middle), rect.top(), 1, rect.height()), now.edge)
    painter.setFont(theme.font(AXIS, 600))
    painter.setPen(now.secondary)
    box = QRectF(rect.left(), rect.top() - 24, rect.width(), 20)
    if title:
        wide = painter.fontMetrics().horizontalAdvance(title) + 24
        box = QRectF(rect.center().x() - wide / 2, box.top(), wide, box.height())
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, title)
    for sign, side in (("−", Qt.AlignmentFlag.AlignLeft), ("+", Qt.AlignmentFlag.AlignRight)):
        painter.drawText(box, side | Qt.AlignmentFlag.AlignVCenter, sign)


def sides() -> tuple[QColor, QColor]:
    """The colours of what is taken away and of what is added."""
    table = palettes.colours(palettes.suited("", True), theme.current().dark)
    negative, positive = (QColor(*(int(one) for one in table[at])) for at in (38, 217))
    return negative, positive


def shadow(painter: QPainter, rect: QRectF, radius: float) -> None:
    """Under what floats."""
    now, ratio = theme.current(), painter.device().devicePixelRatioF()
    drawn = _shadow(rect.width(), rect.height(), radius, now.scrim.rgba(), now.dark, ratio)
    painter.drawPixmap(rect.topLeft() - QPointF(SHADOW, SHADOW), drawn)


@lru_cache(maxsize=32)
def _shadow(
    width: float, height: float, radius: float, rgba: int, dark: bool, ratio: float
) -> QPixmap:
    """Rings, as what lies under the middle is hidden anyway; kept, since they take their time."""
    out = QPixmap(round((width + 2 * SHADOW + 2) * ratio), round((height + 2 * SHADOW + 4) * ratio))
    out.setDevicePixelRatio(ratio)
    out.fill(Qt.GlobalColor.transparent)
    rect, strength = QRectF(SHADOW, SHADOW, width, height), 0.45 if dark else 0.16
    with QPainter(out) as painter:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for step in range(1, SHADOW + 1):
            alpha = strength * (1 - step / (SHADOW + 1)) ** 2
            painter.setPen(QPen(faint(QColor.fromRgba(rgba), alpha), 1.5))
            painter.drawRoundedRect(
                rect.adjusted(-step, -step + 2, step, step + 2), radius + step, radius + step
            )
    return out


def special(painter: QPainter, box: QRectF, text: str) -> None:
    """A special token in its cell: a grey chip."""
    now = theme.current()
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(now.edge, 1))
    painter.setBrush(now.hover)
    inner = box.adjusted(4.5, 5.5, -5.5, -5.5)
    painter.drawRoundedRect(inner, 4, 4)
    painter.setPen(now.secondary)
    painter.setFont(theme.mono(0.85))
    painter.drawText(inner, Qt.AlignmentFlag.AlignCenter, text)
    painter.restore()


def ring(painter: QPainter, box: QRectF) -> None:
    """Around the key: white within black, as on the map."""
    for reach, colour in ((0.5, Qt.GlobalColor.black), (-0.5, Qt.GlobalColor.white)):
        painter.setPen(QPen(colour, 1))
        painter.drawRoundedRect(box.adjusted(-reach, -reach, reach, reach), 2, 2)


def focus_ring(painter: QPainter, box: QRectF) -> None:
    """Inside the edge of a picture that has the keyboard."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(theme.current().press, 1.5))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), 6, 6)


def squeezed(painter: QPainter, box: QRectF, text: str, wide: float) -> None:
    """A glyph wider than its cells, made narrower."""
    painter.save()
    painter.translate(box.center())
    painter.scale(box.width() / wide, box.width() / wide if wide > 2 * box.width() else 1.0)
    painter.drawText(
        QRectF(-wide, -box.height(), 2 * wide, 2 * box.height()),
        Qt.AlignmentFlag.AlignCenter,
        text,
    )
    painter.restore()


def leftwards(painter: QPainter, box: QRectF) -> None:
    """The mark of letters that are read from the right: a small arrow to the left under them."""
    y = box.bottom() - 4.5
    painter.drawLine(QPointF(box.left() + 1, y), QPointF(box.right() - 1, y))
    middle = box.center().x()
    painter.drawLine(QPointF(middle - 1.5, y), QPointF(middle + 1, y - 2))
    painter.drawLine(QPointF(middle - 1.5, y), QPointF(middle + 1, y + 2))
