"""A session in a file: what was open, chosen and shown, by paths relative to the file.

A .hgviz file is one JSON document. It comes from anywhere, so it is read like one from a stranger:
of a bounded size and depth, every value of its own type and range, and no path in it is absolute.
Nothing it names is opened here.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path, PurePosixPath
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from hgviz.errors import HgvizError
from hgviz.files import is_model_name, path_exists, resource, write_atomic

SUFFIX = ".hgviz"
FORMAT: Final = "hgviz session"
VERSION = 1
LARGEST = 16 << 20  # bytes; the text of the longest capture takes less
DEEPEST = 8  # brackets within brackets; ours have four
LONGEST = 4096  # characters of a path or a name

Name = Annotated[str, Meta(max_length=LONGEST)]
Count = Annotated[int, Meta(ge=0, le=1 << 40)]
Heads = Annotated[tuple[Name, ...], Meta(max_length=1 << 16)]
Pixels = Annotated[int, Meta(ge=0, le=1 << 15)]
Few = Annotated[tuple[Name, ...], Meta(max_length=64)]


class Place(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a thing lies. of "file": relative to the session file, with slashes; "hgviz": among
    what comes with the program; "cache": the name of a model in the local cache."""

    path: Name
    of: Literal["file", "hgviz", "cache"] = "file"


class SavedScore(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a mask scored, as core.Score has it, and its change to the whole model."""

    metric: Name
    value: float
    low: float
    high: float
    seen: Count
    total: Count
    change: tuple[float, float, float] | None = None


class SavedMask(msgspec.Struct, frozen=True, omit_defaults=True):
    """Heads under a name, and what they scored on the examples of Saved.scored."""

    name: Name
    off: Heads = ()
    score: SavedScore | None = None


class Beside(msgspec.Struct, frozen=True, omit_defaults=True):
    """What B is beside A, as session.other has it."""

    kind: Literal["activation", "model", "text", "off", "head"]
    activation: Name = ""
    place: Place | None = None
    text: str = ""
    second: str = ""
    off: Heads = ()


class Chosen(msgspec.Struct, frozen=True, omit_defaults=True):
    """The selection: a head, tokens, and the head that stands beside."""

    layer: Count = 0
    head: Count = 0
    query: Count | None = None
    key: Count | None = None
    beside: Name = ""


class Shown(msgspec.Struct, frozen=True, omit_defaults=True):
    """How weights become colours, and which page and look are in front."""

    palette: Name = "viridis"
    limits: tuple[float, float] | None = None
    scale: Literal["linear", "sqrt", "log"] = "sqrt"
    shared: bool = False
    mode: Name = "inspect"
    look: Name = "map"
    shade: Name = ""


class Layout(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the window is laid out: its size, and what Qt saved of the docks, in base 64."""

    size: tuple[Pixels, Pixels] | None = None
    whole: bool = False
    docks: Annotated[str, Meta(max_length=16384)] = ""


class Saved(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session as its file has it; see Session for what the names mean.

    capture: a file of maps; without one, the text is captured again. item: which text of it.
    unsaved: the study where more was measured than its own file has. scored: the digest of the
    examples that masks were scored on.
    """

    format: Literal["hgviz session"]
    version: int
    model: Place | None = None
    activation: Name = ""
    capture: Place | None = None
    item: Count = 0
    text: str = ""
    second: str = ""
    ids: Place | None = None
    off: Heads = ()
    masks: Annotated[tuple[SavedMask, ...], Meta(max_length=4096)] = ()
    beside: Beside | None = None
    study: Place | None = None
    unsaved: Place | None = None
    scored: Name = ""
    data: Place | None = None
    sweep: Place | None = None
    cell: Name = ""
    score: Name = ""
    chosen: Chosen | None = None
    shown: Shown = Shown()
    layout: Layout = Layout()

    @property
    def places(self) -> dict[str, Place]:
        """Everything it names that lies elsewhere, by what it is for."""
        names = ("model", "capture", "ids", "study", "unsaved", "data", "sweep")
        found = {name: getattr(self, name) for name in names}
        found["beside"] = self.beside.place if self.beside is not None else None
        return {name: place for name, place in found.items() if place is not None}

    def moved(self, name: str, place: Place | None) -> Saved:
        """The same with a thing at another place, or without it."""
        if name != "beside":
            return msgspec.structs.replace(self, **{name: place})
        beside = None
        if place is not None and self.beside is not None:
            beside = msgspec.structs.replace(self.beside, place=place)
        return msgspec.structs.replace(self, beside=beside)


def is_session(path: str | Path) -> bool:
    """Whether a path is a file with the ending of sessions; any other is judged by its content."""
    return str(path).endswith(SUFFIX) and os.path.isfile(path)


def read(path: str | Path) -> Saved:
    """A session file. Errors: HgvizError, one clear line for whatever is wrong with it."""
    name = Path(path).name
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise _refused(name, "it is no regular file")
        with open(path, "rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise _refused(name, (error.strerror or str(error)).lower()) from None
    if len(content) > LARGEST:
        raise _refused(name, f"it is larger than {LARGEST >> 20} MB, which no session is")
    if _depth(content) > DEEPEST:
        raise _refused(name, "it is nested deeper than any session is")
    try:
        head = msgspec.json.decode(content, type=_Head)
        if head.format == FORMAT and head.version != VERSION:
            newer = f"it has version {head.version}, and this hgviz reads {VERSION}"
            raise _refused(name, newer)
        saved = msgspec.json.decode(content, type=Saved)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        said = str(error)
        raise _refused(
            name, said[:200] if said[1:2].isupper() else said[:1].lower() + said[1:200]
        ) from None
    for what, place in saved.places.items():
        if wrong := _wrong(place):
            raise _refused(name, f"the path of its {what} {wrong}")
    return saved


def write(saved: Saved, path: str | Path) -> str:
    """Write a session in one move; gives the path. Raises OSError."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = msgspec.json.format(msgspec.json.encode(saved), indent=1) + b"\n"
    write_atomic(path, content, lasting=False)
    return str(path)


class _Head(msgspec.Struct):
    format: str
    version: int


def _refused(name: str, why: str) -> HgvizError:
    return HgvizError(
        f"{name} cannot be opened as a session: {why}", "Choose another, or save it again"
    )


def _depth(content: bytes) -> int:
    """How many brackets stand within each other, outside of strings."""
    bare = re.sub(rb'"(?:[^"\\]|\\.)*"', b"", content, flags=re.DOTALL)
    deepest = depth = 0
    for mark in re.findall(rb"[\[{\]}]", bare):
        depth += 1 if mark in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _wrong(place: Place) -> str:
    """What is wrong with a path in a session, "" for nothing."""
    path = place.path
    if not path:
        return "is empty"
    if place.of != "file" and ".." in path:
        return "leads out of where it belongs"
    if any(ord(one) < 32 for one in path) or "\\" in path:
        return "has characters that no path has here"
    if PurePosixPath(path).is_absolute() or re.match(r"[A-Za-z]:|~|[a-z]+://", path):
        return "is absolute: sessions have relative ones only"
    return ""


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


__all__ = [
    "FORMAT", "SUFFIX", "VERSION", "Beside", "Chosen", "Layout", "Place", "Saved", "SavedMask",
    "SavedScore", "Shown", "is_at", "is_session", "path_of", "place_of", "read", "write",
]  # fmt: skip
