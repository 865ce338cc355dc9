"""What is open, as one value: a session file holds it, the next start restores it.

A .hgviz file is one JSON document. It comes from anywhere, so it is read like one from a stranger:
of a bounded size, every value of its own type and range, and no path in it is absolute. Nothing
that it names is opened here.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path, PurePath, PurePosixPath
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from hgviz.core import Display, HeadSet, Selection
from hgviz.errors import HgvizError
from hgviz.files import is_model_name, path_exists, resource, write_atomic
from hgviz.study import Mask

SUFFIX = ".hgviz"
FORMAT: Final = "hgviz session"
VERSION: Final = 2
MAX_BYTES = 16 << 20  # the text of the longest capture takes less

Mode = Literal["inspect", "follow", "prune", "compare", "sweep"]
SourceKind = Literal["activation", "model", "text", "off", "head"]
Pixels = Annotated[int, Meta(ge=0, le=1 << 15)]
PathName = Annotated[str, Meta(max_length=4096)]


class SideB(msgspec.Struct, frozen=True, omit_defaults=True):
    """What B is, beside A, by its kind.

    activation: the same checkpoint on the same text, its attention exchanged, "" for its own.
    model: the checkpoint or capture at `path`, a checkpoint on the same text, its attention
    exchanged where `activation` says so. text: the same model on `text` and `second`. off: the same
    model on the same text without these heads. head: another head of the same capture, such as one
    of another level, which Selection.beside names.
    """

    kind: SourceKind
    activation: str = ""
    path: PathName = ""
    text: str = ""
    second: str = ""
    off: HeadSet = frozenset()


class Layout(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the window is laid out: its size, whether it fills the screen, and the state of its docks
    (QMainWindow.saveState) in base 64."""

    size: tuple[Pixels, Pixels] | None = None
    whole: bool = False
    docks: Annotated[str, Meta(max_length=16384)] = ""


class Document(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything that is open, chosen and shown. The names are those of Session. Paths are
    absolute; in a file they are relative to it."""

    model: PathName = ""  # the checkpoint
    activation: str = ""
    capture: PathName = ""  # a file of attention maps; without one, the text is run again
    item: Annotated[int, Meta(ge=0)] = 0  # which of its texts
    text: str = ""
    second: str = ""
    ids: PathName = ""
    off: HeadSet = frozenset()
    masks: tuple[Mask, ...] = ()
    comparison: SideB | None = None
    study: PathName = ""
    unsaved: PathName = ""  # a study file with more in it than `study` has
    examples: str = ""  # the digest of the examples that masks were scored on
    data: PathName = ""
    sweep: PathName = ""
    cell: str = ""
    score: str = ""
    selection: Selection | None = None
    display: Display = Display()
    mode: Mode = "inspect"
    look: str = "map"
    shade: str = ""
    layout: Layout = Layout()

    @property
    def paths(self) -> dict[str, str]:
        """The paths in it, by what they are for, without those that are empty."""
        names = ("model", "capture", "ids", "study", "unsaved", "data", "sweep")
        paths = {name: getattr(self, name) for name in names}
        paths["comparison"] = self.comparison.path if self.comparison is not None else ""
        return {name: path for name, path in paths.items() if path}

    @property
    def missing(self) -> dict[str, str]:
        """Those of its paths where nothing is, by what they are for."""
        return {name: path for name, path in self.paths.items() if not _is_there(path)}

    def with_paths(self, paths: dict[str, str]) -> Document:
        """The same with other paths, by what they are for; a comparison whose path is "" goes."""
        fields: dict[str, Any] = dict(paths)
        if "comparison" in fields and self.comparison is not None:
            path = fields["comparison"]
            fields["comparison"] = replace(self.comparison, path=path) if path else None
        return replace(self, **fields)


class _Header(msgspec.Struct):
    """What is read of a file first, whatever its version."""

    format: Literal["hgviz session"]
    version: int


class _File(_Header):
    """A session file as JSON."""

    open: Document = Document()


def is_session(path: str | Path) -> bool:
    """Whether a path is a file with the ending of sessions; any other is judged by its content."""
    return str(path).endswith(SUFFIX) and os.path.isfile(path)


def read_document(path: str | Path) -> Document:
    """Read a session file. Raises HgvizError with one line for whatever is wrong with it."""
    name = Path(path).name
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise _refused(name, "it is not a regular file")
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _refused(name, (error.strerror or str(error)).lower()) from None
    if len(content) > MAX_BYTES:
        raise _refused(name, f"it is larger than {MAX_BYTES >> 20} MB")
    try:
        version = msgspec.json.decode(content, type=_Header).version
        if version != VERSION:
            raise _refused(name, f"it has version {version}; this hgviz reads {VERSION}")
        document = msgspec.json.decode(content, type=_File).open
        folder = Path(path).absolute().parent
        paths = {what: _absolute(place, folder) for what, place in document.paths.items()}
        return document.with_paths(paths)
    except RecursionError:
        raise _refused(name, "its JSON is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        reason = str(error)[:200]
        if not reason[1:2].isupper():
            reason = reason[:1].lower() + reason[1:]
        raise _refused(name, reason) from None


def write_document(document: Document, path: str | Path) -> str:
    """Write a session file in one move; returns its path. Raises OSError."""
    path = Path(path)
    folder = path.absolute().parent
    folder.mkdir(parents=True, exist_ok=True)
    paths = {what: _relative(place, folder) for what, place in document.paths.items()}
    file = _File(FORMAT, VERSION, document.with_paths(paths))
    content = msgspec.json.encode(file, order="deterministic")
    write_atomic(path, msgspec.json.format(content, indent=1) + b"\n", lasting=False)
    return str(path)


def _refused(name: str, why: str) -> HgvizError:
    return HgvizError(
        f"{name} cannot be opened as a session: {why}", "Choose another file, or save it again"
    )


# --- paths ----------------------------------------------------------------------------------------


def _relative(path: str, folder: Path) -> str:
    """A path as a file in a folder names it: "file:" and the way from there, "sample:" of what
    comes with hgviz, "cache:" and the name of a model; "" where no way leads there."""
    if not os.path.lexists(path) and is_model_name(path):
        return f"cache:{path}"
    there, samples = Path(path).absolute(), resource("sample").absolute()
    if there.is_relative_to(samples):
        return f"sample:{there.relative_to(samples).as_posix()}"
    try:
        return f"file:{PurePath(os.path.relpath(there, folder)).as_posix()}"
    except ValueError:  # on another drive
        return ""


def _absolute(place: str, folder: Path) -> str:
    """The path that a file in a folder names. Raises ValueError where it may not be followed."""
    of, _, path = place.partition(":")
    if of not in ("file", "sample", "cache") or not path:
        raise ValueError(f"{place!r} is not a valid path")
    if any(ord(one) < 32 for one in path) or "\\" in path:
        raise ValueError(f"{place!r} contains invalid characters")
    if PurePosixPath(path).is_absolute() or re.match(r"[A-Za-z]:|~|[a-z]+://", path):
        raise ValueError(f"{place!r} is absolute: paths in a session must be relative")
    if of == "file":
        return os.path.normpath(folder / path)
    if ".." in path:
        raise ValueError(f"{place!r} leads outside its folder")
    return path if of == "cache" else str(resource(f"sample/{path}"))


def _is_there(path: str) -> bool:
    """Whether there is something at a path, or a model of that name in the cache."""
    return path_exists(path) if is_model_name(path) else os.path.exists(path)
