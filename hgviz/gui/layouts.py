"""Where everything in the hourglass picture stands: from a model and a room to a layout."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from hgviz.core import Layer, ModelSpec
from hgviz.gui.views import words
from hgviz.gui.views.silhouette import (
    FLAT,
    FUNNEL,
    LARGEST,
    PAD,
    READABLE,
    Band,
    Label,
    Layout,
    Rect,
    Residual,
    Room,
    Row,
    Visit,
    visits,
)

BOX = 3  # above and below the rows of an inner level
STRIP = 14  # a row of windowed resampling
LANE = 22  # from the silhouette to the line of its residual path
SMALLEST = 12  # a thumbnail
SHRINK = 0.7  # the size of a thumbnail from level to level
FUNNEL_MOST = 44  # a funnel may grow to this where there is room
SLIM = 0.4  # a map between two texts is at least so wide and high, in parts of a thumbnail
DRIFT = 40  # as far as the name of a level may stand from the middle of its rows


def arrange(spec: ModelSpec, lengths: Sequence[int], room: Room) -> Layout:
    """The picture of a model whose levels have these many positions.

    The thumbnails are as large as the width allows; where that would be too high they give way
    down to READABLE, and beyond that the picture scrolls.
    """
    stays = visits(spec)
    columns = 1 + max((h for one in spec.layers for h in one.heads), default=0)
    free = room.width - room.label - room.right - 2 * PAD

    def plan(size: int, funnel: int) -> _Plan:
        return _Plan(spec, stays, lengths, columns, size, funnel)

    widest = max(SMALLEST, min(LARGEST, _size_for(free, columns)))
    sizes = range(int(min(widest, READABLE)), int(widest) + 1)
    fitting = bisect_right(sizes, _free(room), key=lambda one: plan(one, FUNNEL).height)
    size = sizes[max(0, fitting - 1)]
    crossings = max(1, sum(a.level != b.level for a, b in zip(stays, stays[1:], strict=False)))
    slack = _free(room) - plan(size, FUNNEL).height
    funnel = min(FUNNEL_MOST, FUNNEL + max(0, int(slack / crossings)))
    return plan(size, funnel).layout(room)


def gap(size: float) -> int:
    """The gap between two thumbnails."""
    return 4 if size >= 28 else 2 if size > SMALLEST else 1


def _free(room: Room) -> float:
    return room.height - room.title - room.bottom


def _size_for(free: float, columns: int) -> float:
    return (free + 4) / columns - 4 if (free + 4) / columns >= 32 else free / columns - 2


class _Plan:
    """One attempt at the picture, for one size of thumbnails; x from its centre, y from 0."""

    def __init__(
        self,
        spec: ModelSpec,
        stays: Sequence[Visit],
        lengths: Sequence[int],
        columns: int,
        size: int,
        funnel: int,
    ) -> None:
        self.spec, self.stays, self.lengths = spec, stays, lengths
        self.columns, self.size, self.funnel = columns, size, funnel
        self.rows: list[Row] = []
        self.bands: list[Band] = []
        self.gaps: list[tuple[int, int, float, float]] = []
        self.height = self._place()

    def thumb(self, level: int) -> int:
        """The size of a thumbnail at a level; depth, not index, makes it small."""
        return max(min(SMALLEST, self.size), round(self.size * SHRINK ** self._depth(level)))

    def _depth(self, level: int) -> int:
        found = sorted({words.coarseness(one) for one in self.spec.levels})
        return found.index(words.coarseness(self.spec.levels[level]))

    def width(self, level: int) -> int:
        """All columns of a level, without the silhouette's margin."""
        one = self.thumb(level)
        return self.columns * (one + gap(one)) - gap(one)

    def _place(self) -> float:
        y, seen = 0.0, set[int]()
        last = len(self.stays) - 1
        for number, stay in enumerate(self.stays):
            before = self.stays[number - 1].level if number else None
            inward = before is not None and self._depth(stay.level) > self._depth(before)
            if before is not None and before != stay.level:
                y = self._cross(stay, before, inward, y)
            top = y
            y += PAD if number == 0 else BOX
            y = self._self_rows(stay, y)
            y += PAD if number == last else BOX
            half = self.width(stay.level) / 2 + PAD
            box = Rect(-half, top, 2 * half, y - top)
            self.bands.append(Band(stay.level, box, stay.level not in seen))
            seen.add(stay.level)
        return y

    def _self_rows(self, stay: Visit, y: float) -> float:
        if not stay.rows:
            return y + self.thumb(stay.level) / 2
        one = self.thumb(stay.level)
        for layer in stay.rows:
            kind, width, height = self._shape(layer, one)
            cells = self._cells(layer, y, width, height)
            self.rows.append(Row(layer.index, kind, y, height, cells))
            y += height + gap(one)
        return y - gap(one)

    def _shape(self, layer: Layer, one: int) -> tuple[str, float, float]:
        """Kind, width and height of a cell: maps between two sequences keep their proportion."""
        if layer.level == layer.key_level or one <= FLAT:
            return "square", one, one
        queries, keys = self.lengths[layer.level], self.lengths[layer.key_level]
        longest = max(queries, keys, 1)
        least = max(1.0, round(one * SLIM))
        return (
            "full",
            max(least, round(one * keys / longest)),
            max(least, round(one * queries / longest)),
        )

    def _apart(self, one: int, other: int) -> bool:
        """Whether two levels are of two texts, between which no positions meet."""
        levels = self.spec.levels
        return levels[one].sequence != levels[other].sequence

    def _cross(self, stay: Visit, before: int, inward: bool, y: float) -> float:
        """The funnel between two visits, with the row of resampling on its narrow side."""
        if self._apart(stay.level, before):
            return y + PAD
        inner = stay.level if inward else before
        rows = [] if stay.entry is None else [stay.entry]
        if inward:
            self.gaps.append((before, inner, y, y + self.funnel))
            y += self.funnel
        for layer in rows:
            y += 2
            kind, width, height = self._resampling(layer, inner)
            cells = self._cells(layer, y, width, height, inner)
            self.rows.append(Row(layer.index, kind, y, height, cells))
            y += height + 2
        if not inward:
            self.gaps.append((stay.level, inner, y, y + self.funnel))
            y += self.funnel
        return y

    def _resampling(self, layer: Layer, inner: int) -> tuple[str, float, float]:
        """Kind, width and height of a cell: the larger side of a full map fits the column."""
        one = self.thumb(inner)
        if layer.window is not None:
            return "strip", one, STRIP if self.size >= FLAT else max(6, one // 2)
        queries, keys = self.lengths[layer.level], self.lengths[layer.key_level]
        longest = max(queries, keys, 1)
        least = 6 if one < STRIP else 8
        return (
            "full",
            max(least, round(one * keys / longest)),
            max(least, round(one * queries / longest)),
        )

    def _cells(
        self, layer: Layer, y: float, width: float, height: float, level: int | None = None
    ) -> tuple[tuple[int, Rect], ...]:
        level = layer.level if level is None else level
        pitch = self.thumb(level) + gap(self.thumb(level))
        start = -(self.width(level) // 2) + (self.thumb(level) - width) // 2
        return tuple((head, Rect(start + head * pitch, y, width, height)) for head in layer.heads)

    def _outline(self) -> list[tuple[float, float]]:
        """The right side going down, then the left side going up."""
        right: list[tuple[float, float]] = []
        for band in self.bands:
            right += [(band.box.right, band.box.y), (band.box.right, band.box.bottom)]
        return right + [(-x, y) for x, y in reversed(right)]

    def _lines(self) -> list[tuple[float, float, float, float]]:
        """From the places of an outer column to the middle of the inner one they meet in."""
        out = []
        for outer, inner, top, bottom in self.gaps:
            y_outer, y_inner = (top, bottom) if self._goes_in(outer, top) else (bottom, top)
            inset = 2 if y_outer < y_inner else -2
            meet = self._meeting(outer, inner)
            for column in range(self.columns):
                end = self._middle(inner, column)
                for place in range(meet):
                    part = ((place + 0.5) / meet - 0.5) * self.thumb(outer)
                    start = self._middle(outer, column) + part
                    out.append((start, y_outer + inset, end, y_inner - inset))
        return out

    def _goes_in(self, outer: int, top: float) -> bool:
        above = max((one for one in self.bands if one.box.y < top), key=lambda one: one.box.y)
        return above.level == outer

    def _meeting(self, outer: int, inner: int) -> int:
        a, b = self.spec.levels[outer].stride, self.spec.levels[inner].stride
        return min(4, max(2, b // a)) if a and b else 2

    def _middle(self, level: int, column: int) -> float:
        one = self.thumb(level)
        return -(self.width(level) // 2) + column * (one + gap(one)) + one / 2

    def _residuals(self) -> list[Residual]:
        """From the end of each stay to the next stay at the same level, past the inner ones.

        Of two texts: from the encoder to every layer that looks at what it read.
        """
        out = []
        read = next((b for b in self.bands if self.spec.levels[b.level].sequence == "source"), None)
        for row in self.rows if read is not None else ():
            if self.spec.layers[row.layer].role == "cross" and read is not None:
                top, edge = read.box.bottom - PAD, max(b.box.right for b in self.bands)
                middle = row.top + row.height / 2
                out.append(Residual(read.level, edge, edge + LANE, top, middle))
        for number, band in enumerate(self.bands):
            later = range(number + 1, len(self.bands))
            back = next((n for n in later if self.bands[n].level == band.level), None)
            inside = self.bands[number + 1 : back] if back is not None else []
            if not inside or any(self._depth(b.level) < self._depth(band.level) for b in inside):
                continue
            below, edge = self.bands[back or 0].box, band.box.right
            top, bottom = band.box.bottom - PAD, below.y + PAD
            out.append(Residual(band.level, edge, edge + LANE, top, bottom))
        return out

    def layout(self, room: Room) -> Layout:
        """The finished picture, moved to where it stands in the room."""
        widest = max((band.box.width for band in self.bands), default=2.0 * PAD)
        width = max(room.width, room.label + widest + room.right)
        middle = round(room.label + (width - room.label - room.right) / 2)
        flat = all(one.stride == 1 for one in self.spec.levels)
        spare = _free(room) - self.height
        down = room.title + (max(0, round(spare / 2)) if flat else 0)
        height = max(room.height, down + self.height + room.bottom)
        move = _Move(middle, down)
        outer = max(self.bands, key=lambda one: one.box.width).level if self.bands else 0
        return Layout(
            width,
            height,
            self.size,
            tuple((n, self._middle(outer, n) + middle) for n in range(self.columns)),
            tuple(move.row(one) for one in self.rows),
            tuple(replace(one, box=move.rect(one.box)) for one in self.bands),
            tuple((x + middle, y + down) for x, y in self._outline()),
            tuple((a + middle, b + down, c + middle, d + down) for a, b, c, d in self._lines()),
            tuple(move.residual(one) for one in self._residuals()),
            _labels([replace(b, box=move.rect(b.box)) for b in self.bands], room, height),
            down,
            down + self.height,
        )


class _Move(NamedTuple):
    x: float
    y: float

    def rect(self, one: Rect) -> Rect:
        return one._replace(x=one.x + self.x, y=one.y + self.y)

    def row(self, one: Row) -> Row:
        cells = tuple((head, self.rect(cell)) for head, cell in one.cells)
        return replace(one, top=one.top + self.y, cells=cells)

    def residual(self, one: Residual) -> Residual:
        x, y = self
        return Residual(one.level, one.edge + x, one.lane + x, one.top + y, one.bottom + y)


def _labels(bands: Sequence[Band], room: Room, height: float) -> tuple[Label, ...]:
    """The level names beside their rows, pushed apart; short ones where full ones do not fit."""
    floor, ceiling = room.title + 2, height - room.bottom - room.short_label
    sizes = [room.full_label if b.first and room.details else room.short_label for b in bands]
    tops = _apart(bands, sizes, floor, ceiling)
    if any(abs(top - _beside(b, n)) > DRIFT for b, n, top in zip(bands, sizes, tops, strict=True)):
        sizes = [room.short_label for _ in bands]
        tops = _apart(bands, sizes, floor, ceiling)
    return tuple(
        Label(band.level, top, size, size > room.short_label, band.box.y, band.box.bottom)
        for band, top, size in zip(bands, tops, sizes, strict=True)
    )


def _apart(
    bands: Sequence[Band], sizes: Sequence[float], floor: float, ceiling: float
) -> list[float]:
    """Tops beside the rows, pushed down and then up until none overlap."""
    tops = [_beside(band, size) for band, size in zip(bands, sizes, strict=True)]
    at = floor
    for number, size in enumerate(sizes):
        tops[number] = at = max(tops[number], at)
        at += size + 6
    at = ceiling
    for number in reversed(range(len(sizes))):
        tops[number] = min(tops[number], at - sizes[number])
        at = tops[number] - 6
    return tops


def _beside(band: Band, size: float) -> float:
    return band.box.y + (band.box.height - size) / 2
