"""Numbers, texts and attributes on their way into a file, with checksums and little around them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from hgviz.maps import Grouped
from hgviz.store import packing
from hgviz.store.arrays import RUN, run_checksums

CHUNK_BYTES, RUN_BYTES = 64 << 10, 16 << 10  # of a chunk; of the least that is packed of a head


def store(
    group: h5py.Group,
    name: str,
    values: NDArray[Any],
    axis: int = -1,
    checked: bool = True,
    packs: bool = False,
) -> None:
    """A dataset cut along one axis, or whole where it would be one chunk.

    Chunks have checksums of their own; checked: what is whole gets one too. packs: chunks are
    packed, those of each place along the first axis for themselves.
    """
    little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    if little.nbytes <= CHUNK_BYTES:
        made = _whole(group, name, little)
        if checked and little.size:
            _attribute(made, b"crc32", np.asarray(zlib.crc32(little.data), "<i8"))
        return
    axis, itemsize = axis % little.ndim, little.dtype.itemsize
    if not packs:
        shape = _chunks(little.shape, axis, itemsize)
        group.create_dataset(name, data=little, chunks=shape, fletcher32=True)
        return
    shape = _chunks((1, *little.shape[1:]), axis, itemsize)
    target = packing.create(group, name, little.shape, little.dtype, shape)
    for place, part in enumerate(little):
        packing.write_chunks(target, place, part)


def store_heads(
    group: h5py.Group, name: str, values: Any, axis: int, crc: list[int], runs: list[list[int]]
) -> h5py.h5d.DatasetID:
    """(heads, rows, ...) head by head, cut along one axis; each head's checksum goes on in crc,
    those of its runs of rows follow in runs. Keys that heads share are kept once.
    """
    each = values.each if isinstance(values, Grouped) else 1
    values = values.stored if isinstance(values, Grouped) else values
    dtype = np.dtype(values.dtype).newbyteorder("<")
    small = int(np.prod(values.shape)) * dtype.itemsize <= CHUNK_BYTES
    if small:
        whole = np.empty(values.shape, dtype)
    else:
        target = packing.create(group, name, values.shape, dtype, _runs(values.shape, axis, dtype))
    for place in range(values.shape[0]):
        part = np.ascontiguousarray(values[place], dtype)
        if small:
            whole[place] = part
        else:
            packing.write_chunks(target, place, part)
        for head in range(place * each, (place + 1) * each):
            crc[head] = zlib.crc32(part.data, crc[head])
            runs[head] += run_checksums(part)
    return _whole(group, name, whole) if small else target.id


def store_text(group: h5py.Group, name: str, text: str) -> None:
    """A text as UTF-8 bytes."""
    store(group, name, np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8))


def store_json(group: h5py.Group, name: str, value: Any) -> None:
    """A JSON document as UTF-8 bytes."""
    store_text(group, name, json.dumps(value))


def store_attributes(
    identifier: h5py.h5g.GroupID | h5py.h5d.DatasetID, values: Mapping[str, Any]
) -> None:
    """Attributes: short texts, numbers, and tuples of whole numbers."""
    for name, value in values.items():
        _attribute(identifier, name.encode(), _plain(value))


def _plain(value: Any) -> NDArray[Any]:
    if isinstance(value, str):
        return np.asarray(np.bytes_(value.encode()))
    if isinstance(value, bool):
        return np.asarray(int(value))  # h5py would make an enumeration of it
    return np.asarray(value, "<i8") if isinstance(value, tuple) else np.asarray(value)


# --- by HDF5's own calls, since small texts are many and h5py's take three times as long ----------


def _whole(group: h5py.Group, name: str, values: NDArray[Any]) -> h5py.h5d.DatasetID:
    """Contiguous: a chunk would bring an index of 3 KB, however small it is."""
    path = group.id
    *parents, last = name.encode().split(b"/")
    for parent in parents:
        there = path.links.exists(parent)
        path = h5py.h5g.open(path, parent) if there else h5py.h5g.create(path, parent)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_obj_track_times(False)
    plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    kind = h5py.h5t.py_create(values.dtype, logical=True)
    made = h5py.h5d.create(path, last, kind, h5py.h5s.create_simple(values.shape), dcpl=plist)
    if values.size:
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, values)
    return made


def _attribute(identifier: Any, name: bytes, value: NDArray[Any]) -> None:
    scalar = value.shape == ()
    space = h5py.h5s.create(h5py.h5s.SCALAR) if scalar else h5py.h5s.create_simple(value.shape)
    kind = h5py.h5t.py_create(value.dtype, logical=True)
    made = h5py.h5a.create(identifier, name, kind, space)
    if value.size:
        made.write(value)


def _runs(shape: tuple[int, ...], axis: int, dtype: Any) -> tuple[int, ...]:
    """The same of one head in whole runs of rows, since these are what is read at a time."""
    head = (1, *shape[1:])
    run = RUN * max(1, RUN_BYTES // (RUN * _others(head, axis, dtype.itemsize)))
    return (*head[:axis], min(run, shape[axis]), *head[axis + 1 :])


def _others(shape: tuple[int, ...], axis: int, itemsize: int) -> int:
    """Bytes of a row across an axis."""
    return max(1, int(np.prod(shape)) // max(1, shape[axis]) * itemsize)


def _chunks(shape: tuple[int, ...], axis: int, itemsize: int) -> tuple[int, ...]:
    """Equal runs along an axis of about CHUNK_BYTES, with less than one row to spare in each."""
    runs = -(-shape[axis] // max(1, CHUNK_BYTES // _others(shape, axis, itemsize)))
    run = -(-shape[axis] // max(1, runs))
    return (*shape[:axis], max(1, run), *shape[axis + 1 :])
