"""Opening captures: finished files, and folders of captures that were interrupted."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import h5py

from hgviz.core import Capture, HgvizError, Layer, Map
from hgviz.maps import DenseMap, LazyMap
from hgviz.store import schema
from hgviz.store.guard import (
    MAGIC,
    Refused,
    attribute,
    check_format,
    open_file,
    reading,
    subgroup,
)
from hgviz.store.header import (
    EMPTY_PROMPT,
    EMPTY_SPEC,
    read_levels,
    read_logits,
    read_made,
    read_off,
    read_prompt,
    read_spec,
    read_target,
)
from hgviz.store.layers import read_layer

MOST_MANIFEST = 1 << 20


def open_capture(path: str | Path) -> Capture:
    """A capture whose maps are read from the file when they are looked at.

    Opens OUT.h5 and, of an interrupted capture, the folder OUT.h5.part: layers that were not
    committed are None, and a folder without any reads as a capture with no layers.
    Raises HgvizError for everything that is not a capture, damaged, or unsafe.
    """
    path = str(path)
    if not os.path.lexists(path):
        raise HgvizError(f"there is no {path}", "no file or folder has that name", "Check the path")
    with reading(path):
        if os.path.isdir(path):
            return _open_part(Path(path))
        with _closed_on_error(open_file(path)) as file:
            check_format(file)
            if attribute(file, "complete", 0) != 1:
                raise Refused("it was never completed")
            layers = subgroup(file, "layers")
            return _opened(file, path, lambda index: subgroup(layers, f"{index:03}"))


def is_capture(path: str | Path) -> bool:
    """Whether a path is, or tries to be, a capture: its own format, or HDF5 that cannot be read."""
    path = str(path)
    if os.path.isdir(path):
        return path.rstrip("/").endswith(schema.PART) or read_manifest(Path(path)) is not None
    try:
        if not os.path.isfile(path):  # to open a pipe is to wait for its writer
            return False
        with open(path, "rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                return False
    except OSError:
        return False
    try:
        with reading(path), open_file(path) as opened:
            return bool(attribute(opened, "format", "") == schema.FORMAT)
    except HgvizError as error:
        return bool(error.details)  # HDF5 could not open it: opening says why


def describe(path: str | Path) -> dict[str, Any]:
    """What a capture holds, as `hgviz info --json` prints it. Errors: HgvizError."""
    capture = open_capture(path)
    spec = capture.spec
    rules = [one.factors.rule for one in capture.maps if isinstance(one, LazyMap)]
    uniform = any(rule.empty_rows == "uniform" for rule in rules)
    levels = [
        {"index": one.index, "stride": one.stride, "key_shift": one.shift, "sequence": one.sequence}
        for one in spec.levels
    ]
    made = asdict(capture.made)
    return {
        "kind": "capture",
        "family": spec.family,
        "name": spec.name,
        "form": spec.form,
        "goal": spec.goal,
        "labels": list(spec.labels),
        "levels": levels,
        "layers": [
            _described(layer, one) for layer, one in zip(spec.layers, capture.maps, strict=True)
        ],
        "items": 1,
        "tokens": len(capture.prompt),
        "target_tokens": None if capture.target is None else len(capture.target),
        "complete": capture.complete and not os.path.isdir(path),
        "off": sorted(map(str, capture.off)),
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


# --- interrupted captures -------------------------------------------------------------------------


def read_manifest(part: Path) -> dict[str, Any] | None:
    """What an unfinished capture is of; None where there is no manifest to read."""
    manifest = part / schema.MANIFEST
    try:
        if not manifest.is_file() or manifest.stat().st_size > MOST_MANIFEST:
            return None
        found = json.loads(manifest.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    good = isinstance(found, dict) and found.get("format") == schema.FORMAT
    return found if good and (part / schema.ROOT).is_file() else None


def committed_layers(part: Path, count: int) -> set[int]:
    """The layers of an unfinished capture that are whole."""
    found = {index: _part_layer(part, index) for index in range(count)}
    for group in found.values():
        if group is not None:
            group.file.close()
    return {index for index, group in found.items() if group is not None}


def _part_layer(part: Path, index: int) -> h5py.Group | None:
    path = part / schema.LAYER.format(index)
    if not path.is_file():
        return None
    try:
        with reading(str(path)), _closed_on_error(open_file(str(path))) as file:
            group = subgroup(file, "layer")
            if attribute(group, "committed", 0) != 1:
                raise Refused("it was never completed")
            return group
    except HgvizError:
        return None


def _open_part(part: Path) -> Capture:
    root = part / schema.ROOT
    if not root.is_file():
        if any(part.glob("*.h5")) or not part.name.endswith(schema.PART):
            raise Refused(f"there is no {schema.ROOT} in this folder")
        return Capture(EMPTY_SPEC, EMPTY_PROMPT, (), (), path=str(part))
    with _closed_on_error(open_file(str(root))) as file:
        check_format(file)
        return _opened(file, str(part), partial(_part_layer, part))


@contextmanager
def _closed_on_error(file: h5py.File) -> Iterator[h5py.File]:
    """A file stays open as long as its maps are in use, but not when there are none."""
    try:
        yield file
    except BaseException:
        file.close()
        raise


# --- what is where --------------------------------------------------------------------------------


def _opened(file: h5py.File, path: str, layer_of: Callable[[int], h5py.Group | None]) -> Capture:
    spec, prompt = read_spec(file), read_prompt(file)
    target = read_target(file, spec)
    spans = read_levels(file, spec, prompt, target)
    groups = [layer_of(layer.index) for layer in spec.layers]
    maps = tuple(
        None if group is None else read_layer(group, path, layer, len(spans[layer.level]))
        for layer, group in zip(spec.layers, groups, strict=True)
    )
    return Capture(
        spec, prompt, spans, maps, read_off(file), read_logits(file, spec), read_made(file), path,
        target,
    )  # fmt: skip
