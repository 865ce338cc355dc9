"""Maps computed from queries, keys and row statistics when they are looked at."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.activations import ACTIVATIONS, NORM_EPSILON, SUM_EPSILON
from hgviz.core import Floats
from hgviz.maps.cache import Cache
from hgviz.maps.pooling import fold_ends, fold_max, larger
from hgviz.maps.pyramid import Pyramid
from hgviz.maps.relative import Distances
from hgviz.maps.rule import Factors
from hgviz.maps.summary import Summary, summarise
from hgviz.maps.tiles import TILE, Tiled

_OPERANDS = Cache(64 << 20)  # blocks of q and k ready for the product, of all maps together
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class _Queries:
    """A block of rows, ready: what meets the keys (rows, d_head), what meets the distances, and
    (rows, 1) each: the factor of a row's scores (None if they have it), the least that weighs, and
    what is added then.
    """

    content: NDArray[Any]
    position: NDArray[Any] | None
    factor: NDArray[Any] | None
    least: NDArray[Any] | None
    shift: tuple[NDArray[Any], ...]

    @property
    def nbytes(self) -> int:
        parts = (self.content, self.position, self.factor, self.least, *self.shift)
        return sum(part.nbytes for part in parts if part is not None)


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
        self._stored, self._difference = stored, difference
        self._dtype = np.float64 if factors.dtype == "float64" else np.float32
        self._number = next(_numbers)
        relative, keep = rule.relative, rule.keep
        self._distances = Distances(rule, relative) if relative is not None else None
        self._kept = None if keep is None else np.concatenate([[0], np.cumsum(keep)])

    @property
    def verify_max_abs(self) -> float:
        """The largest difference between the proof rows and what the tiles give."""
        if self._difference is None:
            self._difference = max(map(self.compared, range(len(self.heads))), default=0.0)
        return self._difference

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
        size = (len(rows), len(columns))
        tile = np.zeros(size, self._dtype) if scores is None else self._activated(place, scores)
        self._fill(tile, empty, rows, columns)
        return tile

    def pooled(self, place: int, i: int, j: int, zoom: int) -> NDArray[Any] | None:
        """Tile (i, j) in cells of 2^zoom; activations that only grow act on the pooled scores."""
        pooling = self._acts[place].pooling
        rows, columns = self._block(i, j)
        if pooling == "after" or self._empty_in(rows) is not None:
            return super().pooled(place, i, j, zoom)
        scores = self._scores(place, i, j, rows, columns)
        if scores is None:
            return None
        if pooling == "max":
            return self._activated(place, fold_max(scores, zoom))
        # both ends, since a saturated activation makes equal what was not: tanh 9 and tanh -10
        highest, lowest = fold_ends(scores, zoom)
        return larger(self._activated(place, highest), self._activated(place, lowest))

    def _block(self, i: int, j: int) -> tuple[range, range]:
        """The rows and columns of a tile."""
        _, queries, keys = self.shape
        rows = range(i * TILE, min((i + 1) * TILE, queries))
        return rows, range(j * TILE, min((j + 1) * TILE, keys))

    def _activated(self, place: int, scores: NDArray[Any]) -> NDArray[Any]:
        found: NDArray[Any] = self._acts[place].apply(scores, None, np)
        return found

    def _scores(
        self, place: int, i: int, j: int, rows: range, columns: range
    ) -> NDArray[Any] | None:
        """What the activation of a tile takes; cells that do not exist take what gives 0."""
        found = self._scaled(place, i, j, rows, columns)
        if found is None:
            return None
        tile, block, hidden = found
        for part in block.shift:
            tile += part
        for cells in hidden:
            np.copyto(tile, self._nothing(place), where=cells)
        return tile

    def by_softmax(self, place: int) -> bool:
        """Whether exp(score - statistic) is all there is to its weights: no rows are filled."""
        filled = self._kept is not None and self._rule.empty_rows == "uniform"
        return self._acts[place].statistic == "lse" and not (filled and self._empty.any())

    def rowmax(self, place: int, top: NDArray[Any]) -> Floats:
        """(queries,) The largest weights of rows; for a softmax of their largest scores."""
        if not self.by_softmax(place):
            return super().rowmax(place, top)
        found = top.astype(self._dtype)[:, None]
        for start in range(0, len(found), TILE):
            rows = slice(start, min(start + TILE, len(found)))
            found[rows] = self._weighed(place, found[rows], rows)
        return found[:, 0].astype(np.float32, copy=False)

    def _weighed(self, place: int, scores: NDArray[Any], rows: slice) -> NDArray[Any]:
        """The weights of scaled scores of a softmax, with the statistic of their rows."""
        with np.errstate(invalid="ignore", over="ignore"):
            for part in self._row_terms(place, rows)[2]:
                scores = scores + part
            return self._activated(place, scores)

    def unsettled(
        self, place: int, i: int, j: int
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...], bool] | None:
        """The scaled scores of a tile before the statistic is taken off; see Tiled."""
        found = self._scaled(place, i, j, *self._block(i, j))
        if found is None:
            return None
        tile, block, hidden = found
        for cells in hidden:
            np.copyto(tile, -np.inf, where=cells)
        return tile, block.shift, bool(hidden)

    def _nothing(self, place: int) -> float:
        return -np.inf if self._acts[place].statistic == "lse" else 0.0

    def _scaled(
        self, place: int, i: int, j: int, rows: range, columns: range
    ) -> tuple[NDArray[Any], _Queries, list[NDArray[np.bool_]]] | None:
        """The scaled scores of a tile, its queries, and which cells weigh nothing."""
        exists = self._exists(rows, columns)
        if exists is False:
            return None
        block = self._queries(place, i, rows)
        tile: NDArray[Any] = block.content @ self._keys(place, j, columns).T
        if block.position is not None:
            tile += self._by_distance(place, block.position, rows, columns)
        # in the model's own order: scaling q first, or the statistic as one more column of the
        # product, rounds differently than the statistic did and was up to 8 times less exact
        if block.factor is not None:
            tile *= block.factor
        dropped = self._dropped(place, tile, block.least, rows, columns)
        hidden = [] if dropped is None else [dropped]
        if exists is None:
            hidden.append(~self._rule.sees(np.asarray(rows), np.asarray(columns)))
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

    def _exists(self, rows: range, columns: range) -> bool | None:
        """Whether all cells of a block exist, None for some."""
        keys = self.shape[2]
        first, stop = self._rule.reach(rows.start, keys)
        last_first, last_stop = self._rule.reach(rows[-1], keys)
        if last_stop <= columns.start or first >= columns.stop:
            return False
        if self._kept is not None:
            kept = self._kept[columns.stop] - self._kept[columns.start]
            if kept < len(columns):
                return None if kept else False
        return True if last_first <= columns.start and stop >= columns.stop else None

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

    # --- operands ---------------------------------------------------------------------------------

    def _queries(self, place: int, i: int, rows: range) -> _Queries:
        key = (self._number, place, "q", i)
        return _OPERANDS.get(key, lambda: self._made_queries(place, rows))

    def _made_queries(self, place: int, rows: range) -> _Queries:
        factors, relative = self.factors, self._rule.relative
        part = slice(rows.start, rows.stop)
        q = plain(factors.q[place, part], self._dtype)
        factor, least, shift = self._row_terms(place, part)
        content, position = q, None
        if relative is not None and self._acts[place].features is None:
            content = q + self._term(relative.content, place)
            position = q + self._term(relative.position, place)
        if not (np.abs(np.frexp(factor)[0]) == 0.5).all():
            return _Queries(content, position, factor, least, shift)
        # powers of two, as of heads 64 wide, round nothing: the same bits, and a step less a tile
        position = None if position is None else position * factor
        return _Queries(content * factor, position, None, least, shift)

    def _row_terms(
        self, place: int, part: slice
    ) -> tuple[NDArray[Any], NDArray[Any] | None, tuple[NDArray[Any], ...]]:
        """(rows, 1) each: what multiplies the scores of a row, the least that weighs, and what is
        added to them.
        """
        factors, norm = self.factors, self._rule.norms[place]
        statistic, dtype = self._acts[place].statistic, self._dtype

        def of(values: NDArray[Any]) -> NDArray[np.float64]:
            return np.asarray(values[place, part], np.float64)[:, None]

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
            divisor, shift = divisor * (stat + SUM_EPSILON), shift / (stat + SUM_EPSILON)
            least = None if least is None else least / (stat + SUM_EPSILON)
        if least is not None:
            least = None if np.isneginf(least).all() else least.astype(dtype)
        factor = (self._rule.scale_of(place) / divisor).astype(dtype)
        return factor, least, parts(shift, dtype)

    def _keys(self, place: int, j: int, columns: range) -> NDArray[Any]:
        def made() -> NDArray[Any]:
            return plain(self.factors.k[place, columns.start : columns.stop], self._dtype)

        return _OPERANDS.get((self._number, place, "k", j), made)

    def _by_distance(
        self, place: int, position: NDArray[Any], rows: range, columns: range
    ) -> NDArray[Any]:
        distances, relative = self._distances, self._rule.relative
        assert distances is not None and relative is not None
        lowest, count = distances.band(rows, columns)

        def made() -> NDArray[Any]:
            weight, bias = self._term(relative.weight, place), self._term(relative.bias, place)
            return distances.keys(weight, bias, lowest, count)

        band = _OPERANDS.get((self._number, place, "r", lowest, count), made)
        return distances.skewed(position @ band.T, len(rows), len(columns))

    def _term(self, values: NDArray[Any], place: int) -> NDArray[Any]:
        return plain(values[place], self._dtype)

    def compared(self, place: int, surveyed: NDArray[Any] | None = None) -> float:
        """The largest difference between the proof rows of a head and what its tiles give, read
        now or as they were surveyed.
        """
        factors, largest = self.factors, 0.0
        for at, one in enumerate(np.asarray(factors.proof_rows)):
            row = slice(int(one), int(one) + 1)
            if surveyed is None:
                found = self.read(self.heads[place], (row.start, row.stop))[0]
            elif self.by_softmax(place):
                found = self._weighed(place, surveyed[at : at + 1].astype(self._dtype), row)[0]
            else:
                found = surveyed[at]
            difference = np.abs(found.astype(np.float32) - factors.proof_values[place, at])
            largest = max(largest, float(difference.max(initial=0.0)))
        return largest


def parts(shift: NDArray[np.float64], dtype: type[Any]) -> tuple[NDArray[Any], ...]:
    """What is added to scores, as none, one or two numbers of a dtype that make it up."""
    if not shift.any():
        return ()
    # a weight near 1 feels the rounding of a large statistic: the rest follows
    high = shift.astype(dtype)
    rest = np.subtract(shift, high, where=np.isfinite(shift), out=np.zeros_like(shift))
    return (high, rest.astype(dtype)) if rest.any() else (high,)


def plain(values: NDArray[Any], dtype: type[Any]) -> NDArray[Any]:
    """Numbers as float32 or float64; the bits of bfloat16 come as uint16."""
    if values.dtype == np.uint16:
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return np.ascontiguousarray(values, dtype)  # one layout, one way through the product
