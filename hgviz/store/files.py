"""Files that are there whole or not at all, also when the disk is full or the power goes."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import h5py

from hgviz.core import HgvizError

TEMPORARY = ".tmp"
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
        self.error: OSError | None = None

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to an offset."""
        self._at = offset + (0, self._at, self._end)[whence]
        return self._at

    def tell(self) -> int:
        """The offset."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read what was written."""
        os.lseek(self._file, self._at, os.SEEK_SET)
        found = os.read(self._file, len(buffer))
        buffer[: len(found)] = found
        self._at += len(found)
        return len(found)

    def write(self, data: Any) -> int:
        """Write all of data, or drop it after an error."""
        left = memoryview(data).cast("B")
        size = len(left)
        try:
            os.lseek(self._file, self._at, os.SEEK_SET)
            while len(left) and self.error is None:
                left = left[os.write(self._file, left) :]
        except OSError as error:
            self.error = error
        self._at += size
        self._end = max(self._end, self._at)
        return size

    def truncate(self, size: int | None = None) -> int:
        """Cut or lengthen the file."""
        self._end = self._at if size is None else size
        try:
            os.ftruncate(self._file, self._end)
        except OSError as error:
            self.error = self.error or error
        return self._end

    def sync(self) -> None:
        """All of it is on the disk afterwards. Raises the first OSError there was."""
        if self.error is None:
            os.fsync(self._file)
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            os.close(self._file)
        super().close()


@contextmanager
def whole_hdf5(path: Path, scratch: Path | None = None) -> Iterator[h5py.File]:
    """An HDF5 file to write; it gets its name at the end, or leaves nothing behind.

    scratch: where it grows until then, on the same disk as path; beside it if not given.
    """
    temporary = scratch or path.with_name(path.name + TEMPORARY)
    sink = None
    try:
        sink = Sink(temporary)
        with h5py.File(sink, "w") as file:
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
        if sink is not None and sink.error is not None:
            raise sink.error from failure
        raise


def whole_text(path: Path, content: str) -> None:
    """Write a text file whole or not at all."""
    temporary = path.with_name(path.name + TEMPORARY)
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Names in a folder are on the disk afterwards, where the system knows how."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def writing(path: Path, kept: str = "") -> Iterator[None]:
    """Turns what goes wrong while writing into one HgvizError; kept says what stays."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno in _FULL:
            raise HgvizError(
                f"the disk is full: {path.name} could not be written",
                kept or "nothing was written",
                f"Free some space in {path.parent} and run it again",
            ) from error
        raise HgvizError(
            f"{path} cannot be written", why[:1].lower() + why[1:],
            "Choose a folder you can write to",
        ) from error  # fmt: skip
