"""Captures that something has happened to. Every change takes (random, folder, canary)."""

import json
import os
import shutil
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from hgviz.core import Item
from hgviz.maps import DenseMap, overview
from hgviz.store import CorpusWriter, Writer, write_capture
from tests.making import make_capture
from tests.soak.nonsense import NUMBERS, TEXTS, Random, damaged, restated, value
from tests.store.samples import of_kind

HEAD = 4096  # where most of what HDF5 says of itself lies in files this small


def make(folder: Path) -> None:
    """One good capture of every kind, and a folder of one that was interrupted."""
    folder.mkdir()
    made = {kind: of_kind(kind) for kind in ("both", "states", "slots", "classes")}
    made["lazy"] = make_capture("From a stranger. " * 3, (1, 2), 2, relative=True)
    made["signed"] = make_capture("From a stranger. " * 3, (1, 2), 2, signed=True)
    whole = made["lazy"]
    array = np.random.default_rng(0).random((2, 60, 60)).astype(np.float32)
    spec = replace(whole.spec, layers=whole.spec.layers[:1], levels=whole.spec.levels[:1])
    spans = (whole.spans[0],)
    logits = np.zeros((len(whole.prompt), 256), np.float32)
    made["dense"] = replace(
        whole, spec=spec, maps=(DenseMap(array, (0, 1)),), spans=spans, logits=logits
    )
    for name, capture in made.items():
        write_capture(folder / f"{name}.h5", capture)
    small, overview._SMALL = overview._SMALL, 16  # levels as of a long text, in a small file
    try:
        for signed in (False, True):
            long = make_capture("x. " * 367, (1,), 1, signed=signed, logits=False)
            write_capture(folder / f"levels-{signed}.h5", long)
    finally:
        overview._SMALL = small
    _corpus(folder / "many.h5", whole, finish=True)
    _corpus(folder / "few.h5", whole, finish=False)
    writer = Writer(folder / "cut.h5", whole)
    for index in (0, 1, 3):
        writer.add(index, whole.maps[index].factors)


def _corpus(path: Path, text: Any, finish: bool) -> None:
    """Three times the same text; unfinished, the third is not there."""
    size = len(text.prompt)
    items = tuple(Item(number, text.prompt.text, size, "a label") for number in range(3))
    writer = CorpusWriter(path, replace(text, items=items), "0")
    for number in range(3 if finish else 2):
        with writer.item(number, text) as one:
            for index, maps in enumerate(text.maps):
                one.add(index, maps.factors)
            one.finish(text.logits)
    if finish:
        writer.finish()


def copied(random: Random, good: Path, folder: Path) -> Path:
    names = sorted(one.name for one in good.glob("*.h5"))
    return Path(shutil.copy(good / names[random.integers(len(names))], folder / "a.h5"))


def in_bytes(random: Random, good: Path, folder: Path, canary: Path) -> Path:
    """Bytes of the file."""
    path = copied(random, good, folder)
    path.write_bytes(damaged(random, path.read_bytes(), HEAD))
    return path


def in_attributes(random: Random, good: Path, folder: Path, canary: Path) -> Path:
    """What groups and datasets say of themselves."""
    path = copied(random, good, folder)
    with h5py.File(path, "r+") as file:
        _change_attribute(random, file)
    return path


def _change_attribute(random: Random, file: h5py.File) -> None:
    holders = [one for one in everything(file) if len(one.attrs)]
    holder = holders[random.integers(len(holders))]
    name = sorted(holder.attrs)[random.integers(len(holder.attrs))]
    if random.integers(6) == 0:
        del holder.attrs[name]
        return
    old = holder.attrs[name]
    one: Any = NUMBERS[random.integers(len(NUMBERS))]
    text = TEXTS[random.integers(len(TEXTS))].encode("utf-8", "surrogatepass")
    fixed = np.clip(one, -(2**63), 2**63 - 1)
    choices = [
        np.int64(fixed), np.float64(one), np.bytes_(text[:3000] or b"x"), np.array([one], "f8"),
        np.full(int(random.integers(0, 2000)), np.int64(fixed)), h5py.Empty("i8"), "text",
        np.array([b"a", b"b"]), np.nan, np.inf, np.zeros((2, 2), "i8"), np.uint8(255),
        np.array([(1, 2)], "i4,i4"), np.bytes_(b"softmax " * int(random.integers(1, 9))),
        old, np.asarray(old).repeat(2),
    ]  # fmt: skip
    holder.attrs[name] = choices[random.integers(len(choices))]


def in_documents(random: Random, good: Path, folder: Path, canary: Path) -> Path:
    """The JSON documents: spec, off, made, pieces."""
    path = copied(random, good, folder)
    with h5py.File(path, "r+") as file:
        names = ["spec", "spec", "spec", "off", "made", "prompt/pieces"]
        if "index" in file:
            names = ["spec", "index", "index", "index", "made", "items/00001/prompt/pieces"]
        replace_one(random, file, names)
    return path


def replace_one(random: Random, file: h5py.File, names: Sequence[str]) -> None:
    """One of some JSON documents said otherwise, or damaged."""
    name = names[random.integers(len(names))]
    document = json.loads(bytes(file[name][:]))
    data = json.dumps(restated(random, document)).encode("utf-8", "surrogatepass")
    if random.integers(8) == 0:
        data = damaged(random, data)
    del file[name]
    file.create_dataset(name, data=np.frombuffer(data, "u1"))


def in_datasets(random: Random, good: Path, folder: Path, canary: Path) -> Path:
    """Shape, type, layout, filters and place of a dataset."""
    path = copied(random, good, folder)
    with h5py.File(path, "r+") as file:
        found = [one for one in everything(file) if isinstance(one, h5py.Dataset)]
        one = found[random.integers(len(found))]
        name, old = one.name, one[...]
        del file[name]
        _replace(random, file, name, old, canary)
    return path


def _replace(random: Random, file: h5py.File, name: str, old: Any, canary: Path) -> None:
    shape = list(old.shape)
    axis = int(random.integers(len(shape))) if shape else 0
    size = int(random.choice([0, 1, 2, 3, 100, 10**6, 2**31, 2**40, 2**61]))
    if shape:
        shape[axis] = size
    huge = tuple(shape)
    chunk = tuple(min(max(1, n), 64) for n in huge) or None
    chosen = int(random.integers(0, 14))
    kinds = ("f2", "f4", "f8", ">f4", "u1", "u2", "i1", "i8", "c8", "S3", "?", "i4,f4", "V7")
    if chosen == 0:
        file.create_dataset(name, huge, old.dtype, chunks=chunk)
    elif chosen == 1 and size <= 1000:
        file.create_dataset(name, data=np.zeros(huge, old.dtype))
    elif chosen == 2:
        file.create_dataset(name, old.shape, kinds[random.integers(len(kinds))])
    elif chosen == 3:
        packed = str(random.choice(["gzip", "lzf"]))
        zeros = np.zeros(8_000_000, old.dtype)
        file.create_dataset(name, data=zeros, compression=packed, chunks=(4_000_000,))
    elif chosen == 4:
        outside = [(str(canary / "secret.bin"), 0, h5py.h5f.UNLIMITED)]
        file.create_dataset(name, old.shape or (1,), old.dtype, external=outside)
    elif chosen == 5:
        layout = h5py.VirtualLayout(old.shape or (1,), old.dtype)
        layout[...] = h5py.VirtualSource(str(canary / "other.h5"), "x", old.shape or (1,))
        file.create_virtual_dataset(name, layout)
    elif chosen == 6:
        file.create_dataset(name, data="text")
    elif chosen == 7:
        file.create_dataset(name, data=h5py.Empty("f4"))
    elif chosen == 8:
        file[name] = file.ref
    elif chosen == 9:
        file.create_group(name)
    elif chosen == 10:
        file.create_dataset(name, data=old[None])
    elif chosen == 11:
        file.create_dataset(name, data=old.T if random.integers(2) else old[..., ::2])
    elif chosen == 12:
        data = np.full(old.shape, number(random, old.dtype), old.dtype)
        file.create_dataset(name, data=data)
    # else it is gone


def in_links(random: Random, good: Path, folder: Path, canary: Path) -> Path:
    """What a name leads to."""
    path = copied(random, good, folder)
    with h5py.File(path, "r+") as file:
        found = [one.name for one in everything(file) if one.name != "/"]
        name = found[random.integers(len(found))]
        chosen = int(random.integers(0, 8))
        other = found[random.integers(len(found))]
        kept = file[other]
        del file[name]
        targets = [
            h5py.SoftLink(name), h5py.SoftLink(other), h5py.SoftLink("/"),
            h5py.ExternalLink(str(canary / "other.h5"), "/x"),
            h5py.ExternalLink("../canary/other.h5", "/"),
        ]  # fmt: skip
        if chosen < len(targets):
            file[name] = targets[chosen]
        elif chosen == 5 and kept.id.valid:
            file[name] = kept  # the same thing under two names, perhaps within itself
        elif chosen == 6:
            group = file.create_group(name)
            for _ in range(300):
                group = group.create_group("g")
        elif chosen == 7:
            file[name] = file["/"]
    return path


def in_numbers(random: Random, good: Path, folder: Path, canary: Path) -> Path:
    """Numbers of the datasets, their checksums made to agree."""
    path = copied(random, good, folder)
    with h5py.File(path, "r+") as file:
        found = [one for one in everything(file) if isinstance(one, h5py.Dataset) and one.size]
        for _ in range(int(random.integers(1, 4))):
            one = found[random.integers(len(found))]
            values = one[...]
            places = random.integers(0, values.size, int(random.integers(1, 6)))
            values.reshape(-1)[places] = number(random, values.dtype)
            one[...] = values
        for place in (file, *file.get("items", {}).values()):
            for group in place["layers"].values() if "layers" in place else ():
                _agree(group)
    return path


def number(random: Random, dtype: Any) -> Any:
    if dtype.kind == "f":
        return random.choice([0, -1, np.nan, np.inf, -np.inf, 1e30, -1e-30, 7e4])
    limits = np.iinfo(dtype)
    return random.choice(np.array([limits.min, limits.max, 0, 1, limits.max // 2], dtype))


def _agree(group: h5py.Group) -> None:
    names = ("q", "k", "stat", "norm", "threshold", "relative/weight", "relative/bias",
             "relative/content", "relative/position")  # fmt: skip
    summed = [group[name][...] for name in names if name in group]
    if "crc32" not in group.attrs:
        return
    sums = []
    for place in range(len(group.attrs["crc32"])):
        found = 0
        for one in summed:
            found = zlib.crc32(np.ascontiguousarray(one[place]).data, found)
        sums.append(found)
    group.attrs["crc32"] = np.array(sums, "<i8")


def in_folders(random: Random, good: Path, folder: Path, canary: Path) -> Path:
    """The folder of an interrupted capture."""
    which = ("cut", "few")[random.integers(2)]
    part = Path(shutil.copytree(good / f"{which}.h5.part", folder / "a.h5.part"))
    files = sorted(part.iterdir())
    one = files[random.integers(len(files))]
    other = files[random.integers(len(files))]
    chosen = int(random.integers(0, 10))
    if chosen < 2:
        one.write_bytes(damaged(random, one.read_bytes(), HEAD))
    elif chosen == 2:
        one.unlink()
    elif chosen == 3:
        shutil.copy(other, part / "x")
        os.replace(part / "x", one)
    elif chosen == 4:
        one.unlink()
        (os.mkdir if random.integers(2) else os.mkfifo)(one)
    elif chosen == 5:
        one.unlink()
        one.symlink_to(one.name)
    elif chosen == 6:
        one.write_bytes(b"")
    elif chosen == 7 and one.suffix == ".h5":
        with h5py.File(one, "r+") as file:
            _change_attribute(random, file)
    elif chosen == 8:
        with h5py.File(part / "root.h5", "r+") as file:
            replace_one(random, file, ["identity"])
    else:
        (part / "layer-999.h5").write_bytes(json.dumps(value(random)).encode())
    return part


def everything(file: h5py.File) -> list[Any]:
    found: list[Any] = [file]
    names: list[str] = []
    file.visit(names.append)
    return found + [file[name] for name in sorted(names)]


CHANGES = {
    "capture bytes": in_bytes, "capture attributes": in_attributes,
    "capture documents": in_documents, "capture datasets": in_datasets, "capture links": in_links,
    "capture numbers": in_numbers, "capture folders": in_folders,
}  # fmt: skip
