"""Charts of a sweep: what is reached over seeds, what is left at every share of heads off."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hgviz.analysis.statistics import Interval, student_interval
from hgviz.core import HgvizError
from hgviz.errors import choose
from hgviz.tasks.concluding import curves_in, reached_in
from hgviz.tasks.findings import LOWER, RANDOM, Findings, Setting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hgviz.figures.charts import Line, Plot, Plots, SeedMark, Seeds
    from hgviz.study import Sweep

MOST = 12  # pairs of axes of one figure
TOGETHER = 4  # lines whose ribbons can be told from each other
OWN = "own"  # what the activation of a model is called that is given no other
ORDERS = "random orders"


def sweep_chart(kind: str, sweep: Sweep, methods: Sequence[str] = ()) -> Seeds | Plots:
    """What a figure of a sweep shows. kind: "seeds", what models reach; "budgets", what is left as
    heads go, by methods, () for all. Errors: HgvizError for what was not asked, or is not done."""
    if kind == "seeds":
        return seeds_chart(reached_in(sweep))
    return budgets_chart(curves_in(sweep), methods)


# --- what is reached ------------------------------------------------------------------------------


def seeds_chart(found: Findings) -> Seeds:
    """A mark for every model and activation, a pair of axes for every data."""
    from hgviz.figures.charts import Facet, Seeds

    if not found.reached:
        raise _nothing(found, "score", "score")
    metric = found.reached[0].metric
    some = [one for one in found.reached if one.metric == metric]
    data, models, activations = (
        tuple(dict.fromkeys(one.setting[at] for one in some)) for at in range(3)
    )
    marks = {one.setting: _mark(one.score, one.seeds, _factor(metric)) for one in some}
    # activations of one model stand along the axis, and need no key; "own" alone says nothing
    alone = len(models) == 1 and activations != (OWN,)
    groups, series = (activations, ("",)) if alone else (models, activations)

    def at(source: str, name: str, group: str) -> SeedMark | None:
        return marks.get((source, models[0], group) if alone else (source, group, name))

    facets = tuple(
        Facet(
            source if len(data) > 1 else "",
            tuple(tuple(at(source, name, group) for group in groups) for name in series),
        )
        for source in data
    )
    counts = sorted({len(one.seeds) for one in some})
    others = dict.fromkeys(one.setting[0] for one in found.reached if one.metric != metric)
    one = len(activations) == 1 and activations[0] != OWN
    only = (data[0], *models[:1] * alone, *activations[:1] * one) if len(data) == 1 else ()
    return Seeds(
        facets, groups, series if len(series) > 1 else ("",), said(metric),
        title=found.sweep.title or "What is reached", more=", ".join(only),
        notes=(f"{_seeds(counts)}; a small mark is a seed, a large one their mean with its "
               "interval of 95 % over seeds (Student)",) * (counts[-1] > 1)
        + tuple(f"{one} has another score, and is left out" for one in others),
        about=about(found),
    )  # fmt: skip


def _mark(one: Interval, seeds: tuple[str, ...], factor: float) -> SeedMark:
    from hgviz.figures.charts import SeedMark

    names = seeds if len(seeds) == len(one.values) else tuple(map(str, range(len(one.values))))
    ends = (factor * end for end in (one.mean, one.low, one.high))
    return SeedMark(factor * one.values, names, *ends)


# --- what is left ---------------------------------------------------------------------------------


def budgets_chart(found: Findings, methods: Sequence[str] = ()) -> Plots:
    """Means over seeds of the curves of every method, with random orders; a pair of axes for every
    setting."""
    from hgviz.figures.charts import Plots

    if not found.curves:
        raise _nothing(found, "curve", "curve")
    for method in methods:
        choose(method, found.methods, "curve of this study")
    names = [one for one in found.methods if not methods or one in methods or one == RANDOM]
    chosen = found.settings
    plots = [_plot(found, setting, names) for setting in chosen[:MOST]]
    halves = [
        (line.high - line.low) / 2
        for plot in plots for line in plot.lines if line.low is not None and line.high is not None
    ]  # fmt: skip
    ribbon = bool(halves) and len(names) <= TOGETHER
    wide = ""
    if halves and not ribbon:
        plots = [_bare(plot) for plot in plots]
        middle = float(np.median(np.concatenate(halves)))
        wide = f"; interval of 95 % of a point over seeds (Student): about ± {middle:.1f}"
    counts = sorted({
        sum(1 for unit in found.curves if unit[:3] == setting) for setting in chosen[:MOST]
    })  # fmt: skip
    left_out = len(chosen) - len(plots)
    drawn = any(line.label == ORDERS for plot in plots for line in plot.lines)
    random = f"; {ORDERS}: the mean of those of a model and seed" if drawn else ""
    return Plots(
        tuple(plots), title=found.sweep.title or "What is left as heads go",
        ribbon="Shaded: the interval of 95 % over seeds (Student)." if ribbon else "",
        notes=(
            f"{_seeds(counts)}{random}{wide}",
            *((f"the first {len(plots)} of {len(chosen)} settings",) * (left_out > 0)),
        ),
        about=about(found),
    )  # fmt: skip


def _plot(found: Findings, setting: Setting, names: Sequence[str]) -> Plot:
    from hgviz.figures.charts import Plot

    units = [some for unit, some in found.curves.items() if unit[:3] == setting]
    lines = [line for name in names if (line := _line(name, units)) is not None]
    middle = np.concatenate([line.y for line in lines])
    low, high = float(middle.min()), float(middle.max())
    span = max(high - low, 1.0)
    ends = [end for line in lines for end in (line.low, line.high) if end is not None]
    edges = np.concatenate([*ends, middle])
    # intervals of few seeds are wide: they may take as much room as what they are of
    limits = max(float(edges.min()), low - span / 2), min(float(edges.max()), high + span / 2)
    air = 0.05 * (limits[1] - limits[0]) or 1.0
    xs = tuple((share, f"{100 * share:.0f} %") for share in (0.0, 0.25, 0.5, 0.75, 1.0))
    several = [len(set(column)) > 1 for column in zip(*found.settings, strict=True)]
    title = ", ".join(
        name for name, varies in zip(setting, several, strict=True) if varies
    ) or setting[1]  # fmt: skip
    return Plot(
        title, "Heads off", said(found.unit), tuple(lines), xs,
        limits=(limits[0] - air, limits[1] + air),
    )  # fmt: skip


def _bare(plot: Plot) -> Plot:
    """Without intervals, of which none could be seen among many."""
    lines = tuple(replace(line, low=None, high=None) for line in plot.lines)
    values = np.concatenate([line.y for line in lines])
    air = 0.05 * float(np.ptp(values)) or 1.0
    return replace(plot, lines=lines, limits=(values.min() - air, values.max() + air))


def _line(name: str, units: Sequence[object]) -> Line | None:
    """The mean of the curves of a method at the shares that all seeds have."""
    from hgviz.figures.charts import Line

    curves = [
        (some[name][0][0], np.mean([y for _, y in some[name]], axis=0))  # type: ignore[index]
        for some in units
        if name in some  # type: ignore[operator]
    ]
    if not curves:
        return None
    shares = [np.round(x, 9) for x, _ in curves]
    common = shares[0]
    for one in shares[1:]:
        common = np.intersect1d(common, one)
    values = np.array([
        100 * y[np.searchsorted(x, common)] for x, (_, y) in zip(shares, curves, strict=True)
    ])  # fmt: skip
    some = [student_interval(column) for column in values.T]
    ends = (
        (np.array([one.low for one in some]), np.array([one.high for one in some]))
        if len(values) > 1
        else (None, None)
    )
    label = ORDERS if name == RANDOM else name
    return Line(label, common, np.array([one.mean for one in some]), *ends)


# --- words ----------------------------------------------------------------------------------------


def said(metric: str) -> str:
    """What an axis is called: "Accuracy, %"."""
    words = metric.replace("_", " ")
    return f"{words[:1].upper()}{words[1:]}{'' if metric in LOWER else ', %'}"


def budget(measure: float | None) -> str:
    """A share of heads, or the mean along a curve."""
    return "mean" if measure is None else f"{100 * measure:.3g} %"


def _factor(metric: str) -> float:
    return 1.0 if metric in LOWER else 100.0


def _seeds(counts: Sequence[int]) -> str:
    told = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{told} seed{'s' * (counts[-1] > 1)}"


def about(found: Findings) -> dict[str, str]:
    """What identifies the numbers, for the file."""
    sweep = found.sweep
    digests = {
        one.cell.place.get("data", ""): str(one.cell.given.get("data", ""))
        for work in ("score", "curve") for one in sweep.of(work)
    }  # fmt: skip
    return {
        "study": sweep.title, "model": ", ".join(sweep.names("model")),
        "data": ", ".join(sweep.names("data")), "data digest": ", ".join(digests.values()),
        "seed": ", ".join(sweep.names("seed")), "cells": f"{sweep.counts['done']} done of "
        f"{len(sweep.standings)}",
    }  # fmt: skip


def _nothing(found: Findings, work: str, ask: str) -> HgvizError:
    """Why there is nothing to draw: not asked, or not done."""
    some = found.sweep.of(work)
    if not some:
        return HgvizError(
            f'this study does not ask for it: "{ask}" is not among its asks',
            "Draw what it asks for, or add it to the study file and run it again",
        )
    failed = sum(one.state in ("failed", "blocked") for one in some)
    why = f"{failed} of {len(some)} such cells failed" if failed else "no such cell is done yet"
    return HgvizError(f"this study has nothing to draw: {why}", "See hgviz study status")


__all__ = ["about", "budget", "budgets_chart", "seeds_chart", "sweep_chart"]
