"""Opening captures: finished files, and folders of captures that were interrupted."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from hgviz.core import Capture, HgvizError, Layer, Map
from hgviz.maps import DenseMap, LazyMap
from hgviz.store import schema
from hgviz.store.hdf5 import reading, says_format
from hgviz.store.interrupted import open_part, read_manifest
from hgviz.store.opened import open_whole


def open_capture(path: str | Path, item: int = 0) -> Capture:
    """A capture whose maps are read from the file when they are looked at.

    item: which text, of a corpus that was captured in one file. Opens OUT.h5 and, of an
    interrupted capture, the folder OUT.h5.part: layers that were not committed are None, texts
    that were not begun are not listed, and a folder without any reads as a capture with no layers.
    Raises HgvizError for everything that is not a capture, damaged, or unsafe.
    """
    path = str(path)
    if not os.path.lexists(path):
        raise HgvizError(f"there is no {path}: no file or folder has that name", "Check the path")
    with reading(path):
        return open_part(Path(path), item) if os.path.isdir(path) else open_whole(path, item)


def is_capture(path: str | Path) -> bool:
    """Whether a path is, or tries to be, a capture: its own format, or HDF5 that cannot be read."""
    path = str(path)
    if os.path.isdir(path):
        return path.rstrip("/").endswith(schema.PART) or read_manifest(Path(path)) is not None
    try:
        return says_format(path, schema.FORMAT)
    except HgvizError as error:
        return bool(error.details)  # HDF5 could not open it: opening says why


def describe(path: str | Path) -> dict[str, Any]:
    """What a capture holds, as `hgviz info --json` prints it. Errors: HgvizError."""
    capture = open_capture(path)
    spec = capture.spec
    rules = [one.factors.rule for one in capture.maps if isinstance(one, LazyMap)]
    uniform = any(rule.empty_rows == "uniform" for rule in rules)
    apart = any(one.apart for one in spec.levels)
    parts = any(one.parts > 1 for one in spec.levels)
    levels = [
        {"index": one.index, "stride": one.stride, "key_shift": one.shift,
         "sequence": one.sequence, **({"apart": one.apart} if apart else {}),
         **({"parts": one.parts} if parts else {})}
        for one in spec.levels
    ]  # fmt: skip
    synthesised = any(one.scores != "dot" for one in spec.layers)
    grouped = any(one.shared > 1 for one in spec.layers)
    made = asdict(capture.made)
    narrowed = [_narrowed(one) for one in capture.maps]
    known = dict.fromkeys(name for one in narrowed for name in one)
    return {
        "kind": "capture",
        "family": spec.family,
        "name": spec.name,
        "form": spec.form,
        "goal": spec.goal,
        "labels": list(spec.labels),
        "levels": levels,
        "layers": [
            {
                **_described(layer, one),
                **({"key_groups": len(layer.groups)} if grouped else {}),
                **({"scores": layer.scores} if synthesised else {}),
                **{name: limits.get(name) for name in known},
            }
            for layer, one, limits in zip(spec.layers, capture.maps, narrowed, strict=True)
        ],
        "items": max(1, len(capture.items)),
        "tokens": len(capture.prompt),
        "tokens_of_items": sum(one.tokens for one in capture.items) or None,
        "target_tokens": None if capture.target is None else len(capture.target),
        "complete": capture.complete and not os.path.isdir(capture.path),
        "off": sorted(map(str, capture.off)),
        **capture.streaming.to_dict(),
        "boundaries": _boundaries(capture),
        "masking": capture.made.masking,
        "empty_rows": "uniform" if uniform else "zeros",
        "provenance": {
            **made,
            "versions": dict(capture.made.versions),
            "model": spec.digest,
            "text": capture.prompt.digest,
            "target": None if capture.target is None else capture.target.digest,
        },
    }


def _boundaries(capture: Capture) -> str | None:
    """Who said where segments end, None where there are none."""
    if all(one.stride is not None for one in capture.spec.levels):
        return None
    return "found by the model" if capture.prompt.boundaries is None else "given"


def _narrowed(one: Map | None) -> dict[str, Any]:
    """What a layer's rule says besides which keys come later: how far a query sees, "4 back" or
    "3 both ways", the keys of a chunk, where scores are capped, and what sink logits take of a row
    on average over all heads."""
    if not isinstance(one, LazyMap):
        return {}
    rule = one.factors.rule
    band = rule.band
    ahead = "both ways" if band and band[0] == band[1] else f"back, {band[1]} ahead" if band else ""
    back = "back" if rule.causal or (band and not band[1]) else ahead
    shares = [one.factors.sink_share(place) for place in range(len(one.heads))]
    known = [share for share in shares if share is not None]
    found = {
        "window": f"{band[0]} {back}" if band else None, "chunk": rule.chunk,
        "softcap": rule.softcap, "sink_share": float(np.mean(known)) if known else None,
    }  # fmt: skip
    return {name: value for name, value in found.items() if value is not None}


def _described(layer: Layer, one: Map | None) -> dict[str, Any]:
    return {
        "index": layer.index,
        "name": layer.name,
        "role": layer.role,
        "level": layer.level,
        "key_level": layer.key_level,
        "heads": len(layer.heads),
        "queries": None if one is None else one.shape[1],
        "keys": None if one is None else one.shape[2],
        "activations": list(layer.activations),
        "computed_from": None
        if one is None
        else "weights"
        if isinstance(one, DenseMap)
        else "q, k",
        "verify_max_abs": one.verify_max_abs if isinstance(one, LazyMap) else None,
    }
