"""A checkpoint's own files again, with other numbers in some tensors: its format stays what it was.

Whatever opens the original opens the copy: names, order, precision and all files and folders beside
the weights stay as they are, but for other files of weights, which would be those of the original.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hgviz.core import HgvizError
from hgviz.files import CONFIG, INDEX_SUFFIX, WEIGHT_SUFFIXES, path_errors, short_path
from hgviz.models.config import TransformersConfig
from hgviz.models.formats.checkpoint import Checkpoint
from hgviz.models.formats.files import read_tensors
from hgviz.models.formats.shards import places_of, read_weights

# what may hold weights, and what several programs name their graphs and states
WEIGHTY = (
    *WEIGHT_SUFFIXES, ".pth", ".ckpt", ".h5", ".msgpack", ".npz", ".onnx", ".onnx_data", ".data",
    ".ot", ".gguf", ".tflite", ".mlmodel", ".pb", ".pkl",
)  # fmt: skip
NEVER = (".git", ".cache", ".locks", "__pycache__")  # folders that are no part of a model
MODULES = "modules.json"  # of sentence-transformers: the parts of a model, a folder each
MOST_FILES = 1000


def write(found: Checkpoint, out: Path) -> Path:
    """Write the files a checkpoint was read from into a folder, its tensors as they are now.

    Gives the weights file (or the index) in it. Errors: HgvizError where that fails.
    """
    if not found.sources:
        raise HgvizError(
            f"{short_path(found.weights)} is not written again as it is: "
            "it holds more than tensors",
            "Choose --form smaller, or convert it first with hgviz convert",
        )
    weights, files = found.weights, _files(found)
    copied, _ = beside(found, out)
    with path_errors(out, "could not be written"):
        out.mkdir(parents=True, exist_ok=True)
        for one in copied:
            (out / one).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(found.folder / one, out / one)
        for file, names in files.items():
            _rewrite(found.folder / file, out / file, found, names)
        if isinstance(found.config, TransformersConfig):
            _restate(out, found.config.keys())
    return out / weights.name


def beside(found: Checkpoint, out: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """What lies beside the weights, from their folder on: what goes along when they are written
    into `out`, and what is left out since it may hold other weights or cannot be read.

    Folders that are links are left out, wherever they lead; links to files are files. Errors:
    HgvizError for a folder that holds so much that it is no model's own.
    """
    copied: list[Path] = []
    left: list[Path] = []
    modules, written = _modules(found.folder), {found.weights.name, *_files(found)}
    top = found.folder.absolute()

    def unreadable(error: OSError) -> None:
        raise error

    with path_errors(found.folder):
        for path, folders, files in os.walk(top, onerror=unreadable):
            inner = Path(path).relative_to(top)
            links = [one for one in folders if (Path(path) / one).is_symlink()]
            left += [inner / one for one in links]
            ours = {one for one in folders if Path(path) / one == out.absolute()}
            folders[:] = sorted({*folders} - {*links, *NEVER} - ours)
            for one in sorted(files):
                place = inner / one
                if place.parent == Path() and one in written:
                    if one == found.weights.name and one.endswith(INDEX_SUFFIX):
                        copied.append(place)
                    continue
                other = one.endswith(WEIGHTY) or one.endswith(INDEX_SUFFIX)
                own = place.parts[0] in modules
                readable = (top / place).is_file()  # no link that leads nowhere, no pipe
                (copied if readable and (own or not other) else left).append(place)
            if len(copied) > MOST_FILES:
                raise HgvizError(
                    f"{short_path(found.folder)} holds more than a model: "
                    f"there are over {MOST_FILES:,} files in it, and all would be copied",
                    "Move the model into a folder of its own",
                )
    return tuple(copied), tuple(sorted(left))


def _modules(folder: Path) -> set[str]:
    """The folders of the other parts of a model of sentence-transformers: their weights are no
    others of this one."""
    file = folder / MODULES
    try:
        parts = json.loads(file.read_text("utf-8")) if file.is_file() else []
        paths = [Path(str(one["path"])) for one in parts if one.get("path")]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return set()
    return {one.parts[0] for one in paths if one.parts}


def _files(found: Checkpoint) -> dict[str, list[str]]:
    """The names of the neutral tensors in each file."""
    index = found.weights.name.endswith(INDEX_SUFFIX)
    places = places_of(found.weights) if index else {}
    files: dict[str, list[str]] = {file: [] for file in places.values()}
    for name, source in found.sources.items():
        files.setdefault(places.get(source.name, found.weights.name), []).append(name)
    return files


def _restate(out: Path, data: Mapping[str, Any]) -> None:
    """Let config.json say this, and an index how many bytes its files hold."""
    config = out / CONFIG
    if json.loads(config.read_bytes()) == data:
        return
    config.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", "utf-8")
    for index in out.glob(f"*{INDEX_SUFFIX}"):
        told, held = json.loads(index.read_bytes()), read_weights(index)
        sizes = {
            "total_size": sum(one.nbytes for one in held.values()),
            "total_parameters": sum(one.numel() for one in held.values()),
        }
        told["metadata"] |= {key: sizes[key] for key in sizes if key in told["metadata"]}
        index.write_text(json.dumps(told, indent=2) + "\n", "utf-8")


def _rewrite(path: Path, out: Path, found: Checkpoint, names: list[str]) -> None:
    wanted = {found.sources[name].name for name in names}
    held = read_tensors(path, lambda name: name not in wanted)
    changed: dict[str, Tensor] = {}
    for name in names:
        source = found.sources[name]
        if not torch.equal(source.take(held[source.name]), found.tensors[name]):
            whole = changed.get(source.name, held[source.name])
            changed[source.name] = source.put(whole, found.tensors[name])
    if path.suffix == ".safetensors" and any(
        one.shape != held[name].shape for name, one in changed.items()
    ):
        _narrow(path, out, changed)
        return
    shutil.copyfile(path, out)
    if path.suffix == ".safetensors":
        _patch(out, changed)
    elif changed:
        whole = torch.load(out, map_location="cpu", weights_only=True)
        whole.update(changed)
        torch.save(whole, out)


def _narrow(path: Path, out: Path, changed: Mapping[str, Tensor]) -> None:
    """Tensors of another size in place of some."""
    from safetensors import safe_open
    from safetensors.torch import save_file

    with safe_open(path, "pt") as file:
        told = file.metadata()
        whole = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file({**whole, **changed}, out, told)


def _patch(path: Path, changed: Mapping[str, Tensor]) -> None:
    """Other numbers in place, so that all around them stays as it is, byte by byte."""
    with path.open("r+b") as file:
        length = int.from_bytes(file.read(8), "little")  # read_tensors found it sound
        entries = json.loads(file.read(length))
        for name, tensor in changed.items():
            file.seek(8 + length + entries[name]["data_offsets"][0])
            file.write(tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes())
