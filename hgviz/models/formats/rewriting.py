"""A checkpoint's own files again, with other numbers in some tensors: its format stays what it was.

Whatever opens the original opens the copy: names, order, precision and what is beside the weights
(config.json, tokenizers) stay as they are.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from hgviz.core import HgvizError
from hgviz.models.formats.checkpoint import Checkpoint
from hgviz.models.formats.files import read_tensors
from hgviz.models.formats.readers import INDEX, SUFFIXES, path_errors, shown
from hgviz.models.formats.shards import places_of

BESIDE = (".json", ".txt", ".model")  # configurations, tokenizers
MOST_BESIDE = 64 * 2**20


def write(found: Checkpoint, out: Path) -> Path:
    """Write the files a checkpoint was read from into a folder, its tensors as they are now.

    Gives the weights file (or the index) in it. Errors: HgvizError where that fails.
    """
    if not found.sources:
        raise HgvizError(
            f"{shown(found.weights)} is not written again as it is",
            "it holds more than tensors",
            "Choose --form smaller, or convert it first with hgviz convert",
        )
    weights, files = found.weights, _files(found)
    with path_errors(out, "could not be written"):
        out.mkdir(parents=True, exist_ok=True)
        for one in sorted(found.folder.iterdir()):
            foreign = one.name.endswith((*SUFFIXES, INDEX)) and one.name != weights.name
            if one.suffix in BESIDE and not foreign and _small(one):
                shutil.copyfile(one, out / one.name)
        for file, names in files.items():
            _rewrite(found.folder / file, out / file, found, names)
    return out / weights.name


def _small(path: Path) -> bool:
    return path.is_file() and path.stat().st_size <= MOST_BESIDE


def _files(found: Checkpoint) -> dict[str, list[str]]:
    """The names of the neutral tensors in each file."""
    index = found.weights.name.endswith(INDEX)
    places = places_of(found.weights) if index else {}
    files: dict[str, list[str]] = {file: [] for file in places.values()}
    for name, source in found.sources.items():
        files.setdefault(places.get(source.name, found.weights.name), []).append(name)
    return files


def _rewrite(path: Path, out: Path, found: Checkpoint, names: list[str]) -> None:
    wanted = {found.sources[name].name for name in names}
    held = read_tensors(path, lambda name: name not in wanted)
    changed: dict[str, Tensor] = {}
    for name in names:
        source = found.sources[name]
        if not torch.equal(source.take(held[source.name]), found.tensors[name]):
            whole = changed.get(source.name, held[source.name])
            changed[source.name] = source.put(whole, found.tensors[name])
    shutil.copyfile(path, out)
    if path.suffix == ".safetensors":
        _patch(out, changed)
    elif changed:
        whole = torch.load(out, map_location="cpu", weights_only=True)
        whole.update(changed)
        torch.save(whole, out)


def _patch(path: Path, changed: Mapping[str, Tensor]) -> None:
    """Other numbers in place, so that all around them stays as it is, byte by byte."""
    with path.open("r+b") as file:
        length = int.from_bytes(file.read(8), "little")  # read_tensors found it sound
        entries = json.loads(file.read(length))
        for name, tensor in changed.items():
            file.seek(8 + length + entries[name]["data_offsets"][0])
            file.write(tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes())
