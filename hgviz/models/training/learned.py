"""gates.json: what gates were learnt for each head, written by a training and read into studies."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from hgviz.core import HeadSet, HgvizError, ModelSpec, parse_heads
from hgviz.errors import file_error
from hgviz.files import write_atomic
from hgviz.study import LearnedImportance

GATES = "gates.json"
VERSION = 1


class _Gates(msgspec.Struct, frozen=True):
    """What a reader needs of gates.json; other keys are for people."""

    gates_version: int
    method: str
    heads: list[str]
    off: str
    learned: dict[str, dict[str, float]]
    models: list[str]
    seed: int = 0


def write_gates(folder: Path, told: dict[str, Any], models: tuple[str, str]) -> None:
    """Write folder/gates.json; models: digests of the model it began from and of the stored one."""
    told = {"gates_version": VERSION, "models": list(models), **told}
    write_atomic(folder / GATES, json.dumps(told, indent=1) + "\n")


def read_learned(
    paths: Sequence[str | os.PathLike[str]], spec: ModelSpec
) -> tuple[tuple[LearnedImportance, ...], HeadSet]:
    """What trainings gave the heads of a model, a run each, and the heads that all of them close.

    paths: gates.json, or the folders they lie in. Heads that were off all along are NaN.
    Errors: HgvizError for files that are none, and gates of other models.
    """
    runs: dict[str, list[list[float]]] = {}
    notes: dict[str, list[str]] = {}
    off: list[HeadSet] = []
    for path in map(Path, paths):
        file = path / GATES if path.is_dir() else path
        found = _read(file)
        if found.heads != list(map(str, spec.heads)) or spec.digest not in found.models:
            raise HgvizError(
                f"{file} is of another model: its gates are of other weights or heads",
                "Choose the gates.json of this model, or the model that it was learnt for",
            )
        off.append(parse_heads(found.off, spec.layers))
        for method, values in found.learned.items():
            runs.setdefault(method, []).append([values.get(one, np.nan) for one in found.heads])
            notes.setdefault(method, []).append(f"{file.parent.name} (seed {found.seed})")
    learned = tuple(
        LearnedImportance(method, np.array(values, np.float32), ", ".join(notes[method]))
        for method, values in runs.items()
    )
    return learned, frozenset.intersection(*off) if off else frozenset()


def _read(file: Path) -> _Gates:
    try:
        found = msgspec.json.decode(file.read_bytes(), type=_Gates)
    except OSError as error:
        raise file_error(f"cannot read {file}", error) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HgvizError(
            f"{file} holds no gates: {str(error)}", f"Choose the {GATES} that hgviz train wrote"
        ) from error
    if found.gates_version > VERSION:
        raise HgvizError(
            f"{file} is of a newer version: {found.gates_version}, and this one reads {VERSION}",
            "Update hgviz",
        )
    return found
