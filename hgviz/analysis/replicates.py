"""What was measured several times, once for each seed, and whether more than chance tells two
apart. numpy only.

An interval over seeds says where the mean of many more seeds would lie; it is Student's, and of one
seed there is none. A test over texts says whether the models at hand differ on more texts like
these: what models of several seeds have in common on a text counts once, since its sign is drawn
once for all of them. Neither says what the other does, so two are told apart where both do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis import scores

LEVEL = 0.05  # what an adjusted p must be below
EXACT = 16  # numbers other than 0 up to which all their signs are tried
DRAWS = 20_000  # else, and of random orders
ROUNDING = 1e-9

Many = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """values (n,) that were measured once for each seed, their mean, and its interval of 95 %;
    low and high are NaN for fewer than two."""

    values: Many
    mean: float
    low: float
    high: float

    @property
    def sure(self) -> bool:
        """Whether its interval leaves out 0."""
        return self.low > 0 or self.high < 0

    def facts(self) -> dict[str, Any]:
        """As JSON; what is not known is null."""
        ends = {"mean": self.mean, "low": self.low, "high": self.high}
        return {"values": self.values.tolist(), **{k: known(v) for k, v in ends.items()}}


def known(value: float) -> float | None:
    """The same, None for what is no number."""
    return value if math.isfinite(value) else None


def spread(values: Sequence[float] | NDArray[Any]) -> Spread:
    """The mean of values (n,) with Student's interval; what is no number is left out."""
    found = np.asarray(values, float)
    found = found[np.isfinite(found)]
    count, nothing = len(found), float("nan")
    mean = float(found.mean()) if count else nothing
    if count < 2:
        return Spread(found, mean, nothing, nothing)
    half = scores.student95(count - 1) * float(found.std(ddof=1)) / math.sqrt(count)
    return Spread(found, mean, mean - half, mean + half)


# --- tests ----------------------------------------------------------------------------------------


def student(values: Many) -> float:
    """The two-sided p of Student's test that the mean of values (n,) is 0; NaN for fewer than
    two, 0 for several alike that are not 0."""
    if len(values) < 2:
        return float("nan")
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    mean = abs(float(values.mean()))
    if error <= ROUNDING * mean or not mean:
        return 0.0 if mean else 1.0
    return scores.student_beyond(mean / error, len(values) - 1)


def signs_of_counts(apart: NDArray[np.int64]) -> float:
    """The two-sided p of a sum of whole numbers (texts,) when each could as well have the other
    sign: how many more seeds are right on a text with one model than with another.

    Exact for any number of texts: the sum of a random sign times m has the characteristic function
    cos(m w), and that of all is their product. One seed gives McNemar's exact test.
    """
    sizes = np.abs(np.asarray(apart, np.int64))
    sizes = sizes[sizes > 0]
    total = int(sizes.sum())
    if not total:
        return 1.0
    length = 2 * total + 1
    angles = 2 * np.pi * np.arange(total + 1) / length  # the rest of them mirror these
    product = np.ones(total + 1)
    for size, count in zip(*np.unique(sizes, return_counts=True), strict=True):
        product *= np.cos(size * angles) ** int(count)
    chances = np.fft.irfft(product, length)  # at 0, 1 ... total, and below 0 at the end
    seen = abs(int(np.sum(apart)))
    inside = chances[:seen].sum() + chances[1:seen][::-1].sum() if seen else 0.0
    # what rounding hides is no less likely than the one case that is as extreme as can be
    return float(min(max(1.0 - inside, 2.0 ** (1.0 - min(len(sizes), 1000))), 1.0))


def signs(values: NDArray[Any]) -> float:
    """The two-sided p of a sum of numbers (n,) when each could as well have the other sign: exact
    for up to EXACT that are not 0, else of DRAWS draws and the one at hand; NaN for none."""
    some = np.asarray(values, float)
    if not len(some):
        return float("nan")
    some = some[np.abs(some) > ROUNDING]
    count, seen = len(some), abs(float(some.sum()))
    if not count:
        return 1.0
    if count <= EXACT:
        bits = np.arange(1 << (count - 1))[:, None] >> np.arange(count) & 1  # the rest mirror these
        return float((np.abs((1 - 2 * bits) @ some) >= seen - ROUNDING).mean())
    drawn = np.random.default_rng(1).choice([-1.0, 1.0], (DRAWS, count))
    return float(1 + (np.abs(drawn @ some) >= seen - ROUNDING).sum()) / (DRAWS + 1)


def against_random(mine: Sequence[float], orders: Sequence[NDArray[Any]]) -> float:
    """How likely random orders do as well in the mean over models: one-sided p of mine (models,)
    against what the random orders of each model score, orders (models) of (orders,) each.

    One order of each model is drawn: all ways where there are at most DRAWS, else so many. The one
    at hand counts as one more, so that of one model with 20 orders the least is 1 / 21.
    """
    if not len(mine):
        return float("nan")
    total = float(np.sum(mine)) - ROUNDING * len(mine)
    if math.prod(len(one) for one in orders) <= DRAWS:
        sums = np.zeros(1)
        for one in orders:
            sums = np.add.outer(sums, np.asarray(one, float)).ravel()
    else:
        random = np.random.default_rng(1)
        sums = np.sum([random.choice(np.asarray(one, float), DRAWS) for one in orders], axis=0)
    return float(1 + (sums >= total).sum()) / (len(sums) + 1)


def told_apart(difference: Spread, adjusted: float) -> bool:
    """Whether a difference is more than chance: by its interval over seeds, and by its p, adjusted
    for how many were asked. Never of one seed."""
    return bool(difference.sure and adjusted < LEVEL)


def ranks(values: NDArray[Any]) -> Many:
    """The rank of each method on each model: values (models, methods), the highest is 1, equal ones
    share their mean rank. Models that lack a method are left out."""
    whole = np.asarray(values, float)
    whole = whole[np.isfinite(whole).all(1)]
    # rounded, so that what one share of answers gives along two ways counts as equal
    whole = np.round(whole, 9)
    above = (whole[:, None, :] > whole[:, :, None]).sum(2)
    equal = (whole[:, None, :] == whole[:, :, None]).sum(2)
    found: Many = above + (equal + 1) / 2.0
    return found


# --- along a curve --------------------------------------------------------------------------------


def nearest(off: NDArray[Any], heads: int, share: float) -> int | None:
    """The point of a curve at which the share of all heads that are off is nearest to one asked
    for, of two as near the one with fewer; off (points,): how many are. None where the curve ends
    more than half a step before it: nothing is read between two points, or beyond them."""
    shares = np.asarray(off, float) / heads
    at = int(np.argmin(np.abs(shares - share) - ROUNDING * (shares < share)))
    step = float(np.diff(shares).max()) if len(shares) > 1 else 0.0
    return at if abs(shares[at] - share) <= step / 2 + ROUNDING else None


def mean_along(off: NDArray[Any], values: NDArray[Any]) -> float:
    """The area under a curve over its width, by trapezoids: its mean score; of one point that."""
    x, y = np.asarray(off, float), np.asarray(values, float)
    width = float(x[-1] - x[0])
    return float(np.trapezoid(y, x)) / width if width else float(y[0])


__all__ = [
    "Spread", "against_random", "known", "mean_along", "nearest", "ranks", "signs",
    "signs_of_counts", "spread", "student", "told_apart",
]  # fmt: skip
