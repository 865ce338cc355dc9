"""What a sweep says: what every model reaches over seeds, what every method leaves at every budget.

The first activation (of one alone: the first model) and the first method are what others are held
against, as the study file has them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.importance import mean_along, nearest_point
from hgviz.analysis.statistics import (
    Interval,
    benjamini_hochberg,
    mean_ranks,
    random_order_test,
    sign_test,
    sign_test_of_counts,
    student_interval,
    student_test,
)
from hgviz.core import HgvizError
from hgviz.study import Standing, Sweep
from hgviz.tasks.cells import unpacked
from hgviz.tasks.findings import (
    LOWER,
    RANDOM,
    Alike,
    Apart,
    Beside,
    Findings,
    Left,
    Many,
    Reached,
    Setting,
    Unit,
)

T = TypeVar("T")
Held = TypeVar("Held", Apart, Beside)
DIGITS = 7  # behind the point
PLACE = ("data", "model", "activation", "seed", "method")
SEED = 3


def conclude(sweep: Sweep) -> Findings:
    """The numbers of all cells that are done. Errors: HgvizError naming a damaged result."""
    return replace(_of_curves(sweep), **_of_scores(sweep), alike=_of_comparisons(sweep))


def reached_in(sweep: Sweep) -> Findings:
    """Only what models reach. Errors as of conclude."""
    return replace(Findings(sweep), **_of_scores(sweep))


def curves_in(sweep: Sweep) -> Findings:
    """Only the curves, no method set beside another: that takes seconds for thousands of cells."""
    return _of_curves(sweep, tests=False)


# --- what cells hold ------------------------------------------------------------------------------


def _done(
    sweep: Sweep, work: str, read: Callable[[Standing], T]
) -> tuple[dict[tuple[str, ...], T], dict[tuple[str, ...], int]]:
    """What was read of the cells of a kind by their places, the first at each, and how many cells
    of each place less its seed are not done. Errors: HgvizError."""
    found: dict[tuple[str, ...], T] = {}
    lacking: dict[tuple[str, ...], int] = defaultdict(int)
    for one in sweep.of(work):
        place = tuple(one.cell.place.get(axis, "") for axis in PLACE)
        if one.state != "done":
            lacking[(*place[:3], place[4])] += 1
            continue
        try:
            found.setdefault(place, read(one))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise HgvizError(f"the result of {one.cell.label} is damaged: "
"it lacks a number",
f"Delete {one.cell.key}.json in the folder of the study and run it again") from error  # fmt: skip
    order = {axis: {name: at for at, name in enumerate(sweep.names(axis))} for axis in PLACE}

    def standing(place: tuple[str, ...]) -> tuple[int, ...]:
        """Where it stands in the grid, seeds by their number, whichever folder it is from."""
        at = [order[axis].get(name, -1) for axis, name in zip(PLACE, place, strict=True)]
        at[SEED] = int(place[SEED]) if place[SEED].isdecimal() else -1
        return tuple(at)

    return {place: found[place] for place in sorted(found, key=standing)}, lacking


@dataclass(frozen=True, slots=True)
class _Score:
    metric: str
    value: float
    loss: float
    parameters: int
    texts: int
    right: NDArray[np.bool_] | None
    trained: bool


def _score(one: Standing) -> _Score:
    found: Mapping[str, Any] = one.found or {}
    right = unpacked(found["right"]) if "right" in found else None
    return _Score(
        str(found["metric"]), float(found["value"]), float(found["loss"]),
        int(found["parameters"]), int(found["total"]), right, "trained" in one.cell.given,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Curves:
    heads: int
    unit: str
    curves: tuple[tuple[NDArray[np.int64], Many], ...]

    def at(self, budgets: Sequence[float]) -> list[list[float]]:
        """Of each curve the score at every budget, NaN beyond its end, and its mean."""
        rows = []
        for off, values in self.curves:
            places = (nearest_point(off, self.heads, one) for one in budgets)
            row = [float("nan") if one is None else float(values[one]) for one in places]
            rows.append([*row, mean_along(off, values)])
        return rows

    def shares(self, budget: float) -> Iterator[float]:
        """Where each curve was read."""
        for off, _ in self.curves:
            at = nearest_point(off, self.heads, budget)
            if at is not None:
                yield float(off[at]) / self.heads


def _curves(one: Standing) -> _Curves:
    found: Mapping[str, Any] = one.found or {}
    heads, rows = int(found["heads"]), found["curves"]
    # a share is kept as float32: what is right as often shall not differ by a 1e-8
    curves: tuple[tuple[NDArray[np.int64], Many], ...] = tuple(
        (np.array(row["off"], np.int64), np.array(row["values"], np.float64).round(DIGITS))
        for row in rows
    )
    good = all(
        x.ndim == 1 and len(x) and x.shape == y.shape and (np.diff(x) > 0).all() and x[-1] <= heads
        and np.isfinite(y).all()
        for x, y in curves
    )  # fmt: skip
    if not good or not curves:
        raise ValueError
    return _Curves(heads, str(rows[0]["unit"]), curves)


# --- what is reached ------------------------------------------------------------------------------


def _of_scores(sweep: Sweep) -> dict[str, Any]:
    found, lacking = _done(sweep, "score", _score)
    groups: dict[Setting, dict[str, _Score]] = defaultdict(dict)
    for (data, model, activation, seed, _), one in found.items():
        groups[data, model, activation][seed] = one
    reached = tuple(
        Reached(
            setting, first.metric, student_interval([one.value for one in some.values()]),
            student_interval([one.loss for one in some.values()]), tuple(some),
            lacking[(*setting, "")], first.parameters, first.texts, first.trained,
        )
        for setting, some in groups.items()
        for first in [next(iter(some.values()))]
    )  # fmt: skip
    axis = 2 if len({setting[2] for setting in groups}) > 1 else 1
    firsts = sweep.names("activation" if axis == 2 else "model")
    apart = []
    for setting, some in groups.items():
        base = (*setting[:axis], firsts[0], *setting[axis + 1 :])
        if base != setting and base in groups:
            apart.append(_apart(setting, firsts[0], axis, groups[base], some))
    return {"reached": reached, "apart": tuple(_adjusted(apart))}


def _apart(
    setting: Setting, first: str, axis: int, base: Mapping[str, _Score], some: Mapping[str, _Score]
) -> Apart:
    pairs = [(base[seed], some[seed]) for seed in some if seed in base]
    difference = student_interval([other.value - one.value for one, other in pairs])
    name, metric = PLACE[axis], next(iter(some.values())).metric
    rights = [one.right for pair in pairs for one in pair]
    known = [one.astype(np.int64) for one in rights if one is not None and len(one)]
    if not pairs or metric in LOWER or len(known) < len(rights) or len(set(map(len, known))) > 1:
        return Apart(
            setting, first, name, metric, difference, student_test(difference.values), "seeds"
        )
    more = np.sum(known[1::2], axis=0) - np.sum(known[::2], axis=0)
    return Apart(setting, first, name, metric, difference, sign_test_of_counts(more), "texts")


def _adjusted(found: Iterable[Held]) -> list[Held]:
    """The same with p adjusted for how many were asked."""
    some = list(found)
    p = benjamini_hochberg(np.array([one.p for one in some], float))
    return [replace(one, adjusted=float(value)) for one, value in zip(some, p, strict=True)]


# --- what is left ---------------------------------------------------------------------------------


def _of_curves(sweep: Sweep, tests: bool = True) -> Findings:
    budgets = tuple(sorted(sweep.asked.curve.budgets))
    found, lacking = _done(sweep, "curve", _curves)
    units: dict[Unit, dict[str, _Curves]] = defaultdict(dict)
    for (data, model, activation, seed, method), one in found.items():
        units[data, model, activation, seed][method] = one
    if not units:
        return Findings(sweep)
    rows = {  # what is right, of each unit, method and order at every measure
        unit: {method: np.array(one.at(budgets)) for method, one in some.items()}
        for unit, some in units.items()
    }
    shares = [[x for one in found.values() for x in one.shares(budget)] for budget in budgets]
    whole = Findings(
        sweep, measures=(*budgets, None), unit=next(iter(found.values())).unit,
        shares=tuple((min(some), max(some)) if some else (np.nan, np.nan) for some in shares),
        curves={
            unit: {
                method: tuple((off / one.heads, values) for off, values in one.curves)
                for method, one in some.items()
            }
            for unit, some in units.items()
        },
    )  # fmt: skip
    if not tests:
        return whole
    return replace(
        whole, left=tuple(_left(whole, units, rows, lacking)),
        beside=tuple(_adjusted(_beside(whole, rows))),
        random=tuple(_adjusted(_beside_random(whole, rows))), ranks=_ranks(whole, rows),
    )  # fmt: skip


def _left(
    whole: Findings, units: Mapping[Unit, Mapping[str, _Curves]],
    rows: Mapping[Unit, Mapping[str, Many]], lacking: Mapping[tuple[str, ...], int],
) -> Iterator[Left]:  # fmt: skip
    for setting in whole.settings:
        for method in whole.methods:
            mine = [unit for unit in rows if unit[:3] == setting and method in rows[unit]]
            if mine:
                values = np.array([rows[unit][method].mean(0) for unit in mine])
                yield Left(
                    setting, method, units[mine[0]][method].heads,
                    tuple(map(student_interval, values.T)), tuple(unit[3] for unit in mine),
                    lacking.get((*setting, method), 0),
                )  # fmt: skip


def _beside(whole: Findings, rows: Mapping[Unit, Mapping[str, Many]]) -> Iterator[Beside]:
    methods = [one for one in whole.methods if one != RANDOM]
    base = next((one for one in whole.sweep.names("method") if one != RANDOM), "")
    for method in methods:
        if method == base:
            continue
        pairs = [(some[base][0], some[method][0]) for some in rows.values()
                 if base in some and method in some]  # fmt: skip
        for at, budget in enumerate(whole.measures):
            apart = student_interval([other[at] - one[at] for one, other in pairs])
            yield Beside(method, base, budget, apart, sign_test(apart.values))


def _beside_random(whole: Findings, rows: Mapping[Unit, Mapping[str, Many]]) -> Iterator[Beside]:
    for method in whole.methods:
        if method == RANDOM:
            continue
        pairs = [(some[RANDOM], some[method][0]) for some in rows.values()
                 if RANDOM in some and method in some]  # fmt: skip
        for at, budget in enumerate(whole.measures):
            some = [(orders[:, at], mine[at]) for orders, mine in pairs
                    if np.isfinite([*orders[:, at], mine[at]]).all()]  # fmt: skip
            # the mean of differences: exactly 0 where all orders leave as much
            apart = student_interval([(mine - orders).mean() for orders, mine in some])
            p = random_order_test([mine for _, mine in some], [orders for orders, _ in some])
            yield Beside(method, RANDOM, budget, apart, p)


def _ranks(
    whole: Findings, rows: Mapping[Unit, Mapping[str, Many]]
) -> dict[str, tuple[Interval, ...]]:
    methods = whole.methods
    every = [np.array([some[one].mean(0) for one in methods]) for some in rows.values()
             if all(one in some for one in methods)]  # fmt: skip
    if not every:
        return {}
    found = [
        mean_ranks(np.array([one[:, at] for one in every])) for at in range(len(whole.measures))
    ]
    return {
        name: tuple(student_interval(some[:, number]) for some in found)
        for number, name in enumerate(methods)
    }


# --- how alike ------------------------------------------------------------------------------------


def _of_comparisons(sweep: Sweep) -> tuple[Alike, ...]:
    found, _ = _done(sweep, "compare", _alike)
    groups: dict[Setting, list[tuple[float, dict[str, float]]]] = defaultdict(list)
    for (data, model, activation, _, _), one in found.items():
        groups[data, model, activation].append(one)
    base = sweep.names("activation")[:1]
    return tuple(
        Alike(
            setting, base[0], student_interval([one for one, _ in some]),
            {name: student_interval([metrics.get(name, np.nan) for _, metrics in some])
             for name in some[0][1]},
        )
        for setting, some in groups.items()
    )  # fmt: skip


def _alike(one: Standing) -> tuple[float, dict[str, float]]:
    found: Mapping[str, Any] = one.found or {}
    agreement = found["answers"].get("agreement")
    metrics = {str(row["metric"]): _float(row["difference"]) for row in found["metrics"]}
    return _float(agreement), metrics


def _float(value: Any) -> float:
    return float("nan") if value is None else float(value)


__all__ = ["conclude"]
