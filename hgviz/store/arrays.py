"""Arrays in HDF5 files: cut into chunks, packed, checked, and read where they are sliced."""

from __future__ import annotations

import itertools
import math
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from hgviz.maps.tiles import in_threads
from hgviz.store.hdf5 import Refused, numbers, reading, require

RUN = 256  # rows that have a checksum of their own, those of a tile
CHUNK_BYTES, RUN_BYTES = 64 << 10, 16 << 10  # of a chunk; of the least that is packed of a head
PLANE_LIMIT = 0.8  # of its bytes: a plane that packs less than this is faster to read as it is
SAMPLE_STEP = 8  # every so many bytes are looked at to estimate how well a plane packs
ZLIB_HEADER, BLOCK_LIMIT = b"\x78\x01", 0xFFFF  # of a zlib stream; bytes of a stored block


# --- checksums ------------------------------------------------------------------------------------


def checksum(parts: Iterable[NDArray[Any]]) -> int:
    """The crc32 of arrays one after another."""
    total = 0
    for part in parts:
        total = zlib.crc32(np.ascontiguousarray(part).data, total)
    return total


def head_check(datasets: Sequence[Any], expected: tuple[int, ...]) -> Callable[[int], None]:
    """A function that compares the head at a place, over some datasets, with its crc32; each head
    once. It raises Refused for one that was changed."""
    checked: set[int] = set()

    def check(place: int) -> None:
        if place not in checked:
            same = checksum(part[place] for part in datasets) == expected[place]
            require(same, f"{datasets[0].parent.name} is not what was written to it")
            checked.add(place)

    return check


# --- packed chunks --------------------------------------------------------------------------------


def packed(values: NDArray[Any]) -> bytes:
    """The bytes of one chunk, as HDF5's filters shuffle and deflate read them (RFC 1950).

    Of float32 the bytes of signs and exponents repeat, those of mantissas hardly do. Bytes are put
    together by their place in a number, and each of these planes is deflated or stored as it is.
    So a chunk of queries loses a sixth, and is written and read nearly as fast as unpacked.
    """
    size = values.itemsize
    planes = np.ascontiguousarray(np.ascontiguousarray(values).view(np.uint8).reshape(-1, size).T)
    blocks: list[Any] = [ZLIB_HEADER]
    for at, plane in enumerate(planes):
        blocks += _deflated(plane, last=at == size - 1)
    return b"".join([*blocks, struct.pack(">I", zlib.adler32(planes.data))])


def _deflated(plane: NDArray[np.uint8], last: bool) -> list[Any]:
    """The blocks of a plane in a stream of several (RFC 1951)."""
    counts = np.bincount(plane[::SAMPLE_STEP], minlength=256)
    counts, total = counts[counts > 0], counts.sum()
    entropy = math.log2(total) - float(counts @ np.log2(counts)) / total  # bits a byte, Shannon
    if entropy < 8 * PLANE_LIMIT:
        pack = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS, strategy=zlib.Z_RLE)
        return [pack.compress(plane.data), pack.flush(zlib.Z_FINISH if last else zlib.Z_FULL_FLUSH)]
    blocks: list[Any] = []
    for start in range(0, len(plane), BLOCK_LIMIT):
        part = plane[start : start + BLOCK_LIMIT]
        ends = last and start + BLOCK_LIMIT >= len(plane)
        blocks += [struct.pack("<BHH", ends, len(part), len(part) ^ BLOCK_LIMIT), part]
    return blocks


def create_packed(
    group: h5py.Group, name: str, shape: tuple[int, ...], dtype: Any, chunks: tuple[int, ...]
) -> h5py.Dataset:
    """Create a dataset for write_chunks; chunks that are not written read as zeros."""
    return group.create_dataset(
        name, shape, dtype, chunks=chunks, shuffle=True, compression="gzip", compression_opts=1
    )


def write_chunks(target: h5py.Dataset, place: int, values: NDArray[Any]) -> None:
    """Write what stands at a place along the first axis, packed in threads; zeros are left out."""
    _, *sides = target.chunks
    corners = [*itertools.product(*map(range, itertools.repeat(0), values.shape, sides))]
    chunks: list[bytes | None] = [None] * len(corners)

    def pack(number: int) -> None:
        pairs = zip(corners[number], sides, strict=True)
        part = np.ascontiguousarray(values[tuple(slice(at, at + side) for at, side in pairs)])
        if not part.view(np.uint8).any():  # -0 is no zero to a checksum
            return
        if part.shape != tuple(sides):
            chunk = np.zeros(sides, values.dtype)
            chunk[tuple(map(slice, part.shape))] = part
            part = chunk
        chunks[number] = packed(part)

    in_threads(pack, len(corners))
    for corner, chunk in zip(corners, chunks, strict=True):
        if chunk is not None:
            target.id.write_direct_chunk((place, *corner), chunk)


class Packed:
    """A packed dataset that is sliced like an array, each chunk unpacked with a limit on its size.

    HDF5 itself would unpack a chunk to whatever length the packed bytes say. Raises Refused where
    it is not packed as captures are, and HgvizError where it is read.
    """

    def __init__(self, dataset: h5py.Dataset, path: str) -> None:
        self._path, self.id, self.name = path, dataset.id, str(dataset.name)
        self.parent: h5py.Group = dataset.parent
        self.shape: tuple[int, ...] = dataset.shape
        self.dtype: np.dtype[Any] = dataset.dtype
        self.chunks: tuple[int, ...] = dataset.chunks
        filters = [h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_DEFLATE]
        require(_filters(dataset) == filters, f"{self.name} is not packed as captures are")
        require(self.chunks[0] == 1, f"{self.name} is not cut as captures are")

    def __getitem__(self, at: Any) -> NDArray[Any]:
        axes = () if at is Ellipsis else at if isinstance(at, tuple) else (at,)
        axes += (slice(None),) * (len(self.shape) - len(axes))
        ends = []
        for axis, size in zip(axes, self.shape, strict=True):
            part = axis if isinstance(axis, slice) else slice(int(axis), int(axis) + 1)
            start, stop, _ = part.indices(size)
            ends.append((start, max(start, stop)))
        out = np.zeros([stop - start for start, stop in ends], self.dtype)
        corners = itertools.product(
            *(
                range(start // side * side, stop, side)
                for (start, stop), side in zip(ends, self.chunks, strict=True)
            )
        )
        with reading(self._path):
            for corner in corners if out.size else ():
                chunk = self._chunk(corner)
                if chunk is not None:
                    _copy_overlap(chunk, corner, out, ends)
        return out[tuple(slice(None) if isinstance(axis, slice) else 0 for axis in axes)]

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
        require(stream.eof, f"{self.name} is cut short")  # the checksum comes at the very end
        planes = np.frombuffer(data, np.uint8).reshape(self.dtype.itemsize, -1)
        values = np.empty(planes.shape[::-1], np.uint8)
        for at, plane in enumerate(planes):  # in a third of the time that a transpose takes
            values[:, at] = plane
        return values.view(self.dtype).reshape(self.chunks)


def _copy_overlap(
    chunk: NDArray[Any], corner: tuple[int, ...], out: NDArray[Any], ends: list[tuple[int, int]]
) -> None:
    """Copy the part of a chunk that lies inside a window to its place there."""
    into, of = [], []
    for at, side, (start, stop) in zip(corner, chunk.shape, ends, strict=True):
        first, last = max(at, start), min(at + side, stop)
        into.append(slice(first - start, last - start))
        of.append(slice(first - at, last - at))
    out[tuple(into)] = chunk[tuple(of)]


def _filters(dataset: h5py.Dataset) -> list[int]:
    plist = dataset.id.get_create_plist()
    return [plist.get_filter(at)[0] for at in range(plist.get_nfilters())]


def bounded(dataset: h5py.Dataset, path: str) -> h5py.Dataset | Packed:
    """A dataset as it may be read: a compressed one with a limit. Raises Refused."""
    return Packed(dataset, path) if h5py.h5z.FILTER_DEFLATE in _filters(dataset) else dataset


# --- arrays that stay in the file -----------------------------------------------------------------


class Stored:
    """A dataset that is read where it is sliced, and whole by numpy.asarray. Raises HgvizError.

    A small dataset is compared with its own checksum where it has one. check: called with the
    place of a head, the first index, before anything of it is handed out.
    """

    def __init__(
        self, dataset: h5py.Dataset | Packed, path: str, check: Callable[[int], None] | None = None
    ) -> None:
        self._dataset, self._path, self._check = dataset, path, check
        self.shape: tuple[int, ...] = dataset.shape
        self.dtype: np.dtype[Any] = dataset.dtype
        self.ndim, self.nbytes = len(self.shape), math.prod(self.shape) * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, at: Any) -> NDArray[Any]:
        if isinstance(at, np.ndarray) and at.dtype != bool and at.size:  # rows in any order
            first = int(at.min())
            rows: NDArray[Any] = self[first : int(at.max()) + 1][at - first]
            return rows
        with reading(self._path):
            if self._check is not None:
                self._check(at[0] if isinstance(at, tuple) else at)
            whole = self._check is None and self._dataset.chunks is None
            values: NDArray[Any] = (numbers(self._dataset) if whole else self._dataset)[at]
            return values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[...], dtype)


class StoredRuns(Stored):
    """A dataset (heads, rows, ...) whose every RUN rows are compared with their checksum (heads,
    runs) when they are first read. Raises HgvizError."""

    def __init__(
        self, dataset: h5py.Dataset | Packed, path: str, expected: NDArray[np.uint32]
    ) -> None:
        super().__init__(dataset, path)
        self._expected = expected
        self._checked = np.zeros(expected.shape, bool)

    def __getitem__(self, at: Any) -> NDArray[Any]:
        if at is Ellipsis:
            return np.stack([self[place] for place in range(self.shape[0])])
        place, rows = at if isinstance(at, tuple) else (at, slice(None))
        if not isinstance(rows, slice):
            row: NDArray[Any] = self[place, rows : rows + 1][0]
            return row
        start, stop, _ = rows.indices(self.shape[1])
        first, last = start // RUN, -(-stop // RUN)
        with reading(self._path):
            values: NDArray[Any] = self._dataset[place, first * RUN : last * RUN]
            for run in first + np.flatnonzero(~self._checked[place, first:last]):
                part = values[(run - first) * RUN : (run - first + 1) * RUN]
                same = checksum([part]) == self._expected[place, run]
                require(same, f"{self._dataset.name} is not what was written to it")
                self._checked[place, run] = True
            return values[start - first * RUN : stop - first * RUN]


# --- writing --------------------------------------------------------------------------------------


def store(
    group: h5py.Group,
    name: str,
    values: Any,
    axis: int = 0,
    checked: bool = True,
    packs: bool = False,
    of_heads: HeadChecksums | None = None,
) -> h5py.h5d.DatasetID:
    """Write an array, or what numpy reads like one, cut along one axis, or in one piece where it
    would be one chunk.

    Chunks have checksums of their own; checked: what is in one piece gets one too. packs: chunks
    are packed, each of one place along the first axis. of_heads: takes checksums of (heads, rows,
    ...), whose chunks are then of so many runs of rows, and which is written head by head.
    """
    shape, dtype = tuple(values.shape), np.dtype(values.dtype).newbyteorder("<")
    if math.prod(shape) * dtype.itemsize <= CHUNK_BYTES:
        whole = np.empty(shape, dtype)
        if of_heads is None:
            whole[...] = values
        else:
            for place in range(shape[0]):
                whole[place] = values[place]
                of_heads.add(place, whole[place])
        identifier = _write_whole(group, name, whole)
        if of_heads is None and checked and whole.size:
            _write_attribute(identifier, b"crc32", np.asarray(zlib.crc32(whole.data), "<i8"))
        return identifier
    size, area = shape[axis], (1, *shape[1:]) if packs else shape
    row_bytes = max(1, math.prod(area) // size * dtype.itemsize)
    if of_heads is not None:  # what is read at a time
        side = min(size, RUN * max(1, RUN_BYTES // (RUN * row_bytes)))
    else:  # equal parts of about CHUNK_BYTES, with less than one row to spare in each
        side = -(-size // -(-size // max(1, CHUNK_BYTES // row_bytes)))
    chunks = (*area[:axis], side, *area[axis + 1 :])
    if not packs:
        return group.create_dataset(
            name, data=np.asarray(values, dtype), chunks=chunks, fletcher32=True
        ).id
    target = create_packed(group, name, shape, dtype, chunks)
    for place in range(shape[0]):
        part = np.ascontiguousarray(values[place], dtype)
        write_chunks(target, place, part)
        if of_heads is not None:
            of_heads.add(place, part)
    return target.id


class HeadChecksums:
    """Checksums of the parts of each head: crc, of all one after another; runs, of every RUN rows
    of each. shared: how many heads have a part of the next array in common."""

    def __init__(self, heads: int) -> None:
        self.crc, self.shared = [0] * heads, 1
        self.runs = list[list[int]]([] for _ in range(heads))

    def add(self, place: int, part: NDArray[Any]) -> None:
        """Take the part at a place along the first axis."""
        runs = [checksum([part[top : top + RUN]]) for top in range(0, len(part), RUN)]
        for head in range(place * self.shared, (place + 1) * self.shared):
            self.crc[head] = zlib.crc32(part.data, self.crc[head])
            self.runs[head] += runs


def store_text(group: h5py.Group, name: str, text: str) -> None:
    """Write a text as UTF-8 bytes."""
    store(group, name, np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8))


def store_attributes(
    identifier: h5py.h5g.GroupID | h5py.h5d.DatasetID, values: Mapping[str, Any]
) -> None:
    """Write attributes: short texts, numbers, and tuples of whole numbers."""
    for name, value in values.items():
        if isinstance(value, str):
            array = np.asarray(np.bytes_(value.encode()))
        elif isinstance(value, bool):
            array = np.asarray(int(value))  # h5py would make an enumeration of it
        else:
            array = np.asarray(value, "<i8" if isinstance(value, tuple) else None)
        _write_attribute(identifier, name.encode(), array)


# HDF5's own calls: a file has many small datasets and attributes, and h5py's take three times as
# long; contiguous, since a chunk would bring an index of 3 KB, however small it is
def _write_whole(group: h5py.Group, name: str, values: NDArray[Any]) -> h5py.h5d.DatasetID:
    parent = group.id
    *parents, last = name.encode().split(b"/")
    for part in parents:
        exists = parent.links.exists(part)
        parent = h5py.h5g.open(parent, part) if exists else h5py.h5g.create(parent, part)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_obj_track_times(False)
    plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    dtype = h5py.h5t.py_create(values.dtype, logical=True)
    space = h5py.h5s.create_simple(values.shape)
    identifier = h5py.h5d.create(parent, last, dtype, space, dcpl=plist)
    if values.size:
        identifier.write(h5py.h5s.ALL, h5py.h5s.ALL, values)
    return identifier


def _write_attribute(identifier: Any, name: bytes, value: NDArray[Any]) -> None:
    scalar = value.shape == ()
    space = h5py.h5s.create(h5py.h5s.SCALAR) if scalar else h5py.h5s.create_simple(value.shape)
    dtype = h5py.h5t.py_create(value.dtype, logical=True)
    created = h5py.h5a.create(identifier, name, dtype, space)
    if value.size:
        created.write(value)
