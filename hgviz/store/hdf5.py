"""HDF5 files: written whole or not at all, opened without trusting them, failing with one line; and
arrays in them, cut into chunks, packed, checked, and read where they are sliced."""

from __future__ import annotations

import errno
import io
import itertools
import json
import math
import os
import signal
import stat
import struct
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import h5py
import numpy as np
from h5py._objects import phil
from numpy.typing import NDArray

from hgviz import errors
from hgviz.errors import HgvizError
from hgviz.files import TEMPORARY, sync_folder
from hgviz.maps.tiles import in_threads

MAGIC = b"\x89HDF\r\n\x1a\n"
CHUNK_LIMIT, ATTRIBUTE_LIMIT, DOCUMENT_LIMIT = 64 << 20, 64 << 10, 64 << 20  # bytes
FILTERS = {h5py.h5z.FILTER_FLETCHER32, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_DEFLATE}
CHOOSE_FILE = "Choose a file that hgviz wrote"
DAMAGED = "it is truncated, or was changed while it was open"
RUN = 256  # rows that have a checksum of their own, those of a tile
CHUNK_BYTES, RUN_BYTES = 64 << 10, 16 << 10  # of a chunk; of the least that is packed of a head
PLANE_LIMIT = 0.8  # of its bytes: a plane that packs less than this is faster to read as it is
SAMPLE_STEP = 8  # every so many bytes are looked at to estimate how well a plane packs
ZLIB_HEADER, BLOCK_LIMIT = b"\x78\x01", 0xFFFF  # of a zlib stream; bytes of a stored block

Packing = Literal["never", "large", "always"]  # which datasets of a name are compressed


# --- errors ---------------------------------------------------------------------------------------


class Refused(HgvizError):
    """What is wrong with a file, and what to do, where that is not to make the file anew; `reading`
    makes it an HgvizError that names the file."""


def require(condition: object, what: str, do: str = "") -> None:
    """Raise Refused(what, do) unless a condition holds."""
    if not condition:
        raise Refused(what, do)


@contextmanager
def reading(path: str, again: str = "Capture the text") -> Iterator[None]:
    """Raise everything that goes wrong while a file is read as one HgvizError.

    again: what makes such a file again.
    """
    do, details = f"{again} again, or get a fresh copy", ""
    cause: BaseException | None = None
    try:
        yield
        return
    except Refused as reason:
        why, do = reason.what, reason.do or do
    except HgvizError:
        raise
    except PermissionError as error:
        why, do, cause = "you have no permission to read it", "Ask its owner for access", error
    # h5py raises almost any of these for damaged files
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, MemoryError) as error:
        why, cause = DAMAGED, error
        number, details = getattr(error, "errno", None), f"{type(error).__name__}: {error}"
        if number in (errno.EAGAIN, errno.EWOULDBLOCK) or "open for write" in str(error):
            why, do = "it is open for writing in another program", "Close it there first"
        elif number in (
            errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOENT, errno.ENOMEM, errno.ESTALE,
        ):  # fmt: skip
            why, do = os.strerror(number or 0), "Try again, or copy it to another disk"
        elif isinstance(error, MemoryError):
            why, do = "it does not fit in memory", "Open it on a machine with more memory"
    state = "is damaged" if why == DAMAGED else "cannot be read"
    raise HgvizError(f"{path} {state}: {why}", do, details=details) from cause


@contextmanager
def writing(path: Path, remains: str = "nothing was saved") -> Iterator[None]:
    """Raise what goes wrong while a file is written as one HgvizError.

    remains: what a full disk leaves, such as "3 of 9 layers are saved in a.h5.part".
    """
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        what = f"{path} cannot be written: {why[:1].lower()}{why[1:]}"
        do = "Choose a folder you can write to"
        if is_full(error):
            what = f"the disk is full: {path.name} could not be written: {remains}"
            do = f"Free some space in {path.parent} and run it again"
        raise HgvizError(what, do) from error


def is_full(error: BaseException) -> bool:
    """Whether an error says that a disk has no room left."""
    full = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return isinstance(error, OSError) and error.errno in full


def require_free(path: Path, force: bool, noun: str) -> None:
    """Raise HgvizError where there is a file already, unless force, or a folder."""
    what = f"{path} is a folder: a {noun} is one file"
    errors.require(not path.is_dir(), what, "Add a file name")
    what = f"{path} already exists"
    errors.require(force or not path.exists(), what, "Choose another name, or use --force")


# --- files that are there whole or not at all -----------------------------------------------------


class Sink(io.FileIO):
    """A file for HDF5 to write to that never fails: its first error is kept for the owner.

    HDF5 does not survive a failed write (it crashes when it closes the file), so after an error
    writes are accepted and dropped.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, "w+")
        self.error: BaseException | None = None

    def readinto(self, buffer: Any) -> int:
        """Read what was written, and zeros where nothing was: HDF5 uses all of the buffer."""
        room, data = memoryview(buffer).cast("B"), b""
        try:
            data = os.read(self.fileno(), len(room))
        except BaseException as error:
            self.keep(error)
        room[:] = data + bytes(len(room) - len(data))
        return len(room)

    def write(self, data: Any) -> int:
        """Write all of data, or drop it after an error."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        try:
            while len(rest) and self.error is None:
                rest = rest[os.write(self.fileno(), rest) :]
        except BaseException as error:
            self.keep(error)
        return size

    def truncate(self, size: int | None = None) -> int:
        """Cut or lengthen the file."""
        try:
            return super().truncate(size)
        except BaseException as error:
            self.keep(error)
        return size or 0

    def keep(self, error: BaseException) -> None:
        """Keep an error for the owner, unless there was one before it."""
        self.error = self.error or error

    def check(self) -> None:
        """Raise the first error there was."""
        if self.error is not None:
            raise self.error


SINK_CODE = {method.__code__ for method in (Sink.readinto, Sink.write, Sink.truncate)}


@contextmanager
def _signals_kept(sink: Sink) -> Iterator[None]:
    """Keep an exception of a signal handler that runs inside the sink, as the sink's error.

    Raised there, it would pass through HDF5 and come out as an AttributeError. Most of those of a
    long merge arise before the first line of a method, where no `try` of its own helps.
    """
    handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
    if threading.current_thread() is threading.main_thread():  # else they are raised elsewhere
        for number in {signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}:
            if callable(handler := signal.getsignal(number)):  # others end the process
                handlers[number] = handler

    def handle(number: int, frame: FrameType | None) -> None:
        try:
            handlers[number](number, frame)
        except BaseException as error:
            if frame is None or frame.f_code not in SINK_CODE:
                raise
            sink.keep(error)

    for number in handlers:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextmanager
def whole_hdf5(path: Path) -> Iterator[h5py.File]:
    """Open an HDF5 file to write; it gets its name at the end, or leaves nothing behind."""
    temporary = path.with_name(path.name + TEMPORARY)
    sink = Sink(temporary)
    try:
        with _signals_kept(sink), h5py.File(sink, "w") as file:
            yield file
            sink.check()
        sink.check()
        os.fsync(sink.fileno())
        sink.close()
        os.replace(temporary, path)
        sync_folder(path.parent)
    except BaseException as failure:
        sink.close()
        with suppress(OSError):
            temporary.unlink()
        # HDF5 may complain about what it reads back after a write was dropped
        if sink.error not in (None, failure):
            raise sink.error from failure
        raise


# --- files of strangers ---------------------------------------------------------------------------


def open_file(path: str) -> h5py.File:
    """Open an HDF5 file for reading; no filter plugin is ever loaded for it. Raises Refused."""
    require(stat.S_ISREG(os.stat(path).st_mode), "it is not a regular file", CHOOSE_FILE)
    with open(path, "rb") as file:
        start = file.read(len(MAGIC))
    require(start, "it is empty")
    require(start == MAGIC, "it is not an HDF5 file", CHOOSE_FILE)
    os.environ.pop("HDF5_PLUGIN_PATH", None)
    # h5py calls these, unlike all else, without its lock; beside a reading thread HDF5 would crash
    with phil:
        while h5py.h5pl.size():
            h5py.h5pl.remove(0)
    return h5py.File(path, "r", locking="best-effort")


def check_format(file: h5py.File, name: str, version: tuple[int, int], noun: str) -> None:
    """Raise Refused unless a file says that it is of a format, in a version that is known."""
    what = f"it is an HDF5 file, but not a {noun} of hgviz"
    require(attribute(file, "format", "") == name, what, CHOOSE_FILE)
    theirs = attribute(file, "format_version", version)
    require(len(theirs) == 2, f"its format version has {len(theirs)} numbers, not 2")
    which = "a newer" if theirs[0] > version[0] else "an older"
    require(
        theirs[0] == version[0],
        f"it has format version {'.'.join(map(str, theirs))} and this hgviz reads "
        f"{'.'.join(map(str, version))}: {which} hgviz is needed",
        "Open it with the version of hgviz that wrote it",
    )


def has_format(path: str, name: str) -> bool | None:
    """Whether a path is an HDF5 file of a format; None for a file that HDF5 cannot open."""
    if not os.path.isfile(path):  # opening a pipe would wait for its writer
        return False
    try:
        with reading(path), open_file(path) as file:
            return bool(attribute(file, "format", "") == name)
    except HgvizError as error:
        return None if error.details else False


def find(group: h5py.Group, path: str) -> h5py.Group | h5py.Dataset | None:
    """What lies at a path inside a group, reached by hard links alone; None for nothing. Raises
    Refused."""
    target: Any = group
    for part in path.split("/"):
        if not isinstance(target, h5py.Group):
            raise Refused(f"{target.name} is not a group")
        if not target.id.links.exists(part.encode()):
            return None
        if target.id.links.get_info(part.encode()).type != h5py.h5l.TYPE_HARD:
            where = f"{target.name.rstrip('/')}/{part}"
            raise Refused(f"{where} is a link, which is not followed")
        target = target[part]
    return target


def has(group: h5py.Group, path: str) -> bool:
    """Whether something lies at a path inside a group, wherever its last link leads. Raises
    Refused for what the way there leads to."""
    parent, _, name = path.rpartition("/")
    if parent:
        return has(group, parent) and has(subgroup(group, parent), name)
    return bool(group.id.links.exists(name.encode()))


def subgroup(group: h5py.Group, path: str) -> h5py.Group:
    """A group inside a group, reached by hard links alone. Raises Refused."""
    child = find(group, path)
    if not isinstance(child, h5py.Group):
        raise Refused(f"{name_of(group, path)} is {'missing' if child is None else 'not a group'}")
    return child


def name_of(group: h5py.Group, path: str) -> str:
    """The name of something inside a group, from the root of its file."""
    return f"{group.name.rstrip('/')}/{path}"


def open_dataset(
    group: h5py.Group, path: str, dtypes: tuple[str, ...], packing: Packing = "never"
) -> h5py.Dataset:
    """A dataset of little-endian numbers that all lie in this file, as many as it declares.

    Compressed ones, whose size on the disk says nothing, are read with a limit (see Stored).
    Raises Refused.
    """
    dataset = find(group, path)
    if fault := _fault(dataset, dtypes, packing):
        raise Refused(f"{name_of(group, path)} {fault}")
    return dataset


def _fault(dataset: Any, dtypes: tuple[str, ...], packing: Packing) -> str:
    """What is wrong with a dataset in words, "" for nothing."""
    if not isinstance(dataset, h5py.Dataset):
        return "is missing" if dataset is None else "is not a dataset"
    plist, dtype, shape = dataset.id.get_create_plist(), dataset.dtype, dataset.shape
    layout = plist.get_layout()
    if layout == h5py.h5d.VIRTUAL or plist.get_external_count():
        return "refers to data in another file, which is not read"
    filters = {plist.get_filter(at)[0] for at in range(plist.get_nfilters())}
    if not filters <= FILTERS:
        return "uses an unsupported filter"
    if dtype.str[1:] not in dtypes or dtype.byteorder == ">" or shape is None:
        return f"holds {dtype}, not {' or '.join(dtypes)}"
    if layout == h5py.h5d.CHUNKED:
        chunk = math.prod(plist.get_chunk())
        if chunk * dtype.itemsize > CHUNK_LIMIT:
            return f"has chunks of {chunk} numbers"
    packed = h5py.h5z.FILTER_DEFLATE in filters
    if packed != (packing == "always") and not (packed and packing == "large"):
        return f"is{'' if packed else ' not'} compressed"
    declared = math.prod(shape)
    if not packed and declared * dtype.itemsize > dataset.id.get_storage_size():
        return f"declares {declared} numbers, more than the file holds"
    return ""


def read_numbers(dataset: h5py.Dataset) -> NDArray[Any]:
    """All of a small dataset, compared with its checksum where it has one. Raises Refused."""
    values: NDArray[Any] = dataset[...]
    expected = attribute(dataset, "crc32", 0) if "crc32" in dataset.attrs else None
    same = expected in (None, zlib.crc32(np.ascontiguousarray(values).data))
    require(same, f"{dataset.name} does not match its checksum")
    return values


def read_text(group: h5py.Group, path: str) -> str:
    """The text whose UTF-8 bytes a dataset holds. Raises Refused."""
    return bytes(read_numbers(open_dataset(group, path, ("u1",)))).decode("utf-8", "surrogatepass")


def read_json(group: h5py.Group, path: str) -> Any:
    """The JSON document that a dataset holds. Raises Refused."""
    size = open_dataset(group, path, ("u1",)).nbytes
    require(size <= DOCUMENT_LIMIT, f"{name_of(group, path)} is too long")
    try:
        return json.loads(read_text(group, path))
    except (ValueError, RecursionError) as error:
        raise Refused(f"{name_of(group, path)} is not JSON ({error})") from None


def attribute(owner: h5py.Group | h5py.Dataset, name: str, like: Any) -> Any:
    """An attribute of the type of `like`: str, int, float, bool or tuple of int. Raises Refused."""
    if not h5py.h5a.exists(owner.id, name.encode()):
        raise Refused(f"the attribute {name} of {owner.name} is missing")
    stored = h5py.h5a.open(owner.id, name.encode())
    dtype, shape, is_text = stored.get_type(), stored.shape, isinstance(like, str)
    kind = dtype.get_class()
    classes = {h5py.h5t.STRING} if is_text else {h5py.h5t.INTEGER, h5py.h5t.FLOAT}
    if (
        kind not in classes
        or shape is None
        or math.prod(shape) * dtype.get_size() > ATTRIBUTE_LIMIT
        or (is_text and dtype.is_variable_str())
        or (shape != ()) is not isinstance(like, tuple)
        or (isinstance(like, int | tuple) and kind == h5py.h5t.FLOAT)
    ):
        raise Refused(f"the attribute {name} of {owner.name} has a wrong type")
    value = np.empty(shape, stored.dtype)
    stored.read(value)
    if is_text:
        return value.tobytes().rstrip(b"\0").decode("utf-8")
    return tuple(map(int, value)) if isinstance(like, tuple) else type(like)(value)


# --- packed chunks --------------------------------------------------------------------------------


def pack(values: NDArray[Any]) -> bytes:
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
    group: h5py.Group, name: str, shape: tuple[int, ...], dtype: Any, sides: Sequence[int]
) -> h5py.Dataset:
    """Create a dataset for write_chunks; chunks that are not written read as zeros.

    sides: of a chunk of one place along the first axis.
    """
    chunks = (1, *(max(1, min(pair)) for pair in zip(sides, shape[1:], strict=True)))
    lasting = (max(1, shape[0]), *shape[1:])  # a layer may have lost all heads
    return group.create_dataset(
        name, shape, dtype, chunks=chunks, maxshape=lasting, shuffle=True, compression="gzip",
        compression_opts=1,
    )  # fmt: skip


def write_chunks(target: h5py.Dataset, place: int, values: NDArray[Any]) -> None:
    """Write what stands at a place along the first axis, packed in threads; zeros are left out."""
    _, *sides = target.chunks
    corners = [*itertools.product(*map(range, itertools.repeat(0), values.shape, sides))]
    chunks: list[bytes | None] = [None] * len(corners)

    def pack_chunk(number: int) -> None:
        pairs = zip(corners[number], sides, strict=True)
        part = np.ascontiguousarray(values[tuple(slice(at, at + side) for at, side in pairs)])
        if not part.view(np.uint8).any():  # -0 is no zero to a checksum
            return
        if part.shape != tuple(sides):
            chunk = np.zeros(sides, values.dtype)
            chunk[tuple(map(slice, part.shape))] = part
            part = chunk
        chunks[number] = pack(part)

    in_threads(pack_chunk, len(corners))
    for corner, chunk in zip(corners, chunks, strict=True):
        if chunk is not None:
            target.id.write_direct_chunk((place, *corner), chunk)


# --- arrays that stay in the file -----------------------------------------------------------------


def checksum(parts: Iterable[NDArray[Any]]) -> int:
    """The crc32 of arrays one after another."""
    total = 0
    for part in parts:
        total = zlib.crc32(np.ascontiguousarray(part).data, total)
    return total


class Stored:
    """A dataset that is read where it is sliced, and whole by numpy.asarray. Raises HgvizError.

    A small dataset is compared with its own checksum where it has one. check: called with the
    place of a head, the first index, before anything of it is handed out. Chunks that are packed
    are unpacked here, with a limit on their size: HDF5 itself would unpack a chunk to whatever
    length the packed bytes say. Raises Refused where it is not packed as captures are.
    """

    def __init__(
        self, dataset: h5py.Dataset, path: str, check: Callable[[int], None] | None = None
    ) -> None:
        self.dataset, self._path, self._check = dataset, path, check
        self.shape: tuple[int, ...] = dataset.shape
        self.dtype: np.dtype[Any] = dataset.dtype
        self.ndim, self.nbytes = len(self.shape), math.prod(self.shape) * self.dtype.itemsize
        self.chunks: tuple[int, ...] | None = dataset.chunks
        plist = dataset.id.get_create_plist()
        filters = [plist.get_filter(at)[0] for at in range(plist.get_nfilters())]
        self._is_packed = h5py.h5z.FILTER_DEFLATE in filters
        if self._is_packed:
            ours = [h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_DEFLATE]
            require(filters == ours, f"{dataset.name} is not compressed as captures are")
            require(dataset.chunks[0] == 1, f"{dataset.name} is not chunked as captures are")

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, at: Any) -> NDArray[Any]:
        if isinstance(at, np.ndarray) and at.dtype != bool and at.size:  # rows in any order
            first = int(at.min())
            rows: NDArray[Any] = self[first : int(at.max()) + 1][at - first]
            return rows
        if at is Ellipsis and self._check is not None:
            values = np.empty(self.shape, self.dtype)
            for place in range(len(self)):
                values[place] = self[place]
            return values
        with reading(self._path):
            return self._read(at)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[...], dtype)

    def _read(self, at: Any) -> NDArray[Any]:
        if self._check is not None:
            self._check(at[0] if isinstance(at, tuple) else at)
        return self.read_unchecked(at)

    def read_unchecked(self, at: Any) -> NDArray[Any]:
        """What is stored there, not compared with a checksum of heads. Raises as h5py does."""
        if self._is_packed:
            return self._unpack(at)
        whole = self._check is None and self.chunks is None
        values: NDArray[Any] = (read_numbers(self.dataset) if whole else self.dataset)[at]
        return values

    def _unpack(self, at: Any) -> NDArray[Any]:
        axes = () if at is Ellipsis else at if isinstance(at, tuple) else (at,)
        axes += (slice(None),) * (self.ndim - len(axes))
        ends = []
        for axis, size in zip(axes, self.shape, strict=True):
            part = axis if isinstance(axis, slice) else slice(int(axis), int(axis) + 1)
            start, stop, _ = part.indices(size)
            ends.append((start, max(start, stop)))
        out = np.zeros([stop - start for start, stop in ends], self.dtype)
        sides = self.chunks or ()
        corners = itertools.product(
            *(
                range(start // side * side, stop, side)
                for (start, stop), side in zip(ends, sides, strict=True)
            )
        )
        for corner in corners if out.size else ():
            if (chunk := self._chunk(corner)) is None:
                continue
            into, of = [], []
            for at, side, (start, stop) in zip(corner, sides, ends, strict=True):
                first, last = max(at, start), min(at + side, stop)
                into.append(slice(first - start, last - start))
                of.append(slice(first - at, last - at))
            out[tuple(into)] = chunk[tuple(of)]
        return out[tuple(slice(None) if isinstance(axis, slice) else 0 for axis in axes)]

    def _chunk(self, corner: tuple[int, ...]) -> NDArray[Any] | None:
        """The numbers of a packed chunk, None for one that was never written."""
        sides, name, identifier = self.dataset.chunks, self.dataset.name, self.dataset.id
        size = math.prod(sides) * self.dtype.itemsize
        info = identifier.get_chunk_info_by_coord(corner)
        if info.byte_offset is None:
            return None
        if info.filter_mask or info.size > 2 * size + 1024:
            raise Refused(f"{name} has a chunk of {info.size} bytes")
        stream = zlib.decompressobj()
        _, data = identifier.read_direct_chunk(corner)
        try:
            data = stream.decompress(data, size)
        except zlib.error as error:
            raise Refused(f"{name} is damaged ({error})") from None
        if len(data) != size or stream.decompress(stream.unconsumed_tail, 1):
            raise Refused(f"{name} has a chunk that is not {size} bytes long")
        require(stream.eof, f"{name} is truncated")  # the checksum comes at the very end
        planes = np.frombuffer(data, np.uint8).reshape(self.dtype.itemsize, -1)
        values = np.empty(planes.shape[::-1], np.uint8)
        for at, plane in enumerate(planes):  # in a third of the time that a transpose takes
            values[:, at] = plane
        return values.view(self.dtype).reshape(sides)


class StoredRuns(Stored):
    """A dataset (heads, rows, ...) whose every RUN rows are compared with their checksum (heads,
    runs) when they are first read. Raises HgvizError."""

    def __init__(self, dataset: h5py.Dataset, path: str, expected: NDArray[np.uint32]) -> None:
        super().__init__(dataset, path, check=lambda place: None)
        self._expected = expected
        self._checked = np.zeros(expected.shape, bool)

    def _read(self, at: Any) -> NDArray[Any]:
        place, rows = at if isinstance(at, tuple) else (at, slice(None))
        if not isinstance(rows, slice):
            row: NDArray[Any] = self._read((place, slice(rows, rows + 1)))[0]
            return row
        start, stop, _ = rows.indices(self.shape[1])
        first, last = start // RUN, -(-stop // RUN)
        values = self.read_unchecked((place, slice(first * RUN, last * RUN)))
        for run in first + np.flatnonzero(~self._checked[place, first:last]):
            part = values[(run - first) * RUN : (run - first + 1) * RUN]
            same = checksum([part]) == self._expected[place, run]
            require(same, f"{self.dataset.name} does not match its checksum")
            self._checked[place, run] = True
        return values[start - first * RUN : stop - first * RUN]


# --- writing arrays and attributes ----------------------------------------------------------------


def store(
    group: h5py.Group,
    name: str,
    values: Any,
    axis: int = 0,
    checked: bool = True,
    packs: bool = False,
    watch: Callable[[int, NDArray[Any]], None] | None = None,
) -> h5py.h5d.DatasetID:
    """Write an array, or what numpy reads like one, cut along one axis, or in one piece where it
    would be one chunk.

    Chunks have checksums of their own; checked: what is in one piece gets one too. packs: chunks
    are packed, each of one place along the first axis. watch: called with each place and the part
    (rows, ...) that is written there; chunks are then of so many runs of rows.
    """
    shape, dtype = tuple(values.shape), np.dtype(values.dtype).newbyteorder("<")
    if math.prod(shape) * dtype.itemsize <= CHUNK_BYTES:
        whole = np.ascontiguousarray(values, dtype)
        identifier = _write_whole(group, name, whole)
        if watch is not None:
            for place, part in enumerate(whole):
                watch(place, part)
        elif checked and whole.size:
            _write_attribute(identifier, b"crc32", np.asarray(zlib.crc32(whole.data), "<i8"))
        return identifier
    size, area = shape[axis], (1, *shape[1:]) if packs else shape
    row_bytes = max(1, math.prod(area) // size * dtype.itemsize)
    if watch is not None:  # what is read at a time
        side = min(size, RUN * max(1, RUN_BYTES // (RUN * row_bytes)))
    else:  # equal parts of about CHUNK_BYTES, with less than one row to spare in each
        side = -(-size // -(-size // max(1, CHUNK_BYTES // row_bytes)))
    chunks = (*area[:axis], side, *area[axis + 1 :])
    if not packs:
        return group.create_dataset(
            name, data=np.asarray(values, dtype), chunks=chunks, fletcher32=True
        ).id
    target = create_packed(group, name, shape, dtype, chunks[1:])
    for place in range(shape[0]):
        part = np.ascontiguousarray(values[place], dtype)
        write_chunks(target, place, part)
        if watch is not None:
            watch(place, part)
    return target.id


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
