"""HDF5 files that are there whole or not at all, also when the disk is full or the power goes."""

from __future__ import annotations

import errno
import io
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import h5py

from hgviz.core import HgvizError
from hgviz.files import TEMPORARY, sync_folder

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Sink(io.RawIOBase):
    """A file for HDF5 to write to that never fails: the first error is kept for its owner.

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
        """Read what was written, and zeros where nothing was: HDF5 takes all of the buffer."""
        room = memoryview(buffer).cast("B")
        found = b""
        try:
            os.lseek(self._file, self._at, os.SEEK_SET)
            found = os.read(self._file, len(room))
        except BaseException as error:
            self.keep(error)
        room[: len(found)] = found
        room[len(found) :] = bytes(len(room) - len(found))
        self._at += len(room)
        return len(room)

    def write(self, data: Any) -> int:
        """Write all of data, or drop it after an error."""
        left = memoryview(data).cast("B")
        size = len(left)
        try:
            os.lseek(self._file, self._at, os.SEEK_SET)
            while len(left) and self.error is None:
                left = left[os.write(self._file, left) :]
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
        """An error for the owner, unless there was one before it."""
        self.error = self.error or error

    def sync(self) -> None:
        """All of it is on the disk afterwards. Raises the first error there was."""
        if self.error is None:
            os.fsync(self._file)
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            os.close(self._file)
        super().close()


CALLED = {one.__code__ for one in (Sink.seek, Sink.tell, Sink.readinto, Sink.write, Sink.truncate)}


@contextmanager
def _interrupted_outside(sink: Sink) -> Iterator[None]:
    """A stop that Python notices while HDF5 calls the sink is kept by it, like a full disk.

    Raised there, it went on through HDF5 and came out as an AttributeError. Most of those of a long
    merge are noticed there, before the first line of a method, where no `try` of its own helps.
    """
    numbers = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")]
    usual: dict[int, Callable[[int, FrameType | None], Any]] = {}
    if threading.current_thread() is threading.main_thread():  # else they are raised elsewhere
        for one in numbers:
            handler = None if one is None else signal.getsignal(one)
            if one is not None and callable(handler):  # others end the process, or are ignored
                usual[one] = handler

    def heard(number: int, frame: FrameType | None) -> None:
        try:
            usual[number](number, frame)
        except BaseException as error:
            if frame is None or frame.f_code not in CALLED:
                raise
            sink.keep(error)

    for number in usual:
        signal.signal(number, heard)
    try:
        yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)


@contextmanager
def whole_hdf5(path: Path, scratch: Path | None = None) -> Iterator[h5py.File]:
    """An HDF5 file to write; it gets its name at the end, or leaves nothing behind.

    scratch: where it grows until then, on the same disk as path; beside it if not given.
    """
    temporary = scratch or path.with_name(path.name + TEMPORARY)
    sink = None
    try:
        sink = Sink(temporary)
        with _interrupted_outside(sink), h5py.File(sink, "w") as file:
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


def is_full(error: BaseException) -> bool:
    """Whether a disk had no room left."""
    return isinstance(error, OSError) and error.errno in _FULL


@contextmanager
def writing(path: Path, kept: str = "") -> Iterator[None]:
    """Turns what goes wrong while writing into one HgvizError; kept says what stays."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        if is_full(error):
            raise HgvizError(
                f"the disk is full: {path.name} could not be written: "
                f"{kept or 'nothing was written'}",
                f"Free some space in {path.parent} and run it again",
            ) from error
        raise HgvizError(f"{path} cannot be written: "
f"{why[:1].lower() + why[1:]}",
"Choose a folder you can write to") from error  # fmt: skip
