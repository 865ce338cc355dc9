"""Where every head stands: the Hourglass, rows of layers, the stages of Follow."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Literal

import numpy as np
from PySide6.QtCore import QPointF, QRectF

from hgviz.core import HeadId, Layer, ModelSpec
from hgviz.gui import sentences
from hgviz.gui.language import tr
from hgviz.gui.sentences import coarseness, level

if TYPE_CHECKING:
    from hgviz.session import Session

# --- silhouette -----------------------------------------------------------------------------------


PAD = 10  # from the outermost rows to the edge of the silhouette
LARGEST = 72  # a thumbnail at full resolution
FLAT = 20  # below this a cell is one flat colour
READABLE = 32  # below this the picture scrolls before its cells shrink further
SLACK = 2  # px around a cell that still mean it
FUNNEL = 20  # where the positions of two levels meet


@dataclass(frozen=True, slots=True)
class LevelStay:
    """A stay at one level: the layer that leads into it and the rows of self attention, with those
    that look at another level again."""

    level: int
    entry: Layer | None = None
    rows: tuple[Layer, ...] = ()


@dataclass(frozen=True, slots=True)
class HeadRow:
    """The cells of a layer. kind: in the Hourglass square, strip (windows) or full (m x N), on the
    wall of scores down, up, cross, or "" for what stays at its level."""

    layer: int
    kind: str
    top: float
    height: float
    cells: tuple[tuple[HeadId, QRectF], ...]


@dataclass(frozen=True, slots=True)
class HeadLayout:
    """Where every head stands."""

    width: float
    height: float
    size: float  # of a cell
    rows: tuple[HeadRow, ...]
    columns: tuple[tuple[int, float], ...]  # (head, middle)

    def cells(self) -> Iterator[tuple[HeadId, QRectF]]:
        """Every head with its cell."""
        for row in self.rows:
            yield from row.cells

    def head_at(self, point: QPointF) -> HeadId | None:
        """The head whose cell is under a point, the gaps between cells shared out."""
        for row in self.rows:
            if row.top - SLACK <= point.y() < row.top + row.height + SLACK:
                for head, box in row.cells:
                    if box.left() - SLACK <= point.x() < box.right() + SLACK:
                        return head
        return None

    def box(self, head: HeadId) -> QRectF | None:
        """The cell of a head."""
        return next((box for one, box in self.cells() if one == head), None)

    def row(self, layer: int) -> HeadRow | None:
        """The row of a layer."""
        return next((one for one in self.rows if one.layer == layer), None)


@dataclass(frozen=True, slots=True)
class LevelBox:
    """The box of a visit, and the part of it that holds the name of its level."""

    level: int
    box: QRectF
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
class LevelLabel:
    """The name of a level at the left; full: with positions, tokens each and cost.

    first, last: from where to where its rows reach, so that it can stay in view beside them.
    """

    level: int
    top: float
    height: float
    full: bool
    first: float
    last: float


@dataclass(frozen=True, slots=True)
class HourglassRoom:
    """What the picture may take: the pane, less what stands at left, right and above."""

    width: float
    height: float
    label: float = 92
    right: float = 48
    title: float = 28
    bottom: float = 10
    full_label: float = 84
    short_label: float = 20
    details: bool = True


@dataclass(frozen=True, slots=True)
class HourglassLayout(HeadLayout):
    """The whole picture; width and height may exceed the room, then it scrolls."""

    bands: tuple[LevelBox, ...]
    outline: tuple[tuple[float, float], ...]
    lines: tuple[tuple[float, float, float, float], ...]
    residuals: tuple[Residual, ...]
    labels: tuple[LevelLabel, ...]
    top: float
    bottom: float

    def edge(self, y: float) -> float:
        """The left edge of the silhouette at a height."""
        left = self.outline[len(self.outline) // 2 :][::-1]
        for (x0, y0), (x1, y1) in zip(left, left[1:], strict=False):
            if y0 <= y <= y1:
                return x1 if y1 == y0 else x0 + (x1 - x0) * (y - y0) / (y1 - y0)
        return left[0][0] if y < left[0][1] else left[-1][0]


def visits(spec: ModelSpec) -> tuple[LevelStay, ...]:
    """The stays at each level, in order of computation."""
    out: list[LevelStay] = []
    for layer in spec.layers:
        if layer.role in ("down", "up") and not (out and out[-1].level == layer.level):
            if not out:
                out.append(LevelStay(layer.key_level))
            out.append(LevelStay(layer.level, layer))
        elif out and out[-1].level == layer.level:
            out[-1] = replace(out[-1], rows=(*out[-1].rows, layer))
        else:
            out.append(LevelStay(layer.level, None, (layer,)))
    return tuple(out)


# --- layouts --------------------------------------------------------------------------------------


BOX = 3  # above and below the rows of an inner level
STRIP = 14  # a row of windowed resampling
LANE = 22  # from the silhouette to the line of its residual path
SMALLEST = 12  # a thumbnail
SHRINK = 0.7  # the size of a thumbnail from level to level
FUNNEL_MOST = 44  # a funnel may grow to this where there is room
SLIM = 0.4  # a map between two texts is at least so wide and high, in parts of a thumbnail
DRIFT = 40  # as far as the name of a level may stand from the middle of its rows


def arrange(spec: ModelSpec, lengths: Sequence[int], room: HourglassRoom) -> HourglassLayout:
    """The picture of a model whose levels have these many positions.

    The thumbnails are as large as the width allows; where that would be too high they give way
    down to READABLE, and beyond that the picture scrolls.
    """
    stays = visits(spec)
    columns = 1 + max((h for one in spec.layers for h in one.heads), default=0)
    free = room.width - room.label - room.right - 2 * PAD

    def plan(size: int, funnel: int) -> _Plan:
        return _Plan(spec, stays, lengths, columns, size, funnel)

    wide = (free + 4) / columns
    fits = wide - 4 if wide >= 32 else free / columns - 2
    widest = max(SMALLEST, min(LARGEST, fits))
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


def _free(room: HourglassRoom) -> float:
    return room.height - room.title - room.bottom


class _Plan:
    """One attempt at the picture, for one size of thumbnails; x from its centre, y from 0."""

    def __init__(
        self,
        spec: ModelSpec,
        stays: Sequence[LevelStay],
        lengths: Sequence[int],
        columns: int,
        size: int,
        funnel: int,
    ) -> None:
        self.spec, self.stays, self.lengths = spec, stays, lengths
        self.columns, self.size, self.funnel = columns, size, funnel
        self.rows: list[HeadRow] = []
        self.bands: list[LevelBox] = []
        self.gaps: list[tuple[int, int, float, float]] = []
        self.height = self._place()

    def thumb(self, level: int) -> int:
        """The size of a thumbnail at a level; depth, not index, makes it small."""
        return max(min(SMALLEST, self.size), round(self.size * SHRINK ** self._depth(level)))

    def _depth(self, level: int) -> int:
        found = sorted({sentences.coarseness(one) for one in self.spec.levels})
        return found.index(sentences.coarseness(self.spec.levels[level]))

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
            box = QRectF(-half, top, 2 * half, y - top)
            self.bands.append(LevelBox(stay.level, box, stay.level not in seen))
            seen.add(stay.level)
        return y

    def _self_rows(self, stay: LevelStay, y: float) -> float:
        if not stay.rows:
            return y + self.thumb(stay.level) / 2
        one = self.thumb(stay.level)
        for layer in stay.rows:
            kind, width, height = self._shape(layer, one)
            cells = self._cells(layer, y, width, height)
            self.rows.append(HeadRow(layer.index, kind, y, height, cells))
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

    def _cross(self, stay: LevelStay, before: int, inward: bool, y: float) -> float:
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
            self.rows.append(HeadRow(layer.index, kind, y, height, cells))
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
    ) -> tuple[tuple[HeadId, QRectF], ...]:
        level = layer.level if level is None else level
        pitch = self.thumb(level) + gap(self.thumb(level))
        start = -(self.width(level) // 2) + (self.thumb(level) - width) // 2
        return tuple(
            (HeadId(layer.index, head), QRectF(start + head * pitch, y, width, height))
            for head in layer.heads
        )

    def _outline(self) -> list[tuple[float, float]]:
        """The right side going down, then the left side going up."""
        right: list[tuple[float, float]] = []
        for band in self.bands:
            right += [(band.box.right(), y) for y in (band.box.y(), band.box.bottom())]
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
        above = max((one for one in self.bands if one.box.y() < top), key=lambda one: one.box.y())
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
                top, edge = read.box.bottom() - PAD, max(b.box.right() for b in self.bands)
                middle = row.top + row.height / 2
                out.append(Residual(read.level, edge, edge + LANE, top, middle))
        for number, band in enumerate(self.bands):
            later = range(number + 1, len(self.bands))
            back = next((n for n in later if self.bands[n].level == band.level), None)
            inside = self.bands[number + 1 : back] if back is not None else []
            if not inside or any(self._depth(b.level) < self._depth(band.level) for b in inside):
                continue
            below, edge = self.bands[back or 0].box, band.box.right()
            top, bottom = band.box.bottom() - PAD, below.y() + PAD
            out.append(Residual(band.level, edge, edge + LANE, top, bottom))
        return out

    def layout(self, room: HourglassRoom) -> HourglassLayout:
        """The finished picture, moved to where it stands in the room."""
        widest = max((band.box.width() for band in self.bands), default=2.0 * PAD)
        width = max(room.width, room.label + widest + room.right)
        middle = round(room.label + (width - room.label - room.right) / 2)
        flat = all(one.stride == 1 for one in self.spec.levels)
        spare = _free(room) - self.height
        down = room.title + (max(0, round(spare / 2)) if flat else 0)
        height = max(room.height, down + self.height + room.bottom)
        bands = tuple(replace(b, box=b.box.translated(middle, down)) for b in self.bands)
        outer = max(self.bands, key=lambda one: one.box.width()).level if self.bands else 0
        return HourglassLayout(
            width,
            height,
            self.size,
            tuple(
                replace(
                    row,
                    top=row.top + down,
                    cells=tuple((head, box.translated(middle, down)) for head, box in row.cells),
                )
                for row in self.rows
            ),
            tuple((n, self._middle(outer, n) + middle) for n in range(self.columns)),
            bands,
            tuple((x + middle, y + down) for x, y in self._outline()),
            tuple((a + middle, b + down, c + middle, d + down) for a, b, c, d in self._lines()),
            tuple(
                Residual(
                    one.level,
                    one.edge + middle,
                    one.lane + middle,
                    one.top + down,
                    one.bottom + down,
                )
                for one in self._residuals()
            ),
            _labels(bands, room, height),
            down,
            down + self.height,
        )


def _labels(
    bands: Sequence[LevelBox], room: HourglassRoom, height: float
) -> tuple[LevelLabel, ...]:
    """The level names beside their rows, pushed apart; short ones where full ones do not fit."""
    floor, ceiling = room.title + 2, height - room.bottom - room.short_label
    sizes = [room.full_label if b.first and room.details else room.short_label for b in bands]
    tops = _apart(bands, sizes, floor, ceiling)
    if any(abs(top - _beside(b, n)) > DRIFT for b, n, top in zip(bands, sizes, tops, strict=True)):
        sizes = [room.short_label for _ in bands]
        tops = _apart(bands, sizes, floor, ceiling)
    return tuple(
        LevelLabel(band.level, top, size, size > room.short_label, band.box.y(), band.box.bottom())
        for band, top, size in zip(bands, tops, sizes, strict=True)
    )


def _apart(
    bands: Sequence[LevelBox], sizes: Sequence[float], floor: float, ceiling: float
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


def _beside(band: LevelBox, size: float) -> float:
    return band.box.y() + (band.box.height() - size) / 2


# --- stages ---------------------------------------------------------------------------------------


Kind = Literal["first", "in", "waist", "out", "last", "flat", "own", "cross", "text", "slots"]

GROUPS = 4  # stages of a model that has one resolution only
PAIRS = 2  # of a decoder's layers, each looking at its own text and at the other
READS = {"own": "its text", "cross": "the source", "slots": "the slots"}
# titles by kind of stage; the second where positions are segments of unequal length
TITLES = {
    "first": ("Full resolution", "Full resolution"),
    "in": ("Shortened, {many} {units} to one", "{units} pooled into segments"),
    "waist": (
        "Shortened, {many} {units} to one (bottleneck)",
        "{units} pooled into segments (bottleneck)",
    ),
    "out": ("Upsampled to {many} {units}", "Upsampled to {many} {units}"),
    "last": ("Upsampled to full resolution", "Upsampled to full resolution"),
    "text": ("Every {unit}", "Every {unit}"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stage:
    """A stay at one level: its layers, and the layers of resampling that lead into it.

    level is that of the strip; asks that of the letter, where it looks at another text.
    """

    number: int
    level: int
    layers: tuple[int, ...]
    entries: tuple[int, ...]
    kind: Kind
    asks: int = -1

    @property
    def away(self) -> bool:
        """Whether the strip is of another text than the letter's."""
        return self.kind in ("cross", "slots")

    @property
    def beside(self) -> bool:
        """Whether its words stand beside the strip: arcs may go both ways above it."""
        return self.kind in ("flat", "own", "cross", "text", "slots")

    @property
    def own(self) -> int:
        """The level that the letter is followed at."""
        return self.level if self.asks < 0 else self.asks

    def title(self, spec: ModelSpec, noun: str) -> str:
        """What happens here, in words."""
        if self.kind not in TITLES:
            said = sentences.layers(self.layers) if self.layers else ""
        else:
            stride = spec.levels[self.level].stride
            said = tr(
                TITLES[self.kind][stride is None],
                many=sentences.number(stride or 0),
                unit=tr(noun),
                units=tr(f"{noun}s"),
            )
        return said[:1].upper() + said[1:]

    def note(self, spec: ModelSpec, positions: int) -> str:
        """Positions, layers and, going down, the cost; "" beside a strip."""
        if self.beside:
            return ""
        said = [sentences.counted(positions, "position"), sentences.layers(self.layers)]
        stride = spec.levels[self.level].stride or 1
        if self.kind in ("in", "waist") and stride > 1:
            said.append(tr("{part} of the cost", part=sentences.part(stride**2)))
        return ", ".join(said)

    def named(self, head: str) -> str:
        """A head and which text it looks at, where there are two: "head 1.2 on the source"."""
        on = READS.get(self.kind)
        if on is None:
            return head
        return tr("{head} on {text}", head=head, text=tr(on)) if head else tr(on)


def stages(spec: ModelSpec, level: int = 0) -> tuple[Stage, ...]:
    """One stage per visit of a level that has layers; a flat model in a few groups of layers.

    level: of two texts, the one that the letter is in.
    """
    if len({one.sequence for one in spec.levels}) > 1:
        return _cross_stages(spec, level)
    stays: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = []
    entries: tuple[int, ...] = ()
    for visit in visits(spec):
        if visit.entry is not None:
            entries += (visit.entry.index,)
        rows = tuple(one.index for one in visit.rows if one.role == "self" and not one.cuts)
        if rows:
            stays.append((visit.level, rows, entries))
            entries = ()
    if len({level for level, _, _ in stays}) == 1:
        level, layers, _ = stays[0]
        groups = enumerate(_groups(layers, GROUPS))
        return tuple(Stage(n + 1, level, one, (), "flat") for n, one in groups)
    strides = [sentences.coarseness(spec.levels[level]) for level, _, _ in stays]
    waist = strides.index(max(strides))
    return tuple(
        Stage(n + 1, level, layers, before, _kind(n, strides, waist))
        for n, (level, layers, before) in enumerate(stays)
    )


def followed(session: Session) -> tuple[HeadId, ...]:
    """The heads that a figure of all levels shows: those last opened, one at a level.

    A stage that has none of them shows its clearest, which in a long text is named here, as far as
    it is known: to find it for the figure alone takes minutes.
    """
    from hgviz.tasks.figures import is_long

    opened, capture = tuple(session.opened.values()), session.capture
    if capture is None or not is_long(capture):
        return opened
    chosen = {one.layer for one in (session.selection.head_id, *opened)}
    found = list(opened)
    for stage in stages(capture.spec):
        if not stage.beside and chosen.isdisjoint(stage.layers):
            heads = [HeadId(n, h) for n in stage.layers for h in capture.spec.layers[n].heads]
            on = [one for one in heads if one not in capture.off] or heads
            facts = session.facts
            found.append(max(on, key=lambda one: facts[one].score if one in facts else -1.0))
    return tuple(found)


def _cross_stages(spec: ModelSpec, level: int) -> tuple[Stage, ...]:
    """A decoder by turns at its own text and the source; a projected text and its slots."""
    mine = [one for one in spec.layers if one.level == level]
    crossing = [one.index for one in mine if one.role == "cross"]
    own = [one.index for one in mine if one.role == "self"]
    away = next((one.key_level for one in mine if one.key_level != level), level)
    found: list[tuple[int, tuple[int, ...], Kind]] = []
    if crossing:
        turns = zip(_groups(own, PAIRS), _groups(crossing, PAIRS), strict=False)
        for one, other in turns:
            found += [(level, one, "own"), (away, other, "cross")]
    elif away != level:
        found = [(level, (), "text"), *((away, one, "slots") for one in _groups(own, GROUPS))]
    else:
        found = [(level, one, "flat") for one in _groups(own, GROUPS)]
    return tuple(
        Stage(n + 1, at, layers, (), kind, level) for n, (at, layers, kind) in enumerate(found)
    )


def _groups(layers: Sequence[int], most: int) -> list[tuple[int, ...]]:
    if not layers:
        return []
    return [tuple(map(int, one)) for one in np.array_split(layers, min(most, len(layers)))]


def _kind(number: int, strides: Sequence[float], waist: int) -> Kind:
    if strides[number] == max(strides):
        return "waist"
    if strides[number] == min(strides):
        return "first" if number < waist else "last"
    return "in" if number < waist else "out"


# --- cells ----------------------------------------------------------------------------------------


WIDEST_CELL, NARROWEST_CELL = 70.0, 8.0  # px: the width of a cell
HIGH, LOW = 42.0, 15.0  # px: the height of one
LOWER = 0.67  # a row that goes to another level, in parts of the others
SIDE = 12  # px: beside the groups
INSIDE, BETWEEN = 4.0, 6.0  # px: around the rows of a group, and from one to the next
NAMED, PLAIN = 116, 52  # px left of the cells: with names of levels, and without
TITLE = 20  # px above: the numbers of the heads


@dataclass(frozen=True, slots=True)
class Group:
    """Layers of one level after each other; shade: which tint of the silhouette they stand on."""

    name: str
    box: QRectF
    shade: int


@dataclass(frozen=True, slots=True)
class Wall(HeadLayout):
    """The heads of a model as cells of one size."""

    groups: tuple[Group, ...]


def lay(spec: ModelSpec, width: float, height: float) -> Wall:
    """The wall in a room: cells as large as its width allows, rows as its height does."""
    named = len(spec.levels) > 1
    left = SIDE + (NAMED if named else PLAIN)
    columns = 1 + max((h for one in spec.layers for h in one.heads), default=0)
    pitch = max(NARROWEST_CELL + 2, min(WIDEST_CELL + 6, (width - left - SIDE - INSIDE) / columns))
    gap = 6.0 if pitch > 36 else 3.0 if pitch > 16 else 2.0
    cell = pitch - gap
    parts = [list(rows) for _, rows in groupby(spec.layers, key=lambda one: one.level)]
    loose = 2 * TITLE + len(parts) * (2 * INSIDE + BETWEEN)
    units = sum(LOWER if _way(one) else 1.0 for one in spec.layers)
    room = (height - loose - gap * len(spec.layers)) / max(units, 1.0)
    high = max(LOW, min(HIGH, cell * 0.75 if cell < 40 else HIGH, room))
    depths = sorted({*map(coarseness, spec.levels)})
    y, rows, groups = float(TITLE + 4), [], []
    for part in parts:
        top, y = y, y + INSIDE
        for layer in part:
            tall = max(LOW - 2, high * LOWER) if _way(layer) else high
            cells = tuple(
                (HeadId(layer.index, head), QRectF(left + head * pitch, y, cell, tall))
                for head in layer.heads
            )
            rows.append(HeadRow(layer.index, _way(layer), y, tall, cells))
            y += tall + gap
        y += INSIDE - gap
        one = spec.levels[part[0].level]
        box = QRectF(SIDE, top, left + columns * pitch - gap + INSIDE + 2 - SIDE, y - top)
        groups.append(Group(level(spec, one.index) if named else "", box,
                            min(2, depths.index(coarseness(one)))))  # fmt: skip
        y += BETWEEN
    middles = tuple((head, left + head * pitch + cell / 2) for head in range(columns))
    return Wall(left + columns * pitch + SIDE, y, cell, tuple(rows), middles, tuple(groups))


def _way(layer: Layer) -> str:
    return "" if layer.role == "self" else layer.role
