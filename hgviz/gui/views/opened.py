"""Opening a head for its map: what is read at once, what follows, and what is kept of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock

import numpy as np

from hgviz.core import Capture, Floats, HeadId, Map, Step, Task
from hgviz.gui.tiles import Key, Source, Tiles
from hgviz.gui.views.grid import Grid, Words
from hgviz.gui.views.viewport import Viewport

SMALL = 2**22  # cells: up to here a whole map is a matter of a moment
HEADS_KEPT, ROWS_KEPT = 32, 256
BLOCK = 256, 4096  # rows and columns added up at a time
RUN = 8192  # keys of a row read at a time


class Opened:
    """One head as it is known so far; filled in by the lane, read by the window.

    peak: its largest weight by magnitude, or the largest of what was read until `exact`. rows:
    rows of the whole map by number. mass (rows, 2): the negative and the positive sum of each row
    of a signed map.
    """

    def __init__(self, head: HeadId, grid: Grid, source: Source, peak: float | None) -> None:
        self.head, self.grid, self.source = head, grid, source
        self.exact = peak is not None
        self.peak = peak or 0.0
        self.rows: OrderedDict[int, Floats] = OrderedDict()
        self.mass: Floats | None = None

    @property
    def whole(self) -> Map:
        """The map itself, also where a band is shown."""
        found = self.grid.capture.maps[self.head.layer]
        assert found is not None
        return found

    @property
    def unfinished(self) -> bool:
        """Whether the sums of the rows are still to come."""
        return self.source.signed and self.mass is None

    def went_on(self, head: HeadId, capture: Capture) -> bool:
        """Whether this is the head as it was before the text of a capture was gone on with."""
        return self.head == head and self.grid.capture is not capture

    def read_row(self, row: int) -> Task[None]:
        """Have a row of the whole map at hand."""
        if row in self.rows or row >= len(self.grid.queries):
            return
        parts, keys = [], self.whole.shape[2]
        for left in range(0, max(1, keys), RUN):
            columns = left, min(left + RUN, keys)
            parts.append(self.whole.read(self.head.head, (row, row + 1), columns)[0])
            yield Step(columns[1], keys, "Reading the row")
        self.rows[row] = np.concatenate(parts)
        while len(self.rows) > ROWS_KEPT:
            self.rows.popitem(last=False)

    def load(self, tiles: Tiles, keys: list[Key]) -> Task[None]:
        """Read tiles, then what the rows add up to; what is there can be shown at every step."""
        for number, part in enumerate(tiles.parts(keys)):
            tiles.read(part)
            self.saw(tiles, part.key)
            yield Step(number, len(keys), "Computing the map")
        if self.unfinished:
            yield from self.add_up()

    def saw(self, tiles: Tiles, key: Key) -> bool:
        """A tile has come; whether weights are larger than was known."""
        tile = tiles.get(key)
        if self.exact or tile is None or key.source is not self.source:
            return False
        before = self.peak
        self.peak = max(before, float(np.nanmax(np.abs(tile.values), initial=0.0)))
        return self.peak > before

    def add_up(self) -> Task[None]:
        """What every row adds up to, the negative and the positive apart."""
        rows, columns = self.source.shape
        mass = np.zeros((rows, 2), np.float32)
        for top, left in _blocks(rows, columns):
            part = slice(top, min(top + BLOCK[0], rows))
            block = self.source.map.read(
                self.source.head,
                rows=(part.start, part.stop),
                columns=(left, min(left + BLOCK[1], columns)),
            )
            mass[part, 0] += np.minimum(block, 0).sum(axis=1)
            mass[part, 1] += np.maximum(block, 0).sum(axis=1)
            yield Step(top, rows, "Adding up the rows")
        self.mass = mass


class Opener:
    """Opens heads, in any thread, and keeps those opened last while their capture is on screen."""

    def __init__(self, tiles: Tiles) -> None:
        self.tiles = tiles
        self.most: float | None = None  # the largest weight of all heads, once it was asked for
        self._capture: Capture | None = None
        self._words = Words()
        self._lock = Lock()
        self._grids: dict[tuple[int, bool], Grid] = {}
        self._opened: OrderedDict[tuple[HeadId, bool], Opened] = OrderedDict()

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
    ) -> Task[Opened]:
        """Open a head, read of a small map the tiles of a view, then the row of a query.

        A head whose row takes a while is the value of a step before.

        view: as it is, or of any other shape: then the whole map is meant, but of a head that has
        grown the same part. whole: no band.
        """
        yield Step(0, 3, "Opening the head")
        with self._lock:
            self._turn_to(capture)
            found = self._found(capture, head, whole)
        if _cells(found.source.shape) <= SMALL:
            view = view.of(found.source.shape, found.grid.wide, grown)
            yield from found.load(self.tiles, self.tiles.lacking(found.source, view))
        else:
            yield Step(1, 3, "Opening the head", value=found)
        if query is not None:
            yield from found.read_row(capture.row(head.layer, query))
        if shared and self.most is None:
            yield from self._compare(capture)
        return found

    def beside(self, opened: Opened) -> Task[list[Opened]]:
        """Open what may be looked at next: the heads beside one, in its layer and around it."""
        found: list[Opened] = []
        capture, heads = opened.grid.capture, _beside(opened.grid.capture, opened.head)
        for one in heads:
            with self._lock:
                whole = [key[1] for key, kept in self._opened.items() if kept is opened]
                if capture is self._capture and whole:
                    found.append(self._found(capture, one, whole[0]))
            yield Step(len(found), len(heads), "Opening the heads beside it")
        return found

    def _found(self, capture: Capture, head: HeadId, whole: bool) -> Opened:
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
            self._words = Words()
        self._grids.clear()
        for key, one in list(self._opened.items()):
            if fresh or one.whole is not capture.maps[key[0].layer]:
                del self._opened[key]
                self.tiles.drop(one.source)

    def _open(self, capture: Capture, head: HeadId, whole: bool) -> Opened:
        grid = self._grids.get((head.layer, whole))
        if grid is None:
            grid = self._grids[head.layer, whole] = Grid.of(capture, head.layer, whole, self._words)
        rule = grid.rule_of(head.head)
        if not (capture.path or _cells(grid.map.shape[1:]) <= SMALL):
            return Opened(head, grid, Source(grid.map, head.head, rule), None)
        layer = capture.maps[head.layer]
        facts = layer.summary(head.head)  # type: ignore[union-attr]
        thumb = None if grid.band is not None else facts.thumb
        source = Source(grid.map, head.head, rule, thumb)
        return Opened(head, grid, source, float(np.abs(facts.rowmax).max(initial=0.0)))

    def _compare(self, capture: Capture) -> Task[None]:
        """The largest weight of all heads that are stored or small."""
        most, heads = 0.0, capture.spec.heads
        for number, one in enumerate(heads):
            layer = capture.maps[one.layer]
            if layer is not None and (capture.path or _cells(layer.shape[1:]) <= SMALL):
                rowmax = layer.summary(one.head).rowmax  # type: ignore[attr-defined]
                most = max(most, float(np.abs(rowmax).max(initial=0.0)))
            yield Step(number + 1, len(heads), "Comparing the heads")
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


def _blocks(rows: int, columns: int) -> Iterable[tuple[int, int]]:
    return ((top, left) for top in range(0, rows, BLOCK[0]) for left in range(0, columns, BLOCK[1]))
