"""The cells that a study file asks for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgviz.core import HgvizError, progress
from hgviz.errors import choose, file_error, require
from hgviz.files import find_sample
from hgviz.study import MOST_CELLS, Cell, Source, StudyFile, measured_together, source_name

if TYPE_CHECKING:
    from hgviz.models.layers import Configuration
    from hgviz.models.tensors import Checkpoint
    from hgviz.models.training import Plan


def plan(asked: StudyFile, here: str | Path) -> tuple[Cell, ...]:
    """All cells of a study file, those that others need first; here: the folder it lies in.

    Files are read for their digests; no model is built. Raises HgvizError for what is not there or
    cannot be trained.
    """
    progress(0, 1, "loading torch")
    planning = _Planning(asked, Path(here))
    cells: list[Cell] = []
    for number, model in enumerate(asked.models):
        progress(number, len(asked.models), f"planning {model['name']}")
        cells += planning.cells_of(model)
    return needed_first(cells)


class _Planning:
    """The cells of a study file, model by model."""

    def __init__(self, asked: StudyFile, here: Path) -> None:
        self.asked, self.here = asked, here
        self._digests: dict[str, str] = {}
        self._configs: dict[str, Configuration] = {}
        self._arrays_of_methods()
        self._require_columns()
        self._require_tables()

    def _arrays_of_methods(self) -> None:
        """The arrays that each method is made of. Raises HgvizError for an unknown method."""
        from hgviz.analysis.importance import METHODS

        names = [name for name, method in METHODS.items() if not method.learned]
        self.arrays = {
            name: measured_together(METHODS[choose(name, names, "method of a study")].needs)
            for name in self.asked.methods
        }

    @property
    def _trains(self) -> bool:
        """Whether the study trains a model."""
        return any("checkpoint" not in model for model in self.asked.models)

    def _require_columns(self) -> None:
        """Require the columns that the study file names. Raises HgvizError."""
        from hgviz.models.data import require_columns

        for source in self.asked.data:
            columns = source.text_column, source.label_column
            if any(columns):
                for file in (source.valid, *(source.train if self._trains else ())):
                    require_columns(self._path(file), *columns)

    def _require_tables(self) -> None:
        """Require sound [recipe] and [tokenizer] where no model is trained by them; where one is,
        the plan of its cell is checked. Raises HgvizError."""
        named = {"recipe": self.asked.recipe, "tokenizer": self.asked.tokenizer}
        tables = {name: table for name, table in named.items() if table}
        if not tables or self._trains:
            return
        from hgviz.models.training import parse_plan

        smallest = {"model": {}, "data": {"train": [""], "valid": ""}, "recipe": {"steps": 1}}
        try:
            training = parse_plan(smallest | tables, self.here)
        except HgvizError as error:
            names = " and ".join(f"[{name}]" for name in tables)
            raise HgvizError(
                f"{names} of this study cannot be used: {error.what}", error.do
            ) from error
        _require_steps(training)

    def cells_of(self, model: Mapping[str, Any]) -> Iterator[Cell]:
        """The cells of one of [[models]]: of each data and seed, activation after activation."""
        for source in self.asked.data:
            for seed in self.asked.seeds:
                opened = []
                for activation in self.asked.activations:
                    place = {
                        "data": source_name(source), "model": str(model["name"]),
                        "activation": _activation_name(activation), "seed": str(seed),
                    }  # fmt: skip
                    one = self._model(model, source, activation, seed, place)
                    yield from one.cells
                    yield from self._measurements(one, source, seed)
                    opened.append(one)
                if "compare" in self.asked.asks:
                    for one in opened[1:]:
                        yield self._comparison(opened[0], one, source)

    def _model(
        self, model: Mapping[str, Any], source: Source, activation: Any, seed: int,
        place: dict[str, str],
    ) -> _Model:  # fmt: skip
        if "checkpoint" not in model:
            cell = self._training(model, source, activation, seed, place)
            return _Model(place, {"trained": cell.key}, {}, (cell,))
        name = model["name"]
        if more := sorted(set(model) - {"name", "checkpoint"}):
            raise HgvizError(
                f"{name} is a checkpoint, so it takes no {more[0]}: "
                "a model that is there is not trained",
                "Leave it out, or leave out checkpoint",
            )
        require(
            isinstance(activation, str),
            f"a checkpoint such as {name} cannot take {_activation_name(activation)}: "
            "its activation is exchanged by a name alone",
            "Give a name as --activation",
        )
        path = self._path(str(model["checkpoint"]))
        given = {"checkpoint": self._checkpoint(path), "activation": activation}
        if activation:
            from hgviz.models.model import with_activation

            with_activation(self._configs[path], activation)  # refuses what the model cannot have
        return _Model(place, given, {"checkpoint": path})

    def _training(
        self, model: Mapping[str, Any], source: Source, activation: Any, seed: int,
        place: Mapping[str, str],
    ) -> Cell:  # fmt: skip
        """The cell that trains a model."""
        import msgspec

        keys = {k: v for k, v in model.items() if k not in ("name", "recipe", "tokenizer")}
        if isinstance(activation, dict):
            keys |= {k: v for k, v in activation.items() if k != "name"}
        elif activation:
            keys["activations"] = activation
        tokenizer = {**self.asked.tokenizer, **model.get("tokenizer", {})}
        recipe = {**self.asked.recipe, **model.get("recipe", {}), "seed": seed}
        # planned where the device need not be: a cluster's front end has no GPU
        recipe |= {"threads": self.asked.threads, "device": "cpu"}
        data = {
            "train": list(source.train), "valid": source.valid,
            "text_column": source.text_column, "label_column": source.label_column,
        }  # fmt: skip
        tables = {"model": keys, "data": data, "recipe": recipe}
        if tokenizer:
            tables["tokenizer"] = tokenizer
        training = _parse_training(tables, self.here, place)
        _require_steps(training)
        plan = msgspec.to_builtins(training)
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
            name: self._checkpoint(path) if name == "from" else self._digest(path)
            for name, path in paths.items()
        }
        return Cell("train", {"plan": plan, "files": digests}, (), paths, dict(place))

    def _measurements(self, model: _Model, source: Source, seed: int) -> Iterator[Cell]:
        """The cells that score a model, measure its heads and prune it."""
        valid = self._path(source.valid)
        data = {
            "data": self._digest(valid), "columns": [source.text_column, source.label_column],
            "device": self.asked.device, "threads": self.asked.threads,
        }  # fmt: skip
        paths = {**model.paths, "data": valid}
        if "score" in self.asked.asks:
            yield Cell("score", {**model.given, **data}, model.needs, paths, model.place)
        if "curve" not in self.asked.asks:
            return
        curve = self.asked.curve
        study = {**model.given, **data, "limit": curve.limit, "seed": seed}
        measured = {}
        for arrays in dict.fromkeys(self.arrays.values()):
            more = {"permutations": curve.permutations} if arrays == ("shapley",) else {}
            given = {**study, "arrays": list(arrays), **more}
            measured[arrays] = Cell("measure", given, model.needs, paths, model.place)
        yield from measured.values()
        orders: dict[str, tuple[Cell, dict[str, Any]]] = {
            method: (measured[arrays], {}) for method, arrays in self.arrays.items()
        }
        if curve.random:
            orders["random"] = next(iter(measured.values())), {"random": curve.random}
        along = {**study, "points": curve.points, "least": curve.least}
        for method, (cell, more) in orders.items():
            given = {**along, "method": method, **more}
            place = {**model.place, "method": method}
            yield Cell("curve", given, (*model.needs, cell.key), paths, place)

    def _comparison(self, a: _Model, b: _Model, source: Source) -> Cell:
        valid = self._path(source.valid)
        given = {
            "a": a.given, "b": b.given, "data": self._digest(valid),
            "columns": [source.text_column, source.label_column],
            "texts": self.asked.compare.texts, "limit": self.asked.compare.limit,
            "device": self.asked.device, "threads": self.asked.threads,
        }  # fmt: skip
        paths = {"data": valid}
        for side, model in (("a", a), ("b", b)):
            paths |= {f"{side} {name}": path for name, path in model.paths.items()}
        needs = tuple(dict.fromkeys((*a.needs, *b.needs)))
        return Cell("compare", given, needs, paths, b.place)

    # --- files ------------------------------------------------------------------------------------

    def _path(self, name: str) -> str:
        """A file beside the study file, or a sample that hgviz brings."""
        beside = self.here / name
        return str((beside if beside.exists() else self.here / find_sample(name)).resolve())

    def _digest(self, path: str) -> str:
        if path not in self._digests:
            self._digests[path] = digest_of_file(path)
        return self._digests[path]

    def _checkpoint(self, path: str) -> str:
        if path not in self._digests:
            from hgviz.models import checkpoints

            checkpoint = checkpoints.read(path)
            self._digests[path] = digest_of_model(checkpoint)
            self._configs[path] = checkpoint.config
        return self._digests[path]


@dataclass(frozen=True, slots=True)
class _Model:
    """A model of the grid: its place there, what opens it, its paths, and what trains it."""

    place: dict[str, str]
    given: dict[str, Any]
    paths: dict[str, str]
    cells: tuple[Cell, ...] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        """The keys of the cells that train it."""
        return tuple(cell.key for cell in self.cells)


def digest_of_file(path: str | Path) -> str:
    """SHA-256 of a file, hexadecimal. Raises HgvizError where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise file_error(f"cannot read {path}", error) from error


def digest_of_model(checkpoint: Checkpoint) -> str:
    """A digest of a checkpoint and its tokenizer; of a checkpoint that reads bytes or ids its own.

    Raises HgvizError for a tokenizer that does not fit.
    """
    from hgviz.models.checkpoints import tokenizer_json

    tokenizer = tokenizer_json(checkpoint)
    if tokenizer is None:
        return checkpoint.digest
    both = checkpoint.digest.encode() + hashlib.sha256(tokenizer).digest()
    return hashlib.sha256(both).hexdigest()


def _require_steps(training: Plan) -> None:
    require(
        not training.recipe.minutes,
        "a study does not train for minutes: what comes out would depend on the machine",
        "Give recipe.steps or recipe.epochs",
    )


def _parse_training(tables: dict[str, Any], here: Path, place: Mapping[str, str]) -> Plan:
    """The plan of a training by the tables of a study file; an unknown key is refused before
    anything is trained. Raises HgvizError."""
    from hgviz.models.config import parse_config
    from hgviz.models.training import goal_of, parse_plan

    try:
        training = parse_plan(tables, here)
        if "from" not in training.model:
            # ids and labels are not known before the texts are read
            size = training.tokenizer.size if training.tokenizer else 256
            likely = {"model_type": "hgviz", "vocab_size": size}
            labels = {"labels": ["0", "1"]} if goal_of(training.model) == "classes" else {}
            parse_config(likely | labels | training.model, "[model]")
    except HgvizError as error:
        name = f"{place['model']} of this study"
        if place["activation"] != "own":
            name += f" with {place['activation']}"
        do = error.do
        if "knows no" in error.what and "family" not in tables["model"]:
            do = "Give its family, such as bert: without one it is an hourglass"
        raise HgvizError(f"{name} cannot be trained: {error.what}", do) from error
    return training


def _activation_name(activation: Any) -> str:
    if isinstance(activation, str):
        return activation or "own"
    name = str(activation.get("name", ""))
    require(name, "an activation of this study has no name: it is a table", "Give it one")
    return name


def needed_first(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Cells, each once, those that others need before them. Raises HgvizError for too many."""
    unique = {cell.key: cell for cell in cells}
    require(
        len(unique) <= MOST_CELLS,
        f"this study has {len(unique):,} cells: at most {MOST_CELLS:,} are run",
        "Ask for fewer seeds, sizes or methods",
    )
    ordered: dict[str, Cell] = {}

    def add(cell: Cell) -> None:
        for key in cell.needs:
            if key in unique and key not in ordered:
                add(unique[key])
        ordered.setdefault(cell.key, cell)

    for cell in unique.values():
        add(cell)
    return tuple(ordered.values())


__all__ = ["digest_of_file", "digest_of_model", "plan"]
