"""Files from strangers: nothing outside our own schema is followed, loaded or believed."""

from __future__ import annotations

import errno
import json
import math
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import h5py
import numpy as np
from h5py._objects import phil
from numpy.typing import NDArray

from hgviz.core import HgvizError
from hgviz.store.schema import FORMAT, PACKABLE, PACKED, VERSION, Row

MAGIC = b"\x89HDF\r\n\x1a\n"
LARGEST_CHUNK = 64 << 20
LARGEST_ATTRIBUTE = 64 << 10
LARGEST_DOCUMENT = 64 << 20
_FILTERS = {h5py.h5z.FILTER_FLETCHER32, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_DEFLATE}


FILE = "Choose a file that hgviz wrote"
LOCKED = {errno.EAGAIN, errno.EWOULDBLOCK}
SYSTEM = {errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOENT, errno.ENOMEM, errno.ESTALE}


class Refused(Exception):
    """What is wrong with a file, in words; becomes an HgvizError that names the file.

    do: what to do about it, where that is not to make the file anew.
    """

    def __init__(self, why: str, do: str = "") -> None:
        super().__init__(why)
        self.do = do


@contextmanager
def reading(path: str, again: str = "Capture") -> Iterator[None]:
    """Turns everything that goes wrong while a file is read into one HgvizError.

    again: what makes such a file anew.
    """
    try:
        yield
    except HgvizError:
        raise
    except PermissionError:
        raise HgvizError(
            f"{path} cannot be read: you have no permission to read it", "Ask its owner for it"
        ) from None
    except Refused as reason:
        raise HgvizError(
            f"{path} cannot be read: {str(reason)}",
            reason.do or f"{again} again, or ask for the file again",
        ) from None
    # h5py raises almost any of them for damaged files
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, MemoryError) as error:
        why = "it is damaged, cut short, or was changed while it was open"
        do = f"{again} again, or ask for the file again"
        number = getattr(error, "errno", None)
        if number in LOCKED or "already open for write" in str(error):
            why, do = "it is open for writing in another program", "Close it there first"
        elif number in SYSTEM:
            why, do = os.strerror(number or 0), "Try again, or copy it to another disk"
        elif isinstance(error, MemoryError):
            why, do = "it does not fit in memory", "Open it on a machine with more memory"
        details = f"{type(error).__name__}: {error}"
        raise HgvizError(f"{path} cannot be read: {why}", do, details=details) from error


def open_file(path: str) -> h5py.File:
    """An HDF5 file open for reading; no filter plugin is ever loaded for it."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise Refused("it is not a regular file", FILE)
    with open(path, "rb") as file:
        start = file.read(len(MAGIC))
    if not start:
        raise Refused("it is empty")
    if start != MAGIC:
        raise Refused("it is not an HDF5 file", FILE)
    os.environ.pop("HDF5_PLUGIN_PATH", None)
    # h5py has these calls, alone of all, without its lock; HDF5 loses its way where two overlap
    with phil:
        while h5py.h5pl.size():
            h5py.h5pl.remove(0)
    return h5py.File(path, "r", locking="best-effort")


def check_format(
    file: h5py.File,
    wanted: str = FORMAT,
    known: tuple[int, int] = VERSION,
    noun: str = "capture",
) -> None:
    """Raises Refused unless the file says that it is of a format, in a version known here."""
    if attribute(file, "format", "") != wanted:
        raise Refused(f"it is an HDF5 file, but not a {noun} of hgviz", FILE)
    version = attribute(file, "format_version", known)
    if len(version) != 2:
        raise Refused(f"its format version is {len(version)} numbers and not 2")
    if version[0] != known[0]:
        found, here = (".".join(map(str, one)) for one in (version, known))
        which = "a newer" if version[0] > known[0] else "an older"
        raise Refused(
            f"it has format version {found} and this hgviz knows {here}: {which} hgviz is needed",
            "Open it with the version of hgviz that wrote it",
        )


def says_format(path: str, wanted: str) -> bool:
    """Whether a path is an HDF5 file that says so. Errors: HgvizError where HDF5 cannot open it."""
    try:
        if not os.path.isfile(path):  # to open a pipe is to wait for its writer
            return False
        with open(path, "rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                return False
    except OSError:
        return False
    with reading(path), open_file(path) as opened:
        return bool(attribute(opened, "format", "") == wanted)


# --- groups and links -----------------------------------------------------------------------------


def has(group: h5py.Group, name: str) -> bool:
    """Whether a group has a link of that name, whatever it leads to."""
    return group.id.links.exists(name.encode()) if "/" not in name else _has_path(group, name)


def _has_path(group: h5py.Group, path: str) -> bool:
    first, rest = path.split("/", 1)
    return has(group, first) and has(subgroup(group, first), rest)


def subgroup(group: h5py.Group, name: str) -> h5py.Group:
    """A group inside a group, reached by hard links only."""
    found = _child(group, name)
    if not isinstance(found, h5py.Group):
        raise Refused(f"{_named(group, name)} is not a group")
    return found


def _child(group: h5py.Group, name: str) -> Any:
    for part in name.split("/"):
        if not isinstance(group, h5py.Group) or not has(group, part):
            raise Refused(f"{_named(group, part)} is missing")
        if group.id.links.get_info(part.encode()).type != h5py.h5l.TYPE_HARD:
            raise Refused(f"{_named(group, part)} is a link to somewhere else, which is not read")
        group = group[part]
    return group


def _named(group: h5py.Group, name: str) -> str:
    return f"{group.name.rstrip('/')}/{name}"


# --- datasets -------------------------------------------------------------------------------------


def dataset(group: h5py.Group, name: str, row: Row, sizes: dict[str, int]) -> h5py.Dataset | None:
    """A dataset that is what the schema says, None when it is optional and not there.

    sizes gives the dimensions known so far and takes those found here.
    """
    dimensions, kinds, required = row
    if not required and not has(group, name):
        return None
    found = plain_dataset(group, name, kinds)
    if len(found.shape) != len(dimensions):
        many = f"{len(found.shape)} dimensions instead of {len(dimensions)}"
        raise Refused(f"{_named(group, name)} has {many}")
    for dimension, size in zip(dimensions, found.shape, strict=True):
        if sizes.setdefault(dimension, size) != size:
            expected = ", ".join(str(sizes.get(one, one)) for one in dimensions)
            shape = ", ".join(map(str, found.shape))
            where = _named(group, name)
            raise Refused(f"{where} has the shape ({shape}) instead of ({expected})")
    return found


def plain_dataset(group: h5py.Group, name: str, kinds: tuple[str, ...]) -> h5py.Dataset:
    """A dataset of plain numbers that all lie in this file, as many as it declares."""
    found = _child(group, name)
    if wrong := _wrong(found, kinds, name):
        raise Refused(f"{_named(group, name)} {wrong}")
    dataset: h5py.Dataset = found
    return dataset


def _wrong(found: Any, kinds: tuple[str, ...], name: str) -> str:
    """What is wrong with a dataset in words, "" for nothing; by its name it is to be compressed,
    may be, or is not."""
    if not isinstance(found, h5py.Dataset):
        return "is not a dataset"
    plist, dtype, shape = found.id.get_create_plist(), found.dtype, found.shape
    layout = plist.get_layout()
    if layout == h5py.h5d.VIRTUAL or plist.get_external_count():
        return "takes its data from another file, which is not read"
    filters = {plist.get_filter(at)[0] for at in range(plist.get_nfilters())}
    if not filters <= _FILTERS:
        return "is packed by a filter that hgviz does not use"
    if dtype.str[1:] not in kinds or dtype.byteorder == ">" or shape is None:
        return f"holds {dtype}, not {' or '.join(kinds)}"
    if layout == h5py.h5d.CHUNKED:
        chunk = math.prod(plist.get_chunk())
        if chunk * dtype.itemsize > LARGEST_CHUNK:
            return f"has chunks of {chunk} numbers"
    declared = math.prod(shape)
    packed, packs = h5py.h5z.FILTER_DEFLATE in filters, name.split("/")[0] in PACKED
    if packed != packs and not (packed and name in PACKABLE):  # they are unpacked with a limit
        return f"is{'' if packed else ' not'} compressed"
    if not packed and declared * dtype.itemsize > found.id.get_storage_size():
        return f"declares {declared} numbers, more than the file holds"
    return ""


def numbers(found: h5py.Dataset) -> NDArray[Any]:
    """All of a small dataset, compared with its checksum where it carries one."""
    values: NDArray[Any] = found[...]
    expected = attribute(found, "crc32", 0) if "crc32" in found.attrs else None
    if expected not in (None, zlib.crc32(np.ascontiguousarray(values).data)):
        raise Refused(f"{found.name} is not what was written to it")
    return values


def text(group: h5py.Group, name: str) -> str:
    """UTF-8 bytes as text."""
    return bytes(numbers(plain_dataset(group, name, ("u1",)))).decode("utf-8", "surrogatepass")


def parsed(group: h5py.Group, name: str) -> Any:
    """A JSON document."""
    if plain_dataset(group, name, ("u1",)).nbytes > LARGEST_DOCUMENT:
        raise Refused(f"{_named(group, name)} is longer than any document is")
    try:
        return json.loads(text(group, name))
    except (ValueError, RecursionError) as error:
        raise Refused(f"{_named(group, name)} is not JSON ({error})") from None


# --- attributes -----------------------------------------------------------------------------------


def attribute(found: h5py.Group | h5py.Dataset, name: str, like: Any) -> Any:
    """An attribute of the type of `like`: a str, an int, a float, a bool, or a tuple of int."""
    if not h5py.h5a.exists(found.id, name.encode()):
        raise Refused(f"the attribute {name} of {found.name} is missing")
    one = h5py.h5a.open(found.id, name.encode())
    stored, is_text = one.get_type(), isinstance(like, str)
    kind = stored.get_class()
    wanted = {h5py.h5t.STRING} if is_text else {h5py.h5t.INTEGER, h5py.h5t.FLOAT}
    if (
        kind not in wanted
        or one.shape is None
        or math.prod(one.shape) * stored.get_size() > LARGEST_ATTRIBUTE
        or (is_text and stored.is_variable_str())
        or (one.shape != ()) is not isinstance(like, tuple)
        or (isinstance(like, int | tuple) and kind == h5py.h5t.FLOAT)
    ):
        raise Refused(f"the attribute {name} of {found.name} is not what belongs there")
    value = np.empty(one.shape, one.dtype)
    one.read(value)
    if is_text:
        return value.tobytes().rstrip(b"\0").decode("utf-8")
    return tuple(int(item) for item in value) if isinstance(like, tuple) else type(like)(value)
