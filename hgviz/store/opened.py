"""A capture as it is read: a text with its maps, alone in its file or one of a corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import h5py

from hgviz.core import Capture
from hgviz.store.hdf5 import Refused, attribute, check_format, open_file, subgroup
from hgviz.store.header import (
    read_levels,
    read_logits,
    read_made,
    read_off,
    read_prompt,
    read_spec,
    read_streaming,
    read_target,
)
from hgviz.store.items import group_of, read_items, require_item
from hgviz.store.layers import read_layer
from hgviz.store.schema import FORMAT, VERSION

LayerOf = Callable[[int], h5py.Group | None]


def open_whole(path: str, item: int = 0) -> Capture:
    """A text of a finished file. Errors: HgvizError, Refused and whatever HDF5 raises."""
    with closed_on_error(open_file(path)) as file:
        check_format(file, FORMAT, VERSION, "capture")
        if attribute(file, "complete", 0) != 1:
            raise Refused("it was never completed")
        return read_capture(file, path, item)


def read_capture(
    file: h5py.File, path: str, item: int = 0, layer_of: LayerOf | None = None
) -> Capture:
    """A text of an open file; layer_of: where its layers lie if they are not in it."""
    items = read_items(file)
    require_item(path, item, items)
    spec, group = read_spec(file), group_of(file, item) if items else file
    prompt, target = read_prompt(group), read_target(group, spec)
    spans = read_levels(group, spec, prompt, target)
    if layer_of is None:
        layers = subgroup(group, "layers")
        groups = [subgroup(layers, f"{one.index:03}") for one in spec.layers]
    else:
        groups = [layer_of(one.index) for one in spec.layers]
    maps = tuple(
        None if found is None else read_layer(found, path, layer, len(spans[layer.level]))
        for layer, found in zip(spec.layers, groups, strict=True)
    )
    logits = read_logits(group, path, spec)
    return Capture(
        spec, prompt, spans, maps, read_off(file), logits, read_made(file), path, target, item,
        items, read_streaming(file, spec),
    )  # fmt: skip


@contextmanager
def closed_on_error(file: h5py.File) -> Iterator[h5py.File]:
    """A file stays open as long as its maps are in use, but not when there are none."""
    try:
        yield file
    except BaseException:
        file.close()
        raise
