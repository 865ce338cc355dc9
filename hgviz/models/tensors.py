"""Tensors and checkpoints of strangers, read safely: nothing runs, and every size is checked first.

A `Checkpoint` is a configuration with tensors under hgviz's neutral names
(docs/reference/opens.md). Weights lie in a .safetensors, .pt, .bin or .npz file, or in shards that
an .index.json names.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
import torch
from torch import Tensor

from hgviz.errors import HgvizError, require
from hgviz.files import (
    CONFIG,
    INDEX_SUFFIX,
    WEIGHT_SUFFIXES,
    first_line,
    model_name,
    path_errors,
    printable,
    quoted,
    read_object,
    short_path,
)
from hgviz.models.config import config_json, shapes_of
from hgviz.models.devices import require_room
from hgviz.models.hourglass import HourglassConfig
from hgviz.models.layers import Configuration, Network
from hgviz.models.pretrained_config import TransformersConfig

WEIGHTS = "model.safetensors"
MAIN_WEIGHTS = tuple(
    name + suffix for name in (WEIGHTS, "pytorch_model.bin") for suffix in ("", INDEX_SUFFIX)
)
ADAPTER = "adapter_config.json"  # of PEFT: its weights are added to those of a model
UNREAD_SUFFIXES = (  # of weights that may lie beside those that are read
    *WEIGHT_SUFFIXES, INDEX_SUFFIX, ADAPTER, ".pth", ".ckpt", ".gguf", ".msgpack", ".onnx", ".ot",
    "tf_model.h5",
)  # fmt: skip
HEADER_LIMIT, INDEX_LIMIT = 64 * 2**20, 16 * 2**20  # bytes
NAME_LIMIT, DIMENSION_LIMIT, SIZE_LIMIT, SHARD_LIMIT = 512, 8, 2**40, 1000
PACKING_LIMIT = 16  # weights hardly get smaller when they are packed
TABLE_ROWS = 3  # tensors that an error lists where weights do not fit
STATE_DICT_ADVICE = "Save the state dict alone, torch.save(model.state_dict(), ...)"
DOWNLOAD_ADVICE = "Copy or download it again"
NO_INDEX, NO_STATE_DICT = "is not a valid index of weights", "is not a state dict"
ADVICE = {  # by what is wrong with a file
    "is damaged": DOWNLOAD_ADVICE, NO_INDEX: DOWNLOAD_ADVICE, NO_STATE_DICT: STATE_DICT_ADVICE,
}  # fmt: skip

_DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
}  # fmt: skip

Shapes = Mapping[str, tuple[int, ...]]
Skip = Callable[[str], bool]


# --- a checkpoint ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Source:
    """Where a file keeps a neutral tensor: under `name`, as one of `parts` equal blocks of rows, of
    a tensor that may be transposed."""

    name: str
    part: int = 0
    parts: int = 1
    transposed: bool = False

    def file_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the tensor in the file, from that of the neutral tensor."""
        full = (self.parts * shape[0], *shape[1:])
        return full[::-1] if self.transposed else full

    def take(self, tensor: Tensor) -> Tensor:
        """The neutral tensor out of the file's."""
        rows = tensor.T if self.transposed else tensor
        return rows.chunk(self.parts)[self.part].contiguous() if rows.dim() else rows

    def put(self, tensor: Tensor, neutral: Tensor) -> Tensor:
        """The file's tensor with another neutral tensor in its place, in the file's dtype."""
        rows, neutral = tensor.T if self.transposed else tensor, neutral.to(tensor.dtype)
        if self.parts > 1:
            blocks = [*rows.chunk(self.parts)]
            blocks[self.part] = neutral
            neutral = torch.cat(blocks)
        return (neutral.T if self.transposed else neutral).contiguous()


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model as it was read.

    digest: sha256 of configuration and tensors, whatever file they came from. weights: that file,
    or the index of shards. sources: by neutral name, where the file keeps a tensor; empty where the
    file cannot be written again. tokenizer: the tokenizer.json that the weights themselves imply.
    unused: parts of the file that the model does not use. network: a model of transformers with
    these tensors in float32 on the CPU, where reading has made one.
    """

    config: Configuration
    tensors: dict[str, Tensor]
    digest: str
    weights: Path
    sources: Mapping[str, Source] = field(default_factory=dict)
    tokenizer: bytes | None = None
    unused: tuple[str, ...] = ()
    network: Network | None = None

    @property
    def folder(self) -> Path:
        """The folder of the weights, with config.json and perhaps a tokenizer."""
        return self.weights.parent


def fit_checkpoint(
    config: Configuration,
    stored: Mapping[str, Tensor],
    weights: Path,
    source_of: Callable[[str], Source] = Source,
    said_by: str = CONFIG,
    do: str = "",
    rewritable: bool = True,
    tokenizer: bytes | None = None,
) -> Checkpoint:
    """The checkpoint of a configuration and the tensors stored in its weights file.

    source_of: where the file keeps a neutral tensor. said_by: what the configuration comes from.
    do: what to do where tensors do not fit it. Raises HgvizError for tensors that are missing, left
    over, of another shape, or not finite.
    """
    require(  # before a module of all the layers is made, which takes seconds
        len(config.layers) <= len(stored),
        f"{short_path(weights)} does not fit its config.json: it has {len(stored):,} tensors, "
        f"but config.json says {len(config.layers):,} layers",
        "Correct config.json, or choose another file",
    )
    wanted = shapes_of(config)
    sources = {name: source_of(name) for name in wanted}
    expected = {source.name: source.file_shape(wanted[name]) for name, source in sources.items()}
    shapes = {name: tuple(tensor.shape) for name, tensor in stored.items()}
    differences = [
        (name, dims(expected.get(name)), dims(shapes.get(name)))
        for name in dict.fromkeys((*expected, *shapes))
        if expected.get(name) != shapes.get(name)
    ]
    if differences:
        raise _no_fit(
            weights, differences, said_by, do or f"Correct {said_by}, or choose another file"
        )
    tensors = {name: source.take(stored[source.name]) for name, source in sources.items()}
    require_finite(weights, tensors)
    digest = digest_of(config, tensors)
    return Checkpoint(config, tensors, digest, weights, sources if rewritable else {}, tokenizer)


def _no_fit(
    path: Path, differences: list[tuple[str, str, str]], said_by: str, do: str
) -> HgvizError:
    """The error for tensors that differ: (name, expected shape, shape in the file)."""
    rows = [("tensor", "expected", "found"), *differences[:TABLE_ROWS]]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines = [f"{a:{widths[0]}}  {b:{widths[1]}}  {c}" for a, b, c in rows]
    if len(differences) > TABLE_ROWS:
        lines.append(f"and {len(differences) - TABLE_ROWS} more")
    name, expected, stored = differences[0]
    return HgvizError(
        f"{short_path(path)} does not fit {'its ' * (said_by == CONFIG)}{said_by}: "
        f"{name} is {stored}, and {said_by} says {expected}",
        do,
        details="\n".join(lines),
    )


def digest_of(config: Configuration, tensors: Mapping[str, Tensor]) -> str:
    """sha256, in hexadecimal, of a configuration and of tensors by their names."""
    if isinstance(config, TransformersConfig):
        keys = config.keys()
    else:  # keys of mechanisms that a model does not use do not count
        unused: dict[str, Any] = {
            "norms": {}, "top_k": None, "content": True, "slots_sharing": "tokens",
            "slots_bias": False, "scores": ("dot",), "rank": 8, "shared_width": 0,
            "cls_width": 0, "widths": (), "residual": True,
            **({"kept": ()} if isinstance(config, HourglassConfig) else {}),
        }  # fmt: skip
        keys = {
            key: value
            for key, value in config_json(config).items()
            if key not in unused or value != unused[key]
        }
    digest = hashlib.sha256(json.dumps(keys, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def strip_prefixes(names: Collection[str]) -> list[str]:
    """Names of tensors without "module." and "net.", where a wrapper put them before all."""
    prefix = re.match(r"(module\.|net\.)*", os.path.commonprefix([*names]))
    return [name.removeprefix(prefix[0] if prefix else "") for name in names]


def require_finite(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Raise HgvizError naming the first tensor that holds a NaN or an infinity."""
    for name, tensor in tensors.items():
        if torch.isfinite(tensor.sum()):  # which takes no memory, unlike a mask of all numbers
            continue
        if not torch.isfinite(tensor).all():
            count = int((~torch.isfinite(tensor)).sum())
            raise HgvizError(
                f"{short_path(path)} contains NaN or infinite weights: "
                f"{count:,} of {tensor.numel():,} values of {name}",
                "Choose a checkpoint from before the training diverged",
            )


def dims(shape: tuple[int, ...] | None) -> str:
    """A shape in words: 3 × 12, one number, or none."""
    return "none" if shape is None else " × ".join(map(str, shape)) or "one number"


# --- where weights lie ----------------------------------------------------------------------------


def config_file(path: Path) -> Path:
    """The config.json of a folder, of weights or of itself. Raises HgvizError for other paths."""
    with path_errors(path):
        if path.is_dir():
            return path / CONFIG
        require(path.exists(), f"{short_path(path)} does not exist", "Check the path")
    require(
        path.name == CONFIG or path.name.endswith((*WEIGHT_SUFFIXES, INDEX_SUFFIX)),
        f"{short_path(path)} is not a checkpoint: "
        f"weights are in {' or '.join(WEIGHT_SUFFIXES)} files",
        "Open a checkpoint's folder, its weights file or its config.json",
    )
    return path.parent / CONFIG


def weights_of(path: Path) -> Path:
    """The weights file of a checkpoint, or the index of its shards.

    path: its folder, its config.json or a weights file. Raises HgvizError where there are none, or
    several files without an index.
    """
    folder = config_file(path).parent
    with path_errors(folder):
        if path.is_file() and path.name != CONFIG:
            name = re.sub(r"-\d+-of-\d+(?=\.\w+$)", "", path.name)
            index = folder / (name + INDEX_SUFFIX)
            return index if name != path.name and index.exists() else path
        for name in MAIN_WEIGHTS:
            if os.path.lexists(folder / name):
                return folder / name
        # training leaves other .bin files beside the weights: those are only opened by their name
        files = sorted(
            file
            for file in folder.iterdir()
            if file.suffix in WEIGHT_SUFFIXES[:2] and not file.name.startswith("adapter_")
        )
    if len(files) == 1:
        return files[0]
    if not files:
        require_no_adapter(folder)
    model, unread = model_name(folder), unread_files(folder / WEIGHTS)
    if files:
        what = f"{model} contains {len(files)} weights files, such as {files[0].name} and "
        raise HgvizError(what + files[1].name, "Open one of them directly")
    if unread:
        what = f"{model} contains {unread[0]}, a weights format that hgviz does not support"
        raise HgvizError(what, f"Convert it to {WEIGHTS}")
    what = f"{model} contains no weights: there is no {WEIGHTS}, pytorch_model.bin or .pt file"
    raise HgvizError(f"{what} next to its config.json", "Copy or download the weights into it")


def require_no_adapter(folder: Path) -> None:
    """Raise HgvizError for a folder that holds an adapter of PEFT."""
    if not (folder / ADAPTER).is_file():
        return
    base = read_object(folder / ADAPTER).get("base_model_name_or_path")
    raise HgvizError(
        f"{model_name(folder)} is a PEFT adapter, not a full model"
        + (f": its base model is {quoted(base)}" if base else ""),
        "Merge them and open the result: AutoPeftModelForCausalLM.from_pretrained(DIR)"
        ".merge_and_unload().save_pretrained(OUT)",
    )


def unread_files(weights: Path) -> list[str]:
    """Names of weights and adapters beside those that a model was read from."""
    read = {weights.name}
    if weights.name.endswith(INDEX_SUFFIX):
        read |= {*shard_places(weights).values()}
    names = sorted(
        printable(file.name)
        for file in weights.parent.iterdir()
        if file.is_file() and file.name not in read and file.name.endswith(UNREAD_SUFFIXES)
    )
    return [f"{name} (an adapter)" if name.startswith("adapter_model.") else name for name in names]


# --- shards ---------------------------------------------------------------------------------------


def read_weights(path: Path, skip: Skip | None = None) -> dict[str, Tensor]:
    """Every tensor of a weights file, or of all shards that an index names; skip as read_tensors.

    Raises HgvizError as read_tensors, for an index that does not match its shards, and for weights
    that do not fit the memory.
    """
    places = shard_places(path) if path.name.endswith(INDEX_SUFFIX) else {}
    files = [path.parent / shard for shard in sorted({*places.values()})] or [path]
    for file in files:
        require(
            not places or file.exists(),
            f"{short_path(file)} is missing: "
            f"{path.name} lists it as one of {len(files)} weights files",
            "Copy or download it again",
        )
    with path_errors(path):
        size = sum(file.stat().st_size for file in files if file.is_file())
    require_room(f"the model of {short_path(path)}", size, "Use a machine with more memory")
    tensors: dict[str, Tensor] = {}
    for file in files:
        shard = read_tensors(file, skip)
        for name in shard if places else ():
            place = printable(places.get(name, "no file"))
            why = f"{file.name} contains {name}, which it lists in {place}"
            _require(place == file.name, path, why, NO_INDEX)
        tensors |= shard
    for name, place in places.items():
        why = f"it lists {printable(name)} in {place}, which does not contain it"
        _require(name in tensors or (skip and skip(name)), path, why, NO_INDEX)
    return tensors


def shard_places(index: Path) -> dict[str, str]:
    """The file of every tensor that an index names: names of files beside it, never paths."""
    places: Any = read_object(index, INDEX_LIMIT).get("weight_map")
    _require(places and isinstance(places, dict), index, "it has no weight_map", NO_INDEX)
    shards = {shard if isinstance(shard, str) else "" for shard in places.values()}
    for shard in shards:
        is_name = shard.isprintable() and len(shard) <= 255 and shard.endswith(WEIGHT_SUFFIXES)
        why = f"it names {quoted(shard)}, which is not a weights file in the same folder"
        _require(is_name and not re.search(r"^\.|[/\\:]", shard), index, why, NO_INDEX)
    too_many = f"it names more than {SHARD_LIMIT:,} files"
    _require(len(shards) <= SHARD_LIMIT, index, too_many, NO_INDEX)
    return dict(places)


# --- files of tensors -----------------------------------------------------------------------------


def read_tensors(path: Path, skip: Skip | None = None) -> dict[str, Tensor]:
    """Every tensor of a .safetensors, .pt, .bin or .npz file, on the CPU and in the file's dtype.

    skip: says which names are no weights, to leave them out; causal masks, bits (1, 1, n, n), are
    always left out. Tensors may share memory. Raises HgvizError for a file that is damaged, holds
    something else, or declares more than it holds.
    """
    skip = skip or (lambda name: False)
    with path_errors(path):
        require(path.is_file(), f"{short_path(path)} is not a file")
        if path.suffix == ".safetensors":
            return _read_safetensors(path, skip)
        if path.suffix == ".npz":
            return _read_npz(path, skip)
        return state_dict(path, read_pickle(path), skip)


class _Entry(msgspec.Struct, frozen=True):
    """A tensor in the header of a safetensors file."""

    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


def _read_safetensors(path: Path, skip: Skip) -> dict[str, Tensor]:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        available = path.stat().st_size - 8 - length
        is_long = length >= 2 and available >= 0
        _require(is_long, path, "it is truncated, or not a safetensors file")
        too_large = f"its header of {length:,} bytes is too large"
        _require(length <= HEADER_LIMIT, path, too_large)
        try:
            header = msgspec.json.decode(file.read(length), type=dict[str, msgspec.Raw])
            entries = {
                name: msgspec.json.decode(raw, type=_Entry)
                for name, raw in header.items()
                if name != "__metadata__" and not skip(name)
            }
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            why = f"its header is invalid: {first_line(error)}"
            raise HgvizError(f"{short_path(path)} is damaged: {why}", DOWNLOAD_ADVICE) from None
        entries = {
            name: entry
            for name, entry in entries.items()
            if entry.dtype not in ("BOOL", "U8") or not _is_mask(entry.shape)
        }
        for name, entry in entries.items():
            _check_entry(path, name, entry, available)
        total = sum(entry.data_offsets[1] - entry.data_offsets[0] for entry in entries.values())
        _require(total <= available, path, "its tensors overlap")
        # plain reads, never a memory map: a file that shrinks meanwhile must not kill the program
        return {name: _read_entry(path, file, 8 + length, e) for name, e in entries.items()}


def _check_entry(path: Path, name: str, entry: _Entry, available: int) -> None:
    _check_name(path, name)
    _require_floating(entry.dtype in _DTYPES, path, name, entry.dtype)
    is_bounded = _is_bounded(entry.shape)
    _require(is_bounded, path, f"{name} has the shape {entry.shape[:DIMENSION_LIMIT]}")
    start, end = entry.data_offsets
    needed, stored = math.prod(entry.shape) * _DTYPES[entry.dtype].itemsize, end - start
    unlike = f"{name} needs {needed:,} bytes, and {stored:,} are stored"
    _require(0 <= start <= end and stored == needed, path, unlike)
    beyond = f"it is truncated: {name} ends at byte {end:,} of {available:,}"
    _require(end <= available, path, beyond)


def _read_entry(path: Path, file: BinaryIO, base: int, entry: _Entry) -> Tensor:
    start, end = entry.data_offsets
    if start == end:  # of a layer whose heads are all removed
        return torch.empty(entry.shape, dtype=_DTYPES[entry.dtype])
    data = bytearray(end - start)
    file.seek(base + start)
    count = file.readinto(data)  # type: ignore[attr-defined]
    _require(count == len(data), path, "it changed while being read")
    return torch.frombuffer(data, dtype=_DTYPES[entry.dtype]).reshape(entry.shape)


def read_pickle(path: Path, stubs: Sequence[Any] = ()) -> Any:
    """What a .pt file holds. No code runs, and no class is made but stubs, which do nothing.

    stubs: as torch.serialization.safe_globals takes them. Raises HgvizError for whatever torch
    refuses under weights_only.
    """
    unread = f"{short_path(path)} could not be read"
    try:
        entries = _zip_entries(path, 2)  # torch does not compress
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError):
        with path.open("rb") as file:
            is_old = file.read(2) == b"\x80\x02"
        why = "it was written by torch before 1.6" if is_old else "truncated, or not a torch file"
        raise HgvizError(f"{unread}: {why}", "Save it again with a newer torch") from None
    is_program = any(entry.filename.endswith("/constants.pkl") for entry in entries)
    what = f"{short_path(path)} is a TorchScript program: programs are never run"
    require(not is_program, what, STATE_DICT_ADVICE)
    try:
        with torch.serialization.safe_globals([*stubs]):
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds for what it will not read
        is_object = "weights_only" in str(error) or "Unsupported" in str(error)
        why = "it contains more than tensors, and only tensors are loaded"
        what = f"{unread}: {why if is_object else first_line(error)}"
        raise HgvizError(what, f"{STATE_DICT_ADVICE}, or as safetensors") from None


def state_dict(path: Path, content: Any, skip: Skip | None = None) -> dict[str, Tensor]:
    """The tensors of a state dict that read_pickle read; skip as read_tensors.

    Raises HgvizError for anything but a dict of floating tensors, and for tensors that are larger
    than the file.
    """
    is_filled = isinstance(content, Mapping) and content
    _require(is_filled, path, f"it contains {type(content).__name__}", NO_STATE_DICT)
    tensors: dict[str, Tensor] = {}
    for name, tensor in content.items():
        _require(isinstance(name, str), path, "it has keys that are not names", NO_STATE_DICT)
        is_tensor = isinstance(tensor, Tensor)
        if is_tensor and (
            (skip is not None and skip(name))
            or (tensor.dtype in (torch.bool, torch.uint8) and _is_mask(tensor.shape))
        ):
            continue
        _check_name(path, name)
        _require(is_tensor, path, f"{name[:50]} is not a tensor", NO_STATE_DICT)
        is_floating = tensor.layout == torch.strided and tensor.dtype in _DTYPES.values()
        _require_floating(is_floating, path, name, str(tensor.dtype).removeprefix("torch."))
        stored = tensor.untyped_storage().nbytes() if tensor.device.type == "cpu" else 0
        is_stored = _is_bounded(tensor.shape) and tensor.nbytes <= stored and not tensor.is_meta
        larger = f"{name} needs {tensor.nbytes:,} bytes, and {stored:,} are stored"
        _require(is_stored, path, larger)
        tensors[name] = tensor.detach()
    # tied tensors have one storage and several names
    storages = {x.untyped_storage().data_ptr(): x.nbytes for x in tensors.values()}
    total, size = sum(x.nbytes for x in tensors.values()), path.stat().st_size
    is_held = sum(storages.values()) <= 2 * size and total <= PACKING_LIMIT * size
    _require(is_held, path, "its tensors are larger than the file")
    return tensors


def _zip_entries(path: Path, packing: int) -> list[zipfile.ZipInfo]:
    """The entries of a zip file; packing: how much smaller than these it may be."""
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
    declared, size = sum(entry.file_size for entry in entries), path.stat().st_size
    too_much = f"it declares {declared:,} bytes in a file of {size:,}"
    _require(declared <= packing * size, path, too_much)
    return entries


def _read_npz(path: Path, skip: Skip) -> dict[str, Tensor]:
    arrays: dict[str, Tensor] = {}
    try:
        entries = _zip_entries(path, PACKING_LIMIT)
        with zipfile.ZipFile(path) as archive:
            for entry in entries:
                is_numpy = entry.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
                _require(is_numpy, path, "it is compressed in a way that numpy does not use")
                name = entry.filename.removesuffix(".npy")
                _check_name(path, name)
                _require(name not in arrays, path, f"it contains {name} twice")
                if not skip(name):
                    arrays[name] = _read_npy(path, name, archive.read(entry))
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, RuntimeError, KeyError):
        why = "it is truncated, or not a .npz file"
        raise HgvizError(f"{short_path(path)} is damaged: {why}", DOWNLOAD_ADVICE) from None
    _require(arrays, path, "it contains no arrays")
    return arrays


def _read_npy(path: Path, name: str, data: bytes) -> Tensor:
    """The array of a .npy file; numpy itself would make room for whatever its header declares."""
    stream, npy = io.BytesIO(data), np.lib.format
    headers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    shape, is_fortran, dtype = headers[npy.read_magic(stream)](stream)
    is_floating = dtype.kind == "f" and dtype.itemsize in (2, 4, 8)
    kind = "Python objects" if dtype.hasobject else str(dtype)
    _require_floating(is_floating, path, name, kind)
    needed, stored = math.prod(shape) * dtype.itemsize, len(data) - stream.tell()
    is_sound = len(shape) <= DIMENSION_LIMIT and min(shape, default=1) >= 1 and needed == stored
    _require(is_sound, path, f"{name} needs {needed:,} bytes, and {stored:,} are stored")
    array = np.frombuffer(data, dtype, offset=stream.tell())
    array = array.reshape(shape, order="F" if is_fortran else "C")
    return torch.from_numpy(array.astype(dtype.newbyteorder("="), order="C"))


def _is_mask(shape: Sequence[int]) -> bool:
    """Whether bits of this shape are a causal mask, which older files keep beside weights."""
    return len(shape) == 4 and tuple(shape[:2]) == (1, 1)


def _is_bounded(shape: Sequence[int]) -> bool:
    return len(shape) <= DIMENSION_LIMIT and all(0 <= size < SIZE_LIMIT for size in shape)


def _check_name(path: Path, name: str) -> None:
    is_sound = len(name) <= NAME_LIMIT and name.isprintable()
    _require(is_sound, path, f"it has a tensor named {json.dumps(name[:40])}")


def _require_floating(condition: object, path: Path, name: str, dtype: str) -> None:
    kinds = "float64, float32, float16 or bfloat16"
    why = f"{name} is {printable(dtype)[:20]}, and weights must be {kinds}"
    _require(condition, path, why, "contains more than weights")


def _require(condition: object, path: Path, why: str, fault: str = "is damaged") -> None:
    if not condition:
        raise HgvizError(f"{short_path(path)} {fault}: {why}", ADVICE.get(fault, ""))
