"""Maps computed from queries, keys and row statistics when they are looked at."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.activations import ACTIVATIONS
from hgviz.maps.cache import Cache
from hgviz.maps.exponential import exponential
from hgviz.maps.operands import Operands, Queries
from hgviz.maps.pooling import fold_ends, fold_max, larger
from hgviz.maps.pyramid import Pyramid
from hgviz.maps.rule import Factors
from hgviz.maps.summary import Summary, summarise
from hgviz.maps.tiles import TILE, Tiled

RUN = 2  # tiles side by side that are folded at once: more would leave the cache


class _Room(local):
    """Memory for the scores of a run and what they are folded to, each thread its own: two pieces
    in turn. Fresh pages take longer than products.
    """

    def __init__(self) -> None:
        self._pieces: dict[Any, list[NDArray[Any]]] = {}

    def take(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """An array that is good until the one after the next."""
        dtype = np.dtype(dtype)  # a type and its dtype are the same
        pieces = self._pieces.get(dtype)
        if pieces is None:
            pieces = [np.empty(TILE * TILE * RUN, dtype) for _ in range(2)]
            self._pieces[dtype] = pieces
        pieces.reverse()
        return pieces[0][: math.prod(shape)].reshape(shape)


_room = _Room()


class LazyMap(Tiled):
    """The maps of one layer as tile = act(scale q . k - statistic), one product per tile.

    The arrays of factors may be anything that is sliced like an array, such as parts of a file:
    a read touches only the rows it needs. stored gives a head's summary where it is kept already,
    difference the largest difference between the proof rows and the tiles.
    """

    def __init__(
        self,
        factors: Factors,
        heads: tuple[int, ...],
        stored: Callable[[int], Summary] | None = None,
        difference: float | None = None,
        pyramids: Callable[[int], Pyramid] | None = None,
    ) -> None:
        rule = factors.rule
        self._acts = tuple(ACTIVATIONS[name] for name in rule.activations)
        shape = (factors.q.shape[0], factors.q.shape[1], factors.k.shape[1])
        super().__init__(shape, heads, any(act.signed for act in self._acts), pyramids)
        self.factors, self._rule = factors, rule
        self._rules = tuple(map(rule.of, range(len(self._acts))))  # of each head
        self._stored, self._difference = stored, difference
        self.operands, self._edges = Operands(factors), Cache(1 << 20)
        self._kept = None if rule.keep is None else np.concatenate([[0], np.cumsum(rule.keep)])

    @property
    def value_norms(self) -> NDArray[Any] | None:
        """(heads, keys) What each key adds to the stream at weight 1; see Factors."""
        return self.factors.value_norms

    @property
    def mixture(self) -> NDArray[Any] | None:
        """(heads or 1, keys, tokens) What slots are mixed of; see Factors."""
        return self.factors.mixture

    @property
    def verify_max_abs(self) -> float:
        """The largest difference between the proof rows and what the tiles give."""
        if self._difference is None:
            self._difference = max(map(self.compared, range(len(self.heads))), default=0.0)
        return self._difference

    @property
    def summarised(self) -> bool:
        """Whether summaries are kept, so that asking for one computes nothing."""
        return self._stored is not None

    def summary(self, head: int) -> Summary:
        """Thumbnail, largest weights and entropies of a head; computed unless stored."""
        return self._stored(self.place(head)) if self._stored else summarise(self, head)

    def weights(self, place: int, i: int, j: int) -> NDArray[Any] | None:
        """Tile (i, j) of the head stored at a place; None where all its cells are zero."""
        rows, columns = self._block(i, j)
        scores = self._scores(place, i, j, rows, columns)
        empty = self._empty_in(rows)
        if empty is None:
            return None if scores is None else self._activated(place, scores)
        if scores is None:
            tile = np.zeros((len(rows), len(columns)), self.operands.dtype)
        else:
            tile = self._activated(place, scores)
        self._fill(tile, empty, rows, columns)
        return tile

    def pooled(
        self, place: int, i: int, tiles: range, zoom: int
    ) -> Iterator[tuple[int, NDArray[Any] | None]]:
        """Tiles in cells of 2^zoom; activations that only grow act on the pooled scores."""
        after = self._acts[place].pooling == "after"
        if after or self._empty_in(self._block(i, 0)[0]) is not None:
            yield from super().pooled(place, i, tiles, zoom)
            return
        for first in range(tiles.start, tiles.stop, RUN):
            run = range(first, min(first + RUN, tiles.stop))
            yield first, self._pooled_run(place, i, run, zoom)

    def _pooled_run(self, place: int, i: int, run: range, zoom: int) -> NDArray[Any]:
        """Some tiles side by side: few long steps, between which threads wait for each other."""
        rows, last = self._block(i, run[-1])
        columns = range(run.start * TILE, last.stop)
        block = self.operands.queries(place, i, rows)
        scores = _room.take((len(rows), len(columns)), self.operands.dtype)
        plain = block.plain and self._rule.softcap is None and self._acts[place].logs is None
        whole = plain and self._exists(place, rows, columns) is True
        for at, j in enumerate(run):
            part = columns[at * TILE : (at + 1) * TILE]
            target = scores[:, at * TILE : (at + 1) * TILE]
            if whole:
                np.matmul(block.content, self.operands.keys(place, j, part), out=target)
            elif self._scores(place, i, j, rows, part, out=target) is None:
                target[:] = self._nothing(place)
        if self._acts[place].pooling == "max" or not zoom:
            return self._activated(place, fold_max(scores, zoom, _room.take))
        # both ends, since a saturated activation makes equal what was not: tanh 9 and tanh -10
        highest, lowest = fold_ends(scores, zoom)
        return larger(self._activated(place, highest), self._activated(place, lowest))

    def _block(self, i: int, j: int) -> tuple[range, range]:
        """The rows and columns of a tile."""
        _, queries, keys = self.shape
        rows = range(i * TILE, min((i + 1) * TILE, queries))
        return rows, range(j * TILE, min((j + 1) * TILE, keys))

    def _activated(self, place: int, scores: NDArray[Any]) -> NDArray[Any]:
        """Weights in place of their scores where that is as easy: fresh memory takes its time."""
        if self._acts[place].softmax:
            return exponential(scores, out=scores)
        found: NDArray[Any] = self._acts[place].apply(scores, None, np)
        return found

    def _scores(
        self,
        place: int,
        i: int,
        j: int,
        rows: range,
        columns: range,
        out: NDArray[Any] | None = None,
    ) -> NDArray[Any] | None:
        """What the activation of a tile takes; cells that do not exist take what gives 0."""
        found = self._scaled(place, i, j, rows, columns, out)
        if found is None:
            return None
        tile, block, hidden = found
        if (logs := self._acts[place].logs) is not None:
            tile[:] = logs(tile, np)[0]
        for part in block.shift:
            tile += part
        for cells in hidden:
            np.copyto(tile, self._nothing(place), where=cells)
        return tile

    @property
    def fills(self) -> bool:
        """Whether some rows see no key and read uniform all the same."""
        uniform = self._kept is not None and self._rule.empty_rows == "uniform"
        return uniform and bool(self._empty.any())

    def weighs_all(self, place: int) -> bool:
        """Whether no key of a head is left out because others are larger."""
        least = self.factors.threshold
        return least is None or bool(np.isneginf(least[place]).all())

    def by_softmax(self, place: int) -> bool:
        """Whether exp(score - statistic) is all there is to its weights."""
        return self._acts[place].softmax and not self.fills

    def logs(self, place: int, i: int, j: int) -> NDArray[Any] | None:
        """The logarithms of a tile of weights; see Tiled."""
        return self._scores(place, i, j, *self._block(i, j))

    def terms(self, place: int, i: int, j: int) -> NDArray[Any] | None:
        """What the log-sum-exp of rows is taken of in a tile; of a softmax its logs, which is the
        same where no statistic is known yet."""
        act = self._acts[place]
        if act.logs is None:
            return self.logs(place, i, j)
        found = self._scaled(place, i, j, *self._block(i, j), None)
        if found is None:
            return None
        tile, _, hidden = found
        terms: NDArray[Any] = act.split(tile, np)[1]
        for cells in hidden:
            np.copyto(terms, -np.inf, where=cells)
        return terms

    def _nothing(self, place: int) -> float:
        return -np.inf if self._acts[place].statistic == "lse" else 0.0

    def _scaled(
        self,
        place: int,
        i: int,
        j: int,
        rows: range,
        columns: range,
        out: NDArray[Any] | None,
    ) -> tuple[NDArray[Any], Queries, list[NDArray[np.bool_]]] | None:
        """The scaled scores of a tile, its queries, and which cells weigh nothing; the shift is
        not yet added, unless it rides.
        """
        exists = self._exists(place, rows, columns)
        if exists is False:
            return None
        block = self.operands.queries(place, i, rows)
        keys = self.operands.keys(place, j, columns)
        tile: NDArray[Any] = np.matmul(block.content, keys, out=out)
        if block.position is not None:
            tile += self.operands.by_distance(place, block.position, rows, columns)
        if block.factor is not None:
            tile *= block.factor
        if (cap := self._rule.softcap) is not None:
            tile /= cap
            np.tanh(tile, out=tile)
            tile *= cap
        dropped = self._dropped(place, tile, block.least, rows, columns)
        hidden = [] if dropped is None else [dropped]
        if exists is None:
            hidden.append(self._hidden(place, rows, columns))
        return tile, block, hidden

    def _dropped(
        self,
        place: int,
        tile: NDArray[Any],
        least: NDArray[Any] | None,
        rows: range,
        columns: range,
    ) -> NDArray[np.bool_] | None:
        """The cells that are not among the largest of their row, None where all may weigh."""
        if least is None:
            return None
        sizes = tile if self._acts[place].statistic == "lse" else np.abs(tile)
        dropped: NDArray[np.bool_] = sizes < least
        first, stop = np.searchsorted(self._listed[0], place * self.shape[1] + np.array(
            [rows.start, rows.stop]))  # fmt: skip
        row, column = (part[first:stop] for part in self._listed[1:])
        here = (column >= columns.start) & (column < columns.stop)
        dropped[row[here] - rows.start, column[here] - columns.start] = False
        return dropped

    @cached_property
    def _listed(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Cells that weigh though no threshold says so: number of head and row, row, column."""
        kept = self.factors.kept
        pairs = np.empty((0, 3), np.int64) if kept is None else kept[...].astype(np.int64)
        place, row, column = pairs[(pairs >= 0).all(1) & (pairs < self.shape).all(1)].T
        numbers = place * self.shape[1] + row
        order = np.argsort(numbers, kind="stable")
        return numbers[order], row[order], column[order]

    def _hidden(self, place: int, rows: range, columns: range) -> NDArray[np.bool_]:
        """Which cells of a block do not exist."""
        rule = self._rules[place]

        def made() -> NDArray[np.bool_]:
            # in four bytes where these hold all tokens: compared in half the time
            small = max(self.shape[1:]) * max(rule.stride_q, rule.stride_k) < 1 << 31
            i, j = (np.arange(one.start, one.stop, dtype="i4" if small else "i8")
                    for one in (rows, columns))  # fmt: skip
            return ~rule.sees(i, j)

        if not rule.whole or rule.keep is not None:
            return made()
        # along the diagonal it is the same for all
        apart = rows.start * rule.stride_q - columns.start * rule.stride_k
        return self._edges.get((apart, len(rows), len(columns)), made)

    def tiles_in(self, i: int) -> range:
        """The tiles of block row i that can have weights; see Tiled."""
        rows, keys = self._block(i, 0)[0], self.shape[2]
        if self._empty_in(rows) is not None:
            return super().tiles_in(i)
        first, stop = self._rule.reach(rows[0], keys)[0], self._rule.reach(rows[-1], keys)[1]
        return range(first // TILE, -(-stop // TILE))

    def _exists(self, place: int, rows: range, columns: range) -> bool | None:
        """Whether all cells of a block exist, None for some."""
        keys = self.shape[2]
        first, stop = self._rule.reach(rows.start, keys)
        last_first, last_stop = self._rule.reach(rows[-1], keys)
        if last_stop <= columns.start or first >= columns.stop:
            return False
        if self._kept is not None:
            kept = self._kept[columns.stop] - self._kept[columns.start]
            if kept < len(columns):
                return None if kept and self._near(place, rows, columns) is not False else False
        within = last_first <= columns.start and stop >= columns.stop
        near = self._near(place, rows, columns)
        return near if within or near is False else None

    def _near(self, place: int, rows: range, columns: range) -> bool | None:
        """Whether all cells of a block are of the first keys and the latest of a head, None for
        some."""
        if (near := self._rules[place].nearest) is None:
            return True
        keys, (sink, recent) = self.shape[2], near
        ends = (self._rule.reach(row, keys)[1] for row in (rows[0], rows[-1]))
        places = (columns[0], columns[-1], *ends)
        first, last, least, most = (
            place if self._kept is None else int(self._kept[place]) for place in places
        )
        if first >= sink and last < least - recent:
            return False
        return True if last < sink or first >= most - recent else None

    @cached_property
    def _empty(self) -> NDArray[np.bool_]:
        """(queries,) The rows that see no key."""
        assert self._kept is not None
        reach = np.array([self._rule.reach(row, self.shape[2]) for row in range(self.shape[1])])
        empty: NDArray[np.bool_] = self._kept[reach[:, 1]] == self._kept[reach[:, 0]]
        return empty

    def _empty_in(self, rows: range) -> NDArray[np.bool_] | None:
        """The rows of a block that read uniform, None when there are none."""
        if self._kept is None or self._rule.empty_rows == "zeros":
            return None
        empty = self._empty[rows.start : rows.stop]
        return empty if empty.any() else None

    def _fill(
        self, tile: NDArray[Any], empty: NDArray[np.bool_], rows: range, columns: range
    ) -> None:
        """Uniform rows where no key is seen: over the window, or over all keys, future ones too."""
        for at in np.flatnonzero(empty):
            first, stop = self._rule.window(rows[at], self.shape[2])
            inside = slice(max(first - columns.start, 0), max(stop - columns.start, 0))
            tile[at, inside] = 1 / (stop - first)

    def compared(self, place: int, surveyed: NDArray[Any] | None = None) -> float:
        """The largest difference between the proof rows of a head and what its tiles give, read
        now or as they were surveyed; infinite where only one of the two is a number.
        """
        factors, largest = self.factors, 0.0
        for at, one in enumerate(np.asarray(factors.proof_rows)):
            row = slice(int(one), int(one) + 1)
            found = surveyed[at] if surveyed is not None else self.read(self.heads[place], row)[0]
            found, proof = found.astype(np.float32), factors.proof_values[place, at]
            alike = (found == proof) | (np.isnan(found) & np.isnan(proof))
            with np.errstate(invalid="ignore"):
                difference = np.where(alike, 0.0, np.abs(found - proof))
            difference[np.isnan(difference)] = np.inf
            largest = max(largest, float(difference.max(initial=0.0)))
        return largest


def signed_head(found: Any, head: int) -> bool:
    """Whether weights of a head of a map can be negative: in a mixed layer some can, others not.

    By its own activation where the map knows it, else as the whole map.
    """
    if not found.signed or not isinstance(found, LazyMap):
        return bool(found.signed)
    row = ACTIVATIONS.get(found.factors.rule.activations[found.heads.index(head)])
    return row is None or row.signed
