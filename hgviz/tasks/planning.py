"""What a study file asks for, as cells."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgviz.core import HgvizError, progress
from hgviz.errors import choose, file_error, require
from hgviz.files import find_sample
from hgviz.study import MOST_CELLS, Cell, Source, StudyFile, measured_together, source_name
from hgviz.tasks.opening import Path_

if TYPE_CHECKING:
    from hgviz.models.layers import Configuration
    from hgviz.models.tensors import Checkpoint
    from hgviz.models.training import Plan


def plan(asked: StudyFile, here: Path_) -> tuple[Cell, ...]:
    """All cells of a study file, those that others need first; here: the folder it lies in.

    Files are looked at, for their digests; no model is built. Errors: HgvizError for what is not
    there or cannot be trained.
    """
    progress(0, 1, "loading torch")
    planning = _Planning(asked, Path(here))
    found: list[Cell] = []
    for done, model in enumerate(asked.models):
        progress(done, len(asked.models), f"planning {model['name']}")
        for cells in planning.of_model(model):
            found += cells
    return needed_first(found)


class _Planning:
    """The cells of a study file, model by model."""

    def __init__(self, asked: StudyFile, here: Path) -> None:
        self.asked, self.here = asked, here
        self._digests: dict[str, str] = {}
        self._configs: dict[str, Configuration] = {}
        self._needs()
        self._require_columns()
        self._require_tables()

    def _require_columns(self) -> None:
        """Errors: HgvizError where data lacks a column that the study file names."""
        from hgviz.models.data import require_columns

        trained = any("checkpoint" not in one for one in self.asked.models)
        for source in self.asked.data:
            names = source.text_column, source.label_column
            if any(names):
                for file in (source.valid, *(source.train if trained else ())):
                    require_columns(self._path(file), *names)

    def _require_tables(self) -> None:
        """Errors: HgvizError for what [recipe] and [tokenizer] cannot have, where no model is
        trained by them; where one is, its cell is planned by them."""
        asked = self.asked
        tables = {"recipe": asked.recipe, "tokenizer": asked.tokenizer}
        there = {name: one for name, one in tables.items() if one}
        if not there or any("checkpoint" not in one for one in asked.models):
            return
        from hgviz.models.training import parse_plan

        told = {"model": {}, "data": {"train": [""], "valid": ""}, "recipe": {"steps": 1}}
        named = " and ".join(f"[{name}]" for name in there)
        try:
            training = parse_plan(told | there, self.here)
        except HgvizError as error:
            raise HgvizError(
                f"{named} of this study cannot be used: {error.what}", error.do
            ) from error
        _require_steps(training)

    def _needs(self) -> None:
        """Which arrays the methods are made of. Errors: HgvizError for one that is none."""
        from hgviz.analysis.importance import METHODS

        self.arrays: dict[str, tuple[str, ...]] = {}
        for name in self.asked.methods:
            measured = [key for key, method in METHODS.items() if not method.learned]
            one = METHODS[choose(name, measured, "method of a study")]
            self.arrays[name] = measured_together(one.needs)

    def of_model(self, model: Mapping[str, Any]) -> Iterator[list[Cell]]:
        """The cells of one of [[models]]: of each data and seed, activations side by side."""
        for source in self.asked.data:
            for seed in self.asked.seeds:
                sides = []
                for activation in self.asked.activations:
                    place = {
                        "data": source_name(source), "model": str(model["name"]),
                        "activation": _called(activation), "seed": str(seed),
                    }  # fmt: skip
                    one = _Model(place, *self._model(model, source, activation, seed, place))
                    yield [*one.cells, *self._measured(one, source, seed)]
                    sides.append(one)
                if "compare" in self.asked.asks:
                    yield [self._compared(sides[0], one, source) for one in sides[1:]]

    def _model(
        self, model: Mapping[str, Any], source: Source, activation: Any, seed: int,
        place: Mapping[str, str],
    ) -> tuple[dict[str, Any], dict[str, str], list[Cell]]:  # fmt: skip
        """What opens a model, its paths, and the cell that trains it, if one does."""
        if "checkpoint" in model:
            _only(model, {"name", "checkpoint"})
            if not isinstance(activation, str):
                raise HgvizError(
                    f"a checkpoint such as {model['name']} cannot take {_called(activation)}: "
                    "its activation is exchanged by a name alone",
                    "Give a name as --activation",
                )
            path = self._path(str(model["checkpoint"]))
            given = {"checkpoint": self._checkpoint(path), "activation": activation}
            if activation:
                self._require_activation(path, activation)
            return given, {"checkpoint": path}, []
        cell = self._training(model, source, activation, seed, place)
        return {"trained": cell.key}, {}, [cell]

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
        words = {**self.asked.tokenizer, **model.get("tokenizer", {})}
        recipe = {**self.asked.recipe, **model.get("recipe", {}), "seed": seed}
        # planned where the device need not be: a cluster's front end has no GPU
        recipe |= {"threads": self.asked.threads, "device": "cpu"}
        data = {
            "train": list(source.train), "valid": source.valid,
            "text_column": source.text_column, "label_column": source.label_column,
        }  # fmt: skip
        told = {"model": keys, "data": data, "recipe": recipe}
        training = _read(told | ({"tokenizer": words} if words else {}), self.here, place)
        _require_steps(training)
        whole = msgspec.to_builtins(training)
        paths = {f"train {at}": one for at, one in enumerate(training.data.train)}
        paths["valid"] = training.data.valid
        if training.tokenizer is not None and training.tokenizer.file:
            paths["tokenizer"] = training.tokenizer.file
            whole["tokenizer"]["file"] = ""
        if "from" in training.model:
            paths["from"] = training.model["from"]
            whole["model"] = {**whole["model"], "from": ""}
        whole["data"] |= {"train": [], "valid": ""}
        whole["recipe"]["device"] = self.asked.device
        digests = {
            name: self._checkpoint(path) if name == "from" else self._digest(path)
            for name, path in paths.items()
        }
        return Cell("train", {"plan": whole, "files": digests}, (), paths, dict(place))

    def _measured(self, one: _Model, source: Source, seed: int) -> Iterator[Cell]:
        """What is asked of a model."""
        valid = self._path(source.valid)
        data = {
            "data": self._digest(valid), "columns": [source.text_column, source.label_column],
            "device": self.asked.device, "threads": self.asked.threads,
        }  # fmt: skip
        paths = {**one.paths, "data": valid}
        if "score" in self.asked.asks:
            yield Cell("score", {**one.given, **data}, one.needs, paths, one.place)
        if "curve" not in self.asked.asks:
            return
        how = self.asked.curve
        measuring = {**one.given, **data, "limit": how.limit, "seed": seed}
        measured = {}
        for arrays in dict.fromkeys(self.arrays.values()):
            more = {"permutations": how.permutations} if arrays == ("shapley",) else {}
            given = {**measuring, "arrays": list(arrays), **more}
            measured[arrays] = Cell("measure", given, one.needs, paths, one.place)
        yield from measured.values()
        along = {**measuring, "points": how.points, "least": how.least}
        for method, arrays in self.arrays.items():
            cell = measured[arrays]
            place = {**one.place, "method": method}
            needs = (*one.needs, cell.key)
            yield Cell("curve", {**along, "method": method}, needs, paths, place)
        if how.random:
            cell = next(iter(measured.values()))
            given = {**along, "method": "random", "random": how.random}
            place = {**one.place, "method": "random"}
            yield Cell("curve", given, (*one.needs, cell.key), paths, place)

    def _compared(self, first: _Model, one: _Model, source: Source) -> Cell:
        valid = self._path(source.valid)
        given = {
            "a": first.given, "b": one.given, "data": self._digest(valid),
            "columns": [source.text_column, source.label_column],
            "texts": self.asked.compare.texts, "limit": self.asked.compare.limit,
            "device": self.asked.device, "threads": self.asked.threads,
        }  # fmt: skip
        paths = {"data": valid}
        for side, model in (("a", first), ("b", one)):
            paths |= {f"{side} {name}": path for name, path in model.paths.items()}
        needs = tuple(dict.fromkeys((*first.needs, *one.needs)))
        return Cell("compare", given, needs, paths, one.place)

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

            found = checkpoints.read(path)
            self._digests[path], self._configs[path] = digest_of_model(found), found.config
        return self._digests[path]

    def _require_activation(self, path: str, activation: str) -> None:
        """Errors: HgvizError for one that is none, or that the checkpoint cannot have."""
        from hgviz.models.model import with_activation

        with_activation(self._configs[path], activation)


class _Model:
    """A model of the grid: what opens it, where it lies, and what trains it."""

    def __init__(
        self, place: dict[str, str], given: dict[str, Any], paths: dict[str, str], cells: list[Cell]
    ) -> None:
        self.place, self.given, self.paths, self.cells = place, given, paths, cells
        self.needs = tuple(one.key for one in cells)


def digest_of_file(path: Path_) -> str:
    """SHA-256 of a file, hexadecimal. Errors: HgvizError where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise file_error(f"cannot read {path}", error) from error


def digest_of_model(found: Checkpoint) -> str:
    """What a checkpoint is, and how it reads texts: its own digest where it reads bytes or ids,
    else one that its tokenizer is part of. Errors: HgvizError for a tokenizer that does not fit."""
    from hgviz.models.checkpoints import tokenizer_json

    words = tokenizer_json(found)
    if words is None:
        return found.digest
    return hashlib.sha256(found.digest.encode() + hashlib.sha256(words).digest()).hexdigest()


def _require_steps(training: Plan) -> None:
    if training.recipe.minutes:
        raise HgvizError(
            "a study does not train for minutes: what comes out would depend on the machine",
            "Give recipe.steps or recipe.epochs",
        )


def _read(told: dict[str, Any], here: Path, place: Mapping[str, str]) -> Plan:
    """A training file as a study tells it; a key that is none shows before anything is trained."""
    from hgviz.models.config import parse_config
    from hgviz.models.training import goal_of, parse_plan

    try:
        training = parse_plan(told, here)
        if "from" not in training.model:
            words = training.tokenizer
            # as the data will have it: ids and labels are not known before the texts are read
            likely = {"model_type": "hgviz", "vocab_size": words.size if words else 256}
            labels = {"labels": ["0", "1"]} if goal_of(training.model) == "classes" else {}
            parse_config(likely | labels | training.model, "[model]")
    except HgvizError as error:
        name = f"{place['model']} of this study"
        if place["activation"] != "own":
            name += f" with {place['activation']}"
        what_to_do = error.do
        if "knows no" in error.what and "family" not in told["model"]:
            what_to_do = "Give its family, such as bert: without one it is an hourglass"
        raise HgvizError(f"{name} cannot be trained: {error.what}", what_to_do) from error
    return training


def _called(activation: Any) -> str:
    if isinstance(activation, str):
        return activation or "own"
    name = str(activation.get("name", ""))
    require(name, "an activation of this study has no name: it is a table", "Give it one")
    return name


def _only(model: Mapping[str, Any], known: set[str]) -> None:
    more = sorted(set(model) - known)
    if more:
        raise HgvizError(
            f"{model['name']} is a checkpoint, so it takes no {more[0]}: "
            "a model that is there is not trained",
            "Leave it out, or leave out checkpoint",
        )


def needed_first(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Cells, each once, those that others need before them. Errors: HgvizError for too many."""
    unique = {one.key: one for one in cells}
    if len(unique) > MOST_CELLS:
        raise HgvizError(
            f"this study has {len(unique):,} cells: at most {MOST_CELLS:,} are run",
            "Ask for fewer seeds, sizes or methods",
        )
    found: dict[str, Cell] = {}

    def put(cell: Cell) -> None:
        for key in cell.needs:
            if key in unique and key not in found:
                put(unique[key])
        found.setdefault(cell.key, cell)

    for one in unique.values():
        put(one)
    return tuple(found.values())


__all__ = ["digest_of_file", "digest_of_model", "plan"]
