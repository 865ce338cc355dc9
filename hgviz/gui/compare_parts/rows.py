"""The rows of text of A, of B and of A − B, cell over cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from hgviz import palettes
from hgviz.core import Display, Floats
from hgviz.gui import ink, theme
from hgviz.gui.compare_parts.rowpair import Bools, Names, RowPair
from hgviz.gui.language import tr
from hgviz.gui.textrows import LEFT, LETTER, RIGHT
from hgviz.gui.views import ribbon
from hgviz.gui.views.cells import NARROWEST, WIDEST, Glyph, Line, Ruler
from hgviz.gui.widgets import turns_along

TOP, GAP, HIGHEST, LOWEST = 4, 6, 32, 16  # px: above the rows, between them, of a row
OVERVIEW = 8  # px of the overview of a long text


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One row: its name, what is written in it, what is weighed; weights None: nothing is shown.

    told: what is said in the place of weights that are not there.
    """

    name: str
    names: Names
    there: Bools
    weights: Floats | None = None
    seen: Bools | None = None
    signed: bool = False
    told: str = ""


class TextRows(QWidget):
    """Rows over one grid; says which cells the pointer chooses."""

    pointed = Signal(object)  # a cell, None when the pointer leaves
    queried = Signal(int)
    keyed = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.rows: Sequence[Row] = ()
        self.pair: RowPair | None = None
        self.display = Display()
        self.limit = 1.0
        self.ruler: Ruler | None = None
        self._sliding = False
        self._grid: object = None
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(tr("Text with the weights of A, of B, and their difference"))

    def sizeHint(self) -> QSize:
        """Room for three rows."""
        return QSize(600, TOP + 3 * (HIGHEST + GAP))

    def minimumSizeHint(self) -> QSize:
        """Room for three low rows and a few letters."""
        return QSize(LEFT + RIGHT + 60, TOP + 3 * (LOWEST + 3))

    def show_rows(
        self, pair: RowPair, rows: Sequence[Row], display: Display, limit: float, follow: bool
    ) -> None:
        """Show rows of a grid; another one starts at its beginning. follow: scroll to the query."""
        same = self._grid is not None and self.pair is not None and _alike(self.pair, pair)
        self.pair, self.rows, self.display, self.limit = pair, rows, display, limit
        self._lay_out(keep=same)
        if follow and pair.query is not None and self.ruler is not None and self.ruler.scrolls:
            self.ruler = self.ruler.around(pair.query)
        self.update()

    def clear(self) -> None:
        """Show nothing."""
        self.pair, self.rows = None, ()
        self.update()

    def _lay_out(self, keep: bool = True) -> None:
        if self.pair is None:
            return
        room = max(20, self.width() - LEFT - RIGHT)
        sizes = np.maximum(self.pair.names[0].widths, self.pair.names[1].widths)
        sizes = np.maximum(sizes.astype(float), 1.0)
        edges = np.concatenate([[0.0], np.cumsum(sizes)])
        width = min(WIDEST, max(NARROWEST, room / max(1.0, float(edges[-1]))))
        offset = self.ruler.offset if keep and self.ruler is not None else 0.0
        self.ruler = Ruler(edges, width, room).moved(offset)
        self._grid = self.pair.meeting

    @property
    def bands(self) -> list[QRectF]:
        """Where the rows lie, without their left and right ends."""
        over = OVERVIEW + 4 if self.ruler is not None and self.ruler.scrolls else 0
        count = max(1, len(self.rows))
        gap = GAP if self.height() >= TOP + over + count * (24 + GAP) else 3
        room = (self.height() - TOP - over - gap * (count - 1)) / count
        high = int(max(LOWEST, min(HIGHEST, room)))
        return [QRectF(0, TOP + over + at * (high + gap), 0, high) for at in range(count)]

    # --- painting ---------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """Row by row, then what is chosen over all of them."""
        if self.pair is None or self.ruler is None:
            return
        with QPainter(self) as painter:
            bands = self.bands
            for row, band in zip(self.rows, bands, strict=True):
                self._name(painter, row, band)
            painter.setClipRect(QRectF(LEFT - 3, 0, self.ruler.room + 6, self.height()))
            first, last = self.ruler.shown()
            for row, band in zip(self.rows, bands, strict=True):
                self._row(painter, row, band, first, last)
            self._chosen(painter, bands)
            painter.setClipping(False)
            if self.ruler.scrolls:
                self._overview(painter)
            if self.hasFocus():
                ink.focus_ring(painter, QRectF(self.rect()))

    def _name(self, painter: QPainter, row: Row, band: QRectF) -> None:
        now, font = theme.current(), theme.font(0.92, 600)
        painter.setFont(font)
        painter.setPen(now.text)
        room = LEFT - 16 - 8
        said = QFontMetricsF(font).elidedText(row.name, Qt.TextElideMode.ElideRight, room)
        box = QRectF(16, band.top(), room, band.height())
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, said)

    def _row(self, painter: QPainter, row: Row, band: QRectF, first: int, last: int) -> None:
        now, ratio = theme.current(), self.devicePixelRatioF()
        span = self._box(first, last, band)
        if row.told:
            ink.unseen(painter, span, ratio)
            painter.setFont(theme.font(0.92))
            painter.setPen(now.secondary)
            painter.drawText(span.adjusted(10, 0, 0, 0), _MIDDLE, row.told)
            return
        colours = self._colours(row, first, last)
        inks = palettes.readable(colours) if colours is not None else None
        plain = ink.faint(now.pane, 0.85)
        for at in range(first, last):
            box = self._box(at, at + 1, band)
            seen = row.seen is None or bool(row.seen[at])
            if not row.there[at]:
                ink.unseen(painter, box, ratio)
                continue
            if colours is None or not seen:
                painter.fillRect(box, now.hover if seen else now.unseen)
            else:
                painter.fillRect(box, QColor(*colours[at - first].tolist()))
            edge = ink.faint(now.pane, 0.16) if seen and colours is not None else plain
            painter.fillRect(QRectF(box.right() - 1, box.top(), 1, box.height()), edge)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(now.line, 1))
        self._letters(painter, row, band, row.names.glyphs(first, last), inks, first)

    def _letters(
        self,
        painter: QPainter,
        row: Row,
        band: QRectF,
        glyphs: list[Glyph],
        inks: np.ndarray | None,
        first: int,
    ) -> None:
        now, font = theme.current(), self._font(band.height())
        metrics = QFontMetricsF(font)
        painter.setFont(font)
        for one in glyphs:
            if not row.there[one.first]:
                continue
            box = self._box(one.first, one.last, band)
            seen = row.seen is None or bool(row.seen[one.first])
            colour = now.text if seen else now.secondary
            at = max(0, one.first - first)
            if inks is not None and seen and at < len(inks):
                colour = QColor(*inks[at].tolist())
            painter.setPen(ink.faint(colour, 0.6) if one.space else colour)
            if one.special:
                painter.setFont(theme.mono(0.85))
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, one.text)
                painter.setFont(font)
                continue
            wide = metrics.horizontalAdvance(one.text)
            if wide <= box.width() + 1.5:
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, one.text)
            else:
                ink.squeezed(painter, box, one.text, wide)
            if one.leftwards:
                ink.leftwards(painter, box)

    def _chosen(self, painter: QPainter, bands: Sequence[QRectF]) -> None:
        """The query in orange, the key white within black, as on the maps."""
        assert self.pair is not None
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for row, band in zip(self.rows, bands, strict=True):
            if row.told:
                continue
            if self.pair.key is not None and row.there[self.pair.key]:
                box = self._box(self.pair.key, self.pair.key + 1, band)
                for reach, colour in ((0.5, Qt.GlobalColor.black), (-0.5, Qt.GlobalColor.white)):
                    painter.setPen(QPen(colour, 1))
                    painter.drawRoundedRect(box.adjusted(-reach, -reach, reach, reach), 2, 2)
            if self.pair.query is not None and row.there[self.pair.query]:
                box = self._box(self.pair.query, self.pair.query + 1, band)
                for pen in (QPen(theme.current().pane, 5), QPen(theme.current().mark, 2)):
                    painter.setPen(pen)
                    painter.drawRoundedRect(box, 3, 3)

    def _overview(self, painter: QPainter) -> None:
        """All of a long text, by the weights of the first row that has some."""
        assert self.ruler is not None and self.pair is not None
        row = next((one for one in self.rows if one.weights is not None), None)
        count = len(self.ruler.edges) - 1
        spans = np.stack([np.arange(count), np.arange(count) + 1], 1)
        weights = row.weights if row is not None else None
        line = Line(
            "", None, spans, weights, row.seen if row is not None else None,
            limits=self._limits(row) if row is not None else (0.0, 1.0),
            signed=row is not None and row.signed,
        )  # fmt: skip
        rect = QRectF(LEFT, TOP, self.ruler.room, OVERVIEW)
        queries = None if self.pair.query is None else (self.pair.query, self.pair.query)
        ribbon.draw(painter, rect, self.ruler, line, self.display, queries)

    def _limits(self, row: Row) -> tuple[float, float]:
        return palettes.limits_of(-self.limit if row.signed else 0.0, self.limit, row.signed)

    def _colours(self, row: Row, first: int, last: int) -> np.ndarray | None:
        """uint8 (cells, 3) of cells first..last-1; None where there is nothing to colour."""
        if row.weights is None:
            return None
        palette = palettes.suited(self.display.palette, row.signed)
        table = palettes.colours(palette, theme.current().dark)
        weights = row.weights[first:last]
        placed = palettes.place(weights, self._limits(row), self.display.scale, row.signed)
        return palettes.paint(placed, table)

    def _box(self, first: int, last: int, band: QRectF) -> QRectF:
        """Cells first..last-1 in a row, on whole pixels."""
        assert self.ruler is not None
        left, right = LEFT + round(self.ruler.x(first)), LEFT + round(self.ruler.x(last))
        return QRectF(left, band.top(), right - left, band.height())

    def _font(self, height: float) -> QFont:
        assert self.ruler is not None
        out = theme.mono(1.15)
        most = min(height * 0.62, self.ruler.width / LETTER)
        out.setPixelSize(max(10, min(out.pixelSize(), int(most))))
        return out

    # --- pointer ----------------------------------------------------------------------------------

    def cell_at(self, place: QPointF) -> int | None:
        """The cell under a place."""
        if self.ruler is None or not any(
            band.top() <= place.y() < band.bottom() for band in self.bands
        ):
            return None
        return self.ruler.token(place.x() - LEFT)

    def _slide(self, x: float) -> None:
        assert self.ruler is not None
        self.ruler = self.ruler.centred((x - LEFT) / max(1.0, self.ruler.room))
        self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose a query; with Alt the key; the overview scrolls."""
        if event.button() != Qt.MouseButton.LeftButton or self.ruler is None:
            return
        place = event.position()
        if self.ruler.scrolls and place.y() < TOP + OVERVIEW + 2 and place.x() >= LEFT:
            self._sliding = True
            self._slide(place.x())
            return
        cell = self.cell_at(place)
        if cell is not None:
            key = event.modifiers() & Qt.KeyboardModifier.AltModifier
            (self.keyed if key else self.queried).emit(cell)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Slide the overview, or point."""
        if self._sliding:
            self._slide(event.position().x())
        else:
            self.pointed.emit(self.cell_at(event.position()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Let go."""
        self._sliding = False

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

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay out again."""
        self._lay_out()
        self.update()


_MIDDLE = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft


def _alike(one: RowPair, other: RowPair) -> bool:
    """Whether two rows are of grids with the same cells."""
    a, b = one.meeting.columns, other.meeting.columns
    same = one.names[0].prompt is other.names[0].prompt and len(a) == len(b)
    return same and bool(np.array_equal(a.spans[0], b.spans[0]))
