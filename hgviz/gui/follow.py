"""The way of one letter as a canvas: strips, arcs, the orange thread, and what they say."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QFontMetricsF,
    QImage,
    QPainterPath,
    QPen,
    QPolygonF,
)

from hgviz import palettes
from hgviz.gui import atlas, theme
from hgviz.gui.ink import faint, sides
from hgviz.gui.language import tr
from hgviz.gui.views.journey import ASIDE, Crossing, Strip
from hgviz.gui.views.strips import LEFT, SMALL, StripPen, width
from hgviz.gui.views.trace import Look
from hgviz.gui.views.words import share as in_percent

MARGIN = 16
ARC = 56.0  # px: the highest arc
LOW = 18.0  # px: the highest where a title stands above

Right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
Middle = Qt.AlignmentFlag.AlignCenter


class Pen(StripPen):
    """One painting of a story."""

    def paint(self) -> None:
        """Everything, back to front."""
        course, trace = self.story.course, self.story.trace
        self._ground()
        for crossing in course.crossings:
            self._lines(crossing)
        for crossing in course.crossings:
            self._thread(crossing)
        for number, look in enumerate(trace.looks):
            self._stage(number, look)
        for crossing, said in zip(course.crossings, trace.chips, strict=False):
            self._chip(crossing, said)
        if any(one.kind == "last" for one in self.story.way):
            self._residual()
        self._together()

    # --- the ground -------------------------------------------------------------------------------

    def _ground(self) -> None:
        self.painter.setPen(Qt.PenStyle.NoPen)
        self.painter.setBrush(faint(self.theme.silhouette[0], 0.65))
        outline = [QPointF(x, y) for x, y in self.story.course.outline]
        self.painter.drawPolygon(QPolygonF(outline))

    def _lines(self, one: Crossing) -> None:
        past, future = QPen(self.theme.edge, 1), QPen(faint(self.theme.edge, 0.4), 1)
        for above, below, known in one.lines:
            self.painter.setPen(past if known else future)
            self.painter.drawLine(QPointF(above, one.top + 5), QPointF(below, one.bottom - 6))

    def _thread(self, one: Crossing) -> None:
        """Draw the orange ribbon of the letter, and a pale one to others that get the same."""
        if one.thread is None:
            return
        self.painter.setPen(Qt.PenStyle.NoPen)
        for ribbon, alpha in ((one.others, 0.35), (one.thread, 0.94)):
            if ribbon is not None:
                self.painter.setBrush(faint(self.theme.mark, alpha))
                a, b, c, d = ribbon
                top, bottom = one.top + 3, one.bottom - 3
                corners = ((a, top), (b, top), (d, bottom), (c, bottom))
                self.painter.drawPolygon(QPolygonF([QPointF(x, y) for x, y in corners]))

    # --- a stage ----------------------------------------------------------------------------------

    def _stage(self, number: int, look: Look) -> None:
        course, beside = self.story.course, self.story.way[number].beside
        strip, own = course.strips[number], course.own[number]
        raised = False
        if beside:
            self._beside(number, strip, look)
        else:
            raised = self._words(number, strip, look)
        self.strip(strip, look.weights, look.seen, look.signed)
        if own is None:
            self._fan(number, strip, look)
        else:
            self._arcs(strip, own, look, LOW if raised else ARC)
            self.own(strip, own)
        self._badge(number, strip)

    def _badge(self, number: int, strip: Strip) -> None:
        stage = self.story.way[number]
        y = (strip.top + strip.bottom) / 2
        self.painter.setPen(Qt.PenStyle.NoPen)
        self.painter.setBrush(self.theme.text)
        self.painter.drawEllipse(QPointF(MARGIN + 12, y), 12, 12)
        bold = theme.font(0.92, 600)
        spot = QRectF(MARGIN, y - 12, 24, 24)
        self.write(spot, str(stage.number), bold, self.theme.pane, Middle)
        if stage.beside:
            return
        label = self.story.capture.spec.levels[stage.level].label
        self.write(
            QRectF(MARGIN + 34, y - 12, 90, 24), label, theme.font(1.08, 600), self.theme.text
        )

    def _beside(self, number: int, strip: Strip, look: Look) -> None:
        """Layers, head and role left of a strip, the head's small map right of it."""
        stage, capture = self.story.way[number], self.story.capture
        x = MARGIN + 34
        room = strip.left - ASIDE - 6 - x
        bold, quiet = theme.font(1.0, 600), theme.font(0.85)
        said = stage.named(look.name)
        y = (strip.top + strip.bottom) / 2 - 25
        for words, font, colour in (
            (stage.title(capture.spec, self.story.noun), bold, self.theme.text),
            (said, quiet, self.theme.secondary),
            (look.role, quiet, self.theme.secondary),
        ):
            self.write(QRectF(x, y, room, 17), self.elided(words, font, room), font, colour)
            y += 17
        if look.small is not None:
            self._thumb(look, self.story.head_box(number))

    def _words(self, number: int, strip: Strip, look: Look) -> bool:
        """Title and head over a strip; True where the title stands above lower arcs.

        The title goes right of the letter where there is room, else left of it, else further
        right, past the end of the strip.
        """
        stage, capture = self.story.way[number], self.story.capture
        title = stage.title(capture.spec, self.story.noun)
        note = stage.note(capture.spec, len(capture.spans[stage.level]))
        bold, quiet = theme.font(1.15, 600), theme.font(0.92)
        wide = max(width(bold, title), width(quiet, note)) + 2
        head = self._head_width(look)
        cell = self.story.course.cells[number] or (strip.left, strip.left)
        x, right = cell[1] + 22, strip.right
        left = self._clear_of(number, cell[0]) - 14 - wide
        end = x + wide + head
        raised = end > right and left >= MARGIN + 90
        raised &= left >= strip.left or end > self.story.course.right
        room = min(wide, max(right, min(end, self.story.course.right)) - head - x)
        if not raised and left + wide - MARGIN - 90 > room < wide:  # cut, but less than there
            raised, wide = True, left + wide - MARGIN - 90
            left = MARGIN + 90
        right = max(right, min(x + head if raised else end, self.story.course.right))
        x = left if raised else x
        self._head(strip, look, right)
        top = strip.top - ASIDE - 44 - (14 if raised else 0)
        room = wide if raised else room
        line = QFontMetricsF(bold).height()
        for y, said, font, colour in (
            (top, title, bold, self.theme.text),
            (top + line + 1, note, quiet, self.theme.secondary),
        ):
            self.write(QRectF(x, y, room, line), self.elided(said, font, room), font, colour)
        return raised

    def _head_width(self, look: Look) -> float:
        said = max(
            width(theme.font(0.92, 600), look.name), min(180.0, width(theme.font(0.92), look.role))
        )
        return said + 16 + (SMALL + 10 if look.small is not None else 0)

    def _head(self, strip: Strip, look: Look, right: float) -> None:
        top = strip.top - ASIDE - SMALL - 2
        if look.small is not None:
            self._thumb(look, QRectF(right - SMALL, top, SMALL, SMALL))
            right -= SMALL + 10
        bold, quiet, room = theme.font(0.92, 600), theme.font(0.92), 180.0
        for y, said, font, colour in (
            (top + 2, look.name, bold, self.theme.text),
            (top + 20, look.role, quiet, self.theme.secondary),
        ):
            box = QRectF(right - room, y, room, 18)
            self.write(box, self.elided(said, font, room), font, colour, Right)

    def _thumb(self, look: Look, box: QRectF) -> None:
        assert look.small is not None
        size = round(SMALL * self.painter.device().devicePixelRatioF())
        name = palettes.suited(self.story.display.palette, look.small.signed)
        table = palettes.colours(name, self.theme.dark)
        pixels = np.ascontiguousarray(
            atlas.painted(look.small, size, size, atlas.largest(look.small), table)
        )
        image = QImage(pixels.data, size, size, 4 * size, QImage.Format.Format_ARGB32_Premultiplied)
        path = QPainterPath()
        path.addRoundedRect(box, 3, 3)
        self.painter.fillPath(path, self.theme.pane)
        self.painter.drawImage(box, image)
        self.painter.strokePath(path, QPen(self.theme.edge, 1))

    def _clear_of(self, number: int, left: float) -> float:
        """The left edge of the letter's cell and of the thread that leads to it."""
        crossings = self.story.course.crossings
        thread = crossings[number - 1].thread if number else None
        return left if thread is None else min(left, *thread[::2])

    def _arcs(self, strip: Strip, own: int, look: Look, highest: float) -> None:
        here = strip.cell(own)
        if here is None or not look.top:
            return
        start = QPointF((here[0] + here[1]) / 2, strip.top - 2)
        most = look.most or 1.0
        for key, weight in reversed(look.top):
            if key == own:
                continue
            there = strip.cell(key)
            x = (there[0] + there[1]) / 2 if there else self._beyond(strip, key)
            share = abs(weight) / most
            far = abs(start.x() - x)
            peak = min(highest, 14 + 0.1 * far) * 4 / 3
            path = QPainterPath(QPointF(x, strip.top - 4))
            up = strip.top - 4 - peak
            path.cubicTo(QPointF(x, up), QPointF(start.x(), up), start)
            self._stroke(path, weight, share)
            self._dot(QPointF(x, strip.top - 4), weight, bool(there))

    def _fan(self, number: int, strip: Strip, look: Look) -> None:
        """From the letter in the text above to its strongest keys in another text."""
        here, above = self.story.course.cells[number], self.story.course.strips[number - 1]
        if here is None or not number:
            return
        start = QPointF(sum(here) / 2, above.bottom + 4)
        for key, weight in reversed(look.top):
            there = strip.cell(key)
            x = sum(there) / 2 if there else self._beyond(strip, key)
            end = QPointF(x, strip.top - 4)
            path, middle = QPainterPath(start), (start.y() + end.y()) / 2
            path.cubicTo(QPointF(start.x(), middle + 10), QPointF(x, middle - 10), end)
            self._stroke(path, weight, abs(weight) / (look.most or 1.0))
            self._dot(end, weight, bool(there))

    def _stroke(self, path: QPainterPath, weight: float, share: float) -> None:
        """What is added in orange, what is taken away in blue dashes, wider for more."""
        colour = self.theme.mark if weight >= 0 else sides()[0]
        pen = QPen(faint(colour, 0.45 + 0.55 * share), 1.1 + 3.2 * share * share)
        if weight < 0:
            pen.setDashPattern([4, 2])
        self.painter.strokePath(path, pen)

    def _dot(self, place: QPointF, weight: float, filled: bool) -> None:
        colour = self.theme.mark if weight >= 0 else sides()[0]
        self.painter.setPen(QPen(colour, 1.2))
        self.painter.setBrush(colour if filled else self.theme.pane)
        self.painter.drawEllipse(place, 2.4, 2.4)

    def _beyond(self, strip: Strip, key: int) -> float:
        """Where an arc ends whose key lies outside the window: at its edge, on a hollow dot."""
        first = strip.cells[0][0] if strip.cells else 0
        return strip.left if key < first else strip.right

    # --- between and below ------------------------------------------------------------------------

    def _chip(self, one: Crossing, said: str) -> None:
        if not said or one.thread is None:
            return
        font = theme.font(0.92)
        wide = QFontMetricsF(font).horizontalAdvance(said) + 20
        y = one.top + 16
        part = (y + 11 - one.top) / (one.bottom - one.top)
        a, b, c, d = one.thread
        left, right = a + (c - a) * part, b + (d - b) * part
        x = left - wide - 10
        if x < MARGIN:
            x = min(right + 10, self.story.course.width - wide - MARGIN)
        box = QRectF(x, y, wide, 22)
        self.painter.setPen(QPen(self.theme.edge, 1))
        self.painter.setBrush(self.theme.pane)
        self.painter.drawRoundedRect(box, 11, 11)
        self.write(box, said, font, self.theme.text, Middle)

    def _residual(self) -> None:
        course = self.story.course
        first, last = course.strips[0], course.strips[-1]
        x, lane = first.right + ASIDE, course.right + ASIDE + 30
        top, bottom = (first.top + first.bottom) / 2, (last.top + last.bottom) / 2
        path = QPainterPath(QPointF(x, top))
        path.lineTo(lane - 8, top)
        path.quadTo(lane, top, lane, top + 8)
        path.lineTo(lane, bottom - 8)
        path.quadTo(lane, bottom, lane - 8, bottom)
        path.lineTo(x + 10, bottom)
        self.painter.strokePath(path, QPen(self.theme.secondary, 1.5))
        self.painter.setPen(Qt.PenStyle.NoPen)
        self.painter.setBrush(self.theme.secondary)
        tip = QPointF(x + 4, bottom)
        self.painter.drawPolygon(QPolygonF([tip, tip + QPointF(8, -4.5), tip + QPointF(8, 4.5)]))
        font = theme.font(0.85)
        units = tr(f"{self.story.noun}s")
        said = tr("residual path: the {units} themselves skip the waist", units=units)
        self.painter.save()
        self.painter.translate(lane + 14, (top + bottom) / 2)
        self.painter.rotate(-90)
        room = bottom - top - 24
        box = QRectF(-room / 2, -9, room, 18)
        self.write(box, self.elided(said, font, room), font, self.theme.secondary, Middle)
        self.painter.restore()

    def _together(self) -> None:
        course, trace, capture = self.story.course, self.story.trace, self.story.capture
        strip = course.together
        self.painter.setPen(QPen(self.theme.line, 1))
        y = round(strip.top - 17) + 0.5
        self.painter.drawLine(QPointF(0, y), QPointF(course.width, y))
        bold = theme.font(0.92, 600)
        step = QFontMetricsF(bold).lineSpacing()
        middle = (strip.top + strip.bottom) / 2
        flat = all(one.stride == 1 for one in capture.spec.levels)
        for number, said in enumerate(
            (tr("All layers") if flat else tr("All levels"), tr("together"))
        ):
            box = QRectF(MARGIN, middle - step + number * step, 120, step)
            self.write(box, said, bold, self.theme.text)
        self.strip(strip, trace.together, self.story.seen, False)
        self.own(strip, trace.token)
        quiet = theme.font(0.92)
        left = strip.left if strip.left < 240 else 148.0
        room = course.width - left - MARGIN
        metrics = QFontMetricsF(quiet)
        wraps = metrics.horizontalAdvance(trace.sentence) > room
        high = metrics.lineSpacing() * (2 if wraps else 1)
        said = self.elided(trace.sentence, quiet, room * 1.9 if wraps else room)
        self.painter.setFont(quiet)
        self.painter.setPen(self.theme.secondary)
        box = QRectF(left, strip.bottom + 12, room, high + 2)
        self.painter.drawText(box, Qt.TextFlag.TextWordWrap | LEFT, said)
        y = box.bottom() + 6
        self._key(self._expected(left, y), y)

    def _expected(self, x: float, y: float) -> float:
        if not self.story.trace.expected:
            return x
        quiet, mono = theme.font(0.92), theme.mono(0.92, 600)
        said = self.story.trace.verdict.question(self.story.noun)
        x = self.word(x, y, said, quiet, self.theme.secondary) + 10
        for label, share in self.story.trace.expected:
            wide = QFontMetricsF(mono).horizontalAdvance(label) + 16
            self.painter.setPen(Qt.PenStyle.NoPen)
            self.painter.setBrush(self.theme.hover)
            box = QRectF(x, y - 1, wide, 20)
            self.painter.drawRoundedRect(box, 4, 4)
            self.write(box, label, mono, self.theme.text, Middle)
            x = self.word(x + wide + 6, y, in_percent(share), quiet, self.theme.secondary) + 14
        return x

    def _key(self, least: float, y: float) -> None:
        """Write what → does, at the right, where there is room."""
        quiet, small = theme.font(0.92), theme.font(0.85)
        said = tr("next {unit}", unit=tr(self.story.noun))
        wide = QFontMetricsF(small).horizontalAdvance("→") + 14
        room = wide + 8 + QFontMetricsF(quiet).horizontalAdvance(said)
        x = self.story.course.width - MARGIN - room
        if x < least + 16:
            return
        box = QRectF(x, y - 1, wide, 20)
        self.painter.setPen(QPen(self.theme.edge, 1))
        self.painter.setBrush(self.theme.pane)
        self.painter.drawRoundedRect(box, 4, 4)
        self.write(box, "→", small, self.theme.secondary, Middle)
        self.word(x + wide + 8, y, said, quiet, self.theme.secondary)
