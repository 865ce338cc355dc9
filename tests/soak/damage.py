"""Damaged captures, studies and checkpoints, and a process that opens them as the program does.

    python -m tests.soak.damage GOOD CANARY KIND SEED FIRST END

KIND is a kind of damage, or "captures", "models" or "studies" for all of their kinds in turn. The
process has little memory. It announces and judges each file on a line of JSON, so that the reader
knows which one did not return.
"""

import ctypes
import json
import os
import resource
import shutil
import struct
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch

from hgviz import tasks
from hgviz.analysis.importance import importance, random_band, random_curves_beside, removable_heads
from hgviz.core import HgvizError
from hgviz.models import open_model
from hgviz.store import open_capture, open_study

Random = np.random.Generator
NUMBERS = (
    0, -1, 1, 2, 3, 7, 255, 65536, 10**6, 10**9, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1,
    2**63, 2**64, 10**30, -(2**31), -(2**63), 0.5, 1e-30, 1e30, -0.0,
)  # fmt: skip
TEXTS = (
    "", " ", "\0", "a\0b", "../../x", "/etc/passwd", "http://example.org/x", "<b>x</b>", "$x$",
    "\u202eabc", "\ud800", "\n\r\t", "{}", "None", "nan", "softmax", "x" * 5000, "é한\U0001f600",
    "__reduce__", "%s%n", "a" * 70, "((a+)+)+$", r"(a|aa)+$", r"a*a*a*\d\b", "float16",
)  # fmt: skip
OTHERS = (None, True, False, [], {}, [[]], [None], {"": {}}, [0] * 5000, [[0, 0]] * 300)
HEAD = 4096  # bytes in which most of what HDF5 says of itself lies, in files this small


def pick(random: Random, items: Any) -> Any:
    """One of some items."""
    return items[random.integers(len(items))]


# --- bytes and JSON -------------------------------------------------------------------------------


def damage_bytes(random: Random, data: bytes, near: int | None = None) -> bytes:
    """Bytes with something changed, cut, inserted or repeated; near: mostly among the first."""
    out = bytearray(data)
    for _ in range(int(random.choice([1, 1, 2, 4, 16]))):
        size = max(1, min(len(out), near) if near and random.integers(4) else len(out))
        at, length = int(random.integers(0, size)), int(random.integers(1, 65))
        other = int(random.integers(0, size))
        match int(random.integers(0, 8)):
            case 0:
                out[at : at + 1] = bytes([int(random.integers(256))])
            case 1 if len(out) > at:
                out[at] ^= 1 << int(random.integers(8))
            case 2:
                number = int(random.choice([0, 1, 255, 2**31 - 1, 2**32 - 1, 2**62, 2**63 - 1]))
                width = int(random.choice([1, 2, 4, 8]))
                out[at : at + width] = (number % (1 << 8 * width)).to_bytes(width, "little")
            case 3:
                out[at : at + length] = b""
            case 4:
                out[at:at] = out[at : at + length]
            case 5:
                out[at : at + length] = bytes(len(out[at : at + length]))
            case 6:
                out[at : at + length] = out[other : other + length]
            case 7 if random.integers(4) == 0:
                del out[at:]
    return bytes(out)


def any_value(random: Random) -> Any:
    """Anything JSON can say."""
    kind = int(random.integers(0, 10))
    if kind < 9:
        return pick(random, NUMBERS if kind < 5 else TEXTS if kind < 8 else OTHERS)
    deep: Any = 1
    for _ in range(int(random.integers(1, 400))):
        deep = [deep] if random.integers(2) else {"a": deep}
    return deep


def change_json(random: Random, document: Any) -> Any:
    """A JSON document with some of its values changed."""
    document = json.loads(json.dumps(document))
    for _ in range(int(random.choice([1, 1, 1, 2, 5]))):
        places = list(places_of(document))
        if not places:
            return any_value(random)
        holder, key = pick(random, places)
        match int(random.integers(0, 8)):
            case 0 | 1 | 2 | 3:
                holder[key] = any_value(random)
            case 4:
                del holder[key]
            case 5:
                other, name = pick(random, places)
                holder[key] = json.loads(json.dumps(other[name]))
            case 6 if isinstance(holder, dict):
                holder[pick(random, TEXTS)] = holder.pop(key)
            case 6:
                holder.extend(holder[:50])
            case 7 if isinstance(holder[key], int | float):
                holder[key] = -holder[key] if random.integers(2) else holder[key] + 1
    return document


def places_of(document: Any) -> Any:
    """(holder, key) of every value in a JSON document."""
    if isinstance(document, dict | list):
        pairs = document.items() if isinstance(document, dict) else enumerate(document)
        for key, inner in list(pairs):
            yield document, key
            yield from places_of(inner)


def damage_json(random: Random, document: Any) -> bytes:
    """The bytes of a changed document, of a damaged one, or of something else."""
    kind = int(random.integers(0, 10))
    if kind == 0:
        return damage_bytes(random, json.dumps(document).encode())
    text = json.dumps(any_value(random) if kind == 1 else change_json(random, document))
    if kind == 2:  # what Python writes although it is not JSON
        text = text.replace("0", str(random.choice(["NaN", "Infinity", "1e999", "-0"])), 1)
    return text.encode("utf-8", "surrogatepass")


# --- HDF5: captures and studies -------------------------------------------------------------------


def copy_one(random: Random, good: Path, folder: Path) -> Path:
    """A copy of one of the good files."""
    return Path(shutil.copy(pick(random, sorted(good.glob("*.h5"))), folder / "a.h5"))


def in_bytes(random: Random, good: Path, folder: Path, canary: Path) -> Path:
    """Bytes of the file."""
    path = copy_one(random, good, folder)
    path.write_bytes(damage_bytes(random, path.read_bytes(), HEAD))
    return path


def edited(edit: Any) -> Any:
    """The kind of damage that edit(random, file, canary) does to an open HDF5 file."""

    def damage(random: Random, good: Path, folder: Path, canary: Path) -> Path:
        path = copy_one(random, good, folder)
        with h5py.File(path, "r+") as file:
            edit(random, file, canary)
        return path

    return damage


def objects_of(file: h5py.File) -> list[Any]:
    """The file, its groups and its datasets."""
    names: list[str] = []
    file.visit(names.append)
    return [file, *(file[name] for name in sorted(names))]


def datasets_of(file: h5py.File) -> list[Any]:
    """The datasets of a file."""
    return [one for one in objects_of(file) if isinstance(one, h5py.Dataset)]


def edit_attribute(random: Random, file: h5py.File, canary: Path | None = None) -> None:
    """Delete or change an attribute."""
    holder = pick(random, [one for one in objects_of(file) if len(one.attrs)])
    name = pick(random, sorted(holder.attrs))
    if random.integers(6) == 0:
        del holder.attrs[name]
        return
    old, number = holder.attrs[name], pick(random, NUMBERS)
    text = pick(random, TEXTS).encode("utf-8", "surrogatepass")
    fixed = np.int64(np.clip(number, -(2**63), 2**63 - 1))
    holder.attrs[name] = pick(random, [
        fixed, np.float64(number), np.bytes_(text[:3000] or b"x"), np.array([number], "f8"),
        np.full(int(random.integers(0, 2000)), fixed), h5py.Empty("i8"), "text",
        np.array([b"a", b"b"]), np.nan, np.inf, np.zeros((2, 2), "i8"), np.uint8(255),
        np.array([(1, 2)], "i4,i4"), np.bytes_(b"softmax " * int(random.integers(1, 9))),
        old, np.asarray(old).repeat(2),
    ])  # fmt: skip


def edit_document(random: Random, file: h5py.File, canary: Path | None = None) -> None:
    """Change or damage one of the JSON documents."""
    if "identity" in file:
        names = ["identity"]
    elif "index" in file:
        names = ["spec", "index", "index", "index", "made", "items/00001/prompt/pieces"]
    elif "about" in file:
        names = ["spec", "spec", "about", "about", "masks", "masks", "off", "made"]
    else:
        names = ["spec", "spec", "spec", "off", "made", "prompt/pieces"]
    name = pick(random, names)
    document = change_json(random, json.loads(bytes(file[name][:])))
    data = json.dumps(document).encode("utf-8", "surrogatepass")
    if random.integers(8) == 0:
        data = damage_bytes(random, data)
    del file[name]
    file.create_dataset(name, data=np.frombuffer(data, "u1"))


def edit_dataset(random: Random, file: h5py.File, canary: Path) -> None:
    """Replace a dataset by one of another shape, type, layout, filter or place, or by nothing."""
    dataset = pick(random, datasets_of(file))
    name, old = dataset.name, dataset[...]
    del file[name]
    size = int(random.choice([0, 1, 2, 3, 100, 10**6, 2**31, 2**40, 2**61]))
    shape, axis = list(old.shape), int(random.integers(max(1, old.ndim)))
    if shape:
        shape[axis] = size
    some = old.shape or (1,)
    kinds = ("f2", "f4", "f8", ">f4", "u1", "u2", "i1", "i8", "c8", "S3", "?", "i4,f4", "V7")
    match int(random.integers(0, 14)):
        case 0:
            chunks = tuple(min(max(1, n), 64) for n in shape) or None
            file.create_dataset(name, tuple(shape), old.dtype, chunks=chunks)
        case 1 if size <= 1000:
            file.create_dataset(name, data=np.zeros(shape, old.dtype))
        case 2:
            file.create_dataset(name, old.shape, pick(random, kinds))
        case 3:
            packed = str(random.choice(["gzip", "lzf"]))
            zeros = np.zeros(8_000_000, old.dtype)
            file.create_dataset(name, data=zeros, compression=packed, chunks=(4_000_000,))
        case 4:
            outside = [(str(canary / "secret.bin"), 0, h5py.h5f.UNLIMITED)]
            file.create_dataset(name, some, old.dtype, external=outside)
        case 5:
            layout = h5py.VirtualLayout(some, old.dtype)
            layout[...] = h5py.VirtualSource(str(canary / "other.h5"), "x", some)
            file.create_virtual_dataset(name, layout)
        case 6:
            file.create_dataset(name, data="text")
        case 7:
            file.create_dataset(name, data=h5py.Empty("f4"))
        case 8:
            file[name] = file.ref
        case 9:
            file.create_group(name)
        case 10:
            file.create_dataset(name, data=old[None])
        case 11:
            file.create_dataset(name, data=old.T if random.integers(2) else old[..., ::2])
        case 12:
            data = np.full(old.shape, any_number(random, old.dtype), old.dtype)
            file.create_dataset(name, data=data)


def edit_link(random: Random, file: h5py.File, canary: Path) -> None:
    """Let a name lead elsewhere."""
    names = [one.name for one in objects_of(file) if one.name != "/"]
    name, other = pick(random, names), pick(random, names)
    target = file[other]
    del file[name]
    links = [
        h5py.SoftLink(name), h5py.SoftLink(other), h5py.SoftLink("/"),
        h5py.ExternalLink(str(canary / "other.h5"), "/x"),
        h5py.ExternalLink("../canary/other.h5", "/"), file["/"],
    ]  # fmt: skip
    kind = int(random.integers(0, 8))
    if kind < len(links):
        file[name] = links[kind]
    elif kind == 6 and target.id.valid:
        file[name] = target  # the same thing under two names, perhaps within itself
    else:
        group = file.create_group(name)
        for _ in range(300):
            group = group.create_group("g")


def edit_numbers(random: Random, file: h5py.File, canary: Path) -> None:
    """Change numbers of datasets, and let their checksums agree."""
    for _ in range(int(random.integers(1, 4))):
        dataset = pick(random, [one for one in datasets_of(file) if one.size])
        values = dataset[...]
        places = random.integers(0, values.size, int(random.integers(1, 6)))
        values.reshape(-1)[places] = any_number(random, values.dtype)
        dataset[...] = values
        if "crc32" in dataset.attrs:
            dataset.attrs["crc32"] = zlib.crc32(np.ascontiguousarray(values).data)
    names = ("q", "k", "stat", "norm", "threshold", "relative/weight", "relative/bias",
             "relative/content", "relative/position")  # fmt: skip
    for group in objects_of(file):
        if isinstance(group, h5py.Group) and "q" in group and "crc32" in group.attrs:
            arrays = [group[name][...] for name in names if name in group]
            sums = [0] * len(group.attrs["crc32"])
            for head in range(len(sums)):
                for array in arrays:
                    sums[head] = zlib.crc32(np.ascontiguousarray(array[head]).data, sums[head])
            group.attrs["crc32"] = np.array(sums, "<i8")


def any_number(random: Random, dtype: Any) -> Any:
    """An unlikely number of a type."""
    if dtype.kind == "f":
        return random.choice([0, -1, np.nan, np.inf, -np.inf, 1e30, -1e-30, 7e4])
    limits = np.iinfo(dtype)
    return random.choice(np.array([limits.min, limits.max, 0, 1, limits.max // 2], dtype))


def in_parts(random: Random, good: Path, folder: Path, canary: Path) -> Path:
    """Files of an interrupted capture, which is a folder."""
    source = good / pick(random, ("cut.h5.part", "few.h5.part"))
    part = Path(shutil.copytree(source, folder / "a.h5.part"))
    file, other = (pick(random, sorted(part.iterdir())) for _ in range(2))
    data = other.read_bytes()
    kind = int(random.integers(0, 10))
    if kind in (2, 3, 4, 5):
        file.unlink()
    match kind:
        case 0 | 1:
            file.write_bytes(damage_bytes(random, file.read_bytes(), HEAD))
        case 3:
            file.write_bytes(data)
        case 4:
            (os.mkdir if random.integers(2) else os.mkfifo)(file)
        case 5:
            file.symlink_to(file.name)
        case 6:
            file.write_bytes(b"")
        case 7 | 8:
            edit = edit_attribute if kind == 7 else edit_document
            with h5py.File(file if kind == 7 and file.suffix == ".h5" else part / "root.h5",
                           "r+") as opened:  # fmt: skip
                edit(random, opened)
        case 9:
            (part / "layer-999.h5").write_bytes(json.dumps(any_value(random)).encode())
    return part


# --- checkpoints ----------------------------------------------------------------------------------


def copy_model(random: Random, good: Path, folder: Path, *names: str) -> Path:
    """A copy of one of the checkpoints with these names."""
    return Path(shutil.copytree(good / pick(random, names), folder / "model"))


def in_safetensors(random: Random, good: Path, folder: Path, canary: Path) -> Path:
    """Header and body of a safetensors file."""
    path = copy_model(random, good, folder, "own", "plain", "dynamic", "bert", "gpt2")
    file = path / "model.safetensors"
    data = file.read_bytes()
    length = int.from_bytes(data[:8], "little")
    if random.integers(3) == 0:
        file.write_bytes(damage_bytes(random, data, 8 + length))
        return path
    header = damage_json(random, json.loads(data[8 : 8 + length]))
    body = data[8 + length :]
    if random.integers(8) == 0:
        body = damage_bytes(random, body)
    said = len(header) if random.integers(8) else int(random.integers(0, 2**63))
    file.write_bytes(struct.pack("<Q", said) + header + body)
    return path


class MakesFolder:
    """Unpickled, it would make a folder."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> Any:
        return os.mkdir, (self.path,)


def in_torch(random: Random, good: Path, folder: Path, canary: Path) -> Path:
    """A tensor of a torch file, its zip, or the pickle in it."""
    path = copy_model(random, good, folder, "theirs", "bin")
    file = next(one for one in path.iterdir() if one.suffix in (".pt", ".bin"))
    kind = int(random.integers(0, 8))
    if kind < 2:
        file.write_bytes(damage_bytes(random, file.read_bytes()))
    elif kind > 2:
        repack(random, file)
    else:
        state = torch.load(file, weights_only=True)
        name = pick(random, sorted(state))
        old = state[name]
        state[name] = pick(random, [
            torch.zeros(1).expand(2**40), torch.zeros(1).expand(old.shape), old.T, old.half(),
            torch.zeros(old.shape, dtype=torch.int8), torch.zeros(old.shape, device="meta"),
            torch.full(old.shape, torch.nan), old.to_sparse(), MakesFolder(canary / "made"),
            [old], None, torch.zeros(0, 2**40), old.reshape(-1), old.to(torch.complex64),
            torch.zeros(2**20), old.as_strided((2, 2**30), (0, 0)), torch.nn.Parameter(old),
            {"a": old}, 3,
        ])  # fmt: skip
        torch.save(state, file)
    return path


def repack(random: Random, file: Path) -> None:
    """Damage, remove, rename or lengthen a part of a zip."""
    with zipfile.ZipFile(file) as archive:
        parts = [(name, archive.read(name)) for name in archive.namelist()]
    at = int(random.integers(len(parts)))
    if random.integers(2):  # most of what can go wrong is in the pickle
        at = next(i for i, (name, _) in enumerate(parts) if name.endswith("data.pkl"))
    name, data = parts[at]
    match int(random.integers(0, 6)):
        case 0 | 1 | 2:
            parts[at] = (name, damage_bytes(random, data))
        case 3:
            del parts[at]
        case 4:
            parts[at] = (pick(random, [*TEXTS[1:8], "../../x", "/x", parts[0][0]]), data)
        case 5:
            parts[at] = (name, data + bytes(8_000_000))
    packing = zipfile.ZIP_DEFLATED if random.integers(3) == 0 else zipfile.ZIP_STORED
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", packing) as archive:
        warnings.simplefilter("ignore")  # two parts of one name
        for name, data in parts:
            archive.writestr(name.encode("utf-8", "replace").decode(), data)


def in_shards(random: Random, good: Path, folder: Path, canary: Path) -> Path:
    """The index of weights in several files, and these."""
    path = copy_model(random, good, folder, "shards")
    index = path / "model.safetensors.index.json"
    document = json.loads(index.read_text())
    kind = int(random.integers(0, 5))
    if kind < 2:
        index.write_bytes(damage_json(random, document))
    elif kind == 2:
        names = sorted(document["weight_map"])
        places = [str(canary / "other.safetensors"), "../canary/other.safetensors", ".", "..", "",
                  "config.json", "model.safetensors.index.json", "a" * 300 + ".bin", "\0.bin",
                  "model-00001-of-00002.safetensors"]  # fmt: skip
        for name in names[: int(random.integers(1, len(names)))]:
            document["weight_map"][name] = pick(random, places)
        index.write_text(json.dumps(document))
    else:
        shard = pick(random, sorted(path.glob("*.safetensors")))
        shard.write_bytes(damage_bytes(random, shard.read_bytes(), HEAD))
    return path


def in_config(*names: str) -> Any:
    """The damage of the config.json of these checkpoints."""

    def damage(random: Random, good: Path, folder: Path, canary: Path) -> Path:
        path = copy_model(random, good, folder, *names)
        file = path / "config.json"
        file.write_bytes(damage_json(random, json.loads(file.read_text())))
        return path

    return damage


def in_tokenizer(random: Random, good: Path, folder: Path, canary: Path) -> Path:
    """tokenizer.json."""
    path = copy_model(random, good, folder, "bert", "gpt2")
    file = path / "tokenizer.json"
    document = json.loads(file.read_text())
    if random.integers(4) == 0:
        pattern = {"Regex": pick(random, TEXTS)}
        document["pre_tokenizer"] = {
            "type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False
        }  # fmt: skip
    elif random.integers(2):  # where the structure is, not the vocabulary
        key = pick(random, [key for key in document if key != "model"])
        part = document[key]
        document[key] = change_json(random, part) if part else any_value(random)
    file.write_bytes(damage_json(random, document))
    return path


def in_vocabulary(random: Random, good: Path, folder: Path, canary: Path) -> Path:
    """vocab.txt, vocab.json, merges.txt and the files beside them."""
    path = copy_model(random, good, folder, "words", "merges")
    names = ("vocab.txt", "vocab.json", "merges.txt", "tokenizer_config.json", "added_tokens.json")
    file = pick(random, [path / name for name in names if (path / name).exists()])
    if file.suffix == ".json":
        file.write_bytes(damage_json(random, json.loads(file.read_text())))
        return path
    lines = file.read_text(encoding="utf-8").split("\n")
    for _ in range(int(random.integers(1, 4))):
        at = int(random.integers(len(lines)))
        match int(random.integers(0, 4)):
            case 0:
                lines[at] = pick(random, TEXTS)
            case 1 if len(lines) > 1:
                del lines[at]
            case 2:
                lines[at] = pick(random, lines)
            case _:
                lines.insert(at, pick(random, TEXTS) + " " + pick(random, TEXTS))
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    file.write_bytes(damage_bytes(random, data) if random.integers(4) == 0 else data)
    return path


EDITS = {"attributes": edit_attribute, "documents": edit_document, "datasets": edit_dataset,
         "links": edit_link, "numbers": edit_numbers}  # fmt: skip
GROUPS = {  # kinds of damage by the folder of good files; each takes (random, good, folder, canary)
    "captures": {
        "capture bytes": in_bytes, "capture parts": in_parts,
        **{f"capture {name}": edited(edit) for name, edit in EDITS.items()},
    },
    "models": {
        "safetensors": in_safetensors, "torch": in_torch, "shards": in_shards,
        "own config": in_config("own", "plain", "dynamic", "theirs"),
        "other config": in_config("bert", "gpt2"), "tokenizer": in_tokenizer,
        "vocabulary": in_vocabulary,
    },
    "studies": {
        "study bytes": in_bytes,
        **{f"study {name}": edited(edit) for name, edit in EDITS.items()},
    },
}  # fmt: skip


def damage(kinds: Any, number: int, seed: int, good: Path, folder: Path, canary: Path) -> Any:
    """The path of a damaged file; None where HDF5 does not write such a thing."""
    name = kinds[number % len(kinds)]
    group, damages = next((one, GROUPS[one]) for one in GROUPS if name in GROUPS[one])
    random = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
    folder.mkdir(parents=True)
    try:
        with warnings.catch_warnings(action="ignore"):  # numbers too large to write
            return damages[name](random, good / group, folder, canary)
    except (OSError, ValueError, LookupError, TypeError, RuntimeError):
        return None


# --- opening --------------------------------------------------------------------------------------

MEMORY = 2 * 2**30
IN_ACCESS, IN_OPEN = 0x1, 0x20
PROMPTS = ("the cat sat.", "a" * 60 + "b", "나는 \U0001f600 \u202e$x$ <b>\0", "a" * 600)


class Watch:
    """Notices opened files: those of Python by an audit hook, those of libraries by the kernel."""

    def __init__(self, canary: Path) -> None:
        self.allowed: tuple[str, ...] = ()
        self.opened: list[str] = []
        self._canary, self._before = canary, sorted(canary.iterdir())
        library = ctypes.CDLL(None, use_errno=True)
        self._events = library.inotify_init1(os.O_NONBLOCK)
        for path in self._before:
            library.inotify_add_watch(self._events, os.fsencode(path), IN_ACCESS | IN_OPEN)
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.allowed:
            return
        if event == "tempfile.mkdtemp":  # the program's own, for copies
            self.allowed += (str(arguments[0]),)
        elif event in ("open", "subprocess.Popen", "os.system"):
            path = arguments[0]
            if not isinstance(path, int):
                name = os.path.abspath(os.fsdecode(path)) if event == "open" else f"{event} {path}"
                if not name.startswith(self.allowed):
                    self.opened.append(name)

    @contextmanager
    def only(self, folder: Path) -> Any:
        """Within, only files of this folder and of the program itself may be opened."""
        self.allowed = (str(folder), sys.prefix, sys.base_prefix, str(Path(__file__).parents[2]),
                        os.devnull, "/proc", "/sys/fs/cgroup")  # fmt: skip
        try:
            yield
        finally:
            self.allowed = ()

    def found(self) -> list[str]:
        """What was opened or made that should not have been, since the last call."""
        found, self.opened = self.opened, []
        try:
            if self._events >= 0 and os.read(self._events, 4096):
                found.append("the canary, by a library")
        except BlockingIOError:
            pass
        if sorted(self._canary.iterdir()) != self._before:
            found.append("something was made beside the canary")
        return found


def open_file(path: Path) -> None:
    """Do what `hgviz info` and the window do with a path that somebody opens."""
    kind = tasks.kind_of(path)
    if kind == "capture":
        json.dumps(tasks.info(path))
        capture = open_capture(path)
        if len(capture.items) > 1:
            capture = open_capture(path, 1)
        str(capture.main.digest), [capture.prompt.label(i) for i in range(len(capture.prompt))]
        for layer, one in enumerate(capture.maps):
            if one is not None:
                capture.query_spans(layer), capture.key_spans(layer)
                for head in one.heads[:2]:
                    one.summary(head)
                    for zoom, reduce in ((0, "max"), (1, "max"), (1, "mean")):
                        one.read(head, zoom=zoom, reduce=reduce)
                    one.overview(head, zoom=3)
                    one.overview(head, zoom=5, reduce="mean")
    elif kind == "study":
        facts, study = tasks.info(path), open_study(path)
        json.dumps(facts)
        for method in facts["methods"]:
            json.dumps(importance(study, method).to_rows())
        for curve in study.curves:
            removable_heads(curve)
            random_band(random_curves_beside(study, curve))
    else:
        model = open_model(path)
        for text in PROMPTS:
            try:
                model.tokenize(text)
            except HgvizError as error:  # is as good as none
                check_error(error)
        model.from_ids([0, 1, 2])


def check_error(error: HgvizError) -> None:
    """An error for people says what is wrong in one line that can be shown."""
    for part in (error.what, error.do):
        odd = [letter for letter in part if letter != " " and not letter.isprintable()]
        assert not odd, f"{odd[:3]!r} in {part!r}"
        assert len(part) < 600, f"{len(part)} characters: {part[:80]!r}"
    assert error.what, error.args
    reasons = (error.details, error.what, repr(error.__cause__), repr(error.__context__))
    assert not any("MemoryError" in one or "fit in memory" in one for one in reasons), reasons


def judge(path: Path) -> tuple[str, str]:
    """How opening ends: opened, refused, or wrong and why."""
    try:
        try:
            open_file(path)
        except HgvizError as error:
            check_error(error)
            return "refused", str(error)[-100:]
    except BaseException:
        return "wrong", "".join(traceback.format_exc(limit=-6))[-2500:]
    return "opened", ""


def main(good: str, canary: str, kind: str, seed: str, first: str, end: str) -> None:
    """Damage and open files, and print a line before and after each."""
    group = kind if kind in GROUPS else next(one for one in GROUPS if kind in GROUPS[one])
    kinds = [*GROUPS[kind]] if kind in GROUPS else [kind]
    for path in sorted(Path(good, group).iterdir()):  # what is imported late is imported now
        if not path.name.endswith(".part"):
            open_file(path)
    watch = Watch(Path(canary))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    work = Path(tempfile.mkdtemp(dir=Path(canary).parent))
    os.chdir(work)
    for number in range(int(first), int(end)):
        folder = work / "in"
        path = damage(kinds, number, int(seed), Path(good), folder, Path(canary))
        watch.found()
        print(json.dumps({"number": number}), flush=True)
        started, verdict, why = time.monotonic(), "unmade", ""
        if path is not None:
            with watch.only(folder):
                verdict, why = judge(path)
        seconds = time.monotonic() - started
        if outside := watch.found():
            verdict, why = "wrong", f"opened {outside}"
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(json.dumps({"number": number, "verdict": verdict, "why": why, "seconds": seconds,
                          "peak": peak}), flush=True)  # fmt: skip
        shutil.rmtree(folder)
    shutil.rmtree(work)


if __name__ == "__main__":
    main(*sys.argv[1:])
