"""What a cell of a sweep does, wherever it is computed: one row of WORK for each kind.

A cell is a pure function of what its key is made of. It opens its model itself, with as many
threads as the study says, and leaves one result file; so the same study gives the same numbers in
one process and on a cluster.
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
from hgviz.errors import to_hgviz_error
from hgviz.study import NO_PREDICTION, UNKNOWN, Cell, PruningCurve, Study

if TYPE_CHECKING:
    from hgviz.models.model import Model
    from hgviz.models.trials import Trials
    from hgviz.store.studies import SweepFolder

Facts = dict[str, Any]
Measure = Callable[["SweepFolder", Cell], Facts]
MODELS = 2  # that a process keeps open from one cell to the next: both sides of a comparison

_models: OrderedDict[tuple[str, ...], Model] = OrderedDict()


def work_in(path: str, measure: Measure | None = None) -> Callable[[Cell], Outcome]:
    """What computes the cells of a folder; measure: what gives the result of one, see WORK."""
    return partial(_computed, path, measure or _measured)


def _computed(path: str, measure: Measure, cell: Cell) -> Outcome:
    """Compute a cell to its result file, or to the file that says why it failed."""
    from hgviz.store.studies import SweepFolder

    folder = SweepFolder(path)
    if folder.is_done(cell.key):  # by a worker that died before it could say so
        return "done"
    if folder.is_failed(cell.key):
        return "failed"
    begun = time.perf_counter()
    try:
        found = measure(folder, cell)
        folder.keep(cell.key, found, _made(time.perf_counter() - begun))
    except Exception as error:
        if _is_full_disk(error):
            raise HgvizError("the disk is full: "
f"what is done is kept in {folder.path}",
"Free some space, then run the same command") from error  # fmt: skip
        line, details = to_hgviz_error(error).lines, traceback.format_exception(error)
        folder.fail(cell.key, " ".join(line), "".join(details))
        return "failed"
    return "done"


def _is_full_disk(error: BaseException | None) -> bool:
    """Whether an error, or one that it hides, is a full disk, which would stop every other cell."""
    from hgviz.store.hdf5 import is_full

    while error is not None:
        if is_full(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _made(seconds: float) -> dict[str, Any]:
    """Where and by what a result was computed."""
    from hgviz.tasks.capturing import versions

    return {
        "seconds": seconds, "host": socket.gethostname(), "program": hgviz.__version__,
        "versions": dict(versions()),
    }  # fmt: skip


def _measured(folder: SweepFolder, cell: Cell) -> Facts:
    progress(0, 1, "loading torch")
    from hgviz.models import devices

    if cell.work not in WORK:
        raise HgvizError(
            f"there is no work {cell.work[:40]!r}: another version of hgviz planned it",
            "Run the study with that version",
        )
    threads = cell.given.get("threads") or cell.given["plan"]["recipe"]["threads"]
    with devices.threads(int(threads)):
        return WORK[cell.work](folder, cell)


# --- the kinds ------------------------------------------------------------------------------------


def _train(folder: SweepFolder, cell: Cell) -> Facts:
    """Train a model into the folder; a try that died is gone on with from its last snapshot."""
    from hgviz.models import training

    for name, path in cell.paths.items():
        _require_same(name, path, cell.given["files"][name])
    plan = training.plan_with_files(cell.given["plan"], cell.paths)
    out = folder.model_at(cell.key)
    if not (out / training.STATE).exists():
        shutil.rmtree(out, ignore_errors=True)  # of a result that somebody deleted
    report = training.train(plan, out, keep_state=True)
    return {
        "metric": report.metric, "value": report.value, "figures": report.figures,
        "steps": report.steps, "digest": _open(folder, {"trained": cell.key}, {}).spec.digest,
    }  # fmt: skip


def _score(folder: SweepFolder, cell: Cell) -> Facts:
    """What a model reaches on data, text by text where it is right or wrong."""
    from hgviz.tasks.scoring import evaluate

    model = _open(folder, cell.given, cell.paths, cell.given["device"])
    data = _data(cell)
    found = evaluate(model, data, *cell.given["columns"])
    return {
        **found.to_dict(), "parameters": model.spec.parameters, "model": model.spec.digest,
        **({} if found.right is None else {"right": packed(found.right)}),
    }  # fmt: skip


def _measure(folder: SweepFolder, cell: Cell) -> Facts:
    """Some arrays of what every head is worth, as a study beside the result."""
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
    """What is left as heads go, along the order of one method or along random ones."""
    from hgviz.store import open_study, write_study
    from hgviz.tasks.pruning import curve, random_curves

    trials = _trials(folder, cell)
    how = cell.given
    study = replace(open_study(folder.result_at(cell.needs[-1], ".h5")), path="")
    if how["method"] == "random":
        found = random_curves(trials, study, how["random"], how["least"], how["points"])
    else:
        method, least, most = how["method"], how["least"], how["points"]
        found = curve(trials, study, method, random=0, least=least, most=most)
    write_study(folder.result_at(cell.key, ".h5"), found, force=True)
    return {"curves": [_told(one) for one in found.curves], "heads": len(found.heads)}


def _compare(folder: SweepFolder, cell: Cell) -> Facts:
    """Two models beside each other, as `hgviz compare --data` says it."""
    from hgviz.tasks.comparison import compare_models

    sides = []
    for side in "ab":
        begins = f"{side} "
        paths = {name.removeprefix(begins): path for name, path in cell.paths.items()
                 if name.startswith(begins)}  # fmt: skip
        sides.append(_open(folder, cell.given[side], paths, cell.given["device"]))
    text_column, label_column = cell.given["columns"]
    found = compare_models(
        sides[0], sides[1], _data(cell), "", text_column, label_column,
        limit=cell.given["limit"] or None, texts=cell.given["texts"],
    )  # fmt: skip
    return found.to_dict()


WORK: Mapping[str, Callable[[SweepFolder, Cell], Facts]] = {
    "train": _train, "score": _score, "measure": _measure, "curve": _curve, "compare": _compare,
}  # fmt: skip


# --- inside ---------------------------------------------------------------------------------------


def _open(
    folder: SweepFolder, given: Mapping[str, Any], paths: Mapping[str, str], device: str = "cpu"
) -> Model:
    """The model of a cell: one that the study trained, or a checkpoint as it was planned."""
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
    """Errors: HgvizError where a file is another one than was planned with."""
    from hgviz.models import checkpoints
    from hgviz.tasks.planning import digest_of_file, digest_of_model

    now = digest_of_model(checkpoints.read(path)) if name == "from" else digest_of_file(path)
    if now != digest:
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


def _told(one: Any) -> Facts:
    """A curve as JSON: shares of heads that are off, and what is left."""
    return {
        "method": one.method, "seed": one.seed, "unit": one.unit, "examples": len(one.rows),
        "order": [str(head) for head in one.order], "off": one.removed.tolist(),
        **{name: [float(x) for x in getattr(one, name)] for name in ("values", "loss", "change")},
    }  # fmt: skip


def packed(bits: Sequence[bool]) -> Facts:
    """Many yes and no as hexadecimal digits."""
    return {"count": len(bits), "bits": np.packbits(np.array(bits, bool)).tobytes().hex()}


def unpacked(told: Mapping[str, Any]) -> np.ndarray:
    """(count,) bool: what packed was given."""
    found = np.unpackbits(np.frombuffer(bytes.fromhex(told["bits"]), np.uint8))
    return found[: int(told["count"])].astype(bool)


def study_of(folder: SweepFolder, cells: Sequence[Cell]) -> Study:
    """What some cells of one model and data measured, as one study."""
    from hgviz.store import open_study

    return united([open_study(folder.result_at(one.key, ".h5")) for one in cells])


def united(studies: Sequence[Study]) -> Study:
    """Studies of one model, data and set of heads as one: each value from the first that has it.

    Errors: HgvizError where they are of several.
    """
    first = studies[0]
    for one in studies[1:]:
        _require_alike(first, one)
    loss, given = first.loss.copy(), first.given.copy()
    arrays: dict[str, Any] = {}
    for one in studies:
        new = (given == NO_PREDICTION) & one.answered
        loss[new], given[new] = one.loss[new], one.given[new]
        for name, values in one.arrays.items():
            arrays[name] = _filled(arrays.get(name), values)
    curves = {_curve_key(curve): curve for one in reversed(studies) for curve in one.curves}
    learned = {curve.method: curve for one in reversed(studies) for curve in one.learned}
    masks = {mask.name: mask for one in reversed(studies) for mask in one.masks}
    return replace(
        first, loss=loss, given=given, curves=tuple(curves.values()),
        learned=tuple(learned.values()), masks=tuple(masks.values()), path="", arrays=arrays,
    )  # fmt: skip


def _require_alike(one: Study, other: Study) -> None:
    pairs = {
        "models": (one.spec.digest, other.spec.digest),
        "data": (one.data_digest, other.data_digest),
        "sets of heads switched off": (one.off, other.off),
        "seeds": (one.seed, other.seed),
    }
    for words, (mine, its) in pairs.items():
        if mine != its:
            raise HgvizError(
                f"these studies are of two {words}: one study has one", "Keep them apart"
            )


def _filled(old: NDArray[Any] | None, values: NDArray[Any]) -> NDArray[Any]:
    """What is measured in old, then what is in values; the longer of both."""
    if old is None:
        return values.copy()
    if len(values) > len(old):
        nothing = UNKNOWN if values.dtype == np.int8 else np.nan
        old = np.concatenate(
            [old, np.full((len(values) - len(old), old.shape[1]), nothing, old.dtype)]
        )
    part = old[: len(values)]
    missing = part == UNKNOWN if values.dtype == np.int8 else np.isnan(part)
    part[missing] = values[missing]
    return old


def _curve_key(one: PruningCurve) -> tuple[Any, ...]:
    return one.method, one.seed, one.order


__all__ = ["WORK", "forget_models", "packed", "study_of", "unpacked", "work_in"]
