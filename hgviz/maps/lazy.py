"""Maps computed from queries, keys and row statistics when they are looked at."""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import frexp
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.activations import ACTIVATIONS, NORM_EPSILON
from hgviz.maps.overview import Pyramid, Summary, fold_ends, fold_max, larger
from hgviz.maps.rule import DistanceScores, Factors, Grouped, Rule, plain
from hgviz.maps.tiles import (
    TILE,
    Blocks,
    Cache,
    Tiled,
    exponential,
    lengths,
    row_log_sums,
    row_totals,
    tile_blocks,
)

# --- blocks of queries and keys -------------------------------------------------------------------

_READY = Cache(64 << 20)  # of all maps together
_RIDING = 2  # the columns of the product that add a row's shift, one for each of its parts
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Queries:
    """A block of rows, ready for products: content (rows, d_head) with the keys, position with the
    distances; (rows, 1) each: the factor of a row's scores (None where content has it), their soft
    cap, the least score that weighs, and the shift that is added.
    """

    content: NDArray[Any]
    position: NDArray[Any] | None = None
    factor: NDArray[Any] | None = None
    cap: NDArray[Any] | None = None
    least: NDArray[Any] | None = None
    shift: tuple[NDArray[Any], ...] = ()

    @property
    def plain(self) -> bool:
        """Whether content . k is the score, without further steps."""
        more = self.position, self.factor, self.cap, self.least
        return not self.shift and all(one is None for one in more)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        parts = (self.content, self.position, self.factor, self.cap, self.least, *self.shift)
        return sum(part.nbytes for part in parts if part is not None)


class Operands:
    """Blocks of queries and keys of one layer, ready for the products of tiles; made when they are
    first needed, and cached under a number of their own.

    float32 throughout, also of two-byte factors: their products are exact in it, and a float32
    product is the fastest that numpy has on a CPU (float16 has no BLAS, bfloat16 no dtype).
    """

    def __init__(self, factors: Factors) -> None:
        rule = factors.rule
        self._factors, self._rule = factors, rule
        self._acts = tuple(ACTIVATIONS[name] for name in rule.activations)
        self.dtype = np.float64 if factors.dtype == "float64" else np.float32
        self.number = next(_numbers)
        weakref.finalize(self, _READY.forget, self.number).atexit = False
        self._riding = tuple(map(self._rides, range(len(rule.activations))))
        self._distances = DistanceScores(rule, self.dtype) if rule.relative is not None else None

    def queries(self, place: int, i: int, rows: range) -> Queries:
        """The block of rows i of the head stored at a place."""
        key = (self.number, place, "q", i)
        make = self._queries_with_shift if self._riding[place] else self._prepare_queries
        return _READY.get(key, lambda: make(place, slice(rows.start, rows.stop)))

    def keys(self, place: int, j: int, columns: range) -> NDArray[Any]:
        """Block j of the keys (d_head, keys), with a row of ones for each column of shifts."""

        def prepare() -> NDArray[Any]:
            k = self._with_more(place, self._factors.k[place, columns.start : columns.stop]).T
            if not self._riding[place]:
                return np.ascontiguousarray(k)  # lying so, a product takes a tenth less
            ready = np.ones((len(k) + _RIDING, k.shape[1]), self.dtype)
            ready[:-_RIDING] = k
            return ready

        k = self._factors.k
        shared = k.group(place) if isinstance(k, Grouped) else place
        return _READY.get((self.number, shared, "k", j), prepare)

    def by_distance(
        self, place: int, position: NDArray[Any], rows: range, columns: range
    ) -> NDArray[Any]:
        """Scores (rows, columns) of relative positions."""
        distances = self._distances
        assert distances is not None
        lowest, count = distances.span(rows, columns)
        key = (self.number, place, "r", lowest, count)
        band = _READY.get(key, lambda: distances.keys(place, lowest, count))
        return distances.scores(position, band, len(rows), len(columns))

    def _rides(self, place: int) -> bool:
        """Whether the shift of a head comes out of the product, as columns that meet ones.

        A product adds its columns one after another: the last ones round as additions to the
        whole tile would, for a tenth of the time. Not where something is done to scores between.
        """
        rule, scale = self._rule, self._rule.scale_of(place)
        between = (rule.norms[place], rule.relative, rule.softcap, self._factors.threshold)
        powers = self._acts[place].softmax and abs(frexp(scale)[0]) == 0.5
        return powers and all(one is None for one in between)

    def _queries_with_shift(self, place: int, rows: slice) -> Queries:
        q = self._with_one(place, plain(self._factors.q[place, rows], self.dtype))
        ready = np.zeros((len(q), q.shape[1] + _RIDING), self.dtype)
        np.multiply(q, self.dtype(self._rule.scale_of(place)), out=ready[:, :-_RIDING])
        stat = np.asarray(self._factors.stat[place, rows], np.float64)
        for at, part in enumerate(_parts(-stat, self.dtype), q.shape[1]):
            ready[:, at] = part
        return Queries(ready)

    def _prepare_queries(self, place: int, rows: slice) -> Queries:
        q = plain(self._factors.q[place, rows], self.dtype)
        factor, cap, least, shift = self._row_terms(place, rows)
        content, position = q, None
        if self._distances is not None and self._acts[place].features is None:
            content, position = self._distances.head(place).query_terms(q)
        content = self._with_one(place, content)
        # in the model's own order: scaling q first, or a statistic rounded to float32 as one more
        # column of the product, was up to 8 times less exact
        if not (np.abs(np.frexp(factor)[0]) == 0.5).all():
            return Queries(content, position, factor, cap, least, shift)
        # powers of two, as of heads 64 wide, round nothing: the same bits, and a step less a tile
        position = None if position is None else position * factor
        return Queries(content * factor, position, None, cap, least, shift)

    def _with_more(self, place: int, k: NDArray[Any]) -> NDArray[Any]:
        """Keys (keys, d_head), with what they add to any product as one more column."""
        k, of_keys = plain(k, self.dtype), self._acts[place].of_keys
        return k if of_keys is None else np.column_stack([k, of_keys(k, np)])

    def _with_one(self, place: int, q: NDArray[Any]) -> NDArray[Any]:
        """Queries (rows, d_head), with the one that meets that column."""
        if self._acts[place].of_keys is None:
            return q
        return np.column_stack([q, np.ones(len(q), self.dtype)])

    def _row_terms(
        self, place: int, rows: slice
    ) -> tuple[NDArray[Any], NDArray[Any] | None, NDArray[Any] | None, tuple[NDArray[Any], ...]]:
        """(rows, 1) each: what multiplies the scores of a row, their soft cap, the least that
        weighs, and what is added to them.
        """
        factors, norm = self._factors, self._rule.norms[place]
        statistic = self._acts[place].statistic

        def of(values: NDArray[Any]) -> NDArray[np.float64]:
            return np.asarray(values[place, rows], np.float64)[:, None]

        stat = of(factors.stat)
        divisor, constant = np.ones_like(stat), 0.0
        if norm is not None:
            length = stat if factors.norm is None or statistic == "none" else of(factors.norm)
            literal = norm == "l2-literal"
            divisor = np.where(length > 0, length, 1.0) if literal else length + NORM_EPSILON
            constant = NORM_EPSILON if literal else 0.0
        least = None if factors.threshold is None else of(factors.threshold) / divisor
        shift = np.full_like(stat, constant)
        if statistic == "lse":
            shift -= stat
        elif statistic == "sum":
            over = self._acts[place].divisor(stat)
            divisor, shift = divisor * over, shift / over
            least = None if least is None else least / over
        if least is not None:
            least = None if np.isneginf(least).all() else least.astype(self.dtype)
        factor = (self._rule.scale_of(place) / divisor).astype(self.dtype)
        softcap, cap = self._rule.softcap, None  # of scores before they are divided
        if softcap is not None and self._acts[place].features is None:
            cap = (softcap / divisor).astype(self.dtype)
        return factor, cap, least, _parts(shift, self.dtype)


def _parts(shift: NDArray[np.float64], dtype: type[Any]) -> tuple[NDArray[Any], ...]:
    """What is added to scores, as none, one or two numbers of a dtype that make it up."""
    if not shift.any():
        return ()
    # a weight near 1 feels the rounding of a large statistic: the rest follows
    high = shift.astype(dtype)
    rest = np.subtract(shift, high, where=np.isfinite(shift), out=np.zeros_like(shift))
    return (high, rest.astype(dtype)) if rest.any() else (high,)


# --- the maps -------------------------------------------------------------------------------------

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
        """(heads or 1, keys, tokens) The weight of each token in each slot; see Factors."""
        return self.factors.mixture

    @property
    def verify_max_abs(self) -> float:
        """The largest difference between the proof rows and the tiles."""
        if self._difference is None:
            self._difference = max(map(self.proof_error, range(len(self.heads))), default=0.0)
        return self._difference

    def weights(self, place: int, i: int, j: int) -> NDArray[Any] | None:
        """Tile (i, j) of the head stored at a place; None where all its cells are zero."""
        rows, columns = self._block(i, j)
        scores = self._scores(place, i, j, rows, columns)
        empty = self._empty_in(rows)
        if empty is None:
            return None if scores is None else self._activate(place, scores)
        if scores is None:
            tile = np.zeros((len(rows), len(columns)), self.operands.dtype)
        else:
            tile = self._activate(place, scores)
        self._fill(tile, empty, rows, columns)
        return tile

    def pooled(
        self, place: int, i: int, tiles: range, zoom: int
    ) -> Iterator[tuple[int, NDArray[Any] | None]]:
        """Tiles in cells of 2^zoom; increasing activations are applied to pooled scores."""
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
        plain = block.plain and self._acts[place].logs is None
        whole = plain and self._exists(place, rows, columns) is True
        for at, j in enumerate(run):
            part = columns[at * TILE : (at + 1) * TILE]
            target = scores[:, at * TILE : (at + 1) * TILE]
            if whole:
                np.matmul(block.content, self.operands.keys(place, j, part), out=target)
            elif self._scores(place, i, j, rows, part, out=target) is None:
                target[:] = self._nothing(place)
        if self._acts[place].pooling == "max" or not zoom:
            return self._activate(place, fold_max(scores, zoom, _room.take))
        # both ends, since a saturated activation makes equal what was not: tanh 9 and tanh -10
        highest, lowest = fold_ends(scores, zoom)
        return larger(self._activate(place, highest), self._activate(place, lowest))

    def _block(self, i: int, j: int) -> tuple[range, range]:
        """The rows and columns of a tile."""
        _, queries, keys = self.shape
        rows = range(i * TILE, min((i + 1) * TILE, queries))
        return rows, range(j * TILE, min((j + 1) * TILE, keys))

    def _activate(self, place: int, scores: NDArray[Any]) -> NDArray[Any]:
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
        found = self._scaled_scores(place, i, j, rows, columns, out)
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
    def has_uniform_rows(self) -> bool:
        """Whether rows that see no key have uniform weights."""
        uniform = self._kept is not None and self._rule.empty_rows == "uniform"
        return uniform and bool(self._empty.any())

    def keeps_all_keys(self, place: int) -> bool:
        """Whether a head gives weight to all keys that it sees, not only to the k largest."""
        least = self.factors.threshold
        return least is None or bool(np.isneginf(least[place]).all())

    def is_softmax(self, place: int) -> bool:
        """Whether the weights of a head are exp(score - statistic)."""
        return self._acts[place].softmax and not self.has_uniform_rows

    def logs(self, place: int, i: int, j: int) -> NDArray[Any] | None:
        """The logarithms of a tile of weights; see Tiled."""
        return self._scores(place, i, j, *self._block(i, j))

    def terms(self, place: int, i: int, j: int) -> NDArray[Any] | None:
        """The terms of the log-sum-exp of rows in a tile: for a softmax its scores."""
        act = self._acts[place]
        if act.logs is None:
            return self.logs(place, i, j)
        found = self._scaled_scores(place, i, j, *self._block(i, j), None)
        if found is None:
            return None
        tile, _, hidden = found
        terms: NDArray[Any] = act.split(tile, np)[1]
        for cells in hidden:
            np.copyto(terms, -np.inf, where=cells)
        return terms

    def _nothing(self, place: int) -> float:
        return -np.inf if self._acts[place].statistic == "lse" else 0.0

    def _scaled_scores(
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
        if block.cap is not None:
            tile /= block.cap
            np.tanh(tile, out=tile)
            tile *= block.cap
        dropped = self._below_threshold(place, tile, block.least, rows, columns)
        hidden = [] if dropped is None else [dropped]
        if exists is None:
            hidden.append(self._hidden(place, rows, columns))
        return tile, block, hidden

    def _below_threshold(
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
        first, stop = np.searchsorted(self._listed_cells[0], place * self.shape[1] + np.array(
            [rows.start, rows.stop]))  # fmt: skip
        row, column = (part[first:stop] for part in self._listed_cells[1:])
        here = (column >= columns.start) & (column < columns.stop)
        dropped[row[here] - rows.start, column[here] - columns.start] = False
        return dropped

    @cached_property
    def _listed_cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
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

        def compute() -> NDArray[np.bool_]:
            # in four bytes where these hold all tokens: compared in half the time
            small = max(self.shape[1:]) * max(rule.stride_q, rule.stride_k) < 1 << 31
            i, j = (np.arange(one.start, one.stop, dtype="i4" if small else "i8")
                    for one in (rows, columns))  # fmt: skip
            return ~rule.sees(i, j)

        if not rule.sees_all or rule.keep is not None:
            return compute()
        # along the diagonal it is the same for all
        apart = rows.start * rule.stride_q - columns.start * rule.stride_k
        return self._edges.get((apart, len(rows), len(columns)), compute)

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
                return (
                    None
                    if kept and self._is_in_window(place, rows, columns) is not False
                    else False
                )
        within = last_first <= columns.start and stop >= columns.stop
        near = self._is_in_window(place, rows, columns)
        return near if within or near is False else None

    def _is_in_window(self, place: int, rows: range, columns: range) -> bool | None:
        """Whether all cells of a block are of the first keys and the latest of a head, None for
        some."""
        if (near := self._rules[place].streaming_window) is None:
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

    def proof_error(self, place: int, surveyed: NDArray[Any] | None = None) -> float:
        """The largest difference between the proof rows of a head and its tiles; infinite where
        only one of both is a number. surveyed (rows, keys): these rows, if a survey has read them.
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


def has_negative_weights(found: Any, head: int) -> bool:
    """Whether weights of a head can be negative: by its activation where that is known, else as
    those of its layer.
    """
    if not found.signed or not isinstance(found, LazyMap):
        return bool(found.signed)
    row = ACTIVATIONS.get(found.factors.rule.activations[found.heads.index(head)])
    return row is None or row.signed


# --- the row statistic that goes with the tiles ---------------------------------------------------

ROUNDED = 2.0**-23  # how far a log-sum-exp of float32 is off, relative to itself or to 1
HARMLESS = 4e-7  # a weight may be off by 5e-7, and scores of small weights are off by little


def recompute_statistics(
    factors: Factors, rounded: float | None = None, blocks: Blocks = tile_blocks
) -> Factors:
    """Factors whose row statistics are recomputed from the tiles, so that the rows of softmaxes and
    of linear attention sum to 1 there.

    A model takes the statistic of its own scores, whose rounding errors are not those of the
    tiles; in the model's weights they cancel, between the two they add up. One pass over the
    tiles puts what is left of them into the statistic. Rows without keys stay as they are.
    rounded: how far log-sum-exps are off at most, relative to themselves; where it is known, only
    rows are looked at that have a weight which could be off by more than is harmless. blocks: how
    weights are computed.
    """
    maps = LazyMap(factors, tuple(range(factors.q.shape[0])))
    stat = np.array(factors.stat[...], np.float64)
    for place in range(len(stat)):
        rows = None if rounded is None else _doubtful(factors, place, rounded)
        stat[place] = head_statistic(maps, place, rows, blocks)
    return replace(factors, stat=stat)


def head_statistic(
    maps: LazyMap,
    place: int,
    rows: NDArray[np.bool_] | None = None,
    blocks: Blocks = tile_blocks,
) -> NDArray[np.float64]:
    """The row statistic (queries,) of one head, recomputed from its tiles."""
    factors = maps.factors
    act = ACTIVATIONS[factors.rule.activations[place]]
    if act.statistic == "none":
        return np.array(factors.stat[place], np.float64)
    if act.logs is not None:  # what a row sums to does not tell
        return add_sinks(row_log_sums(maps, place), factors.rule, place)
    return corrected_statistic(factors, place, row_totals(maps, place, rows, blocks))


def add_sinks(stat: NDArray[np.float64], rule: Rule, place: int) -> NDArray[np.float64]:
    """Log-sum-exps (queries,) of a head with the logits of its sinks added."""
    act, good = ACTIVATIONS[rule.activations[place]], np.isfinite(stat)
    learnt = None if rule.sinks is None or not act.softmax else float(rule.sinks[place])
    for sink in (learnt, act.sink):
        if sink is not None:
            stat = np.where(good, np.logaddexp(np.where(good, stat, 0.0), sink), stat)
    return stat


def with_statistics(factors: Factors) -> Factors:
    """Factors with row statistics and norms computed from q and k, for all activations but topk.

    It takes one pass over the tiles, two where scores are normalised before they are summed.
    """
    stat, heads = np.zeros(factors.q.shape[:2]), tuple(range(len(factors.q)))
    norm, both = np.zeros(stat.shape, np.float32), False
    for place in heads:
        rule = factors.rule
        kind = ACTIVATIONS[rule.activations[place]].statistic
        if rule.norms[place] is not None:
            found = lengths(
                LazyMap(replace(factors, stat=stat, rule=_scores(rule, place)), heads), place
            )
            both = both or kind != "none"
            (stat if kind == "none" else norm)[place] = found
        normal = replace(factors, stat=stat, norm=norm)
        if kind == "lse":
            stat[place] = add_sinks(row_log_sums(LazyMap(normal, heads), place), rule, place)
        elif kind == "sum":
            stat[place] = corrected_statistic(
                normal, place, row_totals(LazyMap(normal, heads), place)
            )
    return replace(factors, stat=stat, norm=norm if both else None)


def _scores(rule: Rule, place: int) -> Rule:
    """The rule under which the `logs` of a head are its scaled scores."""
    names = [name if ACTIVATIONS[name].softmax else "softmax" for name in rule.activations]
    norms, scale = (None,) * len(names), rule.scale_of(place)
    return replace(rule, scale=scale, activations=tuple(names), norms=norms)


def corrected_statistic(
    factors: Factors, place: int, total: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The row statistic (queries,) of a head, corrected by the sums of its rows in the tiles; NaN
    leaves a row as it is.
    """
    stat = np.array(factors.stat[place], np.float64)
    good = np.isfinite(stat) & np.isfinite(total) & (total > 0)
    kind = ACTIVATIONS[factors.rule.activations[place]]
    if kind.statistic == "lse":
        stat[good] += np.log(total[good])
        stat[good] = add_sinks(stat[good], factors.rule, place)
    elif kind.statistic == "sum":  # a row sums to S / (S + epsilon), S the sum in the tiles
        stat[good] = total[good] * (stat[good] + kind.epsilon)
    return stat


def _doubtful(factors: Factors, place: int, rounded: float) -> NDArray[np.bool_] | None:
    """(queries,) The rows of a softmax in which a weight may be off; None for all.

    No score is larger than the lengths of query and key allow (Cauchy-Schwarz).
    """
    rule = factors.rule
    kind = ACTIVATIONS[rule.activations[place]]
    more = rule.norms[place], rule.relative, kind.of_keys, kind.sink, rule.sinks, rule.softcap
    if not kind.softmax or any(one is not None for one in more):
        return None
    q, k = (np.linalg.norm(plain(one[place], np.float32), axis=1) for one in (factors.q, factors.k))
    stat: NDArray[Any] = np.asarray(factors.stat[place], np.float64)
    with np.errstate(invalid="ignore"):
        largest = np.exp(np.minimum(abs(rule.scale) * q * k.max(initial=0.0) - stat, 0.0))
        found: NDArray[np.bool_] = largest * rounded * np.maximum(np.abs(stat), 1.0) > HARMLESS
    return found
