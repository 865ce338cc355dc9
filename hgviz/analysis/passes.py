"""What every head of a model does with one text, and what reaches its scores on the way back.

A text is given as blocks of rows of layers, and leaves one number of every metric and head. Shapes:
N heads, Q queries, K keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.differences import NEAR_ZERO, distance_of, divergence, rank_of
from hgviz.core import HeadId, ModelSpec
from hgviz.maps.tiles import one_thread

SMALL = 1e-3  # of the largest slope of a head in a text
SINGULAR = 12  # singular values that are kept
RANK_ROWS, APART_ROWS = 256, 64  # of a map, spread evenly, where it has more
CELLS = 1 << 22  # of all heads of a layer, held at once
PAIRED = 1 << 25  # cells of pairs of heads whose distance is taken in one text
EDGES = (0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, np.inf)  # of |score|

Array = NDArray[Any]
Many = NDArray[np.float64]


class Block(Protocol):
    """Some rows of all heads of a layer (N, rows, K), as models.attribution gives them."""

    @property
    def scores(self) -> Array:
        """Scaled, before mask, norm and activation."""
        ...

    @property
    def weights(self) -> Array:
        """What these become."""
        ...

    @property
    def at_scores(self) -> Array:
        """dM/dS, M being what is asked."""
        ...

    @property
    def at_weights(self) -> Array:
        """dM/dA."""
        ...

    @property
    def seen(self) -> NDArray[np.bool_]:
        """(rows, K): the cells that exist."""
        ...


class Passed(Protocol):
    """A pass over one text and its way back."""

    def shape(self, layer: int) -> tuple[int, int, int]:
        """Heads, queries and keys of a layer."""
        ...

    def rows(self, layer: int, rows: range) -> Block:
        """Some rows of all its heads."""
        ...


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a head in a text: what people call it, its unit, and what it means."""

    name: str
    label: str
    unit: str
    means: str


MEASURES: dict[str, Metric] = {
    row.name: row
    for row in (
        Metric("entropy", "Entropy of |A|", "nats",
               "how many keys a query spreads over: e to this power; mean over rows"),
        Metric("near_zero", "Near-zero weights", "share",
               f"share of cells below {NEAR_ZERO:g} of their row's largest weight"),
        Metric("negative", "Negative mass", "share",
               "share of a row's weight |A| that is below 0; mean over rows"),
        Metric("row_sum", "Row sum", "",
               "what a row of A adds up to; exactly 1 for softmax, anything for signed weights"),
        Metric("rank", "Effective rank / n", "share",
               "e to the entropy of the singular values, over the smaller side of the map"),
        Metric("apart", "Distance to other heads", "",
               "Jensen-Shannon distance to the other heads of the layer, 0 alike to 1 disjoint"),
        Metric("slope", "Mean |dM/dS|", "nats",
               "how much the log odds of the right answer move with a score, over the rows that "
               "they depend on"),
        Metric("small", "Vanished slopes", "share",
               f"share of those cells below {SMALL:g} of the largest |dM/dS| of the head"),
        Metric("passed", "Passed by the activation", "",
               "sum of |dM/dS| over sum of |dM/dA|: what norm and activation let through"),
    )
}  # fmt: skip


def measured(passed: Passed, spec: ModelSpec) -> Text:
    """What one text says of every head of a model."""
    found = Text.of(spec)
    by_shape: dict[tuple[int, int], list[int]] = {}
    for layer in spec.layers:
        if layer.heads:
            by_shape.setdefault(passed.shape(layer.index)[1:], []).append(layer.index)
    for (queries, keys), layers in by_shape.items():
        count = sum(len(spec.layers[layer].heads) for layer in layers)
        most = min(APART_ROWS, queries, max(4, PAIRED // max(1, count * count * keys)))
        sampled = np.unique(np.linspace(0, queries - 1, most).astype(int))
        shares = [_layer(found, passed, layer, queries, keys, sampled) for layer in layers]
        at = [found.column[HeadId(layer, h)] for layer in layers for h in spec.layers[layer].heads]
        together = np.concatenate(shares)  # (N, sampled, K)
        found.apart[np.ix_(at, at)] = distances(together, together)
        found.shares[queries, keys] = (np.array(at), together)
    for layer in spec.layers:
        at = [found.column[HeadId(layer.index, head)] for head in layer.heads]
        if len(at) > 1:
            mine = found.apart[np.ix_(at, at)]
            known = ~np.isnan(mine) & ~np.eye(len(at), dtype=bool)
            total, count = np.where(known, mine, 0.0).sum(1), known.sum(1).astype(float)
            found.values["apart"][at] = _over(total, count)
    return found


def distances(p: Array, q: Array) -> Many:
    """(N, M) Jensen-Shannon distances of the rows of p (N, rows, K) and q (M, rows, K), which sum
    to 1: the mean over the rows that both give weight to, 0 to 1; NaN where there is none."""
    found = np.full((len(p), len(q)), np.nan)
    some_p, some_q = np.asarray(p.any(-1)), np.asarray(q.any(-1))
    for at, one in enumerate(p):
        apart = distance_of(divergence(one[None], q))  # (M, rows)
        both = some_p[at][None] & some_q
        totals = np.where(both, apart, 0).sum(1)
        counts = both.sum(1)
        found[at] = np.divide(totals, counts, out=np.full(len(q), np.nan), where=counts > 0)
    return found


@dataclass(frozen=True)
class Text:
    """What one text says: values (heads,) of every metric, NaN where there is none; spectra
    (heads, SINGULAR): singular values over the largest; apart (heads, heads): Jensen-Shannon
    distances, NaN between maps of other shapes; cells, at_scores and at_weights (heads, bins): how
    many cells have so large a score, and what |dM/dS| and |dM/dA| add up to there; shares: by
    queries and keys, columns and (N, rows, K) rows of |A| that sum to 1; column: of each head."""

    column: dict[HeadId, int]
    values: dict[str, Many]
    spectra: Many
    apart: Many
    cells: Many
    at_scores: Many
    at_weights: Many
    shares: dict[tuple[int, int], tuple[Array, Array]] = field(default_factory=dict)

    @classmethod
    def of(cls, spec: ModelSpec) -> Text:
        """Nothing measured yet."""
        count, bins = len(spec.heads), len(EDGES) - 1
        return cls(
            {head: at for at, head in enumerate(spec.heads)},
            {name: np.full(count, np.nan) for name in MEASURES},
            np.full((count, SINGULAR), np.nan),
            np.full((count, count), np.nan),
            np.zeros((count, bins)),
            np.zeros((count, bins)),
            np.zeros((count, bins)),
        )


def between(one: Text, other: Text) -> Many:
    """(heads of A, heads of B) distances of their rows; NaN for maps of other shapes."""
    found = np.full((len(one.column), len(other.column)), np.nan)
    for shape in {*one.shares} & {*other.shares}:
        (mine, p), (theirs, q) = one.shares[shape], other.shares[shape]
        if p.shape[1] == q.shape[1]:
            found[np.ix_(mine, theirs)] = distances(p, q)
    return found


# --- one layer ------------------------------------------------------------------------------------


def _layer(
    found: Text, passed: Passed, layer: int, queries: int, keys: int, sampled: Array
) -> Array:
    """Fill in what the heads of a layer do; gives the rows sampled of |A|, over their sums."""
    heads = [head for head in found.column if head.layer == layer]
    at = np.array([found.column[head] for head in heads])
    step = max(1, CELLS // max(1, len(heads) * keys))
    parts = [range(start, min(start + step, queries)) for start in range(0, queries, step)]
    ranked = np.unique(np.linspace(0, queries - 1, min(RANK_ROWS, queries)).astype(int))
    sums, slopes = _Rows(len(heads)), _Slopes(len(heads))
    kept: list[Array] = []
    shares: list[Array] = []

    def blocks() -> Iterator[tuple[range, Block]]:
        for rows in parts:
            yield rows, passed.rows(layer, rows)

    only: list[tuple[range, Block]] = []
    for rows, block in blocks():
        only = [(rows, block)] if len(parts) == 1 else []
        sums.add(block)
        slopes.add(block)
        kept.append(block.weights[:, _inside(ranked, rows)])
        mine = np.abs(block.weights[:, _inside(sampled, rows)]).astype(float)
        mass = mine.sum(-1, keepdims=True)
        shares.append(np.divide(mine, mass, out=np.zeros_like(mine), where=mass > 0))
        found.cells[at] += _binned(block, np.ones_like(block.scores))
        found.at_scores[at] += _binned(block, np.abs(block.at_scores))
        found.at_weights[at] += _binned(block, np.abs(block.at_weights))
    for _, block in only or blocks():
        slopes.compare(block)
    for name, value in (sums.means() | slopes.means()).items():
        found.values[name][at] = value
    matrix = np.concatenate(kept, axis=1)
    rank, spectrum = spectra(matrix)
    found.values["rank"][at] = rank / max(1, min(matrix.shape[1:]))
    found.spectra[at, : spectrum.shape[1]] = spectrum
    return np.concatenate(shares, axis=1)


def spectra(maps: Array) -> tuple[Many, Many]:
    """Effective ranks (N,) of maps (N, rows, K), Roy and Vetterli 2007, and their first SINGULAR
    singular values over the largest; 0 and 0 for a map of zeros, NaN where it holds one."""
    if not maps.size:
        return np.full(len(maps), np.nan), np.full((len(maps), 0), np.nan)
    broken: Array = (~np.isfinite(maps)).sum((1, 2)) > 0
    with one_thread():
        known = np.where(broken[:, None, None], 0.0, maps.astype(float))
        sizes = np.linalg.svd(known, compute_uv=False)
    sizes[broken] = np.nan
    top = sizes[:, :1]
    first = np.divide(sizes, top, out=np.zeros_like(sizes), where=top > 0)[:, :SINGULAR]
    return rank_of(sizes), first


def _inside(numbers: Array, rows: range) -> Array:
    return numbers[(numbers >= rows.start) & (numbers < rows.stop)] - rows.start


def _binned(block: Block, values: Array) -> Many:
    """(N, bins) sums of values by the size of the score, over cells that exist and count."""
    bins = len(EDGES) - 1
    number = np.digitize(np.abs(block.scores), EDGES[1:-1])
    number += bins * np.arange(len(number))[:, None, None]
    there = block.seen[None] & _asked(block)[..., None]
    sums = np.bincount(number[there], values[there].astype(float), bins * len(number))
    return np.asarray(sums, float).reshape(len(number), bins)


def _asked(block: Block) -> NDArray[np.bool_]:
    """(N, rows): the rows that what is asked depends on at all."""
    return np.asarray(block.at_weights.any(-1), np.bool_)


class _Rows:
    """Means over the rows of weights."""

    def __init__(self, heads: int) -> None:
        self._entropy, self._negative, self._sum, self._near = np.zeros((4, heads))
        self._weighted, self._there, self._cells = np.zeros((3, heads))

    def add(self, block: Block) -> None:
        """Some rows more."""
        signed = block.weights.astype(float)
        size = np.abs(signed)
        mass = size.sum(-1)  # (N, rows)
        some, seeing = mass > 0, block.seen.any(-1)
        p = np.divide(size, mass[..., None], out=np.zeros_like(size), where=some[..., None])
        self._entropy -= (p * np.log(np.where(p > 0, p, 1.0))).sum((1, 2))
        below = -np.minimum(signed, 0).sum(-1)
        self._negative += np.divide(below, mass, out=np.zeros_like(mass), where=some).sum(-1)
        self._sum += signed.sum(-1).sum(-1)
        near = (size < NEAR_ZERO * size.max(-1, keepdims=True)) & block.seen
        self._near += near.sum((1, 2))
        self._weighted += some.sum(-1)
        self._there += seeing.sum()
        self._cells += block.seen.sum()

    def means(self) -> dict[str, Many]:
        """By the names of MEASURES, (N,) each."""
        return {
            "entropy": _over(self._entropy, self._weighted),
            "negative": _over(self._negative, self._weighted),
            "row_sum": _over(self._sum, self._there),
            "near_zero": _over(self._near, self._cells),
        }


class _Slopes:
    """What comes back to the scores, over the cells that exist in rows that count."""

    def __init__(self, heads: int) -> None:
        self._scores, self._weights, self._cells, self._small, self._top = np.zeros((5, heads))

    def add(self, block: Block) -> None:
        """Some rows more, the first time."""
        size = np.abs(block.at_scores)
        self._scores += size.sum((1, 2), dtype=float)
        self._weights += np.abs(block.at_weights).sum((1, 2), dtype=float)
        self._cells += (block.seen[None] & _asked(block)[..., None]).sum((1, 2))
        self._top = np.maximum(self._top, size.max((1, 2), initial=0))

    def compare(self, block: Block) -> None:
        """The same rows again, now that the largest of all is known."""
        there = block.seen[None] & _asked(block)[..., None]
        small = np.abs(block.at_scores) < SMALL * self._top[:, None, None]
        self._small += (small & there).sum((1, 2))

    def means(self) -> dict[str, Many]:
        """By the names of MEASURES, (N,) each."""
        moved = self._top > 0
        return {
            "slope": _over(self._scores, self._cells),
            "small": np.where(moved, _over(self._small, self._cells), np.nan),
            "passed": _over(self._scores, self._weights),
        }


def _over(total: Many, count: Many) -> Many:
    return np.asarray(np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0))


__all__ = [
    "EDGES", "MEASURES", "SINGULAR", "SMALL", "Metric", "Passed", "Text", "between", "distances",
    "measured", "spectra",
]  # fmt: skip
