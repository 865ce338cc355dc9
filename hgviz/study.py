"""What was measured of a model's heads on some data, and the file that asks for many such studies.

A Study is arrays, from which every report is made without a model: losses are in nats, heads stand
in order of computation, and what a running study has not reached yet is NaN (UNKNOWN where right
and wrong are compared), so that it can be saved at any time. A study file asks for runs of many
models on many data; here that is a Sweep of Cells.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from hgviz.core import (
    Ablation,
    Floats,
    HeadId,
    HeadSet,
    Integers,
    MetricEstimate,
    ModelSpec,
    Provenance,
    readonly,
)
from hgviz.errors import HgvizError
from hgviz.examples import Asked, describe_sample

# --- measured arrays ------------------------------------------------------------------------------

SCORE = "michel"  # the score that is measured unless another is asked for (statistics.md)
UNKNOWN = -128  # in `change`: not measured yet
NO_PREDICTION = -1  # in `given`: not answered yet


def default_score(spec: ModelSpec) -> str:
    """The score that orders the heads of a model: hidden states have no loss and so no slopes."""
    return "loo" if spec.goal == "states" else SCORE


@dataclass(frozen=True, slots=True)
class HeadArray:
    """One kind of measurement of all heads, an array of a study with a column for each head.

    rows: what a row is. step: the part of the measuring that gives it, together with the other
    arrays of this step. meaning: as the list of fields of a file says it. A score may bring an
    array of its own, see analysis.importance.Method: its rows are examples.
    """

    rows: Literal["examples", "places", "permutations"]
    step: str
    meaning: str
    dtype: str = "f4"


ARRAYS: dict[str, HeadArray] = {
    "gradient": HeadArray("examples", "gradients", "gradient of the loss by the gate of the head"),
    "token_gradient": HeadArray(
        "examples", "gradients", "sum over tokens of the absolute parts of this gradient"
    ),
    "loss_change": HeadArray("places", "each head off", "loss with the head off - loss"),
    "change": HeadArray(
        "places", "each head off",
        "1 wrong to right, -1 right to wrong, 0 neither, -128 not measured yet", "i1",
    ),
    "alone": HeadArray(
        "places", "each head alone", "loss with only this head on in its layer - loss"
    ),
    "shapley": HeadArray(
        "permutations", "random orders",
        "change of the mean loss when a head is switched on, one random order per row",
    ),
}  # fmt: skip


def measured_together(name: str) -> tuple[str, ...]:
    """The arrays that the same step of the measuring gives as this one, itself among them."""
    if name not in ARRAYS:
        return (name,)
    return tuple(sorted(other for other in ARRAYS if ARRAYS[other].step == ARRAYS[name].step))


def unmeasured(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Where an array of a study has no measurement yet."""
    missing: NDArray[np.bool_] = values == UNKNOWN if values.dtype == np.int8 else np.isnan(values)
    return missing


@dataclass(frozen=True, slots=True, eq=False)
class PruningCurve:
    """Metric and loss against the number of heads off, in one order.

    method names the score that made the order ("random": none did, drawn with seed). removed
    (points,): how many of the first heads are off, ascending from 0. values, low, high (points,):
    the metric there with its interval of 95 %; loss (points,): mean nats. change, change_low,
    change_high (points,): the metric's paired change from the baseline. rows (n,): the examples it
    was measured on, not those of the order. unit: what the metric is, as in MetricEstimate.metric.
    times (points, 2): milliseconds of one pass over 16 texts on one core, of the whole model and of
    one that really lacks the heads, taking turns; medians (models.pruning). None: not measured.
    """

    method: str
    order: tuple[HeadId, ...]
    removed: Integers
    values: Floats
    low: Floats
    high: Floats
    loss: Floats
    change: Floats
    change_low: Floats
    change_high: Floats
    rows: Integers
    seed: int = 0
    unit: str = "accuracy"
    times: Floats | None = None

    def __post_init__(self) -> None:
        _make_readonly(self)

    def off(self, removed: int) -> HeadSet:
        """The heads that are off after so many steps."""
        return frozenset(self.order[:removed])


@dataclass(frozen=True, slots=True, eq=False)
class LearnedImportance:
    """Importance of each head learned in training: runs (runs, heads), one per seed, high where
    the head is needed.

    method "gates": hard-concrete gates at test time, 0 to 1. note: how, for people.
    """

    method: str
    runs: Floats
    note: str = ""

    def __post_init__(self) -> None:
        _make_readonly(self)


@dataclass(frozen=True, slots=True)
class Mask:
    """Heads switched off under a name, and what the model then scored.

    change: the score's difference to the whole model on the same places, and its interval.
    """

    name: str
    off: HeadSet
    score: MetricEstimate | None = None
    change: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """Measurements of all heads of one model on one set of examples. E examples, P places, H heads.

    spec.digest is the checkpoint's, data_digest that of Examples, data the name of the file. off:
    heads that are off in the baseline, whose columns stay NaN. ablation: what takes the place of a
    head that is off. texts: how many texts the examples
    of a language model are windows of, 0 of a classifier. metric as in MetricEstimate. seed: of
    whatever is drawn.

    places (E + 1,), wanted (P,): as in Examples; lengths (E,) tokens; sizes (E,) bytes of what is
    wanted, 0 where nobody counts them. loss (P,), given (P,): the losses and answers of the
    baseline, NO_PREDICTION where there is none yet.

    arrays: what was measured of all heads, by name, see ARRAYS.
    gradient (E, H): G, the slope of an example's loss, the sum over its places, with the gate of
    a head. token_gradient (E, H): the sum over tokens of abs(context . dL/dcontext).
    loss_change (P, H): D, loss with the head off - loss; change (P, H): C, 1 wrong to right, -1
    right to wrong, 0 neither. alone (P, H): loss with only this head on in its layer - loss.
    shapley (permutations, H): what switching the head on did to the mean loss, in a random order
    each; every row sums to L(all) - L(none). Others (E, H): of a score that measures its own.

    saved_parameters, saved_flops (H, 3): what `prune` removes with each head, with its key group
    once all heads of that are off, and with its layer likewise; FLOPs in a mean example, see
    analysis.importance.removal_costs. None where weights do not go by heads.
    """

    spec: ModelSpec
    heads: tuple[HeadId, ...]
    asked: Asked
    metric: str
    places: Integers
    wanted: Integers
    lengths: Integers
    loss: Floats
    given: Integers
    data: str = ""
    data_digest: str = ""
    labels: tuple[str, ...] = ()
    texts: int = 0
    seed: int = 0
    off: HeadSet = frozenset()
    ablation: Ablation = "zero"
    sizes: NDArray[np.float64] | None = None
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    saved_parameters: NDArray[np.float64] | None = None
    saved_flops: NDArray[np.float64] | None = None
    learned: tuple[LearnedImportance, ...] = ()
    curves: tuple[PruningCurve, ...] = ()
    masks: tuple[Mask, ...] = ()
    made: Provenance = field(default_factory=Provenance)
    path: str = ""

    def __post_init__(self) -> None:
        _make_readonly(self)
        names = *ARRAYS, *sorted({*self.arrays} - {*ARRAYS})
        object.__setattr__(
            self,
            "arrays",
            {name: readonly(self.arrays[name]) for name in names if name in self.arrays},
        )

    def __len__(self) -> int:
        """How many examples it is about."""
        return len(self.places) - 1

    def amount(self, examples: int | None = None) -> str:
        """What it is measured on, in words; examples: only so many of them."""
        return describe_sample(self.asked, len(self), self.texts, examples)

    @property
    def counts(self) -> Integers:
        """(E,): how many places each example has."""
        return readonly(np.diff(self.places))

    @property
    def right(self) -> NDArray[np.bool_]:
        """(P,): whether the whole model gave what was wanted."""
        return readonly(self.given == self.wanted)

    @property
    def answered(self) -> NDArray[np.bool_]:
        """(P,): whether the whole model has been asked."""
        return readonly(self.given != NO_PREDICTION)

    def measured(self) -> dict[str, float]:
        """Which share of each array that there is has been measured, of heads that are not off."""
        on = [head not in self.off for head in self.heads]
        shares = {"loss": float(self.answered.mean())}
        for name, array in self.arrays.items():
            known = ~unmeasured(array[:, on])
            shares[name] = float(known.mean()) if known.size else 1.0
        return shares

    def costs(self, key: str) -> NDArray[np.float64]:
        """saved_parameters or saved_flops. Raises HgvizError where the study has none."""
        costs: NDArray[np.float64] | None = getattr(self, f"saved_{key}")
        if costs is None:
            raise HgvizError(
                f"the study does not know the {key} of single heads: "
                "the weights of its model do not divide by heads, or an older hgviz measured it",
                "Use heads instead, or measure the study again",
            )
        return costs

    def places_of(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        """(P,): which places belong to some examples, by number or as a mask (E,)."""
        chosen = np.zeros(len(self), bool)
        chosen[rows] = True
        return np.repeat(chosen, self.counts)


def _make_readonly(measurement: Any) -> None:
    for field_ in fields(measurement):
        value = getattr(measurement, field_.name)
        if isinstance(value, np.ndarray):
            object.__setattr__(measurement, field_.name, readonly(value))


# --- the file that asks for many ------------------------------------------------------------------

AXES = ("data", "model", "activation", "seed", "method")  # of a grid, as shown
DEVICES = ("cpu", "cuda", "mps")  # "auto" would be another one on another machine
MOST_CELLS = 1_000_000
MOST_BYTES = 1 << 20  # of a study file
CellKey = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{24}\Z")]
State = Literal["waiting", "done", "failed", "blocked"]
Ask = Literal["score", "curve", "compare"]


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[[data]]: what models are trained on, where they are, and measured on."""

    valid: str
    name: str = ""
    train: tuple[str, ...] = ()
    text_column: str = ""
    label_column: str = ""


class CurveOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[curve]: how heads are measured and switched off; the names of `hgviz curve`.

    budgets: shares of heads that are off, at which scores are compared. limit: examples at most,
    0 for all; points: along a curve; random: how many random orders go beside.
    """

    budgets: tuple[float, ...] = (0.25, 0.5, 0.75)
    limit: int = 0
    points: int = 17
    random: int = 20
    least: int = 0
    permutations: int = 20


class CompareOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[compare]: how many texts two models are compared on in depth, and examples at most."""

    texts: int = 32
    limit: int = 0


class StudyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A study file: models x data x activations x seeds x methods, and what is asked of each.

    models: each has a name and either checkpoint, a path, or the keys of [model] of a training
    file, with tables recipe and tokenizer of its own where it needs them. activations: names as
    --activation takes them, "" for a model's own; or tables of keys of [model] with a name. The
    first of models, activations and methods is what the others are compared with. seeds: of
    trainings, and of whatever is drawn. asks: score, what each reaches; curve, how many heads go,
    by which of methods; compare, each activation beside the first. threads: of each cell, so that
    numbers do not depend on where it runs.
    """

    models: tuple[dict[str, Any], ...]
    data: tuple[Source, ...]
    title: str = ""
    question: str = ""
    asks: tuple[Ask, ...] = ("score",)
    activations: tuple[str | dict[str, Any], ...] = ("",)
    seeds: tuple[int, ...] = (0,)
    methods: tuple[str, ...] = ()
    recipe: dict[str, Any] = {}
    tokenizer: dict[str, Any] = {}
    curve: CurveOptions = CurveOptions()
    compare: CompareOptions = CompareOptions()
    device: str = "cpu"
    threads: int = 1


def source_name(source: Source) -> str:
    """The name of a data set: its own, else the stem of its validation file."""
    return source.name or Path(source.valid).stem


@dataclass(frozen=True, slots=True)
class Cell:
    """One run: what is done, and with what.

    key: a hash of work, given and needs, 24 hexadecimal digits: the same anywhere. work: its name
    in the table of tasks.studies. given: JSON, all that decides what comes out: names, numbers and
    digests, no paths. paths: where what has a digest lies here. needs: cells whose results are
    read. place: where in the grid it stands, by AXES.
    """

    work: str
    given: Mapping[str, Any]
    needs: tuple[CellKey, ...] = ()
    paths: Mapping[str, str] = field(default_factory=dict)
    place: Mapping[str, str] = field(default_factory=dict)
    key: CellKey = ""

    def __post_init__(self) -> None:
        if not self.key:
            run = json.dumps([self.work, self.given, self.needs], sort_keys=True, allow_nan=False)
            object.__setattr__(self, "key", hashlib.sha256(run.encode()).hexdigest()[:24])

    @property
    def label(self) -> str:
        """In a few words: "curve: SST-2, small, ymish, seed 1, michel"."""
        names = {axis: self.place[axis] for axis in AXES if self.place.get(axis)}
        words = [f"seed {name}" if axis == "seed" else name for axis, name in names.items()]
        return f"{self.work}: {', '.join(words)}" if words else self.work


@dataclass(frozen=True, slots=True)
class Standing:
    """How a cell stands. found: what it measured (JSON); line: why it failed, or what it waits for;
    seconds: what it took; host: where it ran; made: what else is said of where it was computed.
    """

    cell: Cell
    state: State = "waiting"
    found: Mapping[str, Any] | None = None
    line: str = ""
    details: str = ""
    seconds: float = 0.0
    host: str = ""
    made: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sweep:
    """All cells of a study file as they stand now, and the folder that holds them.

    changed: results that are there of another model, data or setting than is asked for now;
    changes: what these others are, as far as it is known.
    """

    asked: StudyFile
    standings: tuple[Standing, ...]
    path: str = ""
    changed: int = 0
    changes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What it is called."""
        return self.asked.title or Path(self.path).name

    @property
    def counts(self) -> Mapping[State, int]:
        """How many cells are in which state."""
        return Counter(standing.state for standing in self.standings)

    @property
    def complete(self) -> bool:
        """Whether every cell is done."""
        return self.counts["done"] == len(self.standings)

    def of(self, work: str, **place: str) -> tuple[Standing, ...]:
        """The cells of a kind at a place of the grid."""
        return tuple(
            standing
            for standing in self.standings
            if standing.cell.work == work
            and all(standing.cell.place.get(axis) == name for axis, name in place.items())
        )

    def names(self, axis: str) -> tuple[str, ...]:
        """What stands along an axis, in the order of the study file."""
        names = (standing.cell.place.get(axis, "") for standing in self.standings)
        return tuple(dict.fromkeys(name for name in names if name))
