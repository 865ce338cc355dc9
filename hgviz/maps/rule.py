"""The rule by which a layer turns queries and keys into weights, and the factors of its maps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import lru_cache
from math import gcd
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from hgviz.activations import ACTIVATIONS

Norm = Literal["l2", "l2-literal"] | None
StreamingWindow = tuple[int, int] | None  # how many first and how many latest keys; None: all


class Distance(ABC):
    """A term of the scores of one layer that depends on the distance of query and key.

    Its arrays, of numpy or torch, have the heads on their first axis. A score is
    [content . k + position . r(delta)] * scale, where r(delta) is a row of numbers for the distance
    delta = (j stride_k - i stride_q) / unit of column j and row i, in tokens. Heads that weigh
    features of q and k (linear attention) have no such term.
    """

    unit: int = 1
    names: ClassVar[tuple[str, str, str, str]]  # content, k, position and r, as a reader sees them

    @abstractmethod
    def map(self, change: Callable[[Any], Any]) -> Self:
        """The same terms with every array changed."""

    def query_terms(self, q: Any) -> tuple[Any, Any]:
        """(content, position) of queries (..., heads, rows, d_head), or (rows, d_head) of one."""
        return q, 0 * q[..., :1] + 1


@dataclass(frozen=True, slots=True)
class Relative(Distance):
    """Transformer-XL terms: score = [(q + u).k + (q + v).(W phi(delta) + b)] * scale (Dai et al.
    2019, 3.3).

    weight (heads, d_head, width), bias (heads, d_head), content and position (heads, d_head) are
    W, b, u, v; unit is 1, and stride_q going up. phi(t) = [sin(t f), cos(t f)],
    f_c = 10000^(-2c / width), c = 0 .. width/2 - 1.
    """

    weight: Any
    bias: Any
    content: Any
    position: Any
    unit: int = 1
    names = "q+u", "k", "q+v", "r"

    def map(self, change: Callable[[Any], Any]) -> Self:
        """The same terms with every array changed."""
        parts = (self.weight, self.bias, self.content, self.position)
        return type(self)(*map(change, parts), self.unit)  # type: ignore[call-arg]

    def query_terms(self, q: Any) -> tuple[Any, Any]:
        """q + u and q + v"""
        return q + self.content[..., None, :], q + self.position[..., None, :]


@dataclass(frozen=True, slots=True)
class Quadratic(Distance):
    """Quadratic terms: score = [q.k - a (delta - c)^2] * scale (Cordonnier et al. 2020, 3.1).

    curve (heads, 2): a and c; a * scale is what they call alpha, so that a head without content
    weighs by exp(-alpha (delta - c)^2) over its sum.
    """

    curve: Any
    names = "q", "k", "1", "−a(δ−c)²"

    def map(self, change: Callable[[Any], Any]) -> Self:
        """The same terms with every array changed."""
        return type(self)(change(self.curve))


@dataclass(frozen=True, slots=True)
class Diagonals(Distance):
    """A bias by distance: score = [q.k + values[h, delta - lowest]] * scale, delta = j - i.

    values (heads, distances), from the distance lowest on: what ALiBi (Press et al. 2022, eq. 1)
    and the buckets of T5 (Raffel et al. 2020, 2.1) add, over scale; in layers of one stride.
    """

    values: Any
    lowest: int
    names = "q", "k", "1", "b(δ)"

    def map(self, change: Callable[[Any], Any]) -> Self:
        """The same terms with every array changed."""
        return type(self)(change(self.values), self.lowest)


class Grouped:
    """Keys (groups, keys, d_head) shared by heads, indexed like an array (heads, keys, d_head).

    Head h has the keys of group h groups // heads (Ainslie et al. 2023, 2.2).
    """

    def __init__(self, stored: Any, heads: int) -> None:
        self.stored, self.each = stored, heads // int(stored.shape[0])
        self.shape: tuple[int, ...] = (heads, *stored.shape[1:])
        self.dtype = stored.dtype

    def group(self, place: int) -> int:
        """The group of the head at a place."""
        return place // self.each

    def __getitem__(self, at: Any) -> NDArray[Any]:
        if isinstance(at, tuple):
            found: NDArray[Any] = self.stored[self.group(at[0]), *at[1:]]
            return found
        whole = np.asarray(self.stored[...]) if at is Ellipsis else self.stored[self.group(at)]
        return np.repeat(whole, self.each, axis=0) if at is Ellipsis else whole


@dataclass(frozen=True, slots=True)
class Rule:
    """How scores become weights in one layer.

    scale multiplies q.k, but for activations of features (see scale_of); activations and norms
    have one entry per stored head; top_k is how many keys a row of the activation topk keeps. Row
    i stands at token i stride_q, column j at j stride_k (after the causal shift). Causal: column
    j is seen where j stride_k < (i + 1) stride_q, which is j <= i in self attention, j < s (i + 1)
    going down and j <= i // s going up. Windowed: only where both lie in the same group of
    max(stride_q, stride_k) tokens. keep (keys,) is False for padded keys, None when all are real.
    empty_rows: what a row without any key reads, zeros or the uniform row of the packages that
    mask by a large negative number (over its window, or over all keys, future ones too).

    Of layers of one stride: band (behind, ahead), so many columns before and after its own a row
    sees; chunk: only columns of its own chunk of so many. softcap: a score s becomes c tanh(s / c),
    after scale and before all else (Gemma Team 2024, 2). sinks (heads,): a logit of each head that
    takes part in the sum of every row and has no column (Xiao et al. 2024).

    streaming: for each stored head the number of first keys and of latest keys, its own included,
    that rows of a causal rule see (hgviz.core.Streaming), None for all; () where no head streams.
    Methods about cells describe all heads together, or one head after `of`.
    """

    scale: float
    activations: tuple[str, ...]
    norms: tuple[Norm, ...]
    stride_q: int = 1
    stride_k: int = 1
    causal: bool = False
    windowed: bool = False
    empty_rows: Literal["zeros", "uniform"] = "zeros"
    keep: NDArray[np.bool_] | None = None
    relative: Distance | None = None
    top_k: int | None = None
    band: tuple[int, int] | None = None
    chunk: int | None = None
    softcap: float | None = None
    sinks: NDArray[Any] | None = None
    streaming: tuple[StreamingWindow, ...] = ()

    def scale_of(self, place: int) -> float:
        """The factor of q.k for the head at a place: 1 for features of q and k."""
        return self.scale if ACTIVATIONS[self.activations[place]].features is None else 1.0

    def top_k_of(self, place: int) -> int | None:
        """The number of keys that each row of a head gives weight to; None for all."""
        return self.top_k if self.activations[place] == "topk" else None

    def head_kinds(self) -> tuple[tuple[int, ...], ...]:
        """The places of heads, grouped by activation, norm and streaming window."""
        found: dict[Any, list[int]] = {}
        near = self.streaming or (None,) * len(self.activations)
        for place, kind in enumerate(zip(self.activations, self.norms, near, strict=True)):
            found.setdefault(kind, []).append(place)
        return tuple(map(tuple, found.values()))

    def select(self, places: tuple[int, ...]) -> Rule:
        """The rule of the heads at some places; relative terms must be theirs already."""
        names = tuple(self.activations[place] for place in places)
        norms = tuple(self.norms[place] for place in places)
        sinks = None if self.sinks is None else self.sinks[list(places)]
        near = tuple(self.streaming[place] for place in places) if self.streaming else ()
        return replace(self, activations=names, norms=norms, sinks=sinks, streaming=near)

    def of(self, place: int) -> Rule:
        """The rule of the head at a place, with its own streaming window."""
        return self.select((place,)) if self.streaming else self

    def with_streaming(self, places: Collection[int], window: tuple[int, int]) -> Rule:
        """A copy in which the heads at some places see only the first and the latest keys."""
        heads = range(len(self.activations))
        windows = tuple(window if place in places else None for place in heads)
        return replace(self, streaming=windows)

    @property
    def streaming_window(self) -> StreamingWindow:
        """The streaming window that all heads share; None where they see all keys, or differ."""
        return self.streaming[0] if len({*self.streaming}) == 1 else None

    @property
    def sees_all(self) -> bool:
        """Whether rows see all keys, or all up to their own, apart from padding."""
        narrow = (self.band, self.chunk, self.streaming_window)
        return not self.windowed and all(one is None for one in narrow)

    def width(self, keys: int) -> int:
        """An upper bound of the columns from the first to the last key that a row sees."""
        widths = [keys]
        if self.windowed:
            widths.append(-(-max(self.stride_q, self.stride_k) // self.stride_k))
        if self.band is not None:
            widths.append(sum(self.band) + 1)
        if self.chunk is not None:
            widths.append(self.chunk)
        return min(widths)

    def window(self, row: int, keys: int) -> tuple[int, int]:
        """The columns (first, stop) of the window of a row; all keys without windows."""
        if not self.windowed:
            return 0, keys
        group = max(self.stride_q, self.stride_k)
        start = row * self.stride_q // group * group
        first, stop = -(-start // self.stride_k), -(-(start + group) // self.stride_k)
        return min(first, keys), min(stop, keys)

    def reach(self, row: int, keys: int) -> tuple[int, int]:
        """The columns (first, stop) outside which a row sees no key.

        Neither bound falls from one row to the next.
        """
        first, stop = self.window(row, keys)
        if self.causal:
            stop = min(stop, -(-(row + 1) * self.stride_q // self.stride_k))
        if self.band is not None:
            behind, ahead = self.band
            first, stop = max(first, row - behind), min(stop, row + ahead + 1)
        if self.chunk is not None:
            start = row // self.chunk * self.chunk
            first, stop = max(first, start), min(stop, start + self.chunk)
        return min(first, keys), stop

    def allows(self, rows: Any, columns: Any) -> Any:
        """bool (rows, columns): the visible cells, apart from padding and streaming, for row and
        column numbers of numpy or torch."""
        i, j = rows[:, None] * self.stride_q, columns[None, :] * self.stride_k
        seen = (i >= 0) & (j >= 0)
        if self.causal:
            seen &= j < i + self.stride_q
        if self.windowed:
            group = max(self.stride_q, self.stride_k)
            seen &= i // group == j // group
        if self.band is not None:
            seen &= (i - self.band[0] <= j) & (j <= i + self.band[1])
        if self.chunk is not None:
            seen &= i // self.chunk == j // self.chunk
        return seen

    def in_streaming_window(self, rows: Any, columns: Any, before: Any = None) -> Any:
        """bool (..., rows, columns): the cells of the first and the latest keys. before (...,
        keys + 1): how many keys before each, and in all, are no padding; None without padding."""
        assert self.streaming_window is not None
        (sink, recent), ends = (
            self.streaming_window,
            -(-(rows + 1) * self.stride_q // self.stride_k),
        )
        own, number = ends, columns
        if before is not None:
            own = before[..., ends.clip(max=before.shape[-1] - 1)]
            number = before[..., columns]
        number = number[..., None, :]
        return (number < sink) | (number >= own[..., None] - recent)

    def sees(self, rows: NDArray[Any], columns: NDArray[Any]) -> NDArray[np.bool_]:
        """bool (rows, columns): the visible cells, for arrays of row and column numbers."""
        seen: NDArray[np.bool_] = self.allows(rows, columns)
        if self.streaming_window is not None:
            before = None if self.keep is None else np.append(0, np.cumsum(self.keep))
            seen &= self.in_streaming_window(rows, columns, before)
        return seen if self.keep is None else seen & self.keep[columns]


@dataclass(frozen=True, slots=True)
class Factors:
    """Queries, keys and row statistics of a layer, from which any tile of its maps is computed.

    q (heads, queries, d_head), k (heads, keys, d_head): the operands of the product, in the dtype
    the model computed in, after rotation and as features where these are weighed; k may be Grouped.
    stat (heads, queries) float32 or, settled, float64: log-sum-exp of the scaled scores and sinks
    for softmax (+inf for a row without keys), the row norm for l2, the sum of the scores for linear
    attention, 0 where none is needed. proof_rows (rows,) and proof_values (heads, rows, keys)
    float32: rows recomputed in float64 by the program that made the capture.

    norm (heads, queries): the row norms of heads whose stat is another number already. threshold
    (heads, queries): scaled scores below it weigh nothing, for activations that are no softmax
    magnitudes below it; -inf where all keys weigh, +inf for rows whose keys are listed in kept
    (pairs, 3), head place, row and column, since a score too near the threshold would fall on
    the other side when it is computed again. value_norms (heads, keys) float32: the length of what
    a key adds to the stream at weight 1, |v_j W_O|; None where nobody measured it. mixture (heads,
    keys, tokens) float32, where keys are slots: the part of the value of each token in that of each
    slot; (1, keys, tokens) where it is the same in all heads.
    """

    q: NDArray[Any]
    k: NDArray[Any] | Grouped
    stat: NDArray[Any]
    rule: Rule
    proof_rows: NDArray[Any]
    proof_values: NDArray[Any]
    dtype: str = "float32"
    norm: NDArray[Any] | None = None
    threshold: NDArray[Any] | None = None
    kept: NDArray[Any] | None = None
    value_norms: NDArray[Any] | None = None
    mixture: NDArray[Any] | None = None

    def sink_share(self, place: int) -> float | None:
        """The mean over rows of what the sink logit of a head takes, exp(sink - stat), which no key
        gets; None where it has none."""
        if self.rule.sinks is None or self.rule.activations[place] != "softmax":
            return None
        stat = np.asarray(self.stat[place], np.float64)
        some = np.isfinite(stat)
        shares = np.exp(float(self.rule.sinks[place]) - stat[some])
        return float(shares.mean()) if some.any() else None


PROOF_ROWS, PROOF_CELLS = 8, 1 << 14  # of a head, at most; cells of long maps, for at least 2 rows


def proof_rows(queries: int, keys: int) -> NDArray[np.int64]:
    """The numbers of the rows that are stored as a proof of a map: evenly spaced, with the last;
    fewer of long maps, so that they stay small beside queries and keys.
    """
    rows = np.linspace(0, queries - 1, min(PROOF_ROWS, queries)).round().astype(np.int64)
    step = -(-len(rows) // max(2, PROOF_CELLS // max(1, keys)))
    return np.unique(rows[::-step] if step > 1 else rows)


def plain(values: NDArray[Any], dtype: type[Any]) -> NDArray[Any]:
    """A contiguous float32 or float64 array; uint16 are the bits of bfloat16."""
    if values.dtype == np.uint16:
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return np.ascontiguousarray(values, dtype)  # one layout, one way through the product


# --- distances by blocks --------------------------------------------------------------------------


class DistanceScores:
    """Computes the distance term of scores of one layer, by blocks of rows and columns of a head.

    Row i and column j are (j a - i b) steps apart. dtype: of all results.
    """

    def __init__(self, rule: Rule, dtype: type[Any]) -> None:
        self.step = gcd(rule.stride_q, rule.stride_k)
        self.a, self.b = rule.stride_k // self.step, rule.stride_q // self.step
        self.terms, self.dtype = rule.relative, dtype
        self._heads: dict[int, Distance] = {}

    def head(self, place: int) -> Distance:
        """The terms of the head stored at a place, in the dtype of the results."""
        if place not in self._heads:
            assert self.terms is not None
            self._heads[place] = self.terms.map(lambda part: plain(part[place], self.dtype))
        return self._heads[place]

    def span(self, rows: range, columns: range) -> tuple[int, int]:
        """The distances in a block of rows and columns, as (lowest, count)."""
        lowest = columns.start * self.a - (rows.stop - 1) * self.b
        return lowest, (len(columns) - 1) * self.a + (len(rows) - 1) * self.b + 1

    def keys(self, place: int, lowest: int, count: int) -> NDArray[Any]:
        """r(delta) of a head (count, width), for so many distances from the lowest on."""
        terms = self.head(place)
        if isinstance(terms, Relative):
            return _turned_keys(terms, lowest, count, self.step / terms.unit).astype(self.dtype)
        if isinstance(terms, Quadratic):
            a, c = terms.curve.astype(np.float64)
            delta = np.arange(lowest, lowest + count)[:, None] * float(self.step)
            curve: NDArray[Any] = -a * (delta - c) ** 2
            return curve.astype(self.dtype)
        assert isinstance(terms, Diagonals)
        first, keys = lowest - terms.lowest, np.zeros((count, 1), self.dtype)
        start, stop = max(0, first), max(0, min(first + count, len(terms.values)))
        if stop > start:  # beyond the last there is no cell
            keys[start - first : stop - first, 0] = terms.values[start:stop]
        return keys

    def scores(
        self, position: NDArray[Any], keys: NDArray[Any], rows: int, columns: int
    ) -> NDArray[Any]:
        """Scores (rows, columns) of positions (rows, width) with the keys of a span: those by
        distance read along the slants."""
        by_distance = position @ keys.T
        down, across = by_distance.strides
        start = by_distance[:, (rows - 1) * self.b :]
        shape, strides = (rows, columns), (down - self.b * across, self.a * across)
        return as_strided(start, shape, strides, writeable=False)


def _turned_keys(terms: Relative, lowest: int, count: int, step: float) -> NDArray[np.float64]:
    """W phi(delta) + b of one head (count, d_head), for distances that are a step apart.

    phi(lowest + r) is phi(r) turned by the angle of lowest, and turning W (d_head, width) instead
    lets all spans share one table of phi(r).
    """
    width = terms.weight.shape[-1]
    angles = lowest * step * _frequencies(width)
    sin, cos = np.sin(angles), np.cos(angles)
    sines, cosines = terms.weight[:, : width // 2], terms.weight[:, width // 2 :]
    turned = np.concatenate([sines * cos - cosines * sin, sines * sin + cosines * cos], axis=1)
    keys: NDArray[np.float64] = _features(count, step, width) @ turned.T + terms.bias
    return keys


def _frequencies(width: int) -> NDArray[np.float64]:
    return 10000.0 ** (-2.0 * np.arange(width // 2) / width)


@lru_cache(maxsize=32)
def _features(count: int, step: float, width: int) -> NDArray[np.float64]:
    """phi(0), phi(1 step), .. (count, width); for 256 rows less than a megabyte."""
    angles = np.arange(count)[:, None] * step * _frequencies(width)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
