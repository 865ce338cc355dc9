"""The row statistic that goes with the tiles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hgviz.activations import ACTIVATIONS, SUM_EPSILON
from hgviz.maps.blas import one_thread
from hgviz.maps.lazy import LazyMap
from hgviz.maps.rule import Factors
from hgviz.maps.tiles import TILE


def settled(factors: Factors) -> Factors:
    """The same factors, with statistics under which the rows of softmaxes and of linear attention
    sum to what they should in the tiles.

    A model takes the statistic of its own scores, whose rounding errors are not those of the
    tiles; in the model's weights they cancel, between the two they add up. One pass over the
    tiles puts what is left of them into the statistic. Rows without keys stay as they are.
    """
    maps = LazyMap(factors, tuple(range(factors.q.shape[0])))
    stat = np.array(factors.stat[...], np.float64)
    for place, name in enumerate(factors.rule.activations):
        kind = ACTIVATIONS[name].statistic
        if kind == "none":
            continue
        total = _row_sums(maps, place)
        good = np.isfinite(stat[place]) & np.isfinite(total) & (total > 0)
        if kind == "lse":
            stat[place, good] += np.log(total[good])
        else:  # a row sums to S / (S + epsilon), S the sum of the scores in the tiles
            stat[place, good] = total[good] * (stat[place, good] + SUM_EPSILON)
    return replace(factors, stat=stat)


def _row_sums(maps: LazyMap, place: int) -> NDArray[np.float64]:
    _, queries, keys = maps.shape
    total = np.zeros(queries)
    with one_thread(), np.errstate(invalid="ignore", over="ignore"):
        for i in range(-(-queries // TILE)):
            rows = slice(i * TILE, (i + 1) * TILE)
            for j in range(-(-keys // TILE)):
                tile = maps.weights(place, i, j)
                if tile is not None:
                    total[rows] += tile.sum(1, dtype=np.float64)
    return total
