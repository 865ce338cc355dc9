"""The folder OUT.part of a capture that is being made: begun, gone on with, removed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py

from hgviz.core import NO_STREAMING, HeadSet, HgvizError, ModelSpec, Provenance, Streaming
from hgviz.files import TEMPORARY, write_atomic
from hgviz.store import schema
from hgviz.store.hdf5 import open_file, reading, whole_hdf5
from hgviz.store.header import read_made, spec_row
from hgviz.store.interrupted import left_beside, read_manifest

OLDEST = (1, 2)  # the oldest version whose parts can be put into a file of this one
VERSION = "format version"
STREAMING = "set of heads that stream"
UNSAID = {"kind of maps": "factors", STREAMING: {}}  # by manifests of 1.2 and of 1.7
Identity = dict[str, Any]


def part_of(path: Path) -> Path:
    """The folder in which a file grows."""
    return path.with_name(path.name + schema.PART)


def identity_of(
    spec: ModelSpec, off: HeadSet, made: Provenance, streaming: Streaming = NO_STREAMING, **of: Any
) -> Identity:
    """What two captures must have in common to be one; the names are shown to people."""
    return {
        "format": schema.FORMAT,
        VERSION: list(schema.VERSION),
        "model": hashlib.sha256(json.dumps(_told(spec), sort_keys=True).encode()).hexdigest(),
        "set of heads switched off": sorted(map(str, off)),
        STREAMING: streaming.to_dict(),
        "masking": made.masking,
        "number format": made.dtype,
        "kind of maps": "weights" if made.dense else "factors",
        **of,
    }


def _told(spec: ModelSpec) -> dict[str, Any]:
    """A spec as the versions before 1.5 tell it too, wherever they could."""
    data = spec_row(spec)
    for layer in data["layers"]:
        if layer["scores"] == "dot":
            del layer["scores"]
    for level in data["levels"]:
        if not level["apart"]:
            del level["apart"]
    return data


def refuse_existing(path: Path, force: bool) -> None:
    """Errors: HgvizError where there is a file already, unless force, or a folder."""
    if path.is_dir():
        raise HgvizError(f"{path} is a folder: a capture is one file", "Give the file a name")
    if not path.exists():
        return
    if part_of(path).is_dir() and left_beside(part_of(path)):
        remove(part_of(path))  # killed before it had done so itself
    if not force:
        raise HgvizError(
            f"{path} exists already: it was not touched", "Choose another name, or use --force"
        )


def begin(
    path: Path, identity: Identity, force: bool, write_root: Callable[[h5py.File], None]
) -> bool:
    """Have a folder to grow in; whether it is that of the same capture, to be gone on with.

    Raises HgvizError for that of another capture that holds something, unless force, which removes
    it.
    """
    part = part_of(path)
    if part.is_dir():
        for left in part.glob(f"*{TEMPORARY}"):
            left.unlink()
        found = read_manifest(part)
        kept = found is not None and not force and _holds(part)
        if found is not None and _same(part, found, identity, not kept):
            return True
        remove(part)  # of another capture, or killed before there was anything to go on with
    if part.exists() and not part.is_dir():
        raise HgvizError(
            f"{part} is in the way: captures grow in a folder of that name, and it is a file",
            "Move it, or choose another name",
        )
    part.mkdir(exist_ok=True)
    try:
        with whole_hdf5(part / schema.ROOT) as file:
            write_root(file)
        write_atomic(part / schema.MANIFEST, json.dumps(identity, indent=2))
    except BaseException:
        remove(part)  # there is nothing in it to go on with
        raise
    return False


def _same(part: Path, found: Identity, identity: Identity, force: bool) -> bool:
    found = {**UNSAID, **found}
    other = [name for name in identity if name != VERSION and found.get(name) != identity[name]]
    if not other and _fits(found.get(VERSION)):
        return True
    if force:
        return False
    if other:
        raise HgvizError(
            f"{part} holds an unfinished capture with another {' and another '.join(other)}: "
            "going on with it would mix the two",
            "Finish that one, choose another name, or start anew with --force",
        )
    raise HgvizError(
        f"{part} holds an unfinished capture of another version of the format: "
        f"this hgviz goes on with those of {_dotted(OLDEST)} to {_dotted(schema.VERSION)}",
        "Finish it with the hgviz that began it, or start anew with --force",
    )


def _fits(version: Any) -> bool:
    whole = isinstance(version, list) and [type(one) for one in version] == [int, int]
    return whole and OLDEST <= tuple(version) <= schema.VERSION


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def begun_at(part: Path, otherwise: str) -> str:
    """When the capture in a folder was begun."""
    with suppress(HgvizError), reading(str(part)), open_file(str(part / schema.ROOT)) as file:
        return read_made(file).created
    return otherwise


def _holds(part: Path) -> bool:
    """Whether there is anything to go on with: a layer, or a text of a corpus."""
    if any(part.glob("layer-*.h5")):
        return True
    return any(not one.is_dir() or _holds(one) for one in part.glob("item-*"))


def let_go(part: Path) -> None:
    """Remove the folder of a capture that failed, unless there is anything to go on with."""
    if not _holds(part):
        remove(part)


def remove(part: Path) -> None:
    """Remove our own files and the folder, if nothing else is in it.

    The manifest goes first: without it, whatever is left after a kill is never gone on with.
    """
    (part / schema.MANIFEST).unlink(missing_ok=True)
    for folder in part.glob("item-*.h5" + schema.PART):
        remove(folder)
    for pattern in ("item-*.h5", "layer-*.h5", schema.ROOT, f"*{TEMPORARY}"):
        for file in part.glob(pattern):
            file.unlink(missing_ok=True)
    with suppress(OSError):
        part.rmdir()
