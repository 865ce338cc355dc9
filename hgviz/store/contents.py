"""What is written where in a capture: the schema, from the writer's side."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from hgviz.core import (
    NO_STREAMING,
    HeadSet,
    Integers,
    Layer,
    ModelSpec,
    Prompt,
    Provenance,
    Streaming,
)
from hgviz.maps import DenseMap, Diagonals, Factors, LazyMap, Quadratic, Relative, Summary
from hgviz.maps.overview import lowest_zoom
from hgviz.maps.tiles import Blocks, tile_blocks
from hgviz.store import overviews, schema
from hgviz.store.arrays import (
    checksum,
    store,
    store_attributes,
    store_heads,
    store_json,
    store_text,
)
from hgviz.store.header import spec_row

TILE_CHUNK = 256


def mark(file: h5py.File) -> None:
    """Say that a file is a capture, and of which version."""
    file.attrs["format"] = np.bytes_(schema.FORMAT)
    file.attrs["format_version"] = np.array(schema.VERSION, "<i4")


def write_root(
    file: h5py.File,
    spec: ModelSpec,
    off: HeadSet,
    made: Provenance,
    streaming: Streaming = NO_STREAMING,
) -> None:
    """What a file says of the model, whatever it read."""
    mark(file)
    store_json(file, "spec", spec_row(spec))
    store_json(file, "off", sorted(off))
    if streaming.heads:
        few = {"heads": sorted(streaming.heads), "sink": streaming.sink, "recent": streaming.recent}
        store_json(file, "streaming", few)
    store_json(file, "made", asdict(made))


def write_texts(
    group: h5py.Group, prompt: Prompt, spans: tuple[Integers, ...], target: Prompt | None = None
) -> None:
    """What the model read, and the positions it made of it."""
    _write_prompt(group.create_group("prompt"), prompt)
    if target is not None:
        _write_prompt(group.create_group("target"), target)
    for level, one in enumerate(spans):
        store(group, f"levels/{level}/spans", np.asarray(one, "<i8").reshape(-1, 2))


def write_output(group: h5py.Group, logits: NDArray[Any] | None) -> None:
    """What the model gave."""
    if logits is not None:
        values = np.asarray(logits)
        if values.dtype != np.float64:
            values = values.astype(np.float32)
        store(group, "output/logits", values, axis=0)


def layer_maps(layer: Layer, given: Factors | DenseMap) -> LazyMap | DenseMap:
    """The maps of a layer. Errors: ValueError where they have other heads."""
    maps = LazyMap(given, layer.heads) if isinstance(given, Factors) else given
    if maps.heads != layer.heads:
        raise ValueError(f"layer {layer.index} has the heads {layer.heads}, not {maps.heads}")
    return maps


def _write_prompt(group: h5py.Group, prompt: Prompt) -> None:
    store_text(group, "text", prompt.text)
    store_json(group, "pieces", prompt.pieces)
    store(group, "ids", np.asarray(prompt.ids, "<i8"))
    store(group, "spans", np.asarray(prompt.spans, "<i8").reshape(-1, 2))
    optional = {
        "attention_mask": "u1", "token_type_ids": "<i8", "states": "<f4", "boundaries": "u1",
        "position_ids": "<i8",
    }  # fmt: skip
    for name, dtype in optional.items():
        if (values := getattr(prompt, name)) is not None:
            store(group, name, np.asarray(values, dtype), axis=0)
    if (signal := prompt.signal) is not None:
        store(group, "signal", np.asarray(signal.values, "<f4"), axis=0)
        store(group, "seconds", np.array([signal.seconds], "<f8"))
        if signal.picture is not None:
            store(group, "picture", np.asarray(signal.picture, "u1"), axis=0)
        if signal.grid is not None:
            store(group, "grid", np.array(signal.grid, "<i8"))


def write_layer(
    group: h5py.Group,
    layer: Layer,
    maps: LazyMap | DenseMap,
    settle: bool = False,
    blocks: Blocks = tile_blocks,
) -> None:
    """One layer; that it is committed is the last thing said.

    settle: store the statistics that `maps.settled` would give, found while looking at the maps.
    blocks: how their weights are computed.
    """
    attributes: dict[str, Any] = {
        "name": layer.name, "role": layer.role, "level": layer.level,
        "key_level": layer.key_level, "heads": layer.heads, "signed": maps.signed,
        "causal": layer.causal,
    }  # fmt: skip
    found = overviews.write(group, maps, settle, blocks)
    if isinstance(maps, LazyMap):
        factors = maps.factors if found.stat is None else replace(maps.factors, stat=found.stat)
        kind = (
            "streaming" if any(factors.rule.streaming) else "lazy"
        )  # which programs before 1.8 refuse
        attributes |= {"kind": kind, **_write_factors(group, factors)}
        attributes["verify_max_abs"] = found.difference
    elif isinstance(maps, DenseMap):
        attributes |= {"kind": "dense", "causal": maps.causal}
        _write_weights(group, maps)
    if maps.value_norms is not None:
        store(group, "value_norms", np.asarray(maps.value_norms[...], "<f4"), axis=1, packs=True)
    if maps.mixture is not None:
        store(group, "mixture", np.asarray(maps.mixture[...], "<f4"), axis=2)
    attributes |= _write_summaries(group, maps, found.summaries)
    store_attributes(group.id, {**attributes, "committed": 1})


def share_mixtures(layers: h5py.Group) -> None:
    """Keep once what the slots of several layers are mixed of alike: hard links to the first's."""
    mixed = [one for one in layers.values() if "mixture" in one]
    for layer in mixed[1:]:
        if np.array_equal(layer["mixture"], mixed[0]["mixture"]):
            del layer["mixture"]
            layer["mixture"] = mixed[0]["mixture"]


def _write_factors(group: h5py.Group, factors: Factors) -> dict[str, Any]:
    """q, k, statistic, relative terms and proof; returns the attributes that go with them."""
    rule = factors.rule
    crc = [0] * factors.q.shape[0]
    runs: list[list[int]] = [[] for _ in crc]
    for name in schema.SUMMED:
        if (values := getattr(factors, name)) is not None:
            made = store_heads(group, name, values, 1, crc, runs)
            dtype = factors.dtype if name in ("q", "k") else values.dtype.name
            store_attributes(made, {"dtype": dtype})
    if factors.kept is not None:
        store(group, "kept", np.asarray(factors.kept[...], "<i4").reshape(-1, 3), axis=0)
    if rule.keep is not None:
        store(group, "keep", np.asarray(rule.keep, "u1"))
    if rule.sinks is not None:
        store(group, "sinks", np.asarray(rule.sinks))
    if isinstance(rule.relative, Diagonals):
        values = rule.relative.values
        made = store_heads(group, "relative/diagonals", values, 1, crc, runs)
        store_attributes(made, {"lowest": rule.relative.lowest})
    elif rule.relative is not None:
        quadratic = isinstance(rule.relative, Quadratic)
        for name in ("curve",) if quadratic else ("weight", "bias", "content", "position"):
            values = getattr(rule.relative, name)
            store_heads(group, f"relative/{name}", values, len(values.shape) - 1, crc, runs)
    if lowest_zoom(factors.q.shape[1], factors.k.shape[1]) is not None:
        store(group, "runs", np.array(runs, "<u4"), axis=0)
    store(group, "proof/rows", np.asarray(factors.proof_rows[...], "<i8"))
    proof = np.asarray(factors.proof_values[...], "<f4")
    store(group, "proof/values", proof, axis=2, checked=False, packs=True)
    return {
        "stride_q": rule.stride_q, "stride_k": rule.stride_k, "scale": float(rule.scale),
        "causal": rule.causal, "windowed": rule.windowed, "empty_rows": rule.empty_rows,
        "activations": " ".join(rule.activations),
        "norms": " ".join(norm or "-" for norm in rule.norms),
        **{name: value for name in ("top_k", "band", "chunk", "softcap")
           if (value := getattr(rule, name)) is not None},
        **({"near": sum((window or (0, 0) for window in rule.streaming), ())}
           if any(rule.streaming) else {}),
        "unit": rule.relative.unit if isinstance(rule.relative, Relative) else 1,
        "crc32": tuple(crc),
    }  # fmt: skip


def _write_summaries(
    group: h5py.Group, maps: LazyMap | DenseMap, found: list[Summary]
) -> dict[str, Any]:
    """What is known of each head at a glance; returns the attribute that goes with it."""
    limit = np.finfo(np.float16).max
    shape = found[0].thumb.shape if found else (0, 0)
    thumbs = np.array([one.thumb for one in found], np.float32).reshape(len(found), *shape)
    rows = (len(found), maps.shape[1])
    stored: dict[str, NDArray[Any]] = {
        "thumb": np.clip(thumbs, -limit, limit).astype("<f2"),
        "rowmax": np.array([one.rowmax for one in found], "<f4").reshape(rows),
        "entropy": np.array([one.entropy for one in found], "<f4").reshape(rows),
    }
    if found and all(one.hist is not None for one in found):
        stored["hist"] = np.array([one.hist.counts for one in found if one.hist], "<u4")
    for name, values in stored.items():
        store(group, name, values, axis=1, checked=False, packs=True)
    places = range(len(found))
    return {"summary32": tuple(checksum(one[at] for one in stored.values()) for at in places)}


def _write_weights(group: h5py.Group, maps: DenseMap) -> None:
    """Tiles of a dense map; those above the diagonal of a causal one are never written."""
    array = maps.array
    side = min(TILE_CHUNK, max(1, *array.shape[1:]))
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
