"""Computing the cells of a study, one function of WORK for each kind.

A cell is a pure function of what its key is made of: it opens its model itself, with the number of
threads of the study, and writes one result file. So a study gives the same numbers in one process
and on a cluster.
"""

from __future__ import annotations

import shutil
import socket
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import hgviz
from hgviz.cluster import Outcome
from hgviz.core import HgvizError, progress
from hgviz.errors import require, to_hgviz_error
from hgviz.study import NO_PREDICTION, UNKNOWN, Cell, PruningCurve, Study, unmeasured

if TYPE_CHECKING:
    from hgviz.models.model import Model
    from hgviz.models.trials import Trials
    from hgviz.store.studies import SweepFolder

Facts = dict[str, Any]
Measure = Callable[["SweepFolder", Cell], Facts]
MODELS = 2  # kept open from one cell to the next: both sides of a comparison

_models: OrderedDict[tuple[str, ...], Model] = OrderedDict()


def work_in(path: str, measure: Measure | None = None) -> Callable[[Cell], Outcome]:
    """The function that computes the cells of a folder. measure: returns the result of a cell, by
    default as WORK says."""
    return partial(_compute, path, measure or _measure_cell)


def _compute(path: str, measure: Measure, cell: Cell) -> Outcome:
    """Write the result file of a cell, or the file that says why it failed."""
    from hgviz.store.studies import SweepFolder

    folder = SweepFolder(path)
    if folder.is_done(cell.key):  # by a worker that died before it returned
        return "done"
    if folder.is_failed(cell.key):
        return "failed"
    start = time.perf_counter()
    try:
        result = measure(folder, cell)
        folder.keep(cell.key, result, _provenance(time.perf_counter() - start))
    except Exception as error:
        if _is_full_disk(error):
            raise HgvizError(
                f"the disk is full: what is done is kept in {folder.path}",
                "Free some space, then run the same command",
            ) from error
        lines, details = to_hgviz_error(error).lines, traceback.format_exception(error)
        folder.fail(cell.key, " ".join(lines), "".join(details))
        return "failed"
    return "done"


def _is_full_disk(error: BaseException | None) -> bool:
    """Whether an error, or one of its causes, is a full disk, which would fail every other cell."""
    from hgviz.store.hdf5 import is_full

    while error is not None:
        if is_full(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _provenance(seconds: float) -> dict[str, Any]:
    """Where and by which versions a result was computed."""
    from hgviz.tasks.captures import versions

    return {
        "seconds": seconds, "host": socket.gethostname(), "program": hgviz.__version__,
        "versions": dict(versions()),
    }  # fmt: skip


def _measure_cell(folder: SweepFolder, cell: Cell) -> Facts:
    progress(0, 1, "loading torch")
    from hgviz.models import devices

    require(
        cell.work in WORK,
        f"there is no work {cell.work[:40]!r}: another version of hgviz planned it",
        "Run the study with that version",
    )
    threads = cell.given.get("threads") or cell.given["plan"]["recipe"]["threads"]
    with devices.threads(int(threads)):
        return WORK[cell.work](folder, cell)


# --- the kinds ------------------------------------------------------------------------------------


def _train(folder: SweepFolder, cell: Cell) -> Facts:
    """Train a model into the folder, from the last snapshot of an interrupted training."""
    from hgviz.models import training

    for name, path in cell.paths.items():
        _require_same(name, path, cell.given["files"][name])
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
    from hgviz.tasks.scoring import evaluate

    model = _open(folder, cell.given, cell.paths, cell.given["device"])
    evaluation = evaluate(model, _data(cell), *cell.given["columns"])
    right = {} if evaluation.right is None else {"right": packed(evaluation.right)}
    return {
        **evaluation.to_dict(), "parameters": model.spec.parameters, "model": model.spec.digest,
        **right,
    }  # fmt: skip


def _measure(folder: SweepFolder, cell: Cell) -> Facts:
    """Arrays of the importance of every head, in a study file beside the result."""
    from hgviz.store import write_study
    from hgviz.tasks.studying import importance

    trials = _trials(folder, cell)
    arrays = cell.given["arrays"]
    study = importance(
        trials, arrays, _data(cell).rpartition("/")[2], cell.given["seed"],
        cell.given.get("permutations", 1),
    )  # fmt: skip
    write_study(folder.result_at(cell.key, ".h5"), study, force=True)
    return {
        "arrays": arrays, "heads": len(study.heads), "examples": len(study),
        "loss": float(study.loss.mean(dtype=float)), "model": study.spec.digest,
    }  # fmt: skip


def _curve(folder: SweepFolder, cell: Cell) -> Facts:
    """The pruning curve of one method, or of random orders."""
    from hgviz.store import open_study, write_study
    from hgviz.tasks.pruning import curve, random_curves

    trials = _trials(folder, cell)
    given = cell.given
    method, least, points = given["method"], given["least"], given["points"]
    study = replace(open_study(folder.result_at(cell.needs[-1], ".h5")), path="")
    if method == "random":
        study = random_curves(trials, study, given["random"], least, points)
    else:
        study = curve(trials, study, method, random=0, least=least, most=points)
    write_study(folder.result_at(cell.key, ".h5"), study, force=True)
    return {"curves": [_curve_facts(one) for one in study.curves], "heads": len(study.heads)}


def _compare(folder: SweepFolder, cell: Cell) -> Facts:
    """The comparison of two models, as `hgviz compare --data --json` prints it."""
    from hgviz.tasks.comparison import compare_models

    sides = []
    for side in "ab":
        prefix = f"{side} "
        paths = {name.removeprefix(prefix): path for name, path in cell.paths.items()
                 if name.startswith(prefix)}  # fmt: skip
        sides.append(_open(folder, cell.given[side], paths, cell.given["device"]))
    text_column, label_column = cell.given["columns"]
    comparison = compare_models(
        sides[0], sides[1], _data(cell), "", text_column, label_column,
        limit=cell.given["limit"] or None, texts=cell.given["texts"],
    )  # fmt: skip
    return comparison.to_dict()


WORK: Mapping[str, Callable[[SweepFolder, Cell], Facts]] = {
    "train": _train, "score": _score, "measure": _measure, "curve": _curve, "compare": _compare,
}  # fmt: skip


# --- models and data of a cell --------------------------------------------------------------------


def _open(
    folder: SweepFolder, given: Mapping[str, Any], paths: Mapping[str, str], device: str = "cpu"
) -> Model:
    """The model of a cell: one that the study trained, or a checkpoint that has not changed."""
    from hgviz.models import checkpoints, open_model
    from hgviz.tasks.planning import digest_of_model

    if "trained" in given:
        path = str(folder.model_at(given["trained"]))
        return _cached(("trained", path, device), lambda: open_model(path, device))

    def make() -> Model:
        path = paths["checkpoint"]
        if digest_of_model(checkpoints.read(path)) != given["checkpoint"]:
            raise _changed(path)
        return open_model(path, device, activation=given["activation"] or None)

    return _cached((given["checkpoint"], given["activation"], device), make)


def _cached(key: tuple[str, ...], make: Callable[[], Model]) -> Model:
    """The model of a key, or the one that make() opens; the MODELS most recently used stay open."""
    if key not in _models:
        while len(_models) >= MODELS:  # before another takes memory, too
            _models.popitem(last=False)
        _models[key] = make()
    _models.move_to_end(key)
    return _models[key]


def forget_models() -> None:
    """Close all models that are kept open between cells."""
    _models.clear()


def _data(cell: Cell) -> str:
    _require_same("data", cell.paths["data"], cell.given["data"])
    return cell.paths["data"]


def _require_same(name: str, path: str, digest: str) -> None:
    """Require the file that the study was planned with. Raises HgvizError."""
    from hgviz.models import checkpoints
    from hgviz.tasks.planning import digest_of_file, digest_of_model

    is_model = name == "from"
    present = digest_of_model(checkpoints.read(path)) if is_model else digest_of_file(path)
    if present != digest:
        raise _changed(path)


def _changed(path: str) -> HgvizError:
    return HgvizError(
        f"{path} has changed since the study was planned: "
        "its results would be of two models or data",
        "Put it back, or run the study again: what is of the old one is kept",
    )


def _trials(folder: SweepFolder, cell: Cell) -> Trials:
    from hgviz.tasks.pruning import trials_of

    model = _open(folder, cell.given, cell.paths, cell.given["device"])
    limit, columns = cell.given["limit"] or None, cell.given["columns"]
    return trials_of(model, _data(cell), columns[0], columns[1], limit=limit)


def _curve_facts(curve: PruningCurve) -> Facts:
    """A curve as JSON: numbers of heads off, and the scores there."""
    columns = {name: [float(value) for value in getattr(curve, name)]
               for name in ("values", "loss", "change")}  # fmt: skip
    return {
        "method": curve.method, "seed": curve.seed, "unit": curve.unit,
        "examples": len(curve.rows), "order": [str(head) for head in curve.order],
        "off": curve.removed.tolist(), **columns,
    }  # fmt: skip


def packed(bits: Sequence[bool]) -> Facts:
    """Booleans as hexadecimal digits."""
    return {"count": len(bits), "bits": np.packbits(np.array(bits, bool)).tobytes().hex()}


def unpacked(facts: Mapping[str, Any]) -> np.ndarray:
    """(count,) booleans from what packed returned."""
    bits = np.unpackbits(np.frombuffer(bytes.fromhex(facts["bits"]), np.uint8))
    return bits[: int(facts["count"])].astype(bool)


# --- studies of several cells ---------------------------------------------------------------------


def study_of(folder: SweepFolder, cells: Sequence[Cell]) -> Study:
    """The measurements of cells of one model and data as one study.

    Each value comes from the first cell that has it. Raises HgvizError for several models, data,
    sets of heads or seeds.
    """
    from hgviz.store import open_study

    studies = [open_study(folder.result_at(cell.key, ".h5")) for cell in cells]
    first = studies[0]
    for study in studies[1:]:
        _require_alike(first, study)
    loss, given = first.loss.copy(), first.given.copy()
    arrays: dict[str, Any] = {}
    for study in studies:
        new = (given == NO_PREDICTION) & study.answered
        loss[new], given[new] = study.loss[new], study.given[new]
        for name, values in study.arrays.items():
            arrays[name] = _filled(arrays.get(name), values)
    curves = {(curve.method, curve.seed, curve.order): curve
              for study in reversed(studies) for curve in study.curves}  # fmt: skip
    learned = {one.method: one for study in reversed(studies) for one in study.learned}
    masks = {mask.name: mask for study in reversed(studies) for mask in study.masks}
    return replace(
        first, loss=loss, given=given, curves=tuple(curves.values()),
        learned=tuple(learned.values()), masks=tuple(masks.values()), path="", arrays=arrays,
    )  # fmt: skip


def _require_alike(a: Study, b: Study) -> None:
    pairs = {
        "models": (a.spec.digest, b.spec.digest),
        "data": (a.data_digest, b.data_digest),
        "sets of heads switched off": (a.off, b.off),
        "seeds": (a.seed, b.seed),
    }
    for name, (in_a, in_b) in pairs.items():
        require(
            in_a == in_b, f"these studies are of two {name}: one study has one", "Keep them apart"
        )


def _filled(old: NDArray[Any] | None, values: NDArray[Any]) -> NDArray[Any]:
    """The measurements of old and, where it has none, those of values; as long as the longer."""
    if old is None:
        return values.copy()
    if len(values) > len(old):
        blank = UNKNOWN if values.dtype == np.int8 else np.nan
        more = np.full((len(values) - len(old), old.shape[1]), blank, old.dtype)
        old = np.concatenate([old, more])
    part = old[: len(values)]
    missing = unmeasured(part)
    part[missing] = values[missing]
    return old


__all__ = ["WORK", "forget_models", "packed", "study_of", "unpacked", "work_in"]
