"""Where the things of a session lie: from paths to places in its file and back."""

from __future__ import annotations

import os
from pathlib import Path

from hgviz.files import is_model_name, path_exists, resource
from hgviz.session.saved import Place

MOST = 12  # files that were opened last, and commands that were found last


def place_of(path: str, session_file: str | Path) -> Place | None:
    """The place of a path beside a session file; None for "" and where no relative path leads."""
    if not path:
        return None
    if not os.path.lexists(path) and is_model_name(path):
        return Place(path, "cache")
    there, own = Path(path).absolute(), resource("sample").absolute()
    if there.is_relative_to(own):
        return Place(f"sample/{there.relative_to(own).as_posix()}", "hgviz")
    try:
        relative = os.path.relpath(there, Path(session_file).absolute().parent)
    except ValueError:  # on another drive
        return None
    return Place(Path(relative).as_posix())


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
    return path_exists(path) if place.of == "cache" else os.path.exists(path)


def add_recent(kept: tuple[str, ...], one: str) -> tuple[str, ...]:
    """The items with this one first and not repeated, at most MOST of them."""
    return (one, *(other for other in kept if other != one))[:MOST]
