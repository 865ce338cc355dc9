"""What switching off ever more heads costs, beside what random orders cost. numpy only.

Random pruning is a strong baseline: a curve says little without the band of random ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis import orders
from hgviz.analysis.paired import SHARES
from hgviz.analysis.statistics import agresti_coull, paired_difference
from hgviz.core import HeadId, Integers
from hgviz.study import PruningCurve, Study

RANDOM = 20  # orders, at least, before a band means anything
POINT = 0.01  # what k* allows to be lost, a share of right answers
BAND = (0.1, 0.9)
MOST = 49  # points along a curve, unless more are asked for
ROUNDING = 1e-9

Many = NDArray[np.float64]


def points(heads: int, most: int = MOST) -> Integers:
    """At which numbers of heads off to measure, from 0 to all of them, evenly and at most so many.

    Where not all fit, the steps are as equal as whole numbers allow.
    """
    count = max(min(heads + 1, most), min(heads + 1, 2))
    return np.unique(np.linspace(0, heads, count).round()).astype(np.int64)


def curve(
    study: Study,
    order: Sequence[HeadId],
    removed: Sequence[int],
    losses: NDArray[Any],
    given: NDArray[Any],
    rows: NDArray[Any],
    method: str,
    seed: int = 0,
) -> PruningCurve:
    """The curve of what was answered, or as much of it as was measured so far.

    losses and given (points, P'): nats and what was given at the places of examples rows (n,),
    with removed (points,) heads off; the first point is the whole model. Values are shares of right
    answers with Agresti and Coull's interval, their paired changes have Bonett and Price's.
    """
    right = given == study.wanted[study.places_of(rows)]
    counts, total = right.sum(1), right.shape[1]
    lost, won = (right[:1] & ~right).sum(1), (~right[:1] & right).sum(1)
    low, high = (end.astype(np.float32) for end in agresti_coull(counts, total))
    change_low, change_high = (
        end.astype(np.float32) for end in paired_difference(lost, won, total)
    )
    change_low[:1] = change_high[:1] = 0.0  # nothing is off at the first point
    return PruningCurve(
        method, tuple(order), np.array(removed, np.int64), (counts / total).astype(np.float32),
        low, high, losses.mean(1, dtype=float).astype(np.float32),
        ((won - lost) / total).astype(np.float32), change_low, change_high,
        np.asarray(rows, np.int64), seed, SHARES[study.asked],
    )  # fmt: skip


def allowed(one: PruningCurve, loss: float = POINT) -> tuple[int, int]:
    """k* and its lower bound: the most heads off at which, and at every smaller number, the score
    falls by at most `loss`; the bound asks that of the lower end of the change's interval.

    "Every smaller number" is every one that was measured.
    """
    found = []
    for change in (one.change, one.change_low):
        # float32 holds a point only nearly
        fails = np.flatnonzero(change.astype(float) < -loss - 1e-6)
        last = int(fails[0]) if len(fails) else len(change)
        found.append(int(one.removed[last - 1]) if last else 0)
    return found[0], found[1]


def area(one: PruningCurve, losses: bool = False) -> float:
    """The mean score along a curve, by trapezoids: 1 where everything stays right to the end.

    losses: the mean loss instead, in nats. A curve of one point is that point.
    """
    return mean_along(one.removed, (one.loss if losses else one.values).astype(float))


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
class Band:
    """What random orders score: low, middle, high (points,) are 10, 50 and 90 % of them.

    orders: how many there are; under RANDOM of them the band is still to grow.
    """

    removed: Integers
    low: Many
    middle: Many
    high: Many
    orders: int


def beside(study: Study, one: PruningCurve) -> tuple[PruningCurve, ...]:
    """The random curves of a study that a curve is compared with: same rows, as many heads."""
    return tuple(
        other
        for other in study.curves
        if other.method == "random"
        and len(other.order) == len(one.order)
        and np.array_equal(other.rows, one.rows)
    )


def band(randoms: Sequence[PruningCurve], losses: bool = False) -> Band:
    """The band of random curves, at the numbers of heads that all of them have."""
    if not randoms:
        nothing = np.zeros(0)
        return Band(np.zeros(0, np.int64), nothing, nothing, nothing, 0)
    common = randoms[0].removed
    for one in randoms[1:]:
        common = np.intersect1d(common, one.removed)
    values = np.array([
        (one.loss if losses else one.values)[np.searchsorted(one.removed, common)]
        for one in randoms
    ], float)  # fmt: skip
    low, middle, high = np.quantile(values, [BAND[0], 0.5, BAND[1]], axis=0)
    return Band(common.astype(np.int64), low, middle, high, len(randoms))


def outside(one: PruningCurve, randoms: Band) -> NDArray[np.int8]:
    """(points,) of the band: 1 where a curve is above it, -1 below, 0 inside or not measured."""
    found = np.zeros(len(randoms.removed), np.int8)
    both, mine, its = np.intersect1d(one.removed, randoms.removed, return_indices=True)
    values = one.values[mine].astype(float)
    found[its] = np.where(values > randoms.high[its] + ROUNDING, 1, found[its])
    found[its] = np.where(values < randoms.low[its] - ROUNDING, -1, found[its])
    return found


def lead(one: PruningCurve, randoms: Band) -> float:
    """What a curve scores above the middle of random orders, in the mean over heads off.

    By trapezoids between the points that both have; negative for a curve that is below.
    """
    _, mine, its = np.intersect1d(one.removed, randoms.removed, return_indices=True)
    return mean_along(one.removed[mine], one.values[mine].astype(float) - randoms.middle[its])


def chance(one: PruningCurve, randoms: Sequence[PruningCurve]) -> float:
    """How often a random order has at least the area of this one: (1 + such orders) / (1 + all).

    The p of a permutation test; 1 / 21 is the least that 20 orders can show. All areas are between
    the points that all have: trapezoids are smaller between fewer.
    """
    common = one.removed
    for other in randoms:
        common = np.intersect1d(common, other.removed)

    def between(some: PruningCurve) -> float:
        values = some.values[np.searchsorted(some.removed, common)]
        return float(np.trapezoid(values.astype(float), common))

    mine = between(one)
    return (1 + sum(between(other) >= mine - ROUNDING for other in randoms)) / (1 + len(randoms))


def saved(study: Study, one: PruningCurve, key: str) -> Many:
    """(len(one.order) + 1,): the share of what all heads can save, parameters or FLOPs, that so
    many heads of the order save. Errors: HgvizError as Study.costs."""
    costs = study.costs(key)
    total = orders.saved(costs, study.spec, study.heads)[-1]
    found: Many = orders.saved(costs, study.spec, one.order, study.off) / max(total, 1e-30)
    found -= found[0]
    return found
