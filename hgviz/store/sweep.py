"""The folder of a sweep, format "hgviz-sweep": one file for each cell that is done.

    study.toml                 the study file, as it was given; study-2.toml ...: of merged ones
    plan.json                  {"format", "format_version", "cells": [...]}: all cells
    cells/AB/KEY.json          {"found", "made"}: a cell that is done; AB: the first two of its key
    cells/AB/KEY.h5            what it measured of heads, where it did: a study
    cells/AB/KEY.running.json  a try of it that has begun: by whom, how far it is
    cells/AB/KEY.failed.json   a cell that failed TRIES times: why, as one line
    models/KEY/                a model that it trained: a checkpoint

Every file is written beside its place and moved there, so each is whole or not there. A cell is
written by the one that computes it, its .json last; no two machines write one file, and nothing
has to be merged before it can be read.
"""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hgviz.core import HgvizError
from hgviz.store.files import whole_text, writing
from hgviz.sweep import MOST_CELLS, Cell, Standing, State, StudyFile, Sweep, read_study_file

FORMAT, VERSION = "hgviz-sweep", (1, 0)
FILE, PLAN, CELLS, MODELS = "study.toml", "plan.json", "cells", "models"
FILE_OF_MORE = "study-{}.toml"
KEY = re.compile(r"[0-9a-f]{24}")
TRIES = 3
ALIVE = 60.0  # s without a word after which a try counts as dead
BEAT = 2.0  # s between two words of a try
MOST_PLAN, MOST_RESULT = 1 << 31, 1 << 28  # bytes
GONE = "its process died each time"


class SweepFolder:
    """A folder of cells; it need not be there yet."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    # --- the plan -----------------------------------------------------------------------------

    def write_plan(self, content: str, cells: Sequence[Cell], more: Sequence[str] = ()) -> None:
        """Put down what is to be done; content: the text of the study file; more: of others that
        were merged with it. Errors: HgvizError."""
        told = {
            "format": FORMAT, "format_version": VERSION,
            "cells": [asdict(one) for one in cells],
        }  # fmt: skip
        with writing(self.path):
            for prefix in {one.key[:2] for one in cells}:
                (self.path / CELLS / prefix).mkdir(parents=True, exist_ok=True)
            whole_text(self.path / FILE, content)
            for number, text in enumerate(more, 2):
                whole_text(self.path / FILE_OF_MORE.format(number), text)
            whole_text(self.path / PLAN, json.dumps(told, separators=(",", ":")))

    def cells(self) -> tuple[Cell, ...]:
        """The cells of the plan. Errors: HgvizError where there is none, or a damaged one."""
        path = self.path / PLAN
        if not path.is_file():
            raise HgvizError(
                f"{self.path} is not the folder of a study", f"it has no {PLAN}",
                "Choose the folder that hgviz study run wrote into",
            )  # fmt: skip
        told = _read(path, MOST_PLAN)
        version = told.get("format_version")
        if told.get("format") != FORMAT or not isinstance(version, list):
            raise _damaged(path, "it is no plan of a study")
        if version[:1] != [VERSION[0]]:
            raise HgvizError(
                f"{path} is of version {version[0]!r}", f"this hgviz reads version {VERSION[0]}",
                "Open it with the hgviz that wrote it",
            )  # fmt: skip
        rows = told.get("cells")
        if not isinstance(rows, list) or len(rows) > MOST_CELLS:
            raise _damaged(path, "it has no list of cells")
        return tuple(_cell(row, path) for row in rows)

    def asked(self) -> StudyFile:
        """The study file it was begun with."""
        return read_study_file(self.path / FILE)

    def files(self) -> tuple[str, ...]:
        """The text of the study file, and of others that were merged with it. Errors: HgvizError
        where one cannot be read."""
        more = sorted(
            self.path.glob(FILE_OF_MORE.format("*")), key=lambda one: (len(one.name), one)
        )
        found = []
        for path in (self.path / FILE, *more):
            read_study_file(path)
            found.append(path.read_text(encoding="utf-8"))
        return tuple(found)

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

    def is_given_up(self, key: str) -> bool:
        """Whether it failed too often."""
        return self.result_at(key, ".failed.json").exists()

    def files_of(self, key: str, models: bool = False) -> tuple[Path, ...]:
        """What is kept of a cell that was done or given up; models: and the model it trained. The
        result is the last."""
        names = (".h5", ".failed.json", ".json")
        found = [one for one in (self.result_at(key, name) for name in names) if one.exists()]
        trained = sorted(self.model_at(key).rglob("*")) if models and self.is_done(key) else []
        return (*(one for one in trained if one.is_symlink() or not one.is_dir()), *found)

    def found(self, key: str) -> Mapping[str, Any]:
        """What a cell that is done measured. Errors: HgvizError."""
        told = _read(self.result_at(key), MOST_RESULT).get("found")
        if not isinstance(told, dict):
            raise _damaged(self.result_at(key), "it holds no result")
        return told

    def begin(self, key: str) -> int:
        """Say that a try begins; which one it is, from 1."""
        tries = 1 + int(self._running(key).get("tries", 0))
        self.beat(key, tries, 0.0, "")
        return tries

    def beat(self, key: str, tries: int, share: float, note: str, line: str = "") -> None:
        """Say how far a try is; line: why it ended without a result."""
        told = {
            "tries": tries, "share": share, "note": note, "line": line, "time": time.time(),
            "host": socket.gethostname(), "pid": os.getpid(),
        }  # fmt: skip
        with writing(self.result_at(key), "what is done is kept"):
            whole_text(self.result_at(key, ".running.json"), json.dumps(told))

    def release(self, key: str) -> None:
        """A try that was stopped by hand does not count."""
        self.result_at(key, ".running.json").unlink(missing_ok=True)

    def keep(self, key: str, found: Mapping[str, Any], made: Mapping[str, Any]) -> None:
        """The result of a cell. Errors: HgvizError where it cannot be written."""
        content = json.dumps({"found": found, "made": made}, sort_keys=True)
        with writing(self.result_at(key), "what is done is kept"):
            whole_text(self.result_at(key), content)
        self.release(key)

    def fail(self, key: str, tries: int, line: str, details: str = "") -> None:
        """A cell that is given up."""
        told = {"tries": tries, "line": line, "details": details, "host": socket.gethostname()}
        with writing(self.result_at(key), "what is done is kept"):
            whole_text(self.result_at(key, ".failed.json"), json.dumps(told))
        self.release(key)

    def forgive(self) -> int:
        """Cells that were given up may be tried again; how many there were."""
        given_up = list((self.path / CELLS).glob("*/*.failed.json"))
        for one in given_up:
            one.unlink(missing_ok=True)
        return len(given_up)

    def _running(self, key: str) -> Mapping[str, Any]:
        path = self.result_at(key, ".running.json")
        try:
            return _read(path, MOST_RESULT) if path.exists() else {}
        except HgvizError:
            return {}

    # --- how all stand ----------------------------------------------------------------------------

    def sweep(self, before: Sweep | None = None) -> Sweep:
        """All cells as they stand; before: how they stood, so that what was done is not read again.

        Errors: HgvizError for what is no folder of a study.
        """
        cells = self.cells()
        there = self._there()
        known = {} if before is None else {
            one.cell.key: one for one in before.standings if one.state == "done"
        }  # fmt: skip
        states: dict[str, State] = {}
        standings = [
            known[cell.key]
            if cell.key in known and ".json" in there.get(cell.key, {})
            else self._standing(cell, there.get(cell.key, {}), states)
            for cell in cells
        ]
        keys = {one.key for one in cells}
        changed = sum(1 for key, files in there.items() if ".json" in files and key not in keys)
        return Sweep(self.asked(), tuple(standings), str(self.path), changed)

    def _there(self) -> dict[str, dict[str, os.DirEntry[str]]]:
        """The files of every cell, by their endings: one look at each folder."""
        found: dict[str, dict[str, os.DirEntry[str]]] = {}
        for folder in _folders(self.path / CELLS):
            for entry in _entries(folder):
                key, dot, ending = entry.name.partition(".")
                if KEY.fullmatch(key):
                    found.setdefault(key, {})[dot + ending] = entry
        return found

    def _standing(self, cell: Cell, files: Mapping[str, Any], states: dict[str, State]) -> Standing:
        """How a cell stands; states: of those before it."""
        one = self._seen(cell, files)
        stopped = [key for key in cell.needs if states.get(key) in ("failed", "blocked")]
        if one.state == "waiting" and stopped:
            one = Standing(cell, "blocked", line="what it needs has failed")
        states[cell.key] = one.state
        return one

    def _seen(self, cell: Cell, files: Mapping[str, Any]) -> Standing:
        with suppress(FileNotFoundError):
            if ".json" in files:
                told = _read(self.result_at(cell.key), MOST_RESULT)
                found, made = told.get("found"), told.get("made", {})
                if not isinstance(found, dict) or not isinstance(made, dict):
                    raise _damaged(self.result_at(cell.key), "it holds no result")
                return Standing(
                    cell, "done", found, share=1.0, seconds=_number(made.get("seconds")),
                    host=str(made.get("host", "")), made=made,
                )  # fmt: skip
            if ".failed.json" in files:
                told = _read(self.result_at(cell.key, ".failed.json"), MOST_RESULT)
                return Standing(
                    cell, "failed", line=str(told.get("line", "")),
                    details=str(told.get("details", "")), host=str(told.get("host", "")),
                    tries=int(told.get("tries", 0)),
                )  # fmt: skip
            if ".running.json" in files:
                told = self._running(cell.key)
                alive = time.time() - float(told.get("time", 0)) < ALIVE and not told.get("line")
                return Standing(
                    cell, "running" if alive else "waiting", line=str(told.get("line", "")),
                    share=float(told.get("share", 0)) if alive else 0.0,
                    note=str(told.get("note", "")), host=str(told.get("host", "")),
                    tries=int(told.get("tries", 0)),
                )  # fmt: skip
        return Standing(cell)


def is_sweep(path: str | Path) -> bool:
    """Whether a path is the folder of a study."""
    plan = Path(path) / PLAN
    if not plan.is_file():
        return False
    with plan.open("rb") as file:
        return FORMAT.encode() in file.read(256)


def _cell(row: Any, path: Path) -> Cell:
    if not isinstance(row, dict) or not KEY.fullmatch(str(row.get("key", ""))):
        raise _damaged(path, "a cell of it has no key")
    try:
        cell = Cell(
            str(row["work"]), dict(row["given"]), tuple(map(str, row["needs"])),
            dict(row["paths"]), {str(k): str(v) for k, v in row["place"].items()}, row["key"],
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(path, "a cell of it lacks something") from error
    if not all(map(KEY.fullmatch, cell.needs)):
        raise _damaged(path, "a cell of it needs what is no cell")
    return cell


def _read(path: Path, most: int) -> Any:
    """The object of a JSON file of ours, or a stranger's. Errors: HgvizError, FileNotFoundError."""
    try:
        if path.stat().st_size > most:
            raise _damaged(path, f"it is larger than {most >> 20:,} MB")
        told = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise
    except OSError as error:
        raise HgvizError(f"cannot read {path}", (error.strerror or str(error)).lower()) from error
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "it is no JSON") from error
    if not isinstance(told, dict):
        raise _damaged(path, "it is no object")
    return told


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _damaged(path: Path, why: str) -> HgvizError:
    return HgvizError(f"{path} is damaged", why, "Delete it and run the study again")


def _folders(path: Path) -> Iterator[Path]:
    with suppress(FileNotFoundError):
        yield from (Path(one.path) for one in os.scandir(path) if one.is_dir())


def _entries(path: Path) -> Iterator[os.DirEntry[str]]:
    with suppress(FileNotFoundError):
        yield from os.scandir(path)


__all__ = ["SweepFolder", "is_sweep"]
