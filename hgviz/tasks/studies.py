"""Running a study file: its grid as cells, computed here or on a cluster, and how they stand.

A cell is a request whose key is a hash of all that decides its result (hgviz.study.Cell). It opens
its model itself, with the threads of the study, and is done when its file is there. So a study
gives the same numbers in one process, on a cluster, and when it was stopped in between.
"""

from __future__ import annotations

import hashlib
import shutil
import socket
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

import hgviz
from hgviz import cluster
from hgviz.analysis.importance import METHODS
from hgviz.core import HgvizError, Step, progress, progress_as, progress_within
from hgviz.errors import choose, file_error, require, to_hgviz_error
from hgviz.files import find_sample
from hgviz.models import checkpoints, open_model
from hgviz.models.data import require_columns
from hgviz.store import open_study, write_study
from hgviz.store.hdf5 import is_full
from hgviz.store.studies import CELLS, FILE, SweepFolder, is_sweep, read_study_file
from hgviz.study import (
    MOST_CELLS,
    Cell,
    Source,
    Standing,
    StudyFile,
    Sweep,
    measured_together,
    source_name,
)
from hgviz.tasks.captures import versions
from hgviz.tasks.comparison import compare_models
from hgviz.tasks.measurements import importance
from hgviz.tasks.pruning import curve, trials_of
from hgviz.tasks.scoring import evaluate

if TYPE_CHECKING:
    from hgviz.models.layers import Configuration
    from hgviz.models.model import Model
    from hgviz.models.training import Plan
    from hgviz.models.trials import Trials

Facts = dict[str, Any]
Measure = Callable[[SweepFolder, Cell], Facts]

OWN = "own"  # the name of an activation that is not exchanged
MODELS = 2  # kept open from one cell to the next: both sides of a comparison


def run_sweep(
    file: str | Path,
    out: str | Path,
    scheduler: str = "",
    again: bool = False,
    part: tuple[int, int] = (1, 1),
) -> Sweep:
    """Compute the missing cells of a study file into a folder, created where it does not exist.

    scheduler: where, see hgviz.cluster; "" is this process. again: compute cells that failed once
    more. part: (K, N), only the K-th of N parts of the models, so that N machines can share the
    work. The progress carries the Sweep as it stands, once, and then (cell, whether it is done) for
    each cell that ends. Raises HgvizError for a file that cannot be used and for what stops
    everything, such as a full disk; what is done stays.
    """
    if scheduler:
        cluster.require_scheduler(scheduler)
    asked = read_study_file(file)
    folder = SweepFolder(Path(out).resolve())
    _require_own_folder(folder.path)
    cells = plan(asked, Path(file).resolve().parent)
    changes = find_changes(folder, cells) if is_sweep(folder.path) else ()
    folder.write_plan(Path(file).read_text(encoding="utf-8"), cells, changes)
    if again:
        folder.forgive()
    sweep = folder.sweep()
    progress(0, len(cells), f"{sweep.counts['done']} of {len(cells)} runs are done", sweep)
    number, parts = part
    groups = {*sorted({_group(cell) for cell in cells})[number - 1 :: parts]}
    waiting = {standing.cell.key for standing in sweep.standings if standing.state == "waiting"}
    cells = tuple(cell for cell in cells if cell.key in waiting and _group(cell) in groups)
    path = str(folder.path)
    try:
        if scheduler:
            died = partial(fail_without_worker, path)
            cluster.compute(cells, partial(compute_cell, path), scheduler, path, died)
        else:
            compute_here(cells, partial(compute_cell, path))
    finally:
        _models.clear()
    return folder.sweep(sweep)


def sweep_at(path: str | Path, before: Sweep | None = None) -> Sweep:
    """The cells of a study's folder as they stand now. Raises HgvizError for another folder.

    before: how they stood, whose results are not read again.
    """
    return SweepFolder(path).sweep(before)


def is_sweep_file(path: str | Path) -> bool:
    """Whether a path is a study file, by its ending, or the folder of a study."""
    return is_sweep(path) or (Path(path).suffix.lower() == ".toml" and Path(path).is_file())


def open_sweep(path: str | Path) -> Sweep:
    """The study in a folder, or of a study file: its folder, of the same name, or what would be
    computed there. Raises HgvizError for anything else."""
    progress(0, 1, "reading the runs")
    if is_sweep(path):
        return sweep_at(path)
    asked, out = read_study_file(path), Path(path).resolve().with_suffix("")
    if is_sweep(out) and (out / FILE).read_bytes() == Path(path).read_bytes():
        return sweep_at(out)
    cells = plan(asked, Path(path).resolve().parent)
    return Sweep(asked, tuple(map(Standing, cells)), str(out))


def _require_own_folder(path: Path) -> None:
    require(
        path.is_dir() or not path.exists(),
        f"{path} is a file: a study needs a folder",
        "Choose another name",
    )
    names = {entry.name for entry in path.iterdir()} if path.exists() else set()
    # a full disk may have ended a study before it had a plan
    is_begun = CELLS in names and names <= {CELLS, FILE}
    require(
        not names or is_begun or is_sweep(path),
        f"{path} has other files: a study needs its own folder",
        "Choose another folder",
    )


def _group(cell: Cell) -> tuple[str, ...]:
    """What one part of a study has whole: the cells of a model, data and seed."""
    return tuple(cell.place.get(axis, "") for axis in ("seed", "data", "model"))


def find_changes(folder: SweepFolder, cells: Sequence[Cell]) -> tuple[str, ...]:
    """What differs from when the folder was planned: names of files, or settings."""
    present = {(cell.work, frozenset(cell.place.items())): cell for cell in cells}
    keys = {cell.key for cell in cells}
    earlier = folder.plan()
    changes = dict.fromkeys(earlier.changes)
    for old in earlier.cells:
        if old.key in keys:
            continue
        new = present.get((old.work, frozenset(old.place.items())))
        if new is None:
            changes["requested runs"] = None
            continue
        before, after = _digests(old), _digests(new)
        files = [name for name in before if before[name] != after.get(name, before[name])]
        changes |= dict.fromkeys(Path(new.paths[name]).name for name in files)
        if not files and old.needs == new.needs:  # else what it needs has changed
            changes[f"settings of {old.work}"] = None
    return tuple(changes)


def _digests(cell: Cell) -> dict[str, Any]:
    """The digest of each file of a cell, by its name in paths: "data", or "a checkpoint"."""
    digests = dict(cell.given.get("files", {}))
    for name in cell.paths.keys() - digests.keys():
        side, _, word = name.rpartition(" ")
        digests[name] = (cell.given[side] if side else cell.given).get(word)
    return digests


# --- the cells of a study file --------------------------------------------------------------------


def plan(asked: StudyFile, folder: str | Path) -> tuple[Cell, ...]:
    """All cells of a study file in a folder, each once, those that others need before them.

    Files are read for their digests; no model is built. Raises HgvizError for what is not there or
    cannot be trained.
    """
    progress(0, 1, "loading torch")
    planner = _Planner(asked, Path(folder))
    cells: list[Cell] = []
    for number, model in enumerate(asked.models):
        progress(number, len(asked.models), f"planning {model['name']}")
        cells += planner.cells_of(model)
    unique = {cell.key: cell for cell in cells}
    require(
        len(unique) <= MOST_CELLS,
        f"this study has {len(unique):,} runs: at most {MOST_CELLS:,} are possible",
        "Use fewer seeds, sizes or methods",
    )
    return tuple(unique.values())


class _Model(NamedTuple):
    """A model of the grid: its place there, what opens it, its paths, and what trains it."""

    place: dict[str, str]
    given: Facts
    paths: dict[str, str]
    training: tuple[Cell, ...] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(cell.key for cell in self.training)


class _Planner:
    """The cells of a study file, model by model; digests of files are computed once."""

    def __init__(self, asked: StudyFile, folder: Path) -> None:
        self.asked, self.folder = asked, folder
        self.cell_options = {"device": asked.device, "threads": asked.threads}
        self.digest, self.checkpoint = cache(digest_of_file), cache(read_checkpoint)
        methods = [name for name, method in METHODS.items() if not method.learned]
        self.arrays = {
            name: measured_together(METHODS[choose(name, methods, "method of a study")].needs)
            for name in asked.methods
        }
        trains = any("checkpoint" not in model for model in asked.models)
        self._require_columns(trains)
        if not trains:
            self._require_tables()

    def _require_columns(self, trains: bool) -> None:
        """Require the columns that the study file names."""
        for source in self.asked.data:
            columns = source.text_column, source.label_column
            for file in (source.valid, *(source.train if trains else ())) if any(columns) else ():
                require_columns(self.path(file), *columns)

    def _require_tables(self) -> None:
        """Require sound [recipe] and [tokenizer], although no model is trained by them."""
        tables = {"recipe": self.asked.recipe, "tokenizer": self.asked.tokenizer}
        tables = {name: table for name, table in tables.items() if table}
        smallest = {"model": {}, "data": {"train": [""], "valid": ""}, "recipe": {"steps": 1}}
        names = " and ".join(f"[{name}]" for name in tables)
        if tables:
            self._parse(smallest | tables, f"{names} of this study cannot be used")

    def _parse(self, tables: Facts, what: str, check_model: bool = False) -> Plan:
        """The plan of a training. Raises HgvizError for keys that a training does not know."""
        from hgviz.models.config import parse_config
        from hgviz.models.training import goal_of, parse_plan

        try:
            training = parse_plan(tables, self.folder)
            if check_model and "from" not in training.model:
                # ids and labels are not known before the texts are read
                size = training.tokenizer.size if training.tokenizer else 256
                likely = {"model_type": "hgviz", "vocab_size": size}
                labels = {"labels": ["0", "1"]} if goal_of(training.model) == "classes" else {}
                parse_config(likely | labels | training.model, "[model]")
        except HgvizError as error:
            do = error.do
            if check_model and "unknown key" in error.what and "family" not in tables["model"]:
                do = "Give its family, such as bert: without one it is an Hourglass"
            raise HgvizError(f"{what}: {error.what}", do) from error
        require(
            not training.recipe.minutes,
            "a study cannot train for minutes: results would depend on the machine",
            "Use recipe.steps or recipe.epochs",
        )
        return training

    def cells_of(self, model: Mapping[str, Any]) -> Iterator[Cell]:
        """The cells of one of [[models]]: of each data and seed, activation after activation."""
        for source in self.asked.data:
            for seed in self.asked.seeds:
                models = []
                for activation in self.asked.activations:
                    if isinstance(activation, str):
                        name = activation or OWN
                    else:
                        name = str(activation.get("name", ""))
                        what = "an activation of this study has no name"
                        require(name, what, "Add one to its table")
                    place = {
                        "data": source_name(source), "model": str(model["name"]),
                        "activation": name, "seed": str(seed),
                    }  # fmt: skip
                    if "checkpoint" in model:
                        models.append(self._checkpoint(model, activation, place))
                    else:
                        models.append(self._training(model, source, activation, seed, place))
                    yield from models[-1].training
                    yield from self._measurements(models[-1], source, seed)
                if "compare" in self.asked.asks:
                    for other in models[1:]:
                        yield self._comparison(models[0], other, source)

    def _checkpoint(
        self, model: Mapping[str, Any], activation: Any, place: dict[str, str]
    ) -> _Model:
        """A model that is there; its activation may be exchanged."""
        from hgviz.models.model import with_activation

        more = sorted(set(model) - {"name", "checkpoint"})
        require(
            not more,
            f"{model['name']} is a checkpoint, which is not trained: "
            f"it takes no {''.join(more[:1])}",
            "Leave this out, or leave out checkpoint",
        )
        require(
            isinstance(activation, str),
            f"a checkpoint such as {model['name']} cannot take {place['activation']}: "
            "its activation is replaced by name",
            "Give a name, as for --activation",
        )
        path = self.path(str(model["checkpoint"]))
        digest, config = self.checkpoint(path)
        if activation:
            with_activation(config, activation)  # raises where the model has none such
        given = {"checkpoint": digest, "activation": activation}
        return _Model(place, given, {"checkpoint": path})

    def _training(
        self, model: Mapping[str, Any], source: Source, activation: Any, seed: int,
        place: dict[str, str],
    ) -> _Model:  # fmt: skip
        """A model that a cell trains."""
        keys = {k: v for k, v in model.items() if k not in ("name", "recipe", "tokenizer")}
        if isinstance(activation, dict):
            keys |= {k: v for k, v in activation.items() if k != "name"}
        elif activation:
            keys["activations"] = activation
        data = {
            "train": list(source.train), "valid": source.valid,
            "text_column": source.text_column, "label_column": source.label_column,
        }  # fmt: skip
        # planned where the device need not be: a cluster's front end has no GPU
        machine = {"seed": seed, "threads": self.asked.threads, "device": "cpu"}
        recipe = {**self.asked.recipe, **model.get("recipe", {}), **machine}
        tables = {"model": keys, "data": data, "recipe": recipe}
        if tokenizer := {**self.asked.tokenizer, **model.get("tokenizer", {})}:
            tables["tokenizer"] = tokenizer
        name = f"{place['model']} of this study"
        if place["activation"] != OWN:
            name += f" with {place['activation']}"
        training = self._parse(tables, f"{name} cannot be trained", check_model=True)
        plan = msgspec.to_builtins(training)
        if not training.recipe.level_dropout:  # what was computed before it was there keeps its key
            del plan["recipe"]["level_dropout"]
        paths = {f"train {number}": file for number, file in enumerate(training.data.train)}
        paths["valid"] = training.data.valid
        if training.tokenizer is not None and training.tokenizer.file:
            paths["tokenizer"] = training.tokenizer.file
            plan["tokenizer"]["file"] = ""
        if "from" in training.model:
            paths["from"] = training.model["from"]
            plan["model"] = {**plan["model"], "from": ""}
        plan["data"] |= {"train": [], "valid": ""}
        plan["recipe"]["device"] = self.asked.device
        digests = {
            name: self.checkpoint(path)[0] if name == "from" else self.digest(path)
            for name, path in paths.items()
        }
        cell = Cell("train", {"plan": plan, "files": digests}, (), paths, dict(place))
        return _Model(place, {"trained": cell.key}, {}, (cell,))

    def _measurements(self, model: _Model, source: Source, seed: int) -> Iterator[Cell]:
        """The cells that score a model, measure its heads and prune it."""
        place, needs, curve = model.place, model.needs, self.asked.curve
        data, paths = self._data(source)
        data, paths = {**model.given, **data}, {**model.paths, **paths}
        if "score" in self.asked.asks:
            yield Cell("score", data, needs, paths, place)
        if "curve" not in self.asked.asks:
            return
        data = {**data, "limit": curve.limit, "seed": seed}
        measured = {}
        for arrays in dict.fromkeys(self.arrays.values()):
            given = {**data, "arrays": list(arrays)}
            if arrays == ("shapley",):
                given["permutations"] = curve.permutations
            measured[arrays] = Cell("measure", given, needs, paths, place)
        yield from measured.values()
        orders = {method: measured[arrays] for method, arrays in self.arrays.items()}
        if curve.random:
            orders["random"] = next(iter(measured.values()))
        for method, cell in orders.items():
            given = {**data, "points": curve.points, "least": curve.least, "method": method}
            if method == "random":
                given["random"] = curve.random
            yield Cell("curve", given, (*needs, cell.key), paths, {**place, "method": method})

    def _comparison(self, a: _Model, b: _Model, source: Source) -> Cell:
        data, paths = self._data(source)
        options = {"texts": self.asked.compare.texts, "limit": self.asked.compare.limit}
        for side, model in (("a", a), ("b", b)):
            paths |= {f"{side} {name}": path for name, path in model.paths.items()}
        given = {"a": a.given, "b": b.given, **data, **options}
        return Cell("compare", given, tuple(dict.fromkeys((*a.needs, *b.needs))), paths, b.place)

    def _data(self, source: Source) -> tuple[Facts, dict[str, str]]:
        """What a cell is told of the data it measures on, and the path."""
        path, columns = self.path(source.valid), [source.text_column, source.label_column]
        return {"data": self.digest(path), "columns": columns, **self.cell_options}, {"data": path}

    def path(self, name: str) -> str:
        """The path of a file in the folder of the study file, or of a sample of hgviz."""
        path = self.folder / name
        return str((path if path.exists() else self.folder / find_sample(name)).resolve())


def digest_of_file(path: str | Path) -> str:
    """SHA-256 of a file, hexadecimal. Raises HgvizError where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise file_error(f"cannot read {path}", error) from error


def read_checkpoint(path: str) -> tuple[str, Configuration]:
    """The digest of a checkpoint and its tokenizer, if it has one, and its configuration.

    Raises HgvizError for a tokenizer that does not fit.
    """
    checkpoint = checkpoints.read(path)
    tokenizer, digest = checkpoints.tokenizer_json(checkpoint), checkpoint.digest
    if tokenizer is not None:
        both = digest.encode() + hashlib.sha256(tokenizer).digest()
        digest = hashlib.sha256(both).hexdigest()
    return digest, checkpoint.config


# --- computing ------------------------------------------------------------------------------------


def compute_here(cells: Sequence[Cell], work: cluster.Work) -> None:
    """Compute cells in this process, in their order, but for those that need one that failed."""
    stopped: set[str] = set()
    for number, cell in enumerate(cells):
        is_done = stopped.isdisjoint(cell.needs)
        if is_done:
            note = partial(_with_label, cell.label)
            with progress_within(number, number + 1, len(cells)), progress_as(note):
                is_done = work(cell)
            progress(number + 1, len(cells), cell.label, (cell, is_done))
        if not is_done:
            stopped.add(cell.key)


def _with_label(label: str, step: Step) -> Step:
    return Step(step.done, step.total, f"{label}, {step.note}")


def compute_cell(path: str, cell: Cell, measure: Measure | None = None) -> bool:
    """Write the result of a cell into a folder, or why it failed; return whether it is done.

    measure: computes the result, as WORK says unless given. Raises HgvizError for a full disk,
    which would fail every other cell.
    """
    folder = SweepFolder(path)
    if folder.is_done(cell.key) or folder.is_failed(cell.key):  # by a worker that died after it
        return folder.is_done(cell.key)
    start = time.perf_counter()
    try:
        result = (measure or measure_cell)(folder, cell)
        made = {
            "seconds": time.perf_counter() - start, "host": socket.gethostname(),
            "program": hgviz.__version__, "versions": dict(versions()),
        }  # fmt: skip
        folder.keep(cell.key, result, made)
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None:
            if is_full(cause):
                what = f"the disk is full: progress is saved in {folder.path}"
                raise HgvizError(what, "Free some space, then run the same command") from error
            cause = cause.__cause__ or cause.__context__
        lines, details = to_hgviz_error(error).lines, traceback.format_exception(error)
        folder.fail(cell.key, " ".join(lines), "".join(details))
        return False
    return True


def fail_without_worker(path: str, cell: Cell) -> bool:
    """Write that a cell failed as each worker died at it; return whether one had done it."""
    folder = SweepFolder(path)
    if not folder.is_done(cell.key) and not folder.is_failed(cell.key):
        folder.fail(cell.key, "every worker that computed it died")
    return folder.is_done(cell.key)


def measure_cell(folder: SweepFolder, cell: Cell) -> Facts:
    """The result of a cell. Raises whatever computing it raises."""
    progress(0, 1, "loading torch")
    from hgviz.models import devices

    threads = cell.given.get("threads") or cell.given["plan"]["recipe"]["threads"]
    with devices.threads(int(threads)):
        return WORK[cell.work](folder, cell)


def _train(folder: SweepFolder, cell: Cell) -> Facts:
    """Train a model into the folder, from the last snapshot of an interrupted training."""
    from hgviz.models import training

    for name, path in cell.paths.items():
        _require_same(path, cell.given["files"][name], is_model=name == "from")
    plan = training.plan_with_files(cell.given["plan"], cell.paths)
    out = folder.model_at(cell.key)
    if not (out / training.STATE).exists():
        shutil.rmtree(out, ignore_errors=True)  # its result was deleted
    report = training.train(plan, out, keep_state=True)
    return {
        "metric": report.metric, "value": report.value, "figures": report.figures,
        "steps": report.steps, "digest": _open(folder, {"trained": cell.key}, {}).spec.digest,
    }  # fmt: skip


def _score(folder: SweepFolder, cell: Cell) -> Facts:
    """The score of a model on data, and which answers are right."""
    model = _open(folder, cell.given, cell.paths, cell.given["device"])
    evaluation = evaluate(model, _data(cell), *cell.given["columns"])
    return evaluation.to_dict() | {
        "parameters": model.spec.parameters, "model": model.spec.digest,
        "right": packed(evaluation.right),
    }  # fmt: skip


def _measure(folder: SweepFolder, cell: Cell) -> Facts:
    """Arrays of the importance of every head, in a study file beside the result."""
    arrays, permutations = cell.given["arrays"], cell.given.get("permutations", 1)
    name, trials = Path(_data(cell)).name, _trials(folder, cell)
    study = importance(trials, arrays, name, cell.given["seed"], permutations)
    write_study(folder.result_at(cell.key, ".h5"), study, force=True)
    return {
        "arrays": arrays, "heads": len(study.heads), "examples": len(study),
        "loss": float(study.loss.mean(dtype=float)), "model": study.spec.digest,
    }  # fmt: skip


def _curve(folder: SweepFolder, cell: Cell) -> Facts:
    """The pruning curve of one method, or of random orders."""
    trials, given = _trials(folder, cell), cell.given
    study = replace(open_study(folder.result_at(cell.needs[-1], ".h5")), path="")
    limits = given.get("random", 0), given["least"], given["points"]
    study = curve(trials, study, given["method"], *limits)
    write_study(folder.result_at(cell.key, ".h5"), study, force=True)
    curves = [
        {
            "method": curve.method, "seed": curve.seed, "unit": curve.unit,
            "examples": len(curve.rows), "order": [str(head) for head in curve.order],
            "off": curve.removed.tolist(),
            **{name: [*map(float, getattr(curve, name))] for name in ("values", "loss", "change")},
        }
        for curve in study.curves
    ]  # fmt: skip
    return {"curves": curves, "heads": len(study.heads)}


def _compare(folder: SweepFolder, cell: Cell) -> Facts:
    """The comparison of two models, as `hgviz compare --data --json` prints it."""
    given = cell.given
    a, b = (
        _open(folder, given[side], {"checkpoint": cell.paths.get(f"{side} checkpoint", "")},
              given["device"])
        for side in "ab"
    )  # fmt: skip
    text_column, label_column = given["columns"]
    return compare_models(
        a, b, _data(cell), "", text_column, label_column,
        limit=given["limit"] or None, texts=given["texts"],
    ).to_dict()  # fmt: skip


WORK: Mapping[str, Measure] = {
    "train": _train, "score": _score, "measure": _measure, "curve": _curve, "compare": _compare,
}  # fmt: skip

_models: OrderedDict[tuple[str, ...], Model] = OrderedDict()  # the most recently used last


def _open(
    folder: SweepFolder, given: Mapping[str, Any], paths: Mapping[str, str], device: str = "cpu"
) -> Model:
    """The model of a cell: one that the study trained, or a checkpoint that has not changed."""
    is_trained = "trained" in given
    path = str(folder.model_at(given["trained"])) if is_trained else paths["checkpoint"]
    activation, digest = given.get("activation", ""), given.get("checkpoint", "")
    key = path, digest, activation, device
    if key not in _models:
        if not is_trained:
            _require_same(path, digest, is_model=True)
        while len(_models) >= MODELS:  # before another takes memory, too
            _models.popitem(last=False)
        _models[key] = open_model(path, device, activation=activation or None)
    _models.move_to_end(key)
    return _models[key]


def _trials(folder: SweepFolder, cell: Cell) -> Trials:
    model = _open(folder, cell.given, cell.paths, cell.given["device"])
    limit, (text_column, label_column) = cell.given["limit"] or None, cell.given["columns"]
    return trials_of(model, _data(cell), text_column, label_column, limit=limit)


def _data(cell: Cell) -> str:
    _require_same(cell.paths["data"], cell.given["data"])
    return cell.paths["data"]


def _require_same(path: str, digest: str, is_model: bool = False) -> None:
    """Require the file or checkpoint that the study was planned with."""
    require(
        digest == (read_checkpoint(path)[0] if is_model else digest_of_file(path)),
        f"{path} has changed since the study was planned",
        "Restore it, or run the study again: earlier results are kept",
    )


def packed(bits: Sequence[bool]) -> Facts:
    """Booleans as hexadecimal digits."""
    return {"count": len(bits), "bits": np.packbits(np.array(bits, bool)).tobytes().hex()}


def unpacked(facts: Mapping[str, Any]) -> np.ndarray:
    """(count,) booleans from what packed returned."""
    bits = np.unpackbits(np.frombuffer(bytes.fromhex(facts["bits"]), np.uint8))
    return bits[: int(facts["count"])].astype(bool)
