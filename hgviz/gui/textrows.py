"""The rows of the text strip: painted cells, ties between levels, the overview, the pointer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from hgviz import palettes
from hgviz.core import Display, HeadId, Integers, Prompt
from hgviz.gui import ink, theme
from hgviz.gui.language import tr
from hgviz.gui.views import ends, labels, ribbon
from hgviz.gui.views.cells import Glyph, Line, Rows, Ruler, glyphs
from hgviz.gui.views.ends import LANE
from hgviz.gui.views.labels import LEFT
from hgviz.gui.views.passages import Tokens
from hgviz.gui.widgets import turns_along

RIGHT, TOP = 17, 6  # px: the padding of the pane
LETTER = 0.62  # the width of a monospaced letter, in parts of its size


class Strip(QWidget):
    """Shows lines over a prompt; says which tokens and heads the pointer chooses."""

    pointed = Signal(object)  # a token, None when the pointer leaves
    queried = Signal(object)  # (first, last) tokens, last included
    keyed = Signal(int)  # a token
    opened = Signal(object)  # the head of a row's label

    def __init__(self) -> None:
        super().__init__()
        self.prompt: Prompt | None = None
        self.lines: Sequence[Line] = ()
        self.display = Display()
        self.selected: HeadId | None = None
        self.queries: Tokens | None = None
        self.written: int | None = None
        self.segment_ends: Integers | None = None
        self.ruler: Ruler | None = None
        self.rows = Rows()
        self._drag: Tokens | None = None
        self._sliding = False
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(tr("Text, one row for each resolution"))

    def minimumSizeHint(self) -> QSize:
        """Room for one row and a few letters."""
        return QSize(LEFT + RIGHT + 60, 40)

    # --- what is shown ----------------------------------------------------------------------------

    def show_lines(
        self,
        prompt: Prompt,
        lines: Sequence[Line],
        display: Display,
        selected: HeadId | None,
        written: int | None = None,
        segment_ends: Integers | None = None,
    ) -> bool:
        """Show rows; a new text starts at its beginning, one that grows stays where it is: True.

        written: the first token that the model wrote. segment_ends: tokens that close a segment.
        """
        old, self.prompt, self.lines = self.prompt, prompt, lines
        self.display, self.selected, self.written = display, selected, written
        self.segment_ends = segment_ends
        grown = old is not None and len(prompt) > len(old) and prompt.continues(old)
        self._lay_out(None if grown or prompt is old else 0.0)
        return grown

    def show_queries(self, queries: Tokens | None, follow: bool = True) -> None:
        """Outline the chosen tokens, and scroll to the last of them."""
        self.queries = queries
        if queries is not None and follow and self.ruler is not None and self.ruler.scrolls:
            self.ruler = self.ruler.around(min(queries[1], len(self.ruler.edges) - 2))
        self.update()

    def _lay_out(self, offset: float | None = None) -> None:
        if self.prompt is None:
            return
        before = self.ruler.offset if self.ruler is not None and offset is None else offset or 0.0
        self.ruler = Ruler.fitted(self.prompt, max(20, self.width() - LEFT - RIGHT), before)
        lane = LANE if self.segment_ends is not None else 0
        self.rows = Rows.fitted(len(self.lines), self.height() - TOP, self.ruler.scrolls, lane)
        self.update()

    # --- painting ---------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """Row by row, then what is chosen over all of them."""
        if self.prompt is None or self.ruler is None:
            return
        with QPainter(self) as painter:
            painter.translate(0, TOP)
            for line, (top, height) in zip(self.lines, self.rows.tops, strict=False):
                rgb = self._colours(line, np.array([0])) if line.null else None
                labels.draw(painter, line, (top, height), line.head == self.selected, rgb)
            painter.setClipRect(QRectF(LEFT - 3, -TOP, self.ruler.room + 6, self.height()))
            first, last = self.ruler.shown()
            written = glyphs(self.prompt, first, last)
            for number, (line, (top, height)) in enumerate(
                zip(self.lines, self.rows.tops, strict=False)
            ):
                self._row(painter, line, QRectF(0, top, 0, height), written, number == 0)
            if self.segment_ends is not None and self.lines:
                ends.draw(painter, self.segment_ends, self._where((first, last)))
            self._chosen(painter)
            painter.setClipping(False)
            if self.rows.overview and self.lines:
                rect = QRectF(LEFT, 0, self.ruler.room, self.rows.overview)
                ribbon.draw(painter, rect, self.ruler, self.lines[0], self.display, self.queries)
            if self.hasFocus():
                ink.focus_ring(painter, QRectF(0, -TOP, self.width(), self.height()))

    def _row(
        self, painter: QPainter, line: Line, band: QRectF, written: list[Glyph], first: bool
    ) -> None:
        assert self.ruler is not None
        start, end = self.ruler.shown()
        cells = np.flatnonzero((line.spans[:, 1] > start) & (line.spans[:, 0] < end))
        rgb = self._colours(line, cells)
        inks = palettes.readable(rgb) if rgb is not None else None
        of = np.full(len(self.ruler.edges), -1)
        now, ratio = theme.current(), self.devicePixelRatioF()
        within = None if line.seen is None else line.seen[cells]
        fills = None if rgb is None else rgb.tolist()
        plain, close = ink.faint(now.pane, 0.85), ink.faint(now.pane, 0.16)
        for at, (a, b) in enumerate(line.spans[cells].tolist()):
            of[a:b] = at
            box = self._box(a, b, band)
            seen = within is None or bool(within[at])
            if fills is None or not seen:
                painter.fillRect(box, now.unseen if not seen else now.hover)
            else:
                painter.fillRect(box, QColor(*fills[at]))
            edge = close if first and seen and fills is not None else plain
            painter.fillRect(QRectF(box.right() - 1, box.top(), 1, box.height()), edge)
        tail = (
            self._box(max(0, int(line.spans[-1, 1])), len(of) - 1, band) if line.null else QRectF()
        )
        if tail.width():
            ends.nobody(painter, tail, ratio)
        if first:
            self._second_text(painter, band, start, end)
            self._written(painter, band, start, end)
        if line.off and len(cells):
            span = self._box(int(line.spans[cells[0], 0]), int(line.spans[cells[-1], 1]), band)
            ink.switched_off(painter, span, ratio)
        self._letters(painter, band, written, of, inks, within, first)

    def _where(self, shown: tuple[int, int]) -> ends.Place:
        (top, height), foot = self.rows.tops[0], self.rows.tops[min(1, len(self.rows.tops) - 1)][0]

        def edge(token: int) -> float:
            assert self.ruler is not None
            return LEFT + round(self.ruler.x(token + 1))

        return ends.Place(edge, self.rows.lane, (top, height), max(foot, top + height), shown)

    def _second_text(self, painter: QPainter, band: QRectF, start: int, end: int) -> None:
        """A line under the tokens of the second text of a pair."""
        kinds = self.prompt.token_type_ids if self.prompt is not None else None
        if kinds is None or not (kinds[start:end] == 1).any():
            return
        found = start + np.flatnonzero(kinds[start:end] == 1)
        box = self._box(int(found[0]), int(found[-1]) + 1, band)
        under = QRectF(box.left(), box.bottom() + 2, box.width(), 2)
        painter.fillRect(under, theme.current().secondary)

    def _written(self, painter: QPainter, band: QRectF, start: int, end: int) -> None:
        """A dotted line under the tokens that the model wrote."""
        if self.written is None or end <= self.written:
            return
        box = self._box(max(start, self.written), end, band)
        pen = QPen(theme.current().secondary, 2, Qt.PenStyle.DotLine)
        y = box.bottom() + 3
        painter.save()
        painter.setPen(pen)
        painter.drawLine(QPointF(box.left() + 1, y), QPointF(box.right() - 1, y))
        painter.restore()

    def _letters(
        self,
        painter: QPainter,
        band: QRectF,
        written: list[Glyph],
        of: np.ndarray,
        inks: np.ndarray | None,
        within: np.ndarray | None,
        first: bool,
    ) -> None:
        now = theme.current()
        font = self._font(band.height(), first)
        metrics = QFontMetricsF(font)
        painter.setFont(font)
        for one in written:
            at = int(of[one.first])
            if at < 0 or (one.space and not first):
                continue
            box = self._box(one.first, one.last, band)
            seen = within is None or bool(within[at])
            if one.special:
                ink.special(painter, box, one.text)
                continue
            colour = now.secondary if not seen else now.text
            if inks is not None and seen:
                colour = QColor(*inks[at].tolist())
            painter.setPen(ink.faint(colour, 0.6) if one.space else colour)
            wide = metrics.horizontalAdvance(one.text)
            if wide <= box.width() + 1.5:
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, one.text)
            else:
                ink.squeezed(painter, box, one.text, wide)
            if one.leftwards and first:
                ink.leftwards(painter, box)

    def _chosen(self, painter: QPainter) -> None:
        """The cell of the query in every row, tied together, and the key where it is looked at."""
        mark = theme.current().mark
        boxes = [self._query_box(number) for number in range(len(self.lines))]
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(mark)
        for upper, lower in zip(boxes, boxes[1:], strict=False):
            if upper is not None and lower is not None:
                corners = upper.bottomLeft(), upper.bottomRight(), lower.topRight(), lower.topLeft()
                painter.drawPolygon(QPolygonF([*corners]))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for number, line in enumerate(self.lines):
            if line.key is not None and line.head is not None and line.head == self.selected:
                ink.ring(painter, self._cell_box(number, line.key))
        for box, line in zip(boxes, self.lines, strict=True):
            # on red and blue the mark needs a ground of its own
            for pen in ((QPen(theme.current().pane, 5),) if line.signed else ()) + (QPen(mark, 2),):
                painter.setPen(pen)
                if box is not None:
                    painter.setClipping(box.right() >= LEFT - 3)  # the null group is before it all
                    painter.drawRoundedRect(box, 3, 3)

    def _query_box(self, number: int) -> QRectF | None:
        line = self.lines[number]
        if number == 0 and self.queries is not None and self.queries[0] != self.queries[1]:
            top, height = self.rows.tops[0]
            return self._box(self.queries[0], self.queries[1] + 1, QRectF(0, top, 0, height))
        return None if line.chosen is None else self._cell_box(number, line.chosen)

    def _cell_box(self, number: int, cell: int) -> QRectF:
        top, height = self.rows.tops[number]
        a, b = (int(one) for one in self.lines[number].spans[cell])
        if b < 0:
            return labels.null_box(top, height)
        return self._box(a, max(a + 1, b), QRectF(0, top, 0, height))

    def _box(self, first: int, last: int, band: QRectF) -> QRectF:
        """The cells of tokens first..last-1 in a row, on whole pixels."""
        assert self.ruler is not None
        left, right = LEFT + round(self.ruler.x(first)), LEFT + round(self.ruler.x(last))
        return QRectF(left, band.top(), right - left, band.height())

    def _colours(self, line: Line, cells: np.ndarray) -> np.ndarray | None:
        """uint8 (cells, 3): the colours of some cells; None where there is nothing to colour."""
        if line.weights is None or line.off:
            return None
        table = palettes.colours(
            palettes.suited(self.display.palette, line.signed), theme.current().dark
        )
        placed = palettes.place(line.weights[cells], line.limits, self.display.scale, line.signed)
        return palettes.paint(placed, table)

    def _font(self, height: float, first: bool) -> QFont:
        assert self.ruler is not None
        out = theme.mono(1.2 if first else 1.0)
        most = min(height * 0.62, self.ruler.width / LETTER)
        out.setPixelSize(max(10, min(out.pixelSize(), int(most))))
        return out

    # --- pointer ----------------------------------------------------------------------------------

    def _slide(self, x: float) -> None:
        assert self.ruler is not None
        self.ruler = self.ruler.centred((x - LEFT) / max(1.0, self.ruler.room))
        self.update()

    def token_at(self, place: QPointF) -> int | None:
        """The token under a place: in a row of a coarser level the newest of its cell."""
        if self.ruler is None:
            return None
        row = self.rows.at(place.y() - TOP)
        token = self.ruler.token(place.x() - LEFT)
        if row is None or token is None or row >= len(self.lines):
            return None
        line = self.lines[row]
        cell = line.cell(token)
        return None if cell is None else int(line.spans[cell, 1]) - 1

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose a query; with Alt the key; a label opens its head."""
        if event.button() != Qt.MouseButton.LeftButton or self.ruler is None:
            return
        place = event.position()
        if self.rows.overview and place.y() - TOP < self.rows.overview and place.x() >= LEFT:
            self._sliding = True
            self._slide(place.x())
            return
        row = self.rows.at(place.y() - TOP)
        if place.x() < LEFT and row is not None and row < len(self.lines):
            if self.lines[row].head is not None:
                self.opened.emit(self.lines[row].head)
            return
        token = self.token_at(place)
        if token is None:
            return
        if event.modifiers() & Qt.KeyboardModifier.AltModifier:
            self.keyed.emit(token)
            return
        self._drag = (token, token)
        self.queried.emit(self._drag)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Drag over several queries, slide the overview, or point."""
        if self._sliding:
            self._slide(event.position().x())
            return
        token = self.token_at(event.position())
        if self._drag is None:
            self.pointed.emit(token)
        elif token is not None and token != self._drag[1]:
            self._drag = (self._drag[0], token)
            self.queried.emit((min(self._drag), max(self._drag)))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Let go."""
        self._drag, self._sliding = None, False

    def leaveEvent(self, event: QEvent) -> None:
        """The pointer is over nothing."""
        self.pointed.emit(None)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll along a long text."""
        if self.ruler is None or not self.ruler.scrolls:
            event.ignore()
            return
        self.ruler = self.ruler.turned(turns_along(event))
        self.update()

    # --- size -------------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay out again; keep the chosen letter in sight."""
        self._lay_out()
        self.show_queries(self.queries)
