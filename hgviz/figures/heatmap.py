"""Maps of weights: of one head, of all maps composed, of all heads, over an image, of two heads.

Queries run down and keys across. Widths and heights are in points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil, inf, log2, prod

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Capture, Floats, HeadId, HgvizError, Integers, Map, Prompt
from hgviz.errors import require
from hgviz.figures.cells import (
    KEY,
    LONGEST,
    MAP_COLUMNS,
    OFF,
    QUERY,
    SEEN,
    UNSEEN,
    Bools,
    CaptureFigure,
    Shades,
    Zooms,
    head_details,
    is_signed,
    level_name,
    map_of,
    map_rows,
    read_cells,
    reduction_note,
    seen_cells,
    shades_of,
    table_reduction,
    table_side,
    table_zooms,
    token_in,
    unseen_reason,
    zoom_for,
)
from hgviz.figures.labels import SMALL, axis_marks, elide, size_for, text_width
from hgviz.figures.page import GREY, LABEL_GAP, AxisLabels, Many, Page, boxes_of, draw_head_numbers
from hgviz.figures.spec import Chart, Row, Spec, points
from hgviz.language import short_number
from hgviz.maps.overview import pool
from hgviz.palettes import LIGHT_PAGE, overlay

POINTER = 3.5
CORNER = ("Key →", "Query ↓")
OTHER_KEYS = {"slot": "Slot →", "state": "State →"}
BAR_GAP = 8.0
HEAD_OFF = "switched off"


# --- a map with labels ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Edge:
    """The positions along one side of a map: the text, spans (positions, 2) of its tokens, (-1, -1)
    where the text has nothing, the position that is selected, and whether the first is a null
    group."""

    prompt: Prompt
    spans: Integers
    selected: int | None = None
    has_null: bool = False

    def labels(self, cell: float, size: float, room: float) -> AxisLabels:
        """The labels of cells of this size, at most so long."""
        marks = axis_marks(self.prompt, self.spans, cell, size, room, self.selected, self.has_null)
        return AxisLabels(marks, size)

    def row_labels(
        self, corner: tuple[str, str], room: float,
        cell_sizes: Callable[[float], tuple[float, float]],
    ) -> tuple[float, AxisLabels]:  # fmt: skip
        """What labels of rows take at the left, and the labels; cell_sizes: height and width of a
        cell beside so much. Labels depend on the size of a cell, and that on the room they leave.
        """
        left = room
        least = max(text_width(words, SMALL) for words in corner)
        for attempt in range(4):
            tall, wide = cell_sizes(left)
            labels = self.labels(tall, size_for(min(tall, wide)), room)
            need = max(labels.depth, least) + LABEL_GAP + 1
            if attempt and need <= left:
                break
            left = max(left, need) if attempt else need
        return left, labels


@dataclass(frozen=True, slots=True)
class _Grid:
    """A map on a page: its corner (x, y), the width and height of a cell, how many there are, and
    the labels of rows and columns."""

    page: Page
    x: float
    y: float
    cell: float
    tall: float
    rows: int
    columns: int
    down: AxisLabels
    across: AxisLabels

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the map."""
        return self.cell * self.columns, self.tall * self.rows

    def draw_cells(self, rgb: NDArray[np.uint8], seen: Bools, zooms: Zooms) -> None:
        """Draw the raster, whose last cells may reach beyond the map, and hatch what is not
        seen."""
        high, wide = self.tall * (1 << zooms[0]), self.cell * (1 << zooms[1])
        width, height = rgb.shape[1] * wide, rgb.shape[0] * high
        self.page.image(rgb, self.x, self.y, width, height, cut=self.size)
        if not seen.all():
            boxes = boxes_of(~seen, self.x, self.y, (wide, high))
            self.page.hatch(self.x, self.y, *self.size, boxes)
        self.page.box(self.x, self.y, *self.size, edge=LIGHT_PAGE.line)

    def draw_labels(self, corner: tuple[str, ...] = (), x: float = 0.0) -> None:
        """Draw the labels of the columns above, and, where there is a corner for words that say
        what both are, those of the rows at the left."""
        if corner:
            self.down.draw_down(self.page, self.x, self.y, self.tall)
        self.across.draw_across(self.page, self.x, self.y, self.cell)
        for line, words in enumerate(corner):
            self.page.caption(x, self.y - 15 + 8.5 * line, words)


# --- one head -------------------------------------------------------------------------------------

LARGEST_CELL, LEAST_SIDE = 40.0, 48.0  # least: of a map of few rows or columns
MAX_CELLS = 1600  # across, however wide the page: files of a few megabytes, and little memory
FEW_ROWS = 1024  # whose labels may be long
SUMS_WIDTH, SUMS_GAP, SUMS_FOOT = 46.0, 7.0, 9.0  # of the bars of row sums, and their scale


class HeadMap(CaptureFigure):
    """The map of the selected head."""

    def draw(self, page: Page, spec: Spec) -> None:
        head = spec.selection.head_id
        map_of(self.capture, head)
        details = head_details(self.capture, head, self.role(head))
        _draw_map(page, spec, self.capture, page.heading(f"Head {head}", details))

    def rows(self, spec: Spec) -> Iterator[Row]:
        """A row for each cell, reduced as the figure is where it has more than dots."""
        head = spec.selection.head_id
        map_of(self.capture, head)
        _selected_edges(spec, self.capture)
        yield from _map_table(self.capture, head, str(head), spec)


class Rollout(CaptureFigure):
    """The one map of a composed capture (Abnar and Zuidema 2020)."""

    def draw(self, page: Page, spec: Spec) -> None:
        layers, limits = self.capture.spec.layers, spec.display.limits
        require(
            len(layers) == 1 and layers[0].name.startswith("rollout"),
            "this capture is not an attention rollout: this figure draws the result of one",
            "Compute it first, as tasks.panel does",
        )
        recipe, _, ways = layers[0].name.partition(": ")[2].partition("; ")
        if limits is None:
            maps = map_of(self.capture, HeadId(0, 0))
            weights = maps.read(maps.heads[0], zoom=zoom_for(max(maps.shape[1:]), page.width))
            high = _usual_limit(weights)
            if 0 < 1.5 * high < np.abs(weights).max():  # those of the first rows are far larger
                high = float(f"{high:.2g}")
                limits = (-high if (weights < 0).any() else 0.0), high
        selection, display = spec.selection, replace(spec.display, limits=limits)
        spec = replace(spec, selection=replace(selection, layer=0, head=0), display=display)
        _draw_map(page, spec, self.capture, page.heading("Attention rollout", recipe), ways)

    def rows(self, spec: Spec) -> Iterator[Row]:
        yield from _map_table(self.capture, HeadId(0, 0), "all", spec)


def _map_table(capture: Capture, head: HeadId, name: str, spec: Spec) -> Iterator[Row]:
    zooms = zooms_of(capture, head, points(spec.width))
    yield MAP_COLUMNS
    yield from map_rows(capture, head, name, table_zooms(map_of(capture, head).shape[1:], zooms))


def _draw_map(page: Page, spec: Spec, capture: Capture, top: float, note: str = "") -> None:
    """Draw the map of the selected head below top, and a note below it; closes the page."""
    head = spec.selection.head_id
    maps, is_off = map_of(capture, head), head in capture.off
    zooms = (0, 0) if is_off else zooms_of(capture, head, page.width)
    weights = read_cells(maps, head.head, zooms)
    shades = shades_of(spec.display, is_signed(capture, head), [weights])
    sums_room = 0.0 if is_off else _sums_room(capture, head, page.width)
    rows, columns = _selected_edges(spec, capture)
    layer, levels = capture.spec.layers[head.layer], capture.spec.levels
    unit = capture.key_prompt(head.layer).unit
    is_of_two = levels[layer.level].sequence != levels[layer.key_level].sequence and unit != "slot"
    key_name, query_name = ("Source →", "Target ↓") if is_of_two else CORNER
    corner = OTHER_KEYS.get(unit, key_name), query_name
    right = BAR_GAP + sums_room + shades.bar_width()
    counts = maps.shape[1:]

    def cell_sizes(left: float) -> tuple[float, float]:
        return _cell_sizes(page.width, page.width - left - right, *counts)

    room = _label_room(page.width, counts[0])
    left, down = rows.row_labels(corner, room, cell_sizes)
    tall, cell = cell_sizes(left)
    across = columns.labels(cell, down.size, room).levelled(cell, cell * counts[1])
    x = (page.width - left - cell * counts[1] - right) / 2 + left
    y = top + max(across.depth, 17.0) + LABEL_GAP + 1
    grid = _Grid(page, x, y, cell, tall, *counts, down, across)
    width, height = grid.size
    if is_off:
        page.off_card(x, y, width, height)
    else:
        seen = seen_cells(capture, head.layer, zooms, head=head.head)
        grid.draw_cells(shades.paint(weights, seen), seen, zooms)
        shades.draw_upright(page, x + width + sums_room + BAR_GAP, y, height)
    if sums_room:
        sums = RowSumBars.of(maps, head.head, zooms[0])
        sums.draw(page, shades, x + width + SUMS_GAP, y, tall * (1 << zooms[0]), y + height)
    grid.draw_labels(corner, x - left + 1)
    _draw_selection(grid, capture, head, rows.selected, columns.selected)
    notes = [HEAD_OFF if is_off else unseen_reason(capture, [head])]
    if any(zooms):
        notes.append(reduction_note(zooms))
        page.note(notes[-1])
    bottom = y + height + (SUMS_FOOT if sums_room else 0.0) + 6
    end = page.legend(notes, x - left, bottom, page.width - x + left)
    page.close(page.footnotes([note] if note else [], x - left, end) + 2)


def zooms_of(capture: Capture, head: HeadId, width: float) -> Zooms:
    """The zooms at which a map on a page so wide has no more cells than dots, whatever its labels.

    A raster with more would lose some of them, peaks too, wherever it is shown in dots.
    """
    rows, columns = map_of(capture, head).shape[1:]
    beside = max(_label_room(width, rows) + LABEL_GAP + 1, 40.0) + BAR_GAP + 36
    beside += _sums_room(capture, head, width)
    tall, wide = _cell_sizes(width, width - beside, rows, columns)
    least, most = min(tall, wide), max(rows, columns)

    def zoom(count: int, side: float) -> int:
        return max(zoom_for(count, side * count), ceil(log2(count / MAX_CELLS)))

    common = zoom(most, least)
    down, across = (  # a side that is stretched may fit where the other does not
        min(common, zoom(count, side)) if count < most and side > least else common
        for count, side in ((rows, tall), (columns, wide))
    )
    return down, across


def _cell_sizes(width: float, room: float, rows: int, columns: int) -> tuple[float, float]:
    """Height and width of a cell on a page so wide, with so much room for all columns: a square,
    unless few rows or columns would be no more than a line."""
    cell = min(room / columns, LARGEST_CELL, 1.35 * width / rows)
    tall, wide = (max(cell, min(LARGEST_CELL, LEAST_SIDE / count)) for count in (rows, columns))
    return tall, min(wide, room / columns)


def _label_room(width: float, rows: int) -> float:
    """The room for labels of rows: where few of many rows are named, cells count for more."""
    return min(0.24 * width, 64.0) if rows <= FEW_ROWS else min(0.2 * width, 64.0) - LABEL_GAP - 1


def _selected_edges(spec: Spec, capture: Capture) -> tuple[Edge, Edge]:
    """Rows and columns of the selected layer. Raises HgvizError for tokens that are not there."""
    chosen = spec.selection
    layer = capture.spec.layers[chosen.layer]
    queries, keys = capture.query_prompt(layer.index), capture.key_prompt(layer.index)
    row = column = None
    if chosen.query is not None:
        row = capture.row(layer.index, token_in(queries, chosen.query))
    if chosen.key is not None:
        column = capture.column(layer.index, token_in(keys, chosen.key))
    return (
        Edge(queries, capture.query_spans(layer.index), row, capture.null(layer.level)),
        Edge(keys, capture.key_spans(layer.index), column, capture.null(layer.key_level)),
    )


def _draw_selection(
    grid: _Grid, capture: Capture, head: HeadId, row: int | None, column: int | None
) -> None:
    """Point at the selected row and column, and ring the cell where they meet."""
    page, mark = grid.page, LIGHT_PAGE.mark
    half, high = max(grid.cell, 2.0) / 2, max(grid.tall, 2.0) / 2
    x = None if column is None else grid.x + (column + 0.5) * grid.cell
    y = None if row is None else grid.y + (row + 0.5) * grid.tall
    if row is not None and y is not None:
        tip = grid.x - POINTER
        page.polygon([(grid.x, y), (tip, y - 2), (tip, y + 2)], mark)
        if x is None:  # up to the last key that the row sees
            seen = seen_cells(capture, head.layer, rows=(row, row + 1), head=head.head)[0]
            end = grid.x + grid.cell * (1 + int(np.flatnonzero(seen).max(initial=-1)))
        else:
            end = x - half
        page.lines([[(grid.x, y + side), (end, y + side)] for side in (-high, high)], mark)
    if x is not None:
        tip = grid.y - POINTER
        page.polygon([(x, grid.y), (x - 2, tip), (x + 2, tip)], mark)
        end = grid.y + grid.size[1] if y is None else y - high
        page.lines([[(x + side, grid.y), (x + side, end)] for side in (-half, half)], mark)
    if x is not None and y is not None:
        for colour, line in ((LIGHT_PAGE.paper, 1.6), (LIGHT_PAGE.text, 0.7)):
            page.box(x - half, y - high, 2 * half, 2 * high, edge=colour, line=line)


def _sums_room(capture: Capture, head: HeadId, width: float) -> float:
    """What the bars of row sums take beside a signed map on a page so wide, 0 for none."""
    has_room = width >= 180 and is_signed(capture, head)
    return min(SUMS_WIDTH, 0.135 * width) + SUMS_GAP if has_room else 0.0


@dataclass(frozen=True, slots=True)
class RowSumBars:
    """The sums of positive and of negative weights of each row (rows,), or their means over each
    run of rows that a figure puts together."""

    positive: Many
    negative: Many

    @classmethod
    def of(cls, maps: Map, head: int, zoom: int = 0) -> RowSumBars:
        """The sums of a head, read 256 rows at a time."""
        blocks = []
        for start in range(0, maps.shape[1], 256):
            weights = maps.read(head, (start, min(start + 256, maps.shape[1]))).astype(np.float64)
            blocks.append([np.maximum(weights, 0).sum(1), np.minimum(weights, 0).sum(1)])
        both = np.concatenate(blocks, axis=1)
        starts = np.arange(0, both.shape[1], 1 << zoom)
        counts = np.diff(np.append(starts, both.shape[1]))
        return cls(*(np.add.reduceat(both, starts, axis=1) / counts))

    def draw(self, page: Page, shades: Shades, x: float, y: float, row: float, end: float) -> None:
        """Draw bars of rows that are so high from (x, y) down to end, and a line at each sum."""
        low, high = float(self.negative.min(initial=0)), float(self.positive.max(initial=0))
        width = min(SUMS_WIDTH, 0.135 * page.width)
        scale = width / max(high - low, 1e-30)
        zero = x - low * scale
        limit = max(map(abs, shades.limits)) or 1.0
        edges = np.minimum(y + np.arange(len(self.positive) + 1) * row, end)
        for values, sign in ((self.positive, 1.0), (self.negative, -1.0)):
            fill = shades.paint(np.array([sign * 0.3 * limit], np.float32))[0] / 255
            across = np.repeat(zero + values * scale, 2)
            down = np.stack([edges[:-1], edges[1:]], axis=1).ravel()
            outline = [(zero, edges[0]), *zip(across, down, strict=True), (zero, edges[-1])]
            page.polygon(outline, tuple(fill))
        sums = zero + (self.positive + self.negative) * scale
        ends = zip(sums, edges, edges[1:], strict=False)
        lines = [[(at, top), (at, bottom)] for at, top, bottom in ends]
        page.lines(lines, LIGHT_PAGE.text, min(1.2, max(0.5, row / 6)))
        page.lines([[(zero, y), (zero, end)]], GREY, 0.5)
        page.caption(x + width / 2, y - 6, "Row sum", across="center")
        numbers = {
            place: short_number(float(f"{value:.2g}"), True)
            for value, place in ((low, x), (high, x + width))
            if value
        }
        if sum(text_width(words, SMALL) / 2 for words in numbers.values()) + 2 > width:
            del numbers[x if -low < high else x + width]  # 0 and the farther end are enough
        for place, words in numbers.items():
            page.small(place, end + 7.5, words, across="center")


# --- all heads ------------------------------------------------------------------------------------

SHRINK = 0.7  # of a map's side from one level to the next coarser
WALL_GAP, MARGIN = 3.0, 4.0  # between maps; of the shape around them
LARGEST_MAP, TALLEST = 66.0, 640.0  # a map, and all of them
QUANTILE = 0.995  # of the weights of a head, up to which its colours reach
MOST_WALL_CELLS = 1 << 18  # of the table of a wall


@dataclass(frozen=True, slots=True)
class _WallRow:
    """A layer: the text of its queries, such as the encoder's, rank of its finer level, top, size
    of its maps, zooms they are read at."""

    layer: int
    sequence: str
    rank: int
    y: float
    width: float
    height: float
    zooms: Zooms

    @property
    def bottom(self) -> float:
        return self.y + self.height


class Wall(CaptureFigure):
    """The maps of all heads of all layers, in the shape of the model, as BertViz's model view
    (Vig 2019)."""

    def rows(self, spec: Spec) -> Iterator[Row]:
        """A row for each cell of each head, in cells so large that they are not too many."""
        layers = [layer for layer in self.capture.spec.layers if layer.heads]
        maps = [map_of(self.capture, HeadId(layer.index, layer.heads[0])) for layer in layers]
        zoom, shapes = 0, [row.shape for row in maps]
        while sum(n * (-(-a >> zoom)) * (-(-b >> zoom)) for n, a, b in shapes) > MOST_WALL_CELLS:
            zoom += 1
        yield MAP_COLUMNS
        for layer, row in zip(layers, maps, strict=True):
            for number in row.heads:
                head = HeadId(layer.index, number)
                yield from map_rows(self.capture, head, str(head), (zoom, zoom))

    def draw(self, page: Page, spec: Spec) -> None:
        capture = self.capture
        layers = [layer for layer in capture.spec.layers if layer.heads]
        require(layers, "this capture has no heads: all were removed from the model")
        maps = {row.index: map_of(capture, HeadId(row.index, row.heads[0])) for row in layers}
        heads = [HeadId(layer, head) for layer, row in maps.items() for head in row.heads]
        count = 1 + max(head.head for head in heads)
        titles = max(text_width(f"layer {layer}", SMALL) for layer in maps) + 5
        names = {layer: level_name(capture, layer) for layer in maps}
        if max(text_width(name, SMALL) for name in names.values()) > page.width / 3:
            names = {layer: level_name(capture, layer, with_own=False) for layer in maps}
        has_shape = len({(layer.level, layer.key_level) for layer in layers}) > 1
        left = titles + (max(text_width(name, SMALL) for name in names.values()) or -5)
        left += 6 + MARGIN * has_shape
        last = text_width(str(count - 1), SMALL) / 2
        right = MARGIN if has_shape else max(0.0, last - (page.width - left) / count / 2)
        pitch = (page.width - left - right) / count
        details = f"{len(maps):,} layers, {len(heads):,} heads"
        top = page.heading("All heads", details) + SMALL + 8
        side = min(pitch - min(WALL_GAP, 0.1 * pitch), LARGEST_MAP)
        rows = self._rows(maps, side, top, page.width)
        if (height := rows[-1].bottom - top) > TALLEST:
            side *= TALLEST / height
            rows = self._rows(maps, side, top, page.width)
        pitch = min(pitch, 1.3 * side)
        start = (page.width - left - right - pitch * count) / 2
        half = pitch * count / 2
        middle = start + left + half
        if has_shape:
            for _, stack in groupby(rows, key=lambda row: row.sequence):
                _draw_shape(page, list(stack), middle, half)
        draw_head_numbers(page, middle - half, pitch, count, top - MARGIN - 3, 4)
        before = -inf
        for row in rows:  # number and level of every layer that has the room for a line
            y = row.y + row.height / 2
            if y >= before + SMALL * 1.15:
                page.small(start, y, f"layer {row.layer}", middle=True)
                page.caption(start + titles, y, names[row.layer], middle=True)
                before = y
        places = [(head + 0.5 - count / 2) * pitch for head in range(count)]  # at the finest level
        shades = self._draw_maps(page, spec, maps, rows, middle, places)
        bottom = rows[-1].bottom + 2 * MARGIN
        notes = [unseen_reason(capture, heads)]
        if shades:
            edge = middle + places[0] - side / 2
            bottom = shades.draw_level(page, edge, bottom, page.width - edge) + 2
        else:
            notes.append(f"colours of each map end at its {100 * QUANTILE:.3g} % quantile")
            if any(is_signed(capture, head) for head in heads):
                notes.append("blue: weights below 0, red: above 0")
        if capture.off:
            notes.append("hatched and framed: switched off")
        if any(zooms := max((row.zooms for row in rows), key=sum)):
            page.note(f"{reduction_note(zooms)} or fewer")
        page.close(page.legend(notes, 0, bottom, page.width, is_hatched=False) + 2)

    def _rows(self, maps: dict[int, Map], side: float, top: float, page: float) -> list[_WallRow]:
        """Where each layer lies when a square map at full resolution is side points wide."""
        levels, rows = self.capture.spec.levels, list[_WallRow]()
        same = [[b for b in levels if b.sequence == a.sequence] for a in levels]
        ranks = [row.index(level) for level, row in zip(levels, same, strict=True)]  # 0: finest
        before: object = None
        for layer in (layer for layer in self.capture.spec.layers if layer.index in maps):
            _, queries, keys = maps[layer.index].shape
            rank = min(ranks[layer.level], ranks[layer.key_level])
            longest = side * SHRINK**rank
            places, sequence, y = (layer.level, layer.key_level), levels[layer.level].sequence, top
            if rows:
                is_near = places == before or layer.role == "cross"
                y = rows[-1].bottom
                y += min(WALL_GAP, 0.1 * side) if is_near else min(8.0, 0.3 * side)
                if rows[-1].sequence != sequence:
                    y += min(16.0, 0.3 * side)  # between an encoder and a decoder
            zoom = zoom_for(max(queries, keys), longest, page)
            # a map whose two texts differ greatly in length stays visible
            width = max(longest * min(1.0, keys / queries), 3.0)
            height = max(longest * min(1.0, queries / keys), 3.0)
            sides = (queries, height), (keys, width)
            tall, wide = (min(zoom, zoom_for(count, length, page)) for count, length in sides)
            rows.append(_WallRow(layer.index, sequence, rank, y, width, height, (tall, wide)))
            before = places
        return rows

    def _draw_maps(
        self, page: Page, spec: Spec, maps: dict[int, Map], rows: list[_WallRow], middle: float,
        places: list[float],
    ) -> Shades | None:  # fmt: skip
        """Draw every map; returns the colours that all of them share, if they do."""
        capture, display = self.capture, spec.display
        weights: dict[HeadId, Floats] = {
            head: read_cells(maps[row.layer], head.head, row.zooms)
            for row in rows
            for head in (HeadId(row.layer, number) for number in maps[row.layer].heads)
            if head not in capture.off
        }
        signed = {head: is_signed(capture, head) for head in weights}
        shared = None
        if display.shared or display.limits is not None:
            shared = shades_of(display, any(signed.values()), weights.values())
        for row in rows:
            shape, size = maps[row.layer].shape[1:], (row.width, row.height)
            for number in maps[row.layer].heads:
                x = middle + places[number] * SHRINK**row.rank - row.width / 2
                head = HeadId(row.layer, number)
                if head not in weights:
                    page.off_card(x, row.y, *size)
                    continue
                cells = weights[head]
                shades = shared or shades_of(
                    display, signed[head], [np.array([_usual_limit(cells)], np.float32)]
                )
                # the last cells of a raster may reach beyond the matrix
                height = row.height * (cells.shape[0] << row.zooms[0]) / shape[0]
                width = row.width * (cells.shape[1] << row.zooms[1]) / shape[1]
                seen = seen_cells(capture, row.layer, row.zooms, head=number)
                page.image(shades.paint(cells, seen), x, row.y, width, height, cut=size)
                page.box(x, row.y, *size, edge=LIGHT_PAGE.line, line=0.3)
        return shared


def _usual_limit(weights: Floats) -> float:
    """The QUANTILE of sizes of weights, without the first rows, which see few keys, so that their
    weights are the largest by far."""
    later = weights[len(weights) // 8 :]
    sizes = np.abs(later[np.isfinite(later) & (later != 0)])
    return float(np.quantile(sizes, QUANTILE)) if sizes.size else 0.0


def _draw_shape(page: Page, rows: list[_WallRow], middle: float, half: float) -> None:
    """Draw the shape of the model behind its maps; resampling rows join two levels."""
    halves = [half * SHRINK**row.rank + MARGIN for row in rows]
    tints, last = LIGHT_PAGE.silhouette, len(rows) - 1
    for number, row in enumerate(rows):
        upper = MARGIN if number == 0 else (row.y - rows[number - 1].bottom) / 2
        lower = MARGIN if number == last else (rows[number + 1].y - row.bottom) / 2
        above = min(halves[number], halves[max(number - 1, 0)])
        below = min(halves[number], halves[min(number + 1, last)])
        right = [(above, row.y - upper), (halves[number], row.y), (halves[number], row.bottom),
                 (below, row.bottom + lower)]  # fmt: skip
        corners = [*right, *((-x, y) for x, y in reversed(right))]
        fill = tints[min(row.rank, len(tints) - 1)]
        page.polygon([(middle + x, y) for x, y in corners], fill)


NARROWEST, LARGEST_IMAGE, IMAGE_GAP, IMAGE_TITLE = 70.0, 200.0, 8.0, 12.0
NAMED_HEADS = 12  # in the note about weights that lie on no patch


@dataclass(frozen=True, slots=True)
class PatchWeights:
    """The weights of a head over an image: grid (rows, columns) of patches, added (n,) of the
    positions before them, such as [CLS]."""

    head: HeadId
    grid: Floats
    added: Floats


class ImagePatches(CaptureFigure):
    """Attention of one query over its image, as in Caron et al. 2021 (DINO), but patch by patch:
    weights are not interpolated."""

    def picture(self) -> tuple[NDArray[np.uint8], tuple[int, int]]:
        """The image, and how many rows and columns of patches it has. Raises HgvizError where
        there is none."""
        signal = self.capture.prompt.signal
        if signal is None or signal.grid is None or signal.picture is None:
            raise HgvizError(
                "this capture is not of an image with patches: "
                f"it has {len(self.capture.prompt):,} tokens",
                "Choose another kind, such as map",
            )
        return signal.picture, signal.grid

    def query(self, spec: Spec) -> int | None:
        """The position whose weights are shown: the one asked for, else the first where the model
        adds one to the patches ([CLS]); None for the mean of all."""
        added = len(self.capture.prompt) - prod(self.picture()[1])
        if spec.selection.query is not None:
            return token_in(self.capture.prompt, spec.selection.query)
        return 0 if added > 0 else None

    def weights(self, spec: Spec) -> list[PatchWeights]:
        """The weights of each head that is shown. Raises HgvizError for heads that are missing."""
        grid, query, heads = self.picture()[1], self.query(spec), []
        for head in spec.heads or (spec.selection.head_id,):
            maps = map_of(self.capture, head)
            require(
                maps.shape[1:] == (len(self.capture.prompt),) * 2,
                f"layer {head.layer} does not attend from the image to the image: "
                f"its maps are {maps.shape[1]:,} × {maps.shape[2]:,}",
                "Choose another layer",
            )
            row = maps.read(head.head, rows=None if query is None else (query, query + 1)).mean(0)
            added = len(row) - prod(grid)
            heads.append(PatchWeights(head, row[added:].reshape(grid), row[:added]))
        return heads

    def rows(self, spec: Spec) -> Iterator[Row]:
        """A row for each patch of each head, by row and column from 0; the positions that the model
        adds to them have neither."""
        pieces, query = self.capture.prompt.pieces, self.query(spec)
        yield "head", "query_text", "key_text", "row", "column", "weight", "state"
        name = "" if query is None else pieces[query]
        for patches in self.weights(spec):
            head, state = str(patches.head), OFF if patches.head in self.capture.off else SEEN
            for number, weight in enumerate(patches.added.tolist()):
                yield head, name, pieces[number], "", "", float(weight), state
            for (row, column), weight in np.ndenumerate(patches.grid):
                yield head, name, f"{row},{column}", row, column, float(weight), state

    def draw(self, page: Page, spec: Spec) -> None:
        capture, (picture, (rows_of, columns_of)) = self.capture, self.picture()
        heads, query = self.weights(spec), self.query(spec)
        signed = any(is_signed(capture, patches.head) for patches in heads)
        on = [patches for patches in heads if patches.head not in capture.off]
        shades = shades_of(spec.display, signed, [patches.grid for patches in on])
        words = "all queries" if query is None else f"query {capture.prompt.pieces[query]}"
        top = page.heading("Attention over the image", f"from {words}")
        count = len(heads) + 1
        columns = max(1, min(count, int((page.width + IMAGE_GAP) // (NARROWEST + IMAGE_GAP))))
        width = min((page.width - IMAGE_GAP * (columns - 1)) / columns, LARGEST_IMAGE)
        height = width * picture.shape[0] / picture.shape[1]
        pitch = height + IMAGE_TITLE + 10
        page.small(0, top + IMAGE_TITLE - 3, "Image")
        page.image(picture, 0, top + IMAGE_TITLE, width, height)
        patch = -1 if query is None else query - len(heads[0].added)
        if patch >= 0:  # what is added to the patches has no place
            row, column = divmod(patch, columns_of)
            wide, high = width / columns_of, height / rows_of
            for colour, line in ((LIGHT_PAGE.paper, 1.8), (LIGHT_PAGE.mark, 0.9)):
                page.box(column * wide, top + IMAGE_TITLE + row * high, wide, high, edge=colour,
                         line=line)  # fmt: skip
        for number, patches in enumerate(heads, 1):
            row, column = divmod(number, columns)
            x, y = column * (width + IMAGE_GAP), top + IMAGE_TITLE + row * pitch
            is_off, role = patches.head in capture.off, self.role(patches.head)
            details = f", {HEAD_OFF}" if is_off else f"  ·  {role}" if role else ""
            page.small(x, y - 3, elide(f"Head {patches.head}{details}", width, SMALL))
            shown = picture if is_off else overlay(picture, shades.paint(patches.grid))
            page.image(shown, x, y, width, height)
            page.box(x, y, width, height, edge=LIGHT_PAGE.line)
        end = shades.draw_half(page, top + ((count - 1) // columns + 1) * pitch)
        notes = []
        if on and len(on[0].added):
            sums = [(patches.head, 100 * float(patches.added.sum())) for patches in on]
            shares = ", ".join(f"{head} {share:.0f} %" for head, share in sums[:NAMED_HEADS])
            more = f" and {len(on) - NAMED_HEADS} more" if len(on) > NAMED_HEADS else ""
            added = capture.prompt.pieces[: len(on[0].added)]
            names = ", ".join([*added[:2], "…"] if len(added) > 2 else added)
            notes = [f"weight outside the patches, on {names}: {shares}{more}"]
        page.close(page.footnotes(notes, 0.0, end + 2) + 3)


STATES = {(True, True): SEEN, (True, False): "only A", (False, True): "only B"}


@dataclass(frozen=True, slots=True, eq=False)
class Three(Chart):
    """A head of A, one of B and their difference, on one grid, each cell of 2^zoom x 2^zoom.

    maps: A, B and A - B; seen: where each has anything; shape: of the grid in cells of zoom 0;
    signed: whether A or B has weights below 0; down, across: its sides; names: of A and B.
    """

    maps: tuple[Floats, Floats, Floats]
    seen: tuple[Bools, Bools, Bools]
    shape: tuple[int, int]
    zoom: int
    signed: bool
    down: Edge
    across: Edge
    names: tuple[str, str]

    def rows(self) -> list[Row]:
        table: list[Row] = [(*QUERY, *KEY, "A", "B", "A - B", "state", "reduction")]
        columns = table_side(self.across.prompt, self.across.spans, self.zoom)
        reduction = table_reduction((self.zoom, self.zoom))
        for i, row in enumerate(table_side(self.down.prompt, self.down.spans, self.zoom)):
            for j, column in enumerate(columns):
                seen = [bool(cells[i, j]) for cells in self.seen]
                weights = (
                    float(weights[i, j]) if is_seen else ""
                    for weights, is_seen in zip(self.maps, seen, strict=True)
                )
                state = STATES.get((seen[0], seen[1]), UNSEEN)
                table.append((*row, *column, *weights, state, reduction))
        return table

    def draw(self, page: Page, spec: Spec) -> None:
        top = page.heading(self.title, self.more)
        in_row, gap, title_room = (3 if page.width >= 330 else 2), 12.0, 12.0
        # one range for A and B; where weights go below 0, the same for the difference
        weights = shades_of(spec.display, self.signed, self.maps[: 3 if self.signed else 2])
        own = replace(spec.display, limits=None)
        difference = weights if self.signed else shades_of(own, True, self.maps[2:])
        shades = weights, weights, difference
        rows, columns = self.shape

        def cell_sizes(left: float) -> tuple[float, float]:
            room = (page.width - left - gap * (in_row - 1) - 4) / in_row  # 4: of the last label
            cell = min(room / max(columns, 1), 22.0, 1.5 * room / max(rows, 1))
            return cell, cell

        left, down = self.down.row_labels(CORNER, max(34.0, 0.16 * page.width), cell_sizes)
        cell = cell_sizes(left)[0]
        across = self.across.labels(cell, down.size, 44.0).levelled(cell, cell * columns)
        depth = max(across.depth, 15.0) + LABEL_GAP
        most = max(self.shape)
        chart = self._at_zoom(zoom_for(most, cell * most, page.width))
        width, height = cell * columns, cell * rows
        x, y, bottom = left, top, top
        names = f"A  {self.names[0]}", f"B  {self.names[1]}", "A − B"
        for number, name in enumerate(names):
            if number == in_row:
                x, y = left, bottom + 8
            page.bold(x, y + title_room - 4, name, width)
            grid = _Grid(page, x, y + title_room + depth, cell, cell, rows, columns, down, across)
            rgb = shades[number].paint(chart.maps[number], chart.seen[number])
            grid.draw_cells(rgb, chart.seen[number], (chart.zoom, chart.zoom))
            grid.draw_labels(CORNER if x == left else ())
            x, bottom = x + width + gap, max(bottom, grid.y + height)
        bars = [("Weight", weights), ("Difference, A − B", difference)]
        if self.signed:
            bars = [("Weight, and difference", weights)]
        end = _draw_colours(page, bars, left, width + gap, x, bottom, height, in_row)
        notes = list(self.notes)
        if chart.zoom:
            notes.append(reduction_note((chart.zoom, chart.zoom)))
            page.note(notes[-1])
        page.close(page.footnotes(notes, 0.0 if in_row == 2 else left, end) + 5)

    def _at_zoom(self, zoom: int) -> Three:
        """The maps with no more cells than dots, the largest of those that share one."""
        more = zoom - self.zoom
        if more <= 0:
            return self
        a, b = (pool(weights, more, signed=self.signed) for weights in self.maps[:2])
        difference = pool(self.maps[2], more, signed=True)
        in_a, in_b, in_both = (pool(seen.astype(np.float32), more) > 0 for seen in self.seen)
        return replace(self, maps=(a, b, difference), seen=(in_a, in_b, in_both), zoom=zoom)


def _draw_colours(
    page: Page, bars: list[tuple[str, Shades]], left: float, pitch: float, x: float,
    bottom: float, height: float, in_row: int,
) -> float:  # fmt: skip
    """Draw the colour bars of three maps, which begin `pitch` apart from left on; x: right of the
    last map, bottom: below it. Returns where they end."""

    def draw(name: str, shades: Shades, x: float, y: float, room: float) -> float:
        page.caption(x, y, elide(name, room, SMALL))
        return shades.draw_level(page, x, y + 4, room)

    least = max(72.0, *(text_width(name, SMALL) for name, _ in bars))
    if in_row == 2 and page.width - x >= least:  # beside the last map
        end = bottom - height
        for name, shades in bars:
            end = draw(name, shades, x, end + 6, page.width - x) + 6
        return max(end, bottom)
    if len(bars) == 1:  # below the middle of all three
        width = 3 * pitch - 12
        start = left + max(0.0, (width - min(max(width, least), LONGEST)) / 2)
        return draw(*bars[0], start, bottom + 12, page.width - start)
    half = (page.width - left - 24) / 2
    start = left + max(2 * pitch, min(half, LONGEST) + 24)
    start = start if page.width - start >= least else left + half + 24
    first = draw(*bars[0], left, bottom + 12, start - left - 24)
    return max(first, draw(*bars[1], start, bottom + 12, page.width - start))
