"""What a cell of a study left, and where: its models, its data, what it measured of heads."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgviz.core import HgvizError
from hgviz.models.texts.labelled import read_rows
from hgviz.store.sweep import SweepFolder
from hgviz.sweep import Cell, Sweep
from hgviz.tasks.cells import study_of

if TYPE_CHECKING:
    from hgviz.study import Study

PLACE = ("data", "model", "activation", "seed")
MOST, WORDS, LONG = 40, 5, 120  # texts that are looked at, words at least, characters at most


@dataclass(frozen=True, slots=True)
class Model:
    """A checkpoint of a study, what its attention is exchanged for, and what people call it."""

    path: str
    activation: str
    name: str


def not_there(what: str, path: str | Path) -> HgvizError:
    """What is said of what a cell left and that is gone, or was never copied."""
    return HgvizError(
        f"{what} is not there", f"it would be at {path}",
        "Open the folder that the study was run into: this may be a copy of its numbers",
    )  # fmt: skip


def folder_of(path: str) -> SweepFolder:
    """The folder of a study."""
    return SweepFolder(path)


def models_of(sweep: Sweep, cell: Cell) -> list[Model]:
    """The models that a cell is of: one, of a comparison A and B."""
    if cell.work == "compare":
        place = cell.place
        first = next(iter(sweep.names("activation")), "")
        of_a = {**place, "activation": first}
        return [
            _model(sweep, cell.given["a"], cell.paths.get("a checkpoint", ""), of_a),
            _model(sweep, cell.given["b"], cell.paths.get("b checkpoint", ""), place),
        ]
    given = {"trained": cell.key} if cell.work == "train" else cell.given
    return [_model(sweep, given, cell.paths.get("checkpoint", ""), cell.place)]


def _model(sweep: Sweep, given: Mapping[str, Any], path: str, place: Mapping[str, str]) -> Model:
    parts = [place.get("model", ""), place.get("activation", "")]
    if "trained" in given:
        parts += [f"seed {place['seed']}"] if place.get("seed") else []
        at = str(folder_of(sweep.path).model_at(str(given["trained"])))
        return Model(at, "", " ".join(filter(None, parts)))
    activation = str(given.get("activation", ""))
    return Model(path, activation, parts[0] or path)


def trained_as(sweep: Sweep | None, path: str) -> str:
    """What a checkpoint is called that a study trained, whose folder is named by a key; "" for
    another. path: of its folder, or what that is named."""
    trained, key = sweep.of("train") if sweep is not None else (), Path(path).name
    one = next((one for one in trained if one.cell.key == key), None)
    return "" if sweep is None or one is None else models_of(sweep, one.cell)[0].name


def data_of(cell: Cell) -> str:
    """The file that a cell is measured on."""
    return cell.paths.get("data", "") or cell.paths.get("valid", "")


def text_of(cell: Cell) -> str:
    """A short text of a cell's data, to look at its model with; "" where there is none."""
    try:
        found = [*read_rows(data_of(cell), *_columns(cell)).texts[:MOST]]
    except HgvizError:  # a text without labels
        with suppress(OSError), open(data_of(cell), encoding="utf-8", errors="replace") as file:
            found = [line.strip()[:LONG] for line in islice(file, MOST)]
            found = [one for one in found if one]
        return found[0] if found else ""
    long = [one for one in found if len(one.split()) >= WORDS]
    return min(long or found, key=len, default="")


def _columns(cell: Cell) -> tuple[str, str]:
    """Which columns hold texts and labels, as the study file says."""
    if cell.work == "train":
        data = cell.given["plan"]["data"]
        return str(data.get("text_column", "")), str(data.get("label_column", ""))
    text, label = cell.given.get("columns", ("", ""))
    return str(text), str(label)


def united_study(sweep: Sweep, cell: Cell) -> Study:
    """All that was measured of the heads of a cell's model on its data, curves and all, so far.

    It lies in no one file: its path is that of the cell, which has a part of it. Errors:
    HgvizError.
    """
    same = [
        one.cell
        for one in sweep.standings
        if one.state == "done" and one.cell.work in ("measure", "curve")
        and all(one.cell.place.get(axis) == cell.place.get(axis) for axis in PLACE)
    ]  # fmt: skip
    folder = folder_of(sweep.path)
    for each in same:
        if not folder.result_at(each.key, ".h5").exists():
            raise not_there(f"What was measured by {each.label}", folder.result_at(each.key, ".h5"))
    found = study_of(folder, same)
    spec = replace(found.spec, name=trained_as(sweep, found.spec.name) or found.spec.name)
    return replace(found, spec=spec, path=str(folder.result_at(cell.key, ".h5")))
