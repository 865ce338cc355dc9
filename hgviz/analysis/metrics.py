"""Metrics of heads: one table, measured from sums over the keys of each row of their maps.

Shapes: H heads of a layer, R rows (queries), K columns (keys). Weights count by their size: p is
|a| divided by the sum of its row. Distances between heads, kernels and redundancy, which compare
maps, are at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hgviz.activations import ACTIVATIONS
from hgviz.analysis import statistics
from hgviz.analysis.tokens import Block, Bools, Layout, TokenReading
from hgviz.core import Capture, HeadId, Layer, Map, ModelSpec, progress, progress_within
from hgviz.maps import SlotMap
from hgviz.maps.tiles import one_thread

NEAR_ZERO = 0.01  # of the largest weight of a row
SMALL = 1e-3  # of the largest gradient of a head in a text
BLOCK_ROWS, BLOCK_COLUMNS = 256, 512  # whole tiles
CELLS = 1 << 26  # of one map; of longer texts only rows spread evenly are measured
EXACT_CELLS = 1 << 24  # the same where whole rows are read
RANK_ROWS, RANK_CELLS = 256, 1 << 22  # at most, of which singular values are taken
HELD = 1 << 22  # weights held at once

Array = NDArray[Any]
Doubles = NDArray[np.float64]
Keys = Callable[[Block], Bools]
Members = Callable[[TokenReading], Bools]


# --- rows -----------------------------------------------------------------------------------------


class Gradients(Protocol):
    """Gradients by some rows of all heads of a layer, as models.attribution gives them.

    scores before mask, norm and activation, weights after; at_scores is dM/dS and at_weights dM/dA,
    all (H, rows, K); M: the log odds of the right answer. seen (rows, K): the cells that exist.
    """

    @property
    def scores(self) -> Array: ...  # noqa: D102
    @property
    def weights(self) -> Array: ...  # noqa: D102
    @property
    def at_scores(self) -> Array: ...  # noqa: D102
    @property
    def at_weights(self) -> Array: ...  # noqa: D102
    @property
    def seen(self) -> Bools: ...  # noqa: D102


class RowSums:
    """Sums over the keys of each row of a layer, added block by block: what a metric is made of.

    Attributes:
        mass, positive, peak, logs: (H, R) sums of |a|, of a above 0, the largest |a|, the sum of
            |a| log |a|; peak_column: the column of the peak, -1 without weight.
        plain: (H, R) the largest |a| on a key that is no special token.
        distance, placed: (H, R) sums of |a| times the distance in tokens, and of |a| on tokens.
        columns: (H, K) the mass of each key over the rows that stand for a token.
        seen: (R,) cells that exist; near: (H, R) those near zero, where whole rows are added.
        hits, chance: by set of keys, (H, R) mass on it and (R,) how many it has; even_hits and
            even_chance: of every second member.
        at_scores, at_weights: (H, R) sums of |gradients|; asked: (H, R) the cells that exist in
            rows that the answer depends on; small: those below SMALL of the largest, top (H,).
    """

    def __init__(
        self, shape: tuple[int, int, int], signed: Sequence[bool], layout: Layout | None = None,
        key_sets: Mapping[str, Keys] | None = None, members: Mapping[str, Members] | None = None,
    ) -> None:  # fmt: skip
        """layout, key_sets and members: for metrics and roles that ask what a key stands for."""
        heads, rows, self.keys = shape
        self.signed, self.layout = np.array(signed, bool), layout
        self.key_sets, self.members = dict(key_sets or {}), dict(members or {})
        self.mass, self.positive, self.peak, self.logs, self.near = np.zeros((5, heads, rows))
        self.distance, self.placed, self.plain = np.zeros((3, heads, rows))
        self.at_scores, self.at_weights, self.asked, self.small = np.zeros((4, heads, rows))
        self.peak_column = np.full((heads, rows), -1)
        self.columns = np.zeros((heads, self.keys))
        self.seen, self.top = np.zeros(rows), np.zeros(heads)
        self.hits = {name: np.zeros((heads, rows)) for name in self.key_sets}
        self.chance = {name: np.zeros(rows) for name in self.key_sets}
        self.even_hits = {name: np.zeros((heads, rows)) for name in self.members}
        self.even_chance = {name: np.zeros(rows) for name in self.members}

    def add(self, rows: slice, first: int, weights: Array, seen: Bools) -> Array:
        """Add weights (H, rows, columns) from column `first` on; returns their sizes."""
        sizes = np.abs(weights)
        self.mass[:, rows] += sizes.sum(2)
        if self.signed.any():
            self.positive[:, rows] += np.maximum(weights, 0).sum(2)
        self.logs[:, rows] += np.einsum("hrc,hrc->hr", sizes, np.log(np.maximum(sizes, 1e-30)))
        self.seen[rows] += seen.sum(1)
        column = sizes.argmax(2)
        peak = np.take_along_axis(sizes, column[..., None], 2)[..., 0]
        is_higher = peak > self.peak[:, rows]  # the first of several equal ones stays
        self.peak_column[:, rows] = np.where(is_higher, column + first, self.peak_column[:, rows])
        self.peak[:, rows] = np.where(is_higher, peak, self.peak[:, rows])
        return sizes

    def add_whole(self, rows: slice, weights: Array, seen: Bools) -> None:
        """Add whole rows, of which cells near zero are counted, too."""
        sizes = self.add(rows, 0, weights, seen)
        self.near[:, rows] = ((sizes < NEAR_ZERO * sizes.max(2, keepdims=True)) & seen).sum(2)

    def add_block(self, rows: slice, columns: slice, weights: Array, block: Block) -> None:
        """Add a block of a map with its layout: the same, and what the keys stand for."""
        assert self.layout is not None
        seen = block.seen
        sizes = self.add(rows, columns.start, weights, seen)
        self.columns[:, columns] += sizes[:, self.layout.real[rows]].sum(1)
        if self.layout.key_tokens.special.any():
            plain = (sizes * ~block.special).max(2)
            self.plain[:, rows] = np.maximum(self.plain[:, rows], plain)
        distance = np.where(seen, block.distance, 0)
        self.distance[:, rows] += np.einsum("hrc,rc->hr", sizes, distance)
        self.placed[:, rows] += np.einsum("hrc,rc->hr", sizes, seen.astype(np.float32))
        keys = {name: find(block) & seen for name, find in self.key_sets.items()}
        _add_hits(self.hits, self.chance, rows, sizes, keys)
        second = {
            name: keys[name] & block.with_second_member(members)
            for name, members in self.members.items()
        }
        _add_hits(self.even_hits, self.even_chance, rows, sizes, second)

    def add_gradients(self, rows: slice, block: Gradients) -> None:
        """Add the gradients of whole rows."""
        sizes = np.abs(block.at_scores)
        self.at_scores[:, rows] = sizes.sum(2, dtype=float)
        self.at_weights[:, rows] = np.abs(block.at_weights).sum(2, dtype=float)
        self.asked[:, rows] = block.seen.sum(1) * block.at_weights.any(2)
        self.top = np.maximum(self.top, sizes.max((1, 2), initial=0))

    def count_small(self, rows: slice, block: Gradients) -> None:
        """Count the small gradients, once the gradients of all rows are added."""
        is_small = (np.abs(block.at_scores) < SMALL * self.top[:, None, None]) & block.seen
        self.small[:, rows] = (is_small & block.at_weights.any(2, keepdims=True)).sum(2)

    # what metrics are made of, all (H, R)

    @property
    def entropy(self) -> Array:
        """Entropy of p in nats, 0 for a row without weight."""
        mass = np.where(self.mass > 0, self.mass, 1.0)
        spread = np.log(mass) - self.logs / mass
        return np.maximum(np.where(self.mass > 0, spread, 0.0), 0.0)

    def share(self, keys: str) -> Array:
        """The part of each row's weight on a set of keys, NaN where the layer has no such set."""
        if keys not in self.hits:
            return np.full(self.mass.shape, np.nan)
        return ratio(self.hits[keys], self.mass)

    def share_where(self, keys: str) -> Array:
        """The same, NaN for rows that see no such key."""
        share = self.share(keys)
        return np.where(self.chance[keys] > 0, share, np.nan) if keys in self.chance else share

    def offsets(self) -> Array:
        """How far from the query each row's largest weight lies, in tokens; -1 is the previous one.

        NaN for rows without weight, for keys that stand for no token, and between two texts. A
        position of a shortened level counts as many tokens as its stride.
        """
        layout = self.layout
        if layout is None or layout.is_cross:
            return np.full(self.mass.shape, np.nan)
        column = np.maximum(self.peak_column, 0)
        offset = layout.key[column, 1] - layout.query[:, 1]
        if layout.role == "self" and layout.stride is not None:
            offset = (self.peak_column - np.arange(len(layout.query))) * layout.stride
        exists = (self.peak_column >= 0) & (layout.key[column, 0] >= 0)
        return np.where(exists, offset, np.nan)

    def is_rarest_word(self) -> Array:
        """1 where the largest weight is on the rarest word of the sentence, NaN where no word of
        it is rare."""
        layout, count = self.layout, self.chance.get("rare word")
        if layout is None or count is None or not count.any():
            return np.full(self.mass.shape, np.nan)
        ends = layout.key_tokens.rarest_word(layout.causal)
        first, end = (tokens[layout.newest_token] for tokens in ends)
        column = np.maximum(self.peak_column, 0)
        is_inside = (layout.key[column, 0] < end) & (layout.key[column, 1] > first)
        return np.where(count > 0, np.where(is_inside & (self.peak_column >= 0), 1.0, 0.0), np.nan)


def _add_hits(
    hits: dict[str, Array], chance: dict[str, Array], rows: slice, sizes: Array,
    keys: Mapping[str, Bools],
) -> None:  # fmt: skip
    names = [name for name, cells in keys.items() if cells.any()]
    if names:  # far from the diagonal most sets of keys are empty
        # one small product per row: (sets, columns) x (columns, heads)
        cells = np.stack([keys[name] for name in names], axis=1)
        mass = cells.astype(np.float32) @ sizes.transpose(1, 2, 0)
        counts = cells.sum(2)
        for number, name in enumerate(names):
            hits[name][:, rows] += mass[:, number].T
            chance[name][rows] += counts[:, number]


def ratio(part: Array, whole: Array) -> Array:
    """part / whole, 0 where there is nothing to divide by."""
    out = np.zeros(np.broadcast(part, whole).shape)
    return np.divide(part, whole, out=out, where=whole > 0)


def ratio_or_nan(part: Array, whole: Array) -> Doubles:
    """part / whole, NaN where there is nothing to divide by."""
    out = np.full(np.broadcast(part, whole).shape, np.nan)
    return np.asarray(np.divide(part, whole, out=out, where=whole > 0))


def row_blocks(queries: int, keys: int, every: bool = False) -> list[slice]:
    """Blocks of rows in which a map is measured: all, or of long maps some, spread evenly over the
    text, unless every one is asked for."""
    starts = np.arange(0, queries, BLOCK_ROWS)
    cells = BLOCK_ROWS * max(keys, 1)
    most = len(starts) if every else min(len(starts), max(2, CELLS // cells))
    chosen = starts[np.linspace(0, len(starts) - 1, most).round().astype(int)]
    return [slice(int(one), min(int(one) + BLOCK_ROWS, queries)) for one in chosen]


def signed_heads(layer: Layer, maps: Map) -> list[bool]:
    """For each head whether its weights can be negative: heads of one layer may differ."""
    signed = [ACTIVATIONS[name].signed for name in layer.activations]
    has_activations = (any(signed) and not isinstance(maps, SlotMap)) or not maps.signed
    return signed if has_activations else [True] * len(maps.heads)


# --- the table ------------------------------------------------------------------------------------

HEADS, PAIR, REPORT = "heads", "pair", "report"  # who shows a metric


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of every head.

    Attributes:
        label: its name, in which {unit} stands for letter or token; unit: "nats", "share" or "".
        description: what it says; formula: of p_ij, a_ij and the token x_i; source: the paper that
            it is from or after, or the page of the documentation that says more.
        of: its values (H, R) from the sums of rows, NaN where it says nothing of a row. None: it
            is not a mean over rows, and is measured from whole maps.
        per: what a value is divided by, as sums over rows; None for a mean over rows.
        shown: by whom: HEADS (`hgviz heads`, profiles, the panels on heads), PAIR (two heads in
            the window), REPORT (two models over many texts).
        every_row: rows without weight count, too.
    """

    label: str
    unit: str
    description: str
    formula: str
    source: str
    of: Callable[[RowSums], Array] | None = None
    per: Callable[[RowSums], Array] | None = None
    shown: tuple[str, ...] = (HEADS,)
    every_row: bool = False

    @property
    def words(self) -> str:
        """The label and its unit, in which {unit} stands for letter or token."""
        return f"{self.label}, {self.unit}" if self.unit not in ("", "share") else self.label

    def named(self, unit: str) -> str:
        """The label and its unit for a text of letters or of tokens."""
        return self.words.format(unit=unit)


def metrics_for(place: str) -> dict[str, Metric]:
    """The rows of METRICS that HEADS, PAIR or REPORT shows."""
    return {name: metric for name, metric in METRICS.items() if place in metric.shown}


def _distance(sums: RowSums) -> Array:
    if "current token" not in sums.key_sets:  # between two texts there is no distance
        return np.full(sums.mass.shape, np.nan)
    return ratio(sums.distance, sums.placed)


def _focus_on_words(sums: RowSums) -> Array:
    if sums.layout is None or not sums.layout.key_tokens.special.any():
        return np.full(sums.mass.shape, np.nan)
    return ratio(sums.plain, sums.mass)


def _same_token(sums: RowSums) -> Array:
    keys = "same elsewhere" if "same elsewhere" in sums.key_sets else "duplicate token"
    return sums.share_where(keys)


def _of_signed(sums: RowSums, values: Array) -> Array:
    return np.where(sums.signed[:, None], values, np.nan)


def _negative(sums: RowSums) -> Array:
    """(H, R) sums of max(-a, 0)."""
    negative: Array = (sums.mass - sums.positive) * sums.signed[:, None]
    return negative


CLARK, VOITA = "Clark et al. 2019", "Voita et al. 2019"
CORDONNIER = "Cordonnier et al. 2020; mechanisms.md"
GUIDE, YMISH = "what-heads-do.md", "does-ymish-help.md"

METRICS: dict[str, Metric] = {
    "focus": Metric(
        "Focus (max)", "", "The largest weight of a row, averaged over rows",
        "mean_i max_j p_ij, p_ij = |a_ij| / Σ_k |a_ik|", VOITA,
        lambda sums: ratio(sums.peak, sums.mass), shown=(HEADS, PAIR),
    ),
    "entropy": Metric(
        "Entropy", "nats", "How evenly a row spreads, averaged over rows; 0 is a single key",
        "mean_i −Σ_j p_ij ln p_ij", CLARK, lambda sums: sums.entropy, shown=(HEADS, PAIR, REPORT),
    ),
    "distance": Metric(
        "Distance", "{unit}s", "How far it looks on average",
        "mean_i Σ_j p_ij |i − j|", "Vig and Belinkov 2019", _distance,
    ),
    "previous": Metric(
        "Previous {unit}", "", "Weight on the position before its own, averaged over rows",
        "mean_i p_i,i−1", CLARK, lambda sums: sums.share("previous token"),
    ),
    "first": Metric(
        "First {unit}", "", "Weight on the first position, averaged over rows",
        "mean_i p_i,0", "Xiao et al. 2024", lambda sums: sums.share("first token"),
    ),
    "same": Metric(
        "Itself", "", "Weight on its own position, averaged over rows",
        "mean_i p_ii", CLARK, lambda sums: sums.share("current token"),
    ),
    "next": Metric(
        "Next {unit}", "", "Weight on the position after its own, averaged over rows",
        "mean_i p_i,i+1", CLARK, lambda sums: sums.share("next token"),
    ),
    "last": Metric(
        "Last {unit}", "", "Weight on the last position, averaged over rows",
        "mean_i p_i,n−1", GUIDE, lambda sums: sums.share("last token"),
    ),
    "separators": Metric(
        "Separators", "",
        "Weight on special tokens between and after the texts, averaged over rows",
        "mean_i Σ_j p_ij, x_j = [SEP]", CLARK, lambda sums: sums.share_where("separator"),
    ),
    "words": Metric(
        "Focus on words", "",
        "The largest weight of a row on a token that is not special, averaged",
        "mean_i max_j p_ij, x_j ≠ [SEP], [CLS], …", VOITA, _focus_on_words,
    ),
    "same token": Metric(
        "Same {unit}", "", "Weight on the same {unit} elsewhere, over the rows that have one",
        "mean_i Σ_j p_ij, x_j = x_i, j ≠ i", "Wang et al. 2023", _same_token,
    ),
    "induction": Metric(
        "Induction", "",
        "Weight on what followed the same {unit} before, over the rows that have it",
        "mean_i Σ_j p_ij, x_j−1 = x_i, j < i", "Olsson et al. 2022",
        lambda sums: sums.share_where("induction"),
    ),
    "diagonal": Metric(
        "Same place", "",
        "Weight on keys as far through their text as the query is through its own",
        "mean_i Σ_j p_ij, j / m ≈ i / n", GUIDE, lambda sums: sums.share("same place"),
    ),
    "positive": Metric(
        "Positive sum", "", "The positive weights of a row added up, averaged over rows",
        "mean_i Σ_j max(a_ij, 0)", "activations.md",
        lambda sums: _of_signed(sums, sums.positive),
    ),
    "negative": Metric(
        "Negative sum", "", "The negative weights of a row added up, averaged over rows",
        "mean_i Σ_j min(a_ij, 0)", "activations.md",
        lambda sums: _of_signed(sums, sums.positive - sums.mass),
    ),
    "positional": Metric(
        "Positional", "", "The share of rows that look most at one and the same distance",
        "max_d mean_i [argmax_j p_ij − i = d]", VOITA,
    ),
    "offset": Metric(
        "Offset", "{unit}s",
        "The distance at which most rows look most; −1 is the one before",
        "argmax_d mean_i [argmax_j p_ij − i = d]", VOITA,
    ),
    "rare": Metric(
        "Rarest word", "",
        "The share of rows that look most at the rarest word of their sentence",
        "mean_i [argmax_j p_ij ∈ w_i]", VOITA, RowSums.is_rarest_word,
    ),
    "convolution": Metric(
        "Convolution-like", "",
        "How much of what tells rows from even ones is one kernel of distance",
        "1 − ‖A − T‖² / ‖A − U‖², T_ij ∝ κ(j − i), U_ij = 1 / n_i", CORDONNIER,
    ),
    "centre": Metric(
        "Kernel centre", "{unit}s", "The mean distance of that kernel; −1 is the one before",
        "c = Σ_d d κ(d) / Σ_d κ(d)", CORDONNIER,
    ),
    "width": Metric(
        "Kernel width", "{unit}s", "How wide that kernel is: one standard deviation",
        "√(Σ_d (d − c)² κ(d) / Σ_d κ(d))", CORDONNIER,
    ),
    "variance": Metric(
        "Content variance", "",
        "How much the same cell of the map varies between texts, on average",
        "mean_ij Var(p_ij), i, j < 64", GUIDE,
    ),
    "nearest": Metric(
        "Nearest head", "",
        "The Jensen-Shannon distance to the head most like it; 0 is the same map",
        "min_h mean_i √JS₂(p_i, q_i), JS₂ = H₂((p + q) / 2) − (H₂(p) + H₂(q)) / 2", CLARK,
    ),
    "near_zero": Metric(
        "Near-zero weights", "share",
        f"Share of cells below {NEAR_ZERO:.0%} of the largest weight of their row",
        f"mean_ij [|a_ij| < {NEAR_ZERO} max_k |a_ik|]", YMISH, lambda sums: sums.near,
        lambda sums: np.broadcast_to(sums.seen, sums.near.shape), (PAIR, REPORT),
    ),
    "negative_mass": Metric(
        "Negative mass", "share", "Share of a row’s weight |A| that is below 0; mean over rows",
        "mean_i Σ_j max(−a_ij, 0) / Σ_j |a_ij|", YMISH,
        lambda sums: ratio(_negative(sums), sums.mass), shown=(PAIR, REPORT),
    ),
    "row_sum": Metric(
        "Row sum", "",
        "What a row of A adds up to; exactly 1 for softmax, anything for signed weights",
        "mean_i Σ_j a_ij", "activations.md", lambda sums: sums.mass - 2 * _negative(sums),
        shown=(PAIR, REPORT), every_row=True,
    ),
    "rank": Metric(
        "Effective rank / n", "share",
        "e to the entropy of the singular values, over the smaller side of the map",
        "exp(−Σ_k s_k ln s_k) / n, s_k = σ_k / Σ_l σ_l", "Roy and Vetterli 2007",
        shown=(PAIR, REPORT),
    ),
    "apart": Metric(
        "Distance to other heads", "",
        "Jensen-Shannon distance to the other heads of the layer, 0 alike to 1 disjoint",
        "mean_h mean_i √JS₂(p_i, q_i)", CLARK, shown=(REPORT,),
    ),
    "slope": Metric(
        "Mean |dM/dS|", "nats",
        "How much the log odds of the right answer move with a score, over the rows that they "
        "depend on",
        "mean_ij |∂M/∂s_ij|", YMISH, lambda sums: sums.at_scores, lambda sums: sums.asked,
        (REPORT,), True,
    ),
    "small": Metric(
        "Vanished slopes", "share",
        f"Share of those cells below {SMALL:g} of the largest |dM/dS| of the head",
        f"mean_ij [|∂M/∂s_ij| < {SMALL:g} max |∂M/∂s|]", YMISH,
        lambda sums: np.where(sums.top[:, None] > 0, sums.small, np.nan),
        lambda sums: sums.asked, (REPORT,), True,
    ),
    "passed": Metric(
        "Passed by the activation", "",
        "Sum of |dM/dS| over sum of |dM/dA|: what norm and activation let through",
        "Σ_ij |∂M/∂s_ij| / Σ_ij |∂M/∂a_ij|", YMISH, lambda sums: sums.at_scores,
        lambda sums: sums.at_weights, (REPORT,), True,
    ),
}  # fmt: skip


class HeadMetrics(dict[str, float]):
    """The metrics of one head by name; one that says nothing of it is not listed and reads NaN."""

    def __missing__(self, name: str) -> float:
        return float("nan")


def applicable(metrics: Iterable[Mapping[str, float]]) -> tuple[str, ...]:
    """The names of METRICS that say something of at least one of these heads."""
    heads = list(metrics)
    return tuple(name for name in METRICS if any(name in values for values in heads))


class MetricMeans:
    """Means of metrics over the rows of any number of texts, in memory that does not grow."""

    def __init__(self, heads: int, place: str) -> None:
        """place: whose metrics, HEADS, PAIR or REPORT."""
        self.place = place
        self.heads, self.rows = heads, 0
        self._sums: dict[str, Array] = {}  # (3, H): total, count, whether any row had a value
        self._offsets: dict[int, Array] = {}

    def add(self, sums: RowSums, rows: Bools, keep_empty: bool = True) -> None:
        """Add the rows (R,) of a text that count.

        keep_empty: rows without weight count as 0, too; without it as Metric.every_row says.
        """
        self.rows += int(rows.sum())
        has_weight = np.isfinite(sums.mass) & (sums.mass > 0)
        for name, metric in metrics_for(self.place).items():
            if metric.of is None:
                continue
            values = metric.of(sums)
            sizes = np.ones(values.shape) if metric.per is None else metric.per(sums)
            exists = ~np.isnan(values)
            counted = exists & rows
            if not keep_empty:
                counted &= np.isfinite(sums.mass) if metric.every_row else has_weight
            parts = (np.where(counted, values, 0), np.where(counted, sizes, 0), exists)
            total = self._sums.setdefault(name, np.zeros((3, self.heads)))
            total += [part.sum(1) for part in parts]
        self._count_offsets(sums.offsets()[:, rows])

    def _count_offsets(self, offsets: Array) -> None:
        for head, row in enumerate(offsets):
            values, counts = np.unique(row[~np.isnan(row)].astype(np.int64), return_counts=True)
            for offset, count in zip(values.tolist(), counts, strict=True):
                self._offsets.setdefault(offset, np.zeros(self.heads))[head] += count

    def mean(self, name: str) -> Doubles:
        """(H,) the mean of a metric, NaN where no row has it."""
        total, count, exists = self._sums[name]
        if not self.rows:
            return np.where(exists > 0, 0.0, np.nan)
        return ratio_or_nan(total, count)

    def metrics(self) -> list[HeadMetrics]:
        """For each head the metrics that say something of it."""
        columns = {name: self.mean(name) for name in self._sums}
        offsets = sorted(self._offsets, key=lambda offset: (abs(offset), offset))
        if offsets and self.rows:  # the offset of the most rows, the nearer of two
            counts = np.stack([self._offsets[offset] for offset in offsets])
            best = counts.argmax(0)
            columns["positional"] = counts.max(0) / self.rows
            columns["offset"] = np.array(offsets, float)[best]
        return [
            HeadMetrics(
                (name, float(columns[name][head])) for name in METRICS
                if name in columns and not np.isnan(columns[name][head])
            )
            for head in range(self.heads)
        ]  # fmt: skip


# --- heads of a capture or of a model, by whole rows ----------------------------------------------


@dataclass(frozen=True, slots=True)
class HeadNumbers:
    """Metrics of a head for PAIR, NaN where it has none, of `rows` of the `of` real rows."""

    values: HeadMetrics
    rows: int = 0
    of: int = 0


def measure_heads(
    capture: Capture, heads: Iterable[HeadId], known: MutableMapping[HeadId, HeadNumbers]
) -> None:
    """Measure heads in their order and put them into known; those in it, and heads that are not
    captured, are left out. Of maps above EXACT_CELLS only blocks of rows spread evenly are read."""
    missing = [head for head in heads if head not in known]
    readings: dict[str, TokenReading] = {}
    for done, head in enumerate(missing):
        maps = capture.maps[head.layer]
        if maps is None or head.head not in maps.heads:
            continue
        layout = Layout(capture, head.layer, readings)
        queries, keys = maps.shape[1:]
        rows = spread_rows(np.flatnonzero(layout.real), keys)
        sums, sample = RowSums((1, queries, keys), [True]), RankSample(rows, keys)
        step = max(1, HELD // 4 // max(1, keys))
        runs = [run for run in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1) if len(run)]
        parts = [run[at : at + step] for run in runs for at in range(0, len(run), step)]
        for number, part in enumerate(parts):
            progress(done + number / len(parts), len(missing), f"head {head}")
            block = slice(int(part[0]), int(part[-1]) + 1)
            weights = maps.read(head.head, block).astype(float)
            weights[~np.isfinite(weights).all(1)] = np.nan
            seen = layout.block(block, slice(0, keys)).seen | (weights != 0)
            with np.errstate(invalid="ignore"):
                sums.add_whole(block, weights[None], seen)
            sample.add(block, weights[None])
        is_measured = np.zeros(queries, bool)
        is_measured[rows] = np.isfinite(sums.mass[0, rows])
        means = MetricMeans(1, PAIR)
        means.add(sums, is_measured, keep_empty=False)
        values = HeadMetrics({name: float("nan") for name in metrics_for(PAIR)})
        values |= means.metrics()[0]
        values["rank"] = float(sample.ranks()[0][0])
        known[head] = HeadNumbers(values, int(is_measured.sum()), int(layout.real.sum()))


def spread_rows(rows: NDArray[np.int64], keys: int) -> NDArray[np.int64]:
    """All rows, or blocks of them spread evenly where they hold more than EXACT_CELLS weights."""
    blocks = [rows[at : at + BLOCK_ROWS] for at in range(0, len(rows), BLOCK_ROWS)]
    most = max(2, EXACT_CELLS // (BLOCK_ROWS * max(keys, 1)))
    if len(blocks) <= most:
        return rows
    chosen = np.linspace(0, len(blocks) - 1, most).round().astype(int)
    return np.concatenate([blocks[at] for at in chosen])


class RankSample:
    """Rows of maps, spread evenly, for their effective ranks."""

    def __init__(self, rows: NDArray[np.int64], keys: int) -> None:
        most = min(len(rows), RANK_ROWS, max(1, RANK_CELLS // max(keys, 1)))
        at = np.linspace(0, max(0, len(rows) - 1), most).astype(int)
        self.rows = rows[np.unique(at)]
        self._parts: list[Array] = []

    def add(self, block: slice, weights: Array) -> None:
        """Keep those of the rows (H, rows, K) of a block that are sampled."""
        inside = self.rows[(self.rows >= block.start) & (self.rows < block.stop)]
        chosen = weights[:, inside - block.start]
        if len(chosen) == 1:  # rows that hold NaN are left out of a single head
            chosen = chosen[:, np.isfinite(chosen[0]).all(1)]
        self._parts.append(chosen)

    def ranks(self) -> tuple[Doubles, Doubles]:
        """(H,) effective ranks over the smaller side, and (H, SINGULAR) singular values over the
        largest."""
        if not self._parts:
            return np.full(1, np.nan), np.full((1, 0), np.nan)
        maps = np.concatenate(self._parts, axis=1)
        ranks, spectrum = spectra(maps)
        return ranks / max(1, min(maps.shape[1:])), spectrum


SINGULAR = 12  # singular values that are kept
DISTANCE_ROWS = 64  # of a map, spread evenly, whose distances are taken
PAIRED = 1 << 25  # cells of pairs of heads whose distance is taken in one text
EDGES = (0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, np.inf)  # of |score|


class GradientPass(Protocol):
    """A pass over one text and its way back."""

    def shape(self, layer: int) -> tuple[int, int, int]:
        """Heads, queries and keys of a layer."""
        ...

    def rows(self, layer: int, rows: range) -> Gradients:
        """Some rows of all its heads."""
        ...


@dataclass(frozen=True)
class TextMetrics:
    """The metrics for REPORT of all N heads of a model on one text.

    values: by metric (N,), NaN where there is none. spectra (N, SINGULAR): singular values over the
    largest. apart (N, N): Jensen-Shannon distances, NaN between maps of other shapes. cells,
    at_scores, at_weights (N, bins of EDGES): how many cells have so large a score, and what |dM/dS|
    and |dM/dA| add up to there. shares: by queries and keys, columns and sampled rows of p.
    """

    column: dict[HeadId, int]
    values: dict[str, Doubles]
    spectra: Doubles
    apart: Doubles
    cells: Doubles
    at_scores: Doubles
    at_weights: Doubles
    shares: dict[tuple[int, int], tuple[Array, Array]] = field(default_factory=dict)


def measure_text(passed: GradientPass, spec: ModelSpec) -> TextMetrics:
    """Measure every head of a model on one text, layer by layer, at most CELLS weights at once."""
    count, bins = len(spec.heads), len(EDGES) - 1
    text = TextMetrics(
        {head: at for at, head in enumerate(spec.heads)},
        {name: np.full(count, np.nan) for name in metrics_for(REPORT)},
        np.full((count, SINGULAR), np.nan), np.full((count, count), np.nan),
        *np.zeros((3, count, bins)),
    )  # fmt: skip
    by_shape: dict[tuple[int, int], list[int]] = {}
    for layer in spec.layers:
        if layer.heads:
            by_shape.setdefault(passed.shape(layer.index)[1:], []).append(layer.index)
    for (queries, keys), layers in by_shape.items():
        heads = [[HeadId(layer, head) for head in spec.layers[layer].heads] for layer in layers]
        heads_at = [np.array([text.column[head] for head in own]) for own in heads]
        total = sum(map(len, heads_at))
        most = min(DISTANCE_ROWS, queries, max(4, PAIRED // max(1, total * total * keys)))
        sampled = np.unique(np.linspace(0, queries - 1, most).astype(int))
        shares = [
            _measure_layer(text, at, passed, layer, (queries, keys), sampled)
            for layer, at in zip(layers, heads_at, strict=True)
        ]
        at, p = np.concatenate(heads_at), np.concatenate(shares)
        text.apart[np.ix_(at, at)] = distances(p, p)
        text.shares[queries, keys] = at, p
        for own in heads_at:
            if len(own) > 1:
                others = text.apart[np.ix_(own, own)]
                exists = ~np.isnan(others) & ~np.eye(len(own), dtype=bool)
                text.values["apart"][own] = ratio_or_nan(
                    np.where(exists, others, 0.0).sum(1), exists.sum(1).astype(float)
                )
    return text


def _measure_layer(
    text: TextMetrics, at: Array, passed: GradientPass, layer: int, shape: tuple[int, int],
    sampled: Array,
) -> Array:  # fmt: skip
    """Measure the heads `at` of a layer; returns the sampled rows of p (H, rows, K)."""
    queries, keys = shape
    step = max(1, HELD // max(1, len(at) * keys))
    parts = [range(start, min(start + step, queries)) for start in range(0, queries, step)]
    sums = RowSums((len(at), queries, keys), [True] * len(at))
    sample, shares = RankSample(np.arange(queries), keys), []
    for part in parts:
        rows, block = slice(part.start, part.stop), passed.rows(layer, part)
        weights = block.weights.astype(float)
        sums.add_whole(rows, weights, block.seen)
        sums.add_gradients(rows, block)
        sample.add(rows, weights)
        inside = sampled[(sampled >= rows.start) & (sampled < rows.stop)] - rows.start
        sizes = np.abs(weights[:, inside])
        mass = sizes.sum(-1, keepdims=True)
        shares.append(np.divide(sizes, mass, out=np.zeros_like(sizes), where=mass > 0))
        text.cells[at] += _by_score(block, np.ones_like(block.scores))
        text.at_scores[at] += _by_score(block, np.abs(block.at_scores))
        text.at_weights[at] += _by_score(block, np.abs(block.at_weights))
    for part in parts:
        block = block if len(parts) == 1 else passed.rows(layer, part)
        sums.count_small(slice(part.start, part.stop), block)
    means = MetricMeans(len(at), REPORT)
    means.add(sums, sums.seen > 0, keep_empty=False)
    for name, metric in metrics_for(REPORT).items():
        if metric.of is not None:
            text.values[name][at] = means.mean(name)
    ranks, spectrum = sample.ranks()
    text.values["rank"][at] = ranks
    text.spectra[at, : spectrum.shape[1]] = spectrum
    return np.concatenate(shares, axis=1)


def _by_score(block: Gradients, values: Array) -> Doubles:
    """(H, bins) sums of values by the size of the score, over the cells that the answer asks."""
    bins = len(EDGES) - 1
    number = np.digitize(np.abs(block.scores), EDGES[1:-1])
    number += bins * np.arange(len(number))[:, None, None]
    asked = block.seen[None] & block.at_weights.any(-1, keepdims=True)
    sums = np.bincount(number[asked], values[asked].astype(float), bins * len(number))
    return np.asarray(sums, float).reshape(len(number), bins)


def peers(capture: Capture, head: HeadId) -> list[HeadId]:
    """The heads that one is shown among: those of self-attention, of cross-attention, or of the
    layers between levels; itself among them."""
    layers, kinds = capture.spec.layers, {"self": ("self",), "cross": ("cross",)}
    roles = kinds.get(layers[head.layer].role, ("down", "up"))
    return [
        HeadId(layer.index, number)
        for layer in layers
        if layer.role in roles and (maps := capture.maps[layer.index]) is not None
        for number in layer.heads
        if number in maps.heads
    ]


# --- ranks and distances --------------------------------------------------------------------------


def effective_rank(matrix: Array) -> float:
    """exp of the entropy of the singular values, divided by their sum (Roy and Vetterli 2007).

    From 1 to the smaller side; 0 for a matrix of zeros, NaN for one without rows.
    """
    return float(spectra(matrix[None])[0][0])


def spectra(maps: Array) -> tuple[Doubles, Doubles]:
    """Effective ranks (H,) of maps (H, rows, K) and their first SINGULAR singular values over the
    largest; 0 for a map of zeros, NaN for one that is empty or holds NaN."""
    if not maps.size:
        return np.full(len(maps), np.nan), np.full((len(maps), 0), np.nan)
    is_broken: Array = (~np.isfinite(maps)).sum((1, 2)) > 0
    with one_thread():  # as many threads as there are cores wait for each other
        finite_maps = np.where(is_broken[:, None, None], 0.0, maps.astype(float))
        sizes = np.linalg.svd(finite_maps, compute_uv=False)
    shares = ratio(sizes, sizes.sum(-1, keepdims=True))
    logs = np.log(np.where(shares > 0, shares, 1.0))
    ranks = sizes.any(-1) * np.exp(-(shares * logs).sum(-1))
    first = ratio(sizes, sizes[:, :1])[:, :SINGULAR]
    ranks[is_broken], first[is_broken] = np.nan, np.nan
    return ranks, first


_ALMOST = -1 + 2.0**-53


def divergence(p: Array, q: Array) -> Array:
    """(...,) what the columns (..., K) of p and q add to their Jensen-Shannon divergence, in nats.

    Written about the mean m = (p + q) / 2, so that what is nearly alike does not cancel out:
    m [(1 + d) log(1 + d) + (1 - d) log(1 - d)] / 2, d = (p - q) / (p + q); never below 0.
    """
    both = p + q
    d = (p - q) / np.maximum(both, np.finfo(float).tiny)
    terms = (1 + d) * np.log1p(np.maximum(d, _ALMOST))
    terms += (1 - d) * np.log1p(np.maximum(-d, _ALMOST))
    nats: Array = np.vecdot(both, terms) / 4
    return nats


def distance_of(nats: Array) -> Array:
    """The Jensen-Shannon distance, 0 for the same to 1 for nothing in common, of a divergence in
    nats (Endres and Schindelin 2003)."""
    distance: Array = np.sqrt(np.clip(nats / np.log(2), 0, 1))
    return distance


def _compare_rows(p: Array, q: Array) -> tuple[Array, Array]:
    """(M,) sums of the distances of the rows of p (rows, K) to those of q (M, rows, K), which sum
    to 1 or are 0, and how many rows both have."""
    both = p.any(-1) & q.any(-1)
    return np.where(both, distance_of(divergence(p[None], q)), 0).sum(1), both.sum(1)


def distances(p: Array, q: Array) -> Doubles:
    """(N, M) mean Jensen-Shannon distances of the rows of p (N, rows, K) and q (M, rows, K), NaN
    where no row of both has weight."""
    return np.stack([ratio_or_nan(*_compare_rows(own, q)) for own in p])


def distances_between(a: TextMetrics, b: TextMetrics) -> Doubles:
    """(heads of A, heads of B) distances of their rows; NaN for maps of other shapes."""
    between = np.full((len(a.column), len(b.column)), np.nan)
    for shape in {*a.shares} & {*b.shares}:
        (rows, p), (columns, q) = a.shares[shape], b.shares[shape]
        if p.shape[1] == q.shape[1]:
            between[np.ix_(rows, columns)] = distances(p, q)
    return between


LIKENESS_ROWS = 32  # of each text, spread evenly over it


class HeadDistances:
    """Mean Jensen-Shannon distances between all heads of some layers whose maps have one shape.

    Of at most `most` rows of each text; rows counts them all.
    """

    def __init__(self, heads: Sequence[HeadId], most: int = LIKENESS_ROWS) -> None:
        self.heads, self.rows, self._most = tuple(heads), 0, most
        self._total = np.zeros((2, len(heads), len(heads)))  # distances, rows

    def add(self, maps: Sequence[Map], layout: Layout) -> None:
        """Add a text: the maps of the layers, in the order of the heads, and their layout."""
        real = np.flatnonzero(layout.real)
        if not len(real):
            return
        rows = np.unique(real[np.linspace(0, len(real) - 1, self._most).round().astype(int)])
        self.rows += len(rows)
        each = max(LIKENESS_ROWS, HELD // max(1, len(self.heads) * maps[0].shape[2]))
        for start in range(0, len(rows), each):
            progress(start, len(rows))
            part = rows[start : start + each]
            runs = np.split(part, np.flatnonzero(np.diff(part) > 1) + 1)
            sizes = np.stack([
                np.concatenate([own.read(head, (int(run[0]), int(run[-1]) + 1)) for run in runs])
                for own in maps for head in own.heads
            ])  # fmt: skip
            sizes = np.abs(sizes, dtype=float)
            p = ratio(sizes, sizes.sum(2, keepdims=True))
            step = max(1, HELD // max(1, p[0].size))
            for head in range(len(p) - 1):
                for other in range(head + 1, len(p), step):
                    others = slice(other, min(other + step, len(p)))
                    self._total[:, head, others] += _compare_rows(p[head], p[others])

    def distances(self) -> Doubles:
        """(heads, heads) the mean distances, 0 on the diagonal; NaN where no row of both has
        weight."""
        found = ratio_or_nan(*(self._total + self._total.transpose(0, 2, 1)))
        np.fill_diagonal(found, 0.0)
        return found

    def nearest(self) -> dict[HeadId, tuple[HeadId, float]]:
        """For each head the one most like it, the earliest of several, and their distance."""
        found = self.distances()
        np.fill_diagonal(found, np.nan)
        return {
            head: (self.heads[int(np.nanargmin(row))], float(np.nanmin(row)))
            for head, row in zip(self.heads, found, strict=True)
            if not np.isnan(row).all()
        }


# --- convolution-likeness -------------------------------------------------------------------------

CORNER = 64  # rows and keys whose cells are compared between texts
CONVOLUTION_LIKE, NARROW = 0.9, 1.5  # from which score, and up to which width in positions
_ROUNDING = 1e-12  # of what a row holds: rows as even as this tell nothing apart


class Kernel(NamedTuple):
    """The maps of a head as a convolution (Cordonnier et al. 2020).

    score: 1 - ||A - T||^2 / ||A - U||^2, mean over texts: A the sizes of the weights over the sums
    of their rows, T the kernel at every row, normalised over the keys seen, U even rows; NaN where
    all rows are even. centre, width: mean and standard deviation of the kernel, in positions, -1 is
    the previous one. variance: of a cell between texts, mean over the cells of the first 64 rows
    and keys that at least two texts have; NaN for one text.
    """

    score: float
    centre: float
    width: float
    variance: float

    @property
    def is_convolution(self) -> bool:
        """Whether the head may be called convolution-like."""
        return self.score > CONVOLUTION_LIKE and self.width <= NARROW


class Kernels:
    """The kernels of the heads of a layer of self-attention, over any number of texts.

    Two passes over the same texts: `add` all of them, then `compare` all of them.
    """

    def __init__(self, heads: int) -> None:
        self._mass: Array = np.zeros((heads, 1))  # by offset, from -reach to reach
        self._pairs: Array = np.zeros(1)
        self._scores: list[Array] = []
        self._corner = np.zeros((2, heads, CORNER, CORNER))  # sums of A and of A^2
        self._corner_texts = np.zeros((CORNER, CORNER))

    @property
    def reach(self) -> int:
        """The largest distance between two positions of the longest text."""
        return len(self._pairs) // 2

    def add(self, maps: Map, layout: Layout, blocks: list[slice]) -> None:
        """The first pass: add up the weight at every offset."""
        if (more := maps.shape[1] - 1 - self.reach) > 0:
            self._pairs = np.pad(self._pairs, more)
            self._mass = np.pad(self._mass, ((0, 0), (more, more)))
        for number, rows in enumerate(blocks):
            progress(number, len(blocks))
            seen = _seen_cells(layout, rows)
            low = self.reach - rows.stop + 1  # the first offset of the block
            offsets = slice(low, low + sum(seen.shape) - 1)
            self._pairs[offsets] += _diagonals(seen.astype(float))
            inner = seen[: max(0, CORNER - rows.start), :CORNER]
            corner = np.s_[rows.start : rows.start + len(inner), : inner.shape[1]]
            if len(inner):
                self._corner_texts[corner] += inner
            for head, p in enumerate(_normalised(maps, rows, seen)):
                self._mass[head, offsets] += _diagonals(p)
                for power in (1, 2) if len(inner) else ():
                    cells = p[: len(inner), : inner.shape[1]]
                    self._corner[power - 1, head][corner] += cells**power

    def compare(self, maps: Map, layout: Layout, blocks: list[slice]) -> None:
        """The second pass: how far the maps of a text are from the kernel of all texts."""
        kernels = self._kernels()
        apart, uneven, square = np.zeros((3, len(kernels)))
        for number, rows in enumerate(blocks):
            progress(number, len(blocks))
            seen = _seen_cells(layout, rows)
            even = ratio(seen, seen.sum(1, keepdims=True))
            first = self.reach - rows.stop + 1
            for head, p in enumerate(_normalised(maps, rows, seen)):
                windows = np.lib.stride_tricks.sliding_window_view(kernels[head], seen.shape[1])
                kernel = np.where(seen, windows[first : self.reach - rows.start + 1][::-1], 0.0)
                total = kernel.sum(1, keepdims=True)
                kernel /= np.where(total > 0, total, 1.0)
                has_weight = p.any(1)
                apart[head] += np.square(p - kernel)[has_weight].sum()
                uneven[head] += np.square(p - even)[has_weight].sum()
                square[head] += np.square(p).sum()
        score = np.full(len(kernels), np.nan)
        np.divide(apart, uneven, out=score, where=uneven > _ROUNDING * square)
        self._scores.append(1 - score)

    def kernels(self) -> list[Kernel]:
        """The kernel of each head."""
        offsets = np.arange(-self.reach, self.reach + 1)
        has_two = self._corner_texts >= 2
        found = []
        for head, kernel in enumerate(self._kernels()):
            total = kernel.sum()
            scores = np.array([text[head] for text in self._scores])
            scores = scores[~np.isnan(scores)]
            if not total > 0 or not len(scores):
                found.append(Kernel(*[float("nan")] * 4))
                continue
            centre = float(kernel @ offsets / total)
            width = float(np.sqrt(kernel @ (offsets - centre) ** 2 / total))
            mean, square = (
                sums[head][has_two] / self._corner_texts[has_two] for sums in self._corner
            )
            variance = np.maximum(square - mean**2, 0)
            varies = float(variance.mean()) if has_two.any() else float("nan")
            found.append(Kernel(float(scores.mean()), centre, width, varies))
        return found

    def _kernels(self) -> Array:
        """(heads, offsets) the mean weight at each offset, over the pairs that are seen."""
        return ratio(self._mass, self._pairs)


def _seen_cells(layout: Layout, rows: slice) -> Bools:
    """The cells (rows, columns) that a block of rows sees, up to the last column that any sees."""
    columns = min(rows.stop, len(layout.key)) if layout.causal else len(layout.key)
    return layout.block(rows, slice(0, columns)).seen & layout.real[rows][:, None]


def _normalised(maps: Map, rows: slice, seen: Bools) -> Iterable[Array]:
    """For each head the sizes of the weights that are seen, each row divided by its sum."""
    for head in maps.heads:
        weights = maps.read(head, rows, slice(0, seen.shape[1])).astype(float)
        sizes = np.abs(weights) * seen
        total = sizes.sum(1, keepdims=True)
        yield sizes / np.where(total > 0, total, 1.0)


def _diagonals(values: Array) -> Array:
    """(rows + columns - 1,) the sums along the diagonals, from the lower left corner on."""
    rows, columns = values.shape
    wide = np.zeros((rows, rows + columns))
    wide[:, :columns] = values[::-1]
    # read with rows shorter by one, each row moves one place to the right
    skewed = wide.ravel()[: rows * (rows + columns - 1)].reshape(rows, rows + columns - 1)
    sums: Array = skewed.sum(0)
    return sums


# --- redundancy of heads --------------------------------------------------------------------------

SHARES = (0.9, 0.95, 0.99)  # of the energy, the sum of squares of singular values
NEGLIGIBLE = 1e-6  # of the largest singular value
REDUNDANCY_ROWS = 512  # of each text


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """Singular values (p,) from the largest on; most: how many there could be."""

    values: Doubles
    most: int

    @property
    def captured(self) -> Doubles:
        """(p,) the share of the energy that the largest so many hold."""
        squares = self.values**2
        total = squares.sum()
        return np.asarray(np.cumsum(squares) / (total if total > 0 else 1.0))

    @property
    def rank(self) -> int:
        """How many are more than rounding."""
        return int((self.values > NEGLIGIBLE * self.values.max(initial=0.0)).sum())

    def ranks(self) -> dict[float, int]:
        """How many hold each of SHARES of the energy; 0 where there is none."""
        captured = self.captured
        if not len(captured) or not captured[-1]:
            return dict.fromkeys(SHARES, 0)
        return {share: int(np.searchsorted(captured, share - 1e-12) + 1) for share in SHARES}

    def facts(self) -> dict[str, Any]:
        """For JSON."""
        named = {f"rank_{100 * share:.0f}": rank for share, rank in self.ranks().items()}
        return {"of": self.most, "rank": self.rank, **named, "values": self.values.tolist()}


@dataclass(frozen=True, slots=True, eq=False)
class Redundancy:
    """How similar the heads of a layer are, by their weights or by their maps.

    alike (H, H): cosines of vec(W_QK), W_QK^(h) = W_Q^(h)T W_K^(h) (Cordonnier, Loukas and Jaggi
    2020, section 3), or distances of maps; NaN where there is none. Of weights, stacked is the
    spectrum of all W_QK one below the other (H d, d), over_heads that of vec(W_QK) one below the
    other (H, d^2). Of maps, rows are how many were compared.
    """

    layer: Layer
    alike: Doubles
    stacked: Spectrum | None = None
    over_heads: Spectrum | None = None
    rows: int = 0
    notes: tuple[str, ...] = ()

    @property
    def heads(self) -> tuple[HeadId, ...]:
        """The heads in the order of alike."""
        return tuple(HeadId(self.layer.index, head) for head in self.layer.heads)

    @property
    def cosines(self) -> bool:
        """Whether alike holds cosines, of which 1 is the same, else distances, of which 0 is."""
        return self.stacked is not None

    @property
    def pairs(self) -> list[tuple[HeadId, HeadId, float]]:
        """Every two heads, the most alike first; those without a number are left out."""
        rows, columns = np.triu_indices(len(self.heads), 1)
        values = self.alike[rows, columns]
        size = -np.abs(values) if self.cosines else values
        order = [at for at in np.argsort(size, kind="stable") if np.isfinite(values[at])]
        return [(self.heads[rows[at]], self.heads[columns[at]], float(values[at])) for at in order]

    @property
    def mean(self) -> float:
        """The mean of the sizes of alike over all pairs, NaN for a single head."""
        values = [abs(value) for *_, value in self.pairs]
        return float(np.mean(values)) if values else float("nan")

    def facts(self) -> dict[str, Any]:
        """For JSON."""
        finite = statistics.finite_or_none
        spectra = {"stacked": self.stacked, "over_heads": self.over_heads}
        return {
            "layer": self.layer.index, "name": self.layer.name, "heads": list(self.layer.heads),
            **{key: one.facts() for key, one in spectra.items() if one is not None},
            "mean": finite(self.mean),
            "cosines" if self.cosines else "distances":
                [[finite(float(value)) for value in row] for row in self.alike],
            **({} if self.cosines else {"rows": self.rows}),
            "notes": list(self.notes),
        }  # fmt: skip


def redundancy_of_weights(
    layer: Layer, q: Doubles, mix: Doubles, k: Doubles, width: int, notes: tuple[str, ...] = ()
) -> Redundancy:
    """The redundancy of W_QK^(h) = q^T diag(mix_h) k of a layer: q (R, d), mix (H, R), k (R, d).

    width: H times the width of a head. No d x d matrix is formed.
    """
    core = np.linalg.qr(k.T)[1]  # (p, R)
    squares = np.linalg.eigvalsh(core @ ((q @ q.T) * (mix.T @ mix)) @ core.T)[::-1]
    grams = mix @ ((q @ q.T) * (k @ k.T)) @ mix.T  # (H, H) inner products of the W_QK
    sizes = np.sqrt(np.maximum(np.diag(grams), 0.0))
    cosines = ratio_or_nan(grams, np.outer(sizes, sizes))
    over = np.sqrt(np.maximum(np.linalg.eigvalsh(grams)[::-1], 0.0))
    return Redundancy(
        layer, np.clip(cosines, -1.0, 1.0), Spectrum(np.sqrt(np.maximum(squares, 0.0)), width),
        Spectrum(over, len(grams)), notes=notes,
    )  # fmt: skip


class MapRedundancy:
    """The redundancy of the maps of each layer, over any number of texts."""

    def __init__(self) -> None:
        self._layers: dict[int, tuple[Layer, HeadDistances]] = {}

    def add(self, capture: Capture) -> None:
        """Add a text."""
        readings: dict[str, TokenReading] = {}
        count = len(capture.spec.layers)
        for layer in capture.spec.layers:
            maps = capture.maps[layer.index]
            if maps is None or not maps.heads:
                continue
            heads = [HeadId(layer.index, head) for head in maps.heads]
            fresh = layer, HeadDistances(heads, REDUNDANCY_ROWS)
            _, between = self._layers.setdefault(layer.index, fresh)
            with progress_within(layer.index, layer.index + 1, count):
                between.add([maps], Layout(capture, layer.index, readings))

    def layers(self) -> tuple[Redundancy, ...]:
        """Of every layer that was captured."""
        return tuple(
            Redundancy(layer, between.distances(), rows=between.rows)
            for _, (layer, between) in sorted(self._layers.items())
        )
