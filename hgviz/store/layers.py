"""One layer of a capture: its maps, with everything about them checked but the numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast, get_args

import h5py
import numpy as np

from hgviz.activations import ACTIVATIONS
from hgviz.core import Layer, Map
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
from hgviz.maps.overview import THUMB, Histogram, Pyramid
from hgviz.maps.rule import Distance, Norm
from hgviz.store import overviews, schema
from hgviz.store.arrays import RUN, Packed, Stored, StoredRuns, bounded, checksum, head_check
from hgviz.store.hdf5 import Packing, Refused, attribute, dataset, has, numbers, reading

Found = dict[str, h5py.Dataset | Packed]
Pyramids = Callable[[int], Pyramid]


def read_layer(group: h5py.Group, path: str, layer: Layer, positions: int) -> Map:
    """The maps in a group. Raises Refused for what is not as the schema and the spec say."""
    _agree(group, layer)
    kind = attribute(group, "kind", "")
    if kind not in ("lazy", "streaming", "dense"):
        raise Refused(f"{group.name} is of the kind {kind!r:.40}, which this hgviz does not know")
    rows = schema.DENSE if kind == "dense" else schema.LAZY
    if kind != "dense" and has(group, "relative"):
        kinds = {"relative/curve": schema.QUADRATIC, "relative/diagonals": schema.DIAGONALS}
        more = next((one for name, one in kinds.items() if has(group, name)), schema.RELATIVE)
        rows = {**rows, **more}
    sizes = {"heads": len(layer.heads), "two": 2, "three": 3, "codes": schema.CODES}
    found = {name: dataset(group, name, row, sizes, _packing(name)) for name, row in rows.items()}
    data: Found = {name: bounded(one, path) for name, one in found.items() if one is not None}
    if sizes.get("mixtures", 1) not in (1, sizes["heads"]):
        raise Refused(f"{group.name} has {sizes['mixtures']} mixtures for {sizes['heads']} heads")
    groups = sizes.get("groups", sizes["heads"])
    if (not groups) != (not sizes["heads"]) or (groups and sizes["heads"] % groups):
        raise Refused(f"{group.name} has {groups} groups of keys for {sizes['heads']} heads")
    if sizes["queries"] < positions:
        raise Refused(f"{group.name} has {sizes['queries']} rows for {positions} positions")
    if max(sizes["thumb_rows"], sizes["thumb_columns"]) > THUMB:
        raise Refused(f"{group.name} has thumbnails of more than {THUMB} cells a side")
    if kind != "dense":
        factors = _factors(group, data, path, layer)
        difference = attribute(group, "verify_max_abs", 0.0)
        signed = any(ACTIVATIONS[name].signed for name in layer.activations)
        pyramids = overviews.read(group, path, sizes, signed)
        summaries = _summaries(group, data, path, len(layer.heads), pyramids)
        return LazyMap(factors, layer.heads, summaries, difference, pyramids)
    signed, causal = (attribute(group, name, False) for name in ("signed", "causal"))
    weights: Any = data["weights"]
    pyramids = overviews.read(group, path, sizes, signed)
    summaries = _summaries(group, data, path, len(layer.heads), pyramids)
    norms, mixture = (_whole(data, name, path) for name in schema.VALUES)
    return DenseMap(weights, layer.heads, signed, causal, summaries, pyramids, norms, mixture)


def _packing(name: str) -> Packing:
    return "always" if name == "weights" else "large" if name in schema.PACKABLE else "never"


def _agree(group: h5py.Group, layer: Layer) -> None:
    """What a layer says of itself is what the spec says of it."""
    for name in ("name", "role", "level", "key_level", "heads"):
        expected = getattr(layer, name)
        value = attribute(group, name, expected)
        if value != expected:
            raise Refused(
                f"the {name} of {group.name} is {value!r:.40}, its spec says {expected!r:.40}"
            )
    if attribute(group, "committed", 0) != 1:
        raise Refused(f"{group.name} was never completed")


def _factors(group: h5py.Group, data: Found, path: str, layer: Layer) -> Factors:
    crc = attribute(group, "crc32", ())
    if len(crc) != len(layer.heads):
        raise Refused(f"{group.name} has {len(crc)} checksums for {len(layer.heads)} heads")
    every = (*schema.RELATIVE, *schema.QUADRATIC, *schema.DIAGONALS)
    terms = [name for name in every if name in data]
    summed = [*(name for name in schema.SUMMED if name in data), *terms]
    parts = _checked(group, data, path, summed, crc)
    relative: Distance | None = None
    if "relative/curve" in parts:
        relative = Quadratic(parts["relative/curve"])
    elif "relative/diagonals" in parts:
        lowest = attribute(data["relative/diagonals"], "lowest", 0)
        relative = Diagonals(parts["relative/diagonals"], lowest)
    elif terms:
        weight, bias, content, position = (parts[name] for name in terms)
        backwards = attribute(group, "unit", 1) == -1  # since 1.5
        unit = -1 if backwards else _positive(group, "unit")
        relative = Relative(weight, bias, content, position, unit)
    keep = numbers(data["keep"]).astype(bool) if "keep" in data else None
    kept = data.get("kept")
    return Factors(
        q=parts["q"],
        k=parts["k"],
        stat=parts["stat"],
        rule=_rule(group, layer, keep, relative, data),
        proof_rows=numbers(data["proof/rows"]),
        proof_values=cast(Any, Stored(data["proof/values"], path)),
        dtype=attribute(data["q"], "dtype", ""),
        norm=parts.get("norm"),
        threshold=parts.get("threshold"),
        kept=None if kept is None else _list(kept, path),
        value_norms=_whole(data, "value_norms", path),
        mixture=_whole(data, "mixture", path),
    )


def _checked(
    group: h5py.Group, data: Found, path: str, names: list[str], crc: tuple[int, ...]
) -> dict[str, Any]:
    """The factors, compared run by run where the file has checksums of runs, else head by head."""
    heads, groups = len(crc), data["k"].shape[0]
    each = heads // groups if groups else 1
    if "runs" not in data:
        whole = [
            Grouped(data[name], heads) if name == "k" and groups else data[name] for name in names
        ]
        check = head_check(whole, crc)
        found: dict[str, Any] = {name: Stored(data[name], path, check) for name in names}
        if each > 1:
            keys = Stored(data["k"], path, lambda place: check(place * each))
            found["k"] = Grouped(keys, heads)
        return found
    runs = numbers(data["runs"])
    ends = np.cumsum([-(-data[name].shape[1] // RUN) for name in names])
    if runs.shape[1] != ends[-1]:
        raise Refused(f"{group.name} has checksums of {runs.shape[1]} runs instead of {ends[-1]}")
    parts = np.split(runs, ends[:-1], axis=1)
    found = {
        name: StoredRuns(data[name], path, part[::each] if name == "k" else part)
        for name, part in zip(names, parts, strict=True)
    }
    if each > 1:
        found["k"] = Grouped(found["k"], heads)
    return found


def _whole(data: Found, name: str, path: str) -> Any:
    return Stored(data[name], path) if name in data else None


def _list(kept: h5py.Dataset, path: str) -> Any:
    return numbers(kept) if kept.chunks is None else Stored(kept, path)


def _rule(
    group: h5py.Group, layer: Layer, keep: Any, relative: Distance | None, data: Found
) -> Rule:
    scale, empty_rows = attribute(group, "scale", 0.0), attribute(group, "empty_rows", "")
    activations = tuple(attribute(group, "activations", "").split())
    norms = tuple(None if n == "-" else n for n in attribute(group, "norms", "").split())
    band = attribute(group, "band", (0, 0)) if "band" in group.attrs else None
    softcap = attribute(group, "softcap", 1.0) if "softcap" in group.attrs else None
    causal, windowed = attribute(group, "causal", False), attribute(group, "windowed", False)
    streams = attribute(group, "kind", "") == "streaming"
    few = attribute(group, "near", ()) if streams else ()
    near = tuple(zip(few[::2], few[1::2], strict=False))
    good = (
        math.isfinite(scale)
        and (band is None or (len(band) == 2 and 0 <= min(band) <= max(band) < 1 << 31))
        and (softcap is None or 0 < softcap < math.inf)
        and (not streams or (causal and not windowed and len(few) == 2 * len(layer.heads)))
        and all(one == (0, 0) or (0 <= one[0] < 1 << 31 and 1 <= one[1] < 1 << 31) for one in near)
        and empty_rows in ("zeros", "uniform")
        and activations == layer.activations
        and len(norms) == len(layer.heads)
        and set(norms) <= {None, *get_args(get_args(Norm)[0])}
        and ("norm" in data or not any(map(_two_statistics, activations, norms)))
        and ({"threshold", "kept"} <= {*data} or "topk" not in activations)
    )
    if not good:
        raise Refused(f"{group.name} has a rule that this hgviz does not know")
    return Rule(
        scale=scale,
        activations=activations,
        norms=norms,
        stride_q=_positive(group, "stride_q"),
        stride_k=_positive(group, "stride_k"),
        causal=causal,
        windowed=windowed,
        empty_rows=empty_rows,
        keep=keep,
        relative=relative,
        top_k=_positive(group, "top_k") if "top_k" in group.attrs else None,
        band=None if band is None else (band[0], band[1]),
        chunk=_positive(group, "chunk") if "chunk" in group.attrs else None,
        softcap=softcap,
        sinks=numbers(data["sinks"]) if "sinks" in data else None,
        streaming=tuple(one if one != (0, 0) else None for one in near),
    )


def _two_statistics(activation: str, norm: Norm) -> bool:
    """Whether a row needs its norm besides another number."""
    return norm is not None and ACTIVATIONS[activation].statistic != "none"


def _positive(group: h5py.Group, name: str) -> int:
    value: int = attribute(group, name, 1)
    if not 1 <= value < 1 << 31:
        raise Refused(f"the attribute {name} of {group.name} is {value}")
    return value


def _summaries(
    group: h5py.Group, data: Found, path: str, heads: int, pyramids: Pyramids | None
) -> Callable[[int], Summary]:
    """What gives the summary of the head stored at a place."""
    crc = attribute(group, "summary32", ()) if "summary32" in group.attrs else None  # since 1.3
    if crc is not None and len(crc) != heads:
        raise Refused(f"{group.name} has {len(crc)} checksums of summaries for {heads} heads")

    def summary(place: int) -> Summary:
        with reading(path):
            found = {name: data[name][place] for name in schema.SUMMARY if name in data}
            if crc is not None and checksum(found.values()) != crc[place]:
                raise Refused(f"the summaries of {group.name} are not what was written to it")
            hist = None
            if "hist" in found and pyramids is not None:
                hist = Histogram(found["hist"], pyramids(place).ranges["max"])
            thumb = found["thumb"].astype(np.float32)
            return Summary(thumb, found["rowmax"], found["entropy"], hist)

    return summary
