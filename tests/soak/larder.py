"""What is opened by turns: files of every kind, good ones, changed ones, and what is no file."""

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from hgviz.files import resource
from tests.soak import captures, models, studies, sweeps

BUNDLED = ("sample/first.h5", "sample/hourglass", "sample/softmax", "sample/ymish", "sample/mixed")
WORDS = "The hourglass reads letters, then pairs. Nobody liked the plot, but the end was great."
WORSE = 3  # changed files of each kind of change


@dataclass(frozen=True, slots=True)
class Larder:
    """Paths by what they are for. openable: all that anybody may open or drop, good or not."""

    captures: tuple[str, ...]
    openable: tuple[str, ...]
    texts: tuple[str, ...]
    ids: tuple[str, ...]
    folder: Path

    @classmethod
    def fill(cls, folder: Path, worse: int = WORSE) -> Self:
        """Make the files; worse: how many for each way in which a file can be changed."""
        for room in (captures, models, studies):
            room.make(folder / room.__name__.rpartition(".")[2])
        sweeps.make(folder / "sweeps")
        good = sorted(one for one in folder.glob("*/*") if not one.name.endswith(".part"))
        parts = sorted(folder.glob("captures/*.part"))
        plain = _plain(folder / "plain")
        opened = [*map(resource, BUNDLED), *good, *parts, *_changed(folder, worse)]
        opened += [*plain, folder / "nowhere.h5", folder / "plain"]
        some = sorted((folder / "captures").glob("*.h5"))
        texts = [one for one in plain if one.suffix in (".txt", ".tsv", ".jsonl")]
        return cls(
            tuple(map(str, some)),
            tuple(map(str, opened)),
            tuple(map(str, texts)),
            tuple(str(one) for one in plain if one.suffix == ".json"),
            folder,
        )

    def find(self, end: str) -> str:
        """The path of something that can be opened, by its end."""
        return next(one for one in self.openable if one.endswith(end))


def _plain(folder: Path) -> list[Path]:
    """Texts, tables and ids, some of them empty or something else."""
    folder.mkdir()
    lines = [f"{number} {WORDS}" for number in range(12)]
    rows = [f"{('negative', 'positive')[number % 2]}\t{WORDS}" for number in range(24)]
    said = {
        "many.txt": "\n".join(lines),
        "rows.tsv": "\n".join(["label\ttext", *rows]),
        "rows.jsonl": "\n".join(json.dumps({"text": one, "label": 0}) for one in lines),
        "ids.json": json.dumps({"input_ids": [0, 1, 2, 3, 4, 5]}),
        "wrong.json": json.dumps({"input_ids": [10**9, -1]}),
        "none.json": "",
        "none.txt": "",
        "none.h5": "",
        "words.h5": "no capture at all",
        "odd.txt": "a\0b \u202e나는 \U0001f600\n\n\t" * 9,
        "none.safetensors": "",
        "config.json": "{}",
    }
    for name, text in said.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "bytes.txt").write_bytes(bytes(range(128, 256)))
    (folder / "empty folder").mkdir()
    return sorted(folder.iterdir())


def _changed(folder: Path, count: int) -> list[Path]:
    """Good files that something has happened to."""
    out = []
    canary = folder / "canary"
    canary.mkdir()
    (canary / "secret.bin").write_bytes(bytes(range(256)))
    for room in (captures, models, studies):
        good = folder / room.__name__.rpartition(".")[2]
        for number, change in enumerate(room.CHANGES.values()):
            for at in range(count):
                place = folder / "changed" / f"{good.name} {number} {at}"
                place.mkdir(parents=True)
                random = np.random.default_rng([number, at])
                try:
                    with warnings.catch_warnings(action="ignore"):  # numbers too large to write
                        out.append(change(random, good, place, canary))
                except (OSError, ValueError, LookupError, TypeError, RuntimeError):
                    continue  # HDF5 will not write everything
    return out
