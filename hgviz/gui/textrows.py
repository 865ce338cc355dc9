"""Texts as rows of cells coloured by weights."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QImage,
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
from hgviz.analysis.alignment import GridAxis, SharedGrid
from hgviz.core import (
    Capture,
    Display,
    Floats,
    HeadId,
    HeadSet,
    Integers,
    Prompt,
    Selection,
    Side,
    progress,
)
from hgviz.gui import grid, ink, sentences, theme
from hgviz.gui.grid import Bools, rule_of, seen
from hgviz.gui.language import tr
from hgviz.gui.widgets import turns_along
from hgviz.maps import Axis

# --- cells ----------------------------------------------------------------------------------------


NARROWEST, WIDEST = 9.5, 16.0  # logical px for one letter: below it the text scrolls
FIRST, OTHERS, LEAST, GAP = 36, 26, 15, 6  # heights of rows, px between them
SPECIAL = 6  # letters of a special token that are shown


@dataclass(frozen=True, slots=True)
class Glyph:
    """What is written over the cells of tokens first..last-1; a character may have several."""

    text: str
    first: int
    last: int
    space: bool = False
    special: bool = False
    leftwards: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class StripRow:
    """One row of the strip: what one head gives the cells of one level.

    spans (cells, 2): their tokens. weights (cells,) or None where no query is chosen; seen
    (cells,). chosen: the cell of the query. head None: the text alone. off: switched off.
    """

    level: str
    head: HeadId | None
    spans: Integers
    weights: Floats | None = None
    seen: NDArray[np.bool_] | None = None
    chosen: int | None = None
    key: int | None = None
    limits: tuple[float, float] = (0.0, 1.0)
    signed: bool = False
    off: bool = False

    @property
    def null(self) -> bool:
        """Whether its first cell stands for no token: the null group."""
        return len(self.spans) > 0 and bool(self.spans[0, 1] < 0)

    def cell(self, token: int) -> int | None:
        """The cell whose tokens include a token."""
        at = int(np.searchsorted(self.spans[:, 1], token, side="right"))
        return at if at < len(self.spans) and self.spans[at, 0] <= token else None


@dataclass(frozen=True, slots=True, eq=False)
class Ruler:
    """Where tokens lie across: edges (tokens + 1,) in letters, width px per letter, from left."""

    edges: Floats
    width: float
    room: float
    offset: float = 0.0

    @classmethod
    def fitted(cls, prompt: Prompt, room: float, offset: float = 0.0) -> Ruler:
        """All of a text in the room, or as much of it as stays readable."""
        sizes = widths(prompt)
        edges = np.concatenate([[0.0], np.cumsum(sizes)])
        width = room / max(1.0, float(edges[-1]))
        out = cls(edges, min(WIDEST, max(NARROWEST, width)), room)
        return out.moved(offset)

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

    def turned(self, turns: float) -> Ruler:
        """Scrolled by turns of the wheel, 8 letters each."""
        return self.moved(self.offset - turns * 8 * self.width)

    def centred(self, part: float) -> Ruler:
        """Scrolled to have in its middle a part of the text, from 0 to 1."""
        return self.moved(part * self.length - self.room / 2)

    def x(self, token: int) -> float:
        """The left edge of a token."""
        return float(self.edges[token]) * self.width - self.offset

    def token(self, x: float) -> int | None:
        """The token at a place."""
        if not 0 <= x < min(self.room, self.length - self.offset):
            return None
        at = int(np.searchsorted(self.edges, (x + self.offset) / self.width, side="right")) - 1
        return min(at, len(self.edges) - 2)

    def shown(self) -> tuple[int, int]:
        """The tokens on screen, half-open."""
        first = int(np.searchsorted(self.edges, self.offset / self.width, side="right")) - 1
        last = int(np.searchsorted(self.edges, (self.offset + self.room) / self.width))
        return max(0, first), min(last, len(self.edges) - 1)

    def around(self, token: int) -> Ruler:
        """Scrolled just as far as it takes to see a token and what is near it."""
        margin = min(6 * self.width, self.room / 4)
        left, right = self.x(token), self.x(token + 1)
        if left < margin:
            return self.moved(self.offset + left - margin)
        if right > self.room - margin:
            return self.moved(self.offset + right - self.room + margin)
        return self


@dataclass(frozen=True, slots=True)
class StripLayout:
    """Where the rows lie: (top, height) of each, the height of the overview above them, and
    (top, height) of the lane between."""

    tops: tuple[tuple[int, int], ...] = field(default=())
    overview: int = 0
    lane: tuple[int, int] = (0, 0)

    @classmethod
    def fitted(cls, count: int, room: int, scrolls: bool, lane: int = 0) -> StripLayout:
        """So many rows in a room; they shrink alike, the first stays the largest. lane: px."""
        overview = 8 if scrolls else 0
        gap = GAP if count <= 4 else 3
        left = room - lane - (overview + gap if overview else 0) - gap * max(0, count - 1)
        wanted = FIRST + OTHERS * (count - 1)
        scale = min(1.0, left / max(1, wanted))
        heights = [max(LEAST, int(scale * (OTHERS if n else FIRST))) for n in range(count)]
        top, tops = (overview + gap if overview else 0) + lane, []
        above = top - lane
        for height in heights:
            tops.append((top, height))
            top += height + gap
        return cls(tuple(tops), overview, (above, lane))

    def at(self, y: float) -> int | None:
        """The row at a height."""
        for number, (top, height) in enumerate(self.tops):
            if top <= y < top + height:
                return number
        return None


def widths(prompt: Prompt) -> NDArray[np.float64]:
    """(tokens,) letters of room for each token: 1, or what a piece of several needs."""
    sizes = np.where(prompt.spans[:, 0] >= 0, prompt.spans[:, 1] - prompt.spans[:, 0], 0)
    if not len(sizes) or sizes.max() <= 1:
        sizes = np.ones(len(prompt.spans))
    else:
        sizes = np.maximum(sizes, 1) + 1.0
    for at in np.flatnonzero(prompt.spans[:, 0] < 0):
        sizes[at] = min(SPECIAL, len(_special(prompt.pieces[at]))) + 1.0
    return sizes.astype(np.float64)


def glyphs(prompt: Prompt, first: int, last: int) -> list[Glyph]:
    """What is written over tokens first..last-1: a character of several bytes once."""
    out = []
    first = _back_to_start(prompt, first)
    at = first
    while at < last:
        end = at + 1
        start = prompt.spans[at, 0]
        if start < 0:
            name = sentences.shown(_special(prompt.pieces[at]), SPECIAL)
            out.append(Glyph(name, at, end, special=True))
            at = end
            continue
        while end < len(prompt.spans) and (prompt.spans[end] == prompt.spans[at]).all():
            end += 1
        label = prompt.words(at, end)
        turned = any(unicodedata.bidirectional(one) in ("R", "AL") for one in label)
        text = sentences.shown(label)
        out.append(Glyph(text, at, end, space=label == " ", leftwards=turned))
        at = end
    return out


def _special(piece: str) -> str:
    """The name of a special token; of slots and states, as their row is named, the number."""
    return piece.removeprefix("slot ").removeprefix("state ")


def _back_to_start(prompt: Prompt, token: int) -> int:
    """The first token of the character a token is a part of."""
    while (
        token > 0
        and prompt.spans[token, 0] >= 0
        and (prompt.spans[token] == prompt.spans[token - 1]).all()
    ):
        token -= 1
    return token


# --- passages -------------------------------------------------------------------------------------


MOST_ROWS = 1024  # queries that a mean is taken over

Tokens = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Passage:
    """One text with its rows. queries: the tokens chosen in it, the last included.

    asks, answers: whether the queries and the keys of the selected head are tokens of it.
    """

    prompt: Prompt
    lines: tuple[StripRow, ...]
    queries: Tokens | None = None
    asks: bool = True
    answers: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class StripOptions:
    """What to show: the selected head and tokens, the heads opened before, what is switched off.

    tokens: the query last chosen in each text by level, for rows of another text's head.
    """

    selection: Selection
    queries: Tokens | None
    opened: Mapping[int, HeadId]
    tokens: Mapping[int, int | None]
    display: Display
    off: HeadSet


@dataclass(frozen=True, slots=True)
class RowRequest:
    """A row to read: a level, the head shown there, its query, and whether it shows its keys."""

    level: int
    head: HeadId | None
    queries: Tokens | None
    keys: bool = True


def passages(capture: Capture, wish: StripOptions) -> tuple[Passage, ...]:
    """Read one row of weights for each row of the strip."""
    spec = capture.spec
    rows = list(_rows(capture, wish))
    lines = []
    for number, row in enumerate(rows):
        progress(number, len(rows), "Reading the text's weights")
        lines.append(_line(capture, row, wish))
    reached = [_reach(line.weights) for line in lines if line.weights is not None]
    most = max(reached, default=0.0)
    lines = [replace(line, limits=_limits(line, wish.display, most)) for line in lines]
    one = spec.layers[wish.selection.layer]
    asking, answering = (spec.levels[at].sequence for at in (one.level, one.key_level))
    found = []
    sides: list[Side] = list(dict.fromkeys(spec.levels[row.level].sequence for row in rows))
    for side in sides:
        mine = [n for n, row in enumerate(rows) if spec.levels[row.level].sequence == side]
        first = rows[mine[0]]
        queries = wish.queries if side == asking else None if first.keys else first.queries
        if side not in (asking, answering):
            queries = first.queries
        prompt = capture.prompt_of(first.level)
        told = tuple(lines[n] for n in mine)
        found.append(Passage(prompt, told, queries, side == asking, side == answering))
    return tuple(found)


def _rows(capture: Capture, wish: StripOptions) -> Iterator[RowRequest]:
    """Of one text a row for each level; of two texts, and of slots, a row for each of both."""
    spec, chosen = capture.spec, wish.selection
    layer = spec.layers[chosen.layer]
    if len({level.sequence for level in spec.levels}) == 1:
        for level in spec.levels:
            head = wish.opened.get(level.index)
            if head is not None and capture.maps[head.layer] is not None:
                yield RowRequest(level.index, head, wish.queries)
        return
    for level in spec.levels:
        if level.index == layer.key_level:
            yield RowRequest(level.index, chosen.head_id, wish.queries)
        elif level.index == layer.level and layer.role == "cross" and level.index in wish.opened:
            yield RowRequest(level.index, wish.opened[level.index], wish.queries)
        elif level.index == layer.level:  # its keys are slots
            yield RowRequest(level.index, None, wish.queries, keys=False)
        elif level.sequence == "source":
            yield RowRequest(level.index, _beside(capture, chosen), wish.queries)
        else:
            token = wish.tokens.get(level.index)
            queries = None if token is None else (token, token)
            yield RowRequest(level.index, wish.opened.get(level.index), queries, keys=False)


def _beside(capture: Capture, chosen: Selection) -> HeadId | None:
    """The head by which the selected decoder layer's block looks at the other text."""
    after = capture.spec.layers[chosen.layer + 1 :]
    crossing = next((one for one in after if one.role == "cross" and one.heads), None)
    if crossing is None:
        return None
    head = min(crossing.heads, key=lambda one: (abs(one - chosen.head), one))
    return HeadId(crossing.index, head)


def _line(capture: Capture, row: RowRequest, wish: StripOptions) -> StripRow:
    name = "" if len(capture.spec.levels) == 1 else sentences.level(capture.spec, row.level)
    head = row.head
    layer = None if head is None else capture.maps[head.layer]
    if head is None or layer is None:
        spans = capture.spans[row.level]
        chosen = None if row.queries is None else row.queries[1]
        return StripRow(name, None, spans, chosen=chosen)
    facts = capture.spec.layers[head.layer]
    real = capture.key_spans(head.layer)
    null = capture.null(facts.key_level)  # which is there before any token
    last = np.flatnonzero(real[:, 1] > 0).max(initial=0 if null else -1)
    count = 1 + int(last)  # padding stands at the end
    line = StripRow(
        name, head, real[:count], signed=grid.signed(capture, head), off=head in wish.off
    )
    if row.queries is None:
        return line
    first, last = (min(capture.row(head.layer, one), layer.shape[1] - 1) for one in row.queries)
    first = max(first, last + 1 - MOST_ROWS)
    weights = layer.read(head.head, rows=(first, last + 1)).mean(axis=0)[:count]
    cells = np.arange(count)
    inside = seen(
        rule_of(capture, head),
        np.array([[first, last + 1]]),
        np.stack([cells, cells + 1], axis=1),
    )[0]
    key = wish.selection.key if _same_keys(capture, head, wish.selection) else None
    column = None if key is None else capture.column(head.layer, key)
    alike = capture.spec.levels[facts.level].sequence == capture.spec.levels[row.level].sequence
    return replace(
        line,
        weights=weights,
        seen=inside,
        chosen=last if alike and last < count else None,
        key=column if column is not None and column < count else None,
    )


def _same_keys(capture: Capture, head: HeadId, chosen: Selection) -> bool:
    spec = capture.spec
    mine, its = (spec.levels[spec.layers[one].key_level] for one in (head.layer, chosen.layer))
    return mine.sequence == its.sequence


def _limits(line: StripRow, display: Display, most: float) -> tuple[float, float]:
    if display.limits is not None:
        return palettes.limits_of(*display.limits, line.signed)
    reach = most if display.shared or line.weights is None else _reach(line.weights)
    return palettes.limits_of(-reach, reach, line.signed)


def _reach(weights: Floats) -> float:
    return float(np.abs(weights).max(initial=0.0))


# --- segment ends ---------------------------------------------------------------------------------


LANE = 12  # px above the text, for the marks
HALF, HIGH = 4.0, 6.0  # px: of a mark
NONE_YET = "in no segment yet"


def segment_ends(capture: Capture) -> Integers | None:
    """The tokens that close a segment, in order; None where no level has segments of unequal
    length."""
    uneven = next((one.index for one in capture.spec.levels if one.stride is None), None)
    if uneven is None:
        return None
    ends = capture.spans[uneven][:, 1]
    return ends[ends > 0] - 1


class MarkPlace(NamedTuple):
    """Where marks are drawn. x: the right edge of a token; lane and row: top and height of the
    marks and of the text; foot: where their lines end; shown: the tokens on screen."""

    x: Callable[[int], float]
    lane: tuple[float, float]
    row: tuple[float, float]
    foot: float
    shown: tuple[int, int]


def draw_segment_ends(painter: QPainter, ends: Integers, where: MarkPlace) -> None:
    """A line and a mark at the end of every segment on screen."""
    now, (first, last) = theme.current(), where.shown
    top, bottom = where.row[0] - 1, where.lane[0] + where.lane[1] - 1
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for token in ends[(ends >= first - 1) & (ends < last)].tolist():
        x = where.x(token) - 0.5
        for pen in (QPen(now.pane, 4), QPen(now.text, 2)):
            pen.setCapStyle(Qt.PenCapStyle.FlatCap)
            painter.setPen(pen)
            painter.drawLine(QPointF(x, top), QPointF(x, where.foot))
        painter.setPen(QPen(now.text, 1.2))
        painter.setBrush(now.text)
        corners = (x - HALF, bottom - HIGH), (x + HALF, bottom - HIGH), (x, bottom)
        painter.drawPolygon(QPolygonF([QPointF(*one) for one in corners]))
    painter.restore()


def nobody(painter: QPainter, box: QRectF, ratio: float) -> None:
    """What comes after the last segment: hatched, and said where there is room."""
    now = theme.current()
    ink.unseen(painter, box, ratio)
    font = theme.font(0.85)
    painter.setFont(font)
    said = tr(NONE_YET)
    if painter.fontMetrics().horizontalAdvance(said) + 8 <= box.width():
        painter.setPen(now.secondary)
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, said)


# --- labels ---------------------------------------------------------------------------------------


LEFT = 122  # px: the text begins there
HEAD, NUMBER = 52, 87  # where "head" and its number begin
LEVEL_GAP = 4  # px between the level and what is said of its head
NULL = 13  # px: the room of the cell that stands for no token


def draw(
    painter: QPainter, line: StripRow, row: tuple[int, int], chosen: bool, null: Floats | None
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
        room = at - 16 - 2 - LEVEL_GAP - QFontMetricsF(theme.font(0.92)).horizontalAdvance(off)
        level = bold.elidedText(level, Qt.TextElideMode.ElideRight, math.floor(room))
    after = 16 + bold.horizontalAdvance(level) + LEVEL_GAP
    said = off if line.off else tr("head") if after < HEAD and line.head is not None else ""
    for x, text, weight, colour in (
        (16, level, 600, now.text),
        (max(HEAD, after) if level else 16, said, 400, now.secondary),
        (at, number, 600 if chosen else 400, now.mark_text if chosen else now.secondary),
    ):
        painter.setFont(theme.font(0.92, weight))
        painter.setPen(colour)
        box = QRectF(x, top, end - x, height)
        painter.drawText(box, theme.TO_LEFT, text)


def null_box(top: int, height: int) -> QRectF:
    """The cell of the null group of a row, right before the text."""
    return QRectF(LEFT - NULL - 3, top, NULL - 1, height)


def _null(painter: QPainter, box: QRectF, rgb: Floats | None) -> None:
    now = theme.current()
    painter.fillRect(box, now.hover if rgb is None else QColor(*rgb[0].tolist()))
    painter.setPen(
        now.text if rgb is None else QColor(*palettes.contrasting_colour(rgb)[0].tolist())
    )
    painter.setFont(theme.font(0.85))
    painter.drawText(box, Qt.AlignmentFlag.AlignCenter, "∅")


# --- ribbon ---------------------------------------------------------------------------------------


def draw_overview(
    painter: QPainter,
    rect: QRectF,
    ruler: Ruler,
    line: StripRow,
    display: Display,
    queries: tuple[int, int] | None,
) -> None:
    """The weights of a row, the largest where several share a pixel; the query in orange."""
    now = theme.current()
    painter.fillRect(rect, now.unseen)
    if line.weights is not None and not line.off and rect.width() >= 1:
        array = pixels(line, display, int(rect.width()), now.dark)
        image = QImage(array.data, len(array), 1, 4 * len(array), QImage.Format.Format_RGBA8888)
        painter.drawImage(rect, image)
    if queries is not None:
        part = float(ruler.edges[queries[1]] / ruler.edges[-1])
        left = rect.left() + part * rect.width()
        painter.fillRect(QRectF(left - 1, rect.top(), 3, rect.height()), now.mark)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(now.text, 1.5))
    left = rect.left() + ruler.offset / ruler.length * rect.width()
    wide = max(6.0, ruler.room / ruler.length * rect.width())
    painter.drawRoundedRect(QRectF(left, rect.top() - 1, wide, rect.height() + 2), 2, 2)


def pixels(line: StripRow, display: Display, count: int, dark: bool) -> NDArray[np.uint8]:
    """uint8 (count, 4): red, green, blue, and 0 where nothing is seen."""
    assert line.weights is not None
    bounds = np.arange(count) * len(line.weights) // count
    starts, which = np.unique(bounds, return_inverse=True)
    values = np.maximum.reduceat(line.weights, starts)
    if line.signed:
        low = np.minimum.reduceat(line.weights, starts)
        values = np.where(values >= -low, values, low)
    table = palettes.colours(palettes.matching_palette(display.palette, line.signed), dark)
    placed = palettes.palette_coordinates(values, line.limits, display.scale, line.signed)
    out = np.full((len(starts), 4), 255, np.uint8)
    out[:, :3] = palettes.paint(placed, table)
    if line.seen is not None:
        out[~np.maximum.reduceat(line.seen, starts)] = 0
    return np.ascontiguousarray(out[which])


# --- textrows -------------------------------------------------------------------------------------


RIGHT, TOP = 17, 6  # px: the padding of the pane
LETTER = 0.62  # the width of a monospaced letter, in parts of its size


class RulerWidget(QWidget):
    """Text in cells along a ruler, which the wheel and an overview scroll."""

    pointed = Signal(object)  # a token or cell, None when the pointer leaves

    def __init__(self) -> None:
        super().__init__()
        self.display = Display()
        self.ruler: Ruler | None = None
        self._sliding = False
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    @property
    def overview_box(self) -> QRectF:
        """Where all of a text that scrolls is seen small; empty where all of it is on screen."""
        raise NotImplementedError

    def _slide(self, place: QPointF) -> bool:
        """Scroll to a place of the overview, and go on with the pointer; False beside it."""
        self._sliding = self._sliding or self.overview_box.contains(place)
        if self._sliding and self.ruler is not None:
            self.ruler = self.ruler.centred((place.x() - LEFT) / max(1.0, self.ruler.room))
            self.update()
        return self._sliding

    def _box(self, first: int, last: int, band: QRectF) -> QRectF:
        """The cells of tokens first..last-1 in a row, on whole pixels."""
        assert self.ruler is not None
        left, right = LEFT + round(self.ruler.x(first)), LEFT + round(self.ruler.x(last))
        return QRectF(left, band.top(), right - left, band.height())

    def _paint_weights(
        self, weights: Floats, limits: tuple[float, float], signed: bool
    ) -> NDArray[np.uint8]:
        """uint8 (cells, 3): the colours of weights."""
        palette = palettes.matching_palette(self.display.palette, signed)
        table = palettes.colours(palette, theme.current().dark)
        placed = palettes.palette_coordinates(weights, limits, self.display.scale, signed)
        return palettes.paint(placed, table)

    def _draw_glyph(
        self, painter: QPainter, box: QRectF, glyph: Glyph, colour: QColor, marks: bool
    ) -> None:
        """Write into a cell. marks: whether text that runs leftwards is marked."""
        if glyph.special:
            ink.special(painter, box, glyph.text)
            return
        painter.setPen(ink.faint(colour, 0.6) if glyph.space else colour)
        wide = QFontMetricsF(painter.font()).horizontalAdvance(glyph.text)
        if wide <= box.width() + 1.5:
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, glyph.text)
        else:
            ink.squeezed(painter, box, glyph.text, wide)
        if glyph.leftwards and marks:
            ink.leftwards(painter, box)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._sliding = False

    def leaveEvent(self, event: QEvent) -> None:
        self.pointed.emit(None)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.ruler is None or not self.ruler.scrolls:
            event.ignore()
            return
        self.ruler = self.ruler.turned(turns_along(event))
        self.update()

    def _font(self, height: float, factor: float) -> QFont:
        """The font of a row so high, whose letters fit the ruler."""
        assert self.ruler is not None
        out = theme.mono(factor)
        most = min(height * 0.62, self.ruler.width / LETTER)
        out.setPixelSize(max(10, min(out.pixelSize(), int(most))))
        return out


class Strip(RulerWidget):
    """Shows lines over a prompt; says which tokens and heads the pointer chooses."""

    queried = Signal(object)  # (first, last) tokens, last included
    keyed = Signal(int)  # a token
    opened = Signal(object)  # the head of a row's label

    def __init__(self) -> None:
        super().__init__()
        self.prompt: Prompt | None = None
        self.lines: Sequence[StripRow] = ()
        self.selected: HeadId | None = None
        self.queries: Tokens | None = None
        self.written: int | None = None
        self.segment_ends: Integers | None = None
        self.rows = StripLayout()
        self._drag: Tokens | None = None
        self.setAccessibleName(tr("Text, one row for each resolution"))

    def minimumSizeHint(self) -> QSize:
        return QSize(LEFT + RIGHT + 60, 40)

    # --- what is shown ----------------------------------------------------------------------------

    def show_lines(
        self,
        prompt: Prompt,
        lines: Sequence[StripRow],
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
        self.rows = StripLayout.fitted(
            len(self.lines), self.height() - TOP, self.ruler.scrolls, lane
        )
        self.update()

    # --- painting ---------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.prompt is None or self.ruler is None:
            return
        with QPainter(self) as painter:
            painter.translate(0, TOP)
            for line, (top, height) in zip(self.lines, self.rows.tops, strict=False):
                rgb = self._colours(line, np.array([0])) if line.null else None
                draw(painter, line, (top, height), line.head == self.selected, rgb)
            painter.setClipRect(QRectF(LEFT - 3, -TOP, self.ruler.room + 6, self.height()))
            first, last = self.ruler.shown()
            written = glyphs(self.prompt, first, last)
            for number, (line, (top, height)) in enumerate(
                zip(self.lines, self.rows.tops, strict=False)
            ):
                self._row(painter, line, QRectF(0, top, 0, height), written, number == 0)
            if self.segment_ends is not None and self.lines:
                draw_segment_ends(painter, self.segment_ends, self._where((first, last)))
            self._chosen(painter)
            painter.setClipping(False)
            if self.lines and not self.overview_box.isEmpty():
                rect = self.overview_box.translated(0, -TOP)
                draw_overview(painter, rect, self.ruler, self.lines[0], self.display, self.queries)
            if self.hasFocus():
                ink.focus_ring(painter, QRectF(0, -TOP, self.width(), self.height()))

    def _row(
        self, painter: QPainter, line: StripRow, band: QRectF, written: list[Glyph], first: bool
    ) -> None:
        assert self.ruler is not None
        start, end = self.ruler.shown()
        cells = np.flatnonzero((line.spans[:, 1] > start) & (line.spans[:, 0] < end))
        rgb = self._colours(line, cells)
        inks = palettes.contrasting_colour(rgb) if rgb is not None else None
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
            nobody(painter, tail, ratio)
        if first:
            self._second_text(painter, band, start, end)
            self._written(painter, band, start, end)
        if line.off and len(cells):
            span = self._box(int(line.spans[cells[0], 0]), int(line.spans[cells[-1], 1]), band)
            ink.switched_off(painter, span, ratio)
        self._letters(painter, band, written, of, inks, within, first)

    def _where(self, shown: tuple[int, int]) -> MarkPlace:
        (top, height), foot = self.rows.tops[0], self.rows.tops[min(1, len(self.rows.tops) - 1)][0]

        def edge(token: int) -> float:
            assert self.ruler is not None
            return LEFT + round(self.ruler.x(token + 1))

        return MarkPlace(edge, self.rows.lane, (top, height), max(foot, top + height), shown)

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
        painter.setFont(self._font(band.height(), 1.2 if first else 1.0))
        for one in written:
            at = int(of[one.first])
            if at < 0 or (one.space and not first):
                continue
            seen = within is None or bool(within[at])
            colour = now.secondary if not seen else now.text
            if inks is not None and seen:
                colour = QColor(*inks[at].tolist())
            self._draw_glyph(painter, self._box(one.first, one.last, band), one, colour, first)

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
            return null_box(top, height)
        return self._box(a, max(a + 1, b), QRectF(0, top, 0, height))

    def _colours(self, line: StripRow, cells: np.ndarray) -> np.ndarray | None:
        """uint8 (cells, 3): the colours of some cells; None where there is nothing to colour."""
        if line.weights is None or line.off:
            return None
        return self._paint_weights(line.weights[cells], line.limits, line.signed)

    @property
    def overview_box(self) -> QRectF:
        """Above the rows."""
        wide = 0.0 if self.ruler is None else self.ruler.room
        return QRectF(LEFT, TOP, wide, self.rows.overview)

    # --- pointer ----------------------------------------------------------------------------------

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
        if self._slide(place):
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
        if self._sliding:
            self._slide(event.position())
            return
        token = self.token_at(event.position())
        if self._drag is None:
            self.pointed.emit(token)
        elif token is not None and token != self._drag[1]:
            self._drag = (self._drag[0], token)
            self.queried.emit((min(self._drag), max(self._drag)))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        self._drag = None

    # --- size -------------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._lay_out()
        self.show_queries(self.queries)


# --- paired rows ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class SideRow:
    """The row of one side: weights (cells,), 0 where the head is off, and which cells it could look
    at; seen is False where the side has nothing, which there (cells,) tells apart from what it may
    not see."""

    weights: Floats
    seen: Bools
    there: Bools
    signed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class PairedRow:
    """A row of the grid of two heads. row, query, key: cells, None where there are none; a, b:
    None where no query is chosen, or where that side has no such row."""

    grid: SharedGrid
    names: tuple[CellTexts, CellTexts]
    row: int | None = None
    query: int | None = None
    key: int | None = None
    a: SideRow | None = None
    b: SideRow | None = None

    @property
    def difference(self) -> Floats | None:
        """A − B where both have a row, in float32 as the map of it has."""
        if self.a is None or self.b is None:
            return None
        found: Floats = self.a.weights - self.b.weights
        return found

    @property
    def signed(self) -> bool:
        """Whether any side may weigh below 0."""
        return any(one is not None and one.signed for one in (self.a, self.b))

    @property
    def both(self) -> Bools:
        """(cells,): what both sides have and could look at."""
        found: Bools = self.grid.columns.in_both
        for one in (self.a, self.b):
            if one is not None:
                found = found & one.seen
        return found

    @property
    def reach(self) -> float:
        """The largest size of a weight, on either side."""
        found = [np.abs(one.weights).max(initial=0) for one in (self.a, self.b) if one is not None]
        return float(max(found, default=0.0))


def named(grid: SharedGrid) -> tuple[CellTexts, CellTexts]:
    """What is written in the cells along the columns, for A and for B."""
    prompts = (
        grid.a.key_prompt(grid.head_a.layer),
        grid.b.key_prompt(grid.head_b.layer),
    )
    first, second = (CellTexts.of(grid.columns, side, one) for side, one in enumerate(prompts))
    return first, second


def read(
    grid: SharedGrid,
    query: int | None,
    key: int | None,
    names: tuple[CellTexts, CellTexts] | None = None,
) -> PairedRow:
    """The row of a token of A in both maps; reads the rows that stand in it. names: those of the
    grid, where they are known."""
    names = names or named(grid)
    row, column = grid.cell(query, key)
    one = grid.a.spec.layers[grid.head_a.layer]
    levels = grid.a.spec.levels
    alike = levels[one.level].sequence == levels[one.key_level].sequence
    mine = grid.cell(None, query)[1] if alike else None
    blank = PairedRow(grid, names, row, mine, column)
    if row is None:
        return blank
    sides = (
        (grid.a, grid.head_a, grid.rows.a, grid.columns.a),
        (grid.b, grid.head_b, grid.rows.b, grid.columns.b),
    )
    halves = [_half(capture, head, rows, columns, row) for capture, head, rows, columns in sides]
    return PairedRow(grid, names, row, mine, column, *halves)


def _half(capture: Capture, head: HeadId, rows: Axis, columns: Axis, row: int) -> SideRow | None:
    if not rows.there[row]:
        return None
    whole = capture.maps[head.layer]
    assert whole is not None  # SharedGrid takes no other
    positions = rows.positions[rows.offsets[row] : rows.offsets[row + 1]]
    ends = np.array([[int(positions[0]), int(positions[-1]) + 1]])
    block = whole.read(head.head, (int(ends[0, 0]), int(ends[0, 1])))[positions - positions[0]]
    weights = laid(0 * block if head in capture.off else block, columns)
    every = np.arange(whole.shape[2])
    inside = seen(rule_of(capture, head), ends, np.stack([every, every + 1], 1))[0]
    there, some = columns.there, np.zeros(len(columns), bool)
    if there.any():
        some[there] = np.logical_or.reduceat(inside[columns.positions], columns.offsets[:-1][there])
    return SideRow(weights, some & there, there, grid.signed(capture, head))


def laid(block: Floats, columns: Axis) -> Floats:
    """float32 (cells,): some rows (rows, keys) of a map laid on the cells of a grid, columns added
    or shared out, rows averaged, exactly as hgviz.maps.Projected does for a whole map."""
    found = np.zeros((len(block), len(columns)), np.float32)
    some = columns.there
    if some.any():
        shared = block[:, columns.positions] * columns.shares
        found[:, some] = np.add.reduceat(shared, columns.offsets[:-1][some], axis=1)
    total = np.add.reduceat(found, [0], axis=0)[0] if len(found) > 1 else found[0]
    weights: Floats = total / np.float32(len(found))
    return weights


@dataclass(frozen=True, eq=False)
class CellTexts:
    """What is written in the cells along a grid for one side: spans (cells, 2) of its tokens."""

    prompt: Prompt
    spans: NDArray[np.int64]
    there: Bools

    @classmethod
    def of(cls, edge: GridAxis, side: int, prompt: Prompt) -> CellTexts:
        """Of A (0) or of B (1)."""
        spans = edge.spans[side]
        there = (edge.a, edge.b)[side].there & (spans[:, 1] > np.maximum(spans[:, 0], 0))
        return cls(prompt, spans, there)

    @cached_property
    def widths(self) -> Floats:
        """(cells,): letters of room for each, as in hgviz.gui.textrows; 0 for none."""
        found = np.zeros(len(self.spans), np.float32)
        some = np.flatnonzero(self.there)
        first, last = self.spans[some, 0], self.spans[some, 1] - 1
        starts, ends = self.prompt.spans[first, 0], self.prompt.spans[last, 1]
        plain = (starts >= 0) & (ends >= 0)
        sizes = np.where(plain, np.maximum(ends - starts, 1), 1).astype(np.float32)
        if self.prompt.unit != "letter":
            sizes += 1
        for at in np.flatnonzero(~plain):
            sizes[at] = min(SPECIAL, len(self._special(int(first[at]), int(last[at]) + 1))) + 1
        found[some] = sizes
        return found

    @cached_property
    def words(self) -> NDArray[np.int64]:
        """The tokens of every word, as hgviz.gui.sentences has them."""
        return sentences.word_spans(self.prompt)

    def prepare(self) -> None:
        """Find now what takes its time with long texts."""
        _ = self.widths, self.words

    def glyphs(self, first: int, last: int) -> list[Glyph]:
        """What is written over cells first..last-1, what is no character of the text as special."""
        out, at = [], first
        while at > 0 and self._joined(at - 1):
            at -= 1
        while at < last:
            end = at + 1
            while end < len(self.spans) and self._joined(end - 1):
                end += 1
            if self.there[at]:
                out.append(self._glyph(at, end))
            at = end
        return out

    def text(self, cell: int) -> str:
        """What stands for a cell."""
        start, stop = (int(one) for one in self.spans[cell])
        return sentences.glyph(self.prompt, start, stop) if self.there[cell] else "∅"

    def _glyph(self, at: int, end: int) -> Glyph:
        start, stop = int(self.spans[at, 0]), int(self.spans[end - 1, 1])
        if self.prompt.spans[start, 0] < 0:
            return Glyph(self._special(start, stop), at, end, special=True)
        label = self.prompt.label(start) if stop - start == 1 else self.prompt.words(start, stop)
        turned = any(unicodedata.bidirectional(one) in ("R", "AL") for one in label)
        return Glyph(sentences.shown(label), at, end, space=label == " ", leftwards=turned)

    def _special(self, start: int, stop: int) -> str:
        name = self.prompt.pieces[start] if stop - start == 1 else sentences.glyph(
            self.prompt, start, stop
        )  # fmt: skip
        name = name.removeprefix("slot ").removeprefix("state ")
        return sentences.shown(name, SPECIAL)

    def _joined(self, at: int) -> bool:
        """Whether a cell and the next are parts of one character, as the bytes of an emoji."""
        if not (0 <= at < len(self.spans) - 1 and self.there[at] and self.there[at + 1]):
            return False
        (a, b), (c, d) = self.spans[at].tolist(), self.spans[at + 1].tolist()
        one, other = self.prompt.spans[a], self.prompt.spans[c]
        return bool(b - a == d - c == 1 and one[0] >= 0 and (one == other).all())


# --- rows -----------------------------------------------------------------------------------------


ROWS_TOP, ROWS_GAP, HIGHEST, LOWEST = 4, 6, 32, 16  # px: above the rows, between them, of a row
OVERVIEW = 8  # px of the overview of a long text


@dataclass(frozen=True, slots=True, eq=False)
class TextRow:
    """One row: its name, what is written in it, what is weighed; weights None: nothing is shown.

    told: what is said in the place of weights that are not there.
    """

    name: str
    names: CellTexts
    there: Bools
    weights: Floats | None = None
    seen: Bools | None = None
    signed: bool = False
    told: str = ""


class TextRows(RulerWidget):
    """Rows over one grid; says which cells the pointer chooses."""

    queried = Signal(int)
    keyed = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.rows: Sequence[TextRow] = ()
        self.pair: PairedRow | None = None
        self.limit = 1.0
        self._grid: object = None
        self.setAccessibleName(tr("Text with the weights of A, of B, and their difference"))

    def sizeHint(self) -> QSize:
        return QSize(600, ROWS_TOP + 3 * (HIGHEST + ROWS_GAP))

    def minimumSizeHint(self) -> QSize:
        return QSize(LEFT + RIGHT + 60, ROWS_TOP + 3 * (LOWEST + 3))

    def show_rows(
        self, pair: PairedRow, rows: Sequence[TextRow], display: Display, limit: float, follow: bool
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
        self._grid = self.pair.grid

    @property
    def bands(self) -> list[QRectF]:
        """Where the rows lie, without their left and right ends."""
        over = OVERVIEW + 4 if self.ruler is not None and self.ruler.scrolls else 0
        count = max(1, len(self.rows))
        gap = ROWS_GAP if self.height() >= ROWS_TOP + over + count * (24 + ROWS_GAP) else 3
        room = (self.height() - ROWS_TOP - over - gap * (count - 1)) / count
        high = int(max(LOWEST, min(HIGHEST, room)))
        return [QRectF(0, ROWS_TOP + over + at * (high + gap), 0, high) for at in range(count)]

    # --- painting ---------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
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
            if not self.overview_box.isEmpty():
                self._overview(painter)
            if self.hasFocus():
                ink.focus_ring(painter, QRectF(self.rect()))

    def _name(self, painter: QPainter, row: TextRow, band: QRectF) -> None:
        now, font = theme.current(), theme.font(0.92, 600)
        painter.setFont(font)
        painter.setPen(now.text)
        room = LEFT - 16 - 8
        said = QFontMetricsF(font).elidedText(row.name, Qt.TextElideMode.ElideRight, room)
        box = QRectF(16, band.top(), room, band.height())
        painter.drawText(box, theme.TO_LEFT, said)

    def _row(self, painter: QPainter, row: TextRow, band: QRectF, first: int, last: int) -> None:
        now, ratio = theme.current(), self.devicePixelRatioF()
        span = self._box(first, last, band)
        if row.told:
            ink.unseen(painter, span, ratio)
            painter.setFont(theme.font(0.92))
            painter.setPen(now.secondary)
            painter.drawText(span.adjusted(10, 0, 0, 0), theme.TO_LEFT, row.told)
            return
        colours = self._colours(row, first, last)
        inks = palettes.contrasting_colour(colours) if colours is not None else None
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
        row: TextRow,
        band: QRectF,
        glyphs: list[Glyph],
        inks: np.ndarray | None,
        first: int,
    ) -> None:
        now = theme.current()
        painter.setFont(self._font(band.height(), 1.15))
        for one in glyphs:
            if not row.there[one.first]:
                continue
            seen = row.seen is None or bool(row.seen[one.first])
            colour = now.text if seen else now.secondary
            at = max(0, one.first - first)
            if inks is not None and seen and at < len(inks):
                colour = QColor(*inks[at].tolist())
            self._draw_glyph(painter, self._box(one.first, one.last, band), one, colour, True)

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
        line = StripRow(
            "", None, spans, weights, row.seen if row is not None else None,
            limits=self._limits(row) if row is not None else (0.0, 1.0),
            signed=row is not None and row.signed,
        )  # fmt: skip
        queries = None if self.pair.query is None else (self.pair.query, self.pair.query)
        draw_overview(painter, self.overview_box, self.ruler, line, self.display, queries)

    def _limits(self, row: TextRow) -> tuple[float, float]:
        return palettes.limits_of(-self.limit if row.signed else 0.0, self.limit, row.signed)

    def _colours(self, row: TextRow, first: int, last: int) -> np.ndarray | None:
        """uint8 (cells, 3) of cells first..last-1; None where there is nothing to colour."""
        if row.weights is None:
            return None
        return self._paint_weights(row.weights[first:last], self._limits(row), row.signed)

    @property
    def overview_box(self) -> QRectF:
        """Above the rows."""
        there = self.ruler is not None and self.ruler.scrolls
        return QRectF(LEFT, ROWS_TOP, self.ruler.room if there and self.ruler else 0, OVERVIEW)

    # --- pointer ----------------------------------------------------------------------------------

    def cell_at(self, place: QPointF) -> int | None:
        """The cell under a place."""
        if self.ruler is None or not any(
            band.top() <= place.y() < band.bottom() for band in self.bands
        ):
            return None
        return self.ruler.token(place.x() - LEFT)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose a query; with Alt the key; the overview scrolls."""
        if event.button() != Qt.MouseButton.LeftButton or self.ruler is None:
            return
        if self._slide(event.position()):
            return
        cell = self.cell_at(event.position())
        if cell is not None:
            key = event.modifiers() & Qt.KeyboardModifier.AltModifier
            (self.keyed if key else self.queried).emit(cell)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._sliding:
            self._slide(event.position())
        else:
            self.pointed.emit(self.cell_at(event.position()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._lay_out()
        self.update()


def _alike(one: PairedRow, other: PairedRow) -> bool:
    """Whether two rows are of grids with the same cells."""
    a, b = one.grid.columns, other.grid.columns
    same = one.names[0].prompt is other.names[0].prompt and len(a) == len(b)
    return same and bool(np.array_equal(a.spans[0], b.spans[0]))
