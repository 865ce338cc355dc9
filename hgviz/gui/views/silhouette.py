"""Where everything in the hourglass picture stands: pure geometry, in logical pixels, no Qt.

Rows go down in order of computation. A visit is a stay at one level: the layer that leads into it
(down or up), then the self-attention rows. The same picture without cells to look at (`spine`)
is the narrow version with layer numbers only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from hgviz.core import HeadId, Layer, ModelSpec

PAD = 10  # from the outermost rows to the edge of the silhouette
BOX = 3  # above and below the rows of an inner level
STRIP = 14  # a row of windowed resampling
LANE = 22  # from the silhouette to the line of its residual path
SMALLEST, LARGEST = 12, 72  # a thumbnail at full resolution
FLAT = 20  # below this a cell is one flat colour
READABLE = 44  # below this the picture scrolls before its cells shrink further
SHRINK = 0.7  # the size of a thumbnail from level to level
FUNNEL, FUNNEL_MOST = 26, 44  # where the positions of two levels meet


class Rect(NamedTuple):
    """A rectangle in logical pixels."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """The x just past it."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """The y just past it."""
        return self.y + self.height

    def holds(self, x: float, y: float) -> bool:
        """Whether a point lies in it."""
        return self.x <= x < self.right and self.y <= y < self.bottom


@dataclass(frozen=True, slots=True)
class Visit:
    """A stay at one level: the layer that leads into it and the rows of self attention."""

    level: int
    entry: Layer | None = None
    rows: tuple[Layer, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One layer: its cells by head number. kind: square, strip (windows) or full (m x N)."""

    layer: int
    kind: str
    top: float
    height: float
    cells: tuple[tuple[int, Rect], ...]


@dataclass(frozen=True, slots=True)
class Band:
    """The box of a visit, and the part of it that holds the name of its level."""

    level: int
    box: Rect
    first: bool


@dataclass(frozen=True, slots=True)
class Residual:
    """A path outside: right from (edge, top) to lane, down, back to (edge, bottom)."""

    level: int
    edge: float
    lane: float
    top: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Label:
    """The name of a level at the left; full: with positions, tokens each and cost."""

    level: int
    top: float
    full: bool


@dataclass(frozen=True, slots=True)
class Room:
    """What the picture may take: the pane, less what stands at left, right and above."""

    width: float
    height: float
    label: float = 92
    right: float = 48
    title: float = 28
    bottom: float = 10
    full_label: float = 84
    short_label: float = 20
    largest: float = LARGEST
    readable: float = READABLE


@dataclass(frozen=True, slots=True)
class Layout:
    """The whole picture; width and height may exceed the room, then it scrolls."""

    width: float
    height: float
    size: float
    columns: tuple[tuple[int, float], ...]
    rows: tuple[Row, ...]
    bands: tuple[Band, ...]
    outline: tuple[tuple[float, float], ...]
    lines: tuple[tuple[float, float, float, float], ...]
    residuals: tuple[Residual, ...]
    labels: tuple[Label, ...]
    top: float
    bottom: float

    def cells(self) -> Iterator[tuple[HeadId, Rect]]:
        """Every cell with its head."""
        for row in self.rows:
            for head, rect in row.cells:
                yield HeadId(row.layer, head), rect

    def at(self, x: float, y: float, slack: float = 2) -> HeadId | None:
        """The head whose cell is under a point, the gaps between cells shared out."""
        for row in self.rows:
            if row.top - slack <= y < row.top + row.height + slack:
                for head, cell in row.cells:
                    if cell.x - slack <= x < cell.right + slack:
                        return HeadId(row.layer, head)
        return None

    def row(self, layer: int) -> Row | None:
        """The row of a layer."""
        return next((one for one in self.rows if one.layer == layer), None)

    def edge(self, y: float) -> float:
        """The left edge of the silhouette at a height."""
        left = self.outline[len(self.outline) // 2 :][::-1]
        for (x0, y0), (x1, y1) in zip(left, left[1:], strict=False):
            if y0 <= y <= y1:
                return x1 if y1 == y0 else x0 + (x1 - x0) * (y - y0) / (y1 - y0)
        return left[0][0] if y < left[0][1] else left[-1][0]


def visits(spec: ModelSpec) -> tuple[Visit, ...]:
    """The stays at each level, in order of computation."""
    out: list[Visit] = []
    for layer in spec.layers:
        if layer.role in ("down", "up"):
            if not out:
                out.append(Visit(layer.key_level))
            out.append(Visit(layer.level, layer))
        elif out and out[-1].level == layer.level:
            out[-1] = replace(out[-1], rows=(*out[-1].rows, layer))
        else:
            out.append(Visit(layer.level, None, (layer,)))
    return tuple(out)


def arrange(
    spec: ModelSpec, lengths: Sequence[int], room: Room, *, single: bool = False
) -> Layout:
    """The picture of a model whose levels have these many positions.

    single: one cell per layer (the mean over the heads, or the spine) instead of one per head.
    The thumbnails are as large as the width allows; where that would be too high they give way
    down to room.readable, and beyond that the picture scrolls.
    """
    stays = visits(spec)
    columns = 1 if single else 1 + max((h for one in spec.layers for h in one.heads), default=0)
    free = room.width - room.label - room.right - 2 * PAD
    widest = max(SMALLEST, min(room.largest, _size_for(free, columns)))
    size = next(
        (
            one
            for one in range(int(widest), int(min(widest, room.readable)) - 1, -1)
            if _Plan(spec, stays, lengths, columns, one, FUNNEL, single).height <= _free(room)
        ),
        int(min(widest, room.readable)),
    )
    crossings = max(1, sum(a.level != b.level for a, b in zip(stays, stays[1:], strict=False)))
    slack = _free(room) - _Plan(spec, stays, lengths, columns, size, FUNNEL, single).height
    funnel = min(FUNNEL_MOST, FUNNEL + max(0, int(slack / crossings)))
    return _Plan(spec, stays, lengths, columns, size, funnel, single).layout(room)


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
        single: bool,
    ) -> None:
        self.spec, self.stays, self.lengths = spec, stays, lengths
        self.columns, self.size, self.funnel, self.single = columns, size, funnel, single
        self.rows: list[Row] = []
        self.bands: list[Band] = []
        self.gaps: list[tuple[int, int, float, float]] = []
        self.height = self._place()

    def thumb(self, level: int) -> int:
        """The size of a thumbnail at a level; depth, not index, makes it small."""
        return max(min(SMALLEST, self.size), round(self.size * SHRINK ** self._depth(level)))

    def _depth(self, level: int) -> int:
        strides = sorted({one.stride or 0 for one in self.spec.levels})
        return strides.index(self.spec.levels[level].stride or 0)

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
            self.rows.append(Row(layer.index, "square", y, one, self._cells(layer, y, one, one)))
            y += one + gap(one)
        return y - gap(one)

    def _cross(self, stay: Visit, before: int, inward: bool, y: float) -> float:
        """The funnel between two visits, with the row of resampling on its narrow side."""
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
        heads = layer.heads[:1] if self.single else layer.heads
        return tuple(
            (head, Rect(start + (0 if self.single else head) * pitch, y, width, height))
            for head in heads
        )

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
        """From the end of each stay to the next stay at the same level, past the inner ones."""
        out = []
        for number, band in enumerate(self.bands):
            later = [n for n in range(number + 1, len(self.bands))]
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
        flat = len({band.level for band in self.bands}) <= 1
        spare = _free(room) - self.height
        down = room.title + (max(0, round(spare / 2)) if flat else 0)
        height = max(room.height, down + self.height + room.bottom)
        move = _Move(middle, down)
        outer = max(self.bands, key=lambda one: one.box.width).level if self.bands else 0
        count = 0 if self.single else self.columns
        return Layout(
            width,
            height,
            self.size,
            tuple((n, self._middle(outer, n) + middle) for n in range(count)),
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
    for full in (True, False):
        sizes = [room.full_label if full and b.first else room.short_label for b in bands]
        if sum(sizes) + 6 * len(sizes) <= ceiling - floor or not full:
            break
    tops = [b.box.y + (b.box.height - size) / 2 for b, size in zip(bands, sizes, strict=True)]
    at = floor
    for number, size in enumerate(sizes):
        tops[number] = at = max(tops[number], at)
        at += size + 6
    at = ceiling
    for number in reversed(range(len(sizes))):
        tops[number] = min(tops[number], at - sizes[number])
        at = tops[number] - 6
    return tuple(
        Label(band.level, top, size > room.short_label)
        for band, top, size in zip(bands, tops, sizes, strict=True)
    )
