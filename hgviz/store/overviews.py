"""What is stored of whole maps: summaries, and the coarse levels of large ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import h5py
import numpy as np
from numpy.typing import NDArray

from hgviz.core import Reduce
from hgviz.maps import DenseMap, LazyMap, Summary
from hgviz.maps.lazy import corrected_statistic, head_statistic
from hgviz.maps.overview import Codes, Histogram, Pyramid, Range
from hgviz.maps.tiles import Blocks, build_pyramid, storage_request, summarize, survey, tile_blocks
from hgviz.store import schema
from hgviz.store.arrays import Packed, create_packed, write_chunks
from hgviz.store.hdf5 import Refused, dataset, has, numbers, subgroup

SIDE = 256
REDUCTIONS: tuple[Reduce, Reduce] = ("max", "mean")


@dataclass(frozen=True, slots=True)
class Found:
    """Summaries of the heads, their settled statistics if asked for, and how far from the proof
    rows the tiles are.
    """

    summaries: list[Summary]
    stat: NDArray[np.float64] | None
    difference: float


def write(
    group: h5py.Group, maps: LazyMap | DenseMap, settle: bool, blocks: Blocks = tile_blocks
) -> Found:
    """Look at all maps of a layer, one head after another, and write their coarse levels."""
    stat, rows = None, tuple[int, ...]()
    if isinstance(maps, LazyMap):
        rows = tuple(int(row) for row in maps.factors.proof_rows[...])
        if settle:
            stat = np.array(maps.factors.stat[...], np.float64)
            final = LazyMap(replace(maps.factors, stat=stat), maps.heads)
    summaries, difference, ranges = [], 0.0, []
    wanted = storage_request(maps, rows)
    for place in range(len(maps.heads)):
        one: LazyMap | DenseMap = maps
        if isinstance(maps, LazyMap) and stat is not None:
            if not maps.is_softmax(place):  # these need their statistics before they can be read
                stat[place] = head_statistic(maps, place)
                one = final
            found = survey(one, place, wanted, blocks)
            if maps.is_softmax(place):
                before = stat[place].copy()
                stat[place] = corrected_statistic(maps.factors, place, found.total)
                found.settle(before, stat[place])
            one = final
        else:
            found = survey(one, place, wanted, blocks)
        summary = summarize(one, found)
        if isinstance(one, LazyMap):
            difference = max(difference, one.proof_error(place, found.rows))
        pyramid = build_pyramid(one, found)
        if pyramid is not None:
            ranges.append(_write_levels(group, place, len(maps.heads), pyramid))
            finest = pyramid.levels["max"]
            hist = Histogram.of(finest[min(finest)], pyramid.ranges["max"])
            summary = replace(summary, hist=hist)
        summaries.append(summary)
    if ranges:
        group.create_dataset("ranges", data=np.array(ranges, "<f4"), fletcher32=True, chunks=True)
    return Found(summaries, stat, difference)


def _write_levels(group: h5py.Group, place: int, heads: int, pyramid: Pyramid) -> list[list[float]]:
    """The levels of one head; returns the ranges of their codes."""
    for reduce in REDUCTIONS:
        for zoom, codes in pyramid.levels[reduce].items():
            name = f"{reduce}/{zoom}"
            side = min(SIDE, max(codes.shape))
            if name not in group:
                chunks = (1, *(min(side, size) for size in codes.shape))
                create_packed(group, name, (heads, *codes.shape), np.uint8, chunks)
            write_chunks(group[name], place, codes)
    within = pyramid.ranges
    return [[within[reduce].floor, within[reduce].maximum] for reduce in REDUCTIONS]


# --- reading --------------------------------------------------------------------------------------


class _Level:
    """One level of one head, read where it is sliced."""

    def __init__(self, packed: Packed, place: int) -> None:
        self._packed, self._place = packed, place

    def __getitem__(self, at: tuple[slice, slice]) -> Codes:
        return self._packed[(self._place, *at)]


def read(
    group: h5py.Group, path: str, sizes: Mapping[str, int], signed: bool
) -> Callable[[int], Pyramid] | None:
    """The levels of a layer whose sizes are known, None where there are none. Raises Refused."""
    if not has(group, "ranges"):
        return None
    found = dataset(group, "ranges", schema.RANGES, {**sizes, "two": 2, "ends": 2})
    assert found is not None
    ranges = [
        [Range(float(floor), float(maximum), signed) for floor, maximum in one]
        for one in numbers(found)
    ]
    if not all(one.is_valid for both in ranges for one in both):
        raise Refused(f"{group.name}/ranges holds numbers that no map has")
    shape = sizes["queries"], sizes["keys"]
    levels = {reduce: _levels(group, path, reduce, sizes) for reduce in REDUCTIONS}

    def pyramid(place: int) -> Pyramid:
        heads = {
            reduce: {zoom: _Level(one, place) for zoom, one in kept.items()}
            for reduce, kept in levels.items()
        }
        return Pyramid(shape, heads, dict(zip(REDUCTIONS, ranges[place], strict=True)))

    return pyramid


def _levels(
    group: h5py.Group, path: str, reduce: Reduce, sizes: Mapping[str, int]
) -> dict[int, Packed]:
    """The levels of a reduction by zoom, each of the size that its zoom says."""
    levels: dict[int, Packed] = {}
    if not has(group, reduce):
        return levels
    inner = subgroup(group, reduce)
    for zoom in range(schema.HIGHEST_ZOOM + 1):
        if has(inner, str(zoom)):
            rows, columns = (-(-sizes[name] >> zoom) for name in ("queries", "keys"))
            row = ("heads", "rows", "columns"), ("u1",), True
            known = {"heads": sizes["heads"], "rows": rows, "columns": columns}
            found = dataset(group, f"{reduce}/{zoom}", row, known, "always")
            assert found is not None
            levels[zoom] = Packed(found, path)
    return levels
