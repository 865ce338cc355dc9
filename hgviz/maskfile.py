"""Mask files: which heads of a model are off, and which of them stream, as JSON.

    {"heads": ["3.5", "4.*"], "streaming": ["5.0"], "model": "b6adc29d..."}

heads and streaming name heads as --off does. model is the digest of the checkpoint, as `hgviz info`
prints it; a file without one fits every model that has the heads.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import msgspec

from hgviz.core import HeadSet, ModelSpec, parse_heads
from hgviz.errors import HgvizError, HgvizWarning, require
from hgviz.files import (
    first_line,
    path_errors,
    read_object,
    require_there,
    short_path,
    write_atomic,
)
from hgviz.language import counted

MARK = "@"  # what the name of a mask file begins with, where names of heads are expected


class MaskFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of a mask file."""

    heads: list[str] = []
    streaming: list[str] = []
    model: str = ""


def read_mask(names: str, spec: ModelSpec) -> tuple[HeadSet, HeadSet]:
    """The heads that are off and the heads that stream, by "3.5,4.*" (off) or by "@FILE".

    Raises HgvizError for a file that is missing, damaged or of another model, and for names of
    heads that the model lacks.
    """
    if not names.startswith(MARK):
        return parse_heads(names, spec.layers), frozenset()
    path = Path(names[len(MARK) :]).expanduser()
    require_there(path, "mask file")
    mask = read_mask_file(path)
    require(
        mask.model in ("", spec.digest),
        f"{short_path(path)} is a mask of another model: the digest of its weights is "
        f"{mask.model[:12]!r}, that of {spec.name or 'this one'} is {spec.digest[:12]!r}",
        "Open the model that it was made for, or save a mask of this one",
    )
    try:
        off, streaming = (
            parse_heads(",".join(heads), spec.layers) for heads in (mask.heads, mask.streaming)
        )
    except HgvizError as error:
        raise HgvizError(f"{short_path(path)}: {error.what}", error.do) from None
    return off, streaming


def write_mask(
    path: str | Path, spec: ModelSpec, off: HeadSet, streaming: HeadSet = frozenset()
) -> Path:
    """Write the heads of a model that are off, and those that stream, as a mask file.

    Raises HgvizError where it cannot be written, and for a file that is no mask: only a mask is
    replaced.
    """
    path = Path(path).expanduser()
    if path.exists():
        read_mask_file(path)
    heads, streams = ([str(head) for head in sorted(some)] for some in (off, streaming))
    content = msgspec.json.encode(MaskFile(heads, streams, spec.digest))
    with path_errors(path, "could not be written"):
        write_atomic(path, content + b"\n")
    return path


def read_mask_file(path: Path) -> MaskFile:
    """What a mask file says. Raises HgvizError for another file."""
    content = read_object(path)
    try:
        return msgspec.convert(content, MaskFile)
    except msgspec.ValidationError as error:
        what = f"{short_path(path)} is not a mask file: {first_line(error)}"
        do = 'Write {"heads": ["3.5"], "streaming": [], "model": DIGEST}'
        raise HgvizError(what, do) from None


def read_heads(names: str, spec: ModelSpec) -> HeadSet:
    """The heads that are off, as read_mask has them; warns of streaming heads, which are ignored.

    Raises HgvizError as read_mask does.
    """
    off, streaming = read_mask(names, spec)
    if streaming:
        warnings.warn(
            f"{names[len(MARK) :]}: {counted(len(streaming), 'streaming head')} ignored; only "
            "the commands capture and evaluate use streaming heads",
            HgvizWarning,
            stacklevel=2,
        )
    return off
