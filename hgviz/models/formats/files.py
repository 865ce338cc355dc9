"""Tensor files from strangers: nothing is run, and nothing is copied before its size is known."""

from __future__ import annotations

import io
import json
import math
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
import torch
from torch import Tensor

from hgviz.core import HgvizError
from hgviz.files import first_line, path_errors, printable, short_path

MOST_HEADER = 64 * 2**20
MOST_NAME = 512
LISTED = 3  # rows of the table before "and 71 more"
MOST_DIMENSIONS = 8
MOST_PACKED = 16  # weights hardly get smaller when they are packed
NUMPYS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

_SAFE_DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
}  # fmt: skip

Shapes = Mapping[str, tuple[int, ...]]
Skip = Callable[[str], bool]


class _Entry(msgspec.Struct, frozen=True):
    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


def read_tensors(path: Path, skip: Skip | None = None) -> dict[str, Tensor]:
    """Every tensor of a .safetensors, .pt, .bin or .npz file, on the CPU and in the file's dtype.

    skip: names to leave out, which are no weights. Tensors may still share memory. Errors:
    HgvizError for a file that is damaged, is no tensor file, or declares more than it holds.
    """
    skip = skip or _nothing
    with path_errors(path):
        if not path.is_file():
            raise HgvizError(f"{short_path(path)} could not be read: it is no file")
        size = path.stat().st_size
        kinds = {".safetensors": _read_safetensors, ".npz": _read_npz}
        return kinds.get(path.suffix, _read_pt)(path, size, skip)


def _nothing(name: str) -> bool:
    return False


# --- safetensors ----------------------------------------------------------------------------------


def _read_safetensors(path: Path, size: int, skip: Skip) -> dict[str, Tensor]:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or not 2 <= length <= size - 8:
            raise _damaged(path, "it is cut short, or is no safetensors file")
        if length > MOST_HEADER:
            raise _damaged(path, f"its header of {length:,} bytes is too large")
        entries = _header(path, file.read(length), size - 8 - length, skip)
        # plain reads, never a memory map: a file that shrinks meanwhile must not kill the program
        return {name: _read_entry(path, file, 8 + length, one) for name, one in entries.items()}


def _header(path: Path, data: bytes, available: int, skip: Skip) -> dict[str, _Entry]:
    try:
        header = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        header.pop("__metadata__", None)
        kept = {name: raw for name, raw in header.items() if not skip(name)}
        entries = {name: msgspec.json.decode(raw, type=_Entry) for name, raw in kept.items()}
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _damaged(path, f"its header is wrong: {first_line(error)}") from None
    bits = ("BOOL", "U8")
    entries = {name: one for name, one in entries.items()
               if one.dtype not in bits or not _mask(one.shape)}  # fmt: skip
    for name, entry in entries.items():
        _check_entry(path, name, entry, available)
    if sum(entry.data_offsets[1] - entry.data_offsets[0] for entry in entries.values()) > available:
        raise _damaged(path, "its tensors overlap")
    return entries


def _mask(shape: Sequence[int]) -> bool:
    """Whether bits of this shape are a causal mask, which older files keep beside weights."""
    return len(shape) == 4 and tuple(shape[:2]) == (1, 1)


def _check_entry(path: Path, name: str, entry: _Entry, available: int) -> None:
    _check_name(path, name)
    if entry.dtype not in _SAFE_DTYPES:
        raise _not_floating(path, name, entry.dtype)
    if len(entry.shape) > MOST_DIMENSIONS or not all(0 <= n < 2**40 for n in entry.shape):
        raise _damaged(path, f"{name} has the shape {entry.shape[:MOST_DIMENSIONS]}")
    start, end = entry.data_offsets
    need = math.prod(entry.shape) * _SAFE_DTYPES[entry.dtype].itemsize
    if not 0 <= start <= end or end - start != need:
        raise _damaged(path, f"{name} needs {need:,} bytes and {end - start:,} are stored")
    if end > available:
        raise _damaged(path, f"it is cut short: {name} ends after {end:,} bytes of {available:,}")


def _read_entry(path: Path, file: BinaryIO, base: int, entry: _Entry) -> Tensor:
    start, end = entry.data_offsets
    if start == end:  # of a layer whose heads are all gone
        return torch.empty(entry.shape, dtype=_SAFE_DTYPES[entry.dtype])
    data = bytearray(end - start)
    file.seek(base + start)
    if file.readinto(data) != len(data):  # type: ignore[attr-defined]
        raise _damaged(path, "it changed while it was read")
    return torch.frombuffer(data, dtype=_SAFE_DTYPES[entry.dtype]).reshape(entry.shape)


# --- torch ----------------------------------------------------------------------------------------


def _read_pt(path: Path, size: int, skip: Skip) -> dict[str, Tensor]:
    return tensors_of(path, read_pickle(path), size, skip)


def read_pickle(path: Path, stubs: Sequence[Any] = ()) -> Any:
    """What a .pt file holds besides tensors, too: the only way a pickle is ever opened here.

    No code runs, and no class is made but stubs, which do nothing. Errors: HgvizError.
    """
    _check_zip(path, path.stat().st_size)
    try:
        with torch.serialization.safe_globals([*stubs]):
            return torch.load(path, map_location="cpu", weights_only=True)
    except HgvizError:
        raise
    except Exception as error:  # torch raises many kinds for what it will not read
        raise HgvizError(
            f"{short_path(path)} could not be read: {_refusal(error)}",
            "Save the state dict alone, torch.save(model.state_dict(), ...), or as safetensors",
        ) from None


def tensors_of(path: Path, loaded: Any, size: int, skip: Skip | None = None) -> dict[str, Tensor]:
    """The tensors of a state dict that a file of so many bytes held. Errors: HgvizError for
    anything else, and for tensors that are larger than the file."""
    skip, bits = skip or _nothing, (torch.bool, torch.uint8)
    if not isinstance(loaded, Mapping) or not loaded:
        raise _no_state_dict(path, type(loaded).__name__)
    kept = {
        name: tensor
        for name, tensor in loaded.items()
        if not (isinstance(name, str) and isinstance(tensor, Tensor)
                and (skip(name) or (tensor.dtype in bits and _mask(tensor.shape))))
    }  # fmt: skip
    for name, tensor in kept.items():
        _check_tensor(path, name, tensor)
    # tensors that are tied have one storage and several names
    storages = {one.untyped_storage().data_ptr(): one.nbytes for one in kept.values()}
    total = sum(one.nbytes for one in kept.values())
    if sum(storages.values()) > 2 * size or total > MOST_PACKED * size:
        raise _damaged(path, "its tensors are larger than the file")
    return {name: tensor.detach() for name, tensor in kept.items()}


def _check_tensor(path: Path, name: Any, tensor: Any) -> None:
    if not isinstance(name, str):
        raise _no_state_dict(path, "keys that are no names")
    _check_name(path, name)
    if not isinstance(tensor, Tensor):
        raise _no_state_dict(path, f"{name}, which is no tensor")
    if tensor.layout != torch.strided or tensor.dtype not in _SAFE_DTYPES.values():
        raise _not_floating(path, name, str(tensor.dtype).removeprefix("torch."))
    held = tensor.untyped_storage().nbytes() if tensor.device.type == "cpu" else 0
    bounded = all(n < 2**40 for n in tensor.shape) and tensor.ndim <= MOST_DIMENSIONS
    if not bounded or tensor.nbytes > held or tensor.is_meta:
        raise _damaged(path, f"{name} needs {tensor.nbytes:,} bytes and {held:,} are stored")


def _check_zip(path: Path, size: int) -> None:
    try:
        with zipfile.ZipFile(path) as file:
            entries = file.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError):
        with path.open("rb") as opened:
            old = opened.read(2) == b"\x80\x02"
        why = "it was written by torch before 1.6" if old else "it is cut short, or no torch file"
        raise HgvizError(
            f"{short_path(path)} could not be read: {why}", "Save it again with a newer torch"
        ) from None
    declared = sum(entry.file_size for entry in entries)
    if declared > 2 * size:  # torch stores without compression
        raise _damaged(path, f"it declares {declared:,} bytes in a file of {size:,}")
    if any(entry.filename.endswith("/constants.pkl") for entry in entries):
        raise HgvizError(
            f"{short_path(path)} is a TorchScript program: programs are never run",
            "Save the state dict alone, torch.save(model.state_dict(), ...)",
        )


def _refusal(error: Exception) -> str:
    text = str(error)
    if "weights_only" in text or "Unsupported" in text:
        return "it holds more than tensors, and only tensors are loaded"
    return first_line(error)


# --- numpy ----------------------------------------------------------------------------------------


def _read_npz(path: Path, size: int, skip: Skip) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    try:
        with zipfile.ZipFile(path) as file:
            entries = file.infolist()
            declared = sum(entry.file_size for entry in entries)
            if declared > MOST_PACKED * size:
                raise _damaged(path, f"it declares {declared:,} bytes in a file of {size:,}")
            if any(entry.compress_type not in NUMPYS for entry in entries):
                raise _damaged(path, "it is packed as numpy packs nothing")
            for entry in entries:
                name = entry.filename.removesuffix(".npy")
                _check_name(path, name)
                if name in found:
                    raise _damaged(path, f"it holds {name} twice")
                if not skip(name):
                    found[name] = _array(path, name, file.read(entry))
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, RuntimeError, KeyError):
        raise _damaged(path, "it is cut short, or no .npz file of numpy") from None
    if not found:
        raise _damaged(path, "it holds no arrays")
    return found


def _array(path: Path, name: str, data: bytes) -> Tensor:
    """What a .npy file holds; numpy itself would make room for whatever its header declares."""
    stream = io.BytesIO(data)
    headers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, turned, dtype = headers[np.lib.format.read_magic(stream)](stream)
    if dtype.kind != "f" or dtype.itemsize not in (2, 4, 8):
        raise _not_floating(path, name, "Python objects" if dtype.hasobject else str(dtype))
    need, held = math.prod(shape) * dtype.itemsize, len(data) - stream.tell()
    if len(shape) > MOST_DIMENSIONS or min(shape, default=1) < 1 or need != held:
        raise _damaged(path, f"{name} needs {need:,} bytes and {held:,} are stored")
    found = np.frombuffer(data, dtype, offset=stream.tell())
    found = found.reshape(shape, order="F" if turned else "C")
    return torch.from_numpy(found.astype(dtype.newbyteorder("="), order="C"))


# --- errors ---------------------------------------------------------------------------------------


def require_fit(
    path: Path,
    expected: Shapes,
    found: Shapes,
    why: str = "",
    do: str = "",
    said: str = "config.json",
) -> None:
    """Errors: HgvizError with a table of every tensor that is missing, left over or unlike.

    said: what says how they should be.
    """
    wrong = [
        (name, dims(expected.get(name)), dims(found.get(name)))
        for name in (*expected, *(name for name in found if name not in expected))
        if expected.get(name) != found.get(name)
    ]
    if not wrong:
        return
    name, wanted, held = wrong[0]
    raise HgvizError(
        f"{short_path(path)} does not fit {'its ' * (said == 'config.json')}{said}: "
        f"{why or f'{name} is {held}, and {said} says {wanted}'}",
        do or f"Correct {said}, or choose another file",
        details=_table([("tensor", "expected", "found"), *wrong]),
    )


def require_finite(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Errors: HgvizError naming the first tensor that holds a NaN or an infinity."""
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            count = int((~torch.isfinite(tensor)).sum())
            raise HgvizError(
                f"{short_path(path)} holds weights that are no numbers: "
                f"{name} has {count:,} NaN or infinite values of {tensor.numel():,}",
                "Choose a checkpoint from before the training diverged",
            )


def _check_name(path: Path, name: str) -> None:
    if len(name) > MOST_NAME or not name.isprintable():
        raise _damaged(path, f"it has a tensor named {json.dumps(name[:40])}")


def _damaged(path: Path, why: str) -> HgvizError:
    return HgvizError(f"{short_path(path)} is damaged: {why}", "Copy or download it again")


def _not_floating(path: Path, name: str, dtype: str) -> HgvizError:
    return HgvizError(
        f"{short_path(path)} holds something else than weights: "
        f"{name} is {printable(dtype)[:20]}, and weights are float64, float32, float16 or bfloat16"
    )


def _no_state_dict(path: Path, found: str) -> HgvizError:
    return HgvizError(
        f"{short_path(path)} is no state dict: it holds {found[:80]}",
        "Save the state dict alone, torch.save(model.state_dict(), ...)",
    )


def dims(shape: tuple[int, ...] | None) -> str:
    return "none" if shape is None else " × ".join(map(str, shape)) or "one number"


def _table(rows: Iterable[tuple[str, str, str]]) -> str:
    rows = list(rows)
    hidden = len(rows) - 1 - LISTED
    listed = rows[: LISTED + 1]
    widths = [max(len(row[column]) for row in listed) for column in (0, 1)]
    lines = [f"{a:{widths[0]}}  {b:{widths[1]}}  {c}" for a, b, c in listed]
    return "\n".join([*lines, f"and {hidden} more"] if hidden > 0 else lines)
