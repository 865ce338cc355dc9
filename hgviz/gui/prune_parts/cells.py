"""Where the cells of the wall stand: one for each head, in groups of a level."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from PySide6.QtCore import QPointF, QRectF

from hgviz.core import HeadId, Layer, ModelSpec
from hgviz.gui.views.words import coarseness, level

LARGEST, SMALLEST = 70.0, 8.0  # px: the width of a cell
HIGH, LOW = 42.0, 15.0  # px: the height of one
LOWER = 0.67  # a row that goes to another level, in parts of the others
SIDE = 12  # px: beside the groups
INSIDE, BETWEEN = 4.0, 6.0  # px: around the rows of a group, and from one to the next
NAMED, PLAIN = 116, 52  # px left of the cells: with names of levels, and without
TITLE = 20  # px above: the numbers of the heads


@dataclass(frozen=True, slots=True)
class Row:
    """A layer. way: "down", "up", "cross", or "" for what stays at its level."""

    layer: int
    way: str
    top: float
    height: float
    cells: tuple[tuple[HeadId, QRectF], ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Layers of one level after each other; shade: which tint of the silhouette they stand on."""

    name: str
    box: QRectF
    shade: int


@dataclass(frozen=True, slots=True)
class Wall:
    """All of it: the size it takes, and where its columns begin."""

    width: float
    height: float
    cell: float
    rows: tuple[Row, ...]
    groups: tuple[Group, ...]
    columns: tuple[tuple[int, float], ...]  # (head, middle)

    def head_at(self, point: QPointF) -> HeadId | None:
        """The head under a point; the gap after a cell belongs to it."""
        for row in self.rows:
            if row.top - 2 <= point.y() <= row.top + row.height + 2:
                for head, box in row.cells:
                    if box.left() - 2 <= point.x() <= box.right() + 2:
                        return head
        return None

    def box(self, head: HeadId) -> QRectF | None:
        """Where a head stands."""
        for row in self.rows:
            if row.layer == head.layer:
                return next((box for one, box in row.cells if one == head), None)
        return None

    def row_of(self, layer: int) -> Row | None:
        """The row of a layer."""
        return next((one for one in self.rows if one.layer == layer), None)


def lay(spec: ModelSpec, width: float, height: float) -> Wall:
    """The wall in a room: cells as large as its width allows, rows as its height does."""
    named = len(spec.levels) > 1
    left = SIDE + (NAMED if named else PLAIN)
    columns = 1 + max((h for one in spec.layers for h in one.heads), default=0)
    pitch = max(SMALLEST + 2, min(LARGEST + 6, (width - left - SIDE - INSIDE) / columns))
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
            rows.append(Row(layer.index, _way(layer), y, tall, cells))
            y += tall + gap
        y += INSIDE - gap
        one = spec.levels[part[0].level]
        box = QRectF(SIDE, top, left + columns * pitch - gap + INSIDE + 2 - SIDE, y - top)
        groups.append(Group(level(spec, one.index) if named else "", box,
                            min(2, depths.index(coarseness(one)))))  # fmt: skip
        y += BETWEEN
    middles = tuple((head, left + head * pitch + cell / 2) for head in range(columns))
    return Wall(left + columns * pitch + SIDE, y, cell, tuple(rows), tuple(groups), middles)


def _way(layer: Layer) -> str:
    return "" if layer.role == "self" else layer.role
