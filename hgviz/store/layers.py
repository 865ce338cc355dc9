"""One layer of a capture: its maps written by the rows of schema.py, and read as those say."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import h5py
import numpy as np
from numpy.typing import NDArray

from hgviz import maps as kinds
from hgviz.activations import ACTIVATIONS
from hgviz.core import Layer, Reduce
from hgviz.maps import DenseMap, Factors, Grouped, LazyMap, Rule, Summary
from hgviz.maps.lazy import corrected_statistic, head_statistic
from hgviz.maps.overview import THUMB, Codes, Histogram, Pyramid, Range, lowest_zoom
from hgviz.maps.rule import Distance
from hgviz.maps.tiles import Blocks, build_pyramid, storage_request, summarize, survey, tile_blocks
from hgviz.store import hdf5, schema
from hgviz.store.hdf5 import RUN, Stored, StoredRuns, attribute, checksum, has, require, subgroup

SIDE = 256  # of chunks of weights and of their coarse levels
HIGHEST_ZOOM = 30
REDUCTIONS: tuple[Reduce, Reduce] = ("max", "mean")
TERMS: dict[tuple[str, ...], type[Distance]] = {  # relative positions: all of one kind or none
    ("weight", "bias", "content", "position"): kinds.Relative,
    ("curve",): kinds.Quadratic,
    ("values",): kinds.Diagonals,
}

AnyMap = LazyMap | DenseMap
Datasets = dict[str, Stored]
Pyramids = Callable[[int], Pyramid]


def rows_of(kind: Literal["lazy", "dense"]) -> tuple[list[schema.Field], list[schema.Field]]:
    """The rows of datasets and attributes in a layer of a kind, without coarse levels."""
    rows = [row for row in schema.CAPTURE_FIELDS["/layers/000"]
            if row.kind in ("", kind) and not row.source.startswith("levels.")]  # fmt: skip
    return [row for row in rows if not row.attribute], [row for row in rows if row.attribute]


# --- writing --------------------------------------------------------------------------------------


def write_layer(
    group: h5py.Group,
    layer: Layer,
    content: Factors | DenseMap,
    settle: bool = False,
    blocks: Blocks = tile_blocks,
) -> None:
    """Write a layer; that it is committed is the last thing written.

    settle: store the statistics that maps.recompute_statistics would give, found while the maps
    are surveyed. blocks: how their weights are computed. Raises ValueError for other heads.
    """
    maps = LazyMap(content, layer.heads) if isinstance(content, Factors) else content
    if maps.heads != layer.heads:
        raise ValueError(f"layer {layer.index} has the heads {layer.heads}, not {maps.heads}")
    summaries, stat, difference = write_overviews(group, maps, settle, blocks)
    limit = np.finfo(np.float16).max
    thumbs = np.array([summary.thumb for summary in summaries], np.float32)
    histograms = [summary.hist.counts for summary in summaries if summary.hist is not None]
    shape = (len(summaries), maps.shape[1])
    arrays = {  # in the order of their checksum
        "thumb": np.clip(thumbs, -limit, limit).astype("<f2").reshape(len(summaries), *(
            summaries[0].thumb.shape if summaries else (0, 0))),
        "rowmax": np.array([summary.rowmax for summary in summaries], "<f4").reshape(shape),
        "entropy": np.array([summary.entropy for summary in summaries], "<f4").reshape(shape),
        **({"hist": np.array(histograms, "<u4")} if histograms else {}),
    }  # fmt: skip
    checksums = (checksum(array[at] for array in arrays.values()) for at in range(len(summaries)))
    parts: dict[str, Any] = {
        "layer": layer, "map": maps, "summary": arrays, "summary32": tuple(checksums),
        "difference": difference, "committed": 1,
    }  # fmt: skip
    fields, attributes = rows_of("lazy" if isinstance(maps, LazyMap) else "dense")
    if isinstance(maps, LazyMap):
        parts |= _write_factors(group, maps, stat)
        fields = [field for field in fields if field.checksum != "heads"]
    else:
        parts |= {"kind": "dense", "causal": maps.causal}
        _write_weights(group, maps)
        fields = [field for field in fields if field.path != "weights"]
    schema.write_fields(group, [*fields, *attributes], parts)


def _write_factors(group: h5py.Group, maps: LazyMap, stat: NDArray[Any] | None) -> dict[str, Any]:
    """Write what checksums of heads cover; return the checksums, and what else rows name."""
    factors = maps.factors if stat is None else replace(maps.factors, stat=stat)
    rule, heads = factors.rule, len(maps.heads)
    parts: dict[str, Any] = {
        "factors": factors, "rule": rule, "causal": rule.causal, "kind": "lazy",
        "unit": rule.relative.unit if isinstance(rule.relative, kinds.Relative) else 1,
    }  # fmt: skip
    if any(rule.streaming):
        parts["kind"] = "streaming"  # which programs before version 1.8 refuse
        parts["near"] = sum((window or (0, 0) for window in rule.streaming), ())
    crc, runs = [0] * heads, [list[int]() for _ in range(heads)]
    for field in rows_of("lazy")[0]:
        value = schema.value_of(parts, field.source)
        if field.checksum != "heads" or value is None:
            continue
        shared = value.each if isinstance(value, Grouped) else 1  # keys that are written once
        stored = value.stored if isinstance(value, Grouped) else value

        def watch(place: int, part: NDArray[Any], shared: int = shared) -> None:
            sums = [checksum([part[top : top + RUN]]) for top in range(0, len(part), RUN)]
            for head in range(place * shared, (place + 1) * shared):
                crc[head] = zlib.crc32(part.data, crc[head])
                runs[head] += sums

        identifier = hdf5.store(group, field.path, stored, field.axis, packs=True, watch=watch)
        if not field.path.startswith("relative/"):
            dtype = factors.dtype if field.path in ("q", "k") else value.dtype.name
            hdf5.store_attributes(identifier, {"dtype": dtype})
        elif isinstance(rule.relative, kinds.Diagonals):
            hdf5.store_attributes(identifier, {"lowest": rule.relative.lowest})
    is_large = lowest_zoom(*maps.shape[1:]) is not None
    return parts | {"crc32": tuple(crc), "runs": runs if is_large else None}


def write_overviews(
    group: h5py.Group, maps: AnyMap, settle: bool, blocks: Blocks = tile_blocks
) -> tuple[list[Summary], NDArray[np.float64] | None, float]:
    """Survey all maps of a layer, one head after another, and write their coarse levels.

    Returns a summary of each head, the recomputed statistics (heads, queries) where settle asks
    for them, and the largest difference between the proof rows and the tiles.
    """
    stat, final, rows = None, maps, tuple[int, ...]()
    if isinstance(maps, LazyMap):
        rows = tuple(map(int, maps.factors.proof_rows[...]))
        if settle:
            stat = np.array(maps.factors.stat[...], np.float64)
            final = LazyMap(replace(maps.factors, stat=stat), maps.heads)
    summaries, difference, ranges = [], 0.0, []
    request = storage_request(maps, rows)
    for place in range(len(maps.heads)):
        is_softmax = maps.is_softmax(place)
        if isinstance(maps, LazyMap) and stat is not None and not is_softmax:
            stat[place] = head_statistic(maps, place)  # needed before they can be read
        result = survey(maps if is_softmax else final, place, request, blocks)
        if isinstance(maps, LazyMap) and stat is not None and is_softmax:
            before = stat[place].copy()
            stat[place] = corrected_statistic(maps.factors, place, result.total)
            result.settle(before, stat[place])
        summary = summarize(final, result)
        if isinstance(final, LazyMap):
            difference = max(difference, final.proof_error(place, result.rows))
        if (pyramid := build_pyramid(final, result)) is not None:
            for reduce in REDUCTIONS:
                for zoom, codes in pyramid.levels[reduce].items():
                    name, shape = f"{reduce}/{zoom}", (len(maps.heads), *codes.shape)
                    if name not in group:
                        hdf5.create_packed(group, name, shape, np.uint8, (SIDE, SIDE))
                    hdf5.write_chunks(group[name], place, codes)
            both = [pyramid.ranges[reduce] for reduce in REDUCTIONS]
            ranges.append([[limit.floor, limit.maximum] for limit in both])
            finest = pyramid.levels["max"]
            hist = Histogram.of(finest[min(finest)], pyramid.ranges["max"])
            summary = replace(summary, hist=hist)
        summaries.append(summary)
    if ranges:
        group.create_dataset("ranges", data=np.array(ranges, "<f4"), fletcher32=True, chunks=True)
    return summaries, stat, difference


def _write_weights(group: h5py.Group, maps: DenseMap) -> None:
    """Write the tiles of dense maps, of causal ones none that lie above the diagonal."""
    array = maps.array
    dtype = array.dtype.newbyteorder("<")
    target = hdf5.create_packed(group, "weights", array.shape, dtype, (SIDE, SIDE))
    rows, columns = (np.arange(size) // SIDE for size in array.shape[1:])
    for place in range(array.shape[0]):
        weights = np.asarray(array[place], dtype)
        if maps.causal:
            weights = np.where(rows[:, None] >= columns, weights, dtype.type(0))
        hdf5.write_chunks(target, place, weights)


# --- reading --------------------------------------------------------------------------------------


def read_layer(group: h5py.Group, path: str, layer: Layer, positions: int) -> AnyMap:
    """The maps in a group; numbers are read and compared with checksums where they are sliced.

    Raises Refused for what is not as the rows of the schema and the spec say.
    """
    name, heads = group.name, len(layer.heads)
    kind = attribute(group, "kind", "")
    known = kind in ("lazy", "streaming", "dense")
    require(known, f"{name} has the kind {kind!r:.40}, which this hgviz does not support")
    fields, attributes = rows_of("dense" if kind == "dense" else "lazy")
    values = schema.read_fields(group, attributes)
    require(values["committed"] == 1, f"{name} was never completed")
    names = values["layer"]
    if kind != "dense":
        names["activations"] = values["rule"].pop("activations")
    for part, value in names.items():
        if value != getattr(layer, part):
            what = f"{value!r:.40}, but {getattr(layer, part)!r:.40} in its spec"
            raise hdf5.Refused(f"the {part} of {name} is {what}")
    sizes = {"heads": heads}
    data = {
        field.path: Stored(schema.open_field(group, field, sizes), path)
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
        numbers = values.get(checksums)
        fits = numbers is None or len(numbers) == heads
        require(fits, f"{name} does not have one {checksums} for each of {heads} heads")
    signed = values["map"]["signed"]
    if kind != "dense":
        signed = any(ACTIVATIONS[activation].signed for activation in layer.activations)
    pyramids = _read_levels(group, path, sizes, signed)
    summaries = _read_summaries(group, data, path, values["summary32"], pyramids)
    more: dict[str, Any] = {part: data[part] for part in ("value_norms", "mixture") if part in data}
    if kind == "dense":
        weights: Any = data["weights"]
        causal = values["causal"]
        return DenseMap(weights, layer.heads, signed, causal, summaries, pyramids, **more)
    factors = replace(_read_factors(group, data, path, layer, values), **more)
    return LazyMap(factors, layer.heads, summaries, values["difference"], pyramids)


def _read_factors(
    group: h5py.Group, data: Datasets, path: str, layer: Layer, values: dict[str, Any]
) -> Factors:
    checked, parts = _read_checked(group, data, path, values["crc32"]), dict[str, Any]()
    for field in rows_of("lazy")[0]:
        if field.path in data and field.source.startswith(("factors.", "rule.")):
            array = checked.get(field.path, data[field.path])
            if array is data[field.path] and array.chunks is None and field.path != "proof/values":
                array = hdf5.read_numbers(array.dataset)
            parts[field.source] = array
    nested = schema.nest(parts)
    rule = values["rule"] | nested.pop("rule", {})
    rule["relative"] = _read_distance(group, data, rule.get("relative", {}), values["unit"])
    if rule.get("keep") is not None:
        rule["keep"] = rule["keep"].astype(bool)
    near, streams, heads = values["near"] or (), values["kind"] == "streaming", len(layer.heads)
    require(near or not streams or not heads, f"the attribute near of {group.name} is missing")
    windows = tuple(zip(near[::2], near[1::2], strict=False)) if streams else ()
    two_numbers = any(  # a row needs its norm besides its statistic
        norm is not None and ACTIVATIONS[activation].statistic != "none"
        for activation, norm in zip(layer.activations, rule["norms"], strict=False)
    )
    good = (
        (not streams or (values["causal"] and not rule["windowed"] and len(near) == 2 * heads))
        and all(sink == recent == 0 or (0 <= sink < 1 << 31 and 1 <= recent < 1 << 31)
                for sink, recent in windows)
        and len(rule["norms"]) == heads
        and ("norm" in data or not two_numbers)
        and ({"threshold", "kept"} <= {*data} or "topk" not in layer.activations)
    )  # fmt: skip
    require(good, f"{group.name} has a rule that this hgviz does not support")
    streaming = tuple(None if window == (0, 0) else window for window in windows)
    rule |= {"activations": layer.activations, "causal": values["causal"], "streaming": streaming}
    dtype = attribute(data["q"].dataset, "dtype", "")
    return Factors(rule=Rule(**rule), dtype=dtype, **nested["factors"])


def _read_checked(
    group: h5py.Group, data: Datasets, path: str, crc: tuple[int, ...]
) -> dict[str, Any]:
    """What the checksums of heads cover, compared by runs of rows where the file has their
    checksums, else head by head."""
    names = [field.path for field in rows_of("lazy")[0]
             if field.checksum == "heads" and field.path in data]  # fmt: skip
    heads, groups = len(crc), len(data["k"])
    shared = heads // groups if groups else 1
    parts: dict[str, Any]
    if "runs" in data:
        runs = hdf5.read_numbers(data["runs"].dataset)
        ends = np.cumsum([-(-data[name].shape[1] // RUN) for name in names])
        good = runs.shape[1] == ends[-1]
        require(good, f"{group.name} has checksums of {runs.shape[1]} runs instead of {ends[-1]}")
        pairs = zip(names, np.split(runs, ends[:-1], axis=1), strict=True)
        parts = {
            name: StoredRuns(data[name].dataset, path, part[::shared] if name == "k" else part)
            for name, part in pairs
        }
    else:
        good_heads: set[int] = set()

        def check(place: int) -> None:
            if place not in good_heads:
                total = checksum(
                    data[name].read_unchecked(place // shared if name == "k" else place)
                    for name in names
                )
                require(total == crc[place], f"{group.name} does not match its checksum")
                good_heads.add(place)

        # of their own, since arrays that knew themselves would keep the file open
        parts = {name: Stored(data[name].dataset, path, check) for name in names}
        parts["k"] = Stored(data["k"].dataset, path, lambda place: check(place * shared))
    if shared > 1:
        parts["k"] = Grouped(parts["k"], heads)
    return parts


def _read_distance(
    group: h5py.Group, data: Datasets, terms: dict[str, Any], unit: int | None
) -> Distance | None:
    """The relative positions of a layer: all terms of one kind, or none."""
    if not terms:
        return None
    kind, more = TERMS.get(tuple(terms)), dict[str, Any]()
    if kind is None:
        raise hdf5.Refused(f"{group.name} has missing or extra terms of relative positions")
    if kind is kinds.Diagonals:
        more["lowest"] = attribute(data["relative/diagonals"].dataset, "lowest", 0)
    elif kind is kinds.Relative:
        more["unit"] = unit = 1 if unit is None else unit
        good = unit == -1 or 1 <= unit < 1 << 31
        require(good, f"the attribute unit of {group.name} is {unit}")
    return kind(**terms, **more)


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
        with hdf5.reading(path):
            parts = {name: data[name][place] for name in names}
            same = crc is None or checksum(parts.values()) == crc[place]
            require(same, f"the summaries of {group.name} do not match their checksum")
            hist = None
            if "hist" in parts and pyramids is not None:
                hist = Histogram(parts["hist"], pyramids(place).ranges["max"])
            thumb = parts["thumb"].astype(np.float32)
            return Summary(thumb, parts["rowmax"], parts["entropy"], hist)

    return summary


class _Level:
    """One coarse level of one head, read where it is sliced."""

    def __init__(self, stored: Stored, place: int) -> None:
        self._stored, self._place = stored, place

    def __getitem__(self, at: tuple[slice, slice]) -> Codes:
        return self._stored[(self._place, *at)]


def _read_levels(
    group: h5py.Group, path: str, sizes: dict[str, int], signed: bool
) -> Pyramids | None:
    """What gives the coarse levels of the head at a place; None where the file has none."""
    rows = {row.source: row for row in schema.CAPTURE_FIELDS["/layers/000"]}
    limits = schema.read_field(group, rows["levels.ranges"], sizes)
    if limits is None:
        return None
    ranges = [[Range(float(floor), float(top), signed) for floor, top in both] for both in limits]
    good = all(limit.is_valid for both in ranges for limit in both)
    require(good, f"{group.name}/ranges has impossible values")
    shape = sizes["queries"], sizes["keys"]
    levels: dict[Reduce, dict[int, Stored]] = {reduce: {} for reduce in REDUCTIONS}
    for reduce in REDUCTIONS:
        inner = subgroup(group, reduce) if has(group, reduce) else None
        for zoom in range(HIGHEST_ZOOM + 1) if inner is not None else ():
            if has(inner, str(zoom)):
                down, across = (-(-size >> zoom) for size in shape)
                known = {"heads": sizes["heads"], "rows": down, "columns": across}
                field = replace(rows[f"levels.{reduce}"], path=str(zoom))
                levels[reduce][zoom] = Stored(schema.open_field(inner, field, known), path)

    def pyramid(place: int) -> Pyramid:
        heads = {
            reduce: {zoom: _Level(stored, place) for zoom, stored in zooms.items()}
            for reduce, zooms in levels.items()
        }
        return Pyramid(shape, heads, dict(zip(REDUCTIONS, ranges[place], strict=True)))

    return pyramid
