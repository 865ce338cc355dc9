"""What the hourglass picture is made of: pure geometry, in logical pixels, no Qt.

Rows go down in order of computation. A visit is a stay at one level: the layer that leads into it
(down or up), then the rows of self attention.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from hgviz.core import HeadId, Layer, ModelSpec

PAD = 10  # from the outermost rows to the edge of the silhouette
LARGEST = 72  # a thumbnail at full resolution
FLAT = 20  # below this a cell is one flat colour
READABLE = 32  # below this the picture scrolls before its cells shrink further
SLACK = 2  # px around a cell that still mean it
FUNNEL = 20  # where the positions of two levels meet


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
    """A stay at one level: the layer that leads into it and the rows of self attention, with those
    that look at another level again."""

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
    details: bool = True


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

    def at(self, x: float, y: float) -> HeadId | None:
        """The head whose cell is under a point, the gaps between cells shared out."""
        for row in self.rows:
            if row.top - SLACK <= y < row.top + row.height + SLACK:
                for head, cell in row.cells:
                    if cell.x - SLACK <= x < cell.right + SLACK:
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
        if layer.role in ("down", "up") and not (out and out[-1].level == layer.level):
            if not out:
                out.append(Visit(layer.key_level))
            out.append(Visit(layer.level, layer))
        elif out and out[-1].level == layer.level:
            out[-1] = replace(out[-1], rows=(*out[-1].rows, layer))
        else:
            out.append(Visit(layer.level, None, (layer,)))
    return tuple(out)
