"""Studies on disk: the HDF5 file of one, and the folder of a study of many runs.

The rows of schema.STUDY_FIELDS write, read and check the file. The folder has the format
"hgviz-sweep" and the files that FOLDER lists.

Every file is written beside its place and moved there, so each is whole or not there. A cell is
written by the one that computes it, its .json last, and nothing has to be merged before it can be
read: a cell is done when its .json is there. One run at a time computes a folder's cells.
"""

from __future__ import annotations

import errno
import json
import os
import re
import socket
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import h5py
import msgspec
import numpy as np
from numpy.typing import NDArray

from hgviz import errors
from hgviz.core import HeadId, HgvizError, MetricEstimate, ModelSpec
from hgviz.files import TEMPORARY, require_there, write_atomic
from hgviz.store import hdf5, schema
from hgviz.store.hdf5 import has, require, subgroup, writing
from hgviz.study import (
    ARRAYS,
    DEVICES,
    MOST_BYTES,
    MOST_CELLS,
    NO_PREDICTION,
    Ask,
    Cell,
    CompareOptions,
    CurveOptions,
    LearnedImportance,
    Mask,
    PruningCurve,
    Source,
    Standing,
    Study,
    StudyFile,
    Sweep,
    source_name,
)

PART_LIMIT, ARRAY_LIMIT = 10_000, 100  # curves, and what was learned; arrays of scores
NOTE_LIMIT = 2000  # characters

Document = TypeVar("Document")


# --- writing a study ------------------------------------------------------------------------------


def write_study(path: str | Path, study: Study, force: bool = False) -> Path:
    """Write a study to one file, whole or not at all; force: in place of another.

    A measurement that is infinite is kept as not measured. Raises HgvizError.
    """
    path = Path(path)
    hdf5.require_free(path, force, "study")
    arrays = {name: _finite(values) for name, values in study.arrays.items()}
    given = np.where(np.isfinite(study.loss), study.given, NO_PREDICTION)
    about = {name: getattr(study, name) for name in schema.About.__struct_fields__}
    masks: list[list[Any]] = []
    for mask in study.masks:
        score: list[Any] | None = None
        if (estimate := mask.score) is not None:
            ends = [end if np.isfinite(end) else None for end in (estimate.low, estimate.high)]
            score = [estimate.metric, estimate.value, *ends, estimate.seen, estimate.total]
        masks.append([mask.name, mask.off, score])
    changes = [mask.change for mask in study.masks]
    values = {field.name: getattr(study, field.name) for field in fields(study)} | {
        "about": schema.About(**about),
        "arrays": {name: values for name, values in arrays.items() if name in ARRAYS},
        "loss": _finite(study.loss),
        "given": given,
        "masks": masks,
        "mask_changes": changes if any(changes) else None,
    }
    with writing(path), hdf5.whole_hdf5(path) as file:
        version = {"format": schema.STUDY, "format_version": schema.STUDY_VERSION}
        hdf5.store_attributes(file.id, version)
        schema.write_fields(file, schema.STUDY_FIELDS["/"], values)
        for name in sorted(arrays.keys() - {*ARRAYS}):
            schema.write_field(file.require_group("arrays"), _own_array(name), arrays[name])
        for kind in ("learned", "curves"):
            for number, part in enumerate(values[kind]):
                group = file.create_group(f"{kind}/{number:03}")
                schema.write_fields(group, schema.STUDY_FIELDS[f"/{kind}/000"], part)
    return path


def require_place(path: str | Path) -> None:
    """Raise HgvizError where no file can be written, before it is waited for."""
    path = Path(path)
    trace = path.with_name(path.name + TEMPORARY)
    with writing(path):
        trace.touch()
        trace.unlink()


def _own_array(name: str) -> schema.Field:
    """The row of an array that a score has of its own."""
    (row,) = schema.STUDY_FIELDS["/arrays"]
    return replace(row, path=name, required=True)


def _finite(values: NDArray[Any]) -> NDArray[Any]:
    """The values, NaN for an infinite one: it counts as not measured."""
    if values.dtype.kind == "i":
        return values
    return np.where(np.isfinite(values), values, np.float32(np.nan))


# --- reading a study ------------------------------------------------------------------------------


def is_study(path: str | Path) -> bool:
    """Whether a path is a study, judged by what it says of itself."""
    return hdf5.has_format(str(path), schema.STUDY) is True


def open_study(path: str | Path) -> Study:
    """A study, all of it in memory. Raises HgvizError for everything that is none, or damaged."""
    path = str(path)
    require_there(path, "file")
    is_folder = Path(path).is_dir()
    errors.require(not is_folder, f"{path} is a folder: a study is one file", "Choose the file")
    with hdf5.reading(path, "Measure"), hdf5.open_file(path) as file:
        hdf5.check_format(file, schema.STUDY, schema.STUDY_VERSION, "study")
        return _read_study(file, path)


def _read_study(file: h5py.File, path: str) -> Study:
    sizes: dict[str, int] = {}
    values = schema.read_fields(file, schema.STUDY_FIELDS["/"], sizes)
    spec, about = schema.check_spec(values["spec"]), msgspec.structs.asdict(values.pop("about"))
    values["heads"] = heads = _read_heads(values["heads"], spec.heads)
    require(list(heads) == sorted(heads), "its heads are not in order of computation")
    require(values["off"] <= {*heads}, "it has heads off that do not exist")
    _check_measurements(values, about, spec)
    arrays = {name: array for name, array in values["arrays"].items() if array is not None}
    if has(file, "arrays"):  # of scores that measured their own, known here or not
        group = subgroup(file, "arrays")
        require(len(group) <= ARRAY_LIMIT, f"it has too many arrays: {len(group):,}")
        for name in sorted(group):
            good = name.isascii() and name.isidentifier() and len(name) <= 64
            require(good and name not in ARRAYS, "an array of it has an invalid name")
            arrays[name] = schema.read_field(group, _own_array(name), sizes)
    masks = _read_masks(values["masks"], values.pop("mask_changes"), heads)
    values |= about | {"arrays": arrays, "masks": masks}
    learned = []
    for part in _parts(file, "learned"):
        known = {"heads": sizes["heads"]}
        found = schema.read_fields(part, schema.STUDY_FIELDS["/learned/000"], known)
        note = "".join(char if char.isprintable() else " " for char in found["note"][:NOTE_LIMIT])
        learned.append(LearnedImportance(**found | {"note": note}))
    curves = [_read_curve(part, heads, sizes["examples"]) for part in _parts(file, "curves")]
    return Study(**values, learned=tuple(learned), curves=tuple(curves), path=path)


def _check_measurements(values: dict[str, Any], about: dict[str, Any], spec: ModelSpec) -> None:
    """Require that places, answers and losses belong to each other, the model and its labels."""
    places, lengths = values["places"], values["lengths"]
    wanted, given, loss = values["wanted"], values["given"], values["loss"]
    good = len(places) == len(lengths) + 1 > 1 and places[0] == 0 and places[-1] == len(wanted)
    good = good and bool((places[1:] >= places[:-1]).all())
    require(good, "its places do not match its examples")
    labels, longest = len(about["labels"]) or None, max(lengths.max(), 1)
    # those of states are numbers of examples, of which these may be some
    limits = {"classes": labels, "tags": labels, "ends": longest, "states": None}
    limit = limits.get(about["asked"], spec.vocabulary)
    good = given.min(initial=0) >= NO_PREDICTION
    good = good and (limit is None or max(wanted.max(initial=0), given.max(initial=0)) < limit)
    require(good, "it has answers that its model cannot give")
    agree = np.isnan(loss) == (given == NO_PREDICTION)
    require(agree.all(), "its losses and answers disagree")
    for name in ("saved_parameters", "saved_flops"):
        good = values[name] is None or (values[name][:, :2] >= 0).all()
        require(good, f"its {name} are below 0")


def _parts(file: h5py.File, name: str) -> list[h5py.Group]:
    if not has(file, name):
        return []
    group = subgroup(file, name)
    require(len(group) <= PART_LIMIT, f"it has too many {name}: {len(group):,}")
    return [subgroup(group, f"{number:03}") for number in range(len(group))]


def _read_curve(group: h5py.Group, heads: tuple[HeadId, ...], examples: int) -> PruningCurve:
    values = schema.read_fields(group, schema.STUDY_FIELDS["/curves/000"])
    values["order"] = order = _read_heads(values["order"], heads)
    removed, rows = values["removed"], values["rows"]
    good = len(removed) > 0 and removed[-1] <= len(order)
    require(good, "the points of a curve do not match its order")
    require(rows.max(initial=-1) < examples, "a curve has examples that do not exist")
    return PruningCurve(**values)


def _read_masks(
    rows: list[Any] | None, changes: list[Any] | None, heads: tuple[HeadId, ...]
) -> tuple[Mask, ...]:
    rows = rows or []
    changes = [None] * len(rows) if changes is None or not rows else changes
    require(len(changes) == len(rows), "the changes of its masks do not match the masks")
    masks = []
    for (name, off, row), change in zip(rows, changes, strict=True):
        require(off <= {*heads}, "a mask of it has heads of another model")
        if row is None:
            masks.append(Mask(name, off))
            continue
        metric, value, low, high, seen, total = row
        require(seen <= total, "the score of a mask has more examples than there are")
        is_share = metric != "loss"  # a loss is in nats
        require(
            not (is_share and change) or all(abs(end) <= 1 for end in change),
            "the change of a mask is not a difference of two shares",
        )
        low, high = -np.inf if low is None else low, np.inf if high is None else high
        score = MetricEstimate(metric, value, low, high, seen, total, off)
        masks.append(Mask(name, off, score, change))
    return tuple(masks)


def _read_heads(pairs: NDArray[Any], known: Iterable[HeadId]) -> tuple[HeadId, ...]:
    """Heads as stored, each once and of the model. Raises Refused."""
    heads = tuple(HeadId(int(layer), int(head)) for layer, head in pairs)
    require(len({*heads}) == len(heads), "it names a head twice")
    require({*heads} <= {*known}, "it names heads that its model does not have")
    return heads


# --- plain files, which may be a stranger's -------------------------------------------------------


def _read_start(path: Path, size: int) -> bytes:
    """The first bytes of a file that is neither a link, which could lead anywhere, nor a pipe,
    which would be waited for. Raises HgvizError, FileNotFoundError."""
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
        flags |= getattr(os, name, 0)
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _damaged(path, "it is not a regular file")
            return file.read(size)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _damaged(path, "it is a link") from None
        raise errors.file_error(f"cannot read {path}", error) from error


def _read_plain(path: Path, limit: int) -> bytes:
    """All of such a file of at most so many bytes. Raises HgvizError, FileNotFoundError."""
    content = _read_start(path, limit + 1)
    if len(content) > limit:
        raise _damaged(path, f"it is larger than {limit >> 20:,} MB")
    return content


def _decode(path: Path, content: bytes, kind: type[Document], nan: bool = False) -> Document:
    """JSON of a file as a value of a type; nan: numbers may be NaN or infinite. Raises HgvizError
    that says where it does not fit."""
    try:
        if nan:
            return msgspec.convert(json.loads(content), kind)
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        why = str(error).splitlines()
        raise _damaged(path, why[0] if why else "it is nested too deep") from error


def _damaged(path: Path, why: str) -> HgvizError:
    return HgvizError(f"{path} is damaged: {why}", "Delete it and run the study again")


# --- the folder of a study of many runs -----------------------------------------------------------

SWEEP, SWEEP_VERSION = "hgviz-sweep", (1, 0)
FILE, PLAN, CELLS, MODELS = "study.toml", "plan.json", "cells", "models"
CHANGES_LIMIT = 100  # kept in a plan
SNAPSHOT = "state.pt"  # of a training, see models.training


class _Head(msgspec.Struct):
    """What a plan says of itself."""

    format: str = ""
    format_version: tuple[int, int] = (0, 0)


class SweepPlan(_Head, kw_only=True):
    """PLAN: what there is to do, and what is another than as some of the results were made."""

    cells: Annotated[tuple[Cell, ...], msgspec.Meta(max_length=MOST_CELLS)]
    changes: tuple[str, ...] = ()


class _Result(msgspec.Struct):
    """KEY.json: what a cell measured, and where."""

    found: dict[str, Any]
    made: dict[str, Any] = {}


class _Failure(msgspec.Struct):
    """KEY.failed.json: why a cell failed."""

    line: str = ""
    details: str = ""
    host: str = ""


@dataclass(frozen=True, slots=True)
class FolderFile:
    """A file of the folder: what it is, the type of its JSON or TOML, and its bytes at most."""

    meaning: str
    kind: Any = None
    limit: int = 0


FOLDER = {  # AB: the first two digits of KEY, which is the key of a cell
    FILE: FolderFile("a copy of the study file", StudyFile, MOST_BYTES),
    PLAN: FolderFile("all runs, and what has changed since earlier results",
                     SweepPlan, 1 << 29),
    "cells/AB/KEY.json": FolderFile("a finished run: its results, and where they were computed",
                                    _Result, 1 << 25),
    "cells/AB/KEY.h5": FolderFile("its measurements of heads, if any: a study"),
    "cells/AB/KEY.failed.json": FolderFile("a failed run: the error, as one line and in detail",
                                           _Failure, 1 << 25),
    "models/KEY": FolderFile(f"a model that it trained: a checkpoint; {SNAPSHOT} in it: the "
                             "state of the training"),
}  # fmt: skip


class SweepFolder:
    """A folder of cells; it need not be there yet."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def write_plan(self, content: str, cells: Sequence[Cell], changes: Sequence[str] = ()) -> None:
        """Put down what is to be done. Raises HgvizError.

        content: the text of the study file; changes: what is another since some results were made.
        """
        head = {"format": SWEEP, "format_version": SWEEP_VERSION}
        body = {"changes": list(changes)[-CHANGES_LIMIT:], "cells": [*map(asdict, cells)]}
        plan = json.dumps(head | body, separators=(",", ":"))
        limit = FOLDER[PLAN].limit
        what = f"the plan of {len(cells):,} runs is too large: the limit is {limit >> 20:,} MB"
        errors.require(len(plan) <= limit, what, "Use fewer seeds, sizes or methods")
        with writing(self.path):
            for prefix in {cell.key[:2] for cell in cells}:
                (self.path / CELLS / prefix).mkdir(parents=True, exist_ok=True)
            write_atomic(self.path / FILE, content)
            write_atomic(self.path / PLAN, plan)

    def plan(self) -> SweepPlan:
        """All cells, and the latest changes. Raises HgvizError for no plan, or a damaged one."""
        path = self.path / PLAN
        other = "it is a file" if self.path.exists() else "there is no such folder"
        why = f"it has no {PLAN}" if self.path.is_dir() else other
        what = f"{self.path} is not the folder of a study: {why}"
        errors.require(path.exists(), what, "Choose the output folder of hgviz study run")
        content = _read_plain(path, FOLDER[PLAN].limit)
        head = _decode(path, content, _Head)
        if head.format != SWEEP:
            raise _damaged(path, "it is not the plan of a study")
        theirs, ours = head.format_version[0], SWEEP_VERSION[0]
        what = f"{path} has version {theirs}: this hgviz reads version {ours}"
        errors.require(theirs == ours, what, "Open it with the version of hgviz that wrote it")
        plan = _decode(path, content, SweepPlan)
        if len({cell.key for cell in plan.cells}) < len(plan.cells):
            raise _damaged(path, "a run is listed twice")
        return msgspec.structs.replace(plan, changes=plan.changes[-CHANGES_LIMIT:])

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
        """What a cell that is done measured. Raises HgvizError."""
        result: _Result = self._read(key, ".json")
        return result.found

    def keep(self, key: str, found: Mapping[str, Any], made: Mapping[str, Any]) -> None:
        """Keep the result of a cell. Raises HgvizError where it cannot be written."""
        content = json.dumps({"found": found, "made": made}, sort_keys=True)
        with writing(self.result_at(key), "finished runs are saved"):
            write_atomic(self.result_at(key), content)
        (self.model_at(key) / SNAPSHOT).unlink(missing_ok=True)

    def fail(self, key: str, line: str, details: str = "") -> None:
        """Keep why a cell failed, as one line and in detail. Raises HgvizError for a full disk."""
        content = {"line": line, "details": details, "host": socket.gethostname()}
        with writing(self.result_at(key), "finished runs are saved"):
            write_atomic(self.result_at(key, ".failed.json"), json.dumps(content))

    def forgive(self) -> int:
        """Forget which cells failed, so that they are computed again; return how many did."""
        failed = list((self.path / CELLS).glob("*/*.failed.json"))
        for file in failed:
            file.unlink(missing_ok=True)
        return len(failed)

    def _read(self, key: str, ending: str) -> Any:
        path, row = self.result_at(key, ending), FOLDER[f"cells/AB/KEY{ending}"]
        return _decode(path, _read_plain(path, row.limit), row.kind, nan=True)

    # --- how all stand ----------------------------------------------------------------------------

    def sweep(self, before: Sweep | None = None) -> Sweep:
        """All cells as they stand; before: how they stood, so that what was done is not read again.

        Raises HgvizError for what is no folder of a study.
        """
        plan, there = self.plan(), self._endings()
        known = {} if before is None else {
            standing.cell.key: standing for standing in before.standings if standing.state == "done"
        }  # fmt: skip
        standings: dict[str, Standing] = {}
        for cell in plan.cells:
            endings = there.get(cell.key, set())
            standing = known.get(cell.key) if ".json" in endings else None
            standing = standing or self._standing(cell, endings)
            stopped = [standings[key] for key in cell.needs if key in standings]
            stopped = [needed for needed in stopped if needed.state in ("failed", "blocked")]
            if standing.state == "waiting" and stopped:
                first = stopped[0]
                line = first.line if first.state == "blocked" else f"{first.cell.label} failed"
                standing = Standing(cell, "blocked", line=line)
            standings[cell.key] = standing
        changed = sum(".json" in endings for key, endings in there.items() if key not in standings)
        changes = plan.changes if changed else ()
        with suppress(FileNotFoundError):
            _read_plain(self.path / FILE, FOLDER[FILE].limit)  # neither a link nor a pipe
        asked = read_study_file(self.path / FILE)
        return Sweep(asked, tuple(standings.values()), str(self.path), changed, changes)

    def _endings(self) -> dict[str, set[str]]:
        """The endings of the files of every cell: one look at each folder, none through a link."""
        endings: dict[str, set[str]] = {}
        cells = self.path / CELLS
        for folder in [] if cells.is_symlink() else _entries(cells):
            for entry in _entries(folder.path) if folder.is_dir(follow_symlinks=False) else ():
                key, dot, ending = entry.name.partition(".")
                if re.fullmatch("[0-9a-f]{24}", key):
                    endings.setdefault(key, set()).add(dot + ending)
        return endings

    def _standing(self, cell: Cell, endings: set[str]) -> Standing:
        """How a cell stands by its own files."""
        with suppress(FileNotFoundError):
            if ".json" in endings:
                result: _Result = self._read(cell.key, ".json")
                host, seconds = str(result.made.get("host", "")), result.made.get("seconds", 0)
                good = isinstance(seconds, int | float) and 0 <= seconds < 1e18
                return Standing(
                    cell, "done", result.found, seconds=float(seconds) if good else 0.0, host=host,
                    made=result.made,
                )  # fmt: skip
            if ".failed.json" in endings:
                failure = self._read(cell.key, ".failed.json")
                return Standing(cell, "failed", **msgspec.structs.asdict(failure))
        return Standing(cell)


def is_sweep(path: str | Path) -> bool:
    """Whether a path is the folder of a study."""
    with suppress(OSError, HgvizError):
        return SWEEP.encode() in _read_start(Path(path) / PLAN, 256)
    return False


def _entries(path: str | Path) -> list[os.DirEntry[str]]:
    with suppress(FileNotFoundError, NotADirectoryError):
        return list(os.scandir(path))
    return []


# --- study files ----------------------------------------------------------------------------------

SEE = "A study file has [[models]] and [[data]]; see `hgviz docs study`"
_TABLES = {
    "": StudyFile.__struct_fields__, "data": Source.__struct_fields__,
    "curve": CurveOptions.__struct_fields__, "compare": CompareOptions.__struct_fields__,
}  # fmt: skip
_KINDS = {
    "array": "a list in brackets", "object": "a table", "str": "words in quotes",
    "int": "a whole number", "float": "a number", "bool": "true or false",
}  # fmt: skip


def read_study_file(path: str | Path) -> StudyFile:
    """Read and check a study file. Raises HgvizError, naming what is wrong in it."""
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise errors.file_error(f"cannot read {path}", error) from error
    what = f"{path} is not a study file: it is larger than 1 MB"
    errors.require(len(content) <= MOST_BYTES, what, "Choose another file")
    try:
        asked = msgspec.toml.decode(content, type=StudyFile)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        plain = {UnicodeDecodeError: "it is not text", RecursionError: "it is nested too deep"}
        why, do = _explain(plain.get(type(error), str(error)))
        raise HgvizError(f"{path} is not a study file: {why}", do) from error
    _check(asked)
    return asked


def _explain(words: str) -> tuple[str, str]:
    """What a validation says, in words of the file: why it is none, and what to do."""
    why, _, place = words.partition(" - at `$")
    key = re.sub(r"\[.*?\]", "", place).strip(".`")
    if "unknown field" in why and key in _TABLES:
        table, name = f"[{key}]" if key else "a study file", why.split("`")[1]
        return f"{table} has no key {name}", f"Its keys are {', '.join(_TABLES[key])}"
    if why.startswith("Invalid enum value") and key == "asks":
        value = why.removeprefix("Invalid enum value ")
        return f"asks cannot be {value}", f"Choose from {', '.join(get_args(Ask))}"
    if why.startswith("Object missing required field"):
        table = f"[[{key}]]" if key else "it"
        return f"{table} has no {why.split('`')[1]}", SEE
    for name, plain in _KINDS.items():
        why = why.replace(f"`{name}`", plain)
    return f"{key}: {why[0].lower()}{why[1:]}" if key else why, SEE


def _check(asked: StudyFile) -> None:
    names = [str(model.get("name", "")) for model in asked.models]
    sources = [source_name(source) for source in asked.data]
    activations = [name if isinstance(name, str) else name.get("name")
                   for name in asked.activations]  # fmt: skip
    curve = asked.curve
    wrong = [
        (not asked.models, "it has no [[models]]"),
        (not asked.data, "it has no [[data]]"),
        (not asked.asks, "asks is empty; use score, curve or compare"),
        (not asked.activations, 'activations is empty; leave it out for the models\' own'),
        (_repeats(activations), "an activation is listed twice"),
        (not asked.seeds, "seeds is empty; leave it out for one run of each"),
        (_repeats(asked.seeds), "a seed is listed twice"),
        (min(asked.seeds, default=0) < 0, "seeds must be 0 or more"),
        (not all(names), "every one of [[models]] needs a name"),
        (_repeats(names), "two of [[models]] have the same name"),
        (_repeats(sources), "two of [[data]] have the same name"),
        ("curve" in asked.asks and not asked.methods, "curves need methods, such as michel"),
        (_repeats(asked.methods), "a method is listed twice"),
        ("compare" in asked.asks and len(asked.activations) < 2,
         "compare needs at least two activations"),
        (not all(0 < share <= 1 for share in curve.budgets),
         "budgets must be above 0 and at most 1"),
        (asked.threads < 1, "threads must be 1 or more"),
        (asked.device not in DEVICES, f"device must be one of {', '.join(DEVICES)}"),
        (curve.points < 2 or curve.random < 0 or curve.limit < 0,
         "[curve] has a number that is too small"),
    ]  # fmt: skip
    for failed, why in wrong:
        what = f"this study file cannot be used: {why}"
        errors.require(not failed, what, "Change the file and run it again")


def _repeats(values: Sequence[Any]) -> bool:
    return any(values.count(value) > 1 for value in values)
