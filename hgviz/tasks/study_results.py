"""The results of a study file: scores over seeds, pruning by method, charts, and the report page.

Differences are taken from the first activation of the study file (of a single one: from the first
model), those of methods from the first method. hgviz.analysis.statistics has the tests.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
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
from hgviz.core import HgvizError, progress
from hgviz.errors import choose, require
from hgviz.language import number
from hgviz.study import AXES, Sweep
from hgviz.tasks.studies import OWN, sweep_at, unpacked

if TYPE_CHECKING:
    from hgviz.figures.charts import Line, Plots, Seeds
    from hgviz.figures.output import Table

RANDOM, RANDOM_LABEL = "random", "random orders"  # a method, and its label in charts
LOWER_IS_BETTER = ("bits_per_byte",)
DECIMALS = 7  # shares are stored as float32: equal shares must not differ by 1e-8
MOST_AXES, MOST_RIBBONS = 12, 4  # of one figure: axes, and intervals that can be told apart
X_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)

Doubles = NDArray[np.float64]
Setting = tuple[str, ...]  # data, model, activation
Unit = tuple[str, ...]  # a setting and a seed
Row = dict[str, Any]  # of a table; its keys are those of the JSON
T = TypeVar("T")

# --- results of cells -----------------------------------------------------------------------------


class Score(msgspec.Struct):
    """The result of a cell "score"; right (total,): which answers are, None where none can be."""

    metric: str
    value: float
    loss: float
    parameters: int
    total: int
    trained: bool
    right: Any = None

    def __post_init__(self) -> None:
        self.right = None if self.right is None else unpacked(self.right).astype(np.int64)


class Points(msgspec.Struct):
    """A pruning curve: off (points,) how many heads are off, values (points,) right answers."""

    off: Any
    values: Any
    unit: str


class Curves(msgspec.Struct):
    """The result of a cell "curve": one curve, or several of random orders."""

    heads: int
    curves: list[Points]

    def __post_init__(self) -> None:
        if not self.curves:
            raise ValueError
        for curve in self.curves:
            off = curve.off = np.array(curve.off, np.int64)
            values = curve.values = np.array(curve.values, np.float64).round(DECIMALS)
            is_plain = off.ndim == 1 and len(off) and off.shape == values.shape
            is_ascending = is_plain and (np.diff(off) > 0).all() and off[-1] <= self.heads
            if not (is_ascending and np.isfinite(values).all()):
                raise ValueError

    def nearest(self, budget: float) -> list[int | None]:
        """The point of each curve nearest to a share of heads off, None beyond its end."""
        return [nearest_point(curve.off, self.heads, budget) for curve in self.curves]

    def at(self, budgets: Sequence[float | None]) -> Doubles:
        """(curves, budgets) the score at each budget, NaN beyond the end of a curve; None is the
        mean of the curve."""
        columns = [
            [mean_along(curve.off, curve.values) for curve in self.curves] if budget is None else
            [np.nan if point is None else curve.values[point]
             for curve, point in zip(self.curves, self.nearest(budget), strict=True)]
            for budget in budgets
        ]  # fmt: skip
        return np.array([*zip(*columns, strict=True)], float)


class _Change(msgspec.Struct):
    metric: str
    difference: float | None


class _Answers(msgspec.Struct):
    agreement: float | None = None


class Comparison(msgspec.Struct):
    """The result of a cell "compare", as far as a table shows it."""

    answers: _Answers
    metrics: list[_Change]


def _read(sweep: Sweep, work: str, kind: type[T], depth: int) -> dict[Setting, dict[str, T]]:
    """The results of a kind of cells that are done, by the first names of their place on AXES, then
    by the next one, in the order of the grid. Raises HgvizError for a damaged result."""
    results: dict[tuple[str, ...], T] = {}
    for standing in sweep.of(work):
        cell, place = standing.cell, tuple(standing.cell.place.get(axis, "") for axis in AXES)
        if standing.state != "done" or place in results:
            continue
        result = {**(standing.found or {}), "trained": "trained" in cell.given}
        try:
            results[place] = msgspec.convert(result, kind, strict=False)
        except (msgspec.ValidationError, KeyError, TypeError, ValueError) as error:
            raise HgvizError(
                f"the result of {cell.label} is damaged: a number is missing",
                f"Delete {cell.key}.json in the folder of the study and run it again",
            ) from error
    orders = [{name: at for at, name in enumerate(sweep.names(axis))} for axis in AXES]
    seeds = sweep.names("seed")  # by their number, whichever folder they come from
    orders[AXES.index("seed")] = {name: int(name) for name in seeds if name.isdecimal()}

    def rank(place: Setting) -> list[int]:
        return [order.get(name, -1) for order, name in zip(orders, place, strict=True)]

    groups: dict[Setting, dict[str, T]] = defaultdict(dict)
    for place in sorted(results, key=rank):
        groups[place[:depth]][place[depth]] = results[place]
    return dict(groups)


# --- all results ----------------------------------------------------------------------------------


class StudyResults:
    """All numbers of a study, each table computed when it is first asked for.

    A table is a list of rows, whose keys are those of the JSON of `hgviz study report`. A row of
    differences has "difference", the Interval over seeds, "p" of no difference, "adjusted" by
    Benjamini and Hochberg for the rows of the table, and "significant", whether 0 lies outside the
    interval and the adjusted p is small. Raises HgvizError from any table for a damaged result.
    """

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep

    def to_dict(self) -> dict[str, Any]:
        """Every number, the unfinished cells, and what computed the others; unknown is null."""
        sweep = self.sweep
        tables = (
            "scores", "score_differences", "budgets", "pruning", "method_differences",
            "random_differences", "ranks", "shares", "agreement",
        )  # fmt: skip
        return {
            "kind": "sweep_report", "title": sweep.title, "question": sweep.asked.question,
            "complete": sweep.complete, "counts": dict(sweep.counts),
            **{name: _to_json(getattr(self, name)) for name in tables},
            "budgets": ["mean" if budget is None else budget for budget in self.budgets],
            "missing": [
                {"cell": one.cell.label, "key": one.cell.key, "state": one.state, "line": one.line}
                for one in sweep.standings if one.state != "done"
            ],
            "environment": self._environment(),
        }  # fmt: skip

    def _environment(self) -> dict[str, str]:
        """Versions and hosts of the cells that are done, and their computing time."""
        done = [standing for standing in self.sweep.standings if standing.state == "done"]
        values: dict[str, set[str]] = defaultdict(set)
        for standing in done:
            values["hgviz"].add(str(standing.made.get("program", "")))
            for name, version in standing.made.get("versions", {}).items():
                values[name].add(str(version))
            values["device"].add(str(standing.cell.given.get("device", "")))
            values["host"].add(standing.host)
        joined = {name: ", ".join(sorted(names - {""})) for name, names in values.items()}
        return {name: names for name, names in joined.items() if names} | {
            "threads per run": str(self.sweep.asked.threads),
            "seconds of computation": f"{sum(standing.seconds for standing in done):,.1f}",
        }

    @cached_property
    def _missing(self) -> Mapping[tuple[str, ...], int]:
        """How many seeds are not done, by work, setting and method."""
        axes = [axis for axis in AXES if axis != "seed"]
        return Counter(
            (standing.cell.work, *(standing.cell.place.get(axis, "") for axis in axes))
            for standing in self.sweep.standings if standing.state != "done"
        )  # fmt: skip

    @cached_property
    def _scores(self) -> dict[Setting, dict[str, Score]]:
        return _read(self.sweep, "score", Score, 3)

    @cached_property
    def scores(self) -> list[Row]:
        """The score and loss (nats) of each setting over seeds; missing: seeds that are not done;
        trained: by the study, while a checkpoint has one seed."""
        rows = []
        for setting, seeds in self._scores.items():
            first = next(iter(seeds.values()))
            rows.append({
                **_names(setting), "metric": first.metric,
                "score": student_interval([score.value for score in seeds.values()]),
                "loss": student_interval([score.loss for score in seeds.values()]),
                "seeds": [*seeds], "missing": self._missing["score", *setting, ""],
                "parameters": first.parameters, "texts": first.total, "trained": first.trained,
            })  # fmt: skip
        return rows

    @cached_property
    def score_differences(self) -> list[Row]:
        """Each setting less that of the first activation, or of the first model, paired by seed; p
        over the texts where all models say which answers are right, else over seeds."""
        axis = 2 if len({setting[2] for setting in self._scores}) > 1 else 1
        base = next(iter(self.sweep.names(AXES[axis])), "")
        rows = []
        for setting, seeds in self._scores.items():
            others = self._scores.get((*setting[:axis], base, *setting[axis + 1 :]), seeds)
            if others is seeds:
                continue
            pairs = [(others[seed], seeds[seed]) for seed in seeds if seed in others]
            difference = student_interval([other.value - first.value for first, other in pairs])
            metric = next(iter(seeds.values())).metric
            right = [score.right for pair in pairs for score in pair]
            sizes = {0 if answers is None else len(answers) for answers in right}
            p, over = student_test(difference.values), "seeds"
            if metric not in LOWER_IS_BETTER and len(sizes) == 1 and min(sizes):
                counts = np.sum(right[1::2], axis=0) - np.sum(right[::2], axis=0)
                p, over = sign_test_of_counts(counts), "texts"
            about = {**_names(setting), "base": base, "axis": AXES[axis], "metric": metric}
            rows.append(_difference(difference, p, **about, over=over))
        return _adjusted(rows)

    @cached_property
    def agreement(self) -> list[Row]:
        """Each activation compared with the first: the share of equal answers, and the change of
        each head metric."""
        rows = []
        for setting, seeds in _read(self.sweep, "compare", Comparison, 3).items():
            changes = [{row.metric: row.difference for row in seed.metrics}
                       for seed in seeds.values()]  # fmt: skip
            rows.append({
                **_names(setting), "base": self.sweep.names("activation")[0],
                "agreement": _interval(seed.answers.agreement for seed in seeds.values()),
                "metrics": {name: _interval(change.get(name) for change in changes)
                            for name in changes[0]},
            })  # fmt: skip
        return rows

    @cached_property
    def units(self) -> dict[Unit, dict[str, Curves]]:
        """The curves of each model, data and seed, by method."""
        return _read(self.sweep, "curve", Curves, 4)

    @property
    def metric(self) -> str:
        """What the curves are of, such as "accuracy"."""
        return next(cell.curves[0].unit for unit in self.units.values() for cell in unit.values())

    @cached_property
    def settings(self) -> dict[Setting, list[Unit]]:
        """The settings that have curves, with their units."""
        settings: dict[Setting, list[Unit]] = defaultdict(list)
        for unit in self.units:
            settings[unit[:3]].append(unit)
        return dict(settings)

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that have a curve, in the order of the study file, random orders last."""
        measured = {name for methods in self.units.values() for name in methods}
        names = sorted(self.sweep.names("method"), key=lambda name: name == RANDOM)
        return tuple(name for name in names if name in measured)

    @cached_property
    def budgets(self) -> tuple[float | None, ...]:
        """Shares of heads off at which curves are read, and None for the mean of the curve."""
        return (*sorted(self.sweep.asked.curve.budgets), None) if self.units else ()

    @cached_property
    def shares(self) -> list[tuple[float, float]]:
        """The least and largest share of heads off at which each budget was read."""
        cells = [cell for methods in self.units.values() for cell in methods.values()]
        ends = []
        for budget in self.budgets[:-1]:
            shares = [
                float(curve.off[point]) / cell.heads
                for cell in cells
                for curve, point in zip(cell.curves, cell.nearest(budget or 0.0), strict=True)
                if point is not None
            ]
            ends.append((min(shares), max(shares)) if shares else (np.nan, np.nan))
        return ends

    @cached_property
    def _at(self) -> dict[Unit, dict[str, Doubles]]:
        """(curves, budgets) scores of each unit and method."""
        return {
            unit: {method: cell.at(self.budgets) for method, cell in methods.items()}
            for unit, methods in self.units.items()
        }

    @cached_property
    def pruning(self) -> list[Row]:
        """What each method leaves of each setting; at: one interval over seeds for each budget."""
        rows = []
        for setting, units in self.settings.items():
            for method in self.methods:
                mine = [unit for unit in units if method in self.units[unit]]
                if mine:
                    means = np.array([self._at[unit][method].mean(0) for unit in mine])
                    rows.append({
                        **_names(setting), "method": method,
                        "heads": self.units[mine[0]][method].heads,
                        "at": [*map(student_interval, means.T)],
                        "seeds": [unit[3] for unit in mine],
                        "missing": self._missing["curve", *setting, method],
                    })  # fmt: skip
        return rows

    @cached_property
    def method_differences(self) -> list[Row]:
        """What each method leaves less what the first does, at each budget, over all settings and
        seeds that have both; p of the sign test."""
        names = (name for name in self.sweep.names("method") if name != RANDOM)
        return self._differences(next(names, ""))

    @cached_property
    def random_differences(self) -> list[Row]:
        """What each method leaves less what random orders of the same model and seed do, at each
        budget; p is one-sided."""
        return self._differences(RANDOM)

    def _differences(self, base: str) -> list[Row]:
        rows = []
        for method in self.methods:
            if method in (base, RANDOM):
                continue
            units = [unit for unit in self._at.values() if base in unit and method in unit]
            for at, budget in enumerate(self.budgets):
                pairs = [(unit[base][:, at], unit[method][0, at]) for unit in units]
                pairs = [pair for pair in pairs if np.isfinite(np.hstack(pair)).all()]
                # the mean of differences: exactly 0 where all orders leave as much
                difference = student_interval([(mine - first).mean() for first, mine in pairs])
                firsts, scores = [first for first, _ in pairs], [mine for _, mine in pairs]
                is_random = base == RANDOM
                values = difference.values
                p = random_order_test(scores, firsts) if is_random else sign_test(values)
                rows.append(_difference(difference, p, method=method, base=base, budget=budget))
        return _adjusted(rows)

    @cached_property
    def ranks(self) -> dict[str, list[Interval]]:
        """Of each method at each budget, 1 the best, over units that have all methods."""
        methods = self.methods
        units = [unit for unit in self._at.values() if {*methods} <= unit.keys()]
        if not units:
            return {}
        scores = np.array([[unit[name].mean(0) for name in methods] for unit in units])
        ranks = [mean_ranks(scores[:, :, at]) for at in range(len(self.budgets))]
        return {
            name: [student_interval(rank[:, at]) for rank in ranks]
            for at, name in enumerate(methods)
        }


def _names(setting: Setting) -> dict[str, str]:
    return dict(zip(AXES, setting, strict=False))


def _interval(values: Iterable[float | None]) -> Interval:
    return student_interval([np.nan if value is None else value for value in values])


def _difference(difference: Interval, p: float, **about: Any) -> Row:
    return {"difference": difference, "p": p, "adjusted": p, **about, "significant": False}


def _adjusted(rows: list[Row]) -> list[Row]:
    """The same with p adjusted for their number."""
    adjusted = benjamini_hochberg(np.array([row["p"] for row in rows], float))
    for row, p in zip(rows, adjusted.tolist(), strict=True):
        row["adjusted"], row["significant"] = p, is_significant(row["difference"], p)
    return rows


def _to_json(value: Any) -> Any:
    match value:
        case Interval():
            return value.to_dict()
        case Mapping():
            return {name: _to_json(part) for name, part in value.items()}
        case list() | tuple():
            return [_to_json(part) for part in value]
        case float():
            return finite_or_none(value)
    return value


# --- charts ---------------------------------------------------------------------------------------


def sweep_chart(kind: str, sweep: Sweep, methods: Sequence[str] = ()) -> Seeds | Plots:
    """The chart of a study. kind: "seeds", the scores of models; "budgets", scores as heads are
    switched off, by methods, () for all. Raises HgvizError for what is not asked for or not done.
    """
    results = StudyResults(sweep)
    return seeds_chart(results) if kind == "seeds" else budgets_chart(results, methods)


def seeds_chart(results: StudyResults) -> Seeds:
    """A mark for every model and activation, axes for every data."""
    from hgviz.figures.charts import SeedMark, Seeds

    _require_results(results, "score", results.scores)
    metric = results.scores[0]["metric"]
    scores = [row for row in results.scores if row["metric"] == metric]
    factor = 1.0 if metric in LOWER_IS_BETTER else 100.0
    marks = {}
    for row in scores:
        score, count = row["score"], len(row["score"].values)
        names = row["seeds"] if len(row["seeds"]) == count else map(str, range(count))
        ends = (factor * end for end in (score.mean, score.low, score.high))
        setting = tuple(row[axis] for axis in AXES[:3])
        marks[setting] = SeedMark(factor * score.values, tuple(names), *ends)
    data, models, activations = (tuple(dict.fromkeys(names)) for names in zip(*marks, strict=True))
    # activations of a single model are along the axis and need no key; "own" says nothing
    is_single = len(models) == 1 and activations != (OWN,)
    groups, series = (activations, ("",)) if is_single else (models, activations)
    facets = {}
    for source in data:
        rows = [
            [(source, models[0], group) if is_single else (source, group, name) for group in groups]
            for name in series
        ]
        facets[source if len(data) > 1 else ""] = tuple(tuple(map(marks.get, row)) for row in rows)
    single_names = [data, models if is_single else (), activations if activations != (OWN,) else ()]
    subtitle = [names[0] for names in single_names if len(names) == 1 == len(data)]
    counts = sorted({len(row["seeds"]) for row in scores})
    notes = [f"{row['data']} has another metric and is left out"
             for row in results.scores if row["metric"] != metric]  # fmt: skip
    if counts[-1] > 1:
        mean = "large marks: mean with 95 % interval over seeds (Student)"
        notes.insert(0, f"{_seeds(counts)}; small marks: seeds; {mean}")
    return Seeds(
        facets, groups, series if len(series) > 1 else ("",), axis_label(metric),
        title=results.sweep.title or "Scores", more=", ".join(subtitle),
        notes=tuple(dict.fromkeys(notes)), about=_about(results),
    )  # fmt: skip


def budgets_chart(results: StudyResults, methods: Sequence[str] = ()) -> Plots:
    """The mean curve over seeds of every method, and of random orders; axes for every setting."""
    from hgviz.figures.charts import Plot, Plots

    _require_results(results, "curve", results.units)
    for method in methods:
        choose(method, results.methods, "curve of this study")
    names = [name for name in results.methods if not methods or name in methods or name == RANDOM]
    settings = dict(islice(results.settings.items(), MOST_AXES))
    lines = {
        setting: _mean_lines([results.units[unit] for unit in units], names)
        for setting, units in settings.items()
    }
    halves = [(line.high - line.low) / 2 for row in lines.values() for line in row
              if line.low is not None and line.high is not None]  # fmt: skip
    has_ribbons, width = bool(halves) and len(names) <= MOST_RIBBONS, ""
    if halves and not has_ribbons:
        median = float(np.median(np.concatenate(halves)))
        width = f"; 95 % interval of a point over seeds (Student): about ± {median:.1f}"
        for setting, row in lines.items():
            lines[setting] = [replace(line, low=None, high=None) for line in row]
    varies = [len(set(column)) > 1 for column in zip(*results.settings, strict=True)]
    ticks = tuple((share, f"{100 * share:.0f} %") for share in X_TICKS)
    plots = tuple(
        Plot(
            ", ".join(name for name, varying in zip(setting, varies, strict=True) if varying)
            or setting[1],
            "Heads off", axis_label(results.metric), tuple(row), ticks,
            limits=_limits(row, bool(width)),
        )
        for setting, row in lines.items()
    )  # fmt: skip
    counts = sorted({*map(len, settings.values())})
    has_random = any(line.label == RANDOM_LABEL for row in lines.values() for line in row)
    random = f"; {RANDOM_LABEL}: mean for each model and seed" if has_random else ""
    notes = [f"{_seeds(counts)}{random}{width}"]
    if len(results.settings) > MOST_AXES:
        notes.append(f"the first {MOST_AXES} of {len(results.settings)} settings")
    return Plots(
        plots, title=results.sweep.title or "Scores as heads are switched off",
        ribbon="Shaded: 95 % interval over seeds (Student)." if has_ribbons else "",
        notes=tuple(notes), about=_about(results),
    )  # fmt: skip


def _mean_lines(units: Sequence[Mapping[str, Curves]], names: Sequence[str]) -> list[Line]:
    """The mean over seeds of the curves of each method, at the shares that all seeds have."""
    from hgviz.figures.charts import Line

    lines = []
    for name in names:
        if not (cells := [methods[name] for methods in units if name in methods]):
            continue
        x = [np.round(cell.curves[0].off / cell.heads, 9) for cell in cells]
        y = [np.mean([curve.values for curve in cell.curves], axis=0) for cell in cells]
        shares = reduce(np.intersect1d, x)
        values = [100 * ys[np.searchsorted(xs, shares)] for xs, ys in zip(x, y, strict=True)]
        intervals = [student_interval(column) for column in np.transpose(values)]
        means, lows, highs = np.array([(one.mean, one.low, one.high) for one in intervals]).T
        ends = (lows, highs) if len(values) > 1 else (None, None)
        lines.append(Line(RANDOM_LABEL if name == RANDOM else name, shares, means, *ends))
    return lines


def _limits(lines: Sequence[Line], tight: bool) -> tuple[float, float]:
    """What the y axis shows: the lines alone if tight, else also their intervals, which are wide
    for few seeds, as far as they take no more room than the lines."""
    means = np.concatenate([line.y for line in lines])
    low, high = float(means.min()), float(means.max())
    if not tight:
        span = max(high - low, 1.0)
        ends = (end for line in lines for end in (line.low, line.high) if end is not None)
        edges = np.concatenate([means, *ends])
        low = max(float(edges.min()), low - span / 2)
        high = min(float(edges.max()), high + span / 2)
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


def axis_label(metric: str) -> str:
    """A metric with its unit: "Accuracy, %"."""
    words = metric.replace("_", " ")
    return f"{words[:1].upper()}{words[1:]}{'' if metric in LOWER_IS_BETTER else ', %'}"


def _seeds(counts: Sequence[int]) -> str:
    """3 seeds, or 2 to 3 seeds."""
    numbers = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{numbers} seed{'s' * (counts[-1] > 1)}"


def _about(results: StudyResults) -> dict[str, str]:
    """What identifies the numbers, for the metadata of a file."""
    sweep = results.sweep
    digests = {
        standing.cell.place.get("data", ""): str(standing.cell.given.get("data", ""))
        for work in ("score", "curve") for standing in sweep.of(work)
    }  # fmt: skip
    return {
        "study": sweep.title, "model": ", ".join(sweep.names("model")),
        "data": ", ".join(sweep.names("data")), "data digest": ", ".join(digests.values()),
        "seed": ", ".join(sweep.names("seed")),
        "cells": f"{sweep.counts['done']} done of {len(sweep.standings)}",
    }  # fmt: skip


def _require_results(results: StudyResults, work: str, rows: object) -> None:
    """Require that the study asks for a kind of cells, and results of them."""
    cells = results.sweep.of(work)
    require(
        cells,
        f'"{work}" is not among the asks of this study',
        "Draw another figure, or add it to the study file and run that again",
    )
    failed = sum(cell.state in ("failed", "blocked") for cell in cells)
    why = f"{failed} of {len(cells)} such runs failed" if failed else "no such run is done yet"
    require(rows, f"this study has nothing to draw: {why}", "See hgviz study status")


# --- the page -------------------------------------------------------------------------------------

TABLES = {  # lists of the JSON, in the order of the page
    "scores": "Scores over seeds: mean [95 %]",
    "score_differences": "Differences of scores, paired by seed; p adjusted (Benjamini and "
    "Hochberg)",
    "pruning": "Scores by the share of heads off, and the mean of the curve",
    "method_differences": "Differences from the first method, paired by model and seed",
    "random_differences": "Differences from random orders; p is one-sided",
    "ranks": "Mean ranks of the methods; 1 is the highest score",
    "agreement": "Predictions and head metrics compared with the first activation",
    "missing": "Unfinished runs",
    "environment": "Environment of the runs",
}


def read_results(path: str | Path) -> StudyResults:
    """The results in the folder of a study. Raises HgvizError where no cell is done."""
    sweep = sweep_at(path)
    failed = [standing.line for standing in sweep.standings if standing.state == "failed"]
    why = f"all finished runs failed: {failed[0]}" if failed else "no run is done"
    require(
        sweep.counts["done"],
        f"{Path(sweep.path).name} has nothing to report: {why}",
        "See hgviz study status; hgviz study run computes missing runs",
    )
    return StudyResults(sweep)


def study_report(
    path: str | Path, out: str | Path, command: str = "hgviz study report"
) -> dict[str, Any]:
    """Write the results of a study as a page and return them as JSON.

    The same results give the same bytes, wherever the folder lies. Raises HgvizError for what is
    not the folder of a study, and where no cell is done.
    """
    from hgviz.figures.output import Block, Document, Picture, require_page, write_report

    require_page(Path(out))
    progress(0, 2, "reading")
    results = read_results(path)
    progress(1, 2, f"writing {Path(out).name}")
    blocks: list[Block] = []
    if results.scores:
        caption = f"{axis_label(results.scores[0]['metric'])} of every model and seed."
        blocks.append(Picture("", seeds_chart(results), caption))
    if results.units:
        caption = f"{axis_label(results.metric)} as heads are switched off, least important first."
        blocks.append(Picture("", budgets_chart(results), caption))
    facts = results.to_dict()
    blocks += _tables(facts, results.budgets)
    page = Document(facts["title"], facts["question"], tuple(blocks), _about(results))
    write_report(page, Path(out), command)
    return facts


def _tables(facts: Mapping[str, Any], budgets: Sequence[float | None]) -> Iterator[Table]:
    """Every table of the JSON that has a row."""
    from hgviz.figures.output import Table

    shares = ["mean" if budget is None else f"{100 * budget:.3g} %" for budget in budgets]
    ranks = [{"method": name, "at": ranks} for name, ranks in facts["ranks"].items()]
    lists = {**facts, "ranks": ranks, "environment": [facts["environment"]]}
    for name, caption in TABLES.items():
        if rows := [dict(_words("", row, shares)) for row in lists[name]]:
            columns = tuple(dict.fromkeys(column for row in rows for column in row))
            cells = tuple(tuple(row.get(column, "–") for column in columns) for row in rows)
            names = tuple(column.replace("_", " ") for column in columns)
            yield Table("", names, cells, caption=caption)


def _words(name: str, value: Any, shares: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Columns and words of a value of the JSON; of a list "at" one column for each budget."""
    match value:
        case {"mean": mean, "low": low, "high": high}:
            ends = "" if low is None else f" [{number(low)}, {number(high)}]"
            yield name, "–" if mean is None else f"{number(mean)}{ends}"
        case Mapping():
            for key, part in value.items():
                yield from _words(key, part, shares)
        case list() if name == "at":
            for share, part in zip(shares, value, strict=True):
                yield from _words(share, part, shares)
        case list():
            yield name, ", ".join(map(str, value))
        case bool():
            yield name, "yes" if value else "no"
        case int():
            yield name, f"{value:,}"
        case float():
            yield name, number(value)
        case _:
            yield name, "–" if value is None else str(value)
