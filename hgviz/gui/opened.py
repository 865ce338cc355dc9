"""Maps of one head, and of two models with their difference, opened and read by rows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.alignment import (
    Alignment,
    GridAxis,
    SharedGrid,
    counterpart,
    same_tokens,
)
from hgviz.core import Capture, Floats, HeadId, Integers, Interval, Map, Reduce, progress
from hgviz.gui import grid as signs
from hgviz.gui import sentences
from hgviz.gui.grid import Bools, CaptureWords, Grid, Names, Viewport, rule_of, seen
from hgviz.gui.language import tr
from hgviz.gui.tiles import SIDE, Key, Sight, Source, Tiles, wanted
from hgviz.gui.tiles import seen as seen_cells
from hgviz.maps import Axis, Difference, Projected, Rule

# --- opened ---------------------------------------------------------------------------------------


SMALL = 2**22  # cells: up to here a whole map is a matter of a moment
HEADS_KEPT, ROWS_KEPT = 32, 256
BLOCK = 256, 4096  # rows and columns added up at a time
RUN = 8192  # keys of a row read at a time


class Opened:
    """Maps on the same cells as they are known so far: filled in by lanes, read by the window.

    sources: where their tiles come from. peak: the largest weight by magnitude of those that are
    `measured`, or the largest of what was read until `exact`. masses: for each source (rows, 2),
    the negative and the positive sum of each row; None until they are added up. rows: rows that
    were read, by number.
    """

    def __init__(self, sources: tuple[Source, ...], peaks: Sequence[float | None]) -> None:
        self.sources = sources
        self.exact = None not in peaks
        self.peak = max((peak for peak in peaks if peak is not None), default=0.0)
        self.masses: tuple[Floats, ...] | None = None
        self.rows: OrderedDict[int, Any] = OrderedDict()

    @property
    def measured(self) -> tuple[Source, ...]:
        """The sources whose weights count for the peak."""
        return self.sources[:2]

    @property
    def unfinished(self) -> bool:
        """Whether the sums of the rows are still to come."""
        return self.masses is None

    def saw(self, tiles: Tiles, key: Key) -> bool:
        """A tile has come; whether weights are larger than was known."""
        tile = tiles.get(key)
        if self.exact or tile is None or key.source not in self.measured:
            return False
        before = self.peak
        self.peak = max(before, float(np.nanmax(np.abs(tile.values), initial=0.0)))
        return self.peak > before

    def load(self, tiles: Tiles, keys: Sequence[Key]) -> None:
        """Read tiles, then what the rows add up to; what is there can be shown at every step."""
        for number, part in enumerate(tiles.parts(keys)):
            tiles.read(part)
            self.saw(tiles, part.key)
            progress(number, len(keys), "Computing the map")
        if self.unfinished:
            self.add_up()

    def add_up(self) -> None:
        """Add up every row of every source, the negative and the positive weights apart."""
        rows, columns = self.sources[0].shape
        masses = tuple(np.zeros((rows, 2), np.float32) for _ in self.sources)
        for top in range(0, rows, BLOCK[0]):
            part = top, min(top + BLOCK[0], rows)
            for left in range(0, columns, BLOCK[1]):
                across = left, min(left + BLOCK[1], columns)
                block = np.array([part]), np.array([across])
                if not any(seen(source.rule, *block).any() for source in self.sources):
                    continue
                for mass, weights in zip(masses, self._weights(part, across), strict=True):
                    mass[slice(*part), 0] += np.minimum(weights, 0).sum(axis=1)
                    mass[slice(*part), 1] += np.maximum(weights, 0).sum(axis=1)
                progress(top, rows, "Adding up the rows")
        self.masses = masses

    def _weights(self, rows: tuple[int, int], columns: tuple[int, int]) -> Sequence[Floats]:
        """The weights of a block of each source."""
        return [source.map.read(source.head, rows, columns) for source in self.sources]

    def _keep_row(self, row: int, maps: Sequence[tuple[Map, int]]) -> tuple[Floats, ...]:
        """Read a row of some maps, each of one head, in parts; drop the rows read longest ago."""
        keys = maps[0][0].shape[2]
        parts: list[list[Floats]] = [[] for _ in maps]
        for left in range(0, max(1, keys), RUN):
            columns = left, min(left + RUN, keys)
            for read, (attention, head) in zip(parts, maps, strict=True):
                read.append(attention.read(head, (row, row + 1), columns)[0])
            progress(columns[1], keys, "Reading the row")
        while len(self.rows) >= ROWS_KEPT:
            self.rows.popitem(last=False)
        return tuple(np.concatenate(read) for read in parts)


class OpenedMap(Opened):
    """One head. rows: rows of the whole map, also where a band is shown."""

    def __init__(self, head: HeadId, grid: Grid, source: Source, peak: float | None) -> None:
        super().__init__((source,), (peak,))
        self.head, self.grid, self.source = head, grid, source

    @property
    def whole(self) -> Map:
        """The map itself, also where a band is shown."""
        found = self.grid.capture.maps[self.head.layer]
        assert found is not None
        return found

    @property
    def mass(self) -> Floats | None:
        """(rows, 2): the negative and the positive sum of each row of a signed map."""
        return None if self.masses is None else self.masses[0]

    @property
    def unfinished(self) -> bool:
        """Whether the sums of the rows, of which only signed maps have some, are still to come."""
        return self.source.signed and self.masses is None

    def went_on(self, head: HeadId, capture: Capture) -> bool:
        """Whether this is the head as it was before the text of a capture was gone on with."""
        return self.head == head and self.grid.capture is not capture

    def read_row(self, row: int) -> None:
        """Read a row of the whole map, unless it was read."""
        if row not in self.rows and row < len(self.grid.queries):
            (self.rows[row],) = self._keep_row(row, [(self.whole, self.head.head)])


class Opener:
    """Opens heads, in any thread, and keeps those opened last while their capture is on screen."""

    def __init__(self, tiles: Tiles) -> None:
        self.tiles = tiles
        self.most: float | None = None  # the largest weight of all heads, once it was asked for
        self._capture: Capture | None = None
        self._words = CaptureWords()
        self._lock = Lock()
        self._grids: dict[tuple[int, bool], Grid] = {}
        self._opened: OrderedDict[tuple[HeadId, bool], OpenedMap] = OrderedDict()

    def open(
        self,
        capture: Capture,
        head: HeadId,
        *,
        query: int | None,
        whole: bool,
        shared: bool,
        view: Viewport,
        grown: bool = False,
    ) -> OpenedMap:
        """Open a head, read of a small map the tiles of a view, then the row of a query.

        A head whose row takes a while is the value of a step before.

        view: as it is, or of any other shape: then the whole map is meant, but of a head that has
        grown the same part. whole: no band.
        """
        progress(0, 3, "Opening the head")
        with self._lock:
            self._turn_to(capture)
            found = self._found(capture, head, whole)
        if _cells(found.source.shape) <= SMALL:
            view = view.of(found.source.shape, found.grid.wide, grown)
            found.load(self.tiles, self.tiles.lacking(found.source, view))
        else:
            progress(1, 3, "Opening the head", value=found)
        if query is not None:
            found.read_row(capture.row(head.layer, query))
        if shared and self.most is None:
            self._compare(capture)
        return found

    def beside(self, opened: OpenedMap) -> list[OpenedMap]:
        """Open what may be looked at next: the heads beside one, in its layer and around it."""
        found: list[OpenedMap] = []
        capture, heads = opened.grid.capture, _beside(opened.grid.capture, opened.head)
        for one in heads:
            with self._lock:
                whole = [key[1] for key, kept in self._opened.items() if kept is opened]
                if capture is self._capture and whole:
                    found.append(self._found(capture, one, whole[0]))
            progress(len(found), len(heads), "Opening the heads compared with")
        return found

    def _found(self, capture: Capture, head: HeadId, whole: bool) -> OpenedMap:
        found = self._opened.get((head, whole))
        if found is None:
            found = self._open(capture, head, whole)
        self._opened[head, whole] = found
        self._opened.move_to_end((head, whole))
        while len(self._opened) > HEADS_KEPT:
            self._opened.popitem(last=False)
        return found

    def _turn_to(self, capture: Capture) -> None:
        """Forget what belongs to another capture; a growing one keeps what it had."""
        old, self._capture = self._capture, capture
        if old is None or old is capture:
            return
        self.most = None
        fresh = old.prompt is not capture.prompt or old.target is not capture.target
        if fresh:
            self._words = CaptureWords()
        self._grids.clear()
        for key, one in list(self._opened.items()):
            if fresh or one.whole is not capture.maps[key[0].layer]:
                del self._opened[key]
                self.tiles.drop(one.source)

    def _open(self, capture: Capture, head: HeadId, whole: bool) -> OpenedMap:
        grid = self._grids.get((head.layer, whole))
        if grid is None:
            grid = self._grids[head.layer, whole] = Grid.of(capture, head.layer, whole, self._words)
        rule = grid.rule_of(head.head)
        if not (capture.path or _cells(grid.map.shape[1:]) <= SMALL):
            return OpenedMap(head, grid, Source(grid.map, head.head, rule), None)
        layer = capture.maps[head.layer]
        facts = layer.summary(head.head)  # type: ignore[union-attr]
        thumb = None if grid.band is not None else facts.thumb
        source = Source(grid.map, head.head, rule, thumb)
        return OpenedMap(head, grid, source, float(np.abs(facts.rowmax).max(initial=0.0)))

    def _compare(self, capture: Capture) -> None:
        """The largest weight of all heads that are stored or small."""
        most, heads = 0.0, capture.spec.heads
        for number, one in enumerate(heads):
            layer = capture.maps[one.layer]
            if layer is not None and (capture.path or _cells(layer.shape[1:]) <= SMALL):
                rowmax = layer.summary(one.head).rowmax  # type: ignore[attr-defined]
                most = max(most, float(np.abs(rowmax).max(initial=0.0)))
            progress(number + 1, len(heads), "Comparing the heads")
        self.most = most


def _beside(capture: Capture, head: HeadId) -> list[HeadId]:
    """The next and the previous head of a layer, and the same head of the layers around it."""
    layers = capture.spec.layers
    heads = layers[head.layer].heads
    at = heads.index(head.head)
    near = *heads[at + 1 : at + 2], *heads[max(0, at - 1) : at]
    found = [HeadId(head.layer, one) for one in near]
    for number in (head.layer + 1, head.layer - 1):
        if 0 <= number < len(layers) and head.head in layers[number].heads:
            found.append(HeadId(number, head.head))
    return [one for one in found if capture.maps[one.layer] is not None]


def _cells(shape: tuple[int, ...]) -> int:
    return shape[0] * shape[1]


# --- sight ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PlacedCells:
    """The cells that a map has, where it is laid on other cells than its own."""

    rule: Rule
    rows: Axis
    columns: Axis

    @property
    def causal(self) -> bool:
        """Whether a query looks at nothing that comes after it."""
        return self.rule.causal

    def seen(self, rows: Integers, columns: Integers) -> Bools:
        """bool (rows, columns): whether any cell exists in ranges (n, 2) of rows and columns."""
        down, across = self.rows.reach(rows), self.columns.reach(columns)
        some = (down[:, 1] > down[:, 0])[:, None] & (across[:, 1] > across[:, 0])
        return seen_cells(self.rule, down, across) & some


@dataclass(frozen=True, eq=False)
class DifferenceCells:
    """The cells of a difference: those that stand for something in A and in B, and that one sees.

    Where only one of the two can look there, the other weighs 0.
    """

    a: Rule | Sight
    b: Rule | Sight
    rows: GridAxis
    columns: GridAxis

    @property
    def causal(self) -> bool:
        """Whether no query looks at what comes after it, in A or in B."""
        return self.a.causal and self.b.causal

    def seen(self, rows: Integers, columns: Integers) -> Bools:
        """bool (rows, columns): whether any cell exists in ranges (n, 2) of rows and columns."""
        there = [
            sums[np.minimum(ends[:, 1], len(sums) - 1)]
            > sums[np.minimum(ends[:, 0], len(sums) - 1)]
            for sums, ends in zip(self._sums, (rows, columns), strict=True)
        ]
        found: Bools = seen_cells(self.a, rows, columns) | seen_cells(self.b, rows, columns)
        return found & there[0][:, None] & there[1]

    @cached_property
    def _sums(self) -> tuple[Integers, Integers]:
        """How many rows, and columns, up to each stand for something in both."""
        down, across = (
            np.concatenate([[0], np.cumsum(edge.in_both)]) for edge in (self.rows, self.columns)
        )
        return down, across


def alike(a: Rule, b: Rule) -> bool:
    """Whether two rules let the same cells exist."""
    plain = [
        (
            one.causal,
            one.windowed,
            one.stride_q,
            one.stride_k,
            one.band,
            one.chunk,
            one.streaming_window,
        )
        for one in (a, b)
    ]
    keeps = [None if one.keep is None or one.keep.all() else one.keep for one in (a, b)]
    if plain[0] != plain[1]:
        return False
    first, second = keeps
    if first is None or second is None:
        return first is second
    return bool(np.array_equal(first, second))


# --- opened ---------------------------------------------------------------------------------------


KEPT = 8  # pairs of heads that stay open

There = tuple[NDArray[np.bool_], NDArray[np.bool_]] | None
Lack = tuple[str, str] | None  # what, why


class TiledMap:
    """A source's map whose weights are taken from the tiles that are there already."""

    def __init__(self, source: Source, tiles: Tiles) -> None:
        self.source, self.tiles = source, tiles
        self.heads, self.signed = source.map.heads, source.signed

    @property
    def shape(self) -> tuple[int, int, int]:
        """(heads, queries, keys)"""
        return self.source.map.shape

    def read(
        self,
        head: int,
        rows: Interval = None,
        columns: Interval = None,
        zoom: int = 0,
        reduce: Reduce = "max",
    ) -> Floats:
        """The same as the map gives."""
        if zoom == 0 and isinstance(rows, tuple) and isinstance(columns, tuple):
            tile = self.tiles.get(Key(self.source, 0, rows[0] // SIDE, columns[0] // SIDE))
            on_grid = rows[0] % SIDE == columns[0] % SIDE == 0
            if on_grid and tile is not None and tile.whole:
                return tile.values[: rows[1] - rows[0], : columns[1] - columns[0]]
        return self.source.map.read(head, rows, columns, zoom, reduce)


class OpenedPair(Opened):
    """A head of A and one of B on the cells of a grid, and their difference.

    sources: of A, B and A − B. names: how the rows and the columns of A and of B are called. rows:
    a row of A and of B. lone: B has no such head, and A's is compared with itself.
    """

    def __init__(self, grid: SharedGrid, tiles: Tiles, lone: bool = False) -> None:
        self.grid, self.lone = grid, lone
        sides = grid.sides
        a, b = (self._source(number, *side) for number, side in enumerate(sides))
        peaks = [_peak(*side) for side in sides] if grid.is_identity else [None]
        super().__init__((a, b, self._difference(a, b, tiles)), peaks)
        self.signed = a.signed or b.signed
        self.names = _names(grid)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)"""
        return self.grid.shape

    @property
    def small(self) -> bool:
        """Whether all of it is a matter of a moment."""
        return self.shape[0] * self.shape[1] <= SMALL

    @property
    def shown(self) -> tuple[Source, ...]:
        """The sources whose maps are there to be seen."""
        return self.sources[:1] if self.lone else self.sources[:2] if self.apart else self.sources

    @property
    def apart(self) -> bool:
        """Whether no cell stands for something in both."""
        return not (self.grid.rows.in_both.any() and self.grid.columns.in_both.any())

    @property
    def lacks(self) -> tuple[Lack, Lack]:
        """Why B, and why A − B is not there: what is said in their places, None where they are."""
        if self.lone:
            head = self.grid.head_a
            why = tr("It was removed there, or that model has no such layer.")
            only = tr("Only A has head {head}.", head=head)
            return (tr("B has no head {head}", head=head), why), (tr("Nothing to subtract"), only)
        if self.apart:
            why = tr("A and B have no position in common.")
            return None, (tr("Nothing in common"), why)
        return None, None

    @property
    def laid(self) -> str:
        """How the two maps come to have the same cells, in words; "" where they have them."""
        edges = self.grid.rows, self.grid.columns
        if any(edge.by_token for edge in edges):
            unit = self.grid.a.query_prompt(self.grid.head_a.layer).unit
            return tr("both upsampled to {units}", units=tr(f"{unit}s"))
        return "" if self.grid.is_identity else tr("hatched: not in both")

    @property
    def there(self) -> tuple[There, There, There]:
        """For each of the three the rows and the columns it has anything in; None for all."""
        if self.grid.is_identity:
            return None, None, None
        rows, columns = self.grid.rows, self.grid.columns
        return (
            (rows.a.there, columns.a.there),
            (rows.b.there, columns.b.there),
            (rows.in_both, columns.in_both),
        )

    @property
    def sides(self) -> tuple[str, str]:
        """What columns and rows are: of two texts, which."""
        spec, layer = self.grid.a.spec, self.grid.head_a.layer
        one = spec.layers[layer]
        if spec.levels[one.level].sequence == spec.levels[one.key_level].sequence:
            return tr("Key"), tr("Query")
        across, down = (sentences.level(spec, number) for number in (one.key_level, one.level))
        return across.capitalize(), down.capitalize()

    def _source(self, number: int, capture: Capture, head: HeadId) -> Source:
        whole = capture.maps[head.layer]
        assert whole is not None  # the counterpart of a head is captured
        rule = rule_of(capture, head)
        if self.grid.is_identity:
            small = whole.shape[1] * whole.shape[2] <= SMALL
            thumb = whole.summary(head.head).thumb if capture.path or small else None  # type: ignore[attr-defined]
            return Source(whole, head.head, rule, thumb)
        rows, columns = ((edge.a, edge.b)[number] for edge in (self.grid.rows, self.grid.columns))
        laid = Projected(whole, rows, columns, signs.of(whole, head.head))
        return Source(laid, head.head, PlacedCells(rule, rows, columns))

    def _difference(self, a: Source, b: Source, tiles: Tiles) -> Source:
        maps = TiledMap(a, tiles), TiledMap(b, tiles)
        same = self.grid.is_identity and alike(a.rule, b.rule)  # type: ignore[arg-type]
        edges = self.grid.rows, self.grid.columns
        both = None if self.grid.is_identity else (edges[0].in_both, edges[1].in_both)
        rule = a.rule if same else DifferenceCells(a.rule, b.rule, *edges)
        less = Difference(*maps, {a.head: b.head}, both, self.grid.heads_off)
        return Source(less, a.head, rule)

    def computed(self, tiles: Tiles, view: Viewport) -> float:
        """How much of the difference on screen is exact, 0 to 1."""
        least = self.sources[2]
        parts = [tiles.get(key) for key in wanted(least, view)]
        shares = [0.0 if one is None else float(one.exact.mean()) for one in parts]
        return sum(shares) / len(shares) if shares else 1.0

    def read_row(self, row: int) -> None:
        """Read a row of A and of B, on the cells of the grid, unless it was read."""
        if row not in self.rows and 0 <= row < self.shape[0]:
            maps = [(source.map, source.head) for source in self.sources[:2]]
            self.rows[row] = self._keep_row(row, maps)

    def _weights(self, rows: tuple[int, int], columns: tuple[int, int]) -> Sequence[Floats]:
        a, b = (one.map.read(one.head, rows, columns) for one in self.sources[:2])
        difference = cast("Difference", self.sources[2].map)
        return a, b, difference.between(a, b, rows, columns)


class PairOpener:
    """Opens pairs of heads, in any thread, and keeps those opened last of two captures."""

    def __init__(self, tiles: Tiles) -> None:
        self.tiles = tiles
        self._alignment: Alignment | None = None
        self._kept: OrderedDict[tuple[HeadId, HeadId | None], OpenedPair] = OrderedDict()

    def open(
        self, a: Capture, b: Capture, head: HeadId, beside: HeadId | None, query: int | None
    ) -> OpenedPair:
        """Open a head of A and the one of B that stands beside it.

        Of small maps all is read at once; others are the value of a step before their row is read.
        """
        progress(0, 3, "Opening the heads")
        found = self._found(a, b, head, counterpart(a, b, head, beside))
        if found.small:
            found.load(self.tiles, _all(found))
        else:
            progress(1, 3, "Opening the heads", value=found)
        row = found.grid.cell(query, None)[0]
        if row is not None:
            found.read_row(row)
        return found

    def _found(self, a: Capture, b: Capture, head: HeadId, other: HeadId | None) -> OpenedPair:
        known = self._alignment
        if known is None or known.a is not a or known.b is not b:
            self._alignment = known = Alignment(a, b)
            self._kept.clear()
            self.tiles.clear()
        found = self._kept.get((head, other))
        if found is None:
            lone = other is None
            grid = SharedGrid.of(Alignment(a, a) if lone else known, head, other or head)
            found = OpenedPair(grid, self.tiles, lone)
        self._kept[head, other] = found
        self._kept.move_to_end((head, other))
        while len(self._kept) > KEPT:
            for source in self._kept.popitem(last=False)[1].sources:
                self.tiles.drop(source)
        return found


def _all(found: OpenedPair) -> list[Key]:
    """Every tile of small maps at full resolution, those of the difference last."""
    rows, columns = (range(-(-size // SIDE)) for size in found.shape)
    return [Key(one, 0, i, j) for one in found.shown for i in rows for j in columns]


def _peak(capture: Capture, head: HeadId) -> float | None:
    """The largest weight of a head where that is known, or known soon."""
    whole = capture.maps[head.layer]
    assert whole is not None
    if not capture.path and whole.shape[1] * whole.shape[2] > SMALL:
        return None
    return float(whole.summary(head.head).peak)  # type: ignore[attr-defined]


def _names(grid: SharedGrid) -> tuple[tuple[Names, Names], tuple[Names, Names]]:
    """For A and for B what rows and columns are called; the same objects where they are the same,
    so that what is written along the axes is found once."""
    known: list[Names] = []

    def named(capture: Capture, level: int, edge: GridAxis, side: int) -> Names:
        prompt, spans = capture.prompt_of(level), edge.spans[side]
        for one in known:
            if same_tokens(one.prompt, prompt) and np.array_equal(one.spans, spans):
                return one
        alike = (one.word_spans for one in known if one.prompt is prompt)
        found: Integers | None = next(alike, None)
        known.append(Names(prompt, sentences.word_spans(prompt) if found is None else found, spans))
        return known[-1]

    pairs = []
    for side, (capture, head) in enumerate(((grid.a, grid.head_a), (grid.b, grid.head_b))):
        layer = capture.spec.layers[head.layer]
        pairs.append(
            (
                named(capture, layer.level, grid.rows, side),
                named(capture, layer.key_level, grid.columns, side),
            )
        )
    return pairs[0], pairs[1]
