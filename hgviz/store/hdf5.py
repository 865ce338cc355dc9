"""HDF5 files: written whole or not at all, opened without trusting them, failing with one line."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import signal
import stat
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import h5py
import numpy as np
from h5py._objects import phil
from numpy.typing import NDArray

from hgviz.errors import HgvizError
from hgviz.files import TEMPORARY, sync_folder

MAGIC = b"\x89HDF\r\n\x1a\n"
CHUNK_LIMIT, ATTRIBUTE_LIMIT, DOCUMENT_LIMIT = 64 << 20, 64 << 10, 64 << 20  # bytes
FILTERS = {h5py.h5z.FILTER_FLETCHER32, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_DEFLATE}
CHOOSE_FILE = "Choose a file that hgviz wrote"

Packing = Literal["never", "large", "always"]  # which datasets of a name are compressed


# --- errors ---------------------------------------------------------------------------------------


class Refused(Exception):
    """What is wrong with a file; `reading` makes it an HgvizError that names the file.

    do: what to do about it, where that is not to make the file anew.
    """

    def __init__(self, what: str, do: str = "") -> None:
        super().__init__(what)
        self.do = do


def require(condition: object, what: str) -> None:
    """Raise Refused(what) unless a condition holds."""
    if not condition:
        raise Refused(what)


@contextmanager
def reading(path: str, again: str = "Capture") -> Iterator[None]:
    """Raise everything that goes wrong while a file is read as one HgvizError.

    again: the verb that makes such a file anew.
    """
    remake = f"{again} again, or ask for the file again"
    try:
        yield
    except HgvizError:
        raise
    except PermissionError:
        raise HgvizError(
            f"{path} cannot be read: you have no permission to read it", "Ask its owner for it"
        ) from None
    except Refused as reason:
        raise HgvizError(f"{path} cannot be read: {reason}", reason.do or remake) from None
    # h5py raises almost any of these for damaged files
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, MemoryError) as error:
        why, do = "it is damaged, cut short, or was changed while it was open", remake
        number = getattr(error, "errno", None)
        if number in (errno.EAGAIN, errno.EWOULDBLOCK) or "open for write" in str(error):
            why, do = "it is open for writing in another program", "Close it there first"
        elif number in (
            errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOENT, errno.ENOMEM, errno.ESTALE,
        ):  # fmt: skip
            why, do = os.strerror(number or 0), "Try again, or copy it to another disk"
        elif isinstance(error, MemoryError):
            why, do = "it does not fit in memory", "Open it on a machine with more memory"
        details = f"{type(error).__name__}: {error}"
        raise HgvizError(f"{path} cannot be read: {why}", do, details=details) from error


@contextmanager
def writing(path: Path, remains: str = "") -> Iterator[None]:
    """Raise what goes wrong while a file is written as one HgvizError.

    remains: what a full disk leaves of it, such as "3 of 9 layers stay in a.h5.part".
    """
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise HgvizError(
                "the disk is full: "
                f"{path.name} could not be written: {remains or 'nothing was written'}",
                f"Free some space in {path.parent} and run it again",
            ) from error
        why = error.strerror or str(error)
        raise HgvizError(
            f"{path} cannot be written: {why[:1].lower()}{why[1:]}",
            "Choose a folder you can write to",
        ) from error


def is_full(error: BaseException) -> bool:
    """Whether an error says that a disk has no room left."""
    full = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return isinstance(error, OSError) and error.errno in full


# --- files that are there whole or not at all -----------------------------------------------------


class Sink(io.RawIOBase):
    """A file for HDF5 to write to that never fails: its first error is kept for the owner.

    HDF5 does not survive a failed write (it crashes when it closes the file), so after an error
    writes are accepted and dropped.
    """

    def __init__(self, path: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
        self._file = os.open(path, flags, 0o666)
        self._at = self._end = 0
        self.error: BaseException | None = None

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to an offset."""
        self._at = offset + (0, self._at, self._end)[whence]
        return self._at

    def tell(self) -> int:
        """The offset."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read what was written, and zeros where nothing was: HDF5 uses all of the buffer."""
        room = memoryview(buffer).cast("B")
        data = b""
        try:
            os.lseek(self._file, self._at, os.SEEK_SET)
            data = os.read(self._file, len(room))
        except BaseException as error:
            self.keep(error)
        room[: len(data)] = data
        room[len(data) :] = bytes(len(room) - len(data))
        self._at += len(room)
        return len(room)

    def write(self, data: Any) -> int:
        """Write all of data, or drop it after an error."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        try:
            os.lseek(self._file, self._at, os.SEEK_SET)
            while len(rest) and self.error is None:
                rest = rest[os.write(self._file, rest) :]
        except BaseException as error:
            self.keep(error)
        self._at += size
        self._end = max(self._end, self._at)
        return size

    def truncate(self, size: int | None = None) -> int:
        """Cut or lengthen the file."""
        self._end = self._at if size is None else size
        try:
            os.ftruncate(self._file, self._end)
        except BaseException as error:
            self.keep(error)
        return self._end

    def keep(self, error: BaseException) -> None:
        """Keep an error for the owner, unless there was one before it."""
        self.error = self.error or error

    def sync(self) -> None:
        """Have all of it on the disk. Raises the first error there was."""
        if self.error is None:
            os.fsync(self._file)
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            os.close(self._file)
        super().close()


SINK_CODE = {
    method.__code__ for method in (Sink.seek, Sink.tell, Sink.readinto, Sink.write, Sink.truncate)
}


@contextmanager
def _signals_kept(sink: Sink) -> Iterator[None]:
    """Keep an exception of a signal handler that runs inside the sink, as the sink's error.

    Raised there, it would pass through HDF5 and come out as an AttributeError. Most of those of a
    long merge arise before the first line of a method, where no `try` of its own helps.
    """
    handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
    if threading.current_thread() is threading.main_thread():  # else they are raised elsewhere
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            handler = None if number is None else signal.getsignal(number)
            if number is not None and callable(handler):  # others end the process, or are ignored
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


def require_free(path: Path, force: bool, noun: str) -> None:
    """Raise HgvizError where there is a file already, unless force, or a folder."""
    if path.is_dir():
        raise HgvizError(f"{path} is a folder: a {noun} is one file", "Give the file a name")
    if path.exists() and not force:
        raise HgvizError(
            f"{path} exists already: it was not touched", "Choose another name, or use --force"
        )


@contextmanager
def whole_hdf5(path: Path, scratch: Path | None = None) -> Iterator[h5py.File]:
    """Open an HDF5 file to write; it gets its name at the end, or leaves nothing behind.

    scratch: where it grows until then, on the same disk as path; beside path if None.
    """
    temporary = scratch or path.with_name(path.name + TEMPORARY)
    sink = None
    try:
        sink = Sink(temporary)
        with _signals_kept(sink), h5py.File(sink, "w") as file:
            yield file
            if sink.error is not None:
                raise sink.error
        sink.sync()
        sink.close()
        os.replace(temporary, path)
        sync_folder(path.parent)
    except BaseException as failure:
        if sink is not None:
            sink.close()
        with suppress(OSError):
            temporary.unlink()
        # HDF5 may complain about what it reads back after a write was dropped
        if sink is not None and sink.error not in (None, failure):
            raise sink.error from failure
        raise


# --- files of strangers ---------------------------------------------------------------------------


def open_file(path: str) -> h5py.File:
    """Open an HDF5 file for reading; no filter plugin is ever loaded for it. Raises Refused."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise Refused("it is not a regular file", CHOOSE_FILE)
    with open(path, "rb") as file:
        start = file.read(len(MAGIC))
    require(start, "it is empty")
    if start != MAGIC:
        raise Refused("it is not an HDF5 file", CHOOSE_FILE)
    os.environ.pop("HDF5_PLUGIN_PATH", None)
    # h5py calls these, unlike all else, without its lock; beside a reading thread HDF5 would crash
    with phil:
        while h5py.h5pl.size():
            h5py.h5pl.remove(0)
    return h5py.File(path, "r", locking="best-effort")


def check_format(file: h5py.File, name: str, version: tuple[int, int], noun: str) -> None:
    """Raise Refused unless a file says that it is of a format, in a version that is known."""
    if attribute(file, "format", "") != name:
        raise Refused(f"it is an HDF5 file, but not a {noun} of hgviz", CHOOSE_FILE)
    theirs = attribute(file, "format_version", version)
    require(len(theirs) == 2, f"its format version is {len(theirs)} numbers and not 2")
    if theirs[0] != version[0]:
        which = "a newer" if theirs[0] > version[0] else "an older"
        raise Refused(
            f"it has format version {'.'.join(map(str, theirs))} and this hgviz knows "
            f"{'.'.join(map(str, version))}: {which} hgviz is needed",
            "Open it with the version of hgviz that wrote it",
        )


def says_format(path: str, name: str) -> bool:
    """Whether a path is an HDF5 file of a format. Raises HgvizError where HDF5 cannot open it."""
    try:
        if not os.path.isfile(path):  # opening a pipe would wait for its writer
            return False
        with open(path, "rb") as start:
            if start.read(len(MAGIC)) != MAGIC:
                return False
    except OSError:
        return False
    with reading(path), open_file(path) as file:
        return bool(attribute(file, "format", "") == name)


def has(group: h5py.Group, path: str) -> bool:
    """Whether a group has a link of that name, whatever it leads to. Raises Refused for a link
    elsewhere on the way there."""
    *parents, last = path.split("/")
    for parent in parents:
        if not group.id.links.exists(parent.encode()):
            return False
        group = subgroup(group, parent)
    return bool(group.id.links.exists(last.encode()))


def subgroup(group: h5py.Group, path: str) -> h5py.Group:
    """A group inside a group, reached by hard links alone. Raises Refused."""
    child = _child(group, path)
    if not isinstance(child, h5py.Group):
        raise Refused(f"{_name(group, path)} is not a group")
    return child


def plain_dataset(
    group: h5py.Group, path: str, dtypes: tuple[str, ...], packing: Packing = "never"
) -> h5py.Dataset:
    """A dataset of little-endian numbers that all lie in this file, as many as it declares.

    Compressed ones, whose size on the disk says nothing, are read with a limit (see arrays.Packed).
    Raises Refused.
    """
    found = _child(group, path)
    if fault := _fault(found, dtypes, packing):
        raise Refused(f"{_name(group, path)} {fault}")
    dataset: h5py.Dataset = found
    return dataset


def _fault(found: Any, dtypes: tuple[str, ...], packing: Packing) -> str:
    """What is wrong with a dataset in words, "" for nothing."""
    if not isinstance(found, h5py.Dataset):
        return "is not a dataset"
    plist, dtype, shape = found.id.get_create_plist(), found.dtype, found.shape
    layout = plist.get_layout()
    if layout == h5py.h5d.VIRTUAL or plist.get_external_count():
        return "takes its data from another file, which is not read"
    filters = {plist.get_filter(at)[0] for at in range(plist.get_nfilters())}
    if not filters <= FILTERS:
        return "is packed by a filter that hgviz does not use"
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
    if not packed and declared * dtype.itemsize > found.id.get_storage_size():
        return f"declares {declared} numbers, more than the file holds"
    return ""


def numbers(found: h5py.Dataset) -> NDArray[Any]:
    """All of a small dataset, compared with its checksum where it has one. Raises Refused."""
    values: NDArray[Any] = found[...]
    expected = attribute(found, "crc32", 0) if "crc32" in found.attrs else None
    if expected not in (None, zlib.crc32(np.ascontiguousarray(values).data)):
        raise Refused(f"{found.name} is not what was written to it")
    return values


def text(group: h5py.Group, path: str) -> str:
    """The text whose UTF-8 bytes a dataset holds. Raises Refused."""
    return bytes(numbers(plain_dataset(group, path, ("u1",)))).decode("utf-8", "surrogatepass")


def parsed(group: h5py.Group, path: str) -> Any:
    """The JSON document that a dataset holds. Raises Refused."""
    if plain_dataset(group, path, ("u1",)).nbytes > DOCUMENT_LIMIT:
        raise Refused(f"{_name(group, path)} is longer than any document is")
    try:
        return json.loads(text(group, path))
    except (ValueError, RecursionError) as error:
        raise Refused(f"{_name(group, path)} is not JSON ({error})") from None


def attribute(found: h5py.Group | h5py.Dataset, name: str, like: Any) -> Any:
    """An attribute of the type of `like`: str, int, float, bool or tuple of int. Raises Refused."""
    if not h5py.h5a.exists(found.id, name.encode()):
        raise Refused(f"the attribute {name} of {found.name} is missing")
    stored = h5py.h5a.open(found.id, name.encode())
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
        raise Refused(f"the attribute {name} of {found.name} is not what belongs there")
    value = np.empty(shape, stored.dtype)
    stored.read(value)
    if is_text:
        return value.tobytes().rstrip(b"\0").decode("utf-8")
    return tuple(map(int, value)) if isinstance(like, tuple) else type(like)(value)


def _child(group: h5py.Group, path: str) -> Any:
    for part in path.split("/"):
        if not isinstance(group, h5py.Group) or not group.id.links.exists(part.encode()):
            raise Refused(f"{_name(group, part)} is missing")
        if group.id.links.get_info(part.encode()).type != h5py.h5l.TYPE_HARD:
            raise Refused(f"{_name(group, part)} is a link to somewhere else, which is not read")
        group = group[part]
    return group


def _name(group: h5py.Group, path: str) -> str:
    return f"{group.name.rstrip('/')}/{path}"
