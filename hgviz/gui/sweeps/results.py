"""What a cell of a study left, and where: its models, its data, what it measured of heads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hgviz.core import HgvizError
from hgviz.store.sweep import SweepFolder
from hgviz.sweep import Cell, Sweep
from hgviz.tasks.cells import study_of

if TYPE_CHECKING:
    from hgviz.study import Study

PLACE = ("data", "model", "activation", "seed")


@dataclass(frozen=True, slots=True)
class Model:
    """A checkpoint of a study, what its attention is exchanged for, and what people call it."""

    path: str
    activation: str
    name: str

    def missing(self) -> HgvizError:
        """What is said where it is not there any more."""
        return HgvizError(
            f"{self.name} is not there", f"it was at {self.path}",
            "Run the study again: what is missing is computed",
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


def _model(sweep: Sweep, given, path: str, place) -> Model:  # type: ignore[no-untyped-def]
    parts = [place.get("model", ""), place.get("activation", "")]
    if "trained" in given:
        parts += [f"seed {place['seed']}"] if place.get("seed") else []
        at = str(folder_of(sweep.path).model_at(str(given["trained"])))
        return Model(at, "", " ".join(filter(None, parts)))
    activation = str(given.get("activation", ""))
    return Model(path, activation, parts[0] or path)


def data_of(cell: Cell) -> str:
    """The file that a cell is measured on."""
    return cell.paths.get("data", "")


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
    return replace(study_of(folder, same), path=str(folder.result_at(cell.key, ".h5")))
