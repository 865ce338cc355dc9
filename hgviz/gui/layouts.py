"""Layouts of heads: the Hourglass, rows of layers, the stages of Follow."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, pairwise
from typing import Literal

import numpy as np
from PySide6.QtCore import QPointF, QRectF

from hgviz.core import HeadId, Layer, ModelSpec
from hgviz.gui import sentences
from hgviz.gui.language import tr
from hgviz.gui.sentences import coarseness
from hgviz.session import Session

SLACK = 2  # px around a cell that still mean it


@dataclass(frozen=True, slots=True)
class HeadRow:
    """The cells of a layer. kind: in the Hourglass square, strip (windows) or full (m x N), among
    rows of layers down, up, cross, or "" for what stays at its level."""

    layer: int
    kind: str
    top: float
    height: float
    cells: tuple[tuple[HeadId, QRectF], ...]


@dataclass(frozen=True, slots=True)
class HeadLayout:
    """The place of every head. size: of a cell of the coarsest column; columns: (head, middle)."""

    width: float
    height: float
    size: float
    rows: tuple[HeadRow, ...]
    columns: tuple[tuple[int, float], ...]

    def cells(self) -> Iterator[tuple[HeadId, QRectF]]:
        return chain.from_iterable(row.cells for row in self.rows)

    def head_at(self, point: QPointF) -> HeadId | None:
        """The head whose cell is under a point, the gaps between cells shared out."""
        for row in self.rows:
            if row.top - SLACK <= point.y() < row.top + row.height + SLACK:
                for head, box in row.cells:
                    if box.left() - SLACK <= point.x() < box.right() + SLACK:
                        return head
        return None

    def box(self, head: HeadId) -> QRectF | None:
        return next((box for one, box in self.cells() if one == head), None)

    def row(self, layer: int) -> HeadRow | None:
        return next((row for row in self.rows if row.layer == layer), None)

    def step(self, head: HeadId, down: int, right: int) -> HeadId:
        """The head so many rows below and columns beside another; layers without heads are passed
        over, and at the edges it stays."""
        rows = [row for row in self.rows if row.cells]
        at = min(range(len(rows)), key=lambda n: abs(rows[n].layer - head.layer))
        heads = [one for one, _ in rows[max(0, min(at + down, len(rows) - 1))].cells]
        near = min(range(len(heads)), key=lambda n: abs(heads[n].head - head.head))
        return heads[max(0, min(near + right, len(heads) - 1))]

    def edge(self, y: float) -> float:
        """The left edge of the heads at a height, left of which their layer is named."""
        return self.columns[0][1] - self.size / 2 - 3


def key_sharing(spec: ModelSpec) -> int:
    """How many heads share their keys in every layer, which stand apart then; 1 where layers differ
    or each head has its own."""
    shared = {layer.shared for layer in spec.layers if layer.heads}
    return shared.pop() if len(shared) == 1 else 1


def gap(size: float) -> int:
    return 4 if size >= 28 else 2 if size > SMALLEST else 1


def _columns(spec: ModelSpec) -> int:
    return 1 + max((head for layer in spec.layers for head in layer.heads), default=0)


# --- hourglass ------------------------------------------------------------------------------------

PAD = 10  # from the outermost rows to the edge of the silhouette
LARGEST = 144  # a thumbnail at full resolution
FLAT = 20  # below this a cell is one flat colour
READABLE = 32  # below this the picture scrolls before its cells shrink further
SMALLEST = 12  # a thumbnail
SHRINK = 0.7  # the size of a thumbnail from level to level
BOX = 3  # above and below the rows of an inner level
STRIP = 14  # a row of windowed resampling
FUNNEL, FUNNEL_MOST = 20, 44  # where the positions of two levels meet, and with room to spare
LANE = 22  # from the silhouette to the line of its residual path
SLIM = 0.4  # a map between two texts is at least so wide and high, in parts of a thumbnail
DRIFT = 40  # as far as the name of a level may stand from the middle of its rows


@dataclass(frozen=True, slots=True)
class LevelStay:
    """A stay at one level: the layer that leads into it and the rows of self attention, with those
    that look at another level again."""

    level: int
    entry: Layer | None = None
    rows: tuple[Layer, ...] = ()


@dataclass(frozen=True, slots=True)
class LevelBox:
    """The box of a stay."""

    level: int
    box: QRectF
    first: bool  # whether it is the first at its level


@dataclass(frozen=True, slots=True)
class LevelLabel:
    """The name of a level at the left."""

    band: LevelBox  # beside whose rows it stays in view
    top: float
    height: float
    full: bool  # with positions, tokens each and cost


@dataclass(frozen=True, slots=True)
class HourglassRoom:
    """The room of the picture: the pane without its margins at left, right and above."""

    width: float
    height: float
    label: float = 92
    right: float = 48
    title: float = 28
    bottom: float = 10
    full_label: float = 84
    short_label: float = 20
    details: bool = True

    @property
    def free(self) -> float:
        """The height that is left for the silhouette."""
        return self.height - self.title - self.bottom


@dataclass(frozen=True, slots=True)
class HourglassLayout(HeadLayout):
    """The whole picture; width and height may exceed the room, then it scrolls."""

    bands: tuple[LevelBox, ...]
    outline: tuple[tuple[float, float], ...]
    lines: tuple[tuple[float, float, float, float], ...]
    residuals: tuple[QRectF, ...]  # along whose right a path goes, from the top to the bottom
    labels: tuple[LevelLabel, ...]
    top: float
    bottom: float

    def edge(self, y: float) -> float:
        left = self.outline[len(self.outline) // 2 :][::-1]
        for (x0, y0), (x1, y1) in pairwise(left):
            if y0 <= y <= y1:
                return x1 if y1 == y0 else x0 + (x1 - x0) * (y - y0) / (y1 - y0)
        return left[0][0] if y < left[0][1] else left[-1][0]


def level_stays(spec: ModelSpec) -> tuple[LevelStay, ...]:
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


def hourglass_layout(
    spec: ModelSpec, lengths: Sequence[int], room: HourglassRoom
) -> HourglassLayout:
    """The picture of a model whose levels have these many positions.

    The thumbnails are as large as the width allows; where that would be too high they give way
    down to READABLE, and beyond that the picture scrolls.
    """
    stays, columns = level_stays(spec), _columns(spec)
    groups = -(-columns // key_sharing(spec))
    free = room.width - room.label - room.right - 2 * PAD
    free -= (groups - 1) * (gap(LARGEST) + 2) if groups < columns else 0
    wide = (free + 4) / columns
    widest = max(SMALLEST, min(LARGEST, wide - 4 if wide >= 32 else free / columns - 2))
    sizes = range(int(min(widest, READABLE)), int(widest) + 1)

    def height(size: int) -> float:
        return _Hourglass(spec, stays, lengths, size, FUNNEL).bottom

    size = sizes[max(0, bisect_right(sizes, room.free, key=height) - 1)]
    crossings = max(1, sum(a.level != b.level for a, b in pairwise(stays)))
    slack = room.free - height(size)
    funnel = min(FUNNEL_MOST, FUNNEL + max(0, int(slack / crossings)))
    draft = _Hourglass(spec, stays, lengths, size, funnel)
    is_flat = all(level.stride == 1 for level in spec.levels)
    top = room.title + (max(0, round((room.free - draft.bottom) / 2)) if is_flat else 0)
    widest_band = max((band.box.width() for band in draft.bands), default=2.0 * PAD)
    width = max(room.width, room.label + widest_band + room.right)
    middle = round(room.label + (width - room.label - room.right) / 2)
    height_of_all = max(room.height, top + draft.bottom + room.bottom)
    final = _Hourglass(spec, stays, lengths, size, funnel, middle, top)
    return final.layout(width, height_of_all, _labels(final.bands, room, height_of_all))


class _Hourglass:
    """The picture with one size of thumbnails, around x and from y down."""

    def __init__(
        self,
        spec: ModelSpec,
        stays: Sequence[LevelStay],
        lengths: Sequence[int],
        size: int,
        funnel: int,
        x: float = 0.0,
        y: float = 0.0,
    ) -> None:
        self.spec, self.lengths, self.size, self.funnel = spec, lengths, size, funnel
        self.x, self.top = x, y
        self.columns, self.shared = _columns(spec), key_sharing(spec)
        found = [coarseness(level) for level in spec.levels]
        self.depths = [sorted({*found}).index(one) for one in found]
        self.rows: list[HeadRow] = []
        self.bands: list[LevelBox] = []
        self.gaps: list[tuple[int, int, float, float]] = []  # outer, inner level; y at each
        seen = set[int]()
        for number, stay in enumerate(stays):
            if number and stays[number - 1].level != stay.level:
                y = self._cross(stay, stays[number - 1].level, y)
            top = y
            y += BOX if number else PAD
            y = self._place_rows(stay, y)
            y += PAD if number == len(stays) - 1 else BOX
            half = self._width(stay.level) / 2 + PAD
            box = QRectF(x - half, top, 2 * half, y - top)
            self.bands.append(LevelBox(stay.level, box, stay.level not in seen))
            seen.add(stay.level)
        self.bottom = y

    def _thumb(self, level: int) -> int:
        """The size of a thumbnail at a level; depth, not index, makes it small."""
        return max(min(SMALLEST, self.size), round(self.size * SHRINK ** self.depths[level]))

    def _offset(self, level: int, head: int) -> int:
        """The distance from the first column of a level to a head; key groups have gaps."""
        one = self._thumb(level)
        apart = head // self.shared * (gap(one) + 2) if self.shared > 1 else 0
        return head * (one + gap(one)) + apart

    def _width(self, level: int) -> int:
        return self._offset(level, self.columns - 1) + self._thumb(level)

    def _left(self, level: int, head: int) -> float:
        return self.x - self._width(level) // 2 + self._offset(level, head)

    def _add_row(self, layer: Layer, y: float, shape: tuple[str, float, float], level: int) -> None:
        kind, width, height = shape
        inset = (self._thumb(level) - width) // 2
        cells = tuple(
            (HeadId(layer.index, head), QRectF(self._left(level, head) + inset, y, width, height))
            for head in layer.heads
        )
        self.rows.append(HeadRow(layer.index, kind, y, height, cells))

    def _place_rows(self, stay: LevelStay, y: float) -> float:
        one = self._thumb(stay.level)
        if not stay.rows:
            return y + one / 2
        for layer in stay.rows:
            is_square = layer.level == layer.key_level or one <= FLAT
            shape = ("square", one, one) if is_square else self._shape(layer, one, one * SLIM)
            self._add_row(layer, y, shape, layer.level)
            y += shape[2] + gap(one)
        return y - gap(one)

    def _cross(self, stay: LevelStay, before: int, y: float) -> float:
        """The funnel between two stays, with the row of resampling on its narrow side."""
        levels = self.spec.levels
        if levels[stay.level].sequence != levels[before].sequence:
            return y + PAD  # two texts, between which no positions meet
        is_inward = self.depths[stay.level] > self.depths[before]
        inner = stay.level if is_inward else before
        if is_inward:
            self.gaps.append((before, inner, y, y + self.funnel))
            y += self.funnel
        if stay.entry is not None:
            one = self._thumb(inner)
            if stay.entry.window is not None:
                high = STRIP if self.size >= FLAT else max(6, one // 2)
                shape: tuple[str, float, float] = ("strip", one, high)
            else:
                shape = self._shape(stay.entry, one, 6 if one < STRIP else 8)
            self._add_row(stay.entry, y + 2, shape, inner)
            y += shape[2] + 4
        if not is_inward:
            self.gaps.append((stay.level, inner, y + self.funnel, y))
            y += self.funnel
        return y

    def _shape(self, layer: Layer, one: int, least: float) -> tuple[str, float, float]:
        """Kind, width and height of a map between two sequences, which keeps its proportion: its
        larger side is a thumbnail's."""
        queries, keys = self.lengths[layer.level], self.lengths[layer.key_level]
        part, least = one / max(queries, keys, 1), max(1.0, round(least))
        return "full", max(least, round(part * keys)), max(least, round(part * queries))

    def layout(
        self, width: float, height: float, labels: tuple[LevelLabel, ...]
    ) -> HourglassLayout:
        """The finished picture."""
        boxes = [band.box for band in self.bands]
        right = [(box.right(), y) for box in boxes for y in (box.y(), box.bottom())]
        left = [(2 * self.x - x, y) for x, y in reversed(right)]
        outer = max(self.bands, key=lambda one: one.box.width()).level if self.bands else 0
        middles = tuple((n, self._middle(outer, n)) for n in range(self.columns))
        return HourglassLayout(
            width, height, self.size, tuple(self.rows), middles, tuple(self.bands),
            (*right, *left), tuple(self._lines()), tuple(self._residuals()), labels,
            self.top, self.bottom,
        )  # fmt: skip

    def _middle(self, level: int, head: int) -> float:
        return self._left(level, head) + self._thumb(level) / 2

    def _lines(self) -> Iterator[tuple[float, float, float, float]]:
        """From the places of an outer column to the middle of the inner one they meet in."""
        for outer, inner, y_outer, y_inner in self.gaps:
            inset = 2 if y_outer < y_inner else -2
            a, b = self.spec.levels[outer].stride, self.spec.levels[inner].stride
            meet = min(4, max(2, b // a)) if a and b else 2
            for column in range(self.columns):
                end = self._middle(inner, column)
                for place in range(meet):
                    part = ((place + 0.5) / meet - 0.5) * self._thumb(outer)
                    yield self._middle(outer, column) + part, y_outer + inset, end, y_inner - inset

    def _residuals(self) -> Iterator[QRectF]:
        """From the end of each stay to the next stay at the same level, past the inner ones.

        Of two texts: from the encoder to every layer that looks at what it read.
        """
        levels = self.spec.levels
        read = next((b for b in self.bands if levels[b.level].sequence == "source"), None)
        for row in self.rows if read is not None else ():
            if self.spec.layers[row.layer].role == "cross" and read is not None:
                edge = max(band.box.right() for band in self.bands)
                top, middle = read.box.bottom() - PAD, row.top + row.height / 2
                yield QRectF(edge, top, LANE, middle - top)
        for number, band in enumerate(self.bands):
            later = range(number + 1, len(self.bands))
            back = next((n for n in later if self.bands[n].level == band.level), None)
            inside = self.bands[number + 1 : back] if back is not None else []
            is_outside = all(self.depths[b.level] >= self.depths[band.level] for b in inside)
            if inside and is_outside:
                top, edge = band.box.bottom() - PAD, band.box.right()
                bottom = self.bands[back or 0].box.y() + PAD
                yield QRectF(edge, top, LANE, bottom - top)


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
    labels = zip(bands, tops, sizes, strict=True)
    return tuple(LevelLabel(*label, label[2] > room.short_label) for label in labels)


def _apart(
    bands: Sequence[LevelBox], sizes: Sequence[float], floor: float, ceiling: float
) -> list[float]:
    """Tops beside the rows, pushed down and then up until none overlap."""
    tops = [*map(_beside, bands, sizes)]
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


# --- rows -----------------------------------------------------------------------------------------

WIDEST_CELL, NARROWEST_CELL = 128.0, 8.0  # px: the width of a cell
HIGH, LOW = 168.0, 15.0  # px: the height of one, which is at most twice its width
LOWER = 0.67  # a row that goes to another level, in parts of the others
SIDE = 12  # px: beside the groups
INSIDE, BETWEEN = 4.0, 6.0  # px: around the rows of a group, and from one to the next
NUMBERS = 52  # px left of the cells, without names of levels and layers
TITLE = 20  # px above: the numbers of the heads


@dataclass(frozen=True, slots=True)
class LevelGroup:
    """Layers of one level after each other; shade: which tint of the silhouette they stand on."""

    name: str
    box: QRectF
    shade: int


@dataclass(frozen=True, slots=True)
class RowsLayout(HeadLayout):
    """The heads of a model as cells of one size, a row for each layer."""

    groups: tuple[LevelGroup, ...]


def rows_layout(spec: ModelSpec, width: float, height: float, names: float = 0.0) -> RowsLayout:
    """The rows in a room: cells as large as its width allows, rows as its height does.

    names: px for the names of levels and layers.
    """
    left, columns, shared = SIDE + NUMBERS + names, _columns(spec), key_sharing(spec)
    groups = -(-columns // shared) if shared > 1 else 1
    room = (width - left - SIDE - INSIDE - 6 * (groups - 1)) / columns
    pitch = max(NARROWEST_CELL + 2, min(WIDEST_CELL + 6, room))
    between = 6.0 if pitch > 36 else 3.0 if pitch > 16 else 2.0
    cell, apart = pitch - between, between if shared > 1 else 0.0
    x = [left + head * pitch + head // shared * apart for head in range(columns)]
    parts = [list(rows) for _, rows in groupby(spec.layers, key=lambda layer: layer.level)]
    loose = TITLE + 4 + len(parts) * (2 * INSIDE + BETWEEN - between)
    units = sum(1.0 if layer.role == "self" else LOWER for layer in spec.layers)
    room = (height - loose - between * len(spec.layers)) / max(units, 1.0)
    high = max(LOW, min(HIGH, 2 * cell, room))
    depths = sorted({*map(coarseness, spec.levels)})
    y, rows, boxes = float(TITLE + 4), [], []
    for part in parts:
        top, y = y, y + INSIDE
        for layer in part:
            is_self = layer.role == "self"
            tall = high if is_self else max(LOW - 2, high * LOWER)
            cells = tuple(
                (HeadId(layer.index, head), QRectF(x[head], y, cell, tall)) for head in layer.heads
            )
            rows.append(HeadRow(layer.index, "" if is_self else layer.role, y, tall, cells))
            y += tall + between
        y += INSIDE - between
        level = spec.levels[part[0].level]
        box = QRectF(SIDE, top, x[-1] + cell + INSIDE + 2 - SIDE, y - top)
        name = sentences.level(spec, level.index) if len(spec.levels) > 1 else ""
        boxes.append(LevelGroup(name, box, min(2, depths.index(coarseness(level)))))
        y += BETWEEN
    middles = tuple((head, left + cell / 2) for head, left in enumerate(x))
    return RowsLayout(x[-1] + pitch + SIDE, y, cell, tuple(rows), middles, tuple(boxes))


# --- stages ---------------------------------------------------------------------------------------

Kind = Literal["first", "in", "waist", "out", "last", "flat", "own", "cross", "text", "slots"]

GROUPS = 4  # stages of a model that has one resolution only, where nothing is said of the room
READS = {"own": "its text", "cross": "the source", "slots": "the slots"}
TITLES = {
    "first": "Full resolution",
    "in": "Shortened {level}",
    "waist": "Shortened {level}",
    "out": "Upsampled {level}",
    "last": "Upsampled {level}",
    "text": "Text",
}


@dataclass(frozen=True, slots=True)
class Stage:
    """A stay at one level: its layers, and the layers of resampling that lead into it."""

    number: int
    level: int  # of the strip
    layers: tuple[int, ...]
    entries: tuple[int, ...]
    kind: Kind
    own: int  # of the token: another level where it attends to another text

    @property
    def away(self) -> bool:
        """Whether the strip is of another text than the token's."""
        return self.kind in ("cross", "slots")

    @property
    def one_level(self) -> bool:
        """Whether it is one of the layers of a model in which no text is shortened."""
        return self.kind in ("flat", "own", "cross", "text", "slots")

    def title(self, spec: ModelSpec) -> str:
        """The title of the stage: Shortened 1:4, Layers 0 to 2."""
        if self.kind in TITLES:
            level = spec.levels[self.level]
            name = level.label if level.stride else tr("to {level}", level=level.label)
            return tr(TITLES[self.kind], level=name)
        layers = sentences.layers(self.layers) if self.layers else ""
        return layers[:1].upper() + layers[1:]

    def notes(self, spec: ModelSpec, positions: int) -> list[str]:
        """Cost, positions and layers of a stay at a level, a short line each."""
        if self.one_level:
            return []
        stride = spec.levels[self.level].stride or 1
        about = [tr("bottleneck")] if self.kind == "waist" else []
        if self.kind in ("in", "waist") and stride > 1:
            about.append(tr("cost 1/{part}", part=stride**2))
        lines = ", ".join(about), sentences.counted(positions, "position")
        return [*filter(None, lines), sentences.layers(self.layers)]

    def named(self, head: str) -> str:
        """A head and which text it looks at, where there are two: "head 1.2 on the source"."""
        on = READS.get(self.kind)
        if on is None:
            return head
        return tr("{head} on {text}", head=head, text=tr(on)) if head else tr(on)


def stages(spec: ModelSpec, level: int = 0, most: int = GROUPS) -> tuple[Stage, ...]:
    """One stage per visit of a level that has layers.

    level: of two texts, the one that the token is in. most: the stages of a model of one
    resolution, whose layers are put together where there are more.
    """
    if len({one.sequence for one in spec.levels}) > 1:
        return _cross_stages(spec, level, most)
    stays: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = []
    entries: tuple[int, ...] = ()
    for stay in level_stays(spec):
        if stay.entry is not None:
            entries += (stay.entry.index,)
        rows = tuple(one.index for one in stay.rows if one.role == "self" and not one.cuts)
        if rows:
            stays.append((stay.level, rows, entries))
            entries = ()
    if len({level for level, _, _ in stays}) == 1:
        level, layers, _ = stays[0]
        groups = enumerate(_groups(layers, most))
        return tuple(Stage(n + 1, level, one, (), "flat", level) for n, one in groups)
    strides = [sentences.coarseness(spec.levels[level]) for level, _, _ in stays]
    waist = strides.index(max(strides))
    return tuple(
        Stage(n + 1, level, layers, before, _kind(n, strides, waist), level)
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
        if not stage.one_level and chosen.isdisjoint(stage.layers):
            heads = [HeadId(n, h) for n in stage.layers for h in capture.spec.layers[n].heads]
            on = [one for one in heads if one not in capture.off] or heads
            facts = session.facts
            found.append(max(on, key=lambda one: facts[one].clarity if one in facts else -1.0))
    return tuple(found)


def _cross_stages(spec: ModelSpec, level: int, most: int) -> tuple[Stage, ...]:
    """A decoder by turns at its own text and the source; a projected text and its slots."""
    mine = [one for one in spec.layers if one.level == level]
    crossing = [one.index for one in mine if one.role == "cross"]
    own = [one.index for one in mine if one.role == "self"]
    away = next((one.key_level for one in mine if one.key_level != level), level)
    found: list[tuple[int, tuple[int, ...], Kind]] = []
    if crossing:
        turns = zip(_groups(own, most // 2), _groups(crossing, most // 2), strict=False)
        for one, other in turns:
            found += [(level, one, "own"), (away, other, "cross")]
    elif away != level:
        found = [(level, (), "text"), *((away, one, "slots") for one in _groups(own, most - 1))]
    else:
        found = [(level, one, "flat") for one in _groups(own, most)]
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
