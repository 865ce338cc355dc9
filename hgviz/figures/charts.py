"""Charts of numbers: each class holds what a chart shows, draws it, and gives its table.

Widths and heights are in points.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil, dist, inf, isfinite, log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Display, HeadId
from hgviz.figures.cells import LONGEST, Shades, shades_of
from hgviz.figures.labels import LEAST, SMALL, TEXT, elide, round_step, text_width, visible
from hgviz.figures.page import (
    GAP,
    GREY,
    LINE_SAMPLE,
    Axes,
    Key,
    LineStyle,
    Many,
    Page,
    Tick,
    boxes_of,
    label_room,
    line_style,
    power_ticks,
    round_ticks,
)
from hgviz.figures.spec import Chart, Row, Spec
from hgviz.language import counted
from hgviz.language import number as number_words
from hgviz.palettes import LIGHT_PAGE

Triple = tuple[float, float, float]  # mean, low, high
Limits = tuple[float, float]

Y_SPACING = 16.0  # of the numbers of a y axis
HALF_NUMBER = 3.0  # what the number at the top of a y axis takes above it
FOOT = 24.0  # numbers and name of an x axis
LEVEL_NAME = 6.0  # the size of the name of a level in the shape of a model


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A line through points (x, y), with an interval (low, high) where there is one.

    mark: the number of the point that counts; marked: what is written of it.
    """

    label: str
    x: Many
    y: Many
    low: Many | None = None
    high: Many | None = None
    mark: int | None = None
    marked: str = ""

    @property
    def interval(self) -> tuple[()] | tuple[Many, Many]:
        """low and high, empty for no interval."""
        return () if self.low is None or self.high is None else (self.low, self.high)

    def rows(self) -> Iterator[tuple[float, float, float, float]]:
        """x, y, low and high of each point, NaN for no interval."""
        none = np.full(len(self.x), np.nan)
        return zip(self.x, self.y, *(self.interval or (none, none)), strict=True)

    def draw_interval(self, axes: Axes, colour: str, alpha: float) -> None:
        """Fill between low and high, if there is an interval."""
        if self.interval:
            axes.draw_ribbon(self.x, *self.interval, colour, alpha)


def _even_columns(count: int, most: int) -> int:
    """Columns for so many panels, at most `most`, so that no row is much shorter than others."""
    return ceil(count / ceil(count / max(1, most)))


def _finite(values: Iterable[Many]) -> Many:
    """All numbers of some arrays."""
    joined: Many = np.concatenate([np.zeros(0), *values])
    finite: Many = joined[np.isfinite(joined)]
    return finite


def _padded(low: float, high: float, share: float, floor: float = inf) -> Limits:
    """Limits with a share of their distance added above, and below where low is below a floor."""
    air = share * (high - low) or 1.0
    return low - air if low < floor else low, high + air


def _styles(lines: Iterable[Line]) -> dict[str, LineStyle]:
    """The style of each label; lines of one label look alike."""
    labels = dict.fromkeys(line.label for line in lines)
    return {label: line_style(number) for number, label in enumerate(labels)}


@dataclass(frozen=True, slots=True, eq=False)
class Curves(Chart):
    """Panels that share their axes: what is lost as heads go, over the band of random orders.

    panels: title -> lines. across, up: names of the axes. band: the median and the interval of many
    lines, and banded: what it is; mark, marked: what a mark is, in a word and in words. percent: x
    is shares. timed: x is times, which are not sorted and far from 0, so that lines have no
    ribbons.
    """

    panels: Mapping[str, tuple[Line, ...]]
    across: str
    up: str
    band: Line | None = None
    banded: str = ""
    mark: str = ""
    marked: str = ""
    percent: bool = False
    timed: bool = False

    def rows(self) -> list[Row]:
        table: list[Row] = [("panel", "line", self.across, self.up, "low", "high", "marked")]
        for title, lines in self.panels.items():
            if self.band is not None:
                table += [(title, self.banded, *point, "") for point in self.band.rows()]
            table += [
                (title, line.label, *point, line.marked if at == line.mark else "")
                for line in lines
                for at, point in enumerate(line.rows())
            ]
        return table

    def draw(self, page: Page, spec: Spec) -> None:
        count, gap = len(self.panels), 9.0  # only the outer ones have numbers
        columns = _even_columns(count, int((page.width - 30) // 92))
        title_room = 11.0 if any(self.panels) else 0.0
        top = page.heading(self.title, self.more) + (title_room or HALF_NUMBER)
        limits = self._limits(spec.display.limits)
        right = text_width("100 %", SMALL) / 2 if self.percent else 4.0

        def width_beside(left: float) -> float:
            return (page.width - left - right - gap * (columns - 1)) / columns

        height = min((0.62 if columns == 1 else 0.68) * width_beside(30), 180.0)
        if columns >= count:  # in one row the name of the axis stands beside it
            height = max(height, text_width(self.up, SMALL) + 4)
        ys = round_ticks(*limits[2:], height, Y_SPACING)
        left, pitch = label_room(ys), height + title_room + gap
        width = width_beside(left)
        styles = _styles(line for lines in self.panels.values() for line in lines)
        for at, (title, lines) in enumerate(self.panels.items()):
            row, column = divmod(at, columns)
            x, y = left + column * (width + gap), top + row * pitch
            axes = Axes(page, x, y, width, height, *limits)
            self._draw_panel(title, lines, axes, ys, styles, column == 0, at + columns >= count)
        bottom = top + height + (ceil(count / columns) - 1) * pitch
        page.small(SMALL, (top + bottom) / 2, self.up, across="center", turned=True)
        page.small((left + page.width) / 2, bottom + FOOT - 4, self.across, across="center")
        self._draw_key(page, styles, left, bottom + FOOT + 11)

    def _limits(self, y_limits: Limits | None) -> tuple[float, float, float, float]:
        lines = [line for lines in self.panels.values() for line in lines]
        ribbons = [line for lines in self.panels.values() for line in self._ribbons(lines)]
        if self.band is not None:
            lines.append(self.band)
            ribbons.append(self.band)
        x = np.concatenate([line.x for line in lines])
        ends = [end for line in ribbons for end in line.interval]
        y = np.concatenate([*(line.y for line in lines), *ends])
        limits = y_limits or _padded(float(y.min()), float(y.max()), 0.04)
        if self.timed:
            air = 0.04 * float(np.ptp(x)) or 0.5
            return float(x.min()) - air, float(x.max()) + air, *limits
        return 0.0, float(x.max(initial=0.0)) or 1.0, *limits

    def _ribbons(self, lines: tuple[Line, ...]) -> tuple[Line, ...]:
        """The lines of a panel whose interval is drawn: of several none could be read."""
        return lines if len(lines) == 1 and not self.timed else ()

    def _draw_panel(
        self, title: str, lines: tuple[Line, ...], axes: Axes, ys: list[Tick],
        styles: dict[str, LineStyle], is_first: bool, is_lowest: bool,
    ) -> None:  # fmt: skip
        page = axes.page
        if (band := self.band) is not None:
            band.draw_interval(axes, LIGHT_PAGE.band, 1.0)
            axes.draw_stroke(band.x, band.y, LIGHT_PAGE.band_line, 0.8)
        scale, unit = (100, " %") if self.percent else (1, "")
        is_whole = not (self.percent or self.timed)
        ticks = round_ticks(scale * axes.x0, scale * axes.x1, axes.width, 22, is_whole)
        xs = [(x / scale, words + unit if is_lowest else "") for x, words in ticks]
        axes.draw_frame(xs, ys, is_first)
        for line in self._ribbons(lines):
            line.draw_interval(axes, styles[line.label].colour, 0.13)
        for line in lines:
            axes.draw_line(line.x, line.y, styles[line.label])
        rings: list[tuple[float, float]] = []
        for line in lines:
            if line.mark is not None and axes.y0 <= line.y[line.mark] <= axes.y1:
                place = axes.point(line.x[line.mark], line.y[line.mark])
                # rings at one place lie within each other
                size = max(1.0, 5.0 - 2.1 * sum(dist(place, ring) < 2.5 for ring in rings))
                page.marks([place], "o", styles[line.label].colour, size, hollow=True)
                rings.append(place)
        if not title:
            return
        page.bold(axes.left, axes.top - 3, title, axes.width)
        room = axes.width - text_width(title, TEXT, bold=True) - 5
        marked = [line.marked for line in lines if line.marked]
        for words in (", ".join(marked), marked[0].split(",")[0] if len(marked) == 1 else ""):
            note = f"{self.mark} {words}"  # as much of what is marked as there is room for
            if words and text_width(note, SMALL) <= room:
                page.caption(axes.left + axes.width, axes.top - 3, note, across="right")
                break

    def _draw_key(self, page: Page, styles: dict[str, LineStyle], left: float, base: float) -> None:
        key = Key(page, left, base)
        marked = {line.label: line.marked for lines in self.panels.values() for line in lines}
        are_titled = len(styles) == len(self.panels) > 1  # the titles name the lines
        for label, look in () if are_titled else styles.items():
            is_alone = len(self.panels) == 1 and marked[label]
            key.add_line(f"{label}: {self.mark} {marked[label]}" if is_alone else label, look)
        if self.banded:
            x, y = key.add(self.banded)
            page.box(x, y - 3.6, LINE_SAMPLE - 4, 7, fill=LIGHT_PAGE.band)
            page.stroke([(x, y), (x + LINE_SAMPLE - 4, y)], LIGHT_PAGE.band_line, 0.8)
        if self.marked:
            x, y = key.add(f"{self.mark}: {self.marked}")
            page.marks([(x + LINE_SAMPLE / 2 - 2, y)], "o", LIGHT_PAGE.text, 5.0, hollow=True)
        page.close(page.footnotes(self.notes, left, key.base) + 5)


def _powers(values: Many) -> Many:
    """Logarithms, NaN for what is 0."""
    with np.errstate(divide="ignore"):
        return np.where(values > 0, np.log10(values), np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class Plot:
    """One pair of axes of its own. xs: ticks of x, () for round numbers. least, most: what y
    reaches at least; limits: what y reaches, None for all of the lines. log: whether x and y stand
    on logarithmic scales."""

    title: str
    across: str
    up: str
    lines: tuple[Line, ...]
    xs: tuple[Tick, ...] = ()
    least: float = 0.0
    most: float = 0.0
    limits: Limits | None = None
    log: tuple[bool, bool] = (False, False)

    def in_powers(self) -> Plot:
        """The plot with logarithms of what stands on logarithmic scales."""
        plot = self
        if self.log[0]:
            lines = tuple(replace(line, x=_powers(line.x)) for line in plot.lines)
            plot = replace(plot, lines=lines, xs=tuple((log10(x), words) for x, words in self.xs))
        if self.log[1]:
            lines = tuple(replace(line, y=_powers(line.y)) for line in plot.lines)
            largest = float(np.nanmax(np.concatenate([line.y for line in lines])))
            limits = self.limits and (log10(self.limits[0]), log10(self.limits[1]))
            plot = replace(plot, lines=lines, least=largest, most=largest, limits=limits)
        return plot

    def ends(self) -> tuple[float, float, float, float]:
        """x0, x1, y0, y1 of the axes."""
        xs = np.concatenate([line.x for line in self.lines])
        wide = 0.03 * float(np.ptp(xs)) if self.xs else 0.0
        values = (values for line in self.lines for values in (line.y, *line.interval))
        ys = _finite([np.array([self.least, self.most]), *values])
        limits = self.limits or _padded(float(ys.min()), float(ys.max()), 0.05, self.least)
        return float(xs.min()) - wide, float(xs.max()) + wide, *limits

    def y_ticks(self, height: float) -> list[Tick]:
        """The numbers of the y axis."""
        low, high = self.ends()[2:]
        return power_ticks(low, high) if self.log[1] else round_ticks(low, high, height, Y_SPACING)

    def draw(
        self, page: Page, styles: dict[str, LineStyle], left: float, inner: float, top: float,
        width: float, height: float,
    ) -> float:  # fmt: skip
        """Draw the axes from inner on, their name at left; returns where they end below."""
        axes = Axes(page, inner, top + 13, left + width - inner - 8, height, *self.ends())
        page.bold(inner, top + 13 - 5, self.title, left + width - inner)
        xs = self.xs or round_ticks(axes.x0, axes.x1, axes.width, 26)
        axes.draw_frame(xs, self.y_ticks(height))
        if not self.log[1]:
            axes.draw_zero()
        for line in self.lines:
            line.draw_interval(axes, styles[line.label].colour, 0.14)
        for number, line in enumerate(self.lines):
            offset = (number + 0.5) / len(self.lines)  # markers of lines that meet stay apart
            finite = np.flatnonzero(np.isfinite(line.y))
            for part in np.split(finite, np.flatnonzero(np.diff(finite) > 1) + 1):
                if len(part):
                    axes.draw_line(line.x[part], line.y[part], styles[line.label], offset)
        axes.draw_y_label(self.up, left)
        page.small(axes.left + axes.width / 2, axes.bottom + FOOT - 4, self.across, across="center")
        return axes.bottom + FOOT


@dataclass(frozen=True, slots=True, eq=False)
class Plots(Chart):
    """Plots side by side, whose lines of one label look alike; ribbon: what is shaded."""

    plots: tuple[Plot, ...]
    ribbon: str = ""

    def rows(self) -> list[Row]:
        table: list[Row] = [("plot", "line", "x", "y", "low", "high")]
        for plot in self.plots:
            table += [(plot.title, line.label, *p) for line in plot.lines for p in line.rows()]
        return table

    def draw(self, page: Page, spec: Spec) -> None:
        """Place the plots; limits of the spec are those of the first."""
        top = page.heading(self.title, self.more)
        first, *others = self.plots
        if spec.display.limits is not None:
            first = replace(first, limits=spec.display.limits)
        replace(self, plots=(first, *others)).draw_below(page, top)

    def draw_below(self, page: Page, top: float) -> None:
        """Place the plots from top down, and cut the page below them."""
        plots = [plot.in_powers() for plot in self.plots]
        styles = _styles(line for plot in plots for line in plot.lines)
        columns, gap = max(1, min(len(plots), int(page.width // 190))), 14.0
        width = (page.width - gap * (columns - 1)) / columns
        height = min(0.62 * width - 20, 160.0)
        bottom = top
        for at, plot in enumerate(plots):
            column = at % columns
            top = top if column else bottom
            left = column * (width + gap)
            room = max(label_room(other.y_ticks(height)) for other in plots[column::columns])
            end = plot.draw(page, styles, left, left + room, top, width, height)
            bottom = max(bottom, end)
        key = Key(page, 0.0, bottom + 11)
        for label, look in styles.items():
            key.add_line(label, look)
        notes = [*filter(None, [self.ribbon]), *self.notes]
        page.close(page.footnotes(notes, 0.0, key.base) + 5)


# --- repeated measurements ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class SeedMark:
    """What was measured of one thing: values (seeds,), seeds their names, and the mean with its
    interval, NaN of one seed."""

    values: Many
    seeds: tuple[str, ...]
    mean: float
    low: float
    high: float

    def draw(self, axes: Axes, x: float, gap: float, look: LineStyle) -> None:
        """Draw the seeds left of x, in points, and their mean with its interval right of it."""
        page, has_seeds = axes.page, len(self.values) > 1
        if has_seeds:
            shown = self.values[axes.contains(self.values)]
            places = [(x - gap, axes.point(0, value)[1]) for value in shown]
            page.marks(places, look.marker, look.colour, min(2.8, 2 * gap), alpha=0.55)
            x += gap
        if isfinite(self.low) and isfinite(self.high):
            low, high = (float(np.clip(end, axes.y0, axes.y1)) for end in (self.low, self.high))
            if low < high:
                page.lines([[(x, axes.point(0, end)[1]) for end in (low, high)]], look.colour, 1.0)
        if axes.y0 <= self.mean <= axes.y1:
            place = x, axes.point(0, self.mean)[1]
            page.marks([place], look.marker, look.colour, min(4.2, 3 * gap + 1), not has_seeds)


@dataclass(frozen=True, slots=True, eq=False)
class Seeds(Chart):
    """What models reach, over seeds: facets that share their axes, groups along x; marks of one
    series look alike. facets: title -> marks (series, groups), None for nothing; up: the name of
    the y axis."""

    facets: Mapping[str, tuple[tuple[SeedMark | None, ...], ...]]
    groups: tuple[str, ...]
    series: tuple[str, ...]
    up: str

    def marks(self) -> list[SeedMark]:
        """All marks of all facets."""
        rows = (row for facet in self.facets.values() for row in facet)
        return [mark for row in rows for mark in row if mark is not None]

    def rows(self) -> list[Row]:
        table: list[Row] = [("panel", "group", "series", "seed", self.up, "low", "high")]
        for title, facet in self.facets.items():
            for name, marks in zip(self.series, facet, strict=True):
                for group, mark in zip(self.groups, marks, strict=True):
                    if mark is not None:
                        place = title, group, name
                        seeds = zip(mark.seeds, mark.values, strict=True)
                        table += [(*place, seed, value, np.nan, np.nan) for seed, value in seeds]
                        table.append((*place, "mean", mark.mean, mark.low, mark.high))
        return table

    def draw(self, page: Page, spec: Spec) -> None:
        y = page.heading(self.title, self.more) + HALF_NUMBER
        limits = spec.display.limits or self._limits()
        title_room = 12.0 if any(self.facets) else 0.0
        need = max(150.0, 13 * len(self.groups) * len(self.series))
        columns = max(1, min(len(self.facets), int(page.width // need)))
        height = min(max(0.5 * page.width / columns, 84.0), 150.0)
        height = max(height, text_width(self.up, SMALL) + 4)
        ys = round_ticks(*limits, height, Y_SPACING)
        left, gap = label_room(ys), 10.0
        width = (page.width - left - 2 - gap * (columns - 1)) / columns
        facets = list(self.facets.items())
        for start in range(0, len(facets), columns):
            depth = 0.0
            for column, (title, facet) in enumerate(facets[start : start + columns]):
                box = left + column * (width + gap), y + title_room, width, height
                axes = Axes(page, *box, -0.5, len(self.groups) - 0.5, *limits)
                axes.draw_frame([], ys, numbered=column == 0)
                if title:
                    page.bold(axes.left, axes.top - 4, title, width)
                depth = max(depth, axes.draw_names(self.groups))
                step = min(0.86 * axes.unit / len(self.series), 31.2)
                for number, row in enumerate(facet):
                    offset = (number - (len(facet) - 1) / 2) * step
                    for group, mark in enumerate(row):
                        if mark is not None:
                            x = axes.point(group, 0)[0] + offset
                            mark.draw(axes, x, min(2.6, step / 5), line_style(number))
            axes.draw_y_label(self.up)
            y += title_room + height + depth + 12
        y -= 12
        key = Key(page, left, y + 11)
        for number, name in enumerate(self.series):
            if name:
                key.add_mark(name, line_style(number), 4.2)
        marks, notes = self.marks(), [*self.notes]
        if beyond := sum(mark.low < limits[0] or mark.high > limits[1] for mark in marks):
            notes.append(f"{counted(beyond, 'interval')} beyond the axis")
        if any(len(mark.values) == 1 for mark in marks):
            notes.append("hollow: one seed, no interval")
        base = key.base if any(self.series) else y + 1
        page.close(page.footnotes(notes, left, base) + 5)

    def _limits(self) -> Limits:
        """All values, and intervals as far as they leave the values to be seen."""
        marks = self.marks()
        values = _finite(np.append(mark.values, mark.mean) for mark in marks)
        if not len(values):
            return 0.0, 1.0
        low, high = float(values.min()), float(values.max())
        span = high - low or 1.0
        ends = [end for mark in marks for end in (mark.low, mark.high) if isfinite(end)] or [low]
        down = max(min(low, *ends), low - 1.5 * span)
        up = min(max(high, *ends), high + 1.5 * span)
        return _padded(down, up, 0.06)


@dataclass(frozen=True, slots=True, eq=False)
class Scores(Chart):
    """Heads from left to right, the most needed first, with what each is worth: value, low, high
    (heads,). groups: the number of each head's group; up: the name of the y axis."""

    names: tuple[str, ...]
    value: Many
    low: Many
    high: Many
    groups: tuple[int, ...]
    group_names: tuple[str, ...]
    up: str

    def rows(self) -> list[Row]:
        groups = (self.group_names[group] for group in self.groups)
        columns = self.names, groups, self.value, self.low, self.high
        return [("head", "group", self.up, "low", "high"), *zip(*columns, strict=True)]

    def draw(self, page: Page, spec: Spec) -> None:
        """Place a marker for each head, hollow where its interval includes 0, and the interval."""
        top = page.heading(self.title, self.more) + HALF_NUMBER
        values = np.concatenate([[0.0], _finite([self.low, self.high]), self.value])
        limits = spec.display.limits or _padded(float(values.min()), float(values.max()), 0.05)
        height = max(min(0.5 * page.width, 200.0), text_width(self.up, SMALL) + 4)
        ys = round_ticks(*limits, height, Y_SPACING)
        left, count = label_room(ys), len(self.names)
        axes = Axes(page, left, top, page.width - left - 4, height, -0.8, count - 0.2, *limits)
        axes.draw_frame([], ys)
        axes.draw_zero()
        x, has_zero = np.arange(count, dtype=float), (self.low <= 0) & (self.high >= 0)
        ends = np.clip([self.low, self.high], axes.y0, axes.y1)
        size = min(3.6, max(1.8, 0.8 * axes.width / count))
        for group in range(len(self.group_names)):
            heads, look = np.array(self.groups) == group, line_style(group)
            intervals = [axes.points(x[[i, i]], ends[:, i]) for i in np.flatnonzero(heads)]
            page.lines(intervals, look.colour, 0.8)
            heads &= axes.contains(self.value)
            for hollow in (False, True):
                chosen = heads & (has_zero == hollow)
                places = axes.points(x[chosen], self.value[chosen])
                page.marks(places, look.marker, look.colour, size, hollow)
        bottom = axes.bottom + axes.draw_names(self.names)
        axes.draw_y_label(self.up)
        key = Key(page, left, bottom + 11)
        for number, name in enumerate(self.group_names):
            key.add_mark(name, line_style(number), 3.6)
        if has_zero.any():
            key.add("hollow: the interval includes 0", 0.0, GREY)
        notes = [*self.notes]
        if beyond := int((~axes.contains(self.value)).sum()):
            notes.append(f"{counted(beyond, 'head')} beyond the axis")
        page.close(page.footnotes(notes, left, key.base) + 5)


# --- metrics of heads -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Strip:
    """One metric: the values of all heads of A and of B, and the means with their intervals."""

    label: str
    unit: str
    heads: tuple[Many, Many]
    means: tuple[Triple, Triple]

    def draw(self, page: Page, left: float, right: float, top: float, lane: float) -> None:
        """Draw the name of the metric, an axis of its own, and a lane of marks for A and for B."""
        values = _finite([*self.heads, *np.array(self.means)])
        high = max(float(values.max(initial=0.0)), 1e-12) if len(values) else 1.0
        low, high = _padded(float(values.min(initial=0.0)), high, 0.03, 0.0)
        axes = Axes(page, left, top, right - left, 2 * lane, low, high, 0.0, 2.0)
        page.text(0, top + lane - 1, elide(self.label, left - 6, TEXT))
        if self.unit:
            page.caption(0, top + lane + 8, self.unit)
        for value, words in round_ticks(low, high, axes.width, 34):
            x = axes.point(value, 0)[0]
            page.lines([[(x, top), (x, axes.bottom)]], LIGHT_PAGE.line, 0.4)
            page.caption(x, axes.bottom + 8, words, across="center")
        page.lines([[(left, axes.bottom), (right, axes.bottom)]], GREY, 0.6)
        for model, (heads, mean) in enumerate(zip(self.heads, self.means, strict=True)):
            y, look = top + (model + 0.5) * lane, line_style(model)
            places = [(axes.point(value, 0)[0], y) for value in heads if isfinite(value)]
            page.marks(places, look.marker, look.colour, 3.6, hollow=True)
            middle, *ends = (axes.point(end, 0)[0] for end in mean)
            if isfinite(middle):
                page.lines([[(middle, y - 5), (middle, y + 5)]], look.colour, 1.8)
            if all(map(isfinite, ends)):
                page.lines([[(end, y) for end in ends]], look.colour, 1.8)
            page.marks([(right + 11, y)], look.marker, look.colour, 3.6)
            page.small(right + 17, y, number_words(mean[0]), middle=True)


@dataclass(frozen=True, slots=True, eq=False)
class Strips(Chart):
    """Metrics below each other, A above B in each; names: of A and B."""

    strips: tuple[Strip, ...]
    names: tuple[str, str]

    def rows(self) -> list[Row]:
        table: list[Row] = [("metric", "model", "head", "value")]
        for strip in self.strips:
            for name, values in zip(self.names, strip.heads, strict=True):
                table += [(strip.label, name, float(at), x) for at, x in enumerate(values)]
        return table

    def draw(self, page: Page, spec: Spec) -> None:
        y, lane = page.heading(self.title, self.more) + 10, 11.0
        left, right = min(0.27 * page.width, 120.0), page.width - 62
        page.caption(right + 8, y - 6, "mean")
        for strip in self.strips:
            strip.draw(page, left, right, y, lane)
            y += 2 * lane + 26
        key = Key(page, 0.0, y + 2)
        for model, name in enumerate(self.names):
            words = elide(name, page.width / 2 - 20, SMALL)
            key.add_mark(words, line_style(model), 3.6, hollow=True)
        page.close(page.footnotes(self.notes, 0.0, key.base) + 5)


@dataclass(frozen=True, slots=True)
class Place:
    """A layer on the axis of layers. rank, key_rank: how coarse the levels of its queries and keys
    are among those of their text, 0 for the finest; level: the name of the level of its queries;
    sequence: the text of its queries; known: whether it is captured."""

    index: int
    name: str
    role: str
    level: str
    rank: int
    key_rank: int
    sequence: str
    known: bool = True

    @property
    def kind(self) -> str:
        """cross, or self, which layers that change levels belong to."""
        return "cross" if self.role == "cross" else "self"


@dataclass(frozen=True, slots=True, eq=False)
class ProfileSide:
    """One capture of a profile: its layers, its heads in order, and which of these are off."""

    name: str
    layers: tuple[Place, ...]
    heads: tuple[HeadId, ...]
    off: NDArray[np.bool_]

    def of_layer(self, layer: int) -> NDArray[np.bool_]:
        """(heads,) The heads of a layer."""
        return np.array([head.layer == layer for head in self.heads], bool)

    def mean(self, values: Many, layer: int) -> float:
        """The mean of a layer's heads that are on and have such a number; NaN for none."""
        values = values[self.of_layer(layer) & ~self.off & np.isfinite(values)]
        return float(values.mean()) if len(values) else float("nan")

    def draw_shape(self, axes: Axes, middle: float, height: float, prefix: str) -> None:
        """Draw the model lying on its side above the axes, as high as its levels are fine."""
        page, tints = axes.page, LIGHT_PAGE.silhouette
        for level, run in groupby(self.layers, lambda place: place.level):
            places, edge = list(run), []
            for place in places:
                left = axes.point(place.index - 0.5, 0)[0]
                first = place.key_rank if place.role in ("down", "up") else place.rank
                for x, rank in ((left, first), (left + axes.unit, place.rank)):
                    edge.append((x, height / 2 * 0.78**rank))
            upper = [(x, middle - half) for x, half in edge]
            lower = [(x, middle + half) for x, half in reversed(edge)]
            page.polygon(upper + lower, tints[min(places[0].rank, len(tints) - 1)])
            words, width = prefix + level, axes.unit * len(places)
            x, reach = edge[0][0] + width / 2, text_width(words, LEVEL_NAME) / 2
            # as large as the shape is high where the name lies
            xs, halves = zip(*edge, strict=True)
            size = min(LEVEL_NAME, *(2 * np.interp((x - reach, x + reach), xs, halves) - 1))
            if 2 * reach + 2 <= width and size >= LEAST:
                page.text(x, middle, words, size=size, across="center", middle=True)

    def draw_levels(self, axes: Axes) -> None:
        """Tint the layers of coarser levels in the axes."""
        for rank, run in groupby(self.layers, lambda place: max(place.rank, place.key_rank)):
            places = list(run)
            if rank:
                x = axes.point(places[0].index - 0.5, 0)[0]
                fill = LIGHT_PAGE.silhouette[min(rank, 2) - 1]
                axes.page.box(x, axes.top, axes.unit * len(places), axes.height, fill=fill)


@dataclass(frozen=True, slots=True, eq=False)
class MetricValues:
    """A metric: values of each side (heads,), NaN where a head has no such number."""

    name: str
    label: str
    values: tuple[Many, ...]

    def limits(self) -> Limits:
        """From 0, or from below it, with a little air."""
        values = _finite(self.values)
        return _padded(float(values.min(initial=0)), float(values.max(initial=0)), 0.06, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Series:
    """The layers of one kind (self, cross) of one of so many sides, a line of their own."""

    side: ProfileSide
    number: int
    kind: str
    look: LineStyle
    sides: int

    def offset(self, axes: Axes) -> float:
        """How many layers beside the middle of a layer the series stands."""
        step = min(0.66 / self.sides, 7.0 / axes.unit)
        return (self.number - (self.sides - 1) / 2) * step

    def draw_heads(self, axes: Axes, values: Many) -> None:
        """Draw a mark for each head, hollow where it is off."""
        size = min(3.0, max(1.6, 0.42 * axes.unit / self.sides**0.5))
        x = np.array([head.layer for head in self.side.heads], float) + self.offset(axes)
        kinds = {place.index: place.kind for place in self.side.layers}
        shown = np.array([kinds[head.layer] == self.kind for head in self.side.heads], bool)
        for off in (False, True):
            heads = shown & np.isfinite(values) & (self.side.off == off)
            places, alpha = axes.points(x[heads], values[heads]), 1.0 if off else 0.55
            axes.page.marks(places, self.look.marker, self.look.colour, size, off, alpha)

    def draw_means(self, axes: Axes, values: Many) -> None:
        """Draw a line through the means of neighbours of one text, a short one for one layer."""
        layers = [place for place in self.side.layers if place.kind == self.kind]
        means = [(place, self.side.mean(values, place.index)) for place in layers]
        runs = groupby(means, lambda pair: (isfinite(pair[1]), pair[0].sequence))
        for (is_number, _), run in runs:
            points = [(place.index + self.offset(axes), mean) for place, mean in run]
            if len(points) == 1:
                points = [(points[0][0] + end, points[0][1]) for end in (-0.3, 0.3)]
            if is_number:
                places = axes.points(*np.array(points).T)
                axes.page.stroke(places, self.look.colour, 1.2, self.look.dash)


@dataclass(frozen=True, slots=True, eq=False)
class Profile(Chart):
    """Metrics over the layers of one or more captures: a mark for each head, a line of means."""

    sides: tuple[ProfileSide, ...]
    metrics: tuple[MetricValues, ...]

    def rows(self) -> list[Row]:
        """A row for each head, and one of the mean for each layer."""
        columns = "metric", "capture", "layer", "name", "level", "kind", "head", "off", "value"
        table: list[Row] = [columns]
        for metric in self.metrics:
            for side, values in zip(self.sides, metric.values, strict=True):
                off = np.where(side.off, "yes", "").tolist()
                for layer in side.layers:
                    place = metric.label, side.name, str(layer.index), layer.name, layer.level
                    heads = np.flatnonzero(side.of_layer(layer.index))
                    rows = [(str(side.heads[head]), off[head], values[head]) for head in heads]
                    if rows:
                        rows.append(("mean", "", side.mean(values, layer.index)))
                    table += [(*place, layer.role, *row) for row in rows]
        return table

    def draw(self, page: Page, spec: Spec) -> None:
        """Place the metrics, the shape of the model above each column of them."""
        bottom = page.heading(self.title, self.more)
        styles = map(line_style, range(2 * len(self.sides)))
        series = [
            _Series(side, number, kind, next(styles), len(self.sides))
            for number, side in enumerate(self.sides)
            for kind in dict.fromkeys(place.kind for place in side.layers)
        ]
        layers, gap, shape_height = max(len(side.layers) for side in self.sides), 12.0, 13.0
        need = max(96.0, 3.0 * layers + 24)
        most = min(len(self.metrics), int((page.width + gap) // (need + gap)))
        columns = _even_columns(len(self.metrics), most)
        width = (page.width - gap * (columns - 1)) / columns
        height = min(96.0, max(52.0, 0.6 * width - 14))
        shapes = [side for side in self.sides if len({place.level for place in side.layers}) > 1]
        levels = [[(row.rank, row.key_rank, row.sequence) for row in side.layers]
                  for side in self.sides]  # fmt: skip
        if all(row == levels[0] for row in levels):
            del shapes[1:]  # one stands for all of them
        top = bottom
        for number, metric in enumerate(self.metrics):
            column, is_highest = number % columns, number < columns
            if not column:
                top = bottom + (0 if is_highest else 9)
            shape_room = len(shapes) * (shape_height + 1) + 2 if shapes and is_highest else 0.0
            left = column * (width + gap)
            page.bold(left, top + TEXT, visible(metric.label, space=" "), width)
            below = (metric.limits() for metric in self.metrics[column::columns])
            ticks = [tick for limits in below for tick in round_ticks(*limits, height, 10.4)]
            inner = left + max((text_width(words, SMALL) for _, words in ticks), default=0.0) + GAP
            room = left + width - inner
            # the last number of a layer may reach beyond it
            last = text_width(str(layers - 1), SMALL) / 2 - room / layers / 2
            axes = Axes(page, inner, top + 12 + shape_room, room - max(1.0, last), height,
                        -0.5, layers - 0.5, *metric.limits())  # fmt: skip
            for at, side in enumerate(shapes if is_highest else ()):
                middle = top + 12 + (at + 0.5) * (shape_height + 1)
                prefix = f"{side.name[:1]} " if len(shapes) > 1 else ""
                side.draw_shape(axes, middle, shape_height, prefix)
            if len(shapes) == 1:
                shapes[0].draw_levels(axes)
            _draw_metric(axes, metric, series, number + columns >= len(self.metrics))
            bottom = axes.bottom
        base = bottom + 12 + 19
        key = Key(page, 0.0, base)
        has_kinds = len({line.kind for line in series}) > 1
        for line in series if len(series) > 1 else ():
            name = line.side.name if len(self.sides) > 1 else ""
            names = filter(None, (name, f"{line.kind}-attention" if has_kinds else ""))
            label = elide(visible(", ".join(names), space=" "), page.width - LINE_SAMPLE - 2, SMALL)
            key.add_line(label, line.look, 1.2)
        start_of_notes = key.base if len(series) > 1 else base - 10
        page.close(page.footnotes(self.notes, 0.0, start_of_notes) + 4)


def _draw_metric(axes: Axes, metric: MetricValues, series: list[_Series], is_lowest: bool) -> None:
    """Draw a pair of axes of a profile: the numbers of layers only if it is the lowest."""
    layers = round(axes.x1 + 0.5)
    need = text_width(str(layers - 1), SMALL) + 3
    step = round_step(min(need * layers / axes.width, layers))
    xs = [(float(layer), str(layer) if is_lowest else "") for layer in range(0, layers, step)]
    axes.draw_frame(xs, round_ticks(axes.y0, axes.y1, axes.height, 10.4))
    axes.draw_zero()
    for line in series:
        line.draw_heads(axes, metric.values[line.number])
    for line in series:
        line.draw_means(axes, metric.values[line.number])
    if is_lowest:
        axes.page.caption(axes.left + axes.width / 2, axes.bottom + 19, "Layer", across="center")


# --- matrices: distances of heads, and how far outputs reach --------------------------------------

TITLE_ROOM = 13.0
NAME = 5.5  # the size of the names of heads
APART = 14.0  # between grids, and before the lines below


def _draw_matrix(
    page: Page, values: Many, known: NDArray[np.bool_], shades: Shades,
    box: tuple[float, float, float, float],
) -> None:  # fmt: skip
    """Draw values (rows, columns) over a box (left, top, width, height), hatched if not known."""
    left, top, width, height = box
    rows, columns = values.shape
    page.image(shades.paint(values.astype(np.float32), known), *box)
    if not known.all():
        cell = width / max(columns, 1), height / max(rows, 1)
        page.hatch(*box, boxes_of(~known, left, top, cell))
    page.box(*box, edge=LIGHT_PAGE.line)


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """A matrix: values (rows, columns), NaN where there is none; down and across name its sides."""

    title: str
    values: Many
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    down: str
    across: str

    def draw(
        self, page: Page, shades: Shades, left: float, top: float, width: float, largest: float
    ) -> float:
        """Draw it with cells of at most `largest`; returns where it ends below."""
        rows, columns = self.values.shape
        inner = left + max(text_width(name, NAME) for name in self.rows) + 14
        cell = min((left + width - inner) / max(columns, 1), largest)
        page.bold(left, top + TITLE_ROOM - 5, self.title, width)
        y = top + TITLE_ROOM + 2
        right, bottom = inner + cell * columns, y + cell * rows
        known = np.isfinite(self.values)
        box = inner, y, right - inner, bottom - y
        _draw_matrix(page, np.where(known, self.values, 0.0), known, shades, box)
        look: Any = {"size": NAME, "across": "right", "middle": True, "colour": GREY}
        step = max(1, ceil(1.15 * NAME / cell))
        for row in range(0, rows, step):
            page.text(inner - 3, y + (row + 0.5) * cell, self.rows[row], **look)
        for column in range(0, columns, step):
            name = self.columns[column]
            page.text(inner + (column + 0.5) * cell, bottom + 3, name, turned=True, **look)
        depth = max((text_width(name, NAME) for name in self.columns[::step]), default=0.0)
        page.small(left + SMALL, (y + bottom) / 2, self.down, across="center", turned=True)
        page.small((inner + right) / 2, bottom + depth + 13, self.across, across="center")
        return float(bottom + depth + 18)


@dataclass(frozen=True, slots=True, eq=False)
class Grids(Chart):
    """Grids side by side on one scale from limits[0] to limits[1], and lines below them where there
    are some; unit: what the numbers of the grids are."""

    grids: tuple[Grid, ...]
    unit: str
    limits: Limits = (0.0, 1.0)
    lines: Plots | None = None

    def rows(self) -> list[Row]:
        """A row for each cell, and for each point of the lines."""
        cells: list[Row] = []
        for grid in self.grids:
            for name, values in zip(grid.rows, grid.values, strict=True):
                row = zip(grid.columns, values, strict=True)
                cells += [(grid.title, name, column, value) for column, value in row]
        if self.lines is None:
            return [("grid", "row", "column", self.unit), *cells]
        points = self.lines.rows()[1:]
        lines = [(plot, line, float(x), "", float(y)) for plot, line, x, y, *_ in points]
        return [("shown", "of", "x", "y", "value"), *(("heads", *cell) for cell in cells), *lines]

    def draw(self, page: Page, spec: Spec) -> None:
        shades = shades_of(Display(limits=self.limits, scale="linear"), self.limits[0] < 0, [])
        narrowest, largest = (120.0, 22.0) if self.lines is None else (84.0, 13.0)
        columns = max(1, min(len(self.grids), int(page.width // narrowest)))
        width = (page.width - APART * (columns - 1)) / columns
        top = bottom = page.heading(self.title, self.more)
        for at, grid in enumerate(self.grids):
            top = top if at % columns else bottom
            end = grid.draw(page, shades, at % columns * (width + APART), top, width, largest)
            bottom = max(bottom, end)
        end = shades.draw_half(page, page.footnotes([self.unit], 0.0, bottom - 2) + 4)
        end = page.footnotes(self.notes, 0.0, end)
        if self.lines is None:
            page.close(end + 5)
        else:
            self.lines.draw_below(page, end + APART)


@dataclass(frozen=True, slots=True, eq=False)
class Square:
    """A reach matrix: values (outputs, inputs) over the largest of them, 0.0 where nothing goes;
    name: of its model; across: what its inputs are."""

    name: str
    values: Many
    across: str = "Input token"

    def draw(
        self, page: Page, shades: Shades, left: float, top: float, side: float, is_first: bool
    ) -> None:
        """Draw it with outputs down; only the first of a row has their numbers."""
        y, (rows, columns) = top + TITLE_ROOM, self.values.shape

        def ticks(count: int) -> list[Tick]:
            tokens = round_ticks(0, max(count - 1, 1), side, 26.0, whole=True)
            return [((token + 0.5) * side / max(count, 1), words) for token, words in tokens]

        page.bold(left, y - 5, self.name, side)
        _draw_matrix(page, self.values, self.values > 0, shades, (left, y, side, side))
        for x, words in ticks(columns):
            page.lines([[(left + x, y + side), (left + x, y + side + 2)]], GREY)
            page.caption(left + x, y + side + 9, words, across="center")
        page.small(left + side / 2, y + side + 18, self.across, across="center")
        if is_first:
            for middle, words in ticks(rows):
                page.caption(left - 3, y + middle, words, across="right", middle=True)
            page.small(SMALL, y + side / 2, "Output at token", across="center", turned=True)


@dataclass(frozen=True, slots=True, eq=False)
class Reaches(Chart):
    """How outputs of models depend on tokens: squares on one scale, and below them lines over
    distance, and over length where times were measured.

    asked: what follows the models in the command `hgviz reach` that measures it; notes say of each
    model how far it reaches.
    """

    squares: tuple[Square, ...]
    lines: Plots
    asked: tuple[str, ...] = ()

    def rows(self) -> list[Row]:
        table: list[Row] = [("model", "shown", "x", "y", "value")]
        for square in self.squares:
            shown = square.name, f"output by {square.across.lower()}"
            cells = np.ndenumerate(square.values)
            table += [(*shown, *place, float(value)) for place, value in cells]
        points = self.lines.rows()[1:]
        return table + [(line, plot, float(x), "", float(y)) for plot, line, x, y, *_ in points]

    def draw(self, page: Page, spec: Spec) -> None:
        top = page.heading(self.title, self.more)
        display = Display(spec.display.palette, spec.display.limits or (0.0, 1.0), "log")
        shades = shades_of(display, False, [])
        start, gap = 24.0, 9.0  # start: the numbers and the name of the outputs
        room = page.width - start
        columns = max(1, min(len(self.squares), int(room // 84)))
        side = min((room - gap * (columns - 1)) / columns, 170.0)
        pitch = TITLE_ROOM + side + 22
        for number, square in enumerate(self.squares):
            row, column = divmod(number, columns)
            x, y = start + column * (side + gap), top + row * pitch
            square.draw(page, shades, x, y, side, column == 0)
        scale = ["Gradient, divided by the largest of its matrix (logarithmic)"]
        bottom = top + ceil(len(self.squares) / columns) * pitch - 2
        y = page.footnotes(scale, 0.0, bottom)
        bar = page.width - 62
        end = shades.draw_level(page, 3.0, y + 4, bar)
        if any((square.values == 0).any() for square in self.squares):
            left = min(LONGEST, bar) + APART
            page.legend(["exactly 0"], left, y + 3, page.width - left)
        self.lines.draw_below(page, page.footnotes(self.notes, 0.0, end) + APART)
