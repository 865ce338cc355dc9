"""Weights that lie in one file, or in several that an index names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from hgviz.core import HgvizError
from hgviz.files import (
    INDEX_SUFFIX,
    WEIGHT_SUFFIXES,
    path_errors,
    printable,
    quoted,
    read_object,
    short_path,
)
from hgviz.models.devices import require_room
from hgviz.models.formats.files import Skip, read_tensors

MOST_INDEX = 16 * 2**20
MOST_SHARDS = 1000


def read_weights(path: Path, skip: Skip | None = None) -> dict[str, Tensor]:
    """Every tensor of a weights file, or of all the files that an index names.

    Errors: HgvizError as files.read_tensors, for an index that is no index, and for tensors that
    are not where it says.
    """
    if not path.name.endswith(INDEX_SUFFIX):
        _require_room(path, [path])
        return read_tensors(path, skip)
    places = places_of(path)
    _require_room(path, [path.parent / shard for shard in {*places.values()}])
    found: dict[str, Tensor] = {}
    for shard in sorted(set(places.values())):
        if not (path.parent / shard).exists():
            raise HgvizError(
                f"{short_path(path.parent / shard)} is missing: "
                f"{path.name} names it, one of {len(set(places.values()))} files of weights",
                "Copy or download it again",
            )
        held = read_tensors(path.parent / shard, skip)
        for name in held:
            if places.get(name) != shard:
                place = printable(places[name]) if name in places else "no file"
                raise _wrong(path, f"{shard} holds {name}, which it places in {place}")
        found.update(held)
    for name, shard in places.items():
        if name not in found and not (skip and skip(name)):
            raise _wrong(path, f"it places {printable(name)} in {shard}, which lacks it")
    return found


def _require_room(path: Path, files: Sequence[Path]) -> None:
    """Errors: HgvizError for weights that do not fit the memory, before any is read."""
    with path_errors(path):
        size = sum(one.stat().st_size for one in files if one.is_file())
    require_room(f"the model of {short_path(path)}", size, "Open it on a machine with more")


def places_of(path: Path) -> dict[str, str]:
    """The file of every tensor that an index names. A file's name is never a path."""
    data = read_object(path, MOST_INDEX).get("weight_map")
    if not isinstance(data, dict) or not data:
        raise _wrong(path, "it has no weight_map")
    for shard in {*map(_text, data.values())}:
        if not _plain_name(shard):
            raise _wrong(path, f"it names {quoted(shard)}, which is no weights file beside it")
    if len(set(data.values())) > MOST_SHARDS:
        raise _wrong(path, f"it names more than {MOST_SHARDS:,} files")
    return data


def files_of(path: Path) -> set[str]:
    """The names of a weights file, or of an index and the files that it names."""
    return {path.name, *(places_of(path).values() if path.name.endswith(INDEX_SUFFIX) else ())}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _plain_name(shard: str) -> bool:
    odd = set("/\\:\0") & {*shard} or shard.startswith(".") or not shard.isprintable()
    return not odd and shard.endswith(WEIGHT_SUFFIXES) and len(shard) <= 255


def _wrong(path: Path, why: str) -> HgvizError:
    return HgvizError(
        f"{short_path(path)} is no index of weights: {why}", "Copy or download it again"
    )
