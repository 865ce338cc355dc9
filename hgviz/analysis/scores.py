"""How good a model is, with intervals: classes right, and bits. numpy only.

Intervals are of 95 %: Wilson's for a share (1927), normal for a mean over windows. McNemar's test
is exact, Bonett and Price's interval (2012) is for the difference of two shares on the same texts.

How often they hold, summed exactly for N from 32 to 2,000 (tests/analysis/test_scores.py):
Wilson's for shares from 50 to 99 % 95.0 to 95.3 % of the time in the mean, but down to 89.4 % where
half a wrong answer is expected, and under 93 % in places up to N = 400; Agresti and Coull's, which
has the same middle and is wider, at least 93.0 %, and at most 96.7 % where both sides have 20.
Bonett and Price's, with Student's quantile, for 0.3 to 30 % that disagree at least 93.1 %, and at
most 96.4 % where 25 disagree; with the normal quantile 92.6 % where all are on one side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Z95 = 1.959963984540054  # the normal quantile of 97.5 %
_ORDERED = 3  # numbers whose order says anything
_SERIES = 16  # degrees of freedom from which a series of Student's quantile is close enough
Numbers = NDArray[np.int64]
Many = NDArray[np.float64]


# --- shares ---------------------------------------------------------------------------------------


def wilson(right: int, total: int, z: float = Z95) -> tuple[float, float]:
    """Wilson's interval of right / total; (0, 1) where nothing was seen."""
    if total == 0:
        return 0.0, 1.0
    share, extra = right / total, z * z / total
    middle = (share + extra / 2) / (1 + extra)
    half = z / (1 + extra) * math.sqrt(share * (1 - share) / total + extra / (4 * total))
    low, high = middle - half, middle + half
    # what rounding leaves of the two ends that are exact
    return (low if right else 0.0), (high if right < total else 1.0)


def agresti_coull(right: int, total: int, z: float = Z95) -> tuple[float, float]:
    """Agresti and Coull's interval (1998): Wilson's middle, and never narrower; as statsmodels."""
    if total == 0:
        return 0.0, 1.0
    n = total + z * z
    share = (right + z * z / 2) / n
    half = z * math.sqrt(share * (1 - share) / n)
    return max(share - half, 0.0), min(share + half, 1.0)


def mcnemar(lost: int, won: int) -> float:
    """The exact two-sided p of so many texts lost and won: 2 P(X <= min), X ~ B(b + c, 1/2)."""
    total, least = lost + won, min(lost, won)
    # from the likeliest outcome down, each term by the one before: no whole binomials
    below = np.arange(least, 0, -1)
    terms = 1.0 + float(np.cumprod(below / (total - below + 1.0)).sum())
    ways = math.lgamma(total + 1) - math.lgamma(least + 1) - math.lgamma(total - least + 1)
    return min(1.0, 2 * math.exp(ways - total * math.log(2)) * terms)


def paired_difference(lost: int, won: int, total: int) -> tuple[float, float]:
    """Bonett and Price's interval of a share's change, (won - lost) / total; never of width 0.

    With Student's quantile of so many texts for the normal one, with which it holds the change too
    seldom where all changes are on one side.
    """
    b, c, n = lost + 1, won + 1, total + 2
    middle = (c - b) / n
    half = student95(total) * math.sqrt(max((b + c) - (b - c) ** 2 / n, 0.0)) / n
    return max(middle - half, -1.0), min(middle + half, 1.0)


def student95(degrees: int) -> float:
    """Student's quantile of 97.5 %: to 1e-5 from 16 degrees of freedom on (Abramowitz and Stegun
    26.7.5), below that exact, 12.7062 for 1.
    """
    z, n = Z95, max(degrees, 1)
    if n < _SERIES:
        return _student95(n)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / n + second / (n * n) + third / (n * n * n)


@cache
def _student95(degrees: int) -> float:
    """The t beyond which 5 % lie, by halving."""
    low, high = 0.0, 64.0
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if student_beyond(middle, degrees) > 0.05 else (low, middle)
    return low


def student_beyond(t: float, degrees: int) -> float:
    """How likely Student's t is at least so far from 0, on either side (Abramowitz and Stegun
    26.7.3 and 26.7.4); degrees: whole, from 1.
    """
    angle = math.atan(abs(t) / math.sqrt(degrees))
    cosine, odd = math.cos(angle), degrees % 2
    term = cosine if odd else 1.0
    total = term if degrees > 1 else 0.0
    for power in range(3 if odd else 2, degrees - 1, 2):
        term *= (power - 1) / power * cosine * cosine
        total += term
    within = math.sin(angle) * total
    return max(1.0 - ((angle + within) * 2 / math.pi if odd else within), 0.0)


def benjamini_hochberg(p: NDArray[Any]) -> NDArray[np.float64]:
    """p (n,) adjusted for so many tests (1995): what is below q holds at a false discovery rate q.

    NaN stays NaN and counts as no test.
    """
    found = np.full(np.shape(p), np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(np.asarray(p)[tested], kind="stable")]
    steps = np.asarray(p, float)[order] * len(order) / np.arange(1, len(order) + 1)
    # none may be below that of a smaller p
    found[order] = np.minimum(np.minimum.accumulate(steps[::-1])[::-1], 1.0)
    return found


# --- orders ---------------------------------------------------------------------------------------


def spearman(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Spearman's rank correlation of two rows of numbers, -1 to 1; equal ones share their mean rank
    (Spearman 1904). NaN for fewer than three, and where one row has a single value."""
    if len(first) < _ORDERED:
        return float("nan")
    ranks = []
    for values in (first, second):
        _, place, count = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
        ranks.append((np.cumsum(count) - (count - 1) / 2)[place])
    with np.errstate(invalid="ignore"):
        return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


# --- classes --------------------------------------------------------------------------------------


def confusion(wanted: Numbers, given: Numbers, classes: int) -> Numbers:
    """(classes, classes): how many texts of the row's class were given the column's."""
    found: Numbers = np.bincount(wanted * classes + given, minlength=classes * classes)
    return found.reshape(classes, classes).astype(np.int64)


def f1(table: Numbers) -> float:
    """F1 of a confusion table: of class 1 where there are two, else the mean over classes.

    A class that is neither wanted nor given counts as 0.
    """
    right = np.diag(table).astype(float)
    both = (table.sum(0) + table.sum(1)).astype(float)
    each = np.divide(2 * right, both, out=np.zeros_like(right), where=both > 0)
    return float(each[1] if len(table) == 2 else each.mean())


def matthews(table: Numbers) -> float:
    """Matthews correlation of a confusion table (Gorodkin 2004); 0 where one side has one class."""
    counts = table.astype(float)
    total, right = counts.sum(), np.trace(counts)
    wanted, given = counts.sum(1), counts.sum(0)
    spread = (total**2 - given @ given) * (total**2 - wanted @ wanted)
    return float((right * total - wanted @ given) / math.sqrt(spread)) if spread > 0 else 0.0


def log_softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    """ln p over the last axis, in float64."""
    wide = np.asarray(logits, np.float64)
    wide = wide - wide.max(-1, keepdims=True)
    found: NDArray[np.float64] = wide - np.log(np.exp(wide).sum(-1, keepdims=True))
    return found


def surprise(logits: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.float64]:
    """-ln p of what was wanted: logits (..., classes), wanted (...) -> (...)"""
    taken = np.take_along_axis(log_softmax(logits), np.asarray(wanted)[..., None], -1)
    found: NDArray[np.float64] = -taken[..., 0]
    return found


# --- bits -----------------------------------------------------------------------------------------


def bits_per_byte(nats: float, size: int) -> float:
    """Bits that each of so many bytes took."""
    return nats / math.log(2) / size


def perplexity(nats: float, tokens: int) -> float:
    """exp of the mean surprise of a token; infinite where it is beyond what a float holds."""
    mean = nats / tokens
    return math.exp(mean) if mean < 700 else math.inf


def ratio_interval(
    sums: Sequence[float], sizes: Sequence[float], z: float = Z95
) -> tuple[float, float]:
    """The interval of sum(sums) / sum(sizes) over windows drawn at random (Cochran 1977, 2.11).

    (-inf, inf) for one window, which says nothing about the others.
    """
    _, low, high = ratios(np.asarray(sums)[:, None], np.asarray(sizes)[:, None], z)
    return float(low[0]), float(high[0])


def ratios(sums: NDArray[Any], sizes: NDArray[Any], z: float = Z95) -> tuple[Many, Many, Many]:
    """sum(sums) / sum(sizes) over rows, both (rows, k), with its interval: (k,) each.

    A row whose sum is NaN was not measured and does not count. With sizes of 1 it is the mean with
    its normal interval.
    """
    seen = ~np.isnan(sums)
    x, n = np.where(seen, sums, 0.0), np.where(seen, sizes, 0.0)
    rows, total = seen.sum(0), n.sum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = x.sum(0) / total
        squares = ((x - np.where(seen, value, 0.0) * n) ** 2).sum(0)
        error = np.sqrt(squares / (rows - 1) * rows) / np.abs(total)
    half = np.where(rows > 1, z * error, math.inf)
    return value, value - half, value + half
