"""One layer of a capture: its maps written by the rows of schema.py, and read as those say."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Literal, get_args

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
    HeadChecksums,
    Packed,
    Stored,
    StoredRuns,
    bounded,
    checksum,
    create_packed,
    head_check,
    store,
    store_attributes,
    write_chunks,
)
from hgviz.store.hdf5 import Refused, attribute, has, numbers, reading, require, subgroup
from hgviz.store.schema import (
    CAPTURE_FIELDS,
    Field,
    nest,
    open_field,
    read_field,
    read_fields,
    value_of,
    write_fields,
)

SIDE = 256  # of chunks of weights and of their coarse levels
HIGHEST_ZOOM = 30
REDUCTIONS: tuple[Reduce, Reduce] = ("max", "mean")
TERMS: dict[tuple[str, ...], type[Distance]] = {  # relative positions: all of one kind or none
    ("weight", "bias", "content", "position"): Relative,
    ("curve",): Quadratic,
    ("values",): Diagonals,
}

Datasets = dict[str, h5py.Dataset | Packed]
Pyramids = Callable[[int], Pyramid]


def rows_of(kind: Literal["lazy", "dense"]) -> tuple[list[Field], list[Field]]:
    """The rows of datasets and attributes in a layer of a kind, without coarse levels."""
    rows = [row for row in CAPTURE_FIELDS["/layers/000"]
            if row.kind in ("", kind) and not row.source.startswith("levels.")]  # fmt: skip
    return [row for row in rows if not row.attribute], [row for row in rows if row.attribute]


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
    summary = _summary_arrays(maps, summaries)
    arrays = [array for array in vars(summary).values() if array is not None]
    checksums = tuple(checksum(array[at] for array in arrays) for at in range(len(maps.heads)))
    parts = SimpleNamespace(
        layer=layer, map=maps, summary=summary, summary32=checksums, difference=difference,
        committed=1,
    )  # fmt: skip
    fields, attributes = rows_of("lazy" if isinstance(maps, LazyMap) else "dense")
    if isinstance(maps, LazyMap):
        _write_factors(group, fields, parts, stat)
        fields = [field for field in fields if field.checksum != "heads"]
    else:
        parts.kind, parts.causal = "dense", maps.causal
        _write_weights(group, maps)
        fields = [field for field in fields if field.path != "weights"]
    write_fields(group, [*fields, *attributes], parts)


def _write_factors(
    group: h5py.Group, fields: list[Field], parts: SimpleNamespace, stat: NDArray[Any] | None
) -> None:
    """Write what checksums of heads cover, and tell parts of the rule and the checksums."""
    maps: LazyMap = parts.map
    factors = maps.factors if stat is None else replace(maps.factors, stat=stat)
    parts.factors, parts.rule = factors, factors.rule
    parts.kind, parts.causal, distance = "lazy", factors.rule.causal, factors.rule.relative
    parts.unit = distance.unit if isinstance(distance, Relative) else 1
    if any(factors.rule.streaming):
        parts.kind = "streaming"  # which programs before version 1.8 refuse
        parts.near = sum((window or (0, 0) for window in factors.rule.streaming), ())
    checksums = HeadChecksums(len(maps.heads))
    for field in fields:
        if field.checksum != "heads" or (value := value_of(parts, field.source)) is None:
            continue
        grouped = isinstance(value, Grouped)  # keys that heads share are written once
        checksums.shared = value.each if grouped else 1
        stored = value.stored if grouped else value
        identifier = store(group, field.path, stored, field.axis, packs=True, of_heads=checksums)
        if not field.path.startswith("relative/"):
            dtype = factors.dtype if field.path in ("q", "k") else value.dtype.name
            store_attributes(identifier, {"dtype": dtype})
        elif isinstance(distance, Diagonals):
            store_attributes(identifier, {"lowest": distance.lowest})
    parts.crc32 = tuple(checksums.crc)
    parts.runs = checksums.runs if lowest_zoom(*maps.shape[1:]) is not None else None


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


# --- reading --------------------------------------------------------------------------------------


def read_layer(group: h5py.Group, path: str, layer: Layer, positions: int) -> Map:
    """The maps in a group; numbers are read and compared with checksums where they are sliced.

    Raises Refused for what is not as the rows of the schema and the spec say.
    """
    name, heads = group.name, len(layer.heads)
    kind = attribute(group, "kind", "")
    known = ("lazy", "streaming", "dense")
    require(kind in known, f"{name} is of the kind {kind!r:.40}, which this hgviz does not know")
    fields, attributes = rows_of("dense" if kind == "dense" else "lazy")
    values = read_fields(group, attributes, {})
    require(values["committed"] == 1, f"{name} was never completed")
    for part, value in values["layer"].items():
        expected = getattr(layer, part)
        if value != expected:
            what = f"{value!r:.40}, its spec says {expected!r:.40}"
            raise Refused(f"the {part} of {name} is {what}")
    sizes = {"heads": heads}
    data = {
        field.path: bounded(open_field(group, field, sizes), path)
        for field in fields if field.required or has(group, field.path)
    }  # fmt: skip
    mixtures, groups = sizes.get("mixtures", 1), sizes.get("groups", heads)
    require(mixtures in (1, heads), f"{name} has {mixtures} mixtures for {heads} heads")
    fits = (groups == 0) == (heads == 0) and (not groups or heads % groups == 0)
    require(fits, f"{name} has {groups} groups of keys for {heads} heads")
    rows = sizes["queries"]
    require(rows >= positions, f"{name} has {rows} rows for {positions} positions")
    largest = max(sizes["thumb_rows"], sizes["thumb_columns"])
    require(largest <= THUMB, f"{name} has thumbnails of more than {THUMB} cells a side")
    for checksums in ("crc32", "summary32"):
        many = values.get(checksums)
        fits = many is None or len(many) == heads
        require(fits, f"{name} does not have a number of {checksums} for each of {heads} heads")
    signed = values["map"]["signed"]
    if kind != "dense":
        signed = any(ACTIVATIONS[activation].signed for activation in layer.activations)
    pyramids = _read_levels(group, path, sizes, signed)
    summaries = _read_summaries(group, data, path, values["summary32"], pyramids)
    more: dict[str, Any] = {
        name: Stored(data[name], path) for name in ("value_norms", "mixture") if name in data
    }
    if kind == "dense":
        weights: Any = data["weights"]
        return DenseMap(
            weights, layer.heads, signed, values["causal"], summaries, pyramids, **more
        )  # fmt: skip
    factors = replace(_read_factors(group, data, path, layer, values), **more)
    return LazyMap(factors, layer.heads, summaries, values["difference"], pyramids)


def _read_factors(
    group: h5py.Group, data: Datasets, path: str, layer: Layer, values: dict[str, Any]
) -> Factors:
    arrays: dict[str, Any] = _read_checked(group, data, path, values["crc32"])
    parts = {}
    for field in rows_of("lazy")[0]:
        if field.path not in data or not field.source.startswith(("factors.", "rule.")):
            continue
        stored = data[field.path]
        if field.path not in arrays:
            small = stored.chunks is None and field.path != "proof/values"
            arrays[field.path] = numbers(stored) if small else Stored(stored, path)
        parts[field.source] = arrays[field.path]
    nested = nest(parts)
    rule = values["rule"] | nested.pop("rule", {})
    rule["relative"] = _read_distance(group, data, rule.get("relative", {}), values["unit"])
    if (keep := rule.get("keep")) is not None:
        rule["keep"] = keep.astype(bool)
    return Factors(
        rule=_read_rule(group, layer, values, rule, data),
        dtype=attribute(data["q"], "dtype", ""),
        **nested["factors"],
    )


def _read_checked(
    group: h5py.Group, data: Datasets, path: str, crc: tuple[int, ...]
) -> dict[str, Any]:
    """What the checksums of heads cover, compared by runs of rows where the file has their
    checksums, else head by head."""
    names = [field.path for field in rows_of("lazy")[0]
             if field.checksum == "heads" and field.path in data]  # fmt: skip
    heads, groups = len(crc), data["k"].shape[0]
    shared = heads // groups if groups else 1
    if "runs" in data:
        runs = numbers(data["runs"])
        ends = np.cumsum([-(-data[name].shape[1] // RUN) for name in names])
        good = runs.shape[1] == ends[-1]
        require(good, f"{group.name} has checksums of {runs.shape[1]} runs instead of {ends[-1]}")
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
    values: Mapping[str, Any],
    rule: dict[str, Any],
    data: Datasets,
) -> Rule:
    near, streams, heads = values["near"] or (), values["kind"] == "streaming", len(layer.heads)
    require(near or not streams or not heads, f"the attribute near of {group.name} is missing")
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
        and (not streams or (values["causal"] and not rule["windowed"]))
        and (not streams or len(near) == 2 * heads)
        and all(sink == recent == 0 or (0 <= sink < 1 << 31 and 1 <= recent < 1 << 31)
                for sink, recent in windows)
        and rule["empty_rows"] in ("zeros", "uniform")
        and rule["activations"] == layer.activations
        and len(rule["norms"]) == heads
        and {*rule["norms"]} <= {None, *get_args(get_args(Norm)[0])}
        and ("norm" in data or not two_numbers)
        and ({"threshold", "kept"} <= {*data} or "topk" not in layer.activations)
    )  # fmt: skip
    require(good, f"{group.name} has a rule that this hgviz does not know")
    streaming = tuple(None if window == (0, 0) else window for window in windows)
    return Rule(**rule, causal=values["causal"], streaming=streaming)


def _read_distance(
    group: h5py.Group, data: Datasets, terms: dict[str, Any], unit: int | None
) -> Distance | None:
    """The relative positions of a layer: all terms of one kind, or none."""
    if not terms:
        return None
    kind = TERMS.get(tuple(terms))
    require(kind, f"{group.name} lacks a term of its relative positions, or has too many")
    if kind is Quadratic:
        return Quadratic(**terms)
    if kind is Diagonals:
        return Diagonals(**terms, lowest=attribute(data["relative/diagonals"], "lowest", 0))
    unit = 1 if unit is None else unit
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
    names = [name for name in ("thumb", "rowmax", "entropy", "hist") if name in data]

    def summary(place: int) -> Summary:
        with reading(path):
            parts = {name: data[name][place] for name in names}
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
    rows = {row.source: row for row in CAPTURE_FIELDS["/layers/000"]}
    limits = read_field(group, rows["levels.ranges"], sizes)
    if limits is None:
        return None
    ranges = [[Range(float(floor), float(top), signed) for floor, top in both] for both in limits]
    good = all(limit.is_valid for both in ranges for limit in both)
    require(good, f"{group.name}/ranges holds numbers that no map has")
    shape = sizes["queries"], sizes["keys"]
    levels: dict[Reduce, dict[int, Packed]] = {reduce: {} for reduce in REDUCTIONS}
    for reduce in REDUCTIONS:
        inner = subgroup(group, reduce) if has(group, reduce) else None
        for zoom in range(HIGHEST_ZOOM + 1) if inner is not None else ():
            if has(inner, str(zoom)):
                down, across = (-(-size >> zoom) for size in shape)
                known = {"heads": sizes["heads"], "rows": down, "columns": across}
                field = replace(rows[f"levels.{reduce}"], path=str(zoom))
                levels[reduce][zoom] = Packed(open_field(inner, field, known), path)

    def pyramid(place: int) -> Pyramid:
        heads = {
            reduce: {zoom: _Level(packed, place) for zoom, packed in zooms.items()}
            for reduce, zooms in levels.items()
        }
        return Pyramid(shape, heads, dict(zip(REDUCTIONS, ranges[place], strict=True)))

    return pyramid
