"""Captures that were interrupted: what lies in OUT.part, and what of it is whole."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import h5py

from hgviz.core import Capture, HgvizError, Item
from hgviz.store import schema
from hgviz.store.hdf5 import (
    Refused,
    attribute,
    check_format,
    has,
    numbers,
    open_file,
    parsed,
    plain_dataset,
    reading,
    subgroup,
)
from hgviz.store.header import EMPTY_PROMPT, EMPTY_SPEC
from hgviz.store.items import read_items, require_item
from hgviz.store.opened import closed_on_error, open_whole, read_capture

MOST_MANIFEST = 1 << 20


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
    found = {index: _layer(part, index) for index in range(count)}
    for group in found.values():
        if group is not None:
            group.file.close()
    return {index for index, group in found.items() if group is not None}


def committed_items(part: Path, numbers: Iterable[int]) -> set[int]:
    """Which of these texts of an unfinished corpus are whole."""
    return {number for number in numbers if _whole_item(part, number)}


def open_part(part: Path, item: int) -> Capture:
    """What there is of an unfinished capture. Errors: as open_whole."""
    whole = left_beside(part)
    if whole is not None:
        return open_whole(str(whole), item)
    root = part / schema.ROOT
    if not root.is_file():
        if any(part.glob("*.h5")) or not part.name.endswith(schema.PART):
            raise Refused(f"there is no {schema.ROOT} in this folder")
        return Capture(EMPTY_SPEC, EMPTY_PROMPT, (), (), path=str(part))
    with closed_on_error(open_file(str(root))) as file:
        check_format(file, schema.FORMAT, schema.VERSION, "capture")
        if not has(file, "index"):
            return read_capture(file, str(part), item, partial(_layer, part))
        items = read_items(file)
    file.close()
    return _open_item(part, item, items)


def _open_item(part: Path, number: int, items: Sequence[Item]) -> Capture:
    there = _files(part)
    reached = tuple(one for one in items if one.number in there)
    if not reached:
        return Capture(EMPTY_SPEC, EMPTY_PROMPT, (), (), path=str(part))
    require_item(str(part), number, reached, whole=False)
    path = there[number]
    opened = open_part(path, 0) if path.is_dir() else open_whole(str(path))
    return replace(opened, path=str(part), item=number, items=reached)


def _files(part: Path) -> dict[int, Path]:
    """Where each text of an unfinished corpus lies that was begun: a file, or a folder."""
    found: dict[int, Path] = {}
    for entry in sorted(os.listdir(part), reverse=True):  # a file goes before its folder
        stem = entry.removesuffix(schema.PART)
        number = stem.removeprefix("item-").removesuffix(".h5")
        if number.isdecimal() and stem == schema.ITEM_FILE.format(int(number)):
            found[int(number)] = part / entry
    return found


def _whole_item(part: Path, number: int) -> bool:
    path = part / schema.ITEM_FILE.format(number)
    if not path.is_file():
        return False
    try:
        with reading(str(path)), open_file(str(path)) as file:
            return bool(attribute(file, "complete", 0) == 1)
    except HgvizError:
        return False


def _layer(part: Path, index: int) -> h5py.Group | None:
    path = part / schema.LAYER.format(index)
    if not path.is_file():
        return None
    try:
        with reading(str(path)), closed_on_error(open_file(str(path))) as file:
            group = subgroup(file, "layer")
            if attribute(group, "committed", 0) != 1:
                raise Refused("it was never completed")
            return group
    except HgvizError:
        return None


# --- what is left when a file is finished ---------------------------------------------------------


def left_beside(part: Path) -> Path | None:
    """The finished file that a folder was merged into but not removed after, as when the process
    is killed between the two; None for a folder that still has something to give.
    """
    whole = part.with_name(part.name.removesuffix(schema.PART))
    if whole == part or not whole.is_file():
        return None
    try:
        with reading(str(whole)), open_file(str(whole)) as file:
            if attribute(file, "complete", 0) != 1:
                return None
            root = part / schema.ROOT
            if not root.is_file():
                return None if (part / schema.MANIFEST).exists() else whole
            with open_file(str(root)) as other:
                return whole if _saying(file) == _saying(other) else None
    except (HgvizError, Refused, OSError, RuntimeError, ValueError, KeyError, TypeError):
        return None


def _saying(file: h5py.File) -> list[Any]:
    """What a file says it is of, and when that was begun."""
    made = parsed(file, "made")
    made.pop("seconds", None)
    names = ("spec", "off", "streaming", "index", "prompt/ids", "prompt/text", "target/ids",
             "target/text")  # fmt: skip
    found = [
        numbers(plain_dataset(file, name, ("u1", "i8"))).tobytes() if has(file, name) else None
        for name in names
    ]
    return [made, *found]
