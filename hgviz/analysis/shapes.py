"""What an activation makes of one score, and how steep it is there: the same rows as everywhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hgviz.activations import ACTIVATIONS

STEP = 1e-5  # of the central difference
Many = NDArray[np.float64]


def shape(name: str, scores: Many) -> Many:
    """The weight (n,) that a key of such a score gets. Where rows share their weight out, beside
    one other key of score 0, for kernels over their sum of 1: the logistic function for softmax."""
    row = ACTIVATIONS[name]
    scores = np.asarray(scores, float)
    if row.statistic == "lse":
        scores, terms = row.split(scores, np)
        stat = np.logaddexp(terms, row.split(np.zeros(1), np)[1])
        stat = stat if row.sink is None else np.logaddexp(stat, row.sink)
    elif row.statistic == "sum":
        if row.features is not None:
            scores = np.maximum(scores, 0.0)  # their products are never below 0
        stat = scores**row.power + 1.0
    else:
        stat = None
    found: Many = np.asarray(row.apply(scores, stat, np), float)
    return found


def steepness(name: str, scores: Many) -> Many:
    """Its derivative (n,), by central differences."""
    scores = np.asarray(scores, float)
    rise = shape(name, scores + STEP) - shape(name, scores - STEP)
    found: Many = rise / (2 * STEP)
    return found


__all__ = ["shape", "steepness"]
