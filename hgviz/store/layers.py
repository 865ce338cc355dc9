"""One layer of a capture: its maps written by the rows of schema.py, and read as those say."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, get_args

import h5py
import numpy as np
from numpy.typing import NDArray

from hgviz.activations import ACTIVATIONS
from hgviz.core import Layer, Map, Reduce
from hgviz.maps import (
    DenseMap,
    Diagonals,
    Factors,
    Grouped,
    LazyMap,
    Quadratic,
    Relative,
    Rule,
    Summary,
)
from hgviz.maps.lazy import corrected_statistic, head_statistic
from hgviz.maps.overview import THUMB, Codes, Histogram, Pyramid, Range, lowest_zoom
from hgviz.maps.rule import Distance, Norm
from hgviz.maps.tiles import Blocks, build_pyramid, storage_request, summarize, survey, tile_blocks
from hgviz.store.arrays import (
    RUN,
    Packed,
    Stored,
    StoredRuns,
    bounded,
    checksum,
    create_packed,
    head_check,
    store_attributes,
    store_heads,
    write_chunks,
)
from hgviz.store.hdf5 import Refused, attribute, dataset, has, numbers, reading, require, subgroup
from hgviz.store.schema import ATTRIBUTES, FIELDS, Field, value_of, write_field

SIDE = 256  # of chunks of weights and of their coarse levels
HIGHEST_ZOOM = 30
REDUCTIONS: tuple[Reduce, Reduce] = ("max", "mean")
TERMS = (  # relative positions of a layer: all of one kind or none
    ("relative/weight", "relative/bias", "relative/content", "relative/position"),
    ("relative/curve",),
    ("relative/diagonals",),
)

Datasets = dict[str, h5py.Dataset | Packed]
Pyramids = Callable[[int], Pyramid]


def fields_of(kind: str) -> list[Field]:
    """The rows of datasets in a layer of a kind, "lazy" or "dense", without coarse levels."""
    rows = FIELDS["/layers/000"]
    return [row for row in rows if row.kind in ("", kind) and not row.source.startswith("levels.")]


# --- writing --------------------------------------------------------------------------------------


def maps_of(layer: Layer, factors: Factors | DenseMap) -> LazyMap | DenseMap:
    """The maps of a layer. Raises ValueError where they have other heads."""
    maps = LazyMap(factors, layer.heads) if isinstance(factors, Factors) else factors
    if maps.heads != layer.heads:
        raise ValueError(f"layer {layer.index} has the heads {layer.heads}, not {maps.heads}")
    return maps


def write_layer(
    group: h5py.Group,
    layer: Layer,
    maps: LazyMap | DenseMap,
    settle: bool = False,
    blocks: Blocks = tile_blocks,
) -> None:
    """Write a layer; that it is committed is the last thing written.

    settle: store the statistics that maps.recompute_statistics would give, found while the maps
    are surveyed. blocks: how their weights are computed.
    """
    summaries, stat, difference = write_overviews(group, maps, settle, blocks)
    parts = SimpleNamespace(
        layer=layer, map=maps, kind="dense", causal=maps.causal if isinstance(maps, DenseMap)
        else layer.causal, summary=_summary_arrays(maps, summaries),
    )  # fmt: skip
    if isinstance(maps, LazyMap):
        factors = maps.factors if stat is None else replace(maps.factors, stat=stat)
        rule = parts.rule = factors.rule
        parts.factors, parts.causal, parts.kind = factors, rule.causal, "lazy"
        parts.difference = difference
        parts.unit = rule.relative.unit if isinstance(rule.relative, Relative) else 1
        if any(rule.streaming):
            parts.kind = "streaming"  # which programs before version 1.8 refuse
            parts.near = sum((window or (0, 0) for window in rule.streaming), ())
    crc, runs = [0] * len(maps.heads), list[list[int]]([] for _ in maps.heads)
    for field in fields_of("dense" if isinstance(maps, DenseMap) else "lazy"):
        if field.path == "weights" and isinstance(maps, DenseMap):
            _write_weights(group, maps)
        elif field.path == "runs":
            if lowest_zoom(*maps.shape[1:]) is not None:
                write_field(group, field, np.array(runs, "<u4"))
        elif (value := value_of(parts, field.source)) is None:
            continue
        elif field.checksum == "heads":
            identifier = store_heads(group, field.path, value, field.axis, crc, runs)
            if not field.path.startswith("relative/"):
                dtype = parts.factors.dtype if field.path in ("q", "k") else value.dtype.name
                store_attributes(identifier, {"dtype": dtype})
            elif field.path == "relative/diagonals":
                store_attributes(identifier, {"lowest": parts.rule.relative.lowest})
        else:
            write_field(group, field, value)
    parts.crc32 = tuple(crc) if isinstance(maps, LazyMap) else None
    arrays = [array for array in vars(parts.summary).values() if array is not None]
    parts.summary32 = tuple(checksum(array[at] for array in arrays) for at in range(len(crc)))
    parts.committed = 1
    attributes = {row.name: (value_of(parts, row.source), row.form) for row in ATTRIBUTES}
    store_attributes(group.id, {
        name: " ".join(part or "-" for part in value) if form == "names"
        else float(value) if form == "number" else value
        for name, (value, form) in attributes.items() if value is not None
    })  # fmt: skip


def write_overviews(
    group: h5py.Group, maps: LazyMap | DenseMap, settle: bool, blocks: Blocks = tile_blocks
) -> tuple[list[Summary], NDArray[np.float64] | None, float]:
    """Survey all maps of a layer, one head after another, and write their coarse levels.

    Returns a summary of each head, the recomputed statistics (heads, queries) where settle asks
    for them, and the largest difference between the proof rows and the tiles.
    """
    stat, rows = None, tuple[int, ...]()
    if isinstance(maps, LazyMap):
        rows = tuple(int(row) for row in maps.factors.proof_rows[...])
        if settle:
            stat = np.array(maps.factors.stat[...], np.float64)
            final = LazyMap(replace(maps.factors, stat=stat), maps.heads)
    summaries, difference, ranges = [], 0.0, []
    request = storage_request(maps, rows)
    for place in range(len(maps.heads)):
        source: LazyMap | DenseMap = maps
        if isinstance(maps, LazyMap) and stat is not None:
            if not maps.is_softmax(place):  # these need their statistics before they can be read
                stat[place] = head_statistic(maps, place)
                source = final
            result = survey(source, place, request, blocks)
            if maps.is_softmax(place):
                before = stat[place].copy()
                stat[place] = corrected_statistic(maps.factors, place, result.total)
                result.settle(before, stat[place])
            source = final
        else:
            result = survey(source, place, request, blocks)
        summary = summarize(source, result)
        if isinstance(source, LazyMap):
            difference = max(difference, source.proof_error(place, result.rows))
        pyramid = build_pyramid(source, result)
        if pyramid is not None:
            for reduce in REDUCTIONS:
                for zoom, codes in pyramid.levels[reduce].items():
                    name, side = f"{reduce}/{zoom}", min(SIDE, max(codes.shape))
                    if name not in group:
                        chunks = (1, *(min(side, size) for size in codes.shape))
                        shape = (len(maps.heads), *codes.shape)
                        create_packed(group, name, shape, np.uint8, chunks)
                    write_chunks(group[name], place, codes)
            both = [pyramid.ranges[reduce] for reduce in REDUCTIONS]
            ranges.append([[each.floor, each.maximum] for each in both])
            finest = pyramid.levels["max"]
            hist = Histogram.of(finest[min(finest)], pyramid.ranges["max"])
            summary = replace(summary, hist=hist)
        summaries.append(summary)
    if ranges:
        group.create_dataset("ranges", data=np.array(ranges, "<f4"), fletcher32=True, chunks=True)
    return summaries, stat, difference


def _summary_arrays(maps: LazyMap | DenseMap, summaries: list[Summary]) -> SimpleNamespace:
    """The summaries of all heads as they are stored, in the order of their checksum."""
    limit = np.finfo(np.float16).max
    heads, rows = len(summaries), (len(summaries), maps.shape[1])
    shape = summaries[0].thumb.shape if summaries else (0, 0)
    thumbs = np.array([each.thumb for each in summaries], np.float32).reshape(heads, *shape)
    counts = [each.hist.counts for each in summaries if each.hist is not None]
    return SimpleNamespace(
        thumb=np.clip(thumbs, -limit, limit).astype("<f2"),
        rowmax=np.array([each.rowmax for each in summaries], "<f4").reshape(rows),
        entropy=np.array([each.entropy for each in summaries], "<f4").reshape(rows),
        hist=np.array(counts, "<u4") if counts else None,
    )


def _write_weights(group: h5py.Group, maps: DenseMap) -> None:
    """Write the tiles of dense maps, of causal ones none that lie above the diagonal."""
    array = maps.array
    side = min(SIDE, max(1, *array.shape[1:]))
    down, across = (max(1, min(side, size)) for size in array.shape[1:])
    target = group.create_dataset(
        "weights", array.shape, array.dtype.newbyteorder("<"),
        maxshape=(max(1, array.shape[0]), *array.shape[1:]),  # a layer may have lost all heads
        chunks=(1, down, across), shuffle=True, compression="gzip", compression_opts=1,
    )  # fmt: skip
    for place in range(array.shape[0]):
        for top in range(0, array.shape[1], down):
            right = min(top + down, array.shape[2]) if maps.causal else array.shape[2]
            for left in range(0, right, across):
                at = (place, slice(top, top + down), slice(left, left + across))
                target[at] = array[at]


def share_mixtures(layers: h5py.Group) -> None:
    """Keep equal mixtures of several layers once: hard links to that of the first."""
    mixed = [layer for layer in layers.values() if "mixture" in layer]
    for layer in mixed[1:]:
        if np.array_equal(layer["mixture"], mixed[0]["mixture"]):
            del layer["mixture"]
            layer["mixture"] = mixed[0]["mixture"]


# --- reading --------------------------------------------------------------------------------------


def read_layer(group: h5py.Group, path: str, layer: Layer, positions: int) -> Map:
    """The maps in a group; numbers are read and compared with checksums where they are sliced.

    Raises Refused for what is not as the rows of the schema and the spec say.
    """
    name, heads = group.name, len(layer.heads)
    kind = attribute(group, "kind", "")
    known = ("lazy", "streaming", "dense")
    require(kind in known, f"{name} is of the kind {kind!r:.40}, which this hgviz does not know")
    lazy = kind != "dense"
    attributes = _read_attributes(group, layer, "lazy" if lazy else "dense")
    sizes = {"heads": heads}
    data: Datasets = {}
    for field in fields_of("lazy" if lazy else "dense"):
        stored = dataset(group, field.path, field.row, sizes, field.packing)
        if stored is not None:
            data[field.path] = bounded(stored, path)
    mixtures, groups = sizes.get("mixtures", 1), sizes.get("groups", heads)
    require(mixtures in (1, heads), f"{name} has {mixtures} mixtures for {heads} heads")
    fits = (groups == 0) == (heads == 0) and (not groups or heads % groups == 0)
    require(fits, f"{name} has {groups} groups of keys for {heads} heads")
    rows = sizes["queries"]
    require(rows >= positions, f"{name} has {rows} rows for {positions} positions")
    largest = max(sizes["thumb_rows"], sizes["thumb_columns"])
    require(largest <= THUMB, f"{name} has thumbnails of more than {THUMB} cells a side")
    crc = attributes["summary32"]
    fits = crc is None or len(crc) == heads
    require(fits, f"{name} does not have one checksum of summaries for each of {heads} heads")
    signed = attributes["map.signed"]
    if lazy:
        signed = any(ACTIVATIONS[activation].signed for activation in layer.activations)
    pyramids = _read_levels(group, path, sizes, signed)
    summaries = _read_summaries(group, data, path, crc, pyramids)
    values: dict[str, Any] = {
        name: Stored(data[name], path) for name in ("value_norms", "mixture") if name in data
    }
    if lazy:
        factors = replace(_read_factors(group, data, path, layer, attributes), **values)
        return LazyMap(factors, layer.heads, summaries, attributes["difference"], pyramids)
    weights: Any = data["weights"]
    return DenseMap(
        weights, layer.heads, signed, attributes["causal"], summaries, pyramids,
        values.get("value_norms"), values.get("mixture"),
    )  # fmt: skip


def _read_attributes(group: h5py.Group, layer: Layer, kind: str) -> dict[str, Any]:
    """The attributes of a layer by their sources, None for those that are not there; what it says
    of itself has to be what its spec says. Raises Refused."""
    like: dict[str, Any] = {"text": "", "names": "", "flag": False, "number": 0.0, "integers": ()}
    values: dict[str, Any] = {}
    for row in ATTRIBUTES:
        if row.kind not in ("", kind):
            continue
        if not row.required and row.name not in group.attrs:
            values[row.source] = None
            continue
        value = attribute(group, row.name, like.get(row.form, 0))
        if row.form == "positive":
            good = 1 <= value < 1 << 31
            require(good, f"the attribute {row.name} of {group.name} is {value}")
        if row.form == "names":
            value = tuple(None if part == "-" else part for part in value.split())
        if row.source.startswith("layer."):
            expected = value_of(layer, row.name)
            if value != expected:
                require(
                    False, f"the {row.name} of {group.name} is {value!r:.40}, its spec says "
                    f"{expected!r:.40}",
                )  # fmt: skip
        values[row.source] = value
    require(values["committed"] == 1, f"{group.name} was never completed")
    return values


def _read_factors(
    group: h5py.Group, data: Datasets, path: str, layer: Layer, attributes: Mapping[str, Any]
) -> Factors:
    crc, heads = attributes["crc32"], len(layer.heads)
    require(len(crc) == heads, f"{group.name} has {len(crc)} checksums for {heads} heads")
    parts = _read_checked(group, data, path, crc)
    values: dict[str, Any] = {
        row.source: parts[row.path] if row.path in parts
        else numbers(data[row.path]) if data[row.path].chunks is None and row.path != "proof/values"
        else Stored(data[row.path], path)
        for row in fields_of("lazy")
        if row.path in data and row.source.startswith(("factors.", "rule."))
    }  # fmt: skip
    return Factors(
        rule=_read_rule(group, layer, attributes, values, data),
        dtype=attribute(data["q"], "dtype", ""),
        **{source.removeprefix("factors."): value for source, value in values.items()
           if source.startswith("factors.")},
    )  # fmt: skip


def _read_checked(
    group: h5py.Group, data: Datasets, path: str, crc: tuple[int, ...]
) -> dict[str, Any]:
    """What the checksums of heads cover, compared by runs of rows where the file has their
    checksums, else head by head."""
    names = [row.path for row in fields_of("lazy") if row.checksum == "heads" and row.path in data]
    heads, groups = len(crc), data["k"].shape[0]
    shared = heads // groups if groups else 1
    if "runs" in data:
        runs = numbers(data["runs"])
        ends = np.cumsum([-(-data[name].shape[1] // RUN) for name in names])
        if runs.shape[1] != ends[-1]:
            what = f"checksums of {runs.shape[1]} runs instead of {ends[-1]}"
            raise Refused(f"{group.name} has {what}")
        pairs = zip(names, np.split(runs, ends[:-1], axis=1), strict=True)
        parts: dict[str, Any] = {
            name: StoredRuns(data[name], path, part[::shared] if name == "k" else part)
            for name, part in pairs
        }
    else:
        whole = [Grouped(data[name], heads) if name == "k" and groups else data[name]
                 for name in names]  # fmt: skip
        check = head_check(whole, crc)
        parts = {name: Stored(data[name], path, check) for name in names}
        parts["k"] = Stored(data["k"], path, lambda place: check(place * shared))
    if shared > 1:
        parts["k"] = Grouped(parts["k"], heads)
    return parts


def _read_rule(
    group: h5py.Group,
    layer: Layer,
    attributes: Mapping[str, Any],
    values: Mapping[str, Any],
    data: Datasets,
) -> Rule:
    rule = {source.removeprefix("rule."): value for source, value in attributes.items()
            if source.startswith("rule.")}  # fmt: skip
    near, streams = attributes["near"] or (), attributes["kind"] == "streaming"
    if streams and not near and layer.heads:
        raise Refused(f"the attribute near of {group.name} is missing")
    windows = tuple(zip(near[::2], near[1::2], strict=False)) if streams else ()
    band, softcap = rule["band"], rule["softcap"]
    two_numbers = any(  # a row needs its norm besides its statistic
        norm is not None and ACTIVATIONS[activation].statistic != "none"
        for activation, norm in zip(layer.activations, rule["norms"], strict=False)
    )
    good = (
        math.isfinite(rule["scale"])
        and (band is None or (len(band) == 2 and 0 <= min(band) <= max(band) < 1 << 31))
        and (softcap is None or 0 < softcap < math.inf)
        and (not streams or (attributes["causal"] and not rule["windowed"]))
        and (not streams or len(near) == 2 * len(layer.heads))
        and all(sink == recent == 0 or (0 <= sink < 1 << 31 and 1 <= recent < 1 << 31)
                for sink, recent in windows)
        and rule["empty_rows"] in ("zeros", "uniform")
        and rule["activations"] == layer.activations
        and len(rule["norms"]) == len(layer.heads)
        and set(rule["norms"]) <= {None, *get_args(get_args(Norm)[0])}
        and ("norm" in data or not two_numbers)
        and ({"threshold", "kept"} <= {*data} or "topk" not in layer.activations)
    )  # fmt: skip
    require(good, f"{group.name} has a rule that this hgviz does not know")
    keep = values.get("rule.keep")
    rule |= {
        "causal": attributes["causal"],
        "keep": None if keep is None else keep.astype(bool),
        "sinks": values.get("rule.sinks"),
        "relative": _read_distance(group, attributes, values, data),
        "streaming": tuple(None if window == (0, 0) else window for window in windows),
    }
    return Rule(**rule)


def _read_distance(
    group: h5py.Group, attributes: Mapping[str, Any], values: Mapping[str, Any], data: Datasets
) -> Distance | None:
    """The relative positions of a layer: all terms of one kind, or none."""
    if not has(group, "relative"):
        return None
    names = tuple(name for name in data if name.startswith("relative/"))
    require(names in TERMS, f"{group.name} lacks a term of its relative positions, or has too many")
    terms = {
        source.removeprefix("rule.relative."): value for source, value in values.items()
        if source.startswith("rule.relative.")
    }  # fmt: skip
    if names == TERMS[1]:
        return Quadratic(**terms)
    if names == TERMS[2]:
        return Diagonals(**terms, lowest=attribute(data["relative/diagonals"], "lowest", 0))
    unit = 1 if attributes["unit"] is None else attributes["unit"]
    require(unit == -1 or 1 <= unit < 1 << 31, f"the attribute unit of {group.name} is {unit}")
    return Relative(**terms, unit=unit)


def _read_summaries(
    group: h5py.Group,
    data: Datasets,
    path: str,
    crc: tuple[int, ...] | None,
    pyramids: Pyramids | None,
) -> Callable[[int], Summary]:
    """What gives the summary of the head at a place, compared with its checksum."""
    names = [row.path for row in FIELDS["/layers/000"] if row.checksum == "summary"]

    def summary(place: int) -> Summary:
        with reading(path):
            parts = {name: data[name][place] for name in names if name in data}
            same = crc is None or checksum(parts.values()) == crc[place]
            require(same, f"the summaries of {group.name} are not what was written to it")
            hist = None
            if "hist" in parts and pyramids is not None:
                hist = Histogram(parts["hist"], pyramids(place).ranges["max"])
            thumb = parts["thumb"].astype(np.float32)
            return Summary(thumb, parts["rowmax"], parts["entropy"], hist)

    return summary


class _Level:
    """One coarse level of one head, read where it is sliced."""

    def __init__(self, packed: Packed, place: int) -> None:
        self._packed, self._place = packed, place

    def __getitem__(self, at: tuple[slice, slice]) -> Codes:
        return self._packed[(self._place, *at)]


def _read_levels(
    group: h5py.Group, path: str, sizes: dict[str, int], signed: bool
) -> Pyramids | None:
    """What gives the coarse levels of the head at a place; None where the file has none."""
    rows = {row.path.split("/")[0]: row for row in FIELDS["/layers/000"]
            if row.source.startswith("levels.")}  # fmt: skip
    stored = dataset(group, "ranges", rows["ranges"].row, sizes)
    if stored is None:
        return None
    ranges = [
        [Range(float(floor), float(maximum), signed) for floor, maximum in both]
        for both in numbers(stored)
    ]
    good = all(each.is_valid for both in ranges for each in both)
    require(good, f"{group.name}/ranges holds numbers that no map has")
    levels: dict[Reduce, dict[int, Packed]] = {reduce: {} for reduce in REDUCTIONS}
    for reduce in REDUCTIONS:
        inner = subgroup(group, reduce) if has(group, reduce) else None
        for zoom in range(HIGHEST_ZOOM + 1) if inner is not None else ():
            if has(inner, str(zoom)):
                down, across = (-(-sizes[name] >> zoom) for name in ("queries", "keys"))
                known = {"heads": sizes["heads"], "rows": down, "columns": across}
                codes = dataset(inner, str(zoom), rows[reduce].row, known, rows[reduce].packing)
                assert codes is not None
                levels[reduce][zoom] = Packed(codes, path)
    shape = sizes["queries"], sizes["keys"]

    def pyramid(place: int) -> Pyramid:
        heads = {
            reduce: {zoom: _Level(packed, place) for zoom, packed in zooms.items()}
            for reduce, zooms in levels.items()
        }
        return Pyramid(shape, heads, dict(zip(REDUCTIONS, ranges[place], strict=True)))

    return pyramid
