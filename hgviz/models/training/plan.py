"""The training file: TOML tables, checked when they are read."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from hgviz.core import HgvizError
from hgviz.errors import file_error
from hgviz.files import find_sample
from hgviz.models.devices import device_of


class Stage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """From this share of the training on, windows of so many tokens, so many at a time."""

    start: float
    length: int
    batch: int


class Data(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Text files, or labelled rows for a classifier.

    weights: how often a window is drawn from each text file. text_column, label_column: of rows,
    found by themselves where there are two columns.
    """

    train: list[str]
    valid: str
    weights: list[float] = []
    text_column: str = ""
    label_column: str = ""


class Vocabulary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tokenizer trained on the training texts, or taken from a file or folder.

    size: how many pieces at most, special ones included; least: how often a piece must occur.
    """

    kind: Literal["wordpiece", "bpe", "words"] = "wordpiece"
    size: int = 8000
    least: int = 2
    lowercase: bool = True
    file: str = ""


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long and how fast. Give steps, epochs, or minutes of wall time for the schedule.

    batch, length: rows at a time, and tokens they are cut to (0: what the model reads), for
    classifiers; windows have stages. label_smoothing: share of the label given to all classes;
    token_dropout: share of tokens replaced by the unknown one while learning to classify;
    mask: share of tokens to guess, for masked language models. initial: standard deviation of a
    new model's weights; 0.02 is right for widths of some hundreds, narrow models need more.
    """

    steps: int = 0
    epochs: float = 0.0
    minutes: float = 0.0
    rate: float = 1e-3
    floor: float = 0.02
    warmup: int = 100
    decay: float = 0.1
    clip: float = 1.0
    dropout: float = 0.0
    label_smoothing: float = 0.0
    token_dropout: float = 0.0
    mask: float = 0.15
    initial: float = 0.02
    seed: int = 0
    batch: int = 32
    length: int = 0
    stages: tuple[Stage, ...] = (Stage(0.0, 256, 16),)
    autocast: bool = False
    threads: int = 0
    device: str = "cpu"
    save_every: int = 200
    evaluate_every: int = 200
    evaluate_bytes: int = 65_536
    evaluate_length: int = 1024
    store: str = "float32"


PRESSED = ("gates", "causal")  # the methods that have a lambda


class Gating(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Gates of heads that are learnt, see training.gates.

    pressure, in the file lambda: what an open gate costs in nats ("gates"), or how strongly gates
    are pushed on and off ("causal"); keep: how many heads stay ("subset"). rate: the learning rate
    of gates; the weights, where freeze is false, have recipe.rate.
    """

    method: str
    pressure: float = msgspec.field(name="lambda", default=0.0)
    keep: int = 0
    rate: float = 0.1
    freeze: bool = True


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole TOML file: [model], [data], [recipe] and, where there are, [tokenizer], [gates]."""

    model: dict[str, Any]
    data: Data
    recipe: Recipe
    tokenizer: Vocabulary | None = None
    gates: Gating | None = None


def read_plan(path: str | os.PathLike[str]) -> Plan:
    """Read and check a training file; paths in it are relative to it. Errors: HgvizError."""
    try:
        with open(path, "rb") as file:
            told = tomllib.load(file)
    except OSError as error:
        raise file_error(f"cannot read {path}", error) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _no_plan(str(path), error) from error
    return checked(told, Path(path).resolve().parent, str(path))


def checked(told: dict[str, Any], here: Path, name: str = "this") -> Plan:
    """The plan that tables say, its paths relative to a folder. Errors: HgvizError."""
    try:
        plan = msgspec.convert(told, Plan)
    except msgspec.ValidationError as error:
        raise _no_plan(name, error) from error
    _check(plan)
    return _placed(plan, here)


def with_files(told: dict[str, Any], paths: Mapping[str, str]) -> Plan:
    """A checked plan, as msgspec tells it, with files in its places: "train 0", "valid", ...

    Errors: HgvizError where its device is not here.
    """
    plan = msgspec.convert(told, Plan)
    train = [paths[name] for name in sorted(paths) if name.startswith("train ")]
    data = msgspec.structs.replace(plan.data, train=train, valid=paths["valid"])
    model, words = dict(plan.model), plan.tokenizer
    if "from" in paths:
        model["from"] = paths["from"]
    if words is not None and "tokenizer" in paths:
        words = msgspec.structs.replace(words, file=paths["tokenizer"])
    recipe = msgspec.structs.replace(plan.recipe, device=device_of(plan.recipe.device))
    return Plan(model, data, recipe, words, plan.gates)


def _no_plan(name: str, error: Exception) -> HgvizError:
    return HgvizError(
        f"{name} is not a training file: {str(error)}",
        "It has the tables [model], [data] and [recipe]; see docs/training.md",
    )


def _placed(plan: Plan, here: Path) -> Plan:
    """The plan with every path in full; what is not there may be a sample that hgviz brings."""

    def full(name: str) -> str:
        beside = here / name
        return str(beside if beside.exists() else here / find_sample(name))

    data = msgspec.structs.replace(
        plan.data, train=[full(one) for one in plan.data.train], valid=full(plan.data.valid)
    )
    model, words = dict(plan.model), plan.tokenizer
    if "from" in model:
        model["from"] = str(here / model["from"])
    if words is not None and words.file:
        words = msgspec.structs.replace(words, file=str(here / words.file))
    recipe = msgspec.structs.replace(plan.recipe, device=device_of(plan.recipe.device))
    return Plan(model, data, recipe, words, plan.gates)


def _check(plan: Plan) -> None:
    recipe, data = plan.recipe, plan.data
    spans = (recipe.steps, recipe.epochs, recipe.minutes)
    shares = (recipe.dropout, recipe.label_smoothing, recipe.token_dropout)
    wrong = [
        (not data.train, "data.train names no file"),
        (data.weights and len(data.weights) != len(data.train), "data.weights needs one per file"),
        (sum(one > 0 for one in spans) != 1, "recipe needs either steps or minutes or epochs"),
        (not recipe.stages or recipe.stages[0].start != 0, "recipe.stages must begin at start 0"),
        (any(s.length < 2 or s.batch < 1 for s in recipe.stages), "a stage is empty"),
        (min(recipe.save_every, recipe.evaluate_every, recipe.evaluate_length) < 1, "a period < 1"),
        (recipe.batch < 1 or recipe.length < 0, "recipe.batch begins at 1, recipe.length at 0"),
        (any(not 0 <= one < 1 for one in shares), "dropout and smoothing lie from 0 to below 1"),
        (not 0 < recipe.mask < 1, "recipe.mask lies between 0 and 1"),
        (not all(0 < one < math.inf for one in (recipe.rate, recipe.clip)),
         "recipe.rate and recipe.clip are numbers above 0"),
        (not all(0 <= one < math.inf for one in (recipe.decay, recipe.floor, recipe.threads)),
         "recipe.decay, recipe.floor and recipe.threads are at least 0"),
        (not 0 < recipe.initial < 1, "recipe.initial lies between 0 and 1"),
        (recipe.store not in ("float32", "bfloat16"), "recipe.store is float32 or bfloat16"),
        (not isinstance(plan.model.get("from", ""), str), "model.from is the path of a checkpoint"),
        (plan.tokenizer and plan.tokenizer.size < 8, "tokenizer.size is at least 8"),
        (plan.tokenizer and "from" in plan.model, "model.from brings its own tokenizer"),
        (not isinstance(plan.model.get("off", ""), str), 'model.off names heads as "3.5,4.*"'),
        ("off" in plan.model and "from" not in plan.model, "model.off needs model.from"),
        *_wrong_gates(plan),
    ]  # fmt: skip
    for failed, why in wrong:
        if failed:
            raise HgvizError(
                f"this training file cannot be used: {why}", "Change it and start again"
            )


def _wrong_gates(plan: Plan) -> list[tuple[Any, str]]:
    gates = plan.gates
    if gates is None:
        return []
    presses, counts = gates.method in PRESSED, gates.method == "subset"
    return [
        (not (presses or counts),
         f"gates have no method {gates.method[:40]!r}; methods are gates, subset and causal"),
        ("from" not in plan.model, "gates are learned for a model that is there: give model.from"),
        (not math.isfinite(gates.pressure) or (presses and gates.pressure <= 0),
         "gates.lambda is a number above 0"),
        (counts and gates.pressure, "gates.lambda does not go with the method subset"),
        (counts and gates.keep < 1, "the method subset needs gates.keep, at least one head"),
        (presses and gates.keep, f"gates.keep does not go with the method {gates.method}"),
        (not 0 < gates.rate < math.inf, "gates.rate is a number above 0"),
        (gates.method == "causal" and not gates.freeze,
         "causal gates are of a model that stays as it is: freeze = true"),
    ]  # fmt: skip
