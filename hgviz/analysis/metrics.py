"""Metrics of heads: one table, measured by one loop from sums over the keys of each row.

Shapes: H heads of a layer, R rows (queries), K columns (keys). Weights count by their size: p is
|a| divided by the sum of its row. Distances between heads and kernels, which compare maps, are at
the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hgviz.activations import ACTIVATIONS
from hgviz.analysis.tokens import Block, Bools, Layout, TokenReading
from hgviz.core import Capture, HeadId, Layer, Map, ModelSpec, progress, progress_within
from hgviz.maps import SlotMap
from hgviz.maps.tiles import one_thread

NEAR_ZERO = 0.01  # of the largest weight of a row
SMALL = 1e-3  # of the largest gradient of a head in a text
BLOCK_ROWS, BLOCK_COLUMNS = 256, 512  # whole tiles
COLUMNS_AT_ONCE = 256  # as many as the cache of a core holds in float64
CELLS = 1 << 26  # of one map; of longer texts only rows spread evenly are measured
EXACT_CELLS = 1 << 24  # the same where whole rows are read
RANK_ROWS, RANK_CELLS = 256, 1 << 23  # at most, of which singular values are taken
WEIGHTS_AT_ONCE = 1 << 22

Array = NDArray[Any]
Doubles = NDArray[np.float64]
Keys = Callable[[Block], Bools]


# --- rectangles of maps, and the loop over them ---------------------------------------------------


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


class Cells(NamedTuple):
    """A rectangle of the maps of a layer: weights (H, rows, columns) and the cells that exist
    (rows, columns); what its keys stand for, or the gradients of its cells, where they are asked
    for."""

    rows: slice
    columns: slice
    weights: Array
    seen: Bools
    block: Block | None = None
    gradients: Gradients | None = None


class Recorder(Protocol):
    """Adds up rectangles of the maps of a layer."""

    def add(self, cells: Cells) -> None:
        """Add a rectangle."""
        ...


def record(
    read: Callable[[slice, slice], Cells | None], blocks: Iterable[slice], keys: int, width: int,
    recorders: Sequence[Recorder], note: str = "",
) -> None:  # fmt: skip
    """Read blocks of rows, in rectangles of so many columns, each once for all recorders; read
    returns None for a rectangle that says nothing."""
    rectangles = [
        (rows, slice(start, min(start + width, keys)))
        for rows in blocks for start in range(0, keys, max(1, width))
    ]  # fmt: skip
    for number, (rows, columns) in enumerate(rectangles):
        progress(number, len(rectangles), note)
        if (cells := read(rows, columns)) is not None:
            for recorder in recorders:
                recorder.add(cells)


def row_blocks(queries: int, keys: int, cells: int | None = None) -> list[slice]:
    """Blocks of rows in which a map is measured: all, or where it has more than so many cells, by
    default CELLS, some that are spread evenly over the text."""
    starts = np.arange(0, queries, BLOCK_ROWS)
    blocks = (CELLS if cells is None else cells) // (BLOCK_ROWS * max(keys, 1))
    most = min(len(starts), max(2, blocks))
    chosen = starts[np.linspace(0, len(starts) - 1, most).round().astype(int)]
    return [slice(start, min(start + BLOCK_ROWS, queries)) for start in chosen.tolist()]


class RowSums:
    """Sums over the keys of each row of a layer, added rectangle by rectangle: what a metric is
    made of.

    With a layout, rectangles may hold some columns of rows and are added as they are; without one
    they hold whole rows, which are added in float64.

    Attributes:
        mass, positive, peak, logs: (H, R) sums of |a|, of a above 0, the largest |a|, the sum of
            |a| log |a|; peak_column: the column of the peak, -1 without weight.
        seen: (R,) cells that exist; near: (H, R) those near zero, of whole rows.
        plain: (H, R) the largest |a| on a key that is no special token.
        distance, placed: (H, R) sums of |a| times the distance in tokens, and of |a| on tokens.
        columns: (H, K) the mass of each key over the rows that stand for a token.
        hits, chance: by set of keys, (H, R) mass on it and (R,) how many it has.
        at_scores, at_weights: (H, R) sums of |gradients|; asked: (H, R) the cells that exist in
            rows that the answer depends on; small: those below SMALL of the largest, top (H,).
    """

    def __init__(
        self, shape: tuple[int, int, int], signed: Sequence[bool], layout: Layout | None = None,
        key_sets: Mapping[str, Keys] | None = None,
    ) -> None:  # fmt: skip
        """layout, key_sets: for metrics and roles that ask what a key stands for."""
        heads, rows, self.keys = shape
        self.signed, self.layout = np.array(signed, bool), layout
        self.key_sets = dict(key_sets or {})
        self.mass, self.positive, self.peak, self.logs, self.near = np.zeros((5, heads, rows))
        self.distance, self.placed, self.plain = np.zeros((3, heads, rows))
        self.at_scores, self.at_weights, self.asked, self.small = np.zeros((4, heads, rows))
        self.peak_column = np.full((heads, rows), -1)
        self.columns = np.zeros((heads, self.keys))
        self.seen, self.top = np.zeros(rows), np.zeros(heads)
        self.hits = {name: np.zeros((heads, rows)) for name in self.key_sets}
        self.chance = {name: np.zeros(rows) for name in self.key_sets}

    def add(self, cells: Cells) -> None:
        """Add a rectangle."""
        if cells.block is not None:
            sizes = self._add_sizes(cells.rows, cells.columns.start, cells.weights, cells.seen)
            self._add_keys(cells, cells.block, sizes)
            return
        starts = range(0, self.keys, COLUMNS_AT_ONCE)
        parts = [slice(start, start + COLUMNS_AT_ONCE) for start in starts]
        parts = [part for part in parts if cells.seen[:, part].any()]
        for part in parts:
            weights, seen = cells.weights[:, :, part].astype(float), cells.seen[:, part]
            self._add_sizes(cells.rows, part.start, weights, seen)
        least = NEAR_ZERO * self.peak[:, cells.rows, None]
        for part in parts:
            is_near = (np.abs(cells.weights[:, :, part]) < least) & cells.seen[:, part]
            self.near[:, cells.rows] += is_near.view(np.int8).sum(2, dtype=np.int32)
        if cells.gradients is not None:
            self._add_gradients(cells.rows, cells.gradients)

    def _add_sizes(self, rows: slice, first: int, weights: Array, seen: Bools) -> Array:
        sizes = np.abs(weights)
        self.mass[:, rows] += sizes.sum(2)
        if self.signed.any():
            self.positive[:, rows] += np.maximum(weights, 0).sum(2)
        self.logs[:, rows] += np.vecdot(sizes, np.log(np.maximum(sizes, 1e-30)))
        self.seen[rows] += seen.sum(1)
        column = sizes.argmax(2)
        peak = np.take_along_axis(sizes, column[..., None], 2)[..., 0]
        is_higher = peak > self.peak[:, rows]  # the first of several equal ones stays
        self.peak_column[:, rows] = np.where(is_higher, column + first, self.peak_column[:, rows])
        self.peak[:, rows] = np.where(is_higher, peak, self.peak[:, rows])
        return sizes

    def _add_keys(self, cells: Cells, block: Block, sizes: Array) -> None:
        """Add what the keys of a rectangle stand for."""
        assert self.layout is not None
        rows, seen = cells.rows, cells.seen
        self.columns[:, cells.columns] += sizes[:, self.layout.real[rows]].sum(1)
        if self.layout.key_tokens.special.any():
            plain = (sizes * ~block.special).max(2)
            self.plain[:, rows] = np.maximum(self.plain[:, rows], plain)
        distance = np.where(seen, block.distance, 0)
        self.distance[:, rows] += np.einsum("hrc,rc->hr", sizes, distance)
        self.placed[:, rows] += np.einsum("hrc,rc->hr", sizes, seen.astype(np.float32))
        keys = {name: find(block) & seen for name, find in self.key_sets.items()}
        names = [name for name, is_key in keys.items() if is_key.any()]
        if names:  # far from the diagonal most sets of keys are empty
            # one small product per row: (sets, columns) x (columns, heads)
            is_key = np.stack([keys[name] for name in names], axis=1)
            mass, counts = is_key.astype(np.float32) @ sizes.transpose(1, 2, 0), is_key.sum(2)
            for number, name in enumerate(names):
                self.hits[name][:, rows] += mass[:, number].T
                self.chance[name][rows] += counts[:, number]

    def _add_gradients(self, rows: slice, gradients: Gradients) -> None:
        sizes = np.abs(gradients.at_scores)
        self.at_scores[:, rows] = sizes.sum(2, dtype=float)
        self.at_weights[:, rows] = np.abs(gradients.at_weights).sum(2, dtype=float)
        self.asked[:, rows] = gradients.seen.sum(1) * gradients.at_weights.any(2)
        self.top = np.maximum(self.top, sizes.max((1, 2), initial=0))

    def count_small(self, rows: slice, gradients: Gradients) -> None:
        """Count the small gradients, once the gradients of all rows are added."""
        is_small = np.abs(gradients.at_scores) < SMALL * self.top[:, None, None]
        is_asked = gradients.seen & gradients.at_weights.any(2, keepdims=True)
        self.small[:, rows] = (is_small & is_asked).sum(2)

    # what metrics are made of, all (H, R)

    @property
    def entropy(self) -> Array:
        """Entropy of p in nats, 0 for a row without weight."""
        mass = np.where(self.mass > 0, self.mass, 1.0)
        spread = np.log(mass) - self.logs / mass
        return np.maximum(np.where(self.mass > 0, spread, 0.0), 0.0)

    @property
    def negative(self) -> Array:
        """Sums of max(-a, 0)."""
        negative: Array = (self.mass - self.positive) * self.signed[:, None]
        return negative

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


def ratio(part: Array, total: Array, missing: float = 0.0) -> Doubles:
    """part / total, `missing` where there is nothing to divide by."""
    out = np.full(np.broadcast(part, total).shape, missing)
    return np.asarray(np.divide(part, total, out=out, where=total > 0))


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
        label: its name, in which {unit} stands for token or slot; unit: "nats", "share" or "".
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
        """The label and its unit, in which {unit} stands for token, frame or slot."""
        return f"{self.label}, {self.unit}" if self.unit not in ("", "share") else self.label

    def named(self, unit: str) -> str:
        """The label and its unit, with {unit} filled in."""
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


CLARK, VOITA = "Clark et al. 2019", "Voita et al. 2019"
CORDONNIER = "Cordonnier et al. 2020; mechanisms.md"
GUIDE, YMISH = "how-to/heads.md", "ymish.md"

METRICS: dict[str, Metric] = {
    "focus": Metric(
        "Mean max weight", "", "The largest weight of a row, averaged over rows",
        "mean_i max_j p_ij, p_ij = |a_ij| / Σ_k |a_ik|", VOITA,
        lambda sums: ratio(sums.peak, sums.mass), shown=(HEADS, PAIR),
    ),
    "entropy": Metric(
        "Entropy", "nats", "Entropy of a row, averaged over rows; 0 for a single key",
        "mean_i −Σ_j p_ij ln p_ij", CLARK, lambda sums: sums.entropy, shown=(HEADS, PAIR, REPORT),
    ),
    "distance": Metric(
        "Mean distance", "{unit}s", "Mean distance from query to key, weighted by attention",
        "mean_i Σ_j p_ij |i − j|", "Vig and Belinkov 2019", _distance,
    ),
    "previous": Metric(
        "Previous {unit}", "", "Weight on the previous position, averaged over rows",
        "mean_i p_i,i−1", CLARK, lambda sums: sums.share("previous token"),
    ),
    "first": Metric(
        "First {unit}", "", "Weight on the first position, averaged over rows",
        "mean_i p_i,0", "Xiao et al. 2024", lambda sums: sums.share("first token"),
    ),
    "same": Metric(
        "Current {unit}", "", "Weight on the query's own position, averaged over rows",
        "mean_i p_ii", CLARK, lambda sums: sums.share("current token"),
    ),
    "next": Metric(
        "Next {unit}", "", "Weight on the next position, averaged over rows",
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
        "Max weight on words", "",
        "The largest weight of a row on a token that is not special, averaged over rows",
        "mean_i max_j p_ij, x_j ≠ [SEP], [CLS], …", VOITA, _focus_on_words,
    ),
    "same token": Metric(
        "Same {unit}", "", "Weight on the same {unit} elsewhere, averaged over rows that have one",
        "mean_i Σ_j p_ij, x_j = x_i, j ≠ i", "Wang et al. 2023", _same_token,
    ),
    "induction": Metric(
        "Induction", "",
        "Weight on what followed the same {unit} earlier, averaged over rows that have one",
        "mean_i Σ_j p_ij, x_j−1 = x_i, j < i", "Olsson et al. 2022",
        lambda sums: sums.share_where("induction"),
    ),
    "diagonal": Metric(
        "Diagonal", "",
        "Weight on keys as far through their text as the query is through its own",
        "mean_i Σ_j p_ij, j / m ≈ i / n", GUIDE, lambda sums: sums.share("same place"),
    ),
    "positive": Metric(
        "Positive sum", "", "Sum of the positive weights of a row, averaged over rows",
        "mean_i Σ_j max(a_ij, 0)", "maps.md",
        lambda sums: _of_signed(sums, sums.positive),
    ),
    "negative": Metric(
        "Negative sum", "", "Sum of the negative weights of a row, averaged over rows",
        "mean_i Σ_j min(a_ij, 0)", "maps.md",
        lambda sums: _of_signed(sums, sums.positive - sums.mass),
    ),
    "positional": Metric(
        "Positional", "", "Share of rows whose largest weight is at the most common offset",
        "max_d mean_i [argmax_j p_ij − i = d]", VOITA,
    ),
    "offset": Metric(
        "Offset", "{unit}s",
        "The most common offset of the largest weight of a row; −1 is the previous position",
        "argmax_d mean_i [argmax_j p_ij − i = d]", VOITA,
    ),
    "rare": Metric(
        "Rarest word", "",
        "Share of rows whose largest weight is on the rarest word of their sentence",
        "mean_i [argmax_j p_ij ∈ w_i]", VOITA, RowSums.is_rarest_word,
    ),
    "convolution": Metric(
        "Convolution-like", "",
        "Share of the deviation from uniform attention explained by one kernel over offsets",
        "1 − ‖A − T‖² / ‖A − U‖², T_ij ∝ κ(j − i), U_ij = 1 / n_i", CORDONNIER,
    ),
    "centre": Metric(
        "Kernel centre", "{unit}s", "The mean offset of the kernel; −1 is the previous position",
        "c = Σ_d d κ(d) / Σ_d κ(d)", CORDONNIER,
    ),
    "width": Metric(
        "Kernel width", "{unit}s", "The standard deviation of the kernel",
        "√(Σ_d (d − c)² κ(d) / Σ_d κ(d))", CORDONNIER,
    ),
    "variance": Metric(
        "Content variance", "",
        "Variance of a cell of the map between texts, averaged over cells",
        "mean_ij Var(p_ij), i, j < 64", GUIDE,
    ),
    "nearest": Metric(
        "Nearest head", "",
        "The Jensen-Shannon distance to the most similar head; 0 is the same map",
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
        lambda sums: ratio(sums.negative, sums.mass), shown=(PAIR, REPORT),
    ),
    "row_sum": Metric(
        "Row sum", "",
        "Sum of a row of A, averaged over rows; 1 for softmax, any value for signed weights",
        "mean_i Σ_j a_ij", "maps.md", lambda sums: sums.mass - 2 * sums.negative,
        shown=(PAIR, REPORT), every_row=True,
    ),
    "rank": Metric(
        "Effective rank / n", "share",
        "exp of the entropy of the singular values, divided by the smaller side of the map",
        "exp(−Σ_k s_k ln s_k) / n, s_k = σ_k / Σ_l σ_l", "Roy and Vetterli 2007",
        shown=(PAIR, REPORT),
    ),
    "apart": Metric(
        "Distance to other heads", "",
        "Jensen-Shannon distance to the other heads of the layer, 0 identical to 1 disjoint",
        "mean_h mean_i √JS₂(p_i, q_i)", CLARK, shown=(REPORT,),
    ),
    "slope": Metric(
        "Mean |dM/dS|", "nats",
        "Mean absolute gradient of the log odds of the correct answer with respect to a score, "
        "over rows on which they depend",
        "mean_ij |∂M/∂s_ij|", YMISH, lambda sums: sums.at_scores, lambda sums: sums.asked,
        (REPORT,), True,
    ),
    "small": Metric(
        "Vanished gradients", "share",
        f"Share of cells whose |dM/dS| is below {SMALL:g} of the largest of the head",
        f"mean_ij [|∂M/∂s_ij| < {SMALL:g} max |∂M/∂s|]", YMISH,
        lambda sums: np.where(sums.top[:, None] > 0, sums.small, np.nan),
        lambda sums: sums.asked, (REPORT,), True,
    ),
    "passed": Metric(
        "Gradient passed by the activation", "",
        "Sum of |dM/dS| divided by sum of |dM/dA|: how much passes normalisation and activation",
        "Σ_ij |∂M/∂s_ij| / Σ_ij |∂M/∂a_ij|", YMISH, lambda sums: sums.at_scores,
        lambda sums: sums.at_weights, (REPORT,), True,
    ),
}  # fmt: skip


class HeadMetrics(dict[str, float]):
    """The metrics of one head by name; one that says nothing of it is not listed and reads NaN.

    rows: how many rows of a single map were measured, of all_rows that stand for a token.
    """

    rows = all_rows = 0

    def __missing__(self, name: str) -> float:
        return float("nan")


def applicable(metrics: Iterable[Mapping[str, float]]) -> tuple[str, ...]:
    """The names of METRICS that say something of at least one of these heads."""
    heads = list(metrics)
    return tuple(name for name in METRICS if any(name in values for values in heads))


class MetricMeans:
    """Means of metrics over the rows of any number of texts, in memory that does not grow."""

    def __init__(self, heads: int, names: Iterable[str], keep_empty: bool = False) -> None:
        """keep_empty: rows without weight count as 0, too; without it as Metric.every_row says."""
        self.heads, self.rows, self.keep_empty = heads, 0, keep_empty
        # (3, H): total, count, whether any row had a value
        self._sums = {name: np.zeros((3, heads)) for name in names if METRICS[name].of}
        self._offsets: dict[int, Array] = {}

    def add(self, sums: RowSums, rows: Bools) -> None:
        """Add the rows (R,) of a text that count; those with a weight that is no number do not."""
        self.rows += int(rows.sum())
        is_finite = np.isfinite(sums.mass)
        for name, total in self._sums.items():
            metric = METRICS[name]
            values = metric.of(sums) if metric.of else sums.mass
            sizes = metric.per(sums) if metric.per else np.ones(values.shape)
            exists = ~np.isnan(values)
            counted = exists & rows
            if not self.keep_empty:
                counted &= is_finite if metric.every_row else is_finite & (sums.mass > 0)
            parts = (np.where(counted, values, 0), np.where(counted, sizes, 0), exists)
            total += [part.sum(1) for part in parts]
        for head, row in enumerate(sums.offsets()[:, rows]):
            offsets, counts = np.unique(row[~np.isnan(row)].astype(np.int64), return_counts=True)
            for offset, count in zip(offsets.tolist(), counts, strict=True):
                self._offsets.setdefault(offset, np.zeros(self.heads))[head] += count

    def columns(self) -> dict[str, Doubles]:
        """By metric (H,) the means, NaN where no row has it."""
        columns = {
            name: ratio(total, count, np.nan) if self.rows else np.where(exists > 0, 0.0, np.nan)
            for name, (total, count, exists) in self._sums.items()
        }
        offsets = sorted(self._offsets, key=lambda offset: (abs(offset), offset))
        if offsets and self.rows:  # the offset of the most rows, the nearer of two
            counts = np.stack([self._offsets[offset] for offset in offsets])
            columns["positional"] = counts.max(0) / self.rows
            columns["offset"] = np.array(offsets, float)[counts.argmax(0)]
        return columns

    def metrics(self) -> list[HeadMetrics]:
        """For each head the metrics that say something of it, in the order of METRICS."""
        columns = self.columns()
        return [
            HeadMetrics(
                (name, float(columns[name][head])) for name in METRICS
                if name in columns and not np.isnan(columns[name][head])
            )
            for head in range(self.heads)
        ]  # fmt: skip


# --- heads of a capture ---------------------------------------------------------------------------


def measure(
    capture: Capture, names: Iterable[str], heads: Iterable[HeadId] | None = None
) -> dict[HeadId, HeadMetrics]:
    """Metrics of some heads of a capture, or of all, from whole rows.

    names: of METRICS that weights alone tell: those of PAIR. Heads that are not captured are left
    out. Of maps above EXACT_CELLS only blocks of rows spread evenly are read; rows that hold what
    is no number do not count. Holds at most 256 rows of a map.
    """
    names, readings = tuple(names), dict[str, TokenReading]()
    asked = capture.spec.heads if heads is None else tuple(heads)
    measured = {}
    for number, head in enumerate(asked):
        maps = capture.maps[head.layer]
        if maps is not None and head.head in maps.heads:
            layout = Layout(capture, head.layer, readings)
            with progress_within(number, number + 1, len(asked)):
                measured[head] = _measure_head(head, maps, layout, names)
    return measured


def _measure_head(head: HeadId, maps: Map, layout: Layout, names: Sequence[str]) -> HeadMetrics:
    queries, keys = maps.shape[1:]
    blocks = row_blocks(queries, keys, EXACT_CELLS)
    is_read = np.zeros(queries, bool)
    for rows in blocks:
        is_read[rows] = layout.real[rows]
    sums, sample = RowSums((1, queries, keys), [True]), RankSample(np.flatnonzero(is_read), keys)

    def read(rows: slice, columns: slice) -> Cells:
        weights = maps.read(head.head, rows)[None]
        seen = layout.block(rows, columns).seen | (weights[0] != 0)
        return Cells(rows, columns, weights, seen)

    with np.errstate(invalid="ignore"):  # weights may be NaN
        record(read, blocks, keys, keys, (sums, sample), f"head {head}")
    means = MetricMeans(1, names)
    means.add(sums, is_read & np.isfinite(sums.mass[0]))
    metrics = means.metrics()[0]
    metrics.rows, metrics.all_rows = means.rows, int(layout.real.sum())
    if "rank" in names:
        metrics["rank"] = float(sample.ranks()[0])
    return metrics


class RankSample:
    """Rows of maps, spread evenly, for their effective ranks."""

    def __init__(self, rows: NDArray[np.int64], keys: int) -> None:
        most = min(len(rows), RANK_ROWS, max(1, RANK_CELLS // max(keys, 1)))
        at = np.linspace(0, max(0, len(rows) - 1), most).astype(int)
        self.rows = rows[np.unique(at)]
        self._parts: list[Array] = []

    def add(self, cells: Cells) -> None:
        """Keep those of the rows that are sampled."""
        inside = self.rows[(self.rows >= cells.rows.start) & (self.rows < cells.rows.stop)]
        chosen = cells.weights[:, inside - cells.rows.start]
        if len(chosen) == 1:  # rows that hold NaN are left out of a single head
            chosen = chosen[:, np.isfinite(chosen[0]).all(1)]
        self._parts.append(chosen)

    def maps(self) -> Array:
        """(H, rows, K) the rows that are sampled."""
        return np.concatenate(self._parts, axis=1) if self._parts else np.zeros((1, 0, 0))

    def ranks(self) -> Doubles:
        """(H,) effective ranks over the smaller side."""
        maps = self.maps()
        ranks: Doubles = effective_ranks(maps) / max(1, min(maps.shape[1:]))
        return ranks


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


# --- heads of a model on a text, with gradients ---------------------------------------------------

DISTANCE_ROWS = 64  # of a map, spread evenly, whose distances are taken
DISTANCE_CELLS = 1 << 25  # of pairs of heads whose distance is taken in one text
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

    values: by metric (N,), NaN where there is none. apart (N, N): Jensen-Shannon distances, NaN
    between maps of other shapes. cells, at_scores, at_weights (N, bins of EDGES): how many cells
    have so large a score, and what |dM/dS| and |dM/dA| add up to there. shares: by queries and
    keys, columns and sampled rows of p.
    """

    values: dict[str, Doubles]
    apart: Doubles
    cells: Doubles
    at_scores: Doubles
    at_weights: Doubles
    shares: dict[tuple[int, int], tuple[Array, Array]] = field(default_factory=dict)


def measure_text(gradients: GradientPass, spec: ModelSpec) -> TextMetrics:
    """Measure every head of a model on one text, layer by layer, WEIGHTS_AT_ONCE at a time."""
    layer_of = np.array([head.layer for head in spec.heads], int)
    count, bins = len(layer_of), len(EDGES) - 1
    text = TextMetrics(
        {name: np.full(count, np.nan) for name in metrics_for(REPORT)},
        np.full((count, count), np.nan),
        *np.zeros((3, count, bins)),
    )  # fmt: skip
    by_shape: dict[tuple[int, int], list[int]] = {}
    for layer in spec.layers:
        if layer.heads:
            by_shape.setdefault(gradients.shape(layer.index)[1:], []).append(layer.index)
    for (queries, keys), layers in by_shape.items():
        heads = np.flatnonzero(np.isin(layer_of, layers))
        cells_a_row = len(heads) ** 2 * keys
        most = min(DISTANCE_ROWS, queries, max(4, DISTANCE_CELLS // max(1, cells_a_row)))
        sampled = np.unique(np.linspace(0, queries - 1, most).astype(int))
        p = np.concatenate([
            _measure_layer(text, np.flatnonzero(layer_of == layer), gradients, layer, sampled)
            for layer in layers
        ])  # fmt: skip
        text.apart[np.ix_(heads, heads)] = distances(p, p)
        text.shares[queries, keys] = heads, p
    is_other = (layer_of[:, None] == layer_of) & ~np.eye(count, dtype=bool) & ~np.isnan(text.apart)
    between = np.where(is_other, text.apart, 0.0).sum(1)
    text.values["apart"][:] = ratio(between, is_other.sum(1), np.nan)
    return text


def _measure_layer(
    text: TextMetrics, at: Array, gradients: GradientPass, layer: int, sampled: Array
) -> Array:
    """Measure the heads `at` of a layer; returns the sampled rows of p (H, rows, K)."""
    _, queries, keys = shape = gradients.shape(layer)
    step = max(1, WEIGHTS_AT_ONCE // max(1, len(at) * keys))
    blocks = [slice(start, min(start + step, queries)) for start in range(0, queries, step)]

    @lru_cache(maxsize=1)  # a single block is read once for both loops
    def rows_of(start: int, stop: int) -> Gradients:
        return gradients.rows(layer, range(start, stop))

    def read(rows: slice, columns: slice) -> Cells:
        block = rows_of(rows.start, rows.stop)
        return Cells(rows, columns, block.weights, block.seen, gradients=block)

    sums = RowSums(shape, [True] * len(at))
    sample, shares = RankSample(np.arange(queries), keys), _SampledShares(sampled)
    record(read, blocks, keys, keys, (sums, sample, shares, _ScoreBins(text, at)))
    for rows in blocks:
        sums.count_small(rows, rows_of(rows.start, rows.stop))
    means = MetricMeans(len(at), metrics_for(REPORT))
    means.add(sums, sums.seen > 0)
    for name, values in means.columns().items():
        text.values[name][at] = values
    text.values["rank"][at] = sample.ranks()
    return np.concatenate(shares.parts, axis=1)


class _SampledShares:
    """Sampled rows of p (H, rows, K)."""

    def __init__(self, rows: Array) -> None:
        self.rows, self.parts = rows, list[Array]()

    def add(self, cells: Cells) -> None:
        inside = self.rows[(self.rows >= cells.rows.start) & (self.rows < cells.rows.stop)]
        sizes = np.abs(cells.weights[:, inside - cells.rows.start].astype(float))
        self.parts.append(ratio(sizes, sizes.sum(-1, keepdims=True)))


class _ScoreBins:
    """Cells and gradients of the heads `at` by the size of the score, of rows that the answer
    depends on."""

    def __init__(self, text: TextMetrics, at: Array) -> None:
        self.text, self.at = text, at

    def add(self, cells: Cells) -> None:
        assert cells.gradients is not None
        block, heads, bins = cells.gradients, len(self.at), len(EDGES) - 1
        number = np.digitize(np.abs(block.scores), EDGES[1:-1])
        number += bins * np.arange(heads)[:, None, None]
        is_asked = block.seen[None] & block.at_weights.any(-1, keepdims=True)
        for total, values in (
            (self.text.cells, np.ones_like(block.scores)),
            (self.text.at_scores, np.abs(block.at_scores)),
            (self.text.at_weights, np.abs(block.at_weights)),
        ):
            sums = np.bincount(number[is_asked], values[is_asked].astype(float), bins * heads)
            total[self.at] += sums.reshape(heads, bins)


# --- ranks and distances --------------------------------------------------------------------------


def effective_ranks(maps: Array) -> Doubles:
    """Effective ranks (H,) of maps (H, rows, K): exp of the entropy of the singular values, divided
    by their sum (Roy and Vetterli 2007).

    From 1 to the smaller side; 0 for a map of zeros, NaN for one that is empty or holds NaN.
    """
    if not maps.size:
        return np.full(len(maps), np.nan)
    is_broken: Array = (~np.isfinite(maps)).sum((1, 2)) > 0
    with one_thread():  # as many threads as there are cores wait for each other
        finite_maps = np.where(is_broken[:, None, None], 0.0, maps.astype(float))
        sizes = np.linalg.svd(finite_maps, compute_uv=False)
    shares = ratio(sizes, sizes.sum(-1, keepdims=True))
    logs = np.log(np.where(shares > 0, shares, 1.0))
    ranks: Doubles = sizes.any(-1) * np.exp(-(shares * logs).sum(-1))
    ranks[is_broken] = np.nan
    return ranks


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
    return np.stack([ratio(*_compare_rows(own, q), np.nan) for own in p])


def distances_between(a: TextMetrics, b: TextMetrics) -> Doubles:
    """(heads of A, heads of B) distances of their rows; NaN for maps of other shapes."""
    between = np.full((len(a.apart), len(b.apart)), np.nan)
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
        keys = max(1, maps[0].shape[2])
        step = max(LIKENESS_ROWS, WEIGHTS_AT_ONCE // (max(1, len(self.heads)) * keys))
        for start in range(0, len(rows), step):
            progress(start, len(rows))
            part = rows[start : start + step]
            runs = np.split(part, np.flatnonzero(np.diff(part) > 1) + 1)
            sizes = np.abs([
                np.concatenate([own.read(head, (int(run[0]), int(run[-1]) + 1)) for run in runs])
                for own in maps for head in own.heads
            ], dtype=float)  # fmt: skip
            p = ratio(sizes, sizes.sum(2, keepdims=True))
            pairs = max(1, WEIGHTS_AT_ONCE // (len(part) * keys))
            for head in range(len(p) - 1):
                for first in range(head + 1, len(p), pairs):
                    others = slice(first, min(first + pairs, len(p)))
                    self._total[:, head, others] += _compare_rows(p[head], p[others])

    def distances(self) -> Doubles:
        """(heads, heads) the mean distances, 0 on the diagonal; NaN where no row of both has
        weight."""
        total, rows = self._total + self._total.transpose(0, 2, 1)
        distances = ratio(total, rows, np.nan)
        np.fill_diagonal(distances, 0.0)
        return distances

    def nearest(self) -> dict[HeadId, tuple[HeadId, float]]:
        """For each head the one most like it, the earliest of several, and their distance."""
        distances = self.distances()
        np.fill_diagonal(distances, np.nan)
        return {
            head: (self.heads[int(np.nanargmin(row))], float(np.nanmin(row)))
            for head, row in zip(self.heads, distances, strict=True)
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
