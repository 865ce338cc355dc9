"""Charts in words: where their lines end, which bars are the longest, where two differ most."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from hgviz.core import Integers
from hgviz.figures.content.charts import Band, Curves, Line, Panel, Scores
from hgviz.figures.content.laboratory import Edge, Grids, Plots, Strips, Three
from hgviz.figures.content.reaches import Reaches
from hgviz.figures.content.repeats import Repeats
from hgviz.figures.content.seeds import Seeds
from hgviz.figures.spec import Spec
from hgviz.figures.words import spoken
from hgviz.language import counted

FEW = 8  # lines that are told one by one
ENDS = 3  # heads at either end of a ranking


def of_curves(_: Spec, chart: Curves) -> str:
    """Where every line begins and ends, and what is marked on it."""
    return spoken.joined(
        [
            f"{titled(chart.title, chart.more)}: {chart.up} over {_lower(chart.across)}",
            *(_panel(chart, panel) for panel in chart.panels),
            f"{chart.mark}: {chart.marked}" if chart.marked else "",
            *(_band(chart, panel.band) for panel in chart.panels[:1]),
        ]
    )


def of_scores(_: Spec, chart: Scores) -> str:
    """The most and the least needed heads, and how many show nothing."""
    count = len(chart.names)
    if not count:
        return spoken.joined([titled(chart.title, chart.more), "No head"])
    order = range(count)
    most, least = list(order[:ENDS]), list(order[-ENDS:]) if count > 2 * ENDS else []
    zero = int(((chart.low <= 0) & (chart.high >= 0)).sum())
    return spoken.joined(
        [
            f"{titled(chart.title, chart.more)}: {chart.up}",
            f"Most needed: {'; '.join(_head(chart, at) for at in most)}",
            f"Least needed: {'; '.join(_head(chart, at) for at in least[::-1])}" if least else "",
            f"The intervals of {zero:,} of {counted(count, 'head')} include 0",
        ]
    )


def of_seeds(_: Spec, chart: Seeds) -> str:
    """The mean of every mark with its interval, and of how many seeds it is."""
    told = []
    for facet in chart.facets:
        for name, row in zip(chart.series, facet.marks, strict=True):
            for group, mark in zip(chart.groups, row, strict=True):
                if mark is not None:
                    names = filter(None, (facet.title, group, name))
                    seeds = f" over {len(mark.values)}" if len(mark.values) > 1 else ""
                    value = _interval(mark.mean, mark.low, mark.high)
                    told.append(f"{spoken.visible(', '.join(names), spoken.NAME)} {value}{seeds}")
    if len(told) > FEW:
        told = [*told[: FEW - 1], f"{len(told) - FEW + 1:,} more"]
    head = f"{titled(chart.title, chart.more)}: {chart.up}, means and intervals of 95 %"
    return spoken.joined([head, "; ".join(told) or "Nothing was measured", *chart.notes])


def of_plots(_: Spec, chart: Plots) -> str:
    """Where every line of every pair of axes begins and ends."""
    return spoken.joined(
        [
            titled(chart.title, chart.more),
            *(
                f"{plot.title} ({plot.up} over {plot.across}): {_lines(plot.lines, dict(plot.xs))}"
                for plot in chart.plots
            ),
        ]
    )


def of_reaches(spec: Spec, chart: Reaches) -> str:
    """How far every model reaches, and where its lines begin and end."""
    title = titled(chart.title, chart.more)
    return spoken.joined([title, *chart.notes, of_plots(spec, chart.lines)])


def of_repeats(spec: Spec, chart: Repeats) -> str:
    """Which heads of every layer are most alike, and where its lines begin and end."""
    grids = replace(chart.grids, title=chart.title, more=chart.more)
    return spoken.joined([of_grids(spec, grids), of_plots(spec, chart.lines), *chart.notes])


def of_strips(_: Spec, chart: Strips) -> str:
    """The means of A and B by every metric."""
    names = f"A is {spoken.visible(chart.names[0])}, B {spoken.visible(chart.names[1])}"
    found = []
    for strip in chart.strips:
        a, b = (_interval(*mean) for mean in strip.means)
        unit = f" ({strip.unit})" if strip.unit else ""
        found.append(f"{strip.label}{unit}: A {a}, B {b}")
    title = titled(chart.title, chart.more)
    return spoken.joined([f"{title or 'Means of heads'}; {names}", *found])


def of_grids(_: Spec, chart: Grids) -> str:
    """The largest and the smallest number of every grid, where a row meets another column."""
    found = []
    for grid in chart.grids:
        values = grid.values.astype(float)
        if grid.down == grid.across and values.shape[0] == values.shape[1]:
            values = np.where(np.eye(len(values), dtype=bool), np.nan, values)
        if not np.isfinite(values).any():
            found.append(f"{grid.title}: nothing")
            continue
        ends = [
            f"{spoken.said(float(values.flat[at]))} at {grid.rows[at // values.shape[1]]} and "
            f"{grid.columns[at % values.shape[1]]}"
            for at in (int(np.nanargmin(values)), int(np.nanargmax(values)))
        ]
        found.append(f"{grid.title}: from {ends[0]} to {ends[1]}")
    return spoken.joined([f"{titled(chart.title, chart.more) or 'Grids'}: {chart.unit}", *found])


def of_three(_: Spec, chart: Three) -> str:
    """Where A weighs more than B, and B more than A."""
    names = f"A is {_name(chart.names[0])}, B {_name(chart.names[1])}"
    title = spoken.visible(chart.title, spoken.NAME) or "A head"
    whole = f"{title}: the maps of A and of B, and A − B; {names}"
    apart = np.where(chart.seen[2], chart.maps[2].astype(float), 0.0)
    apart = np.where(np.isfinite(apart), apart, 0.0)
    if not apart.size or not apart.any():
        return spoken.joined([whole, "They are the same wherever both have a weight"])
    found = []
    for name, at, sign in (("A", int(apart.argmax()), 1), ("B", int(apart.argmin()), -1)):
        row, column = divmod(at, apart.shape[1])
        if sign * apart[row, column] > 0:
            here = _at(chart.rows_, row, chart.zoom), _at(chart.columns, column, chart.zoom)
            weights = " against ".join(
                spoken.said(float(one[row, column])) for one in chart.maps[:2]
            )
            more = spoken.said(abs(float(apart[row, column])))
            found.append(
                f"{name} weighs most more, {more}, from query {here[0]} to key {here[1]} "
                f"({weights})"
            )
    side = 1 << chart.zoom
    found.append(f"Each cell is the largest of {side:,} × {side:,} weights" if chart.zoom else "")
    return spoken.joined([whole, "; ".join(found[:-1]), found[-1], *chart.notes])


# --- the parts of it ------------------------------------------------------------------------------


def titled(title: str, more: str) -> str:
    """What a chart is called, above it."""
    return ", ".join(spoken.visible(one, 2 * spoken.NAME) for one in (title, more) if one)


def _name(name: str) -> str:
    return spoken.visible(name, spoken.NAME) or "a model without a name"


def _lower(words: str) -> str:
    """As it stands within a sentence."""
    return words if words[1:2].isupper() else f"{words[:1].lower()}{words[1:]}"


def _head(chart: Scores, at: int) -> str:
    ends = float(chart.value[at]), float(chart.low[at]), float(chart.high[at])
    return f"{chart.names[at]}, {_interval(*ends)}"


def _interval(value: float, low: float, high: float) -> str:
    if not np.isfinite([low, high]).all():
        return spoken.said(value)
    return f"{spoken.said(value)} ({spoken.said(low)} to {spoken.said(high)})"


def _panel(chart: Curves, panel: Panel) -> str:
    """The lines of one pair of axes."""
    told = _lines(panel.lines, {}, chart)
    return f"{spoken.visible(panel.title, spoken.NAME)}: {told}" if panel.title and told else told


def _lines(lines: Iterable[Line], names: Mapping[float, str], chart: Curves | None = None) -> str:
    """Where lines begin and end; names: what stands along the axis in place of numbers."""
    found = []
    for one in lines:
        real = np.flatnonzero(np.isfinite(one.x) & np.isfinite(one.y))
        name = spoken.visible(one.label, spoken.NAME)
        if not len(real):
            found.append(f"{name} has no point")
            continue
        a, b = int(real[0]), int(real[-1])
        percent = chart is not None and chart.percent
        ends = [
            f"{spoken.said(float(one.y[at]))} at {_across(float(one.x[at]), names, percent)}"
            for at in dict.fromkeys((a, b))
        ]
        words = f"{name} goes from {' to '.join(ends)}"
        if chart is not None and one.mark is not None and one.marked:
            words += f", {chart.mark} {one.marked}"
        found.append(words)
    if len(found) > FEW:
        found = [*found[: FEW - 1], f"{len(found) - FEW + 1:,} more lines"]
    return "; ".join(found)


def _across(x: float, names: Mapping[float, str], percent: bool) -> str:
    """What stands below a point."""
    return names.get(x) or (spoken.percent(x) if percent else spoken.said(x))


def _band(chart: Curves, band: Band | None) -> str:
    if band is None or not len(band.x):
        return ""
    low, middle, high = (float(one[-1]) for one in (band.low, band.middle, band.high))
    name = f" ({chart.banded})" if chart.banded else ""
    return (
        f"The band{name} ends between {spoken.said(low)} and {spoken.said(high)}, its middle at "
        f"{spoken.said(middle)}"
    )


def _at(edge: Edge, cell: int, zoom: int) -> str:
    some: Integers = edge.spans[cell << zoom : (cell + 1) << zoom]
    real = some[some[:, 1] > 0]
    if not len(real):
        return spoken.tokens_of(edge.prompt, -1, -1)
    return spoken.tokens_of(edge.prompt, int(real[:, 0].min()), int(real[:, 1].max()))
