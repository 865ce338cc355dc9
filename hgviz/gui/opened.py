"""Two heads opened on one grid: their maps, the difference, and what is known of them so far."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import cast

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.alignment import Alignment, same_prompt
from hgviz.analysis.meeting import Edge, Meeting
from hgviz.analysis.pairing import counterpart
from hgviz.core import Capture, Floats, HeadId, Integers, Interval, Reduce, Step, Task
from hgviz.gui import sentences
from hgviz.gui.compare_parts.sight import Either, Placed, alike
from hgviz.gui.grid import Names
from hgviz.gui.language import tr
from hgviz.gui.tiles import SIDE, Key, Source, Tiles, wanted
from hgviz.gui.views import signs, words
from hgviz.gui.views.opened import BLOCK, ROWS_KEPT, RUN, SMALL
from hgviz.gui.views.sight import rule_of, seen
from hgviz.gui.views.viewport import Viewport
from hgviz.maps import Difference, Projected

KEPT = 8  # pairs of heads that stay open

Three = tuple[Source, Source, Source]
There = tuple[NDArray[np.bool_], NDArray[np.bool_]] | None
Lack = tuple[str, str] | None  # what, why


class Kept:
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


class Compared:
    """A head of A and one of B on the cells of a meeting, as they are known so far.

    Filled in by lanes, read by the window. sources: of A, B and A − B. names: how the rows and the
    columns of each of them are called. peak: the largest weight by magnitude of both, or the
    largest of what was read until `exact`. rows: rows of A and of B by number. masses: (rows, 2)
    for each of the three, the negative and the positive sum of each row, None until known. lone: B
    has no such head, and A's is met with itself.
    """

    def __init__(self, meeting: Meeting, tiles: Tiles, lone: bool = False) -> None:
        self.meeting, self.lone = meeting, lone
        sides = meeting.sides
        a, b = (self._source(number, *side) for number, side in enumerate(sides))
        self.sources: Three = a, b, self._difference(a, b, tiles)
        self.signed = a.signed or b.signed
        peaks = [_peak(*side) for side in sides] if meeting.same else [None]
        self.exact = None not in peaks
        self.peak = max((one for one in peaks if one is not None), default=0.0)
        self.names = _names(meeting)
        self.rows: OrderedDict[int, tuple[Floats, Floats]] = OrderedDict()
        self.masses: tuple[Floats, Floats, Floats] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)"""
        return self.meeting.shape

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
        return not (self.meeting.rows.both.any() and self.meeting.columns.both.any())

    @property
    def lacks(self) -> tuple[Lack, Lack]:
        """Why B, and why A − B is not there: what is said in their places, None where they are."""
        if self.lone:
            head = self.meeting.head
            why = tr("It was removed there, or that model has no such layer.")
            only = tr("Only A has head {head}.", head=head)
            return (tr("B has no head {head}", head=head), why), (tr("Nothing to subtract"), only)
        if self.apart:
            why = tr("No position stands for the same part of a text in both.")
            return None, (tr("Nothing in common"), why)
        return None, None

    @property
    def laid(self) -> str:
        """How the two maps come to have the same cells, in words; "" where they have them."""
        edges = self.meeting.rows, self.meeting.columns
        if any(edge.by_token for edge in edges):
            unit = self.meeting.a.query_prompt(self.meeting.head.layer).unit
            return tr("both spread to {units}", units=tr(f"{unit}s"))
        return "" if self.meeting.same else tr("hatched: not in both")

    @property
    def there(self) -> tuple[There, There, There]:
        """For each of the three the rows and the columns it has anything in; None for all."""
        if self.meeting.same:
            return None, None, None
        rows, columns = self.meeting.rows, self.meeting.columns
        return (
            (rows.a.there, columns.a.there),
            (rows.b.there, columns.b.there),
            (rows.both, columns.both),
        )

    @property
    def sides(self) -> tuple[str, str]:
        """What columns and rows are: of two texts, which."""
        spec, layer = self.meeting.a.spec, self.meeting.head.layer
        one = spec.layers[layer]
        if spec.levels[one.level].sequence == spec.levels[one.key_level].sequence:
            return tr("Key"), tr("Query")
        across, down = (words.level(spec, number) for number in (one.key_level, one.level))
        return across.capitalize(), down.capitalize()

    def _source(self, number: int, capture: Capture, head: HeadId) -> Source:
        whole = capture.maps[head.layer]
        assert whole is not None  # the counterpart of a head is captured
        rule = rule_of(capture, head)
        if self.meeting.same:
            small = whole.shape[1] * whole.shape[2] <= SMALL
            thumb = whole.summary(head.head).thumb if capture.path or small else None  # type: ignore[attr-defined]
            return Source(whole, head.head, rule, thumb)
        rows, columns = (
            (edge.a, edge.b)[number] for edge in (self.meeting.rows, self.meeting.columns)
        )
        laid = Projected(whole, rows, columns, signs.of(whole, head.head))
        return Source(laid, head.head, Placed(rule, rows, columns))

    def _difference(self, a: Source, b: Source, tiles: Tiles) -> Source:
        maps = Kept(a, tiles), Kept(b, tiles)
        same = self.meeting.same and alike(a.rule, b.rule)  # type: ignore[arg-type]
        edges = self.meeting.rows, self.meeting.columns
        both = None if self.meeting.same else (edges[0].both, edges[1].both)
        rule = a.rule if same else Either(a.rule, b.rule, *edges)
        less = Difference(*maps, {a.head: b.head}, both, self.meeting.off)
        return Source(less, a.head, rule)

    def saw(self, tiles: Tiles, key: Key) -> bool:
        """A tile has come; whether weights of A or B are larger than was known."""
        tile = tiles.get(key)
        if self.exact or tile is None or key.source not in self.sources[:2]:
            return False
        before = self.peak
        self.peak = max(before, float(np.nanmax(np.abs(tile.values), initial=0.0)))
        return self.peak > before

    def computed(self, tiles: Tiles, view: Viewport) -> float:
        """How much of the difference on screen is exact, 0 to 1."""
        least = self.sources[2]
        parts = [tiles.get(key) for key in wanted(least, view)]
        shares = [0.0 if one is None else float(one.exact.mean()) for one in parts]
        return sum(shares) / len(shares) if shares else 1.0

    def load(self, tiles: Tiles, keys: Iterable[Key]) -> Task[None]:
        """Read tiles, then what the rows add up to."""
        for number, part in enumerate(tiles.parts(keys)):
            tiles.read(part)
            self.saw(tiles, part.key)
            yield Step(number, number + 1, "Computing the maps")
        if self.masses is None:
            yield from self.add_up()

    def read_row(self, row: int) -> Task[None]:
        """Have a row of A and of B at hand, on the cells of the grid."""
        if row in self.rows or not 0 <= row < self.shape[0]:
            return
        keys = self.shape[1]
        parts: tuple[list[Floats], list[Floats]] = [], []
        for left in range(0, max(1, keys), RUN):
            columns = left, min(left + RUN, keys)
            for side, source in zip(parts, self.sources[:2], strict=True):
                side.append(source.map.read(source.head, (row, row + 1), columns)[0])
            yield Step(columns[1], keys, "Reading the row")
        self.rows[row] = np.concatenate(parts[0]), np.concatenate(parts[1])
        while len(self.rows) > ROWS_KEPT:
            self.rows.popitem(last=False)

    def add_up(self) -> Task[None]:
        """What every row of the three adds up to, the negative and the positive apart."""
        rows, columns = self.shape
        found = tuple(np.zeros((rows, 2), np.float32) for _ in self.sources)
        difference = cast("Difference", self.sources[2].map)
        for top in range(0, rows, BLOCK[0]):
            part = top, min(top + BLOCK[0], rows)
            for left in range(0, columns, BLOCK[1]):
                across = left, min(left + BLOCK[1], columns)
                if not any(_meets(one, part, across) for one in self.sources):
                    continue
                a, b = (one.map.read(one.head, part, across) for one in self.sources[:2])
                less = difference.between(a, b, part, across)
                for mass, block in zip(found, (a, b, less), strict=True):
                    mass[slice(*part), 0] += np.minimum(block, 0).sum(axis=1)
                    mass[slice(*part), 1] += np.maximum(block, 0).sum(axis=1)
                yield Step(top, rows, "Adding up the rows")
        self.masses = found[0], found[1], found[2]


class Comparer:
    """Opens pairs of heads, in any thread, and keeps those opened last of two captures."""

    def __init__(self, tiles: Tiles) -> None:
        self.tiles = tiles
        self._alignment: Alignment | None = None
        self._kept: OrderedDict[tuple[HeadId, HeadId | None], Compared] = OrderedDict()

    def open(
        self, a: Capture, b: Capture, head: HeadId, beside: HeadId | None, query: int | None
    ) -> Task[Compared]:
        """Open a head of A and the one of B that stands beside it.

        Of small maps all is read at once; others are the value of a step before their row is read.
        """
        yield Step(0, 3, "Opening the heads")
        found = self._found(a, b, head, counterpart(a, b, head, beside))
        if found.small:
            yield from found.load(self.tiles, _all(found))
        else:
            yield Step(1, 3, "Opening the heads", value=found)
        row = found.meeting.cell(query, None)[0]
        if row is not None:
            yield from found.read_row(row)
        return found

    def _found(self, a: Capture, b: Capture, head: HeadId, other: HeadId | None) -> Compared:
        known = self._alignment
        if known is None or known.a is not a or known.b is not b:
            self._alignment = known = Alignment(a, b)
            self._kept.clear()
            self.tiles.clear()
        found = self._kept.get((head, other))
        if found is None:
            lone = other is None
            meeting = Meeting.of(Alignment(a, a) if lone else known, head, other or head)
            found = Compared(meeting, self.tiles, lone)
        self._kept[head, other] = found
        self._kept.move_to_end((head, other))
        while len(self._kept) > KEPT:
            for source in self._kept.popitem(last=False)[1].sources:
                self.tiles.drop(source)
        return found


def _all(found: Compared) -> list[Key]:
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


def _names(meeting: Meeting) -> tuple[tuple[Names, Names], tuple[Names, Names]]:
    """For A and for B what rows and columns are called; the same objects where they are the same,
    so that what is written along the axes is found once."""
    known: list[Names] = []

    def named(capture: Capture, level: int, edge: Edge, side: int) -> Names:
        prompt, spans = capture.prompt_of(level), edge.spans[side]
        for one in known:
            if same_prompt(one.prompt, prompt) and np.array_equal(one.spans, spans):
                return one
        alike = (one.word_spans for one in known if one.prompt is prompt)
        found: Integers | None = next(alike, None)
        known.append(Names(prompt, sentences.word_spans(prompt) if found is None else found, spans))
        return known[-1]

    pairs = []
    for side, (capture, head) in enumerate(((meeting.a, meeting.head), (meeting.b, meeting.other))):
        layer = capture.spec.layers[head.layer]
        pairs.append(
            (
                named(capture, layer.level, meeting.rows, side),
                named(capture, layer.key_level, meeting.columns, side),
            )
        )
    return pairs[0], pairs[1]


def _meets(source: Source, rows: tuple[int, int], columns: tuple[int, int]) -> bool:
    return bool(seen(source.rule, np.array([rows]), np.array([columns])).any())
