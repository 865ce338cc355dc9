"""The row statistic that goes with the tiles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hgviz.activations import ACTIVATIONS, SUM_EPSILON
from hgviz.maps.lazy import LazyMap
from hgviz.maps.rule import Factors
from hgviz.maps.survey import Wanted, survey


def settled(factors: Factors) -> Factors:
    """The same factors, with statistics under which the rows of softmaxes and of linear attention
    sum to what they should in the tiles.

    A model takes the statistic of its own scores, whose rounding errors are not those of the
    tiles; in the model's weights they cancel, between the two they add up. One pass over the
    tiles puts what is left of them into the statistic. Rows without keys stay as they are.
    """
    maps = LazyMap(factors, tuple(range(factors.q.shape[0])))
    stat = np.array(factors.stat[...], np.float64)
    for place in range(len(stat)):
        if ACTIVATIONS[factors.rule.activations[place]].statistic != "none":
            stat[place] = settled_row(factors, place, survey(maps, place, Wanted()).total)
    return replace(factors, stat=stat)


def settled_row(factors: Factors, place: int, total: NDArray[np.float64]) -> NDArray[np.float64]:
    """The statistic (queries,) of the head stored at a place, given what its rows sum to."""
    stat = np.array(factors.stat[place], np.float64)
    good = np.isfinite(stat) & np.isfinite(total) & (total > 0)
    kind = ACTIVATIONS[factors.rule.activations[place]].statistic
    if kind == "lse":
        stat[good] += np.log(total[good])
    elif kind == "sum":  # a row sums to S / (S + epsilon), S the sum of the scores in the tiles
        stat[good] = total[good] * (stat[good] + SUM_EPSILON)
    return stat
