"""Charts of a study: scores over seeds, and scores as heads are switched off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hgviz.analysis.statistics import Interval, student_interval
from hgviz.core import HgvizError
from hgviz.errors import choose
from hgviz.study import Sweep
from hgviz.tasks.study_results import (
    LOWER_IS_BETTER,
    RANDOM,
    Setting,
    StudyResults,
    curves_of,
    scores_of,
)

if TYPE_CHECKING:
    from hgviz.figures.charts import Line, Plot, Plots, SeedMark, Seeds

MOST_AXES = 12  # of one figure
MOST_RIBBONS = 4  # whose intervals can be told apart
OWN = "own"  # the name of an activation that is not exchanged
RANDOM_LABEL = "random orders"
X_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)


def sweep_chart(kind: str, sweep: Sweep, methods: Sequence[str] = ()) -> Seeds | Plots:
    """The chart of a study. kind: "seeds", the scores of models; "budgets", scores as heads are
    switched off, by methods, () for all. Raises HgvizError for what is not asked for or not done.
    """
    if kind == "seeds":
        return seeds_chart(scores_of(sweep))
    return budgets_chart(curves_of(sweep), methods)


def seeds_chart(results: StudyResults) -> Seeds:
    """A mark for every model and activation, axes for every data."""
    from hgviz.figures.charts import Facet, SeedMark, Seeds

    if not results.scores:
        raise _nothing_to_draw(results, "score")
    metric = results.scores[0].metric
    scores = [row for row in results.scores if row.metric == metric]
    factor = 1.0 if metric in LOWER_IS_BETTER else 100.0

    def mark(score: Interval, seeds: tuple[str, ...]) -> SeedMark:
        count = len(score.values)
        names = seeds if len(seeds) == count else tuple(map(str, range(count)))
        ends = (factor * end for end in (score.mean, score.low, score.high))
        return SeedMark(factor * score.values, names, *ends)

    marks = {row.setting: mark(row.score, row.seeds) for row in scores}
    data, models, activations = (
        tuple(dict.fromkeys(row.setting[axis] for row in scores)) for axis in range(3)
    )
    # activations of a single model are along the axis and need no key; "own" says nothing
    is_single = len(models) == 1 and activations != (OWN,)
    groups, series = (activations, ("",)) if is_single else (models, activations)

    def at(source: str, name: str, group: str) -> SeedMark | None:
        return marks.get((source, models[0], group) if is_single else (source, group, name))

    facets = tuple(
        Facet(
            source if len(data) > 1 else "",
            tuple(tuple(at(source, name, group) for group in groups) for name in series),
        )
        for source in data
    )
    subtitle: tuple[str, ...] = ()
    if len(data) == 1:
        named = len(activations) == 1 and activations[0] != OWN
        subtitle = (data[0], *models[:1] * is_single, *activations[:1] * named)
    counts = sorted({len(row.seeds) for row in scores})
    notes = [f"{row.setting[0]} has another score, and is left out"
             for row in results.scores if row.metric != metric]  # fmt: skip
    if counts[-1] > 1:
        mean = "a large one their mean with its interval of 95 % over seeds (Student)"
        notes.insert(0, f"{_seeds(counts)}; a small mark is a seed, {mean}")
    return Seeds(
        facets, groups, series if len(series) > 1 else ("",), axis_label(metric),
        title=results.sweep.title or "Scores", more=", ".join(subtitle),
        notes=tuple(dict.fromkeys(notes)), about=about(results),
    )  # fmt: skip


def budgets_chart(results: StudyResults, methods: Sequence[str] = ()) -> Plots:
    """The mean curve over seeds of every method, and of random orders; axes for every setting."""
    from hgviz.figures.charts import Plots

    if not results.curves:
        raise _nothing_to_draw(results, "curve")
    for method in methods:
        choose(method, results.methods, "curve of this study")
    names = [name for name in results.methods if not methods or name in methods or name == RANDOM]
    settings = results.settings
    plots = [_plot(results, setting, names) for setting in settings[:MOST_AXES]]
    lines = [line for plot in plots for line in plot.lines]
    halves = [(line.high - line.low) / 2 for line in lines
              if line.low is not None and line.high is not None]  # fmt: skip
    has_ribbons = bool(halves) and len(names) <= MOST_RIBBONS
    width = ""
    if halves and not has_ribbons:
        plots = [_without_intervals(plot) for plot in plots]
        median = float(np.median(np.concatenate(halves)))
        width = f"; interval of 95 % of a point over seeds (Student): about ± {median:.1f}"
    counts = sorted({
        sum(unit[:3] == setting for unit in results.curves) for setting in settings[:MOST_AXES]
    })  # fmt: skip
    has_random = any(line.label == RANDOM_LABEL for line in lines)
    random = f"; {RANDOM_LABEL}: the mean of those of a model and seed" if has_random else ""
    notes = [f"{_seeds(counts)}{random}{width}"]
    if len(settings) > MOST_AXES:
        notes.append(f"the first {MOST_AXES} of {len(settings)} settings")
    return Plots(
        tuple(plots), title=results.sweep.title or "Scores as heads are switched off",
        ribbon="Shaded: the interval of 95 % over seeds (Student)." if has_ribbons else "",
        notes=tuple(notes), about=about(results),
    )  # fmt: skip


def _plot(results: StudyResults, setting: Setting, names: Sequence[str]) -> Plot:
    from hgviz.figures.charts import Plot

    units = [methods for unit, methods in results.curves.items() if unit[:3] == setting]
    lines = [line for name in names if (line := _mean_line(name, units)) is not None]
    means = np.concatenate([line.y for line in lines])
    low, high = float(means.min()), float(means.max())
    span = max(high - low, 1.0)
    ends = [end for line in lines for end in (line.low, line.high) if end is not None]
    edges = np.concatenate([*ends, means])
    # intervals of few seeds are wide: they may take as much room as the lines
    limits = max(float(edges.min()), low - span / 2), min(float(edges.max()), high + span / 2)
    margin = 0.05 * (limits[1] - limits[0]) or 1.0
    ticks = tuple((share, f"{100 * share:.0f} %") for share in X_TICKS)
    varies = [len(set(column)) > 1 for column in zip(*results.settings, strict=True)]
    title = ", ".join(name for name, varying in zip(setting, varies, strict=True) if varying)
    return Plot(
        title or setting[1], "Heads off", axis_label(results.metric), tuple(lines), ticks,
        limits=(limits[0] - margin, limits[1] + margin),
    )  # fmt: skip


def _without_intervals(plot: Plot) -> Plot:
    lines = tuple(replace(line, low=None, high=None) for line in plot.lines)
    values = np.concatenate([line.y for line in lines])
    margin = 0.05 * float(np.ptp(values)) or 1.0
    return replace(plot, lines=lines, limits=(values.min() - margin, values.max() + margin))


def _mean_line(name: str, units: Sequence[Mapping[str, Any]]) -> Line | None:
    """The mean over seeds of the curves of a method, at the shares that all seeds have."""
    from hgviz.figures.charts import Line

    curves = [
        (np.round(methods[name][0][0], 9), np.mean([y for _, y in methods[name]], axis=0))
        for methods in units if name in methods
    ]  # fmt: skip
    if not curves:
        return None
    shares = curves[0][0]
    for x, _ in curves[1:]:
        shares = np.intersect1d(shares, x)
    values = np.array([100 * y[np.searchsorted(x, shares)] for x, y in curves])
    points = [student_interval(column) for column in values.T]
    low = high = None
    if len(values) > 1:
        low = np.array([point.low for point in points])
        high = np.array([point.high for point in points])
    label = RANDOM_LABEL if name == RANDOM else name
    return Line(label, shares, np.array([point.mean for point in points]), low, high)


# --- words ----------------------------------------------------------------------------------------


def axis_label(metric: str) -> str:
    """A metric with its unit: "Accuracy, %"."""
    words = metric.replace("_", " ")
    return f"{words[:1].upper()}{words[1:]}{'' if metric in LOWER_IS_BETTER else ', %'}"


def _seeds(counts: Sequence[int]) -> str:
    """3 seeds, or 2 to 3 seeds."""
    numbers = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{numbers} seed{'s' * (counts[-1] > 1)}"


def about(results: StudyResults) -> dict[str, str]:
    """What identifies the numbers, for the metadata of a file."""
    sweep = results.sweep
    digests = {
        cell.cell.place.get("data", ""): str(cell.cell.given.get("data", ""))
        for work in ("score", "curve") for cell in sweep.of(work)
    }  # fmt: skip
    return {
        "study": sweep.title, "model": ", ".join(sweep.names("model")),
        "data": ", ".join(sweep.names("data")), "data digest": ", ".join(digests.values()),
        "seed": ", ".join(sweep.names("seed")),
        "cells": f"{sweep.counts['done']} done of {len(sweep.standings)}",
    }  # fmt: skip


def _nothing_to_draw(results: StudyResults, work: str) -> HgvizError:
    """Why there is nothing to draw: the study does not ask for it, or no cell is done."""
    cells = results.sweep.of(work)
    if not cells:
        return HgvizError(
            f'this study does not ask for it: "{work}" is not among its asks',
            "Draw what it asks for, or add it to the study file and run it again",
        )
    failed = sum(cell.state in ("failed", "blocked") for cell in cells)
    why = f"{failed} of {len(cells)} such cells failed" if failed else "no such cell is done yet"
    return HgvizError(f"this study has nothing to draw: {why}", "See hgviz study status")


__all__ = ["RANDOM_LABEL", "about", "axis_label", "budgets_chart", "seeds_chart", "sweep_chart"]
