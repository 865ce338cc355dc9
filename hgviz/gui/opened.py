"""One map or three on the same cells: opened, read by rows and tiles, and added up."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain, zip_longest
from threading import Lock
from typing import Any, Generic, TypeVar, cast

import numpy as np
from PySide6.QtCore import QObject, QTimer, Signal

from hgviz.analysis.alignment import Alignment, GridAxis, SharedGrid, counterpart, same_tokens
from hgviz.core import Capture, Floats, HeadId, Integers, Interval, Map, Reduce, progress
from hgviz.gui import tiles
from hgviz.gui.grid import (
    Bools,
    CaptureWords,
    Cells,
    Grid,
    Names,
    Places,
    Viewport,
    axis_titles,
    is_signed,
    rule_of,
    seen,
)
from hgviz.gui.jobs import Lanes
from hgviz.gui.language import tr
from hgviz.gui.tiles import SIDE, Key, Part, Readers, Source, Tiles
from hgviz.maps import Axis, Difference, Projected, Rule

SMALL = 2**22  # cells: up to here a whole map is a matter of a moment
HEADS_KEPT, PAIRS_KEPT, ROWS_KEPT = 32, 8, 256
BLOCK = 256, 4096  # rows and columns added up at a time
RUN = 8192  # keys of a row read at a time

There = tuple[Bools, Bools] | None  # the rows and the columns that a map has anything in
Lack = tuple[str, str] | None  # what is not there, and why
Made = TypeVar("Made")
AnyGrid = TypeVar("AnyGrid", Grid, SharedGrid)


@dataclass(eq=False)
class OpenedMap(Generic[AnyGrid]):
    """One head, or a head of A, one of B and their difference: filled in by lanes, read by views.
    A tuple has an entry for each of these maps."""

    head: HeadId
    grid: AnyGrid  # finds the cell of tokens
    sources: tuple[Source, ...]  # where the tiles come from
    names: tuple[tuple[Names, Names | Places], ...]  # what rows and columns are called
    titles: tuple[str, str]  # what the columns and the rows are
    whole: tuple[tuple[Map, int], ...]  # the maps, each of one head, whose rows are read
    signed: bool  # whether weights can be negative
    peak: float = 0.0  # the largest weight by magnitude; until it is `exact`, of what was read
    exact: bool = False
    there: tuple[There, ...] = (None,)  # the rows and columns with anything in them, None for all
    lacks: tuple[Lack, ...] = (None,)  # why a map is not there, None where it is
    masses: tuple[Floats, ...] | None = None  # (rows, 2): negative and positive sum of every row
    rows: OrderedDict[int, tuple[Floats, ...]] = field(default_factory=OrderedDict)  # by number

    @property
    def shown(self) -> tuple[Source, ...]:
        """The sources whose maps are there to be seen."""
        pairs = zip(self.sources, self.lacks, strict=True)
        return tuple(source for source, lack in pairs if lack is None)

    @property
    def unfinished(self) -> bool:
        """Whether the sums of rows are still to come; of one map without signs there are none."""
        return self.masses is None and (self.signed or len(self.sources) > 1)

    def saw(self, cache: Tiles, key: Key) -> bool:
        """A tile has come; whether weights are larger than was known."""
        tile = cache.get(key)
        if self.exact or tile is None or key.source not in self.sources[:2]:
            return False
        before = self.peak
        self.peak = max(before, float(np.nanmax(np.abs(tile.values), initial=0.0)))
        return self.peak > before

    def fill(self, cache: Tiles, view: Viewport, row: int | None) -> None:
        """Read the tiles of a view where the map is small; else it is the value of a step as it
        stands. Then read a row."""
        rows, columns = self.sources[0].shape
        if rows * columns <= SMALL:
            self.load(cache, view)
        else:
            progress(1, 3, "Opening the head", value=self)
        if row is not None:
            self.read_row(row)

    def load(self, cache: Tiles, view: Viewport) -> None:
        """Read the tiles of a view, then what the rows add up to."""
        keys = [key for source in self.shown for key in cache.lacking(source, view)]
        for number, part in enumerate(cache.parts(keys)):
            cache.read(part)
            self.saw(cache, part.key)
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
                weights = [one.map.read(one.head, part, across) for one in self.sources[:2]]
                if len(self.sources) > 2:
                    difference = cast("Difference", self.sources[2].map)
                    weights.append(difference.between(weights[0], weights[1], part, across))
                for mass, values in zip(masses, weights, strict=True):
                    mass[slice(*part), 0] += np.minimum(values, 0).sum(axis=1)
                    mass[slice(*part), 1] += np.maximum(values, 0).sum(axis=1)
                progress(top, rows, "Summing the rows")
        self.masses = masses

    def read_row(self, row: int) -> None:
        """Read a row in parts, unless it was read; drop the rows read longest ago."""
        _, rows, keys = self.whole[0][0].shape
        if row in self.rows or not 0 <= row < rows:
            return
        parts: list[list[Floats]] = [[] for _ in self.whole]
        for left in range(0, max(1, keys), RUN):
            columns = left, min(left + RUN, keys)
            for read, (attention, head) in zip(parts, self.whole, strict=True):
                read.append(attention.read(head, (row, row + 1), columns)[0])
            progress(columns[1], keys, "Reading the row")
        while len(self.rows) >= ROWS_KEPT:
            self.rows.popitem(last=False)
        self.rows[row] = tuple(np.concatenate(read) for read in parts)


def open_grid(grid: Grid, head: HeadId) -> OpenedMap[Grid]:
    """The map of one head as its grid has it."""
    attention = grid.capture.maps[head.layer]
    summary = _summary(grid.capture, attention, head.head)
    thumb = None if summary is None or grid.band is not None else summary.thumb
    source = Source(grid.map, head.head, grid.rule_of(head.head), thumb)
    return OpenedMap(
        head, grid, (source,), ((grid.rows, grid.columns),),
        axis_titles(grid.capture.spec, head.layer), ((attention, head.head),), source.signed,
        0.0 if summary is None else float(summary.peak), summary is not None,
    )  # fmt: skip


def open_pair(grid: SharedGrid, cache: Tiles, lone: bool = False) -> OpenedMap[SharedGrid]:
    """A head of A and one of B on the cells of a grid, and their difference.

    lone: B has no such head, and A's is compared with itself.
    """
    (a, first), (b, second) = (
        _side_source(grid, number, *side) for number, side in enumerate(grid.sides)
    )
    rows, columns, names = grid.rows, grid.columns, _side_names(grid)
    is_same, peaks = grid.is_identity, [first, second]
    both = None if is_same else (rows.in_both, columns.in_both)
    difference = Source(
        Difference(TiledMap(a, cache), TiledMap(b, cache), {a.head: b.head}, both, grid.heads_off),
        a.head,
        a.rule if is_same and same_cells(a.rule, b.rule)
        else DifferenceCells(a.rule, b.rule, rows, columns),
    )  # fmt: skip
    there: tuple[There, ...] = (None,) * 3
    if both is not None:
        there = (rows.a.there, columns.a.there), (rows.b.there, columns.b.there), both
    return OpenedMap(
        grid.head_a, grid, (a, b, difference), (*names, names[0]),
        axis_titles(grid.a.spec, grid.head_a.layer), ((a.map, a.head), (b.map, b.head)),
        a.signed or b.signed, max((peak for peak in peaks if peak is not None), default=0.0),
        None not in peaks, there, _lacks(grid, lone),
    )  # fmt: skip


def _summary(capture: Capture, attention: Map, head: int) -> Any:
    """What is known of a whole map that is stored or small; None of others."""
    if not capture.path and attention.shape[1] * attention.shape[2] > SMALL:
        return None
    return attention.summary(head)  # type: ignore[attr-defined]


def _side_source(
    grid: SharedGrid, number: int, capture: Capture, head: HeadId
) -> tuple[Source, float | None]:
    """The source of A (0) or of B (1) on the cells of a grid, and its largest weight if known."""
    attention, rule = capture.maps[head.layer], rule_of(capture, head)
    if grid.is_identity:
        summary = _summary(capture, attention, head.head)
        if summary is None:
            return Source(attention, head.head, rule), None
        return Source(attention, head.head, rule, summary.thumb), float(summary.peak)
    rows, columns = ((axis.a, axis.b)[number] for axis in (grid.rows, grid.columns))
    projected = Projected(attention, rows, columns, is_signed(attention, head.head))
    return Source(projected, head.head, PlacedCells(rule, rows, columns)), None


def _lacks(grid: SharedGrid, lone: bool) -> tuple[Lack, Lack, Lack]:
    """Why A, B and A − B are not there."""
    if lone:
        why = tr("It was pruned in B, or B has no such layer.")
        only = tr("Only A has head {head}.", head=grid.head_a)
        nothing = tr("B has no head {head}", head=grid.head_a)
        return None, (nothing, why), (tr("Nothing to subtract"), only)
    if not (grid.rows.in_both.any() and grid.columns.in_both.any()):
        why = tr("A and B have no position in common.")
        return None, None, (tr("Nothing in common"), why)
    return None, None, None


def _side_names(grid: SharedGrid) -> tuple[tuple[Names, Names], tuple[Names, Names]]:
    """For A and for B what rows and columns are called; the same objects where they are the same,
    so that what is written along the axes is found once."""
    words = CaptureWords()
    a, b = (
        (words.names(capture, layer.level, grid.rows.spans[side], null=False),
         words.names(capture, layer.key_level, grid.columns.spans[side], null=False))
        for side, (capture, head) in enumerate(grid.sides)
        for layer in (capture.spec.layers[head.layer],)
    )  # fmt: skip
    rows, columns = (
        mine if same_tokens(mine.prompt, its.prompt) and np.array_equal(mine.spans, its.spans)
        else its
        for mine, its in zip(a, b, strict=True)
    )  # fmt: skip
    return a, (rows, columns)


class Opener:
    """Opens heads, in any thread, and keeps those opened last while their capture is on screen."""

    def __init__(self, cache: Tiles) -> None:
        self.cache = cache
        self.most: float | None = None  # the largest weight of all heads, once it was asked for
        self._capture: Capture | None = None
        self._words = CaptureWords()
        self._lock = Lock()
        self._grids: dict[tuple[int, bool], Grid] = {}
        self._opened: OrderedDict[tuple[HeadId, bool], OpenedMap[Grid]] = OrderedDict()

    def open(
        self,
        capture: Capture,
        head: HeadId,
        *,
        query: int | None,
        whole: bool,
        shared: bool,
        view: Viewport,
        same_text: bool = False,
    ) -> OpenedMap[Grid]:
        """Open a head, read of a small map the tiles of a view, then the row of a query.

        A head whose row takes a while is the value of a step before.

        view: as it is, or of any other shape: then the whole map is meant, but of the same head in
        another text the same part. whole: no band. shared: find the largest weight of all heads.
        """
        progress(0, 3, "Opening the head")
        with self._lock:
            self._turn_to(capture)
            opened = self._open(capture, head, whole)
        row = None if query is None else capture.row(head.layer, query)
        opened.fill(self.cache, view.of(opened.sources[0].shape, same_text), row)
        if shared and self.most is None:
            self._compare(capture)
        return opened

    def neighbours(self, opened: OpenedMap[Grid]) -> list[OpenedMap[Grid]]:
        """Open what may be looked at next: the next and the previous head of a layer, and the same
        head of the layers around it."""
        capture, (layer, head) = opened.grid.capture, opened.head
        layers = capture.spec.layers
        mine = layers[layer].heads
        place = mine.index(head)
        beside = (*mine[place + 1 : place + 2], *mine[max(0, place - 1) : place])
        around = (n for n in (layer + 1, layer - 1) if 0 <= n < len(layers))
        heads = [HeadId(layer, other) for other in beside]
        heads += [HeadId(number, head) for number in around if head in layers[number].heads]
        found: list[OpenedMap[Grid]] = []
        for neighbour in heads:
            with self._lock:
                whole = [key[1] for key, kept in self._opened.items() if kept is opened]
                is_captured = capture.maps[neighbour.layer] is not None
                if capture is self._capture and whole and is_captured:
                    found.append(self._open(capture, neighbour, whole[0]))
            progress(len(found), len(heads), "Opening the heads to compare")
        return found

    def _open(self, capture: Capture, head: HeadId, whole: bool) -> OpenedMap[Grid]:
        def make() -> OpenedMap[Grid]:
            key = head.layer, whole
            if key not in self._grids:
                self._grids[key] = Grid.of(capture, head.layer, whole, self._words)
            return open_grid(self._grids[key], head)

        return recent(self._opened, (head, whole), make, HEADS_KEPT)[0]

    def _turn_to(self, capture: Capture) -> None:
        """Forget what belongs to another capture; a growing one keeps what it had."""
        old, self._capture = self._capture, capture
        if old is None or old is capture:
            return
        self.most = None
        is_other = old.prompt is not capture.prompt or old.target is not capture.target
        if is_other:
            self._words = CaptureWords()
        self._grids.clear()
        for key, opened in list(self._opened.items()):
            if is_other or opened.whole[0][0] is not capture.maps[key[0].layer]:
                del self._opened[key]
                self.cache.drop(opened.sources)

    def _compare(self, capture: Capture) -> None:
        """Find the largest weight of all heads that are stored or small."""
        most, heads = 0.0, capture.spec.heads
        for number, head in enumerate(heads):
            attention = capture.maps[head.layer]
            summary = None if attention is None else _summary(capture, attention, head.head)
            most = max(most, 0.0 if summary is None else float(summary.peak))
            progress(number + 1, len(heads), "Comparing the heads")
        self.most = most


class PairOpener:
    """Opens pairs of heads, in any thread, and keeps those opened last of two captures."""

    def __init__(self, cache: Tiles) -> None:
        self.cache = cache
        self._alignment: Alignment | None = None
        self._opened: OrderedDict[Hashable, OpenedMap[SharedGrid]] = OrderedDict()

    def pair(
        self, a: Capture, b: Capture, head: HeadId, chosen: HeadId | None
    ) -> OpenedMap[SharedGrid]:
        """A head of A and the one of B that stands beside it, of which nothing may be read yet."""
        alignment = self._alignment
        if alignment is None or alignment.a is not a or alignment.b is not b:
            self._alignment = alignment = Alignment(a, b)
            self._opened.clear()
            self.cache.clear()
        other = counterpart(a, b, head, chosen)

        def make() -> OpenedMap[SharedGrid]:
            lone = other is None
            grid = SharedGrid.of(Alignment(a, a) if lone else alignment, head, other or head)
            return open_pair(grid, self.cache, lone)

        opened, dropped = recent(self._opened, (head, other), make, PAIRS_KEPT)
        for pair in dropped:
            self.cache.drop(pair.sources)
        return opened

    def open(
        self, a: Capture, b: Capture, head: HeadId, chosen: HeadId | None, query: int | None
    ) -> OpenedMap[SharedGrid]:
        """Open a pair, read of small maps everything, then the row of a query.

        A pair of large maps is the value of a step before their row is read.
        """
        progress(0, 3, "Opening the heads")
        opened = self.pair(a, b, head, chosen)
        whole = Viewport.fitted(opened.grid.shape, opened.grid.shape)
        opened.fill(self.cache, whole, opened.grid.cell(query, None)[0])
        return opened


def recent(
    kept: OrderedDict[Any, Made], key: Hashable, make: Callable[[], Made], limit: int
) -> tuple[Made, list[Made]]:
    """The value of a key, made unless it is kept, and those that make room for it."""
    found = kept[key] = kept[key] if key in kept else make()
    kept.move_to_end(key)
    return found, [kept.popitem(last=False)[1] for _ in range(len(kept) - limit)]


# --- the cells of a pair --------------------------------------------------------------------------


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
        is_placed = (down[:, 1] > down[:, 0])[:, None] & (across[:, 1] > across[:, 0])
        return seen(self.rule, down, across) & is_placed


@dataclass(frozen=True, eq=False)
class DifferenceCells:
    """The cells of a difference: those that stand for something in A and in B, and that one sees.

    Where only one of the two can look there, the other weighs 0.
    """

    a: Cells
    b: Cells
    rows: GridAxis
    columns: GridAxis

    @property
    def causal(self) -> bool:
        """Whether no query looks at what comes after it, in A or in B."""
        return self.a.causal and self.b.causal

    def seen(self, rows: Integers, columns: Integers) -> Bools:
        """bool (rows, columns): whether any cell exists in ranges (n, 2) of rows and columns."""
        down, across = (
            np.diff(counts[np.minimum(ends, len(counts) - 1)])[:, 0] > 0
            for counts, ends in zip(self._counts, (rows, columns), strict=True)
        )
        cells = seen(self.a, rows, columns) | seen(self.b, rows, columns)
        return cells & down[:, None] & across

    @cached_property
    def _counts(self) -> tuple[Integers, Integers]:
        """Counts of the rows, and of the columns, that exist in both maps, up to each one."""
        down, across = (np.cumsum(axis.in_both) for axis in (self.rows, self.columns))
        return np.append(0, down), np.append(0, across)


CELL_FIELDS = ("causal", "windowed", "stride_q", "stride_k", "band", "chunk", "streaming_window")


def same_cells(a: Any, b: Any) -> bool:
    """Whether two rules let the same cells exist."""
    keeps = [None if one.keep is None or one.keep.all() else one.keep for one in (a, b)]
    if any(getattr(a, name) != getattr(b, name) for name in CELL_FIELDS):
        return False
    if keeps[0] is None or keeps[1] is None:
        return keeps[0] is keeps[1]
    return bool(np.array_equal(*keeps))


class TiledMap:
    """A source's map whose weights are taken from the tiles that are there already."""

    def __init__(self, source: Source, cache: Tiles) -> None:
        self.source, self.cache = source, cache
        self.heads, self.signed, self.shape = source.map.heads, source.signed, source.map.shape

    def read(
        self,
        head: int,
        rows: Interval = None,
        columns: Interval = None,
        zoom: int = 0,
        reduce: Reduce = "max",
    ) -> Floats:
        """Read a part of the map, as the map itself does."""
        if zoom == 0 and isinstance(rows, tuple) and isinstance(columns, tuple):
            tile = self.cache.get(Key(self.source, 0, rows[0] // SIDE, columns[0] // SIDE))
            on_grid = rows[0] % SIDE == columns[0] % SIDE == 0
            if on_grid and tile is not None and tile.whole:
                return tile.values[: rows[1] - rows[0], : columns[1] - columns[0]]
        return self.source.map.read(head, rows, columns, zoom, reduce)


# --- reading tiles --------------------------------------------------------------------------------

REST = 150  # ms without a movement before anything is read ahead
QUICK = 2  # zooms up to which is computed ahead; above, only what is stored is read
AT_ONCE = 1  # zooms up to which a screen is computed before anybody has seen what is stored

Neighbours = Callable[[OpenedMap[Any]], list[OpenedMap[Any]]]


class TileSupply(QObject):
    """Keeps the maps of a canvas in tiles. None of it waits: what comes is shown when it is there.

    canvas: a MapCanvas, or what has its cache, view, is_exact and renew. neighbours: opens the
    heads that may be looked at next, off the GUI thread; None: none.
    """

    outgrown = Signal()  # weights are larger than the colours allowed for
    came = Signal()  # more was read
    added_up = Signal()  # what the rows add up to is known

    def __init__(self, canvas: Any) -> None:
        super().__init__(canvas)
        self.neighbours: Neighbours | None = None
        self._canvas = canvas
        self._opened: OpenedMap[Any] | None = None
        self._screen: tuple[object, ...] = ()  # what was asked for last,
        self._ahead = False  # whether more than that,
        self._adding = False  # and whether rows are added up
        self._lanes: Lanes | None = None
        self._readers: Readers | None = None
        self._rest = QTimer(self, singleShot=True, interval=REST)
        self._rest.timeout.connect(self._look_ahead)

    def start(self, lanes: Lanes, on_error: Callable[[BaseException], None]) -> None:
        """Read off the GUI thread from now on."""
        self._lanes, self._on_error = lanes, on_error
        self._readers = Readers(self._canvas.cache, lanes.bridge.post, self._came, on_error)

    def stop(self) -> None:
        """Wait for what is being read; nothing comes any more."""
        self._rest.stop()
        if self._readers is not None and self._lanes is not None:
            self._readers.close()
            for lane in (self._lanes.map, self._lanes.files):
                lane.cancel(self._key)
        self._readers, self._opened = None, None

    def forget(self) -> None:
        """Read nothing until something is wanted again."""
        self._opened, self._screen = None, ()
        self._rest.stop()
        if self._readers is not None and self._lanes is not None:
            self._readers.want(iter(()))
            self._lanes.files.cancel(self._key)

    def want(self, opened: OpenedMap[Any], hurry: bool = False) -> None:
        """Request the tiles that the screen lacks, in place of earlier requests.

        hurry: the window waits, for all of it or for what is stored.
        """
        view = self._canvas.view
        if self._lanes is None:
            return
        if opened is not self._opened:
            self._opened, self._screen = opened, ()
            self._lanes.files.cancel(self._key)
            self._adding = not opened.unfinished
        screen = hurry, *tiles.screen(opened.sources[0], view)
        if screen != self._screen or self._ahead:
            self._screen = screen
            self._read(hurry=hurry)
        self._add_up()
        self._rest.start()

    @property
    def at_hand(self) -> bool:
        """Whether what is read in a moment is there: all of a screen, or what is stored of it."""
        cache, view = self._canvas.cache, self._canvas.view
        if self._opened is None:
            return False
        lacking = cache.lacking(self._opened.sources[0], view)
        if view.zoom <= AT_ONCE:
            return not lacking
        return next(cache.sketches(lacking), None) is None

    @property
    def _key(self) -> str:
        return f"supply {id(self)}"

    def _read(
        self, neighbours: Sequence[OpenedMap[Any]] = (), ahead: bool = False, hurry: bool = False
    ) -> None:
        """What is on screen first, then the rest of its tiles; ahead: then around it, and the same
        part of other heads. In a hurry what is on screen alone.
        """
        self._ahead = ahead
        cache, view, opened = self._canvas.cache, self._canvas.view, self._opened
        sources, shape, soon = opened.shown, opened.sources[0].shape, view.zoom <= AT_ONCE
        # from afar A and B are there as they are stored, while A − B is nowhere
        far = view.zoom > QUICK and all(source.lowest is not None for source in sources[:2])
        screen = _in_turn([cache.lacking(source, view) for source in sources], far)
        ring = _in_turn([tiles.around(source, view) for source in sources if ahead])
        others = [
            key
            for other in neighbours if other.sources[0].shape == shape
            for key in cache.lacking(other.sources[0], view)
        ]  # fmt: skip
        # in a hurry nothing competes with what is stored
        work = [cache.parts(screen, view)] if soon or not hurry else []
        if not hurry:
            wanted = [[*tiles.wanted(source, view)] for source in sources]
            work.append(cache.parts(_in_turn(wanted, far)))
        if view.zoom <= QUICK:
            work += [cache.parts(ring), cache.parts(others, view)]
        self._readers.want(
            chain.from_iterable(work),
            stored=cache.sketches(screen + ring + others),
            hurry=hurry and soon,
        )

    def _look_ahead(self) -> None:
        if self.neighbours is None:
            self._read(ahead=True)
            return
        self._lanes.map.submit(
            self._key, "Map", partial(self.neighbours, self._opened),
            on_done=partial(self._read, ahead=True), on_error=lambda _: None,
        )  # fmt: skip

    def _came(self, parts: list[Part]) -> None:
        self._canvas.renew(parts)
        self._add_up()
        self.came.emit()
        if self._opened is not None:
            larger = [self._opened.saw(self._canvas.cache, part.key) for part in parts]
            if any(larger):
                self.outgrown.emit()

    def _add_up(self) -> None:
        """Once the screen is exact: sums take as long as the whole maps."""
        if self._opened is not None and not self._adding and self._canvas.is_exact:
            self._adding = True
            self._lanes.files.submit(
                self._key, "Map", self._opened.add_up,
                on_done=lambda _: self.added_up.emit(), on_error=self._on_error,
            )  # fmt: skip


def _in_turn(wanted: Sequence[list[Key]], last_first: bool = False) -> list[Key]:
    """Tiles of A and B in turn, then those of A − B, which is made of them; or the other way."""
    sides = [key for keys in zip_longest(*wanted[:2]) for key in keys if key is not None]
    rest = [key for keys in wanted[2:] for key in keys]
    return rest + sides if last_first else sides + rest
