"""The folder of a sweep, format "hgviz-sweep": one file for each cell that is done.

    study.toml                 the study file, as it was given
    plan.json                  {"format", "format_version", "changes", "cells"}: all cells; changes:
                               what is another since some results were made
    cells/AB/KEY.json          {"found", "made"}: a cell that is done; AB: the first two of its key
    cells/AB/KEY.h5            what it measured of heads, where it did: a study
    cells/AB/KEY.failed.json   a cell that failed: why, as one line
    models/KEY/                a model that it trained: a checkpoint; state.pt: how far it is

Every file is written beside its place and moved there, so each is whole or not there. A cell is
written by the one that computes it, its .json last, and nothing has to be merged before it can be
read: a cell is done when its .json is there. One run at a time computes a folder's cells.
"""

from __future__ import annotations

import json
import os
import re
import socket
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec

from hgviz.core import HgvizError
from hgviz.errors import file_error
from hgviz.files import write_atomic
from hgviz.store.hdf5 import writing
from hgviz.store.strangers import damaged, number, opened, read_object, read_plain, typed
from hgviz.study import (
    DEVICES,
    MOST_BYTES,
    MOST_CELLS,
    Ask,
    Cell,
    CompareOptions,
    CurveOptions,
    Source,
    Standing,
    StudyFile,
    Sweep,
    source_name,
)

FORMAT, VERSION = "hgviz-sweep", (1, 0)
FILE, PLAN, CELLS, MODELS = "study.toml", "plan.json", "cells", "models"
KEY = re.compile(r"[0-9a-f]{24}")
MOST_PLAN, MOST_RESULT = 1 << 29, 1 << 25  # bytes
MOST_CHANGES = 100  # kept in a plan
SNAPSHOT = "state.pt"  # of a training, see models.training

Key = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{24}\Z")]


class _Row(msgspec.Struct):
    """A cell of a plan."""

    key: Key
    work: str
    given: dict[str, Any]
    needs: tuple[Key, ...]
    paths: dict[str, str]
    place: dict[str, str]


class _Head(msgspec.Struct):
    """What a plan says of itself."""

    format: str = ""
    format_version: tuple[int, int] = (0, 0)


class _Plan(msgspec.Struct):
    cells: Annotated[tuple[_Row, ...], msgspec.Meta(max_length=MOST_CELLS)]
    changes: tuple[str, ...] = ()


class SweepFolder:
    """A folder of cells; it need not be there yet."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    # --- the plan -----------------------------------------------------------------------------

    def write_plan(self, content: str, cells: Sequence[Cell], changes: Sequence[str] = ()) -> None:
        """Put down what is to be done. Errors: HgvizError.

        content: the text of the study file; changes: what is another since some results were made.
        """
        told = {
            "format": FORMAT, "format_version": VERSION,
            "changes": list(changes)[-MOST_CHANGES:], "cells": [asdict(one) for one in cells],
        }  # fmt: skip
        plan = json.dumps(told, separators=(",", ":"))
        if len(plan) > MOST_PLAN:
            raise HgvizError(
                f"the plan of {len(cells):,} cells is larger than {MOST_PLAN >> 20:,} MB: "
                "nobody could read it",
                "Ask for fewer seeds, sizes or methods",
            )
        with writing(self.path):
            for prefix in {one.key[:2] for one in cells}:
                (self.path / CELLS / prefix).mkdir(parents=True, exist_ok=True)
            write_atomic(self.path / FILE, content)
            write_atomic(self.path / PLAN, plan)

    def cells(self) -> tuple[Cell, ...]:
        """The cells of the plan. Errors: HgvizError where there is none, or a damaged one."""
        return _cells(self._plan())

    def changes(self) -> tuple[str, ...]:
        """What is another than it was as some of the results were made."""
        return self._plan().changes[-MOST_CHANGES:]

    def _plan(self) -> _Plan:
        path = self.path / PLAN
        if not path.exists():
            other = "it is a file" if self.path.exists() else "there is no such folder"
            raise HgvizError(
                f"{self.path} is not the folder of a study: "
                + (f"it has no {PLAN}" if self.path.is_dir() else other),
                "Choose the folder that hgviz study run wrote into",
            )
        content = read_plain(path, MOST_PLAN)
        head = typed(path, content, _Head)
        if head.format != FORMAT:
            raise damaged(path, "it is no plan of a study")
        if head.format_version[0] != VERSION[0]:
            raise HgvizError(
                f"{path} is of version {head.format_version[0]}: "
                f"this hgviz reads version {VERSION[0]}",
                "Open it with the hgviz that wrote it",
            )
        plan = typed(path, content, _Plan)
        if len({one.key for one in plan.cells}) < len(plan.cells):
            raise damaged(path, "a cell of it stands twice")
        return plan

    def asked(self) -> StudyFile:
        """The study file it was begun with. Errors: HgvizError."""
        with suppress(FileNotFoundError):
            read_plain(self.path / FILE, MOST_BYTES)  # neither a link nor a pipe
        return read_study_file(self.path / FILE)

    def content(self) -> str:
        """The text of the study file. Errors: HgvizError where it cannot be read."""
        self.asked()
        return (self.path / FILE).read_text(encoding="utf-8")

    # --- where things lie -------------------------------------------------------------------------

    def result_at(self, key: str, ending: str = ".json") -> Path:
        """Where the result of a cell lies or will lie."""
        return self.path / CELLS / key[:2] / f"{key}{ending}"

    def model_at(self, key: str) -> Path:
        """Where the model that a cell trains lies or will lie."""
        return self.path / MODELS / key

    # --- a cell, by the one that computes it ------------------------------------------------------

    def is_done(self, key: str) -> bool:
        """Whether its result is there."""
        return self.result_at(key).exists()

    def is_failed(self, key: str) -> bool:
        """Whether it says why the cell failed."""
        return self.result_at(key, ".failed.json").exists()

    def found(self, key: str) -> Mapping[str, Any]:
        """What a cell that is done measured. Errors: HgvizError."""
        told = read_object(self.result_at(key), MOST_RESULT).get("found")
        if not isinstance(told, dict):
            raise damaged(self.result_at(key), "it holds no result")
        return told

    def keep(self, key: str, found: Mapping[str, Any], made: Mapping[str, Any]) -> None:
        """The result of a cell. Errors: HgvizError where it cannot be written."""
        content = json.dumps({"found": found, "made": made}, sort_keys=True)
        with writing(self.result_at(key), "what is done is kept"):
            write_atomic(self.result_at(key), content)
        (self.model_at(key) / SNAPSHOT).unlink(missing_ok=True)

    def fail(self, key: str, line: str, details: str = "") -> None:
        """Keep why a cell failed, as one line and in detail. Raises HgvizError for a full disk."""
        told = {"line": line, "details": details, "host": socket.gethostname()}
        with writing(self.result_at(key), "what is done is kept"):
            write_atomic(self.result_at(key, ".failed.json"), json.dumps(told))

    def forgive(self) -> int:
        """Forget which cells failed, so that they are computed again; return how many did."""
        failed = list((self.path / CELLS).glob("*/*.failed.json"))
        for file in failed:
            file.unlink(missing_ok=True)
        return len(failed)

    # --- how all stand ----------------------------------------------------------------------------

    def sweep(self, before: Sweep | None = None) -> Sweep:
        """All cells as they stand; before: how they stood, so that what was done is not read again.

        Errors: HgvizError for what is no folder of a study.
        """
        plan = self._plan()
        cells = _cells(plan)
        there = self._there()
        known = {} if before is None else {
            one.cell.key: one for one in before.standings if one.state == "done"
        }  # fmt: skip
        seen: dict[str, Standing] = {}
        standings = [
            known[cell.key]
            if cell.key in known and ".json" in there.get(cell.key, {})
            else self._standing(cell, there.get(cell.key, {}), seen)
            for cell in cells
        ]
        keys = {one.key for one in cells}
        changed = sum(1 for key, files in there.items() if ".json" in files and key not in keys)
        changes = plan.changes[-MOST_CHANGES:] if changed else ()
        return Sweep(self.asked(), tuple(standings), str(self.path), changed, changes)

    def _there(self) -> dict[str, dict[str, os.DirEntry[str]]]:
        """The files of every cell, by their endings: one look at each folder."""
        found: dict[str, dict[str, os.DirEntry[str]]] = {}
        for folder in _folders(self.path / CELLS):
            for entry in _entries(folder):
                key, dot, ending = entry.name.partition(".")
                if KEY.fullmatch(key):
                    found.setdefault(key, {})[dot + ending] = entry
        return found

    def _standing(
        self, cell: Cell, files: Mapping[str, Any], seen: dict[str, Standing]
    ) -> Standing:
        """How a cell stands; seen: those before it."""
        one = self._seen(cell, files)
        stopped = [seen[key] for key in cell.needs if key in seen]
        stopped = [each for each in stopped if each.state in ("failed", "blocked")]
        if one.state == "waiting" and stopped:
            first = stopped[0]
            line = first.line if first.state == "blocked" else f"{first.cell.label} failed"
            one = Standing(cell, "blocked", line=line)
        seen[cell.key] = one
        return one

    def _seen(self, cell: Cell, files: Mapping[str, Any]) -> Standing:
        with suppress(FileNotFoundError):
            if ".json" in files:
                told = read_object(self.result_at(cell.key), MOST_RESULT)
                found, made = told.get("found"), told.get("made", {})
                if not isinstance(found, dict) or not isinstance(made, dict):
                    raise damaged(self.result_at(cell.key), "it holds no result")
                return Standing(
                    cell, "done", found, seconds=number(made.get("seconds")),
                    host=str(made.get("host", "")), made=made,
                )  # fmt: skip
            if ".failed.json" in files:
                told = read_object(self.result_at(cell.key, ".failed.json"), MOST_RESULT)
                return Standing(
                    cell, "failed", line=str(told.get("line", "")),
                    details=str(told.get("details", "")), host=str(told.get("host", "")),
                )  # fmt: skip
        return Standing(cell)


def _cells(plan: _Plan) -> tuple[Cell, ...]:
    return tuple(
        Cell(one.work, one.given, one.needs, one.paths, one.place, one.key) for one in plan.cells
    )


def is_sweep(path: str | Path) -> bool:
    """Whether a path is the folder of a study."""
    try:
        with opened(Path(path) / PLAN) as file:
            return FORMAT.encode() in file.read(256)
    except (OSError, HgvizError):
        return False


def _folders(path: Path) -> list[Path]:
    if path.is_symlink():
        return []
    with suppress(FileNotFoundError, NotADirectoryError):
        entries = os.scandir(path)
        return [Path(one.path) for one in entries if one.is_dir(follow_symlinks=False)]
    return []


def _entries(path: Path) -> list[os.DirEntry[str]]:
    with suppress(FileNotFoundError):
        return list(os.scandir(path))
    return []


# --- study files ----------------------------------------------------------------------------------


SEE = "It has [[models]] and [[data]]; see docs/studies.md"
_TABLES = {
    "": StudyFile.__struct_fields__, "data": Source.__struct_fields__,
    "curve": CurveOptions.__struct_fields__, "compare": CompareOptions.__struct_fields__,
}  # fmt: skip
_CHOICES = {"asks": get_args(Ask)}
_KINDS = {
    "array": "a list in brackets", "object": "a table", "str": "words in quotes",
    "int": "a whole number", "float": "a number", "bool": "true or false",
}  # fmt: skip


def read_study_file(path: str | Path) -> StudyFile:
    """Read and check a study file. Errors: HgvizError, naming what is wrong in it."""
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise HgvizError(f"{path} is no study file: it is longer than 1 MB", "Choose another")
        asked = msgspec.convert(tomllib.loads(content.decode()), StudyFile)
    except OSError as error:
        raise file_error(f"cannot read {path}", error) from error
    except msgspec.ValidationError as error:
        why, do = _why(str(error))
        raise HgvizError(f"{path} is not a study file: {why}", do) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        why = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "it is not text"
        raise HgvizError(f"{path} is not a study file: {why}", SEE) from error
    except RecursionError:
        raise HgvizError(f"{path} is not a study file: it is nested too deep") from None
    _check(asked)
    return asked


def _why(words: str) -> tuple[str, str]:
    """What a validation says, in words of the file: why it is none, and what to do."""
    why, _, place = words.partition(" - at `$")
    key = re.sub(r"\[.*?\]", "", place).strip(".`")
    if "unknown field" in why and key in _TABLES:
        table, name = f"[{key}]" if key else "a study file", why.split("`")[1]
        return f"{table} has no key {name}", f"Its keys are {', '.join(_TABLES[key])}"
    if why.startswith("Invalid enum value") and key in _CHOICES:
        value = why.removeprefix("Invalid enum value ")
        choices = ", ".join(one for one in _CHOICES[key] if one)
        return f"{key} cannot be {value}", f"Choose among {choices}"
    if why.startswith("Object missing required field"):
        table = f"[[{key}]]" if key else "it"
        return f"{table} lacks {why.split('`')[1]}", SEE
    for name, plain in _KINDS.items():
        why = why.replace(f"`{name}`", plain)
    return f"{key}: {why[0].lower()}{why[1:]}" if key else why, SEE


def _check(asked: StudyFile) -> None:
    names = [str(one.get("name", "")) for one in asked.models]
    budgets = asked.curve.budgets
    activations = [one if isinstance(one, str) else one.get("name") for one in asked.activations]
    wrong = [
        (not asked.models, "it has no [[models]]"),
        (not asked.data, "it has no [[data]]"),
        (not asked.asks, "asks is empty; it holds score, curve or compare"),
        (not asked.activations, 'activations is empty; leave it out for the models\' own'),
        (any(activations.count(one) > 1 for one in activations), "an activation stands twice"),
        (not asked.seeds, "seeds is empty; leave it out for one run of each"),
        (len(set(asked.seeds)) < len(asked.seeds), "a seed stands twice"),
        (min(asked.seeds, default=0) < 0, "seeds are numbers from 0 on"),
        (not all(names), "every one of [[models]] needs a name"),
        (len(set(names)) < len(names), "two of [[models]] have one name"),
        (len({source_name(one) for one in asked.data}) < len(asked.data),
         "two of [[data]] have one name"),
        ("curve" in asked.asks and not asked.methods, "curves need methods, such as michel"),
        (len(set(asked.methods)) < len(asked.methods), "a method stands twice"),
        ("compare" in asked.asks and len(asked.activations) < 2,
         "compare needs at least two activations"),
        (not all(0 < one <= 1 for one in budgets), "budgets are shares above 0, at most 1"),
        (asked.threads < 1, "threads begin at 1"),
        (asked.device not in DEVICES, f"device is one of {', '.join(DEVICES)}"),
        (asked.curve.points < 2 or asked.curve.random < 0 or asked.curve.limit < 0,
         "[curve] has too small a number"),
    ]  # fmt: skip
    for failed, why in wrong:
        if failed:
            raise HgvizError(f"this study file cannot be used: {why}", "Change it and start again")


__all__ = ["read_study_file", "SweepFolder", "is_sweep"]
