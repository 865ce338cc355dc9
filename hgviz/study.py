"""What was measured of a model's heads on some data: every report is made from it, without a model.

numpy only. Losses are in nats, heads stand in order of computation (HeadId sorts). What a running
study has not reached yet is NaN (changes of right and wrong: UNKNOWN), so it can be kept as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.core import (
    Floats,
    HeadId,
    HgvizError,
    Integers,
    ModelSpec,
    Off,
    Provenance,
    Score,
    readonly,
)
from hgviz.examples import Asked, amount

Signs = NDArray[np.int8]

SCORE = "michel"  # what heads are measured and sorted by where nobody says (docs/statistics.md)
UNKNOWN = -128  # in `change`: not measured yet
UNASKED = -1  # in `given`: not answered yet
# what is measured of every head, by the names of Study
ARRAYS = ("gradient", "token_gradient", "loss_change", "change", "alone", "shapley")


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A score along an order in which heads are switched off, the first of order first.

    method names the score that made the order ("random": none did, drawn with seed). removed
    (points,) how many heads were off, ascending, the whole model's 0 among them; values, low, high
    (points,) the metric there with its interval of 95 %, loss (points,) mean nats. change,
    change_low, change_high (points,) the metric's paired change to the whole model, 0 where none is
    off. rows (n,): the examples it was measured on, not those of the order. unit: what the metric
    is, as in Score.metric. times (points, 2): where they were measured, milliseconds of one pass
    over 16 texts on one core, of the whole model and of the one that really lacks the heads that
    are off, taking turns; medians (models.surgery.proof).
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
        _close(self)

    def off(self, removed: int) -> Off:
        """The heads that are off after so many steps."""
        return frozenset(self.order[:removed])


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """What training gave each head, high where it is needed: runs (runs, heads), one per seed.

    method "gates": hard-concrete gates at test time, 0 to 1; "subset": the logits w of
    differentiable subset pruning; "causal-on" and "causal-off": gates, 0 to 1, fitted while a
    regulariser pushes all of them on, or off. note: how, for people.
    """

    method: str
    runs: Floats
    note: str = ""

    def __post_init__(self) -> None:
        _close(self)


@dataclass(frozen=True, slots=True)
class Mask:
    """Heads switched off under a name, and what the model then scored.

    change: the score's difference to the whole model on the same places, and its interval.
    """

    name: str
    off: Off
    score: Score | None = None
    change: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """Measurements of all heads of one model on one set of examples. E examples, P places, H heads.

    spec.digest is the checkpoint's, data_digest Examples.digest, data the name of the file. off:
    heads off all along, whose columns stay NaN. texts: how many texts the examples of a language
    model are windows of, 0 of a classifier. metric as in Score. seed: of whatever is drawn.

    places (E + 1,), wanted (P,): as in Examples; lengths (E,) tokens; sizes (E,) bytes of what is
    wanted, 0 where nobody counts them. loss (P,), given (P,): the whole model's answers, UNASKED
    where there is none yet.

    gradient (E, H): G, the slope of an example's loss, the sum over its places, with the gate of
    a head (pruning.md). token_gradient (E, H): the sum over tokens of abs(context . dL/dcontext).
    loss_change (P, H): D, loss with the head off - loss; change (P, H): C, 1 wrong to right, -1
    right to wrong, 0 neither. alone (P, H): loss with only this head on in its layer - loss.
    shapley (permutations, H): what switching the head on did to the mean loss, in a random order
    each; every row sums to L(all) - L(none).

    saved_parameters, saved_flops (H, 3): what `prune` removes with each head, with its key group
    once all heads of that are off, and with its layer likewise (analysis.orders.costs); FLOPs in a
    mean example. None where weights do not go by heads.
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
    off: Off = frozenset()
    sizes: NDArray[np.float64] | None = None
    gradient: Floats | None = None
    token_gradient: Floats | None = None
    loss_change: Floats | None = None
    change: Signs | None = None
    alone: Floats | None = None
    shapley: Floats | None = None
    saved_parameters: NDArray[np.float64] | None = None
    saved_flops: NDArray[np.float64] | None = None
    learned: tuple[Learned, ...] = ()
    curves: tuple[Curve, ...] = ()
    masks: tuple[Mask, ...] = ()
    made: Provenance = field(default_factory=Provenance)
    path: str = ""

    def __post_init__(self) -> None:
        _close(self)

    def __len__(self) -> int:
        """How many examples it is about."""
        return len(self.places) - 1

    def amount(self, some: int | None = None) -> str:
        """What it is measured on, in words; some: only so many of its examples."""
        return amount(self.asked, len(self), self.texts, some)

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
        return readonly(self.given != UNASKED)

    def measured(self) -> dict[str, float]:
        """Which share of each array that there is has been measured, of heads that are not off."""
        on = [head not in self.off for head in self.heads]
        found = {"loss": float(self.answered.mean())}
        for name in ARRAYS:
            if (array := getattr(self, name)) is not None:
                values = array[:, on]
                known = values != UNKNOWN if name == "change" else ~np.isnan(values)
                found[name] = float(known.mean()) if known.size else 1.0
        return found

    def costs(self, key: str) -> NDArray[np.float64]:
        """saved_parameters or saved_flops. Errors: HgvizError where the study has none."""
        found: NDArray[np.float64] | None = getattr(self, f"saved_{key}")
        if found is None:
            raise HgvizError(
                f"the study does not say what {key} go with a head",
                "the weights of its model do not go by heads, or an older hgviz measured it",
                "Count heads, or measure them anew",
            )
        return found

    def places_of(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        """(P,): which places belong to some examples, given by number or as a mask (E,)."""
        chosen = np.zeros(len(self), bool)
        chosen[rows] = True
        return np.repeat(chosen, self.counts)


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
        new = (given == UNASKED) & one.answered
        loss[new], given[new] = one.loss[new], one.given[new]
        for name in ARRAYS:
            if (values := getattr(one, name)) is not None:
                arrays[name] = _filled(arrays.get(name), values)
    curves = {_curve_key(curve): curve for one in reversed(studies) for curve in one.curves}
    learned = {curve.method: curve for one in reversed(studies) for curve in one.learned}
    masks = {mask.name: mask for one in reversed(studies) for mask in one.masks}
    return replace(
        first, loss=loss, given=given, curves=tuple(curves.values()),
        learned=tuple(learned.values()), masks=tuple(masks.values()), path="", **arrays,
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
                f"these studies are of two {words}", "one study has one", "Keep them apart"
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


def _curve_key(one: Curve) -> tuple[Any, ...]:
    return one.method, one.seed, one.order


def _close(one: Any) -> None:
    """Every array read-only."""
    for each in fields(one):
        value = getattr(one, each.name)
        if isinstance(value, np.ndarray):
            object.__setattr__(one, each.name, readonly(value))
