"""Intervals by drawing the rows again (Efron 1979), for scores that have no formula. numpy only.

Paired: what two models got on a row is drawn together. All of these scores are functions of sums
over rows, so a draw is a product of how often each row was drawn with the columns that are summed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis import scores

DRAWS = 1000
CELLS = 2_000_000  # counts of rows held at once

Many = NDArray[np.float64]
Change = tuple[float, float, float]  # what is found, and the ends of its interval of 95 %


def resampled(columns: NDArray[Any], draws: int = DRAWS, seed: int = 0) -> Many:
    """Sums (draws, k) of the rows of columns (n, k), n of them drawn with replacement each time.

    The same seed draws the same rows of any columns of as many rows.
    """
    rows, random = len(columns), np.random.default_rng(seed)
    found = np.empty((draws, columns.shape[1]))
    wide = np.asarray(columns, float)
    size = max(1, CELLS // max(rows, 1))
    for start in range(0, draws, size):
        some = min(size, draws - start)
        drawn = random.integers(rows, size=(some, rows)) + rows * np.arange(some)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=some * rows).reshape(some, rows)
        found[start : start + some] = counts.astype(float) @ wide
    return found


def change(
    columns: NDArray[Any],
    statistic: Callable[[Many], float],
    draws: int = DRAWS,
    seed: int = 0,
) -> Change:
    """A statistic of the sums (k,) of columns (n, k), and the middle 95 % of what draws give."""
    values = [statistic(sums) for sums in resampled(columns, draws, seed)]
    low, high = np.quantile(values, [0.025, 0.975])
    return statistic(np.asarray(columns, float).sum(0)), float(low), float(high)


def f1_change(wanted: Any, before: Any, now: Any, classes: int, seed: int = 0) -> Change:
    """What F1 (scores.f1) changed by, of classes wanted and given (n,)."""
    return _table_change(scores.f1, wanted, before, now, classes, seed)


def matthews_change(wanted: Any, before: Any, now: Any, classes: int, seed: int = 0) -> Change:
    """What Matthews correlation changed by, of classes wanted and given (n,)."""
    return _table_change(scores.matthews, wanted, before, now, classes, seed)


def pearson_change(wanted: Any, before: Any, now: Any, seed: int = 0) -> Change:
    """What the correlation with wanted changed by, all (n,); 0 where one side does not vary."""
    sides = [np.asarray(side, float) - np.mean(side) for side in (wanted, before, now)]
    y, a, b = sides
    columns = np.stack([np.ones(len(y)), y, y * y, a, a * a, a * y, b, b * b, b * y], 1)
    return change(columns, lambda s: _pearson(s, 6) - _pearson(s, 3), seed=seed)


def bits_change(before: Any, now: Any, sizes: Any, seed: int = 0) -> Change:
    """What bits per byte changed by: nats (n,) of each window before and now, its bytes (n,)."""
    columns = np.stack([np.asarray(now, float) - before, np.asarray(sizes, float)], 1)
    return change(columns, lambda s: scores.bits_per_byte(s[0], 1) / max(s[1], 1.0), seed=seed)


def _table_change(
    statistic: Callable[[Any], float], wanted: Any, before: Any, now: Any, classes: int, seed: int
) -> Change:
    cells = np.eye(classes * classes)
    columns = np.hstack([cells[np.asarray(wanted) * classes + given] for given in (before, now)])

    def of(sums: Many) -> float:
        first, second = sums.reshape(2, classes, classes)
        return statistic(second) - statistic(first)

    return change(columns, of, seed=seed)


def _pearson(sums: Many, at: int) -> float:
    """From sums of 1, y, y^2 and, from `at` on, of x, x^2, x y."""
    n, y, yy = sums[:3]
    x, xx, xy = sums[at : at + 3]
    spread = (n * yy - y * y) * (n * xx - x * x)
    # what rounding leaves of a side that does not vary
    least = 1e-20 * n * n * yy * xx
    return float((n * xy - x * y) / np.sqrt(spread)) if spread > least else 0.0
