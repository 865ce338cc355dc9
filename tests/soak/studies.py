"""Studies that something has happened to. Every change takes (random, folder, canary)."""

import zlib
from pathlib import Path

import h5py
import numpy as np

from hgviz.store import write_study
from tests.soak import captures
from tests.soak.captures import everything, number
from tests.soak.nonsense import Random
from tests.studying import make_study

DOCUMENTS = ("spec", "spec", "about", "about", "masks", "masks", "off", "made")


def make(folder: Path) -> None:
    """Good studies of every kind, one of them stopped."""
    folder.mkdir()
    for asked in ("classes", "next", "masked"):
        write_study(folder / f"{asked}.h5", make_study(examples=40, asked=asked))
    write_study(folder / "few.h5", make_study(examples=40, done=0.4, off=((0, 1),)))
    write_study(folder / "large.h5", make_study(examples=4000, without=("alone", "shapley")))


def in_documents(random: Random, good: Path, folder: Path, canary: Path) -> Path:
    """The JSON documents."""
    path = captures.copied(random, good, folder)
    with h5py.File(path, "r+") as file:
        captures.replace_one(random, file, DOCUMENTS)
    return path


def in_numbers(random: Random, good: Path, folder: Path, canary: Path) -> Path:
    """Numbers of the datasets, their checksums made to agree."""
    path = captures.copied(random, good, folder)
    with h5py.File(path, "r+") as file:
        found = [one for one in everything(file) if isinstance(one, h5py.Dataset) and one.size]
        for _ in range(int(random.integers(1, 4))):
            one = found[random.integers(len(found))]
            values = one[...]
            places = random.integers(0, values.size, int(random.integers(1, 6)))
            values.reshape(-1)[places] = number(random, values.dtype)
            one[...] = values
            if "crc32" in one.attrs:
                one.attrs["crc32"] = zlib.crc32(np.ascontiguousarray(values).data)
    return path


CHANGES = {
    "study bytes": captures.in_bytes, "study attributes": captures.in_attributes,
    "study datasets": captures.in_datasets, "study links": captures.in_links,
    "study documents": in_documents, "study numbers": in_numbers,
}  # fmt: skip
