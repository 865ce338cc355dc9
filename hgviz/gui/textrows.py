"""Texts as rows of cells coloured by weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
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
from hgviz.analysis.alignment import GridAxis, unit_spans
from hgviz.core import Display, Floats, HeadId, Integers, Prompt
from hgviz.gui import atlas, ink, sentences, theme
from hgviz.gui.grid import Bools
from hgviz.gui.language import tr
from hgviz.gui.widgets import NOTCH

# --- words in cells -------------------------------------------------------------------------------

SPECIAL = 6  # characters of a special token that are shown

Units = tuple[int, int]  # first and last unit of a ruler, half-open
Lengths = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Glyph:
    """The text of units first..last-1; a character of several bytes is written once."""

    text: str
    first: int
    last: int
    space: bool = False
    special: bool = False


class CellTexts:
    """The words in the units of a ruler.

    spans (units, 2): the tokens that each stands for. present (units,): False for a unit that
    stands for none. limit: how many characters of a token are shown.
    """

    def __init__(
        self, prompt: Prompt, spans: Integers, present: Bools, limit: int = sentences.LIMIT
    ) -> None:
        self.prompt, self.spans, self.present, self.limit = prompt, spans, present, limit
        self._glyphs: tuple[Units, list[Glyph]] = (0, 0), []

    @classmethod
    def of_tokens(cls, prompt: Prompt, limit: int = sentences.LIMIT) -> CellTexts:
        """One unit for each token of a text."""
        return cls(prompt, unit_spans(len(prompt)), np.ones(len(prompt), bool), limit)

    @classmethod
    def of_axis(cls, edge: GridAxis, side: int, prompt: Prompt) -> CellTexts:
        """One unit for each cell along a grid of A (side 0) and B (side 1)."""
        spans = edge.spans[side]
        present = (edge.a, edge.b)[side].there & (spans[:, 1] > np.maximum(spans[:, 0], 0))
        return cls(prompt, spans, present)

    @cached_property
    def widths(self) -> Lengths:
        """(units,): characters of room for each: a word piece has one to spare; 0 where absent."""
        widths = np.zeros(len(self.spans))
        present = np.flatnonzero(self.present)
        first, last = self.spans[present, 0], self.spans[present, 1] - 1
        ends = self.prompt.spans
        starts, stops = ends[first, 0], ends[last, 1]
        plain = (starts >= 0) & (stops >= 0)
        sizes = np.where(plain, np.clip(stops - starts, 1, self.limit), 1).astype(float)
        if np.diff(ends[ends[:, 0] >= 0], axis=1).max(initial=0) > 1:
            sizes += 1
        for at in np.flatnonzero(~plain):
            sizes[at] = min(SPECIAL, len(self._special(int(first[at]), int(last[at]) + 1))) + 1
        widths[present] = sizes
        return widths

    @cached_property
    def words(self) -> Integers:
        """(words, 2): the tokens of every word."""
        return sentences.word_spans(self.prompt)

    def glyphs(self, first: int, last: int) -> list[Glyph]:
        """The words of units first..last-1; those of the latest call are cached."""
        if self._glyphs[0] == (first, last):
            return self._glyphs[1]
        glyphs, at = [], first
        while at > 0 and self._joined(at - 1):
            at -= 1
        while at < last:
            end = at + 1
            while end < len(self.spans) and self._joined(end - 1):
                end += 1
            if self.present[at]:
                glyphs.append(self._glyph(at, end))
            at = end
        self._glyphs = (first, last), glyphs
        return glyphs

    def text(self, unit: int) -> str:
        """The name of a unit in a sentence or a table."""
        start, stop = (int(end) for end in self.spans[unit])
        return sentences.glyph(self.prompt, start, stop) if self.present[unit] else "∅"

    def _glyph(self, at: int, end: int) -> Glyph:
        start, stop = int(self.spans[at, 0]), int(self.spans[end - 1, 1])
        if self.prompt.spans[start, 0] < 0:
            name = sentences.shown(self._special(start, stop), SPECIAL)
            return Glyph(name, at, end, special=True)
        words = self.prompt.words(start, stop)
        return Glyph(sentences.shown(words, self.limit), at, end, space=words == " ")

    def _special(self, start: int, stop: int) -> str:
        """The name of a special token; of slots and states, as their row is named, the number."""
        single = stop - start == 1
        name = self.prompt.pieces[start] if single else sentences.glyph(self.prompt, start, stop)
        return name.removeprefix("slot ").removeprefix("state ")

    def _joined(self, at: int) -> bool:
        """Whether a unit and the next are parts of one character, as the bytes of an emoji."""
        if not (at < len(self.spans) - 1 and self.present[at] and self.present[at + 1]):
            return False
        (a, b), (c, d) = self.spans[at].tolist(), self.spans[at + 1].tolist()
        here, after = self.prompt.spans[a], self.prompt.spans[c]
        return bool(b - a == d - c == 1 and here[0] >= 0 and (here == after).all())


# --- where cells are ------------------------------------------------------------------------------

NARROWEST, WIDEST = 9.5, 16.0  # px of a character: below it the text scrolls
FIRST, OTHERS, LOWEST = 36, 26, 15  # px: heights of rows
GAP, NARROW_GAP = 6, 3  # px between rows
HIGH_ROW = 30  # px: from there merged cells have text as large as others
OVERVIEW = 8  # px of the overview of a long text


@dataclass(frozen=True, slots=True, eq=False)
class Ruler:
    """The places of units: edges (units + 1,) in characters of `width` px, scrolled by some px."""

    edges: Lengths
    width: float
    room: float
    offset: float = 0.0

    @classmethod
    def fitted(cls, widths: Lengths, room: float, offset: float = 0.0) -> Ruler:
        """Fit the whole text in the room, or as much of it as stays readable."""
        edges = np.concatenate([[0.0], np.cumsum(widths)])
        width = min(WIDEST, max(NARROWEST, room / max(1.0, float(edges[-1]))))
        return cls(edges, width, room).moved(offset)

    @property
    def length(self) -> float:
        """Px of the whole text."""
        return float(self.edges[-1]) * self.width

    @property
    def scrolls(self) -> bool:
        """Whether there is more than the room shows."""
        return self.length > self.room + 0.5

    def moved(self, offset: float) -> Ruler:
        """Scrolled to an offset, as far as there is text."""
        most = max(0.0, self.length - self.room)
        return Ruler(self.edges, self.width, self.room, max(0.0, min(offset, most)))

    def around(self, unit: int) -> Ruler:
        """Scrolled just as far as it takes to see a unit and what is near it."""
        margin = min(6 * self.width, self.room / 4)
        left, right = self.x(unit), self.x(unit + 1)
        if left < margin:
            return self.moved(self.offset + left - margin)
        if right > self.room - margin:
            return self.moved(self.offset + right - self.room + margin)
        return self

    def x(self, unit: int) -> float:
        """The left edge of a unit."""
        return float(self.edges[unit]) * self.width - self.offset

    def at(self, x: float) -> int | None:
        """The unit at a place."""
        if not 0 <= x < min(self.room, self.length - self.offset):
            return None
        at = int(np.searchsorted(self.edges, (x + self.offset) / self.width, side="right")) - 1
        return min(at, len(self.edges) - 2)

    def shown(self) -> Units:
        """The units on screen."""
        first = int(np.searchsorted(self.edges, self.offset / self.width, side="right")) - 1
        last = int(np.searchsorted(self.edges, (self.offset + self.room) / self.width))
        return max(0, first), min(last, len(self.edges) - 1)


def row_tops(heights: Sequence[int], room: int, overview: int) -> list[Units]:
    """The top and height of each row in a room, where they shrink alike below an overview."""
    gaps = len(heights) - 1 + bool(overview)
    gap = GAP if sum(heights) + GAP * gaps + overview <= room else NARROW_GAP
    top, tops = overview + gap * bool(overview), []
    left = room - top - gap * (len(heights) - 1)
    scale = min(1.0, left / max(1, sum(heights)))
    for wanted in heights:
        height = max(LOWEST, int(scale * wanted))
        tops.append((top, height))
        top += height + gap
    return tops


# --- painting -------------------------------------------------------------------------------------

LEFT, RIGHT, TOP = 122, 17, 6  # px: where the text begins; the padding of the pane
HEAD, NUMBER = 52, 87  # px: where "head" and its number begin
LEVEL_GAP = 4  # px between the level and what is said of its head
NULL = 13  # px: the room of the cell that stands for no token
CHARACTER = 0.62  # the width of a monospaced character, in parts of its size
NO_SEGMENT = "no segment yet"
FINE_LINE, LINE = 0.16, 0.85  # how opaque lines between cells are
ABSENT, MASKED, PLAIN, COLOURED = range(4)  # kinds of cells


@dataclass(frozen=True, slots=True, eq=False)
class TextRow:
    """One row of a text: what one head gives its cells.

    texts: what is written over the units of its ruler. cells (cells, 2): the units of each; a first
    cell that ends before 0 is the null group, which stands for no token. weights (cells,), None
    where nothing is chosen; seen (cells,): which the query may attend to; present (cells,): which
    the text has. chosen, key: units of the query and the key. merged: its cells are of several
    tokens. message: what is written in place of the cells.
    """

    name: str
    texts: CellTexts
    cells: Integers
    head: HeadId | None = None
    weights: Floats | None = None
    seen: Bools | None = None
    present: Bools | None = None
    limits: tuple[float, float] = (0.0, 1.0)
    signed: bool = False
    off: bool = False
    chosen: Units | None = None
    key: Units | None = None
    merged: bool = False
    height: int = FIRST
    message: str = ""

    @property
    def null(self) -> bool:
        """Whether its first cell is the null group."""
        return len(self.cells) > 0 and bool(self.cells[0, 1] < 0)

    def cell(self, unit: int) -> int | None:
        """The cell that has a unit."""
        at = int(np.searchsorted(self.cells[:, 1], unit, side="right"))
        return at if at < len(self.cells) and self.cells[at, 0] <= unit else None

    @property
    def coloured(self) -> bool:
        """Whether its cells have the colours of weights."""
        return self.weights is not None and not self.off

    def colours(self, cells: Integers, display: Display) -> NDArray[np.uint8]:
        """uint8 (cells, 3): the colours of some cells of a coloured row."""
        scale = ink.ColourScale(self.signed, self.limits, display)
        return scale.rgb(self.weights[cells], theme.current().dark)

    @property
    def most(self) -> float:
        """The largest weight by magnitude, 0 without any."""
        return 0.0 if self.weights is None else float(np.abs(self.weights).max(initial=0.0))


def paint_row(
    painter: QPainter,
    row: TextRow,
    band: QRectF,
    ruler: Ruler,
    shown: Units,
    display: Display,
    before: float = 0.0,
) -> None:
    """Paint the cells of a row and what is written in them, between whole pixels.

    band: its top and height, from where its ruler begins. before: characters that its first cell
    reaches out before the text.
    """
    now, top, height = theme.current(), band.top(), band.height()

    def boxes_of(firsts: Integers, lasts: Integers, before: float = 0.0) -> list[QRectF]:
        lefts, rights = (
            np.round(ruler.edges[units] * ruler.width - ruler.offset + band.left())
            for units in (firsts, lasts)
        )
        lefts[:1] -= before * ruler.width
        ends = zip(lefts.tolist(), rights.tolist(), strict=True)
        return [QRectF(left, top, right - left, height) for left, right in ends]

    if row.message:
        (box,) = boxes_of(np.array(shown[:1]), np.array(shown[1:]))
        ink.unseen(painter, box)
        box, font = box.adjusted(10, 0, 0, 0), theme.font(0.92)
        theme.write(painter, box, row.message, font, now.secondary)
        return
    cells = np.flatnonzero((row.cells[:, 1] > shown[0]) & (row.cells[:, 0] < shown[1]))
    starts, stops = row.cells[cells, 0], row.cells[cells, 1]
    boxes = boxes_of(starts, stops, before)
    kinds = np.full(len(cells), COLOURED if row.coloured else PLAIN)
    if row.seen is not None:
        kinds[~row.seen[cells]] = MASKED
    if row.present is not None:
        kinds[~row.present[cells]] = ABSENT
    fills, inks = [], []
    if row.coloured:
        colours = row.colours(cells, display)
        fills, inks = colours.tolist(), palettes.contrasting_colour(colours).tolist()
    grounds, lines = {PLAIN: now.hover, MASKED: now.unseen}, ink.faint(now.pane, LINE)
    fine_lines = lines if row.merged else ink.faint(now.pane, FINE_LINE)
    for at, (kind, box) in enumerate(zip(kinds.tolist(), boxes, strict=True)):
        if kind == ABSENT:
            ink.unseen(painter, box)
            continue
        coloured = kind == COLOURED
        painter.fillRect(box, QColor(*fills[at]) if coloured else grounds[kind])
        edge = QRectF(box.right() - 1, top, 1, height)
        painter.fillRect(edge, fine_lines if coloured else lines)
    if row.off and boxes:
        ink.switched_off(painter, boxes[0].united(boxes[-1]))
    font = theme.mono(1.0 if row.merged and height < HIGH_ROW else 1.2)
    size = min(font.pixelSize(), CHARACTER * height, ruler.width / CHARACTER)
    font.setPixelSize(max(theme.SMALLEST, int(size)))
    painter.setFont(font)
    metrics = QFontMetricsF(font)
    glyphs = row.texts.glyphs(*shown)
    firsts = np.array([glyph.first for glyph in glyphs], int)
    lasts = np.array([glyph.last for glyph in glyphs], int)
    places = np.searchsorted(stops, firsts, side="right").tolist()
    for glyph, at, box in zip(glyphs, places, boxes_of(firsts, lasts), strict=True):
        if at == len(cells) or starts[at] > glyph.first or kinds[at] == ABSENT:
            continue
        if glyph.space and row.merged:
            continue
        colour = now.secondary if kinds[at] == MASKED else now.text
        if kinds[at] == COLOURED:
            colour = QColor(*inks[at])
        painter.setPen(ink.faint(colour, 0.6) if glyph.space or glyph.special else colour)
        wide = metrics.horizontalAdvance(glyph.text)
        if wide <= box.width() + 1.5:
            painter.drawText(box, theme.CENTRE, glyph.text)
        else:
            ink.squeezed(painter, box, glyph.text, wide)


def paint_label(
    painter: QPainter, row: TextRow, band: QRectF, selected: bool, display: Display
) -> None:
    """The name and head left of a row, and the cell of its null group."""
    now = theme.current()
    bold = QFontMetricsF(theme.font(0.92, 600))
    name, at, end = row.name, NUMBER, LEFT - 4
    number = "" if row.head is None else str(row.head)
    if row.null:
        end -= NULL + 1
        at = min(NUMBER - 4, end - math.ceil(bold.horizontalAdvance(number)))
        box, ground, colour = null_box(band), now.hover, now.text
        if row.coloured:
            rgb = row.colours(np.array([0]), display)
            ground = QColor(*rgb[0].tolist())
            colour = QColor(*palettes.contrasting_colour(rgb)[0].tolist())
        painter.fillRect(box, ground)
        theme.write(painter, box, "∅", theme.font(0.85), colour, theme.CENTRE)
    off, room = tr("off"), at - 16 - 2
    if row.head is None:
        room = end - 4 - 16
    elif row.off:  # what is said of a head goes before the whole name of its level
        room -= LEVEL_GAP + math.ceil(QFontMetricsF(theme.font(0.92)).horizontalAdvance(off))
    name = bold.elidedText(name, Qt.TextElideMode.ElideRight, room)
    after = 16 + bold.horizontalAdvance(name) + LEVEL_GAP
    about = off if row.off else tr("head") if after < HEAD and row.head is not None else ""
    for x, text, weight, colour in (
        (16, name, 600, now.text),
        (max(HEAD, after) if name else 16, about, 400, now.secondary),
        (at, number, 600 if selected else 400, now.mark_text if selected else now.secondary),
    ):
        box = QRectF(x, band.top(), end - x, band.height())
        theme.write(painter, box, text, theme.font(0.92, weight), colour)


def null_box(band: QRectF) -> QRectF:
    """The cell of the null group of a row, right before the text."""
    return QRectF(LEFT - NULL - 3, band.top(), NULL - 1, band.height())


def overview_pixels(row: TextRow, display: Display, count: int) -> ink.Pixels:
    """(1, count): all weights of a row as pixels, the largest where several share one; transparent
    where nothing is seen."""
    scale = ink.ColourScale(row.signed, row.limits, display)
    values = atlas.fitted(row.weights[None], 1, count, row.signed)
    pixels = scale.painted(values, theme.current().dark)
    if row.seen is not None:
        pixels[~atlas.fitted(row.seen[None], 1, count, False).astype(bool)] = 0
    return pixels


class TextRows(QWidget):
    """Rows over one ruler, which the wheel and an overview scroll; says what the pointer chooses.

    underlines: units under the first row that are marked, with a style of line.
    """

    pointed = Signal(object)  # a unit, None when the pointer leaves
    queried = Signal(object)  # (first, last) units, last included
    keyed = Signal(int)  # a unit
    opened = Signal(object)  # the head of a row's label

    def __init__(self, name: str) -> None:
        super().__init__()
        self.rows: Sequence[TextRow] = ()
        self.display = Display()
        self.ruler = Ruler(np.zeros(1), WIDEST, 0)
        self.tops: list[Units] = []  # of each row, with its height
        self.overview = 0  # px of the overview above them
        self.selected: HeadId | None = None
        self.query: int | None = None
        self.underlines: Sequence[tuple[int, int, Qt.PenStyle]] = ()
        self._widths: Lengths = np.zeros(0)
        self._drag: tuple[int, int] | None = None
        self._sliding = False
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(name)

    def minimumSizeHint(self) -> QSize:
        return QSize(LEFT + RIGHT + 60, 40)

    def show_rows(
        self,
        rows: Sequence[TextRow],
        widths: Lengths,
        display: Display,
        *,
        query: int | None = None,
        stay: bool = False,
        reveal: bool = True,
    ) -> None:
        """Show rows over units of such widths.

        stay: remain where it is scrolled to, else start at the beginning. reveal: scroll to the
        query where it is out of sight.
        """
        self.rows, self._widths, self.display, self.query = rows, widths, display, query
        self._lay_out(self.ruler.offset if stay else 0.0, reveal)

    def _lay_out(self, offset: float, reveal: bool) -> None:
        room = max(20, self.width() - LEFT - RIGHT)
        self.ruler = Ruler.fitted(self._widths, room, offset)
        if reveal and self.query is not None and self.ruler.scrolls:
            self.ruler = self.ruler.around(min(self.query, len(self._widths) - 1))
        heights = [row.height for row in self.rows]
        self.overview = OVERVIEW if self.ruler.scrolls else 0
        self.tops = row_tops(heights, self.height() - TOP, self.overview)
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._lay_out(self.ruler.offset, reveal=True)

    # --- painting ---------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self.rows:
            return
        bands, shown = self.bands, self.ruler.shown()
        with QPainter(self) as painter:
            for row, band in zip(self.rows, bands, strict=True):
                selected = row.head is not None and row.head == self.selected
                paint_label(painter, row, band, selected, self.display)
            painter.setClipRect(QRectF(LEFT - 3, 0, self.ruler.room + 6, self.height()))
            for row, band in zip(self.rows, bands, strict=True):
                paint_row(painter, row, band, self.ruler, shown, self.display)
                if row.null:
                    self._paint_rest(painter, row, band)
            for first, last, style in self.underlines:
                box = self.box((max(first, shown[0]), min(last, shown[1])), bands[0])
                if box.width() > 0:
                    painter.setPen(QPen(theme.current().secondary, 2, style))
                    y = box.bottom() + 3
                    painter.drawLine(QPointF(box.left() + 1, y), QPointF(box.right() - 1, y))
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self._paint_choice(painter, bands)
            painter.setClipping(False)
            if self.overview:
                self._paint_overview(painter)
            if self.hasFocus():
                ink.focus_ring(painter, QRectF(self.rect()))

    @property
    def bands(self) -> list[QRectF]:
        """The top and height of each row, from where the text begins."""
        return [QRectF(LEFT, TOP + top, 0, high) for top, high in self.tops]

    def box(self, units: Units, band: QRectF) -> QRectF:
        """The box of some units in a row, on whole pixels; units below 0 are the null group."""
        if units[1] < 0:
            return null_box(band)
        left, right = (LEFT + round(self.ruler.x(unit)) for unit in units)
        return QRectF(left, band.top(), right - left, band.height())

    def _paint_rest(self, painter: QPainter, row: TextRow, band: QRectF) -> None:
        """Hatch what comes after the last segment, with a label where there is room."""
        units = max(0, int(row.cells[-1, 1])), len(self._widths)
        box = self.box(units, band)
        if not box.width():
            return
        ink.unseen(painter, box)
        painter.setFont(theme.font(0.85))
        if painter.fontMetrics().horizontalAdvance(tr(NO_SEGMENT)) + 8 <= box.width():
            painter.setPen(theme.current().secondary)
            painter.drawText(box, theme.CENTRE, tr(NO_SEGMENT))

    def _paint_choice(self, painter: QPainter, bands: Sequence[QRectF]) -> None:
        """The query in orange, its cells in rows of heads tied together; the key ringed."""
        now = theme.current()
        boxes = [
            None if row.chosen is None else self.box(row.chosen, band)
            for row, band in zip(self.rows, bands, strict=True)
        ]
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(now.mark)
        for row, upper, lower in zip(self.rows, boxes, boxes[1:], strict=False):
            if row.head is not None and upper is not None and lower is not None:
                corners = upper.bottomLeft(), upper.bottomRight(), lower.topRight(), lower.topLeft()
                painter.drawPolygon(QPolygonF([*corners]))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for row, band in zip(self.rows, bands, strict=True):
            if row.key is not None:
                ink.ring(painter, self.box(row.key, band))
        for row, box in zip(self.rows, boxes, strict=True):
            if box is None:
                continue
            # on red and blue the mark needs a ground of its own
            edges = ((now.pane, 5), (now.mark, 2)) if row.signed else ((now.mark, 2),)
            painter.setClipping(box.right() >= LEFT - 3)  # the null group is before it all
            for edge, width in edges:
                theme.draw_box(painter, box, 3, edge=edge, width=width)

    def _paint_overview(self, painter: QPainter) -> None:
        """Draw the overview: the first row with weights, the query, and a frame around the part on
        screen."""
        now, ruler = theme.current(), self.ruler
        box = self.overview_box
        painter.fillRect(box, now.unseen)
        row = next((row for row in self.rows if row.coloured), None)
        if row is not None and box.width() >= 1:
            pixels = overview_pixels(row, self.display, int(box.width()))
            painter.drawImage(box, ink.image(pixels))
        if self.query is not None:
            at = float(ruler.edges[min(self.query, len(self._widths))] / ruler.edges[-1])
            x = box.left() + at * box.width()
            painter.fillRect(QRectF(x - 1, box.top(), 3, box.height()), now.mark)
        left = box.left() + ruler.offset / ruler.length * box.width()
        wide = max(6.0, ruler.room / ruler.length * box.width())
        part = QRectF(left, box.top() - 1, wide, box.height() + 2)
        theme.draw_box(painter, part, 2, edge=now.text, width=1.5)

    @property
    def overview_box(self) -> QRectF:
        """The box of the overview above the rows; empty where the text does not scroll."""
        return QRectF(LEFT, TOP, self.ruler.room, self.overview)

    # --- pointer ----------------------------------------------------------------------------------

    def _row_at(self, y: float) -> int | None:
        rows = enumerate(self.tops)
        return next((row for row, (top, high) in rows if top <= y - TOP < top + high), None)

    def unit_at(self, place: QPointF) -> int | None:
        """The unit under a place: in a row of merged cells the newest of its cell."""
        number = self._row_at(place.y())
        unit = self.ruler.at(place.x() - LEFT)
        if number is None or unit is None:
            return None
        row = self.rows[number]
        cell = row.cell(unit)
        return None if cell is None else int(row.cells[cell, 1]) - 1

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose a query; with Alt the key; a label opens its head; the overview scrolls."""
        place = event.position()
        if event.button() != Qt.MouseButton.LeftButton:
            return
        self._sliding = self.overview_box.contains(place)
        number = self._row_at(place.y())
        if self._sliding:
            self._slide(place)
        elif place.x() < LEFT:
            if number is not None and self.rows[number].head is not None:
                self.opened.emit(self.rows[number].head)
        elif (unit := self.unit_at(place)) is not None:
            if event.modifiers() & Qt.KeyboardModifier.AltModifier:
                self.keyed.emit(unit)
            else:
                self._drag = unit, unit
                self.queried.emit(self._drag)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        unit = None if self._sliding else self.unit_at(event.position())
        if self._sliding:
            self._slide(event.position())
        elif self._drag is None:
            self.pointed.emit(unit)
        elif unit is not None and unit != self._drag[1]:
            self._drag = self._drag[0], unit
            self.queried.emit((min(self._drag), max(self._drag)))

    def _slide(self, place: QPointF) -> None:
        middle = (place.x() - LEFT) / max(1.0, self.ruler.room) * self.ruler.length
        self.ruler = self.ruler.moved(middle - self.ruler.room / 2)
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._sliding, self._drag = False, None

    def leaveEvent(self, event: QEvent) -> None:
        self.pointed.emit(None)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if not self.ruler.scrolls:
            event.ignore()
            return
        turn = event.angleDelta()  # whichever way it was turned more
        along = turn.x() if abs(turn.x()) > abs(turn.y()) else turn.y()
        self.ruler = self.ruler.moved(self.ruler.offset - along / NOTCH * 8 * self.ruler.width)
        self.update()
