"""Files that are there whole or not at all, and those that come with hgviz."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

SAMPLE = "sample"  # the folder whose files people may name
TEMPORARY = ".tmp"  # what the name of a file that is being written ends in

# --- writing --------------------------------------------------------------------------------------


@contextmanager
def open_atomic(path: Path, lasting: bool = True) -> Iterator[BinaryIO]:
    """Open a file for writing that takes the place of path at the end.

    After an error path is as it was, and nothing is left beside it. Several threads and processes
    may write the same path. lasting: what was written survives a loss of power. Raises OSError.
    """
    fresh = path.with_name(f".{os.urandom(6).hex()}{TEMPORARY}")
    try:
        with fresh.open("wb") as file:
            yield file
            file.flush()
            if lasting:
                os.fsync(file.fileno())
        os.replace(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
    if lasting:
        sync_folder(path.parent)


def write_atomic(path: Path, content: bytes | str, lasting: bool = True) -> None:
    """Write a file whole or not at all, text in UTF-8; see replacing."""
    with open_atomic(path, lasting) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder survive a loss of power, where the system knows how."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# --- what comes with hgviz ------------------------------------------------------------------------


def resource(name: str) -> Path:
    """The file or folder of that name, in a wheel, a frozen bundle or a checkout.

    Wheels and bundles carry hgviz/resources beside this module; a checkout keeps resources/ at
    its root.
    """
    inside = Path(__file__).with_name("resources")
    root = inside if inside.is_dir() else inside.parent.parent / "resources"
    return root / name


def find_sample(path: str | os.PathLike[str]) -> Path:
    """The path, or the bundled file of that name if path begins with sample/ and is not there.

    So sample/hourglass names the bundled model in every folder that has no such file of its own.
    """
    given = Path(path)
    if given.parts[:1] != (SAMPLE,) or ".." in given.parts or os.path.lexists(given):
        return given
    found = resource(given.as_posix())
    return found if found.exists() else given
