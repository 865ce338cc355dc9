"""What is known of a head without looking at all of its map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Floats, Reduce
from hgviz.maps.pooling import counts, fold_sum
from hgviz.maps.pyramid import Codes, Pyramid, Range, decode, encode, lowest_zoom, parts, zooms
from hgviz.maps.survey import Survey, Wanted, survey
from hgviz.maps.tiles import TILE_ZOOM, Tiled

THUMB = 128


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many cells have each of the 256 codes that magnitudes have within a range."""

    counts: NDArray[np.uint32]
    within: Range

    @classmethod
    def of(cls, codes: Codes, within: Range) -> Histogram:
        """The histogram of cells that are codes already."""
        found, seen = np.zeros(256, np.uint32), 0
        for part in parts(codes.shape):
            if codes[part].any():
                found += np.bincount(codes[part].ravel(), minlength=256).astype(np.uint32)
                seen += codes[part].size
        found[0] += codes.size - seen
        return cls(found, within)

    def quantile(self, share: float) -> float:
        """The magnitude that this share of the cells does not exceed, as exact as a code is."""
        sizes = np.abs(decode(np.arange(256, dtype=np.uint8), self.within))
        order = np.argsort(sizes, kind="stable")
        reached = np.cumsum(self.counts[order], dtype=np.float64)
        if not reached[-1]:
            return 0.0
        at = np.searchsorted(reached, min(max(share, 0.0), 1.0) * reached[-1])
        return float(sizes[order[at]])


@dataclass(frozen=True, slots=True)
class Summary:
    """One head at a glance.

    thumb (<= 128, <= 128) float32: the map pooled by its largest weights, both sides by the same
    power of two. rowmax (queries,): the largest weight of each row, by magnitude when signed.
    entropy (queries,): of |row| / sum |row|, in nats; 0 for a row without weights. hist: of the
    finest cells that were pooled by largest weights; None where these are those of thumb.
    """

    thumb: Floats
    rowmax: Floats
    entropy: Floats
    hist: Histogram | None = None

    @property
    def peak(self) -> float:
        """The largest magnitude of the whole map."""
        return float(np.abs(self.rowmax).max(initial=0.0))

    def quantile(self, share: float) -> float:
        """The magnitude that this share of the map's cells does not exceed, at a glance: cells of
        the finest level there is, each as large as its largest weight, within 2.8 % (signed 5.6).
        """
        if self.hist is not None:
            return self.hist.quantile(share)
        sizes = np.abs(self.thumb)
        within = Range.of(sizes, signed=False)
        return Histogram.of(encode(sizes, within), within).quantile(share)


def thumb_zoom(queries: int, keys: int) -> int:
    """The zoom of a thumbnail: the smallest at which both sides have at most THUMB cells."""
    return max(0, (max(queries, keys, 1) - 1).bit_length() - (THUMB.bit_length() - 1))


def summarise(maps: Tiled, head: int) -> Summary:
    """The summary of a head, tile by tile: memory does not grow with the map."""
    place, (_, queries, keys) = maps.place(head), maps.shape
    zoom = min(thumb_zoom(queries, keys), TILE_ZOOM)
    return summary_of(maps, survey(maps, place, Wanted(largest=zoom)), zoom)


def summary_of(maps: Tiled, found: Survey, zoom: int) -> Summary:
    """The summary of a head that was surveyed in cells of 2^zoom."""
    _, queries, keys = maps.shape
    thumb: Floats = maps.fold(found.cells, thumb_zoom(queries, keys) - zoom) + np.float32(0)
    return Summary(thumb, found.top.astype(np.float32) + np.float32(0), found.entropy)


def to_store(maps: Tiled, rows: tuple[int, ...] = ()) -> Wanted:
    """What is surveyed of a map that is to be stored: its finest kept levels, and some rows."""
    _, queries, keys = maps.shape
    lowest = lowest_zoom(queries, keys)
    if lowest is None:
        return Wanted(min(thumb_zoom(queries, keys), TILE_ZOOM), None, rows)
    return Wanted(lowest, lowest + 1, rows)


def pyramid_of(maps: Tiled, found: Survey) -> Pyramid | None:
    """The kept levels of a head that was surveyed by to_store; None for a small map."""
    _, queries, keys = maps.shape
    wanted = zooms(queries, keys, thumb_zoom(queries, keys))
    if not wanted["max"]:
        return None
    levels: dict[Reduce, Mapping[int, Codes]] = {}
    ranges: dict[Reduce, Range] = {}
    values: dict[int, Floats] = {}
    for zoom in wanted["max"]:
        values[zoom] = maps.fold(values[zoom - 1], 1) if zoom - 1 in values else found.cells
    # a coarser level has no number that the finest has not
    ranges["max"] = Range.of(found.cells, maps.signed)
    levels["max"] = {zoom: encode(one, ranges["max"]) for zoom, one in values.items()}
    values, sums = {}, found.sums
    for zoom in wanted["mean"]:
        sums = fold_sum(sums, 1).astype(np.float32) if zoom - 1 in values else sums
        values[zoom] = (sums / counts((queries, keys), zoom)).astype(np.float32)
    # means can be smaller where signs cancel or zeros join
    ends = [Range.of(one, maps.signed) for one in values.values()]
    edges = [edge for one in ends for edge in (one.floor, one.maximum) if edge > 0]
    ranges["mean"] = Range.of(np.array([min(edges), max(edges)] if edges else []), maps.signed)
    levels["mean"] = {zoom: encode(one, ranges["mean"]) for zoom, one in values.items()}
    return Pyramid((queries, keys), levels, ranges)
