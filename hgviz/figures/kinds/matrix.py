"""The map of one head: query down, key across, the text on both sides."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Capture, HeadId, Map
from hgviz.figures.content import Facts, Looked
from hgviz.figures.content.unseen import reason, seen_cells
from hgviz.figures.kinds import sums
from hgviz.figures.paper import style
from hgviz.figures.paper.frame import (
    Zooms,
    activation_of,
    footnotes,
    has_negative_weights,
    heading,
    legend,
    level_name,
    map_of,
    off_card,
    read_cells,
    reduced,
    token_in,
    zoom_for,
)
from hgviz.figures.paper.labels import Mark, axis_marks, level, size_for
from hgviz.figures.paper.page import Page, boxes_of
from hgviz.figures.paper.shades import bar_width, shades_of, upright_bar
from hgviz.figures.spec import Spec
from hgviz.palettes import LIGHT_PAGE

LARGEST_CELL = 40.0
TALLEST = 1.35  # of the page's width
LOWEST = 48.0  # of a map of few rows
MOST = 1600  # cells across, however wide the page: files of a few megabytes, and little memory
BAR_GAP = 8.0
FEW = 1024  # rows whose labels may be long
LEAST_LEFT, BAR = 40.0, 36.0  # room: for the corner, for the bar
TICK, POINTER = 2.5, 3.5
LABEL_GAP = POINTER + 4
CORNER = ("Key →", "Query ↓")
KEYS = {"slot": "Slot →", "state": "State →"}
OFF = "off: this head is switched off"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the map lies (its own corner x, y), its cells, its labels and what they take at left.

    text is the size of the labels; level says where those across lie that are written level. row
    and column are the selected cell's, None where none is selected. tall: the height of a cell, its
    width unless so few rows or columns would be no more than a line.
    """

    x: float
    y: float
    cell: float
    tall: float
    rows: int
    columns: int
    left: float
    down: list[Mark]
    across: list[Mark]
    text: float
    level: list[float] | None
    corner: tuple[str, str]
    row: int | None
    column: int | None

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the map."""
        return self.cell * self.columns, self.tall * self.rows


def compose(
    page: Page,
    spec: Spec,
    looked: Looked,
    *,
    named: tuple[str, str] | None = None,
    told: tuple[str, ...] = (),
) -> None:
    """Place the map of the selected head on the page.

    named: what it is called in place of the head, and what is said beside; told: lines below it.
    """
    capture, facts = looked.capture, looked.facts
    chosen = spec.selection
    one = map_of(capture, chosen.layer, chosen.head)
    off = chosen.head_id in capture.off
    zooms = (0, 0) if off else zooms_of(capture, chosen.head_id, page.width)
    weights = read_cells(one, chosen.head, zooms)
    signed = has_negative_weights(capture, chosen.layer, chosen.head)
    shades = shades_of(spec.display, signed, [weights])
    name = None if spec.title is not None else named
    top = _title(page, spec, capture, facts) if name is None else heading(page, *name)
    roomy = page.width >= sums.NARROWEST
    beside = sums.width_on(page.width) + sums.GAP if signed and roomy and not off else 0.0
    at = _layout(page, spec, capture, one, beside + bar_width(shades), top)
    if off:
        off_card(page, at.x, at.y, *at.size)
    else:
        seen = seen_cells(capture, chosen.layer, zooms, head=chosen.head)
        _cells(page, at, shades.paint(weights, seen), zooms)
        _unseen(page, at, seen, zooms)
        page.box(at.x, at.y, *at.size, edge=LIGHT_PAGE.line)
        upright_bar(page, shades, at.x + at.size[0] + beside + BAR_GAP, at.y, at.size[1])
    if beside:
        found = sums.sums_of(one, chosen.head, zooms[0])
        right, side = at.x + at.size[0] + sums.GAP, at.tall * (1 << zooms[0])
        sums.bars(page, shades, found, right, at.y, side, at.y + at.size[1])
    _labels(page, at)
    _selected(page, at, _reach(capture, chosen.head_id, at))
    notes = [OFF if off else reason(capture, [chosen.head_id])]
    if any(zooms):
        notes.append(reduced(zooms))
        page.notes.append(reduced(zooms))
    left, below = at.x - at.left, sums.BELOW if beside else 0.0
    end = legend(page, notes, left, at.y + at.size[1] + below + 6, page.width - left)
    page.close((footnotes(page, told, left, end) if told else end) + 2)


def zooms_of(capture: Capture, head: HeadId, width: float) -> Zooms:
    """The zooms at which a map on a page so wide has no more cells than dots, whatever its labels.

    A raster with more would lose some of them, peaks too, wherever it is shown in dots.
    """
    _, rows, columns = map_of(capture, *head).shape
    around = max(_room(width, rows) + LABEL_GAP, LEAST_LEFT) + BAR_GAP + BAR
    if has_negative_weights(capture, *head) and width >= sums.NARROWEST:
        around += sums.width_on(width) + sums.GAP
    tall, wide = _sides(width, width - around, rows, columns)
    least, most = min(tall, wide), max(rows, columns)
    every = max(zoom_for(most, least * most), ceil(log2(most / MOST)))
    down, across = (  # a side that is stretched may fit where the other does not
        min(every, max(zoom_for(count, side * count), ceil(log2(count / MOST))))
        if count < most and side > least
        else every
        for count, side in ((rows, tall), (columns, wide))
    )
    return down, across


def _sides(width: float, room: float, rows: int, columns: int) -> tuple[float, float]:
    """How high and how wide a cell is on a page so wide, with so much room for all columns: a
    square, unless few rows or columns would be no more than a line."""
    cell = min(room / columns, LARGEST_CELL, TALLEST * width / rows)
    tall, wide = (max(cell, min(LARGEST_CELL, LOWEST / count)) for count in (rows, columns))
    return tall, min(wide, room / columns)


def _title(page: Page, spec: Spec, capture: Capture, facts: Facts) -> float:
    """Which head, where and what it does, or the title given; gives where the line ends."""
    if spec.title is not None:
        return heading(page, spec.title, "")
    head = spec.selection.head_id
    role = facts[head].role if head in facts else ""
    parts = [level_name(capture, head.layer), activation_of(capture, head), role]
    return heading(page, f"Head {head}", "  ·  ".join(filter(None, parts)))


def _layout(page: Page, spec: Spec, capture: Capture, one: Map, bar: float, top: float) -> Layout:
    """Where everything lies below top, with a colour bar that takes so much at right."""
    chosen, (_, rows, columns) = spec.selection, one.shape
    prompts = capture.query_prompt(chosen.layer), capture.key_prompt(chosen.layer)
    corner = _corner(capture, chosen.layer)
    row = column = None
    if chosen.query is not None:
        row = capture.row(chosen.layer, token_in(prompts[0], chosen.query))
    if chosen.key is not None:
        column = capture.column(chosen.layer, token_in(prompts[1], chosen.key))
    spans = capture.query_spans(chosen.layer), capture.key_spans(chosen.layer)
    layer = capture.spec.layers[chosen.layer]
    null = capture.null(layer.level), capture.null(layer.key_level)
    left = room = _room(page.width, rows)
    right = BAR_GAP + bar
    for again in range(4):  # labels depend on the size of a cell, and that on the room they leave
        tall, cell = _sides(page.width, page.width - left - right, rows, columns)
        text = size_for(min(cell, tall))
        down = axis_marks(prompts[0], spans[0], tall, text, room, row, null[0])
        across = axis_marks(prompts[1], spans[1], cell, text, room, column, null[1])
        need = max(style.extent(one, style.SMALL) for one in corner)
        need = max(_widest(down, text), need) + LABEL_GAP
        if again and need <= left:
            break
        left = max(left, need) if again else need
    places = level(across, cell, cell * columns, text)
    high = max(_widest(across, text) if places is None else text, 17.0)
    x = (page.width - left - cell * columns - right) / 2 + left
    y = top + high + LABEL_GAP
    return Layout(
        x, y, cell, tall, rows, columns, left, down, across, text, places, corner, row, column
    )


def _room(width: float, rows: int) -> float:
    """The room for labels at the left: where few of many rows are named, cells count for more."""
    return min(0.24 * width, 64.0) if rows <= FEW else min(0.2 * width, 64.0) - LABEL_GAP


def _corner(capture: Capture, layer: int) -> tuple[str, str]:
    """What the columns and the rows are."""
    one, levels = capture.spec.layers[layer], capture.spec.levels
    key = KEYS.get(capture.key_prompt(layer).unit, CORNER[0])
    if levels[one.level].sequence == levels[one.key_level].sequence or key == KEYS["slot"]:
        return key, CORNER[1]
    return "Source →" if key == CORNER[0] else key, "Target ↓"


def _widest(marks: list[Mark], size: float) -> float:
    return max((style.extent(one.words, size, one.bold) for one in marks), default=0.0)


def _cells(page: Page, at: Layout, rgb: NDArray[np.uint8], zooms: Zooms) -> None:
    """The raster; its last cells may reach beyond the matrix: only the part inside shows."""
    high, wide = at.tall * (1 << zooms[0]), at.cell * (1 << zooms[1])
    page.image(rgb, at.x, at.y, rgb.shape[1] * wide, rgb.shape[0] * high, cut=at.size)


def _unseen(page: Page, at: Layout, seen: NDArray[np.bool_], zooms: Zooms) -> None:
    if not seen.all():
        sides = at.cell * (1 << zooms[1]), at.tall * (1 << zooms[0])
        page.hatch(at.x, at.y, *at.size, boxes_of(~seen, at.x, at.y, sides))


def _labels(page: Page, at: Layout) -> None:
    """The text along both axes, and which axis is which in the corner where neither has any."""
    for mark in at.down:
        y = at.y + mark.middle * at.tall
        page.lines([[(at.x - TICK, y), (at.x, y)]], LIGHT_PAGE.line)
        page.text(
            at.x - POINTER - 3, y, mark.words, size=at.text, across="right", middle=True,
            bold=mark.bold, colour=_ink(mark),
        )  # fmt: skip
    turned = at.level is None
    places = at.level or [mark.middle * at.cell for mark in at.across]
    for mark, place in zip(at.across, places, strict=True):
        x = at.x + mark.middle * at.cell
        page.lines([[(x, at.y - TICK), (x, at.y)]], LIGHT_PAGE.line)
        page.text(
            at.x + place, at.y - POINTER - 3, mark.words, size=at.text, bold=mark.bold,
            across="left" if turned else "center", turned=turned, middle=turned,
            colour=_ink(mark),
        )  # fmt: skip
    for line, words in enumerate(at.corner):
        y = at.y - 15 + 8.5 * line
        page.text(at.x - at.left + 1, y, words, size=style.SMALL, colour=LIGHT_PAGE.secondary)


def _ink(mark: Mark) -> str:
    return LIGHT_PAGE.mark_text if mark.chosen else LIGHT_PAGE.text


def _reach(capture: Capture, head: HeadId, at: Layout) -> float:
    """The right end of what the selected row sees."""
    if at.row is None:
        return at.x + at.size[0]
    seen = seen_cells(capture, head.layer, rows=(at.row, at.row + 1), head=head.head)[0]
    return at.x + at.cell * (1 + int(np.flatnonzero(seen).max(initial=-1)))


def _selected(page: Page, at: Layout, reach: float) -> None:
    """Point at the selected row and column, ring the cell where they meet."""
    half, high = max(at.cell, 2.0) / 2, max(at.tall, 2.0) / 2
    x = None if at.column is None else at.x + (at.column + 0.5) * at.cell
    y = None if at.row is None else at.y + (at.row + 0.5) * at.tall
    if y is not None:
        page.polygon([(at.x, y), (at.x - POINTER, y - 2), (at.x - POINTER, y + 2)], LIGHT_PAGE.mark)
        end = reach if x is None else x - half
        page.lines([[(at.x, y + side), (end, y + side)] for side in (-high, high)], LIGHT_PAGE.mark)
    if x is not None:
        page.polygon([(x, at.y), (x - 2, at.y - POINTER), (x + 2, at.y - POINTER)], LIGHT_PAGE.mark)
        end = at.y + at.size[1] if y is None else y - high
        page.lines([[(x + side, at.y), (x + side, end)] for side in (-half, half)], LIGHT_PAGE.mark)
    if x is not None and y is not None:
        for colour, line in ((LIGHT_PAGE.paper, 1.6), (LIGHT_PAGE.text, 0.7)):
            page.box(x - half, y - high, 2 * half, 2 * high, edge=colour, line=line)
