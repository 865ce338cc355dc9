"""The Study page: a table of runs, two charts, and the run that is chosen."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor, QIcon
from PySide6.QtWidgets import QSizePolicy, QStackedWidget, QWidget

from hgviz import language
from hgviz.core import progress
from hgviz.figures.spec import Spec
from hgviz.gui import charts as plots
from hgviz.gui import studyruns, theme, widgets
from hgviz.gui.charts import Axis, Band, Chart, ChartView, Intervals, Plot, Points
from hgviz.gui.commands import Commands
from hgviz.gui.language import tr
from hgviz.gui.studyruns import KINDS, MEANS, STATES, called
from hgviz.gui.tables import Column, RowTable, in_full
from hgviz.gui.view import Empty, View, plain
from hgviz.gui.widgets import Button, PaneHead, Segments, Words, hbox, label, line, tip, vbox
from hgviz.study import Standing, State, Sweep
from hgviz.tasks.study_results import RANDOM_LABEL

if TYPE_CHECKING:
    from hgviz.figures.charts import Line, Plots, SeedMark, Seeds
    from hgviz.figures.charts import Plot as Curves
    from hgviz.session import Session


class RunView(View):
    """The chosen run: its settings, state and result, and a button that opens its output."""

    title = "Run"
    topic = "study-cell"
    figureless = "It is text"
    needs = ("sweep", "cell", "dark")
    lane = "here"
    empty = Empty("No run chosen", "Choose a run in the table to see its result.")

    def __init__(self) -> None:
        super().__init__()
        self.place = label(factor=1.08, weight=600, wrap=True)
        self.facts = label(factor=0.92, wrap=True)
        for text in (self.place, self.facts):
            text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.facts.setTextFormat(Qt.TextFormat.RichText)
        self.open = Button(tr("Open"), clicked=lambda: self.asked.emit("open_cell"))
        inside = vbox(
            None, self.place, self.facts, (self.open, 0, Qt.AlignmentFlag.AlignLeft), 1,
            margins=(16, 4, 16, 12), spacing=8,
        )  # fmt: skip
        vbox(self.content, PaneHead(tr(self.title)), inside)

    def request(self, session: Session) -> Callable[[], Standing] | None:
        run = session.run
        return None if run is None else lambda: run

    def draw(self, result: Standing) -> None:
        grey, facts = theme.current().secondary.name(), studyruns.facts(result)
        rows = "".join(
            f'<tr><td style="color:{grey}">{tr(name)}</td><td>{escape(words)}</td></tr>'
            for name, words in facts
        )
        self.place.setText(studyruns.name(result.cell))
        self.facts.setText(f'<table cellspacing="0" cellpadding="3">{rows}</table>')
        about = (studyruns.explained(name, result.cell.work) for name, _ in facts)
        self.facts.setToolTip(tip("\n".join(about)))
        self.open.setText(tr(studyruns.OPENS[result.cell.work]))
        self.open.setVisible(result.state not in ("failed", "blocked"))
        self.open.setEnabled(result.state == "done")
        self.open.setToolTip("" if result.state == "done" else tr("This run is not done yet"))

    def as_text(self) -> str:
        return f"{self.place.text()}\n{plain(self.facts.text())}" if self.drawn else ""


# --- studies --------------------------------------------------------------------------------------

OPEN_STUDY = (("open_sweep_file", "Open study file…"),)
NO_STUDY = Empty(
    "No study is open", "Open a study file (.toml) or the output folder of a study.", OPEN_STUDY
)
REST = 10  # what takes long to read is read again after so many times of rest


@dataclass(frozen=True, slots=True, eq=False)
class StudyCharts:
    """What is drawn of the cells that are done; when it is worth looking again, on the clock."""

    path: str
    done: tuple[str, ...]
    content: Any
    again: float


class StudyChartView(ChartView):
    """One chart of what is done so far; it changes as more is."""

    figureless = "No run is done yet"
    lane = "facts"  # many cells take a while to read together
    needs = ("sweep", "dark")
    kind = ""
    work = ""  # of the cells it is of
    without: Empty  # where the study does not ask for it
    coming: Empty  # where none is done yet
    means = ""  # what is drawn, with its formula and source
    chart_of: Callable[[Any], Chart]

    def __init__(self) -> None:
        super().__init__()
        self.head.add(self.export_button())
        self.head.title.hide()  # the segment over the charts says it
        vbox(self.content, self.head, (self.chart, 1))
        self._found: StudyCharts | None = None

    def request(self, session: Session) -> Callable[[], StudyCharts] | Empty:
        """What the done cells give; the same as before where no more are done."""
        sweep = session.sweep
        some = () if sweep is None else sweep.of(self.work)
        done = tuple(one.cell.key for one in some if one.state == "done")
        if sweep is None or not done:
            return self.coming if some else self.without
        return partial(_drawn, self.kind, sweep, done, self._found)

    def draw(self, result: StudyCharts) -> None:
        self._found = result
        content = result.content
        total = len(self.session.sweep.of(self.work)) if self.session.sweep else 0
        words = [*map(tr, content.notes), tr(getattr(content, "ribbon", "").rstrip("."))]
        if len(result.done) < total:
            words[:0] = [tr("{n:,} of {all:,} runs so far", n=len(result.done), all=total)]
        self.head.note.say("   ·   ".join(filter(None, words)))
        self.chart.show_chart(self.chart_of(content))

    def figure(self, session: Session) -> Spec | None:
        some = () if session.sweep is None else session.sweep.of(self.work)
        return Spec(self.kind) if any(one.state == "done" for one in some) else None

    def as_table(self) -> list[list[str]] | None:
        """The numbers that are drawn: a row for each seed and mean, or each point of a line."""
        if self._found is None:
            return None
        names, *rows = self._found.content.rows()
        cells = ([called(one) if isinstance(one, str) else in_full(one) for one in row]
                 for row in rows)  # fmt: skip
        return [[tr(str(one)) for one in names], *cells]


class ReachedView(StudyChartView):
    """What every model and activation reaches: a point for each seed, the mean, its interval."""

    title = "Scores"
    topic = "study-reached"
    kind, work = "seeds", "score"
    means = (
        "Small marks: seeds. Large mark: mean m of n seeds. Bar: 95 % interval, m ± t s / √n, "
        "Student's t with n − 1 degrees of freedom (Student 1908; statistics.md)."
    )
    without = Empty("This study does not score its models", 'Add "score" to asks.', OPEN_STUDY)
    coming = Empty("No model is scored yet", "Each seed will be a point, with means and intervals.")

    @staticmethod
    def chart_of(content: Seeds) -> Chart:
        """A small mark for each seed, a large one for their mean, its interval.

        Facets have one scale.
        """
        marks = content.marks()
        low, high = _limits(marks)
        count, groups = len(content.series), len(content.groups)
        apart = 0.64 / count  # of the room of a group
        names = tuple((at + 0.5, called(name)) for at, name in enumerate(content.groups))
        found: list[Plot] = []
        for title, facet in content.facets.items():
            seeds: list[plots.Part] = []
            bars: list[plots.Part] = []
            means: list[plots.Part] = []
            for series, row in enumerate(facet):
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
                bars.append(
                    Intervals(x[sure], [m.low for m in ends], [m.high for m in ends], series)
                )
                name = content.series[series]
                said = [_reached((content.groups[at], name), mark) for at, mark in there]
                y = [mark.mean for _, mark in there]
                means.append(
                    Points(x, y, series, series, 10.0, words=said.__getitem__, name=called(name))
                )
            parts = (*seeds, *bars, *means)
            across, up = Axis(0.0, float(groups), names=names), Axis(low, high, tr(content.up))
            found.append(Plot(across, up, parts, title))
        return Chart(tuple(found), of=content.groups)


class BudgetsView(StudyChartView):
    """What is left as heads go, by method: means over seeds with their intervals."""

    title = "Pruning curves"
    topic = "study-budgets"
    kind, work = "budgets", "curve"
    means = (
        "Line: the score with a share of heads off, mean over seeds. Shade: Student's 95 % "
        "interval, m ± t s / √n (statistics.md). Random orders: averaged per model and seed."
    )
    without = Empty(
        "This study has no pruning curves", 'Add "curve" to asks, and methods.', OPEN_STUDY
    )
    coming = Empty("No curve is done yet", "Each method will be a line, averaged over seeds.")

    @staticmethod
    def chart_of(content: Plots) -> Chart:
        """A line for each method with its interval as heads go, a plot for each model."""
        names = list(dict.fromkeys(one.label for plot in content.plots for one in plot.lines))
        found: list[Plot] = []
        for plot in content.plots:
            xs = np.concatenate([one.x for one in plot.lines])
            ys = np.concatenate([one.y for one in plot.lines])
            across = Axis.around(xs, 0.03, tr(plot.across).lower(), words=plots.percent)
            up = Axis.around(plot.limits or ys, 0.04, tr(plot.up))
            bands: list[plots.Part] = []
            lines: list[plots.Part] = []
            for one in plot.lines:
                number = names.index(one.label)
                # what the others are beside is quiet
                colour: plots.Colour = "secondary" if one.label == RANDOM_LABEL else number
                if one.low is not None and one.high is not None:
                    bands.append(Band(one.x, one.low, one.high, colour, 0.16))
                style: Any = "dash" if one.label == RANDOM_LABEL else "solid"
                words = partial(_left, one, plot)
                lines += [
                    plots.Line(one.x, one.y, colour, style=style),
                    Points(one.x, one.y, colour, number, 7.0, words=words, name=called(one.label)),
                ]
            found.append(Plot(across, up, (*bands, *lines), plot.title))
        return Chart(tuple(found), of=tuple(names))


def _reached(names: tuple[str, str], mark: SeedMark) -> str:
    """What a mean over seeds is, how sure, and of which values."""
    name = ", ".join(filter(None, map(called, names)))
    seeds = tr("{n} seed" if len(mark.values) == 1 else "{n} seeds", n=len(mark.values))
    sure = tr("{seeds}: no interval", seeds=seeds)
    if np.isfinite(mark.low):
        ends = {"low": plots.number(mark.low), "high": plots.number(mark.high)}
        sure = tr("{low} to {high} (95 % interval over {seeds})", **ends, seeds=seeds)
    values = ", ".join(plots.number(float(one)) for one in mark.values[:8])
    return f"{name}: {plots.number(mark.mean)}\n{sure}\n{values}"


def _left(line: Line, plot: Curves, at: int) -> str:
    """What a method leaves at a share of heads, and how sure."""
    name = ", ".join(filter(None, (plot.title, called(line.label))))
    words = [f"{name}: {plots.number(line.y[at])}"]
    if line.low is not None and line.high is not None and np.isfinite(line.low[at]):
        ends = {"low": plots.number(line.low[at]), "high": plots.number(line.high[at])}
        words.append(tr("{low} to {high} (95 % interval over seeds)", **ends))
    share = language.rounded_percent(line.x[at])
    return "\n".join((*words, tr("{share} of heads off", share=share)))


def _limits(marks: list[SeedMark]) -> tuple[float, float]:
    """From where to where the axis goes. Intervals of few seeds are wide: they may take as much
    room as the numbers they are of."""
    known = np.concatenate([one.values for one in marks])
    ends = [end for one in marks for end in (one.mean, one.low, one.high) if np.isfinite(end)]
    low, high = float(known.min()), float(known.max())
    span = max(high - low, abs(high) * 0.02, 1e-6)
    low, high = max(min(low, *ends), low - span), min(max(high, *ends), high + span)
    air = 0.08 * (high - low) or span
    return low - air, high + air


def _drawn(
    kind: str, sweep: Sweep, done: tuple[str, ...], before: StudyCharts | None
) -> StudyCharts:
    progress(0, 1, "reading results")
    begun = time.monotonic()
    if before is not None and before.path == sweep.path:
        early = begun < before.again and not sweep.complete
        if before.done == done or early:
            return before
    from hgviz.tasks.study_results import sweep_chart

    content = sweep_chart(kind, sweep)
    now = time.monotonic()
    return StudyCharts(sweep.path, done, content, now + REST * (now - begun))


class SummaryView(View):
    """A line of words and a bar; why the folder cannot be read, if it cannot."""

    title = "Study"
    topic = "study"
    figureless = "It is text"
    needs = ("sweep", "sweep_trouble", "dark")
    lane = "here"
    empty = NO_STUDY

    def __init__(self) -> None:
        super().__init__()
        self.head = PaneHead(tr("Study"))
        about, run = tr("Copy the command that computes the missing runs"), "run_sweep"
        ask = partial(self.asked.emit, run)
        self.run = Button(tr("Copy command"), "copy", toolTip=about, clicked=ask)
        self.head.add(self.run)
        self.head.setFixedHeight(44)
        self.bar = widgets.Progress(8)
        self.bar.setAccessibleName(tr("Progress of the study"))
        self.counts = Words(factor=0.92, weight=500)
        self.counts.setToolTip(tr(MEANS["State"]))
        self.left = Words(factor=0.92, kind="secondary")
        self.left.setAlignment(theme.TO_RIGHT)
        self.trouble = Words(kind="bad")
        self.trouble.hide()
        row = hbox(None, (self.counts, 1), (self.left, 1), spacing=16)
        inside = vbox(None, self.bar, row, self.trouble, margins=(16, 0, 16, 0), spacing=6)
        vbox(self.content, self.head, inside, margins=(0, 0, 0, 10), spacing=6)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def request(self, session: Session) -> Callable[[], Sweep] | None:
        sweep = session.sweep
        return None if sweep is None else lambda: sweep

    def draw(self, result: Sweep) -> None:
        asked, counts = result.asked.question or result.path, result.counts
        self.head.title.setText(result.title)
        self.head.note.say(asked)
        self.head.note.setAccessibleName(asked)
        self.bar.show_part(counts["done"] / max(1, len(result.standings)), result.complete)
        self.counts.say(", ".join(f"{counts[one]:,} {tr(one)}" for one in STATES if counts[one]))
        self.bar.setAccessibleDescription(self.counts.full)
        over = tr("all runs are done") if result.complete and result.standings else ""
        other = tr("{n:,} with other settings", n=result.changed) if result.changed else ""
        self.left.say("   ·   ".join(filter(None, (over, other))))
        self.trouble.say(self.session.sweep_trouble)
        self.trouble.setVisible(bool(self.session.sweep_trouble))
        self.run.setEnabled(not result.complete)


# --- table ----------------------------------------------------------------------------------------

NOTE = "click a header to sort; Return opens the output of a run"
ICONS: dict[State, str] = {
    "done": "check", "waiting": "clock", "failed": "close", "blocked": "warning",
}  # fmt: skip


def run_columns() -> list[Column]:
    """The columns of the table of runs; its rows are Standings."""

    def colour(run: Standing) -> QColor | None:
        return theme.current().bad if run.state == "failed" else None

    def icon(run: Standing) -> QIcon:
        now = theme.current()
        colours = {"done": now.good, "failed": now.bad}
        return theme.icon(ICONS[run.state], colours.get(run.state, now.secondary))

    def place(axis: str, run: Standing) -> str:
        return called(run.cell.place.get(axis, ""))

    def seed(run: Standing) -> str:
        words = place("seed", run)
        return f"{int(words):020}" if words.isdecimal() else words

    about = studyruns.explained
    named = [(axis.title(), partial(place, axis)) for axis in ("data", "model", "activation")]
    return [
        Column(tr("Kind"), lambda run: tr(KINDS[run.cell.work]), None, 120, about("Kind"),
               weight=600),
        *(Column(tr(title), words, None, 100, about(title)) for title, words in named),
        Column(tr("Seed"), partial(place, "seed"), seed, 56, about("Seed")),
        Column(tr("Method"), lambda run: studyruns.sub(run.cell), None, 110, about("Method")),
        Column(tr("State"), lambda run: tr(run.state), None, 100, about("State"), colour=colour,
               icon=icon),
        Column(tr("Result"), studyruns.value, None, 270, about("Result")),
        Column(tr("Time"), lambda run: language.duration(run.seconds), lambda run: run.seconds, 70,
               about("Time")),
        Column(tr("Host"), lambda run: run.host, None, 110, about("Host")),
        Column(tr("Error"), lambda run: run.line, None, 400, about("Error")),
    ]  # fmt: skip


class RunsView(View):
    """The runs of a study in a table."""

    title = "Runs"
    topic = "study-cells"
    figureless = "Export one of the charts instead"
    needs = ("sweep", "dark")
    watches = ("cell",)
    lane = "here"
    empty = NO_STUDY

    picked = Signal(str)  # the key of the run that is chosen

    def __init__(self) -> None:
        super().__init__()
        self.table = RowTable(tr("All runs"), lambda run: run.cell.key)
        self.table.picked.connect(lambda run: self.picked.emit(run.cell.key))
        self.table.opened.connect(lambda run: self.asked.emit("open_cell"))
        vbox(self.content, PaneHead(tr(self.title), tr(NOTE)), (self.table, 1))
        self.start_at(self.table)

    def request(self, session: Session) -> Callable[[], Sweep] | None:
        sweep = session.sweep
        return None if sweep is None else lambda: sweep

    def draw(self, result: Sweep) -> None:
        self.table.show_rows(run_columns(), result.standings)
        self.noticed("cell")
        if self.table.chosen is None and result.standings:
            self.picked.emit(result.standings[0].cell.key)

    def noticed(self, name: str) -> None:
        if name == "cell":
            self.table.choose(self.session.cell or None)

    def as_table(self) -> list[list[str]] | None:
        return self.table.cells() if self.table.rows else None


# --- page -----------------------------------------------------------------------------------------

SIDE, LEAST = 340, 150  # px: width of the chosen cell, least height of the table and of a chart


class SweepPage(QWidget):
    """Progress of a study, the table of its runs, a chart of results, and the chosen run."""

    def __init__(self) -> None:
        super().__init__()
        self.summary, self.cells, self.cell = SummaryView(), RunsView(), RunView()
        self.reached, self.budgets = ReachedView(), BudgetsView()
        self._charts = {"reached": self.reached, "budgets": self.budgets}
        choices = [(name, view.title) for name, view in self._charts.items()]
        self.which = Segments(choices, tr("Charts"))
        self.which.chosen.connect(self.show_chart)
        self.charts = QStackedWidget()
        for name, view in self._charts.items():
            self.which.allow(name, True, tr(view.means))
            self.charts.addWidget(view)
        bar = QWidget()
        bar.setProperty("kind", "pane")
        bar.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        hbox(bar, self.which, 1, margins=(16, 6, 16, 0), spacing=-1)
        below = QWidget()
        vbox(below, bar, (self.charts, 1))
        down = widgets.splitter(Qt.Orientation.Vertical, self.cells, below)
        for number, pane in enumerate((self.cells, below)):
            pane.setMinimumHeight(LEAST)
            down.setStretchFactor(number, 1)
        down.setSizes([LEAST, LEAST])
        self.cell.setFixedWidth(SIDE)
        across = widgets.splitter(Qt.Orientation.Horizontal, down, self.cell)
        across.setStretchFactor(0, 1)
        vbox(self, self.summary, line(), (across, 1))

    @property
    def views(self) -> tuple[View, ...]:
        return (self.summary, self.cells, self.cell, self.reached, self.budgets)

    def join(self, commands: Commands) -> None:
        self.cells.picked.connect(lambda key: commands.session.put(cell=key))
        for view in self._charts.values():
            view.chart.pointed.connect(commands.say)

    def take_focus(self) -> bool:
        return self.cells.take_focus()

    def respond(self, width: int, height: int) -> None:
        """Do nothing: the page has one layout."""

    def show_chart(self, name: str) -> None:
        self.which.choose(name)
        self.charts.setCurrentWidget(self._charts[name])
