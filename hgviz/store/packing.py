"""Chunks that are packed as HDF5's own filters, shuffle and deflate, read them.

Of float32 the bytes of signs and exponents repeat, those of mantissas hardly do: bytes are put
together by their place in a number, and each of these planes is deflated or kept as it is. So a
chunk of queries loses a sixth, and is written and read nearly as fast as without packing.
"""

from __future__ import annotations

import itertools
import math
import struct
import zlib
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from hgviz.maps.tiles import in_threads
from hgviz.store.guard import Refused, reading

WORTH = 0.8  # of its bytes: a plane that would keep more is faster to read as it is
_SAMPLED = 8  # every so many bytes tell
_HEADER, _STORED = b"\x78\x01", 0xFFFF  # of a zlib stream; bytes of the longest block as it is


def bounded(dataset: h5py.Dataset, path: str) -> h5py.Dataset | Packed:
    """A dataset as it may be read: a compressed one with a limit. Raises Refused."""
    return Packed(dataset, path) if h5py.h5z.FILTER_DEFLATE in _filters(dataset) else dataset


def _filters(dataset: h5py.Dataset) -> list[int]:
    plist = dataset.id.get_create_plist()
    return [plist.get_filter(at)[0] for at in range(plist.get_nfilters())]


def create(
    group: h5py.Group, name: str, shape: tuple[int, ...], dtype: Any, chunks: tuple[int, ...]
) -> h5py.Dataset:
    """A dataset whose chunks are written by write_chunks; any that is not reads as zeros."""
    return group.create_dataset(
        name, shape, dtype, chunks=chunks, shuffle=True, compression="gzip", compression_opts=1
    )


def write_chunks(target: h5py.Dataset, place: int, values: NDArray[Any]) -> None:
    """What stands at a place along the first axis, but for chunks of zeros; they are packed in
    threads."""
    _, *sides = target.chunks
    corners = [*itertools.product(*map(range, itertools.repeat(0), values.shape, sides))]
    found: list[bytes | None] = [None] * len(corners)

    def pack(number: int) -> None:
        pairs = zip(corners[number], sides, strict=True)
        part = np.ascontiguousarray(values[tuple(slice(at, at + side) for at, side in pairs)])
        if not part.view(np.uint8).any():  # -0 is no zero to a checksum
            return
        if part.shape != tuple(sides):
            whole = np.zeros(sides, values.dtype)
            whole[tuple(map(slice, part.shape))] = part
            part = whole
        found[number] = packed(part)

    in_threads(pack, len(corners))
    for corner, chunk in zip(corners, found, strict=True):
        if chunk is not None:
            target.id.write_direct_chunk((place, *corner), chunk)


def packed(values: NDArray[Any]) -> bytes:
    """The bytes of one chunk."""
    size = values.itemsize
    given = np.ascontiguousarray(values).view(np.uint8).reshape(-1, size)
    planes = np.ascontiguousarray(given.T)
    parts = [_HEADER]
    for at, plane in enumerate(planes):
        parts += _deflated(plane, last=at == size - 1)
    return b"".join([*parts, struct.pack(">I", zlib.adler32(planes.data))])


def _deflated(plane: NDArray[np.uint8], last: bool) -> list[Any]:
    """The blocks of a plane in a stream of several (RFC 1951)."""
    if _entropy(plane[::_SAMPLED]) < 8 * WORTH:
        pack = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS, strategy=zlib.Z_RLE)
        return [pack.compress(plane.data), pack.flush(zlib.Z_FINISH if last else zlib.Z_FULL_FLUSH)]
    blocks: list[Any] = []
    for start in range(0, len(plane), _STORED):
        part = plane[start : start + _STORED]
        ends = last and start + _STORED >= len(plane)
        blocks += [struct.pack("<BHH", ends, len(part), len(part) ^ _STORED), part]
    return blocks


def _entropy(plane: NDArray[np.uint8]) -> float:
    """Bits that a byte takes at least where its neighbours tell nothing of it (Shannon 1948)."""
    counts = np.bincount(plane, minlength=256)
    some = counts[counts > 0]
    return math.log2(len(plane)) - float(some @ np.log2(some)) / len(plane)


class Packed:
    """A packed dataset that is sliced like an array, each chunk unpacked with a limit on its size.

    HDF5 itself would unpack a chunk to whatever length the packed bytes say. Errors: HgvizError.
    """

    def __init__(self, dataset: h5py.Dataset, path: str) -> None:
        self._dataset, self._path, self.id = dataset, path, dataset.id
        self.shape: tuple[int, ...] = dataset.shape
        self.dtype: np.dtype[Any] = dataset.dtype
        self.chunks: tuple[int, ...] = dataset.chunks
        if _filters(dataset) != [h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_DEFLATE]:
            raise Refused(f"{dataset.name} is not packed as captures are")
        if self.chunks[0] != 1:
            raise Refused(f"{dataset.name} is not cut as captures are")

    @property
    def name(self) -> str:
        """Its path in the file."""
        return str(self._dataset.name)

    @property
    def parent(self) -> h5py.Group:
        """The group it is in."""
        return self._dataset.parent

    def __getitem__(self, at: Any) -> NDArray[Any]:
        given = () if at is Ellipsis else at if isinstance(at, tuple) else (at,)
        given += (slice(None),) * (len(self.shape) - len(given))
        ends = []
        for one, size in zip(given, self.shape, strict=True):
            part = one if isinstance(one, slice) else slice(int(one), int(one) + 1)
            start, stop, _ = part.indices(size)
            ends.append((start, max(start, stop)))
        out = np.zeros([stop - start for start, stop in ends], self.dtype)
        along = [
            range(start // side * side, stop, side)
            for (start, stop), side in zip(ends, self.chunks, strict=True)
        ]
        with reading(self._path):
            for corner in itertools.product(*along) if out.size else ():
                chunk = self._chunk(corner)
                if chunk is not None:
                    _put(chunk, corner, out, ends)
        return out[tuple(slice(None) if isinstance(one, slice) else 0 for one in given)]

    def _chunk(self, corner: tuple[int, ...]) -> NDArray[Any] | None:
        """The numbers of a chunk, None for one that was never written."""
        size = math.prod(self.chunks) * self.dtype.itemsize
        info = self.id.get_chunk_info_by_coord(corner)
        if info.byte_offset is None:
            return None
        if info.filter_mask or info.size > 2 * size + 1024:
            raise Refused(f"{self.name} has a chunk of {info.size} bytes")
        stream = zlib.decompressobj()
        _, data = self.id.read_direct_chunk(corner)
        try:
            data = stream.decompress(data, size)
        except zlib.error as error:
            raise Refused(f"{self.name} is damaged ({error})") from None
        if len(data) != size or stream.decompress(stream.unconsumed_tail, 1):
            raise Refused(f"{self.name} has a chunk that is not {size} bytes long")
        if not stream.eof:  # the checksum comes at the very end
            raise Refused(f"{self.name} is cut short")
        planes = np.frombuffer(data, np.uint8).reshape(self.dtype.itemsize, -1)
        numbers = np.empty(planes.shape[::-1], np.uint8)
        for at, plane in enumerate(planes):  # in a third of the time that a transpose takes
            numbers[:, at] = plane
        return numbers.view(self.dtype).reshape(self.chunks)


def _put(
    chunk: NDArray[Any], corner: tuple[int, ...], out: NDArray[Any], ends: list[tuple[int, int]]
) -> None:
    """Put what a chunk and a window have in common in its place."""
    into, of = [], []
    for at, side, (start, stop) in zip(corner, chunk.shape, ends, strict=True):
        first, last = max(at, start), min(at + side, stop)
        into.append(slice(first - start, last - start))
        of.append(slice(first - at, last - at))
    out[tuple(into)] = chunk[tuple(of)]
