"""The results of a study file's cells: scores over seeds, pruning by method, and their differences.

Differences are taken from the first activation of the study file (of a single one: from the first
model), those of methods from the first method.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.importance import mean_along, nearest_point
from hgviz.analysis.statistics import (
    Interval,
    benjamini_hochberg,
    finite_or_none,
    is_significant,
    mean_ranks,
    random_order_test,
    sign_test,
    sign_test_of_counts,
    student_interval,
    student_test,
)
from hgviz.core import HgvizError
from hgviz.study import Standing, Sweep
from hgviz.tasks.studies import unpacked

RANDOM = "random"  # the method of random orders
LOWER_IS_BETTER = ("bits_per_byte",)
DECIMALS = 7  # shares are stored as float32: equal shares must not differ by 1e-8
AXES = ("data", "model", "activation", "seed", "method")
SEED = AXES.index("seed")

Doubles = NDArray[np.float64]
Setting = tuple[str, str, str]  # data, model, activation
Unit = tuple[str, str, str, str]  # a setting and a seed
T = TypeVar("T")


class Row:
    """A row of a table of results; its fields are the keys of the JSON."""

    def to_dict(self) -> dict[str, Any]:
        """The row as JSON: NaN is null, the setting its three names."""
        values: dict[str, Any] = {}
        for name in (one.name for one in fields(self)):  # type: ignore[arg-type]
            value = getattr(self, name)
            if name == "setting":
                values |= dict(zip(AXES[:3], value, strict=True))
            else:
                values[name] = _to_json(value)
        if isinstance(self, Difference):
            values["significant"] = self.is_significant
        return values


@dataclass(frozen=True, slots=True)
class ModelScore(Row):
    """The score of a model on data over seeds; loss in nats.

    missing: seeds that are not done. trained: by the study; a checkpoint has one seed.
    """

    setting: Setting
    metric: str
    score: Interval
    loss: Interval
    seeds: tuple[str, ...]
    missing: int
    parameters: int
    texts: int
    trained: bool


@dataclass(frozen=True, slots=True)
class Difference(Row):
    """A difference over seeds; p of no difference, adjusted by Benjamini and Hochberg."""

    difference: Interval
    p: float
    adjusted: float = field(default=float("nan"), kw_only=True)

    @property
    def is_significant(self) -> bool:
        """Whether 0 lies outside the interval and the adjusted p is small."""
        return is_significant(self.difference, self.adjusted)


@dataclass(frozen=True, slots=True)
class ScoreDifference(Difference):
    """The score of a setting less that of the first activation or model, paired by seed.

    axis: "activation" or "model"; base: the first on that axis. over: what p is over, "texts" of
    the models at hand, or "seeds" where answers are not right or wrong.
    """

    setting: Setting
    base: str
    axis: str
    metric: str
    over: str


@dataclass(frozen=True, slots=True)
class PrunedScores(Row):
    """The score with heads off in the order of a method, over seeds: one interval for each budget,
    and for the mean of the curve last."""

    setting: Setting
    method: str
    heads: int
    at: tuple[Interval, ...]
    seeds: tuple[str, ...]
    missing: int


@dataclass(frozen=True, slots=True)
class MethodDifference(Difference):
    """The score left by a method less that left by another at a budget, None for the mean of the
    curve; over all settings and seeds that have both.

    p: of the sign test; against random orders one-sided.
    """

    method: str
    base: str
    budget: float | None


@dataclass(frozen=True, slots=True)
class Agreement(Row):
    """Answers and head metrics compared with the first activation: the share of equal answers, and
    the change of each metric."""

    setting: Setting
    base: str
    agreement: Interval
    metrics: Mapping[str, Interval]


@dataclass(frozen=True, slots=True)
class StudyResults:
    """All numbers of a study.

    Attributes:
        budgets: shares of heads off, and None for the mean of the curve, as in PrunedScores.at.
        shares: the least and largest share at which each budget was read.
        ranks: of each method at each budget, 1 the best, over units that have all methods.
        curves: of each unit and method (shares of heads off, share of right answers) of each curve.
    """

    sweep: Sweep
    scores: tuple[ModelScore, ...] = ()
    score_differences: tuple[ScoreDifference, ...] = ()
    budgets: tuple[float | None, ...] = ()
    pruning: tuple[PrunedScores, ...] = ()
    method_differences: tuple[MethodDifference, ...] = ()
    random_differences: tuple[MethodDifference, ...] = ()
    ranks: Mapping[str, tuple[Interval, ...]] = field(default_factory=dict)
    shares: tuple[tuple[float, float], ...] = ()
    agreement: tuple[Agreement, ...] = ()
    curves: Mapping[Unit, Mapping[str, tuple[tuple[Doubles, Doubles], ...]]] = field(
        default_factory=dict
    )
    metric: str = ""

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The settings that have curves."""
        return tuple(dict.fromkeys(unit[:3] for unit in self.curves))

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that have a curve, in the order of the study file, random orders last."""
        measured = {name for curves in self.curves.values() for name in curves}
        names = (*(name for name in self.sweep.names("method") if name != RANDOM), RANDOM)
        return tuple(name for name in names if name in measured)

    def to_dict(self) -> dict[str, Any]:
        """Every number, as `hgviz study report --json` prints it; unknown numbers are null."""
        hidden = ("sweep", "curves", "metric")
        tables = {
            one.name: _to_json(getattr(self, one.name))
            for one in fields(self) if one.name not in hidden
        }  # fmt: skip
        tables["budgets"] = ["mean" if budget is None else budget for budget in self.budgets]
        return tables


def _to_json(value: Any) -> Any:
    if isinstance(value, Row | Interval):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {name: _to_json(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return [_to_json(part) for part in value]
    return finite_or_none(value) if isinstance(value, float) else value


def results_of(sweep: Sweep) -> StudyResults:
    """The numbers of all cells that are done. Raises HgvizError naming a damaged result."""
    return replace(_pruning(sweep), **_scores(sweep), agreement=_agreements(sweep))


def scores_of(sweep: Sweep) -> StudyResults:
    """The scores of models only. Raises as results_of."""
    return replace(StudyResults(sweep), **_scores(sweep))


def curves_of(sweep: Sweep) -> StudyResults:
    """The curves only, without tests between methods, which take seconds for thousands of cells."""
    return _pruning(sweep, tests=False)


# --- reading cells --------------------------------------------------------------------------------


def _read(
    sweep: Sweep, work: str, read: Callable[[Standing], T]
) -> tuple[dict[tuple[str, ...], T], dict[tuple[str, ...], int]]:
    """What is read of each cell of a kind that is done, by its place on AXES, and how many seeds of
    each place are not done. Raises HgvizError for a damaged result."""
    results: dict[tuple[str, ...], T] = {}
    missing: dict[tuple[str, ...], int] = defaultdict(int)
    for cell in sweep.of(work):
        place = tuple(cell.cell.place.get(axis, "") for axis in AXES)
        if cell.state != "done":
            missing[(*place[:SEED], *place[SEED + 1 :])] += 1
            continue
        try:
            results.setdefault(place, read(cell))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise HgvizError(
                f"the result of {cell.cell.label} is damaged: it lacks a number",
                f"Delete {cell.cell.key}.json in the folder of the study and run it again",
            ) from error
    numbers = {axis: {name: at for at, name in enumerate(sweep.names(axis))} for axis in AXES}

    def order(place: tuple[str, ...]) -> tuple[int, ...]:
        """The place in the grid; seeds by their number, whichever folder they come from."""
        at = [numbers[axis].get(name, -1) for axis, name in zip(AXES, place, strict=True)]
        at[SEED] = int(place[SEED]) if place[SEED].isdecimal() else -1
        return tuple(at)

    return {place: results[place] for place in sorted(results, key=order)}, missing


# --- scores ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Score:
    metric: str
    value: float
    loss: float
    parameters: int
    texts: int
    right: NDArray[np.bool_] | None
    trained: bool


def _score(cell: Standing) -> _Score:
    result: Mapping[str, Any] = cell.found or {}
    right = unpacked(result["right"]) if "right" in result else None
    return _Score(
        str(result["metric"]), float(result["value"]), float(result["loss"]),
        int(result["parameters"]), int(result["total"]), right, "trained" in cell.cell.given,
    )  # fmt: skip


def _scores(sweep: Sweep) -> dict[str, Any]:
    results, missing = _read(sweep, "score", _score)
    by_setting: dict[Setting, dict[str, _Score]] = defaultdict(dict)
    for (data, model, activation, seed, _), score in results.items():
        by_setting[data, model, activation][seed] = score
    scores = []
    for setting, seeds in by_setting.items():
        first = next(iter(seeds.values()))
        scores.append(
            ModelScore(
                setting, first.metric, student_interval([one.value for one in seeds.values()]),
                student_interval([one.loss for one in seeds.values()]), tuple(seeds),
                missing[(*setting, "")], first.parameters, first.texts, first.trained,
            )
        )  # fmt: skip
    axis = 2 if len({setting[2] for setting in by_setting}) > 1 else 1
    base = sweep.names(AXES[axis])[0] if by_setting else ""
    differences = []
    for setting, seeds in by_setting.items():
        base_setting = (*setting[:axis], base, *setting[axis + 1 :])
        if base_setting != setting and base_setting in by_setting:
            difference = _score_difference(setting, base, axis, by_setting[base_setting], seeds)
            differences.append(difference)
    return {"scores": tuple(scores), "score_differences": _adjusted(differences)}


def _score_difference(
    setting: Setting,
    base: str,
    axis: int,
    base_seeds: Mapping[str, _Score],
    seeds: Mapping[str, _Score],
) -> ScoreDifference:
    """Paired by seed; p over texts where all models say which answers are right."""
    pairs = [(base_seeds[seed], seeds[seed]) for seed in seeds if seed in base_seeds]
    difference = student_interval([other.value - first.value for first, other in pairs])
    metric = next(iter(seeds.values())).metric
    answers = [score.right for pair in pairs for score in pair]
    right = [answer.astype(np.int64) for answer in answers if answer is not None and len(answer)]
    is_per_text = (
        bool(pairs) and metric not in LOWER_IS_BETTER and len(right) == len(answers)
        and len({len(answer) for answer in right}) == 1
    )  # fmt: skip
    if is_per_text:
        p = sign_test_of_counts(np.sum(right[1::2], axis=0) - np.sum(right[::2], axis=0))
    else:
        p = student_test(difference.values)
    over = "texts" if is_per_text else "seeds"
    return ScoreDifference(difference, p, setting, base, AXES[axis], metric, over)


D = TypeVar("D", bound=Difference)


def _adjusted(differences: Iterable[D]) -> tuple[D, ...]:
    """The same with p adjusted for their number."""
    rows = list(differences)
    adjusted = benjamini_hochberg(np.array([row.p for row in rows], float))
    return tuple(replace(row, adjusted=float(p)) for row, p in zip(rows, adjusted, strict=True))


# --- pruning --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Curves:
    """The curves of a cell: heads off, and the share of right answers at each."""

    heads: int
    metric: str
    curves: tuple[tuple[NDArray[np.int64], Doubles], ...]

    def at(self, budgets: Sequence[float]) -> Doubles:
        """(curves, budgets + 1) the score at each budget, NaN beyond its end, and its mean."""
        rows = []
        for off, values in self.curves:
            points = (nearest_point(off, self.heads, budget) for budget in budgets)
            scores = [float("nan") if point is None else float(values[point]) for point in points]
            rows.append([*scores, mean_along(off, values)])
        return np.array(rows)

    def shares_at(self, budget: float) -> Iterator[float]:
        """The share of heads off at which each curve is read for a budget."""
        for off, _ in self.curves:
            point = nearest_point(off, self.heads, budget)
            if point is not None:
                yield float(off[point]) / self.heads


def _curves(cell: Standing) -> _Curves:
    result: Mapping[str, Any] = cell.found or {}
    heads, rows = int(result["heads"]), result["curves"]
    curves: tuple[tuple[NDArray[np.int64], Doubles], ...] = tuple(
        (np.array(row["off"], np.int64), np.array(row["values"], np.float64).round(DECIMALS))
        for row in rows
    )
    is_sound = curves and all(
        off.ndim == 1 and len(off) and off.shape == values.shape and (np.diff(off) > 0).all()
        and off[-1] <= heads and np.isfinite(values).all()
        for off, values in curves
    )  # fmt: skip
    if not is_sound:
        raise ValueError
    return _Curves(heads, str(rows[0]["unit"]), curves)


def _pruning(sweep: Sweep, tests: bool = True) -> StudyResults:
    budgets = tuple(sorted(sweep.asked.curve.budgets))
    results, missing = _read(sweep, "curve", _curves)
    units: dict[Unit, dict[str, _Curves]] = defaultdict(dict)
    for (data, model, activation, seed, method), cell in results.items():
        units[data, model, activation, seed][method] = cell
    if not units:
        return StudyResults(sweep)
    shares = [[x for cell in results.values() for x in cell.shares_at(b)] for b in budgets]
    study = StudyResults(
        sweep,
        budgets=(*budgets, None),
        metric=next(iter(results.values())).metric,
        shares=tuple((min(at), max(at)) if at else (np.nan, np.nan) for at in shares),
        curves={
            unit: {
                method: tuple((off / cell.heads, values) for off, values in cell.curves)
                for method, cell in methods.items()
            }
            for unit, methods in units.items()
        },
    )
    if not tests:
        return study
    at = {
        unit: {method: cell.at(budgets) for method, cell in methods.items()}
        for unit, methods in units.items()
    }
    pruning = []
    for setting in study.settings:
        for method in study.methods:
            mine = [unit for unit in at if unit[:3] == setting and method in at[unit]]
            if mine:
                means = np.array([at[unit][method].mean(0) for unit in mine])
                pruning.append(
                    PrunedScores(
                        setting, method, units[mine[0]][method].heads,
                        tuple(map(student_interval, means.T)), tuple(unit[3] for unit in mine),
                        missing.get((*setting, method), 0),
                    )
                )  # fmt: skip
    return replace(
        study,
        pruning=tuple(pruning),
        method_differences=_adjusted(_method_differences(study, at)),
        random_differences=_adjusted(_random_differences(study, at)),
        ranks=_ranks(study, at),
    )


def _method_differences(
    study: StudyResults, at: Mapping[Unit, Mapping[str, Doubles]]
) -> Iterator[MethodDifference]:
    """Each method less the first, at each budget."""
    base = next((name for name in study.sweep.names("method") if name != RANDOM), "")
    for method in study.methods:
        if method in (base, RANDOM):
            continue
        pairs = [(unit[base][0], unit[method][0]) for unit in at.values()
                 if base in unit and method in unit]  # fmt: skip
        for number, budget in enumerate(study.budgets):
            values = [other[number] - first[number] for first, other in pairs]
            difference = student_interval(values)
            p = sign_test(difference.values)
            yield MethodDifference(difference, p, method, base, budget)


def _random_differences(
    study: StudyResults, at: Mapping[Unit, Mapping[str, Doubles]]
) -> Iterator[MethodDifference]:
    """Each method less the random orders of the same model and seed, at each budget."""
    for method in study.methods:
        if method == RANDOM:
            continue
        pairs = [(unit[RANDOM], unit[method][0]) for unit in at.values()
                 if RANDOM in unit and method in unit]  # fmt: skip
        for number, budget in enumerate(study.budgets):
            known = [(orders[:, number], mine[number]) for orders, mine in pairs
                     if np.isfinite([*orders[:, number], mine[number]]).all()]  # fmt: skip
            # the mean of differences: exactly 0 where all orders leave as much
            difference = student_interval([(mine - orders).mean() for orders, mine in known])
            p = random_order_test([mine for _, mine in known], [orders for orders, _ in known])
            yield MethodDifference(difference, p, method, RANDOM, budget)


def _ranks(
    study: StudyResults, at: Mapping[Unit, Mapping[str, Doubles]]
) -> dict[str, tuple[Interval, ...]]:
    methods = study.methods
    scores = np.array([
        [unit[name].mean(0) for name in methods]
        for unit in at.values() if all(name in unit for name in methods)
    ])  # fmt: skip
    if not len(scores):
        return {}
    ranks = [mean_ranks(scores[:, :, number]) for number in range(len(study.budgets))]
    return {
        name: tuple(student_interval(rank[:, number]) for rank in ranks)
        for number, name in enumerate(methods)
    }


# --- agreement ------------------------------------------------------------------------------------


def _agreements(sweep: Sweep) -> tuple[Agreement, ...]:
    results, _ = _read(sweep, "compare", _agreement)
    by_setting: dict[Setting, list[tuple[float, dict[str, float]]]] = defaultdict(list)
    for (data, model, activation, _, _), pair in results.items():
        by_setting[data, model, activation].append(pair)
    base = sweep.names("activation")[:1]
    return tuple(
        Agreement(
            setting, base[0], student_interval([share for share, _ in pairs]),
            {name: student_interval([metrics.get(name, np.nan) for _, metrics in pairs])
             for name in pairs[0][1]},
        )
        for setting, pairs in by_setting.items()
    )  # fmt: skip


def _agreement(cell: Standing) -> tuple[float, dict[str, float]]:
    """The share of equal answers, and the change of each metric; NaN for null."""

    def number(value: Any) -> float:
        return float("nan") if value is None else float(value)

    result: Mapping[str, Any] = cell.found or {}
    metrics = {str(row["metric"]): number(row["difference"]) for row in result["metrics"]}
    return number(result["answers"].get("agreement")), metrics


__all__ = [
    "LOWER_IS_BETTER", "RANDOM", "Setting", "StudyResults", "curves_of", "results_of", "scores_of",
]  # fmt: skip
