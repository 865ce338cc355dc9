"""What is known of a head without looking at all of its map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Floats
from hgviz.maps.blas import one_thread
from hgviz.maps.pooling import larger
from hgviz.maps.tiles import TILE, TILE_ZOOM, Tiled

THUMB = 128
_TINY = np.finfo(np.float32).tiny


@dataclass(frozen=True, slots=True)
class Summary:
    """One head at a glance.

    thumb (<= 128, <= 128) float32: the map pooled by its largest weights, both sides by the same
    power of two. rowmax (queries,): the largest weight of each row, by magnitude when signed.
    entropy (queries,): of |row| / sum |row|, in nats; 0 for a row without weights.
    """

    thumb: Floats
    rowmax: Floats
    entropy: Floats


def thumb_zoom(queries: int, keys: int) -> int:
    """The zoom of a thumbnail: the smallest at which both sides have at most THUMB cells."""
    return max(0, (max(queries, keys, 1) - 1).bit_length() - (THUMB.bit_length() - 1))


def summarise(maps: Tiled, head: int) -> Summary:
    """The summary of a head, tile by tile: memory does not grow with the map."""
    place, (_, queries, keys) = maps.place(head), maps.shape
    zoom = thumb_zoom(queries, keys)
    inner = min(zoom, TILE_ZOOM)
    step = TILE >> inner
    thumb = np.zeros((-(-queries >> inner), -(-keys >> inner)), np.float32)
    highest, lowest = np.zeros(queries, np.float32), np.zeros(queries, np.float32)
    total, weighted = np.zeros(queries), np.zeros(queries)
    with one_thread(), np.errstate(invalid="ignore", over="ignore"):
        for i in range(-(-queries // TILE)):
            rows = slice(i * TILE, (i + 1) * TILE)
            for j in range(-(-keys // TILE)):
                tile = maps.weights(place, i, j)
                if tile is None:
                    continue
                thumb[i * step : (i + 1) * step, j * step : (j + 1) * step] = maps.fold(tile, inner)
                highest[rows] = np.maximum(highest[rows], tile.max(1))
                lowest[rows] = np.minimum(lowest[rows], tile.min(1))
                size = np.abs(tile) if maps.signed else tile
                total[rows] += size.sum(1)
                weighted[rows] += (size * np.log(np.maximum(size, _TINY))).sum(1)
    thumb = maps.fold(thumb, zoom - inner)
    return Summary(thumb + 0.0, larger(highest, lowest), _entropy(total, weighted))


def _entropy(total: NDArray[np.float64], weighted: NDArray[np.float64]) -> Floats:
    # of p = w / S: log S - sum(w log w) / S
    some = total > 0
    sums = np.where(some, total, 1.0)
    return np.maximum(np.where(some, np.log(sums) - weighted / sums, 0.0), 0.0).astype(np.float32)
