"""What a study found so far, drawn from the same content as its figures: what models reach, and
what is left as heads go, over seeds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout

from hgviz.core import Step, Task
from hgviz.figures.spec import Spec
from hgviz.gui import plots
from hgviz.gui.charts import ChartWidget
from hgviz.gui.language import tr
from hgviz.gui.plots import Axis, Band, Bars, Chart, Entry, Plot, Points
from hgviz.gui.runs import called, share
from hgviz.gui.view import View
from hgviz.gui.widgets import IconButton, PaneHead
from hgviz.tasks.plotting import ORDERS

if TYPE_CHECKING:
    from hgviz.figures.content.charts import Line
    from hgviz.figures.content.laboratory import Plot as Curves
    from hgviz.figures.content.laboratory import Plots
    from hgviz.figures.content.seeds import Mark, Seeds
    from hgviz.session import Session
    from hgviz.sweep import Sweep

REST = 10  # what takes long to read is read again after so many times of rest


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What is drawn of the cells that are done; when it is worth looking again, on the clock."""

    path: str
    done: tuple[str, ...]
    content: Any
    again: float


class FoundView(View):
    """One chart of what is done so far; it changes as more is."""

    figureless = "Nothing of it is done yet"
    lane = "facts"  # many cells take a while to read together
    needs = ("sweep", "dark")
    kind = ""
    work = ""  # of the cells it is of
    without = ("", "")  # what is said where the study does not ask for it
    coming = ("", "")  # and where none is done yet
    means = ""  # what is drawn, with its formula and source

    pointed = Signal(str)  # a line about the point under the pointer or the keys

    def __init__(self, draws: Callable[[Any], Chart]) -> None:
        super().__init__()
        self._draws = draws
        self.head = PaneHead(tr(self.title))
        self.export = IconButton("export", tr("Export figure… (Ctrl+E)"))
        self.export.clicked.connect(self._export)
        self.head.add(self.export)
        self.head.title.setToolTip(tr(self.means))
        self.chart = ChartWidget(tr(self.title))
        self.chart.pointed.connect(self.pointed)
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(self.chart, 1)
        self._found: Found | None = None
        self.start_at(self.chart)

    def request(self, session: Session) -> Task[Found] | None:
        """What the done cells give; the same as before where no more are done."""
        sweep = session.sweep
        some = () if sweep is None else sweep.of(self.work)
        done = tuple(one.cell.key for one in some if one.state == "done")
        if sweep is None or not done:
            self.empty = self.coming if some else self.without
            self.empty_actions = () if some else (("open_sweep_file", "Open a study file…"),)
            return None
        return _drawn(self.kind, sweep, done, self._found)

    def draw(self, result: Found) -> None:
        """Show it."""
        self._found = result
        content = result.content
        total = len(self.session.sweep.of(self.work)) if self.session and self.session.sweep else 0
        so_far = tr("{n:,} of {all:,} cells so far", n=len(result.done), all=total)
        ribbon = getattr(content, "ribbon", "").rstrip(".")
        notes = [*content.notes, ribbon]
        words = [*([so_far] if len(result.done) < total else []), *map(tr, filter(None, notes))]
        self.head.note.say("   ·   ".join(words))
        self.chart.show_chart(self._draws(content))

    @property
    def zoomed(self) -> bool:
        """Whether only a part of a plot is on screen."""
        return self.chart.zoomed

    def fit(self) -> None:
        """Show all of every plot."""
        self.chart.reset()

    def figure(self, session: Session) -> Spec | None:
        """The same on paper."""
        some = () if session.sweep is None else session.sweep.of(self.work)
        return Spec(self.kind) if any(one.state == "done" for one in some) else None

    def as_text(self) -> str:
        """The numbers, tab-separated."""
        if self._found is None:
            return ""
        return "\n".join("\t".join(map(str, row)) for row in self._found.content.rows())

    def as_table(self) -> list[list[str]] | None:
        """The numbers that are drawn: a row for each seed and mean, or each point of a line."""
        if self._found is None:
            return None
        names, *rows = self._found.content.rows()
        return [[tr(str(one)) for one in names], *([_plain(one) for one in row] for row in rows)]

    def _export(self) -> None:
        self.asked.emit("export")


class ReachedView(FoundView):
    """What every model and activation reaches: a point for each seed, the mean, its interval."""

    title = "What each reaches"
    topic = "study-reached"
    icon = "compare"
    kind, work = "seeds", "score"
    means = (
        "A small mark is a seed, the large one the mean m of n seeds, the bar its interval of "
        "95 %: m ± t s / √n, Student's t with n − 1 degrees of freedom (Student 1908; "
        "docs/statistics.md)."
    )
    without = ("This study does not score its models", 'It does so with "score" among its asks.')
    coming = ("No model is scored yet", "A point for each seed will stand here, with their means.")

    def __init__(self) -> None:
        super().__init__(seeds_chart)


class BudgetsView(FoundView):
    """What is left as heads go, by method: means over seeds with their intervals."""

    title = "As heads go"
    topic = "study-budgets"
    icon = "prune"
    kind, work = "budgets", "curve"
    means = (
        "What is left with a share of heads off: the mean over seeds of what was measured there, "
        "shaded with Student's interval of 95 %, m ± t s / √n (docs/statistics.md). Random orders: "
        "the mean of those of a model and seed."
    )
    without = ("This study draws no curves", 'It does so with "curve" among its asks, and methods.')
    coming = ("No curve is done yet", "A line for each method will stand here, over seeds.")

    def __init__(self) -> None:
        super().__init__(budgets_chart)


def seeds_chart(content: Seeds) -> Chart:
    """What was reached: a small mark for each seed, a large one for their mean, its interval.

    Facets stand side by side on one scale.
    """
    marks = content.marks()
    low, high = _limits(marks)
    count, groups = len(content.series), len(content.groups)
    apart = 0.64 / count  # of the room of a group
    ticks = tuple((at + 0.5, called(name)) for at, name in enumerate(content.groups))
    found: list[Plot] = []
    for number, facet in enumerate(content.facets):
        seeds: list[plots.Part] = []
        bars: list[plots.Part] = []
        means: list[plots.Part] = []
        for series, row in enumerate(facet.marks):
            there = [(at, mark) for at, mark in enumerate(row) if mark is not None]
            x = np.array([at + 0.5 + (series - (count - 1) / 2) * apart for at, _ in there])
            beside = [
                (x[at] + apart * (0.14 + 0.3 * seed / max(1, len(mark.values))), float(value))
                for at, (_, mark) in enumerate(there)
                for seed, value in enumerate(mark.values)
            ]
            xs, ys = ([pair[at] for pair in beside] for at in (0, 1))
            seeds.append(Points(xs, ys, series, size=5.2, hollow=True))
            sure = [at for at, (_, mark) in enumerate(there) if np.isfinite(mark.low)]
            ends = [there[at][1] for at in sure]
            bars.append(Bars(x[sure], [m.low for m in ends], [m.high for m in ends], series))
            name = content.series[series]
            said = [_reached((content.groups[at], name), mark) for at, mark in there]
            y = [mark.mean for _, mark in there]
            means.append(Points(x, y, series, series, 10.0, told=said.__getitem__))
        up = Axis(low, high, tr(content.up)) if not number else Axis(low, high, words=_nothing)
        parts = (*seeds, *bars, *means)
        found.append(Plot(Axis(0.0, float(groups), ticks=ticks), up, parts, facet.title))
    legend = tuple(Entry(called(name), at, at) for at, name in enumerate(content.series))
    return Chart(
        tuple(found), legend=legend if count > 1 else (), of=content.groups, across=len(found)
    )


def budgets_chart(content: Plots) -> Chart:
    """What is left as heads go: a line for each method with its interval, a plot for each model."""
    names = list(dict.fromkeys(one.label for plot in content.plots for one in plot.lines))
    found: list[Plot] = []
    for plot in content.plots:
        xs = np.concatenate([one.x for one in plot.lines])
        ys = np.concatenate([one.y for one in plot.lines])
        ticks = tuple((one, share(100 * one, 0)) for one, _ in plot.xs) or None
        across = Axis.around(xs, 0.03, tr(plot.across).lower(), ticks=ticks)
        up = Axis.around(plot.limits or ys, 0.04, tr(plot.up))
        bands: list[plots.Part] = []
        lines: list[plots.Part] = []
        for one in plot.lines:
            number = names.index(one.label)
            colour = _colour(number, one.label)
            if one.low is not None and one.high is not None:
                bands.append(Band(one.x, one.low, one.high, colour, 0.16))
            style: Any = "dash" if one.label == ORDERS else "solid"
            told = partial(_left, one, plot)
            lines += [
                plots.Line(one.x, one.y, colour, style=style),
                Points(one.x, one.y, colour, number, 7.0, told=told),
            ]
        found.append(Plot(across, up, (*bands, *lines), plot.title))
    legend = tuple(Entry(called(name), _colour(at, name), at) for at, name in enumerate(names))
    return Chart(tuple(found), legend=legend, of=tuple(names))


def _reached(names: tuple[str, str], mark: Mark) -> str:
    """What a mean over seeds is, how sure, and of which values."""
    name = ", ".join(filter(None, map(called, names)))
    seeds = tr("{n} seed" if len(mark.values) == 1 else "{n} seeds", n=len(mark.values))
    sure = tr("{seeds}: no interval", seeds=seeds)
    if np.isfinite(mark.low):
        ends = {"low": plots.number(mark.low), "high": plots.number(mark.high)}
        sure = tr("{low} to {high}, 95 % over {seeds}", **ends, seeds=seeds)
    values = ", ".join(plots.number(float(one)) for one in mark.values[:8])
    return f"{name}: {plots.number(mark.mean)}\n{sure}\n{values}"


def _left(line: Line, plot: Curves, at: int) -> str:
    """What a method leaves at a share of heads, and how sure."""
    name = ", ".join(filter(None, (plot.title, called(line.label))))
    words = [f"{name}: {plots.number(line.y[at])}"]
    if line.low is not None and line.high is not None and np.isfinite(line.low[at]):
        ends = {"low": plots.number(line.low[at]), "high": plots.number(line.high[at])}
        words.append(tr("{low} to {high}, 95 % over seeds", **ends))
    return "\n".join((*words, tr("{share} of heads off", share=share(100 * line.x[at], 0))))


def _limits(marks: list[Mark]) -> tuple[float, float]:
    """From where to where the axis goes. Intervals of few seeds are wide: they may take as much
    room as the numbers they are of."""
    known = np.concatenate([one.values for one in marks])
    ends = [end for one in marks for end in (one.mean, one.low, one.high) if np.isfinite(end)]
    low, high = float(known.min()), float(known.max())
    span = max(high - low, abs(high) * 0.02, 1e-6)
    low, high = max(min(low, *ends), low - span), min(max(high, *ends), high + span)
    air = 0.08 * (high - low) or span
    return low - air, high + air


def _colour(number: int, name: str) -> plots.Colour:
    return "secondary" if name == ORDERS else number  # what the others are beside is quiet


def _nothing(value: float) -> str:
    return ""


def _drawn(kind: str, sweep: Sweep, done: tuple[str, ...], before: Found | None) -> Task[Found]:
    yield Step(0, 1, "reading what is done")
    begun = time.monotonic()
    if before is not None and before.path == sweep.path:
        early = begun < before.again and not sweep.complete
        if before.done == done or early:
            return before
    from hgviz.tasks.plotting import sweep_chart

    content = sweep_chart(kind, sweep)
    now = time.monotonic()
    return Found(sweep.path, done, content, now + REST * (now - begun))


def _plain(value: Any) -> str:
    """A value as Python writes it; nothing where there is none."""
    if isinstance(value, str):
        return called(value)
    return "" if value != value else repr(round(float(value), 10))
