"""Where the things of a session lie: from paths to places in its file and back, with digests."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from hgviz.models.formats.cache import is_name, is_there
from hgviz.resources import resource
from hgviz.session.saved import Place

PIECES, PIECE = 64, 1 << 20  # of a file larger than all of them, so much is read, spread evenly
MOST_FILES = 4096  # of a folder


def place_of(path: str, session_file: str | Path, digest: bool = True) -> Place | None:
    """The place of a path beside a session file; None for "" and where no relative path leads.

    digest: whether to read what lies there, too. Raises OSError.
    """
    if not path:
        return None
    if not os.path.lexists(path) and is_name(path):
        return Place(path, "cache")
    there, own = Path(path).absolute(), resource("sample").absolute()
    if there.is_relative_to(own):
        return Place(f"sample/{there.relative_to(own).as_posix()}", "hgviz")
    try:
        relative = os.path.relpath(there, Path(session_file).absolute().parent)
    except ValueError:  # on another drive
        return None
    found = Path(relative).as_posix()
    return Place(found, digest=print_of(there) if digest else "")


def path_of(place: Place, session_file: str | Path) -> str:
    """The path of a place, absolute but for names in the cache."""
    if place.of == "cache":
        return place.path
    if place.of == "hgviz":
        return str(resource(place.path))
    return os.path.normpath(Path(session_file).absolute().parent / place.path)


def is_at(place: Place, session_file: str | Path) -> bool:
    """Whether there is something at a place."""
    path = path_of(place, session_file)
    return is_there(path) if place.of == "cache" else os.path.exists(path)


def print_of(path: str | Path) -> str:
    """A digest of what lies at a path: of a file, or of all files directly in a folder.

    Of files larger than 64 MiB 64 pieces of 1 MiB are read, spread evenly, and their size. "" for
    what is neither file nor folder. Raises OSError.
    """
    there, digest = Path(path), hashlib.sha256()
    if there.is_file():
        _read(there, digest)
    elif there.is_dir():
        inside = sorted(one for one in there.iterdir() if one.is_file())[:MOST_FILES]
        for one in inside:
            digest.update(f"{one.name}\0".encode("utf-8", "surrogateescape"))
            _read(one, digest)
    else:
        return ""
    return digest.hexdigest()[:32]


def _read(path: Path, digest: hashlib._Hash) -> None:
    size = path.stat().st_size
    digest.update(f"{size}\0".encode())
    with open(path, "rb") as file:
        if size <= PIECES * PIECE:
            for piece in iter(lambda: file.read(PIECE), b""):
                digest.update(piece)
            return
        for number in range(PIECES):
            file.seek(number * (size - PIECE) // (PIECES - 1))
            digest.update(file.read(PIECE))
