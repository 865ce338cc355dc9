"""The folder of a sweep, format "hgviz-sweep": one file for each cell that is done.

    study.toml                 the study file, as it was given
    plan.json                  {"format", "format_version", "changes", "cells"}: all cells; changes:
                               what is another since some results were made
    cells/AB/KEY.json          {"found", "made"}: a cell that is done; AB: the first two of its key
    cells/AB/KEY.h5            what it measured of heads, where it did: a study
    cells/AB/KEY.running.json  a try of it that has begun: by whom, how far it is
    cells/AB/KEY.failed.json   a cell that failed TRIES times: why, as one line
    models/KEY/                a model that it trained: a checkpoint; state.pt: how far it is

Every file is written beside its place and moved there, so each is whole or not there. A cell is
written by the one that computes it, its .json last, and nothing has to be merged before it can be
read. Who begins a cell makes its .running.json, which only one can: many runs share a folder. (If
two take over from a dead one within the same instant, both compute it, to the same numbers.)
"""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import msgspec

from hgviz.core import HgvizError
from hgviz.store.files import whole_text, writing
from hgviz.store.strangers import damaged, number, opened, read_object, read_plain, typed
from hgviz.store.tries import is_alive, is_mine, is_orphan, word
from hgviz.sweep import MOST_BYTES, MOST_CELLS, Cell, Standing, StudyFile, Sweep, read_study_file

FORMAT, VERSION = "hgviz-sweep", (1, 0)
FILE, PLAN, CELLS, MODELS = "study.toml", "plan.json", "cells", "models"
KEY = re.compile(r"[0-9a-f]{24}")
TRIES = 3
BEAT, SELDOM = 2.0, 15.0  # s between two words of a try, at first and at most
MOST_PLAN, MOST_RESULT = 1 << 29, 1 << 25  # bytes
MOST_CHANGES = 100  # kept in a plan
GONE = "its process died each time"
SNAPSHOT = "state.pt"  # of a training, see models.training.loop

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
    """A folder of cells; it need not be there yet. run: the process that tries here are for."""

    def __init__(self, path: str | Path, run: int = 0) -> None:
        self.path, self.run = Path(path), run

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
                f"the plan of {len(cells):,} cells is larger than {MOST_PLAN >> 20:,} MB",
                "nobody could read it", "Ask for fewer seeds, sizes or methods",
            )  # fmt: skip
        with writing(self.path):
            for prefix in {one.key[:2] for one in cells}:
                (self.path / CELLS / prefix).mkdir(parents=True, exist_ok=True)
            whole_text(self.path / FILE, content)
            whole_text(self.path / PLAN, plan)

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
                f"{self.path} is not the folder of a study",
                f"it has no {PLAN}" if self.path.is_dir() else other,
                "Choose the folder that hgviz study run wrote into",
            )
        content = read_plain(path, MOST_PLAN)
        head = typed(path, content, _Head)
        if head.format != FORMAT:
            raise damaged(path, "it is no plan of a study")
        if head.format_version[0] != VERSION[0]:
            raise HgvizError(
                f"{path} is of version {head.format_version[0]}",
                f"this hgviz reads version {VERSION[0]}", "Open it with the hgviz that wrote it",
            )  # fmt: skip
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

    def is_given_up(self, key: str) -> bool:
        """Whether it failed too often."""
        return self.result_at(key, ".failed.json").exists()

    def found(self, key: str) -> Mapping[str, Any]:
        """What a cell that is done measured. Errors: HgvizError."""
        told = read_object(self.result_at(key), MOST_RESULT).get("found")
        if not isinstance(told, dict):
            raise damaged(self.result_at(key), "it holds no result")
        return told

    def begin(self, key: str) -> int:
        """Take a cell for this process, and say that a try begins: which one it is, from 1; 0 where
        another process is at it.

        A try that left a newer snapshot of a training than it began with counts for nothing: a job
        that is stopped again and again, and goes on each time, is not given up. Nor does the try of
        a worker that was killed with its whole run.
        """
        path = self.result_at(key, ".running.json")
        before = self._running(key)
        if before and not is_mine(before) and is_alive(before):
            return 0
        mark = self._mark(key)
        lasting = mark != before.get("mark", "")
        tries = int(number(before.get("tries"))) + (not is_orphan(before))
        tries = 1 if lasting else max(tries, 1)
        with writing(path, "what is done is kept"):
            if before:
                path.unlink(missing_ok=True)
            try:
                with path.open("x", encoding="utf-8") as file:
                    file.write(word(tries, mark, run=self.run))
            except FileExistsError:  # begun by another in the same moment
                return 0
            except OSError:
                path.unlink(missing_ok=True)
                raise
        return tries

    def beat(self, key: str, tries: int, share: float, note: str, line: str = "") -> None:
        """Say how far a try is; line: why it ended without a result."""
        path = self.result_at(key, ".running.json")
        mark = str(self._running(key).get("mark", ""))
        with writing(path, "what is done is kept"):
            whole_text(path, word(tries, mark, share, note, line, self.run), lasting=False)

    def release(self, key: str, anyone: bool = False) -> None:
        """A try that was stopped by hand does not count; of this process, unless anyone."""
        before = self._running(key)
        if not before or before.get("line") or not (anyone or is_mine(before)):
            return
        tries = int(number(before.get("tries"))) - 1
        if tries > 0:
            self.beat(key, tries, 0.0, "", "it was stopped")
        else:
            self._end(key)

    def keep(self, key: str, found: Mapping[str, Any], made: Mapping[str, Any]) -> None:
        """The result of a cell. Errors: HgvizError where it cannot be written."""
        content = json.dumps({"found": found, "made": made}, sort_keys=True)
        with writing(self.result_at(key), "what is done is kept"):
            whole_text(self.result_at(key), content)
        self._end(key)
        (self.model_at(key) / SNAPSHOT).unlink(missing_ok=True)

    def fail(self, key: str, tries: int, line: str, details: str = "") -> None:
        """A cell that is given up."""
        told = {"tries": tries, "line": line, "details": details, "host": socket.gethostname()}
        with writing(self.result_at(key), "what is done is kept"):
            whole_text(self.result_at(key, ".failed.json"), json.dumps(told))
        self._end(key)

    def _end(self, key: str) -> None:
        self.result_at(key, ".running.json").unlink(missing_ok=True)

    def forgive(self) -> int:
        """Cells that were given up may be tried again; how many there were."""
        given_up = list((self.path / CELLS).glob("*/*.failed.json"))
        for one in given_up:
            one.unlink(missing_ok=True)
        return len(given_up)

    def _running(self, key: str) -> Mapping[str, Any]:
        """What the last try said of itself; of a damaged file, when that was."""
        path = self.result_at(key, ".running.json")
        try:
            return read_object(path, MOST_RESULT)
        except FileNotFoundError:
            return {}
        except HgvizError:
            with suppress(OSError):
                return {"time": path.lstat().st_mtime}
            return {}

    def _mark(self, key: str) -> str:
        """Which snapshot of a training is there; "" for none."""
        try:
            seen = (self.model_at(key) / SNAPSHOT).stat()
        except OSError:
            return ""
        return f"{seen.st_mtime_ns} {seen.st_size}"

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
                    cell, "done", found, share=1.0, seconds=number(made.get("seconds")),
                    host=str(made.get("host", "")), made=made,
                )  # fmt: skip
            if ".failed.json" in files:
                told = read_object(self.result_at(cell.key, ".failed.json"), MOST_RESULT)
                return Standing(
                    cell, "failed", line=str(told.get("line", "")),
                    details=str(told.get("details", "")), host=str(told.get("host", "")),
                    tries=int(number(told.get("tries"))),
                )  # fmt: skip
            if ".running.json" in files:
                told = dict(self._running(cell.key))
                alive = is_alive(told)
                return Standing(
                    cell, "running" if alive else "waiting", line=str(told.get("line", "")),
                    share=min(1.0, number(told.get("share"))) if alive else 0.0,
                    note=str(told.get("note", "")), host=str(told.get("host", "")),
                    tries=int(number(told.get("tries"))),
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


def _folders(path: Path) -> Iterator[Path]:
    if path.is_symlink():
        return
    with suppress(FileNotFoundError, NotADirectoryError):
        entries = os.scandir(path)
        yield from (Path(one.path) for one in entries if one.is_dir(follow_symlinks=False))


def _entries(path: Path) -> Iterator[os.DirEntry[str]]:
    with suppress(FileNotFoundError):
        yield from os.scandir(path)


__all__ = ["SweepFolder", "is_sweep"]
