"""Maps with their text on both sides: of one head, of all maps composed, of two heads compared.

Queries run down and keys across. Widths and heights are in points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Capture, Display, Floats, HeadId, HgvizError, Integers, Map, Prompt
from hgviz.figures.charts import Chart, Row
from hgviz.figures.content import Looked
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
from hgviz.figures.paper.labels import Mark, axis_marks, elide, level, size_for
from hgviz.figures.paper.page import Page, boxes_of
from hgviz.figures.paper.shades import (
    LONGEST,
    Shades,
    bar_width,
    level_bar,
    shades_of,
    upright_bar,
)
from hgviz.figures.spec import Spec
from hgviz.figures.unseen import reason, seen_cells
from hgviz.language import short_number
from hgviz.maps.overview import pool
from hgviz.palettes import LIGHT_PAGE

Bools = NDArray[np.bool_]
Many = NDArray[np.float64]

TICK, POINTER = 2.5, 3.5
LABEL_GAP = POINTER + 3  # between a map and its labels
CORNER = ("Key →", "Query ↓")
OTHER_KEYS = {"slot": "Slot →", "state": "State →"}
BAR_GAP = 8.0
HEAD_OFF = "off: this head is switched off"


# --- a map with labels ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Labels:
    """The text of one axis: marks, the size of their words, and for words that are written level
    over an axis where their middles lie."""

    marks: list[Mark]
    size: float
    level: list[float] | None = None

    @property
    def depth(self) -> float:
        """What the words take across their axis."""
        if self.level is not None:
            return self.size
        return max((style.extent(one.words, self.size, one.bold) for one in self.marks), default=0)


@dataclass(frozen=True, slots=True)
class _Axis:
    """The positions along one side: the text, spans (positions, 2) of its tokens, the position
    that is selected, and whether the first is a null group."""

    prompt: Prompt
    spans: Integers
    selected: int | None = None
    has_null: bool = False

    def labels(self, cell: float, size: float, room: float) -> _Labels:
        """The labels of cells of this size, at most so long."""
        marks = axis_marks(self.prompt, self.spans, cell, size, room, self.selected, self.has_null)
        return _Labels(marks, size)


@dataclass(frozen=True, slots=True)
class _Grid:
    """Where a map lies on the page (its corner x, y), the width and height of a cell, and the
    labels of rows and columns."""

    page: Page
    x: float
    y: float
    cell: float
    tall: float
    rows: int
    columns: int
    down: _Labels
    across: _Labels

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

    def draw_rows(self) -> None:
        """Draw the labels of the rows at the left."""
        for mark in self.down.marks:
            y = self.y + mark.middle * self.tall
            self.page.lines([[(self.x - TICK, y), (self.x, y)]], LIGHT_PAGE.line)
            self.page.text(
                self.x - LABEL_GAP, y, mark.words, size=self.down.size, across="right",
                middle=True, bold=mark.bold, colour=_ink(mark),
            )  # fmt: skip

    def draw_columns(self) -> None:
        """Draw the labels of the columns above, turned where they would meet."""
        turned = self.across.level is None
        places = self.across.level or [mark.middle * self.cell for mark in self.across.marks]
        for mark, place in zip(self.across.marks, places, strict=True):
            x = self.x + mark.middle * self.cell
            self.page.lines([[(x, self.y - TICK), (x, self.y)]], LIGHT_PAGE.line)
            self.page.text(
                self.x + place, self.y - LABEL_GAP, mark.words, size=self.across.size,
                bold=mark.bold, across="left" if turned else "center", turned=turned,
                middle=turned, colour=_ink(mark),
            )  # fmt: skip

    def draw_corner(self, words: tuple[str, str], x: float) -> None:
        """Say what columns and rows are, where neither has labels."""
        for line, name in enumerate(words):
            y = self.y - 15 + 8.5 * line
            self.page.text(x, y, name, size=style.SMALL, colour=LIGHT_PAGE.secondary)


def _ink(mark: Mark) -> str:
    return LIGHT_PAGE.mark_text if mark.chosen else LIGHT_PAGE.text


def _fit_rows(
    axis: _Axis,
    corner: tuple[str, str],
    room: float,
    cell_sizes: Callable[[float], tuple[float, float]],
) -> tuple[float, _Labels]:
    """What labels of rows take at the left, and the labels; cell_sizes: height and width of a cell
    beside so much. Labels depend on the size of a cell, and that on the room they leave."""
    left = room
    least = max(style.extent(words, style.SMALL) for words in corner)
    for attempt in range(4):
        tall, wide = cell_sizes(left)
        labels = axis.labels(tall, size_for(min(tall, wide)), room)
        need = max(labels.depth, least) + LABEL_GAP + 1
        if attempt and need <= left:
            break
        left = max(left, need) if attempt else need
    return left, labels


def _fit_columns(axis: _Axis, cell: float, size: float, room: float) -> _Labels:
    """The labels of columns, level where they fit."""
    labels = axis.labels(cell, size, room)
    return replace(labels, level=level(labels.marks, cell, cell * len(axis.spans), size))


# --- one head -------------------------------------------------------------------------------------

LARGEST_CELL, LEAST_SIDE = 40.0, 48.0  # least: of a map of few rows or columns
MAX_CELLS = 1600  # across, however wide the page: files of a few megabytes, and little memory
FEW_ROWS = 1024  # whose labels may be long
SUMS_WIDTH, SUMS_GAP, SUMS_FOOT = 46.0, 7.0, 9.0  # of the bars of row sums, and their scale


def compose_map(page: Page, spec: Spec, looked: Looked) -> None:
    """Place the map of the selected head on the page."""
    capture, head = looked.capture, spec.selection.head_id
    map_of(capture, *head)
    if spec.title is not None:
        top = heading(page, spec.title, "")
    else:
        role = looked.facts[head].role if head in looked.facts else ""
        parts = [level_name(capture, head.layer), activation_of(capture, head), role]
        top = heading(page, f"Head {head}", "  ·  ".join(filter(None, parts)))
    _draw_map(page, spec, capture, top)


def compose_rollout(page: Page, spec: Spec, looked: Looked) -> None:
    """Place the one map of a composed capture on the page. Raises HgvizError for any other."""
    layers = looked.capture.spec.layers
    if len(layers) != 1 or not layers[0].name.startswith("all maps"):
        raise HgvizError(
            "this capture is not composed: "
            "a figure of all maps is drawn of what composing them gave",
            "Compose it first: tasks.figure does so",
        )
    name, _, details = layers[0].name.partition(": ")
    how, _, ways = details.partition("; ")
    spec = replace(spec, selection=replace(spec.selection, layer=0, head=0))
    if spec.display.limits is None:
        limits = _rollout_limits(page, looked.capture)
        spec = replace(spec, display=replace(spec.display, limits=limits))
    title = (f"{name.capitalize()} composed", how) if spec.title is None else (spec.title, "")
    _draw_map(page, spec, looked.capture, heading(page, *title), ways)


def _rollout_limits(page: Page, capture: Capture) -> tuple[float, float] | None:
    """Limits from all but the first rows, which see few keys, so that their weights are the
    largest by far; None where they are not."""
    maps = map_of(capture, 0, 0)
    weights = maps.read(maps.heads[0], zoom=zoom_for(max(maps.shape[1:]), page.width))
    later = weights[len(weights) // 8 :]
    sizes = np.abs(later[np.isfinite(later) & (later != 0)])
    high = float(np.quantile(sizes, 0.995)) if sizes.size else 0.0
    if not 0 < 1.5 * high < np.abs(weights).max():
        return None
    high = float(f"{high:.2g}")
    return (-high if (weights < 0).any() else 0.0), high


def _draw_map(page: Page, spec: Spec, capture: Capture, top: float, note: str = "") -> None:
    """Draw the map of the selected head below top, and a note below it; closes the page."""
    head = spec.selection.head_id
    maps, is_off = map_of(capture, *head), head in capture.off
    zooms = (0, 0) if is_off else zooms_of(capture, head, page.width)
    weights = read_cells(maps, head.head, zooms)
    shades = shades_of(spec.display, has_negative_weights(capture, *head), [weights])
    sums_room = 0.0 if is_off else _sums_room(capture, head, page.width)
    rows, columns = _selected_axes(spec, capture)
    corner = _corner_words(capture, head.layer)
    right = BAR_GAP + sums_room + bar_width(shades)
    count = maps.shape[1:]

    def cell_sizes(left: float) -> tuple[float, float]:
        return _cell_sizes(page.width, page.width - left - right, *count)

    left, down = _fit_rows(rows, corner, _label_room(page.width, count[0]), cell_sizes)
    tall, cell = cell_sizes(left)
    across = _fit_columns(columns, cell, down.size, _label_room(page.width, count[0]))
    x = (page.width - left - cell * count[1] - right) / 2 + left
    y = top + max(across.depth, 17.0) + LABEL_GAP + 1
    grid = _Grid(page, x, y, cell, tall, *count, down, across)
    width, height = grid.size
    if is_off:
        off_card(page, x, y, width, height)
    else:
        seen = seen_cells(capture, head.layer, zooms, head=head.head)
        grid.draw_cells(shades.paint(weights, seen), seen, zooms)
        upright_bar(page, shades, x + width + sums_room + BAR_GAP, y, height)
    if sums_room:
        sums = RowSumBars.of(maps, head.head, zooms[0])
        sums.draw(page, shades, x + width + SUMS_GAP, y, tall * (1 << zooms[0]), y + height)
    grid.draw_rows()
    grid.draw_columns()
    grid.draw_corner(corner, x - left + 1)
    _draw_selection(grid, capture, head, rows.selected, columns.selected)
    notes = [HEAD_OFF if is_off else reason(capture, [head])]
    if any(zooms):
        notes.append(reduced(zooms))
        page.notes.append(reduced(zooms))
    bottom = y + height + (SUMS_FOOT if sums_room else 0.0) + 6
    end = legend(page, notes, x - left, bottom, page.width - x + left)
    page.close((footnotes(page, [note], x - left, end) if note else end) + 2)


def zooms_of(capture: Capture, head: HeadId, width: float) -> Zooms:
    """The zooms at which a map on a page so wide has no more cells than dots, whatever its labels.

    A raster with more would lose some of them, peaks too, wherever it is shown in dots.
    """
    rows, columns = map_of(capture, *head).shape[1:]
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


def _selected_axes(spec: Spec, capture: Capture) -> tuple[_Axis, _Axis]:
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
        _Axis(queries, capture.query_spans(layer.index), row, capture.null(layer.level)),
        _Axis(keys, capture.key_spans(layer.index), column, capture.null(layer.key_level)),
    )


def _corner_words(capture: Capture, layer: int) -> tuple[str, str]:
    """What the columns and the rows are."""
    one, levels = capture.spec.layers[layer], capture.spec.levels
    key = OTHER_KEYS.get(capture.key_prompt(layer).unit, CORNER[0])
    if levels[one.level].sequence == levels[one.key_level].sequence or key == OTHER_KEYS["slot"]:
        return key, CORNER[1]
    return "Source →" if key == CORNER[0] else key, "Target ↓"


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


# --- row sums of signed maps ----------------------------------------------------------------------


def _sums_room(capture: Capture, head: HeadId, width: float) -> float:
    """What the bars of row sums take beside a signed map on a page so wide, 0 for none."""
    if not has_negative_weights(capture, *head) or width < 180:
        return 0.0
    return _sums_width(width) + SUMS_GAP


def _sums_width(width: float) -> float:
    return min(SUMS_WIDTH, 0.135 * width)


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

    @property
    def total(self) -> Many:
        """What the rows add up to."""
        return self.positive + self.negative

    def draw(self, page: Page, shades: Shades, x: float, y: float, row: float, end: float) -> None:
        """Draw bars of rows that are so high from (x, y) down to end, and a line at each sum."""
        low, high = float(self.negative.min(initial=0)), float(self.positive.max(initial=0))
        width = _sums_width(page.width)
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
        sums = zero + self.total * scale
        lines = [[(at, top), (at, bottom)]
                 for at, top, bottom in zip(sums, edges, edges[1:], strict=False)]  # fmt: skip
        page.lines(lines, LIGHT_PAGE.text, min(1.2, max(0.5, row / 6)))
        page.lines([[(zero, y), (zero, end)]], LIGHT_PAGE.secondary, 0.5)
        page.text(x + width / 2, y - 6, "Row sum", size=style.SMALL, across="center",
                  colour=LIGHT_PAGE.secondary)  # fmt: skip
        ends = [(place, value, short_number(float(f"{value:.2g}"), True))
                for place, value in ((x, low), (x + width, high)) if value]  # fmt: skip
        if sum(style.extent(words, style.SMALL) / 2 for *_, words in ends) + 2 > width:
            ends = [max(ends, key=lambda one: abs(one[1]))]  # 0 and the farther end are enough
        for place, _, words in ends:
            page.text(place, end + 7.5, words, size=style.SMALL, across="center")


# --- two heads compared ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """The labels of one side of a map: spans (cells, 2) of the tokens of a text, (-1, -1) for
    cells that the text has nothing in."""

    prompt: Prompt
    spans: Integers


@dataclass(frozen=True, slots=True, eq=False)
class Three(Chart):
    """A head of A, one of B and their difference, on one grid, each cell of 2^zoom x 2^zoom.

    maps: A, B and A - B; seen: where each has anything; shape: of the grid in cells of zoom 0;
    signed: whether A or B has weights below 0; names: of A and B.
    """

    maps: tuple[Floats, Floats, Floats]
    seen: tuple[Bools, Bools, Bools]
    shape: tuple[int, int]
    zoom: int
    signed: bool
    rows_: Edge
    columns: Edge
    names: tuple[str, str]
    title: str = ""
    more: str = ""
    notes: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)

    def rows(self) -> list[Row]:
        """A row for each cell."""
        table: list[Row] = [("row", "column", "A", "B", "A - B")]
        for i, j in np.argwhere(self.seen[2]):
            table.append((float(i), float(j), *(float(weights[i, j]) for weights in self.maps)))
        return table

    def draw(self, page: Page, spec: Spec) -> None:
        """Place the maps, three beside each other on a wide page, and the bars of their colours."""
        top = self.draw_heading(page, spec)
        in_row, gap, title_room = (3 if page.width >= 330 else 2), 12.0, 12.0
        shades = self._shades(spec.display)
        rows, columns = self.shape
        down, across = (_Axis(edge.prompt, edge.spans) for edge in (self.rows_, self.columns))

        def cell_sizes(left: float) -> tuple[float, float]:
            room = (page.width - left - gap * (in_row - 1) - 4) / in_row  # 4: of the last label
            cell = min(room / max(columns, 1), 22.0, 1.5 * room / max(rows, 1))
            return cell, cell

        left, row_labels = _fit_rows(down, CORNER, max(34.0, 0.16 * page.width), cell_sizes)
        cell = cell_sizes(left)[0]
        column_labels = _fit_columns(across, cell, row_labels.size, 44.0)
        depth = max(column_labels.depth, 15.0) + LABEL_GAP
        most = max(self.shape)
        chart = self._at_zoom(zoom_for(most, cell * most, page.width))
        width, height = cell * columns, cell * rows
        x, y, bottom = left, top, top
        names = f"A  {self.names[0]}", f"B  {self.names[1]}", "A − B"
        for number, name in enumerate(names):
            if number == in_row:
                x, y = left, bottom + 8
            title = elide(name, width, style.TEXT, bold=True)
            page.text(x, y + title_room - 4, title, size=style.TEXT, bold=True)
            grid = _Grid(page, x, y + title_room + depth, cell, cell, rows, columns, row_labels,
                         column_labels)  # fmt: skip
            rgb = shades[number].paint(chart.maps[number], chart.seen[number])
            grid.draw_cells(rgb, chart.seen[number], (chart.zoom, chart.zoom))
            if x == left:
                grid.draw_rows()
                grid.draw_corner(CORNER, 0.0)
            grid.draw_columns()
            x, bottom = x + width + gap, max(bottom, grid.y + height)
        bars = [("Weight", shades[0]), ("Difference, A − B", shades[2])]
        if self.signed:
            bars = [("Weight, and difference", shades[0])]
        end = _draw_bars(page, bars, left, width + gap, x, bottom, height, in_row)
        notes = list(self.notes)
        if chart.zoom:
            notes.append(reduced((chart.zoom, chart.zoom)))
            page.notes.append(notes[-1])
        page.close(footnotes(page, notes, 0.0 if in_row == 2 else left, end) + 5)

    def _at_zoom(self, zoom: int) -> Three:
        """The maps with no more cells than dots, the largest of those that share one."""
        more = zoom - self.zoom
        if more <= 0:
            return self
        a, b = (pool(weights, more, signed=self.signed) for weights in self.maps[:2])
        difference = pool(self.maps[2], more, signed=True)
        in_a, in_b, in_both = (pool(seen.astype(np.float32), more) > 0 for seen in self.seen)
        return replace(self, maps=(a, b, difference), seen=(in_a, in_b, in_both), zoom=zoom)

    def _shades(self, display: Display) -> tuple[Shades, Shades, Shades]:
        """One range for A and B; where weights go below 0, the same for the difference."""
        if self.signed:
            shades = shades_of(display, True, self.maps)
            return shades, shades, shades
        weights = shades_of(display, False, self.maps[:2])
        difference = shades_of(replace(display, limits=None), True, self.maps[2:])
        return weights, weights, difference


def _draw_bars(
    page: Page, bars: list[tuple[str, Shades]], left: float, pitch: float, x: float,
    bottom: float, height: float, in_row: int,
) -> float:  # fmt: skip
    """Draw the colour bars of three maps, which begin `pitch` apart from left on; x: right of the
    last map, bottom: below it. Returns where they end."""

    def draw(name: str, shades: Shades, x: float, y: float, room: float) -> float:
        words = elide(name, room, style.SMALL)
        page.text(x, y, words, size=style.SMALL, colour=LIGHT_PAGE.secondary)
        return level_bar(page, shades, x, y + 4, room)

    least = max(72.0, *(style.extent(name, style.SMALL) for name, _ in bars))
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
