"""What each head is worth, by every score of METHODS; orders of heads, pruning curves, and what a
model answers with heads off beside the baseline.

A score is a reduction of one array of a study, without the model: a sum over rows (examples,
batches, random orders, trainings) over another sum. So all scores have one interval, that of a
ratio over rows drawn at random, which is the normal interval of a mean where rows are of equal
size. Changes of right and wrong have Bonett and Price's interval.

An order sorts heads by one score. Random orders are what every score has to beat, so a pruning
curve says little without the band of random ones (Michel, Levy, Neubig 2019).

Shapes: E examples, P places, H heads in order of computation.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.statistics import (
    METRIC_OF,
    Answer,
    Answers,
    Places,
    agresti_coull,
    benjamini_hochberg,
    finite_or_none,
    mcnemar,
    paired_difference,
    ratio_interval,
)
from hgviz.core import (
    Floats,
    HeadCost,
    HeadId,
    HeadSet,
    HgvizError,
    Integers,
    MetricEstimate,
    ModelSpec,
    progress,
)
from hgviz.errors import choose, require
from hgviz.examples import EACH, Batch, Examples
from hgviz.study import NO_PREDICTION, UNKNOWN, PruningCurve, Study

BATCH = 32  # examples in a batch, which bertology depends on
POINTS = 49  # of a pruning curve, unless more are asked for
ALLOWED_LOSS = 0.01  # share of right answers that k* allows to be lost
BAND = (0.1, 0.9)  # quantiles of random orders
ROUNDING = 1e-9
SHARE_OF = METRIC_OF | {"next": "next_token_accuracy", "states": "retrieval_accuracy"}
LENGTH_PARTS = 4  # slices of the examples by length, of as many examples each

FloatArray = NDArray[np.float64]
Order = tuple[HeadId, ...]
Ends = tuple[float, float, float]  # a value and its interval of 95 %
Rows = tuple[NDArray[Any], NDArray[Any]]  # sums (rows, H), sizes (rows, H) or (rows, 1)
# (study, its array, numbers of examples) -> rows
Reduction = Callable[[Study, NDArray[Any], Integers], Rows]
# (models.trials.Trials, batch of B examples) -> (B, H)
Measure = Callable[[Any, Batch], Floats]


# --- from an array of a study to the rows of a score ----------------------------------------------


def mean_over_examples(study: Study, values: NDArray[Any], chosen: Integers) -> Rows:
    """One row of values (E, H) for each example, all of size 1."""
    return values[chosen], np.ones((len(chosen), 1))


def mean_over_places(study: Study, values: NDArray[Any], chosen: Integers) -> Rows:
    """The sum of values (P, H) over the places of each example, and how many places it has."""
    sums = np.zeros((len(study), values.shape[1]))
    answered = np.flatnonzero(study.counts)
    if len(answered):
        starts = study.places[:-1][answered]
        sums[answered] = np.add.reduceat(values, starts, axis=0, dtype=float)
    return sums[chosen], study.counts[chosen][:, None]


def mean_over_runs(study: Study, values: NDArray[Any], chosen: Integers) -> Rows:
    """One row for each random order or training, of whatever examples: values (runs, H)."""
    return values, np.ones((len(values), 1))


def _gradients(function: Callable[[FloatArray], FloatArray], by_place: bool) -> Reduction:
    """A function of each example's gradient, by place or by example."""

    def rows(study: Study, values: NDArray[Any], chosen: Integers) -> Rows:
        sizes = study.counts[chosen][:, None] if by_place else np.ones((len(chosen), 1))
        return function(values[chosen].astype(float)), sizes

    return rows


def _token_gradients(study: Study, values: NDArray[Any], chosen: Integers) -> Rows:
    """By token; in the last layer of a classifier, where one token is read, by example."""
    sizes = np.repeat(study.lengths[chosen][:, None].astype(float), len(study.heads), 1)
    if study.asked == "classes":
        last = study.spec.layers[-1].index
        sizes[:, [head.layer == last for head in study.heads]] = 1.0
    return values[chosen], sizes


def _batches(study: Study, values: NDArray[Any], chosen: Integers) -> Rows:
    """A sum over batches, so the sizes of all batches add up to 1."""
    starts = np.arange(0, len(chosen), BATCH)
    sums = np.abs(np.add.reduceat(values[chosen], starts, axis=0, dtype=float))
    seen = (~np.isnan(sums)).sum(0)
    return sums, np.where(seen, 1.0, 0.0) / np.maximum(seen, 1) * np.ones((len(starts), 1))


# --- the scores -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Method:
    """A score of heads.

    needs: the array of a study that `rows` reduces: one of study.ARRAYS, or one that `measure`
    gives for each batch of examples from passes of the model, (B, H). learned: the array is what
    trainings gave each head instead (runs, H). needed: 1 where a high score means that a head is
    needed, -1 where a low one does. stated: what else the number depends on.
    """

    name: str
    label: str
    formula: str
    source: str
    needs: str
    unit: str
    rows: Reduction = mean_over_examples
    needed: int = 1
    stated: str = ""
    measure: Measure | None = None
    learned: bool = False

    def is_measured(self, study: Study) -> bool:
        """Whether a study has what the score is made of."""
        return self.array(study) is not None

    def array(self, study: Study) -> NDArray[Any] | None:
        """The array of a study that the score is made of; None where it was not measured."""
        if not self.learned:
            return study.arrays.get(self.needs)
        runs = (learned.runs for learned in study.learned if learned.method == self.name)
        return next(runs, None)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "signed", "Predicted loss change", "-mean G", "first order; Michel et al. 2019, eq. 2",
            "gradient", "nats", _gradients(np.negative, True),
        ),
        Method(
            "michel", "Sensitivity", "mean |G|", "Michel, Levy, Neubig 2019, eq. 2",
            "gradient", "nats", _gradients(np.abs, True),
        ),
        Method(
            "michel-token", "Sensitivity per token", "sum over tokens of |c . dL/dc| / tokens",
            "the BERT code of Michel et al. 2019", "token_gradient", "nats", _token_gradients,
            stated="the last layer of a classifier per example",
        ),
        Method(
            "bertology", "Sensitivity per batch", "sum over batches of |sum of G|",
            "Hugging Face's bertology; TextPruner", "gradient", "nats", _batches,
            stated="the batch size",
        ),
        Method(
            "fisher", "Fisher information", "mean G^2", "Kwon et al. 2022",
            "gradient", "nats^2", _gradients(np.square, False),
        ),
        Method(
            "loo", "Loss change", "loss without the head - loss", "Michel et al. 2019, 3.2",
            "loss_change", "nats", mean_over_places,
        ),
        Method(
            "all-but-one", "Loss change with this head alone",
            "loss with only this head in its layer - loss", "Michel et al. 2019, 3.3",
            "alone", "nats", mean_over_places, needed=-1,
        ),
        Method(
            "shapley", "Shapley value", "mean over orders of the loss change when the head joins",
            "Held, Yang 2023", "shapley", "nats", mean_over_runs, needed=-1,
            stated="number of random orders",
        ),
        Method(
            "gates", "Hard-concrete gate", "clip(1.2 sigmoid(log a) - 0.1, 0, 1)",
            "Voita et al. 2019", "gates", "", mean_over_runs, stated="training", learned=True,
        ),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Importance:
    """A score of all heads: (H,) each, NaN where it was not measured.

    low, high: 95 %. rank: 1 is the most needed head, 0 one that was not measured. rows: of how many
    examples it is.
    """

    method: Method
    heads: Order
    score: FloatArray
    low: FloatArray
    high: FloatArray
    rank: Integers
    rows: int

    @property
    def need(self) -> FloatArray:
        """(H,): the score turned so that it is high where a head is needed."""
        return self.score * self.method.needed

    @property
    def least_needed(self) -> Order:
        """The heads from the least needed on."""
        return tuple(self.heads[at] for at in np.argsort(-self.rank) if self.rank[at])

    def to_rows(self) -> list[dict[str, Any]]:
        """As `hgviz importance --json` prints it, the most needed head first."""
        return [
            {
                "head": str(self.heads[at]), "score": float(self.score[at]),
                "low": finite_or_none(self.low[at]), "high": finite_or_none(self.high[at]),
                "rank": int(self.rank[at]),
            }
            for at in np.argsort(self.rank) if self.rank[at]
        ]  # fmt: skip


def importance(study: Study, method: str, rows: NDArray[Any] | None = None) -> Importance:
    """The scores of all heads; rows: of some examples alone, by number or as a mask (E,).

    Raises HgvizError for an unknown method, and for one that was not measured.
    """
    score_method = METHODS[choose(method, METHODS, "score")]
    values = score_method.array(study)
    if values is None:
        raise HgvizError(
            f"this study has no {method} scores: {score_method.needs} was not measured",
            f"Train gates, then run hgviz importance --method {method} --gates DIR"
            if score_method.learned
            else f"Compute head importance with {method} first",
        )
    chosen = _chosen(study, rows)
    score, low, high = ratio_interval(*score_method.rows(study, values, chosen))
    if study.asked == "states" and score_method.unit == "nats":
        score_method = replace(score_method, unit="1 - cosine")
    need = score * score_method.needed
    order = np.argsort(-need, kind="stable")
    order = order[~np.isnan(need[order])]
    rank = np.zeros(len(need), np.int64)
    rank[order] = np.arange(1, len(order) + 1)
    return Importance(score_method, study.heads, score, low, high, rank, len(chosen))


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """What switching each head off does to right and wrong: (H,) each, NaN where not measured.

    change: of the share of right answers, low and high its interval (Bonett and Price); lost and
    won: places that became wrong or right. p: McNemar's exact p that no answer changes, adjusted:
    among all heads (Benjamini and Hochberg).
    """

    change: FloatArray
    low: FloatArray
    high: FloatArray
    lost: Integers
    won: Integers
    p: FloatArray
    adjusted: FloatArray


def changes(study: Study, rows: NDArray[Any] | None = None) -> Changes:
    """What each head off does to the share of right answers; rows as of importance."""
    change = study.arrays.get("change")
    if change is None:
        change = np.full((len(study.wanted), len(study.heads)), UNKNOWN, np.int8)
    change = change[study.places_of(_chosen(study, rows))]
    lost, won = ((change == sign).sum(0) for sign in (-1, 1))
    seen = (change != UNKNOWN).sum(0)
    share, low, high, p = (
        np.where(seen, value, np.nan)
        for value in (
            (won - lost) / np.maximum(seen, 1),
            *paired_difference(lost, won, seen),
            mcnemar(lost, won),
        )
    )
    return Changes(share, low, high, lost, won, p, benjamini_hochberg(p))


def _chosen(study: Study, rows: NDArray[Any] | None) -> Integers:
    """The numbers of the chosen examples."""
    numbers = np.arange(len(study))
    chosen = numbers if rows is None else numbers[np.asarray(rows)]
    require(len(chosen), "no examples to score heads on are selected", "Select some")
    return chosen


# --- what heads cost ------------------------------------------------------------------------------


def removal_costs(
    spec: ModelSpec,
    weights: Sequence[HeadCost],
    tokens: NDArray[Any],
    sources: NDArray[Any] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Parameters (H, 3) and FLOPs (H, 3) that `prune` removes: with each head, with its key group
    once all heads of that are off, and with its layer once all heads of that are off.

    weights: by layer. FLOPs are those of a mean text of so many tokens (E,): those of a position
    times the positions of queries or keys, and 2 for each pair and each number of a query and a
    value; pairs are Tq Tk, or the cells of windows. sources (E,): tokens of the other text that a
    decoder attends to. Levels without a stride count as unshortened. The third is below 0 where a
    layer without heads keeps the weights of one.
    """
    own = np.asarray(tokens, float)
    other = own if sources is None else np.asarray(sources, float)

    def positions(index: int) -> FloatArray:
        level = spec.levels[index]
        counted = other if spec.two_texts and level.sequence == "source" else own
        return np.asarray(np.ceil(counted / (level.stride or 1)))

    parameters, flops = list[list[float]](), list[list[float]]()
    for layer, cost in zip(spec.layers, weights, strict=True):
        queries, keys = positions(layer.level), positions(layer.key_level)
        around = cost.queries[1] * queries.mean(), cost.keys[1] * keys.mean()
        pairs = queries * keys  # or windows of the finer side's positions each
        if layer.window is not None:
            pairs = np.minimum(queries, keys) * layer.window
        inside = 2 * cost.width * pairs.mean()
        sizes = cost.queries[0], cost.keys[0]
        stays = -int(cost.keeps_one)
        parameters += [[*sizes, stays * sum(sizes)]] * len(layer.heads)
        flops += [[around[0] + inside, around[1], stays * sum(around)]] * len(layer.heads)
    return np.array(parameters, float).reshape(-1, 3), np.array(flops, float).reshape(-1, 3)


def savings(
    costs: NDArray[Any], spec: ModelSpec, order: Sequence[HeadId], off: Collection[HeadId] = ()
) -> FloatArray:
    """(len(order) + 1,): what the first heads of an order save of costs (H, 3), together with the
    heads that are off before."""
    steps = {head: step for step, head in enumerate(order, 1)} | dict.fromkeys(off, 0)
    totals = np.zeros(len(order) + 2)  # the last one: of heads that stay on
    at = 0
    for layer in spec.layers:
        last = {head: steps.get(HeadId(layer.index, head), len(order) + 1) for head in layer.heads}
        for heads in layer.groups.values():
            for head in heads:
                totals[last[head]] += costs[at, 0]
                at += 1
            totals[max(last[head] for head in heads)] += costs[at - 1, 1]
        if last:
            totals[max(last.values())] += costs[at - 1, 2]
    return np.cumsum(totals[:-1])


def saved_share(study: Study, curve: PruningCurve, key: str) -> FloatArray:
    """(len(curve.order) + 1,): the share of the parameters or FLOPs of all heads that the first
    heads of a curve's order save. Raises HgvizError as Study.costs."""
    costs = study.costs(key)
    total = savings(costs, study.spec, study.heads)[-1]
    shares: FloatArray = savings(costs, study.spec, curve.order, study.off) / max(total, 1e-30)
    shares -= shares[0]
    return shares


def bits_per_byte(study: Study, curve: PruningCurve) -> FloatArray | None:
    """(points,): the loss of a language model along a curve in bits per byte.

    None for other models, and where the number of bytes is not known.
    """
    if study.asked == "classes" or study.sizes is None or not study.sizes.sum():
        return None
    tokens_per_byte = study.places_of(curve.rows).sum() / study.sizes[curve.rows].sum()
    return curve.loss.astype(float) * float(tokens_per_byte) / math.log(2)


# --- orders ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Limits:
    """Which heads stay on: at least `least` in every layer, and those that are protected.

    A layer that has fewer loses none; off: heads that are off before anything is ordered.
    """

    heads: Order
    least: int = 0
    protected: Collection[HeadId] = frozenset()
    off: HeadSet = field(default_factory=frozenset)

    def allow(self, head: HeadId, gone: Collection[HeadId]) -> bool:
        """Whether a head may be switched off after those that are gone."""
        if head in gone or head in self.off or head in self.protected:
            return False
        left = sum(
            other.layer == head.layer and other not in gone and other not in self.off
            for other in self.heads
        )
        return left > self.least


def order_by_need(need: NDArray[Any], limits: Limits) -> Order:
    """Heads from the least needed on; equal ones in order of computation.

    need (H,), high where a head is needed; NaN was not measured and never goes.
    """
    gone: dict[HeadId, None] = {}
    for at in np.argsort(np.asarray(need, float), kind="stable"):
        head = limits.heads[at]
        if not np.isnan(need[at]) and limits.allow(head, gone):
            gone[head] = None
    return tuple(gone)


def random_order(limits: Limits, seed: int) -> Order:
    """A random order under the same limits, the same for the same seed."""
    random = np.random.default_rng(seed)
    return order_by_need(random.permutation(len(limits.heads)), limits)


def split_examples(count: int, seed: int = 0, share: float = 0.5) -> tuple[Integers, Integers]:
    """Numbers of the examples that make an order, and of the others, which measure its curve; both
    sorted, by the seed alone.

    A curve measured on the examples that made its order looks better than it is.
    """
    drawn = np.random.default_rng(seed).permutation(count).astype(np.int64)
    first = min(max(round(count * share), 1), count - 1) if count > 1 else count
    return np.sort(drawn[:first]), np.sort(drawn[first:])


# --- pruning curves -------------------------------------------------------------------------------


def curve_points(heads: int, most: int = POINTS) -> Integers:
    """The numbers of heads off at which a curve is measured, from 0 to all, at most `most` of them
    and as evenly as whole numbers allow."""
    count = max(min(heads + 1, most), min(heads + 1, 2))
    return np.unique(np.linspace(0, heads, count).round()).astype(np.int64)


def pruning_curve(
    study: Study,
    order: Sequence[HeadId],
    removed: Sequence[int],
    losses: NDArray[Any],
    predictions: NDArray[Any],
    rows: NDArray[Any],
    method: str,
    seed: int = 0,
) -> PruningCurve:
    """The curve of what was answered, or as much of it as was measured so far.

    losses and predictions (points, P'): at the places of examples rows (n,), with removed (points,)
    heads off; the first point is the baseline. Values are shares of right answers with Agresti and
    Coull's interval, their paired changes have Bonett and Price's.
    """
    right = predictions == study.wanted[study.places_of(rows)]
    counts, total = right.sum(1), right.shape[1]
    lost, won = (right[:1] & ~right).sum(1), (~right[:1] & right).sum(1)
    ends = (*agresti_coull(counts, total), *paired_difference(lost, won, total))
    low, high, change_low, change_high = (end.astype(np.float32) for end in ends)
    change_low[:1] = change_high[:1] = 0.0  # the baseline has not changed
    return PruningCurve(
        method, tuple(order), np.array(removed, np.int64), (counts / total).astype(np.float32),
        low, high, losses.mean(1, dtype=float).astype(np.float32),
        ((won - lost) / total).astype(np.float32), change_low, change_high,
        np.asarray(rows, np.int64), seed, SHARE_OF[study.asked],
    )  # fmt: skip


def removable_heads(curve: PruningCurve, loss: float = ALLOWED_LOSS) -> tuple[int, int]:
    """k* and its lower bound: the most heads off at which, and at every smaller number that was
    measured, the score falls by at most `loss`; the bound asks that of the lower end of the
    change's interval."""
    numbers = []
    for change in (curve.change, curve.change_low):
        # float32 holds a hundredth only nearly
        fails = np.flatnonzero(change.astype(float) < -loss - 1e-6)
        last = int(fails[0]) if len(fails) else len(change)
        numbers.append(int(curve.removed[last - 1]) if last else 0)
    return numbers[0], numbers[1]


def mean_along(off: NDArray[Any], values: NDArray[Any]) -> float:
    """The area under values (points,) over its width, by trapezoids; of one point that value.

    off (points,): how many heads, or which share of them, are off at each point.
    """
    x, y = np.asarray(off, float), np.asarray(values, float)
    width = float(x[-1] - x[0])
    return float(np.trapezoid(y, x)) / width if width else float(y[0])


def nearest_point(off: NDArray[Any], heads: int, share: float) -> int | None:
    """The number of the point at which the share of heads that are off is nearest to `share`, of
    two equally near the one with fewer heads off.

    off (points,): how many of `heads` are off. None where the curve ends more than half a step
    before it: nothing is read between two points or beyond the last.
    """
    shares = np.asarray(off, float) / heads
    at = int(np.argmin(np.abs(shares - share) - ROUNDING * (shares < share)))
    step = float(np.diff(shares).max()) if len(shares) > 1 else 0.0
    return at if abs(shares[at] - share) <= step / 2 + ROUNDING else None


@dataclass(frozen=True, slots=True, eq=False)
class RandomBand:
    """Quantiles of the scores of random orders: low, middle, high (points,) are 10, 50 and 90 %.

    orders: how many there are.
    """

    removed: Integers
    low: FloatArray
    middle: FloatArray
    high: FloatArray
    orders: int


def random_curves_beside(study: Study, curve: PruningCurve) -> tuple[PruningCurve, ...]:
    """The random curves of a study on the same examples as a curve, with as many heads."""
    return tuple(
        other
        for other in study.curves
        if other.method == "random"
        and len(other.order) == len(curve.order)
        and np.array_equal(other.rows, curve.rows)
    )


def random_band(curves: Sequence[PruningCurve]) -> RandomBand:
    """The band of random curves, at the numbers of heads that all of them have."""
    if not curves:
        nothing = np.zeros(0)
        return RandomBand(np.zeros(0, np.int64), nothing, nothing, nothing, 0)
    common, values = _common_points(curves)
    low, middle, high = np.quantile(values, [BAND[0], 0.5, BAND[1]], axis=0)
    return RandomBand(common, low, middle, high, len(curves))


def random_chance(curve: PruningCurve, curves: Sequence[PruningCurve]) -> float:
    """How often a random curve has at least the area of this one: (1 + such curves) / (1 + all).

    The p of a permutation test; 1 / 21 is the least that 20 orders can show. All areas are between
    the points that all have: trapezoids are smaller between fewer.
    """
    common, values = _common_points([curve, *curves])
    areas = [float(np.trapezoid(row, common)) for row in values]
    return (1 + sum(area >= areas[0] - ROUNDING for area in areas[1:])) / (1 + len(curves))


def _common_points(curves: Sequence[PruningCurve]) -> tuple[Integers, FloatArray]:
    """How many heads are off where all curves have a value (points,); these (curves, points)."""
    common = reduce(np.intersect1d, (curve.removed for curve in curves))
    rows = [curve.values[np.searchsorted(curve.removed, common)] for curve in curves]
    return common, np.array(rows, float)


# --- heads off beside the baseline ----------------------------------------------------------------


By = Literal["all", "label", "length"]
Which = Literal["lost", "won", "all"]


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """Some of all places (places,) under a name."""

    by: By
    name: str
    places: Places


def slices_of(examples: Examples) -> tuple[Slice, ...]:
    """All places, then one slice for each class and for each quarter of the lengths of texts, where
    there are two or more; texts of one length are never in two quarters."""
    labels, quarters = list[Slice](), list[Slice]()
    if examples.asked == "classes":
        for number in np.unique(examples.wanted).tolist():
            name = examples.labels[number] if number < len(examples.labels) else str(number)
            labels.append(Slice("label", name, examples.wanted == number))
    if examples.asked in EACH:
        lengths, inner = examples.lengths, np.linspace(0, 1, LENGTH_PARTS + 1)[1:-1]
        edges = np.unique(np.quantile(lengths, inner, method="lower"))
        quarter_of = np.searchsorted(edges, lengths, side="left")
        for quarter in np.unique(quarter_of):
            rows = quarter_of == quarter
            low, high = int(lengths[rows].min()), int(lengths[rows].max())
            name = f"{low:,} to {high:,} tokens" if low < high else f"{low:,} tokens"
            quarters.append(Slice("length", name, np.repeat(rows, np.diff(examples.places))))
    all_places = Slice("all", "", np.ones(len(examples.wanted), bool))
    return all_places, *(part for parts in (labels, quarters) if len(parts) > 1 for part in parts)


@dataclass(frozen=True, slots=True)
class SliceScore:
    """What heads off do to a slice, at the `n` of its `total` places that were answered.

    before, now: shares right of the baseline and with heads off, with Agresti and Coull's interval.
    lost, won: places that became wrong and right; change: of the share, with Bonett and Price's
    interval. loss: mean nats of both, and loss_change, each with its interval over examples
    (Cochran 1977, 2.11), infinite for one example.
    """

    by: By
    name: str
    n: int
    total: int
    before: Ends
    now: Ends
    lost: int
    won: int
    change: Ends
    loss: tuple[Ends, Ends]
    loss_change: Ends

    @property
    def p(self) -> float:
        """McNemar's exact p that the change of the share is chance."""
        return float(mcnemar(self.lost, self.won))


def score_slices(
    examples: Examples, before: Answers, now: Answers, slices: Sequence[Slice]
) -> tuple[SliceScore, ...]:
    """The scores of slices, at the places that were answered both by the baseline and with heads
    off."""
    both = (before.predictions != NO_PREDICTION) & (now.predictions != NO_PREDICTION)
    example = np.searchsorted(examples.places, np.arange(len(both)), side="right")
    right = [side.predictions == examples.wanted for side in (before, now)]
    scores = []
    for part in slices:
        places = np.flatnonzero(both & part.places)
        n, (was, is_now) = len(places), (side[places] for side in right)
        lost, won = int((was & ~is_now).sum()), int((is_now & ~was).sum())
        low, high = map(float, paired_difference(lost, won, n))
        was_loss = now_loss = loss_change = (0.0, -math.inf, math.inf)
        if n:
            losses = [side.loss[places].astype(float) for side in (before, now)]
            was_loss, now_loss, loss_change = (
                _mean_over(example[places], each) for each in (*losses, losses[1] - losses[0])
            )
        scores.append(
            SliceScore(
                part.by, part.name, n, int(part.places.sum()), _share(was), _share(is_now),
                lost, won, ((won - lost) / max(n, 1), low, high), (was_loss, now_loss),
                loss_change,
            )
        )  # fmt: skip
    return tuple(scores)


def _mean_over(example: Integers, values: NDArray[Any]) -> Ends:
    """The mean of values at places, with its interval over the examples that they are of."""
    sizes, sums = np.bincount(example), np.bincount(example, values)
    _, low, high = map(float, ratio_interval(sums[sizes > 0], sizes[sizes > 0]))
    return float(values.mean()), low, high


def _share(right: Places) -> Ends:
    """The share that is right, with Agresti and Coull's interval."""
    low, high = map(float, agresti_coull(int(right.sum()), len(right)))
    return int(right.sum()) / max(len(right), 1), low, high


@dataclass(frozen=True, slots=True, eq=False)
class MaskTrial:
    """A set of heads that are off, and how the model answers then beside the baseline, as far as it
    is known.

    scores: the share of right answers after each block of examples; losses: nats per token of a
    language model, likewise. slices: of all places in the
    first, then as slices_of; () before the first block. before, now: answers of the baseline and
    with heads off, None until every place was answered. stopped: whether nobody goes on with it.
    head_costs: by layer, the weights of one head; None where they do not go by heads. seconds: that
    one pass over all places takes, extrapolated from those answered; 0 before the first.
    """

    off: HeadSet
    examples: Examples
    scores: tuple[MetricEstimate, ...] = ()
    losses: tuple[MetricEstimate, ...] = ()
    slices: tuple[SliceScore, ...] = ()
    before: Answers | None = None
    now: Answers | None = None
    stopped: bool = False
    head_costs: tuple[HeadCost, ...] | None = None
    seconds: float = 0.0

    @property
    def done(self) -> bool:
        """Whether every place was answered."""
        return self.now is not None

    @property
    def headline(self) -> tuple[MetricEstimate, ...]:
        """What a model of its kind is judged by, as it grew: the loss of a language model, else the
        share of right answers."""
        return self.losses or self.scores

    @property
    def change(self) -> Ends:
        """How heads off change it, with its interval."""
        return self.slices[0].loss_change if self.losses else self.slices[0].change

    @property
    def seen(self) -> int:
        """How many places were answered."""
        return self.scores[-1].seen if self.scores else 0

    @property
    def total(self) -> int:
        """How many places there are."""
        return int(self.examples.places[-1])

    def changed(self, which: Which = "all") -> Integers:
        """The numbers of the places whose answer changed: those that became wrong ("lost") or right
        ("won"), or all, also where one wrong answer became another."""
        if self.before is None or self.now is None:
            return np.zeros(0, np.int64)
        was, is_now = (side.predictions == self.examples.wanted for side in (self.before, self.now))
        changed = {
            "lost": was & ~is_now,
            "won": is_now & ~was,
            "all": self.before.predictions != self.now.predictions,
        }
        return np.flatnonzero(changed[which])


def try_mask(
    trial: MaskTrial, blocks: Iterable[Sequence[Batch]], baseline: Answer, without: Answer
) -> MaskTrial:
    """A trial with every place answered by the baseline and without the heads that are off; the
    progress carries it as far as it is after each block."""
    examples, slices = trial.examples, slices_of(trial.examples)
    before, now = Answers.unasked(examples), Answers.unasked(examples)
    taken = 0.0
    for block in blocks:
        for batch in block:
            start = time.perf_counter()
            before.put(examples, batch, baseline(batch))  # at once, if an earlier trial asked it
            middle = time.perf_counter()
            now.put(examples, batch, without(batch))
            taken += max(middle - start, time.perf_counter() - middle)
        parts = score_slices(examples, before, now, slices)
        total, metric = parts[0], SHARE_OF[examples.asked]
        score = MetricEstimate(metric, *total.now, total.n, total.total, trial.off)
        seconds = taken * total.total / total.n
        trial = replace(trial, scores=(*trial.scores, score), slices=parts, seconds=seconds)
        if examples.asked == "next":
            loss = MetricEstimate("loss", *total.loss[1], total.n, total.total, trial.off)
            trial = replace(trial, losses=(*trial.losses, loss))
        progress(score.seen, score.total, "", trial)
    return replace(trial, before=before, now=now)
