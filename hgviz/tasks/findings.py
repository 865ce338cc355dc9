"""All numbers that a sweep gives, as its report, its figures and its JSON have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.statistics import Interval, finite_or_none, is_significant
from hgviz.study import Sweep

RANDOM = "random"  # what random orders are called among methods
LOWER = ("bits_per_byte",)  # scores of which less is better

Many = NDArray[np.float64]
Setting = tuple[str, str, str]  # data, model, activation
Unit = tuple[str, str, str, str]  # and seed


@dataclass(frozen=True, slots=True)
class Reached:
    """What a model with an activation reaches on data, over seeds; loss in nats. trained: by the
    study, not a checkpoint, of which there is but one; lacking: seeds that are not done."""

    setting: Setting
    metric: str
    score: Interval
    loss: Interval
    seeds: tuple[str, ...]
    lacking: int
    parameters: int
    texts: int
    trained: bool


@dataclass(frozen=True, slots=True)
class Apart:
    """A setting beside the first of its axis: the difference of scores, paired by seed, and its p
    over "texts", of the models at hand, or where answers are not right or wrong over "seeds"."""

    setting: Setting
    base: str
    axis: str
    metric: str
    difference: Interval
    p: float
    over: str
    adjusted: float = float("nan")

    @property
    def told(self) -> bool:
        """Whether it is more than chance."""
        return is_significant(self.difference, self.adjusted)


@dataclass(frozen=True, slots=True)
class Left:
    """What is right with heads off in the order of a method: an Interval over seeds for each
    budget, and of the area under the curve at the end."""

    setting: Setting
    method: str
    heads: int
    at: tuple[Interval, ...]
    seeds: tuple[str, ...]
    lacking: int


@dataclass(frozen=True, slots=True)
class Beside:
    """A method beside another at a budget, None for the area under the curve: what it leaves more,
    over all settings and seeds that have both, with the p of random signs; beside random orders
    that of random orders, one-sided."""

    method: str
    base: str
    budget: float | None
    difference: Interval
    p: float
    adjusted: float = float("nan")

    @property
    def told(self) -> bool:
        """Whether it is more than chance."""
        return is_significant(self.difference, self.adjusted)


@dataclass(frozen=True, slots=True)
class Alike:
    """How far two models answer alike: the share of places with the same answer, and the change of
    each metric of their heads, over seeds; setting against the first activation."""

    setting: Setting
    base: str
    agreement: Interval
    metrics: Mapping[str, Interval]


@dataclass(frozen=True, slots=True)
class Findings:
    """All numbers that a sweep gives. measures: budgets, and None for the area under a curve, in
    the order of Left.at; shares: at which shares of heads each budget was read, at least and at
    most; ranks: of each method at each of measures, 1 the best, over units that have all methods.
    curves: of each unit and method all curves, (points,) each: shares off, share right.
    """

    sweep: Sweep
    reached: tuple[Reached, ...] = ()
    apart: tuple[Apart, ...] = ()
    measures: tuple[float | None, ...] = ()
    left: tuple[Left, ...] = ()
    beside: tuple[Beside, ...] = ()
    random: tuple[Beside, ...] = ()
    ranks: Mapping[str, tuple[Interval, ...]] = field(default_factory=dict)
    shares: tuple[tuple[float, float], ...] = ()
    alike: tuple[Alike, ...] = ()
    curves: Mapping[Unit, Mapping[str, tuple[tuple[Many, Many], ...]]] = field(default_factory=dict)
    unit: str = ""

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Data, models and activations of the grid that have curves."""
        return tuple(dict.fromkeys(unit[:3] for unit in self.curves))

    @property
    def methods(self) -> tuple[str, ...]:
        """Those that have a curve, random orders last."""
        found = dict.fromkeys(name for some in self.curves.values() for name in some)
        order = (*(one for one in self.sweep.names("method") if one != RANDOM), RANDOM)
        return tuple(one for one in order if one in found)


# --- all of it as JSON ----------------------------------------------------------------------------


def facts(found: Findings) -> dict[str, Any]:
    """Every number, as `hgviz study report --json` prints it; what is not known is null."""

    def of(setting: Setting) -> dict[str, str]:
        return dict(zip(("data", "model", "activation"), setting, strict=True))

    def beside(one: Beside) -> dict[str, Any]:
        return {
            "method": one.method, "base": one.base, "budget": one.budget,
            "difference": one.difference.to_dict(), "p": finite_or_none(one.p),
            "adjusted": finite_or_none(one.adjusted), "told_apart": one.told,
        }  # fmt: skip

    return {
        "reached": [
            {
                **of(one.setting), "metric": one.metric, "score": one.score.to_dict(),
                "loss": one.loss.to_dict(), "seeds": list(one.seeds), "lacking": one.lacking,
                "parameters": one.parameters, "texts": one.texts, "trained": one.trained,
            }
            for one in found.reached
        ],
        "apart": [
            {
                **of(one.setting), "base": one.base, "axis": one.axis,
                "difference": one.difference.to_dict(), "p": finite_or_none(one.p),
                "over": one.over, "adjusted": finite_or_none(one.adjusted), "told_apart": one.told,
            }
            for one in found.apart
        ],
        "measures": ["area" if one is None else one for one in found.measures],
        "shares": [[finite_or_none(end) for end in one] for one in found.shares],
        "left": [
            {
                **of(one.setting), "method": one.method, "heads": one.heads,
                "at": [each.to_dict() for each in one.at], "seeds": list(one.seeds),
                "lacking": one.lacking,
            }
            for one in found.left
        ],
        "beside": [beside(one) for one in found.beside],
        "random": [beside(one) for one in found.random],
        "ranks": {name: [one.to_dict() for one in some] for name, some in found.ranks.items()},
        "alike": [
            {
                **of(one.setting), "base": one.base, "agreement": one.agreement.to_dict(),
                "metrics": {name: each.to_dict() for name, each in one.metrics.items()},
            }
            for one in found.alike
        ],
    }  # fmt: skip


__all__ = [
    "LOWER", "RANDOM", "Alike", "Apart", "Beside", "Findings", "Left", "Reached", "Setting", "Unit",
    "facts",
]  # fmt: skip
